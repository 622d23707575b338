"""One example or more of every reduction, for tests of what holds for all of them.

Each is larger than a cell of its grid where it has several, so that it can be cut.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import fields, is_dataclass
from typing import Any, NamedTuple

import numpy as np

from skts.engines import (
    AlignmentSums,
    BestShapelets,
    ChannelJoin,
    ChannelRule,
    ConcatenatedSeries,
    Criterion,
    DilatedShapelets,
    DistanceQuantiles,
    DTWMatrix,
    DTWNeighbors,
    DTWPairs,
    DTWPath,
    DTWRadiusNeighbors,
    DTWWindowSearch,
    GroupMatches,
    Groups,
    GroupSplits,
    GrowthJoin,
    Join,
    Kind,
    LongSeries,
    MotifPair,
    Reduction,
    RotationNeighbors,
    RotationRadiusNeighbors,
    SBDAssign,
    SBDCenters,
    SBDMatrix,
    Series,
    ShapeletFeatures,
    ShapeletSearch,
    Shapes,
    SoftDTWGradient,
    SoftDTWMatrix,
    SpacedChannels,
    SpacedNeighbors,
    SplitRules,
    SubgradientSteps,
    SubsequenceMatches,
    SubsequenceNeighbors,
    TimedJoin,
    Warping,
    WindowDistances,
    WindowKinds,
)
from skts.engines.families.elastic.distances import ShapeDTW
from skts.engines.families.profile.mk import PairWalk
from tests.discovery import Examples, reductions

__all__ = ["Example", "examples", "leaves", "reductions", "small_examples"]


class Example(NamedTuple):
    """Some work, and what of its result is the answer; the rest may count how it was found."""

    work: Reduction
    answer: Callable[[Any], Any] = lambda result: result


def leaves(answer: Any) -> list[Any]:
    """Arrays and plain values of an answer, in order."""
    if isinstance(answer, tuple | list):
        return [type(answer).__name__, *(leaf for part in answer for leaf in leaves(part))]
    if is_dataclass(answer):
        return leaves(tuple(getattr(answer, field.name) for field in fields(answer)))
    if isinstance(answer, np.ndarray):
        return [(answer.dtype.str, answer.shape, answer.tobytes())]
    return [answer]


def examples() -> dict[type[Reduction], list[Example]]:
    """Examples of every reduction, built anew; drawn with a fixed seed."""
    rng = np.random.default_rng(20261121)

    def series(n: int, width: int, n_channels: int = 1, shortest: int | None = None) -> Series:
        values = rng.normal(size=(n, n_channels, width)).cumsum(axis=2)
        lengths = rng.integers(shortest or width, width + 1, n)
        lengths[0] = width
        values[np.broadcast_to(np.arange(width) >= lengths[:, None, None], values.shape)] = 0
        return Series(values, lengths).freeze()

    def recording(n: int) -> np.ndarray:
        x = rng.normal(size=n).cumsum()
        x[n // 3] = np.nan
        x[n // 2 : n // 2 + 60] = 1.0
        return x

    queries, candidates = series(40, 60), series(300, 60)
    ragged = series(90, 50, 2, 20)
    pairs = np.column_stack([np.arange(700) % 40, np.arange(700) * 31 % 300])
    line, both = (
        ConcatenatedSeries.of([recording(3000)]),
        ConcatenatedSeries.of([recording(1500), recording(900)]),
    )
    # two cells, with a gap and a constant stretch
    two_cells = ConcatenatedSeries.of([line.points[800:2100]])
    long = LongSeries((recording(9000), recording(5000)))
    wanted = tuple(rng.normal(size=n).cumsum() for n in (30, 42, 30))
    long_both = LongSeries((np.stack([recording(4000), recording(4000)]),))
    wanted_both = tuple(rng.normal(size=(2, n)).cumsum(axis=1) for n in (30, 42))
    shapes = Shapes.normalized(series(300, 64))
    centers = Shapes.normalized(series(5, 64))
    labels, shifts = (rng.integers(*ends, 300).astype(np.int32) for ends in ((0, 5), (-4, 5)))
    classes = rng.integers(0, 3, 24)
    criterion = Criterion(classes, np.ones(3))
    channels = [two_cells]
    channels += [ConcatenatedSeries.of([recording(3000)[800:2100]]) for _ in range(2)]
    others = [ConcatenatedSeries.of([recording(1200)]) for _ in range(3)]
    nearest, farthest = ChannelRule((1, 2, 3)), ChannelRule((2,), (1,), worst=True)
    # windows before the first gap
    dilated = _dilated(rng, 600, (5, 9), (1, 4, 11))
    partners, ranks = rng.integers(0, 300, 600), rng.integers(0, 40, 600)
    walked = _walk(line, rng, 40, 10, rng.choice(950, 600, replace=False))
    groups, gone = rng.integers(0, 5, 300), rng.integers(0, 3, 90)
    kinds = Kind(5, 1, True), Kind(5, 4, True), Kind(3, 2, False), Kind(9, 1, True)
    found = [
        Example(ChannelJoin.of(channels, None, 40, nearest, exclusion=10)),
        Example(ChannelJoin.of(channels, None, 30, farthest, exclusion=10, sides=True)),
        Example(ChannelJoin.of(channels, others, 25, nearest, normalize=False)),
        Example(BestShapelets(series(24, 40, 2), kinds, criterion, 12, 6)),
        Example(DistanceQuantiles(dilated, candidates, partners, ranks % 15)),
        Example(AlignmentSums(candidates, queries.take(slice(5)), groups, rng.random(300))),
        Example(
            AlignmentSums(ragged, ragged.take(slice(3)), gone, np.ones(90), Warping(window=0.2))
        ),
        Example(AlignmentSums(ragged, ragged.take(slice(3)), gone, np.ones(90), ShapeDTW(reach=2))),
        Example(
            SubgradientSteps(
                ragged,
                ragged.take(slice(1)),
                rng.permutation(90),
                0.5 + rng.random(90),
                np.full(30, 0.02),
                3,
                Warping(window=0.2),
            )
        ),
        Example(SoftDTWMatrix(queries, candidates, 0.5)),
        Example(SoftDTWGradient(ragged, ragged.take(slice(1)), rng.random(90), 2.0)),
        Example(DTWMatrix(queries, candidates)),
        Example(DTWMatrix(ragged, ragged, Warping(window=7, cost="absolute"))),
        Example(DTWPairs(queries, candidates, pairs)),
        Example(DTWNeighbors(queries, candidates, 3)),
        Example(DTWNeighbors(candidates, candidates, 2, np.arange(300), "float64")),
        Example(DTWNeighbors(ragged, ragged, 1, np.arange(90), warping=Warping(window=0.2))),
        Example(DTWPath(queries.take(slice(0, 1)), candidates.take(slice(0, 1)))),
        Example(DTWRadiusNeighbors(queries, candidates, 26.0)),
        Example(DTWRadiusNeighbors(candidates, candidates, 26.0, np.arange(300), "float64")),
        Example(
            DTWRadiusNeighbors(
                *(ragged, ragged, 40.0, np.arange(90), "auto", Warping(window=0.2)),
                distances=False,
            )
        ),
        Example(DTWWindowSearch(queries, candidates, np.full(40, -1), np.array([9, 4, 0]))),
        Example(GroupMatches(_groups(series(24, 40, 2, 30), rng, 12, 5))),
        Example(_splits(_groups(series(24, 40), rng, 12, 5), rng)),
        Example(Join(line, None, 40, 10)),
        Example(Join(line, None, 40, 10, n_neighbors=2, sides=True)),
        Example(Join(both, line, 25, normalize=False)),
        Example(MotifPair(line, 40, 10), lambda result: result._replace(pruned=0.0)),
        # the pairs that were measured depend on which tile came first
        Example(walked, lambda result: result[0]),
        Example(RotationNeighbors(queries.take(slice(5)), series(1100, 60), 2)),
        Example(RotationNeighbors(series(6, 20), series(2100, 20), 1, warping=Warping(window=0))),
        Example(RotationRadiusNeighbors(queries.take(slice(5)), series(1100, 60), 16.0)),
        Example(SBDAssign(shapes, centers)),
        Example(SBDCenters(shapes, labels, shifts, 5)),
        # too many members to write them down
        Example(SBDCenters(shapes, labels // 4, shifts, 2)),
        Example(SBDMatrix(shapes, centers)),
        Example(ShapeletFeatures(dilated, candidates, rng.random(600))),
        Example(ShapeletFeatures(dilated, candidates, rng.random(600), ("start",))),
        Example(ShapeletSearch(series(24, 40), np.arange(24), (5, 9, 17), criterion)),
        Example(SpacedChannels.of(channels, others, 30, ChannelRule((2,), worst=True), n_spaced=2)),
        Example(SpacedNeighbors(two_cells, None, 40, 39, n_spaced=3)),
        Example(SpacedNeighbors(two_cells, None, 40, 39, n_spaced=2, left=True)),
        Example(SpacedNeighbors(both, two_cells, 25, 24, normalize=False, n_spaced=2)),
        Example(GrowthJoin(line, None, 40, 10, n_neighbors=2, since=2500)),
        Example(TimedJoin(line, None, 40, 10, seconds=1e9)),
        Example(SubsequenceMatches(wanted, candidates)),
        Example(SubsequenceNeighbors(wanted, long, Warping(window=0.1), n_neighbors=3)),
        Example(SubsequenceNeighbors(wanted, long, n_neighbors=None, radius=4.0)),
        Example(SubsequenceNeighbors(wanted_both, long_both, Warping(window=0.1), n_neighbors=3)),
        Example(WindowDistances(line, np.arange(0, 2900, 300), both, 40)),
        Example(WindowKinds(line, 40)),
    ]
    table: dict[type[Reduction], list[Example]] = {}
    for example in found:
        table.setdefault(type(example.work), []).append(example)
    return Examples(table, "`examples` of tests/examples_of_work.py")


def small_examples() -> dict[type[Reduction], list[Example]]:
    """Examples that plain loops get through, too."""
    rng = np.random.default_rng(5)

    def series(n: int, width: int, n_channels: int = 1) -> Series:
        return Series(rng.normal(size=(n, n_channels, width)).cumsum(axis=2), np.full(n, width))

    queries, candidates = series(3, 9), series(5, 9)
    one, other = queries.take(slice(0, 1)), candidates.take(slice(0, 1))
    lengths = np.array([9, 4, 7, 1, 6])
    uneven = Series(candidates.values * (np.arange(9) < lengths[:, None, None]), lengths)
    points = rng.normal(size=60).cumsum()
    points[20] = np.nan
    line = ConcatenatedSeries.of([points])
    wanted = tuple(rng.normal(size=n).cumsum() for n in (4, 6))
    shapes, centers = Shapes.normalized(series(6, 9)), Shapes.normalized(series(2, 9))
    labels, shifts = np.arange(6, dtype=np.int32) % 2, np.zeros(6, np.int32)
    criterion = Criterion(np.arange(6) % 2, np.ones(2))
    pairs = np.array([[0, 4], [2, 1], [1, 1]])
    channels = [line, ConcatenatedSeries.of([rng.normal(size=60)])]
    dilated = _dilated(rng, 8, (2, 3), (1, 4, 9))
    partners, ranks = rng.integers(0, 5, 8), np.zeros(8, np.int64)
    kinds = Kind(3, 1, True), Kind(4, 3, True), Kind(2, 1, False)
    found = [
        Example(ChannelJoin.of(channels, None, 8, ChannelRule((1, 2)), exclusion=2, sides=True)),
        Example(AlignmentSums(candidates, queries, np.array([2, 0, 0, 2, 1]), np.ones(5))),
        Example(BestShapelets(series(6, 12), kinds, criterion, 4, 3)),
        Example(DistanceQuantiles(dilated, candidates, partners, ranks)),
        Example(
            SubgradientSteps(
                candidates,
                queries.take(slice(1)),
                np.array([2, 0, 4, 1, 3]),
                np.ones(5),
                np.array([0.05, 0.02, 0.01]),
                2,
            )
        ),
        Example(SoftDTWMatrix(queries, candidates, 1.0, Warping(window=2))),
        Example(SoftDTWGradient(candidates, queries.take(slice(1)), np.ones(5), 1.0)),
        Example(DTWMatrix(queries, candidates, Warping("dog_keeper", "absolute"))),
        Example(DTWMatrix(queries, candidates, Warping(window=2))),
        Example(DTWPairs(queries, candidates, pairs)),
        Example(DTWNeighbors(queries, candidates, 2, np.array([1, -1, 9]))),
        Example(DTWPath(one, other, Warping(alignment="subsequence"))),
        Example(DTWRadiusNeighbors(queries, candidates, 4.0, np.array([1, -1, 9]))),
        Example(DTWRadiusNeighbors(queries, candidates, 4.0, distances=False)),
        Example(DTWWindowSearch(queries, candidates, np.full(3, -1), np.array([4, 1, 0]))),
        Example(GroupMatches(_groups(series(6, 12), rng, 3, 2))),
        Example(_splits(_groups(series(6, 12), rng, 3, 2), rng)),
        Example(Join(line, None, 8, 2, n_neighbors=2, sides=True)),
        Example(MotifPair(line, 8, 2), lambda result: result._replace(pruned=0.0)),
        Example(_walk(line, rng, 8, 2, np.arange(21, 50)), lambda result: result[0]),
        Example(RotationNeighbors(queries, candidates, 2)),
        Example(RotationNeighbors(queries, uneven, 2, warping=Warping(window=1))),
        Example(RotationRadiusNeighbors(queries, candidates, 4.0)),
        Example(SBDAssign(shapes, centers)),
        # their errors are those of an engine, None where there are none
        Example(SBDCenters(shapes, labels, shifts, 2), lambda result: result.values),
        Example(SBDMatrix(shapes, centers)),
        Example(ShapeletFeatures(dilated, candidates, rng.random(8))),
        Example(ShapeletSearch(series(6, 12), np.arange(6), (3, 5), criterion)),
        Example(SpacedChannels.of(channels, None, 8, ChannelRule((1,)), exclusion=7, n_spaced=2)),
        Example(SpacedNeighbors(line, None, 8, 7, n_spaced=2)),
        Example(GrowthJoin(line, None, 8, 2, n_neighbors=2, sides=True, since=40)),
        Example(TimedJoin(line, None, 8, 2, n_neighbors=2, sides=True, seconds=1e9)),
        Example(SubsequenceMatches(wanted, candidates)),
        Example(SubsequenceNeighbors(wanted, LongSeries((points,)), n_neighbors=3)),
        Example(WindowDistances(line, np.arange(0, 50, 7), line, 8)),
        Example(WindowKinds(line, 8)),
    ]
    table: dict[type[Reduction], list[Example]] = {}
    for example in found:
        table.setdefault(type(example.work), []).append(example)
    return Examples(table, "`small_examples` of tests/examples_of_work.py")


def _dilated(
    rng: np.random.Generator, count: int, lengths: tuple[int, ...], dilations: tuple[int, ...]
) -> DilatedShapelets:
    """Shapelets of any points, in runs of those that share their windows."""
    normalized, length, dilation = (
        rng.random(count) < 0.7,
        *(rng.choice(some, count) for some in (lengths, dilations)),
    )
    order = np.lexsort((dilation, length, normalized))
    length, dilation = length[order], dilation[order]
    points = rng.normal(size=length.sum())
    return DilatedShapelets(
        points, length, dilation, np.zeros(count, np.int64), normalized[order] & (length > 2)
    )


def _groups(series: Series, rng: np.random.Generator, n_groups: int, n_candidates: int) -> Groups:
    """Candidates of random series, lengths and places, and most of the series for each group."""
    n = n_groups * n_candidates
    rows = rng.integers(0, len(series), n)
    lengths = rng.integers(2, series.lengths[rows] + 1)
    starts = rng.integers(0, series.lengths[rows] - lengths + 1)
    pieces = np.column_stack([rows, rng.integers(0, series.n_channels, n), starts, lengths])
    size = max(2, 2 * len(series) // 3)
    members = [np.sort(rng.permutation(len(series))[:size]) for _ in range(n_groups)]
    each = np.arange(n_groups + 1)
    return Groups(series, pieces, each * n_candidates, series, np.concatenate(members), each * size)


def _splits(groups: Groups, rng: np.random.Generator) -> GroupSplits:
    """The splits of some groups, whose members are there once or twice."""
    n = len(groups.members)
    rules = SplitRules(
        *(rng.integers(0, 3, n), rng.integers(1, 3, n), 1, np.zeros(len(groups))),
        ways=("and", "or"),
        max_literals=2,
    )
    return GroupSplits(groups, rules)


def _walk(
    line: ConcatenatedSeries,
    rng: np.random.Generator,
    length: int,
    exclusion: int,
    windows: np.ndarray,
) -> PairWalk:
    """A walk through windows without gaps in the order of distances to two of them."""
    places = np.sort(rng.permutation(windows)).astype(np.int64)
    points = np.array([line.points[place : place + length] for place in places])
    points = (points - points.mean(axis=1, keepdims=True)) / points.std(axis=1, keepdims=True)
    distances = np.linalg.norm(points[[3, len(points) // 2]][:, None] - points, axis=2)
    order = np.argsort(distances[0], kind="stable")
    scale = float(2.0 ** np.ceil(np.log2(distances.max())))
    gaps = np.ascontiguousarray((distances[:, order] / scale).astype(np.float32))
    best = (np.inf, -1, -1)
    options = line, length, exclusion, True, places[order], gaps, scale, best
    return PairWalk(*options, 1, len(places))
