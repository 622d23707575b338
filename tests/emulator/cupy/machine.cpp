// The machine that kernels run on: memory between guards, and blocks of threads that are fibers.
//
// A block's threads run in turn on one thread of the host, each until it waits for others: the next one
// that can go on is then switched to. What lanes of a warp do together is done once none of its lanes can
// go on, a barrier once no thread of the block can. Where that leaves somebody waiting, the kernel is wrong, and
// the launch fails with the lines at which threads wait.
#include <dlfcn.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <time.h>
#include <ucontext.h>
#include <unistd.h>

#include <map>
#include <vector>

typedef unsigned long long u64;
struct uint3 {
    unsigned x, y, z;
};

// ---------------------------------------------------------------------------------------- memory

namespace {

constexpr size_t PAGE = 4096, QUARANTINE = 512;
// what surrounds arrays, and what they hold before anything is written: NaN, or no likely number
constexpr unsigned char CANARY = 0xff;

struct Array {
    char *map, *begin;
    size_t mapped, size;
    u64 number;
};
std::map<uintptr_t, Array> arrays;  // by their end
std::vector<Array> freed;
size_t oldest = 0;
u64 n_arrays = 0;

size_t up(size_t size, size_t unit) { return (size + unit - 1) / unit * unit; }

}  // namespace

