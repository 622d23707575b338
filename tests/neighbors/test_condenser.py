"""DTWCondenser: the choice of plain loops, and life in pipelines."""

from __future__ import annotations

import math
import pickle
import warnings
from functools import cache

import numpy as np
import pytest
import reference
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.base import clone

from skts import DTWCondenser, DTWNearestNeighbor, config_context
from skts._metrics import METRICS
from skts._validation import check_series
from skts.datasets import make_cylinder_bell_funnel
from skts.engines import replace_kernels
from skts.neighbors import _condenser, dtw_window_search
from tests.contract import check_described, check_with_scikit_learn


class Naive:
    """AWARD as it is defined: every step from nothing, but for distances that are known."""

    def __init__(self, X, y, window, adapt, voters="all", metric="dtw", cost="squared", given=()):
        self.voters, self.options = voters, (metric, cost, tuple(given))
        adapt = adapt and metric != "euclidean"
        self.X, self.y = [np.atleast_2d(x).astype(float) for x in X], list(y)
        self.points = isinstance(window, int)
        self.length = max(x.shape[1] for x in self.X)
        self.adapt = adapt and not (window is None and not adapt)
        if window is None and not adapt:
            window = math.inf
        self.kept, self.removed = list(range(len(y))), []
        if window is None:
            scores = [self.correct(percent / 100) for percent in range(101)]
            window = scores.index(max(scores)) / 100
        elif isinstance(window, int):
            window = window / self.length
        self.start, self.steps, self.windows = window, 0, [window]
        self.counts = [self.correct(window)]

    def distance(self, i, j, window):
        i, j = min(i, j), max(i, j)
        if math.isinf(window):
            window = None
        elif self.points:
            window = math.ceil(window * self.length - 1e-9)
        x, y = self.X[i], self.X[j]
        return self.measure(x.tobytes(), y.tobytes(), len(x), window, type(window), *self.options)

    @staticmethod
    @cache
    def measure(x, y, n_channels, window, kind, metric, cost, given):
        x, y = (np.frombuffer(z).reshape(n_channels, -1) for z in (x, y))
        return reference.named(metric, x, y, cost=cost, window=window, **dict(given))

    def neighbor(self, i, window):
        others = [j for j in self.kept if j != i]
        return min(others, key=lambda j: (self.distance(i, j, window), j)) if others else None

    def correct(self, window):
        neighbors = [self.neighbor(i, window) for i in range(len(self.y))]
        return sum(j is not None and self.y[i] == self.y[j] for i, j in enumerate(neighbors))

    def window_after(self, steps):
        return self.start if steps == 0 else min(1.0, max(0.0, self.start + steps / 100))

    def step(self, least):
        window = self.windows[-1]
        n_classes = len(set(self.y))
        rank, nearness = dict.fromkeys(self.kept, 0), dict.fromkeys(self.kept, 0.0)
        for i in range(len(self.y)) if self.voters == "all" else self.kept:
            j = self.neighbor(i, window)
            d = self.distance(i, j, window)
            rank[j] += max(1, n_classes - 1) if self.y[i] == self.y[j] else -2
            nearness[j] += 1.0 / d**2 if d > 0 else math.inf
        index = min(self.kept, key=lambda j: (rank[j], nearness[j], -j))
        self.kept.remove(index)
        steps, best = self.steps, self.correct(window)
        for other in (self.steps - 1, self.steps + 1) if self.adapt else ():
            count = self.correct(self.window_after(other))
            if count > best:
                steps, best = other, count
        if best < least:
            self.kept = sorted([*self.kept, index])
            return False
        self.removed.append(index)
        self.steps = steps
        self.windows.append(self.window_after(steps))
        self.counts.append(best)
        return True


def assert_naive(model, X, y, n_kept, least=0):
    model.fit(X, y)
    how = model.window, model.adapt_window, model.voters, model.metric, model.cost
    naive = Naive(X, y, *how, (model.metric_params or {}).items())
    going = True
    while going and len(naive.kept) > n_kept:
        going = naive.step(least)
    assert_array_equal(model.sample_indices_, naive.kept)
    assert_array_equal(np.flatnonzero(model.ranks_ == 1), naive.kept)
    for place, index in enumerate(reversed(naive.removed)):
        assert model.ranks_[index] == 2 + place
    assert_array_equal(model.windows_, naive.windows)
    assert_allclose(model.accuracies_, np.array(naive.counts) / len(y), rtol=1e-15)
    return naive


