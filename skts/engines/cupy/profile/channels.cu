// Joins of many channels: covariances of all channels walk down diagonals, and the channels in which two windows are
// nearest are found by a sorting network in registers.
//
// A warp walks a block of 32 K neighbouring diagonals down a band of rows; lane l has the diagonals from l K on. Row i of
// a diagonal d is the pair of windows i and i + d, so that a row down the columns move on by one: of the K columns of a
// lane one is new. The squared distance of a pair in a channel is alpha_i + alpha_j - scale_i scale_j covariance, for
// windows of all kinds: constant ones have alpha 0, and those that are not finite FAR.
//
// All squares are lower bounds: the error of covariances is added to them before the first step, that of the rest is
// taken from alpha. `tops` are upper bounds of the sums of the nearest neighbours of all windows. `walk_channels` runs
// twice: first over a few of the diagonals, to lower `tops`; then it lists the pairs whose sums do not exceed them, and
// goes on to lower them. `channel_distances`, `settle_channels` and `channel_equals` measure what is listed.
#include "profile/certified.cuh"
#include "profile/channels.cuh"

// One block, one warp, of some diagonals of a band, see `block_of`. Channels are in their order: the first M count in any case. `steps` and `tops` are laid by `place_of`; `tops`
// are negative of windows that look for no neighbour. Pairs are listed, with lower bounds of their sums, if there is a list; those that find no room on it
// are marked, where `dropped` is given. The walk is one function: a step of it would take all of the covariances and columns
// that lanes hold in registers.
template <int C, int M, int K, int B, bool WORST, typename T>
__global__ void __launch_bounds__(32, B) walk_channels(
    const double* __restrict__ points_a, const double* __restrict__ mean_a, const ChannelStep<T>* __restrict__ steps_a,
    const ChannelGroup* __restrict__ groups_a, const double* __restrict__ points_b,
    const double* __restrict__ mean_b, const ChannelStep<T>* __restrict__ steps_b,
    const ChannelGroup* __restrict__ groups_b, int n_windows_a, int n_windows_b, int row, int row_stop, int col,
    int col_stop, int first_diagonal, int every, int offset, int height, int length, int normalize, float* tops_a, float* tops_b,
    int2* entries, float* sums, int capacity, int* n_entries, int* dropped_a, int* dropped_b
) {
    const int lane = threadIdx.x;
    const ChannelBlock block = block_of(blockIdx.x, 32 * K, row, row_stop, col, first_diagonal, every, offset, height);
    const int top = block.top, bottom = block.bottom;
    if (block.diagonal < 0 || block.diagonal >= col_stop - top) return;
    // a list that is full is made anew, of fewer rows
    if (entries != nullptr && dropped_a == nullptr && __ldcg(n_entries) > capacity) return;
    const int diagonal = (int)block.diagonal;
    // rows in which a diagonal of the block has a column of the tile
    const int first = max(top, col - diagonal - 32 * K + 1), stop = min(bottom, col_stop - diagonal);
    const int left = first + diagonal;
    constexpr int CHANNEL = 32 * K;
    constexpr float UP = 1 + (C + 8) * (float)FLOAT32_UNIT;

    // how much covariances are off, and, twice, the rest of squares
    __shared__ double errors[C];
    __shared__ float rests[C];
#pragma unroll 1
    for (int c = 0; c < C; ++c) {
        const int n_groups_a = (n_windows_a + JOIN_GROUP - 1) / JOIN_GROUP;
        const int n_groups_b = (n_windows_b + JOIN_GROUP - 1) / JOIN_GROUP;
        const ChannelBound bound = bound_channel<T>(
            groups_a + c * n_groups_a, groups_b + c * n_groups_b, n_windows_a, n_windows_b, first, stop, left,
            stop + diagonal + 32 * K, 0, length, normalize
        );
        if (lane == 0) errors[c] = bound.error, rests[c] = bound.rest;
    }
    __syncwarp();

    T cov[K][C];
    ChannelStep<T> held[K][C];
    float needed[K][C];
    const auto load = [&](int slot, int j) {
        const long long place = place_of(j, C, K);
#pragma unroll
        for (int c = 0; c < C; ++c) {
            held[slot][c] = load_step(steps_b + place + c * CHANNEL);
            needed[slot][c] = tops_b[place + c * CHANNEL];
        }
    };
    // covariances of the first row, from points
    const int middle = min(left + 16 * K, n_windows_b - 1);
#pragma unroll
    for (int c = 0; c < C; ++c) {
        double sums[K];
        first_covariances(
            points_a, mean_a, points_b, mean_b, n_windows_a, n_windows_b, length, normalize, c, first, middle,
            left + lane * K, 1, sums
        );
#pragma unroll
        for (int k = 0; k < K; ++k) cov[k][c] = (T)(left + lane * K + k < n_windows_b ? sums[k] + errors[c] : 0.0);
    }
    // the step that leads to it is taken from them, and made again
#pragma unroll
    for (int k = 0; k < K; ++k) {
        load(k, left + lane * K + k);
#pragma unroll
        for (int c = 0; c < C; ++c) {
            const ChannelStep<T> step = load_step(steps_a + place_of(first, C, K) + c * CHANNEL);
            cov[k][c] -= fma(step.p, held[k][c].p, step.r * held[k][c].r);
        }
    }

    for (int base = first; base < stop; base += K) {
#pragma unroll
        for (int u = 0; u < K; ++u) {
            const int i = base + u;
            if (i >= stop) break;
            // the column that is new to this lane takes the place of the one that leaves it
            if (i > first) load((u + K - 1) % K, i + diagonal + lane * K + K - 1);
            const long long own = place_of(i, C, K);
            float values[K][C], needed_row[C];
#pragma unroll
            for (int c = 0; c < C; ++c) {
                const ChannelStep<T> step = load_step(steps_a + own + c * CHANNEL);
                needed_row[c] = tops_a[own + c * CHANNEL];
#pragma unroll
                for (int k = 0; k < K; ++k) {
                    const ChannelStep<T>& other = held[(u + k) % K][c];
                    cov[k][c] = fma(step.p, other.p, fma(step.r, other.r, cov[k][c]));
                    const float distance = root_of(fmaxf((float)square_of(cov[k][c], step, other), 0.0f));
                    values[k][c] = WORST ? turned<M>(distance, c) : distance;
                }
            }
#pragma unroll
            for (int k = 0; k < K; ++k) {
                const int j = i + diagonal + lane * K + k, slot = (u + k) % K;
                order_channels<M, 0, power_above(C - M)>(values[k]);
                bool near = false;
                add_channels<M, WORST>(values[k], [&](int number, float total) {
                    near |= total <= fmaxf(needed_row[number - 1], needed[slot][number - 1]) && (!WORST || total >= 0);
                });
                if (!near || j < col || j >= col_stop) continue;
                const long long theirs = place_of(j, C, K);
                // upper bounds
                float upper[C];
#pragma unroll
                for (int c = 0; c < C; ++c) {
                    const ChannelStep<T> step = load_step(steps_a + own + c * CHANNEL);
                    const float error = (float)((T)(2.01 * errors[c]) * (step.scale * held[slot][c].scale)) + rests[c];
                    const float square = fmaxf((float)square_of(cov[k][c], step, held[slot][c]) + error, 0.0f);
                    const float distance = root_of(square) + CHANNEL_LOST;
                    upper[c] = WORST ? turned<M>(distance, c) : distance;
                }
                order_channels<M, 0, power_above(C - M)>(upper);
                add_channels<M, WORST>(upper, [&](int number, float total) {
                    if (total < 0) return;
                    const float most = total * (UP * UP);
                    const int at = (number - 1) * CHANNEL;
                    if (most < needed_row[number - 1]) lower(tops_a + own + at, most);
                    if (most < needed[slot][number - 1]) lower(tops_b + theirs + at, most);
                });
                if (entries == nullptr) continue;
                // other lanes, and other blocks, may have lowered what is needed
                bool list = false;
                add_channels<M, WORST>(values[k], [&](int number, float total) {
                    if (total < 0 || total > fmaxf(needed_row[number - 1], needed[slot][number - 1])) return;
                    const int at = (number - 1) * CHANNEL;
                    list |= total <= fmaxf(__ldcg(tops_a + own + at), __ldcg(tops_b + theirs + at));
                });
                if (!list) continue;
                const int place = atomicAdd(n_entries, 1);
                if (place < capacity) {
                    entries[place] = make_int2(i, j);
                    add_channels<M, WORST>(values[k], [&](int number, float total) {
                        sums[(long long)(number - 1) * capacity + place] = total;
                    });
                } else if (dropped_a != nullptr) {
                    dropped_a[i] = dropped_b[j] = 1;
                }
            }
        }
    }
}

