"""ClusterDisplay shows what the estimator found."""

from __future__ import annotations

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal

from skts import DTWKMeans, DTWKMedoids, KShapeClusterer
from skts.cluster import choose_n_clusters
from skts.datasets import make_shifted_shapes, make_warped_shapes
from skts.metrics import warping_path
from skts.plotting import ClusterChoiceDisplay, ClusterDisplay


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
    grid = plt.subplots(2, 2)[1]
    display = ClusterDisplay.from_estimator(model, X, axes=grid)
    assert display.axes_.tolist() == grid.ravel().tolist()


def test_channels():
    X = make_shifted_shapes(20, 32, random_state=0)[0]
    X = np.stack([X, -X], axis=1)
    model = KShapeClusterer(2, random_state=0).fit(X)
    display = ClusterDisplay.from_estimator(model, X, channel=1)
    assert_array_equal(display.center_lines_[0].get_ydata(), model.cluster_centers_[0, 1])
    with pytest.raises(ValueError, match="channel=2 is not among the 2 of X"):
        ClusterDisplay.from_estimator(model, X, channel=2)
    with pytest.raises(ValueError, match="channel='a' is not among the 2 of X"):
        ClusterDisplay.from_estimator(model, X, channel="a")
    for members in (-1, 1.5, "a", True):
        with pytest.raises(ValueError, match=f"max_members={members!r} is no whole number"):
            ClusterDisplay.from_estimator(model, X, max_members=members)


def test_members_as_they_are(fitted):
    X, model = fitted
    display = ClusterDisplay.from_estimator(model, X, aligned=False)
    first = np.flatnonzero(model.labels_ == 0)[0]
    expected = (X[first] - X[first].mean()) / X[first].std()
    assert_allclose(display.members[0][0], expected, atol=1e-12)


@pytest.mark.parametrize("kind", ["kmeans", "kmeans of wdtw", "kmedoids", "msm of channels"])
def test_members_are_warped_to_their_centre(kind):
    X = make_warped_shapes(12, 20, random_state=0)[0]
    data, options, channel = [x[: 20 - i % 3] for i, x in enumerate(X)], {"window": 4}, 0
    if kind == "kmeans of wdtw":
        options = {"metric": "wdtw", "metric_params": {"g": 1.0}}
    model = DTWKMeans(2, random_state=0, **options)
    if kind.startswith("kmedoids"):
        options = {"metric": "dtw", "window": 4}
        model = DTWKMedoids(2, init="build", **options)
    if kind == "msm of channels":
        data, options, channel = [np.stack([x, -x]) for x in data], {"metric": "msm"}, 1
        model = DTWKMedoids(2, init="build", **options)
    model.fit(data)
    display = ClusterDisplay.from_estimator(model, data, channel=channel, max_members=3)
    assert_array_equal(display.axes_[-1].lines[0].get_xdata(), np.arange(len(model.history_)))
    for label, center in enumerate(model.cluster_centers_):
        center = np.atleast_2d(center)
        n = int((~np.isnan(center[0])).sum())
        rows = np.flatnonzero(model.labels_ == label)[:3]
        assert len(display.members[label]) == len(rows)
        for drawn, row in zip(display.members[label], rows, strict=True):
            x = np.atleast_2d(data[row])[channel if kind == "msm of channels" else 0]
            path, _ = warping_path(center[channel, :n], x, **options)
            for i in range(n):
                assert drawn[i] == pytest.approx(np.mean(x[path[path[:, 0] == i, 1]]))
            assert np.isnan(drawn[n:]).all()
    shown = ClusterDisplay.from_estimator(model, data, channel=channel, aligned=False)
    first = np.flatnonzero(model.labels_ == 0)[0]
    known = np.atleast_2d(data[first])[channel]
    assert_array_equal(shown.members[0][0, : known.size], known)


@pytest.mark.slow
def test_points_without_a_partner_are_not_drawn():
    X = [[0.0, 9, 0, 0], [0, 9, 0, 0], [50, 0, 9, 0]]
    model = DTWKMedoids(1, metric="lcss", init=[0]).fit(X)
    display = ClusterDisplay.from_estimator(model, X)
    assert_array_equal(display.members[0][1], X[1])
    assert np.isnan(display.members[0][2]).sum() == 1


def test_the_choice_of_a_number_of_clusters():
    X = make_warped_shapes(30, 24, noise=0.05, random_state=0)[0]
    found = choose_n_clusters(DTWKMedoids(init="build"), X, range(2, 6))
    display = ClusterChoiceDisplay.from_choice(found)
    assert_array_equal(display.axes_[0].lines[1].get_ydata(), found.inertia)
    assert_array_equal(display.axes_[1].lines[1].get_ydata(), found.silhouette)
    assert display.axes_[1].get_title() == f"{found.best} clusters"
    with pytest.raises(ValueError, match="axes holds 1 axes for 2 panels"):
        display.plot(axes=[display.axes_[0]])
    with pytest.raises(TypeError, match="choice is a list; what choose_n_clusters returns"):
        ClusterChoiceDisplay.from_choice([2, 3])


@pytest.mark.parametrize(
    "model", [DTWKMeans(3, random_state=0), KShapeClusterer(3, random_state=0)]
)
def test_clusters_of_batches_have_no_inertia_panel(model):
    X = make_shifted_shapes(40, 32, random_state=0)[0]
    model.partial_fit(X[:20]).partial_fit(X[20:])
    assert not hasattr(model, "history_")
    for objective in (True, False):
        display = ClusterDisplay.from_estimator(model, X, objective=objective)
        assert display.history is None and len(display.axes_) == 3
        for label, line in enumerate(display.center_lines_):
            assert_array_equal(line.get_ydata(), model.cluster_centers_[label])
    assert len(display.plot(objective=True).axes_) == 3
