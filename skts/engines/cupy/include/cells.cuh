// Cell policies: what the steps into a cell of a warping matrix cost.
//
//     D(i,j) = least of  D(i-1,j-1), by the diagonal,  D(i-1,j), by the step down (up is above it),
//                        D(i,j-1), by the step right,  each joined with the cost of that step.
//
// Kernels take a policy as one template parameter, Cell, and as their argument `cell` an object of
// that class, which holds the parameters of the distance (none: an empty class). A policy has
//
//   join(at, before)   the value of a cell, from those before.
//   UNIFORM            whether all three steps into a cell cost the same. If so, `before` is the
//                      least of the three cells before, else it holds all three (`Before`).
//   PLACED             whether the costs depend on at.offset(), the j - i of the cell.
//   LOOKS_BACK         whether they depend on the points i - 1 and j - 1, too; before the first is 0.
//   BORDERS            whether cells before the first row and column are sums of steps, else they are
//                      infinite, or 0 where a path may begin. If so, `skip(at)` is the price of leaving
//                      out the point x of `at`, of either series.
//   RELATIVE           whether cells hold D(i,j) less the price of some path to them, so that some steps cost
//                      nothing. If so, the cell before all others holds `origin(n)` for n rows, in place of 0,
//                      and `settle` undoes it.
//   SCALED             whether points are multiplied by `scale`, a power of two, before cells look at them.
//   OWN                whether the last channel of a series is none, but holds a number of the series.
//                      If so, `meet(x, y)` is called with those of two series, before their cells.
//   COUNTS             whether the values of cells are whole numbers, which float holds whatever the
//                      type of the points.
//   SETTLES            whether distances are more than accumulated costs. If so, `settle` makes them, of a
//                      cost, the lengths, and the last points in the first channel.
//
// `at` tells what a cell looks at (`CellPoints`): at.x(c) and at.y(c) are channel c of the points i
// and j, at.x_before(c) and at.y_before(c) of those before them, at.total(metric) is the cost of the two
// points by a metric of single channels, at.sum(term) adds up term(c).
//
// To add a distance, write its class, and let `cell_of` in elastic/cells.py name it. Policies whose
// steps cost differently are in stepped_cells.cuh. Kernels refuse by `static_assert` a policy that
// needs more than they do.
#pragma once
#include "include/arithmetic.cuh"

// Metrics of single channels: term(x, y), and add(x, y, sum), which is sum + term(x, y).

struct Squared {
    enum { FUSED = true };  // `add` is one multiply-add

    template <typename T>
    static __device__ __forceinline__ T term(T x, T y) { return Arithmetic<T>::square(x, y); }

    template <typename T>
    static __device__ __forceinline__ T add(T x, T y, T sum) {
        return Arithmetic<T>::add_square(x, y, sum);
    }
};

struct Absolute {
    enum { FUSED = false };

    template <typename T>
    static __device__ __forceinline__ T term(T x, T y) { return Arithmetic<T>::difference(x, y); }

    template <typename T>
    static __device__ __forceinline__ T add(T x, T y, T sum) {
        return Arithmetic<T>::add(sum, Arithmetic<T>::difference(x, y));
    }
};

// One of both, chosen at run time.
struct Either {
    enum { FUSED = false };
    int squared;

    template <typename T>
    __device__ __forceinline__ T term(T x, T y) const {
        return squared ? Squared::term(x, y) : Absolute::term(x, y);
    }

    template <typename T>
    __device__ __forceinline__ T add(T x, T y, T sum) const {
        return Arithmetic<T>::add(sum, term(x, y));
    }
};

// The points that a cell looks at, of C channels in registers.
template <typename T, int C>
struct CellPoints {
    enum { CHANNELS = C };

    T point[C], other[C], point_before[C], other_before[C];
    int from_diagonal, column;

    // those of y lie `stride` apart; the cell is `offset` + `k` right of the diagonal. By value: what has an
    // address is not always kept in registers
    __device__ __forceinline__ CellPoints(
        const T (&x)[C], const T* y, int stride = 1, int offset = 0, int k = 0)
        : from_diagonal(offset), column(k) {
#pragma unroll
        for (int c = 0; c < C; ++c) {
            point[c] = x[c];
            other[c] = y[c * stride];
        }
    }

