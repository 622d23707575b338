"""Whether this process sends work to workers of joblib elsewhere, or is such a worker."""

from __future__ import annotations

import multiprocessing
import re
import sys
from typing import Any

from joblib.parallel import get_active_backend

__all__ = ["find_backend", "in_dask_worker", "worker_number"]


def find_backend(n_jobs: int | None) -> tuple[Any, int] | None:
    """Return the back end of an enclosing ``parallel_config`` and its number of workers.

    None where there is no such block, where its workers are threads of this process, or where
    this is a worker already: then the work is done here.
    """
    backend, configured = get_active_backend()
    # without a block, or with one that names no back end, joblib makes a new one at every call
    named = backend is get_active_backend()[0]
    inside = backend.nesting_level != 0 or in_dask_worker()
    if not named or inside or getattr(backend, "supports_sharedmem", False):
        return None
    workers = backend.effective_n_jobs(configured if n_jobs is None else n_jobs)
    return (backend, workers) if workers > 1 or hasattr(backend, "client") else None


def in_dask_worker() -> bool:
    """Whether this thread computes a task of a Dask worker, which counts as one thread."""
    return _dask_worker() is not None


def worker_number() -> int | None:
    """Number of this worker among those that loky or a local Dask cluster started; else None.

    It chooses one of the devices that the process sees. Workers of a cluster that go by other
    names, and those of dask-cuda, which see their own device first, are number 0.
    """
    process = re.search(r"^LokyProcess-(\d+)", multiprocessing.current_process().name)
    if process:
        return int(process[1]) - 1
    worker = _dask_worker()
    if worker is None:
        return None
    own = isinstance(worker.name, int) and "dask_cuda" not in sys.modules
    return worker.name if own else 0


def _dask_worker() -> Any:
    """The Dask worker of which this thread computes a task, or None."""
    distributed = sys.modules.get("distributed")
    if distributed is None:
        return None
    try:
        return distributed.get_worker()
    except ValueError:
        return None
