"""Neighbours that are apart from each other, on all engines against plain loops."""

from __future__ import annotations

import numpy as np
import pytest
from numpy.testing import assert_array_equal

from skts import config_context
from skts.engines import (
    ChannelRule,
    ConcatenatedSeries,
    Join,
    SpacedChannels,
    SpacedNeighbors,
    replace_kernels,
    run,
)
from skts.engines.families.profile import channels, spaced
from tests.engines.profile.test_join import KINDS, make_line
from tests.reference_spaced import greedy, spaced_neighbors


def check(work, engine):
    """Against the oracle, to the bit."""
    found = run(work, engine=engine)
    distances, places = spaced_neighbors(work)
    assert_array_equal(found.indices, places)
    assert_array_equal(found.distances, distances)


@pytest.fixture(params=["turns", "at once"])
def way(request, monkeypatch):
    """By blocks, one for each turn, or from the distances to all windows, as of short lines."""
    monkeypatch.setattr(SpacedNeighbors, "all_at_once", request.param == "at once")


@pytest.mark.parametrize("left", [False, True])
@pytest.mark.parametrize("kind", KINDS)
def test_one_line(fast_engine, rng, way, kind, left):
    line = ConcatenatedSeries.of([make_line(kind, 60, rng)])
    for length, exclusion, k in ((6, 5, 3), (4, 15, 4)):
        check(SpacedNeighbors(line, None, length, exclusion, n_spaced=k, left=left), fast_engine)


@pytest.mark.parametrize("left", [False, True])
def test_one_line_by_plain_loops(rng, left):
    line = ConcatenatedSeries.of([make_line("gaps", 40, rng)])
    check(SpacedNeighbors(line, None, 4, 9, n_spaced=3, left=left), "oracle")


@pytest.mark.parametrize("normalize", [False, True])
@pytest.mark.parametrize("kind", ["flat stretches", "gaps", "repeats"])
def test_two_lines(engine, rng, way, kind, normalize):
    a, b = (ConcatenatedSeries.of([make_line(kind, n, rng)]) for n in (30, 45))
    check(SpacedNeighbors(a, b, 5, 4, normalize=normalize, n_spaced=3), engine)


@pytest.mark.parametrize("kind", ["flat stretches", "scales"])
def test_many_blocks(fast_engine, rng, kind, monkeypatch):
    """Blocks that are smaller than what a neighbour takes out, and larger."""
    monkeypatch.setattr(spaced, "LEAST", 16)
    whole = make_line(kind, 90, rng)
    line = ConcatenatedSeries.of([whole])
    two = ConcatenatedSeries.of([whole[:40], whole[30:80]], gap=9)
    for exclusion in (3, 24):
        for left in (False, True):
            check(SpacedNeighbors(line, None, 8, exclusion, n_spaced=3, left=left), fast_engine)
    check(SpacedNeighbors(two, None, 8, 10, n_spaced=2), fast_engine)
    check(SpacedNeighbors(two, line, 8, 7, n_spaced=4), fast_engine)


@pytest.mark.parametrize(("n", "exclusion", "k"), [(40, 3, 3), (47, 2, 5)])
def test_windows_before_and_behind_in_one_block(rng, n, exclusion, k, monkeypatch):
    """By NumPy, which lists both: one of them took the place of another block's window."""
    monkeypatch.setattr(spaced, "LEAST", 19)
    monkeypatch.setattr(SpacedNeighbors, "all_at_once", False)
    with replace_kernels(always=True):
        for _ in range(3):
            line = ConcatenatedSeries.of([rng.normal(size=n)])
            check(SpacedNeighbors(line, None, 3, exclusion, n_spaced=k), "numba")


@pytest.mark.parametrize("most", [1, 50])
def test_however_few_are_compared_at_a_time(rng, way, most, monkeypatch):
    monkeypatch.setattr(spaced, "distances_at_a_time", lambda: most)
    line = ConcatenatedSeries.of([make_line("flat stretches", 40, rng)])
    with replace_kernels(always=True):
        check(SpacedNeighbors(line, None, 5, 2, n_spaced=2), "numba")


