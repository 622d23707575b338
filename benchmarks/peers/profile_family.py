"""Profiles of many channels and of many lengths beside stumpy: the same run, the same threads.

    python -m benchmarks.peers.profile_family --python python3.13

does for `matrix_profile` of several channels (stumpy's `mstump`: all numbers of channels at once)
and for `pan_matrix_profile` what `benchmarks.peers.profile` does for profiles; the record is
`benchmarks/results/peers-profile-family.json`. Cells are pairs of windows of one channel and one
length; of two windows, one pair. Values are squared distances, which must agree to 1e-6 of the
largest.
"""

import os
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from benchmarks.peers._comparison import Comparison, make_parser

PEERS = ("stumpy",)
SCRIPT = Path(__file__).with_name("_profile_family_worker.py")
TOLERANCE = 1e-6


@dataclass(frozen=True)
class Work:
    """One row of the table: random walks."""

    name: str
    n_channels: int
    n: int
    windows: tuple[int, ...]
    curve: None = None

    def request(self):
        """The input of the workers, and the number of pairs of windows in all channels."""
        x = np.random.default_rng(0).standard_normal((self.n_channels, self.n)).cumsum(axis=1)
        counts = [self.n - window + 1 for window in self.windows]
        request = {"x": x if self.n_channels > 1 else x[0], "windows": np.array(self.windows)}
        request |= {"exclusion": -(-self.windows[0] // 4)}
        return request, self.n_channels * sum(count * (count - 1) // 2 for count in counts)


WORKS = {
    **{
        f"channels-{count}": Work(
            f"profiles of every number of {count} channels, n = {n:,}, window 128",
            *(count, n, (128,)),
        )
        for count, n in ((3, 10_000), (8, 10_000), (32, 4_000))
    },
    "lengths-11": Work(
        "profiles of 11 lengths from 50 to 150, n = 4,000", 1, 4_000, tuple(range(50, 151, 10))
    ),
}


def main():
    threads = sorted({1, os.cpu_count()})
    output = "peers-profile-family.json"
    options = make_parser(__doc__, PEERS, WORKS, output, threads=threads).parse_args()
    comparison = Comparison(SCRIPT, options, TOLERANCE)
    comparison.measure_all(WORKS)
    comparison.write("Profiles of many channels and of many lengths beside stumpy on a CPU")
    comparison.exit_if_skts_failed()


if __name__ == "__main__":
    main()
