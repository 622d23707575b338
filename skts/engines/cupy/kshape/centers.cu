// k-Shape on the GPU, about centres: the leading eigenvectors of S = A' A, A the aligned members of a
// cluster. `gram` multiplies with S from the members themselves, for all clusters at once; `extend` is
// a step of the block Lanczos iteration on two vectors a cluster, `combine` takes what it has found;
// `align` writes A where the members are so long that S is formed instead.
#include "include/constants.cuh"
#include "include/warp.cuh"

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

// Members of a cluster whose numbers, shifts and weights are fetched ahead.
constexpr int LISTED = 64;

struct ListedMembers {
    int *ids, *moves;
    double* factors;
};

// Lists the members from `row` on, LISTED of them or as many as there are: all threads.
template <int T>
__device__ __forceinline__ void list_members(
    const ListedMembers& members, const int* order, const int* shifts, const double* weights,
    long long row, long long stop) {
    __syncthreads();
    for (int i = threadIdx.x; i < LISTED && row + i < stop; i += T) {
        members.ids[i] = order[row + i];
        members.moves[i] = shifts[members.ids[i]];
        members.factors[i] = weights ? weights[members.ids[i]] : 1.0;
    }
    __syncthreads();
}

// Loads this thread's points of ROWS members from `row` on, aligned; time[m] is that of point m.
// Members beyond `stop` are zeros.
template <int K, int T, int ROWS>
__device__ __forceinline__ void load_members(
    double (&x)[ROWS][K], const double* values, const ListedMembers& members, int listed,
    long long row, long long stop, const int (&time)[K], int length, int size) {
    const int t = threadIdx.x;
#pragma unroll
    for (int r = 0; r < ROWS; ++r) {
        const bool there = row + r < stop;
        const int member = there ? members.ids[listed + r] : 0;
        const int shift = there ? members.moves[listed + r] : 0;
        const double* source = values + (long long)member * size + t - shift;
#pragma unroll
        for (int m = 0; m < K; ++m) {
            const int from = time[m] - shift;
            x[r][m] = there && from >= 0 && from < length ? source[m * T] : 0.0;
        }
    }
}

// Products of ROWS members with both vectors, as far as this thread has their points: product 2 r + q
// is that of member r with vector q.
template <int K, int T, int ROWS>
__device__ __forceinline__ void multiply(
    double (&product)[ROWS * 2], const double (&x)[ROWS][K], const double* v, int size) {
#pragma unroll
    for (int i = 0; i < ROWS * 2; ++i) product[i] = 0;
#pragma unroll
    for (int m = 0; m < K; ++m) {
        const int d = threadIdx.x + m * T;
        const double a = d < size ? v[d] : 0.0, b = d < size ? v[size + d] : 0.0;
#pragma unroll
        for (int r = 0; r < ROWS; ++r) {
            product[2 * r] += x[r][m] * a;
            product[2 * r + 1] += x[r][m] * b;
        }
    }
}

// Sums of N numbers over the block: every thread gets them. Two sets of `sums` take turns, so that
// one barrier is enough.
template <int T, int N>
__device__ __forceinline__ void add_over_block(double (&value)[N], double (&sums)[N][T / 32]) {
    const int t = threadIdx.x;
#pragma unroll
    for (int i = 0; i < N; ++i) {
        add_lanes(value[i]);
        if (T > 32 && t % 32 == 0) sums[i][t / 32] = value[i];
    }
    if (T > 32) {
        __syncthreads();
#pragma unroll
        for (int i = 0; i < N; ++i) {
            value[i] = 0;
#pragma unroll
            for (int warp = 0; warp < T / 32; ++warp) value[i] += sums[i][warp];
        }
    }
}

// gram: products of S with two vectors, or (SUM) the sum of the members, over one chunk of members.
// One block: `chunk` members of one cluster, T threads. One thread: K points (t, t + T, ...) of all of
// them, in registers, ROWS members at a time; a member is read once. vectors[cluster] holds two vectors
// of n_channels * length points, clusters lie `stride` apart. partial[block][2][points] is written.
// Nothing is done for clusters that are not `active`. Members count `weights` times, where that is
// not null. Shared memory: sums over warps, and members that are listed ahead.
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
    const ListedMembers members{ids, moves, factors};
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
        if (listed == 0) list_members<T>(members, order, shifts, weights, row, stop);
        double x[ROWS][K];
        load_members<K, T, ROWS>(x, values, members, listed, row, stop, time, length, size);
        if constexpr (SUM) {
#pragma unroll
            for (int m = 0; m < K; ++m)
#pragma unroll
                for (int r = 0; r < ROWS; ++r)
                    if (row + r < stop) total[0][m] += members.factors[listed + r] * x[r][m];
        } else {
            double product[ROWS * 2];
            multiply<K, T, ROWS>(product, x, v, size);
            add_over_block<T>(product, sums[turn]);
            if (weights) {
#pragma unroll
                for (int i = 0; i < ROWS * 2; ++i)
                    if (row + i / 2 < stop) product[i] *= members.factors[listed + i / 2] * members.factors[listed + i / 2];
            }
#pragma unroll
            for (int m = 0; m < K; ++m)
#pragma unroll
                for (int r = 0; r < ROWS; ++r) {
                    total[0][m] += product[2 * r] * x[r][m];
                    total[1][m] += product[2 * r + 1] * x[r][m];
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
// One block, dim3(32, PARTIAL_LANES): 32 sums (grid x) of one cluster (grid y). One thread: every PARTIAL_LANES-th
// of the cluster's blocks, in their order; the lanes are added in theirs. Shared memory: their sums.
extern "C" __global__ void collect(
    const double* __restrict__ partial, const int* __restrict__ chunk_starts,
    const unsigned char* __restrict__ active, long long count, long long width,
    double* __restrict__ out) {
    __shared__ double sums[PARTIAL_LANES][32];
    const long long i = (long long)blockIdx.x * 32 + threadIdx.x;
    const int cluster = blockIdx.y, lane = threadIdx.y;
    if (!active[cluster]) return;
    double sum = 0;
    if (i < count)
        for (int block = chunk_starts[cluster] + lane; block < chunk_starts[cluster + 1]; block += PARTIAL_LANES)
            sum += partial[block * width + i];
    sums[lane][threadIdx.x] = sum;
    __syncthreads();
    if (lane || i >= count) return;
    for (int other = 1; other < PARTIAL_LANES; ++other) sum += sums[other][threadIdx.x];
    out[cluster * width + i] = sum;
}

// --- one step of the block Lanczos iteration, all clusters at once -----------------------------------

__device__ __forceinline__ double dot(const double* a, const double* b, int size, double* scratch) {
    double sum = 0;
    for (int d = threadIdx.x; d < size; d += STEP_THREADS) sum += a[d] * b[d];
    return fold_block(sum, scratch, STEP_THREADS / 32, Plus());
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
        if (!(rest[q] > NEGLIGIBLE * norms[q])) rest[q] = 0;
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
        const double mean = fold_block(sum, scratch, blockDim.x / 32, Plus()) / length;
        for (int i = threadIdx.x; i < length; i += blockDim.x)
            target[channel * length + i] =
                weight * ((i >= shift && i - shift < length ? source[i - shift] : 0.0) - mean);
    }
}
