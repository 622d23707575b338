"""Bounds of the neighbours of windows on a device, and the neighbours that have been found."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import NamedTuple

import cupy as cp
import numpy as np

from ...core.constants import TAKES_NO_PART
from ...core.reduction import Tile
from ...families.profile.join import Join, JoinPart
from ...families.profile.nearest import Nearest
from ..loading import blocks_for, load_kernel
from ..transfers import Near, bring, filled, is_small, module_of, near, to_host
from .lines import Searched, inverse_norm
from .programs import RUNS_PER_WINDOW, room

__all__ = ["MeasuredNeighbors", "Known", "Side", "from_leading_bits"]

#: Windows whose neighbours come to the host at a time.
ANSWERED = 2**22


class Side(NamedTuple):
    """Windows of one side of a join: bounds of their neighbours, and the list of possible ones.

    `counts` holds how many are on the lists of both sides, this one at place `at`.
    """

    tops: cp.ndarray
    slots: cp.ndarray
    skipped: cp.ndarray
    runs: cp.ndarray
    counts: cp.ndarray
    at: int

    def addresses(self) -> list[int]:
        """Return the kernel's ``Side``."""
        arrays = *self[:4], self.counts[self.at :]
        return [array.data.ptr for array in arrays] + [len(self.runs)]


def _open_side(
    windows: slice, regular: Near, scores: Near | None, k: int, dtype: type
) -> tuple[cp.ndarray, cp.ndarray]:
    """Windows outside of a tile take no part, those inside know what `scores` say they reach."""
    tops = module_of(regular).full(regular.size, TAKES_NO_PART, np.int32)
    reached = np.int32(0) if scores is None else _leading_bits(scores, dtype)
    tops[windows] = np.where(regular[windows], reached, np.int32(TAKES_NO_PART))
    slots = cp.asarray(np.repeat(tops, k)) if k > 1 else cp.zeros(1, np.int32)
    return cp.asarray(tops), slots


def _leading_bits(scores: Near, dtype: type) -> Near:
    """Leading bits of scores, towards zero; 0 for those that are not positive."""
    scores = np.where(scores > 0, scores, 0.0)
    if dtype is np.float32:
        single = scores.astype(np.float32)
        single = np.where(single > scores, np.nextafter(single, np.float32(0)), single)
        return single.view(np.int32)
    return (scores.view(np.int64) >> 32).astype(np.int32)


def from_leading_bits(bits: Near, dtype: type) -> Near:
    """The least scores with such leading bits."""
    if dtype is np.float32:
        return bits.view(np.float32).astype(np.float64)
    return (bits.astype(np.int64) << 32).view(np.float64)


class MeasuredNeighbors:
    """Neighbours that have been measured, on the device.

    Parameters
    ----------
    n_windows : int
        Windows of the line.
    n_neighbors : int
        Neighbours of each.
    """

    def __init__(self, n_windows: int, n_neighbors: int) -> None:
        self.distances = filled((n_windows, n_neighbors), np.inf, np.float64)
        self.indices = filled((n_windows, n_neighbors), TAKES_NO_PART, np.int32)

    def take(self, other: MeasuredNeighbors) -> None:
        """Take neighbours from this or another device where they are nearer: one of a window."""
        mine, its, places, its_places = near(
            self.distances,
            cp.asarray(other.distances),
            self.indices,
            cp.asarray(other.indices),
        )
        nearer = (its < mine) | ((its == mine) & (its_places < places))
        self.distances = cp.asarray(np.where(nearer, its, mine))
        self.indices = cp.asarray(np.where(nearer, its_places, places))

    def answer(self, windows: slice) -> Nearest:
        """Return the neighbours of some windows."""
        (found,) = near(self.indices[windows])
        indices = found.astype(np.int64)
        indices[indices == TAKES_NO_PART] = -1
        return Nearest(to_host(self.distances[windows]), to_host(indices))


