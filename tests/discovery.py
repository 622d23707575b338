"""All that makes promises, found by walking the package: tests list nothing by hand.

A kind is an estimator, a function, a display, a reduction or a method of an engine. Each has an
example in a file of its own, from which the tests of all of a kind start; one without an example
fails with the sentence of `Examples`.
"""

from __future__ import annotations

import importlib
import inspect
import pkgutil
from collections.abc import Callable
from functools import cache
from typing import Any

from sklearn.base import BaseEstimator

import skts
from skts.engines import Engine, Reduction, engine_names, find_engine

__all__ = ["Examples", "displays", "engine_methods", "estimators", "functions", "reductions"]


class Examples(dict):
    """Examples of all of a kind; says where to add one that is missing."""

    def __init__(self, examples: dict[Any, Any], where: str) -> None:
        super().__init__(examples)
        self.where = where

    def __missing__(self, kind: Any) -> Any:
        name = getattr(kind, "__name__", kind)
        raise LookupError(f"{name} has no example for the tests: add one in {self.where}.")


@cache
def modules(*, engines: bool) -> tuple[Any, ...]:
    """The modules of the package that load no kernels: those for users, or those below engines."""
    names = [found.name for found in pkgutil.walk_packages(skts.__path__, "skts.")]
    return tuple(
        importlib.import_module(name)
        for name in names
        if ("engines" in name.split(".")) == engines and not {"numba", "cupy"} & {*name.split(".")}
    )


def classes(*, engines: bool = False) -> list[type]:
    """Public classes that a module of the package defines, by name."""
    found = {
        one
        for module in modules(engines=engines)
        for name, one in vars(module).items()
        if inspect.isclass(one) and one.__module__ == module.__name__ and name[0] != "_"
    }
    return sorted(found, key=lambda one: one.__name__)


def estimators() -> list[type]:
    """Every estimator of the package."""
    return [
        one
        for one in classes()
        if issubclass(one, BaseEstimator) and hasattr(one, "fit") and not inspect.isabstract(one)
    ]


def displays() -> list[type]:
    """Every class that draws itself."""
    return [one for one in classes() if inspect.isfunction(getattr(one, "plot", None))]


def reductions() -> list[type[Reduction]]:
    """Every reduction of the package that can be run."""
    return [
        one
        for one in classes(engines=True)
        if issubclass(one, Reduction) and not inspect.isabstract(one)
    ]


def functions() -> list[Callable[..., Any]]:
    """Every public function of a package in which one computes with an engine."""
    found = set()
    for module in modules(engines=False):
        names = getattr(module, "__all__", ()) if hasattr(module, "__path__") else ()
        some = {one for name in names if inspect.isfunction(one := getattr(module, name))}
        if any("engine" in inspect.signature(one).parameters for one in some):
            found |= some
    return sorted(found, key=lambda one: one.__name__)


def engine_methods() -> list[tuple[str, str]]:
    """Every method of a registered engine that computes tiles, behind the engine's name."""
    return [
        (engine, name)
        for engine in engine_names()
        for name, one in inspect.getmembers(type(find_engine(engine)), inspect.isfunction)
        if name[0] != "_"
        and not hasattr(Engine, name)
        and not inspect.isgeneratorfunction(one)  # its steps: see `Engine.compute_all`
        and list(inspect.signature(one).parameters) == ["self", "reduction", "tile", "cancel"]
    ]
