// Where the walk of a join begins: the first row of each band and the first column of each panel, from their points.
#include "include/constants.cuh"
#include "include/matrices.cuh"
#include "include/walk.cuh"

// Windows of a warp, and points of a piece.
constexpr int SEEDS = 64, PIECE = 128;

// Add the products of a piece of SEEDS windows, from `mine` on, and of filters: sums[w][n] are those of windows 16 w and
// filters 8 n. The points of windows are the same along diagonals.
__device__ __forceinline__ void multiply_piece(
    double (&sums)[4][2][4], const double* mine, const double (&filters)[SEED_FILTERS][PIECE + 4], int piece
) {
    constexpr int STEPS = PIECE / 4;
    const int lane = threadIdx.x % 32;
    // fragment number m begins 4 m points later: a ring, of which those of windows 16 w and 16 w + 8 are 4 w and 4 w + 2
    double ring[STEPS];
#pragma unroll
    for (int m = 0; m < 14; ++m) ring[m] = mine[4 * m];
#pragma unroll
    for (int k = 0; k < STEPS; k += 2) {
        if (4 * k >= piece) break;
#pragma unroll
        for (int m = 14; m < 16; ++m) ring[(k + m) % STEPS] = mine[4 * (k + m)];
#pragma unroll
        for (int n = 0; n < 2; ++n) {
            const double* const there = &filters[8 * n + lane / 4][4 * k + lane % 4];
            const double filter[2] = {there[0], there[4]};
#pragma unroll
            for (int w = 0; w < 4; ++w) {
                const int number = k + 4 * w;
                const double windows[4] = {
                    ring[number % STEPS], ring[(number + 2) % STEPS], ring[(number + 1) % STEPS],
                    ring[(number + 3) % STEPS]
                };
                multiply_add(sums[w][n], windows, filter);
            }
        }
    }
}

// out[f, i] = sum over t of (line[first + i + t] - c) (other[starts[f] + t] - mean of that window).
//
// A block of 4 warps has SEED_WINDOWS consecutive i, a quarter each warp, of SEED_FILTERS filters f: a product of matrices.
// That of the points has the same ones along its diagonals, so that a fragment serves 16 windows after 16. Points and
// filters lie in shared memory, piece by piece. c is the mean of the block's middle window: close to those of its
// others, so that little cancels. With sign < 0 filters are first columns, and the step that leads to
// them from the column before is taken back: what comes out is what enters there.
template <typename T, bool NORMALIZE>
__global__ void __launch_bounds__(128, 3) seeds(
    const double* __restrict__ line, const double* __restrict__ line_mean, int first, int count,
    const double* __restrict__ other, const double* __restrict__ other_mean, int start, int apart,
    int n_filters, int n_other, int length, long long least_apart, int sign, T* __restrict__ out,
    long long stride, const Row<T>* __restrict__ rows, const T* __restrict__ q, const T* __restrict__ s
) {
    constexpr int F = SEED_FILTERS, SPAN = SEED_WINDOWS;
    static_assert(SPAN == 4 * SEEDS && F == 16, "fragments of 16 windows by 8 filters");
    __shared__ double points[SPAN + PIECE];
    __shared__ double filters[F][PIECE + 4];  // lanes do not share banks
    __shared__ double means[F];
    __shared__ int at[F];
    const int base = blockIdx.x * SPAN, f0 = blockIdx.y * F;
    // nothing in this block is admissible: i below f, or the other way round
    {
        const long long i = first + (sign > 0 ? base + SPAN - 1 : base);
        const long long f = start + (long long)(sign > 0 ? f0 : min(f0 + F, n_filters) - 1) * apart;
        if ((sign > 0 ? i - f : f - i) <= least_apart) return;
    }
    const int middle = first + min(base + SPAN / 2, count - 1);
    const double center = NORMALIZE ? line_mean[middle] : 0.0;
    if (threadIdx.x < F) {
        const int place = min(start + min(f0 + (int)threadIdx.x, n_filters - 1) * apart, n_other - 1);
        at[threadIdx.x] = place;
        means[threadIdx.x] = NORMALIZE ? other_mean[place] : 0.0;
    }
    const int limit = count + length - 1;  // points of the line from `first` on
    const int lane = threadIdx.x % 32, row = lane / 4, col = lane % 4;
    // points from where this lane's fragment of the first windows of its warp begins
    const double* const mine = points + threadIdx.x / 32 * SEEDS + row + col;
    double sums[4][2][4] = {};
    for (int t0 = 0; t0 < length; t0 += PIECE) {
        const int piece = min(PIECE, length - t0);
        __syncthreads();
        for (int i = threadIdx.x; i < SPAN + PIECE; i += 128) {
            const int place = base + t0 + i;
            points[i] = place < limit ? line[first + place] - center : 0.0;
        }
        for (int f = 0; f < F; ++f)
            filters[f][threadIdx.x] = threadIdx.x < piece ? other[at[f] + t0 + threadIdx.x] - means[f] : 0.0;
        __syncthreads();
        multiply_piece(sums, mine, filters, piece);
    }
#pragma unroll
    for (int w = 0; w < 4; ++w)
#pragma unroll
        for (int n = 0; n < 2; ++n)
#pragma unroll
            for (int c = 0; c < 4; ++c) {
                const int i = base + threadIdx.x / 32 * SEEDS + 16 * w + 8 * (c / 2) + row, f = 8 * n + 2 * col + c % 2;
                if (i >= count || f0 + f >= n_filters) continue;
                double sum = sums[w][n][c];
                if (sign < 0) {
                    const Row<T> step = rows[first + i];
                    sum -= (double)step.p * q[at[f]] + (double)step.r * s[at[f]];
                }
                out[(f0 + f) * stride + i] = (T)sum;
            }
}
