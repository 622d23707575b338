// Soft-DTW of many pairs of series in float64, and gradients.
//
// A cell holds Z = exp(-R / gamma), R the soft minimum of the costs of all paths to it, as a fraction from 1 to 2
// and a power of two, both double: see skts/engines/numba/elastic/soft.py, whose steps these are, in
// their order, with its fused multiply-adds. The matrix of a pair goes in strips of 32 rows, as in alignments.cu.
#include "include/arithmetic.cuh"
#include "include/constants.cuh"
#include "include/warp.cuh"

// The power of two of cells that no path leads to, and what is added to round.
constexpr double NOWHERE = -1152921504606846976.0, ROUND = 6755399441055744.0;
// Powers that are smaller than the largest by more than this count as if by this.
constexpr double LEAST_POWER = -512.0;

// f 2**k.
struct Scaled {
    double f, k;
};

// f 2**(k - top), for k no larger than top: the lowest bits of the sum are the exponent.
__device__ __forceinline__ double scaled(const Scaled& z, double top) {
    double below = __dsub_rn(z.k, top);
    below = below > LEAST_POWER ? below : LEAST_POWER;
    const long long bits = __double_as_longlong(__dadd_rn(below, ROUND + 1023.0));
    return __dmul_rn(z.f, __longlong_as_double((long long)((unsigned long long)bits << 52)));
}

// exp(-u) as p 2**n, for 0 <= u < 2**51.
__device__ __forceinline__ double exp_minus(double u, double& n) {
    n = __dsub_rn(fma(-u, 1.4426950408889634, ROUND), ROUND);
    const double r = fma(-n, 1.90821492927058770002e-10, fma(-n, 6.93147180369123816490e-01, -u));
    double p = fma(2.511003760607976e-08, r, 2.763263963919186e-07);
    p = fma(p, r, 2.7557240918578656e-06);
    p = fma(p, r, 2.4801485482328084e-05);
    p = fma(p, r, 0.00019841269890047113);
    p = fma(p, r, 0.0013888888952314775);
    p = fma(p, r, 0.008333333333319601);
    p = fma(p, r, 0.0416666666664881);
    p = fma(p, r, 0.1666666666666668);
    p = fma(p, r, 0.5000000000000019);
    p = fma(p, r, 1.0);
    return fma(p, r, 1.0);
}

// What each of three cells before counts in a cell.
struct Shares {
    double diagonal, up, left;
};

// A cell from its cost over gamma and the three cells before; `shares`, where it is not null, receives what each counts.
__device__ __forceinline__ Scaled next_cell(
    double u, const Scaled& diagonal, const Scaled& up, const Scaled& left, Shares* shares) {
    const double top = Arithmetic<double>::larger(Arithmetic<double>::larger(up.k, left.k), diagonal.k);
    const double above = scaled(up, top), beside = scaled(left, top), before = scaled(diagonal, top);
    double total = __dadd_rn(__dadd_rn(above, beside), before);
    if (shares) {
        // outside of the band
        total = total > 0.0 ? total : 1.0;
        *shares = {
            __ddiv_rn(before, total), __ddiv_rn(above, total), __ddiv_rn(beside, total)};
    }
    double n;
    const double p = exp_minus(u, n);
    const long long bits = __double_as_longlong(__dmul_rn(p, total));
    const double exponent =
        __dsub_rn(__longlong_as_double((bits >> 52) | 0x4330000000000000LL), 4503599627370496.0 + 1023.0);
    return {
        __longlong_as_double((bits & 0x000fffffffffffffLL) | 0x3ff0000000000000LL),
        __dadd_rn(__dadd_rn(top, n), exponent)};
}

__device__ __forceinline__ Scaled from_lane_above(const Scaled& z) {
    return {__shfl_up_sync(ALL, z.f, 1), __shfl_up_sync(ALL, z.k, 1)};
}

// Squared differences of two points, summed over channels.
__device__ __forceinline__ double squared(
    const double* x, const double* y, int n_channels, int x_stride, int y_stride) {
    double cost = 0.0;
    for (int c = 0; c < n_channels; ++c) {
        const double d = __dsub_rn(x[(long long)c * x_stride], y[(long long)c * y_stride]);
        const double square = __dmul_rn(d, d);
        cost = c == 0 ? square : __dadd_rn(cost, square);
    }
    return cost;
}

