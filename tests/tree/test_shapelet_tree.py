"""ShapeletTreeClassifier: the tree of the oracle, edge cases, scikit-learn's contract."""

from __future__ import annotations

import pickle
from itertools import pairwise

import numpy as np
import pandas as pd
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.base import clone
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline

from skts import ShapeletTreeClassifier, config_context
from skts.engines import Criterion, Series, ShapeletSearch, find_engine
from skts.exceptions import EngineNotAvailableError, MemoryBudgetError
from skts.metrics import subsequence_distance
from skts.tree import export_text
from skts.tree._class_growth import ClassGrowth
from tests.contract import check_described, check_with_scikit_learn
from tests.reference_shapelets import best_match

BUMP = np.array([0.0, 1, 2, 3, 2, 1, 0])
STEP = np.array([0.0, 0, 0, 3, 3, 3, 3])
SAW = np.array([0.0, 3, 1, 3, 1, 3, 0])


@pytest.fixture
def fast_engine(fast_engine):
    """An engine that ships and searches shapelets; others are skipped with their own reason."""
    series = Series(np.zeros((2, 1, 3)), np.full(2, 3))
    work = ShapeletSearch(series, np.arange(2), (3,), Criterion(np.arange(2), np.ones(2)))
    reason = find_engine(fast_engine).supports(work)
    if reason is not None:
        pytest.skip(reason)
    return fast_engine


def planted(rng, n_samples, n_timepoints, patterns, noise=0.1):
    """Noise with the patterns of each class somewhere, one after the other."""
    X = noise * rng.normal(size=(n_samples, n_timepoints))
    y = np.arange(n_samples) % len(patterns)
    for row, label in zip(X, y, strict=True):
        room = n_timepoints // max(1, len(patterns[label]))
        for place, pattern in enumerate(patterns[label]):
            start = place * room + rng.integers(room - len(pattern) + 1)
            row[start : start + len(pattern)] += pattern
    return X, y


def same_tree(found, expected, rtol=1e-9):
    for name, a, b in zip(found.tree_._fields, found.tree_, expected.tree_, strict=True):
        assert_allclose(a, b, rtol=rtol, err_msg=name)
    assert len(found.shapelets_) == len(expected.shapelets_)
    for one, other in zip(found.shapelets_, expected.shapelets_, strict=True):
        assert one[1:5] == other[1:5] and one[-2:] == other[-2:]
        assert_array_equal(one.values, other.values)
        assert_allclose(one[5:8], other[5:8], rtol=rtol)


OPTIONS = {
    "plain": {"logic": ()},
    "logic": {},
    "three literals": {"max_literals": 3, "logic": ("or",)},
    "balanced": {"class_weight": "balanced"},
    "weights": {"class_weight": {0: 1.0, 1: 3.5, 2: 0.3}, "min_weight_fraction_leaf": 0.05},
    "leaves": {"min_samples_leaf": 3, "min_samples_split": 5, "max_depth": 2},
    "sampled": {"max_candidates": 20, "random_state": 3},
}
FORMS = ["walks", "channels", "unequal", "constant", "short", "no room"]


def draw(form):
    rng = np.random.default_rng(5)
    X = rng.normal(size=(11, 2 if form == "channels" else 1, 14)).cumsum(axis=2)
    y = np.arange(11) % 3
    y[[1, 6]] = 0
    lengths = {"min_length": 4, "max_length": 8, "length_step": 3}
    if form in ("unequal", "no room"):
        X = [x[:, : 14 - k % 6] for k, x in enumerate(X)]
    if form == "no room":
        lengths = {"min_length": 4, "max_length": 12, "length_step": 4}
    if form == "constant":
        X[::3, :, 2:10] = 1.5
        X[4] = -2.0
    if form == "short":
        X, lengths = X[:, :, :4], {"min_length": 1}
    return X, y, lengths


CASES = [("walks", options) for options in OPTIONS]
CASES += [(form, options) for form in FORMS[1:] for options in ("logic", "weights", "leaves")]


