"""Ctrl-C at random times in calls of every estimator: heard at once, and nothing has changed."""

from __future__ import annotations

import pickle
import time
import warnings

import numpy as np
import pytest

from skts.engines import find_engine
from tests.examples_of_estimators import arguments, content, estimators, examples, methods, same
from tests.waiting import press_ctrl_c, quickest, threads_left

#: Seconds that the longest call should take, so that there is time to press keys in it.
LONG_ENOUGH = 0.5


@pytest.mark.parametrize(
    ("sizes", "times"),
    [((4,), 3), pytest.param((4, 4, 6, 9, 13, 20, 30), 12, marks=pytest.mark.slow)],
    ids=["4-3", "30-12"],
)
@pytest.mark.parametrize("kind", estimators())
def test_ctrl_c_at_random_times(kind, fast_engine, sizes, times):
    rng = np.random.default_rng()
    plain = examples(fast_engine)[kind]
    X, *target = plain.first

    def repeated(count):
        """More of the same: so many times the series, and longer ones."""
        long = np.tile(X, (count, count))
        long = long + rng.normal(size=long.shape)
        first = (long, *(np.tile(y, count) for y in target))
        return plain._replace(first=first, asked=long[: len(plain.asked)] + 0.1)

    def call(model, method, example):
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            return getattr(model, method)(**arguments(model, method, example))

    def is_long(fitted, example):
        """Whether one of the calls takes long enough."""
        for method in methods(kind):
            model = pickle.loads(fitted)
            start = time.perf_counter()
            call(model, method, example)
            if time.perf_counter() - start >= LONG_ENOUGH:
                return True
        return False

    # the first calls may compile
    for number, repeats in enumerate(sizes):
        example = repeated(repeats)
        fitted = pickle.dumps(example.make().fit(*example.first))
        if number and is_long(fitted, example):
            break
    heard, tried = [], 0
    for method in methods(kind):

        def work(model, method=method):
            return call(model, method, example)

        def settled(answer):
            return content(answer) if hasattr(answer, "get_params") else answer

        def timed(work=work):
            model = pickle.loads(fitted)
            start = time.perf_counter()
            answer = work(model)
            return time.perf_counter() - start, settled(answer)

        # the first one may compile
        duration, expected = min(timed(), timed(), key=lambda one: one[0])
        if duration < 0.02:
            continue
        tried += 1

        def interrupted(delay, work=work, expected=expected):
            """Seconds until it is heard; 0 where the work was done before."""
            model = pickle.loads(fitted)
            state = content(model)
            seconds, answer = press_ctrl_c(lambda: work(model), delay)
            if seconds is None:
                same(settled(answer), expected)
                return 0.0
            heard.append(seconds)
            assert content(model) == state
            same(settled(work(model)), expected)
            return seconds

        delays, before = (duration * rng.random(times)).tolist(), len(heard)
        while delays:
            delay = delays.pop()
            seconds = quickest(lambda delay=delay, one=interrupted: one(delay))
            assert seconds < 1, f"{method}, Ctrl-C after {delay:.3f} s"
            # where others held up what was timed, earlier
            if not delays and len(heard) == before and delay > 1e-4:
                delays.append(delay / 2)
    assert not threads_left()
    assert not find_engine(fast_engine).prepared._gates
    assert heard or not tried