// Keep the listed pairs whose sums do not exceed the bounds that were found since. One thread, one pair.
extern "C" __global__ void keep_pairs(
    const int2* __restrict__ entries, int count, const float* __restrict__ sums, int capacity, int n_channels,
    int n_included, int diagonals, const float* __restrict__ tops_a, const float* __restrict__ tops_b,
    int2* __restrict__ kept, int* n_kept
) {
    const int entry = blockIdx.x * blockDim.x + threadIdx.x;
    if (entry >= count) return;
    const int2 pair = entries[entry];
    const long long a = place_of(pair.x, n_channels, diagonals), b = place_of(pair.y, n_channels, diagonals);
    bool keep = false;
    for (int c = max(n_included - 1, 0); c < n_channels && !keep; ++c) {
        const float total = sums[(long long)c * capacity + entry];
        const int at = c * 32 * diagonals;
        keep = total >= 0 && total <= fmaxf(tops_a[a + at], tops_b[b + at]);
    }
    if (keep) kept[atomicAdd(n_kept, 1)] = pair;
}

// Certified distances of listed pairs in each channel. One thread, one pair in the channel of its block; lanes of a warp fetch the points of
// their pairs together, some of each pair at a time.
extern "C" __global__ void __launch_bounds__(128) channel_distances(
    const int2* __restrict__ entries, int count, const double* __restrict__ points_a,
    const double* __restrict__ mean_a, const double* __restrict__ inverse_a,
    const unsigned char* __restrict__ kinds_a, const double* __restrict__ points_b,
    const double* __restrict__ mean_b, const double* __restrict__ inverse_b,
    const unsigned char* __restrict__ kinds_b, int n_windows_a, int n_windows_b, int length, int normalize,
    double* __restrict__ distances
) {
    constexpr int POINTS = 16;
    __shared__ double points[2][4][32][POINTS + 1];
    const int c = blockIdx.y, lane = threadIdx.x & 31, warp = threadIdx.x / 32;
    const int entry = blockIdx.x * 128 + threadIdx.x;
    if (entry - lane >= count) return;
    const int2 pair = entries[min(entry, count - 1)];
    const long long a = (long long)c * n_windows_a, b = (long long)c * n_windows_b;
    const Line own{points_a + a + (long long)c * (length - 1), mean_a + a, inverse_a + a};
    const Line theirs{points_b + b + (long long)c * (length - 1), mean_b + b, inverse_b + b};
    const Window window(own, pair.x, normalize), other(theirs, pair.y, normalize);
    double total = 0;
    for (int from = 0; from < length; from += POINTS) {
        const int t = from + lane % POINTS;
        __syncwarp();
#pragma unroll 4
        for (int p = lane / POINTS; p < 32; p += 32 / POINTS) {
            const int x = __shfl_sync(ALL, pair.x, p), y = __shfl_sync(ALL, pair.y, p);
            if (t >= length) continue;
            points[0][warp][p][lane % POINTS] = own.points[x + t];
            points[1][warp][p][lane % POINTS] = theirs.points[y + t];
        }
        __syncwarp();
        const int n_points = min(POINTS, length - from);
        for (int n = 0; n < n_points; ++n) {
            const double mine = __dsub_rn(points[0][warp][lane][n], window.first);
            const double yours = __dsub_rn(points[1][warp][lane][n], other.first);
            total = Arithmetic<double>::add_square(
                certified_point(mine, window.mean, window.inverse), certified_point(yours, other.mean, other.inverse), total
            );
        }
    }
    if (entry >= count) return;
    double distance = __dsqrt_rn(total);
    const unsigned char kind = kinds_a[a + pair.x], its_kind = kinds_b[b + pair.y];
    if (kind == MISSING_KIND || its_kind == MISSING_KIND || isnan(distance)) {
        distance = Arithmetic<double>::infinity();
    }
    if (kind != MISSING_KIND && its_kind != MISSING_KIND && (kind == CONSTANT_KIND || its_kind == CONSTANT_KIND)) {
        distance = kind == its_kind ? 0.0 : __dsqrt_rn((double)length);
    }
    distances[(long long)c * count + entry] = distance;
}

