// Order lines: what a cut of the distances of a candidate gains, and which candidates could be the best.
//
// `scan` sorts the rough distances of `shapelets.cu` and bounds gain and gap of the best cut; what could be
// the best goes to a list, which `weed` cuts down. `cuts` finds the best cut of certified distances.
#include "shapelets/order_lines.cuh"
#include "shapelets/scan.cuh"

// Judge candidates: one warp, one candidate and way. Block (x, row, length) has BESIDE consecutive starts of one series, whose
// scores it brings to shared memory together, beside the keys in order, the numbers of classes of each lane, and what
// entropies change by, which lanes read in no order.
//
// rows, sizes and owns say of every row to judge where it is in the block of candidates, how many points the series
// has, and which of the members it is; members which of the series they are. before: distances of the literals
// before; settled: those that are exactly 0 or 1.
//
// A first look at the line, in single precision, bounds what it gains; few lines need a second. Where the order of two
// neighbours is open, the cut between them is judged both ways; where that of more is, what a cut may gain beyond follows
// from how many series could change sides. It is one function: its steps are functions of `scan.cuh`, and share what a warp
// knows of its line.
template <int E>
__global__ void __launch_bounds__(WARPS * 32, E <= 2 ? 5 : E <= 8 ? 4 : E <= 16 ? 3 : 2) scan(
    const Scores* __restrict__ lengths, int n_block, int n_series, const __grid_constant__ Rows candidates,
    const __grid_constant__ Node node, const __grid_constant__ BoundList bounds
) {
    extern __shared__ int shared[];
    __shared__ int worst, special;
    __shared__ Judge judge;
    __shared__ Scores scores;
    bring(judge, node.rules);
    bring(scores, lengths + blockIdx.z);
    if (threadIdx.x == 0) worst = special = 0;
    __syncthreads();
    const int n = judge.n_members, n_classes = judge.n_classes, n_windows = scores.n_windows;
    int* const tile = shared;  // (n, BESIDE + 1)
    const int lane = threadIdx.x & 31, which = threadIdx.x / 32;
    int* const about = shared + n * (BESIDE<E> + 1);  // label and kind of each member
    float* const table = (float*)(about + n + WARPS * 32 * E) + WARPS * n_classes * 16;
    WarpLine<E> line;
    line.keys = (unsigned*)about + n + which * 32 * E;
    line.left = (unsigned short*)(about + n + WARPS * 32 * E) + which * n_classes * 32;
    line.lane = lane;
    const int row = __ldg(candidates.rows + blockIdx.y), own = __ldg(candidates.owns + blockIdx.y), start = blockIdx.x * BESIDE<E>;
    const int count = __ldg(candidates.sizes + blockIdx.y) - scores.length + 1;
    if (start >= count) return;
    load_candidates<E>(scores, judge, node.members, row, start, count, n_block, n_series, tile, about, worst, special);
    if (node.tabled && judge.base)
        for (int k = threadIdx.x; k < n * n_classes; k += WARPS * 32) table[k] = __ldg(judge.rough_changes + k);
    const float* const changes = node.tabled ? table : judge.rough_changes;
    __syncthreads();
    const float nats = (float)(1 / judge.unit);  // a power of two
    for (int i = start + which; i < min(start + BESIDE<E>, count); i += WARPS) {
        const long long candidate = (long long)row * n_windows + i;
        const bool is_constant = scores.constant[candidate], plain = !special && !is_constant;
        ErrorBound doubt = bound_errors(scores, worst, row, candidate);
        for (int way = 0; way < node.n_ways; ++way) {
            unsigned keys[E];
            float most;
            const int how = __ldg(node.ways + way);
            if (plain && how == 0) make_plain_keys<E>(keys, tile + (i - start), about, n, lane, own, doubt, most);
            else {
                const bool differs = make_keys<E>(
                    keys, tile + (i - start), about, n, lane, own, plain, is_constant, doubt, how, node.before, node.settled, most
                );
                if (!differs) continue;
            }
            lay_down<E>(keys, line, n);
            float top = -Arithmetic<float>::infinity();
            if (!may_be_best(judge, line, doubt, nats, bounds, changes, top)) continue;
            const long long each = entropies_before(judge, line);
            const float sum = sum_of_distances(line, doubt);
            const float sums = scan_sum(sum, lane), total = __shfl_sync(ALL, sums, 31);
            BestCut best = {-1 - judge.margin, -Arithmetic<float>::infinity(), -Arithmetic<float>::infinity()};
            Runs runs = {0, 0, 0, false};
            judge_cuts(judge, line, doubt, each, sums - sum, total, nats, top, best, runs);
            const int longest = longest_run(runs, lane, judge.base ? 1 : 0);
            best.agree();
            bool open_end = longest > 0;
            long long any = open_end ? gain_of_open_runs(judge, longest, top) : 0;
            if (open_end && judge.base && any >= __shfl_sync(ALL, gain_reached(bounds), 0)) {
                // worth a closer look: every run by itself
                line.rewind(n);
                Best open = {-1, -Arithmetic<float>::infinity()};
                open_end = !judge_runs<E>(judge, line.keys, line.left, lane, doubt, sums - sum, total, open);
                best.add(open.gain, open.gap, false);
                best.agree();
            }
            if (lane != 0) continue;
            const float beyond = Arithmetic<float>::infinity();
            CandidateBound found = {best.gain, beyond, -beyond, own, i, scores.length, node.channel << 2 | way};
            if (open_end) found.gain = any;
            else if (best.gain + judge.margin < 0) continue;
            else if (!judge.base) found.gain = best.gain + judge.margin;  // gains of the host are compared with other ones
            else if (most < LARGEST) {
                const float slack = slack_of_gaps<E>(judge, doubt, most);
                found.high = best.gap + slack, found.low = best.sure_gap - slack;
            }
            list_bound(found, bounds);
        }
    }
}

