// k-Shape on the GPU but for its transforms: labels, members by cluster, centres.

#include "include/constants.cuh"
#include "include/warp.cuh"

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
    double top[2] = {-1e300, -1e300}, scale[2];
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
    const double doubt = 2 * doubts[center];
    double floor[2], clear[2];
    for (int which = 0; which < 2; ++which) {
        floor[which] = top[which] - (TIE + doubt) * scale[which];
        clear[which] = top[which] - (TIE - doubt) * scale[which];
    }
    long long key[2] = {4LL * n, 4LL * n};
    for (int i = threadIdx.x; i < n; i += blockDim.x)
        if (i < length || i > n - length) {
            const long long rank = i == 0 ? 0 : i < length ? 2LL * i - 1 : 2LL * (n - i);
            const double2 value = values[i];
            if (value.x >= floor[0]) key[0] = min(key[0], 2 * rank + (value.x < clear[0]));
            if (value.y >= floor[1]) key[1] = min(key[1], 2 * rank + (value.y < clear[1]));
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
        const long long place = best / 2, half = (place + 1) / 2;
        const bool none = scale[which] == 0;
        distances[series * n_centers + center] =
            none ? 1.0 : fmax(0.0, 1.0 - top[which] / scale[which]);
        shifts[series * n_centers + center] = none ? 0 : best % 2 ? UNCLEAR : (int)(place % 2 ? -half : half);
    }
}

// nearest: the centre of each series, of those within TIE of the least distance the first; the shift
// is UNCLEAR where errors of the distances, at most doubts[centre], could change that.
// One thread a series.
extern "C" __global__ void nearest(
    const double* __restrict__ distances, const int* __restrict__ shifts,
    const double* __restrict__ doubts, long long n_series, int n_centers, int* __restrict__ labels, int* __restrict__ label_shifts,
    double* __restrict__ label_distances) {
    const long long i = (long long)blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= n_series) return;
    const double* row = distances + i * n_centers;
    double high = row[0] + doubts[0], low = row[0] - doubts[0];
    for (int j = 1; j < n_centers; ++j) {
        high = fmin(high, row[j] + doubts[j]);
        low = fmin(low, row[j] - doubts[j]);
    }
    int label = 0;
    while (!(row[label] - doubts[label] <= high + TIE)) ++label;
    const bool clear = row[label] + doubts[label] <= low + TIE;
    labels[i] = label;
    label_shifts[i] = clear ? shifts[i * n_centers + label] : UNCLEAR;
    label_distances[i] = row[label];
}

// --- counting sort of the series by label: in the order of their numbers within each cluster --------

// Series of a block of the sort.
constexpr int SORTED = 1024;

// count: counts[label][block], how many of the block's series have the label.
// One block: SORTED series, 256 threads. Shared memory: their labels.
extern "C" __global__ void count(
    const int* __restrict__ labels, long long n_series, int n_clusters, int* __restrict__ counts) {
    __shared__ int mine[SORTED];
    const long long first = (long long)blockIdx.x * SORTED;
    const int size = (int)min((long long)SORTED, n_series - first);
    for (int i = threadIdx.x; i < size; i += blockDim.x) mine[i] = labels[first + i];
    __syncthreads();
    for (int label = threadIdx.x; label < n_clusters; label += blockDim.x) {
        int found = 0;
        for (int i = 0; i < size; ++i) found += mine[i] == label;
        counts[(long long)label * gridDim.x + blockIdx.x] = found;
    }
}

// scatter: order[ends[label][block] - count + rank] = series. `ends` holds the running sums of
// counts, in their order. One block and shared memory as above; one thread: four series.
extern "C" __global__ void scatter(
    const int* __restrict__ labels, long long n_series, const int* __restrict__ counts,
    const long long* __restrict__ ends, int* __restrict__ order) {
    __shared__ int mine[SORTED];
    const long long first = (long long)blockIdx.x * SORTED;
    const int size = (int)min((long long)SORTED, n_series - first);
    for (int i = threadIdx.x; i < size; i += blockDim.x) mine[i] = labels[first + i];
    __syncthreads();
    for (int i = threadIdx.x; i < size; i += blockDim.x) {
        int rank = 0;
        for (int before = 0; before < i; ++before) rank += mine[before] == mine[i];
        const long long place = (long long)mine[i] * gridDim.x + blockIdx.x;
        order[ends[place] - counts[place] + rank] = (int)(first + i);
    }
}

