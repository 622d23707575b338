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
#include "include/constants.cuh"
#include "include/warp.cuh"

// Whether a window or query of normalised ones counts as constant, as all engines have it: see `core/constants.py`.
__device__ __forceinline__ bool is_flat(double low, double high) {
    return high - low <= fmax(CONSTANT * fmax(fabs(low), fabs(high)), SMALLEST_RANGE);
}

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

// What a row needs: its step and its weight, side by side for one load.
template <typename T>
struct alignas(4 * sizeof(T)) Row {
    T p, r, weight, unused;
};

// Copy 16 bytes from global to shared memory, past registers and the first-level cache where that can be.
__device__ __forceinline__ void copy_16(void* shared, const void* global) {
#if __CUDA_ARCH__ >= 800
    const unsigned to = (unsigned)__cvta_generic_to_shared(shared);
    asm volatile("cp.async.cg.shared.global [%0], [%1], 16;" ::"r"(to), "l"(global) : "memory");
#else
    *(int4*)shared = __ldcg((const int4*)global);
#endif
}
__device__ __forceinline__ void wait_for_copies() {
#if __CUDA_ARCH__ >= 800
    asm volatile("cp.async.wait_all;" ::: "memory");
#endif
}

template <typename T, int K, bool NORMALIZE>
struct Strip {
    T cov[K], q[K], s[K], weight[K];

    // One row down. What enters lane 0 stood left of the strip, one row above.
    __device__ __forceinline__ void step(const Row<T>& row, T entering, int lane) {
        T left = __shfl_up_sync(ALL, cov[K - 1], 1);
        if (lane == 0) left = entering;
#pragma unroll
        for (int k = K - 1; k > 0; --k) cov[k] = fma(row.p, q[k], fma(row.r, s[k], cov[k - 1]));
        cov[0] = fma(row.p, q[0], fma(row.r, s[0], left));
    }

    // Score of column k among the columns of its row, and of the row among the rows of that column.
    __device__ __forceinline__ int in_row(int k) const {
        return bits_of(NORMALIZE ? cov[k] * weight[k] : cov[k] + weight[k]);
    }
    __device__ __forceinline__ int in_column(int k, T row_weight) const {
        return bits_of(NORMALIZE ? cov[k] * row_weight : cov[k] + row_weight);
    }
};
