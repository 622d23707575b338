"""A cost model of every reduction, from one machine to many: measured, fitted, predicted.

    python -m benchmarks.scaling measure --engine cupy --devices 1 2
    python -m benchmarks.scaling measure --engine numba --threads 1 2 4 --processes 2
    python -m benchmarks.scaling tables

``measure`` runs a ladder of sizes of each reduction through `skts.engines.run`, compares every
answer with that of one worker, bit by bit, and writes `benchmarks/results/scaling-ENGINE.json`.
``tables`` reads these records, fits the model to the runs of one worker alone, and writes the
tables of `docs/developer/scaling.rst`: measured against predicted for all runs, and what the model
says of 8 GPUs and of 100 machines. No number of that page is written by hand.
"""

import argparse
import json
import time
from contextlib import nullcontext
from pathlib import Path

import numpy as np
from joblib import parallel_config
from scipy.optimize import nnls

from benchmarks import _records
from skts import config_context
from skts.engines import (
    ConcatenatedSeries,
    DTWMatrix,
    DTWNeighbors,
    Join,
    SBDAssign,
    Series,
    Shapes,
    Warping,
    run,
)

TABLES = _records.ROOT / "docs" / "developer" / "scaling_tables.inc"
#: Sizes on a GPU and on the CPU: (series, series, points), or (points, window) of a line.
LADDERS = {
    "cupy": {
        "DTWNeighbors": [
            (1000, 20_000, 200),
            (5000, 20_000, 200),
            (20_000, 5000, 200),
            (10_000, 10_000, 400),
            (20_000, 20_000, 200),
        ],
        "DTWMatrix": [(2000, 4000, 128), (4000, 8000, 128), (3000, 3000, 512)],
        "Join": [(500_000, 128), (1_000_000, 128), (2_000_000, 128), (4_000_000, 128)],
        "SBDAssign": [(50_000, 20, 512), (100_000, 40, 512), (50_000, 60, 1024)],
    },
    "numba": {
        "DTWNeighbors": [(100, 1000, 200), (300, 1000, 200), (400, 2000, 200), (200, 500, 400)],
        "DTWMatrix": [(200, 500, 128), (400, 1000, 128), (300, 300, 256)],
        "Join": [(20_000, 128), (40_000, 128), (80_000, 128)],
        "SBDAssign": [(5000, 10, 512), (10_000, 20, 512), (5000, 20, 1024)],
    },
}
MERGING = "seconds of merging"
#: What is predicted: larger than what has been run.
WISHES = {
    "DTWNeighbors": [(100_000, 100_000, 200), (1_000_000, 1_000_000, 200)],
    "DTWMatrix": [(50_000, 50_000, 128)],
    "Join": [(16_000_000, 128), (100_000_000, 128)],
    "SBDAssign": [(10_000_000, 100, 512)],
}
#: Assumed, not measured: bytes a second of one link of a cluster, through which arrays are sent.
NETWORK = 1.25e9
GPUS_OF_A_MACHINE = 8
KINDS = {
    "devices": ("GPU", "GPUs"),
    "threads": ("thread", "threads"),
    "processes": ("process", "processes"),
}
MACHINES = 100


