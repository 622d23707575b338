// The walk of MK: pairs of windows in the order of a reference that no reference can rule out, and their
// distances. `order` holds windows in ascending order of their distance to reference 0; `gaps`, of shape
// (n_references, n_ordered), the distances to all references in that order, scaled.
#include "include/constants.cuh"
#include "profile/certified.cuh"

// Collect pairs of positions p and p + offset whose bounds do not exceed the limit.
//
// One thread has one position and a run of offsets; neighbouring threads have neighbouring positions, so
// that reads coalesce. A warp or a block is nothing more. The gap in the order grows with the offset: at
// the first that is too large the thread is done. No shared memory. `count` is raised by any thread;
// pairs beyond `capacity` are counted and not written.
extern "C" __global__ void __launch_bounds__(256) bound(
    const long long* __restrict__ order, const float* __restrict__ gaps, int n_ordered, int n_references,
    int row, int row_stop, int first, int stop, int run, const double* __restrict__ best, double slope,
    double shift, long long exclusion, long long best_first, long long best_second, int capacity,
    unsigned long long* count, int2* pairs
) {
    const int p = row + blockIdx.x * blockDim.x + threadIdx.x;
    if (p >= row_stop) return;
    const double distance = *best;
    const float limit = (float)(slope * distance + shift);
    const int begin = first + blockIdx.y * run;
    const int end = min(min(begin + run, stop), n_ordered - p);
    const float mine = gaps[p];
    for (int offset = begin; offset < end; ++offset) {
        const int q = p + offset;
        if (gaps[q] - mine > limit) break;
        bool near = true;
        const float* other = gaps;
        for (int reference = 1; near && reference < n_references; ++reference) {
            other += n_ordered;
            near = fabsf(other[q] - other[p]) <= limit;
        }
        if (!near) continue;
        const long long i = min(order[p], order[q]), j = max(order[p], order[q]);
        if (j - i <= exclusion) continue;
        // where pairs at distance 0 are known, only one that comes before them counts
        if (distance == 0 && (i > best_first || (i == best_first && j >= best_second))) continue;
        const unsigned long long place = atomicAdd(count, 1ULL);
        if (place < capacity) pairs[place] = make_int2((int)i, (int)j);
    }
}

// Certified distances of pairs; infinite for those that are farther apart than the best one.
//
// One thread has one pair and adds in the order of time, without fused multiply-add: the bits of the other
// engines. It looks every 16 points at the best distance of all, which any thread may lower.
extern "C" __global__ void __launch_bounds__(128) measure(
    const double* __restrict__ points, const double* __restrict__ mean, const double* __restrict__ inverse,
    int length, int normalize, const int2* __restrict__ pairs, int n_pairs, double* best, double* out
) {
    const int pair = blockIdx.x * blockDim.x + threadIdx.x;
    if (pair >= n_pairs) return;
    const int i = pairs[pair].x, j = pairs[pair].y;
    const Line line{points, mean, inverse};
    const Window a(line, i, normalize), b(line, j, normalize);
    double total = 0;
    int t = 0;
    while (t < length) {
        const int stop = min(t + 16, length);
        for (; t < stop; ++t) total = add_certified(total, a, b, t);
        const double known = *(volatile double*)best;
        // squares lose less than this by rounding, so that what is left out is farther apart
        // see "mk squares" in docs/developer/numerics.rst
        if (total > known * known * (1 + 1e-12) + LOST_SQUARES) {
            out[pair] = Arithmetic<double>::infinity();
            return;
        }
    }
    const double distance = __dsqrt_rn(total);
    out[pair] = distance;
    lower(best, distance);
}
