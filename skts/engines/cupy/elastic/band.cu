// Warping inside a narrow band: lanes own offsets, not columns.
//
// With fixed columns a lane would idle while the band passes by. Here lane l of a group owns K
// consecutive offsets o = j - i + reach, which the band keeps for the whole pair, and every lane
// works on every row. In terms of offsets, cell (i, o) needs
//
//     (i - 1, o)       the diagonal        the lane's own D[o] of the row before
//     (i - 1, o + 1)   the cell above      its own, or the first one of the lane to the right
//     (i,     o - 1)   the cell left       its own, or the last one of the lane to the left
//
// so lane l + 1 must follow lane l within a row, and lane l must follow lane l + 1 into the next one:
// a lane can work on a pair only every second step. Each group therefore interleaves two pairs. At
// step t lane l is at row (t - l) / 2 of the first pair if t - l is even, else at row (t - l - 1) / 2
// of the second. Which of its two sides a lane works on depends on the parity of l, so a lane
// calls its pairs `side[0]`, worked on at even t, and `side[1]`, at odd t.
//
//     t = 0    lane 0: first pair, row 0
//     t = 1    lane 0: second pair, row 0     lane 1: first pair, row 0
//     t = 2    lane 0: first pair, row 1      lane 1: second pair, row 0    lane 2: first pair, row 0
//
// The points of the column series shift by one offset a row; the loop is unrolled over K rows, so
// that they rotate through the same registers without a move.
//
// One thread: a lane. One warp: 32 / G groups, each with two pairs at a time. Shared memory: none.
// out[p] is written by the lane that owns the offset of the last cell of pair p.
#include "include/stepped_cells.cuh"
#include "include/constants.cuh"
#include "include/groups.cuh"

constexpr int THREADS = ELASTIC_THREADS;

template <typename T, int K, int C, typename Cell>
struct Side {
    static_assert(!Cell::BORDERS && !Cell::LOOKS_BACK, "not in registers yet");
    T D[K];
    T y[C][K];          // point of logical offset k in row step u of a block: y[c][(k + u) % K]
    T x[C];             // point of the row series in the row to come
    T wall[K];          // 0, infinity for offsets beyond the band
    Cell cell;
    T result;
    const T* row;       // the row series
    const T* top;       // the point of the column series that enters at the last offset in row 0
    int i, n;           // the row to come; rows
    int low;            // j - i of the first offset of the lane
    int begin;          // offset of the corner above and left of the matrix, within the lane
    int end;            // offset of the last cell, within the lane
    int entering;       // index of *top in its series

    // points with negative index are infinitely far: no path leaves the matrix there
    template <int STRIDE>
    __device__ __forceinline__ void enter(T (&points)[C], int stride) const {
#pragma unroll
        for (int c = 0; c < C; ++c)
            points[c] = entering + i + STRIDE >= 0 ? top[c * stride + i + STRIDE]
                                                   : Arithmetic<T>::infinity();
    }

    // row i, the U-th of a block; returns its first and last cells through `out_first`, `out_last`
    template <int U>
    __device__ __forceinline__ void step(
        T left, T above_last, int row_stride, int col_stride, T& out_first, T& out_last) {
        T next_x[C], next_y[C];
#pragma unroll
        for (int c = 0; c < C; ++c) next_x[c] = row[c * row_stride + i + 1];
        enter<1>(next_y, col_stride);
        if (i == 0) {
#pragma unroll
            for (int k = 0; k < K; ++k) D[k] = k == begin ? T(0) : Arithmetic<T>::infinity();
            above_last = K == begin ? T(0) : Arithmetic<T>::infinity();
        }
#pragma unroll
        for (int k = 0; k < K; ++k) {
            const T above = k + 1 < K ? D[k + 1] : above_last;
            const auto best = cells_before<Cell>(D[k], above, left);
            const CellPoints<T, C> at(x, &y[0][(k + U) % K], K, low + k);
            left = cell.join(at, best + wall[k]);
            D[k] = left;
        }
        out_first = D[0];
        out_last = D[K - 1];
        if (i == n - 1) {
#pragma unroll
            for (int k = 0; k < K; ++k)
                if (k == end) result = D[k];
        }
#pragma unroll
        for (int c = 0; c < C; ++c) {
            x[c] = next_x[c];
            y[c][U % K] = next_y[c];
        }
        ++i;
    }
};

