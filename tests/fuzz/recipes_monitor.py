"""Recipe of `skts.SubsequenceMonitor`: streams in random cuts, and what plain loops report."""

from __future__ import annotations

import math
from bisect import bisect_left, bisect_right
from itertools import pairwise
from typing import Any

import numpy as np

from . import oracle
from .case import Case
from .compare import RELATIVE, check, close, same
from .draw import Draw
from .recipe import How, Recipe, draw_window, plain, points_of, scaled
from .recipes_neighbors import Search


class Monitor(Recipe):
    name = "skts.SubsequenceMonitor"
    methods = ("fit", "update")
    relations = ("scale", "forms", "cuts", "alone")

    @property
    def defaults(self) -> dict[str, Any]:
        return super().defaults | {"update.final": True, "cuts": 0}

    def draw(self, d: Draw) -> Case:
        # long streams are searched in several tiles
        n_points = 9000 if d.chance(0.01) else d.size(1, 250)
        if d.chance(0.02):
            n_points = d.near_edge(1100)
        depth = d.pick("channels", (1, 2, 3, 6), (8, 2, 2, 1))
        if depth > 1:
            n_points = min(n_points, 100)
        # patterns of one point in several channels are refused: they look like a column
        least = min(2, depth)
        sizes = [
            d.size(least, 70 if d.chance(0.1) else 20) for _ in range(d.pick("patterns", (1, 2, 4)))
        ]
        series = d.numbers([(depth, n) for n in (n_points, *sizes)])
        stream, patterns = series[0], series[1:]
        for one in patterns:
            if d.chance(0.5) and one.shape[1] <= n_points:
                start = d.whole(0, n_points - one.shape[1])
                one[:] = stream[:, start : start + one.shape[1]]
        d._pierce(
            stream[d.whole(0, depth - 1)],
            d.pick("holes", ("none", "one", "gap", "infinite"), (5, 1, 1, 1)),
        )
        X = d.form(patterns, label=" X")
        points = d.form([stream], form="list", label=" points")
        types: dict[str, str] = {}
        metric = d.pick("metric", ("dtw", "dog_keeper", "euclidean"), (4, 1, 2))
        options = {"metric": metric, "cost": "squared", "window": None}
        if metric != "euclidean":
            options["cost"] = d.pick("cost", ("squared", "absolute"), (2, 1))
            options["window"] = draw_window(d, max(sizes), types)
        length = max(sizes)
        radius = [
            d.pick("radius", (0.0, 0.3, 1.0, 3.0)) * math.sqrt(length)
            for _ in range(1 if d.chance(0.7) else len(sizes))
        ]
        options["normalize"] = d.pick("normalize", (True, False), (3, 1))
        if not options["normalize"]:
            power = oracle.plane([x[np.isfinite(x)] for x in series])
            radius = [math.ldexp(one, power) for one in radius]
        exclusion = d.amount("exclusion", (0, 1, 0.4, length), None)
        least = 2 * max(points_of(exclusion, size, 0.25) for size in sizes) + 2
        options |= {
            "radius": radius[0] if len(radius) == 1 else radius,
            "exclusion": exclusion,
            "max_points": d.amount("max_points", (least, least + 1, 2 * least, 999), 1_000_000),
            "precision": d.pick("precision", ("auto", "float64"), (3, 1)),
            "update.final": d.pick("update.final", (True, False), (4, 1)),
            "cuts": d.whole(0, 2**31),
        }
        return Case(
            self.name,
            {"X": X, "points": points},
            options,
            types,
            relation=self.draw_relation(d),
        )

    def possible(self, case: Case) -> bool:
        X, options = case.data["X"], case.options
        radius = options["radius"]
        least = [2 * points_of(options["exclusion"], int(n), 0.25) + 2 for n in X.lengths]
        return (
            super().possible(case)
            and len(case.data["points"]) == 1
            and X.lengths.min() > min(1, X.n_channels - 1)
            and X.n_channels == case.data["points"].n_channels
            and (not isinstance(radius, list | tuple) or len(radius) == len(X))
            and options["max_points"] >= max(2, *least)
        )

    def cuts(self, case: Case) -> list[int]:
        """Where the stream is cut: nowhere, anywhere, or after every point."""
        n_points = int(case.data["points"].lengths[0])
        rng = np.random.default_rng(case.options["cuts"])
        kind = rng.integers(8)
        if kind == 0 and n_points <= 60:
            return list(range(1, n_points))
        return np.sort(rng.integers(0, n_points + 1, int(rng.integers(0, 9)))).tolist()

    def call(self, case: Case, how: How) -> dict:
        options = {k: v for k, v in case.given().items() if k != "cuts"}
        model = self.target(**options, **how.options(self.target))
        model.fit(case.data["X"].give())
        (points,) = case.data["points"].give()
        n_points = int(case.data["points"].lengths[0])
        several = case.data["X"].n_channels > 1

        def piece(start: int, stop: int) -> Any:
            return points[:, start:stop] if several else points[start:stop]

        edges = [0, *self.cuts(case), n_points]
        final = case.options["update.final"]
        answers = [
            model.update(piece(start, stop), final=final and number == len(edges) - 2)
            for number, (start, stop) in enumerate(pairwise(edges))
        ]
        check(model.n_points_ == (0 if final else n_points), "n_points_", model.n_points_)
        found = {}
        for row in range(len(case.data["X"])):
            found[f"distances {row}"] = np.concatenate([one[0][row] for one in answers])
            found[f"starts {row}"] = np.concatenate([one[1][row] for one in answers])
        return found

    def every(self, case: Case) -> dict:
        """All windows within the radius, however much they overlap."""
        options = case.options | {"exclusion": 0, "cuts": 0, "update.final": True}
        return self.call(Case(self.name, case.data, options, case.types), How("numba"))

    def check(self, case: Case, found: dict) -> None:
        options, line = case.options, case.data["points"].series[0]
        radius, every = options["radius"], self.every(case)
        for row, pattern in enumerate(case.data["X"].series):
            length = pattern.shape[1]
            n_windows = max(0, line.shape[1] - length + 1)
            starts, distances = every[f"starts {row}"], every[f"distances {row}"]
            check((np.diff(starts) > 0).all(), "all windows: order", starts)
            limit = radius[row] if isinstance(radius, list | tuple) else radius
            if n_windows:
                warp, normalize = Search.warp(self, case), options["normalize"]
                D, slack = oracle.match_rows(pattern, line, warp, normalize)
                slack = slack + RELATIVE * np.where(np.isfinite(D), D, 0)
                inside = np.zeros(n_windows, bool)
                inside[starts] = True
                close("distances", distances, D[starts], slack[starts], 0.0)
                check(not (~inside & (D + slack < limit)).any(), "a window is missing")
                check(not (inside & (D - slack > limit)).any(), "a window is too far")
            exclusion = points_of(options["exclusion"], length, 0.25)
            wanted = reported(
                dict(zip(starts.tolist(), distances.tolist(), strict=True)),
                *(n_windows, exclusion, options["max_points"] // 2, options["update.final"]),
            )
            same("starts", found[f"starts {row}"].tolist(), wanted)
            kept = np.isin(starts, wanted)
            same("distances of matches", found[f"distances {row}"], distances[kept])

    def relate_forms(self, case, found, call):
        same("another form of the data", call(plain(case)), found)

    def relate_cuts(self, case, found, call):
        """Other cuts report the same."""
        options = case.options | {"cuts": case.options["cuts"] + 1}
        same("other cuts", call(Case(self.name, case.data, options, case.types)), found)

    def relate_alone(self, case, found, call):
        """A pattern alone has the matches that it has among others."""
        X, radius = case.data["X"], case.options["radius"]
        for row in range(len(X)):
            alone = radius[row] if isinstance(radius, list | tuple) else radius
            options = case.options | {"radius": alone}
            data = case.data | {"X": X.take([row])}
            again = call(Case(self.name, data, options, case.types))
            for part in ("starts", "distances"):
                same("a pattern alone", again[f"{part} 0"], found[f"{part} {row}"])

    def relate_scale(self, case, found, call, power):
        other = scaled(case, power)
        if other is None:
            return
        raw, radius = not case.options["normalize"], case.options["radius"]
        if raw:
            many = isinstance(radius, list | tuple)
            radius = [math.ldexp(one, power) for one in (radius if many else [radius])]
            options = case.options | {"radius": radius if many else radius[0]}
            other = Case(self.name, other.data, options, case.types)
        again = call(other)
        for key in found:
            scales = raw and key.startswith("distances")
            wanted = np.ldexp(found[key], power) if scales else found[key]
            same(f"scaled by a power of two {key.split()[0]}", again[key], wanted)


def reported(
    near: dict[int, float], n_windows: int, exclusion: int, grid: int, final: bool
) -> list[int]:
    """Matches of a stream, by the rule of the docstring, in plain loops.

    A window is a match if all nearer windows around it are none, and no match if one of them is a
    match. Every `grid` windows, those that are undecided after `grid` more are decided as if the
    stream ended here.
    """
    key = {start: (distance, start) for start, distance in near.items()}
    decided: dict[int, bool] = {}

    starts = sorted(near)

    def around(start: int, seen: float) -> list[int]:
        first = bisect_left(starts, start - exclusion)
        beside = starts[first : bisect_right(starts, start + exclusion)]
        return [one for one in beside if one != start and one < seen]

    def settle(known: dict[int, bool], seen: float, ended: bool) -> None:
        changed = True
        while changed:
            changed = False
            for start in [one for one in key if one < seen and one not in known]:
                others = around(start, seen)
                if any(known.get(one) for one in others):
                    known[start] = False
                elif (ended or start + exclusion < seen) and all(
                    known.get(one) is False for one in others if key[one] < key[start]
                ):
                    known[start] = True
                changed |= start in known

    for seen in range(grid, n_windows + 1, grid):
        settle(decided, seen, False)
        late = [one for one in key if one < seen - grid and one not in decided]
        if late:
            ended = dict(decided)
            settle(ended, seen, True)
            decided |= {one: ended[one] for one in late}
            settle(decided, seen, False)
    settle(decided, n_windows, final)
    return sorted(one for one in decided if decided[one])