def make(name, size, rng):
    """A reduction of a size, of random walks; without `rng` its form alone, which takes nothing."""

    def walks(*shape):
        if rng is None:
            return np.broadcast_to(0.0, shape)
        return rng.standard_normal(shape).cumsum(axis=-1)

    if name == "Join":
        points, window = size
        line = ConcatenatedSeries(walks(points), np.zeros(1, np.int64), np.array([points]))
        return Join(line, None, window, window // 4)
    rows, cols, length = size
    if name == "SBDAssign":
        sides = [Shapes(walks(n, 1, length), np.full(n, 1.0)) for n in (rows, cols)]
        if rng is not None:
            sides = [Shapes.of(shapes.values) for shapes in sides]
        return SBDAssign(*sides)
    sides = [Series(walks(n, 1, length), np.full(n, length)) for n in (rows, cols)]
    return DTWNeighbors(*sides, 3) if name == "DTWNeighbors" else DTWMatrix(*sides, Warping())


def arrays_of(thing):
    """All arrays in a result."""
    if isinstance(thing, np.ndarray):
        return [thing]
    return [a for part in thing for a in arrays_of(part)] if isinstance(thing, tuple) else []


def costs(name, size):
    """Cells that are computed, and bytes that go in and come out."""
    work = make(name, size, None)
    rows, cols = work.shape
    cells = rows * cols * work.step_work // (2 if name == "Join" else 1)
    if name == "Join":
        return cells, 8 * size[0], 16 * rows
    given = 8 * (size[0] + size[1]) * size[2]
    answer = {"DTWNeighbors": 16 * 3 * rows, "DTWMatrix": 8 * rows * cols, "SBDAssign": 16 * rows}
    return cells, given, answer[name]


def watched(kind, spent):
    """Let a reduction count what it merges: seconds, bytes, results, and tiles without one."""
    merge = kind.merge

    def counting(self, total, tile, result):
        start = time.perf_counter()
        merge(self, total, tile, result)
        spent[0] += time.perf_counter() - start
        spent[1] += sum(array.nbytes for array in arrays_of(result))
        spent[3 if result is None else 2] += 1

    kind.merge = counting
    return lambda: setattr(kind, "merge", merge)


def settings(engine, arguments):
    """Ways to run: what is written of each, the context for it, and its threads."""
    if engine == "cupy":
        for count in arguments.devices:
            yield {"devices": count}, lambda c=count: config_context(devices=range(c)), None
        return
    for count in arguments.threads:
        yield {"threads": count}, nullcontext, count
    for count in arguments.processes:
        yield {"processes": count}, lambda c=count: parallel_config("loky", n_jobs=c), None


def keep(rows, arguments):
    """Write the record of what has been run."""
    if arguments.engine == "cupy":
        from benchmarks._gpu import device_and_versions

        device, versions = device_and_versions()
    else:
        device, versions = _records.cpu(), _records.versions("numpy", "numba", "joblib")
    path = Path(arguments.output or _records.RESULTS / f"scaling-{arguments.engine}.json")
    content = _records.record(
        path.stem, device=device, versions=versions, rows=rows, commit=arguments.commit
    )
    _records.write(path, content)


def measure(arguments):
    """Run the ladders, and write their record after each run."""
    engine, rng, rows = arguments.engine, np.random.default_rng(0), []
    for name in arguments.works or LADDERS[engine]:
        for size in LADDERS[engine][name]:
            reduction, expected = make(name, size, rng), None
            for how, context, n_jobs in settings(engine, arguments):
                times, merged = [], []
                # the first run loads kernels; the others begin with new arrays
                for attempt in range(1 + arguments.repeats):
                    if engine == "cupy" or attempt == 0:
                        fresh = copied(reduction)
                    spent = [0.0, 0, 0, 0]
                    restore = watched(type(reduction), spent)
                    try:
                        with context():
                            start = time.perf_counter()
                            found = run(fresh, engine=engine, n_jobs=n_jobs)
                            times.append(time.perf_counter() - start)
                    finally:
                        restore()
                    merged.append(spent)
                answer = arrays_of(tuple(found) if isinstance(found, tuple) else found)
                expected = expected or answer
                if not all(map(np.array_equal, answer, expected)):
                    raise AssertionError(f"{name} {size} {how} differs from one worker")
                cells, given, answered = costs(name, size)
                best = 1 + int(np.argmin(times[1:]))
                row = {
                    "reduction": name,
                    "size": list(size),
                    **how,
                    "seconds": times[best],
                    "first run": times[0],
                    "cells": cells,
                    "bytes given": given,
                    "bytes answered": answered,
                    "bytes merged": merged[best][1],
                    MERGING: merged[best][0],
                    # where devices keep what they find, it comes in other pieces at the end
                    "tiles": merged[best][3] or merged[best][2],
                    "checked": "bits of one worker",
                }
                rows.append(row)
                print(name, size, how, f"{row['seconds']:.3f} s, {row['tiles']} tiles", flush=True)
                keep(rows, arguments)


def copied(reduction):
    """The same work with arrays of its own, from which nothing has been prepared."""
    from dataclasses import fields

    def copy(value):
        if isinstance(value, Series | Shapes):
            parts = (getattr(value, field.name) for field in fields(value))
            return type(value)(*(part if part is None else part.copy() for part in parts))
        return (
            ConcatenatedSeries(value.points.copy(), *value[1:])
            if isinstance(value, ConcatenatedSeries)
            else value
        )

    found = {field.name: copy(getattr(reduction, field.name)) for field in fields(reduction)}
    return type(reduction)(**found)


def workers_of(row):
    """Devices, threads or processes of a run."""
    return next(row[key] for key in KINDS if key in row)


def terms(name, size, workers):
    """The factor of each coefficient of the model."""
    cells, given, answered = costs(name, size)
    return np.array([1.0, cells / workers, given, answered])


def fit(rows, name):
    """Seconds to start, of a cell, of a byte that goes in, and of one that comes out.

    The last is the time that was measured inside of merging; the others are least squares of
    relative errors of what is left. Runs of one worker.
    """
    chosen = [r for r in rows if r["reduction"] == name and workers_of(r) == 1]
    chosen = [r for r in chosen if "processes" not in r]
    A = np.array([terms(name, r["size"], 1) for r in chosen])
    total, merging = (np.array([r[key] for r in chosen]) for key in ("seconds", MERGING))
    merged = float(merging @ A[:, 3] / (A[:, 3] @ A[:, 3]))
    A = A[:, :3] / total[:, np.newaxis]
    scale = A.max(axis=0)
    found = nnls(A / scale, 1 - merging / total)[0] / scale
    return np.append(found, merged)


def predict(model, name, size, workers, *, machines=1):
    """Seconds: cells are shared, bytes are not; over a network arrays go to all machines."""
    seconds = float(model @ terms(name, size, workers))
    if machines > 1:
        _, given, answered = costs(name, size)
        # a broadcast takes as many rounds as machines can be doubled; answers come to one place
        seconds += (given * np.ceil(np.log2(machines)) + answered) / NETWORK
    return seconds


def written(size, name):
    """A size for people."""
    if name == "Join":
        return f"{size[0]:,} points, window {size[1]}"
    return f"{size[0]:,} x {size[1]:,} x {size[2]}"


def seconds(value):
    """A time for people."""
    if value < 120:
        return f"{value:.3g} s"
    return f"{value / 60:.3g} min" if value < 7200 else f"{value / 3600:.3g} h"


def table(header, rows):
    """A list-table of reStructuredText."""
    lines = [".. list-table::", "   :header-rows: 1", ""]
    for row in [header, *rows]:
        lines += [("   * - " if i == 0 else "     - ") + str(cell) for i, cell in enumerate(row)]
    return [*lines, ""]


def tables(arguments):
    """Write the tables of the page."""
    lines = [".. Written by python -m benchmarks.scaling tables; do not edit.", ""]
    for engine in ("cupy", "numba"):
        paths = sorted(_records.RESULTS.glob(f"scaling-{engine}*.json"))
        records = [json.loads(path.read_text()) for path in paths]
        rows = [row for record in records for row in record["rows"]]
        if not rows:
            continue
        names = list(dict.fromkeys(row["reduction"] for row in rows))
        models = {name: fit(rows, name) for name in names}
        worker = "GPU" if engine == "cupy" else "thread"
        title = f"{records[0]['device']}, engine {engine}"
        lines += [title, "-" * len(title), ""]
        for record in records:
            names_here = ", ".join(dict.fromkeys(row["reduction"] for row in record["rows"]))
            recorded = f"recorded {record['date'][:10]} at commit {record['commit']}"
            lines += [f"{names_here}: {recorded}, {record['machine']['cores']} cores.", ""]
        lines += table(
            [
                *("reduction", "to start", f"cells a second of one {worker}"),
                *("bytes in a second", "bytes out a second, merged"),
            ],
            [
                [name, seconds(start), rate(cell, "cells"), rate(given, "B"), rate(out, "B")]
                for name, (start, cell, given, out) in models.items()
            ],
        )
        lines += ["Measured against the model, which was fitted to one worker alone:", ""]
        lines += table(
            ["reduction", "size", "workers", "measured", "model", "against one", "merging"],
            [checked_row(row, rows, models[row["reduction"]]) for row in rows],
        )
        if engine == "cupy":
            lines += ["Predicted:", ""]
            lines += table(
                [
                    *("reduction", "size", "1 GPU", f"{GPUS_OF_A_MACHINE} GPUs"),
                    f"{MACHINES} machines of {GPUS_OF_A_MACHINE}",
                ],
                [
                    predicted_row(models[name], name, size)
                    for name in names
                    for size in WISHES[name]
                ],
            )
    TABLES.write_text("\n".join(lines).rstrip() + "\n")
    print(f"written: {TABLES.name}")


def rate(cost, unit):
    """The work of one second."""
    if cost == 0:
        return "no share seen"
    for power, prefix in ((1e12, "T"), (1e9, "G"), (1e6, "M")):
        if 1 / cost >= power:
            return f"{1 / cost / power:.3g} {prefix}{unit}"
    return f"{1 / cost:.3g} {unit}"


def checked_row(row, rows, model):
    """A run beside what the model says of it, and beside the run of one worker."""
    name, size, workers = row["reduction"], row["size"], workers_of(row)
    kind = next(key for key in KINDS if key in row)
    one = next(
        r["seconds"]
        for r in rows
        if r["reduction"] == name and r["size"] == size and workers_of(r) == 1
    )
    label = f"{workers} {KINDS[kind][workers > 1]}"
    return [
        *(name, written(size, name), label, seconds(row["seconds"])),
        seconds(predict(model, name, size, workers)),
        f"{one / row['seconds']:.2f} x",
        f"{100 * row[MERGING] / row['seconds']:.0f} %",
    ]


def predicted_row(model, name, size):
    """Predictions of the model for more than has been run."""
    everywhere = GPUS_OF_A_MACHINE * MACHINES
    return [
        *(name, written(size, name)),
        seconds(predict(model, name, size, 1)),
        seconds(predict(model, name, size, GPUS_OF_A_MACHINE)),
        seconds(predict(model, name, size, everywhere, machines=MACHINES)),
    ]


def main():
    """Read the command line."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parts = parser.add_subparsers(required=True)
    part = parts.add_parser("measure")
    part.add_argument("--engine", choices=list(LADDERS), default="numba")
    part.add_argument("--devices", type=int, nargs="*", default=[1])
    part.add_argument("--threads", type=int, nargs="*", default=[1])
    part.add_argument("--processes", type=int, nargs="*", default=[])
    part.add_argument("--works", nargs="*")
    part.add_argument("--repeats", type=int, default=2)
    part.add_argument("--commit")
    part.add_argument("--output")
    part.set_defaults(do=measure)
    parts.add_parser("tables").set_defaults(do=tables)
    arguments = parser.parse_args()
    arguments.do(arguments)


if __name__ == "__main__":
    main()
