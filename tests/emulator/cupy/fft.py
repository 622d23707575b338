"""Fourier transforms, of the precision that they get."""

from __future__ import annotations

from typing import Any

import scipy.fft

from ._array import inner, outer

__all__ = ["fft", "ifft", "irfft", "rfft"]


def _of(name: str) -> Any:
    function = getattr(scipy.fft, name)

    def transform(a: Any, n: int | None = None, axis: int = -1, norm: str | None = None) -> Any:
        return outer(function(inner(a), n, axis, norm))

    return transform


fft, ifft, rfft, irfft = map(_of, ("fft", "ifft", "rfft", "irfft"))
