"""Arrays in the memory of a GPU: taken where they lie, or fetched once; answers are NumPy."""

from __future__ import annotations

import pickle
import sys
from types import ModuleType, SimpleNamespace

import numpy as np
import pytest
from numpy.testing import assert_array_equal

import skts.engines.cupy
from skts import (
    DiscordDetector,
    DTWCondenser,
    DTWKMeans,
    DTWKMedoids,
    DTWNearestNeighbor,
    KShapeClusterer,
    MotifFinder,
    ShapeletTreeClassifier,
    SubsequenceMonitor,
    SubsequenceSearch,
    config_context,
)
from skts.averages import dtw_barycenter, soft_dtw_barycenter
from skts.base import check_series, check_univariate
from skts.engines import Series, find_engine
from skts.exceptions import EngineNotAvailableError
from skts.metrics import (
    dog_keeper,
    dtw,
    pairwise_distances,
    pairwise_dtw,
    pairwise_sbd,
    pairwise_soft_dtw,
    silhouette_samples,
    subsequence_distance,
)
from skts.motifs import (
    consensus_motif,
    discords,
    distance_profile,
    matrix_profile,
    motif_chains,
    motifs,
    mpdist,
    segment,
)
from skts.neighbors import dtw_window_search


class OnGpu:
    """An array that only the interface of CUDA leads to, as another library's is."""

    def __init__(self, array):
        self.array = np.asarray(array)
        self.shape, self.ndim, self.dtype = self.array.shape, self.array.ndim, self.array.dtype

    def __len__(self):
        return len(self.array)

    def __array__(self, *args, **kwargs):
        raise TypeError("implicit conversion to a NumPy array")

    @property
    def __cuda_array_interface__(self):
        return {
            "shape": self.shape,
            "typestr": self.dtype.str,
            "data": (self.array.ctypes.data, False),
            "version": 3,
        }


class Device:
    """A device that is always the current one."""

    id = 0

    def __enter__(self):
        return self

    def __exit__(self, *error):
        return None


class DeviceArray(np.ndarray):
    """An array of the stand-in of CuPy; counts what is fetched."""

    device = Device()
    fetched: list = []

    def get(self, order="C"):
        DeviceArray.fetched.append(self.shape)
        return np.array(self, order=order, subok=False)


@pytest.fixture
def stand_in(monkeypatch):
    """CuPy, as far as validation needs it, on the CPU; returns the list of what is fetched."""
    fake = ModuleType("cupy")

    def asarray(array):
        inner = array.array if isinstance(array, OnGpu) else array
        return inner.view(DeviceArray)

    def ascontiguousarray(array, dtype):
        return np.ascontiguousarray(array, dtype).view(DeviceArray)

    fake.asarray, fake.ascontiguousarray, fake.ndarray = asarray, ascontiguousarray, DeviceArray
    stream = SimpleNamespace(synchronize=lambda: None)
    fake.cuda = SimpleNamespace(Device=Device, get_current_stream=lambda: stream)
    monkeypatch.setitem(sys.modules, "cupy", fake)
    monkeypatch.delitem(sys.modules, "skts.engines.cupy.series", raising=False)
    monkeypatch.delattr(skts.engines.cupy, "series", raising=False)
    DeviceArray.fetched.clear()
    yield DeviceArray.fetched
    sys.modules.pop("skts.engines.cupy.series", None)
    vars(skts.engines.cupy).pop("series", None)


@pytest.mark.parametrize("shape", [(5, 8), (5, 2, 8)])
@pytest.mark.parametrize("dtype", [np.float64, np.float32, np.int16, bool])
def test_series_stay_there_until_the_host_asks(stand_in, rng, shape, dtype):
    X = (4 * rng.normal(size=shape)).astype(dtype)
    series, expected = check_series(OnGpu(X)), check_series(X)
    some = series.take(np.array([3, 1])).take(slice(1, None))
    assert (len(series), series.n_channels, series.n_timepoints) == expected.shape
    assert series.extent == expected.extent
    for limit in (2.0, 1e-3):
        assert series.any_below(limit) == expected.any_below(limit)
    assert stand_in == []
    assert_array_equal(series.values, expected.values)
    assert_array_equal(series.lengths, expected.lengths)
    assert series.values is series.values
    assert stand_in == [expected.shape]
    assert_array_equal(series.take(slice(2)).values, expected.values[:2])
    assert stand_in == [expected.shape]
    assert_array_equal(some.values, expected.values[[1]])
    assert not series.values.flags.writeable


