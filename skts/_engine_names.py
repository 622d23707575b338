"""Names of engines: two built in, others through the entry-point group ``skts.engines``.

Imports none of them; ``skts/engines/core/registry.py`` does, and says which can run.
"""

from __future__ import annotations

import sys
from functools import lru_cache
from importlib.metadata import EntryPoint, entry_points

__all__ = ["GROUP", "check_engine_name", "engine_names", "entry_point_of"]

GROUP = "skts.engines"
_BUILT_IN = {
    "numba": EntryPoint("numba", "skts.engines.numba:NumbaEngine", GROUP),
    "cupy": EntryPoint("cupy", "skts.engines.cupy:CupyEngine", GROUP),
}


@lru_cache(maxsize=1)
def _installed(path: tuple[str, ...]) -> dict[str, EntryPoint]:
    """Engines of other packages on a path; remembered, since reading them takes milliseconds."""
    return {point.name: point for point in entry_points(group=GROUP)}


def _sources() -> dict[str, EntryPoint]:
    return {**_installed(tuple(sys.path)), **_BUILT_IN}


def engine_names() -> list[str]:
    """Find the names of all engines; imports none of them.

    Returns
    -------
    list of str
        Those built in first.
    """
    return [*_BUILT_IN, *sorted(set(_sources()) - set(_BUILT_IN))]


def entry_point_of(name: str) -> EntryPoint:
    """Return where an engine is to be imported from.

    Parameters
    ----------
    name : str
        As users write it.

    Returns
    -------
    EntryPoint
        Its module and class.

    Raises
    ------
    ValueError
        If no engine has that name.
    """
    if name in _BUILT_IN:
        return _BUILT_IN[name]
    if name not in _sources():
        # a package may have been installed meanwhile
        _installed.cache_clear()
    sources = _sources()
    if name not in sources:
        names = ", ".join(map(repr, ["auto", *engine_names()]))
        raise ValueError(f"engine={name!r} is not known; there are {names}.")
    return sources[name]


def check_engine_name(name: str) -> None:
    """Raise where a name is neither "auto" nor that of an engine, whether or not it can run.

    Parameters
    ----------
    name : str
        As users write it.

    Raises
    ------
    ValueError
        If no engine has that name.
    """
    if name != "auto":
        entry_point_of(name)
