"""`Engine`: what a piece of hardware offers to the executor."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Generator, Sequence
from typing import Any, ClassVar, TypeVar, cast

import numpy as np

from ..._config import get_config, parse_memory
from .budget import DEFAULT_MEMORY, physical_memory
from .prepared import PreparedStore
from .reduction import Reduction, Tile

__all__ = ["Engine", "go_through"]

T = TypeVar("T")


def go_through(steps: Generator[None, None, T]) -> T:
    """Take all steps of some work, and return its result."""
    while True:
        try:
            next(steps)
        except StopIteration as end:
            return cast(T, end.value)


class Engine(ABC):
    """A way to compute reductions: one method per reduction, named by `Reduction.method`.

    Such a method has the signature ``method(reduction, tile, cancel)`` and returns what the
    reduction's `merge` takes. `cancel` is an array of one byte that turns 1 when the user
    interrupts: long kernels look at it and return early with anything.

    Beside a method ``x`` an engine has ``x_bytes``, the memory that a tile takes (`footprint`).
    Where it lacks a metric, an option or a size, it says so in ``x_lacks`` (`supports`).

    Attributes
    ----------
    name : str
        The name by which users choose it.
    tile_work : int
        Elementary steps of a tile that keep this engine busy, few enough to check for Ctrl-C
        between tiles: by default some hundredths of a second on one thread.
    row_scale : int
        How much larger tiles may grow along the rows, where there is work enough for all workers:
        for engines whose kernels look at `cancel` while they run. `row_scale_of` may say less.
    inline_scale : int
        How many times more steps a tile may have that is computed in the main thread, which sees
        Ctrl-C after it: a thread of its own takes some tenths of a millisecond, and more on a busy
        machine.
    """

    name: ClassVar[str]
    tile_work: ClassVar[int] = 2**26
    row_scale: ClassVar[int] = 1
    inline_scale: ClassVar[int] = 1

    def __init__(self) -> None:
        self.prepared = PreparedStore()

    @abstractmethod
    def available(self) -> str | None:
        """Return None if this engine runs here, else what is missing and how to install it."""

    def details(self) -> str:
        """Threads, devices and drivers of an engine that is available, for reports."""
        return ""

    def supports(self, reduction: Reduction) -> str | None:
        """Return None if this engine computes such work, else the reason why not.

        An engine without the method ``x`` lacks all such work. One whose method does not know every
        metric, option or size has a method ``x_lacks(reduction)`` that returns None or the reason.
        """
        if not hasattr(self, reduction.method):
            return f"engine={self.name!r} does not compute {type(reduction).__name__}."
        lacks = getattr(self, f"{reduction.method}_lacks", None)
        return None if lacks is None else lacks(reduction)

    def seconds(self, reduction: Reduction) -> float | None:
        """Say roughly what the work would take here; ``engine="auto"`` asks all engines.

        None, the default, means that "auto" never takes this engine.
        """
        return None

    def owns(self, array: Any) -> bool:
        """Whether an array lies in memory that this engine computes in, and NumPy does not read."""
        return False

    def series_of(self, array: Any) -> Any:
        """Return the `Series` of an array that this engine owns; points stay where they are."""
        raise NotImplementedError

    def fetch(self, array: Any) -> np.ndarray:
        """Return an array that this engine owns as one of NumPy."""
        raise NotImplementedError

    def workers(self, n_jobs: int | None) -> int:
        """Threads that may compute tiles at the same time."""
        return 1

    def devices(self, reduction: Reduction) -> tuple[int, ...] | None:
        """Numbers of the devices that such work goes to; None where the engine has no choice."""
        return None

    def lanes(self, reduction: Reduction) -> int:
        """Tiles of such work that each worker may have under way at the same time."""
        return 1

    def row_scale_of(self, reduction: Reduction) -> int:
        """How much larger tiles of such work may grow along the rows."""
        return self.row_scale

    def default_memory(self) -> int:
        """Bytes of working memory where the configuration names none."""
        return DEFAULT_MEMORY

    def total_memory(self) -> int:
        """Bytes of memory that there are, of which the configuration may name a fraction."""
        return physical_memory()

    def budget(self) -> int:
        """Bytes of working memory for one run; within a run, those that it was planned with."""
        planned = self.prepared.budget
        if planned is not None:
            return planned
        memory = get_config()["memory"]
        if memory is None:
            return self.default_memory()
        return parse_memory(memory, self.total_memory())

    def footprint(self, reduction: Reduction, rows: int, cols: int) -> tuple[int, int]:
        """Bytes held for a tile of this shape: shared by all workers, and by each of them.

        A method ``x`` of an engine states its own in a method ``x_bytes``.
        """
        size: tuple[int, int] = getattr(self, f"{reduction.method}_bytes")(reduction, rows, cols)
        return size

    def has_steps(self, reduction: Reduction) -> bool:
        """Whether several works of this kind can go on together: see `compute_all`."""
        return hasattr(self, f"{reduction.method}_steps")

    def compute_all(self, works: Sequence[tuple[Reduction, Tile]], cancel: np.ndarray) -> list[Any]:
        """Compute a tile of each of several reductions, in steps: first of all of them the first.

        For engines that queue their work. A method ``x_steps(reduction, tile, cancel)`` is a
        generator that yields where it is going to wait, and returns what the method ``x`` does.
        """
        results: list[Any] = [None for _ in works]
        under_way = {
            number: getattr(self, f"{reduction.method}_steps")(reduction, tile, cancel)
            for number, (reduction, tile) in enumerate(works)
        }
        while under_way:
            for number, steps in list(under_way.items()):
                try:
                    next(steps)
                except StopIteration as end:
                    results[number] = end.value
                    del under_way[number]
        return results

    def compute(self, reduction: Reduction, tile: Tile, cancel: np.ndarray) -> Any:
        """Compute a tile with the method that the reduction names."""
        return getattr(self, reduction.method)(reduction, tile, cancel)
