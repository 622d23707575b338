"""Draw mutants of the engines and run the tests that concern them.

::

    python -m tests.mutation --sample 300 --seed 1
    python -m tests.mutation --modules skts/engines/core/plan.py skts/engines/numba/elastic/dtw.py
    python -m tests.mutation --list skts/engines/core/plan.py
    python -m tests.mutation --summary

Results go to ``build/mutation/results.jsonl``, one line a mutant: a run that was stopped goes on
where it was, and a mutant whose result is known is run again with ``--again survived`` only.

A mutant is killed by a test that fails, or by the time limit. Tests come in two modes. First Numba
is switched off and kernels run as plain Python, on the small inputs that this is fast enough for;
an index out of bounds then is an error. What lives through those is compiled and meets the other
tests. CUDA sources and the engine around them run on a GPU or its emulator.
"""

from __future__ import annotations

import argparse
import json
import os
import signal
import time
from collections import defaultdict
from pathlib import Path
from typing import Any

import pytest

from .concern import MODES, build_table, concerned, importers
from .equivalent import reason_of
from .mutants import Mutant, draw, mutants_of
from .sandbox import Sandbox

ROOT = Path(__file__).parents[2]
FOLDER = ROOT / "build" / "mutation"
#: Folders and files of tests that say something about engines.
TESTS = ("tests/engines", "tests/metrics", "tests/neighbors", "tests/motifs", "tests/cluster")
TESTS = (*TESTS, "tests/tree", "tests/test_memory_budgets.py", "tests/test_config.py")
#: Files that take long, or compare with other packages, and tell nothing that others do not.
LEFT_OUT = ("peers", "published", "real_series", "kernels_compile", "kernel_cache")
LEFT_OUT = (*LEFT_OUT, "test_large", "test_distribute", "test_executor")


class Stopper:
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
            self.failed = self.failed or f"{report.nodeid} (import)"

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        if report.failed:
            self.failed = self.failed or report.nodeid


def run_tests(root: Path, tests: list[str]) -> str:
    """Run tests in this process; return the name of the first that fails, or nothing."""
    os.environ["PYTHONDONTWRITEBYTECODE"] = "1"
    stopper = Stopper(tests)
    files = list(dict.fromkeys(name.partition("::")[0] for name in tests))
    options = ["-q", "-x", "-p", "no:cacheprovider", "--timeout=0", "--disable-warnings"]
    code = pytest.main([*options, *files], plugins=[stopper])
    return stopper.failed or ("import of the package" if code != 0 else "")


def modes_of(module: str) -> list[str]:
    """How the tests of a module run, fastest first."""
    if module.endswith((".cu", ".cuh")):
        return ["emulated"]
    return ["interpreted", "compiled", "emulated"] if "/cupy/" in module else list(MODES[:2])


def try_mutant(sandbox: Sandbox, mutant: Mutant, tables: dict[str, dict]) -> dict[str, Any]:
    """Run the tests that concern a mutant; return what became of it."""
    begin = time.perf_counter()
    source = mutant.apply((sandbox.base / mutant.module).read_text())
    stale = set()
    if "/numba/" in mutant.module or not mutant.function:
        stale = importers(sandbox.base, mutant.module)
    copy = sandbox.mutate(mutant.module, source, stale)
    count, fate, killer = 0, "unreached", ""
    for mode in modes_of(mutant.module):
        if mode not in tables:
            continue
        tests = concerned(tables[mode], ROOT, mutant.module, mutant.function, mode)
        if not tests:
            continue
        count += len(tests)
        compiling = 120 if mode == "emulated" or (mode == "compiled" and stale) else 0
        limit = 15 + 4 * sum(seconds for _, seconds in tests) + compiling
        failed = sandbox.call(run_tests, copy, mode, [name for name, _ in tests], limit=limit)
        fate = "survived"
        if failed is None:
            fate, killer = "timeout", mode
        elif failed:  # {}, where the process died
            fate, killer = "killed", f"{mode}: {failed}"
        elif failed == {}:
            fate, killer = "killed", f"{mode}: the process died"
        if fate != "survived":
            break
    return {
        "key": mutant.key,
        "module": mutant.module,
        "function": mutant.function,
        "line": mutant.line,
        "text": mutant.text,
        "before": mutant.before,
        "after": mutant.after,
        "fate": fate,
        "by": killer,
        "tests": count,
        "seconds": round(time.perf_counter() - begin, 1),
    }


def check_unchanged(sandbox: Sandbox, table: dict[str, Any], mode: str) -> None:
    """Raise if tests fail without a mutant: then a failure would say nothing about one."""
    some = sorted(table, key=lambda name: table[name]["seconds"])[:100]
    failed = sandbox.call(run_tests, sandbox.base, mode, some, limit=300)
    if failed != "":
        raise RuntimeError(f"{mode}: without a mutant this fails: {failed}; see log.txt.")


