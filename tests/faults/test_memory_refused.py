"""Memory refused at one allocation after the other: the right answer, or a clean MemoryError.

Afterwards all is as it was: the fitted state, what engines hold, and what the next call answers.
"""

from __future__ import annotations

import gc
import pickle
import warnings

import numpy as np
import pytest
from joblib import parallel_config

from skts.engines import find_engine, run
from tests import examples_of_work
from tests.examples_of_estimators import arguments, content, estimators, examples, methods, same
from tests.examples_of_work import leaves, reductions
from tests.scarcity import refusing, spread

WORK = examples_of_work.examples()


@pytest.fixture(autouse=True, scope="module")
def quick_collector():
    """Let the garbage collector pass over what was there before."""
    gc.collect()
    gc.freeze()


@pytest.fixture(params=["host", pytest.param("device", marks=pytest.mark.gpu)])
def place(request):
    """Where memory is refused."""
    return request.param


def skip_elsewhere(place, engine):
    if place == "device" and engine != "cupy":
        pytest.skip("this engine takes no memory of a device")
    if place == "host" and np.__version__ < "2":
        # its np.where goes on after an allocation was refused, and frees memory that is not its own
        pytest.skip("NumPy 1 does not bear it itself")


def held(engine):
    """Bytes of the device that are in use, apart from what can be dropped; locks that are held."""
    prepared = find_engine(engine).prepared
    prepared.clear()
    gc.collect()
    used = 0
    if engine == "cupy":
        import cupy

        used = cupy.get_default_memory_pool().used_bytes()
    return used, len(prepared), dict(prepared._gates)


def refused(place, at, work):
    """The result of some work while an allocation is refused, in a list; None for a MemoryError."""
    try:
        with refusing(place, at):
            return [work()]
    except MemoryError:
        return None


def settled(answer):
    """An answer; of a method that fits, what the estimator then holds."""
    return content(answer) if hasattr(answer, "get_params") else answer


def test_the_allocator_of_this_thread_and_of_those_it_starts():
    with refusing("host") as counted:
        np.sort(np.zeros(10) + 1)
    assert counted.count >= 3
    for at in range(1, counted.count + 1):
        assert refused("host", at, lambda: np.sort(np.zeros(10) + 1)) is None
    assert refused("host", counted.count + 1, lambda: 3) == [3]
    from concurrent.futures import ThreadPoolExecutor

    with refusing("host", 1), ThreadPoolExecutor(1) as pool, pytest.raises(MemoryError):
        pool.submit(np.zeros, 10).result()
    assert np.zeros(10).sum() == 0


@pytest.mark.gpu
def test_the_allocator_of_a_device():
    import cupy

    before = cupy.cuda.get_allocator()
    with refusing("device") as counted:
        x = cupy.zeros(10) + 1
    assert counted.count >= 2
    assert refused("device", 1, lambda: cupy.zeros(10)) is None
    assert cupy.cuda.get_allocator() == before
    assert float(x.sum()) == 10


@pytest.mark.parametrize("how_many", [4, pytest.param(None, marks=pytest.mark.slow)])
@pytest.mark.parametrize("kind", reductions())
@pytest.mark.parametrize("n_jobs", [1, 2])
def test_reductions(kind, n_jobs, fast_engine, place, how_many):
    """Tiles are halved, or the error is one of memory."""
    skip_elsewhere(place, fast_engine)
    # who computes tiles, and what is tried again, are matters of all examples of a kind alike
    for one in WORK[kind] if n_jobs == 1 or how_many is None else WORK[kind][:1]:

        def work(one=one):
            return leaves(one.answer(run(one.work, engine=fast_engine, n_jobs=n_jobs)))

        expected = work()
        before = held(fast_engine)
        with refusing(place) as counted:
            work()
        for at in spread(counted.count, how_many):
            assert refused(place, at, work) in (None, [expected])
            assert held(fast_engine) == before
        assert work() == expected


@pytest.mark.parametrize("how_many", [4, pytest.param(None, marks=pytest.mark.slow)])
@pytest.mark.parametrize("kind", estimators())
def test_estimators(kind, fast_engine, place, how_many):
    skip_elsewhere(place, fast_engine)
    example = examples(fast_engine)[kind]
    fitted = pickle.dumps(example.make().fit(*example.first))
    for method in methods(kind):

        def work(model, method=method):
            with warnings.catch_warnings(), parallel_config("threading", n_jobs=1):
                warnings.simplefilter("ignore")
                given = arguments(model, method, example)
                return getattr(model, method)(**given)

        model = pickle.loads(fitted)
        expected = settled(work(model))
        del model
        before = held(fast_engine)
        with refusing(place) as counted:
            work(pickle.loads(fitted))
        failures = 0
        for at in spread(counted.count, how_many):
            model = pickle.loads(fitted)
            state, attributes = content(model), dict(vars(model))
            found = refused(place, at, lambda model=model: work(model))
            if found is None:
                failures += 1
                assert content(model) == state
                changed = [n for n in attributes if vars(model)[n] is not attributes[n]]
                # what is fitted and then asked has the new fit, where only the answer failed
                assert not changed or method.startswith("fit_")
                same(settled(work(model)), expected)
            else:
                same(settled(*found), expected)
            del model, attributes, found
            assert held(fast_engine) == before
        assert failures > 0 or place == "device"
