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
#include "include/arithmetic.cuh"
#include "include/constants.cuh"
#include "include/warp.cuh"
#include "profile/certified.cuh"

// Sums beyond this are those of windows that are not finite.
constexpr float MOST_NEEDED = 1e14f;
// More than roots in float32 lose where squares underflow.
// see "channel sums" in docs/developer/numerics.rst
constexpr float CHANNEL_LOST = 1e-18f;
// Roundings of a square that is made in float32.
constexpr double SQUARE_UNITS = 8;
// Kinds of windows.
constexpr unsigned char CONSTANT_KIND = 1, MISSING_KIND = 2;

// What a walk needs of a window in a channel: the two factors of its step, and what makes squared distances.
template <typename T>
struct alignas(4 * sizeof(T)) ChannelStep {
    T p, r, scale, alpha;
};

// Bounds of a group of JOIN_GROUP windows in a channel: largest norm, step, error of a mean, share in the errors of
// squares, and finite alpha; least and largest mean.
struct ChannelGroup {
    double norm, step, slip, rest, energy, low, high;
};

// Squares below the normal numbers have the root 0.
__device__ __forceinline__ float root_of(float square) {
#if __CUDA_ARCH__
    float root;
    asm("sqrt.approx.ftz.f32 %0, %1;" : "=f"(root) : "f"(square));
    return root;
#else
    return sqrtf(square);
#endif
}

__device__ __forceinline__ ChannelStep<float> load_step(const ChannelStep<float>* place) {
    const float4 step = __ldg((const float4*)place);
    return ChannelStep<float>{step.x, step.y, step.z, step.w};
}
__device__ __forceinline__ ChannelStep<double> load_step(const ChannelStep<double>* place) {
    const double2 step = __ldg((const double2*)place), rest = __ldg((const double2*)place + 1);
    return ChannelStep<double>{step.x, step.y, rest.x, rest.y};
}

// Where a window is, of the first of C channels; those of the others follow 32 K apart. In blocks of 32 K windows the
// places of 0, K, 2 K, ... are neighbours, then those of 1, K + 1, ..., as lanes read them.
__device__ __forceinline__ long long place_of(unsigned window, int C, int K) {
    return (long long)(window / (32 * K)) * (32 * K * C) + window % K * 32 + window / K % 32;
}

// Batcher's sorting network for values M to N - 1 of an array: the least comes first.
// None is NaN, so that each comparator is two instructions.
template <int M, int N>
__device__ __forceinline__ void order_two(float (&values)[N], int a, int b) {
    if (M + b >= N) return;
    const float x = values[M + a], y = values[M + b];
    values[M + a] = fminf(x, y);
    values[M + b] = fmaxf(x, y);
}
template <int M, int FIRST, int SIZE, int STEP, int N>
__device__ __forceinline__ void merge_halves(float (&values)[N]) {
    if constexpr (M + FIRST < N) {
        if constexpr (2 * STEP < SIZE) {
            merge_halves<M, FIRST, SIZE, 2 * STEP>(values);
            merge_halves<M, FIRST + STEP, SIZE, 2 * STEP>(values);
#pragma unroll
            for (int i = FIRST + STEP; i + STEP < FIRST + SIZE; i += 2 * STEP) order_two<M>(values, i, i + STEP);
        } else {
            order_two<M>(values, FIRST, FIRST + STEP);
        }
    }
}
template <int M, int FIRST, int SIZE, int N>
__device__ __forceinline__ void order_channels(float (&values)[N]) {
    if constexpr (SIZE > 1 && M + FIRST < N) {
        order_channels<M, FIRST, SIZE / 2>(values);
        order_channels<M, FIRST + SIZE / 2, SIZE / 2>(values);
        merge_halves<M, FIRST, SIZE, 1>(values);
    }
}
constexpr int power_above(int n) {
    int power = 1;
    while (power < n) power *= 2;
    return power;
}

// A number that the compiler knows.
template <int N>
struct Count {
    static constexpr int value = N;
};

// The rows of a block, and its first diagonal.
struct ChannelBlock {
    int top, bottom;
    long long diagonal;
};

