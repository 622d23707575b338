// What a walk needs of each window of a line: the step that leads there, its weight, and bounds of groups of windows.
#include "profile/errors.cuh"

// steps: lead and trail of each window's step (families/profile/lines.py: `step_factors`), and its weight, as the walk
// reads them along rows and along columns; `padded` - n_windows more rows are zeros.
//
// One block: a group of windows, one for each thread, whose bounds it takes: groups[block], for those that have any.
// Windows that are not `regular` take no part. `level` keeps scores of windows that are compared as they are positive.
// Products are not contracted: with NumPy, short lines get the same bits.
template <typename T, bool NORMALIZE>
__global__ void __launch_bounds__(JOIN_GROUP) steps(
    const double* __restrict__ points, const double* __restrict__ mean, const double* __restrict__ norm,
    const double* __restrict__ size, const double* __restrict__ slip, const unsigned char* __restrict__ regular,
    int n_windows, int padded, int length, double level, Row<T>* __restrict__ rows, T* __restrict__ first,
    T* __restrict__ second, T* __restrict__ weights, Group* __restrict__ groups
) {
    constexpr int BOUNDS = sizeof(Group) / sizeof(double), WARPS = JOIN_GROUP / 32;
    __shared__ double largest[WARPS][BOUNDS];
    const int i = blockIdx.x * JOIN_GROUP + threadIdx.x;
    const double least = -Arithmetic<double>::infinity();
    double bounds[BOUNDS] = {least, least, least, least, least, least, least};
    double lead = 0, trail = 0, weight = 0;
    if (i < n_windows) {
        if (i > 0) {
            const double newest = points[i + length - 1], old = points[i - 1];
            lead = NORMALIZE ? (newest - old) / 2 : newest;
            trail = NORMALIZE ? (newest - mean[i]) + (old - mean[i - 1]) : -old;
        }
        if (NORMALIZE)
            weight = regular[i] ? 1.0 / norm[i] : 0.0;
        else
            weight = regular[i] ? level / 2 - __dmul_rn(norm[i], norm[i]) / 2 : -level;
        first[i] = (T)(NORMALIZE ? trail : lead);
        second[i] = (T)(NORMALIZE ? lead : -trail);
        weights[i] = (T)weight;
        bounds[0] = norm[i], bounds[1] = fabs(lead) + fabs(trail), bounds[2] = size[i], bounds[3] = slip[i];
        bounds[4] = fmax(weight, 0.0), bounds[5] = -mean[i], bounds[6] = mean[i];
    }
    if (i < padded) rows[i] = Row<T>{(T)lead, (T)trail, (T)weight, T(0)};
    if (blockIdx.x * JOIN_GROUP >= n_windows) return;
#pragma unroll
    for (int at = 0; at < BOUNDS; ++at) {
        const double most = warp_largest(bounds[at]);
        if (threadIdx.x % 32 == 0) largest[threadIdx.x / 32][at] = most;
    }
    __syncthreads();
    if (threadIdx.x >= BOUNDS) return;
    double most = largest[0][threadIdx.x];
    for (int warp = 1; warp < WARPS; ++warp) most = fmax(most, largest[warp][threadIdx.x]);
    // all but the least mean are largest values
    reinterpret_cast<double*>(groups + blockIdx.x)[threadIdx.x] = threadIdx.x == 5 ? -most : most;
}
