// The search of a join: covariances walk down strips of columns, and runs of cells that may hold one of the
// nearest windows of a window are listed.
//
// `seeds` (seeds.cu) computes the first row of each band and the first column of each panel, `join` walks.
// For every window, `tops` holds a score that its k-th nearest neighbour is known to reach; a run of cells
// whose best score may reach it goes on a list (runs.cuh), and is measured later (candidates.cu).
//
//               columns
//          +-------------+-------------+    A panel: the columns of one warp, in strips of 32 K.
//     rows |strip|strip|.|    panel    |    A band: the rows that it walks down, `height` of them, in chunks of 32.
//          |  |  |     | |             |    Lane l has the columns from l K on of a strip, in registers.
//          |  v  |     | |    band     |
//          +-------------+-------------+
//
// A block is one warp, so that the compiler knows what its threads share.
#include "profile/errors.cuh"
#include "profile/runs.cuh"

// Relative allowances: below a score for its rounding and that of certified values, above it for what
// its leading bits leave out, too.
// see "leading bits" in docs/developer/numerics.rst
template <typename T>
constexpr double BELOW = sizeof(T) == 4 ? SCORE_BELOW32 : SCORE_BELOW64;
template <typename T>
constexpr double ABOVE = sizeof(T) == 4 ? SCORE_ABOVE32 : SCORE_ABOVE64;
// Weight of what is no window: its scores are 0, or far below those of all windows that are compared as they are.
template <typename T, bool NORMALIZE>
constexpr T NO_WEIGHT = NORMALIZE ? T(0) : T(-1e30);
// Rows that are walked before their best scores are looked at: one for each lane.
constexpr int CHUNK = 32;

// Leading bits of the least score that must be looked at for a window whose neighbour reaches `known`.
template <typename T>
__device__ __forceinline__ int least_to_look_at(int known, double slack) {
    if (known == TAKES_NO_PART) return known;
    const double least = (least_of<T>(known) - slack) * (1 - ABOVE<T>);
    return max(max(bits_below<T>(least) - 1, bits_below<T>(slack / 2) - 1), 1);
}

// The shared memory of a warp.
template <typename T, int K, bool COLUMNS>
struct WarpMemory {
    // columns of a lane: in steps of 16 bytes, and such that lanes do not share banks
    static constexpr int WORDS = sizeof(T) / 4, PITCH = ((K * WORDS + 3) / 4 * 4 | 4) / WORDS;
    static constexpr int PITCH_NEEDED = (K + 3) / 4 * 4 | 4;
    // a row of the chunk: its step and weight, the covariance that enters on the left, the one that leaves on the
    // right, and the score from which on a pair must be looked at
    struct alignas(16) ChunkRow {
        T p, r, weight, enters, leaves;
        int needed;
    };
    ChunkRow rows[CHUNK + 1];
    Row<T> next_rows[CHUNK];  // of the next chunk, as they come from global memory
    T next_entering[CHUNK];
    alignas(16) T weights[32 * PITCH];
    // of columns: from which score on a pair must be looked at, or the best score of the chunk if that is more
    alignas(16) int needed[COLUMNS ? 32 * PITCH_NEEDED : 1];
    int bests[CHUNK * 33];  // best score of every lane in every row
    Slack slack;
};

// The cells of a warp: a panel of columns, `left` to `right`, and a band of rows, `top` to `bottom`.
struct Area {
    int panel, band, left, right, top, bottom;
};

// Find those of this block: squares of so many bands and panels come one after the other, so that few warps
// of a time share a window, whose neighbours they would list before they know of each other's.
template <int K>
__device__ __forceinline__ Area find_area(
    int row, int row_stop, int col, int col_stop, int height, int n_strips, int n_panels
) {
    const int warp = blockIdx.x, squares = (n_panels + JOIN_SQUARE - 1) / JOIN_SQUARE;
    const int square = warp / (JOIN_SQUARE * JOIN_SQUARE), inside = warp % (JOIN_SQUARE * JOIN_SQUARE);
    const int panel = square % squares * JOIN_SQUARE + inside % JOIN_SQUARE;
    const int band = square / squares * JOIN_SQUARE + inside / JOIN_SQUARE;
    const int left = col + panel * n_strips * 32 * K, right = min(col_stop, left + n_strips * 32 * K);
    const int top = row + band * height, bottom = min(row_stop, top + height);
    return Area{panel, band, left, right, top, bottom};
}