// Blocks of so many diagonals. They are numbered by their first columns, and among those of the same columns by
// bands: blocks that run at the same time read the same columns, and few rows. Of each band one of `every` blocks is walked,
// others in each.
__device__ __forceinline__ ChannelBlock block_of(
    long long number, int width, int row, int row_stop, int col, int first_diagonal, int every, int height
) {
    const int n_bands = (row_stop - row + height - 1) / height, band = (int)(number % n_bands);
    const int top = row + band * height, bottom = min(row_stop, top + height);
    // the first diagonal of a band; its columns, counted from those of the first band
    const long long open = max(first_diagonal, col - (bottom - 1));
    const long long from = row + max(first_diagonal, col - (min(row_stop, row + height) - 1));
    const long long shift = (top + open - from) / width;
    const long long block = number / n_bands * every + (band + shift) % every - shift;
    return ChannelBlock{top, bottom, block < 0 ? -1 : open + block * width};
}

// The largest bounds of the groups that hold windows `first` to `last`; lanes read them together.
__device__ __forceinline__ ChannelGroup largest_of(const ChannelGroup* groups, int n_groups, int first, int last) {
    ChannelGroup most{0, 0, 0, 0, 0, Arithmetic<double>::infinity(), -Arithmetic<double>::infinity()};
    for (int g = first / JOIN_GROUP + threadIdx.x; g <= min(last / JOIN_GROUP, n_groups - 1); g += 32) {
        const ChannelGroup one = groups[g];
        most.norm = fmax(most.norm, one.norm), most.step = fmax(most.step, one.step);
        most.slip = fmax(most.slip, one.slip), most.rest = fmax(most.rest, one.rest);
        most.energy = fmax(most.energy, one.energy);
        most.low = fmin(most.low, one.low), most.high = fmax(most.high, one.high);
    }
    most.norm = warp_largest(most.norm), most.step = warp_largest(most.step), most.slip = warp_largest(most.slip);
    most.rest = warp_largest(most.rest), most.energy = warp_largest(most.energy);
    most.low = warp_least(most.low), most.high = warp_largest(most.high);
    return most;
}

// The error of a covariance in a channel, for a block of `height` rows: of the walk and of the seed.
template <typename T>
__device__ __forceinline__ double covariance_error(
    const ChannelGroup& a, const ChannelGroup& b, int height, int length, int normalize
) {
    const double unit = sizeof(T) == 4 ? FLOAT32_UNIT : FLOAT64_UNIT, root = sqrt((double)length);
    // see "covariance walk" in docs/developer/numerics.rst
    double error = unit * (height + 8) * (2 * a.norm * b.norm + 8 * a.step * b.step);
    if (sizeof(T) == 4) error += FLOAT32_LOST;
    error += FLOAT64_UNIT * (length + 8) * a.norm * b.norm;
    if (normalize) {
        const double slip = a.slip + b.slip, drift = 2 * (b.high - b.low);
        error += FLOAT64_UNIT * (length + 8) * root * a.norm * drift;
        error += length * slip * (drift + slip) + 2 * height * slip * (a.step + b.step);
    }
    // it is added to the covariances, and walks with them
    return error * (1 + 8 * unit * (height + 8));
}

// Of a block from row `first` to `stop` and column `left` to `right`, some rows of which are walked again: how much
// covariances are off, and, twice, the rest of squares.
template <int C, typename T>
__device__ __forceinline__ void bound_block(
    double (&errors)[C], float (&rests)[C], const ChannelGroup* groups_a, const ChannelGroup* groups_b,
    int n_windows_a, int n_windows_b, int first, int stop, int left, int right, int again, int length, int normalize, T
) {
    const int n_groups_a = (n_windows_a + JOIN_GROUP - 1) / JOIN_GROUP;
    const int n_groups_b = (n_windows_b + JOIN_GROUP - 1) / JOIN_GROUP;
#pragma unroll 1
    for (int c = 0; c < C; ++c) {
        const ChannelGroup a = largest_of(groups_a + c * n_groups_a, n_groups_a, first, stop - 1);
        const ChannelGroup b = largest_of(groups_b + c * n_groups_b, n_groups_b, left, min(n_windows_b, right) - 1);
        double rest = a.rest + b.rest;
        // see "channel sums" in docs/developer/numerics.rst
        if (sizeof(T) == 4) rest += SQUARE_UNITS * FLOAT32_UNIT * (a.energy + b.energy);
        if (threadIdx.x == 0) {
            errors[c] = covariance_error<T>(a, b, stop - first + again, length, normalize);
            rests[c] = __double2float_ru(2.01 * rest);
        }
    }
    __syncwarp();
}

