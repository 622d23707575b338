"""One validator: every accepted form, and one clear sentence for everything else."""

from __future__ import annotations

import pickle
import re
from datetime import date
from fractions import Fraction

import numpy as np
import pandas as pd
import pytest
import scipy.sparse
from numpy.testing import assert_array_equal
from sklearn.base import clone

from skts import (
    DiscordDetector,
    DTWCondenser,
    DTWNearestNeighbor,
    DTWNeighbors,
    KShapeClusterer,
    MotifFinder,
    ShapeletForestClassifier,
    ShapeletTreeClassifier,
    SubsequenceMonitor,
    SubsequenceSearch,
)
from skts.averages import dtw_barycenter
from skts.base import check_series, check_univariate
from skts.engines import find_engine
from skts.exceptions import UnsupportedReductionError
from skts.metrics import dtw, pairwise_dtw, silhouette_score
from skts.motifs import matrix_profile
from skts.neighbors import dtw_window_search, elastic_parameter_search
from tests.examples_of_estimators import estimators, examples


def test_two_dimensions_are_one_channel():
    X = np.arange(6.0).reshape(2, 3)
    series = check_series(X)
    assert_array_equal(series.values, X[:, None, :])
    assert_array_equal(series.lengths, [3, 3])
    assert np.shares_memory(series.values, X)


@pytest.mark.parametrize("dtype", [np.float32, np.int8, np.int64, bool])
def test_other_types_become_float64(dtype):
    series = check_series(np.array([[0, 1, 1]], dtype))
    assert series.values.dtype == np.float64
    assert_array_equal(series.values, [[[0.0, 1.0, 1.0]]])


def test_three_dimensions():
    X = np.arange(24.0).reshape(2, 3, 4)
    assert_array_equal(check_series(X).values, X)
    assert_array_equal(check_series(X.tolist()).values, X)


def test_a_nested_list_of_one_length_is_an_array():
    assert_array_equal(check_series([[1, 2], [3, 4]]).values, [[[1, 2]], [[3, 4]]])


@pytest.mark.parametrize(
    "X",
    [
        [np.array([1.0, 2.0, 3.0]), np.array([4.0])],
        [[1, 2, 3], [4]],
        (np.array([1, 2, 3]), [4]),
        np.array([[1, 2, 3], [4, np.nan, np.nan]]),
        [np.array([1.0, 2.0, 3.0]), np.array([4.0, np.nan])],
    ],
)
def test_unequal_lengths(X):
    series = check_series(X)
    assert_array_equal(series.lengths, [3, 1])
    assert_array_equal(series.values, [[[1, 2, 3]], [[4, 0, 0]]])


def test_a_list_of_arrays_with_channels():
    series = check_series([np.ones((2, 4)), np.zeros((2, 3))])
    assert series.values.shape == (2, 2, 4)
    assert_array_equal(series.lengths, [4, 3])


def long_frame(series):
    """A frame as sktime has them: a row for each point of each series, a column a channel."""
    keys = [f"s{k}" for k in range(len(series), 0, -1)]
    parts = [pd.DataFrame(x.T, columns=[f"c{c}" for c in range(len(x))]) for x in series]
    return pd.concat(parts, keys=keys, names=["instances", "timepoints"])


def test_frames_of_a_row_for_each_point_are_series():
    rng = np.random.default_rng(0)
    series = [rng.normal(size=(2, n)) for n in (5, 7, 5, 6)]
    frame = long_frame(series)
    found, expected = check_series(frame), check_series(series)
    assert_array_equal(found.values, expected.values)
    assert_array_equal(found.lengths, expected.lengths)
    one = [x[0] for x in series]
    model = DTWNearestNeighbor(engine="numba").fit(frame[["c0"]], [0, 1, 1, 0])
    assert not hasattr(model, "n_features_in_")
    again = DTWNearestNeighbor(engine="numba").fit(one, [0, 1, 1, 0])
    query = long_frame([x + 0.1 for x in series[1:]])[["c0"]]
    for a, b in zip(
        model.kneighbors(query), again.kneighbors([x + 0.1 for x in one[1:]]), strict=True
    ):
        assert_array_equal(a, b)
    with pytest.raises(ValueError, match="expecting 1 channel as input"):
        model.predict(frame)


def test_frames_in_a_list_have_a_row_for_each_point(rng):
    series = [rng.normal(size=(2, n)) for n in (5, 7, 5)]
    frames = [pd.DataFrame(x.T, columns=["a", "b"]) for x in series]
    found, expected = check_series([frames[0], series[1], frames[2]]), check_series(series)
    assert_array_equal(found.values, expected.values)
    assert_array_equal(found.lengths, expected.lengths)
    assert dtw(frames[0], frames[1]) == dtw(series[0], series[1])
    long = rng.normal(size=(2, 60))
    for count in (1, 2):
        frame = pd.DataFrame(long[:count].T, columns=["a", "b"][:count])
        profile = matrix_profile(frame, window=8)
        assert_array_equal(profile.distances, matrix_profile(long[:count], window=8).distances)
    model = DTWNearestNeighbor(engine="numba").fit(frames, [0, 1, 1])
    assert_array_equal(model.predict(frames[::-1]), [1, 1, 0])
    with pytest.raises(ValueError, match="Channel 0 of X is 'b', and 'a' in the series of fit"):
        model.predict([frame[["b", "a"]] for frame in frames])


