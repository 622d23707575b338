"""What checks of answers look at is recorded, and which wrong numbers they find.

A check that looks at less, or allows for more, still passes what is right. Each number of an answer
is changed by a little and by much; some may be wrong within what is allowed, or are not looked at.
After a change that is meant, write the record anew, and read the difference::

    python -m tests.engines.core.test_recorded_checks
"""

from __future__ import annotations

import json
import re
from collections import defaultdict
from collections.abc import Callable, Iterator
from dataclasses import fields, is_dataclass, replace
from itertools import product
from pathlib import Path
from typing import Any

import numba
import numpy as np
import pytest

from skts.engines import (
    ConcatenatedSeries,
    DTWMatrix,
    DTWPath,
    SBDAssign,
    SBDCenters,
    SBDMatrix,
    Series,
    Shapes,
    Warping,
    WindowKinds,
    run,
)
from skts.engines.core import verify
from skts.engines.families.elastic.distances import (
    ADTW,
    EDR,
    ERP,
    LCSS,
    MSM,
    TWE,
    ShapeDTW,
)
from tests.counted import alike, told
from tests.discovery import modules
from tests.examples_of_work import examples, reductions, small_examples
from tests.records import plain, write

RECORD = Path(__file__).with_name("recorded_checks.json")
#: What to do where a test here fails.
MEANT = "if this change is meant, see the head of test_recorded_checks.py"
#: Numbers of each kind of which an answer has many that are changed.
PLACES = 5
#: What numbers become.
CHANGES: dict[str, Callable[[Any], Any]] = {
    "more": lambda x: np.nextafter(x, np.inf) if is_float(x) else x + 1,
    "less": lambda x: np.nextafter(x, -np.inf) if is_float(x) else x - 1,
    "somewhat more": lambda x: x * (1 + 2.0**-20) if is_float(x) else x + 2,
    "much more": lambda x: 2 * x + 1,
    "nothing": lambda x: 0 * x if np.isfinite(x) else type(x)(0),
}


def is_float(number: Any) -> bool:
    return isinstance(number, float | np.floating)


