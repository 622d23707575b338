// The register wavefront: how a group of lanes goes down the rows of a warping matrix.
//
// One group of G lanes computes one matrix at a time. The series with the columns lies in registers:
// lane l owns K consecutive columns and keeps the current row of the warping matrix there,
// D[0..K-1]. The other series streams by, ROWS points a step: at step t lane l is at row
// ROWS (t - l), so the left neighbour that it needs is what lane l - 1 computed one step earlier, and
// one shuffle a row passes it on.
//
//   columns ->   lane 0   lane 1   lane 2  ...          No lane is ever masked. Before its first
//   step 0      row 0      ---      ---                 row a lane computes on infinities, which
//   step 1      row 1     row 0     ---                 stay infinite; after its last row it
//   step 2      row 2     row 1    row 0                computes on padding, to the right of and
//                                                       below everything that is used.
//
// Series longer than G K columns go in strips from left to right (STRIPS, then G = 32): the last
// lane writes its right edge row by row to `edge`, lane 0 reads it in the next strip.
//
// Kernels that do so: dtw.cu (pairs of series), turns.cu (runs of circular shifts).
#pragma once
#include "include/cells.cuh"
#include "include/constants.cuh"
#include "include/groups.cuh"

// Rows between two fetches of points.
constexpr int UNROLL = 4;
// Threads of a block.
constexpr int THREADS = ELASTIC_THREADS;

// Channel c, point i of series s of a set is values[(s * C + c) * stride + i]; strides are multiples
// of 4, and the memory before and behind a set may be read (PAD in dtw.py): lanes do so while they
// are ahead of the first row or behind the last, and when they fetch points early. What they
// read there is finite and changes nothing.

// 16 bytes at once
template <typename T>
struct alignas(16) Vector {
    static constexpr int SIZE = 16 / sizeof(T);
    T v[SIZE];
};

// Which columns of a lane are inside the band in two rows: bit k + 1 is that of column k in the first row, and of
// column k + 1 in the second. A cell asks by one instruction; to compare places takes two, and where the compiler
// keeps what it compared for the next two rows, three.
template <int K, bool BAND>
struct Inside {
    unsigned bits[K / 32 + 1];

    // column 0 is `offset` from the low end of the band in the first row
    __device__ __forceinline__ Inside(int offset, int reach) {
        if constexpr (BAND)
#pragma unroll
            for (int w = 0; w <= K / 32; ++w)
                bits[w] = first_bits(2 * reach + 2 - offset - 32 * w) & ~first_bits(1 - offset - 32 * w);
    }

    // row 0 or 1
    __device__ __forceinline__ bool operator()(int k, int row) const {
        const int bit = k + 1 - row;
        if constexpr (BAND) return bits[bit / 32] >> bit % 32 & 1;
        return true;
    }

private:
    __device__ __forceinline__ static unsigned first_bits(int count) {
        // a shift by 32 needs a longer word
        if constexpr (K < 31) return (1u << min(max(count, 0), K + 1)) - 1;
        return (unsigned)((1ull << min(max(count, 0), 32)) - 1);
    }
};

// K columns of one lane, C channels.
template <typename T, int K, int C, typename Cell, bool BAND>
struct Columns {
    typedef Value<Cell, T> V;
    T y[C][K];
    T y_before[C];   // points left of column 0 (LOOKS_BACK)
    V D[K];
    Cell cell;

