"""How reductions hold series: what is refused, and what stays private."""

from __future__ import annotations

import numpy as np
import pytest
import reference
from numpy.testing import assert_allclose, assert_array_equal

from skts import DTWNearestNeighbor
from skts.engines import DTWNeighbors, Series, Tile, Warping, engine_names, find_engine
from skts.engines.core.series import fetch, lies_on_gpu
from skts.exceptions import EngineNotAvailableError


@pytest.mark.parametrize(
    ("values", "lengths", "said"),
    [
        (np.zeros((2, 1, 5), np.float32), np.array([5, 5]), "float64"),
        (np.zeros((2, 1, 5)), np.array([5, 5], np.int32), "int64"),
    ],
)
def test_kernels_never_see_other_types(values, lengths, said):
    with pytest.raises(TypeError, match=said):
        Series(values, lengths)


def test_frozen_series_are_private():
    values = np.arange(10.0).reshape(2, 1, 5)
    frozen = Series(values, np.array([5, 4])).freeze()
    values[:] = -1.0
    assert frozen.values[1, 0, 3] == 8.0
    with pytest.raises(ValueError, match="read-only"):
        frozen.values[0, 0, 0] = 1.0
    assert not frozen.equal_length
    assert len(frozen.take(np.array([1]))) == 1


def test_copies_of_memory_maps_are_copied(tmp_path, rng):
    path = tmp_path / "X"
    mapped = np.memmap(path, np.float64, "w+", shape=(3, 1, 5))
    mapped[:] = rng.normal(size=mapped.shape)
    lengths = np.full(3, 5)
    for given in (mapped, mapped[1:], mapped.view(np.ndarray), mapped[:, :, 1:-1]):
        assert np.shares_memory(Series(given, lengths[: len(given)]).freeze().values, mapped)
    for given in (mapped.copy(), mapped.copy()[1:], mapped + 1, mapped[[2, 0]]):
        frozen = Series(given, lengths[: len(given)]).freeze()
        expected = given.copy()
        given[:] = 0.0
        assert_array_equal(frozen.values, expected)
        assert not np.shares_memory(frozen.values, mapped)


@pytest.mark.parametrize("shape", [(1, 1, 1), (6, 2, 7), (5, 1, 2)])
def test_series_that_stay_below_a_limit(rng, shape):
    for _ in range(30):
        values = rng.choice(
            [0.0, 1e-9, -1e-9, 2e-3, 1.0, -1.0], shape, p=[0.3, 0.3, 0.2, 0.1, 0.05, 0.05]
        )
        sizes = np.abs(values).reshape(len(values), -1).max(axis=1)
        for limit in (1e-3, 1e-10, 2.0):
            expected = any(0 < size < limit for size in sizes)
            assert Series(values, np.full(shape[0], shape[2])).any_below(limit) == expected


def test_any_below_looks_at_the_largest_magnitude_of_each_series():
    values = np.zeros((4, 2, 5))
    values[0, 0, 2], values[1, 1, 4], values[3, 0, 1] = 3.0, -2.0, 1e-3
    values[0, 1, 0] = 1e-9  # a small point of a large series
    series = Series(values, np.full(4, 5))
    assert not Series(values[:3], series.lengths[:3]).any_below(2.0)  # one is 0, one at the limit
    assert Series(values[:3], series.lengths[:3]).any_below(2.5)
    assert series.any_below(2.0) and series.any_below(1.1e-3) and not series.any_below(1e-3)
    steep = np.full((2, 1, 5), 2.0)
    assert not Series(steep, np.full(2, 5)).any_below(2.0)
    assert Series(steep, np.full(2, 5)).any_below(2.1)


@pytest.mark.parametrize("points", [[-5.0, -3.0], [3.0, 5.0], [-1.0, 2.0], [0.0, 4.0]])
def test_extent_leaves_out_what_lies_beyond_the_end_of_a_series(points):
    low, high = points
    values = np.array([[[low, high, low]], [[high, low, 0.0]]])
    assert Series(values, np.array([3, 2])).extent == (low, high)
    assert Series(np.full((2, 1, 3), low) + [0, high - low, 0], np.full(2, 3)).extent == (low, high)
    values[1, 0, 1] = np.nan
    assert np.isnan(Series(values, np.array([3, 2])).extent).all()


