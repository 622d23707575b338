"""Counts of what was reached: cases, pairs of options, engine methods, kernels."""

from __future__ import annotations

import importlib
import itertools
import pickle
import pkgutil
import sys
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from skts.engines import Engine, Reduction

from . import compilers, machine
from .draw import domains
from .instances import reason_of

__all__ = ["Coverage", "compile_kernels", "watch_engines"]

#: First cases of a function, in which most of its loops are compiled.
COMPILING = 30
#: Cases of a function from which on pairs of options that are left are listed, and how many.
MANY, SHOWN = 5000, 20

_methods: Counter[str] = Counter()
_kernels: set[str] = set()


def watch_engines(engine: str) -> None:
    """Note from now on which methods of engines are called, and which CUDA kernels are loaded."""
    plain = Engine.compute

    def compute(self: Engine, reduction: Reduction, tile: Any, cancel: Any) -> Any:
        _methods[f"{self.name}.{reduction.method}"] += 1
        return plain(self, reduction, tile, cancel)

    Engine.compute = compute
    if engine != "cupy":
        return
    for module in _modules("skts.engines.cupy"):
        load = getattr(module, "load_kernel", None)
        if load is not None:

            def noted(file: str, name: str, *more: Any, _load: Any = load) -> Any:
                _kernels.add(f"{file} {name}")
                return _load(file, name, *more)

            module.load_kernel = noted
    _watch_lengths()


def _watch_lengths() -> None:
    """Count groups of lengths that were searched together, and those that were given up."""
    tiles = importlib.import_module("skts.engines.cupy.profile.length_tiles")
    plain = tiles.profiles_of_lengths

    def profiles_of_lengths(group: Any, *more: Any) -> Any:
        found, each = plain(group, *more)
        type = "float32" if group.dtype.__name__ == "float32" else "float64"
        how = f"found in {type}" if found is not None else "left"
        machine.reached[f"group of lengths {how}"] += 1
        return found, each

    tiles.profiles_of_lengths = profiles_of_lengths


def _modules(package: str) -> Iterator[Any]:
    """All modules of a package."""
    path = importlib.import_module(package).__path__
    for info in pkgutil.walk_packages(path, f"{package}."):
        yield importlib.import_module(info.name)


def compile_kernels(place: int, count: int) -> None:
    """Compile each `count`-th CUDA kernel: CuPy keeps them on disk, where other workers find them.

    Where every worker compiled what it comes upon, all would compile the same at the same time.
    """
    from skts.engines.cupy.programs import all_kernels

    load = next(m.load_kernel for m in _modules("skts.engines.cupy") if hasattr(m, "load_kernel"))
    every = []
    for file, names in all_kernels().items():
        # plain functions of a file are one program
        plain = [name for name in names if "<" not in name][:1]
        every += [(file, name) for name in (*plain, *(name for name in names if "<" in name))]
    for file, name in every[place::count]:
        load(file, name)


def _numba_kernels() -> dict[str, bool]:
    """Compiled loops that Python calls, and whether each was called."""
    from numba.core.registry import CPUDispatcher

    found = {}
    for module in _modules("skts.engines.numba"):
        for name, value in vars(module).items():
            if isinstance(value, CPUDispatcher) and value.py_func.__module__ == module.__name__:
                found[f"{module.__name__.rpartition('.')[2]}.{name}"] = value
    inner = {name for each in found.values() for name in each.py_func.__code__.co_names}
    return {
        name: bool(each.signatures)
        for name, each in found.items()
        if each.signatures or name.rpartition(".")[2] not in inner
    }


