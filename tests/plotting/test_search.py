"""SearchDisplay: what is drawn is what was found."""

from __future__ import annotations

import numpy as np
import pytest
from numpy.testing import assert_array_equal

from skts import SubsequenceSearch
from skts.plotting import SearchDisplay


@pytest.fixture
def X(rng):
    X = [rng.normal(size=200), rng.normal(size=90)]
    X[1][10:30] = 5 * X[0][30:50] + 7
    return X


def test_panels_and_marks(X):
    model = SubsequenceSearch(window=0.1).fit(X)
    Q = [X[0][30:50], X[1][40:70]]
    display = SearchDisplay.from_estimator(model, Q, n_neighbors=3)
    _, positions = model.kneighbors(Q, 3)
    assert len(display.axes_) == 3 and display.axes_[0].figure is display.figure_
    assert_array_equal(display.axes_[0].lines[0].get_ydata(), X[0])
    for spans, where in zip(display.span_patches_, positions, strict=True):
        # one corner, or before matplotlib 3.9 all of them
        starts = sorted(np.atleast_2d(patch.get_xy())[:, 0].min() for patch in spans)
        assert starts == sorted(where[where[:, 0] == 0, 1].tolist())
    for ax in display.axes_[1:]:
        assert len(ax.lines) == 4
        shape = ax.lines[-1].get_ydata()
        assert abs(shape.mean()) < 1e-12 and abs(shape.std() - 1) < 1e-12
    first, second = (line.get_ydata() for line in display.axes_[1].lines[:2])
    np.testing.assert_allclose(first, second, atol=1e-12)


def test_other_axes_another_series_and_plain_values(X):
    import matplotlib.pyplot as plt

    model = SubsequenceSearch(metric="euclidean", normalize=False).fit(X)
    axes = list(plt.subplots(2)[1])
    display = SearchDisplay.from_estimator(model, [X[1][5:90]], n_neighbors=9, series=1, axes=axes)
    assert display.axes_[1] is axes[1]
    assert_array_equal(axes[0].lines[0].get_ydata(), X[1])
    assert_array_equal(axes[1].lines[-1].get_ydata(), X[1][5:90])
    assert len(axes[1].lines) == 1 + len(display.distances[0]) < 10
    with pytest.raises(ValueError, match="axes holds 2 axes for 3 panels"):
        SearchDisplay.from_estimator(model, [X[0][:9], X[0][:8]], axes=axes)
    with pytest.raises(ValueError, match="series=2 is not among the 2"):
        SearchDisplay.from_estimator(model, [X[0][:9]], series=2)
    with pytest.raises(ValueError, match="series=0.5 is not among the 2"):
        SearchDisplay.from_estimator(model, [X[0][:9]], series=0.5)


def test_channels_are_drawn_by_themselves(rng):
    X = rng.normal(size=(2, 3, 60))
    X[1, :, 10:30] = X[0, :, 30:50] * [[2.0], [3.0], [0.5]] + 7
    model = SubsequenceSearch(metric="euclidean").fit(X)
    query = X[0, :, 30:50]
    display = SearchDisplay.from_estimator(model, [query], n_neighbors=2)
    top, panel = display.axes_
    assert_array_equal([line.get_ydata() for line in top.lines], X[0])
    drawn = np.array([line.get_ydata() for line in panel.lines])
    assert len(drawn) == 3 * 2 + 3 and len(display.span_patches_[0]) == 1
    expected = (query - query.mean(axis=1, keepdims=True)) / query.std(axis=1, keepdims=True)
    np.testing.assert_allclose(drawn[6:], expected)
    # two matches of each channel, both the query up to scale
    np.testing.assert_allclose(drawn[:6], np.repeat(expected, 2, axis=0), atol=1e-9)
