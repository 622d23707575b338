"""Cell policies of the GPU engine: a distance that the package does not have, in every kernel.

Its steps cost differently, and more the farther a cell lies from the diagonal, so that kernels must
tell a policy which step is which and where a cell lies.
"""

from __future__ import annotations

import numpy as np
import pytest
from numpy.testing import assert_allclose

from skts.engines import Series, Warping
from skts.engines.cupy.elastic import programs
from skts.engines.cupy.elastic.cells import cell_of

CELL = "Penalized"
#: DTW whose steps down cost 0.25 more and those to the right 0.5, times 1 + |j - i| / 8.
POLICY = """
struct Penalized : PlainCell {
    enum { UNIFORM = false, PLACED = true };

    template <typename At, typename T>
    __device__ __forceinline__ T join(const At& at, const Before<T>& from) const {
        const T diagonal = from.diagonal, up = from.up + T(0.25), left = from.left + T(0.5);
        const T best = diagonal < up ? diagonal : up;
        const T place = T(abs(at.offset())) / 8;
        return at.total(Squared{}) * (1 + place) + (best < left ? best : left);
    }
};
"""


def penalized(x, y, radius):
    """The matrix, cell by cell."""
    n, m = x.shape[1], y.shape[1]
    D = np.full((n + 1, m + 1), np.inf)
    D[0, 0] = 0
    for i in range(n):
        for j in range(max(0, i - radius), min(m, i + radius + 1)):
            cost = np.sum((x[:, i] - y[:, j]) ** 2) * (1 + abs(i - j) / 8)
            D[i + 1, j + 1] = cost + min(D[i, j], D[i, j + 1] + 0.25, D[i + 1, j] + 0.5)
    return D[n, m]


def test_names():
    assert cell_of(Warping()) == "Dtw<Squared>"
    assert cell_of(Warping("dog_keeper", cost="absolute")) == "DogKeeper<Absolute>"


@pytest.fixture
def gpu(monkeypatch):
    """The module of the kernels, with the policy at the end of every source."""
    pytest.importorskip("cupy")
    from skts.engines.cupy import loading
    from skts.engines.cupy.elastic import dtw

    plain = loading.source
    monkeypatch.setattr(loading, "source", lambda file: plain(file) + POLICY)
    for module in (programs, dtw):
        monkeypatch.setattr(module, "cell_of", lambda warping: CELL, raising=False)
    monkeypatch.setattr(dtw, "CERTIFY", f"certify<{CELL}>")
    monkeypatch.setattr(dtw, "any_cell", lambda warping: np.zeros(1, np.uint8))
    return dtw


@pytest.mark.gpu
@pytest.mark.parametrize(
    ("n", "m", "window", "kind"),
    [
        (20, 20, None, "dtw"),
        (9, 150, None, "dtw"),
        (40, 40, 2, "narrow"),
        (300, 300, 90, "band"),
    ],
)
@pytest.mark.parametrize("channels", [1, 2])
def test_a_policy_of_unequal_steps(gpu, n, m, window, kind, channels):
    rng = np.random.default_rng(n)
    X, Y = rng.normal(size=(3, channels, n)), rng.normal(size=(2, channels, m))
    warping = Warping(window=window)
    reach = int(warping.radius(n, m))
    expected = [[penalized(x, y, reach) for y in Y] for x in X]
    rows, cols = (gpu.upload(Series(Z, np.full(len(Z), Z.shape[2]))) for Z in (X, Y))
    narrow = programs.choose_narrow("double", channels, n, m, warping)
    kernel, _ = programs.choose_dtw("double", channels, n, m, warping, reach, 6)
    chosen = narrow or kernel
    assert chosen.cell == CELL
    assert chosen.name.startswith(kind)
    options = {"reach": reach, "root": False, "budget": 2**30}
    # the sides must not be exchanged, since the steps differ
    given = {} if narrow else {"kernel": kernel}
    found = gpu.distances(rows, cols, warping, **options, **given)
    assert_allclose(found.get(), expected, rtol=1e-12)
    import cupy as cp

    items = cp.asarray(np.array([(i, j) for i in range(3) for j in range(2)], np.int32))
    certified = gpu.certify(rows, cols, items, warping, **options)
    assert_allclose(certified.get(), np.ravel(expected), rtol=1e-12)
