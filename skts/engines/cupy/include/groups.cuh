// Groups of G lanes (G = 1, 2, 4, ..., 32, all within one warp): which one a lane belongs to, and what
// the lanes of a group find together.
#pragma once
#include "include/warp.cuh"

// Groups of a warp take the same steps, so that every shuffle finds 32 lanes.
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

// The least value of a group, for each of its lanes.
template <typename T>
__device__ __forceinline__ T group_least(T value, int G) {
    for (int other = G / 2; other > 0; other /= 2) {
        const T theirs = __shfl_xor_sync(ALL, value, other);
        value = theirs < value ? theirs : value;
    }
    return value;
}
