// Dynamic time warping of many pairs: a register wavefront.
//
// One group of G lanes (G = 1, 2, 4, ..., 32, all within one warp) computes one pair at a time.
// The series with the columns lies in registers: lane l owns K consecutive columns and keeps the
// current row of the warping matrix there, D[0..K-1]. The other series streams by, ROWS
// points a step: at step t lane l is at row ROWS (t - l), so the left neighbour that it needs is
// what lane l - 1 computed one step earlier, and one shuffle a row passes it on.
//
//   columns ->   lane 0   lane 1   lane 2  ...          No lane is ever masked. Before its first
//   step 0      row 0      ---      ---                 row a lane computes on infinities, which
//   step 1      row 1     row 0     ---                 stay infinite; after its last row it
//   step 2      row 2     row 1    row 0                computes on padding, to the right of and
//                                                       below everything that is used.
//
// Series longer than G K columns go in strips from left to right (STRIPS, then G = 32): the last
// lane writes its right edge row by row to `edges`, lane 0 reads it in the next strip.
//
// One thread: a lane. One warp: 32 / G groups. One block: as many warps as launched (THREADS). Groups walk
// over the pairs with a grid stride. Shared memory: none. out[p] is written by the lane that owns
// the last column of pair p.
#include "arithmetic.cuh"

// Rows between two fetches of points.
constexpr int UNROLL = 4;
// Threads of a block.
constexpr int THREADS = 128;
// Blocks that must fit on a multiprocessor. Few: cells in flight come from the columns of a lane
// and from ROWS = 2, and registers are worth more than warps (L = 512 on an H200: 7.7 Tcells/s with
// the 128 registers that K = 32 likes, 6.6 when held to 96, 6.2 when held to 80).
template <typename T>
__host__ __device__ constexpr int blocks_per_sm(int K, int C) {
    return sizeof(T) / 4 * K * (C + 1) <= 96 ? 3 : 2;
}

// Channel c, point i of series s of a set is values[(s * C + c) * stride + i]; strides are multiples
// of 4, and the memory before and behind a set may be read (PAD in dtw.py): lanes do so while they
// are ahead of the first row or behind the last, and when they fetch points early. What they
// read there is finite and changes nothing.

// 16 bytes at once
template <typename T>
struct alignas(16) Vector {
    static constexpr int SIZE = 16 / sizeof(T);
    T v[SIZE];
};

// K columns of one lane, C channels.
template <typename T, int K, int C>
struct Columns {
    T y[C][K];
    T D[K];

    // columns beyond the end of the series hold anything: they lie right of all that is used
    __device__ __forceinline__ void load(const T* series, int stride) {
        constexpr int V = Vector<T>::SIZE;
#pragma unroll
        for (int c = 0; c < C; ++c)
#pragma unroll
            for (int k = 0; k < K; k += V) {
                const auto loaded = *reinterpret_cast<const Vector<T>*>(series + c * stride + k);
#pragma unroll
                for (int i = 0; i < V; ++i) y[c][k + i] = loaded.v[i];
            }
#pragma unroll
        for (int k = 0; k < K; ++k) D[k] = Arithmetic<T>::infinity();
    }

    // cost of point x against column k, plus sum, channels added in order before the sum
    __device__ __forceinline__ T add_cost(const T (&x)[C], int k, T sum) const {
        if (C == 1) return Arithmetic<T>::add_square(x[0], y[0][k], sum);
        T cost = Arithmetic<T>::square(x[0], y[0][k]);
#pragma unroll
        for (int c = 1; c < C; ++c) cost = Arithmetic<T>::add_square(x[c], y[c][k], cost);
        return cost + sum;
    }

    // next row; `diagonal` and `left` are the values left of column 0 in the row above and in this
    __device__ __forceinline__ void row(const T (&x)[C], T diagonal, T left) {
#pragma unroll
        for (int k = 0; k < K; ++k) {
            const T best = Arithmetic<T>::min3(diagonal, D[k], left);
            diagonal = D[k];
            left = D[k] = add_cost(x, k, best);
        }
    }

