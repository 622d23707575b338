// Strips of `segments`: how the columns of a pair of series are shared among lanes, how covariances go down the rows of a chunk,
// and where the least score of each row is kept.
#pragma once
#include "include/copies.cuh"
#include "include/walk.cuh"

constexpr int CHUNK = WALK_CHUNK, NOTHING = 0x7fffffff;

// Where the least scores of a row of a chunk are, one of each lane. Rows are apart by 36, so that lanes that read four scores
// of a row each read other banks.
constexpr int LANES_APART = 36;
__device__ __forceinline__ int* row_of_lanes(int* of_lanes, int row) { return of_lanes + LANES_APART * row; }

// The least of a row: one lane reads what the first `used` lanes of LANES have found there.
template <int LANES>
__device__ __forceinline__ int least_of_row(const int* of_row, int used, int least) {
    if (used < LANES) {
        for (int other = 0; other < used; ++other) least = min(least, of_row[other]);
        return least;
    }
#pragma unroll 4
    for (int other = 0; other < LANES; other += 4) {
        const int4 four = *(const int4*)(of_row + other);
        least = min(min(least, min(four.x, four.y)), min(four.z, four.w));
    }
    return least;
}

// Shared memory of a warp, whose lanes share PAIRS pairs of series and their rows: those of a chunk and of the next one, which
// is copied meanwhile; the means of their windows; what enters the strip of each pair there, and what leaves it; the least score
// that each lane has found there. Pairs are apart by two, so that they read other banks.
template <int PAIRS>
struct WarpMemory {
    Row<double> stage[2][CHUNK];
    double means[2][CHUNK], entering[PAIRS][2][CHUNK + (PAIRS > 1 ? 2 : 0)], leaving[CHUNK];
    alignas(16) int of_lanes[CHUNK * LANES_APART];
};

// The part of it that one lane uses, for a chunk; `leaving` only where what leaves this lane enters another strip.
struct ChunkOfRows {
    const Row<double>* stage;
    const double* entering;
    double* leaving;
    int* of_lane;
};

// What a walk reads of a pair: the rows of a, means, sums of products of the first windows, what has left the strip before.
struct Sides {
    const Row<double>* __restrict__ rows;
    const double *__restrict__ mean_a, *__restrict__ mean_b, *__restrict__ first_row, *__restrict__ first_column;
    double* carried;
    int na, nb, length;

    // The covariance of two windows, by the sum of their products.
    __device__ __forceinline__ double covariance(double products, double of_a, double of_b) const {
        return products - length * (of_a * of_b);
    }
};

// How columns are shared among lanes: K each; K each of which the last one may be the first one of the next lane, too; or up
// to K, of which none may be there.
enum Shape { FULL, OVERLAPPING, ANY };

// The columns of one lane: `inner` from `from` on, of which `own` are no other lane's; how many lanes have any.
struct Columns {
    int from, inner, own, used;
};

// Share `count` columns from `start` on among LANES lanes of K each.
template <int K, int LANES>
__device__ __forceinline__ Columns share_columns(int start, int count, int lane, Shape& shape) {
    const int used = (count + K - 1) / K, overlaps = used * K - count;  // lanes that have columns; those that share their last one
    shape = __all_sync(ALL, count == LANES * K) ? FULL : __all_sync(ALL, overlaps <= max(0, used - 1)) ? OVERLAPPING : ANY;
    if (shape == ANY) {
        const int inner = min(max(count - lane * K, 0), K);
        return {start + lane * K, inner, inner, used};
    }
    const int inner = lane < used ? K : 0;
    return {start + lane * K - min(lane, overlaps), inner, lane < overlaps ? K - 1 : inner, used};
}

// What a lane needs to walk down the rows of a chunk.
template <int K>
struct Walker {
    Strip<double, K> strip;
    int least[K];   // of each column
    Columns columns;
    bool leftmost;  // whether nothing of this strip is on the left

    // Begin with the columns of a lane. Covariances are as if they stood one row above and one column to the
    // left: the step to the first row is 0.
    __device__ __forceinline__ void begin(
        const Columns& mine, bool on_the_left, const double* __restrict__ q, const double* __restrict__ s, const double* __restrict__ w,
        const Sides& sides
    ) {
        columns = mine, leftmost = on_the_left;
#pragma unroll
        for (int k = 0; k < K; ++k) {
            const bool there = k < mine.inner;
            const int j = mine.from + k;
            strip.q[k] = there ? __ldg(q + j) : 0.0;
            strip.s[k] = there ? __ldg(s + j) : 0.0;
            strip.weight[k] = there ? __ldg(w + j) : 0.0;
            strip.cov[k] = 0;
            if (there && j + 1 < sides.nb)
                strip.cov[k] = sides.covariance(__ldg(sides.first_row + j + 1), __ldg(sides.mean_a), __ldg(sides.mean_b + j + 1));
            least[k] = NOTHING;
        }
    }

    // The score of a covariance; NOTHING where the lane has no such column.
    template <Shape SHAPE>
    __device__ __forceinline__ int score(int k, double cov, double row_weight) const {
        const int bits = bits_of(fma(cov * -row_weight, strip.weight[k], 1.0));
        return SHAPE != ANY || k < columns.inner ? bits : NOTHING;
    }

