// Candidates of several lengths of the window at once: pairs that a walk at the shortest of them has listed are scored
// at all, and so few are left to certify at each.
//
// Let S(i) be the sum of squares of the deviations of window i. For windows i and j of l points that begin longer ones of
// L points, with correlations r > 0 and R > 0,
//
//     S_l(i) (1 - r^2) <= S_L(i) (1 - R^2),
//
// since both sides are least sums of squares of a fit to window i by window j, of which the left one has fewer terms. So
// a window whose nearest neighbour at L correlates R or more has it among those that correlate at least
// sqrt(1 - S_L / S_l (1 - R^2)) at l.
#include "profile/blocks.cuh"

// Most lengths at once, MOST_TOGETHER in length_groups.py.
constexpr int MOST_LENGTHS = 16;
// Windows on either side whose neighbours a window follows, where its own are none.
constexpr int MOST_AWAY = 32;

// The correlation of two windows, from sums of their deviations from any two numbers and of products of these, and the
// roots of their sums of squares about their means.
__device__ __forceinline__ double correlation(double products, double sum_a, double sum_b, double root_a, double root_b,
                                              int length) {
    return (products - sum_a * sum_b / length) / (root_a * root_b);
}

// How far such a correlation may be off from the one that certified distances stand for.
// see "correlations of several lengths" in docs/developer/numerics.rst
__device__ __forceinline__ double correlation_error(
    double root_a, double root_b, double mean_a, double mean_b, int length
) {
    const double root = sqrt((double)length);
    const double blur = fmax((root_a + fabs(mean_a)) / root_a, (root_b + fabs(mean_b)) / root_b);
    // in float64: 16 times a length may be more than an int holds
    const double slip = FLOAT64_UNIT * (2.0 * length + 8 + 4 * blur);
    return CERTIFIED_ROUNDING * length + FLOAT64_UNIT * (16.0 * length + 64 + 8 * root * blur) + 8.0 * length * slip * slip;
}

// energies: of each window the sum of deviations from `mean`, its mean at lengths[0], and the root of the sum of squares
// about its own mean, at each of the lengths: sums[k, i] and roots[k, i]. One thread, one window.
extern "C" __global__ void energies(
    const double* __restrict__ points, const double* __restrict__ mean, const int* __restrict__ lengths, int n_lengths,
    int n_points, int stride, double* __restrict__ sums, double* __restrict__ roots
) {
    const int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= stride) return;
    const double center = mean[i];
    double sum = 0, squares = 0;
    int t = 0;
    for (int k = 0; k < n_lengths; ++k) {
        const int length = lengths[k];
        if (i + length > n_points) return;
        for (; t < length; ++t) {
            const double x = points[i + t] - center;
            sum += x;
            squares = fma(x, x, squares);
        }
        sums[(long long)k * stride + i] = sum;
        roots[(long long)k * stride + i] = sqrt(fmax(squares - sum * sum / length, 0.0));
    }
}

// limits: leading bits of the score at lengths[0] that the nearest neighbour of a window at any of the lengths reaches,
// as far as `guesses` of its neighbours tell; 0 where they tell nothing. One thread, one window.
//
// guesses[g, i] is a neighbour of window i; windows from known[g] on follow that of the last one before. Where one is no
// window at all the lengths, that which begins as much earlier as they differ is looked at, too, and where none is, the
// neighbours of the windows beside it are followed. regular[k, i]: whether window i takes part at lengths[k], and so at
// all before.
template <typename T>
__global__ void limits(
    const double* __restrict__ points, const double* __restrict__ mean, const double* __restrict__ sums,
    const double* __restrict__ roots, const unsigned char* __restrict__ regular, const int* __restrict__ lengths,
    int n_lengths, int n_points, int stride, const int* __restrict__ guesses, const int* __restrict__ known,
    int n_guesses, int exclusion, int* __restrict__ tops
) {
    const int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= stride) return;
    const auto takes_part = [&](int window, int k) {
        return window + lengths[k] <= n_points && regular[(long long)k * stride + window];
    };
    int n_mine = 0;
    while (n_mine < n_lengths && takes_part(i, n_mine)) ++n_mine;
    if (n_mine == 0) {
        tops[i] = TAKES_NO_PART;
        return;
    }
    double best[MOST_LENGTHS];
    for (int k = 0; k < n_mine; ++k) best[k] = 0;
    const double center = mean[i];
    // lengths at which a neighbour is known
    int n_known = 0;
    const auto look_at = [&](int j) {
        if (j < 0 || j >= stride || abs(i - j) <= exclusion) return;
        const double other = mean[j];
        double products = 0;
        int t = 0;
        for (int k = 0; k < n_mine && takes_part(j, k); ++k) {
            const int length = lengths[k];
            for (; t < length; ++t) products = fma(points[i + t] - center, points[j + t] - other, products);
            const long long a = (long long)k * stride + i, b = (long long)k * stride + j;
            const double found = correlation(products, sums[a], sums[b], roots[a], roots[b], length) -
                                 3 * correlation_error(roots[a], roots[b], center, other, length);
            best[k] = fmax(best[k], found);
            if (k == n_known && found > 0) ++n_known;
        }
    };
    const auto follow = [&](int g, int from) {
        const int guess = guesses[(long long)g * stride + from];
        if (guess == TAKES_NO_PART) return;
        look_at(guess + i - from);
        if (n_known < n_mine) look_at(guess + i - from - (lengths[n_mine - 1] - lengths[0]));
    };
    for (int g = 0; g < n_guesses; ++g) follow(g, min(i, known[g] - 1));
    for (int away = 1; away <= MOST_AWAY && n_known < n_mine; ++away)
        for (int g = 0; g < n_guesses; ++g) {
            if (i >= away) follow(g, min(i - away, known[g] - 1));
            if (i + away < known[g]) follow(g, i + away);
        }
    const double shortest = roots[i];
    double least = 1;
    for (int k = 0; k < n_mine; ++k) {
        const double longer = roots[(long long)k * stride + i] / shortest, found = best[k];
        const double slack = FLOAT64_UNIT * 64 * lengths[k];
        const double rest = longer * longer * (1 - found * found) * (1 + slack) + slack;
        least = fmin(least, found > 0 && rest < 1 ? sqrt(1 - rest) : 0.0);
    }
    tops[i] = bits_below<T>(least * shortest * (1 - FLOAT64_UNIT * 64 * lengths[0]));
}

