// Copies from global to shared memory that go past registers where that can be. They are complete after `wait_for_copies`,
// for the thread that began them.
#pragma once

// Copy a double, or put a 0 there.
__device__ __forceinline__ void copy_8(double* shared, const double* global, bool there) {
#if __CUDA_ARCH__ >= 800
    asm volatile(
        "cp.async.ca.shared.global [%0], [%1], 8, %2;"
        ::"r"((unsigned)__cvta_generic_to_shared(shared)), "l"(global), "r"(there ? 8 : 0) : "memory"
    );
#else
    *shared = there ? __ldg(global) : 0.0;
#endif
}

// Copy 16 bytes, past the first-level cache, too.
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
