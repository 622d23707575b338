// The nearest window of every window: covariances walk down strips, what may be near is listed,
// what is listed is measured.
//
// `seeds` computes the first row of each band and the first column of each panel from their points.
// `join` walks. For every window, `tops` holds a score that its k-th nearest neighbour is known to
// reach; a run of cells whose best score may reach it is appended to a list. Of what is still near
// once all is known, `refine` computes scores in double precision, `certify` the certified distances of
// the few that remain, and `first_of_equals` breaks ties.
#include "walk.cuh"

// Relative allowances: below a score for its rounding and that of certified values, above it for what
// its leading bits leave out, too.
template <typename T>
constexpr double BELOW = sizeof(T) == 4 ? 1.0 / (1 << 22) : 1.0 / (1 << 26);
template <typename T>
constexpr double ABOVE = sizeof(T) == 4 ? 1.0 / (1 << 22) : 1.0 / (1 << 20) + 1.0 / (1 << 25);
constexpr int CHUNK = 32;

// A run of possible neighbours: of a row in lanes of a strip, or of a column in rows of a chunk.
struct Run {
    int window;  // who looks
    int first;   // the first of the others
    unsigned which;  // lanes of the strip; rows of the chunk
    int score;   // leading bits of the upper bound of its best score
};

// Bounds of a group of 64 windows: largest norm, step, magnitude and weight; least and largest mean.
struct Group {
    double norm, step, size, weight, low, high;
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
    if (lane == leader) place = atomicAdd(side->count, __popc(lanes));
    place = __shfl_sync(ALL, place, leader) + __popc(lanes & ((1u << lane) - 1));
    if (!mine) return;
    if (place < side->capacity) side->list[place] = run;
    if (lower > known) raise(side->tops, side->slots, n_neighbors, run.window, lower);
}

// Largest (or least) values of the groups that hold windows first..last: a warp looks together.
struct Extent {
    double norm, step, size, weight, low, high;

    __device__ __forceinline__ Extent(const Group* groups, int first, int last) {
        norm = step = size = weight = 0, low = 1e300, high = -1e300;
        for (int g = first / 64 + (threadIdx.x & 31); g <= last / 64; g += 32) {
            norm = fmax(norm, groups[g].norm);
            step = fmax(step, groups[g].step);
            size = fmax(size, groups[g].size);
            weight = fmax(weight, groups[g].weight);
            low = fmin(low, groups[g].low);
            high = fmax(high, groups[g].high);
        }
        norm = warp_largest(norm), step = warp_largest(step), size = warp_largest(size);
        weight = warp_largest(weight), low = -warp_largest(-low), high = warp_largest(high);
    }
};

