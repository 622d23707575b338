"""Subsequence search of Sart, Mueen, Najjar, Keogh and Niennattrakul: figures 8 to 10, and VII-A.

    SKTS_DATA=<folder> python -m benchmarks.search.paper_subsequence_search --engine numba
    SKTS_DATA=<folder> python -m benchmarks.search.paper_subsequence_search --engine cupy

writes `benchmarks/results/papers-subsequence-search.json`, or with "-on-gpu". The paper's other
tables and figures are made by `benchmarks.elastic.paper_rotation` (table 3),
`paper_reduced_precision` (figure 5) and `paper_condensing` (section VII-C).

The paper varies the length of the series under queries of 128 (figure 8) and 1,024 points (figure
9), and the query in a series of 40,000 points (figure 10), with all windows normalised and compared
under DTW without a limit. Its data are not given; here they are random walks, and noise, which is
the hard case: windows that cannot be the best match are abandoned or never begun, so that times
also depend on the data, where the paper's programs fill every matrix. Section VII-A is a search in
an insect's recording of 1,499,000 points; ours has 78,254 and is repeated with noise, where the
folder SKTS_DATA has it. The paper's plots are not in its text, but for what "said" of the record
and the column of section VII-A hold.

The CPU is there with one thread and with all. Matches are checked: of the first point of each
figure against the least of the distances of all windows, each normalised and compared by itself; of
the others, against another number of threads, or the CPU, as far as that takes less than
`--check` seconds; rows that are compared with nothing say so. A line ends where filling all
matrices would take longer than `--patience` seconds at the speed of the point before.
"""

import time
from statistics import median

import numpy as np

from benchmarks._gpu import verdict
from benchmarks._paper import keep, make_parser, parse, threads
from benchmarks.elastic.gpu_dtw import as_series
from benchmarks.search.gpu_search import recording
from skts import SubsequenceSearch
from skts.engines import DTWMatrix, run

OUTPUTS = {
    "numba": "papers-subsequence-search.json",
    "cupy": "papers-subsequence-search-on-gpu.json",
}
#: Figure, points of the query, points of the series.
FIGURES = {
    "8": [(128, n) for n in (1000, 10_000, 100_000, 1_000_000, 10_000_000)],
    "9": [(1024, n) for n in (2000, 10_000, 100_000, 1_000_000, 10_000_000)],
    "10": [(m, 40_000) for m in (64, 128, 256, 512, 1024, 2048, 4096)],
}
KINDS = ("random walks", "noise")

#: Section VII-A: points, query, and the paper's seconds.
EPG, EPG_QUERY = 1_499_000, 360
PAPER_EPG = {"CPU": 48.8 * 60, "GPU": 80.39, "FPGA": 2.24}
SAID = (
    "A query of 128 points: the FPGA is 4,000 times as fast as the CPU in the best case, the GPU "
    "36.3 times on average; the FPGA takes 15 million windows a second (figure 8). One of 1,024: "
    "4,500 times at most and 29 times; 244 thousand windows a second (figure 9). The CPU's time "
    "grows with the square of the query (figure 10)."
)
#: Of a row of the CPU before those with more threads, and of one that nothing is compared with.
BEFORE = "what rows with more threads are checked against"
ALONE = "not checked: one thread would take too long"


def data(kind, n, rng):
    """So many points."""
    x = rng.standard_normal(n)
    return x.cumsum() if kind == "random walks" else x


def best_of_all(query, series):
    """Distance and start of the best window, each normalised and compared by itself."""
    windows = np.lib.stride_tricks.sliding_window_view(series, len(query))
    sides = [
        as_series(np.ascontiguousarray((side - side.mean(1)[:, None]) / side.std(1)[:, None]))
        for side in (query[None], windows)
    ]
    distances = run(DTWMatrix(*sides), engine="numba")[0]
    return distances.min(), int(distances.argmin())


def search(query, series, options, repeats):
    """Median seconds of `kneighbors`, and the best match."""
    model = SubsequenceSearch(**options).fit(series[None])
    few = SubsequenceSearch(**options).fit(series[None, : 3 * len(query)])
    few.kneighbors(query[None, :])  # compiles
    if options["engine"] == "cupy":
        model.kneighbors(query[None, :])  # uploads
    elapsed = []
    while len(elapsed) < repeats and sum(elapsed) < 1:
        start = time.perf_counter()
        distances, positions = model.kneighbors(query[None, :])
        elapsed.append(time.perf_counter() - start)
    return median(elapsed), float(distances[0, 0]), int(positions[0, 0, 1])


