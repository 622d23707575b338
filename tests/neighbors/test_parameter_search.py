"""elastic_parameter_search: the errors of brute force for every combination of parameters."""

from __future__ import annotations

import itertools
from functools import partial
from pathlib import Path

import numpy as np
import pytest
import reference
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.model_selection import GridSearchCV, LeaveOneOut

from skts import DTWNearestNeighbor
from skts._metrics import METRICS, distance_of
from skts.base import check_series
from skts.datasets import load_gunpoint, make_cylinder_bell_funnel
from skts.engines import DTWNeighbors, DTWPairs, replace_kernels, run
from skts.neighbors import _parameter_search as kernels
from skts.neighbors import elastic_parameter_search
from skts.neighbors._parameter_grids import default_grid

PEERS = Path(__file__).parents[1] / "data" / "peers"
#: Numbers of which sums are exact: plain loops round like kernels only where nothing is rounded.
GRIDS = {
    "dtw": {"window": [0, 0.1, 3, None, 0.5]},
    "ddtw": {"window": [0.2, 0]},
    "dog_keeper": {"window": [None, 0, 2, 0.3]},
    "frechet": {"window": [1, 0.4]},
    "euclidean": {},
    "wdtw": {"g": [0.5, 0.0, 0.05]},
    "adtw": {"penalty": [2.0, 0.0, 0.25, 0.25]},
    "shape_dtw": {"reach": [2, 0, 1], "window": [None, 0.2]},
    "erp": {"gap": [-0.5, 1.0], "window": [0.1, None]},
    "edr": {"epsilon": [0.5, None, 1, 0.1], "window": [3, None]},
    "lcss": {"window": [0.3, 0.0], "epsilon": [0.2, 1.0, 0.5]},
    "msm": {"penalty": [0.125, 10, 1.0, 0.0]},
    "twe": {"lmbda": [0.5, 0.0], "nu": [0.0625, 0.25]},
}
DATA = {
    "walks": lambda rng: rng.normal(size=(24, 14)).cumsum(axis=1),
    # integers: many paths and many series at equal distance
    "ties": lambda rng: rng.integers(0, 3, (24, 9)).astype(float),
    "channels": lambda rng: rng.normal(size=(16, 2, 8)),
    "unequal": lambda rng: [
        rng.integers(0, 4, int(n)).astype(float) for n in rng.integers(3, 9, 22)
    ],
    "two": lambda rng: rng.normal(size=(2, 6)),
}


def plain_errors(X, y, metric, cost, found):
    """Errors of each combination by plain loops."""
    errors = []
    for one in found.params:
        options = {"cost": cost, "window": one["window"], **(one["metric_params"] or {})}
        nearest = []
        for i, x in enumerate(X):
            distances = [reference.named(metric, x, other, **options) for other in X]
            distances[i] = np.inf
            nearest.append(int(np.argmin(distances)))
        errors.append(np.mean(y[nearest] != y))
    return errors


def errors_of_the_estimator(X, y, metric, cost, found, engine):
    """Errors of each combination by the estimator, one at a time."""
    errors = []
    for one in found.params:
        model = DTWNearestNeighbor(**one, engine=engine).fit(X, y)
        errors.append(np.mean(y[model.kneighbors(return_distance=False)[:, 0]] != y))
    return errors


def check_errors(X, y, metric, cost, engine, wanted):
    """Search, and compare all that is found."""
    grid = GRIDS[metric]
    found = elastic_parameter_search(X, y, metric=metric, param_grid=grid, cost=cost, engine=engine)
    combinations = list(itertools.product(*grid.values()))
    for one, values in zip(found.params, combinations, strict=True):
        given = {"window": one["window"], **(one["metric_params"] or {})}
        assert [given[name] for name in grid] == list(values)
    errors = wanted(X, y, metric, cost, found)
    assert_array_equal(found.errors, errors)
    assert found.best_error == min(errors) and found.best_params in found.params


def revealing_labels(rng, X, metric, engine):
    """Labels that are those of the nearest series under usual parameters: others are errors."""
    usual = DTWNearestNeighbor(metric=metric, engine=engine).fit(X, np.zeros(len(X), int))
    return usual.kneighbors(return_distance=False)[:, 0] % 3


