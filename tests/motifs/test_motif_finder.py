"""MotifFinder: pools of series, growing series, scikit-learn's contract."""

from __future__ import annotations

import copy
import itertools
import pickle

import numpy as np
import pandas as pd
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.base import clone
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

import skts.motifs._growth as growth
import skts.motifs._search as search
from skts import MotifFinder, config_context
from skts.datasets import load_ecg
from skts.engines import ConcatenatedSeries, Join, find_engine
from skts.exceptions import EngineNotAvailableError
from skts.motifs import discords, matrix_profile, motifs
from skts.motifs._windows import period_of
from tests import reference_motifs as reference
from tests.contract import check_described, check_with_scikit_learn
from tests.engines.profile.test_join import KINDS, make_line
from tests.motifs.test_functions import check_discords, check_motifs


def same_motifs(one, other):
    assert len(one) == len(other)
    for a, b in zip(one, other, strict=True):
        for x, y in zip(a, b, strict=True):
            assert_array_equal(x, y)


def same_fit(one, other):
    """Everything that was found is the same, bit by bit."""
    same_motifs(one.motifs_, other.motifs_)
    same_motifs(one.discords_, other.discords_)
    for name in ("profile_", "profile_index_", "profile_series_"):
        for x, y in zip(getattr(one, name), getattr(other, name), strict=True):
            assert_array_equal(x, y)
    for name in ("left_profile_", "right_profile_"):
        if hasattr(one, name):
            a, b = getattr(one, name), getattr(other, name)
            for x, y in zip(a, b, strict=True):
                for u, v in zip(x, y, strict=True):
                    assert_array_equal(u, v)


def check_profile(model, windows, row_lengths):
    """Against the oracle's list of neighbours."""
    expected = iter(windows.profile())
    for row, n in enumerate(row_lengths):
        for start in range(model.profile_.shape[1]):
            if start > n - windows.length:
                assert model.profile_index_[row, start] == -1
                assert np.isinf(model.profile_[row, start])
                continue
            distance, j = next(expected)
            other = windows.places[j] if j >= 0 else (-1, -1)
            at = model.profile_series_[row, start], model.profile_index_[row, start]
            assert at == other
            assert_allclose(model.profile_[row, start], distance, rtol=1e-9, atol=1e-12)
    assert next(expected, None) is None


def test_one_series_is_that_of_the_functions(rng, fast_engine):
    x = rng.normal(size=300).cumsum()
    model = MotifFinder(20, n_discords=2, left_right=True, engine=fast_engine)
    assert model.fit(x.reshape(1, -1)) is model
    profile = matrix_profile(x, window=20, sides=True)
    assert_array_equal(model.profile_, profile.distances[np.newaxis])
    assert_array_equal(model.profile_index_, profile.indices[np.newaxis])
    assert (model.profile_series_ == 0).all()
    for side in ("left", "right"):
        found, expected = getattr(model, f"{side}_profile_"), getattr(profile, side)
        assert_array_equal(found.distances[0], expected.distances)
        assert_array_equal(found.indices[0], expected.indices)
    same_motifs(model.motifs_, motifs(x, window=20))
    same_motifs(model.discords_, discords(x, window=20, n_discords=2))
    assert (model.engine_, model.window_, model.n_channels_) == (fast_engine, 20, 1)
    assert model.n_features_in_ == 300


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("exclusion", [None, 0, 25])
def test_pool_of_unequal_series(rng, fast_engine, kind, exclusion):
    X = [
        make_line(kind, 70, rng),
        make_line("walk", 12, rng),
        rng.normal(size=7),
        rng.normal(size=40),
    ]
    X[3][5:20] = X[0][30:45] * 2 + 1  # a pair across series
    model = MotifFinder(
        10, n_motifs=4, max_matches=None, n_discords=3, exclusion=exclusion, engine=fast_engine
    ).fit(X)
    windows = reference.Windows(X, 10, exclusion)
    check_motifs(model.motifs_, reference.find_motifs([windows], 4, 2.0))
    check_discords(model.discords_, reference.find_discords([windows], 3))
    check_profile(model, windows, [len(x) for x in X])
    again = clone(model).set_params(algorithm="mk", n_discords=0, n_references=3).fit(X)
    same_motifs(again.motifs_, model.motifs_)
    assert not hasattr(again, "profile_")
    assert ((again.pruning_rate_ >= 0) & (again.pruning_rate_ <= 1)).all()


