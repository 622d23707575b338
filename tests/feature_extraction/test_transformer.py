"""ShapeletTransformer: choices of plain loops, features, options, scikit-learn's contract."""

from __future__ import annotations

import math
import pickle
import re
from itertools import pairwise

import numpy as np
import pandas as pd
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from reference_dilated import dilated_distances
from scipy.stats import f_oneway
from sklearn.base import clone
from sklearn.linear_model import RidgeClassifierCV, RidgeCV
from sklearn.model_selection import cross_val_score
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from skts import ShapeletTransformer
from skts.engines import Places, Room, choose
from skts.feature_extraction import _transformer
from skts.feature_extraction._candidates import draw_partners
from skts.feature_extraction._selection import f_statistic, separation
from tests.contract import check_described, check_with_scikit_learn

LENGTHS, DILATIONS = (2, 4, 7), (1, 3)


def sample(rng, kind="walks", n=9, width=24, n_channels=1):
    """Series and classes."""
    X = rng.normal(size=(n, n_channels, width)).cumsum(axis=2)
    if kind == "integers":
        X = rng.integers(0, 3, X.shape).astype(float)
    if kind == "copies":
        X[3:6] = X[:3]
    if kind == "constants":
        X[:3, :, :12] = 1.0
        X[-1] = 2.0
    return X, np.arange(n) % 3


# -- the best of all candidates, in plain loops


def candidates(X, lengths, dilations, both=(True, False)):
    """All candidates in the order in which the first of equal ones is chosen."""
    n, n_channels, width = X.shape
    for length in lengths:
        for dilation in dilations:
            extent = (length - 1) * dilation + 1
            for normalized in (False,) if length < 3 else both:
                for channel in range(n_channels):
                    for row in range(n):
                        for start in range(width - extent + 1):
                            yield row, start, length, dilation, channel, normalized


def least_distances(X, candidate):
    """Distances of a candidate to all series."""
    row, start, length, dilation, channel, normalized = candidate
    values = tuple(X[row, channel, start:][: (length - 1) * dilation + 1 : dilation].tolist())
    lines = (tuple(line[channel].tolist()) for line in X)
    return [min(dilated_distances(values, line, dilation, normalized)) for line in lines]


def entropy(labels):
    shares = [labels.count(one) / len(labels) for one in set(labels)]
    return -sum(share * math.log(share) for share in shares)


def best_gain(distances, labels, normalized):
    """Gain and gap of the best cut."""
    pairs = sorted(zip(distances, labels, strict=True))
    n, best = len(pairs), (0.0, -math.inf)
    for size in range(1, n):
        low, high = pairs[size - 1][0], pairs[size][0]
        if high - low <= 2.0**-36 * max(high, normalized):
            continue
        left, right = ([label for _, label in part] for part in (pairs[:size], pairs[size:]))
        gain = entropy(list(labels)) - (size * entropy(left) + (n - size) * entropy(right)) / n
        gap = sum(d for d, _ in pairs[size:]) / (n - size) - sum(d for d, _ in pairs[:size]) / size
        best = max(best, (round(gain, 12), gap))
    return best


def best_of_all(X, y, count, scores, labels=None, share=None):
    """Greedily: the best that overlaps none before, and whose class has room."""
    found, scored = [], []
    for number, candidate in enumerate(candidates(X, LENGTHS, DILATIONS)):
        score = scores(least_distances(X, candidate), candidate[-1])
        scored.append((tuple(-part for part in score), number, candidate))
    quota = max(1, math.ceil(count / len(set(y)) if share is None else share * count))
    taken, room = set(), dict.fromkeys(y, quota)
    for _, _, candidate in sorted(scored):
        row, start, length, dilation, channel, _ = candidate
        points = {(row, channel, start + t) for t in range((length - 1) * dilation + 1)}
        if len(found) < count and not points & taken and room[y[row]] > 0:
            taken |= points
            room[y[row]] -= 1
            found.append(candidate)
    return found


def places_of(model):
    names = "series", "start", "length", "dilation", "channel", "normalized"
    return [tuple(getattr(one, name) for name in names) for one in model.shapelets_]


