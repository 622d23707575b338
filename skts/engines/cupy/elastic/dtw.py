"""Dynamic time warping on the GPU: uploads, launch geometry, and the shortlist of a tile."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property
from typing import TYPE_CHECKING, Any, NamedTuple

import cupy as cp
import numpy as np

from ...core.certify import Bound, Rescaling, Shortlist, survivor_cap
from ...core.constants import ELASTIC_THREADS as THREADS
from ...core.series import Series
from ...families.elastic.warping import Warping
from ..loading import MODEST_RATE, SHARED, load_kernel, multiprocessors, pays
from ..series import GpuSeries
from ..transfers import read_number, send_one
from .cells import any_cell, cell_of, policy_of
from .programs import (
    BandKernel,
    DTWKernel,
    NarrowKernel,
    certifying_cell,
    choose_dtw,
    choose_narrow,
    choose_side,
    choose_slow,
    narrow_counts,
)

if TYPE_CHECKING:
    from .rotation_programs import TurnsKernel

__all__ = [
    "DeviceSeries",
    "certify",
    "distances",
    "points_by_length",
    "rescale",
    "shortlist",
    "stride",
    "upload",
]

#: Values that may be read before and behind a set: 31 lanes with 2 rows each and points fetched
#: early, and the columns of a widest strip.
PAD = 2048
#: CPU seconds that compiling an instance takes: from 0.1 to 5.
TO_COMPILE = 0.5
#: Blocks of a launch: kernels count its threads in 32 bits, and walk over the pairs with a stride.
MOST_BLOCKS = 2**31 // THREADS


@dataclass(frozen=True, eq=False)
class DeviceSeries:
    """Series on the device, in one type.

    Attributes
    ----------
    buffer : cupy.ndarray
        All values with `PAD` zeros before and behind.
    lengths : cupy.ndarray of int32
        Length of each series.
    shape : tuple of int
        Series, channels, stride; the stride is a multiple of 4.
    length : int
        Points of every series, 0 where they differ.
    error : float
        Largest rounding error of the values.
    """

    buffer: cp.ndarray
    lengths: cp.ndarray
    shape: tuple[int, int, int]
    length: int
    error: float = 0.0

    @cached_property
    def values(self) -> cp.ndarray:
        """The values without padding."""
        return self.buffer[PAD : self.buffer.size - PAD]


def stride(n_timepoints: int) -> int:
    """Distance in memory between series of so many points."""
    return -(-n_timepoints // 4) * 4


def device_bytes(n_series: int, n_channels: int, n_timepoints: int) -> int:
    """Bytes of a set on the device, in float64 and float32 together."""
    return 12 * (n_series * n_channels * stride(n_timepoints) + 2 * PAD) + 4 * n_series


def upload(series: Series) -> DeviceSeries:
    """Copy series to the device in float64."""
    n_series, n_channels, n_timepoints = series.shape
    width = stride(n_timepoints)
    shape = n_series, n_channels, width
    buffer = cp.zeros(n_series * n_channels * width + 2 * PAD)
    inner = buffer[PAD : buffer.size - PAD]
    if isinstance(series, GpuSeries):
        inner.reshape(shape)[:, :, :n_timepoints] = series.here()
    else:
        values = series.values
        if width != n_timepoints:
            values = np.pad(values, ((0, 0), (0, 0), (0, width - n_timepoints)))
        # on this stream: a copy of CuPy without a stream may come before the zeros
        inner.set(np.ascontiguousarray(values).ravel(), cp.cuda.get_current_stream())
    lengths = series.lengths.astype(np.int32)
    length = int(lengths[0]) if np.all(lengths == lengths[0]) else 0
    return DeviceSeries(buffer, send_one(lengths), shape, length)


def rescale(series: DeviceSeries, rescaling: Rescaling) -> DeviceSeries:
    """Make the float32 copy that a search runs on."""
    buffer = cp.zeros(series.buffer.size, np.float32)
    error = cp.zeros(1, np.float32)
    n_series, n_channels, width = series.shape
    n_rows = n_series * n_channels
    single = buffer[PAD : PAD + n_rows * width]
    load_kernel("elastic/shortlist.cu", "rescale")(
        (min(-(-n_rows // 8), 1024), min(-(-width // 256), 64)),
        (32, 8),
        values=series.values,
        lengths=series.lengths,
        n_rows=n_rows,
        n_channels=n_channels,
        width=width,
        offset=rescaling.offset,
        scale=rescaling.scale,
        out=single,
        error=error,
    )
    largest = float(error.get()[0])
    return replace(series, buffer=buffer, error=largest)


def groups_in_flight(
    kernel: DTWKernel | BandKernel | TurnsKernel, n_pairs: int, n_rows: int, budget: int
) -> int:
    """Groups of a launch; strips keep an edge for each, which bounds their number."""
    per_block = THREADS // kernel.group
    blocks = min(-(-n_pairs // (per_block * kernel.pairs)), MOST_BLOCKS)
    if kernel.strips:
        edge_bytes = (8 if kernel.type == "double" else 4) * per_block * edge_length(n_rows)
        blocks = min(blocks, multiprocessors() * 8, max(1, budget // edge_bytes))
    return blocks * per_block


def edges_of(
    kernel: DTWKernel | TurnsKernel, groups: int, n_rows: int, dtype: type | np.dtype
) -> dict[str, Any]:
    """Arguments of a kernel about the edges of its strips; None where columns go in one."""
    length = edge_length(n_rows)
    edges = cp.zeros(groups * length, dtype) if kernel.strips else None
    return {"edges": edges, "edge_stride": length}


def bands_shape(n: int, n_cols: int, offsets: int) -> tuple[int, int]:
    """Points and series of the transposed columns of `_in_bands`, with what surrounds them."""
    return n + offsets + 8, -(-n_cols // THREADS) * THREADS


def bands_bytes(n: int, n_channels: int, n_cols: int) -> int:
    """Bytes that these take at most."""
    height, pitch = bands_shape(n, n_cols, max(narrow_counts("float", n_channels), default=0))
    return 8 * n_channels * height * pitch


def edge_length(n_rows: int) -> int:
    """Values of an edge buffer: the rows, and what lanes write and fetch beyond the last."""
    return n_rows + 128


def distances(
    rows: DeviceSeries,
    cols: DeviceSeries,
    warping: Warping,
    *,
    reach: int,
    root: bool,
    budget: int,
    kernel: DTWKernel | BandKernel | None = None,
) -> cp.ndarray:
    """Compute all pairs of series of two sets.

    Parameters
    ----------
    rows, cols : DeviceSeries
        Two sets of one type.
    warping : Warping
        Options of the distance.
    reach : int
        Half width of the widest band among the pairs.
    root : bool
        Whether to return distances or accumulated costs.
    budget : int
        Bytes for edges of strips.
    kernel : DTWKernel, BandKernel or None
        The instance to launch; None chooses by the lengths.

    Returns
    -------
    cupy.ndarray
        Of shape (n_rows, n_cols).
    """
    dtype = rows.buffer.dtype
    n_rows, _, n = rows.shape
    n_cols, _, m = cols.shape
    type = "float" if dtype == np.float32 else "double"
    swap = warping.alignment == "supersequence"
    if swap:
        # the part of x that matches y is the part of the second series when the sides are swapped
        warping = warping.flipped
    elif kernel is None:
        chosen, swap = _choose(rows, cols, warping, reach, type)
        if isinstance(chosen, NarrowKernel):
            return _in_bands(rows, cols, chosen, warping, root=root)
        kernel = chosen
        warping = warping.flipped if swap else warping
    if swap:
        found = distances(cols, rows, warping, reach=reach, root=root, budget=budget, kernel=kernel)
        return cp.ascontiguousarray(found.T)
    assert kernel is not None  # where sides are not swapped it has been given, or chosen
    out = cp.empty((n_rows, n_cols), dtype)
    cell = cell_argument(warping, type, max(n, m))
    groups = groups_in_flight(kernel, out.size, n, budget)
    edges = {}
    if isinstance(kernel, DTWKernel):
        edges = edges_of(kernel, groups, n, dtype)
    load_kernel(kernel.file, kernel.name)(
        groups * kernel.group // THREADS,
        THREADS,
        row_values=rows.values,
        row_lengths=rows.lengths,
        row_stride=n,
        col_values=cols.values,
        col_lengths=cols.lengths,
        col_stride=m,
        n_pairs=out.size,
        n_cols=n_cols,
        G=kernel.group,
        **edges,
        points_by_length=points_by_length(warping, max(n, m)),
        root=root and warping.squared,
        out=out,
        cell=cell.argument,
    )
    return out


class CellArgument(NamedTuple):
    """The argument `cell` of a kernel, and the table to which it points, which lives as long."""

    argument: np.ndarray | np.void
    table: cp.ndarray | None


def cell_argument(warping: Warping, type: str, longest: int) -> CellArgument:
    """Return the argument `cell` of a kernel, for series of at most so many points of a type."""
    policy = policy_of(warping)
    if policy.weighted is None:
        return CellArgument(policy.arguments(type), None)
    weights, place = policy.weights(longest)
    table = send_one(weights.astype(np.float32 if type == "float" else np.float64))
    address = table.data.ptr + place * table.itemsize
    return CellArgument(np.array([(address,)], [("weights", np.uint64)]), table)


def certifying_argument(warping: Warping, longest: int) -> CellArgument:
    """Return the same for the policy of `certifying_cell`."""
    if type(warping) is Warping:
        return CellArgument(any_cell(warping), None)
    return cell_argument(warping, "double", longest)


def channels_of(series: DeviceSeries, warping: Warping) -> int:
    """Channels of series, without the last if it holds a number of each."""
    return series.shape[1] - policy_of(warping).own


def _choose(
    rows: DeviceSeries, cols: DeviceSeries, warping: Warping, reach: int, type: str
) -> tuple[DTWKernel | BandKernel | NarrowKernel, bool]:
    """Choose the fastest kernel for two sets, or that of small work; and whether sides are swapped.

    All kernels compute each cell by the same operations, so that answers have the same bits.
    """
    shape = channels_of(rows, warping), rows.shape[2], cols.shape[2]
    n_pairs = rows.shape[0] * cols.shape[0]
    slow, slow_swap, price = choose_side(choose_slow, type, *shape, warping, reach, n_pairs)
    fast: DTWKernel | BandKernel | NarrowKernel | None = None
    swap = False
    if rows.length and cols.length:
        fast = choose_narrow(type, shape[0], rows.length, cols.length, warping)
    if fast is None:
        fast, swap, _ = choose_side(choose_dtw, type, *shape, warping, reach, n_pairs)
    if pays(fast.file, fast.name, price * n_pairs / MODEST_RATE, TO_COMPILE):
        return fast, swap
    return slow, slow_swap


def certify(
    rows: DeviceSeries,
    cols: DeviceSeries,
    items: cp.ndarray,
    warping: Warping,
    *,
    root: bool = False,
    least: cp.ndarray | None = None,
    reach: int | None = None,
    budget: int,
) -> cp.ndarray | None:
    """Compute certified costs of some pairs, by code that no search shares.

    Parameters
    ----------
    rows, cols : DeviceSeries
        Two sets in float64.
    items : cupy.ndarray of shape (n_items, 2) or (n_items, 3 or more), int32
        A row series and a column series each, and the circular shift of the column series.
    warping : Warping
        Options of the distance.
    root : bool, default False
        Whether to return distances or accumulated costs.
    least : cupy.ndarray of shape (n_rows, n_cols) or None, default None
        Accumulated costs to be lowered to those found; then nothing is returned.
    reach : int or None, default None
        Half width of the widest band among the pairs, where that is known: fewer threads then wait
        for each other. It changes no result.
    budget : int
        Bytes for antidiagonals of long series.

    Returns
    -------
    cupy.ndarray of shape (n_items,) or None
        Distances or costs.
    """
    n_cols, _, m = cols.shape
    n = rows.shape[2]
    n_items, span = len(items), n + 2
    out = cp.empty(n_items) if least is None else None
    # an antidiagonal is no longer than either series, nor than the half of the band; with several
    # cells a thread, fewer wait for each other after each
    cells = min(n, m) if reach is None else min(n, m, reach + 1)
    threads = min(1024, -(-cells // 128) * 32)
    blocks = min(n_items, multiprocessors() * 4096 // threads)
    shared, room = 3 * 8 * span, None
    if shared > SHARED:
        blocks = max(1, min(blocks, budget // shared))
        room, shared = cp.empty(3 * span * blocks), 0
    cell = certifying_argument(warping, max(n, m))
    load_kernel("elastic/certify.cu", f"certify<{certifying_cell(warping)}>")(
        blocks,
        threads,
        row_values=rows.values,
        row_lengths=rows.lengths,
        row_stride=n,
        col_values=cols.values,
        col_lengths=cols.lengths,
        col_stride=m,
        n_channels=channels_of(cols, warping),
        n_cols=n_cols,
        items=items,
        n_items=n_items,
        width=items.shape[1],
        points=points_by_length(warping, max(n, m)),
        cell=cell.argument,
        free_columns=warping.alignment == "subsequence",
        free_rows=warping.alignment == "supersequence",
        root=root and warping.squared,
        room=room,
        span=span,
        out=out,
        least=least,
        shared_mem=shared,
    )
    return out


def points_by_length(warping: Warping, longest: int) -> cp.ndarray | None:
    """Half widths of bands by the length of the longer series, on the device; None without."""
    if warping.window is None:
        return None
    return send_one(warping.points(np.arange(longest + 1)).astype(np.int32))


def _in_bands(
    rows: DeviceSeries, cols: DeviceSeries, kernel: NarrowKernel, warping: Warping, *, root: bool
) -> cp.ndarray:
    """All pairs of two sets, each of one length, by threads that own whole bands."""
    out = cp.empty((rows.shape[0], cols.shape[0]), rows.buffer.dtype)
    strides = out.shape[1], 1
    # the side that fills blocks better goes along the threads
    blocks = [-(-side.shape[0] // THREADS) for side in (rows, cols)]
    if blocks[0] * cols.shape[0] < blocks[1] * rows.shape[0]:
        rows, cols, strides, warping = cols, rows, strides[::-1], warping.flipped
        kernel = kernel._replace(cell=cell_of(warping, kernel.type))
    n_rows, n_channels, width = rows.shape
    n_cols = cols.shape[0]
    n, m = rows.length, cols.length
    reach = int(warping.radius(n, m))
    height, pitch = bands_shape(n, n_cols, kernel.offsets)
    points = cols.values.reshape(cols.shape)[:, :, :m].transpose(1, 2, 0)
    # see `masks` in narrow.cu
    outside = np.inf if policy_of(warping).in_bands else 0.0
    bands = cp.full((n_channels, height, pitch), outside, out.dtype)
    bands[:, reach : reach + m, :n_cols] = points[:, : height - reach]
    cell = cell_argument(warping, kernel.type, max(n, m))
    load_kernel(kernel.file, kernel.name)(
        (pitch // THREADS, min(n_rows, 65535)),
        THREADS,
        rows=rows.values,
        n_rows=n_rows,
        n=n,
        row_stride=width,
        cols=bands,
        n_cols=n_cols,
        height=height,
        pitch=pitch,
        reach=reach,
        end=m - n + reach,
        root=root and warping.squared,
        out_row=strides[0],
        out_col=strides[1],
        out=out,
        cell=cell.argument,
    )
    return out


def shortlist(
    estimates: cp.ndarray,
    n_neighbors: int,
    bound: Bound,
    excluded: np.ndarray | None,
    scale: float,
    *,
    squared: bool,
) -> Shortlist:
    """Keep of each row of a block the candidates that may be among its nearest.

    Parameters
    ----------
    estimates : cupy.ndarray of shape (n_rows, n_cols)
        float32: accumulated costs in scaled units, or distances where these are more than costs;
        float64: certified distances.
    n_neighbors : int
        Neighbours asked for.
    bound : Bound
        Error of the distances; exact for float64.
    excluded : ndarray of shape (n_rows,), int64, or None
        One column a row that takes no part.
    scale : float
        By which data were multiplied.
    squared : bool
        Whether float32 estimates are squared distances.

    Returns
    -------
    Shortlist
        The survivors, on the host.
    """
    n_rows, n_cols = estimates.shape
    name = "shortlist<float>" if estimates.dtype == np.float32 else "shortlist<double>"
    cap = survivor_cap(n_neighbors)
    capacity = n_rows * min(cap, n_cols)
    n_found = cp.zeros(1, np.int32)
    found_rows, found_cols = cp.empty(capacity, np.int32), cp.empty(capacity, np.int32)
    found_values = cp.empty(capacity, estimates.dtype)
    overflowed = cp.zeros(n_rows, np.uint8)
    load_kernel("elastic/shortlist.cu", name)(
        n_rows,
        256,
        estimates=estimates,
        n_cols=n_cols,
        k=n_neighbors,
        excluded=None if excluded is None else send_one(excluded),
        scale=scale,
        squared=squared,
        shrink=bound.shrink,
        grow=bound.grow,
        slack=bound.slack,
        cap=cap,
        n_found=n_found,
        found_row=found_rows,
        found_col=found_cols,
        found_value=found_values,
        overflowed=overflowed,
    )
    count = read_number(n_found)
    values = found_values[:count].get()
    if estimates.dtype == np.float32:
        values = values.astype(np.float64)
        values = (np.sqrt(values) if squared else values) / scale
    return Shortlist(
        found_rows[:count].get().astype(np.int64),
        found_cols[:count].get().astype(np.int64),
        values,
        bound,
        np.flatnonzero(overflowed.get()),
    )
