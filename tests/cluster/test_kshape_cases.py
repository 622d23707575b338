"""KShapeClusterer on small cases that are hard to decide: one answer on every engine."""

from __future__ import annotations

import warnings
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.base import clone
from sklearn.exceptions import ConvergenceWarning

from skts import KShapeClusterer
from skts.cluster import _kshape
from skts.engines import SBDAssign, SBDCenters, SBDMatrix, Shapes, find_engine, run
from skts.engines.core import registry
from skts.engines.core.constants import UNCLEAR
from skts.engines.families.kshape.certified import certified_distances
from tests import reference_sbd as reference
from tests.kshape_cases import KINDS, NoisyEngine, case, differences, fitted, series

#: Data on which engines once differed.
DEFECTS = Path(__file__).parents[1] / "data" / "defects"


@pytest.fixture
def noisy(monkeypatch):
    """An engine whose every value that is not certified is off, asked for all work."""
    monkeypatch.setattr(_kshape, "FEW_VALUES", 0)
    monkeypatch.setitem(registry._instances, "noisy", NoisyEngine())
    return "noisy"


@pytest.mark.parametrize("first", range(len(KINDS)))
def test_noise_changes_no_answer(noisy, first):
    for seed in range(first, 16 * len(KINDS), len(KINDS)):
        kind, X, options = case(seed)
        assert not differences(X, options, ("numba", noisy)), (seed, kind)


@pytest.mark.gpu
@pytest.mark.parametrize("few", [0, _kshape.FEW_VALUES])
@pytest.mark.parametrize("first", range(len(KINDS)))
def test_engines_find_the_same(monkeypatch, few, first):
    missing = find_engine("cupy").available()
    if missing:
        pytest.skip(missing)
    monkeypatch.setattr(_kshape, "FEW_VALUES", few)
    for seed in range(first, 16 * len(KINDS), len(KINDS)):
        kind, X, options = case(seed)
        assert not differences(X, options, ("numba", "cupy")), (seed, kind)


@pytest.mark.gpu
@pytest.mark.parametrize("number", [60, 94, 135])
def test_engines_find_the_same_where_they_once_did_not(number):
    """Starts whose inertia ties, nearly constant series, two shapes for five clusters."""
    with np.load(DEFECTS / f"kshape_engines_differ_{number}.npz") as file:
        X, options = file["X"], {name: file[name].item() for name in file.files if name != "X"}
    assert not differences(X, options, ("numba", "cupy"))


def test_noise_is_noticed_at_the_edges_of_ties(noisy, rng):
    # a spike against two others whose heights differ by the tolerance, but for less than the errors
    X = np.zeros((1, 1, 24))
    X[0, 0, 12] = 1.0
    marked = 0
    for excess in rng.uniform(-1, 1, 40):
        center = np.zeros((1, 1, 24))
        center[0, 0, [8, 16]] = 1.0, 1.0 + 1e-9 * np.sqrt(2)
        centers = Shapes.of(center)
        exact = SBDAssign(Shapes.of(X), centers)
        claimed = Shapes.of(center, np.array([1e-10]))
        center[0, 0, 16] += 1e-11 * excess
        found = run(SBDAssign(Shapes.of(X), claimed), engine=noisy)
        marked += not found.clear
        assert_array_equal(found.shifts, UNCLEAR)
        # without errors of the centre the certified values decide
        found = run(SBDAssign(Shapes.of(X), Shapes.of(center)), engine=noisy)
        _, shifts = certified_distances(SBDAssign(Shapes.of(X), Shapes.of(center)), [(0, 0)])
        assert_array_equal(found.shifts, shifts)
        assert exact.centers.errors is None
    assert marked == 40


