"""Motifs as in the thesis of Kraeva (2020): tables 2 and 3, figures 1 and 2.

    SKTS_DATA=<folder> python -m benchmarks.profile.paper_motifs --engine numba
    SKTS_DATA=<folder> python -m benchmarks.profile.paper_motifs --engine cupy

writes `benchmarks/results/papers-motifs.json`, or `papers-motifs-on-gpu.json`. The nearest pair of
windows of a series of 400,000 points is found by MK with 10 references, as in the thesis, and by
the whole profile. All ways must name the same pair.

* tables 2 and 3: a random walk, and an ECG; windows of 128 and 1,024 points; on the CPU by one
  thread and by all. The thesis's seconds are in the row: MK on one core, and its own program on 12
  cores, on a Xeon Phi, and on an RTX 2080 Ti;
* figure 1: speed-up and efficiency by threads of the CPU, on a quarter of the points, MK on an
  eighth; the thesis has 400,000 here, too. It does not say which lengths its lines are of;
* figure 2: the same by multiprocessors of the GPU. The driver gives a stream so many of them (a
  green context); on how many blocks really run is counted, and in the row.

The place of the thesis's ECG (128 Hz) takes record 100 of the MIT-BIH arrhythmia database, 360 Hz,
where the folder SKTS_DATA has it, and else a synthetic one: "data" says which. Work that would take
longer than `--patience` seconds, by an eighth of the points, is left out and says so.
"""

import os
import time
from pathlib import Path

import numpy as np

from benchmarks._gpu import verdict
from benchmarks._paper import keep, make_parser, parse, threads
from skts.engines import ConcatenatedSeries, Join, MotifPair, find_engine, run

OUTPUTS = {"numba": "papers-motifs.json", "cupy": "papers-motifs-on-gpu.json"}
#: Seconds of the thesis: MK on one core, its own on 12 cores, on a Xeon Phi, on a 2080 Ti.
THESIS = {
    ("walk", 128): (1908.3, 974.7, 787.1, 26.8),
    ("walk", 1024): (20083.6, 1870.2, 662.7, 5.1),
    ("ecg", 128): (2143.7, 1036.3, 820.4, 71.3),
    ("ecg", 1024): (13274.9, 1575.8, 877.4, 69.3),
}
COLUMNS = ("MK, 1 core", "12 cores", "Xeon Phi, 61 cores", "GPU")
TABLE = {"walk": "table 2", "ecg": "table 3"}
#: Windows of the figures.
WINDOWS = (128, 256, 512, 1024)
#: Multiprocessors of figure 2, as far as there are so many; 0 for all.
MULTIPROCESSORS = (8, 16, 32, 64, 96, 0)
METHODS = ("profile", "MK")
#: Of the points, one of so many in figure 1.
PARTS_OF_POINTS = {"profile": 4, "MK": 8}
REAL = Path(os.environ.get("SKTS_DATA", "")) / "long" / "mitbih100_mlii.npz"
NAMES = {"walk": "random walk", "ecg": "ECG, MIT-BIH 100" if REAL.exists() else "ECG"}
DATA = {
    "walk": "synthetic, as in the thesis",
    "ecg": "real, another record than the thesis's" if REAL.exists() else "synthetic",
}
SAID = (
    "Efficiency is 80 to 100 % with as many threads as a Xeon Phi has cores, and less with several "
    "threads a core (figure 1); 50 to 100 % by multiprocessors of the GPU (figure 2); better for "
    "longer windows. The lines of the plots are not in the text."
)


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


def pair_of(found):
    """Distance and places of the nearest pair, and the share of pairs that MK pruned."""
    if hasattr(found, "pruned"):
        return found[:3], found.pruned
    first = int(np.argmin(found.distances[:, 0]))
    return (float(found.distances[first, 0]), first, int(found.indices[first, 0])), None


