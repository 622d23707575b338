// What the walks of joins of many channels share: steps of windows, bounds of errors, the order of channels.
#pragma once
#include "include/arithmetic.cuh"
#include "include/constants.cuh"
#include "include/warp.cuh"

// Sums beyond this are those of windows that are not finite.
constexpr float MOST_NEEDED = MOST_FINITE;
// More than roots in float32 lose where squares underflow.
// see "channel sums" in docs/developer/numerics.rst
constexpr float CHANNEL_LOST = 1e-18f;
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
__device__ __forceinline__ float smaller_of(float x, float y) { return fminf(x, y); }
__device__ __forceinline__ float larger_of(float x, float y) { return fmaxf(x, y); }
template <int M, typename V, int N>
__device__ __forceinline__ void order_two(V (&values)[N], int a, int b) {
    if (M + b >= N) return;
    const V x = values[M + a], y = values[M + b];
    values[M + a] = smaller_of(x, y);
    values[M + b] = larger_of(x, y);
}
template <int M, int FIRST, int SIZE, int STEP, typename V, int N>
__device__ __forceinline__ void merge_halves(V (&values)[N]) {
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
template <int M, int FIRST, int SIZE, typename V, int N>
__device__ __forceinline__ void order_channels(V (&values)[N]) {
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

// The rows of a block, and its first diagonal.
struct ChannelBlock {
    int top, bottom;
    long long diagonal;
};

// Blocks of so many diagonals. They are numbered by their first columns, and among those of the same columns by
// bands: blocks that run at the same time read the same columns, and few rows. Of each band one of `every` blocks is walked,
// counted from `offset`, others in each.
__device__ __forceinline__ ChannelBlock block_of(
    long long number, int width, int row, int row_stop, int col, int first_diagonal, int every, int offset, int height
) {
    const int n_bands = (row_stop - row + height - 1) / height, band = (int)(number % n_bands);
    const int top = row + band * height, bottom = min(row_stop, top + height);
    // the first diagonal of a band; its columns, counted from those of the first band
    const long long open = max(first_diagonal, col - (bottom - 1));
    const long long from = row + max(first_diagonal, col - (min(row_stop, row + height) - 1));
    const long long shift = (top + open - from) / width;
    const long long block = number / n_bands * every + (band + offset + shift) % every - shift;
    return ChannelBlock{top, bottom, block < 0 ? -1 : open + block * width};
}

// The largest bounds of the groups that hold windows `first` to `last`; lanes read them together.
__device__ __forceinline__ ChannelGroup largest_of(const ChannelGroup* groups, int n_groups, int first, int last) {
    ChannelGroup most{0, 0, 0, 0, 0, Arithmetic<double>::infinity(), -Arithmetic<double>::infinity()};
    for (int g = first / JOIN_GROUP + (threadIdx.x & 31); g <= min(last / JOIN_GROUP, n_groups - 1); g += 32) {
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

// How much covariances of a block in a channel are off, and, twice, the rest of squares. It has rows `first` to `stop` - 1 and
// columns `left` to `right` - 1; steps of `again` rows are taken more than once.
struct ChannelBound {
    double error;
    float rest;
};
template <typename T>
__device__ __forceinline__ ChannelBound bound_channel(
    const ChannelGroup* groups_a, const ChannelGroup* groups_b, int n_windows_a, int n_windows_b, int first, int stop,
    int left, int right, int again, int length, int normalize
) {
    const int n_groups_a = (n_windows_a + JOIN_GROUP - 1) / JOIN_GROUP;
    const int n_groups_b = (n_windows_b + JOIN_GROUP - 1) / JOIN_GROUP;
    const ChannelGroup a = largest_of(groups_a, n_groups_a, first, min(n_windows_a, stop) - 1);
    const ChannelGroup b = largest_of(groups_b, n_groups_b, left, min(n_windows_b, right) - 1);
    double rest = a.rest + b.rest;
    // see "channel sums" in docs/developer/numerics.rst
    if (sizeof(T) == 4) rest += SQUARE_UNITS * FLOAT32_UNIT * (a.energy + b.energy);
    return ChannelBound{
        covariance_error<T>(a, b, stop - first + again, length, normalize), __double2float_ru(2.01 * rest)
    };
}

// Covariances in channel c of window `first` of one line with the windows at from, from + apart, ... of another, from
// points; those of windows beyond the last are of that one. Windows of the other line are centred by the mean of one.
template <int K>
__device__ __forceinline__ void first_covariances(
    const double* points_a, const double* mean_a, const double* points_b, const double* mean_b, int n_windows_a,
    int n_windows_b, int length, int normalize, int c, int first, int middle, int from, int apart, double (&sums)[K]
) {
    const double* const x = points_a + (long long)c * (n_windows_a + length - 1) + first;
    const double* const y = points_b + (long long)c * (n_windows_b + length - 1);
    const double own = normalize ? mean_a[(long long)c * n_windows_a + first] : 0.0;
    const double center = normalize ? mean_b[(long long)c * n_windows_b + middle] : 0.0;
#pragma unroll
    for (int k = 0; k < K; ++k) sums[k] = 0;
#pragma unroll 4
    for (int t = 0; t < length; ++t) {
        const double point = __ldg(x + t) - own;
#pragma unroll
        for (int k = 0; k < K; ++k)
            sums[k] = fma(point, __ldg(y + min(from + apart * k, n_windows_b - 1) + t) - center, sums[k]);
    }
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
