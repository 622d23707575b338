"""Run a case in every way that must not matter, and compare all outcomes."""

from __future__ import annotations

import contextlib
import functools
import importlib
import importlib.util
import inspect
import io
import math
import pkgutil
import traceback
import warnings
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any
from unittest import mock

import joblib
import numpy as np
from sklearn.base import BaseEstimator
from sklearn.exceptions import ConvergenceWarning

import skts
from skts.engines import find_engine, replace_kernels
from skts.engines.core import execution, executor
from skts.exceptions import MemoryBudgetError
from tests.clusters import two_workers

from .case import UNSEEDED, Case, Sample
from .compare import Failure, check, same
from .draw import Draw
from .edges import SMALL, small_blocks
from .instances import other_instances
from .recipe import (
    EXEMPT,
    EXEMPT_METHODS,
    EXEMPT_PARTS,
    RECIPES,
    How,
    Recipe,
    parameters_of,
)
from .schedule import pick_recipe

__all__ = ["draw_case", "examine", "find_failure", "pick_recipe", "public_callables"]

#: Elementary steps of a tile that make many tiles of little work.
TILE_WORK = (1, 2**8, 2**12, 2**16)
#: Many tiles are for lines of up to so many points: longer ones make tens of thousands, and where
#: workers share a GPU, the waits for it add up to a minute.
LONG = 600
#: Memory budgets; the first ones are mostly too small for the least part of the work.
MEMORY, SCARCE = tuple(2**power for power in range(13, 25)), 5
#: Settings that are drawn only for what takes an engine; those that mean something on a GPU alone.
SECOND = ("verbose", "devices", "verify", "single", "blocks", "instances")
ON_A_GPU = {"devices", "single", "instances", "again"}
#: Second runs of a case that fits many instances of kernels, each with others.
AGAIN = 16
#: One second run in so many is sent to other processes, which takes seconds.
SENT = 2000

#: Parameters of methods that are data of the case.
DATA = {"X", "Q", "y", "points", "fit_params", "input_features", "transform"}

#: Ways in which cases were judged.
reached: Counter[str] = Counter()
#: Cases that were computed, by function and engine.
computed: Counter[tuple[str, str]] = Counter()


# -- what there is


def public_callables() -> dict[str, Any]:
    """Every public function and class of the package, by its shortest public name."""
    found: dict[str, Any] = {}
    modules = [skts]
    for info in pkgutil.walk_packages(skts.__path__, "skts."):
        inner = info.name.split(".")[1:]
        if inner[0] != "engines" and not any(part.startswith("_") for part in inner):
            modules.append(importlib.import_module(info.name))
    for module in sorted(modules, key=lambda module: module.__name__.count(".")):
        if any(module.__name__.startswith(part) for part in EXEMPT_PARTS):
            continue
        for name in getattr(module, "__all__", ()):
            value = getattr(module, name)
            record = inspect.isclass(value) and issubclass(value, tuple)
            if callable(value) and not record and value not in found.values():
                found[f"{module.__name__}.{name}"] = value
    return found


def missing_recipes() -> list[str]:
    """Public callables that nobody fuzzes, and recipes of what is gone."""
    names = set(public_callables())
    return sorted(names ^ (set(RECIPES) | set(EXEMPT) & names) | set(EXEMPT) - names)


def missing_methods() -> list[str]:
    """Public methods of estimators that no recipe calls."""
    found = []
    for name, value in public_callables().items():
        if inspect.isclass(value) and issubclass(value, BaseEstimator) and name in RECIPES:
            methods = {
                method
                for method, _ in inspect.getmembers(value, callable)
                if not method.startswith("_")
            }
            called = set(RECIPES[name].methods) | set(EXEMPT_METHODS)
            found += [f"{name}.{method}" for method in sorted(methods - called)]
            found += [f"{name}.{method}" for method in sorted(set(RECIPES[name].methods) - methods)]
    return found