class Known:
    """Bounds of the neighbours of windows on a device, and the neighbours found there.

    Parameters
    ----------
    join : Join
        The work.
    searched, regular : tuple of two
        Lines of the search, and which windows take part, along rows and columns.
    area : Tile
        Windows that look for neighbours.
    shape : tuple of int
        Rows and columns that are walked at a time: lists have room for them.
    level : float
        As in `prepare`.
    dtype : type
        Type of covariances.
    budget : int
        Bytes of working memory.
    """

    @np.errstate(all="ignore")
    def __init__(
        self,
        join: Join,
        searched: tuple[Searched, Searched],
        regular: tuple[Near, Near],
        area: Tile,
        shape: tuple[int, int],
        level: float,
        dtype: type,
        budget: int,
    ) -> None:
        # `device_accumulators` holds this object: a reference back would keep both alive
        self.join = replace(join, hint=None, device_accumulators=None)
        self.regular, self.device = regular, cp.cuda.Device()
        self.stream = cp.cuda.get_current_stream()
        self.dtype, k = dtype, join.n_neighbors
        self.searched, self.level = searched, level
        self.unit = searched[0].unit
        least, self.at_a_time = room(budget)
        sides, counts = [], cp.zeros(2, np.int32)
        for at, windows in enumerate((area.rows, area.cols)):
            scores = None
            if join.hint is not None and (at == 0 or join.within):
                scores = self._known_scores(at, windows, join.hint[at][windows])
            capacity = min(max(least, RUNS_PER_WINDOW * shape[at]), 2**27)
            if at and not join.within:
                capacity = 1
            tops, slots = _open_side(windows, regular[at], scores, k, self.dtype)
            skipped, runs = cp.zeros(tops.size, np.int32), cp.empty((capacity, 4), np.int32)
            sides.append(Side(tops, slots, skipped, runs, counts, at))
        self.sides = sides[0], sides[1]
        self.found = [MeasuredNeighbors(side.tops.size, k) for side in sides]
        # the same windows have neighbours as rows and as columns, which merge in the end
        self.merges = join.within and k == 1 and not join.sides
        self.room: Nearest | None = None

    def make_room(self) -> None:
        """Make room for the answer in ordinary memory, whose pages take time when they are new."""
        n_windows = self.sides[0].tops.size
        one = (self.merges or not self.join.within) and n_windows <= ANSWERED
        if one and self.room is None and not is_small(n_windows):
            self.room = Nearest.none(n_windows, self.join.n_neighbors)

    def _known_scores(self, at: int, windows: slice, hint: np.ndarray) -> Near | None:
        """Scores that windows reach whose neighbours are as near as a hint says; None: nothing."""
        if np.isinf(hint).all():
            return None
        alpha, beta = self._linear(at, windows)
        # see "join limits" in docs/developer/numerics.rst
        limit = (module_of(alpha).asarray(hint) * self.unit) ** 2 * (1 + 1e-12)
        scores = (alpha - limit) / beta
        return np.where(np.isfinite(scores), scores * (1 - 1e-12), 0.0)

    def take(self, other: Known) -> None:
        """Add the results of another device or lane; for one neighbour of each window."""
        assert other.dtype is self.dtype, "leading bits of two types cannot be compared"
        with other.device:
            other.stream.synchronize()
        with self.device, self.stream:
            for mine, theirs in zip(self.found, other.found, strict=True):
                mine.take(theirs)
            for side, its in zip(self.sides, other.sides, strict=True):
                _raise(side.skipped, cp.asarray(its.skipped))

    def answer(self, area: Tile) -> Iterator[tuple[Tile, JoinPart]]:
        """Yield the neighbours of the windows of an area, piece by piece; only once."""
        join, same = self.join, area.rows == area.cols
        if join.within and not same:
            yield area, self.part(area, 2)
            return
        n_sides = 2 if join.within else 1
        for row in range(area.row, area.row_stop, ANSWERED):
            piece = area._replace(row=row, row_stop=min(row + ANSWERED, area.row_stop))
            if join.within:
                piece = piece._replace(col=piece.row, col_stop=piece.row_stop)
            yield piece, self.part(piece, 1 if self.merges else n_sides, merged=self.merges)

    def part(self, area: Tile, n_sides: int, *, merged: bool = False) -> JoinPart:
        """Return the neighbours of windows of an area: of rows, of both sides, or `merged`."""
        found: list[tuple[Nearest, np.ndarray]] = []
        with self.device, self.stream:
            for at, windows in enumerate((area.rows, area.cols)[:n_sides]):
                if isinstance(self.regular[at], np.ndarray):
                    found.append(self._answer_here(at, windows, merged))
                else:
                    found.append(self._answer_there(at, windows, merged))
        (rows, floor), *others = found
        cols, col_floor = others[0] if others else (None, None)
        return JoinPart(rows, cols, floor, col_floor)

    def _answer_there(self, at: int, windows: slice, merged: bool) -> tuple[Nearest, np.ndarray]:
        """Neighbours of some windows, and `_floor`, by one kernel and one transfer."""
        line, (mine, side) = self.searched[at], (self.found[at], self.sides[at])
        first, last, _ = windows.indices(side.tops.size)
        count, k, length = last - first, self.join.n_neighbors, self.join.length
        block = cp.empty(count * (2 * k + 1))
        nearest, places = block[: count * k], block[count * k : 2 * count * k].view(np.int64)
        load_kernel("profile/candidates.cu", "answer")(
            blocks_for(count, 128),
            128,
            distances=mine.distances,
            indices=mine.indices,
            skipped=side.skipped,
            other_distances=self.found[1].distances if merged else None,
            other_indices=self.found[1].indices if merged else None,
            other_skipped=self.sides[1].skipped if merged else None,
            norm=line.norm,
            searched=line.regular,
            regular=self.regular[at],
            first=first,
            count=count,
            n_neighbors=k,
            single=self.dtype is np.float32,
            normalize=self.join.normalize,
            length=length,
            level=self.level,
            most=_most(length),
            unit=self.unit,
            nearest=nearest,
            places=places,
            floors=block[2 * count * k :],
        )
        here = to_host(block)
        nearest, places = here[: 2 * count * k].reshape(2, count, k)
        found = Nearest(nearest, places.view(np.int64))
        if self.room is not None and found.distances.shape == self.room.distances.shape:
            # the answer takes the room as it is
            for own, one in zip(self.room, found, strict=True):
                np.copyto(own, one)
            found, self.room = self.room, None
        return found, here[2 * count * k :]

    def _answer_here(self, at: int, windows: slice, merged: bool) -> tuple[Nearest, np.ndarray]:
        """The same of a short line, on the host."""
        if merged:
            self.found[0].take(self.found[1])
            _raise(self.sides[0].skipped, self.sides[1].skipped)
        return self.found[at].answer(windows), self._floor(at, windows)

    def _linear(self, at: int, windows: slice) -> tuple[Near, Near]:
        """Squared distances of some windows are alpha - beta score."""
        line, length = self.searched[at], self.join.length
        if line.frame is None:
            alpha = np.full_like(line.mean, 2.0 * length)
            beta = 2.0 * length * inverse_norm(line, line.regular)
        else:
            alpha, beta = line.norm**2 + self.level, np.full_like(line.mean, 2.0)
        return alpha[windows], beta[windows]

    @np.errstate(all="ignore")
    def _floor(self, at: int, windows: slice) -> np.ndarray:
        """Distances that neighbours of some windows which are on no list do not fall below."""
        alpha, beta = self._linear(at, windows)
        skipped = bring(self.sides[at].skipped[windows])
        floor = alpha - beta * from_leading_bits(skipped, self.dtype)
        if self.join.normalize:
            floor = np.minimum(floor, _most(self.join.length))
        floor = np.sqrt(np.maximum(floor, 0.0)) / self.unit
        return np.where(self.regular[at][windows], floor, np.inf)


def _most(length: int) -> float:
    """Squared distance of windows whose scores tell no more.

    They are so unlike that the leading bits of a score cannot hold the rounding of the distance.
    """
    # see "leading bits" in docs/developer/numerics.rst
    return 2.0 * length * (1 - min(0.5, 1e-6 * length))


def _raise(skipped: cp.ndarray, others: cp.ndarray) -> None:
    """Raise numbers on the device to others."""
    if is_small(skipped.size):
        skipped.set(np.maximum(*near(skipped, others)), cp.cuda.get_current_stream())
    else:
        cp.maximum(skipped, others, out=skipped)
