"""Works of channels, lengths and options that others lack: planned and counted, never compared.

What a factor of an estimate is shows only where it is more than one: several channels, distances
and rows of each kind.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from itertools import product

import numpy as np

from skts.engines import (
    AlignmentSums,
    ChannelJoin,
    ChannelRule,
    ConcatenatedSeries,
    Criterion,
    DilatedShapelets,
    DTWMatrix,
    DTWNeighbors,
    DTWPairs,
    DTWPath,
    DTWRadiusNeighbors,
    DTWWindowSearch,
    Join,
    LongSeries,
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
    SubsequenceMatches,
    SubsequenceNeighbors,
    Warping,
    prepared,
)
from skts.engines.families.elastic.distances import (
    ADTW,
    EDR,
    ERP,
    LCSS,
    MSM,
    TWE,
    WDTW,
    ShapeDTW,
)
from skts.engines.families.shapelets.variance import VarianceCriterion

__all__ = ["counted_works", "middle_works", "planned_works"]

#: Series, points and channels of works of each kind; of soft ones, and how many more points others
#: have. Those that are planned are long.
PLANNED = (70, 45, 1), (40, 60, 3), (9, 2600, 2)
PLANNED_SOFTLY = (300, 20, 3, 9), (5, 900, 1, 9), (40, 2600, 2, 9)
COUNTED = (70, 45, 1), (20, 30, 3), (5, 300, 2)
COUNTED_SOFTLY = (40, 20, 3, 9), (5, 70, 1, 9), (3, 260, 2, 9)


def planned_works() -> list[Reduction]:
    """Works that are never done."""
    series, works = several_works()
    works += [*of_every_kind(series, PLANNED, PLANNED_SOFTLY), *of_long_lines(series)]
    return works


def counted_works() -> list[Reduction]:
    """Works that take some hundredths of a second each."""
    series, works = several_works()
    # a search of every window is one of series of one length
    works = [work for work in works if not isinstance(work, DTWWindowSearch)]
    works += [*of_every_kind(series, COUNTED, COUNTED_SOFTLY), *of_several_lengths(series)]
    return [*works, *of_every_criterion(series)]


def middle_works() -> list[Reduction]:
    """Works of which a kernel needs a second block, group or strip, small enough to be emulated.

    Channels are of different sizes, so that none could take another one's place.
    """
    rng = np.random.default_rng(17)

    def series(n: int, width: int, n_channels: int = 1) -> Series:
        values = rng.normal(size=(n, n_channels, width)).cumsum(axis=2)
        return Series(values * 4.0 ** np.arange(n_channels)[:, np.newaxis], np.full(n, width))

    def lines(n_points: int, n_channels: int) -> list[ConcatenatedSeries]:
        points = rng.normal(size=(n_channels, n_points)).cumsum(axis=1)
        points = points * 3.0 ** np.arange(n_channels)[:, np.newaxis] + 50
        return [ConcatenatedSeries.of([one]) for one in points]

    few, many = lines(160, 2), lines(150, 4)
    queries, candidates, long = series(3, 40, 2), series(37, 40, 2), series(2, 75, 2)
    none, count = np.full(3, -1), 35
    lengths, dilations = 3 + np.arange(count) % 2, 1 + np.arange(count) // 18
    shapelets = DilatedShapelets(
        rng.normal(size=int(lengths.sum())), lengths, dilations, 0 * lengths, lengths > 3
    )
    wanted = tuple(rng.normal(size=(2, n)).cumsum(axis=1) for n in (20, 33))
    return [
        ChannelJoin.of(few, None, 12, ChannelRule((1, 2)), exclusion=3, sides=True),
        ChannelJoin.of(many, None, 12, ChannelRule((1, 3), (2,)), exclusion=3),
        ChannelJoin.of(many, lines(90, 4), 12, ChannelRule((2,))),
        ChannelJoin.of(many, lines(90, 4), 12, ChannelRule((4,)), normalize=False),
        SpacedChannels.of(few, None, 12, ChannelRule((1,)), exclusion=11, n_spaced=2),
        SpacedNeighbors(few[1], None, 12, 11, n_spaced=3),
        RotationRadiusNeighbors(series(3, 20), series(40, 20), 6.0),
        ShapeletFeatures(shapelets, series(40, 30), rng.random(count)),
        SoftDTWMatrix(queries, long, 1.0),
        SoftDTWMatrix(long, candidates.take(slice(5)), 1.0, Warping(window=3)),
        SubsequenceNeighbors(wanted, LongSeries((rng.normal(size=(2, 300)),)), n_neighbors=3),
        DTWMatrix(queries, candidates, Warping(window=4)),
        DTWMatrix(queries, long, MSM()),
        DTWNeighbors(queries, candidates, 2, none, "auto", Warping(window=4)),
        DTWNeighbors(queries, candidates, 2, none, "float64"),
        *of_second_channels(series),
        *of_sizes_beside(series),
        *of_shapes_that_weigh(series),
        *of_long_queries(series),
    ]


def of_second_channels(series: Callable[..., Series]) -> Iterator[Reduction]:
    """Works in which something lies in the second channel, lane, group or way, and in no first."""
    rng = np.random.default_rng(18)
    some = series(35, 8, 2)
    labels, weights = rng.integers(0, 3, 35), 0.5 + rng.random(35)
    # the first channel tells nothing
    values = some.values.copy()
    values[:, 0] = rng.normal(size=8)
    values[labels == 1, 1, 2:6] += 9.0
    told, members, classes = Series(values, some.lengths), np.arange(35), np.array([1.0, 2.0, 0.5])
    yield ShapeletSearch(told, members, (5,), Criterion(labels, classes, 2))
    yield ShapeletSearch(
        *(told, members, (5,), Criterion(labels, classes, 2, 1.5, weights), rng.random(35)),
        ways=("and", "or"),
    )
    for gamma, warping in ((0.5, Warping()), (2.0, Warping(window=5))):
        long, average = series(3, 37, 2), series(1, 33, 2)
        yield SoftDTWGradient(long, average, 0.5 + np.arange(3), gamma, warping)
    yield SoftDTWGradient(series(2, 300, 2), series(1, 290, 2), np.array([1.0, 3.0]), 1.0)
    for warping in (Warping(), Warping(window=3), Warping(cost="absolute", window=1)):
        yield RotationNeighbors(series(3, 21, 2), series(35, 21, 2), 2, warping=warping)


def of_sizes_beside(series: Callable[..., Series]) -> Iterator[Reduction]:
    """Works one less, as many and one more than lanes, strips and blocks hold."""
    kinds = (Warping(), Warping("dog_keeper", "absolute"), ERP(gap=0.5), TWE(), LCSS(epsilon=0.5))
    for warping, (n_rows, n_cols) in product(kinds, ((33, 31), (31, 65), (128, 129))):
        yield DTWMatrix(series(2, n_rows), series(3, n_cols), warping)
    # bands that lanes share, and bands in the registers of one
    for window, width in product((1, 2, 31, 33, 70), (65, 130)):
        yield DTWMatrix(series(2, width), series(3, width), Warping(window=window))
    for n, n_channels in product((31, 32, 33), (1, 2)):
        yield DTWPath(series(1, n, n_channels), series(1, 65 - n, n_channels), Warping(window=9))


def of_shapes_that_weigh(series: Callable[..., Series]) -> Iterator[Reduction]:
    """Series of different sizes, long enough for each kind of kernel, in clusters of any size."""
    rng = np.random.default_rng(19)
    for width, n_channels in product((9, 31, 33, 70), (1, 2)):
        some = series(45, width, n_channels)
        sizes = 2.0 ** (np.arange(45) % 4)[:, np.newaxis, np.newaxis]
        shapes = Shapes.normalized(Series(some.values * sizes, some.lengths), normalize=False)
        few = Shapes.normalized(series(3, width, n_channels))
        labels = np.sort(rng.integers(0, 40, 45) // 13).astype(np.int32)
        shifts = rng.integers(-4, 5, 45).astype(np.int32)
        yield SBDAssign(shapes, few)
        yield SBDMatrix(shapes, few)
        if width == 33:
            yield SBDCenters(shapes, labels, shifts, 4)
            yield SBDCenters(shapes, labels, shifts, 4, centered=False)
        # one point each, which is as near to each of several others
        values = (rng.random(some.values.shape) < 0.2).astype(float)
        spikes = np.zeros_like(few.values)
        spikes[:, :, width // 2] = 1.0
        values[0] = 0.0
        yield SBDAssign(Shapes.of(values), Shapes.of(spikes))
        yield SBDMatrix(Shapes.of(values), Shapes.of(spikes))
        # no shift at which they are alike
        yield SBDMatrix(Shapes.of(0.5 + values), Shapes.of(-0.5 - spikes))


def of_long_queries(series: Callable[..., Series]) -> Iterator[Reduction]:
    """Queries whose points are loaded in turns, by halves of a tile and by whole ones."""
    for n, width, lengths in ((40, 128, (110, 110, 100)), (3, 300, (270, 280)), (300, 70, (64,))):
        many = series(n, width)
        queries = tuple(many.values[i, 0, 3 : 3 + length] for i, length in enumerate(lengths))
        yield SubsequenceMatches(queries, many)
        yield SubsequenceMatches(queries, many, normalize=False)


def several_works() -> tuple[Callable[..., Series], list[Reduction]]:
    """Return what draws series, and works of three channels, several lengths, many neighbours."""
    rng = np.random.default_rng(11)

    def series(n: int, width: int, n_channels: int, shortest: int | None = None) -> Series:
        values = rng.normal(size=(n, n_channels, width)).cumsum(axis=2)
        lengths = rng.integers(shortest or width, width + 1, n)
        lengths[0] = width
        values[np.broadcast_to(np.arange(width) >= lengths[:, None, None], values.shape)] = 0
        return Series(values, lengths).freeze()

    rows, cols, uneven = series(30, 45, 3), series(170, 75, 3), series(60, 200, 3, 30)
    one, other = rows.take(slice(1)), cols.take(slice(1))
    pairs = np.column_stack([np.arange(400) % 30, np.arange(400) % 170])
    own, none = np.arange(60), np.full(30, -1)
    each = MSM(window=5)
    line = ConcatenatedSeries.of([rng.normal(size=n).cumsum() for n in (700, 1100)])
    wide = [
        ConcatenatedSeries.of([rng.normal(size=n).cumsum() for n in (500, 800)]) for _ in range(5)
    ]
    rule = ChannelRule((2, 4))
    wanted = tuple(rng.normal(size=(3, n)).cumsum(axis=1) for n in (20, 33))
    long = LongSeries((rng.normal(size=(3, 900)), rng.normal(size=(3, 1600))))
    shapes, centers = Shapes.normalized(series(90, 50, 3)), Shapes.normalized(series(4, 50, 3))
    labels, shifts = rng.integers(0, 4, 90).astype(np.int32), np.zeros(90, np.int32)
    works: list[Reduction] = [
        *(DTWMatrix(rows, cols, way) for way in (Warping(), each, ERP(window=0.3))),
        *(DTWMatrix(one, cols, way) for way in (Warping(), each, ShapeDTW(reach=3))),
        *(DTWMatrix(uneven, uneven, way) for way in (Warping(window=0.1), each)),
        *(DTWPairs(rows, cols, pairs, way) for way in (Warping(), each)),
        *(DTWPath(one, other, way) for way in (Warping(window=4), ERP())),
        *(DTWNeighbors(rows, cols, k, none, warping=each) for k in (1, 20)),
        DTWNeighbors(uneven, uneven, 7, own, "float64", Warping(window=0.2)),
        DTWRadiusNeighbors(rows, cols, 9.0, none, "auto", each),
        DTWRadiusNeighbors(uneven, uneven, 9.0, own, distances=False),
        DTWWindowSearch(rows, cols, none, np.array([30, 12, 3, 0])),
        RotationNeighbors(rows, series(500, 45, 3), 4),
        RotationNeighbors(rows, series(500, 45, 3), 4, warping=Warping(window=3)),
        AlignmentSums(
            uneven, uneven.take(slice(7)), rng.integers(0, 7, 60), np.ones(60), Warping(window=0.1)
        ),
        SoftDTWMatrix(rows, cols, 1.0),
        SoftDTWGradient(cols, rows.take(slice(1)), np.ones(170), 1.0),
        Join(line, None, 60, 15, n_neighbors=5, sides=True),
        Join(line, wide[0], 60, normalize=False),
        ChannelJoin.of(wide, None, 35, rule, exclusion=9, sides=True),
        ChannelJoin.of(wide, wide, 35, rule, normalize=False),
        SpacedNeighbors(line, None, 50, 49, n_spaced=6),
        SpacedChannels.of(wide, None, 35, ChannelRule((3,)), exclusion=34, n_spaced=4),
        SubsequenceMatches(tuple(x[0] for x in wanted), series(120, 90, 1, 50)),
        SubsequenceNeighbors(wanted, long, Warping(window=0.2), n_neighbors=9),
        SubsequenceNeighbors(wanted, long, Warping(window=3), n_neighbors=None, radius=5.0),
        *(SBDAssign(shapes, centers), SBDMatrix(shapes, shapes)),
        SBDCenters(shapes, labels, shifts, 4),
        # more distances than are measured at a time
        ChannelJoin.of([wide[0]] * 60, None, 35, ChannelRule((7,))),
    ]
    return series, works


def of_every_kind(
    series: Callable[..., Series], sizes: tuple[tuple[int, ...], ...], softly: tuple
) -> Iterator[Reduction]:
    """Works of each distance on short and long series, one channel and three, one pair and many.

    Of long series not as many pairs lie side by side, or none do.
    """
    kinds = (Warping(window=4), MSM(window=5), ERP(window=0.3), TWE(), ShapeDTW(reach=3))
    kinds = (*kinds, Warping("dog_keeper", "absolute"), LCSS(epsilon=0.5))
    for (n, width, n_channels), warping in product(sizes, kinds):
        many, few = series(n, width, n_channels), series(3, width - 7, n_channels)
        one = many.take(slice(1))
        places = np.column_stack([np.arange(n), np.arange(n) % 3])
        yield DTWMatrix(one, few.take(slice(1)), warping)
        yield DTWPairs(many, few, places, warping)
        yield DTWNeighbors(many, few, 2, np.full(n, -1), warping=warping)
        if n_channels == 1 or not warping.independent:
            yield DTWPath(one, few.take(slice(1)), warping)
            labels, weights = np.arange(n) % 3, np.ones(n)
            yield AlignmentSums(many, few, labels, weights, warping)
            if type(warping) is Warping and not warping.largest:
                yield AlignmentSums(many, few, labels, weights, warping, derived=True)
    for n, width, n_channels, more in softly:
        many, few = series(n, width, n_channels), series(3, width + more, n_channels)
        yield SoftDTWMatrix(many, few, 0.5)
        yield SoftDTWGradient(many, few.take(slice(1)), np.ones(n), 0.5)


def of_several_lengths(series: Callable[..., Series]) -> Iterator[Reduction]:
    """Works of each distance on series of several lengths, of one channel and of two."""
    kinds = (ERP(gap=0.5), MSM(window=0.2), TWE(nu=0.25), LCSS(epsilon=0.5), EDR(epsilon=0.5))
    kinds = (*kinds, EDR(), WDTW(), WDTW(cost="absolute"), ADTW(penalty=0.5), Warping(window=0.2))
    for n_channels, warping in product((1, 2), kinds):
        some = series(14, 40, n_channels, 12)
        few, labels = some.take(slice(3)), np.arange(14) % 3
        sides = prepared(some, few, warping)
        yield DTWMatrix(*sides)
        yield DTWPairs(*sides[:2], np.column_stack([np.arange(14), labels]), sides[2])
        yield DTWNeighbors(*sides[:2], 1, np.arange(14), warping=sides[2])
        if n_channels == 1 or not warping.independent:
            yield DTWPath(sides[0].take(slice(1)), sides[1].take(slice(1, 2)), sides[2])
            yield AlignmentSums(*sides[:2], labels, 1.0 + labels, sides[2])


def of_every_criterion(series: Callable[..., Series]) -> Iterator[Reduction]:
    """Searches of shapelets for classes and for targets, which weigh the same or do not."""
    rng = np.random.default_rng(12)
    some, labels, weights = series(18, 22, 1), rng.integers(0, 3, 18), 0.5 + rng.random(18)
    classes = np.array([1.0, 2.0, 0.5])
    for criterion in (
        Criterion(labels, np.ones(3), 3),
        Criterion(labels, classes, 2, 1.5),
        Criterion(labels, classes, 1, 2.0, weights),
        VarianceCriterion(rng.normal(size=18), 3),
        VarianceCriterion(rng.normal(size=18), 1, 2.0, weights),
    ):
        yield ShapeletSearch(some, np.arange(18), (5, 9), criterion)
        yield ShapeletSearch(
            *(some, np.arange(18), (5, 9), criterion, rng.random(18)), ways=("first", "and", "or")
        )
    yield ShapeletSearch(some, np.arange(5, 12), (4,), Criterion(labels[5:12], np.ones(3)))


def of_long_lines(series: Callable[..., Series]) -> Iterator[Reduction]:
    """Joins so large that one in float32 is worth an estimate, all but the last; a path too long.

    What `since` leaves of a join may be little again.
    """
    line, other = (ConcatenatedSeries.of([np.zeros(n)]) for n in (2**20, 2**19))
    yield Join(line, None, 100, 25)
    yield Join(line, None, 100, 25, sides=True, n_neighbors=3)
    yield Join(line, None, 100, 25, since=2**20 - 200)
    yield Join(line, None, 100, precision="float32", normalize=False)
    yield Join(line, other, 100)
    yield Join(other, line, 100, precision="float64")
    yield ChannelJoin.of([line] * 3, None, 100, ChannelRule((1, 3)), exclusion=25)
    long = series(2, 60_000, 2)
    labels, weights = np.zeros(2, np.int64), np.ones(2)
    for warping in (ShapeDTW(reach=3), Warping(window=50)):
        yield AlignmentSums(long, long.take(slice(1)), labels, weights, warping)
