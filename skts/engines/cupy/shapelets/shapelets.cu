// Shapelets: least scores of all windows of some series among the windows of each series.
//
// `prepare` describes the windows of one length, `doubts` bounds what their scores are wrong by. `edges`
// holds sums of products of the first window of a series with all windows of another, and makes them grow
// from one length to the next. `segments` walks the covariances of two series down and keeps the least
// score of every row and of every column: a score is 1 less the correlation, half of the squared distance
// over the length. It is hardly negative, so that its leading 32 bits order as integers do; they are off by
// less than 2^-20 of it. Windows of up to SHORT points are compared point by point, by `nearest`: the little that
// they differ by in smooth series would drown in what a walk is wrong by.
#include "include/certified.cuh"
#include "include/walk.cuh"
#include "shapelets/strips.cuh"

constexpr int SHORT = SHORT_WINDOW;

// The block of candidates: `n_block` series from `first` on, of `n_series`; lengths, and windows of the shortest one.
struct Block {
    int stride, first, n_block, n_series;
    const int* lengths;
};

// A channel of series: how many points these have; magnitudes of centred points, at most.
struct Channel {
    const int* sizes;
    const double* magnitudes;
    int n, width;
};

// Windows of some lengths: see `prepare`.
struct Windows {
    Row<double>* rows;
    double *q, *s, *w, *mean;
};

// Raise a number that is mostly large enough.
__device__ __forceinline__ void raise_at_need(double* place, double value) {
    if (value > *(volatile double*)place) raise(place, value);
}

// Numbers of a window that grow with its length: the sum of its points less `shift`, the sum of squares of
// these less their mean, its lowest and its highest point.
struct Grown {
    double shift, sum, squares, low, high;

    __device__ void begin(const double* raw, const double* line, int length) {
        double total = 0;
        for (int t = 0; t < length; ++t) total += line[t];
        shift = total / length, sum = squares = 0, low = high = raw[0];
        for (int t = 0; t < length; ++t) {
            const double e = line[t] - shift;
            sum += e;
            squares = fma(e, e, squares);
            low = fmin(low, raw[t]), high = fmax(high, raw[t]);
        }
    }
    __device__ void add(double raw, double point, int before) {
        const double e = point - shift, from = e - sum / before;
        sum += e;
        squares = fma(from, e - sum / (before + 1), squares);
        low = fmin(low, raw), high = fmax(high, raw);
    }
};

// The mean, from the first point on, and the standard deviation, as certified distances have them.
__device__ __noinline__ double certified(const double* __restrict__ raw, int length, double& center) {
    auto visit = [&](auto use) {
        for (int t = 0; t < length; ++t) use(__dsub_rn(raw[t], raw[0]), t);
    };
    center = certified_mean(visit, length, [](double, int) {});
    return certified_deviation(visit, length, center);
}