def test_values_that_may_be_wrong_are_within_their_bound(rng):
    # what transforms are off by is far below what they may be
    for n_timepoints, n_channels in [(1, 1), (5, 2), (64, 1), (301, 3)]:
        sides = [Shapes.of(rng.normal(size=(6, n_channels, n_timepoints))) for _ in range(2)]
        work = SBDMatrix(*sides)
        pairs = [(i, j) for i in range(6) for j in range(6)]
        distances, shifts = certified_distances(work, pairs)
        found = run(work, engine="numba")
        assert np.abs(found.distances.ravel() - distances).max() <= work.rounding / 4
        assert_array_equal(found.shifts.ravel(), shifts)
        expected = reference.pairwise_sbd(*(side.values for side in sides))[0]
        assert_allclose(distances, expected.ravel(), rtol=0, atol=1e-14)


@pytest.mark.parametrize("first", range(len(KINDS)))
def test_powers_of_two_change_nothing(fast_engine, first):
    for seed in range(first, 4 * len(KINDS), len(KINDS)):
        kind, X, options = case(seed)
        peak = max(np.abs(x).max() for x in X) or 1.0
        least = min(np.abs(x).max() for x in X) or 1.0
        before, _ = fitted(X, options, fast_engine)
        for exponent in (400 - np.frexp(peak)[1], -400 - np.frexp(least)[1]):
            scaled = [x * 2.0 ** int(exponent) for x in X]
            scaled = scaled if isinstance(X, list) else np.array(scaled)
            after, _ = fitted(scaled, options, fast_engine)
            for name in ("labels_", "shifts_", "n_iter_", "cluster_centers_", "history_"):
                assert_array_equal(
                    getattr(before, name), getattr(after, name), err_msg=f"{seed} {kind} {name}"
                )
            assert_array_equal(before.transform(X), after.transform(scaled))


@pytest.mark.parametrize("first", range(len(KINDS)))
def test_what_holds_of_every_fit(fast_engine, first):
    for seed in range(first, 8 * len(KINDS), len(KINDS)):
        kind, X, options = case(seed)
        said = f"{seed} {kind}"
        model, _ = fitted(X, options, fast_engine)
        n = len(X)
        assert_array_equal(model.predict(X), model.labels_, err_msg=said)
        assert_array_equal(np.unique(model.labels_), np.arange(len(model.cluster_centers_)))
        distances = model.transform(X)
        own = distances[np.arange(n), model.labels_]
        assert_allclose(own.sum(), model.inertia_, rtol=0, atol=1e-11 * n, err_msg=said)
        assert np.all(own <= distances.min(axis=1) + 2e-9)
        assert model.score(X) == pytest.approx(-model.inertia_, abs=1e-11 * n)
        assert len(model.history_) == model.n_iter_ <= options["max_iter"]
        assert np.all((distances >= 0) & (distances <= 2))
        for i in range(min(n, 4)):
            # alone as among others
            assert_array_equal(model.predict(X[i : i + 1]), model.labels_[i : i + 1], said)
            alone = model.transform(X[i : i + 1])
            assert_allclose(alone, distances[i : i + 1], rtol=0, atol=1e-11, err_msg=said)


def test_the_order_of_series_moves_only_their_labels(fast_engine):
    for seed in range(12):
        rng = np.random.default_rng(seed)
        X = series(rng, "walks", 30, 1 + seed % 2, 24)
        options = {"n_clusters": 3, "init": X[:3], "max_iter": 20}
        order = rng.permutation(30)
        one, _ = fitted(X, options, fast_engine)
        other, _ = fitted(X[order], options, fast_engine)
        assert_array_equal(one.labels_[order], other.labels_)
        assert_array_equal(one.shifts_[order], other.shifts_)
        assert_allclose(one.history_, other.history_, rtol=1e-9)


