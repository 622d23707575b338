"""Promises that all estimators, functions and displays keep, whichever there are.

Works are found by walking the package (`tests.discovery`): each estimator with all its methods,
each function, each way to make a display. Reductions and methods of engines have the same demands
in ``tests/engines/core``; `tests/test_contract_table.py` says which test meets which demand.
"""

from __future__ import annotations

import ast
import copy
import inspect
import pickle
import re
import threading
import warnings
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import fields, is_dataclass
from typing import Any

import numpy as np
import pandas as pd
import pytest
import scipy.sparse
from joblib import parallel_config
from sklearn import config_context as sklearn_context
from sklearn.base import BaseEstimator

import skts
import skts.datasets
from skts import config_context
from skts.engines import find_engine
from tests import examples_of_displays, examples_of_estimators
from tests.contract import check_described
from tests.discovery import Examples, displays, estimators, functions
from tests.examples_of_estimators import arguments, methods
from tests.examples_of_functions import FUNCTIONS, needed

pytest.importorskip("matplotlib").use("Agg")


# --- works -------------------------------------------------------------------------------------


def parameters(kind: type) -> list[str]:
    """Names of the parameters of an estimator."""
    return list(inspect.signature(kind).parameters)


def work_of_estimator(kind: type, *, small: bool) -> list[Any]:
    """Fit the example, and call all methods of the fitted estimator."""
    example = examples_of_estimators.examples("auto", small=small)[kind]
    fitted, found = example.make().fit(*example.first), []
    for method in methods(kind):
        # some methods change the model
        model = copy.deepcopy(fitted)
        found.append(getattr(model, method)(**arguments(model, method, example)))
    return found


def work_of_function(function: Callable[..., Any], *, small: bool) -> Any:
    """Call a function with its example, and what it must be given beside the series."""
    return function(*FUNCTIONS[function][0], **needed(function))


def work_of_display(kind: type, maker: str, *, small: bool) -> dict[str, Any]:
    """Draw a display; what it draws is what its constructor was given."""
    table = examples_of_displays.examples(small=small)[kind]
    where = f"the part of {kind.__name__} in `examples` of tests/examples_of_displays.py"
    display = Examples(table, where)[maker]()
    assert display.figure_ is not None
    return {name: getattr(display, name) for name in inspect.signature(kind).parameters}


WORKS = {
    **{kind.__name__: (work_of_estimator, kind) for kind in estimators()},
    **{function.__name__: (work_of_function, function) for function in functions()},
    **{
        f"{kind.__name__}.{maker}": (work_of_display, kind, maker)
        for kind in displays()
        for maker in examples_of_displays.makers(kind)
    },
}
every_work = pytest.mark.parametrize("work", WORKS)


def do(work: str, *, small: bool = False) -> Any:
    """Do some work on the engine of the configuration, and close its figures.

    Estimators get few and short series where `small`: plain loops and processes take their time.
    """
    import matplotlib.pyplot as plt

    function, *rest = WORKS[work]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)
        answer = function(*rest, small=small)
    if function is work_of_display:
        plt.close("all")
    return answer


def flat(answer: Any) -> list[Any]:
    """Arrays and plain values of an answer, in order; of an estimator, what it has learnt."""
    if isinstance(answer, BaseEstimator):
        learnt = {name: value for name, value in vars(answer).items() if name.endswith("_")}
        answer = {name: value for name, value in learnt.items() if name != "engine_"}
    elif isinstance(answer, pd.DataFrame):
        answer = answer.to_numpy()
    elif scipy.sparse.issparse(answer):
        answer = answer.toarray()
    elif is_dataclass(answer):
        answer = [getattr(answer, field.name) for field in fields(answer)]
    if isinstance(answer, np.ndarray) and answer.dtype == object:
        answer = list(answer.ravel())
    if isinstance(answer, dict):
        answer = list(answer.values())
    if isinstance(answer, list | tuple):
        return [len(answer), *(leaf for part in answer for leaf in flat(part))]
    return [answer]


def same_bits(found: Any, expected: Any) -> bool:
    """Whether two answers are the same to the bit."""

    def bits(leaf: Any) -> Any:
        if isinstance(leaf, np.ndarray | np.generic | float):
            leaf = np.asarray(leaf)
            return leaf.dtype, leaf.shape, leaf.tobytes()
        return leaf

    return list(map(bits, flat(found))) == list(map(bits, flat(expected)))


@pytest.fixture(scope="module")
def expected():
    """Answers of a plain run on one thread of an engine, each found once."""
    known = {}

    def find(work, engine, small=False):
        missing = find_engine(engine).available()
        if missing is not None:
            pytest.skip(missing)
        if (work, engine, small) not in known:
            with config_context(engine=engine), parallel_config("threading", n_jobs=1):
                known[work, engine, small] = do(work, small=small)
        return known[work, engine, small]

    return find


