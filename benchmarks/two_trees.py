"""The same calls of two versions of the package, in turn: is the newer one as fast?

    git worktree add ../before COMMIT
    python -m benchmarks.two_trees --before ../before --engine numba

runs every work in fresh processes that alternate between the two, and prints the median seconds of
each, their ratio, and whether the answers are the same. Nothing else should run on the machine.
It fails where an answer differs, or a work takes more than ``--most`` times as long as before;
``make compare BEFORE=COMMIT`` makes the worktree, too. Works of functions that the older version
does not have are left out. ``--output`` is written after each work, so that a run that is cut off
leaves what it measured.
"""

from __future__ import annotations

import argparse
import contextlib
import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path
from statistics import median

import numpy as np

HERE = Path(__file__).resolve().parent.parent


def works(engine):
    """Name, and a function that does the work and returns what it found, by engine."""
    from skts import (
        DTWCondenser,
        DTWNearestNeighbor,
        KShapeClusterer,
        ShapeletTreeClassifier,
        SubsequenceSearch,
    )
    from skts.datasets import load_gunpoint
    from skts.metrics import pairwise_dtw, pairwise_sbd
    from skts.motifs import matrix_profile

    rng = np.random.default_rng(0)
    gpu = engine == "cupy"
    walks = rng.normal(size=(20_000 if gpu else 300, 427)).cumsum(axis=1)
    walk = rng.normal(size=2_000_000).cumsum()
    n = 400_000 if gpu else 20_000
    X, y = load_gunpoint(split="train", return_X_y=True)
    labels = np.arange(len(walks)) % 3
    few = slice(0, 2_000 if gpu else 150)

    def neighbors(series, **options):
        model = DTWNearestNeighbor(engine=engine, **options).fit(series, labels[: len(series)])
        return lambda: model.kneighbors(n_neighbors=3)

    def shapes(size, k, iterations):
        model = KShapeClusterer(k, n_init=1, max_iter=iterations, random_state=0, engine=engine)
        data = rng.normal(size=size).cumsum(axis=1)
        return lambda: model.fit(data).labels_

    search = SubsequenceSearch(engine=engine, window=0.05).fit(walk[None, : n * 4])
    whole = SubsequenceSearch(engine=engine).fit(walk[None, : n if gpu else 10_000])
    yield "matrix", lambda: pairwise_dtw(walks[few], engine=engine)
    yield "matrix, band", lambda: pairwise_dtw(walks[few], window=0.1, engine=engine)
    channels = walks[few].reshape(-1, 7, 61)[:, :3]
    yield "matrix, 3 channels", lambda: pairwise_dtw(channels, engine=engine)
    yield "neighbours", neighbors(walks[few])
    yield "neighbours, band", neighbors(walks[:, :128] if gpu else walks, window=0.1)
    unequal = [one[: 427 - i % 100] for i, one in enumerate(walks[few])]
    yield "neighbours, lengths", neighbors(unequal, window=0.1)
    yield "rotation", neighbors(walks[: 300 if gpu else 60, :128], rotation_invariant=True)
    yield "profile 128", lambda: matrix_profile(walk[:n], window=128, engine=engine).indices
    yield "profile 1024", lambda: matrix_profile(walk[:n], window=1024, engine=engine).indices

    def raw():
        return matrix_profile(walk[:n], window=128, normalize=False, engine=engine).indices

    yield "profile, raw", raw
    tree = ShapeletTreeClassifier(engine=engine, length_step=1 if gpu else 8)
    yield "tree", lambda: tree.fit(X, y).tree_.threshold
    yield "k-shape", shapes((5_000, 600) if gpu else (500, 256), 10 if gpu else 3, 8)
    yield "k-shape, small", shapes((200, 64), 3, 8)
    yield "sbd", lambda: pairwise_sbd(walks[few][:500], engine=engine)
    yield "search, band", lambda: search.kneighbors(walk[5_000:5_128][None], 5)
    yield "search", lambda: whole.kneighbors(walk[5_000:5_128][None], 5)
    condenser = DTWCondenser(n_prototypes=0.5, engine=engine)
    part = walks[: 1_000 if gpu else 100, :128]
    yield "condenser", lambda: condenser.fit(part, labels[: len(part)]).ranks_
    yield from newer_works(engine, walks, labels, walk)


def newer_works(engine, walks, labels, walk):
    """Works of functions that came later: none where a version does not have them."""
    try:
        from skts import DTWKMeans, ShapeletForestClassifier, ShapeletTransformer
        from skts.metrics import pairwise_distances
        from skts.motifs import matrix_profile
    except ImportError:
        return
    gpu = engine == "cupy"
    few, n = walks[: 1_000 if gpu else 60, :256], 50_000 if gpu else 3_000
    for metric in ("msm", "twe", "erp"):
        yield metric, lambda metric=metric: pairwise_distances(few, metric=metric, engine=engine)
    short = walks[:, :48]
    model = DTWKMeans(5, init=short[:5], max_iter=5, engine=engine)
    yield "k-means", lambda: model.fit(short).labels_
    channels = walk[: 3 * n].reshape(3, n)
    yield "profile, 3 channels", lambda: matrix_profile(channels, window=128, engine=engine).indices
    forest = ShapeletForestClassifier(20, random_state=0, engine=engine)
    yield "forest", lambda: forest.fit(few, labels[: len(few)]).predict(few)
    transformer = ShapeletTransformer(500, random_state=0, engine=engine)
    yield "transformer", lambda: transformer.fit(few, labels[: len(few)]).transform(few)


