// Joins of so many channels that no lane holds what all of them need.
//
// A block walks 32 K neighbouring diagonals down a band of rows; lane l of each warp has the diagonals from l K on. Each warp has
// some of the channels. Rows are gone through in runs of RUN: the least square of a run in
// each channel bounds the sums of all its pairs, so that there is one order to find for them. The least distances of two runs are put side
// by side into shared memory, in half precision and rounded down; then each warp puts those of some diagonals in order, of both runs at once, and
// compares their sums with `largest`, the bounds of the windows of a run. Runs that may hold near pairs are listed with their
// covariances. `settle_runs` takes the steps of a listed run back, row by row, lowers `tops`, and lists pairs; `keep_listed` leaves
// those within the bounds of the end.
//
// Along rows, steps and bounds lie window after window, those of all channels together; along columns see `column_place`.
#include "profile/channels.cuh"

// Rows of a run, and of the two that a block goes through at once.
constexpr int RUN = 4, ROWS = LISTED_ROWS;
// Channels that a lane puts in order: more are shared by two or four lanes.
constexpr int MOST_OF_LANE = 32;
// Squares beyond this are those of windows that are not finite.
constexpr float MOST_SQUARE = MOST_NEEDED * MOST_NEEDED;
// What a distance loses when it is rounded to half precision, and the least such number, halved.
constexpr float HALF_UNIT = 0x1p-11f, HALF_LEAST = 0x1p-25f;

// Two runs of a diagonal, see above: the rows from `base` on, and those from `base` + RUN on, of which `rows` are within the block.
// `near` has a bit for each run, and `block` is the number of the block.
struct alignas(16) ListedRuns {
    int base, diagonal, block;
    short rows, near;
};

// Values of the diagonals of a lane.
template <typename V, int K>
struct alignas(K * sizeof(V) < 16 ? K * sizeof(V) : 16) Lane {
    V at[K];
};

// How far a covariance may be off, twice, and twice the rest of the square.
struct ChannelDoubt {
    float error, rest;
};

// Two numbers of half precision: that of the first run in the lower bits.
struct Halves {
    unsigned bits;
};

#if __CUDA_ARCH__ >= 800
__device__ __forceinline__ Halves smaller_of(Halves x, Halves y) {
    Halves result;
    asm("min.f16x2 %0, %1, %2;" : "=r"(result.bits) : "r"(x.bits), "r"(y.bits));
    return result;
}
__device__ __forceinline__ Halves larger_of(Halves x, Halves y) {
    Halves result;
    asm("max.f16x2 %0, %1, %2;" : "=r"(result.bits) : "r"(x.bits), "r"(y.bits));
    return result;
}
// Rounded to nearest, beyond the range to infinity.
__device__ __forceinline__ Halves halves_of(float first, float second) {
    Halves result;
    asm("cvt.rn.f16x2.f32 %0, %1, %2;" : "=r"(result.bits) : "f"(second), "f"(first));
    return result;
}
__device__ __forceinline__ float first_of(Halves x) {
    float value;
    asm("{.reg .f16 low, high; mov.b32 {low, high}, %1; cvt.f32.f16 %0, low;}" : "=f"(value) : "r"(x.bits));
    return value;
}
__device__ __forceinline__ float second_of(Halves x) {
    float value;
    asm("{.reg .f16 low, high; mov.b32 {low, high}, %1; cvt.f32.f16 %0, high;}" : "=f"(value) : "r"(x.bits));
    return value;
}
#else
// Integers in the order of numbers of half precision.
__device__ __forceinline__ int key_of(unsigned half) {
    return half & 0x8000 ? -(int)(half & 0x7fff) : (int)(half & 0x7fff);
}
__device__ __forceinline__ Halves smaller_of(Halves x, Halves y) {
    const unsigned a = x.bits & 0xffff, b = y.bits & 0xffff, c = x.bits >> 16, d = y.bits >> 16;
    return Halves{(key_of(a) < key_of(b) ? a : b) | (key_of(c) < key_of(d) ? c : d) << 16};
}
__device__ __forceinline__ Halves larger_of(Halves x, Halves y) {
    const unsigned a = x.bits & 0xffff, b = y.bits & 0xffff, c = x.bits >> 16, d = y.bits >> 16;
    return Halves{(key_of(a) < key_of(b) ? b : a) | (key_of(c) < key_of(d) ? d : c) << 16};
}
__device__ __forceinline__ unsigned half_of(float value) {
    const unsigned sign = value < 0 ? 0x8000 : 0;
    const float size = fabsf(value);
    if (size >= 65520) return sign | 0x7c00;
    // adding this leaves the bits of a half; subnormal ones are multiples of the same number
    const int exponent = max((int)((unsigned)__float_as_int(size) >> 23) - 127, -14);
    const float unit = __int_as_float((exponent - 10 + 127) << 23);
    const unsigned steps = (unsigned)rintf(size / unit);
    return sign | (((unsigned)(exponent + 14) << 10) + steps);
}
__device__ __forceinline__ Halves halves_of(float first, float second) {
    return Halves{half_of(first) | half_of(second) << 16};
}
__device__ __forceinline__ float first_of(Halves x) {
    const unsigned size = x.bits & 0x7fff;
    const float value = size >= 0x7c00 ? Arithmetic<float>::infinity() : __int_as_float((int)(size << 13)) * 0x1p112f;
    return x.bits & 0x8000 ? -value : value;
}
__device__ __forceinline__ float second_of(Halves x) { return first_of(Halves{x.bits >> 16}); }
#endif

