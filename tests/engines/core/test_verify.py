"""`verify=True`: answers of right engines pass, and wrong ones are found, for every reduction."""

from __future__ import annotations

import time
from dataclasses import replace

import numpy as np
import pytest
from joblib import parallel_config
from numpy.testing import assert_array_equal

from skts import config_context, get_config
from skts.engines import (
    LEAST_NORMALIZED,
    BestShapelets,
    ConcatenatedSeries,
    Criterion,
    DTWMatrix,
    DTWNeighbors,
    DTWPath,
    DTWWindowSearch,
    Join,
    Kind,
    MotifPair,
    NearestPair,
    Reduction,
    SBDCenters,
    Series,
    ShapeletSearch,
    Shapes,
    SubsequenceNeighbors,
    Warping,
    WarpingPath,
    find_engine,
    run,
)
from skts.engines.core import verify as module
from skts.engines.core.verify import Sample
from skts.engines.families.kshape.centers import CLOSE
from skts.engines.families.profile.join import JoinPart
from skts.engines.families.shapelets.best import Bounds
from skts.engines.families.shapelets.search import Survivors
from skts.engines.host import plain
from skts.engines.numba import NumbaEngine
from skts.engines.numba.elastic import certified
from skts.exceptions import VerificationError
from skts.metrics import pairwise_distances
from tests.examples_of_work import examples, reductions
from tests.waiting import quickest


@pytest.fixture(scope="module")
def table():
    return examples()


@pytest.mark.parametrize("kind", reductions())
def test_every_reduction_is_checked(kind):
    assert kind.verify is not Reduction.verify


#: Pieces of an answer that are looked at, at most, where they are not `SAMPLE`; where a piece takes
#: a profile of all windows, or some seconds of plain loops, they are fewer.
LOOKED_AT = {
    **{name: {4} for name in ("ChannelJoin", "SpacedChannels", "SBDCenters", "GroupSplits")},
    **{name: {8} for name in ("Join", "SpacedNeighbors", "GrowthJoin", "TimedJoin", "MotifPair")},
    **{name: {8} for name in ("DTWNeighbors", "DTWRadiusNeighbors", "DTWWindowSearch")},
    **{name: {3} for name in ("RotationNeighbors", "RotationRadiusNeighbors")},
    **{"DTWPath": set(), "PairWalk": {256}, "WindowKinds": {256}, "BestShapelets": {8}},
    # candidates, and a window of each
    "ShapeletSearch": {8, 1},
    # queries, matches of each, and windows that may not be nearer
    "SubsequenceNeighbors": {8, module.SAMPLE, 64},
}


@pytest.mark.parametrize("kind", reductions())
def test_right_answers_pass(table, fast_engine, monkeypatch, kind):
    missing = find_engine(fast_engine).available()
    if missing is not None:
        pytest.skip(missing)
    checks, asked = [], set()
    original = kind.verify

    def counted(self, answer, sample):
        def noted(count, most=module.SAMPLE):
            asked.add(most)
            return sample(count, most)

        for check in original(self, answer, noted):
            checks.append(check)
            yield check

    monkeypatch.setattr(kind, "verify", counted)
    for one in table[kind]:
        before = len(checks)
        # also where users have NumPy raise what it would warn of
        with config_context(verify=True), np.errstate(all="raise"):
            run(one.work, engine=fast_engine)
        assert len(checks) > before
    assert all(check.holds for check in checks)
    assert asked == LOOKED_AT.get(kind.__name__, {module.SAMPLE})


