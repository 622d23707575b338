"""KShapeClusterer: the loop against plain loops, edge cases, scikit-learn's contract."""

from __future__ import annotations

import pickle
import warnings

import numpy as np
import pandas as pd
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.base import clone
from sklearn.exceptions import ConvergenceWarning
from sklearn.metrics import adjusted_rand_score
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import FunctionTransformer

from skts import KShapeClusterer, config_context
from skts.engines import SBDAssign, SBDCenters, Shapes, find_engine, run
from skts.exceptions import EngineNotAvailableError
from skts.metrics import pairwise_sbd
from tests import reference_sbd as reference
from tests.contract import check_described, check_with_scikit_learn


def waves(rng, n_samples, n_timepoints, n_kinds=3, n_channels=None, noise=0.1, reach=6):
    """Bumps, saws and squares on quiet ground, each shifted by a known number of points."""
    t = np.arange(n_timepoints) / n_timepoints
    inside = (t > 0.25) & (t < 0.75)
    kinds = [
        np.sin((t - 0.25) * 4 * np.pi) * inside,
        ((t - 0.25) * 8 % 1 - 0.5) * inside,
        np.sign(np.sin((t - 0.249) * 16 * np.pi)) * inside,
        np.sin((t - 0.25) * 22 * np.pi) * inside,
    ][:n_kinds]
    y = rng.permutation(np.arange(n_samples) % n_kinds)
    shifts = rng.integers(-reach, reach + 1, n_samples)
    X = np.array([np.roll(kinds[label], -s) for label, s in zip(y, shifts, strict=True)])
    if n_channels is not None:
        X = np.stack([X * (c + 1) + 3 * c for c in range(n_channels)], axis=1)
    return X + noise * rng.normal(size=X.shape), y, shifts


def test_finds_shapes_and_planted_shifts(fast_engine, rng):
    X, y, shifts = waves(rng, 60, 64, noise=0.01)
    model = KShapeClusterer(3, random_state=0, engine=fast_engine).fit(X)
    assert adjusted_rand_score(y, model.labels_) == 1
    assert model.engine_ == fast_engine
    # from series that stand where they do, shifts are found exactly
    init = np.array([X[y == label][0] for label in range(3)])
    model = KShapeClusterer(3, init=init, engine=fast_engine).fit(X)
    for label in range(3):
        members = model.labels_ == label
        first = shifts[members][0]
        assert_array_equal(model.shifts_[members], shifts[members] - first)


@pytest.mark.parametrize("shape", [(24, 2), (24, 20), (18, 3, 16)])
@pytest.mark.parametrize("seed", range(3))
def test_the_loop_is_that_of_the_oracle(fast_engine, shape, seed):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=shape).cumsum(axis=-1)
    model = KShapeClusterer(2, n_init=1, random_state=seed, engine=fast_engine)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        model.fit(X)
    random_state = np.random.RandomState(seed)
    labels = random_state.randint(2, size=len(X))
    labels[random_state.permutation(len(X))[:2]] = [0, 1]
    series = X.reshape(len(X), -1, shape[-1])
    iterates = reference.k_shape(series, labels, 2, model.n_iter_)
    assert_allclose(model.history_, [inertia for inertia, *_ in iterates], rtol=1e-9)
    inertia, labels, centers, shifts = min(iterates, key=lambda i: i[0])
    if np.array_equal(iterates[-1][1], iterates[-2][1]):
        inertia, labels, centers, shifts = iterates[-1]
    assert_array_equal(model.labels_, labels)
    assert_array_equal(model.shifts_, shifts)
    assert_allclose(model.cluster_centers_.reshape(centers.shape), centers, atol=1e-8)
    assert model.inertia_ == pytest.approx(inertia, rel=1e-9)