// bounds: where each of n_clusters, from `first` on, starts in the order, and its first chunk; all
// of them are active.
// One block; one thread adds up the chunks.
extern "C" __global__ void bounds(
    const long long* __restrict__ ends, long long blocks, int first, int n_clusters, int chunk,
    long long* __restrict__ starts, int* __restrict__ chunk_starts,
    unsigned char* __restrict__ active) {
    for (int cluster = threadIdx.x; cluster <= n_clusters; cluster += blockDim.x) {
        starts[cluster] = first + cluster ? ends[(first + cluster) * blocks - 1] : 0;
        if (cluster < n_clusters) active[cluster] = 1;
    }
    __syncthreads();
    if (threadIdx.x) return;
    int chunks = 0;
    for (int cluster = 0; cluster < n_clusters; ++cluster) {
        chunk_starts[cluster] = chunks;
        chunks += (int)((starts[cluster + 1] - starts[cluster] + chunk - 1) / chunk);
    }
    chunk_starts[n_clusters] = chunks;
}

// --- products with S = A' A, A the aligned members of a cluster ------------------------------------

// The cluster that block `block` of a run of chunks belongs to, chunk_starts[c] <= block.
__device__ __forceinline__ int cluster_of(const int* chunk_starts, int n_clusters, int block) {
    int low = 0, high = n_clusters;
    while (high - low > 1) {
        const int middle = (low + high) / 2;
        if (chunk_starts[middle] <= block) low = middle;
        else high = middle;
    }
    return low;
}

// gram: products of S with two vectors, or (SUM) the sum of the members, over one chunk of members.
// One block: `chunk` members of one cluster, T threads. One thread: K points (t, t + T, ...) of all of
// them, in registers, ROWS members at a time; a member is read once. vectors[cluster] holds two vectors
// of n_channels * length points, clusters lie `stride` apart. partial[block][2][points] is written.
// Nothing is done for clusters that are not `active`. Members count `weights` times, where that is
// not null. Shared memory: sums over warps.
constexpr int LISTED = 64;  // members whose numbers and shifts are fetched ahead