def _spoiled(result, kind):
    """The result of a tile with one number of it, or one kind of number, changed."""
    name = kind.__name__
    if name == "MotifPair":
        # most windows count as not finite: the nearest pair is lost
        finite = result.finite.copy()
        finite[: finite.size * 9 // 10] = False
        return result._replace(finite=finite)
    if name == "PairWalk":
        return result._replace(distance=np.nextafter(result.distance, 0))
    if name == "ShapeletSearch":
        # the best candidates are lost
        keep = result.gain < np.median(result.gain)
        return result.take(keep) if isinstance(result, Survivors) else result
    if name == "BestShapelets":
        # bounds of most candidates are too low
        low = result.gain < np.quantile(result.gain, 0.25)
        return Bounds(np.where(low, result.gain, 0), np.where(low, result.gap, -np.inf))
    if name == "WindowKinds":
        return result._replace(finite=np.ones_like(result.finite))
    if name == "SubsequenceNeighbors":
        return [one._replace(distances=np.nextafter(one.distances, np.inf)) for one in result]
    if name == "GroupSplits":
        return result._replace(threshold=np.nextafter(result.threshold, np.inf))
    if isinstance(result, JoinPart):
        for side in (result.rows, result.cols):
            if side is not None:
                side.distances[:] = np.nextafter(side.distances, 0)
        return result
    if name == "SBDMatrix":
        result.distances[:] += 1e-7
        return result
    if name == "SBDAssign":
        result.labels[:] = (result.labels + 1) % 5
        return result
    if name == "SBDCenters":
        result.values[:] = np.roll(result.values, 1, axis=2)
        return result
    if name == "DTWWindowSearch":
        return result + 1
    if name == "DTWPath":
        return result._replace(path=np.delete(result.path, 3, axis=0))
    if name in ("RotationNeighbors", "RotationRadiusNeighbors"):
        return result._replace(estimates=np.nextafter(result.estimates, np.inf))
    if name in ("DTWNeighbors", "DTWRadiusNeighbors"):
        # every second candidate is lost, and with it the best of some queries
        keep = result.cols % 2 == 1
        return result._replace(
            rows=result.rows[keep], cols=result.cols[keep], estimates=result.estimates[keep]
        )
    if name == "SubsequenceMatches":
        result.starts[:] += 1
        return result
    if name == "AlignmentSums":
        return result._replace(costs=np.nextafter(result.costs, np.inf))
    if name == "SubgradientSteps":
        # the root of the next number may be the same
        return result._replace(costs=result.costs * (1 + 1e-12))
    if name == "SoftDTWGradient":
        return result._replace(values=result.values * (1 + 1e-6) + 1e-3)
    if name == "SoftDTWMatrix":
        # plain code takes logarithms of its own
        return result * (1 + 1e-6) + 1e-3
    return np.nextafter(result, np.inf)


class WrongEngine(NumbaEngine):
    """The CPU engine with an error in one kind of work."""

    name = "wrong"

    def __init__(self, kind):
        super().__init__()
        self.kind = kind

    def compute(self, reduction, tile, cancel):
        result = super().compute(reduction, tile, cancel)
        return _spoiled(result, self.kind) if type(reduction) is self.kind else result


@pytest.mark.parametrize("kind", reductions())
def test_wrong_answers_are_found(table, kind):
    engine = WrongEngine(kind)
    for one in table[kind]:
        work = one.work
        if isinstance(work, Join):
            # not the accumulators, which would take no result of a tile
            work = replace(work, n_neighbors=max(2, work.n_neighbors))
        if getattr(work, "all_at_once", False):
            # not works that leave all to works of another kind
            work = replace(work, n_spaced=2)
            assert not work.all_at_once
        with config_context(verify=True), pytest.raises(VerificationError) as error:
            run(work, engine=engine)
        for part in (kind.__name__, "engine='wrong'", "plain code finds", "Please report"):
            assert part in str(error.value)


def test_off_by_default(table):
    assert get_config()["verify"] is False
    engine = WrongEngine(DTWMatrix)
    run(table[DTWMatrix][0].work, engine=engine)


@pytest.mark.parametrize("bad", [1, "yes", None])
def test_other_values_are_refused(bad):
    message = f"verify={bad!r} is neither True nor False"
    with pytest.raises(ValueError, match=message), config_context(verify=bad):
        pytest.fail("the block must not be entered")


def test_one_wrong_number_of_a_few_is_found(make_series):
    series = make_series(3, 20)  # written in both halves of the matrix, the second time turned

    class Wrong(NumbaEngine):
        name = "wrong"

        def dtw_matrix(self, reduction, tile, cancel):
            found = super().dtw_matrix(reduction, tile, cancel)
            found[1, 2] = np.nextafter(found[1, 2], 0)
            return found

    with config_context(verify=True), pytest.raises(VerificationError, match="of 2 and 1 of DTWM"):
        run(DTWMatrix(series, series), engine=Wrong())


def test_answers_that_came_from_elsewhere_are_checked(table, monkeypatch):
    monkeypatch.setattr("skts.engines.core.executor.WORTH_SENDING", 0)
    seen = []
    monkeypatch.setattr(
        "skts.engines.core.executor.verify", lambda work, name, answer: seen.append(name)
    )
    with config_context(verify=True), parallel_config("loky", n_jobs=2):
        run(table[DTWMatrix][0].work, engine="numba")
    assert seen == ["numba"]


def test_samples_are_the_same_each_time(table):
    work = table[DTWMatrix][0].work
    assert Sample(work)(10**9) == Sample(work)(10**9)
    assert len(set(Sample(work)(10**9))) == module.SAMPLE
    assert Sample(work)(5) == [0, 1, 2, 3, 4]


@pytest.mark.parametrize("squared", [True, False])
@pytest.mark.parametrize("metric", ["dtw", "dog_keeper"])
@pytest.mark.parametrize("alignment", ["global", "subsequence", "supersequence"])
@pytest.mark.parametrize("window", [None, 0, 3])
def test_plain_costs_have_the_bits_of_certified_ones(rng, squared, metric, alignment, window):
    window = window if alignment == "global" else None
    warping = Warping(metric, "squared" if squared else "absolute", window, alignment)
    cancel = np.zeros(1, np.uint8)
    options = warping.squared, warping.largest, alignment == "subsequence"
    options = *options, alignment == "supersequence"
    for _ in range(30):
        n, m = rng.integers(1, 12, 2)
        x, y = rng.normal(size=(2, n)), rng.normal(size=(2, m))
        radius = int(warping.radius(n, m))
        expected = certified.cost(x, y, radius, *certified.options(warping), cancel)
        assert plain.warped(x, y, radius, *options) == expected


@pytest.mark.parametrize("change", ["jump", "end", "band"])
def test_paths_that_are_not_allowed_are_found(make_series, change):
    work = DTWPath(make_series(1, 12), make_series(1, 12), Warping(window=4))
    found = run(work, engine="numba")
    path = found.path.copy()
    if change == "jump":
        path = np.delete(path, 1, axis=0)
        path = np.delete(path, 1, axis=0)
    elif change == "end":
        path = path[:-1]
    else:
        path = np.array([(0, j) for j in range(12)] + [(i, 11) for i in range(1, 12)])
    checks = list(work.verify(WarpingPath(path, found.distance), Sample(work)))
    assert not all(check.holds for check in checks)


def test_a_path_as_near_that_leaves_the_band_is_found():
    """Of constant series any path costs nothing, be it allowed or not."""
    one = Series(np.zeros((1, 1, 12)), np.array([12])).freeze()
    work, there = DTWPath(one, one, Warping(window=4)), np.arange(12)
    for offset, allowed in ((4, True), (5, False)):
        above = np.column_stack([there, np.maximum(0, there - offset)])
        end = np.column_stack([np.full(offset, 11), np.arange(12 - offset, 12)])
        path = np.concatenate([above, end])
        assert holds(work, WarpingPath(path, 0.0)) == allowed


def holds(work, answer):
    """Whether an answer passes all checks."""
    return all(check.holds for check in work.verify(answer, Sample(work)))


def test_a_query_that_is_left_out_of_its_own_search_may_be_nearer(make_series):
    """But no other query may: all candidates are queries, and each is left out of one search."""
    one = make_series(5, 8)
    work = DTWWindowSearch(one, one, np.arange(5), np.array([2, 0]))
    found = run(work, engine="numba")
    assert holds(work, found)
    assert not holds(work, np.repeat(np.arange(5)[:, np.newaxis], 2, axis=1))
    others = [[min({0, 1, 2} - {query, near}) for near in row] for query, row in enumerate(found)]
    assert not holds(work, np.array(others))


@pytest.mark.parametrize("metric", ["dtw", "dog_keeper"])
def test_paths_of_the_least_cost_pass(make_series, metric):
    work = DTWPath(make_series(1, 12), make_series(1, 9), Warping(metric))
    found = run(work, engine="numba")
    assert holds(work, found)
    assert not holds(work, found._replace(distance=np.nextafter(found.distance, np.inf)))


def test_neighbors_that_are_not_there_are_at_no_distance(make_series):
    work = DTWNeighbors(make_series(2, 12), make_series(2, 12), 3)
    found = run(work, engine="numba")
    assert holds(work, found)
    distances = found.distances.copy()
    distances[:, 2] = distances[:, 1] + 1
    assert not holds(work, found._replace(distances=distances))


def test_a_lost_best_match_is_found(rng):
    from skts.engines import LongSeries

    query, series = rng.normal(size=20), rng.normal(size=60)
    work = SubsequenceNeighbors((query,), LongSeries((series,)), n_neighbors=2)
    (found,) = run(work, engine="numba")
    less = found._replace(distances=found.distances[1:], positions=found.positions[1:])
    assert all(check.holds for check in work.verify([found], Sample(work)))
    assert not all(check.holds for check in work.verify([less], Sample(work)))


def test_windows_that_overlap_with_a_match_need_not_be_listed(rng):
    """Up to the exclusion, and no farther: all of the windows are looked at."""
    from skts.engines import LongSeries

    query, series = rng.normal(size=20), rng.normal(size=60)
    work = SubsequenceNeighbors((query,), LongSeries((series,)), n_neighbors=9)
    (found,) = run(work, engine="oracle")
    assert len(found.positions) < 9
    checks = list(work.verify([found], Sample(work)))
    assert len(checks) >= 41
    assert all(check.holds for check in checks)


def test_a_lost_pair_is_found(rng):
    work = MotifPair(ConcatenatedSeries.of([rng.normal(size=120)]), 10, 2)
    found = run(work, engine="numba")
    assert all(check.holds for check in work.verify(found, Sample(work)))
    none = NearestPair(np.inf, -1, -1)
    assert not all(check.holds for check in work.verify(none, Sample(work)))


def test_a_lost_pair_is_found_among_windows_that_take_no_part(rng):
    """Whichever windows are excluded, the others are looked at."""
    line = ConcatenatedSeries.of([rng.normal(size=60)])
    windows = np.arange(51)
    for excluded in (windows < 5, windows > 45, windows % 2 == 0, windows % 2 == 1):
        work = MotifPair(line, 10, 2, excluded=excluded)
        found = run(work, engine="numba")
        for answer, right in ((found, True), (NearestPair(np.inf, -1, -1), False)):
            checks = list(work.verify(answer, lambda size, count: range(size)))
            # each window that takes part, and the distance of a pair
            assert len(checks) == np.sum(~excluded) + right
            assert all(check.holds for check in checks) == right


def test_the_windows_of_a_pair_are_looked_at_whatever_the_sample():
    """Another pair of one of them is nearer."""
    line = np.array([0.0, 50.0, 200.0, 9.0, 500.0, 1.0])
    work = MotifPair(ConcatenatedSeries.of([line]), 1, 1, normalize=False)

    def no_sample(size, count):
        return []

    for answer, right in (
        (NearestPair(1.0, 0, 5), True),
        (NearestPair(9.0, 0, 3), False),
        (NearestPair(8.0, 3, 5), False),
        (NearestPair(1.5, 0, 5), False),
    ):
        assert all(check.holds for check in work.verify(answer, no_sample)) == right


def test_a_better_split_is_found(rng):
    n = 12
    labels = np.arange(n) % 2
    values = rng.normal(size=(n, 1, 20))
    values[:, 0, 5:12] += 5 * labels[:, None] * np.hanning(7)
    series = Series(values, np.full(n, 20))
    work = ShapeletSearch(series, np.arange(n), (7,), Criterion(labels, np.ones(2)))
    found = run(work, engine="numba")
    assert all(check.holds for check in work.verify(found, Sample(work)))
    cut = found.cut
    for wrong in (
        None,
        found._replace(cut=cut._replace(gain=cut.gain // 2)),
        found._replace(cut=cut._replace(gap=cut.gap * 1.001)),
        found._replace(distances=np.nextafter(found.distances, np.inf)),
    ):
        assert not all(check.holds for check in work.verify(wrong, Sample(work)))


def test_windows_that_are_equal_but_for_rounding_make_no_better_split(rng):
    """Series of one shape at many levels and scales, and few of another one."""
    shapes = rng.normal(size=(2, 12))
    shapes = shapes[np.arange(20) // 16] * rng.uniform(0.5, 2, (20, 1)) + rng.normal(size=(20, 1))
    series = Series(shapes[:, np.newaxis], np.full(20, 12))
    for _ in range(3):
        classes = np.where(np.arange(20) < 16, rng.integers(0, 2, 20), 0)
        work = ShapeletSearch(series, np.arange(20), (5, 12), Criterion(classes, np.ones(2)))
        with config_context(verify=True):
            run(work, engine="numba")


@pytest.mark.parametrize("length", [1, 2, 3, 4, 5])
def test_normalised_distances_that_are_nearly_equal_have_no_cut(length):
    """Also those of as few points as are normalised; of fewer points all that differ have one."""
    values = np.tile([0.0, 3.0, 1.0, 2.0, 5.0][:length], (4, 1, 1))
    values[2:, 0, -1] += 2.0**-38
    series, classes = Series(values, np.full(4, length)), Criterion(np.arange(4) // 2, np.ones(2))
    work = ShapeletSearch(series, np.arange(4), (length,), classes)
    found = run(work, engine="oracle")
    assert (found is None) == (length >= LEAST_NORMALIZED)
    assert all(check.holds for check in work.verify(found, Sample(work)))
    nothing = all(check.holds for check in work.verify(None, Sample(work)))
    assert nothing == (found is None)


@pytest.mark.parametrize("count", [1, 2])
def test_shapelets_that_are_as_good_as_the_last_need_not_be_chosen(rng, count):
    """Each series is there twice: what was cut from the other one gains as much."""
    base = rng.normal(size=(4, 1, 12)).cumsum(axis=2)
    series, labels = Series(np.tile(base, (2, 1, 1)), np.full(8, 12)), np.tile([0, 1, 0, 1], 2)
    kinds = Kind(3, 1, True), Kind(4, 3, True)
    work = BestShapelets(series, kinds, Criterion(labels, np.ones(2)), count, 1)
    found = run(work, engine="numba")
    checks = list(work.verify(found, lambda size, most=16: range(size)))
    assert all(check.holds for check in checks)
    assert count > 1 or any(
        "beside" in check.item and check.found == check.expected for check in checks
    )
    less = found._replace(gain=found.gain - 1)
    assert not all(check.holds for check in work.verify(less, lambda size, most=16: range(size)))


def test_a_centre_that_points_the_other_way_is_found(table):
    work = table[SBDCenters][0].work
    found = run(work, engine="numba")
    for values in (-found.values, 2 * found.values):
        wrong = replace(found, values=values)
        assert not all(check.holds for check in work.verify(wrong, Sample(work)))


def test_norms_of_centres_are_compared_with_their_size(rng):
    shapes = Shapes.of(rng.normal(size=(8, 1, 100)).cumsum(axis=2))
    work = SBDCenters(shapes, np.zeros(8, np.int32), np.zeros(8, np.int32), 1)
    found = run(work, engine="numba")
    for share, right in ((0.5, True), (2.0, False)):
        wrong = replace(found, values=found.values * (1 + share * CLOSE))
        assert holds(work, wrong) == right


def test_centres_after_an_empty_cluster_are_looked_at(rng):
    """And after one whose members leave nothing but rounding."""
    values = rng.normal(size=(9, 1, 12)).cumsum(axis=2)
    values[:3] = 0.0
    labels = np.array([1, 1, 1, 2, 2, 2, 3, 3, 3], np.int32)
    shapes = Shapes.of(values - values.mean(axis=2, keepdims=True))
    work = SBDCenters(shapes, labels, np.zeros(9, np.int32), 4)
    found = run(work, engine="numba")
    assert holds(work, found)
    for cluster in (2, 3):
        wrong = found.values.copy()
        wrong[cluster] *= -1
        assert not holds(work, replace(found, values=wrong))


def test_constant_channels_of_short_series_count(fast_engine):
    # series of two points are not centred: a channel that does not change is no zero
    values = np.array([[[0.6, 0.6], [-0.2, -0.5]], [[-0.1, -0.7], [0.3, 0.9]]])
    shapes = Shapes.of(values)
    zeros = np.zeros(2, np.int32)
    work = SBDCenters(shapes, zeros, zeros, 1, centered=False)
    with config_context(verify=True):
        run(work, engine=fast_engine)


@pytest.mark.parametrize("metric", ["wdtw", "adtw", "shape_dtw", "msm", "dtw"])
def test_underflow_is_no_error_of_engines_nor_of_plain_code(fast_engine, metric):
    """Also where users look for errors of their own: squares of small differences become 0."""
    X = [[1.0, 1.0, 2.0, 3e-170, 0.0], [1.0, 2.0, 0.0, 1e-170, 2e-200], [0, 1e-140, 1e-170, 5, 0]]
    expected = pairwise_distances(X, metric=metric, engine=fast_engine)
    with config_context(verify=True), np.errstate(all="raise"):
        assert_array_equal(pairwise_distances(X, metric=metric, engine=fast_engine), expected)


def test_estimates_are_not_checked(make_series):
    series = make_series(20, 30)
    work = DTWNeighbors(series, series, 2, np.arange(20), "float32")
    with config_context(verify=True):
        run(work, engine="numba")
    assert not list(work.verify(None, Sample(work)))


def test_checks_take_little_time(make_series):
    queries, candidates = make_series(300, 200), make_series(1500, 200)
    work = DTWNeighbors(queries, candidates, 1)
    run(work, engine="numba")
    with config_context(verify=True):
        run(work, engine="numba")

    def more():
        seconds = []
        for verify in (False, True):
            start = time.process_time()
            with config_context(verify=verify):
                run(work, engine="numba", n_jobs=1)
            seconds.append(time.process_time() - start)
        return seconds[1] - 1.5 * seconds[0]

    assert quickest(more, 0.5) < 0.5
