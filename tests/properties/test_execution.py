"""Tiles in any order, of any size, in any number of threads and bytes: one answer."""

from __future__ import annotations

import random
import tracemalloc
from unittest import mock

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.testing import assert_array_equal

import skts
from skts import DTWNearestNeighbor, KShapeClusterer, ShapeletTreeClassifier, SubsequenceSearch
from skts.engines import find_engine
from skts.engines.core import execution, plan
from skts.metrics import pairwise_dtw, pairwise_sbd
from skts.motifs import matrix_profile
from tests.properties.strategies import few


def join(rng, engine):
    x = rng.integers(0, 5, 2500).astype(float)
    found = matrix_profile(x, window=3, k=2, sides=True, engine=engine)
    return [*found[:2], *found.left[:2], *found.right[:2]]


def neighbours(rng, engine):
    X = rng.integers(0, 3, (150, 4)).astype(float)
    model = DTWNearestNeighbor(7, engine=engine).fit(X, np.arange(150) % 3)
    return [*model.kneighbors(), model.transform(X[:5])]


def matrix(rng, engine):
    X = rng.normal(size=(140, 9))
    return [pairwise_dtw(X, engine=engine), pairwise_dtw(X[:30], X, engine=engine)]


def shapes(rng, engine):
    X = rng.normal(size=(600, 12))
    return [*pairwise_sbd(X[:300], X[:5], return_shifts=True, engine=engine)]


def clusters(rng, engine):
    model = KShapeClusterer(3, n_init=1, random_state=0, engine=engine)
    model.fit(rng.normal(size=(300, 16)))
    return [model.labels_, model.shifts_, model.cluster_centers_, model.inertia_]


def search(rng, engine):
    X = [rng.integers(0, 4, n).astype(float) for n in (9000, 5000)]
    model = SubsequenceSearch(window=0.2, engine=engine).fit(X)
    return [*model.kneighbors(rng.normal(size=(3, 8)), 9)]


def tree(rng, engine):
    X, y = rng.integers(0, 4, (24, 10)).astype(float), np.arange(24) % 3
    model = ShapeletTreeClassifier(min_length=3, max_length=6, length_step=3, engine=engine)
    model.fit(X, y)
    return [*model.tree_, model.transform(X)]


WORK = {each.__name__: each for each in (join, neighbours, matrix, shapes, clusters, search, tree)}


def run(name, seed, engine):
    return [np.asarray(part) for part in WORK[name](np.random.default_rng(seed), engine)]


@few
@given(
    st.sampled_from(sorted(WORK)),
    st.integers(0, 3),
    st.sampled_from([1, 2**10, 2**14, 2**18]),
    st.integers(0, 2**31),
)
def test_tiles_in_any_order(fast_engine, name, seed, tile_work, order):
    """Tiles are shuffled before they are handed out, and so merge in any order."""
    wanted = run(name, seed, fast_engine)
    engine = find_engine(fast_engine)
    cut, mixed = plan.plan_tiles, random.Random(order)

    def shuffled(*arguments, **options):
        tiles, workers = cut(*arguments, **options)
        tiles = list(tiles)
        mixed.shuffle(tiles)
        return tiles, workers

    with (
        mock.patch.object(plan, "plan_tiles", shuffled),
        mock.patch.object(plan, "balance", lambda reduction, tiles, workers: tiles),
        mock.patch.object(execution, "INLINE_WORK", mixed.choice([-1, 2**29])),
        mock.patch.object(engine, "tile_work", tile_work),
    ):
        found = run(name, seed, fast_engine)
    for one, other in zip(found, wanted, strict=True):
        assert_array_equal(one, other)


@few
@given(st.sampled_from(sorted(WORK)), st.integers(0, 3), st.integers(13, 24))
def test_budgets(fast_engine, name, seed, power):
    """A budget gives the same answer, or is too small, which is said."""
    wanted = run(name, seed, fast_engine)
    with skts.config_context(memory=2**power):
        try:
            found = run(name, seed, fast_engine)
        except skts.exceptions.MemoryBudgetError as error:
            assert "budget" in str(error) or "memory" in str(error)
            return
    for one, other in zip(found, wanted, strict=True):
        assert_array_equal(one, other)


@pytest.mark.parametrize("k", [1, 100])
def test_equal_distances_stay_within_the_budget(k):
    """Where all distances tie nothing can be ruled out; host memory is what is measured."""
    X = np.tile(np.arange(4.0), (1200, 1))
    model = DTWNearestNeighbor(k, engine="numba").fit(X, np.arange(1200) % 2)
    budget = 2**21
    results = 1200 * k * 16
    with skts.config_context(memory=budget):
        model.kneighbors(X)  # compiles all that the same call needs
        tracemalloc.start()
        found = model.kneighbors(X)
        _, peak = tracemalloc.get_traced_memory()
        tracemalloc.stop()
    assert_array_equal(found[1], np.tile(np.arange(k), (1200, 1)))
    # beside the budget there are the answer, twice while it is put together, and the input
    assert peak <= budget + 3 * results + 4 * X.nbytes
