// Dynamic time warping of a series and runs of circular shifts of another.
//
// An item is a query of n points, a candidate of m, and the shifts `first` to `first + count` - 1 of
// the candidate. All these shifts lie in m + count - 1 columns of the candidate, which goes on from
// its beginning; a path may begin at any of the first `count` columns and end at any of the last
// `count`:
//
//   row 0        s . . . . . .
//                . begin . .         .           The cheapest such path costs no more than the
//                              . . .   .         best path of each of the shifts, and with a
//   row n - 1                  . . end . .       single shift it is the best path.
//
// One thread: a lane with K columns. One warp: 32 / G groups with
// an item each. One block: as many warps as launched (THREADS). Shared memory: none. Lane 0 of a
// group writes out[p] of its item p, and lowers least[query * n_cols + candidate] (where given).
#include "elastic/shifts.cuh"
#include "elastic/wavefront.cuh"

// As blocks_per_sm; the columns that may begin and end a path take some registers more.
__host__ __device__ constexpr int turns_blocks(int K, int C) {
    return K * (C + 1) <= 72 ? 3 : 2;
}

// Channel c, point i of series s of a set is values[(s * C + c) * stride + i], of as many points as
// `row_lengths` and `col_lengths` say; memory before and behind a set of rows may be read. With items = nullptr, item p is all shifts of candidate p % n_cols for
// query p / n_cols. `edges` has room for edge_stride values of every group of the grid (STRIPS only).
template <int K, int C, int ROWS, bool STRIPS, typename Cell>
__global__ void __launch_bounds__(THREADS, turns_blocks(K, C)) turns(
    const float* __restrict__ rows, const int* __restrict__ row_lengths, int row_stride,
    const float* __restrict__ cols, const int* __restrict__ col_lengths, int col_stride, int n_cols, const Turns* __restrict__ items, int n_items, int G, float* edges, int edge_stride,
    float* least, float* __restrict__ out, Cell cell) {
    static_assert(!Cell::PLACED && !Cell::LOOKS_BACK && !Cell::BORDERS, "a column has another offset in each of the shifts");
    const float inf = Arithmetic<float>::infinity();
    const Groups groups(G);
    const int lane = groups.lane;
    Wavefront<float, K, C, ROWS, STRIPS, Cell, false> wave;
    wave.columns.cell = cell;
    wave.lane = lane;
    wave.G = G;
    wave.edge = STRIPS ? edges + (long long)groups.own * edge_stride : nullptr;
    wave.row0 = 0;
    wave.reach = 0;

    // groups of the last warp that have no item do the last one again
    for (long long base = 0; base + groups.first < n_items; base += groups.count) {
        const int p = (int)min(base + groups.own, n_items - 1LL);
        Turns item{p / n_cols, p % n_cols, 0, 0};
        if (items) item = items[p];
        const int n = row_lengths[item.query], length = col_lengths[item.candidate];
        if (!items) item.count = length;
        const int m = length + item.count - 1;
        const float* series = rows + (long long)item.query * C * row_stride;
        const float* own = cols + (long long)item.candidate * C * col_stride;
        float result = inf;

        for (int first = 0; first < m; first += G * K) {
            const int last = min(m - first, G * K) - 1;  // last column of the strip
            const int begin = lane * K;                  // first column of this lane
            const float* points = series - ROWS * lane;
            wave.first = first;
            // columns beyond the last hold anything
            int place = (item.first + first + begin) % length;
#pragma unroll
            for (int k = 0; k < K; ++k) {
#pragma unroll
                for (int c = 0; c < C; ++c) wave.columns.y[c][k] = own[c * col_stride + place];
                place = place + 1 == length ? 0 : place + 1;
            }
            wave.columns.fill(inf);
            wave.above = inf;
            wave.diagonal = inf;
            // the step in which this lane is done
            const int stop = (n - 1) / ROWS + min(lane, last / K);
            wave.template sweep<true>(
                points, row_stride, stop, n,
                [&](float) {
                    // above the first row is 0 left of the columns where a path may begin
                    const int free = item.count - 1 - first - begin;
#pragma unroll
                    for (int k = 0; k < K; ++k) wave.columns.D[k] = k < free ? 0.0f : inf;
                    wave.diagonal = free >= 0 ? 0.0f : inf;
                },
                [&] {
#pragma unroll
                    for (int k = 0; k < K; ++k) {
                        const int j = begin + k;
                        const float here = wave.columns.D[k];
                        if (j <= last && first + j >= length - 1 && here < result) result = here;
                    }
                });
        }
        result = group_least(result, G);
        if (lane == 0) {
            out[p] = result;
            if (least) lower(least + (long long)item.query * n_cols + item.candidate, result);
        }
    }
}
