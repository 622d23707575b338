"""What lanes, warps and blocks of a GPU find together, wherever it lies, against plain loops.

Answers of whole works seldom tell which lane a number came from: each function gets many rows of
small whole numbers, in which every lane has the first, the last, the largest and the least of equal
ones, and a plain loop over the same rows says what is to come out.
"""

from __future__ import annotations

from itertools import pairwise, product

import numpy as np
import pytest
from numpy.testing import assert_array_equal

from tests.engines.test_claims import run_on_a_gpu

pytestmark = pytest.mark.gpu

WIDTHS = (1, 2, 4, 8, 16, 32)
INFINITY = np.inf


def rows_of_lanes(rng, least=0, largest=9):
    """One number a lane: noise, the same in all, and one that is larger or less in each in turn."""
    noise = rng.integers(least, largest, (40, 32))
    alone = np.where(np.eye(32, dtype=bool), largest, least)
    same = np.full((1, 32), least)
    return np.concatenate([noise, alone, largest + least - alone, same]).astype(float)


def test_folds_over_lanes(rng):
    """Of groups of each width, of whole warps, and of the lanes up to each."""
    rows = rows_of_lanes(rng)
    each = "".join(
        f"""
        mine[32 * {3 * i}] = fold_lanes<{width}>(x, Plus());
        mine[32 * {3 * i + 1}] = fold_lanes<{width}>(x, Larger());
        mine[32 * {3 * i + 2}] = group_least(x, {width});"""
        for i, width in enumerate(WIDTHS)
    )
    kernel = f"""const double* rows, int n, double* found) {{
        const int lane = threadIdx.x;
        for (int row = 0; row < n; ++row) {{
            const double x = rows[32 * row + lane];
            double* const mine = found + 32 * 24 * row + lane;{each}
            mine[32 * 18] = warp_sum(x), mine[32 * 19] = warp_largest(x);
            mine[32 * 20] = warp_least(x);
            mine[32 * 21] = scan_sum(x, lane), mine[32 * 22] = warp_sum((int)x);
            mine[32 * 23] = lanes_before(__ballot_sync(ALL, x > 4), lane);
        }}"""
    size = 24 * 32 * len(rows)
    n = np.int32(len(rows))
    found = run_on_a_gpu("elastic/dtw.cu", kernel, rows, n, threads=32, size=size)
    for x, told in zip(rows, found.reshape(-1, 24, 32), strict=True):
        wanted = []
        for width in WIDTHS:
            groups = x.reshape(-1, width)
            folded = groups.sum(axis=1), groups.max(axis=1), groups.min(axis=1)
            wanted += [each.repeat(width) for each in folded]
        wanted += [np.full(32, one) for one in (x.sum(), x.max(), x.min())]
        wanted += [x.cumsum(), np.full(32, x.sum()), np.cumsum(x > 4) - (x > 4)]
        assert_array_equal(told, wanted)


@pytest.mark.parametrize("n_warps", [1, 2, 3, 4])
def test_folds_over_blocks(rng, n_warps):
    """Some warps of a block, one after the other with the same room."""
    rows = rows_of_lanes(rng)
    rows = np.concatenate([rows[rng.permutation(len(rows))] for _ in range(4)], axis=1)
    kernel = """const double* rows, int n, int n_warps, double* found) {
        __shared__ double room[4];
        for (int row = 0; row < n; ++row) {
            const double x = rows[128 * row + threadIdx.x];
            double* const mine = found + 384 * row + threadIdx.x;
            mine[0] = fold_block(x, room, n_warps, Smaller());
            mine[128] = fold_block(x, room, n_warps, Larger());
            mine[256] = fold_block(x, room, n_warps, Plus());
        }"""
    given = rows, np.int32(len(rows)), np.int32(n_warps)
    found = run_on_a_gpu("search/search.cu", kernel, *given, threads=128, size=384 * len(rows))
    some = rows[:, : 32 * n_warps]
    for told, wanted in zip(
        found.reshape(-1, 3, 128).transpose(1, 0, 2),
        (some.min(axis=1), some.max(axis=1), some.sum(axis=1)),
        strict=True,
    ):
        assert_array_equal(told, np.broadcast_to(wanted[:, np.newaxis], told.shape))