class Bench:
    """The rows, and the pairs that all ways must agree on.

    Parameters
    ----------
    options : argparse.Namespace
        Engine, points, patience, series and windows.
    """

    def __init__(self, options):
        self.options, self.engine = options, options.engine
        self.pairs = {}

    def once(self, x, window, method, count):
        """Seconds and what was found, of one run."""
        series, exclusion = ConcatenatedSeries.of([x]), -(-window // 4)
        if method == "MK":
            work = MotifPair(series, window, exclusion)
        else:
            work = Join(series, None, window, exclusion)
        start = time.perf_counter()
        found = run(work, engine=self.engine, n_jobs=count)
        return time.perf_counter() - start, found

    def row(self, part, name, window, n, method, count=None):
        """Measure one way, and compare its pair with that of the others."""
        x = make(name, n)
        row = {"part": part, "set": NAMES[name], "data": DATA[name], "points": n}
        row |= {"window": window, "method": method}
        if count:
            row["threads"] = count
        self.once(x[: max(4 * window, n // 64)], window, method, count)  # compiles
        few, _ = self.once(x[: max(4 * window, n // 8)], window, method, count)
        if 64 * few > 2 * self.options.patience:
            return row | {"checked": f"left out: about {64 * few:.0f} s"}
        if self.engine == "cupy":
            self.once(x, window, method, count)
        runs = [self.once(x, window, method, count) for _ in range(3 if 64 * few < 2 else 1)]
        seconds, found = min(runs, key=lambda each: each[0])
        pair, pruned = pair_of(found)
        same = self.pairs.setdefault((name, window, n), pair) == pair
        row |= {"seconds": seconds, "distance": pair[0]}
        if pruned is not None:
            row["pruned"] = pruned
        row["checked"] = verdict(same, "same pair as by the other ways")
        return row

    def chosen(self, windows):
        """Series and windows that were asked for."""
        for name in self.options.series:
            for window in windows:
                if window in self.options.windows:
                    yield name, window

    def tables(self):
        """Tables 2 and 3."""
        n = self.options.n
        counts = self.options.threads if self.engine == "numba" else [None]
        for name, window in self.chosen((128, 1024)):
            for method in METHODS:
                for count in counts:
                    row = self.row(TABLE[name], name, window, n, method, count)
                    row |= {
                        f"thesis: {column}, s": value
                        for column, value in zip(COLUMNS, THESIS[name, window], strict=True)
                    }
                    yield row

    def by_threads(self):
        """Figure 1."""
        if self.engine != "numba":
            return
        for name, window in self.chosen(WINDOWS):
            for method in METHODS:
                one = None
                for count in threads():
                    n = self.options.n // PARTS_OF_POINTS[method]
                    row = self.row("figure 1", name, window, n, method, count)
                    row["thesis's points"] = 400_000
                    if "seconds" not in row:
                        yield row
                        break
                    one = one or row["seconds"]
                    row["speed-up"] = one / row["seconds"]
                    row["efficiency"] = row["speed-up"] / count
                    yield row

    def by_multiprocessors(self):
        """Figure 2."""
        if self.engine != "cupy":
            return
        import cupy

        from benchmarks._multiprocessors import engine_on, multiprocessors_used, part_of_device

        engine, most = find_engine("cupy"), cupy.cuda.Device().attributes["MultiProcessorCount"]
        for name, window in self.chosen(WINDOWS):
            for method in METHODS:
                one = None
                for count in MULTIPROCESSORS:
                    if count > most:
                        continue
                    with part_of_device(count) as (stream, given):
                        used = multiprocessors_used(stream)
                        with engine_on(engine, stream):
                            row = self.row("figure 2", name, window, self.options.n, method)
                    row |= {"multiprocessors": given, "multiprocessors that ran blocks": used}
                    if "seconds" in row:
                        one = one or row["seconds"] * given
                        row["speed-up"] = one / row["seconds"]
                        row["efficiency"] = row["speed-up"] / given
                        if used > given:
                            row["checked"] = "FAILED: blocks ran outside of the part"
                    yield row


PARTS = {
    "tables": Bench.tables,
    "figure-1": Bench.by_threads,
    "figure-2": Bench.by_multiprocessors,
}


def main():
    parser = make_parser(__doc__, OUTPUTS, PARTS)
    parser.add_argument("--n", type=int, default=400_000, help="points of the tables")
    parser.add_argument("--series", nargs="+", choices=TABLE, default=list(TABLE))
    parser.add_argument("--windows", nargs="+", type=int, default=list(WINDOWS))
    parser.add_argument("--patience", type=float, help="seconds of a run: 600, on a GPU 20")
    both = sorted({1, threads()[-1]})
    parser.add_argument("--threads", nargs="+", type=int, default=both, help="of tables 2 and 3")
    options = parse(parser, OUTPUTS)
    options.patience = options.patience or {"numba": 600, "cupy": 20}[options.engine]
    bench = Bench(options)
    rows = (row for part in options.parts for row in PARTS[part](bench))
    keep("Motifs (Kraeva): tables 2 and 3, figures 1 and 2", rows, options, said=SAID)


if __name__ == "__main__":
    main()
