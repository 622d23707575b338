"""SubsequenceSearch: scikit-learn's contract, forms of input, brute force."""

from __future__ import annotations

import pickle

import numpy as np
import pandas as pd
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.base import clone

from skts import SubsequenceSearch, config_context
from skts.engines import find_engine
from skts.exceptions import EngineNotAvailableError
from skts.metrics import pairwise_dtw
from tests.contract import check_described, check_with_scikit_learn


def brute_force(q, x, metric="dtw", cost="squared", window=None, normalize=True):
    """Distance of every window, by the function for pairs of series."""
    windows = np.lib.stride_tricks.sliding_window_view(x, len(q)).copy()
    if normalize:
        q, windows = z(q[None])[0], z(windows)
    if metric == "euclidean":
        return np.sqrt(((windows - q) ** 2).sum(axis=1))
    return pairwise_dtw([q], list(windows), metric=metric, cost=cost, window=window)[0]


def z(rows):
    rows = rows - rows[:, :1]
    spread = rows.std(axis=1, keepdims=True)
    return (rows - rows.mean(axis=1, keepdims=True)) / np.where(spread > 0, spread, 1)


def test_scikit_learn_contract(fast_engine):
    check_with_scikit_learn(SubsequenceSearch(engine=fast_engine), least=30)


def test_parameters_and_fitted_attributes_are_described(rng):
    check_described(SubsequenceSearch().fit(rng.normal(size=(2, 50))))


OPTIONS = [
    {"window": 0.1},
    {},
    {"metric": "euclidean"},
    {"metric": "dog_keeper", "window": 5},
    {"cost": "absolute", "window": 4, "normalize": False},
    {"metric": "euclidean", "normalize": False},
]


@pytest.mark.parametrize("options", OPTIONS, ids=str)
def test_agrees_with_brute_force(rng, fast_engine, options):
    x = rng.normal(size=900).cumsum()
    q = x[400:440] + rng.normal(size=40)
    distances = brute_force(q, x, **options)
    search = SubsequenceSearch(exclusion=0, engine=fast_engine, **options).fit(x[None])
    found, positions = search.kneighbors([q], n_neighbors=12)
    order = np.argsort(distances, kind="stable")[:12]
    assert_array_equal(positions[0, :, 1], order)
    assert_array_equal(positions[0, :, 0], 0)
    assert_allclose(found[0], distances[order], rtol=1e-9, atol=1e-12)
    radius = (found[0, 8] + found[0, 9]) / 2
    near, where = search.radius_neighbors([q], radius)
    assert_array_equal(near[0], found[0, :9])
    assert_array_equal(where[0], positions[0, :9])


@pytest.mark.parametrize("options", [{"window": 0.1}, {"metric": "euclidean"}], ids=str)
def test_channels_agree_with_brute_force(rng, fast_engine, options):
    """Each channel normalised by itself, one path through all of them."""
    x = rng.normal(size=(3, 500)).cumsum(axis=1)
    q = x[:, 300:330] + rng.normal(size=(3, 30))
    windows = np.lib.stride_tricks.sliding_window_view(x, 30, axis=1).transpose(1, 0, 2)
    rows = np.concatenate([q[np.newaxis], windows])
    rows = (rows - rows.mean(axis=2, keepdims=True)) / rows.std(axis=2, keepdims=True)
    band = {"window": options.get("window", 0)}
    distances = pairwise_dtw(rows[:1], rows[1:], **band)[0]
    search = SubsequenceSearch(exclusion=0, engine=fast_engine, **options).fit(x[np.newaxis])
    found, positions = search.kneighbors(q[np.newaxis], n_neighbors=9)
    order = np.argsort(distances, kind="stable")[:9]
    assert_array_equal(positions[0, :, 1], order)
    assert_allclose(found[0], distances[order], rtol=1e-9)
    near, where = search.radius_neighbors([q], (found[0, 5] + found[0, 6]) / 2)
    assert_array_equal(near[0], found[0, :6])
    assert_array_equal(where[0], positions[0, :6])


