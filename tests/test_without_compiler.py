"""``NUMBA_DISABLE_JIT=1``, with which kernels are looked at by a debugger of Python."""

from __future__ import annotations

import os
import subprocess
import sys

import pytest

CALLS = """
import numpy as np
import skts

X, y = np.random.default_rng(0).normal(size=(8, 20)).cumsum(axis=1), [0, 1] * 4
print(skts.DTWNearestNeighbor().fit(X, y).predict(X).tolist())
print(skts.ShapeletTreeClassifier().fit(X, y).predict(X).tolist())
print(skts.MotifFinder(5).fit(X[:1]).motifs_[0].positions.tolist())
print(skts.KShapeClusterer(2, random_state=0).fit(X).labels_.tolist())
print(skts.SubsequenceSearch().fit(X).kneighbors(X[3:4, 2:10])[1].tolist())
"""


@pytest.mark.slow
def test_small_work_needs_no_compiler():
    answers = [
        subprocess.run(
            [sys.executable, "-c", CALLS],
            env=os.environ | {"NUMBA_DISABLE_JIT": disabled},
            capture_output=True, text=True, check=True,
        ).stdout
        for disabled in ("0", "1")
    ]  # fmt: skip
    assert answers[0] == answers[1] and answers[0].endswith("[[[3, 2]]]\n")
