// What the lanes of a warp find together. All 32 lanes call these at the same time, and all get the
// result; `fold` combines two values. See groups.cuh for groups of fewer lanes.
#pragma once

// All lanes of a warp.
constexpr unsigned ALL = 0xffffffffu;

// Fold over the WIDTH (a power of two) neighbouring lanes that this one is among. The order is that
// of a tree, the same for all lanes, so that sums have the same bits everywhere.
template <int WIDTH = 32, typename T, typename Fold>
__device__ __forceinline__ T fold_lanes(T value, const Fold& fold) {
#pragma unroll
    for (int other = WIDTH / 2; other > 0; other /= 2)
        value = fold(value, __shfl_xor_sync(ALL, value, other, WIDTH));
    return value;
}

// In place, for values that lie in an array of registers.
__device__ __forceinline__ void add_lanes(double& value) {
#pragma unroll
    for (int other = 16; other > 0; other /= 2) value += __shfl_xor_sync(ALL, value, other);
}

__device__ __forceinline__ double warp_sum(double value) {
    add_lanes(value);
    return value;
}

__device__ __forceinline__ int warp_largest(int value) {
#if __CUDA_ARCH__ >= 800
    return __reduce_max_sync(ALL, value);
#else
    return fold_lanes(value, [](int a, int b) { return max(a, b); });
#endif
}

__device__ __forceinline__ float warp_largest(float value) {
    return fold_lanes(value, [](float a, float b) { return fmaxf(a, b); });
}

__device__ __forceinline__ double warp_largest(double value) {
    return fold_lanes(value, [](double a, double b) { return fmax(a, b); });
}

__device__ __forceinline__ double warp_least(double value) {
    return fold_lanes(value, [](double a, double b) { return fmin(a, b); });
}

__device__ __forceinline__ long long warp_least(long long value) {
    return fold_lanes(value, [](long long a, long long b) { return min(a, b); });
}

// How many lanes before this one are among those of a ballot.
__device__ __forceinline__ int lanes_before(unsigned ballot, int lane) {
    return __popc(ballot & ((1u << lane) - 1));
}
