"""Mutants that no test can kill, with the reason: keyed by the text of the line and its function.

`tests/mutation/test_mutation.py` sees to it that the lines still exist.
"""

from __future__ import annotations

from .mutants import Mutant

__all__ = ["EQUIVALENT", "reason_of"]

#: By module: function, line, what is changed on it (None: anything), and why no result differs.
EQUIVALENT: dict[str, list[tuple[str, str, tuple[str, ...] | None, str]]] = {}


def reason_of(mutant: Mutant) -> str:
    """Return why a mutant is equivalent, or nothing."""
    for function, text, before, reason in EQUIVALENT.get(mutant.module, []):
        same = (mutant.function, mutant.text) == (function, text)
        if same and (before is None or mutant.before in before):
            return reason
    return ""
