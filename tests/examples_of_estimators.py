"""An example of every estimator, for tests of what holds for all of them."""

from __future__ import annotations

import inspect
import pickle
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
import pandas as pd
from sklearn.base import BaseEstimator

from skts import (
    DiscordDetector,
    DTWCondenser,
    DTWKMeans,
    DTWKMedoids,
    DTWNearestNeighbor,
    DTWNearestNeighborRegressor,
    DTWNeighbors,
    KShapeClusterer,
    MotifFinder,
    ShapeletForestClassifier,
    ShapeletTransformer,
    ShapeletTreeClassifier,
    ShapeletTreeRegressor,
    SubsequenceMonitor,
    SubsequenceSearch,
)
from tests.discovery import Examples, estimators

__all__ = ["Example", "arguments", "content", "estimators", "examples", "methods", "same"]


class Example(NamedTuple):
    """How to make an estimator, two sets of training data, and series to ask it about."""

    make: Callable[[], Any]
    first: tuple
    second: tuple
    asked: np.ndarray


def examples(engine: str = "numba", *, small: bool = False) -> dict[type, Example]:
    """Examples of all estimators on an engine, drawn with a fixed seed; small ones for oracles."""
    rng = np.random.default_rng(7)
    X, other = rng.normal(size=(14, 30)).cumsum(axis=1), rng.normal(size=(11, 26)).cumsum(axis=1)
    X[::2, 8:20] += 9 * np.hanning(12)
    if small:
        X, other = X[:8, 4:22], other[:6, :18]
    y, labels = np.arange(len(X)) % 2, np.array(["a", "b", "c"])[np.arange(len(other)) % 3]
    both = ((X, y), (other, labels), X[:5] + 0.1)
    alone = ((X,), (other,), X[:5] + 0.1)
    table = {
        DTWCondenser: Example(
            lambda: DTWCondenser(
                n_prototypes=len(X) - 1 if small else 4, adapt_window=not small, engine=engine
            ),
            *both,
        ),
        DTWKMeans: Example(lambda: DTWKMeans(3, random_state=0, engine=engine), *alone),
        DTWKMedoids: Example(lambda: DTWKMedoids(3, random_state=0, engine=engine), *alone),
        DTWNearestNeighbor: Example(lambda: DTWNearestNeighbor(2, engine=engine), *both),
        DTWNearestNeighborRegressor: Example(
            lambda: DTWNearestNeighborRegressor(2, weights="distance", engine=engine),
            (X, X[:, 3]),
            (other, other[:, :2]),
            X[:5] + 0.1,
        ),
        DTWNeighbors: Example(lambda: DTWNeighbors(3, radius=9.0, engine=engine), *alone),
        DiscordDetector: Example(
            lambda: DiscordDetector(7, side="left", engine=engine),
            *((X[:4],), (other[:4],), X[:3] + 0.1) if small else alone,
        ),
        KShapeClusterer: Example(
            lambda: KShapeClusterer(3, random_state=0, n_init=2, engine=engine), *alone
        ),
        MotifFinder: Example(
            lambda: MotifFinder(8, n_discords=2, left_right=True, engine=engine), *alone
        ),
        ShapeletForestClassifier: Example(
            lambda: ShapeletForestClassifier(
                3 if small else 7, max_candidates=4, random_state=0, engine=engine
            ),
            *both,
        ),
        ShapeletTransformer: Example(
            lambda: ShapeletTransformer(
                4, max_candidates=20, lengths=(5, 0.4), random_state=0, engine=engine
            ),
            *both,
        ),
        ShapeletTreeClassifier: Example(
            lambda: ShapeletTreeClassifier(
                min_length=5, max_length=9, random_state=0, engine=engine
            ),
            *both,
        ),
        ShapeletTreeRegressor: Example(
            # few candidates: the cupy engine measures all of them
            lambda: ShapeletTreeRegressor(
                min_length=0.8,
                max_length=0.8,
                max_depth=2,
                logic=("and",),
                random_state=0,
                engine=engine,
            ),
            (X, X[:, 3]),
            (other, other[:, 2]),
            X[:5] + 0.1,
        ),
        SubsequenceMonitor: Example(
            lambda: SubsequenceMonitor(6.0, window=0.1, exclusion=2, engine=engine),
            (X[:3, 8:20],),
            (other[:2, 5:15],),
            X[:5] + 0.1,
        ),
        SubsequenceSearch: Example(lambda: SubsequenceSearch(window=0.1, engine=engine), *alone),
    }
    return Examples(table, "`examples` of tests/examples_of_estimators.py")


def methods(kind: type) -> list[str]:
    """Public methods that an estimator has beyond those that all of scikit-learn's have."""
    known = {"get_feature_names_out"}
    return [
        name
        for name in dir(kind)
        if not name.startswith(("_", "set_"))
        and callable(getattr(kind, name))
        and not hasattr(BaseEstimator, name)
        and name not in known
    ]


def arguments(model: Any, method: str, example: Example) -> dict[str, Any]:
    """Arguments for a method; training data where it has a target, or fits."""
    parameters = inspect.signature(getattr(model, method)).parameters
    given: dict[str, Any] = {}
    data = example.first if "fit" in method or "y" in parameters else (example.asked,)
    table = {
        **dict(zip(("X", "y"), data, strict=False)),
        "Q": example.asked[:2, :9],
        "radius": 2.0,
        "points": example.asked[0],
    }
    for name, parameter in parameters.items():
        if name in table and (name != "y" or table[name] is not None):
            given[name] = table[name]
        else:
            assert parameter.default is not parameter.empty or parameter.kind in (
                parameter.VAR_KEYWORD,
                parameter.VAR_POSITIONAL,
            ), f"{method} takes {name}: give it here"
    return given


def content(model: Any) -> dict[str, bytes]:
    """The contents of an estimator, to the bit, however often parts of it are the same object."""

    def travelled(value):
        return pickle.loads(pickle.dumps(value))

    return {name: pickle.dumps(travelled(travelled(value))) for name, value in vars(model).items()}


def plain(result: Any) -> Any:
    if isinstance(result, pd.DataFrame):
        return result.to_numpy()
    if hasattr(result, "toarray"):
        return result.toarray()
    return result


def same(found: Any, expected: Any) -> None:
    """Assert that two results are the same to the bit."""
    if isinstance(expected, tuple | list):
        assert len(found) == len(expected)
        for one, other in zip(found, expected, strict=True):
            same(one, other)
    elif isinstance(expected, dict):
        same(list(found.values()), list(expected.values()))
    elif isinstance(expected, np.ndarray) and expected.dtype == object:
        same(list(found), list(expected))
    else:
        np.testing.assert_array_equal(plain(found), plain(expected))
