"""Kernels read no memory that was freed: glibc overwrites what is freed, and answers stay right."""

from __future__ import annotations

import os
import subprocess
import sys
import textwrap

import numpy as np
import pytest
from numba import njit

from skts.engines.numba.profile.join import search
from skts.motifs import matrix_profile

SCRIPT = """
    import numpy as np
    from skts.motifs import matrix_profile

    rng = np.random.default_rng(0)
    held = []
    for case in range(500):
        x = rng.integers(0, 4, int(rng.integers(6, 30))).astype(float)
        window = int(rng.integers(1, min(7, len(x))))
        a = np.lib.stride_tricks.sliding_window_view(x, window)
        D = np.sqrt(((a[:, None] - a[::-1, ::-1][None]) ** 2).sum(axis=-1))
        options = {"window": window, "normalize": False, "engine": "numba"}
        found = matrix_profile(x, x[::-1], **options).distances
        assert np.allclose(found, D.min(axis=1)), (case, x, window, found)
        back = matrix_profile(x[::-1], x, **options).distances
        assert np.allclose(back, D.min(axis=0)), (case, x, window, back)
        held = held[-10:] + [np.full(int(rng.integers(1, 200)), 1e152)]
"""


@pytest.mark.long
def test_small_joins_read_nothing_that_was_freed():
    done = subprocess.run(
        [sys.executable, "-c", textwrap.dedent(SCRIPT)],
        env={**os.environ, "MALLOC_PERTURB_": "165"},
        capture_output=True,
        text=True,
        timeout=250,
    )
    assert done.returncode == 0, done.stderr


@njit
def second_points(arrays):
    return arrays[0][1]


def test_types_of_long_tuples_are_told_apart():
    """Numba finds a compiled version by the types of all arrays of a tuple, however many."""
    series = np.arange(5.0)
    others = tuple(series for _ in range(9))
    assert second_points((series, *others)) == 1
    assert second_points((series[::-1], *others)) == 3


def test_reversed_series_take_the_same_kernels():
    x = np.random.default_rng(0).normal(size=40)
    matrix_profile(x, x, window=5, engine="numba")
    compiled = len(search.signatures)
    found = matrix_profile(x[::-1], x[::-2], window=5, engine="numba")
    assert len(search.signatures) == compiled
    copied = matrix_profile(x[::-1].copy(), x[::-2].copy(), window=5, engine="numba")
    np.testing.assert_array_equal(found.distances, copied.distances)
