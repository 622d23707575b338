"""Which tests concern which function: each test runs once, and what it calls is written down.

There are three tables. With ``interpreted`` Numba's functions run as plain Python: a change needs
no compilation, and calls inside of kernels are seen; tests that take longer than `LONGEST` then, or
need compiled code, are left to the table ``compiled``. In ``emulated`` are those marked `gpu`, on
the emulator of one. A test that reads a CUDA source for a kernel of its own calls all of it.
"""

from __future__ import annotations

import ast
import hashlib
import importlib.util
import json
import re
import signal
import sys
import threading
import time
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

import pytest
from _pytest.runner import runtestprotocol

from .mutants import cuda_functions
from .sandbox import OutOfTime, Sandbox

__all__ = [
    "MODES",
    "Part",
    "Plugin",
    "Tables",
    "concerned",
    "holds_kernels",
    "importers",
    "kind_of",
]

MODES = ("interpreted", "compiled", "emulated")
#: Which tests run in a mode.
MARKS = {"interpreted": "not gpu and (not slow or cases)"}
MARKS["compiled"] = MARKS["interpreted"]
MARKS["emulated"] = "gpu and (not slow or cases)"
#: Seconds of processor time that a test may take to be of use.
LONGEST = {"interpreted": 2.5, "compiled": 10, "emulated": 15}
#: Seconds that all tests of one mutant may take together, as measured without it, and how many.
BUDGET = {"interpreted": 40.0, "compiled": 60.0, "emulated": 120.0}
MOST = {"interpreted": 500, "compiled": 600, "emulated": 400}
#: Cases of the fuzzer, which meet a mutant after the other tests, with seconds of their own. They
#: kill by what is wrong, never by the time that they take: each may compile kernels of its own.
FUZZED = "tests/fuzz/test_cases.py"
BUDGET_OF_CASES = {"interpreted": 15.0, "compiled": 15.0, "emulated": 30.0}
#: Seconds that g++ takes for a changed program of the emulator.
COMPILING = 0.8
#: Bytes of a file of tests that one process takes over.
PART = {"interpreted": 8000, "compiled": 12000, "emulated": 8000}
#: Processes that take over files whose tests are short to write and long to run.
PARTS_OF = {FUZZED: {"interpreted": 12, "compiled": 29, "emulated": 29}}
#: Works of every kind: what goes into each kernel and comes out of it is recorded.
COUNTED = "tests/engines/core/test_recorded_counts.py"
PARTS_OF[COUNTED] = {"interpreted": 1, "compiled": 21, "emulated": 12}
#: Cases of a function of tests that are run for a table: the others are taken to call the same.
CASES = 3
#: Files of which every case is run: each is of another function of the package.
EACH = (FUZZED, COUNTED, "tests/engines/core/test_recorded_plans.py")
EACH = (*EACH, "tests/engines/core/test_recorded_checks.py", "tests/engines/test_orders.py")
#: Tests that look at constants, which are read without a call.
OF_CONSTANTS = ("tests/engines/core/test_recorded_plans.py", COUNTED)
OF_CONSTANTS = (*OF_CONSTANTS, "tests/engines/test_claims.py")
#: What functions of the engines have in their file's name.
ENGINES = "skts/engines/"
#: Number of this tool among those that watch Python functions begin.
TOOL = 4
#: Tests of behaviour in time, which fail on a busy machine and say nothing about a mutant then.
SHAKY = ("interrupt", "ctrl", "within_a_second", "kernel_cache", "peak", "loky", "dask")
SHAKY = (*SHAKY, "time_limit")


def kind_of(module: str) -> str:
    """Return which part of the engines a source belongs to."""
    if module.endswith((".cu", ".cuh")):
        return "CUDA"
    return next((kind for kind in ("cupy", "numba") if kind in module), "host")


class Plugin:
    """Settings of every run of pytest here, whatever is installed."""

    def pytest_addoption(self, parser: pytest.Parser) -> None:
        if importlib.util.find_spec("pytest_timeout") is None:
            parser.addini("timeout", "an option of pytest-timeout, which is not installed")


