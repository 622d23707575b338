// Complex Fourier transforms of one block, in registers and shared memory, float64.
//
// A transform of N = R1 R2 ... points goes in one pass for each radix (Stockham's order: no bit
// reversal). In a pass every thread holds whole butterflies in registers: it reads R values that lie
// N / R apart, turns them by roots of unity, transforms them, and writes them where the next pass
// finds them. The first pass reads through a functor and the last hands its values to another, so
// that a product can be taken on the way in and an arg-max on the way out without touching memory.
#pragma once

template <int I>
struct Int {
    static constexpr int value = I;
};

template <class I>
constexpr int value_of = I::value;

// f(Int<I>()) ... f(Int<N - 1>()), unrolled
template <int I, int N, class F>
__device__ __forceinline__ void each(const F& f) {
    if constexpr (I < N) {
        f(Int<I>());
        each<I + 1, N>(f);
    }
}

struct Root {
    double c, s;
};

__host__ __device__ constexpr Root series_of(double x) {
    double c = 1, s = x, tc = 1, ts = x;
    for (int i = 1; i < 12; ++i) {
        tc *= -x * x / ((2 * i - 1) * (2 * i));
        ts *= -x * x / ((2 * i) * (2 * i + 1));
        c += tc;
        s += ts;
    }
    return {c, s};
}

// exp(2 pi i num / den), folded into the first eighth of the circle
__host__ __device__ constexpr Root root(long long num, long long den) {
    if (2 * num > den) return {root(den - num, den).c, -root(den - num, den).s};
    if (4 * num > den) return {-root(den - 2 * num, 2 * den).c, root(den - 2 * num, 2 * den).s};
    if (8 * num > den) return {root(den - 4 * num, 4 * den).s, root(den - 4 * num, 4 * den).c};
    return series_of(6.28318530717958647692528676655900577 * num / den);
}

__device__ __forceinline__ double2 operator+(double2 a, double2 b) {
    return make_double2(a.x + b.x, a.y + b.y);
}
__device__ __forceinline__ double2 operator-(double2 a, double2 b) {
    return make_double2(a.x - b.x, a.y - b.y);
}
__device__ __forceinline__ double2 operator*(double2 a, double2 b) {
    return make_double2(a.x * b.x - a.y * b.y, a.x * b.y + a.y * b.x);
}
__device__ __forceinline__ double2 conjugate(double2 a) { return make_double2(a.x, -a.y); }

// a exp(SIGN 2 pi i K / R)
template <int SIGN, int K, int R>
__device__ __forceinline__ double2 turned(double2 a) {
    constexpr int k = (SIGN > 0 ? K % R : (R - K % R) % R);
    if constexpr (k == 0) return a;
    if constexpr (2 * k == R) return make_double2(-a.x, -a.y);
    if constexpr (4 * k == R) return make_double2(-a.y, a.x);
    if constexpr (4 * k == 3 * R) return make_double2(a.y, -a.x);
    constexpr Root w = root(k, R);
    return a * make_double2(w.c, w.s);
}

// The first factor of a radix that is not done in one go.
__host__ __device__ constexpr int factor(int r) {
    return r == 16 ? 4 : r % 4 == 0 && r > 8 ? r / 4 : r == 9 || r == 15 ? 3 : 2;
}

