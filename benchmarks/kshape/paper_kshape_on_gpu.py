"""k-Shape on a GPU: figures 12 to 20 and table III of Wang et al. (Times-C), with skts.

    python -m benchmarks.kshape.paper_kshape_on_gpu

writes `benchmarks/results/papers-kshape-on-gpu.json`. It takes some two minutes with a GPU.

The paper's sets are not at hand; series are synthetic, of their shapes. Every time is that of an
iteration from labels on the host to labels on the host, series on the device; the paper takes the
mean of ten iterations, we the median. What each figure becomes here:

* figure 12 (whole iteration by set) is `benchmarks/kshape/gpu_kshape.py`;
* figure 13 and table VI (aggregation): the counting sort; members are never moved;
* figures 14 and 15 (centres): our iteration on members against S and all its eigenvectors by cuBLAS
  and cuSOLVER;
* figure 16 and table VII (similarity): the correlations, in GFLOP/s of real transforms;
* figure 17: by length (8,732 series, k = 10, urbanSound8k's) and by number (length 3,750, k = 2,
  MosquitoSound's);
* figure 19: the CPU engine by threads;
* figure 20: by number of clusters;
* table III: the share of each stage.
"""

import os
import time
from statistics import median

import numpy as np

from benchmarks._gpu import keep_rows, make_parser
from benchmarks.kshape.gpu_kshape import check, device_times, iterate, moved_shapes
from skts.engines import SBDAssign, SBDCenters, find_engine, run

LENGTHS = (1_000, 2_000, 4_000, 6_000, 8_000, 10_000)
NUMBERS = (13_988, 55_952, 97_916)
CLUSTERS = (2, 3, 4, 5, 6)


def settled(engine, shapes, k, n_iter=3):
    """Centres and assignment after some iterations."""
    assigned, centers = run(SBDAssign(shapes, shapes.take(slice(0, k))), engine=engine), None
    for _ in range(n_iter):
        before = assigned
        centers, assigned, _ = iterate(engine, shapes, k, assigned, centers)
    return before, centers, assigned


def by(figure, name, n, length, k, rng):
    """One point of a figure that varies a shape."""
    import cupy

    engine = find_engine("cupy")
    shapes, _ = moved_shapes(n, length, k, rng)
    before, centers, assigned = settled(engine, shapes, k)
    elapsed = []
    for _ in range(5):
        before = assigned
        centers, assigned, halves = iterate(engine, shapes, k, assigned, centers)
        elapsed.append(halves)
    times = device_times(engine, shapes, k, assigned, centers)
    whole = median(sum(halves) for halves in elapsed) * 1e3
    flops = 2.5 * 2 * length * np.log2(2 * length) * n * k
    row = {
        "figure": figure,
        "work": name,
        "ms an iteration": whole,
        "aggregation, %": 100 * times["sort"] / whole,
        "centres, %": 100 * (median(h[0] for h in elapsed) * 1e3 - times["sort"]) / whole,
        "assignment, %": 100 * median(h[1] for h in elapsed) * 1e3 / whole,
        "correlations, GFLOP/s": flops / times["correlate"] / 1e6,
        "checked": check(shapes, centers, before, assigned, k, rng),
    }
    engine.prepared.clear()
    cupy.get_default_memory_pool().free_all_blocks()
    return row


def solver(n, length, k, rng):
    """Figure 14: centres from S and all eigenvectors, by cuBLAS and cuSOLVER."""
    from skts.engines.cupy.kshape.centers import dense_eigenvectors

    engine = find_engine("cupy")
    shapes, _ = moved_shapes(n, length, k, rng)
    _, centers, assigned = settled(engine, shapes, k)
    work = SBDCenters(shapes, assigned.labels, assigned.shifts, k, centers)
    values = engine._sbd_series(shapes, 0, n).values
    cancel = np.zeros(1, np.uint8)

    def dense():
        return [
            dense_eigenvectors(
                shapes, values, work.members(c), work.shifts, None, cancel, centered=True
            )[1][0]
            for c in range(k)
        ]

    def milliseconds(function):
        function()
        elapsed = []
        for _ in range(3):
            start = time.perf_counter()
            found = function()
            elapsed.append(time.perf_counter() - start)
        return median(elapsed) * 1e3, found

    slow, vectors = milliseconds(dense)
    fast, found = milliseconds(lambda: run(work, engine=engine).values)
    found = found.reshape(k, -1) / np.sqrt(length)
    worst = max(1 - abs(float(a @ b)) for a, b in zip(found, vectors, strict=True))
    engine.prepared.clear()
    return {
        "figure": "14",
        "work": f"centres, {n:,} x {length:,}, k = {k}",
        "ms": fast,
        "ms by all eigenvectors": slow,
        "ratio": slow / fast,
        "checked": f"{'' if worst < 1e-10 else 'FAILED: '}1 - |cosine| {worst:.0e}",
    }


def threads(n, length, k, rng):
    """Figure 19: the CPU engine."""
    shapes, _ = moved_shapes(n, length, k, rng)
    expected = None
    for count in sorted({1, 2, 4, 8, os.cpu_count()}):
        if count > os.cpu_count():
            continue
        elapsed = []
        assigned = run(SBDAssign(shapes, shapes.take(slice(0, k))), engine="numba", n_jobs=count)
        for _ in range(3):
            start = time.perf_counter()
            work = SBDCenters(shapes, assigned.labels, assigned.shifts, k)
            centers = run(work, engine="numba", n_jobs=count)
            assigned = run(SBDAssign(shapes, centers), engine="numba", n_jobs=count)
            elapsed.append(time.perf_counter() - start)
        expected = centers.values if expected is None else expected
        same = np.array_equal(centers.values, expected)
        yield {
            "figure": "19",
            "work": f"CPU, {n:,} x {length:,}, k = {k}, {count} threads",
            "ms an iteration": median(elapsed) * 1e3,
            "checked": "bits of one thread" if same else "FAILED: other bits than one thread",
        }


def rows(rng):
    """All figures."""
    for length in LENGTHS:
        yield by("17a", f"8,732 x {length:,}, k = 10", 8_732, length, 10, rng)
    for n in NUMBERS:
        yield by("17b", f"{n:,} x 3,750, k = 2", n, 3_750, 2, rng)
    for k in CLUSTERS:
        yield by("20", f"50,000 x 600, k = {k}", 50_000, 600, k, rng)
    yield solver(50_000, 600, 10, rng)
    yield solver(2_000, 1_024, 3, rng)
    yield from threads(5_000, 600, 10, rng)


def main():
    options = make_parser(__doc__, "papers-kshape-on-gpu.json").parse_args()
    found = rows(np.random.default_rng(0))
    keep_rows("k-Shape on a GPU, the paper's figures", found, options)


if __name__ == "__main__":
    main()
