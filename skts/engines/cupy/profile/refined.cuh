// Scores of pairs of windows, from the points of the search line in double precision.
#pragma once
#include "include/constants.cuh"

// A line, as the search has it.
struct Searched {
    const double* points;
    const double* mean;
    const double* norm;
    const double* slip;
    const unsigned char* regular;
};

// How far the score of two z-normalised windows may be off that is a sum of products of the deviations of one from its
// mean with the points of the other, over the norm of that, in any order: of the means, and of points and certified
// distances, as in the walk.
// see "refined scores" in docs/developer/numerics.rst
__device__ __forceinline__ double refined_error(
    double norm, double theirs, double mean, double other_mean, double own_slip, double slip, int length
) {
    const double root = sqrt((double)length), other = fabs(other_mean);
    // the mean of the other is not taken off
    double error = FLOAT64_UNIT * (2 * length + 16) * norm * (theirs + root * other);
    const double blur = fmax((norm + fabs(mean)) / norm, (theirs + other) / theirs);
    const double shift = length * fmax(own_slip / norm, slip / theirs);
    error = (error + length * own_slip * (other + slip)) / theirs;
    return error + norm * (CERTIFIED_ROUNDING * length + 4 * shift * shift / length + 4 * FLOAT64_UNIT * root * blur);
}