@pytest.mark.parametrize("kind", ["times", "with a zone", "periods", "differences"])
def test_time_points_are_not_taken_for_series(kind, rng):
    times = pd.date_range("2024", periods=120, freq="min")
    times = {
        "times": times,
        "with a zone": times.tz_localize("UTC"),
        "periods": times.to_period("min"),
        "differences": times - times[0],
    }[kind]
    frame = pd.DataFrame(rng.normal(size=(120, 2)), times, columns=["a", "b"])
    told = re.escape(
        "would be 120 series of 2 time points. If rows are the time points of one series, and "
        "columns its channels, write [X]. If each column is a series, write X.T; if each row is, "
        "X.to_numpy()."
    )
    for model in (
        *(MotifFinder(window) for window in (2, 50, 0.5, "auto", [0.5, 50])),
        *(DiscordDetector(window) for window in (2, 50, "auto")),
        SubsequenceSearch(),
        SubsequenceMonitor(),
    ):
        with pytest.raises(ValueError, match=told):
            model.fit(frame)
        model.fit([frame])
        model.fit(frame.T)
    SubsequenceSearch().fit(frame.to_numpy())
    search = SubsequenceSearch().fit([frame])
    assert_array_equal(search.kneighbors([frame[10:40]])[1], [[[0, 10]]])
    with pytest.raises(ValueError, match=r"would be 30 series of 2 time points.*write \[Q\]"):
        search.kneighbors(frame[10:40])


def test_a_frame_of_days_holds_a_series_in_each_row(rng):
    days = pd.DataFrame(rng.normal(size=(40, 24)), pd.date_range("2024", periods=40))
    for model in (MotifFinder(8), MotifFinder(), DiscordDetector(8), SubsequenceSearch()):
        fitted = model.fit(days)
        assert fitted.n_features_in_ == 24 and fitted.n_channels_ == 1
    with pytest.raises(ValueError, match="would be 40 series of 24 time points"):
        MotifFinder([8, 30]).fit(days)
    # fewer rows than columns are no time points of channels
    SubsequenceSearch().fit(days.iloc[:3, :5])
    # other estimators compare rows, however short
    DTWNeighbors().fit(days.iloc[:, :2])


def test_frames_in_a_list_that_do_not_go_together_are_refused():
    frame = pd.DataFrame(np.arange(10.0).reshape(5, 2), columns=["a", "b"])
    with pytest.raises(ValueError, match=r"series 1 has the columns \['b', 'a'\] where another"):
        check_series([frame, frame[["b", "a"]]])
    with pytest.raises(ValueError, match="time points of series 1 do not ascend"):
        check_series([frame, frame.iloc[::-1]])
    with pytest.raises(ValueError, match="5 columns and fewer rows.* write x.to_numpy()"):
        check_series([frame.T, frame.T])
    with pytest.raises(ValueError, match="series 0 of X is empty"):
        check_series([frame.iloc[:0]])


def test_arrays_with_columns_are_no_frames():
    class Table(np.ndarray):
        columns = "of another kind"

    points = np.arange(10.0).reshape(2, 5).view(Table)
    assert check_series([points]).values.shape == (1, 2, 5)


def test_a_series_of_a_frame_whose_name_is_missing_is_a_series():
    series = [np.arange(5.0), np.arange(4.0) ** 2]
    for names in (["a", np.nan], pd.Categorical(["b", None], categories=["a", "b"])):
        frame = pd.concat([pd.DataFrame({"c0": x}) for x in series])
        names = pd.Index(names).repeat([5, 4])
        frame.index = pd.MultiIndex.from_arrays([names, frame.index])
        found, expected = check_series(frame), check_series(series)
        assert_array_equal(found.values, expected.values)
        assert_array_equal(found.lengths, expected.lengths)


ASKED = ("predict", "transform", "kneighbors", "score_points")


@pytest.mark.parametrize("kind", [kind for kind in estimators() if {*ASKED} & {*dir(kind)}])
def test_channels_of_frames_keep_their_order(kind, rng):
    example = examples(small=True)[kind]
    rows = example.first[0]
    frame = long_frame([np.stack([x, rng.normal(size=len(x)).cumsum()]) for x in rows])
    swapped, renamed = frame[["c1", "c0"]], frame.rename(columns={"c0": "a", "c1": "b"})
    model = example.make().fit(frame, *example.first[1:])
    asks = [getattr(model, name) for name in ASKED if hasattr(model, name)]
    for ask in asks:
        with pytest.raises(ValueError, match="Channel 0 of [XQ] is 'c1', and 'c0' in the series"):
            ask(swapped)
        with pytest.raises(ValueError, match="Channel 0 of [XQ] is 'a', and 'c0' in the series"):
            ask(renamed)
        ask(frame.set_axis([0, 1], axis=1))  # without names
    again = pickle.loads(pickle.dumps(model)).fit(swapped, *example.first[1:])
    for ask in asks:
        getattr(again, ask.__name__)(swapped)


