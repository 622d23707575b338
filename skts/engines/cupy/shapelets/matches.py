"""Certified best matches of queries among the windows of series, on the GPU."""

from __future__ import annotations

from typing import Any, NamedTuple

import cupy as cp
import numpy as np

from ...core.constants import MATCH_THREADS
from ..loading import MODEST_RATE, blocks_for, load_kernel, pays
from ..transfers import send_one
from .match_programs import (
    DOUBLES,
    MEASURED_TOGETHER,
    QUERY,
    SIFT_TO_COMPILE,
    QueryPart,
    plan,
    runs,
    split,
)

__all__ = ["Asked", "ask", "best_matches", "normalize"]

#: Blocks of what runs over lists whose lengths the host does not know.
LIST_BLOCKS = 2048
#: Bytes of `Entry` and `ChannelScale` of ``matches.cuh``.
ENTRY_BYTES, LINE_BYTES = 16, 32


class Queries(NamedTuple):
    """Queries on the device, in the order of their lengths and channels.

    Attributes
    ----------
    table : cupy.ndarray of shape (n_queries, n_numbers), int64
        A `QUERY` each.
    normal : cupy.ndarray of float64
        The points of all, normalised.
    kinds : cupy.ndarray of shape (n_queries,), uint8
        1 where a query is constant, 2 where it is not finite.
    leans : cupy.ndarray of shape (n_queries,), float32
        Bounds of the means of normalised points.
    """

    table: cp.ndarray
    normal: cp.ndarray
    kinds: cp.ndarray
    leans: cp.ndarray

    def after(self, first: int) -> Queries:
        """Return the queries from one on; the points of all stay."""
        return Queries(self.table[first:], self.normal, self.kinds[first:], self.leans[first:])

    @property
    def argument(self) -> dict[str, Any]:
        """The argument of kernels."""
        return {"queries": self.table, "normal": self.normal, "kinds": self.kinds}


class Asked(NamedTuple):
    """Queries as the host describes them, and how they are looked for.

    Attributes
    ----------
    packed : ndarray of int64
        A `QUERY` each, in the order of lengths and channels, and the units behind them.
    n_queries, n_points : int
        Queries, and points of all of them.
    normalized : bool
        Whether windows and queries are z-normalised.
    sifted : bool
        Whether windows are sifted, and few of them measured.
    parts : list of QueryPart
        Launches of `sift`.
    """

    packed: np.ndarray
    n_queries: int
    n_points: int
    normalized: bool
    sifted: bool
    parts: list[QueryPart]


def ask(
    begins: np.ndarray,
    lengths: np.ndarray,
    channels: np.ndarray,
    rows: np.ndarray,
    shape: tuple[int, ...],
    n_columns: int,
    normalized: bool,
    not_sifted: int = 0,
) -> Asked:
    """Describe queries, for `best_matches`; no device is asked.

    Parameters
    ----------
    begins, lengths, channels, rows : ndarray of shape (n_queries,), int
        Where queries begin in the values that they are taken from, their points, the channel to
        look in, and the row of the answer.
    shape : tuple of int
        Of the series that they are looked for in: how many, channels, time points.
    n_columns : int
        In how many of these.
    normalized : bool
        Whether windows and queries are z-normalised.
    not_sifted : int, default 0
        Points of all windows up to which all are measured. More are sifted where that pays, and
        few of them measured.

    Returns
    -------
    Asked
        The queries.
    """
    _, n_channels, width = shape
    order = _in_order(lengths, channels, n_channels)
    lengths, channels = lengths[order], channels[order]
    ends = np.cumsum(lengths, dtype=np.int64)
    table = np.empty(len(order), QUERY)
    given = begins[order], ends - lengths, lengths, channels, rows[order]
    for name, column in zip(QUERY.names or (), given, strict=False):
        table[name] = column
    sifted = False
    points = int(lengths @ np.maximum(0, width + 1 - lengths)) * n_columns
    if normalized and points > not_sifted:
        seconds = points * DOUBLES / MODEST_RATE
        # windows that are all measured have the same bits
        sifted = pays("shapelets/matches.cu", "sift", seconds, SIFT_TO_COMPILE)
    parts: list[QueryPart] = []
    if sifted:
        parts, units = plan(lengths, channels, n_columns, width)
    elif len(order) == 1:
        units = [np.array([[0, 1]], np.int32)]
    else:
        units = [split(*runs(lengths, channels), MEASURED_TOGETHER)]
    # everything in one transfer
    packed = np.concatenate([table.view(np.int64), *(u.ravel().view(np.int64) for u in units)])
    return Asked(packed, len(table), int(ends[-1]), normalized, sifted, parts)


def _in_order(lengths: np.ndarray, channels: np.ndarray, n_channels: int) -> np.ndarray:
    """Order of queries by length and channel, the first of equal ones first."""
    keys = lengths * n_channels + channels
    # sorts numbers of two bytes in a third of the time
    return np.argsort(keys.astype(np.min_scalar_type(int(keys.max()))), kind="stable")


