// Where the walk of a join begins: the first row of each band and the first column of each panel, from their points.
#include "include/constants.cuh"
#include "include/walk.cuh"

// out[f, i] = sum over t of (line[first + i + t] - c) (other[starts[f] + t] - mean of that window).
//
// A thread has 8 consecutive i of 2 filters f; a block of 128 threads has 1,024 i. Points and filters lie in
// shared memory, piece by piece. c is the mean of the block's middle window: close to those of its
// others, so that little cancels. With sign < 0 filters are first columns, and the step that leads to
// them from the column before is taken back: what comes out is what enters there.
template <typename T, bool NORMALIZE>
__global__ void __launch_bounds__(128) seeds(
    const double* __restrict__ line, const double* __restrict__ line_mean, int first, int count,
    const double* __restrict__ other, const double* __restrict__ other_mean, int start, int apart,
    int n_filters, int n_other, int length, long long least_apart, int sign, T* __restrict__ out,
    long long stride, const Row<T>* __restrict__ rows, const T* __restrict__ q, const T* __restrict__ s
) {
    constexpr int F = SEED_FILTERS, SPAN = SEED_WINDOWS, V = SPAN / 128, PIECE = 256;
    static_assert(V == 8, "one pad in the shared memory for each run of windows");
    __shared__ double points[(SPAN + PIECE) / 8 * 9 + 16];
    __shared__ double filters[PIECE][F];
    const int base = blockIdx.x * SPAN, f0 = blockIdx.y * F;
    // nothing in this block is admissible: i below f, or the other way round
    {
        const long long i = first + (sign > 0 ? base + SPAN - 1 : base);
        const long long f = start + (long long)(sign > 0 ? f0 : min(f0 + F, n_filters) - 1) * apart;
        if ((sign > 0 ? i - f : f - i) <= least_apart) return;
    }
    const int middle = first + min(base + SPAN / 2, count - 1);
    const double center = NORMALIZE ? line_mean[middle] : 0.0;
    double means[F];
    int at[F];
#pragma unroll
    for (int f = 0; f < F; ++f) {
        at[f] = min(start + min(f0 + f, n_filters - 1) * apart, n_other - 1);
        means[f] = NORMALIZE ? other_mean[at[f]] : 0.0;
    }
    double sums[F][V] = {};
    const int limit = count + length - 1;  // points of the line from `first` on
    for (int t0 = 0; t0 < length; t0 += PIECE) {
        const int piece = min(PIECE, length - t0);
        __syncthreads();
        for (int i = threadIdx.x; i < SPAN + PIECE; i += 128) {
            const int place = base + t0 + i;
            points[i + i / 8] = place < limit ? line[first + place] - center : 0.0;
        }
        for (int t = threadIdx.x; t < PIECE * F; t += 128) {
            const int f = t % F, u = t / F;
            filters[u][f] = u < piece ? other[at[f] + t0 + u] - means[f] : 0.0;
        }
        __syncthreads();
        double x[V];
        const double* mine = points + threadIdx.x * 9;
#pragma unroll
        for (int v = 0; v < V - 1; ++v) x[v] = mine[v];
        for (int t = 0; t < piece; t += V) {
#pragma unroll
            for (int u = 0; u < V; ++u) {
                // x is a ring: the point of t + u + V - 1 takes the place of the oldest
                const int next = t + u + V - 1;
                x[(u + V - 1) % V] = mine[next + next / 8];
#pragma unroll
                for (int f = 0; f < F; ++f) {
                    const double w = filters[t + u][f];
#pragma unroll
                    for (int v = 0; v < V; ++v) sums[f][v] = fma(x[(u + v) % V], w, sums[f][v]);
                }
            }
        }
    }
#pragma unroll
    for (int f = 0; f < F; ++f)
        if (f0 + f < n_filters)
#pragma unroll
            for (int v = 0; v < V; ++v) {
                const int i = base + threadIdx.x * V + v;
                if (i >= count) continue;
                if (sign < 0) {
                    const Row<T> row = rows[first + i];
                    sums[f][v] -= (double)row.p * q[at[f]] + (double)row.r * s[at[f]];
                }
                out[(f0 + f) * stride + i] = (T)sums[f][v];
            }
}