@pytest.mark.parametrize("kind", ["walks", "integers", "copies", "constants", "channels"])
def test_the_best_shapelets_are_those_of_plain_loops(fast_engine, kind):
    rng = np.random.default_rng(5)
    X, y = sample(rng, kind, 6, 14, 2 if kind == "channels" else 1)
    X = np.round(X, 1)
    labels = y.tolist()
    expected = best_of_all(X, labels, 9, lambda d, normalized: best_gain(d, labels, normalized))
    model = ShapeletTransformer(
        9,
        max_candidates=None,
        lengths=LENGTHS,
        dilations=DILATIONS,
        normalized=0.5,
        engine=fast_engine,
    ).fit(X, y)
    assert places_of(model) == expected
    for one in model.shapelets_:
        place = one.series, one.start, one.length, one.dilation, one.channel, one.normalized
        gain, _ = best_gain(least_distances(X, place), labels, one.normalized)
        assert_allclose(one.score, gain, rtol=1e-10, atol=1e-10)
        assert one.label == y[one.series]


def test_the_best_shapelets_by_f_are_those_of_plain_loops(rng):
    X, y = sample(rng, "walks", 7, 12)

    def score(distances, normalized):
        groups = [[d for d, one in zip(distances, y, strict=True) if one == k] for k in range(3)]
        return (float(f_oneway(*groups).statistic),)

    model = ShapeletTransformer(
        8,
        max_candidates=None,
        lengths=LENGTHS,
        dilations=DILATIONS,
        normalized=0.5,
        criterion="f_statistic",
        max_class_share=1.0,
        engine="numba",
    ).fit(X, y)
    assert places_of(model) == best_of_all(X, y.tolist(), 8, score, share=1.0)


def test_the_statistic_tells_classes_apart_that_lie_close_together(rng):
    """Digits that a difference of sums of squares loses."""
    labels = np.repeat([0, 1, 2], 5)
    distances = 1e6 + labels + 1e-6 * rng.normal(size=(4, 15)).round(3)
    found, _ = f_statistic(distances, labels, np.ones(4, bool))
    exact = distances.astype(np.longdouble)
    groups = [exact[:, labels == one] for one in range(3)]
    within = sum(((g - g.mean(axis=1, keepdims=True)) ** 2).sum(axis=1) for g in groups)
    between = sum(5 * (g.mean(axis=1) - exact.mean(axis=1)) ** 2 for g in groups)
    assert_allclose(found, (between / 2 / (within / 12)).astype(float), rtol=1e-5)
    alike = f_statistic(np.ones((2, 15)), labels, np.ones(2, bool))[0]
    assert_array_equal(alike, [0, 0])
    apart = f_statistic(labels[np.newaxis].astype(float), labels, np.ones(1, bool))[0]
    assert_array_equal(apart, [np.inf])


@pytest.mark.parametrize("n", [1, 3, 4, 5, 12])
def test_the_gap_of_u_shapelets_is_that_of_plain_loops(rng, n):
    distances = np.vstack([rng.random((6, n)), np.ones((1, n)), 1e9 + rng.random((1, n))])
    found, _ = separation(distances, np.zeros(n, np.int64), np.ones(8, bool))
    for row, gap in zip(distances, found.tolist(), strict=True):
        ordered = np.sort(row)
        gaps = [
            far.mean() - far.std() - near.mean() - near.std()
            for near, far in (np.split(ordered, [size]) for size in range(2, n - 1))
        ]
        assert_allclose(gap, max(gaps, default=0.0), rtol=1e-9, atol=1e-15 * row.max())


# -- drawn candidates


def test_candidates_are_drawn_from_all_places_and_in_order(rng):
    X, y = sample(rng, n=5, width=20, n_channels=2)
    model = ShapeletTransformer(
        max_candidates=20_000, lengths=[3, 9], normalized=0.5, random_state=0
    )
    model.fit(X, y)
    keys = [(not p[5], p[2], p[3], p[4], p[0], p[1]) for p in places_of(model)]
    assert keys == sorted(set(keys))
    # 3 points: dilations 1 to 8; 9 points: 1, 2
    extents = [2 * 2**k + 1 for k in range(4)], [9, 17]
    places = sum(20 - extent + 1 for part in extents for extent in part)
    assert 0.95 * (2 * 10 * places) < len(keys) <= 2 * 10 * places
    assert all(math.isnan(one.score) for one in model.shapelets_)
    for one in model.shapelets_:
        line = X[one.series, one.channel]
        assert_array_equal(one.values, line[one.start :: one.dilation][: one.length])
    again = clone(model).fit(X, y)
    assert places_of(again) == places_of(model)
    assert_array_equal(again.transform(X), model.transform(X))


@pytest.mark.parametrize(("normalized", "share"), [(0, 0), (1, 1), (0.8, 0.8)])
def test_the_share_of_normalised_candidates(rng, normalized, share):
    X, y = sample(rng, n=20, width=100)
    model = ShapeletTransformer(max_candidates=2_000, normalized=normalized, random_state=0)
    rows = [one.normalized for one in model.fit(X, y).shapelets_]
    assert abs(np.mean(rows) - share) < 0.04


