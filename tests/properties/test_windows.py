"""Properties of windows, profiles, motifs and searches by definition."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st
from numpy.testing import assert_array_equal

from skts import MotifFinder, SubsequenceSearch
from skts.metrics import subsequence_distance
from skts.motifs import discords, matrix_profile, motifs
from tests.properties.strategies import few, lines, powers, windows


@few
@given(lines(), windows, st.booleans())
def test_a_profile_is_symmetric_in_its_pairs(fast_engine, x, window, normalize):
    """With all neighbours of all windows the profile is the matrix of distances."""
    options = {"window": window, "normalize": normalize, "engine": fast_engine}
    n = len(x) - window + 1
    found = matrix_profile(x, k=n, exclusion=0, **options)
    D = np.full((n, n), np.inf)
    rows, places = np.nonzero(found.indices.reshape(n, -1) >= 0)
    D[rows, found.indices.reshape(n, -1)[rows, places]] = found.distances.reshape(n, -1)[
        rows, places
    ]
    assert np.isinf(D.diagonal()).all()
    assert_array_equal(D, D.T)
    across = matrix_profile(x, x[::-1], **options)
    back = matrix_profile(x[::-1], x, **options)
    assert across.distances.min() == back.distances.min()


@few
@given(lines(), windows, powers, st.booleans())
def test_profiles_scale(fast_engine, x, window, power, normalize):
    options = {"window": window, "normalize": normalize, "engine": fast_engine}
    found, scaled = (matrix_profile(np.ldexp(x, p), **options) for p in (0, power))
    assert_array_equal(scaled.indices, found.indices)
    wanted = found.distances if normalize else np.ldexp(found.distances, power)
    assert_array_equal(scaled.distances, wanted)


@few
@given(lines(30), windows, st.sampled_from([1e3, 1e9, 1e15, -1e30, 1e100]), st.booleans())
def test_a_spike_behind_a_gap_changes_no_other_window(fast_engine, x, window, spike, normalize):
    gap = np.full(1, np.nan)
    options = {"window": window, "normalize": normalize, "engine": fast_engine}
    n = len(x) - window + 1
    alone = matrix_profile(x, **options)
    beside = matrix_profile(np.concatenate([x, gap, np.full(window - 1, spike)]), **options)
    assert_array_equal(beside.distances[:n], alone.distances)
    assert_array_equal(beside.indices[:n], alone.indices)
    search = SubsequenceSearch(normalize=normalize, engine=fast_engine)
    query = [x[:window] + np.arange(window)]
    before = search.fit([x]).radius_neighbors(query, 1e6)
    series = np.concatenate([x, gap, np.full(window - 1, spike)])
    after = search.fit([series]).radius_neighbors(query, 1e6)
    for one, other in zip(before, after, strict=True):
        assert_array_equal(one[0], other[0])


@few
@given(st.lists(lines(12, 30), min_size=2, max_size=4), windows, st.sampled_from([1, 1e9, 1e100]))
def test_a_series_alone_is_what_it_is_among_others(fast_engine, X, window, loud):
    X = [X[0], *[loud * x for x in X[1:]]]
    model = MotifFinder(window, n_motifs=2, exclusion=0, engine=fast_engine).fit([X[0]])
    together = model.transform(X), model.predict(X)
    for row, x in enumerate(X):
        assert_array_equal(model.transform([x]), together[0][[row]])
        assert_array_equal(model.predict([x]), together[1][[row]])


@few
@given(lines(), windows, st.booleans(), st.sampled_from(["profile", "mk"]))
def test_motifs_are_the_lowest_of_the_profile(fast_engine, x, window, normalize, algorithm):
    options = {"window": window, "normalize": normalize, "engine": fast_engine}
    profile = matrix_profile(x, **options)
    if not np.isfinite(profile.distances).any():
        with pytest.raises(ValueError, match="There is no motif: no two windows"):
            motifs(x, n_motifs=1, algorithm=algorithm, random_state=0, **options)
        return
    found = motifs(x, n_motifs=1, algorithm=algorithm, random_state=0, **options)
    best = int(np.argmin(profile.distances))
    assert found[0].distance == profile.distances[best]
    assert found[0].positions[0] == best
    assert found[0].positions[1] == profile.indices[best] or (
        np.sum(profile.distances == profile.distances[best]) > 2
    )
    farthest = discords(x, n_discords=1, **options)[0]
    finite = np.isfinite(profile.distances)
    assert farthest.distance == profile.distances[finite].max()


@few
@given(lines(20, 80), windows, st.integers(0, 3), st.data())
def test_updates_in_any_cuts_equal_a_fit(fast_engine, x, window, exclusion, data):
    first = data.draw(st.integers(window + exclusion + 1, len(x)))
    cuts = sorted(data.draw(st.lists(st.integers(first, len(x)), max_size=3)))
    options = {"exclusion": exclusion, "left_right": True, "n_discords": 1, "engine": fast_engine}
    model = MotifFinder(window, **options).fit([x[:first]])
    for piece in np.split(x[first:], [cut - first for cut in cuts]):
        model.update(piece)
    whole = MotifFinder(window, **options).fit([x])
    for name in ("profile_", "profile_index_", "profile_series_"):
        assert_array_equal(getattr(model, name), getattr(whole, name))
    for name in ("left_profile_", "right_profile_"):
        for one, other in zip(getattr(model, name), getattr(whole, name), strict=True):
            assert_array_equal(one, other)
    for one, other in zip(model.motifs_, whole.motifs_, strict=True):
        assert_array_equal(one.positions, other.positions)
        assert_array_equal(one.distances, other.distances)
    assert [one.position for one in model.discords_] == [one.position for one in whole.discords_]


@few
@given(
    st.lists(lines(12, 40), min_size=1, max_size=3),
    lines(2, 9),
    st.sampled_from([None, 0, 1, 5]),
    st.sampled_from(["dtw", "dog_keeper", "euclidean"]),
    st.booleans(),
)
def test_neighbours_are_a_greedy_choice(fast_engine, X, query, exclusion, metric, normalize):
    model = SubsequenceSearch(
        metric=metric, exclusion=exclusion, normalize=normalize, engine=fast_engine
    ).fit(X)
    distances, positions = model.radius_neighbors([query], 1e9)
    near = math.ceil(len(query) / 4) if exclusion is None else exclusion
    taken = []
    for distance, (row, start) in zip(distances[0], positions[0].tolist(), strict=True):
        if not any(r == row and abs(s - start) <= near for _, r, s in taken):
            taken.append((distance, row, start))
    for k in (1, 3, 50):
        found = model.kneighbors([query], k)
        count = min(k, len(taken))
        assert found[0][0, :count].tolist() == [one[0] for one in taken[:count]]
        assert found[1][0, :count].tolist() == [list(one[1:]) for one in taken[:count]]
        assert np.isinf(found[0][0, count:]).all()
        assert (found[1][0, count:] == -1).all()


@few
@given(lines(12, 60), windows, st.integers(0, 50), st.floats(0.1, 50), st.floats(-100, 100))
def test_a_window_is_found_where_it_was_cut(fast_engine, x, length, place, scale, level):
    start = place % (len(x) - length + 1)
    part = x[start : start + length]
    assume(np.ptp(part) > 0 and length >= 3)
    exact = subsequence_distance(part, x, engine=fast_engine)
    assert exact.distance == 0
    assert exact.start <= start
    moved = subsequence_distance(scale * part + level, x, engine=fast_engine)
    assert moved.distance == pytest.approx(0, abs=1e-9 * (1 + abs(level) / scale / np.std(part)))
