"""What is planned and chosen is recorded, so that a change is seen: memory, work and kernels.

Tests of answers do not notice an estimate that is off by a factor, or a choice that is not made:
the answers are the same. After a change that is meant, write the record anew, and read the
difference::

    python -m tests.engines.core.test_recorded_plans
    SKTS_EMULATE_GPU=1 PYTHONPATH=tests/emulator python -m tests.engines.core.test_recorded_plans
"""

from __future__ import annotations

import inspect
import json
import re
import sys
import zlib
from collections import defaultdict
from itertools import product
from pathlib import Path

import numpy as np
import pytest

from skts import config_context, engines
from skts.engines import (
    ChannelJoin,
    ChannelRule,
    ConcatenatedSeries,
    DilatedShapelets,
    Join,
    LongSeries,
    SubsequenceNeighbors,
    Warping,
    find_engine,
)
from skts.engines.core.plan import Tile
from skts.engines.cupy import programs
from skts.engines.cupy.elastic import programs as elastic
from skts.engines.cupy.elastic import rotation_programs, soft_programs
from skts.engines.cupy.kshape import programs as kshape
from skts.engines.cupy.profile import channel_programs, length_groups
from skts.engines.cupy.profile import programs as profile
from skts.engines.cupy.search import programs as search
from skts.engines.cupy.search.room import SearchRoom
from skts.engines.cupy.shapelets import dilated_programs, match_programs
from skts.engines.cupy.shapelets import programs as shapelets
from skts.engines.cupy.shapelets.tiles import _room_of as room_of_shapelets
from tests.counted import told
from tests.examples_of_plans import planned_works
from tests.examples_of_work import examples, small_examples
from tests.records import EMULATED, plain, write

#: What to do where a test here fails.
MEANT = "if this change is meant, see the head of test_recorded_plans.py"
RECORD = Path(__file__).with_name("recorded_plans.json")
#: Numbers of a reduction that plans are made of, where it has them.
NUMBERS = ("cell", "step_work", "total_work", "result_bytes", "survivor_bytes", "sum_bytes")
NUMBERS = (*NUMBERS, "judging_bytes", "compared_bytes", "at_a_time", "first_batch", "cell_rows")
NUMBERS = (*NUMBERS, "rows_per_cell", "most_points", "least_apart", "block")
#: Reductions of which NumPy may compute what is small, in place of kernels.
SMALL = "ChannelJoin BestShapelets DistanceQuantiles DTWMatrix DTWPairs DTWNeighbors Join MotifPair"
SMALL += " DTWRadiusNeighbors SBDAssign SBDMatrix ShapeletFeatures ShapeletSearch SpacedChannels"
SMALL += " SpacedNeighbors GrowthJoin SubsequenceMatches SubsequenceNeighbors WindowDistances"
SMALL += " TimedJoin WindowKinds"
ENGINES = str(Path(engines.__file__).parent)
#: Functions whose numbers make up footprints and work.
TOLD = re.compile(r"(?<!shared_)bytes|work|at_a_time|at_once|seconds|batch|rows|most|capacity")
#: What tells a kernel that has a name.
NAMED = ("name", "group", "lanes", "shared", "beside", "tabled", "strips")


def works():
    """Examples of every reduction, each with a name."""
    for size, table in (("large", examples()), ("small", small_examples())):
        for kind, several in table.items():
            for number, one in enumerate(several):
                yield f"{kind.__name__} {size} {number}", one.work


def plans():
    """The same, and works that are only planned."""
    yield from works()
    for number, work in enumerate(planned_works()):
        yield f"{type(work).__name__} planned {number}", work