@pytest.mark.parametrize(("form", "options"), CASES)
def test_the_tree_is_that_of_the_oracle(fast_engine, form, options):
    X, y, lengths = draw(form)
    found, expected = (
        ShapeletTreeClassifier(engine=engine, **lengths, **OPTIONS[options]).fit(X, y)
        for engine in (fast_engine, "oracle")
    )
    same_tree(found, expected)
    assert_array_equal(found.apply(X), expected.apply(X))


@pytest.mark.parametrize(("seed", "lengths"), [(11, (4, 5)), (3, (5, 9)), (4, (4, 11))])
def test_splits_are_those_of_the_definition(seed, lengths):
    """Every candidate, cut and partner in plain loops, for the root of a small set."""
    rng = np.random.default_rng(seed)
    X, y = list(rng.normal(size=(9, 12)).cumsum(axis=1)), np.arange(9) % 2
    if lengths[1] > 5:
        # some have no room for the longer candidates
        X = [x[: 12 - (k * k) % 7] for k, x in enumerate(X)]
    least, most = lengths
    options = {"min_length": least, "max_length": most, "length_step": most - least}
    model = ShapeletTreeClassifier(max_depth=1, engine="numba", **options).fit(X, y)

    def entropy(labels):
        shares = np.bincount(labels) / len(labels)
        return -sum(share * np.log(share) for share in shares if share > 0)

    def best_cut(distances):
        best = (-1.0, 0.0, 0.0)
        values = np.unique(distances[np.isfinite(distances)])
        for a, b in pairwise(values):
            left = distances <= a
            gain = entropy(y) - left.mean() * entropy(y[left]) - (~left).mean() * entropy(y[~left])
            gap = distances[~left].mean() - distances[left].mean()
            best = max(best, (round(gain, 12), gap, a + (b - a) / 2))
        return best

    candidates = {}
    for length in lengths:
        for row in range(9):
            for start in range(len(X[row]) - length + 1):
                query = tuple(X[row][start : start + length])
                line = [best_match(query, tuple(x))[0] for x in X]
                candidates[length, row, start] = np.array(line) / np.sqrt(length)
    order = sorted(candidates)
    ranked = {place: best_cut(candidates[place]) for place in order}
    first = max(order, key=lambda place: (*ranked[place][:2], *(-v for v in place)))
    literals = [(first, "first", ranked[first])]
    joined = {}
    for place in order:
        joined[place, "and"] = best_cut(np.maximum(candidates[first], candidates[place]))
        joined[place, "or"] = best_cut(np.minimum(candidates[first], candidates[place]))
    partner = max(joined, key=lambda key: joined[key][:2])
    if joined[partner][:2] > ranked[first][:2]:
        literals.append((*partner, joined[partner]))
    assert len(model.shapelets_) == len(literals)
    for found, (place, logic, (gain, gap, _)) in zip(model.shapelets_, literals, strict=True):
        assert (found.length, found.series, found.start, found.logic) == (*place, logic)
        assert_allclose((found.gain, found.gap), (gain, gap), rtol=1e-9)
    assert_allclose(model.tree_.threshold[0], literals[-1][2][2], rtol=1e-12)


def test_finds_what_was_planted(fast_engine, rng):
    X, y = planted(rng, 40, 50, [[BUMP], [SAW]])
    model = ShapeletTreeClassifier(min_length=5, max_length=9, engine=fast_engine).fit(
        X[:20], y[:20]
    )
    assert model.score(X[20:], y[20:]) == 1
    assert model.get_depth() == 1 and model.get_n_leaves() == 2
    assert model.engine_ == fast_engine


