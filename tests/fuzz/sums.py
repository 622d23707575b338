"""Counts of a run as a file, the sum of several runs, and the record that is kept of it."""

from __future__ import annotations

import argparse
import json
import os
import platform
import shlex
import sys
import time
from collections import Counter
from collections.abc import Iterable
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from .coverage import Coverage

__all__ = ["add_up", "record_of", "write"]

#: Packages whose versions are noted, those that are installed.
PACKAGES = ("skts", "numpy", "scipy", "numba", "scikit-learn", "joblib")
CUPY = (*(f"cupy-cuda{number}x" for number in (12, 13, 14)), "cupy")


def write(
    options: argparse.Namespace,
    total: Coverage,
    kinds: Counter[str],
    *,
    seconds: float,
    unfinished: list[str],
    again: list[str],
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
    again : list of str
        Commands that repeat failures.
    """
    from benchmarks import _records
    from skts.engines import find_engine

    words = [Path(word).name if os.path.isabs(word) else word for word in sys.argv[1:]]
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
        "commit": options.commit or _records.revision(),
        # after a change in any folder the record says that it is older
        "sources": {
            f"skts/{folder.name}": _records.digest(folder)
            for folder in sorted((_records.ROOT / "skts").glob("*/"))
            if folder.name != "__pycache__"
        },
        "command": shlex.join(["python", "-m", "tests.fuzz", *words]),
        "device": find_engine(options.engine).details(),
        "machine": {
            "cpu": _records.cpu(),
            "cores": os.cpu_count(),
            "platform": platform.platform(),
        },
        "versions": _records.versions(*PACKAGES, *CUPY),
        "worker seconds": {name: round(value, 1) for name, value in total.seconds.items()},
        "compiling": {name: round(value, 1) for name, value in total.compiling.items()},
        "ways": dict(sorted(total.ways.items())),
        "kernels": sorted(total.kernels),
        "cases": cases,
        "failures": dict(kinds.most_common()),
        "again": again,
        "unfinished": unfinished,
    }
    # in one piece: the run may be cut off
    scratch = options.json.with_suffix(".new")
    scratch.write_text(json.dumps(run, indent=1) + "\n")
    scratch.replace(options.json)


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
    commit = largest["commit"]
    if any(run["commit"] != commit for run in runs):
        raise ValueError("These runs are of several commits: a record is of one.")
    kept = ("seed", "first", "engine", "against", "jobs", "seconds", "date", "command")
    return {
        "name": "cases of the fuzzer by function and engine",
        "device": "; ".join(dict.fromkeys(str(run["device"]) for run in runs)),
        "machine": largest["machine"],
        "versions": largest["versions"],
        "commit": commit,
        "sources": largest["sources"],
        "date": max(run["date"] for run in runs),
        "command": "; ".join(run["command"] for run in runs),
        "runs": [{key: run[key] for key in kept} for run in runs],
        "ways": dict(_sum([[run["ways"]] for run in runs])),
        "kernels": _instances({name for run in runs for name in run.get("kernels", ())}),
        "failures": dict(_sum([[run["failures"]] for run in runs])),
        "unfinished": [one for run in runs for one in run["unfinished"]],
        "rows": rows,
    }


def _instances(reached: set[str]) -> dict[str, Any]:
    """How many instances of CUDA kernels were reached, and which were not, by source file."""
    from skts.engines.cupy.programs import all_kernels

    every = all_kernels()
    left = {
        file: [name for name in names if f"{file} {name}" not in reached]
        for file, names in every.items()
    }
    count = sum(map(len, every.values()))
    return {
        "reached": count - sum(map(len, left.values())),
        "of": count,
        "left": {file: names for file, names in left.items() if names},
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
