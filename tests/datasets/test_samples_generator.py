"""The generators make what their docstrings say."""

import numpy as np
import pytest

from skts.datasets import (
    make_cylinder_bell_funnel,
    make_planted_motifs,
    make_random_walk,
    make_shifted_shapes,
    make_two_patterns,
    make_warped_shapes,
)

LABELLED = [
    (make_cylinder_bell_funnel, 3),
    (make_two_patterns, 4),
    (make_shifted_shapes, 3),
    (make_warped_shapes, 3),
]
ALL = [make_random_walk, make_planted_motifs, *(make for make, _ in LABELLED)]


def arrays(result):
    return result if isinstance(result, tuple) else (result,)


@pytest.mark.parametrize("make", ALL)
def test_random_state(make):
    first, again = arrays(make(random_state=7)), arrays(make(random_state=7))
    for one, other in zip(first, again, strict=True):
        np.testing.assert_array_equal(one, other)
    assert not np.array_equal(first[0], arrays(make(random_state=8))[0])
    rng = np.random.RandomState(7)
    np.testing.assert_array_equal(first[0], arrays(make(random_state=rng))[0])
    assert not np.array_equal(first[0], arrays(make(random_state=rng))[0])


@pytest.mark.parametrize(("make", "n_classes"), LABELLED)
@pytest.mark.parametrize("n_samples", [1, 2, 3, 17])
def test_shapes_and_balance(make, n_classes, n_samples):
    X, y, *_ = make(n_samples, 33, random_state=0)
    assert X.shape == (n_samples, 33) and X.dtype == np.float64
    assert y.shape == (n_samples,) and y.dtype == np.int64
    counts = np.bincount(y, minlength=n_classes)
    assert len(counts) == n_classes and np.ptp(counts) <= 1
    assert np.isfinite(X).all()


@pytest.mark.parametrize(("make", "n_classes"), LABELLED)
def test_shuffle(make, n_classes):
    in_order = np.arange(50) % n_classes
    np.testing.assert_array_equal(make(50, shuffle=False, random_state=0)[1], in_order)
    assert not np.array_equal(make(50, random_state=0)[1], in_order)


@pytest.mark.parametrize("make", ALL)
@pytest.mark.parametrize(
    ("parameter", "value"),
    [("n_timepoints", 0), ("n_timepoints", 64.0), ("random_state", "seed")],
)
def test_bad_parameters(make, parameter, value):
    with pytest.raises(ValueError, match=rf"'{parameter}' parameter of {make.__name__} must be"):
        make(**{parameter: value})


@pytest.mark.parametrize("make", [make for make in ALL if make is not make_planted_motifs])
def test_bad_n_samples(make):
    with pytest.raises(ValueError, match=r"'n_samples' .* Got 0 instead"):
        make(0)


@pytest.mark.parametrize("make", [make for make in ALL if make is not make_random_walk])
def test_bad_noise(make):
    with pytest.raises(ValueError, match=r"'noise' .* Got -0.1 instead"):
        make(noise=-0.1)


def test_random_walk_steps():
    X = make_random_walk(200, 300, drift=0.5, scale=2.0, random_state=0)
    steps = np.diff(X, axis=1, prepend=0.0)
    assert steps.mean() == pytest.approx(0.5, abs=5 * 2.0 / np.sqrt(steps.size))
    assert steps.std() == pytest.approx(2.0, rel=0.02)
    neighbours = np.corrcoef(steps[:, 1:].ravel(), steps[:, :-1].ravel())[0, 1]
    assert abs(neighbours) < 5 / np.sqrt(steps.size)


def test_random_walk_channels():
    X = make_random_walk(4, 50, n_channels=3, random_state=0)
    assert X.shape == (4, 3, 50)
    np.testing.assert_allclose(make_random_walk(2, 5, drift=1.0, scale=0.0), [[1, 2, 3, 4, 5]] * 2)


@pytest.mark.parametrize("n", [8, 30, 128])
def test_cylinder_bell_funnel_without_noise(n):
    X, y = make_cylinder_bell_funnel(300, n, noise=0.0, random_state=0)
    for series, label in zip(X, y, strict=True):
        (event,) = np.nonzero(series)
        values = series[event]
        assert np.array_equal(event, np.arange(event[0], event[-1] + 1))
        assert 0 < values.max() < 6 + 5 and event[-1] < n
        # of [a, b] the bell is 0 at a and the funnel is 0 at b
        steps = event.size - 1 + (label > 0)
        assert n // 4 <= steps <= 3 * n // 4
        first = event[0] + 1 - (label == 1)  # a, counted from 1
        assert n // 8 <= first <= n // 4
        slope = {0: 0.0, 1: 1.0, 2: -1.0}[label] * values.max() / steps
        np.testing.assert_allclose(np.diff(values), slope, atol=1e-12)