DATA = {
    "walks": lambda rng: rng.normal(size=(14, 12)).cumsum(axis=1),
    "channels": lambda rng: rng.normal(size=(9, 2, 8)).cumsum(axis=2),
    # integers: many series at equal distance, some at none
    "ties": lambda rng: rng.integers(0, 3, (16, 7)).astype(float),
    "duplicates": lambda rng: np.repeat(rng.normal(size=(5, 8)), 3, axis=0)[rng.permutation(15)],
    "constant": lambda rng: np.ones((6, 5)),
    "lengths": lambda rng: [rng.normal(size=n).cumsum() for n in (7, 9, 12, 8, 10, 11, 12, 6)],
}


@pytest.mark.parametrize("options", [{}, {"window": 0.1}, {"window": 2}, {"adapt_window": False}])
@pytest.mark.parametrize("kind", DATA)
def test_choice_of_plain_loops(fast_engine, rng, kind, options):
    X = DATA[kind](rng)
    for n_classes in (1, 2, 3):
        y = np.arange(len(X)) % n_classes
        assert_naive(DTWCondenser(n_prototypes=1, engine=fast_engine, **options), X, y, 1)


#: Options of every distance, under windows of every kind.
DISTANCES = [
    ("dtw", {}),
    ("dtw", {"cost": "absolute", "window": 0.3}),
    ("dog_keeper", {"window": 0.2}),
    ("frechet", {"window": 1, "cost": "absolute"}),
    ("euclidean", {}),
    ("ddtw", {"window": 0.4}),
    ("ddtw", {"adapt_window": False}),
    ("wdtw", {"metric_params": {"g": 0.3}, "window": 0.1}),
    ("adtw", {"metric_params": {"penalty": 0.5}, "cost": "absolute", "window": 0.5}),
    ("shape_dtw", {"metric_params": {"reach": 2}, "window": 0.3}),
    ("erp", {"metric_params": {"gap": 1.0}, "window": 3}),
    ("edr", {"metric_params": {"epsilon": 0.5}, "adapt_window": False}),
    ("lcss", {"metric_params": {"epsilon": 0.5}, "window": 2}),
    ("msm", {"metric_params": {"penalty": 0.25}}),
    ("twe", {"metric_params": {"nu": 0.25, "lmbda": 0.5}, "window": 0.2}),
]


@pytest.mark.parametrize("voters", ["all", "kept"])
@pytest.mark.parametrize(("metric", "options"), DISTANCES)
def test_other_distances_and_voters(fast_engine, rng, metric, options, voters):
    for kind in ("walks", "ties"):
        X = DATA[kind](rng)[:9]
        y = np.arange(len(X)) % 3
        model = DTWCondenser(
            n_prototypes=1, metric=metric, voters=voters, engine=fast_engine, **options
        )
        with replace_kernels(always=fast_engine == "numba"):
            assert_naive(model, X, y, 1)


def test_all_distances_are_condensed_under():
    assert {metric for metric, _ in DISTANCES} == set(METRICS)


@pytest.mark.parametrize("options", [{}, {"window": 0.1}, {"window": 2}, {"adapt_window": False}])
@pytest.mark.parametrize("kind", DATA)
def test_series_that_are_kept_vote_alone(rng, kind, options):
    X = DATA[kind](rng)
    for n_classes in (1, 2, 3):
        y = np.arange(len(X)) % n_classes
        model = DTWCondenser(n_prototypes=1, voters="kept", engine="numba", **options)
        assert_naive(model, X, y, 1)


def test_who_votes_makes_a_difference():
    """Series 2 goes first: its nearest is 0, of the other class, and speaks for 1 if it votes."""
    X = np.repeat([[1.0], [0.0], [1.5]], 2, axis=1)
    for voters, ranks in (("all", [2, 1, 3]), ("kept", [1, 2, 3])):
        model = DTWCondenser(n_prototypes=1, window=0, adapt_window=False, voters=voters)
        assert model.fit(X, [0, 0, 1]).ranks_.tolist() == ranks


