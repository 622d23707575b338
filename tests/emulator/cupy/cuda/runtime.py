"""The runtime's answers about the emulated devices."""

from __future__ import annotations

import ctypes
import os

from .._machine import SETTINGS, Memory

__all__ = ["CUDARuntimeError", "getDeviceCount", "getDeviceProperties", "memGetInfo"]
__all__ += ["memcpyAsync", "memcpyDeviceToHost", "memcpyHostToDevice"]

memcpyHostToDevice, memcpyDeviceToHost = 1, 2


class CUDARuntimeError(RuntimeError):
    """An error of the runtime."""

    def __init__(self, status: int, message: str) -> None:
        super().__init__(message)
        self.status = status


_process: int | None = None


def start() -> None:
    """Start CUDA, for this process alone, as any call does."""
    global _process
    if _process is None:
        _process = os.getpid()
    if _process != os.getpid():
        raise CUDARuntimeError(3, "cudaErrorInitializationError: initialization error")


def getDeviceCount() -> int:
    start()
    return SETTINGS.devices


def getDeviceProperties(device: int) -> dict:
    start()
    return {
        "name": b"emulator",
        "multiProcessorCount": SETTINGS.multiprocessors,
        "sharedMemPerBlockOptin": most_shared(),
        "totalGlobalMem": SETTINGS.memory,
        "major": int(SETTINGS.capability) // 10,
        "minor": int(SETTINGS.capability) % 10,
    }


def most_shared() -> int:
    """Bytes of shared memory that a block may ask for."""
    return {75: 64, 80: 163, 86: 99, 89: 99}.get(int(SETTINGS.capability), 227) * 1024


def memGetInfo() -> tuple[int, int]:
    start()
    return max(0, SETTINGS.memory - Memory.used), SETTINGS.memory


def memcpyAsync(to: int, source: int, size: int, kind: int, stream: int) -> None:
    start()
    ctypes.memmove(to, source, size)


def driverGetVersion() -> int:
    return 13000


def runtimeGetVersion() -> int:
    return 13000
