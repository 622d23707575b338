// Rescaling of series for the search, and the survivors of a block of estimates.

#include "include/arithmetic.cuh"
#include "include/constants.cuh"
#include "include/warp.cuh"

// rescale: float32 values for the search, (value - offset) * scale, and the largest rounding error,
// that of the float64 subtraction included. Padding stays as it is in `out`, and has no error.
// One warp: channels of series with a stride of grid.x, of each a share of the points by grid.y.
// `error` holds the largest error so far.
extern "C" __global__ void rescale(
    const double* __restrict__ values, const int* __restrict__ lengths, long long n_rows,
    int n_channels, int width, double offset, double scale, float* __restrict__ out, float* error) {
    float largest = 0;
    const long long first = (long long)blockIdx.x * blockDim.y + threadIdx.y;
    for (long long row = first; row < n_rows; row += (long long)gridDim.x * blockDim.y) {
        const int n = lengths[row / n_channels];
        for (int t = blockIdx.y * 32 + threadIdx.x; t < n; t += gridDim.y * 32) {
            const double scaled = (values[row * width + t] - offset) * scale;
            const float single = (float)scaled;
            out[row * width + t] = single;
            // see "rescaling" in docs/developer/numerics.rst
            double rounding = fabs((double)single - scaled);
            if (offset != 0) rounding += FLOAT64_UNIT * (fabs(scaled) + fabs(offset) * scale);
            largest = fmaxf(largest, __double2float_ru(rounding));
        }
    }
    largest = warp_largest(largest);
    if (threadIdx.x == 0) raise(error, largest);
}

// Bit patterns of non-negative floats order as unsigned integers do.
__device__ __forceinline__ unsigned key(float value) { return __float_as_uint(value); }
__device__ __forceinline__ unsigned long long key(double value) {
    return (unsigned long long)__double_as_longlong(value);
}

// The key of the value with `remaining` smaller ones, `skip` left out: by radix selection, a byte at
// a time from the top. All threads of a block; `prefix`, 0 before, receives the key.
template <typename T, typename Key>
__device__ __forceinline__ void select(
    const T* values, int n_cols, int skip, int (&histogram)[256], int& remaining, Key& prefix) {
    for (int shift = 8 * sizeof(Key) - 8; shift >= 0; shift -= 8) {
        for (int i = threadIdx.x; i < 256; i += blockDim.x) histogram[i] = 0;
        __syncthreads();
        const Key high = prefix;
        // keys that share the bytes found so far (none yet at the first)
        const Key mask = shift + 8 == 8 * sizeof(Key) ? 0 : ~Key(0) << (shift + 8);
        for (int i = threadIdx.x; i < n_cols; i += blockDim.x)
            if (i != skip && (key(values[i]) & mask) == high)
                atomicAdd(&histogram[(key(values[i]) >> shift) & 255], 1);
        __syncthreads();
        if (threadIdx.x == 0) {
            int before = 0, byte = 0;
            while (before + histogram[byte] <= remaining) before += histogram[byte++];
            remaining -= before;
            prefix = high | (Key(byte) << shift);
        }
        __syncthreads();
    }
}

// Append the first `count` columns with the key `kth`, `skip` left out, in their order: blockDim.x columns
// at a time. All threads of a block; `ties`, 0 before, counts those so far, warp_ties[w] those of a warp.
template <typename T, typename Key, typename Append>
__device__ __forceinline__ void append_ties(
    const T* values, int n_cols, int skip, Key kth, int count, int (&warp_ties)[32], int& ties,
    const Append& append) {
    const int warp = threadIdx.x / 32, lane = threadIdx.x % 32;
    for (int first = 0; first < n_cols; first += blockDim.x) {
        const int i = first + threadIdx.x;
        const bool tie = i < n_cols && i != skip && key(values[i]) == kth;
        const unsigned ballot = __ballot_sync(ALL, tie);
        if (lane == 0) warp_ties[warp] = __popc(ballot);
        __syncthreads();
        int before = ties + lanes_before(ballot, lane);
        for (int w = 0; w < warp; ++w) before += warp_ties[w];
        if (tie && before < count) append(i);
        __syncthreads();
        if (threadIdx.x == 0)
            for (int w = 0; w < blockDim.x / 32; ++w) ties += warp_ties[w];
        __syncthreads();
        if (ties >= count) return;
    }
}

