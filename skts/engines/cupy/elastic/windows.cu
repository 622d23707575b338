// Shape DTW: distances of pairs of series along the best paths between windows of points, in float64.
//
// The cost of two windows is the sum of the costs of their points in the order that `Windows` in cells.cuh has: over
// the part in the block of x in which they begin, from its end back, and over the part in the next one. Along a diagonal
// of the matrix each of both goes on from one row to the next by one addition. The rows go in strips, and a warp takes
// turns:
//
//   costs   each lane has one of 32 neighbouring diagonals, and goes along it: up the rows of a block with the
//           first sum, down with the second. The costs go to shared memory.
//   steps   each lane has a row; in step d lane t is at column d - t, on the diagonal d - 2 t: so the last three
//           groups of 32 diagonals hold all that is needed.
//
// Beside the least cost of a path to a cell goes what the points along it cost: that of the last cell is the result,
// and no path is kept.
#include "include/cells.cuh"
#include "include/warp.cuh"

// Rows of a strip at most; diagonals whose costs are kept.
constexpr int ROWS = 32, DIAGONALS = 96;

// Two series of a pair, as a warp sees them.
struct WindowPair {
    const double *x, *y;  // where the window of point 0 begins
    int n, m, x_stride, y_stride, n_channels, width;

    template <typename Metric>
    __device__ __forceinline__ double term(int i, int j) const {
        double cost = Metric::term(x[i], y[j]);
#pragma unroll 1
        for (int c = 1; c < n_channels; ++c)
            cost = Metric::add(x[(long long)c * x_stride + i], y[(long long)c * y_stride + j], cost);
        return cost;
    }

    // Whether the second series is the first one of the two as `in_order` has them; all lanes get the answer.
    __device__ __forceinline__ bool swapped(int lane) const {
        if (n != m) return n > m;
        const int reach = width / 2;
        for (int c = 0; c < n_channels; ++c)
            for (int first = 0; first < n; first += 32) {
                const int i = min(first + lane, n - 1) + reach;
                const double a = x[(long long)c * x_stride + i], b = y[(long long)c * y_stride + i];
                const unsigned differ = __ballot_sync(ALL, a != b), larger = __ballot_sync(ALL, a > b);
                if (differ) return (larger & differ & (~differ + 1)) != 0;
            }
        return false;
    }

    // Costs of rows `first` to `stop` - 1 along the diagonal whose column in row `first` is `column`: to costs[i - first].
    template <typename Metric>
    __device__ __forceinline__ void fill(int first, int stop, int column, double* costs) const {
        const int right = column - first;
        for (int base = first / width * width; base < stop; base += width) {
            const int low = max(base, first), high = min(base + width, stop);
            double sum = 0.0;
            for (int i = base + width - 1; i >= high; --i)
                sum = __dadd_rn(sum, term<Metric>(i, i + right));
#pragma unroll 4
            for (int i = high - 1; i >= low; --i) {
                sum = __dadd_rn(sum, term<Metric>(i, i + right));
                costs[i - first] = sum;
            }
            sum = 0.0;
            for (int i = base + 1; i < low; ++i)
                sum = __dadd_rn(sum, term<Metric>(i + width - 1, i + width - 1 + right));
#pragma unroll 4
            for (int i = max(low, base + 1); i < high; ++i) {
                sum = __dadd_rn(sum, term<Metric>(i + width - 1, i + width - 1 + right));
                costs[i - first] = __dadd_rn(costs[i - first], sum);
            }
        }
    }
};

