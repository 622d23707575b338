"""How much kernels do is recorded, so that a change is seen: launches, candidates and bounds.

A bound that is looser than it has to be, a list that holds too much, or a window that is measured
twice changes no answer. After a change that is meant, write the record anew, and read the
difference::

    python -m tests.engines.core.test_recorded_counts
    SKTS_EMULATE_GPU=1 PYTHONPATH=tests/emulator python -m tests.engines.core.test_recorded_counts

Names of reductions, where not all are to be recorded, come behind that. What another machine rounds
in another way is taken out there, with ``--common``.
"""

from __future__ import annotations

import json
import random
import sys
from contextlib import suppress
from itertools import product
from pathlib import Path

import numba
import pytest

from skts import config_context
from skts.engines import find_engine, run
from skts.engines.core import compiling
from skts.exceptions import MemoryBudgetError
from tests.counted import Done, agreed, alike, fill_memory
from tests.examples_of_kernels import WORKS
from tests.examples_of_plans import counted_works, middle_works
from tests.examples_of_work import examples, reductions, small_examples
from tests.records import EMULATED, plain, write

pytestmark = pytest.mark.skipif(
    sys.platform != "linux", reason="the library of the system does not fill memory"
)
#: What to do where a test here fails.
MEANT = "if this change is meant, see the head of test_recorded_counts.py"
RECORD = Path(__file__).with_name("recorded_counts.json")
#: Reductions whose large works take an emulator of a GPU long.
LONG = "ChannelJoin RotationRadiusNeighbors ShapeletFeatures SoftDTWMatrix SpacedChannels"
LONG += " SpacedNeighbors SubsequenceNeighbors"
#: Whose counted works take it long.
COUNTED_LONG = f"{LONG} DTWMatrix DTWNeighbors"
#: What memory is filled with before kernels use it; and when records are made, so that what they
#: leave in it is known.
FILLED, FILLED_TO_RECORD = 165, (165, 60)


def works_of(size, kind):
    """Works of a kind, made anew: nothing is left of a run before."""
    if size in ("counted", "middle"):
        several = counted_works() if size == "counted" else middle_works()
        return [work for work in several if type(work) is kind]
    return [one.work for one in (small_examples if size == "small" else examples)()[kind]]


def sizes_and_kinds(long="", counted_long=""):
    counted = {type(work) for work in counted_works()}
    for size, kind in product(("small", "large", "counted"), reductions()):
        left_out = {"small": "", "large": long, "counted": counted_long}[size].split()
        if kind.__name__ not in left_out and (size != "counted" or kind in counted):
            yield pytest.param(size, kind, id=f"{size} {kind.__name__}")


def on_a_cpu():
    return list(sizes_and_kinds())


def on_a_gpu():
    middle = sorted({type(work) for work in middle_works()}, key=lambda kind: kind.__name__)
    there = [("middle", kind) for kind in middle] + [("every", work) for work in WORKS]
    there = [pytest.param(size, kind, id=f"{size} {kind.__name__}") for size, kind in there]
    return [*sizes_and_kinds(LONG, COUNTED_LONG), *there]


def counts(monkeypatch, size, kind, filled=FILLED):
    """What kernels of a CPU do, with much memory and with little."""
    done, engine = Done(), find_engine("numba")
    engine.prepared.clear()
    monkeypatch.setattr(compiling, "replaced", False)
    done.watch_compiled(monkeypatch)
    # to make some works calls kernels, too
    fill_memory(filled)
    works = works_of(size, kind)
    for work, memory in product(works, ("256MiB", "12MiB")):
        fill_memory(filled)
        # where no part fits, nothing is counted
        with config_context(memory=memory), suppress(MemoryBudgetError):
            run(work, engine=engine, n_jobs=1)
    return done.told()


