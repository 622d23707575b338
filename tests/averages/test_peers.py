"""Stored averages of tslearn (see ``tests/data/peers/README.md``)."""

from __future__ import annotations

import warnings
from pathlib import Path

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.exceptions import ConvergenceWarning

from skts import DTWKMeans
from skts.averages import dtw_barycenter
from skts.metrics import pairwise_dtw

with np.load(Path(__file__).parents[1] / "data" / "peers" / "averages.npz") as stored:
    STORED = dict(stored)
INPUTS = {key.removeprefix("input."): STORED[key] for key in STORED if key.startswith("input.")}
DBA = [key for key in STORED if key.startswith("dba.")]


@pytest.fixture(autouse=True)
def may_stop_early():
    """Few iterations are asked for on purpose."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        yield


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


def test_kmeans(fast_engine):
    X = INPUTS["groups"]
    model = DTWKMeans(3, init=X[:3], tol=0, engine=fast_engine).fit(X)
    assert_array_equal(model.labels_, STORED["kmeans.labels"])
    assert_allclose(model.cluster_centers_, STORED["kmeans.centers"], rtol=1e-9)
    assert model.inertia_ == pytest.approx(len(X) * float(STORED["kmeans.inertia"]), rel=1e-9)
