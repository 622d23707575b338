"""The level of series is no part of their shapelets: not a bit of a distance comes from it."""

from __future__ import annotations

import numpy as np
import pytest
from numpy.testing import assert_array_equal

from skts import ShapeletForestClassifier, ShapeletTransformer, ShapeletTreeClassifier
from skts.engines import replace_kernels
from skts.metrics import subsequence_distance


@pytest.fixture
def levels():
    """Series of sixteenths, and the same ones on levels that leave all of their bits."""
    rng = np.random.default_rng(3)
    X = rng.integers(-40, 40, (12, 60)) / 16
    return X, X + 2.0**30 * rng.integers(-3, 4, (12, 1)), np.arange(12) % 2


@pytest.mark.parametrize("by_numpy", [False, True])
def test_distances_of_normalised_windows_have_the_same_bits_on_every_level(
    levels, fast_engine, by_numpy
):
    X, raised, y = levels
    forest = ShapeletForestClassifier(3, min_length=3, random_state=0, engine=fast_engine)
    tree = ShapeletTreeClassifier(min_length=7, length_step=9, engine=fast_engine)
    transformer = ShapeletTransformer(
        40, normalized=1.0, features=("distance", "start"), random_state=0, engine=fast_engine
    )
    with replace_kernels(by_numpy):
        for window in (slice(5, 8), slice(9, 40)):
            for row in range(12):
                found = subsequence_distance(raised[0, window], raised[row], engine=fast_engine)
                assert found == subsequence_distance(X[0, window], X[row], engine=fast_engine)
        found, other = (transformer.fit_transform(each, y) for each in (X, raised))
        assert_array_equal(found, other)
        found, other = (forest.fit(each, y).predict_proba(each) for each in (X, raised))
        assert_array_equal(found, other)
        found, other = (tree.fit(each, y).tree_.threshold for each in (X, raised))
        assert_array_equal(found, other)
