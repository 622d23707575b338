"""Make a failing case small: fewer series, shorter ones, plainer numbers, default options."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from dataclasses import replace
from typing import Any

import numpy as np

from .case import Case, Sample
from .compare import Failure
from .recipe import RECIPES

__all__ = ["shrink"]


def shrink(
    case: Case,
    failure: Failure,
    find: Callable[[Case], Failure | None],
    *,
    seconds: float = 30.0,
) -> tuple[Case, Failure]:
    """Cut a case greedily as long as it fails in the same way.

    Parameters
    ----------
    case : Case
        What fails.
    failure : Failure
        How.
    find : callable
        Returns the failure of a case, or None.
    seconds : float, default 30
        When to stop.

    Returns
    -------
    case : Case
        A smaller one that fails.
    failure : Failure
        How it does.
    """
    end = time.monotonic() + seconds
    progress = True
    while progress:
        progress = False
        for smaller in _smaller(case):
            if time.monotonic() > end:
                return case, failure
            if not RECIPES[case.name].possible(smaller):
                continue
            found = find(smaller)
            if found is not None and found.kind == failure.kind:
                case, failure, progress = smaller, found, True
                break
    return case, failure


def _smaller(case: Case) -> Iterator[Case]:
    """Simpler cases, the boldest cuts first."""
    if case.setting:
        yield replace(case, setting={})
        for name in case.setting:
            yield replace(case, setting={k: v for k, v in case.setting.items() if k != name})
    if case.relation:
        yield replace(case, relation=None)
    for name in case.types:
        yield replace(case, types={k: v for k, v in case.types.items() if k != name})
    yield from _fewer(case)
    yield from _shorter(case)
    for name, value in RECIPES[case.name].defaults.items():
        # without a seed a case is another one each time
        if name in case.options and case.options[name] != value and name != "random_state":
            yield replace(case, options=case.options | {name: value})
    for name, value in case.options.items():
        if isinstance(value, int) and not isinstance(value, bool) and value > 1:
            yield replace(case, options=case.options | {name: value // 2})
            yield replace(case, options=case.options | {name: value - 1})
    yield from _plainer(case)


def _samples(case: Case) -> list[tuple[str, Sample]]:
    return [(name, one) for name, one in case.data.items() if isinstance(one, Sample)]


def _fewer(case: Case) -> Iterator[Case]:
    """Some of the series, with the labels that go with them."""
    for name, sample in _samples(case):
        n = len(sample)
        cuts = [range(n // 2), range(n // 2, n)] if n > 3 else []
        cuts += [[row for row in range(n) if row != gone] for gone in range(n)] if n <= 40 else []
        for rows in cuts:
            if not len(rows):
                continue
            data: dict[str, Any] = {name: sample.take(rows)}
            labels = case.data.get("y")
            if name == "X" and labels is not None:
                data["y"] = [labels[row] for row in rows]
            yield case.but(**data)
        if sample.n_channels > 1:
            break
    depth = min((one.n_channels for _, one in _samples(case)), default=1)
    if depth > 1:
        yield case.but(
            **{name: one.of([x[:1] for x in one.series]) for name, one in _samples(case)}
        )


def _shorter(case: Case) -> Iterator[Case]:
    """Shorter series: all of them alike, then one by one."""
    samples = _samples(case)
    longest = max((int(one.lengths.max()) for _, one in samples), default=0)
    size = longest // 2
    while size >= 1:
        for cut in (slice(None, -size), slice(size, None)):
            yield case.but(
                **{
                    name: one.of([x[:, cut] if x.shape[1] > size else x for x in one.series])
                    for name, one in samples
                }
            )
        for name, one in samples:
            for row, x in enumerate(one.series):
                if x.shape[1] > size and len(one) <= 12:
                    for start in (
                        range(0, x.shape[1], size) if x.shape[1] <= 80 else (0, x.shape[1] - size)
                    ):
                        kept = np.delete(x, np.s_[start : start + size], axis=1)
                        if kept.shape[1]:
                            yield case.but(
                                **{name: one.of([*one.series[:row], kept, *one.series[row + 1 :]])}
                            )
        size //= 2


def _plainer(case: Case) -> Iterator[Case]:
    """Plainer forms and rounder numbers."""
    for name, one in _samples(case):
        as_it_is = one.form in ("list", "single", "row")
        if not as_it_is or (one.dtype, one.layout) != ("float64", "C"):
            yield case.but(**{name: one.of(one.series, plain=True)})

    def changed(change: Callable[[np.ndarray], np.ndarray]) -> Case:
        return case.but(
            **{
                name: one.of([change(x) for x in one.series], plain=True)
                for name, one in _samples(case)
            }
        )

    powers = [
        int(np.frexp(np.abs(x[np.isfinite(x)]).max(initial=0))[1])
        for _, one in _samples(case)
        for x in one.series
    ]
    top = max(powers, default=0)
    if abs(top) > 4:
        yield changed(lambda x: np.ldexp(x, -top))
    for digits in (0, 1, 2, 4):

        def rounded(x: np.ndarray, digits: int = digits) -> np.ndarray:
            return np.round(x, digits) if np.abs(x[np.isfinite(x)]).max(initial=0) < 1e12 else x

        smaller = changed(rounded)
        before = [x for _, one in _samples(case) for x in one.series]
        after = [x for _, one in _samples(smaller) for x in one.series]
        if not all(
            np.array_equal(a, b, equal_nan=True) for a, b in zip(before, after, strict=True)
        ):
            yield smaller
    if case.points() <= 60:
        for name, one in _samples(case):
            for row, x in enumerate(one.series):
                for place in np.ndindex(x.shape):
                    for value in (0.0, 1.0):
                        if x[place] not in (0.0, 1.0) or (value == 0.0 and x[place] == 1.0):
                            new = x.copy()
                            new[place] = value
                            series = [*one.series[:row], new, *one.series[row + 1 :]]
                            yield case.but(**{name: one.of(series, plain=True)})