def test_logic_succeeds_where_a_single_shapelet_fails(fast_engine, rng):
    """Class 1 has both patterns; a node with one of them alone cannot tell."""
    X, y = planted(rng, 80, 40, [[BUMP], [BUMP, SAW], [SAW]], noise=0.05)
    y = (y == 1).astype(int)
    options = {"min_length": 7, "max_length": 7, "max_depth": 1, "engine": fast_engine}
    single = ShapeletTreeClassifier(logic=(), **options).fit(X[:40], y[:40])
    logical = ShapeletTreeClassifier(**options).fit(X[:40], y[:40])
    assert [literal.logic for literal in logical.shapelets_] == ["first", "and"]
    assert single.score(X[40:], y[40:]) < 0.8
    assert logical.score(X[40:], y[40:]) > 0.95


def test_or_takes_either_of_two_patterns(fast_engine, rng):
    X, y = planted(rng, 240, 20, [[BUMP], [STEP], [SAW], [-STEP]], noise=0.05)
    options = {"min_length": 7, "max_length": 7, "max_depth": 1, "engine": fast_engine}
    single = ShapeletTreeClassifier(logic=(), **options).fit(X[:120], y[:120] % 2)
    model = ShapeletTreeClassifier(logic=["or"], **options).fit(X[:120], y[:120] % 2)
    assert [literal.logic for literal in model.shapelets_] == ["first", "or"]
    assert_allclose(model.shapelets_[-1].gain, np.log(2))
    assert single.shapelets_[0].gain < np.log(2) - 0.05
    assert model.score(X[120:], y[120:] % 2) > single.score(X[120:], y[120:] % 2)


def test_what_is_fitted_belongs_together(fast_engine, rng):
    X, y = rng.normal(size=(30, 2, 24)).cumsum(axis=2), np.arange(30) % 4
    names = np.array(["a", "b", "c", "d"])[y]
    model = ShapeletTreeClassifier(length_step=3, engine=fast_engine).fit(X, names)
    tree = model.tree_
    assert model.score(X, names) == 1
    assert_array_equal(model.classes_, ["a", "b", "c", "d"])
    inner = np.flatnonzero(tree.children_left >= 0)
    assert_array_equal(np.repeat(inner, tree.n_literals[inner]), [s.node for s in model.shapelets_])
    distances, starts = model.transform(X), model.locate(X)
    assert distances.shape == starts.shape == (30, len(model.shapelets_))
    for column, literal in enumerate(model.shapelets_):
        window = slice(literal.start, literal.start + literal.length)
        assert_array_equal(literal.values, X[literal.series, literal.channel, window])
        assert literal.threshold == tree.threshold[literal.node]
        assert distances[literal.series, column] == 0
        found = subsequence_distance(literal.values, X[3, literal.channel])
        assert found == (distances[3, column], starts[3, column])
    assert distances.max() <= 2 + 1e-9
    path = model.decision_path(X).toarray()
    leaves = model.apply(X)
    assert_array_equal(path.sum(axis=0), tree.n_node_samples)
    assert np.all(path[np.arange(30), leaves] == 1) and np.all(path[:, 0] == 1)
    assert np.all(tree.children_left[leaves] == -1)
    assert_allclose(model.predict_proba(X), tree.value[leaves])
    assert_allclose(np.exp(model.predict_log_proba(X)), tree.value[leaves])
    assert_allclose(tree.impurity[0], -np.sum(tree.value[0] * np.log(tree.value[0])))
    for node in inner:
        children = tree.children_left[node], tree.children_right[node]
        assert tree.n_node_samples[list(children)].sum() == tree.n_node_samples[node]
        weights = tree.weighted_n_node_samples
        rest = sum(weights[k] * tree.impurity[k] for k in children) / weights[node]
        last = [literal for literal in model.shapelets_ if literal.node == node][-1]
        assert_allclose(last.gain, tree.impurity[node] - rest, atol=1e-9)


def test_memory_and_threads_do_not_change_the_tree(rng, monkeypatch):
    X, y = rng.normal(size=(24, 40)).cumsum(axis=1), np.arange(24) % 3
    model = ShapeletTreeClassifier(length_step=4, engine="numba")
    expected = clone(model).fit(X, y)
    for memory in ("1.4MB", "2MB", "3MB", "100MB"):
        for n_jobs in (1, 2):
            with config_context(memory=memory):
                same_tree(clone(model).set_params(n_jobs=n_jobs).fit(X, y), expected, rtol=0)


