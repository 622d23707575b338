// What CUDA C++ has beyond C++, for g++: the sources of `skts/engines/cupy/kernels` compile behind this
// header, unchanged but for dynamic shared memory. A thread of a block is a fiber of `machine.cpp`; all
// that fibers do together goes through `emulator_meet` and `emulator_barrier`.
#pragma once
#include <limits.h>
#include <math.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <type_traits>
#include <utility>

#define __global__ __attribute__((used))
#define __device__
#define __host__
#define __forceinline__ inline
#define __noinline__ __attribute__((noinline))
#define __launch_bounds__(...)
#define __align__(n) __attribute__((aligned(n)))
#define __grid_constant__
// blocks run one after the other: static memory is as good, and lies in .bss, which is poisoned before each
#define __shared__ static

// vectors, aligned as CUDA has them
#define EMULATOR_VECTORS(type, name, one, two, four)                                            \
    struct name##1 { type x; };                                                                 \
    struct alignas(two) name##2 { type x, y; };                                                 \
    struct name##3 { type x, y, z; };                                                           \
    struct alignas(four) name##4 { type x, y, z, w; };                                          \
    inline name##1 make_##name##1(type x) { return {x}; }                                       \
    inline name##2 make_##name##2(type x, type y) { return {x, y}; }                            \
    inline name##3 make_##name##3(type x, type y, type z) { return {x, y, z}; }                 \
    inline name##4 make_##name##4(type x, type y, type z, type w) { return {x, y, z, w}; }
EMULATOR_VECTORS(signed char, char, 1, 2, 4)
EMULATOR_VECTORS(unsigned char, uchar, 1, 2, 4)
EMULATOR_VECTORS(short, short, 2, 4, 8)
EMULATOR_VECTORS(unsigned short, ushort, 2, 4, 8)
EMULATOR_VECTORS(int, int, 4, 8, 16)
EMULATOR_VECTORS(unsigned, uint, 4, 8, 16)
EMULATOR_VECTORS(long long, longlong, 8, 16, 16)
EMULATOR_VECTORS(unsigned long long, ulonglong, 8, 16, 16)
EMULATOR_VECTORS(float, float, 4, 8, 16)
EMULATOR_VECTORS(double, double, 8, 16, 16)

struct dim3 {
    unsigned x, y, z;
};

// kinds of what the lanes of a warp do together; as in machine.cpp
enum EmulatorMeeting {
    EMULATOR_SYNC,
    EMULATOR_SHFL,
    EMULATOR_SHFL_UP,
    EMULATOR_SHFL_DOWN,
    EMULATOR_SHFL_XOR,
    EMULATOR_BALLOT,
    EMULATOR_ANY,
    EMULATOR_ALL,
    EMULATOR_MATCH_ANY,
    EMULATOR_REDUCE_ADD,
    EMULATOR_REDUCE_MIN,
    EMULATOR_REDUCE_MAX,
    EMULATOR_REDUCE_UMIN,
    EMULATOR_REDUCE_UMAX,
    EMULATOR_REDUCE_AND,
    EMULATOR_REDUCE_OR,
    EMULATOR_REDUCE_XOR,
};

extern "C" {
__attribute__((visibility("default"))) extern const uint3* emulator_thread;
__attribute__((visibility("default"))) extern uint3 emulator_block;
__attribute__((visibility("default"))) extern dim3 emulator_block_shape, emulator_grid_shape;
__attribute__((visibility("default"))) extern void* emulator_dynamic;
__attribute__((visibility("default"))) unsigned long long emulator_meet(
    int kind, unsigned mask, unsigned long long value, int argument, int width, const char* file, int line);
__attribute__((visibility("default"))) int emulator_barrier(int kind, int value, const char* file, int line);
}
#define threadIdx (*emulator_thread)
#define blockIdx emulator_block
#define blockDim emulator_block_shape
#define gridDim emulator_grid_shape
constexpr int warpSize = 32;

#define EMULATOR_HERE const char *file = __builtin_FILE(), int line = __builtin_LINE()

inline void __syncthreads(EMULATOR_HERE) { emulator_barrier(0, 0, file, line); }
inline int __syncthreads_or(int value, EMULATOR_HERE) { return emulator_barrier(1, value != 0, file, line); }
inline int __syncthreads_and(int value, EMULATOR_HERE) { return emulator_barrier(2, value != 0, file, line); }
inline int __syncthreads_count(int value, EMULATOR_HERE) { return emulator_barrier(3, value != 0, file, line); }
inline void __syncwarp(unsigned mask = 0xffffffffu, EMULATOR_HERE) {
    emulator_meet(EMULATOR_SYNC, mask, 0, 0, 32, file, line);
}
inline void __threadfence() {}
inline void __threadfence_block() {}