def test_channels_of_two_sets_of_frames_are_in_one_order():
    frame = long_frame([np.arange(10.0).reshape(2, 5) ** power for power in (1, 2)])
    with pytest.raises(ValueError, match="Channel 0 of Y is 'c1', and 'c0' in X: give the same"):
        pairwise_dtw(frame, frame[["c1", "c0"]])
    assert pairwise_dtw(frame[["c0"]], frame[["c1"]]).shape == (2, 2)


def test_frames_that_may_be_read_in_two_ways_are_refused():
    frame = long_frame([np.ones((1, 5)), np.ones((1, 4))])
    with pytest.raises(
        ValueError, match="time points of series 's2' do not ascend: sort the frame"
    ):
        check_series(frame.iloc[::-1].iloc[4:])
    deep = frame.set_index("c0", append=True)
    deep["x"] = 1.0
    with pytest.raises(ValueError, match="has 3 levels; those of series are two"):
        check_series(deep)
    wide = pd.DataFrame(np.ones((4, 9)), pd.MultiIndex.from_product([["a", "b"], [1, 2]]))
    with pytest.raises(ValueError, match="more columns than time points; if each row is a series"):
        check_series(wide)
    assert check_series(wide.reset_index(drop=True)).values.shape == (4, 1, 9)


def test_input_is_not_written_to():
    X = np.array([[1.0, 2.0, np.nan]])
    check_series(X)
    assert np.isnan(X[0, 2])


@pytest.mark.parametrize(
    ("X", "message"),
    [
        ([[1.0, np.nan, 2.0], [1, 2, 3]], r"contains NaN at series 0, time point 1; NaN is accept"),
        ([[1, 2, 3], [np.nan, 1, 2]], "contains NaN at series 1, time point 0"),
        ([[1, 2], [np.nan, np.nan]], "contains only NaN in series 1"),
        ([[1, 2], [3, np.inf]], r"contains infinity \(inf\) at series 1, time point 1"),
        ([[1, 2], [-np.inf, 3]], r"infinity \(inf\) at series 1, time point 0"),
        ([[1, 2], [3, 1e200]], "contains 1e.200 at series 1, time point 1.* overflow"),
        (np.full((2, 2, 2), np.inf), r"series 0, time point 0, channel 0"),
        (np.zeros((2, 2, 2, 2)), "has 4 dimensions"),
        ([1.0, 2.0], r"shape \(2,\)\. Reshape your data: one series is \[X\],"),
        (np.ones(2), r"Reshape your data: one series is X.reshape\(1, -1\),"),
        (np.zeros((0, 3)), "0 sample"),
        (np.zeros((3, 0)), "0 feature"),
        (np.zeros((3, 0, 2)), r"shape \(3, 0, 2\)"),
        ([np.zeros(3), np.zeros(0)], "series 1 of X is empty"),
        ([np.zeros((2, 3)), np.zeros((3, 3))], "series 1 of X has 3 channels where series 0 has 2"),
        ([np.zeros((1, 2, 3))], "series 0 of X has 3 dimensions"),
        (np.array([[1 + 1j, 2]]), "Complex data not supported"),
        ([["a", "b"]], "X holds text, such as 'a': .* leave out names"),
        (np.array([np.ones(3), np.ones(2)], object), r"object array of series.*list\(X\)"),
        (pd.DataFrame({"s": [pd.Series([1.0, 2.0]), pd.Series([1.0])]}), "a cell holds a sequence"),
        (None, "got None instead: X is missing"),
    ],
)
def test_bad_input(X, message):
    with pytest.raises(ValueError, match=message):
        check_series(X)


def test_sparse_input():
    with pytest.raises(TypeError, match="Sparse data was passed"):
        check_series(scipy.sparse.eye(3).tocsr())


def test_one_length_on_request():
    with pytest.raises(ValueError, match=r"Series 1 of X has 1 time points where series 0 has 3"):
        check_series([[1, 2, 3], [4]], equal_length=True)


def test_a_read_only_memory_map_is_kept_by_reference(tmp_path):
    path = tmp_path / "X.npy"
    np.save(path, np.arange(12.0).reshape(4, 3))
    X = np.load(path, mmap_mode="r")
    model = DTWNearestNeighbor(engine="numba").fit(X, [0, 0, 1, 1])
    assert np.shares_memory(model._series.values, X)
    assert_array_equal(model.predict(X), [0, 0, 1, 1])


def test_the_fitted_copy_is_private_and_read_only():
    X = np.random.default_rng(0).normal(size=(6, 5))
    model = DTWNearestNeighbor(engine="numba").fit(X, [0, 1] * 3)
    before = model.kneighbors(X[:2])
    queries = X[:2].copy()
    X[:] = 0
    after = model.kneighbors(queries)
    assert_array_equal(before[0], after[0])
    with pytest.raises(ValueError, match="read-only"):
        model._series.values[0] = 1