@pytest.mark.parametrize("k", [1, 2, 3, 4, 7, 8])
def test_the_least_of_the_stairs_of_a_group(rng, k):
    """In whichever cell of whichever lane it is; the last column is also that of the edge."""
    n = 60
    cells = rng.integers(3, 9, (n, 32, k + 5)).astype(float)
    for row in range(n):  # one that is less
        cells[row, rng.integers(32), rng.integers(k + 5)] = row % 3
    cells[:, :, k - 1] = cells[:, :, -1]
    kernel = f"""const double* cells, int n, double* found) {{
        for (int row = 0; row < n; ++row) {{
            const double* const mine = cells + (32 * row + threadIdx.x) * {k + 5};
            float D[{k}], edge[ROWS];
            for (int i = 0; i < {k}; ++i) D[i] = mine[i];
            for (int r = 0; r < ROWS; ++r) edge[r] = mine[{k} + 1 + r];
            for (int width = 1; width <= 32; width *= 2, found += 32)
                found[threadIdx.x] = least_of_stairs<{k}>(D, mine[{k}], edge, width);
        }}"""
    given, size = (cells, np.int32(n)), 32 * 6 * n
    found = run_on_a_gpu("search/search_warp.cu", kernel, *given, threads=32, size=size)
    for width, told in zip(WIDTHS, found.reshape(n, 6, 32).transpose(1, 0, 2), strict=True):
        groups = cells.reshape(n, -1, width, k + 5).min(axis=(2, 3))
        assert_array_equal(told, groups.repeat(width, axis=1))


@pytest.mark.parametrize("length", [1, 2, 3, 4, 5, 8])
def test_the_cost_of_a_window_is_in_the_row_of_its_last_point(length):
    kernel = """int length, double* found) {
        const float edge[ROWS] = {1, 2, 3, 4};
        float out[2];
        write_cost(out, edge, length, false), write_cost(out + 1, edge, length, true);
        found[0] = out[0], found[1] = out[1];"""
    found = run_on_a_gpu("search/search_warp.cu", kernel, np.int32(length))
    assert_array_equal(found[:2], [(length - 1) % 4 + 1, INFINITY])


def test_the_best_cut_of_a_line(rng):
    """The most gain, and of equals the largest gap, also of those that are certain."""
    n, each = 120, 3
    gains, gaps = rng.integers(0, 4, (n, 32, each)), rng.integers(0, 5, (n, 32, each))
    sure = rng.random((n, 32, each)) < 0.3
    # one alone, in each lane
    gains[:32][np.eye(32, dtype=bool)] += 9
    cuts = np.stack([gains, gaps, sure], axis=-1).astype(float)
    kernel = f"""const double* cuts, int n, double* found) {{
        for (int row = 0; row < n; ++row) {{
            BestCut best = {{-1, 0, 0}};
            for (int i = 0; i < {each}; ++i) {{
                const double* const cut = cuts + ((32 * row + threadIdx.x) * {each} + i) * 3;
                best.add((long long)cut[0], cut[1], cut[2] > 0);
            }}
            best.agree();
            double* const mine = found + 96 * row + threadIdx.x;
            mine[0] = best.gain, mine[32] = best.gap, mine[64] = best.sure_gap;
        }}"""
    found = run_on_a_gpu(
        "shapelets/order_lines.cu", kernel, cuts, np.int32(n), threads=32, size=96 * n
    )
    for here, told in zip(cuts.reshape(n, -1, 3), found.reshape(n, 3, 32), strict=True):
        best = here[here[:, 0] == here[:, 0].max()]
        certain = best[best[:, 2] > 0, 1].max(initial=-INFINITY)
        wanted = [best[0, 0], best[:, 1].max(), certain]
        assert_array_equal(told, np.repeat(wanted, 32).reshape(3, 32))