@pytest.mark.parametrize("values", [2, 3])
def test_ties(engine, rng, way, values):
    """Whole numbers, compared as they are: many windows are equally near."""
    for n in (*range(1, 6), 40):
        line = ConcatenatedSeries.of([rng.integers(0, values, n).astype(float)])
        for length in range(1, min(n, 4) + 1):
            work = SpacedNeighbors(line, None, length, length - 1, normalize=length > 2, n_spaced=2)
            check(work, engine)


def test_since(engine, rng):
    """Only pairs whose later window is new."""
    line = ConcatenatedSeries.of([make_line("walk", 80, rng)])
    for left in (False, True):
        check(SpacedNeighbors(line, None, 7, 6, since=50, n_spaced=2, left=left), engine)


@pytest.mark.parametrize("k", [2, 3])
def test_several_cells(fast_engine, rng, k):
    """Beyond a cell of the grid, by the whole matrix of distances."""
    x = rng.normal(size=1300).cumsum()
    x[400:440] = x[400]
    line = ConcatenatedSeries.of([x])
    work = SpacedNeighbors(line, None, 20, 19, n_spaced=k)
    assert work.all_at_once == (k == 3)
    with config_context(verify=True):
        found = run(work, engine=fast_engine)
    nearest = run(Join(line, None, 20, 19), engine=fast_engine)
    assert_array_equal(found.distances[:, 0], nearest.distances[:, 0])
    assert_array_equal(found.indices[:, 0], nearest.indices[:, 0])
    apart = np.abs(np.diff(found.indices, axis=1))
    assert (apart[found.indices[:, 1:] >= 0] > 19).all()


@pytest.mark.parametrize("n_channels", [1, 3])
@pytest.mark.parametrize("k", [3, 5])
def test_no_more_distances_than_there_are(rng, monkeypatch, n_channels, k):
    """However many neighbours are asked for: blocks were measured anew for each of them."""
    monkeypatch.setattr(spaced, "LEAST", 64)
    line = [ConcatenatedSeries.of([rng.normal(size=130)]) for _ in range(n_channels)]
    if n_channels == 1:
        work = SpacedNeighbors(line[0], None, 8, 7, n_spaced=k)
    else:
        work = SpacedChannels.of(line, None, 8, ChannelRule((2,)), exclusion=7, n_spaced=k)
    counted, measure = [], spaced.WindowDistances

    def noted(queries, rows, *more):
        made = measure(queries, rows, *more)
        counted.append(made.shape[0] * made.shape[1])
        return made

    for module in (spaced, channels):
        monkeypatch.setattr(module, "WindowDistances", noted)
    found = run(work, engine="numba")
    monkeypatch.undo()
    monkeypatch.setattr(SpacedNeighbors, "all_at_once", False)
    for one, other in zip(found[:2], run(work, engine="numba")[:2], strict=True):
        assert_array_equal(one, other)
    assert sum(counted) <= n_channels * work.shape[0] * work.shape[1]


def test_lists_are_no_longer_than_what_earlier_neighbours_may_take_out():
    line = ConcatenatedSeries.of([np.zeros(40_000)])
    for exclusion, k in ((9, 1), (9, 3), (700, 3), (39_000, 5)):
        work = SpacedNeighbors(line, None, 10, exclusion, n_spaced=k)
        n_blocks = -(-work.shape[1] // work.block)
        # blocks that a run of windows around a neighbour may touch, wherever that lies
        touched = max(
            (place + exclusion) // work.block - (place - exclusion) // work.block + 1
            for place in range(work.block)
        )
        assert min(n_blocks, (k - 1) * touched + 1) <= work.n_listed <= n_blocks
        assert work.n_listed <= (k - 1) * (touched + 1) + 1


def test_choice_from_a_row(rng):
    rows = rng.integers(0, 9, (20, 30)).astype(float)
    rows[rng.random(rows.shape) < 0.2] = np.inf
    for k, exclusion in ((1, 0), (3, 2), (5, 9), (2, 99)):
        found = spaced.choose_apart(rows.copy(), k, exclusion)
        for row, distances, places in zip(rows, *found, strict=True):
            wanted = greedy(row, k, exclusion)
            assert [*zip(distances, places, strict=True)][: len(wanted)] == wanted
            assert (places[len(wanted) :] == -1).all()