template <int K, int T, int ROWS, bool SUM>
__global__ void __launch_bounds__(T) gram(
    const double* __restrict__ values, const double* __restrict__ weights,
    const int* __restrict__ shifts, const int* __restrict__ order,
    const long long* __restrict__ starts, const int* __restrict__ chunk_starts,
    const unsigned char* __restrict__ active, int n_clusters, int chunk, int n_channels, int length,
    const double* __restrict__ vectors, long long stride, double* __restrict__ partial) {
    __shared__ double sums[2][ROWS * 2][T / 32];
    __shared__ int ids[LISTED], moves[LISTED];
    __shared__ double factors[LISTED];
    const int block = blockIdx.x, t = threadIdx.x, size = n_channels * length;
    if (block >= chunk_starts[n_clusters]) return;
    const int cluster = cluster_of(chunk_starts, n_clusters, block);
    if (!active[cluster]) return;
    const long long first = starts[cluster] + (long long)(block - chunk_starts[cluster]) * chunk;
    const long long stop = min(first + chunk, starts[cluster + 1]);
    const double* v = vectors + cluster * stride;
    int time[K];
    double total[2][K];
#pragma unroll
    for (int m = 0; m < K; ++m) {
        const int d = t + m * T;
        time[m] = d < size ? d % length : -(1 << 30);
        total[0][m] = total[1][m] = 0;
    }
    int turn = 0;
    for (long long row = first; row < stop; row += ROWS, turn ^= 1) {
        const int listed = (int)(row - first) % LISTED;
        if (listed == 0) {
            __syncthreads();
            for (int i = t; i < LISTED && row + i < stop; i += T) {
                ids[i] = order[row + i];
                moves[i] = shifts[ids[i]];
                factors[i] = weights ? weights[ids[i]] : 1.0;
            }
            __syncthreads();
        }
        double x[ROWS][K];
#pragma unroll
        for (int r = 0; r < ROWS; ++r) {
            const bool there = row + r < stop;
            const int member = there ? ids[listed + r] : 0, shift = there ? moves[listed + r] : 0;
            const double* source = values + (long long)member * size + t - shift;
#pragma unroll
            for (int m = 0; m < K; ++m) {
                const int from = time[m] - shift;
                x[r][m] = there && from >= 0 && from < length ? source[m * T] : 0.0;
            }
        }
        if constexpr (SUM) {
#pragma unroll
            for (int m = 0; m < K; ++m)
#pragma unroll
                for (int r = 0; r < ROWS; ++r)
                    if (row + r < stop) total[0][m] += factors[listed + r] * x[r][m];
        } else {
            double weight[ROWS * 2];
#pragma unroll
            for (int i = 0; i < ROWS * 2; ++i) weight[i] = 0;
#pragma unroll
            for (int m = 0; m < K; ++m) {
                const int d = t + m * T;
                const double a = d < size ? v[d] : 0.0, b = d < size ? v[size + d] : 0.0;
#pragma unroll
                for (int r = 0; r < ROWS; ++r) {
                    weight[2 * r] += x[r][m] * a;
                    weight[2 * r + 1] += x[r][m] * b;
                }
            }
#pragma unroll
            for (int i = 0; i < ROWS * 2; ++i) {
                weight[i] = warp_sum(weight[i]);
                if (T > 32 && t % 32 == 0) sums[turn][i][t / 32] = weight[i];
            }
            if (T > 32) {
                // two sets of sums take turns: one barrier a round is enough
                __syncthreads();
#pragma unroll
                for (int i = 0; i < ROWS * 2; ++i) {
                    weight[i] = 0;
#pragma unroll
                    for (int warp = 0; warp < T / 32; ++warp) weight[i] += sums[turn][i][warp];
                }
            }
            if (weights) {
#pragma unroll
                for (int i = 0; i < ROWS * 2; ++i)
                    if (row + i / 2 < stop) weight[i] *= factors[listed + i / 2] * factors[listed + i / 2];
            }
#pragma unroll
            for (int m = 0; m < K; ++m)
#pragma unroll
                for (int r = 0; r < ROWS; ++r) {
                    total[0][m] += weight[2 * r] * x[r][m];
                    total[1][m] += weight[2 * r + 1] * x[r][m];
                }
        }
    }
#pragma unroll
    for (int m = 0; m < K; ++m) {
        const int d = t + m * T;
        if (d < size) {
            partial[((long long)block * 2) * size + d] = total[0][m];
            if (!SUM) partial[((long long)block * 2 + 1) * size + d] = total[1][m];
        }
    }
}

// collect: out[cluster][i], the sum of partial[block][i] over the cluster's blocks; i < count.
// One block, dim3(32, LANES): 32 sums (grid x) of one cluster (grid y). One thread: every LANES-th
// of the cluster's blocks, in their order; the lanes are added in theirs. Shared memory: their sums.
constexpr int LANES = 16;

extern "C" __global__ void collect(
    const double* __restrict__ partial, const int* __restrict__ chunk_starts,
    const unsigned char* __restrict__ active, long long count, long long width,
    double* __restrict__ out) {
    __shared__ double sums[LANES][32];
    const long long i = (long long)blockIdx.x * 32 + threadIdx.x;
    const int cluster = blockIdx.y, lane = threadIdx.y;
    if (!active[cluster]) return;
    double sum = 0;
    if (i < count)
        for (int block = chunk_starts[cluster] + lane; block < chunk_starts[cluster + 1]; block += LANES)
            sum += partial[block * width + i];
    sums[lane][threadIdx.x] = sum;
    __syncthreads();
    if (lane || i >= count) return;
    for (int other = 1; other < LANES; ++other) sum += sums[other][threadIdx.x];
    out[cluster * width + i] = sum;
}

// --- one step of the block Lanczos iteration, all clusters at once -----------------------------------

constexpr int STEP_THREADS = 1024;