// Describe the windows of some lengths, ascending: one thread has window i of series b of all these lengths,
// block (x, b). Windows that are not there are 0. `grown` keeps what was known at the length `before`; where that
// passes a power of two it is computed anew, so that it stays as exact as if it were each time.
//
// Of each length z: rows[z, b, i], padded by CHUNK: the factors of the step that leads to the window and its weight,
// 1 / norm or 0 where it is constant; q, s, w: the same along the columns; kinds[z, b]: 1 if any window is constant
// plus 2 if any is not; largest[z, b]: norm, step and weight. The last two start as 0. Of up to SHORT points only the
// mean, from the first of them on, the weight, which makes the squared distance of two windows a score, and the kinds.
extern "C" __global__ void __launch_bounds__(128) prepare(
    const double* __restrict__ points, const double* __restrict__ centered, const __grid_constant__ Channel channel,
    int stride, const int* __restrict__ lengths, int n_lengths, int before, Grown* __restrict__ grown, int edge,
    const __grid_constant__ Windows windows, unsigned char* __restrict__ constant, int* __restrict__ kinds,
    double* __restrict__ largest
) {
    const int n = channel.n, width = channel.width;
    const int* __restrict__ const sizes = channel.sizes;
    Row<double>* __restrict__ const rows = windows.rows;
    double *__restrict__ const q = windows.q, *__restrict__ const s = windows.s, *__restrict__ const w = windows.w;
    double* __restrict__ const mean = windows.mean;
    const int i = blockIdx.x * blockDim.x + threadIdx.x, b = blockIdx.y;
    if (i >= stride + CHUNK) return;
    const double* __restrict__ const raw = points + (long long)b * width + i;
    const double* __restrict__ const line = centered + (long long)b * width + i;
    // what certified means are wrong by, at most, by the number of points
    const double coarse = 0x1p-52 * __ldg(channel.magnitudes + b);
    Grown here;
    if (before > 0 && i <= sizes[b] - before) here = grown[(long long)b * edge + i];
    for (int z = 0; z < n_lengths; ++z) {
        const int length = lengths[z];
        const long long line_of = (long long)z * n + b, place = line_of * stride + i;
        Row<double> row = {0, 0, 0, 0};
        if (i <= sizes[b] - length && length <= SHORT) {
            double center, low = raw[0], high = raw[0];
            for (int t = 1; t < length; ++t) low = fmin(low, raw[t]), high = fmax(high, raw[t]);
            const double deviation = certified(raw, length, center);
            const bool flat = is_flat(low, high);
            mean[place] = center;
            w[place] = flat ? 0.0 : 1.0 / deviation / sqrt(2.0 * length);
            constant[place] = flat;
            atomicOr(kinds + line_of, flat ? 1 : 2);
        } else if (i <= sizes[b] - length) {
            if (__clz(before) != __clz(length)) here.begin(raw, line, length);
            else
                for (int t = before; t < length; ++t) here.add(raw[t], line[t], t);
            const double middle = here.shift + here.sum / length, wrong = length * coarse;
            // a rounded mean changes a deviation by its square: where that is seen, all is done as is certified
            double norm = sqrt(here.squares);
            if (!(length * wrong * wrong <= 1e-14 * here.squares && here.squares > 1e-280 && here.squares < 1e280)) {
                double center;
                norm = certified(raw, length, center) * sqrt((double)length);
            }
            const bool flat = is_flat(here.low, here.high);
            if (i > 0) {
                const double last = line[length - 1], first = line[-1];
                row.p = (last - first) / 2;
                row.r = (last - middle) + (first - (middle + (first - last) / length));
            }
            row.weight = flat ? 0.0 : 1.0 / norm;
            q[place] = row.r, s[place] = row.p, w[place] = row.weight;
            mean[place] = middle;
            constant[place] = flat;
            atomicOr(kinds + line_of, flat ? 1 : 2);
            raise_at_need(largest + 3 * line_of, norm);
            raise_at_need(largest + 3 * line_of + 1, fabs(row.p) + fabs(row.r));
            raise_at_need(largest + 3 * line_of + 2, row.weight);
        } else if (i < stride) {
            q[place] = s[place] = w[place] = mean[place] = 0;
            constant[place] = 0;
        }
        rows[line_of * (stride + CHUNK) + i] = row;
        if (length > SHORT) before = length;
    }
    if (before > 0 && i <= sizes[b] - before) grown[(long long)b * edge + i] = here;
}

// Bounds of the error of squared distances of the windows of series first + a to series b, before the
// units of scores: errors[z, a, b] by the weight of the window, plus floors[z, a]. Block (a, z) has one a and length.
// Errors are leading bits of doubles, since weights may be beyond what floats hold.
extern "C" __global__ void __launch_bounds__(128) doubts(
    const double* __restrict__ largest, const double* __restrict__ size,
    int n, int first, int n_windows, const int* __restrict__ lengths, int* __restrict__ errors,
    float* __restrict__ floors
) {
    __shared__ int coarsest;
    // what products of a point are wrong by where they are next to nothing
    constexpr double LEAST = 0x1p-1070;
    const int a = first + blockIdx.x, z = blockIdx.y, length = lengths[z];
    const long long line_of = (long long)z * gridDim.x + blockIdx.x;
    largest += 3LL * z * n;
    const double root = sqrt((double)length);
    const double norm = largest[3 * a], step = largest[3 * a + 1];
    const double coarse = 2 * FLOAT64_UNIT * root * size[a];
    const double slip = 2 * FLOAT64_UNIT * (root * norm + size[a]);
    if (threadIdx.x == 0) coarsest = 0;
    __syncthreads();
    for (int b = threadIdx.x; b < n; b += blockDim.x) {
        const double its_norm = largest[3 * b], its_step = largest[3 * b + 1], heavy = largest[3 * b + 2];
        const double its_coarse = 2 * FLOAT64_UNIT * root * size[b];
        // see "shapelet walk" in docs/developer/numerics.rst
        double error = FLOAT64_UNIT * (n_windows + 4) * (3 * norm * its_norm + 6 * step * its_step);
        error += FLOAT64_UNIT * (length + 8.0) * length * size[a] * size[b];
        // errors of means, which may follow the signs of the steps
        const double its_slip = 2 * FLOAT64_UNIT * (root * its_norm + size[b]);
        error += slip * (2.0 * n_windows * its_step + length * size[b]);
        error += its_slip * (2.0 * n_windows * step + length * size[a]);
        error += coarse * its_norm + norm * its_coarse + LEAST * (n_windows + length);
        error = (2 * error * heavy + 8 * coarse) * 1.000001;
        // rounded up; what is not a number is infinite
        const int bits = error < 1e300 ? bits_of(error) + 1 : bits_of(Arithmetic<double>::infinity());
        errors[line_of * n + b] = length <= SHORT ? 0 : bits;
        const double own = its_coarse * heavy + LEAST * length * heavy * heavy;
        atomicMax(&coarsest, __float_as_int((float)(own * 1.000001)));
    }
    __syncthreads();
    if (threadIdx.x == 0)
        // see "short windows" in docs/developer/numerics.rst
        floors[line_of] = length <= SHORT ? (float)((40 + 4 * length) * FLOAT64_UNIT) : 8 * __int_as_float(coarsest) + (float)(24.0 * length * FLOAT64_UNIT + 1e-13);
}

