"""DTW on a GPU: figures 5 to 7 of Bachmann, Trogant and Freytag's paper, with skts.

    python -m benchmarks.elastic.paper_dtw_on_gpu --engine numba
    python -m benchmarks.elastic.paper_dtw_on_gpu --engine cupy
    python -m benchmarks.elastic.paper_dtw_on_gpu --quick --output quick.json

writes `benchmarks/results/papers-dtw-on-cpu.json`, or `papers-dtw-on-gpu.json`. `--quick` takes
fewer and smaller points.

As in the paper, an instance is a pair of random series of its own, and the time is that of all
instances together. Figure 5 varies the length of the candidate, that of the query, and the number
of instances, of DTW and of the dog-keeper distance DK, with 64 and with 1,024 points where the
length is kept (the paper's series without and with a buffer). Figure 6 is one instance with a very
long candidate. Figure 7 of the paper varies the length of a buffer in shared memory. We have none:
rows live in registers. What decides in its place is how many columns a lane holds and how many
lanes share a pair; where both together are less than the columns, the pair goes in strips.

The engines compute in float64 from host arrays to host arrays, upload included. "kernel, float32"
is the time between two CUDA events around one launch, data on the device. The paper says that sub-
and supersequences cost the same and shows none; here is one point of each. Its plots are not in its
text, but for what "said" of the record holds; figures 1 to 4 are drawings.
"""

import time
from itertools import product
from statistics import median

import numpy as np

from benchmarks._gpu import verdict
from benchmarks._paper import keep, make_parser, parse, threads
from benchmarks.elastic.gpu_dtw import as_series, check_estimates, kernel_seconds
from skts.engines import DTWPairs, Warping, run

OUTPUTS = {"numba": "papers-dtw-on-cpu.json", "cupy": "papers-dtw-on-gpu.json"}
SAID = (
    "The GPU (a 980 Ti) is about two orders of magnitude faster than the CPU (a Ryzen 7 1700X) in "
    "nearly all cases, and one to two on the whole; for one instance the CPU is faster (figure 5). "
    "With a buffer it is faster than without, and slower the longer the buffer is (figure 7)."
)
#: Instances whose distances are compared with those of one thread of the CPU.
CHECKED = 16
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
    """Rows of one engine."""

    def __init__(self, engine, points):
        self.points, self.gpu = points, engine == "cupy"
        self.engines = {"cupy": ("cupy", None)}
        if not self.gpu:
            self.engines = {
                f"numba, {count} thread{'s' if count > 1 else ''}": ("numba", count)
                for count in sorted({1, threads()[-1]})
            }

    def row(self, figure, varied, name, instances, engine, seconds, checked):
        n, query = instances.queries.shape
        candidate = instances.candidates.shape[1]
        return {
            "part": f"figure {figure}",
            "data": "synthetic, as in the paper",
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

    def point(self, figure, varied, name, warping, instances):
        """One point with every engine, some pairs checked against numba on one thread."""
        few = slice(0, CHECKED)
        sides = as_series(instances.queries[few]), as_series(instances.candidates[few])
        work = DTWPairs(*sides, instances.pairs[few], warping)
        expected = run(work, engine="numba", n_jobs=1)
        for label, (engine, n_jobs) in self.engines.items():
            if len(instances.pairs) == 1 and n_jobs not in (1, None):
                continue  # one pair runs on one thread
            self.warm_up(engine, warping, instances)
            seconds, distances = instances.wall(warping, engine, n_jobs, self.points["repeats"])
            same = np.array_equal(distances[few], expected)
            text = f"{len(expected)} distances as by one thread of the CPU, bit by bit"
            checked = verdict(same, text)
            yield self.row(figure, varied, name, instances, label, seconds, checked)
        if self.gpu:
            yield self.kernel(figure, varied, name, warping, instances)

    def kernel(self, figure, varied, name, warping, instances, kernel=None):
        """One point with the float32 kernel alone."""
        seconds, estimates, bound, exact = instances.kernel(warping, kernel)
        checked = check_estimates(estimates.get(), exact, bound)
        return self.row(figure, varied, name, instances, KERNEL, seconds, checked)

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
                yield from self.point("5", "candidate length", name, warping, work)
            for length in points["lengths"]:
                work = Instances(points["n"], length, kept)
                yield from self.point("5", "query length", name, warping, work)
            for n in points["instances"]:
                work = Instances(n, kept, kept)
                yield from self.point("5", "instances", name, warping, work)

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
            warping = Warping(alignment=alignment)
            yield from self.point("5", "", f"DTW, {alignment}", warping, work)

    def figure_6(self):
        """One instance with a very long candidate."""
        for warping, length in product((DTW, DK), self.points["queries"]):
            work = Instances(1, length, self.points["long"])
            yield from self.point("6", "query length", NAMES[warping], warping, work)

    def figure_7(self):
        """Columns of a lane and lanes of a pair, in the place of the length of a buffer."""
        if not self.gpu:
            return
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
                yield self.kernel("7", "lanes and columns", name, DTW, work, DTWKernel(*shape))


PARTS = {
    "figure-5": Bench.figure_5,
    "alignments": Bench.parts,
    "figure-6": Bench.figure_6,
    "figure-7": Bench.figure_7,
}


def main():
    parser = make_parser(__doc__, OUTPUTS, PARTS)
    parser.add_argument("--quick", action="store_true", help="fewer and smaller points")
    options = parse(parser, OUTPUTS)
    points = QUICK if options.quick else FULL
    bench = Bench(options.engine, points)
    name = "DTW and the dog-keeper distance (Bachmann, Trogant, Freytag): figures 5 to 7"
    name += ", fewer and smaller points (--quick)" if options.quick else ""
    rows = (row for part in options.parts for row in PARTS[part](bench))
    keep(name, rows, options, quick=options.quick, points=points, said=SAID)


if __name__ == "__main__":
    main()
