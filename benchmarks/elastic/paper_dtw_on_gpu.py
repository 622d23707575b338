"""DTW on a GPU: figures 5 to 7 of Bachmann, Trogant and Freytag's paper, with skts.

    python -m benchmarks.elastic.paper_dtw_on_gpu
    python -m benchmarks.elastic.paper_dtw_on_gpu --quick --output quick.json --plot

writes `benchmarks/results/papers-dtw-on-gpu.json`; `--plot` draws its figures into a PNG beside it.
It takes less than 90 seconds with a GPU. `--quick` takes fewer and smaller points, so that it is
done within 30 seconds on a CPU.

As in the paper, an instance is a pair of random series of its own, and the time is that of all
instances together. Figure 5 varies the length of the candidate, that of the query, and the number
of instances, of DTW and of the dog-keeper distance DK, with 64 and with 1,024 points where the
length is kept (the paper's series without and with a buffer). Figure 6 is one instance with a very
long candidate. Figure 7 of the paper varies the length of a buffer in shared memory. We have none:
rows live in registers. What decides in its place is how many columns a lane holds and how many
lanes share a pair; where both together are less than the columns, the pair goes in strips.

The engines compute in float64 from host arrays to host arrays, upload included. "kernel, float32"
is the time between two CUDA events around one launch, data on the device. The paper says that sub-
and supersequences cost the same and shows none; here is one point of each.
"""

import argparse
import sys
import time
from itertools import product
from pathlib import Path
from statistics import median

import numpy as np

from benchmarks import _records
from benchmarks._gpu import device_and_versions, verdict
from benchmarks.elastic.gpu_dtw import as_series, check_estimates, kernel_seconds
from skts.engines import DTWPairs, Warping, get_engine, run
from skts.exceptions import EngineNotAvailableError

DTW, DK = Warping(), Warping("dog_keeper")
NAMES = {DTW: "DTW", DK: "DK"}
KERNEL = "cupy, kernel, float32"

#: Points of the figures, in full and with `--quick`.
FULL = {
    "kept": (64, 1024),
    "lengths": (64, 128, 256, 512, 1024, 2048, 4096),
    "instances": (1, 10, 100, 1000, 10_000),
    "n": 1000,
    "long": 1_024_000,
    "queries": (64, 128, 256, 512, 1024),
    "repeats": 5,
}
QUICK = {
    "kept": (64, 256),
    "lengths": (64, 256, 1024),
    "instances": (1, 10, 100),
    "n": 100,
    "long": 102_400,
    "queries": (64, 256),
    "repeats": 3,
}
#: Figure 7: query, candidate, instances.
BUFFER = 512, 256, 500
#: Figure 7: lanes of a pair and columns of a lane; the first goes in strips of 128 columns.
SHAPES = ((32, 4), (32, 8), (32, 16), (16, 16), (16, 32), (8, 32), (8, 64), (4, 64))
#: A point is measured again until it has taken so many seconds, or `repeats` times.
PATIENCE = 0.3


class Instances:
    """A number of pairs of random series, a query and a candidate each."""

    def __init__(self, n, query, candidate):
        rng = np.random.default_rng(0)
        self.queries = rng.standard_normal((n, query))
        self.candidates = rng.standard_normal((n, candidate))
        self.pairs = np.column_stack([np.arange(n), np.arange(n)])

    def cells(self):
        n, query = self.queries.shape
        return n * query * self.candidates.shape[1]

    def wall(self, warping, engine, n_jobs, repeats):
        """Median wall seconds and the distances."""
        elapsed = []
        while len(elapsed) < repeats and sum(elapsed) < PATIENCE:
            # arrays that the engine has not seen: it keeps what it has made of others
            left, right = as_series(self.queries.copy()), as_series(self.candidates.copy())
            work = DTWPairs(left, right, self.pairs, warping)
            start = time.perf_counter()
            distances = run(work, engine=engine, n_jobs=n_jobs)
            elapsed.append(time.perf_counter() - start)
        return median(elapsed), distances

    def kernel(self, warping, kernel=None):
        """The float32 kernel on the first query and all candidates, as many pairs as there are.

        Median seconds, estimates, their bound, and the certified distances.
        """
        query, candidates = as_series(self.queries[:1]), as_series(self.candidates)
        seconds, estimates, bound = kernel_seconds(query, candidates, warping, kernel=kernel)
        pairs = np.column_stack([np.zeros_like(self.pairs[:, 0]), self.pairs[:, 1]])
        exact = run(DTWPairs(query, candidates, pairs, warping), engine="cupy")
        return seconds, estimates[0], bound, exact


