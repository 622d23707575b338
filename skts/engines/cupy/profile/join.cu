// The nearest window of every window: covariances walk down strips, what may be near is listed,
// what is listed is measured.
//
// `seeds` computes the first row of each band and the first column of each panel from their points.
// `join` walks. For every window, `tops` holds a score that its k-th nearest neighbour is known to
// reach; a run of cells whose best score may reach it is appended to a list. Of what is still near
// once all is known, `refine` computes scores in double precision, `certify` the certified distances of
// the few that remain, and `first_of_equals` breaks ties.
#include "include/walk.cuh"

// Relative allowances: below a score for its rounding and that of certified values, above it for what
// its leading bits leave out, too.
// see "leading bits" in docs/developer/numerics.rst
template <typename T>
constexpr double BELOW = sizeof(T) == 4 ? 1.0 / (1 << 22) : 1.0 / (1 << 26);
template <typename T>
constexpr double ABOVE = sizeof(T) == 4 ? 1.0 / (1 << 22) : 1.0 / (1 << 20) + 1.0 / (1 << 25);
constexpr int CHUNK = 32;
// What a window knows that takes part in nothing: beyond all leading bits.
constexpr int TAKES_NO_PART = 0x7fffffff;

// A run of possible neighbours: of a row in lanes of a strip, or of a column in rows of a chunk.
struct Run {
    int window;  // who looks
    int first;   // the first of the others
    unsigned which;  // lanes of the strip; rows of the chunk
    int score;   // leading bits of the upper bound of its best score
};

// Bounds of a group of 64 windows: largest norm, step, magnitude, error of the mean and weight; least and
// largest mean.
struct Group {
    double norm, step, size, slip, weight, low, high;
};

// out[f, i] = sum over t of (line[first + i + t] - c) (other[starts[f] + t] - mean of that window).
//
// A thread has 8 consecutive i of 2 filters f; a block of 128 threads has 1,024 i. Points and filters lie in
// shared memory, piece by piece. c is the mean of the block's middle window: close to those of its
// others, so that little cancels. With sign < 0 filters are first columns, and the step that leads to
// them from the column before is taken back: what comes out is what enters there.
template <typename T, bool NORMALIZE>
__global__ void __launch_bounds__(128) seeds(
    const double* __restrict__ line, const double* __restrict__ line_mean, int first, int count,
    const double* __restrict__ other, const double* __restrict__ other_mean, int start, int apart,
    int n_filters, int n_other, int length, long long least_apart, int sign, T* __restrict__ out,
    long long stride, const Row<T>* __restrict__ rows, const T* __restrict__ q, const T* __restrict__ s
) {
    constexpr int V = 8, F = 2, PIECE = 256, SPAN = 128 * V;
    __shared__ double points[(SPAN + PIECE) / 8 * 9 + 16];
    __shared__ double filters[PIECE][F];
    const int base = blockIdx.x * SPAN, f0 = blockIdx.y * F;
    // nothing in this block is admissible: i below f, or the other way round
    {
        const long long i = first + (sign > 0 ? base + SPAN - 1 : base);
        const long long f = start + (long long)(sign > 0 ? f0 : min(f0 + F, n_filters) - 1) * apart;
        if ((sign > 0 ? i - f : f - i) <= least_apart) return;
    }
    const int middle = first + min(base + SPAN / 2, count - 1);
    const double center = NORMALIZE ? line_mean[middle] : 0.0;
    double means[F];
    int at[F];
#pragma unroll
    for (int f = 0; f < F; ++f) {
        at[f] = min(start + min(f0 + f, n_filters - 1) * apart, n_other - 1);
        means[f] = NORMALIZE ? other_mean[at[f]] : 0.0;
    }
    double sums[F][V] = {};
    const int limit = count + length - 1;  // points of the line from `first` on
    for (int t0 = 0; t0 < length; t0 += PIECE) {
        const int piece = min(PIECE, length - t0);
        __syncthreads();
        for (int i = threadIdx.x; i < SPAN + PIECE; i += 128) {
            const int place = base + t0 + i;
            points[i + i / 8] = place < limit ? line[first + place] - center : 0.0;
        }
        for (int t = threadIdx.x; t < PIECE * F; t += 128) {
            const int f = t % F, u = t / F;
            filters[u][f] = u < piece ? other[at[f] + t0 + u] - means[f] : 0.0;
        }
        __syncthreads();
        double x[V];
        const double* mine = points + threadIdx.x * 9;
#pragma unroll
        for (int v = 0; v < V - 1; ++v) x[v] = mine[v];
        for (int t = 0; t < piece; t += V) {
#pragma unroll
            for (int u = 0; u < V; ++u) {
                // x is a ring: the point of t + u + V - 1 takes the place of the oldest
                const int next = t + u + V - 1;
                x[(u + V - 1) % V] = mine[next + next / 8];
#pragma unroll
                for (int f = 0; f < F; ++f) {
                    const double w = filters[t + u][f];
#pragma unroll
                    for (int v = 0; v < V; ++v) sums[f][v] = fma(x[(u + v) % V], w, sums[f][v]);
                }
            }
        }
    }
#pragma unroll
    for (int f = 0; f < F; ++f)
        if (f0 + f < n_filters)
#pragma unroll
            for (int v = 0; v < V; ++v) {
                const int i = base + threadIdx.x * V + v;
                if (i >= count) continue;
                if (sign < 0) {
                    const Row<T> row = rows[first + i];
                    sums[f][v] -= (double)row.p * q[at[f]] + (double)row.r * s[at[f]];
                }
                out[(f0 + f) * stride + i] = (T)sums[f][v];
            }
}