    // next two rows, skewed by one column, so that two chains of dependent cells are in flight;
    // `single` leaves D at the first of them
    __device__ __forceinline__ T two_rows(
        const T (&x0)[C], const T (&x1)[C], T diagonal, T left0, T left1, bool single) {
        T diagonal1 = left0;
#pragma unroll
        for (int k = 0; k < K; ++k) {
            const T best0 = Arithmetic<T>::min3(diagonal, D[k], left0);
            diagonal = D[k];
            const T above = add_cost(x0, k, best0);
            const T best1 = Arithmetic<T>::min3(diagonal1, above, left1);
            left1 = add_cost(x1, k, best1);
            D[k] = single ? above : left1;
            diagonal1 = left0 = above;
        }
        return left0;
    }

    __device__ __forceinline__ T pick(int k) const {
        T value = D[0];
#pragma unroll
        for (int i = 1; i < K; ++i)
            if (i == k) value = D[i];
        return value;
    }
};

// The state of one lane in a strip, and one step of it.
template <typename T, int K, int C, int ROWS, bool STRIPS>
struct Wavefront {
    Columns<T, K, C> columns;
    T diagonal;       // left of column 0 in the row above
    T above;          // ROWS = 2: last column of the first of the two rows
    int lane, G;
    bool first_strip;
    T* edge;

    // `x` are the points of ROWS rows, `in` what the strip to the left holds for lane 0, `t` the
    // step, `single` whether only the first of two rows counts
    __device__ __forceinline__ void step(const T (*x)[C], const T* in, int t, bool single) {
        const T inf = Arithmetic<T>::infinity();
        const unsigned all = 0xffffffffu;
        const bool from_edge = STRIPS && !first_strip;
        if (ROWS == 1) {
            T left = __shfl_up_sync(all, columns.D[K - 1], 1, G);
            if (lane == 0) left = from_edge ? in[0] : inf;
            columns.row(x[0], diagonal, left);
            diagonal = left;
        } else {
            T left0 = __shfl_up_sync(all, above, 1, G);
            T left1 = __shfl_up_sync(all, columns.D[K - 1], 1, G);
            if (lane == 0) left0 = from_edge ? in[0] : inf;
            if (lane == 0) left1 = from_edge ? in[1] : inf;
            above = columns.two_rows(x[0], x[1], diagonal, left0, left1, single);
            diagonal = left1;
        }
        if (STRIPS && lane == G - 1 && t >= G - 1) {
            T* out = edge + ROWS * (t - (G - 1));
            if (ROWS == 2) out[0] = above;
            out[ROWS - 1] = columns.D[K - 1];
        }
    }
};

template <typename T, int C>
__device__ __forceinline__ void fetch(T (&x)[UNROLL][C], const T* points, int stride) {
#pragma unroll
    for (int u = 0; u < UNROLL; ++u)
#pragma unroll
        for (int c = 0; c < C; ++c) x[u][c] = points[c * stride + u];
}

template <typename T>
__device__ __forceinline__ void fetch_edge(T (&in)[UNROLL], const T* edge) {
#pragma unroll
    for (int u = 0; u < UNROLL; ++u) in[u] = edge[u];
}

__device__ __forceinline__ int warp_min(int value) {
#pragma unroll
    for (int other = 16; other > 0; other /= 2)
        value = min(value, __shfl_xor_sync(0xffffffffu, value, other));
    return value;
}

