"""Checks of every reduction, on every back end: the answer does not depend on who finds it."""

from __future__ import annotations

import gc
import importlib
import inspect
import pickle
import re
import threading
import tracemalloc
from concurrent.futures import ThreadPoolExecutor
from dataclasses import fields, is_dataclass

import numpy as np
import pytest
from joblib import parallel_config

from skts import config_context
from skts.engines import (
    AlignmentSums,
    BestShapelets,
    DistanceQuantiles,
    DTWMatrix,
    DTWPairs,
    GroupMatches,
    GroupSplits,
    Reduction,
    ShapeletFeatures,
    SoftDTWGradient,
    SoftDTWMatrix,
    SubgradientSteps,
    SubsequenceMatches,
    Tile,
    find_engine,
    replace_kernels,
    run,
)
from skts.engines.core.execution import compute_area
from skts.engines.core.plan import halve
from skts.engines.core.reduction import Stoppable
from tests.examples_of_work import examples, leaves, reductions, small_examples


@pytest.fixture(scope="module")
def table():
    return examples()


@pytest.fixture(scope="module")
def expected(table):
    """Answers of a plain run on one thread, each found once."""
    known = {}

    def find(kind, engine):
        missing = find_engine(engine).available()
        if missing is not None:
            pytest.skip(missing)
        if (kind, engine) not in known:
            known[kind, engine] = [
                leaves(one.answer(run(one.work, engine=engine, n_jobs=1))) for one in table[kind]
            ]
        return known[kind, engine]

    return find


@pytest.mark.parametrize("kind", reductions())
def test_every_reduction_has_examples(table, kind):
    for one in [*table[kind], *small_examples()[kind]]:
        assert type(one.work) is kind
    assert len(reductions()) >= 17


def test_a_reduction_without_an_example_says_where_to_add_one(table):
    class Toy(Reduction):
        pass

    for examples_of, name in ((table, "examples"), (small_examples(), "small_examples")):
        where = f"add one in `{name}` of tests/examples_of_work.py."
        with pytest.raises(LookupError, match=f"Toy has no example for the tests: {where}"):
            examples_of[Toy]


@pytest.mark.parametrize("kind", reductions())
def test_every_engine_finds_the_answer_of_the_oracle(kind, engine):
    """To rounding, as correlations and centres of k-Shape are not certified."""
    for one in small_examples()[kind]:
        found, expected = (one.answer(run(one.work, engine=e)) for e in (engine, "oracle"))
        for value, right in zip(numbers(found), numbers(expected), strict=True):
            if np.asarray(right).dtype.kind == "f":
                np.testing.assert_allclose(value, right, rtol=1e-9, atol=1e-9)
            else:
                np.testing.assert_array_equal(value, right)


def numbers(answer):
    """Arrays and numbers of an answer, in order."""
    if is_dataclass(answer):
        answer = tuple(getattr(answer, field.name) for field in fields(answer))
    if isinstance(answer, tuple | list):
        return [leaf for part in answer for leaf in numbers(part)]
    return [] if answer is None else [answer]


def kept(engine):
    """Bytes on the host that are traced and those of a device, apart from what can be dropped."""
    engine.prepared.clear()
    used = 0
    if engine.name == "cupy":
        import cupy

        used = cupy.get_default_memory_pool().used_bytes()
    return tracemalloc.get_traced_memory()[0], used


