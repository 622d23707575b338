"""Judge a mutant: the tests that concern it run on a copy that holds it."""

from __future__ import annotations

import os
import time
from pathlib import Path
from typing import Any

import pytest

from .concern import MODES, Plugin, concerned, holds_kernels, importers, kind_of
from .equivalent import reason_of
from .mutants import Mutant
from .sandbox import Sandbox

__all__ = ["Judge", "modes_of", "settle", "ways_of"]

#: Seconds that a process may take beside its tests, as many more where Numba compiles; fewer for
#: cases of the fuzzer, which need ever more kernels.
STARTING, NUMBA, NUMBA_OF_CASES = 20, 240, 120
#: Fates after which another mode may still kill a mutant. "late": the tests of a mode take too
#: long, with the mutant and without it.
LIVE = ("survived", "unreached", "late")
#: What the emulator says of a program that g++ refuses.
REFUSED = " does not compile:"


class Stopper(Plugin):
    """A plugin of pytest that runs chosen tests in the order given, up to the first failure."""

    def __init__(self, tests: list[str]) -> None:
        self.rank = {name: i for i, name in enumerate(tests)}
        self.failed = ""

    def pytest_collection_modifyitems(self, items: list[pytest.Item]) -> None:
        items[:] = sorted(
            (item for item in items if item.nodeid in self.rank),
            key=lambda item: self.rank[item.nodeid],
        )

    def pytest_collectreport(self, report: pytest.CollectReport) -> None:
        if report.failed:
            self._note(f"{report.nodeid} (import)", report)

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        if report.failed:
            self._note(report.nodeid, report)

    def _note(self, name: str, report: Any) -> None:
        refused = REFUSED in report.longreprtext
        self.failed = self.failed or f"{name}{REFUSED if refused else ''}"


def run_tests(root: Path, tests: list[str], *more: str) -> str:
    """Run tests in this process; return the name of the first that fails, or nothing."""
    os.environ["PYTHONDONTWRITEBYTECODE"] = "1"
    stopper = Stopper(tests)
    files = list(dict.fromkeys(name.partition("::")[0] for name in tests))
    options = ["-q", "-p", "no:cacheprovider", "-o", "timeout=0", "--disable-warnings", *more]
    options += ["-m", ""]  # those that are asked for, slow ones as well
    code = pytest.main([*options, *files], plugins=[stopper])
    if code == pytest.ExitCode.NO_TESTS_COLLECTED:  # those that an older table knows are gone
        return stopper.failed
    return stopper.failed or ("import of the package" if code != 0 else "")


def first_failure(root: Path, tests: list[str]) -> str:
    """Run tests as `run_tests` does, and none after one that fails."""
    return run_tests(root, tests, "-x")


def compile_for(root: Path, tests: list[str]) -> str:
    """Run tests, so that what they compile is on the disk for others."""
    from tests.fuzz.compilers import share_compilers

    share_compilers(root.parent / "locks")
    return run_tests(root, tests)


def modes_of(module: str) -> list[str]:
    """How the tests of a module run, fastest first.

    Host code of the engine with a GPU also meets tests that need none, as plain Python: what a
    kernel is chosen by, or how much memory it is said to take, is told by functions alone.
    """
    interpreted, compiled, emulated = MODES
    ways = {"CUDA": [emulated], "cupy": [interpreted, emulated], "numba": [interpreted, compiled]}
    return ways.get(kind_of(module), list(MODES))


def ways_of(module: str) -> list[tuple[str, bool]]:
    """Modes of a module with the tests that there are, then with cases of the fuzzer."""
    return [(mode, fuzzed) for fuzzed in (False, True) for mode in modes_of(module)]


def settle(mutant: Mutant, answers: list[dict[str, Any]], last: bool = False) -> dict | None:
    """Return what became of a mutant by what came of its ways so far, if that tells it.

    Where a mode was late, or no more will come, it is said to be not judged.
    """
    reason = reason_of(mutant)
    fates = [answer["fate"] for answer in answers]
    dead = [answer for answer in answers if answer["fate"] not in LIVE]
    complete = len(answers) == len(ways_of(mutant.module))
    if reason:
        fate, by = "equivalent", reason
    elif dead:
        fate, by = dead[0]["fate"], dead[0]["by"]
    elif complete and "late" not in fates:
        fate, by = min(fates), ""  # survived, if it was reached
    elif complete or last:
        known = (f"{each['mode']}{' fuzzed' * each['fuzzed']} {each['fate']}" for each in answers)
        fate, by = "not judged", ", ".join(known)
    else:
        return None
    sums = {name: sum(answer[name] for answer in answers) for name in ("tests", "seconds")}
    return {"key": mutant.key, **vars(mutant), "fate": fate, "by": by, **sums}


