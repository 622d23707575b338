"""How much of a tile of a search is on the GPU at a time, by the budget that was asked for."""

from __future__ import annotations

import numpy as np
import pytest

from skts import config_context
from skts.engines import LongSeries, find_engine
from skts.engines.families.search.subsequence import SubsequenceNeighbors


@pytest.mark.gpu
def test_a_tile_takes_what_was_asked_for_at_the_most():
    """Where nothing was, as much as the largest part takes, so that tiles are never cut for it."""
    engine = find_engine("cupy")
    if engine.available() is not None:
        pytest.skip(engine.available())
    series = LongSeries((np.broadcast_to(0.0, 3_000_000),))
    work = SubsequenceNeighbors((np.arange(50.0),), series, n_neighbors=1)
    with config_context(memory=None):
        shared, full = engine.subsequence_neighbors_bytes(work, 1, work.shape[1])
    assert shared == 0
    assert full > 100 * 2**20
    for budget in (64 * 2**20, 16 * 2**20):
        with config_context(memory=budget):
            workers = engine.workers(None)
            _, each = engine.subsequence_neighbors_bytes(work, 1, work.shape[1])
        assert budget / 4 < workers * each <= budget
