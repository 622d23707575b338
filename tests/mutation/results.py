"""Results of mutants: read from several files, and shown by module."""

from __future__ import annotations

import json
from collections import Counter, defaultdict
from pathlib import Path
from typing import Any

from .concern import kind_of
from .equivalent import reason_of
from .mutants import Mutant

__all__ = ["load", "summarize"]

FATES = ("drawn", "killed", "timeout", "equivalent", "refused", "survived", "unreached")
FATES = (*FATES, "not judged")
#: What says nothing about the tests: no answer differs, or g++ refuses it.
UNCOUNTED = ("equivalent", "refused", "not judged")


def load(paths: list[Path], mutants: list[Mutant]) -> dict[str, dict[str, Any]]:
    """Return, by key of the mutants that there are, the last result of each.

    A mutant keeps its result when its module gets another name, where no other mutant is like it;
    it loses it when it is excused.
    """
    results: dict[str, dict[str, Any]] = {}
    for path in paths:
        for line in path.read_text().splitlines() if path.exists() else []:
            result = json.loads(line)
            results[result["key"]] = result

    def change(of: dict[str, Any]) -> tuple[str, ...]:
        return of["function"], of["text"], of["before"], of["after"]

    keys = {mutant.key for mutant in mutants}
    moved = {change(result): result for key, result in results.items() if key not in keys}
    there, like = (
        Counter(change(of) for of in several)
        for several in (results.values(), (vars(mutant) for mutant in mutants))
    )
    found = {}
    for mutant in mutants:
        result = results.get(mutant.key)
        if result is None and there[change(vars(mutant))] == like[change(vars(mutant))] == 1:
            result = moved.get(change(vars(mutant)))
        if result is not None:
            found[mutant.key] = {**result, "key": mutant.key, **vars(mutant)}
            if reason := reason_of(mutant):
                found[mutant.key] |= {"fate": "equivalent", "by": reason}
    return found


def summarize(results: list[dict[str, Any]]) -> str:
    """Return a table by module and by part of the engines, and the survivors."""
    rows: dict[tuple[int, str], dict[str, int]] = defaultdict(lambda: defaultdict(int))
    for result in results:
        kind = kind_of(result["module"])
        for name in ((0, result["module"]), (1, f"all of {kind}"), (2, "all")):
            rows[name][result["fate"]] += 1
            rows[name]["drawn"] += 1
    width = max((len(name) for _, name in rows), default=6)
    lines = [f"{'module':{width}}" + "".join(f"{fate:>12}" for fate in FATES) + "       score"]
    for (_, name), row in sorted(rows.items()):
        counted = row["drawn"] - sum(row[fate] for fate in UNCOUNTED)
        score = f"{100 * (row['killed'] + row['timeout']) / counted:10.0f} %" if counted else ""
        lines.append(f"{name:{width}}" + "".join(f"{row[fate]:12}" for fate in FATES) + score)
    left = [r for r in results if r["fate"] in ("survived", "unreached")]
    for r in sorted(left, key=lambda r: (r["module"], r["line"])):
        change = f"{r['before']}  ->  {r['after']}"
        lines.append(f"{r['fate']}: {r['module']}:{r['line']} {r['function']}: {change}")
        lines.append(f"    {r['text']}")
    return "\n".join(lines)
