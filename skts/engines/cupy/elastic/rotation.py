"""Rotation-invariant searches on the GPU: runs of shifts, bounded and cut in pieces.

With warping, the cheapest path whose beginning and end may lie anywhere in a run of shifts costs no
more than the best path of each shift in the run (``turns.cu``). A search begins with all
shifts of every pair in one run. Runs whose bound is beyond the distance of a neighbour that the
query may yet find are dropped, the others cut in four and bounded again, down to single shifts.
Their estimates are upper bounds too, and the shift in the middle of the most promising run of a
pair gives another one early. All that is in float32; of the shifts that are left in the end,
costs are certified.

A band or not, runs are bounded without one, which costs no more. Where it leaves out a cell, an
estimate is no upper bound, and the shift in the middle of a promising run is certified instead.

Without warping, squared distances of all shifts come from circular correlations, in float64 by
Fourier transforms, and those that may be the least are certified; absolute costs are added up for
every shift.
"""

from __future__ import annotations

from typing import Any

import cupy as cp
import numpy as np

from ...core.certify import Bound
from ...core.constants import ELASTIC_THREADS as THREADS
from ...core.constants import FLOAT64_UNIT, LIMIT_MARGIN
from ...families.elastic.warping import Warping
from ..loading import blocks_for, load_kernel
from ..transfers import filled, send_one
from . import dtw
from .cells import NO_PARAMETERS, cell_of, metric_of
from .dtw import DeviceSeries
from .rotation_programs import choose_turns

__all__ = ["EuclideanRotation", "WarpedRotation", "euclidean_bytes", "warped_bytes"]

#: Pieces into which a run of shifts is cut.
PIECES = 4
#: Runs that are cut at a time, at most and where memory is short.
MOST_RUNS, FEWEST_RUNS = 2**18, 2**9
#: Pairs of each query that are settled first, beside as many as there are neighbours.
FIRST = 2
#: Bytes of correlations at a time; all of one query are held in any case.
CORRELATIONS = 2**28
#: Error of a circular correlation by Fourier transforms, over u log2(n) and the norms; the CPU's
#: stated one.
FFT_ERROR = 16.0
#: Points below which correlations are not worth a transform.
FEW_POINTS = 8


def _launch(name: str, n_threads: int, **arguments: Any) -> None:
    """Launch a kernel of ``rotation.cu`` with a thread for each thing."""
    load_kernel("elastic/rotation.cu", name)(blocks_for(n_threads, THREADS), THREADS, **arguments)


