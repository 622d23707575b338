"""Ordinary calls on data of all scales, arithmetic warnings as errors; lines of other warnings."""

from __future__ import annotations

import warnings

import numpy as np
import pytest

import skts
from tests.discovery import functions
from tests.estimators.test_scalars import result_of
from tests.examples_of_estimators import arguments, estimators, examples, methods
from tests.examples_of_functions import FUNCTIONS


def scaled(factor):
    return lambda values: factor * values


def begins_with(factor):
    def change(values):
        values = values.copy()
        values[..., : values.shape[-1] // 3] *= factor
        return values

    return change


def with_gaps(values):
    values = values.copy()
    values[..., [-2, -1]] = np.nan, np.inf
    return values


#: What is done to every array of numbers that is given.
DATA = {
    "ordinary": scaled(1.0),
    "largest": scaled(2.0**470),
    "least": scaled(2.0**-470),
    "zero": scaled(0.0),
    "constant": lambda values: np.full(values.shape, 1e9),
    "quiet": begins_with(2.0**-900),
    "loud": begins_with(2.0**470),
    "gaps": with_gaps,
    "half precision": lambda values: values.astype(np.float16),
    "long double": lambda values: values.astype(np.longdouble) * np.longdouble(2) ** 300,
}


def changed(change, given):
    return tuple(
        change(one) if isinstance(one, np.ndarray) and one.dtype.kind == "f" else one
        for one in given
    )


@pytest.fixture(autouse=True)
def strict():
    with warnings.catch_warnings(), np.errstate(all="raise"):
        warnings.simplefilter("ignore", UserWarning)
        warnings.simplefilter("error", RuntimeWarning)
        yield


@pytest.mark.parametrize("data", DATA)
@pytest.mark.parametrize("kind", estimators())
def test_estimators_do_not_warn(kind, data):
    example = examples()[kind]
    first = changed(DATA[data], example.first)
    (asked,) = changed(DATA[data], (example.asked,))
    example = example._replace(first=first, asked=asked)
    try:
        model = example.make().fit(*first)
    except ValueError:
        assert data in ("zero", "constant", "gaps")
        return
    for method in methods(kind):
        model = example.make().fit(*first)
        try:
            getattr(model, method)(**arguments(model, method, example))
        except ValueError:
            # a query from a quiet stretch is a tiny series of its own
            assert data in ("gaps", "quiet")


@pytest.mark.parametrize("data", DATA)
@pytest.mark.parametrize("function", functions())
def test_functions_do_not_warn(function, data):
    given, values = FUNCTIONS[function]
    given = changed(DATA[data], given)
    options = [{}, *({"normalize": flag} for flag in (True, False) if "normalize" in values)]
    options += [{name: some[0]} for name, some in values.items() if name in ("k", "sides")]
    for some in options:
        try:
            result_of(function, given, some)
        except ValueError as error:
            # a smoothing for numbers of about 1 says nothing of such as these
            assert data == "gaps" or str(error).startswith("gamma=1 is too small")


#: Estimators whose `fit` warns of what it has found.
DOUBTFUL = {
    "votes": skts.ShapeletForestClassifier(1, oob_score=True, random_state=0),
    "iterations": skts.KShapeClusterer(3, max_iter=1, n_init=1, random_state=0),
    "shapes": skts.KShapeClusterer(9, random_state=0),
    "centres": skts.DTWKMeans(9, random_state=0),
    "medoids": skts.DTWKMedoids(9, random_state=0),
    "accuracy": skts.DTWCondenser(min_accuracy=1.0),
}


@pytest.mark.parametrize("name", DOUBTFUL)
def test_warnings_of_fit_name_the_line_that_called_it(name, rng):
    series = rng.normal(size=(12, 9))
    if name in ("shapes", "centres", "medoids"):
        series = series[[0, 1] * 6]
    with pytest.warns(UserWarning) as caught:
        DOUBTFUL[name].fit(series, [0, 1, 1] * 4)
    assert {one.filename for one in caught} == {__file__}
