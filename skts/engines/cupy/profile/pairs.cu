// Pairs of the runs that a walk of a join has listed, and their scores in double precision.
//
// Runs that follow each other on a list mostly lie side by side: rows of a chunk that look at the same lanes of a strip,
// or neighbouring columns that look at the same chunk. They are scored together, as a block of ROWS windows by COLUMNS:
//
//              first column
//    first row  S S S S S S    S: sums of the products of all points.
//               S . . . . .    .: the covariance one row higher and one column to the left, and two products more, as in
//               S . . . . .       the walk.
//
// One warp, one block of pairs.
#include "profile/blocks.cuh"
#include "profile/runs.cuh"

// A warp computes SUMS sums at once, lane by lane of STRIP points that follow each other, SPAN points at a time.
constexpr int SUMS = 16, STRIP = 8, SPAN = 32 * STRIP;
static_assert(COLUMNS == SUMS && ROWS == 2 * SUMS, "a block has sums of a row, and twice of a column");

// A line, as the search has it.
struct Searched {
    const double* points;
    const double* mean;
    const double* norm;
    const double* slip;
    const unsigned char* regular;
    const Group* groups;
    long long n_points;
};

// What is known of scores, and the list of pairs: no more than `capacity` of them. Where `raising`, `reached` of a window
// rises to the best lower bound of its scores. uppers: upper bounds of scores; or, where that is not null, covariances.
struct Found {
    double* reached;
    int raising;
    long long capacity;
    int* windows;
    int* places;
    double* uppers;
    double* covariances;
    unsigned long long* n_pairs;
};

// A block of pairs.
struct Block {
    int row, col, n_rows, n_cols;
};

// The work: lines[0] has the rows. Windows of line `side` look for neighbours among those of the other up to `n_others`,
// `lanes` of them for each bit of a run.
struct Work {
    const Searched* lines;
    int side, lanes, origin, n_others, length;
    long long least_apart;
    double level;
};

// heads: places on a list of the runs that begin a block, in any order; *n_heads grows by how many. Blocks have `size`
// windows that look for neighbours, from `origin` on. One thread, one run.
extern "C" __global__ void heads(
    const Run* __restrict__ list, int count, int origin, int size, int* __restrict__ places, int* __restrict__ n_heads
) {
    const int i = blockIdx.x * blockDim.x + threadIdx.x, lane = threadIdx.x & 31;
    bool is_head = i < count;
    if (is_head && i > 0) {
        const Run before = list[i - 1], run = list[i];
        is_head = run.first != before.first || run.window <= before.window ||
                  (run.window - origin) / size != (before.window - origin) / size;
    }
    const unsigned votes = __ballot_sync(ALL, is_head);
    if (votes == 0) return;
    int first = 0;
    if (lane == 0) first = atomicAdd(n_heads, __popc(votes));
    first = __shfl_sync(ALL, first, 0);
    if (is_head) places[first + lanes_before(votes, lane)] = i;
}

// Where a point lies, so that lanes do not share banks.
__device__ __forceinline__ int spread_out(int t) { return t + t / STRIP; }

// The shared memory of a warp.
struct WarpMemory {
    static constexpr int PITCH = COLUMNS + 1;
    union {
        struct {
            double rows[(SPAN + ROWS) / STRIP * (STRIP + 1)], cols[(SPAN + COLUMNS) / STRIP * (STRIP + 1)];
        } points;
        double covariances[ROWS * PITCH];
    };
    // factors of the step that leads to a column
    double q[COLUMNS], s[COLUMNS];
    // of those that may be near: what makes a score of a covariance, and what their errors need
    double weight[ROWS], blur[ROWS], slip[ROWS];
    unsigned which[ROWS];

    __device__ __forceinline__ double covariance(int side, int own, int other) const {
        return covariances[side ? other * PITCH + own : own * PITCH + other];
    }