// Sum over the block; `scratch` holds a value a warp and is free again after the next barrier.
__device__ __forceinline__ double over_block(double value, double* scratch) {
    value = warp_sum(value);
    __syncthreads();
    if (threadIdx.x % 32 == 0) scratch[threadIdx.x / 32] = value;
    __syncthreads();
    value = 0;
    for (int warp = 0; warp < STEP_THREADS / 32; ++warp) value += scratch[warp];
    return value;
}

__device__ __forceinline__ double dot(const double* a, const double* b, int size, double* scratch) {
    double sum = 0;
    for (int d = threadIdx.x; d < size; d += STEP_THREADS) sum += a[d] * b[d];
    return over_block(sum, scratch);
}

// Subtracts from each channel of both vectors its mean: one warp a channel.
__device__ void center(double* pair, int n_channels, int length) {
    for (int part = threadIdx.x / 32; part < 2 * n_channels; part += STEP_THREADS / 32) {
        double* channel = pair + (long long)part * length;
        double sum = 0;
        for (int i = threadIdx.x % 32; i < length; i += 32) sum += channel[i];
        const double mean = warp_sum(sum) / length;
        for (int i = threadIdx.x % 32; i < length; i += 32) channel[i] -= mean;
    }
    __syncthreads();
}

// Takes from both vectors what they have of the basis; `shares`[2][known] gets how much that was.
__device__ void project(double* pair, const double* basis, int known, int size, double* shares) {
    const int lane = threadIdx.x % 32;
    for (int i = threadIdx.x / 32; i < known; i += STEP_THREADS / 32) {
        double a = 0, b = 0;
        for (int d = lane; d < size; d += 32) {
            const double v = basis[(long long)i * size + d];
            a += v * pair[d];
            b += v * pair[size + d];
        }
        a = warp_sum(a);
        b = warp_sum(b);
        if (lane == 0) {
            shares[i] = a;
            shares[known + i] = b;
        }
    }
    __syncthreads();
    for (int d = threadIdx.x; d < size; d += STEP_THREADS) {
        double a = pair[d], b = pair[size + d];
        for (int i = 0; i < known; ++i) {
            const double v = basis[(long long)i * size + d];
            a -= shares[i] * v;
            b -= shares[known + i] * v;
        }
        pair[d] = a;
        pair[size + d] = b;
    }
    __syncthreads();
}

// extend: makes of each cluster's pair of vectors (n_clusters, 2, size) the next two of its orthonormal
// basis (n_clusters, room, size), which has `known` so far. The pair was S times the last two of them:
// matrix[cluster][i][known - 2 ...] gets its products with the basis, coupling[cluster] the upper
// triangle (a, b, c) of what is left in terms of the new vectors. What is left at rounding level
// becomes a vector of zeros, which adds nothing. One block a cluster; shared memory: 2 * room shares.
extern "C" __global__ void __launch_bounds__(STEP_THREADS) extend(
    double* __restrict__ pairs, double* __restrict__ bases, int known, int room, int n_channels,
    int length, int centered, const unsigned char* __restrict__ active,
    double* __restrict__ matrix, double* __restrict__ coupling) {
    extern __shared__ double shares[];
    __shared__ double scratch[STEP_THREADS / 32];
    const int size = n_channels * length, cluster = blockIdx.x;
    if (!active[cluster]) return;
    double* pair = pairs + (long long)cluster * 2 * size;
    double* basis = bases + (long long)cluster * room * size;
    double* products = matrix + (long long)cluster * room * room;
    if (centered) center(pair, n_channels, length);
    double norms[2], rest[2] = {0, 0}, inner = 0;
    for (int q = 0; q < 2; ++q) norms[q] = sqrt(dot(pair + q * size, pair + q * size, size, scratch));
    // rounding is that of the larger vector; at the start each stands for itself
    if (known) norms[0] = norms[1] = fmax(norms[0], norms[1]);
    for (int round = 0; round < 2; ++round) {
        project(pair, basis, known, size, shares);
        for (int i = threadIdx.x; i < 2 * known; i += STEP_THREADS) {
            const int row = i % known, column = known - 2 + i / known;
            const double before = round ? products[row * room + column] : 0.0;
            products[row * room + column] = before + shares[i];
        }
        __syncthreads();
    }
    for (int q = 0; q < 2; ++q) {
        double* vector = pair + q * size;
        if (q == 1 && rest[0] > 0)
            for (int round = 0; round < 2; ++round) {
                const double share = dot(pair, vector, size, scratch);
                inner += share;
                for (int d = threadIdx.x; d < size; d += STEP_THREADS) vector[d] -= share * pair[d];
                __syncthreads();
            }
        rest[q] = sqrt(dot(vector, vector, size, scratch));
        if (!(rest[q] > 1e-14 * norms[q])) rest[q] = 0;
        const double factor = rest[q] > 0 ? 1 / rest[q] : 0.0;
        for (int d = threadIdx.x; d < size; d += STEP_THREADS)
            vector[d] = factor > 0 ? vector[d] * factor : 0.0;
        __syncthreads();
    }
    // what was small against what it was taken from is neither centred nor orthogonal yet
    if (centered) center(pair, n_channels, length);
    project(pair, basis, known, size, shares);
    for (int q = 0; q < 2; ++q) {
        double* vector = pair + q * size;
        if (q == 1) {
            const double share = dot(pair, vector, size, scratch);
            for (int d = threadIdx.x; d < size; d += STEP_THREADS) vector[d] -= share * pair[d];
            __syncthreads();
        }
        const double norm = sqrt(dot(vector, vector, size, scratch));
        for (int d = threadIdx.x; d < size; d += STEP_THREADS) {
            vector[d] = norm > 0 ? vector[d] / norm : 0.0;
            basis[(long long)(known + q) * size + d] = vector[d];
        }
        __syncthreads();
    }
    if (threadIdx.x == 0) {
        coupling[cluster * 3] = rest[0];
        coupling[cluster * 3 + 1] = inner;
        coupling[cluster * 3 + 2] = rest[1];
    }
}

