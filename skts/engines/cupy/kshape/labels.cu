// k-Shape on the GPU, about series: their distances to centres where transforms are long, the nearest
// centre, and their order by cluster. correlate.cu has the other distances, centers.cu the centres.
#include "include/arithmetic.cuh"
#include "include/constants.cuh"
#include "include/warp.cuh"
#include "kshape/ties.cuh"

// longest: distance and shift of a pair of series from their correlations with one centre, for
// transforms too long for correlate.cu. One block a pair; `n` complex values each, not divided by n.
// Writes column `center` of distances and shifts, as `correlate` does. Shared memory: 2 values and 2
// keys a warp.
extern "C" __global__ void longest(
    const double2* __restrict__ correlations, int n, int length, long long first_series,
    long long n_series, const double* __restrict__ norms, const double* __restrict__ center_norms,
    const double* __restrict__ doubts, int center, int n_centers, double* __restrict__ distances, int* __restrict__ shifts) {
    __shared__ double tops[2][32];
    __shared__ long long keys[2][32];
    const double2* values = correlations + (long long)blockIdx.x * n;
    double top[2] = {-Arithmetic<double>::infinity(), -Arithmetic<double>::infinity()}, scale[2];
    for (int i = threadIdx.x; i < n; i += blockDim.x)
        if (i < length || i > n - length) {
            top[0] = fmax(top[0], values[i].x);
            top[1] = fmax(top[1], values[i].y);
        }
    for (int which = 0; which < 2; ++which) {
        top[which] = warp_largest(top[which]);
        if (threadIdx.x % 32 == 0) tops[which][threadIdx.x / 32] = top[which];
    }
    __syncthreads();
    for (int which = 0; which < 2; ++which) {
        for (int warp = 0; warp < blockDim.x / 32; ++warp)
            top[which] = fmax(top[which], tops[which][warp]);
        const long long series = first_series + 2 * blockIdx.x + which;
        scale[which] = series < n_series ? n * (norms[series] * center_norms[center]) : 0.0;
    }
    const Ties ties[2] = {{top[0], doubts[center], scale[0]}, {top[1], doubts[center], scale[1]}};
    long long key[2] = {4LL * n, 4LL * n};
    for (int i = threadIdx.x; i < n; i += blockDim.x)
        if (i < length || i > n - length) {
            const long long rank = rank_of_shift<long long>(i, length, n);
            key[0] = ties[0].least(key[0], values[i].x, rank);
            key[1] = ties[1].least(key[1], values[i].y, rank);
        }
    for (int which = 0; which < 2; ++which) {
        key[which] = warp_least(key[which]);
        if (threadIdx.x % 32 == 0) keys[which][threadIdx.x / 32] = key[which];
    }
    __syncthreads();
    if (threadIdx.x < 2) {
        const int which = threadIdx.x;
        const long long series = first_series + 2 * blockIdx.x + which;
        if (series >= n_series) return;
        long long best = keys[which][0];
        for (int warp = 1; warp < blockDim.x / 32; ++warp) best = min(best, keys[which][warp]);
        const long long at = series * n_centers + center;
        write_pair(top[which], scale[which], best, distances + at, shifts + at);
    }
}

// nearest: the centre of each series, of those within TIE of the least distance the first; the shift
// is UNCLEAR where errors of the distances, at most doubts[centre], could change that, which
// *n_unclear counts. One thread a series.
extern "C" __global__ void nearest(
    const double* __restrict__ distances, const int* __restrict__ shifts,
    const double* __restrict__ doubts, long long n_series, int n_centers, int* __restrict__ labels, int* __restrict__ label_shifts,
    double* __restrict__ label_distances, int* __restrict__ n_unclear) {
    const long long i = (long long)blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= n_series) return;
    const double* row = distances + i * n_centers;
    double high = Arithmetic<double>::infinity(), low = high;
    for (int j = 0; j < n_centers; ++j) {
        high = fmin(high, row[j] + doubts[j]);
        low = fmin(low, row[j] - doubts[j]);
    }
    int label = 0;
    while (!(row[label] - doubts[label] <= high + TIE)) ++label;
    const bool clear = row[label] + doubts[label] <= low + TIE;
    labels[i] = label;
    const int shift = clear ? shifts[i * n_centers + label] : UNCLEAR;
    if (shift == UNCLEAR) atomicAdd(n_unclear, 1);
    label_shifts[i] = shift;
    label_distances[i] = row[label];
}

// --- counting sort of the series by label: in the order of their numbers within each cluster --------

