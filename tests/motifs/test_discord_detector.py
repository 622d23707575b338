"""DiscordDetector: scores against plain loops, scikit-learn's convention of outliers."""

from __future__ import annotations

import itertools
import math

import numpy as np
import pytest
from numpy.testing import assert_array_equal
from sklearn.base import clone

from skts import DiscordDetector, config_context
from skts.datasets import load_ecg
from skts.engines.families.profile.concatenated import ConcatenatedSeries
from skts.motifs import discords, matrix_profile
from tests.contract import check_described, check_with_scikit_learn
from tests.engines.profile.test_join import make_line
from tests.reference_channels import mean_distances
from tests.reference_join import window_distances
from tests.reference_spaced import greedy


def window_scores(x, others, model, own=None):
    """Scores of the windows of a series from the definition; `own` is its place among the others.

    With ``side="left"`` the others of a new series end with itself. Series of several channels are
    2-D.
    """
    length, n_windows = model.window_, np.shape(x)[-1] - model.window_ + 1
    normalize = model.normalize and length > 2
    number, include = model.dimensions or len(x), model.include or ()
    exclusion = length - 1 if model.exclusion is None else math.ceil(model.exclusion)
    starts, rows = [], []
    distances = []
    for row, other in enumerate(others):
        if np.ndim(x) == 2:
            options = {"worst": True, "normalize": normalize}
            found = mean_distances(x, other, length, number, include, **options)
        else:
            found = window_distances(x, range(n_windows), other, length, normalize=normalize)
        distances.append(found)
        # series are far from each other
        starts += [row * 10_000 + start for start in range(found.shape[1])]
        rows += [row] * found.shape[1]
    distances, starts, rows = np.hstack(distances), np.array(starts), np.array(rows)
    scores = []
    for start, values in enumerate(distances):
        place = -math.inf if own is None else own * 10_000 + start
        values = np.where(np.abs(starts - place) <= exclusion, math.inf, values)
        if model.side == "left":
            values = np.where(starts >= place, math.inf, values)
        row = np.full(starts[-1] + 1, math.inf)
        row[starts] = values
        found = greedy(row, model.n_neighbors, exclusion)
        scores.append(found[-1][0] if len(found) == model.n_neighbors else math.nan)
    return np.array(scores)


def point_scores(scores, length, n_timepoints, aggregate):
    """For each point, from the windows that cover it."""
    found = []
    for point in range(n_timepoints):
        covering = [
            score
            for start, score in enumerate(scores)
            if start <= point < start + length and not math.isnan(score)
        ]
        value = math.nan
        if covering:
            value = max(covering) if aggregate == "max" else sum(covering) / len(covering)
        found.append(value)
    return np.array(found)


@pytest.mark.parametrize("n_channels", [1, 2])
@pytest.mark.parametrize("side", ["both", "left"])
def test_a_training_series_is_known_with_more_or_less_padding(fast_engine, rng, side, n_channels):
    lengths = (40, 25, 31)
    X = [rng.normal(size=(n_channels, n)) for n in lengths]
    X[1][0, 4] = np.nan
    padded = np.full((3, n_channels, 43), np.nan)
    for row, x in zip(padded, X, strict=True):
        row[:, : x.shape[1]] = x
    model = DiscordDetector(6, side=side, engine=fast_engine)
    of_list, of_padded = clone(model).fit(X), clone(model).fit(padded)
    wanted = of_list.score_samples(X)
    assert (wanted < 0).all()
    for fitted in (of_list, of_padded):
        for given in (X, padded, list(padded[:, :, :41])):
            assert_array_equal(fitted.score_samples(given), wanted)
            points = fitted.score_points(given)
            for row, n in enumerate(lengths):
                assert_array_equal(points[row, :n], of_list.score_points(X)[row, :n])
                assert np.isnan(points[row, n:]).all()
    # padding is at the end alone, and in all channels
    moved = np.pad(X[2], ((0, 0), (2, 0)), constant_values=np.nan)
    assert of_list.score_samples([moved])[0] != wanted[2]


