"""Elastic distances as aeon has them, stored (see ``tests/data/peers/README.md``).

Where aeon departs from the papers, what it computes is written here, so that the difference is
known to be that one: under ERP a border holds the price of all points in each of its cells, under
EDR it holds 0, and points that differ by `epsilon` do not match; the points of several channels
are compared by the Euclidean norm, but for MSM. Of several best paths of shape DTW it follows
another one, and where the first points are far apart, its path ends early.
"""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
import reference_elastic as plain
from numpy.testing import assert_allclose, assert_array_equal

from skts import DTWNearestNeighbor
from skts.engines import replace_kernels
from skts.metrics import pairwise_distances

PEERS = Path(__file__).parents[1] / "data" / "peers"
with np.load(PEERS / "dtw.npz") as inputs, np.load(PEERS / "elastic.npz") as stored:
    INPUTS, STORED = dict(inputs), dict(stored)
PARAMETERS = {
    "erp_gap0.5": {"gap": 0.5},
    "lcss_epsilon0.25": {"epsilon": 0.25},
    "edr_epsilon0.25": {"epsilon": 0.25},
    "msm_penalty0.1": {"penalty": 0.1},
    "twe_nu0.1": {"nu": 0.1, "lmbda": 0.5},
    "wdtw_g0.3": {"g": 0.3},
    "adtw_penalty0.1": {"penalty": 0.1},
}
MATRICES = [key for key in STORED if not key.startswith(("versions", "nearest", "shape"))]
#: Stored matrices of shape DTW, and how many of their values are those of another path.
SHAPES = {
    key: {"shape_dtw_reach4.walks": 1, "shape_dtw_reach4.beats": 10}.get(key, 0)
    for key in STORED
    if key.startswith("shape")
}


def parts_of(key):
    """Distance, parameters, window and name of the data of a stored matrix."""
    measure, data = key.rsplit(".", 1)
    measure, _, window = measure.partition("_window")
    options = {"window": int(window)} if window else {}
    return measure.partition("_")[0], PARAMETERS.get(measure, {}), options, data


def agrees(key):
    """Whether the definitions are the same, or make no difference on these data."""
    metric, _, _, data = parts_of(key)
    if metric == "edr":
        return False
    if metric == "erp":
        return data == "beats"
    return data != "channels" or metric not in ("lcss", "twe")


def sides(metric, data):
    for side in "XY":
        rows = INPUTS[f"{data}_{side}"]
        rows = [x[..., ~np.isnan(np.atleast_2d(x)[0])] for x in rows]
        yield [np.atleast_2d(x) for x in rows if metric != "ddtw" or x.shape[-1] > 2]


@pytest.mark.parametrize("key", [key for key in MATRICES if agrees(key)])
def test_matrices(fast_engine, key):
    metric, given, options, data = parts_of(key)
    X, Y = sides(metric, data)
    if fast_engine == "numba" and data == "ragged":
        pytest.skip("several lengths take compiled kernels")
    with replace_kernels(always=fast_engine == "numba"):
        found = pairwise_distances(
            X, Y, metric=metric, metric_params=given, engine=fast_engine, **options
        )
    assert_allclose(found, STORED[key], rtol=1e-9, atol=1e-12)


def norm(p, q):
    return abs(p[0] - q[0]) if len(p) == 1 else np.linalg.norm(p - q)


def erp_of_aeon(x, y, *, window=None, gap=0.0):
    n, m = x.shape[1], y.shape[1]
    g = np.full(len(x), gap)
    x_gap, y_gap = ([norm(p, g) for p in side.T] for side in (x, y))
    D = plain.fill(
        n, m, n + m, lambda i, D: sum(x_gap), lambda j, D: sum(y_gap),
        lambda i, j, D: np.inf if abs(i - j) > plain.radius_of(window, n, m) else min(
            D[i - 1, j - 1] + norm(x[:, i - 1], y[:, j - 1]),
            D[i - 1, j] + x_gap[i - 1],
            D[i, j - 1] + y_gap[j - 1],
        ),
    )  # fmt: skip
    return D[n, m]


def edr_of_aeon(x, y, *, window=None, epsilon=None):
    n, m = x.shape[1], y.shape[1]
    epsilon = max(np.std(x), np.std(y)) / 4 if epsilon is None else epsilon
    D = plain.fill(
        n, m, n + m, lambda i, D: 0, lambda j, D: 0,
        lambda i, j, D: np.inf if abs(i - j) > plain.radius_of(window, n, m) else min(
            D[i - 1, j - 1] + (norm(x[:, i - 1], y[:, j - 1]) >= epsilon),
            D[i - 1, j] + 1,
            D[i, j - 1] + 1,
        ),
    )  # fmt: skip
    return D[n, m] / max(n, m)


