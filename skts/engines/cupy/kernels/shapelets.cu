// Shapelets: least scores of all windows of some series among the windows of each series.
//
// `prepare` describes the windows of one length, `doubts` bounds what their scores are wrong by. `edges`
// holds sums of products of the first window of a series with all windows of another, and makes them grow
// from one length to the next. `segments` walks the covariances of two series down and keeps the least
// score of every row and of every column: a score is 1 less the correlation, half of the squared distance
// over the length. It is hardly negative, so that its leading 32 bits order as integers do; they are off by
// less than 2^-20 of it.
#include "walk.cuh"

constexpr int CHUNK = 32, NOTHING = 0x7fffffff;

template <bool V>
struct Flag {
    static constexpr bool value = V;
};

// Raise a non-negative double; those order as their bits do.
__device__ __forceinline__ void raise(double* place, double value) {
    atomicMax((long long*)place, __double_as_longlong(value));
}

// Describe the windows of `length` points: one thread has window i of series b, block (x, b). Windows
// that are not there are 0.
//
// rows[b, i], padded by CHUNK: the factors of the step that leads to the window and its weight, 1 / norm or
// 0 where it is constant; q, s, w: the same along the columns; kinds[b]: 1 if any window is constant plus 2
// if any is not; largest[b]: norm, step and weight. The last two start as 0.
extern "C" __global__ void __launch_bounds__(128) prepare(
    const double* __restrict__ points, const double* __restrict__ centered,
    const int* __restrict__ sizes, int width, int stride, int length, Row<double>* __restrict__ rows,
    double* __restrict__ q, double* __restrict__ s, double* __restrict__ w, double* __restrict__ mean,
    unsigned char* __restrict__ constant, int* __restrict__ kinds, double* __restrict__ largest
) {
    const int i = blockIdx.x * blockDim.x + threadIdx.x, b = blockIdx.y;
    const int count = sizes[b] - length + 1;
    if (i >= stride + CHUNK) return;
    const long long place = (long long)b * stride + i;
    Row<double> row = {0, 0, 0, 0};
    if (i < count) {
        const double* __restrict__ const raw = points + (long long)b * width + i;
        const double* __restrict__ const line = centered + (long long)b * width + i;
        double total = 0, middle = 0, low = raw[0], high = raw[0];
        for (int t = 0; t < length; ++t) {
            total = __dadd_rn(total, raw[t]);
            middle += line[t];
            low = fmin(low, raw[t]);
            high = fmax(high, raw[t]);
        }
        const double center = __ddiv_rn(total, (double)length);
        middle /= length;
        double squares = 0, norm = 0, before = i > 0 ? line[-1] : 0;
        for (int t = 0; t < length; ++t) {
            // whether it is constant, and its scale, as certified distances have it
            const double d = __dsub_rn(raw[t], center), e = line[t] - middle;
            squares = __dadd_rn(squares, __dmul_rn(d, d));
            norm = fma(e, e, norm);
        }
        const double deviation = __dsqrt_rn(__ddiv_rn(squares, (double)length));
        const bool flat = high - low <= 0x1p-40 * fmax(fabs(low), fabs(high)) || deviation == 0;
        if (i > 0) {
            const double last = line[length - 1], earlier = middle + (before - last) / length;
            row.p = (last - before) / 2;
            row.r = (last - middle) + (before - earlier);
        }
        row.weight = flat ? 0.0 : 1.0 / deviation / sqrt((double)length);
        q[place] = row.r, s[place] = row.p, w[place] = row.weight;
        mean[place] = middle;
        constant[place] = flat;
        atomicOr(kinds + b, flat ? 1 : 2);
        raise(largest + 3 * b, sqrt(norm));
        raise(largest + 3 * b + 1, fabs(row.p) + fabs(row.r));
        raise(largest + 3 * b + 2, row.weight);
    } else if (i < stride) {
        q[place] = s[place] = w[place] = mean[place] = 0;
        constant[place] = 0;
    }
    rows[(long long)b * (stride + CHUNK) + i] = row;
}