// K row steps of both sides, unrolled by recursion so that every register index is a constant.
template <int U, typename T, int K, int C, typename Cell>
__device__ __forceinline__ void block_of_rows(
    Side<T, K, C, Cell> (&side)[2], int lane, int G, int row_stride, int col_stride,
    T& first, T& last) {
    if constexpr (U < K) {
#pragma unroll
        for (int s = 0; s < 2; ++s) {
            const T inf = Arithmetic<T>::infinity();
            T left = __shfl_up_sync(ALL, last, 1, G);
            T above = __shfl_down_sync(ALL, first, 1, G);
            if (lane == 0) left = inf;
            if (lane == G - 1) above = inf;
            side[s].template step<U>(left, above, row_stride, col_stride, first, last);
        }
        block_of_rows<U + 1>(side, lane, G, row_stride, col_stride, first, last);
    }
}

// Blocks on a multiprocessor, which bound the registers of a lane: as many as hold both its sides.
template <typename T>
constexpr int blocks_per_sm(int K, int C) {
    const int words = sizeof(T) / 4 * K;
    return C > 1 || words > 14 ? 2 : words > 8 ? 3 : words > 6 ? 4 : 5;
}

// Parameters as those of `dtw` in dtw.cu; 2 reach + 1 <= G K for every pair.
template <typename T, int K, int C, typename Cell>
__global__ void __launch_bounds__(THREADS, blocks_per_sm<T>(K, C)) band(
    const T* __restrict__ row_values, const int* __restrict__ row_lengths, int row_stride,
    const T* __restrict__ col_values, const int* __restrict__ col_lengths, int col_stride,
    int n_pairs, int n_cols, int G,
    const int* __restrict__ points_by_length, int root, T* __restrict__ out, Cell cell) {
    const T inf = Arithmetic<T>::infinity();
    const Groups groups(G);
    const int lane = groups.lane;
    for (long long base = 0; 2 * (base + groups.first) < n_pairs; base += groups.count) {
        Side<T, K, C, Cell> side[2];
        int pair[2], steps = 0;
#pragma unroll
        for (int s = 0; s < 2; ++s) {
            Side<T, K, C, Cell>& me = side[s];
            const int second = s ^ (lane & 1);
            const int p = pair[s] = min(2 * (base + groups.own) + second, n_pairs - 1LL);
            const int r = p / n_cols;
            const int c = p % n_cols;
            const int n = row_lengths[r], m = col_lengths[c];
            const int reach = band_reach(points_by_length, n, m);
            const int first = lane * K;  // first offset of the lane
            me.cell = cell;
            me.n = n;
            me.i = -((lane + second - s) / 2);
            me.row = row_values + (long long)r * C * row_stride;
            me.entering = first + K - 1 - reach;
            me.top = col_values + (long long)c * C * col_stride + me.entering;
            me.low = first - reach;
            me.begin = reach - first;
            me.end = m - n + reach - first;
            me.result = inf;
            steps = max(steps, n - me.i);
#pragma unroll
            for (int k = 0; k < K; ++k) {
                me.D[k] = inf;
                me.wall[k] = first + k <= 2 * reach ? T(0) : inf;
#pragma unroll
                for (int ch = 0; ch < C; ++ch)
                    me.y[ch][k] = me.entering + me.i + k - (K - 1) >= 0
                                      ? me.top[ch * col_stride + me.i + k - (K - 1)]
                                      : inf;
            }
#pragma unroll
            for (int ch = 0; ch < C; ++ch) me.x[ch] = me.row[ch * row_stride + me.i];
        }
        // by shuffles on every device: where the compiler knows that all lanes have one bound, it unrolls the
        // loop, and takes all registers there are
        steps = fold_lanes(steps, Larger());
        T first = inf, last = inf;
        for (int done = 0; done < steps; done += K)
            block_of_rows<0>(side, lane, G, row_stride, col_stride, first, last);
#pragma unroll
        for (int s = 0; s < 2; ++s)
            if (side[s].end >= 0 && side[s].end < K)
                out[pair[s]] = root ? sqrt(side[s].result) : side[s].result;
    }
}