class Judge:
    """Judges mutants, each in one way at a time.

    Parameters
    ----------
    sandbox : Sandbox
        Where mutants and their tests run.
    tables : dict
        By mode, what each test calls.
    """

    def __init__(self, sandbox: Sandbox, tables: dict[str, dict]) -> None:
        self.sandbox, self.tables = sandbox, tables
        #: Whether tests that failed pass without a mutant.
        self.sound: dict[tuple[str, str], bool] = {}

    def check(self, mode: str) -> None:
        """Raise if tests fail without a mutant: then a failure would say nothing about one.

        A few tell whether tests run here at all: each that fails with a mutant meets `_is_sound`.
        """
        table = self.tables[mode]
        ran = [name for name in table if "like" not in table[name]]
        some = sorted(ran, key=lambda name: table[name]["seconds"])[:4]
        if not some:
            return
        failed = self.sandbox.call(first_failure, self.sandbox.base, mode, some, limit=300)
        if failed != "":
            log = (self.sandbox.own / "log.txt").read_text()[-4000:]
            raise RuntimeError(f"{mode}: without a mutant this fails: {failed}\n{log}")

    def judge(self, task: tuple[Mutant, tuple[str, bool]]) -> dict[str, Any] | None:
        """Run the tests of one way that concern a mutant; return what became of it.

        There is no answer where another way has killed it already.
        """
        mutant, (mode, fuzzed) = task
        flag = self.sandbox.settled / mutant.key
        if flag.exists():
            return None
        begin = time.perf_counter()
        fate, by, count = self._try(mutant, mode, fuzzed)
        if fate not in LIVE:
            flag.touch()
        seconds = round(time.perf_counter() - begin, 1)
        answer = {"mode": mode, "fuzzed": fuzzed, "fate": fate, "by": by}
        return {**answer, "tests": count, "seconds": seconds}

    def _try(self, mutant: Mutant, mode: str, fuzzed: bool) -> tuple[str, str, int]:
        """Return what became of a mutant, by which test, and how many there were."""
        base = self.sandbox.base
        table, place = self.tables.get(mode, {}), (base, mutant.module, mutant.function, mode)
        tests = concerned(table, *place, fuzzed=fuzzed)
        count = len(tests)
        if not tests:
            return "unreached", "", 0
        source = mutant.apply((base / mutant.module).read_text())
        compiled = holds_kernels(base, mutant.module)
        stale = set()
        if mutant.module.endswith(".py") and (compiled or not mutant.function):
            stale = importers(base, mutant.module)
            compiled = compiled or any(holds_kernels(base, name) for name in stale)
        if mode == "compiled":
            self._compile_for([name for name, _ in tests])
        copy = self.sandbox.mutate(mutant.module, source, stale)
        while tests:
            limit = STARTING + 4 * sum(seconds for _, seconds in tests)
            if compiled and mode != "interpreted":
                limit += NUMBA_OF_CASES if fuzzed else NUMBA
            names = [name for name, _ in tests]
            failed = self.sandbox.call(first_failure, copy, mode, names, limit=limit)
            if failed is None and fuzzed:  # it may have been compiling
                return "survived", "", count
            if failed is None:
                # unless they take as long without it
                there = self.sandbox.call(first_failure, base, mode, names, limit=limit)
                return "late" if there is None else "timeout", mode, count
            if failed == {}:
                return "killed", f"{mode}: the process died", count
            if not failed:
                return "survived", "", count
            if failed.endswith(REFUSED):
                return "refused", failed, count
            if self._is_sound(mode, failed, names):
                return "killed", f"{mode}: {failed}", count
            file = failed.removesuffix(" (import)")
            tests = [
                test
                for test in tests
                if test[0] not in (failed, file) and test[0].partition("::")[0] != file
            ]
        return "unreached", "", count

    def _compile_for(self, tests: list[str]) -> None:
        """Compile what tests need that nobody has run here, so that copies need not."""
        cold = [name for name in tests if not self.sandbox.compiled(name).exists()]
        if cold:
            self.sandbox.call(compile_for, self.sandbox.base, "compiled", cold, limit=1500)
            for name in cold:
                self.sandbox.compiled(name).touch()

    def _is_sound(self, mode: str, test: str, tests: list[str]) -> bool:
        """Whether a test passes without a mutant, or its file can be imported without it."""
        file = test.removesuffix(" (import)")
        if file != test:
            test = next((name for name in tests if name.startswith(f"{file}::")), test)
        if test not in tests:
            return True
        if (mode, test) not in self.sound:
            failed = self.sandbox.call(first_failure, self.sandbox.base, mode, [test], limit=300)
            self.sound[mode, test] = failed == ""
        return self.sound[mode, test]
