"""How reductions hold series: what is refused, and what stays private."""

from __future__ import annotations

import numpy as np
import pytest

from skts.engines import Series


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