def parameters(recipe: Recipe) -> Iterator[str]:
    """Names of everything that can be handed to a callable, methods of estimators included."""
    target = recipe.target
    machine = {"engine", "n_jobs", "verbose", "self"}
    machine |= set(recipe.handed)
    for name, each in inspect.signature(target).parameters.items():
        # a former name of a parameter means that parameter
        if name not in machine and repr(each.default) != "'deprecated'":
            yield name
    for method in recipe.methods:
        function = getattr(target, method)
        for name, each in inspect.signature(function).parameters.items():
            if name in DATA or f"{method}.{name}" in recipe.handed:
                continue
            if name not in machine and each.kind not in (each.VAR_KEYWORD, each.VAR_POSITIONAL):
                yield f"{method}.{name}"


# -- drawing


def draw_case(seed: int, number: int, name: str | None = None) -> tuple[Case, dict[str, str]]:
    """Make a case; return it and the discrete choices in it."""
    name = name or pick_recipe(seed, number)
    d = Draw(seed, number, name)
    case = RECIPES[name].draw(d)
    setting: dict[str, Any] = {}
    if d.pick("second run", (False, True), (3, 1)):
        known = parameters_of(RECIPES[name].target)
        for option, values, weights in (
            ("tile_work", (None, *TILE_WORK), (2, 0.3, *[1] * (len(TILE_WORK) - 1))),
            ("memory", (None, *MEMORY), (6, *[0.3] * SCARCE, *[1] * (len(MEMORY) - SCARCE))),
            ("n_jobs", (None, 1, 2, 3, -1) if "n_jobs" in known else (None,), ()),
            ("inline", (True, False), (3, 1)),
            ("kernels", (True, False), (2, 1)),
            ("verbose", (0, 1, 2) if "verbose" in known else (0,), ()),
            ("devices", (None, [0, 1], [1, 0]) if "engine" in known else (None,), ()),
            ("verify", (None, True) if "engine" in known else (None,), ()),
            ("single", (None, True) if "engine" in known else (None,), ()),
            ("together", (None, "few", "all") if "windows" in known else (None,), ()),
            ("blocks", (None, *SMALL) if "engine" in known else (None,), ()),
            ("instances", (None, True) if "engine" in known else (None,), ()),
            ("strict", (None, True), (3, 1)),
        ):
            if option in SECOND and len(values) > 1:
                # plain code that checks takes as long as some twenty cases
                seldom = option in ("verbose", "devices", "verify")
                weights = (20 if seldom else 1 if option == "instances" else 3,)
                weights = (*weights, *[1] * (len(values) - 1))
            value = d.pick(option, values, weights)
            if value not in (None, 0) or value is False:
                setting[option] = value
        if "n_jobs" in known and d.rng.integers(SENT) == 0:
            setting["backend"] = d.pick("backend", ("loky", "dask"), (1, 4))
    if d.labels.get("grouped") == "True":
        setting["together"] = d.pick("together", ("few", "all"), (1, 3))
    fits_many = d.labels.get("long") == "True"
    if "instances" in setting or fits_many:
        setting["instances"] = d.whole(1, 2**31)
    if _longest(case) > LONG:
        setting.pop("tile_work", None)
    if fits_many:
        setting["again"] = AGAIN
        # plain code takes a minute for a pair of such series
        setting.pop("verify", None)
    return replace(case, setting=setting), d.labels


def _longest(case: Case) -> float:
    """Points of the longest series of a case; of one with as many pairs, where it has many windows.

    Pairs, and so the tiles of a profile, grow with the square of the points.
    """
    samples = (one for one in case.data.values() if isinstance(one, Sample))
    longest = max((x.shape[-1] for one in samples for x in one.series), default=0)
    lengths = case.options.get("windows") if "window" not in case.options else None
    return longest * math.sqrt(len(set(lengths or (1,))))


# -- running


