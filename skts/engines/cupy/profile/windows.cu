// Statistics of every window, and certified distances of chosen windows to all: the bits of the CPU engine.
// One thread has one window; neighbouring threads read neighbouring points. Points of a window count from the
// first of them, for distances where `anchored`.
#include "profile/certified.cuh"

extern "C" __global__ void statistics(
    const double* __restrict__ points, int n_windows, int length,
    double* __restrict__ mean, double* __restrict__ deviation, double* __restrict__ low,
    double* __restrict__ high
) {
    const int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= n_windows) return;
    const double anchor = points[i];
    double least = anchor, most = anchor;
    auto visit = [&](auto use) {
        for (int t = 0; t < length; ++t) use(__dsub_rn(points[i + t], anchor), t);
    };
    const double center = certified_mean(visit, length, [&](double, int t) {
        least = fmin(least, points[i + t]);
        most = fmax(most, points[i + t]);
    });
    mean[i] = center;
    deviation[i] = certified_deviation(visit, length, center);
    low[i] = least;
    high[i] = most;
}

// out[c, j] = distance of the window at positions[c] of one line to window first + j of another.
// Block (x, c): 256 windows against chosen window c.
extern "C" __global__ void distances(
    const double* __restrict__ a, const double* __restrict__ mean_a, const double* __restrict__ inverse_a,
    const long long* __restrict__ positions, const double* __restrict__ b, const double* __restrict__ mean_b,
    const double* __restrict__ inverse_b, int first, int count, int length, int anchored,
    double* __restrict__ out
) {
    const int j = blockIdx.x * blockDim.x + threadIdx.x;
    if (j >= count) return;
    const int i = (int)positions[blockIdx.y];
    const Window x(Line{a, mean_a, inverse_a}, i, anchored);
    const Window y(Line{b, mean_b, inverse_b}, first + j, anchored);
    out[(long long)blockIdx.y * count + j] = certified_distance(x, y, length);
}