// Mean distances of listed pairs by so many channels, and the least of both windows, if they look for neighbours. One thread, one pair, whose distances
// are put in order in its column of shared memory.
extern "C" __global__ void __launch_bounds__(32) settle_channels(
    const int2* __restrict__ entries, int count, int n_channels, int n_included, int worst,
    const double* __restrict__ distances, int looks_a, int looks_b, int n_windows_a, int n_windows_b,
    double* __restrict__ means, double* least_a, double* least_b
) {
    extern __shared__ double ordered[];
    const int entry = blockIdx.x * 32 + threadIdx.x;
    if (entry >= count) return;
    const int2 pair = entries[entry];
    double* const mine = ordered + threadIdx.x;
    const double infinity = Arithmetic<double>::infinity();
    for (int c = 0; c < n_channels; ++c) {
        const double value = distances[(long long)c * count + entry];
        int place = c;
        for (; place > n_included; --place) {
            const double other = mine[(place - 1) * 32];
            const bool before = worst ? value < infinity && (value > other || other == infinity) : value < other;
            if (!before) break;
            mine[place * 32] = other;
        }
        mine[place * 32] = value;
    }
    double total = 0;
    for (int c = 0; c < n_channels; ++c) {
        total = __dadd_rn(total, mine[c * 32]);
        const double mean = __ddiv_rn(total, (double)(c + 1));
        means[(long long)c * count + entry] = mean;
        if (!(mean < infinity)) continue;
        double* const least = least_a + (long long)c * n_windows_a + pair.x;
        double* const its_least = least_b + (long long)c * n_windows_b + pair.y;
        if (looks_a && mean < __ldcg(least)) lower(least, mean);
        if (looks_b && mean < __ldcg(its_least)) lower(its_least, mean);
    }
}

// Of equally near neighbours keep the first. One thread, one pair.
extern "C" __global__ void channel_equals(
    const int2* __restrict__ entries, int count, int n_channels, const double* __restrict__ means,
    const double* __restrict__ least_a, const double* __restrict__ least_b, int n_windows_a, int n_windows_b,
    int* indices_a, int* indices_b
) {
    const int entry = blockIdx.x * blockDim.x + threadIdx.x;
    if (entry >= count) return;
    const int2 pair = entries[entry];
    for (int c = 0; c < n_channels; ++c) {
        const double mean = means[(long long)c * count + entry];
        if (!(mean < Arithmetic<double>::infinity())) continue;
        const long long a = (long long)c * n_windows_a + pair.x, b = (long long)c * n_windows_b + pair.y;
        if (mean == least_a[a]) atomicMin(indices_a + a, pair.y);
        if (mean == least_b[b]) atomicMin(indices_b + b, pair.x);
    }
}