// What squared distances of the windows of series first + a to series b are wrong by at most, before the
// units of scores: errors[a, b] by the weight of the window, plus floors[a]. One block has one a.
extern "C" __global__ void __launch_bounds__(128) doubts(
    const double* __restrict__ largest, const double* __restrict__ size,
    const double* __restrict__ middle, int n, int first, int n_windows, int length,
    float* __restrict__ errors, float* __restrict__ floors
) {
    __shared__ int coarsest;
    constexpr double HALF = 0x1p-53;
    const int a = first + blockIdx.x;
    const double root = sqrt((double)length);
    const double norm = largest[3 * a], step = largest[3 * a + 1];
    const double coarse = 2 * HALF * root * (size[a] + middle[a]);
    if (threadIdx.x == 0) coarsest = 0;
    __syncthreads();
    for (int b = threadIdx.x; b < n; b += blockDim.x) {
        const double its_norm = largest[3 * b], its_step = largest[3 * b + 1], heavy = largest[3 * b + 2];
        const double its_coarse = 2 * HALF * root * (size[b] + middle[b]);
        double error = HALF * (n_windows + 4) * (3 * norm * its_norm + 6 * step * its_step);
        error += 2 * HALF * (length + 8.0) * length * size[a] * size[b];
        error += coarse * its_norm + norm * its_coarse;
        errors[(long long)blockIdx.x * n + b] = (float)((2 * error * heavy + 8 * coarse) * 1.000001);
        atomicMax(&coarsest, __float_as_int((float)(its_coarse * heavy * 1.000001)));
    }
    __syncthreads();
    if (threadIdx.x == 0)
        floors[blockIdx.x] = 8 * __int_as_float(coarsest) + (float)(16 * length * HALF + 1e-13);
}

// out[a, b, j] += products of points before..length of window 0 of series first_a + a with window j of
// series first_b + b; before = 0 starts anew. One thread has one j of 4 series a; block (x, b, a / 4).
extern "C" __global__ void __launch_bounds__(128) edges(
    const double* __restrict__ points, int width, const int* __restrict__ sizes, int first_a, int n_a,
    int first_b, int n_b, int before, int length, double* __restrict__ out, int stride
) {
    const int j = blockIdx.x * blockDim.x + threadIdx.x, b = blockIdx.y, a0 = blockIdx.z * 4;
    if (j > sizes[first_b + b] - length) return;
    double sums[4];
#pragma unroll
    for (int u = 0; u < 4; ++u) {
        const int a = min(a0 + u, n_a - 1);
        sums[u] = before ? out[((long long)a * n_b + b) * stride + j] : 0.0;
    }
    const double* __restrict__ theirs = points + (long long)(first_b + b) * width + j;
    for (int t = before; t < length; ++t) {
        const double y = __ldg(theirs + t);
#pragma unroll
        for (int u = 0; u < 4; ++u) {
            const int a = first_a + min(a0 + u, n_a - 1);
            sums[u] = fma(__ldg(points + (long long)a * width + t), y, sums[u]);
        }
    }
#pragma unroll
    for (int u = 0; u < 4; ++u)
        if (a0 + u < n_a) out[((long long)(a0 + u) * n_b + b) * stride + j] = sums[u];
}

