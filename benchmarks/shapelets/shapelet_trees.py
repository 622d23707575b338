"""Shapelet trees of whole data sets: those of one engine beside those of the other.

    SKTS_DATA=<folder> python -m benchmarks.shapelets.shapelet_trees
    SKTS_DATA=<folder> python -m benchmarks.shapelets.shapelet_trees --engine cupy

The first grows the trees on the CPU and writes `benchmarks/results/shapelet-trees.json`: for each
its leaves and a digest of all that it holds. What the output holds already is kept, so the command
can be stopped and started again, also on another machine. The second grows them on a GPU, compares
the digests and writes `shapelet-trees-cupy.json`. The largest sets take a CPU an hour and more, a
GPU some seconds; `--sets` names those to grow, `--patience` the seconds after which no other tree
is begun.

Trees are those of table II of Chang, Deka, Hwu and Roth's paper (its lengths, no logic), and those
of `reference.csv` (a quarter to two thirds of the series), without and with logic. The digest
covers every array of the tree and every shapelet: values, thresholds and what the node looks like
to the last bit; gains, gaps and entropies, which logarithms of the machine go into, to nine digits.
"""

import hashlib
import json
import os
import sys
import time

import numpy as np

from benchmarks import _cores, _records
from benchmarks._gpu import keep_rows, make_parser, verdict
from benchmarks.shapelets.paper_shapelets import TABLE, load, stated, table_lengths, unfitted, work

#: The trees that the CPU engine has grown.
RECORD = _records.RESULTS / "shapelet-trees.json"
NOT_CHECKED = "not checked"


def jobs(folder):
    """Which set, lengths and logic: least work first."""
    found = [(name, table_lengths(name, load(folder, name)[0]), ()) for name in TABLE]
    # all lengths of Haptics keep a CPU busy for hours
    found.append(("Haptics", range(3, load(folder, "Haptics")[0].shape[1] + 1, 20), ()))
    for name, lengths, *_ in stated(folder):
        found += [(name, lengths, logic) for logic in ((), ("and", "or"))]
    return sorted(found, key=lambda job: work(load(folder, job[0])[0], job[1]) * (1 + len(job[2])))


def title(name, lengths, logic):
    """How a record names a tree."""
    joined = " ".join(logic) or "none"
    return f"{name}, lengths {lengths[0]} to {lengths[-1]}, step {lengths.step}, logic {joined}"


def digest(model):
    """A digest of a tree: equal for equal trees."""
    tree, text = model.tree_, hashlib.sha256()
    for name, array in tree._asdict().items():
        loose = name in ("impurity", "weighted_n_node_samples", "value")
        text.update(_bytes(array) if not loose else _rounded(array))
    for shapelet in model.shapelets_:
        text.update(_bytes(shapelet.values) + _bytes(shapelet.threshold))
        text.update(_rounded([shapelet.gain, shapelet.gap]))
        text.update(
            f"{shapelet.series} {shapelet.start} {shapelet.length} {shapelet.channel} "
            f"{shapelet.logic} {shapelet.node}".encode()
        )
    return text.hexdigest()[:16]


def _bytes(numbers):
    """Numbers to the last bit, integers of all widths alike."""
    numbers = np.asarray(numbers)
    wide = np.float64 if numbers.dtype.kind == "f" else np.int64
    return np.ascontiguousarray(numbers, dtype=wide).tobytes()


def _rounded(numbers):
    """Numbers to nine digits."""
    return ",".join(f"{number:.9f}" for number in np.ravel(numbers) + 0.0).encode()


def recorded(path=RECORD):
    """Rows of the trees that the CPU engine has grown, by title."""
    if not path.exists():
        return {}
    return {row["tree"]: row for row in json.loads(path.read_text())["rows"]}


def compared(row, known):
    """How a tree compares with the one that the CPU engine has grown, as text for a record."""
    other = known.get(row["tree"])
    if other is None:
        return NOT_CHECKED
    return verdict(other["digest"] == row["digest"], "the digest of the CPU engine's tree")


def grow(folder, job, engine):
    """One tree, and a row of what there is to say of it."""
    name, lengths, logic = job
    X, y, Z, z = load(folder, name)
    model = unfitted(lengths, logic, engine)
    start = time.perf_counter()
    model.fit(X, y)
    seconds = time.perf_counter() - start
    return {
        "tree": title(*job),
        "seconds of fit": seconds,
        "leaves": model.get_n_leaves(),
        "accuracy": model.score(Z, z),
        "digest": digest(model),
    }


def on_cpu(folder, options):
    """Grow what the record does not hold."""
    path = options.output or RECORD
    done, stop = recorded(path), time.perf_counter() + options.patience
    for job in jobs(folder):
        if options.sets and job[0] not in options.sets:
            continue
        if title(*job) not in done and time.perf_counter() < stop:
            row = grow(folder, job, "numba") | {"cores": len(_cores.available())}
            print(row, flush=True)
            # another process may have grown others meanwhile
            done = recorded(path) | {row["tree"]: row}
            rows = [*done.values()]
            _records.write_cpu(path, "Shapelet trees on the CPU", rows, commit=options.commit)


def on_gpu(folder, options):
    """Rows of the trees of a GPU, each compared with the CPU's."""
    known = recorded()
    for job in jobs(folder):
        if not options.sets or job[0] in options.sets:
            row = grow(folder, job, "cupy")
            yield row | {"checked": compared(row, known)}


def main():
    parser = make_parser(__doc__, "shapelet-trees-cupy.json")
    parser.set_defaults(output=None)
    parser.add_argument("--engine", default="numba", choices=["numba", "cupy"])
    parser.add_argument("--sets", nargs="+", help="trees of these sets only")
    parser.add_argument("--patience", type=float, default=np.inf, help="seconds on the CPU")
    options = parser.parse_args()
    folder = os.environ.get("SKTS_DATA")
    if not folder:
        sys.exit("SKTS_DATA names no folder of data")
    if options.engine == "numba":
        on_cpu(folder, options)
    else:
        options.output = options.output or _records.RESULTS / "shapelet-trees-cupy.json"
        keep_rows("Shapelet trees on a GPU", on_gpu(folder, options), options)


if __name__ == "__main__":
    main()
