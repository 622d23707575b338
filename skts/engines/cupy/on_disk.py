"""Which programs CuPy has in its cache on disk: it tells nobody, so that notes lie beside them."""

from __future__ import annotations

import hashlib
import os
from contextlib import suppress
from pathlib import Path

import cupy as cp

from .programs import OPTIONS

__all__ = ["is_noted", "note"]


def note(code: str, names: tuple[str, ...]) -> None:
    """Note that a program has been compiled for the current device.

    Parameters
    ----------
    code : str
        Its text.
    names : tuple of str
        Instances of templates.
    """
    path = _path(code, names)
    if path is not None and path.parent.is_dir():
        with suppress(OSError):  # a folder that only others may write to
            path.touch()


def is_noted(code: str, names: tuple[str, ...]) -> bool:
    """Whether a program has been compiled for the current device, by any process."""
    path = _path(code, names)
    return path is not None and path.exists()


def _path(code: str, names: tuple[str, ...]) -> Path | None:
    """The note of a program; None where CuPy keeps nothing on disk."""
    if os.environ.get("CUPY_CACHE_IN_MEMORY", "0") not in ("", "0"):
        return None
    runtime = cp.cuda.runtime.runtimeGetVersion()
    told = code, names, OPTIONS, cp.__version__, runtime, cp.cuda.Device().compute_capability
    folder = os.environ.get("CUPY_CACHE_DIR") or Path.home() / ".cupy" / "kernel_cache"
    return Path(folder, f"skts-{hashlib.sha256(repr(told).encode()).hexdigest()[:32]}.compiled")
