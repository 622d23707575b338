"""Sizes beyond 2^31 on the GPU: points, pairs, cells and threads that 32 bits do not count.

Each looks first whether it finds the memory, up to 60 GB. Data are drawn on the device; a sample of
each answer, the last entries among them, is compared with plain computations on the host.
"""

from __future__ import annotations

import numpy as np
import pytest
import reference
import reference_sbd
from numpy.testing import assert_allclose, assert_array_equal

from skts.engines import (
    ConcatenatedSeries,
    Criterion,
    DTWMatrix,
    Join,
    LongSeries,
    Series,
    ShapeletSearch,
    SubsequenceMatches,
    SubsequenceNeighbors,
    Warping,
    run,
)

pytestmark = [pytest.mark.gpu, pytest.mark.slow]

GB = 10**9


@pytest.fixture
def cp():
    """CuPy, its memory given back before and after."""
    cupy = pytest.importorskip("cupy")
    pool = cupy.get_default_memory_pool()
    pool.free_all_blocks()
    yield cupy
    pool.free_all_blocks()


def needs(cp, size):
    """Skip where the device has less memory free."""
    free, _ = cp.cuda.Device().mem_info
    if free < size:
        pytest.skip(f"needs {size / GB:.0f} GB of device memory, {free / GB:.0f} GB are free")


def drawn_series(cp, n_series, n_timepoints, dtype):
    """Series of one length, drawn on the device."""
    from skts.engines.cupy.elastic.dtw import PAD, DeviceSeries

    buffer = cp.zeros(n_series * n_timepoints + 2 * PAD, dtype)
    points = buffer[PAD : buffer.size - PAD]
    generator = cp.random.default_rng(n_series)
    for start in range(0, points.size, 2**27):
        stop = min(start + 2**27, points.size)
        points[start:stop] = generator.standard_normal(stop - start, dtype=dtype)
    lengths = cp.full(n_series, n_timepoints, np.int32)
    return DeviceSeries(buffer, lengths, (n_series, 1, n_timepoints), n_timepoints)


def host_row(series, index):
    """One of these series, in float64 on the host."""
    width = series.shape[2]
    return series.values[index * width : (index + 1) * width].get().astype(np.float64)


@pytest.mark.parametrize("window", [None, 20], ids=["no band", "band"])
def test_more_points_of_series_than_2_to_31(cp, window):
    """Rows and columns: 2^22 + 9 series of 516 points are 2^31 + 17 * 2^20 points."""
    from skts.engines.cupy.elastic import dtw

    needs(cp, 40 * GB)
    many, few = drawn_series(cp, 2**22 + 9, 516, np.float32), drawn_series(cp, 3, 516, np.float32)
    assert many.values.size > 2**31
    warping = Warping(window=window)
    sample = [0, 1, 2**21, 2**22 - 1, 2**22, 2**22 + 8]
    expected = reference.pairwise_dtw(
        [host_row(many, i) for i in sample], [host_row(few, j) for j in range(3)], window=window
    )
    options = {"reach": int(warping.radius(516, 516)), "root": True, "budget": GB}
    for rows, cols in ((many, few), (few, many)):
        found = dtw.distances(rows, cols, warping, **options)
        found = found[sample].get() if rows is many else found[:, sample].get().T
        assert_allclose(found, expected, rtol=1e-4)


def test_more_certified_points_than_2_to_31(cp):
    """The same in float64, pair by pair."""
    from skts.engines.cupy.elastic import dtw

    needs(cp, 30 * GB)
    many, few = drawn_series(cp, 2**22 + 9, 516, np.float64), drawn_series(cp, 3, 516, np.float64)
    assert many.values.size > 2**31
    sample = [0, 1, 2**21, 2**22 - 1, 2**22, 2**22 + 8]
    items = np.array([[i, j] for i in sample for j in range(3)], np.int32)
    expected = [reference.dtw(host_row(many, i), host_row(few, j)) for i, j in items.tolist()]
    for rows, cols, pairs in ((many, few, items), (few, many, items[:, ::-1].copy())):
        found = dtw.certify(rows, cols, cp.asarray(pairs), Warping(), root=True, budget=GB)
        assert_array_equal(found.get(), expected)