def test_channels_are_refused_where_they_differ(rng):
    x = rng.normal(size=(2, 3, 40))
    search = SubsequenceSearch().fit(x)
    assert search.n_channels_ == 3
    with pytest.raises(ValueError, match="takes queries of 3 channels; Q has 2"):
        search.kneighbors(x[:, :2, :9])
    with pytest.raises(ValueError, match="X has 40 channels of one time point each: series are"):
        SubsequenceSearch().fit(x.transpose(0, 2, 1)[:, :, :1])
    # only where no series is longer: those of one point among others have channels like these
    _, positions = SubsequenceSearch().fit([x[0, :, :1], x[1]]).radius_neighbors([x[1][:, :9]], 1.0)
    assert_array_equal(positions[0][0], [1, 0])
    x[1, 2, 5] = np.nan
    _, positions = SubsequenceSearch().fit(x[1:]).radius_neighbors([x[0][:, :9]], np.inf)
    assert_array_equal(np.sort(positions[0][:, 1]), np.arange(6, 32))


def test_a_memory_map_of_channels_stays_where_it_is(rng, tmp_path):
    file = tmp_path / "x.bin"
    rng.normal(size=(2, 3_000)).cumsum(axis=1).tofile(file)
    x = np.memmap(file, dtype=np.float64, mode="r", shape=(1, 2, 3_000))
    search = SubsequenceSearch(window=3).fit(x)
    assert np.shares_memory(search._series.parts[0], x)
    wanted = SubsequenceSearch(window=3).fit(np.array(x)).kneighbors(np.array(x[:, :, 70:90]), 3)
    for one, other in zip(search.kneighbors(x[:, :, 70:90], 3), wanted, strict=True):
        assert_array_equal(one, other)


def test_matches_are_apart_best_first(rng):
    x = rng.normal(size=2000).cumsum()
    q = rng.normal(size=50).cumsum()
    order = np.argsort(brute_force(q, x, window=5), kind="stable").tolist()
    for exclusion, gap in ((None, 13), (30, 30), (100, 100)):
        taken = []
        for start in order:
            if all(abs(start - other) > gap for other in taken):
                taken.append(start)
        search = SubsequenceSearch(window=5, exclusion=exclusion).fit(x[None])
        positions = search.kneighbors([q], n_neighbors=10, return_distance=False)
        assert_array_equal(positions[0, :, 1], taken[:10])


def test_fewer_matches_leave_inf_and_minus_one(rng):
    X = [rng.normal(size=12), rng.normal(size=5)]
    search = SubsequenceSearch(window=1).fit(X)
    distances, positions = search.kneighbors([X[0][2:12], X[1]], n_neighbors=3)
    assert distances.shape == (2, 3) and positions.shape == (2, 3, 2)
    assert positions.dtype == np.int64
    assert distances[0, 0] == 0 and np.isinf(distances[0, 1:]).all()
    assert_array_equal(positions[0], [[0, 2], [-1, -1], [-1, -1]])
    assert_array_equal(positions[1, 0], [1, 0])
    nothing, nowhere = (
        SubsequenceSearch().fit(np.full((1, 20), np.nan)).radius_neighbors([[1, 2]], 9)
    )
    assert nothing[0].shape == (0,) and nowhere[0].shape == (0, 2)


def test_gaps_constants_and_levels(rng, fast_engine):
    x = rng.normal(size=300)
    x[40:60] = 7.0
    x[100] = np.nan
    x[200:220] = 1e6 + 1e3 * x[10:30]
    search = SubsequenceSearch(metric="euclidean", engine=fast_engine).fit(x[None])
    distances, positions = search.kneighbors([x[10:30]], n_neighbors=2)
    assert_array_equal(positions[0, :, 1], [10, 200])
    assert_allclose(distances[0], 0, atol=1e-9)
    # a constant window is all zeros, and so is a constant query
    near, where = search.radius_neighbors([x[10:30], np.ones(20)], np.inf)
    assert near[0][where[0][:, 1] == 40] == pytest.approx(np.sqrt(20), rel=1e-12)
    assert near[1][0] == 0 and where[1][0, 1] == 40
    assert not np.isin(np.arange(81, 101), where[0][:, 1]).any()
    assert len(near[0]) == 281 - 20


