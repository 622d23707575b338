"""BLAS computes on one thread while any thread asks for it, and on as many as before afterwards."""

from __future__ import annotations

from threading import Event, Thread, local

import numpy as np
import pytest
from threadpoolctl import threadpool_info, threadpool_limits

from skts.engines.numba import _blas
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


@pytest.mark.parametrize("first_lives", [True, False])
def test_the_thread_that_leaves_last_ends_it(two_threads, first_lives):
    """Also while the one that came first, which set the number, goes on with something else."""
    came, went, left, done = (Event() for _ in range(4))

    def first():
        with one_blas_thread():
            came.set()
            went.wait(10)
        left.set()
        if first_lives:
            done.wait(10)

    def second():
        came.wait(10)
        with one_blas_thread():
            went.set()
            left.wait(10)
            found.append(blas_threads())
        found.append(blas_threads())

    found = []
    threads = [Thread(target=work) for work in (first, second)]
    for thread in threads:
        thread.start()
    threads[1].join()
    after = blas_threads()
    done.set()
    threads[0].join()
    assert (found, after) == ([1, 2], 2)


def test_a_number_that_another_thread_has_set_is_put_aside(two_threads):
    """As in a call with `n_jobs` inside of a block of threadpoolctl."""
    found = []

    def other():
        with one_blas_thread():
            found.append(blas_threads())
        found.append(blas_threads())

    thread = Thread(target=other)
    thread.start()
    thread.join()
    assert found == [1, 2]
    with threadpool_limits(1, "blas"):
        assert blas_threads() == 1
    assert blas_threads() == 2


def test_every_thread_sets_a_number_of_its_own(monkeypatch):
    """Of a BLAS on OpenMP."""

    class Library(local):
        threading_layer = "openmp"
        number = 4

        def get_num_threads(self):
            return self.number

        def set_num_threads(self, number):
            self.number = number

    library = Library()
    monkeypatch.setattr(_blas, "_libraries", [library])
    found = []

    def other():
        with one_blas_thread():
            found.append(library.number)
        found.append(library.number)

    with one_blas_thread():
        thread = Thread(target=other)
        thread.start()
        thread.join()
        assert [*found, library.number] == [1, 4, 1]
    assert library.number == 4


def test_the_blas_of_numpy_is_found():
    """Versions of threadpoolctl before 3.5 do not know it by its name."""
    named = np.show_config("dicts")["Build Dependencies"]["blas"]["name"]
    if "openblas" not in named:
        pytest.skip(f"NumPy is built with {named}")
    assert any(pool["internal_api"] == "openblas" for pool in threadpool_info())