def warped_bytes(m: int, rows: int, cols: int) -> int:
    """Bytes that a search with warping holds beside the series."""
    levels = 1
    while m > 1:
        m, levels = -(-m // PIECES), levels + 1
    # estimates, upper bounds and their order, the most promising, certified costs; runs
    return 56 * rows * cols + (levels + 4) * PIECES * 20 * _runs(rows * cols)


def euclidean_bytes(n: int, n_channels: int, rows: int, cols: int) -> int:
    """Bytes that a search without warping holds beside the series."""
    spectra = 16 * (n_channels + 1) * (n + 2) * (rows + cols)
    # products, correlations, room of the transform, shifts
    return spectra + 32 * rows * cols + 64 * (n + 2) * cols * _queries(n, rows, cols)


def _runs(n_pairs: int) -> int:
    """Runs of shifts that are cut at a time."""
    return min(max(n_pairs, FEWEST_RUNS), MOST_RUNS)


def _queries(n: int, rows: int, cols: int) -> int:
    """Queries that are correlated at a time."""
    return max(1, min(rows, CORRELATIONS // (64 * n * cols)))


class WarpedRotation:
    """A search with warping, of some queries among some candidates.

    Parameters
    ----------
    rows, cols : tuple of DeviceSeries
        Queries and candidates, each in float32 and in float64.
    most_points : tuple of int
        Points of the longest query, and of the longest candidate.
    periods : ndarray or cupy.ndarray of shape (n_candidates,), int32
        Shifts of each candidate from which on they repeat.
    n_neighbors : int
        Neighbours asked for.
    excluded : ndarray of shape (n_queries,), int64, or None
        One candidate that a query must not find.
    limits : ndarray of shape (n_queries,)
        Distances beyond which none is looked for.
    bound : Bound
        Error of the estimates.
    scale : float
        By which the float32 data were multiplied.
    warping : Warping
        Options of the distance.
    widest : int
        Half width of the widest band among the pairs.
    budget : int
        Bytes for edges of strips.
    cancel : ndarray of shape (1,), uint8
        Turns 1 to stop early.
    """

    def __init__(
        self,
        rows: tuple[DeviceSeries, DeviceSeries],
        cols: tuple[DeviceSeries, DeviceSeries],
        *,
        most_points: tuple[int, int],
        periods: np.ndarray | cp.ndarray,
        n_neighbors: int,
        excluded: np.ndarray | None,
        limits: np.ndarray,
        bound: Bound,
        scale: float,
        warping: Warping,
        widest: int,
        budget: int,
        cancel: np.ndarray,
    ) -> None:
        self.rows, self.cols = rows, cols
        self.n, self.m = most_points
        self.shape = rows[0].shape[0], cols[0].shape[0]
        self.periods = cp.asarray(periods)
        self.k, self.given = n_neighbors, limits
        self.excluded = np.full(self.shape[0], -1, np.int32)
        if excluded is not None:
            inside = (excluded >= 0) & (excluded < self.shape[1])
            self.excluded[inside] = excluded[inside]
        self.left_out = send_one(self.excluded)
        self.bound, self.scale, self.warping = bound, scale, warping
        self.cell = cell_of(warping)
        self.banded = warping.binds(max(most_points))
        self.widest = widest
        self.budget, self.cancel = budget, cancel
        self.at_a_time = _runs(self.shape[0] * self.shape[1])
        # of each pair the least estimate of a single shift, and the least certified cost
        self.upper = filled(self.shape, np.inf, np.float32)
        self.costs = filled(self.shape, np.inf, np.float64)
        self.seen = filled(self.shape, -1, np.int64)
        self.left: list[tuple[cp.ndarray, cp.ndarray]] = []
        self.n_left = 0
        #: Whether distances at which neighbours are known have been lowered since `update`.
        self.lowered = False
        self.limit(limits)

    def search(self) -> cp.ndarray:
        """Return certified costs of all pairs that may be neighbours, infinity for others."""
        n_rows, n_cols = self.shape
        root = self.measure(None, n_rows * n_cols, self.m).reshape(self.shape)
        inside = np.flatnonzero(self.excluded >= 0)
        if inside.size:
            root[cp.asarray(inside), cp.asarray(self.excluded[inside])] = np.inf
        first = min(self.k + FIRST, n_cols)
        above = cp.ascontiguousarray(cp.sort(root, axis=1)[:, first - 1])
        root = root.ravel()
        # the most promising pairs, which tell how near neighbours are, then all others
        self.cut(root, cp.minimum(above, self.limits), None)
        if self.banded:
            self.certify()
            self.update()
        self.cut(root, None, above)
        self.certify()
        return self.costs

    def cut(self, root: cp.ndarray, at_most: cp.ndarray | None, above: cp.ndarray | None) -> None:
        """Cut the runs of some pairs until single shifts are left."""
        width = -(-self.m // PIECES)
        for begin in range(0, root.size, self.at_a_time):
            part = root[begin : begin + self.at_a_time]
            # depth first: at most PIECES times the runs that are cut at a time wait
            waiting = self.pieces(None, part, width, begin=begin, at_most=at_most, above=above)
            while waiting and not self.cancel[0]:
                items, estimates, size = waiting.pop()
                if size == 1:
                    self.left.append((items, estimates))
                    self.n_left += len(items)
                    if self.n_left > PIECES * self.at_a_time:
                        self.certify()
                    continue
                if len(items) > self.at_a_time:
                    rest = slice(self.at_a_time, None)
                    waiting.append((items[rest], estimates[rest], size))
                    items, estimates = items[: self.at_a_time], estimates[: self.at_a_time]
                waiting += self.pieces(items, estimates, -(-size // PIECES))

    def pieces(
        self,
        items: cp.ndarray | None,
        estimates: cp.ndarray,
        width: int,
        *,
        begin: int = 0,
        at_most: cp.ndarray | None = None,
        above: cp.ndarray | None = None,
    ) -> list[tuple[cp.ndarray, cp.ndarray, int]]:
        """Cut runs that may hold a neighbour, and bound the pieces: runs, estimates, width."""
        pieces = self.divide(items, estimates, width, begin=begin, at_most=at_most, above=above)
        if not len(pieces):
            return []
        least = self.upper if width == 1 and not self.banded else None
        bounds = self.measure(pieces, len(pieces), width, least)
        if width > 1:
            probes = self.probes(pieces, bounds)
            if len(probes) and self.banded:
                self.certify_shifts(probes)
            elif len(probes):
                self.measure(probes, len(probes), 1, self.upper)
        self.update()
        return [(pieces, bounds, width)]

    def divide(
        self,
        items: cp.ndarray | None,
        estimates: cp.ndarray,
        width: int,
        *,
        begin: int = 0,
        at_most: cp.ndarray | None = None,
        above: cp.ndarray | None = None,
    ) -> cp.ndarray:
        """Cut runs that may hold a neighbour in pieces of some width."""
        count = cp.zeros(1, np.int32)
        # a period is no longer than the series, nor a run than PIECES times the width
        out = cp.empty((PIECES * estimates.size, 4), np.int32)
        _launch(
            "divide",
            estimates.size,
            items=items,
            estimates=estimates,
            begin=begin,
            n_items=estimates.size,
            n_cols=self.shape[1],
            periods=self.periods,
            excluded=self.left_out,
            above=above,
            limits=self.limits if at_most is None else at_most,
            width=width,
            n_out=count,
            out=out,
        )
        return out[: int(count.get()[0])]

    def probes(self, items: cp.ndarray, estimates: cp.ndarray) -> cp.ndarray:
        """The shift in the middle of the most promising run of each pair."""
        n_items, n_cols = len(items), self.shape[1]
        runs = {"items": items, "n_items": n_items, "n_cols": n_cols, "seen": self.seen}
        _launch("promise", n_items, **runs, estimates=estimates, limits=self.limits)
        count, out = cp.zeros(1, np.int32), cp.empty((min(n_items, self.seen.size), 4), np.int32)
        _launch("probe", n_items, **runs, n_out=count, out=out)
        return out[: int(count.get()[0])]

    def measure(
        self,
        items: cp.ndarray | None,
        n_items: int,
        width: int,
        least: cp.ndarray | None = None,
    ) -> cp.ndarray:
        """Costs of the cheapest paths of runs of at most `width` shifts, in float32."""
        rows, cols = self.rows[0], self.cols[0]
        self.lowered |= least is not None
        kernel = choose_turns(rows.shape[1], self.n, self.m, width, n_items, self.cell)
        out = cp.empty(n_items, np.float32)
        groups = dtw.groups_in_flight(kernel, n_items, self.n, self.budget)
        load_kernel("elastic/turns.cu", kernel.name)(
            groups * kernel.group // THREADS,
            THREADS,
            rows=rows.values,
            row_lengths=rows.lengths,
            row_stride=rows.shape[2],
            cols=cols.values,
            col_lengths=cols.lengths,
            col_stride=cols.shape[2],
            n_cols=self.shape[1],
            items=items,
            n_items=n_items,
            G=kernel.group,
            **dtw.edges_of(kernel, groups, self.n, np.float32),
            least=least,
            out=out,
            cell=NO_PARAMETERS,
        )
        return out

    def update(self) -> None:
        """Lower the limits of queries to the distances at which neighbours are known."""
        k = self.k
        if not self.lowered or k > self.shape[1]:
            return
        self.lowered = False
        known = self.costs if self.banded else self.upper
        nearest = known.min(axis=1) if k == 1 else cp.sort(known, axis=1)[:, k - 1]
        farthest = self.warping.distance(nearest.get().astype(np.float64))
        if not self.banded:
            farthest = self.bound.upper(farthest / self.scale)
        self.limit(np.minimum(self.given, farthest))

    def limit(self, limits: np.ndarray) -> None:
        """Find for each query the largest estimate that a neighbour within a limit may have."""
        with np.errstate(divide="ignore", over="ignore"):
            if self.bound.shrink > 0:
                most = (limits + self.bound.slack) / self.bound.shrink * self.scale
            else:
                most = np.full(len(limits), np.inf)
            # see "cost limits" in docs/developer/numerics.rst
            most = (most * most if self.warping.squared else most) * LIMIT_MARGIN
            self.limits = send_one(np.nextafter(most.astype(np.float32), np.float32(np.inf)))

    def certify(self) -> None:
        """Certify the costs of the single shifts that are left."""
        left, self.left, self.n_left = self.left, [], 0
        for items, estimates in left:
            if self.cancel[0]:
                return
            chosen = self.divide(items, estimates, 1)
            if len(chosen):
                self.certify_shifts(chosen)

    def certify_shifts(self, items: cp.ndarray) -> None:
        """Lower the costs of pairs to those of some single shifts."""
        self.lowered |= self.banded
        dtw.certify(
            *(self.rows[1], self.cols[1], items, self.warping),
            least=self.costs,
            reach=self.widest,
            budget=self.budget,
        )


class EuclideanRotation:
    """A search without warping; parameters as `WarpedRotation`."""

    def __init__(
        self,
        rows: DeviceSeries,
        cols: DeviceSeries,
        *,
        periods: np.ndarray | cp.ndarray,
        n_neighbors: int,
        excluded: np.ndarray | None,
        limits: np.ndarray,
        squared: bool,
        cancel: np.ndarray,
    ) -> None:
        self.rows, self.cols, self.n = rows, cols, rows.length
        self.shape = rows.shape[0], cols.shape[0]
        self.periods = cp.asarray(periods)
        self.k, self.excluded = n_neighbors, excluded
        # costs beyond which every distance is larger
        self.limits = limits
        if squared:
            # see "cost limits" in docs/developer/numerics.rst
            self.limits = limits * limits * (1 + 8 * FLOAT64_UNIT) + np.finfo(np.float64).tiny
        self.squared, self.cancel = squared, cancel
        self.costs = filled(self.shape, np.inf, np.float64)

    def search(self) -> cp.ndarray:
        """Return certified costs of all pairs that may be neighbours, infinity for others."""
        n_rows, n_cols = self.shape
        if not self.squared or self.n < FEW_POINTS:
            # some rows at a time, so that the search stops soon
            step = max(1, 2**36 // (self.n * self.n * n_cols))
            for row in range(0, n_rows, step):
                if self.cancel[0]:
                    break
                self.certify(None, row, min(row + step, n_rows))
            return self.costs
        offset = self.values(self.cols).mean(axis=(0, 2))[:, None]
        row_spectra, row_norms = self.transform(self.rows, offset)
        col_spectra, col_norms = self.transform(self.cols, offset)
        step = _queries(self.n, n_rows, n_cols)
        for row in range(0, n_rows, step):
            if self.cancel[0]:
                break
            stop = min(row + step, n_rows)
            products = 0
            for c in range(offset.shape[0]):
                products = (
                    products + row_spectra[row:stop, None, c].conj() * col_spectra[None, :, c]
                )
            correlations = cp.fft.irfft(products, self.n)
            del products
            items = self.near(correlations, row, stop, row_norms[row:stop], col_norms)
            del correlations
            if len(items):
                self.certify(items, row, stop)
        return self.costs

    def near(
        self,
        correlations: cp.ndarray,
        row: int,
        stop: int,
        row_norms: cp.ndarray,
        col_norms: cp.ndarray,
    ) -> cp.ndarray:
        """The shifts that may be those of neighbours; queries count from `row`."""
        n_rows, n_cols = stop - row, self.shape[1]
        lowest, highest = self.bounds(correlations, row_norms, col_norms)
        if self.excluded is not None:
            excluded = self.excluded[row:stop]
            inside = np.flatnonzero((excluded >= 0) & (excluded < n_cols))
            if inside.size:
                place = cp.asarray(inside), cp.asarray(excluded[inside])
                lowest[place] = highest[place] = np.inf
        limits = send_one(self.limits[row:stop])
        if self.k <= n_cols:
            limits = cp.minimum(limits, cp.sort(highest, axis=1)[:, self.k - 1])
        # an excluded candidate is beyond any limit
        limits = cp.minimum(limits, np.finfo(np.float64).max)
        threads, count = min(n_rows * n_cols * self.n, 2**24), cp.zeros(1, np.uint64)
        rest = self.common(correlations, row_norms, col_norms)
        rest |= {"lowest": lowest, "limits": limits, "periods": self.periods, "n_out": count}
        _launch("shifts", threads, **rest, out=None)
        found = cp.empty((int(count.get()[0]), 4), np.int32)
        if len(found):
            count[:] = 0
            _launch("shifts", threads, **rest, out=found)
        return found

    def bounds(
        self, correlations: cp.ndarray, row_norms: cp.ndarray, col_norms: cp.ndarray
    ) -> tuple[cp.ndarray, cp.ndarray]:
        """Bounds of the certified costs of the best shifts, from below and above."""
        shape = correlations.shape[:2]
        lowest, highest = cp.empty(shape), cp.empty(shape)
        common = self.common(correlations, row_norms, col_norms)
        _launch("peaks", 32 * lowest.size, **common, lowest=lowest, highest=highest)
        return lowest, highest

    def common(
        self, correlations: cp.ndarray, row_norms: cp.ndarray, col_norms: cp.ndarray
    ) -> dict[str, Any]:
        """Arguments of the kernels that read correlations."""
        n_rows, n_cols, n = correlations.shape
        # of the transforms, and of the sum in order, which is the certified one
        # see "spectra" in docs/developer/numerics.rst
        roundings = FFT_ERROR * (np.log2(n) + 2) + n + self.rows.shape[1]
        return {
            "correlations": correlations,
            "n_pairs": n_rows * n_cols,
            "n_cols": n_cols,
            "n": n,
            "row_norms": row_norms,
            "col_norms": col_norms,
            "roundings": roundings * FLOAT64_UNIT,
        }

    def certify(self, items: cp.ndarray | None, row: int, stop: int) -> None:
        """Certify the costs of single shifts, or of all."""
        n_rows, n_cols = stop - row, self.shape[1]
        n_items = n_rows * n_cols * self.n if items is None else len(items)
        channels, width = self.rows.shape[1:]
        _launch(
            f"straight<{metric_of(squared=self.squared)}>",
            min(n_items, 2**24),
            rows=self.rows.values[row * channels * width :],
            n=self.n,
            n_channels=channels,
            row_stride=width,
            cols=self.cols.values,
            col_stride=self.cols.shape[2],
            n_cols=n_cols,
            periods=self.periods,
            items=items,
            n_items=n_items,
            least=self.costs[row:],
        )

    def values(self, series: DeviceSeries) -> cp.ndarray:
        """The points of a set, without padding."""
        return series.values.reshape(series.shape)[:, :, : self.n]

    def transform(self, series: DeviceSeries, offset: cp.ndarray) -> tuple[cp.ndarray, cp.ndarray]:
        """Spectra of a set of series without the offset, and their sums of squares."""
        values = self.values(series) - offset
        return cp.fft.rfft(values), cp.sum(values * values, axis=(1, 2))
