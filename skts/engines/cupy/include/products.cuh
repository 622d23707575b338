// Products of small matrices by a warp, in float64.
#pragma once
#include "include/warp.cuh"

// d = a b + c for matrices of 16 x 4, 4 x 8 and 16 x 8 numbers. Lane l has rows l / 4 and l / 4 + 8 of a at column l % 4, of
// b row l % 4 at column l / 4, and of c and d the same rows as of a at columns 2 (l % 4) and the next.
__device__ __forceinline__ void multiply_add(
    double (&d)[4], const double (&a)[2], double b, const double (&c)[4]
) {
#if __CUDA_ARCH__ >= 900
    asm("mma.sync.aligned.m16n8k4.row.col.f64.f64.f64.f64 {%0, %1, %2, %3}, {%4, %5}, {%6}, {%7, %8, %9, %10};"
        : "=d"(d[0]), "=d"(d[1]), "=d"(d[2]), "=d"(d[3])
        : "d"(a[0]), "d"(a[1]), "d"(b), "d"(c[0]), "d"(c[1]), "d"(c[2]), "d"(c[3]));
#elif __CUDA_ARCH__ >= 800
#pragma unroll
    for (int half = 0; half < 2; ++half)
        asm("mma.sync.aligned.m8n8k4.row.col.f64.f64.f64.f64 {%0, %1}, {%2}, {%3}, {%4, %5};"
            : "=d"(d[2 * half]), "=d"(d[2 * half + 1])
            : "d"(a[half]), "d"(b), "d"(c[2 * half]), "d"(c[2 * half + 1]));
#else
    const int lane = threadIdx.x & 31, row = lane & ~3, column = (lane & 3) * 8;
    double sum[4] = {c[0], c[1], c[2], c[3]};
    for (int k = 0; k < 4; ++k) {
        const double low = __shfl_sync(ALL, a[0], row + k), high = __shfl_sync(ALL, a[1], row + k);
        const double first = __shfl_sync(ALL, b, column + k), second = __shfl_sync(ALL, b, column + 4 + k);
        sum[0] = fma(low, first, sum[0]), sum[1] = fma(low, second, sum[1]);
        sum[2] = fma(high, first, sum[2]), sum[3] = fma(high, second, sum[3]);
    }
    for (int k = 0; k < 4; ++k) d[k] = sum[k];
#endif
}
