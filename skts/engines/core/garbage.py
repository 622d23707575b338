"""Work that makes many objects which all stay: no look for garbage among them.

Python looks at all objects of the process again whenever their number has grown by a quarter. In a
process with scikit-learn each such look takes a tenth of a second.
"""

from __future__ import annotations

import gc
from collections.abc import Iterator
from contextlib import contextmanager

__all__ = ["no_collections"]


@contextmanager
def no_collections() -> Iterator[None]:
    """Keep the garbage of an import or a compilation to its end."""
    enabled = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if enabled:
            gc.enable()
