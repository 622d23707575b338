"""Counts of a run as a file, and the sum of several runs: other machines, engines and seeds."""

from __future__ import annotations

import argparse
import json
import platform
import time
from collections import Counter
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path

__all__ = ["add_up", "write"]

#: Packages whose versions are noted, those that are installed.
PACKAGES = ("numpy", "scipy", "numba", "scikit-learn", "joblib")


def write(
    options: argparse.Namespace,
    computed: Counter[tuple[str, str]],
    kinds: Counter[str],
    seconds: float,
) -> None:
    """Write what a run has done.

    Parameters
    ----------
    options : Namespace
        Of the command line.
    computed : Counter
        Cases by function and engine.
    kinds : Counter
        Failures by function and kind.
    seconds : float
        From start to end.
    """
    from skts.engines import find_engine

    cases: dict[str, dict[str, int]] = {}
    for (name, engine), count in sorted(computed.items()):
        cases.setdefault(name, {})[engine] = count
    run = {
        "seed": options.seed,
        "first": options.first,
        "engine": options.engine,
        "against": options.against,
        "jobs": options.jobs,
        "seconds": round(seconds, 1),
        "date": time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime()),
        "device": find_engine(options.engine).details(),
        "versions": _versions(),
        "cases": cases,
        "failures": dict(kinds.most_common()),
    }
    options.json.parent.mkdir(parents=True, exist_ok=True)
    options.json.write_text(json.dumps(run, indent=1) + "\n")


def _versions() -> dict[str, str]:
    import skts

    found = {"python": platform.python_version(), "skts": skts.__version__}
    for name in PACKAGES:
        try:
            found[name] = version(name)
        except PackageNotFoundError:
            continue
    return found


def add_up(paths: list[Path]) -> int:
    """Print the sum of several runs; return 1 where one of them has failures."""
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
    return min(1, sum(kinds.values()))