def test_pruning_follows_its_path(rng):
    X, y = rng.normal(size=(40, 16)).cumsum(axis=1), np.arange(40) % 3
    model = ShapeletTreeClassifier(length_step=4, logic=(), engine="numba")
    path = model.cost_complexity_pruning_path(X, y)
    full = clone(model).fit(X, y)
    assert path.ccp_alphas[0] == 0 and np.all(np.diff(path.ccp_alphas) >= 0)
    assert full.get_n_leaves() > 4
    assert_allclose(path.impurities[-1], full.tree_.impurity[0])
    sizes = []
    for alpha, impurity in zip(path.ccp_alphas, path.impurities, strict=True):
        pruned = clone(model).set_params(ccp_alpha=alpha + 1e-12).fit(X, y)
        leaves = pruned.tree_.children_left < 0
        share = pruned.tree_.weighted_n_node_samples / 40
        assert_allclose((share * pruned.tree_.impurity)[leaves].sum(), impurity, atol=1e-12)
        sizes.append(pruned.get_n_leaves())
        assert len(pruned.shapelets_) == sizes[-1] - 1
        assert_array_equal(np.unique(pruned.apply(X)), np.flatnonzero(leaves))
    assert sizes == sorted(sizes, reverse=True) and sizes[-1] == 1


def test_limits_of_growth(fast_engine, rng):
    X, y = rng.normal(size=(30, 16)).cumsum(axis=1), np.arange(30) % 3
    options = {"length_step": 5, "engine": fast_engine}
    assert ShapeletTreeClassifier(max_depth=2, **options).fit(X, y).get_depth() == 2
    for leaf in (7, 0.2):
        tree = ShapeletTreeClassifier(min_samples_leaf=leaf, **options).fit(X, y).tree_
        assert tree.n_node_samples.min() >= (7 if leaf == 7 else 6)
    tree = ShapeletTreeClassifier(min_samples_split=0.5, **options).fit(X, y).tree_
    assert tree.n_node_samples[tree.children_left >= 0].min() >= 15
    assert ShapeletTreeClassifier(min_impurity_decrease=2.0, **options).fit(X, y).get_depth() == 0
    tree = ShapeletTreeClassifier(min_weight_fraction_leaf=0.3, **options).fit(X, y).tree_
    assert tree.weighted_n_node_samples.min() >= 0.3 * 30


def test_candidates_can_be_drawn(fast_engine, rng):
    X, y = planted(rng, 30, 30, [[BUMP], [SAW]])
    model = ShapeletTreeClassifier(max_candidates=40, random_state=0, engine=fast_engine)
    same_tree(clone(model).fit(X, y), clone(model).fit(X, y), rtol=0)
    assert model.fit(X, y).score(X, y) == 1
    every = ShapeletTreeClassifier(length_step=5, engine=fast_engine)
    same_tree(clone(every).set_params(max_candidates=10**6).fit(X, y), every.fit(X, y), rtol=0)


@pytest.mark.parametrize("weights", [{0: 1.0, 1: 3.5, 2: 0.3}, "balanced", {0: 1, 1: 2, 2: 4}])
@pytest.mark.parametrize("power", [-300, -7, 400])
def test_the_scale_of_weights_does_not_matter(engine, weights, power):
    X, y, lengths = draw("walks")
    if weights == "balanced":
        weights = dict(enumerate(len(y) / (3 * np.bincount(y))))
    scaled = {label: 2.0**power * weight for label, weight in weights.items()}
    model = ShapeletTreeClassifier(engine=engine, min_weight_fraction_leaf=0.05, **lengths)
    expected = clone(model).set_params(class_weight=weights).fit(X, y)
    found = clone(model).set_params(class_weight=scaled).fit(X, y)
    for name, a, b in zip(found.tree_._fields, found.tree_, expected.tree_, strict=True):
        assert_array_equal(a, 2.0**power * b if name.startswith("weighted") else b, err_msg=name)
    for one, other in zip(found.shapelets_, expected.shapelets_, strict=True):
        assert one[1:] == other[1:]


