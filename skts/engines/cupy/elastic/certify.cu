// Certified costs under warping: the plain recurrence, one pair of series at a time, in float64.
//
// Searches keep columns or offsets in registers, pass edges between lanes and mask bands (dtw.cu,
// band.cu, narrow.cu, turns.cu). An error in there must not certify itself, so what decides an
// answer is computed here in another form: along the antidiagonals d = i + j of one matrix, whose
// cells do not depend on each other. A band only shortens the antidiagonals. Entry i + 1 of an
// antidiagonal is row i:
//
//     d - 2   two[i]     D(i-1,j-1)
//     d - 1   one[i]     D(i-1,j)          one[i+1]   D(i,j-1)
//     d       now[i+1]   D(i,j)
//
// One block: a pair, with a grid stride; its threads share the cells of an antidiagonal. Shared
// memory: three antidiagonals, unless `room` is given. Thread 0 writes the result.
#include "include/stepped_cells.cuh"

// Channel c, point i of series s of a set is values[(s * C + c) * stride + i].
//
// Item p is a row series items[p * width], a column series items[p * width + 1], and with more than
// two numbers the circular shift items[p * width + 2] of the column series. `points`: see
// band_reach; nullptr is no band. `free_columns`, `free_rows`: a path may begin and end at any point
// of the column series, or of the row series. out[p] (where given) receives the accumulated cost, or
// with `root` the root of it; least[row * n_cols + column] (where given) is lowered to the cost.
// `room`: memory for three antidiagonals of `span` values in every block; nullptr is shared memory.
template <typename Cell>
__global__ void __launch_bounds__(1024) certify(
    const double* __restrict__ row_values, const int* __restrict__ row_lengths, int row_stride,
    const double* __restrict__ col_values, const int* __restrict__ col_lengths, int col_stride,
    int n_channels, int n_cols, const int* __restrict__ items, long long n_items, int width,
    const int* __restrict__ points, Cell cell, int free_columns, int free_rows, int root,
    double* room, int span, double* __restrict__ out, double* least) {
    typedef Value<Cell, double> V;
    const int memory_channels = n_channels + Cell::OWN;
    extern __shared__ double shared[];
    const double inf = Arithmetic<double>::infinity();
    const double above = free_columns ? 0.0 : inf, before = free_rows ? 0.0 : inf;
    double* const memory = room ? room + 3LL * span * blockIdx.x : shared;
    for (long long p = blockIdx.x; p < n_items; p += gridDim.x) {
        const int row = items[p * width], col = items[p * width + 1];
        const int shift = width > 2 ? items[p * width + 2] : 0;
        const int n = row_lengths[row], m = col_lengths[col];
        const int radius = points ? band_reach(points, n, m) : n + m;
        const double* x = row_values + (long long)row * memory_channels * row_stride;
        const double* y = col_values + (long long)col * memory_channels * col_stride;
        Cell here = cell;
        if constexpr (Cell::OWN)
            here.meet(x[(long long)n_channels * row_stride], y[(long long)n_channels * col_stride]);
        // of thread 0
        Border<Cell> top{y, n_channels, col_stride, min(m, radius), 0};
        Border<Cell> front{x, n_channels, row_stride, min(n, radius), 0};
        double *two = memory, *one = memory + span, *now = memory + 2 * span;
        for (int i = threadIdx.x; i < n + 2; i += blockDim.x) {
            two[i] = i == 0 ? 0.0 : inf;
            one[i] = i == 0 ? above : i == 1 ? before : inf;
            now[i] = inf;
        }
        __syncthreads();
        if (Cell::BORDERS && threadIdx.x == 0) {
            one[0] = top.next(here, 0);
            one[1] = front.next(here, 0);
        }
        __syncthreads();
        double end = inf;
        for (int d = 0; d < n + m - 1; ++d) {
            const int first = max(max(0, d - m + 1), (d - radius + 1) / 2);
            const int stop = min(min(n, d + 1), (d + radius) / 2 + 1);
            for (int i = first + threadIdx.x; i < stop; i += blockDim.x) {
                int j = d - i + shift;
                if (j >= m) j -= m;
                const SeriesPoints<double> at{x[i], y[j], x + i, y + j, n_channels, row_stride,
                                              col_stride, d - 2 * i, i, j};
                now[i + 1] = here.join(at, cells_before<Cell>(V(two[i]), V(one[i]), V(one[i + 1])));
            }
            // whatever the next two antidiagonals read beyond the ends of this one
            if (threadIdx.x == 0) {
                const double next_top = Cell::BORDERS ? top.next(here, d + 1) : above;
                const double next_front = Cell::BORDERS ? front.next(here, d + 1) : before;
                now[first] = first == 0 ? next_top : inf;
                now[stop + 1] = stop == d + 1 ? next_front : inf;
            }
            __syncthreads();
            if (free_columns && stop == n && now[n] < end) end = now[n];
            if (free_rows && first == d - m + 1 && now[first + 1] < end) end = now[first + 1];
            double* const oldest = two;
            two = one;
            one = now;
            now = oldest;
        }
        if (threadIdx.x == 0) {
            const double cost = free_columns || free_rows ? end : one[n];
            if (out) out[p] = root ? sqrt(cost) : cost;
            if (least) lower(least + (long long)row * n_cols + col, cost);
        }
        // nobody begins the next pair while the end of this one is read
        __syncthreads();
    }
}
