"""The one store of data that engines prepare from arrays, and keep for the next call."""

from __future__ import annotations

import threading
import weakref
from collections import OrderedDict
from collections.abc import Callable, Hashable, Iterator
from contextlib import contextmanager
from typing import Any, TypeVar

import numpy as np

__all__ = ["PreparedStore"]

T = TypeVar("T")


class PreparedStore:
    """Data that an engine prepares from arrays: built once, found again, dropped with the array.

    Parameters
    ----------
    capacity : int
        Bytes to hold where no run says otherwise; the least recently used entries make room.
    """

    def __init__(self, capacity: int = 2**30) -> None:
        self._capacity = capacity
        self._run = threading.local()
        self._entries: OrderedDict[tuple[int, Hashable], tuple[Any, int]] = OrderedDict()
        self._owners: set[int] = set()
        self.after_fork()

    def after_fork(self) -> None:
        """Make new locks: after a fork, the threads that may hold the old ones do not exist."""
        self._lock = threading.RLock()
        # locks of entries that are being built; each dies with the last thread that holds it
        self._gates: weakref.WeakValueDictionary[tuple[int, Hashable], Any] = (
            weakref.WeakValueDictionary()
        )

    def __len__(self) -> int:
        return len(self._entries)

    @property
    def capacity(self) -> int:
        """Bytes to hold, as the run that this thread works for has planned it."""
        return getattr(self._run, "capacity", self._capacity)

    @contextmanager
    def limited(self, capacity: int) -> Iterator[None]:
        """Set the capacity for this thread, in a ``with`` block; other runs have their own.

        Data of other runs may be dropped to make room, and are prepared again when they are needed.
        """
        before = dict(vars(self._run))
        self._run.capacity = capacity
        try:
            yield
        finally:
            vars(self._run).clear()
            vars(self._run).update(before)

    def get(
        self,
        owner: np.ndarray,
        key: Hashable,
        build: Callable[[], tuple[T, int]],
        size: int = 0,
    ) -> T:
        """Return what `build` made for this array and key, building it at need.

        Parameters
        ----------
        owner : ndarray
            The array from which it is made; when that dies, so does the entry.
        key : hashable
            Which of the things made from the array.
        build : callable
            Returns the thing and its size in bytes.
        size : int, default 0
            Bytes that it will take, where that is known: room is made before it is built.
        """
        full_key = (id(owner), key)
        found = self._find(full_key)
        if found is not None:
            known: T = found[0]
            return known
        gate = None
        try:
            with self._lock:
                gate = self._gates.setdefault(full_key, threading.RLock())
            # workers that need the same thing wait for the first of them, and make no other
            with gate:
                found = self._find(full_key)
                if found is not None:
                    known = found[0]
                    return known
                self.make_room(size)
                value, size = build()
                self.settle()
                with self._lock:
                    if id(owner) not in self._owners:
                        self._owners.add(id(owner))
                        weakref.finalize(owner, self._drop, id(owner))
                    self._entries[full_key] = (value, size)
                    self.make_room(0)
            return value
        finally:
            gate = None  # a traceback may keep this frame, and so the lock, alive for long

    def holds(self, owner: np.ndarray, key: Hashable) -> bool:
        """Whether something made from an array is there."""
        return (id(owner), key) in self._entries

    def make_room(self, size: int) -> None:
        """Drop what was used longest ago until so many bytes more would fit."""
        gone = []  # freed after the loop: an entry may own arrays of others, which are dropped then
        with self._lock:
            while len(self._entries) > (size == 0) and self.size() + size > self.capacity:
                gone.append(self._entries.popitem(last=False))

    def settle(self) -> None:
        """Wait until an entry is complete for all workers; for engines that queue their work."""

    def _find(self, full_key: tuple[int, Hashable]) -> tuple[Any, int] | None:
        """Return the entry of a key, and count it as used last."""
        with self._lock:
            if full_key in self._entries:
                self._entries.move_to_end(full_key)
            return self._entries.get(full_key)

    def drop(self, owner: np.ndarray, key: Hashable) -> None:
        """Forget one thing made from an array."""
        with self._lock:
            self._entries.pop((id(owner), key), None)

    def clear(self) -> None:
        """Drop everything."""
        with self._lock:
            gone, self._entries = self._entries, OrderedDict()
        gone.clear()

    def size(self) -> int:
        """Bytes held."""
        return sum(size for _, size in list(self._entries.values()))

    def _drop(self, owner: int) -> None:
        # the garbage collector may call this anywhere, also in the midst of another call of it
        with self._lock:
            self._owners.discard(owner)
            for key in list(self._entries):
                if key[0] == owner:
                    self._entries.pop(key, None)