def test_the_best_of_drawn_candidates_overlap_nowhere_and_classes_share(rng):
    X, y = sample(rng, n=12, width=40)
    model = ShapeletTransformer(9, max_candidates=2_000, lengths=[5], random_state=1).fit(X, y)
    scores = [one.score for one in model.shapelets_]
    assert scores == sorted(scores, reverse=True)
    assert [sum(one.label == k for one in model.shapelets_) for k in range(3)] == [3, 3, 3]
    spans = sorted(
        (one.series, one.start, one.start + 4 * one.dilation) for one in model.shapelets_
    )
    assert all(a[0] < b[0] or a[2] < b[1] for a, b in pairwise(spans))
    one_class = clone(model).set_params(max_class_share=1.0).fit(X, y)
    assert max(np.unique([one.label for one in one_class.shapelets_], return_counts=True)[1]) > 3


def test_thresholds_are_quantiles_of_another_series_of_the_class(rng):
    X, y = sample(rng, n=6, width=30)
    model = ShapeletTransformer(
        max_candidates=40, lengths=[5], percentiles=(20, 20), random_state=0
    ).fit(X, y)
    for one in model.shapelets_:
        others = [k for k in range(6) if y[k] == y[one.series] and k != one.series]
        quantiles = [
            sorted(
                dilated_distances(tuple(one.values), tuple(X[k, 0]), one.dilation, one.normalized)
            )
            for k in others
        ]
        ranks = [int(0.2 * len(row)) for row in quantiles]
        wanted = [row[rank] for row, rank in zip(quantiles, ranks, strict=True)]
        assert min(abs(one.threshold - w) for w in wanted) < 1e-12


def test_partners_are_others_of_the_class_with_equal_chances(rng):
    labels = np.array([0, 1, 0, 0, 2, 1])
    rows = rng.integers(0, 6, 6_000)
    partners = draw_partners(rows, labels, np.random.RandomState(0))
    assert_array_equal(labels[partners], labels[rows])
    assert ((partners != rows) | (rows == 4)).all()
    counts = [np.mean(partners[rows == 2] == k) for k in (0, 3)]
    assert_allclose(counts, 0.5, atol=0.06)


@pytest.mark.parametrize("bounds", [None, 0, 1, 3])
def test_a_choice_of_many_candidates_is_greedy(rng, monkeypatch, bounds):
    """Also where scores are measured when bounds of them call for it."""
    monkeypatch.setattr("skts.engines.families.shapelets.places._TOGETHER", 7)
    n = 400
    columns = np.ones(n, bool), rng.integers(2, 6, n), rng.integers(1, 3, n)
    places = Places(*columns, np.zeros(n, np.int64), rng.integers(0, 4, n), rng.integers(0, 60, n))
    scores = rng.integers(0, 9, n), rng.integers(0, 3, n).astype(float)
    labels = np.array([0, 1, 0, 1])
    above, measured = scores, []
    if bounds is not None:
        above = scores[0] + rng.integers(0, bounds + 1, n), scores[1] + rng.random(n)

    def measure(numbers):
        measured.extend(numbers.tolist())
        return scores[0][numbers], scores[1][numbers]

    room = Room(labels, (1, 80), 13)
    asked = None if bounds is None else measure
    found, first, second = choose(above, places.take, room, 25, asked)
    taken, wanted, left = set(), [], [13, 13]
    for k in sorted(range(n), key=lambda k: (-scores[0][k], -scores[1][k], k)):
        row, start = int(places.series[k]), int(places.start[k])
        points = {(row, start + t) for t in range(int(places.extent[k]))}
        if points & taken or left[labels[row]] == 0 or len(wanted) == 25:
            continue
        taken |= points
        left[labels[row]] -= 1
        wanted.append(k)
    assert found.tolist() == wanted
    assert_array_equal(first, scores[0][wanted])
    assert_array_equal(second, scores[1][wanted])
    assert len(measured) == len(set(measured)) < n
    if bounds == 3:
        with pytest.raises(RuntimeError, match="A bound of the shapelet search does not hold"):
            choose((scores[0] - 1, scores[1]), places.take, Room(labels, (1, 80), 13), 25, measure)


# -- features


