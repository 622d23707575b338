"""NumPy in place of kernels, for small work: the same bits, and only where it pays."""

from __future__ import annotations

import os
import subprocess
import sys
import tracemalloc
from contextlib import contextmanager

import numpy as np
import pytest
from numba import config, njit
from numba.core.registry import CPUDispatcher
from numpy.testing import assert_array_equal

import skts
from skts.engines import (
    ConcatenatedSeries,
    Criterion,
    DTWMatrix,
    DTWNeighbors,
    DTWPairs,
    Join,
    LongSeries,
    SBDCenters,
    SBDMatrix,
    Series,
    ShapeletSearch,
    Shapes,
    SubsequenceMatches,
    SubsequenceNeighbors,
    Warping,
    WindowDistances,
    replace_kernels,
    run,
)
from skts.engines.core import compiling
from skts.engines.families.elastic.distances import ShapeDTW
from skts.engines.host import small_work
from skts.engines.numba.elastic import by_numpy
from skts.engines.numba.shapelets import by_numpy as shapelets_by_numpy
from skts.engines.numba.shapelets import tiles as shapelet_tiles
from tests.examples_of_work import examples, leaves, reductions, small_examples

TABLES = {"large": examples, "small": small_examples}


@contextmanager
def watched():
    """Yield a list of choices: for each, whether NumPy is preferred, and whether a kernel ran."""
    asked, called = [], set()
    prefer, call = small_work.prefer_numpy, CPUDispatcher.__call__

    def choose(*arguments, **options):
        asked.append((prefer(*arguments, **options), arguments[1:]))
        return asked[-1][0]

    def start(kernel, *arguments, **named):
        called.add(kernel)
        return call(kernel, *arguments, **named)

    with pytest.MonkeyPatch.context() as patch:
        for name, module in list(sys.modules.items()):
            if name.startswith("skts.engines") and hasattr(module, "prefer_numpy"):
                patch.setattr(module, "prefer_numpy", choose)
        patch.setattr(CPUDispatcher, "__call__", start)
        yield asked
    asked[:] = [(preferred, not called.isdisjoint(kernels)) for preferred, kernels in asked]


def both(work, answer=lambda result: result):
    """Answers with kernels, and by NumPy, in whose place none runs: the answers do not tell."""
    found = []
    for choice in (False, True):
        with replace_kernels(always=choice), watched() as choices:
            found.append(leaves(answer(run(work, engine="numba", n_jobs=1))))
        if not config.DISABLE_JIT:  # else calls of kernels are those of functions
            assert all(preferred != ran for preferred, ran in choices)
    return found


@pytest.mark.parametrize("size", TABLES)
@pytest.mark.parametrize("kind", reductions())
def test_all_reductions_have_the_same_bits(kind, size):
    for work, answer in TABLES[size]()[kind]:
        kernels, numpy = both(work, answer)
        assert numpy == kernels


@pytest.mark.parametrize("alignment", ["global", "subsequence", "supersequence"])
@pytest.mark.parametrize("metric", ["dtw", "dog_keeper"])
@pytest.mark.parametrize("window", [None, 0, 3, 0.2])
def test_warping(make_series, metric, alignment, window):
    if window is not None and alignment != "global":
        return
    for n_channels, shortest in ((1, None), (3, None), (2, 7)):
        a = make_series(9, 21, n_channels, shortest=shortest)
        b = make_series(14, 16, n_channels, shortest=shortest)
        for cost in ("squared", "absolute"):
            warping = Warping(metric, cost, window, alignment)
            pairs = np.array([[0, 3], [8, 13], [8, 0]])
            for work in (
                DTWMatrix(a, b, warping),
                DTWPairs(a, b, pairs, warping),
                DTWNeighbors(a, b, 3, np.arange(9), warping=warping),
            ):
                kernels, numpy = both(work)
                assert numpy == kernels


