"""Settings that hold for a thread: engine, memory, devices, progress.

An argument given to an estimator or function takes precedence over the setting, the setting over
the default. Worker threads of skts run with the settings of the thread that started the work.
"""

from __future__ import annotations

import re
import threading
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from numbers import Integral, Real
from typing import Any, TypedDict, Unpack

from ._engine_names import check_engine_name

__all__ = ["config_context", "get_config", "parse_memory", "set_config"]

_DEFAULTS: dict[str, Any] = {
    "engine": "auto",
    "memory": None,
    "devices": None,
    "progress": None,
    "verify": False,
}
_local = threading.local()
_UNITS = {"": 1, "K": 2**10, "M": 2**20, "G": 2**30, "T": 2**40}


def parse_memory(memory: int | float | str, total: int = 2**62) -> int:
    """Turn a memory budget such as ``2_000_000_000``, ``"2GiB"`` or ``0.5`` into bytes.

    Parameters
    ----------
    memory : int, float or str
        Bytes; a number followed by K, M, G or T (powers of 1024) with or without "B", "iB"; or, as
        a float above 0 and up to 1, a fraction of `total`.
    total : int, default 2**62
        Bytes that there are.

    Returns
    -------
    int
        Bytes.

    Raises
    ------
    ValueError
        If it is not such a size, or not positive.
    """
    forms = "write bytes, text such as '2GiB', or a fraction such as 0.5"
    if isinstance(memory, str):
        match = re.fullmatch(r"\s*(\d+(?:\.\d+)?)\s*([KMGT]?)(?:i?B)?\s*", memory, re.IGNORECASE)
        if match is None:
            raise ValueError(f"memory={memory!r} is not a size: {forms}.")
        number, unit = float(match[1]), _UNITS[match[2].upper()]
        if unit == 1 and number > 1 and number % 1:
            raise ValueError(f"memory={memory!r} is not a whole number of bytes: {forms}.")
        size = int(number * unit)
    elif isinstance(memory, Integral) and not isinstance(memory, bool):
        size = int(memory)
    elif isinstance(memory, Real) and not isinstance(memory, bool):
        if not 0 < memory <= 1:
            raise ValueError(
                f"memory={memory!r} is no fraction of the memory that there is: write a float "
                "above 0 and up to 1, or bytes as an int."
            )
        size = max(1, int(memory * total))
    else:
        raise ValueError(f"memory={memory!r} is not a size: {forms}.")
    if size <= 0:
        raise ValueError(f"memory={memory!r} leaves no room: give a positive size.")
    return size


class Settings(TypedDict, total=False):
    """The settings; see `set_config`."""

    engine: str
    memory: int | float | str | None
    devices: Sequence[int] | None
    progress: Callable[[int, int], None] | None
    verify: bool


def _settings() -> dict[str, Any]:
    if not hasattr(_local, "settings"):
        _local.settings = dict(_DEFAULTS)
    settings: dict[str, Any] = _local.settings
    return settings


def get_config() -> dict[str, Any]:
    """Return a copy of the settings of this thread.

    Returns
    -------
    dict
        Keys ``engine``, ``memory``, ``devices``, ``progress``, ``verify``; see `set_config`.

    Examples
    --------
    >>> import skts
    >>> skts.get_config()["engine"]
    'auto'
    """
    return dict(_settings())


_KEEP: Any = type("Keep", (), {"__repr__": lambda self: "unchanged"})()


def set_config(
    *,
    engine: str = _KEEP,
    memory: int | float | str | None = _KEEP,
    devices: Sequence[int] | None = _KEEP,
    progress: Callable[[int, int], None] | None = _KEEP,
    verify: bool = _KEEP,
) -> None:
    """Change the settings of this thread.

    Parameters
    ----------
    engine : str, default "auto"
        Engine for estimators and functions that name none: "auto", "numba", "cupy", or one that
        another package registers.
    memory : int, float, str or None, default None
        Working memory beside inputs and results: bytes, text ("2GiB"), or a float above 0 and up to
        1, a fraction of the memory of the machine (of its container, where that has a limit) or, on
        GPUs, of all the memory of those in use. None is 1 GiB on the CPU and three quarters of what
        is free on a GPU.
    devices : sequence of int or None, default None
        Numbers of the GPUs that may be used. Small work takes only the first of them. None stands
        for all that the process sees, the current one first; in a process that joblib's loky
        started, for one of them.
    progress : callable or None, default None
        Called as ``progress(done, total)`` with the parts of the work that are done.
    verify : bool, default False
        Whether a sample of every answer is computed again by plain code that shares nothing with
        the engines; a difference raises `skts.exceptions.VerificationError`. Answers with
        ``precision="float32"`` are estimates, and are not checked.

    Raises
    ------
    ValueError
        If a value is not of these forms, or no engine has that name. Whether an engine can run here
        is seen where it is used.

    Examples
    --------
    >>> import skts
    >>> skts.set_config(memory="512MiB")
    >>> skts.set_config(memory=0.25)
    >>> skts.set_config(memory=None)
    """
    new: dict[str, Any] = {
        "engine": engine,
        "memory": memory,
        "devices": devices,
        "progress": progress,
    }
    new["verify"] = verify
    # scalars of NumPy become Python's
    new = {
        key: value.item() if getattr(value, "ndim", None) == 0 else value
        for key, value in new.items()
        if value is not _KEEP
    }
    if not isinstance(new.get("engine", ""), str):
        raise ValueError(f"engine={engine!r} is not the name of an engine.")
    if "engine" in new:
        check_engine_name(new["engine"])
    if new.get("memory") is not None:
        parse_memory(new["memory"])
    if new.get("devices") is not None:
        numbers = tuple(devices) if isinstance(devices, Iterable) else ()
        new["devices"] = numbers
        wrong = (not isinstance(d, Integral) or isinstance(d, bool) or d < 0 for d in numbers)
        if not numbers or any(wrong):
            raise ValueError(f"devices={devices!r} is not a list of GPU numbers such as [0, 1].")
    if new.get("progress") is not None and not callable(new["progress"]):
        raise ValueError(f"progress={progress!r} cannot be called as progress(done, total).")
    if not isinstance(new.get("verify", False), bool):
        raise ValueError(f"verify={verify!r} is neither True nor False.")
    _settings().update(new)


class using:
    """Give this thread settings that have been checked before, in a ``with`` block.

    What `config_context` does, in a tenth of its time: small work changes settings several times.

    Parameters
    ----------
    settings : dict
        The settings of the block, all of them, as `get_config` gives them.
    """

    __slots__ = ("before", "settings")

    def __init__(self, settings: dict[str, Any]) -> None:
        self.settings = settings

    def __enter__(self) -> None:
        self.before = _settings()
        _local.settings = dict(self.settings)

    def __exit__(self, *error: object) -> None:
        _local.settings = self.before


@contextmanager
def config_context(**settings: Unpack[Settings]) -> Iterator[None]:
    """Change settings inside a ``with`` block and restore them afterwards.

    They hold for a thread, as in scikit-learn. Coroutines of one thread share them: do not await
    inside the block.

    Parameters
    ----------
    **settings
        As for `set_config`.

    Yields
    ------
    None

    Examples
    --------
    >>> import skts
    >>> with skts.config_context(engine="numba"):
    ...     skts.get_config()["engine"]
    'numba'
    """
    before = get_config()
    set_config(**settings)
    try:
        yield
    finally:
        _local.settings = before