    // The covariance of a row on the left of this lane, by the last two of each; `entering` is the one on the left of the strip.
    template <Shape SHAPE>
    __device__ __forceinline__ double from_left(double before_last, double last, double entering) const {
        const double left = __shfl_up_sync(ALL, SHAPE == OVERLAPPING && columns.own < K ? before_last : last, 1);
        return leftmost ? entering : left;
    }

    // Two rows down: both scores of a column meet, and the least of three numbers takes one instruction.
    template <Shape SHAPE>
    __device__ __forceinline__ void two_rows(const ChunkOfRows& chunk, int t) {
        const Row<double> one = chunk.stage[t], two = chunk.stage[t + 1];
        const double2 entering = *(const double2*)(chunk.entering + t);
        const double left = from_left<SHAPE>(strip.cov[max(0, K - 2)], strip.cov[K - 1], entering.x);
        double upper[K], x[K];
        int a[K], b[K];
#pragma unroll
        for (int k = K - 1; k >= 0; --k) x[k] = fma(one.r, strip.s[k], k > 0 ? strip.cov[max(0, k - 1)] : left);
#pragma unroll
        for (int k = K - 1; k >= 0; --k) upper[k] = fma(one.p, strip.q[k], x[k]);
        const double last = upper[K - 1], lower_left = from_left<SHAPE>(upper[max(0, K - 2)], last, entering.y);
#pragma unroll
        for (int k = K - 1; k >= 0; --k) x[k] = fma(two.r, strip.s[k], k > 0 ? upper[max(0, k - 1)] : lower_left);
#pragma unroll
        for (int k = K - 1; k >= 0; --k) a[k] = score<SHAPE>(k, upper[k], one.weight);
#pragma unroll
        for (int k = K - 1; k >= 0; --k) strip.cov[k] = fma(two.p, strip.q[k], x[k]);
#pragma unroll
        for (int k = K - 1; k >= 0; --k) b[k] = score<SHAPE>(k, strip.cov[k], two.weight);
        int low = NOTHING, lower_low = NOTHING;
#pragma unroll
        for (int k = K - 1; k >= 0; --k) {
            least[k] = min(least[k], min(a[k], b[k]));
            low = min(low, a[k]), lower_low = min(lower_low, b[k]);
        }
        *row_of_lanes(chunk.of_lane, t) = low, *row_of_lanes(chunk.of_lane, t + 1) = lower_low;
        if (chunk.leaving) *(double2*)(chunk.leaving + t) = make_double2(last, strip.cov[K - 1]);
    }

    // One row down, the last one of an odd number.
    template <Shape SHAPE>
    __device__ __forceinline__ void one_row(const ChunkOfRows& chunk, int t) {
        const Row<double> row = chunk.stage[t];
        strip.step(row.p, row.r, from_left<SHAPE>(strip.cov[max(0, K - 2)], strip.cov[K - 1], chunk.entering[t]));
        int low = NOTHING;
#pragma unroll
        for (int k = 0; k < K; ++k) {
            const int here = score<SHAPE>(k, strip.cov[k], row.weight);
            low = min(low, here), least[k] = min(least[k], here);
        }
        *row_of_lanes(chunk.of_lane, t) = low;
        if (chunk.leaving) chunk.leaving[t] = strip.cov[K - 1];
    }

    // Walk down the rows of a chunk, two at a time: their steps, their scores.
    template <Shape SHAPE>
    __device__ __forceinline__ void chunk(const ChunkOfRows& rows, int stop) {
        constexpr int UNROLLED = K < 6 || SHAPE == ANY ? 1 : 4;
        int t = 0;
#pragma unroll UNROLLED
        for (; t + 1 < stop; t += 2) two_rows<SHAPE>(rows, t);
        if (t < stop) one_row<SHAPE>(rows, t);
    }
};

// Begin to copy a chunk of rows from `base` on, and what enters the strip that starts at `start` there.
template <int LANES>
__device__ __forceinline__ void fetch_chunk(WarpMemory<32 / LANES>& memory, const Sides& sides, int start, int base, int half) {
    const int in_warp = threadIdx.x & 31, lane = in_warp % LANES, row = base + in_warp;
    Row<double>* const to = memory.stage[half] + in_warp;
    copy_16(to, sides.rows + row);
    copy_16(&to->weight, &sides.rows[row].weight);
    copy_8(memory.means[half] + in_warp, sides.mean_a + row, row < sides.na);
#pragma unroll
    for (int t = lane; t < CHUNK; t += LANES) {
        const int i = base + t;
        // above row 1 nothing has left the strip before
        const bool there = sides.nb > 0 && i < sides.na && (start == 0 || i > 0);
        copy_8(memory.entering[in_warp / LANES][half] + t, (start ? sides.carried : sides.first_column) + i, there);
    }
}

// Make covariances of what enters a strip in a chunk, where that are products; all copies of the lane are there.
template <int LANES>
__device__ __forceinline__ void make_covariances(WarpMemory<32 / LANES>& memory, const Sides& sides, int start, int base, int half) {
    const int in_warp = threadIdx.x & 31;
    double* const entering = memory.entering[in_warp / LANES][half];
    const double* const means = memory.means[half];
#pragma unroll
    for (int t = in_warp % LANES; t < CHUNK; t += LANES)
        if (start == 0) entering[t] = sides.covariance(entering[t], means[t], __ldg(sides.mean_b));
        else if (base + t == 0) entering[t] = sides.covariance(__ldg(sides.first_row + start), means[t], __ldg(sides.mean_b + start));
}
