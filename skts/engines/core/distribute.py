"""Shares of a reduction in other processes, through the back ends of joblib.

Inside ``joblib.parallel_config(backend=...)`` with processes or a cluster behind it, the executor
cuts the work into some shares for each worker, and each worker computes its share as if it were
alone: with its own engine, devices and memory budget. Results of tiles come back and merge here,
so the answer is the same as in one process. joblib or Dask decides which worker takes which share.

A share travels as the pickled reduction without its large arrays. Large arrays go to a worker once:
on this machine through a file that all processes map, on a Dask cluster through `scatter` to all
workers. They stay while the array lives, and with them what the worker's engine prepared, for the
next share and the next call. Where a Dask cluster loses all workers that held an array, it is sent
once more and the missing shares are computed again.
"""

from __future__ import annotations

import io
import os
import pickle
import threading
from collections import OrderedDict
from collections.abc import Iterator
from concurrent.futures import CancelledError
from functools import partial
from typing import Any, NamedTuple

import numpy as np
from joblib import Parallel, delayed

from ..._config import config_context, get_config
from .execution import Results, compute_area
from .prepared import PreparedStore
from .reduction import Reduction, Tile
from .series import new_file, remove_with

__all__ = ["share_out"]

#: Arrays of fewer bytes travel with the share.
LARGE = 2**16
#: Arrays that a process of this machine keeps mapped.
MAPPED = 64
#: How often lost arrays are sent once more before the error is the user's.
TRIES = 4

_sent = PreparedStore(capacity=2**62)
_mapped: OrderedDict[tuple[Any, ...], np.ndarray] = OrderedDict()
_lock = threading.Lock()


def share_out(
    backend: Any, reduction: Reduction, shares: list[Tile], engine: str, n_jobs: int | None
) -> Iterator[Results]:
    """Have shares computed by the workers of a back end; yield results as they arrive."""
    work, arrays = _pack(reduction)
    settings = {**get_config(), "progress": None}
    task = partial(_compute_share, work, engine=engine, n_jobs=n_jobs, settings=settings)
    if hasattr(backend, "client"):
        yield from _on_dask(backend.client, task, arrays, shares)
    else:
        places = [_place(array) for array in arrays]
        yield from Parallel(return_as="generator", max_nbytes=None)(
            delayed(task)(places, share) for share in shares
        )


def _compute_share(
    work: bytes,
    arrays: list[Any],
    share: Tile,
    *,
    engine: str,
    n_jobs: int | None,
    settings: dict[str, Any],
) -> Results:
    """Compute a share in this process, a worker."""
    reduction = _unpack(work, [a.load() if isinstance(a, _Place) else a for a in arrays])
    with config_context(**settings):
        return compute_area(reduction, share, engine=engine, n_jobs=n_jobs)


class _Pickler(pickle.Pickler):
    """Leaves large arrays out."""

    def __init__(self, file: io.BytesIO) -> None:
        super().__init__(file, protocol=pickle.HIGHEST_PROTOCOL)
        self.arrays: list[np.ndarray] = []

    def persistent_id(self, found: Any) -> int | None:
        """Number of an array that travels by itself."""
        if not isinstance(found, np.ndarray) or found.nbytes < LARGE or found.dtype.hasobject:
            return None
        for number, known in enumerate(self.arrays):
            if known is found:
                return number
        self.arrays.append(found)
        return len(self.arrays) - 1


class _Unpickler(pickle.Unpickler):
    """Puts the arrays in their places."""

    def __init__(self, file: io.BytesIO, arrays: list[np.ndarray]) -> None:
        super().__init__(file)
        self.arrays = arrays

    def persistent_load(self, number: int) -> np.ndarray:
        """The array with this number."""
        return self.arrays[number]


def _pack(reduction: Reduction) -> tuple[bytes, list[np.ndarray]]:
    """Pickle a reduction without its large arrays."""
    file = io.BytesIO()
    pickler = _Pickler(file)
    pickler.dump(reduction)
    return file.getvalue(), pickler.arrays


def _unpack(work: bytes, arrays: list[np.ndarray]) -> Reduction:
    """Put a reduction together."""
    reduction: Reduction = _Unpickler(io.BytesIO(work), arrays).load()
    return reduction


class _Place(NamedTuple):
    """Where in a file an array lies."""

    path: str
    offset: int
    dtype: np.dtype
    shape: tuple[int, ...]

    def load(self) -> np.ndarray:
        """Map the array, the same object as long as it is among those last used."""
        key = (self.path, self.offset, self.dtype.str, self.shape)
        with _lock:
            if key not in _mapped:
                mapped = np.memmap(self.path, self.dtype, "r", self.offset, self.shape)
                # a plain array, so that engines do not take it for a memory map of the user's
                _mapped[key] = mapped.view(np.ndarray)
                while len(_mapped) > MAPPED:
                    _mapped.popitem(last=False)
            _mapped.move_to_end(key)
            return _mapped[key]


def _place(array: np.ndarray) -> _Place:
    """Find or make the file that holds an array."""
    place: _Place = _sent.get(array, "place", lambda: (_file_of(array) or _write(array), 0))
    return place


def _file_of(array: np.ndarray) -> _Place | None:
    """Where a memory map, or a contiguous part of one, lies in its file."""
    owner = array
    while isinstance(owner.base, np.ndarray):
        owner = owner.base
    # a copy-on-write map may differ from its file
    if not isinstance(owner, np.memmap) or owner.filename is None or owner.mode == "c":
        return None
    if not array.flags.c_contiguous:
        return None
    offset = owner.offset + array.ctypes.data - owner.ctypes.data
    return _Place(os.fspath(owner.filename), offset, array.dtype, array.shape)


def _write(array: np.ndarray) -> _Place:
    """Write an array to a file that goes when the array does, or this process."""
    path = new_file()
    remove_with(array, path)
    np.ascontiguousarray(array).tofile(path)
    return _Place(path, 0, array.dtype, array.shape)


def _on_dask(
    client: Any, task: Any, arrays: list[np.ndarray], shares: list[Tile]
) -> Iterator[Results]:
    """Submit shares to a Dask cluster; send once more what it loses."""
    from distributed import as_completed

    missing = set(shares)
    for attempt in range(TRIES):
        futures: dict[Any, Tile] = {}
        try:
            inputs = [_scattered(client, array) for array in arrays]
            for share in sorted(missing):
                futures[client.submit(task, inputs, share, pure=False)] = share
            for future in as_completed(futures):
                share = futures.pop(future)
                try:
                    results = future.result()
                except CancelledError:
                    continue
                missing.discard(share)
                yield results
        except CancelledError:
            if attempt + 1 == TRIES:
                raise
        finally:
            if missing:
                client.cancel(list(futures))
        if not missing:
            return
    raise RuntimeError(
        f"The cluster lost its workers {TRIES} times; {len(missing)} of {len(shares)} shares of "
        "the work are missing."
    )


def _scattered(client: Any, array: np.ndarray) -> Any:
    """Future of an array that all workers hold."""
    key = ("dask", client.id)
    future = _sent.get(array, key, lambda: (_scatter(client, array), 0))
    if future.status != "finished":
        _sent.drop(array, key)
        future = _sent.get(array, key, lambda: (_scatter(client, array), 0))
    return future


def _scatter(client: Any, array: np.ndarray) -> Any:
    return client.scatter(array, broadcast=True, hash=False)