@pytest.mark.parametrize("offset", [-1e9, 1e9, -1e144])
def test_float32_takes_a_common_offset_off_series_of_unequal_lengths(fast_engine, rng, offset):
    spread = 4.0 if abs(offset) < 1e100 else 0.0
    X = [offset + spread * rng.normal(size=n).cumsum() for n in (40, 29, 33, 12)]
    model = DTWNearestNeighbor(n_neighbors=4, precision="float32", engine=fast_engine)
    distances, indices = model.fit(X, [0, 1, 0, 1]).kneighbors(X)
    right = np.array([[reference.dtw(x[None], y[None]) for y in X] for x in X])
    found = np.empty_like(right)
    np.put_along_axis(found, indices, distances, axis=1)
    # the range of all data, along the longest path
    largest = max(x.max() for x in X) - min(x.min() for x in X)
    assert_allclose(found, right, rtol=1e-5, atol=80 * 2.0**-24 * largest)


class OnDevice:
    """An array in a memory that NumPy does not read."""

    __cuda_array_interface__ = {}


def test_arrays_are_fetched_by_the_engine_that_owns_them(monkeypatch):
    for name in engine_names():
        kind = type(find_engine(name))
        monkeypatch.setattr(kind, "owns", lambda self, array: self.name == "oracle")
        monkeypatch.setattr(kind, "fetch", lambda self, array: (self.name, array))
    array = OnDevice()
    assert fetch(array, "X") == ("oracle", array)
    monkeypatch.setattr(type(find_engine("oracle")), "owns", lambda self, array: False)
    with pytest.raises(EngineNotAvailableError, match="X lies in the memory of a device that no"):
        fetch(array, "X")
    assert lies_on_gpu(array) and not lies_on_gpu(np.arange(3.0))


@pytest.mark.parametrize("value", [-0.93, 1e9, 1e-140])
def test_float32_takes_the_offset_off_a_constant_of_unequal_lengths(fast_engine, value):
    """A class of one short series, and one of constants: their padding is no value of theirs."""
    X = [np.full(1, value), np.full(3, value), np.full(2, value)]
    Q = [value * np.array([1 + 1e-9]), value * np.array([1 - 3e-9, 1 + 2e-9])]
    model = DTWNearestNeighbor(precision="float32", engine=fast_engine).fit(X, [0, 1, 1])
    right = np.array([[reference.dtw(q[None], x[None]) for x in X] for q in Q])
    right = np.column_stack([right[:, 0], right[:, 1:].min(axis=1)])
    assert_allclose(model.transform(Q), right, rtol=1e-5)


@pytest.mark.parametrize("lengths", [(30, 30, 30, 30), (30, 17, 22, 30)])
def test_padding_has_no_part_in_the_error_of_float32(fast_engine, rng, lengths):
    """Around an offset padding would round to multiples of 64 where points round to 2^-24."""
    X = 1e9 + rng.normal(size=(4, 30)).round(6)
    values = np.where(np.arange(30) < np.array(lengths)[:, None], X, 0.0)[:, None]
    series = Series(values, np.array(lengths))
    work = DTWNeighbors(series, series, 1, None, "auto", Warping())
    engine = find_engine(fast_engine)
    found = engine.compute(work, Tile(0, 4, 0, 4), np.zeros(1, np.uint8))
    assert found.bound.slack < 1e-5


def test_a_frozen_copy_knows_what_was_found():
    series = Series(np.arange(12.0).reshape(2, 1, 6), np.array([6, 4]))
    assert "extent" not in vars(series.freeze())
    assert series.extent == (0.0, 9.0) and not series.equal_length
    found = vars(series.freeze())
    assert found["extent"] == (0.0, 9.0) and found["equal_length"] is False
