"""dtw_window_search: the errors of brute force at every window, found in one pass."""

from __future__ import annotations

import numpy as np
import pytest
import reference
from numpy.testing import assert_array_equal
from published import COMPLETE, is_published, learned_percent, load

from skts import DTWNearestNeighbor, config_context
from skts.base import check_series
from skts.datasets import load_gunpoint, make_cylinder_bell_funnel
from skts.engines import DTWWindowSearch, Tile, Warping, find_engine, run
from skts.engines.numba import cell_of
from skts.engines.numba.elastic import window_search as kernels
from skts.exceptions import MemoryBudgetError
from skts.neighbors import dtw_window_search


def neighbors(X, radii, **options):
    """Nearest other series at each window by the estimator, one window at a time."""
    y = np.arange(len(X)) % 2
    found = [
        DTWNearestNeighbor(window=int(radius), **options).fit(X, y).kneighbors()[1][:, 0]
        for radius in radii
    ]
    return np.column_stack(found)


def reduction(X, radii, squared=True):
    series = check_series(X)
    return DTWWindowSearch(series, series, np.arange(len(series)), np.asarray(radii), squared)


DATA = {
    "noise": lambda rng: rng.normal(size=(14, 17)),
    "walks": lambda rng: rng.normal(size=(14, 30)).cumsum(axis=1),
    "channels": lambda rng: rng.normal(size=(10, 3, 12)).cumsum(axis=2),
    # integers: many paths and many series at equal distance
    "ties": lambda rng: rng.integers(0, 3, (24, 9)).astype(float),
    "duplicates": lambda rng: np.repeat(rng.normal(size=(5, 12)), 3, axis=0)[rng.permutation(15)],
    "constant": lambda rng: np.ones((6, 8)),
    "steps": lambda rng: np.repeat(rng.integers(0, 2, (20, 5)), 4, axis=1).astype(float),
    "offset": lambda rng: 1e9 + rng.normal(size=(12, 15)),
    "tiny": lambda rng: 1e-144 * rng.normal(size=(12, 11)),
    "points": lambda rng: rng.normal(size=(7, 1)),
    "pair": lambda rng: rng.normal(size=(2, 10)),
}


@pytest.mark.parametrize("squared", [True, False])
def test_four_rows_at_once_are_those_one_after_the_other(rng, squared):
    cell, never = cell_of(Warping(cost="squared" if squared else "absolute")), np.zeros(1, np.uint8)

    def one_row(x, y, radius, limit):
        """Cost and reach of the best path."""
        row, reaches = np.full(x.size + 2, np.nan), np.full(x.size + 2, -1)
        x, y, allowed = x[np.newaxis], y[np.newaxis], np.full(x.size, limit)
        cost = kernels._warp(x, y, radius, allowed, cell, row, reaches, never)
        return cost, reaches[-2]

    def four_rows(x, y, radius, limit):
        row, allowed = np.full(x.size + 2, np.nan), np.full(x.size, limit)
        return kernels._warp_together(x, y, radius, allowed, cell, row, never)

    for _ in range(400):
        n = int(rng.integers(1, 50))
        x, y = rng.normal(size=(2, n)).cumsum(axis=1)
        if rng.random() < 0.3:
            x, y = np.round(x), np.round(y)
        radius = int(rng.integers(0, n))
        cost, reach = one_row(x, y, radius, np.inf)
        assert reach <= radius
        assert one_row(x, y, reach, np.inf) == (cost, reach)
        for limit in (np.inf, cost, 1.5 * cost):
            assert one_row(x, y, radius, limit) == (cost, reach)
            assert four_rows(x, y, radius, limit) == cost
        beyond = one_row(x, y, radius, 0.9 * cost)[0], four_rows(x, y, radius, 0.9 * cost)
        assert cost == 0 or min(beyond) > 0.9 * cost


@pytest.mark.parametrize("cost", ["squared", "absolute"])
@pytest.mark.parametrize("kind", DATA)
def test_neighbors_at_every_window(fast_engine, rng, kind, cost):
    for _ in range(4):
        X = DATA[kind](rng)
        radii = np.arange(X.shape[-1])[::-1].copy()
        found = run(reduction(X, radii, cost == "squared"), engine=fast_engine)
        assert found.dtype == np.int64
        brute = neighbors(X, radii, cost=cost, precision="float64", engine="numba")
        assert_array_equal(found, brute)


