// Windows of a long series: prepared (`segments`, `moments`), bounded (`bounds`), listed (`minima`,
// `choose`), and given to the kernels that warp them (`enter` to search_warp.cu, `rows_float` and
// `rows_double` to those for pairs of series).
//
// The float32 copy of the line has segments of `step` points (a power of two), each with the points
// behind it that its windows need, `pitch` values in all. A segment counts from the middle of its
// range and is at most 1 large, so that a series may drift. Window w lies in segment w / step:
// its point j is line[address(w) + j], and normalised
//
//     z = fmaf(point, affine[w].x, affine[w].y),     off by at most error[w].
//
// error[w] is negative where a window is not finite, and infinite where nothing is known. Costs are
// accumulated from float32 points; `Interval` says what they tell of certified distances.

#include "include/certified.cuh"
#include "include/warp.cuh"

constexpr int THREADS = SEARCH_THREADS;
// Beyond this error of a point nothing is known, nor where a normalised point or the factor is larger
// than these: float32 must hold their squares and products.
// see "search float32" in docs/developer/numerics.rst
constexpr double DOUBTFUL = 0x1p-3, LARGEST_POINT = 0x1p50, LARGEST_FACTOR = 0x1p120;

// Where windows lie.
struct Place {
    int shift, pitch;

    __device__ __forceinline__ long long operator()(int w) const {
        return (long long)(w >> shift) * pitch + (w & ((1 << shift) - 1));
    }
};

// Lower and upper values of distances by accumulated costs, in the units of the search, which float32 always holds.
struct Interval {
    double shrink, grow;    // share of rounding
    double slack, base;     // slack * (base + error of a window) is what input errors cost
    int squared;

    // an infinite cost is one that was given up, or too large for a float: at least the largest float
    __device__ __forceinline__ float lower(float cost, float error) const {
        if (!(error < Arithmetic<float>::infinity())) return 0;
        const double least = fmin((double)cost, (double)__int_as_float(0x7f7fffff));
        const double v = squared ? sqrt(least) : least;
        const double low = v * shrink - slack * (base + (double)error);
        return low > 0 ? __double2float_rd(low) : 0.0f;
    }

    __device__ __forceinline__ float upper(float cost, float error) const {
        const double v = squared ? sqrt((double)cost) : (double)cost;
        const double high = v * grow + slack * (base + (double)error);
        return high >= 0 ? __double2float_ru(high) : Arithmetic<float>::infinity();
    }

    // a cost whose lower value exceeds the limit, and that of every larger one
    __device__ __forceinline__ float beyond(double limit, float error) const {
        // see "cost limits" in docs/developer/numerics.rst
        const double v = (limit + slack * (base + (double)error)) / shrink * LIMIT_MARGIN;
        return v >= 0 ? __double2float_ru(squared ? v * v : v) : Arithmetic<float>::infinity();
    }
};

// segments: the float32 copy of the line, with 0 for points that are not finite or beyond its end.
// One block: a segment. Shared memory: ranges of warps. frames[k]: what points of segment k count
// from, and the power of two by which they were multiplied.
extern "C" __global__ void __launch_bounds__(THREADS) segments(
    const double* __restrict__ points, int n_points, int step, int pitch,
    float* __restrict__ line, double2* __restrict__ frames) {
    __shared__ double room[THREADS / 32];
    const int first = blockIdx.x * step;
    const int count = min(pitch, n_points - first);
    double low = Arithmetic<double>::infinity(), high = -low;
    for (int i = threadIdx.x; i < count; i += THREADS) {
        const double point = points[first + i];
        if (isfinite(point)) {
            low = fmin(low, point);
            high = fmax(high, point);
        }
    }
    low = fold_block(low, room, THREADS / 32, Smaller()), high = fold_block(high, room, THREADS / 32, Larger());
    const bool some = low <= high;
    const double center = some ? low / 2 + high / 2 : 0.0;
    const double reach = some ? fmax(high - center, center - low) : 0.0;
    int exponent = 0;
    frexp(reach, &exponent);
    const double scale = ldexp(1.0, -max(-1000, min(1000, exponent)));
    for (int i = threadIdx.x; i < pitch; i += THREADS) {
        const double point = i < count ? points[first + i] : center;
        line[(long long)blockIdx.x * pitch + i] =
            isfinite(point) ? (float)((point - center) * scale) : 0.0f;
    }
    if (threadIdx.x == 0) frames[blockIdx.x] = make_double2(center, scale);
}

