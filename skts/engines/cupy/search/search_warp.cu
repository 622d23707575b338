// Warping of one query against many windows of a long series: a register wavefront without pauses.
//
// As in `dtw.cu` a group of G lanes owns the columns of the warping matrix, lane l K of them, and
// keeps the current row there; rows stream by, four a step, lane l one step behind lane l - 1. Here
// the columns are the query's, which are loaded once, and the rows are the points of windows,
// normalised as they come, with one multiply-add for all K cells. Windows follow each other without
// a pause: when lane 0 is through with a window it begins the next one, while the others, one after the
// other, still end theirs:
//
//     step        0     1     2     3     4     5     6
//     lane 0     a0-3  a4-7  a8-b  b0-3  b4-7  b8-b  c0-3      windows a, b, c of twelve points
//     lane 1      -    a0-3  a4-7  a8-b  b0-3  b4-7  b8-b
//     lane 2      -     -    a0-3  a4-7  a8-b  b0-3  b4-7
//
// No lane is ever masked. Columns in front that the query does not fill hold infinity, and so do their
// cells; so the last column is always the last one of lane G - 1. The last step of a window may hold
// rows of whatever follows, which nobody uses.
//
// Every `period` steps a group looks at the stairs of cells that its lanes computed last: the rows they
// keep, and of the columns between two lanes the cells that the right one has yet to meet. Every path
// crosses them, and costs only grow. Where the least of them is more than a match may cost, the
// group gives the window up: lane 0 begins the next one, then lane 1, and so on. Groups of a warp
// keep step, but not window.
//
// One thread: a lane. One warp: 32 / G groups. One block: 4 warps. A group takes runs of windows that
// are neighbours in the list, the first by its number, others from the counter `taken`. Shared memory: none.
// out[i] is written by lane G - 1 of the group that did window i, infinite where it was given up.
#include "include/cells.cuh"
#include "include/constants.cuh"
#include "include/warp.cuh"

constexpr int THREADS = ELASTIC_THREADS;

// Rows of a step.
constexpr int ROWS = 4;

template <int N>
__device__ __forceinline__ void fill(float (&values)[N], float value) {
#pragma unroll
    for (int i = 0; i < N; ++i) values[i] = value;
}

// The cells of ROWS rows, P at a time: they follow each other down a column, but wait for each other
// along a diagonal alone, so that P chains of cells are in flight. `left` is the column left of those
// of this lane, and becomes its last one; `diagonal` is above `left`.
template <int P, int K, typename Cell>
__device__ __forceinline__ void rows_of_step(
    float (&D)[K], float& diagonal, float (&left)[ROWS], const float (&x)[ROWS][1],
    const float (&q)[K], const Cell& cell) {
#pragma unroll
    for (int r = 0; r < ROWS; r += P) {
        float beside = diagonal;
        diagonal = left[r + P - 1];
#pragma unroll
        for (int k = 0; k < K; ++k) {
            float across = beside, above = beside = D[k];
#pragma unroll
            for (int p = r; p < r + P; ++p) {
                const auto best = cells_before<Cell>(across, above, left[p]);
                across = left[p];
                above = left[p] = cell.join(CellPoints<float, 1>(x[p], &q[k]), best);
            }
            D[k] = above;
        }
    }
}

// The cost of a window whose last step has been done: the last column in its last row.
__device__ __forceinline__ void write_cost(
    float* out, const float (&edge)[ROWS], int length, bool given_up) {
    float cost = edge[0];
#pragma unroll
    for (int r = 1; r < ROWS; ++r)
        if (r == (length - 1) % ROWS) cost = edge[r];
    *out = given_up ? Arithmetic<float>::infinity() : cost;
}

// The next window of a group's run, or the first of a new run: lane 0.
__device__ __forceinline__ void take_window(
    int& slot, int& more, int run, int n_groups, int total, int* taken) {
    if (more > 0) {
        ++slot;
        --more;
    } else if (slot < total) {
        slot = n_groups * run + atomicAdd(taken, run);
        more = run - 1;
    }
}

// The least of the stairs of cells that every path of a group's window crosses.
template <int K>
__device__ __forceinline__ float least_of_stairs(
    const float (&D)[K], float diagonal, const float (&edge)[ROWS], int G) {
    using A = Arithmetic<float>;
    float least = diagonal;
#pragma unroll
    for (int r = 0; r < ROWS; ++r) least = A::min3(least, edge[r], edge[r]);
#pragma unroll
    for (int k = 0; k + 1 < K; k += 2) least = A::min3(least, D[k], D[k + 1]);
    for (int other = G / 2; other > 0; other /= 2)
        least = A::min3(least, least, __shfl_xor_sync(ALL, least, other));
    return least;
}

