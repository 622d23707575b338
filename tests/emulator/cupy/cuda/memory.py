"""Allocators of the memory of arrays."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from .._machine import SETTINGS, Memory
from . import runtime

__all__ = ["Memory", "MemoryHook", "MemoryPool", "OutOfMemoryError", "pool", "take"]

allocator: Callable[[int], Any] | None = None


class OutOfMemoryError(MemoryError):
    """The device has no more memory."""

    def __init__(self, size: int, total: int, limit: int = 0) -> None:
        super().__init__(f"Out of memory allocating {size:,} bytes (allocated so far: {total:,}).")


class MemoryHook:
    """Is told of memory that is taken and freed inside of its `with`."""

    name = "MemoryHook"

    def __enter__(self) -> MemoryHook:
        Memory.hooks.append(self)
        return self

    def __exit__(self, *error: object) -> None:
        Memory.hooks.remove(self)

    def malloc_postprocess(self, **about: int) -> None:
        pass

    def free_postprocess(self, **about: int) -> None:
        pass


class MemoryPool:
    """CuPy's pool: here nothing is kept."""

    def malloc(self, size: int) -> Memory:
        if Memory.used + size > SETTINGS.memory:
            raise OutOfMemoryError(size, Memory.used)
        return Memory(size)

    def used_bytes(self) -> int:
        return Memory.used

    def free_bytes(self) -> int:
        return 0

    def total_bytes(self) -> int:
        return Memory.used

    def free_all_blocks(self, stream: Any = None) -> None:
        pass


pool = MemoryPool()


def take(size: int) -> Any:
    """Memory of an array."""
    runtime.start()
    return (allocator or pool.malloc)(size)
