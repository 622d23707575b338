// Products of small matrices, by the lanes of a warp together: on tensor cores where there are some for doubles.
#pragma once
#include "include/warp.cuh"

// c += a b for matrices of 16 x 4 and 4 x 8 numbers. Lane l has rows l / 4 and l / 4 + 8 of a at column
// l % 4, of b row l % 4 at column l / 4, and of c the same rows at columns 2 (l % 4) and the next.
__device__ __forceinline__ void multiply_add(double (&c)[4], const double (&a)[2], double b) {
#if __CUDA_ARCH__ >= 900
    asm("mma.sync.aligned.m16n8k4.row.col.f64.f64.f64.f64 {%0, %1, %2, %3}, {%4, %5}, {%6}, {%0, %1, %2, %3};"
        : "+d"(c[0]), "+d"(c[1]), "+d"(c[2]), "+d"(c[3])
        : "d"(a[0]), "d"(a[1]), "d"(b));
#elif __CUDA_ARCH__ >= 800
    asm("mma.sync.aligned.m8n8k4.row.col.f64.f64.f64.f64 {%0, %1}, {%2}, {%3}, {%0, %1};"
        : "+d"(c[0]), "+d"(c[1]) : "d"(a[0]), "d"(b));
    asm("mma.sync.aligned.m8n8k4.row.col.f64.f64.f64.f64 {%0, %1}, {%2}, {%3}, {%0, %1};"
        : "+d"(c[2]), "+d"(c[3]) : "d"(a[1]), "d"(b));
#else
    const int lane = threadIdx.x % 32, row = lane / 4 * 4, column = lane % 4 * 8;
#pragma unroll 1
    for (int k = 0; k < 4; ++k) {
        const double low = __shfl_sync(ALL, a[0], row + k), high = __shfl_sync(ALL, a[1], row + k);
        const double first = __shfl_sync(ALL, b, column + k), second = __shfl_sync(ALL, b, column + 4 + k);
        c[0] += low * first;
        c[1] += low * second;
        c[2] += high * first;
        c[3] += high * second;
    }
#endif
}

// The same for 16 x 8 and 8 x 8 numbers: those of a at column l % 4, then at l % 4 + 4, of b at row l % 4, then at l % 4 + 4.
__device__ __forceinline__ void multiply_add(double (&c)[4], const double (&a)[4], const double (&b)[2]) {
#if __CUDA_ARCH__ >= 900
    asm("mma.sync.aligned.m16n8k8.row.col.f64.f64.f64.f64 "
        "{%0, %1, %2, %3}, {%4, %5, %6, %7}, {%8, %9}, {%0, %1, %2, %3};"
        : "+d"(c[0]), "+d"(c[1]), "+d"(c[2]), "+d"(c[3])
        : "d"(a[0]), "d"(a[1]), "d"(a[2]), "d"(a[3]), "d"(b[0]), "d"(b[1]));
#else
    const double first[2] = {a[0], a[1]}, second[2] = {a[2], a[3]};
    multiply_add(c, first, b[0]);
    multiply_add(c, second, b[1]);
#endif
}
