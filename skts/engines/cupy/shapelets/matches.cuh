// Best matches: what their kernels share.
#pragma once
#include "include/certified.cuh"
#include "include/copies.cuh"
#include "include/warp.cuh"

constexpr int THREADS = MATCH_THREADS;
// Series of a block of `sift`, at most, windows of a thread, and steps of time between two loads of points.
constexpr int MOST_SERIES = MATCH_SERIES, R = MATCH_WINDOWS, STEPS = 252;
// Points of a tile, or of two: one for each window, and for each series as many as there are steps.
constexpr int TILE = THREADS * R + 1536;
// Keys of `sift`: that of what takes no part, and the doubt of what it cannot judge.
constexpr int NOTHING = -0x7fffffff, ANYTHING = 0x7fffffff;
// Added to a number, it leaves the nearest integer in the low word.
constexpr double ROUNDER = 0x1.8p52;

template <int V>
struct Number {
    static constexpr int value = V;
};

// A query: `length` points from `begin` of some values on, normalised from `place` on, looked for in a
// channel; its answer is a row of the result.
struct Query {
    long long begin, place;
    int length, channel, row, unused;
};
// A channel of a series, in units in which its points are below 2 away from their mean: largest magnitude with the
// mean, and 1 / deviation of windows, least and most, whose certified values neither overflow nor vanish.
struct ChannelScale {
    double magnitude, lightest, heaviest, unused;
};
// A window that could be the best match of a query.
struct alignas(16) Entry {
    int query, column, window, unused;
};
// Results of `survey`, and the shape of the series in all columns.
struct Surveyed {
    const double* centered;
    const double2 *sums, *squares;
    const int2* reaches;
    const ChannelScale* lines;
    int width, n_channels, n_columns;
};
// Queries, and results of `normalize`.
struct Queries {
    const Query* queries;
    const double* normal;
    const unsigned char* kinds;
};
// Series, and which of them the columns are.
struct Columns {
    const double* values;
    int width, n_channels;
    const int *sizes, *series;
    int n_columns;
};
// Pairs of queries and columns: those that are left; where this is null, groups of queries with all columns.
struct Pairs {
    const int2* groups;
    int n_groups;
    const int2* left;
    const int* counts;
};
// Windows that could be the best, up to `capacity`; pairs of a query and a column that are left to `match`, and marks of
// these; counts of both.
struct Lists {
    int capacity;
    Entry* entries;
    unsigned* marks;
    int2* left;
    int* counts;
};
// Distances of best matches, and where these begin; that may be null.
struct Answers {
    double* distances;
    long long* starts;
};
// Sum of numbers and of what its roundings left over.
struct Sum {
    double high, low;
    __device__ __forceinline__ void add(double x) {
        const double sum = __dadd_rn(high, x), part = __dsub_rn(sum, high);
        low = __dadd_rn(low, __dadd_rn(__dsub_rn(high, __dsub_rn(sum, part)), __dsub_rn(x, part)));
        high = sum;
    }
    __device__ __forceinline__ void add(double2 other) { add(other.x), low += other.y; }
    __device__ __forceinline__ double2 both() const { return make_double2(high, low); }
};
