"""Distance profiles, MPdist, chains, consensus motifs and regimes, against plain loops."""

from __future__ import annotations

import importlib

import numpy as np
import pytest
from numpy.testing import assert_array_equal

from skts import config_context
from skts.engines import run
from skts.motifs import consensus_motif, distance_profile, matrix_profile, motif_chains, mpdist
from skts.motifs import segment as find_regimes
from tests import reference_profiles as reference
from tests.engines.profile.test_join import make_line

# joins are tested with all kinds of series elsewhere; here ties, gaps and constants matter
CASES = [(kind, True) for kind in ("walk", "flat stretches", "gaps", "repeats", "fill values")]
CASES += [(kind, False) for kind in ("flat stretches", "gaps")]
every_case = pytest.mark.parametrize(("kind", "normalize"), CASES)


@every_case
def test_distance_profiles(rng, fast_engine, kind, normalize):
    x, other = make_line(kind, 70, rng), make_line("flat stretches", 40, rng)
    options = {"normalize": normalize, "engine": fast_engine}
    for query in (x[20:26], np.full(5, 3.0), other[8:19], x[:1], [1.0, np.nan, 2.0]):
        expected = reference.distance_profile(query, x, normalize=normalize)
        assert_array_equal(distance_profile(query, x, **options), expected)
        several = distance_profile(query, [x, other], **options)
        assert several.shape == (2, len(expected))
        assert_array_equal(several[0], expected)
        alone = distance_profile(query, other, **options)
        assert_array_equal(several[1], np.pad(alone, (0, 30), constant_values=np.inf))


def test_a_distance_profile_holds_the_distances_of_a_matrix_profile(rng, fast_engine):
    x = rng.normal(size=80).cumsum()
    profile = matrix_profile(x, window=9, engine=fast_engine)
    for start in (0, 17, 71):
        row = distance_profile(x[start : start + 9], x, engine=fast_engine)
        assert row[profile.indices[start]] == profile.distances[start]


@every_case
def test_mpdist(rng, fast_engine, kind, normalize):
    a, b = make_line(kind, 35, rng), make_line("walk", 20, rng)
    options = {"window": 6, "normalize": normalize, "engine": fast_engine}
    for k in (1, 0.05, 10_000):
        expected = reference.mpdist(a, b, 6, k, normalize=normalize)
        assert mpdist(a, b, k=k, **options) == mpdist(b, a, k=k, **options) == expected


@every_case
def test_chains(rng, fast_engine, kind, normalize):
    x = make_line(kind, 40, rng)
    for length, exclusion in ((5, 2), (9, 0)):
        options = {"window": length, "exclusion": exclusion, "normalize": normalize}
        found = motif_chains(x, **options, engine=fast_engine)
        expected = reference.chains(x, length, exclusion, normalize=normalize)
        assert [one.positions.tolist() for one in found] == [chain for chain, _ in expected]
        assert [one.distances.tolist() for one in found] == [steps for _, steps in expected]
        for chain, steps in expected[:1]:
            for cut, anchor in enumerate(chain):
                found = motif_chains(x, anchor=anchor, **options, engine=fast_engine)
                wanted = [chain[cut:]] * (len(chain) - cut > 1)
                assert [one.positions.tolist() for one in found] == wanted
                assert [one.distances.tolist() for one in found] == [steps[cut:]] * len(wanted)
    long = motif_chains(x, window=5, exclusion=2, min_length=4, engine=fast_engine)
    assert all(one.positions.size >= 4 for one in long)


@every_case
def test_consensus(rng, fast_engine, kind, normalize):
    series = [make_line(kind, n, rng) for n in (26, 20, 30)]
    series.append(series[0][5:19].copy())
    for few in (series[:2], series[::-1]):
        for length in (5, 12):
            (radius, row, start), matches = reference.consensus(few, length, normalize=normalize)
            if row < 0:
                with pytest.raises(ValueError, match="no consensus"):
                    consensus_motif(few, window=length, normalize=normalize, engine=fast_engine)
                continue
            found = consensus_motif(few, window=length, normalize=normalize, engine=fast_engine)
            assert found[:4] == (length, row, start, radius)
            assert found.positions.tolist() == [place for _, place in matches]
            assert found.distances.tolist() == [distance for distance, _ in matches]
            for points, place, values in zip(few, found.positions, found.values, strict=True):
                assert_array_equal(values, points[place : place + length])


def test_the_series_without_a_finite_window_is_named():
    series = [[1.0, 2, 3, 5], [0, np.nan, 1, 2, np.inf, 4, 4]]
    with pytest.raises(ValueError, match="series 1 of X has no finite window of 3 points"):
        consensus_motif(series, window=3)
    assert consensus_motif(series, window=2, engine="oracle").positions.tolist() == [0, 2]