def test_distances_of_unequal_lengths(rng):
    X = DATA["lengths"](rng)
    for metric, voters in (("wdtw", "all"), ("ddtw", "kept"), ("msm", "kept")):
        options = {"metric": metric, "voters": voters, "window": 0.2}
        assert_naive(DTWCondenser(n_prototypes=2, engine="oracle", **options), X, [0, 1] * 4, 2)
    with pytest.raises(ValueError, match="series of one length"):
        DTWCondenser(metric="euclidean").fit(X, [0, 1] * 4)


def test_bad_distances(rng):
    X, y = rng.normal(size=(4, 6)), [0, 1, 0, 1]
    with pytest.raises(ValueError, match="'g' is no parameter"):
        DTWCondenser(metric="msm", metric_params={"g": 1}).fit(X, y)
    with pytest.raises(ValueError, match="window=0.1 does not go with metric='euclidean'"):
        DTWCondenser(metric="euclidean", window=0.1).fit(X, y)


def test_oracle_engine(rng):
    X = DATA["walks"](rng)[:8]
    y = [0, 1] * 4
    assert_naive(DTWCondenser(n_prototypes=2, window=0.1, engine="oracle"), X, y, 2)


@pytest.mark.parametrize("growth", [1, 2])
def test_short_lists_are_filled_again(fast_engine, monkeypatch, rng, growth):
    monkeypatch.setattr(_condenser, "_MOST", 2)
    monkeypatch.setattr(_condenser, "_FEWEST", 2)
    monkeypatch.setattr(_condenser, "_GROWTH", growth)
    # one window in store: every test of another fills its lists anew
    monkeypatch.setattr(_condenser, "_WINDOWS", 1)
    for kind in ("walks", "ties", "duplicates"):
        X = DATA[kind](rng)
        y = np.arange(len(X)) % 3
        assert_naive(DTWCondenser(n_prototypes=1, engine=fast_engine), X, y, 1)


@pytest.mark.parametrize("voters", ["all", "kept"])
@pytest.mark.parametrize("values", [1, 2, 3, 4])
def test_many_series_of_the_same_points(rng, values, voters):
    """Of several points that are equally far the lowest index decides, also when some are gone."""
    X = rng.integers(0, values, (60, 3)).astype(float)
    y = rng.integers(0, 3, 60)
    for metric in ("dtw", "euclidean"):
        model = DTWCondenser(
            n_prototypes=1, metric=metric, voters=voters, adapt_window=False, engine="numba"
        )
        assert_naive(model, X, y, 1)


def test_series_that_are_the_same_but_for_their_length_or_the_sign_of_zero(rng):
    X = [np.zeros(4), np.zeros(3), np.zeros(4), -np.zeros(4), np.ones(3), np.ones(4), np.zeros(3)]
    assert _condenser._first_of_same(check_series(X)).tolist() == [0, 1, 0, 3, 4, 5, 1]
    for voters in ("all", "kept"):
        model = DTWCondenser(n_prototypes=1, window=0.3, voters=voters, engine="numba")
        assert_naive(model, X, [0, 1, 1, 0, 2, 2, 1], 1)


def test_different_series_whose_hashes_are_equal(monkeypatch, rng):
    monkeypatch.setattr(_condenser, "hash", lambda points: 0, raising=False)
    X = DATA["duplicates"](rng)
    found = _condenser._first_of_same(check_series(X))
    assert found.tolist() == [0 if np.array_equal(x, X[0]) else i for i, x in enumerate(X)]
    assert_naive(DTWCondenser(n_prototypes=1, window=2, engine="numba"), X, np.arange(15) % 3, 1)


@pytest.mark.parametrize("kind", ["equal", "few", "equally far"])
def test_ties_cost_few_distances(monkeypatch, kind):
    """Lists of one length would be filled n / 24 times, with n^2 distances each."""
    n, distances = 480, []
    n_different = {"equal": 1, "few": 5, "equally far": n}[kind]
    # under EDR, three points that do not match
    X = 10.0 * np.repeat(np.arange(n)[:, np.newaxis] % n_different, 3, axis=1)
    run = DTWCondenser._run

    def counting(self, work, *rest):
        distances.append(len(work.queries) * len(work.candidates))
        return run(self, work, *rest)

    monkeypatch.setattr(DTWCondenser, "_run", counting)
    model = DTWCondenser(n_prototypes=1, metric="edr", adapt_window=False, engine="numba")
    model.fit(X, np.arange(n) % 3)
    # once, as often as lists of 24 are doubled, and as lists are rounded up
    assert 0 < sum(distances) <= (2 + math.log2(n / 24)) * n_different**2


