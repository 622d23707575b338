"""Barycenters under other metrics than DTW: against plain loops, and aeon's."""

from __future__ import annotations

import json
from functools import partial
from pathlib import Path

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal

from skts._alignment import NEVER_RISES, align, alignment_of
from skts._metrics import distance_of
from skts._validation import check_series
from skts.averages import dtw_barycenter
from skts.engines import AlignmentSums, DTWPath, Series, prepared, run
from skts.engines.core.verify import verify
from skts.exceptions import UnsupportedReductionError, VerificationError
from skts.metrics import pairwise_distances
from tests import reference_averages as reference

#: Few iterations are asked for on purpose.
pytestmark = pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")

SQUARED = {"dtw", "adtw", "wdtw", "ddtw", "dog_keeper", "euclidean", "shape_dtw"}
#: Of each metric some parameters that are not its defaults.
PARAMETERS = {
    "adtw": {"penalty": 0.25},
    "ddtw": {},
    "dog_keeper": {},
    "edr": {"epsilon": 0.75},
    "erp": {"gap": 0.5},
    "euclidean": {},
    "lcss": {"epsilon": 0.625},
    "msm": {"penalty": 0.125},
    "shape_dtw": {"reach": 2},
    "twe": {"nu": 0.0625, "lmbda": 0.5},
    "wdtw": {"g": 0.3},
}
#: Each of the others has kernels of its own to compile.
SOON = {"adtw", "ddtw", "dog_keeper", "erp", "euclidean", "msm", "shape_dtw"}


def marked(metric, *more):
    """A case of a metric, slow unless it comes soon."""
    return pytest.param(metric, *more, marks=[] if metric in SOON else pytest.mark.slow)


with np.load(Path(__file__).parents[1] / "data" / "peers" / "elastic_averages.npz") as stored:
    STORED = dict(stored)
OF_AEON = sorted(key for key in STORED if key.startswith("average."))


def series(rng, metric, n_channels):
    """Some series, of several lengths if the metric takes them, and a start."""
    lengths = (9, 9, 9, 9) if metric == "euclidean" else (9, 12, 7, 4)
    X = [rng.normal(size=(n_channels, n)).cumsum(axis=-1) for n in lengths]
    start = rng.normal(size=(n_channels, 9 if metric == "euclidean" else 8))
    return [np.round(x * 16) / 16 for x in X], np.round(start * 16) / 16


def inertia(X, average, metric, window, weights, parameters):
    options = {} if metric == "euclidean" else {"window": window}
    found = pairwise_distances(
        X, [average], metric=metric, metric_params=parameters, **options, engine="oracle"
    )[:, 0]
    return np.dot(weights, found**2 if metric in SQUARED else found)


@pytest.mark.parametrize("n_channels", [1, 2])
@pytest.mark.parametrize("metric", [marked(metric) for metric in PARAMETERS])
def test_iterations_are_those_of_plain_loops(fast_engine, rng, metric, n_channels):
    """Numbers with few digits, whose sums are exact: paths tie by the rule, not by roundings."""
    weights, parameters = np.array([1.0, 0.5, 2.0, 0.0]), PARAMETERS[metric]
    X, start = series(rng, metric, n_channels)
    for window in (None,) if metric == "euclidean" else (None, 2):
        average = start
        for _ in range(2):
            updated = reference.elastic_update(metric, X, average, window, weights, **parameters)
            both = [
                (inertia(X, one, metric, window, weights, parameters), k)
                for k, one in enumerate((average, updated))
            ]
            least, k = min(both)
            found = dtw_barycenter(
                X, init=average, metric=metric, metric_params=parameters, window=window,
                weights=weights, max_iter=1, tol=0, engine=fast_engine,
            )  # fmt: skip
            expected = (average, updated)[k]
            assert_allclose(np.atleast_2d(found.average), expected, rtol=1e-12, atol=1e-12)
            assert found.inertia == pytest.approx(least, rel=1e-12)
            assert k == 1 or metric not in NEVER_RISES
            average = np.round(updated * 16) / 16


def test_no_iteration_raises_the_inertia_where_that_is_said(rng):
    X = rng.normal(size=(12, 30)).cumsum(axis=1)
    for metric in sorted(NEVER_RISES):
        last = np.inf
        for max_iter in (1, 2, 3, 5, 50):
            found = dtw_barycenter(X, metric=metric, max_iter=max_iter, tol=0, engine="numba")
            assert found.inertia <= last
            last = found.inertia


def test_the_euclidean_average_is_the_mean(fast_engine, rng):
    X = rng.normal(size=(5, 2, 11))
    found = dtw_barycenter(X, init=X[0], metric="euclidean", engine=fast_engine)
    assert_allclose(found.average, X.mean(axis=0), rtol=1e-12)
    assert found.inertia == pytest.approx(((X - X.mean(axis=0)) ** 2).sum(), rel=1e-12)


def updated(X, start, metric, parameters):
    """The average after an iteration, whether it is better or not."""
    X, start = check_series(X), check_series(start[np.newaxis])
    none, ones = np.zeros(len(X), np.int64), np.ones(len(X))
    work = alignment_of(X, start, none, ones, distance_of(metric, parameters))
    found = align(work, partial(run, engine="numba"))
    return found.means(start.values)[0], found


def test_channels_of_msm_have_averages_of_their_own(rng):
    X = rng.normal(size=(7, 2, 14)).cumsum(axis=2)
    average, found = updated(X, X[3], "msm", {})
    alone = [updated(X[:, c], X[3, c], "msm", {}) for c in range(2)]
    assert_array_equal(average, np.concatenate([one for one, _ in alone]))
    assert_array_equal(found.distances, sum(one.distances for _, one in alone))


