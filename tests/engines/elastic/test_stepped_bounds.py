"""Lower bounds of the elastic family: below every distance, and searches by them find the same."""

from __future__ import annotations

import numpy as np
import pytest
from elastic_cases import OPTIONS, drawn, sides_of
from numpy.testing import assert_array_equal

from skts.engines import DTWMatrix, DTWNeighbors, replace_kernels, run
from skts.engines.numba.elastic import stepped_bounds, uneven
from skts.engines.numba.elastic.lower_bounds import envelope

ADVERSARIAL = ("ties", "constant", "any", "offset", "spikes", "alternating")


def series_of(rng, kind, count, channels, lengths):
    """Those of `drawn`, and series of which most points are far from their neighbours."""
    if kind == "spikes":
        X = drawn(rng, "any", count, channels, lengths)
        return [x * np.where(rng.random(x.shape) < 0.2, 1e3, 1.0) for x in X]
    if kind == "alternating":
        lengths = rng.choice(lengths, count)
        return [np.resize([1.0, -1.0], (channels, n)) * rng.uniform(0.5, 2) for n in lengths]
    return drawn(rng, kind, count, channels, lengths)


def bounds_of(left, right, warping):
    """Bounds of all pairs, as accumulated costs, by kernels in plain Python."""
    with pytest.MonkeyPatch.context() as patch:
        for name in ("bounds", "_rows", "_columns", "_nearest"):
            kernel = getattr(stepped_bounds, name)
            patch.setattr(stepped_bounds, name, getattr(kernel, "py_func", kernel))
        envelope_of = getattr(envelope, "py_func", envelope)
        cell, own, borders = uneven.options(warping, np.float64)[:3]
        values, n, m = right.values, left.n_timepoints, right.n_timepoints
        found = np.empty((len(left), len(right)))
        reach = warping.largest_radius(left.lengths, right.lengths)
        low, high = np.empty((2, *values.shape[:2], n))
        for s, y in enumerate(values):
            envelope_of(y[:, : right.lengths[s]].T, reach, low[s].T, high[s].T)
        for row, x in enumerate(left.values):
            x = np.ascontiguousarray(x[:, : left.lengths[row]])
            x_low, x_high = np.empty((2, len(x), m))
            envelope_of(x.T, reach, x_low.T, x_high.T)
            stepped_bounds.bounds(
                *(cell, x, x_low, x_high, values, right.lengths, low, high, own, borders),
                found[row],
            )
    return found


@pytest.mark.filterwarnings("ignore:X has . channels of one time point")
@pytest.mark.parametrize(("metric", "options"), OPTIONS, ids=str)
def test_bounds_are_below_the_distance(metric, options, rng):
    """As plain Python, on random series and those made against it."""
    for kind in ADVERSARIAL:
        for window, lengths in ((0, [7]), (2, [5, 6, 9]), (None, [1, 4, 8])):
            channels = 1 if metric == "msm" else int(rng.integers(1, 3))
            X, Y = (series_of(rng, kind, count, channels, lengths) for count in (2, 3))
            left, right, warping = sides_of(metric, X, Y, window=window, **options)
            exact = np.array(
                [
                    [
                        warping.plain(x[:, :n], y[:, :m])
                        for y, m in zip(right.values, right.lengths, strict=True)
                    ]
                    for x, n in zip(left.values, left.lengths, strict=True)
                ]
            )
            found = bounds_of(left, right, warping)
            last = [s.values[np.arange(len(s)), 0, s.lengths - 1] for s in (left, right)]
            apart = np.abs(last[0][:, np.newaxis] - last[1])
            found = warping.settle(found, left.lengths[:, np.newaxis], right.lengths, apart)
            assert (found <= exact * (1 + 1e-12)).all(), (kind, window)
            if kind == "spikes" and window == 0 and metric != "lcss":
                assert found.max() > 0


@pytest.mark.slow
@pytest.mark.parametrize(("metric", "options"), OPTIONS, ids=str)
def test_searches_by_bounds_find_the_same(metric, options, rng):
    """Queries near and far, ties between candidates, several lengths, one candidate left out."""
    for lengths, channels in (([40], 1), ([38, 40, 43], 1), ([40], 2)):
        if metric == "msm" and channels == 2:
            continue
        X = drawn(rng, "any", 5, channels, lengths)
        Y = drawn(rng, "any", 140, channels, lengths)
        Y[130:] = Y[:10]
        X[0] = Y[3]
        left, right, warping = sides_of(metric, X, Y, window=6, **options)
        excluded = np.array([3, -1, 139, -1, 0])
        D = run(DTWMatrix(left, right, warping), engine="numba")
        D[[0, 2, 4], [3, 139, 0]] = np.inf
        order = np.argsort(D, axis=1, kind="stable")[:, :3]
        for precision in ("auto", "float64"):
            work = DTWNeighbors(left, right, 3, excluded, precision, warping)
            assert stepped_bounds.worth_bounding(work, 140)
            with replace_kernels(always=False):
                near = run(work, engine="numba")
            assert_array_equal(near.indices, order)
            assert_array_equal(near.distances, np.take_along_axis(D, order, axis=1))
