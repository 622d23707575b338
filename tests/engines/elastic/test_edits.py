"""Edits counted 64 cells at a time: against plain loops, as plain Python and compiled."""

from __future__ import annotations

import numpy as np
import pytest
from elastic_cases import sides_of
from numpy.testing import assert_array_equal

from skts.engines import DTWMatrix, find_engine, replace_kernels, run
from skts.engines.families.elastic.warping import settled
from skts.engines.numba.elastic import dtw, edits, uneven
from skts.engines.numba.elastic.lanes import LANES

KINDS = [("lcss", {"epsilon": 0.4}), ("edr", {"epsilon": 0.4}), ("edr", {})]
COUNTING = ("_matching", "_replacements", "_omissions")
COUNTING += ("_narrow_replacements", "_narrow_omissions")
GO_ON = np.zeros(1, np.uint8)


def counted(left, right, warping, cancel=GO_ON):
    """Accumulated costs by the kernel in plain Python."""
    given = uneven.options(warping, left.n_channels, np.float64)
    cell, own = given.cell, given.own
    packed, lengths = dtw.pack(right.values, right.lengths, LANES[np.float64])
    count = getattr(edits.count_edits, "py_func", edits.count_edits)
    out = np.full((len(left), packed.shape[3]), np.nan)
    with pytest.MonkeyPatch.context() as patch, np.errstate(over="ignore"):
        for name in COUNTING:
            kernel = getattr(edits, name)
            patch.setattr(edits, name, getattr(kernel, "py_func", kernel))
        for row, x in enumerate(left.values):
            x = np.ascontiguousarray(x[:, : left.lengths[row]].T)
            radius = np.full(lengths[0].shape, warping.radius(left.lengths[row], lengths[0]))
            count(x, packed[0], lengths[0], radius, out[row], cancel, cell, own)
    return out


def steps(rng, count, channels, lengths):
    """Series of few values, so that many points match and many are as far apart as `epsilon`."""
    return [
        np.round(rng.normal(size=(channels, rng.choice(lengths))).cumsum(axis=1) / 2) / 5
        for _ in range(count)
    ]


@pytest.mark.parametrize("channels", [1, 2])
@pytest.mark.parametrize(("metric", "options"), KINDS, ids=str)
def test_counts_are_those_of_plain_loops(metric, options, channels, rng):
    """Series that end before, at and after the end of a word, in bands of all widths."""
    for lengths, window in (
        ([1, 2, 7, 63, 64, 65], None),
        ([64, 65, 66], 0),
        ([1, 2, 5], 4),
        ([63, 67, 70], 7),
        ([100, 129, 131], 31),
        ([100, 129, 131], 32),
        ([64, 70], 63),
        ([128, 140], 65),
    ):
        X, Y = (steps(rng, count, channels, lengths) for count in (2, 2))
        left, right, warping = sides_of(metric, X, Y, window=window, **options)
        out = counted(left, right, warping)
        assert np.isinf(out[:, 2:]).all()
        found = settled(warping, out[:, :2], left, right)
        wanted = [
            [
                warping.plain(x[:, :n], y[:, :m])
                for y, m in zip(right.values, right.lengths, strict=True)
            ]
            for x, n in zip(left.values, left.lengths, strict=True)
        ]
        assert_array_equal(found, wanted)


@pytest.mark.parametrize("radius", [7, 33])
@pytest.mark.parametrize(("metric", "options"), KINDS[:2], ids=str)
def test_no_path_leaves_the_band(metric, options, radius, rng):
    """The same points some places on: the way that matches them is just outside, on either side."""
    x = rng.permutation(200.0 * np.arange(150))
    X = [x[None], np.roll(x, radius + 1)[None]]
    left, right, warping = sides_of(metric, X, X[::-1], window=radius, **options)
    found = settled(warping, counted(left, right, warping)[:, :2], left, right)
    wanted = [[warping.plain(a, b) for b in right.values] for a in left.values]
    assert_array_equal(found, wanted)
    wider = sides_of(metric, X, X[::-1], window=radius + 1, **options)[2]
    assert wider.plain(X[0], X[1]) < found[0, 0] and wider.plain(X[1], X[0]) < found[1, 1]


def test_it_stops_when_it_is_told_to(rng):
    left, right, warping = sides_of("edr", steps(rng, 1, 1, [9]), steps(rng, 1, 1, [9]))
    assert np.isnan(counted(left, right, warping, np.ones(1, np.uint8))).all()


@pytest.mark.slow
@pytest.mark.parametrize(("metric", "options"), KINDS, ids=str)
def test_compiled_counts_are_those_of_the_certificate(metric, options, rng):
    for channels, window in ((1, None), (2, 0.2), (1, 0), (1, 40)):
        X, Y = (steps(rng, count, channels, [50, 64, 90, 200]) for count in (40, 37))
        left, right, warping = sides_of(metric, X, Y, window=window, **options)
        work = DTWMatrix(left, right, warping)
        with replace_kernels(always=False):
            found = run(work, engine="numba")
        i, j = np.indices(found.shape).reshape(2, -1)
        pairs = find_engine("numba")._certified(work, np.column_stack([i, j]), GO_ON)
        assert_array_equal(found, pairs.reshape(found.shape))
