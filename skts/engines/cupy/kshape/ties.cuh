// Which shift of a series is chosen among those that tie, in `correlate` and in `longest`.
//
// Value i of n correlations belongs to shift -i, value n - i to shift i. A key is twice the rank of a
// shift, and one more where the shift does not tie for all errors of the values: the least key is that
// of the chosen shift.
#pragma once
#include "include/constants.cuh"

// Rank of a shift in the order of preference: 0, -1, 1, -2, 2, ...; 2 n for what is no shift.
template <typename Rank>
__device__ __forceinline__ Rank rank_of_shift(int i, int length, int n) {
    if (i < length) return i == 0 ? 0 : 2 * Rank(i) - 1;
    return i > n - length ? 2 * Rank(n - i) : 2 * Rank(n);
}

// The same of the shift at a place of those from 1 - length to length - 1.
__device__ __forceinline__ int rank_of_place(int place, int length) {
    const int shift = place - (length - 1);
    return shift < 0 ? -2 * shift - 1 : 2 * shift;
}

// The least correlations that may tie the largest, `top`, and that surely do; `scale` is what NCC
// was multiplied by, `doubt` how far an NCC may be off.
struct Ties {
    double possible, sure;

    __device__ __forceinline__ Ties(double top, double doubt, double scale)
        : possible(top - (TIE + 2 * doubt) * scale), sure(top - (TIE - 2 * doubt) * scale) {}

    // the smaller of a key and that of a value
    template <typename Key>
    __device__ __forceinline__ Key least(Key key, double value, Key rank) const {
        if (!(value >= possible)) return key;
        const Key other = 2 * rank + (value < sure);
        return other < key ? other : key;
    }
};

// Distance and shift of a pair, by its largest correlation and its least key.
template <typename Key>
__device__ __forceinline__ void write_pair(
    double top, double scale, Key key, double* __restrict__ distance, int* __restrict__ shift) {
    const bool none = scale == 0;
    const Key place = key / 2;
    const int half = (int)((place + 1) / 2);
    *distance = none ? 1.0 : fmax(0.0, 1.0 - top / scale);
    *shift = none ? 0 : key % 2 ? UNCLEAR : place % 2 ? -half : half;
}