def test_features_are_those_of_plain_loops_and_have_names(fast_engine, rng):
    X, y = sample(rng, n=6, width=25, n_channels=2)
    lists = [one[:, : 25 - k] for k, one in enumerate(X)]
    model = ShapeletTransformer(
        max_candidates=30, lengths=(1, 4, 0.4), random_state=0, engine=fast_engine
    ).fit(lists, y)
    short = [*lists, X[0, :, :3]]
    table = model.transform(short).reshape(7, 3, -1)
    for k, one in enumerate(model.shapelets_):
        for row, line in enumerate(short):
            plain = dilated_distances(
                *(tuple(one.values.tolist()), tuple(line[one.channel].tolist())),
                *(one.dilation, one.normalized),
            )
            distance, start, count = table[row, :, k]
            if not plain:
                assert (distance, start, count) == (np.inf, -1, 0)
                continue
            assert_allclose(distance, min(plain), rtol=1e-9, atol=1e-9)
            assert plain[int(start)] <= min(plain) + 1e-9
            assert sum(d <= one.threshold - 1e-9 for d in plain) <= count
            assert count <= sum(d <= one.threshold + 1e-9 for d in plain)
    names = model.get_feature_names_out().tolist()
    n = len(model.shapelets_)
    assert names[0] == "shapelet0_distance" and names[n] == "shapelet0_start"
    assert names[-1] == f"shapelet{n - 1}_count" and len(set(names)) == 3 * n
    frame = model.set_output(transform="pandas").transform(lists)
    assert isinstance(frame, pd.DataFrame) and list(frame.columns) == names


def test_some_features_are_those_columns_of_all(rng):
    X, y = sample(rng)
    whole = ShapeletTransformer(max_candidates=20, lengths=[5], random_state=0)
    table = whole.fit_transform(X, y).reshape(9, 3, -1)
    for names, columns in ((["count"], [2]), (["start", "distance"], [1, 0])):
        found = clone(whole).set_params(features=names).fit_transform(X, y)
        assert_array_equal(found.reshape(9, len(names), -1), table[:, columns])


def test_shapelets_apart_from_their_windows_are_listed_as_they_are_named(rng):
    """The best come by their scores, and are computed by what they share."""
    X, y = sample(rng, n=12, width=40)
    model = ShapeletTransformer(20, max_candidates=500, lengths=(4, 7), random_state=0).fit(X, y)
    assert model._chosen.order is not None
    table = model.transform(X).reshape(12, 3, -1)
    for k, one in enumerate(model.shapelets_):
        own = table[one.series, :, k]
        assert own[0] < 1e-7 and own[2] >= 0
        plain = dilated_distances(
            tuple(one.values), tuple(X[3, one.channel]), one.dilation, one.normalized
        )
        assert_allclose(table[3, 0, k], min(plain), rtol=1e-9, atol=1e-9)


def test_a_dilated_pattern_is_found(rng):
    """Peaks three points apart or five, which no plain window of five points can tell."""
    X, y = 0.1 * rng.normal(size=(40, 60)), np.arange(40) % 2
    for row, label in zip(X, y, strict=True):
        start = rng.integers(0, 60 - 21)
        row[start : start + 21 : 5 if label else 3][:5] += [3, -3, 3, -3, 3]
    model = ShapeletTransformer(
        2, max_candidates=None, lengths=[5], dilations=[1, 3, 5], normalized=1
    ).fit(X[:20], y[:20])
    assert {one.dilation for one in model.shapelets_} <= {3, 5}
    near = model.transform(X[20:])[:, 0] < 0.2
    label = model.shapelets_[0].label
    assert np.mean(near == (y[20:] == label)) > 0.9


def test_a_pipeline_classifies(rng):
    X, y = sample(rng, n=60, width=50)
    X[:, 0] += 3 * np.sin(np.arange(50) * (0.3 + 0.3 * y[:, np.newaxis]))
    model = make_pipeline(
        ShapeletTransformer(max_candidates=300, random_state=0),
        StandardScaler(),
        RidgeClassifierCV(np.logspace(-3, 3, 7)),
    ).fit(X[:30], y[:30])
    assert model.score(X[30:], y[30:]) > 0.9


def test_without_classes_the_gap_decides(rng):
    X, _ = sample(rng, n=10, width=30)
    drawn = ShapeletTransformer(max_candidates=50, random_state=0).fit(X)
    assert {one.label for one in drawn.shapelets_} == {None}
    best = ShapeletTransformer(5, max_candidates=300, random_state=0).fit(X)
    scores = [one.score for one in best.shapelets_]
    assert len(scores) == 5 and scores == sorted(scores, reverse=True)