@pytest.mark.parametrize("kind", DATA)
@pytest.mark.parametrize("metric", GRIDS)
def test_errors_are_those_of_plain_loops(monkeypatch, rng, metric, kind):
    if metric == "euclidean" and kind == "unequal":
        return  # not defined
    # few neighbours are kept, so that of few series some are searched again
    monkeypatch.setattr(kernels, "_DEPTH", 2)
    X = [x[..., :5] for x in DATA[kind](rng)[:7]]
    with replace_kernels(always=True):
        y = revealing_labels(rng, X, metric, "numba")
        for cost in METRICS[metric].prices:
            check_errors(X, y, metric, cost, "numba", plain_errors)


def test_all_distances_are_searched():
    assert set(GRIDS) == set(METRICS)


@pytest.mark.slow
@pytest.mark.parametrize("kind", DATA)
@pytest.mark.parametrize("metric", GRIDS)
def test_errors_are_those_of_the_estimator_on_every_engine(fast_engine, rng, metric, kind):
    if metric == "euclidean" and kind == "unequal":
        return  # not defined
    X = DATA[kind](rng)
    wanted = partial(errors_of_the_estimator, engine=fast_engine)
    for cost in METRICS[metric].prices:
        for y in (revealing_labels(rng, X, metric, fast_engine), rng.integers(0, 3, len(X))):
            check_errors(X, y, metric, cost, fast_engine, wanted)


# kernels that other tests compile, too, are not replaced
@pytest.mark.parametrize("metric", ["dtw", "twe", "lcss", "msm"])
def test_every_engine_finds_the_same(fast_engine, rng, metric):
    # of unequal lengths NumPy computes none
    X = DATA["unequal" if metric == "dtw" else "ties"](rng)[:20]
    y = rng.integers(0, 2, 20)
    given = {"metric": metric, "param_grid": GRIDS[metric]}
    with replace_kernels(always=fast_engine == "numba" and metric != "dtw"):
        found = elastic_parameter_search(X, y, **given, engine=fast_engine)
    oracle = elastic_parameter_search(X, y, **given, engine="oracle")
    assert_array_equal(found.errors, oracle.errors)
    assert found.best_params == oracle.best_params


@pytest.mark.parametrize("engine", ["oracle", pytest.param("numba", marks=pytest.mark.slow)])
@pytest.mark.parametrize("metric", [name for name in METRICS if name not in ("dtw", "euclidean")])
def test_distances_grow_as_parameters_say(rng, metric, engine):
    """Not even a rounding may make one less: searches rely on it."""
    values = {name: sorted(10.0 ** rng.uniform(-4, 3, 6)) for name in METRICS[metric].parameters}
    growth = {name: limits.growth for name, (_, limits) in METRICS[metric].parameters.items()}
    sets = (
        rng.normal(size=(2, 2, 12)),
        1e6 + rng.integers(0, 3, (2, 1, 9)),
        rng.random((2, 1, 30)),
    )
    for name, sign in [*growth.items(), ("window", -1)]:
        if sign == 0:
            continue
        given = np.arange(0, 12, 2).tolist() if name == "window" else values[name]
        for x, y in sets:
            found = []
            for value in given:
                chosen = {"window": value} if name == "window" else {"metric_params": {name: value}}
                left, right = check_series(x[None]), check_series(y[None])
                left, right, warping = distance_of(metric, **chosen).sides(left, right)
                pairs = np.zeros((1, 2), np.int64)
                found.append(run(DTWPairs(left, right, pairs, warping), engine=engine)[0])
            assert (sign * np.diff(found) >= 0).all(), (name, found)