def test_series_of_all_scales_at_once(fast_engine, rng):
    # without normalisation a series weighs by its size, and is compared whatever its size is
    X = rng.normal(size=(12, 20)).cumsum(axis=1)
    X[6:] = X[:6] * 2.0 ** -np.arange(60, 860, 140)[:, None]
    options = {"n_clusters": 3, "normalize": False, "init": X[:3]}
    large = X * 2.0**440
    with np.errstate(all="raise"):
        model, _ = fitted(large, options, fast_engine)
    assert_array_equal(model.labels_[:6], model.labels_[6:])
    assert_array_equal(model.shifts_[:6], model.shifts_[6:])
    assert_array_equal(model.transform(large[:6]), model.transform(large[6:]))
    # the centre of small series alone is theirs
    tiny = X[:4] * 2.0**-450
    tiny, _ = fitted(tiny, {"n_clusters": 1, "normalize": False}, fast_engine)
    usual, _ = fitted(X[:4], {"n_clusters": 1, "normalize": False}, fast_engine)
    assert_array_equal(tiny.cluster_centers_, usual.cluster_centers_)


@pytest.mark.parametrize("centered", [True, False])
def test_centers_of_weighted_members(engine, rng, centered):
    values = rng.normal(size=(40, 2, 70))
    values /= np.linalg.norm(values, axis=(1, 2), keepdims=True)
    exponents = rng.integers(-3, 3, 40).astype(np.int32)
    exponents[:20] -= 900
    shapes = Shapes(values, np.ones(40), exponents)
    labels = np.repeat([0, 1], 20).astype(np.int32)
    shifts = rng.integers(-9, 10, 40).astype(np.int32)
    found = run(SBDCenters(shapes, labels, shifts, 2, None, centered), engine=engine)
    powers = exponents + 900 * (labels == 0)
    expected = reference.centers(
        np.ldexp(values, powers[:, None, None]), labels, shifts, 2, centered
    )
    assert_allclose(found.values, expected, rtol=0, atol=1e-8 * np.abs(expected).max())


@pytest.mark.parametrize("n_timepoints", [20, 90])
def test_constant_members_add_nothing_to_a_center(engine, rng, n_timepoints):
    values = 1.0 + 2.0**-44 * rng.normal(size=(6, 1, n_timepoints))
    zeros = np.zeros(6, np.int32)
    work = SBDCenters(Shapes.of(values), zeros, zeros, 1)
    assert not run(work, engine=engine).values.any()
    values[2] = rng.normal(size=n_timepoints)
    found = run(SBDCenters(Shapes.of(values), zeros, zeros, 1), engine=engine).values
    expected = (values[2] - values[2].mean()) / values[2].std()
    assert_allclose(found[0], expected * np.sign(np.sum(expected * found[0])), atol=1e-8)


def state(model):
    return {name: value for name, value in vars(model).items() if name.endswith("_")}


def assert_unchanged(model, before):
    assert state(model).keys() == before.keys()
    for name, value in before.items():
        assert state(model)[name] is value, name


@pytest.mark.parametrize("call", [1, 2, 5])
def test_an_interrupted_refit_leaves_the_old_fit(fast_engine, rng, monkeypatch, call):
    X = rng.normal(size=(30, 24))
    model = KShapeClusterer(3, n_init=2, random_state=0, engine=fast_engine).fit(X)
    before, labels = state(model), model.predict(X)
    calls = 0

    def interrupted(*args, **kwargs):
        nonlocal calls
        calls += 1
        if calls == call:
            raise KeyboardInterrupt
        return run(*args, **kwargs)

    monkeypatch.setattr("skts.base.run", interrupted)
    with pytest.raises(KeyboardInterrupt):
        model.fit(rng.normal(size=(20, 2, 30)))
    monkeypatch.undo()
    assert_unchanged(model, before)
    assert_array_equal(model.predict(X), labels)


def test_a_failed_refit_leaves_the_old_fit(rng):
    X = rng.normal(size=(30, 24))
    model = KShapeClusterer(3, n_init=1, random_state=0).fit(X)
    before = state(model)
    with pytest.raises(ValueError, match="n_samples=2"):
        model.fit(rng.normal(size=(2, 9)))
    assert_unchanged(model, before)
    # a warning that is an error comes before anything is replaced
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        with pytest.raises(ConvergenceWarning):
            model.fit(np.ones((6, 9)))
    assert_unchanged(model, before)


