"""Recipe of `skts.DiscordDetector`: neighbours that are apart, from the matrix of distances."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np

from . import oracle
from .case import Case, Sample
from .channel_lines import can_count, draw_channels, draw_counting, mean_of_channels
from .compare import LOOKED_AT, check, close, same
from .draw import Draw
from .recipe import How, Recipe, scaled
from .recipes_motifs import PRECISIONS, _Windowed, certified_row

#: Channels of a series.
DEPTHS = (1, 2, 3, 6)
#: Choices among neighbours that rounding leaves open, before a window is let go.
MOST_CHOICES = 200
#: Windows of a line beyond which not all choices of all windows are followed.
MANY_ROWS = 300


def size(x: np.ndarray) -> int:
    """Points of a series of one channel or several."""
    return x.shape[-1]


def alike(x: np.ndarray, y: np.ndarray) -> bool:
    """Whether two series are equal but for NaN at the end."""
    rows = np.atleast_2d(x), np.atleast_2d(y)
    columns = max(size(x), size(y))
    x, y = (np.pad(one, ((0, 0), (0, columns - size(one))), constant_values=np.nan) for one in rows)
    return np.array_equal(x, y, equal_nan=True)


def pairs_of_channels(
    x: np.ndarray, others: list[np.ndarray], length: int, options: dict[str, Any]
) -> tuple[np.ndarray, np.ndarray]:
    """As `pairs_of`, of one channel or several, by the options of the estimator."""
    normalize = options["normalize"] and length > 2
    if x.ndim == 1:
        return pairs_of(x, others, length, normalize)
    each = [pairs_of(x[c], [one[c] for one in others], length, normalize) for c in range(len(x))]
    distances, slack = (np.stack(part) for part in zip(*each, strict=True))
    number = options["dimensions"] or len(x)
    return mean_of_channels(distances, slack, number, options["include"], worst=True)


def pairs_of(
    x: np.ndarray, others: list[np.ndarray], length: int, normalize: bool
) -> tuple[np.ndarray, np.ndarray]:
    """Distances of the windows of a series to those of others, behind each other, and slack."""
    power = oracle.plane([one[np.isfinite(one)] for one in (x, *others)])
    mine = oracle.Windows.of(x, length, power)
    parts = [
        oracle.pair_distances(mine, oracle.Windows.of(one, length, power), normalize)
        for one in others
    ]
    return np.hstack([part[0] for part in parts]), np.hstack([part[1] for part in parts])


def possible_scores(
    row: np.ndarray, slack: np.ndarray, near: np.ndarray, k: int
) -> list[tuple[float, float]] | None:
    """Distances to the k-th neighbour that rounding allows, each with its slack.

    ``near[j]`` are the windows that are gone once j is chosen. None where there are too many.
    """
    slack = slack + 1e-9 * np.where(np.isfinite(row), row, 0.0)
    found, waiting = [], [(np.isfinite(row), 0)]
    for _ in range(MOST_CHOICES):
        if not waiting:
            return found
        left, rank = waiting.pop()
        if not left.any():
            found.append((math.nan, 0.0))
            continue
        highest = (row + slack)[left].min()
        chosen = np.flatnonzero(left & (row - slack <= highest))
        if rank == k - 1:
            found += [(float(row[j]), float(slack[j])) for j in chosen]
        else:
            # windows that take the same ones away are one choice
            different = {near[j].tobytes(): j for j in chosen}
            waiting += [(left & ~near[j], rank + 1) for j in different.values()]
    return None


def score_of(row: np.ndarray, near: np.ndarray, k: int) -> float:
    """Distance to the k-th neighbour; of neighbours exactly as near as each other the first."""
    left = np.isfinite(row)
    place = -1
    for _ in range(k):
        if not left.any():
            return math.nan
        place = int(np.where(left, row, np.inf).argmin())
        left &= ~near[place]
    return float(row[place])


def settled(
    found: list[list[tuple[float, float]] | None],
    certified: Callable[[int], np.ndarray],
    rows: np.ndarray,
    near: np.ndarray,
    k: int,
) -> list[list[tuple[float, float]] | None]:
    """Scores of which rounding leaves several, of some rows by the distances of the package."""
    unsettled = [
        i for i, some in enumerate(found) if some and np.ptp([v for v, _ in some] or [0]) != 0
    ]
    for i in unsettled[:: 1 + len(unsettled) // LOOKED_AT]:
        row = np.where(np.isfinite(rows[i]), certified(i), np.inf)
        found[i] = [(score_of(row, near, k), 0.0)]
    return found


def scores_of_rows(
    rows: np.ndarray, slack: np.ndarray, near: np.ndarray, k: int
) -> list[list[tuple[float, float]] | None]:
    """`possible_scores` of every row; of many rows some are let go that leave a choice."""
    if len(rows) <= MANY_ROWS:
        return [possible_scores(*one, near, k) for one in zip(rows, slack, strict=True)]
    each, left = np.arange(len(rows)), np.isfinite(rows)
    loose = slack + 1e-9 * np.where(left, rows, 0.0)
    sole = np.ones(len(rows), bool)
    for _ in range(k):
        highest = np.where(left, rows + loose, np.inf).min(axis=1)
        chosen = np.where(left, rows, np.inf).argmin(axis=1)
        rivals = left & (rows - loose <= highest[:, np.newaxis])
        some = left.any(axis=1)
        sole &= ~some | (rivals.sum(axis=1) == 1)
        values = np.where(some, rows[each, chosen], np.nan)
        errors = np.where(some, loose[each, chosen], 0.0)
        left &= ~near[chosen]
    open_rows = np.flatnonzero(~sole)[: MANY_ROWS // 10]
    found: list[Any] = [None] * len(rows)
    for row in np.flatnonzero(sole):
        found[row] = [(float(values[row]), float(errors[row]))]
    for row in open_rows:
        found[row] = possible_scores(rows[row], slack[row], near, k)
    return found


class Detector(_Windowed):
    """The estimator: training series, others, and all methods."""

    name = "skts.DiscordDetector"
    methods = (
        "decision_function",
        "fit",
        "fit_predict",
        "predict",
        "score_points",
        "score_samples",
        "update",
    )
    relations = ("scale", "forms", "alone", "update")

    @property
    def defaults(self) -> dict[str, Any]:
        return super().defaults | {"update.points": 0, "update.max_points": None}

    def draw(self, d: Draw) -> Case:
        count = d.pick("n_samples", (1, 2, 4), (3, 2, 1))
        lengths = [d.size(1, 100 // count) for _ in range(count)]
        length = min(*lengths, *lengths, d.size(1, 16))
        if d.chance(0.02):
            lengths[-1] = d.near_edge(1100) + length - 1
        shapes = [(1, n) for n in (*lengths, *[d.size(length, 50) for _ in range(2)])]
        series = d.numbers(shapes, holes=True)
        options = {
            "window": length,
            "n_neighbors": d.pick("n_neighbors", (1, 2, 3), (2, 2, 1)),
            "exclusion": d.amount(
                "exclusion", (0, 1, 2, 0.3, 1.0, length // 2, 2 * length, 400), None
            ),
            "side": d.pick("side", ("both", "left"), (2, 1)),
            "normalize": d.pick("normalize", (True, False), (3, 1)),
            "dimensions": None,
            "include": None,
            "contamination": d.pick("contamination", ("auto", 0.1, 0.5)),
            "precision": d.pick("precision", PRECISIONS[:2], (3, 1)),
            "score_points.aggregate": d.pick("score_points.aggregate", ("max", "mean")),
            "update.points": d.whole(0, 40),
            "update.max_points": d.pick("update.max_points", (None, length, length + 9, 60)),
        }
        how = d.pick("window", ("points", "fraction", "auto"), (4, 1, 1))
        if how == "fraction":
            options["window"] = round(float(d.rng.uniform(0.05, 0.5)), 3)
        elif how == "auto":
            options["window"] = "auto"
        relation, depth = self.draw_relation(d), d.pick("channels", DEPTHS, (8, 2, 2, 1))
        if depth > 1:
            # several channels take the time of several cases
            lengths = [max(2, n // 2) for n in lengths]
            options["window"] = min(*lengths, *lengths, length) if how == "points" else "auto"
            options |= draw_counting(d, depth, several=False)
            later = [d.size(max(2, length), 25) for _ in range(2)]
            series = draw_channels(d, [*lengths, *later], depth)
            relation = relation if relation in ("alone", "update") else None
        data = {
            "X": d.form(series[:count], label=" X", spare=False),
            "Q": Sample(tuple(series[count:])),
        }
        return Case(self.name, data, options, relation=relation)

    def possible(self, case: Case) -> bool:
        window = case.options["window"]
        lengths = np.concatenate([one.lengths for one in case.data.values()])
        deep = case.data["X"].n_channels > 1
        return (
            Recipe.possible(self, case)
            and lengths.min() >= (window if isinstance(window, int) else 1)
            and can_count(case)
            and not (deep and case.relation not in (None, "alone", "update"))
        )

    def lines(self, case: Case) -> list[np.ndarray]:
        """The series that `fit` sees: padding with NaN is a gap here."""
        X = case.data["X"]
        width = X.lengths.max() if X.form == "padded" else 0
        missing = [(0, max(0, width - one.shape[1])) for one in X.series]
        padded = [
            np.pad(one, ((0, 0), more), constant_values=np.nan) if more[1] else one
            for one, more in zip(X.series, missing, strict=True)
        ]
        return padded if X.n_channels > 1 else [one[0] for one in padded]

    def asked(self, case: Case) -> list[np.ndarray]:
        """Further series."""
        Q = case.data["Q"]
        return list(Q.series) if Q.n_channels > 1 else Q.lines

    def call(self, case: Case, how: How) -> dict:
        options = {k: v for k, v in case.given().items() if "." not in k}
        model = self.target(**options, **how.options(self.target))
        X = case.data["X"].give()
        try:
            model.fit(X)
        except ValueError as error:
            if "There are no scores" in str(error):
                return {"no scores": np.array(True)}
            raise
        found = {
            "window": np.array(model.window_),
            "window_scores": model.window_scores_,
            "offset": np.array(model.offset_),
        }
        aggregate = case.options["score_points.aggregate"]
        fitting = [x for x in self.asked(case) if size(x) >= model.window_]
        for name, asked in (("X", X), ("Q", fitting)):
            if len(asked):
                found[f"{name} samples"] = model.score_samples(asked)
                found[f"{name} decisions"] = model.decision_function(asked)
                found[f"{name} labels"] = model.predict(asked)
                found[f"{name} points"] = model.score_points(asked, aggregate=aggregate)
        found["fit_predict"] = model.fit_predict(X)
        return found

    def refuses(self, case: Case) -> bool:
        window, shortest = case.options["window"], min(map(size, self.lines(case)))
        return isinstance(window, int) and shortest < window

    def check(self, case: Case, found: dict) -> None:
        X, options = self.lines(case), case.options
        if "no scores" in found:
            if options["window"] != "auto":
                length = self._length(options["window"], X)
                rows = [self._possible(case, x, X, row, length) for row, x in enumerate(X)]
                # of neighbours that tie one may leave room for the next, and the other none
                for possible in (one for row in rows for one in row or () if one):
                    values = [value for value, _ in possible]
                    check(any(map(math.isnan, values)), "no scores: there are some")
            return
        length = int(found["window"])
        if options["window"] != "auto":
            same("window_", length, self._length(options["window"], X))
        for row, x in enumerate(X):
            scores = found["window_scores"][row]
            n_windows = size(x) - length + 1
            check(np.isnan(scores[n_windows:]).all(), "window_scores_: beyond a series")
            self._check_scores(scores[:n_windows], self._possible(case, x, X, row, length))
        # equal series are taken for the first of them
        same_as = [next(k for k, one in enumerate(X) if alike(one, x)) for x in X]
        own = [
            found["window_scores"][k][: size(x) - length + 1]
            for k, x in zip(same_as, X, strict=True)
        ]
        self._check_answers("X", found, X, own, case)
        contamination = options["contamination"]
        if contamination == "auto":
            low, high = np.percentile(found["X samples"], [25, 75])
            wanted = low - 1.5 * (high - low)
        else:
            wanted = np.percentile(found["X samples"], 100 * contamination)
        same("offset_", found["offset"], np.array(wanted))
        same("fit_predict", found["fit_predict"], found["X labels"])
        Q = [x for x in self.asked(case) if size(x) >= length]
        self._check_new(Q, X, length, found, case)

    @staticmethod
    def _length(window: float, X: list[np.ndarray]) -> int:
        if isinstance(window, int):
            return window
        return max(1, math.ceil(window * min(map(size, X)) - 1e-9))

    def _check_new(self, Q: list, X: list, length: int, found: dict, case: Case) -> None:
        """Series that come later: only their points say what their windows score."""
        if not Q:
            return
        left = case.options["side"] == "left"
        for row, x in enumerate(Q):
            points = found["Q points"][row]
            check(np.isnan(points[size(x) :]).all(), "score_points: beyond a series")
            equal = [k for k, one in enumerate(X) if alike(one, x)]
            if equal:
                columns = min(size(x), size(X[equal[0]]))
                known = found["X points"][equal[0]]
                same("an equal series", points[:columns], known[:columns])
                check(np.isnan(points[columns:]).all(), "an equal series: beyond its points")
                continue
            others = [*X, x] if left else X
            own = len(X) if left else None
            every = self._possible(case, x, others, own, length)
            if any(one is None for one in every):
                continue
            low, high = (
                np.array([f([v for v, _ in one]) for one in every]) for f in (np.min, np.max)
            )
            loose = np.array([max((s for _, s in one), default=0.0) for one in every])
            none = np.array([all(math.isnan(v) for v, _ in one) for one in every])
            sure = none | (high - low <= loose)
            if not sure.all():
                continue  # which of several neighbours counts is open
            wanted = self._points(low, length, case)
            slack = np.full(size(x), loose.max(initial=0.0))
            same("score_points: gaps", np.isnan(points[: size(x)]), np.isnan(wanted))
            there = ~np.isnan(wanted)
            close("score_points", points[: size(x)][there], wanted[there], slack[there])
            best = np.nanmax(low) if there.any() else 0.0
            close("score_samples", found["Q samples"][row], -best, loose.max(initial=0.0))
        same("decision_function", found["Q decisions"], found["Q samples"] - found["offset"])
        same("predict", found["Q labels"], np.where(found["Q decisions"] < 0, -1, 1))

    def _check_answers(
        self, name: str, found: dict, series: list, scores: list, case: Case
    ) -> None:
        """What follows from the scores of windows that are known."""
        largest = [0.0 if np.isnan(one).all() else -np.nanmax(one) for one in scores]
        same("score_samples", np.abs(found[f"{name} samples"]), np.abs(np.array(largest)))
        for row, (x, one) in enumerate(zip(series, scores, strict=True)):
            wanted = self._points(one, size(x) - len(one) + 1, case)
            points = found[f"{name} points"][row]
            same("score_points: gaps", np.isnan(points[: size(x)]), np.isnan(wanted))
            there = ~np.isnan(wanted)
            close("score_points", points[: size(x)][there], wanted[there], 0.0, 1e-12)
        samples, decisions = found[f"{name} samples"], found[f"{name} decisions"]
        same("decision_function", decisions, samples - found["offset"])
        same("predict", found[f"{name} labels"], np.where(decisions < 0, -1, 1))

    @staticmethod
    def _points(scores: np.ndarray, length: int, case: Case) -> np.ndarray:
        """Scores of points, from those of windows."""
        found = np.full(len(scores) + length - 1, np.nan)
        for point in range(len(found)):
            some = scores[max(0, point - length + 1) : point + 1]
            some = some[~np.isnan(some)]
            if some.size:
                mean = case.options["score_points.aggregate"] == "mean"
                found[point] = some.mean() if mean else some.max()
        return found

    def _possible(
        self, case: Case, x: np.ndarray, others: list, own: int | None, length: int
    ) -> list[list[tuple[float, float]] | None]:
        """For each window of a series, what its score may be."""
        options = case.options
        exclusion = options["exclusion"]
        exclusion = length - 1 if exclusion is None else exclusion
        if isinstance(exclusion, float):
            exclusion = math.ceil(exclusion * length - 1e-9)
        if exclusion > max(map(size, self.lines(case))):
            exclusion = math.inf  # also of a longer series that follows
        counts = [size(one) - length + 1 for one in others]
        series = np.repeat(np.arange(len(others)), counts)
        start = np.concatenate([np.arange(count) for count in counts])
        distances, slack = pairs_of_channels(x, others, length, options)
        apart = np.abs(start[:, None] - start[None])
        near = (series[:, None] == series[None]) & (apart <= exclusion)
        for place, row in enumerate(distances if own is not None else ()):
            row[(series == own) & (np.abs(start - place) <= exclusion)] = np.inf
            if options["side"] == "left":
                row[(series > own) | ((series == own) & (start > place))] = np.inf
        k = options["n_neighbors"]
        found = scores_of_rows(distances, slack, near, k)
        if x.ndim > 1:
            return found

        def certified(place: int) -> np.ndarray:
            normalize = options["normalize"] and length > 2
            return certified_row(x[place : place + length], others, normalize)

        return settled(found, certified, distances, near, k)

    @staticmethod
    def _check_scores(scores: np.ndarray, possible: list) -> None:
        """Whether each score is one of those that are possible."""
        for score, values in zip(scores, possible, strict=True):
            right = values is None or any(
                (math.isnan(value) and math.isnan(score)) or abs(score - value) <= slack
                for value, slack in values
            )
            check(right, "window_scores_: wrong", f"{score!r}, not one of {values}")

    def relate_forms(self, case, found, call):
        # the NaN of a padded series is a gap here: the series is as long as the longest
        if case.data["X"].form != "padded":
            super().relate_forms(case, found, call)

    def relate_scale(self, case, found, call, power):
        gaps = case.but(X=Sample(tuple(x[None] for x in self.lines(case))))
        other = scaled(gaps, power)
        if other is None or "no scores" in found:
            return
        again = call(other)
        check(again.keys() == found.keys(), "scaled by a power of two: parts")
        for key in found:
            normalized = case.options["normalize"] and found["window"] > 2
            raw = not normalized and not key.endswith(("labels", "predict", "window"))
            wanted = np.ldexp(found[key], power) if raw else found[key]
            same(f"scaled by a power of two {key.split()[-1]}", again[key], wanted)

    def relate_update(self, case: Case, found: dict[str, Any], call: Any) -> None:
        """Points that follow later have the scores that they have all at once, or among few."""
        options, lines = case.options, self.lines(case)
        points, kept = options["update.points"], options["update.max_points"]
        if "no scores" in found or options["side"] != "left" or options["window"] == "auto":
            return
        length = self._length(options["window"], lines)
        before = [*lines[:-1], lines[-1][..., : max(0, size(lines[-1]) - points)]]
        if options["window"] != length or size(before[-1]) < length:
            return
        given = {k: v for k, v in case.given().items() if "." not in k}
        model = self.target(engine="numba", **given)
        try:
            model.fit(before)
        except ValueError as error:
            if "There are no scores" in str(error):
                return
            raise
        # an exclusion of more than the longest training series is one without an end
        longest = max(map(size, before))
        if model.exclusion_ == longest < max(map(size, lines)):
            return
        more = lines[-1][..., size(before[-1]) :]
        if kept is None:
            parts = np.split(more, sorted({min(1, points), points // 2}), axis=-1)
            scores = np.concatenate([model.update(part) for part in parts])
            same("update: window_scores_", model.window_scores_, found["window_scores"])
            count = size(lines[-1]) - length + 1
            same("update", scores, found["window_scores"][-1, count - points : count])
            return
        line, kept = before[-1], max(kept, length)
        for part in np.split(more, [points // 3], axis=-1):
            line = np.concatenate([line, part], axis=-1)
            scores = model.update(part, max_points=kept)
            if part.size and size(line) <= longest:
                series = [*lines[:-1], line]
                possible = self._possible(case, line, series, len(series) - 1, length)
                self._check_scores(scores, possible[len(possible) - size(part) :])
            line = line[..., max(0, size(line) - kept) :]

    def relate_alone(self, case: Case, found: dict[str, Any], call: Any) -> None:
        """A series alone has the scores that it has among others."""
        if "Q samples" not in found:
            return
        options = {k: v for k, v in case.given().items() if "." not in k}
        model = self.target(engine="numba", **options).fit(case.data["X"].give())
        fitting = [x for x in self.asked(case) if size(x) >= model.window_]
        for row, x in enumerate(fitting):
            same("a series alone", model.score_samples([x]), found["Q samples"][[row]])
