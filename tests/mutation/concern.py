"""Which tests concern which function: each test file runs once, and what it calls is written down.

There are two tables. With ``interpreted`` Numba's functions run as plain Python: a change needs no
compilation, and calls inside of kernels are seen; tests that take longer than `LONGEST` then, or
need compiled code, are left to the other table, in which kernels are compiled.
"""

from __future__ import annotations

import ast
import hashlib
import json
import signal
import sys
import threading
import time
from functools import cache
from pathlib import Path
from typing import Any

import pytest

from .sandbox import Sandbox

__all__ = ["MODES", "build_table", "concerned", "importers"]

KERNELS = "skts/engines/cupy"
MODES = ("interpreted", "compiled", "emulated")
#: Seconds of processor time that a test may take to be of use.
LONGEST = {"interpreted": 6, "compiled": 60, "emulated": 60}
#: Seconds that all tests of one mutant may take together, as measured without it.
BUDGET = {"interpreted": 25.0, "compiled": 90.0, "emulated": 90.0}
#: Tests of behaviour in time, which fail on a busy machine and say nothing about a mutant then.
SHAKY = ("interrupt", "ctrl", "within_a_second", "kernel_cache", "peak", "loky", "dask")


class Recorder:
    """A plugin of pytest that writes down what each test calls, and how long it takes."""

    def __init__(self, root: Path, longest: float) -> None:
        self.prefix = str(root) + "/"
        self.longest = longest
        self.table: dict[str, dict[str, Any]] = {}
        self.called: set[tuple[str, str]] = set()

    def _trace(self, frame: Any, event: str, arg: Any) -> None:
        code = frame.f_code
        if code.co_filename.startswith(self.prefix):
            self.called.add((code.co_filename, code.co_qualname))
            if code.co_name == "load_kernel":
                file, name = frame.f_locals["file"], frame.f_locals["name"]
                self.called.add((f"{self.prefix}{KERNELS}/{file}", name.partition("<")[0]))

    @pytest.hookimpl(wrapper=True)
    def pytest_runtest_protocol(self, item: pytest.Item) -> Any:
        self.called = set()
        self.passed = False
        loading = sys.modules.get("skts.engines.cupy.loading")
        if loading is not None:  # kernels that are there already would not be asked for
            loading.load_kernel.cache_clear()
        begin = time.process_time()
        signal.signal(signal.SIGVTALRM, _too_long)
        signal.setitimer(signal.ITIMER_VIRTUAL, self.longest)
        sys.settrace(self._trace)
        threading.settrace(self._trace)
        try:
            return (yield)
        finally:
            signal.setitimer(signal.ITIMER_VIRTUAL, 0)
            sys.settrace(None)
            threading.settrace(None)
            functions = sorted(
                {
                    f"{name.removeprefix(self.prefix)}:{plain_name(function)}"
                    for name, function in self.called
                    if "/skts/engines/" in name
                }
            )
            if self.passed:
                seconds = round(time.process_time() - begin, 3)
                self.table[item.nodeid] = {"seconds": seconds, "functions": functions}

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        if report.when == "call":
            self.passed = report.passed
        elif report.failed:
            self.passed = False


def plain_name(qualified: str) -> str:
    """Return the name of a function without marks of what is inside of functions."""
    parts = [p for p in qualified.split(".") if not p.startswith("<")]
    return ".".join(parts)


def build_table(sandbox: Sandbox, files: list[str], mode: str, path: Path) -> dict[str, Any]:
    """Return, by test, its seconds and the functions that it calls; run files that are new."""
    stored = json.loads(path.read_text()) if path.exists() else {}
    table: dict[str, Any] = {}
    for file in files:
        digest = hashlib.sha256((sandbox.base / file).read_bytes()).hexdigest()[:16]
        entry = stored.get(file)
        if entry is None or entry["digest"] != digest:
            begin = time.perf_counter()
            options = ["-k", "cupy", file] if mode == "emulated" else [file]
            tests = sandbox.call(_record, sandbox.base, mode, LONGEST[mode], options, limit=1500)
            tests = tests or {}
            entry = {"digest": digest, "tests": tests}
            stored[file] = entry
            path.write_text(json.dumps(stored, indent=1))
            seconds = time.perf_counter() - begin
            print(f"  {mode}: {file}: {len(tests)} tests, {seconds:.0f} s", flush=True)
        table |= entry["tests"]
    return table


def _too_long(number: int, frame: Any) -> None:
    pytest.fail("takes too long to be of use here")


def _record(root: Path, longest: float, options: list[str]) -> dict[str, Any]:
    recorder = Recorder(root, longest)
    pytest.main(["-q", "-p", "no:cacheprovider", "--timeout=0", *options], plugins=[recorder])
    return recorder.table


@cache
def _users(root: Path) -> dict[str, set[str]]:
    """Return, by module, the modules under ``skts/engines`` that import it."""
    users: dict[str, set[str]] = {}
    for file in (root / "skts/engines").rglob("*.py"):
        name = file.relative_to(root).as_posix()
        for node in ast.walk(ast.parse(file.read_text())):
            if isinstance(node, ast.ImportFrom) and node.level:
                folder = file.parents[node.level - 1].relative_to(root)
                folder = folder / (node.module or "").replace(".", "/")
                for used in (folder, *(folder / alias.name for alias in node.names)):
                    users.setdefault(f"{used.as_posix()}.py", set()).add(name)
    return users


def importers(root: Path, module: str, direct: bool = False) -> set[str]:
    """Return the modules under ``skts/engines`` that import a module, or import such."""
    users = _users(root)
    found, waiting = set(), [module]
    while waiting:
        for user in users.get(waiting.pop(), set()) - found:
            found.add(user)
            if not direct:
                waiting.append(user)
    return found


def includers(root: Path, module: str) -> set[str]:
    """Return the CUDA sources that include one, or include such."""
    sources = {f: f.read_text() for f in (root / KERNELS).rglob("*.cu*")}
    found, waiting = set(), [module.removeprefix(f"{KERNELS}/")]
    while waiting:
        line = f'#include "{waiting.pop()}"'
        for file, source in sources.items():
            short = file.relative_to(root / KERNELS).as_posix()
            name = f"{KERNELS}/{short}"
            if line in source and name not in found:
                found.add(name)
                waiting.append(short)
    return found


def concerned(
    table: dict[str, Any], root: Path, module: str, function: str, mode: str
) -> list[tuple[str, float]]:
    """Return the tests that concern a function of a module, fastest first, and their seconds.

    Where no test of the table calls the function itself (it is compiled, or at the level of the
    module), those count that call any function of the module or, for kernels, of its importers.
    """
    exact = f"{module}:{function}"
    nearby = {module}
    if mode != "interpreted" and "/numba/" in module:
        nearby |= importers(root, module, direct=True)
    if module.endswith((".cu", ".cuh")):
        nearby |= includers(root, module)
    chosen = {
        name: entry for name, entry in table.items() if function and exact in entry["functions"]
    }
    if mode != "interpreted" or not function:
        prefixes = tuple(f"{name}:" for name in nearby)
        for name, entry in table.items():
            if any(called.startswith(prefixes) for called in entry["functions"]):
                chosen.setdefault(name, entry)
    tests, total = [], 0.0
    for name, entry in sorted(chosen.items(), key=lambda item: item[1]["seconds"]):
        if any(word in name.lower() for word in SHAKY):
            continue
        total += entry["seconds"]
        if total > BUDGET[mode]:
            break
        tests.append((name, entry["seconds"]))
    return tests
