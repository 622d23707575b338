"""Kernels that Ctrl-C need not wait for, and that several processes may compile at once.

A kernel takes seconds to compile, most of them inside LLVM where no signal is seen; that is done
aside, and one line says so.

Numba keeps the compiled instances of a function in files that it numbers, beside an index from
signatures to numbers. Two processes that compile different instances at the same time both take the
next number: one overwrites the file of the other, and from then on the index names a kernel for
other types, which ends in a ``TypingError`` in a process that did nothing wrong. Here the name of
a file follows from the signature, so that no two instances share one.

Numba compiles what a function calls into it, but looks only at the function's own file to see
whether an instance on disk is still valid. Here it is compiled anew, too, when a file changes that
holds a compiled function that it calls, directly or through others, or when a constant that it
reads has another value.

Numba adds to each instance a function that code in C may call. Only functions that are handed over
as values need it; no kernel is, so that it is left out.
"""

from __future__ import annotations

import hashlib
import marshal
import os
import sys
from collections.abc import Callable, Hashable, Iterator
from contextlib import suppress
from functools import partial
from types import CodeType, FunctionType, ModuleType
from typing import Any

import numpy as np
from numba.core.caching import IndexDataCacheFile
from numba.core.dispatcher import Dispatcher

from ..core.compiling import compiling
from ..core.garbage import no_collections
from ..core.interrupts import aside

__all__ = ["KeyedCacheFile", "prepare_kernels", "stamp_of"]

#: Types of constants that a compiled function holds as values.
_VALUES = (bool, int, float, complex, str, bytes, np.generic)

#: States of the sources of modules when their kernels were prepared, by their names.
_sources: dict[str, tuple[float, int] | None] = {}


class KeyedCacheFile(IndexDataCacheFile):  # type: ignore[misc]  # Numba states no types
    """Numba's cache of a function, its files named by what they hold.

    A kernel that cannot be kept on disk, or read from there, is a kernel that is compiled again.

    Most kernels of a process are never asked for: what goes into one is looked up when it is.
    """

    #: The function, until the stamp holds what goes into it; the stamp that Numba gave.
    _kernel: Dispatcher | None = None
    _own_stamp: Hashable = None

    def belong_to(self, kernel: Dispatcher) -> None:
        """Have the index hold for a function together with what is compiled into it."""
        self._kernel, self._own_stamp = kernel, self._source_stamp

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
        kernel = self._kernel
        if kernel is not None:  # another thread may be here, too
            # Numba compares this with what the index on disk was written with
            self._source_stamp, self._kernel = (self._own_stamp, stamp_of(kernel)), None
        found: dict[Hashable, str] = {}
        with suppress(Exception):
            found = super()._load_index()
        return found

    def _data_name(self, number: str) -> str:
        return f"{self._index_name.removesuffix('.nbi')}.{number}.nbc"


def prepare_kernels(package: str) -> None:
    """Have all compiled functions in the modules of a package behave in this way."""
    home = package.partition(".")[0]
    for name in [name for name in sys.modules if name.partition(".")[0] == home]:
        if name not in _sources:  # it may change on disk before its kernels are compiled
            _sources[name] = _state_of_source(name)
    modules = [m for name, m in sys.modules.items() if name.startswith(package + ".")]
    for module in modules:
        for value in list(vars(module).values()):
            if not isinstance(value, Dispatcher) or "_compile_for_args" in vars(value):
                continue
            # no way in for code in C, which nobody takes and which takes a tenth of a compilation
            value.targetoptions["no_cfunc_wrapper"] = True
            # Numba looks it up on the function, when it meets types that it has not compiled yet
            value._compile_for_args = partial(_compile_aside, value, value._compile_for_args)
            file: Any = getattr(value._cache, "_cache_file", None)
            if type(file) is IndexDataCacheFile:
                file.__class__ = KeyedCacheFile
                file.belong_to(value)