def test_paths_between_descriptors(make_series):
    a, b, warping = make_series(9, 21, 2), make_series(6, 16, 2, shortest=7), ShapeDTW(reach=2)
    pairs = np.array([[0, 3], [8, 5], [8, 0]])
    for work in (
        DTWMatrix(a, b, warping),
        DTWPairs(a, b, pairs, warping),
        DTWNeighbors(a, b, 3, warping=warping),
    ):
        kernels, numpy = both(work)
        assert numpy == kernels


def test_single_precision_keeps_its_own_kernels(make_series):
    a, b = make_series(4, 30), make_series(70, 30)
    kernels, numpy = both(DTWNeighbors(a, b, 2, precision="float32"))
    assert numpy == kernels


def test_values_beyond_all_squares():
    values = np.array([[1e200, -1e200, 0.0, 3.0], [-1e308, 1e308, 1.0, 1e-300]])
    series = Series(values[:, np.newaxis], np.full(2, 4))
    kernels, numpy = both(DTWMatrix(series, series))
    assert numpy == kernels


@pytest.mark.parametrize("normalize", [True, False])
def test_joins_with_constant_hidden_and_excluded_windows(rng, normalize):
    points = rng.normal(size=400).cumsum()
    points[50:80], points[120], points[200:230] = 1.0, np.nan, points[300:330]
    points[350:] *= 1e12
    other = np.concatenate([points[20:200], 1e-9 * rng.normal(size=90)])
    line, second = ConcatenatedSeries.of([points]), ConcatenatedSeries.of([other])
    excluded = np.zeros(391, bool)
    excluded[5:40] = True
    options = {"normalize": normalize}
    for work in (
        Join(line, None, 10, 5, **options),
        Join(line, None, 10, 3, n_neighbors=3, sides=True, **options),
        Join(line, None, 10, 5, excluded=excluded, since=150, **options),
        Join(line, second, 10, n_neighbors=2, **options),
        WindowDistances(line, np.array([0, 55, 115, 205, 390]), second, 10, **options),
    ):
        kernels, numpy = both(work)
        assert numpy == kernels


@pytest.mark.parametrize("normalize", [True, False])
def test_searches_in_series_with_gaps(rng, normalize):
    points = rng.normal(size=300).cumsum()
    points[40:70], points[150] = 2.0, np.inf
    line = LongSeries((points, rng.normal(size=120)))
    queries = points[200:223].copy(), rng.normal(size=15), np.full(12, 3.0)
    for options in ({"n_neighbors": 4}, {"n_neighbors": None, "radius": 3.0}, {"exclusion": 0}):
        for warping in (Warping(), Warping("dog_keeper", "absolute", 0.2), Warping(window=0)):
            work = SubsequenceNeighbors(queries, line, warping, normalize, **options)
            kernels, numpy = both(work)
            assert numpy == kernels


def trees(rng):
    """Searches of shapelets with ties, constant windows, series of several lengths, weights."""
    values = rng.normal(size=(17, 2, 40)).cumsum(axis=2)
    values[3], values[4:6, 0, 5:30] = values[2], 1.0
    values[7] = np.round(values[7])
    lengths = rng.integers(20, 41, 17)
    lengths[0] = 40
    values[np.broadcast_to(np.arange(40) >= lengths[:, None, None], values.shape)] = 0
    series = Series(values, lengths).freeze()
    labels, everyone = np.arange(17) % 3, np.arange(17)
    weights = rng.integers(1, 4, 17).astype(float)
    yield ShapeletSearch(series, everyone, (3, 8, 20), Criterion(labels, np.ones(3)))
    yield ShapeletSearch(series, everyone, (8,), Criterion(labels, np.array([1.0, 2.5, 1.0])))
    yield ShapeletSearch(
        series, everyone, (6, 9), Criterion(labels, np.ones(3), sample_weight=weights)
    )
    some = everyone[2::2]
    yield ShapeletSearch(
        series, some, (5, 9), Criterion(labels[some], np.ones(3), 2),
        before=rng.uniform(size=some.size), ways=("and", "or"),
    )  # fmt: skip


