"""A Dask cluster on this machine, as the tests and the fuzzer use it."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

__all__ = ["two_workers"]


@contextmanager
def two_workers(**options: Any) -> Iterator[Any]:
    """Start a cluster of two workers with a thread each; yield its client.

    Dask's profiler is off: a hundred times a second it asks for the frames of all threads, and on
    Python 3.11 the garbage collector may run in the midst of that, which stops the process for good
    when another thread starts or ends (python/cpython#106883, dask/distributed#8616).
    """
    import dask
    from distributed import Client, LocalCluster

    with (
        dask.config.set({"distributed.worker.profile.enabled": False}),
        LocalCluster(
            n_workers=2, threads_per_worker=1, dashboard_address=None, **options
        ) as cluster,
        Client(cluster) as client,
    ):
        yield client
