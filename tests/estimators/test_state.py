"""Fitted state is replaced as a whole: whatever stops a fit, the old one is still there."""

from __future__ import annotations

import copy
import pickle
import sys
import warnings
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

import skts
from skts.engines import find_engine
from skts.exceptions import InconsistentVersionWarning
from skts.neighbors._base import NeighborsMixin
from tests.examples_of_estimators import (
    arguments,
    content,
    estimators,
    examples,
    methods,
    same,
)

FOLDER = str(Path(skts.__file__).parent)


def test_every_estimator_has_an_example():
    assert set(examples()) == set(estimators())


def assert_untouched(model, before, bytes_before):
    assert vars(model).keys() == before.keys()
    assert [name for name in before if vars(model)[name] is not before[name]] == []
    assert content(model) == bytes_before


@pytest.mark.parametrize("kind", [skts.DTWNearestNeighbor, skts.SubsequenceSearch])
def test_a_subclass_may_set_attributes_before_it_fits(kind, rng):
    class Careful(kind):
        def fit(self, X, y=None):
            if self.verbose:
                raise RuntimeError("not this time")
            self.seen_ = len(X)
            super().fit(X, y)
            self.later_ = self.seen_ + 1
            return self

    X, y = rng.normal(size=(5, 4)), [0, 0, 1, 1, 1]
    careful = Careful(engine="oracle")
    assert careful.fit(X[1:], y[1:]) is careful
    assert careful.fit(X, y) is careful
    assert set(vars(careful)) == {*vars(kind(engine="oracle").fit(X, y)), "seen_", "later_"}
    assert (careful.seen_, careful.later_) == (5, 6)
    before = vars(careful.set_params(verbose=1))
    with pytest.raises(RuntimeError):
        careful.fit(X, y)
    assert vars(careful) is before


def test_a_subclass_may_fit_more_than_once(rng):
    class Patient(skts.ShapeletForestClassifier):
        def fit(self, X, y):
            self.sizes_ = []
            for n_estimators in (1, 2):
                self.set_params(n_estimators=n_estimators, warm_start=True)
                super().fit(X, y)
                self.sizes_.append(len(self.estimators_))
            return self

    X, y = rng.normal(size=(4, 5)), [0, 0, 1, 1]
    assert Patient(engine="oracle").fit(X, y).sizes_ == [1, 2]


class Stopper:
    """Raises `error` at one call of a function of the package, counted on this thread.

    That is where Python looks for Ctrl-C, too; between any two lines it might miss the end of a
    ``with`` block.
    """

    def __init__(self, error, at):
        self.error, self.at, self.calls = error, at, 0

    def __call__(self, frame, event, argument):
        if frame.f_code.co_filename.startswith(FOLDER):
            self.calls += 1
            if self.calls == self.at:
                raise self.error

    def __enter__(self):
        self.before = sys.gettrace()
        sys.settrace(self)
        return self

    def __exit__(self, *error):
        sys.settrace(self.before)


@pytest.mark.parametrize("kind", estimators())
@pytest.mark.parametrize("error", [KeyboardInterrupt, MemoryError, ValueError])
def test_a_refit_that_stops_anywhere_leaves_the_old_fit(kind, error, fast_engine):
    example = examples(fast_engine)[kind]
    model = example.make().fit(*example.first)
    _stop_everywhere(model, lambda one: one.fit(*example.second), error)
    assert set(vars(example.make().fit(*example.second))) == set(
        vars(model.fit(*example.second))
    ), "nothing of an earlier fit is left"


@pytest.mark.parametrize(
    ("kind", "method"),
    [(kind, m) for kind in estimators() for m in ("partial_fit", "update") if hasattr(kind, m)],
)
def test_an_update_that_stops_anywhere_leaves_the_old_fit(kind, method, fast_engine):
    example = examples(fast_engine)[kind]
    model = example.make().fit(*example.first)
    given = arguments(model, method, example)
    _stop_everywhere(model, lambda one: getattr(one, method)(**given), KeyboardInterrupt)
    expected = example.make().fit(*example.first)
    for one in (model, expected):
        getattr(one, method)(**given)
    assert content(model) == content(expected)


