"""Subsequence search on the GPU: windows bounded, warped in float32, the likely ones certified.

A tile goes in parts. While one is searched, another thread copies the points of the next.
"""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, closing
from dataclasses import replace

import cupy as cp
import numpy as np

from ...core.certify import Rescaling
from ...core.prepared import PreparedStore
from ...core.reduction import Tile
from ...families.search.subsequence import SubsequenceNeighbors, TileMatches
from ..elastic.cells import cell_of
from ..transfers import send_one
from .programs import choose_warp
from .query import Query, prepare_query
from .room import SearchRoom
from .upload import UploadedPart, upload_parts
from .windows import (
    DeviceWindows,
    Listed,
    bound_windows,
    join_channels,
    least_of_runs,
    prepare_windows,
    row_distances,
    warp_windows,
    with_length,
    within,
)

__all__ = ["search"]

#: Windows that are warped first, to have a limit, where there is none yet.
SEEDS = 4096
#: Up to so many cells of warping matrices, float64 alone takes no longer than float32 and then a
#: certificate.
FEW_CELLS = 2**27


def estimate(
    windows: DeviceWindows,
    listed: Listed,
    query: Query,
    reduction: SubsequenceNeighbors,
    room: SearchRoom,
) -> Listed:
    """Warp listed windows in float32."""
    warping, length = reduction.warping, windows.length
    kernel = choose_warp(length, cell_of(warping))
    if query.radius == length - 1 and kernel is not None and query.n_channels == 1:
        interval = query.interval(query.rough, squared=warping.squared)
        return listed._replace(costs=warp_windows(windows, listed, query, kernel, interval))
    if listed.count is not None:
        listed = with_length(listed)
    costs = cp.empty(listed.n, np.float32)
    first = 0
    for some in row_distances(windows, listed.positions, query, reduction, room, certified=False):
        costs[first : first + len(some)] = some
        first += len(some)
    return listed._replace(costs=costs)


def search_part(
    windows: DeviceWindows,
    query: Query,
    reduction: SubsequenceNeighbors,
    first: int,
    room: SearchRoom,
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
        listed = with_length(within(windows, listed, query, rough, np.inf))
    elif query.radius > 0 or (query.n_channels > 1 and warping.largest):
        if query.need and query.limit == np.inf:
            _seed(windows, listed, query, reduction, first, room)
        listed = within(windows, listed, query, rough, query.limit)
        if query.radius < length - 1 or query.n_channels > 1:
            listed = with_length(listed)
            # an antidiagonal of a narrow band takes a warp as long as one of 64 cells
            cells = query.n_channels * max(warping.cells(length, length), 64 * length)
            settled = not single and listed.n * cells <= FEW_CELLS
        if not settled:
            listed = estimate(windows, listed, query, reduction, room)
    if not settled:
        if query.need and listed.n:
            positions, values = least_of_runs(windows, listed, query, fine, upper=True)
            query.lower_limit(positions + first, values)
        listed = with_length(within(windows, listed, query, fine, query.limit, keep=single))
    if listed.n == 0:
        return
    assert listed.positions is not None  # as `within` lists them
    chosen = listed.positions
    positions = chosen.get().astype(np.int64) + first
    if single:
        assert listed.costs is not None  # they were asked for
        values = listed.costs.get().astype(np.float64)
        values = (np.sqrt(values) if squared else values) / query.rescaling.scale
        # windows of which float32 tells nothing are all listed, whatever their costs, and certified
        known = np.isfinite(windows.error[chosen].get())
        query.positions.append(positions[known])
        query.distances.append(values[known])
        if known.all():
            return
        positions = positions[~known]
        chosen = send_one((positions - first).astype(np.int32))
    begin = 0
    for some in row_distances(windows, chosen, query, reduction, room, certified=True):
        if cancel[0]:
            return
        values = some.get()
        where = positions[begin : begin + values.size]
        begin += values.size
        if query.need:
            query.lower_limit(where, values)
        keep = values <= query.limit
        query.positions.append(where[keep])
        query.distances.append(values[keep])


def _seed(
    windows: DeviceWindows,
    listed: Listed,
    query: Query,
    reduction: SubsequenceNeighbors,
    first: int,
    room: SearchRoom,
) -> None:
    """Warp the windows of the least bounds, to have a limit for the others."""
    squared = reduction.warping.squared
    rough = query.interval(query.rough, squared=squared)
    positions, values = least_of_runs(windows, listed, query, rough, upper=False)
    count = max(SEEDS, 4 * query.need)
    if count < values.size:
        positions = positions[np.argpartition(values, count)[:count]]
    if positions.size:
        seeds = Listed(send_one(np.sort(positions).astype(np.int32)), positions.size)
        found = estimate(windows, seeds, query, reduction, room)
        fine = query.interval(query.bound, squared=squared)
        positions, values = least_of_runs(windows, found, query, fine, upper=True)
        query.lower_limit(positions + first, values)


def search(
    reduction: SubsequenceNeighbors,
    tile: Tile,
    room: SearchRoom,
    prepared: PreparedStore,
    cancel: np.ndarray,
) -> list[TileMatches]:
    """Windows of a tile that may match each of some queries."""
    n_points = min(tile.col_stop + reduction.longest - 1, reduction.series.n_points) - tile.col
    queries = [prepare_query(reduction, row) for row in range(tile.row, tile.row_stop)]
    # queries of one length share prepared windows
    groups: dict[tuple[int, Rescaling], list[Query]] = {}
    for query in queries:
        groups.setdefault((query.length, query.rescaling), []).append(query)
    device = cp.cuda.Device()
    lines = [reduction]
    if reduction.n_channels > 1:
        channels = map(reduction.series.channel, range(reduction.n_channels))
        lines = [replace(reduction, series=one) for one in channels]

    def fetch() -> list[UploadedPart]:
        """The next part of each channel, or nothing."""
        with device:
            found = [next(one, None) for one in parts]
        return [part for part in found if part is not None]

    # another thread reads the next part and sends it off while this one searches
    with ExitStack() as stack:
        parts = [
            stack.enter_context(closing(upload_parts(one, tile, n_points, room, prepared)))
            for one in lines
        ]
        pool = stack.enter_context(ThreadPoolExecutor(1, thread_name_prefix="skts"))
        part = fetch()
        while part and not cancel[0]:
            first = part[0].first
            more = first + room.windows < tile.shape[1]
            # points that are on the device already need no thread
            copied = any(one.ready is not None for one in part)
            coming = pool.submit(fetch) if more and copied else None
            for one in part:
                one.wait()
            for (length, rescaling), members in groups.items():
                count = min(room.windows, tile.shape[1] - first)
                count = min(count, n_points - first - length + 1)
                if count < 1:
                    continue
                windows = join_channels(
                    [prepare_windows(one, length, count, reduction, rescaling) for one in part]
                )
                for query in members:
                    if not cancel[0]:
                        search_part(windows, query, reduction, first, room, cancel)
            for one in part:
                one.release()
            part = coming.result() if coming is not None else fetch() if more else []
    return [
        TileMatches(
            np.concatenate([np.empty(0, np.int64), *query.positions]),
            np.concatenate([np.empty(0), *query.distances]),
        )
        for query in queries
    ]
