"""The matrix profile of skts beside its peers: the same work, in the same run, on the same threads.

    python -m benchmarks.peers.profile --python python3.13

does for matrix profiles what `benchmarks.peers.elastic` does for DTW; the record is
`benchmarks/results/peers-profile.json`. Cells are pairs of windows; a self-join counts each once.
Values are squared distances, which must agree to 1e-6 of the largest: pyscamp returns float32.

matrixprofile wants Python 3.9 and a NumPy below 2; pyscamp is compiled when it is installed
(CMake and a C++ compiler).
"""

import os
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from benchmarks.peers._comparison import Comparison, make_parser

PEERS = ("stumpy", "pyscamp", "matrixprofile")
SCRIPT = Path(__file__).with_name("_profile_worker.py")
TOLERANCE = 1e-6
NOTE = (
    "matrixprofile leaves out pairs one point farther apart than the others, and cannot be told "
    "otherwise: on the smooth ECG the neighbours of some windows differ."
)


def walk(n):
    """A random walk."""
    return {"x": np.random.default_rng(0).standard_normal(n).cumsum()}


def noise(n):
    """White noise: neighbours may be anywhere, also just outside of the exclusion."""
    return {"x": np.random.default_rng(1).standard_normal(n)}


def ecg(n):
    """The ECG that comes with skts."""
    from skts.datasets import load_ecg

    return {"x": np.ravel(load_ecg().data)[:n].astype(float)}


def two_walks(n):
    """Two random walks."""
    x, y = np.random.default_rng(2).standard_normal((2, n)).cumsum(axis=1)
    return {"x": x, "y": y}


def eight_walks(n):
    """Eight channels, each a random walk."""
    return {"x": np.random.default_rng(3).standard_normal((8, n)).cumsum(axis=1)}


@dataclass(frozen=True)
class Work:
    """One row of the table.

    `lengths` are windows of a pan profile, in the place of one; `libraries` are those that have the
    function, if not all do.
    """

    name: str
    series: Callable[[int], dict]
    n: int
    window: int
    curve: str | None = None
    lengths: tuple[int, ...] = ()
    libraries: tuple[str, ...] | None = None

    @property
    def size(self):
        """Points."""
        return self.n

    @property
    def operations(self):
        """Two multiply-adds, two multiplications and two maxima a pair of windows."""
        return 6 * self.request()[1]

    def request(self):
        """The input of the workers, and the number of pairs of windows."""
        request = self.series(self.n)
        request |= {"window": self.window, "exclusion": self.window // 4 - 1}
        if self.lengths:
            request["lengths"] = np.array(self.lengths)
        pairs = 0
        for window in self.lengths or (self.window,):
            n = self.n - window + 1
            pairs += n * n if "y" in request else n * (n - 1) // 2
        return request, pairs * (len(request["x"]) if request["x"].ndim == 2 else 1)


WORKS = {
    "walk-128": Work("random walk, n = 50,000, window 128", walk, 50_000, 128),
    "walk-1024": Work("random walk, n = 50,000, window 1,024", walk, 50_000, 1024),
    "ecg-128": Work("ECG, n = 50,000, window 128", ecg, 50_000, 128),
    "noise-128": Work("white noise, n = 20,000, window 128", noise, 20_000, 128),
    "two-128": Work("two random walks, n = 25,000 each, window 128", two_walks, 25_000, 128),
    "channels-8": Work(
        "profiles of every number of 8 channels, n = 5,000, window 128",
        *(eight_walks, 5_000, 128),
        libraries=("skts", "stumpy"),
    ),
    "pan-4000": Work(
        "pan profile, random walk, n = 4,000, 11 lengths from 48 to 448",
        *(walk, 4_000, 48),
        lengths=tuple(range(48, 449, 40)),
        libraries=("skts", "stumpy"),
    ),
    **{
        f"size-{n}": Work(
            f"random walk, n = {n:,}, window 100",
            *(walk, n, 100, "matrix profile of a random walk, window 100, by points"),
        )
        for n in (1_000, 10_000, 100_000)
    },
}


def main():
    threads = sorted({1, os.cpu_count()})
    options = make_parser(__doc__, PEERS, WORKS, "peers-profile.json", threads=threads).parse_args()
    comparison = Comparison(SCRIPT, options, TOLERANCE)
    comparison.measure_all(WORKS)
    comparison.write("The matrix profile beside its peers on a CPU", note=NOTE)
    comparison.exit_if_skts_failed()


if __name__ == "__main__":
    main()
