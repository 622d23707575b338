// Order lines: how cuts are judged, what scores and distances are worth, and what bounds a candidate.
#pragma once
#include "include/arithmetic.cuh"
#include "include/constants.cuh"
#include "include/walk.cuh"

// How cuts are judged; see `Tables`. Entropies are integers, of which `unit` are a nat times a weight of 1.
struct Judge {
    const int* labels;       // of the members
    const long long* terms;  // (n_classes, n_members + 1): of a class, n ln n of both sides by the number on the left
    const long long* base;   // (n_members + 1,): `whole` less n ln n of both sides of a cut; null where weights differ
    const double* weights;
    const int* counts;
    const float* rough_changes;  // (n_classes, n_members): differences of terms, in nats
    const float* rough_cuts;     // base of cut 32 r + l behind key r of lane l, in nats; -inf where leaves forbid it
    long long whole, n_members, n_classes, leaf, margin;  // what gains are off by where weights differ
    double least, share, total;  // least weight of a leaf; weight of a series, at most, of that of all
    double slack;                // what a sum of the rough ones is wrong by
    double unit;
};

// Bounds of a candidate, from its order line.
struct CandidateBound {
    long long gain;   // that the gain does not exceed
    float high, low;  // that the gap does not exceed, and reaches for certain; low is -inf where nothing is
    int series, start, length, way;
};

// The best that is reached for certain: a gain, which any warp may raise, and the gap that is reached by one
// with the gain `settled`.
struct Reached {
    long long gain, settled;
    float gap;
    int count;  // entries on the list
};

// Of every row to judge: where it is in the block of candidates, how many points its series has, and which of the members
// that is.
struct Rows {
    const int *rows, *sizes, *owns;
};

// The node whose candidates are judged: which series its members are; distances of the literals before, and which are
// exactly 0 or 1; the ways to join these, and the channel of the candidates.
struct Node {
    const int* members;
    const Judge* rules;
    const float* before;
    const unsigned char* settled;
    int n_ways;
    const int* ways;
    int channel, tabled;  // whether shared memory has room for `rough_changes`
};

// The list of candidates that could be the best, and the best that is reached.
struct BoundList {
    Reached* reached;
    CandidateBound* list;
    int capacity;
};

// The gain that is reached for certain by now.
__device__ __forceinline__ long long gain_reached(const BoundList& bounds) {
    return *(volatile long long*)&bounds.reached->gain;
}

// Put a candidate on the list, and raise the gain that is reached to `certain`, if that is one: one thread.
__device__ __forceinline__ void append(const CandidateBound& found, bool reaches, long long certain, const BoundList& bounds) {
    if (reaches) atomicMax(&bounds.reached->gain, certain);
    const int place = atomicAdd(&bounds.reached->count, 1);
    if (place < bounds.capacity) bounds.list[place] = found;
}

// n ln n of both sides of a cut where classes weigh differently; false where a side weighs too little. `left`
// has the numbers of classes on the left, `apart` from each other.
template <typename T>
__device__ __noinline__ bool weigh(const Judge& judge, const T* left, int apart, long long& both) {
    double on_left = 0, on_right = 0;
    for (int c = 0; c < judge.n_classes; ++c) {
        const int here = left[c * apart];
        on_left += here * judge.weights[c];
        on_right += (judge.counts[c] - here) * judge.weights[c];
    }
    both = __double2ll_rn(judge.unit * on_left * log(fmax(on_left, 1e-300)))
         + __double2ll_rn(judge.unit * on_right * log(fmax(on_right, 1e-300)));
    return fmin(on_left, on_right) >= judge.least * (1 - 1e-12);
}

// Units of a line for what heads leave out, the root, and the rounding of keys.
// see "order line keys" in docs/developer/numerics.rst
constexpr float UNITS = 3.5f;