// Memory of `size` bytes, which end (side 1) or begin (side 0) at a page that nobody may touch.
extern "C" void* emulator_alloc(size_t size, size_t alignment, int side) {
    const size_t inner = up(size ? size : 1, PAGE), mapped = inner + 2 * PAGE;
    char* map = (char*)mmap(nullptr, mapped, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (map == MAP_FAILED) return nullptr;
    if (mprotect(map + PAGE, inner, PROT_READ | PROT_WRITE)) {
        munmap(map, mapped);
        return nullptr;
    }
    char* begin = map + PAGE + (side ? inner - up(size, alignment) : 0);
    memset(map + PAGE, CANARY, begin - (map + PAGE));
    memset(begin + size, CANARY, map + PAGE + inner - (begin + size));
    arrays[(uintptr_t)(map + mapped)] = {map, begin, mapped, size, n_arrays++};
    return begin;
}

namespace {

// The array in whose memory, or next to whose guards, an address lies.
const Array* array_at(uintptr_t address, bool* gone) {
    auto found = arrays.upper_bound(address);
    *gone = false;
    if (found != arrays.end() && (uintptr_t)found->second.map <= address) return &found->second;
    *gone = true;
    for (const Array& array : freed)
        if ((uintptr_t)array.map <= address && address < (uintptr_t)array.map + array.mapped) return &array;
    return nullptr;
}

// How many bytes off the nearest end of an array something at `address` is.
void place_in(char* out, size_t size, uintptr_t address) {
    bool gone;
    const Array* array = array_at(address, &gone);
    if (array == nullptr) {
        snprintf(out, size, "address 0x%llx, where no array is", (u64)address);
        return;
    }
    const long long offset = (long long)(address - (uintptr_t)array->begin);
    const char* state = gone ? "a freed" : "an";
    if (offset < 0)
        snprintf(out, size, "%lld bytes before %s array of %zu bytes (number %llu)", -offset, state,
                 array->size, array->number);
    else if ((size_t)offset >= array->size)
        snprintf(out, size, "%lld bytes behind the end of %s array of %zu bytes (number %llu)",
                 offset - (long long)array->size, state, array->size, array->number);
    else
        snprintf(out, size, "byte %lld of %s array of %zu bytes (number %llu)", offset, state, array->size,
                 array->number);
}

const char* changed(const char* from, const char* to) {
    for (; from < to && ((uintptr_t)from & 7); ++from)
        if ((unsigned char)*from != CANARY) return from;
    for (; from + 8 <= to; from += 8)
        if (*(const u64*)from != ~0ULL) break;
    for (; from < to; ++from)
        if ((unsigned char)*from != CANARY) return from;
    return nullptr;
}

const char* damage(const Array& array) {
    const char *first = array.map + PAGE, *last = array.map + array.mapped - PAGE;
    const char* found = changed(first, array.begin);
    return found ? found : changed(array.begin + array.size, last);
}

}  // namespace

// Look at what surrounds all arrays; 1 and a sentence where something was written.
extern "C" int emulator_check(char* message, size_t size) {
    for (auto& [end, array] : arrays) {
        const char* found = damage(array);
        if (found == nullptr) continue;
        char where[256];
        place_in(where, sizeof where, (uintptr_t)found);
        snprintf(message, size, "a kernel wrote %s", where);
        // so that it is told once
        memset(array.map + PAGE, CANARY, array.begin - (array.map + PAGE));
        memset(array.begin + array.size, CANARY, array.map + array.mapped - PAGE - (array.begin + array.size));
        return 1;
    }
    return 0;
}

extern "C" void emulator_free(void* pointer, size_t size) {
    auto found = arrays.upper_bound((uintptr_t)pointer);
    if (found == arrays.end() || found->second.begin != pointer) abort();
    const Array array = found->second;
    arrays.erase(found);
    // its addresses stay out of use for a while, so that who uses them still is caught
    if (mmap(array.map, array.mapped, PROT_NONE,
             MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE | MAP_FIXED, -1, 0) == MAP_FAILED)
        return;
    if (freed.size() < QUARANTINE) {
        freed.push_back(array);
    } else {
        munmap(freed[oldest].map, freed[oldest].mapped);
        freed[oldest] = array;
        oldest = (oldest + 1) % QUARANTINE;
    }
    (void)size;
}

// ---------------------------------------------------------------------------------------- fibers

enum Meeting {
    SYNC, SHFL, SHFL_UP, SHFL_DOWN, SHFL_XOR, BALLOT, ANY, ALL, MATCH_ANY,
    REDUCE_ADD, REDUCE_MIN, REDUCE_MAX, REDUCE_UMIN, REDUCE_UMAX, REDUCE_AND, REDUCE_OR, REDUCE_XOR,
};
static const char* const NAMES[] = {
    "__syncwarp", "__shfl_sync", "__shfl_up_sync", "__shfl_down_sync", "__shfl_xor_sync", "__ballot_sync",
    "__any_sync", "__all_sync", "__match_any_sync", "__reduce_add_sync", "__reduce_min_sync",
    "__reduce_max_sync", "__reduce_min_sync", "__reduce_max_sync", "__reduce_and_sync", "__reduce_or_sync",
    "__reduce_xor_sync",
};

namespace {

constexpr int MOST_THREADS = 1024;
constexpr size_t STACK = 256 << 10;

#if defined(__x86_64__)
using Context = void*;
#else
using Context = ucontext_t;
#endif

struct Fiber {
    Context context;
    uint3 index;
};

// What a thread waits for: its kind, a meeting of a warp or -1 - kind of a barrier, its width and line.
struct Wait {
    int kind, width, line;
    unsigned mask;
    bool operator==(const Wait& other) const { return memcmp(this, &other, sizeof other) == 0; }
};

struct Warp {
    unsigned alive, runnable, meeting;  // bits of lanes
    Wait waits[32];
    u64 values[32];
    int arguments[32];
    const char* files[32];
};

Fiber fibers[MOST_THREADS];
Warp warps[MOST_THREADS / 32];
char* stacks = nullptr;
int n_threads, n_warps, current;
Context launcher;
void (*entry)(void**);
void** arguments;
char* dynamic = nullptr;  // shared memory that a launch asks for, between guards
size_t dynamic_size = 0;
enum { FORWARD, BACKWARD, RANDOM } order;
constexpr int STAYS = 64;  // times that a warp may go on before another does, in a random order
u64 state;  // of random numbers

sigjmp_buf failure;
volatile sig_atomic_t in_kernel = 0;
char report[1024];

u64 random_number() {
    state ^= state << 13, state ^= state >> 7, state ^= state << 17;
    return state;
}

int pick(unsigned bits) {
    if (order == FORWARD) return __builtin_ctz(bits);
    if (order == BACKWARD) return 31 - __builtin_clz(bits);
    int skip = random_number() % __builtin_popcount(bits);
    while (skip--) bits &= bits - 1;
    return __builtin_ctz(bits);
}

[[noreturn]] void fail(const char* format, ...) {
    va_list list;
    va_start(list, format);
    vsnprintf(report, sizeof report, format, list);
    va_end(list);
    siglongjmp(failure, 1);
}

}  // namespace

extern "C" {
const uint3* emulator_thread;
uint3 emulator_block;
uint3 emulator_block_shape, emulator_grid_shape;
void* emulator_dynamic;
}

#if defined(__x86_64__)
// Keep what a function must keep on the stack, go to another stack, and take there what was kept.
extern "C" void emulator_switch(void** from, void* to);
asm(R"(
    .text
    .globl emulator_switch
    .type emulator_switch, @function
emulator_switch:
    pushq %rbp
    pushq %rbx
    pushq %r12
    pushq %r13
    pushq %r14
    pushq %r15
    movq %rsp, (%rdi)
    movq %rsi, %rsp
    popq %r15
    popq %r14
    popq %r13
    popq %r12
    popq %rbx
    popq %rbp
    ret
    .size emulator_switch, .-emulator_switch
)");
static void change(Context& from, Context& to) { emulator_switch(&from, to); }
#else
static void change(Context& from, Context& to) { swapcontext(&from, &to); }
#endif

namespace {

void run_thread();

void prepare(int thread) {
    // not all at the same place of their pages: caches would hold few of them
    char* top = stacks + (size_t)(thread + 1) * STACK - (size_t)thread * 13 * 64 % (64 << 10);
#if defined(__x86_64__)
    // as after a call: the address of a function on a stack that is 8 off a multiple of 16
    void** sp = (void**)(top - 16);
    *--sp = nullptr;
    *--sp = (void*)run_thread;
    for (int i = 0; i < 6; ++i) *--sp = nullptr;
    fibers[thread].context = sp;
#else
    Context& context = fibers[thread].context;
    getcontext(&context);
    context.uc_stack.ss_sp = top - STACK + PAGE;
    context.uc_stack.ss_size = STACK - PAGE;
    context.uc_link = nullptr;
    makecontext(&context, run_thread, 0);
#endif
}

template <typename Combine>
void reduce(Warp& warp, unsigned group, Combine combine) {
    u64 together = warp.values[__builtin_ctz(group)];
    for (unsigned rest = group & (group - 1); rest; rest &= rest - 1)
        together = combine(together, warp.values[__builtin_ctz(rest)]);
    for (unsigned rest = group; rest; rest &= rest - 1) warp.values[__builtin_ctz(rest)] = together;
}

template <typename From>
void shuffle(Warp& warp, unsigned group, int width, From from) {
    u64 values[32];
    memcpy(values, warp.values, sizeof values);
    for (int lane = 0; lane < 32; ++lane) {
        if (!(group >> lane & 1)) continue;
        const int first = lane & -width, source = from(lane, first, first + width - 1, warp.arguments[lane]);
        // a lane that takes no part has nothing to give
        warp.values[lane] = group >> source & 1 ? values[source] : 0xfff7dead'fff7deadULL;
    }
}

void meet(Warp& warp, unsigned group) {
    const Wait& wait = warp.waits[__builtin_ctz(group)];
    const int width = wait.width;
    switch (wait.kind) {
        case SHFL:
            shuffle(warp, group, width, [=](int, int first, int, int by) { return first | (by & (width - 1)); });
            break;
        case SHFL_UP:
            shuffle(warp, group, width, [](int lane, int first, int, int by) {
                return (unsigned)by > (unsigned)(lane - first) ? lane : lane - by;
            });
            break;
        case SHFL_DOWN:
            shuffle(warp, group, width, [](int lane, int, int last, int by) {
                return (unsigned)by > (unsigned)(last - lane) ? lane : lane + by;
            });
            break;
        case SHFL_XOR:
            shuffle(warp, group, width, [](int lane, int, int last, int by) {
                return (unsigned)(lane ^ by) > (unsigned)last ? lane : lane ^ by;
            });
            break;
        case BALLOT: {
            u64 bits = 0;
            for (unsigned rest = group; rest; rest &= rest - 1)
                bits |= warp.values[__builtin_ctz(rest)] << __builtin_ctz(rest);
            for (unsigned rest = group; rest; rest &= rest - 1) warp.values[__builtin_ctz(rest)] = bits;
            break;
        }
        case MATCH_ANY: {
            u64 values[32];
            memcpy(values, warp.values, sizeof values);
            for (unsigned rest = group; rest; rest &= rest - 1) {
                u64& same = warp.values[__builtin_ctz(rest)] = 0;
                for (unsigned other = group; other; other &= other - 1)
                    if (values[__builtin_ctz(other)] == values[__builtin_ctz(rest)]) same |= other & -other;
            }
            break;
        }
        case ANY: case REDUCE_OR: reduce(warp, group, [](u64 a, u64 b) { return a | b; }); break;
        case ALL: case REDUCE_AND: reduce(warp, group, [](u64 a, u64 b) { return a & b; }); break;
        case REDUCE_XOR: reduce(warp, group, [](u64 a, u64 b) { return a ^ b; }); break;
        case REDUCE_ADD: reduce(warp, group, [](u64 a, u64 b) -> u64 { return (unsigned)(a + b); }); break;
        case REDUCE_MIN: reduce(warp, group, [](u64 a, u64 b) { return (int)b < (int)a ? b : a; }); break;
        case REDUCE_MAX: reduce(warp, group, [](u64 a, u64 b) { return (int)b > (int)a ? b : a; }); break;
        case REDUCE_UMIN: reduce(warp, group, [](u64 a, u64 b) { return b < a ? b : a; }); break;
        case REDUCE_UMAX: reduce(warp, group, [](u64 a, u64 b) { return b > a ? b : a; }); break;
    }
    warp.meeting &= ~group;
    warp.runnable |= group;
}

// Let lanes that have met go on. Lanes that are done are not waited for.
bool resolve(Warp& warp) {
    unsigned rest = warp.meeting;
    while (rest) {
        const Wait& one = warp.waits[__builtin_ctz(rest)];
        const unsigned group = one.mask & warp.alive;
        rest &= ~group;
        if ((group & warp.meeting) != group) continue;
        bool same = true;
        for (unsigned others = group; others; others &= others - 1)
            same = same && warp.waits[__builtin_ctz(others)] == one;
        if (same) meet(warp, group);
    }
    return warp.runnable;
}

void tell_who_waits(const char* what) {
    char text[900] = "";
    size_t used = 0;
    bool told[MOST_THREADS] = {};
    for (int i = 0; i < n_threads && used < sizeof text - 200; ++i) {
        const Warp& warp = warps[i / 32];
        if (!(warp.alive >> (i % 32) & 1) || told[i]) continue;
        const Wait& one = warp.waits[i % 32];
        int count = 0;
        for (int j = i; j < n_threads; ++j)
            if ((warps[j / 32].alive >> (j % 32) & 1) && warps[j / 32].waits[j % 32] == one)
                told[j] = true, ++count;
        used += snprintf(text + used, sizeof text - used, "%s%d from thread %d on at %s (%s:%d", used ? ", " : "",
                         count, i, one.kind < 0 ? "__syncthreads" : NAMES[one.kind], warp.files[i % 32], one.line);
        used += one.kind < 0 ? snprintf(text + used, sizeof text - used, ")")
                             : snprintf(text + used, sizeof text - used, ", mask %08x)", one.mask);
    }
    fail("%s: %s", what, text);
}

// No thread of the block can go on: all must be at one barrier.
void resolve_barrier() {
    const Wait* one = nullptr;
    u64 some = 0, all = 1, count = 0;
    for (int i = 0; i < n_threads; ++i) {
        const Warp& warp = warps[i / 32];
        if (!(warp.alive >> (i % 32) & 1)) continue;
        const Wait& wait = warp.waits[i % 32];
        if (one == nullptr) one = &wait;
        if (wait.kind >= 0) tell_who_waits("threads wait for others that do not come");
        if (!(wait == *one)) tell_who_waits("threads of a block are at different barriers");
        some |= warp.values[i % 32], all &= warp.values[i % 32], count += warp.values[i % 32];
    }
    const u64 value = one->kind == -2 ? some : one->kind == -3 ? all : count;
    for (int i = 0; i < n_threads; ++i) warps[i / 32].values[i % 32] = value;
    for (int w = 0; w < n_warps; ++w) warps[w].runnable = warps[w].alive;
}

// Which thread goes on: of this warp, else of the next that can. In a random order other warps come in between.
int next_thread(int warp) {
    const bool stays = order != RANDOM || n_warps == 1 || random_number() % STAYS;
    if (stays && (warps[warp].runnable || (warps[warp].meeting && resolve(warps[warp]))))
        return 32 * warp + pick(warps[warp].runnable);
    for (;;) {
        int start = warp + 1, step = 1;
        if (order == BACKWARD) start = warp - 1 + n_warps, step = -1;
        if (order == RANDOM) start = random_number() % n_warps;
        bool alive = false;
        for (int i = 0; i < n_warps; ++i) {
            const int w = (start + step * i + n_warps) % n_warps;
            alive = alive || warps[w].alive;
            if (warps[w].runnable || (warps[w].meeting && resolve(warps[w])))
                return 32 * w + pick(warps[w].runnable);
        }
        if (!alive) return -1;
        resolve_barrier();
    }
}

void go_on() {
    const int before = current, after = next_thread(before / 32);
    if (after == before) return;
    current = after;
    Context& from = fibers[before].context;
    if (after < 0) change(from, launcher);
    emulator_thread = &fibers[after].index;
    change(from, fibers[after].context);
}

void run_thread() {
    entry(arguments);
    Warp& warp = warps[current / 32];
    const unsigned bit = 1u << (current % 32);
    warp.alive &= ~bit, warp.runnable &= ~bit;
    go_on();
    abort();
}

}  // namespace

extern "C" u64 emulator_meet(
    int kind, unsigned mask, u64 value, int argument, int width, const char* file, int line) {
    Warp& warp = warps[current / 32];
    const int lane = current % 32;
    const unsigned bit = 1u << lane;
    if (!(mask & bit))
        fail("%s:%d: %s of lane %d with a mask without it (%08x)", file, line, NAMES[kind], lane, mask);
    if (width < 1 || width > 32 || (width & (width - 1)))
        fail("%s:%d: %s of a width that is no power of two up to 32 (%d)", file, line, NAMES[kind], width);
    warp.waits[lane] = {kind, width, line, mask};
    warp.values[lane] = value, warp.arguments[lane] = argument, warp.files[lane] = file;
    warp.runnable &= ~bit, warp.meeting |= bit;
    go_on();
    return warp.values[lane];
}

extern "C" int emulator_barrier(int kind, int value, const char* file, int line) {
    Warp& warp = warps[current / 32];
    const int lane = current % 32;
    warp.waits[lane] = {-1 - kind, 0, line, 0};
    warp.values[lane] = value, warp.files[lane] = file;
    warp.runnable &= ~(1u << lane);
    go_on();
    return (int)warp.values[lane];
}

// ---------------------------------------------------------------------------------------- faults

namespace {

constexpr int TOO_LONG = 40;  // a signal that nobody else uses

void where_am_i(char* out, size_t size) {
    const uint3 t = fibers[current < 0 ? 0 : current].index, b = emulator_block;
    snprintf(out, size, "block (%u, %u, %u), thread (%u, %u, %u)", b.x, b.y, b.z, t.x, t.y, t.z);
}

u64 fault_offset = 0;  // of the instruction in its library, 0 where that is not known

void find_instruction(void* context) {
    const mcontext_t& machine = ((ucontext_t*)context)->uc_mcontext;
#if defined(__x86_64__)
    char* const instruction = (char*)machine.gregs[REG_RIP];
#elif defined(__aarch64__)
    char* const instruction = (char*)machine.pc;
#else
    char* const instruction = nullptr;
#endif
    Dl_info library;
    fault_offset = dladdr(instruction, &library) ? instruction - (char*)library.dli_fbase : 0;
}

void on_signal(int number, siginfo_t* info, void* context) {
    if (!in_kernel) {
        if (number == TOO_LONG) return;
        signal(number, SIG_DFL);
        raise(number);
        return;
    }
    find_instruction(context);
    char here[128], place[256];
    where_am_i(here, sizeof here);
    if (number == SIGSEGV || number == SIGBUS) {
        const char* stack = stacks;
        const char* address = (const char*)info->si_addr;
        if (address >= stack && address < stack + STACK * MOST_THREADS)
            fail("%s: its stack is full", here);
        if (address >= dynamic && address < dynamic + dynamic_size + 2 * PAGE)
            fail("%s: access outside of the shared memory that the launch asks for", here);
        place_in(place, sizeof place, (uintptr_t)address);
        fail("%s: access %s", here, place);
    }
    if (number == TOO_LONG) fail("%s: the kernel has run longer than SKTS_EMULATOR_TIMEOUT allows", here);
    fail("%s: %s", here, number == SIGFPE ? "integer division by zero" : "illegal instruction");
}

// What -fsanitize calls; all of its data begin with a place in the source.
struct Source {
    const char* file;
    unsigned line, column;
};
[[noreturn]] void undefined(const Source* source, const char* what) {
    char here[128];
    where_am_i(here, sizeof here);
    fail("%s:%u: %s; %s", source->file, source->line, what, here);
}

}  // namespace

#define UNDEFINED(name, what)                                                                   \
    extern "C" void __ubsan_handle_##name(const Source* source) { undefined(source, what); }    \
    extern "C" void __ubsan_handle_##name##_abort(const Source* source) { undefined(source, what); }
UNDEFINED(out_of_bounds, "index beyond the array")
UNDEFINED(add_overflow, "an integer sum overflows")
UNDEFINED(sub_overflow, "an integer difference overflows")
UNDEFINED(mul_overflow, "an integer product overflows")
UNDEFINED(negate_overflow, "an integer negation overflows")
UNDEFINED(divrem_overflow, "integer division by zero, or overflow")
UNDEFINED(shift_out_of_bounds, "shift by too many bits")
UNDEFINED(float_cast_overflow, "a floating-point number is beyond the integer that it becomes")
UNDEFINED(type_mismatch_v1, "access through a pointer that is null or not aligned")
UNDEFINED(pointer_overflow, "a pointer overflows")
UNDEFINED(load_invalid_value, "a bool or enum holds no value of its type")
UNDEFINED(vla_bound_not_positive, "an array of no length")

// ---------------------------------------------------------------------------------------- launch

struct Launch {
    void (*run)(void**);
    void** arguments;
    unsigned grid[3], block[3];
    size_t dynamic;
    char *shared_begin, *shared_end;
    int order;  // 0 forward, 1 backward, else a seed
    double seconds;
    char* message;
    size_t message_size;
    u64 instruction;  // written: where in the library of the kernel it failed, if that is known
};

// Run a kernel; 0, or 1 with a message.
extern "C" int emulator_launch(Launch* launch) {
    if (stacks == nullptr) {
        stacks = (char*)mmap(nullptr, STACK * MOST_THREADS, PROT_READ | PROT_WRITE,
                             MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
        for (int i = 0; i < MOST_THREADS; ++i) mprotect(stacks + i * STACK, PAGE, PROT_NONE);
    }
    static char alternate[64 << 10];
    stack_t stack = {}, stack_before;
    stack.ss_sp = alternate, stack.ss_size = sizeof alternate;
    sigaltstack(&stack, &stack_before);
    const int signals[] = {SIGSEGV, SIGBUS, SIGFPE, SIGILL, TOO_LONG};
    struct sigaction action = {}, before[5];
    action.sa_sigaction = on_signal;
    action.sa_flags = SA_SIGINFO | SA_ONSTACK;
    for (int i = 0; i < 5; ++i) sigaction(signals[i], &action, &before[i]);
    timer_t timer;
    bool timed = false;
    if (launch->seconds > 0) {
        struct sigevent event = {};
        event.sigev_notify = SIGEV_THREAD_ID;
        event.sigev_signo = TOO_LONG;
        event._sigev_un._tid = (pid_t)syscall(SYS_gettid);
        timed = timer_create(CLOCK_MONOTONIC, &event, &timer) == 0;
        struct itimerspec limit = {};
        limit.it_value.tv_sec = (time_t)launch->seconds;
        limit.it_value.tv_nsec = (long)((launch->seconds - (double)limit.it_value.tv_sec) * 1e9);
        if (timed) timer_settime(timer, 0, &limit, nullptr);
    }
    const size_t inner = up(launch->dynamic ? launch->dynamic : 1, PAGE);
    if (dynamic_size != inner) {
        if (dynamic) munmap(dynamic, dynamic_size + 2 * PAGE);
        dynamic = (char*)mmap(nullptr, inner + 2 * PAGE, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
        mprotect(dynamic + PAGE, inner, PROT_READ | PROT_WRITE);
        dynamic_size = inner;
    }
    emulator_dynamic = dynamic + PAGE + inner - up(launch->dynamic, 16);

    n_threads = launch->block[0] * launch->block[1] * launch->block[2];
    n_warps = (n_threads + 31) / 32;
    emulator_block_shape = {launch->block[0], launch->block[1], launch->block[2]};
    emulator_grid_shape = {launch->grid[0], launch->grid[1], launch->grid[2]};
    order = launch->order == 0 ? FORWARD : launch->order == 1 ? BACKWARD : RANDOM;
    state = 0x9e3779b97f4a7c15ULL * (launch->order + 1);
    entry = launch->run, arguments = launch->arguments;
    for (int i = 0; i < n_threads; ++i) {
        const unsigned x = launch->block[0], y = launch->block[1];
        fibers[i].index = {i % x, i / x % y, i / x / y};
    }
    volatile int failed = 0;
    fault_offset = 0;
    if (sigsetjmp(failure, 1) == 0) {
        in_kernel = 1;
        const u64 n_blocks = (u64)launch->grid[0] * launch->grid[1] * launch->grid[2];
        for (u64 i = 0; i < n_blocks; ++i) {
            const u64 b = order == BACKWARD ? n_blocks - 1 - i : i;
            emulator_block.x = (unsigned)(b % launch->grid[0]);
            emulator_block.y = (unsigned)(b / launch->grid[0] % launch->grid[1]);
            emulator_block.z = (unsigned)(b / launch->grid[0] / launch->grid[1]);
            for (char* place = launch->shared_begin; place < launch->shared_end; ++place) *place = (char)CANARY;
            memset(dynamic + PAGE, CANARY, inner);
            for (int w = 0; w < n_warps; ++w) {
                const int lanes = n_threads - 32 * w;
                const unsigned all = lanes >= 32 ? ~0u : (1u << lanes) - 1;
                warps[w].alive = warps[w].runnable = all, warps[w].meeting = 0;
            }
            for (int t = 0; t < n_threads; ++t) prepare(t);
            const int first = order == BACKWARD ? n_warps - 1 : order == RANDOM ? random_number() % n_warps : 0;
            current = 32 * first + pick(warps[first].runnable);
            emulator_thread = &fibers[current].index;
            change(launcher, fibers[current].context);
        }
    } else {
        failed = 1;
    }
    in_kernel = 0;
    if (timed) timer_delete(timer);
    for (int i = 0; i < 5; ++i) sigaction(signals[i], &before[i], nullptr);
    sigaltstack(&stack_before, nullptr);
    if (failed) {
        snprintf(launch->message, launch->message_size, "%s", report);
        launch->instruction = fault_offset;
        return 1;
    }
    return emulator_check(launch->message, launch->message_size);
}