def test_a_private_copy_travels_as_numpy(stand_in, rng):
    X = rng.normal(size=(5, 8))
    series = check_series(OnGpu(X)).freeze()
    before, X[:] = X.copy(), 0.0
    assert stand_in == []
    travelled = pickle.loads(pickle.dumps(series))
    assert type(travelled) is Series
    assert_array_equal(travelled.values[:, 0], before)


@pytest.mark.parametrize(
    "X",
    [
        np.zeros(5),
        np.zeros((0, 5)),
        np.zeros((5, 0)),
        np.zeros((2, 0, 3)),
        np.zeros((2, 1, 3, 1)),
        np.zeros((2, 3), complex),
        np.array([[1.0, np.nan, 2.0]]),
        np.array([[1.0, np.inf]]),
        np.array([[1.0, -np.inf]]),
        np.array([[1.0, 1e200]]),
        np.array([[1.0, 2.0], [1e-200, 0.0]]),
        np.array([[np.nan, np.nan]]),
    ],
    ids=lambda X: f"{X.shape}-{X.dtype}-{X.ravel()[:2]}",
)
def test_what_is_wrong_is_said_in_the_same_words(stand_in, X):
    with pytest.raises(ValueError) as expected:
        check_series(X)
    with pytest.raises(ValueError) as found:
        check_series(OnGpu(X))
    assert str(found.value) == str(expected.value)


def test_padding_is_measured_on_the_host(stand_in):
    X = np.array([[1.0, 2.0, np.nan], [1.0, 2.0, 3.0]])
    series = check_series(OnGpu(X))
    assert_array_equal(series.lengths, [2, 3])
    assert_array_equal(series.values[:, 0], [[1, 2, 0], [1, 2, 3]])
    with pytest.raises(ValueError, match="Series 1 of X has 3 time points"):
        check_series(OnGpu(X), equal_length=True)


def test_lists_and_lines_are_fetched(stand_in):
    series = check_series([OnGpu(np.arange(3.0)), np.arange(2.0)])
    assert_array_equal(series.lengths, [3, 2])
    (one,) = check_univariate(OnGpu(np.arange(4.0)[np.newaxis]))
    assert_array_equal(one, np.arange(4.0))
    assert stand_in == [(3,), (1, 4)]


def test_without_cupy_the_way_out_is_named(monkeypatch):
    monkeypatch.setitem(sys.modules, "cupy", None)
    monkeypatch.delitem(sys.modules, "skts.engines.cupy.series", raising=False)
    monkeypatch.delattr(skts.engines.cupy, "series", raising=False)
    X = OnGpu(np.zeros((3, 4)))
    for use in (check_series, check_univariate, pairwise_dtw, KShapeClusterer(2).fit):
        with pytest.raises(EngineNotAvailableError, match="X lies in the memory of a GPU, and rea"):
            use(X)


def walks(n, length, seed=0):
    return np.random.default_rng(seed).normal(size=(n, length)).cumsum(axis=1)


