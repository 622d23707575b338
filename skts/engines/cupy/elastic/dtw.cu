// Dynamic time warping of many pairs, by the wavefront of wavefront.cuh.
//
// One thread: a lane. One warp: 32 / G groups, a pair each. One block: as many warps as launched
// (THREADS). Groups walk over the pairs with a grid stride. Shared memory: none. out[p] is written by
// the lane that owns the last column of pair p.
#include "elastic/wavefront.cuh"
#include "include/stepped_cells.cuh"

// Blocks that must fit on a multiprocessor. Few: cells in flight come from the columns of a lane
// and from ROWS = 2, and registers are worth more than warps (L = 512 on an H200: 7.7 Tcells/s with
// the 128 registers that K = 32 likes, 6.6 when held to 96, 6.2 when held to 80).
template <typename T>
__host__ __device__ constexpr int blocks_per_sm(int K, int C) {
    return sizeof(T) / 4 * K * (C + 1) <= 96 ? 3 : 2;
}

// Pair p is row series p / n_cols and column series p % n_cols. `edges` has room for edge_stride values of every group of the grid
// (STRIPS only). `points_by_length`: see band_reach (BAND only). `root`: whether to write distances or
// their squares. SUB: the row series is matched
// to a contiguous part of the column series.
template <
    typename T, int K, int C, int ROWS, bool STRIPS, typename Cell, bool BAND, bool SUB>
__global__ void __launch_bounds__(THREADS, blocks_per_sm<T>(K, C)) dtw(
    const T* __restrict__ row_values, const int* __restrict__ row_lengths, int row_stride,
    const T* __restrict__ col_values, const int* __restrict__ col_lengths, int col_stride,
    int n_pairs, int n_cols, int G, T* edges, int edge_stride,
    const int* __restrict__ points_by_length, int root, T* __restrict__ out, Cell cell) {
    static_assert(!SUB || !(Cell::BORDERS || Cell::SETTLES), "series are matched in full");
    typedef Value<Cell, T> V;
    const V inf = Arithmetic<V>::infinity();
    constexpr int CHANNELS = C + Cell::OWN;  // in memory
    const Groups groups(G);
    const int lane = groups.lane;
    Wavefront<T, K, C, ROWS, STRIPS, Cell, BAND> wave;
    wave.lane = lane;
    wave.G = G;
    // values of cells take no more memory than points
    wave.edge = STRIPS ? (V*)(edges + (long long)groups.own * edge_stride) : nullptr;

    // groups of the last warp that have no pair do the last one again
    for (long long base = 0; base + groups.first < n_pairs; base += groups.count) {
        const int p = min(base + groups.own, n_pairs - 1LL);
        const int r = p / n_cols;
        const int s = p % n_cols;
        const int n = row_lengths[r], m = col_lengths[s];
        const T* series = row_values + (long long)r * CHANNELS * row_stride;
        const T* own = col_values + (long long)s * CHANNELS * col_stride;
        wave.columns.cell = cell;
        if constexpr (Cell::OWN) wave.columns.cell.meet(series[C * row_stride], own[C * col_stride]);
        wave.reach = BAND ? band_reach(points_by_length, n, m) : 0;
        V result = inf;
        V corner = origin_of<Cell, V>(wave.columns.cell, n);  // BORDERS: above the first row, left of the strip

        for (int first = 0; first < m; first += G * K) {
            const int last = min(m - first, G * K) - 1;  // last column of the strip
            const bool last_strip = !STRIPS || m - first <= G * K;
            // rows that the band leaves of this strip
            const int row0 = BAND ? max(0, first - wave.reach) : 0;
            const int n_rows = (BAND ? min(n, first + last + wave.reach + 1) : n) - row0;
            const T* points = series + row0 - ROWS * lane;
            wave.first = first;
            wave.row0 = row0;
            wave.columns.load(own + first + lane * K, col_stride, first + lane == 0);
            wave.above = inf;
            wave.front = origin_of<Cell, V>(wave.columns.cell, n);
            wave.diagonal = lane == 0 && first == 0 ? wave.front : inf;
            if (STRIPS && BAND && lane == 0 && row0 > 0) wave.diagonal = wave.edge[row0 - 1];
            // the step in which this lane is done (SUB), or the one that ends the strip
            const int last_lane = last / K;
            const int stop = (n_rows - 1) / ROWS + (SUB ? min(lane, last_lane) : last_lane);
            auto begin = [&](V left) {
                if constexpr (Cell::BORDERS) wave.open(lane == 0 ? corner : left);
                else {
                    // a path may begin at any column: the row above the first is free
                    wave.columns.fill(T(0));
                    wave.diagonal = T(0);
                }
            };
            wave.template sweep<SUB || Cell::BORDERS>(
                points, row_stride, stop, n_rows, begin,
                [&] {
                    if (SUB) {
                        const V least = wave.columns.least(last + 1 - lane * K);
                        result = least < result ? least : result;
                    } else {
                        result = wave.columns.pick(last % K);
                    }
                });
            if (!SUB && last_strip && lane == last_lane)
                out[p] = result_of(
                    wave.columns.cell, result, n, m, series + n - 1, own + m - 1, root);
            if constexpr (STRIPS && Cell::BORDERS) corner = __shfl_sync(ALL, wave.top, G - 1, G);
        }
        if (SUB) {
            result = group_least(result, G);
            if (lane == 0) out[p] = root ? sqrt(T(result)) : T(result);
        }
    }
}