// A lower bound in half precision of a distance of channel c, in units that `fold` changes to; as `turned` has it, but for infinity in place of
// what is not finite.
template <int M, bool WORST>
__device__ __forceinline__ float folded(float square, int c, float fold) {
    const float distance = root_of(fmaxf(square, 0.0f)), infinity = Arithmetic<float>::infinity();
    const float value = fmaf(distance, fold * (1 - HALF_UNIT), -HALF_LEAST);
    if (!WORST) return value;
    if (distance > MOST_NEEDED) return c < M ? -infinity : infinity;
    return c < M ? value : -value;
}

// Where a window is along columns, in channel c: every K-th window follows the other, as lanes read them.
__device__ __forceinline__ unsigned column_place(int window, int c, int K, unsigned pitch) {
    return (c * K + window % K) * (pitch / K) + window / K;
}

// Put a bitonic sequence in order: the least comes first.
template <typename V, int N>
__device__ __forceinline__ void order_bitonic(V (&values)[N]) {
#pragma unroll
    for (int step = N / 2; step > 0; step /= 2)
#pragma unroll
        for (int i = 0; i < N; ++i)
            if ((i & step) == 0) order_two<0>(values, i, i + step);
}

// Values of this lane and of another, in order: the least of each stay with the one of them that takes the least. With TURNED those of the
// other lane are counted from the last on.
template <bool TURNED, int N>
__device__ __forceinline__ void exchange(Halves (&values)[N], int across, bool least) {
    Halves others[N];
#pragma unroll
    for (int n = 0; n < N; ++n) others[n].bits = __shfl_xor_sync(ALL, values[TURNED ? N - 1 - n : n].bits, across);
#pragma unroll
    for (int n = 0; n < N; ++n) values[n] = least ? smaller_of(values[n], others[n]) : larger_of(values[n], others[n]);
}