// out[z, a, b, j]: sums of products of lengths[z] points of window 0 of series first_a + a with window j of series
// first_b + b. At first out[last] has those of `before` points, or nothing if that is 0. One thread has one j of 4
// series a, and all lengths; block (x, b, a / 4).
extern "C" __global__ void __launch_bounds__(128) edges(
    const double* __restrict__ points, int width, const int* __restrict__ sizes, int first_a, int n_a,
    int first_b, int n_b, const int* __restrict__ lengths, int n_lengths, int before, int last,
    double* __restrict__ out, int stride
) {
    const int j = blockIdx.x * blockDim.x + threadIdx.x, b = blockIdx.y, a0 = blockIdx.z * 4;
    const double* __restrict__ const theirs = points + (long long)(first_b + b) * width + j;
    auto place = [&](int z, int u) {
        return out + (((long long)z * n_a + min(a0 + u, n_a - 1)) * n_b + b) * stride + j;
    };
    double sums[4] = {};
    if (before && j <= sizes[first_b + b] - before)
#pragma unroll
        for (int u = 0; u < 4; ++u) sums[u] = *place(last, u);
    for (int z = 0; z < n_lengths; ++z) {
        const int length = lengths[z];
        if (j > sizes[first_b + b] - length) return;
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
            if (a0 + u < n_a) *place(z, u) = sums[u];
        before = length;
    }
}

// Scores that no pair has, of a series with itself and behind the last window of a shorter one: whoever judges
// candidates reads those of all windows of the longest series.
template <int LANES>
__device__ __forceinline__ void write_nothing(int* scores, int start, int stop) {
    for (int i = start + threadIdx.x % LANES; i < stop; i += LANES) scores[i] = NOTHING;
}

// The pair of series and the length of windows that a warp of `nearest`, or some lanes of one of `segments`, compare.
struct Pair {
    int length, own;             // place of a in the block of candidates
    int a, b, na, nb;            // series, and how many windows they have
    bool inside;                 // whether b is in the block, too
    long long from_a, from_b;    // rows of both, of this length, in arrays of windows
    int *of_rows, *of_columns;   // where least scores of the windows of a and of b are written
};

// Say which pair these lanes have; false where there is none or others have it.
template <int LANES, int WARPS>
__device__ __forceinline__ bool find_pair(Pair& pair, const int* sizes, const Block& block, int* heads) {
    const int first = block.first, n_block = block.n_block, n_series = block.n_series, z = blockIdx.z;
    const int place = blockIdx.x * (32 * WARPS / LANES) + threadIdx.x / LANES;
    const int own = pair.own = blockIdx.y, a = pair.a = first + own, b = pair.b = min(place, n_series - 1);
    const int there = b - first;  // place of b in the block
    pair.inside = there >= 0 && there < n_block;
    const int length = pair.length = block.lengths[z];
    pair.na = sizes[a] - length + 1, pair.nb = sizes[b] - length + 1;
    pair.from_a = (long long)z * n_series + a, pair.from_b = (long long)z * n_series + b;
    pair.of_rows = heads + (pair.from_b * n_block + own) * block.stride;
    pair.of_columns = heads + (pair.from_a * n_block + there) * block.stride;
    return place < n_series && (!pair.inside || there >= own);
}

