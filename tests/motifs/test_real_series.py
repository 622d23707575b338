"""Profile and MK agree on recorded series: those that come with skts, and those of SKTS_DATA."""

from __future__ import annotations

import numpy as np
import pytest
from numpy.testing import assert_allclose

from skts.datasets import load_arrow_head, load_ecg, load_gunpoint
from skts.engines import ConcatenatedSeries, MotifPair, WindowDistances, run
from skts.motifs import matrix_profile
from tests.engines.profile.test_mk import profile_pair


def check(series, lengths, engine):
    """MK finds the pair of the profile; some values of the profile are those of all pairs."""
    line = ConcatenatedSeries.of(series, gap=1)
    for length in lengths:
        exclusion = -(-length // 4)
        expected = profile_pair(line, length, exclusion)
        assert run(MotifPair(line, length, exclusion), engine=engine)[:3] == expected
    if len(series) == 1:
        found = matrix_profile(series[0], window=length, engine=engine)
        places = np.linspace(0, len(found.indices) - 1, 40).astype(int)
        rows = run(WindowDistances(line, places, line, length), engine="numba")
        rows[np.abs(places[:, None] - np.arange(rows.shape[1])) <= exclusion] = np.inf
        assert (found.indices[places] == rows.argmin(axis=1)).all() or np.isinf(rows.min(1)).any()
        assert_allclose(found.distances[places], rows.min(axis=1), rtol=1e-9)


def test_ecg(fast_engine):
    x = np.ravel(load_ecg().data).astype(float)
    check([x[:12_000]], (30, 128), fast_engine)
    check([x[50_000:55_000]], (400,), fast_engine)


@pytest.mark.parametrize("load", [load_gunpoint, load_arrow_head])
def test_pools_of_short_series(fast_engine, load):
    X = np.asarray(load(split="train", return_X_y=True)[0], float)
    check(list(X), (20, 60), fast_engine)


@pytest.mark.slow
def test_long_series(fast_engine, ucr):
    files = sorted((ucr / "long").glob("*.npz"))
    assert files
    for file in files:
        x = np.load(file)["series"].astype(float)
        for start in (0, x.size // 2):
            check([x[start : start + 10_000]], (50, 200), fast_engine)


@pytest.mark.slow
def test_pools_of_the_archive(fast_engine, ucr):
    files = sorted((ucr / "ucr").glob("*.npz"))
    assert files
    for file in files:
        X = np.load(file)["X_train"].astype(float)
        rows = list(X[: max(2, 8000 // X.shape[1])])
        check(rows, (max(3, X.shape[1] // 4),), fast_engine)