class Bench:
    """Measures instances with every engine and keeps the rows of the record."""

    def __init__(self, points):
        self.points = points
        self.rows = []
        self.engines = {"numba, 1 thread": ("numba", 1), "numba, all threads": ("numba", -1)}
        try:
            get_engine("cupy")
        except EngineNotAvailableError:
            self.gpu = False
        else:
            self.gpu = True
            self.engines["cupy"] = ("cupy", None)

    def keep(self, figure, varied, name, instances, engine, seconds, checked):
        n, query = instances.queries.shape
        candidate = instances.candidates.shape[1]
        row = {
            "figure": figure,
            "varied": varied,
            "work": name,
            "instances": n,
            "query": query,
            "candidate": candidate,
            "engine": engine,
            "value": seconds,
            "unit": "s",
            "Gcells/s": instances.cells() / seconds / 1e9,
            "checked": checked,
        }
        print(
            f"{figure:4} {varied:18}{name:44}{n:7,} x {query:9,} x {candidate:9,}  {engine:24}"
            f"{seconds * 1e3:11.3f} ms {row['Gcells/s']:10.2f} Gcells/s  {checked}",
            flush=True,
        )
        self.rows.append(row)

    def point(self, figure, varied, name, warping, instances):
        """One point with every engine, each checked against numba on one thread."""
        expected = None
        for label, (engine, n_jobs) in self.engines.items():
            if len(instances.pairs) == 1 and n_jobs == -1:
                continue  # one pair runs on one thread
            self.warm_up(engine, warping, instances)
            seconds, distances = instances.wall(warping, engine, n_jobs, self.points["repeats"])
            if expected is None:
                expected, checked = distances, "what the others are checked against"
            else:
                same = np.array_equal(distances, expected)
                checked = verdict(same, f"{len(distances):,} distances as numba's, bit by bit")
            self.keep(figure, varied, name, instances, label, seconds, checked)
        if self.gpu:
            self.kernel(figure, varied, name, warping, instances)

    def kernel(self, figure, varied, name, warping, instances, kernel=None):
        """One point with the float32 kernel alone."""
        seconds, estimates, bound, exact = instances.kernel(warping, kernel)
        checked = check_estimates(estimates.get(), exact, bound)
        self.keep(figure, varied, name, instances, KERNEL, seconds, checked)

    def warm_up(self, engine, warping, instances):
        """Let the engine compile: numba a function for each warping, cupy one for a shape, too."""
        if engine == "cupy":
            return instances.wall(warping, engine, None, 1)
        for n in (1, 64):  # a pair by itself and many in lanes are two functions
            Instances(n, 4, 4).wall(warping, engine, 1, 1)

    def figure_5(self):
        """The three panels of figure 5, with both lengths that are kept."""
        points = self.points
        for warping, kept in product((DTW, DK), points["kept"]):
            name = f"{NAMES[warping]}, {kept:,} points kept"
            for length in points["lengths"]:
                work = Instances(points["n"], kept, length)
                self.point("5", "candidate length", name, warping, work)
            for length in points["lengths"]:
                work = Instances(points["n"], length, kept)
                self.point("5", "query length", name, warping, work)
            for n in points["instances"]:
                self.point("5", "instances", name, warping, Instances(n, kept, kept))

    def parts(self):
        """A point of figure 5 again, with sub- and supersequences."""
        short, long = self.points["kept"]
        for alignment, *lengths in (
            ("subsequence", short, long),
            ("subsequence", long, long),
            ("supersequence", long, short),
            ("supersequence", long, long),
        ):
            work = Instances(self.points["n"], *lengths)
            self.point("5", "", f"DTW, {alignment}", Warping(alignment=alignment), work)

    def figure_6(self):
        """One instance with a very long candidate."""
        for warping, length in product((DTW, DK), self.points["queries"]):
            work = Instances(1, length, self.points["long"])
            self.point("6", "query length", NAMES[warping], warping, work)

    def figure_7(self):
        """Columns of a lane and lanes of a pair, in the place of the length of a buffer."""
        from skts.engines.cupy.elastic.cells import cell_of
        from skts.engines.cupy.elastic.programs import DTWKernel

        query, candidate, n = BUFFER
        for lengths in ((query, candidate), (candidate, query)):
            work = Instances(n, *lengths)
            for lanes, columns in SHAPES:
                strips = -(-lengths[1] // (lanes * columns))
                if strips > 1 and lanes < 32:
                    continue  # only whole warps go in strips
                shape = ("float", columns, 1, strips > 1, cell_of(DTW), False, False, lanes)
                name = f"DTW, {lanes} lanes x {columns} columns, {strips} strip(s)"
                self.kernel("7", "lanes and columns", name, DTW, work, DTWKernel(*shape))


def plot(rows, path):
    """Draw the figures: time against what is varied, a line for each engine and distance."""
    import matplotlib.pyplot as plt

    panels = [
        ("5", "candidate length", "candidate"),
        ("5", "query length", "query"),
        ("5", "instances", "instances"),
        ("6", "query length", "query"),
    ]
    figure, axes = plt.subplots(1, 5, figsize=(26, 7), layout="constrained")
    for ax, (number, varied, column) in zip(axes, panels, strict=False):
        chosen = [row for row in rows if (row["figure"], row["varied"]) == (number, varied)]
        for name, engine in dict.fromkeys((row["work"], row["engine"]) for row in chosen):
            line = [row for row in chosen if (row["work"], row["engine"]) == (name, engine)]
            ax.plot(
                [row[column] for row in line],
                [row["value"] for row in line],
                marker=".",
                linestyle="--" if name.startswith("DK") else "-",
                label=f"{name}, {engine}",
            )
        ax.set(xscale="log", yscale="log", xlabel=varied, ylabel="seconds")
        ax.set_title(f"as figure {number}")
        ax.legend(fontsize="xx-small")
    shapes = [row for row in rows if row["figure"] == "7"]
    if shapes:
        names = [f"{row['query']} x {row['candidate']}, {row['work'][5:]}" for row in shapes]
        axes[-1].barh(names, [row["value"] for row in shapes])
        axes[-1].set(xlabel="seconds", title="in the place of figure 7")
        axes[-1].tick_params(labelsize="xx-small")
    else:
        axes[-1].set_axis_off()
    figure.savefig(path, dpi=120)
    plt.close(figure)


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n\n", 1)[0])
    parser.add_argument("--quick", action="store_true", help="fewer and smaller points")
    parser.add_argument("--plot", action="store_true", help="draw a PNG beside the record")
    parser.add_argument("--commit", help="what to record where there is no git")
    parser.add_argument("--output", type=Path, default=_records.RESULTS / "papers-dtw-on-gpu.json")
    options = parser.parse_args()

    points = QUICK if options.quick else FULL
    bench = Bench(points)
    bench.figure_5()
    bench.parts()
    bench.figure_6()
    if bench.gpu:
        bench.figure_7()
        device, versions = device_and_versions()
    else:
        device, versions = _records.cpu(), _records.versions("skts", "numpy", "numba")
    name = "DTW on a GPU (Bachmann, Trogant, Freytag), figures 5 to 7"
    found = _records.record(
        name + (", fewer and smaller points (--quick)" if options.quick else ""),
        device=device,
        versions=versions,
        rows=bench.rows,
        commit=options.commit,
        quick=options.quick,
        points=points,
    )
    _records.write(options.output, found)
    if options.plot:
        plot(bench.rows, options.output.with_suffix(".png"))
    if any(row["checked"].startswith("FAILED") for row in bench.rows):
        sys.exit("a result is wrong: see the last column")


if __name__ == "__main__":
    main()
