// Order lines of many series: what `scan` of order_lines.cu does for as many as a warp sorts, by whole blocks.
//
// There is no first look and no gap: the bound of a candidate is the gain of its best cut, and where the order of several
// neighbours is open, what that may add. All that may gain as much as is reached for certain go to the list.
#include "shapelets/order_lines.cuh"

constexpr int THREADS = WIDE_THREADS;

// Largest value of a block, for all of its threads; `room` has a place for each warp.
template <typename T>
__device__ T block_largest(T value, T* room) {
    return fold_block(value, room, THREADS / 32, Larger());
}

// The line of a block: its keys in order, `padded` to a power of two, and for each thread the numbers of classes on the left
// of where it is. Thread t owns the neighbours that begin with keys `begin` to `stop` - 1.
struct BlockLine {
    unsigned* keys;
    unsigned short* left;
    int padded, begin, stop;

    __device__ __forceinline__ unsigned short& count(int label) const { return left[label * THREADS + threadIdx.x]; }
};

// Distances of a candidate from all members, joined with those before, as keys in any order: all threads. False where none
// can differ from those before.
__device__ __forceinline__ bool make_keys(
    const BlockLine& line, const Judge& judge, const Scores& scores, const Node& node, const int* __restrict__ mine, int own,
    bool plain, bool is_constant, ErrorBound& doubt, int way, long long* room
) {
    const int n = judge.n_members;
    // distances, with their sign as the mark of those that are exact
    bool changed = way == 0;
    int most = 0;
    for (int k = threadIdx.x; k < n; k += THREADS) {
        bool sure;
        const float distance = joined_distance(
            mine[k], scores.kinds[__ldg(node.members + k)], k == own, plain, is_constant, doubt, way, node.before,
            node.settled, k, sure, changed
        );
        line.keys[k] = (unsigned)__float_as_int(distance) | (sure ? 0x80000000u : 0u);
        most = max(most, __float_as_int(distance));
    }
    if (!block_largest<long long>(changed, room)) return false;
    doubt.set_unit(__int_as_float((int)block_largest<long long>(most, room)));
    for (int k = threadIdx.x; k < line.padded; k += THREADS) {
        const unsigned bits = k < n ? line.keys[k] : 0;
        line.keys[k] = k < n ? key_of(__int_as_float(bits & 0x7fffffff), bits >> 31, judge.labels[k], doubt) : NO_KEY;
    }
    return true;
}

// Sort the keys of a block, by a bitonic network: all threads.
__device__ __forceinline__ void sort_keys(const BlockLine& line) {
    unsigned* const keys = line.keys;
    for (int size = 2; size <= line.padded; size *= 2)
        for (int apart = size / 2; apart > 0; apart /= 2) {
            __syncthreads();
            for (int pair = threadIdx.x; pair < line.padded / 2; pair += THREADS) {
                const int low = 2 * pair - (pair & (apart - 1)), high = low + apart;
                const unsigned a = keys[low], b = keys[high];
                const bool down = low & size;
                if ((a > b) != down) keys[low] = b, keys[high] = a;
            }
        }
}

// Numbers of classes of each thread, then of those before: each warp adds up some classes.
__device__ __forceinline__ void count_before(const BlockLine& line, int n_classes) {
    const int thread = threadIdx.x;
    for (int c = 0; c < n_classes; ++c) line.count(c) = 0;
    __syncthreads();
    for (int k = line.begin; k < line.stop; ++k) ++line.count(label_of(line.keys[k]));
    __syncthreads();
    for (int c = thread / 32; c < n_classes; c += THREADS / 32) {
        int ahead = 0;
        for (int at = thread & 31; at < THREADS; at += 32) {
            const int here = line.left[c * THREADS + at], sums = scan_sum(here, thread & 31);
            line.left[c * THREADS + at] = (unsigned short)(ahead + sums - here);
            ahead += __shfl_sync(ALL, sums, 31);
        }
    }
    __syncthreads();
}

// The best gain, that of a cut that is there for certain, and that of all, allowed or not.
struct Gains {
    long long best, certain, any;
};

// The cuts of a thread: gains, and runs of neighbours whose order is open.
__device__ __forceinline__ void judge_cuts(
    const Judge& judge, const BlockLine& line, const ErrorBound& doubt, Gains& gains, Runs& runs
) {
    const int n = judge.n_members, alone = judge.base ? 1 : 0;
    auto change = [&](unsigned key) {
        const int label = label_of(key);
        const long long* term = judge.terms + (long long)label * (n + 1) + line.count(label);
        return term[1] - term[0];
    };
    long long each = 0;
    for (int c = 0; c < judge.n_classes; ++c) each += judge.terms[(long long)c * (n + 1) + line.count(c)];
    for (int k = line.begin; k < min(line.stop, n - 1); ++k) {
        const unsigned key = line.keys[k], next = line.keys[k + 1];
        const long long all_before = each;
        each += change(key);
        ++line.count(label_of(key));
        const int relative = relation(key, next, doubt);
        const bool open = relative == OPEN, differ = label_of(key) != label_of(next);
        runs.add(relative, differ, alone);
        if (k + 1 < judge.leaf || n - 1 - k < judge.leaf) continue;
        bool allowed = relative != EQUAL;
        long long base;
        if (judge.base) {
            base = judge.base[k + 1];
        } else {
            allowed = weigh(judge, line.left + threadIdx.x, THREADS, base) && allowed;
            base = judge.whole - base;
        }
        gains.any = max(gains.any, base + each);
        if (!allowed) continue;
        if (judge.base && open && differ) gains.best = max(gains.best, base + all_before + change(next));
        gains.best = max(gains.best, base + each);
        if (!open) gains.certain = max(gains.certain, base + each);
    }
}

