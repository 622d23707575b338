// Certified best matches of queries among the windows of series: the bits of the CPU engine.

constexpr int TOGETHER = 4;

// Normalise queries: one thread, one query. Query k has lengths[k] points from begins[k] of `values` on, and is
// written from places[k] on; kinds[k] is 0, 1 where it is constant, 2 where it is not finite.
extern "C" __global__ void __launch_bounds__(64) normalize(
    const double* __restrict__ values, const long long* __restrict__ begins,
    const int* __restrict__ lengths, const long long* __restrict__ places, int n_queries,
    int normalized, double* __restrict__ out, unsigned char* __restrict__ kinds
) {
    const int k = blockIdx.x * blockDim.x + threadIdx.x;
    if (k >= n_queries) return;
    const int length = lengths[k];
    const double* __restrict__ const query = values + begins[k];
    double* __restrict__ const mine = out + places[k];
    double total = 0, low = query[0], high = query[0];
    bool finite = true;
    for (int t = 0; t < length; ++t) {
        const double point = query[t];
        finite = finite && isfinite(point);
        total = __dadd_rn(total, point);
        low = fmin(low, point);
        high = fmax(high, point);
    }
    double mean = 0, inverse = 1;
    bool constant = false;
    if (normalized) {
        mean = __ddiv_rn(total, (double)length);
        double squares = 0;
        for (int t = 0; t < length; ++t) {
            const double d = __dsub_rn(query[t], mean);
            squares = __dadd_rn(squares, __dmul_rn(d, d));
        }
        const double deviation = __dsqrt_rn(__ddiv_rn(squares, (double)length));
        constant = high - low <= 0x1p-40 * fmax(fabs(low), fabs(high)) || deviation == 0;
        inverse = constant ? 0.0 : __ddiv_rn(1.0, deviation);
    }
    for (int t = 0; t < length; ++t) mine[t] = __dmul_rn(__dsub_rn(query[t], mean), inverse);
    kinds[k] = finite ? constant : 2;
}

// Best match of up to TOGETHER queries of one length and channel in a series: block (series, group).
//
// One thread has windows threadIdx.x, threadIdx.x + 128, ..., reads each point once for all queries of the
// group, and adds in the order of time without fused multiply-add. The block keeps the least distance of each
// query and the first of equals; thread k writes that of query k. Groups are (first query, how many); `series`
// names the series; the answer of query k goes to row rows[k].
extern "C" __global__ void __launch_bounds__(128) match(
    const double* __restrict__ values, int width, int n_channels, const int* __restrict__ sizes,
    const int* __restrict__ series, int n_series, const int2* __restrict__ groups,
    const int* __restrict__ lengths, const int* __restrict__ channels,
    const long long* __restrict__ places, const double* __restrict__ queries,
    const unsigned char* __restrict__ kinds, const int* __restrict__ rows, int normalized,
    double* __restrict__ distances, long long* __restrict__ starts
) {
    __shared__ double least[TOGETHER][4];
    __shared__ int first_of[TOGETHER][4];
    const double infinity = __longlong_as_double(0x7ff0000000000000LL);
    const int2 group = groups[blockIdx.y];
    const int b = series[blockIdx.x], length = lengths[group.x];
    const int count = sizes[b] - length + 1, lane = threadIdx.x & 31, warp = threadIdx.x / 32;
    const double* __restrict__ const line =
        values + ((long long)b * n_channels + channels[group.x]) * width;
    const double* __restrict__ query[TOGETHER];
    double best[TOGETHER];
    int where[TOGETHER];
#pragma unroll
    for (int u = 0; u < TOGETHER; ++u) {
        query[u] = queries + places[group.x + min(u, group.y - 1)];
        best[u] = infinity, where[u] = -1;
    }
    for (int j = threadIdx.x; j < count; j += blockDim.x) {
        const double* __restrict__ const window = line + j;
        double total = 0, low = window[0], high = window[0];
        bool finite = true, constant = false;
        for (int t = 0; t < length; ++t) {
            const double point = __ldg(window + t);
            finite = finite && isfinite(point);
            total = __dadd_rn(total, point);
            low = fmin(low, point);
            high = fmax(high, point);
        }
        if (!finite) continue;
        double mean = 0, inverse = 1;
        if (normalized) {
            mean = __ddiv_rn(total, (double)length);
            double squares = 0;
            for (int t = 0; t < length; ++t) {
                const double d = __dsub_rn(__ldg(window + t), mean);
                squares = __dadd_rn(squares, __dmul_rn(d, d));
            }
            const double deviation = __dsqrt_rn(__ddiv_rn(squares, (double)length));
            constant = high - low <= 0x1p-40 * fmax(fabs(low), fabs(high)) || deviation == 0;
            inverse = constant ? 0.0 : __ddiv_rn(1.0, deviation);
        }
        double sums[TOGETHER] = {};
        for (int t = 0; t < length; ++t) {
            const double y = __dmul_rn(__dsub_rn(__ldg(window + t), mean), inverse);
#pragma unroll
            for (int u = 0; u < TOGETHER; ++u) {
                const double d = __dsub_rn(__ldg(query[u] + t), y);
                sums[u] = __dadd_rn(sums[u], __dmul_rn(d, d));
            }
        }
#pragma unroll
        for (int u = 0; u < TOGETHER; ++u) {
            const int kind = kinds[group.x + min(u, group.y - 1)];
            double distance = __dsqrt_rn(sums[u]);
            if (kind == 2) continue;
            if (constant != (kind == 1)) distance = __dsqrt_rn((double)length);
            else if (constant) distance = 0;
            if (distance < best[u]) best[u] = distance, where[u] = j;
        }
    }
#pragma unroll
    for (int u = 0; u < TOGETHER; ++u) {
#pragma unroll
        for (int other = 16; other > 0; other /= 2) {
            const double theirs = __shfl_xor_sync(0xffffffffu, best[u], other);
            const int there = __shfl_xor_sync(0xffffffffu, where[u], other);
            if (there >= 0 && (theirs < best[u] || (theirs == best[u] && there < where[u])))
                best[u] = theirs, where[u] = there;
        }
        if (lane == 0) least[u][warp] = best[u], first_of[u][warp] = where[u];
    }
    __syncthreads();
    const int k = threadIdx.x;
    if (k >= group.y) return;
    double distance = infinity;
    int start = -1;
    for (int other = 0; other < 4; ++other) {
        const int there = first_of[k][other];
        if (there >= 0 && (least[k][other] < distance || (least[k][other] == distance && there < start)))
            distance = least[k][other], start = there;
    }
    const long long place = (long long)rows[group.x + k] * n_series + blockIdx.x;
    distances[place] = distance;
    if (starts) starts[place] = start;
}