@pytest.mark.parametrize("kind", reductions())
@pytest.mark.parametrize("n_jobs", [1, 2])
def test_an_interrupt_is_heard_and_harms_nothing(
    table, expected, fast_engine, monkeypatch, kind, n_jobs
):
    answer, one = expected(kind, fast_engine)[0], table[kind][0]
    engine = find_engine(fast_engine)
    compute, stopped = engine.compute, threading.Event()

    def interrupted(*arguments):
        result = compute(*arguments)
        if not stopped.is_set():
            stopped.set()
            raise KeyboardInterrupt
        return result

    tracemalloc.start()
    try:
        before = kept(engine)
        with monkeypatch.context() as patch:
            patch.setitem(vars(engine), "compute", interrupted)
            with pytest.raises(KeyboardInterrupt):
                run(one.work, engine=engine, n_jobs=n_jobs)
        assert not engine.prepared._gates
        # but for a few objects of the interpreter
        most = before[0] + 2**14, before[1]
        if any(one > other for one, other in zip(kept(engine), most, strict=True)):
            gc.collect()
            assert all(one <= other for one, other in zip(kept(engine), most, strict=True))
    finally:
        tracemalloc.stop()
    assert leaves(one.answer(run(one.work, engine=engine, n_jobs=n_jobs))) == answer


FILLED = (AlignmentSums, BestShapelets, DistanceQuantiles, GroupMatches, GroupSplits)
FILLED = (*FILLED, ShapeletFeatures, SoftDTWGradient, SoftDTWMatrix, SubgradientSteps)
FILLED = (*FILLED, DTWMatrix, DTWPairs, SubsequenceMatches)


@pytest.mark.parametrize("kind", FILLED)
def test_an_answer_that_is_filled_has_the_size_that_is_checked(table, kind):
    for one in table[kind]:
        assert one.work.result_bytes() == sum(part.nbytes for part in numbers(one.work.start()))


@pytest.mark.parametrize("kind", reductions())
def test_docstrings_name_every_field(kind):
    described = set(re.findall(r"^([\w, ]+) : ", inspect.getdoc(kind), re.MULTILINE))
    described = {name for names in described for name in names.split(", ")}
    assert set(inspect.signature(kind).parameters) == described


@pytest.mark.parametrize("kind", reductions())
@pytest.mark.parametrize("backend", ["threads", "threading", "loky", "dask"])
def test_every_back_end_finds_the_same(
    table, expected, fast_engine, monkeypatch, request, kind, backend
):
    answers = expected(kind, fast_engine)
    monkeypatch.setattr("skts.engines.core.executor.WORTH_SENDING", 0)
    if backend == "dask":
        request.getfixturevalue("dask_cluster")
    shares = []
    for one, answer in zip(table[kind], answers, strict=True):
        with config_context(progress=lambda done, total: shares.append(total)):
            if backend == "threads":
                found = run(one.work, engine=fast_engine, n_jobs=2)
            else:
                with parallel_config(backend, n_jobs=2):
                    found = run(one.work, engine=fast_engine)
        assert leaves(one.answer(found)) == answer
    cut = [
        part < n
        for one in table[kind]
        for part, n in zip(one.work.cell, one.work.shape, strict=True)
    ]
    # what may be stopped stays here, where a GPU takes it in one part
    if backend in ("loky", "dask") and any(cut) and not issubclass(kind, Stoppable):
        assert max(shares) > 1


def test_dask_does_works_of_users(fast_engine, monkeypatch, dask_cluster):
    """One of each kind, here where processes of Dask have been started."""
    from tests.test_contract import BY_DASK, do, same_bits

    monkeypatch.setattr("skts.engines.core.executor.WORTH_SENDING", 0)
    for work in BY_DASK:
        with config_context(engine=fast_engine):
            with parallel_config("threading", n_jobs=1):
                answer = do(work, small=True)
            with parallel_config("dask", n_jobs=2):
                assert same_bits(do(work, small=True), answer), work


