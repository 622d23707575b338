"""Displays of shapelet trees: what is drawn is what was found."""

from __future__ import annotations

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal

from skts import ShapeletTreeClassifier, ShapeletTreeRegressor
from skts.plotting import ShapeletMatchDisplay, ShapeletTreeDisplay


@pytest.fixture
def fitted(rng):
    X, y = rng.normal(size=(24, 30)).cumsum(axis=1), np.array(["a", "b", "c"])[np.arange(24) % 3]
    model = ShapeletTreeClassifier(min_length=5, max_length=9, length_step=2, engine="numba")
    return model.fit(X, y), X, y


def test_shapelets_and_order_lines_of_every_node(fitted):
    model, X, y = fitted
    display = ShapeletTreeDisplay.from_estimator(model, X, y, max_nodes=3)
    inner = np.flatnonzero(model.tree_.children_left >= 0)[:3]
    assert len(display.axes_) == 1 + 2 * len(inner)
    shown = [literal for literal in model.shapelets_ if literal.node in inner]
    for literal, line in zip(shown, display.shapelet_lines_, strict=True):
        times = np.arange(literal.start, literal.start + literal.length)
        assert_array_equal(line.get_xdata(), times)
        # the curve is that of the series, scaled
        assert np.corrcoef(line.get_ydata(), X[literal.series, times])[0, 1] > 1 - 1e-9
    for node, line in zip(inner, display.threshold_lines_, strict=True):
        assert line.get_xdata()[0] == model.tree_.threshold[node]
    # a leaf of the root's order line for every series, on the side to which it goes
    marks = display.axes_[2].lines[:-1]
    assert sum(len(line.get_xdata()) for line in marks) == 24
    left = sum(int(np.sum(line.get_xdata() <= model.tree_.threshold[0])) for line in marks)
    assert left == model.tree_.n_node_samples[model.tree_.children_left[0]]
    names = [text.get_text() for text in display.axes_[0].texts]
    assert sum(name.startswith("node") for name in names) == model.get_n_leaves() - 1


def test_other_axes_and_other_series(fitted):
    import matplotlib.pyplot as plt

    model, X, y = fitted
    axes = list(plt.subplots(3)[1])
    display = ShapeletTreeDisplay.from_estimator(model, X, y, max_nodes=1, axes=axes)
    assert display.axes_[0] is axes[0] and display.figure_ is axes[0].figure
    with pytest.raises(ValueError, match="axes holds 3 axes for 5 panels"):
        ShapeletTreeDisplay.from_estimator(model, X, y, max_nodes=2, axes=axes)
    with pytest.raises(ValueError, match="X are not the series of fit: series"):
        ShapeletTreeDisplay.from_estimator(model, X[::-1], y)
    with pytest.raises(ValueError, match="y holds 'bb', which is no class of the tree"):
        ShapeletTreeDisplay.from_estimator(model, X, np.where(y == "c", "bb", y))
    with pytest.raises(ValueError, match="max_nodes=1.5 is no whole number"):
        ShapeletTreeDisplay.from_estimator(model, X, y, max_nodes=1.5)
    leaf = ShapeletTreeClassifier().fit(X, np.zeros(24))
    assert len(ShapeletTreeDisplay.from_estimator(leaf, X, np.zeros(24)).axes_) == 1


def test_matches_in_a_new_series(fitted, rng):
    model, X, _ = fitted
    x = rng.normal(size=50).cumsum()
    display = ShapeletMatchDisplay.from_estimator(model, x)
    path = set(model.decision_path([x]).indices)
    columns = [k for k, literal in enumerate(model.shapelets_) if literal.node in path]
    assert len(display.axes_) == len(columns) and display.label == model.predict([x])[0]
    starts, distances = model.locate([x])[0], model.transform([x])[0]
    for k, line in zip(columns, display.shapelet_lines_, strict=True):
        literal = model.shapelets_[k]
        window = x[starts[k] : starts[k] + literal.length]
        assert line.get_xdata()[0] == starts[k]
        gap = (line.get_ydata() - window) / window.std()
        assert_allclose(np.sqrt(np.mean(gap**2)), distances[k], rtol=1e-9)
    leaf = ShapeletTreeClassifier().fit(X, np.zeros(24))
    assert len(ShapeletMatchDisplay.from_estimator(leaf, x).axes_) == 1