    // columns beyond the end of the series hold anything: they lie right of all that is used. `leftmost`:
    // whether column 0 is the first of the series
    __device__ __forceinline__ void load(const T* series, int stride, bool leftmost) {
        constexpr int V = Vector<T>::SIZE;
#pragma unroll
        for (int c = 0; c < C; ++c)
#pragma unroll
            for (int k = 0; k < K; k += V) {
                const auto loaded = *reinterpret_cast<const Vector<T>*>(series + c * stride + k);
#pragma unroll
                for (int i = 0; i < V; ++i) y[c][k + i] = loaded.v[i];
            }
        if constexpr (Cell::LOOKS_BACK)
#pragma unroll
            for (int c = 0; c < C; ++c) y_before[c] = leftmost ? T(0) : series[c * stride - 1];
        if constexpr (Cell::SCALED)
#pragma unroll
            for (int c = 0; c < C; ++c)
#pragma unroll
                for (int k = 0; k < K; ++k) y[c][k] = scaled(cell, y[c][k]);
        fill(Arithmetic<Value<Cell, T>>::infinity());
    }

    // the cell of column k, from those before it, of a row with the points x, and x_before above it; the j - i of
    // the cell is `place` + `column`. Two rows at once share what depends on the same `place` and column
    template <typename Best>
    __device__ __forceinline__ V join(
        const T (&x)[C], const T (&x_before)[C], int k, const Best& best, int place,
        int column) const {
        CellPoints<T, C> at(x, &y[0][k], K, place, column);
        if constexpr (Cell::LOOKS_BACK) {
            if (k > 0) at.look_back(x_before, &y[0][k - 1], K);
            else at.look_back(x_before, y_before, 1);
        }
        return cell.join(at, best);
    }

    __device__ __forceinline__ static V mask(V value, bool inside) {
        return inside ? value : Arithmetic<V>::infinity();
    }

    // next row, x_before its points in the row above; `diagonal` and `left` are the values left of column 0 in
    // the row above and in this
    __device__ __forceinline__ void row(
        const T (&x)[C], const T (&x_before)[C], V diagonal, V left, int offset, int reach) {
        const Inside<K, BAND> inside(offset, reach);
#pragma unroll
        for (int k = 0; k < K; ++k) {
            const auto best = cells_before<Cell>(diagonal, D[k], left);
            diagonal = D[k];
            const V value = join(x, x_before, k, best, offset - reach, k);
            left = D[k] = mask(value, inside(k, 0));
        }
    }

    // next two rows, skewed by one column, so that two chains of dependent cells are in flight;
    // `single` leaves D at the first of them
    __device__ __forceinline__ V two_rows(
        const T (&x0)[C], const T (&x1)[C], const T (&x_before)[C], V diagonal, V left0, V left1,
        bool single, int offset, int reach) {
        const Inside<K, BAND> inside(offset, reach);
        V diagonal1 = left0;
#pragma unroll
        for (int k = 0; k < K; ++k) {
            const auto best0 = cells_before<Cell>(diagonal, D[k], left0);
            diagonal = D[k];
            const V value0 = join(x0, x_before, k, best0, offset - reach, k);
            const V above = mask(value0, inside(k, 0));
            const auto best1 = cells_before<Cell>(diagonal1, above, left1);
            const V value1 = join(x1, x0, k, best1, offset - reach, k - 1);
            left1 = mask(value1, inside(k, 1));
            D[k] = single ? above : left1;
            diagonal1 = left0 = above;
        }
        return left0;
    }

    // Fill the row above the first with sums of steps to the right; `left` is that of the column before. The
    // band leaves the first `reach` columns of the matrix, of which column 0 of the lane is `first`.
    __device__ __forceinline__ V open(V left, int first, int reach) {
#pragma unroll
        for (int k = 0; k < K; ++k) {
            T point[C];
#pragma unroll
            for (int c = 0; c < C; ++c) point[c] = y[c][k];
            left = plus(cell.skip(CellPoints<T, C>(point, point)), left);
            if (BAND && first + k >= reach) left = Arithmetic<V>::infinity();
            D[k] = left;
        }
        return left;
    }

    // least of the first `count` columns
    __device__ __forceinline__ V least(int count) const {
        V value = Arithmetic<V>::infinity();
#pragma unroll
        for (int k = 0; k < K; ++k)
            if (k < count && D[k] < value) value = D[k];
        return value;
    }