def test_shapelets(rng):
    for work in trees(rng):
        kernels, numpy = both(work)
        assert numpy == kernels


def test_windows_that_are_all_alike_are_not_held_at_once():
    """Windows of straight lines are all as near: two million pairs, of 24 bytes each."""
    series = Series(np.tile(np.arange(80.0), (20, 1, 1)), np.full(20, 80))
    tracemalloc.start()
    try:
        shapelets_by_numpy.all_distances(series, 0, 10, np.zeros(1, np.uint8))
        memory = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert memory < 2**24


def test_matches(rng):
    values = rng.normal(size=(6, 2, 50))
    values[1, 0, 7], values[2, :, 10:40] = np.nan, 4.0
    series = Series(values, np.array([50, 50, 50, 9, 30, 50]))
    queries = values[0, 0, 3:15].copy(), np.full(12, 1.0), rng.normal(size=8), np.full(5, np.nan)
    # longer than all series, as long, and not finite beside one of its length
    queries = (*queries, rng.normal(size=60), rng.normal(size=50), np.full(12, np.inf))
    channels = np.array([0, 1, 1, 0, 0, 0, 0])
    kernels, numpy = both(SubsequenceMatches(queries, series, channels=channels))
    assert numpy == kernels


@pytest.mark.parametrize(("memory", "fits"), [(2**30, True), (2**20, False)])
def test_matches_by_numpy_have_room(rng, monkeypatch, memory, fits):
    asked = []

    def prefer(seconds, *kernels, able, limit):
        asked.append(able())
        return True

    monkeypatch.setattr(shapelet_tiles, "prefer_numpy", prefer)
    series = Series(rng.normal(size=(2, 1, 9)), np.full(2, 9))
    work = SubsequenceMatches((rng.normal(size=5),), series)
    with skts.config_context(memory=memory):
        run(work, engine="numba")
    assert asked == [fits]


def test_shapes(rng):
    values = np.concatenate([rng.normal(size=(30, 2, 23)), np.ones((2, 2, 23))])
    values[3] *= 1e300
    values[4] = values[4] * 1e-290
    values[5, 0] = 7.0
    found = []
    for choice in (False, True):
        with replace_kernels(always=choice):
            made = Shapes.normalized(Series(values, np.full(32, 23)))
            found.append((made.values, made.norms))
    for one, other in zip(*found, strict=True):
        assert_array_equal(one.view(np.int64), other.view(np.int64))


@pytest.mark.parametrize("centered", [True, False])
@pytest.mark.parametrize("n_channels", [1, 3])
def test_distances_and_centers_of_shapes(rng, n_channels, centered):
    """Channels that are flat, members that are shifted or not, and none at all."""
    values = rng.normal(size=(40, n_channels, 31))
    values[5], values[6, 0] = 1.0, -2.0
    shapes = Shapes.normalized(Series(values, np.full(40, 31)))
    shifts = np.where(np.arange(40) % 3, rng.integers(-30, 31, 40), 0).astype(np.int32)
    labels = (np.arange(40) % 4).astype(np.int32)
    kernels, numpy = both(SBDMatrix(shapes, shapes))
    assert numpy == kernels
    work = SBDCenters(shapes, labels, shifts, 5, centered=centered)
    kernels, numpy = both(work, lambda result: result.values)
    assert numpy == kernels


def test_memory_is_that_of_the_copies_and_antidiagonals(make_series):
    import tracemalloc

    a, b = make_series(300, 90, 2), make_series(300, 70, 2)
    i, warping, go_on = np.arange(300), Warping(), np.zeros(1, np.uint8)
    tracemalloc.start()
    by_numpy.pairs(a, b, i, i, warping, go_on)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    allowed = by_numpy.pairs_bytes(a, b, warping, 300)
    assert allowed / 2 < peak < allowed + 2**15


def test_copies_take_megabytes_and_an_eighth_of_the_budget():
    assert small_work.most_bytes(2**40) == small_work.most_bytes(2**25) == 2**22
    assert small_work.most_bytes(2**25 - 1) == 0
    assert small_work.most_bytes(2**30, 2**27) == 2**27


