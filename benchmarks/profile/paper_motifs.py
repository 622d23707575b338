"""Motifs as in the thesis of Kraeva (2020): tables 2 and 3, figures 1 and 2.

    python -m benchmarks.profile.paper_motifs

finds the nearest pair of windows of a random walk (table 2) and of an ECG (table 3), 400,000
points, windows of 128 and 1,024, by the profile and by MK with 10 references, on every engine that
is there; and the speed-up by threads (figure 1) on a quarter of the points. The thesis's figure 2,
the speed-up by multiprocessors of a GPU, cannot be made again: a program cannot choose how many it
is given. The place of the thesis's ECG takes record 100 of the MIT-BIH arrhythmia database, 360 Hz,
where the folder SKTS_DATA has it, and else a synthetic one.

The record, `benchmarks/results/papers-motifs.json`, has the thesis's seconds beside ours. All ways
must find the same pair, or the command fails. Work that would take longer than `--patience`
seconds, by an eighth of the points, is left out and says so.
"""

import argparse
import os
import sys
import time
from pathlib import Path

import numpy as np

from benchmarks import _records
from skts.engines import ConcatenatedSeries, Join, MotifPair, find_engine, run

#: Seconds of the thesis: MK on one core, its own on 12 cores, on a Xeon Phi, on a 2080 Ti.
THESIS = {
    ("walk", 128): (1908.3, 974.7, 787.1, 26.8),
    ("walk", 1024): (20083.6, 1870.2, 662.7, 5.1),
    ("ecg", 128): (2143.7, 1036.3, 820.4, 71.3),
    ("ecg", 1024): (13274.9, 1575.8, 877.4, 69.3),
}
TABLE = {"walk": "2", "ecg": "3"}
REAL = Path(os.environ.get("SKTS_DATA", "")) / "long" / "mitbih100_mlii.npz"
NAMES = {"walk": "random walk", "ecg": "ECG, MIT-BIH 100" if REAL.exists() else "ECG, synthetic"}


def make(name, n):
    """The series."""
    rng = np.random.default_rng(2020)
    if name == "walk":
        return rng.standard_normal(n).cumsum()
    if REAL.exists():
        with np.load(REAL) as file:
            return file["series"][:n].astype(float)
    # beats of 128 Hz: five bumps, of a length, height and rate that drift, on a wandering line
    x = np.zeros(n + 400)
    start, pace = 0.0, 100.0
    wave = ((-0.2, 0.025, 0.15), (-0.04, 0.01, -0.15), (0, 0.011, 1.2), (0.04, 0.01, -0.25))
    wave += ((0.3, 0.04, 0.3),)
    while start < n:
        pace += 0.1 * (100 - pace) + 3 * rng.standard_normal()
        t = (np.arange(int(start), int(start) + 200) - start - 80) / pace
        beat = sum(
            height * (1 + 0.05 * rng.standard_normal()) * np.exp(-(((t - place) / width) ** 2) / 2)
            for place, width, height in wave
        )
        x[int(start) : int(start) + 200] += beat
        start += pace
    wander = np.convolve(rng.standard_normal(n + 400), np.ones(256) / 256, mode="same")
    return (x + wander + 0.02 * rng.standard_normal(n + 400))[:n]


def seconds_of(work, engine, threads, repeats):
    """The pair, and the least wall time of a few runs after a first one."""
    best, found = np.inf, None
    for _ in range(repeats):
        start = time.perf_counter()
        found = run(work, engine=engine, n_jobs=threads)
        best = min(best, time.perf_counter() - start)
    return best, found


def pair_of(found):
    """Distance and places of the nearest pair, and the share of pairs that MK pruned."""
    if hasattr(found, "pruned"):
        return found[:3], found.pruned
    first = int(np.argmin(found.distances[:, 0]))
    return (float(found.distances[first, 0]), first, int(found.indices[first, 0])), None


