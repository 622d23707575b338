// The steps of `scan` of order_lines.cu: the sorted line of a warp, a first look at it, its cuts, its open runs.
#pragma once
#include "shapelets/order_lines.cuh"

// Warps of a block of `scan`, and neighbouring candidates of a series that it has, by the keys of a lane: many, since a block
// waits for memory several times before its warps begin, as many as shared memory has room for.
constexpr int WARPS = 8;
template <int E>
constexpr int BESIDE = E <= 8 ? 32 : E <= 16 ? 16 : 8;

// Put keys r and r + apart of each lane in order, of all r without the bit `apart`; the other way round of keys that are
// sorted in runs of `size`, in every second run.
template <int E>
__device__ __forceinline__ void sort_pairs(unsigned (&keys)[E], int apart, int size) {
#pragma unroll
    for (int r = 0; r < E; ++r)
        if (!(r & apart)) {
            const unsigned a = keys[r], b = keys[r | apart];
            keys[r] = r & size ? max(a, b) : min(a, b);
            keys[r | apart] = r & size ? min(a, b) : max(a, b);
        }
}

// Sort 32 E keys of a warp, lane l then has those from l E on: first each lane its own, in turns up and down,
// then ever longer runs of lanes. Runs that go down are sorted as complements.
template <int E>
__device__ __forceinline__ void sort_keys(unsigned (&keys)[E], int lane) {
#pragma unroll
    for (int size = 2; size < E; size *= 2)
#pragma unroll
        for (int apart = size / 2; apart > 0; apart /= 2) sort_pairs<E>(keys, apart, size);
    unsigned turned = 0;
#pragma unroll 1
    for (int lanes = 1; lanes <= 32; lanes *= 2) {
        const unsigned down = lanes < 32 && (lane & lanes) ? 0xffffffffu : 0u, turn = turned ^ down;
        turned = down;
#pragma unroll
        for (int r = 0; r < E; ++r) keys[r] ^= turn;
#pragma unroll 1
        for (int far = lanes / 2; far > 0; far /= 2) {
            const bool largest = lane & far;
#pragma unroll
            for (int r = 0; r < E; ++r) {
                const unsigned other = __shfl_xor_sync(ALL, keys[r], far);
                keys[r] = largest ? max(keys[r], other) : min(keys[r], other);
            }
        }
#pragma unroll
        for (int apart = E / 2; apart > 0; apart /= 2) sort_pairs<E>(keys, apart, 0);
    }
}

struct Best {
    long long gain;
    float gap;
};

// Integers of E bits.
template <int E>
struct Mask {
    using Type = unsigned;
};
template <>
struct Mask<64> {
    using Type = unsigned long long;
};

