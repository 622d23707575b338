"""Bounds of what candidates gain, on the CPU: of all of them, by estimates of their distances."""

from __future__ import annotations

import numpy as np

from ...host import kernel
from .order_lines import OrderLine, make_scratch, promise

__all__ = ["bound"]


@kernel
def bound(distances, counts, owns, places, step, tables, gains, gaps, cancel):
    """Bound gain and gap of the candidates of some lines.

    Parameters
    ----------
    distances : Distances
        Of the windows of the lines to all series.
    counts, owns, places : ndarray of shape (n_lines,)
        Candidates of each line, its series, and where its first candidate is written.
    step : int
        How far apart the candidates of a line are written.
    tables : Tables
        How cuts are judged.
    gains, gaps : ndarray of shape (n_candidates,)
        Written.
    cancel : ndarray of shape (1,), uint8
        Turns 1 to stop early.
    """
    squares_of, weights, errors, floor, exact, flat, _ = distances
    n = flat.size
    squares, sure, off = np.empty(n), np.empty(n, np.bool_), np.empty(n)
    scratch = make_scratch(n, tables.weights.size)
    for a in range(counts.size):
        worst = 0.0
        for k in range(n):
            worst = max(worst, errors[a, k])
        for i in range(counts[a]):
            if cancel[0]:
                return
            weight, certain = weights[a, i], exact[a, i]
            for k in range(n):
                squares[k] = squares_of[a, i, k]
                off[k] = errors[a, k] * weight + floor
                sure[k] = certain or (squares[k] == 1.0 and off[k] < 1e-9 and flat[k])
            sure[owns[a]] = True
            line = OrderLine(squares, sure, off, worst * weight + floor)
            gain, gap, _ = promise(line, tables, np.int64(-(2**62)), scratch)
            at = places[a] + step * i
            gains[at], gaps[at] = max(gain, np.int64(0)), gap if gain >= 0 else -np.inf