    // Bring SPAN points from `start` on, and those that the last windows have more, less the means of the first ones.
    __device__ __forceinline__ void load(
        const Searched& row_line, const Searched& col_line, const Block& block, double row_mean, double col_mean, int start
    ) {
        const int lane = threadIdx.x & 31;
#pragma unroll
        for (int t = lane; t < SPAN + ROWS; t += 32) {
            const int place = block.row + start + t;
            points.rows[spread_out(t)] = place < row_line.n_points ? row_line.points[place] - row_mean : 0.0;
        }
#pragma unroll
        for (int t = lane; t < SPAN + COLUMNS; t += 32) {
            const int place = block.col + start + t;
            points.cols[spread_out(t)] = place < col_line.n_points ? col_line.points[place] - col_mean : 0.0;
        }
    }
};

// Add to the sums of SUMS windows, from `offset` on, the products of the points of this lane of another window, `left` of
// which belong to it. The points of the others move through registers.
__device__ __forceinline__ void add_products(
    double (&sums)[SUMS], const double* own, const double* others, int offset, int left
) {
    const int first = (threadIdx.x & 31) * STRIP;
    double ring[SUMS];
#pragma unroll
    for (int c = 0; c < SUMS - 1; ++c) ring[c] = others[spread_out(first + offset + c)];
#pragma unroll
    for (int u = 0; u < STRIP; ++u) {
        ring[(u + SUMS - 1) % SUMS] = others[spread_out(first + offset + u + SUMS - 1)];
        const double x = first + u < left ? own[spread_out(first + u)] : 0.0;
#pragma unroll
        for (int c = 0; c < SUMS; ++c) sums[c] = fma(x, ring[(u + c) % SUMS], sums[c]);
    }
}

// Of 2 HALF sums over the lanes let each lane keep those whose numbers have its bit HALF, and so on.
template <int HALF>
__device__ __forceinline__ void share_sums(double (&sums)[SUMS]) {
    const bool upper = (threadIdx.x & HALF) != 0;
#pragma unroll
    for (int c = 0; c < HALF; ++c) {
        const double low = sums[c], high = sums[c + HALF];
        sums[c] = (upper ? high : low) + __shfl_xor_sync(ALL, upper ? low : high, HALF);
    }
    if constexpr (HALF > 1) share_sums<HALF / 2>(sums);
}

// Add sums over the lanes: lane l gets number l % SUMS.
__device__ __forceinline__ double add_sums(double (&sums)[SUMS]) {
    share_sums<SUMS / 2>(sums);
    return sums[0] + __shfl_xor_sync(ALL, sums[0], SUMS);
}

// Factors of the step that leads to a window: see `step_factors` in families/profile/lines.py.
template <bool NORMALIZE>
__device__ __forceinline__ void step_factors(
    const Searched& line, int window, int length, double& lead, double& trail
) {
    lead = trail = 0;
    if (window == 0 || window + length > line.n_points) return;
    const double newest = line.points[window + length - 1], old = line.points[window - 1];
    lead = NORMALIZE ? (newest - old) / 2 : newest;
    trail = NORMALIZE ? (newest - line.mean[window]) + (old - line.mean[window - 1]) : -old;
}

// Compute the covariances of a block into shared memory.
template <bool NORMALIZE>
__device__ __forceinline__ void fill_block(WarpMemory& memory, const Work& work, const Block& block) {
    constexpr int PITCH = WarpMemory::PITCH;
    const Searched &row_line = work.lines[0], &col_line = work.lines[1];
    const int lane = threadIdx.x & 31, length = work.length;
    const double row_mean = NORMALIZE ? row_line.mean[block.row] : 0.0;
    const double col_mean = NORMALIZE ? col_line.mean[block.col] : 0.0;
    // sums of the first row, which a single column does without, and of the first column from this row on
    const bool has_row = block.n_cols > 1;
    const int below = has_row ? 1 : 0, n_below = block.n_rows - below;
    double sums[3][SUMS] = {};
    for (int start = 0; start < length; start += SPAN) {
        __syncwarp();
        memory.load(row_line, col_line, block, row_mean, col_mean, start);
        __syncwarp();
        const double *const rows = memory.points.rows, *const cols = memory.points.cols;
        if (has_row) add_products(sums[0], rows, cols, 0, length - start);
        if (n_below > 0) add_products(sums[1], cols, rows, below, length - start);
        if (n_below > SUMS) add_products(sums[2], cols, rows, below + SUMS, length - start);
    }
    const double across = add_sums(sums[0]), down = add_sums(sums[1]), further = add_sums(sums[2]);
    double p, r, lead, trail;
    step_factors<NORMALIZE>(row_line, block.row + lane, length, p, r);
    step_factors<NORMALIZE>(col_line, block.col + lane % COLUMNS, length, lead, trail);
    __syncwarp();
    if (lane < COLUMNS) memory.q[lane] = NORMALIZE ? trail : lead, memory.s[lane] = NORMALIZE ? lead : -trail;
    // one lane, one row
    const int number = lane - below;
    const double one = __shfl_sync(ALL, down, number & (SUMS - 1)), other = __shfl_sync(ALL, further, number & (SUMS - 1));
    double value = number < 0 ? across : number < SUMS ? one : other;
    __syncwarp();
    memory.covariances[lane * PITCH] = value;
    for (int col = 1; col < block.n_cols; ++col) {
        const double above = __shfl_up_sync(ALL, value, 1), first = __shfl_sync(ALL, across, col);
        value = lane == 0 ? first : fma(p, memory.q[col], fma(r, memory.s[col], above));
        memory.covariances[lane * PITCH + col] = value;
    }
    __syncwarp();
}