// The best of all cuts within runs of several neighbours whose order is open, for each lane the best that it tries;
// false where a run has more classes than lanes can try. Whatever order a run has, the gain is convex in the numbers on
// the left, so that at its largest each class lies on one side as a whole: the warp goes from run to run, and each lane
// tries one such choice. `left` and `near` are what lies before this lane.
template <int E>
__device__ __noinline__ bool judge_runs(
    const Judge& judge, const unsigned* line, const unsigned short* left, int lane, const ErrorBound& doubt, float near,
    float total, Best& best
) {
    using Bits = typename Mask<E>::Type;
    constexpr int MANY = 5, PARTS = (E + 31) / 32;
    constexpr Bits NONE = 0, EVERY = ~NONE >> (8 * sizeof(Bits) - E);
    const int n = judge.n_members;
    const bool limited = judge.leaf > 1;
    __syncwarp();  // counts of other lanes are read
    // of each pair that begins in this lane: whether it is in a run, is open, and is such that order matters
    Bits joined = 0, open = 0, matters = 0;
    for (int r = 0; r < min(E, n - 1 - lane * E); ++r) {
        const unsigned key = line[32 * r + lane], next = line[r + 1 < E ? 32 * (r + 1) + lane : lane + 1];
        const int relative = relation(key, next, doubt);
        joined |= (Bits)(relative != APART) << r;
        open |= (Bits)(relative == OPEN) << r;
        matters |= (Bits)(limited || relative == EQUAL || label_of(key) != label_of(next)) << r;
    }
    // the bits of this lane from a place on; the first place that has its bit, among all lanes
    auto from = [&](int k) { return k <= lane * E ? ~NONE : k < (lane + 1) * E ? ~NONE << k % E : NONE; };
    auto first_of = [&](Bits bits) {
        const unsigned lanes = __ballot_sync(ALL, bits != 0);
        const int owner = max(0, __ffs(lanes) - 1);
        const int place = owner * E + __ffsll((long long)__shfl_sync(ALL, bits, owner)) - 1;
        return lanes ? place : n;
    };
    bool all = true;
    for (int first = first_of(joined); first < n;) {
        // keys first to last are a run; the pair that begins with the last is none of it
        const int last = first_of(~joined & EVERY & from(first));
        const Bits inside = from(first) & ~from(last);
        if (last - first > 1 && __any_sync(ALL, (open & inside) != 0) && __any_sync(ALL, (matters & inside) != 0)) {
            // keys of the lanes with its ends: those before the run, and those that do not lie behind it
            const int head = first / E, tail = last / E;
            unsigned before[PARTS], up_to[PARTS];
            float on_left = 0;
#pragma unroll
            for (int part = 0; part < PARTS; ++part) {
                const int r = part * 32 + lane;
                before[part] = r < first % E ? line[32 * r + head] : NO_KEY;
                up_to[part] = r <= last % E ? line[32 * r + tail] : NO_KEY;
                if (r < first % E) on_left += doubt.distance(before[part]);
            }
            int n_labels = 0, size = first;
            long long gain = 0;
            for (int c = 0; c < judge.n_classes && n_labels <= MANY; ++c) {
                int begin = left[c * 32 + head], end = left[c * 32 + tail];
#pragma unroll
                for (int part = 0; part < PARTS; ++part) {
                    begin += __popc(__ballot_sync(ALL, before[part] != NO_KEY && label_of(before[part]) == c));
                    end += __popc(__ballot_sync(ALL, up_to[part] != NO_KEY && label_of(up_to[part]) == c));
                }
                const bool chosen = end > begin && (lane >> n_labels & 1);
                gain += __ldg(judge.terms + (long long)c * (n + 1) + (chosen ? end : begin));
                size += chosen ? end - begin : 0;
                n_labels += end > begin;
            }
            on_left = warp_sum(on_left) + __shfl_sync(ALL, near, head);
            on_left += (size - first) * doubt.distance(line[32 * (first % E) + head]);
            const int ways = 1 << n_labels;
            const bool one_side = lane == 0 || lane == ways - 1;
            if (n_labels > MANY) all = false;
            else if (lane < ways && (limited || !one_side) && size > 0 && size < n) {
                gain += __ldg(judge.base + size);
                const float gap = (total - on_left) / (n - size) - on_left / size;
                if (gain > best.gain) best.gain = gain, best.gap = gap;
                if (gain == best.gain) best.gap = fmaxf(best.gap, gap);
            }
        }
        first = first_of(joined & from(last));
    }
    __syncwarp();
    return all;
}

// The best cut so far: its gain, the largest gap of those that gain as much, and of those that are there for certain.
struct BestCut {
    long long gain;
    float gap, sure_gap;

    __device__ __forceinline__ void add(long long found, float here, bool sure) {
        if (found > gain) gain = found, gap = sure_gap = -Arithmetic<float>::infinity();
        if (found == gain) {
            gap = fmaxf(gap, here);
            if (sure) sure_gap = fmaxf(sure_gap, here);
        }
    }
    // the best of all lanes
    __device__ __forceinline__ void agree() {
#pragma unroll
        for (int other = 16; other > 0; other /= 2) {
            const long long theirs = __shfl_xor_sync(ALL, gain, other);
            const float their_gap = __shfl_xor_sync(ALL, gap, other);
            const float their_sure_gap = __shfl_xor_sync(ALL, sure_gap, other);
            add(theirs, their_gap, false);
            if (theirs == gain) sure_gap = fmaxf(sure_gap, their_sure_gap);
        }
    }
};

