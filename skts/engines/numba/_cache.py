"""Kernels on disk that several processes may compile at once.

Numba keeps the compiled instances of a function in files that it numbers, beside an index from
signatures to numbers. Two processes that compile different instances at the same time both take the
next number: one overwrites the file of the other, and from then on the index names a kernel for
other types, which ends in a ``TypingError`` in a process that did nothing wrong. Here the name of
a file follows from the signature, so that no two instances share one.
"""

from __future__ import annotations

import hashlib
import sys
from collections.abc import Hashable
from typing import Any

from numba.core.caching import IndexDataCacheFile
from numba.core.dispatcher import Dispatcher

__all__ = ["KeyedCacheFile", "name_files_by_signature"]


class KeyedCacheFile(IndexDataCacheFile):
    """Numba's cache of a function, its files named by what they hold."""

    def save(self, key: Hashable, data: Any) -> None:
        """Save an instance, and only then say so in the index.

        When two processes write the index, one entry is lost, and compiled again some day.
        """
        name = self._data_name(hashlib.sha256(repr(key).encode()).hexdigest()[:16])
        self._save_data(name, data)
        overloads = self._load_index()
        if overloads.get(key) != name:
            overloads[key] = name
            self._save_index(overloads)

    def _data_name(self, number: str) -> str:
        return f"{self._index_name.removesuffix('.nbi')}.{number}.nbc"


def name_files_by_signature(package: str) -> None:
    """Have all cached functions in the modules of a package keep their files in this way."""
    modules = [m for name, m in sys.modules.items() if name.startswith(package + ".")]
    for module in modules:
        for value in list(vars(module).values()):
            file = getattr(getattr(value, "_cache", None), "_cache_file", None)
            if isinstance(value, Dispatcher) and type(file) is IndexDataCacheFile:
                file.__class__ = KeyedCacheFile