def test_forms_of_input_are_equal(rng):
    x = rng.normal(size=(2, 400)).cumsum(axis=1)
    q = rng.normal(size=(3, 25)).cumsum(axis=1)
    search = SubsequenceSearch(window=0.2)
    expected = search.fit(x).kneighbors(q, n_neighbors=4)
    padded = np.column_stack([q, np.full((3, 5), np.nan)])
    for X in (x.tolist(), list(x), x[:, None, :], np.asfortranarray(x)):
        for Q in (q.tolist(), list(q), q[:, None, :], padded):
            for one, other in zip(
                search.fit(X).kneighbors(Q, n_neighbors=4), expected, strict=True
            ):
                assert_array_equal(one, other)
    frame = pd.DataFrame(x, columns=[f"t{i}" for i in range(400)])
    assert_array_equal(search.fit(frame).kneighbors(q, n_neighbors=4)[1], expected[1])
    assert search.n_features_in_ == 400 and search.feature_names_in_[1] == "t1"
    assert (search.n_samples_fit_, search.n_channels_, search.engine_) == (2, 1, "numba")


def test_queries_together_are_queries_alone(rng):
    X = [rng.normal(size=n).cumsum() for n in (500, 90, 30)]
    Q = [rng.normal(size=n).cumsum() for n in (40, 17, 40, 60, 2)]
    search = SubsequenceSearch(window=0.1).fit(X)
    distances, positions = search.kneighbors(Q, n_neighbors=3)
    for row, q in enumerate(Q):
        one, where = search.kneighbors([q], n_neighbors=3)
        assert_array_equal(one[0], distances[row])
        assert_array_equal(where[0], positions[row])


def test_memory_map_threads_and_budget(rng, fast_engine, tmp_path):
    n = 60_000
    file = tmp_path / "x.bin"
    rng.normal(size=n).cumsum().tofile(file)
    x = np.memmap(file, dtype=np.float64, mode="r", shape=(1, n))
    q = rng.normal(size=64).cumsum()
    search = SubsequenceSearch(window=0.05, n_jobs=1, engine=fast_engine).fit(x)
    kept = search._series.parts[0]
    assert np.shares_memory(kept, x)
    expected = search.kneighbors([q], n_neighbors=5)
    with config_context(memory="1MB"):
        for n_jobs in (1, 2):
            found = search.set_params(n_jobs=n_jobs).kneighbors([q], n_neighbors=5)
            for one, other in zip(found, expected, strict=True):
                assert_array_equal(one, other)
    listed = SubsequenceSearch(window=0.05).fit([x[0, :40_000], x[0, 40_000:]])
    assert all(np.shares_memory(part, x) for part in listed._series.parts)
    assert listed.kneighbors([q])[0][0, 0] >= expected[0][0, 0]


def test_private_data_pickle_and_clone(rng):
    x = rng.normal(size=(1, 200))
    q = x[0, 50:80].copy()
    search = SubsequenceSearch(window=2).fit(x)
    x[:] = 0
    found = search.kneighbors([q])
    assert found[0][0, 0] == 0 and found[1][0, 0, 1] == 50
    again = pickle.loads(pickle.dumps(search)).kneighbors([q])
    assert_array_equal(again[1], found[1])
    assert clone(search).get_params() == search.get_params()
    # set_params after fit is obeyed
    search.set_params(window=-1)
    with pytest.raises(ValueError, match="'window' parameter"):
        search.kneighbors([q])


