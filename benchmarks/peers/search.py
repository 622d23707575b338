"""The subsequence search of skts beside its peers: the same work, in the same run.

    python -m benchmarks.peers.search --python python3.13

does for the best match of a query what `benchmarks.peers.elastic` does for DTW; the record is
`benchmarks/results/peers-search.json`. Windows are z-normalised, each by itself. Cells are those of
all warping matrices inside the band, whether they were computed or ruled out. Distances, and the
distances of the places that were named, must agree to 1e-9.

Both peers use one thread for one query and one series, whatever they are allowed.
"""

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from benchmarks.peers._comparison import Comparison, make_parser

PEERS = ("ucrdtw", "wildboar")
SCRIPT = Path(__file__).with_name("_search_worker.py")
TOLERANCE = 1e-9


def walk(n, length):
    """A random walk, and another one as the query."""
    rng = np.random.default_rng(0)
    return {"x": rng.standard_normal(n).cumsum(), "query": rng.standard_normal(length).cumsum()}


def planted(n, length):
    """A random walk that holds the query, but for some noise, in its third quarter."""
    rng = np.random.default_rng(1)
    x = rng.standard_normal(n).cumsum()
    start = n * 5 // 8
    return {"x": x, "query": x[start : start + length] + 0.3 * rng.standard_normal(length)}


def ecg(n, length):
    """A beat of the ECG that comes with skts, to be found again in the minutes after it."""
    from skts.datasets import load_ecg

    x = np.ravel(load_ecg().data).astype(float)
    return {"x": x[3000:n], "query": x[1840 : 1840 + length]}


@dataclass(frozen=True)
class Work:
    """One row of the table."""

    name: str
    series: Callable[[int, int], dict]
    n: int
    length: int
    radius: int | None
    curve: str | None = None

    @property
    def size(self):
        """Points."""
        return self.n

    @property
    def operations(self):
        """Running sums of points and squares, mean and deviation, and one bound a window.

        Two points are normalised for a bound, and what is left of each is squared.
        """
        return (4 + 4 + 4) * self.n

    def request(self):
        """The input of the workers, and the number of cells."""
        request = self.series(self.n, self.length)
        request["radius"] = -1 if self.radius is None else self.radius
        n_windows = request["x"].size - self.length + 1
        reach = self.length - 1 if self.radius is None else self.radius
        cells = sum(min(self.length, i + reach + 1) - max(0, i - reach) for i in range(self.length))
        return request, cells * n_windows


WORKS = {
    "walk-band": Work("random walk, 1,000,000 points, query 128, band 6", walk, 10**6, 128, 6),
    "planted-band": Work(
        "random walk with the query, 1,000,000 points, query 128, band 6", planted, 10**6, 128, 6
    ),
    "ecg-band": Work("ECG, 105,000 points, query 128, band 6", ecg, 108_000, 128, 6),
    "walk": Work("random walk, 1,000,000 points, query 128, no band", walk, 10**6, 128, None),
    "planted": Work(
        "random walk with the query, 1,000,000 points, query 128, no band",
        *(planted, 10**6, 128, None),
    ),
    "ecg": Work("ECG, 105,000 points, query 128, no band", ecg, 108_000, 128, None),
    **{
        f"size-{n}": Work(
            f"random walk, {n:,} points, query 100, band 5",
            *(walk, n, 100, 5, "best match of a query of 100 points, band 5, by points"),
        )
        for n in (10**4, 10**5, 10**6, 10**7)
    },
}


class SearchComparison(Comparison):
    """With several threads skts alone is measured, and judged by the answers with one."""

    def measure(self, request, threads):
        """Let the libraries do the work of a request; an `Outcome` for each."""
        if threads == 1:
            outcomes = super().measure(request, threads)
            self.expected = [one.result for one in outcomes if one.agrees]
            return outcomes
        outcomes = super().measure(request, threads, ["skts"])
        for one in outcomes:
            if not one.failure:
                one.agrees = any(np.array_equal(one.result, other) for other in self.expected)
        return outcomes


def main():
    parser = make_parser(__doc__, PEERS, WORKS, "peers-search.json", threads=[1, 2])
    parser.add_argument("--note", help="a sentence about this run, kept in the record")
    options = parser.parse_args()
    comparison = SearchComparison(SCRIPT, options, TOLERANCE)
    comparison.measure_all(WORKS)
    note = {"note": options.note} if options.note else {}
    comparison.write("Subsequence search beside its peers on a CPU", **note)
    comparison.exit_if_skts_failed()


if __name__ == "__main__":
    main()
