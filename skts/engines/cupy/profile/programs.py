"""The CUDA programs of joins: which instances there are. Imports nothing of CUDA."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from ...families.profile.join import Join

__all__ = [
    "HEIGHTS",
    "MK_CAPACITY",
    "RUNS_PER_WINDOW",
    "SAMPLE",
    "SEED_BYTES",
    "JoinKernel",
    "choose_height",
    "choose_join",
    "kernels",
    "pairs_kernel",
    "room",
    "seed_kernel",
    "stated_type",
    "steps_kernel",
    "worth_an_estimate",
]

_TYPES: dict[type, str] = {np.float32: "float", np.float64: "double"}
#: Columns of a lane, and warps on a multiprocessor, which bound its registers: fastest on an H200.
SHAPES: dict[type, tuple[int, int]] = {np.float32: (16, 16), np.float64: (10, 12)}

#: Rows of a band, for tiles whose shorter side is at least so long. Errors of covariances grow with
#: the rows: in float32, where they decide how much is measured, bands are low.
HEIGHTS: dict[type, tuple[tuple[int, int], ...]] = {
    np.float32: ((0, 1024),),
    np.float64: ((2**17, 4096), (0, 1024)),
}
#: Pairs from which on it is estimated how much a search in float32 would leave to measure: with
#: fewer, the estimate takes longer than float32 can save.
PAIRS_TO_ESTIMATE = 2**35
#: Windows that are compared with all others for it.
SAMPLE = 24
#: Bytes of first columns in a launch.
SEED_BYTES = 2**30
#: Runs of possible neighbours that a list has room for.
RUNS_PER_WINDOW = 24
#: From so many bytes on: runs that a list holds at least, and runs that are measured at a time.
#: Rows whose runs do not fit on a list are walked again.
ROOMS = (2**30, 2**20, 2**19), (0, 2**16, 2**16)
#: Kernels of ``candidates.cu``.
CANDIDATE_KERNELS = (
    *("choose", "least_scores", "keep", "certify_chosen"),
    *("certify", "first_of_equals", "answer"),
)
#: Pairs that MK measures at a time, if a run of positions is not longer.
MK_CAPACITY = 2**22


class JoinKernel(NamedTuple):
    """An instance of the kernel ``join`` of ``join.cu``.

    Attributes
    ----------
    dtype : type
        Type of covariances.
    columns, blocks : int
        Columns of a lane, K; blocks, of one warp, on a multiprocessor, B.
    strips : int
        Strips of a panel, which a warp walks one after the other.
    both : bool
        Whether columns look for neighbours, too.
    normalize : bool
        Whether windows are z-normalised.
    """

    dtype: type
    columns: int
    blocks: int
    strips: int
    both: bool
    normalize: bool

    @property
    def panel(self) -> int:
        """Columns of a panel."""
        return 32 * self.columns * self.strips

    @property
    def name(self) -> str:
        """Its name in C++."""
        flags = ", ".join(str(flag).lower() for flag in (self.both, self.normalize))
        return f"join<{_TYPES[self.dtype]}, {self.columns}, {self.blocks}, {flags}>"


def choose_join(join: Join, shape: tuple[int, int], dtype: type) -> JoinKernel:
    """Choose for a tile of a join; `dtype` is that of covariances, see ``precision.py``."""
    columns, blocks = SHAPES[dtype]
    # wide panels need fewer seeds, narrow ones keep a large GPU busy to the end; in float32 they
    # are wider, and so are the bounds of their errors
    wide, wider = (2**15, 2**19) if dtype is np.float32 else (2**15, 2**17)
    strips = 4 if min(shape) >= wider else 2 if min(shape) >= wide else 1
    return JoinKernel(dtype, columns, blocks, strips, join.within, join.normalize)


def choose_height(shape: tuple[int, int], dtype: type) -> int:
    """Choose the rows of a band of a tile."""
    return next(height for start, height in HEIGHTS[dtype] if min(shape) >= start)


def stated_type(join: Join) -> type:
    """Type of covariances where nothing else is known: float64 unless float32 is asked for."""
    return np.float32 if join.precision == "float32" else np.float64


def worth_an_estimate(join: Join) -> bool:
    """Whether a join is so large that a search in float32 could be worth its errors.

    With several neighbours for each window, errors leave several times as much to measure.
    """
    n_rows, n_columns = join.shape
    pairs = (n_rows * n_columns - join.since**2) // (2 if join.within else 1)
    return join.n_neighbors == 1 and pairs >= PAIRS_TO_ESTIMATE


def room(budget: int) -> tuple[int, int]:
    """Runs that a list holds at least, and runs that are measured at a time, within a budget."""
    return next((least, some) for start, least, some in ROOMS if budget >= start)


def seed_kernel(kernel: JoinKernel) -> str:
    """Name of the kernel that computes the seeds of another."""
    return f"seeds<{_TYPES[kernel.dtype]}, {str(kernel.normalize).lower()}>"


def steps_kernel(dtype: type, normalize: bool) -> str:
    """Name of the kernel that makes the steps of a line."""
    return f"steps<{_TYPES[dtype]}, {str(normalize).lower()}>"


def pairs_kernel(normalize: bool) -> str:
    """Name of the kernel that scores the pairs of runs."""
    return f"pairs_of_runs<{str(normalize).lower()}>"


def kernels() -> dict[str, list[str]]:
    """Names of all instances by file."""
    instances = [
        JoinKernel(dtype, *SHAPES[dtype], 1, both, normalize)
        for dtype in _TYPES
        for both in (True, False)
        for normalize in (True, False)
    ]
    return {
        "profile/seeds.cu": sorted({seed_kernel(kernel) for kernel in instances}),
        "profile/steps.cu": [steps_kernel(t, n) for t in _TYPES for n in (True, False)],
        "profile/join.cu": [kernel.name for kernel in instances],
        "profile/precision.cu": ["count_near"],
        "profile/candidates.cu": list(CANDIDATE_KERNELS),
        "profile/pairs.cu": ["heads", pairs_kernel(True), pairs_kernel(False)],
        "profile/lengths.cu": [
            *("energies", "limits<double>", "limits<float>", "odd"),
            *("score_lengths", "places_of"),
        ],
        "profile/windows.cu": ["statistics", "kinds", "searched", "distances"],
        "profile/mk.cu": ["bound", "measure"],
    }
