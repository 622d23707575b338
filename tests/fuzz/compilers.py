"""Workers that compile nothing twice: what one compiles the others wait for, and load.

Numba and CuPy keep on disk what they compile, but many processes that begin together all miss it
and all compile the same. Here a process that compiles holds a file that is named for the kernel,
and looks on the disk again once it has it.
"""

from __future__ import annotations

import contextlib
import fcntl
import hashlib
import importlib
import os
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, TextIO

from numba.core.caching import Cache
from numba.core.compiler_lock import global_compiler_lock
from numba.core.dispatcher import Dispatcher

__all__ = ["WAITING", "share_compilers", "spent", "waits_for"]

#: Seconds that this process has compiled, waited for others that do, or loaded kernels; and has
#: waited.
spent: Counter[str] = Counter()
WAITING = "waiting"
_held: set[str] = set()
_counting = threading.local()


def share_compilers(folder: Path) -> None:
    """Have this process take turns with all others that name the same folder."""
    folder.mkdir(exist_ok=True)
    plain = Dispatcher.compile

    def compile(self: Any, signature: Any) -> Any:
        function = self.py_func
        name = f"{function.__module__}.{function.__qualname__} {signature}"
        # all that this process compiles waits behind one lock, so that no two threads of it hold
        # files that the other waits for
        with _counted("Numba"), global_compiler_lock, _alone(folder, name):
            return plain(self, signature)

    Dispatcher.compile = compile
    save = Cache.save_overload

    def save_overload(self: Any, signature: Any, data: Any) -> Any:
        # of two processes that add to the index of a function at the same time, one would be lost,
        # or its kernel be found under the name of the other's
        with _alone(folder, f"{self.cache_path} {self._impl.filename_base}"):
            return save(self, signature, data)

    Cache.save_overload = save_overload
    with contextlib.suppress(ImportError):
        _share_cupy(importlib.import_module("cupy.cuda.compiler"), folder)


def _share_cupy(module: Any, folder: Path) -> None:
    name = "_compile_module_with_cache"
    plain: Callable[..., Any] | None = getattr(module, name, None)
    if plain is None:  # another version, or the stand-in for it
        return

    def compile(source: str, *more: Any, **named: Any) -> Any:
        with _counted("CuPy"), _alone(folder, f"{source} {more} {named}"):
            return plain(source, *more, **named)

    setattr(module, name, compile)


@contextlib.contextmanager
def _alone(folder: Path, name: str) -> Iterator[None]:
    """Hold the file of a kernel; processes that end leave it."""
    path = folder / hashlib.sha256(name.encode()).hexdigest()[:32]
    if path.name in _held:  # a function that calls itself
        yield
        return
    with path.open("a+") as file:
        _take(file, folder, name)
        _held.add(path.name)
        try:
            yield
        finally:
            _held.discard(path.name)


def _take(file: TextIO, folder: Path, name: str) -> None:
    """Take the lock of a kernel; who has it, and who waits, is written down for `waits_for`."""
    try:
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        note = folder / f"waits-{os.getpid()}"
        note.write_text(Path(file.name).name)
        start = time.monotonic()
        fcntl.flock(file, fcntl.LOCK_EX)
        spent[WAITING] += time.monotonic() - start
        note.unlink(missing_ok=True)
    file.truncate(0)
    file.write(f"{os.getpid()} {time.time():.0f} {name[-200:]}")
    file.flush()


def waits_for(folder: Path, process: int) -> str:
    """Which kernel a process waits for, and who has been compiling it; nothing if for none."""
    try:
        held = (folder / (folder / f"waits-{process}").read_text()).read_text()
        holder, since, name = held.split(" ", 2)
    except (OSError, ValueError):
        return ""
    return f"waits for process {holder}, {max(0.0, time.time() - float(since)):.0f} s at {name!r}"


@contextlib.contextmanager
def _counted(what: str) -> Iterator[None]:
    """Add the seconds inside, where it is not inside of itself."""
    if getattr(_counting, what, False):
        yield
        return
    setattr(_counting, what, True)
    start = time.monotonic()
    try:
        yield
    finally:
        setattr(_counting, what, False)
        spent[what] += time.monotonic() - start
