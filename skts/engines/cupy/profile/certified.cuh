// Certified distances of windows of lines.
#pragma once
#include "include/certified.cuh"

// A line, as certified distances need it.
struct Line {
    const double* points;
    const double* mean;     // of each window, counted from its first point where windows are normalised
    const double* inverse;  // 1 / deviation of each window
};

// A window of a line: the one at `start`.
struct Window {
    const double* points;
    int start;
    double first, mean, inverse;

    // points of normalised windows count from the first
    __device__ __forceinline__ Window(const Line& line, int i, bool normalize)
        : points(line.points), start(i), first(normalize ? line.points[i] : 0.0), mean(line.mean[i]),
          inverse(line.inverse[i]) {}

    __device__ __forceinline__ double point(int t) const {
        return certified_point(__dsub_rn(points[start + t], first), mean, inverse);
    }
};

// Add the square of what point t of two windows differs by.
__device__ __forceinline__ double add_certified(double total, const Window& a, const Window& b, int t) {
    return Arithmetic<double>::add_square(a.point(t), b.point(t), total);
}

__device__ __forceinline__ double certified_distance(const Window& a, const Window& b, int length) {
    double total = 0;
    for (int t = 0; t < length; ++t) total = add_certified(total, a, b, t);
    return __dsqrt_rn(total);
}
