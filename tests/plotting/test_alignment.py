"""AlignmentDisplay: what is drawn is what was aligned."""

from __future__ import annotations

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal

from skts import DTWNearestNeighbor, DTWNearestNeighborRegressor, DTWNeighbors
from skts._metrics import METRICS
from skts.metrics import dtw_path, warping_path
from skts.plotting import AlignmentDisplay, _alignment
from tests.reference_elastic import alike, apart, derivative, price, radius_of


def test_path_on_the_costs(rng):
    x, y = rng.normal(size=40).cumsum(), rng.normal(size=30).cumsum()
    display = AlignmentDisplay.from_series(x, y, window=12)
    path, distance = dtw_path(x, y, window=12)
    assert_array_equal(display.path_line_.get_xydata(), path[:, ::-1])
    assert display.distance == distance
    drawn = display.image_.get_array()
    inside = np.abs(np.arange(40)[:, None] - np.arange(30)) <= 12
    assert_array_equal(np.ma.getmaskarray(drawn), ~inside)
    assert_allclose(drawn[inside], ((x[:, None] - y) ** 2)[inside], rtol=1e-12)
    assert drawn[path[:, 0], path[:, 1]].sum() ** 0.5 == pytest.approx(distance)
    matrix, left, top = display.axes_
    assert matrix.figure is display.figure_
    assert_array_equal(left.lines[0].get_xdata(), x)
    assert_array_equal(top.lines[0].get_ydata(), y)
    assert left.get_ylim() == matrix.get_ylim() and top.get_xlim() == matrix.get_xlim()
    assert display.colorbar_.mappable is display.image_
    assert display.colorbar_.ax.get_ylabel() == "squared difference"
    display.figure_.canvas.draw()  # the bar takes as much from the series above as from the matrix
    assert_allclose(matrix.get_position().intervalx, top.get_position().intervalx)


def test_own_axes_channels_and_long_series(rng):
    import matplotlib.pyplot as plt

    x, y = rng.normal(size=(2, 9)), np.full((2, 12), np.nan)
    y[:, :7] = rng.normal(size=(2, 7))  # padded
    figure, ax = plt.subplots()
    display = AlignmentDisplay.from_series(x, y, cost="absolute", series=False, axes=[ax])
    assert display.figure_ is figure and len(display.axes_) == 1
    assert display.colorbar_ is None and figure.axes == [ax]
    expected = np.abs(x[:, :, None] - y[:, None, :7]).sum(axis=0)
    assert_allclose(display.image_.get_array(), expected, rtol=1e-12)
    with pytest.raises(ValueError, match="axes holds 1 axes for 3 panels"):
        display.plot(axes=[ax])
    long = AlignmentDisplay.from_series(rng.normal(size=2500), x[0], names=("long", "short"))
    assert long.image_.get_array().shape == (834, 9)
    assert_allclose(long.image_.get_extent(), (-0.5, 8.5, -1.5, 2500.5))
    assert "short" in long.axes_[0].get_xlabel() and "long" in long.axes_[1].get_ylabel()


def test_neighbours_of_an_estimator(rng):
    X, y = rng.normal(size=(6, 20)).cumsum(axis=1), ["a", "b"] * 3
    query = rng.normal(size=25).cumsum()
    model = DTWNearestNeighbor(window=8).fit(list(X), y)
    distances, indices = model.kneighbors([query], 2)
    display = AlignmentDisplay.from_estimator(model, query, rank=1)
    assert_array_equal(display.y[0], X[indices[0, 1]])
    assert display.distance == distances[0, 1]
    assert f"series {indices[0, 1]} (class {y[indices[0, 1]]})" in display.names[1]
    with pytest.raises(ValueError, match="rank=6 is not among the 6 training series"):
        AlignmentDisplay.from_estimator(model, query, rank=6)
    with pytest.raises(ValueError, match="rank=1.5 is not among"):
        AlignmentDisplay.from_estimator(model, query, rank=1.5)
    for names in (("a",), None, ("a", "b", "c")):
        with pytest.raises(ValueError, match="are not those of two series"):
            AlignmentDisplay.from_series(query, X[0], names=names)
    model = DTWNearestNeighbor(metric="precomputed").fit(np.ones((6, 6)), y)
    with pytest.raises(ValueError, match="precomputed.* holds no series"):
        AlignmentDisplay.from_estimator(model, np.ones(6))