def by_norm(function):
    """A distance of the papers whose points are compared by the Euclidean norm."""

    def distance(x, y, **options):
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(plain, "apart", norm)
            patch.setattr(plain, "alike", lambda p, q, epsilon: norm(p, q) <= epsilon)
            return function(x, y, **options)

    return distance


OF_AEON = {
    "erp": erp_of_aeon,
    "edr": edr_of_aeon,
    "lcss": by_norm(plain.lcss),
    "twe": by_norm(plain.twe),
}


@pytest.mark.parametrize("key", [key for key in MATRICES if not agrees(key)])
def test_differences_of_definition(key):
    metric, given, options, data = parts_of(key)
    X, Y = sides(metric, data)
    for i, j in np.ndindex(min(3, len(X)), min(3, len(Y))):
        found = OF_AEON[metric](X[i], Y[j], **given, **options)
        assert_allclose(found, STORED[key][i, j], rtol=1e-9, atol=1e-12)


@pytest.mark.parametrize("metric", ["erp", "lcss", "msm", "twe", "wdtw", "adtw", "ddtw"])
def test_nearest(fast_engine, metric):
    model = DTWNearestNeighbor(metric=metric, engine=fast_engine)
    with replace_kernels(always=fast_engine == "numba"):
        model.fit(INPUTS["shapes_X"], INPUTS["shapes_y"])
        distances, indices = model.kneighbors(INPUTS["shapes_Z"])
    assert_array_equal(indices[:, 0], STORED[f"nearest.{metric}.index"])
    known = STORED[f"nearest.{metric}.distance"]
    if metric == "erp":
        # aeon's borders rule paths out
        assert (distances[:, 0] <= known * (1 + 1e-9)).all()
        known = np.minimum(known, distances[:, 0])
    assert_allclose(distances[:, 0], known, rtol=1e-9)


def shape_dtw_of_aeon(x, y, reach, lean):
    """The cost along aeon's path: its ties, and row -1 as the last one, in which it ends early.

    Which of two steps costs less may be open; `lean` is by how much more the first may cost.
    """
    p, q = (np.pad(side, ((0, 0), (reach, reach)), mode="edge") for side in (x, y))
    n, m, width = x.shape[1], y.shape[1], 2 * reach + 1

    def cost(i, j):
        return plain.price(p[:, i : i + width].ravel(), q[:, j : j + width].ravel(), "squared")

    D = plain.fill(
        n, m, n + m, plain.nowhere, plain.nowhere,
        lambda i, j, D: cost(i - 1, j - 1) + min(D[i - 1, j - 1], D[i - 1, j], D[i, j - 1]),
    )[1:, 1:]  # fmt: skip
    i, j, total = n - 1, m - 1, 0.0
    while i >= 0 and j >= 0:
        total += plain.price(x[:, i], y[:, j], "squared")
        across, left, above = D[i - 1, j - 1], D[i, j - 1], D[i - 1, j]
        if across < min(left, above) + lean:
            i, j = i - 1, j - 1
        elif left < above + lean:
            j -= 1
        else:
            i -= 1
    return np.sqrt(total)


@pytest.mark.parametrize("key", SHAPES)
def test_shape_dtw(fast_engine, key):
    measure, _, options, data = parts_of(key)
    given = {"reach": 4 if "reach4" in key else 15}
    X, Y = sides(measure, data)
    with replace_kernels(always=fast_engine == "numba"):
        found = pairwise_distances(
            X, Y, metric="shape_dtw", metric_params=given, engine=fast_engine, **options
        )
    other = np.abs(found - STORED[key]) > 1e-9 * found
    assert other.sum() == SHAPES[key]
    for i, j in np.argwhere(other)[:4]:
        possible = [shape_dtw_of_aeon(X[i], Y[j], **given, lean=k * 1e-9) for k in (-1, 0, 1)]
        assert np.isclose(possible, STORED[key][i, j], rtol=1e-9, atol=0).any()


@pytest.mark.parametrize("reach", [15, 4])
def test_nearest_by_shape_dtw(fast_engine, reach):
    model = DTWNearestNeighbor(
        metric="shape_dtw", metric_params={"reach": reach}, engine=fast_engine
    )
    with replace_kernels(always=fast_engine == "numba"):
        model.fit(INPUTS["shapes_X"], INPUTS["shapes_y"])
        distances, indices = model.kneighbors(INPUTS["shapes_Z"])
    name = "nearest.shape_dtw" + ("" if reach == 15 else f"_reach{reach}")
    assert_array_equal(indices[:, 0], STORED[f"{name}.index"])
    assert_allclose(distances[:, 0], STORED[f"{name}.distance"], rtol=1e-9)
