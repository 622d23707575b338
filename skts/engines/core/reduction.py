"""Reductions: heavy pieces of work whose result is small, described without saying how.

See the essay in `skts.engines`. A reduction is a frozen description: host arrays and options.
Its work lies on two axes (say queries and candidates) that a fixed grid divides; any rectangle
of grid cells is a `Tile`; an engine computes one tile at a time, and the reduction merges the
results of tiles, in any order, into the same answer. Each family of work has its own module.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable
from typing import Any, ClassVar, NamedTuple

import numpy as np

from .verify import Check, Sample

__all__ = ["FollowedUp", "InBatches", "Reduction", "Stoppable", "Tile", "Tiling", "UsesIncumbent"]


class Tile(NamedTuple):
    """A rectangle of the work: rows `row` to `row_stop`, columns `col` to `col_stop`."""

    row: int
    row_stop: int
    col: int
    col_stop: int

    @property
    def rows(self) -> slice:
        """Its rows."""
        return slice(self.row, self.row_stop)

    @property
    def cols(self) -> slice:
        """Its columns."""
        return slice(self.col, self.col_stop)

    @property
    def shape(self) -> tuple[int, int]:
        """Numbers of rows and columns."""
        return self.row_stop - self.row, self.col_stop - self.col

    @property
    def places(self) -> np.ndarray:
        """Row and column of everything in it, of shape (n_rows * n_cols, 2), row by row."""
        return np.indices(self.shape).reshape(2, -1).T + (self.row, self.col)


class Tiling(NamedTuple):
    """How tiles of some work may grow.

    Attributes
    ----------
    scale : int
        How much more than usual a tile may hold, where the results of tiles are large.
    square : bool
        Whether tiles grow along both axes alike; else along the columns first.
    divisible : bool
        Whether nothing is prepared tile by tile, so that tiles may be cut in any way.
    single : bool
        Whether a tile is one cell of the grid, whose result is needed for itself.
    """

    scale: int = 1
    square: bool = False
    divisible: bool = False
    single: bool = False


class Reduction(ABC):
    """A piece of work: shapes, options, how it splits, how parts merge.

    Abilities that only some work needs are mixins: `UsesIncumbent`, `InBatches`, `FollowedUp`,
    `Stoppable`.
    """

    #: Name of the engine's method that computes a tile of it.
    method: ClassVar[str]
    #: How its tiles may grow.
    tiling: ClassVar[Tiling] = Tiling()

    @property
    @abstractmethod
    def shape(self) -> tuple[int, int]:
        """Extent of the two axes of the work."""

    @property
    @abstractmethod
    def step_work(self) -> int:
        """Elementary steps of one row and one column."""

    @property
    @abstractmethod
    def cell(self) -> tuple[int, int]:
        """Rows and columns of a cell of the grid, the least that an engine is given at a time."""

    @property
    def total_work(self) -> int:
        """Elementary steps of all rows and columns."""
        return self.shape[0] * self.shape[1] * self.step_work

    def work(self, tile: Tile) -> int:
        """Elementary steps in a tile."""
        return tile.shape[0] * tile.shape[1] * self.step_work

    def wanted(self, tile: Tile) -> bool:
        """Whether a tile adds anything (a symmetric matrix needs half of them)."""
        return True

    def result_bytes(self) -> int:
        """Size of the answer."""
        return 0

    @property
    def undivided_input(self) -> tuple[str, int]:
        """Data that every tile holds in full: their name in messages, and how many numbers."""
        return "", 0

    def check_input(self, run: Callable[[Reduction], Any]) -> None:
        """Raise, before any work, where numbers of the user's can have no answer.

        Parameters
        ----------
        run : callable
            Runs a reduction on the same engine.
        """
        return

    @abstractmethod
    def part(self, tile: Tile) -> Reduction:
        """Return the tile as a reduction of its own that carries only its own slice of the data.

        Its result, computed anywhere, merges as the tile's would.
        """

    @abstractmethod
    def start(self) -> Any:
        """Return the object to which `merge` adds results: none so far."""

    @abstractmethod
    def merge(self, total: Any, tile: Tile, result: Any) -> None:
        """Add the result of a tile; the order of tiles makes no difference to the answer."""

    def finish(self, total: Any, run: Callable[[Reduction], Any]) -> Any:
        """Turn the merged results into the answer; `run` computes further work for it."""
        return total

    def verify(self, answer: Any, sample: Sample) -> Iterable[Check]:
        """Compare a sample of the answer with plain code; see `skts.engines.core.verify`."""
        return ()


class UsesIncumbent(ABC):
    """Work whose tiles take less time when results of earlier ones are known."""

    @abstractmethod
    def with_incumbent(self, total: Any) -> Reduction:
        """Return the work with the results so far, which may spare work and change no answer."""

    def drain(self, total: Any, area: Tile) -> Iterable[tuple[Tile, Any]]:
        """Yield results that engines have kept on their devices, and free them there.

        They merge as results of tiles do.
        """
        return ()


class InBatches(ABC):
    """Work whose merged results may not fit in memory, so that its rows go in batches."""

    @abstractmethod
    def batches(self, budget: int) -> list[slice]:
        """Rows that are finished together: the results of their tiles fit in the budget."""

    @abstractmethod
    def batch(self, rows: slice) -> Reduction:
        """Return the work of some rows."""

    @abstractmethod
    def gather(self, answers: Iterable[tuple[slice, Any]]) -> Any:
        """Return the answer, from those of batches."""


class FollowedUp(ABC):
    """Work whose answer needs other large work, which must fit in memory before any is done."""

    @abstractmethod
    def follow_ups(self) -> list[Reduction]:
        """Return work as large as what `finish` will run."""


class Stoppable(ABC):
    """Work that may end before all tiles are computed, and whose answer then tells of the others.

    Its tiles go in an order that spreads over rows and columns (`spread` of the planner), in this
    process.
    """

    @abstractmethod
    def has_enough(self) -> bool:
        """Whether no further tile is to be begun; the first is computed in any case."""