def _stop_everywhere(model, work, error):
    """Stop some work at calls spread over all of it, the last ones included."""
    rehearsal = pickle.loads(pickle.dumps(model))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        work(rehearsal)
        with Stopper(error, -1) as counted:
            work(pickle.loads(pickle.dumps(model)))
    before, bytes_before = dict(vars(model)), content(model)
    calls = counted.calls
    stops = {*np.linspace(1, calls, 25).astype(int).tolist(), *range(calls - 8, calls + 1)}
    stopped = 0
    for at in sorted(stop for stop in stops if stop > 0):
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            try:
                with Stopper(error, at):
                    work(model)
            except error:
                stopped += 1
                assert_untouched(model, before, bytes_before)
            else:
                # threads took their calls in another order: it was done before
                model.__dict__ = dict(before)
                assert content(model) == bytes_before
    assert stopped >= min(10, calls - 1)


@pytest.mark.parametrize("kind", estimators())
def test_a_refit_on_an_engine_that_fails_leaves_the_old_fit(kind, monkeypatch, fast_engine):
    example = examples(fast_engine)[kind]
    model = example.make().fit(*example.first)
    before, bytes_before = dict(vars(model)), content(model)
    engine = find_engine(fast_engine)
    compute, left = engine.compute, 0

    def failing(reduction, tile, cancel):
        nonlocal left
        left -= 1
        if left < 0:
            raise RuntimeError("the device is gone")
        return compute(reduction, tile, cancel)

    monkeypatch.setitem(vars(engine), "compute", failing)
    failures = 0
    for allowed in (0, 1, 2, 5):
        left = allowed
        try:
            pickle.loads(pickle.dumps(model)).fit(*example.second)
        except RuntimeError:
            left = allowed
            with pytest.raises(RuntimeError, match="the device is gone"):
                model.fit(*example.second)
            assert_untouched(model, before, bytes_before)
            failures += 1
    # keeping series, for a search to come, computes nothing
    keeping = NeighborsMixin, skts.SubsequenceSearch, skts.SubsequenceMonitor
    assert failures > 0 or issubclass(kind, keeping)


@pytest.mark.parametrize("kind", estimators())
def test_set_output_changes_nothing_but_what_transform_returns(kind, fast_engine):
    example = examples(fast_engine)[kind]
    if not hasattr(kind, "set_output"):
        assert not hasattr(kind, "transform")
        return
    for method in methods(kind):
        results = []
        for output in (None, "pandas"):
            model = example.make().set_output(transform=output).fit(*example.first)
            found = getattr(model, method)(**arguments(model, method, example))
            if method in ("transform", "fit_transform"):
                assert isinstance(found, pd.DataFrame) == (output == "pandas")
            results.append(found)
        expected, found = results
        if found is not expected and isinstance(expected, kind):
            found, expected = content(found), content(expected)
            assert found.pop("_sklearn_output_config") != expected.pop("_sklearn_output_config", 0)
            assert found == expected
        else:
            same(found, expected)


@pytest.mark.parametrize("kind", estimators())
def test_pickles_name_their_version(kind, monkeypatch):
    example = examples()[kind]
    for model in (example.make(), example.make().fit(*example.first)):
        made = pickle.dumps(model)
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            again = pickle.loads(made)
            copied = copy.deepcopy(model)
        assert content(again) == content(copied) == content(model)
        assert not hasattr(again, "_skts_version")
        with monkeypatch.context() as patch:
            patch.setattr("skts._version.__version__", "9.9")
            with pytest.warns(InconsistentVersionWarning, match=r"skts 0.* read by skts 9\.9,"):
                pickle.loads(made)
        state = model.__getstate__()
        del state["_skts_version"]
        with pytest.warns(InconsistentVersionWarning, match="by skts before 0.1.0"):
            kind.__new__(kind).__setstate__(state)


def keys_within(value):
    """Keys of all dictionaries within a fitted state."""
    if isinstance(value, dict):
        yield from value
    for part in value.values() if isinstance(value, dict) else ():
        yield from keys_within(part)


@pytest.mark.parametrize("kind", estimators())
def test_fitted_state_has_keys_of_text(kind):
    """As JSON needs them, and so skops, which persists estimators without pickle."""
    example = examples()[kind]
    model = example.make().fit(*example.first)
    assert [key for key in keys_within(vars(model)) if not isinstance(key, str)] == []