// moments: how each window is normalised, and how far its points are off in float32.
// One thread: a window; neighbours read the same points. moments[w]: mean from the first point on,
// and 1 / deviation, certified: the operations of `window_moments` on the CPU in their order.
// Without `normalize`: (point - offset) * scale stands for a point.
extern "C" __global__ void __launch_bounds__(THREADS) moments(
    const double* __restrict__ points, int n_windows, int length, int normalize, double offset,
    double scale, const double2* __restrict__ frames, Place place, double2* __restrict__ moments,
    float2* __restrict__ affine, float* __restrict__ error) {
    const int w = blockIdx.x * THREADS + threadIdx.x;
    if (w >= n_windows) return;
    const double* window = points + w;
    const double anchor = window[0];
    double low = anchor, high = anchor;
    bool finite = true;
    auto visit = [&](auto use) {
#pragma unroll 4
        for (int i = 0; i < length; ++i) use(__dsub_rn(window[i], anchor), i);
    };
    double mean = certified_mean(visit, length, [&](double, int i) {
        finite = finite && isfinite(window[i]);
        low = window[i] < low ? window[i] : low;
        high = window[i] > high ? window[i] : high;
    });
    double inverse = 0;
    if (normalize && finite && !is_flat(low, high)) inverse = __ddiv_rn(1.0, certified_deviation(visit, length, mean));
    else mean = 0;
    moments[w] = make_double2(mean, inverse);
    // z = point * a + b for points of the segment
    const double2 frame = frames[w >> place.shift];
    const double center = frame.x, inner = normalize ? inverse : scale;
    const double a = inner / frame.y;
    const double b = (normalize ? (center - anchor) - mean : center - offset) * inner;
    const double reach = fmax(fabs(high - center), fabs(center - low)) * inner;
    const double middle = normalize ? anchor + mean : offset;
    const double largest = fmax(fabs(high - middle), fabs(middle - low)) * inner;
    // of point and a, b, and the sum, each rounded to float32; float64 is within the hundredth
    // see "search float32" in docs/developer/numerics.rst
    const double off = inner == 0 ? 0.0
                                  : 1.01 * FLOAT32_UNIT * (2 * reach + fabs(b) + largest) + 0x1p-100;
    const bool known = off < DOUBTFUL && largest < LARGEST_POINT && a < LARGEST_FACTOR;
    affine[w] = known ? make_float2((float)a, (float)b) : make_float2(0.0f, 0.0f);
    error[w] = !finite ? -1.0f : known ? __double2float_ru(off) : Arithmetic<float>::infinity();
}

template <bool LARGEST>
__device__ __forceinline__ float joined(float total, float beyond, bool squared) {
    const float cost = squared ? beyond * beyond : beyond;
    return LARGEST ? fmaxf(total, cost) : total + cost;
}

template <bool LARGEST>
__device__ __forceinline__ float bound_of(
    const float* window, float2 own, int length, const float2* envelope, const float* query,
    bool squared, int ranges) {
    float total = 0, low = Arithmetic<float>::infinity(), high = -low;
#pragma unroll 4
    for (int j = 0; j < length; ++j) {
        const float z = fmaf(window[j], own.x, own.y);
        const float2 limits = envelope[j];
        total = joined<LARGEST>(total, fmaxf(fmaxf(z - limits.y, limits.x - z), 0.0f), squared);
        low = fminf(low, z);
        high = fmaxf(high, z);
    }
    if (!ranges || length < 3) return total;
    // the query by the range of the window, without its ends, which were counted at their true cost
    float other = 0, least = Arithmetic<float>::infinity(), most = -least;
#pragma unroll 4
    for (int j = 1; j < length - 1; ++j) {
        const float q = query[j];
        other = joined<LARGEST>(other, fmaxf(fmaxf(q - high, low - q), 0.0f), squared);
        least = fminf(least, q);
        most = fmaxf(most, q);
    }
    // of a point above the range of the query and one of the query below that of the window, the cost
    // of meeting is at least the sum of both, where the ranges overlap
    if (!LARGEST && ranges == 2 && least <= high && low <= most) return total + other;
    return fmaxf(total, other);
}

// bounds: accumulated cost that warping of a window at least has (LB_Kim and LB_Keogh), or where
// envelope and query are the same (no warping) has.
// One thread: a window. envelope[j]: least and largest point of the query that the band lets point
// j meet. `ranges`: 1 bounds the query by the range of the window, too; 2 adds both, which holds without a
// band.
extern "C" __global__ void __launch_bounds__(THREADS) bounds(
    const float* __restrict__ line, int n_windows, int length, Place place,
    const float2* __restrict__ affine, const float2* __restrict__ envelope,
    const float* __restrict__ query, int squared, int largest, int ranges,
    float* __restrict__ cost) {
    const int w = blockIdx.x * THREADS + threadIdx.x;
    if (w >= n_windows) return;
    const float* window = line + place(w);
    cost[w] = largest
        ? bound_of<true>(window, affine[w], length, envelope, query, squared, ranges)
        : bound_of<false>(window, affine[w], length, envelope, query, squared, ranges);
}