    __device__ __forceinline__ void fill(V value) {
#pragma unroll
        for (int k = 0; k < K; ++k) D[k] = value;
    }

    __device__ __forceinline__ V pick(int k) const {
        V value = D[0];
#pragma unroll
        for (int i = 1; i < K; ++i)
            if (i == k) value = D[i];
        return value;
    }
};

template <typename T, int C>
__device__ __forceinline__ void fetch(T (&x)[UNROLL][C], const T* points, int stride) {
#pragma unroll
    for (int u = 0; u < UNROLL; ++u)
#pragma unroll
        for (int c = 0; c < C; ++c) x[u][c] = points[c * stride + u];
}

template <typename T>
__device__ __forceinline__ void fetch_edge(T (&in)[UNROLL], const T* edge) {
#pragma unroll
    for (int u = 0; u < UNROLL; ++u) in[u] = edge[u];
}

// The state of one lane in a strip, and one step of it.
template <typename T, int K, int C, int ROWS, bool STRIPS, typename Cell, bool BAND>
struct Wavefront {
    typedef Value<Cell, T> V;
    Columns<T, K, C, Cell, BAND> columns;
    V diagonal;       // left of column 0 in the row above
    V above;          // ROWS = 2: last column of the first of the two rows
    V front;          // BORDERS: lane 0, before column 0 of the matrix in the row above
    V top;            // BORDERS: above the first row, last column of the lane, once that has begun
    T x_before[C];    // LOOKS_BACK: the points in the row above
    int lane, G;
    int first;        // first column of the strip
    int row0;         // row of step 0
    int reach;        // half width of the band
    V* edge;

    // what the strip to the left holds for row i
    __device__ __forceinline__ V from_edge(V value, int i) const {
        if (BAND && abs(i - first + 1) > reach) return Arithmetic<V>::infinity();
        return value;
    }

    // what lies left of column 0 of lane 0 in row i; `value` is what the edge holds, x the points of the row
    __device__ __forceinline__ V left_of_strip(const T (&x)[C], V value, int i) {
        if (STRIPS && first > 0) return from_edge(value, i);
        if constexpr (Cell::BORDERS) {
            front = plus(columns.cell.skip(CellPoints<T, C>(x, x)), front);
            if (!BAND || i < reach) return front;
        }
        return Arithmetic<V>::infinity();
    }

    // BORDERS: fill the row above the first, unless the band leaves none of it; `left` is the cell left of this lane
    __device__ __forceinline__ void open(V left) {
        if (row0 > 0) return;
        diagonal = left;
        top = columns.open(left, first + lane * K, reach);
    }

    // `points` are those of ROWS rows, `in` the edge of the strip to the left in those rows, `t` the
    // step, `single` whether only the first of two rows counts
    __device__ __forceinline__ void step(const T (*points)[C], const V* in, int t, bool single) {
        const int i = row0 + ROWS * t;               // row of lane 0
        const int own = i - ROWS * lane;             // row of this lane
        const int offset = first + lane * K - own + reach;
        T x[ROWS][C];
#pragma unroll
        for (int u = 0; u < ROWS; ++u)
#pragma unroll
            for (int c = 0; c < C; ++c) x[u][c] = scaled(columns.cell, points[u][c]);
        if constexpr (Cell::LOOKS_BACK)
#pragma unroll
            for (int c = 0; c < C; ++c) x_before[c] = own == 0 ? T(0) : x_before[c];
        if (ROWS == 1) {
            V left = __shfl_up_sync(ALL, columns.D[K - 1], 1, G);
            if (lane == 0) left = left_of_strip(x[0], STRIPS ? in[0] : V(0), i);
            columns.row(x[0], x_before, diagonal, left, offset, reach);
            diagonal = left;
        } else {
            V left0 = __shfl_up_sync(ALL, above, 1, G);
            V left1 = __shfl_up_sync(ALL, columns.D[K - 1], 1, G);
            if (lane == 0) left0 = left_of_strip(x[0], STRIPS ? in[0] : V(0), i);
            if (lane == 0) left1 = left_of_strip(x[1], STRIPS ? in[1] : V(0), i + 1);
            above = columns.two_rows(
                x[0], x[1], x_before, diagonal, left0, left1, single, offset, reach);
            diagonal = left1;
        }
        if constexpr (Cell::LOOKS_BACK)
#pragma unroll
            for (int c = 0; c < C; ++c) x_before[c] = x[ROWS - 1][c];
        if (STRIPS && lane == G - 1 && t >= G - 1) {
            V* out = edge + own;
            if (ROWS == 2) out[0] = above;
            out[ROWS - 1] = columns.D[K - 1];
        }
    }