@pytest.mark.parametrize("weight", [1000, 1e-9, 1 / 3])
def test_equal_weights_are_no_weights(engine, weight):
    X, y, lengths = draw("walks")
    model = ShapeletTreeClassifier(engine=engine, ccp_alpha=0.05, **lengths)
    expected = clone(model).fit(X, y)
    found = clone(model).set_params(class_weight=dict.fromkeys(range(3), weight)).fit(X, y)
    for name, a, b in zip(found.tree_._fields, found.tree_, expected.tree_, strict=True):
        assert_array_equal(a, weight * b if name.startswith("weighted") else b, err_msg=name)
    assert [s[1:] for s in found.shapelets_] == [s[1:] for s in expected.shapelets_]


def test_weights_do_not_overflow(fast_engine, rng):
    """Entropies of a total weight of 8e5 were beyond what tables hold."""
    X, y = planted(rng, 800, 12, [[BUMP], [SAW]], noise=0.8)
    options = {"min_length": 7, "max_length": 7, "max_depth": 2, "engine": fast_engine}
    expected = ShapeletTreeClassifier(**options).fit(X, y)
    for weights in ({0: 1000, 1: 1000}, {0: 1000, 1: 1000 * (1 + 1e-15)}):
        found = ShapeletTreeClassifier(class_weight=weights, **options).fit(X, y)
        assert found.score(X, y) == expected.score(X, y) > 0.75


@pytest.mark.parametrize(
    ("weights", "message"),
    [
        ({0: -1.0, 1: 1.0}, "class_weight is -1 for class 0; give numbers from 0 to"),
        ({0: 1.0, 1: np.nan}, "class_weight is nan for class 1"),
        ({0: 1.0, 1: np.inf}, "class_weight is inf for class 1"),
        ({0: 0.0, 1: 0.0}, "class_weight is 0 for all classes"),
    ],
)
def test_bad_weights_are_refused(weights, message):
    with pytest.raises(ValueError, match=message):
        ShapeletTreeClassifier(class_weight=weights).fit(np.eye(6), [0, 1] * 3)


def test_a_class_without_weight_is_passed_over(engine):
    X, y, lengths = draw("walks")
    model = ShapeletTreeClassifier(class_weight={2: 0.0}, engine=engine, **lengths).fit(X, y)
    assert np.all(model.tree_.value[model.tree_.weighted_n_node_samples > 0, 2] == 0)
    assert_array_equal(model.predict(X)[y != 2], y[y != 2])


def test_a_share_of_series_is_not_rounded_up():
    """0.07 of 100 is 7.000000000000001 in float64."""
    X = np.arange(100.0)[:, np.newaxis]
    model = ShapeletTreeClassifier(min_samples_leaf=0.07, max_depth=1, engine="numba")
    assert model.fit(X, np.arange(100) >= 7).tree_.n_node_samples.tolist() == [100, 7, 93]


@pytest.mark.parametrize("failure", [ValueError("no"), KeyboardInterrupt()])
@pytest.mark.parametrize("place", ["base.run_all", "tree._base.prune", "tree._base.keep"])
def test_a_fit_that_fails_leaves_the_one_before(place, failure, rng, monkeypatch):
    X, y = planted(rng, 20, 24, [[BUMP], [SAW]])
    model = ShapeletTreeClassifier(min_length=6, max_length=8, engine="numba").fit(X, y)
    before, state = model.predict(X), dict(vars(model))

    def fail(*args, **kwargs):
        raise failure

    with monkeypatch.context() as patch:
        patch.setattr(f"skts.{place}", fail)
        with pytest.raises(type(failure)):
            model.fit(pd.DataFrame(np.hstack([X, X])), np.array(["a", "b", "c", "d"])[y + 2])
    assert vars(model) == state
    assert_array_equal(model.predict(X), before)


