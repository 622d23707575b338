"""Joins with a limit of time: the nearest windows among the pairs that were compared by then."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field, fields
from time import monotonic
from typing import Any, ClassVar

import numpy as np

from ...core.reduction import Reduction, Stoppable, Tile, Tiling
from ...core.verify import Check, Sample
from .join import Join, JoinFound, JoinPart, JoinTotal
from .windows import plain_profile

__all__ = ["TimedJoin"]


@dataclass(frozen=True, eq=False)
class TimedJoin(Stoppable, Join):
    """The nearest windows of every window, among those that it is compared with in some seconds.

    The answer says in `share` how many pairs were compared. Where that is not all, neighbours that
    are farther than windows that do not correlate may be missing.

    Parameters
    ----------
    a, b, length, exclusion, n_neighbors, sides, normalize, excluded, since, precision : see `Join`
        The same as there; `since` keeps its default.
    needed, hint, device_accumulators, lengths : see `Join`
        For streams, and for engines.
    seconds : float, default infinity
        No tile is begun later than that.
    begin : float
        What the clock `time.monotonic` shows at the beginning; by default now.
    """

    seconds: float = np.inf
    begin: float = field(default_factory=lambda: monotonic())
    # a fourth of those of a join: a limit is met closer, and more places are seen early
    tiling: ClassVar[Tiling] = Tiling(scale=4, square=True, divisible=True)

    @classmethod
    def of(cls, join: Join, seconds: float) -> TimedJoin:
        """Return a join with a limit that begins now."""
        return cls(**{one.name: getattr(join, one.name) for one in fields(Join)}, seconds=seconds)

    def has_enough(self) -> bool:
        """Whether the time is over."""
        return monotonic() - self.begin >= self.seconds

    def merge(self, total: JoinTotal, tile: Tile, result: JoinPart | None) -> None:
        """Take the neighbours of a tile, and count it."""
        super().merge(total, tile, result)
        total.tiles.append(tile)

    def finish(self, total: JoinTotal, run: Callable[[Reduction], Any]) -> JoinFound:
        """Finish as a join does that compares these pairs alone."""
        share = self._share(total.tiles)
        if share == 1:
            # only a join of all pairs owes something to windows without neighbours
            return self.join().finish(total, run)
        return super().finish(total, run)._replace(share=share)

    def join(self) -> Join:
        """Return the join without a limit."""
        return Join(**{one.name: getattr(self, one.name) for one in fields(Join)})

    def pairs(self, tile: Tile) -> int:
        """Count the admissible pairs in a tile."""
        if not self.within:
            return tile.shape[0] * tile.shape[1]

        def later(row: int, col: int) -> int:
            """Pairs of windows from row on with windows before col, that are far enough apart."""
            count = max(0, col - row - 1 - self.exclusion)
            return count * (count + 1) // 2

        first, stop = (later(row, tile.col_stop) for row in (tile.row, tile.row_stop))
        return first - stop - later(tile.row, tile.col) + later(tile.row_stop, tile.col)

    def verify(self, answer: JoinFound, sample: Sample) -> Iterator[Check]:
        """Compare with plain code; where pairs are missing, see that no neighbour is too near."""
        if answer.share == 1:
            yield from self.join().verify(answer, sample)
            return
        if self.precision == "float32":
            return
        for window in sample(self.shape[0], 8):
            values = plain_profile(self.a, window, self.other, self.length, self.normalize)
            indices = answer.indices[window]
            expected = np.where(indices < 0, np.inf, values[indices]).tolist()
            distances = answer.distances[window].tolist()
            item = f"the distances of neighbours of window {window}"
            yield Check(item, distances, expected, distances == expected)

    def _share(self, tiles: list[Tile]) -> float:
        """Share of the admissible pairs that tiles hold."""
        n_rows, n_cols = self.shape
        pairs = self.pairs(Tile(0, n_rows, 0, n_cols))
        # areas that were computed apart are told of tile by tile, and then as they are
        return min(1.0, sum(map(self.pairs, tiles)) / pairs) if pairs else 1.0

    def _may_lack(self, floor: np.ndarray, farthest: np.ndarray) -> np.ndarray:
        """Leave windows alone that nothing was found for, unless no tile ever searches them."""
        return super()._may_lack(floor, farthest) & ((farthest < np.inf) | (floor == 0))
