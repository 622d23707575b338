"""Subsequence search on the GPU: windows bounded, warped in float32, the likely ones certified.

A tile goes in parts. While one is searched, another thread copies the points of the next.
"""

from __future__ import annotations

from collections.abc import Callable, Generator, Hashable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from dataclasses import dataclass, field
from functools import cache
from typing import Any, NamedTuple

import cupy as cp
import numpy as np

from ...core.certify import Bound, Rescaling, dtw_bound
from ...core.prepared import PreparedStore
from ...core.reduction import Tile
from ...core.series import Series, _maps_file
from ...families.elastic.warping import Warping
from ...families.search.subsequence import (
    SubsequenceNeighbors,
    TileMatches,
    greedy,
    normalize_query,
    query_envelope,
)
from ..elastic import dtw
from ..elastic.cells import cell_object, cell_of
from ..loading import blocks_for, load_kernel
from .programs import WarpKernel, choose_warp
from .room import Room

__all__ = ["search"]

THREADS = 256
#: Windows that are warped first, to have a limit, where there is none yet.
SEEDS = 4096
#: Checks of a window, while it is warped, whether to abandon it.
LOOKS = 12
#: Windows of a run where the exclusion is smaller: the nearest of a run counts towards a limit.
RUN = 64
#: Up to so many cells of warping matrices, float64 alone takes no longer than float32 and then a
#: certificate.
FEW_CELLS = 2**27
_NOTHING = np.uint64(2**64 - 1)

_PLACE = np.dtype([("shift", np.int32), ("pitch", np.int32)])
_INTERVAL = np.dtype(
    [
        *((name, np.float64) for name in ("shrink", "grow", "slack", "base")),
        ("squared", np.int32),
    ],
    align=True,
)