// combine: out[cluster][q], a mix of the first `known` vectors of a basis with mixes[cluster][q][i],
// i < room, for two q. One thread a point (grid x), grid y: clusters.
extern "C" __global__ void combine(
    const double* __restrict__ bases, const double* __restrict__ mixes, int known, int room,
    int size, double* __restrict__ out) {
    const int d = blockIdx.x * blockDim.x + threadIdx.x;
    if (d >= size) return;
    const long long cluster = blockIdx.y;
    double a = 0, b = 0;
    for (int i = 0; i < known; ++i) {
        const double v = bases[(cluster * room + i) * size + d];
        a += mixes[cluster * 2 * room + i] * v;
        b += mixes[(cluster * 2 + 1) * room + i] * v;
    }
    out[cluster * 2 * size + d] = a;
    out[(cluster * 2 + 1) * size + d] = b;
}

// align: members order[first + row], shifted, centred and weighted, one a row of `out`; rows beyond
// `count` are zeros. One block a row.
extern "C" __global__ void align(
    const double* __restrict__ values, const double* __restrict__ weights,
    const int* __restrict__ shifts, const int* __restrict__ order, long long first, long long count, int n_channels, int length,
    int centered, double* __restrict__ out) {
    __shared__ double scratch[32];
    const long long row = blockIdx.x;
    const int size = n_channels * length;
    double* target = out + row * size;
    if (row >= count) {
        for (int d = threadIdx.x; d < size; d += blockDim.x) target[d] = 0;
        return;
    }
    const int member = order[first + row], shift = shifts[member];
    const double weight = weights ? weights[member] : 1.0;
    for (int channel = 0; channel < n_channels; ++channel) {
        const double* source = values + (long long)member * size + channel * length;
        double sum = 0;
        if (centered)
            for (int i = threadIdx.x; i < length; i += blockDim.x)
                sum += i >= shift && i - shift < length ? source[i - shift] : 0.0;
        sum = warp_sum(sum);
        __syncthreads();
        if (threadIdx.x % 32 == 0) scratch[threadIdx.x / 32] = sum;
        __syncthreads();
        double mean = 0;
        for (int warp = 0; warp < blockDim.x / 32; ++warp) mean += scratch[warp];
        mean /= length;
        for (int i = threadIdx.x; i < length; i += blockDim.x)
            target[channel * length + i] =
                weight * ((i >= shift && i - shift < length ? source[i - shift] : 0.0) - mean);
    }
}
