// Groups of G lanes (G = 1, 2, 4, ..., 32, all within one warp): which one a lane belongs to, and what
// the lanes of a group find together.
#pragma once
#include "include/warp.cuh"

// Those of a warp go on together, so that every shuffle finds 32 lanes.
struct Groups {
    int lane;   // of this lane in its group
    int own;    // number of that group
    int first;  // number of the first group of the warp
    int count;  // groups of the launch

    __device__ __forceinline__ explicit Groups(int G)
        : lane(threadIdx.x & (G - 1)),
          own((blockIdx.x * blockDim.x + threadIdx.x) / G),
          first((blockIdx.x * blockDim.x + (threadIdx.x & ~31)) / G),
          count(gridDim.x * blockDim.x / G) {}
};

// As `warp_largest`, but by shuffles on every device: the loops of wavefront.cuh and band.cu that end
// at this value are compiled otherwise with the one instruction, and have been measured with these.
__device__ __forceinline__ int largest_by_shuffles(int value) {
    return fold_lanes(value, [](int a, int b) { return max(a, b); });
}

template <typename T>
__device__ __forceinline__ T group_least(T value, int G) {
    for (int other = G / 2; other > 0; other /= 2) {
        const T theirs = __shfl_xor_sync(ALL, value, other);
        value = theirs < value ? theirs : value;
    }
    return value;
}
