"""Finding engines by name: one instance of each, imported when it is asked for."""

from __future__ import annotations

import os
import sys
import threading
from collections.abc import Iterator
from functools import cached_property
from typing import Any

from ..._config import get_config
from ..._engine_names import engine_names, entry_point_of
from ...exceptions import EngineNotAvailableError, UnsupportedReductionError
from .engine import Engine
from .garbage import no_collections
from .reduction import Reduction

__all__ = ["REFERENCE", "engine_names", "find_engine", "get_engine", "show_engines"]

#: The engine that runs everywhere and computes everything. Where answers of engines may differ, as
#: centres of k-Shape do, its answers are the certified ones.
REFERENCE = "numba"
_instances: dict[str, Engine] = {}
_lock = threading.RLock()


def _after_fork() -> None:
    """Make new locks: in a forked process no thread is left to release the old ones."""
    global _lock
    _lock = threading.RLock()
    for engine in _instances.values():
        engine.prepared.after_fork()
    if sys.version_info < (3, 12):
        # a cached property has a lock there, one for all its objects
        for one in _cached_properties():
            vars(one)["lock"] = threading.RLock()


def _cached_properties() -> Iterator[cached_property[Any]]:
    """Cached properties of the classes of the package."""
    for name, module in list(sys.modules.items()):
        if name.partition(".")[0] == "skts":
            for kind in [one for one in vars(module).values() if isinstance(one, type)]:
                yield from (one for one in vars(kind).values() if type(one) is cached_property)


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_after_fork)


def find_engine(name: str) -> Engine:
    """Return the one instance of an engine, importing its module at the first call.

    Parameters
    ----------
    name : str
        As users write it.

    Returns
    -------
    Engine
        Whether or not it can run here.

    Raises
    ------
    ValueError
        If no engine has that name.
    """
    with _lock:
        if name not in _instances:
            with no_collections():
                _instances[name] = entry_point_of(name).load()()
        return _instances[name]


def get_engine(name: str | Engine | None = None, reduction: Reduction | None = None) -> Engine:
    """Choose the engine for a piece of work.

    Parameters
    ----------
    name : str, Engine or None
        An engine or its name, or "auto": of those that run here and support the work the one
        that says it takes the least time. None takes the name from the configuration.
    reduction : Reduction or None
        The work; without it only the name is resolved.

    Returns
    -------
    Engine
        One that runs here and supports the work.

    Raises
    ------
    ValueError
        If no engine has that name.
    EngineNotAvailableError
        If the named engine cannot run here.
    UnsupportedReductionError
        If the named engine does not compute this work.
    """
    if isinstance(name, Engine):
        # an instance runs here; whether it supports the work is asked below
        engine = name
    else:
        settings = get_config()["engine"]
        name = settings if name is None or (name == "auto" and settings != "auto") else name
        if name == "auto":
            return _choose(reduction)
        engine = find_engine(name)
        missing = engine.available()
        if missing is not None:
            raise EngineNotAvailableError(missing)
    reason = None if reduction is None else engine.supports(reduction)
    if reason is not None:
        raise UnsupportedReductionError(reason)
    return engine


def _choose(reduction: Reduction | None) -> Engine:
    """The engine that takes the least time, as they say themselves; without work, the default."""
    if reduction is None:
        return find_engine(REFERENCE)
    offers: list[tuple[float, Engine]] = []
    for name in engine_names():
        engine = find_engine(name)
        seconds = engine.seconds(reduction)
        if seconds is not None:
            offers.append((seconds, engine))
    reasons = []
    for _, engine in sorted(offers, key=lambda offer: offer[0]):
        # asked in this order, so that small work does not look for a GPU
        reason = engine.available() or engine.supports(reduction)
        if reason is None:
            return engine
        reasons.append(reason)
    raise UnsupportedReductionError(" ".join(reasons))


def show_engines() -> None:
    """Print every engine, and for those that cannot run here the reason.

    Examples
    --------
    >>> import skts
    >>> skts.show_engines()  # doctest: +ELLIPSIS
    numba ... ready...
    """
    for name in engine_names():
        engine = find_engine(name)
        state = engine.available()
        if state is None:
            details = engine.details()
            state = f"ready: {details}" if details else "ready"
        print(f"{name:<8}{state}")
