"""Candidates on the CPU: which of them could be the best."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from ...host import kernel
from .._borrowed import borrowed
from .order_lines import OrderLine, Scratch, make_scratch, promise
from .variance_lines import promise_of_variance

__all__ = ["JudgedRows", "Distances", "Found", "Literals", "scan"]


class Distances(NamedTuple):
    """Distances of the candidates of some series to all, for one length and channel.

    Attributes
    ----------
    squares : ndarray of shape (n_block, n_windows, n_series)
        Squared distances.
    weights : ndarray of shape (n_block, n_windows)
        Weights of the candidates.
    errors : ndarray of shape (n_block, n_series)
        Largest errors of squared distances, by the weight of the candidate.
    floor : float
        To be added to that.
    exact : ndarray of shape (n_block, n_windows), bool
        Candidates whose distances are exact.
    flat : ndarray of shape (n_series,), bool
        Series with a constant window: squares of 1 are exact there.
    unit : float
        Divisor of distances before they are squared: 1 for normalised windows.
    """

    squares: np.ndarray
    weights: np.ndarray
    errors: np.ndarray
    floor: float
    exact: np.ndarray
    flat: np.ndarray
    unit: float


class JudgedRows(NamedTuple):
    """Which of some distances are judged.

    Attributes
    ----------
    rows, counts : ndarray of shape (n_rows,)
        Which rows of the block to judge, and the windows of each.
    members : ndarray of shape (n_members,)
        Columns of `Distances.squares` that belong to the node.
    owns : ndarray of shape (n_rows,)
        The series of each row, as one of the members.
    """

    rows: np.ndarray
    counts: np.ndarray
    members: np.ndarray
    owns: np.ndarray


class Literals(NamedTuple):
    """The literals that the node has, and how a candidate may join them.

    Attributes
    ----------
    squares : ndarray of shape (n_members,)
        Squares of their joined distances.
    ways : ndarray of int
        0 the candidate alone, 1 and, 2 or.
    """

    squares: np.ndarray
    ways: np.ndarray


class Found(NamedTuple):
    """A list of candidates that could be the best: bounds, and (row, start, way) of each."""

    gains: np.ndarray
    gaps: np.ndarray
    where: np.ndarray


class Memory(NamedTuple):
    """Memory that every candidate uses again.

    Attributes
    ----------
    plain, off, squares : ndarray of shape (n_members,)
        Squared distances, their largest errors, and squared distances joined with literals.
    plainly, sure : ndarray of shape (n_members,), bool
        Which of them are exact: those of the candidate, and joined ones.
    worst : ndarray of shape (n_rows,)
        The largest error of each row, by the weight of the candidate.
    scratch : Scratch
        For order lines.
    """

    plain: np.ndarray
    off: np.ndarray
    squares: np.ndarray
    plainly: np.ndarray
    sure: np.ndarray
    worst: np.ndarray
    scratch: Scratch


@kernel
def scan(distances, candidates, tables, targets, literals, best, found, offset, cancel):
    """Judge the candidates of a block; write those that could be the best.

    Parameters
    ----------
    distances : Distances
        Of all candidates of the block.
    candidates : JudgedRows
        Which of them are judged.
    tables : Tables or None
        How cuts are judged by classes; None where `targets` are given.
    targets : VarianceTables or None
        How they are judged by targets. The compiler leaves out what is for an argument of None,
        and makes a program for each of the two; so these are two arguments, and all are nine.
    literals : Literals
        Those of the node.
    best : tuple of (int, float)
        A gain and gap that the best one reaches for certain.
    found : Found
        Written.
    offset : tuple of int
        Row and start at which to begin.
    cancel : ndarray of shape (1,), uint8
        Turns 1 to stop early.

    Returns
    -------
    row, start : int
        Where to go on; the list was full before the end.
    count : int
        Entries on the list.
    best : tuple
        As given, raised.
    """
    n, n_classes = candidates.members.size, 1
    if tables is not None:
        n_classes = tables.weights.size
    memory = Memory(
        np.empty(n), np.empty(n), np.empty(n), np.empty(n, np.bool_), np.empty(n, np.bool_),
        np.zeros(candidates.rows.size), make_scratch(n, n_classes),
    )  # fmt: skip
    return _judge(
        distances, candidates, tables, targets, literals, best, found, offset, cancel, memory
    )


@kernel
def _judge(distances, candidates, tables, targets, literals, best, found, offset, cancel, memory):
    """Judge candidates as `scan`, which makes the memory for it.

    One function of some 60 lines with ten arguments: reading distances and joining them with those
    before are loops over the members, and apart from here, where the compiler does not know that
    their arrays are distinct, these took twice as long. It counts no references: see `borrowed`.
    """
    gain_best, gap_best = best
    squares_of, weights, errors, floor, exact, flat, _ = borrowed(distances)
    rows, counts, members, owns = borrowed(candidates)
    before, ways = borrowed(literals)
    gains, gaps, where = borrowed(found)
    plain, off, squares, plainly, sure, worst, scratch = borrowed(memory)
    count, n = 0, members.size
    for a in range(rows.size):
        for k in range(n):
            worst[a] = max(worst[a], errors[rows[a], members[k]])
    for a in range(offset[0], rows.size):
        row = rows[a]
        for i in range(offset[1] if a == offset[0] else 0, counts[a]):
            if cancel[0] or count + ways.size > gains.size:
                return a, i, count, (gain_best, gap_best)
            error, certain = worst[a] * weights[row, i] + floor, exact[row, i]
            for k in range(n):
                plain[k] = squares_of[row, i, members[k]]
                off[k] = errors[row, members[k]] * weights[row, i] + floor
                one = plain[k] == 1.0 and off[k] < 1e-9 and flat[members[k]]
                plainly[k] = certain or one
            plainly[owns[a]] = True
            for way in range(ways.size):
                changed = ways[way] == 0
                if ways[way] == 0:
                    for k in range(n):
                        squares[k], sure[k] = plain[k], plainly[k]
                else:
                    sign = 1.0 if ways[way] == 1 else -1.0
                    for k in range(n):
                        # how far this distance is beyond the one before, in the way that counts
                        ahead = sign * (plain[k] - before[k])
                        squares[k] = plain[k] if ahead > 0 else before[k]
                        sure[k] = ahead < -off[k] or plainly[k]
                        changed = changed or ahead > (-off[k] if not plainly[k] else 0.0)
                if not changed:
                    continue
                line = OrderLine(squares, sure, off, error)
                if tables is not None:
                    gain, gap, reached = promise(line, borrowed(tables), gain_best, scratch)
                if targets is not None:
                    gain, gap, reached = promise_of_variance(
                        line, borrowed(targets), gain_best, scratch
                    )
                if gain < 0 or gain < gain_best or (gain == gain_best and gap < gap_best):
                    continue
                gains[count], gaps[count] = gain, gap
                where[count, 0], where[count, 1], where[count, 2] = a, i, way
                count += 1
                if reached > -np.inf and (
                    gain > gain_best or (gain == gain_best and reached > gap_best)
                ):
                    gain_best, gap_best = gain, reached
    return rows.size, 0, count, (gain_best, gap_best)
