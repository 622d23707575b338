// The steps of `sift` of matches.cu: what a block has, loads, weights, dot products, keys, lists.
#pragma once
#include "shapelets/matches.cuh"

// Weight of a window, `scale` / deviation, and a bound of the doubt of its keys; see `sift`.
//
// The weight is 0 of a constant window, and with a doubt of ANYTHING of one that cannot be judged here. It is -0
// where the window takes no part: it is not there, not finite, or is constant as the one before it, which comes first.
__device__ __forceinline__ double weigh(
    const double2* __restrict__ sums, const double2* __restrict__ squares,
    const int2* __restrict__ reaches, const ChannelScale& line, int width, int length, double share, double scale, int j,
    float lean, int& doubt
) {
    doubt = 0;
    if (j > width - length) return -0.0;
    const int2 reach = __ldg(reaches + j);
    if (reach.x < length) return -0.0;
    if (reach.y >= length) return j > 0 && __ldg(&reaches[j - 1].y) >= length ? -0.0 : 0.0;
    const double2 s0 = __ldg(sums + j), s1 = __ldg(sums + j + length);
    const double2 q0 = __ldg(squares + j), q1 = __ldg(squares + j + length);
    const double s = (s1.x - s0.x) + (s1.y - s0.y), q = (q1.x - q0.x) + (q1.y - q0.y);
    // what is left of squares about the mean, and what that is wrong by
    const double rest = q - s * s * share;
    const double wrong = 16 * FLOAT64_UNIT * q + 64 * FLOAT64_UNIT * FLOAT64_UNIT * ((double)width * width * width);
    doubt = ANYTHING;
    if (!(wrong < 1e-3 * rest)) return 0;
    const double weight = rsqrt(rest * share);
    if (!(weight >= __ldg(&line.lightest) && weight <= __ldg(&line.heaviest))) return 0;
    const float range = (float)(__ldg(&line.magnitude) * weight);  // above that of points, over the deviation
    const float shift = (float)FLOAT64_UNIT * length * range;       // what the certified mean is off by
    if (!(range < 0x1p38f && shift < 1e-2f)) return 0;
    // see "match keys" in docs/developer/numerics.rst
    const float part = 1 / (float)rest, steep = sqrtf((float)q * part);
    const float sum = (float)FLOAT64_UNIT * ((length + 4) * steep + 4.0f * length + 40) + (float)wrong * part +
                      shift * shift / 2 + lean * (steep + shift);
    const float keys = 2.001f * sum * length * (float)scale;
    if (!(keys < 0x1p27f)) return 0;
    doubt = (int)keys + 3;
    return weight * scale;
}

// Pieces of R windows that a block takes, of series with so many pieces: whole series where they nearly fill its warps.
__device__ __forceinline__ int pieces_of_block(int pieces) {
    const int most = MOST_SERIES - 2, whole = min(THREADS / pieces, most) * pieces;
    return whole && (whole * 5 >= (whole + 31) / 32 * 128 || pieces * most < THREADS) ? whole : THREADS;
}

// Say that a query and column are to be matched window by window.
__device__ __forceinline__ void leave(int query, int column, int n_columns, const Lists& lists) {
    const long long pair = (long long)query * n_columns + column;
    const unsigned bit = 1u << (pair & 31);
    if (!(atomicOr(lists.marks + pair / 32, bit) & bit))
        lists.left[atomicAdd(lists.counts + 1, 1)] = make_int2(query, column);
}

// Add the products of R neighbouring windows with Q queries. Shares of a step lie side by side; of a single query
// those of R steps, and a place that is left out.
template <int Q>
__device__ __forceinline__ void add_products(
    Number<Q>, double (&dots)[R][Q], const double* mine, const double* share, int count
) {
    // points[(t + r) % R] is that of window r at time t
    double points[R];
#pragma unroll
    for (int r = 0; r < R; ++r) points[r] = mine[r];
    mine += R;
    for (int t = 0; t < count; t += R, mine += R, share += Q == 1 ? R + 1 : R * Q) {
#pragma unroll
        for (int u = 0; u < R; ++u) {
#pragma unroll
            for (int k = 0; k < Q; ++k)
#pragma unroll
                for (int r = 0; r < R; ++r)
                    dots[r][k] = fma(share[u * Q + k], points[(u + r) % R], dots[r][k]);
            points[u] = mine[u];
        }
    }
}