class Bench:
    """Rows of one engine.

    Parameters
    ----------
    options : argparse.Namespace
        Engine, patience, and the longest series.
    """

    def __init__(self, options):
        self.options, self.expected = options, {}
        self.counts = threads() if options.engine == "numba" else [None]
        self.counts = sorted({self.counts[0], self.counts[-1]}, key=lambda count: count or 0)
        #: Seconds by work of the CPU that checks, as far as they are known.
        self.pace = 4e-10

    def check(self, key, query, series, found, first, last):
        """Compare a match with what is known of the same work, or with all windows or the CPU.

        `last` says that no row with more threads follows.
        """
        if key in self.expected:
            return verdict(self.expected[key] == found, "match as by one thread, bit by bit")
        self.expected[key] = found
        if first:
            part = series[: 2000 + len(query)]
            least, place = best_of_all(query, part)
            mine = search(query, part, {"engine": self.options.engine}, 1)[1:]
            same = place == mine[1] and np.isclose(least, mine[0], rtol=1e-9, atol=0)
            return verdict(bool(same), "best of the first windows")
        cells = (len(series) - len(query) + 1) * len(query) ** 2
        if self.options.engine == "numba":
            return ALONE if last else BEFORE
        if cells * self.pace > self.options.check:
            return "not checked: the CPU would take too long"
        seconds, *match = search(query, series, {"engine": "numba", "n_jobs": -1}, 1)
        self.pace = seconds / cells
        return verdict(tuple(match) == found, "match as the CPU engine's, bit by bit")

    def point(self, part, kind, query, series, count, first):
        """One row."""
        m, n = len(query), len(series)
        options = {"engine": self.options.engine, "n_jobs": count}
        seconds, *match = search(query, series, options, 3)
        row = {"part": part, "set": kind, "data": "real" if kind == "insect EPG" else "synthetic"}
        row |= {"query": m, "points": n} | ({"threads": count} if count else {})
        row |= {"value": seconds, "unit": "s"}
        row["Gcells/s of all windows"] = (n - m + 1) * m * m / seconds / 1e9
        last = count == self.counts[-1]
        row["checked"] = self.check((part, kind, m, n), query, series, tuple(match), first, last)
        return row

    def figure(self, number):
        """The rows of a figure."""
        for kind in KINDS:
            for count in self.counts:
                seconds, before = 0.0, 1
                for m, n in FIGURES[number]:
                    work = (n - m + 1) * m * m
                    if n > self.options.longest or seconds * work / before > self.options.patience:
                        break
                    rng = np.random.default_rng([m, n])
                    query, series = data(kind, m, rng), data(kind, n, rng)
                    first = (m, n) == FIGURES[number][0]
                    row = self.point(f"figure {number}", kind, query, series, count, first)
                    seconds, before = row["value"], work
                    yield row

    def case_study(self):
        """Section VII-A."""
        rng = np.random.default_rng(0)
        kind, series = recording(rng, EPG)
        start = EPG // 2
        query = series[start : start + EPG_QUERY] + 0.05 * series.std() * rng.standard_normal(
            EPG_QUERY
        )
        for count in self.counts:
            row = self.point("section VII-A", kind, query, series, count, False)
            if kind == "insect EPG":
                row["data"] = "real, 78,254 points repeated with noise"
            row |= {f"paper: {name}, s": value for name, value in PAPER_EPG.items()}
            yield row


PARTS = {
    "figure-8": lambda bench: bench.figure("8"),
    "figure-9": lambda bench: bench.figure("9"),
    "figure-10": lambda bench: bench.figure("10"),
    "case-study": Bench.case_study,
}


def main():
    parser = make_parser(__doc__, OUTPUTS, PARTS)
    parser.add_argument("--patience", type=float, default=60.0, help="seconds of a query, at most")
    parser.add_argument("--check", type=float, default=5.0, help="seconds of a check by the CPU")
    parser.add_argument("--longest", type=int, default=10_000_000, help="points of a series")
    options = parse(parser, OUTPUTS)
    bench = Bench(options)
    rows = (row for part in options.parts for row in PARTS[part](bench))
    keep("Subsequence search (Sart and others): figures 8 to 10", rows, options, said=SAID)


if __name__ == "__main__":
    main()