@pytest.mark.parametrize("kind", ["walks", "ties", "channels"])
def test_oracle_agrees(fast_engine, rng, kind):
    X = DATA[kind](rng)[:8]
    work = reduction(X, [8, 5, 2, 1, 0])
    assert_array_equal(run(work, engine=fast_engine), run(work, engine="oracle"))


def test_equal_roots_tie(engine):
    # costs that differ in the last bit have the same root: the lower index is nearest
    step = np.nextafter(1.0, 2.0)
    X = np.array([[0.0, 0.0], [step, 1.0], [1.0, 1.0]])
    assert reference.dtw(X[0], X[1]) == reference.dtw(X[0], X[2])
    assert (X[1] ** 2).sum() > (X[2] ** 2).sum()
    assert_array_equal(run(reduction(X, [1, 0]), engine=engine)[0], [1, 1])


def test_errors_of_all_fractions(fast_engine):
    X, y = make_cylinder_bell_funnel(30, 64, random_state=0)
    search = dtw_window_search(X, y, engine=fast_engine)
    errors = []
    for window in np.arange(101) / 100:
        model = DTWNearestNeighbor(window=float(window), engine="numba").fit(X, y)
        errors.append(np.mean(y[model.kneighbors()[1][:, 0]] != y))
    assert_array_equal(search.errors, errors)
    assert_array_equal(search.fractions, np.arange(101) / 100)
    assert_array_equal(search.windows, np.ceil(np.arange(101) * 64 / 100 - 1e-9))
    assert search.windows.dtype == np.int64 and search.errors.dtype == np.float64
    assert search.best == np.argmin(errors) / 100
    assert type(search.best) is float


def test_given_windows(rng):
    X, y = load_gunpoint(split="train", return_X_y=True)
    X, y = X[:20, ::5], np.asarray(y)[:20].astype(str)
    everything = dtw_window_search(X, y, windows=range(31))
    points = dtw_window_search(X, y, windows=[7, 0, 7, 3, 400])
    assert_array_equal(points.windows, [7, 0, 7, 3, 400])
    assert_array_equal(points.errors, everything.errors[[7, 0, 7, 3, 30]])
    assert points.fractions is None
    least = points.errors.min()
    assert points.best == min(points.windows[points.errors == least])
    assert type(points.best) is int
    # no time point is the same as nothing of the length
    fractions = dtw_window_search(X, y, windows=[0.1, 0, 1.0])
    assert_array_equal(fractions.windows, [3, 0, 30])
    assert_array_equal(fractions.errors, everything.errors[[3, 0, 30]])
    assert_array_equal(fractions.fractions, [0.1, 0.0, 1.0])


def test_threads_and_parts_change_nothing(fast_engine, rng):
    X = rng.normal(size=(40, 25)).cumsum(axis=1)
    y = rng.integers(0, 3, 40)
    whole, threads = (dtw_window_search(X, y, engine=fast_engine, n_jobs=n) for n in (1, 2))
    assert_array_equal(whole.errors, threads.errors)
    work = reduction(X, np.arange(25)[::-1].copy())
    answer = run(work, engine=fast_engine, n_jobs=1)
    part = work.part(Tile(11, 30, 0, 1))
    assert_array_equal(run(part, engine=fast_engine), answer[11:30])
    engine = find_engine(fast_engine)
    single = [
        engine.compute(work, Tile(row, row + 1, 0, 1), np.zeros(1, np.uint8))[0]
        for row in range(40)
    ]
    assert_array_equal(single, answer)


def test_memory_budget():
    X = np.zeros((3, 1000))
    with config_context(memory="10 kB"), pytest.raises(MemoryBudgetError, match="smallest part"):
        dtw_window_search(X, [0, 1, 0])


