"""soft_dtw_barycenter: what its search tries far outside of the data."""

from __future__ import annotations

import numpy as np
import pytest
from numpy.testing import assert_array_equal
from scipy.optimize import minimize

from skts.averages import _soft_barycenter, soft_dtw_barycenter
from skts.engines import run

#: Few iterations are asked for on purpose.
pytestmark = pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")

#: Points of an average that all fall alike: where they do not any more, steps are very long.
ZEROS = np.zeros((2, 14)), np.zeros((2, 24)), np.zeros((2, 4))
X = [*ZEROS, *(np.stack([np.zeros(n), np.ones(n)]) for n in (21, 4))]


def test_engines_find_the_same_where_the_search_takes_long_steps(fast_engine):
    for gamma in (0.05, 0.05170687624611775, 0.06):
        options = {"gamma": gamma, "init": "medoid", "tol": 0.0, "max_iter": 20}
        found = soft_dtw_barycenter(X, engine=fast_engine, **options)
        expected = soft_dtw_barycenter(X, engine="numba", **options)
        assert_array_equal(found.average, expected.average)
        assert found.inertia == expected.inertia
        assert (abs(found.average) < 2).all()


def test_points_that_no_engine_tells_apart_are_cut(fast_engine, monkeypatch):
    values = []

    def search_far(function, start, **options):
        """As the search of SciPy where its steps are long."""
        for step in (0.0, 1e3, 1e6, 1e9):
            value, slope = function(start + step)
            values.append(value)
            assert (slope[start.size // 2 :] > 0).all() or not step
        return minimize(function, start, **options)

    def spy(work, **options):
        answer = run(work, **options)
        steps = (work.series.n_timepoints + work.average.n_timepoints) * work.series.n_channels
        (low, high), (least, most) = work.series.extent, work.average.extent
        apart = max(most - low, high - least)
        assert steps * apart**2 <= 2.0**49 * work.gamma
        assert np.isfinite(answer.values).all() and np.isfinite(answer.gradient).all()
        return answer

    monkeypatch.setattr(_soft_barycenter, "run", spy)
    monkeypatch.setattr(_soft_barycenter, "minimize", search_far)
    options = {"gamma": 0.05170687624611775, "init": "medoid", "tol": 0.0, "max_iter": 20}
    soft_dtw_barycenter(X, engine=fast_engine, **options)
    assert (np.diff(values) > 0).all()


def test_underflow_is_no_error(fast_engine):
    """Also outside of the engine's work: gamma against data that are scaled down."""
    given = [[2, 2, 2, 2], [0, 0, 0, 1]]
    options = {"gamma": 3.389244417623016e-05, "init": "mean", "tol": 0.0, "engine": fast_engine}
    expected = soft_dtw_barycenter(given, **options)
    with np.errstate(all="raise"):
        found = soft_dtw_barycenter(given, **options)
    assert_array_equal(found.average, expected.average)
    assert found.inertia == expected.inertia
