"""The record of judged mutants: `benchmarks/results/attacks-mutation.json`, by module."""

from __future__ import annotations

import json
import os
import platform
from collections import Counter
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from .concern import FUZZED

__all__ = ["FATES", "keep"]

#: What becomes of a mutant: the tests that there were kill it; slow ones do, or one written for it;
#: it changes no answer; nothing kills it; the time was up.
FATES = ("killed", "killed by slow or new tests", "excused", "survived", "not judged")
#: Names that other results have for these.
_ALIKE = {"timeout": "killed", "equivalent": "excused", "unreached": "survived"}


def keep(
    path: Path,
    results: list[dict[str, Any]],
    seed: int,
    command: str,
    commit: str | None = None,
) -> None:
    """Add the results of a draw to a record, in place of those that it has of the same mutants.

    A draw is of the commit that it is recorded at first; what a later test kills of it was not
    killed by the tests that there were.

    Parameters
    ----------
    path : Path
        The record, which need not be there.
    results : list of dict
        Of each mutant "key", "module", "function", "before", "after", "fate" and "by".
    seed : int
        Of the draw.
    command : str
        How they were judged.
    commit : str, optional
        Of what was judged; default that of the working tree.
    """
    from benchmarks import _records

    before = json.loads(path.read_text()) if path.exists() else {"mutants": [], "runs": []}
    mutants = before["mutants"]
    lived = {(one["seed"], one["key"]) for one in mutants if one["fate"] == "survived"}
    date = datetime.now(UTC).isoformat(timespec="seconds")
    commit = commit or _records.revision()
    drawn = {run["seed"]: {"commit": run["commit"], "date": run["date"]} for run in before["runs"]}
    drawn.setdefault(seed, {"commit": commit, "date": date})
    now = {(seed, one["key"]) for one in results}
    mutants = [one for one in mutants if (one["seed"], one["key"]) not in now]
    for one in results:
        fate = _ALIKE.get(one["fate"], one["fate"])
        if fate == "killed" and (seed, one["key"]) in lived:
            fate = "killed by slow or new tests"
        if fate in FATES:
            change = f"{one['before']} -> {one['after']}"
            place = {name: one[name] for name in ("key", "module", "function")}
            mutants.append({"seed": seed, **place, "change": change, "fate": fate, "by": one["by"]})
    mutants.sort(key=lambda one: (one["seed"], one["module"], one["key"]))
    record = {
        "name": "mutants of fresh draws by module",
        "device": "CPU, and the emulator of a GPU",
        "machine": {
            "cpu": _records.cpu(),
            "cores": os.cpu_count(),
            "platform": platform.platform(),
        },
        "versions": _records.versions("numpy", "numba", "pytest"),
        "commit": commit,
        "date": date,
        "command": command,
        "runs": [_run({"seed": each, **said}, mutants) for each, said in drawn.items()],
        "rows": [_row({"module": each}, mutants, "module") for each in _values(mutants, "module")],
        "mutants": mutants,
    }
    record["rows"].append(_row({"module": "all"}, mutants))
    path.write_text(json.dumps(record, indent=1) + "\n")


def _values(mutants: list[dict[str, Any]], name: str) -> list[Any]:
    return sorted({one[name] for one in mutants})


def _run(start: dict[str, Any], mutants: list[dict[str, Any]]) -> dict[str, Any]:
    """Counts of a draw, and how many of it were killed by cases of the fuzzer alone."""
    by = [one["by"] for one in mutants if (one["seed"], one["fate"]) == (start["seed"], "killed")]
    row = _row(start, mutants, "seed")
    return row | {"killed by cases of the fuzzer": sum(FUZZED in one for one in by)}


def _row(
    start: dict[str, Any], mutants: list[dict[str, Any]], name: str | None = None
) -> dict[str, Any]:
    """Counts of the mutants that have a value, or of all, and the share killed at first."""
    some = [one for one in mutants if name is None or one[name] == start[name]]
    count = Counter(one["fate"] for one in some)
    judged = len(some) - count["excused"] - count["not judged"]
    share = round(count["killed"] / judged, 3) if judged else None
    counts = {fate: count[fate] for fate in FATES}
    return start | {"mutants": len(some)} | counts | {"killed at first": share}
