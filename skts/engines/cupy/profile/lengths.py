"""Profiles of several lengths of the window from one walk, at the shortest of them.

The walk lists every pair that may be a nearest one at any of the lengths; see ``lengths.cu`` for
why these are few. They are scored at each length, and the best ones are certified.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import NamedTuple

import cupy as cp
import numpy as np

from ...core.constants import TAKES_NO_PART
from ...core.reduction import Tile
from ...families.profile.join import Join
from ..loading import blocks_for, load_kernel, multiprocessors
from ..transfers import bring, filled, read_number, send, send_one
from .candidates import BLOCKS, THREADS, addresses_of
from .known import Side
from .lines import DeviceLine, Searched, Steps
from .programs import RUNS_PER_WINDOW, SEED_BYTES, choose_height, choose_join
from .walk import TileJoin, launch

__all__ = ["LengthProfile", "profiles_of_lengths"]

#: Warps of a block, each of which has a run.
RUN_WARPS = 4
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


def profiles_of_lengths(
    join: Join,
    lengths: np.ndarray,
    exclusions: np.ndarray,
    line: DeviceLine,
    searched: Searched,
    steps: Steps,
    dtype: type,
    line_of: Callable[[int], DeviceLine],
    guesses: list[cp.ndarray],
) -> tuple[list[LengthProfile] | None, float]:
    """Find the profiles of some lengths, and how many pairs of each window were scored.

    None where some windows are constant or hidden, or where too much would have to be scored.

    Parameters
    ----------
    join : Join
        The work at the first length.
    lengths, exclusions : ndarray of int
        The lengths, in ascending order, and which pairs each leaves out.
    line, searched, steps : DeviceLine, Searched, Steps
        The line at the first length.
    dtype : type
        Type of covariances.
    line_of : callable
        Returns the line at a length.
    guesses : list of ndarray of int32
        Neighbours of windows, of which each may have fewer.
    """
    n_windows, n_points = searched.mean.size, searched.points.size
    n_lengths, blocks = lengths.size, _threads(n_windows)
    odd = cp.zeros(1, np.int32)
    lines = [line_of(length) for length in lengths.tolist()]
    regular = cp.zeros((n_lengths, n_windows), np.bool_)
    for row, longer in zip(regular, lines, strict=True):
        row[: longer.regular.size] = longer.regular
        _count_odd(odd, longer.finite, longer.regular)
    _count_odd(odd, line.finite, searched.regular)
    if read_number(odd):
        return None, 0.0
    guesses = [guess[:n_windows] for guess in guesses]
    lengths_there, exclusions_there, known = send(
        lengths.astype(np.int32),
        exclusions.astype(np.int32),
        np.array([guess.size for guess in guesses], np.int32),
    )
    sums, roots = cp.empty((2, n_lengths, n_windows))
    shared = {
        "points": searched.points,
        "mean": searched.mean,
        "lengths": lengths_there,
        "n_lengths": n_lengths,
        "n_points": n_points,
        "stride": n_windows,
        "sums": sums,
        "roots": roots,
    }
    load_kernel("profile/lengths.cu", "energies")(*blocks, **shared)
    shared["regular"] = regular
    guessed = filled((len(guesses), n_windows), TAKES_NO_PART, np.int32)
    for row, guess in zip(guessed, guesses, strict=True):
        row[: guess.size] = guess
    tops = cp.empty(n_windows, np.int32)
    load_kernel("profile/lengths.cu", f"limits<{'float' if dtype is np.float32 else 'double'}>")(
        *blocks,
        **shared,
        guesses=guessed,
        known=known,
        n_guesses=len(guesses),
        exclusion=int(exclusions.max()),
        tops=tops,
    )
    counts, slots = cp.zeros(2, np.int32), cp.zeros(1, np.int32)
    sides = [
        Side(
            tops,
            slots,
            cp.zeros(n_windows, np.int32),
            cp.empty((RUNS_PER_WINDOW * n_windows, 4), np.int32),
            counts,
            at,
        )
        for at in range(2)
    ]
    tile = Tile(0, n_windows, 0, n_windows)
    # bounds stay where they are, as where runs come a second time
    fixed = replace(join, n_neighbors=2, exclusion=int(exclusions.min()), hint=None)
    search = TileJoin(
        fixed,
        choose_join(join, tile.shape, dtype),
        (line, line),
        (searched, searched),
        (searched.regular, searched.regular),
        (steps, steps),
        tile,
        0.0,
        choose_height(tile.shape, dtype),
        (sides[0], sides[1]),
        [],
        0,
        lambda: None,
    )
    n_panels = -(-n_windows // search.kernel.panel)
    bands = max(1, SEED_BYTES // (np.dtype(dtype).itemsize * search.height * n_panels))
    rows = bands * search.height
    for start in range(0, n_windows, rows):
        if n_windows - 1 - start <= fixed.exclusion:
            break
        launch(search, start, min(start + rows, n_windows), n_panels, True)
    _count_odd(odd, None, None, sides[0].skipped, sides[1].skipped)
    listed = bring(counts)
    if read_number(odd) or any(n > len(side.runs) for n, side in zip(listed, sides, strict=True)):
        return None, np.inf
    pairs, products, number = _pairs(search, listed.tolist(), tops)
    each = number / n_windows
    if not 0 < each <= MOST_PAIRS:
        return None, each
    windows, places, products = (array[:number] for array in (*pairs, products))
    n_pairs = number
    reached, uppers = cp.zeros((n_lengths, n_windows)), cp.empty((n_lengths, n_pairs))
    load_kernel("profile/lengths.cu", "score_lengths")(
        *_threads(n_pairs),
        **shared,
        exclusions=exclusions_there,
        windows=windows,
        places=places,
        listed=products,
        n_pairs=n_pairs,
        reached=reached,
        uppers=uppers,
    )
    others = cp.empty((2, n_pairs), np.int32)
    found = [
        _certified(lines[at], int(lengths[at]), (windows, places), uppers[at], reached[at], others)
        for at in range(n_lengths)
    ]
    return found, each


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


def _pairs(
    search: TileJoin, counts: list[int], tops: cp.ndarray
) -> tuple[cp.ndarray, cp.ndarray, int]:
    """Listed pairs that reach what windows need, their sums of products, and how many there are.

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
    searched = search.searched[0]
    line = send_one(addresses_of([[*searched.device, search.regular[0]]]))
    capacity = MOST_PAIRS * tops.size
    pairs, products = cp.empty((2, capacity), np.int32), cp.empty(capacity)
    number = cp.zeros(1, np.uint64)
    for at, (side, count) in enumerate(zip(search.sides, counts, strict=True)):
        if count == 0:
            continue
        load_kernel("profile/lengths.cu", "pairs_of_runs")(
            blocks_for(count, RUN_WARPS),
            32 * RUN_WARPS,
            list=side.runs,
            count=count,
            lanes=1 if at else search.kernel.columns,
            line=line,
            n_points=searched.points.size,
            length=search.join.length,
            least_apart=search.join.least_apart,
            sign=-1 if at else 1,
            reached=reached,
            capacity=capacity,
            windows=pairs[0],
            places=pairs[1],
            products=products,
            n_pairs=number,
        )
    return pairs, products, read_number(number)


