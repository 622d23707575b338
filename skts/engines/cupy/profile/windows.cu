// Statistics of every window, and certified distances of chosen windows to all: the bits of the CPU engine.
// One thread has one window; neighbouring threads read neighbouring points. Points of a window count from the
// first of them, for distances where `anchored`.
#include "include/constants.cuh"
#include "include/warp.cuh"
#include "profile/certified.cuh"

// statistics: mean from the first point on, deviation, least and largest point of each window. One thread, one window.
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

// kinds: which windows are constant, finite, and both finite and not constant (`regular`), none constant where they are
// compared as they are; and the inverse deviation of the last, or 1 for finite ones. `whole` says which windows are
// finite, null that all are. extents[block]: least and largest point, and the least range of the regular windows.
// Bits are those of `settle_statistics`. One thread a window, 256 a block.
extern "C" __global__ void __launch_bounds__(256) kinds(
    const double* __restrict__ deviation, const double* __restrict__ low, const double* __restrict__ high,
    const bool* __restrict__ whole, int n_windows, int normalize, double* __restrict__ inverse,
    bool* __restrict__ constant, bool* __restrict__ finite, bool* __restrict__ regular, double* __restrict__ extents
) {
    __shared__ double room[8];
    const int i = blockIdx.x * blockDim.x + threadIdx.x;
    const double endless = Arithmetic<double>::infinity();
    double least = endless, most = -endless, range = endless;
    if (i < n_windows) {
        least = low[i], most = high[i];
        const bool is_finite = !whole || whole[i];
        const double largest = fmax(fabs(least), fabs(most)), spread = most - least;
        const bool is_constant = normalize && is_finite && spread <= fmax(CONSTANT * largest, SMALLEST_RANGE);
        finite[i] = is_finite, constant[i] = is_constant, regular[i] = is_finite && !is_constant;
        const double used = is_finite && !is_constant ? deviation[i] : 0.0;
        inverse[i] = normalize ? (used > 0 ? 1.0 / used : 0.0) : (is_finite ? 1.0 : 0.0);
        if (is_finite && !is_constant) range = spread;
    }
    least = fold_block(least, room, 8, Smaller());
    most = fold_block(most, room, 8, Larger());
    range = fold_block(range, room, 8, Smaller());
    if (threadIdx.x == 0) {
        extents[3 * blockIdx.x] = least;
        extents[3 * blockIdx.x + 1] = most;
        extents[3 * blockIdx.x + 2] = range;
    }
}

// searched: the points of a line as its search has them, moved and scaled, and of each window mean, norm, largest
// magnitude and error of the mean there (`SearchLine.moments`), from those of the line as it was given. One thread a
// point. Products are not contracted: with NumPy, short lines get the same bits.
extern "C" __global__ void searched(
    const double* __restrict__ points, const double* __restrict__ mean, const double* __restrict__ deviation,
    const double* __restrict__ low, const double* __restrict__ high, int n_points, int n_windows, int length,
    double offset, double scale, double* __restrict__ moved, double* __restrict__ means, double* __restrict__ norm,
    double* __restrict__ size, double* __restrict__ slip
) {
    const int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= n_points) return;
    const double point = __dmul_rn(points[i] - offset, scale);
    moved[i] = point;
    if (i >= n_windows) return;
    means[i] = __dadd_rn(point, __dmul_rn(mean[i], scale));
    const double largest = __dmul_rn(fmax(fabs(low[i] - offset), fabs(high[i] - offset)), scale);
    size[i] = largest;
    const double range = __dmul_rn((length + 2) * scale, high[i] - low[i]);
    slip[i] = __dmul_rn(FLOAT64_UNIT, __dadd_rn(range, __dmul_rn(4.0, largest)));
    const double spread = __dmul_rn(deviation[i], scale);
    norm[i] = sqrt(__dmul_rn((double)length, __dmul_rn(spread, spread)));
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