// In these kernels value i belongs to window positions[i], or to window i without `positions`; there
// are *count of them, or n without `count`.

// minima: of every `run` windows that follow each other the one with the least lower or upper value,
// as bits of the value and the window in one number, which order as integers do.
// One thread: values with a grid stride.
extern "C" __global__ void __launch_bounds__(THREADS) minima(
    const float* __restrict__ costs, const int* __restrict__ positions,
    const int* __restrict__ count, int n, const float* __restrict__ error, Interval interval,
    int upper, int run, unsigned long long* __restrict__ keys) {
    const int total = count ? *count : n;
    for (int i = blockIdx.x * THREADS + threadIdx.x; i < total; i += gridDim.x * THREADS) {
        const int w = positions ? positions[i] : i;
        const float off = error[w];
        if (off < 0) continue;
        const float value = upper ? interval.upper(costs[i], off) : interval.lower(costs[i], off);
        const unsigned long long bits = __float_as_uint(value);
        atomicMin(&keys[w / run], bits << 32 | (unsigned)w);
    }
}

// choose: windows whose lower value does not exceed a limit, and with `kept` their costs.
// One thread: values with a grid stride. A warp appends together, so that neighbours stay so.
extern "C" __global__ void __launch_bounds__(THREADS) choose(
    const float* __restrict__ costs, const int* __restrict__ positions,
    const int* __restrict__ count, int n, const float* __restrict__ error, Interval interval,
    double limit, int* __restrict__ found, int* __restrict__ n_found, float* __restrict__ kept) {
    const int total = count ? *count : n;
    const int lane = threadIdx.x % 32;
    const int first = blockIdx.x * THREADS + threadIdx.x - lane;
    for (int base = first; base < total; base += gridDim.x * THREADS) {
        const int i = base + lane;
        const int w = i < total ? (positions ? positions[i] : i) : -1;
        const float off = w < 0 ? -1.0f : error[w];
        const bool in = off >= 0 && (double)interval.lower(costs[i], off) <= limit;
        const unsigned ballot = __ballot_sync(ALL, in);
        int at = 0;
        if (lane == 0 && ballot) at = atomicAdd(n_found, __popc(ballot));
        at = __shfl_sync(ALL, at, 0) + lanes_before(ballot, lane);
        if (in) found[at] = w;
        if (in && kept) kept[at] = costs[i];
    }
}

// enter: what warping needs of each window of a list, in one piece: factor and summand, address, and
// the cost above which its lower value exceeds a limit.
// One thread: windows with a grid stride.
extern "C" __global__ void __launch_bounds__(THREADS) enter(
    const int* __restrict__ positions, const int* __restrict__ count, int n, Place place,
    const float2* __restrict__ affine, const float* __restrict__ error, Interval interval,
    double limit, int4* __restrict__ entries) {
    const int total = count ? *count : n;
    for (int i = blockIdx.x * THREADS + threadIdx.x; i < total; i += gridDim.x * THREADS) {
        const int w = positions[i];
        entries[i] = make_int4(
            __float_as_int(affine[w].x), __float_as_int(affine[w].y), (int)place(w),
            __float_as_int(interval.beyond(limit, error[w])));
    }
}

// rows: listed windows one after the other, normalised in float32 as the search has them.
// One block: THREADS points of a window. Grid: windows along y with a stride.
extern "C" __global__ void __launch_bounds__(THREADS) rows_float(
    const float* __restrict__ line, const int* __restrict__ positions, int n, int length,
    int stride, Place place, const float2* __restrict__ affine, float* __restrict__ out) {
    const int j = blockIdx.x * THREADS + threadIdx.x;
    if (j >= length) return;
    for (int i = blockIdx.y; i < n; i += gridDim.y) {
        const int w = positions[i];
        out[(long long)i * stride + j] = fmaf(line[place(w) + j], affine[w].x, affine[w].y);
    }
}

// The same in float64: certified, the operations of `normalize_windows` in their order.
// Blocks and grid as there.
extern "C" __global__ void __launch_bounds__(THREADS) rows_double(
    const double* __restrict__ points, const int* __restrict__ positions, int n, int length,
    int stride, int normalize, const double2* __restrict__ moments, double* __restrict__ out) {
    const int j = blockIdx.x * THREADS + threadIdx.x;
    if (j >= length) return;
    for (int i = blockIdx.y; i < n; i += gridDim.y) {
        const int w = positions[i];
        double z = points[w + j];
        if (normalize)
            z = certified_point(__dsub_rn(z, points[w]), moments[w].x, moments[w].y);
        out[(long long)i * stride + j] = z;
    }
}
