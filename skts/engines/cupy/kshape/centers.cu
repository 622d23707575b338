// k-Shape on the GPU, about centres: the leading eigenvectors of S = A' A, A the aligned members of a
// cluster. `gram` multiplies with S from the members themselves, for all clusters at once; `extend` is
// a step of the block Lanczos iteration on two vectors a cluster, `combine` takes what it has found.
// `moments` forms S of many short members, and `align` writes A of members that are very long.
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
// them, in registers, ROWS members at a time; a member is read once. vectors[cluster] holds vectors
// of n_channels * length points, of which two are multiplied: the first, or the last of known[cluster]
// where that is given. Clusters lie `stride` apart. partial[block][2][points] is written.
// Nothing is done for clusters that are not `active`. Members count `weights` times, where that is
// not null. Shared memory: sums over warps, and members that are listed ahead.
template <int K, int T, int ROWS, bool SUM>
__global__ void __launch_bounds__(T) gram(
    const double* __restrict__ values, const double* __restrict__ weights,
    const int* __restrict__ shifts, const int* __restrict__ order,
    const long long* __restrict__ starts, const int* __restrict__ chunk_starts,
    const unsigned char* __restrict__ active, int n_clusters, int chunk, int n_channels, int length,
    const double* __restrict__ vectors, long long stride, const int* __restrict__ known,
    double* __restrict__ partial) {
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
    const double* v = vectors + cluster * stride + (known ? (known[cluster] - 2) * (long long)size : 0);
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

// moments: sums of the products of all pairs of points, and of the points, of the members of one chunk.
// One block: `chunk` members of one cluster, MOMENT_THREADS threads. One thread: a square of SIDE x SIDE
// pairs (i, j), those with i <= j, square by square along j; and a point. partial[block] gets the
// squares, row by row, then the n_channels * length <= MOMENT_POINTS sums. Members count `weights`
// times. Shared memory: two batches of ROWS members, and members that are listed ahead.
extern "C" __global__ void __launch_bounds__(MOMENT_THREADS) moments(
    const double* __restrict__ values, const double* __restrict__ weights,
    const int* __restrict__ shifts, const int* __restrict__ order,
    const long long* __restrict__ starts, const int* __restrict__ chunk_starts, int n_clusters,
    int chunk, int n_channels, int length, double* __restrict__ partial) {
    constexpr int SIDE = MOMENT_SIDE, ROWS = 16, WIDTH = 64, APART = MOMENT_THREADS / WIDTH;
    static_assert(LISTED % ROWS == 0 && MOMENT_POINTS <= WIDTH && MOMENT_POINTS % SIDE == 0, "");
    __shared__ __align__(16) double batch[2][ROWS][WIDTH];
    __shared__ int ids[LISTED], moves[LISTED];
    __shared__ double factors[LISTED];
    const ListedMembers members{ids, moves, factors};
    const int block = blockIdx.x, t = threadIdx.x, size = n_channels * length;
    if (block >= chunk_starts[n_clusters]) return;
    const int cluster = cluster_of(chunk_starts, n_clusters, block);
    const long long first = starts[cluster] + (long long)(block - chunk_starts[cluster]) * chunk;
    const long long stop = min(first + chunk, starts[cluster + 1]);
    const int sides = (size + SIDE - 1) / SIDE, n_squares = sides * (sides + 1) / 2;
    int i = 0, j = t;
    while (i < sides && j >= sides - i) j -= sides - i++;
    const bool paired = t < n_squares;
    i *= SIDE;
    j = paired ? i + j * SIDE : 0;
    double product[SIDE][SIDE] = {}, sum = 0;
    const int column = t % WIDTH, time = column < size ? column % length : -(1 << 30);
    int turn = 0;
    for (long long row = first; row < stop; row += ROWS, turn ^= 1) {
        const int listed = (int)(row - first) % LISTED;
        if (listed == 0) list_members<MOMENT_THREADS>(members, order, shifts, weights, row, stop);
        double x[ROWS / APART];
#pragma unroll
        for (int m = 0; m < ROWS / APART; ++m) {
            const int r = t / WIDTH + m * APART, shift = row + r < stop ? moves[listed + r] : 0;
            const int from = time - shift;
            x[m] = row + r < stop && from >= 0 && from < length
                       ? values[(long long)ids[listed + r] * size + column - shift] * factors[listed + r]
                       : 0.0;
        }
#pragma unroll
        for (int m = 0; m < ROWS / APART; ++m) batch[turn][t / WIDTH + m * APART][column] = x[m];
        __syncthreads();
        if (paired)
#pragma unroll 4
            for (int r = 0; r < ROWS; ++r) {
                double a[SIDE], b[SIDE];
#pragma unroll
                for (int q = 0; q < SIDE; ++q) {
                    a[q] = batch[turn][r][i + q];
                    b[q] = batch[turn][r][j + q];
                }
#pragma unroll
                for (int p = 0; p < SIDE; ++p)
#pragma unroll
                    for (int q = 0; q < SIDE; ++q) product[p][q] += a[p] * b[q];
            }
        if (t < size)
            for (int r = 0; r < ROWS; ++r) sum += batch[turn][r][t];
    }
    double* out = partial + (long long)block * (n_squares * SIDE * SIDE + size);
    if (paired)
#pragma unroll
        for (int p = 0; p < SIDE; ++p)
#pragma unroll
            for (int q = 0; q < SIDE; ++q) out[(t * SIDE + p) * SIDE + q] = product[p][q];
    if (t < size) out[n_squares * SIDE * SIDE + t] = sum;
}

// collect: out[cluster][i], the sum of partial[block][i] over the cluster's blocks; i < count. Blocks lie
// `width` apart, clusters `stride`.
// One block, dim3(32, PARTIAL_LANES): 32 sums (grid x) of one cluster (grid y). One thread: every PARTIAL_LANES-th
// of the cluster's blocks, in their order; the lanes are added in theirs. Shared memory: their sums.
extern "C" __global__ void collect(
    const double* __restrict__ partial, const int* __restrict__ chunk_starts,
    const unsigned char* __restrict__ active, long long count, long long width, long long stride,
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
    out[cluster * stride + i] = sum;
}

// --- one step of the block Lanczos iteration, all clusters at once -----------------------------------

// Sums of two numbers over the block: every thread gets them. `room` has two places a warp, and may be
// written again after the next barrier but one.
struct Two {
    double a, b;
};

__device__ __forceinline__ Two add_two(Two value, double* room) {
    constexpr int WARPS = STEP_THREADS / 32;
    const int lane = threadIdx.x % 32;
    add_lanes(value.a);
    add_lanes(value.b);
    __syncthreads();
    if (lane == 0) {
        room[threadIdx.x / 32] = value.a;
        room[WARPS + threadIdx.x / 32] = value.b;
    }
    __syncthreads();
    value = {lane < WARPS ? room[lane] : 0.0, lane < WARPS ? room[WARPS + lane] : 0.0};
    add_lanes(value.a);
    add_lanes(value.b);
    return value;
}

// A pair of vectors of `size` points, one behind the other.
struct Pair {
    double* points;
    int size;

    // sums of the squares of each
    __device__ Two squares(double* room) const {
        Two sum{0, 0};
        for (int d = threadIdx.x; d < size; d += STEP_THREADS) {
            sum.a += points[d] * points[d];
            sum.b += points[size + d] * points[size + d];
        }
        return add_two(sum, room);
    }

    // sum of their products
    __device__ double inner(double* room) const {
        Two sum{0, 0};
        for (int d = threadIdx.x; d < size; d += STEP_THREADS) sum.a += points[d] * points[size + d];
        return add_two(sum, room).a;
    }

    // Subtracts from each channel of both vectors its mean: one warp a channel.
    __device__ void center(int n_channels, int length) const {
        const int lane = threadIdx.x % 32;
        for (int part = threadIdx.x / 32; part < 2 * n_channels; part += STEP_THREADS / 32) {
            double* channel = points + (long long)part * length;
            double sum = 0;
#pragma unroll 8
            for (int i = lane; i < length; i += 32) sum += channel[i];
            const double mean = warp_sum(sum) / length;
#pragma unroll 8
            for (int i = lane; i < length; i += 32) channel[i] -= mean;
        }
        __syncthreads();
    }

    // Takes from both vectors what they have of the basis; `shares`[2][known] gets how much that was.
    __device__ void project(const double* basis, int known, double* shares) const {
        const int lane = threadIdx.x % 32;
        for (int i = threadIdx.x / 32; i < known; i += STEP_THREADS / 32) {
            const double* v = basis + (long long)i * size;
            double a = 0, b = 0;
#pragma unroll 8
            for (int d = lane; d < size; d += 32) {
                a += v[d] * points[d];
                b += v[d] * points[size + d];
            }
            add_lanes(a);
            add_lanes(b);
            if (lane == 0) {
                shares[i] = a;
                shares[known + i] = b;
            }
        }
        __syncthreads();
        for (int d = threadIdx.x; d < size; d += STEP_THREADS) {
            double a = points[d], b = points[size + d];
#pragma unroll 8
            for (int i = 0; i < known; ++i) {
                const double v = basis[(long long)i * size + d];
                a -= shares[i] * v;
                b -= shares[known + i] * v;
            }
            points[d] = a;
            points[size + d] = b;
        }
        __syncthreads();
    }
};

// extend: makes of each cluster's pair of vectors (n_clusters, 2, size) the next two of its orthonormal
// basis (n_clusters, room, size), which has known[cluster] so far. The pair was S times the last two of
// them; to `begin` a basis anew, `first` and `second` (n_clusters, size) are taken. Column known - 2 and the next
// of matrix[column][cluster][room] get the products of the pair with the basis, coupling[cluster] the
// upper triangle (a, b, c) of what is left in terms of the new vectors. What is left at rounding level
// becomes a vector of zeros, which adds nothing. One block a cluster; shared memory: 2 * room shares,
// and with `held` the pair.
extern "C" __global__ void __launch_bounds__(STEP_THREADS) extend(
    double* __restrict__ pairs, const double* __restrict__ first, const double* __restrict__ second,
    double* __restrict__ bases, int* __restrict__ known, int begin, int room, int n_channels,
    int length, int centered, int held, const unsigned char* __restrict__ active, double* __restrict__ matrix,
    double* __restrict__ coupling) {
    extern __shared__ double shares[];
    __shared__ double scratch[2 * STEP_THREADS / 32];
    const int size = n_channels * length, cluster = blockIdx.x, t = threadIdx.x;
    if (!active[cluster]) return;
    const int count = begin ? 0 : known[cluster];
    double* given = pairs + (long long)cluster * 2 * size;
    const Pair pair{held ? shares + 2 * room : given, size};
    double* basis = bases + (long long)cluster * room * size;
    double* products = matrix + (long long)cluster * room;
    const long long column = (long long)gridDim.x * room;
    if (held || count == 0) {
        const double* a = count ? given : first + (long long)cluster * size;
        const double* b = count ? given + size : second + (long long)cluster * size;
        for (int d = t; d < size; d += STEP_THREADS) {
            pair.points[d] = a[d];
            pair.points[size + d] = b[d];
        }
        __syncthreads();
    }
    if (centered) pair.center(n_channels, length);
    Two norms = pair.squares(scratch);
    norms = {sqrt(norms.a), sqrt(norms.b)};
    // rounding is that of the larger vector; at the start each stands for itself
    if (count) norms.a = norms.b = fmax(norms.a, norms.b);
    for (int round = 0; round < 2 && count; ++round) {
        pair.project(basis, count, shares);
        for (int i = t; i < 2 * count; i += STEP_THREADS) {
            double& product = products[(count - 2 + i / count) * column + i % count];
            product = round ? product + shares[i] : shares[i];
        }
        __syncthreads();
    }
    double rest[2] = {0, 0}, inner = 0;
    for (int q = 0; q < 2; ++q) {
        double* vector = pair.points + q * size;
        if (q == 1 && rest[0] > 0)
            for (int round = 0; round < 2; ++round) {
                const double share = pair.inner(scratch);
                inner += share;
                for (int d = t; d < size; d += STEP_THREADS) vector[d] -= share * pair.points[d];
                __syncthreads();
            }
        const Two squares = pair.squares(scratch);
        rest[q] = sqrt(q ? squares.b : squares.a);
        if (!(rest[q] > NEGLIGIBLE * (q ? norms.b : norms.a))) rest[q] = 0;
        const double factor = rest[q] > 0 ? 1 / rest[q] : 0.0;
        for (int d = t; d < size; d += STEP_THREADS)
            vector[d] = factor > 0 ? vector[d] * factor : 0.0;
        __syncthreads();
    }
    // what was small against what it was taken from is neither centred nor orthogonal yet; what loses
    // half of itself by that was rounding, and the rest of it may be neither again
    if (centered) pair.center(n_channels, length);
    if (count) pair.project(basis, count, shares);
    double norm = sqrt(pair.squares(scratch).a);
    for (int d = t; d < size; d += STEP_THREADS)
        pair.points[d] = norm > 0.5 ? pair.points[d] / norm : 0.0;
    __syncthreads();
    const double share = pair.inner(scratch);
    for (int d = t; d < size; d += STEP_THREADS) pair.points[size + d] -= share * pair.points[d];
    __syncthreads();
    norm = sqrt(pair.squares(scratch).b);
    for (int d = t; d < size; d += STEP_THREADS) {
        basis[(long long)count * size + d] = pair.points[d];
        basis[(long long)(count + 1) * size + d] = norm > 0.5 ? pair.points[size + d] / norm : 0.0;
    }
    if (t == 0) {
        coupling[cluster * 3] = rest[0];
        coupling[cluster * 3 + 1] = inner;
        coupling[cluster * 3 + 2] = rest[1];
        known[cluster] = count + 2;
    }
}

// combine: out[q][cluster], a mix of the first `known` vectors of a basis with mixes[cluster][q][i],
// i < known, for two q, of clusters that are `active`: others have no more than they had when they
// were. One thread a point (grid x), grid y: clusters.
extern "C" __global__ void combine(
    const double* __restrict__ bases, const double* __restrict__ mixes,
    const unsigned char* __restrict__ active, int known, int room, int size,
    double* __restrict__ out) {
    const int d = blockIdx.x * blockDim.x + threadIdx.x;
    if (d >= size) return;
    const long long cluster = blockIdx.y;
    if (!active[cluster]) return;
    double a = 0, b = 0;
    for (int i = 0; i < known; ++i) {
        const double v = bases[(cluster * room + i) * size + d];
        a += mixes[cluster * 2 * known + i] * v;
        b += mixes[(cluster * 2 + 1) * known + i] * v;
    }
    out[cluster * size + d] = a;
    out[(gridDim.y + cluster) * size + d] = b;
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