def test_neighbours_with_numbers_or_without_labels(rng):
    X, targets = rng.normal(size=(6, 20)).cumsum(axis=1), rng.normal(size=(6, 2))
    query = rng.normal(size=25).cumsum()
    numbers = "(target {:.4g})", "(target {:.4g}, {:.4g})"
    for model, y, text in (
        (DTWNeighbors(window=8), None, ""),
        (DTWNearestNeighborRegressor(window=8), targets[:, 0], numbers[0]),
        (DTWNearestNeighborRegressor(window=8), targets, numbers[1]),
    ):
        distances, indices = model.fit(list(X), y).kneighbors([query], 3)
        display = AlignmentDisplay.from_estimator(model, query, rank=2)
        found = indices[0, 2]
        assert_array_equal(display.y[0], X[found])
        assert display.distance == distances[0, 2]
        name = f"training series {found} {text.format(*targets[found])}".strip()
        assert display.names == ("query", name)
    with pytest.raises(TypeError, match="DTWNearestNeighborRegressor or DTWNeighbors is needed"):
        AlignmentDisplay.from_estimator(X, query)


def test_points_behind_a_mask_are_not_drawn(rng):
    x = np.ma.array(rng.normal(size=24).cumsum(), mask=np.arange(24) >= 20)
    X = rng.normal(size=(6, 20)).cumsum(axis=1)
    model = DTWNearestNeighbor().fit(list(X), ["a", "b"] * 3)
    for make in (
        lambda one: AlignmentDisplay.from_series(one, X[0]),
        lambda one: AlignmentDisplay.from_estimator(model, one),
    ):
        found, expected = make(x), make(x.data[:20])
        assert_array_equal(found.x, expected.x)
        assert_array_equal(found.path, expected.path)
        assert found.distance == expected.distance


def test_a_turned_neighbour(rng):
    X = rng.normal(size=(3, 24))
    model = DTWNearestNeighbor(rotation_invariant=True, window=0).fit(X, [0, 1, 1])
    display = AlignmentDisplay.from_estimator(model, np.roll(X[1], 7))
    assert display.distance == 0
    assert_array_equal(display.y[0], np.roll(X[1], 7))


PARAMS = {
    "adtw": {"penalty": 0.3},
    "edr": {"epsilon": 0.7},
    "erp": {"gap": 0.4},
    "lcss": {"epsilon": 0.7},
    "msm": {"penalty": 0.3},
    "shape_dtw": {"reach": 2},
    "twe": {"nu": 0.01, "lmbda": 0.2},
    "wdtw": {"g": 0.3},
}


def matching_cost(metric, x, y, i, j, cost="squared", **params):
    """The cost of matching point i of x with point j of y, from the definitions of the papers."""
    p, q = x[:, i], y[:, j]
    if metric in ("edr", "lcss"):
        epsilon = params.get("epsilon")
        if epsilon is None:
            epsilon = max(np.std(x), np.std(y)) / 4
        return 0.0 if alike(p, q, epsilon) else 1.0
    if metric in ("erp", "msm"):
        return apart(p, q)
    if metric == "twe":
        nothing = np.zeros(len(x))
        before = (x[:, i - 1] if i else nothing), (y[:, j - 1] if j else nothing)
        return apart(p, q) + apart(*before) + 2 * params["nu"] * abs(i - j)
    if metric == "wdtw":
        n = max(x.shape[1], y.shape[1])
        return price(p, q, cost) / (1 + np.exp(-params["g"] * (abs(i - j) - n / 2)))
    return price(p, q, cost)


def expected_costs(metric, x, y, radius=None, **options):
    if metric == "ddtw":
        x, y = derivative(x), derivative(y)
    n, m = x.shape[1], y.shape[1]
    return np.array(
        [
            [
                np.nan
                if radius is not None and abs(i - j) > radius
                else matching_cost(metric, x, y, i, j, **options)
                for j in range(m)
            ]
            for i in range(n)
        ]
    )


def filled(image):
    return np.ma.filled(image.get_array().astype(float), np.nan)


