"""Profiles of all lengths: equal to separate ones, in an order that spreads, stopped or not."""

from __future__ import annotations

from itertools import pairwise
from pathlib import Path

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal

import skts.engines.core.budget as budget
import skts.motifs._pan_profile as module
from skts.exceptions import MemoryBudgetError
from skts.motifs import matrix_profile, motifs, pan_matrix_profile
from skts.motifs._pan_profile import _breadth_first

with np.load(Path(__file__).parents[1] / "data" / "peers" / "pan.npz") as stored:
    STORED = dict(stored)


def series(rng, kind):
    x = rng.normal(size=90)
    if kind == "ties":
        return rng.integers(0, 3, 90).astype(float)
    if kind == "holes":
        x[[20, 55]] = np.nan, np.inf
    if kind == "constants":
        x[10:40] = x[60:80] = 2.0
    if kind == "offset":
        return x + 1e9
    return x


@pytest.mark.parametrize("kind", ["noise", "ties", "holes", "constants", "offset"])
@pytest.mark.parametrize("normalize", [True, False])
def test_equal_to_separate_profiles(fast_engine, rng, kind, normalize):
    x = series(rng, kind)
    lengths = [1, 2, 3, 17, 64, 89, 90]
    options = {"normalize": normalize, "exclusion": 0.3, "engine": fast_engine}
    pan = pan_matrix_profile(x, windows=[*lengths[::-1], 17], **options)
    assert pan.windows.tolist() == lengths == sorted(pan.computed.tolist())
    assert pan.distances.shape == pan.indices.shape == (7, 90)
    for row, length in enumerate(lengths):
        alone, n = matrix_profile(x, window=length, **options), 91 - length
        assert_array_equal(pan.distances[row, :n], alone.distances / np.sqrt(2 * length))
        assert_array_equal(pan.indices[row, :n], alone.indices)
        assert (pan.distances[row, n:] == np.inf).all() and (pan.indices[row, n:] == -1).all()
        known = np.flatnonzero(alone.indices >= 0)
        if known.size == 0:
            assert pan.motif_distances[row] == pan.discord_distances[row] == np.inf
            assert (pan.motif_indices[row] == -1).all() and (pan.discord_indices[row] == -1).all()
            continue
        near = known[np.argmin(alone.distances[known])]
        far = known[np.argmax(alone.distances[known])]
        assert pan.motif_indices[row].tolist() == sorted([near, alone.indices[near]])
        assert pan.discord_indices[row].tolist() == [far, alone.indices[far]]
        assert pan.motif_distances[row] == pan.distances[row, near]
        assert pan.discord_distances[row] == pan.distances[row, far]
    best = int(np.argmin(pan.motif_distances))
    assert pan.motif.window == lengths[best] and pan.motif.distance == pan.motif_distances[best]
    assert_array_equal(pan.motif.positions, pan.motif_indices[best])
    finite = np.where(np.isfinite(pan.discord_distances), pan.discord_distances, -1)
    assert pan.discord.window == lengths[int(np.argmax(finite))]


def test_the_best_pair_is_the_first_motif(rng):
    x = rng.normal(size=150).cumsum()
    pan = pan_matrix_profile(x, windows=[10, 30])
    for row, length in enumerate((10, 30)):
        (found,) = motifs(x, window=length, n_motifs=1)
        assert_array_equal(found.positions[:2], pan.motif_indices[row])


def test_series_without_pairs():
    pan = pan_matrix_profile([1.0, 2.0, np.nan], windows=[2, 3])
    assert pan.motif is None and pan.discord is None
    assert pan.computed.tolist() == [2, 3]