// The union of bits.
struct Union {
    __device__ __forceinline__ unsigned operator()(unsigned a, unsigned b) const { return a | b; }
};

// Return the bits of window `first.window` + lane: those of its run, where runs that follow `head` belong to its block.
__device__ __forceinline__ unsigned find_runs(
    WarpMemory& memory, const Work& work, const Run* list, int count, int head, const Run& first
) {
    const int lane = threadIdx.x & 31, bits = work.side ? 4 : 5;
    static_assert(COLUMNS == 1 << 4 && ROWS == 1 << 5, "as many bits");
    Run run{};
    if (head + lane < count) run = list[head + lane];
    const int before = __shfl_up_sync(ALL, run.window, 1);
    const bool follows = head + lane < count && run.first == first.first && (lane == 0 || run.window > before) &&
                         (run.window - work.origin) >> bits == (first.window - work.origin) >> bits;
    const unsigned gaps = ~__ballot_sync(ALL, follows);
    memory.which[lane] = 0;
    __syncwarp();
    if (gaps == 0 || lane < __ffs(gaps) - 1) memory.which[run.window - first.window] = run.which;
    __syncwarp();
    return memory.which[lane];
}

// The largest of what the errors of others need.
struct Others {
    unsigned there;  // the bits of those that take part
    double weight, blur, slip;
};

// Bring what the scores of the others of a block need to shared memory.
template <bool NORMALIZE>
__device__ __forceinline__ Others describe_others(WarpMemory& memory, const Work& work, const Block& block) {
    const Searched& line = work.lines[1 - work.side];
    const int lane = threadIdx.x & 31, window = (work.side ? block.row : block.col) + lane;
    const bool takes_part = lane < (work.side ? block.n_rows : block.n_cols) && window < work.n_others &&
                            line.regular[window];
    Others others{__ballot_sync(ALL, takes_part), 0, 0, 0};
    if (takes_part) {
        const double norm = line.norm[window];
        if (NORMALIZE) {
            others.weight = 1 / norm;
            others.blur = (norm + fabs(line.mean[window])) * others.weight;
            others.slip = line.slip[window] * others.weight;
            memory.blur[lane] = others.blur, memory.slip[lane] = others.slip;
        } else {
            others.weight = work.level / 2 - norm * norm / 2;
        }
        memory.weight[lane] = others.weight;
    }
    if (NORMALIZE) {
        others.weight = warp_largest(others.weight);
        others.blur = warp_largest(others.blur), others.slip = warp_largest(others.slip);
    } else {
        others.weight = warp_least(takes_part ? others.weight : work.level);
    }
    __syncwarp();
    return others;
}

// The bits of those others of a block, SUMS from number `from` on, that are not too close to window number `own`.
__device__ __forceinline__ unsigned admissible(const Work& work, const Block& block, int own, int from) {
    // columns come after rows, by more than `least_apart`
    const long long ahead = work.side ? (long long)block.col + own - (block.row + from)
                                      : (long long)block.col + from - (block.row + own);
    const long long close = work.side ? ahead - work.least_apart : work.least_apart - ahead + 1;
    const unsigned below = (1u << (int)min(max(close, 0ll), (long long)SUMS)) - 1, every = (1u << SUMS) - 1;
    return work.side ? below : every & ~below;
}