def _blocks(n: int) -> tuple[int]:
    return (max(1, min(-(-n // THREADS), 2**14)),)


class Windows(NamedTuple):
    """The windows of one length in a part of a tile, on the device.

    Attributes
    ----------
    points : cupy.ndarray of shape (n_points,), float64
        The part of the line.
    length, count : int
        Points of a window, and how many windows.
    line : cupy.ndarray of float32
        Segments of the line, see ``search.cu``.
    place : ndarray of one `_PLACE`
        Where a window lies there.
    moments : cupy.ndarray of shape (count, 2), float64
        Certified mean and 1 / deviation.
    affine : cupy.ndarray of shape (count, 2), float32
        Factor and summand of the points of a window.
    error : cupy.ndarray of shape (count,), float32
        Error of normalised points.
    """

    points: cp.ndarray
    length: int
    count: int  # type: ignore[assignment]  # hides tuple.count, which nobody asks for
    line: cp.ndarray
    place: np.ndarray
    moments: cp.ndarray
    affine: cp.ndarray
    error: cp.ndarray


class Listed(NamedTuple):
    """Windows, and costs of each where they are known.

    Attributes
    ----------
    positions : cupy.ndarray of int32, or None
        The windows; None is all.
    n : int
        How many there are at most.
    count : cupy.ndarray of shape (1,), int32, or None
        How many there are, where that is known on the device alone.
    costs : cupy.ndarray of float32, or None
        Accumulated costs.
    """

    positions: cp.ndarray | None
    n: int
    count: cp.ndarray | None = None  # type: ignore[assignment]  # hides tuple.count, too
    costs: cp.ndarray | None = None

    @property
    def arguments(self) -> dict[str, Any]:
        """Arguments of kernels that go through them, besides the costs."""
        return {"positions": self.positions, "count": self.count, "n": self.n}


@dataclass
class Query:
    """A query with the matches and the limit so far.

    Attributes
    ----------
    given : ndarray of shape (length,), float64
        As it came.
    certified : ndarray of shape (length,), float64
        Normalised, if windows are.
    single : ndarray of shape (length,), float32
        The same for the search.
    envelope : ndarray of shape (length, 2), float32
        Least and largest point that each point of a window may meet.
    rescaling : Rescaling
        Offset and scale of the points of windows in the search, without normalisation.
    rough, bound : Bound
        Errors of costs by rounding, of bounds and of estimates.
    terms, error : float
        Factor from errors of points to errors of costs; error of the points of the query.
    radius : int
        Half width of the band.
    need, exclusion : int
        See `SubsequenceNeighbors.apart`.
    limit : float
        Distance beyond which a window is no match.
    near, near_values : ndarray
        Windows far from each other, and upper bounds of their distances.
    positions, distances : list of ndarray
        Matches of the parts so far.
    made : dict
        Data on the device; see `once`.
    """

    given: np.ndarray
    certified: np.ndarray
    single: np.ndarray
    envelope: np.ndarray
    rescaling: Rescaling
    rough: Bound
    bound: Bound
    terms: float
    error: float
    radius: int
    need: int
    exclusion: int
    limit: float
    near: np.ndarray
    near_values: np.ndarray
    positions: list[np.ndarray] = field(default_factory=list)
    distances: list[np.ndarray] = field(default_factory=list)
    made: dict[Hashable, Any] = field(default_factory=dict)

    def once(self, key: Hashable, build: Callable[[], Any]) -> Any:
        """Return data of the query on the device, made at the first call."""
        if key not in self.made:
            self.made[key] = build()
        return self.made[key]

    def columns(self, kernel: WarpKernel) -> cp.ndarray:
        """The query as the columns of a kernel that warps windows."""

        def build() -> cp.ndarray:
            columns = np.full(kernel.width, np.inf, np.float32)
            columns[kernel.width - self.single.size :] = self.single
            return cp.asarray(columns)

        return self.once(kernel, build)

    def series(self, certified: bool) -> dtw.DeviceSeries:
        """The query for kernels of pairs."""

        def build() -> dtw.DeviceSeries:
            points = self.certified if certified else self.single.astype(np.float64)
            made = dtw.upload(Series(points.reshape(1, 1, -1), np.array([points.size])))
            return made if certified else dtw.rescale(made, Rescaling())

        return self.once(certified, build)

    def interval(self, bound: Bound, *, squared: bool) -> np.ndarray:
        """The argument of kernels that says what costs tell."""
        exact = bound.exact
        interval = np.zeros(1, _INTERVAL)
        interval["shrink"], interval["grow"] = bound.shrink, bound.grow
        interval["slack"] = 0.0 if exact else self.terms * (1 + 1e-6)
        interval["base"] = self.error + 2.0**-63
        interval["squared"] = squared
        return interval

    def learn(self, positions: np.ndarray, values: np.ndarray) -> None:
        """Lower the limit by windows that are far from each other.

        Parameters
        ----------
        positions : ndarray of shape (n,), int64
            Windows of the tile.
        values : ndarray of shape (n,), float64
            What their distances are at most.
        """
        count = 4 * self.need + 64
        while True:
            few = np.argpartition(values, count)[:count] if count < values.size else slice(None)
            where = np.concatenate([self.near, positions[few]])
            value = np.concatenate([self.near_values, values[few]])
            order = np.lexsort((where, value))
            line = np.column_stack([np.zeros(where.size, np.int64), where])
            taken = greedy(line, order, self.exclusion, self.need)
            if taken.size == self.need or count >= values.size:
                break
            count *= 8
        self.near, self.near_values = where[taken], value[taken]
        if taken.size == self.need:
            self.limit = min(self.limit, float(self.near_values[-1]))


def prepare_query(reduction: SubsequenceNeighbors, row: int) -> Query:
    """Prepare a query for a search."""
    given = np.array(reduction.queries[row], np.float64)
    length, warping = given.size, reduction.warping
    certified = normalize_query(given, bool(reduction.normalize))
    rescaling = Rescaling() if reduction.normalize else Rescaling.of(given)
    single, error = rescaling.apply(certified)
    radius = min(int(warping.radius(length, length)), length - 1)
    low, high = query_envelope(single.astype(np.float64), radius)
    exact = reduction.precision == "float32"
    steps = warping.steps(length, length)
    # see "search float32" in docs/developer/numerics.rst
    rough = dtw_bound(steps + 4, 1, 0.0, 1.0, squared=warping.squared)
    return Query(
        given=given,
        certified=certified,
        single=single,
        envelope=np.column_stack([low, high]).astype(np.float32),
        rescaling=rescaling,
        rough=rough,
        bound=Bound() if exact else rough,
        terms=float(np.sqrt(steps)) if warping.squared else float(steps),
        error=error,
        radius=radius,
        need=reduction.apart(length),
        exclusion=reduction.exclusion_of(length),
        limit=reduction.limit_of(row),
        near=np.empty(0, np.int64),
        near_values=np.empty(0),
    )


class Part(NamedTuple):
    """Points of a part of a tile on the device, from window `first` of the tile on."""

    first: int
    points: cp.ndarray
    ready: cp.cuda.Event
    used: cp.cuda.Event


@dataclass
class Kept:
    """Points of a tile that stay on the device; of them the first `filled` are there."""

    points: cp.ndarray
    filled: int = 0


def _upload(
    reduction: SubsequenceNeighbors, tile: Tile, n_points: int, plan: Room, prepared: PreparedStore
) -> Generator[Part, None, None]:
    """Copy parts of a tile to the device, by a stream of its own, while others are searched.

    A part is under way when it is handed out. Of a single series that is ours and takes little of
    the memory, points stay on the device. Others go to two buffers in turn, each of which is used
    again two parts later, once `used` has been reached.
    """
    longest, series, size = reduction.longest, reduction.series, plan.windows
    owner = series.parts[0]
    ours = len(series.parts) == 1 and not owner.flags.writeable and not _maps_file(owner)
    kept = None
    if ours and 8 * series.n_points <= plan.keep:
        key = ("points", cp.cuda.Device().id, tile.col, n_points)
        kept = prepared.get(owner, key, lambda: (Kept(cp.empty(n_points)), 8 * n_points))
    stream = cp.cuda.Stream(non_blocking=True)
    most = min(n_points, size + longest - 1)
    pinned = cp.cuda.alloc_pinned_memory(2 * 8 * most)
    host = np.frombuffer(pinned, np.float64, 2 * most).reshape(2, most)
    device = cp.empty((2, most)) if kept is None else None
    parts: list[Part] = []
    # the current stream may still use the former contents of this memory
    begun = cp.cuda.Event(disable_timing=True)
    begun.record()
    stream.wait_event(begun)
    try:
        for index, first in enumerate(range(0, max(1, tile.shape[1]), size)):
            half, stop = index % 2, min(first + size + longest - 1, n_points)
            if index >= 2:
                parts[index - 2].ready.synchronize()
            if device is not None:
                if index >= 2:
                    stream.wait_event(parts[index - 2].used)
                begin, points = first, device[half, : stop - first]
                target = points
            elif kept is not None:
                begin, points = max(first, kept.filled), kept.points[first:stop]
                target = kept.points[begin:stop]
            if begin < stop:
                piece = series.piece(tile.col + begin, tile.col + stop, host[half])
                target.set(piece, stream=stream)
            if kept is not None:
                kept.filled = max(kept.filled, stop)
            events = (cp.cuda.Event(disable_timing=True) for _ in range(2))
            parts.append(Part(first, points, *events))
            parts[-1].ready.record(stream)
            yield parts[-1]
    finally:
        stream.synchronize()


def prepare_windows(
    part: Part, length: int, count: int, reduction: SubsequenceNeighbors, rescaling: Rescaling
) -> Windows:
    """Normalise the windows of a part: statistics, and the float32 copy of the line."""
    step = max(1024, 1 << (length - 1).bit_length())
    pitch = -(-(step + length + 8) // 4) * 4
    n_segments = -(-count // step)
    place = np.zeros(1, _PLACE)
    place["shift"], place["pitch"] = step.bit_length() - 1, pitch
    n_points = count + length - 1
    line = cp.empty(n_segments * pitch + 64, np.float32)
    frames = cp.empty((n_segments, 2))
    load_kernel("search/search.cu", "segments")(
        n_segments,
        THREADS,
        points=part.points,
        n_points=n_points,
        step=step,
        pitch=pitch,
        line=line,
        frames=frames,
    )
    made = Windows(
        part.points,
        length,
        count,
        line,
        place,
        cp.empty((count, 2)),
        cp.empty((count, 2), np.float32),
        cp.empty(count, np.float32),
    )
    load_kernel("search/search.cu", "moments")(
        blocks_for(count, THREADS),
        THREADS,
        points=part.points,
        n_windows=count,
        length=length,
        normalize=reduction.normalize,
        offset=rescaling.offset,
        scale=rescaling.scale,
        frames=frames,
        place=place,
        moments=made.moments,
        affine=made.affine,
        error=made.error,
    )
    return made


def bound_windows(windows: Windows, query: Query, warping: Warping) -> cp.ndarray:
    """Accumulated cost that each window has at least; without warping, that it has."""
    costs = cp.empty(windows.count, np.float32)
    load_kernel("search/search.cu", "bounds")(
        blocks_for(windows.count, THREADS),
        THREADS,
        line=windows.line,
        n_windows=windows.count,
        length=windows.length,
        place=windows.place,
        affine=windows.affine,
        envelope=query.once("envelope", lambda: cp.asarray(query.envelope)),
        query=query.once("single", lambda: cp.asarray(query.single)),
        squared=warping.squared,
        largest=warping.largest,
        ranges=0 if query.radius == 0 else 1 + (query.radius == windows.length - 1),
        cost=costs,
    )
    return costs


def least_of_runs(
    windows: Windows, listed: Listed, query: Query, interval: np.ndarray, *, upper: bool
) -> tuple[np.ndarray, np.ndarray]:
    """The window of each run with the least lower or upper value, and that value, on the host."""
    run = max(query.exclusion + 1, min(RUN, windows.count // (16 * max(1, query.need))), 1)
    keys = cp.full(-(-windows.count // run), _NOTHING, np.uint64)
    load_kernel("search/search.cu", "minima")(
        _blocks(listed.n),
        THREADS,
        costs=listed.costs,
        **listed.arguments,
        error=windows.error,
        interval=interval,
        upper=upper,
        run=run,
        keys=keys,
    )
    found = keys.get()
    found = found[found != _NOTHING]
    bits = (found >> np.uint64(32)).astype(np.uint32)
    positions = (found & np.uint64(2**32 - 1)).astype(np.int64)
    return positions, bits.view(np.float32).astype(np.float64) / query.rescaling.scale


def within(
    windows: Windows,
    listed: Listed,
    query: Query,
    interval: np.ndarray,
    limit: float,
    *,
    keep: bool = False,
) -> Listed:
    """List the windows whose lower value does not exceed a limit."""
    found = cp.empty(listed.n, np.int32)
    count = cp.zeros(1, np.int32)
    kept = cp.empty(listed.n, np.float32) if keep else None
    load_kernel("search/search.cu", "choose")(
        _blocks(listed.n),
        THREADS,
        costs=listed.costs,
        **listed.arguments,
        error=windows.error,
        interval=interval,
        limit=limit * query.rescaling.scale,
        found=found,
        n_found=count,
        kept=kept,
    )
    return Listed(found, listed.n, count, kept)


def known(listed: Listed) -> Listed:
    """The same list, its length known on the host."""
    assert listed.positions is not None and listed.count is not None  # as `within` lists them
    n = int(listed.count.get()[0])
    costs = None if listed.costs is None else listed.costs[:n]
    return Listed(listed.positions[:n], n, None, costs)


@cache
def _resident(kernel: WarpKernel, device: int) -> int:
    """Blocks of a kernel that a device runs at a time."""
    function = load_kernel("search/search_warp.cu", kernel.name)
    per = cp.cuda.driver.occupancyMaxActiveBlocksPerMultiprocessor(
        function.function.kernel.ptr, dtw.THREADS, 0
    )
    return max(1, per) * cp.cuda.Device(device).attributes["MultiProcessorCount"]


def warp_windows(
    windows: Windows, listed: Listed, query: Query, kernel: WarpKernel, interval: np.ndarray
) -> cp.ndarray:
    """Accumulated costs of listed windows without a band, in the order of the list.

    Infinite where the lower value, by `interval`, exceeds the limit of the query.
    """
    entries = cp.empty((listed.n, 4), np.int32)
    load_kernel("search/search.cu", "enter")(
        _blocks(listed.n),
        THREADS,
        **listed.arguments,
        place=windows.place,
        affine=windows.affine,
        error=windows.error,
        interval=interval,
        limit=query.limit * query.rescaling.scale,
        entries=entries,
    )
    costs = cp.empty(listed.n, np.float32)
    blocks = -(-listed.n * kernel.group // dtw.THREADS)
    blocks = min(blocks, _resident(kernel, cp.cuda.Device().id))
    load_kernel("search/search_warp.cu", kernel.name)(
        blocks,
        dtw.THREADS,
        query=query.columns(kernel),
        length=windows.length,
        G=kernel.group,
        line=windows.line,
        entries=entries,
        count=listed.count,
        n=listed.n,
        period=max(2, windows.length // (4 * LOOKS)),
        taken=cp.zeros(1, np.int32),
        out=costs,
        cell=cell_object(kernel.cell),
    )
    return costs


def row_distances(
    windows: Windows,
    positions: cp.ndarray,
    query: Query,
    reduction: SubsequenceNeighbors,
    plan: Room,
    *,
    certified: bool,
) -> Iterator[cp.ndarray]:
    """Distances (certified) or accumulated costs of windows laid out one after the other."""
    length = windows.length
    width = dtw.stride(length)
    type = np.float64 if certified else np.float32
    for first in range(0, len(positions), plan.chunk):
        some = positions[first : first + plan.chunk]
        n = len(some)
        buffer = cp.zeros(n * width + 2 * dtw.PAD, type)
        rows = dtw.DeviceSeries(buffer, cp.full(n, length, np.int32), (n, 1, width), length)
        grid = -(-length // THREADS), min(n, 65535)
        arguments: dict[str, Any] = {
            "positions": some,
            "n": n,
            "length": length,
            "stride": width,
            "out": rows.values,
        }
        if certified:
            arguments |= {"points": windows.points, "moments": windows.moments}
            arguments["normalize"] = reduction.normalize
        else:
            arguments |= {"line": windows.line, "place": windows.place, "affine": windows.affine}
        name = "rows_double" if certified else "rows_float"
        load_kernel("search/search.cu", name)(grid, THREADS, **arguments)
        other, warping = query.series(certified), reduction.warping
        reach = int(warping.radius(length, length))
        options: dict[str, Any] = {"reach": reach, "root": certified, "budget": plan.edges}
        if certified and reduction.precision != "float64":
            items = cp.zeros((n, 2), np.int32)
            items[:, 0] = cp.arange(n, dtype=np.int32)
            yield dtw.certify(rows, other, items, warping, **options)
            continue
        # all windows in float64 are a search themselves
        yield dtw.distances(rows, other, warping, **options).ravel()


def estimate(
    windows: Windows,
    listed: Listed,
    query: Query,
    reduction: SubsequenceNeighbors,
    plan: Room,
) -> Listed:
    """Warp listed windows in float32."""
    warping, length = reduction.warping, windows.length
    kernel = choose_warp(length, cell_of(warping))
    if query.radius == length - 1 and kernel is not None:
        interval = query.interval(query.rough, squared=warping.squared)
        return listed._replace(costs=warp_windows(windows, listed, query, kernel, interval))
    if listed.count is not None:
        listed = known(listed)
    costs = cp.empty(listed.n, np.float32)
    first = 0
    for some in row_distances(windows, listed.positions, query, reduction, plan, certified=False):
        costs[first : first + len(some)] = some
        first += len(some)
    return listed._replace(costs=costs)


def search_part(
    windows: Windows,
    query: Query,
    reduction: SubsequenceNeighbors,
    first: int,
    plan: Room,
    cancel: np.ndarray,
) -> None:
    """Find the windows of a part that may match a query."""
    warping = reduction.warping
    squared, length = warping.squared, windows.length
    rough = query.interval(query.rough, squared=squared)
    fine = query.interval(query.bound, squared=squared)
    single = query.bound.exact
    listed = Listed(None, windows.count, None, bound_windows(windows, query, warping))
    # few windows are certified at once, which tells as much as estimates do
    settled = reduction.precision == "float64"
    if settled:
        listed = known(within(windows, listed, query, rough, np.inf))
    elif query.radius > 0:
        if query.need and query.limit == np.inf:
            _seed(windows, listed, query, reduction, first, plan)
        listed = within(windows, listed, query, rough, query.limit)
        if query.radius < length - 1:
            listed = known(listed)
            # an antidiagonal of a narrow band takes a warp as long as one of 64 cells
            cells = max(warping.cells(length, length), 64 * length)
            settled = not single and listed.n * cells <= FEW_CELLS
        if not settled:
            listed = estimate(windows, listed, query, reduction, plan)
    if not settled:
        if query.need and listed.n:
            positions, values = least_of_runs(windows, listed, query, fine, upper=True)
            query.learn(positions + first, values)
        listed = known(within(windows, listed, query, fine, query.limit, keep=single))
    if listed.n == 0:
        return
    assert listed.positions is not None  # as `within` lists them
    positions = listed.positions.get().astype(np.int64) + first
    if single:
        assert listed.costs is not None  # they were asked for
        values = listed.costs.get().astype(np.float64)
        values = (np.sqrt(values) if squared else values) / query.rescaling.scale
        query.positions.append(positions)
        query.distances.append(values)
        return
    begin = 0
    for some in row_distances(windows, listed.positions, query, reduction, plan, certified=True):
        if cancel[0]:
            return
        values = some.get()
        where = positions[begin : begin + values.size]
        begin += values.size
        if query.need:
            query.learn(where, values)
        keep = values <= query.limit
        query.positions.append(where[keep])
        query.distances.append(values[keep])


def _seed(
    windows: Windows,
    listed: Listed,
    query: Query,
    reduction: SubsequenceNeighbors,
    first: int,
    plan: Room,
) -> None:
    """Warp the windows of the least bounds, to have a limit for the others."""
    squared = reduction.warping.squared
    rough = query.interval(query.rough, squared=squared)
    positions, values = least_of_runs(windows, listed, query, rough, upper=False)
    count = max(SEEDS, 4 * query.need)
    if count < values.size:
        positions = positions[np.argpartition(values, count)[:count]]
    if positions.size:
        seeds = Listed(cp.asarray(np.sort(positions).astype(np.int32)), positions.size)
        found = estimate(windows, seeds, query, reduction, plan)
        fine = query.interval(query.bound, squared=squared)
        positions, values = least_of_runs(windows, found, query, fine, upper=True)
        query.learn(positions + first, values)


def search(
    reduction: SubsequenceNeighbors,
    tile: Tile,
    plan: Room,
    prepared: PreparedStore,
    cancel: np.ndarray,
) -> list[TileMatches]:
    """Windows of a tile that may match each of some queries."""
    n_points = min(tile.col_stop + reduction.longest - 1, reduction.series.n_points) - tile.col
    queries = [prepare_query(reduction, row) for row in range(tile.row, tile.row_stop)]
    # queries of one length share prepared windows
    groups: dict[tuple[int, Rescaling], list[Query]] = {}
    for query in queries:
        groups.setdefault((query.given.size, query.rescaling), []).append(query)
    parts = _upload(reduction, tile, n_points, plan, prepared)
    device = cp.cuda.Device()

    def fetch() -> Part | None:
        with device:
            return next(parts, None)

    # another thread reads the next part and sends it off while this one searches
    with closing(parts), ThreadPoolExecutor(1, thread_name_prefix="skts") as pool:
        part = fetch()
        while part is not None and not cancel[0]:
            more = part.first + plan.windows < tile.shape[1]
            coming = pool.submit(fetch) if more else None
            cp.cuda.get_current_stream().wait_event(part.ready)
            for (length, rescaling), members in groups.items():
                count = min(plan.windows, tile.shape[1] - part.first)
                count = min(count, n_points - part.first - length + 1)
                if count < 1:
                    continue
                windows = prepare_windows(part, length, count, reduction, rescaling)
                for query in members:
                    if not cancel[0]:
                        search_part(windows, query, reduction, part.first, plan, cancel)
            part.used.record()
            part = None if coming is None else coming.result()
    return [
        TileMatches(
            np.concatenate([np.empty(0, np.int64), *query.positions]),
            np.concatenate([np.empty(0), *query.distances]),
        )
        for query in queries
    ]