    __device__ __forceinline__ void look_back(const T (&x)[C], const T* y, int stride) {
#pragma unroll
        for (int c = 0; c < C; ++c) {
            point_before[c] = x[c];
            other_before[c] = y[c * stride];
        }
    }

    __device__ __forceinline__ T x(int c) const { return point[c]; }
    __device__ __forceinline__ T y(int c) const { return other[c]; }
    __device__ __forceinline__ T x_before(int c) const { return point_before[c]; }
    __device__ __forceinline__ T y_before(int c) const { return other_before[c]; }
    __device__ __forceinline__ int offset() const { return from_diagonal + column; }
    // as a number: the first is converted once a row
    __device__ __forceinline__ T offset_as_number() const { return T(from_diagonal) + T(column); }

    template <typename Term>
    __device__ __forceinline__ auto sum(const Term& term) const {
        auto total = term(0);
#pragma unroll
        for (int c = 1; c < C; ++c) total = plus(total, term(c));
        return total;
    }

    template <typename Metric>
    __device__ __forceinline__ T total(const Metric& metric) const {
        T cost = metric.term(x(0), y(0));
#pragma unroll
        for (int c = 1; c < C; ++c) cost = metric.add(x(c), y(c), cost);
        return cost;
    }
};

// The same of series in memory, whose channels are counted at run time.
template <typename T>
struct SeriesPoints {
    enum { CHANNELS = 0 };

    T first_x, first_y;      // channel 0, which a kernel may have fetched early
    const T *point, *other;  // points i and j
    int n_channels;
    long long x_stride, y_stride;
    int from_diagonal;

    int row, col;            // i and j, for what lies before

    __device__ __forceinline__ T x(int c) const { return c == 0 ? first_x : point[c * x_stride]; }
    __device__ __forceinline__ T y(int c) const { return c == 0 ? first_y : other[c * y_stride]; }
    __device__ __forceinline__ T x_before(int c) const {
        return row > 0 ? point[c * x_stride - 1] : T(0);
    }
    __device__ __forceinline__ T y_before(int c) const {
        return col > 0 ? other[c * y_stride - 1] : T(0);
    }
    __device__ __forceinline__ int offset() const { return from_diagonal; }
    __device__ __forceinline__ T offset_as_number() const { return T(from_diagonal); }

    template <typename Term>
    __device__ __forceinline__ auto sum(const Term& term) const {
        auto total = term(0);
#pragma unroll 1
        for (int c = 1; c < n_channels; ++c) total = plus(total, term(c));
        return total;
    }

    template <typename Metric>
    __device__ __forceinline__ T total(const Metric& metric) const {
        T cost = metric.term(first_x, first_y);
// most series have one channel, and the code of four more takes registers all the same
#pragma unroll 1
        for (int c = 1; c < n_channels; ++c)
            cost = metric.add(point[c * x_stride], other[c * y_stride], cost);
        return cost;
    }
};

// Sums of steps along a border, one after the other: of leaving out the first `count` points of a series.
template <typename Cell>
struct Border {
    const double* points;
    int n_channels, stride, count;
    double sum;

    // the sum up to point k, which is the next one; infinity beyond the last
    __device__ __forceinline__ double next(const Cell& cell, int k) {
        if constexpr (Cell::BORDERS)
            if (k < count) {
                const double* point = points + k;
                const SeriesPoints<double> at{
                    *point, *point, point, point, n_channels, stride, stride, 0, 0, 0};
                return sum = plus(double(cell.skip(at)), sum);
            }
        return Arithmetic<double>::infinity();
    }
};

// The three cells before one.
template <typename T>
struct Before {
    T diagonal, up, left;

    // for a cell that no path may reach, plus infinity
    __device__ __forceinline__ Before operator+(T wall) const {
        return {diagonal + wall, up + wall, left + wall};
    }
};

// The argument of `join` of a policy: the least of the three cells before, or all of them.
template <typename Cell, typename T>
__device__ __forceinline__ auto cells_before(T diagonal, T up, T left) {
    if constexpr (Cell::UNIFORM) return Arithmetic<T>::min3(diagonal, up, left);
    else return Before<T>{diagonal, up, left};
}