// Pair p is a row series and a column series: (pairs[2 p], pairs[2 p + 1]), or with pairs = nullptr
// (p / n_cols, p % n_cols). `edges` has room for edge_stride
// values of every group of the grid (STRIPS only). `root`: whether to write distances or their
// squares.
template <typename T, int K, int C, int ROWS, bool STRIPS>
__global__ void __launch_bounds__(THREADS, blocks_per_sm<T>(K, C)) dtw(
    const T* __restrict__ row_values, const int* __restrict__ row_lengths, int row_stride,
    const T* __restrict__ col_values, const int* __restrict__ col_lengths, int col_stride,
    const int* __restrict__ pairs, int n_pairs, int n_cols, int G, T* edges, int edge_stride, int root, T* __restrict__ out) {
    constexpr int STEPS = UNROLL / ROWS;
    const int lane = threadIdx.x & (G - 1);
    const int group = (blockIdx.x * blockDim.x + threadIdx.x) / G;
    const int n_groups = gridDim.x * blockDim.x / G;
    Wavefront<T, K, C, ROWS, STRIPS> wave;
    wave.lane = lane;
    wave.G = G;
    wave.edge = STRIPS ? edges + (long long)group * edge_stride : nullptr;

    // the groups of a warp go on together, so that every shuffle finds 32 lanes; those of the last
    // warp that have no pair do the last one again
    const int first_group = (blockIdx.x * blockDim.x + (threadIdx.x & ~31)) / G;
    for (long long base = 0; base + first_group < n_pairs; base += n_groups) {
        const int p = min(base + group, n_pairs - 1LL);
        const int r = pairs ? pairs[2 * p] : p / n_cols;
        const int s = pairs ? pairs[2 * p + 1] : p % n_cols;
        const int n = row_lengths[r], m = col_lengths[s];
        const T* points = row_values + (long long)r * C * row_stride - ROWS * lane;
        const T* own = col_values + (long long)s * C * col_stride;

        for (int first = 0; first < m; first += G * K) {
            const bool last_strip = !STRIPS || m - first <= G * K;
            const int last = min(m - first, G * K) - 1;  // last column of the strip
            const int last_lane = last / K;
            wave.first_strip = first == 0;
            wave.columns.load(own + first + lane * K, col_stride);
            wave.above = Arithmetic<T>::infinity();
            wave.diagonal = lane == 0 && first == 0 ? T(0) : wave.above;
            const int stop = (n - 1) / ROWS + last_lane;  // the step in which this group ends
            const int first_stop = warp_min(stop), last_stop = -warp_min(-stop);

            // while no group of the warp ends: UNROLL rows at a time, points fetched ahead
            int t = 0;
            T x[UNROLL][C], in[UNROLL];
            fetch(x, points, row_stride);
            if (STRIPS) fetch_edge(in, wave.edge);
            for (; t + STEPS <= first_stop; t += STEPS) {
                T next[UNROLL][C], next_in[UNROLL];
                fetch(next, points + ROWS * t + UNROLL, row_stride);
                if (STRIPS) fetch_edge(next_in, wave.edge + ROWS * t + UNROLL);
#pragma unroll
                for (int u = 0; u < STEPS; ++u)
                    wave.step(x + u * ROWS, in + u * ROWS, t + u, false);
#pragma unroll
                for (int u = 0; u < UNROLL; ++u) {
#pragma unroll
                    for (int c = 0; c < C; ++c) x[u][c] = next[u][c];
                    if (STRIPS) in[u] = next_in[u];
                }
            }
            // the last few steps, in which groups end
            T result = 0;
#pragma unroll 1
            for (; t <= last_stop; ++t) {
#pragma unroll
                for (int i = 0; i < ROWS; ++i) {
#pragma unroll
                    for (int c = 0; c < C; ++c) x[i][c] = points[c * row_stride + ROWS * t + i];
                    if (STRIPS) in[i] = wave.edge[ROWS * t + i];
                }
                wave.step(x, in, t, ROWS == 2 && t == stop && n % 2 == 1);
                if (t == stop) result = wave.columns.pick(last % K);
            }
            if (STRIPS) __syncwarp();
            if (last_strip && lane == last_lane) out[p] = root ? sqrt(result) : result;
        }
    }
}