// The line of a warp: its keys in order, key r of lane l at 32 r + l, and for each lane the numbers of classes on the left
// of where it is.
template <int E>
struct WarpLine {
    constexpr static int UNROLLED = E < 8 ? E : 8;
    unsigned* keys;
    unsigned short* left;
    int lane, mine;  // keys of this lane that there are
    unsigned after;  // the first key of the next lane

    __device__ __forceinline__ unsigned key(int r) const { return keys[32 * r + lane]; }
    __device__ __forceinline__ unsigned next(int r) const { return r + 1 < E ? keys[32 * (r + 1) + lane] : after; }
    __device__ __forceinline__ unsigned short& count(unsigned key) const { return left[label_of(key) * 32 + lane]; }
    // back to what lies before this lane, from behind its last cut
    __device__ __forceinline__ void rewind(int n) const {
        for (int r = 0; r < min(mine, n - 1 - lane * E); ++r) --count(key(r));
    }
};

// Bring a structure to shared memory, a thread 8 bytes of it.
template <typename T>
__device__ __forceinline__ void bring(T& to, const T* __restrict__ from) {
    if (threadIdx.x < sizeof(T) / 8) ((long long*)&to)[threadIdx.x] = ((const long long*)from)[threadIdx.x];
}

// Bring the scores of the candidates of a block to shared memory, labels and kinds of all members, the worst error of the
// series of these, and whether any member has constant windows or none: all threads.
template <int E>
__device__ __forceinline__ void load_candidates(
    const Scores& scores, const Judge& judge, const int* __restrict__ members, int row, int start, int count, int n_block,
    int n_series, int* tile, int* about, int& worst, int& special
) {
    const int n = judge.n_members;
#pragma unroll 4
    for (int place = threadIdx.x; place < n * BESIDE<E>; place += WARPS * 32) {
        const int k = place / BESIDE<E>, at = start + place % BESIDE<E>;
        if (at < count)
            tile[k * (BESIDE<E> + 1) + place % BESIDE<E>] =
                __ldg(scores.heads + ((long long)__ldg(members + k) * n_block + row) * scores.n_windows + at);
    }
    int own_worst = 0;
    for (int k = threadIdx.x; k < n; k += blockDim.x) {
        const int member = __ldg(members + k), kind = scores.kinds[member];
        about[k] = judge.labels[k] | kind << LABEL_BITS;
        if (kind != 2) special = 1;
        own_worst = max(own_worst, scores.errors[(long long)row * n_series + member]);
    }
    own_worst = warp_largest(own_worst);
    if ((threadIdx.x & 31) == 0) atomicMax(&worst, own_worst);
}

// Make keys of distances, of which each lane has those of members lane, lane + 32, ... `most`, the largest of a lane, becomes
// that of all, and sets the unit; `is_sure` tells of key r and its member whether the distance is exact.
template <int E, typename Sure>
__device__ __forceinline__ void to_keys(
    unsigned (&keys)[E], const int* about, int n, int lane, ErrorBound& doubt, float& most, const Sure& is_sure
) {
    // non-negative floats order as integers do
    most = __int_as_float(warp_largest(__float_as_int(most)));
    doubt.set_unit(most);
#pragma unroll
    for (int r = 0; r < E; ++r) {
        const int k = r * 32 + lane;
        if (k < n) keys[r] = key_of(__int_as_float(keys[r]), is_sure(r, k), label_of(about[k]), doubt);
    }
}