def summarize(results: list[dict[str, Any]]) -> str:
    """Return a table by module, and the survivors."""
    rows: dict[str, dict[str, int]] = defaultdict(lambda: defaultdict(int))
    for result in results:
        for name in (result["module"], "all"):
            rows[name][result["fate"]] += 1
            rows[name]["drawn"] += 1
    fates = ("drawn", "killed", "timeout", "equivalent", "survived", "unreached")
    width = max(map(len, rows), default=6)
    lines = [f"{'module':{width}}" + "".join(f"{fate:>12}" for fate in fates) + "       score"]
    for name in sorted(rows, key=lambda n: (n == "all", n)):
        row = rows[name]
        counted = row["drawn"] - row["equivalent"]
        score = f"{100 * (row['killed'] + row['timeout']) / counted:10.0f} %" if counted else ""
        lines.append(f"{name:{width}}" + "".join(f"{row[fate]:12}" for fate in fates) + score)
    left = [r for r in results if r["fate"] in ("survived", "unreached")]
    for r in sorted(left, key=lambda r: (r["module"], r["line"])):
        change = f"{r['before']}  ->  {r['after']}"
        lines.append(f"{r['fate']}: {r['module']}:{r['line']} {r['function']}: {change}")
        lines.append(f"    {r['text']}")
    return "\n".join(lines)


def parse() -> argparse.Namespace:
    """Read the command line."""
    parser = argparse.ArgumentParser(prog="python -m tests.mutation", description=__doc__)
    parser.formatter_class = argparse.RawDescriptionHelpFormatter
    parser.add_argument("--sample", type=int, default=300, help="mutants to draw, 0 for all")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--modules", nargs="*", default=[], help="files or folders; default all")
    parser.add_argument("--modes", nargs="*", default=["interpreted", "compiled"], choices=MODES)
    parser.add_argument("--tests", nargs="*", default=TESTS, help="files or folders of tests")
    parser.add_argument("--again", nargs="*", default=[], help="fates to run again: survived ...")
    parser.add_argument("--results", type=Path, default=FOLDER / "results.jsonl")
    parser.add_argument("--list", nargs="*", help="only list the mutants of these files")
    parser.add_argument("--summary", action="store_true", help="only show the results so far")
    return parser.parse_args()


def modules_of(names: list[str]) -> list[str]:
    """Return the sources of the engines under some files or folders."""
    chosen = []
    for file in sorted((ROOT / "skts/engines").rglob("*")):
        name = file.relative_to(ROOT).as_posix()
        wanted = not names or any(name == n or name.startswith(f"{n.rstrip('/')}/") for n in names)
        if wanted and file.suffix in (".py", ".cu", ".cuh") and file.name != "__init__.py":
            chosen.append(name)
    return chosen


def test_files(names: list[str]) -> list[str]:
    """Return test files under some folders, those of engines first."""
    files = [f for name in names for f in sorted((ROOT / name).rglob("test_*.py"))]
    files += [ROOT / name for name in names if (ROOT / name).is_file()]
    files = [f.relative_to(ROOT).as_posix() for f in files]
    return [f for f in files if not any(word in f for word in LEFT_OUT)]


def load(path: Path) -> dict[str, dict[str, Any]]:
    """Read results, the last of each mutant."""
    if not path.exists():
        return {}
    return {r["key"]: r for r in map(json.loads, path.read_text().splitlines())}


def main() -> None:
    """Run."""
    options = parse()
    known = load(options.results)
    if options.list is not None:
        for module in modules_of(options.list):
            for m in mutants_of(ROOT, module):
                print(f"{m.key} {module}:{m.line} {m.function}: {m.before} -> {m.after} | {m.text}")
        return
    modules = modules_of(options.modules)
    drawn = draw([m for module in modules for m in mutants_of(ROOT, module)], options.seed)
    drawn = drawn[: options.sample or None]
    if options.summary:
        print(summarize([known[m.key] for m in drawn if m.key in known]))
        return
    FOLDER.mkdir(parents=True, exist_ok=True)
    signal.signal(signal.SIGTERM, signal.default_int_handler)
    sandbox = Sandbox(ROOT, FOLDER)
    files = test_files(options.tests)
    tables = {
        mode: build_table(sandbox, files, mode, FOLDER / f"concern-{mode}.json")
        for mode in options.modes
    }
    for mode, table in tables.items():
        check_unchanged(sandbox, table, mode)
    for i, mutant in enumerate(drawn, 1):
        result = known.get(mutant.key)
        reason = reason_of(mutant)
        if (
            result is None
            or result["fate"] in options.again
            or (reason and result["fate"] != "equivalent")
        ):
            if reason:
                result = {**vars(mutant), "key": mutant.key, "fate": "equivalent", "by": reason}
            else:
                result = try_mutant(sandbox, mutant, tables)
            known[mutant.key] = result
            with options.results.open("a") as out:
                out.write(json.dumps(result) + "\n")
            change = f"{mutant.function}: {mutant.before} -> {mutant.after}"
            where = f"{mutant.module}:{mutant.line} {change}"
            seconds = result.get("seconds", 0)
            print(
                f"{i}/{len(drawn)} {result['fate']} {seconds} s {where} {result['by']}", flush=True
            )
    print(summarize([known[m.key] for m in drawn if m.key in known]))


if __name__ == "__main__":
    main()