def test_a_planted_consensus_is_found_with_few_measured_windows(rng, fast_engine):
    """Long windows are joined, few ones measured: both ways lead to the same."""
    pattern = rng.normal(size=30).cumsum()
    series = [rng.normal(size=200 + 10 * k).cumsum() for k in range(4)]
    for k, points in enumerate(series):
        points[20 * k : 20 * k + 30] = (k + 1) * pattern + 0.01 * rng.normal(size=30) + k
    found = consensus_motif(series, window=30, engine=fast_engine)
    assert found.positions.tolist() == [0, 20, 40, 60]
    again = consensus_motif(series[::-1], window=30, engine=fast_engine)
    assert again.radius == found.radius and 3 - again.series == found.series


def test_short_series_are_compared_at_once(rng, monkeypatch, fast_engine):
    """However they come together, the answer is that of each by itself; and there are few runs."""
    module = importlib.import_module("skts.motifs._consensus")
    works = []

    def watched(work, **options):
        works.append(work)
        return run(work, **options)

    monkeypatch.setattr(module, "run", watched)
    series = [rng.integers(0, 3, n).astype(float) for n in rng.integers(5, 30, 40)]
    series[7][2] = series[20][0] = series[39][-1] = np.nan
    for normalize in (True, False):
        options = {"window": 4, "normalize": normalize, "engine": fast_engine}
        answers = []
        for short, at_once, most in ((0, 0, 2**16), (60, 45, 2**16), (2**12, 2**12, 41)):
            monkeypatch.setattr(module, "SHORT", short)
            monkeypatch.setattr(module, "AT_ONCE", at_once)
            works.clear()
            answers.append(consensus_motif(series, **options))
            assert len(works) <= most
        for found in answers[1:]:
            for one, other in zip(found, answers[0], strict=True):
                assert_array_equal(one, other)


@every_case
def test_regimes(rng, fast_engine, kind, normalize):
    x = make_line(kind, 50, rng)
    for length, exclusion, apart, number in ((5, 2, 6, 5), (4, 0, None, 2)):
        found = find_regimes(
            x, window=length, exclusion=exclusion, separation=apart, n_regimes=number,
            normalize=normalize, engine=fast_engine,
        )  # fmt: skip
        nearest = reference.neighbors(x, length, exclusion, "both", normalize=normalize)
        apart = 5 * length if apart is None else apart
        curve = reference.arc_curve(nearest, apart)
        assert_array_equal(found.curve, curve)
        assert found.boundaries.tolist() == reference.boundaries(curve, number - 1, apart)


def test_a_series_without_place_for_a_boundary_is_said(fast_engine, recwarn):
    x = [0, 1, 2, 1] * 2 + [0, 3, 0, 1, 3] * 2
    # 15 windows, of which the first and last 7 hold no boundary
    find_regimes(x, window=4, separation=7, engine=fast_engine)
    find_regimes(x, window=4, n_regimes=1, engine=fast_engine)
    assert not recwarn
    with pytest.warns(
        UserWarning, match="separation=8 windows away from both ends, and the series"
    ):
        find_regimes(x, window=4, separation=8, engine=fast_engine)


def test_series_too_short_for_anything(fast_engine):
    options = {"window": 2, "engine": fast_engine}
    assert motif_chains([1, 2], **options) == []
    with pytest.warns(
        UserWarning, match="no place for a boundary: .* separation=10 windows .* 1 w"
    ):
        found = find_regimes([1, 2], **options)
    assert found.curve.tolist() == [1.0] and found.boundaries.size == 0
    assert mpdist([1, 2], [5, 6], **options) == 0.0
    assert mpdist([1, np.nan], [5, 6], **options) == np.inf
    assert distance_profile([1, 2], [5, 6], engine=fast_engine).tolist() == [0.0]
    assert consensus_motif([[1, 2], [5, 6]], **options).positions.tolist() == [0, 0]


def test_settings_change_nothing(rng, fast_engine):
    x, y = rng.normal(size=(2, 150)).cumsum(axis=1)
    calls = (
        lambda: distance_profile(x[:12], [x, y], engine=fast_engine).tobytes(),
        lambda: mpdist(x, y, window=12, engine=fast_engine),
        lambda: [one.positions.tolist() for one in motif_chains(x, window=12, engine=fast_engine)],
        lambda: str(consensus_motif([x, y], window=12, engine=fast_engine)),
        lambda: find_regimes(x, window=12, engine=fast_engine).curve.tobytes(),
    )
    expected = [call() for call in calls]
    memory = "8 MiB" if fast_engine == "numba" else "256 MiB"
    with config_context(memory=memory, verify=True):
        assert [call() for call in calls] == expected
