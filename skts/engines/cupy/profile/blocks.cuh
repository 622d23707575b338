// Blocks of pairs that are scored together, and how far off their covariances are.
#pragma once
#include "profile/errors.cuh"

// Windows of a block.
constexpr int ROWS = 32, COLUMNS = 16;

// How far the covariance of a pair of a block may be off, from bounds of the windows before it, and of its own.
// see "refined scores" in docs/developer/numerics.rst
__device__ __forceinline__ double block_error(const Extent& rows, const Extent& cols, int length, bool normalize) {
    const CovarianceError error =
        normalize ? covariance_error<double, true>(rows, cols, length) : covariance_error<double, false>(rows, cols, length);
    return error.first + ROWS * error.growth;
}