def digest(found):
    """A digest of an answer, from the bytes of its arrays."""
    import hashlib

    parts = found if isinstance(found, tuple) else (found,)
    return hashlib.sha1(b"".join(np.ascontiguousarray(p).tobytes() for p in parts)).hexdigest()


def measure(engine, seconds, only, clock):
    """Time works in this process and print a line of JSON for each, by kernels alone."""
    # versions without this module have no NumPy in place of kernels
    with contextlib.suppress(ImportError):
        from skts.engines.core import compiling

        compiling.replaced = False
    known = dict(works(engine))
    for name in only or known:
        if name not in known:
            continue
        work = known[name]
        answer = digest(work())
        taken = []
        while len(taken) < 3 or (sum(taken) < seconds and len(taken) < 30):
            begin = clock()
            work()
            taken.append(clock() - begin)
        print(json.dumps({"work": name, "seconds": min(taken), "answer": answer}), flush=True)


def parse():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--before", type=Path, help="folder that holds the older package, skts/")
    parser.add_argument("--engine", default="numba")
    parser.add_argument("--rounds", type=int, default=2)
    parser.add_argument("--seconds", type=float, default=1.0, help="for each work, in a round")
    parser.add_argument("--only", nargs="+", help="names of works, in the order to run them in")
    parser.add_argument("--most", type=float, default=1.1, help="ratio that is still no failure")
    parser.add_argument("--output", type=Path, help="a JSON file, written after each work")
    parser.add_argument("--device", help="its name in the record; the processor's if not given")
    parser.add_argument(
        "--processor-time", action="store_true",
        help="of all threads, in place of the time of a clock: where others use the machine, too",
    )  # fmt: skip
    parser.add_argument(
        "--commits", nargs=2, metavar=("BEFORE", "NOW"),
        help="names of the versions in the record, where their folders are not of git",
    )  # fmt: skip
    parser.add_argument("--measure", action="store_true", help=argparse.SUPPRESS)
    return parser.parse_args()


def main():
    options = parse()
    if options.measure:
        clock = time.process_time if options.processor_time else time.perf_counter
        return measure(options.engine, options.seconds, options.only, clock)
    # a run that `timeout` ends stops its process, too, and prints what it measured
    signal.signal(signal.SIGTERM, lambda *_: sys.exit("terminated"))
    found, only, content = {}, options.only, head(options)
    try:
        for turn in range(2 * options.rounds):
            which = "before" if turn % 2 == 0 else "now"
            for line in one_turn(options, which, only):
                found.setdefault(line["work"], {}).setdefault(which, []).append(line)
                if options.output:
                    content["rows"] = list(compared(found))
                    options.output.write_text(json.dumps(content, indent=1) + "\n")
            only = list(found)
    finally:
        rows = list(compared(found))
        print(f"{'work':22} {'before':>10} {'now':>10} {'ratio':>7}  same answer")
        for name, before, now, same in (row.values() for row in rows):
            print(f"{name:22} {before:10.4f} {now:10.4f} {now / before:7.3f}  {same}", flush=True)
    if failures := list(worse(rows, options.most)):
        sys.exit("\n".join(failures))
    return None


def one_turn(options, which, only):
    """Yield the measured works of one version, each as soon as it is done."""
    tree = options.before.resolve() if which == "before" else HERE
    command = [sys.executable, str(Path(__file__).resolve()), "--measure"]
    command += ["--engine", options.engine, "--seconds", str(options.seconds)]
    command += ["--processor-time"] if options.processor_time else []
    command += ["--only", *only] if only else []
    with subprocess.Popen(
        command, env=os.environ | {"PYTHONPATH": str(tree)}, stdout=subprocess.PIPE,
        text=True, cwd=tree,
    ) as process:  # fmt: skip
        try:
            yield from map(json.loads, process.stdout)
        except BaseException:
            process.kill()
            raise
    if process.returncode:
        sys.exit(f"the measurement of the version {which} failed: see above")


def compared(found):
    """Yield a row for each work that both versions have done: medians of the rounds."""
    for name, each in found.items():
        if len(each) == 2:
            before, now = (
                median(one["seconds"] for one in each[which]) for which in ("before", "now")
            )
            same = len({one["answer"] for which in each.values() for one in which}) == 1
            yield {"work": name, "before": before, "now": now, "same": same}


def head(options):
    """Make the record without its rows: before all works, beside which nothing else should run."""
    from benchmarks._records import cpu, record, revision, versions

    packages = ["numpy", "numba", "scikit-learn"]
    packages += ["cupy-cuda12x", "cupy-cuda13x"] if options.engine == "cupy" else []
    before, now = options.commits or (revision(options.before), None)
    name = f"two versions in turn, engine {options.engine}"
    name += ", processor time" if options.processor_time else ""
    return record(
        name + (f": before {before}" if before else ""),
        device=options.device or cpu(),
        versions=versions(*packages),
        rows=[],
        commit=now,
    )


def worse(rows, most):
    """A sentence for each work that takes too long, or has another answer."""
    for row in rows:
        if row["now"] > most * row["before"]:
            yield f"{row['work']} takes {row['now'] / row['before']:.2f} times as long as before"
        if not row["same"]:
            yield f"{row['work']} has another answer than before"


if __name__ == "__main__":
    main()