def test_cylinder_bell_funnel_noise():
    quiet, _ = make_cylinder_bell_funnel(300, noise=0.0, random_state=0)
    noisy, _ = make_cylinder_bell_funnel(300, noise=2.0, random_state=0)
    assert (noisy - quiet).std() == pytest.approx(2.0, rel=0.02)


@pytest.mark.parametrize("n", [16, 50, 128])
def test_two_patterns_without_noise(n):
    X, y = make_two_patterns(400, n, noise=0.0, random_state=0)
    assert set(np.unique(X)) <= {-5.0, 0.0, 5.0}
    for series, label in zip(X, y, strict=True):
        signs = np.sign(series[series != 0])
        assert 2 * (n // 8) <= signs.size <= 2 * (n // 4)
        is_up = (label & 1, label & 2)
        # the first pattern opens and the second closes
        assert signs[0] == (-1 if is_up[0] else 1)
        assert signs[-1] == (1 if is_up[1] else -1)


def test_two_patterns_cover_the_whole_range():
    X, _ = make_two_patterns(2000, 128, noise=0.0, random_state=0)
    assert (X != 0).any(axis=0).all()


def test_two_patterns_noise_is_outside_the_patterns():
    X, _ = make_two_patterns(200, noise=0.5, random_state=0)
    inside = np.abs(X) == 5.0
    assert (inside.sum(axis=1) >= 32).all() and (inside.sum(axis=1) <= 64).all()
    assert X[~inside].std() == pytest.approx(0.5, rel=0.02)


@pytest.mark.parametrize("noise", [0.0, 0.05])
def test_planted_positions_hold_the_patterns(noise):
    window = 60
    X, positions, patterns = make_planted_motifs(
        3000, window=window, n_motifs=3, n_occurrences=5, noise=noise, random_state=1
    )
    assert X.shape == (1, 3000) and positions.shape == (3, 5) and patterns.shape == (3, window)
    deviation = np.sqrt(window / 6)
    np.testing.assert_allclose(patterns.mean(axis=1), 0, atol=1e-12)
    np.testing.assert_allclose(patterns.std(axis=1), deviation)

    starts = np.sort(positions.ravel())
    assert starts[0] >= 0 and starts[-1] + window <= 3000
    assert (np.diff(starts) >= window).all()
    assert (np.diff(positions, axis=1) > 0).all()

    copies = X[0][positions[..., None] + np.arange(window)]
    residual = copies - copies.mean(axis=2, keepdims=True) - patterns[:, None]
    if noise == 0:
        np.testing.assert_allclose(residual, 0, atol=1e-9)
    else:
        assert residual.std() == pytest.approx(noise * deviation, rel=0.1)


def test_planted_motif_is_the_best_pair():
    window = 100
    for seed in range(3):
        X, positions, _ = make_planted_motifs(1500, window=window, random_state=seed)
        windows = np.lib.stride_tricks.sliding_window_view(X[0], window)
        windows = windows - windows.mean(axis=1, keepdims=True)
        windows /= np.linalg.norm(windows, axis=1, keepdims=True)
        correlation = windows @ windows.T
        i, j = np.indices(correlation.shape)
        correlation[np.abs(i - j) < window] = -1
        pair = np.sort(np.unravel_index(np.argmax(correlation), correlation.shape))
        assert np.abs(pair - positions[0]).max() <= 3


def test_planted_motifs_that_just_fit_and_that_do_not():
    _, positions, _ = make_planted_motifs(40, window=10, n_motifs=2, random_state=0)
    assert sorted(positions.ravel()) == [0, 10, 20, 30]
    with pytest.raises(ValueError, match="need at least 40 time points, but n_timepoints is 39"):
        make_planted_motifs(39, window=10, n_motifs=2)


@pytest.mark.parametrize("boundary", ["circular", "zero"])
@pytest.mark.parametrize(("max_shift", "points"), [(0, 0), (9, 9), (0.25, 16), (63, 63)])
def test_shifts(boundary, max_shift, points):
    X, y, shifts, shapes = make_shifted_shapes(
        400,
        64,
        n_shapes=4,
        max_shift=max_shift,
        boundary=boundary,
        noise=0.0,
        return_shapes=True,
        random_state=0,
    )
    assert shapes.shape == (4, 64)
    np.testing.assert_allclose(shapes.std(axis=1), 1)
    np.testing.assert_allclose(shapes[:, [0, -1]], 0, atol=1e-12)
    assert (shifts.min(), shifts.max()) == (-points, points)
    for series, label, shift in zip(X, y, shifts, strict=True):
        expected = np.roll(shapes[label], shift)
        if boundary == "zero" and shift > 0:
            expected[:shift] = 0
        elif boundary == "zero" and shift < 0:
            expected[shift:] = 0
        np.testing.assert_array_equal(series, expected)


def test_shifted_shapes_noise_and_returns():
    quiet = make_shifted_shapes(200, noise=0.0, random_state=0)
    noisy = make_shifted_shapes(200, noise=0.3, random_state=0)
    assert len(quiet) == 3
    assert (noisy[0] - quiet[0]).std() == pytest.approx(0.3, rel=0.02)
    np.testing.assert_array_equal(noisy[2], quiet[2])


@pytest.mark.parametrize("max_shift", [64, 100])
def test_shift_must_be_shorter_than_the_series(max_shift):
    with pytest.raises(ValueError, match=f"max_shift={max_shift} must be below n_timepoints=64"):
        make_shifted_shapes(n_timepoints=64, max_shift=max_shift)


@pytest.mark.parametrize(("max_shift", "boundary"), [(1.0, "zero"), (-1, "zero"), (3, "reflect")])
def test_bad_shift_parameters(max_shift, boundary):
    with pytest.raises(ValueError, match="parameter of make_shifted_shapes must be"):
        make_shifted_shapes(max_shift=max_shift, boundary=boundary)


@pytest.mark.parametrize("warp", [0.0, 0.5, 2.0])
def test_warps(warp):
    n = 100
    X, y, warps, shapes = make_warped_shapes(
        60, n, warp=warp, noise=0.0, return_warps=True, random_state=0
    )
    regular = np.linspace(0, 1, n)
    assert (np.diff(warps, axis=1) > 0).all()
    np.testing.assert_array_equal(warps[:, 0], 0)
    np.testing.assert_array_equal(warps[:, -1], 1)
    # smooth: slopes of neighbours differ by the largest slope of g, (1 + 2 + 3) pi / n at 3.5 sigma
    ratio = np.log(np.diff(warps, axis=1)[:, 1:] / np.diff(warps, axis=1)[:, :-1])
    assert np.abs(ratio).max() <= warp * 3.5 * 6 * np.pi / np.sqrt(3) / n + 1e-9
    if warp == 0:
        np.testing.assert_allclose(warps, np.tile(regular, (60, 1)), atol=1e-12)
    else:
        assert np.abs(warps - regular).max(axis=1).min() > 1e-3
    # a series is its shape, read at the warped times (by interpolation, so to 1 / n^2)
    for series, label, times in zip(X, y, warps, strict=True):
        np.testing.assert_allclose(series, np.interp(times, regular, shapes[label]), atol=0.05)
    if warp == 0:
        np.testing.assert_allclose(X, shapes[y], atol=1e-9)


@pytest.mark.parametrize("warp", [30.0, 50])
def test_strong_warps_are_numbers(warp):
    X, _, warps, _ = make_warped_shapes(5, 20, warp=warp, random_state=0, return_warps=True)
    assert np.isfinite(X).all() and (np.diff(warps) >= 0).all()
    assert (warps[:, 0] == 0).all() and (warps[:, -1] == 1).all()
    with pytest.raises(ValueError, match="warp=50.5 is more than 50"):
        make_warped_shapes(warp=50.5)


def test_warped_shapes_noise_and_returns():
    quiet = make_warped_shapes(200, noise=0.0, random_state=0)
    noisy = make_warped_shapes(200, noise=0.3, random_state=0)
    assert len(quiet) == 2
    assert (noisy[0] - quiet[0]).std() == pytest.approx(0.3, rel=0.02)


@pytest.mark.parametrize("make", [make_shifted_shapes, make_warped_shapes])
def test_number_of_shapes(make):
    _, y, *_ = make(20, n_shapes=7, random_state=0)
    assert set(y) == set(range(7))
