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
#include "profile/certified.cuh"
#include "profile/errors.cuh"
#include "profile/refined.cuh"
#include "profile/runs.cuh"

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
    const double slip = FLOAT64_UNIT * (2 * length + 8 + 4 * blur);
    return CERTIFIED_ROUNDING * length + FLOAT64_UNIT * (16 * length + 64 + 8 * root * blur) + 8 * length * slip * slip;
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

// pairs_of_runs: pairs of runs whose scores reach what their windows need, and their sums of products, of the deviations of
// the window with the points of the other; in any order, and no more than `capacity`. `lanes` others for each bit of a run.
//
// One warp, one run, BLOCK others at a time. Points lie in shared memory, SPAN of them at a time; a lane adds the products
// of STRIP points that follow each other, whose others move through its registers, to the sums of all others.
constexpr int BLOCK = 16, STRIP = 8, SPAN = 32 * STRIP, RUN_WARPS = 4;
// Where a point lies, so that lanes do not share banks.
__device__ __forceinline__ int spread_out(int t) { return t + t / STRIP; }

extern "C" __global__ void __launch_bounds__(32 * RUN_WARPS) pairs_of_runs(
    const Run* __restrict__ list, int count, int lanes, const Searched* __restrict__ line, int n_points, int length,
    long long least_apart, int sign, const double* __restrict__ reached, long long capacity, int* __restrict__ windows,
    int* __restrict__ places, double* __restrict__ products, unsigned long long* __restrict__ n_pairs
) {
    __shared__ double own_points[RUN_WARPS][SPAN / STRIP * (STRIP + 1)];
    __shared__ double other_points[RUN_WARPS][(SPAN + BLOCK) / STRIP * (STRIP + 1)];
    const int warp = threadIdx.x / 32, lane = threadIdx.x & 31, at = blockIdx.x * RUN_WARPS + warp;
    if (at >= count) return;
    const Run run = list[at];
    double* const own = own_points[warp];
    double* const others = other_points[warp];
    const double* const points = line->points;
    const double center = line->mean[run.window], norm = line->norm[run.window], slip = line->slip[run.window];
    const int n_windows = n_points - length + 1;
    for (unsigned rest = run.which; rest != 0;) {
        const int bit = __ffs(rest) - 1, first = run.first + bit * lanes;
        int size = lanes;
        if (lanes > 1) {
            rest &= rest - 1;
        } else {
            // bits of single others follow each other
            size = min(BLOCK, __popc(rest));
            rest = __popc(rest) > BLOCK ? rest & (ALL << (bit + BLOCK)) : 0;
        }
        double sums[BLOCK] = {};
        for (int start = 0; start < length; start += SPAN) {
            __syncwarp();
#pragma unroll
            for (int t = lane; t < SPAN; t += 32)
                own[spread_out(t)] = start + t < length ? points[run.window + start + t] - center : 0.0;
            for (int t = lane; t < SPAN + BLOCK; t += 32) {
                const int place = first + start + t;
                others[spread_out(t)] = place < n_points ? points[place] : 0.0;
            }
            __syncwarp();
            double ring[BLOCK];
#pragma unroll
            for (int c = 0; c < BLOCK - 1; ++c) ring[c] = others[spread_out(lane * STRIP + c)];
#pragma unroll
            for (int u = 0; u < STRIP; ++u) {
                ring[(u + BLOCK - 1) % BLOCK] = others[spread_out(lane * STRIP + u + BLOCK - 1)];
                const double x = own[spread_out(lane * STRIP + u)];
#pragma unroll
                for (int c = 0; c < BLOCK; ++c) sums[c] = fma(x, ring[(u + c) % BLOCK], sums[c]);
            }
        }
        double sum = 0;
#pragma unroll
        for (int c = 0; c < BLOCK; ++c) {
            const double total = warp_sum(sums[c]);
            if (lane == c) sum = total;
        }
        const int other = first + lane;
        bool near = lane < size && other < n_windows && line->regular[other] &&
                    sign * ((long long)other - run.window) > least_apart;
        if (near) {
            const double theirs = line->norm[other];
            const double error =
                refined_error(norm, theirs, center, line->mean[other], slip, line->slip[other], length);
            near = sum / theirs + error >= reached[run.window];
        }
        const unsigned votes = __ballot_sync(ALL, near);
        if (votes == 0) continue;
        unsigned long long place = 0;
        if (lane == 0) place = atomicAdd(n_pairs, (unsigned long long)__popc(votes));
        place = __shfl_sync(ALL, place, 0) + lanes_before(votes, lane);
        if (!near || place >= capacity) continue;
        windows[place] = run.window;
        places[place] = other;
        products[place] = sum;
    }
}

