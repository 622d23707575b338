"""Every method of every engine: its form, its memory, its end when it is told to end."""

from __future__ import annotations

import inspect
import time

import numpy as np
import pytest

from skts.engines import Engine, Tile, engine_names, find_engine
from tests.discovery import engine_methods, reductions
from tests.examples_of_work import small_examples
from tests.waiting import quickest

METHODS = engine_methods()
NAMES = {kind.method for kind in reductions()}
every_method = pytest.mark.parametrize(("engine", "method"), METHODS)
every_method_that_runs = pytest.mark.parametrize(
    ("engine", "method"),
    [pytest.param(*pair, marks=[pytest.mark.gpu] if pair[0] == "cupy" else []) for pair in METHODS],
)


def examples_of(method):
    """Small works that a method computes."""
    table = small_examples()
    return [one.work for kind in reductions() if kind.method == method for one in table[kind]]


def test_every_engine_computes_every_reduction_or_says_that_it_does_not():
    for engine in map(find_engine, engine_names()):
        for kind in reductions():
            has = (engine.name, kind.method) in METHODS
            reason = engine.supports(small_examples()[kind][0].work)
            assert (reason is None) == has
            assert has or kind.__name__ in reason


@every_method
def test_it_is_the_method_of_a_reduction(engine, method):
    assert method in NAMES, f"no reduction names the method {method} of the engine {engine}"


@every_method
def test_its_companions_take_what_the_contract_says(engine, method):
    """``x_bytes(reduction, rows, cols)``, unless an engine counts all alike; lacks and steps."""
    kind = type(find_engine(engine))
    counts = getattr(kind, f"{method}_bytes", None)
    assert (counts is not None) == (kind.footprint is Engine.footprint)
    if counts is not None:
        assert list(inspect.signature(counts).parameters) == ["self", "reduction", "rows", "cols"]
    lacks = getattr(kind, f"{method}_lacks", None)
    if lacks is not None:
        assert list(inspect.signature(lacks).parameters) == ["self", "reduction"]
    steps = getattr(kind, f"{method}_steps", None)
    if steps is not None:
        assert inspect.isgeneratorfunction(steps)
        parameters = inspect.signature(getattr(kind, method)).parameters
        assert list(inspect.signature(steps).parameters) == list(parameters)


@pytest.mark.parametrize("engine", engine_names())
def test_no_companion_is_left_alone(engine):
    for name, one in inspect.getmembers(type(find_engine(engine)), inspect.isfunction):
        method, _, companion = name.rpartition("_")
        steps = companion == "steps" and inspect.isgeneratorfunction(one)
        if name[0] != "_" and (companion in ("bytes", "lacks") or steps):
            assert (engine, method) in METHODS, f"{name} of {engine} belongs to no method"


@every_method_that_runs
def test_memory_is_arithmetic_and_grows_with_the_tile(engine, method):
    """It allocates nothing, so it answers for tiles of any size, at once."""
    engine = find_engine(engine)
    for work in examples_of(method):
        small = sum(engine.footprint(work, *work.cell))
        start = time.thread_time()
        large = engine.footprint(work, 2**20, 2**20)
        assert time.thread_time() - start < 0.2
        assert all(isinstance(number, int | np.integer) for number in large)
        assert 0 <= small <= sum(large)


@every_method_that_runs
def test_a_tile_that_is_cancelled_ends_at_once(engine, method):
    """With anything, and without an error; the next tile is computed as ever."""
    if engine == "oracle":
        pytest.skip("plain loops look at nothing")
    engine = find_engine(engine)
    for work in examples_of(method):
        tile = Tile(0, work.shape[0], 0, work.shape[1])
        engine.compute(work, tile, np.zeros(1, np.uint8))  # compiles

        def cancelled(work=work, tile=tile):
            start = time.perf_counter()
            engine.compute(work, tile, np.ones(1, np.uint8))
            return time.perf_counter() - start

        assert quickest(cancelled) < 1
        engine.compute(work, tile, np.zeros(1, np.uint8))


@every_method
def test_it_is_documented_and_typed(engine, method):
    """Of the engines that ship: the oracle's definitions speak for themselves."""
    function = getattr(type(find_engine(engine)), method)
    if function.__module__.startswith("skts."):
        signature = inspect.signature(function)
        assert inspect.getdoc(function)
        untyped = [p.name for p in signature.parameters.values() if p.annotation is p.empty]
        assert untyped == ["self"]
        assert signature.return_annotation is not signature.empty