# --- when it pays -------------------------------------------------------------------------------


@njit
def kernel(x):
    return x


@pytest.fixture
def undecided(monkeypatch):
    monkeypatch.setattr(compiling, "replaced", None)
    monkeypatch.setattr(small_work, "_spent", 0.0)


@pytest.mark.usefixtures("undecided")
def test_until_so_much_has_been_done():
    fresh = njit(kernel.py_func)
    half = 0.5 * small_work.LIMIT
    assert not small_work.prefer_numpy(lambda: (0.1, 3 * small_work.LIMIT), fresh)
    assert small_work.prefer_numpy(lambda: (half, half), fresh)
    assert small_work.prefer_numpy(lambda: (half, half), fresh)
    assert not small_work.prefer_numpy(lambda: (half, half), fresh)
    assert small_work.prefer_numpy(lambda: (half, half), fresh, limit=2 * small_work.LIMIT)


@pytest.mark.usefixtures("undecided")
def test_not_beside_a_kernel_that_is_there():
    fresh = njit(kernel.py_func)

    def nothing():
        return 0.0, 0.0

    assert small_work.prefer_numpy(nothing, fresh)
    fresh(1.5)
    assert small_work.compiled(fresh)
    assert small_work.compiled(fresh, 2.5)
    assert not small_work.compiled(fresh, "of another type")
    assert small_work.prefer_numpy(nothing, fresh, like="of another type")
    assert not small_work.prefer_numpy(nothing, njit(kernel.py_func), fresh)


@pytest.mark.usefixtures("undecided")
def test_not_where_numpy_is_not_able_to(monkeypatch):
    """Works beyond NumPy take none of its seconds, and no kernel that is there is asked about."""

    def unexpected():
        raise AssertionError

    fresh, seconds = njit(kernel.py_func), lambda: (0.25, 0.5)
    assert not small_work.prefer_numpy(unexpected, fresh, able=lambda: False)
    assert small_work._spent == 0
    assert small_work.prefer_numpy(seconds, fresh, able=lambda: True)
    assert small_work._spent == 0.25
    fresh(1.5)
    assert not small_work.prefer_numpy(unexpected, fresh, able=unexpected)
    monkeypatch.setattr(compiling, "replaced", True)
    assert small_work.prefer_numpy(unexpected, fresh, able=lambda: True)
    assert not small_work.prefer_numpy(unexpected, fresh, able=lambda: False)
    monkeypatch.setattr(compiling, "replaced", False)
    assert not small_work.prefer_numpy(unexpected, fresh, able=unexpected)


FIRST = """
import numpy as np, skts
from skts.engines.core import compiling
X = np.random.default_rng(0).normal(size=(2, 40)).cumsum(axis=1)
{before}
skts.metrics.dtw(*X, engine="numba")
from skts.engines.numba.elastic.certified import costs
print(sum(costs.stats.cache_misses.values()))
print(sum(costs.stats.cache_hits.values()))
"""


def test_a_first_call_compiles_nothing_and_later_ones_take_kernels_from_disk(tmp_path):
    def counts(before=""):
        done = subprocess.run(
            [sys.executable, "-c", FIRST.format(before=before)],
            env={**os.environ, "NUMBA_CACHE_DIR": str(tmp_path)},
            capture_output=True, text=True, check=True,
        )  # fmt: skip
        return [int(line) for line in done.stdout.split()]

    assert counts() == [0, 0]
    misses, _ = counts("compiling.replaced = False")
    assert misses == 1
    assert counts() == [0, misses]


def test_warm_up_compiles_however_small_the_data(monkeypatch):
    monkeypatch.setattr(compiling, "replaced", True)
    seen = []

    class Model(skts.KShapeClusterer):
        def fit(self, X, y=None):
            seen.append(compiling.replaced)
            return super().fit(X, y)

    skts.warm_up("numba", [Model(2)])
    assert seen
    assert not any(seen)
    assert compiling.replaced is True