def test_windows_move_both_ways(rng):
    X, y = make_cylinder_bell_funnel(20, 100, noise=2.0, random_state=1)
    naive = assert_naive(DTWCondenser(n_prototypes=2, window=0.04), X, y, 2)
    assert min(np.diff(naive.windows)) < 0 < max(np.diff(naive.windows))


@pytest.mark.parametrize("min_accuracy", [0.6, 0.75, 10 / 14])
def test_accuracy_stops_the_removal(rng, min_accuracy):
    # two groups, and a series that lies with the wrong one
    X = DATA["walks"](rng)
    X[:7] += 9
    y = np.repeat([0, 1], 7)
    y[3] = 1
    model = DTWCondenser(n_prototypes=1, min_accuracy=min_accuracy, window=0.2)
    least = math.ceil(min_accuracy * 14 - 1e-9)
    assert_naive(model, X, y, 1, least)
    assert model.accuracies_.min() >= min_accuracy
    assert 1 < len(model.sample_indices_) < 14


def test_unreachable_accuracy_keeps_all(rng):
    X = rng.normal(size=(6, 5))
    model = DTWCondenser(min_accuracy=1.0)
    with pytest.warns(UserWarning, match="min_accuracy=1.0 is not reached by all 6 series"):
        model.fit(X, [0, 1, 2, 3, 4, 5])
    assert_array_equal(model.sample_indices_, np.arange(6))
    assert model.windows_.shape == model.accuracies_.shape == (1,)


def test_accuracies_are_those_of_the_classifier():
    X, y = make_cylinder_bell_funnel(40, 48, random_state=1)
    model = DTWCondenser(n_prototypes=5).fit(X, y)
    kept, window = model.sample_indices_, float(model.windows_[-1])
    classifier = DTWNearestNeighbor(window=window).fit(X[kept], y[kept])
    distances, indices = classifier.kneighbors(X, n_neighbors=2)
    own = kept[indices[:, 0]] == np.arange(40)
    found = y[kept[np.where(own, indices[:, 1], indices[:, 0])]]
    assert np.mean(found == y) == model.accuracies_[-1]
    assert distances.shape == (40, 2)


def test_same_choice_however_the_work_is_cut(fast_engine):
    X, y = make_cylinder_bell_funnel(90, 32, random_state=2)
    expected = DTWCondenser(engine="numba", precision="float64").fit(X, y)
    with config_context(memory="3MB" if fast_engine == "numba" else "200MB"):
        found = DTWCondenser(engine=fast_engine, n_jobs=1).fit(X, y)
    assert_array_equal(found.ranks_, expected.ranks_)
    assert_array_equal(found.windows_, expected.windows_)
    assert found.engine_ == fast_engine


def test_ranks_are_nested():
    X, y = make_cylinder_bell_funnel(30, 32, random_state=0)
    few, more = (DTWCondenser(n_prototypes=n).fit(X, y) for n in (5, 0.5))
    assert len(more.sample_indices_) == 15
    assert_array_equal(np.flatnonzero(few.ranks_ <= 1 + 10), more.sample_indices_)
    assert sorted(few.ranks_) == [1] * 5 + list(range(2, 27))


# --- among other tools -------------------------------------------------------------------------


def test_scikit_learns_checks(fast_engine, monkeypatch):
    monkeypatch.setenv("SCIPY_ARRAY_API", "1")
    check_with_scikit_learn(DTWCondenser(engine=fast_engine), least=30)


def test_parameters_and_fitted_attributes_are_described():
    X, y = make_cylinder_bell_funnel(9, 16, random_state=0)
    check_described(DTWCondenser(n_prototypes=3).fit(X, y))