class Bench:
    """The rows, and the pairs that all ways must agree on."""

    def __init__(self, patience):
        self.patience = patience
        self.rows = []
        self.pairs = {}
        self.failed = False

    def one(self, x, window, method, engine, threads):
        """Seconds and pair of one way."""
        pool, exclusion = ConcatenatedSeries.of([x]), -(-window // 4)
        if method == "MK":
            work = MotifPair(pool, window, exclusion)
        else:
            work = Join(pool, None, window, exclusion)
        run(work, engine=engine, n_jobs=threads) if engine == "cupy" else None
        return seconds_of(work, engine, threads, 3 if engine == "cupy" else 1)

    def row(self, figure, name, window, n, method, engine, threads):
        """Measure one way, and compare its pair with that of the others."""
        x = make(name, n)
        row = {"table or figure": figure, "series": NAMES[name], "n": n, "window": window}
        row |= {"method": method, "engine": engine, "threads": threads}
        few, _ = self.one(x[: n // 8], window, method, engine, threads)
        if 64 * few > 2 * self.patience:
            self.rows.append(row | {"checked": f"left out: about {64 * few:.0f} s"})
            print(self.rows[-1], flush=True)
            return None
        seconds, found = self.one(x, window, method, engine, threads)
        pair, pruned = pair_of(found)
        same = self.pairs.setdefault((name, window, n), pair) == pair
        self.failed |= not same
        row |= {"seconds": seconds, "distance": pair[0]}
        if pruned is not None:
            row["pruned"] = pruned
        if figure.startswith("table"):
            cores = ("thesis, 1 core", "thesis, 12 cores", "thesis, Xeon Phi", "thesis, GPU")
            row |= dict(zip(cores, THESIS[name, window], strict=True))
        row["checked"] = "same pair" if same else "FAILED: another pair"
        self.rows.append(row)
        print(row, flush=True)
        return seconds


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n\n", 1)[0])
    parser.add_argument("--n", type=int, default=400_000)
    parser.add_argument("--engines", nargs="+", choices=("numba", "cupy"))
    parser.add_argument("--threads", type=int, nargs="+", help="of figure 1")
    parser.add_argument("--patience", type=float, default=600)
    parser.add_argument("--commit", help="what to record where there is no git")
    parser.add_argument("--output", type=Path, default=_records.RESULTS / "papers-motifs.json")
    options = parser.parse_args()
    engines = options.engines or [
        name for name in ("cupy", "numba") if find_engine(name).available() is None
    ]
    cores = os.cpu_count()
    threads = options.threads or sorted({1, 2, 4, 8, 16, cores} & set(range(1, cores + 1)))

    bench = Bench(options.patience)
    for engine in engines:  # compile
        for method in ("profile", "MK"):
            bench.one(make("walk", 3000), 64, method, engine, cores)
    for name, window in THESIS:
        for engine in engines:
            for method in ("profile", "MK"):
                bench.row(f"table {TABLE[name]}", name, window, options.n, method, engine, cores)
    if "numba" in engines:
        for name, window in THESIS:
            for method in ("profile", "MK"):
                one = None
                for count in threads:
                    n = options.n // 4
                    took = bench.row("figure 1", name, window, n, method, "numba", count)
                    if took is None:
                        break
                    one = one or took
                    speed_up = one / took
                    bench.rows[-1] |= {"speed-up": speed_up, "efficiency": speed_up / count}
    device, versions = _records.cpu(), _records.versions("skts", "numpy", "numba")
    if "cupy" in engines:
        from benchmarks._gpu import device_and_versions

        device, versions = device_and_versions()
    _records.write(
        options.output,
        _records.record(
            "Motifs (Kraeva), tables 2 and 3, figure 1",
            device=device,
            versions=versions,
            rows=bench.rows,
            commit=options.commit,
        ),
    )
    if bench.failed:
        sys.exit("a pair is not that of the other ways: see the last column")


if __name__ == "__main__":
    main()