// Start to copy a chunk of rows, and the covariances that enter them on the left, which comes while the one before is
// walked. Lines are padded.
template <typename T, int K, bool COLUMNS>
__device__ __forceinline__ void fetch(
    WarpMemory<T, K, COLUMNS>& memory, const Row<T>* rows, const T* entering, int chunk
) {
    const int lane = threadIdx.x;
    const char* from = (const char*)(rows + chunk + lane);
    char* to = (char*)&memory.next_rows[lane];
#pragma unroll
    for (int part = 0; part < (int)sizeof(Row<T>); part += 16) copy_16(to + part, from + part);
    constexpr int EACH = 16 / sizeof(T);
    if (lane < CHUNK / EACH) copy_16(&memory.next_entering[lane * EACH], entering + chunk + lane * EACH);
}

// Look up from which score on pairs of columns `start` to `end` must be looked at, as it is known now.
template <typename T, int K>
__device__ __forceinline__ void look_up_needs(
    WarpMemory<T, K, true>& memory, const Side* sides, int start, int end, int skipped, int height
) {
    const double slack = memory.slack.col_after(height);
    for (int c = threadIdx.x; c < 32 * K; c += 32) {
        const int j = start + c, place = c / K * WarpMemory<T, K, true>::PITCH_NEEDED + c % K;
        const int known = j < end ? __ldcg(&sides[1].tops[j]) : TAKES_NO_PART;
        if (known <= skipped) atomicMax(&sides[1].skipped[j], skipped);
        memory.needed[place] = least_to_look_at<T>(known, slack);
    }
}

// Bring the weights of columns `start` to `end` to shared memory.
template <typename T, int K, bool COLUMNS, bool NORMALIZE>
__device__ __forceinline__ void fetch_weights(
    WarpMemory<T, K, COLUMNS>& memory, const T* weights, int start, int end
) {
    constexpr int PITCH = WarpMemory<T, K, COLUMNS>::PITCH;
    for (int c = threadIdx.x; c < 32 * K; c += 32)
        memory.weights[c / K * PITCH + c % K] = start + c < end ? weights[start + c] : NO_WEIGHT<T, NORMALIZE>;
}

// One row down, to row t of the chunk. The covariance on the left of each lane moves in for the next row meanwhile.
template <typename T, int K, bool COLUMNS>
__device__ __forceinline__ void step_down(WarpMemory<T, K, COLUMNS>& memory, Strip<T, K>& strip, T& from_left, int t) {
    const T enters = memory.rows[t + 1].enters;
    strip.step(memory.rows[t].p, memory.rows[t].r, from_left);
    if (threadIdx.x == 31) memory.rows[t].leaves = strip.cov[K - 1];
    from_left = strip.from_left(enters, threadIdx.x);
}

// Load the columns of this lane, of a strip from `start` to `end`. Covariances are those of the first row of the band,
// which begins at `at`, one column further left: the first step of the walk moves them.
template <typename T, int K, bool COLUMNS>
__device__ __forceinline__ void load_columns(
    WarpMemory<T, K, COLUMNS>& memory, Strip<T, K>& columns, const T* q, const T* s, const T* first_rows,
    long long at, int start, int end, int col
) {
    constexpr int PITCH = WarpMemory<T, K, COLUMNS>::PITCH;
    const int lane = threadIdx.x, column = start + lane * K;
#pragma unroll
    for (int k = 0; k < K; ++k) {
        const bool inside = column + k < end;
        columns.q[k] = inside ? q[column + k] : T(0);
        columns.s[k] = inside ? s[column + k] : T(0);
        columns.weight[k] = memory.weights[lane * PITCH + k];
        columns.cov[k] = column + k + 1 < end ? first_rows[at + (column + k + 1 - col)] : T(0);
    }
}