template <typename T>
inline unsigned long long emulator_pack(T value) {
    static_assert(sizeof(T) <= 8, "a shuffle moves 8 bytes at most");
    unsigned long long packed = 0;
    memcpy(&packed, &value, sizeof(T));
    return packed;
}
template <typename T>
inline T emulator_unpack(unsigned long long packed) {
    T value;
    memcpy(&value, &packed, sizeof(T));
    return value;
}

#define EMULATOR_SHUFFLE(name, kind, type)                                                      \
    template <typename T>                                                                       \
    inline T name(unsigned mask, T value, type argument, int width = 32, EMULATOR_HERE) {       \
        static_assert(std::is_arithmetic_v<T>, "no shuffle of this type");                      \
        return emulator_unpack<T>(                                                              \
            emulator_meet(kind, mask, emulator_pack(value), argument, width, file, line));      \
    }
EMULATOR_SHUFFLE(__shfl_sync, EMULATOR_SHFL, int)
EMULATOR_SHUFFLE(__shfl_up_sync, EMULATOR_SHFL_UP, unsigned)
EMULATOR_SHUFFLE(__shfl_down_sync, EMULATOR_SHFL_DOWN, unsigned)
EMULATOR_SHUFFLE(__shfl_xor_sync, EMULATOR_SHFL_XOR, int)

inline unsigned __ballot_sync(unsigned mask, int value, EMULATOR_HERE) {
    return emulator_meet(EMULATOR_BALLOT, mask, value != 0, 0, 32, file, line);
}
inline int __any_sync(unsigned mask, int value, EMULATOR_HERE) {
    return emulator_meet(EMULATOR_ANY, mask, value != 0, 0, 32, file, line);
}
inline int __all_sync(unsigned mask, int value, EMULATOR_HERE) {
    return emulator_meet(EMULATOR_ALL, mask, value != 0, 0, 32, file, line);
}
template <typename T>
inline unsigned __match_any_sync(unsigned mask, T value, EMULATOR_HERE) {
    return emulator_meet(EMULATOR_MATCH_ANY, mask, emulator_pack(value), 0, 32, file, line);
}
#define EMULATOR_REDUCE(name, kind, type)                                                       \
    inline type name(unsigned mask, type value, EMULATOR_HERE) {                                \
        return (type)emulator_meet(kind, mask, emulator_pack(value), 0, 32, file, line);        \
    }
EMULATOR_REDUCE(__reduce_add_sync, EMULATOR_REDUCE_ADD, int)
EMULATOR_REDUCE(__reduce_add_sync, EMULATOR_REDUCE_ADD, unsigned)
EMULATOR_REDUCE(__reduce_min_sync, EMULATOR_REDUCE_MIN, int)
EMULATOR_REDUCE(__reduce_min_sync, EMULATOR_REDUCE_UMIN, unsigned)
EMULATOR_REDUCE(__reduce_max_sync, EMULATOR_REDUCE_MAX, int)
EMULATOR_REDUCE(__reduce_max_sync, EMULATOR_REDUCE_UMAX, unsigned)
EMULATOR_REDUCE(__reduce_and_sync, EMULATOR_REDUCE_AND, unsigned)
EMULATOR_REDUCE(__reduce_or_sync, EMULATOR_REDUCE_OR, unsigned)
EMULATOR_REDUCE(__reduce_xor_sync, EMULATOR_REDUCE_XOR, unsigned)

// atomics: nothing comes between
#define EMULATOR_ATOMIC(name, expression)                                                       \
    template <typename T>                                                                       \
    inline T name(T* place, std::common_type_t<T> value) {                                      \
        const T before = *place;                                                                \
        *place = expression;                                                                    \
        return before;                                                                          \
    }