def _certified(
    line: DeviceLine,
    length: int,
    pairs: tuple[cp.ndarray, cp.ndarray],
    uppers: cp.ndarray,
    reached: cp.ndarray,
    others: cp.ndarray,
) -> LengthProfile:
    """The nearest of some pairs at a length; overwrites `uppers` and `others`."""
    n_windows, n_pairs = line.mean.size, uppers.size
    indices = filled(n_windows, TAKES_NO_PART, np.int32)
    n_others, distances = cp.zeros(1, np.int32), cp.empty(n_windows)
    load_kernel("profile/lengths.cu", "place_pairs")(
        *_threads(n_pairs),
        windows=pairs[0],
        places=pairs[1],
        uppers=uppers,
        n_pairs=n_pairs,
        reached=reached,
        chosen=indices,
        other_windows=others[0],
        other_places=others[1],
        n_others=n_others,
    )
    both = send_one(addresses_of([line[:3]] * 2))
    load_kernel("profile/lengths.cu", "certify_chosen")(
        *_threads(n_windows),
        line=both,
        chosen=indices,
        n_windows=n_windows,
        length=length,
        distances=distances,
    )
    rest = {"windows": others[0], "places": others[1], "n_pairs": n_others}
    blocks = min(blocks_for(n_pairs, THREADS), BLOCKS * multiprocessors())
    # bounds are not needed any more
    load_kernel("profile/candidates.cu", "certify")(
        blocks,
        THREADS,
        **rest,
        lines=both,
        length=length,
        normalize=True,
        distances=distances,
        indices=indices,
        found=uppers,
    )
    load_kernel("profile/candidates.cu", "first_of_equals")(
        blocks, THREADS, **rest, distances=distances, found=uppers, indices=indices
    )
    return LengthProfile(distances, indices)