// One warp walks a panel of `n_strips` strips of 32 K columns down one band of rows, strip after strip: what
// leaves one on the right enters the next. A block has 4 independent warps. Blocks go over panels
// so many bands and panels at a time that few warps of a time share a window, whose neighbours they
// would list before they know of each other's.
//
// Rows come in chunks of 32. Shared memory, of each warp alone: what the rows of the chunk need, copied
// one chunk ahead; what leaves on the right; the best score of every lane in every row, at which lane l looks
// for row l when the chunk is done, so that nothing waits inside of it; what columns need to be listed.
template <typename T, int K, int B, bool COLUMNS, bool NORMALIZE>
__global__ void __launch_bounds__(128, B) join(
    const Row<T>* __restrict__ rows, const T* __restrict__ q, const T* __restrict__ s,
    const T* __restrict__ weights, const T* __restrict__ first_rows, T* first_cols,
    long long row_stride, long long col_stride, const Group* __restrict__ groups_a,
    const Group* __restrict__ groups_b, int row, int row_stop, int col, int col_stop, int height,
    int n_strips, int n_panels, long long least_apart, int length, int n_neighbors, int exact,
    const Side* __restrict__ sides
) {
    __shared__ Row<T> stages[4][2][CHUNK];
    __shared__ alignas(16) T enterings[4][2][CHUNK];
    __shared__ T leavings[4][CHUNK];
    __shared__ int bests[4][CHUNK * 33], needs[4][COLUMNS ? 32 * K : 1];
    const int lane = threadIdx.x & 31, which = threadIdx.x / 32;
    // squares of SQUARE x SQUARE bands and panels, one after the other
    constexpr int SQUARE = 32;
    const int warp = blockIdx.x * 4 + which, squares = (n_panels + SQUARE - 1) / SQUARE;
    const int square = warp / (SQUARE * SQUARE), inside = warp % (SQUARE * SQUARE);
    const int panel = square % squares * SQUARE + inside % SQUARE;
    const int band = square / squares * SQUARE + inside / SQUARE;
    const int left = col + panel * n_strips * 32 * K, right = min(col_stop, left + n_strips * 32 * K);
    const int top = row + band * height, bottom = min(row_stop, top + height);
    if (panel >= n_panels || top >= bottom || right - 1 - top <= least_apart) return;
    T* const leaving = leavings[which];
    int* const best_of_lanes = bests[which];
    int* const needed = needs[which];
    T* const entering = first_cols + panel * col_stride - row;
    // the next chunk comes while this one is walked; lines are padded
    auto fetch = [&](int chunk) {
        const int buffer = (chunk - top) / CHUNK & 1;
        const char* from = (const char*)(rows + chunk + lane);
        char* to = (char*)&stages[which][buffer][lane];
#pragma unroll
        for (int part = 0; part < (int)sizeof(Row<T>); part += 16) copy_16(to + part, from + part);
        constexpr int EACH = 16 / sizeof(T);
        if (lane < CHUNK / EACH)
            copy_16(&enterings[which][buffer][lane * EACH], entering + chunk + lane * EACH);
    };

    // the error of a covariance: rounding on the way, of the seed, and of the means
    double slack_row, slack_col;
    {
        const Extent a(groups_a, top, bottom - 1), b(groups_b, max(0, left - height), right - 1);
        const double half = 1.0 / (1LL << 53), unit = sizeof(T) == 4 ? 1.0 / (1 << 24) : half;
        double error = unit * (height + 4) * (2 * a.norm * b.norm + 8 * a.step * b.step) + 1e-38;
        error += half * (length + 8) * a.norm * b.norm;
        // the same for scores: of a row among its columns, of a column among its rows
        if (NORMALIZE) {
            const double drift = a.high - a.low + b.high - b.low;
            const double slip = 2 * half * length * fmax(a.size, b.size);
            error += half * (length + 8) * sqrt((double)length) * (a.norm + b.norm) * drift;
            error += length * slip * (2 * drift + slip) + 2 * height * slip * (a.step + b.step);
            const double shift = length * slip * fmax(a.weight, b.weight);
            slack_row = error * b.weight + 8 * shift * shift * a.norm / length;
            slack_col = error * a.weight + 8 * shift * shift * b.norm / length;
        } else {
            slack_row = slack_col = error + half * 8 * length * (a.norm * a.norm + b.norm * b.norm);
        }
    }
    if (!exact) slack_row = slack_col = 0;
    const int slack_row_bits = bits_below<T>(slack_row) + 1;
    const int slack_col_bits = bits_below<T>(slack_col) + 1;

    for (int start = left; start < right; start += 32 * K) {
        const int end = min(right, start + 32 * K), mine = start + lane * K;
        if (end - 1 - top <= least_apart) continue;
        Strip<T, K, NORMALIZE> here;
        int best[K];
#pragma unroll
        for (int k = 0; k < K; ++k) {
            const bool inside = mine + k < end;
            here.q[k] = inside ? q[mine + k] : T(0);
            here.s[k] = inside ? s[mine + k] : T(0);
            // far below any score where windows are compared as they are
            here.weight[k] = inside ? weights[mine + k] : (NORMALIZE ? T(0) : T(-1e30));
            here.cov[k] = inside ? first_rows[band * row_stride + (mine + k - col)] : T(0);
            best[k] = 0;
        }
        if (COLUMNS)
#pragma unroll
            for (int k = 0; k < K; ++k) needed[k * 32 + lane] = 0;
        wait_for_copies();
        __syncwarp();
        fetch(top);

        for (int base = top; base < bottom; base += CHUNK) {
            const int stop = min(base + CHUNK, bottom);
            if (end - 1 - base <= least_apart) break;
            wait_for_copies();
            __syncwarp();
            const Row<T>* const stage = stages[which][(base - top) / CHUNK & 1];
            const T* const enters = enterings[which][(base - top) / CHUNK & 1];
            if (base + CHUNK < bottom) fetch(base + CHUNK);
            if (base > top && stop == base + CHUNK && start - (stop - 1) > least_apart) {
                // two rows at a time: a maximum of three is one instruction
                for (int t = 0; t < CHUNK; t += 2) {
                    int score[COLUMNS ? K : 1], most[2] = {0, 0};
#pragma unroll
                    for (int u = 0; u < 2; ++u) {
                        const Row<T> next = stage[t + u];
                        here.step(next, enters[t + u], lane);
#pragma unroll
                        for (int k = 0; k < K; ++k) {
                            most[u] = max(most[u], here.in_row(k));
                            if (COLUMNS && u == 0) score[k] = here.in_column(k, next.weight);
                            if (COLUMNS && u == 1)
                                best[k] = max(max(best[k], score[k]), here.in_column(k, next.weight));
                        }
                        best_of_lanes[(t + u) * 33 + lane] = most[u];
                        if (lane == 31) leaving[t + u] = here.cov[K - 1];
                    }
                }
            } else {
                // the first rows, the last ones, and those at the diagonal
                for (int i = base; i < stop; ++i) {
                    const Row<T> next = stage[i - base];
                    if (i > top) here.step(next, enters[i - base], lane);
                    const long long apart = (long long)mine - i;
                    int most = 0;
#pragma unroll
                    for (int k = 0; k < K; ++k)
                        if (apart + k > least_apart) {
                            most = max(most, here.in_row(k));
                            if (COLUMNS) best[k] = max(best[k], here.in_column(k, next.weight));
                        }
                    best_of_lanes[(i - base) * 33 + lane] = most;
                    if (lane == 31) leaving[i - base] = here.cov[K - 1];
                }
            }
            // what a row leaves enters the next strip in the row below; the copy ahead has been made
            wait_for_copies();
            __syncwarp();
            if (base + lane + 1 < bottom) __stcg(entering + base + lane + 1, leaving[lane]);

            // rows: lane l looks at row base + l
            {
                const int i = base + lane;
                const bool there = i < stop;
                const int known = there ? __ldcg(&sides[0].tops[i]) : 0x7fffffff;
                int largest = 0;
                if (there)
#pragma unroll 8
                    for (int other = 0; other < 32; ++other)
                        largest = max(largest, best_of_lanes[lane * 33 + other]);
                const double score = least_of<T>(largest);
                const int upper = bits_below<T>(score * (1 + ABOVE<T>) + slack_row) + 1;
                const bool list = largest > 0 && upper >= known;
                if (__any_sync(ALL, list)) {
                    // lanes that may hold one of the nearest: with one neighbour, those near the best
                    const int lower = bits_below<T>(score * (1 - BELOW<T>) - slack_row);
                    const int bound = n_neighbors == 1 ? max(lower, known) : known;
                    const int near = bits_below<T>((least_of<T>(bound) - slack_row) * (1 - ABOVE<T>)) - 1;
                    unsigned lanes = 0;
                    for (int other = 0; other < 32 && list; ++other)
                        lanes |= (unsigned)(best_of_lanes[lane * 33 + other] >= max(near, 1)) << other;
                    enlist(sides, list, Run{i, start, lanes, upper}, lower, known, n_neighbors);
                }
                if (there && slack_row_bits >= known) {
                    int smallest = 1;
                    for (int other = 0; other < 32; ++other)
                        smallest = min(smallest, best_of_lanes[lane * 33 + other]);
                    if (smallest == 0) atomicMax(&sides[0].skipped[i], slack_row_bits);
                }
            }
            // columns: each lane looks at its own, where one of them may have gone beyond
            if (COLUMNS) {
                bool beyond = false;
#pragma unroll
                for (int k = 0; k < K; ++k) beyond |= best[k] >= needed[k * 32 + lane];
                if (__any_sync(ALL, beyond)) {
#pragma unroll
                    for (int k = 0; k < K; ++k) {
                        if (!__any_sync(ALL, best[k] >= needed[k * 32 + lane])) continue;
                        const int j = mine + k;
                        const bool there = j < end;
                        const int known = there ? __ldcg(&sides[1].tops[j]) : 0x7fffffff;
                        const double score = least_of<T>(best[k]);
                        const int upper = bits_below<T>(score * (1 + ABOVE<T>) + slack_col) + 1;
                        const bool list = best[k] > 0 && upper >= known;
                        const int lower = bits_below<T>(score * (1 - BELOW<T>) - slack_col);
                        if (__any_sync(ALL, list))
                            enlist(sides + 1, list,
                                   Run{j, base, (1u << (stop - base - 1) << 1) - 1u, upper}, lower,
                                   known, n_neighbors);
                        if (there && best[k] == 0 && slack_col_bits >= known && j - base > least_apart)
                            atomicMax(&sides[1].skipped[j], slack_col_bits);
                        // less than this does not reach what is known
                        const double least = least_of<T>(known) - slack_col;
                        needed[k * 32 + lane] =
                            known == 0x7fffffff ? known
                                                : max(bits_below<T>(least * (1 - ABOVE<T>)) - 1, 0);
                    }
                }
#pragma unroll
                for (int k = 0; k < K; ++k) best[k] = 0;
            }
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
    const unsigned char* usual;
};

// The certified distance of two windows: one order, no fused multiply-add, the bits of the CPU engine.
__device__ __forceinline__ double certified(const Line& a, int i, const Line& b, int j, int length) {
    const double mean_a = a.mean[i], scale_a = a.inverse[i], mean_b = b.mean[j], scale_b = b.inverse[j];
    double total = 0;
    for (int t = 0; t < length; ++t) {
        const double x = __dmul_rn(__dsub_rn(a.points[i + t], mean_a), scale_a);
        const double y = __dmul_rn(__dsub_rn(b.points[j + t], mean_b), scale_b);
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
    int count, int lanes, const Line* __restrict__ lines, int n_others, int length,
    long long least_apart, int sign, int normalize, double level, const double* __restrict__ own_norm,
    const double* __restrict__ other_norm, const double* __restrict__ own_mean,
    const double* __restrict__ other_mean, int raising, unsigned long long* __restrict__ reached,
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
    const double half = 1.0 / (1LL << 53), norm = own_norm[run.window], theirs = other_norm[other];
    const double center = normalize ? own_mean[run.window] : 0.0;
    double sum = 0;
#pragma unroll 8
    for (int t = 0; t < length; ++t) sum = fma(__ldg(x + t) - center, __ldg(y + t), sum);
    // the mean of the other is not taken off
    const double away = normalize ? sqrt((double)length) * fabs(other_mean[other]) : 0.0;
    double error = half * (2 * length + 16) * norm * (theirs + away);
    if (normalize) {
        // of the means, and of the certified distance, as in the walk
        const double size = fmax(norm + fabs(center), theirs + fabs(other_mean[other]));
        const double slip = half * length * size, shift = length * slip * fmax(1 / norm, 1 / theirs);
        error = (error + length * slip * (fabs(other_mean[other]) + slip)) / theirs;
        error += norm * (1e-14 * length + 8 * shift * shift / length);
        sum /= theirs;
    } else {
        sum += level / 2 - theirs * theirs / 2;
        error += half * 16 * length * (norm * norm + theirs * theirs + level);
    }
    uppers[cell] = sum + error;
    if (raising && sum - error > 0)
        atomicMax(reached + run.window, (unsigned long long)__double_as_longlong(sum - error));
}

// Certified distances of pairs. One thread, one pair.
extern "C" __global__ void certify(
    const int* __restrict__ windows, const int* __restrict__ places, int count,
    const Line* __restrict__ lines, int length, unsigned long long* __restrict__ distances,
    double* __restrict__ found
) {
    const int pair = blockIdx.x * blockDim.x + threadIdx.x;
    if (pair >= count) return;
    const double d = certified(lines[0], windows[pair], lines[1], places[pair], length);
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
