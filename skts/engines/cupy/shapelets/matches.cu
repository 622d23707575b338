// Certified best matches of queries among the windows of series: the bits of the CPU engine.
//
// `survey` describes the series and `normalize` the queries. `sift` estimates the distances of all windows
// from dot products, with a bound of what certified values are away from that, and lists the windows that could
// be the best: nearly always one for each query and series. `certify` measures these in the one order of
// operations, without fused multiply-add, and keeps the least; `first` the first of equals. What `sift` cannot
// judge, and windows that are not normalised, are measured one by one by `match`.

#include "shapelets/matches.cuh"
#include "shapelets/sift.cuh"

// Describe a channel of a column, which is series[column]: block (column, channel); a thread has a piece of
// neighbouring points.
//
// Written for row = column * n_channels + channel: `centered`, points less their mean, in units of the line,
// 0 where they are not finite or not there; `sums` and `squares` of the points before each, width + 1 a row, with
// what roundings left over; `reaches`, how many points from each on are finite, and equal.
extern "C" __global__ void __launch_bounds__(THREADS) survey(
    const double* __restrict__ values, int width, int n_channels, const int* __restrict__ sizes,
    const int* __restrict__ series, double* __restrict__ centered, double2* __restrict__ sums,
    double2* __restrict__ squares, int2* __restrict__ reaches, ChannelScale* __restrict__ lines
) {
    __shared__ double room[THREADS / 32];
    __shared__ double2 sums_of[THREADS], squares_of[THREADS];
    __shared__ int gap_of[THREADS], change_of[THREADS];
    const int b = series[blockIdx.x], size = sizes[b], me = threadIdx.x;
    const long long row = (long long)blockIdx.x * n_channels + blockIdx.y;
    const double* __restrict__ const line = values + ((long long)b * n_channels + blockIdx.y) * width;
    const int piece = (size + THREADS - 1) / THREADS;
    const int begin = min(size, me * piece), end = min(size, begin + piece);

    // the unit: in two steps, so that nothing overflows
    double largest = 0, total = 0, count = 0;
    for (int t = begin; t < end; ++t)
        if (isfinite(line[t])) largest = fmax(largest, fabs(line[t]));
    largest = fold_block(largest, room, THREADS / 32, Larger());
    const int power = largest > 0 ? ilogb(largest) : 0;
    for (int t = begin; t < end; ++t)
        if (isfinite(line[t])) total += scalbn(line[t], -power), count += 1;
    total = fold_block(total, room, THREADS / 32, Plus());
    count = fold_block(count, room, THREADS / 32, Plus());
    const double mean = count > 0 ? total / count : 0;
    double farthest = 0;
    for (int t = begin; t < end; ++t)
        if (isfinite(line[t])) farthest = fmax(farthest, fabs(scalbn(line[t], -power) - mean));
    farthest = fold_block(farthest, room, THREADS / 32, Larger());
    const int more = farthest > 0 ? ilogb(farthest) : 0;
    auto point = [&](int t) {
        return isfinite(line[t]) ? scalbn(scalbn(line[t], -power) - mean, -more) : 0.0;
    };
    auto changes = [&](int t) { return t + 1 >= size || !isfinite(line[t]) || line[t + 1] != line[t]; };

    // what each piece adds up to, and where in it something ends
    Sum sum = {0, 0}, square = {0, 0};
    int gap = size, change = size;
    for (int t = end - 1; t >= begin; --t) {
        const double x = point(t);
        sum.add(x);
        square.add(__dmul_rn(x, x));
        if (!isfinite(line[t])) gap = t;
        if (changes(t)) change = t;
    }
    sums_of[me] = sum.both(), squares_of[me] = square.both();
    gap_of[me] = gap, change_of[me] = change;
    __syncthreads();
    sum = square = {0, 0};
    for (int other = 0; other < me; ++other) sum.add(sums_of[other]), square.add(squares_of[other]);
    gap = change = size;
    for (int other = me + 1; other < THREADS && gap == size; ++other) gap = gap_of[other];
    for (int other = me + 1; other < THREADS && change == size; ++other) change = change_of[other];

    sums += row * (width + 1), squares += row * (width + 1);
    centered += row * width, reaches += row * width;
    for (int t = begin; t < end; ++t) {
        const double x = point(t);
        centered[t] = x;
        sums[t] = sum.both(), squares[t] = square.both();
        sum.add(x);
        square.add(__dmul_rn(x, x));
    }
    if (begin < size && end == size) sums[size] = sum.both(), squares[size] = square.both();
    for (int t = end - 1; t >= begin; --t) {
        if (!isfinite(line[t])) gap = t;
        if (changes(t)) change = t;
        reaches[t] = make_int2(gap - t, change - t + 1);
    }
    for (int t = size + me; t < width; t += THREADS) centered[t] = 0, reaches[t] = make_int2(0, 0);
    if (me == 0) {
        const bool fine = power < 900;
        const int unit = max(-2000, min(2000, power + more));
        const double lightest = fine ? scalbn(1.0, unit - 500) : Arithmetic<double>::infinity();
        lines[row] = {scalbn(4.0, -more), lightest, fine ? scalbn(1.0, unit + 500) : 0.0, 0.0};
    }
}

