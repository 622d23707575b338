// Folds over the lanes of a warp, and over the threads of a block. All 32 lanes (all threads) call
// these at the same time, and all get the result; `fold` combines two values. See groups.cuh for groups of
// fewer lanes.
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

// Fold over the first `n_warps` warps of a block, in the order of their numbers. `room` has a place for each of them, and
// may be read again after the next barrier.
template <typename T, typename Fold>
__device__ __forceinline__ T fold_block(T value, T* room, int n_warps, const Fold& fold) {
    value = fold_lanes(value, fold);
    __syncthreads();
    if ((threadIdx.x & 31) == 0) room[threadIdx.x / 32] = value;
    __syncthreads();
    value = room[0];
    for (int warp = 1; warp < n_warps; ++warp) value = fold(value, room[warp]);
    return value;
}

// The folds: sum, largest and least.
struct Plus {
    template <typename T>
    __device__ __forceinline__ T operator()(T a, T b) const { return a + b; }
};
struct Larger {
    template <typename T>
    __device__ __forceinline__ T operator()(T a, T b) const { return max(a, b); }
};
struct Smaller {
    template <typename T>
    __device__ __forceinline__ T operator()(T a, T b) const { return min(a, b); }
};

// In place, for values that lie in an array of registers: with `fold_lanes`, `gram` of centers.cu keeps some of them in
// memory.
template <typename T>
__device__ __forceinline__ void add_lanes(T& value) {
#pragma unroll
    for (int other = 16; other > 0; other /= 2) value += __shfl_xor_sync(ALL, value, other);
}

template <typename T>
__device__ __forceinline__ T warp_sum(T value) {
    add_lanes(value);
    return value;
}

template <typename T>
__device__ __forceinline__ T warp_largest(T value) { return fold_lanes(value, Larger()); }

template <typename T>
__device__ __forceinline__ T warp_least(T value) { return fold_lanes(value, Smaller()); }

// One instruction, where there is one.
#if __CUDA_ARCH__ >= 800
__device__ __forceinline__ int warp_sum(int value) { return __reduce_add_sync(ALL, value); }
__device__ __forceinline__ int warp_largest(int value) { return __reduce_max_sync(ALL, value); }
#endif

// Sum over the lanes up to this one.
template <typename T>
__device__ __forceinline__ T scan_sum(T value, int lane) {
#pragma unroll
    for (int other = 1; other < 32; other *= 2) {
        const T left = __shfl_up_sync(ALL, value, other);
        if (lane >= other) value += left;
    }
    return value;
}

// How many lanes before this one are among those of a ballot.
__device__ __forceinline__ int lanes_before(unsigned ballot, int lane) {
    return __popc(ballot & ((1u << lane) - 1));
}
