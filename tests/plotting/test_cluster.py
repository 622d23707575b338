"""ClusterDisplay shows what the estimator found."""

from __future__ import annotations

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal

from skts import KShapeClusterer
from skts.datasets import make_shifted_shapes
from skts.plotting import ClusterDisplay


@pytest.fixture
def fitted():
    X = make_shifted_shapes(40, 64, random_state=0)[0]
    return X, KShapeClusterer(3, random_state=0).fit(X)


def test_panels_show_centres_aligned_members_and_inertia(fitted):
    X, model = fitted
    display = ClusterDisplay.from_estimator(model, X, max_members=5)
    assert len(display.axes_) == 4
    for label, line in enumerate(display.center_lines_):
        assert_array_equal(line.get_ydata(), model.cluster_centers_[label])
        members = np.flatnonzero(model.labels_ == label)
        assert display.sizes[label] == members.size
        drawn = display.axes_[label].lines
        assert len(drawn) == 1 + min(5, members.size)
        first, shift = members[0], model.shifts_[members[0]]
        expected = (X[first] - X[first].mean()) / X[first].std()
        moved = np.zeros(64)
        low, high = max(0, shift), min(64, 64 + shift)
        moved[low:high] = expected[low - shift : high - shift]
        assert_allclose(drawn[0].get_ydata(), moved, atol=1e-12)
    assert_array_equal(display.axes_[3].lines[0].get_ydata(), model.history_)


def test_own_axes(fitted):
    import matplotlib.pyplot as plt

    X, model = fitted
    figure, axes = plt.subplots(1, 3)
    display = ClusterDisplay.from_estimator(model, X, objective=False, axes=list(axes))
    assert display.figure_ is figure
    with pytest.raises(ValueError, match="axes holds 3 axes for 4 panels"):
        display.plot(axes=list(axes))


def test_channels():
    X = make_shifted_shapes(20, 32, random_state=0)[0]
    X = np.stack([X, -X], axis=1)
    model = KShapeClusterer(2, random_state=0).fit(X)
    display = ClusterDisplay.from_estimator(model, X, channel=1)
    assert_array_equal(display.center_lines_[0].get_ydata(), model.cluster_centers_[0, 1])
    with pytest.raises(ValueError, match="channel=2 is not among the 2 of X"):
        ClusterDisplay.from_estimator(model, X, channel=2)