// Copies the labels of the block's series to shared memory; returns how many there are.
__device__ __forceinline__ int take_labels(
    const int* __restrict__ labels, long long n_series, int* mine) {
    const long long first = (long long)blockIdx.x * SORTED_SERIES;
    const int size = (int)min((long long)SORTED_SERIES, n_series - first);
    for (int i = threadIdx.x; i < size; i += blockDim.x) mine[i] = labels[first + i];
    __syncthreads();
    return size;
}

// count: counts[label][block], how many of the block's series have the label; labels and shifts are
// copied to where the next steps find them, unless that is null.
// One block: SORTED_SERIES series, 256 threads. One warp: every eighth label. Shared memory: labels.
extern "C" __global__ void count(
    const int* __restrict__ labels, const int* __restrict__ shifts, long long n_series, int n_clusters,
    int* __restrict__ counts, int* __restrict__ kept_labels, int* __restrict__ kept_shifts) {
    __shared__ int mine[SORTED_SERIES];
    const int size = take_labels(labels, n_series, mine), lane = threadIdx.x % 32;
    const long long first = (long long)blockIdx.x * SORTED_SERIES;
    if (kept_labels)
        for (int i = threadIdx.x; i < size; i += blockDim.x) {
            kept_labels[first + i] = mine[i];
            kept_shifts[first + i] = shifts[first + i];
        }
    for (int label = threadIdx.x / 32; label < n_clusters; label += blockDim.x / 32) {
        int found = 0;
        for (int i = lane; i < size; i += 32) found += mine[i] == label;
        found = warp_sum(found);
        if (lane == 0) counts[(long long)label * gridDim.x + blockIdx.x] = found;
    }
}

// bounds: ends[label][block], the running sums of counts[label][block]; and where each of n_clusters,
// from `first` on, starts in the order, and its first chunk; all of them are active.
// One block of SORTED_SERIES threads. One thread: a run of the counts; a cluster; one adds up the
// chunks. Shared memory: sums of the runs.
extern "C" __global__ void __launch_bounds__(SORTED_SERIES) bounds(
    const int* __restrict__ counts, long long n_counts, long long blocks, int first, int n_clusters,
    int chunk, long long* __restrict__ ends, long long* __restrict__ starts,
    int* __restrict__ chunk_starts, unsigned char* __restrict__ active) {
    __shared__ long long sums[SORTED_SERIES / 32];
    const int t = threadIdx.x, lane = t % 32;
    const long long each = (n_counts + SORTED_SERIES - 1) / SORTED_SERIES;
    const long long begin = min(t * each, n_counts), end = min(begin + each, n_counts);
    long long run = 0;
    for (long long i = begin; i < end; ++i) run += counts[i];
    long long before = scan_sum(run, lane);
    if (lane == 31) sums[t / 32] = before;
    __syncthreads();
    before -= run;
    for (int warp = 0; warp < t / 32; ++warp) before += sums[warp];
    for (long long i = begin; i < end; ++i) ends[i] = before += counts[i];
    __syncthreads();
    for (int cluster = t; cluster <= n_clusters; cluster += SORTED_SERIES) {
        starts[cluster] = first + cluster ? ends[(first + cluster) * blocks - 1] : 0;
        if (cluster < n_clusters) active[cluster] = 1;
    }
    __syncthreads();
    if (t) return;
    int chunks = 0;
    for (int cluster = 0; cluster < n_clusters; ++cluster) {
        chunk_starts[cluster] = chunks;
        chunks += (int)((starts[cluster + 1] - starts[cluster] + chunk - 1) / chunk);
    }
    chunk_starts[n_clusters] = chunks;
}

// scatter: order[ends[label][block] - count + rank] = series.
// One block and shared memory as for `count`, SORTED_SERIES threads. One thread: a series.
extern "C" __global__ void __launch_bounds__(SORTED_SERIES) scatter(
    const int* __restrict__ labels, long long n_series, const int* __restrict__ counts,
    const long long* __restrict__ ends, int* __restrict__ order) {
    __shared__ __align__(16) int mine[SORTED_SERIES];
    const int size = take_labels(labels, n_series, mine), i = threadIdx.x;
    if (i >= size) return;
    const int label = mine[i];
    int rank = 0;
    // four at a time
    const int4* fours = reinterpret_cast<const int4*>(mine);
#pragma unroll 4
    for (int four = 0; four < i / 4; ++four) {
        const int4 others = fours[four];
        rank += (others.x == label) + (others.y == label) + (others.z == label) + (others.w == label);
    }
    for (int before = i / 4 * 4; before < i; ++before) rank += mine[before] == label;
    const long long place = (long long)label * gridDim.x + blockIdx.x;
    order[ends[place] - counts[place] + rank] = blockIdx.x * SORTED_SERIES + i;
}