@pytest.mark.parametrize("n_channels", [1, 2])
def test_longer_series_beside_a_series_change_nothing_for_it(fast_engine, rng, n_channels):
    # centres of two points are not centred: they may correlate negatively at every shift
    X = np.abs(rng.normal(scale=0.1, size=(8, n_channels, 2))) + [2.0, 1.0]
    X[4:] = X[4:, :, ::-1]
    model = KShapeClusterer(2, init=X[3:5], engine=fast_engine).fit(X)
    lengths = [2, 5, 2, 3, 2, 3]
    series = [rng.normal(size=(n_channels, n)) for n in lengths]
    series[0], series[2] = -X[0], -X[7]
    distances, labels = model.transform(series), model.predict(series)
    assert (distances[[0, 2]] > 1.01).all()
    assert labels[0] != labels[2]
    for one, row, label in zip(series, distances, labels, strict=True):
        assert_allclose(model.transform([one])[0], row, rtol=1e-12)
        assert model.predict([one])[0] == label
        centers = model.cluster_centers_.reshape(2, n_channels, 2)
        filled = np.pad(centers, ((0, 0), (0, 0), (0, one.shape[1] - 2)))
        assert_allclose(row, [reference.sbd(one, center)[0] for center in filled], rtol=1e-12)
    assert_allclose(model.score(series), -distances.min(axis=1).sum(), rtol=1e-12)


def test_longer_series_change_nothing_where_a_centre_is_constant(fast_engine):
    # without normalisation a constant series is a shape, and its cluster's centre then no sum of 0
    X = np.array([[-1.0, -1.0, -1.0], [1.0, 2.0, 4.0]])
    model = KShapeClusterer(2, init=X, normalize=False, engine=fast_engine).fit(X)
    together = model.transform([np.ones(3), np.ones(5)])
    assert_allclose(together[0], model.transform([np.ones(3)])[0], rtol=1e-12)
    assert_allclose(together[:, 0], [4 / 3, 1.0], rtol=1e-12)


@pytest.mark.parametrize("transform", ["default", "pandas"])
def test_methods_do_not_depend_on_the_output_of_transform(rng, transform):
    X = rng.normal(size=(20, 24))
    plain = KShapeClusterer(2, n_init=1, random_state=0).fit(X)
    model = clone(plain).set_output(transform=transform)
    assert_array_equal(model.fit(X).labels_, plain.labels_)
    assert_array_equal(model.fit_predict(X), plain.labels_)
    assert_array_equal(model.predict(X), plain.labels_)
    assert model.score(X) == plain.score(X)
    assert_array_equal(model._aligned(X)[0], plain.labels_)
    kind = pd.DataFrame if transform == "pandas" else np.ndarray
    assert type(model.transform(X)) is type(model.fit_transform(X)) is kind
    assert_array_equal(np.asarray(model.transform(X)), plain.transform(X))


@pytest.mark.parametrize(("less", "beats"), [(0.0, False), (0.9e-9, False), (1.1e-9, True)])
def test_a_start_must_be_better_by_more_than_the_tolerance(rng, less, beats):
    shapes = Shapes.of(rng.normal(size=(5, 1, 20)))
    centers = Shapes.of(rng.normal(size=(1, 1, 20)))
    zeros = np.zeros(5, np.int32)
    assigned = run(SBDAssign(shapes, centers), engine="numba")
    inertia = float(assigned.distances.sum())
    work = SBDCenters(shapes, zeros, zeros, 1)
    old, new = (
        _kshape._Iterate(value, centers, assigned, work) for value in (inertia, inertia - 5 * less)
    )
    model = KShapeClusterer(1)
    assert model._beats(shapes, new, old) is beats
    # what rounding leaves open is decided by certified sums, which are equal here
    edge = new._replace(inertia=inertia - 5e-9)
    assert not model._beats(shapes, edge, old)