// Write the scores of windows that are not there; false where a series is paired with itself, which has no others.
template <int LANES>
__device__ __forceinline__ bool begin_scores(const Pair& pair, const Block& block) {
    const int n_windows = block.stride - (pair.length - block.lengths[0]);
    write_nothing<LANES>(pair.of_rows, pair.b == pair.a ? 0 : pair.na, n_windows);
    if (pair.b == pair.a) return false;
    if (pair.inside) write_nothing<LANES>(pair.of_columns, pair.nb, n_windows);
    return true;
}

// The points of window i of `count` of a series, 0 behind the last one, such that squares of differences add up to a score.
__device__ __forceinline__ void fetch_window(
    double (&to)[SHORT], const double* __restrict__ line, const double* __restrict__ means,
    const double* __restrict__ weights, int i, int count, int length
) {
    const double middle = i < count ? means[i] : 0.0;
    const double weight = i < count ? weights[i] : 0.0, first = i < count ? line[i] : 0.0;
#pragma unroll
    for (int t = 0; t < SHORT; ++t)
        to[t] = t < length && i < count ? certified_point(__dsub_rn(line[i + t], first), middle, weight) : 0.0;
}

// Least scores of windows of up to SHORT points: one warp, one pair (a, b) and length, strips of 32 COLUMNS columns
// one after the other, rows in chunks of 32, of which each lane prepares one. Block (x, a, z) has 4 warps of one a
// and length. Results are written as in `segments`.
extern "C" __global__ void __launch_bounds__(128) nearest(
    const double* __restrict__ points, int width, const double* __restrict__ means,
    const double* __restrict__ weights, const int* __restrict__ sizes, const __grid_constant__ Block block,
    int* __restrict__ heads
) {
    constexpr int COLUMNS = 3;
    __shared__ double stages[4][CHUNK][SHORT];
    alignas(16) __shared__ int of_lanes[4][CHUNK * LANES_APART];
    const int lane = threadIdx.x & 31, which = threadIdx.x / 32;
    Pair pair;
    if (!find_pair<32, 4>(pair, sizes, block, heads)) return;
    const int stride = block.stride, length = pair.length, na = pair.na, nb = pair.nb;
    const long long from_a = pair.from_a, from_b = pair.from_b;
    if (!begin_scores<32>(pair, block)) return;
    // window i of `count` of a series
    auto fetch = [&](double (&to)[SHORT], int series, int i, long long from, int count) {
        const double* const line = points + (long long)series * width;
        fetch_window(to, line, means + from * stride, weights + from * stride, i, count, length);
    };

    for (int start = 0; start < nb; start += 32 * COLUMNS) {
        double columns[COLUMNS][SHORT];
        int least[COLUMNS], lowest[COLUMNS];
#pragma unroll
        for (int k = 0; k < COLUMNS; ++k) {
            const int j = start + 32 * k + lane;
            fetch(columns[k], pair.b, j, from_b, nb);
            least[k] = NOTHING, lowest[k] = j < nb ? 0 : NOTHING;
        }
        for (int base = 0; base < na; base += CHUNK) {
            const int stop = min(CHUNK, na - base), i = base + lane;
            __syncwarp();
            fetch(stages[which][lane], pair.a, i, from_a, na);
            __syncwarp();
            for (int t = 0; t < stop; ++t) {
                double scores[COLUMNS] = {};
#pragma unroll
                for (int u = 0; u < SHORT; ++u) {
                    const double point = stages[which][t][u];
#pragma unroll
                    for (int k = 0; k < COLUMNS; ++k) {
                        const double d = point - columns[k][u];
                        scores[k] = fma(d, d, scores[k]);
                    }
                }
                int least_here = NOTHING;
#pragma unroll
                for (int k = 0; k < COLUMNS; ++k) {
                    const int score = max(bits_of(scores[k]), lowest[k]);
                    least_here = min(least_here, score);
                    least[k] = min(least[k], score);
                }
                row_of_lanes(of_lanes[which], t)[lane] = least_here;
            }
            __syncwarp();
            if (lane < stop)
                pair.of_rows[i] = least_of_row<32>(row_of_lanes(of_lanes[which], lane), 32, start ? pair.of_rows[i] : NOTHING);
        }
        if (pair.inside)
#pragma unroll
            for (int k = 0; k < COLUMNS; ++k)
                if (lowest[k] == 0) pair.of_columns[start + 32 * k + lane] = least[k];
    }
}