# --- everything is found, and has an example ---------------------------------------------------


def test_what_is_found_is_what_users_meet():
    public = {getattr(skts, name) for name in skts.__all__}
    assert set(estimators()) == {
        one for one in public if inspect.isclass(one) and issubclass(one, BaseEstimator)
    }
    assert set(displays()) == {getattr(skts.plotting, name) for name in skts.plotting.__all__}
    assert len(functions()) >= 12


@pytest.mark.parametrize(
    "kind", estimators() + displays() + functions(), ids=lambda kind: kind.__name__
)
def test_everything_has_an_example(kind):
    tables = examples_of_estimators.examples(), examples_of_displays.examples(), FUNCTIONS
    found = [kinds() for kinds in (estimators, displays, functions)]
    (table,) = (table for table, kinds in zip(tables, found, strict=True) if kind in kinds)
    assert table[kind] is not None
    assert set(table) == {one for kinds in found for one in kinds if one in table}


def test_what_has_no_example_says_where_to_add_one():
    class ToyDisplay:
        pass

    for table, where in (
        (examples_of_estimators.examples(), "tests/examples_of_estimators.py"),
        (examples_of_displays.examples(), "tests/examples_of_displays.py"),
        (FUNCTIONS, "tests/examples_of_functions.py"),
    ):
        message = f"ToyDisplay has no example for the tests: add one in `.*` of {where}."
        with pytest.raises(LookupError, match=message):
            table[ToyDisplay]


# --- every engine, every back end, any budget --------------------------------------------------


@every_work
def test_every_engine_finds_the_same(work, engine, expected):
    """To rounding: centres of k-Shape come out of iterations, and are not certified."""
    small = engine == "oracle"
    found = flat(expected(work, engine, small))
    for one, other in zip(found, flat(expected(work, "numba", small)), strict=True):
        if isinstance(one, np.ndarray | float) and np.asarray(one).dtype.kind == "f":
            np.testing.assert_allclose(one, other, rtol=1e-9, atol=1e-9)
        else:
            np.testing.assert_array_equal(one, other)


#: Works that Dask does in every run, one of each kind: it is sent the same parts as loky.
BY_DASK = ("KShapeClusterer", "pairwise_dtw", "MotifDisplay.from_estimator")


def test_works_of_dask_are_of_all_kinds():
    assert {WORKS[work][0] for work in BY_DASK} == {how for how, *_ in WORKS.values()}


# `tests/engines/core/test_every_reduction.py` has Dask do all reductions, and works of each kind
@every_work
@pytest.mark.parametrize(
    "backend", ["threading", "loky", pytest.param("dask", marks=pytest.mark.slow)]
)
def test_every_back_end_finds_the_same(work, fast_engine, backend, expected, monkeypatch, request):
    answer = expected(work, fast_engine, small=True)
    monkeypatch.setattr("skts.engines.core.executor.WORTH_SENDING", 0)
    if backend == "dask":
        request.getfixturevalue("dask_cluster")
    with config_context(engine=fast_engine), parallel_config(backend, n_jobs=2):
        assert same_bits(do(work, small=True), answer)


@every_work
def test_budgets(work, fast_engine, expected):
    """A tile of a GPU is larger than one of a thread."""
    answer = expected(work, fast_engine)
    memory = "8MiB" if fast_engine == "numba" else "256MiB"
    with config_context(engine=fast_engine, memory=memory):
        assert same_bits(do(work), answer)


# --- pickles, threads, interrupts --------------------------------------------------------------


@every_work
def test_pickles(work, fast_engine, expected):
    """Answers can be pickled, and so can the estimators that return them."""
    answer = expected(work, fast_engine)
    assert same_bits(pickle.loads(pickle.dumps(answer)), answer)
    assert pickle.loads(pickle.dumps(WORKS[work])) == WORKS[work]


@pytest.mark.parametrize("kind", estimators())
def test_a_model_from_a_pickle_answers_the_same(kind, fast_engine, expected):
    answers = expected(kind.__name__, fast_engine)
    example = examples_of_estimators.examples(fast_engine)[kind]
    fitted = pickle.dumps(example.make().fit(*example.first))
    for method, answer in zip(methods(kind), answers, strict=True):
        model = pickle.loads(fitted)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", UserWarning)
            found = getattr(model, method)(**arguments(model, method, example))
        assert same_bits(found, answer), method


@pytest.mark.parametrize("work", [name for name in WORKS if WORKS[name][0] is not work_of_display])
def test_two_threads_at_once(work, fast_engine, expected):
    """Without displays: matplotlib's figures belong to one thread."""
    answer, both = expected(work, fast_engine), threading.Barrier(2, timeout=60)

    def compute(number):
        with config_context(engine=fast_engine):
            both.wait()
            return do(work)

    with ThreadPoolExecutor(2) as pool:
        assert all(same_bits(found, answer) for found in pool.map(compute, range(2)))


