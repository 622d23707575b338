"""Whether shapelets are joined, as the training series have it; lengths as shares of the series."""

from __future__ import annotations

import numpy as np
import pytest
from numpy.testing import assert_array_equal
from sklearn.base import clone
from sklearn.model_selection import StratifiedKFold

from skts import ShapeletTreeClassifier

BOTH = ("and", "or")


def draw(seed, n=24):
    rng = np.random.default_rng(seed)
    X, y = rng.normal(size=(n, 16)).cumsum(axis=1), rng.integers(0, 2, n)
    X[y == 1, 3:8] += 2 * rng.normal() * np.sin(np.arange(5.0))
    return X, y


def rightly(model, X, y, weights):
    """The weight of the series that trees of the other parts classify rightly."""
    folds = StratifiedKFold(5, shuffle=True, random_state=0)
    total = 0.0
    for train, test in folds.split(X, y):
        tree = clone(model).fit(X[train], y[train], weights[train])
        total += weights[test][tree.predict(X[test]) == y[test]].sum()
    return total


def same_tree(model, expected):
    for found, wanted in zip(model.tree_, expected.tree_, strict=True):
        assert_array_equal(found, wanted)


def test_logic_is_chosen_by_cross_validation(fast_engine):
    chosen = set()
    for seed in range(3):
        X, y = draw(seed)
        weights = np.ones(24) if seed % 2 else 1.0 + np.arange(24) % 3
        options = {"min_length": 4, "max_length": 8, "length_step": 4, "engine": fast_engine}
        model = ShapeletTreeClassifier(logic="auto", **options).fit(X, y, weights)
        trees = {ways: ShapeletTreeClassifier(logic=ways, **options) for ways in ((), BOTH)}
        right = {ways: rightly(tree, X, y, weights) for ways, tree in trees.items()}
        assert model.logic_ == (BOTH if right[BOTH] > right[()] else ())
        same_tree(model, trees[model.logic_].fit(X, y, weights))
        chosen.add(model.logic_)
    assert chosen == {(), BOTH}


def test_logic_of_drawn_candidates_and_of_few_series():
    X, y = draw(3)
    model = ShapeletTreeClassifier(logic="auto", max_candidates=9, random_state=0).fit(X, y)
    same_tree(model, clone(model).fit(X, y))
    same_tree(model, clone(model).set_params(logic=model.logic_).fit(X, y))
    # a class of one series can not be left out
    assert ShapeletTreeClassifier(logic="auto").fit(X[:5], [0, 0, 0, 0, 1]).logic_ == ()
    path = clone(model).cost_complexity_pruning_path(X, y)
    assert_array_equal(path.ccp_alphas, model.cost_complexity_pruning_path(X, y).ccp_alphas)


def test_logic_that_is_given_is_kept():
    X, y = draw(0)
    for given, expected in (("or", "and"), BOTH), ((), ()), (["or"], ("or",)):
        assert ShapeletTreeClassifier(max_length=4, logic=given).fit(X, y).logic_ == expected


@pytest.mark.parametrize(("least", "most", "lengths"), [(0.25, 0.5, {4, 6, 8}), (3, 0.32, {3, 5})])
def test_lengths_as_shares_of_the_longest_series(least, most, lengths):
    X, y = draw(1)
    options = {"min_length": least, "max_length": most, "length_step": 2}
    model = ShapeletTreeClassifier(**options).fit(X, y)
    assert {one.length for one in model.shapelets_} <= lengths
    given = {"min_length": min(lengths), "max_length": max(lengths), "length_step": 2}
    same_tree(model, ShapeletTreeClassifier(**given).fit(X, y))
    # the longest of those that have a weight
    wide = [*X, np.arange(40.0)]
    weighted = ShapeletTreeClassifier(**options).fit(wide, [*y, 0], [1] * 24 + [0])
    assert [one.length for one in weighted.shapelets_] == [one.length for one in model.shapelets_]
    with pytest.raises(ValueError, match="min_length=20 is above the 16 time points of series 0"):
        ShapeletTreeClassifier(min_length=0.5, max_length=0.6).fit(wide, [*y, 0])