def test_the_form_of_transform_does_not_reach_predict(rng):
    X, y = planted(rng, 20, 24, [[BUMP], [SAW]])
    model = ShapeletTreeClassifier(min_length=6, max_length=8, engine="numba")
    expected = clone(model).fit(X, y)
    model.set_output(transform="pandas").fit(X, y)
    assert_array_equal(model.predict(X), expected.predict(X))
    assert_array_equal(model.predict_proba(X), expected.predict_proba(X))
    assert_array_equal(model.apply(X), expected.apply(X))
    assert (model.decision_path(X) != expected.decision_path(X)).nnz == 0


@pytest.mark.filterwarnings("error")
@pytest.mark.parametrize("power", [-400, 400])
@pytest.mark.parametrize("form", ["walks", "short", "unequal"])
def test_a_power_of_two_grows_the_same_tree(engine, form, power):
    X, y, lengths = draw(form)
    lengths = lengths | {"max_length": 2} if form == "short" else lengths
    scale = 2.0**power
    model = ShapeletTreeClassifier(engine=engine, **lengths)
    expected = clone(model).fit(X, y)
    found = clone(model).fit([scale * x for x in X], y)
    unit = scale if form == "short" else 1.0
    inner = expected.tree_.children_left >= 0
    for name, a, b in zip(found.tree_._fields, found.tree_, expected.tree_, strict=True):
        b = np.where(inner, unit * b, b) if name == "threshold" else b
        assert_array_equal(a, b, err_msg=name)
    new = [np.append(x, x[:, :3], axis=1) for x in X] + [X[0][:, :1]]
    distances = expected.transform(new)
    assert np.isinf(distances[-1]).any() or form == "short"
    assert_array_equal(found.transform([scale * x for x in new]), unit * distances)
    assert_array_equal(found.predict([scale * x for x in new]), expected.predict(new))


def test_one_class_is_one_leaf(fast_engine, rng):
    model = ShapeletTreeClassifier(engine=fast_engine).fit(rng.normal(size=(5, 9)), ["x"] * 5)
    assert model.get_n_leaves() == 1 and model.shapelets_ == []
    assert model.transform(np.ones((2, 9))).shape == (2, 0)
    assert_array_equal(model.predict(np.ones((2, 9))), ["x", "x"])
    assert_array_equal(model.predict_proba(np.ones((2, 9))), [[1.0], [1.0]])
    assert export_text(model) == "|--- class: x\n"


def test_series_that_cannot_be_told_apart_stay_together(fast_engine):
    X = np.array([[1.0, 1, 1, 1, 1], [2, 2, 2, 2, 2], [1, 5, 2, 8, 1], [1, 5, 2, 8, 1]])
    model = ShapeletTreeClassifier(min_length=3, engine=fast_engine).fit(X, [0, 1, 0, 1])
    assert model.get_n_leaves() <= 2
    assert_allclose(model.predict_proba(X), 0.5)
    assert (
        ShapeletTreeClassifier(engine=fast_engine).fit(np.ones((4, 6)), [0, 1] * 2).get_depth() == 0
    )


def test_a_series_shorter_than_a_shapelet_is_far_from_it(fast_engine, rng):
    X, y = planted(rng, 20, 30, [[BUMP], [SAW]])
    model = ShapeletTreeClassifier(min_length=7, max_length=9, engine=fast_engine).fit(list(X), y)
    assert np.isinf(model.transform([np.arange(5.0)])).all()
    assert_array_equal(model.locate([np.arange(5.0)]), -1)
    assert model.apply([np.arange(5.0)]) == model.tree_.children_right[0]
    assert not hasattr(model, "n_features_in_")
    assert model.transform([rng.normal(size=50)]).shape == (1, len(model.shapelets_))


