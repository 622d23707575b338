"""Kernels read no memory that was freed: glibc overwrites what is freed, and answers stay right."""

from __future__ import annotations

import os
import subprocess
import sys
import textwrap

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


def test_small_joins_read_nothing_that_was_freed():
    done = subprocess.run(
        [sys.executable, "-c", textwrap.dedent(SCRIPT)],
        env={**os.environ, "MALLOC_PERTURB_": "165"},
        capture_output=True,
        text=True,
        timeout=250,
    )
    assert done.returncode == 0, done.stderr