// Channel c, point i of series s of a set is values[(s * C + c) * stride + i], and window i begins there: a set has
// width - 1 points more than its lengths say. Pair p is series pairs[2 p] of the left set and pairs[2 p + 1] of the right
// one. `points`: see band_reach; nullptr is no band.
//
// One block: one warp, with a grid stride over the pairs. Shared memory: the costs. `edges`: memory of 2 `edge_stride`
// values for each block: of the last row of a strip the costs, and those along the paths. out[p] is written by
// the lane that has the last cell. It is one function: a step changes all that a lane holds of its row.
template <typename Metric>
__global__ void __launch_bounds__(32) along_windows(
    const double* __restrict__ left_values, const int* __restrict__ left_lengths, int left_stride,
    const double* __restrict__ right_values, const int* __restrict__ right_lengths, int right_stride,
    int n_channels, const int* __restrict__ pairs, long long n_pairs, int width,
    const int* __restrict__ points, int root, double* edges, int edge_stride,
    double* __restrict__ out) {
    __shared__ double costs[DIAGONALS][ROWS + 1];
    const double inf = Arithmetic<double>::infinity();
    const int lane = threadIdx.x, reach = width / 2;
    const int most_rows = width < ROWS ? ROWS / width * width : ROWS;
    double* const edge = edges + 2LL * edge_stride * blockIdx.x;
    double* const edge_along = edge + edge_stride;
    for (long long p = blockIdx.x; p < n_pairs; p += gridDim.x) {
        const int a = pairs[2 * p], b = pairs[2 * p + 1];
        WindowPair pair{left_values + (long long)a * n_channels * left_stride,
                        right_values + (long long)b * n_channels * right_stride,
                        left_lengths[a], right_lengths[b], left_stride, right_stride,
                        n_channels, width};
        if (pair.swapped(lane))
            pair = {pair.y, pair.x, pair.m, pair.n, pair.y_stride, pair.x_stride, n_channels, width};
        const int n = pair.n, m = pair.m;
        const int radius = points ? band_reach(points, n, m) : n + m;
        for (int j = lane; j < m; j += 32) edge[j] = edge_along[j] = inf;
        __syncwarp();
        // strips begin with blocks, of which one may have several
        for (int first = 0, stop; first < n; first = stop) {
            stop = min(n, first + most_rows);
            if (width > ROWS) stop = min(stop, (first / width + 1) * width);
            const int row = first + lane;
            const int low = max(0, first - radius), high = min(m, stop + radius);
            double left = inf, value = inf, left_along = inf, along = inf;
            double diagonal = inf, diagonal_along = inf;
            if (lane == 0 && low > 0) {
                diagonal = edge[low - 1];
                diagonal_along = edge_along[low - 1];
            }
            pair.fill<Metric>(first, stop, low - 32 + lane, costs[lane]);
            const int n_steps = high - low + stop - first - 1;
            for (int begin = 0; begin < n_steps; begin += 32) {
                pair.fill<Metric>(
                    first, stop, low + begin + lane, costs[(begin + 32 + lane) % DIAGONALS]);
                __syncwarp();
                for (int d = begin; d < min(n_steps, begin + 32); ++d) {
                    const int column = low + d - lane;
                    double up = __shfl_up_sync(ALL, value, 1);
                    double up_along = __shfl_up_sync(ALL, along, 1);
                    if (row < stop && column >= low && column < high) {
                        if (lane == 0) {
                            up = edge[column];
                            up_along = edge_along[column];
                        }
                        // of equal steps the diagonal, then the one from above
                        const bool inner = row > 0 && column > 0;
                        const bool across = inner && diagonal <= up && diagonal <= left;
                        const bool down = row > 0 && (column == 0 || up <= left);
                        double best = across ? diagonal : down ? up : left;
                        double before = across ? diagonal_along : down ? up_along : left_along;
                        if (row == 0 && column == 0) best = before = 0.0;
                        const double cost = costs[(d - 2 * lane + DIAGONALS + 32) % DIAGONALS][lane];
                        value = __dadd_rn(cost, best);
                        along = __dadd_rn(pair.term<Metric>(row + reach, column + reach), before);
                        if (abs(row - column) > radius) value = inf;
                        diagonal = up;
                        diagonal_along = up_along;
                        left = value;
                        left_along = along;
                        if (row == stop - 1) {
                            edge[column] = value;
                            edge_along[column] = along;
                        }
                        if (row == n - 1 && column == m - 1) out[p] = root ? sqrt(along) : along;
                    }
                }
                // nobody replaces the oldest costs while others read them
                __syncwarp();
            }
        }
        __syncwarp();
    }
}