@pytest.mark.parametrize("init", ["random", "series", "plusplus"])
@pytest.mark.parametrize("n_channels", [None, 2])
def test_labels_are_predicted_and_consistent(fast_engine, rng, init, n_channels):
    X, _, _ = waves(rng, 40, 48, n_channels=n_channels, noise=1.0)
    model = KShapeClusterer(5, init=init, n_init=2, random_state=1, engine=fast_engine).fit(X)
    assert_array_equal(model.labels_, model.predict(X))
    assert_array_equal(model.labels_, clone(model).fit_predict(X))
    assert set(model.labels_) == set(range(5))
    distances = model.transform(X)
    assert distances.shape == (40, 5)
    assert_allclose(distances.min(axis=1).sum(), model.inertia_, rtol=1e-9)
    assert model.score(X) == pytest.approx(-model.inertia_, rel=1e-9)
    assert model.history_.shape == (model.n_iter_,)
    assert model.inertia_ in model.history_
    expected = (5, 48) if n_channels is None else (5, 2, 48)
    assert model.cluster_centers_.shape == expected
    assert_allclose(model.cluster_centers_.mean(axis=-1), 0, atol=1e-12)
    norm = np.sqrt(np.sum(model.cluster_centers_.reshape(5, -1) ** 2, axis=1))
    assert_allclose(norm, np.sqrt(48 * (n_channels or 1)))


@pytest.mark.gpu
def test_engines_agree(rng):
    missing = find_engine("cupy").available()
    if missing:
        pytest.skip(missing)
    X, _, _ = waves(rng, 300, 100, noise=1.5)
    for options in ({"init": "plusplus"}, {"n_init": 3}, {"init": "series", "n_init": 2}):
        models = [
            KShapeClusterer(4, random_state=3, engine=engine, **options).fit(X)
            for engine in ("numba", "cupy")
        ]
        assert_array_equal(models[0].labels_, models[1].labels_)
        assert_array_equal(models[0].shifts_, models[1].shifts_)
        assert_allclose(models[0].history_, models[1].history_, rtol=1e-9)


def test_splits_and_threads_change_nothing(fast_engine, rng):
    X, _, _ = waves(rng, 1200, 50, noise=1.0)
    model = KShapeClusterer(4, n_init=1, random_state=0, engine=fast_engine).fit(X)
    with config_context(memory="4 MiB"):
        other = clone(model).set_params(n_jobs=2).fit(X)
    for name in ("labels_", "shifts_", "cluster_centers_", "history_"):
        assert_array_equal(getattr(model, name), getattr(other, name))


def test_what_is_monotone(fast_engine, rng):
    values = rng.normal(size=(80, 1, 40)).cumsum(axis=2)
    values -= values.mean(axis=2, keepdims=True)
    X = Shapes.of(values)
    centers = X.take(slice(4))
    assigned = run(SBDAssign(X, centers), engine=fast_engine)
    for _ in range(6):

        def squares(centers, assigned=assigned):
            scale = X.norms * np.sqrt(np.sum(centers**2, axis=(1, 2)))[assigned.labels]
            aligned = [
                reference.shifted(x, s) for x, s in zip(values, assigned.shifts, strict=True)
            ]
            products = np.einsum("ict,ict->i", aligned, centers[assigned.labels])
            totals = np.bincount(assigned.labels, (products / scale) ** 2 * X.norms**2, 4)
            return totals

        found = run(
            SBDCenters(X, assigned.labels, assigned.shifts, 4, centers.values),
            engine=fast_engine,
        ).values
        # a centre never lowers the squares at fixed shifts
        assert np.all(squares(found) >= squares(centers.values) * (1 - 1e-12))
        centers = Shapes.of(found)
        distances = pairwise_sbd(values, found, normalize=False, engine=fast_engine)
        kept = distances[np.arange(80), assigned.labels].sum()
        assigned = run(SBDAssign(X, centers), engine=fast_engine)
        # nor does an assignment raise the sum of distances
        assert assigned.distances.sum() <= kept + 1e-9


