"""ShapeletTreeRegressor: the tree of the oracle, splits of the definition, edge cases."""

from __future__ import annotations

import pickle
from fractions import Fraction
from itertools import pairwise

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.base import clone
from sklearn.exceptions import DataConversionWarning

from skts import ShapeletTreeClassifier, ShapeletTreeRegressor, config_context
from skts.engines import Series, ShapeletSearch, VarianceCriterion, find_engine, run
from skts.tree import export_text
from tests.contract import check_described, check_with_scikit_learn
from tests.reference_shapelets import best_match
from tests.tree.test_shapelet_tree import draw, same_tree

OPTIONS = {
    "plain": {},
    "logic": {"logic": ("and", "or")},
    "leaves": {"min_samples_leaf": 3, "min_samples_split": 5, "max_depth": 2},
    "share": {"min_weight_fraction_leaf": 0.15, "logic": ("or",), "max_literals": 3},
    "sampled": {"max_candidates": 20, "random_state": 3},
}
CASES = [("walks", options) for options in OPTIONS]
CASES += [
    (form, options)
    for form in ("channels", "unequal", "constant", "short", "no room")
    for options in ("logic", "leaves")
]


def targets(kind):
    rng = np.random.default_rng(4)
    y = {"real": rng.normal(size=11), "few": rng.integers(0, 3, 11) / 8, "far": 1e9 + np.arange(11)}
    return y[kind]


@pytest.fixture
def engines(monkeypatch):
    """Yield both programs of the CPU engine, compiled and for small work; then the oracle."""

    def each():
        for small in (False, True):
            place = "skts.engines.numba.shapelets.tiles.prefer_numpy"
            monkeypatch.setattr(place, lambda *_, able, small=small, **__: small and able())
            yield "numba"
        yield "oracle"

    return each


@pytest.mark.parametrize(("form", "options"), CASES)
def test_the_tree_is_that_of_the_oracle(engines, form, options):
    X, _, lengths = draw(form)
    number = CASES.index((form, options))
    y = targets(("real", "few", "far")[number % 3])
    weights = (None, 1.0 + np.arange(11) % 3, np.linspace(0.1, 0.7, 11), None)[number % 4]
    trees = [
        ShapeletTreeRegressor(engine=engine, **lengths, **OPTIONS[options]).fit(X, y, weights)
        for engine in engines()
    ]
    for tree in trees[:2]:
        same_tree(tree, trees[2])
        assert_array_equal(tree.apply(X), trees[2].apply(X))


@pytest.mark.parametrize(("seed", "weighted"), [(0, False), (1, True), (2, False)])
def test_splits_are_those_of_the_definition(seed, weighted):
    """Every candidate and every cut in plain loops, the gains as fractions."""
    rng = np.random.default_rng(seed)
    X, y = rng.normal(size=(9, 12)).cumsum(axis=1), rng.integers(0, 5, 9).tolist()
    w = (1 + np.arange(9) % 3).tolist() if weighted else [1] * 9
    model = ShapeletTreeRegressor(min_length=5, max_length=8, length_step=3, max_depth=1)
    model = model.fit(X, y, w if weighted else None)

    def spread(rows):
        total = sum(w[k] for k in rows)
        mean = Fraction(sum(w[k] * y[k] for k in rows), total)
        return sum(w[k] * (y[k] - mean) ** 2 for k in rows)

    best = (Fraction(0),)
    for length in (5, 8):
        for row in range(9):
            for start in range(13 - length):
                query = tuple(X[row, start : start + length])
                line = [best_match(query, tuple(x))[0] / np.sqrt(length) for x in X]
                for a, b in pairwise(sorted(set(line))):
                    left = [k for k in range(9) if line[k] <= a]
                    right = [k for k in range(9) if line[k] > a]
                    gain = (spread(range(9)) - spread(left) - spread(right)) / sum(w)
                    far, near = (
                        sum(w[k] * line[k] for k in side) / sum(w[k] for k in side)
                        for side in (right, left)
                    )
                    key = gain, far - near, -length, -row, -start
                    best = max(best, (*key, a + (b - a) / 2, left))
    found = model.shapelets_[0]
    assert (found.length, found.series, found.start) == tuple(-part for part in best[2:5])
    assert_allclose((found.gain, found.gap, found.threshold), (float(best[0]), best[1], best[5]))
    assert np.flatnonzero(model.apply(X) == 1).tolist() == best[6]
    assert_allclose(model.tree_.impurity[0], float(spread(range(9)) / sum(w)))
    assert_allclose(
        model.tree_.value[1], np.average(np.array(y)[best[6]], weights=np.array(w)[best[6]])
    )


