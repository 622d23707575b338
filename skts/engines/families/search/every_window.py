"""Search of queries in long series under a distance of which no bounds are known."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from ...core.reduction import Reduction, Tile
from ...core.series import Series
from ..elastic.dtw import DTWMatrix
from ..elastic.warping import Warping
from .subsequence import SubsequenceNeighbors, TileMatches, WindowMatches, normalize_windows

__all__ = ["EveryWindow"]

#: Points of the windows that are laid out at a time.
_POINTS = 2**20


@dataclass(frozen=True, eq=False)
class EveryWindow:
    """The windows nearest to each query under any distance: those of all windows are computed.

    No reduction, as no engine does this as one work: blocks of windows are laid out, and their
    distances are `DTWMatrix`, with the query as the first series.

    Attributes
    ----------
    search : SubsequenceNeighbors
        The same search under a distance that has bounds: queries, series, and which windows match.
    warping : Warping
        The distance.
    """

    search: SubsequenceNeighbors
    warping: Warping

    def block(self, query: np.ndarray, windows: np.ndarray) -> DTWMatrix:
        """The work of comparing a normalised query (n_channels, length) with some windows."""
        return DTWMatrix(Series.of(query[np.newaxis]), Series.of(windows), self.warping)

    @property
    def sample(self) -> DTWMatrix:
        """A block of one window, for which an engine is chosen."""
        query = np.zeros((self.search.n_channels, self.search.longest))
        return self.block(query, query[np.newaxis])

    def matches(self, run: Callable[[Reduction], Any]) -> list[WindowMatches]:
        """Search, with what computes the distances of a block."""
        search, total = self.search, self.search.start()
        for row, given in enumerate(search.queries):
            query = np.atleast_2d(normalize_windows(given, search.normalize))
            length = query.shape[1]
            n_windows = search.series.n_points - length + 1
            if search.n_windows is not None:
                n_windows = min(n_windows, search.n_windows)
            step = max(1, _POINTS // query.size)
            for col in range(0, n_windows, step):
                stop = min(n_windows, col + step)
                piece = np.atleast_2d(search.series.piece(col, stop + length - 1))
                views = np.lib.stride_tricks.sliding_window_view(piece, length, axis=1)
                places = np.flatnonzero(np.isfinite(views).all(axis=(0, 2)))
                if places.size == 0:
                    continue
                windows = np.ascontiguousarray(views[:, places].transpose(1, 0, 2))
                windows = normalize_windows(windows, search.normalize)
                block = self.block(query, windows)
                kind = "normalised " if search.normalize else ""
                names = f"{kind}query {row}", f"{kind}window {{}} of those from point {col} on"
                self.warping.check_costs(*block.sides, run, names)
                distances = run(block)[0]
                near = np.flatnonzero(distances <= total[row].limit)
                found = [TileMatches(np.empty(0, np.int64), np.empty(0))] * len(search.queries)
                found[row] = TileMatches(places[near], distances[near])
                search.merge(total, Tile(0, len(search.queries), col, stop), found)
        return search.finish(total, run)
