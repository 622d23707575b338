// Certified values of windows: one order of operations, no fused multiply-add, the bits of the CPU engine.
//
// `visit` calls a function with every point and its place, in the order of time: all points go by in one loop, wherever
// they come from. Sums of squares are those of `Arithmetic<double>`.
#pragma once
#include "include/arithmetic.cuh"
#include "include/constants.cuh"

// The mean of the points; `look` is called with the same points and places.
template <typename Visit, typename Look>
__device__ __forceinline__ double certified_mean(const Visit& visit, int length, const Look& look) {
    double total = 0;
    visit([&](double point, int t) {
        look(point, t);
        total = __dadd_rn(total, point);
    });
    return __ddiv_rn(total, (double)length);
}

// The standard deviation of the points.
template <typename Visit>
__device__ __forceinline__ double certified_deviation(const Visit& visit, int length, double mean) {
    double squares = 0;
    visit([&](double point, int) { squares = Arithmetic<double>::add_square(point, mean, squares); });
    return __dsqrt_rn(__ddiv_rn(squares, (double)length));
}

// A point of a normalised window; `inverse` is 1 / deviation, 0 where the window is constant.
__device__ __forceinline__ double certified_point(double point, double mean, double inverse) {
    return __dmul_rn(__dsub_rn(point, mean), inverse);
}

// Whether a window or query of normalised ones counts as constant, as all engines have it: see `core/constants.py`.
__device__ __forceinline__ bool is_flat(double low, double high) {
    return high - low <= fmax(CONSTANT * fmax(fabs(low), fabs(high)), SMALLEST_RANGE);
}