def test_two_targets_are_two_classes():
    """Pure leaves are the best by entropy and by variance, and the gap decides among them."""
    X, y, lengths = draw("walks")
    X = X[:, 0] + 5 * np.outer(y == 0, np.hanning(14))
    classes = ShapeletTreeClassifier(logic=(), max_depth=1, **lengths).fit(X, y == 0)
    numbers = ShapeletTreeRegressor(max_depth=1, **lengths).fit(X, 1.0 * (y == 0))
    assert classes.shapelets_[0][1:6] == numbers.shapelets_[0][1:6]
    assert_allclose(numbers.predict(X), classes.predict_proba(X)[:, 1])


def test_uncertain_distances_bound_the_gain(engines):
    """Series so loud beside others that errors of estimates leave their order open."""
    rng = np.random.default_rng(8)
    X = rng.integers(0, 3, (12, 14)) * np.where(np.arange(14) < 5, 1.0, 2.0**30)
    X[6:] = np.roll(X[:6], 3, axis=1)
    for weights in (None, rng.random(12) + 0.1):
        trees = [
            ShapeletTreeRegressor(min_length=4, max_length=5, engine=engine, max_depth=2).fit(
                X, np.arange(12) * 7 % 12, weights
            )
            for engine in engines()
        ]
        same_tree(trees[0], trees[2])
        same_tree(trees[1], trees[2])


@pytest.mark.parametrize("scale", [2.0**-300, 1.0, 2.0**300])
def test_targets_of_any_scale_and_place(scale, rng):
    X, y = rng.normal(size=(12, 14)).cumsum(axis=1), rng.integers(0, 9, 12)
    model = ShapeletTreeRegressor(length_step=3, engine="numba").fit(X, y)
    other = clone(model).fit(X, (y + 2.0**20) * scale)
    assert [s[1:5] for s in other.shapelets_] == [s[1:5] for s in model.shapelets_]
    assert_allclose(other.predict(X) / scale, model.predict(X) + 2.0**20, rtol=1e-15)
    assert_allclose(other.tree_.impurity / scale / scale, model.tree_.impurity, atol=1e-9)


def test_weights_are_numbers_of_series(rng):
    X, y = rng.normal(size=(10, 14)).cumsum(axis=1), rng.normal(size=10)
    times = 1 + np.arange(10) % 3
    options = {"min_length": 4, "max_length": 8, "length_step": 4, "engine": "numba"}
    found = ShapeletTreeRegressor(**options).fit(X, y, times)
    expected = ShapeletTreeRegressor(**options).fit(
        np.repeat(X, times, axis=0), np.repeat(y, times)
    )
    assert_allclose(found.predict(X), expected.predict(X), rtol=1e-12)
    assert [s.length for s in found.shapelets_] == [s.length for s in expected.shapelets_]
    # a series without weight is not there
    none = ShapeletTreeRegressor(**options).fit(X, y, np.arange(10) >= 2)
    expected = ShapeletTreeRegressor(**options).fit(X[2:], y[2:])
    assert [s.series - 2 for s in none.shapelets_] == [s.series for s in expected.shapelets_]
    assert_array_equal(none.predict(X), expected.predict(X))


def test_logic_is_chosen_by_squared_errors():
    chosen = set()
    for seed in range(2):
        rng = np.random.default_rng(seed)
        X, y = rng.normal(size=(12, 12)).cumsum(axis=1), rng.normal(size=12)
        options = {"min_length": 5, "max_length": 5, "max_depth": 2, "engine": "numba"}
        model = ShapeletTreeRegressor(logic="auto", **options).fit(X, y)
        same_tree(model, ShapeletTreeRegressor(logic=model.logic_, **options).fit(X, y))
        chosen.add(model.logic_)
    assert len(chosen) == 2
    assert ShapeletTreeRegressor(logic="auto").fit(X[:1], y[:1]).logic_ == ()


def test_pruning_memory_text_and_pickles(rng):
    X, y = rng.normal(size=(24, 16)).cumsum(axis=1), rng.normal(size=24)
    model = ShapeletTreeRegressor(length_step=4, engine="numba").fit(X, y)
    path = model.cost_complexity_pruning_path(X, y)
    assert_allclose(path.impurities[[0, -1]], [0, np.var(y)], atol=1e-12)
    pruned = clone(model).set_params(ccp_alpha=path.ccp_alphas[-2]).fit(X, y)
    assert pruned.get_n_leaves() < model.get_n_leaves()
    with config_context(memory="2MB"):
        same_tree(clone(model).set_params(n_jobs=2).fit(X, y), model, rtol=0)
    with config_context(verify=True):
        clone(model).set_params(max_depth=1).fit(X, y)
    text = export_text(model, decimals=1, max_depth=99)
    assert text.count("value: ") == model.get_n_leaves()
    assert f"value: {y[0]:.1f}" in text
    again = pickle.loads(pickle.dumps(model))
    assert_array_equal(again.predict(X), model.predict(X))
    assert_allclose(model.predict(X), y, rtol=1e-15)
    assert model.shapelet_importances_.sum() == pytest.approx(1)
    assert repr(model.tree_) == f"ShapeletTree(n_nodes={2 * 24 - 1}, n_leaves=24)"
    names = model.get_feature_names_out()
    assert model.set_output(transform="pandas").transform(X).columns.tolist() == names.tolist()