// Raise what the k-th nearest neighbour of a window is known to reach by a run's lower bound; where runs
// come a second time, k = 0, that must not be.
__device__ void raise(int* tops, int* slots, int k, int window, int lower) {
    if (k == 0) return;
    if (k == 1) {
        atomicMax(tops + window, lower);
        return;
    }
    // slots hold the lower bounds of k different runs; their least is the top
    int* mine = slots + (long long)window * k;
    for (;;) {
        int least = 0x7fffffff, place = 0, second = 0x7fffffff;
        for (int slot = 0; slot < k; ++slot) {
            const int value = *(volatile int*)(mine + slot);
            if (value < least) {
                second = least;
                least = value;
                place = slot;
            } else {
                second = min(second, value);
            }
        }
        if (lower <= least) return;
        if (atomicCAS(mine + place, least, lower) == least) {
            atomicMax(tops + window, min(second, lower));
            return;
        }
    }
}

// One side of a join: what its windows know of their neighbours, and the list of possible ones.
struct Side {
    int* tops;     // leading bits of the score that the k-th neighbour reaches; largest: takes no part
    int* slots;    // k of them for each window, where k > 1
    int* skipped;  // the largest bound of a run that has no positive score
    Run* list;
    int* count;
    int capacity;
};

// Put the runs of those lanes that have one on the list, its places taken at once, and let their windows
// know. Rarely called: kept out of the walk, whose instructions must stay in the cache.
__device__ __noinline__ void enlist(
    const Side* side, bool mine, Run run, int lower, int known, int n_neighbors
) {
    const unsigned lanes = __ballot_sync(ALL, mine);
    const int lane = threadIdx.x & 31, leader = __ffs(lanes) - 1;
    int place = 0;
    // a list that is too short by far is not counted on: where all windows are equal, as those of a
    // periodic series are, there are more runs than an int holds
    if (lane == leader)
        place = *(volatile int*)side->count <= side->capacity ? atomicAdd(side->count, __popc(lanes))
                                                              : side->capacity;
    place = __shfl_sync(ALL, place, leader) + __popc(lanes & ((1u << lane) - 1));
    if (!mine) return;
    if (place < side->capacity) side->list[place] = run;
    if (lower > known) raise(side->tops, side->slots, n_neighbors, run.window, lower);
}