class Recorder(Plugin):
    """A plugin of pytest that writes down what each test calls, and how long it takes.

    Parameters
    ----------
    root : Path
        The repository.
    part : Part
        How kernels run, and which tests: those of every `parts`-th function of those collected.
    so_far : Path
        File of what is known, in case that this process is ended.
    deadline : float
        Time of `time.monotonic` from which no test begins.
    """

    def __init__(self, root: Path, part: Part, so_far: Path, deadline: float) -> None:
        self.root, self.prefix = root, str(root) + "/"
        self.part, self.mode, self.so_far, self.deadline = part, part.mode, so_far, deadline
        self.cases: dict[str, list[str]] = {}
        self.too_long: set[str] = set()
        self.left = 0
        self.kernels = _cuda_sources(root)
        self.table: dict[str, dict[str, Any]] = {}
        self.called: set[tuple[str, str]] = set()
        self.programs: set[str] = set()

    def _note(self, code: Any, frame: Any) -> None:
        """Write down that a function begins, and which CUDA program it loads."""
        self.called.add((code.co_filename, code.co_qualname))
        if code.co_name == "load_kernel":
            file, name = frame.f_locals["file"], frame.f_locals["name"]
            module = next(m for m in self.kernels if m.endswith(f"/{file}"))
            self.called.add((self.prefix + module, name.partition("<")[0]))
            self.programs.add(f"{module}:{name if '<' in name else ''}")
        elif code.co_qualname == "source" and not self._is_of_the_package(frame.f_back):
            # a test that reads a source may call all of it, in a kernel of its own
            module = f"{ENGINES}cupy/{frame.f_locals['name']}"
            self.called |= {(self.prefix + m, f) for m, f in _functions_in(self.root, module)}
            self.programs.add(f"{module}:")

    def _is_of_the_package(self, frame: Any) -> bool:
        return frame.f_code.co_filename.startswith(self.prefix + ENGINES)

    def _trace(self, frame: Any, event: str, arg: Any) -> None:
        if frame.f_code.co_filename.startswith(self.prefix):
            self._note(frame.f_code, frame)

    def _starts(self, code: Any, offset: int) -> Any:
        if code.co_filename.startswith(self.prefix):
            self._note(code, sys._getframe(1))
        # each function is heard once, so that kernels are as fast as without
        return None if code.co_name in ("load_kernel", "source") else sys.monitoring.DISABLE

    @contextmanager
    def _watching(self) -> Iterator[None]:
        """Hear which functions begin, in all threads."""
        monitoring = getattr(sys, "monitoring", None)
        if monitoring is None:  # before Python 3.12
            sys.settrace(self._trace)
            threading.settrace(self._trace)
        else:
            monitoring.use_tool_id(TOOL, "tests.mutation")
            monitoring.register_callback(TOOL, monitoring.events.PY_START, self._starts)
            monitoring.set_events(TOOL, monitoring.events.PY_START)
            monitoring.restart_events()
        try:
            yield
        finally:
            if monitoring is None:
                sys.settrace(None)
                threading.settrace(None)
            else:
                monitoring.set_events(TOOL, 0)
                monitoring.free_tool_id(TOOL)

    @pytest.hookimpl(trylast=True)
    def pytest_collection_modifyitems(self, items: list[pytest.Item]) -> None:
        groups: dict[str, list[pytest.Item]] = {}
        for item in items:
            if not any(word in item.nodeid.lower() for word in SHAKY):
                groups.setdefault(group_of(item.nodeid), []).append(item)
        items[:] = []
        for name in list(groups)[self.part.part :: self.part.parts]:
            # the slow and simple engine tells the least; else any order that is always the same
            there = sorted(groups[name], key=lambda item: _any_order(item.nodeid))
            items += there[: None if name.startswith(EACH) else CASES]
            self.cases[name] = [item.nodeid for item in there]

    @pytest.hookimpl(tryfirst=True)
    def pytest_runtest_protocol(self, item: pytest.Item, nextitem: pytest.Item | None) -> bool:
        name = group_of(item.nodeid)
        if name in self.too_long:
            return True
        if time.monotonic() > self.deadline:
            self.left += 1
            return True
        signal.signal(signal.SIGVTALRM, _too_long)
        longest = LONGEST[self.mode]
        # what has to be compiled first is not counted
        passed, seconds = self._run(
            item, nextitem, longest * (10 if self.mode == "compiled" else 1)
        )
        if passed and self.mode == "compiled" and seconds > longest / 10:
            passed, seconds = self._run(item, nextitem, longest)
        if passed:
            called = {(name.removeprefix(self.prefix), f) for name, f in self.called}
            functions = {f"{name}:{plain_name(f)}" for name, f in called if ENGINES in name}
            self.table[item.nodeid] = {
                "seconds": round(seconds, 3),
                "functions": sorted(functions),
                "programs": sorted(self.programs),
            }
        elif seconds >= longest:
            self.too_long.add(name)
        partial = self.so_far.with_suffix(".part")
        partial.write_text(json.dumps({"tests": self.tests(), "left": 1}))
        partial.replace(self.so_far)
        return True

    def _run(
        self, item: pytest.Item, nextitem: pytest.Item | None, longest: float
    ) -> tuple[bool, float]:
        """Run a test; return whether it passed, and its seconds of processor time."""
        self.called, self.programs = set(), set()
        for name, loading in list(sys.modules.items()):
            # kernels that are there already would not be asked for
            if name.startswith("skts.engines") and hasattr(loading, "_loaded"):
                loading._loaded.clear()
        begin = time.process_time()
        signal.setitimer(signal.ITIMER_VIRTUAL, longest)
        try:
            with self._watching():
                reports = runtestprotocol(item, nextitem=nextitem, log=False)
        finally:
            signal.setitimer(signal.ITIMER_VIRTUAL, 0)
        passed = [report.passed for report in reports]
        return len(passed) == 3 and all(passed), time.process_time() - begin

    def tests(self) -> dict[str, dict[str, Any]]:
        """Return what was recorded; cases that did not run are like another of their function."""
        found = dict(self.table)
        for name, cases in self.cases.items():
            ran = [case for case in cases if case in self.table]
            if ran and not name.startswith(EACH):
                most = max(ran, key=lambda case: len(self.table[case]["functions"]))
                seconds = max(self.table[case]["seconds"] for case in ran)
                found |= {case: {"seconds": seconds, "like": most} for case in cases[CASES:]}
        return found


