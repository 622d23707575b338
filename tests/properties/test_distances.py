"""Properties of distances by definition."""

from __future__ import annotations

from itertools import pairwise

import numpy as np
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st
from numpy.testing import assert_array_equal

from skts.metrics import dog_keeper, dtw, dtw_path, lb_keogh, pairwise_dtw, pairwise_sbd, sbd
from tests.properties.strategies import few, powers, series, sets

DISTANCES = {"dtw": dtw, "dog_keeper": dog_keeper}
metrics = st.sampled_from(sorted(DISTANCES))
costs = st.sampled_from(["squared", "absolute"])
bands = st.one_of(st.none(), st.integers(0, 12), st.floats(0, 1))
TURNED = {"global": "global", "subsequence": "supersequence", "supersequence": "subsequence"}


@few
@given(series(), series(), metrics, costs, bands)
def test_symmetry(fast_engine, x, y, metric, cost, window):
    options = {"cost": cost, "window": window, "engine": fast_engine}
    there, back = (DISTANCES[metric](*pair, **options) for pair in ((x, y), (y, x)))
    assert there == pytest.approx(back, rel=1e-12, abs=0)


@few
@given(series(), series(), metrics, costs, st.sampled_from(sorted(TURNED)))
def test_alignments_turn_round(fast_engine, x, y, metric, cost, alignment):
    distance = DISTANCES[metric]
    there = distance(x, y, cost=cost, alignment=alignment, engine=fast_engine)
    back = distance(y, x, cost=cost, alignment=TURNED[alignment], engine=fast_engine)
    assert there == pytest.approx(back, rel=1e-12, abs=0)


@few
@given(series(), metrics, costs, bands)
def test_identity(fast_engine, x, metric, cost, window):
    assert DISTANCES[metric](x, x, cost=cost, window=window, engine=fast_engine) == 0


@few
@given(series(), st.lists(st.integers(1, 3), min_size=20, max_size=20), metrics)
def test_repeated_points_cost_nothing(fast_engine, x, times, metric):
    stretched = np.repeat(x, times[: len(x)])
    assert DISTANCES[metric](x, stretched, engine=fast_engine) == 0


@few
@given(series(), series(), series(), costs)
def test_triangle_inequality_of_the_dog_keeper(fast_engine, x, y, z, cost):
    """Costs are roots: of squared differences and sums of absolute ones, both are metrics."""
    d = {
        (a, b): dog_keeper(p, q, cost=cost, engine=fast_engine)
        for (a, p), (b, q) in [((0, x), (1, y)), ((1, y), (2, z)), ((0, x), (2, z))]
    }
    assert d[0, 2] <= (d[0, 1] + d[1, 2]) * (1 + 1e-12)