EMULATOR_ATOMIC(atomicAdd, before + value)
EMULATOR_ATOMIC(atomicSub, before - value)
EMULATOR_ATOMIC(atomicMin, value < before ? value : before)
EMULATOR_ATOMIC(atomicMax, value > before ? value : before)
EMULATOR_ATOMIC(atomicAnd, before & value)
EMULATOR_ATOMIC(atomicOr, before | value)
EMULATOR_ATOMIC(atomicXor, before ^ value)
EMULATOR_ATOMIC(atomicExch, value)
template <typename T>
inline T atomicCAS(T* place, std::common_type_t<T> expected, std::common_type_t<T> value) {
    const T before = *place;
    if (before == expected) *place = value;
    return before;
}

// loads and stores with hints
template <typename T> inline T __ldg(const T* place) { return *place; }
template <typename T> inline T __ldcg(const T* place) { return *place; }
template <typename T> inline T __ldca(const T* place) { return *place; }
template <typename T> inline T __ldcs(const T* place) { return *place; }
template <typename T> inline void __stcg(T* place, std::common_type_t<T> value) { *place = value; }
template <typename T> inline void __stcs(T* place, std::common_type_t<T> value) { *place = value; }

// bits
inline int __popc(unsigned x) { return __builtin_popcount(x); }
inline int __popcll(unsigned long long x) { return __builtin_popcountll(x); }
inline int __ffs(int x) { return __builtin_ffs(x); }
inline int __ffsll(long long x) { return __builtin_ffsll(x); }
inline int __clz(int x) { return x ? __builtin_clz(x) : 32; }
inline int __clzll(long long x) { return x ? __builtin_clzll(x) : 64; }
inline unsigned __brev(unsigned x) {
    unsigned out = 0;
    for (int i = 0; i < 32; ++i) out |= (x >> i & 1) << (31 - i);
    return out;
}
template <typename To, typename From>
inline To emulator_bits(From value) {
    static_assert(sizeof(To) == sizeof(From), "bits of another size");
    To out;
    memcpy(&out, &value, sizeof(To));
    return out;
}
inline float __int_as_float(int x) { return emulator_bits<float>(x); }
inline int __float_as_int(float x) { return emulator_bits<int>(x); }
inline float __uint_as_float(unsigned x) { return emulator_bits<float>(x); }
inline unsigned __float_as_uint(float x) { return emulator_bits<unsigned>(x); }
inline double __longlong_as_double(long long x) { return emulator_bits<double>(x); }
inline long long __double_as_longlong(double x) { return emulator_bits<long long>(x); }
inline int __double2hiint(double x) { return (int)(emulator_bits<unsigned long long>(x) >> 32); }
inline int __double2loint(double x) { return (int)emulator_bits<unsigned long long>(x); }
inline double __hiloint2double(int high, int low) {
    return emulator_bits<double>((unsigned long long)(unsigned)high << 32 | (unsigned)low);
}

// arithmetic that is never contracted: the compiler does not see that a product comes out of the asm
#if defined(__x86_64__)
#define EMULATOR_OPAQUE(x) asm("" : "+x"(x))
#elif defined(__aarch64__)
#define EMULATOR_OPAQUE(x) asm("" : "+w"(x))
#else
#define EMULATOR_OPAQUE(x) asm("" : "+m"(x))
#endif
#define EMULATOR_ROUNDED(name, type, expression)                                                \
    inline type name(type a, type b) {                                                          \
        type out = expression;                                                                  \
        EMULATOR_OPAQUE(out);                                                                   \
        return out;                                                                             \
    }
EMULATOR_ROUNDED(__dadd_rn, double, a + b)
EMULATOR_ROUNDED(__dsub_rn, double, a - b)
EMULATOR_ROUNDED(__dmul_rn, double, a * b)
EMULATOR_ROUNDED(__ddiv_rn, double, a / b)
EMULATOR_ROUNDED(__fadd_rn, float, a + b)
EMULATOR_ROUNDED(__fsub_rn, float, a - b)
EMULATOR_ROUNDED(__fmul_rn, float, a * b)
EMULATOR_ROUNDED(__fdiv_rn, float, a / b)
inline double __dsqrt_rn(double x) { return __builtin_sqrt(x); }
inline float __fsqrt_rn(float x) { return __builtin_sqrtf(x); }
inline double __fma_rn(double a, double b, double c) { return __builtin_fma(a, b, c); }
inline float __fmaf_rn(float a, float b, float c) { return __builtin_fmaf(a, b, c); }
// not a number becomes 0
inline float __saturatef(float x) { return x > 0.0f ? (x < 1.0f ? x : 1.0f) : 0.0f; }
inline float __fdividef(float a, float b) { return a / b; }
inline float rsqrtf(float x) { return 1.0f / __builtin_sqrtf(x); }
inline double rsqrt(double x) { return 1.0 / __builtin_sqrt(x); }
inline float __double2float_rn(double x) { return (float)x; }
inline float __double2float_ru(double x) {
    const float near = (float)x;
    return (double)near < x ? nextafterf(near, INFINITY) : near;
}
inline float __double2float_rd(double x) {
    const float near = (float)x;
    return (double)near > x ? nextafterf(near, -INFINITY) : near;
}
inline float __ll2float_ru(long long x) {
    const float near = (float)x;
    return (__int128)near < x ? nextafterf(near, INFINITY) : near;
}
inline long long __double2ll_rn(double x) { return llrint(x); }
inline int __double2int_rn(double x) { return (int)lrint(x); }
inline int __float2int_rn(float x) { return (int)lrintf(x); }

