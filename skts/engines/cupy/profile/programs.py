"""The CUDA programs of joins: which instances there are. Imports nothing of CUDA."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from ...families.profile.join import Join

__all__ = ["JoinKernel", "kernels", "choose_join", "seed_kernel"]

_TYPES: dict[type, str] = {np.float32: "float", np.float64: "double"}
#: Columns of a lane, and warps on a multiprocessor, which bound its registers: fastest on an H200.
SHAPES: dict[type, tuple[int, int]] = {np.float32: (16, 16), np.float64: (10, 12)}

#: Runs of possible neighbours that a list has room for.
RUNS_PER_WINDOW = 24


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


def choose_join(join: Join, shape: tuple[int, int]) -> JoinKernel:
    """Choose for a tile of a join: float64 unless float32 is asked for.

    Only leading bits of scores are compared, so that float64 costs little more than
    float32, and its bounds leave next to nothing to measure.
    """
    dtype = np.float32 if join.precision == "float32" else np.float64
    columns, blocks = SHAPES[dtype]
    # wide panels need fewer seeds, narrow ones keep a large GPU busy to the end
    strips = 4 if min(shape) >= 2**17 else 2 if min(shape) >= 2**15 else 1
    if dtype is np.float32:
        strips = min(strips, 2)
    return JoinKernel(dtype, columns, blocks, strips, join.within, join.normalize)


def seed_kernel(kernel: JoinKernel) -> str:
    """Name of the kernel that computes the seeds of another."""
    return f"seeds<{_TYPES[kernel.dtype]}, {str(kernel.normalize).lower()}>"


def kernels() -> dict[str, list[str]]:
    """Names of all instances by file."""
    instances = [
        JoinKernel(dtype, *SHAPES[dtype], 1, both, normalize)
        for dtype in _TYPES
        for both in (True, False)
        for normalize in (True, False)
    ]
    names = [kernel.name for kernel in instances]
    names += sorted({seed_kernel(kernel) for kernel in instances})
    names += ["refine", "certify", "first_of_equals"]
    return {
        "profile/join.cu": names,
        "profile/windows.cu": ["statistics", "distances"],
        "profile/mk.cu": ["bound", "measure"],
    }
