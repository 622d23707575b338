"""Weights of single series: repeated series, scales, what is refused; ensembles of trees."""

from __future__ import annotations

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.base import clone
from sklearn.ensemble import AdaBoostClassifier, BaggingClassifier

from skts import ShapeletTreeClassifier
from skts.engines import Criterion, Series, ShapeletSearch, find_engine
from tests.tree.test_shapelet_tree import draw, same_tree

#: Times that each series of `draw` is there.
OFTEN = np.array([2, 1, 3, 0, 1, 4, 1, 2, 0, 1, 2])


@pytest.fixture
def fast_engine(fast_engine):
    """An engine that ships and runs here; others are skipped with their own reason."""
    reason = find_engine(fast_engine).available()
    if reason is not None:
        pytest.skip(reason)
    return fast_engine


def repeated(model, X, y, often):
    """The tree of series that are there so often, with places in X; gaps are rounded otherwise."""
    rows = np.repeat(np.arange(len(y)), often)
    model.fit([X[row] for row in rows], y[rows])
    model.shapelets_ = [one._replace(series=int(rows[one.series])) for one in model.shapelets_]
    return model


@pytest.mark.parametrize("form", ["walks", "channels", "unequal", "short"])
@pytest.mark.parametrize(
    "options",
    [
        {},
        {"class_weight": "balanced"},
        {"class_weight": {0: 1.0, 1: 3.5, 2: 0.3}, "min_weight_fraction_leaf": 0.1},
        {"logic": (), "min_impurity_decrease": 0.1, "ccp_alpha": 0.01},
    ],
)
def test_weights_are_numbers_of_series(fast_engine, form, options):
    X, y, lengths = draw(form)
    model = ShapeletTreeClassifier(engine=fast_engine, **lengths, **options)
    expected = repeated(clone(model).set_params(engine="numba"), X, y, OFTEN)
    found = clone(model).fit(X, y, sample_weight=OFTEN)
    assert found.tree_.n_node_samples[0] == 9
    n_node_samples = found.tree_.n_node_samples
    found.tree_ = found.tree_._replace(n_node_samples=expected.tree_.n_node_samples)
    same_tree(found, expected)
    assert np.all(n_node_samples <= expected.tree_.n_node_samples)
    assert_array_equal(found.predict(X), expected.predict(X))


@pytest.mark.parametrize("form", ["walks", "constant"])
@pytest.mark.parametrize("options", [{}, {"class_weight": {0: 1.0, 1: 3.5, 2: 0.3}}])
def test_the_tree_of_any_weights_is_that_of_the_oracle(fast_engine, form, options):
    X, y, lengths = draw(form)
    weights = np.random.default_rng(3).random(len(y))
    found, expected = (
        ShapeletTreeClassifier(engine=name, min_samples_leaf=2, **lengths, **options).fit(
            X, y, sample_weight=weights
        )
        for name in (fast_engine, "oracle")
    )
    same_tree(found, expected)
    assert found.get_depth() > 0


@pytest.mark.parametrize("power", [-300, -7, 400])
def test_the_scale_of_weights_does_not_matter(fast_engine, power):
    X, y, lengths = draw("walks")
    weights = np.random.default_rng(4).random(len(y))
    model = ShapeletTreeClassifier(engine=fast_engine, min_weight_fraction_leaf=0.05, **lengths)
    expected = clone(model).fit(X, y, sample_weight=weights)
    found = clone(model).fit(X, y, sample_weight=2.0**power * weights)
    for name, a, b in zip(found.tree_._fields, found.tree_, expected.tree_, strict=True):
        assert_array_equal(a, 2.0**power * b if name.startswith("weighted") else b, err_msg=name)
    assert [one[1:] for one in found.shapelets_] == [one[1:] for one in expected.shapelets_]


def test_equal_weights_are_none():
    X, y, lengths = draw("walks")
    model = ShapeletTreeClassifier(engine="numba", class_weight="balanced", **lengths)
    expected = clone(model).fit(X, y)
    for weights in (0.1, np.full(len(y), 0.1)):
        found = clone(model).fit(X, y, sample_weight=weights)
        for name, a, b in zip(found.tree_._fields, found.tree_, expected.tree_, strict=True):
            assert_allclose(
                a, 0.1 * b if name.startswith("weighted") else b, rtol=1e-15, err_msg=name
            )
        assert [one[1:] for one in found.shapelets_] == [one[1:] for one in expected.shapelets_]


def test_a_class_without_weight_is_not_there():
    X, y, lengths = draw("walks")
    weights = (y != 2).astype(float)
    found = ShapeletTreeClassifier(engine="numba", **lengths).fit(X, y, sample_weight=weights)
    assert found.classes_.tolist() == [0, 1]
    path = found.cost_complexity_pruning_path(X, y, sample_weight=weights)
    kept = y != 2
    again = clone(found).fit(X[kept], y[kept])
    assert_array_equal(
        path.impurities, again.cost_complexity_pruning_path(X[kept], y[kept])["impurities"]
    )
    assert_array_equal(found.predict(X), again.predict(X))


