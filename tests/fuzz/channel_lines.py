"""Distances of windows of several channels, for recipes: means over the channels that count."""

from __future__ import annotations

from typing import Any

import numpy as np

from .case import Case
from .draw import Draw
from .recipes_motifs import Line

__all__ = [
    "can_count",
    "draw_channels",
    "draw_counting",
    "each_line",
    "mean_line",
    "mean_of_channels",
    "of_channels",
]


def draw_channels(d: Draw, shapes: list[int], n_channels: int) -> list[np.ndarray]:
    """Series of so many points, whose channels have holes of their own."""
    # channels of one point are refused: they look like a column
    lines = d.numbers([(1, max(2, n)) for n in shapes for _ in range(n_channels)], holes=True)
    return [np.concatenate(lines[at : at + n_channels]) for at in range(0, len(lines), n_channels)]


def draw_counting(d: Draw, n_channels: int, *, several: bool) -> dict[str, Any]:
    """How many channels count, and which in any case."""
    include = d.pick("include", ("none", "one", "two"), (3, 1, 1))
    chosen = d.rng.permutation(n_channels)[: {"none": 0, "one": 1, "two": 2}[include]].tolist()
    least = max(1, len(chosen))
    how = d.pick("dimensions", ("default", "one", "some") if several else ("default", "one"))
    dimensions: Any = None
    if how == "one":
        dimensions = d.whole(least, n_channels)
    elif how == "some":
        dimensions = [d.whole(least, n_channels) for _ in range(2)]
    return {"dimensions": dimensions, "include": chosen or None}


def can_count(case: Case) -> bool:
    """Whether a case, cut down or not, has the channels that its options name."""
    depths = {len(one) for data in case.data.values() for one in data.series}
    (depth, *others), options = sorted(depths), case.options
    dimensions, include = options["dimensions"], options["include"] or []
    chosen = [] if dimensions is None else np.ravel(dimensions).tolist()
    least = max(1, len(include))
    return (
        not others
        and all(channel < depth for channel in include)
        and all(least <= number <= depth for number in chosen)
        and (depth == 1 or case.options.get("k", 1) == 1)
        and (depth == 1 or min(one.lengths.min() for one in case.data.values()) > 1)
    )


def of_channels(case: Case) -> bool:
    """Whether the series of a case are given by channels, mostly by several."""
    return len(case.data["a"].series[0]) > 1 or case.data["a"].form == "row"


def each_line(series: list[np.ndarray], length: int, options: dict[str, Any]) -> list[Line]:
    """The windows of each channel of a few series."""
    return [Line.of(list(channel), length, options) for channel in zip(*series, strict=True)]


def mean_line(each: list[Line], number: int, options: dict[str, Any], *, worst: bool) -> Line:
    """The windows with mean distances over the channels that count."""
    distances, slack = (
        np.stack([getattr(line, name) for line in each]) for name in ("distances", "slack")
    )
    means, loose = mean_of_channels(distances, slack, number, options["include"], worst=worst)
    return each[0]._replace(distances=means, slack=loose, lines=())


def mean_of_channels(
    distances: np.ndarray,
    slack: np.ndarray,
    number: int,
    include: list[int] | None,
    *,
    worst: bool,
) -> tuple[np.ndarray, np.ndarray]:
    """Mean distances over the channels that count, and their slack; channels come first."""
    slack = np.where(np.isfinite(distances), slack, 0.0)
    include = include or []
    others = distances[[channel for channel in range(len(distances)) if channel not in include]]
    keys = np.where(np.isinf(others), np.inf, -others if worst else others)
    others = np.take_along_axis(others, np.argsort(keys, axis=0, kind="stable"), axis=0)
    counted = np.concatenate([distances[sorted(include)], others])[:number]
    return counted.mean(axis=0), np.sort(slack, axis=0)[::-1][:number].mean(axis=0)
