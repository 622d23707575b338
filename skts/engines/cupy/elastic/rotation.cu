// Lists of the shifts that a rotation-invariant search still has to look at, and distances without
// warping.
#include "elastic/shifts.cuh"
#include "include/cells.cuh"
#include "include/constants.cuh"
#include "include/warp.cuh"

// divide: runs of shifts that may hold a neighbour, cut into runs of at most `width` shifts.
//
// One thread: a run of `items`, of which estimates[p] is a bound of the cost; with items = nullptr run
// p is all shifts of candidate (begin + p) % n_cols, up to its period, for query (begin + p) / n_cols.
// It stays if its estimate is not above limits[query], and (where `above` is given) above above[query];
// an infinite one says only that float32 is too narrow. Of all shifts, candidate excluded[query] is
// left out.
// The pieces are appended to `out` in any order.
extern "C" __global__ void divide(
    const Turns* __restrict__ items, const float* __restrict__ estimates, long long begin, int n_items,
    int n_cols, const int* __restrict__ periods, const int* __restrict__ excluded,
    const float* __restrict__ above, const float* __restrict__ limits, int width, int* n_out, Turns* __restrict__ out) {
    const int p = blockIdx.x * blockDim.x + threadIdx.x;
    if (p >= n_items) return;
    const int query = items ? items[p].query : (int)((begin + p) / n_cols);
    const float estimate = estimates[p];
    if (!(estimate <= limits[query])) return;
    if (above && !(estimate > above[query])) return;
    Turns piece{query, (int)((begin + p) % n_cols), 0, 0};
    if (!items && piece.candidate == excluded[query]) return;
    int count;
    if (items) {
        piece = items[p];
        count = piece.count;
    } else {
        count = periods[piece.candidate];
    }
    int place = atomicAdd(n_out, (count + width - 1) / width);
    for (; count > 0; count -= width, piece.first += width) {
        piece.count = min(width, count);
        out[place++] = piece;
    }
}

// promise: of each pair the run of the smallest estimate, if that is not above limits[query].
// One thread: a run. seen[query * n_cols + candidate], all bits set before, receives the bits of the
// estimate above those of p.
extern "C" __global__ void promise(
    const Turns* __restrict__ items, const float* __restrict__ estimates, int n_items, int n_cols,
    const float* __restrict__ limits, unsigned long long* seen) {
    const int p = blockIdx.x * blockDim.x + threadIdx.x;
    if (p >= n_items) return;
    const Turns item = items[p];
    const float estimate = estimates[p];
    if (!(estimate <= limits[item.query])) return;
    const unsigned long long key = ((unsigned long long)__float_as_int(estimate) << 32) | (unsigned)p;
    atomicMin(seen + (long long)item.query * n_cols + item.candidate, key);
}

// probe: the shift in the middle of each run that `promise` has found; sets all bits of `seen` again.
// One thread: a run. Shifts are appended to `out` in any order.
extern "C" __global__ void probe(
    const Turns* __restrict__ items, int n_items, int n_cols, unsigned long long* seen, int* n_out,
    Turns* __restrict__ out) {
    const int p = blockIdx.x * blockDim.x + threadIdx.x;
    if (p >= n_items) return;
    const Turns item = items[p];
    unsigned long long* place = seen + (long long)item.query * n_cols + item.candidate;
    const unsigned long long key = *place;
    if (key == ~0ull || (unsigned)key != (unsigned)p) return;
    *place = ~0ull;
    out[atomicAdd(n_out, 1)] = Turns{item.query, item.candidate, item.first + item.count / 2, 1};
}

// Error of squared Euclidean distances that come from a correlation: roundings times the
// square of the sum of the norms.
__device__ __forceinline__ double allowance(double row_norm, double col_norm, double roundings) {
    // see "spectra" in docs/developer/numerics.rst
    const double norms = sqrt(row_norm) + sqrt(col_norm);
    return roundings * norms * norms + FLOAT64_TINY;
}