// Unpack the row of this lane, of a chunk of `count`. Where the band begins (`first`), its row is reached by a step of
// zeros, which moves the covariances of `load_columns` by one column; the one at `corner` enters.
template <typename T, int K, bool COLUMNS, bool NORMALIZE>
__device__ __forceinline__ void unpack_row(
    WarpMemory<T, K, COLUMNS>& memory, int count, int needed, bool first, const T* first_rows, long long corner
) {
    const int lane = threadIdx.x;
    const Row<T> row = memory.next_rows[lane];
    auto& place = memory.rows[lane];
    place.needed = needed;
    place.p = row.p, place.r = row.r, place.weight = row.weight;
    place.enters = memory.next_entering[lane];
    if (first && lane == 0) {
        place.p = place.r = 0;
        place.enters = first_rows[corner];
    }
    // nothing is near to rows beyond the last
    if (lane >= count) place.weight = NO_WEIGHT<T, NORMALIZE>;
}

// The leading bits of a score.
template <bool NORMALIZE, typename T>
__device__ __forceinline__ int scored(T value, T weight) {
    return bits_of(NORMALIZE ? value * weight : value + weight);
}

// Walk down a chunk whose pairs are all admissible: best scores of rows, lane by lane, go to `bests`, those of columns
// to `best`. Two rows at a time, since a maximum of three is one instruction.
template <typename T, int K, bool COLUMNS, bool NORMALIZE>
__device__ __forceinline__ void walk_chunk(
    WarpMemory<T, K, COLUMNS>& memory, Strip<T, K>& mine, T& from_left, int (&best)[COLUMNS ? K : 1]
) {
    for (int t = 0; t < CHUNK; t += 2) {
        int score[COLUMNS ? K : 1];
#pragma unroll
        for (int u = 0; u < 2; ++u) {
            const T weight = memory.rows[t + u].weight;
            int most = 0;
            step_down(memory, mine, from_left, t + u);
#pragma unroll
            for (int k = 0; k < K; ++k) {
                most = max(most, scored<NORMALIZE>(mine.cov[k], mine.weight[k]));
                if (COLUMNS && u == 0) score[k] = scored<NORMALIZE>(mine.cov[k], weight);
                if (COLUMNS && u == 1)
                    best[k] = max(max(best[k], score[k]), scored<NORMALIZE>(mine.cov[k], weight));
            }
            memory.bests[(t + u) * 33 + threadIdx.x] = most;
        }
    }
}

// The same at the diagonal, where pairs that are too close are left out. `column` is the first one of this lane.
template <typename T, int K, bool COLUMNS, bool NORMALIZE>
__device__ __forceinline__ void walk_diagonal(
    WarpMemory<T, K, COLUMNS>& memory, Strip<T, K>& mine, T& from_left, int (&best)[COLUMNS ? K : 1],
    int column, int base, long long least_apart
) {
    for (int t = 0; t < CHUNK; ++t) {
        const T weight = memory.rows[t].weight;
        const long long close = least_apart - ((long long)column - base - t);
        int most = 0;
        step_down(memory, mine, from_left, t);
#pragma unroll
        for (int k = 0; k < K; ++k)
            if (k > close) {
                most = max(most, scored<NORMALIZE>(mine.cov[k], mine.weight[k]));
                if (COLUMNS) best[k] = max(best[k], scored<NORMALIZE>(mine.cov[k], weight));
            }
        memory.bests[t * 33 + threadIdx.x] = most;
    }
}

// Where the best score of a chunk reaches what a column of this lane needs, keep it there; return the bits of those
// columns.
template <typename T, int K>
__device__ __forceinline__ unsigned raise_needs(WarpMemory<T, K, true>& memory, const int (&best)[K], int lane) {
    int* const needed = &memory.needed[lane * WarpMemory<T, K, true>::PITCH_NEEDED];
    unsigned hits = 0;
#pragma unroll
    for (int k = 0; k < K; ++k)
        if (best[k] >= needed[k]) {
            needed[k] = best[k];
            hits |= 1u << k;
        }
    return hits;
}