// Least scores of pairs of series: LANES lanes, one pair (a, b) and length, a of the block of candidates, b any series;
// strips of LANES K columns one after the other, rows in chunks of 32. Block (x, a, z) has 4 warps of one a and length,
// and shared memory for the rows of a chunk and what passes the borders of a strip there. With fewer than 32 lanes a pair,
// a strip holds all windows of a series, and the pairs of a warp share its rows.
//
// heads[z, b, a, i]: of window i of a among those of b. With b in the block, too, and behind a, the least of
// columns are those of b among the windows of a, and the pair (b, a) is left out. carry: what leaves a
// strip on the right, of each warp, where there are several. Arrays of windows have rows of `stride`, those
// of edges rows of `edge`.
template <int K, int LANES, int WARPS = 4>
__global__ void __launch_bounds__(32 * WARPS, (K < 6 ? 16 : 12) / WARPS) segments(
    const __grid_constant__ Windows windows, const int* __restrict__ sizes, const __grid_constant__ Block block,
    const double* __restrict__ forward, const double* __restrict__ backward, int edge, double* __restrict__ carry,
    int* __restrict__ heads
) {
    __shared__ WarpMemory<32 / LANES> memories[WARPS];
    WarpMemory<32 / LANES>& memory = memories[threadIdx.x / 32];
    const int lane = threadIdx.x % LANES, nth = (threadIdx.x & 31) / LANES;
    Pair pair;
    bool mine = find_pair<LANES, WARPS>(pair, sizes, block, heads);
    if (LANES == 32 && !mine) return;
    mine = mine && begin_scores<LANES>(pair, block);
    if (LANES == 32 ? !mine : !__any_sync(ALL, mine)) return;
    const int stride = block.stride, na = pair.na, nb = mine ? pair.nb : 0;
    const long long from_a = pair.from_a, from_b = pair.from_b * stride;
    const long long to_b = ((long long)blockIdx.z * block.n_block + pair.own) * block.n_series + pair.b;
    const Sides sides = {
        windows.rows + from_a * (stride + CHUNK), windows.mean + from_a * stride, windows.mean + from_b,
        forward + to_b * edge, backward + (pair.from_b * block.n_block + pair.own) * edge, carry + to_b * stride,
        na, nb, pair.length
    };
    // of the first lane of this pair
    int* const of_pair = memory.of_lanes + nth * LANES;

    for (int start = 0; start < (LANES == 32 ? nb : 1); start += LANES * K) {
        fetch_chunk<LANES>(memory, sides, start, 0, 0);
        const bool more = LANES == 32 && nb - start > LANES * K;
        Shape shape;
        const Columns columns = share_columns<K, LANES>(start, min(nb - start, LANES * K), lane, shape);
        Walker<K> walker;
        walker.begin(columns, lane == 0, windows.q + from_b, windows.s + from_b, windows.w + from_b, sides);
        for (int base = 0, half = 0; base < na; base += CHUNK, half ^= 1) {
            const int stop = min(CHUNK, na - base);
            wait_for_copies();
            __syncwarp();
            make_covariances<LANES>(memory, sides, start, base, half);
            // one chunk ahead, since what leaves takes the place of what enters
            if (base + CHUNK < na) fetch_chunk<LANES>(memory, sides, start, base + CHUNK, half ^ 1);
            __syncwarp();
            double* const leaving = more && lane == LANES - 1 ? memory.leaving : nullptr;
            const ChunkOfRows chunk = {memory.stage[half], memory.entering[nth][half], leaving, of_pair + lane};
            if (shape == FULL) walker.template chunk<FULL>(chunk, stop);
            else if (shape == OVERLAPPING) walker.template chunk<OVERLAPPING>(chunk, stop);
            else walker.template chunk<ANY>(chunk, stop);
            // others write what leaves where this lane copies from
            if (more) wait_for_copies();
            __syncwarp();
            for (int t = lane; t < stop && mine; t += LANES) {
                const int i = base + t, least_here = least_of_row<LANES>(row_of_lanes(of_pair, t), columns.used, NOTHING);
                // the strips of a row belong to one lane of one warp
                pair.of_rows[i] = start ? min(pair.of_rows[i], least_here) : least_here;
                // what a row leaves enters the next strip in the row below
                if (more && i + 1 < na) sides.carried[i + 1] = memory.leaving[t];
            }
        }
        if (pair.inside)
#pragma unroll
            for (int k = 0; k < K; ++k)
                if (k < columns.own) pair.of_columns[columns.from + k] = walker.least[k];
        __syncwarp();
    }
}