def test_data_frames_and_their_columns():
    frame = pd.DataFrame(np.arange(16.0).reshape(4, 4), columns=["a", "b", "c", "d"])
    model = DTWNearestNeighbor(engine="numba").fit(frame, [0, 1, 0, 1])
    assert_array_equal(model.feature_names_in_, ["a", "b", "c", "d"])
    assert_array_equal(model.predict(frame), [0, 1, 0, 1])
    with pytest.raises(ValueError, match="feature names should match"):
        model.predict(frame[["b", "a", "c", "d"]])


def test_widths_and_channels_later_on():
    model = DTWNearestNeighbor(engine="numba").fit(np.eye(4), [0, 1, 0, 1])
    assert (model.n_features_in_, model.n_channels_) == (4, 1)
    with pytest.raises(ValueError, match="X has 3 features, but DTWNearestNeighbor is expecting 4"):
        model.predict(np.eye(3))
    assert model.predict([np.zeros(7)]).shape == (1,)
    assert model.predict(np.zeros((1, 1, 9))).shape == (1,)
    with pytest.raises(ValueError, match="X has 2 channels, but DTWNearestNeighbor is expecting 1"):
        model.predict(np.zeros((1, 2, 4)))


@pytest.mark.parametrize(
    "bad",
    [
        (np.array([[1.0, np.nan, 2.0]] * 4), [0, 1, 0, 1]),
        (np.eye(4), [0, 1, 0]),
        (np.eye(4), None),
        (np.eye(4), [0.5, 1.5, 0.1, 0.2]),
        (np.eye(4), [0, 1, np.nan, 1]),
        ([np.zeros(3), np.zeros(0)], [0, 1]),
    ],
)
def test_a_failing_fit_leaves_the_estimator_as_it_was(bad):
    model = DTWNearestNeighbor(engine="numba").fit(np.eye(5), [0, 1, 2, 1, 0])
    before = dict(vars(model))
    with pytest.raises(ValueError):
        model.fit(*bad)
    after = vars(model)
    assert before.keys() == after.keys()
    assert all(before[name] is after[name] for name in before)


def test_a_failing_first_fit_leaves_nothing():
    model = DTWNearestNeighbor()
    before = dict(vars(model))
    with pytest.raises(ValueError, match="NaN"):
        model.fit([[np.nan, 1.0]], [0])
    assert vars(model) == before


def test_refit_on_a_list_forgets_the_width():
    model = DTWNearestNeighbor(engine="numba").fit(np.eye(4), [0, 1, 0, 1])
    model.fit([np.zeros(3), np.ones(5)], [0, 1])
    assert not hasattr(model, "n_features_in_")
    assert_array_equal(model.predict([np.ones(2), np.zeros(9)]), [1, 0])


# --- every form of the same series -------------------------------------------------------------


@pytest.mark.parametrize(
    "given",
    [
        ((1, 2, 3), (4, 5, 6)),
        [pd.Series([1, 2, 3]), pd.Series([4, 5, 6])],
        np.array([[1, 2, 3], [4, 5, 6]], ">f8"),
        np.array([[1, 2, 3], [4, 5, 6]], object),
        np.array([[1.0, 2, 3], [4, 5, 6]], order="F"),
        np.array([[1.0, 0, 2, 0, 3, 0], [4, 0, 5, 0, 6, 0]])[:, ::2],
        np.array([[[1, 2, 3]], [[4, 5, 6]]], np.float32),
        [[[1, 2, 3]], [[4, 5, 6]]],
        pd.DataFrame({"a": [1, 4], "b": [2, 5], "c": [3, 6]}),
    ],
)
def test_one_set_of_series_in_many_forms(given):
    series = check_series(given)
    assert series.values.dtype == np.float64
    assert series.values.flags.c_contiguous
    assert_array_equal(series.values, [[[1, 2, 3]], [[4, 5, 6]]])
    assert_array_equal(series.lengths, [3, 3])


@pytest.mark.parametrize(
    "given",
    [
        [[[1, 2, 3], [4, 5, 6]], np.array([[7], [8]])],
        [np.array([[1, 2, 3], [4, 5, 6]]), np.array([[7, np.nan], [8, np.nan]])],
        np.array([[[1, 2, 3], [4, 5, 6]], [[7, np.nan, np.nan], [8, np.nan, np.nan]]]),
    ],
)
def test_channels_of_unequal_lengths(given):
    series = check_series(given)
    assert_array_equal(series.values, [[[1, 2, 3], [4, 5, 6]], [[7, 0, 0], [8, 0, 0]]])
    assert_array_equal(series.lengths, [3, 1])


