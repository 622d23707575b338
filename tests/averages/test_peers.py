"""Stored averages of tslearn (see ``tests/data/peers/README.md``)."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal

from skts import DTWKMeans
from skts.averages import dtw_barycenter, soft_dtw_barycenter
from skts.engines import Series, SoftDTWGradient, run
from skts.metrics import pairwise_dtw, pairwise_soft_dtw, soft_dtw_gradient

#: Few iterations are asked for on purpose.
pytestmark = pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")

with np.load(Path(__file__).parents[1] / "data" / "peers" / "averages.npz") as stored:
    STORED = dict(stored)
INPUTS = {key.removeprefix("input."): STORED[key] for key in STORED if key.startswith("input.")}
SOFT = [key for key in STORED if key.startswith("softdtw.")]
SOFT_BARYCENTERS = [key for key in STORED if key.startswith("softbarycenter.")]
DBA = [key for key in STORED if key.startswith("dba.")]
SUBGRADIENTS = [key for key in STORED if key.startswith("subgradient.")]


def case(name):
    """The series and the arguments of a stored barycenter."""
    X = INPUTS[name if name in INPUTS else "walks"]
    given = {"init": X[0]}
    if name == "weighted":
        given["weights"] = INPUTS["weights"]
    if name == "window":
        given["window"] = 3
    if name == "shorter":
        given["init"] = INPUTS["start"]
    return X, given


@pytest.mark.parametrize("key", DBA)
def test_barycenters(fast_engine, key):
    _, name, max_iter = key.split(".")
    X, given = case(name)
    found = dtw_barycenter(X, **given, max_iter=int(max_iter), tol=0, engine=fast_engine)
    if max_iter == "30":
        # from the same start, and after as many steps: no worse
        weights = given.get("weights", np.ones(len(X)))
        theirs = STORED[key][np.newaxis]
        squares = pairwise_dtw(X, theirs, window=given.get("window"))[:, 0] ** 2
        assert found.inertia <= np.dot(weights, squares) * (1 + 1e-9)
    assert_allclose(found.average, STORED[key], rtol=1e-9, atol=1e-9)


@pytest.mark.parametrize("key", SUBGRADIENTS)
def test_subgradients(fast_engine, key):
    _, name, max_iter = key.split(".")
    X, given = case(name)
    found = dtw_barycenter(
        X, **given, window=3, method="subgradient", max_iter=int(max_iter), tol=0, random_state=5,
        engine=fast_engine,
    )  # fmt: skip
    assert_allclose(found.average, STORED[key], rtol=1e-9, atol=1e-9)


def test_kmeans(fast_engine):
    X = INPUTS["groups"]
    model = DTWKMeans(3, init=X[:3], tol=0, engine=fast_engine).fit(X)
    assert_array_equal(model.labels_, STORED["kmeans.labels"])
    assert_allclose(model.cluster_centers_, STORED["kmeans.centers"], rtol=1e-9)
    assert model.inertia_ == pytest.approx(len(X) * float(STORED["kmeans.inertia"]), rel=1e-9)


def as_series(X):
    """A set of series, without the NaN that pads them."""
    X = X[:, np.newaxis] if X.ndim == 2 else X
    return Series(np.nan_to_num(X), (~np.isnan(X[:, 0])).sum(axis=1))


@pytest.mark.parametrize("key", SOFT)
def test_soft_dtw(fast_engine, key):
    _, name, gamma = key.split(".", 2)
    found = pairwise_soft_dtw(INPUTS[name], gamma=float(gamma), engine=fast_engine)
    assert_allclose(found, STORED[key], rtol=1e-11, atol=1e-11)


@pytest.mark.parametrize("gamma", ["0.01", "0.5", "10.0"])
def test_soft_gradients(fast_engine, gamma):
    x, y = INPUTS["walks"][0], INPUTS["walks"][1, :27]
    found = soft_dtw_gradient(x, y, gamma=float(gamma), engine=fast_engine)
    assert found.value == pytest.approx(float(STORED[f"value.{gamma}"]), rel=1e-12)
    # both are off by some units of the cost of a path over gamma
    allowed = 1e-15 * found.value / float(gamma) * np.abs(found.gradient).max()
    assert_allclose(found.gradient, STORED[f"gradient.{gamma}"], rtol=0, atol=allowed)


@pytest.mark.parametrize("key", SOFT_BARYCENTERS)
def test_soft_barycenters(fast_engine, key):
    _, name, gamma = key.split(".", 2)
    (X, given), gamma, theirs = case(name), float(gamma), np.atleast_2d(STORED[key])
    weights = given.get("weights", np.ones(len(X)))
    # their average is a minimum of our sum
    series, average = as_series(X), Series(theirs[np.newaxis], np.array([theirs.shape[1]]))
    at_theirs = run(SoftDTWGradient(series, average, weights, gamma), engine=fast_engine)
    assert np.abs(at_theirs.gradient).max() < 2e-2
    found = soft_dtw_barycenter(
        X, gamma=gamma, **given, max_iter=200, tol=1e-10, engine=fast_engine
    )
    if name in ("channels", "ragged"):
        # the search goes the same way, where 16 is the range of the data
        assert found.inertia == pytest.approx(np.dot(weights, at_theirs.values), rel=1e-9)
        assert_allclose(np.atleast_2d(found.average), theirs, rtol=1e-6, atol=1e-6)
