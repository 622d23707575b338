"""Functions of series of several channels, against plain loops and stored outputs of stumpy."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal

from skts import MotifFinder
from skts.engines import replace_kernels
from skts.motifs import discords, matrix_profile, motifs
from tests.engines.profile.test_join import make_line
from tests.reference_channels import counted, mean_distances, nearest
from tests.reference_join import total, window_distance

with np.load(Path(__file__).parents[1] / "data" / "peers" / "channels.npz") as stored:
    STORED = dict(stored)
OPTIONS = {
    "nearest": {},
    "farthest": {"counting": "farthest"},
    "include": {"include": [1]},
    "plain": {"normalize": False},
}
CASES = [key.split(".")[1:] for key in STORED if key.startswith("profile")]


@pytest.mark.parametrize(("name", "kind"), CASES)
def test_stored_profiles_of_stumpy(fast_engine, name, kind):
    x = STORED[name]
    found = matrix_profile(x, window=12, engine=fast_engine, **OPTIONS[kind])
    assert_array_equal(found.dimensions, np.arange(1, len(x) + 1))
    assert_allclose(found.distances, STORED[f"profile.{name}.{kind}"], rtol=0, atol=2e-6)
    if name != "flat":  # constant windows are equally near to many
        assert_array_equal(found.indices, STORED[f"index.{name}.{kind}"])


def make_series(kinds, n, rng):
    return np.array([make_line(kind, n, rng) for kind in kinds])


@pytest.mark.parametrize("normalize", [True, False])
def test_profiles_are_those_of_the_definition(engine, rng, normalize):
    a = make_series(("walk", "gaps", "flat stretches"), 40, rng)
    b = make_series(("noise", "walk", "walk"), 30, rng)
    chosen = [3, 1]
    within = matrix_profile(
        a, window=6, exclusion=4, dimensions=chosen, normalize=normalize, sides=True, engine=engine
    )
    across = matrix_profile(
        a, b, window=6, dimensions=2, include=[2], normalize=normalize, engine=engine
    )
    assert across.distances.shape == (35,)
    wanted = nearest(mean_distances(a, b, 6, 2, (2,), normalize=normalize), lambda i, j: True)
    assert_array_equal(across.distances, wanted[0])
    assert_array_equal(across.indices, wanted[1])
    assert_array_equal(within.dimensions, chosen)
    for row, number in enumerate(chosen):
        means = mean_distances(a, a, 6, number, normalize=normalize)
        for side, admissible in (
            (within, lambda i, j: abs(i - j) > 4),
            (within.left, lambda i, j: i - j > 4),
            (within.right, lambda i, j: j - i > 4),
        ):
            distances, indices = nearest(means, admissible)
            assert_array_equal(side.distances[row], distances)
            assert_array_equal(side.indices[row], indices)


def each_distance(x, i, j, length):
    """Distances of two windows in each channel."""
    return [window_distance(one[i : i + length], one[j : j + length]) for one in x]


@pytest.mark.parametrize("dimensions", [None, 2])
def test_motifs(engine, rng, dimensions):
    """The nearest pair, its channels, and all occurrences in these channels."""
    x = make_series(("walk", "gaps", "noise"), 60, rng)
    x[1:, 40:50] = x[1:, 10:20] * 2 + rng.normal(scale=0.01, size=(2, 10))
    number = dimensions or 3
    means = mean_distances(x, x, 8, number)
    for i, j in np.ndindex(means.shape):
        if abs(i - j) <= 4:
            means[i, j] = np.inf
    found = motifs(x, window=8, n_motifs=2, exclusion=4, dimensions=dimensions, engine=engine)
    motif = found[0]
    i, j = motif.positions[:2]
    assert motif.distance == means[i, j] == means.min()
    channels = sorted(counted(each_distance(x, i, j, 8), number, (), False))
    assert_array_equal(motif.channels, channels)
    if dimensions == 2:
        assert channels == [1, 2]
    for place, values, distance in zip(motif.positions, motif.values, motif.distances, strict=True):
        assert_array_equal(values, x[:, place : place + 8])
        each = [each_distance(x, i, place, 8)[channel] for channel in channels]
        assert distance == total(sorted(each)) / number
        assert distance <= motif.radius == 2 * motif.distance
    taken = {*range(i - 4, i + 5), *range(j - 4, j + 5)}
    assert not taken & set(found[1].positions[:2].tolist())


@pytest.mark.parametrize("options", [{}, {"dimensions": 1}, {"dimensions": 2, "include": [0]}])
def test_discords(engine, rng, options):
    x = make_series(("walk", "flat stretches", "noise"), 60, rng)
    number, include = options.get("dimensions", 3), options.get("include", ())
    means = mean_distances(x, x, 8, number, include, worst=True)
    distances, indices = nearest(means, lambda i, j: abs(i - j) > 2)
    found = discords(x, window=8, n_discords=2, engine=engine, **options)
    first = found[0]
    assert first.distance == distances.max() == distances[first.position]
    assert first.neighbor == indices[first.position]
    each = each_distance(x, first.position, first.neighbor, 8)
    assert_array_equal(first.channels, sorted(counted(each, number, include, True)))
    assert_array_equal(first.values, x[:, first.position : first.position + 8])
    assert abs(found[1].position - first.position) > 4


def all_pairs(parts, length, exclusion, number, **options):
    """Mean distances of all windows of several series, and where these lie."""
    where = [(s, i) for s, x in enumerate(parts) for i in range(x.shape[1] - length + 1)]
    blocks = [[mean_distances(a, b, length, number, **options) for b in parts] for a in parts]
    means = np.block(blocks)
    for p, q in np.ndindex(means.shape):
        (s, i), (t, j) = where[p], where[q]
        if s == t and abs(i - j) <= exclusion:
            means[p, q] = np.inf
    return where, means


def test_finder(engine, rng):
    """Several series: profile, the best motif and discord, and distances of other series."""
    parts = [make_series(("walk", "noise", "gaps"), n, rng) for n in (30, 36)]
    parts[1][:2, 20:28] = parts[0][:2, 5:13] * 3 + 1
    options = {"n_motifs": 1, "n_discords": 1, "exclusion": 3, "dimensions": 2, "left_right": True}
    model = MotifFinder(8, engine=engine, **options).fit(parts)
    where, means = all_pairs(parts, 8, 3, 2)
    distances, indices = nearest(means, lambda p, q: True)
    earlier, _ = nearest(means, lambda p, q: q < p)
    for p, (s, i) in enumerate(where):
        assert model.profile_[s, i] == distances[p]
        neighbor = model.profile_series_[s, i], model.profile_index_[s, i]
        assert neighbor == (where[indices[p]] if indices[p] >= 0 else (-1, -1))
        assert model.left_profile_.distances[s, i] == earlier[p]
    (motif,), (discord,) = model.motifs_, model.discords_
    pair = [where.index(place) for place in zip(motif.series[:2], motif.positions[:2], strict=True)]
    assert motif.distance == means[tuple(pair)] == means.min()
    assert motif.channels.tolist() == [0, 1]
    assert motif.values.shape == (motif.positions.size, 3, 8)
    far = nearest(all_pairs(parts, 8, 3, 2, worst=True)[1], lambda p, q: True)[0]
    far[np.isinf(far)] = -1
    assert discord.distance == far.max()
    assert where[far.argmax()] == (discord.series, discord.position)
    x = make_series(("noise", "walk", "walk"), 20, rng)
    first = motif.values[0]
    each = [
        total(sorted(window_distance(first[c], x[c, i : i + 8]) for c in (0, 1))) / 2
        for i in range(13)
    ]
    assert model.transform([x]) == min(each)
    assert model.predict([x, parts[0]]).tolist() == [0 if min(each) <= motif.radius else -1, 0]


def test_finder_of_one_series(rng):
    """The same as the functions; several lengths, and raw windows."""
    x = rng.normal(size=(3, 150)).cumsum(axis=1)
    options = {"dimensions": 2, "include": [1], "normalize": False}
    model = MotifFinder([12, 20], n_motifs=2, n_discords=1, **options).fit(x[np.newaxis])
    assert len(model.profile_) == 2
    ranks = {
        length: motifs(x, window=length, n_motifs=1, **options)[0].distance / np.sqrt(length)
        for length in (12, 20)
    }
    best = min(ranks, key=ranks.get)
    assert model.motifs_[0].window == best
    one = MotifFinder(best, n_motifs=2, n_discords=1, **options).fit(x[np.newaxis])
    for found, wanted in (
        (one.motifs_, motifs(x, window=best, n_motifs=2, **options)),
        (one.discords_, discords(x, window=best, n_discords=1, **options)),
    ):
        for mine, other in zip(found, wanted, strict=True):
            for value, expected in zip(mine, other, strict=True):
                assert_array_equal(value, expected)
    assert one.predict(x[np.newaxis]) == 0
    assert one.transform(x[np.newaxis])[0, 0] == 0
    with pytest.raises(ValueError, match="X has 2 channels, but MotifFinder is expecting 3"):
        one.transform(x[np.newaxis, :2])
    with pytest.raises(ValueError, match="update is for series of one channel; these have 3"):
        one.update(x[0])


def test_one_channel_is_a_series(fast_engine, rng):
    x = rng.normal(size=90).cumsum()
    row, alone = (matrix_profile(one, window=9, engine=fast_engine) for one in (x[np.newaxis], x))
    assert_array_equal(row.distances, alone.distances[np.newaxis])
    assert_array_equal(row.indices, alone.indices[np.newaxis])
    assert alone.dimensions is None
    assert_array_equal(
        motifs(x[np.newaxis], window=9)[0].positions, motifs(x, window=9)[0].positions
    )
    same = matrix_profile(x, window=9, dimensions=1, include=[0], engine=fast_engine)
    assert_array_equal(same.distances, alone.distances)


def test_a_missing_channel_does_not_hide_the_others(fast_engine, rng):
    x = rng.normal(size=(3, 80))
    x[1] = np.nan
    found = matrix_profile(x, window=8, engine=fast_engine)
    two = matrix_profile(x[[0, 2]], window=8, engine=fast_engine)
    assert_array_equal(found.distances[:2], two.distances)
    assert np.isinf(found.distances[2]).all()
    assert (found.indices[2] == -1).all()


def test_channels_that_are_missing_at_once(fast_engine, rng):
    x = rng.normal(size=(3, 11))
    x[0, 0] = x[2, 1] = np.inf  # window 0 lacks one that counts in any case, and another one
    with replace_kernels(always=False):
        found = matrix_profile(x, window=5, counting="farthest", include=[0], engine=fast_engine)
    means = mean_distances(x, x, 5, 3, (0,), worst=True)
    distances, indices = nearest(means, lambda i, j: abs(i - j) > 2)
    assert np.isfinite(distances).sum() > 2
    assert_array_equal(found.distances[2], distances)
    assert_array_equal(found.indices[2], indices)


@pytest.mark.parametrize("options", [{}, {"counting": "farthest", "include": [2]}], ids=str)
def test_channels_without_a_regular_window(fast_engine, options):
    x = np.zeros((4, 5))
    x[1, 4], x[3] = -np.inf, [1, 1, 1, 0, 1]
    with replace_kernels(always=False):
        found = matrix_profile(x, window=2, dimensions=4, engine=fast_engine, **options)
    assert_allclose(found.distances, np.array([1, np.inf, 1, np.inf]) * np.sqrt(2) / 4)
    assert_array_equal(found.indices, [2, -1, 0, -1])


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"dimensions": 4}, "dimensions=4: the number of channels that count is from 1 to 3 here"),
        ({"dimensions": 1, "include": [0, 2]}, "that count is from 2 to 3 here"),
        ({"dimensions": []}, "dimensions is empty: name at least one number of channels"),
        ({"include": [3]}, r"include=\[3\]: channels have the numbers 0 to 2 here"),
        ({"k": 2}, "k=2: several neighbours of a window are those of one channel"),
        ({"b": np.ones((2, 9))}, "a has 3 channels and b has 2"),
        ({"window": 10}, "a has 9 time points; that is less than one window of 10"),
    ],
)
def test_what_is_wrong_is_said(options, message):
    with pytest.raises(ValueError, match=message):
        matrix_profile(np.ones((3, 9)), **{"window": 3, **options})


def test_refusals(rng):
    x = rng.normal(size=(2, 30))
    with pytest.raises(ValueError, match="algorithm='mk' is for series of one channel"):
        motifs(x, window=5, algorithm="mk")
    with pytest.raises(ValueError, match="There is no motif: no two windows of 5 points"):
        motifs(x * np.nan, window=5)
    with pytest.raises(ValueError, match=r"a has shape \(3, 4, 5\); one series of shape"):
        matrix_profile(np.ones((3, 4, 5)), window=2)