@pytest.mark.parametrize("e", [1, 2, 4, 8, 16, 32])
def test_keys_of_a_warp_are_sorted(rng, e):
    """Among them equal ones, and the largest that there is."""
    rows = rng.integers(0, 2**32, (6, 32 * e))
    rows[1] = rng.integers(0, 3, 32 * e)
    rows[2] = np.sort(rows[2])
    rows[3] = np.sort(rows[3])[::-1]
    rows[4] = 2**32 - 1 - rng.integers(0, 2, 32 * e)
    kernel = f"""const unsigned* rows, int n, double* found) {{
        for (int row = 0; row < n; ++row) {{
            unsigned keys[{e}];
            for (int r = 0; r < {e}; ++r) keys[r] = rows[32 * {e} * row + 32 * r + threadIdx.x];
            sort_keys<{e}>(keys, threadIdx.x);
            for (int r = 0; r < {e}; ++r) found[32 * {e} * row + threadIdx.x * {e} + r] = keys[r];
        }}"""
    given = rows.astype(np.uint32), np.int32(len(rows))
    found = run_on_a_gpu("shapelets/order_lines.cu", kernel, *given, threads=32, size=rows.size)
    assert_array_equal(found.reshape(rows.shape), np.sort(rows, axis=1))


@pytest.mark.parametrize("alone", [0, 1, 2, 5])
@pytest.mark.parametrize("each", [1, 2, 5])
def test_the_longest_doubtful_run_goes_on_in_the_next_lanes(rng, each, alone):
    """Pairs are apart, open or equal; a run is doubtful where one is open and one matters."""
    n = 100
    shares = rng.random((n, 1, 1)) ** 2
    relations = np.where(rng.random((n, 32, each)) < shares, 0, rng.integers(1, 3, (n, 32, each)))
    differ = rng.random((n, 32, each)) < 0.4
    pairs = np.stack([relations, differ], axis=-1).astype(np.int32)
    kernel = """const int* pairs, int n, int each, int alone, double* found) {
        const int lane = threadIdx.x;
        for (int row = 0; row < n; ++row) {
            Runs runs = {0, 0, 0, false};
            for (int i = 0; i < each; ++i) {
                const int* const pair = pairs + ((32 * row + lane) * each + i) * 2;
                runs.add(pair[0], pair[1], alone);
            }
            found[32 * row + lane] = longest_run(runs, lane, alone);
        }"""
    given = pairs, *map(np.int32, (n, each, alone))
    found = run_on_a_gpu("shapelets/order_lines.cu", kernel, *given, threads=32, size=32 * n)
    several = 0
    for line, told in zip(pairs.reshape(n, -1, 2), found.reshape(n, 32), strict=True):
        ends = [-1, *np.flatnonzero(line[:, 0] == 0), len(line)]
        wanted = 0
        for before, end in pairwise(ends):
            run = line[before + 1 : end]
            matters = (run[:, 0] == 2) | (run[:, 1] == 1)
            if (run[:, 0] == 1).any() and matters.any() and len(run) > alone:
                wanted = max(wanted, len(run))
        several += wanted > 2 * each
        assert (told == wanted).all()
    assert several > 3