// The work of a block of `sift`: the queries of a unit, and `n_items` pieces of neighbouring series.
struct SiftBlock {
    int2 unit;                              // the first query, and how many
    int length, channel;                    // of its queries
    long long place;                        // of the points of the first one
    int pieces;                             // of a series
    int first_column, first_piece;          // where the block begins
    int n_items, n_series;                  // its pieces, and the series that these belong to
    int steps;                              // of time between two loads
    bool once, twofold;                     // whether one load has all steps; else whether a tile holds two loads

    __device__ __forceinline__ long long row_of(int column, int n_channels) const {
        return (long long)column * n_channels + channel;
    }
};

// Shared memory of a block of `sift`.
struct SiftShared {
    double* tile;                   // points of the pieces, for some steps
    double (*shares)[2 * STEPS];    // points of one or two queries for these, of two loads
    double* weights;                // of windows
    int* doubts;                    // of their keys
    int (*tops)[2][MOST_SERIES];    // largest certain key of each query and series, of two rounds
};

// Say which pieces this block of `sift` has, and how many steps it loads at a time; false where it has none.
__device__ __forceinline__ bool begin_block(
    SiftBlock& block, const Surveyed& surveyed, const int2* __restrict__ units, const Query* __restrict__ queries
) {
    block.unit = __ldg(units + blockIdx.y);
    const Query& query = queries[block.unit.x];
    const int length = block.length = __ldg(&query.length);
    block.channel = __ldg(&query.channel), block.place = __ldg(&query.place);
    const int pieces = block.pieces = max(1, (surveyed.width - length + R) / R), each = pieces_of_block(pieces);
    const long long begin = (long long)blockIdx.x * each, end = (long long)surveyed.n_columns * pieces;
    if (begin >= end) return false;
    block.n_items = (int)min((long long)each, end - begin);
    block.first_column = (int)(begin / pieces), block.first_piece = (int)(begin % pieces);
    const int n_series = block.n_series = (block.first_piece + block.n_items - 1) / pieces + 1;
    // all steps, or as many as a tile has room for; half a tile, where that is worth while
    const int whole = (TILE - THREADS * R) / n_series / R * R, halved = (TILE / 2 - THREADS * R) / n_series / R * R;
    const int all = (length + R - 1) / R * R;
    block.once = all <= min(STEPS, whole), block.twofold = !block.once && halved >= 4 * R;
    block.steps = block.once ? all : min(STEPS, block.twofold ? halved : whole);
    return true;
}

// Begin to load the steps from `from` on of one or two queries, those from `set` on: all threads.
__device__ __forceinline__ void load_steps(
    const SiftBlock& block, const SiftShared& shared, const Surveyed& surveyed, const double* normal, int set, int from,
    int buffer
) {
    const int me = threadIdx.x, length = block.length, steps = block.steps;
    const int count = min(steps, length - from);
    // threads that load a series together
    const int team = block.n_series < 4 ? THREADS : 32;
    if (set == 0 || !block.once)
        for (int s = me / team; s < block.n_series; s += THREADS / team) {
            const int skipped = s == 0 ? 0 : s * block.pieces - block.first_piece;  // pieces of series before
            const int size = (min((s + 1) * block.pieces - block.first_piece, block.n_items) - skipped) * R + steps;
            const int t0 = (s == 0 ? block.first_piece * R : 0) + from, there_are = surveyed.width - t0;
            const double* const line =
                surveyed.centered + block.row_of(block.first_column + s, surveyed.n_channels) * surveyed.width + t0;
            double* const to = shared.tile + (block.twofold ? buffer * (TILE / 2) : 0) + skipped * R + s * steps;
            for (int i = me % team; i < size; i += team)
                copy_8(to + i, line + min(i, there_are - 1), i < there_are);
        }
    const double* const own = normal + block.place + (long long)set * length + from;
    const int padded = (count + R - 1) / R * R;
    if (set + 1 < block.unit.y) {
        for (int i = me; i < 2 * padded; i += THREADS)
            copy_8(shared.shares[buffer] + i, own + (i & 1) * length + min(i / 2, count - 1), i / 2 < count);
    } else {
        for (int i = me; i < padded; i += THREADS)
            copy_8(shared.shares[buffer] + i / R * (R + 1) + i % R, own + min(i, count - 1), i < count);
    }
}