def test_bad_input_is_named(rng):
    x = rng.normal(size=(2, 50))
    search = SubsequenceSearch().fit(x)
    cases = [
        (
            lambda: search.kneighbors([np.ones(3), np.ones(51)]),
            "Query 1 has 51 points; the longest",
        ),
        (lambda: search.kneighbors([1.0, 2.0]), "Reshape your data"),
        (lambda: search.kneighbors([[1, np.nan, 2]]), "Q contains NaN at series 0, time point 1"),
        (lambda: search.kneighbors([[1, np.inf]]), "infinity"),
        (lambda: search.kneighbors(np.ones((1, 2, 9))), "queries of 1 channel; Q has 2"),
        (lambda: search.kneighbors([[1, 2]], n_neighbors=0), "Expected n_neighbors > 0. Got 0"),
        (lambda: search.radius_neighbors([[1, 2]], -0.5), "Expected radius >= 0. Got -0.5"),
        (lambda: search.radius_neighbors([[1, 2]], np.nan), "Expected radius >= 0. Got nan"),
        (lambda: search.fit(np.ones((2, 3, 1))), "X has 3 channels of one time point each"),
        (lambda: SubsequenceSearch(window=1.5).fit(x), "'window' parameter"),
        (
            lambda: SubsequenceSearch(metric="euclidean", window=3).fit(x),
            "window=3 does not go with metric='euclidean'",
        ),
        (
            lambda: SubsequenceSearch(metric="euclidean", cost="absolute").fit(x),
            "cost='absolute' does not go",
        ),
    ]
    for call, message in cases:
        with pytest.raises(ValueError, match=message):
            call()
    with pytest.raises(TypeError, match="n_neighbors does not take"):
        search.kneighbors([[1, 2]], n_neighbors=1.5)
    with pytest.raises(TypeError, match="radius='a' is not a number"):
        search.radius_neighbors([[1, 2]], "a")


def test_engines(rng):
    x = rng.normal(size=(1, 40))
    with pytest.raises(ValueError, match="engine='abacus' is not known"):
        SubsequenceSearch(engine="abacus").fit(x)
    if find_engine("cupy").available() is not None:
        with pytest.raises(EngineNotAvailableError, match="engine='cupy' needs"):
            SubsequenceSearch(engine="cupy").fit(x)
    plain = SubsequenceSearch(engine="oracle", window=2).fit(x)
    fast = SubsequenceSearch(engine="numba", window=2).fit(x)
    assert (plain.engine_, fast.engine_) == ("oracle", "numba")
    q = rng.normal(size=7)
    for one, other in zip(plain.kneighbors([q], 3), fast.kneighbors([q], 3), strict=True):
        assert_allclose(one, other, rtol=1e-12)
    assert find_engine("numba").supports(fast._search((q,), fast._series)) is None


@pytest.mark.parametrize("power", [-400, -250, 400])
@pytest.mark.parametrize("normalize", [True, False])
@pytest.mark.parametrize("metric", ["dtw", "dog_keeper", "euclidean"])
def test_powers_of_two_change_no_match(rng, fast_engine, power, normalize, metric):
    x, scale = rng.normal(size=400).cumsum(), 2.0**power
    query = x[100:120] + 0.3 * rng.normal(size=20)
    search = SubsequenceSearch(metric=metric, normalize=normalize, engine=fast_engine)
    distances, positions = search.fit([x]).kneighbors([query], 4)
    found = search.fit([x * scale]).kneighbors([query * scale], 4)
    assert_array_equal(found[1], positions)
    assert_array_equal(found[0], distances * (1.0 if normalize else scale))


def test_windows_whose_squares_float64_does_not_hold_are_constant(rng, fast_engine):
    """Windows of a range up to 2^-500 are; the others, however small, have a shape."""
    shape = np.array([0.0, 3, 1, 4, 1, 5, 9, 2, 6])
    x = rng.normal(size=120)
    x[20:29], x[60:69] = shape * 2.0**-495, shape * 2.0**-510
    search = SubsequenceSearch(metric="euclidean", engine=fast_engine).fit([x])
    distances, positions = search.radius_neighbors([shape], 3.0)
    at = dict(zip(positions[0][:, 1].tolist(), distances[0].tolist(), strict=True))
    assert at[20] < 1e-6
    assert_allclose(at[60], 3.0, rtol=1e-14)


def test_integers_beyond_int64_mean_all_or_are_said(rng, fast_engine):
    x, huge = rng.normal(size=200), 10**30
    search = SubsequenceSearch(engine=fast_engine)
    expected = search.fit([x]).kneighbors([x[:9]])
    found = search.set_params(exclusion=huge, window=huge).fit([x]).kneighbors([x[:9]], 3)
    assert found[0][0, 0] == expected[0][0, 0]
    assert_array_equal(found[1][0, 1:], -1)
    with pytest.raises(MemoryError, match="result of shape"):
        search.kneighbors([x[:9]], huge)
