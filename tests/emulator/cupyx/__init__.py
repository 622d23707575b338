"""A stand-in for cupyx: see the README of the emulator."""

from __future__ import annotations

import numpy as np

__all__ = ["empty_pinned"]


def empty_pinned(shape: tuple[int, ...], dtype: np.dtype = float) -> np.ndarray:
    """Memory of the host."""
    return np.empty(shape, dtype)