// After a chunk: lane l looks at row l of it, row i of the line, if that is `inside` of the band, and lists the lanes
// that may hold one of its nearest windows.
template <typename T, int K, bool COLUMNS>
__device__ __forceinline__ void look_at_row(
    const WarpMemory<T, K, COLUMNS>& memory, const Side* sides, bool inside, int i, int start, double slack,
    int n_neighbors
) {
    const int lane = threadIdx.x;
    int largest = 0;
#pragma unroll
    for (int other = 0; other < 32; ++other)
        largest = max(largest, memory.bests[lane * 33 + other]);
    const bool there = inside && largest >= memory.rows[lane].needed;
    if (!__any_sync(ALL, there)) return;
    const int known = there ? __ldcg(&sides[0].tops[i]) : TAKES_NO_PART;
    const double score = least_of<T>(largest);
    const int upper = bits_below<T>(score * (1 + ABOVE<T>) + slack) + 1;
    const bool list = there && upper >= known;
    // lanes that may hold one of the nearest: with one neighbour, those near the best
    const int lower = bits_below<T>(score * (1 - BELOW<T>) - slack);
    const int bound = n_neighbors == 1 ? max(lower, known) : known;
    const int near = bits_below<T>((least_of<T>(bound) - slack) * (1 - ABOVE<T>)) - 1;
    unsigned lanes = 0;
    for (int other = 0; other < 32 && list; ++other)
        lanes |= (unsigned)(memory.bests[lane * 33 + other] >= max(near, 1)) << other;
    if (__any_sync(ALL, list)) enlist(sides, list, Run{i, start, lanes, upper}, lower, known, n_neighbors);
}

// After a chunk: the columns of all lanes that reach what they need (`hits`) are numbered, and each lane looks at one
// of them at a time. Scores are off by what `walked` rows add, and in the chunks that follow by what the `height` of
// the band adds.
template <typename T, int K, bool COLUMNS>
__device__ __forceinline__ void look_at_columns(
    WarpMemory<T, K, COLUMNS>& memory, const Side* sides, unsigned hits, int start, int base, int count, int walked,
    int height, int n_neighbors
) {
    constexpr int PITCH_NEEDED = WarpMemory<T, K, COLUMNS>::PITCH_NEEDED;
    const int lane = threadIdx.x;
    const double slack = memory.slack.col_after(walked), most = memory.slack.col_after(height);
    int place = scan_sum(__popc(hits), lane);
    const int n_hits = __shfl_sync(ALL, place, 31);
    place -= __popc(hits);
    __syncwarp();
    for (unsigned rest = hits; rest != 0; rest &= rest - 1)
        memory.bests[place++] = lane * 32 + __ffs(rest) - 1;
    __syncwarp();
    for (int first = 0; first < n_hits; first += 32) {
        const bool there = first + lane < n_hits;
        const int hit = there ? memory.bests[first + lane] : 0;
        const int j = start + hit / 32 * K + hit % 32;
        int* const needed = &memory.needed[hit / 32 * PITCH_NEEDED + hit % 32];
        const int best = there ? *needed : 0;
        const int known = there ? __ldcg(&sides[1].tops[j]) : TAKES_NO_PART;
        const double score = least_of<T>(best);
        const int upper = bits_below<T>(score * (1 + ABOVE<T>) + slack) + 1;
        const int lower = bits_below<T>(score * (1 - BELOW<T>) - slack);
        const bool list = there && upper >= known;
        if (__any_sync(ALL, list))
            enlist(sides + 1, list, Run{j, base, ALL >> (CHUNK - count), upper}, lower, known, n_neighbors);
        if (there) *needed = least_to_look_at<T>(n_neighbors == 1 ? max(known, lower) : known, most);
    }
    __syncwarp();
}