// The square of a distance; a lower bound, if the covariance is an upper one.
template <typename T>
__device__ __forceinline__ T square_of(T cov, const ChannelStep<T>& a, const ChannelStep<T>& b) {
    return (a.alpha + b.alpha) - cov * (a.scale * b.scale);
}

// A distance for the order in which the farthest comes first, of channel c: sums of those that are not finite will be
// negative.
template <int M>
__device__ __forceinline__ float turned(float distance, int c) {
    if (c < M) return distance <= MOST_NEEDED ? distance : -1e20f;
    return distance <= MOST_NEEDED ? -distance : distance;
}

// Call `use` with the number of channels and the sum of as many, M first and then those in order; what is negative is no
// sum. With WORST values are negative.
template <int M, bool WORST, int C, typename Use>
__device__ __forceinline__ void add_channels(const float (&values)[C], const Use& use) {
    float total = 0;
#pragma unroll
    for (int c = 0; c < C; ++c) {
        total += WORST && c >= M ? -values[c] : values[c];
        if (c + 1 >= M) use(c + 1, total);
    }
}

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
    int col_stop, int first_diagonal, int every, int height, int length, int normalize, float* tops_a, float* tops_b,
    int2* entries, float* sums, int capacity, int* n_entries, int* dropped_a, int* dropped_b
) {
    const int lane = threadIdx.x;
    const ChannelBlock block = block_of(blockIdx.x, 32 * K, row, row_stop, col, first_diagonal, every, height);
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
    bound_block<C>(
        errors, rests, groups_a, groups_b, n_windows_a, n_windows_b, first, stop, left, stop + diagonal + 32 * K, 0,
        length, normalize, T(0)
    );

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
        const double* const x = points_a + (long long)c * (n_windows_a + length - 1) + first;
        const double* const y = points_b + (long long)c * (n_windows_b + length - 1);
        const double own = normalize ? mean_a[(long long)c * n_windows_a + first] : 0.0;
        const double center = normalize ? mean_b[(long long)c * n_windows_b + middle] : 0.0;
        double sums[K] = {};
#pragma unroll 4
        for (int t = 0; t < length; ++t) {
            const double point = __ldg(x + t) - own;
#pragma unroll
            for (int k = 0; k < K; ++k) {
                const int j = min(left + lane * K + k, n_windows_b - 1);
                sums[k] = fma(point, __ldg(y + j + t) - center, sums[k]);
            }
        }
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

// Values of a pair that the lanes of a warp share: lane l has those from l Q on. Put them in order, by a bitonic network.
template <int Q>
__device__ __forceinline__ void order_over_lanes(float (&values)[Q]) {
    const int first = threadIdx.x * Q;
#pragma unroll
    for (int size = 2; size <= 32 * Q; size *= 2)
#pragma unroll
        for (int step = size / 2; step > 0; step /= 2)
#pragma unroll
            for (int q = 0; q < Q; ++q) {
                const bool ascending = ((first + q) & size) == 0;
                if (step >= Q) {
                    const float other = __shfl_xor_sync(ALL, values[q], step / Q);
                    const bool least = ascending == ((first & step) == 0);
                    values[q] = least ? fminf(values[q], other) : fmaxf(values[q], other);
                } else if ((q & step) == 0) {
                    const float x = values[q], y = values[q + step];
                    values[q] = ascending ? fminf(x, y) : fmaxf(x, y);
                    values[q + step] = ascending ? fmaxf(x, y) : fminf(x, y);
                }
            }
}

// Sums of these and all before, and of `start`.
template <int Q>
__device__ __forceinline__ void add_over_lanes(float (&values)[Q], float start) {
#pragma unroll
    for (int q = 1; q < Q; ++q) values[q] += values[q - 1];
    float before = values[Q - 1];
#pragma unroll
    for (int step = 1; step < 32; step *= 2) {
        const float other = __shfl_up_sync(ALL, before, step);
        if (threadIdx.x >= step) before += other;
    }
    before = __shfl_up_sync(ALL, before, 1);
    before = threadIdx.x == 0 ? start : start + before;
#pragma unroll
    for (int q = 0; q < Q; ++q) values[q] += before;
}

// Sums of a pair by the number of channels, M first and then those in order, of which lane l has those from l Q on. Values come as
// `turned` has them, of channels l, l + 32, ...; a sum that is negative is none.
template <int C, int M, bool WORST, int Q>
__device__ __forceinline__ void sums_over_lanes(float (&values)[Q]) {
    const float infinity = Arithmetic<float>::infinity();
    float included = 0;
#pragma unroll
    for (int q = 0; q < Q; ++q) {
        const int c = threadIdx.x + 32 * q;
        if (c < M) included += values[q];
        // the places of those come first, and what is beyond the channels last
        if (c < M || c >= C) values[q] = c < M ? -infinity : infinity;
    }
    if (M > 0) included = warp_sum(included);
    order_over_lanes(values);
#pragma unroll
    for (int q = 0; q < Q; ++q) {
        if (threadIdx.x * Q + q < M) values[q] = 0;
        else if (WORST) values[q] = -values[q];
    }
    add_over_lanes(values, included);
}

// The largest of `tops` of R windows from each on, laid as they are. One thread, one window of a channel.
extern "C" __global__ void largest_tops(
    const float* __restrict__ tops, long long pitch, int n_channels, int rows, float* __restrict__ largest
) {
    const long long place = (long long)blockIdx.x * blockDim.x + threadIdx.x;
    if (place >= pitch * n_channels) return;
    const long long window = place / (32 * n_channels) * 32 + place % 32, channel = place % (32 * n_channels) / 32 * 32;
    float most = tops[place];
    for (int r = 1; r < rows && window + r < pitch; ++r)
        most = fmaxf(most, tops[place_of(window + r, n_channels, 1) + channel]);
    largest[place] = most;
}

// The same for many channels: a lane has one diagonal, whose covariances lie in shared memory. Rows are gone through in runs of R:
// channel by channel the covariances take R steps, and the least square of the run stays. What these sum to bounds the sums of
// all R pairs, so that there is one order to find for them; it is compared with `largest`, of `largest_tops`. The pairs of
// a run that may hold a near one are settled by all lanes, which have some of the channels each and take the steps back,
// row by row. It is one function: the covariances of a run are gone through in it, and what is settled takes them from there.
template <int C, int M, int R, int B, bool WORST, typename T>
__global__ void __launch_bounds__(32, B) walk_many_channels(
    const double* __restrict__ points_a, const double* __restrict__ mean_a, const ChannelStep<T>* __restrict__ steps_a,
    const ChannelGroup* __restrict__ groups_a, const double* __restrict__ points_b,
    const double* __restrict__ mean_b, const ChannelStep<T>* __restrict__ steps_b,
    const ChannelGroup* __restrict__ groups_b, int n_windows_a, int n_windows_b, int row, int row_stop, int col,
    int col_stop, int first_diagonal, int every, int height, int length, int normalize, float* tops_a, float* tops_b,
    const float* __restrict__ largest_a, const float* __restrict__ largest_b, int2* entries, float* sums, int capacity,
    int* n_entries, int* dropped_a, int* dropped_b
) {
    const int lane = threadIdx.x;
    const ChannelBlock block = block_of(blockIdx.x, 32, row, row_stop, col, first_diagonal, every, height);
    const int top = block.top, bottom = block.bottom;
    if (block.diagonal < 0 || block.diagonal >= col_stop - top) return;
    // a list that is full is made anew, of fewer rows
    if (entries != nullptr && dropped_a == nullptr && __ldcg(n_entries) > capacity) return;
    const int diagonal = (int)block.diagonal;
    const int first = max(top, col - diagonal - 31), stop = min(bottom, col_stop - diagonal);
    const int left = first + diagonal;
    constexpr float UP = 1 + (C + 8) * (float)FLOAT32_UNIT;
    constexpr int Q = power_above((C + 31) / 32), PART = 32, AHEAD = 8;
    static_assert(2 * R * Q <= PART, "squares and sums of a run find room where distances are staged");

    __shared__ double errors[C];
    __shared__ float rests[C];
    __shared__ T covs[C][32];
    __shared__ float staged[PART][32];
    // steps that are taken back are roundings, too
    bound_block<C>(
        errors, rests, groups_a, groups_b, n_windows_a, n_windows_b, first, stop, left, stop + diagonal + 32, R,
        length, normalize, T(0)
    );
    // covariances of the first row, from points, of some channels at once
    constexpr int SEEDS = 4;
    const int middle = min(left + 16, n_windows_b - 1), column = min(left + lane, n_windows_b - 1);
#pragma unroll 1
    for (int from = 0; from < C; from += SEEDS) {
        const double *x[SEEDS], *y[SEEDS];
        double own[SEEDS], center[SEEDS], sum[SEEDS];
#pragma unroll
        for (int n = 0; n < SEEDS; ++n) {
            const long long c = min(from + n, C - 1);
            x[n] = points_a + c * (n_windows_a + length - 1) + first;
            y[n] = points_b + c * (n_windows_b + length - 1) + column;
            own[n] = normalize ? mean_a[c * n_windows_a + first] : 0.0;
            center[n] = normalize ? mean_b[c * n_windows_b + middle] : 0.0;
            sum[n] = 0;
        }
#pragma unroll 2
        for (int t = 0; t < length; ++t) {
#pragma unroll
            for (int n = 0; n < SEEDS; ++n)
                sum[n] = fma(__ldg(x[n] + t) - own[n], __ldg(y[n] + t) - center[n], sum[n]);
        }
#pragma unroll
        for (int n = 0; n < SEEDS; ++n) {
            const int c = from + n;
            if (c < C) covs[c][lane] = (T)(left + lane < n_windows_b ? sum[n] + errors[c] : 0.0);
        }
    }

    // Lower `tops` to upper bounds of the sums of a lane's pairs in a run, and list those whose lower ones do not exceed them.
    const auto settle = [&](int base, int owner) {
        T cov[Q];
        float lowers[R][Q];
        __syncwarp();
#pragma unroll
        for (int q = 0; q < Q; ++q) cov[q] = covs[min(lane + 32 * q, C - 1)][owner];
        // rows before the first are the first once more, and do not count; a lane keeps its squares and sums in its column
#pragma unroll
        for (int r = R - 1; r >= 0; --r) {
            const int i = max(base + r, first);
            const long long own = place_of(i, C, 1), theirs = place_of(i + diagonal + owner, C, 1);
#pragma unroll
            for (int q = 0; q < Q; ++q) {
                const int c = min(lane + 32 * q, C - 1);
                const ChannelStep<T> step = load_step(steps_a + own + c * 32);
                const ChannelStep<T> other = load_step(steps_b + theirs + c * 32);
                const float square = (float)square_of(cov[q], step, other);
                if (base + r > first) cov[q] -= fma(step.p, other.p, step.r * other.r);
                staged[r * Q + q][lane] = square;
                lowers[r][q] = root_of(fmaxf(square, 0.0f));
                if (WORST) lowers[r][q] = turned<M>(lowers[r][q], c);
            }
        }
        unsigned near = 0;
#pragma unroll
        for (int r = 0; r < R; ++r) {
            const int i = base + r, j = i + diagonal + owner;
            sums_over_lanes<C, M, WORST>(lowers[r]);
            if (i < first || j < col || j >= col_stop) continue;
            const long long own = place_of(i, C, 1), theirs = place_of(j, C, 1);
            bool any = false;
#pragma unroll
            for (int q = 0; q < Q; ++q) {
                const int number = lane * Q + q + 1, at = (number - 1) * 32;
                staged[(R + r) * Q + q][lane] = lowers[r][q];
                if (number < M || number > C || lowers[r][q] < 0) continue;
                // other lanes, and other blocks, may have lowered what is needed
                any |= lowers[r][q] <= fmaxf(__ldcg(tops_a + own + at), __ldcg(tops_b + theirs + at));
            }
            if (__any_sync(ALL, any)) near |= 1u << r;
        }
#pragma unroll 1
        for (; near; near &= near - 1) {
            const int r = __ffs(near) - 1, i = base + r, j = i + diagonal + owner;
            const long long own = place_of(i, C, 1), theirs = place_of(j, C, 1);
            float uppers[Q];
#pragma unroll
            for (int q = 0; q < Q; ++q) {
                const int c = min(lane + 32 * q, C - 1);
                const T scales = load_step(steps_a + own + c * 32).scale * load_step(steps_b + theirs + c * 32).scale;
                const float error = (float)((T)(2.01 * errors[c]) * scales) + rests[c];
                uppers[q] = root_of(fmaxf(staged[r * Q + q][lane] + error, 0.0f)) + CHANNEL_LOST;
                if (WORST) uppers[q] = turned<M>(uppers[q], c);
            }
            sums_over_lanes<C, M, WORST>(uppers);
#pragma unroll
            for (int q = 0; q < Q; ++q) {
                const int number = lane * Q + q + 1, at = (number - 1) * 32;
                if (number < M || number > C || uppers[q] < 0) continue;
                const float most = uppers[q] * (UP * UP);
                if (most < __ldcg(tops_a + own + at)) lower(tops_a + own + at, most);
                if (most < __ldcg(tops_b + theirs + at)) lower(tops_b + theirs + at, most);
            }
            if (entries == nullptr) continue;
            int place = lane == 0 ? atomicAdd(n_entries, 1) : 0;
            place = __shfl_sync(ALL, place, 0);
            if (place < capacity) {
                if (lane == 0) entries[place] = make_int2(i, j);
#pragma unroll
                for (int q = 0; q < Q; ++q) {
                    const int number = lane * Q + q + 1;
                    if (number >= M && number <= C)
                        sums[(long long)(number - 1) * capacity + place] = staged[(R + r) * Q + q][lane];
                }
            } else if (dropped_a != nullptr && lane == 0) {
                dropped_a[i] = dropped_b[j] = 1;
            }
        }
    };

    // the last run ends at `stop`; rows of the first one that are before `first` are left out
    for (int base = stop - (stop - first + R - 1) / R * R; base < stop; base += R) {
        const int j = base + diagonal + lane;
        unsigned own[R], theirs[R];
#pragma unroll
        for (int r = 0; r < R; ++r) own[r] = place_of(max(base + r, 0), C, 1), theirs[r] = place_of(max(j + r, 0), C, 1);
        // Stage the least distances of the run in some channels from c on. The first row is that of the seed.
        const auto stage = [&](int c, bool opens, auto count) {
            constexpr int N = decltype(count)::value;
            ChannelStep<T> step[N][R], other[N][R];
#pragma unroll
            for (int r = 0; r < R; ++r) {
                const ChannelStep<T>*const a = steps_a + (own[r] + c * 32), *const b = steps_b + (theirs[r] + c * 32);
#pragma unroll
                for (int n = 0; n < N; ++n) step[n][r] = load_step(a + n * 32), other[n][r] = load_step(b + n * 32);
            }
#pragma unroll
            for (int n = 0; n < N; ++n) {
                T cov = covs[c + n][lane], least = Arithmetic<T>::infinity();
#pragma unroll
                for (int r = 0; r < R; ++r) {
                    if (!opens || base + r > first) cov = fma(step[n][r].p, other[n][r].p, fma(step[n][r].r, other[n][r].r, cov));
                    if (!opens || base + r >= first) least = min(least, square_of(cov, step[n][r], other[n][r]));
                }
                covs[c + n][lane] = cov;
                const float distance = root_of(fmaxf((float)least, 0.0f));
                staged[(c + n) % PART][lane] = WORST ? turned<M>(distance, c + n) : distance;
            }
        };
        float values[C];
#pragma unroll
        for (int part = 0; part < C; part += PART) {
            constexpr int AT_ONCE = AHEAD / R;
            const int size = min(C - part, PART), groups = base <= first ? 0 : size / AT_ONCE;
#pragma unroll 1
            for (int g = 0; g < groups; ++g) stage(part + g * AT_ONCE, false, Count<AT_ONCE>());
#pragma unroll 1
            for (int c = groups * AT_ONCE; c < size; ++c) stage(part + c, true, Count<1>());
#pragma unroll
            for (int c = part; c < min(C, part + PART); ++c) values[c] = staged[c % PART][lane];
        }
        order_channels<M, 0, power_above(C - M)>(values);
        const float* const most_a = largest_a + place_of(max(base, 0), C, 1);
        const float* const most_b = largest_b + place_of(max(j, 0), C, 1);
        bool near = false;
        add_channels<M, WORST>(values, [&](int number, float total) {
            const int at = (number - 1) % PART, start = number - 1 - at;
            // they are fetched together: else each would be waited for
            if (at == 0 || number == M) {
#pragma unroll(AHEAD)
                for (int c = start; c < min(C, start + PART); ++c)
                    staged[c - start][lane] = fmaxf(most_a[c * 32], most_b[c * 32]);
            }
            near |= total <= staged[at][lane] && (!WORST || total >= 0);
        });
        unsigned waiting = __ballot_sync(ALL, near && j + R > col && j < col_stop);
        for (; waiting; waiting &= waiting - 1) settle(base, __ffs(waiting) - 1);
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

// Certified distances of listed pairs in each channel. One thread, one channel of a pair.
extern "C" __global__ void channel_distances(
    const int2* __restrict__ entries, int count, int n_channels, const double* __restrict__ points_a,
    const double* __restrict__ mean_a, const double* __restrict__ inverse_a,
    const unsigned char* __restrict__ kinds_a, const double* __restrict__ points_b,
    const double* __restrict__ mean_b, const double* __restrict__ inverse_b,
    const unsigned char* __restrict__ kinds_b, int n_windows_a, int n_windows_b, int length, int normalize,
    double* __restrict__ distances
) {
    const long long thread = (long long)blockIdx.x * blockDim.x + threadIdx.x;
    if (thread >= (long long)count * n_channels) return;
    const int c = (int)(thread / count), entry = (int)(thread % count);
    const int2 pair = entries[entry];
    const long long a = (long long)c * n_windows_a, b = (long long)c * n_windows_b;
    const unsigned char kind = kinds_a[a + pair.x], other = kinds_b[b + pair.y];
    double distance;
    if (kind == MISSING_KIND || other == MISSING_KIND) {
        distance = Arithmetic<double>::infinity();
    } else if (kind == CONSTANT_KIND || other == CONSTANT_KIND) {
        distance = kind == other ? 0.0 : __dsqrt_rn((double)length);
    } else {
        const Line own{points_a + a + (long long)c * (length - 1), mean_a + a, inverse_a + a};
        const Line theirs{points_b + b + (long long)c * (length - 1), mean_b + b, inverse_b + b};
        distance = certified_distance(Window(own, pair.x, normalize), Window(theirs, pair.y, normalize), length);
        if (isnan(distance)) distance = Arithmetic<double>::infinity();
    }
    distances[thread] = distance;
}

// Mean distances of listed pairs by so many channels, and the least of both windows, if they look for neighbours. Distances of a pair are put in
// order where they are. One thread, one pair.
extern "C" __global__ void settle_channels(
    const int2* __restrict__ entries, int count, int n_channels, int n_included, int worst,
    double* __restrict__ distances, int looks_a, int looks_b, int n_windows_a, int n_windows_b,
    double* __restrict__ means, double* least_a, double* least_b
) {
    const int entry = blockIdx.x * blockDim.x + threadIdx.x;
    if (entry >= count) return;
    const int2 pair = entries[entry];
    double* const mine = distances + entry;
    const double infinity = Arithmetic<double>::infinity();
    for (int c = n_included + 1; c < n_channels; ++c) {
        const double value = mine[(long long)c * count];
        int place = c;
        for (; place > n_included; --place) {
            const double other = mine[(long long)(place - 1) * count];
            const bool before = worst ? value < infinity && (value > other || other == infinity) : value < other;
            if (!before) break;
            mine[(long long)place * count] = other;
        }
        mine[(long long)place * count] = value;
    }
    double total = 0;
    for (int c = 0; c < n_channels; ++c) {
        total = __dadd_rn(total, mine[(long long)c * count]);
        const double mean = __ddiv_rn(total, (double)(c + 1));
        means[(long long)c * count + entry] = mean;
        if (!(mean < infinity)) continue;
        if (looks_a) lower(least_a + (long long)c * n_windows_a + pair.x, mean);
        if (looks_b) lower(least_b + (long long)c * n_windows_b + pair.y, mean);
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