def group_of(name: str) -> str:
    """Return the function of tests that a case is of; of one of the fuzzer, also what it calls."""
    if name.startswith(FUZZED):
        return name.rpartition("-")[0]
    if name.startswith(EACH):
        return name
    return name.partition("[")[0]


def _any_order(name: str) -> tuple[bool, bytes]:
    """Order cases of a test by chance, always the same; the slow simple engine tells the least.

    Parts of the fuzzer's come in their order: what is longest comes last.
    """
    digest = name.encode() if name.startswith(FUZZED) else hashlib.sha256(name.encode()).digest()
    return "oracle" in name.partition("[")[2], digest


def plain_name(qualified: str) -> str:
    """Return the name of a function without marks of what is inside of functions."""
    parts = [p for p in qualified.split(".") if not p.startswith("<")]
    return ".".join(parts)


@dataclass(frozen=True)
class Part:
    """Tests of a file that one process takes over, in one mode."""

    mode: str
    file: str
    part: int
    parts: int
    digest: str

    def record(self, sandbox: Sandbox, deadline: float) -> dict[str, Any]:
        """Run them; return, by test, its seconds and what it calls, and how many had no time."""
        so_far = sandbox.own / "so_far.json"
        so_far.write_text(json.dumps({"tests": {}, "left": 1}))
        done = None
        with suppress(OutOfTime):
            done = sandbox.call(
                _record, sandbox.base, self.mode, self, so_far, deadline, limit=1500
            )
            if not done:
                log = (sandbox.own / "log.txt").read_text(errors="replace")[-2000:]
                print(f"{self}: the process died or took too long\n{log}", flush=True)
        done = done or json.loads(so_far.read_text())
        if self.mode == "compiled":
            for name in done["tests"]:
                if "like" not in done["tests"][name]:
                    sandbox.compiled(name).touch()
        return done


