"""Kernels that Ctrl-C need not wait for, and that several processes may compile at once.

A kernel takes seconds to compile, most of them inside LLVM where no signal is seen; that is done
aside.

Numba keeps the compiled instances of a function in files that it numbers, beside an index from
signatures to numbers. Two processes that compile different instances at the same time both take the
next number: one overwrites the file of the other, and from then on the index names a kernel for
other types, which ends in a ``TypingError`` in a process that did nothing wrong. Here the name of
a file follows from the signature, so that no two instances share one.
"""

from __future__ import annotations

import hashlib
import sys
from collections.abc import Callable, Hashable
from contextlib import suppress
from functools import partial
from typing import Any

from numba.core.caching import IndexDataCacheFile
from numba.core.dispatcher import Dispatcher

from ..core.interrupts import aside

__all__ = ["KeyedCacheFile", "prepare_kernels"]


class KeyedCacheFile(IndexDataCacheFile):
    """Numba's cache of a function, its files named by what they hold.

    A kernel that cannot be kept on disk, or read from there, is a kernel that is compiled again.
    """

    def save(self, key: Hashable, data: Any) -> None:
        """Save an instance, and only then say so in the index.

        When two processes write the index, one entry is lost, and compiled again some day.
        """
        name = self._data_name(hashlib.sha256(repr(key).encode()).hexdigest()[:16])
        with suppress(OSError):  # a full disk, a folder that has gone or may not be written to
            self._save_data(name, data)
            overloads = self._load_index()
            if overloads.get(key) != name:
                overloads[key] = name
                self._save_index(overloads)

    def load(self, key: Hashable) -> Any:
        """Load an instance; None where there is none, or its file is damaged."""
        with suppress(Exception):
            return super().load(key)
        return None

    def _load_index(self) -> dict[Hashable, str]:
        with suppress(Exception):
            return super()._load_index()
        return {}

    def _data_name(self, number: str) -> str:
        return f"{self._index_name.removesuffix('.nbi')}.{number}.nbc"


def prepare_kernels(package: str) -> None:
    """Have all compiled functions in the modules of a package behave in this way."""
    modules = [m for name, m in sys.modules.items() if name.startswith(package + ".")]
    for module in modules:
        for value in list(vars(module).values()):
            if not isinstance(value, Dispatcher) or "_compile_for_args" in vars(value):
                continue
            # Numba looks it up on the function, when it meets types that it has not compiled yet
            value._compile_for_args = partial(_compile_aside, value._compile_for_args)
            file = getattr(value._cache, "_cache_file", None)
            if type(file) is IndexDataCacheFile:
                file.__class__ = KeyedCacheFile


def _compile_aside(compile_for: Callable[..., Any], *args: Any, **kwargs: Any) -> Any:
    return aside(partial(compile_for, *args, **kwargs))
