// Distances of dilated shapelets to the windows of series, certified: the bits of the CPU engine.
//
// `describe_windows` finds mean and deviation of the windows that the shapelets of a run share. `match_dilated`
// compares shapelets with all windows of a series: a lane has every 32nd window, so that lanes read neighbouring points
// whatever the dilation, and each point serves several shapelets. `select_distance` finds an order statistic.

#include "include/certified.cuh"
#include "include/constants.cuh"
#include "include/warp.cuh"

constexpr int THREADS = MATCH_THREADS;
// Shapelets that a warp compares with a window together.
constexpr int Q = DILATED_TOGETHER;

// Series: `values` of shape (n_series, n_channels, width).
struct Lines {
    const double* values;
    const int* sizes;
    int width, n_channels;
};
// Neighbouring shapelets of a run: the first, how many, and what they share; `row` is that of `describe_windows`, -1
// where windows are compared as they are.
struct Unit {
    int first, count, length, dilation, channel, row, unused, unused_too;
};
// Shapelets: their points as they are compared, where these begin; 0 as they are, 1 normalised, 2 constant as well;
// the largest sum of squares, and the largest distance, that count as a match.
struct Shapelets {
    const double* points;
    const long long* begins;
    const unsigned char* kinds;
    const double *limits, *thresholds;
};
// Where the features of a series go, of `n_features` rows of `n_shapelets`: -1 is nowhere.
struct Places {
    double* out;
    int n_features, n_shapelets, distance, start, count;
};

// The line of a series in a channel.
__device__ __forceinline__ const double* line_of(const Lines& lines, int series, int channel) {
    return lines.values + ((long long)series * lines.n_channels + channel) * lines.width;
}

__device__ __forceinline__ int windows_of(const Lines& lines, int series, int length, int dilation) {
    return max(0, (int)(lines.sizes[series] - (long long)(length - 1) * dilation));
}

// Mean of a window, from its first point on, and 1 / deviation, 0 where it is constant.
__device__ __forceinline__ double2 describe_window(const double* __restrict__ window, int length, int dilation) {
    const double first = __ldg(window);
    double low = first, high = first;
    auto look = [&](auto use) {
        for (int t = 0; t < length; ++t) {
            const double point = __ldg(window + (long long)t * dilation);
            low = fmin(low, point), high = fmax(high, point);
            use(__dsub_rn(point, first), t);
        }
    };
    const double mean = certified_mean(look, length, [](double, int) {});
    auto visit = [&](auto use) {
        for (int t = 0; t < length; ++t) use(__dsub_rn(__ldg(window + (long long)t * dilation), first), t);
    };
    const double deviation = certified_deviation(visit, length, mean);
    return make_double2(mean, is_flat(low, high) ? 0.0 : __ddiv_rn(1.0, deviation));
}

// Block (series, run): a thread has every 128th window. Written for row = run * n_series + series, `width` a row.
extern "C" __global__ void __launch_bounds__(THREADS) describe_windows(
    const __grid_constant__ Lines lines, const Unit* __restrict__ runs, double2* __restrict__ described
) {
    const Unit run = runs[blockIdx.y];
    const int b = blockIdx.x, n = windows_of(lines, b, run.length, run.dilation);
    const double* __restrict__ const line = line_of(lines, b, run.channel);
    described += ((long long)blockIdx.y * gridDim.x + b) * lines.width;
    for (int j = threadIdx.x; j < n; j += THREADS)
        described[j] = describe_window(line + j, run.length, run.dilation);
}

// The sum of squares of a window and a shapelet, where one of them is constant; else as given.
__device__ __forceinline__ double with_constants(double sum, int kind, bool flat, int length) {
    if (kind == 0 || (kind == 1 && !flat)) return sum;
    return kind == 2 && flat ? 0.0 : (double)length;
}

