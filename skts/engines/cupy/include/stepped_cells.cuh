// Cell policies of the elastic family, whose steps cost differently or by place: see cells.cuh.
//
// The distances and their papers are in families/elastic/distances.py. T is the type of the points. In
// double, sums run in the order of the CPU engine: terms of all channels first, then what a step costs
// besides, then the cell before.
#pragma once
#include "include/cells.cuh"

struct SteppedCell : PlainCell {
    enum { UNIFORM = false };
};

// The least of the three cells before, each with the price of the step that leads on from it.
template <typename V>
__device__ __forceinline__ V least_step(V match, V down, V right, const Before<V>& before) {
    return Arithmetic<V>::min3(
        plus(match, before.diagonal), plus(down, before.up), plus(right, before.left));
}

// The same where the two steps beside the diagonal have one price.
template <typename V>
__device__ __forceinline__ V least_step(V match, V aside, const Before<V>& before) {
    const V best = Arithmetic<V>::smaller(before.up, before.left);
    return Arithmetic<V>::smaller(plus(match, before.diagonal), plus(aside, best));
}

// Edit distance with real penalty: a point that is left out costs its distance from `gap`.
template <typename T>
struct Erp : SteppedCell {
    enum { BORDERS = true };
    T gap;

    __device__ __forceinline__ T gap_price(T point) const {
        // searches in float have the gap at 0 (`rescaled`)
        if constexpr (sizeof(T) == 4) return fabsf(point);
        else return Arithmetic<T>::difference(point, gap);
    }

    template <typename At>
    __device__ __forceinline__ T skip(const At& at) const {
        return at.sum([&](int c) { return gap_price(at.x(c)); });
    }

    template <typename At>
    __device__ __forceinline__ T join(const At& at, const Before<T>& before) const {
        const T match = at.total(Absolute{});
        const T right = at.sum([&](int c) { return gap_price(at.y(c)); });
        return least_step(match, skip(at), right, before);
    }
};

// Edits: points that differ by more than `epsilon` in a channel cost REPLACEMENT, points left out 1.
template <typename T, int REPLACEMENT>
struct Edits : SteppedCell {
    enum { BORDERS = true, COUNTS = true, SETTLES = true };
    T epsilon;

    template <typename At>
    __device__ __forceinline__ float skip(const At&) const { return 1.0f; }

    template <typename At>
    __device__ __forceinline__ float join(const At& at, const Before<float>& before) const {
        // 1 or 0: one instruction makes these of a comparison
        float differ = at.sum([&](int c) {
            return Arithmetic<T>::difference(at.x(c), at.y(c)) > epsilon ? 1.0f : 0.0f;
        });
        if (At::CHANNELS != 1) differ = fminf(differ, 1.0f);
        const float match = __fmaf_rn(differ, (float)REPLACEMENT, before.diagonal);
        return fminf(match, fminf(before.up, before.left) + 1.0f);
    }
};

// Longest common subsequence.
template <typename T>
struct Lcss : Edits<T, 2> {
    __device__ __forceinline__ T settle(T cost, int n, int m, T, T) const {
        return (cost - T(abs(n - m))) / T(2 * min(n, m));
    }
};

// Edit distance on real sequences; with SERIES each series brings its own `epsilon`.
template <typename T, bool SERIES>
struct Edr : Edits<T, 1> {
    enum { OWN = SERIES };

    __device__ __forceinline__ void meet(T x, T y) { this->epsilon = x > y ? x : y; }

    __device__ __forceinline__ T settle(T cost, int n, int m, T, T) const {
        return cost / T(max(n, m));
    }
};

// Whether points match: 1 or 0.
template <typename T, bool SCALES>
struct Matching {
    T epsilon;

    __device__ __forceinline__ float match(T x, T y) const {
        return Arithmetic<T>::difference(x, y) > epsilon ? 0.0f : 1.0f;
    }
};

// Points are scaled so that two differences of which one is at most epsilon, and one is above, are at least 1 apart
// (`scaled_epsilon` in cells.py). Then one addition that saturates is the comparison, where that would take one of the
// scarcer instructions that compare.
template <>
struct Matching<float, true> {
    float scale;
    float limit;  // scaled epsilon, and 1