// Normalise queries: one warp, one query. Lanes fetch the points, which count from the first of them; all add them, in
// the order of time.
//
// kinds[k] is 0, 1 where query k is constant, 2 where it is not finite; leans[k] bounds the mean of its normalised
// points, and is infinite where those are not what they should be.
extern "C" __global__ void __launch_bounds__(THREADS) normalize(
    const double* __restrict__ values, const Query* __restrict__ queries, int n_queries, int normalized,
    double* __restrict__ out, unsigned char* __restrict__ kinds, float* __restrict__ leans
) {
    const int k = blockIdx.x * (THREADS / 32) + threadIdx.x / 32, lane = threadIdx.x & 31;
    if (k >= n_queries) return;
    const int length = queries[k].length;
    const double* __restrict__ const query = values + queries[k].begin;
    double* __restrict__ const mine = out + queries[k].place;
    // add what lanes hold to a sum
    auto add = [&](double& sum, double held, int count) {
        if (count == 32) {
#pragma unroll
            for (int other = 0; other < 32; ++other) sum = __dadd_rn(sum, __shfl_sync(ALL, held, other));
        } else {
            for (int other = 0; other < count; ++other) sum = __dadd_rn(sum, __shfl_sync(ALL, held, other));
        }
    };
    const double anchor = normalized ? query[0] : 0.0;
    double total = 0, low = query[0], high = low, ahead = query[min(lane, length - 1)];
    bool finite = true;
    for (int base = 0; base < length; base += 32) {
        const double point = ahead;
        ahead = query[min(base + 32 + lane, length - 1)];
        finite = finite && isfinite(point);
        low = fmin(low, point);
        high = fmax(high, point);
        add(total, __dsub_rn(point, anchor), min(32, length - base));
    }
    low = warp_least(low), high = warp_largest(high);
    finite = !__any_sync(ALL, !finite);
    double mean = 0, inverse = 1;
    bool constant = false;
    if (normalized) {
        mean = __ddiv_rn(total, (double)length);
        double sum = 0;
        ahead = query[min(lane, length - 1)];
        for (int base = 0; base < length; base += 32) {
            const double d = __dsub_rn(__dsub_rn(ahead, anchor), mean);
            ahead = query[min(base + 32 + lane, length - 1)];
            add(sum, __dmul_rn(d, d), min(32, length - base));
        }
        const double deviation = __dsqrt_rn(__ddiv_rn(sum, (double)length));
        constant = is_flat(low, high);
        inverse = constant ? 0.0 : __ddiv_rn(1.0, deviation);
    }
    double lean = 0, norm = 0;
    for (int t = lane; t < length; t += 32) {
        const double point = constant ? 0.0 : certified_point(__dsub_rn(query[t], anchor), mean, inverse);
        mine[t] = point;
        lean += point, norm += point * point;
    }
    lean = warp_sum(lean), norm = warp_sum(norm);
    if (lane) return;
    lean = fabs(lean) / length + length * FLOAT64_UNIT;
    const bool sound = fabs(norm / length - 1) < 1e-6 && lean < 1e-3;
    kinds[k] = finite ? constant : 2;
    leans[k] = constant ? 0.0f : sound ? (float)(1.01 * lean) : Arithmetic<float>::infinity();
}