// The properties of most policies.
struct PlainCell {
    enum {
        UNIFORM = true,
        PLACED = false,
        LOOKS_BACK = false,
        BORDERS = false,
        OWN = false,
        COUNTS = false,
        SETTLES = false,
        RELATIVE = false,
        SCALED = false
    };

    // a policy without numbers of the series takes no notice
    template <typename T>
    __device__ __forceinline__ void meet(T, T) {}
};

// The type of the values of cells, for points of type T.
template <bool COUNTS, typename T>
struct ValueType {
    typedef T type;
};
template <typename T>
struct ValueType<true, T> {
    typedef float type;
};
template <typename Cell, typename T>
using Value = typename ValueType<Cell::COUNTS, T>::type;

// The value of the cell before all others, of a matrix of n rows.
template <typename Cell, typename V>
__device__ __forceinline__ V origin_of(const Cell& cell, int n) {
    if constexpr (Cell::RELATIVE) return cell.origin(n);
    else return V(0);
}

// A point as cells look at it.
template <typename Cell, typename T>
__device__ __forceinline__ T scaled(const Cell& cell, T point) {
    if constexpr (Cell::SCALED) return point * cell.scale;
    else return point;
}

// The result of a pair of n and m points, by the value of its last cell: a distance, or, unless `root`,
// an accumulated cost. `x` and `y` are their last points.
template <typename Cell, typename T>
__device__ __forceinline__ T result_of(
    const Cell& cell, Value<Cell, T> cost, int n, int m, const T* x, const T* y, int root) {
    if constexpr (Cell::SETTLES) return cell.settle(T(cost), n, m, *x, *y);
    else return root ? sqrt(T(cost)) : T(cost);
}

// Dynamic time warping: costs along a path are added.
template <typename Metric>
struct Dtw : PlainCell {
    template <typename At, typename T>
    __device__ __forceinline__ T join(const At& at, T best) const {
        if constexpr (Metric::FUSED && At::CHANNELS == 1)
            return Metric::add(at.x(0), at.y(0), best);
        else return Arithmetic<T>::add(at.total(Metric{}), best);
    }
};

// Dog-keeper distance: the largest cost of a path counts.
template <typename Metric>
struct DogKeeper : PlainCell {
    template <typename At, typename T>
    __device__ __forceinline__ T join(const At& at, T best) const {
        const T cost = at.total(Metric{});
        return Arithmetic<T>::larger(cost, best);
    }
};

// Any of these four, chosen at run time: one instance of a kernel serves all.
struct AnyWarping : PlainCell {
    int squared, largest;

    template <typename At, typename T>
    __device__ __forceinline__ T join(const At& at, T best) const {
        const T cost = at.total(Either{squared});
        return largest ? Arithmetic<T>::larger(cost, best) : Arithmetic<T>::add(cost, best);
    }
};

// Dynamic time warping between windows of `width` points, the first of which are the points of `at`. The sum is defined
// by blocks of `width` points of x: over the part of the windows in the block in which they begin, from its end back; over
// the part in the next one, from its beginning on; and both are added. See `ShapeDTW` in families/elastic/distances.py.
struct Windows : PlainCell {
    int squared, width;

    template <typename At, typename T>
    __device__ __forceinline__ T join(const At& at, T best) const {
        const int inside = width - at.row % width;
        T sum = T(0), behind = T(0);
#pragma unroll 1
        for (int k = 0; k < width; ++k) {
            const int place = k < inside ? inside - 1 - k : k;
            const T *x = at.point + place, *y = at.other + place;
            T term = Either{squared}.term(*x, *y);
#pragma unroll 1
            for (int c = 1; c < at.n_channels; ++c)
                term = Either{squared}.add(x[c * at.x_stride], y[c * at.y_stride], term);
            if (k < inside) sum = Arithmetic<T>::add(sum, term);
            else behind = Arithmetic<T>::add(behind, term);
        }
        return Arithmetic<T>::add(Arithmetic<T>::add(sum, behind), best);
    }
};