@contextlib.contextmanager
def applied(setting: dict[str, Any], engine: str) -> Iterator[None]:
    """Run with a setting that must not change anything."""
    with contextlib.ExitStack() as stack:
        if setting.get("devices") and engine == "cupy" and device_count() > 1:
            stack.enter_context(skts.config_context(devices=setting["devices"]))
            # however little the work is worth
            module = importlib.import_module("skts.engines.cupy")
            stack.enter_context(mock.patch.object(module, "WORTH_A_DEVICE", {}))
            stack.enter_context(mock.patch.object(module, "WORTH_OTHERWISE", 1))
            reached["several devices"] += 1
        if setting.get("verify"):
            stack.enter_context(skts.config_context(verify=True))
            reached["checks by plain code"] += 1
        if setting.get("strict"):
            # as users have it who look for errors of their own
            stack.enter_context(np.errstate(all="raise"))
            reached["errors of floats raised"] += 1
        if setting.get("memory"):
            stack.enter_context(skts.config_context(memory=setting["memory"]))
        if setting.get("tile_work"):
            one = find_engine(engine)
            stack.enter_context(mock.patch.object(one, "tile_work", setting["tile_work"]))
            stack.enter_context(mock.patch.object(one, "row_scale", 1))
        if setting.get("single") and engine == "cupy":
            # joins in float32, however few their pairs, and however much that leaves to measure
            programs = importlib.import_module("skts.engines.cupy.profile.programs")
            precision = importlib.import_module("skts.engines.cupy.profile.precision")
            stack.enter_context(mock.patch.object(programs, "PAIRS_TO_ESTIMATE", 0))
            stack.enter_context(mock.patch.object(precision, "MOST_LISTED", math.inf))
            reached["joins in float32"] += 1
        if setting.get("together") and engine == "cupy":
            # lengths of short series, too
            groups = importlib.import_module("skts.engines.cupy.profile.length_groups")
            transfers = importlib.import_module("skts.engines.cupy.transfers")
            stack.enter_context(mock.patch.object(groups, "LEAST_WINDOWS", 1))
            stack.enter_context(mock.patch.object(groups, "SHARE", 1.0))
            stack.enter_context(mock.patch.object(transfers, "SMALL", -1))
            if setting["together"] == "all":
                # however many pairs are in question: of few windows that is a large share
                lengths = importlib.import_module("skts.engines.cupy.profile.lengths")
                stack.enter_context(mock.patch.object(lengths, "RUNS_PER_WINDOW", 300))
                stack.enter_context(mock.patch.object(lengths, "MOST_PAIRS", 600))
            reached["lengths together"] += 1
        if setting.get("blocks"):
            stack.enter_context(small_blocks(setting["blocks"]))
            reached["small blocks"] += 1
        if setting.get("instances") and engine == "cupy":
            stack.enter_context(other_instances(setting["instances"]))
            reached["other instances"] += 1
        if setting.get("kernels") is False:
            stack.enter_context(replace_kernels(always=True))
            reached["NumPy in place of kernels"] += 1
        if setting.get("inline") is False:
            stack.enter_context(mock.patch.object(execution, "INLINE_WORK", -1))
        if setting.get("backend"):
            stack.enter_context(mock.patch.object(executor, "WORTH_SENDING", 0))
            stack.enter_context(_elsewhere(setting["backend"]))
        if setting.get("verbose"):
            stack.enter_context(contextlib.redirect_stdout(io.StringIO()))
            stack.enter_context(contextlib.redirect_stderr(io.StringIO()))
        yield


@contextlib.contextmanager
def _elsewhere(backend: str) -> Iterator[None]:
    """Two workers of a back end, which end with the block: idle ones hold memory of the device."""
    if backend == "loky":
        with joblib.parallel_config("loky", n_jobs=2):
            yield
        joblib.externals.loky.get_reusable_executor().shutdown(wait=True)
    elif importlib.util.find_spec("distributed"):
        with two_workers(processes=False), joblib.parallel_config("dask"):
            yield
    else:
        yield
        return
    reached[f"back end {backend}"] += 1


@functools.cache
def device_count() -> int:
    """Devices that this process sees."""
    return importlib.import_module("cupy").cuda.runtime.getDeviceCount()


