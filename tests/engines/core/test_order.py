"""The order of many pairs is that of `numpy.lexsort`, of columns that of `numpy.sort`."""

from __future__ import annotations

import numpy as np
import pytest
from numpy.testing import assert_array_equal

from skts.engines.core.order import MOST_IN_NETWORK, order_of_pairs, sort_columns


@pytest.mark.parametrize("n", [0, 1, 2, 7, 300, 20_000])
@pytest.mark.parametrize("values", ["apart", "ties", "all equal", "infinite"])
def test_pairs_are_ordered_by_query_then_value_then_candidate(rng, n, values):
    pairs = rng.choice(4 * n * n + 1, n, replace=False)
    query, candidate = pairs // (2 * n + 1), pairs % (2 * n + 1)
    value = {
        "apart": rng.random(n),
        "ties": rng.integers(0, 3, n) / 3,
        "all equal": np.zeros(n),
        "infinite": np.where(rng.random(n) < 0.5, np.inf, rng.integers(0, 2, n)),
    }[values]
    order = order_of_pairs(query, candidate, value)
    assert_array_equal(order, np.lexsort((candidate, value, query)))
    assert_array_equal(
        order_of_pairs(query.astype(np.int32), candidate, candidate),
        np.lexsort((candidate, query)),
    )


def test_numbers_of_queries_may_be_large():
    query = np.array([2**62, 3, 2**62])
    assert_array_equal(order_of_pairs(query, np.arange(3), np.array([2.0, 1.0, 1.0])), [1, 2, 0])


@pytest.mark.parametrize("n", range(MOST_IN_NETWORK + 4))
def test_columns_are_sorted(rng, n):
    for values in (rng.random((n, 50)), rng.integers(0, 3, (n, 50)) / 3):
        values[rng.random(values.shape) < 0.3] = np.inf
        assert_array_equal(sort_columns(values.copy()), np.sort(values, axis=0))
