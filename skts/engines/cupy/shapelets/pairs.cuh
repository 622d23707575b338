// Pairs of series whose windows are compared: what all kernels that write least scores share.
#pragma once
#include "include/constants.cuh"
#include "include/walk.cuh"

constexpr int CHUNK = WALK_CHUNK, NOTHING = 0x7fffffff, SHORT = SHORT_WINDOW;

// The block of candidates: `n_block` series from `first` on, of `n_series`; lengths, and windows of the shortest one.
struct Block {
    int stride, first, n_block, n_series;
    const int* lengths;
};

// Windows of some lengths: see `prepare`.
struct Windows {
    Row<double>* rows;
    double *q, *s, *w, *mean;
};

// Scores that no pair has, of a series with itself and behind the last window of a shorter one: whoever judges
// candidates reads those of all windows of the longest series.
__device__ __forceinline__ void write_nothing(int* scores, int start, int stop, int lane) {
    for (int i = start + lane; i < stop; i += 32) scores[i] = NOTHING;
}
