// Shape-based distances: spectra of series, and the best shift against every centre.
//
// Two series are the real and the imaginary part of one complex series u. Its spectrum times the
// conjugate spectrum of a real centre, transformed back, holds the correlations of the first series
// in its real and those of the second in its imaginary part: one transform for two, and no
// array of (series, centres, shifts) anywhere.
//
// Both kernels: T threads a transform, B transforms a block, dim3(T, B) threads. Shared memory: B
// times slot(N) complex values (none where one pass does), then scratch for sums over warps.

#include "include/constants.cuh"
#include "include/warp.cuh"
#include "kshape/fft.cuh"
#include "kshape/ties.cuh"

// Values that a thread holds at most, in the passes of these radices.
template <int N, int T, int R, int... REST>
__host__ __device__ constexpr int held() {
    constexpr int here = (N / R + T - 1) / T * R;
    if constexpr (sizeof...(REST) == 0)
        return here;
    else
        return here > held<N, T, REST...>() ? here : held<N, T, REST...>();
}

// Blocks that a multiprocessor should hold: few values leave registers for six warps a scheduler,
// many for four. As measured on an H200.
__host__ __device__ constexpr int blocks(int threads, int held) {
    const int wanted = (held <= 10 ? 768 : 512) / threads;
    return wanted < 1 ? 1 : wanted;
}

template <int N, int COUNT>
__device__ __forceinline__ double2* buffer(unsigned char* memory) {
    return reinterpret_cast<double2*>(memory) + (COUNT > 1 ? threadIdx.y * (slot(N - 1) + 1) : 0);
}

template <int T>
struct Write {
    double2* out;
    int t;

    template <int M, int F, int R>
    __device__ __forceinline__ void operator()(Int<M>, double2 (&v)[F][R]) {
        each<0, F>([&](auto f) {
            const int j = t + value_of<decltype(f)> * T;
            if (j >= M) return;
            each<0, R>([&](auto r) { out[j + value_of<decltype(r)> * M] = v[value_of<decltype(f)>][value_of<decltype(r)>]; });
        });
    }
};

// spectra: transforms of zero-padded series, channel by channel, in pairs or (`step` 1) alone.
// One block in y: B pairs of one channel (x: pairs, y: channels). out[pair][channel][N].
template <int N, int T, int B, int... R>
__global__ void __launch_bounds__(T* B) spectra(
    const double* __restrict__ values, int n_series, int n_channels, int length, int step,
    const double2* __restrict__ roots, double2* __restrict__ out) {
    extern __shared__ __align__(16) unsigned char memory[];
    const int n_pairs = (n_series + step - 1) / step;
    const long long pair = (long long)blockIdx.x * B + threadIdx.y;
    const long long shown = min(pair, (long long)n_pairs - 1);
    const int channel = blockIdx.y, t = threadIdx.x;
    const bool second = step == 2 && 2 * shown + 1 < n_series;
    const double* x = values + (shown * step * n_channels + channel) * length;
    const double* y = x + (long long)n_channels * length;
    const auto load = [&](int i) {
        return i < length ? make_double2(x[i], second ? y[i] : 0.0) : make_double2(0.0, 0.0);
    };
    // threads beyond the last pair repeat it and write nothing
    Write<T> write{out + (pair * n_channels + channel) * N, pair < n_pairs ? t : N};
    passes<N, T, -1, 1, R...>(t, buffer<N, sizeof...(R)>(memory), roots, load, write);
}

// Largest (or least) of a value over the T threads of a transform; all of them get it.
template <int T, class Value, class Better>
__device__ __forceinline__ Value over_threads(Value value, Value* scratch, const Better& better) {
    value = fold_lanes<(T < 32 ? T : 32)>(value, better);
    if constexpr (T > 32) {
        if (threadIdx.x % 32 == 0) scratch[threadIdx.x / 32] = value;
        __syncthreads();
        value = scratch[0];
        for (int warp = 1; warp < T / 32; ++warp) value = better(value, scratch[warp]);
    }
    return value;
}

__device__ __forceinline__ double larger(double a, double b) { return a > b ? a : b; }
__device__ __forceinline__ int smaller(int a, int b) { return a < b ? a : b; }

// Finds the largest correlation of both series, and the least key of the shifts that may tie.
template <int N, int T>
struct Best {
    int t, length;
    double scale[2];  // N times the product of the norms
    const double* doubts;  // errors of NCC, by centre: read when they are needed, not held before
    int center;
    double* tops;     // scratch: 2 x T / 32, where T is more than 32
    int* keys;
    double top[2];
    int key[2];

    __device__ __forceinline__ int rank(int i) const { return rank_of_shift<int>(i, length, N); }

