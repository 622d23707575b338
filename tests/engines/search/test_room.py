"""How much of a tile of a search is on the GPU at a time, by the budget that was asked for."""

from __future__ import annotations

import importlib

import numpy as np
import pytest

from skts import config_context
from skts.engines import LongSeries, find_engine, run
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


@pytest.mark.gpu
def test_a_part_tells_when_it_has_been_searched(rng, monkeypatch):
    """The copy of a part that comes into its memory waits for that."""
    upload = importlib.import_module("skts.engines.cupy.search.upload")
    searching = importlib.import_module("skts.engines.cupy.search.subsequence")
    series = LongSeries((rng.normal(size=10_000),))
    work = SubsequenceNeighbors((rng.normal(size=20),), series, n_neighbors=2)
    expected, told, firsts = run(work, engine="cupy"), [], []

    class Used:
        """An event that writes down that it was recorded."""

        def __init__(self, first, event):
            self.first, self.event = first, event

        def record(self):
            told.append(self.first)
            self.event.record()

    def upload_parts(*given):
        for part in upload.upload_parts(*given):
            firsts.append(part.first)
            yield part._replace(used=Used(part.first, part.used))

    monkeypatch.setattr(searching, "upload_parts", upload_parts)
    monkeypatch.setattr(importlib.import_module("skts.engines.cupy.search.room"), "WINDOWS", 4096)
    found = run(work, engine="cupy")
    assert len(firsts) >= 3
    assert min(firsts) == 0
    assert sorted(told) == sorted(firsts)
    for one, other in zip(found[0], expected[0], strict=True):
        np.testing.assert_array_equal(one, other)