class Tables:
    """By mode and test: its seconds, the functions that it calls, and its CUDA programs.

    Parameters
    ----------
    root : Path
        The repository.
    files : list of str
        Files of tests.
    modes : list of str
        Tables to make.
    paths : list of Path
        Files of tables made before, for example on another machine: what is there of files that did
        not change is taken over. Of a file that changed it tells what its tests called, until it is
        known what they call now.
    """

    def __init__(self, root: Path, files: list[str], modes: list[str], paths: list[Path]) -> None:
        self.wanted = []
        contents = {file: (root / file).read_bytes() for file in files}
        # large files first, and of each what compiles for the others
        for file, data in sorted(contents.items(), key=lambda item: -len(item[1])):
            digest = hashlib.sha256(data).hexdigest()[:16]
            for mode in sorted(modes, key=("compiled", "emulated", "interpreted").index):
                parts = PARTS_OF.get(file, {}).get(mode, 1 + len(data) // PART[mode])
                self.wanted += [Part(mode, file, part, parts, digest) for part in range(parts)]
        self.tests: dict[Part, dict[str, Any]] = {}
        self.left: Counter[Part] = Counter()
        self.older: dict[str, dict[str, Any]] = {mode: {} for mode in modes}
        wanted = set(self.wanted)
        for path in paths:
            for line in path.read_text().splitlines() if path.exists() else []:
                entry = json.loads(line)
                part = Part(**entry["part"])
                if part in wanted:
                    self.tests[part], self.left[part] = entry["tests"], entry["left"]
                elif part.file in contents and part.mode in modes:
                    self.older[part.mode] |= _resolved(entry["tests"])

    def missing(self) -> list[Part]:
        """Return what has not run yet, or not to its end.

        Files of which least is known come first, and what must be compiled last.
        """
        known = {name.partition("::")[0] for older in self.older.values() for name in older}
        missing = [part for part in self.wanted if part not in self.tests or self.left[part]]
        return sorted(missing, key=lambda part: (part.file in known, part.mode == "compiled"))

    def add(self, part: Part, recorded: dict[str, Any], path: Path) -> None:
        """Take over what was recorded, and append it to a file."""
        self.tests[part], self.left[part] = recorded["tests"], recorded["left"]
        with path.open("a") as out:
            out.write(json.dumps({"part": vars(part), **recorded}) + "\n")

    def by_mode(self) -> dict[str, dict[str, Any]]:
        """Return the table of each mode.

        A test calls the same whether kernels are compiled or not, but what kernels call is only
        seen where they are not.
        """
        tables = {mode: dict(older) for mode, older in self.older.items()}
        for part in self.wanted:
            tables[part.mode] |= _resolved(self.tests.get(part, {}))
        plain, compiled = (tables.get(mode, {}) for mode in ("interpreted", "compiled"))
        for name, entry in plain.items() if "compiled" in tables else ():
            there = compiled.get(name, entry)
            functions = sorted({*there["functions"], *entry["functions"]})
            compiled[name] = {**there, "functions": functions}
        return tables


def _resolved(tests: dict[str, Any]) -> dict[str, Any]:
    """Give each test what is known of the one that it is like."""
    return {
        name: {**(tests[entry["like"]] if "like" in entry else entry), **entry}
        for name, entry in tests.items()
    }


def _too_long(number: int, frame: Any) -> None:
    pytest.fail("takes too long to be of use here")


def _record(root: Path, part: Part, so_far: Path, deadline: float) -> dict[str, Any]:
    if part.mode == "compiled":
        from tests.fuzz.compilers import share_compilers

        share_compilers(root.parent / "locks")
    recorder = Recorder(root, part, so_far, deadline)
    options = ["-q", "-p", "no:cacheprovider", "--disable-warnings", "-o", "timeout=0"]
    pytest.main([*options, "-m", MARKS[part.mode], part.file], plugins=[recorder])
    return {"tests": recorder.tests(), "left": recorder.left}


def _cuda_sources(root: Path) -> list[str]:
    """Return all CUDA sources."""
    files = sorted((root / "skts/engines").rglob("*.cu*"))
    return [f.relative_to(root).as_posix() for f in files if f.suffix in (".cu", ".cuh")]


@cache
def holds_kernels(root: Path, module: str) -> bool:
    """Whether Numba compiles functions of a module."""
    return module.endswith(".py") and "@kernel" in (root / module).read_text()


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
    sources = {name: (root / name).read_text() for name in _cuda_sources(root)}
    found, waiting = set(), [module]
    while waiting:
        # by any path to it
        line = re.compile(rf'#include "(?:[\w./]*/)?{re.escape(Path(waiting.pop()).name)}"')
        for name, source in sources.items():
            if name not in found and line.search(source):
                found.add(name)
                waiting.append(name)
    return found


@cache
def _functions_in(root: Path, module: str) -> set[tuple[str, str]]:
    """Return the functions of a CUDA source, and of those that it includes, with their files."""
    files = [file for file in _cuda_sources(root) if module in {file, *includers(root, file)}]
    return {(file, name) for file in files for name in cuda_functions((root / file).read_text())}


@cache
def _reaching(root: Path, module: str, function: str) -> set[str]:
    """Return the functions of CUDA sources that use one, or use such, and itself."""
    files = {module, *includers(root, module)}
    bodies = {name: cuda_functions((root / name).read_text()) for name in files}
    names, found = {function}, {f"{module}:{function}"}
    waiting = {function}
    while waiting:
        one = waiting.pop()
        for file, functions in bodies.items():
            users = {user for user, used in functions.items() if one in used}
            found |= {f"{file}:{user}" for user in users}
            waiting |= users - names
            names |= users
    return found


def concerned(
    table: dict[str, Any],
    root: Path,
    module: str,
    function: str,
    mode: str,
    *,
    fuzzed: bool = False,
) -> list[tuple[str, float]]:
    """Return the tests that concern a function of a module, fastest first, and their seconds.

    Where no test of the table calls the function itself (it is compiled, at the level of the
    module, or has moved since the table was made), those count that call any function of the module
    or of those that import it.
    There may be more than there is time for: then those come first that call a function, or load a
    CUDA program, that none before them does, and each function of tests comes with its fastest
    cases before any comes with more. A constant of a module always meets the tests that look at
    constants, and what is compiled those that count what kernels do. With `fuzzed` these are cases
    of the fuzzer, else all other tests.
    """
    cuda = kind_of(module) == "CUDA"
    exact = _reaching(root, module, function) if cuda else {f"{module}:{function}"}
    nearby = {module}
    known = bool(function) and any(
        not exact.isdisjoint(entry["functions"]) for entry in table.values()
    )
    if not known or (mode != "interpreted" and holds_kernels(root, module)):
        nearby |= importers(root, module, direct=True)
    if cuda:
        nearby |= includers(root, module)
    prefixes = tuple(f"{name}:" for name in nearby)
    above = tuple(f"{name}:" for name in {module, *importers(root, module)})
    compiled: set[str] = set()
    chosen = []
    for name, entry in table.items():
        if name.startswith(FUZZED) != fuzzed or any(word in name.lower() for word in SHAKY):
            continue
        near = any(called.startswith(prefixes) for called in entry["functions"])
        direct = not exact.isdisjoint(entry["functions"])
        if name.startswith(COUNTED) and mode == "compiled":  # in kernels no call is seen
            direct = direct or any(called.startswith(above) for called in entry["functions"])
        if not function:  # launches are many, and long
            direct = name.startswith(OF_CONSTANTS) and (near or mode != "emulated")
        if direct or (near and (mode != "interpreted" or not known)):
            changed = [p for p in entry["programs"] if cuda and p.startswith(prefixes)]
            chosen.append((not direct, entry["seconds"] + COMPILING * len(changed), name, changed))
    ranks: Counter[tuple[bool, str]] = Counter()
    order, met = [], set()
    for indirect, cost, name, changed in sorted(chosen):
        group, calls = (indirect, group_of(name)), {*table[name]["functions"], *changed}
        order.append((indirect, ranks[group] if calls <= met else 0, cost, name, changed))
        ranks[group] += 1
        met |= calls
    tests, total = [], 0.0
    budget = (BUDGET_OF_CASES if fuzzed else BUDGET)[mode]
    for _, _, _, name, changed in sorted(order):
        seconds = table[name]["seconds"] + COMPILING * len(set(changed) - compiled)
        if total + seconds <= budget and len(tests) < MOST[mode]:
            total += seconds
            compiled.update(changed)
            tests.append((name, round(seconds, 3)))
    return sorted(tests, key=lambda test: test[1])