// Largest (or least) values of the groups that hold windows first..last: a warp looks together.
struct Extent {
    double norm, step, size, slip, weight, low, high;

    __device__ __forceinline__ Extent(const Group* groups, int first, int last) {
        norm = step = size = slip = weight = 0, low = 1e300, high = -1e300;
        for (int g = first / 64 + (threadIdx.x & 31); g <= last / 64; g += 32) {
            norm = fmax(norm, groups[g].norm);
            step = fmax(step, groups[g].step);
            size = fmax(size, groups[g].size);
            slip = fmax(slip, groups[g].slip);
            weight = fmax(weight, groups[g].weight);
            low = fmin(low, groups[g].low);
            high = fmax(high, groups[g].high);
        }
        norm = warp_largest(norm), step = warp_largest(step), size = warp_largest(size);
        slip = warp_largest(slip), weight = warp_largest(weight), low = -warp_largest(-low), high = warp_largest(high);
    }
};

// Leading bits of the least score that must be looked at by one who knows of `known`.
template <typename T>
__device__ __forceinline__ int least_to_look_at(int known, double slack) {
    if (known == TAKES_NO_PART) return known;
    const double least = (least_of<T>(known) - slack) * (1 - ABOVE<T>);
    return max(max(bits_below<T>(least) - 1, bits_below<T>(slack / 2) - 1), 1);
}

// What scores of a row among its columns, and of a column among its rows, leave open.
struct Slack {
    double row, col;
};

// The error of covariances of a band and a panel (rounding on the way, of the seed, and of the means), and that
// of their scores.
template <typename T, bool NORMALIZE>
__device__ __forceinline__ Slack bound_errors(const Extent& a, const Extent& b, int height, int length) {
    const double half = 1.0 / (1LL << 53), unit = sizeof(T) == 4 ? 1.0 / (1 << 24) : half;
    // see "covariance walk" in docs/developer/numerics.rst
    double error = unit * (height + 4) * (2 * a.norm * b.norm + 8 * a.step * b.step) + 1e-38;
    error += half * (length + 8) * a.norm * b.norm;
    if (!NORMALIZE) {
        // see "raw windows" in docs/developer/numerics.rst
        const double share = half * length * (8 + 4 * sqrt((double)length));
        const double both = error + share * (a.norm * a.norm + b.norm * b.norm);
        return Slack{both, both};
    }
    const double drift = a.high - a.low + b.high - b.low;
    const double slip = a.slip + b.slip;
    error += half * (length + 8) * sqrt((double)length) * (a.norm + b.norm) * drift;
    error += length * slip * (2 * drift + slip) + 2 * height * slip * (a.step + b.step);
    const double shift = length * fmax(a.slip * a.weight, b.slip * b.weight);
    // each point of the line is rounded once
    // see "normalised windows" in docs/developer/numerics.rst
    const double blur = half * 4 * sqrt((double)length) * fmax(a.size * a.weight, b.size * b.weight);
    const double rest = 8 * shift * shift / length + blur;
    return Slack{error * b.weight + rest * a.norm, error * a.weight + rest * b.norm};
}

// What a warp has on its desk, in shared memory.
template <typename T, int K, bool COLUMNS>
struct Desk {
    // columns of a lane: in steps of 16 bytes, and such that lanes do not share banks
    static constexpr int WORDS = sizeof(T) / 4, PITCH = ((K * WORDS + 3) / 4 * 4 | 4) / WORDS;
    static constexpr int PITCH_NEEDED = (K + 3) / 4 * 4 | 4;
    // a row of the chunk: its step and weight, what enters on the left, what leaves on the right, and the
    // score from which on a pair must be looked at
    struct alignas(16) Place {
        T p, r, weight, enters, leaves;
        int needed;
    };
    Place places[CHUNK + 1];
    Row<T> stage[CHUNK];  // of the next chunk
    T entering[CHUNK];
    alignas(16) T weights[32 * PITCH];
    alignas(16) int needed[COLUMNS ? 32 * PITCH_NEEDED : 1];  // of columns: the same, or the best score of the chunk
    int bests[CHUNK * 33];                 // best score of every lane in every row
};