// Keep on the list what could still be the best: one block of 1,024 threads.
extern "C" __global__ void __launch_bounds__(1024) weed(
    Reached* reached, CandidateBound* list, int capacity
) {
    constexpr int ENTRIES = 4;  // of a thread at a time
    __shared__ int most, kept;
    const int lane = threadIdx.x & 31;
    const int count = min(reached->count, capacity);
    const long long gain = reached->gain;
    // gaps order as integers do once negative ones are turned over
    auto turned = [](float gap) {
        const int bits = __float_as_int(gap);
        return bits < 0 ? bits ^ 0x7fffffff : bits;
    };
    if (threadIdx.x == 0) {
        most = turned(gain == reached->settled ? reached->gap : -Arithmetic<float>::infinity());
        kept = 0;
    }
    __syncthreads();
    int mine = turned(-Arithmetic<float>::infinity());
#pragma unroll 4
    for (int k = threadIdx.x; k < count; k += blockDim.x)
        if (list[k].gain == gain) mine = max(mine, turned(list[k].low));
    atomicMax(&most, mine);
    __syncthreads();
    for (int base = 0; base < count; base += ENTRIES * blockDim.x) {
        CandidateBound here[ENTRIES];
        bool keep[ENTRIES];
#pragma unroll
        for (int u = 0; u < ENTRIES; ++u) {
            const int k = base + u * blockDim.x + threadIdx.x;
            keep[u] = false;
            if (k >= count) continue;
            here[u] = list[k];
            keep[u] = here[u].gain > gain || (here[u].gain == gain && turned(here[u].high) >= most);
        }
        // those that are kept go where others have been read; their order does not matter
        __syncthreads();
#pragma unroll
        for (int u = 0; u < ENTRIES; ++u) {
            const unsigned votes = __ballot_sync(ALL, keep[u]);
            int place = 0;
            if (lane == 0 && votes) place = atomicAdd(&kept, __popc(votes));
            place = __shfl_sync(ALL, place, 0) + lanes_before(votes, lane);
            if (keep[u]) list[place] = here[u];
        }
    }
    __syncthreads();
    if (threadIdx.x == 0) {
        reached->settled = gain;
        reached->gap = __int_as_float(most < 0 ? most ^ 0x7fffffff : most);
        reached->count = kept;
    }
}

// A number of the points of a candidate, and of its length and tag, one thread a candidate: equal ones have equal ones.
extern "C" __global__ void __launch_bounds__(128) digest(
    const long long* __restrict__ values, const long long* __restrict__ begins,
    const int* __restrict__ lengths, const int* __restrict__ tags, int n, unsigned long long* __restrict__ out
) {
    const int k = blockIdx.x * blockDim.x + threadIdx.x;
    if (k >= n) return;
    unsigned long long mixed = (unsigned long long)lengths[k] << 32 | (unsigned)tags[k];
    for (int t = 0; t < lengths[k]; ++t) {
        mixed = (mixed ^ (unsigned long long)values[begins[k] + t]) * 0x9e3779b97f4a7c15ULL;
        mixed ^= mixed >> 29;
    }
    out[k] = mixed;
}