def test_a_circle_is_noticed_and_the_best_iterate_returned(fast_engine):
    for seed in range(400):
        rng = np.random.default_rng(seed)
        X = rng.normal(size=(12, 6))
        model = KShapeClusterer(3, n_init=1, random_state=seed, engine=fast_engine)
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            model.fit(X)
        if any("cycles" in str(warning.message) for warning in caught):
            break
    else:
        pytest.fail("no cycle among 400 starts")
    assert model.inertia_ == model.history_.min()
    assert_array_equal(model.labels_, model.predict(X))
    assert model.n_iter_ < 100


def test_max_iter_returns_the_best_iterate(fast_engine, rng):
    X = rng.normal(size=(60, 30))
    with pytest.warns(ConvergenceWarning, match="max_iter=2"):
        model = KShapeClusterer(5, n_init=1, max_iter=2, random_state=0, engine=fast_engine).fit(X)
    assert model.n_iter_ == 2
    assert model.inertia_ == model.history_.min()
    assert_array_equal(model.labels_, model.predict(X))


def test_tol_stops_early(rng):
    X = rng.normal(size=(200, 30))
    options = {"n_init": 1, "random_state": 0}
    patient = KShapeClusterer(5, **options).fit(X)
    hasty = KShapeClusterer(5, tol=0.05, **options).fit(X)
    assert hasty.n_iter_ < patient.n_iter_
    a, b = hasty.history_[-2:]
    assert abs(a - b) < 0.05 * b


@pytest.mark.parametrize("init", ["random", "series", "plusplus"])
def test_fewer_different_series_than_clusters(fast_engine, rng, init):
    X = rng.normal(size=(2, 20))[[0, 1, 0, 0, 1, 0]]
    with pytest.warns(ConvergenceWarning, match="only 2 different shapes"):
        model = KShapeClusterer(4, init=init, random_state=0, engine=fast_engine).fit(X)
    assert_array_equal(np.unique(model.labels_), [0, 1])
    assert adjusted_rand_score(model.labels_, [0, 1, 0, 0, 1, 0]) == 1
    assert len(model.cluster_centers_) == 2
    assert model.transform(X).shape == (6, 2)
    assert len(model.get_feature_names_out()) == 2
    assert_array_equal(model.labels_, model.predict(X))


def test_empty_clusters_get_the_farthest_series(fast_engine, rng):
    X, y, _ = waves(rng, 30, 48, noise=0.01)
    # three centres of the same shape: two are empty at once
    init = X[[int(np.flatnonzero(y == 0)[0])] * 3]
    model = KShapeClusterer(3, init=init, engine=fast_engine).fit(X)
    assert adjusted_rand_score(model.labels_, y) == 1


def test_constant_series(fast_engine, rng):
    X, _, _ = waves(rng, 20, 32)
    X[[3, 7]] = [[5.0], [0.0]]
    X[11] = 1e9 + 1e-9 * rng.normal(size=32)
    model = KShapeClusterer(3, random_state=0, engine=fast_engine).fit(X)
    constant = [3, 7, 11]
    assert len(set(model.labels_[constant])) == 1
    assert_array_equal(model.shifts_[constant], 0)
    assert_array_equal(model.transform(X)[constant], 1.0)
    with pytest.warns(ConvergenceWarning, match="only 1 shape: "):
        model = KShapeClusterer(2, random_state=0, engine=fast_engine).fit(np.ones((5, 8)))
    assert model.inertia_ == 5
    assert_array_equal(model.labels_, 0)


@pytest.mark.parametrize("n_timepoints", [1, 2])
def test_short_series_are_not_centred(fast_engine, n_timepoints):
    X = np.array([[3.0, 4.0], [-3.0, 4.0], [6.0, 8.0], [-1.0, 1.4]])[:, :n_timepoints]
    model = KShapeClusterer(2, random_state=0, engine=fast_engine).fit(X)
    assert_allclose(np.sum(model.cluster_centers_**2, axis=1), 1)
    assert adjusted_rand_score(model.labels_, [0, 1, 0, 1]) == 1