@few
@given(series(), series(), metrics, costs)
def test_wider_bands_are_no_farther(fast_engine, x, y, metric, cost):
    n = max(len(x), len(y))
    found = [
        DISTANCES[metric](x, y, cost=cost, window=r, engine=fast_engine)
        for r in (*range(0, n + 1, max(1, n // 5)), n, None)
    ]
    assert all(b <= a * (1 + 1e-12) for a, b in pairwise(found))
    assert found[-2] == found[-1]


@few
@given(sets(2, 2, equal=True), bands)
def test_warping_is_at_most_euclid(fast_engine, pair, window):
    x, y = pair
    euclid = np.sqrt(np.sum((x - y) ** 2))
    assert dtw(x, y, window=window, engine=fast_engine) <= euclid * (1 + 1e-12)
    assert dtw(x, y, window=0, engine=fast_engine) == pytest.approx(euclid, rel=1e-12)
    largest = np.abs(x - y).max()
    assert dog_keeper(x, y, window=window, engine=fast_engine) <= largest * (1 + 1e-12)


@few
@given(series(), series(), metrics, costs)
def test_parts_are_at_most_the_whole(fast_engine, x, y, metric, cost):
    distance = DISTANCES[metric]
    whole = distance(x, y, cost=cost, engine=fast_engine)
    for alignment in ("subsequence", "supersequence"):
        part = distance(x, y, cost=cost, alignment=alignment, engine=fast_engine)
        assert part <= whole * (1 + 1e-12)


@few
@given(series(), series(), metrics, costs, bands)
def test_bounds_are_below_distances(fast_engine, x, y, metric, cost, window):
    distance = DISTANCES[metric](x, y, cost=cost, window=window, engine=fast_engine)
    for pair in ((x, y), (y, x)):
        bound = lb_keogh(*pair, metric=metric, cost=cost, window=window)
        assert bound <= distance * (1 + 1e-12)


@few
@given(series(), series(), metrics, costs, bands)
def test_costs_along_the_path_are_the_distance(fast_engine, x, y, metric, cost, window):
    path, distance = dtw_path(x, y, metric=metric, cost=cost, window=window, engine=fast_engine)
    costs = np.abs(x[path[:, 0]] - y[path[:, 1]])
    costs = costs**2 if cost == "squared" else costs
    total = costs.sum() if metric == "dtw" else costs.max()
    assert distance == pytest.approx(np.sqrt(total) if cost == "squared" else total, rel=1e-12)
    assert distance == DISTANCES[metric](x, y, cost=cost, window=window, engine=fast_engine)


@few
@given(sets(), metrics, costs, bands, powers)
def test_scales_are_powers_of_two(fast_engine, X, metric, cost, window, power):
    options = {"metric": metric, "cost": cost, "window": window, "engine": fast_engine}
    found = pairwise_dtw(X, **options)
    scaled = pairwise_dtw([np.ldexp(x, power) for x in X], **options)
    assert_array_equal(scaled, np.ldexp(found, power))


@few
@given(sets(), metrics, bands, st.randoms(use_true_random=False))
def test_order_and_company_make_no_difference(fast_engine, X, metric, window, random):
    options = {"metric": metric, "window": window, "engine": fast_engine}
    found = pairwise_dtw(X, X, **options)
    order = random.sample(range(len(X)), len(X))
    shuffled = [X[row] for row in order]
    assert_array_equal(pairwise_dtw(shuffled, shuffled, **options), found[np.ix_(order, order)])
    assert_array_equal(pairwise_dtw(X, **options), found)
    for row, x in enumerate(X):
        assert_array_equal(pairwise_dtw([x], X, **options), found[[row]])
        assert dtw(x, X[0], window=window, engine=fast_engine) == found[row, 0] or metric != "dtw"


@few
@given(sets(equal=True), powers, st.booleans())
def test_shapes_have_no_scale(fast_engine, X, power, normalize):
    options = {"normalize": normalize, "return_shifts": True, "engine": fast_engine}
    distances, shifts = pairwise_sbd(X, **options)
    assert np.all((distances >= 0) & (distances <= 2 + 1e-12))
    scaled = pairwise_sbd([np.ldexp(x, power) for x in X], **options)
    assert_array_equal(scaled[0], distances)
    assert_array_equal(scaled[1], shifts)
    # one channel with norms apart from 0: a series matches itself without a shift
    norms = [np.ptp(x) > 1e-9 if normalize and len(x) > 2 else x.any() for x in X]
    assert np.all(np.abs(np.diag(distances)[norms]) < 1e-12)
    assert not np.diag(shifts)[norms].any()


@few
@given(series(3, 16), st.integers(-12, 12))
def test_a_shift_is_found(fast_engine, x, shift):
    assume(np.abs(x).max() > 0)
    n = 3 * 16
    wide, moved = np.zeros(n), np.zeros(n)
    wide[16 : 16 + len(x)] = x
    moved[16 + shift : 16 + shift + len(x)] = x
    found = sbd(wide, moved, normalize=False, engine=fast_engine)
    assert found.distance == pytest.approx(0, abs=1e-12)
    assert found.shift == shift