def test_starts_at_the_medoid_under_the_metric(rng):
    X = rng.normal(size=(8, 15)).cumsum(axis=1)
    medoid = X[np.argmin(pairwise_distances(X, metric="msm", engine="numba").sum(axis=1))]
    given = {"metric": "msm", "max_iter": 2, "engine": "numba"}
    expected = dtw_barycenter(X, init=medoid, **given)
    assert_array_equal(dtw_barycenter(X, init="medoid", **given).average, expected.average)


@pytest.mark.parametrize(("metric", "key"), [marked(key.split(".")[2], key) for key in OF_AEON])
def test_averages_of_aeon(metric, key):
    _, name, _, max_iter = key.split(".")
    X = STORED[f"input.{name}"]
    given = json.loads(str(STORED["parameters"]))[metric]
    theirs = float(STORED[key.replace("average", "cost")])
    # of other metrics aeon follows the least cells before, whatever the step from them costs
    if metric == "wdtw" and max_iter == "1":
        average = updated(X, X[0], metric, given)[0][0]
        assert_allclose(average, STORED[key], rtol=1e-9, atol=1e-9)
    found = dtw_barycenter(
        X, init=X[0], metric=metric, metric_params=given, max_iter=int(max_iter), tol=0,
        engine="numba",
    )  # fmt: skip
    # from the same start: in the end no worse
    assert found.inertia <= theirs * (1 + 1e-9) or max_iter == "1"


STEPPED = [marked(metric) for metric in PARAMETERS if metric not in SQUARED]


@pytest.mark.parametrize("metric", [marked("adtw"), *STEPPED])
def test_sums_of_single_paths(fast_engine, make_series, metric):
    """An average whose series has weight 1, all others 0, sums what its own path matches."""
    given, averages = make_series(4, 21, shortest=12), make_series(2, 17, shortest=9)
    labels, warping = np.array([0, 1, 1, 0]), distance_of(metric, PARAMETERS[metric]).warping
    for place, label in enumerate(labels):
        own, one = averages.take(slice(label, label + 1)), given.take(slice(place, place + 1))
        own = Series(own.values[:, :, : own.lengths[0]].copy(), own.lengths)
        work = AlignmentSums(given, averages, labels, np.eye(4)[place], warping)
        found = run(work, engine=fast_engine)
        left, right, ready = prepared(own, one, warping)
        path, distance = run(DTWPath(left, right, ready), engine=fast_engine)
        n = averages.n_timepoints
        assert_array_equal(found.weights[label], np.bincount(path[:, 0], minlength=n))
        sums = np.bincount(path[:, 0], given.values[place, 0, path[:, 1]], n)
        assert_array_equal(found.values[label, 0], sums)
        assert work.distances(found.costs)[place] == distance


@pytest.mark.parametrize("metric", [marked("adtw"), marked("wdtw"), marked("ddtw"), *STEPPED])
@pytest.mark.parametrize("window", [None, 3, 40])
def test_paths_side_by_side_are_those_one_by_one(make_series, rng, monkeypatch, metric, window):
    """Lengths on both sides of words that hold steps, and of a tile; bands that some leave."""
    parameters = None if metric == "edr" else PARAMETERS[metric]
    distance = distance_of(metric, parameters, window=window)
    for channels in (1,) if metric == "msm" else (1, 2):
        for n, m in ((14, 19), (67, 130), (9, 300)):
            # whole numbers: most paths tie
            sets = make_series(40, m, channels, shortest=m // 3), make_series(3, n, channels)
            given, averages = (Series(np.round(one.values), one.lengths) for one in sets)
            work = alignment_of(given, averages, rng.integers(0, 3, 40), rng.random(40), distance)
            found = run(work, engine="numba")
            with monkeypatch.context() as patch:
                patch.setattr("skts.engines.numba.elastic.alignment_tiles.MOST_STEPS", 0)
                expected = run(work, engine="numba")
            for one, other in zip(found, expected, strict=True):
                assert_array_equal(one, other)


def test_a_wrong_distance_is_found_out(make_series):
    warping = distance_of("adtw").warping
    work = AlignmentSums(
        make_series(4, 9), make_series(2, 7), np.arange(4) % 2, np.ones(4), warping
    )
    answer = run(work, engine="numba")
    verify(work, "numba", answer)
    answer.costs[2] *= 1.001
    with pytest.raises(VerificationError, match="the distance of 2 and its average"):
        verify(work, "numba", answer)


def test_wrong_arguments(rng):
    X = rng.normal(size=(4, 9))
    for given, message in (
        ({"metric": "warped"}, "The 'metric' parameter"),
        ({"metric": "msm", "metric_params": {"g": 1.0}}, "'g' is no parameter of metric='msm'"),
        ({"metric": "msm", "method": "subgradient"}, "method='subgradient' takes metric='dtw'"),
        ({"metric": "euclidean", "window": 2}, "window=2 does not go with metric='euclidean'"),
        ({"metric": "euclidean", "init": X[0, :5]}, "needs series of one length"),
        ({"metric": "ddtw", "init": X[0, :2]}, "at least 3 time points"),
    ):
        with pytest.raises((ValueError, TypeError), match=message):
            dtw_barycenter(X, **given)


def test_no_path_of_several_channels_under_msm(fast_engine, make_series):
    warping = distance_of("msm").warping
    series, averages = make_series(3, 9, 2), make_series(1, 9, 2)
    work = AlignmentSums(series, averages, np.zeros(3, np.int64), np.ones(3), warping)
    with pytest.raises(UnsupportedReductionError, match="each channel has its own"):
        run(work, engine=fast_engine)