@pytest.mark.parametrize("q", [1, 3])
def test_the_first_window_of_equally_near_ones_in_a_block(rng, q):
    """Some threads have none; ties lie in one warp and in several."""
    n, threads = 60, 128
    distances = rng.integers(0, 3, (n, threads, q)).astype(float)
    starts = np.stack(
        [np.stack([rng.permutation(threads) for _ in range(q)], axis=1) for _ in range(n)]
    )
    none = rng.random((n, threads, q)) < rng.random((n, 1, 1))
    none[:2] = True
    starts[none], distances[none] = -1, INFINITY
    distances[none & (rng.random(none.shape) < 0.1)] = 0.0
    given = np.stack([distances, starts], axis=-1)
    kernel = f"""const double* windows, int n, double* found) {{
        __shared__ double least[{q}][THREADS / 32];
        __shared__ int first_of[{q}][THREADS / 32];
        for (int row = 0; row < n; ++row) {{
            double best[{q}], distance;
            int where[{q}], start;
            for (int u = 0; u < {q}; ++u) {{
                const double* const mine = windows + ((THREADS * row + threadIdx.x) * {q} + u) * 2;
                best[u] = mine[0], where[u] = (int)mine[1];
            }}
            first_of_block<{q}>(best, where, least, first_of, {q}, distance, start);
            double* const mine = found + 2 * ({q} * row + threadIdx.x);
            if (threadIdx.x < {q}) mine[0] = distance, mine[1] = start;
            __syncthreads();
        }}"""
    found = run_on_a_gpu(
        "shapelets/matches.cu", kernel, given, np.int32(n), threads=threads, size=2 * q * n
    )
    for row, u in product(range(n), range(q)):
        there = [(d, s) for d, s in given[row, :, u] if s >= 0]
        wanted = min(there, default=(INFINITY, -1))
        assert tuple(found.reshape(n, q, 2)[row, u]) == wanted


def test_the_first_of_the_nearest_places_in_a_warp(rng):
    """Of dilated windows, and how many there are that are near enough."""
    n = 100
    distances, counts = rng.integers(0, 3, (n, 32)), rng.integers(0, 5, (n, 32))
    starts = np.stack([rng.permutation(32) for _ in range(n)])
    starts[rng.random((n, 32)) < rng.random((n, 1))] = -1
    given = np.stack([distances, starts, counts], axis=-1).astype(float)
    kernel = """const double* matches, int n, double* found) {
        for (int row = 0; row < n; ++row) {
            const double* const mine = matches + 3 * (32 * row + threadIdx.x);
            const Match best = fold(Match{mine[0], (int)mine[1], (int)mine[2]});
            double* const out = found + 3 * (32 * row + threadIdx.x);
            out[0] = best.start < 0 ? 0 : best.distance, out[1] = best.start, out[2] = best.count;
        }"""
    found = run_on_a_gpu(
        "shapelets/dilated.cu", kernel, given, np.int32(n), threads=32, size=96 * n
    )
    for matches, told in zip(given, found.reshape(n, 32, 3), strict=True):
        there = [(d, s) for d, s, _ in matches if s >= 0]
        wanted = *min(there, default=(0, -1)), matches[:, 2].sum()
        assert_array_equal(told, np.broadcast_to(wanted, (32, 3)))


@pytest.mark.parametrize("k", [1, 2, 3, 7])
def test_slots_hold_the_scores_of_the_nearest(rng, k):
    """The top of a window is the k-th score that was offered to it, and nothing less."""
    n_windows, n = 5, 200
    windows, scores = rng.integers(0, n_windows, n), rng.integers(1, 30, n)
    kernel = """const int* offered, int n, int k, int* tops, int* slots, double* found) {
        for (int i = 0; i < n; ++i) {
            raise(tops, slots, k, offered[2 * i], offered[2 * i + 1]);
            found[i] = tops[offered[2 * i]];
        }"""
    offered = np.stack([windows, scores], axis=1).astype(np.int32)
    room = np.zeros(n_windows, np.int32), np.zeros(n_windows * k, np.int32)
    found = run_on_a_gpu(
        "profile/join.cu", kernel, offered, np.int32(n), np.int32(k), *room, size=n
    )
    for i in range(n):
        before = np.sort(scores[: i + 1][windows[: i + 1] == windows[i]])[::-1]
        assert found[i] == (before[k - 1] if len(before) >= k else 0)


