// Joins of many channels: covariances of all channels walk down diagonals, and the channels in which two windows are
// nearest are found by a sorting network in registers.
//
// A warp walks a block of 32 K neighbouring diagonals down a band of rows; lane l has the diagonals from l K on. Row i of
// a diagonal d is the pair of windows i and i + d, so that a row down the columns move on by one: of the K columns of a
// lane one is new. The squared distance of a pair in a channel is alpha_i + alpha_j - scale_i scale_j covariance, for
// windows of all kinds: constant ones have alpha 0, and those that are not finite FAR.
//
// `walk_channels` runs twice: first it lowers `tops`, upper bounds of the sums of the nearest neighbours of all windows,
// then (LIST) it lists the pairs that may reach them. `channel_distances`, `settle_channels` and `channel_equals` measure
// what is listed.
#include "include/arithmetic.cuh"
#include "include/constants.cuh"
#include "include/warp.cuh"
#include "profile/certified.cuh"

// Sums beyond this are those of windows that are not finite.
constexpr float MOST_NEEDED = 1e14f;
// More than estimates in float32 lose where they underflow.
// see "channel sums" in docs/developer/numerics.rst
constexpr double CHANNEL_LOST = 1e-18;
// Kinds of windows.
constexpr unsigned char CONSTANT_KIND = 1, MISSING_KIND = 2;

// What a walk needs of a window in a channel: the two factors of its step, and what makes squared distances.
struct alignas(16) ChannelStep {
    double p, r, scale, alpha;
};

// Bounds of a group of JOIN_GROUP windows in a channel.
struct ChannelGroup {
    double norm, step, slip, scale, blur, shift, energy, low, high;
};

__device__ __forceinline__ float root_of(float square) {
#if __CUDA_ARCH__
    float root;
    asm("sqrt.approx.f32 %0, %1;" : "=f"(root) : "f"(square));
    return root;
#else
    return sqrtf(square);
#endif
}