// A key: a distance in units of the line (22 bits), whether it is exact, and the label of the series (LABEL_BITS).
constexpr int UNIT_BITS = 31 - LABEL_BITS;
constexpr unsigned LABELS = (1u << LABEL_BITS) - 1, NO_KEY = 0xffffffffu;

__device__ __forceinline__ unsigned units_of(unsigned key) { return key >> (LABEL_BITS + 1); }
__device__ __forceinline__ unsigned is_exact(unsigned key) { return key >> LABEL_BITS & 1; }
__device__ __forceinline__ unsigned label_of(unsigned key) { return key & LABELS; }
// How far the distance of the next key is, in units.
__device__ __forceinline__ int units_between(unsigned key, unsigned next) {
    return (int)units_of(next) - (int)units_of(key);
}

// Error of the distances d of a line: `root`, or error / d where that is less, and some units, of which the largest
// distance has 2^22. TOLERANCE, by which equal neighbours may differ, is counted with it: for distances above 1 a unit
// is larger.
struct ErrorBound {
    float error, root, unit, inverse;

    __device__ __forceinline__ float distance(unsigned key) const { return (float)units_of(key) * unit; }
    // units of a line whose largest distance is `most`
    __device__ __forceinline__ void set_unit(float most) {
        unit = fmaxf(most, 1e-30f) * (1.0f / (1 << UNIT_BITS));
        inverse = 1 / unit;
    }
    __device__ __forceinline__ float of(float distance) const {
        return fminf(root, __fdividef(error, distance)) + UNITS * unit + (float)TOLERANCE;
    }
};

// Relation of two neighbours in a line.
enum { APART, OPEN, EQUAL };

// Runs of neighbours that are open or equal: how many pairs, whether any is open, and whether any is equal or open
// and of two classes, so that the order of the run matters.
constexpr int PAIRS = 0xffff, ANY_OPEN = 1 << 16, MATTERS = 1 << 17;

__device__ __forceinline__ int add_runs(int run, int more) {
    return ((run & PAIRS) + (more & PAIRS)) | ((run | more) & (ANY_OPEN | MATTERS));
}

__device__ __forceinline__ int pair_of(int relation, bool differ) {
    return 1 | (relation == OPEN ? ANY_OPEN : 0) | (relation == EQUAL || differ ? MATTERS : 0);
}

// Pairs of a run that cannot be judged one by one: more than `alone`, and in an order that is open and matters.
__device__ __forceinline__ int doubtful_pairs(int run, int alone) {
    const bool doubtful = (run & ANY_OPEN) && (run & MATTERS) && (run & PAIRS) > alone;
    return doubtful ? run & PAIRS : 0;
}

__device__ __forceinline__ int relation(unsigned key, unsigned next, const ErrorBound& doubt) {
    const int apart = units_between(key, next);
    // exact distances are 0 or 1, unless all are large
    if (is_exact(key) && is_exact(next) && doubt.unit < 0.25f) return apart == 0 ? EQUAL : APART;
    return (apart - 1) * doubt.unit <= 2 * doubt.of(doubt.distance(key)) ? OPEN : APART;
}

// Runs of neighbours that are open or equal, as one lane or thread meets them: the most doubtful pairs of one, its first
// run, which may go on from the lane before, the run that goes on, and whether there is one between that ended.
struct Runs {
    int longest, head, run;
    bool broken;

    __device__ __forceinline__ void add(int relative, bool differ, int alone) {
        if (relative != APART) {
            run = add_runs(run, pair_of(relative, differ));
            longest = max(longest, doubtful_pairs(run, alone));
        } else {
            if (!broken) head = run;
            broken = true;
            run = 0;
        }
    }
};

// The distance that a score of `shapelets.cu` stands for: the root of twice the middle of what its bits may be. Scores
// are 2 at most, unless products were too large.
__device__ __forceinline__ float distance_of(int score) {
    score = min(score, 0x40000000);
    // from the exponent of doubles to that of floats; what is less than floats hold is nothing
    constexpr int BIAS = (1023 - 127 - 1) << 20;
    const float square = __int_as_float((score - BIAS) << 3 | 4);
    return score > BIAS ? square * rsqrtf(square) : 0.0f;
}

