// Statistics of every window, and certified distances of chosen windows to all: the bits of the CPU engine.
// One thread has one window; neighbouring threads read neighbouring points. Points of a window count from the
// first of them, for distances where `anchored`.

extern "C" __global__ void statistics(
    const double* __restrict__ points, int n_windows, int length,
    double* __restrict__ mean, double* __restrict__ deviation, double* __restrict__ low,
    double* __restrict__ high
) {
    const int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= n_windows) return;
    const double anchor = points[i];
    double total = 0, least = anchor, most = anchor;
    for (int t = 0; t < length; ++t) {
        const double point = points[i + t];
        total = __dadd_rn(total, __dsub_rn(point, anchor));
        least = fmin(least, point);
        most = fmax(most, point);
    }
    const double center = __ddiv_rn(total, (double)length);
    double squares = 0;
    for (int t = 0; t < length; ++t) {
        const double d = __dsub_rn(__dsub_rn(points[i + t], anchor), center);
        squares = __dadd_rn(squares, __dmul_rn(d, d));
    }
    mean[i] = center;
    deviation[i] = __dsqrt_rn(__ddiv_rn(squares, (double)length));
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
    const long long i = positions[blockIdx.y];
    const double x_mean = mean_a[i], x_scale = inverse_a[i];
    const double y_mean = mean_b[first + j], y_scale = inverse_b[first + j];
    const double x_anchor = anchored ? a[i] : 0.0, y_anchor = anchored ? b[first + j] : 0.0;
    double total = 0;
    for (int t = 0; t < length; ++t) {
        const double x = __dmul_rn(__dsub_rn(__dsub_rn(a[i + t], x_anchor), x_mean), x_scale);
        const double y = __dmul_rn(__dsub_rn(__dsub_rn(b[first + j + t], y_anchor), y_mean), y_scale);
        const double d = __dsub_rn(x, y);
        total = __dadd_rn(total, __dmul_rn(d, d));
    }
    out[(long long)blockIdx.y * count + j] = __dsqrt_rn(total);
}