@pytest.mark.parametrize(
    ("weights", "message"),
    [
        ([1, 1, -1, 1, 1, 1], "sample_weight is -1 for series 2; give numbers from 0 to 3"),
        ([1, np.nan, 1, 1, 1, 1], "sample_weight is nan for series 1; give numbers"),
        ([1, 1, 1, np.inf, 1, 1], "sample_weight is inf for series 3; give numbers"),
        (np.zeros(6), "sample_weight is zero for all series; give one of them a weight"),
        (0.0, "sample_weight is zero for all series"),
        (np.ones(5), r"sample_weight has the shape \(5,\); give one number for each of the 6"),
        (np.ones((6, 1)), r"sample_weight has the shape \(6, 1\); give one number"),
        (["a"] * 6, "sample_weight holds text, such as 'a'"),
    ],
)
def test_bad_weights_are_refused(weights, message):
    with pytest.raises(ValueError, match=message):
        ShapeletTreeClassifier().fit(np.eye(6), [0, 1] * 3, sample_weight=weights)


def test_importances_are_shares_of_the_decrease_of_entropy():
    X, y, lengths = draw("channels")
    model = ShapeletTreeClassifier(engine="numba", **lengths).fit(X, y, sample_weight=OFTEN)
    tree = model.tree_
    assert max(tree.n_literals) > 1
    inner = np.flatnonzero(tree.children_left >= 0)
    weights = tree.weighted_n_node_samples * tree.impurity
    decrease = {
        k: weights[k] - weights[tree.children_left[k]] - weights[tree.children_right[k]]
        for k in inner.tolist()
    }
    found = model.shapelet_importances_
    nodes = np.array([one.node for one in model.shapelets_])
    for node in inner.tolist():
        expected = decrease[node] / sum(decrease.values())
        assert_allclose(found[nodes == node].sum(), expected, rtol=1e-9)
    assert found.min() >= 0
    points = model.feature_importances_
    assert points.shape == (2, model.n_features_in_)
    assert_allclose(points.sum(), 1)
    untouched = np.ones(points.shape, bool)
    for one in model.shapelets_:
        untouched[one.channel, one.start : one.start + one.length] = False
    assert np.all(points[untouched] == 0) and np.all(points[~untouched] >= 0)
    assert (
        not clone(model).set_params(min_impurity_decrease=9.0).fit(X, y).feature_importances_.any()
    )


def test_columns_are_named_by_shapelets():
    X, y, lengths = draw("channels")
    model = ShapeletTreeClassifier(engine="numba", **lengths).fit(X, y)
    names = model.get_feature_names_out()
    one = model.shapelets_[0]
    assert names[0] == (
        f"shapelet0_series{one.series}_channel{one.channel}_start{one.start}_length{one.length}"
    )
    assert len(set(names)) == len(names) == model.transform(X).shape[1]


def noisy():
    """Two classes that no single cut tells apart."""
    rng = np.random.default_rng(8)
    X, y = rng.normal(size=(24, 16)).cumsum(axis=1), np.arange(24) % 2
    return X, y, {"min_length": 5, "max_length": 9, "length_step": 4, "engine": "numba"}


def test_boosting_lowers_the_error():
    X, y, options = noisy()
    stump = ShapeletTreeClassifier(max_depth=1, logic=(), **options)
    model = AdaBoostClassifier(stump, n_estimators=6, random_state=0).fit(X, y)
    assert len(model.estimators_) > 2
    assert model.score(X, y) > stump.fit(X, y).score(X, y)
    assert model.feature_importances_.shape == (16,)
    assert_allclose(model.feature_importances_.sum(), 1)


def test_bagging_draws_series():
    X, y, options = noisy()
    tree = ShapeletTreeClassifier(max_candidates=30, random_state=0, **options)
    model = BaggingClassifier(tree, n_estimators=5, oob_score=False, random_state=0)
    model.fit(X, y, sample_weight=np.where(np.arange(24) < 20, 1.0, 0.0))
    assert model.predict_proba(X).shape == (24, 2)
    assert model.score(X[:20], y[:20]) > 0.8


@pytest.mark.gpu
def test_a_block_judges_weighted_lines_as_a_warp_does(monkeypatch):
    """The kernel for lines of many series, on few."""
    X, y, lengths = draw("walks")
    weights = np.random.default_rng(3).random(len(y))
    expected = ShapeletTreeClassifier(engine="numba", **lengths).fit(X, y, sample_weight=weights)
    monkeypatch.setattr("skts.engines.cupy.shapelets.programs.KEYS", ())
    found = ShapeletTreeClassifier(engine="cupy", **lengths).fit(X, y, sample_weight=weights)
    same_tree(found, expected)


@pytest.mark.gpu
def test_too_many_weights_are_refused_in_one_sentence():
    n = 600
    series = Series(np.zeros((n, 1, 4)), np.full(n, 4))
    criterion = Criterion(np.arange(n) % 2, np.ones(2), sample_weight=np.arange(1.0, n + 1))
    work = ShapeletSearch(series, np.arange(n), (3,), criterion)
    reason = find_engine("cupy").supports(work)
    assert "pairs of a class and a weight at most among 600 series; here are 600." in reason
