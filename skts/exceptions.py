"""Errors and warnings that skts raises beside those of scikit-learn and Python."""

from __future__ import annotations

__all__ = [
    "EngineNotAvailableError",
    "InconsistentVersionWarning",
    "MemoryBudgetError",
    "UnsupportedReductionError",
    "VerificationError",
]


class EngineNotAvailableError(RuntimeError):
    """The named engine cannot run here; the message says what is missing and how to install it."""


class UnsupportedReductionError(NotImplementedError):
    """The named engine does not compute the work asked of it; the message says why."""


class MemoryBudgetError(MemoryError, ValueError):
    """The result, or the smallest part of the work, does not fit in memory."""


class VerificationError(RuntimeError):
    """Plain code contradicts an engine, where ``set_config(verify=True)`` asked for checks."""


class InconsistentVersionWarning(UserWarning):
    """A pickle was made by another version of skts than the one that reads it."""