@pytest.mark.parametrize("kind", reductions())
def test_tiles_merge_in_any_order(table, expected, fast_engine, kind):
    """Cells of the grid, or few of them together, each as a part of its own that has travelled.

    Where tiles are to be single cells they are.
    """
    answers = expected(kind, fast_engine)
    engine = find_engine(fast_engine)
    for one, answer in zip(table[kind], answers, strict=True):
        work, total = one.work, one.work.start()
        tiles = [Tile(0, work.shape[0], 0, work.shape[1])]
        for _ in range(20 if work.tiling.single else 3):
            tiles = [half for tile in tiles for half in halve(tile, work.cell) or [tile]]
        for tile in reversed([tile for tile in tiles if work.wanted(tile)]):
            part = pickle.loads(pickle.dumps(work.part(tile)))
            # a part is the tile, or as large as all and computed where the tile lies
            area = tile if part.shape == work.shape else Tile(0, part.shape[0], 0, part.shape[1])
            work.merge(total, tile, engine.compute(part, area, np.zeros(1, np.uint8)))
        found = work.finish(total, lambda more: run(more, engine=fast_engine))
        assert leaves(one.answer(found)) == answer


@pytest.mark.parametrize("kind", reductions())
def test_areas_merge_to_the_answer(table, expected, fast_engine, kind):
    for one, answer in zip(table[kind], expected(kind, fast_engine), strict=True):
        work, total = one.work, one.work.start()
        areas = halve(Tile(0, work.shape[0], 0, work.shape[1]), work.cell)
        for area in reversed(areas or [Tile(0, work.shape[0], 0, work.shape[1])]):
            for tile, result in compute_area(work, area, engine=fast_engine, n_jobs=2):
                work.merge(total, tile, result)
        found = work.finish(total, lambda more: run(more, engine=fast_engine))
        assert leaves(one.answer(found)) == answer


#: By module: how much of their work is done in one step.
STEPS = {
    "families.profile.windows": ("MOST_AT_A_TIME", "LEAST_AT_A_TIME"),
    "families.search.every_window": ("_POINTS",),
    "families.elastic.places": ("POINTS",),
    "families.kshape.moments": ("ALIGNED_AT_ONCE",),
    "families.kshape.shapes": ("NORMALIZED_AT_ONCE",),
    "families.shapelets.splits": ("AT_A_TIME",),
    "families.shapelets.best": ("CELLS", "CUT_CELLS"),
    "families.shapelets.search": ("BATCH", "BATCH_CELLS"),
    "families.shapelets.places": ("_TOGETHER", "_MEASURED"),
    "host.by_numpy": ("ENTRIES",),
    "numba.search.tiles": ("_TOGETHER", "ENTRIES"),
    "numba.elastic.by_numpy": ("ENTRIES",),
    "numba.elastic.descriptors": ("_ENTRIES",),
    "numba.elastic.tiles": ("CERTIFIED_POINTS",),
    "numba.kshape.sbd": ("POINTS",),
    "numba.shapelets.by_numpy": ("ENTRIES", "_LINES"),
    "numba.shapelets.dilated_by_numpy": ("ENTRIES",),
}


def test_however_little_is_done_in_one_step(monkeypatch):
    """One entry, where there is room for less than one; by NumPy, where that can."""
    several = [one for kind in reductions() for one in small_examples()[kind]]
    with replace_kernels(always=True):
        answers = [leaves(one.answer(run(one.work, engine="numba"))) for one in several]
        for module, names in STEPS.items():
            for name in names:
                there = importlib.import_module(f"skts.engines.{module}")
                assert getattr(there, name) > 1
                monkeypatch.setattr(there, name, 8 if name == "ENTRIES" else 1)
        for one, answer in zip(several, answers, strict=True):
            assert leaves(one.answer(run(one.work, engine="numba"))) == answer


def state(thing, seen=()):
    """All that an object holds, to any depth, without what is prepared from arrays that live."""
    if isinstance(thing, np.ndarray):
        return leaves(thing)
    if isinstance(thing, dict):
        return {repr(key): state(value, seen) for key, value in thing.items()}
    if isinstance(thing, set):
        return sorted(map(repr, thing))
    if isinstance(thing, list | tuple):
        return [state(one, seen) for one in thing]
    if hasattr(thing, "__dict__") and not callable(thing) and id(thing) not in seen:
        return type(thing).__name__, state(vars(thing), (*seen, id(thing)))
    return repr(thing)