// Distances of a candidate from all members, joined with those before, as keys: every lane those of members lane,
// lane + 32, ... in any order. False where none can differ from those before. `most` is the largest distance.
template <int E>
__device__ __forceinline__ bool make_keys(
    unsigned (&keys)[E], const int* scores, const int* about, int n, int lane, int own, bool plain, bool is_constant,
    ErrorBound& doubt, int way, const float* __restrict__ before, const unsigned char* __restrict__ settled, float& most
) {
    unsigned long long sures = 0;
    bool changed = way == 0;
    most = 0;
#pragma unroll
    for (int r = 0; r < E; ++r) {
        // any order will do before the sort: this one reads neighbours
        const int k = r * 32 + lane;
        keys[r] = NO_KEY;
        if (k >= n) continue;
        bool sure;
        const float distance = joined_distance(
            scores[k * (BESIDE<E> + 1)], about[k] >> LABEL_BITS, k == own, plain, is_constant, doubt, way, before, settled, k, sure,
            changed
        );
        keys[r] = __float_as_int(distance);
        sures |= (unsigned long long)sure << r;
        most = fmaxf(most, distance);
    }
    if (!__any_sync(ALL, changed)) return false;
    to_keys<E>(keys, about, n, lane, doubt, most, [&](int r, int) { return sures >> r & 1; });
    return true;
}

// The same where no member and no candidate has constant windows, and there are no distances before: nearly always.
template <int E>
__device__ __forceinline__ void make_plain_keys(
    unsigned (&keys)[E], const int* scores, const int* about, int n, int lane, int own, ErrorBound& doubt, float& most
) {
    most = 0;
#pragma unroll
    for (int r = 0; r < E; ++r) {
        const int k = r * 32 + lane;
        keys[r] = NO_KEY;
        if (k >= n) continue;
        const float distance = k == own ? 0.0f : distance_of(scores[k * (BESIDE<E> + 1)]);
        keys[r] = __float_as_int(distance);
        most = fmaxf(most, distance);
    }
    const bool settling = doubt.root < 0.5f;
    to_keys<E>(keys, about, n, lane, doubt, most, [&](int, int k) { return settling && k == own; });
}

// Sort keys, and lay them down as the line of the warp.
template <int E>
__device__ __forceinline__ void lay_down(unsigned (&keys)[E], WarpLine<E>& line, int n) {
    sort_keys<E>(keys, line.lane);
    line.after = __shfl_down_sync(ALL, keys[0], 1);
    __syncwarp();
#pragma unroll
    for (int r = 0; r < E; ++r) line.keys[32 * r + line.lane] = keys[r];
    __syncwarp();
    line.mine = min(E, n - line.lane * E);
}

// Numbers of classes among some keys of a lane, of few classes: eight bits each.
template <typename Bits>
struct Tally {
    constexpr static int MOST = sizeof(Bits);
    Bits bits = 0;

    __device__ __forceinline__ void add(unsigned label) { bits += (Bits)1 << 8 * label; }
    __device__ __forceinline__ int of(unsigned label) const { return (int)(bits >> 8 * label) & 0xff; }
};

// The same of any number of classes, in shared memory: none is counted yet.
template <int E>
struct SharedTally {
    const WarpLine<E>& line;

    __device__ __forceinline__ void add(unsigned label) { ++line.left[label * 32 + line.lane]; }
    __device__ __forceinline__ int of(unsigned label) const { return line.left[label * 32 + line.lane]; }
};

// Numbers of classes of the lanes before, two at a time.
template <int E, typename T>
__device__ __forceinline__ void count_before(const Judge& judge, const WarpLine<E>& line, T tally) {
    constexpr int UNROLLED = WarpLine<E>::UNROLLED;
    const int n_classes = judge.n_classes, lane = line.lane;
#pragma unroll UNROLLED
    for (int r = 0; r < line.mine; ++r) tally.add(label_of(line.key(r)));
    for (int c = 0; c < n_classes; c += 2) {
        const bool two = c + 1 < n_classes;
        const int both = tally.of(c) | (two ? tally.of(c + 1) << 16 : 0);
        const int ahead = scan_sum(both, lane) - both;
        line.left[c * 32 + lane] = (unsigned short)(ahead & 0xffff);
        if (two) line.left[c * 32 + 32 + lane] = (unsigned short)(ahead >> 16);
    }
}