@pytest.mark.parametrize("algorithm", ["profile", "mk"])
def test_several_lengths_compete(rng, fast_engine, algorithm):
    X = [rng.normal(size=90).cumsum(), rng.normal(size=60)]
    X[1][10:35] = X[0][40:65] + 0.01 * rng.normal(size=25)
    lengths = [8, 15, 25, 0.1]
    model = MotifFinder(
        lengths,
        n_motifs=5,
        max_matches=None,
        separation=0.25,
        algorithm=algorithm,
        engine=fast_engine,
    ).fit(X)
    assert_array_equal(model.window_, [8, 15, 25, 6])
    every = [reference.Windows(X, length, None, -(-length // 4)) for length in model.window_]
    check_motifs(model.motifs_, reference.find_motifs(every, 5, 2.0))
    assert len({motif.window for motif in model.motifs_}) > 1
    assert model.transform(X).shape == (2, len(model.motifs_))
    if algorithm == "mk":
        return
    model.set_params(n_discords=4).fit(X)
    check_discords(model.discords_, reference.find_discords(every, 4))
    assert len(model.profile_) == len(model.profile_index_) == 4
    single = MotifFinder(15, engine=fast_engine).fit(X)
    # lines have other gaps, distances the same bits
    assert_array_equal(model.profile_[1], single.profile_)
    assert_array_equal(model.profile_index_[1], single.profile_index_)


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("algorithm", ["profile", "mk"])
def test_growing_is_the_same_as_fitting_anew(rng, fast_engine, kind, algorithm):
    x = make_line(kind, 200, rng)
    options = {"algorithm": algorithm, "engine": fast_engine}
    if algorithm == "profile":
        options |= {"n_discords": 2, "left_right": True}
    model = MotifFinder(12, **options).fit(x[np.newaxis, :90])
    for start, stop in ((90, 91), (91, 91), (91, 120), (120, 200)):
        assert model.update(x[start:stop]) is model
        expected = MotifFinder(12, **options).fit(x[np.newaxis, :stop])
        if algorithm == "mk":
            same_motifs(model.motifs_, expected.motifs_)
        else:
            same_fit(model, expected)


@pytest.mark.parametrize("row", [0, 1, -1])
def test_any_series_of_a_pool_may_grow(rng, fast_engine, row):
    X = [rng.normal(size=60).cumsum() + 50, rng.normal(size=8), rng.normal(size=50)]
    more = 3 * rng.normal(size=30)
    options = {"n_discords": 3, "left_right": True, "engine": fast_engine}
    for window in (10, [6, 10]):
        model = MotifFinder(window, **options).fit(X).update(more, row)
        grown = list(X)
        grown[row] = np.concatenate([X[row], more])
        expected = MotifFinder(window, **options).fit(grown)
        same_motifs(model.motifs_, expected.motifs_)
        same_motifs(model.discords_, expected.discords_)
        for x, y in zip(model.profile_, expected.profile_, strict=True):
            assert_array_equal(x, y)


@pytest.mark.parametrize("normalize", [True, False])
@pytest.mark.parametrize("seed", range(4))
def test_growing_in_any_cuts_is_fitting(fast_engine, normalize, seed):
    """Bit by bit, also where the longest series grows beyond an exclusion, and beside loud ones."""
    rng = np.random.default_rng(seed)
    lengths = rng.integers(5, 60, 3)
    series = [make_line(rng.choice(KINDS), int(n) + 60, rng)[: int(n)] for n in lengths]
    last = make_line(rng.choice(KINDS), 170, rng)
    options = {
        "n_discords": 2,
        "left_right": True,
        "exclusion": int(rng.choice([0, 3, 100])),
        "normalize": normalize,
        "engine": fast_engine,
    }
    expected = MotifFinder([9, 4], **options).fit([*series, last])
    first = int(rng.integers(2, 30))
    model = MotifFinder([9, 4], **options).fit([*series, last[:first]])
    cuts = sorted({first, *map(int, rng.integers(first, 170, 4)), 170})
    for start, stop in itertools.pairwise(cuts):
        model.update(last[start:stop])
    for one, other in zip(model.motifs_ + model.discords_, expected.motifs_ + expected.discords_,
                          strict=True):  # fmt: skip
        same_motifs([one], [other])
    for name in ("profile_", "profile_index_", "profile_series_"):
        for one, other in zip(getattr(model, name), getattr(expected, name), strict=True):
            assert_array_equal(one, other)
    for name in ("left_profile_", "right_profile_"):
        for one, other in zip(getattr(model, name), getattr(expected, name), strict=True):
            for x, y in zip(one, other, strict=True):
                assert_array_equal(x, y)


def test_windows_that_are_apart_are_those_of_a_sort(rng):
    """However many are equal: whichever is nearer, or as near and earlier, comes first."""
    for _ in range(2000):
        n, exclusion = rng.integers(1, 40), int(rng.integers(0, 8))
        distances = rng.integers(0, rng.integers(2, 12), n).astype(float)
        near = np.flatnonzero((distances <= rng.choice([2, 5, 9])) & (rng.random(n) < 0.9))
        taken = []
        for place in near[np.argsort(distances[near], kind="stable")]:
            if all(abs(place - other) > exclusion for other in taken):
                taken.append(place)
        assert_array_equal(search._nearest_apart(distances, near, exclusion), taken)


@pytest.mark.parametrize("normalize", [True, False])
@pytest.mark.parametrize("size", [1e9, 1e12, 1e100])
def test_a_series_is_told_the_same_alone_and_beside_others(rng, fast_engine, size, normalize):
    model = MotifFinder(12, n_motifs=3, normalize=normalize, engine=fast_engine)
    model.fit(make_line("repeats", 200, rng).reshape(1, -1))
    # all points have one sign, so that one offset could be taken off all of them
    one, loud = 9 + rng.normal(size=60), size + rng.normal(size=60)
    assert one.min() > 0
    assert_array_equal(model.transform([one, loud])[:1], model.transform([one]))
    assert_array_equal(model.predict([one, loud])[:1], model.predict([one]))


@pytest.mark.parametrize("exclusion", [400, 10**9, 10**30])
@pytest.mark.parametrize("algorithm", ["profile", "mk"])
def test_an_exclusion_beyond_all_series_is_no_line_of_gaps(rng, fast_engine, exclusion, algorithm):
    X = rng.normal(size=(6, 50))
    options = {"algorithm": algorithm, "engine": fast_engine, "n_motifs": 2, "max_matches": None}
    model = MotifFinder(8, exclusion=exclusion, **options).fit(X)
    assert model._pools[0].points.size <= 6 * 2 * 50
    expected = MotifFinder(8, exclusion=49, **options).fit(X)
    same_motifs(model.motifs_, expected.motifs_)
    assert all(len(set(motif.series)) == len(motif.series) for motif in model.motifs_)


@pytest.mark.parametrize("power", [-400, -77, 400])
@pytest.mark.parametrize("normalize", [True, False])
def test_powers_of_two_change_no_motif(rng, fast_engine, power, normalize):
    X, scale = make_line("repeats", 150, rng).reshape(1, -1), 2.0**power
    options = {"n_discords": 2, "normalize": normalize, "engine": fast_engine}
    expected, model = MotifFinder(10, **options).fit(X), MotifFinder(10, **options).fit(X * scale)
    factor = 1.0 if normalize else scale
    for one, other in zip(model.motifs_, expected.motifs_, strict=True):
        assert_array_equal(one.positions, other.positions)
        assert_array_equal(one.distances, other.distances * factor)
        assert one.radius == other.radius * factor
    for one, other in zip(model.discords_, expected.discords_, strict=True):
        assert one.position == other.position
        assert one.distance == other.distance * factor
    parts = [X[0, :40], X[0, 60:100] + 0.1 * rng.normal(size=40)]
    assert_array_equal(model.predict([part * scale for part in parts]), expected.predict(parts))
    auto = MotifFinder(engine=fast_engine)
    assert auto.fit(X).window_ == auto.fit(X * scale).window_


def test_integers_beyond_int64_mean_all_or_are_said(rng):
    X, huge = rng.normal(size=(2, 60)), 10**30
    options = {"n_motifs": huge, "max_matches": huge, "n_discords": huge, "exclusion": huge}
    assert len(MotifFinder(9, **options).fit(X).motifs_) == 1
    MotifFinder(9, algorithm="mk", n_references=huge).fit(X)
    with pytest.raises(ValueError, match="longer than every series"):
        MotifFinder(huge).fit(X)
    assert (matrix_profile(X[0], window=5, exclusion=huge).indices == -1).all()
    with pytest.raises(MemoryError, match="result of shape"):
        matrix_profile(X[0], window=5, k=huge)


def test_growing_sets_back_nothing_that_options_changed(rng):
    x = rng.normal(size=(1, 150))
    model = MotifFinder(10).fit(x[:, :100])
    model.set_params(left_right=True, n_discords=1).update(x[0, 100:])
    same_fit(model, MotifFinder(10, left_right=True, n_discords=1).fit(x))
    model = MotifFinder(10).fit(x[:, :100]).set_params(algorithm="mk").update(x[0, 100:])
    assert not hasattr(model, "profile_")
    model.set_params(algorithm="profile").update(x[0, :5])
    assert model.profile_.shape == (1, 146)


def test_transform_is_the_distance_to_the_nearest_window(rng, fast_engine):
    X = rng.normal(size=(6, 80))
    X[4, 30:50] = X[1, 10:30] * 5
    model = MotifFinder(20, n_motifs=2, engine=fast_engine).fit(X)
    Z = [rng.normal(size=n) for n in (20, 33, 61)] + [X[4], np.full(25, 3.0)]
    Z[2][7] = np.nan
    found = model.transform(Z)
    for column, motif in enumerate(model.motifs_):
        for row, z in enumerate(Z):
            expected = np.nanmin(matrix_profile(motif.values[0], z, window=20).distances)
            assert_allclose(found[row, column], expected, rtol=1e-9, atol=1e-9)
    assert found[3, 0] < 1e-7
    assert_allclose(found[4], np.sqrt(20))
    assert np.isinf(model.transform([np.full(30, np.nan)])).all()
    with pytest.raises(ValueError, match="Series 1 of X has 19 time points"):
        model.transform([Z[0], Z[0][:19]])


def test_predict_names_the_motif_within_its_radius(rng, fast_engine):
    t = np.linspace(0, 6, 30)
    one, other = np.sin(t), np.sign(np.sin(2 * t))
    x = 0.3 * rng.normal(size=500)
    for start in (50, 200, 350):
        x[start : start + 30] = 5 * one + 0.01 * rng.normal(size=30)
        x[start + 70 : start + 100] = 5 * other + 0.02 * rng.normal(size=30)
    model = MotifFinder(30, n_motifs=2, engine=fast_engine).fit(x[np.newaxis])
    Z = 0.3 * rng.normal(size=(3, 60))
    Z[0, 5:35], Z[1, 20:50] = other, one * 9 - 4
    kinds = [abs(np.corrcoef(motif.values[0], one)[0, 1]) > 0.9 for motif in model.motifs_]
    assert kinds == [True, False]
    assert model.predict(list(Z)).tolist() == [1, 0, -1]
    assert model.predict(x[np.newaxis]).tolist() == [0]
    distances = model.transform(list(Z))
    inside = distances <= [motif.radius for motif in model.motifs_]
    assert_array_equal(model.predict(list(Z)) >= 0, inside.any(axis=1))


def test_predict_where_numpy_raises_underflow(rng, fast_engine):
    X = np.where(rng.random((2, 30)) < 0.5, 1.0, 5e-324)
    model = MotifFinder(8, normalize=False, engine=fast_engine).fit(X)
    expected = model.predict(X)
    with np.errstate(all="raise"):
        assert_array_equal(model.predict(X), expected)


def test_window_rules(rng):
    t = np.arange(400)
    x = np.sin(2 * np.pi * t / 25) + 0.1 * rng.normal(size=400)
    assert MotifFinder().fit(x[np.newaxis]).window_ == 25
    assert MotifFinder().fit([x, x[:90], np.full(80, np.nan)]).window_ == 25
    assert MotifFinder(0.05).fit(x[np.newaxis]).window_ == 20
    assert MotifFinder(0.051).fit([x, x]).window_ == 21
    assert MotifFinder(1.0, exclusion=0).fit([x, x]).window_ == 400
    ramp = np.arange(100.0)[np.newaxis]
    assert MotifFinder().fit(ramp).window_ == 10  # no period: a tenth
    assert MotifFinder().fit(rng.normal(size=(1, 2000))).window_ == 200
    assert MotifFinder().fit(np.ones((2, 5))).window_ == 3
    assert MotifFinder().fit(list(np.ones((3, 1)))).window_ == 1


@pytest.mark.parametrize("drift", ["line", "wave", "walk", "bursts", "gap"])
def test_drift_does_not_hide_the_period(rng, drift):
    t = np.arange(3000)
    x = np.sin(2 * np.pi * t / 60) + 0.3 * rng.normal(size=t.size)
    if drift == "line":
        x += 0.02 * t
    elif drift == "wave":
        x += 20 * np.sin(2 * np.pi * t / 900)
    elif drift == "walk":
        x += np.cumsum(rng.normal(scale=0.1, size=t.size))
    elif drift == "bursts":
        x[[700, 1500, 2300]] += 20  # a lag at which what is large, but rare, comes again
    else:
        x = np.where((t > 1000) & (t < 1150), np.nan, x + 1000)
    assert 58 <= MotifFinder(n_motifs=1).fit(x[np.newaxis]).window_ <= 62


def test_window_of_a_drifting_ecg_is_a_beat():
    points = np.ravel(load_ecg().data)  # 360 a second
    for seconds in (10, 30, 120, 300):
        piece = points[: 360 * seconds].astype(float)
        assert 180 <= period_of([piece], piece.size) <= 220


@pytest.mark.parametrize(
    ("options", "X", "message"),
    [
        ({"window": 11}, np.ones((1, 10)), "A window of 11 is longer than the series"),
        ({"window": [4, 0]}, np.ones((1, 10)), "window=0: a length is a number of points"),
        ({"window": [4, 1.5]}, np.ones((1, 10)), "window=1.5: a length is"),
        ({"window": []}, np.ones((1, 10)), "window is empty"),
        ({"window": 0.0}, np.ones((1, 10)), "The 'window' parameter"),
        ({"window": "period"}, np.ones((1, 10)), "The 'window' parameter"),
        ({"window": 9}, np.ones((1, 10)), "There is no motif: no two windows of 9 points"),
        ({"window": 3}, np.full((2, 10), np.nan), "There is no motif"),
        ({"algorithm": "mk", "n_discords": 1}, np.ones((1, 10)), "algorithm='mk' computes no"),
        ({"algorithm": "mk", "left_right": True}, np.ones((1, 10)), "algorithm='mk' computes no"),
        ({"algorithm": "mk"}, np.ones((2, 3, 10)), "algorithm='mk' is for series of one channel"),
        ({}, np.ones(10), "Reshape your data"),
        ({"engine": "none"}, np.ones((1, 10)), "engine='none' is not known"),
    ],
)
def test_what_is_wrong_is_said(options, X, message):
    with pytest.raises(ValueError, match=message):
        MotifFinder(**options).fit(X)


def test_what_is_wrong_with_new_points_is_said(rng):
    model = MotifFinder(5).fit(rng.normal(size=(2, 30)))
    with pytest.raises(ValueError, match=r"points has shape \(1, 3\); .*: write points\.ravel\(\)"):
        model.update(np.ones((1, 3)))
    with pytest.raises(ValueError, match="series=2: there are 2 series"):
        model.update(np.ones(3), 2)
    with pytest.raises(ValueError, match="above"):
        model.update([1e300])
    with pytest.raises(ValueError, match="X has 29 features"):
        model.transform(rng.normal(size=(2, 29)))


@pytest.mark.parametrize("left_right", [False, True])
@pytest.mark.parametrize("seed", range(3))
def test_a_bounded_stream_is_fitted_anew(fast_engine, monkeypatch, left_right, seed):
    """Bit by bit what `fit` finds in the points that are left, whichever way it is searched."""
    rng = np.random.default_rng(seed)
    first = make_line(rng.choice(KINDS), 40, rng)
    last = make_line(rng.choice(KINDS), 200, rng)
    options = {"n_discords": 2, "left_right": left_right, "engine": fast_engine}
    model = MotifFinder(9, **options).fit([first, last[:50]])
    monkeypatch.setattr(growth, "MANY", 1.0)
    for known, rows, start, stop, kept in (
        (1, 1e-9, 50, 51, 50), (1, 1e-9, 51, 90, 40), (2, 1.0, 90, 100, 45),
        (2, 1e-9, 100, 101, None), (2, 1e-9, 101, 130, 46), (3, 1e-9, 130, 132, 46),
        (3, 1e-9, 132, 141, 46), (3, 1e-9, 141, 180, 47), (10, 1e-9, 180, 180, 30),
        (10, 1e-9, 180, 185, 30), (10, 1e-9, 185, 190, None), (10, 1e-9, 190, 200, 20),
    ):  # fmt: skip
        monkeypatch.setattr(growth, "KEPT", known)
        monkeypatch.setattr(growth, "JOINED", rows)
        line = np.concatenate([model._series()[1][0], last[start:stop]])
        expected = MotifFinder(9, **options).fit([first, line if kept is None else line[-kept:]])
        assert model.update(last[start:stop], max_points=kept) is model
        same_fit(model, expected)


@pytest.mark.parametrize("known", [1, 3])
def test_windows_that_lose_all_neighbours_are_searched_again(rng, monkeypatch, known):
    searched = []
    search = growth._search_again
    monkeypatch.setattr(growth, "JOINED", 1e-9)
    monkeypatch.setattr(growth, "KEPT", known)
    monkeypatch.setattr(
        growth, "_search_again", lambda *args: [searched.append(args[3].size), search(*args)]
    )
    x = rng.normal(size=450)
    model = MotifFinder(10).fit(x[np.newaxis, :299]).update(x[299:300], max_points=299)
    del searched[:]
    for end in range(330, 451, 30):
        lost = (model.profile_index_[0, 30:] < 30).sum()
        model.update(x[end - 30 : end], max_points=299)
        expected = MotifFinder(10).fit(x[np.newaxis, end - 299 : end])
        assert_array_equal(model.profile_, expected.profile_)
        assert searched[-1] <= (lost if known == 1 else lost / 2)
    assert sum(searched) > 0


def test_new_windows_without_near_neighbours_are_joined_once_more(rng, monkeypatch):
    """They look within what holds the neighbours of windows before them: here for too few."""
    again = []
    join_again = growth._join_again
    monkeypatch.setattr(growth, "MANY", 1.0)
    monkeypatch.setattr(
        growth,
        "_join_again",
        lambda *args: [again.append(args[2].scarce(args[3])), join_again(*args)][1],
    )
    x = np.sin(np.arange(600.0)) + 0.01 * rng.normal(size=600)
    x[400:] = rng.normal(size=200)
    x[450:453] = np.nan
    model = MotifFinder(10, engine="numba").fit(x[np.newaxis, :299])
    for start, end in itertools.pairwise((299, 300, *range(330, 600, 37))):
        model.update(x[start:end], max_points=299)
        same_fit(model, MotifFinder(10, engine="numba").fit(x[np.newaxis, end - 299 : end]))
    sizes = [some.size for some in again]
    # so many, of 10 points each, that one more join takes less time; and none
    assert max(sizes) * 10 > 37 and min(sizes) == 0


def test_copies_and_what_failed_do_not_share_what_is_kept(rng, monkeypatch):
    """Neighbours that are kept change in place: another update from the same time begins anew."""
    monkeypatch.setattr(growth, "MANY", 1.0)
    x = rng.normal(size=500)
    model = MotifFinder(8, engine="numba").fit(x[np.newaxis, :200])
    model.update(x[200:201], max_points=200).update(x[201:220], max_points=200)
    twins = model, copy.copy(model), copy.deepcopy(model), pickle.loads(pickle.dumps(model))
    for step, twin in enumerate(twins):
        points = np.concatenate([x[20:220], x[300 + step : 340]])[-200:]
        expected = MotifFinder(8, engine="numba").fit(points[np.newaxis])
        same_fit(twin.update(x[300 + step : 340], max_points=200), expected)
    with monkeypatch.context() as patch, pytest.raises(KeyboardInterrupt):
        patch.setattr(type(model), "_find", lambda *args: (_ for _ in ()).throw(KeyboardInterrupt))
        model.update(x[340:360], max_points=200)
    points = np.concatenate([x[20:220], x[300:340], x[360:390]])[-200:]
    same_fit(
        model.update(x[360:390], max_points=200),
        MotifFinder(8, engine="numba").fit(points[np.newaxis]),
    )


def test_windows_with_the_same_neighbours_are_joined_anew(rng, monkeypatch):
    """Constant windows have the oldest of them as neighbours, which leave one after the other."""
    joins = []
    join = growth.WindowSet.join
    monkeypatch.setattr(
        growth.WindowSet, "join", lambda *args, **kw: [joins.append(kw), join(*args, **kw)][1]
    )
    monkeypatch.setattr(growth, "MANY", 1.0)
    x = rng.normal(size=420)
    x[np.arange(420) % 30 < 25] = 1.0
    model = MotifFinder(8, engine="numba").fit(x[np.newaxis, :300])
    for end in range(330, 421, 30):
        model.update(x[end - 30 : end], max_points=300)
        expected = MotifFinder(8, engine="numba").fit(x[np.newaxis, end - 300 : end])
        same_fit(model, expected)
    assert all(one.get("n_neighbors", 1) == 1 for one in joins)


def test_an_update_that_fails_or_stops_changes_nothing(rng, monkeypatch):
    x = rng.normal(size=(1, 80))
    model = MotifFinder(10, n_discords=1, left_right=True).fit(x)
    before = dict(vars(model))

    def stays(error, *arguments, **options):
        with pytest.raises(error):
            model.update(*arguments, **options)
        after = vars(model)
        assert after.keys() == before.keys()
        assert all(after[name] is before[name] for name in before)

    stays(ValueError, np.ones(3), max_points=9)
    stays(ValueError, np.ones(3), max_points=12.0)
    stays(ValueError, np.full(60, np.nan), max_points=60)
    engine = find_engine("numba")
    compute = type(engine).compute
    for stop in range(100):
        count = itertools.count()

        def counted(self, *arguments, stop=stop, count=count):
            if next(count) == stop:
                raise KeyboardInterrupt
            return compute(self, *arguments)

        with monkeypatch.context() as patch:
            patch.setattr(type(engine), "compute", counted)
            patch.setattr(growth, "JOINED", 1e-9)
            patch.setitem(vars(model), "engine", "numba")
            before = dict(vars(model))
            try:
                model.update(rng.normal(size=5), max_points=80)
            except KeyboardInterrupt:
                assert all(vars(model)[name] is before[name] for name in before)
            else:
                break
    assert stop > 3


def test_a_named_engine_that_is_missing_raises_first():
    if find_engine("cupy").available() is None:
        pytest.skip("cupy runs here")
    with pytest.raises(EngineNotAvailableError):
        MotifFinder(engine="cupy").fit("nonsense")


def test_missing_values_take_part_in_nothing(rng, fast_engine):
    x = rng.normal(size=200)
    x[150:170] = x[30:50]
    x[80], x[100:103] = np.nan, np.inf
    model = MotifFinder(20, n_motifs=1, engine=fast_engine).fit(x[np.newaxis])
    assert model.motifs_[0].positions.tolist()[:2] == [30, 150]
    holes = np.r_[61:81, 81:103]
    assert np.isinf(model.profile_[0, holes]).all() and (model.profile_index_[0, holes] == -1).all()
    assert not np.isin(model.profile_index_[0], holes).any()


def test_memory_maps_are_used_where_they_are(rng, tmp_path, fast_engine):
    x = rng.normal(size=(1, 400))
    np.save(tmp_path / "x.npy", x)
    mapped = np.load(tmp_path / "x.npy", mmap_mode="r")
    model = MotifFinder(20, n_discords=1, engine=fast_engine).fit(mapped)
    assert np.shares_memory(model._pools[0].points, mapped)
    expected = MotifFinder(20, n_discords=1, engine=fast_engine).fit(x)
    assert not np.shares_memory(expected._pools[0].points, x)
    same_fit(model, expected)
    same_fit(MotifFinder(20, n_discords=1).fit([mapped[0]]), expected)
    assert_array_equal(model.transform(mapped), expected.transform(x))


def test_what_fit_was_given_may_change(rng):
    x = rng.normal(size=(1, 100))
    model = MotifFinder(10).fit(x)
    expected = MotifFinder(10).fit(np.hstack([x, x[:, :9]]))
    tail = x[0, :9].copy()
    x[:] = 0
    same_fit(model.update(tail), expected)


def test_threads_budget_and_precision_do_not_matter(rng, fast_engine):
    x = rng.normal(size=(1, 3000)).cumsum(axis=1)
    expected = MotifFinder(40, n_discords=2, engine=fast_engine).fit(x)
    same_fit(MotifFinder(40, n_discords=2, engine=fast_engine, n_jobs=1).fit(x), expected)
    join = Join(expected._pools[0], None, 40, 10)
    least = sum(find_engine(fast_engine).footprint(join, *join.cell))
    with config_context(memory=int(1.05 * least)):
        same_fit(MotifFinder(40, n_discords=2, engine=fast_engine).fit(x), expected)
    exact = MotifFinder(40, n_discords=2, engine=fast_engine, precision="float64").fit(x)
    same_fit(exact, expected)


def test_pipelines_names_and_pickles(rng):
    X = rng.normal(size=(5, 60))
    model = MotifFinder(12, n_motifs=2).fit(X)
    assert model.get_feature_names_out().tolist() == ["motiffinder0", "motiffinder1"]
    frame = clone(model).set_output(transform="pandas").fit(X).transform(X)
    assert isinstance(frame, pd.DataFrame)
    assert frame.columns.tolist() == ["motiffinder0", "motiffinder1"]
    assert_array_equal(frame.to_numpy(), model.transform(X))
    copy = pickle.loads(pickle.dumps(model))
    assert_array_equal(copy.transform(X), model.transform(X))
    same_fit(copy.update(X[0]), model.update(X[0]))
    pipeline = make_pipeline(MotifFinder(12, n_motifs=2), StandardScaler())
    assert pipeline.fit_transform(X).shape == (5, 2)


def test_parameters_and_fitted_attributes_are_described(rng):
    check_described(MotifFinder(left_right=True).fit(rng.normal(size=(1, 60))))
    check_described(MotifFinder(8, algorithm="mk").fit(rng.normal(size=(1, 60))))


@pytest.mark.parametrize(
    "options",
    [{}, {"window": 2}, {"window": [1, 0.5]}, {"algorithm": "mk", "n_references": 2}],
)
def test_estimator_checks(fast_engine, options):
    check_with_scikit_learn(MotifFinder(engine=fast_engine, **options))


@pytest.mark.parametrize("scale", [1.0, 1e6])
def test_without_the_certificate_the_pair_is_still_a_pair(rng, fast_engine, scale):
    x = scale * rng.normal(size=400).cumsum()
    x[300:330] = x[50:80]
    model = MotifFinder(30, radius_factor=1.0, precision="float32", engine=fast_engine).fit(
        x[np.newaxis]
    )
    assert model.motifs_[0].positions.tolist() == [50, 300]
    assert all(len(motif.positions) >= 2 for motif in model.motifs_)
    exact = MotifFinder(30, radius_factor=1.0, engine=fast_engine).fit(x[np.newaxis])
    assert_allclose(model.profile_, exact.profile_, atol=0.05)


def test_exclusions_hold_between_discords_of_several_lengths(fast_engine):
    # found by tests.fuzz: the exclusion of longer windows had been cut to where those can start
    X = np.array([[-0.015, -0.663, -0.02, np.nan], [3.5e-9, 3.1e-9, 1.4e-8, 1.7e-8]])
    finder = MotifFinder([2, 3, 4], exclusion=2, normalize=False, n_discords=5, engine=fast_engine)
    starts = {}
    for discord in finder.fit(X).discords_:
        others = starts.setdefault(int(discord.series), [])
        assert all(abs(int(discord.position) - other) > 2 for other in others)
        others.append(int(discord.position))
    assert starts


@pytest.mark.parametrize(("n", "reach"), [(40, 0), (3_000, 3), (3_000, 10**9)])
def test_places_are_taken_apart_best_first(rng, n, reach):
    values = rng.integers(0, 50, n).astype(float)  # most are equal
    order = search._ascending(values)
    assert_array_equal(order, np.argsort(values, kind="stable"))
    taken = []
    for place in order.tolist():
        if all(abs(place - other) > reach for other in taken):
            taken.append(place)
    assert search._apart(order, reach, n).tolist() == taken


@pytest.mark.parametrize("n_places", [3, 600])
def test_masked_windows_are_those_around_places(rng, n_places):
    windows = search.WindowSet(ConcatenatedSeries.of([np.zeros(5_000)]), 10, 5, 4)
    pairs, places = search.PairSearch(windows, None), rng.integers(0, windows.number, n_places)
    pairs.mask(places)
    near = np.abs(np.arange(windows.number)[:, np.newaxis] - places) <= 4
    assert_array_equal(pairs.masked, near.any(axis=1))


def test_updates_of_a_series_that_is_shorter_than_a_window(rng):
    x, y = rng.standard_normal(40), rng.standard_normal(9)
    model = MotifFinder(6).fit([x, y[:2]])
    for start, stop in ((2, 3), (3, 5), (5, 9)):
        model.update(y[start:stop], series=-1)
        whole = MotifFinder(6).fit([x, y[:stop]])
        for mine, expected in zip(model.profile_, whole.profile_, strict=True):
            assert_array_equal(mine, expected)


@pytest.mark.parametrize(
    "change", [{"normalize": False}, {"exclusion": 0}, {"exclusion": 15}, {"precision": "float32"}]
)
@pytest.mark.parametrize("max_points", [None, 150])
def test_an_update_with_other_parameters_is_a_new_fit(rng, change, max_points):
    x = rng.normal(size=300).cumsum()
    model = MotifFinder(20).fit(x[np.newaxis, :200]).update(x[200:240], max_points=max_points)
    model.set_params(**change).update(x[240:], max_points=max_points)
    again = MotifFinder(20, **change).fit(x[np.newaxis, -max_points if max_points else 0 :])
    assert_array_equal(model.profile_, again.profile_)
    assert_array_equal(model.profile_index_, again.profile_index_)
    found, expected = ([one.positions.tolist() for one in each.motifs_] for each in (model, again))
    assert found == expected