@pytest.mark.parametrize("n", [*range(1, 12), 100])
def test_order_is_breadth_first(n):
    order = list(_breadth_first(n))
    assert sorted(order) == list(range(n))
    assert order[:2] == [0, n - 1][: max(1, min(n, 2))]
    # after each whole level the widest gap is about half of that before
    for done in (3, 5, 9, 17, 33):
        if done <= n:
            gaps = [b - a for a, b in pairwise(sorted(order[:done]))]
            assert max(gaps) <= -(-(n - 1) // (done - 1)) + 1


def check_partial(x, pan, full, n_done):
    """Whether what is there is right, and nothing else is there."""
    assert_array_equal(pan.windows, full.windows)
    assert_array_equal(pan.computed, full.computed[:n_done])
    there = np.isin(pan.windows, pan.computed)
    for name in pan._fields[2:]:
        mine, theirs = getattr(pan, name), getattr(full, name)
        assert_array_equal(mine[there], theirs[there])
        assert (mine[~there] == (np.inf if mine.dtype == float else -1)).all()


def test_time_limit(rng, monkeypatch):
    x, lengths = rng.normal(size=80), range(5, 14)
    full = pan_matrix_profile(x, windows=lengths)
    times = iter([0.0, 1.0, 2.0, 3.0, 4.0])
    monkeypatch.setattr(module, "monotonic", lambda: next(times))
    check_partial(x, pan_matrix_profile(x, windows=lengths, time_limit=3.0), full, 3)
    monkeypatch.undo()
    check_partial(x, pan_matrix_profile(x, windows=lengths, time_limit=1e-12), full, 1)


@pytest.mark.parametrize("half_written", [False, True])
def test_interrupts_keep_what_is_done(rng, monkeypatch, half_written):
    x, lengths = rng.normal(size=80), range(5, 14)
    full = pan_matrix_profile(x, windows=lengths)
    name = "_write" if half_written else "run"
    call, count = getattr(module, name), iter(range(100))

    def stop(*args, **kwargs):
        number = next(count)
        if number == 4 and not half_written:
            raise KeyboardInterrupt
        found = call(*args, **kwargs)
        if number == 4:
            raise KeyboardInterrupt
        return found

    monkeypatch.setattr(module, name, stop)
    with pytest.warns(UserWarning, match="Interrupted: 4 of 9 lengths are done"):
        found = pan_matrix_profile(x, windows=lengths, on_interrupt="return")
    check_partial(x, found, full, 4)


def test_interrupts_are_raised_by_default(rng, monkeypatch):
    call, count = module.run, iter(range(100))

    def stop(*args, **kwargs):
        if next(count) == 2:
            raise KeyboardInterrupt
        return call(*args, **kwargs)

    monkeypatch.setattr(module, "run", stop)
    with pytest.raises(KeyboardInterrupt):
        pan_matrix_profile(rng.normal(size=80), range(5, 14))


def test_interrupts_of_the_first_length_are_raised(monkeypatch):
    def stop(*args, **kwargs):
        raise KeyboardInterrupt

    monkeypatch.setattr(module, "run", stop)
    with pytest.raises(KeyboardInterrupt):
        pan_matrix_profile(np.arange(9.0), windows=[2, 3], on_interrupt="return")


def test_results_larger_than_memory_are_refused_before_work(monkeypatch):
    monkeypatch.setattr(module, "run", None)
    monkeypatch.setattr(budget, "physical_memory", lambda: 2**30)
    with pytest.raises(MemoryBudgetError, match="The result of shape .4096, 1048575. needs 64 GiB"):
        pan_matrix_profile(np.zeros(2**20), windows=np.arange(2, 2**12 + 2))


@pytest.mark.parametrize("name", ["walk", "noise", "flat"])
def test_stored_profiles_of_stumpy(fast_engine, name):
    x, lengths = STORED[name], STORED["lengths"]
    pan = pan_matrix_profile(x, windows=lengths, engine=fast_engine)
    for row, length in enumerate(lengths):
        n = len(x) - length + 1
        # theirs are over twice the root of the length
        theirs = np.sqrt(2) * STORED[f"pan.{name}"][row, :n]
        assert_allclose(pan.distances[row, :n], theirs, rtol=1e-9, atol=1e-6)


@pytest.mark.parametrize(
    ("windows", "wrong"), [(range(3, 10**15), 201), (range(10**12, 2, -1), 10**12)]
)
def test_lengths_without_end_are_refused_at_once(rng, windows, wrong):
    with pytest.raises(ValueError, match=f"A window of {wrong} is longer than the series"):
        pan_matrix_profile(rng.normal(size=200), windows=windows)