// `query`: G K points, the columns in front infinite; a window has more than G steps, or G is 1.
// entries[i]: factor and summand of window i, where it lies in `line`, and the cost above which it is no
// match. There are *count windows, or n without `count`. B: blocks that must fit on a multiprocessor,
// P: rows in flight.
template <int K, int B, int P, typename Cell>
__global__ void __launch_bounds__(THREADS, B) warp_windows(
    const float* __restrict__ query, int length, int G, const float* __restrict__ line,
    const int4* __restrict__ entries, const int* __restrict__ count, int n, int period,
    int* taken, float* __restrict__ out, Cell cell) {
    static_assert(
        !Cell::BORDERS && !Cell::LOOKS_BACK && !Cell::PLACED,
        "windows follow each other without a pause");
    const float inf = Arithmetic<float>::infinity();
    const int lane = threadIdx.x & (G - 1);
    const int n_groups = gridDim.x * THREADS / G;
    const int total = count ? *count : n;
    const int run = total >= 16 * n_groups ? 4 : 1;
    if ((blockIdx.x * THREADS + (threadIdx.x & ~31)) / G * run >= total) return;
    const int steps = (length + ROWS - 1) / ROWS;
    // the free corner lies in front of the first point of the query, in the row above the first
    const int corner = G * K - length - 1 - lane * K;
    float q[K], D[K];
#pragma unroll
    for (int k = 0; k < K; ++k) q[k] = query[lane * K + k];
    fill(D, inf);
    float diagonal = inf;               // left of column 0 in the row above
    float edge[ROWS];                   // last column of the rows of the step before
    float factor = 0, summand = 0, limit = inf, raw[ROWS];
    fill(edge, inf);
    fill(raw, 0.0f);
    // windows: the one under way, -1 for none, and the next, of which all is known
    int slot = -1, next_slot = (blockIdx.x * THREADS + threadIdx.x) / G * run;
    int4 next = entries[min(next_slot, total - 1)];
    const float* at = line;
    int more = run - 1;        // windows of the run behind the next; lane 0 counts
    int left_over = lane + 1;  // steps until the next window; lanes begin one after the other
    bool given_up = false;
    for (;;) {
#pragma unroll 1
        for (int t = period; t > 0; --t) {
            float x[ROWS][1], left[ROWS];
#pragma unroll
            for (int r = 0; r < ROWS; ++r) x[r][0] = fmaf(raw[r], factor, summand);
            const bool ends = left_over == 1;
            at = ends ? line + next.z : at + ROWS;
#pragma unroll
            for (int r = 0; r < ROWS; ++r) raw[r] = at[r];
#pragma unroll
            for (int r = 0; r < ROWS; ++r) {
                left[r] = __shfl_up_sync(ALL, edge[r], 1, G);
                left[r] = lane == 0 ? inf : left[r];
            }
            rows_of_step<P>(D, diagonal, left, x, q, cell);
#pragma unroll
            for (int r = 0; r < ROWS; ++r) edge[r] = left[r];
            const int offered = __shfl_sync(ALL, next_slot, 0, G);
            --left_over;
            if (ends) {
                if (lane == G - 1 && slot >= 0) write_cost(out + slot, edge, length, given_up);
#pragma unroll
                for (int k = 0; k < K; ++k) D[k] = k == corner ? 0.0f : inf;
                diagonal = corner == -1 ? 0.0f : inf;
                factor = __int_as_float(next.x);
                summand = __int_as_float(next.y);
                limit = __int_as_float(next.w);
                slot = next_slot < total ? next_slot : -1;
                if (lane > 0) next_slot = offered;
                else take_window(next_slot, more, run, n_groups, total, taken);
                next = entries[min(next_slot, total - 1)];
                left_over = steps;
                given_up = false;
            }
        }
        if (!__any_sync(ALL, slot >= 0)) return;
        // lanes are in one window once lane 0 has done G steps of it
        const bool together = steps - __shfl_sync(ALL, left_over, 0, G) >= G;
        const float least = least_of_stairs(D, diagonal, edge, G);
        if (together && least > limit) {
            given_up = true;
            left_over = lane + 1;
        }
    }
}