// Take the best scores of a chunk as what columns of this lane need, where they go beyond it; bits of those columns.
template <typename T, int K>
__device__ __forceinline__ unsigned raise_needs(Desk<T, K, true>& desk, const int (&best)[K], int lane) {
    int* const needed = &desk.needed[lane * Desk<T, K, true>::PITCH_NEEDED];
    unsigned hits = 0;
#pragma unroll
    for (int k = 0; k < K; ++k)
        if (best[k] >= needed[k]) {
            needed[k] = best[k];
            hits |= 1u << k;
        }
    return hits;
}

// After a chunk lane l looks at row l of it, row i of the line, if that is `inside` of the band: what may be near to
// it goes on the list.
template <typename T, int K, bool COLUMNS>
__device__ __forceinline__ void look_at_row(
    const Desk<T, K, COLUMNS>& desk, const Side* sides, bool inside, int i, int start, double slack, int n_neighbors
) {
    const int lane = threadIdx.x;
    int largest = 0;
#pragma unroll
    for (int other = 0; other < 32; ++other)
        largest = max(largest, desk.bests[lane * 33 + other]);
    const bool there = inside && largest >= desk.places[lane].needed;
    if (!__any_sync(ALL, there)) return;
    const int known = there ? __ldcg(&sides[0].tops[i]) : TAKES_NO_PART;
    const double score = least_of<T>(largest);
    const int upper = bits_below<T>(score * (1 + ABOVE<T>) + slack) + 1;
    const bool list = there && upper >= known;
    // lanes that may hold one of the nearest: with one neighbour, those near the best
    const int lower = bits_below<T>(score * (1 - BELOW<T>) - slack);
    const int bound = n_neighbors == 1 ? max(lower, known) : known;
    const int near = bits_below<T>((least_of<T>(bound) - slack) * (1 - ABOVE<T>)) - 1;
    unsigned lanes = 0;
    for (int other = 0; other < 32 && list; ++other)
        lanes |= (unsigned)(desk.bests[lane * 33 + other] >= max(near, 1)) << other;
    if (__any_sync(ALL, list)) enlist(sides, list, Run{i, start, lanes, upper}, lower, known, n_neighbors);
}

// After a chunk the columns of all lanes that have gone beyond what they need (`hits`) are laid side by side, and
// each lane looks at one of them.
template <typename T, int K, bool COLUMNS>
__device__ __forceinline__ void look_at_columns(
    Desk<T, K, COLUMNS>& desk, const Side* sides, unsigned hits, int start, int base, int count, double slack,
    int n_neighbors
) {
    constexpr int PITCH_NEEDED = Desk<T, K, COLUMNS>::PITCH_NEEDED;
    const int lane = threadIdx.x;
    int place = __popc(hits);
    for (int other = 1; other < 32; other *= 2) {
        const int before = __shfl_up_sync(ALL, place, other);
        if (lane >= other) place += before;
    }
    const int n_hits = __shfl_sync(ALL, place, 31);
    place -= __popc(hits);
    __syncwarp();
    for (unsigned rest = hits; rest != 0; rest &= rest - 1)
        desk.bests[place++] = lane * 32 + __ffs(rest) - 1;
    __syncwarp();
    for (int first = 0; first < n_hits; first += 32) {
        const bool there = first + lane < n_hits;
        const int hit = there ? desk.bests[first + lane] : 0;
        const int j = start + hit / 32 * K + hit % 32;
        int* const needed = &desk.needed[hit / 32 * PITCH_NEEDED + hit % 32];
        const int best = there ? *needed : 0;
        const int known = there ? __ldcg(&sides[1].tops[j]) : TAKES_NO_PART;
        const double score = least_of<T>(best);
        const int upper = bits_below<T>(score * (1 + ABOVE<T>) + slack) + 1;
        const int lower = bits_below<T>(score * (1 - BELOW<T>) - slack);
        const bool list = there && upper >= known;
        if (__any_sync(ALL, list))
            enlist(sides + 1, list, Run{j, base, ALL >> (CHUNK - count), upper}, lower, known, n_neighbors);
        if (there) *needed = least_to_look_at<T>(n_neighbors == 1 ? max(known, lower) : known, slack);
    }
    __syncwarp();
}