def test_more_listed_pairs_than_2_to_30(cp):
    """Places of the two numbers of a pair are beyond 2^31."""
    from skts.engines.cupy.elastic import dtw

    needs(cp, 40 * GB)
    rows, cols = drawn_series(cp, 1000, 4, np.float64), drawn_series(cp, 1000, 4, np.float64)
    n_pairs = 2**30 + 77
    pairs = cp.empty((n_pairs, 2), np.int32)
    pairs[:, 0] = cp.arange(n_pairs, dtype=np.int32) % 1000
    pairs[:, 1] = cp.arange(n_pairs, dtype=np.int32) // 1000 % 1000
    found = dtw.certify(rows, cols, pairs, Warping(), root=True, budget=GB)
    matrix = dtw.distances(rows, cols, Warping(), reach=8, root=True, budget=GB).get()
    for i in (0, 999, 2**29 + 5, 2**30 - 1, 2**30, n_pairs - 1):
        x, y = i % 1000, i // 1000 % 1000
        assert float(found[i]) == matrix[x, y]
        assert_allclose(matrix[x, y], reference.dtw(host_row(rows, x), host_row(cols, y)))
    at = np.arange(2**30, n_pairs)
    assert_array_equal(found[2**30 :].get(), matrix[at % 1000, at // 1000 % 1000])


@pytest.mark.parametrize("kind", ["dtw", "band"])
def test_more_threads_than_32_bits_count(cp, kind):
    """2^27 pairs in groups of 32 lanes would be 2^32 threads."""
    from skts.engines.cupy.elastic import dtw
    from skts.engines.cupy.elastic.programs import BandKernel, choose_dtw, kernels

    needs(cp, 8 * GB)
    warping = Warping() if kind == "dtw" else Warping(window=30)
    reach = int(warping.radius(100, 100))
    kernel, _ = choose_dtw("float", 1, 100, 100, warping, reach, 100)
    kernel = kernel._replace(group=32)
    assert isinstance(kernel, BandKernel) == (kind == "band")
    assert kernel.name in kernels()[kernel.file]
    rows, cols = (
        drawn_series(cp, 2**14 + 1, 100, np.float32),
        drawn_series(cp, 2**14, 100, np.float32),
    )
    found = dtw.distances(rows, cols, warping, reach=reach, root=True, budget=GB, kernel=kernel)
    assert found.size >= 2**28
    for i, j in ((0, 0), (2**13, 1), (2**14, 2**14 - 1), (12345, 6789)):
        expected = reference.dtw(host_row(rows, i), host_row(cols, j), window=warping.window)
        assert_allclose(float(found[i, j]), expected, rtol=1e-4)
    assert bool(cp.isfinite(found).all())


def test_a_matrix_of_more_than_2_to_31_distances(cp, rng):
    """17 GB of distances on the host, tile by tile."""
    needs(cp, 30 * GB)
    lengths = (2**15 + 3, 2**16 + 5)
    sides = [Series(rng.normal(size=(n, 1, 4)), np.full(n, 4)) for n in lengths]
    found = run(DTWMatrix(*sides), engine="cupy")
    assert found.size > 2**31
    for i, j in ((0, 0), (2**15 + 2, 2**16 + 4), (2**15 + 2, 0), (20000, 60000), (1, 2**16 + 4)):
        expected = reference.dtw(sides[0].values[i], sides[1].values[j])
        assert_allclose(found[i, j], expected, rtol=1e-14)


def windows_of(points, length):
    """z-normalised windows of a series of noise."""
    windows = np.lib.stride_tricks.sliding_window_view(points, length)
    mean, deviation = windows.mean(axis=1), windows.std(axis=1)
    return (windows - mean[:, None]) / deviation[:, None]


@pytest.mark.parametrize("n_neighbors", [1, 3])
def test_a_join_of_more_than_2_to_31_pairs(cp, rng, n_neighbors):
    needs(cp, 8 * GB)
    n, length, exclusion = 2**17 + 333, 24, 6
    points = rng.normal(size=n)
    found = run(
        Join(ConcatenatedSeries.of([points]), None, length, exclusion, n_neighbors), engine="cupy"
    )
    windows = windows_of(points, length)
    assert len(windows) * (len(windows) - 1) // 2 > 2**31
    for i in (0, 1, n // 2, 99_999, len(windows) - 1):
        distances = np.sqrt(((windows - windows[i]) ** 2).sum(axis=1))
        distances[max(0, i - exclusion) : i + exclusion + 1] = np.inf
        order = np.argsort(distances, kind="stable")[:n_neighbors]
        assert_array_equal(np.ravel(found.indices[i]), order)
        assert_allclose(np.ravel(found.distances[i]), distances[order], rtol=1e-9)


def test_more_values_of_spectra_than_2_to_31(cp):
    """2^19 + 5 pairs of series, each with a transform of 4,096 complex numbers: 34 GB."""
    from skts.engines.cupy.kshape import sbd

    needs(cp, 60 * GB)
    n_series, length = 2**20 + 9, 2000
    values = cp.empty((n_series, 1, length))
    generator = cp.random.default_rng(5)
    for start in range(0, n_series, 2**16):
        part = values[start : start + 2**16]
        part[...] = generator.standard_normal(part.shape)
    norms = cp.concatenate(
        [cp.sqrt((part**2).sum(axis=(1, 2))) for part in cp.array_split(values, 64)]
    )
    centers = values[[3, n_series - 1]].copy()
    shapes = sbd.DeviceShapes(values, norms)
    spectra = sbd.spectra(shapes, paired=True)
    assert spectra.values.size > 2**31
    given = sbd.DeviceShapes(centers, norms[[3, n_series - 1]].copy())
    found, shifts = sbd.distances(
        spectra, norms, sbd.spectra(given, paired=False), given.norms, cp.zeros(2), length
    )
    some = [0, 3, 2**19, 2**20 - 1, 2**20, n_series - 2, n_series - 1]
    rows = values[some].get()
    distances, expected = pairwise_by_transform(rows, centers.get())
    assert_allclose(found[some].get(), distances, atol=1e-12)
    assert_array_equal(shifts[some].get(), expected)
    assert float(found[3, 0]) < 1e-12 and float(found[n_series - 1, 1]) < 1e-12


def pairwise_by_transform(X, C):
    """Shape-based distances by NumPy's transforms; the definition, on a few, agrees."""
    length = X.shape[2]
    distances = np.empty((len(X), len(C)))
    shifts = np.empty((len(X), len(C)), np.int64)
    for i, x in enumerate(X[:, 0]):
        for j, c in enumerate(C[:, 0]):
            product = np.fft.rfft(c, 2 * length) * np.fft.rfft(x, 2 * length).conj()
            values = np.roll(np.fft.irfft(product, 2 * length), length - 1)[: 2 * length - 1]
            best = int(np.argmax(values))
            distances[i, j] = 1 - values[best] / np.linalg.norm(x) / np.linalg.norm(c)
            shifts[i, j] = best - (length - 1)
    assert_allclose(reference_sbd.sbd(X[0], C[0])[0], distances[0, 0], atol=1e-12)
    return distances, shifts


def test_shapelets_of_more_than_2_to_31_pairs_of_windows(cp, rng):
    needs(cp, 20 * GB)
    n, width, length = 420, 256, 30
    values = rng.normal(size=(n, 1, width)).cumsum(axis=2)
    labels = rng.integers(0, 2, n)
    values[labels == 1, 0, 100:130] += 6 * np.sin(np.arange(30.0))
    series, windows = Series(values, np.full(n, width)), width - length + 1
    assert (n * windows) ** 2 // 2 > 2**31
    work = ShapeletSearch(series, np.arange(n), (length,), Criterion(labels, np.ones(2), 1))
    found, expected = (run(work, engine=engine) for engine in ("cupy", "numba"))
    assert found[1:6] == expected[1:6]
    assert found.cut.gain == expected.cut.gain
    assert_array_equal(found.distances, expected.distances)


def test_matches_of_more_than_2_to_31_windows(cp, rng):
    needs(cp, 20 * GB)
    n, width, n_queries, length = 2**14 + 3, 1100, 150, 40
    series = Series(rng.normal(size=(n, 1, width)), np.full(n, width))
    queries = tuple(rng.normal(size=(n_queries, length)))
    assert n * (width - length + 1) * n_queries > 2**31
    found = run(SubsequenceMatches(queries, series, True, None), engine="cupy")
    for s in (0, n // 2, n - 1):
        windows = windows_of(series.values[s, 0], length)
        for q in (0, 77, n_queries - 1):
            query = (queries[q] - queries[q].mean()) / queries[q].std()
            distances = np.sqrt(((windows - query) ** 2).sum(axis=1))
            assert found.starts[q, s] == np.argmin(distances)
            assert_allclose(found.distances[q, s], distances.min(), rtol=1e-9)


@pytest.mark.parametrize("window", [None, 0.1])
def test_a_search_of_more_than_2_to_31_cells(cp, rng, window):
    """Without normalisation nothing is out of range, and hardly anything is ruled out early."""
    needs(cp, 20 * GB)
    n, length = 2**21 + 77, 128
    points, query = rng.normal(size=n), rng.normal(size=length)
    points[n - length :] = query + 0.1 * rng.normal(size=length)  # the last window matches best
    work = SubsequenceNeighbors(
        (query,), LongSeries((points,)), Warping(window=window), n_neighbors=5, normalize=False
    )
    (found,) = run(work, engine="cupy")
    starts = found.positions[:, -1]
    assert starts[0] == n - length
    exact = [reference.dtw(query, points[s : s + length], window=window) for s in starts]
    assert_allclose(found.distances, exact, rtol=1e-12)
    far = [s for s in rng.integers(0, n - length, 40) if np.abs(starts - s).min() > length]
    others = [reference.dtw(query, points[s : s + length], window=window) for s in far]
    assert min(others) > found.distances[-1]
