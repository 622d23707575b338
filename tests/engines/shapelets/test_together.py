"""Searches of several nodes at once: answers are those of each by itself."""

from __future__ import annotations

import numpy as np
import pytest

from skts import config_context
from skts.engines import Criterion, Series, ShapeletSearch, find_engine, run, run_all
from skts.engines.core import executor


def searches(rng, count=4):
    """Nodes of a level: disjoint parts of some series."""
    values = rng.normal(size=(24, 1, 12))
    series, labels = Series(values, np.full(24, 12)).freeze(), rng.integers(0, 3, 24)
    return [
        ShapeletSearch(series, members, (3, 4, 7), Criterion(labels[members], np.ones(3)))
        for members in np.array_split(np.arange(24), count)
    ]


@pytest.fixture
def groups(monkeypatch):
    """How many searches were computed together, each time."""
    sizes, together = [], executor.execute_together

    def counted(plans):
        sizes.append(len(plans))
        return together(plans)

    monkeypatch.setattr(executor, "execute_together", counted)
    return sizes


def same(found, expected):
    assert [split.cut for split in found] == [split.cut for split in expected]
    assert [split[1:6] for split in found] == [split[1:6] for split in expected]
    for one, other in zip(found, expected, strict=True):
        np.testing.assert_array_equal(one.distances, other.distances)


def test_searches_together_find_what_each_finds(fast_engine, groups, rng):
    nodes = searches(rng)
    expected = [run(node, engine=fast_engine) for node in nodes]
    same(run_all(nodes, engine=fast_engine), expected)
    assert groups == ([4] if fast_engine == "cupy" else [])
    assert run_all([], engine=fast_engine) == []


@pytest.mark.gpu
def test_as_many_go_on_together_as_there_is_memory_for(groups, rng):
    nodes = searches(rng)
    expected = [run(node, engine="cupy") for node in nodes]
    for memory, sizes in (("100KiB", []), ("500KiB", [2, 2]), ("1MiB", [4])):
        groups.clear()
        with config_context(memory=memory):
            same(run_all(nodes, engine="cupy"), expected)
        assert groups == sizes


@pytest.mark.gpu
def test_where_memory_runs_out_each_is_searched_alone(groups, monkeypatch, rng):
    nodes, engine = searches(rng), find_engine("cupy")
    expected = [run(node, engine=engine) for node in nodes]

    def refuse(*_):
        raise MemoryError

    monkeypatch.setitem(vars(engine), "compute_all", refuse)
    same(run_all(nodes, engine=engine), expected)
    assert groups == [4, 3, 2]


@pytest.mark.gpu
def test_reports_are_of_each_search(groups, rng):
    nodes, parts = searches(rng), []
    expected = [run(node, engine="cupy") for node in nodes]
    with config_context(progress=lambda *counts: parts.append(counts)):
        same(run_all(nodes, engine="cupy"), expected)
    with config_context(verify=True):
        same(run_all(nodes, engine="cupy"), expected)
    assert groups == []
    assert parts == [(1, 1)] * 4