def _call(case: Case, engine: str, **more: Any) -> dict[str, np.ndarray]:
    """Call the package; what it should not raise or warn of is a failure."""
    recipe = RECIPES[case.name]
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        warnings.simplefilter("ignore", ConvergenceWarning)
        warnings.simplefilter("ignore", UserWarning)
        try:
            return recipe.call(case, How(engine, **more))
        except MemoryBudgetError:
            raise
        except (Failure, KeyboardInterrupt):
            raise
        except ValueError as error:
            if recipe.refuses(case):
                return {"refused": np.array(True)}
            raise _surprise(error) from error
        except Exception as error:
            raise _surprise(error) from error


def _surprise(error: Exception) -> Failure:
    frames = [
        frame for frame in traceback.extract_tb(error.__traceback__) if "/skts/" in frame.filename
    ]
    place = f" in {Path(frames[-1].filename).name}:{frames[-1].name}" if frames else ""
    return Failure(f"{type(error).__name__}{place}", str(error)[:300])


def examine(
    case: Case, engine: str = "numba", against: str | None = None, *, judged: bool = True
) -> None:
    """Run a case on an engine in all ways; raise `Failure` for whatever is wrong.

    Parameters
    ----------
    case : Case
        The case.
    engine : str, default "numba"
        The engine.
    against : str or None, default None
        Another engine, whose bits must be the same.
    judged : bool, default True
        Whether the oracle judges also what two engines agree on.
    """
    recipe = RECIPES[case.name]
    on_host = "engine" not in parameters_of(recipe.target) and case.name != "skts.tree.export_text"
    if on_host:
        against = None
    found = _call(case, engine)
    refused = recipe.refuses(case)
    check(("refused" in found) == refused, "not refused", str(case.options))
    computed[case.name, "host" if on_host else engine] += 1
    if refused:
        return
    for kind in case.types.values():
        if kind in ("RandomState", UNSEEDED):
            reached[f"random_state: {kind}"] += 1
    # without the certificate every engine has roundings of its own
    alone = case.options.get("precision") == "float32" or not recipe.repeats(case)
    if judged or alone or not against:
        recipe.check(case, found)
        reached["oracle"] += 1
    if against:
        other = _call(case, against)
        if alone:
            recipe.check(case, other)
        else:
            recipe.agree(f"{engine} and {against}", found, other)
            reached["engine against engine"] += 1
        computed[case.name, against] += 1
    setting = {k: v for k, v in case.setting.items() if engine == "cupy" or k not in ON_A_GPU}
    # what is long is rare, and fits many instances
    for step in range(setting.get("again", 1) if setting else 0):
        if step:
            setting = {"instances": case.setting["instances"] + step}
        more = {name: setting[name] for name in ("n_jobs", "verbose") if name in setting}
        with applied(setting, engine):
            try:
                again = _call(case, engine, **more)
            except MemoryBudgetError:
                reached["no room in the budget"] += 1
                continue
        if recipe.keeps_bits(case, engine) and recipe.repeats(case):
            # transforms of another length have roundings of their own
            alike = recipe.agree if "instances" in setting else same
            alike("another setting", again, found)
        else:
            # not under the setting: what judges may need more memory
            recipe.check(case, again)
        reached["another setting"] += 1
    # forms of the data are the matter of the host alone: runs on the CPU try them
    known = recipe.settles(case) and recipe.repeats(case)
    if case.relation and known and not (against and case.relation == "forms"):
        recipe.relate(case, found, lambda one: _call(one, engine))
        reached[f"relation {case.relation.partition(':')[0]}"] += 1


def find_failure(
    case: Case, engine: str = "numba", against: str | None = None, *, judged: bool = True
) -> Failure | None:
    """The failure of a case, None where all is well."""
    try:
        examine(case, engine, against, judged=judged)
    except Failure as failure:
        return failure
    except MemoryBudgetError as error:
        return Failure("MemoryBudgetError", str(error))
    except Exception as error:  # of the oracle, or of the comparison
        where = traceback.extract_tb(error.__traceback__)[-1]
        return Failure(
            f"fuzzer: {type(error).__name__} in {Path(where.filename).name}:{where.lineno}",
            str(error),
        )
    return None


Examiner = Callable[[Case], Failure | None]
