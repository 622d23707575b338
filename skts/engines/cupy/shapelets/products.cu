// Shapelets: the walk of `segments` by products of matrices.
//
// Two rows down, the covariance of two windows moves two columns right and changes by four products,
//
//     cov(i, j) = cov(i - 2, j - 2) + p_i q_j + r_i s_j + p_{i-1} q_{j-1} + r_{i-1} s_{j-1},
//
// which are an entry of a product of matrices with four columns and four rows: of rows i and i + 1 of eight series
// (16 x 4), and of eight columns of another one (4 x 8). A warp has eight series a, one b and a length. It walks down
// two rows of all eight at a time, in a strip of 8 T columns of b. The lanes 4 m to 4 m + 3 have the covariances of series m,
// each those of 2 T neighbouring columns at both rows:
//
//               quarter 0      quarter 1      quarter 2      quarter 3
//     row i     0 ... 2T-1     2T ... 4T-1    4T ... 6T-1    6T ... 8T-1
//     row i+1   0 ... 2T-1     2T ... 4T-1    4T ... 6T-1    6T ... 8T-1
//
// Product t makes columns 2t and 2t + 1 of each quarter from those of product t - 1, so that all stay in registers; the last
// ones go to the next quarter, and those of the last quarter through memory (`carry`) to the next strip.
#include "include/products.cuh"
#include "shapelets/pairs.cuh"

template <bool B>
struct Bool {
    static constexpr bool value = B;
};

// Series of a warp, and rows between two stores of least scores.
constexpr int SERIES = 8, ROWS = 4;

// What a lane knows of its pair of series.
struct Lines {
    const double* rows;              // `Row`s of a
    const double *forward, *backward, *mean_a, *mean_b;
    int na, nb, length;

    // the covariances of window 0 of a with window j of b, and of window i of a with window 0 of b
    __device__ __forceinline__ double first_row(int j) const {
        return j < nb ? __ldg(forward + j) - length * (__ldg(mean_a) * __ldg(mean_b + j)) : 0.0;
    }
    __device__ __forceinline__ double first_column(int i) const {
        return i < na ? __ldg(backward + i) - length * (__ldg(mean_a + i) * __ldg(mean_b)) : 0.0;
    }
};

// What two rows of a bring to the walk: the factors of their steps, of which this lane has those of one column of the first
// matrix, weights, and on the left of the strip the covariances that the walk is to find there, two for each row.
struct TwoRows {
    double steps[2], weights[2];
    double2 entering[2];

    // `rows` are the `Row`s of a; `own` is the first factor that this lane has of row 0
    __device__ __forceinline__ void fetch(
        const double* __restrict__ rows, const double* __restrict__ own, const double2* carry, int i, bool enters
    ) {
#pragma unroll
        for (int h = 0; h < 2; ++h) {
            steps[h] = __ldg(own + 4 * (i + h));
            weights[h] = __ldg(rows + 4 * (i + h) + 2);
            if (enters) entering[h] = __ldcg(carry + i + h);
        }
    }
};

// A strip: covariances of two rows, of columns 2t and 2t + 1 of this lane in c[t], first those of one row, then of the other;
// the second matrix, weights of columns, and their least scores.
template <int T>
struct Tiles {
    double c[T][4], b[T], weight[2 * T];
    int least[2 * T];

    // Two rows down. Least scores of both go to `low`. ALL_THERE tells that all rows and columns are windows; else scores of
    // those that are not are raised to NOTHING by the `lowest` of their column and row.
    template <bool ALL_THERE>
    __device__ __forceinline__ void step(
        const TwoRows& rows, int quarter, const int (&lowest)[2 * T], const int (&lowest_of_row)[2], int (&low)[2]
    ) {
        double left[4];
#pragma unroll
        for (int e = 0; e < 4; ++e) left[e] = __shfl_up_sync(ALL, c[T - 1][e], 1);
        if (quarter == 0) {
            left[0] = rows.entering[0].x, left[1] = rows.entering[0].y;
            left[2] = rows.entering[1].x, left[3] = rows.entering[1].y;
        }
#pragma unroll
        for (int t = T - 1; t > 0; --t) multiply_add(c[t], rows.steps, b[t], c[t - 1]);
        multiply_add(c[0], rows.steps, b[0], left);
        low[0] = low[1] = NOTHING;
#pragma unroll
        for (int k = 0; k < 2 * T; ++k) {
            int scores[2];
#pragma unroll
            for (int h = 0; h < 2; ++h) {
                scores[h] = bits_of(fma(c[k / 2][2 * h + k % 2] * -rows.weights[h], weight[k], 1.0));
                if (!ALL_THERE) scores[h] = max(max(scores[h], lowest[k]), lowest_of_row[h]);
                low[h] = min(low[h], scores[h]);
            }
            least[k] = min(least[k], min(scores[0], scores[1]));
        }
    }
};