// One warp walks a panel of `n_strips` strips of 32 K columns down one band of rows, strip after strip: what
// leaves one on the right enters the next. A block is one warp, so that the compiler knows what its threads
// share. Blocks go over panels so many bands and panels at a time that few warps of a time share
// a window, whose neighbours they would list before they know of each other's.
//
// Rows come in chunks of 32. When one is done, lane l looks at row l, and those columns that may be near to a
// row are laid side by side, one for each lane, so that nothing waits for global memory inside of a
// chunk. Shared memory: the desk of the warp.
//
// Longer than others, and its arguments stand alone: taken apart, the walk of a chunk gets other registers, and
// `__restrict__` holds for parameters, not for fields of a structure.
template <typename T, int K, int B, bool COLUMNS, bool NORMALIZE>
__global__ void __launch_bounds__(32, B) join(
    const Row<T>* __restrict__ rows, const T* __restrict__ q, const T* __restrict__ s,
    const T* __restrict__ weights, const T* __restrict__ first_rows, T* first_cols,
    long long row_stride, long long col_stride, const Group* __restrict__ groups_a,
    const Group* __restrict__ groups_b, int row, int row_stop, int col, int col_stop, int height,
    int n_strips, int n_panels, long long least_apart, int length, int n_neighbors, int exact,
    const Side* __restrict__ sides
) {
    constexpr int PITCH = Desk<T, K, COLUMNS>::PITCH;
    constexpr int PITCH_NEEDED = Desk<T, K, COLUMNS>::PITCH_NEEDED;
    __shared__ Desk<T, K, COLUMNS> desk;
    const int lane = threadIdx.x;
    // squares of SQUARE x SQUARE bands and panels, one after the other
    constexpr int SQUARE = 32;
    const int warp = blockIdx.x, squares = (n_panels + SQUARE - 1) / SQUARE;
    const int square = warp / (SQUARE * SQUARE), inside = warp % (SQUARE * SQUARE);
    const int panel = square % squares * SQUARE + inside % SQUARE;
    const int band = square / squares * SQUARE + inside / SQUARE;
    const int left = col + panel * n_strips * 32 * K, right = min(col_stop, left + n_strips * 32 * K);
    const int top = row + band * height, bottom = min(row_stop, top + height);
    if (panel >= n_panels || top >= bottom || right - 1 - top <= least_apart) return;
    T* const entering = first_cols + panel * col_stride - row;
    // the next chunk comes while this one is walked; lines are padded
    auto fetch = [&](int chunk) {
        const char* from = (const char*)(rows + chunk + lane);
        char* to = (char*)&desk.stage[lane];
#pragma unroll
        for (int part = 0; part < (int)sizeof(Row<T>); part += 16) copy_16(to + part, from + part);
        constexpr int EACH = 16 / sizeof(T);
        if (lane < CHUNK / EACH)
            copy_16(&desk.entering[lane * EACH], entering + chunk + lane * EACH);
    };

    const Extent a(groups_a, top, bottom - 1), b(groups_b, max(0, left - height), right - 1);
    Slack slack = bound_errors<T, NORMALIZE>(a, b, height, length);
    if (!exact) slack.row = slack.col = 0;
    // pairs that are not looked at though their windows know of nothing score less than this
    const int skipped_row = bits_below<T>(2 * slack.row) + 2;
    const int skipped_col = bits_below<T>(2 * slack.col) + 2;

    for (int start = left; start < right; start += 32 * K) {
        const int end = min(right, start + 32 * K), mine = start + lane * K;
        if (end - 1 - top <= least_apart) continue;
        // what columns need, as it is known now
        auto look_up = [&] {
            for (int c = lane; c < 32 * K; c += 32) {
                const int j = start + c, place = c / K * PITCH_NEEDED + c % K;
                const int known = j < end ? __ldcg(&sides[1].tops[j]) : TAKES_NO_PART;
                if (known <= skipped_col) atomicMax(&sides[1].skipped[j], skipped_col);
                desk.needed[place] = least_to_look_at<T>(known, slack.col);
            }
        };
        for (int c = lane; c < 32 * K; c += 32)
            // far below any score where windows are compared as they are
            desk.weights[c / K * PITCH + c % K] =
                start + c < end ? weights[start + c] : (NORMALIZE ? T(0) : T(-1e30));
        if (COLUMNS) look_up();
        __syncwarp();
        // covariances begin one column further left, where no row has been yet
        T cov[K], q_mine[K], s_mine[K], weight_mine[K];
#pragma unroll
        for (int k = 0; k < K; ++k) {
            const bool inside = mine + k < end;
            q_mine[k] = inside ? q[mine + k] : T(0);
            s_mine[k] = inside ? s[mine + k] : T(0);
            weight_mine[k] = desk.weights[lane * PITCH + k];
            cov[k] = mine + k + 1 < end ? first_rows[band * row_stride + (mine + k + 1 - col)] : T(0);
        }
        T from_left = __shfl_up_sync(ALL, cov[K - 1], 1);
        int known = top + lane < bottom ? __ldcg(&sides[0].tops[top + lane]) : TAKES_NO_PART;
        wait_for_copies();
        __syncwarp();
        fetch(top);

        for (int base = top; base < bottom; base += CHUNK) {
            const int count = min(CHUNK, bottom - base), i = base + lane;
            if (end - 1 - base <= least_apart) break;
            wait_for_copies();
            __syncwarp();
            if (known <= skipped_row) atomicMax(&sides[0].skipped[i], skipped_row);
            {
                const Row<T> mine = desk.stage[lane];
                auto& place = desk.places[lane];
                place.needed = least_to_look_at<T>(known, slack.row);
                place.p = mine.p, place.r = mine.r, place.weight = mine.weight;
                place.enters = desk.entering[lane];
                if (base == top && lane == 0) {
                    place.p = place.r = 0;
                    place.enters = first_rows[band * row_stride + (start - col)];
                }
                // nothing is near to rows beyond the last
                if (lane >= count) place.weight = NORMALIZE ? T(0) : T(-1e30);
            }
            __syncwarp();
            known = i + CHUNK < bottom ? __ldcg(&sides[0].tops[i + CHUNK]) : TAKES_NO_PART;
            if (base + CHUNK < bottom) fetch(base + CHUNK);
            // at the diagonal, pairs that are too close are left out
            const bool whole = start - (base + count - 1) > least_apart;
            int best[COLUMNS ? K : 1];
            if (COLUMNS)
#pragma unroll
                for (int k = 0; k < K; ++k) best[k] = 0;
            // one row down; what comes in from the left is on its way for the next
            if (lane == 0) from_left = desk.places[0].enters;
            auto step = [&](int t) {
                const T p = desk.places[t].p, r = desk.places[t].r, enters = desk.places[t + 1].enters;
#pragma unroll
                for (int k = K - 1; k >= 0; --k)
                    cov[k] = fma(p, q_mine[k], fma(r, s_mine[k], k > 0 ? cov[k - 1] : from_left));
                if (lane == 31) desk.places[t].leaves = cov[K - 1];
                from_left = __shfl_up_sync(ALL, cov[K - 1], 1);
                if (lane == 0) from_left = enters;
            };
            auto scored = [](T value, T weight) {
                return bits_of(NORMALIZE ? value * weight : value + weight);
            };
            if (whole) {
                // two rows at a time: a maximum of three is one instruction
                for (int t = 0; t < CHUNK; t += 2) {
                    int score[COLUMNS ? K : 1];
#pragma unroll
                    for (int u = 0; u < 2; ++u) {
                        const T weight = desk.places[t + u].weight;
                        int most = 0;
                        step(t + u);
#pragma unroll
                        for (int k = 0; k < K; ++k) {
                            most = max(most, scored(cov[k], weight_mine[k]));
                            if (COLUMNS && u == 0) score[k] = scored(cov[k], weight);
                            if (COLUMNS && u == 1)
                                best[k] = max(max(best[k], score[k]), scored(cov[k], weight));
                        }
                        desk.bests[(t + u) * 33 + lane] = most;
                    }
                }
            } else {
                for (int t = 0; t < CHUNK; ++t) {
                    const T weight = desk.places[t].weight;
                    const long long close = least_apart - ((long long)mine - base - t);
                    int most = 0;
                    step(t);
#pragma unroll
                    for (int k = 0; k < K; ++k)
                        if (k > close) {
                            most = max(most, scored(cov[k], weight_mine[k]));
                            if (COLUMNS) best[k] = max(best[k], scored(cov[k], weight));
                        }
                    desk.bests[t * 33 + lane] = most;
                }
            }
            unsigned hits = 0;
            if constexpr (COLUMNS) hits = raise_needs(desk, best, lane);
            // what a row leaves enters the next strip in the row below; the copy ahead has been made
            wait_for_copies();
            __syncwarp();
            if (i + 1 < bottom) __stcg(entering + i + 1, desk.places[lane].leaves);

            look_at_row<T>(desk, sides, lane < count, i, start, slack.row, n_neighbors);
            if (COLUMNS && __any_sync(ALL, hits != 0))
                look_at_columns<T>(desk, sides, hits, start, base, count, slack.col, n_neighbors);
            __syncwarp();
        }
        __syncwarp();
    }
}

