"""Small works that reach every CUDA function once: their answers have the bits of the CPU engine.

On a machine without a GPU these run on the emulator (tests/emulator), by its own test.
"""

from __future__ import annotations

from dataclasses import fields, is_dataclass

import numpy as np
import pytest
from numpy.testing import assert_allclose

from tests.examples_of_kernels import WORKS


def flat(answer):
    """The numbers of an answer."""
    if isinstance(answer, np.ndarray) or np.isscalar(answer):
        return [np.asarray(answer)]
    if is_dataclass(answer):
        answer = [getattr(answer, field.name) for field in fields(answer)]
    return [array for part in answer if part is not None for array in flat(part)]


@pytest.mark.gpu
@pytest.mark.parametrize("work", WORKS, ids=lambda work: work.__name__)
def test_answers_of_the_cpu(work):
    # correlations come out of Fourier transforms, and are not certified; all else has the same bits
    atol = 1e-12 if work.__name__ == "clusters" else 0
    for number, (found, expected) in enumerate(zip(work("cupy"), work("numba"), strict=True)):
        for a, b in zip(flat(found), flat(expected), strict=True):
            assert a.dtype == b.dtype
            assert_allclose(a, b, rtol=0, atol=atol, err_msg=f"answer {number}")