// List the windows that could be the best match of the queries of a unit (first query, how many), which have one
// length and channel. One thread has R neighbouring windows, a piece of a series, and takes one or two queries
// at a time; block (x, unit) has the pieces from x * pieces_of_block on, of neighbouring series.
//
// With a the normalised query and b a window, the squared distance is twice the length less the dot product twice;
// and the latter is that of a with the centred points, by the weight of the window. Keys are dot products less half of
// the length, so that a constant window has 0, as integers in a unit of 2^-30 to 2^-29 of the length. Of all
// windows of a series in the block those are listed whose key with its doubt reaches the largest of keys less
// their doubts. The doubt is a sum, with roundings u, of the errors of: dot product (length + 2) u steep, where `steep` is the
// norm of the centred points over that of the window's deviations; weight; certified mean, which is `shift` deviations
// off and counts by its square and by the mean of the query; norms of a and b, and the certified sum of squares and
// root, which is monotone but makes equals of neighbours. Constant queries are 0: constant windows have
// the largest key, or all have one.
//
// Written: entries, up to `capacity`; what is `left` to `match`, once each by `marks`; how many of both to `counts`;
// answers are set to "nothing".
extern "C" __global__ void __launch_bounds__(THREADS, 5) sift(
    const __grid_constant__ Surveyed surveyed, const int2* __restrict__ units, const __grid_constant__ Queries asked,
    const float* __restrict__ leans, const __grid_constant__ Lists lists, const __grid_constant__ Answers answers
) {
    __shared__ double tile[TILE], weights[THREADS * R];
    alignas(16) __shared__ double shares[2][2 * STEPS];
    __shared__ int doubts[THREADS * R], tops[2][2][MOST_SERIES];
    const SiftShared shared = {tile, shares, weights, doubts, tops};
    SiftBlock block;
    if (!begin_block(block, surveyed, units, asked.queries)) return;
    int buffer = 0;
    load_steps(block, shared, surveyed, asked.normal, 0, 0, 0);
    clear_tops(tops[0]);
    // units of a key: 2^29 to 2^30 are the length
    const int length = block.length, power = 29 - ilogb((double)length), half = length << (power - 1);
    weigh_windows(block, shared, surveyed, leans, power);
    for (int set = 0; set < block.unit.y; set += 2) {
        if (block.unit.y - set > 1)
            sift_queries(Number<2>(), block, shared, surveyed, asked, leans, lists, answers, set, half, buffer);
        else
            sift_queries(Number<1>(), block, shared, surveyed, asked, leans, lists, answers, set, half, buffer);
    }
}

// What a window is counted from, its mean from there on and 1 / deviation, whether it is constant, and whether it is
// finite.
struct Description {
    double anchor, mean, inverse;
    bool constant, finite;

    __device__ __forceinline__ double point(double raw) const {
        return certified_point(__dsub_rn(raw, anchor), mean, inverse);
    }
};

// Describe a window that begins with the point `first`, from which those of normalised windows count; `visit` calls what
// it is given with all points in the order of time, and their places.
template <typename Visit>
__device__ __forceinline__ Description describe(Visit visit, double first, int length, bool normalized) {
    Description found = {0, 0, 1, false, true};
    if (!normalized) {
        visit([&](double point, int) { found.finite = found.finite && isfinite(point); });
        return found;
    }
    double low = Arithmetic<double>::infinity(), high = -Arithmetic<double>::infinity();
    found.anchor = first;
    auto look = [&](auto use) {
        visit([&](double point, int t) {
            found.finite = found.finite && isfinite(point);
            low = fmin(low, point);
            high = fmax(high, point);
            use(__dsub_rn(point, first), t);
        });
    };
    found.mean = certified_mean(look, length, [](double, int) {});
    auto counted = [&](auto use) {
        visit([&](double point, int t) { use(__dsub_rn(point, first), t); });
    };
    const double deviation = certified_deviation(counted, length, found.mean);
    found.constant = is_flat(low, high);
    found.inverse = found.constant ? 0.0 : __ddiv_rn(1.0, deviation);
    return found;
}

// Distance of a finite window to a query of a kind, from the sum of their squared differences.
__device__ __forceinline__ double distance_of(double squares, bool constant, int kind, int length) {
    if (constant != (kind == 1)) return __dsqrt_rn((double)length);
    return constant ? 0.0 : __dsqrt_rn(squares);
}

// The norm of the difference of a query and a window, whatever its size. Its unit is a power of two: the bits are those
// of the plain sum, where that holds all squares.
__device__ __noinline__ double scaled_distance(
    const double* __restrict__ query, const double* __restrict__ window, int length
) {
    double largest = 0, total = 0;
    for (int t = 0; t < length; ++t) largest = fmax(largest, fabs(__dsub_rn(query[t], window[t])));
    if (largest == 0) return 0;
    const double unit = scalbn(1.0, ilogb(largest));
    for (int t = 0; t < length; ++t) {
        const double d = __ddiv_rn(__dsub_rn(query[t], window[t]), unit);
        total = __dadd_rn(total, __dmul_rn(d, d));
    }
    return __dmul_rn(__dsqrt_rn(total), unit);
}