// odd: how many windows are finite, but do not take part, or of which pairs were skipped: *count grows. One thread, one
// window.
extern "C" __global__ void odd(
    const bool* __restrict__ finite, const bool* __restrict__ regular, const int* __restrict__ skipped,
    const int* __restrict__ others, int n_windows, int* __restrict__ count
) {
    const int i = blockIdx.x * blockDim.x + threadIdx.x;
    bool is_odd = false;
    if (i < n_windows) is_odd = skipped ? skipped[i] > 0 || others[i] > 0 : finite[i] && !regular[i];
    const unsigned votes = __ballot_sync(ALL, is_odd);
    if (votes && (threadIdx.x & 31) == 0) atomicAdd(count, __popc(votes));
}

// score_lengths: upper bounds of the correlations of pairs at all lengths, uppers[k, pair], -1 where a pair is none;
// `reached` of a window rises to the best lower bound. listed[pair]: its covariance at lengths[0], from pairs.cu, and
// `groups` bounds of its windows there. One thread, one pair.
extern "C" __global__ void score_lengths(
    const double* __restrict__ points, const double* __restrict__ mean, const double* __restrict__ sums,
    const double* __restrict__ roots, const unsigned char* __restrict__ regular, const int* __restrict__ lengths,
    const int* __restrict__ exclusions, int n_lengths, int n_points, int stride, const int* __restrict__ windows,
    const int* __restrict__ places, const double* __restrict__ listed, const Group* __restrict__ groups,
    long long n_pairs, double* __restrict__ reached, double* __restrict__ uppers
) {
    const long long pair = (long long)blockIdx.x * blockDim.x + threadIdx.x;
    if (pair >= n_pairs) return;
    const int i = windows[pair], j = places[pair];
    const double center = mean[i], other = mean[j];
    int t = lengths[0];
    double products = listed[pair];
    const Extent rows = Extent::of_few(groups, max(0, i - ROWS + 1), i), cols = Extent::of_few(groups, max(0, j - ROWS + 1), j);
    // also for the errors of both means
    const double off = 2 * block_error<true>(rows, cols, t);
    for (int k = 0; k < n_lengths; ++k) {
        const int length = lengths[k];
        const long long a = (long long)k * stride + i, b = (long long)k * stride + j;
        double upper = -1;
        if (max(i, j) + length <= n_points && regular[a] && regular[b] && abs(i - j) > exclusions[k]) {
            for (; t < length; ++t) products = fma(points[i + t] - center, points[j + t] - other, products);
            const double found = correlation(products, sums[a], sums[b], roots[a], roots[b], length);
            const double error = correlation_error(roots[a], roots[b], center, other, length) + off / roots[a] / roots[b];
            upper = found + error;
            if (found - error > 0) raise(reached + a, found - error);
        }
        uppers[k * n_pairs + pair] = upper;
    }
}

// places_of: indices as the host has them, -1 for none. One thread, one window.
extern "C" __global__ void places_of(
    const int* __restrict__ indices, int count, long long* __restrict__ places
) {
    const int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < count) places[i] = indices[i] == TAKES_NO_PART ? -1 : indices[i];
}
