"""Profiles of several lengths of the window from one walk, at the shortest of them.

The walk lists every pair that may be a nearest one at any of the lengths; see ``lengths.cu`` for
why these are few. They are scored at each length, and the best ones are certified.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any, NamedTuple

import cupy as cp
import numpy as np

from ...core.constants import TAKES_NO_PART
from ...core.reduction import Tile
from ...families.profile.join import Join
from ..loading import blocks_for, load_kernel
from ..transfers import bring, filled, read_number, send, send_one
from .candidates import THREADS, Pairs, addresses_of, certify_nearest, score_runs, searched_lines
from .known import Side
from .lines import DeviceLine, Searched, Steps
from .programs import RUNS_PER_WINDOW, SEED_BYTES, choose_height, choose_join
from .walk import TileJoin, launch

__all__ = ["LengthGroup", "LengthProfile", "profiles_of_lengths"]

#: Pairs of a window, on the average, above which lengths are searched one by one.
MOST_PAIRS = 96


class LengthProfile(NamedTuple):
    """The neighbours of all windows of one length, on the device."""

    distances: cp.ndarray
    indices: cp.ndarray

    def places(self) -> cp.ndarray:
        """Return indices as the host has them: int64, -1 for none."""
        places = cp.empty(self.indices.size, np.int64)
        load_kernel("profile/lengths.cu", "places_of")(
            *_threads(places.size), indices=self.indices, count=places.size, places=places
        )
        return places


def _threads(count: int) -> tuple[int, int]:
    return blocks_for(count, THREADS), THREADS


class LengthGroup(NamedTuple):
    """Lengths that are searched together, and the line at the first of them.

    Attributes
    ----------
    join : Join
        The work at the first length.
    lengths, exclusions : ndarray of int
        The lengths, in ascending order, and which pairs each leaves out.
    line, searched, steps : DeviceLine, Searched, Steps
        The line at the first length.
    dtype : type
        Type of covariances.
    """

    join: Join
    lengths: np.ndarray
    exclusions: np.ndarray
    line: DeviceLine
    searched: Searched
    steps: Steps
    dtype: type


def profiles_of_lengths(
    group: LengthGroup, line_of: Callable[[int], DeviceLine], guesses: list[cp.ndarray]
) -> tuple[list[LengthProfile] | None, float]:
    """Find the profiles of some lengths, and how many pairs of each window were scored.

    None where some windows are constant or hidden, or where too much would have to be scored.

    Parameters
    ----------
    group : LengthGroup
        The lengths.
    line_of : callable
        Returns the line at a length.
    guesses : list of ndarray of int32
        Neighbours of windows, of which each may have fewer.
    """
    searched, n_lengths, n_windows = group.searched, group.lengths.size, group.searched.mean.size
    lines = [line_of(length) for length in group.lengths.tolist()]
    regular = _regular(group, lines)
    if regular is None:
        return None, 0.0
    lengths, exclusions = send(*(given.astype(np.int32) for given in group[1:3]))
    sums, roots = cp.empty((2, n_lengths, n_windows))
    shared = {
        "points": searched.points,
        "mean": searched.mean,
        "lengths": lengths,
        "n_lengths": n_lengths,
        "n_points": searched.points.size,
        "stride": n_windows,
        "sums": sums,
        "roots": roots,
    }
    load_kernel("profile/lengths.cu", "energies")(*_threads(n_windows), **shared)
    shared["regular"] = regular
    tops = _limits(group, shared, guesses)
    search = _walk(group, tops)
    if search is None:
        return None, np.inf
    pairs = _pairs(search, tops)
    n_pairs = read_number(pairs.count)
    each = n_pairs / n_windows
    if not 0 < each <= MOST_PAIRS:
        return None, each
    reached, uppers = cp.zeros((n_lengths, n_windows)), cp.empty((n_lengths, n_pairs))
    load_kernel("profile/lengths.cu", "score_lengths")(
        *_threads(n_pairs),
        **shared,
        exclusions=exclusions,
        windows=pairs.windows,
        places=pairs.places,
        listed=pairs.values,
        groups=group.steps.groups,
        n_pairs=n_pairs,
        reached=reached,
        uppers=uppers,
    )
    some = Pairs(pairs.windows[:n_pairs], pairs.places[:n_pairs], pairs.values, pairs.count)
    found = []
    for line, length, upper, least in zip(
        lines, group.lengths.tolist(), uppers, reached, strict=True
    ):
        profile = LengthProfile(
            filled(line.mean.size, np.inf, np.float64),
            filled(line.mean.size, TAKES_NO_PART, np.int32),
        )
        both, join = send_one(addresses_of([line[:3]] * 2)), replace(group.join, length=length)
        certify_nearest(both, join, some._replace(values=upper), least, profile)
        found.append(profile)
    return found, each


def _regular(group: LengthGroup, lines: list[DeviceLine]) -> cp.ndarray | None:
    """Which windows take part at each length, or None where some are constant or hidden."""
    count = cp.zeros(1, np.int32)
    regular = cp.zeros((len(lines), group.searched.mean.size), np.bool_)
    _count_odd(count, group.line.finite, group.searched.regular)
    for row, line in zip(regular, lines, strict=True):
        row[: line.regular.size] = line.regular
        _count_odd(count, line.finite, line.regular)
    return None if read_number(count) else regular


def _limits(group: LengthGroup, shared: dict[str, Any], guesses: list[cp.ndarray]) -> cp.ndarray:
    """Bounds of scores at the first length, as the walk has them."""
    n_windows = shared["stride"]
    guessed = filled((len(guesses), n_windows), TAKES_NO_PART, np.int32)
    sizes = [min(guess.size, n_windows) for guess in guesses]
    for row, guess, size in zip(guessed, guesses, sizes, strict=True):
        row[:size] = guess[:size]
    tops = cp.empty(n_windows, np.int32)
    single = "float" if group.dtype is np.float32 else "double"
    load_kernel("profile/lengths.cu", f"limits<{single}>")(
        *_threads(n_windows),
        **shared,
        guesses=guessed,
        known=send_one(np.array(sizes, np.int32)),
        n_guesses=len(guesses),
        exclusion=int(group.exclusions.max()),
        tops=tops,
    )
    return tops


def _walk(group: LengthGroup, tops: cp.ndarray) -> TileJoin | None:
    """List the pairs that reach some bounds at the first length, or None if that is too much."""
    searched, n_windows, dtype = group.searched, tops.size, group.dtype
    counts, slots = cp.zeros(2, np.int32), cp.zeros(1, np.int32)
    first, second = (
        Side(
            tops,
            slots,
            cp.zeros(n_windows, np.int32),
            cp.empty((RUNS_PER_WINDOW * n_windows, 4), np.int32),
            counts,
            at,
        )
        for at in range(2)
    )
    tile = Tile(0, n_windows, 0, n_windows)
    search = TileJoin(
        # bounds stay where they are, as where runs come a second time
        replace(group.join, n_neighbors=2, exclusion=int(group.exclusions.min()), hint=None),
        choose_join(group.join, tile.shape, dtype),
        (group.line, group.line),
        (searched, searched),
        (searched.regular, searched.regular),
        (group.steps, group.steps),
        tile,
        0.0,
        choose_height(tile.shape, dtype),
        (first, second),
        [],
        0,
        lambda: None,
    )
    n_panels = -(-n_windows // search.kernel.panel)
    bands = max(1, SEED_BYTES // (np.dtype(dtype).itemsize * search.height * n_panels))
    rows = bands * search.height
    for start in range(0, n_windows - 1 - search.join.exclusion, rows):
        launch(search, start, min(start + rows, n_windows), n_panels, True)
    count = cp.zeros(1, np.int32)
    _count_odd(count, None, None, first.skipped, second.skipped)
    if read_number(count) or (bring(counts) > len(first.runs)).any():
        return None
    return search


def _count_odd(
    count: cp.ndarray,
    finite: cp.ndarray | None,
    regular: cp.ndarray | None,
    *skipped: cp.ndarray,
) -> None:
    """Add how many windows are finite and not regular, or of how many pairs were skipped."""
    size = skipped[0].size if finite is None else finite.size
    load_kernel("profile/lengths.cu", "odd")(
        *_threads(size),
        finite=finite,
        regular=regular,
        skipped=skipped[0] if skipped else None,
        others=skipped[1] if skipped else None,
        n_windows=size,
        count=count,
    )


def _pairs(search: TileJoin, tops: cp.ndarray) -> Pairs:
    """Listed pairs that reach what windows need, with their covariances.

    More than `MOST_PAIRS` of each window, on the average, are only counted.
    """
    reached = cp.empty(tops.size)
    load_kernel("profile/candidates.cu", "least_scores")(
        *_threads(tops.size),
        tops=tops,
        count=tops.size,
        single=search.kernel.dtype is np.float32,
        exact=True,
        reached=reached,
    )
    lines, pairs = send_one(searched_lines(search)), Pairs.room_for(MOST_PAIRS * tops.size)
    for at, count in enumerate(bring(search.sides[0].counts).tolist()):
        if count:
            runs = search.sides[at].runs[:count]
            score_runs(search, at, runs, lines, reached, pairs, raising=False, covariances=True)
    return pairs