@pytest.mark.parametrize("cost", ["squared", pytest.param("absolute", marks=pytest.mark.compiles)])
@pytest.mark.parametrize("metric", sorted(METRICS))
def test_costs_of_every_distance(rng, metric, cost):
    channels = 1 if metric == "msm" else 2
    x, y = rng.normal(size=(channels, 11)), rng.normal(size=(channels, 9))
    window = 4
    if metric == "euclidean":
        y, window = rng.normal(size=(channels, 11)), None
    options = {"metric": metric, "metric_params": PARAMS.get(metric), "cost": cost}
    display = AlignmentDisplay.from_series(x, y, window=window, **options)
    params = PARAMS.get(metric, {})
    expected = expected_costs(metric, x, y, window, cost=cost, **params)
    assert_allclose(filled(display.image_), expected, rtol=1e-12, atol=1e-13)
    path, distance = warping_path(x, y, window=window, **options)
    first = 1 if metric == "ddtw" else 0
    assert_array_equal(display.path, path + first)
    assert display.distance == distance
    # each pixel is centred on its points
    left, right, low, high = display.image_.get_extent()
    n, m = expected.shape
    assert (left, right, low, high) == (first - 0.5, m + first - 0.5, first - 0.5, n + first - 0.5)
    drawn = display.path_line_.get_xydata()
    assert_array_equal(drawn[~np.isnan(drawn[:, 0])], display.path[:, ::-1])
    axes = display.axes_[0]
    assert axes.get_xlim() == (-0.5, y.shape[1] - 0.5)
    assert axes.get_ylim() == (-0.5, x.shape[1] - 0.5)
    words = {"edr": "epsilon", "lcss": "epsilon", "twe": "cost", "erp": "absolute"}
    words |= {"msm": "absolute"}
    assert words.get(metric, cost) in display.colorbar_.ax.get_ylabel()
    # some paths add up to the distance cell by cell
    if metric in ("dtw", "ddtw", "euclidean", "shape_dtw", "wdtw"):
        total = expected[path[:, 0], path[:, 1]].sum()
        assert distance == pytest.approx(total**0.5 if cost == "squared" else total)


def gaps_of(path, side, n):
    return [i for i in range(n) if i not in path[:, side].tolist()]


@pytest.mark.parametrize("metric", ["edr", "erp", "lcss"])
def test_points_that_are_left_out(metric):
    x = np.array([[0.0, 1.0, 9.0, 2.0, 3.0, -9.0, 1.0, 5.0]])
    y = np.array([[7.0, 0.0, 1.0, 2.0, 3.0, 1.0]])
    params = {} if metric == "erp" else {"epsilon": 0.25}
    display = AlignmentDisplay.from_series(x, y, metric=metric, metric_params=params)
    path, distance = warping_path(x, y, metric=metric, metric_params=params)
    pieces = []
    for place, pair in enumerate(path.tolist()):
        before = path[place - 1].tolist()
        if place and max(pair[0] - before[0], pair[1] - before[1]) > 1:
            pieces.append([np.nan, np.nan])
        pieces.append(pair[::-1])
    assert len(pieces) > len(path)
    assert_array_equal(display.path_line_.get_xydata(), pieces)
    assert display.path_line_.get_marker() == "o"
    crosses_of_x, crosses_of_y = display.gap_lines_
    skipped = gaps_of(path, 0, 8), gaps_of(path, 1, 6)
    assert all(skipped)
    assert_array_equal(crosses_of_x.get_xydata(), [[x[0, i], i] for i in skipped[0]])
    assert_array_equal(crosses_of_y.get_xydata(), [[i, y[0, i]] for i in skipped[1]])
    assert crosses_of_x.axes is display.axes_[1] and crosses_of_y.axes is display.axes_[2]
    if metric == "erp":  # matched points, and what those cost that are left out
        total = sum(abs(x[0, i] - y[0, j]) for i, j in path)
        total += sum(abs(x[0, i]) for i in skipped[0]) + sum(abs(y[0, i]) for i in skipped[1])
        assert distance == pytest.approx(total)
    alone = display.plot(series=False)
    assert alone.gap_lines_ == []


def test_a_path_without_points():
    display = AlignmentDisplay.from_series([0, 0, 0], [9, 9], metric="lcss")
    assert display.distance == 1 and display.path.shape == (0, 2)
    assert len(display.path_line_.get_xydata()) == 0
    assert [len(line.get_xydata()) for line in display.gap_lines_] == [3, 2]
    assert_array_equal(display.image_.get_array(), np.ones((3, 2)))