// Fill the matrix of a pair; `edge` holds m + 1 cells, the last row of the strip before with its border in front. Weights, where
// they are not null, are kept as the lanes find them: (strip, step, 3, lane).
__device__ __forceinline__ Scaled fill(
    const double* x, int n, int x_stride, const double* y, int m, int y_stride, int n_channels,
    int radius, double inverse, Scaled* edge, double* weights, int n_steps) {
    const int lane = threadIdx.x & 31;
    const Scaled nowhere{0.0, NOWHERE};
    Scaled last = nowhere;
    for (int j = lane; j <= m; j += 32) edge[j] = j == 0 ? Scaled{1.0, 0.0} : nowhere;
    __syncwarp();
    for (int first = 0; first < n; first += 32) {
        const int row = first + lane;
        // no cell of the strip that lies outside of these columns is in the band
        const int low = max(0, first - radius), stop = min(m, first + 32 + radius);
        Scaled left = nowhere, value = nowhere, diagonal = nowhere;
        if (lane == 0) diagonal = edge[low];
        double* const kept = weights ? weights + (long long)(first / 32) * n_steps * 96 : nullptr;
        for (int d = 0; d < stop - low + 31; ++d) {
            const int column = low + d - lane;
            Scaled up = from_lane_above(value);
            if (row < n && column >= low && column < stop) {
                if (lane == 0) up = edge[column + 1];
                const double cost = squared(x + row, y + column, n_channels, x_stride, y_stride);
                Shares shares;
                value = next_cell(
                    __dmul_rn(cost, inverse), diagonal, up, left, weights ? &shares : nullptr);
                if (abs(row - column) > radius) value = nowhere;
                if (weights) {
                    double* const place = kept + (long long)d * 96 + lane;
                    place[0] = shares.diagonal;
                    place[32] = shares.up;
                    place[64] = shares.left;
                }
                diagonal = up;
                left = value;
                if (lane == 31) edge[column + 1] = value;
                if (row == n - 1 && column == m - 1) last = value;
            }
        }
        __syncwarp();
        // behind the first row there is no border to come from
        if (lane == 0) edge[0] = nowhere;
        __syncwarp();
    }
    // of the lane that has the last row
    const int source = (n - 1) & 31;
    return {__shfl_sync(ALL, last.f, source), __shfl_sync(ALL, last.k, source)};
}

// Channel c, point i of series s of a set is values[(s * C + c) * stride + i]. Pair p is row begin + p / n_cols of x and
// column p % n_cols of y.
//
// One warp: a pair, with a stride of all warps. `edges`: m_stride + 1 cells for each warp. fractions, powers: of the
// last cell of each pair.
extern "C" __global__ void __launch_bounds__(ELASTIC_THREADS) soft_values(
    const double* __restrict__ x_values, const int* __restrict__ x_lengths, int n_stride,
    const double* __restrict__ y_values, const int* __restrict__ y_lengths, int m_stride,
    int n_channels, int n_cols, long long n_pairs, const int* __restrict__ points, double inverse,
    double* edges, double* __restrict__ fractions, double* __restrict__ powers) {
    const int warp = blockIdx.x * (ELASTIC_THREADS / 32) + threadIdx.x / 32;
    const int n_warps = gridDim.x * (ELASTIC_THREADS / 32);
    Scaled* const edge = (Scaled*)edges + (long long)warp * (m_stride + 1);
    for (long long p = warp; p < n_pairs; p += n_warps) {
        const long long i = p / n_cols, j = p % n_cols;
        const int n = x_lengths[i], m = y_lengths[j];
        const Scaled last = fill(
            x_values + i * n_channels * n_stride, n, n_stride, y_values + j * n_channels * m_stride, m,
            m_stride, n_channels, points ? band_reach(points, n, m) : n + m, inverse, edge, nullptr, 0);
        if ((threadIdx.x & 31) == 0) {
            fractions[p] = last.f;
            powers[p] = last.k;
        }
    }
}