// shortlist: of each row of a block of estimates, what may be among its k nearest.
//
// One block: a row. It selects the k-th smallest estimate, turns it into the k-th smallest upper
// value, and lists every column whose lower value does not exceed that. float: estimates are accumulated
// costs in scaled units (`squared`: their roots are distances), an interval around each. double:
// estimates are certified distances; exactly the k nearest are listed, ties by column. A row with
// more than `cap` survivors lists none and is marked in `overflowed`.
// Shared memory: 256 counters and a few scalars. Lists are appended to by one atomic a row.
template <typename T>
__global__ void shortlist(
    const T* __restrict__ estimates, int n_cols, int k, const long long* __restrict__ excluded,
    double scale, int squared, double shrink, double grow, double slack, int cap, int* __restrict__ n_found,
    int* __restrict__ found_row, int* __restrict__ found_col, T* __restrict__ found_value,
    unsigned char* __restrict__ overflowed) {
    constexpr bool EXACT = sizeof(T) == 8;
    using Key = decltype(key(T()));
    __shared__ int histogram[256];
    __shared__ int warp_ties[32];
    __shared__ int count, base, ties;
    __shared__ Key prefix;
    __shared__ int remaining;
    const int row = blockIdx.x;
    const T* values = estimates + (long long)row * n_cols;
    const int skip = excluded && excluded[row] >= 0 && excluded[row] < n_cols ? (int)excluded[row] : -1;
    const int n_allowed = n_cols - (skip >= 0);
    const bool all = k > n_allowed;
    if (threadIdx.x == 0) {
        prefix = 0;
        remaining = k - 1;
        count = ties = 0;
    }
    if (!all) select(values, n_cols, skip, histogram, remaining, prefix);
    __syncthreads();
    const Key kth = prefix;
    auto distance = [&](T value) {
        return (squared ? sqrt((double)value) : (double)value) / scale;
    };
    double limit = Arithmetic<double>::infinity();
    if (!all && !EXACT) {
        const double estimate = distance((T)__uint_as_float((unsigned)kth));
        if (isfinite(estimate)) limit = estimate * grow + slack;
    }
    auto survives = [&](int i) {
        if (i == skip) return false;
        if (EXACT) return all || key(values[i]) < kth;
        const double estimate = distance(values[i]);
        return !isfinite(estimate) || fmax(estimate * shrink - slack, 0.0) <= limit;
    };
    int mine = 0;
    for (int i = threadIdx.x; i < n_cols; i += blockDim.x) mine += survives(i);
    if (mine) atomicAdd(&count, mine);
    __syncthreads();
    const int n_ties = EXACT && !all ? k - count : 0;  // of those equal to the k-th, the first
    if (count + n_ties > cap) {
        if (threadIdx.x == 0) overflowed[row] = 1;
        return;
    }
    __syncthreads();
    if (threadIdx.x == 0) {
        base = atomicAdd(n_found, count + n_ties);
        count = 0;
    }
    __syncthreads();
    auto append = [&](int i) {
        const int place = base + atomicAdd(&count, 1);
        found_row[place] = row;
        found_col[place] = i;
        found_value[place] = values[i];
    };
    for (int i = threadIdx.x; i < n_cols; i += blockDim.x)
        if (survives(i)) append(i);
    if (!EXACT || all) return;
    append_ties(values, n_cols, skip, kth, n_ties, warp_ties, ties, append);
}
