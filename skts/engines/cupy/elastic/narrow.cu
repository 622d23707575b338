// Warping inside a narrow band, series of one length: a thread owns all offsets of a pair.
//
// Every row of the warping matrix has the same 2 reach + 1 offsets o = j - i + reach from the
// diagonal, so a thread keeps one row of a band in registers, D[0..K-1], and needs no other thread.
// In terms of offsets, cell (i, o) needs
//
//     (i - 1, o)       the diagonal        D[o] of the row before
//     (i - 1, o + 1)   the cell above      D[o + 1] of the row before
//     (i,     o - 1)   the cell left       the value just computed
//
// ROWS rows are in flight, each two offsets behind the one above, which hides the latency of the
// chain of cells along a row:
//
//     offset     0  1  2  3  4  5  6  7  8
//     row i      .  .  .  .  .  .  .  .  now        All rows share D: each finds there what the row
//     row i + 1  .  .  .  .  .  .  now              above left behind.
//     row i + 2  .  .  .  .  now
//     row i + 3  .  .  now
//
// The points of the column series shift by ROWS registers after that. Column series come transposed
// (`_in_bands` in dtw.py), point by point, so that the threads of a warp read neighbours. Before and behind
// them are infinities, where steps cost the same: no path leaves the matrix there. For other policies (`masks`)
// there are zeros, and cells left of the matrix are masked in the rows that have any, the first `reach`; what
// is right of it goes nowhere.
//
// K is 2 reach + 1, or 2, 4 or 6 more, so that few instances serve all windows: then one wall
// stands behind the last offset of the band, and what is computed beyond it goes nowhere.
//
// One thread: a pair. One warp: 32 neighbouring column series against one row series. One block:
// THREADS column series against row series blockIdx.y, blockIdx.y + gridDim.y, ... Shared memory:
// none. Each thread writes the result of its pair.
#include "include/stepped_cells.cuh"
#include "include/constants.cuh"

constexpr int THREADS = ELASTIC_THREADS;
constexpr int ROWS = 4;
// Offsets that may be left over, two at a time.
constexpr int WALLS = 3;

// Blocks that must fit on a multiprocessor, by the registers that a thread takes: points are there
// twice while they shift.
template <typename T>
__host__ __device__ constexpr int blocks_per_sm(int K, int C) {
    const int registers = sizeof(T) / 4 * (K * (2 * C + 1) + 8 * C) + 20;
    return registers <= 128 ? 4 : registers <= 170 ? 3 : 2;
}

// Whether cells left of the matrix are masked: what points that are infinitely far cost is not a number for all.
template <typename Cell>
__host__ __device__ constexpr bool masks() {
    return Cell::BORDERS || Cell::LOOKS_BACK || Cell::PLACED;
}

template <typename T, int K, int C, typename Cell>
struct Band {
    typedef Value<Cell, T> V;
    V D[K];
    T y[C][K + ROWS - 1];   // point o + u serves offset o in row u of those in flight
    T y_before[C];          // LOOKS_BACK: the point before these
    T x_before[C];          // LOOKS_BACK: the points of the row before
    V front;                // BORDERS: before column 0 in the row before
    V wall[WALLS];          // wall[w]: infinity where the band ends with offset K - 2 w - 3, else 0
    Cell cell;
    int reach;

    // the row above the first
    __device__ __forceinline__ void open(V origin) {
        V sum = origin;
#pragma unroll
        for (int k = 0; k < K; ++k) {
            D[k] = k == reach ? origin : Arithmetic<V>::infinity();
            if constexpr (Cell::BORDERS)
                if (k > reach && k <= 2 * reach) {
                    T point[C];
#pragma unroll
                    for (int c = 0; c < C; ++c) point[c] = y[c][k > 0 ? k - 1 : 0];
                    D[k] = sum = plus(cell.skip(CellPoints<T, C>(point, point)), sum);
                }
        }
        front = origin;
#pragma unroll
        for (int c = 0; c < C; ++c) x_before[c] = y_before[c] = 0;
    }

    // the next R rows, x[u] the points of row u, the first of which is row i; with MASKED some of the first
    // `reach` rows may be among them
    template <int R, bool MASKED>
    __device__ __forceinline__ void rows(const T (&x)[ROWS][C], int i) {
        const V inf = Arithmetic<V>::infinity();
        V left[R], border[R];
#pragma unroll
        for (int u = 0; u < R; ++u) {
            left[u] = border[u] = inf;
            if constexpr (MASKED && Cell::BORDERS)
                border[u] = front = plus(cell.skip(CellPoints<T, C>(x[u], x[u])), front);
        }
#pragma unroll
        for (int s = 0; s < K + 2 * (R - 1); ++s) {
#pragma unroll
            for (int u = 0; u < R; ++u) {
                const int o = s - 2 * u;
                if (o < 0 || o >= K) continue;
                V above = o + 1 < K ? D[o + 1] : inf;
#pragma unroll
                for (int w = 0; w < WALLS; ++w)
                    if (o == K - 2 * w - 3) above = Arithmetic<V>::add(above, wall[w]);
                const auto best = cells_before<Cell>(D[o], above, left[u]);
                CellPoints<T, C> at(x[u], &y[0][o + u], K + ROWS - 1, -reach, o);
                if constexpr (Cell::LOOKS_BACK) {
                    T above_x[C];
#pragma unroll
                    for (int c = 0; c < C; ++c) above_x[c] = u > 0 ? x[u > 0 ? u - 1 : 0][c] : x_before[c];
                    if (o + u > 0) at.look_back(above_x, &y[0][o + u - 1], K + ROWS - 1);
                    else at.look_back(above_x, y_before, 1);
                }
                left[u] = cell.join(at, best);
                if constexpr (MASKED) {
                    const int j = i + u + o - reach;
                    if (j < 0) left[u] = j == -1 ? border[u] : inf;
                }
                D[o] = left[u];
            }
        }
        if constexpr (Cell::LOOKS_BACK)
#pragma unroll
            for (int c = 0; c < C; ++c) x_before[c] = x[R - 1][c];
    }