// How far the covariances of a block may be off.
template <bool NORMALIZE>
__device__ __forceinline__ double error_of(const Work& work, const Block& block) {
    const Searched &rows = work.lines[0], &cols = work.lines[1];
    const int last = min(block.col + block.n_cols, (int)cols.n_points - work.length + 1) - 1;
    return block_error<NORMALIZE>(
        Extent::of_few(rows.groups, block.row, block.row + block.n_rows - 1),
        Extent::of_few(cols.groups, block.col, last), work.length
    );
}

// The window of a lane, which looks at `bits` of the others of a block, SUMS of them from number `from` on.
template <bool NORMALIZE>
struct Looking {
    int window, own, from;
    unsigned bits;
    double norm, blur, slip;   // of the window
    double off;                // how far covariances of the block may be off
    double some, turn, shift;  // the errors of each score, and what they grow by with blur and with slip

    __device__ __forceinline__ Looking(const Work& work) {
        const int lane = threadIdx.x & 31, length = work.length;
        // two lanes have a column, each of them half of the rows
        own = work.side ? lane % COLUMNS : lane, from = work.side ? lane / COLUMNS * SUMS : 0;
        const double root = sqrt((double)length);
        // see "refined scores" in docs/developer/numerics.rst
        some = NORMALIZE ? CERTIFIED_ROUNDING * length + 4 * FLOAT64_UNIT : FLOAT64_UNIT * length * (16 + 4 * root);
        turn = 4 * FLOAT64_UNIT * root, shift = 4.0 * length;
    }

    __device__ __forceinline__ void look(const Work& work, int start, unsigned at) {
        const Searched& line = work.lines[work.side];
        window = start + own, bits = at;
        norm = 1, blur = slip = 0;
        if (bits == 0) return;
        norm = line.norm[window];
        if (!NORMALIZE) return;
        const double inverse = 1 / norm;
        blur = (norm + fabs(line.mean[window])) * inverse;
        slip = line.slip[window] * inverse;
    }

    __device__ __forceinline__ double score(const WarpMemory& memory, const Work& work, int other) const {
        const double covariance = memory.covariance(work.side, own, other), weight = memory.weight[other];
        return NORMALIZE ? covariance * weight : covariance + weight;
    }

    // How far the score of one with these numbers may be off; larger numbers are safe, of windows as they are a smaller
    // weight.
    __device__ __forceinline__ double error(const Work& work, double weight, double its_blur, double its_slip) const {
        if (!NORMALIZE) return off + some * (norm * norm + (work.level - 2 * weight) + work.level);
        const double slips = fmax(slip, its_slip);
        return off * weight + norm * (some + turn * fmax(blur, its_blur) + shift * slips * slips);
    }
    __device__ __forceinline__ double error(const WarpMemory& memory, const Work& work, int other) const {
        if (!NORMALIZE) return error(work, memory.weight[other], 0, 0);
        return error(work, memory.weight[other], memory.blur[other], memory.slip[other]);
    }
};