// Sums of squares of the window `j` of a line and of V shapelets of a length; normalised windows count from their first
// point.
template <int V>
__device__ __forceinline__ void compare(
    const double* __restrict__ window, const Unit& unit, bool normalized, double2 about, const double* const (&own)[V],
    double (&sums)[V]
) {
#pragma unroll
    for (int u = 0; u < V; ++u) sums[u] = 0;
    const double first = normalized ? __ldg(window) : 0.0;
#pragma unroll 4
    for (int t = 0; t < unit.length; ++t) {
        const double point = __dsub_rn(__ldg(window + (long long)t * unit.dilation), first);
        const double y = certified_point(point, about.x, about.y);
#pragma unroll
        for (int u = 0; u < V; ++u) sums[u] = Arithmetic<double>::add_square(__ldg(own[u] + t), y, sums[u]);
    }
}

// What a lane, or a warp, knows of a shapelet and a series.
struct Match {
    double distance;
    int start, count;
};

// That of a warp, from those of its lanes: the least distance, the first start of it, the sum of counts.
__device__ __forceinline__ Match fold(Match mine) {
    mine.count = warp_sum(mine.count);
#pragma unroll
    for (int other = 16; other > 0; other /= 2) {
        const double theirs = __shfl_xor_sync(ALL, mine.distance, other);
        const int at = __shfl_xor_sync(ALL, mine.start, other);
        if (at >= 0 && (mine.start < 0 || theirs < mine.distance || (theirs == mine.distance && at < mine.start)))
            mine.distance = theirs, mine.start = at;
    }
    return mine;
}

// The norm of the difference of a shapelet and a window, whatever its size: see `scaled_distance` of matches.cu.
__device__ __noinline__ double scaled_norm(
    const double* __restrict__ own, const double* __restrict__ window, int length, int dilation
) {
    double largest = 0, total = 0;
    for (int t = 0; t < length; ++t) largest = fmax(largest, fabs(__dsub_rn(own[t], window[(long long)t * dilation])));
    if (largest == 0) return 0;
    const double unit = scalbn(1.0, ilogb(largest));
    for (int t = 0; t < length; ++t) {
        const double d = __ddiv_rn(__dsub_rn(own[t], window[(long long)t * dilation]), unit);
        total = __dadd_rn(total, __dmul_rn(d, d));
    }
    return __dmul_rn(__dsqrt_rn(total), unit);
}

// The match of a lane where squares are too small for a plain sum.
__device__ __noinline__ Match match_tiny(
    const double* __restrict__ line, int n, const Unit& unit, const double* __restrict__ own, double threshold
) {
    Match found = {Arithmetic<double>::infinity(), -1, 0};
    const double root = __dsqrt_rn((double)unit.length);
    for (int j = threadIdx.x & 31; j < n; j += 32) {
        double total = 0;
        for (int t = 0; t < unit.length; ++t)
            total = Arithmetic<double>::add_square(own[t], line[j + (long long)t * unit.dilation], total);
        const double norm =
            total < LOST_SQUARES ? scaled_norm(own, line + j, unit.length, unit.dilation) : __dsqrt_rn(total);
        if (norm < found.distance) found.distance = norm, found.start = j;
        found.count += __ddiv_rn(norm, root) <= threshold;
    }
    return found;
}