def test_what_was_found_before_spares_searches(monkeypatch):
    X, y = make_cylinder_bell_funnel(40, 24, random_state=0)
    searched = []

    def counted(work, **options):
        if isinstance(work, DTWNeighbors):
            searched.append(len(work.queries))
        return run(work, **options)

    def searches(metric, **grid):
        searched.clear()
        with replace_kernels(always=True):
            elastic_parameter_search(X, y, metric=metric, param_grid=grid, engine="numba")
        return searched

    monkeypatch.setattr(kernels, "run", counted)
    found = searches("msm", penalty=np.linspace(1, 2, 20))
    assert found[0] == 40 and sum(found) < 3 * 40
    # distances neither grow nor fall: each value is searched
    assert searches("wdtw", g=[0.1, 0.2]) == [40, 40]
    # the same window twice, in points and as a fraction, is one
    found = searches("dog_keeper", window=[6, 0.25, 23, 40, None, 1.0])
    assert found[0] == 40 and len(found) <= 2


def test_runs_of_a_parameter_are_few(monkeypatch):
    """A run each for some neighbours of all series, and not for each neighbour of each search."""
    X, y = make_cylinder_bell_funnel(40, 24, random_state=0)
    works = []

    def counted(work, **options):
        works.append(work)
        return run(work, **options)

    monkeypatch.setattr(kernels, "run", counted)
    given = {"metric": "msm", "param_grid": {"penalty": 10.0 ** np.linspace(-2, 2, 30)}}
    with replace_kernels(always=True):
        elastic_parameter_search(X, y, **given, engine="numba")
    assert len(works) <= 30 * (4 + 1)


def test_of_equal_errors_the_smallest_parameters_are_best():
    X = np.array([[0.0, 0, 9, 9], [0, 0, 9, 8], [5, 5, -9, 0], [5, 5, -9, 1]])
    y = [0, 0, 1, 1]
    grid = {"window": [None, 2, 1.0], "lmbda": [2, 0.5], "nu": [0.1, 0.001]}
    found = elastic_parameter_search(X, y, metric="twe", param_grid=grid, engine="oracle")
    assert found.best_error == 0 and (found.errors == 0).all()
    # two points are less than all of the length
    assert found.best_params == {
        "metric": "twe",
        "metric_params": {"nu": 0.001, "lmbda": 0.5},
        "window": 2,
    }
    grid = {"window": [2**70, 3, 0.75, 0.3, 0.26, 2]}
    found = elastic_parameter_search(X, y, metric="erp", param_grid=grid, engine="oracle")
    assert (found.errors == 0).all() and found.best_params["window"] == 0.26
    grid = {"epsilon": [None, 1]}
    found = elastic_parameter_search(X, y, metric="edr", param_grid=grid, engine="oracle")
    assert found.best_params["metric_params"] == {"epsilon": 1}


def test_parameters_that_are_tried_by_default(rng):
    X = rng.normal(size=(6, 20))
    sizes = {}
    for metric in METRICS:
        squared, absolute = (
            default_grid(metric, check_series(X), squared=one) for one in (True, False)
        )
        sizes[metric] = int(np.prod([len(values) for values in squared.values()]))
        assert list(squared) == list(absolute)
        for name, values in squared.items():
            if (metric, name) != ("edr", "epsilon"):
                assert min(values) >= 0 and np.isfinite(values).all()
    assert {metric for metric, size in sizes.items() if size != 100} == {
        "euclidean",
        "shape_dtw",
    }
    grid = default_grid("msm", check_series(X), squared=True)
    assert (grid["penalty"][0], grid["penalty"][24], grid["penalty"][-1]) == (0.01, 0.1, 100)
    thresholds = default_grid("lcss", check_series(X), squared=True)["epsilon"]
    assert_allclose([thresholds[0], thresholds[-1]], [X.std() / 5, X.std()], rtol=1e-12)
    for metric in ("lcss", "adtw", "erp"):
        loud = check_series(1e144 * X)
        for values in default_grid(metric, loud, squared=True).values():
            assert np.isfinite(values).all()