def of_work(work):
    """What the parts of a plan are made of."""
    found = {}
    for name in NUMBERS:
        value = getattr(work, name, None)
        value = plain(value() if inspect.ismethod(value) else value)
        if value is not None:
            found[name] = value
    rows, cols = work.shape
    found["work"] = plain(work.work(Tile(0, -(-rows // 2), cols // 3, cols)))
    return found


def footprints(engine, work):
    """Bytes of tiles of some sizes, with much memory and with little."""
    found = []
    for memory in ("24MiB", "1GiB"):
        with config_context(memory=memory):
            for rows, cols in (work.cell, work.shape, (1, 700), (900, 1), (5000, 3000)):
                found.append(plain(engine.footprint(work, rows, cols)))
    return found


def works_and_footprints():
    engine = find_engine("numba")
    for name, work in plans():
        yield name, of_work(work) | {"numba": footprints(engine, work)}


def footprints_of_a_gpu():
    engine = find_engine("cupy")
    for name, work in plans():
        yield name, footprints(engine, work) if engine.supports(work) is None else None


def with_parts(find):
    """A table, and sums of what each function returned that tells of bytes, rooms or work in it.

    Where a budget cuts a sum off, or another one is larger, footprints tell nothing of it.
    """

    def note(frame, event, returned):
        code = frame.f_code
        if event == "return" and TOLD.search(code.co_name) and code.co_filename.startswith(ENGINES):
            name = code.co_filename.removeprefix(ENGINES).strip("/\\")
            for number in returned if isinstance(returned, tuple | list) else [returned]:
                if isinstance(number, int | float | np.number):
                    several[f"{Path(name).as_posix()} {code.co_name}"].append(float(number))

    several, before = defaultdict(list), sys.getprofile()
    sys.setprofile(note)
    try:
        table = dict(find())
    finally:
        sys.setprofile(before)
    # in any order: some are asked once, by whichever work comes first
    numbers = {name: np.unique(several[name]) for name in sorted(several)}
    return table, {name: plain(told(some, np.arange(some.size))) for name, some in numbers.items()}


class Asked(Exception):
    """Ends a computation where it is asked whether NumPy is to do it."""


def small_works(monkeypatch):
    """Seconds that NumPy is said to take, and whether it may do a work at all."""

    def ask(seconds, *kernels, able=None, **options):
        told.append(plain([*seconds(), able is None or able()]))
        raise Asked

    engine = find_engine("numba")
    for name, module in list(sys.modules.items()):
        if name.startswith("skts.engines.numba.") and hasattr(module, "prefer_numpy"):
            monkeypatch.setattr(module, "prefer_numpy", ask)
    for name, work in works():
        if type(work).__name__ not in SMALL.split():
            continue
        for memory in ("4MiB", "1GiB"):
            told = []
            with config_context(memory=memory), pytest.raises(Asked):
                tile = Tile(0, work.shape[0], 0, work.shape[1])
                engine.compute(work, tile, np.zeros(1, np.uint8))
            yield f"{name} {memory}", told[0]


def changes(choose, values):
    """Where a choice changes: the first value that has it, and what it is."""
    found = []
    for value in values:
        chosen = choose(value)
        if not found or found[-1][1] != chosen:
            found.append([value, chosen])
    return found


def described(kernel):
    """Name and shape of a kernel, price and more."""
    if isinstance(kernel, tuple) and not hasattr(kernel, "_fields"):
        return [described(part) for part in kernel]
    if hasattr(kernel, "_fields"):
        shape = {name: getattr(kernel, name, None) for name in ("name", *kernel._fields)}
        told = shape.items() if shape["name"] is None else ((k, shape.get(k)) for k in NAMED)
        return " ".join(str(value) for _, value in told if value is not None)
    return plain(kernel)


SWEEP = (*range(1, 70), *range(70, 2000, 23))


def pairs_of_series():
    kinds = Warping(), Warping(window=0.1), Warping("dog_keeper", "absolute", 5)
    kinds = (*kinds, Warping(alignment="subsequence"))
    for (type, channels), warping, pairs in product(
        (("float", 1), ("double", 3)), kinds, (50, 2**31)
    ):
        name = f"{type} {channels} {warping} {pairs}"
        for n in (20, 300):
            for choose in (elastic.choose_dtw, elastic.choose_slow):

                def choice(m, choose=choose, n=n, options=(warping, pairs), kind=(type, channels)):
                    reach = options[0].largest_radius(np.array([n]), np.array([m]))
                    chosen = elastic.choose_side(choose, *kind, n, m, options[0], reach, options[1])
                    return described(chosen[:2])

                yield f"{choose.__name__} {name} {n}", changes(choice, SWEEP[::7])


def rotations():
    for channels, n_items in product((1, 4), (9, 10**6)):

        def choice(m, channels=channels, n_items=n_items):
            return described(rotation_programs.choose_turns(channels, 64, m, 40, n_items, "Cell"))

        yield f"{channels} {n_items}", changes(choice, SWEEP)


def joins():
    def line(n):
        return ConcatenatedSeries.of([np.broadcast_to(0.0, n)])

    join = Join(line(2000), None, 20)
    for dtype in (np.float32, np.float64):
        edges = sorted({2**k + d for k in range(4, 22) for d in (-1, 0, 1)})
        yield (
            f"kernel {dtype.__name__}",
            changes(
                lambda n, dtype=dtype: described(profile.choose_join(join, (n, 2 * n), dtype)),
                edges,
            ),
        )
        yield (
            f"height {dtype.__name__}",
            changes(lambda n, dtype=dtype: profile.choose_height((3 * n, n), dtype), edges),
        )
    yield "room", [profile.room(budget) for budget in (0, 2**29, 2**30 - 1, 2**30, 2**33)]
    lines = [line(100) for _ in range(40)]
    for dtype, room in product(("float", "double"), (2**15, 2**16 - 1024, 2**17)):

        def choice(n, dtype=dtype, room=room):
            some = ChannelJoin.of(lines[:n], None, 20, ChannelRule((1,), (0,)))
            kernel = channel_programs.choose_walk(some, dtype, room)
            return [kernel.name, kernel.settle, kernel.file, kernel.shared, kernel.threads]

        yield f"channels {dtype} {room}", changes(choice, range(1, 41, 3))


def transforms():
    for limit in (99 * 1024, 232_448):
        yield (
            f"transform {limit}",
            changes(
                lambda n, limit=limit: described(kshape.choose_transform(n, limit)),
                (*range(1, 34), 50, 97, 128, 300, 1000, 1531, 2709, 5000),
            ),
        )
    yield "product", changes(lambda n: described(kshape.choose_gram(n)), range(1, 10_500, 17))
    yield "names", [kshape.choose_gram(n).names for n in (160, 180, 320, 3000, 6000, 10_000)]


def searches():
    yield "warp", changes(lambda n: described(search.choose_warp(n, "Cell")), range(1, 2100))
    yield "walk", changes(lambda n: described(shapelets.walk_kernel(n)), SWEEP)
    for classes in (2, 30, 300):
        yield (
            f"lines {classes}",
            changes(
                lambda n, classes=classes: described(shapelets.scan_kernel(n, classes)),
                (*SWEEP[::2], *range(2000, 34_000, 1000)),
            ),
        )
    for n in (1, 2, 3, 64, 65, 5000):
        yield (
            f"members {n}",
            [
                *(shapelets.sorted_bytes(n, k) for k in (1, 2, 8, 9, 16, 33)),
                shapelets.most_classes(n),
            ],
        )
    lengths = np.arange(1, 400, 7)
    for columns, width in ((1, 400), (7, 500), (300, 800), (2000, 450)):
        yield f"blocks {columns} {width}", plain(match_programs.blocks_of(lengths, columns, width))
        yield f"bytes {columns} {width}", match_programs.match_bytes(90, 5, 60, columns, 2, width)
    many = np.repeat([5, 9, 30], (3000, 2, 700))
    for columns in (9, 4000):
        parts, units = match_programs.plan(many, many % 2, columns, 200)
        yield f"parts {columns}", [list(part) for part in parts]
        yield (
            f"units {columns}",
            [[len(some), *plain(some[:3]), *plain(some[-3:])] for some in units],
        )


def dilated():
    count = np.repeat([0, 1, 2], (70, 5, 33))
    shapelets = DilatedShapelets(
        np.zeros(int((3 + count).sum())), 3 + count, 1 + count // 2, 0 * count, count != 1
    )
    units, runs = dilated_programs.units_of(shapelets)
    yield "units", plain(units)
    for n_series in (3, 10**7):
        batches = dilated_programs.batches(units, runs, n_series, 9)
        yield f"batches {n_series}", [plain(batch) for batch in batches]
        yield f"bytes {n_series}", dilated_programs.described_bytes(len(runs), n_series, 9)
    soft = soft_programs
    yield "soft", [[soft.weight_bytes(n, 3 * n), soft.edge_bytes(n)] for n in (1, 32, 33, 500)]


def rooms():
    """Amounts of work that are on a GPU at a time, with more memory than works here are given."""
    budgets = [2**k for k in range(20, 38)]
    # points, channels, the least length, lengths, ways; series
    for shape, n in (((60, 1, 10, 20, 1), 40), ((200, 3, 5, 150, 2), 300), ((900, 9, 20, 3, 1), 9)):
        yield (
            f"shapelets {shape} {n}",
            changes(
                lambda budget, of=(shape, n, n): plain(room_of_shapelets(*of, budget)), budgets
            ),
        )
    for n, n_channels in ((20, 1), (700, 1), (33, 4)):
        query = np.zeros((n_channels, n))
        long = LongSeries((np.broadcast_to(0.0, (n_channels, 9000)),))
        work = SubsequenceNeighbors((query,), long, Warping(window=0.1), n_neighbors=1)
        for cols in (5000, 10**8):
            yield (
                f"windows {n} {n_channels} {cols}",
                changes(lambda budget, of=(work, cols): plain(SearchRoom.of(*of, budget)), budgets),
            )


def prices():
    """Choices among many tell little of what each of them costs."""
    for n in (*range(2, 18), 60, 96, 360, 630, 1024, 2000, 3000, 5120, 7200, 10_000):
        for radices in list(kshape.factorings(n))[::2]:
            costs = [kshape._cost(n, threads, radices) for threads in kshape.thread_counts(n)]
            some = np.array([0.0 if cost is None else cost for cost in costs])
            yield (
                f"transform {n} {radices}",
                [costs.count(None), *plain(told(some, np.arange(some.size)))],
            )
    for m, n_items, more in product((3, 40, 300, 1700), (1, 700, 2**31), (0.0, 1.0)):
        for counts in ([4, 16], [8, 32, 64], [40, 48, 56]):

            def steps(group, columns):
                return 50 + columns + 2 * group

            found = elastic.cheapest_shape(counts, m, n_items, steps, more=more)
            yield f"shape {m} {n_items} {more} {counts}", plain(found)


def edges():
    """Choices at the numbers where they change, and beside them."""
    around = sorted(
        {max(1, k * 2**e + d) for k in (1, 5, 8, 20) for e in range(14) for d in (-1, 0, 1)}
    )
    yield "product", changes(lambda n: described(kshape.choose_gram(n)), around)
    yield "product names", [kshape.GramKernel(n, 512).names for n in range(1, 21)]
    yield "short", changes(kshape.short_kernel, range(1, 70))
    yield "walk", changes(lambda n: described(shapelets.walk_kernel(n)), range(1, 1300))
    for n_classes, most in product((1, 2, 40, 390, 1000), (48 * 1024, 220 * 1024)):
        yield (
            f"lines {n_classes} {most}",
            changes(
                lambda n, of=(n_classes, most): described(shapelets.scan_kernel(n, *of)), around
            ),
        )
        n = around[n_classes % len(around)]
        yield f"classes {n} {most}", shapelets.most_classes(n, most)
    # the most classes that there is room for, and one more
    for n in (2049, 5000, 32_768):
        most = shapelets.most_classes(n)
        yield f"full {n}", [described(shapelets.scan_kernel(n, most + d)) for d in (-1, 0, 1)]
    for channels in (1, 2, 3, 8, 16, 17, 64):
        yield f"columns {channels}", [rotation_programs.column_counts(channels)]
        for type in ("float", "double"):
            counts = elastic.column_counts, elastic.offset_counts, elastic.narrow_counts
            yield f"columns {channels} {type}", [plain(of(type, channels)) for of in counts]
            for window in (None, 0, 3, 9, 30):
                warping = Warping(window=window)
                for n in (20, 61):

                    def narrow(m, n=n, of=(type, channels), warping=warping):
                        return described(elastic.choose_narrow(*of, n, m, warping))

                    yield f"narrow {channels} {type} {window} {n}", changes(narrow, range(1, 130))


def lengths():
    """Which lengths are searched together, before and after what is learnt."""
    sizes = length_groups.GroupSizes()
    for step, many in product((1, 2, 5), ((), (80.0, 81.0), (5.0, 4.9), (0.0, 2.0, 3.0, 4.0))):
        for pairs in many:
            for length in (40, 300):
                sizes.learn(length, pairs)
                sizes.add(length + step)
        some = np.arange(30, 400, step)
        found = changes(lambda at, some=some: plain(sizes.group(some, at)), range(some.size))
        yield f"groups {step} {many}", [found[-1], len(found), sum(a for a, _ in found)]
        yield f"factors {step} {many}", [sizes.factor(n) for n in (31, 32, 45, 46, 300)]
        near = [sizes.near(n, n + more) for n in (36, 42, 299, 309) for more in (0, 1, 4)]
        yield f"near {step} {many}", near
    for n in (2**16 - 1, 2**16):
        points = ConcatenatedSeries.of([np.broadcast_to(0.0, n + 19)])
        join = Join(points, None, 20, lengths=np.array([20, 21]))
        room = n * length_groups.WINDOW_BYTES
        yield (
            f"bytes {n}",
            [
                length_groups.bytes_of_lengths(join, rows, capacity)
                for rows, capacity in product((n - 1, n), (2 * room - 2, 2 * room, 2 * room + 1))
            ],
        )


def compiled():
    """How many kernels the compile check compiles of each file, and which."""
    for file, names in sorted(programs.all_kernels().items()):
        numbers = np.array([zlib.crc32(name.encode()) for name in names])
        yield file, [*plain(told(numbers, np.arange(numbers.size)))]


TABLES = (pairs_of_series, rotations, joins, transforms, searches, dilated, rooms)
TABLES = (*TABLES, prices, edges, lengths, compiled)


@pytest.fixture(scope="module")
def record():
    return json.loads(RECORD.read_text())


def agree(found, recorded):
    for name, value in found.items():
        assert json.loads(json.dumps(value)) == recorded.get(name), f"{name}: {MEANT}"
    assert set(found) == set(recorded), MEANT


def test_work_and_memory_are_those_that_are_recorded(record):
    found, parts = with_parts(works_and_footprints)
    agree(found, record["works_and_footprints"])
    agree(parts, record["parts"])


def test_seconds_of_numpy_are_those_that_are_recorded(record, monkeypatch):
    agree(dict(small_works(monkeypatch)), record["small_works"])


@pytest.mark.gpu
@pytest.mark.skipif(not EMULATED, reason="the memory of a GPU depends on which it is")
def test_memory_of_a_gpu_is_that_which_is_recorded(record):
    found, parts = with_parts(footprints_of_a_gpu)
    agree(found, record["footprints_of_a_gpu"])
    agree(parts, record["parts_of_a_gpu"])


@pytest.mark.parametrize("table", TABLES, ids=lambda table: table.__name__)
def test_kernels_are_those_that_are_recorded(record, table):
    agree(dict(table()), record[table.__name__])


def main():
    record = json.loads(RECORD.read_text()) if RECORD.exists() else {}
    if EMULATED:
        record["footprints_of_a_gpu"], record["parts_of_a_gpu"] = with_parts(footprints_of_a_gpu)
    else:
        patch = pytest.MonkeyPatch()
        record["small_works"] = dict(small_works(patch))
        patch.undo()
        record["works_and_footprints"], record["parts"] = with_parts(works_and_footprints)
        for table in TABLES:
            record[table.__name__] = dict(table())
    write(RECORD, record)


if __name__ == "__main__":
    main()