    template <int M, int F, int R>
    __device__ __forceinline__ void operator()(Int<M>, double2 (&v)[F][R]) {
        const double doubt = doubts[center];
        // below all correlations: with infinities small transforms spill more registers
        double first = -1e300, second = -1e300;
        each<0, F>([&](auto f) {
            const int j = t + value_of<decltype(f)> * T;
            if (M % T != 0 && j >= M) return;
            each<0, R>([&](auto r) {
                if (rank(j + value_of<decltype(r)> * M) < 2 * N) {
                    first = larger(first, v[value_of<decltype(f)>][value_of<decltype(r)>].x);
                    second = larger(second, v[value_of<decltype(f)>][value_of<decltype(r)>].y);
                }
            });
        });
        top[0] = over_threads<T>(first, tops, larger);
        top[1] = over_threads<T>(second, tops + 32, larger);
        const Ties ties0(top[0], doubt, scale[0]), ties1(top[1], doubt, scale[1]);
        int key0 = 4 * N, key1 = 4 * N;
        each<0, F>([&](auto f) {
            const int j = t + value_of<decltype(f)> * T;
            if (M % T != 0 && j >= M) return;
            each<0, R>([&](auto r) {
                const int here = rank(j + value_of<decltype(r)> * M);
                const double2 value = v[value_of<decltype(f)>][value_of<decltype(r)>];
                key0 = ties0.least(key0, value.x, here);
                key1 = ties1.least(key1, value.y, here);
            });
        });
        key[0] = over_threads<T>(key0, keys, smaller);
        key[1] = over_threads<T>(key1, keys + 32, smaller);
    }

    // what is known of one of both series
    __device__ __forceinline__ void write(
        int which, double* __restrict__ distance, int* __restrict__ shift) const {
        write_pair(top[which], scale[which], key[which], distance, shift);
    }
};

// correlate: distances and shifts of B pairs of series (grid x) and `per_block` centres (grid y).
// Writes distances[series][centre] and shifts[series][centre], the shift UNCLEAR where errors of the
// values of NCC with a centre, at most doubts[centre], could change it.
template <int N, int T, int B, int... R>
__global__ void __launch_bounds__(T* B, blocks(T* B, held<N, T, R...>())) correlate(
    const double2* __restrict__ spectra, const double* __restrict__ norms, int n_series,
    int n_channels, int length, const double2* __restrict__ centers,
    const double* __restrict__ center_norms, const double* __restrict__ doubts, int n_centers,
    int per_block, const double2* __restrict__ roots, double* __restrict__ distances, int* __restrict__ shifts) {
    extern __shared__ __align__(16) unsigned char memory[];
    // up to 32 threads find the best in their registers: one row, of which nothing is read or written
    __shared__ double tops[T > 32 ? B : 1][64];
    __shared__ int keys[T > 32 ? B : 1][64];
    const int n_pairs = (n_series + 1) / 2, t = threadIdx.x;
    const long long pair = (long long)blockIdx.x * B + threadIdx.y;
    const double2* x = spectra + min(pair, (long long)n_pairs - 1) * n_channels * N;
    const int stop = min(n_centers, (int)(blockIdx.y + 1) * per_block);
    Best<N, T> best;
    best.t = t;
    best.length = length;
    best.tops = tops[T > 32 ? threadIdx.y : 0];
    best.keys = keys[T > 32 ? threadIdx.y : 0];
    best.doubts = doubts;
    for (int center = blockIdx.y * per_block; center < stop; ++center) {
        const double2* c = centers + (long long)center * n_channels * N;
        best.center = center;
        for (int which = 0; which < 2; ++which) {
            const long long series = 2 * pair + which;
            best.scale[which] =
                series < n_series ? N * (norms[series] * center_norms[center]) : 0.0;
        }
        const auto load = [&](int i) {
            double2 product = x[i] * conjugate(c[i]);
            for (int channel = 1; channel < n_channels; ++channel)
                product = product + x[channel * N + i] * conjugate(c[channel * N + i]);
            return product;
        };
        passes<N, T, 1, 1, R...>(t, buffer<N, sizeof...(R)>(memory), roots, load, best);
        if (t < 2 && 2 * pair + t < n_series) {
            const long long place = (2 * pair + t) * n_centers + center;
            if (t == 0) best.write(0, distances + place, shifts + place);
            if (t == 1) best.write(1, distances + place, shifts + place);
        }
        if constexpr (T == 1)
            if (2 * pair + 1 < n_series)
                best.write(1, distances + (2 * pair + 1) * n_centers + center,
                           shifts + (2 * pair + 1) * n_centers + center);
    }
}
