"""Cell policies: all that they may depend on, in kernels that take any, against plain loops."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np
import pytest
from numpy.testing import assert_array_equal

from skts.engines import (
    DTWMatrix,
    DTWNeighbors,
    DTWPairs,
    DTWPath,
    RotationNeighbors,
    SubsequenceNeighbors,
    Warping,
    engine_names,
    find_engine,
    run,
)
from skts.engines.families.search.subsequence import LongSeries
from skts.engines.numba import Cell, cell_of
from skts.engines.numba.elastic import cells, certified, dtw, warping_path

GO_ON = np.zeros(1, np.uint8)
#: By the distance from the diagonal.
WEIGHTS = np.arange(1.0, 400.0) % 7


@dataclass(frozen=True)
class Odd(Warping):
    """Steps that depend on the points, those before them and the place; borders on the points."""

    metric: str = "odd"
    cost: str = "absolute"
    metrics: ClassVar[tuple[str, ...]] = ("odd",)


@dataclass(frozen=True)
class Inside(Odd):
    """The same without borders."""


@dataclass(frozen=True)
class OddCell(Cell):
    uneven: ClassVar[bool] = True
    borders: ClassVar[bool] = True

    weights: np.ndarray
    gap: float

    def match(self, x, y, x_before, y_before):
        return (x - y) ** 2 + self.weights[0] * abs(x_before - y_before)

    def down(self, x, x_before, y):
        return abs(x - x_before) + abs(y - self.gap)

    def right(self, y, y_before, x):
        return 2.0 * abs(y - y_before) + abs(x - self.gap)

    def steps(self, match, down, right, offset):
        return self.weights[abs(offset)] * match, down + (3.0 if offset > 0 else 0.0), right


@dataclass(frozen=True)
class InsideCell(OddCell):
    borders: ClassVar[bool] = False


cell_of.register(Odd, lambda distance: OddCell(WEIGHTS, 2.0))
cell_of.register(Inside, lambda distance: InsideCell(WEIGHTS, 2.0))


def step_costs(x, y, i, j):
    """Of the definition above, all channels: diagonally, down, to the right into cell (i, j)."""
    p, q = x[:, i], y[:, j]
    p_before = x[:, i - 1] if i else 0 * p
    q_before = y[:, j - 1] if j else 0 * q
    across = (p - q) ** 2 + WEIGHTS[0] * abs(p_before - q_before)
    down = abs(p - p_before) + abs(q - 2)
    right = 2 * abs(q - q_before) + abs(p - 2)
    return WEIGHTS[abs(i - j)] * across.sum(), down.sum() + (3 if j > i else 0), right.sum()


def accumulate(x, y, *, radius, alignment, borders=True):
    """All cells, with one row and one column in front; integers, which add up exactly."""
    n, m = x.shape[1], y.shape[1]
    D = np.full((n + 1, m + 1), np.inf)
    D[0, 0] = 0
    if borders:
        up, left = (
            (scale * abs(side) + 2).sum(axis=0).cumsum() for scale, side in ((1, x), (2, y))
        )
        D[1:, 0] = np.where(np.arange(1, n + 1) <= radius, up, np.inf)
        D[0, 1:] = np.where(np.arange(1, m + 1) <= radius, left, np.inf)
    if alignment == "subsequence":
        D[0] = 0
    if alignment == "supersequence":
        D[:, 0] = 0
    for i, j in np.ndindex(n, m):
        if abs(i - j) <= radius:
            across, down, right = step_costs(x, y, i, j)
            D[i + 1, j + 1] = min(D[i, j] + across, D[i, j + 1] + down, D[i + 1, j] + right)
    return D


def distance(x, y, warping):
    n, m = x.shape[1], y.shape[1]
    D = accumulate(x, y, radius=int(warping.radius(n, m)), alignment=warping.alignment)
    if warping.alignment == "subsequence":
        return D[n, 1:].min()
    return D[1:, m].min() if warping.alignment == "supersequence" else D[n, m]


OPTIONS = [
    {},
    {"window": 0},
    {"window": 3},
    {"alignment": "subsequence"},
    {"alignment": "supersequence"},
]


@pytest.mark.compiles
@pytest.mark.cases
@pytest.mark.parametrize("options", OPTIONS, ids=str)
@pytest.mark.parametrize("channels", [1, 3])
def test_lanes_and_certificate_know_every_kind_of_step(rng, channels, options):
    """Lanes of different lengths in one strip and in two, pairs alone and side by side."""
    warping = Odd(**options)
    lengths, other = np.array([1, 4, 4, 4, 9, 70]), np.array([1, 2, 4, 7, 9, 66, 70])
    for longest in (9, 70):
        x = rng.integers(0, 5, (6, channels, longest)).astype(float)
        y = rng.integers(0, 5, (7, channels, longest)).astype(float)
        n, m = np.minimum(lengths, longest), np.minimum(other, longest)
        expected = np.array(
            [[distance(a[:, :i], b[:, :j], warping) for b, j in zip(y, m, strict=True)]
             for a, i in zip(x, n, strict=True)]
        )  # fmt: skip
        packed, packed_lengths = dtw.pack(y, m, dtw.LANES[np.float64])
        found = dtw.block(x, n, packed, packed_lengths, warping, GO_ON)[:, :7]
        assert_array_equal(found, expected)
        i, j = np.indices((6, 7)).reshape(2, -1)
        found = certified.pairs(x[i], n[i], y[j], m[j], warping, GO_ON)
        assert_array_equal(found, expected.ravel())
        order = np.lexsort((m[j], n[i]))
        found = certified.pairs(*(a[order] for a in (x[i], n[i], y[j], m[j])), warping, GO_ON)
        assert_array_equal(found, expected.ravel()[order])


@pytest.mark.compiles
@pytest.mark.cases
@pytest.mark.parametrize("options", OPTIONS, ids=str)
def test_the_path_is_one_of_the_least_cost(rng, options):
    warping = Inside(**options)
    for n, m in ((1, 1), (1, 6), (6, 1), (9, 9), (20, 23), (23, 20)):
        x, y = (rng.integers(0, 5, (2, size)).astype(float) for size in (n, m))
        radius = int(warping.radius(n, m))
        D = accumulate(x, y, radius=radius, alignment=warping.alignment, borders=False)
        path, cost = warping_path.path(x, y, warping, GO_ON)
        ends = {"subsequence": D[n, 1:], "supersequence": D[1:, m]}
        assert cost == ends.get(warping.alignment, D[n, m]).min()
        along = 0.0
        for (a, b), (i, j) in zip([(None, None), *path[:-1]], path, strict=True):
            if a is None:
                # by the diagonal from the corner, or from a free border by the cheaper step
                assert 0 in (i, j)
                free = {"subsequence": (0, 1), "supersequence": (0, 2)}
                steps = step_costs(x, y, i, j)
                along += min(steps[step] for step in free.get(warping.alignment, (0,)))
            else:
                along += step_costs(x, y, i, j)[[(1, 1), (1, 0), (0, 1)].index((i - a, j - b))]
        assert along == cost


def test_dtw_and_dog_keeper_are_policies_in_plain_python():
    expected = {
        ("dtw", "squared"): (cells.SquaredDTW, 4.0, 7.0),
        ("dtw", "absolute"): (cells.AbsoluteDTW, 2.0, 5.0),
        ("dog_keeper", "squared"): (cells.SquaredDogKeeper, 4.0, 4.0),
        ("dog_keeper", "absolute"): (cells.AbsoluteDogKeeper, 2.0, 3.0),
    }
    for (metric, cost), (kind, term, joined) in expected.items():
        cell = cell_of(Warping(metric, cost))
        assert type(cell) is kind
        assert not cell.uneven
        assert cell.term(1.0, 3.0) == term
        assert cell.join(cell.term(1.0, 3.0), 3.0) == joined
        assert cell_of(Warping(metric, cost, 3)) is cell


@dataclass(frozen=True)
class Unknown(Warping):
    """A distance that no engine has heard of."""

    metric: str = "unknown"
    metrics: ClassVar[tuple[str, ...]] = ("unknown",)


@pytest.mark.parametrize("engine", engine_names())
def test_every_engine_refuses_a_distance_that_it_does_not_know(engine, make_series):
    x, pairs = make_series(3, 9), np.zeros((1, 2), np.int64)
    for work in (
        DTWMatrix(x, x, Unknown()),
        DTWNeighbors(x, x, 1, warping=Unknown()),
        DTWPairs(x, x, pairs, Unknown()),
        DTWPath(x.take(slice(0, 1)), x.take(slice(1, 2)), Unknown()),
    ):
        reason = find_engine(engine).supports(work)
        assert engine in reason
        assert "Unknown" in reason


def test_searches_that_hold_for_dtw_alone_refuse_other_distances(make_series):
    x = make_series(3, 9)
    with pytest.raises(ValueError, match="does not go with metric='unknown'"):
        RotationNeighbors(x, x, 1, warping=Unknown())
    with pytest.raises(ValueError, match="not searched under metric='unknown'"):
        SubsequenceNeighbors((np.zeros(3),), LongSeries((np.zeros(9),)), Unknown())


def test_a_search_without_a_bound_of_its_error_is_in_float64(rng, make_series):
    """Neighbours under a distance from outside, whatever precision is asked for."""
    x, y = make_series(4, 9), make_series(70, 9)
    expected = run(DTWMatrix(x, y, Odd()), engine="numba")
    for precision in ("auto", "float32", "float64"):
        work = DTWNeighbors(x, y, 3, precision=precision, warping=Odd())
        assert not work.single
        found = run(work, engine="numba")
        order = np.argsort(expected, axis=1, kind="stable")[:, :3]
        assert_array_equal(found.indices, order)
        assert_array_equal(found.distances, np.take_along_axis(expected, order, axis=1))