@pytest.mark.parametrize("side", ["both", "left"])
@pytest.mark.parametrize("n_neighbors", [1, 2])
def test_scores_are_those_of_the_definition(fast_engine, rng, side, n_neighbors):
    X = [make_line(kind, n, rng) for kind, n in (("walk", 40), ("gaps", 25), ("noise", 31))]
    Z = [make_line("flat stretches", 30, rng), X[1].copy()]
    model = DiscordDetector(
        6, side=side, n_neighbors=n_neighbors, exclusion=4, contamination=0.4, engine=fast_engine
    ).fit(X)
    own = [window_scores(x, X, model, row) for row, x in enumerate(X)]
    for row, scores in enumerate(own):
        assert_array_equal(model.window_scores_[row, : scores.size], scores)
    largest = -np.array([np.nanmax(scores) for scores in own])
    assert model.offset_ == np.percentile(largest, 40)
    assert_array_equal(model.score_samples(X), largest)
    others, own = ([*X, Z[0]], 3) if side == "left" else (X, None)
    new = window_scores(Z[0], others, model, own)
    assert_array_equal(model.score_samples(Z), [-np.nanmax(new), largest[1]])
    assert_array_equal(model.predict(Z), np.where(model.score_samples(Z) < model.offset_, -1, 1))
    for aggregate in ("max", "mean"):
        points = model.score_points(Z, aggregate=aggregate)
        wanted = point_scores(new, 6, 30, aggregate)
        np.testing.assert_allclose(points[0], wanted, rtol=1e-15)
        assert np.isnan(points[1, 25:]).all()


def make_channels(kinds, n, rng):
    """A series of several channels."""
    return np.stack([make_line(kind, n, rng) for kind in kinds])


def take_walks(monkeypatch):
    """Search by compiled walks, also where the work is small."""
    tiles = "channel_tiles.ChannelTiles._few_pairs"
    monkeypatch.setattr("skts.engines.numba.profile.channel_tiles.prefer_numpy", lambda *_: False)
    monkeypatch.setattr(f"skts.engines.cupy.profile.{tiles}", lambda *_: False)


@pytest.mark.parametrize("side", ["both", "left"])
@pytest.mark.parametrize("n_neighbors", [1, 2])
@pytest.mark.parametrize("counting", [{}, {"dimensions": 1}, {"dimensions": 2, "include": [2]}])
def test_scores_of_channels_are_those_of_the_definition(
    fast_engine, monkeypatch, rng, side, n_neighbors, counting
):
    if "dimensions" in counting:
        take_walks(monkeypatch)
    kinds = [("walk", "gaps", "noise"), ("noise", "flat stretches", "gaps")]
    X = [make_channels(some, n, rng) for some, n in zip(kinds, (34, 22), strict=True)]
    Z = [make_channels(("walk", "walk", "noise"), 24, rng), X[1].copy()]
    model = DiscordDetector(
        5, side=side, n_neighbors=n_neighbors, exclusion=4, engine=fast_engine, **counting
    ).fit(X)
    own = [window_scores(x, X, model, row) for row, x in enumerate(X)]
    for row, scores in enumerate(own):
        assert_array_equal(model.window_scores_[row, : scores.size], scores)
    others, place = ([*X, Z[0]], 2) if side == "left" else (X, None)
    new = window_scores(Z[0], others, model, place)
    wanted = -np.array([np.nanmax(new), np.nanmax(own[1])])
    assert_array_equal(model.score_samples(Z), wanted)
    assert_array_equal(model.predict(Z), np.where(wanted < model.offset_, -1, 1))
    points = model.score_points(Z, aggregate="max")
    assert_array_equal(points[0], point_scores(new, 5, 24, "max"))


def test_the_oracle_scores_channels(rng):
    X = [make_channels(("walk", "noise"), 30, rng)]
    for k in (1, 2):
        model = DiscordDetector(5, n_neighbors=k, side="left", engine="oracle").fit(X)
        assert_array_equal(model.window_scores_[0], window_scores(X[0], X, model, 0))


