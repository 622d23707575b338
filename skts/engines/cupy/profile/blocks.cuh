// Blocks of pairs that are scored together, and how far off their covariances are.
#pragma once
#include "profile/errors.cuh"

// Windows of a block.
constexpr int ROWS = PAIR_ROWS, COLUMNS = PAIR_COLUMNS;

// How far the covariance of a pair of a block may be off, from bounds of the windows before it, and of its own.
// see "refined scores" in docs/developer/numerics.rst
template <bool NORMALIZE>
__device__ __forceinline__ double block_error(const Extent& rows, const Extent& cols, int length) {
    const CovarianceError error = covariance_error<double, NORMALIZE>(rows, cols, length);
    return error.first + ROWS * error.growth;
}