// of a number and NaN these take the number; here, since those of the library are calls
template <typename T>
inline T emulator_min(T a, T b) { return b != b ? a : a < b ? a : b; }
template <typename T>
inline T emulator_max(T a, T b) { return b != b ? a : a > b ? a : b; }
template <typename A, typename B>
inline std::common_type_t<A, B> min(A a, B b) {
    return emulator_min<std::common_type_t<A, B>>(a, b);
}
template <typename A, typename B>
inline std::common_type_t<A, B> max(A a, B b) {
    return emulator_max<std::common_type_t<A, B>>(a, b);
}
#define fminf(a, b) emulator_min<float>(a, b)
#define fmaxf(a, b) emulator_max<float>(a, b)
#define fmin(a, b) min(a, b)
#define fmax(a, b) max(a, b)
using std::fma;
using std::ilogb;
using std::scalbn;
using std::llrint;

// How a kernel is called, and what its parameters are, four numbers each: size, letter, and letter and size
// of what it points to. Letters: P pointer, F floating point, I integer, S anything else.
template <typename T>
constexpr char emulator_letter() {
    return std::is_pointer_v<T> ? 'P' : std::is_floating_point_v<T> ? 'F' : std::is_integral_v<T> ? 'I' : 'S';
}
template <typename T, bool POINTER = std::is_pointer_v<T>>
struct EmulatorTarget {
    static constexpr int letter = '-', size = 0;
};
template <typename T>
struct EmulatorTarget<T, true> {
    using Target = std::remove_cv_t<std::remove_pointer_t<T>>;
    static constexpr int letter = emulator_letter<Target>();
    static constexpr int size = sizeof(std::conditional_t<std::is_void_v<Target>, char, Target>);
};
template <typename... A>
struct EmulatorCall {
    template <void (*KERNEL)(A...), size_t... I>
    static void run(void** arguments, std::index_sequence<I...>) {
        KERNEL(*(std::remove_cv_t<A>*)arguments[I]...);
    }
};
template <auto KERNEL>
struct EmulatorKernel;
template <typename... A, void (*KERNEL)(A...)>
struct EmulatorKernel<KERNEL> {
    static void run(void** arguments) {
        EmulatorCall<A...>::template run<KERNEL>(arguments, std::index_sequence_for<A...>());
    }
};
template <typename R, typename... A>
inline int emulator_describe(R (*)(A...), int* out) {
    int i = 0;
    ((out[i++] = sizeof(A), out[i++] = emulator_letter<A>(),
      out[i++] = EmulatorTarget<std::remove_cv_t<A>>::letter, out[i++] = EmulatorTarget<std::remove_cv_t<A>>::size),
     ...);
    return sizeof...(A);
}
#define EMULATOR_KERNEL(number, ...)                                                            \
    extern "C" __attribute__((visibility("default"))) void emulator_run_##number(void** args) { \
        EmulatorKernel<&__VA_ARGS__>::run(args);                                                \
    }                                                                                           \
    extern "C" __attribute__((visibility("default"))) int emulator_about_##number(int* out) {   \
        return emulator_describe(&__VA_ARGS__, out);                                            \
    }
extern "C" char __bss_start __attribute__((visibility("hidden")));
extern "C" char _end __attribute__((visibility("hidden")));
#define EMULATOR_SHARED()                                                                       \
    extern "C" __attribute__((visibility("default"))) char* emulator_shared_begin() { return &__bss_start; } \
    extern "C" __attribute__((visibility("default"))) char* emulator_shared_end() { return &_end; }