def test_forms_of_data_are_kept(rng):
    pandas = pytest.importorskip("pandas")
    X, y = make_cylinder_bell_funnel(12, 16, random_state=0)
    model = DTWCondenser(n_prototypes=4)
    X_kept, y_kept = model.fit_resample(X, y)
    assert_array_equal(X_kept, X[model.sample_indices_])
    assert_array_equal(y_kept, y[model.sample_indices_])
    frame = pandas.DataFrame(X, columns=[f"t{i}" for i in range(16)], index=np.arange(12) * 10)
    X_kept, y_kept = model.fit_resample(frame, pandas.Series(y, index=frame.index))
    assert list(X_kept.index) == list(y_kept.index) == (10 * model.sample_indices_).tolist()
    assert list(model.feature_names_in_) == list(frame.columns)
    listed = [x[: 10 + i % 3] for i, x in enumerate(X)]
    X_kept, y_kept = model.fit_resample(listed, list(y))
    assert isinstance(X_kept, list)
    assert isinstance(y_kept, list)
    assert all(a is listed[i] for a, i in zip(X_kept, model.sample_indices_, strict=True))
    X_kept, _ = model.fit_resample(np.stack([X, X], axis=1), y)
    assert X_kept.shape == (4, 2, 16)
    assert model.n_channels_ == 2


def test_fit_resample_of_a_long_frame_keeps_series():
    pandas = pytest.importorskip("pandas")
    X, y = make_cylinder_bell_funnel(12, 16, random_state=0)
    listed = {f"s{9 - i}": x[: 10 + i % 3] for i, x in enumerate(X[:9])}
    frame = pandas.concat({name: pandas.DataFrame({"v": x}) for name, x in listed.items()})
    model = DTWCondenser(n_prototypes=4)
    kept, labels = model.fit_resample(frame, y[:9])
    names = [name for i, name in enumerate(listed) if i in model.sample_indices_]
    assert len(names) == len(labels) == 4
    pandas.testing.assert_frame_equal(kept, frame.loc[names])
    other = DTWCondenser(n_prototypes=4).fit(list(listed.values()), y[:9])
    assert_array_equal(model.sample_indices_, other.sample_indices_)


class ResamplingPipeline:
    """As a pipeline of imbalanced-learn: resample while fitting, never when predicting."""

    def __init__(self, steps):
        self.steps = [(name, clone(step)) for name, step in steps]

    def fit(self, X, y):
        for _, step in self.steps[:-1]:
            if hasattr(step, "fit_resample"):
                X, y = step.fit_resample(X, y)
            else:
                X = step.fit_transform(X, y)
        self.steps[-1][1].fit(X, y)
        return self

    def predict(self, X):
        for _, step in self.steps[:-1]:
            if not hasattr(step, "fit_resample"):
                X = step.transform(X)
        return self.steps[-1][1].predict(X)


def check_pipeline(kind):
    X, y = make_cylinder_bell_funnel(60, 40, random_state=0)
    Q, z = make_cylinder_bell_funnel(60, 40, random_state=1)
    steps = [("condense", DTWCondenser(n_prototypes=9)), ("classify", DTWNearestNeighbor())]
    pipeline = kind(steps).fit(X, y)
    assert pipeline.steps[-1][1].n_samples_fit_ == 9
    assert np.mean(pipeline.predict(Q) == z) > 0.8


def test_pipeline_that_resamples():
    # a pipeline takes a step for a resampler or for a transformer, not for both
    assert not hasattr(DTWCondenser(), "transform")
    check_pipeline(ResamplingPipeline)


def test_pipeline_of_imbalanced_learn():
    check_pipeline(pytest.importorskip("imblearn.pipeline").Pipeline)


def test_pickle_and_clone(rng):
    X, y = make_cylinder_bell_funnel(12, 16, random_state=0)
    model = DTWCondenser(n_prototypes=3).fit(X, y)
    again = pickle.loads(pickle.dumps(model))
    assert_array_equal(again.sample_indices_, model.sample_indices_)
    assert vars(clone(model)) == vars(DTWCondenser(n_prototypes=3))


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"n_prototypes": 7}, "n_prototypes=7 is more than the 6 series of X"),
        ({"n_prototypes": 0}, "n_prototypes"),
        ({"n_prototypes": 1.5}, "n_prototypes"),
        ({"min_accuracy": 1.1}, "min_accuracy"),
        ({"window": -1}, "window"),
        ({"engine": "abacus"}, "engine='abacus' is not known"),
    ],
)
def test_bad_parameters(options, message):
    with pytest.raises(ValueError, match=message):
        DTWCondenser(**options).fit(np.eye(6), [0, 1] * 3)