// score_lengths: upper bounds of the correlations of pairs at all lengths, uppers[k, pair], -1 where a pair is none;
// `reached` of a window rises to the best lower bound. listed[pair]: the sum of products at lengths[0] of the deviations
// of the window with the points of the other. One thread, one pair.
extern "C" __global__ void score_lengths(
    const double* __restrict__ points, const double* __restrict__ mean, const double* __restrict__ sums,
    const double* __restrict__ roots, const unsigned char* __restrict__ regular, const int* __restrict__ lengths,
    const int* __restrict__ exclusions, int n_lengths, int n_points, int stride, const int* __restrict__ windows,
    const int* __restrict__ places, const double* __restrict__ listed, long long n_pairs,
    double* __restrict__ reached, double* __restrict__ uppers
) {
    const long long pair = (long long)blockIdx.x * blockDim.x + threadIdx.x;
    if (pair >= n_pairs) return;
    const int i = windows[pair], j = places[pair];
    const double center = mean[i], other = mean[j];
    int t = lengths[0];
    double products = listed[pair] - other * sums[i];
    const double away = FLOAT64_UNIT * 4 * t * sqrt((double)t) * fabs(other);
    for (int k = 0; k < n_lengths; ++k) {
        const int length = lengths[k];
        const long long a = (long long)k * stride + i, b = (long long)k * stride + j;
        double upper = -1;
        if (max(i, j) + length <= n_points && regular[a] && regular[b] && abs(i - j) > exclusions[k]) {
            for (; t < length; ++t) products = fma(points[i + t] - center, points[j + t] - other, products);
            const double found = correlation(products, sums[a], sums[b], roots[a], roots[b], length);
            const double error = correlation_error(roots[a], roots[b], center, other, length) + away / roots[b];
            upper = found + error;
            if (found - error > 0) raise(reached + a, found - error);
        }
        uppers[k * n_pairs + pair] = upper;
    }
}

// place_pairs: of the pairs of each window whose upper bounds it has not surpassed, one goes to chosen[window], which begins
// as TAKES_NO_PART, and others to a list, in any order. One thread, one pair.
extern "C" __global__ void place_pairs(
    const int* __restrict__ windows, const int* __restrict__ places, const double* __restrict__ uppers,
    long long n_pairs, const double* __restrict__ reached, int* __restrict__ chosen, int* __restrict__ other_windows,
    int* __restrict__ other_places, int* __restrict__ n_others
) {
    const long long pair = (long long)blockIdx.x * blockDim.x + threadIdx.x;
    if (pair >= n_pairs) return;
    const int window = windows[pair];
    if (!(uppers[pair] >= reached[window])) return;
    const int place = places[pair];
    if (atomicCAS(chosen + window, TAKES_NO_PART, place) == TAKES_NO_PART) return;
    const int at = atomicAdd(n_others, 1);
    other_windows[at] = window;
    other_places[at] = place;
}

// certify_chosen: certified distances of all windows to their chosen neighbours, infinite where there is none. One
// thread, one window: those side by side read points side by side, and mostly those of their neighbours, too.
extern "C" __global__ void certify_chosen(
    const Line* __restrict__ line, const int* __restrict__ chosen, int n_windows, int length,
    double* __restrict__ distances
) {
    const int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= n_windows) return;
    const int j = chosen[i];
    double distance = Arithmetic<double>::infinity();
    if (j != TAKES_NO_PART) distance = certified_distance(Window(*line, i, true), Window(*line, j, true), length);
    distances[i] = distance;
}

// places_of: indices as the host has them, -1 for none. One thread, one window.
extern "C" __global__ void places_of(
    const int* __restrict__ indices, int count, long long* __restrict__ places
) {
    const int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < count) places[i] = indices[i] == TAKES_NO_PART ? -1 : indices[i];
}