// The most that a cut may gain beyond the best one where up to `pairs` + 1 series could change sides, in nats.
__device__ __forceinline__ float gain_of_changes(const Judge& judge, int pairs) {
    // see "open runs" in docs/developer/numerics.rst
    const float share = fminf(0.5f, fmaxf(1e-9f, (pairs + 1) * (float)judge.share) * 1.0001f);
    return (float)judge.total * 1.0001f * (-share * logf(share) - (1 - share) * logf(1 - share));
}

// Scores of one length: heads[b, row, i] of a block of candidates; weights, constant: of their windows, n_windows to a
// series; errors, by their leading bits, and floors as `doubts` has them; kinds of all series.
struct Scores {
    const int* heads;
    const double* weights;
    const unsigned char* constant;
    const int* errors;
    const float* floors;
    const int* kinds;
    int n_windows, length;
};

// Error of the distances of a candidate, from the leading bits of the largest of `errors`; the unit is set later.
__device__ __forceinline__ ErrorBound bound_errors(const Scores& scores, int worst, int row, long long candidate) {
    const float largest = (float)(__hiloint2double(worst, 0) * scores.weights[candidate]);
    // what is not a number is too much, too
    const float error = fminf(8.0f, (largest + scores.floors[row]) * 1.00001f);
    return {error, sqrtf(error), 0, 0};
}

// Distances, of which those before may have any size, are taken for this one at most: the order of what is beyond is
// open, and its gap endless.
constexpr float LARGEST = 1e30f;

// Distance of a candidate to member k by its score, joined with the one `before` in the given way; whether it is exact, and
// whether it may be another one than before. `kind` is 1 where the member has constant windows only, 2 where it has
// none; `plain` tells that neither a member nor the candidate has any.
__device__ __forceinline__ float joined_distance(
    int score, int kind, bool own, bool plain, bool is_constant, const ErrorBound& doubt, int way, const float* before,
    const unsigned char* settled, int k, bool& sure, bool& changed
) {
    float distance = distance_of(score);
    sure = false;
    // where others may be off by half of what exact ones are apart, these settle nothing
    const bool settling = is_constant || doubt.root < 0.5f;
    if (own) distance = 0.0f, sure = settling;
    else if (!plain) {
        if (is_constant) distance = kind & 1 ? 0.0f : 1.0f, sure = true;
        else if (kind == 1) distance = 1.0f, sure = settling;
        else if (kind == 3) {
            // within the error of 1 it may be either; beyond it is 1
            sure = distance > 1.0f + doubt.of(1.0f) + 1e-6f;
            distance = fminf(distance, 1.0f);
        }
    }
    if (way != 0) {
        const float known = fminf(__ldg(before + k), LARGEST), sign = way == 1 ? 1.0f : -1.0f;
        // how far this distance is beyond the one before, in the way that counts; both are rounded, unless exact
        const float ahead = sign * (distance - known);
        const float near = (sure ? 0.0f : doubt.of(fminf(distance, known))) + 2e-6f;
        const bool open = !(sure && __ldg(settled + k)) && fabsf(ahead) <= near;
        changed = changed || ahead > 0 || open;
        if (ahead <= 0) distance = known;
        sure = !open && (ahead > 0 ? sure : __ldg(settled + k) && settling);
    }
    return distance;
}

// The key of a distance.
__device__ __forceinline__ unsigned key_of(float distance, bool sure, int label, const ErrorBound& doubt) {
    const unsigned units = (unsigned)(distance * doubt.inverse);
    return (min(units, (1u << UNIT_BITS) - 1) << 1 | (unsigned)sure) << LABEL_BITS | (unsigned)label;
}
