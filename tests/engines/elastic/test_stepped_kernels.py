"""Policies in the kernels of the GPU: strips, bands, groups of lanes, in float64 and float32.

They are compared with the certificate, and that with plain code, which the other tests of the
family compare with the papers.
"""

from __future__ import annotations

import numpy as np
import pytest
import reference
from elastic_cases import OPTIONS, drawn, sides_of
from numpy.testing import assert_array_equal

from skts.engines import DTWMatrix, DTWNeighbors, DTWPairs, run
from skts.engines.core.certify import Rescaling
from skts.engines.cupy.elastic.cells import policy_of
from skts.engines.cupy.elastic.programs import BandKernel, DTWKernel, NarrowKernel, choose_narrow
from skts.engines.families.elastic.warping import settled

pytestmark = pytest.mark.gpu

#: Compiled by default; the others are, where compiling is quick, by the slow test.
FEW = [("erp", {"gap": 1.5}), ("edr", {}), ("twe", {"nu": 0.25, "lmbda": 0.5}), ("wdtw", {})]
LENGTHS = [1, 2, 31, 127, 128, 129, 270]


def kernels_of(warping, type, channels):
    """Strips of 128 columns, and narrow groups, several of which share a warp."""
    cell, band = policy_of(warping).of(type), warping.window is not None
    yield DTWKernel(type, 4, channels, True, cell, band, False, 32), LENGTHS
    yield DTWKernel(type, 4, channels, False, cell, band, False, 4), [1, 2, 15, 16]
    yield DTWKernel(type, 20, channels, False, cell, band, False, 2), [3, 19, 20, 21, 40]
    if policy_of(warping).in_bands and band:
        yield BandKernel(type, 4, channels, cell, 32), [3, 19, 64, 90]


def check_narrow(metric, options, rng, channels, sizes, window):
    """Threads that own bands, series of one length each: bits in float64, the bound in float32."""
    import cupy

    from skts.engines.cupy.elastic import dtw

    X, Y = (
        drawn(rng, "any", count, channels, [n]) for count, n in zip((3, 70), sizes, strict=True)
    )
    left, right, warping = sides_of(metric, X, Y, window=window, **options)
    i, j = np.indices((3, 70)).reshape(2, -1)
    items = cupy.asarray(np.column_stack([i, j]).astype(np.int32))
    exact = dtw.certify(dtw.upload(left), dtw.upload(right), items, warping, budget=10**8).get()
    exact = settled(warping, exact, left.take(i), right.take(j)).reshape(3, 70)
    for a, b, wanted in ((left, right, exact), (right, left, exact.T)):
        rows, cols = dtw.upload(a), dtw.upload(b)
        kernel = choose_narrow("double", channels, rows.length, cols.length, warping)
        found = dtw._in_bands(rows, cols, kernel, warping, root=True).get()
        assert_array_equal(found, wanted)
        if not warping.bounded:
            continue
        search = DTWNeighbors(a, b, 1, warping=warping)
        rows, cols = (dtw.rescale(side, search.rescaling) for side in (rows, cols))
        kernel = choose_narrow("float", channels, rows.length, cols.length, warping)
        scaled = warping.rescaled(search.rescaling)
        found = dtw._in_bands(rows, cols, kernel, scaled, root=True).get()
        scale, bound = search.scale_and_bound(rows.error + cols.error)
        estimates = found.astype(np.float64) / scale
        assert (bound.lower(estimates) <= wanted).all()
        assert (wanted <= bound.upper(estimates)).all()


@pytest.mark.slow
@pytest.mark.parametrize("sizes", [(37, 34), (9, 9)])
@pytest.mark.parametrize(("metric", "options"), OPTIONS, ids=str)
def test_narrow_bands(metric, options, rng, sizes):
    for channels in (1, 2)[: 1 if metric == "msm" else 2]:
        for window in (0, 2, 5):
            check_narrow(metric, options, rng, channels, sizes, window)


@pytest.mark.parametrize(("metric", "options"), [("erp", {}), ("edr", {})], ids=str)
def test_narrow_under_a_policy_of_each_kind(metric, options, rng):
    """Borders, and numbers of each series; those that look back are in the slow test."""
    check_narrow(metric, options, rng, 1, (11, 9), 2)


def check_kernels(metric, options, rng, channels, window):
    """All instances, on all pairs of two sets: bits in float64, the bound in float32."""
    import cupy

    from skts.engines.cupy.elastic import dtw

    warping = sides_of(metric, [np.zeros(3)], [np.zeros(3)], window=window, **options)[2]
    for type in ("double", "float") if warping.bounded else ("double",):
        for kernel, lengths in kernels_of(warping, type, channels):
            if metric == "wdtw" and type == "float":
                lengths = lengths[-1:]  # weights that differ by pairs are not searched in float
            X, Y = (drawn(rng, "any", count, channels, lengths) for count in (5, 11))
            left, right, warping = sides_of(metric, X, Y, window=window, **options)
            kernel = kernel._replace(cell=policy_of(warping).of(type))
            reach = warping.largest_radius(left.lengths, right.lengths)
            if isinstance(kernel, BandKernel) and 2 * reach >= kernel.columns * kernel.group:
                continue
            i, j = np.indices((5, 11)).reshape(2, -1)
            items = cupy.asarray(np.column_stack([i, j]).astype(np.int32))
            rows, cols = dtw.upload(left), dtw.upload(right)
            costs = dtw.certify(rows, cols, items, warping, budget=10**8).get()
            exact = settled(warping, costs, left.take(i), right.take(j)).reshape(5, 11)
            asked = {"reach": reach, "root": True, "budget": 10**8, "kernel": kernel}
            if type == "double":
                found = dtw.distances(rows, cols, warping, **asked).get()
                assert_array_equal(found, exact)
                continue
            search = DTWNeighbors(left, right, 1, warping=warping)
            scaling = search.rescaling
            rows, cols = dtw.rescale(rows, scaling), dtw.rescale(cols, scaling)
            found = dtw.distances(rows, cols, warping.rescaled(scaling), **asked).get()
            scale, bound = search.scale_and_bound(rows.error + cols.error)
            estimates = found.astype(np.float64) / scale
            assert (bound.lower(estimates) <= exact).all()
            assert (exact <= bound.upper(estimates)).all()
            assert np.abs(estimates - exact).max() <= 1e-4 * (1 + exact.max())


