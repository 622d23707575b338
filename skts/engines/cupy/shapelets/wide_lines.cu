// Order lines of many series: what `scan` of order_lines.cu does for as many as a warp sorts, by whole blocks.
//
// There is no first look and no gap: what a line promises is the gain of its best cut, and where the order of several
// neighbours is open, what that may add. All that promise as much as is reached for certain go to the list.
#include "shapelets/order_lines.cuh"

constexpr int THREADS = 256;

// Largest value of a block, for all of its threads; `room` has a place for each warp.
template <typename T>
__device__ T block_largest(T value, T* room) {
#pragma unroll
    for (int other = 16; other > 0; other /= 2) value = max(value, __shfl_xor_sync(ALL, value, other));
    __syncthreads();
    if ((threadIdx.x & 31) == 0) room[threadIdx.x / 32] = value;
    __syncthreads();
    for (int warp = 0; warp < THREADS / 32; ++warp) value = max(value, room[warp]);
    return value;
}

// Judge candidates: one block, one candidate and way; block (i, k) has window i of the series of row k. Shared memory
// has the keys of the line, `padded` to a power of two, and the numbers of classes of each thread, which owns as many
// neighbours as the others.
//
// heads[k, i, member] are scores of one length; all else is as in `scan`.
extern "C" __global__ void __launch_bounds__(THREADS) scan_wide(
    const Scores* __restrict__ of_length, const int* __restrict__ heads, int padded, int n_series,
    const int* __restrict__ rows, const int* __restrict__ sizes, const int* __restrict__ owns,
    const int* __restrict__ members, const Judge* __restrict__ rules, const float* __restrict__ before,
    const unsigned char* __restrict__ settled, int n_ways, const int* __restrict__ ways, int channel,
    Reached* reached, Promise* __restrict__ list, int capacity
) {
    extern __shared__ int shared[];
    __shared__ long long room[THREADS / 32];
    __shared__ int ends[3][THREADS];  // runs of open neighbours of each thread: longest, first, last
    const Judge judge = *rules;
    const Scores scores = *of_length;
    unsigned* const keys = (unsigned*)shared;
    unsigned short* const left = (unsigned short*)(shared + padded);
    const int n = judge.n_members, n_classes = judge.n_classes, thread = threadIdx.x, i = blockIdx.x;
    const int row = rows[blockIdx.y], own = owns[blockIdx.y];
    if (i > sizes[blockIdx.y] - scores.length) return;
    const int* __restrict__ const mine = heads + ((long long)blockIdx.y * gridDim.x + i) * n;
    int worst = 0, special = 0;
    for (int k = thread; k < n; k += THREADS) {
        worst = max(worst, scores.errors[(long long)row * n_series + members[k]]);
        special |= scores.kinds[members[k]] != 2;
    }
    worst = (int)block_largest<long long>(worst, room);
    special = (int)block_largest<long long>(special, room);
    const long long candidate = (long long)row * scores.n_windows + i;
    const bool is_constant = scores.constant[candidate], plain = !special && !is_constant;
    const float error = error_of(scores, worst, row, candidate);
    Doubt doubt = {error, sqrtf(error), 0};
    const int share = (n + THREADS - 1) / THREADS, begin = thread * share, stop = min(n, begin + share);

    for (int way = 0; way < n_ways; ++way) {
        // distances, with their sign as the mark of those that are exact
        bool changed = ways[way] == 0;
        int most = 0;
        for (int k = thread; k < n; k += THREADS) {
            bool sure;
            const float distance = joined_distance(
                mine[k], scores.kinds[members[k]], k == own, plain, is_constant, doubt, ways[way], before, settled, k,
                sure, changed
            );
            keys[k] = (unsigned)__float_as_int(distance) | (sure ? 0x80000000u : 0u);
            most = max(most, __float_as_int(distance));
        }
        if (!block_largest<long long>(changed, room)) continue;
        doubt.unit = fmaxf(__int_as_float((int)block_largest<long long>(most, room)), 1e-30f) * 0x1p-22f;
        for (int k = thread; k < padded; k += THREADS) {
            const unsigned bits = k < n ? keys[k] : 0;
            keys[k] = k < n ? key_of(__int_as_float(bits & 0x7fffffff), bits >> 31, judge.labels[k], doubt) : 0xffffffffu;
        }
        for (int size = 2; size <= padded; size *= 2)
            for (int apart = size / 2; apart > 0; apart /= 2) {
                __syncthreads();
                for (int pair = thread; pair < padded / 2; pair += THREADS) {
                    const int low = 2 * pair - (pair & (apart - 1)), high = low + apart;
                    const unsigned a = keys[low], b = keys[high];
                    const bool down = low & size;
                    if ((a > b) != down) keys[low] = b, keys[high] = a;
                }
            }
        // numbers of classes of this thread, then of those before: each warp adds up some classes
        for (int c = 0; c < n_classes; ++c) left[c * THREADS + thread] = 0;
        __syncthreads();
        for (int k = begin; k < stop; ++k) ++left[(keys[k] & 511) * THREADS + thread];
        __syncthreads();
        for (int c = thread / 32; c < n_classes; c += THREADS / 32) {
            int ahead = 0;
            for (int at = thread & 31; at < THREADS; at += 32) {
                const int here = left[c * THREADS + at], sums = scan_sum(here, thread & 31);
                left[c * THREADS + at] = (unsigned short)(ahead + sums - here);
                ahead += __shfl_sync(ALL, sums, 31);
            }
        }
        __syncthreads();
        // the best gain, that of a cut that is there for certain, and that of all, allowed or not
        const long long none = -1 - judge.margin;
        long long each = 0, best = none, certain = none, any = none;
        for (int c = 0; c < n_classes; ++c) each += judge.terms[(long long)c * (n + 1) + left[c * THREADS + thread]];
        auto change = [&](unsigned key) {
            const int label = key & 511;
            const long long* term = judge.terms + (long long)label * (n + 1) + left[label * THREADS + thread];
            return term[1] - term[0];
        };
        const int alone = judge.base ? 1 : 0;
        int longest = 0, first_run = 0, run = 0;
        bool broken = false;
        for (int k = begin; k < min(stop, n - 1); ++k) {
            const unsigned key = keys[k], next = keys[k + 1];
            const long long all_before = each;
            each += change(key);
            ++left[(key & 511) * THREADS + thread];
            const int relative = relation(key, next, doubt);
            const bool open = relative == OPEN, differ = (key ^ next) & 511;
            if (relative != APART) {
                run = add_runs(run, pair_of(relative, differ));
                longest = max(longest, doubtful_pairs(run, alone));
            } else {
                if (!broken) first_run = run;
                broken = true;
                run = 0;
            }
            if (k + 1 < judge.leaf || n - 1 - k < judge.leaf) continue;
            bool allowed = relative != EQUAL;
            long long base;
            if (judge.base) {
                base = judge.base[k + 1];
            } else {
                allowed = weigh(judge, left + thread, THREADS, base) && allowed;
                base = judge.whole - base;
            }
            any = max(any, base + each);
            if (!allowed) continue;
            if (judge.base && open && differ) best = max(best, base + all_before + change(next));
            best = max(best, base + each);
            if (!open) certain = max(certain, base + each);
        }
        ends[0][thread] = longest, ends[1][thread] = broken ? first_run : -1, ends[2][thread] = run;
        best = block_largest(best, room);
        certain = block_largest(certain, room);
        any = block_largest(any, room);
        if (thread == 0) {
            // runs that go on in the next threads
            int tail = 0;
            for (int at = 0; at < THREADS; ++at) {
                const bool whole = ends[1][at] < 0;
                longest = max(longest, ends[0][at]);
                longest = max(longest, doubtful_pairs(add_runs(tail, ends[whole ? 2 : 1][at]), alone));
                tail = whole ? add_runs(tail, ends[2][at]) : ends[2][at];
            }
            if (longest) best = max(any, 0LL) + (long long)(judge.unit * gain_of_changes(judge, longest)) + 4096;
            // gains of the host are compared with other ones
            if (longest || !judge.base) best += judge.margin;
            if (best >= 0 && best >= *(volatile long long*)&reached->gain) {
                if (judge.base && certain >= 0) atomicMax(&reached->gain, certain);
                const int place = atomicAdd(&reached->count, 1);
                const Promise found = {best, endless(), -endless(), own, i, scores.length, channel << 2 | way};
                if (place < capacity) list[place] = found;
            }
        }
        __syncthreads();
    }
}
