"""Table 3 of Sart and others: light curves whose cycles begin anywhere.

    SKTS_DATA=<folder> python -m benchmarks.elastic.paper_rotation --engine numba
    SKTS_DATA=<folder> python -m benchmarks.elastic.paper_rotation --engine cupy

writes `benchmarks/results/papers-rotation.json`, or with "-on-gpu". The paper classifies 128 light
curves of variable stars against 1,024, all of 1,024 points, by the Euclidean distance (ED) and DTW,
as they are phased and under all rotations (rED, rDTW). Its data are not public in that form; the
curves here are made: Cepheids, RR Lyrae stars and eclipsing binaries, noisy, smoothed, and phased
by where they are brightest, which noise and a second minimum lead astray. So times compare with the
paper's, and accuracies only among each other: on these curves warping does harm, where it helps in
the paper, which each row says. Outlines from the UCR archive in the folder SKTS_DATA, if there is
one, show the same four accuracies on real data: rotation helps ED on all three, as in the paper,
and DTW on leaves alone; warping helps ED on two of three, and rED on planes alone.

Before anything is timed, distances of some pairs are compared with those of all 1,024 shifts; on a
GPU, labels of some queries with those of the CPU engine.
"""

import sys
import time
from itertools import pairwise

import numpy as np

from benchmarks._gpu import verdict
from benchmarks._paper import keep, make_parser, parse, threads
from benchmarks._sets import archive
from benchmarks.elastic.gpu_dtw import as_series
from skts import DTWNearestNeighbor
from skts.engines import DTWMatrix, RotationNeighbors, Warping, run

OUTPUTS = {"numba": "papers-rotation.json", "cupy": "papers-rotation-on-gpu.json"}
POINTS = 1024
#: Seconds of the paper: CPU, GPU, FPGA; those below a second are given as 1.
PAPER = {
    "ED": (2.5, 1.0, 1.0),
    "rED": (43.6 * 60, 55.3, 1.0),
    "DTW": (35.4 * 60, 43.6, 1.0),
    "rDTW": (42 * 86400.0, 22.7 * 3600, 9.54 * 60),
}
#: Outlines of leaves, arrow heads and planes.
OUTLINES = ("OSULeaf", "ArrowHead", "Plane")
PAPER_ACCURACY = {"ED": 0.8047, "rED": 0.8125, "DTW": 0.8672, "rDTW": 0.9141}


def light_curves(count, rng):
    """Curves of three kinds of stars, z-normalised, the brightest moment first."""
    phase = np.arange(POINTS) / POINTS
    X, y = np.empty((count, POINTS)), rng.integers(0, 3, count)
    for i, kind in enumerate(y):
        turned = (phase + 0.03 * rng.normal() * np.sin(2 * np.pi * (phase + rng.random()))) % 1
        if kind == 0:  # Cepheid: a quick rise, a slow fall
            rise = rng.uniform(0.15, 0.35)
            curve = np.where(turned < rise, turned / rise, (1 - turned) / (1 - rise))
        elif kind == 1:  # RR Lyrae: a steeper rise, a fall that flattens
            rise = rng.uniform(0.08, 0.2)
            curve = np.where(
                turned < rise, turned / rise, np.exp(-(turned - rise) * rng.uniform(1, 4))
            )
        else:  # eclipsing binary: two minima
            depths, width = rng.uniform(0.3, 1, 2), rng.uniform(0.03, 0.1)
            curve = -depths[0] * np.exp(-(((turned - 0.25) / width) ** 2))
            curve -= depths[1] * np.exp(-(((turned - 0.75) / width) ** 2))
        noise = rng.normal(scale=rng.uniform(0.5, 2.0) * curve.std(), size=POINTS + 24)
        curve = curve + np.convolve(noise, np.full(25, 1 / 25), "valid")
        curve = np.roll(curve, -int(np.argmax(curve)))
        X[i] = (curve - curve.mean()) / curve.std()
    return X, y