@pytest.mark.parametrize(
    ("windows", "message"),
    [
        ([], "not a list of numbers"),
        (3, "not a list of numbers"),
        ([[1, 2]], "not a list of numbers"),
        (["a"], "not a list of numbers"),
        ([True], "not a list of numbers"),
        ([True, 0.5], "not a list of numbers"),
        ([0, np.False_], "not a list of numbers"),
        ([3, -1], "window=-1 is negative"),
        ([0.5, 1.5], "window=1.5 is not a fraction"),
        ([0.5, np.nan], "window=nan is not a fraction"),
        ([1, 0.5], "holds 1 point among fractions of the length"),
        ([0.5, 0, 2], "holds 2 points among fractions of the length"),
    ],
)
def test_bad_windows(windows, message):
    with pytest.raises(ValueError, match=message):
        dtw_window_search([[0, 1], [1, 0]], [0, 1], windows=windows)


def test_bad_input():
    X = np.zeros((3, 4))
    with pytest.raises(ValueError, match="while 2 or more are required"):
        dtw_window_search(X[:1], [0])
    with pytest.raises(ValueError, match="inconsistent numbers of samples"):
        dtw_window_search(X, [0, 1])
    with pytest.raises(ValueError, match="'cost' parameter of dtw_window_search"):
        dtw_window_search(X, [0, 1, 0], cost="cubed")
    with pytest.raises(ValueError, match="Unknown label type"):
        dtw_window_search(X, [0.1, 0.5, 0.2])
    with pytest.raises(ValueError, match="length"):
        dtw_window_search([[0, 1], [1, 0, 2], [3]], [0, 1, 0])


@pytest.mark.slow
@pytest.mark.parametrize("name", COMPLETE)
def test_published_windows(ucr, name):
    X, y, X_test, y_test = load(ucr, name)
    search = dtw_window_search(X, y)
    assert round(100 * search.best) == learned_percent(ucr, name)
    wrong = np.sum(DTWNearestNeighbor(window=search.best).fit(X, y).predict(X_test) != y_test)
    assert is_published(ucr, name, wrong, learned=True)


# --- what the search is made of -------------------------------------------------------------------

GO_ON = np.zeros(1, np.uint8)


@pytest.mark.parametrize("squared", [True, False])
def test_warped_costs_and_the_reach_of_their_paths(rng, squared):
    cost = "squared" if squared else "absolute"
    cell = cell_of(Warping(cost=cost))
    for n in (1, 2, 5, 9):
        x, y = rng.integers(0, 4, (2, 2, n)).astype(float)
        for radius in range(n):
            row, reaches = np.full(n + 2, 5.0), np.full(n + 2, 99)
            allowed = np.full(n, np.inf)
            found = kernels._warp(x, y, radius, allowed, cell, row, reaches, GO_ON)
            distance = kernels._distance(found, squared)
            assert distance == reference.dtw(x, y, cost=cost, window=radius)
            # in no window down to the reach is the best path lost
            assert 0 <= reaches[n] <= radius
            assert distance == reference.dtw(x, y, cost=cost, window=int(reaches[n]))
        costs = (x - y) ** 2 if squared else np.abs(x - y)
        assert kernels._straight(x, y, cell) == costs.sum()


def test_the_largest_of_the_costs_with_one_root(rng):
    for cost in (0.0, 1.0, np.inf, *(10.0 ** rng.uniform(-20, 20, 20))):
        assert kernels._largest_equal(cost, False) == cost
        largest = kernels._largest_equal(cost, True)
        assert largest >= cost and np.sqrt(largest) == np.sqrt(cost)
        assert largest == np.inf or np.sqrt(np.nextafter(largest, np.inf)) > np.sqrt(cost)


@pytest.mark.parametrize(
    ("radii", "message"),
    [
        ([8, 3], "Radii are from 0 to 7, .*: number 0 is 8"),
        ([3, -1], "Radii are from 0 to 7, .*: number 1 is -1"),
        ([3, 3], "Radii descend: number 1, 3, follows 3"),
        ([1, 3], "Radii descend: number 1, 3, follows 1"),
    ],
)
def test_radii_lie_within_the_series_and_descend(rng, radii, message):
    # the kernel takes a candidate of unknown reach for settled where a radius is that large
    with pytest.raises(ValueError, match=message):
        reduction(rng.normal(size=(4, 8)), radii)


def test_every_query_is_work_for_one_column(rng):
    """It meets all candidates at once: more columns would do everything again."""
    work = reduction(rng.normal(size=(14, 17)), [3, 0])
    assert work.shape == (14, 1)
    assert work.total_work == 14 * work.step_work