def test_an_anomaly_of_one_channel_is_found_by_one_dimension():
    rng = np.random.default_rng(3)
    x = np.sin(np.arange(900) / 7 + np.arange(8)[:, np.newaxis])
    x += rng.normal(scale=0.1, size=x.shape)
    x[5, 400:430] = rng.normal(size=30)
    models = [DiscordDetector(30, dimensions=k).fit(x[np.newaxis]) for k in (1, None)]
    one, every = (model.window_scores_[0] for model in models)
    assert abs(np.argmax(one) - 400) < 30
    assert one[400] > 3 * np.median(one)
    assert every[400] < 2 * np.median(every)


def test_nearest_neighbors_are_those_of_the_profile(fast_engine, rng):
    x = make_line("walk", 300, rng)
    model = DiscordDetector(20, exclusion=None, engine=fast_engine).fit(x[np.newaxis])
    profile = matrix_profile(x, window=20, exclusion=19, engine=fast_engine)
    assert_array_equal(model.window_scores_[0], profile.distances)
    (found,) = discords(x, window=20, n_discords=1, exclusion=19, engine=fast_engine)
    assert np.argmax(model.window_scores_[0]) == found.position
    both = np.stack([x, make_line("gaps", 300, rng)])
    model_of_both = DiscordDetector(20, dimensions=1, engine=fast_engine).fit(both[np.newaxis])
    options = {"dimensions": 1, "counting": "farthest", "engine": fast_engine}
    found = matrix_profile(both, window=20, exclusion=19, **options).distances
    assert_array_equal(model_of_both.window_scores_[0], np.where(np.isinf(found), np.nan, found))
    against = model.score_points([x[40:200] + 1.0])
    wanted = matrix_profile(x[40:200] + 1.0, x, window=20, engine=fast_engine).distances
    assert against.shape == (1, 160)
    assert against[0, 0] == wanted[0]


