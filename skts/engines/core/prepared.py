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

#: Keys of entries that have gone, beyond as many as there are, before they are looked for.
FORGOTTEN = 64


class _Entry(NamedTuple):
    """Something that was made from an array, and its bytes."""

    value: Any
    size: int


class _Owned(NamedTuple):
    """A reference to an array, and all that was made from it."""

    owner: weakref.ref[np.ndarray]
    entries: dict[Hashable, _Entry]


class PreparedStore:
    """Data that an engine prepares from arrays: built once, found again, dropped with the array.

    Parameters
    ----------
    capacity : int
        Bytes to hold where no run says otherwise; the least recently used entries make room.

    Notes
    -----
    Python lets no exception out of what it calls when an array dies: Ctrl-C in there would not be
    heard, and the rest of that call be lost. So nothing of Python is called then, but the method of
    a dictionary that holds all that was made from the array (`_held`). Order and bytes are brought
    up to date when room is needed.
    """

    def __init__(self, capacity: int = 2**30) -> None:
        self._capacity = capacity
        self._run = threading.local()
        # by the place of the array in memory; of the order a part may be gone
        self._held: dict[int, _Owned] = {}
        self._order: OrderedDict[tuple[int, Hashable], None] = OrderedDict()
        # bytes that are held, or more: they count before an entry is there, and until it is missed
        self._at_most, self._most_keys = 0, FORGOTTEN
        self.after_fork()

    def after_fork(self) -> None:
        """Make new locks: after a fork, the threads that may hold the old ones do not exist."""
        self._lock = threading.RLock()
        # locks of entries that are being built; each dies with the last thread that holds it
        self._gates: weakref.WeakValueDictionary[tuple[int, Hashable], Any] = (
            weakref.WeakValueDictionary()
        )

    def __len__(self) -> int:
        return sum(len(owned.entries) for owned in list(self._held.values()))

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
                    self._at_most += size
                    self._order[full_key] = None
                    self._entries_of(owner)[key] = _Entry(value, size)
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
            fits = self._at_most + size <= self.capacity
            if fits and len(self._order) <= self._most_keys:
                return
            self.recount()
            while self._at_most + size > self.capacity and len(self._order) > (size == 0):
                gone.append(self._remove(next(iter(self._order))))

    def recount(self) -> int:
        """Miss what has gone with its array; return the bytes that are held."""
        with self._lock:
            for place, key in list(self._order):
                owned = self._held.get(place)
                if owned is None or key not in owned.entries:
                    self._order.pop((place, key), None)
            self._at_most, self._most_keys = self.size(), 2 * len(self._order) + FORGOTTEN
            return self._at_most

    def settle(self) -> None:
        """Wait until an entry is complete for all workers; for engines that queue their work."""

    def _find(self, owner: np.ndarray, key: Hashable) -> _Entry | None:
        """Return the entry of an array and a key, and count it as used last."""
        with self._lock:
            owned = self._held.get(id(owner))
            if owned is None or owned.owner() is not owner:
                return None
            found = owned.entries.get(key)
            if found is not None:
                self._order[id(owner), key] = None
                self._order.move_to_end((id(owner), key))
            return found

    def _entries_of(self, owner: np.ndarray) -> dict[Hashable, _Entry]:
        """Return the dictionary of what was made from an array, which goes when the array dies."""
        place = id(owner)
        owned = self._held.get(place)
        if owned is None or owned.owner() is not owner:
            # called with the reference, which it returns where nothing is there
            let_go = partial(self._held.pop, place)
            owned = self._held[place] = _Owned(weakref.ref(owner, let_go), {})
        return owned.entries

    def drop(self, owner: np.ndarray, key: Hashable) -> None:
        """Forget one thing made from an array."""
        with self._lock:
            self._remove((id(owner), key))

    def _remove(self, full_key: tuple[int, Hashable]) -> _Entry | None:
        """Remove an entry, if it is there, and return it."""
        place, key = full_key
        owned = self._held.get(place)
        gone = None if owned is None else owned.entries.pop(key, None)
        if gone is not None:
            self._at_most -= gone.size
        self._order.pop(full_key, None)
        return gone

    def clear(self) -> None:
        """Drop everything."""
        with self._lock:
            gone = list(self._held.values())
            self._held.clear()
            self._order.clear()
            self._at_most = 0
        gone.clear()

    def size(self) -> int:
        """Bytes held."""
        held = list(self._held.values())
        return sum(entry.size for owned in held for entry in list(owned.entries.values()))