    // All steps of a strip of `n_rows` rows. `points` are those of this lane in step 0, `stop` is the
    // step in which the lane is done, or that ends the strip: after it, `end` is called. With BEGIN,
    // `begin` is called before the step in which the lane reaches its first row, with `top` of the lane on its left.
    template <bool BEGIN, typename Begin, typename End>
    __device__ __forceinline__ void sweep(
        const T* points, int stride, int stop, int n_rows, Begin begin, End end) {
        constexpr int STEPS = UNROLL / ROWS;
        const V* in_edge = STRIPS ? edge + row0 : nullptr;
        if constexpr (Cell::LOOKS_BACK)
#pragma unroll
            for (int c = 0; c < C; ++c) x_before[c] = points[c * stride - 1];
        // by shuffles on every device: with the one instruction there is on some, searches take a twentieth longer
        const int first_stop = -fold_lanes(-stop, Larger()), last_stop = fold_lanes(stop, Larger());
        int t = 0;
        // BEGIN: the steps in which lanes reach their first row go one by one, as do the last ones
#pragma unroll 1
        for (int phase = BEGIN ? 0 : 1; phase < 2; ++phase) {
            // while no group of the warp ends: UNROLL rows at a time, points fetched ahead
            const int fast_until = phase == 0 ? 0 : first_stop;
            T x[UNROLL][C];
            V in[UNROLL];
            fetch(x, points + ROWS * t, stride);
            if (STRIPS) fetch_edge(in, in_edge + ROWS * t);
            // a pointer that moves: one that is computed anew in each turn takes eighteen instructions
            const T* ahead = points + ROWS * t + UNROLL;
            for (; t + STEPS <= fast_until; t += STEPS, ahead += UNROLL) {
                T next[UNROLL][C];
                V next_in[UNROLL];
                fetch(next, ahead, stride);
                if (STRIPS) fetch_edge(next_in, in_edge + ROWS * t + UNROLL);
#pragma unroll
                for (int u = 0; u < STEPS; ++u) step(x + u * ROWS, in + u * ROWS, t + u, false);
#pragma unroll
                for (int u = 0; u < UNROLL; ++u) {
#pragma unroll
                    for (int c = 0; c < C; ++c) x[u][c] = next[u][c];
                    if (STRIPS) in[u] = next_in[u];
                }
            }
            // the steps in which groups begin or end
            const int until = phase == 0 ? min(G - 1, last_stop) : last_stop;
#pragma unroll 1
            for (; t <= until; ++t) {
#pragma unroll
                for (int i = 0; i < ROWS; ++i) {
#pragma unroll
                    for (int c = 0; c < C; ++c) x[i][c] = points[c * stride + ROWS * t + i];
                    if (STRIPS) in[i] = in_edge[ROWS * t + i];
                }
                V left = V(0);
                if constexpr (BEGIN && Cell::BORDERS) left = __shfl_up_sync(ALL, top, 1, G);
                if (BEGIN && t == lane) begin(left);
                step(x, in, t, ROWS == 2 && t == stop && n_rows % 2 == 1);
                if (t == stop) end();
            }
        }
        if (STRIPS) __syncwarp();
    }
};
