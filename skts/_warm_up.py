"""Compile ahead what estimators need, by running small examples of them."""

from __future__ import annotations

import inspect
import logging
import warnings
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np
from sklearn.base import BaseEstimator, clone, is_clusterer
from sklearn.utils import get_tags

from . import cluster, ensemble, feature_extraction, motifs, neighbors, tree
from ._log import LOGGER
from .engines import engine_names, find_engine, get_engine, replace_kernels

__all__ = ["all_estimators", "warm_up"]

#: Series enough for the search by bounds, which smaller sets do without, and a few longer ones.
_SETS = ((140, 30), (10, 200))
#: Long series: one, and several.
_LONG = ((1, 700), (3, 300))
#: How many times as much data is tried, where less is too little for the parameters.
_SCALES = (1, 4, 16)
#: Options for which other kernels compute, or without which a method does nothing.
_OPTIONS: dict[str, dict[str, Any]] = {
    "DiscordDetector": {"side": "left"},
    "ShapeletTransformer": {
        "max_candidates": None,
        "n_shapelets": 3,
        "lengths": [9],
        "dilations": [1, 2],
    },
}


def warm_up(
    engine: str | None = None,
    estimators: Iterable[type[BaseEstimator] | BaseEstimator] | None = None,
) -> None:
    """Compile what estimators need, and keep it on disk for the processes that come later.

    Kernels are compiled at the first call that needs them, which then takes seconds longer. This
    function makes such calls now, of all methods of each estimator, with small data. ``python -m
    skts.warm_up`` does the same, for container images and continuous integration: keep the folder
    that ``NUMBA_CACHE_DIR`` names, or, for a GPU, ``CUPY_CACHE_DIR``. Another kind of processor, or
    another version of skts, Numba or CuPy, compiles again.

    Parameters
    ----------
    engine : str, default None
        The engine to compile for; all that can run here by default.
    estimators : iterable of classes or estimators, default None
        Classes stand for their default parameters, estimators for their own, which may need other
        kernels. All classes by default.

    Raises
    ------
    TypeError
        If `engine` is no text, or `estimators` holds something else than estimators.
    ValueError
        If an estimator refuses all data that are tried, of up to 2,240 series or 11,200 points.
    EngineNotAvailableError
        If the named engine cannot run here.

    Examples
    --------
    >>> import skts
    >>> skts.warm_up("numba", [skts.KShapeClusterer])
    """
    if not isinstance(engine, str | None):
        raise TypeError(
            f"The 'engine' parameter of warm_up must be a str or None. Got {engine!r} instead."
        )
    if engine is None:
        names = [name for name in engine_names() if find_engine(name).available() is None]
    else:
        names = [get_engine(engine).name]
    chosen = all_estimators() if estimators is None else _checked(estimators)
    with _unannounced(), warnings.catch_warnings(), replace_kernels(always=False):
        warnings.simplefilter("ignore")  # small data may be too few for an estimator's taste
        for name in names:
            for kind in chosen:
                model = clone(kind) if isinstance(kind, BaseEstimator) else kind()
                _call_all_methods(model.set_params(engine=name))


def _checked(estimators: Any) -> list[type[BaseEstimator] | BaseEstimator]:
    """Classes and estimators, if they are such."""
    chosen = list(estimators) if isinstance(estimators, Iterable) else [None]
    for kind in chosen:
        if not (isinstance(kind, BaseEstimator) or _is_estimator(kind)):
            raise TypeError(
                f"estimators={estimators!r}: give a list of estimators, or of their classes."
            )
    return chosen


def _is_estimator(kind: Any) -> bool:
    return inspect.isclass(kind) and issubclass(kind, BaseEstimator)


@contextmanager
def _unannounced() -> Iterator[None]:
    """Keep back the line that says that kernels are compiled: the user asked for it."""

    def nothing(record: logging.LogRecord) -> bool:
        return False

    LOGGER.addFilter(nothing)
    try:
        yield
    finally:
        LOGGER.removeFilter(nothing)


def all_estimators() -> list[type[BaseEstimator]]:
    """Find all estimators of the package.

    Returns
    -------
    list of classes
        In the order of their packages.
    """
    return [
        kind
        for package in (neighbors, cluster, tree, ensemble, feature_extraction, motifs)
        for kind in (getattr(package, name) for name in package.__all__)
        if _is_estimator(kind)
    ]


def _call_all_methods(model: Any) -> None:
    if getattr(model, "metric", None) == "precomputed":
        return  # distances are there: nothing is compiled
    for one in _variants(model):
        for scale in _SCALES:
            refused = [_refusal(one, given) for given in _data(one, scale)]
            if None in refused:
                break
        else:
            raise ValueError(f"warm_up found no data for {one!r}: {refused[-1]}")


def _refusal(model: Any, given: dict[str, Any]) -> ValueError | None:
    """Call all methods of an estimator; return why they refuse the data."""
    # scores of both sides would change with points to come
    ruled_out = {"update"} if getattr(model, "side", "left") == "both" else set()
    try:
        fitted = _call(clone(model), "fit", given)
        for name in _methods(type(model)):
            if name not in ruled_out:
                _call(fitted, name, given)
    except ValueError as error:  # too few series or points for the parameters
        return error
    return None


def _variants(model: Any) -> Iterator[Any]:
    """A model, and the same with options for which other kernels compute."""
    yield model
    options = _OPTIONS.get(type(model).__name__)
    if options is not None:
        yield clone(model).set_params(**options)


def _data(model: Any, scale: int) -> Iterator[dict[str, Any]]:
    """Small data for an estimator of sets of series, or of long ones, by names of parameters."""
    rng = np.random.default_rng(0)
    of_sets = get_tags(model).target_tags.required or is_clusterer(model)
    of_sets |= isinstance(model, neighbors.DTWNeighbors)
    n_radii = np.size(getattr(model, "radius", 0.0))
    for n_samples, n_timepoints in _SETS if of_sets else _LONG:
        n_samples, n_timepoints = scale * n_samples, scale * n_timepoints
        n_samples = n_samples if n_radii == 1 else n_radii
        X = rng.standard_normal((n_samples, n_timepoints)).cumsum(axis=1)
        y = np.arange(n_samples) % 2
        X[y == 1, 4:16] += 9 * np.hanning(12)  # else a tree of random series has many nodes
        yield {"X": X, "y": y, "Q": X[:1, 5:21].copy(), "points": X[0, :9].copy(), "radius": 2.0}


def _methods(kind: type) -> list[str]:
    """Public methods that the package defines, beside `fit`."""
    return [
        name
        for name, method in inspect.getmembers(kind, callable)
        if name[0] != "_" and name != "fit" and _home(method) == _home(warm_up)
    ]


def _home(thing: Any) -> str:
    return str(getattr(thing, "__module__", "")).partition(".")[0]


def _call(model: Any, name: str, given: dict[str, Any]) -> Any:
    method = getattr(model, name)
    known = inspect.signature(method).parameters
    return method(**{name: value for name, value in given.items() if name in known})
