"""Right answers: values within their bounds, choices that no other beats, equal bits."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
from numba import njit

__all__ = [
    "Failure",
    "check",
    "close",
    "copies_in_order",
    "first_of_equals",
    "nearest",
    "nearest_rows",
    "same",
    "sole",
]

#: Distances are promised to so many digits.
RELATIVE = 1e-9
#: Rows of a matrix with ties that are computed once more, about.
LOOKED_AT = 6


class Failure(Exception):
    """Something that must not be.

    Parameters
    ----------
    kind : str
        What is wrong, in few words that stay while a case shrinks.
    text : str
        The values.
    """

    def __init__(self, kind: str, text: str = "") -> None:
        super().__init__(f"{kind}: {text}" if text else kind)
        self.kind = kind


def check(right: Any, kind: str, text: Any = "") -> None:
    """Fail unless something is right; the text, if called for, is made only then."""
    if not right:
        raise Failure(kind, str(text() if callable(text) else text))


def close(name: str, found: Any, wanted: Any, slack: Any = 0.0, relative: float = RELATIVE) -> None:
    """Fail unless numbers agree within the promise and `slack`; infinities must be the same."""
    found, wanted = np.asarray(found, float), np.asarray(wanted, float)
    check(found.shape == wanted.shape, f"{name}: shape", f"{found.shape}, not {wanted.shape}")
    finite = np.isfinite(wanted)
    with np.errstate(invalid="ignore"):
        away = np.abs(found - wanted)
        bad = np.where(finite, ~(away <= relative * np.abs(wanted) + slack), ~(found == wanted))
    if bad.any():
        place = tuple(int(i) for i in np.argwhere(bad)[0])
        allowed = float((relative * np.abs(np.where(finite, wanted, 0)) + slack)[place])
        raise Failure(
            f"{name}: values",
            f"{found[place]!r} at {place} instead of {wanted[place]!r} (within {allowed:.2g}; "
            f"{int(bad.sum())} of {bad.size} are wrong)",
        )


def same(name: str, found: Any, wanted: Any) -> None:
    """Fail unless two outcomes have the same bits."""
    if isinstance(wanted, dict):
        check(found.keys() == wanted.keys(), f"{name}: parts", f"{list(found)}, {list(wanted)}")
        for key in wanted:
            same(f"{name} {key}", found[key], wanted[key])
        return
    found, wanted = np.asarray(found), np.asarray(wanted)
    check(found.shape == wanted.shape, f"{name}: shape", f"{found.shape}, not {wanted.shape}")
    check(found.dtype == wanted.dtype, f"{name}: type", f"{found.dtype}, not {wanted.dtype}")
    numeric = found.dtype.kind in "fc"
    if not np.array_equal(found, wanted, equal_nan=numeric):
        different = found != wanted
        if numeric:
            different &= ~(np.isnan(found) & np.isnan(wanted))
        place = tuple(int(i) for i in np.argwhere(different)[0])
        raise Failure(
            f"{name}: differ",
            f"{found[place]!r} and {wanted[place]!r} at {place} "
            f"({int(different.sum())} of {different.size} differ)",
        )


def nearest(
    name: str,
    row: np.ndarray,
    slack: np.ndarray | float,
    indices: np.ndarray,
    values: np.ndarray | None,
    *,
    exact: bool = False,
    relative: float = RELATIVE,
) -> None:
    """Fail unless these are the nearest of a row of distances, best first, ties by index.

    Inadmissible ones are infinite in `row`, and missing neighbours -1 with infinite values. With
    `exact` the row has no rounding errors, so that equal distances must be told apart by index.
    """
    indices = np.asarray(indices)
    k = len(indices)
    slack = np.broadcast_to(slack, row.shape) + relative * np.where(np.isfinite(row), row, 0.0)
    there = int(min(k, np.isfinite(row).sum()))
    chosen = indices[:there]
    check((chosen >= 0).all() and (chosen < row.size).all(), f"{name}: missing", indices)
    check((indices[there:] < 0).all(), f"{name}: too many", indices)
    check(len(set(chosen.tolist())) == there, f"{name}: repeated", indices)
    check(np.isfinite(row[chosen]).all(), f"{name}: not admissible", indices)
    if values is not None:
        close(f"{name} distances", values[:there], row[chosen], slack[chosen], 0.0)
        check(np.isinf(values[there:]).all(), f"{name}: value of a missing one", values)
        steps = np.diff(values[:there])
        check((steps >= 0).all(), f"{name}: not ascending", values)
        tied = np.flatnonzero(steps == 0)
        check((chosen[tied] < chosen[tied + 1]).all(), f"{name}: order of ties", indices)
    if exact:
        wanted = np.argsort(row, kind="stable")[:there]
        check((chosen == wanted).all(), f"{name}: choice", f"{chosen}, not {wanted}")
        return
    for rank, one in enumerate(chosen):
        left = np.ones(row.size, bool)
        left[chosen[:rank]] = False
        better = left & (row + slack < row[one] - slack[one])
        if better.any():
            best = int(np.argmin(np.where(left, row, np.inf)))
            raise Failure(
                f"{name}: not the nearest",
                f"{one} at {row[one]!r} is number {rank}, where {best} is at {row[best]!r}",
            )


@njit(cache=True, nogil=True)
def _doubtful(rows, slack, indices, values, relative):
    """Mark the rows whose choice may break a rule of `nearest`; all others keep every one."""
    found = np.zeros(rows.shape[0], np.bool_)
    n, k = rows.shape[1], indices.shape[1]
    for i in range(rows.shape[0]):
        finite = 0
        for j in range(n):
            finite += np.isfinite(rows[i, j])
        there = min(k, finite)
        chosen = np.zeros(n, np.bool_)
        lowest = -np.inf  # what an earlier choice is at least
        for rank in range(k):
            at, value = indices[i, rank], values[i, rank]
            if rank >= there:
                found[i] |= at >= 0 or value != np.inf
                continue
            if at < 0 or at >= n or chosen[at] or not np.isfinite(rows[i, at]):
                found[i] = True
                break
            chosen[at] = True
            allowed = slack[i, at] + relative * rows[i, at]
            found[i] |= not abs(value - rows[i, at]) <= allowed
            found[i] |= not rows[i, at] + allowed >= lowest
            lowest = max(lowest, rows[i, at] - allowed)
            if rank > 0:
                before = values[i, rank - 1]
                found[i] |= not value >= before or (value == before and at < indices[i, rank - 1])
        for j in range(n):
            if not chosen[j]:
                found[i] |= rows[i, j] + slack[i, j] + relative * rows[i, j] < lowest
    return found


def nearest_rows(
    name: str,
    rows: np.ndarray,
    slack: np.ndarray | float,
    indices: np.ndarray,
    values: np.ndarray,
    *,
    relative: float = RELATIVE,
) -> None:
    """`nearest` for every row of a matrix, but for those that a compiled loop finds in order."""
    slack = np.ascontiguousarray(np.broadcast_to(slack, rows.shape), np.float64)
    given = (np.ascontiguousarray(one) for one in (rows, slack, indices, values))
    for i in np.flatnonzero(_doubtful(*given, relative)):
        nearest(name, rows[i], slack[i], indices[i], values[i], relative=relative)


def first_of_equals(
    name: str,
    rows: np.ndarray,
    slack: np.ndarray | float,
    indices: np.ndarray,
    certified: Callable[[int], np.ndarray],
) -> None:
    """Fail unless neighbours are the nearest by distances without any doubt, ties by index.

    Only rows are looked at in which another one is as near as a neighbour within `slack`, and of
    many some. `certified` gives the distances of a row as the package compares them, bit by bit.
    """
    if not rows.size:
        return
    known, chosen = np.isfinite(rows), np.zeros(rows.shape, bool)
    away = np.where(known, rows, 0.0)
    slack = np.broadcast_to(slack, rows.shape) + RELATIVE * away
    there = indices >= 0
    chosen[np.nonzero(there)[0], indices[there]] = True
    farthest = np.where(chosen, away + slack, -np.inf).max(axis=1)
    rivals = known & ~chosen & (away - slack <= farthest[:, None])
    places = np.flatnonzero(rivals.any(axis=1))
    for i in places[:: 1 + len(places) // LOOKED_AT]:
        row = np.where(known[i], certified(i), np.inf)
        count = int(there[i].sum())
        wanted = np.argsort(row, kind="stable")[:count]
        check(
            (indices[i, :count] == wanted).all(),
            f"{name}: not the first of equals",
            lambda i=i, row=row, wanted=wanted: (
                f"{indices[i]} at {row[indices[i]]} of {i}, not {wanted} at {row[wanted]}"
            ),
        )


def copies_in_order(
    name: str, series: Sequence[np.ndarray], indices: np.ndarray, *, within: bool = False
) -> None:
    """Fail where a neighbour was taken before an earlier series that is equal to it.

    With `within` the rows are the series, none of which is a neighbour of itself.
    """
    earlier: list[list[int]] = []
    known: dict[tuple[tuple[int, ...], bytes], list[int]] = {}
    for number, one in enumerate(series):
        equal = known.setdefault((one.shape, (one + 0.0).tobytes()), [])
        earlier.append(equal.copy())
        equal.append(number)
    for i, row in enumerate(np.asarray(indices).tolist()):
        for rank, chosen in enumerate(row):
            missing = set(earlier[chosen]) - set(row[:rank]) - ({i} if within else set())
            check(not missing, f"{name}: a copy comes first", f"{chosen} of {row}, not {missing}")


def sole(row: np.ndarray, slack: np.ndarray | float) -> int | None:
    """The index of the least value where no other can be as small, else None."""
    if not np.isfinite(row).any():
        return None
    best = int(np.argmin(row))
    slack = np.broadcast_to(slack, row.shape) + RELATIVE * np.where(np.isfinite(row), row, 0)
    rivals = row - slack <= row[best] + slack[best]
    return best if rivals.sum() == 1 else None
