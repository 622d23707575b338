"""Linear algebra: NumPy's."""

from __future__ import annotations

from typing import Any

import numpy as np

from ._array import quietly


def __getattr__(name: str) -> Any:
    if name.startswith("__"):
        raise AttributeError(name)
    function = getattr(np.linalg, name)
    return lambda *args, **kwargs: quietly(function, *args, **kwargs)