// Measure the windows that are listed, and lower the distances of their queries to them: one lane a window, one
// warp a block. The warp fetches 32 points of each to shared memory, eight lanes those of a window.
extern "C" __global__ void __launch_bounds__(32) certify(
    const __grid_constant__ Columns columns, const __grid_constant__ Queries asked, const __grid_constant__ Lists lists,
    double* __restrict__ measured, const __grid_constant__ Answers answers
) {
    __shared__ double stage[32][33];
    const double* __restrict__ const values = columns.values;
    const Query* __restrict__ const queries = asked.queries;
    const int lane = threadIdx.x, n = min(lists.counts[0], lists.capacity);
    for (int first = blockIdx.x * 32; first < n; first += gridDim.x * 32) {
        const int i = first + lane;
        const Entry entry = lists.entries[min(i, n - 1)];
        const Query query = queries[entry.query];
        const long long window =
            ((long long)columns.series[entry.column] * columns.n_channels + query.channel) * columns.width + entry.window;
        const int length = i < n ? query.length : 0;
        const int longest = warp_largest(length);
        auto visit = [&](auto use) {
            for (int base = 0; base < longest; base += 32) {
                __syncwarp();
#pragma unroll
                for (int quarter = 0; quarter < 8; ++quarter) {
                    const int whose = quarter * 4 + lane / 8, size = __shfl_sync(ALL, length, whose);
                    const long long from = __shfl_sync(ALL, window, whose);
#pragma unroll
                    for (int k = lane % 8; k < 32; k += 8)
                        if (base + k < size) copy_8(&stage[whose][k], values + from + base + k, true);
                }
                wait_for_copies();
                __syncwarp();
#pragma unroll 8
                for (int k = 0; k < 32; ++k)
                    if (base + k < length) use(stage[lane][k], base + k);
            }
        };
        const Description about = describe(visit, __ldg(values + window), length, true);
        const double* __restrict__ const own = asked.normal + query.place;
        double squares = 0;
        visit([&](double point, int t) {
            squares = Arithmetic<double>::add_square(__ldg(own + t), about.point(point), squares);
        });
        if (i >= n) continue;
        const double distance = distance_of(squares, about.constant, asked.kinds[entry.query], length);
        measured[i] = distance;
        lower(answers.distances + (long long)query.row * columns.n_columns + entry.column, distance);
    }
}

// Of the windows that are listed and are at the least distance, the first: one thread a window.
extern "C" __global__ void __launch_bounds__(128) first(
    const __grid_constant__ Queries asked, int n_columns, const __grid_constant__ Lists lists,
    const double* __restrict__ measured, const __grid_constant__ Answers answers
) {
    const int n = min(lists.counts[0], lists.capacity);
    for (int i = blockIdx.x * blockDim.x + threadIdx.x; i < n; i += gridDim.x * blockDim.x) {
        const Entry entry = lists.entries[i];
        const long long place = (long long)asked.queries[entry.query].row * n_columns + entry.column;
        // -1, nothing, is the largest number without a sign
        if (measured[i] < Arithmetic<double>::infinity() && measured[i] == answers.distances[place])
            atomicMin((unsigned long long*)answers.starts + place, (unsigned long long)entry.window);
    }
}

// Compare window j of a series with Q queries of one length: one thread, which keeps the least distance of each and the
// first of equals.
template <int Q>
__device__ __forceinline__ void compare_window(
    const double* __restrict__ window, int j, int length, bool normalized, const double* (&own)[Q],
    const unsigned char* __restrict__ kinds, int n_queries, double (&best)[Q], int (&where)[Q]
) {
    auto visit = [&](auto use) {
#pragma unroll 8
        for (int t = 0; t < length; ++t) use(__ldg(window + t), t);
    };
    const Description about = describe(visit, __ldg(window), length, normalized);
    if (!about.finite) return;
    double sums[Q] = {};
    for (int t = 0; t < length; ++t) {
        const double y = about.point(__ldg(window + t));
#pragma unroll
        for (int u = 0; u < Q; ++u) sums[u] = Arithmetic<double>::add_square(__ldg(own[u] + t), y, sums[u]);
    }
#pragma unroll
    for (int u = 0; u < Q; ++u) {
        const int kind = __ldg(kinds + min(u, n_queries - 1));
        if (kind == 2) continue;
        double distance = distance_of(sums[u], about.constant, kind, length);
        // squares may be lost beyond these
        if (!normalized && !(distance > 0x1p-450 && distance < 0x1p450))
            distance = scaled_distance(own[u], window, length);
        if (distance < best[u]) best[u] = distance, where[u] = j;
    }
}