// peaks: bounds of the least squared distance over all shifts of every pair.
//
// One warp: the pair of query p / n_cols and candidate p % n_cols, whose correlation at each shift is
// correlations[p * n + shift]; norms are sums of squares. One block: as many warps as launched.
// Shared memory: none. Lane 0 writes lowest[p] and highest[p].
extern "C" __global__ void peaks(
    const double* __restrict__ correlations, long long n_pairs, int n_cols, int n,
    const double* __restrict__ row_norms, const double* __restrict__ col_norms, double roundings,
    double* __restrict__ lowest, double* __restrict__ highest) {
    const long long p = ((long long)blockIdx.x * blockDim.x + threadIdx.x) / 32;
    const int lane = threadIdx.x % 32;
    if (p >= n_pairs) return;
    double largest = -Arithmetic<double>::infinity();
    for (int i = lane; i < n; i += 32) largest = fmax(largest, correlations[p * n + i]);
    largest = warp_largest(largest);
    if (lane != 0) return;
    const double row = row_norms[p / n_cols], col = col_norms[p % n_cols];
    const double error = allowance(row, col, roundings);
    lowest[p] = fmax(row + col - error - 2 * largest, 0.0);
    highest[p] = fmax(row + col + error - 2 * largest, 0.0);
}

// shifts: every shift of a pair at which the squared distance may be within limits[query].
//
// One thread: shifts with a grid stride, pairs and correlations as in `peaks`; lowest[p] of `peaks`
// spares most of them. `n_out` counts; `out` (where given) receives the shifts in any order.
extern "C" __global__ void shifts(
    const double* __restrict__ correlations, long long n_pairs, int n_cols, int n,
    const double* __restrict__ row_norms, const double* __restrict__ col_norms, double roundings,
    const double* __restrict__ lowest, const double* __restrict__ limits,
    const int* __restrict__ periods, unsigned long long* n_out, Turns* __restrict__ out) {
    const long long size = n_pairs * n, step = (long long)gridDim.x * blockDim.x;
    for (long long i = (long long)blockIdx.x * blockDim.x + threadIdx.x; i < size; i += step) {
        const long long p = i / n;
        const int shift = (int)(i % n), query = (int)(p / n_cols), candidate = (int)(p % n_cols);
        if (lowest[p] > limits[query] || shift >= periods[candidate]) continue;
        const double row = row_norms[query], col = col_norms[candidate];
        const double floor = row + col - allowance(row, col, roundings) - 2 * correlations[i];
        if (floor > limits[query]) continue;
        const unsigned long long place = atomicAdd(n_out, 1ull);
        if (out) out[place] = Turns{query, candidate, shift, 1};
    }
}

// straight: certified costs without warping, the sum over the points in order.
//
// One thread: a shift of `items`, with a grid stride; with items = nullptr shift i % n of candidate
// i / n % n_cols for query i / n / n_cols, up to the candidate's period. Lowers
// least[query * n_cols + candidate]. Series as in dtw.cu, of n_channels channels.
template <typename Metric>
__global__ void straight(
    const double* __restrict__ rows, int n, int n_channels, int row_stride,
    const double* __restrict__ cols, int col_stride, int n_cols, const int* __restrict__ periods,
    const Turns* __restrict__ items, long long n_items, double* __restrict__ least) {
    using A = Arithmetic<double>;
    const long long step = (long long)gridDim.x * blockDim.x;
    for (long long i = (long long)blockIdx.x * blockDim.x + threadIdx.x; i < n_items; i += step) {
        Turns item;
        if (items) {
            item = items[i];
        } else {
            const long long p = i / n;
            item = Turns{(int)(p / n_cols), (int)(p % n_cols), (int)(i % n), 1};
        }
        if (item.first >= periods[item.candidate]) continue;
        const double* x = rows + (long long)item.query * n_channels * row_stride;
        const double* y = cols + (long long)item.candidate * n_channels * col_stride + item.first;
        double total = 0;
        auto add = [&](int stop, int j) {
            for (int k = j; k < stop; ++k) {
                const SeriesPoints<double> at{
                    x[k], y[k], x + k, y + k, n_channels, row_stride, col_stride};
                total = A::add(at.total(Metric{}), total);
            }
        };
        add(n - item.first, 0);
        y -= n;  // the candidate goes on from its beginning
        add(n, n - item.first);
        lower(least + (long long)item.query * n_cols + item.candidate, total);
    }
}