def test_one_cluster_is_aligned(fast_engine, rng):
    X, _, shifts = waves(rng, 20, 48, n_kinds=1, noise=0.01)
    # the first iteration has no shifts and leaves the labels as they are: it is not the last
    model = KShapeClusterer(1, n_init=1, random_state=0, engine=fast_engine).fit(X)
    assert model.n_iter_ == 2
    assert np.ptp(model.shifts_ - shifts) <= 2
    model = KShapeClusterer(1, init=X[:1], engine=fast_engine).fit(X)
    assert_array_equal(model.shifts_, shifts - shifts[0])


def test_unequal_lengths(fast_engine, rng):
    X, _, _ = waves(rng, 30, 64, noise=0.02)
    lengths = rng.integers(52, 65, 30)
    series = [x[:length] for x, length in zip(X, lengths, strict=True)]
    padded = np.full((30, 64), np.nan)
    for row, x in zip(padded, series, strict=True):
        row[: len(x)] = x
    models = [
        KShapeClusterer(3, random_state=0, engine=fast_engine).fit(form)
        for form in (series, padded)
    ]
    assert_array_equal(models[0].labels_, models[1].labels_)
    assert_array_equal(models[0].cluster_centers_, models[1].cluster_centers_)
    assert not hasattr(models[0], "n_features_in_")
    # each on its own points, then zeros
    first = int(np.argmin(lengths))
    alone = models[0].transform([series[first]])
    assert_allclose(alone[0], models[0].transform(series)[first], rtol=1e-9)
    assert_array_equal(
        models[0].predict([np.append(x, np.full(9, np.nan)) for x in series]), models[0].labels_
    )
    longer = [np.append(x, np.zeros(40)) for x in X[:3]]
    assert models[0].predict(longer).shape == (3,)


def test_starting_from_given_centers(fast_engine, rng):
    X, y, _ = waves(rng, 30, 40)
    init = np.array([X[y == label][0] for label in range(3)])
    model = KShapeClusterer(3, init=init, engine=fast_engine).fit(X)
    assert_array_equal(model.labels_, y)
    assert_array_equal(KShapeClusterer(3, init=init * 7 + 2, engine=fast_engine).fit(X).labels_, y)


def test_normalization_can_be_left_out(fast_engine, rng):
    X, y, _ = waves(rng, 30, 40)
    model = KShapeClusterer(3, normalize=False, random_state=0, engine=fast_engine).fit(X)
    assert adjusted_rand_score(model.labels_, y) == 1
    assert_array_equal(model.labels_, model.predict(5 * X))


def test_forms_of_input_give_the_same(fast_engine, rng):
    X, _, _ = waves(rng, 20, 24)
    model = KShapeClusterer(2, random_state=0, engine=fast_engine)
    expected = model.fit(X).labels_
    for form in (X[:, None], list(X), X.tolist(), np.asfortranarray(X), X.astype(">f8")):
        assert_array_equal(model.fit(form).labels_, expected)
    frame = pd.DataFrame(X, columns=[f"t{i}" for i in range(24)])
    model.set_output(transform="pandas").fit(frame)
    assert list(model.transform(frame).columns) == ["kshapeclusterer0", "kshapeclusterer1"]
    assert_array_equal(model.feature_names_in_, frame.columns)


def test_input_is_left_alone_and_predicting_writes_nothing(fast_engine, rng):
    X, _, _ = waves(rng, 20, 24)
    before = X.copy()
    X.flags.writeable = False
    model = KShapeClusterer(2, random_state=0, engine=fast_engine).fit(X)
    state = pickle.dumps(model)
    model.predict(X), model.transform(X), model.score(X)
    assert pickle.dumps(model) == state
    assert_array_equal(X, before)
    again = pickle.loads(state).set_params(engine="numba")
    assert_array_equal(again.predict(X), model.labels_)


def test_in_a_pipeline(rng):
    X, y, _ = waves(rng, 30, 40)
    model = make_pipeline(FunctionTransformer(np.cbrt), KShapeClusterer(3, random_state=0))
    assert adjusted_rand_score(model.fit_predict(X), y) == 1


