"""Bytes that tiles are said to take grow with what they hold."""

from __future__ import annotations

import numpy as np
import pytest

from skts.engines import (
    ConcatenatedSeries,
    DTWMatrix,
    DTWNeighbors,
    Join,
    RotationNeighbors,
    Series,
    Warping,
    find_engine,
)


def series(n, length):
    """Series that take no memory."""
    return Series(np.broadcast_to(0.0, (n, 1, length)), np.broadcast_to(length, n))


@pytest.mark.parametrize("rows_cols", [(3, 400), (100, 100)])
@pytest.mark.parametrize(
    "kind",
    [
        DTWMatrix,
        lambda a, b: DTWNeighbors(a, b, 2),
        lambda a, b: RotationNeighbors(a, b, 2),
        lambda a, b: RotationNeighbors(a, b, 2, warping=Warping(window=0)),
    ],
    ids=["matrix", "neighbors", "warped rotation", "rotation"],
)
def test_with_rows_columns_and_points(fast_engine, kind, rows_cols):
    engine = find_engine(fast_engine)

    def size(length, rows, cols):
        work = kind(series(1000, length), series(1000, length))
        return sum(engine.footprint(work, rows, cols))

    rows, cols = rows_cols
    sizes = [size(length, rows, cols) for length in (100, 200, 400, 800)]
    assert sorted(set(sizes)) == sizes
    for length in (50, 400):
        base = size(length, rows, cols)
        assert base < size(length, 2 * rows, 2 * cols)
        assert base <= size(length, 2 * rows, cols)
        assert base <= size(length, rows, 2 * cols)


def test_two_lines_take_more_than_one(fast_engine):
    engine = find_engine(fast_engine)
    a, b = (ConcatenatedSeries.of([np.zeros(n)]) for n in (2000, 3_000_000))
    one, two = (sum(engine.footprint(Join(a, other, 20), 1000, 1000)) for other in (None, b))
    # statistics, steps and a mean of every window, in float64
    assert two - one > 8 * 8 * 3_000_000
