"""Numbers in any of NumPy's forms, and of any size, for every parameter that takes a number."""

from __future__ import annotations

import inspect
import pickle
import re
from numbers import Integral, Real

import numpy as np
import pytest
from sklearn.utils._param_validation import Interval

import skts
import skts.datasets
from skts._scalars import plain
from tests.discovery import functions
from tests.estimators.test_state import content
from tests.examples_of_estimators import arguments, estimators, examples, methods
from tests.examples_of_functions import FUNCTIONS, X

INTEGERS = [np.int8, np.uint8, np.int16, np.int64, np.uint64, np.array]
REALS = [np.float16, np.float32, np.float64, np.longdouble, np.array]


def test_plain():
    for value in (3, 0.5, True, "abc", None, (1, 2)):
        assert plain(value) is value
    for kind in INTEGERS:
        assert type(plain(kind(3))) is int and plain(kind(3)) == 3
    for kind in REALS:
        assert type(plain(kind(0.5))) is float and plain(kind(0.5)) == 0.5
    assert plain(np.True_) is True
    assert type(plain(np.str_("dtw"))) is str
    some = np.zeros(1)
    assert plain(some) is some


def numeric(kind):
    """Parameters of an estimator that take numbers: name, a number, and NumPy's kinds of it."""
    for name, constraints in kind._parameter_constraints.items():
        for one in constraints:
            wanted = one.type if isinstance(one, Interval) else one
            if wanted is Integral:
                yield name, 2, INTEGERS
            elif wanted is Real or (isinstance(wanted, type) and issubclass(wanted, Real)):
                low = getattr(one, "left", None)
                yield name, 1.5 if low is not None and low >= 1 else 0.25, REALS
            elif wanted == "boolean":
                yield name, True, [np.bool_, np.array]


CASES = [
    pytest.param(kind, *case, id=f"{kind.__name__}-{case[0]}-{type(case[1]).__name__}")
    for kind in estimators()
    for case in numeric(kind)
]


def outcome(kind, example, **options):
    """The result of fitting: fitted attributes, or the error."""
    model = example.make().set_params(**options)
    try:
        model.fit(*example.first)
    except (ValueError, TypeError) as error:
        return type(error), str(error)
    return {name: value for name, value in content(model).items() if name.endswith("_")}


@pytest.mark.long
@pytest.mark.parametrize(("kind", "name", "value", "forms"), CASES)
def test_scalars_of_numpy_are_worth_what_they_are_worth(kind, name, value, forms):
    example = examples()[kind]
    expected = outcome(kind, example, **{name: value})
    for form in forms:
        assert outcome(kind, example, **{name: form(value)}) == expected, form
        model = example.make().set_params(**{name: form(value)})
        assert type(model.get_params()[name]) is type(value)
        assert model.get_params()[name] == value
        assert type(getattr(kind(**{name: form(value)}), name)) is type(value)


@pytest.mark.parametrize(
    ("kind", "name", "value", "forms"),
    # how often work is done anew is the user's to say
    [case for case in CASES if case.values[2] == 2 and case.values[1] != "n_init"],
)
@pytest.mark.parametrize("huge", [2**63, 2**70, 10**30, -(2**70)])
@pytest.mark.filterwarnings("ignore:The series have only")
def test_huge_integers_mean_all_or_are_refused(kind, name, value, forms, huge):
    example = examples()[kind]
    model = example.make().set_params(**{name: huge})
    try:
        fitted = content(model.fit(*example.first))
        for method in methods(kind):
            getattr(model, method)(**arguments(model, method, example))
    except ValueError as error:
        assert (len(str(error).splitlines()) == 1 and str(error)[-1] in ".]|") or name in str(error)
        assert "int64" not in str(error) and "C long" not in str(error)
        return
    if huge > 0:
        # more than there can be of anything is the same as very many
        many = example.make().set_params(**{name: 10**6}).fit(*example.first)
        assert {**fitted, name: None} == {**content(many), name: None}


def test_every_parameter_that_takes_numbers_is_here():
    for function in functions():
        _, values = FUNCTIONS[function]
        for name, parameter in inspect.signature(function).parameters.items():
            words = re.sub(
                r"Literal\[.*?\]|Callable\[\[.*?\], \w+\]", "", str(parameter.annotation)
            )
            if re.search(r"\b(int|float|bool)\b", words):
                assert name in values, (function, name)