// The least distance of each query among the threads of a block, and the first window of equals: lane 0 of each warp
// writes those of the warp, thread k then reads those of query k.
template <int Q>
__device__ __forceinline__ void first_of_block(
    double (&best)[Q], int (&where)[Q], double (*least)[THREADS / 32], int (*first_of)[THREADS / 32], int n_queries,
    double& distance, int& start
) {
    const int lane = threadIdx.x & 31, warp = threadIdx.x / 32;
#pragma unroll
    for (int u = 0; u < Q; ++u) {
#pragma unroll
        for (int other = 16; other > 0; other /= 2) {
            const double theirs = __shfl_xor_sync(ALL, best[u], other);
            const int at = __shfl_xor_sync(ALL, where[u], other);
            if (at >= 0 && (theirs < best[u] || (theirs == best[u] && (where[u] < 0 || at < where[u]))))
                best[u] = theirs, where[u] = at;
        }
        if (lane == 0) least[u][warp] = best[u], first_of[u][warp] = where[u];
    }
    __syncthreads();
    distance = Arithmetic<double>::infinity(), start = -1;
    const int k = threadIdx.x;
    if (k >= n_queries) return;
    for (int other = 0; other < THREADS / 32; ++other) {
        const int at = first_of[k][other];
        if (at >= 0 && (least[k][other] < distance || (least[k][other] == distance && at < start)))
            distance = least[k][other], start = at;
    }
}

// Best match of up to Q queries of one length and channel in a column, window by window: one block, one after the other
// of the pairs (query, column) in `left`, counts[1] of them; or without `left`, of `n_groups` groups (first query,
// how many) with all columns.
//
// One thread has windows threadIdx.x, threadIdx.x + 128, ..., and reads each point once for all queries of the
// group. The block keeps the least distance of each query and the first of equals; thread k writes that of
// query k.
template <int Q>
__global__ void __launch_bounds__(THREADS) match(
    const __grid_constant__ Columns columns, const __grid_constant__ Pairs pairs, const __grid_constant__ Queries asked,
    int normalized, const __grid_constant__ Answers answers
) {
    __shared__ double least[Q][THREADS / 32];
    __shared__ int first_of[Q][THREADS / 32];
    const int *__restrict__ const sizes = columns.sizes, *__restrict__ const series = columns.series;
    const int2 *__restrict__ const groups = pairs.groups, *__restrict__ const left = pairs.left;
    const int* __restrict__ const counts = pairs.counts;
    const Query* __restrict__ const queries = asked.queries;
    const int n_columns = columns.n_columns;
    const long long n = left ? counts[1] : (long long)pairs.n_groups * n_columns;
    for (long long item = blockIdx.x; item < n; item += gridDim.x) {
        const int2 group = left ? make_int2(left[item].x, 1) : groups[item / n_columns];
        const int column = left ? left[item].y : (int)(item % n_columns), b = series[column];
        const Query query = queries[group.x];
        const int length = query.length, count = sizes[b] - length + 1;
        const double* __restrict__ const line =
            columns.values + ((long long)b * columns.n_channels + query.channel) * columns.width;
        const double* own[Q];
        double best[Q];
        int where[Q];
#pragma unroll
        for (int u = 0; u < Q; ++u) {
            own[u] = asked.normal + query.place + (long long)min(u, group.y - 1) * length;
            best[u] = Arithmetic<double>::infinity(), where[u] = -1;
        }
        for (int j = threadIdx.x; j < count; j += THREADS)
            compare_window(line + j, j, length, normalized, own, asked.kinds + group.x, group.y, best, where);
        double distance;
        int start;
        first_of_block(best, where, least, first_of, group.y, distance, start);
        if (threadIdx.x < group.y) {
            const long long place = (long long)queries[group.x + threadIdx.x].row * n_columns + column;
            answers.distances[place] = distance;
            if (answers.starts) answers.starts[place] = start;
        }
        __syncthreads();
    }
}