@pytest.mark.parametrize("count", [None, 5])
@pytest.mark.parametrize("drawn", [300, None])
def test_separation_takes_no_notice_of_targets(rng, count, drawn):
    X, y = sample(rng, n=10, width=20)
    options = {"max_candidates": drawn, "lengths": [5], "random_state": 0}
    expected = ShapeletTransformer(count, **options).fit(X)
    for target in (y, y + rng.random(10), np.arange(10), None):
        found = ShapeletTransformer(count, criterion="separation", **options).fit(X, target)
        assert places_of(found) == places_of(expected)
        assert_array_equal(found.transform(X), expected.transform(X))
        assert {one.label for one in found.shapelets_} == {None}


def test_a_pipeline_of_a_regression(rng):
    X, heights = rng.normal(size=(60, 50)), 10 * rng.random(60)
    X[:, 20:31] += heights[:, np.newaxis] * np.hanning(11)
    transformer = ShapeletTransformer(max_candidates=300, criterion="separation", random_state=0)
    model = make_pipeline(transformer, StandardScaler(), RidgeCV(np.logspace(-3, 3, 7)))
    assert cross_val_score(model, X, heights, cv=3).min() > 0.8
    for criterion in ("information_gain", "f_statistic"):
        model.set_params(shapelettransformer__criterion=criterion)
        with pytest.raises(ValueError, match=r"continuous\..* take criterion='separation', which"):
            model.fit(X, heights)


@pytest.mark.parametrize("features", [[], ["sum"], ["start", "start"], [["start"]]])
def test_features_are_known_and_come_once(rng, features):
    X, y = sample(rng, "copies")
    message = re.escape(f"features={features!r}: give one or more of distance, start, count, each")
    with pytest.raises(ValueError, match=message):
        ShapeletTransformer(features=features).fit(X, y)


def test_all_candidates_in_any_portions(rng, monkeypatch):
    X, y = sample(rng, "copies")
    options = {"max_candidates": None, "lengths": [4, 6], "criterion": "f_statistic"}
    options |= {"random_state": 0, "normalized": 0.5}
    expected = ShapeletTransformer(6, **options).fit(X, y)
    monkeypatch.setattr(_transformer, "_JUDGED", 900)
    found = ShapeletTransformer(6, **options).fit(X, y)
    assert places_of(found) == places_of(expected)
    assert_array_equal(found.transform(X), expected.transform(X))


def test_automatic_lengths():
    X = np.random.default_rng(0).normal(size=(4, 30))

    def lengths(X, **options):
        model = ShapeletTransformer(max_candidates=400, random_state=0, **options).fit(X)
        return sorted({one.length for one in model.shapelets_})

    assert lengths(X) == [7, 9, 11]
    assert lengths(X[:, :10]) == [7, 9]
    assert lengths(X[:, :6]) == [3]
    assert lengths(X[:, :5]) == [5]
    assert lengths(X[:, :1].tolist() + [[1.0, 2.0]]) == [1]
    assert lengths(X, lengths=[0.5, 4, 0.5]) == [4, 15]
    assert lengths(X, lengths=[20], dilations=[1, 2]) == [20]
    every = ShapeletTransformer(max_candidates=None).fit(X, [0, 1, 0, 1])
    assert {one.length for one in every.shapelets_} <= {3, 4, 5, 7, 8, 9, 11, 12, 13, 15}


def test_scikit_learns_checks(fast_engine, monkeypatch):
    monkeypatch.setenv("SCIPY_ARRAY_API", "1")
    check_with_scikit_learn(
        ShapeletTransformer(max_candidates=50, random_state=0, engine=fast_engine), least=35
    )


def test_parameters_and_fitted_attributes_are_described(rng):
    check_described(ShapeletTransformer(max_candidates=9).fit(rng.normal(size=(8, 12)), [0, 1] * 4))


def test_transforming_writes_nothing(rng):
    X, y = sample(rng)
    model = ShapeletTransformer(max_candidates=30, lengths=[5], random_state=0).fit(X, y)
    state = pickle.dumps(model)
    model.transform(X), model.transform(X[:1]), model.shapelets_, model.get_feature_names_out()
    assert pickle.dumps(model) == state
    assert_array_equal(pickle.loads(state).transform(X), model.transform(X))


@pytest.mark.parametrize(
    "features", ["distance", ("distance", "distance"), ("distance", "nope"), ("place",), ()]
)
def test_features_set_after_fit_are_checked(rng, features):
    X, y = rng.normal(size=(8, 20)), np.arange(8) % 2
    model = ShapeletTransformer(4, random_state=0).fit(X, y).set_params(features=features)
    for method in (lambda: model.transform(X), model.get_feature_names_out):
        with pytest.raises(ValueError, match="features"):
            method()