def test_edr_takes_its_epsilon_from_both_series(rng):
    x, y = rng.normal(size=(2, 9)), 3 * rng.normal(size=(2, 7))
    display = AlignmentDisplay.from_series(x, y, metric="edr")
    assert_array_equal(display.image_.get_array(), expected_costs("edr", x, y))


def test_bands_as_shares(rng):
    x, y = rng.normal(size=(1, 12)), rng.normal(size=(1, 11))
    for metric, n in (("dtw", 12), ("ddtw", 10), ("msm", 12)):
        display = AlignmentDisplay.from_series(x, y, metric=metric, window=0.25)
        assert display.radius == radius_of(0.25, n, n - 1) == 3
        expected = expected_costs(metric, x, y, 3, **PARAMS.get(metric, {}))
        assert_array_equal(np.isnan(filled(display.image_)), np.isnan(expected))


@pytest.mark.parametrize("metric", ["ddtw", "lcss", "twe", "wdtw"])
def test_every_nth_point_of_long_series(rng, monkeypatch, metric):
    monkeypatch.setattr(_alignment, "_MOST_PIXELS", 5)
    x, y = rng.normal(size=(1, 14)), rng.normal(size=(1, 9))
    display = AlignmentDisplay.from_series(
        x, y, metric=metric, metric_params=PARAMS.get(metric), window=6
    )
    expected = expected_costs(metric, x, y, 6, **PARAMS.get(metric, {}))
    assert_allclose(filled(display.image_), expected[::3, ::2], rtol=1e-12, atol=1e-13)
    first = 1 if metric == "ddtw" else 0
    rows, columns = expected[::3, ::2].shape
    wanted = (first - 1, first + 2 * columns - 1, first - 1.5, first + 3 * rows - 1.5)
    assert_allclose(display.image_.get_extent(), wanted)


def test_neighbours_under_other_distances(rng):
    X, y = rng.normal(size=(6, 20)), [0, 1] * 3
    query = rng.normal(size=20)
    options = {"metric": "msm", "metric_params": {"penalty": 0.2}, "window": 5}
    model = DTWNearestNeighbor(**options).fit(X, y)
    distances, indices = model.kneighbors([query])
    display = AlignmentDisplay.from_estimator(model, query)
    assert display.distance == distances[0, 0]
    assert_array_equal(display.y[0], X[indices[0, 0]])
    assert (display.metric, display.metric_params) == ("msm", {"penalty": 0.2})
    model = DTWNearestNeighbor(metric="euclidean", rotation_invariant=True).fit(X, y)
    display = AlignmentDisplay.from_estimator(model, np.roll(X[4], 6))
    assert display.distance == 0
    assert_array_equal(display.y[0], np.roll(X[4], 6))


def test_refusals_are_those_of_the_path(rng):
    x = rng.normal(size=(2, 8))
    wrong = [
        {"metric": "unknown"},
        {"metric": "msm"},
        {"metric": "twe", "metric_params": {"gap": 1}},
        {"metric": "euclidean", "window": 1},
        {"metric": "lcss", "alignment": "subsequence"},
        {"metric": "adtw", "cost": lambda a, b: 0.0},
        {"metric": "erp", "metric_params": 1},
    ]
    for options in wrong:
        with pytest.raises(ValueError) as wanted:
            warping_path(x, x, **options)
        with pytest.raises(ValueError) as found:
            AlignmentDisplay.from_series(x, x, **options)
        assert str(found.value) == str(wanted.value)


def test_made_from_its_parts(rng):
    """Without a metric it is dynamic time warping."""
    x, y = rng.normal(size=(1, 9)), rng.normal(size=(1, 7))
    path, distance = dtw_path(x, y, cost="absolute", window=3)
    display = AlignmentDisplay(x, y, path, distance, "absolute", 3, ("a", "b")).plot()
    shown = AlignmentDisplay.from_series(x, y, cost="absolute", window=3)
    assert_array_equal(filled(display.image_), filled(shown.image_))
    assert_array_equal(display.path_line_.get_xydata(), shown.path_line_.get_xydata())
    assert display.gap_lines_ == [] and display.axes_[0].get_xlabel() == "time point of b"
    assert display.axes_[2].get_title() == shown.axes_[2].get_title()