@pytest.mark.parametrize(
    ("X", "options", "message"),
    [
        (np.eye(6), {"min_length": 5, "max_length": 4}, "min_length=5 is above max_length=4"),
        (np.eye(6), {"min_length": 7}, "min_length=7 is above the 6 time points of series 0"),
        (
            [np.arange(6.0)] * 3 + [np.arange(4.0)] * 3,
            {"max_length": 7},
            "max_length=7 is above the 6 time points of the longest series",
        ),
        (np.where(np.eye(6) > 0, np.nan, 1.0), {}, "NaN at series 0, time point 0"),
        (np.where(np.eye(6) > 0, np.inf, 1.0), {}, "infinity"),
        (np.eye(6), {"logic": ("and", "xor")}, r"logic takes \"and\" and \"or\"; got .*xor"),
        (np.eye(6), {"logic": [["and"]]}, r"logic takes \"and\" and \"or\"; got .*'and'"),
        (np.eye(6), {"logic": "and"}, "'logic' parameter"),
        (np.eye(6), {"max_literals": 0}, "'max_literals' parameter"),
        (np.eye(6), {"min_samples_leaf": 0}, "'min_samples_leaf' parameter"),
    ],
)
def test_bad_input_is_refused_in_words(X, options, message):
    model = ShapeletTreeClassifier(**options)
    with pytest.raises(ValueError, match=message):
        model.fit(X, [0, 1] * 3)
    assert not [name for name in vars(model) if name.endswith("_")]


def test_regression_targets_and_channels_are_refused(rng):
    X = rng.normal(size=(6, 2, 9))
    with pytest.raises(ValueError, match="Unknown label type"):
        ShapeletTreeClassifier().fit(X, np.linspace(0.1, 1.7, 6))
    model = ShapeletTreeClassifier(length_step=3).fit(X, [0, 1] * 3)
    with pytest.raises(
        ValueError, match="X has 3 channels, but ShapeletTreeClassifier is expecting 2"
    ):
        model.predict(rng.normal(size=(6, 3, 9)))


def test_a_budget_for_no_tile_at_all_is_refused(rng):
    X = rng.normal(size=(20, 200))
    model = ShapeletTreeClassifier(min_length=20, max_length=20, engine="numba")
    with config_context(memory="10KB"), pytest.raises(MemoryBudgetError, match="needs .* budget"):
        model.fit(X, [0, 1] * 10)


def test_an_engine_that_is_not_there_is_refused_first():
    missing = find_engine("cupy").available()
    if missing is None:
        pytest.skip("the GPU engine is there")
    with pytest.raises(EngineNotAvailableError):
        ShapeletTreeClassifier(engine="cupy").fit([["not", "numbers"]], [0])


def test_forms_of_input_give_the_same(rng):
    X, y = planted(rng, 12, 20, [[BUMP], [SAW]])
    model = ShapeletTreeClassifier(min_length=6, max_length=7, engine="numba")
    expected = clone(model).fit(X, y)
    for form in (X[:, None], list(X), X.tolist(), np.asfortranarray(X), X.astype(">f8")):
        same_tree(clone(model).fit(form, y), expected, rtol=0)
    padded = np.hstack([X, np.full((12, 3), np.nan)])
    same_tree(clone(model).fit(padded, y), expected, rtol=0)
    frame = pd.DataFrame(X, columns=[f"t{i}" for i in range(20)])
    model.set_output(transform="pandas").fit(frame, y)
    names = [
        f"shapelet{k}_series{one.series}_start{one.start}_length{one.length}"
        for k, one in enumerate(model.shapelets_)
    ]
    assert list(model.transform(frame).columns) == names
    assert_array_equal(model.feature_names_in_, frame.columns)


def test_predicting_writes_nothing_and_fits_survive_pickling(rng):
    X, y = planted(rng, 20, 24, [[BUMP], [SAW]])
    X.flags.writeable = False
    before = X.copy()
    model = ShapeletTreeClassifier(min_length=6, max_length=8, engine="numba").fit(X, y)
    state = pickle.dumps(model)
    model.predict(X), model.transform(X), model.decision_path(X), export_text(model)
    assert pickle.dumps(model) == state
    assert_array_equal(X, before)
    assert_array_equal(pickle.loads(state).transform(X), model.transform(X))