def result_of(function, given, options):
    if "window" in inspect.signature(function).parameters and "motifs" in function.__module__:
        options = {"window": 8, **options}
    if function is not skts.metrics.lb_keogh:
        options = {"engine": "numba", **options}
    return pickle.dumps(function(*given, **options))


@pytest.mark.parametrize("function", functions())
def test_functions_take_scalars_of_numpy(function):
    given, values = FUNCTIONS[function]
    for name, some in values.items():
        for value in some:
            if isinstance(value, dict):
                continue
            expected = result_of(function, given, {name: value})
            forms = {bool: [np.bool_, np.array], int: INTEGERS, float: REALS}[type(value)]
            for form in forms:
                assert result_of(function, given, {name: form(value)}) == expected, (name, form)


@pytest.mark.parametrize("function", functions())
@pytest.mark.parametrize("huge", [2**63, 10**30, -(2**70)])
def test_functions_refuse_huge_integers_or_take_them_for_all(function, huge):
    given, values = FUNCTIONS[function]
    for name, some in values.items():
        if type(some[0]) is not int:
            continue
        try:
            found = result_of(function, given, {name: huge})
        except ValueError as error:
            assert name in str(error) or "result" in str(error) or "window" in str(error)
            continue
        assert huge > 0 or name in ("n_jobs", "verbose"), name
        if huge > 0:
            assert found == result_of(function, given, {name: 10**6}), name


@pytest.mark.parametrize("name", [one for one in skts.datasets.__all__ if "make_" in one])
def test_generators_take_scalars_of_numpy(name):
    make = getattr(skts.datasets, name)
    forms = {bool: [np.bool_, np.array], int: INTEGERS, float: REALS}
    for option, parameter in inspect.signature(make).parameters.items():
        kind = type(parameter.default)
        if kind not in forms:
            continue
        value = {bool: True, int: 3, float: 0.5}[kind]
        if option in ("n_timepoints", "window"):
            value = 100
        options = {"n_timepoints": 1000, "random_state": 0}
        if option == "n_timepoints":
            options |= {"window": 10} if "planted" in name else {}
        expected = pickle.dumps(make(**options | {option: value}))
        for form in forms[kind]:
            assert pickle.dumps(make(**options | {option: form(value)})) == expected, (option, form)


def test_scalars_of_numpy_in_lists_and_settings():
    windows = [np.int8(1), np.uint64(2), np.array(0)]
    found = skts.neighbors.dtw_window_search(X, [0, 1] * 3, windows=windows, engine="oracle")
    assert found.windows.tolist() == [1, 2, 0] and type(found.best) is int
    model = skts.MotifFinder([np.int8(5), np.float16(0.25)], engine="oracle").fit(X[:2])
    assert model.window_.tolist() == [5, 6]
    settings = {"memory": np.float32(0.5), "verify": np.True_, "devices": np.array([0])}
    with skts.config_context(engine=np.str_("numba"), **settings):
        found = skts.get_config()
    assert (found["memory"], found["verify"], found["devices"]) == (0.5, True, (0,))
    assert (type(found["memory"]), type(found["verify"]), type(found["engine"])) == (
        float,
        bool,
        str,
    )


def test_arguments_of_methods():
    model = skts.DTWNearestNeighbor(engine="numba").fit(X, [0, 1] * 3)
    expected = model.kneighbors(X, 2)
    for form in INTEGERS:
        for found, right in zip(model.kneighbors(X, form(2)), expected, strict=True):
            np.testing.assert_array_equal(found, right)
    with pytest.raises(ValueError, match="n_neighbors"):
        model.kneighbors(X, 10**30)
    search = skts.SubsequenceSearch(exclusion=10**30, engine="numba").fit(X)
    distances, positions = search.kneighbors(X[:1, :8], np.uint8(7))
    assert np.isfinite(distances[0]).sum() == 6
    assert sorted(positions[0, :6, 0]) == list(range(6))
    np.testing.assert_array_equal(
        search.radius_neighbors(X[:1, :8], np.float32(2.5))[0][0],
        search.radius_neighbors(X[:1, :8], 2.5)[0][0],
    )
    with pytest.raises(MemoryError, match="The result of shape"):
        search.kneighbors(X[:1, :8], 10**30)
    many = search.kneighbors(X[:1, :8], 10**4)[0]
    np.testing.assert_array_equal(many[0, :6], distances[0, :6])
    assert np.isinf(many[0, 6:]).all()