@pytest.mark.parametrize("kind", estimators())
def test_two_threads_ask_one_model(kind, fast_engine, expected):
    answers = expected(kind.__name__, fast_engine)
    example = examples_of_estimators.examples(fast_engine)[kind]
    model, both = example.make().fit(*example.first), threading.Barrier(2, timeout=60)
    # not those that change the model
    asked = [m for m in methods(kind) if not m.startswith(("fit", "partial_fit", "update"))]
    answers = [one for m, one in zip(methods(kind), answers, strict=True) if m in asked]

    def ask(number):
        both.wait()
        return [getattr(model, m)(**arguments(model, m, example)) for m in asked]

    with ThreadPoolExecutor(2) as pool:
        for found in pool.map(ask, range(2)):
            assert same_bits(found, answers)


@every_work
def test_an_interrupt_is_heard_and_harms_nothing(work, fast_engine, expected, monkeypatch):
    """At the first tile, in the midst, and at the last one."""
    answer, engine = expected(work, fast_engine), find_engine(fast_engine)
    compute, lock = engine.compute, threading.Lock()
    count, stop = 0, 0

    def counted(*arguments):
        nonlocal count
        with lock:
            count += 1
            if count == stop:
                raise KeyboardInterrupt
        return compute(*arguments)

    monkeypatch.setitem(vars(engine), "compute", counted)
    with config_context(engine=fast_engine):
        do(work)
        tiles = count
        for number in sorted({min(1, tiles), tiles // 2, tiles} - {0}):
            count, stop = 0, number
            with pytest.raises(KeyboardInterrupt):
                do(work)
            assert not engine.prepared._gates
        stop = 0
        assert same_bits(do(work), answer)


# --- documentation -----------------------------------------------------------------------------


@pytest.mark.parametrize("kind", estimators())
def test_docstrings_name_parameters_and_fitted_attributes(kind):
    example = examples_of_estimators.examples("oracle", small=True)[kind]
    check_described(example.make().fit(*example.first))


@pytest.mark.parametrize("kind", [one for one in estimators() if "window" in parameters(one)])
def test_a_window_has_no_more_than_all_points(kind):
    example = examples_of_estimators.examples(small=True)[kind]
    with pytest.raises(ValueError, match="The 'window' parameter"):
        example.make().set_params(window=1.25).fit(*example.first)


@pytest.mark.parametrize("kind", [one for one in estimators() if hasattr(one, "transform")])
def test_frames_that_are_given_have_a_row_for_each_series(kind):
    example = examples_of_estimators.examples(small=True)[kind]
    X, *y = example.first
    named = [f"subject {k}" for k in range(len(X))]
    rows = pd.MultiIndex.from_product([named, range(X.shape[1])], names=["subject", "time"])
    long = pd.DataFrame({"volts": X.ravel()}, index=rows)
    expected = example.make().fit(long, *y).transform(long)
    model = example.make().set_output(transform="pandas").fit(long, *y)
    for found in (model.transform(long), model.transform(X=long), model.fit_transform(long, *y)):
        assert found.index.tolist() == named
        assert found.index.name == "subject"
        assert found.columns.tolist() == model.get_feature_names_out().tolist()
        np.testing.assert_array_equal(found.to_numpy(), expected)
    assert model.transform(list(X)).index.tolist() == list(range(len(X)))


def test_a_frame_that_a_subclass_makes_of_features_stays_as_it_is():
    class Framed(skts.ShapeletTransformer, auto_wrap_output_keys=None):
        def transform(self, X):
            return pd.DataFrame(np.asarray(super().transform(X)))

    X = np.random.default_rng(0).normal(size=(6, 20))
    rows = pd.MultiIndex.from_product([[f"subject {k}" for k in range(6)], range(20)])
    long = pd.DataFrame({"volts": X.ravel()}, index=rows)
    model = Framed(3, random_state=0).fit(long)
    expected = model.transform(X=long).to_numpy()
    assert np.isfinite(expected).all()
    with sklearn_context(transform_output="pandas"):
        np.testing.assert_array_equal(model.transform(X=long).to_numpy(), expected)


DATASETS = [getattr(skts.datasets, name) for name in skts.datasets.__all__]


@pytest.mark.parametrize(
    "kind", [*estimators(), *functions(), *displays(), *DATASETS], ids=lambda kind: kind.__name__
)
def test_docstrings_say_the_defaults_that_there_are(kind):
    described = re.findall(r"^([\w, ]+) : .*, default (.+)$", inspect.getdoc(kind), re.MULTILINE)
    said = {name: value for names, value in described for name in names.split(", ")}
    for parameter in inspect.signature(kind).parameters.values():
        if parameter.name in said and said[parameter.name] != "all three":
            assert ast.literal_eval(said[parameter.name]) == parameter.default, parameter.name