// A first look at a line, in single precision: whether it may gain what is reached for certain. `top` gets the best gain of
// any cut in nats, allowed or not: in the true order one of the same size may be. `tally` counts the classes of the keys that
// have been met, `from_left` tells whether it begins with those of the lanes before. `changes`, in shared memory or not, are
// what the entropies change by: for each class, when so many of it on the left become one more.
template <int E, typename T>
__device__ __forceinline__ bool first_look(
    const Judge& judge, const WarpLine<E>& line, const ErrorBound& doubt, float nats, const BoundList& bounds, T tally,
    bool from_left, const float* changes, float& top
) {
    constexpr int UNROLLED = WarpLine<E>::UNROLLED;
    const int n = judge.n_members, lane = line.lane;
    // none is open beyond
    const int near = (int)fminf(2 * ((doubt.root + (float)TOLERANCE) / doubt.unit + UNITS) + 2, 1e9f);
    int open = 0, tied = 0;
    float rough = 0, highest = -Arithmetic<float>::infinity();
    unsigned key = line.key(0);
#pragma unroll UNROLLED
    for (int r = 0; r < line.mine; ++r) {
        if (lane * E + r == n - 1) break;
        const unsigned label = label_of(key), next = line.next(r);
        rough += changes[label * n + tally.of(label) + (from_left ? 0 : line.left[label * 32 + lane])];
        tally.add(label);
        if (units_between(key, next) <= near) {
            const int relative = relation(key, next, doubt);
            open += relative == OPEN;
            tied += relative == EQUAL;
        }
        highest = fmaxf(highest, rough + __ldg(judge.rough_cuts + 32 * r + lane));
        key = next;
    }
    top = warp_largest(scan_sum(rough, lane) - rough + highest), open = warp_sum(open), tied = warp_sum(tied);
    // with cuts that leaves forbid the next allowed one may lie beyond what is tied
    if (open && judge.leaf > 1) open += tied;
    const float gain = open ? fmaxf(top, 0.0f) + gain_of_changes(judge, open) : top;
    const float goal = (float)gain_reached(bounds) * nats;
    return gain + (float)judge.slack >= __shfl_sync(ALL, goal, 0);
}

// Count the classes before each lane, and take a first look: true where there is none, or it does not rule the line out.
template <int E>
__device__ __forceinline__ bool may_be_best(
    const Judge& judge, const WarpLine<E>& line, const ErrorBound& doubt, float nats, const BoundList& bounds,
    const float* changes, float& top
) {
    auto look = [&](auto tally, bool from_left) {
        return first_look(judge, line, doubt, nats, bounds, tally, from_left, changes, top);
    };
    if (judge.n_classes <= Tally<unsigned>::MOST) {
        count_before(judge, line, Tally<unsigned>());
        return !judge.base || look(Tally<unsigned>(), false);
    }
    if (judge.n_classes <= Tally<unsigned long long>::MOST) {
        count_before(judge, line, Tally<unsigned long long>());
        return !judge.base || look(Tally<unsigned long long>(), false);
    }
    for (int c = 0; c < judge.n_classes; ++c) line.left[c * 32 + line.lane] = 0;
    SharedTally<E> tally = {line};
    count_before(judge, line, tally);
    if (!judge.base) return true;
    const bool may = look(tally, true);
    if (may) line.rewind(judge.n_members);
    return may;
}

// Entropies of both sides before this lane, exactly.
template <int E>
__device__ __forceinline__ long long entropies_before(const Judge& judge, const WarpLine<E>& line) {
    long long each = 0;
    for (int c = 0; c < judge.n_classes; ++c)
        each += __ldg(judge.terms + (long long)c * (judge.n_members + 1) + line.left[c * 32 + line.lane]);
    return each;
}

// Sum of the distances of this lane.
template <int E>
__device__ __forceinline__ float sum_of_distances(const WarpLine<E>& line, const ErrorBound& doubt) {
    constexpr int UNROLLED = WarpLine<E>::UNROLLED;
    float sum = 0;
#pragma unroll UNROLLED
    for (int r = 0; r < line.mine; ++r) sum += doubt.distance(line.key(r));
    return sum;
}