    // drop the points of the first R offsets; recursion, for a loop would become a call of memmove,
    // and registers memory
    template <int R, int k = 0>
    __device__ __forceinline__ void shift(const T (&next)[ROWS][C]) {
        if constexpr (k == 0 && Cell::LOOKS_BACK)
#pragma unroll
            for (int c = 0; c < C; ++c) y_before[c] = y[c][R - 1];
        if constexpr (k < K + ROWS - 1) {
#pragma unroll
            for (int c = 0; c < C; ++c) {
                if constexpr (k + R < K + ROWS - 1) y[c][k] = y[c][k + R];
                else y[c][k] = next[k + R - (K + ROWS - 1)][c];
            }
            shift<R, k + 1>(next);
        }
    }
};

// Channel c, point i of row series r is rows[(r * C + c) * row_stride + i]. Channel c, point j of
// column series s is cols[(c * height + j + reach) * pitch + s]; height >= n + K + 2 ROWS, pitch >=
// gridDim.x * THREADS. `end`: offset of the last cell, m - n + reach. The result of r and s goes to
// out[r * out_row + s * out_col]. `root`: whether to write distances or accumulated costs.
template <typename T, int K, int C, typename Cell>
__global__ void __launch_bounds__(THREADS, blocks_per_sm<T>(K, C)) narrow(
    const T* __restrict__ rows, int n_rows, int n, int row_stride, const T* __restrict__ cols,
    int n_cols, int height, int pitch, int reach, int end, int root, long long out_row,
    long long out_col, T* __restrict__ out, Cell cell) {
    typedef Value<Cell, T> V;
    constexpr bool MASKS = masks<Cell>();
    const V inf = Arithmetic<V>::infinity();
    const int s = blockIdx.x * THREADS + threadIdx.x;
    for (int r = blockIdx.y; r < n_rows; r += gridDim.y) {
        Band<T, K, C, Cell> band;
        band.cell = cell;
        band.reach = reach;
        const T* series = rows + (long long)r * (C + Cell::OWN) * row_stride;
        const T* entering = cols + s;
        if constexpr (Cell::OWN)
            band.cell.meet(series[C * row_stride], cols[((long long)C * height + reach) * pitch + s]);
#pragma unroll
        for (int w = 0; w < WALLS; ++w) band.wall[w] = 2 * reach == K - 2 * w - 3 ? inf : V(0);
#pragma unroll
        for (int k = 0; k < K + ROWS - 1; ++k) {
#pragma unroll
            for (int c = 0; c < C; ++c) band.y[c][k] = scaled(cell, entering[(long long)c * height * pitch]);
            entering += pitch;
        }
        band.open(origin_of<Cell, V>(cell, n));
        int i = 0;
        T x[ROWS][C], next[ROWS][C];
        for (; i + ROWS <= n; i += ROWS) {
#pragma unroll
            for (int u = 0; u < ROWS; ++u) {
#pragma unroll
                for (int c = 0; c < C; ++c) {
                    x[u][c] = scaled(cell, series[c * row_stride + i + u]);
                    next[u][c] = scaled(cell, entering[(long long)c * height * pitch]);
                }
                entering += pitch;
            }
            if (MASKS && i < reach) band.template rows<ROWS, MASKS>(x, i);
            else band.template rows<ROWS, false>(x, i);
            band.template shift<ROWS>(next);
        }
        for (; i < n; ++i) {
#pragma unroll
            for (int c = 0; c < C; ++c) {
                x[0][c] = scaled(cell, series[c * row_stride + i]);
                next[0][c] = scaled(cell, entering[(long long)c * height * pitch]);
            }
            entering += pitch;
            band.template rows<1, MASKS>(x, i);
            band.template shift<1>(next);
        }
        V result = inf;
#pragma unroll
        for (int k = 0; k < K; ++k) {
            // by arithmetic: a choice would become an index, and registers memory
            const V here = Arithmetic<V>::add(band.D[k], k == end ? V(0) : inf);
            result = here < result ? here : result;
        }
        const int m = end + n - reach;
        const T* last = cols + (long long)(m - 1 + reach) * pitch + s;
        if (s < n_cols)
            out[r * out_row + s * out_col] =
                result_of(band.cell, result, n, m, series + n - 1, last, root);
    }
}
