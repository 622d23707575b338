"""BLAS computes on one thread while any thread asks for it, and on as many as before afterwards."""

from __future__ import annotations

from threading import Thread

import pytest
from threadpoolctl import threadpool_info, threadpool_limits

from skts.engines.numba._blas import one_blas_thread


def blas_threads():
    """The largest number of threads of any BLAS that is loaded."""
    numbers = [pool["num_threads"] for pool in threadpool_info() if pool["user_api"] == "blas"]
    return max(numbers, default=1)


@pytest.fixture
def two_threads():
    """A BLAS that would use two."""
    with threadpool_limits(2, "blas"):
        if blas_threads() != 2:
            pytest.skip("BLAS has one thread here")
        yield


def test_one_thread_inside_and_two_outside(two_threads):
    for _ in range(2):
        with one_blas_thread():
            assert blas_threads() == 1
            with one_blas_thread():
                assert blas_threads() == 1
            assert blas_threads() == 1
        assert blas_threads() == 2


def test_an_error_inside_ends_it(two_threads):
    with pytest.raises(KeyError), one_blas_thread():
        raise KeyError
    assert blas_threads() == 2


def test_a_thread_that_leaves_first_does_not_end_it(two_threads):
    found = []

    def other():
        with one_blas_thread():
            found.append(blas_threads())

    with one_blas_thread():
        thread = Thread(target=other)
        thread.start()
        thread.join()
        assert [*found, blas_threads()] == [1, 1]
    assert blas_threads() == 2
