"""`kernel` has Numba compile a function: Ctrl-C need not wait, several processes may at once.

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
as values need it; no kernel is, so that it is left out. It makes the cache of a function when that
is imported; here it is made when the function is first called.
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
from numba import njit
from numba.core.caching import FunctionCache, IndexDataCacheFile, NullCache
from numba.core.dispatcher import Dispatcher
from numba.core.runtime import rtsys

from ..core.compiling import compiling
from ..core.garbage import no_collections
from ..core.interrupts import aside

__all__ = ["KernelCache", "KeyedCacheFile", "cache_of", "kernel", "remember_sources", "stamp_of"]

#: Types of constants that a compiled function holds as values.
_VALUES = (bool, int, float, complex, str, bytes, np.generic)

#: Options of all kernels. Code in C calls none: a function for it takes a tenth of a compilation.
_OPTIONS = {"nogil": True, "error_model": "numpy", "no_cfunc_wrapper": True}

#: States of the sources of modules when they were imported, by their names.
_sources: dict[str, tuple[float, int] | None] = {}


class KeyedCacheFile(IndexDataCacheFile):  # type: ignore[misc]  # Numba states no types
    """Numba's cache of a function, its files named by what they hold.

    A kernel that cannot be kept on disk, or read from there, is a kernel that is compiled again.

    What goes into a kernel is looked up when it is first asked for.
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


class KernelCache(FunctionCache):  # type: ignore[misc]
    """Numba's cache of a kernel, made when the kernel is first asked for: most never are."""

    def __init__(self, made: Dispatcher) -> None:
        super().__init__(made.py_func)
        file: Any = self._cache_file
        file.__class__ = KeyedCacheFile
        file.belong_to(made)

    def load_overload(self, sig: Any, target_context: Any) -> Any:
        """Load an instance; None where there is none.

        Numba would look up before all that it can compile, which takes 0.15 s in a process. Who
        compiles does that in any case; what is compiled needs the runtime alone.
        """
        rtsys.initialize(target_context)
        with self._guard_against_spurious_io_errors():
            return self._load_overload(sig, target_context)


class _NotOpened(NullCache):  # type: ignore[misc]
    """In place of the cache of a kernel that nobody has asked for."""


def kernel(function: Callable[..., Any] | None = None, /, **options: Any) -> Any:
    """Have Numba compile a function without the interpreter's lock, and keep it on disk.

    Parameters
    ----------
    function : callable or None
        The function; with None the decorator for it is returned.
    **options
        More options of `numba.njit`, or others than these: divisions by zero are NumPy's.

    Returns
    -------
    Dispatcher or callable
        What is compiled at its first call, or a decorator.
    """
    if function is None:
        return partial(kernel, **options)
    made: Any = njit(**{**_OPTIONS, **options})(function)
    if isinstance(made, Dispatcher):  # else Numba compiles nothing in this process
        made._cache = _NotOpened()
        # Numba looks both up on the function, when it meets types that it has not compiled yet: in
        # calls from Python, and in kernels that call it
        made._compile_for_args = partial(_compile_aside, made, made._compile_for_args)
        made.compile = partial(_compile, made, made.compile)
    return made


def cache_of(made: Dispatcher) -> KernelCache | None:
    """Return the cache of a kernel; None where there is no folder for one, and of others."""
    if isinstance(made._cache, _NotOpened):
        with suppress(RuntimeError):  # there is no folder that may be written to
            made._cache = KernelCache(made)
    return made._cache if isinstance(made._cache, KernelCache) else None


def remember_sources(package: str) -> None:
    """Take the states of a package's source files: they may change before it is compiled."""
    for name in list(sys.modules):
        if name.partition(".")[0] == package and name not in _sources:
            _sources[name] = _state_of_source(name)


def _compile(made: Dispatcher, compile_types: Callable[..., Any], *args: Any) -> Any:
    cache_of(made)
    return compile_types(*args)


def _compile_aside(
    made: Dispatcher, compile_for: Callable[..., Any], *args: Any, **kwargs: Any
) -> Any:
    def misses() -> int:
        return sum(made.stats.cache_misses.values())

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