// One block, W warps, of some diagonals of a band, see `block_of`. Dynamic shared memory holds a covariance, and two distances, of each channel
// and diagonal. The walk is one function: its parts share what lies there.
template <int C, int M, int K, int W, int B, bool WORST, typename T>
__global__ void __launch_bounds__(32 * W, B) walk_many_channels(
    const double* __restrict__ points_a, const double* __restrict__ mean_a, const ChannelStep<T>* __restrict__ steps_a,
    const ChannelGroup* __restrict__ groups_a, const double* __restrict__ points_b,
    const double* __restrict__ mean_b, const ChannelStep<T>* __restrict__ steps_b,
    const ChannelGroup* __restrict__ groups_b, int n_windows_a, int n_windows_b, int pitch_b, int row, int row_stop,
    int col, int col_stop, int first_diagonal, int every, int offset, int height, int length, int normalize,
    float fold, const float* __restrict__ largest_a, const float* __restrict__ largest_b, ListedRuns* __restrict__ runs,
    T* __restrict__ covariances, ChannelDoubt* __restrict__ doubts, int room, int* n_runs
) {
    constexpr int WIDTH = 32 * K;
    // lanes that share the order of a diagonal, how many of its channels each has, and the diagonals of a warp at once
    constexpr int SHARED = power_above((C - M + MOST_OF_LANE - 1) / MOST_OF_LANE);
    constexpr int PART = SHARED > 1 ? MOST_OF_LANE : C > M ? C - M : 1;
    constexpr int AT_ONCE = 32 / SHARED;
    constexpr int TASKS = WIDTH / AT_ONCE;
    extern __shared__ __align__(16) unsigned char shared[];
    __shared__ unsigned near_runs[2][TASKS];
    __shared__ int places[TASKS];
    __shared__ int stopped;
    T* const covs = (T*)shared;
    unsigned* const staged = (unsigned*)(covs + C * WIDTH);
    const int lane = threadIdx.x & 31, warp = threadIdx.x / 32;
    const ChannelBlock block = block_of(blockIdx.x, WIDTH, row, row_stop, col, first_diagonal, every, offset, height);
    const int top = block.top, bottom = block.bottom;
    if (block.diagonal < 0 || block.diagonal >= col_stop - top) return;
    // a list that is full is made anew, of fewer blocks
    if (threadIdx.x == 0) stopped = __ldcg(n_runs) > room;
    __syncthreads();
    const int diagonal = (int)block.diagonal;
    const int first = max(top, col - diagonal - WIDTH + 1), stop = min(bottom, col_stop - diagonal);
    if (stopped || first >= stop) return;
    const int left = first + diagonal;

    // covariances of the first row, from points; the step that leads to it is taken from them, and made again
    const int middle = min(left + 16 * K, n_windows_b - 1);
#pragma unroll 1
    for (int c = warp; c < C; c += W) {
        const ChannelBound bound = bound_channel<T>(
            groups_a + (long long)c * ((n_windows_a + JOIN_GROUP - 1) / JOIN_GROUP),
            groups_b + (long long)c * ((n_windows_b + JOIN_GROUP - 1) / JOIN_GROUP), n_windows_a, n_windows_b, first,
            stop + ROWS, left, stop + diagonal + WIDTH + ROWS, ROWS, length, normalize
        );
        if (lane == 0)
            doubts[(long long)blockIdx.x * C + c] = ChannelDoubt{__double2float_ru(2.01 * bound.error), bound.rest};
        double sums[K];
        first_covariances(
            points_a, mean_a, points_b, mean_b, n_windows_a, n_windows_b, length, normalize, c, first, middle,
            left + lane, 32, sums
        );
        const ChannelStep<T> step = load_step(steps_a + (long long)first * C + c);
#pragma unroll
        for (int k = 0; k < K; ++k) {
            const int d = lane + 32 * k;
            const ChannelStep<T> other = load_step(steps_b + column_place(left + d, c, K, pitch_b));
            const T cov = (T)(left + d < n_windows_b ? sums[k] + bound.error : 0.0);
            covs[c * WIDTH + d] = cov - fma(step.p, other.p, step.r * other.r);
        }
    }
    __syncwarp();

    // columns of the first row, in the first channel
    unsigned columns[K];
#pragma unroll
    for (int k = 0; k < K; ++k) columns[k] = column_place(left + k, 0, K, pitch_b) + lane;
#pragma unroll 1
    for (int base = first; base < stop; base += ROWS) {
        // least distances
        const ChannelStep<T>* mine = steps_a + ((long long)base * C + warp);
#pragma unroll 1
        for (int c = warp; c < C; c += W, mine += W) {
            const ChannelStep<T>* others[K];
#pragma unroll
            for (int k = 0; k < K; ++k) others[k] = steps_b + (columns[k] + c * (unsigned)pitch_b);
            Lane<T, K>* const place = (Lane<T, K>*)(covs + c * WIDTH) + lane;
            Lane<T, K> cov = *place;
            ChannelStep<T> held[K];
#pragma unroll
            for (int k = 0; k + 1 < K; ++k) held[k] = load_step(others[k]);
            T least[ROWS / RUN][K], most[ROWS / RUN][K];
#pragma unroll
            for (int r = 0; r < ROWS; ++r) {
                held[(r + K - 1) % K] = load_step(others[(r + K - 1) % K] + (r + K - 1) / K);
                const ChannelStep<T> step = load_step(mine + r * C);
#pragma unroll
                for (int k = 0; k < K; ++k) {
                    const ChannelStep<T>& other = held[(r + k) % K];
                    cov.at[k] = fma(step.p, other.p, fma(step.r, other.r, cov.at[k]));
                    const T square = square_of(cov.at[k], step, other);
                    least[r / RUN][k] = r % RUN == 0 ? square : min(least[r / RUN][k], square);
                    if (WORST) most[r / RUN][k] = r % RUN == 0 ? square : max(most[r / RUN][k], square);
                }
            }
            *place = cov;
            if constexpr (WORST) {
                // a pair that a channel has no distance of may have the sum without it: the farthest of the other channels
#pragma unroll
                for (int k = 0; k < ROWS / RUN * K; ++k)
                    if (c >= M && most[k / K][k % K] > MOST_SQUARE && !(least[k / K][k % K] > MOST_SQUARE)) least[k / K][k % K] = 0;
            }
            Lane<unsigned, K> words;
#pragma unroll
            for (int k = 0; k < K; ++k)
                words.at[k] = halves_of(
                    folded<M, WORST>((float)least[0][k], c, fold), folded<M, WORST>((float)least[1][k], c, fold)
                ).bits;
            // lanes that read other parts at the same time find them in other banks
            const int to = lane * K ^ (c < M ? 0 : (c - M) / PART * AT_ONCE);
            *(Lane<unsigned, K>*)(staged + c * WIDTH + to) = words;
        }
#pragma unroll
        for (int k = 0; k < K; ++k) columns[k] += ROWS / K;
        __syncthreads();

        // the order of channels
#pragma unroll 1
        for (int task = warp; task < TASKS; task += W) {
            const int part = lane / AT_ONCE, d = task * AT_ONCE + lane % AT_ONCE, begin = M + part * PART;
            const unsigned* const words = staged + (d ^ part * AT_ONCE);
            Halves values[PART];
#pragma unroll
            for (int n = 0; n < PART; ++n)
                values[n].bits = begin + n < C ? words[(begin + n) * WIDTH] : 0x7c007c00;
            order_channels<0, 0, power_above(PART)>(values);
            // of parts that are in order, the first gets the least
#pragma unroll
            for (int width = 2; width <= SHARED; width *= 2) {
                exchange<true>(values, (width - 1) * AT_ONCE, (part & width / 2) == 0);
#pragma unroll
                for (int step = width / 4; step > 0; step /= 2)
                    exchange<false>(values, step * AT_ONCE, (part & step) == 0);
                order_bitonic(values);
            }
            // sums of those that count in any case
            float one = 0, two = 0;
#pragma unroll
            for (int c = 0; c < M; ++c) {
                const Halves value{staged[c * WIDTH + d]};
                one += first_of(value), two += second_of(value);
            }
            const int j = base + diagonal + d;
            const float* const most_a = largest_a + (long long)base * C;
            const float* const most_b = largest_b + j;
            const auto needed = [&](int r, int at) {
                return fmaxf(most_a[r * C + at], most_b[(long long)at * pitch_b + r]);
            };
            bool near = M > 0 && one <= needed(0, M - 1), then = M > 0 && two <= needed(RUN, M - 1);
            // how much there may be before those of the lane
            const float infinity = Arithmetic<float>::infinity();
            float first_slack = -infinity, second_slack = -infinity, first_sum = 0, second_sum = 0;
#pragma unroll
            for (int n = 0; n < PART; ++n) {
                first_sum += WORST ? -first_of(values[n]) : first_of(values[n]);
                second_sum += WORST ? -second_of(values[n]) : second_of(values[n]);
                if (begin + n >= C) continue;
                if (!WORST || first_sum >= 0) first_slack = fmaxf(first_slack, needed(0, begin + n) - first_sum);
                if (!WORST || second_sum >= 0) second_slack = fmaxf(second_slack, needed(RUN, begin + n) - second_sum);
            }
#pragma unroll
            for (int earlier = 1; earlier < SHARED; ++earlier) {
                const float before = __shfl_up_sync(ALL, first_sum, earlier * AT_ONCE);
                const float its = __shfl_up_sync(ALL, second_sum, earlier * AT_ONCE);
                if (part >= earlier) one += before, two += its;
            }
            near |= one <= first_slack, then |= two <= second_slack;
            if (WORST) near = near && one >= 0, then = then && two >= 0;
            const bool within = j + ROWS > col && j < col_stop;
            unsigned ones = __ballot_sync(ALL, near && within);
            unsigned twos = __ballot_sync(ALL, then && within && base + RUN < stop);
#pragma unroll
            for (int step = 16; step >= AT_ONCE && SHARED > 1; step /= 2) ones |= ones >> step, twos |= twos >> step;
            if (SHARED > 1) ones &= (1u << AT_ONCE % 32) - 1, twos &= (1u << AT_ONCE % 32) - 1;
            if (lane == 0) {
                near_runs[0][task] = ones, near_runs[1][task] = twos;
                places[task] = (ones | twos) == 0 ? 0 : atomicAdd(n_runs, __popc(ones | twos));
            }
        }
        __syncthreads();

        // the list: each warp adds the covariances that it walks
#pragma unroll 1
        for (int task = 0; task < TASKS; ++task) {
            const unsigned ones = near_runs[0][task], twos = near_runs[1][task];
            int place = places[task];
#pragma unroll 1
            for (unsigned near = ones | twos; near && place < room; near &= near - 1, ++place) {
                const int bit = __ffs(near) - 1, d = task * AT_ONCE + bit;
                for (int c = warp + lane * W; c < C; c += 32 * W)
                    covariances[(long long)place * C + c] = covs[c * WIDTH + d];
                if (threadIdx.x == 0)
                    runs[place] = ListedRuns{
                        base, diagonal + d, (int)blockIdx.x, (short)min(ROWS, stop - base),
                        (short)((ones >> bit & 1) | (twos >> bit & 1) << 1)
                    };
            }
        }
        __syncwarp();
    }
}

