"""The CPU engine: Numba kernels that release the interpreter's lock, run in plain threads.

The methods that compute tiles stand beside their kernels, a mixin for each family of work.
"""

from __future__ import annotations

import numba
from joblib.parallel import get_active_backend

from ..core.engine import Engine
from ..core.reduction import Reduction
from ..core.worker import in_dask_worker
from ..host import remember_sources
from .elastic.alignment_tiles import AlignmentTiles
from .elastic.cells import Cell, cell_of
from .elastic.rotation_tiles import RotationTiles
from .elastic.soft_tiles import SoftDTWTiles
from .elastic.tiles import DTWTiles
from .kshape.tiles import SBDTiles
from .profile.channel_tiles import ChannelTiles
from .profile.mk_tiles import MKTiles
from .profile.tiles import JoinTiles
from .search.tiles import SubsequenceTiles
from .shapelets.best_tiles import BestTiles
from .shapelets.dilated_tiles import DilatedTiles
from .shapelets.tiles import ShapeletTiles

__all__ = ["Cell", "NumbaEngine", "cell_of"]

#: Elementary steps a second, to compare with other engines'.
STEPS_A_SECOND = 2**31

remember_sources(__name__.partition(".")[0])


class NumbaEngine(
    AlignmentTiles,
    ChannelTiles,
    BestTiles,
    DilatedTiles,
    DTWTiles,
    JoinTiles,
    MKTiles,
    RotationTiles,
    SBDTiles,
    ShapeletTiles,
    SoftDTWTiles,
    SubsequenceTiles,
    Engine,
):
    """Computes on the CPU."""

    name = "numba"
    row_scale = 8

    def available(self) -> str | None:
        """Return None: Numba is a dependency."""
        return None

    def seconds(self, reduction: Reduction) -> float:
        """Steps at the rate of some threads."""
        return reduction.total_work / STEPS_A_SECOND

    def details(self) -> str:
        """Threads that Numba was given, and the processor as LLVM calls it."""
        import llvmlite.binding

        return f"{numba.config.NUMBA_NUM_THREADS} threads, {llvmlite.binding.get_host_cpu_name()}"

    def workers(self, n_jobs: int | None) -> int:
        """Threads for `n_jobs`, at most what Numba was given; a task of Dask counts as one."""
        limit = numba.config.NUMBA_NUM_THREADS
        if n_jobs is None:
            n_jobs = 1 if in_dask_worker() else get_active_backend()[1]
        if n_jobs is None:
            return limit
        if n_jobs == 0:
            raise ValueError("n_jobs=0 has no meaning: name a number of threads, or -1 for all.")
        return max(1, limit + 1 + n_jobs) if n_jobs < 0 else min(n_jobs, limit)