// Least scores of pairs of series: one warp, one pair (a, b), a of the block of candidates, b any series; strips
// of 32 K columns one after the other, rows in chunks of 32. A block has 4 warps of one a, and shared
// memory for the rows of a chunk and what passes the borders of a strip there.
//
// heads[b, a, i]: of window i of a among those of b. With b in the block, too, and behind a, the least of
// columns are those of b among the windows of a, and the pair (b, a) is left out. carry: what leaves a
// strip on the right, of each warp, where there are several. Arrays of windows have rows of `stride`, those
// of edges rows of `edge`.
template <int K>
__global__ void __launch_bounds__(128, 3) segments(
    const Row<double>* __restrict__ all_rows, const double* __restrict__ all_q,
    const double* __restrict__ all_s, const double* __restrict__ all_w,
    const double* __restrict__ all_means, const int* __restrict__ sizes, int stride, int first,
    int n_block, int n_series, int length, const double* __restrict__ forward,
    const double* __restrict__ backward, int edge, double* __restrict__ carry, int* __restrict__ heads
) {
    __shared__ Row<double> stages[4][CHUNK];
    __shared__ double enterings[4][CHUNK], leavings[4][CHUNK];
    __shared__ int of_lanes[4][CHUNK * 33];
    const int lane = threadIdx.x & 31, which = threadIdx.x / 32;
    const int own = blockIdx.y, a = first + own, b = blockIdx.x * 4 + which;
    if (b >= n_series || b == a) return;
    const int there = b - first;  // place of b in the block
    const bool inside = there >= 0 && there < n_block;
    if (inside && there < own) return;
    const int na = sizes[a] - length + 1, nb = sizes[b] - length + 1;
    const Row<double>* __restrict__ const rows = all_rows + (long long)a * (stride + CHUNK);
    const double* __restrict__ const mean_a = all_means + (long long)a * stride;
    const double* __restrict__ const mean_b = all_means + (long long)b * stride;
    const double* __restrict__ const q = all_q + (long long)b * stride;
    const double* __restrict__ const s = all_s + (long long)b * stride;
    const double* __restrict__ const w = all_w + (long long)b * stride;
    const double* __restrict__ const first_row = forward + ((long long)own * n_series + b) * edge;
    const double* __restrict__ const first_column = backward + ((long long)b * n_block + own) * edge;
    double* const mine = carry + ((long long)own * n_series + b) * stride;
    int* const of_rows = heads + ((long long)b * n_block + own) * stride;
    int* const of_columns = heads + ((long long)a * n_block + there) * stride;
    int* const least_of_lanes = of_lanes[which];

    for (int start = 0; start < nb; start += 32 * K) {
        const int from = start + lane * K, inner = nb - from;  // columns of this lane that there are
        const bool full = nb - start >= 32 * K, more = nb - start > 32 * K;
        Strip<double, K, true> here;
        int least[K];
#pragma unroll
        for (int k = 0; k < K; ++k) {
            here.q[k] = k < inner ? q[from + k] : 0.0;
            here.s[k] = k < inner ? s[from + k] : 0.0;
            here.weight[k] = k < inner ? w[from + k] : 0.0;
            // as if it stood one row above and one column to the left: the step to the first row is 0
            const int j = from + k + 1;
            here.cov[k] = k + 1 < inner ? first_row[j] - length * (mean_a[0] * mean_b[j]) : 0.0;
            least[k] = NOTHING;
        }
        // what enters on the left: one chunk ahead, since what leaves takes its place
        auto entering = [&](int i) {
            if (i >= na) return 0.0;
            if (start == 0) return first_column[i] - length * (mean_a[i] * mean_b[0]);
            return i ? __ldcg(mine + i) : first_row[start] - length * (mean_a[0] * mean_b[start]);
        };
        double ahead = entering(lane);
        Row<double> row_ahead = rows[lane];
        for (int base = 0; base < na; base += CHUNK) {
            const int stop = min(CHUNK, na - base), i = base + lane;
            __syncwarp();
            stages[which][lane] = row_ahead;
            enterings[which][lane] = ahead;
            ahead = entering(i + CHUNK);
            if (base + CHUNK < na) row_ahead = rows[i + CHUNK];
            __syncwarp();
            // one row: its step, its scores; ALL_THERE tells that every lane has K columns
            auto row = [&](int t, auto all_there) {
                const Row<double> next = stages[which][t];
                here.step(next, enterings[which][t], lane);
                int least_here = NOTHING;
#pragma unroll
                for (int k = 0; k < K; ++k) {
                    int score = bits_of(fma(here.cov[k] * -next.weight, here.weight[k], 1.0));
                    if (!decltype(all_there)::value) score = k < inner ? score : NOTHING;
                    least_here = min(least_here, score);
                    least[k] = min(least[k], score);
                }
                least_of_lanes[t * 33 + lane] = least_here;
                if (lane == 31) leavings[which][t] = here.cov[K - 1];
            };
            if (full && stop == CHUNK) {
#pragma unroll 2
                for (int t = 0; t < CHUNK; ++t) row(t, Flag<true>());
            } else {
                for (int t = 0; t < stop; ++t) row(t, Flag<false>());
            }
            __syncwarp();
            if (lane < stop) {
                int least_here = NOTHING;
#pragma unroll 8
                for (int other = 0; other < 32; ++other)
                    least_here = min(least_here, least_of_lanes[lane * 33 + other]);
                // the strips of a row belong to one lane of one warp
                of_rows[i] = start ? min(of_rows[i], least_here) : least_here;
                // what a row leaves enters the next strip in the row below
                if (more && i + 1 < na) __stcg(mine + i + 1, leavings[which][lane]);
            }
        }
        if (inside)
#pragma unroll
            for (int k = 0; k < K; ++k)
                if (k < inner) of_columns[from + k] = least[k];
        __syncwarp();
    }
}
