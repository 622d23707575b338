// Best warping paths of many pairs of series, in float64, and sums of the points that they match.
//
// The matrix of a pair goes in strips of 32 rows, the points of an average; the last row of a strip is
// kept for the next one. The step into each cell takes two bits. `walk_back` follows them, and
// `add_matched` adds the points in one order, that of the CPU engine: no sum is made of parts.
#include "include/cells.cuh"
#include "include/constants.cuh"
#include "include/warp.cuh"

// The bits of a cell: whether the diagonal step is a best one, and whether the step down is better than, or as
// good as, the one to the right.
constexpr unsigned long long ACROSS = 1, DOWN = 2;

// Channel c, point i of series s of a set is values[(s * C + c) * stride + i]; of windows, that is where window i begins.
// The pairs are series `begin` to `begin` +
// `n_pairs` - 1 of the right side, each with the average that its label names.
//
// One warp: a pair, with a stride of all warps. One lane: a row of a strip; in step d lane t is at column
// d - t of the strip, so that the cell above is what lane t - 1 had in step d - 1. `edges`: memory of m_stride values for
// each warp, the last row of the strip before, which the last lane replaces behind the first one. steps: for each
// pair and row `n_words` words of 32 cells; lanes write theirs. costs[begin + p] receives the accumulated cost.
template <typename Cell>
__global__ void __launch_bounds__(ELASTIC_THREADS) trace(
    const double* __restrict__ averages, const int* __restrict__ average_lengths, int n_stride,
    const double* __restrict__ values, const int* __restrict__ lengths, int m_stride,
    int n_channels, const int* __restrict__ labels, int begin, int n_pairs,
    const int* __restrict__ points, Cell cell, double* edges, int n_words,
    unsigned long long* __restrict__ steps, double* __restrict__ costs) {
    static_assert(
        Cell::UNIFORM && !Cell::BORDERS && !Cell::LOOKS_BACK, "the step is that of the least cell");
    const double inf = Arithmetic<double>::infinity();
    const int lane = threadIdx.x & 31, n_warps = gridDim.x * (ELASTIC_THREADS / 32);
    const int warp = blockIdx.x * (ELASTIC_THREADS / 32) + threadIdx.x / 32;
    double* const edge = edges + (long long)warp * m_stride;
    for (int p = warp; p < n_pairs; p += n_warps) {
        const int series = begin + p, label = labels[series];
        const int n = average_lengths[label], m = lengths[series];
        const int radius = points ? band_reach(points, n, m) : n + m;
        const double* x = averages + (long long)label * n_channels * n_stride;
        const double* y = values + (long long)series * n_channels * m_stride;
        for (int j = lane; j < m; j += 32) edge[j] = inf;
        __syncwarp();
        for (int first = 0; first < n; first += 32) {
            const int row = first + lane;
            // no cell of the strip that lies outside of these columns is in the band
            const int low = max(0, first - radius), stop = min(m, first + 32 + radius);
            const double point = row < n ? x[row] : 0.0;
            unsigned long long* const words = steps + ((long long)p * n_stride + row) * n_words;
            double left = inf, value = inf;
            // the cell above the first one of this row, then always the one diagonally before
            double diagonal = inf;
            if (lane == 0 && low > 0) diagonal = edge[low - 1];
            if (row == 0) diagonal = 0.0;
            unsigned long long word = 0;
            for (int d = 0; d < stop - low + 31; ++d) {
                const int column = low + d - lane;
                double up = __shfl_up_sync(ALL, value, 1);
                const bool inside = row < n && column >= low && column < stop;
                if (inside) {
                    if (lane == 0) up = edge[column];
                    const SeriesPoints<double> at{
                        point,    y[column], x + row, y + column,
                        n_channels, n_stride, m_stride, column - row, row, column};
                    const unsigned long long bits =
                        (diagonal <= up && diagonal <= left ? ACROSS : 0) | (up <= left ? DOWN : 0);
                    word |= bits << (2 * (column & 31));
                    value = cell.join(at, cells_before<Cell>(diagonal, up, left));
                    if (abs(row - column) > radius) value = inf;
                    diagonal = up;
                    left = value;
                    if ((column & 31) == 31 || column == stop - 1) {
                        words[column / 32] = word;
                        word = 0;
                    }
                    if (lane == 31) edge[column] = value;
                    if (row == n - 1 && column == m - 1) costs[series] = value;
                }
            }
            // the next strip reads the edge; within a strip the first lane reads a place 31 steps before the last one
            // writes there, and each step waits for all
            __syncwarp();
        }
    }
}