def each(count: int, most: int = verify.SAMPLE) -> list[int]:
    """Numbers below `count`, far from each other: a sample that is always the same."""
    return sorted({i * (count - 1) // max(1, most - 1) for i in range(min(count, most))})


def looked_at(monkeypatch: pytest.MonkeyPatch, work: Any, answer: Any) -> dict[str, Any]:
    """Samples that are drawn; by item, how many checks, sums of their numbers, and allowances."""
    samples: list[list[int]] = []
    numbers: dict[str, list[float]] = defaultdict(list)
    allowed: dict[str, list[float]] = defaultdict(list)

    def sample(count: int, most: int = verify.SAMPLE) -> list[int]:
        samples.append([count, most])
        return each(count, most)

    def check_value(item: str, found: Any, expected: Any, tolerance: float = 0.0) -> verify.Check:
        allowed[words_of(item)].append(float(tolerance))
        return original(item, found, expected, tolerance)

    original = verify.check_value
    for module in (verify, *modules(engines=True)):
        if getattr(module, "check_value", None) is original:
            monkeypatch.setattr(module, "check_value", check_value)
    for check in work.verify(answer, sample):
        assert check.holds, check
        numbers[words_of(check.item)] += numbers_of(check)
    found = {item: [summed(several), summed(allowed[item])] for item, several in numbers.items()}
    counts = np.unique(np.array(samples).reshape(-1, 2), axis=0, return_counts=True)
    return {"samples": plain(counts), "numbers": found}


def words_of(item: str) -> str:
    """Name an item without the numbers in it."""
    return re.sub(r"\d+", "n", item)


def summed(numbers: list[float]) -> list[int | float]:
    """How many numbers there are, and sums of them."""
    return plain(told(np.array(numbers, float), np.arange(len(numbers))))


def numbers_of(value: Any) -> Iterator[float]:
    """Numbers in a check, in order."""
    if isinstance(value, tuple | list | np.ndarray):
        for part in value:
            yield from numbers_of(part)
    elif isinstance(value, int | float | np.number | np.bool_):
        yield float(value)


def found_wrong(work: Any, answer: Any) -> dict[str, str]:
    """By part of an answer and change, whether it is found at each place: yes, no, or an error."""
    found: dict[str, str] = {}
    for change, function in CHANGES.items():
        for name, other in changed(answer, function):
            found[key] = found.get(key := f"{name} {change}".lstrip(), "") + outcome(work, other)
    return found


def outcome(work: Any, answer: Any) -> str:
    """Whether something is found."""
    try:
        with np.errstate(all="ignore"):
            return "-" if all(check.holds for check in work.verify(answer, each)) else "+"
    except Exception:  # of numbers that an answer never has
        return "!"


def changed(answer: Any, change: Callable[[Any], Any]) -> Iterator[tuple[str, Any]]:
    """Yield answers with one number changed, each with the name of its part."""
    if isinstance(answer, np.ndarray) and answer.dtype.kind in "iufb":
        for place in each(answer.size, PLACES):
            other = answer.copy()
            old = other.flat[place]
            other.flat[place] = not old if answer.dtype.kind == "b" else change(old)
            yield "", other
    elif isinstance(answer, bool | np.bool_):
        yield "", not answer
    elif isinstance(answer, int | float | np.number):
        yield "", change(answer)
    elif hasattr(answer, "_fields"):
        for name in answer._fields:
            for path, other in changed(getattr(answer, name), change):
                yield f"{name} {path}".rstrip(), answer._replace(**{name: other})
    elif is_dataclass(answer):
        for name in (field.name for field in fields(answer) if field.init):
            for path, other in changed(getattr(answer, name), change):
                yield f"{name} {path}".rstrip(), replace(answer, **{name: other})
    elif isinstance(answer, list | tuple):
        for i in each(len(answer), PLACES):
            for path, other in changed(answer[i], change):
                yield path, type(answer)([*answer[:i], other, *answer[i + 1 :]])


def of_several_kinds() -> list[Any]:
    """Small works of options that examples lack: ends of paths, bands, norms and powers of two."""
    rng = np.random.default_rng(5)

    def series(n: int, width: int, n_channels: int) -> Series:
        values = rng.normal(size=(n, n_channels, width)).cumsum(axis=2)
        return Series(values, np.full(n, width)).freeze()

    one, other, several = series(2, 7, 2), series(3, 9, 2), series(4, 6, 1)
    ways = [
        *(kind(window=2) for kind in (Warping, MSM, ERP, TWE, ADTW)),
        *(Warping("dog_keeper", "absolute"), Warping(alignment="subsequence"), ERP(), TWE()),
        *(EDR(epsilon=0.5), LCSS(epsilon=0.5, window=3)),
        *(ShapeDTW(reach=2), ShapeDTW(reach=1, window=2)),
    ]
    works: list[Any] = [DTWMatrix(one, other, way) for way in ways]
    for i, j in product(range(4), range(3)):
        sides = several.take(slice(i, i + 1)), Series(other.values[j : j + 1, :1], np.array([9]))
        works.append(DTWPath(*(sides if (i + j) % 2 else sides[::-1]), Warping(window=None)))
    values = rng.normal(size=(9, 2, 6)).cumsum(axis=2)
    sizes = np.ldexp(1.0, [0, 3, -2, 500, -500, 9, 1, 0, 2])[:, np.newaxis, np.newaxis]
    shapes = Shapes.normalized(Series(values * sizes, np.full(9, 6)), normalize=False)
    centers = Shapes.of(values[:3] * [[[1.0]], [[5.0]], [[0.2]]])
    labels, shifts = np.arange(9, dtype=np.int32) % 3, np.array([0, 1, -2] * 3, np.int32)
    line = ConcatenatedSeries.of([np.repeat([1.0, np.inf, 2.0, 5.0], (5, 1, 9, 4))])
    return [
        *works,
        *(SBDMatrix(shapes, centers), SBDAssign(shapes, centers)),
        *(SBDCenters(shapes, labels, shifts, 3), SBDCenters(shapes, labels, shifts, 4)),
        *(WindowKinds(line, 4, normalize) for normalize in (True, False)),
    ]


def works_of(size: str, kind: type) -> list[Any]:
    """Works of a kind."""
    if size == "several":
        return [work for work in of_several_kinds() if type(work) is kind]
    return [one.work for one in (small_examples if size == "small" else examples)()[kind]]


def looks(monkeypatch: pytest.MonkeyPatch, size: str, kind: type) -> list[Any]:
    """What is recorded of works of a kind."""
    found = []
    for work in works_of(size, kind):
        # plain loops need no compiled kernels, but have not the bits of all distances
        compiled = size == "large" or (size == "several" and kind is DTWMatrix)
        answer = run(work, engine="numba" if compiled else "oracle")
        with monkeypatch.context() as patch:
            found.append(looked_at(patch, work, answer))
        if size != "large":
            found[-1]["wrong"] = found_wrong(work, answer)
    return json.loads(json.dumps(found))


SEVERAL = {type(work) for work in of_several_kinds()}
SIZES_AND_KINDS = [
    pytest.param(size, kind, id=f"{size} {kind.__name__}")
    for size, kind in product(("small", "large", "several"), reductions())
    if size != "several" or kind in SEVERAL
]


@pytest.mark.parametrize(("size", "kind"), SIZES_AND_KINDS)
def test_checks_look_at_what_is_recorded(monkeypatch, size, kind):
    if size == "large" and numba.config.DISABLE_JIT:
        pytest.skip("plain Python takes long")
    recorded = json.loads(RECORD.read_text())["looks"][f"{size} {kind.__name__}"]
    assert alike(looks(monkeypatch, size, kind), recorded), MEANT


def main() -> None:
    patch = pytest.MonkeyPatch()
    found = {param.id: looks(patch, *param.values) for param in SIZES_AND_KINDS}
    write(RECORD, {"looks": found})


if __name__ == "__main__":
    main()