// A line, as certified distances need it.
struct Line {
    const double* points;
    const double* mean;
    const double* inverse;
};

// A line, as the walk has it.
struct Searched {
    const double* points;
    const double* mean;
    const double* norm;
    const double* slip;
    const unsigned char* usual;
};

// The certified distance of two windows: one order, no fused multiply-add, the bits of the CPU engine.
// Points of z-normalised windows count from the first.
__device__ __forceinline__ double certified(
    const Line& a, int i, const Line& b, int j, int length, bool normalize
) {
    const double first_a = normalize ? a.points[i] : 0.0, first_b = normalize ? b.points[j] : 0.0;
    const double mean_a = a.mean[i], scale_a = a.inverse[i], mean_b = b.mean[j], scale_b = b.inverse[j];
    double total = 0;
    for (int t = 0; t < length; ++t) {
        const double x = __dmul_rn(__dsub_rn(__dsub_rn(a.points[i + t], first_a), mean_a), scale_a);
        const double y = __dmul_rn(__dsub_rn(__dsub_rn(b.points[j + t], first_b), mean_b), scale_b);
        const double d = __dsub_rn(x, y);
        total = __dadd_rn(total, __dmul_rn(d, d));
    }
    return __dsqrt_rn(total);
}

// Scores of runs, from the points in double precision. One thread, one cell: cell c belongs to run
// owners[c], and is its window number c - offsets[run], `lanes` of them for each bit of `which`.
//
// `reached` of a window rises to the best lower bound of its scores, if it may (`raising`). Outputs: who
// looks, the other, and the upper bound of the score, -1 where the other is not admissible.
extern "C" __global__ void refine(
    const Run* __restrict__ list, const long long* __restrict__ offsets, const int* __restrict__ owners,
    int count, int lanes, const Searched* __restrict__ lines, int n_others, int length,
    long long least_apart, int sign, int normalize, double level, int raising,
    unsigned long long* __restrict__ reached,
    int* __restrict__ windows, int* __restrict__ places, double* __restrict__ uppers
) {
    const int cell = blockIdx.x * blockDim.x + threadIdx.x;
    if (cell >= count) return;
    const Run run = list[owners[cell]];
    const int rank = (int)(cell - offsets[owners[cell]]);
    unsigned rest = run.which;
    for (int passed = rank / lanes; passed > 0; --passed) rest &= rest - 1;
    const int other = run.first + (__ffs(rest) - 1) * lanes + rank % lanes;
    windows[cell] = run.window;
    places[cell] = other;
    uppers[cell] = -1;
    if (other >= n_others || !lines[1].usual[other]) return;
    if (sign * ((long long)other - run.window) <= least_apart) return;
    const double* __restrict__ x = lines[0].points + run.window;
    const double* __restrict__ y = lines[1].points + other;
    const double norm = lines[0].norm[run.window], theirs = lines[1].norm[other];
    const double half = 1.0 / (1LL << 53), center = normalize ? lines[0].mean[run.window] : 0.0;
    const double other_mean = fabs(lines[1].mean[other]), root = sqrt((double)length);
    double sum = 0;
#pragma unroll 8
    for (int t = 0; t < length; ++t) sum = fma(__ldg(x + t) - center, __ldg(y + t), sum);
    // the mean of the other is not taken off
    const double away = normalize ? root * other_mean : 0.0;
    // see "refined scores" in docs/developer/numerics.rst
    double error = half * (2 * length + 16) * norm * (theirs + away);
    if (normalize) {
        // of the means, and of points and certified distances, as in the walk
        const double own_slip = lines[0].slip[run.window], slip = lines[1].slip[other];
        const double blur = fmax((norm + fabs(center)) / norm, (theirs + other_mean) / theirs);
        const double shift = length * fmax(own_slip / norm, slip / theirs);
        error = (error + length * own_slip * (other_mean + slip)) / theirs;
        error += norm * (1e-14 * length + 4 * shift * shift / length + 4 * half * root * blur);
        sum /= theirs;
    } else {
        sum += level / 2 - theirs * theirs / 2;
        error += half * length * (16 + 4 * root) * (norm * norm + theirs * theirs + level);
    }
    uppers[cell] = sum + error;
    if (raising && sum - error > 0)
        atomicMax(reached + run.window, (unsigned long long)__double_as_longlong(sum - error));
}

// Certified distances of pairs. One thread, one pair.
extern "C" __global__ void certify(
    const int* __restrict__ windows, const int* __restrict__ places, int count,
    const Line* __restrict__ lines, int length, int normalize,
    unsigned long long* __restrict__ distances, double* __restrict__ found
) {
    const int pair = blockIdx.x * blockDim.x + threadIdx.x;
    if (pair >= count) return;
    const double d = certified(lines[0], windows[pair], lines[1], places[pair], length, normalize);
    found[pair] = d;
    if (distances) atomicMin(distances + windows[pair], (unsigned long long)__double_as_longlong(d));
}

// Of equally near neighbours keep the first. One thread, one pair.
extern "C" __global__ void first_of_equals(
    const int* __restrict__ windows, const int* __restrict__ places, int count,
    const unsigned long long* __restrict__ distances, const double* __restrict__ found,
    int* __restrict__ indices
) {
    const int pair = blockIdx.x * blockDim.x + threadIdx.x;
    if (pair >= count) return;
    const int window = windows[pair];
    if ((unsigned long long)__double_as_longlong(found[pair]) == distances[window])
        atomicMin(indices + window, places[pair]);
}