@pytest.mark.parametrize("weighted", [False, True])
def test_gains_are_exact_ones_rounded(weighted, monkeypatch):
    rng = np.random.default_rng(2)
    y, line = rng.integers(0, 4, 40) / 4, rng.normal(size=(3, 40)) ** 2
    # so unequal that sums are far from what float64 holds
    w = 2 ** rng.integers(0, 30, 40) if weighted else np.ones(40, np.int64)
    criterion = VarianceCriterion(y, sample_weight=w.astype(float) if weighted else None)
    cuts = criterion.best_cuts(line)
    targets = [Fraction(one) for one in y.tolist()]

    def spread(rows):
        total = sum(int(w[k]) for k in rows)
        mean = Fraction(sum(int(w[k]) * targets[k] for k in rows), total)
        return sum(int(w[k]) * (targets[k] - mean) ** 2 for k in rows)

    for row, gain in zip(line, cuts.gain.tolist(), strict=True):
        order = np.argsort(row).tolist()
        gains = [spread(order) - spread(order[:k]) - spread(order[k:]) for k in range(1, 40)]
        assert abs(Fraction(gain, 2**38) - max(gains) / spread(order)) <= Fraction(1, 2**39) * 1.001
    # where float64 decides nothing, fractions find the same
    monkeypatch.setattr("skts.engines.families.shapelets.variance.WRONG", 0.5)
    assert_array_equal(criterion.best_cuts(line).gain, cuts.gain)


def test_an_engine_without_bounds_measures_all_candidates(monkeypatch):
    X, _, lengths = draw("unequal")
    y, options = targets("real"), {"engine": "numba", "logic": "auto", "max_depth": 2, **lengths}
    expected = ShapeletTreeRegressor(**options).fit(X, y)
    path = ShapeletTreeRegressor(**options).cost_complexity_pruning_path(X, y)
    numba = type(find_engine("numba"))
    monkeypatch.setattr(numba, "shapelet_search_lacks", lambda *_: "no", raising=False)
    same_tree(ShapeletTreeRegressor(**options).fit(X, y), expected)
    again = ShapeletTreeRegressor(**options).cost_complexity_pruning_path(X, y)
    assert_array_equal(again.ccp_alphas, path.ccp_alphas)


def test_equal_targets_are_one_leaf(rng):
    X = rng.normal(size=(5, 8))
    model = ShapeletTreeRegressor().fit(X, np.full(5, 0.1))
    assert model.get_depth() == 0 and model.predict(X[:1]).tolist() == [0.1]
    series = Series(X[:, np.newaxis], np.full(5, 8))
    work = ShapeletSearch(series, np.arange(5), (4,), VarianceCriterion(np.full(5, 0.1)))
    assert run(work, engine="numba") is None


@pytest.mark.parametrize(
    ("y", "message"),
    [
        (np.ones((4, 2)), "y has 2 columns; fit a ShapeletTreeRegressor to each of them"),
        ([1.0, 2, np.inf, 3], "infinity"),
        ([1.0, 2, 1e200, 3], r"y holds 1e\+200 at 2; give targets from -3e\+144 to 3e\+144"),
        ([1.0, 2], "inconsistent"),
    ],
)
def test_bad_targets_are_refused_in_words(y, message, rng):
    with pytest.raises(ValueError, match=message):
        ShapeletTreeRegressor().fit(rng.normal(size=(4, 8)), y)


def test_a_column_of_targets_is_taken_with_a_warning(rng):
    X, y = rng.normal(size=(6, 8)), np.arange(6.0)
    with pytest.warns(DataConversionWarning):
        model = ShapeletTreeRegressor().fit(X, y[:, np.newaxis])
    assert_array_equal(model.predict(X), ShapeletTreeRegressor().fit(X, y).predict(X))


def test_an_engine_that_lacks_it_says_so():
    series = Series(np.zeros((2, 1, 3)), np.full(2, 3))
    work = ShapeletSearch(series, np.arange(2), (3,), VarianceCriterion(np.arange(2.0)))
    reason = find_engine("cupy").supports(work)
    assert reason == ("engine='cupy' bounds the gains of classes, not of targets of a regression.")


def test_scikit_learns_checks(monkeypatch):
    monkeypatch.setenv("SCIPY_ARRAY_API", "1")
    # whole trees of its 200 targets have 200 leaves
    check_with_scikit_learn(ShapeletTreeRegressor(max_depth=4, engine="numba"), least=50)


def test_parameters_and_fitted_attributes_are_described(rng):
    check_described(ShapeletTreeRegressor().fit(rng.normal(size=(8, 12)), np.arange(8)))
