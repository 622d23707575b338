"""Bounds on the GPU, tested by themselves: answers do not tell, as what is unclear is measured."""

from __future__ import annotations

import importlib

import numpy as np
import pytest

from skts.engines import Criterion, Series, find_engine

pytestmark = pytest.mark.gpu


@pytest.fixture
def gpu():
    """CuPy; skip where there is none, with the engine's own reason."""
    missing = find_engine("cupy").available()
    if missing:
        pytest.skip(missing)
    return importlib.import_module("cupy")


@pytest.fixture(params=["narrow", "wide"])
def kernels(request, monkeypatch):
    """Order lines of a warp, and of a block."""
    if request.param == "wide":
        monkeypatch.setattr("skts.engines.cupy.shapelets.programs.KEYS", ())


def doubts(gpu, length, n_windows, norm, step, heavy, size):
    """Errors of sums of two series on the walk, and what all distances of each are off by."""
    from skts.engines.cupy.loading import load_kernel

    bits, floors = gpu.zeros((2, 2), np.int32), gpu.zeros(2, np.float32)
    load_kernel("shapelets/shapelets.cu", "doubts")(
        (2, 1),
        128,
        largest=gpu.asarray(np.column_stack([norm, step, heavy]).ravel()),
        size=gpu.asarray(size),
        n=2,
        first=0,
        n_windows=n_windows,
        lengths=gpu.asarray([length], np.int32),
        errors=bits,
        floors=floors,
    )
    return (bits.get().astype(np.int64) << 32).view(np.float64), floors.get()


def test_errors_of_the_gpu_hold_all_that_goes_wrong_on_the_walk(gpu):
    """See "shapelet walk" in docs/developer/numerics.rst."""
    unit, length, n_windows = 2.0**-53, 8, 50
    norm, step, heavy = np.array([5.0, 3.0]), np.array([10.0, 20.0]), np.array([0.5, 2.0])
    size = np.array([1e3, 1e2])
    # each term by itself, beside next to nothing of the others
    for shares in (np.ones(3), *(1e-6 + np.eye(3)), np.array([1.0, 1e-6, 1e3])):
        n, s, m = np.array([norm, step, size]) * shares[:, None]
        coarse = 2 * unit * np.sqrt(length) * m
        means = 2 * unit * (np.sqrt(length) * n + m)

        def both(a, b):
            return np.outer(a, b) + np.outer(b, a)

        terms = [
            n_windows * unit * (2 * np.outer(n, n) + 4 * np.outer(s, s)),
            unit * (length + 8) * length * np.outer(m, m),
            length * both(means, m),
            2 * n_windows * both(means, s),
            both(coarse, n),
        ]
        least = 2 * sum(terms) * heavy + 8 * coarse[:, None]
        errors, _ = doubts(gpu, length, n_windows, n, s, heavy, m)
        assert (errors >= least).all()
        assert (errors <= 1.7 * least).all()


def test_loud_windows_are_as_wrong_as_their_points_are_rounded(gpu):
    length, heavy, size = 20, np.array([0.5, 1.0]), np.array([1e13, 1e15])
    _, floors = doubts(gpu, length, 50, np.ones(2), np.ones(2), heavy, size)
    coarse = 2 * 2.0**-53 * np.sqrt(length) * size * heavy
    # the largest of all series
    least = 8 * coarse.max()
    assert (floors >= least).all()
    assert (floors <= 1.01 * least).all()


def test_equal_candidates_have_equal_digests_wherever_they_lie(gpu):
    from skts.engines.cupy.loading import load_kernel

    values = np.array([4.0, 1.0, 2.0, 3.0, 9.0, 1.0, 2.0, 3.0])
    begins, lengths, tags = [1, 5, 0, 5, 1], [3, 3, 3, 2, 3], [0, 0, 0, 0, 1]
    found = gpu.zeros(5, np.uint64)
    load_kernel("shapelets/order_lines.cu", "digest")(
        1,
        128,
        values=gpu.asarray(values.view(np.int64)),
        begins=gpu.asarray(begins, np.int64),
        lengths=gpu.asarray(lengths, np.int32),
        tags=gpu.asarray(tags, np.int32),
        n=5,
        out=found,
    )
    first, same, *others = found.get().tolist()
    assert first == same
    assert len({first, *others}) == 4