// Weights and doubts of all windows of a block: all threads.
__device__ __forceinline__ void weigh_windows(
    const SiftBlock& block, const SiftShared& shared, const Surveyed& surveyed, const float* __restrict__ leans,
    int power
) {
    const int length = block.length, width = surveyed.width;
    float lean = 0;
    for (int u = 0; u < block.unit.y; ++u) {
        const float its = __ldg(leans + block.unit.x + u);
        if (its < 1) lean = fmaxf(lean, its);
    }
    const double share = 1.0 / length, scale = (double)(1 << power);
    for (int i = threadIdx.x; i < THREADS * R; i += THREADS) {
        shared.weights[i] = -0.0, shared.doubts[i] = 0;
        if (i >= block.n_items * R) continue;
        const int item = block.first_piece + i / R, j = item % block.pieces * R + i % R;
        const long long row = block.row_of(block.first_column + item / block.pieces, surveyed.n_channels);
        int doubt;
        shared.weights[i] = weigh(
            surveyed.sums + row * (width + 1), surveyed.squares + row * (width + 1), surveyed.reaches + row * width,
            surveyed.lines[row], width, length, share, scale, j, lean, doubt
        );
        shared.doubts[i] = doubt;
    }
}

// Forget the largest keys of a round: all threads.
__device__ __forceinline__ void clear_tops(int (*tops)[MOST_SERIES]) {
    for (int i = threadIdx.x; i < 2 * MOST_SERIES; i += THREADS) (&tops[0][0])[i] = NOTHING;
}

// Dot products of the windows of this thread with Q queries from `set` on: while all threads add those of some steps, the
// next ones are loaded, those of the next queries at the end.
template <int Q>
__device__ __forceinline__ void multiply(
    Number<Q> how_many, const SiftBlock& block, const SiftShared& shared, const Surveyed& surveyed, const double* normal,
    int set, int& buffer, double (&dots)[R][Q]
) {
    const int me = threadIdx.x, length = block.length, steps = block.steps;
    const bool there = me < block.n_items;
    const double* const mine = shared.tile + me * R + (block.first_piece + me) / block.pieces * steps;
    for (int from = 0; from < length; from += steps) {
        const int count = min(steps, length - from);
        wait_for_copies();
        __syncthreads();
        if (from == 0) clear_tops(shared.tops[(set / 2 + 1) & 1]);
        const bool last = from + steps >= length;
        const int next_set = last ? set + Q : set, next = last ? 0 : from + steps;
        // a tile that is the only one is loaded when all are done with it
        const bool early = block.once || block.twofold;
        if (early && next_set < block.unit.y) load_steps(block, shared, surveyed, normal, next_set, next, buffer ^ 1);
        if (there)
            add_products(
                how_many, dots, mine + (block.twofold ? buffer * (TILE / 2) : 0), shared.shares[buffer], count
            );
        buffer ^= 1;
        if (!early && next_set < block.unit.y) {
            __syncthreads();
            load_steps(block, shared, surveyed, normal, next_set, next, buffer);
        }
    }
}

// Keys of the windows of this thread, and the largest key less its doubt of each query and series of the block: each
// warp finds those of its lanes of a series, whose first lane raises that in shared memory.
template <int Q>
__device__ __forceinline__ void make_keys(
    const SiftShared& shared, const double (&dots)[R][Q], int half, int nth, bool there, int (*tops)[MOST_SERIES],
    int (&keys)[R][Q]
) {
    const int me = threadIdx.x, lane = me & 31;
    int best[Q];
#pragma unroll
    for (int k = 0; k < Q; ++k) best[k] = NOTHING;
#pragma unroll
    for (int r = 0; r < R; ++r) {
        const double weight = shared.weights[me * R + r];
        const int doubt = shared.doubts[me * R + r], sign = __double2hiint(weight);
        const int base = sign < 0 ? NOTHING : sign > 0 ? -half : 0;
#pragma unroll
        for (int k = 0; k < Q; ++k) {
            keys[r][k] = __double2loint(fma(dots[r][k], weight, ROUNDER)) + base;
            best[k] = max(best[k], keys[r][k] - doubt);
        }
    }
#pragma unroll
    for (int other = 1; other < 32; other *= 2) {
        const bool same = __shfl_down_sync(ALL, nth, other) == nth && lane + other < 32;
#pragma unroll
        for (int k = 0; k < Q; ++k) {
            const int theirs = __shfl_down_sync(ALL, best[k], other);
            if (same) best[k] = max(best[k], theirs);
        }
    }
    const int before = __shfl_up_sync(ALL, nth, 1);
    if (there && (lane == 0 || before != nth)) {
#pragma unroll
        for (int k = 0; k < Q; ++k) atomicMax(&tops[k][nth], best[k]);
    }
}

