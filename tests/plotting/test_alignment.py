"""AlignmentDisplay: what is drawn is what was aligned."""

from __future__ import annotations

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal

from skts import DTWNearestNeighbor
from skts.metrics import dtw_path
from skts.plotting import AlignmentDisplay


def test_path_on_the_costs(rng):
    x, y = rng.normal(size=40).cumsum(), rng.normal(size=30).cumsum()
    display = AlignmentDisplay.from_series(x, y, window=12)
    path, distance = dtw_path(x, y, window=12)
    assert_array_equal(display.path_line_.get_xydata(), path[:, ::-1])
    assert display.distance == distance
    drawn = display.image_.get_array()
    inside = np.abs(np.arange(40)[:, None] - np.arange(30)) <= 12
    assert_array_equal(np.ma.getmaskarray(drawn), ~inside)
    assert_allclose(drawn[inside], ((x[:, None] - y) ** 2)[inside], rtol=1e-12)
    assert drawn[path[:, 0], path[:, 1]].sum() ** 0.5 == pytest.approx(distance)
    matrix, left, top = display.axes_
    assert matrix.figure is display.figure_
    assert_array_equal(left.lines[0].get_xdata(), x)
    assert_array_equal(top.lines[0].get_ydata(), y)
    assert left.get_ylim() == matrix.get_ylim() and top.get_xlim() == matrix.get_xlim()
    assert display.colorbar_.mappable is display.image_
    assert display.colorbar_.ax.get_ylabel() == "squared difference"
    display.figure_.canvas.draw()  # the bar takes as much from the series above as from the matrix
    assert_allclose(matrix.get_position().intervalx, top.get_position().intervalx)


def test_own_axes_channels_and_long_series(rng):
    import matplotlib.pyplot as plt

    x, y = rng.normal(size=(2, 9)), np.full((2, 12), np.nan)
    y[:, :7] = rng.normal(size=(2, 7))  # padded
    figure, ax = plt.subplots()
    display = AlignmentDisplay.from_series(x, y, cost="absolute", series=False, axes=[ax])
    assert display.figure_ is figure and len(display.axes_) == 1
    assert display.colorbar_ is None and figure.axes == [ax]
    expected = np.abs(x[:, :, None] - y[:, None, :7]).sum(axis=0)
    assert_allclose(display.image_.get_array(), expected, rtol=1e-12)
    with pytest.raises(ValueError, match="axes holds 1 axes for 3 panels"):
        display.plot(axes=[ax])
    long = AlignmentDisplay.from_series(rng.normal(size=2500), x[0], names=("long", "short"))
    assert long.image_.get_array().shape == (834, 9)
    assert_allclose(long.image_.get_extent(), (-0.5, 8.5, -1.5, 2500.5))
    assert "short" in long.axes_[0].get_xlabel() and "long" in long.axes_[1].get_ylabel()


def test_neighbours_of_an_estimator(rng):
    X, y = rng.normal(size=(6, 20)).cumsum(axis=1), ["a", "b"] * 3
    query = rng.normal(size=25).cumsum()
    model = DTWNearestNeighbor(window=8).fit(list(X), y)
    distances, indices = model.kneighbors([query], 2)
    display = AlignmentDisplay.from_estimator(model, query, rank=1)
    assert_array_equal(display.y[0], X[indices[0, 1]])
    assert display.distance == distances[0, 1]
    assert f"series {indices[0, 1]} (class {y[indices[0, 1]]})" in display.names[1]
    with pytest.raises(ValueError, match="rank=6 is not among the 6 training series"):
        AlignmentDisplay.from_estimator(model, query, rank=6)
    model = DTWNearestNeighbor(metric="precomputed").fit(np.ones((6, 6)), y)
    with pytest.raises(ValueError, match="precomputed.* holds no series"):
        AlignmentDisplay.from_estimator(model, np.ones(6))


def test_points_behind_a_mask_are_not_drawn(rng):
    x = np.ma.array(rng.normal(size=24).cumsum(), mask=np.arange(24) >= 20)
    X = rng.normal(size=(6, 20)).cumsum(axis=1)
    model = DTWNearestNeighbor().fit(list(X), ["a", "b"] * 3)
    for make in (
        lambda one: AlignmentDisplay.from_series(one, X[0]),
        lambda one: AlignmentDisplay.from_estimator(model, one),
    ):
        found, expected = make(x), make(x.data[:20])
        assert_array_equal(found.x, expected.x)
        assert_array_equal(found.path, expected.path)
        assert found.distance == expected.distance


def test_a_turned_neighbour(rng):
    X = rng.normal(size=(3, 24))
    model = DTWNearestNeighbor(rotation_invariant=True, window=0).fit(X, [0, 1, 1])
    display = AlignmentDisplay.from_estimator(model, np.roll(X[1], 7))
    assert display.distance == 0
    assert_array_equal(display.y[0], np.roll(X[1], 7))