@pytest.mark.parametrize("n_classes", [2, 50])
def test_sums_of_rough_gains_have_room_for_all_their_roundings(gpu, n_classes):
    """See "rough gains" in docs/developer/numerics.rst."""
    from skts.engines.cupy.shapelets.rules import DeviceRules

    labels = np.arange(200) % n_classes
    # numbers at the end: the least weight of a leaf, a share, the total, what sums are off by, unit
    rules = DeviceRules(Criterion(labels, np.ones(n_classes)))
    slack = rules.numbers[-5:].view(np.float64)[3]
    # x ln x of both sides less that of all is n ln 2 at most, for all series and for each class
    largest = 2 * 200 * np.log(2)
    np.testing.assert_allclose(slack, (100 + n_classes) * 2.0**-23 * largest, rtol=1e-6)


@pytest.mark.parametrize(
    ("n", "open_labels", "apart", "swapped"),
    [
        # two neighbours that their errors leave open, and two that they do not
        (6, [1, 0], 6, True),
        (6, [1, 0], 10, False),
        # anywhere among the keys of a lane, between others that are clear
        *((n, [1, 0], 6, True) for n in (147, 149, 1029)),
        # a run in any order; where runs begin among the keys of a lane differs
        *((n, [1, 1, 0, 0], 1, True) for n in (40, 42, 70, 71, 72, 73)),
    ],
)
@pytest.mark.parametrize("weight", [1.0, 2.5])
def test_the_best_order_of_what_errors_leave_open_is_promised(
    n, open_labels, apart, swapped, weight, kernels, gpu
):
    """See "order line keys" in docs/developer/numerics.rst: distances are within 3.5 units."""
    from skts.engines.cupy.shapelets.order_lines import CANDIDATE_BOUND, REACHED, Lengths, Lines
    from skts.engines.cupy.shapelets.walk import Walk, lay

    # beyond all distances of windows, which therefore change nothing but one of the first
    before = np.concatenate([np.linspace(3, 3.2, n // 2), np.linspace(3.6, 4, n - n // 2)])
    before[1] = 0.001
    labels = (np.arange(n) >= n // 2).astype(np.int64)
    middle = slice(n // 2 - len(open_labels) // 2, n // 2 + len(open_labels) // 2)
    labels[middle], unit = open_labels, 4 * 2.0**-22
    before[middle] = 3.4 + unit * (0.1 + apart * np.arange(len(open_labels)))
    weights = np.array([1.0, weight])
    gains = [
        Criterion(each, weights).best_cuts(before[np.newaxis], np.array([False])).gain[0]
        for each in (labels, np.sort(labels))
    ]
    assert gains[0] < gains[1]
    values = np.random.default_rng(2).normal(size=(n, 1, 9))
    series = Series(values, np.full(n, 9))
    everyone, sizes = gpu.arange(n, dtype=np.int32), gpu.full(n, 9, np.int32)
    lines = Lines(
        gpu.asarray(series.values), sizes, np.arange(n), series.lengths,
        Criterion(labels, weights), before, ("and",), (-1, -np.inf), listed=1, held=1, measured=1,
    )  # fmt: skip
    heads = Lengths.of([(Walk(lay(series, 0), 0, 1, 9, 1)((9,)), 0)])
    row = everyone[:1]
    lines.scan(heads, 0, row, sizes[:1], row, everyone, np.zeros(1, np.uint8))
    assert lines._count() == 1
    bound = lines.list[:1].get().view(CANDIDATE_BOUND)[0, 0]
    assert (bound["gain"] >= gains[1]) == swapped
    assert bound["gain"] >= gains[0]
    # what is reached for certain; where classes weigh differently, the host tells
    reached = lines.reached.get().view(REACHED)["gain"][0]
    assert reached <= gains[0] if weight == 1 else reached == -1


def test_a_list_is_weeded_up_to_its_end(gpu):
    """What lies behind it, from other lists before, is none of its entries."""
    from skts.engines.cupy.loading import load_kernel
    from skts.engines.cupy.shapelets.order_lines import CANDIDATE_BOUND, REACHED

    for count in (3, 1024, 1500, 9000):
        entries = np.zeros(count + 1, CANDIDATE_BOUND)
        entries["gain"], entries["high"], entries["low"] = 7, 2.0, 1.0
        entries["high"][1], entries["gain"][0] = 0.5, 6
        entries["start"] = np.arange(count + 1)
        entries["low"][count] = np.inf
        found = gpu.asarray(entries.view(np.int64).reshape(count + 1, -1))
        reached = gpu.asarray(np.array([(7, 0, 0, count)], REACHED).view(np.int64))
        weed = load_kernel("shapelets/order_lines.cu", "weed")
        weed((1,), (1024,), (reached, found, np.int32(count + 1)))
        after = reached.get().view(REACHED)[0]
        assert tuple(after) == (7, 7, 1.0, count - 2)
        kept = found[: count - 2].get().view(CANDIDATE_BOUND).ravel()
        assert sorted(kept["start"].tolist()) == list(range(2, count))


@pytest.mark.parametrize("n_classes", [2, 5, 20])
@pytest.mark.parametrize("leaf", [1, 6])
@pytest.mark.parametrize("ties", [False, True])
def test_cuts_of_measured_candidates_are_those_of_the_host(n_classes, leaf, ties, gpu, rng):
    """Of up to 16 classes the lanes of a warp judge them together."""
    from skts.engines.cupy.shapelets.order_lines import Lines

    n = 45
    values = rng.integers(0, 2, (n, 1, 14)).astype(float) if ties else rng.normal(size=(n, 1, 14))
    labels = np.append(np.arange(n_classes), rng.integers(0, n_classes, n - n_classes))
    criterion = Criterion(labels, np.ones(n_classes), leaf)
    arrays = gpu.asarray(values), gpu.asarray(np.full(n, 14), np.int32)
    options = ("first",), (0, np.inf), 100, 100, 100
    lines = Lines(*arrays, np.arange(n), np.full(n, 14), criterion, None, *options)
    where = np.array([(4, member, start, 0, 0) for member in range(0, n, 5) for start in (0, 7)])
    gains, gaps, distances = lines._start_cuts(lines._describe(where))()
    expected = criterion.best_cuts(distances.get())
    np.testing.assert_array_equal(gains, expected.gain)
    np.testing.assert_array_equal(gaps, expected.gap)


@pytest.mark.parametrize("n_classes", [2, 20])
def test_cuts_where_classes_weigh_differently_are_within_the_rounding_of_tables(
    n_classes, gpu, rng
):
    """See "weighted gains" in docs/developer/numerics.rst."""
    from skts.engines.cupy.shapelets.order_lines import Lines

    n = 45
    labels = np.append(np.arange(n_classes), rng.integers(0, n_classes, n - n_classes))
    criterion = Criterion(labels, np.linspace(0.5, 2, n_classes), 1)
    arrays = gpu.asarray(rng.normal(size=(n, 1, 14))), gpu.asarray(np.full(n, 14), np.int32)
    options = ("first",), (0, np.inf), 100, 100, 100
    lines = Lines(*arrays, np.arange(n), np.full(n, 14), criterion, None, *options)
    where = np.array([(4, member, start, 0, 0) for member in range(0, n, 5) for start in (0, 7)])
    gains, _, distances = lines._start_cuts(lines._describe(where))()
    expected = criterion.best_cuts(distances.get()).gain
    assert np.abs(gains - expected).max() <= 2 * n_classes + 8 < expected.min()


@pytest.mark.parametrize("n", [40, 150, 300])
@pytest.mark.parametrize(("n_classes", "large"), [(2, 0), (2, 1), (3, 0), (3, 1), (3, 2)])
def test_a_line_that_gains_what_is_reached_is_listed(n, n_classes, large, kernels, gpu):
    """It may be as good, and come first; most series are of one class, in front of the cut."""
    from skts.engines.cupy.shapelets.order_lines import CANDIDATE_BOUND, Lengths, Lines
    from skts.engines.cupy.shapelets.walk import Walk, lay

    # beyond all distances of windows, which therefore change nothing but one of the first
    before = np.linspace(3, 4, n)
    before[1] = 0.001
    labels = np.full(n, large)
    labels[-(n // 16) :] = (large + 1 + np.arange(n // 16) % (n_classes - 1)) % n_classes
    criterion = Criterion(labels, np.ones(n_classes))
    gain = criterion.best_cuts(before[np.newaxis], np.array([False])).gain[0]
    series = Series(np.random.default_rng(2).normal(size=(n, 1, 9)), np.full(n, 9))
    everyone, sizes = gpu.arange(n, dtype=np.int32), gpu.full(n, 9, np.int32)
    heads = Lengths.of([(Walk(lay(series, 0), 0, n, 9, 1)((9,)), 0)])
    row = everyone[:1]
    lines = Lines(
        gpu.asarray(series.values), sizes, np.arange(n), series.lengths,
        criterion, before, ("and",), (int(gain), -np.inf), listed=1, held=1, measured=1,
    )  # fmt: skip
    lines.scan(heads, 0, row, sizes[:1], row, everyone, np.zeros(1, np.uint8))
    assert lines._count() == 1
    assert lines.list[:1].get().view(CANDIDATE_BOUND)[0, 0]["gain"] >= gain
