// How far the scores of a band and a panel may be off, from bounds of groups of windows.
#pragma once
#include "include/arithmetic.cuh"
#include "include/constants.cuh"
#include "include/walk.cuh"

// Bounds of a group of JOIN_GROUP windows: largest norm, step, magnitude, error of the mean and weight; least and
// largest mean.
struct Group {
    double norm, step, size, slip, weight, low, high;
};

// Largest (or least) values of the groups that hold windows `first` to `last`, which the lanes
// of a warp read together.
struct Extent {
    double norm, step, size, slip, weight, low, high;

    __device__ __forceinline__ Extent(const Group* groups, int first, int last)
        : Extent(groups, first / JOIN_GROUP + (threadIdx.x & 31), last / JOIN_GROUP, 32) {
        norm = warp_largest(norm), step = warp_largest(step), size = warp_largest(size);
        slip = warp_largest(slip), weight = warp_largest(weight), low = warp_least(low), high = warp_largest(high);
    }

    // Those of a few windows, which each lane reads by itself.
    static __device__ __forceinline__ Extent of_few(const Group* groups, int first, int last) {
        return Extent(groups, first / JOIN_GROUP, last / JOIN_GROUP, 1);
    }

   private:
    // Of each `apart`-th group from one to another.
    __device__ __forceinline__ Extent(const Group* groups, int first, int last, int apart) {
        norm = step = size = slip = weight = 0, low = Arithmetic<double>::infinity(), high = -low;
        for (int g = first; g <= last; g += apart) {
            norm = fmax(norm, groups[g].norm);
            step = fmax(step, groups[g].step);
            size = fmax(size, groups[g].size);
            slip = fmax(slip, groups[g].slip);
            weight = fmax(weight, groups[g].weight);
            low = fmin(low, groups[g].low);
            high = fmax(high, groups[g].high);
        }
    }
};

// Errors of the scores of a row among its columns, and of a column among its rows: at the top of a band, and how much
// they grow with each row walked.
struct Slack {
    double row, col, row_growth, col_growth;

    __device__ __forceinline__ double row_after(int rows) const { return row + rows * row_growth; }
    __device__ __forceinline__ double col_after(int rows) const { return col + rows * col_growth; }
};

// How far a covariance may be off where a walk begins, and by how much more with each row walked.
struct CovarianceError {
    double first, growth;
};

// Those of rows and columns: rounding on the way, of the seed, and of the means.
template <typename T, bool NORMALIZE>
__device__ __forceinline__ CovarianceError covariance_error(const Extent& a, const Extent& b, int length) {
    const double unit = sizeof(T) == 4 ? FLOAT32_UNIT : FLOAT64_UNIT;
    // see "covariance walk" in docs/developer/numerics.rst
    double growth = unit * (2 * a.norm * b.norm + 8 * a.step * b.step);
    double error = 4 * growth + FLOAT32_LOST + FLOAT64_UNIT * (length + 8) * a.norm * b.norm;
    if (!NORMALIZE) return CovarianceError{error, growth};
    const double drift = a.high - a.low + b.high - b.low;
    const double slip = a.slip + b.slip;
    error += FLOAT64_UNIT * (length + 8) * sqrt((double)length) * (a.norm + b.norm) * drift;
    error += length * slip * (2 * drift + slip);
    growth += 2 * slip * (a.step + b.step);
    return CovarianceError{error, growth};
}

// The errors of the scores of a band and a panel.
template <typename T, bool NORMALIZE>
__device__ __forceinline__ Slack bound_errors(const Extent& a, const Extent& b, int length) {
    const auto [error, growth] = covariance_error<T, NORMALIZE>(a, b, length);
    if (!NORMALIZE) {
        // see "raw windows" in docs/developer/numerics.rst
        const double share = FLOAT64_UNIT * length * (8 + 4 * sqrt((double)length));
        const double both = error + share * (a.norm * a.norm + b.norm * b.norm);
        return Slack{both, both, growth, growth};
    }
    const double shift = length * fmax(a.slip * a.weight, b.slip * b.weight);
    // each point of the line is rounded once
    // see "normalised windows" in docs/developer/numerics.rst
    const double blur = FLOAT64_UNIT * 4 * sqrt((double)length) * fmax(a.size * a.weight, b.size * b.weight);
    const double rest = 8 * shift * shift / length + blur;
    return Slack{
        error * b.weight + rest * a.norm, error * a.weight + rest * b.norm, growth * b.weight, growth * a.weight
    };
}