def check(X, Z):
    """Compare some distances with the least of all shifts."""
    for warping in (Warping(), Warping(window=0)):
        for query in range(2):
            some = np.arange(4) + 4 * query
            found = run(
                RotationNeighbors(
                    as_series(Z[query : query + 1]), as_series(X[some]), 4, warping=warping
                ),
                engine="numba",
            )
            shifts = np.array([np.roll(x, -shift) for x in X[some] for shift in range(POINTS)])
            work = DTWMatrix(as_series(Z[query : query + 1]), as_series(shifts), warping)
            least = run(work, engine="numba").reshape(4, POINTS).min(axis=1)
            order = np.lexsort((np.arange(4), least))
            if not (
                np.array_equal(found.indices[0], order)
                and np.array_equal(found.distances[0], least[order])
            ):
                sys.exit("a rotation-invariant distance is not that of the best shift")


def measure(name, data, X, y, Z, z, options):
    """One row for each distance: accuracy and seconds."""
    for distance in PAPER:

        def model(engine, distance=distance):
            return DTWNearestNeighbor(
                window=0 if distance.endswith("ED") else None,
                rotation_invariant=distance.startswith("r"),
                engine=engine,
                n_jobs=options.threads if engine == "numba" else None,
            ).fit(X, y)

        model(options.engine).predict(Z[:1])  # compiles
        elapsed = []
        for _ in range(1 if options.engine == "numba" else 3):
            start, cpu_start = time.perf_counter(), time.process_time()
            labels = model(options.engine).predict(Z)
            elapsed.append((time.perf_counter() - start, time.process_time() - cpu_start))
        seconds, cpu = min(elapsed)
        accuracy = float(np.mean(labels == z))
        row = {"part": "table 3", "set": name, "data": data, "series": len(X), "queries": len(Z)}
        row |= {"points": X.shape[1], "distance": distance, "accuracy": accuracy}
        row["seconds"] = seconds
        if options.engine == "numba":
            row |= {"threads": options.threads, "CPU seconds, all threads": cpu}
            row["checked"] = "distances of 8 pairs by all shifts, before"
        else:
            few = slice(0, 4 if distance == "rDTW" else 16)
            same = np.array_equal(model("numba").predict(Z[few]), labels[few])
            row["checked"] = verdict(same, f"{few.stop} labels as the CPU engine's")
        yield row


def order(accuracies):
    """Names in the order of their accuracies, such as rDTW < ED = rED."""
    names = sorted(accuracies, key=accuracies.get)
    text = names[0]
    for before, name in pairwise(names):
        text += f" {'=' if accuracies[before] == accuracies[name] else '<'} {name}"
    return text


def with_paper(rows):
    """Rows of the light curves beside the paper's, and how the orders of accuracies compare."""
    rows = list(rows)
    mine, theirs = map(order, ({row["distance"]: row["accuracy"] for row in rows}, PAPER_ACCURACY))
    for row in rows:
        name = row["distance"]
        cpu, gpu, fpga = PAPER[name]
        row["paper: accuracy"] = PAPER_ACCURACY[name]
        row |= {"paper: CPU, s": cpu, "paper: GPU, s": gpu, "paper: FPGA, s": fpga}
        row["order of accuracies"] = (
            f"{mine}; the paper: {theirs}" if mine != theirs else "the paper's"
        )
    return rows


def table(options):
    """The light curves."""
    rng = np.random.default_rng(0)
    X, y = light_curves(1024, rng)
    Z, z = light_curves(options.queries, rng)
    check(X, Z)
    yield from with_paper(measure("light curves", "synthetic", X, y, Z, z, options))


def outlines(options):
    """Real outlines."""
    for name in OUTLINES:
        data = archive(name)
        if data:
            yield from measure(name, "real, not of the paper", *data, options)


PARTS = {"table-3": table, "outlines": outlines}


def main():
    parser = make_parser(__doc__, OUTPUTS, PARTS)
    parser.add_argument("--queries", type=int, default=128)
    parser.add_argument("--threads", type=int, default=threads()[-1], help="of the CPU engine")
    options = parse(parser, OUTPUTS)
    rows = (row for part in options.parts for row in PARTS[part](options))
    keep("Rotation-invariant classification (Sart and others): table 3", rows, options)


if __name__ == "__main__":
    main()
