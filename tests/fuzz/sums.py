"""Counts of a run as a file, the sum of several runs, and the record that is kept of it."""

from __future__ import annotations

import argparse
import json
import os
import platform
import shlex
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Iterable
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from .coverage import Coverage

__all__ = ["add_up", "record_of", "write"]

ROOT = Path(__file__).parents[2]
#: Packages whose versions are noted, those that are installed.
PACKAGES = ("skts", "numpy", "scipy", "numba", "scikit-learn", "joblib")


def write(
    options: argparse.Namespace,
    total: Coverage,
    kinds: Counter[str],
    *,
    seconds: float,
    unfinished: list[str],
) -> None:
    """Write what a run has done.

    Parameters
    ----------
    options : Namespace
        Of the command line.
    total : Coverage
        What all workers have reached.
    kinds : Counter
        Failures by function and kind.
    seconds : float
        From start to end.
    unfinished : list of str
        Cases in which the time was up.
    """
    from skts.engines import find_engine

    cases: dict[str, dict[str, int]] = {}
    for (name, engine), count in sorted(total.computed.items()):
        cases.setdefault(name, {})[engine] = count
    run = {
        "seed": options.seed,
        "first": options.first,
        "engine": options.engine,
        "against": options.against,
        "jobs": options.jobs,
        "seconds": round(seconds, 1),
        "date": time.strftime("%Y-%m-%dT%H:%M:%S+00:00", time.gmtime()),
        "commit": options.commit or _commit(),
        "command": shlex.join(
            ["python", "-m", "tests.fuzz", *(_short(word) for word in sys.argv[1:])]
        ),
        "device": find_engine(options.engine).details(),
        "machine": {
            "cpu": _processor(),
            "cores": os.cpu_count(),
            "platform": platform.platform(),
        },
        "versions": _versions(),
        "worker seconds": {name: round(value, 1) for name, value in total.seconds.items()},
        "ways": dict(sorted(total.ways.items())),
        "cases": cases,
        "failures": dict(kinds.most_common()),
        "unfinished": unfinished,
    }
    options.json.write_text(json.dumps(run, indent=1) + "\n")


def _short(word: str) -> str:
    """A word of the command line without the folders of this machine."""
    return Path(word).name if os.path.isabs(word) else word


def _commit() -> str | None:
    """The commit of the working tree, with "+changes" when files differ; None outside of git."""

    def git(*arguments: str) -> str:
        command = ["git", "-C", str(ROOT), *arguments]
        return subprocess.run(command, check=True, capture_output=True, text=True).stdout.strip()

    try:
        changed = git("status", "--porcelain", "--", "skts", "tests/fuzz")
        return git("rev-parse", "--short=12", "HEAD") + ("+changes" if changed else "")
    except (OSError, subprocess.CalledProcessError):
        return None


def _processor() -> str:
    try:
        lines = Path("/proc/cpuinfo").read_text().splitlines()
    except OSError:
        lines = []
    names = (line.split(":", 1)[1].strip() for line in lines if line.startswith("model name"))
    return next(names, platform.processor() or platform.machine())


def _versions() -> dict[str, str]:
    found = {"python": platform.python_version()}
    for name in (*PACKAGES, *(f"cupy-cuda{number}x" for number in (12, 13, 14)), "cupy"):
        try:
            found[name] = version(name)
        except PackageNotFoundError:
            continue
    return found


def record_of(runs: list[dict[str, Any]]) -> dict[str, Any]:
    """The record of some runs, to be kept in ``benchmarks/results``: a row for each function."""
    names = sorted({name for run in runs for name in run["cases"]})
    rows: list[dict[str, Any]] = []
    for name in names:
        counts: Counter[str] = Counter()
        for run in runs:
            counts.update(run["cases"].get(name, {}))
        rows.append({"function": name, **_by_engine(counts), "failures": 0})
        for run in runs:
            rows[-1]["failures"] += sum(
                count for kind, count in run["failures"].items() if kind.split(" ")[0] == name
            )
    rows.append(
        {
            "function": "all",
            **_by_engine(_sum(run["cases"].values() for run in runs)),
            "failures": sum(sum(run["failures"].values()) for run in runs),
        }
    )
    largest = max(runs, key=lambda run: len(run["versions"]))
    kept = ("seed", "first", "engine", "against", "jobs", "seconds", "date", "command")
    return {
        "name": "cases of the fuzzer by function and engine",
        "device": "; ".join(dict.fromkeys(str(run["device"]) for run in runs)),
        "machine": largest["machine"],
        "versions": largest["versions"],
        "commit": "; ".join(dict.fromkeys(str(run["commit"]) for run in runs)),
        "date": max(run["date"] for run in runs),
        "command": "; ".join(run["command"] for run in runs),
        "runs": [{key: run[key] for key in kept} for run in runs],
        "ways": dict(_sum([[run["ways"]] for run in runs])),
        "failures": dict(_sum([[run["failures"]] for run in runs])),
        "unfinished": [one for run in runs for one in run["unfinished"]],
        "rows": rows,
    }


def _by_engine(counts: Counter[str]) -> dict[str, int]:
    """Cases on each engine, those of no engine last."""
    return {name: counts[name] for name in ("numba", "cupy", "host")}


def _sum(counts: Iterable[Iterable[dict[str, int]]]) -> Counter[str]:
    total: Counter[str] = Counter()
    for group in counts:
        for one in group:
            total.update(one)
    return total


def add_up(paths: list[Path], record: Path | None = None) -> int:
    """Print the sum of some runs, and write it as a record; return 1 where there are failures."""
    runs = [json.loads(path.read_text()) for path in paths]
    computed: Counter[tuple[str, str]] = Counter()
    kinds: Counter[str] = Counter()
    for run, path in zip(runs, paths, strict=True):
        for name, counts in run["cases"].items():
            computed.update({(name, engine): count for engine, count in counts.items()})
        kinds.update(run["failures"])
        total = sum(sum(counts.values()) for counts in run["cases"].values())
        print(
            f"{path.name}: seed {run['seed']}, {run['engine']}"
            + (f" against {run['against']}" if run["against"] else "")
            + f", {total:,} in {run['seconds']:,.0f} s, {sum(run['failures'].values())} failures; "
            f"{run['device']}; {run['date']}"
        )
    engines = sorted({engine for _, engine in computed})
    for name in sorted({name for name, _ in computed}):
        print(f"  {name:38}" + "".join(f" {computed[name, one]:12,}" for one in engines))
    totals = [sum(n for (_, engine), n in computed.items() if engine == one) for one in engines]
    print(f"  {'cases':38}" + "".join(f" {total:12,}" for total in totals))
    print(f"  {'':38}" + "".join(f" {one:>12}" for one in engines))
    print(f"{sum(kinds.values())} failures of {len(kinds)} kinds")
    for kind, count in kinds.most_common():
        print(f"  {count:6,} {kind}")
    if record is not None:
        record.write_text(json.dumps(record_of(runs), indent=1) + "\n")
    return min(1, sum(kinds.values()))
