"""What kernels are given and what they write, in a few numbers: how much a search really does.

Answers are the same whatever bounds a search has. A bound that is looser or tighter, a list that is
longer, or a step that is taken twice shows in what goes into kernels and comes out of them.
"""

from __future__ import annotations

import ctypes
import inspect
from collections import defaultdict
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from functools import cache
from typing import Any

import numpy as np
import pytest
from numba.core.registry import CPUDispatcher

__all__ = ["Done", "agreed", "alike", "fill_memory", "told"]

#: How far sums of floating-point numbers may be from each other, by parts of them: what a library
#: of the system or of NumPy rounds in another way is less.
NEAR = 1e-4
#: The setting of the C library that says what new memory is filled with.
PERTURB = -6
#: Bytes from which arrays are not small for NumPy, and how many of a size it keeps at most.
SMALL, KEPT = 1024, 7


class Done:
    """Sums of what each kernel was given, of what it wrote, and of what it returned."""

    def __init__(self) -> None:
        self._sums: dict[str, dict[str, list[int | float]]] = defaultdict(dict)

    def _add(self, kernel: str, name: str, *numbers: int | float) -> None:
        sums = self._sums[kernel].setdefault(name, [0] * len(numbers))
        for place, number in enumerate(numbers):
            sums[place] += number

    def watch(self, kernel: str) -> Callable[[dict[str, Any]], AbstractContextManager]:
        """Return what goes around a call of a kernel with arguments that have names."""

        @contextmanager
        def watching(given: dict[str, Any]) -> Iterator[None]:
            self._add(kernel, "calls", 1)
            arrays = {}
            for name, value in _leaves("", given):
                array = _on_the_host(value)
                if array is not None:
                    arrays[name] = value, array.copy()
                elif isinstance(value, int | float | np.number | np.bool_):
                    self._add(kernel, name, told(np.asarray([value]), np.zeros(1, int))[1])
            yield
            for name, (value, before) in arrays.items():
                after = _on_the_host(value)
                # bits, since what is not a number is not the same as itself
                changed = (_bits(before) != _bits(after)).any(axis=1).reshape(after.shape)
                if changed.any():
                    self._add(kernel, name, *told(after[changed], np.flatnonzero(changed)))

        return watching

    def watch_compiled(self, monkeypatch: pytest.MonkeyPatch) -> None:
        """Watch all compiled functions of the package, as they are called from Python."""
        call = CPUDispatcher.__call__

        def watched(kernel: CPUDispatcher, *arguments: Any, **named: Any) -> Any:
            function = kernel.py_func
            if not function.__module__.startswith("skts."):
                return call(kernel, *arguments, **named)
            name = f"{function.__module__.removeprefix('skts.engines.')}.{function.__name__}"
            given = _signature_of(function).bind(*arguments, **named).arguments
            with self.watch(name)(given):
                returned = call(kernel, *arguments, **named)
            self._add_returned(name, "returned", returned)
            return returned

        monkeypatch.setattr(CPUDispatcher, "__call__", watched)

    def _add_returned(self, kernel: str, name: str, returned: Any) -> None:
        for part, value in _leaves(f"{name} ", returned):
            if isinstance(value, int | float | np.generic | np.ndarray):
                numbers = np.atleast_1d(value).ravel()
                self._add(kernel, part, *told(numbers, np.arange(numbers.size)))

    def told(self) -> dict[str, dict[str, list[int | float]]]:
        """Return, by kernel and argument, a number's sum, or how many changed and both sums."""
        return {
            kernel: {name: list(map(_rounded, sums[name])) for name in sorted(sums)}
            for kernel, sums in sorted(self._sums.items())
        }


def fill_memory(byte: int) -> None:
    """Fill memory that is taken or freed from now on, where the system's library does so.

    What is left in it would tell whether a kernel changes it.
    """
    ctypes.CDLL(None).mallopt(PERTURB, byte)
    # NumPy keeps what small arrays leave, some of each size
    for size in range(1, SMALL):
        [np.full(size, byte, np.uint8) for _ in range(KEPT)]


def alike(found: Any, recorded: Any) -> bool:
    """Whether two such tables are the same, but for rounding; of None nothing is known."""
    if recorded is None:
        return True
    if isinstance(found, dict):
        return found.keys() == recorded.keys() and all(
            alike(value, recorded[name]) for name, value in found.items()
        )
    if isinstance(found, list):
        return len(found) == len(recorded) and all(map(alike, found, recorded))
    if isinstance(found, float) or isinstance(recorded, float):
        return abs(found - recorded) <= NEAR * abs(recorded)
    return found == recorded


def agreed(one: Any, other: Any) -> Any:
    """What two such tables have in common: None where they are not alike."""
    if isinstance(one, dict) and isinstance(other, dict):
        return {name: agreed(value, other.get(name)) for name, value in one.items()}
    if isinstance(one, list) and isinstance(other, list) and len(one) == len(other):
        return list(map(agreed, one, other))
    return None if one is None or other is None or not alike(one, other) else one


def _leaves(name: str, value: Any) -> Iterator[tuple[str, Any]]:
    """Arguments, and those that are inside of others, each with a name."""
    if isinstance(value, dict):
        for key, part in value.items():
            yield from _leaves(f"{name}.{key}".lstrip("."), part)
    elif isinstance(value, tuple | list):
        for i, part in enumerate(value):
            yield from _leaves(f"{name}.{i}", part)
    else:
        yield name, value


@cache
def _signature_of(function: Callable[..., Any]) -> inspect.Signature:
    """The signature of a function, found once."""
    return inspect.signature(function)


def _on_the_host(value: Any) -> np.ndarray | None:
    """An array, wherever it lies; None for what is none."""
    if isinstance(value, np.ndarray):
        return value
    return value.get() if hasattr(value, "get") and hasattr(value, "dtype") else None


def _bits(array: np.ndarray) -> np.ndarray:
    """The bits of the numbers of an array, those of each in a row."""
    unit = np.dtype(f"u{min(8, array.itemsize)}") if array.itemsize in (1, 2, 4, 8, 16) else "u1"
    return np.ascontiguousarray(array).reshape(-1, 1).view(unit)


def told(array: np.ndarray, places: np.ndarray) -> tuple[int, int | float, int | float]:
    """How many numbers there are, and two sums of those that are finite, without their signs.

    The second is one of products with what follows from their places, so that numbers that have
    changed theirs are seen.
    """
    shares = places * 40503 % 997 + 1
    if array.dtype.kind in "biu":
        if array.dtype.kind == "i":
            array = np.abs(array.astype(np.int64))
        # halves, whose sums are exact
        whole = array.astype(np.uint64)
        low, high = whole & np.uint64(0xFFFFFFFF), whole >> np.uint64(32)
        sums = (
            int((low * by).sum()) + (int((high * by).sum()) << 32)
            for by in (np.uint64(1), shares.astype(np.uint64))
        )
        return array.size, *sums
    if array.dtype.kind not in "fc":
        return array.size, 0, 0
    finite = np.isfinite(array)
    with np.errstate(over="ignore"):  # of what was in memory before
        sizes = np.abs(array[finite]).astype(float)
        return array.size, float(sizes.sum()), float((sizes * (1 + shares[finite] / 997)).sum())


def _rounded(number: int | float) -> int | float:
    return number if isinstance(number, int) else float(f"{number:.7g}")