@pytest.mark.parametrize("window", [None, 20])
@pytest.mark.parametrize(("metric", "options"), FEW, ids=str)
def test_kernels_have_the_bits_of_the_certificate(metric, options, rng, window):
    check_kernels(metric, options, rng, 1, window)


@pytest.mark.parametrize(("metric", "channels"), [("lcss", 1), ("edr", 2)])
def test_edits_of_float_points_are_counted(metric, channels, rng):
    """Points that float holds, and differences of epsilon and of one number of float more."""
    import cupy

    from skts.engines.cupy.elastic import dtw

    n, window = 130, 2
    above = float(np.nextafter(np.float32(0.3), np.float32(1)))
    for epsilon, values in (
        (float(np.float32(0.3)), [0.0, float(np.float32(0.3)), above, -1.5]),
        (0.0, [0.0, 2.0**-60, 1.0, float(np.nextafter(np.float32(1), np.float32(2)))]),
        (3.0e20, [0.0, 3.0e20, 7.0, -3.0e20]),
    ):
        X, Y = (list(rng.choice(values, (count, channels, n))) for count in (2, 3))
        for band, type in ((None, DTWKernel), (window, NarrowKernel)):
            left, right, warping = sides_of(metric, X, Y, window=band, epsilon=epsilon)
            i, j = np.indices((2, 3)).reshape(2, -1)
            items = cupy.asarray(np.column_stack([i, j]).astype(np.int32))
            rows, cols = dtw.upload(left), dtw.upload(right)
            costs = dtw.certify(rows, cols, items, warping, budget=10**8).get()
            exact = settled(warping, costs, left.take(i), right.take(j)).reshape(2, 3)
            rows, cols = (dtw.rescale(side, Rescaling()) for side in (rows, cols))
            cell = policy_of(warping).of("float")
            if type is NarrowKernel:
                kernel = NarrowKernel("float", 2 * window + 1, channels, cell)
                found = dtw._in_bands(rows, cols, kernel, warping, root=False)
            else:
                kernel = DTWKernel("float", 4, channels, True, cell, False, False, 32)
                asked = {"reach": n, "root": False, "budget": 10**8, "kernel": kernel}
                found = dtw.distances(rows, cols, warping, **asked)
            assert 0 < exact.min() and exact.max() < 1
            assert_array_equal(found.get(), exact.astype(np.float32))


@pytest.mark.parametrize("ahead", [False, True])
def test_paths_along_the_edge_of_a_band_go_on_in_the_next_strip(rng, ahead):
    """The only path without cost is at the edge of the band at all ends of strips."""
    from skts.engines.cupy.elastic import dtw

    n, window = 270, 20
    shape = rng.normal(size=n)
    shape[: window + 1], shape[-window - 1 :] = 1.0, 2.0
    pair = [shape[None], np.concatenate([shape[window:], np.full(window, 2.0)])[None]]
    left, right, warping = sides_of("wdtw", *([x] for x in pair[:: -1 if ahead else 1]), window=20)
    cell = policy_of(warping).of("double")
    kernel = DTWKernel("double", 4, 1, True, cell, True, False, 32)
    asked = {"reach": window, "root": True, "budget": 10**8, "kernel": kernel}
    found = dtw.distances(dtw.upload(left), dtw.upload(right), warping, **asked)
    assert found.get() == 0


@pytest.mark.slow
@pytest.mark.parametrize("channels", [1, 2])
@pytest.mark.parametrize("window", [None, 0, 20, 0.4])
@pytest.mark.parametrize(("metric", "options"), OPTIONS, ids=str)
def test_all_kernels_have_the_bits_of_the_certificate(metric, options, rng, window, channels):
    if metric == "msm" and channels == 2:
        pytest.skip("channels go one by one")
    check_kernels(metric, options, rng, channels, window)


@pytest.mark.slow
@pytest.mark.parametrize("window", [None, 9])
@pytest.mark.parametrize(("metric", "options"), OPTIONS, ids=str)
def test_the_certificate_has_the_bits_of_the_cpu(metric, options, rng, window):
    """Pairs whose antidiagonals take several turns of a block, one channel and two."""
    for channels in (1, 2):
        X, Y = (drawn(rng, "any", count, channels, [150, 160, 7]) for count in (3, 4))
        left, right, warping = sides_of(metric, X, Y, window=window, **options)
        pairs = np.indices((3, 4)).reshape(2, -1).T.copy()
        found = run(DTWPairs(left, right, pairs, warping), engine="cupy")
        plain = [
            warping.plain(reference.unpadded(left, a), reference.unpadded(right, b))
            for a, b in pairs
        ]
        assert_array_equal(found, plain)
        assert_array_equal(run(DTWMatrix(left, right, warping), engine="cupy").ravel(), found)