// v[k] = sum over n of v[n] exp(SIGN 2 pi i n k / R)
template <int SIGN, int R>
__device__ __forceinline__ void fft(double2 (&v)[R]) {
    if constexpr (R == 1) {
    } else if constexpr (R == 2) {
        const double2 a = v[0];
        v[0] = a + v[1];
        v[1] = a - v[1];
    } else if constexpr (R == 4) {
        const double2 a = v[0] + v[2], b = v[0] - v[2], c = v[1] + v[3];
        const double2 d = turned<SIGN, 1, 4>(v[1] - v[3]);
        v[0] = a + c;
        v[1] = b + d;
        v[2] = a - c;
        v[3] = b - d;
    } else if constexpr (R % 2 == 1 && R < 9) {
        // an odd prime: sums and differences of v[n] and v[R - n]
        double2 sum[R / 2 + 1], difference[R / 2 + 1], out[R];
        out[0] = v[0];
        each<1, R / 2 + 1>([&](auto n) {
            sum[value_of<decltype(n)>] = v[value_of<decltype(n)>] + v[R - value_of<decltype(n)>];
            difference[value_of<decltype(n)>] = v[value_of<decltype(n)>] - v[R - value_of<decltype(n)>];
            out[0] = out[0] + sum[value_of<decltype(n)>];
        });
        each<1, R / 2 + 1>([&](auto k) {
            double2 even = v[0], odd = make_double2(0, 0);
            each<1, R / 2 + 1>([&](auto n) {
                constexpr Root w = root(value_of<decltype(n)> * value_of<decltype(k)> % R, R);
                even.x += w.c * sum[value_of<decltype(n)>].x;
                even.y += w.c * sum[value_of<decltype(n)>].y;
                odd.x -= SIGN * w.s * difference[value_of<decltype(n)>].y;
                odd.y += SIGN * w.s * difference[value_of<decltype(n)>].x;
            });
            out[value_of<decltype(k)>] = even + odd;
            out[R - value_of<decltype(k)>] = even - odd;
        });
        each<0, R>([&](auto k) { v[value_of<decltype(k)>] = out[value_of<decltype(k)>]; });
    } else {
        constexpr int A = factor(R), B = R / A;
        double2 u[A][B];
        each<0, B>([&](auto n) {
            double2 a[A];
            each<0, A>([&](auto m) { a[value_of<decltype(m)>] = v[B * value_of<decltype(m)> + value_of<decltype(n)>]; });
            fft<SIGN, A>(a);
            each<0, A>([&](auto k) {
                u[value_of<decltype(k)>][value_of<decltype(n)>] = turned<SIGN, value_of<decltype(n)> * value_of<decltype(k)>, R>(a[value_of<decltype(k)>]);
            });
        });
        each<0, A>([&](auto k) {
            fft<SIGN, B>(u[value_of<decltype(k)>]);
            each<0, B>([&](auto m) { v[value_of<decltype(k)> + A * value_of<decltype(m)>] = u[value_of<decltype(k)>][value_of<decltype(m)>]; });
        });
    }
}

// A gap after every eighth value keeps the writes of a pass, R values apart, off one another's banks.
__host__ __device__ constexpr int slot(int i) { return i + (i >> 3); }

// Threads of a transform wait for each other; up to 32 of them are in one warp.
template <int T>
__device__ __forceinline__ void wait() {
    if constexpr (T <= 32)
        __syncwarp();
    else
        __syncthreads();
}

// Passes of radix R, then REST, of a transform of N points by T threads, of which this is thread t.
// NS is the product of the radices done; `roots[i]` is exp(2 pi i i / N). load(i) gives value i at the
// first pass; finish(Int<N / R>(), v) takes those of the last: v[f][r] is value t + f T + r N / R,
// absent where t + f T is N / R or more.
template <int N, int T, int SIGN, int NS, int R, int... REST, class Load, class Finish>
__device__ __forceinline__ void passes(
    int t, double2* values, const double2* __restrict__ roots, const Load& load, Finish& finish) {
    constexpr int M = N / R, F = (M + T - 1) / T;
    constexpr bool FIRST = NS == 1;
    double2 v[F][R];
    each<0, F>([&](auto f) {
        const int j = t + value_of<decltype(f)> * T;
        if (M % T != 0 && j >= M) return;
        each<0, R>([&](auto r) {
            if constexpr (FIRST)
                v[value_of<decltype(f)>][value_of<decltype(r)>] = load(j + value_of<decltype(r)> * M);
            else
                v[value_of<decltype(f)>][value_of<decltype(r)>] = values[slot(j + value_of<decltype(r)> * M)];
        });
        if constexpr (!FIRST) {
            double2 w = roots[j % NS * (N / (NS * R))];
            if constexpr (SIGN < 0) w = conjugate(w);
            double2 power = w;
            each<1, R>([&](auto r) {
                v[value_of<decltype(f)>][value_of<decltype(r)>] = v[value_of<decltype(f)>][value_of<decltype(r)>] * power;
                power = power * w;
            });
        }
        fft<SIGN, R>(v[value_of<decltype(f)>]);
    });
    if constexpr (!FIRST) wait<T>();
    if constexpr (sizeof...(REST) == 0) {
        finish(Int<M>(), v);
    } else {
        each<0, F>([&](auto f) {
            const int j = t + value_of<decltype(f)> * T;
            if (M % T != 0 && j >= M) return;
            const int first = j / NS * (NS * R) + j % NS;
            each<0, R>([&](auto r) { values[slot(first + value_of<decltype(r)> * NS)] = v[value_of<decltype(f)>][value_of<decltype(r)>]; });
        });
        wait<T>();
        passes<N, T, SIGN, NS * R, REST...>(t, values, roots, load, finish);
    }
}