def test_what_happens_twice_is_found_by_the_second_neighbor():
    rng = np.random.default_rng(0)
    x = np.sin(np.arange(1_500) / 8) + rng.normal(scale=0.05, size=1_500)
    fault = rng.normal(size=50)
    for place in (400, 1_100):
        x[place : place + 50] = fault + rng.normal(scale=0.05, size=50)
    once, twice = (
        DiscordDetector(50, n_neighbors=k).fit(x[np.newaxis]).window_scores_[0] for k in (1, 2)
    )
    assert once[400] < 3 < twice[400]
    assert set((np.argsort(-twice)[:2] // 10).tolist()) <= {*range(36, 45), *range(106, 115)}


def test_earlier_neighbors_do_not_depend_on_what_follows(fast_engine, rng):
    x = make_line("walk", 200, rng)
    for k in (1, 2):
        model = DiscordDetector(12, side="left", n_neighbors=k, engine=fast_engine)
        whole = model.fit(x[np.newaxis]).window_scores_[0]
        part = clone(model).fit(x[np.newaxis, :120]).window_scores_[0]
        assert_array_equal(part, whole[: part.size])
        assert np.isnan(whole[: 12 * k]).all()


@pytest.mark.parametrize("n_neighbors", [1, 2])
@pytest.mark.parametrize("max_points", [None, 45, 6])
def test_a_stream_is_scored_by_what_is_kept(fast_engine, rng, n_neighbors, max_points):
    other, x = make_line("walk", 25, rng), make_line("gaps", 120, rng)
    options = {"side": "left", "n_neighbors": n_neighbors, "exclusion": 4, "engine": fast_engine}
    model = DiscordDetector(6, **options).fit([other, x[:50]])
    offset, kept, scores = model.offset_, x[:50], model.window_scores_[1, :45]
    edges = [50, 50, 51, 58, 95, 120]
    for start, stop in itertools.pairwise(edges):
        line = np.concatenate([kept, x[start:stop]])
        wanted = window_scores(line, [other, line], model, 1)[line.size - (stop - start) - 5 :]
        found = model.update(x[start:stop], max_points=max_points)
        assert_array_equal(found, wanted)
        dropped = line.size - min(line.size, max_points or line.size)
        kept, scores = line[dropped:], np.concatenate([scores, wanted])[dropped:]
        assert_array_equal(model.window_scores_[1, : scores.size], scores)
        # what is kept is the training series
        known = point_scores(scores, 6, kept.size, "max")
        assert_array_equal(model.score_points([kept])[0], known)
    assert model.offset_ == offset
    if max_points is None:
        whole = DiscordDetector(6, **options).fit([other, x])
        assert_array_equal(model.window_scores_, whole.window_scores_)
        new = rng.normal(size=30).cumsum()
        assert_array_equal(model.score_samples([new]), whole.score_samples([new]))


@pytest.mark.parametrize("n_neighbors", [1, 2])
def test_a_stream_of_channels_is_scored_by_what_is_kept(fast_engine, rng, n_neighbors):
    other, x = (make_channels(("walk", "gaps"), n, rng) for n in (20, 60))
    options = {"side": "left", "n_neighbors": n_neighbors, "exclusion": 4, "engine": fast_engine}
    model = DiscordDetector(6, dimensions=1, **options).fit([other, x[:, :30]])
    kept = x[:, :30]
    for start, stop in itertools.pairwise([30, 30, 31, 44, 60]):
        line = np.concatenate([kept, x[:, start:stop]], axis=1)
        wanted = window_scores(line, [other, line], model, 1)[line.shape[1] - (stop - start) - 5 :]
        assert_array_equal(model.update(x[:, start:stop].tolist(), max_points=33), wanted)
        kept = line[:, -33:]
        assert_array_equal(model._series()[-1], kept)
    whole = DiscordDetector(6, dimensions=1, **options).fit([other, x[:, :30]])
    scores = np.concatenate([whole.update(x[:, 30:40]), whole.update(x[:, 40:])])
    assert_array_equal(scores, window_scores(x, [other, x], model, 1)[25:])


def test_an_update_that_fails_changes_nothing(rng, monkeypatch):
    x = rng.normal(size=80)
    model = DiscordDetector(8, side="left", engine="oracle").fit(x[np.newaxis, :60])
    before = model.window_scores_.copy()
    with pytest.raises(ValueError, match="what follows a stream is 1-D: write points.ravel"):
        model.update(x[np.newaxis, 60:])
    with pytest.raises(ValueError, match="max_points=7: it is a number of points, at least"):
        model.update(x[60:], max_points=7)
    with pytest.raises(ValueError, match="update needs side='left'"):
        DiscordDetector(8, engine="oracle").fit(x[np.newaxis]).update(x)
    with monkeypatch.context() as patch:
        patch.setattr("skts.motifs._discord_detector._as_rows", lambda rows: 1 / 0)
        with pytest.raises(ZeroDivisionError):
            model.update(x[60:])
    assert_array_equal(model.window_scores_, before)
    assert model.update(x[60:]).shape == (20,)


def test_a_training_series_keeps_its_scores(fast_engine, rng):
    """In whatever form it comes, with other series or alone, and where NaN is in it."""
    X = rng.normal(size=(4, 30))
    X[2, 7] = np.nan
    model = DiscordDetector(5, n_neighbors=2, engine=fast_engine).fit(X)
    scores = model.score_samples(X)
    assert_array_equal(model.score_samples(X[[2]].tolist()), scores[[2]])
    assert_array_equal(model.score_samples(np.asfortranarray(X[::-1])), scores[::-1])
    assert_array_equal(model.predict(X), clone(model).fit_predict(X))
    X[0, 0] += 1e-9
    assert model.score_samples(X)[0] != scores[0]


def test_offset(rng):
    X = rng.normal(size=(40, 12))
    X[5] *= 30
    model = DiscordDetector(4, normalize=False).fit(X)
    first, third = np.percentile(model.score_samples(X), [25, 75])
    assert model.offset_ == first - 1.5 * (third - first)
    assert_array_equal(model.predict(X) < 0, model.score_samples(X) < model.offset_)
    assert model.predict(X)[5] == -1 and (model.predict(X) < 0).sum() < 5
    share = DiscordDetector(4, normalize=False, contamination=0.25).fit(X)
    assert (share.predict(X) < 0).sum() == 10
    assert_array_equal(share.decision_function(X), share.score_samples(X) - share.offset_)


@pytest.mark.parametrize("contamination", ["auto", 0.1, 0.5])
def test_equal_scores_are_not_told_apart(contamination):
    """Where all are alike nothing is unusual; at the limit none of equal series is an outlier."""
    alike = np.tile(np.arange(6.0) ** 2, (8, 1))
    model = DiscordDetector(4, contamination=contamination).fit(alike)
    assert model.offset_ == 0
    assert (model.predict(alike) == 1).all()
    X = alike + [[9.0], [0], [0], [0], [0], [0], [0], [0]]
    model = DiscordDetector(4, normalize=False, contamination=contamination).fit(X)
    assert_array_equal(model.predict(X), [-1] + [1] * 7)
    X[:4] = X[0]
    model = DiscordDetector(4, normalize=False, contamination=0.25).fit(np.vstack([X, X[:1] + 90]))
    assert_array_equal(model.predict(X), np.ones(8))


@pytest.mark.parametrize("length", [1, 2])
def test_windows_too_short_to_be_normalized_are_compared_as_they_are(fast_engine, rng, length):
    """Normalised, windows of two points say up, down or flat, and a level would say nothing."""
    X = rng.normal(size=(30, 2))
    X[7] += 20
    model = DiscordDetector(length, contamination=1 / 30, engine=fast_engine).fit(X)
    raw = DiscordDetector(length, normalize=False, engine=fast_engine).fit(X)
    assert_array_equal(model.window_scores_, raw.window_scores_)
    assert np.flatnonzero(model.predict(X) < 0).tolist() == [7]
    assert DiscordDetector().fit(X).window_ == 2


def test_a_series_without_scores_is_normal(rng):
    x = rng.normal(size=(1, 50))
    model = DiscordDetector(8).fit(x)
    empty = np.full((1, 50), np.nan)
    assert model.score_samples(empty) == [0.0]
    assert model.predict(empty) == [1]
    assert np.isnan(model.score_points(empty)).all()


@pytest.mark.parametrize("n", range(1, 6))
def test_few_points(engine, rng, n):
    x = list(rng.normal(size=(3, n)))
    for length in range(1, n + 1):
        model = DiscordDetector(length, normalize=False, engine=engine).fit(x)
        assert model.score_points(x).shape == (3, n)
        assert not np.isnan(model.window_scores_).any()


def test_refusals(rng):
    x = rng.normal(size=(1, 40))
    with pytest.raises(ValueError, match=r"no window of 30 points in the n_samples = 1 series"):
        DiscordDetector(30).fit(x)
    with pytest.raises(ValueError, match=r"has n_neighbors = 9 neighbours that do not start"):
        DiscordDetector(5, n_neighbors=9).fit(x)
    # before any memory is taken for so many
    with pytest.raises(ValueError, match=r"has n_neighbors = 1000000000000 neighbours that"):
        DiscordDetector(5, n_neighbors=10**12).fit(x)
    with pytest.raises(ValueError, match=r"neighbour that does not start within 40 points of it"):
        DiscordDetector(5, exclusion=1_000).fit(x)  # more than there are: `exclusion_` is 40
    with pytest.raises(ValueError, match=r"Series 1 of X has 4 time points"):
        DiscordDetector(5).fit([x[0], x[0, :4]])
    model = DiscordDetector(5).fit(x)
    with pytest.raises(ValueError, match=r"Series 0 of X has 4 time points"):
        model.predict([x[0, :4]])
    with pytest.raises(ValueError, match=r"aggregate='sum': it must be 'max' or 'mean'"):
        model.score_points(x, aggregate="sum")
    with pytest.raises(ValueError, match=r"dimensions=3: the number of channels .* from 1 to 2"):
        DiscordDetector(5, dimensions=3).fit(rng.normal(size=(3, 2, 20)))
    with pytest.raises(ValueError, match="X has 4 channels of one time point each: series are"):
        DiscordDetector(5).fit(rng.normal(size=(3, 4, 1)))
    model = DiscordDetector(5, side="left").fit(rng.normal(size=(3, 2, 20)))
    with pytest.raises(ValueError, match="X has 3 channels, but DiscordDetector is expecting 2"):
        model.predict(rng.normal(size=(2, 3, 20)))
    with pytest.raises(ValueError, match=r"of 2 channels is \(n_channels, n_points\): write poi"):
        model.update(rng.normal(size=(7, 2)))


def test_options_of_later_do_not_mix_with_those_of_fit(rng):
    X, Z = rng.normal(size=(3, 40)), rng.normal(size=(2, 40))
    model = DiscordDetector(6, n_neighbors=2).fit(X)
    before = model.score_samples(Z)
    assert_array_equal(model.set_params(n_neighbors=1, exclusion=0).score_samples(Z), before)


def test_large_exclusions(rng):
    """Up to the longest training series as they are; larger ones mean all windows of a series."""
    X, z = rng.normal(size=(2, 30)), rng.normal(size=70)
    z[35:] = z[:35]
    for exclusion, rows in ((30, [*X, z]), (31, X), (5_000, X)):
        model = DiscordDetector(5, side="left", exclusion=exclusion).fit(X)
        assert model.exclusion_ == 30
        wanted = window_scores(z, rows, model, 2)
        assert model.score_samples([z]) == -np.nanmax(wanted)
        points = point_scores(wanted, 5, 70, "max")
        np.testing.assert_allclose(model.score_points([z])[0], points, rtol=1e-15)


def test_ecg():
    """The noise where the electrode moved."""
    ecg = load_ecg().data[:, 3_600:14_400]
    scores = DiscordDetector(180).fit(ecg).score_points(ecg)[0]
    assert 18 < np.nanargmax(scores) / 360 < 19.5


def test_verified(rng):
    with config_context(verify=True):
        X = rng.normal(size=(2, 60))
        for side in ("both", "left"):
            DiscordDetector(7, n_neighbors=3, side=side).fit(X).score_samples(X + 1)
        DiscordDetector(7, n_neighbors=2).fit(X[np.newaxis])


def test_neighbors_do_not_overlap_unless_that_is_asked_for(rng):
    X = rng.normal(size=(1, 40)).cumsum(axis=1)
    scores = [
        DiscordDetector(6, exclusion=exclusion, engine="oracle").fit(X).window_scores_
        for exclusion in (None, 5, 4)
    ]
    assert_array_equal(scores[0], scores[1])
    assert (scores[2] < scores[1]).any()


def test_an_exclusion_is_one_within_a_series(rng):
    x = rng.normal(size=40).cumsum()
    model = DiscordDetector(5, exclusion=20, engine="oracle").fit([x, x[-8:]])
    assert_array_equal(model.window_scores_[1, :4], np.zeros(4))
    X = np.array([[0.0, 1, 2, 0], [5, 6, 7, 9]])
    model = DiscordDetector(1, exclusion=5_000, engine="oracle").fit(X)
    assert_array_equal(model.window_scores_, [[5, 4, 3, 5], [3, 4, 5, 7]])


def test_a_window_may_be_a_whole_series(rng):
    X = rng.normal(size=(4, 9)).cumsum(axis=1)
    assert DiscordDetector(1.0, engine="oracle").fit(X).window_ == 9
    with pytest.raises(ValueError, match="The 'window' parameter"):
        DiscordDetector(0.0, engine="oracle").fit(X)


@pytest.mark.parametrize(
    "options", [{}, {"normalize": False}, {"n_neighbors": 2, "side": "left"}, {"window": 1}]
)
def test_scikit_learn(fast_engine, options):
    check_with_scikit_learn(DiscordDetector(engine=fast_engine, **options))


def test_described(rng):
    X = rng.normal(size=(3, 20))
    check_described(DiscordDetector(5).fit(X))
    assert ConcatenatedSeries.of([*X]).n_windows(5) == 58