@pytest.mark.parametrize("shortest", [3, 5])
def test_columns_of_padding_alone_change_nothing(rng, shortest):
    X = [rng.normal(size=n) for n in (5, shortest, 5, 5)]
    y = [0, 1, 0, 1]
    padded = np.full((4, 8), np.nan)
    for row, x in zip(padded, X, strict=True):
        row[: len(x)] = x
    oracle = {"engine": "oracle"}
    for give in (padded, padded[:, np.newaxis]):
        found, wanted = (dtw_barycenter(each, **oracle) for each in (give, X))
        assert_array_equal(np.ravel(found.average), wanted.average)
        grid = {"window": [1, 0.3]}
        found, wanted = (
            elastic_parameter_search(each, y, param_grid=grid, **oracle) for each in (give, X)
        )
        assert found.best_params == wanted.best_params
        fits = [DTWCondenser(n_prototypes=2, window=2, **oracle).fit(each, y) for each in (give, X)]
        assert_array_equal(fits[0].windows_, fits[1].windows_)
        assert fits[0].n_features_in_ == 8
        found, wanted = (check_series(each) for each in (give, X))
        assert found.values.flags.c_contiguous
        assert_array_equal(found.values, wanted.values)
        model = KShapeClusterer(2, random_state=0, engine="numba")
        found, wanted = (clone(model).fit(each) for each in (give, X))
        assert_array_equal(np.squeeze(found.cluster_centers_), wanted.cluster_centers_)
        assert_array_equal(found.shifts_, wanted.shifts_)
        # later on as many columns as before, and rows of another fold may reach all of them
        full = np.where(np.isnan(give), 1.0, give)
        assert_array_equal(found.predict(full), wanted.predict([*full]))
        tree = ShapeletTreeClassifier(min_length=3, max_length=3, engine="numba")
        found, wanted = (clone(tree).fit(each, y).feature_importances_ for each in (give, X))
        assert_array_equal(found, wanted)
        limits = [
            ShapeletForestClassifier(max_length=0.8)._lengths(check_series(Z)) for Z in (give, X)
        ]
        assert_array_equal(*limits)
        if shortest == 5:
            found, wanted = (
                dtw_window_search(each, y, windows=[0, 0.3], **oracle) for each in (give, X)
            )
            assert_array_equal(found.errors, wanted.errors)
        else:
            with pytest.raises(ValueError, match="Series 1 of X has 3 time points where series 0"):
                dtw_window_search(give, y)