def test_bad_data():
    with pytest.raises(ValueError, match="1 sample"):
        DTWCondenser().fit([[1.0, 2.0]], [0])
    with pytest.raises(ValueError, match="inconsistent numbers of samples"):
        DTWCondenser().fit(np.eye(4), [0, 1])
    with pytest.raises(ValueError, match="NaN at series 1, time point 0"):
        DTWCondenser().fit([[1.0, 2.0], [np.nan, 2.0]], [0, 1])
    with pytest.raises(ValueError, match="y cannot be None|requires y"):
        DTWCondenser().fit(np.eye(4), None)
    with pytest.raises(ValueError, match="Unknown label type"):
        DTWCondenser().fit(np.eye(4), [0.5, 1.5, 2.5, 3.5])


def test_no_warnings(rng):
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        DTWCondenser(min_accuracy=0.0).fit(np.ones((6, 4)), [0, 1] * 3)


def test_of_one_class_the_series_that_is_nearest_to_fewest_goes_first(rng):
    """Every vote is one of agreement."""
    X = np.array([[0.0, 0.0], [0.1, 0.0], [-0.1, 0.0], [9.0, 9.0]])
    y = np.zeros(4, int)
    model = DTWCondenser(n_prototypes=3, window=0, adapt_window=False).fit(X, y)
    # nothing is nearest to 2 and 3, and 3 has the higher index
    assert_array_equal(model.sample_indices_, [0, 1, 2])
    X = rng.normal(size=(12, 8))
    y = np.zeros(12, int)
    naive = Naive(X, y, 0.1, False)
    for _ in range(9):
        naive.step(0)
    model = DTWCondenser(n_prototypes=3, window=0.1, adapt_window=False).fit(X, y)
    assert_array_equal(model.sample_indices_, naive.kept)


@pytest.mark.filterwarnings("error")
@pytest.mark.parametrize("exponent", [-400, 400, -470, 470])
def test_powers_of_two_condense_to_the_same_series(fast_engine, rng, exponent):
    X = np.round(rng.normal(size=(24, 14)), 2)
    y = np.arange(24) % 3
    # among series of one class that are nearly equal, inverse squared distances decide
    X[12:] = X[:12] + 1e-7 * rng.normal(size=(12, 14))
    found = []
    for k in (0, exponent):
        scaled = np.ldexp(X, k)
        condenser = DTWCondenser(n_prototypes=4, engine=fast_engine).fit(scaled, y)
        errors = dtw_window_search(scaled, y, windows=[0, 2, 13], engine=fast_engine).errors
        found.append((condenser.ranks_, condenser.windows_, condenser.accuracies_, errors))
    for one, other in zip(*found, strict=True):
        assert_array_equal(other, one)


@pytest.mark.parametrize("exponent", [-1000, -530, 0, 480])
def test_inverse_squares_of_tiny_and_large_distances_have_an_order(exponent):
    distances = np.ldexp([3.0, 4.0, 0.0, 5.0], exponent)
    with np.errstate(divide="ignore"):
        nearness = 1.0 / _condenser._in_range(distances) ** 2
    assert_array_equal(np.argsort(-nearness), [2, 0, 1, 3])
    assert_array_equal(np.isinf(nearness), [False, False, True, False])


def test_of_equal_distances_in_another_order_the_series_with_the_higher_index_goes_first():
    """Sums of the same three numbers differ in last bits, if they are added in another order."""
    around = np.array([[10.0, 2], [-4, 9], [-6, -10]])
    first, second = np.zeros(2), np.array([1000.0, 0])
    X = np.array([first, second, *(first + around), *(second + around[[0, 2, 1]])])
    found = DTWCondenser(n_prototypes=7, metric="euclidean").fit(X, np.arange(8))
    assert np.flatnonzero(found.ranks_ == 2) == 1
