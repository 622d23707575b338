// The walk: how covariances of windows go down the rows of a strip, and how they are scored.
//
// One row down, the covariance of two windows moves one column right and changes by two products,
//
//     cov(i, j) = cov(i - 1, j - 1) + p_i q_j + r_i s_j,
//
// so a warp owns a strip of 32 K columns, lane l the K columns from l K on, in registers. A row costs
// each cell two fused multiply-adds that read the register on its left, and one shuffle per lane.
// Scores are cov * weight (z-normalised windows) or cov + weight (windows as they are); only their
// leading 32 bits are compared, which order as integers do: a float whole, a double to 2^-20 of its value.
#pragma once
#include "include/copies.cuh"
#include "include/warp.cuh"

// The leading bits of a score, as an integer; negative scores are negative integers.
__device__ __forceinline__ int bits_of(float score) { return __float_as_int(score); }
__device__ __forceinline__ int bits_of(double score) { return __double2hiint(score); }

// The least score with these leading bits.
template <typename T>
__device__ __forceinline__ double least_of(int bits);
template <>
__device__ __forceinline__ double least_of<float>(int bits) { return (double)__int_as_float(bits); }
template <>
__device__ __forceinline__ double least_of<double>(int bits) { return __hiloint2double(bits, 0); }

// Leading bits of a bound, rounded towards zero; what is not positive is 0.
template <typename T>
__device__ __forceinline__ int bits_below(double bound) {
    if (!(bound > 0)) return 0;
    return sizeof(T) == 4 ? __float_as_int(__double2float_rd(bound)) : __double2hiint(bound);
}

// The step and the weight of a row, side by side for one load.
template <typename T>
struct alignas(4 * sizeof(T)) Row {
    T p, r, weight, unused;
};

// K columns of a lane: covariances of the row that the walk has reached, and what their steps and scores need.
template <typename T, int K>
struct Strip {
    T cov[K], q[K], s[K], weight[K];

    // One row down, by its step. `left` stood left of this lane, one row above.
    __device__ __forceinline__ void step(T p, T r, T left) {
#pragma unroll
        for (int k = K - 1; k >= 0; --k) cov[k] = fma(p, q[k], fma(r, s[k], k > 0 ? cov[k - 1] : left));
    }

    // The covariance on the left of this lane; `entering` is the one on the left of the strip.
    __device__ __forceinline__ T from_left(T entering, int lane) const {
        const T left = __shfl_up_sync(ALL, cov[K - 1], 1);
        return lane == 0 ? entering : left;
    }
};