@pytest.mark.filterwarnings("error")
@pytest.mark.parametrize("shape", [(3, 4), (3, 2, 4)])
def test_series_of_one_point_with_padding_are_no_exchanged_axes(shape):
    X = np.full(shape, np.nan)
    X[..., 0] = 1.0
    for given in (X, X.tolist(), list(X)):
        assert_array_equal(check_series(given).values, np.ones((3, X.size // 12, 1)))
    assert_array_equal(pairwise_dtw(X, X), np.zeros((3, 3)))


def test_missing_values_of_a_data_frame_are_padding_too():
    series = check_series(pd.DataFrame([[1, 2, 3], [4, None, None]]))
    assert_array_equal(series.lengths, [3, 1])


def test_float32_and_integers_give_the_answer_of_their_values(rng):
    fine = 10 * rng.normal(size=(3, 4))
    for array in (fine.astype(np.float32), fine.astype(np.int16)):
        assert_array_equal(pairwise_dtw(array), pairwise_dtw(array.astype(np.float64)))


def test_a_read_only_memory_map_of_channels(tmp_path, rng):
    array = rng.normal(size=(4, 2, 5))
    np.save(tmp_path / "X.npy", array)
    mapped = np.load(tmp_path / "X.npy", mmap_mode="r")
    assert np.shares_memory(check_series(mapped).values, mapped)
    assert_array_equal(pairwise_dtw(mapped), pairwise_dtw(array))
    model = DTWNearestNeighbor(engine="numba").fit(mapped, [0, 1, 2, 3])
    assert_array_equal(model.predict(mapped), [0, 1, 2, 3])


# --- more that is refused ----------------------------------------------------------------------


@pytest.mark.parametrize(
    ("X", "message"),
    [
        ([[1, np.nan, 2, np.nan]], "NaN at series 0, time point 1"),
        ([np.ones(2), np.array([1, 1, np.nan, 1])], "NaN at series 1, time point 2"),
        (np.array([[[1, 2], [1, 2]], [[1, 2], [1, np.nan]]]), "series 1, time point 1, channel 1"),
        (pd.DataFrame([[1, 2], [None, 3]]), "NaN at series 1, time point 0"),
        ([[1, 2], [np.inf, np.nan]], r"infinity \(inf\) at series 1, time point 0"),
        ([[1, -1e300]], r"-1e\+300 at series 0, time point 1; .*Rescale"),
        ([], "Reshape your data"),
        (3.0, "Reshape your data"),
        (np.zeros((4, 2, 0)), r"shape \(4, 2, 0\) .*1 time point"),
        ([[1, 2], [1], []], "series 2 of X is empty"),
        ([np.ones((2, 3)), np.ones((2, 0))], "series 1 of X is empty"),
        ([np.ones((2, 5)), np.ones(5)], "series 1 of X has 1 channel where series 0 has 2"),
        ([np.array([1j])], "Complex data not supported"),
        (np.array([[1, "b"]], object), "could not convert string to float: 'b'"),
    ],
)
def test_more_bad_input(X, message):
    with pytest.raises(ValueError, match=message):
        check_series(X)


def test_sparse_input_in_a_list_is_named_by_its_row():
    with pytest.raises(TypeError, match="Sparse data was passed for series 1 of X"):
        check_series([np.ones(3), scipy.sparse.csr_array(np.eye(3))])


def test_the_name_of_the_argument_is_in_the_message():
    with pytest.raises(ValueError, match="Input query contains NaN at series 0, time point 0"):
        check_series([[np.nan, 1]], input_name="query")
    with pytest.raises(ValueError, match="Input y contains NaN at series 0, time point 1"):
        dtw([1, 2], [1, np.nan, 2])
    with pytest.raises(ValueError, match="Input Y contains infinity"):
        pairwise_dtw([[1.0, 2.0]], [[np.inf, 1.0]])


def test_the_largest_value_that_will_do():
    limit = 2.0**480
    assert dtw([limit], [-limit]) == 2 * limit
    with pytest.raises(ValueError, match="Rescale the data"):
        check_series([[np.nextafter(limit, np.inf)]])


# --- state -------------------------------------------------------------------------------------


@pytest.mark.parametrize("first", [pd.DataFrame(np.eye(4), columns=list("abcd")), list(np.eye(4))])
@pytest.mark.parametrize(
    ("bad", "error", "message"),
    [
        (np.full((4, 3), np.inf), ValueError, "infinity"),
        (np.full((4, 2, 3), 1e200), ValueError, "Rescale"),
        ([np.ones(3), np.ones(2), np.ones((2, 2)), np.ones(1)], ValueError, "series 2 of X has 2"),
        (np.ones((4, 1, 1, 1)), ValueError, "4 dimensions"),
        (scipy.sparse.csr_matrix(np.eye(4)), TypeError, "Sparse data was passed"),
        (
            pd.DataFrame(np.eye(4), columns=["a", "b", 2, 3]),
            TypeError,
            "Feature names are only supported if all input features have string names",
        ),
    ],
)
def test_series_that_will_not_do_leave_the_estimator_as_it_was(first, bad, error, message):
    model = DTWNearestNeighbor(engine="numba").fit(first, [0, 1, 0, 1])
    before = dict(vars(model))
    with pytest.raises(error, match=message):
        model.fit(bad, [0, 1, 0, 1])
    assert vars(model).keys() == before.keys()
    assert all(vars(model)[name] is before[name] for name in before)


def test_an_engine_without_the_search_leaves_the_estimator_as_it_was(monkeypatch):
    model = DTWNearestNeighbor(engine="oracle").fit(np.eye(4), [0, 1, 0, 1])
    before = dict(vars(model))
    monkeypatch.delattr(type(find_engine("oracle")), "dtw_neighbors")
    with pytest.raises(UnsupportedReductionError, match="'oracle' does not compute DTWNeighbors"):
        model.fit(np.ones((2, 3, 5)), [0, 1])
    assert vars(model).keys() == before.keys()
    changed = [name for name in before if vars(model)[name] is not before[name]]
    assert changed == []


@pytest.mark.parametrize(
    "bad", [np.full((2, 4), np.nan), np.ones((2, 3)), np.ones((2, 2, 4)), [np.ones(0)], np.ones(4)]
)
def test_bad_queries_write_nothing(bad):
    model = DTWNearestNeighbor(engine="numba").fit(np.eye(4), [0, 1, 0, 1])
    before = dict(vars(model))
    for method in (model.predict, model.predict_proba, model.kneighbors, model.transform):
        with pytest.raises(ValueError):
            method(bad)
    assert vars(model).keys() == before.keys()
    assert all(vars(model)[name] is before[name] for name in before)


def test_refits_keep_nothing_of_the_form_before():
    y = [0, 1, 0, 1]
    frame = pd.DataFrame(np.eye(4), columns=list("abcd"))
    model = DTWNearestNeighbor(engine="numba").fit(frame, y)
    model.fit(np.eye(4), y)
    assert model.n_features_in_ == 4
    assert not hasattr(model, "feature_names_in_")
    model.fit(np.ones((4, 3, 7)), y)
    assert (model.n_features_in_, model.n_channels_, model.n_samples_fit_) == (7, 3, 4)
    model.fit(frame, y).fit([[1, 2], [3], [4], [5]], y)
    assert not hasattr(model, "n_features_in_")
    assert not hasattr(model, "feature_names_in_")
    assert model.n_channels_ == 1


def test_arrays_where_there_were_names_warn():
    frame = pd.DataFrame(np.eye(4), columns=list("abcd"))
    model = DTWNearestNeighbor(engine="numba").fit(frame, [0, 1, 0, 1])
    with pytest.warns(UserWarning, match="X does not have valid feature names"):
        model.predict(np.eye(4))


@pytest.mark.parametrize("k", [5, 7])
def test_too_many_neighbors_are_refused_before_any_work(k, monkeypatch):
    model = DTWNearestNeighbor(k, engine="numba").fit(np.eye(4), [0, 1, 0, 1])
    monkeypatch.setattr(
        type(find_engine("numba")), "compute", lambda *arguments: pytest.fail("work was done")
    )
    message = rf"Expected n_neighbors <= n_samples_fit, but n_neighbors = {k}, n_samples_fit = 4"
    for method in (model.predict, model.predict_proba, model.kneighbors):
        with pytest.raises(ValueError, match=message):
            method(np.eye(4))


# --- scales -------------------------------------------------------------------------------------


@pytest.mark.parametrize("check", [check_series, check_univariate])
@pytest.mark.parametrize("size", [2.0**480, 2.0**-480])
def test_scales_between_the_limits_will_do(check, size):
    outside = np.nextafter(size, size * size)
    X = np.array([[0.0, size, -size / 2], [0.0, 0.0, 0.0], [1.0, 5e-324, -1e-200]])
    check(X)
    check([np.array([0.0, -size]), np.ones(3)])
    X[0, 1] = outside
    kind = "contains" if size > 1 else "contains no magnitude above"
    for given in (X, list(X), -X):
        with pytest.raises(
            ValueError, match=rf"{kind} -?[\d.e+-]+,? at series 0, time point 1; .* multiply by 1e"
        ) as caught:
            check(given)
        factor = float(str(caught.value).rstrip(".").rsplit(" ", 1)[1])
        check(X[:1] * factor)


def test_the_least_number_is_refused_with_advice_that_helps():
    for check in (check_series, check_univariate):
        with pytest.raises(ValueError, match="above 4.94066e-324, at series 1, time point 0;"):
            check([np.ones(2), np.array([5e-324, np.nan])])
        check([np.array([5e-324]) * 1e300])


def test_channels_share_their_scale():
    X = np.array([[[1e-200, 1e-210], [1.0, 0.0]]])
    check_series(X)
    with pytest.raises(ValueError, match=r"above 1e-200, at series 0, time point 0, channel 0"):
        check_series(X[:, :1].repeat(2, axis=1))


def test_long_recordings_are_looked_at_in_pieces(tmp_path, monkeypatch):
    monkeypatch.setattr("skts._validation.scale._PIECE", 10)
    x = np.full(35, 1e-200)
    x[[2, 31]] = np.nan, np.inf
    with pytest.raises(ValueError, match="above 2e-200, at series 0, time point 24"):
        x[24] = 2e-200
        check_univariate([x])
    x[27] = 1.0
    check_univariate([x])
    x[33] = -1e200
    with pytest.raises(ValueError, match=r"-1e\+200 at series 0, time point 33"):
        check_univariate([x])


class Column:
    """A column whose cells are series, as polars, Arrow and Awkward have them."""

    def __init__(self, rows, ragged):
        self.rows, self.ragged = rows, ragged

    def __iter__(self):
        return map(Cell, self.rows)

    def __array__(self, dtype=None, copy=None):
        if self.ragged:
            raise ValueError("cannot convert to RegularArray")
        return np.array(self.rows, dtype)


class Cell:
    """A series in such a column, which has no shape."""

    def __init__(self, points):
        self.points = points

    def __len__(self):
        return len(self.points)

    def __array__(self, dtype=None, copy=None):
        return np.array(self.points, dtype)


@pytest.mark.parametrize("check", [check_series, check_univariate])
def test_columns_of_series_are_given_as_lists(check):
    rows = [[1.0, 2.0, 3.0], [4.0, 5.0]]
    ragged = Column(rows, ragged=True)
    with pytest.raises(ValueError, match=r"X, of type Column, holds series.* a list, list\(X\)"):
        check(ragged)
    assert_array_equal(check_univariate(list(ragged))[1], rows[1])
    ragged.shape = (2,)
    with pytest.raises(ValueError, match=r"X, of type Column, holds series.* a list, list\(X\)"):
        check(ragged)
    ragged.to_pylist = lambda: rows
    with pytest.raises(ValueError, match=r"X\.to_pylist\(\)"):
        check(ragged)
    regular = Column(np.eye(3).tolist(), ragged=False)
    assert len(check(regular)) == 3
    assert_array_equal(check_series(regular).values[:, 0], np.eye(3))


def test_texts_of_numpy_and_of_python_are_labels_of_one_type():
    y = np.array(["a", np.str_("b"), "a"], object)
    assert DTWNearestNeighbor(window=0).fit(np.eye(3), y).classes_.tolist() == ["a", "b"]


@pytest.mark.parametrize(
    ("labels", "said"),
    [
        ([0, 1, 0], ": y is an object array of int; write y.astype(int)."),
        (
            [np.int8(0), np.int8(1), np.int8(0)],
            ": y is an object array of int8; write y.astype(int).",
        ),
        ([True, False, True], ": y is an object array of bool; write y.astype(bool)."),
        ([np.True_, np.False_, np.True_], ": y is an object array of bool; write y.astype(bool)."),
        ([2**70, 1, 2**70], ": unknown"),
        ([0.5, 1.5, 0.5], ": unknown"),
    ],
)
def test_labels_that_are_objects_become_numbers_by_what_the_message_says(labels, said):
    y = np.array(labels, object)
    for model in (DTWNearestNeighbor(window=0), DTWCondenser(), ShapeletTreeClassifier()):
        with pytest.raises(ValueError, match=re.escape(f"Unknown label type{said}")):
            model.fit(np.eye(3), y)
    advice = re.search(r"write (.*)\.", said)
    if advice:
        found = DTWNearestNeighbor(window=0).fit(np.eye(3), eval(advice[1], {"y": y}))
        assert found.classes_.tolist() == sorted(set(labels))


# --- masks, dates, other types ------------------------------------------------------------------


@pytest.mark.parametrize(
    ("labels", "kinds"),
    [
        (["a", float("nan"), "b"], "float, str"),
        ([1, "1", 2], "int, str"),
        ([["a"], [0], ["b"]], "int, str"),
    ],
)
def test_labels_of_a_list_that_numpy_makes_text_of_are_refused(labels, kinds):
    for model in (DTWNearestNeighbor(), DTWCondenser(), ShapeletTreeClassifier()):
        with pytest.raises(ValueError, match=f"y holds labels of several types: {kinds}"):
            model.fit(np.eye(3), labels)
    with pytest.raises(ValueError, match=f"labels holds labels of several types: {kinds}"):
        silhouette_score(np.eye(3), labels)


def test_what_a_mask_hides_is_missing():
    X = np.ma.array([[1.0, 2.0, 9.0], [3.0, 4.0, 5.0]], mask=[[0, 0, 1], [0, 0, 0]])
    for given in (X, X.astype(int), list(X), [X[0], X[1]]):
        series = check_series(given)
        assert_array_equal(series.lengths, [2, 3])
        assert_array_equal(series.values, [[[1, 2, 0]], [[3, 4, 5]]])
        assert_array_equal(check_univariate(given)[0], [1, 2, np.nan])
    X.mask[0] = [0, 1, 0]
    with pytest.raises(ValueError, match="NaN at series 0, time point 1"):
        check_series(X)
    assert_array_equal(check_series(np.ma.array([[1, 2]])).values, [[[1, 2]]])
    with pytest.raises(ValueError, match="y has a masked label, at 1"):
        DTWNearestNeighbor().fit(np.eye(3), np.ma.array([0, 1, 0], mask=[0, 1, 0]))
    assert dtw(np.ma.array([1.0, 2.0, 9.0], mask=[0, 0, 1]), [1.0, 2.0]) == 0


@pytest.mark.parametrize(
    "X",
    [
        np.arange(6).reshape(2, 3).astype("datetime64[D]"),
        np.arange(6).reshape(2, 3).astype("timedelta64[s]"),
        [np.arange(3).astype("datetime64[ns]")],
        np.arange(6).reshape(2, 3).astype("datetime64[D]").tolist(),
        np.arange(6).reshape(2, 3).astype("datetime64[D]").astype(object),
        np.arange(6).reshape(2, 3).astype("timedelta64[D]").tolist(),
        pd.DataFrame({"a": pd.date_range("2026", periods=2), "b": [1.0, 2.0]}),
        pd.DataFrame({"a": [1.0, 2.0], "b": pd.to_timedelta([1, 2], "s")}),
        [pd.Series(pd.date_range("2026", periods=3))],
        # behind numbers
        [[1.0, date(2026, 1, 1)]],
        [[1, np.datetime64("2026-01-01")]],
        [[1, np.datetime64("NaT")], [1, 2]],
        [[1, np.timedelta64(1, "s")]],
        np.array([[1, np.timedelta64(1, "s")]], object),
        [[1, pd.NaT]],
    ],
)
@pytest.mark.parametrize("check", [check_series, check_univariate])
def test_dates_are_no_values(X, check):
    with pytest.raises(ValueError, match="X holds dates or times, which are no values of a series"):
        check(X)


@pytest.mark.parametrize("check", [check_series, check_univariate])
def test_objects_that_are_no_numbers_are_named(check):
    for one in (10**400, -(10**400), Fraction(10**400)):
        for X in ([[1, one]], np.array([[1, one]], object)):
            with pytest.raises(ValueError, match="X holds a number beyond the range"):
                check(X)
    for one, name in (({}, "dict"), (object(), "object"), (print, "builtin_function_or_method")):
        with pytest.raises(TypeError, match=f"number, not .{name}. in X"):
            check([[1, one]])


@pytest.mark.filterwarnings("error")
def test_numbers_beyond_float64_are_infinite():
    X = np.array([[1.0, 2.0]], np.longdouble) * np.longdouble(2.0) ** 2000
    with pytest.raises(ValueError, match="infinity"):
        check_series(X)
    with pytest.raises(ValueError, match="infinity"):
        check_series(list(X))