// One bit for each window and query of this thread: whether its key with its doubt reaches the largest certain one.
template <int Q>
__device__ __forceinline__ unsigned windows_that_reach(
    const SiftShared& shared, const int (&keys)[R][Q], int nth, const int (*tops)[MOST_SERIES]
) {
    unsigned listed = 0;
#pragma unroll
    for (int r = 0; r < R; ++r) {
        const int doubt = shared.doubts[threadIdx.x * R + r];
#pragma unroll
        for (int k = 0; k < Q; ++k) {
            if (keys[r][k] + doubt >= max(tops[k][nth], NOTHING + 1)) listed |= 1u << (k * R + r);
        }
    }
    return listed;
}

// Set the answers of `count` queries in a column to "nothing", and leave those to `match` whose queries cannot be judged
// here: the thread with the first piece of the column.
__device__ __forceinline__ void begin_answers(
    const Queries& asked, const float* __restrict__ leans, int first, int count, int column, int n_columns,
    const Lists& lists, const Answers& answers
) {
#pragma unroll 1
    for (int q = first; q < first + count; ++q) {
        const long long place = (long long)__ldg(&asked.queries[q].row) * n_columns + column;
        answers.distances[place] = Arithmetic<double>::infinity();
        if (answers.starts) answers.starts[place] = -1;
        if (__ldg(asked.kinds + q) != 2 && !(__ldg(leans + q) < 1)) leave(q, column, n_columns, lists);
    }
}

// Put the windows of this thread that are `listed` on the list, unless one that comes before is as good for certain: whole
// warps. Places on the list are taken by a warp at a time: all blocks count them at one address.
__device__ __forceinline__ void list_windows(
    unsigned listed, const SiftShared& shared, const Queries& asked, const float* __restrict__ leans, int first, int count,
    int column, int piece, int n_columns, const Lists& lists
) {
    for (unsigned rest = listed; rest; rest &= rest - 1) {
        const int bit = __ffs(rest) - 1, q = first + bit / R, i = threadIdx.x * R + bit % R;
        const int kind = bit / R < count && __ldg(leans + q) < 1 ? __ldg(asked.kinds + q) : 2;
        // all normal windows are at one distance from a constant query: the first will do
        const bool later = kind == 1 && shared.weights[i] > 0 && i > 0 && piece + bit % R > 0 && shared.weights[i - 1] > 0;
        if (kind == 2 || later) listed &= ~(1u << bit);
    }
    const int lane = threadIdx.x & 31, mine = __popc(listed);
    const int end = scan_sum(mine, lane), all = __shfl_sync(ALL, end, 31);
    if (all == 0) return;
    int place = 0;
    // not counted on when it is full: there may be more than an int holds
    if (lane == 0) place = *(volatile int*)lists.counts < lists.capacity ? atomicAdd(lists.counts, all) : lists.capacity;
    place = __shfl_sync(ALL, place, 0) + end - mine;
    for (; listed; listed &= listed - 1, ++place) {
        const int bit = __ffs(listed) - 1;
        if (place < lists.capacity)
            lists.entries[place] = {first + bit / R, column, piece * R + bit % R, 0};
        else
            leave(first + bit / R, column, n_columns, lists);
    }
}

// List the windows that could be the best match of Q queries of the unit, those from `set` on: all threads.
template <int Q>
__device__ __forceinline__ void sift_queries(
    Number<Q> how_many, const SiftBlock& block, const SiftShared& shared, const Surveyed& surveyed, const Queries& asked,
    const float* __restrict__ leans, const Lists& lists, const Answers& answers, int set, int half, int& buffer
) {
    double dots[R][Q] = {};
    multiply(how_many, block, shared, surveyed, asked.normal, set, buffer, dots);
    // where this thread is, computed here: registers are for the sums
    int item = block.first_piece + threadIdx.x;
    asm volatile("" : "+r"(item));
    const int nth = item / block.pieces, piece = item % block.pieces, column = block.first_column + nth;
    const bool there = threadIdx.x < block.n_items;
    int (*const tops)[MOST_SERIES] = shared.tops[set / 2 & 1];
    int keys[R][Q];
    make_keys(shared, dots, half, nth, there, tops, keys);
    __syncthreads();
    const unsigned listed = there ? windows_that_reach(shared, keys, nth, tops) : 0;
    const int first = block.unit.x + set, count = min(Q, block.unit.y - set);
    if (there && piece == 0) begin_answers(asked, leans, first, count, column, surveyed.n_columns, lists, answers);
    list_windows(listed, shared, asked, leans, first, count, column, piece, surveyed.n_columns, lists);
}