def test_cross_validation_finds_the_same():
    """GridSearchCV over metric and metric_params, one series left out at a time."""
    X, y = load_gunpoint(split="train", return_X_y=True)
    X, y = X[:14, ::12], y[:14]
    grid = {"penalty": [0.1, 1.0, 5.0]}
    params = [{"penalty": one} for one in grid["penalty"]]
    search = GridSearchCV(
        DTWNearestNeighbor(engine="numba"),
        [{"metric": ["msm"], "metric_params": params}, {"metric": ["euclidean", "ddtw"]}],
        cv=LeaveOneOut(),
    )
    with replace_kernels(always=True):
        found = elastic_parameter_search(X, y, metric="msm", param_grid=grid, engine="numba")
        search.fit(X, y)
        assert_allclose(1 - search.cv_results_["mean_test_score"][:3], found.errors)
        model = DTWNearestNeighbor(**found.best_params, engine="numba").fit(X, y)
        assert model.metric == "msm" and model.predict(X[:2]).tolist() == y[:2].tolist()


def test_values_may_come_from_anything_that_lists_them():
    X, y = np.eye(4, 6), [0, 1, 0, 1]
    wanted = elastic_parameter_search(X, y, param_grid={"window": [0, 2]}, engine="oracle")
    for values in (np.array([0, 2]), range(0, 3, 2), iter([0, 2]), (0, 2)):
        found = elastic_parameter_search(X, y, param_grid={"window": values}, engine="oracle")
        assert found.params == wanted.params
        assert all(type(one["window"]) is int for one in found.params)


def test_bad_grids():
    X = [[0.0, 1.0], [1.0, 0.0]]
    with pytest.raises(ValueError, match="'gap' is no parameter"):
        elastic_parameter_search(X, [0, 1], metric="msm", param_grid={"gap": [1]})
    with pytest.raises(ValueError, match="no list of numbers"):
        elastic_parameter_search(X, [0, 1], metric="msm", param_grid={"penalty": "12"})
    with pytest.raises(ValueError, match="not a finite number"):
        elastic_parameter_search(X, [0, 1], metric="msm", param_grid={"penalty": [-1]})
    with pytest.raises(ValueError, match="series of one length"):
        elastic_parameter_search([[0.0], [1.0, 2.0]], [0, 1], metric="euclidean")


#: Names of parameters in the order of the stored columns.
COLUMNS = {
    "dtw": ("window",),
    "ddtw": ("window",),
    "wdtw": ("g",),
    "lcss": ("epsilon", "window"),
    "erp": ("gap", "window"),
    "msm": ("penalty",),
}


def stored_grid(metric, series):
    """The stored grid in order, its errors, and the one that is tried by default."""
    with np.load(PEERS / "parameters.npz") as file:
        theirs, errors = file[f"grid.{metric}"], file.get(f"errors.{metric}")
    grid = default_grid(metric, series, squared=True)
    own = np.array(list(itertools.product(*(grid[name] for name in COLUMNS[metric]))))
    order = np.lexsort(theirs.T[::-1])
    return theirs[order], errors if errors is None else errors[order], own


@pytest.mark.parametrize("metric", COLUMNS)
def test_parameters_are_those_of_the_ensemble_in_aeon(metric):
    with np.load(PEERS / "dtw.npz") as file:
        theirs, _, own = stored_grid(metric, check_series(file["shapes_X"]))
    assert_allclose(own, theirs, rtol=1e-12, atol=1e-15)


@pytest.mark.parametrize(
    "metric",
    [
        "dtw",
        "ddtw",
        *(pytest.param(one, marks=pytest.mark.slow) for one in ("wdtw", "lcss", "msm")),
    ],
)
def test_errors_are_those_of_aeon(metric):
    with np.load(PEERS / "dtw.npz") as file:
        X, y = file["shapes_X"], file["shapes_y"]
    theirs, errors, _ = stored_grid(metric, check_series(X))
    found = elastic_parameter_search(X, y, metric=metric, engine="numba")
    params = [{"window": one["window"], **(one["metric_params"] or {})} for one in found.params]
    own = np.array([[one[name] for name in COLUMNS[metric]] for one in params])
    own = found.errors[np.lexsort(own.T[::-1])]
    # where the window is 0, aeon forgets matches at points that do not match
    same = theirs[:, -1] > 0 if metric == "lcss" else slice(None)
    assert_array_equal(own[same], errors[same])
