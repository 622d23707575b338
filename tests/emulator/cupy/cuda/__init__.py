"""Devices, streams, events and memory, as far as they mean something where all is synchronous."""

from __future__ import annotations

import threading
from typing import Any

from .._machine import SETTINGS, lock
from . import driver, memory, runtime

__all__ = ["Device", "Event", "Stream", "driver", "get_current_stream", "memory", "runtime"]

_here = threading.local()
MemoryHook, MemoryPointer = memory.MemoryHook, memory.Memory


class Device:
    """One of the emulated devices: all have the same memory."""

    def __init__(self, device: int | None = None) -> None:
        self.id = getattr(_here, "device", 0) if device is None else int(device)
        if not 0 <= self.id < SETTINGS.devices:
            raise runtime.CUDARuntimeError(101, "cudaErrorInvalidDevice: invalid device ordinal")

    def __enter__(self) -> Device:
        stack = vars(_here).setdefault("devices", [])
        stack.append(getattr(_here, "device", 0))
        _here.device = self.id
        return self

    def __exit__(self, *error: object) -> None:
        _here.device = _here.devices.pop()

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Device) and other.id == self.id

    def __hash__(self) -> int:
        return hash(self.id)

    def __repr__(self) -> str:
        return f"<CUDA Device {self.id}>"

    def use(self) -> None:
        _here.device = self.id

    def synchronize(self) -> None:
        pass

    @property
    def compute_capability(self) -> str:
        return SETTINGS.capability

    @property
    def attributes(self) -> dict[str, int]:
        return {
            "MultiProcessorCount": SETTINGS.multiprocessors,
            "MaxSharedMemoryPerBlockOptin": runtime.most_shared(),
            "MaxSharedMemoryPerBlock": 48 * 1024,
            "MaxThreadsPerBlock": 1024,
            "WarpSize": 32,
        }

    @property
    def mem_info(self) -> tuple[int, int]:
        return runtime.memGetInfo()


class Stream:
    """An order of work; work is done when it is given."""

    null: Stream
    _next = 1

    def __init__(
        self,
        null: bool = False,
        non_blocking: bool = False,
        ptds: bool = False,
        *,
        priority: int | None = None,
    ) -> None:
        with lock:
            self.ptr = 0 if null else Stream._next
            Stream._next += not null

    def __enter__(self) -> Stream:
        stack = vars(_here).setdefault("streams", [])
        stack.append(self)
        return self

    def __exit__(self, *error: object) -> None:
        _here.streams.pop()

    def synchronize(self) -> None:
        pass

    def wait_event(self, event: Event) -> None:
        pass

    def record(self, event: Event | None = None) -> Event:
        return event or Event()


Stream.null = Stream(null=True)


class Event:
    """A place in an order of work."""

    def __init__(self, block: bool = False, disable_timing: bool = False, **other: Any) -> None:
        self.done = True

    def record(self, stream: Stream | None = None) -> None:
        pass

    def synchronize(self) -> None:
        pass


def get_current_stream(device: int | None = None) -> Stream:
    """The stream of the innermost `with`."""
    stack = vars(_here).get("streams")
    return stack[-1] if stack else Stream.null


def set_allocator(allocator: Any = None) -> None:
    """Let a function give the memory of arrays."""
    memory.allocator = allocator


def get_allocator() -> Any:
    """The function that gives the memory of arrays."""
    return memory.allocator or memory.pool.malloc


def alloc_pinned_memory(size: int) -> bytearray:
    """Memory of the host."""
    return bytearray(size)
