"""The forest: grown by plain loops, its votes, options, and promises."""

from __future__ import annotations

import math
import pickle
import warnings

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from reference_groups import best_split
from reference_shapelets import best_match
from sklearn.base import clone

from skts import ShapeletForestClassifier, ShapeletTreeClassifier, config_context
from skts.datasets import make_cylinder_bell_funnel
from skts.tree import export_text
from tests.contract import check_with_scikit_learn


def draw(kind="walks", n=10, width=14, seed=0):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, 2, width) if kind == "channels" else (n, width)).cumsum(axis=-1)
    y = np.array(["a", "b", "c"])[np.arange(n) % 3]
    if kind == "unequal":
        X = [x[: 5 + k % 10] for k, x in enumerate(X)]
    if kind == "whole":
        X = np.round(X)
    return X, y


def distance(query, points):
    found = best_match(tuple(query), tuple(points), len(query) >= 3)[0]
    return found / math.sqrt(len(query))


def plain_forest(model, X, y):
    """Nodes of each tree, depth first: shapelets as (series, channel, start, length), shares."""
    series = [np.atleast_2d(x) for x in X]
    classes, labels = np.unique(y, return_inverse=True)
    width, n = max(x.shape[1] for x in series), len(series)
    most = width if model.max_length is None else max(min(3, width), width // 2)
    lengths = range(min(3, min(x.shape[1] for x in series)), most + 1)
    seeds = np.random.RandomState(model.random_state).randint(2**31 - 1, size=model.n_estimators)
    for seed in seeds.tolist():
        random = np.random.RandomState(seed)
        times = np.zeros(n, int)
        for row in random.randint(0, n, n) if model.bootstrap else range(n):
            times[row] += 1
        nodes, level = {}, [("", [row for row in range(n) if times[row]])]
        while level:
            after = []
            for name, members in level:
                each = np.bincount(labels[members], times[members], len(classes))
                nodes[name] = each / each.sum(), None
                if max(each) == each.sum():
                    continue
                candidates = []
                for u in random.random_sample((model.max_candidates, 4)):
                    row = members[int(u[0] * len(members))]
                    size = series[row].shape[1]
                    fits = [length for length in lengths if length <= size]
                    length = fits[int(u[1] * len(fits))]
                    start = int(u[2] * (size - length + 1))
                    candidates.append((length, row, start, int(u[3] * len(series[row]))))
                candidates.sort()
                lines = [
                    [distance(series[row][channel, start : start + length], series[m][channel])
                     for m in members]
                    for length, row, start, channel in candidates
                ]  # fmt: skip
                split = best_split(
                    lines, [c[0] for c in candidates], labels[members].tolist(),
                    times[members].tolist(), 1, model.logic, model.max_literals,
                )  # fmt: skip
                if not split:
                    continue
                nodes[name] = nodes[name][0], [candidates[one[0]] for one in split]
                *_, threshold, line = split[-1]
                for side in (True, False):
                    some = [
                        m for m, d in zip(members, line, strict=True) if (d <= threshold) == side
                    ]
                    after.append((name + "LR"[not side], some))
            level = after
        yield [nodes[name] for name in sorted(nodes)]


@pytest.mark.parametrize("kind", ["walks", "channels", "unequal", "whole"])
@pytest.mark.parametrize(
    "options", [{}, {"logic": ("and", "or"), "bootstrap": False, "max_length": None}]
)
def test_trees_are_those_of_plain_loops(fast_engine, kind, options):
    X, y = draw(kind)
    model = ShapeletForestClassifier(
        3, max_candidates=4, random_state=5, engine=fast_engine, **options
    ).fit(X, y)
    expected = list(plain_forest(model, X, y))
    assert len(model.estimators_) == len(expected)
    for tree, nodes in zip(model.estimators_, expected, strict=True):
        assert_allclose(tree.tree_.value, [shares for shares, _ in nodes], rtol=1e-12)
        wanted = [place for _, places in nodes for place in places or []]
        found = [(s.length, s.series, s.start, s.channel) for s in tree.shapelets_]
        assert found == wanted


def test_engines_grow_the_same_forest(fast_engine):
    X, y = make_cylinder_bell_funnel(8, n_timepoints=40, random_state=0)
    for options in ({}, {"class_weight": "balanced_subsample"}, {"logic": ("or",)}):
        forest = ShapeletForestClassifier(6, random_state=1, oob_score=False, **options)
        one = clone(forest).set_params(engine="numba").fit(X, y)
        other = clone(forest).set_params(engine=fast_engine).fit(X, y)
        for a, b in zip(one.estimators_, other.estimators_, strict=True):
            for array, same in zip(a.tree_, b.tree_, strict=True):
                assert_array_equal(array, same)
        assert_array_equal(one.predict_proba(X), other.predict_proba(X))


def test_votes_are_those_of_the_trees():
    X, y = draw(n=12)
    model = ShapeletForestClassifier(9, random_state=0).fit(X, y)
    Q = X[:5] + 0.5
    assert_allclose(
        model.predict_proba(Q), np.mean([t.predict_proba(Q) for t in model.estimators_], axis=0)
    )
    assert_array_equal(model.apply(Q), np.column_stack([t.apply(Q) for t in model.estimators_]))
    assert_array_equal(model.predict(Q), model.classes_[model.predict_proba(Q).argmax(axis=1)])
    assert_allclose(np.exp(model.predict_log_proba(Q)), model.predict_proba(Q))
    tree = model.estimators_[0]
    assert isinstance(tree, ShapeletTreeClassifier) and tree.get_n_leaves() > 1
    assert "class" in export_text(tree)


def test_importances_are_the_mean_of_those_of_the_trees():
    X, y = draw("channels", n=12)
    model = ShapeletForestClassifier(7, random_state=0, logic=("and", "or")).fit(X, y)
    expected = np.mean([t.feature_importances_ for t in model.estimators_], axis=0)
    assert model.feature_importances_.shape == (2, 14)
    assert_allclose(model.feature_importances_, expected / expected.sum(), atol=1e-12)
    flat = ShapeletForestClassifier(2, random_state=0).fit(np.zeros((4, 5)), [0, 1, 0, 1])
    assert_array_equal(flat.feature_importances_, np.zeros(5))


def test_important_points_are_those_that_differ():
    rng = np.random.default_rng(0)
    X, y = rng.normal(size=(40, 60)), np.arange(40) % 2
    X[y == 1, 20:35] += 3 * np.hanning(15)
    model = ShapeletForestClassifier(50, random_state=0, max_length=0.4).fit(X, y)
    curve = model.feature_importances_
    assert curve[20:35].mean() > 2 * np.r_[curve[:15], curve[40:]].mean()


def test_out_of_bag_votes_are_those_of_trees_that_have_not_drawn_a_series():
    X, y = draw(n=15)
    model = ShapeletForestClassifier(20, random_state=3, oob_score=True).fit(X, y)
    votes, count = np.zeros((15, 3)), np.zeros(15)
    for tree in model.estimators_:
        drawn = np.random.RandomState(tree.random_state).randint(0, 15, 15)
        out = np.setdiff1d(np.arange(15), drawn)
        votes[out] += tree.predict_proba(X[out])
        count[out] += 1
    assert_allclose(model.oob_decision_function_, votes / count[:, None])
    right = model.classes_[votes.argmax(axis=1)] == y
    assert model.oob_score_ == right.mean()
    with pytest.warns(UserWarning, match=r"Each tree has drawn .* of the 15 training series"):
        few = ShapeletForestClassifier(1, random_state=3, oob_score=True).fit(X, y)
    assert np.isnan(few.oob_decision_function_).any() and 0 <= few.oob_score_ <= 1


def test_points_of_no_shapelet_have_no_importance():
    for seed in range(5):
        X, y = draw(n=12, width=60)
        model = ShapeletForestClassifier(5, max_length=6, random_state=seed).fit(X, y)
        there = np.zeros(60, bool)
        for one in (one for tree in model.estimators_ for one in tree.shapelets_):
            there[one.start : one.start + one.length] = True
        assert not there.all()
        assert_array_equal(model.feature_importances_ > 0, there)


def test_trees_do_not_depend_on_the_others():
    X, y = draw(n=40, width=24)
    many = ShapeletForestClassifier(9, random_state=2).fit(X, y)
    few = ShapeletForestClassifier(2, random_state=2).fit(X, y)
    for a, b in zip(few.estimators_, many.estimators_, strict=False):
        assert_array_equal(a.tree_.value, b.tree_.value)
    few.set_params(n_estimators=9, warm_start=True).fit(X, y)
    assert_array_equal(few.predict_proba(X), many.predict_proba(X))
    assert_array_equal(few.apply(X), many.apply(X))
    assert_array_equal(few.feature_importances_, many.feature_importances_)
    assert few.fit(X, y) is few and len(few.estimators_) == 9
    with pytest.raises(ValueError, match="below the 9 trees"):
        few.set_params(n_estimators=3).fit(X, y)
    with pytest.raises(ValueError, match="these are others"):
        few.set_params(n_estimators=12).fit(X[:-1], y[:-1])


def test_limits_are_kept():
    X, y = draw(n=20, width=20)
    model = ShapeletForestClassifier(5, random_state=0, max_depth=2).fit(X, y)
    assert max(tree.get_depth() for tree in model.estimators_) == 2
    model = ShapeletForestClassifier(5, random_state=0, min_samples_leaf=4, max_samples=0.9)
    model.fit(X, y)
    for tree in model.estimators_:
        leaves = tree.tree_.children_left < 0
        assert tree.tree_.weighted_n_node_samples[leaves].min() >= 4
        assert tree.tree_.weighted_n_node_samples[0] == 18
    model = ShapeletForestClassifier(5, random_state=0, min_samples_split=0.5).fit(X, y)
    for tree in model.estimators_:
        inner = tree.tree_.children_left >= 0
        assert tree.tree_.weighted_n_node_samples[inner].min() >= 10
    lengths = {"min_length": 4, "max_length": 0.5, "length_step": 3}
    model = ShapeletForestClassifier(5, random_state=0, **lengths).fit(X, y)
    assert {s.length for t in model.estimators_ for s in t.shapelets_} <= {4, 7, 10}
    for name in ("sqrt", "log2"):
        ShapeletForestClassifier(2, random_state=0, max_candidates=name).fit(X, y)


def test_candidates_may_be_longer_than_a_series():
    X, y = draw("unequal", n=14)
    model = ShapeletForestClassifier(15, max_length=None, random_state=0).fit(X, y)
    shortest = min(map(len, X))
    assert max(s.length for t in model.estimators_ for s in t.shapelets_) > shortest
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert np.isfinite(model.predict_proba(X)).all()


@pytest.mark.parametrize("weight", ["balanced", "balanced_subsample", {"a": 5.0, "b": 1, "c": 0}])
def test_weights_of_classes(weight):
    X, y = draw(n=20)
    y = np.where(np.arange(20) < 3, "a", np.where(np.arange(20) < 12, "b", "c"))
    model = ShapeletForestClassifier(9, random_state=0, class_weight=weight).fit(X, y)
    tree = model.estimators_[0].tree_
    drawn = np.random.RandomState(model.estimators_[0].random_state).randint(0, 20, 20)
    counts = np.array([(y[drawn] == label).sum() for label in "abc"])
    if weight == "balanced":
        each = 20 / (3 * np.array([3, 9, 8]))
    elif weight == "balanced_subsample":
        each = 20 / ((counts > 0).sum() * np.maximum(counts, 1))
    else:
        each = np.array([5.0, 1.0, 0.0])
    assert_allclose(tree.weighted_n_node_samples[0], counts @ each)
    assert_allclose(tree.value[0], counts * each / (counts @ each))


def test_equal_weights_are_none():
    X, y = draw(n=12)
    plain = ShapeletForestClassifier(4, random_state=0).fit(X, y)
    same = ShapeletForestClassifier(4, random_state=0, class_weight={"a": 2, "b": 2, "c": 2})
    assert_array_equal(same.fit(X, y).predict_proba(X), plain.predict_proba(X))
    weighted = same.estimators_[0].tree_.weighted_n_node_samples
    assert_array_equal(weighted, 2 * plain.estimators_[0].tree_.weighted_n_node_samples)


def test_threads_and_budgets_change_nothing():
    X, y = draw("channels", n=14)
    forest = ShapeletForestClassifier(12, random_state=0, engine="numba")
    expected = clone(forest).fit(X, y).predict_proba(X)
    assert_array_equal(clone(forest).set_params(n_jobs=1).fit(X, y).predict_proba(X), expected)
    with config_context(memory="200 kB"):
        assert_array_equal(clone(forest).fit(X, y).predict_proba(X), expected)


def test_pickles_hold_no_trees_twice():
    X, y = draw(n=12)
    model = ShapeletForestClassifier(5, random_state=0).fit(X, y)
    size = len(pickle.dumps(model))
    assert len(model.estimators_) == 5
    again = pickle.loads(pickle.dumps(model))
    assert len(pickle.dumps(model)) <= size + 100
    assert_array_equal(again.predict_proba(X), model.predict_proba(X))
    assert len(again.estimators_) == 5


def test_one_class_and_one_series():
    model = ShapeletForestClassifier(3, random_state=0).fit([[1, 2, 3]], ["only"])
    assert model.predict([[5, 1, 2]]).tolist() == ["only"]
    assert model.apply([[5, 1, 2]]).tolist() == [[0, 0, 0]]
    for width in (1, 2):
        X = list(np.arange(6 * width).reshape(6, width) % 5)
        model = ShapeletForestClassifier(3, random_state=0).fit(X, [0, 1, 0, 1, 0, 1])
        assert model.predict(X).shape == (6,)


def test_estimator_checks(fast_engine):
    check_with_scikit_learn(ShapeletForestClassifier(5, engine=fast_engine))