def test_points_behind_a_mask_match_nothing(fitted, rng):
    model, *_ = fitted
    x = np.ma.array(rng.normal(size=50).cumsum(), mask=np.arange(50) >= 12)
    found = ShapeletMatchDisplay.from_estimator(model, x)
    expected = ShapeletMatchDisplay.from_estimator(model, x.data[:12])
    assert_array_equal(found.points, expected.points)
    assert found.matches == expected.matches and found.label == expected.label


def test_series_without_room_are_drawn_beyond_all_others():
    rng = np.random.default_rng(0)
    X = [rng.normal(size=size).cumsum() for size in (6, 9, 12, 12, 7, 11, 10, 12)]
    y = np.array([0, 1, 0, 1, 1, 0, 0, 1])
    model = ShapeletTreeClassifier(
        min_length=8, max_length=11, max_candidates=5, random_state=0, logic=()
    )
    with pytest.raises(ValueError, match="the shortest"):
        model.fit(X, y)
    model.set_params(min_length=3).fit(X, y)
    distances = model.transform(X)[:, 0]
    assert np.isinf(distances).any()
    marks = ShapeletTreeDisplay.from_estimator(model, X, y).axes_[2].lines[:-1]
    arrows = [line for line in marks if line.get_marker() == ">"]
    places = np.concatenate([line.get_xdata() for line in arrows])
    assert len(places) == np.isinf(distances).sum()
    assert (places > distances[np.isfinite(distances)].max()).all()


@pytest.fixture
def predicts_numbers(rng):
    X, y = rng.normal(size=(24, 30)).cumsum(axis=1), rng.normal(size=24)
    options = {"min_length": 5, "max_length": 9, "length_step": 2, "engine": "numba"}
    return ShapeletTreeRegressor(max_depth=2, **options).fit(X, y), X, y


def test_leaves_of_a_regressor_show_its_values(predicts_numbers):
    model, X, y = predicts_numbers
    display = ShapeletTreeDisplay.from_estimator(model, X, y)
    tree = model.tree_
    leaves = np.flatnonzero(tree.children_left < 0)
    shown = {text.get_text() for text in display.axes_[0].texts}
    for leaf in leaves:
        assert f"value {tree.value[leaf]:.4g}\n{tree.n_node_samples[leaf]} series" in shown
    assert display.classes is None
    assert not any("class" in ax.get_ylabel() for ax in display.axes_)
    # each series stands at its distance and its target
    (near, far) = display.axes_[2].lines[:-1]
    assert len(far.get_xdata()) == 0 and display.axes_[2].get_ylabel() == "target"
    assert_array_equal(near.get_xdata(), display.nodes[0].distances)
    assert_array_equal(near.get_ydata(), y)
    left = near.get_xdata() <= tree.threshold[0]
    assert y[left].mean() == pytest.approx(tree.value[tree.children_left[0]])
    leaf = ShapeletTreeRegressor().fit(X, np.zeros(24))
    assert len(ShapeletTreeDisplay.from_estimator(leaf, X, np.zeros(24)).axes_) == 1


def test_targets_of_a_regressor_are_numbers(predicts_numbers):
    model, X, y = predicts_numbers
    with pytest.raises(ValueError, match="numeric"):
        ShapeletTreeDisplay.from_estimator(model, X, np.where(y > 0, "a", "b"))
    with pytest.raises(ValueError, match="X are not the series of fit: series"):
        ShapeletTreeDisplay.from_estimator(model, X[::-1], y)
    with pytest.raises(
        TypeError, match="ShapeletTreeClassifier or ShapeletTreeRegressor is needed"
    ):
        ShapeletTreeDisplay.from_estimator(y, X, y)


def test_series_without_room_have_a_target_too(rng):
    X = [rng.normal(size=size).cumsum() for size in (6, 9, 12, 12, 7, 11, 10, 12)]
    y = np.array([0.0, 1, 0, 1, 1, 0, 0, 1])
    model = ShapeletTreeRegressor(min_length=3, max_length=11, max_depth=1).fit(X, y)
    display = ShapeletTreeDisplay.from_estimator(model, X, y)
    far = np.isinf(model.transform(X)[:, 0])
    arrows = display.axes_[2].lines[1]
    assert arrows.get_marker() == ">"
    assert_array_equal(arrows.get_ydata(), y[far])


def test_matches_of_a_regressor(predicts_numbers):
    model, X, _ = predicts_numbers
    display = ShapeletMatchDisplay.from_estimator(model, X[3])
    assert display.label == model.predict(X[3:4])[0]
    assert display.figure_.get_suptitle() == f"predicted: {display.label:.4g}"
    path = set(model.decision_path(X[3:4]).indices)
    assert len(display.axes_) == sum(literal.node in path for literal in model.shapelets_)