def test_runs_at_the_same_time_share_no_plan(expected, fast_engine):
    """Runs of all kinds and budgets in threads: right answers, and an engine as it was before."""
    for kind in reductions():
        expected(kind, fast_engine)
    engine = find_engine(fast_engine)
    engine.prepared.clear()
    gc.collect()  # arrays of other tests are gone, and do not go meanwhile

    def held():
        """All that the engine holds, but for the free memory that it saw when it last looked."""
        engine.prepared.recount()  # sizes of what has come and gone are summed now
        return {
            name: state(value) for name, value in vars(engine).items() if name != "_left_by_others"
        }

    before = held()
    assert _run_together(fast_engine, lambda kind: expected(kind, fast_engine))
    gc.collect()
    assert held() == before


def test_what_is_prepared_goes_with_the_arrays(fast_engine):
    prepared = find_engine(fast_engine).prepared
    prepared.clear()
    table = small_examples()
    for several in table.values():
        for one in several:
            run(one.work, engine=fast_engine)
    assert len(prepared) > 5
    # a GPU pads what it holds, and has parts in common
    entries = [one for owned in prepared._held.values() for one in owned.entries.items()]
    for key, entry in entries if fast_engine == "numba" else []:
        held = sum(sizes_of(entry.value).values())
        # but for small things
        assert 0.75 * held - 512 <= entry.size <= 1.25 * held + 64, key
        del entry
    del table, several, one, entries
    gc.collect()
    assert [list(owned.entries) for owned in prepared._held.values()] == []


def sizes_of(thing):
    """Bytes of the arrays of something that was prepared, by their places, each once."""
    if hasattr(thing, "nbytes") and hasattr(thing, "shape"):
        return {id(thing): thing.nbytes}
    parts = list(vars(thing).values()) if hasattr(thing, "__dict__") else []
    parts += thing if isinstance(thing, list | tuple) else []
    return {key: size for part in parts for key, size in sizes_of(part).items()}


def _run_together(engine, expected):
    """Whether all examples are right, run in threads with budgets of several sizes."""
    table = examples()
    # a tile of a GPU is larger than one of a thread; the smallest of `BestShapelets` takes 18 MiB
    budgets = [None, "24MiB", "64MiB"] if engine == "numba" else [None, "256MiB", "1GiB"]
    works = [(kind, place) for kind in table for place in range(len(table[kind]))]

    def compute(number):
        kind, place = works[number % len(works)]
        one = table[kind][place]
        with config_context(memory=budgets[number % 3]):
            found = run(one.work, engine=engine, n_jobs=1 + number % 2)
        return leaves(one.answer(found)) == expected(kind)[place]

    with ThreadPoolExecutor(4) as pool:
        return all(pool.map(compute, range(3 * len(works))))


def test_the_plan_of_a_run_is_seen_by_its_own_workers_only(make_series, monkeypatch):
    engine = find_engine("numba")
    own, seen, both = engine.prepared.capacity, {}, threading.Barrier(2, timeout=60)
    compute = engine.dtw_matrix

    def watched(reduction, tile, cancel):
        both.wait()
        seen.setdefault(len(reduction.rows), set()).add(engine.prepared.capacity)
        both.wait()
        return compute(reduction, tile, cancel)

    def run_with(memory, n):
        series = make_series(n, 10)
        with config_context(memory=memory):
            run(DTWMatrix(series, series), engine=engine, n_jobs=1)
        return engine.prepared.capacity

    monkeypatch.setitem(vars(engine), "dtw_matrix", watched)
    with ThreadPoolExecutor(2) as pool:
        assert list(pool.map(run_with, ["32MiB", "2GiB"], [20, 21])) == [own, own]
    assert max(seen[20]) <= 2**25 < 2**30 < min(seen[21])