@pytest.mark.parametrize(
    ("X", "options", "message"),
    [
        (np.zeros((2, 5)), {}, r"n_samples=2 should be >= n_clusters=3"),
        ([[1.0, np.nan, 2.0], [1, 2, 3], [3, 2, 1]], {}, "NaN at series 0, time point 1"),
        ([[1.0, np.inf, 2.0], [1, 2, 3], [3, 2, 1]], {}, r"infinity \(inf\) at series 0"),
        (np.eye(6), {"init": np.eye(3)}, r"init has shape \(3, 1, 3\).*\(3, 1, 6\) is needed"),
        (np.eye(6), {"init": np.full((3, 6), np.nan)}, "init contains only NaN in series 0"),
        (np.eye(6), {"init": "kmeans"}, "'init' parameter"),
        (np.eye(6), {"precision": "float32"}, "'precision' parameter"),
        (np.eye(6), {"n_init": 0}, "'n_init' parameter"),
    ],
)
def test_bad_input_is_refused_in_words(X, options, message):
    model = KShapeClusterer(**options)
    with pytest.raises(ValueError, match=message):
        model.fit(X)
    assert not [name for name in vars(model) if name.endswith("_")]


def test_one_sample(fast_engine):
    X = np.array([[1.0, 3.0, 2.0, 5.0]])
    model = KShapeClusterer(1, engine=fast_engine).fit(X)
    assert_array_equal(model.labels_, [0])
    assert_allclose(model.cluster_centers_[0], (X[0] - X.mean()) / X.std(), atol=1e-12)
    assert model.inertia_ < 1e-12


def test_channels_must_be_those_of_fit(rng):
    model = KShapeClusterer(2).fit(rng.normal(size=(6, 2, 9)))
    with pytest.raises(ValueError, match="X has 3 channels, but KShapeClusterer is expecting 2"):
        model.predict(rng.normal(size=(6, 3, 9)))


def test_an_engine_that_is_not_there_is_refused_first():
    missing = find_engine("cupy").available()
    if missing is None:
        pytest.skip("the GPU engine is there")
    with pytest.raises(EngineNotAvailableError):
        KShapeClusterer(engine="cupy").fit([["not", "numbers"]])


def test_verbose_tells_run_and_inertia(caplog, rng):
    X = waves(rng, 12, 20)[0]
    model = KShapeClusterer(2, n_init=1, random_state=0, verbose=1).fit(X)
    lines = [record.getMessage() for record in caplog.records]
    assert len(lines) == model.n_iter_
    end = f"iteration {model.n_iter_}, inertia {model.history_[-1]:.6f}"
    assert lines[-1] == f"Run 1 of 1, {end}"
    caplog.clear()
    KShapeClusterer(2, n_init=3, random_state=0, verbose=1).fit(X)
    firsts = [record.getMessage() for record in caplog.records if ", iteration 1," in record.msg]
    assert [line.split(",")[0] for line in firsts] == [f"Run {k} of 3" for k in (1, 2, 3)]


def test_scikit_learns_checks(fast_engine, monkeypatch):
    monkeypatch.setenv("SCIPY_ARRAY_API", "1")
    check_with_scikit_learn(KShapeClusterer(engine=fast_engine))


def test_parameters_and_fitted_attributes_are_described(rng):
    check_described(KShapeClusterer(2).fit(waves(rng, 12, 20)[0]))


def test_memory_maps_and_pickles(rng, tmp_path):
    X = waves(rng, 20, 24)[0]
    np.save(tmp_path / "X.npy", X)
    mapped = np.load(tmp_path / "X.npy", mmap_mode="r")
    model = KShapeClusterer(2, random_state=0).fit(mapped)
    assert_array_equal(model.labels_, KShapeClusterer(2, random_state=0).fit(X).labels_)
    assert not any(isinstance(value, np.memmap) for value in vars(model).values())