@dataclass
class Coverage:
    """Counts of a run; those of several workers add up."""

    cases: Counter[str] = field(default_factory=Counter)
    seconds: Counter[str] = field(default_factory=Counter)
    warm: Counter[str] = field(default_factory=Counter)
    warm_seconds: Counter[str] = field(default_factory=Counter)
    pairs: dict[str, set] = field(default_factory=dict)
    domains: dict[str, dict[str, dict[str, None]]] = field(default_factory=dict)
    methods: Counter[str] = field(default_factory=Counter)
    kernels: set[str] = field(default_factory=set)
    loops: dict[str, bool] = field(default_factory=dict)
    ways: Counter[str] = field(default_factory=Counter)
    computed: Counter[tuple[str, str]] = field(default_factory=Counter)
    compiling: Counter[str] = field(default_factory=Counter)

    def note(self, name: str, labels: dict[str, str], seconds: float) -> None:
        """Add a case; those that compile do not count for the speed."""
        self.cases[name] += 1
        self.seconds[name] += seconds
        if self.cases[name] > COMPILING:
            self.warm[name] += 1
            self.warm_seconds[name] += seconds
        pairs = itertools.combinations(sorted(labels.items()), 2)
        self.pairs.setdefault(name, set()).update(pairs)

    def save(self, path: Path) -> None:
        """Write it, with what the engines have done, in one piece."""
        self.domains, self.methods, self.kernels = domains, _methods, _kernels
        self.loops, self.ways = _numba_kernels(), machine.reached
        self.computed, self.compiling = machine.computed, compilers.spent
        scratch = path.with_suffix(".new")
        scratch.write_bytes(pickle.dumps(self))
        scratch.replace(path)

    def add(self, other: Coverage) -> None:
        """Add that of another worker."""
        counters = "cases", "seconds", "warm", "warm_seconds", "methods", "ways", "computed"
        for name in (*counters, "compiling"):
            getattr(self, name).update(getattr(other, name))
        for name, pairs in other.pairs.items():
            self.pairs.setdefault(name, set()).update(pairs)
        for name, options in other.domains.items():
            for option, values in options.items():
                self.domains.setdefault(name, {}).setdefault(option, {}).update(values)
        self.kernels |= other.kernels
        for name, called in other.loops.items():
            self.loops[name] = self.loops.get(name, False) or called

    def lines(self, engine: str, *, unreached: bool = True) -> Iterator[str]:
        """The report."""
        total, seconds = sum(self.cases.values()), sum(self.seconds.values())
        yield (
            f"{total:,} cases in {seconds:,.0f} s of workers, "
            f"{total / max(seconds, 1e-9):,.0f} a second and worker"
        )
        waiting = self.compiling[compilers.WAITING]
        for name, value in sorted(self.compiling.items()):
            if name != compilers.WAITING:
                yield f"{value:,.0f} s of them for kernels of {name}: to compile, wait for, or load"
        if waiting:
            yield f"{waiting:,.0f} s of these waiting for another worker"
        left: list[str] = []
        engines = sorted({engine for _, engine in self.computed})
        width = max(10, *map(len, engines)) if engines else 10
        yield (
            f"  {'':38}" + "".join(f" {one:>{width}}" for one in engines) + "  cases on each engine"
        )
        for name in sorted(self.cases):
            rate = self.warm[name] / max(self.warm_seconds[name], 1e-9)
            missing, possible = self._missing(name)
            share = f"{possible - len(missing):,} of {possible:,} pairs of options"
            counts = "".join(f" {self.computed[name, one]:{width},}" for one in engines)
            yield f"  {name:38}{counts} {rate:7,.0f}/s  {share}"
            if self.cases[name] >= MANY:
                left += [f"  {name}: {one}" for one in missing[:SHOWN]]
                left += [f"  {name}: and {len(missing) - SHOWN} more"] * (len(missing) > SHOWN)
        for way, count in sorted(self.ways.items()):
            yield f"  {way:38} {count:9,}"
        known = {each.method for each in _reductions() if hasattr(each, "method")}
        called = {name.partition(".")[2] for name in self.methods if name.startswith(f"{engine}.")}
        yield f"methods of {engine}: {len(called & known)} of {len(known)} reached"
        left += [f"  method {name}" for name in sorted(known - called)]
        reached = [name for name, called in self.loops.items() if called]
        yield f"compiled loops that Python calls: {len(reached)} of {len(self.loops)} reached"
        left += [f"  loop {name}" for name in sorted(set(self.loops) - set(reached))]
        if engine == "cupy":
            from skts.engines.cupy.programs import all_kernels

            every = {f"{file} {name}" for file, names in all_kernels().items() for name in names}
            missing = sorted(every - self.kernels)
            known = sum(bool(reason_of(name)) for name in missing)
            yield (
                f"kernel instances: {len(self.kernels & every)} of {len(every)} reached, "
                f"{known} of the others have a reason"
            )
            left += [f"  kernel {name}  {reason_of(name)}".rstrip() for name in missing]
            left += [f"  not in the compile check: {name}" for name in sorted(self.kernels - every)]
        if left and unreached:
            yield "not reached:"
            yield from left

    def _missing(self, name: str) -> tuple[list[str], int]:
        """Pairs of values of options that no case had, and how many pairs there are."""
        options = self.domains.get(name, {})
        missing, possible = [], 0
        for one, other in itertools.combinations(sorted(options), 2):
            for pair in itertools.product(options[one], options[other]):
                possible += 1
                key = (one, pair[0]), (other, pair[1])
                if key not in self.pairs.get(name, ()):
                    missing.append(f"{one}={pair[0]} with {other}={pair[1]}")
        return missing, possible


def _reductions() -> Iterator[type[Reduction]]:
    waiting = [Reduction]
    while waiting:
        for each in waiting.pop().__subclasses__():
            waiting.append(each)
            if each.__module__ in sys.modules and each.__module__.startswith("skts."):
                yield each