// Whether candidate k is what candidate of[k] is, to the bit, one thread a candidate.
extern "C" __global__ void __launch_bounds__(128) compare(
    const long long* __restrict__ values, const long long* __restrict__ begins,
    const int* __restrict__ lengths, const int* __restrict__ tags, int n, const int* __restrict__ of,
    unsigned char* __restrict__ same
) {
    const int k = blockIdx.x * blockDim.x + threadIdx.x;
    if (k >= n) return;
    const int other = of[k];
    bool alike = lengths[k] == lengths[other] && tags[k] == tags[other];
    for (int t = 0; alike && t < lengths[k]; ++t) alike = values[begins[k] + t] == values[begins[other] + t];
    same[k] = alike;
}

// The best cut of certified distances: what it gains, and its gap.
struct CertifiedCut {
    long long gain;
    double gap;

    // none yet: any cut gains more, or as much; where weights differ, a gain below what those may be off by is none
    __device__ __forceinline__ explicit CertifiedCut(const Judge& judge)
        : gain(judge.base ? -1 : -1 - judge.margin), gap(-Arithmetic<double>::infinity()) {}
};

// The best of the cuts behind distances first to stop - 1, of n in ascending order, as `Criterion.best_cuts` finds them: one
// thread. `label_at` tells whose the distances are, `sums` are those of the first ones, `total` that of all; `left` counts the
// classes of the distances before, in counters that lie `apart` from each other, and goes on to count, `each` is what both
// sides have there; `floor` is 1 where distances are of normalised windows.
template <typename Label>
__device__ __forceinline__ CertifiedCut best_of_cuts(
    const Judge& judge, const double* ordered, const double* sums, double total, const Label& label_at, double floor, int first,
    int stop, int* left, int apart, long long each
) {
    const int n = judge.n_members;
    CertifiedCut best(judge);
    for (int k = first; k < stop; ++k) {
        const int label = label_at(k), there = left[apart * label]++;
        const long long* term = judge.terms + (long long)label * (n + 1) + there;
        each += term[1] - term[0];
        const int size = k + 1;
        const double behind = ordered[k + 1];
        if (!(__dsub_rn(behind, ordered[k]) > TOLERANCE * fmax(floor, behind))) continue;
        if (size < judge.leaf || n - size < judge.leaf) continue;
        long long both;
        if (!judge.base && !weigh(judge, left, apart, both)) continue;
        const long long gain = (judge.base ? judge.base[size] : judge.whole - both) + each;
        if (gain < best.gain) continue;
        const double right = __ddiv_rn(__dsub_rn(total, sums[k]), (double)(n - size));
        const double gap = __dsub_rn(right, __ddiv_rn(sums[k], (double)size));
        if (gain > best.gain || gap > best.gap) best.gain = gain, best.gap = gap;
    }
    return best;
}

// Sums of the first of n distances, in the one order: one thread; returns that of all.
__device__ __forceinline__ double add_up(const double* ordered, double* sums, int n) {
    double total = 0;
    for (int k = 0; k < n; ++k) sums[k] = total = __dadd_rn(total, ordered[k]);
    return total;
}

// The best cut of distances in ascending order: one thread. `left`, of n_classes, starts as 0, `sums` is scratch.
template <typename Label>
__device__ __forceinline__ CertifiedCut find_cut(
    const Judge& judge, const double* ordered, const Label& label_at, double floor, int* left, double* sums
) {
    const double total = add_up(ordered, sums, judge.n_members);
    return best_of_cuts(judge, ordered, sums, total, label_at, floor, 0, judge.n_members - 1, left, 1, 0);
}

// The best cuts of certified distances, one thread a candidate. `ordered` holds the distances of each candidate in ascending
// order, `order` whose they are; `normalized` tells which candidates have distances of normalised windows; `left`, of
// n_classes to a candidate, starts as 0; `sums` is scratch like `ordered`.
extern "C" __global__ void __launch_bounds__(64) cuts(
    const double* __restrict__ ordered, const long long* __restrict__ order,
    const unsigned char* __restrict__ normalized, int n_candidates, const Judge* __restrict__ rules, int* left, double* sums, long long* __restrict__ gains,
    double* __restrict__ gaps
) {
    const int candidate = blockIdx.x * blockDim.x + threadIdx.x;
    if (candidate >= n_candidates) return;
    const Judge judge = *rules;
    const long long begin = (long long)candidate * judge.n_members;
    auto label_at = [&](int k) { return judge.labels[order[begin + k]]; };
    const CertifiedCut best = find_cut(
        judge, ordered + begin, label_at, (double)normalized[candidate], left + (long long)candidate * judge.n_classes,
        sums + begin
    );
    gains[candidate] = best.gain, gaps[candidate] = best.gap;
}