// Soft-DTW of an average x and the series `begin` to begin + n_pairs - 1, and its derivatives by the points of x.
//
// One warp: a pair, with a stride of all warps; lanes are rows, as in `fill`, and take the steps back in the opposite
// order. A cell gets from the three cells after it their derivatives times what it counts in them: from the right one by itself,
// from those below through the next lane, and in the last lane from the strip below, which left them in `edges`.
// weights: for each pair under way (strips, n_steps, 3, 32). gradients: (series, C, n_stride).
extern "C" __global__ void __launch_bounds__(ELASTIC_THREADS) soft_gradients(
    const double* __restrict__ x, int n, int n_stride, const double* __restrict__ y_values,
    const int* __restrict__ y_lengths, int m_stride, int n_channels, int begin, int n_pairs,
    const int* __restrict__ points, double inverse, double* edges, double* weights, int n_steps,
    double* gradients, double* __restrict__ fractions, double* __restrict__ powers) {
    const int lane = threadIdx.x & 31, warp = blockIdx.x * (ELASTIC_THREADS / 32) + threadIdx.x / 32;
    const int n_warps = gridDim.x * (ELASTIC_THREADS / 32), strips = (n + 31) / 32;
    Scaled* const edge = (Scaled*)edges + (long long)warp * (m_stride + 1);
    double* const own = weights + (long long)warp * strips * n_steps * 96;
    for (int p = warp; p < n_pairs; p += n_warps) {
        const int series = begin + p, m = y_lengths[series];
        const double* y = y_values + (long long)series * n_channels * m_stride;
        double* const gradient = gradients + (long long)series * n_channels * n_stride;
        const int radius = points ? band_reach(points, n, m) : n + m;
        const Scaled last =
            fill(x, n, n_stride, y, m, m_stride, n_channels, radius, inverse, edge, own, n_steps);
        if (lane == 0) {
            fractions[series] = last.f;
            powers[series] = last.k;
        }
        // edge[j]: what column j gets from straight below (f), and from diagonally below (k)
        for (int j = lane; j <= m; j += 32) edge[j] = {0.0, 0.0};
        __syncwarp();
        for (int first = (strips - 1) * 32; first >= 0; first -= 32) {
            const int row = first + lane;
            const int low = max(0, first - radius), stop = min(m, first + 32 + radius);
            const double* const kept = own + (long long)(first / 32) * n_steps * 96;
            double to_up = 0.0, to_diagonal = 0.0, to_left = 0.0, from_diagonal = 0.0, sum = 0.0;
            if (row < n)
                for (int c = 0; c < n_channels; ++c) gradient[(long long)c * n_stride + row] = 0.0;
            for (int d = stop - low + 30; d >= 0; --d) {
                const int column = low + d - lane;
                double below = __shfl_down_sync(ALL, to_up, 1);
                double next = __shfl_down_sync(ALL, to_diagonal, 1);
                if (row < n && column >= low && column < stop) {
                    if (lane == 31) {
                        below = edge[column].f;
                        from_diagonal = edge[column + 1].k;
                    }
                    double e = __dadd_rn(__dadd_rn(below, to_left), from_diagonal);
                    if (row == n - 1 && column == m - 1) e = 1.0;
                    const double* const place = kept + (long long)d * 96 + lane;
                    to_diagonal = __dmul_rn(e, place[0]);
                    to_up = __dmul_rn(e, place[32]);
                    to_left = __dmul_rn(e, place[64]);
                    if (lane == 0) edge[column] = {to_up, to_diagonal};
                    sum = __dadd_rn(sum, __dmul_rn(e, __dsub_rn(x[row], y[column])));
                    for (int c = 1; c < n_channels; ++c) {
                        double* const total = gradient + (long long)c * n_stride + row;
                        const double difference = __dsub_rn(
                            x[(long long)c * n_stride + row], y[(long long)c * m_stride + column]);
                        *total = __dadd_rn(*total, __dmul_rn(e, difference));
                    }
                }
                // of the row below, and the column that the next step comes to the right of
                from_diagonal = next;
            }
            if (row < n) {
                gradient[row] = __dmul_rn(sum, 2.0);
                for (int c = 1; c < n_channels; ++c) gradient[(long long)c * n_stride + row] *= 2.0;
            }
            __syncwarp();
        }
    }
}

// Sums of the gradients of the series of one cell of the grid, by weight, in the order of the series.
//
// One thread: a channel and a point of the average. Blocks: cells along x, channels and points along y. sums: (cells, C, n).
extern "C" __global__ void add_gradients(
    const double* __restrict__ gradients, const double* __restrict__ weights, int n_series, int rows,
    int n_channels, int n, int n_stride, double* __restrict__ sums) {
    const int cell = blockIdx.x, entry = blockIdx.y * blockDim.x + threadIdx.x;
    if (entry >= n_channels * n) return;
    const int c = entry / n, i = entry % n;
    double sum = 0.0;
    for (int s = cell * rows; s < min(n_series, (cell + 1) * rows); ++s)
        sum = __dadd_rn(
            sum, __dmul_rn(weights[s], gradients[((long long)s * n_channels + c) * n_stride + i]));
    sums[((long long)cell * n_channels + c) * n + i] = sum;
}