def best_matches(
    asked: Asked,
    source_values: cp.ndarray,
    values: cp.ndarray,
    sizes: cp.ndarray,
    series: cp.ndarray,
    distances: cp.ndarray,
    starts: cp.ndarray | None,
) -> None:
    """Certified best matches of queries in series.

    Parameters
    ----------
    asked : Asked
        The queries.
    source_values : cupy.ndarray
        What they are taken from.
    values : cupy.ndarray of shape (n_series, n_channels, n_timepoints)
        The series.
    sizes : cupy.ndarray of shape (n_series,), int32
        Their points.
    series : cupy.ndarray of shape (n_columns,), int32
        Which of them to look in.
    distances, starts : cupy.ndarray of shape (>= n_queries, n_columns)
        Written; `starts` may be None.
    """
    packed = send_one(asked.packed)
    n_numbers = asked.n_queries * QUERY.itemsize // 8
    on_device = packed[:n_numbers].reshape(asked.n_queries, -1)
    groups = packed[n_numbers:].view(np.int32).reshape(-1, 2)
    queries = normalize(source_values, on_device, asked.n_points, asked.normalized)
    n_channels, width = values.shape[1:]
    columns = {"values": values, "width": width, "n_channels": n_channels}
    columns |= {"sizes": sizes, "series": series, "n_columns": series.size}
    answers = {"distances": distances, "starts": starts}
    if not asked.sifted:
        load_kernel("shapelets/matches.cu", f"match<{MEASURED_TOGETHER}>")(
            min(len(groups) * series.size, 2**31 - 1),
            MATCH_THREADS,
            columns=columns,
            pairs={"groups": groups, "n_groups": len(groups), "left": None, "counts": None},
            asked=queries.argument,
            normalized=asked.normalized,
            answers=answers,
        )
        return
    surveyed = _survey(columns)
    for part in asked.parts:
        units_of_part, groups = groups[: part.n_units], groups[part.n_units :]
        _match_part(part, units_of_part, queries.after(part.first), surveyed, columns, answers)


def normalize(
    source_values: cp.ndarray, table: cp.ndarray, n_points: int, normalized: bool
) -> Queries:
    """Normalise queries, which have so many points together."""
    n = len(table)
    queries = Queries(table, cp.empty(n_points), cp.empty(n, np.uint8), cp.empty(n, np.float32))
    load_kernel("shapelets/matches.cu", "normalize")(
        blocks_for(n, MATCH_THREADS // 32),
        MATCH_THREADS,
        values=source_values,
        queries=table,
        n_queries=n,
        normalized=normalized,
        out=queries.normal,
        kinds=queries.kinds,
        leans=queries.leans,
    )
    return queries


def _survey(columns: dict[str, Any]) -> dict[str, Any]:
    """Describe the series of all columns: the argument `surveyed` of `sift`."""
    width, n_channels, n_columns = (columns[name] for name in ("width", "n_channels", "n_columns"))
    n = n_columns * n_channels
    found = {
        "centered": cp.empty((n, width)),
        "sums": cp.empty((n, width + 1, 2)),
        "squares": cp.empty((n, width + 1, 2)),
        "reaches": cp.empty((n, width, 2), np.int32),
        "lines": cp.empty((n, LINE_BYTES // 8)),
    }
    load_kernel("shapelets/matches.cu", "survey")(
        (n_columns, n_channels),
        MATCH_THREADS,
        **{name: value for name, value in columns.items() if name != "n_columns"},
        **found,
    )
    return {**found, "width": width, "n_channels": n_channels, "n_columns": n_columns}


def _match_part(
    part: QueryPart,
    units: cp.ndarray,
    queries: Queries,
    surveyed: dict[str, Any],
    columns: dict[str, Any],
    answers: dict[str, Any],
) -> None:
    """Best matches of the queries of a part, which are the first of `queries`.

    Windows that could be the best are listed, measured, and the first of the best is kept; what is
    left is measured window by window.
    """
    n_columns, capacity = columns["n_columns"], part.capacity
    n_pairs = (part.stop - part.first) * n_columns
    entries = cp.empty((capacity, ENTRY_BYTES // 8), np.int64)
    left, measured = cp.empty((n_pairs, 2), np.int32), cp.empty(capacity)
    zeros = cp.zeros(2 + blocks_for(n_pairs, 32), np.int32)
    counts, marks = zeros[:2], zeros[2:]
    lists = {"capacity": capacity, "entries": entries, "counts": counts}
    lists |= {"marks": marks, "left": left}
    for first in range(0, part.n_units, 65535):
        some = units[first : first + 65535]
        load_kernel("shapelets/matches.cu", "sift")(
            (part.blocks, len(some)),
            MATCH_THREADS,
            surveyed=surveyed,
            units=some,
            asked=queries.argument,
            leans=queries.leans,
            lists=lists,
            answers=answers,
        )
    load_kernel("shapelets/matches.cu", "certify")(
        min(4 * LIST_BLOCKS, blocks_for(capacity, 32)),
        32,
        columns=columns,
        asked=queries.argument,
        lists=lists,
        measured=measured,
        answers=answers,
    )
    if answers["starts"] is not None:
        load_kernel("shapelets/matches.cu", "first")(
            min(LIST_BLOCKS, blocks_for(capacity, 128)),
            128,
            asked=queries.argument,
            n_columns=n_columns,
            lists=lists,
            measured=measured,
            answers=answers,
        )
    load_kernel("shapelets/matches.cu", "match<1>")(
        min(LIST_BLOCKS, n_pairs),
        MATCH_THREADS,
        columns=columns,
        pairs={"groups": None, "n_groups": 0, "left": left, "counts": counts},
        asked=queries.argument,
        normalized=True,
        answers=answers,
    )