// What `find_cut` finds, by a warp: each lane has neighbouring cuts. `left` has room for 32 counters of each class.
template <typename Label>
__device__ __forceinline__ CertifiedCut find_cut_together(
    const Judge& judge, const double* ordered, const Label& label_at, double floor, int lane, int* left, double* sums
) {
    const int n = judge.n_members, n_classes = judge.n_classes, some = (n + 31) / 32;
    const int first = min(n, lane * some), stop = min(n, first + some);
    double total = 0;
    if (lane == 0) total = add_up(ordered, sums, n);
    total = __shfl_sync(ALL, total, 0);
    int* const mine = left + lane;
    for (int c = 0; c < n_classes; ++c) mine[32 * c] = 0;
    for (int k = first; k < stop; ++k) ++mine[32 * label_at(k)];
    long long each = 0;
    for (int c = 0; c < n_classes; ++c) {
        const int here = mine[32 * c], before = scan_sum(here, lane) - here;
        mine[32 * c] = before;
        each += judge.terms[(long long)c * (n + 1) + before];
    }
    __syncwarp();
    CertifiedCut best = best_of_cuts(judge, ordered, sums, total, label_at, floor, first, min(stop, n - 1), mine, 32, each);
#pragma unroll
    for (int other = 16; other > 0; other /= 2) {
        const long long gain = __shfl_xor_sync(ALL, best.gain, other);
        const double gap = __shfl_xor_sync(ALL, best.gap, other);
        if (gain > best.gain || (gain == best.gain && gap > best.gap)) best.gain = gain, best.gap = gap;
    }
    return best;
}

// The same of distances in the order of the members: one block, one candidate, which sorts them in shared memory, of `padded`
// places, a power of two. There are so many distances, sums and labels, and counters: one for each class, or 32 where these
// are up to CUT_TOGETHER.
extern "C" __global__ void __launch_bounds__(SORTING_THREADS) sort_and_cut(
    const double* __restrict__ distances, const unsigned char* __restrict__ normalized, int padded,
    const Judge* __restrict__ rules, long long* __restrict__ gains, double* __restrict__ gaps
) {
    extern __shared__ double room[];
    __shared__ Judge judge;
    double *const ordered = room, *const sums = room + padded;
    int* const labels = (int*)(sums + padded);
    int* const left = labels + padded;
    bring(judge, rules);
    __syncthreads();
    const int n = judge.n_members;
    distances += (long long)blockIdx.x * n;
    for (int k = threadIdx.x; k < padded; k += SORTING_THREADS) {
        ordered[k] = k < n ? distances[k] : Arithmetic<double>::infinity();
        labels[k] = k < n ? judge.labels[k] : 0;
    }
    const bool together = judge.n_classes <= CUT_TOGETHER;
    if (!together)
        for (int c = threadIdx.x; c < judge.n_classes; c += SORTING_THREADS) left[c] = 0;
    for (int size = 2; size <= padded; size *= 2)
        for (int apart = size / 2; apart > 0; apart /= 2) {
            __syncthreads();
            for (int pair = threadIdx.x; pair < padded / 2; pair += SORTING_THREADS) {
                const int low = pair / apart * 2 * apart + pair % apart, high = low + apart;
                const double a = ordered[low], b = ordered[high];
                if (low & size ? a < b : a > b) {
                    const int label = labels[low];
                    ordered[low] = b, ordered[high] = a;
                    labels[low] = labels[high], labels[high] = label;
                }
            }
        }
    __syncthreads();
    if (threadIdx.x >= (together ? 32 : 1)) return;
    auto label_at = [&](int k) { return labels[k]; };
    const double floor = normalized[blockIdx.x];
    const CertifiedCut best = together ? find_cut_together(judge, ordered, label_at, floor, threadIdx.x, left, sums)
                                       : find_cut(judge, ordered, label_at, floor, left, sums);
    if (threadIdx.x == 0) gains[blockIdx.x] = best.gain, gaps[blockIdx.x] = best.gap;
}
