// Arithmetic of the kernels, by type.
//
//   float   searches: fused multiply-add allowed, and the minimum of three non-negative floats is
//           taken on their bit patterns, which order as integers do (one instruction on sm_90).
//   double  certifies: one operation order, no fused multiply-add, the bits of the CPU engine.
#pragma once

template <typename T>
struct Arithmetic;

template <>
struct Arithmetic<float> {
    static __device__ __forceinline__ float infinity() { return __int_as_float(0x7f800000); }

    static __device__ __forceinline__ float min3(float a, float b, float c) {
#if __CUDA_ARCH__ >= 900
        // nested integer minima become one VIMNMX3
        const int m = min(min(__float_as_int(a), __float_as_int(b)), __float_as_int(c));
        return __int_as_float(m);
#else
        return fminf(fminf(a, b), c);
#endif
    }

    static __device__ __forceinline__ float larger(float a, float b) {
        return __int_as_float(max(__float_as_int(a), __float_as_int(b)));
    }

    static __device__ __forceinline__ float add(float a, float b) { return a + b; }

    static __device__ __forceinline__ float multiply(float a, float b) { return a * b; }

    static __device__ __forceinline__ float smaller(float a, float b) { return fminf(a, b); }

    static __device__ __forceinline__ float square(float x, float y) {
        const float d = x - y;
        return d * d;
    }

    static __device__ __forceinline__ float add_square(float x, float y, float sum) {
        const float d = x - y;
        return fmaf(d, d, sum);
    }

    static __device__ __forceinline__ float difference(float x, float y) { return fabsf(x - y); }
};

template <>
struct Arithmetic<double> {
    static __device__ __forceinline__ double infinity() {
        return __longlong_as_double(0x7ff0000000000000LL);
    }

    static __device__ __forceinline__ double min3(double a, double b, double c) {
        const double m = b < a ? b : a;
        return m < c ? m : c;
    }

    static __device__ __forceinline__ double larger(double a, double b) { return a > b ? a : b; }

    static __device__ __forceinline__ double add(double a, double b) { return __dadd_rn(a, b); }

    static __device__ __forceinline__ double multiply(double a, double b) { return __dmul_rn(a, b); }

    static __device__ __forceinline__ double smaller(double a, double b) { return a < b ? a : b; }

    static __device__ __forceinline__ double square(double x, double y) {
        const double d = __dsub_rn(x, y);
        return __dmul_rn(d, d);
    }

    static __device__ __forceinline__ double add_square(double x, double y, double sum) {
        return __dadd_rn(sum, square(x, y));
    }

    static __device__ __forceinline__ double difference(double x, double y) {
        return fabs(__dsub_rn(x, y));
    }
};

// a + b, without contraction where that counts.
template <typename T>
__device__ __forceinline__ T plus(T a, T b) { return Arithmetic<T>::add(a, b); }

// Lower, or raise, a number that is not negative and that many threads may lower: such numbers are in the order of
// their bits.
__device__ __forceinline__ void lower(float* place, float value) {
    atomicMin((int*)place, __float_as_int(value));
}
__device__ __forceinline__ void lower(double* place, double value) {
    atomicMin((long long*)place, __double_as_longlong(value));
}
__device__ __forceinline__ void raise(float* place, float value) {
    atomicMax((int*)place, __float_as_int(value));
}
__device__ __forceinline__ void raise(double* place, double value) {
    atomicMax((long long*)place, __double_as_longlong(value));
}

// Half width of the band for series of n and m points, as Warping.radius has it. `points` holds, by
// the length of the longer series, what Warping.points says, which is computed on the host alone.
__device__ __forceinline__ int band_reach(const int* points, int n, int m) {
    return max(points[max(n, m)], abs(n - m));
}