@pytest.mark.parametrize("every", [1, 2, 3, 7])
@pytest.mark.parametrize("first_diagonal", [-1000, 0, 5, 40])
@pytest.mark.parametrize(("row", "col"), [(0, 0), (3, 50), (60, 7)])
def test_blocks_of_channels_take_each_diagonal_of_each_band_once(every, first_diagonal, row, col):
    """Whichever of several turns they are walked in; those before the first are none."""
    width, height, n_rows = 8, 6, 20
    n_bands, n_blocks = -(-n_rows // height), 30
    kernel = """const int* given, int n, double* found) {
        for (int offset = 0; offset < given[5]; ++offset)
            for (int number = 0; number < n; ++number) {
                const ChannelBlock block = block_of(
                    number, given[0], given[1], given[2], given[3], given[4], given[5], offset,
                    given[6]);
                double* const mine = found + 3 * (offset * n + number);
                mine[0] = block.top, mine[1] = block.bottom, mine[2] = block.diagonal;
            }"""
    given = np.array([width, row, row + n_rows, col, first_diagonal, every, height], np.int32)
    n = n_bands * -(-n_blocks // every)
    found = run_on_a_gpu("profile/channels.cu", kernel, given, np.int32(n), size=3 * n * every)
    blocks = found.reshape(-1, 3).astype(int)
    for band in range(n_bands):
        top = row + band * height
        bottom = min(row + n_rows, top + height)
        here = blocks[blocks[:, 0] == top]
        assert len(here) == every * n // n_bands
        assert (here[:, 1] == bottom).all()
        first = max(first_diagonal, col - (bottom - 1))
        walked = np.sort(here[here[:, 2] != -1, 2]) if first >= 0 else np.sort(here[:, 2])
        # side by side from the first one on, as far as there are numbers
        assert_array_equal(walked, first + width * np.arange(len(walked)))
        assert len(walked) >= n_blocks // 2
        # of each turn those that it is for, no two turns ahead of each other
        turns = np.repeat(np.arange(every), n)[blocks[:, 0] == top]
        numbers = (here[:, 2] - first) // width
        there = here[:, 2] >= first
        assert ((numbers - band - turns) % every == 0)[there].all()
        ends = [numbers[there & (turns == turn)].max() for turn in range(every)]
        assert np.ptp(ends) < every


@pytest.mark.parametrize("length", [1, 2, 5])
def test_ranks_of_shifts_and_what_may_tie(length):
    """The shortest first, then the one to the left; a key is twice that, and one more if unsure."""
    n = 2 * length + 3
    kernel = """int length, int n, double* found) {
        for (int i = 0; i < n; ++i) found[i] = rank_of_shift<int>(i, length, n);
        for (int i = 0; i < 2 * length - 1; ++i) found[n + i] = rank_of_place(i, length);
        const Ties ties(8.0, 0.25 * TIE, 2.0);
        const double off[6] = {4, 3.01, 2.99, 1.01, 0.99, 0};
        for (int i = 0; i < 6; ++i) {
            found[40 + i] = ties.least(100, 8 - off[i] * TIE, 7);
            found[46 + i] = ties.least(14, 8 - off[i] * TIE, 7);
            found[52 + i] = ties.least(13, 8 - off[i] * TIE, 7);
        }"""
    found = run_on_a_gpu("kshape/labels.cu", kernel, np.int32(length), np.int32(n), size=64)
    shifts = [0, *(s for d in range(1, length) for s in (-d, d))]
    ranks = {shift: rank for rank, shift in enumerate(shifts)}
    by_place = [ranks.get(-i if i < length else n - i, 2 * n) for i in range(n)]
    assert_array_equal(found[:n], by_place)
    assert_array_equal(found[n : n + 2 * length - 1], [ranks[s] for s in range(1 - length, length)])
    # possible to 1.5 ties times the scale, sure to half of one
    keys = np.array([100, 100, 15, 15, 14, 14])
    assert_array_equal(found[40:46], keys)
    assert_array_equal(found[46:52], np.minimum(keys, 14))
    assert_array_equal(found[52:58], np.minimum(keys, 13))
