// The best warping path of one pair of series, in float64.
//
// The warping matrix goes in strips of up to PATH_STRIP rows. On the way down only the last row of each
// strip is kept (`marks`); on the way back every strip that the path crosses is filled in once more,
// with the step that leads into each cell, and `walk` follows these to the strip above.
#include "include/stepped_cells.cuh"
#include "include/constants.cuh"

// Steps that lead into a cell: the path begins there; from the diagonal, from above, from the left.
constexpr unsigned char BEGIN = 0, DIAGONAL = 1, ABOVE = 2, LEFT = 3;

// borders: sums of steps along the row above the first, to top[j + 1], and along the column before the first, to
// front[i], as far as the band reaches; what is beyond is left as it is. One block: threads 0 and 1, each of which goes
// along one series.
template <typename Cell>
__global__ void borders(
    const double* __restrict__ x, const double* __restrict__ y, int n_channels, int x_stride,
    int y_stride, int n, int m, int radius, Cell cell, double* __restrict__ top,
    double* __restrict__ front) {
    static_assert(Cell::BORDERS, "others have none");
    const bool down = threadIdx.x == 1;
    if (threadIdx.x > 1) return;
    const double* points = down ? x : y;
    const int stride = down ? x_stride : y_stride, count = min(down ? n : m, radius);
    double* out = down ? front : top + 1;
    Border<Cell> border{points, n_channels, stride, count, 0};
    for (int k = 0; k < count; ++k) out[k] = border.next(cell, k);
}

// strip: rows first_row to first_row + n_rows - 1 of the warping matrix, within columns `begin` to
// `stop` - 1; no cell outside these is in the band.
//
// One block: a strip, as an antidiagonal wavefront. One thread: a row; in step d thread t is at
// column begin + d - t, so that the cell above is what thread t - 1 had in step d - 1. Shared memory: the
// values of the last two steps. `above`: the row before the strip, its border D(., -1) in front.
// The last thread writes `below`, its row in the same layout. `front`: the column before the first, where paths may
// leave out points (BORDERS). Each thread writes its value in the
// last column to right[row] (where `right` is given) and its steps to steps[d * blockDim.x + t] (where
// `steps` is given). Channels are x_stride and y_stride apart.
template <typename Cell>
__global__ void __launch_bounds__(PATH_STRIP) strip(
    const double* __restrict__ x, const double* __restrict__ y, int n_channels, int x_stride,
    int y_stride, int first_row, int n_rows, int begin, int stop, int m, int radius, Cell cell,
    int free_columns, int free_rows, const double* __restrict__ above,
    const double* __restrict__ front, double* __restrict__ below, double* __restrict__ right,
    unsigned char* __restrict__ steps) {
    typedef Value<Cell, double> V;
    __shared__ double shared[2][PATH_STRIP];
    const double inf = Arithmetic<double>::infinity();
    const int t = threadIdx.x, row = first_row + t;
    const bool mine = t < n_rows;
    // left border of this row, and of the row before
    double left = begin == 0 && free_rows ? 0.0 : inf;
    double diagonal = t == 0 ? above[begin] : left;
    if (Cell::BORDERS && begin == 0 && mine) {
        left = front[row];
        if (t > 0) diagonal = front[row - 1];
    }
    if (t == n_rows - 1) below[begin] = left;
    const double point = mine ? x[row] : 0.0;
    if constexpr (Cell::OWN)
        cell.meet(x[(long long)n_channels * x_stride], y[(long long)n_channels * y_stride]);
    // what the next step needs from memory is fetched a step early
    auto inside = [&](int column) { return mine && column >= begin && column < stop; };
    double next_y = inside(begin - t) ? y[begin - t] : 0.0;
    double next_above = t == 0 ? above[begin + 1] : 0.0;
    for (int d = 0; d < stop - begin + n_rows - 1; ++d) {
        const int column = begin + d - t;
        const double here_y = next_y, here_above = next_above;
        if (inside(column + 1)) {
            next_y = y[column + 1];
            if (t == 0) next_above = above[column + 2];
        }
        if (inside(column)) {
            const double up = t == 0 ? here_above : shared[(d + 1) & 1][t - 1];
            const SeriesPoints<double> at{point, here_y, x + row, y + column, n_channels, x_stride,
                                          y_stride, column - row, row, column};
            if (steps) {
                // as the CPU engine: where steps have one price, the least of the cells before, else the least with
                // its step
                Before<V> ways{V(diagonal), V(up), V(left)};
                if constexpr (Cell::UNIFORM && Cell::PLACED) {
                    ways = {cell.join(at, ways.diagonal), cell.join(at, ways.up),
                            cell.join(at, ways.left)};
                } else if constexpr (!Cell::UNIFORM) {
                    const V far = Arithmetic<V>::infinity();
                    ways = {cell.join(at, Before<V>{ways.diagonal, far, far}),
                            cell.join(at, Before<V>{far, ways.up, far}),
                            cell.join(at, Before<V>{far, far, ways.left})};
                }
                const bool inside = Cell::BORDERS || (row > 0 && column > 0);
                unsigned char step = LEFT;
                if (!Cell::BORDERS && ((row == 0 && (column == 0 || free_columns)) ||
                                       (column == 0 && free_rows)))
                    step = BEGIN;
                else if (inside && ways.diagonal <= ways.up && ways.diagonal <= ways.left)
                    step = DIAGONAL;
                else if ((row > 0 || Cell::BORDERS) &&
                         ((column == 0 && !Cell::BORDERS) || ways.up <= ways.left))
                    step = ABOVE;
                steps[(long long)d * blockDim.x + t] = step;
            }
            double value = cell.join(at, cells_before<Cell>(V(diagonal), V(up), V(left)));
            if (abs(row - column) > radius) value = inf;
            diagonal = up;
            left = value;
            shared[d & 1][t] = value;
            if (t == n_rows - 1) below[column + 1] = value;
            if (right && column == m - 1) right[row] = value;
        }
        __syncthreads();
    }
}

// walk: the part of the path within a strip, backwards.
//
// One thread. `state`: row, column, points so far (row or column -1: the path has begun). Appends points to `path`,
// with `matches` only those from which the path goes on by the diagonal. `begin` and `threads` are those of the strip.
extern "C" __global__ void walk(
    const unsigned char* __restrict__ steps, int first_row, int begin, int threads, int matches,
    long long* __restrict__ state, long long* __restrict__ path) {
    long long i = state[0], j = state[1], length = state[2];
    while (i >= first_row && j >= 0) {
        const unsigned char step = steps[(j - begin + i - first_row) * threads + i - first_row];
        if (!matches || step == DIAGONAL) {
            path[2 * length] = i;
            path[2 * length + 1] = j;
            ++length;
        }
        if (step == BEGIN) i = -1;
        if (step == DIAGONAL || step == ABOVE) --i;
        if (step == DIAGONAL || step == LEFT) --j;
    }
    state[0] = i;
    state[1] = j;
    state[2] = length;
}