// The most doubtful pairs of a run of the line, where runs go on in the next threads: one thread. `ends` has of each
// thread the longest of its own runs, its first, -1 if that is all it has, and its last.
__device__ __forceinline__ int longest_run(const int (&ends)[3][THREADS], int alone) {
    int longest = 0, tail = 0;
    for (int at = 0; at < THREADS; ++at) {
        const bool whole = ends[1][at] < 0;
        longest = max(longest, ends[0][at]);
        longest = max(longest, doubtful_pairs(add_runs(tail, ends[whole ? 2 : 1][at]), alone));
        tail = whole ? add_runs(tail, ends[2][at]) : ends[2][at];
    }
    return longest;
}

// Put a candidate on the list if its gain may reach what is reached for certain: one thread.
__device__ __forceinline__ void list_bound(
    const Judge& judge, const Gains& gains, int longest, CandidateBound found, const BoundList& bounds
) {
    found.gain = gains.best;
    if (longest)
        found.gain = max(gains.any, 0LL) + (long long)(judge.unit * gain_of_changes(judge, longest)) + 4096;
    // gains of the host are compared with other ones
    if (longest || !judge.base) found.gain += judge.margin;
    if (found.gain < 0 || found.gain < gain_reached(bounds)) return;
    append(found, judge.base && gains.certain >= 0, gains.certain, bounds);
}

// Judge candidates: one block, one candidate and way; block (i, k) has window i of the series of row k. Shared memory
// has the keys of the line, `padded` to a power of two, and the numbers of classes of each thread, which owns as many
// neighbours as the others.
//
// heads[k, i, member] are scores of one length; all else is as in `scan`.
extern "C" __global__ void __launch_bounds__(THREADS) scan_wide(
    const Scores* __restrict__ of_length, const int* __restrict__ heads, int padded, int n_series,
    const __grid_constant__ Rows candidates, const __grid_constant__ Node node, const __grid_constant__ BoundList bounds
) {
    extern __shared__ int shared[];
    __shared__ long long room[THREADS / 32];
    __shared__ int ends[3][THREADS];  // runs of open neighbours of each thread: longest, first, last
    const Judge judge = *node.rules;
    const Scores scores = *of_length;
    const int n = judge.n_members, thread = threadIdx.x, i = blockIdx.x;
    const int row = __ldg(candidates.rows + blockIdx.y), own = __ldg(candidates.owns + blockIdx.y);
    if (i > __ldg(candidates.sizes + blockIdx.y) - scores.length) return;
    const int* __restrict__ const mine = heads + ((long long)blockIdx.y * gridDim.x + i) * n;
    int worst = 0, special = 0;
    for (int k = thread; k < n; k += THREADS) {
        const int member = __ldg(node.members + k);
        worst = max(worst, scores.errors[(long long)row * n_series + member]);
        special |= scores.kinds[member] != 2;
    }
    worst = (int)block_largest<long long>(worst, room);
    special = (int)block_largest<long long>(special, room);
    const long long candidate = (long long)row * scores.n_windows + i;
    const bool is_constant = scores.constant[candidate], plain = !special && !is_constant;
    ErrorBound doubt = bound_errors(scores, worst, row, candidate);
    const int share = (n + THREADS - 1) / THREADS, begin = thread * share, stop = min(n, begin + share);
    const BlockLine line = {(unsigned*)shared, (unsigned short*)(shared + padded), padded, begin, stop};

    for (int way = 0; way < node.n_ways; ++way) {
        const int how = __ldg(node.ways + way);
        if (!make_keys(line, judge, scores, node, mine, own, plain, is_constant, doubt, how, room)) continue;
        sort_keys(line);
        count_before(line, judge.n_classes);
        const long long none = -1 - judge.margin;
        Gains gains = {none, none, none};
        Runs runs = {0, 0, 0, false};
        judge_cuts(judge, line, doubt, gains, runs);
        ends[0][thread] = runs.longest, ends[1][thread] = runs.broken ? runs.head : -1, ends[2][thread] = runs.run;
        gains.best = block_largest(gains.best, room);
        gains.certain = block_largest(gains.certain, room);
        gains.any = block_largest(gains.any, room);
        if (thread == 0) {
            const int longest = longest_run(ends, judge.base ? 1 : 0);
            const float beyond = Arithmetic<float>::infinity();
            const CandidateBound found = {0, beyond, -beyond, own, i, scores.length, node.channel << 2 | way};
            list_bound(judge, gains, longest, found, bounds);
        }
        __syncthreads();
    }
}