// One block, one warp: it walks a panel of `n_strips` strips of 32 K columns down one band of rows, strip after strip;
// what leaves one on the right enters the next. Rows come in chunks of 32, and what may be near is looked for after
// each, one row or column for each lane, so that nothing waits for global memory inside of a chunk.
//
// Arguments stand alone, as the launch names them: a structure of some of them, even of numbers only, gives the loop of
// `walk_chunk` other registers and more of them in local memory, and `__restrict__` holds for no members.
template <typename T, int K, int B, bool COLUMNS, bool NORMALIZE>
__global__ void __launch_bounds__(32, B) join(
    const Row<T>* __restrict__ rows, const T* __restrict__ q, const T* __restrict__ s,
    const T* __restrict__ weights, const T* __restrict__ first_rows, T* first_cols,
    long long row_stride, long long col_stride, const Group* __restrict__ groups_a,
    const Group* __restrict__ groups_b, int row, int row_stop, int col, int col_stop, int height,
    int n_strips, int n_panels, long long least_apart, int length, int n_neighbors, int exact,
    const Side* __restrict__ sides
) {
    __shared__ WarpMemory<T, K, COLUMNS> memory;
    const int lane = threadIdx.x;
    const Area area = find_area<K>(row, row_stop, col, col_stop, height, n_strips, n_panels);
    const int panel = area.panel, band = area.band, left = area.left, right = area.right;
    const int top = area.top, bottom = area.bottom;
    if (panel >= n_panels || top >= bottom || right - 1 - top <= least_apart) return;
    T* const entering = first_cols + panel * col_stride - row;

    const Extent a(groups_a, top, bottom - 1), b(groups_b, max(0, left - height), right - 1);
    const Slack slack = exact ? bound_errors<T, NORMALIZE>(a, b, length) : Slack{0, 0, 0, 0};
    if (lane == 0) memory.slack = slack;
    // of windows of which no neighbour is known, pairs that are not looked at score less than this
    const int skipped_row = bits_below<T>(2 * slack.row_after(height)) + 2;
    const int skipped_col = bits_below<T>(2 * slack.col_after(height)) + 2;
    __syncwarp();

    for (int start = left; start < right; start += 32 * K) {
        const int end = min(right, start + 32 * K), column = start + lane * K;
        if (end - 1 - top <= least_apart) continue;
        fetch_weights<T, K, COLUMNS, NORMALIZE>(memory, weights, start, end);
        if constexpr (COLUMNS) look_up_needs(memory, sides, start, end, skipped_col, height);
        __syncwarp();
        Strip<T, K> columns;
        load_columns(memory, columns, q, s, first_rows, band * row_stride, start, end, col);
        T from_left = __shfl_up_sync(ALL, columns.cov[K - 1], 1);
        int known = top + lane < bottom ? __ldcg(&sides[0].tops[top + lane]) : TAKES_NO_PART;
        wait_for_copies();
        __syncwarp();
        fetch(memory, rows, entering, top);

        for (int base = top; base < bottom; base += CHUNK) {
            const int count = min(CHUNK, bottom - base), i = base + lane, walked = base - top + CHUNK;
            if (end - 1 - base <= least_apart) break;
            wait_for_copies();
            __syncwarp();
            if (known <= skipped_row) atomicMax(&sides[0].skipped[i], skipped_row);
            unpack_row<T, K, COLUMNS, NORMALIZE>(
                memory, count, least_to_look_at<T>(known, memory.slack.row_after(walked)), base == top, first_rows,
                band * row_stride + (start - col)
            );
            __syncwarp();
            known = i + CHUNK < bottom ? __ldcg(&sides[0].tops[i + CHUNK]) : TAKES_NO_PART;
            if (base + CHUNK < bottom) fetch(memory, rows, entering, base + CHUNK);
            const bool admissible = start - (base + count - 1) > least_apart;
            int best[COLUMNS ? K : 1];
            if (COLUMNS)
#pragma unroll
                for (int k = 0; k < K; ++k) best[k] = 0;
            if (lane == 0) from_left = memory.rows[0].enters;
            if (admissible)
                walk_chunk<T, K, COLUMNS, NORMALIZE>(memory, columns, from_left, best);
            else
                walk_diagonal<T, K, COLUMNS, NORMALIZE>(
                    memory, columns, from_left, best, column, base, least_apart
                );
            unsigned hits = 0;
            if constexpr (COLUMNS) hits = raise_needs(memory, best, lane);
            // what leaves a row enters the next strip in the row below; the copy ahead has been made
            wait_for_copies();
            __syncwarp();
            if (i + 1 < bottom) __stcg(entering + i + 1, memory.rows[lane].leaves);

            look_at_row<T>(memory, sides, lane < count, i, start, memory.slack.row_after(walked), n_neighbors);
            if (COLUMNS && __any_sync(ALL, hits != 0))
                look_at_columns<T>(memory, sides, hits, start, base, count, walked, height, n_neighbors);
            __syncwarp();
        }
        __syncwarp();
    }
}