// Batcher's sorting network for values M to N - 1 of an array: the least comes first.
template <int M, int N, typename T>
__device__ __forceinline__ void order_two(T (&values)[N], int a, int b) {
    if (M + b >= N) return;
    const T x = values[M + a], y = values[M + b];
    values[M + a] = x < y ? x : y;
    values[M + b] = x < y ? y : x;
}
template <int M, int FIRST, int SIZE, int STEP, int N, typename T>
__device__ __forceinline__ void merge_halves(T (&values)[N]) {
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
template <int M, int FIRST, int SIZE, int N, typename T>
__device__ __forceinline__ void order_channels(T (&values)[N]) {
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

// The largest bounds of the groups that hold windows `first` to `last`; lanes read them together.
__device__ __forceinline__ ChannelGroup largest_of(const ChannelGroup* groups, int n_groups, int first, int last) {
    ChannelGroup most{0, 0, 0, 0, 0, 0, 0, Arithmetic<double>::infinity(), -Arithmetic<double>::infinity()};
    for (int g = first / JOIN_GROUP + threadIdx.x; g <= min(last / JOIN_GROUP, n_groups - 1); g += 32) {
        const ChannelGroup one = groups[g];
        most.norm = fmax(most.norm, one.norm), most.step = fmax(most.step, one.step);
        most.slip = fmax(most.slip, one.slip), most.scale = fmax(most.scale, one.scale);
        most.blur = fmax(most.blur, one.blur), most.shift = fmax(most.shift, one.shift);
        most.energy = fmax(most.energy, one.energy);
        most.low = fmin(most.low, one.low), most.high = fmax(most.high, one.high);
    }
    most.norm = warp_largest(most.norm), most.step = warp_largest(most.step), most.slip = warp_largest(most.slip);
    most.scale = warp_largest(most.scale), most.blur = warp_largest(most.blur);
    most.shift = warp_largest(most.shift), most.energy = warp_largest(most.energy);
    most.low = warp_least(most.low), most.high = warp_largest(most.high);
    return most;
}

// The error of a distance in a channel, for a block of `height` rows: of the walk, of the seed, and of what windows leave
// open. The same bounds as on the CPU: numba/profile/channels.py.
__device__ __forceinline__ double channel_error(
    const ChannelGroup& a, const ChannelGroup& b, int height, int length, int normalize
) {
    const double root = sqrt((double)length);
    // see "covariance walk" in docs/developer/numerics.rst
    double error = FLOAT64_UNIT * (height + 4) * (2 * a.norm * b.norm + 4 * a.step * b.step);
    error += FLOAT64_UNIT * (length + 8) * a.norm * b.norm;
    double rest;
    if (normalize) {
        const double slip = a.slip + b.slip, drift = 2 * (b.high - b.low);
        error += FLOAT64_UNIT * (length + 8) * root * a.norm * drift;
        error += length * slip * (drift + slip) + 2 * height * slip * (a.step + b.step);
        // see "normalised windows" in docs/developer/numerics.rst
        const double shift = length * fmax(a.shift, b.shift);
        rest = CERTIFIED_ROUNDING * length * length + 8 * FLOAT64_UNIT * length * root * fmax(a.blur, b.blur);
        rest += 8 * shift * shift;
    } else {
        // see "raw windows" in docs/developer/numerics.rst
        rest = 2 * FLOAT64_UNIT * length * (16 + 8 * root) * (a.energy + b.energy);
    }
    return sqrt(error * a.scale * b.scale + rest);
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

// One block, one warp. Blocks lie along the diagonals (x) and the bands (y). Channels are in their order: the first M
// count in any case. `tops` are negative of windows that look for no neighbour. Pairs that find no room on the list are
// marked, where `dropped` is given. The walk is one function: a step of it would take all of the covariances and columns that
// lanes hold in registers.
template <int C, int M, int K, bool WORST, bool LIST>
__global__ void __launch_bounds__(32) walk_channels(
    const double* __restrict__ points_a, const double* __restrict__ mean_a, const ChannelStep* __restrict__ rows,
    const ChannelGroup* __restrict__ groups_a, const double* __restrict__ points_b,
    const double* __restrict__ mean_b, const ChannelStep* __restrict__ columns,
    const ChannelGroup* __restrict__ groups_b, int n_windows_a, int n_windows_b, int pitch_a, int pitch_b, int row,
    int row_stop, int col, int col_stop, int first_diagonal, int height, int length, int normalize,
    float* tops_a, float* tops_b, int2* entries, int capacity, int* n_entries, int* dropped_a, int* dropped_b
) {
    const int lane = threadIdx.x;
    const int top = row + blockIdx.y * height, bottom = min(row_stop, top + height);
    const int diagonal = max(first_diagonal, col - (bottom - 1)) + blockIdx.x * (32 * K);
    if (top >= bottom || diagonal >= col_stop - top) return;
    // rows in which a diagonal of the block has a column of the tile
    const int first = max(top, col - diagonal - 32 * K + 1), stop = min(bottom, col_stop - diagonal);
    const int left = first + diagonal;
    const int n_groups_a = (n_windows_a + JOIN_GROUP - 1) / JOIN_GROUP;
    const int n_groups_b = (n_windows_b + JOIN_GROUP - 1) / JOIN_GROUP;
    constexpr float UP = 1 + (C + 8) * (float)FLOAT32_UNIT;

    // the largest errors of so many channels
    __shared__ float allowance[C + 1];
    {
        double errors[C];
#pragma unroll
        for (int c = 0; c < C; ++c) {
            const ChannelGroup a = largest_of(groups_a + c * n_groups_a, n_groups_a, first, stop - 1);
            const ChannelGroup b = largest_of(
                groups_b + c * n_groups_b, n_groups_b, left, min(n_windows_b, stop + diagonal + 32 * K) - 1
            );
            errors[c] = -channel_error(a, b, stop - first, length, normalize);
        }
        order_channels<0, 0, power_above(C)>(errors);
        double total = 0;
#pragma unroll
        for (int c = 0; c < C; ++c) {
            total -= errors[c];
            if (lane == 0) allowance[c + 1] = __double2float_ru(total + (c + 1) * CHANNEL_LOST);
        }
        __syncwarp();
    }

    // covariances of the first row, from points
    double cov[K][C];
    ChannelStep held[K][C];
    float needed[K][C];
    const int middle = min(left + 16 * K, n_windows_b - 1);
    const auto need_of = [&](float known, int number) {
        // what a neighbour must be below for its upper bound to be lower
        if (!LIST) return known - allowance[number];
        return known >= 0 ? fminf((known + allowance[number]) * UP, MOST_NEEDED) : known;
    };
    const auto load = [&](int slot, int j) {
#pragma unroll
        for (int c = 0; c < C; ++c) {
            const double2* const from = (const double2*)(columns + (long long)c * pitch_b + j);
            const double2 step = __ldg(from), rest = __ldg(from + 1);
            held[slot][c] = ChannelStep{step.x, step.y, rest.x, rest.y};
            needed[slot][c] = need_of(tops_b[(long long)c * pitch_b + j], c + 1);
        }
    };
#pragma unroll
    for (int c = 0; c < C; ++c) {
        const double* const x = points_a + (long long)c * (n_windows_a + length - 1) + first;
        const double* const y = points_b + (long long)c * (n_windows_b + length - 1);
        const double own = normalize ? mean_a[(long long)c * n_windows_a + first] : 0.0;
        const double center = normalize ? mean_b[(long long)c * n_windows_b + middle] : 0.0;
        double sums[K] = {};
        for (int t = 0; t < length; ++t) {
            const double point = __ldg(x + t) - own;
#pragma unroll
            for (int k = 0; k < K; ++k) {
                const int j = min(left + lane * K + k, n_windows_b - 1);
                sums[k] = fma(point, __ldg(y + j + t) - center, sums[k]);
            }
        }
#pragma unroll
        for (int k = 0; k < K; ++k) cov[k][c] = left + lane * K + k < n_windows_b ? sums[k] : 0.0;
    }
#pragma unroll
    for (int k = 0; k < K; ++k) load(k, left + lane * K + k);

    for (int base = first; base < stop; base += K) {
#pragma unroll
        for (int u = 0; u < K; ++u) {
            const int i = base + u;
            if (i >= stop) break;
            // the column that is new to this lane takes the place of the one that leaves it
            if (i > first) load((u + K - 1) % K, i + diagonal + lane * K + K - 1);
            float values[K][C];
#pragma unroll
            for (int c = 0; c < C; ++c) {
                const double2* const from = (const double2*)(rows + (long long)c * pitch_a + i);
                const double2 step = __ldg(from), rest = __ldg(from + 1);
                const double p = i > first ? step.x : 0.0, r = i > first ? step.y : 0.0;
#pragma unroll
                for (int k = 0; k < K; ++k) {
                    const ChannelStep& other = held[(u + k) % K][c];
                    cov[k][c] = fma(p, other.p, fma(r, other.r, cov[k][c]));
                    const double square = fma(-cov[k][c], rest.x * other.scale, rest.y + other.alpha);
                    const float distance = root_of(fmaxf((float)square, 0.0f));
                    values[k][c] = WORST ? turned<M>(distance, c) : distance;
                }
            }
            float needed_row[C];
#pragma unroll
            for (int c = 0; c < C; ++c) needed_row[c] = need_of(tops_a[(long long)c * pitch_a + i], c + 1);
#pragma unroll
            for (int k = 0; k < K; ++k) {
                const int j = i + diagonal + lane * K + k;
                order_channels<M, 0, power_above(C - M)>(values[k]);
                bool near = false;
                add_channels<M, WORST>(values[k], [&](int number, float total) {
                    const float need = fmaxf(needed_row[number - 1], needed[(u + k) % K][number - 1]);
                    near |= total <= need && total >= 0;
                });
                if (!near || j < col || j >= col_stop) continue;
                if (LIST) {
                    const int place = atomicAdd(n_entries, 1);
                    if (place < capacity)
                        entries[place] = make_int2(i, j);
                    else if (dropped_a != nullptr)
                        dropped_a[i] = dropped_b[j] = 1;
                } else {
                    add_channels<M, WORST>(values[k], [&](int number, float total) {
                        if (total < 0) return;
                        const float up = (total + allowance[number]) * UP;
                        const long long at = number - 1;
                        if (total <= needed_row[number - 1]) lower(tops_a + at * pitch_a + i, up);
                        if (total <= needed[(u + k) % K][number - 1]) lower(tops_b + at * pitch_b + j, up);
                    });
                }
            }
        }
    }
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

// Mean distances of listed pairs by so many channels, and the least of both windows. Distances of a pair are put in
// order where they are. One thread, one pair.
extern "C" __global__ void settle_channels(
    const int2* __restrict__ entries, int count, int n_channels, int n_included, int worst,
    double* __restrict__ distances, const float* __restrict__ tops_a, const float* __restrict__ tops_b, int pitch_a,
    int pitch_b, double* __restrict__ means, double* least_a, double* least_b
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
        const long long a = (long long)c * pitch_a + pair.x, b = (long long)c * pitch_b + pair.y;
        if (!(mean < infinity)) continue;
        if (tops_a[a] >= 0) lower(least_a + a, mean);
        if (tops_b[b] >= 0) lower(least_b + b, mean);
    }
}

// Of equally near neighbours keep the first. One thread, one pair.
extern "C" __global__ void channel_equals(
    const int2* __restrict__ entries, int count, int n_channels, const double* __restrict__ means,
    const double* __restrict__ least_a, const double* __restrict__ least_b, int pitch_a, int pitch_b,
    int* indices_a, int* indices_b
) {
    const int entry = blockIdx.x * blockDim.x + threadIdx.x;
    if (entry >= count) return;
    const int2 pair = entries[entry];
    for (int c = 0; c < n_channels; ++c) {
        const double mean = means[(long long)c * count + entry];
        if (!(mean < Arithmetic<double>::infinity())) continue;
        const long long a = (long long)c * pitch_a + pair.x, b = (long long)c * pitch_b + pair.y;
        if (mean == least_a[a]) atomicMin(indices_a + a, pair.y);
        if (mean == least_b[b]) atomicMin(indices_b + b, pair.x);
    }
}