    __device__ __forceinline__ float match(float x, float y) const {
        return __saturatef(limit - fabsf(x - y));
    }
};

// Longest common subsequence in searches: cells hold n less the length of that up to here, where Lcss counts
// i + j less twice that length. So steps beside the diagonal cost nothing, and counts go from 0 to n.
template <typename T>
struct LcssSearch : SteppedCell, Matching<T, sizeof(T) == 4> {
    enum { BORDERS = true, COUNTS = true, SETTLES = true, RELATIVE = true, SCALED = sizeof(T) == 4 };

    __device__ __forceinline__ float origin(int n) const { return float(n); }

    template <typename At>
    __device__ __forceinline__ float skip(const At&) const { return 0.0f; }

    template <typename At>
    __device__ __forceinline__ float join(const At& at, const Before<float>& before) const {
        float matches = at.sum([&](int c) { return this->match(at.x(c), at.y(c)); });
        if (At::CHANNELS != 1) matches = __saturatef(matches - (At::CHANNELS - 1));
        return Arithmetic<float>::min3(before.diagonal - matches, before.up, before.left);
    }

    __device__ __forceinline__ T settle(T value, int n, int m, T, T) const {
        return (2 * value + T(m - n) - T(abs(n - m))) / T(2 * min(n, m));
    }
};

// Points are matched together with those before them; deletions have a price besides.
template <typename T>
struct Deletions : SteppedCell {
    enum { LOOKS_BACK = true };
    T deletion;

    template <typename At>
    __device__ __forceinline__ T match(const At& at) const {
        return at.sum([&](int c) {
            const T before = Arithmetic<T>::difference(at.x_before(c), at.y_before(c));
            return plus(Arithmetic<T>::difference(at.x(c), at.y(c)), before);
        });
    }

    template <typename At>
    __device__ __forceinline__ T least(const At& at, T match, const Before<T>& before) const {
        const T down =
            at.sum([&](int c) { return Arithmetic<T>::difference(at.x(c), at.x_before(c)); });
        const T right =
            at.sum([&](int c) { return Arithmetic<T>::difference(at.y(c), at.y_before(c)); });
        return least_step(match, plus(down, deletion), plus(right, deletion), before);
    }
};

// Time warp edit distance; `stiffness` is the price of a difference in time of one point.
template <typename T>
struct Twe : Deletions<T> {
    enum { PLACED = true };
    T stiffness;

    template <typename At>
    __device__ __forceinline__ T join(const At& at, const Before<T>& before) const {
        const T late = Arithmetic<T>::multiply(stiffness, fabs(at.offset_as_number()));
        return this->least(at, plus(this->match(at), late), before);
    }
};

// Move-split-merge, of one channel.
template <typename T>
struct Msm : Deletions<T> {
    enum { SETTLES = true };

    template <typename At>
    __device__ __forceinline__ T join(const At& at, const Before<T>& before) const {
        return this->least(at, this->match(at), before);
    }

    __device__ __forceinline__ T settle(T cost, int, int, T x, T y) const {
        return plus(cost, Arithmetic<T>::difference(x, y)) / 2;
    }
};

// Amerced dynamic time warping: steps beside the diagonal cost more.
template <typename T, typename Metric>
struct Amerced : SteppedCell {
    T penalty;

    template <typename At>
    __device__ __forceinline__ T join(const At& at, const Before<T>& before) const {
        const T match = at.total(Metric{});
        return least_step(match, plus(match, penalty), before);
    }
};

// Weighted dynamic time warping: costs have weights by place. weights[k] is that of the offset k, which
// may lie as far on either side as kernels look (`WEIGHTS_MARGIN` in cells.py). With PAIRS the weights depend on
// the longer length: then weights[k] is that of k = 2 |offset| - length.
template <typename T, typename Metric, bool PAIRS>
struct Weighted : PlainCell {
    enum { PLACED = true, OWN = PAIRS };
    const T* weights;

    __device__ __forceinline__ void meet(T x, T y) { weights -= (int)(x > y ? x : y); }

    template <typename At>
    __device__ __forceinline__ T join(const At& at, T best) const {
        const T weight = weights[PAIRS ? 2 * abs(at.offset()) : at.offset()];
        return plus(Arithmetic<T>::multiply(at.total(Metric{}), weight), best);
    }
};