// Values of a pair that LANES lanes share: lane l has those from l Q on. Put them in order, by a bitonic network.
template <int LANES, int Q>
__device__ __forceinline__ void order_over_lanes(float (&values)[Q], int lane) {
    const int first = lane * Q;
#pragma unroll
    for (int size = 2; size <= LANES * Q; size *= 2)
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
template <int LANES, int Q>
__device__ __forceinline__ void add_over_lanes(float (&values)[Q], float start, int lane) {
#pragma unroll
    for (int q = 1; q < Q; ++q) values[q] += values[q - 1];
    float before = values[Q - 1];
#pragma unroll
    for (int step = 1; step < LANES; step *= 2) {
        const float other = __shfl_up_sync(ALL, before, step, LANES);
        if (lane >= step) before += other;
    }
    before = __shfl_up_sync(ALL, before, 1, LANES);
    before = lane == 0 ? start : start + before;
#pragma unroll
    for (int q = 0; q < Q; ++q) values[q] += before;
}

// Sums of a pair by the number of channels, M first and then those in order, of which lane l has those from l Q on. Distances come of
// channels l, l + LANES, ...; a sum that is negative is none.
template <int C, int M, bool WORST, int LANES, int Q>
__device__ __forceinline__ void sums_over_lanes(float (&values)[Q], int lane) {
    const float infinity = Arithmetic<float>::infinity();
    float included = 0;
#pragma unroll
    for (int q = 0; q < Q; ++q) {
        const int c = lane + LANES * q;
        if (WORST) values[q] = turned<M>(values[q], c);
        if (c < M) included += values[q];
        // the places of those come first, and what is beyond the channels last
        if (c < M || c >= C) values[q] = c < M ? -infinity : infinity;
    }
    if (M > 0) included = fold_lanes<LANES>(included, Plus());
    order_over_lanes<LANES>(values, lane);
#pragma unroll
    for (int q = 0; q < Q; ++q) {
        if (lane * Q + q < M) values[q] = 0;
        else if (WORST) values[q] = -values[q];
    }
    add_over_lanes<LANES>(values, included, lane);
}

// Lower `tops` to upper bounds of the sums of the pairs of listed runs, and list those whose lower ones do not exceed them, if
// there is a list; those that find no room on it are marked, where `dropped` is given. Some lanes, one listed item: each has some of the channels,
// and `columns` lie as `rows` do. It is one function: rows are settled from the covariances that lanes hold, and all lanes of a warp
// take part in each exchange.
template <int C, int M, bool WORST, typename T>
__global__ void __launch_bounds__(128) settle_runs(
    const ListedRuns* __restrict__ runs, int count, const T* __restrict__ covariances,
    const ChannelDoubt* __restrict__ doubts, const ChannelStep<T>* __restrict__ rows,
    const ChannelStep<T>* __restrict__ columns, int normalize, int col, int col_stop, float* tops_a, float* tops_b,
    int2* entries, float* sums, int capacity, int* n_entries, int* dropped_a, int* dropped_b
) {
    constexpr float UP = 1 + (C + 8) * (float)FLOAT32_UNIT;
    constexpr int LANES = power_above(C) < 32 ? power_above(C) : 32, Q = power_above((C + LANES - 1) / LANES);
    // squares of a run: each thread has its column
    __shared__ float staged[RUN * Q][128];
    const int lane = threadIdx.x % LANES, item = (blockIdx.x * 128 + threadIdx.x) / LANES;
    const unsigned group = LANES == 32 ? ALL : ((1u << LANES % 32) - 1) << (threadIdx.x & 31) / LANES * LANES;
    ListedRuns run = runs[min(item, count - 1)];
    if (item >= count) run.near = 0;
    const int diagonal = run.diagonal;
    T cov[Q];
#pragma unroll
    for (int q = 0; q < Q; ++q) cov[q] = covariances[(long long)min(item, count - 1) * C + min(lane + LANES * q, C - 1)];
#pragma unroll 1
    for (int half = 1; half >= 0 && __any_sync(ALL, run.near & (2 << half) - 1); --half) {
        const int base = run.base + half * RUN;
        float lowers[RUN][Q];
        // the steps are taken back
#pragma unroll
        for (int r = RUN - 1; r >= 0; --r) {
            const int i = base + r;
#pragma unroll
            for (int q = 0; q < Q; ++q) {
                const int c = min(lane + LANES * q, C - 1);
                const ChannelStep<T> step = load_step(rows + (long long)i * C + c);
                const ChannelStep<T> other = load_step(columns + (long long)(i + diagonal) * C + c);
                const float square = (float)square_of(cov[q], step, other);
                // along columns the factors of normalised windows change places, and of others the second its sign
                const T first = normalize ? other.r : other.p, second = normalize ? other.p : -other.r;
                cov[q] -= fma(step.p, first, step.r * second);
                staged[r * Q + q][threadIdx.x] = square;
                lowers[r][q] = root_of(fmaxf(square, 0.0f));
            }
        }
        const bool wanted = run.near >> half & 1;
        if (!__any_sync(ALL, wanted)) continue;
        const int n_rows = run.rows - half * RUN;
#pragma unroll
        for (int r = 0; r < RUN; ++r) {
            const int i = base + r, j = i + diagonal;
            sums_over_lanes<C, M, WORST, LANES>(lowers[r], lane);
            const bool within = wanted && r < n_rows && j >= col && j < col_stop;
            float* const top = tops_a + (long long)i * C, * const other = tops_b + (long long)j * C;
            bool any = false;
#pragma unroll
            for (int q = 0; q < Q; ++q) {
                const int at = lane * Q + q;
                if (!within || at + 1 < M || at >= C || lowers[r][q] < 0) continue;
                // others may have lowered what is needed
                any |= lowers[r][q] <= fmaxf(__ldcg(top + at), __ldcg(other + at));
            }
            const unsigned all_near = __ballot_sync(ALL, any);
            if (all_near == 0) continue;
            const bool near = all_near & group;
            float uppers[Q];
#pragma unroll
            for (int q = 0; q < Q; ++q) {
                const int c = min(lane + LANES * q, C - 1);
                const ChannelDoubt doubt = doubts[(long long)run.block * C + c];
                const T scales = load_step(rows + (long long)i * C + c).scale * load_step(columns + (long long)j * C + c).scale;
                const float error = (float)((T)doubt.error * scales) + doubt.rest;
                uppers[q] = root_of(fmaxf(staged[r * Q + q][threadIdx.x] + error, 0.0f)) + CHANNEL_LOST;
            }
            sums_over_lanes<C, M, WORST, LANES>(uppers, lane);
#pragma unroll
            for (int q = 0; q < Q; ++q) {
                const int at = lane * Q + q;
                if (!near || at + 1 < M || at >= C || uppers[q] < 0) continue;
                const float most = uppers[q] * (UP * UP);
                if (most < __ldcg(top + at)) lower(top + at, most);
                if (most < __ldcg(other + at)) lower(other + at, most);
            }
            if (entries == nullptr) continue;
            int place = near && lane == 0 ? atomicAdd(n_entries, 1) : 0;
            place = __shfl_sync(ALL, place, 0, LANES);
            if (near && place < capacity) {
                if (lane == 0) entries[place] = make_int2(i, j);
#pragma unroll
                for (int q = 0; q < Q; ++q)
                    if (lane * Q + q < C) sums[(long long)place * C + lane * Q + q] = lowers[r][q];
            } else if (near && dropped_a != nullptr && lane == 0) {
                dropped_a[i] = dropped_b[j] = 1;
            }
        }
    }
}

// The largest of `tops` over RUN windows from each on, in the units of the order: window after window, and channel after
// channel. One thread, one window of a channel.
extern "C" __global__ void largest_tops(
    const float* __restrict__ tops, int pitch, int n_channels, float fold, float* __restrict__ by_window,
    float* __restrict__ by_channel
) {
    const long long place = (long long)blockIdx.x * blockDim.x + threadIdx.x;
    if (place >= (long long)pitch * n_channels) return;
    const int window = (int)(place / n_channels), channel = (int)(place % n_channels);
    float most = tops[place];
    for (int r = 1; r < RUN && window + r < pitch; ++r) most = fmaxf(most, tops[place + (long long)r * n_channels]);
    by_window[place] = most * fold;
    by_channel[(long long)channel * pitch + window] = most * fold;
}

// Keep the listed pairs whose sums do not exceed the bounds that were found since, with their sums. One warp, one pair.
extern "C" __global__ void keep_listed(
    const int2* __restrict__ entries, int count, const float* __restrict__ sums, int n_channels, int n_included,
    const float* __restrict__ tops_a, const float* __restrict__ tops_b, int2* __restrict__ kept,
    float* __restrict__ kept_sums, int* n_kept
) {
    const int entry = (int)(((long long)blockIdx.x * blockDim.x + threadIdx.x) / 32), lane = threadIdx.x & 31;
    if (entry >= count) return;
    const int2 pair = entries[entry];
    const float* const most_a = tops_a + (long long)pair.x * n_channels;
    const float* const most_b = tops_b + (long long)pair.y * n_channels;
    const float* const totals = sums + (long long)entry * n_channels;
    bool keep = false;
    for (int c = max(n_included - 1, 0) + lane; c < n_channels; c += 32)
        keep |= totals[c] >= 0 && totals[c] <= fmaxf(most_a[c], most_b[c]);
    if (!__any_sync(ALL, keep)) return;
    int place = lane == 0 ? atomicAdd(n_kept, 1) : 0;
    place = __shfl_sync(ALL, place, 0);
    if (lane == 0) kept[place] = pair;
    for (int c = lane; c < n_channels; c += 32) kept_sums[(long long)place * n_channels + c] = totals[c];
}