def launches(monkeypatch, size, kind, filled=FILLED):
    """Kernels, blocks, threads and shared memory of works done twice on a GPU; what they do."""
    from skts.engines.cupy.launch import Kernel

    call, ready = Kernel.__call__, Kernel.ready

    def note(kernel, grid, block, shared):
        name = kernel.function.name
        seen.add(json.dumps([name, plain(grid), plain(block), int(shared)]))
        return done.watch(name)

    def launch(self, grid, block, arguments=(), /, *, shared_mem=0, **named):
        given = dict(zip(self.names, arguments, strict=False)) | named
        with note(self, grid, block, shared_mem)(given):
            call(self, grid, block, arguments, shared_mem=shared_mem, **named)

    def prepare(self, grid, block, /, *, shared_mem=0, **named):
        watch = note(self, grid, block, shared_mem)
        prepared = ready(self, grid, block, shared_mem=shared_mem, **named)

        def launch():
            with watch(named):
                prepared()

        return launch

    seen, done, engine = set(), Done(), find_engine("cupy")
    engine.prepared.clear()
    monkeypatch.setattr(compiling, "replaced", False)
    monkeypatch.setattr(Kernel, "__call__", launch)
    monkeypatch.setattr(Kernel, "ready", prepare)
    fill_memory(filled)
    if size == "every":  # a generator of answers
        list(kind("cupy"))
    for work in works_of(size, kind) if size != "every" else ():
        if engine.supports(work) is None:
            for _ in range(2):
                fill_memory(filled)
                with config_context(memory="1GiB" if size == "counted" else "256MiB"):
                    run(work, engine=engine, n_jobs=1)
    return [json.loads(launch) for launch in sorted(seen)], done.told()


@pytest.fixture(scope="module")
def record():
    return json.loads(RECORD.read_text())


@pytest.fixture(scope="module", autouse=True)
def restored():
    yield
    fill_memory(0)


def compare(done, recorded):
    assert set(done) == set(recorded), MEANT
    for kernel, numbers in done.items():
        assert alike(numbers, recorded[kernel]), f"{kernel}: {MEANT}"


@pytest.mark.cases
@pytest.mark.compiles  # kernels that count are none of those that other tests compile
@pytest.mark.skipif(numba.config.DISABLE_JIT, reason="kernels are those that are compiled")
@pytest.mark.parametrize(("size", "kind"), on_a_cpu())
def test_kernels_do_what_is_recorded(record, monkeypatch, size, kind):
    found = counts(monkeypatch, size, kind)
    compare(found, record["counts"][f"{size} {kind.__name__}"])


@pytest.mark.gpu
@pytest.mark.skipif(not EMULATED, reason="launches depend on which GPU it is")
@pytest.mark.parametrize(("size", "kind"), on_a_gpu())
def test_launches_are_those_that_are_recorded(record, monkeypatch, size, kind):
    found, done = launches(monkeypatch, size, kind)
    name = f"{size} {kind.__name__}"
    assert alike(found, record["launches"][name]), MEANT
    compare(done, record["counts_of_launches"][name])


def recorded(find, params):
    """Tables by name, found again and again in any order; what is left in memory is left out."""
    tables = {}
    for byte in FILLED_TO_RECORD:
        for param in random.Random(byte).sample(params, len(params)):
            with pytest.MonkeyPatch.context() as patch:
                found = find(patch, *param.values, byte)
            tables[param.id] = agreed(tables.get(param.id, found), found)
    return {param.id: tables[param.id] for param in params}


def main(names):
    def chosen(params):
        return [param for param in params if not names or param.values[1].__name__ in names]

    found = {}
    if EMULATED:
        both = recorded(lambda *of: json.loads(json.dumps(launches(*of))), chosen(on_a_gpu()))
        found["launches"] = {name: seen for name, (seen, _) in both.items()}
        found["counts_of_launches"] = {name: done for name, (_, done) in both.items()}
    else:
        found["counts"] = recorded(counts, chosen(on_a_cpu()))
    record = json.loads(RECORD.read_text()) if RECORD.exists() else {}
    for name, table in found.items():
        there = record.get(name, {})
        if "--common" in sys.argv:
            table = {one: agreed(there[one], row) for one, row in table.items()}
        record[name] = {**there, **table} if names else table
    write(RECORD, record)


if __name__ == "__main__":
    main([name for name in sys.argv[1:] if name != "--common"])
