"""Ctrl-C at random times in calls of every estimator: heard at once, and nothing has changed."""

from __future__ import annotations

import os
import pickle
import signal
import threading
import time
import warnings

import numpy as np
import pytest

from skts.engines import find_engine
from tests.examples_of_estimators import arguments, content, estimators, examples, methods, same


@pytest.fixture
def pressed():
    """Return a function that does some work and presses Ctrl-C after some seconds.

    It returns seconds from there to the interrupt, or None and the answer.
    """
    before = signal.signal(signal.SIGINT, signal.default_int_handler)

    def work_and_press(work, seconds):
        when = []

        def press():
            when.append(time.perf_counter())
            os.kill(os.getpid(), signal.SIGINT)

        timer = threading.Timer(seconds, press)
        try:
            timer.start()
            answer = work()
            # it may come late: not in the midst of what follows
            timer.cancel()
            timer.join()
            time.sleep(0.001)
        except KeyboardInterrupt:
            timer.join()
            return time.perf_counter() - when[0], None
        return None, answer

    yield work_and_press
    signal.signal(signal.SIGINT, before)


@pytest.mark.parametrize(
    ("repeats", "times"), [(4, 3), pytest.param(30, 12, marks=pytest.mark.slow)]
)
@pytest.mark.parametrize("kind", estimators())
def test_ctrl_c_at_random_times(kind, fast_engine, repeats, times, pressed):
    rng = np.random.default_rng()
    example = examples(fast_engine)[kind]
    # more of the same: so many times the series, and longer ones
    X, *target = example.first
    X = np.tile(X, (repeats, repeats)) + rng.normal(size=(repeats * len(X), repeats * X.shape[1]))
    example = example._replace(
        first=(X, *(np.tile(y, repeats) for y in target)), asked=X[: len(example.asked)] + 0.1
    )
    before_threads = threading.active_count()
    fitted = pickle.dumps(example.make().fit(*example.first))
    heard, tried = [], 0
    for method in methods(kind):

        def work(model, method=method):
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                return getattr(model, method)(**arguments(model, method, example))

        def settled(answer):
            return content(answer) if hasattr(answer, "get_params") else answer

        work(pickle.loads(fitted))
        model = pickle.loads(fitted)
        start = time.perf_counter()
        expected = settled(work(model))
        duration = time.perf_counter() - start
        if duration < 0.02:
            continue
        tried += 1
        for number in range(times):
            model = pickle.loads(fitted)
            state = content(model)
            # the first one early, so that it is no miss where this run is quicker
            delay = duration * rng.random() * (0.3 if number == 0 else 1)
            seconds, answer = pressed(lambda model=model: work(model), delay)
            if seconds is None:
                same(settled(answer), expected)
                continue
            heard.append(seconds)
            assert seconds < 1, f"{method}, Ctrl-C after {delay:.3f} s"
            assert content(model) == state
            same(settled(work(model)), expected)
    prepared = find_engine(fast_engine).prepared
    assert not prepared._gates
    assert threading.active_count() <= before_threads + 1
    assert heard or not tried