// Of the others that a lane looks at list those whose scores reach what its window needs, in `reached`, which rises to
// the best lower bound of them.
template <bool NORMALIZE>
__device__ __forceinline__ void list_pairs(
    const Looking<NORMALIZE>& mine, const WarpMemory& memory, const Work& work, const Found& found, const Others& others,
    int first_other
) {
    const int lane = threadIdx.x & 31;
    const double none = -Arithmetic<double>::infinity();
    // mostly one is near: the best one, unless the second best may be as near
    double best = none, second = none;
    int at = 0;
#pragma unroll 4
    for (int c = 0; c < SUMS; ++c) {
        if (!(mine.bits >> c & 1)) continue;
        const double score = mine.score(memory, work, mine.from + c);
        second = fmax(second, fmin(score, best));
        if (score > best) best = score, at = c;
    }
    __syncwarp();
    const bool looks = mine.bits != 0;
    const double error = looks ? mine.error(memory, work, mine.from + at) : 0.0;
    double lower = best - error;
    if (work.side) lower = fmax(lower, __shfl_xor_sync(ALL, lower, COLUMNS));
    unsigned hits = 0;
    if (looks) {
        double needed = *(volatile double*)(found.reached + mine.window);
        if (found.raising && lower > needed) {
            raise(found.reached + mine.window, lower);
            needed = lower;
        }
        if (best + error >= needed) hits = 1u << at;
        if (second + mine.error(work, others.weight, others.blur, others.slip) >= needed)
            for (unsigned rest = mine.bits; rest != 0; rest &= rest - 1) {
                const int other = mine.from + __ffs(rest) - 1;
                if (mine.score(memory, work, other) + mine.error(memory, work, other) >= needed) hits |= rest & (0u - rest);
            }
    }
    __syncwarp();
    const int upto = scan_sum(__popc(hits), lane);
    unsigned long long to = 0;
    if (lane == 31 && upto > 0) to = atomicAdd(found.n_pairs, (unsigned long long)upto);
    to = __shfl_sync(ALL, to, 31) + upto - __popc(hits);
    for (; hits != 0 && to < (unsigned long long)found.capacity; hits &= hits - 1, ++to) {
        const int other = mine.from + __ffs(hits) - 1;
        found.windows[to] = mine.window;
        found.places[to] = first_other + other;
        if (found.covariances)
            found.covariances[to] = memory.covariance(work.side, mine.own, other);
        else
            found.uppers[to] = mine.score(memory, work, other) + mine.error(memory, work, other);
    }
    __syncwarp();
}

// pairs_of_runs: pairs of runs whose scores reach what their windows need, in any order; *n_pairs grows by how many there
// are. One warp, one block of pairs after the other, from the `heads` of the list.
template <bool NORMALIZE>
__global__ void __launch_bounds__(32 * PAIR_WARPS, 3) pairs_of_runs(
    const Run* __restrict__ list, int count, const int* __restrict__ heads, const int* __restrict__ n_heads, Work work,
    Found found
) {
    __shared__ WarpMemory memories[PAIR_WARPS];
    WarpMemory& memory = memories[threadIdx.x / 32];
    const int side = work.side;
    Looking<NORMALIZE> mine(work);
    for (int at = blockIdx.x * PAIR_WARPS + threadIdx.x / 32; at < *n_heads; at += gridDim.x * PAIR_WARPS) {
        const Run first = list[heads[at]];
        const unsigned which = find_runs(memory, work, list, count, heads[at], first);
        const unsigned every = fold_lanes(which, Union());
        // rows look at the lanes of a strip one after the other, columns at all rows of a chunk at once
        for (unsigned bits = side ? 1u : every; bits != 0; bits &= bits - 1) {
            const int bit = __ffs(bits) - 1;
            unsigned some;
            for (unsigned rest = __ballot_sync(ALL, side ? which != 0 : which >> bit & 1); rest != 0; rest &= ~some) {
                const int shift = __ffs(rest) - 1;
                int extent = 32 - __clz(rest) - shift;
                some = rest;
                // rows that are few and far from each other take less time alone
                if (!side && __popc(rest) <= 1 + (extent - 1 + SUMS - 1) / SUMS) extent = 1, some = rest & (0u - rest);
                const Block block = side ? Block{first.first, first.window + shift, 32 - __clz(every), extent}
                                         : Block{first.window + shift, first.first + bit * work.lanes, extent, work.lanes};
                fill_block<NORMALIZE>(memory, work, block);
                const Others others = describe_others<NORMALIZE>(memory, work, block);
                const int place = shift + mine.own;
                const bool looks = place < 32 && (some >> place & 1);
                unsigned there = others.there;
                if (side) there &= memory.which[min(place, 31)];
                there = there >> mine.from & admissible(work, block, mine.own, mine.from);
                mine.off = error_of<NORMALIZE>(work, block);
                mine.look(work, side ? block.col : block.row, looks ? there : 0);
                list_pairs(mine, memory, work, found, others, side ? block.row : block.col);
            }
        }
        __syncwarp();
    }
}