// The least of four rows over the four lanes of a series, of which each has what it found: row `quarter`.
__device__ __forceinline__ int least_of_rows(const int (&low)[ROWS], int quarter) {
    const bool odd = quarter & 1, high = quarter & 2;
    int kept[2];
#pragma unroll
    for (int h = 0; h < 2; ++h) {
        const int given = odd ? low[2 * h] : low[2 * h + 1];
        kept[h] = min(odd ? low[2 * h + 1] : low[2 * h], __shfl_xor_sync(ALL, given, 1));
    }
    const int given = high ? kept[0] : kept[1];
    return min(high ? kept[1] : kept[0], __shfl_xor_sync(ALL, given, 2));
}

// Least scores of pairs of series, as `segments` has them: one warp, one b and length, and the eight series a of a group of
// the block of candidates; strips of 8 T columns one after the other. Block (x, group, z) has 4 warps of one group and length.
//
// carry: for each pair, what enters the strip on the left in each row, two covariances: those which the walk would have
// two rows above, one and two columns to the left of the strip. It has edge + CHUNK places for each pair.
template <int T>
__global__ void __launch_bounds__(128, T > 6 ? 2 : 3) products(
    const __grid_constant__ Windows windows, const int* __restrict__ sizes, const __grid_constant__ Block block,
    const double* __restrict__ forward, const double* __restrict__ backward, int edge, double2* carry,
    int* __restrict__ heads
) {
    const int lane = threadIdx.x & 31, quarter = lane & 3, z = blockIdx.z;
    const int group = blockIdx.y * SERIES, b = blockIdx.x * 4 + threadIdx.x / 32;
    if (b >= block.n_series) return;
    const int n_block = block.n_block, n_series = block.n_series, stride = block.stride;
    const int length = block.lengths[z], n_windows = stride - (length - block.lengths[0]);
    const int there = b - block.first;  // place of b in the block
    const bool inside = there >= 0 && there < n_block;
    const long long from_b = (long long)z * n_series + b;
    Lines lines;
    lines.nb = sizes[b] - length + 1, lines.length = length;
    // scores of windows that are not there, and of a series with itself
    int many = min(SERIES, n_block - group);
    for (int own = group; own < group + many; ++own) {
        if (inside && there < own) break;
        const int na = sizes[block.first + own] - length + 1;
        int* const of_rows = heads + (from_b * n_block + own) * stride;
        write_nothing(of_rows, inside && there == own ? 0 : na, n_windows, lane);
        if (inside && there != own)
            write_nothing(heads + (((long long)z * n_series + block.first + own) * n_block + there) * stride, lines.nb, n_windows, lane);
    }
    // of the series of the block only those before b: another warp has the pair of those behind it
    if (inside) many = min(many, there - group);
    if (many <= 0) return;
    // lanes without a series of their own walk with the last one, and write nothing
    const bool paired = lane / 4 < many;
    const int own = group + min(lane / 4, many - 1), a = block.first + own;
    const long long from_a = (long long)z * n_series + a, to_b = ((long long)z * n_block + own) * n_series + b;
    lines.na = sizes[a] - length + 1;
    lines.rows = (const double*)(windows.rows + from_a * (stride + CHUNK));
    lines.mean_a = windows.mean + from_a * stride, lines.mean_b = windows.mean + from_b * stride;
    lines.forward = forward + to_b * edge;
    lines.backward = backward + (from_b * n_block + own) * edge;
    const int na = lines.na, nb = lines.nb;
    const int longest = warp_largest(na), shortest = -warp_largest(-na);
    double2* const mine = carry + to_b * (edge + CHUNK);
    int* const of_rows = heads + (from_b * n_block + own) * stride;
    int* const of_columns = heads + (from_a * n_block + there) * stride;
    const double *const q = windows.q + from_b * stride, *const s = windows.s + from_b * stride;
    const double* const w = windows.w + from_b * stride;
    // what enters the first strip
    if (paired)
        for (int i = quarter; i < na; i += 4)
            mine[i] = make_double2(lines.first_column(i), i ? lines.first_column(i - 1) : lines.first_row(1));
    __syncwarp();

    // of the row before for the last two columns of the first matrix; the step to the first row is 0
    const double* const factors = lines.rows - 4 * (quarter >> 1) + (quarter & 1);
    for (int start = 0; start < nb; start += 8 * T) {
        const int from = start + quarter * 2 * T;  // the first column of this lane, and of the second matrix
        const int column = start + lane / 8 * 2 * T + (lane / 4 & 1);
        const bool more = nb - start > 8 * T;
        Tiles<T> tiles;
#pragma unroll
        for (int t = 0; t < T; ++t) {
            const int j = column + 2 * t - (quarter >> 1);
            tiles.b[t] = j >= 0 && column + 2 * t < nb ? __ldg((quarter & 1 ? s : q) + j) : 0.0;
#pragma unroll
            for (int e = 0; e < 2; ++e) {
                const int k = from + 2 * t + e;
                // as if they stood two rows above and two columns to the left
                tiles.c[t][e] = lines.first_row(k + 2), tiles.c[t][2 + e] = lines.first_row(k + 1);
                tiles.weight[2 * t + e] = k < nb ? __ldg(w + k) : 0.0;
                tiles.least[2 * t + e] = NOTHING;
            }
        }
        int lowest[2 * T];
#pragma unroll
        for (int k = 0; k < 2 * T; ++k) lowest[k] = from + k < nb ? -NOTHING : NOTHING;
        TwoRows rows;
        auto fetch = [&](int i) { rows.fetch(lines.rows, factors, mine, i, quarter == 0); };
        rows.steps[0] = 0, rows.steps[1] = __ldg(factors + 4);
        rows.weights[0] = __ldg(lines.rows + 2), rows.weights[1] = __ldg(lines.rows + 6);
        if (quarter == 0) rows.entering[0] = __ldcg(mine), rows.entering[1] = __ldcg(mine + 1);
        auto walk = [&](auto all, int i) {
            constexpr bool ALL_THERE = decltype(all)::value;
            int low[ROWS];
#pragma unroll
            for (int u = 0; u < ROWS; u += 2) {
                const TwoRows now = rows;
                fetch(i + u + 2);
                const int of_row[2] = {i + u < na ? -NOTHING : NOTHING, i + u + 1 < na ? -NOTHING : NOTHING};
                int found[2];
                tiles.template step<ALL_THERE>(now, quarter, lowest, of_row, found);
                low[u] = found[0], low[u + 1] = found[1];
                if (more) {
                    __syncwarp();  // what these rows found there has been read
                    if (quarter == 3 && paired) {
                        __stcg(mine + i + u + 2, make_double2(tiles.c[T - 1][0], tiles.c[T - 1][1]));
                        __stcg(mine + i + u + 3, make_double2(tiles.c[T - 1][2], tiles.c[T - 1][3]));
                    }
                }
            }
            const int least = least_of_rows(low, quarter), row = i + quarter;
            if (paired && (ALL_THERE || row < na)) {
                if (start == 0) of_rows[row] = least;
                else atomicMin(of_rows + row, least);
            }
        };
        int i = 0;
        if (nb - start >= 8 * T)
            for (; i + ROWS <= shortest; i += ROWS) walk(Bool<true>(), i);
        for (; i < longest; i += ROWS) walk(Bool<false>(), i);
        if (paired && inside)
#pragma unroll
            for (int k = 0; k < 2 * T; ++k)
                if (from + k < nb) of_columns[from + k] = tiles.least[k];
        __syncwarp();
        if (more && quarter == 0) {
            const int next = start + 8 * T;
            if (paired) {
                __stcg(mine, make_double2(lines.first_row(next), lines.first_row(next + 1)));
                __stcg(mine + 1, make_double2(lines.first_row(next - 1), lines.first_row(next)));
            }
        }
        __syncwarp();
    }
}