// Compare the shapelets of a unit with all windows of a series: block (series, unit), a warp Q shapelets at a time.
extern "C" __global__ void __launch_bounds__(THREADS) match_dilated(
    const __grid_constant__ Lines lines, const Unit* __restrict__ units, const double2* __restrict__ described,
    const __grid_constant__ Shapelets shapelets, const __grid_constant__ Places places
) {
    const Unit unit = units[blockIdx.y];
    const int b = blockIdx.x, lane = threadIdx.x & 31, n = windows_of(lines, b, unit.length, unit.dilation);
    const double* __restrict__ const line = line_of(lines, b, unit.channel);
    if (unit.row >= 0) described += ((long long)unit.row * gridDim.x + b) * lines.width;
    for (int group = threadIdx.x / 32 * Q; group < unit.count; group += THREADS / 32 * Q) {
        const double* own[Q];
        double squares[Q], limits[Q];
        int kinds[Q];
        Match found[Q];
#pragma unroll
        for (int u = 0; u < Q; ++u) {
            const int row = unit.first + min(group + u, unit.count - 1);
            own[u] = shapelets.points + shapelets.begins[row];
            limits[u] = shapelets.limits[row], kinds[u] = shapelets.kinds[row];
            squares[u] = Arithmetic<double>::infinity();
            found[u] = {squares[u], -1, 0};
        }
        for (int j = lane; j < n; j += 32) {
            const double2 about = unit.row < 0 ? make_double2(0.0, 1.0) : described[j];
            double sums[Q];
            compare(line + j, unit, unit.row >= 0, about, own, sums);
#pragma unroll
            for (int u = 0; u < Q; ++u) {
                const double sum = with_constants(sums[u], kinds[u], about.y == 0, unit.length);
                found[u].count += sum <= limits[u];
                if (sum < squares[u]) {
                    // neighbouring sums may have one root: the first window of it stays
                    // see "roots of sums" in docs/developer/numerics.rst
                    const bool same = found[u].start >= 0 && sum >= squares[u] * (1 - 0x1p-50) &&
                                      __dsqrt_rn(sum) == __dsqrt_rn(squares[u]);
                    squares[u] = sum;
                    if (!same) found[u].start = j;
                }
            }
        }
#pragma unroll
        for (int u = 0; u < Q; ++u) {
            if (group + u >= unit.count) break;
            const int row = unit.first + group + u;
            found[u].distance = __dsqrt_rn(squares[u]);
            if (kinds[u] == 0 && warp_least(squares[u]) < LOST_SQUARES)
                found[u] = match_tiny(line, n, unit, own[u], shapelets.thresholds[row]);
            const Match best = fold(found[u]);
            double* const out = places.out + (long long)b * places.n_features * places.n_shapelets + row;
            if (lane) continue;
            const long long step = places.n_shapelets;
            if (places.distance >= 0)
                out[places.distance * step] = __ddiv_rn(best.distance, __dsqrt_rn((double)unit.length));
            if (places.start >= 0) out[places.start * step] = best.start;
            if (places.count >= 0) out[places.count * step] = best.count;
        }
    }
}

// The sum of squares of rank `ranks[row]` of shapelet `row` and the windows of series `partners[row]`: one warp each. A
// unit each; `room` has a place for every window of each.
extern "C" __global__ void __launch_bounds__(THREADS) select_distance(
    const __grid_constant__ Lines lines, const Unit* __restrict__ units, int n_shapelets,
    const __grid_constant__ Shapelets shapelets, const int* __restrict__ partners, const int* __restrict__ ranks,
    double* __restrict__ room, double* __restrict__ out
) {
    const int row = blockIdx.x * (THREADS / 32) + threadIdx.x / 32, lane = threadIdx.x & 31;
    if (row >= n_shapelets) return;
    const Unit unit = units[row];
    const int b = partners[row], n = windows_of(lines, b, unit.length, unit.dilation), kind = shapelets.kinds[row];
    const double* __restrict__ const line = line_of(lines, b, unit.channel);
    const double* const own[1] = {shapelets.points + shapelets.begins[row]};
    room += (long long)row * lines.width;
    for (int j = lane; j < n; j += 32) {
        double2 about = make_double2(0.0, 1.0);
        if (kind > 0) about = describe_window(line + j, unit.length, unit.dilation);
        double sums[1];
        compare(line + j, unit, kind > 0, about, own, sums);
        room[j] = with_constants(sums[0], kind, about.y == 0, unit.length);
    }
    // sums are not negative: in the order of their bits, of which the leading ones are found first
    long long found = 0;
    for (int bit = 62; bit >= 0; --bit) {
        const long long next = found | 1ll << bit;
        int below = 0;
        for (int j = lane; j < n; j += 32) below += __double_as_longlong(room[j]) < next;
        if (warp_sum(below) <= ranks[row]) found = next;
    }
    if (lane == 0) out[row] = n > 0 ? __longlong_as_double(found) : Arithmetic<double>::infinity();
}