// The cuts of this lane, exactly: the best one, runs of neighbours whose order is open, and `top` where weights differ.
// `near` is the sum of distances before this lane, `total` that of all, `each` the entropies of both sides there.
template <int E>
__device__ __forceinline__ void judge_cuts(
    const Judge& judge, const WarpLine<E>& line, const ErrorBound& doubt, long long each, float near, float total, float nats,
    float& top, BestCut& best, Runs& runs
) {
    constexpr int UNROLLED = WarpLine<E>::UNROLLED;
    const int n = judge.n_members, alone = judge.base ? 1 : 0;
    const long long* const terms = judge.terms;
    auto change = [&](unsigned key) {
        const int label = label_of(key);
        const long long* term = terms + label * (n + 1) + line.left[label * 32 + line.lane];
        return __ldg(term + 1) - __ldg(term);
    };
#pragma unroll UNROLLED
    for (int r = 0; r < line.mine; ++r) {
        const int k = line.lane * E + r;
        if (k == n - 1) break;
        const unsigned key = line.key(r);
        const unsigned next = line.next(r);
        const float distance = doubt.distance(key);
        const long long all_before = each;
        each += change(key);
        near += distance;
        ++line.count(key);
        const int relative = relation(key, next, doubt);
        const bool open = relative == OPEN, differ = label_of(key) != label_of(next);
        runs.add(relative, differ, alone);
        if (k + 1 < judge.leaf || n - 1 - k < judge.leaf) continue;
        if (relative == EQUAL && judge.base) continue;  // no place for a cut
        const float here = __fdividef(total - near, (float)(n - 1 - k)) - __fdividef(near, (float)(k + 1));
        long long base;
        if (judge.base) {
            base = __ldg(judge.base + k + 1);
            if (open && differ) best.add(base + all_before + change(next), here, false);
        } else {
            const bool enough = weigh(judge, line.left + line.lane, 32, base);
            base = judge.whole - base;
            top = fmaxf(top, __ll2float_ru(base + each) * nats);
            if (relative == EQUAL || !enough) continue;
        }
        best.add(base + each, here, !open);
    }
}

// The most doubtful pairs of a run of the line: runs go on in the next lanes. `tail` is what ends with a lane, all of it if
// none of it is broken.
__device__ __forceinline__ int longest_run(const Runs& runs, int lane, int alone) {
    int tail = runs.run, whole = !runs.broken;
#pragma unroll
    for (int other = 1; other < 32; other *= 2) {
        const int tail_before = __shfl_up_sync(ALL, tail, other);
        const int whole_before = __shfl_up_sync(ALL, whole, other);
        if (lane >= other && whole) {
            tail = add_runs(tail_before, tail);
            whole = whole_before;
        }
    }
    const int tail_before = __shfl_up_sync(ALL, tail, 1);
    const int head = add_runs(lane ? tail_before : 0, runs.broken ? runs.head : runs.run);
    const int longest = max(runs.longest, max(doubtful_pairs(head, alone), doubtful_pairs(tail, alone)));
    return warp_largest(longest);
}

// The most that a line gains whose longest run of doubtful pairs is known: `top` is the best gain of the cuts of this lane.
__device__ __forceinline__ long long gain_of_open_runs(const Judge& judge, int longest, float top) {
    top = fmaxf(warp_largest(top), 0.0f);
    long long any = (long long)(judge.unit * (top + judge.slack + gain_of_changes(judge, longest)));
    any += judge.margin + 4096;
    return any;
}

// Error of gaps where the largest distance is `most`: sums of so many, over the smaller side.
template <int E>
__device__ __forceinline__ float slack_of_gaps(const Judge& judge, const ErrorBound& doubt, float most) {
    // see "order line sums" in docs/developer/numerics.rst
    return 2 * doubt.root + (1e-5f + 1.2e-7f * (E + 8) * judge.n_members / max(1LL, judge.leaf)) * most;
}

// Put the bound of a candidate on the list, unless another candidate is better for certain: one lane.
__device__ __forceinline__ void list_bound(const CandidateBound& found, const BoundList& bounds) {
    const Reached* const reached = bounds.reached;
    if (found.gain < gain_reached(bounds)) return;
    if (found.gain == reached->settled && found.high < reached->gap) return;
    append(found, found.low > -Arithmetic<float>::infinity(), found.gain, bounds);
}