def uses(engine):
    """One call of each estimator and function: a function of how to hand arrays over."""
    X, Q, y = walks(24, 20), walks(5, 20, 1), np.arange(24) % 2
    x, z = walks(2, 150, 2)

    def fitted(model, *answers):
        def use(give):
            model.set_params(engine=engine).fit(give(X), y)
            return [getattr(model, name)(give(Q)) for name in answers]

        return use

    def subsequences(give):
        model = SubsequenceSearch(engine=engine).fit(give(x[np.newaxis]))
        return model.kneighbors(give(z[np.newaxis, :30]), 2)

    def stream(give):
        model = SubsequenceMonitor(9.0, engine=engine).fit(give(X[:2, :9].copy()))
        distances, starts = model.update(give(z), final=True)
        return [*distances, *starts]

    def patterns(give):
        model = MotifFinder(12, engine=engine).fit(give(x[np.newaxis])).update(give(z))
        return [model.profile_, model.transform(give(x[np.newaxis]))]

    on = {"engine": engine}
    return {
        "neighbors": fitted(DTWNearestNeighbor(2), "kneighbors", "predict", "transform"),
        "channels": lambda give: (
            DTWNearestNeighbor(**on).fit(give(X.reshape(8, 3, 20)), y[:8]).kneighbors()
        ),
        "k-shape": fitted(KShapeClusterer(2, random_state=0, n_init=1), "predict", "transform"),
        "k-medoids": fitted(DTWKMedoids(2, random_state=0), "predict", "transform"),
        "k-means": fitted(DTWKMeans(2, random_state=0), "predict", "transform"),
        "barycenter": lambda give: list(dtw_barycenter(give(X), init=give(x[:9]), **on)[:1]),
        "soft average": lambda give: [
            soft_dtw_barycenter(give(X[:4]), init=give(x[:9]), **on).average
        ],
        "elastic": lambda give: [
            pairwise_distances(give(X), give(Q), metric=metric, **on)
            for metric in ("dtw", "msm", "erp", "edr", "ddtw")
        ],
        "soft": lambda give: [pairwise_soft_dtw(give(Q), **on)],
        "silhouettes": lambda give: [silhouette_samples(give(X), y, **on)],
        "windows": lambda give: [dtw_window_search(give(X), y, **on).errors],
        "tree": fitted(
            ShapeletTreeClassifier(min_length=5, max_length=7, max_depth=2), "predict", "transform"
        ),
        "condenser": lambda give: DTWCondenser(n_prototypes=4, **on).fit_resample(give(X), give(y)),
        "search": subsequences,
        "stream": stream,
        "motifs": patterns,
        "anomalies": lambda give: [
            DiscordDetector(12, engine=engine).fit(give(X)).score_points(give(Q))
        ],
        "pairwise_dtw": lambda give: [pairwise_dtw(give(X), **on), pairwise_dtw(give(X), Q, **on)],
        "pairwise_sbd": lambda give: [pairwise_sbd(give(X), **on)],
        "dtw": lambda give: [np.float64(f(give(x), give(z), **on)) for f in (dtw, dog_keeper)],
        "subsequence": lambda give: np.array(subsequence_distance(give(x[:9]), give(z), **on)),
        "profile": lambda give: matrix_profile(give(x), give(z), window=9, **on).distances,
        "distances": lambda give: [distance_profile(give(x[:9]), give(X), **on)],
        "regimes": lambda give: [segment(give(x), window=9, separation=9, **on).curve],
        "mpdist": lambda give: [np.float64(mpdist(give(x), give(z), window=9, **on))],
        "chains": lambda give: [one.distances for one in motif_chains(give(x), window=9, **on)],
        "consensus": lambda give: [consensus_motif(give(X), window=9, **on).values],
        "functions": lambda give: [
            np.array([found.distance for found in f(give(x), window=9, **on)])
            for f in (motifs, discords)
        ],
    }


@pytest.mark.parametrize("name", uses("numba"))
def test_everything_takes_them(stand_in, name):
    use = uses("numba")[name]
    for found, expected in zip(use(OnGpu), use(np.asarray), strict=True):
        assert type(found) is type(expected)
        assert_array_equal(found, expected)
    assert stand_in


@pytest.fixture
def cupy():
    missing = find_engine("cupy").available()
    if missing is not None:
        pytest.skip(missing)
    import cupy

    return cupy


@pytest.mark.gpu
@pytest.mark.parametrize("engine", ["numba", "cupy"])
@pytest.mark.parametrize("name", uses("numba"))
def test_everything_takes_cupy_arrays(cupy, name, engine):
    use = uses(engine)[name]
    try:
        answers = use(np.asarray)
    except NotImplementedError as reason:
        pytest.skip(str(reason))
    for found, expected in zip(use(cupy.asarray), answers, strict=True):
        assert type(found) is type(expected)
        assert_array_equal(found, expected)