def test_shapelets_are_features_in_a_pipeline(rng):
    X, y = planted(rng, 40, 30, [[BUMP], [SAW], []])
    model = make_pipeline(
        ShapeletTreeClassifier(min_length=6, max_length=8), LogisticRegression()
    ).fit(X[:20], y[:20])
    assert model.score(X[20:], y[20:]) > 0.9


def test_rules_as_text(rng):
    X, y = planted(rng, 30, 30, [[BUMP], [SAW], []])
    model = ShapeletTreeClassifier(min_length=7, max_length=7).fit(X, np.array(["a", "b", "c"])[y])
    lines = export_text(model, decimals=3).splitlines()
    assert len(lines) == 3 * model.get_n_leaves() - 2
    first = model.shapelets_[0]
    head = f"|--- [series {first.series}, {first.start}:{first.start + 7}"
    assert lines[0].startswith(head) and lines[0].endswith(f"<= {first.threshold:.3f}")
    assert sum("class:" in line for line in lines) == model.get_n_leaves()
    assert export_text(model, max_depth=0).count("truncated branch") >= 1
    stacked = ShapeletTreeClassifier(min_length=7, max_length=7).fit(np.stack([X, X], axis=1), y)
    assert "channel 0" in export_text(stacked)


def test_the_distance_of_a_subsequence():
    found = subsequence_distance([0, 1, 0, 2], [9, 5, 7, 5, 9, 1, 1, 1, 1, 1])
    assert found == (0.0, 1)
    assert subsequence_distance([1, 2], [5, 6, 1, 2.5]) == (pytest.approx(np.sqrt(0.125)), 2)
    assert subsequence_distance([0, 1, 0], [4, 4, 4, 4]) == (1.0, 0)
    assert subsequence_distance([1, 2, 3], [2, 4, 7, 1], normalize=False).distance == pytest.approx(
        np.sqrt((1 + 4 + 16) / 3)
    )
    with pytest.raises(ValueError, match="x has 3 time points, more than the 2 of the series"):
        subsequence_distance([1, 2, 3], [1, 2])
    with pytest.raises(ValueError, match=r"x has shape \(2, 3\); one series of shape"):
        subsequence_distance(np.ones((2, 3)), np.ones((2, 5)))
    with pytest.raises(ValueError, match="NaN at series 0, time point 1"):
        subsequence_distance([1, np.nan, 3], np.ones(5))


def test_scikit_learns_checks(fast_engine, monkeypatch):
    monkeypatch.setenv("SCIPY_ARRAY_API", "1")
    check_with_scikit_learn(ShapeletTreeClassifier(engine=fast_engine), least=50)


def test_parameters_and_fitted_attributes_are_described(rng):
    check_described(ShapeletTreeClassifier().fit(rng.normal(size=(8, 12)), [0, 1] * 4))


def test_nodes_count_the_classes_that_they_hold(monkeypatch, rng):
    """With many classes most nodes hold few; the unit of a gain is that of the tree, though."""
    widths, units, criterion = [], set(), ClassGrowth.criterion

    def noted(self, members):
        found = criterion(self, members)
        widths.append((len(found.class_weight), len(np.unique(self.labels[members]))))
        units.add(found.unit)
        return found

    monkeypatch.setattr(ClassGrowth, "criterion", noted)
    X, y = rng.normal(size=(40, 6)), np.arange(40) % 10
    model = ShapeletTreeClassifier(max_candidates=20, random_state=0, engine="numba").fit(X, y)
    assert all(width == held for width, held in widths) and min(widths) < (10, 10)
    for weight in (2.0, 0.5):
        widths.clear(), units.clear()
        model.set_params(class_weight={9: weight}).fit(X, y)
        # one class beside those of a node where they weigh the same, but not all of the tree
        assert {width - held for width, held in widths} == {0, 1} and units == {2.0**38}