// The points that each point of an average is matched with, from the end of the path backwards: of equal steps the
// diagonal, then the one from above.
//
// One thread: a pair of `trace`. first[series * n_stride + i] and stop[...] receive the first point of the series that
// is matched with point i of the average, and the one after the last.
extern "C" __global__ void walk_back(
    const int* __restrict__ average_lengths, int n_stride, const int* __restrict__ lengths,
    const int* __restrict__ labels, int begin, int n_pairs, int n_words,
    const unsigned long long* __restrict__ steps, int* __restrict__ first, int* __restrict__ stop) {
    const int p = blockIdx.x * blockDim.x + threadIdx.x;
    if (p >= n_pairs) return;
    const int series = begin + p;
    const long long place = (long long)series * n_stride;
    int i = average_lengths[labels[series]] - 1, j = lengths[series] - 1;
    stop[place + i] = j + 1;
    while (i > 0 || j > 0) {
        const unsigned long long word = steps[((long long)p * n_stride + i) * n_words + j / 32];
        const unsigned long long bits = word >> (2 * (j & 31));
        if (i > 0 && (j == 0 || (bits & (ACROSS | DOWN)))) {
            first[place + i] = j;
            --i;
            if (j > 0 && (bits & ACROSS)) --j;
            stop[place + i] = j + 1;
        } else {
            --j;
        }
    }
    first[place] = 0;
}

// Sums of the matched points of the series of one cell of the grid and one average, in the order of the series.
//
// One thread: a channel and a point of the average. Blocks: (cell, average) by its number g along x, whose series are
// order[starts[g]] to order[starts[g + 1] - 1]; channels and points along y. sums: (cells, averages, C, n), sum_weights:
// (cells, averages, n).
extern "C" __global__ void add_matched(
    const double* __restrict__ values, int n_channels, int m_stride,
    const double* __restrict__ weights, const int* __restrict__ average_lengths, int n_averages,
    int n, int n_stride, const int* __restrict__ order, const int* __restrict__ starts,
    const int* __restrict__ first, const int* __restrict__ stop, double* __restrict__ sums,
    double* __restrict__ sum_weights) {
    const int g = blockIdx.x, entry = blockIdx.y * blockDim.x + threadIdx.x;
    if (entry >= n_channels * n) return;
    const int c = entry / n, i = entry % n;
    double sum = 0.0, sum_weight = 0.0;
    if (i < average_lengths[g % n_averages]) {
        for (int k = starts[g]; k < starts[g + 1]; ++k) {
            const int series = order[k];
            const long long place = (long long)series * n_stride + i;
            const int low = first[place], high = stop[place];
            const double weight = weights[series];
            const double* y = values + ((long long)series * n_channels + c) * m_stride;
            double total = y[low];
            for (int j = low + 1; j < high; ++j) total = __dadd_rn(total, y[j]);
            sum = __dadd_rn(sum, __dmul_rn(weight, total));
            sum_weight = __dadd_rn(sum_weight, __dmul_rn(weight, (double)(high - low)));
        }
    }
    sums[((long long)g * n_channels + c) * n + i] = sum;
    if (c == 0) sum_weights[(long long)g * n + i] = sum_weight;
}