def _compile_aside(
    kernel: Dispatcher, compile_for: Callable[..., Any], *args: Any, **kwargs: Any
) -> Any:
    def misses() -> int:
        return sum(kernel.stats.cache_misses.values())

    before = misses()
    # what is found on disk is not compiled; looking for garbage takes 6 % of a compilation
    with compiling(lambda: misses() > before), no_collections():
        return aside(partial(compile_for, *args, **kwargs))


def stamp_of(*functions: Dispatcher | FunctionType) -> tuple[Hashable, ...]:
    """Say which files and values go into functions once they are compiled, in their states.

    Parameters
    ----------
    *functions : Dispatcher or function
        Functions, compiled or to be compiled. Of what they call, and of the constants that they
        read, those count that belong to the packages of the functions.

    Returns
    -------
    tuple
        Names and states; the same in every process until one of them changes.
    """
    packages = {_package_of(function) for function in functions}
    parts: dict[str, Hashable] = {}
    seen = {id(function) for function in functions}
    waiting = list(functions)
    while waiting:
        used = waiting.pop()
        name = f"{used.__module__}.{used.__qualname__}"
        if isinstance(used, Dispatcher):
            parts[name] = _options_of(used)
            used = used.py_func
        parts[used.__module__] = _state_of_source(used.__module__)
        if parts[used.__module__] is None:
            # as in a notebook, where a function may be written anew
            parts[f"{name}: code"] = hashlib.sha256(marshal.dumps(used.__code__)).hexdigest()
        for name, value in _globals_of(used, packages):
            if isinstance(value, _VALUES):
                parts[f"{used.__module__}: {name}"] = repr(value)
            elif isinstance(value, np.ndarray):
                parts[f"{used.__module__}: {name}"] = hashlib.sha256(value.tobytes()).hexdigest()
            elif id(value) not in seen and _package_of(value) in packages:
                seen.add(id(value))
                parts[value.__module__] = _state_of_source(value.__module__)
                if isinstance(value, Dispatcher | FunctionType):
                    waiting.append(value)
    return tuple(sorted(parts.items()))


def _globals_of(function: FunctionType, packages: set[str]) -> Iterator[tuple[str, Any]]:
    """Yield the globals that a function reads, also from modules of the packages, by name."""
    names: set[str] = set()
    codes = [function.__code__]
    for code in codes:  # grows: functions inside of it have a code of their own
        names.update(code.co_names)
        codes += [constant for constant in code.co_consts if isinstance(constant, CodeType)]
    modules: list[ModuleType] = []
    found = _entries(function.__globals__, names)
    for name, value in found:  # grows: a module's entries, which the function may name, too
        if not isinstance(value, ModuleType):
            yield name, value
        elif value.__name__.partition(".")[0] in packages and value not in modules:
            modules.append(value)
            found += _entries(vars(value), names)


def _entries(namespace: dict[str, Any], names: set[str]) -> list[tuple[str, Any]]:
    """Entries of a namespace with these names; those of a tuple one by one."""
    entries = [(name, namespace[name]) for name in names & namespace.keys()]
    for name, value in entries:  # grows
        if isinstance(value, tuple):
            entries += [(f"{name}[{place}]", item) for place, item in enumerate(value)]
    return [(name, value) for name, value in entries if not isinstance(value, tuple)]


def _package_of(value: Any) -> str:
    module = getattr(value, "__module__", None)
    return module.partition(".")[0] if isinstance(module, str) else ""


def _options_of(kernel: Dispatcher) -> Hashable:
    """Options that a function is compiled with, which may be constants of other files."""
    options = kernel.targetoptions.items()
    # the order of a set of names changes from process to process
    return tuple(
        (name, repr(sorted(value) if isinstance(value, set | frozenset) else value))
        for name, value in sorted(options)
    )


def _state_of_source(module: str) -> tuple[float, int] | None:
    """Time and size of a module's source, as Numba looks at those of the function itself."""
    if module in _sources:
        return _sources[module]
    file: str | None = getattr(sys.modules.get(module), "__file__", None)
    try:
        status = os.stat(file or "")
    except OSError:  # no file, as inside of an archive
        return None
    return status.st_mtime, status.st_size
