"""The one store of data that engines prepare from arrays, and keep for the next call."""

from __future__ import annotations

import threading
import weakref
from collections import OrderedDict
from collections.abc import Callable, Hashable, Iterator, Sequence
from contextlib import contextmanager
from functools import partial
from typing import Any, NamedTuple, TypeVar

import numpy as np

__all__ = ["PreparedStore"]

T = TypeVar("T")


class _Entry(NamedTuple):
    """Something that was made from an array, and its bytes."""

    owner: weakref.ref[np.ndarray]
    value: Any
    size: int


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
        self._entries: OrderedDict[tuple[int, Hashable], _Entry] = OrderedDict()
        self._owners: dict[int, weakref.ref[np.ndarray]] = {}
        # sizes of entries, and negative ones of those that have left: the sum is what is held, or
        # more, after an interrupt, since a size comes before its entry and leaves after it
        self._sizes: list[int] = []
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

    @property
    def budget(self) -> int | None:
        """Bytes of working memory of the run that this thread works for; None for no run."""
        return getattr(self._run, "budget", None)

    @contextmanager
    def limited(self, capacity: int, budget: int | None = None) -> Iterator[None]:
        """Set the capacity for this thread, in a ``with`` block; other runs have their own.

        Data of other runs may be dropped to make room, and are prepared again when they are needed.
        The capacity is a part of the budget of a run.
        """
        before = dict(vars(self._run))
        self._run.capacity, self._run.budget = capacity, budget
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
        found = self._find(owner, key)
        if found is not None:
            known: T = found.value
            return known
        gate = None
        try:
            with self._lock:
                gate = self._gates.setdefault(full_key, threading.RLock())
            # workers that need the same thing wait for the first of them, and make no other
            with gate:
                found = self._find(owner, key)
                if found is not None:
                    known = found.value
                    return known
                self.make_room(size)
                value, size = build()
                self.settle()
                with self._lock:
                    self._remove(full_key)
                    self._sizes.append(size)
                    self._entries[full_key] = _Entry(self._refer(owner), value, size)
                    self.make_room(0)
            return value
        finally:
            gate = None  # a traceback may keep this frame, and so the lock, alive for long

    def get_of(
        self,
        owners: Sequence[np.ndarray],
        key: Hashable,
        build: Callable[[], tuple[T, int]],
    ) -> T:
        """Return the same for something that is made from several arrays.

        The first owns it; the others are known by their places in memory, and must be the same.

        Parameters
        ----------
        owners : sequence of ndarray
            The arrays from which it is made.
        key : hashable
            Which of the things made from them.
        build : callable
            Returns the thing and its size in bytes.
        """
        first, *others = owners

        def build_both() -> tuple[tuple[T, list[weakref.ref[np.ndarray]]], int]:
            made, size = build()
            return (made, list(map(weakref.ref, others))), size

        full_key = key, tuple(map(id, others))
        made, known = self.get(first, full_key, build_both)
        if not all(one() is other for one, other in zip(known, others, strict=True)):
            self.drop(first, full_key)
            made, _ = self.get(first, full_key, build_both)
        return made

    def holds(self, owner: np.ndarray, key: Hashable) -> bool:
        """Whether something made from an array is there."""
        return self._find(owner, key) is not None

    def known(self, owner: np.ndarray, key: Hashable) -> Any:
        """Return something made from an array if it is there, else None."""
        found = self._find(owner, key)
        return None if found is None else found.value

    def make_room(self, size: int) -> None:
        """Drop what was used longest ago until so many bytes more would fit."""
        gone = []  # freed after the loop: an entry may own arrays of others, which are dropped then
        with self._lock:
            # the sizes are added up first, also of a single entry: the list of them stays short
            while self._at_most() + size > self.capacity and len(self._entries) > (size == 0):
                if self._recount() + size > self.capacity:
                    _, entry = self._entries.popitem(last=False)
                    self._sizes.append(-entry.size)
                    gone.append(entry)

    def settle(self) -> None:
        """Wait until an entry is complete for all workers; for engines that queue their work."""

    def _find(self, owner: np.ndarray, key: Hashable) -> _Entry | None:
        """Return the entry of an array and a key, and count it as used last."""
        full_key = id(owner), key
        with self._lock:
            found = self._entries.get(full_key)
            if found is None:
                return None
            if found.owner() is not owner:
                # of an array that was there before. Ctrl-C in the midst of `_drop` ends it: Python
                # lets no exception out of what it calls when an object dies
                self._remove(full_key)
                return None
            self._entries.move_to_end(full_key)
            return found

    def _refer(self, owner: np.ndarray) -> weakref.ref[np.ndarray]:
        """Return the one reference to an array whose entries go when it dies."""
        known = self._owners.get(id(owner))
        if known is None or known() is not owner:
            known = self._owners[id(owner)] = weakref.ref(owner, partial(self._drop, id(owner)))
        return known

    def drop(self, owner: np.ndarray, key: Hashable) -> None:
        """Forget one thing made from an array."""
        with self._lock:
            self._remove((id(owner), key))

    def _remove(self, full_key: tuple[int, Hashable]) -> _Entry | None:
        """Remove an entry, if it is there, and return it."""
        gone = self._entries.pop(full_key, None)
        if gone is not None:
            self._sizes.append(-gone.size)
        return gone

    def clear(self) -> None:
        """Drop everything."""
        with self._lock:
            gone, self._entries = self._entries, OrderedDict()
            self._sizes = []
        gone.clear()

    def size(self) -> int:
        """Bytes held."""
        return sum(entry.size for entry in list(self._entries.values()))

    def _at_most(self) -> int:
        """Bytes held, or a little more: the sum of few sizes."""
        # the garbage collector may append more in the midst of this
        count = len(self._sizes)
        total = sum(self._sizes[:count])
        self._sizes[:count] = [total]
        return total

    def _recount(self) -> int:
        """Bytes held: the sum of all sizes."""
        total = self.size()
        self._sizes[:] = [total]
        return total

    def _drop(self, place: int, owner: weakref.ref[np.ndarray]) -> None:
        # the garbage collector may call this anywhere, also in the midst of another call of it
        with self._lock:
            if self._owners.get(place) is owner:
                del self._owners[place]
            for key, entry in list(self._entries.items()):
                if entry.owner is owner:
                    self._remove(key)
