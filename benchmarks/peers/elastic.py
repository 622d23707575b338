"""DTW of skts beside its peers: the same work, in the same run, on the same threads.

    python -m benchmarks.peers.elastic --python python3.13

makes an environment for each peer where there is none, runs every work of `WORKS`, compares the
results, then prints the times and writes them to `benchmarks/results/peers-elastic.json`. skts runs
in the environment of this command. Takes some twenty minutes.
"""

import math
import os
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from benchmarks._sets import archive
from benchmarks.peers._comparison import Comparison, make_parser

PEERS = ("aeon", "tslearn", "wildboar", "dtaidistance", "tsdistances")
SCRIPT = Path(__file__).with_name("_elastic_worker.py")


def walks(n_samples, n_timepoints):
    """Two different sets of random walks: no symmetry to make use of."""
    rng = np.random.default_rng(0)
    X, Y = np.cumsum(rng.standard_normal((2, n_samples, n_timepoints)), axis=-1)
    return {"kind": "pairwise", "X": X, "Y": Y}


def apart(n_samples, n_timepoints):
    """The same, and so far from each other that no two of their points match under EDR.

    aeon and wildboar let the first points of a series go free under EDR, and under ERP charge for
    all of them at once (`tests/metrics/test_elastic_peers.py`): on such series that is no matter.
    """
    found = walks(n_samples, n_timepoints)
    return found | {"X": found["X"] + 1e3, "Y": found["Y"] + 2e3}


def from_one_slope(n_samples, n_timepoints, n_sloping=20):
    """The same behind one steep slope, which keeps all paths in the corner where they begin.

    aeon ends a path of shape DTW at the border of the matrix, and leaves out what is left of it.
    """
    found = walks(n_samples, n_timepoints)
    slope = np.tile(np.linspace(1e3, 0, n_sloping), (n_samples, 1))
    for side in "XY":
        walk = found[side][:, :-n_sloping]
        found[side] = np.concatenate([slope, walk - walk[:, :1]], axis=1)
    return found


def osuleaf():
    """OSULeaf of the UCR archive from the folder SKTS_DATA, else warped shapes of that shape."""
    data = archive("OSULeaf")
    if data is not None:
        X, y, Z, _ = data
        return {"kind": "nearest", "X": X, "y": y, "Z": Z}
    from skts.datasets import make_warped_shapes

    X, y = make_warped_shapes(442, 427, random_state=0)
    return {"kind": "nearest", "X": X[:200], "y": y[:200], "Z": X[200:]}


@dataclass(frozen=True)
class Work:
    """One row of the table: the series, and the window as a fraction of the length.

    `libraries` are those that have the distance, if not all do; `tolerance` is by how much their
    results may differ, if that is more than elsewhere. `groups` of libraries are measured apart
    where works are done at once (`benchmarks.peers`): all of them together take minutes.
    """

    name: str
    series: Callable[[], dict]
    window: float | None = None
    curve: str | None = None
    size: int | None = None
    metric: str = "dtw"
    libraries: tuple[str, ...] | None = None
    tolerance: float | None = None
    groups: tuple[tuple[str, ...], ...] | None = None

    @property
    def operations(self):
        """A difference, a multiply-add and two minima a cell."""
        return 4 * self.request()[1]

    def request(self):
        """The input of the workers, and the number of cells inside the window."""
        request = self.series()
        X, others = request["X"], request["Z" if request["kind"] == "nearest" else "Y"]
        length = X.shape[-1]
        # the archive's rule: a fraction is rounded up
        radius = length if self.window is None else math.ceil(self.window * length - 1e-9)
        r = min(radius, length - 1)
        cells = length * (2 * r + 1) - r * (r + 1)
        request["metric"] = self.metric
        request["radius"] = -1 if self.window is None else radius
        return request, len(X) * len(others) * cells


#: Distances beside DTW: how they are called, the series, who has them.
OTHERS = {
    "msm": ("MSM", walks, ("aeon", "wildboar", "tsdistances")),
    "twe": ("TWE", walks, ("aeon", "wildboar", "tsdistances")),
    "lcss": ("LCSS", walks, ("aeon", "wildboar", "tsdistances")),
    "erp": ("ERP, far apart", apart, ("aeon", "wildboar", "tsdistances")),
    "edr": ("EDR, far apart", apart, ("aeon", "wildboar")),
    "shape_dtw": ("shape DTW, from one slope", from_one_slope, ("aeon",)),
    "wdtw": ("WDTW", walks, ("aeon",)),
    "adtw": ("ADTW", walks, ("aeon",)),
    "ddtw": ("DDTW", walks, ("aeon",)),
}
#: Of works that take minutes.
GROUPS = (("wildboar", "dtaidistance", "tsdistances"), ("aeon", "tslearn"))
#: wildboar takes points as equal under MSM that differ a little.
TOLERANCES = {"msm": 1e-7}

# Series with a window are all of one length: peers differ in what a band of unequal lengths is.
WORKS = {
    "pairwise-256": Work("all pairs, 100 x 100, length 256", lambda: walks(100, 256)),
    "pairwise-1024": Work("all pairs, 30 x 30, length 1,024", lambda: walks(30, 1024)),
    "osuleaf": Work("1-NN, 200 against 242, length 427, fit and predict", osuleaf, groups=GROUPS),
    "pairwise-256-window": Work(
        "all pairs, 100 x 100, length 256, 10 % window", lambda: walks(100, 256), window=0.1
    ),
    "pairwise-1024-window": Work(
        "all pairs, 30 x 30, length 1,024, 10 % window", lambda: walks(30, 1024), window=0.1
    ),
    "osuleaf-window": Work(
        "1-NN, 200 against 242, length 427, 10 % window, fit and predict", osuleaf, window=0.1
    ),
    **{
        f"pairwise-256-{metric}": Work(
            f"all pairs, 100 x 100, length 256, {title}",
            lambda series=series: series(100, 256),
            metric=metric,
            libraries=("skts", *libraries),
            tolerance=TOLERANCES.get(metric),
        )
        for metric, (title, series, libraries) in OTHERS.items()
    },
    **{
        f"size-{length}": Work(
            f"all pairs, 4 x 4, length {length:,}",
            lambda length=length: walks(4, length),
            curve="DTW of all pairs of 4 and 4 series, by length",
            size=length,
            groups=GROUPS if length == 10_000 else None,
        )
        for length in (100, 1_000, 10_000)
    },
}


def main():
    threads = sorted({1, os.cpu_count()})
    parser = make_parser(__doc__, PEERS, WORKS, "peers-elastic.json", threads=threads, patience=120)
    options = parser.parse_args()
    comparison, timings = Comparison(SCRIPT, options), []
    for row, outcome in comparison.measure_all(WORKS):
        what = {key: row[key] for key in ("work", "threads", "library")}
        timings.append(what | {"wall": outcome.wall, "processor": outcome.processor})
    data = "OSULeaf" if os.environ.get("SKTS_DATA") else "warped shapes in its place"
    comparison.write("DTW beside its peers on a CPU", data=data, timings=timings)
    comparison.exit_if_skts_failed()


if __name__ == "__main__":
    main()
