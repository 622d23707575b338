// Shape-based distances of short series: the best shift against every centre, by sums of products.
//
// Correlations of 16 series with a centre at 8 shifts are a product of matrices: series (16 x length)
// times the centre at these shifts (length x 8). Only four points of the one and of the other meet at
// a time, and what the centre has there depends on their sum alone: the centre at all shifts is STEPS
// + 3 fragments, of which each is used for many shifts. For up to 64 points this takes a third of the
// time of a transform, and no spectra need be kept.
#include "include/matrices.cuh"
#include "include/constants.cuh"
#include "include/warp.cuh"
#include "kshape/ties.cuh"

// Series of a warp, shifts of a product, and centres of a block.
constexpr int ROWS = SHORT_SERIES / 4, SHIFTS = 8, CENTERS = SHORT_CENTERS;

// f(place, correlations) for the correlations of 16 series with a centre at SHIFTS shifts from `place`
// on: shift s is at place s + length - 1. x are the fragments of the series, `fragments` begins with
// this lane's number of the first fragment of the centre.
template <int STEPS, class F>
__device__ __forceinline__ void correlate_all(
    const double (&x)[STEPS][2], const double* fragments, const F& f) {
    // fragments before the first and behind the last have no point of the centre
    constexpr int FIRST = STEPS - 3 > 0 ? STEPS - 3 : 0, LAST = 2 * STEPS - 1;
    double c[LAST - FIRST + 1];
#pragma unroll
    for (int m = FIRST; m <= LAST; ++m) c[m - FIRST] = fragments[4 * m];
#pragma unroll
    for (int n = 0; n < STEPS; ++n) {
        double sum[4] = {0, 0, 0, 0};
#pragma unroll
        for (int k = 0; k < STEPS; ++k)
            if (k + 2 * n >= FIRST && k + 2 * n <= LAST) multiply_add(sum, x[k], c[k + 2 * n - FIRST]);
        f(SHIFTS * n, sum);
    }
}

// The largest correlation of a series that a lane has seen, its place, and the second largest.
struct Top {
    double first, second;
    int place;

    __device__ __forceinline__ void see(double value, int at) {
        const bool larger = value > first;
        const double other = larger ? first : value;
        second = other > second ? other : second;
        first = larger ? value : first;
        place = larger ? at : place;
    }
};

// Largest (or least) of a value over the four lanes that share a row; all of them get it.
template <class T, class Better>
__device__ __forceinline__ T over_row(T value, const Better& better) {
    value = better(value, __shfl_xor_sync(ALL, value, 1));
    return better(value, __shfl_xor_sync(ALL, value, 2));
}

// The largest correlation of both series of a lane with a centre, and the least key of the shifts that
// may tie; `fragments` as in `correlate_all`.
template <int STEPS>
__device__ __forceinline__ void match(
    const double (&x)[STEPS][2], const double* fragments, int length, const double (&scale)[2],
    double doubt, double (&largest)[2], int (&key)[2]) {
    const int column = threadIdx.x % 4, last = 2 * length - 2;
    Top top[2] = {{-1e300, -1e300, 0}, {-1e300, -1e300, 0}};
    correlate_all<STEPS>(x, fragments, [&](int place, const double (&sum)[4]) {
#pragma unroll
        for (int i = 0; i < 4; ++i) {
            const int at = place + 2 * column + i % 2;
            // places behind the last are beyond all shifts
            if (place + SHIFTS <= 8 * STEPS - 7 || at <= last) top[i / 2].see(sum[i], at);
        }
    });
    bool close = false;
#pragma unroll
    for (int half = 0; half < 2; ++half) {
        largest[half] = over_row(top[half].first, Larger());
        const Ties ties(largest[half], doubt, scale[half]);
        key[half] = ties.least(1 << 30, top[half].first, rank_of_place(top[half].place, length));
        close |= scale[half] > 0 && top[half].second >= ties.possible;
    }
    // more than one of a lane may tie: all are looked at again
    if (__any_sync(ALL, close)) {
        const Ties ties[2] = {{largest[0], doubt, scale[0]}, {largest[1], doubt, scale[1]}};
        correlate_all<STEPS>(x, fragments, [&](int place, const double (&sum)[4]) {
#pragma unroll
            for (int i = 0; i < 4; ++i) {
                const int at = place + 2 * column + i % 2;
                if (at <= last)
                    key[i / 2] = ties[i / 2].least(key[i / 2], sum[i], rank_of_place(at, length));
            }
        });
    }
    for (int half = 0; half < 2; ++half) key[half] = over_row(key[half], Smaller());
}

// correlate_short: distances[series][centre] and shifts[series][centre] of series of up to 4 STEPS
// points, more than 4 STEPS - 4, as `correlate` of correlate.cu writes them.
// One block: four warps, each with ROWS series, against CENTERS centres (grid y). Shared memory: the centres between zeros.
template <int STEPS>
__global__ void __launch_bounds__(128, 3) correlate_short(
    const double* __restrict__ values, const double* __restrict__ norms, long long n_series,
    int length, const double* __restrict__ centers, const double* __restrict__ center_norms,
    const double* __restrict__ doubts, int n_centers, double* __restrict__ distances,
    int* __restrict__ shifts) {
#if !defined(__CUDA_ARCH__) || __CUDA_ARCH__ >= 800
    constexpr int WIDTH = 8 * STEPS + 8;
    __shared__ double padded[CENTERS][WIDTH];
    const int first_center = blockIdx.y * CENTERS, count = min(CENTERS, n_centers - first_center);
    for (int i = threadIdx.x; i < count * WIDTH; i += 128) {
        const int center = i / WIDTH, at = i % WIDTH - (length - 1);
        padded[center][i % WIDTH] =
            at >= 0 && at < length ? centers[(long long)(first_center + center) * length + at] : 0.0;
    }
    __syncthreads();
    const int lane = threadIdx.x % 32, column = lane % 4;
    const long long group = blockIdx.x * 4LL + threadIdx.x / 32;
    if (group * ROWS >= n_series) return;
    long long series[2];
    double x[STEPS][2], norm[2];
#pragma unroll
    for (int half = 0; half < 2; ++half) {
        series[half] = group * ROWS + lane / 4 + 8 * half;
        const bool there = series[half] < n_series;
        norm[half] = there ? norms[series[half]] : 0.0;
#pragma unroll
        for (int k = 0; k < STEPS; ++k)
            x[k][half] = there && 4 * k + column < length
                             ? values[series[half] * length + 4 * k + column] : 0.0;
    }
    for (int center = 0; center < count; ++center) {
        const double doubt = doubts[first_center + center];
        double scale[2], largest[2];
        int key[2];
        for (int half = 0; half < 2; ++half)
            scale[half] = norm[half] * center_norms[first_center + center];
        match<STEPS>(x, padded[center] + column + lane / 4, length, scale, doubt, largest, key);
#pragma unroll
        for (int half = 0; half < 2; ++half) {
            if (column == 0 && series[half] < n_series) {
                const long long place = series[half] * n_centers + first_center + center;
                write_pair(largest[half], scale[half], key[half], distances + place, shifts + place);
            }
        }
    }
#endif
}