@pytest.mark.gpu
@pytest.mark.parametrize("precision", ["auto", "float64"])
@pytest.mark.parametrize("window", [None, 0.1])
def test_work_under_warping_fetches_no_series(cupy, monkeypatch, precision, window):
    X, Q, y = walks(300, 61), walks(40, 61, 1), np.arange(300) % 3
    model = DTWNearestNeighbor(3, window=window, precision=precision, engine="cupy")
    expected = model.fit(X, y).kneighbors(Q)
    matrix = pairwise_dtw(X, window=window, engine="cupy")

    def refuse(array):
        raise AssertionError("a trip through the host")

    monkeypatch.setattr("skts.engines.cupy.series.fetch", refuse)
    model.fit(cupy.asarray(X), y)
    for found, right in zip(model.kneighbors(cupy.asarray(Q)), expected, strict=True):
        assert_array_equal(found, right)
    assert_array_equal(pairwise_dtw(cupy.asarray(X), window=window, engine="cupy"), matrix)
    monkeypatch.undo()
    laptop = pickle.loads(pickle.dumps(model)).set_params(engine="numba")
    assert_array_equal(laptop.kneighbors(Q)[1], expected[1])


@pytest.mark.gpu
def test_what_clusterers_and_matrices_fetch(cupy, monkeypatch):
    """As the table of docs/user_guide/engines.rst says."""
    X, labels = walks(30, 20), np.arange(30) % 2
    on = {"engine": "cupy"}
    means, medoids = DTWKMeans(2, random_state=0, **on), DTWKMedoids(2, random_state=0, **on)
    means.fit(X), medoids.fit(X)
    from skts.engines.cupy.series import fetch

    fetched = []

    def watch(array, *args):
        fetched.append(array.shape)
        return fetch(array, *args)

    monkeypatch.setattr("skts.engines.cupy.series.fetch", watch)
    for use, all_points in (
        (lambda given: DTWKMedoids(2, random_state=0, **on).fit(given), False),
        (medoids.predict, False),
        (means.predict, False),
        (means.transform, False),
        (lambda given: pairwise_distances(given, metric="msm", **on), False),
        (lambda given: pairwise_distances(given, metric="twe", **on), False),
        (lambda given: pairwise_soft_dtw(given, **on), False),
        (lambda given: silhouette_samples(given, labels, **on), False),
        (lambda given: dtw_window_search(given, labels, **on), False),
        (lambda given: dtw_barycenter(given, init=X[0], max_iter=2, tol=1, **on), False),
        (lambda given: dtw_barycenter(given, max_iter=2, tol=1, **on), True),
        (lambda given: soft_dtw_barycenter(given, max_iter=2, tol=1, **on), True),
        (lambda given: DTWKMeans(2, random_state=0, **on).fit(given), True),
        (lambda given: pairwise_distances(given, metric="ddtw", **on), True),
    ):
        fetched.clear()
        use(cupy.asarray(X))
        assert ((30, 1, 20) in fetched) == all_points


@pytest.mark.gpu
def test_forms_of_arrays_on_the_gpu(cupy):
    X = walks(6, 40)
    expected = pairwise_dtw(X, engine="cupy")
    on_gpu = cupy.asarray(X)
    strided = cupy.asfortranarray(on_gpu)
    with cupy.cuda.Stream(non_blocking=True):
        streamed = cupy.asarray(X) * 2 / 2
        assert_array_equal(pairwise_dtw(streamed, engine="cupy"), expected)

    class Bare:
        """Only the interface, as other libraries have it."""

        __cuda_array_interface__ = on_gpu.__cuda_array_interface__

    for given in (strided, on_gpu[:, np.newaxis], Bare()):
        assert_array_equal(pairwise_dtw(given, engine="cupy"), expected)
    single = on_gpu.astype(np.float32)
    assert_array_equal(
        pairwise_dtw(single, engine="cupy"), pairwise_dtw(X.astype(np.float32), engine="numba")
    )
    with pytest.raises(ValueError, match="contains NaN at series 2, time point 7"):
        on_gpu[2, 7] = np.nan
        pairwise_dtw(on_gpu, engine="cupy")


@pytest.mark.gpu
def test_an_array_on_one_gpu_is_taken_by_others(cupy):
    if cupy.cuda.runtime.getDeviceCount() < 2:
        pytest.skip("there is one GPU")
    X, y = walks(300, 40), np.arange(300) % 3
    expected = DTWNearestNeighbor(2, engine="cupy").fit(X, y).kneighbors(X[:50])
    with cupy.cuda.Device(1):
        there = cupy.asarray(X)
    for devices in ([0], [1], [0, 1]):
        with config_context(devices=devices):
            model = DTWNearestNeighbor(2, engine="cupy").fit(there, y)
            for found, right in zip(model.kneighbors(there[:50]), expected, strict=True):
                assert_array_equal(found, right)
