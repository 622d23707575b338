"""The recipe of the shapelet transformer."""

from __future__ import annotations

import math
from itertools import pairwise
from typing import Any, NamedTuple

import numpy as np

from . import oracle
from .case import LISTS, Case
from .compare import check, close, same
from .draw import Draw
from .recipe import HAS_PANDAS, How, Recipe, check_rows, draw_state, plain, scaled
from .recipes_models import all_cuts
from .recipes_neighbors import draw_labels, halves

FEATURES = ("distance", "start", "count")
#: Differences of scores that roundings of sums explain, of their size.
CLOSE = 1e-9


class Kind(NamedTuple):
    """What shapelets share that are compared with the same windows."""

    length: int
    dilation: int
    normalized: bool
    channel: int


def dilated_windows(line: np.ndarray, kind: Kind, power: int) -> oracle.Windows:
    """All windows of a series, in the order of their starts: plain ones of every d-th point."""
    d = kind.dilation
    count = max(0, len(line) - (kind.length - 1) * d)
    phases = [oracle.Windows.of(line[p::d], kind.length, power) for p in range(min(d, count))]
    if not phases:
        return oracle.Windows.of(line[:0], kind.length, power)
    place = np.concatenate([np.arange(p, count, d) for p in range(len(phases))])
    order = np.argsort(place)
    fields = zip(*(one[:5] for one in phases), strict=True)
    return oracle.Windows(*(np.concatenate(one)[order] for one in fields), power)


def to_windows(values: np.ndarray, line: np.ndarray, kind: Kind) -> tuple[np.ndarray, np.ndarray]:
    """Distances of a shapelet to the windows of a series, and how far they may be off."""
    power = oracle.plane([values, line])
    query = oracle.Windows.of(values, kind.length, power)
    windows = dilated_windows(line, kind, power)
    D, slack = oracle.pair_distances(query, windows, kind.normalized)
    root = math.sqrt(kind.length)
    return D[0] / root, slack[0] / root + 1e-13 * D[0]


class Line(NamedTuple):
    """All candidates of a kind and their distances to all series, a row each."""

    kind: Kind
    series: np.ndarray
    start: np.ndarray
    distances: np.ndarray
    slack: np.ndarray

    @classmethod
    def of(cls, kind: Kind, series: tuple[np.ndarray, ...]) -> Line:
        lines = [one[kind.channel] for one in series]
        power = oracle.plane(lines)
        parts = [dilated_windows(line, kind, power) for line in lines]
        windows = oracle.Windows(
            *(np.concatenate(one) for one in zip(*(part[:5] for part in parts), strict=True)), power
        )
        D, slack = oracle.pair_distances(windows, windows, kind.normalized)
        counts = np.array([len(part.raw) for part in parts])
        firsts, root = np.cumsum(counts) - counts, math.sqrt(kind.length)
        start = np.concatenate([np.arange(count) for count in counts])
        least = np.minimum.reduceat(D, firsts, axis=1) / root
        error = np.maximum.reduceat(slack, firsts, axis=1) / root + 1e-13 * least
        return cls(kind, np.repeat(np.arange(len(lines)), counts), start, least, error)


def scores(
    D: np.ndarray, slack: np.ndarray, labels: np.ndarray, criterion: str
) -> tuple[np.ndarray, np.ndarray]:
    """The least and the largest score that lines of distances may have."""
    if criterion == "information_gain":
        return gains(D, slack, labels)
    return (statistics if criterion == "f_statistic" else gaps)(D, slack, labels)


def gains(D: np.ndarray, slack: np.ndarray, labels: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Information gain of the best cut in nats."""
    n = len(labels)
    none = np.zeros(len(D))
    if n < 2:
        return none, none
    rules = labels, np.ones(labels.max() + 1), np.ones(n), 1, 0.0
    low = all_cuts(D, slack, *rules)
    least = np.where(low.certain, low.gain, 0.0).max(axis=1)
    largest = np.where(np.isfinite(low.gain), low.gain, 0.0).max(axis=1)
    # distances that are not apart for certain may come in any order
    unsure = ~(low.certain | np.isneginf(low.gain)).all(axis=1)
    unsure |= (np.diff(np.sort(D, axis=1), axis=1) <= 2 * slack.max(axis=1, keepdims=True)).any(1)
    shares = np.bincount(labels) / n
    shares = shares[shares > 0]
    most = float(-(shares * np.log(shares)).sum())
    return np.maximum(least, 0.0), np.where(unsure, most, largest)


def statistics(D: np.ndarray, slack: np.ndarray, labels: np.ndarray) -> tuple[Any, Any]:
    """F of an analysis of variance: both sums of squares move by the norm of the errors at most."""
    n, none = D.shape[1], np.zeros(len(D))
    groups = np.unique(labels)
    if len(groups) < 2 or len(groups) == n:
        return none, none
    between, within = np.zeros(len(D)), np.zeros(len(D))
    for one in groups:
        members = D[:, labels == one]
        mean = members.mean(axis=1, keepdims=True)
        between += members.shape[1] * np.square(mean[:, 0] - D.mean(axis=1))
        within += np.square(members - mean).sum(axis=1)
    off = np.sqrt(np.square(slack + 1e-14 * D).sum(axis=1))
    ratio = (n - len(groups)) / (len(groups) - 1)

    def f(b: np.ndarray, w: np.ndarray) -> np.ndarray:
        with np.errstate(all="ignore"):
            return np.where(w > 0, ratio * np.square(b / w), np.where(b > 0, np.inf, 0.0))

    b, w = np.sqrt(between), np.sqrt(within)
    return f(np.maximum(b - off, 0), w + off), f(b + off, np.maximum(w - off, 0))


def gaps(D: np.ndarray, slack: np.ndarray, labels: np.ndarray) -> tuple[Any, Any]:
    """The gap of u-shapelets: four numbers, each off by no more than a distance."""
    n = D.shape[1]
    best = np.full(len(D), -np.inf)
    ordered = np.sort(D, axis=1)
    for size in range(2, n - 1):
        near, far = ordered[:, :size], ordered[:, size:]
        gap = far.mean(axis=1) - far.std(axis=1) - near.mean(axis=1) - near.std(axis=1)
        best = np.maximum(best, gap)
    if n < 4:
        best[:] = 0.0
    off = 4 * slack.max(axis=1) + 1e-12 * D.max(axis=1)
    return best - off, best + off


CRITERIA = ("information_gain", "f_statistic", "separation")


def supervised(options: dict) -> bool:
    """Whether classes are looked at: they are given, and the criterion is one of classes."""
    return options["fit.supervised"] and options["criterion"] != "separation"


class Transformer(Recipe):
    name = "skts.ShapeletTransformer"
    methods = ("fit", "fit_transform", "get_feature_names_out", "set_output", "transform")
    relations = ("scale", "forms", "alone", "output")

    def draw(self, d: Draw) -> Case:
        X, Q = halves(d, n := d.whole(1, 8), d.whole(1, 2), 40 if d.chance(0.9) else 130)
        if any(not np.isfinite(x).all() for x in (*X.series, *Q.series)):
            raise ValueError("series of a transformer are finite")
        shortest = int(X.lengths.min())
        lengths = d.pick("lengths", ("auto", "one", "some", "shares"), (1, 2, 2, 1))
        steps = d.pick("dilations", ("auto", "one", "some"), (2, 2, 1))
        most = d.pick("max_candidates", (None, 1, 20, 200), (3, 1, 3, 2))
        if most is None and shortest > 40:
            most = 200
        features = (["distance"], ["start", "count"], ["count", "distance"])
        options = {
            "n_shapelets": d.pick("n_shapelets", (None, 1, 3, 12), (3, 1, 2, 2)),
            "max_candidates": most,
            "lengths": {
                "auto": "auto",
                "one": [d.whole(1, min(shortest, 12))],
                "some": [d.whole(1, shortest), d.whole(1, min(shortest, 6))],
                "shares": [0.5, 1 / 3],
            }[lengths],
            # an extent that fits: the first is 1
            "dilations": {"auto": "auto", "one": [1], "some": [1, d.whole(2, 5)]}[steps],
            "normalized": d.pick("normalized", ("auto", 0.5, 0.0, 1.0), (2, 1, 1, 1)),
            "criterion": d.pick("criterion", CRITERIA, (2, 2, 1)),
            "max_class_share": d.pick("max_class_share", ("auto", 0.3, 1.0), (2, 1, 1)),
            "percentiles": d.pick("percentiles", ([5, 10], [0, 0], [0, 100], [50.0, 50.0])),
            "features": d.pick("features", (list(FEATURES), *features), (4, 1, 1, 1)),
            "random_state": d.whole(0, 99),
            "fit.supervised": d.pick("y", (True, False), (3, 1)),
        }
        y, types = draw_labels(d, n), {}
        draw_state(d, types)
        return Case(
            self.name, {"X": X, "y": y, "Q": Q}, options, types, relation=self.draw_relation(d)
        )

    def possible(self, case: Case) -> bool:
        X, Q, options = case.data["X"], case.data["Q"], case.options
        if not super().possible(case) or len(case.data["y"]) != len(X):
            return False
        if options["max_candidates"] is None and X.lengths.min() > 40:
            return False
        shortest, lengths = int(X.lengths.min()), self.lengths(case)
        fits = 0 < min(lengths) and max(lengths) <= shortest
        return fits and Q.goes_with(X)

    def lengths(self, case: Case) -> list[int]:
        """Lengths of candidates, ascending."""
        shortest, given = int(case.data["X"].lengths.min()), case.options["lengths"]
        if given == "auto":
            if case.options["max_candidates"] is None:
                least = min(3, shortest)
                most = max(least, shortest // 2)
                return sorted({int(one) for one in np.linspace(least, most, 10)})
            known = [one for one in (7, 9, 11) if one <= shortest]
            return known or [max(1, shortest // 2 if shortest > 5 else shortest)]
        points = (
            one if isinstance(one, int) else max(1, int(one * shortest + 1e-9)) for one in given
        )
        return sorted(set(points))

    def kinds(self, case: Case) -> list[Kind]:
        """Kinds of candidates, in the order in which the first of equal ones is chosen."""
        shortest, given = int(case.data["X"].lengths.min()), case.options["dilations"]
        share, found = case.options["normalized"], []
        if share == "auto":
            share = 0.8 if case.options["max_candidates"] is not None else 1.0
        for length in self.lengths(case):
            most = (shortest - 1) // (length - 1) if length > 1 else 1
            steps = [2**k for k in range(9)] if given == "auto" else sorted(set(given))
            both = (
                (False,) if length < 3 or share == 0 else (True,) if share == 1 else (True, False)
            )
            found += [
                Kind(length, step, normalized, channel)
                for step in steps
                if step <= most
                for normalized in both
                for channel in range(case.data["X"].n_channels)
            ]
        return found

    def call(self, case: Case, how: How) -> dict:
        X, Q = case.data["X"].give(), case.data["Q"].give()
        y = case.data["y"] if case.options["fit.supervised"] else None
        model = self.target(**case.given(), **how.options(self.target))
        found = {"X transform": model.fit_transform(X, y), "Q transform": model.transform(Q)}
        found["names"] = np.array(model.get_feature_names_out(), str)
        rows = model.shapelets_
        found["values"] = np.concatenate([one.values for one in rows])
        for field in rows[0]._fields[1:-1]:
            found[field] = np.array([getattr(one, field) for one in rows])
        found["label"] = np.array([str(one.label) for one in rows])
        if case.relation == "output" and HAS_PANDAS:
            frame = model.set_output(transform="pandas").transform(Q)
            check(list(frame.columns) == list(found["names"]), "set_output: columns")
            check_rows(frame, Q)
            same("set_output", frame.to_numpy(), found["Q transform"])
        return found

    # -- what must hold

    def check(self, case: Case, found: dict) -> None:
        X, options = case.data["X"], case.options
        n, features = len(found["start"]), options["features"]
        names = [f"shapelet{k}_{feature}" for feature in features for k in range(n)]
        check(found["names"].tolist() == names, "get_feature_names_out")
        labels = [str(label) for label in case.data["y"]]
        if not supervised(options):
            labels = ["None"] * len(X)
        kinds, allowed = self._kinds_of(found), self.kinds(case)
        begins = np.cumsum(found["length"]) - found["length"]
        for k, kind in enumerate(kinds):
            check(kind in allowed, "shapelet: kind", kind)
            row, start = int(found["series"][k]), int(found["start"][k])
            line = X.series[row][kind.channel]
            values = found["values"][begins[k] : begins[k] + kind.length]
            stop = start + (kind.length - 1) * kind.dilation + 1
            check(0 <= start and stop <= len(line), "shapelet: place", (row, start))
            same("shapelet: values", values, line[start : stop : kind.dilation])
            check(found["label"][k] == labels[row], "shapelet: label")
            self._check_threshold(case, labels, values, kind, row, float(found["threshold"][k]))
            for part in ("X", "Q"):
                table = found[f"{part} transform"].reshape(len(case.data[part]), len(features), n)
                self._check_features(case.data[part], table[:, :, k], features, values, kind,
                                     float(found["threshold"][k]))  # fmt: skip
        self._check_choice(case, found, kinds, labels)

    def _kinds_of(self, found: dict) -> list[Kind]:
        columns = (found[name].tolist() for name in Kind._fields)
        return [Kind(*row) for row in zip(*columns, strict=True)]

    def _check_threshold(self, case, labels, values, kind, row, threshold) -> None:
        """It is a quantile of the distances to some other series of the class."""
        low, high = case.options["percentiles"]
        others = [k for k, label in enumerate(labels) if label == labels[row] and k != row]
        for partner in others or [row]:
            D, slack = to_windows(values, case.data["X"].series[partner][kind.channel], kind)
            first, last = (min(len(D) - 1, int(p / 100 * len(D))) for p in (low, high))
            ordered, off = np.sort(D)[first : last + 1], slack.max()
            if (np.abs(ordered - threshold) <= off + CLOSE * ordered).any():
                return
        check(False, "threshold: no such quantile", threshold)

    def _check_features(self, sample, table, features, values, kind, threshold) -> None:
        for row, x in enumerate(sample.series):
            line = x[kind.channel]
            given = dict(zip(features, table[row].tolist(), strict=True))
            if len(line) < (kind.length - 1) * kind.dilation + 1:
                wanted = {"distance": math.inf, "start": -1.0, "count": 0.0}
                check(given == {name: wanted[name] for name in features}, "features: short", given)
                continue
            D, slack = to_windows(values, line, kind)
            least = int(np.argmin(D))
            if "distance" in given:
                close("distance", given["distance"], D[least], slack.max())
            if "start" in given:
                at = int(given["start"])
                check(0 <= at < len(D) and at == given["start"], "start: outside", at)
                nearer = D[at] - slack[at] <= D[least] * (1 + CLOSE) + slack[least]
                check(nearer, "start: farther", f"{at}: {D[at]}, {least}: {D[least]}")
            if "count" in given:
                off = 2 * slack + CLOSE * D
                low, high = ((D <= threshold + sign * off).sum() for sign in (-1, 1))
                check(low <= given["count"] <= high, "count", f"{given['count']}: {low}..{high}")

    def _check_choice(self, case, found, kinds, labels) -> None:
        options, chosen = case.options, len(kinds)
        places = [*zip(kinds, found["series"].tolist(), found["start"].tolist(), strict=True)]
        check(len(set(places)) == chosen, "shapelets: one is there twice")
        count = options["n_shapelets"]
        most, none = options["max_candidates"], np.isnan(found["score"])
        check(none.all() or not none.any(), "score: some were not scored")
        if most is not None:
            check(chosen <= most, "shapelets: more than were drawn")
            check(none.all() or count is not None, "score: where all are kept")
        if none.all():
            kept = count is None or (not supervised(options) and chosen <= count)
            check(most is not None and kept, "score: nothing was scored")
            order = [(not k.normalized, *k[:2], k.channel, *rest) for k, *rest in places]
            check(order == sorted(order), "shapelets: order")
            return
        if count is None:
            count = min(10 * len(case.data["X"]), 1000)
        check(chosen <= count, "shapelets: too many")
        self._check_best(case, found, places, labels, count)

    def _check_best(self, case, found, places, labels, count) -> None:
        """Scores are right, and no candidate that may be chosen has a better one."""
        options = case.options
        names, y = np.unique(labels, return_inverse=True)
        share = options["max_class_share"]
        quota = max(1, math.ceil((1 / len(names) if share == "auto" else share) * count - 1e-9))
        name = options["criterion"] if supervised(options) else "separation"
        lines = {}
        for kind in self.kinds(case):
            line = Line.of(kind, case.data["X"].series)
            lines[kind] = line, *scores(line.distances, line.slack, y, name)
        for (kind, row, start), score in zip(places, found["score"].tolist(), strict=True):
            line, low, high = lines[kind]
            at = np.flatnonzero((line.series == row) & (line.start == start))[0]
            close_to = CLOSE * max(1.0, abs(low[at])) if np.isfinite(low[at]) else 0.0
            right = low[at] - close_to <= score <= high[at] * (1 + CLOSE) + close_to
            check(right, "score", f"{score} of {places}: {low[at]} to {high[at]}")
        check(all(a >= b for a, b in pairwise(found["score"].tolist())), "score: order")
        taken = np.zeros((len(y), 3, int(max(case.data["X"].lengths))), bool)
        left = [quota] * len(names)
        for number in range(len(places) + 1):
            if options["max_candidates"] is None and number < count:
                wanted = found["score"][number] if number < len(places) else -math.inf
                open_to = [left[one] for one in y]
                self._check_rest(lines, wanted, taken, open_to)
                if number < len(places):
                    self._check_twins(case, *places[number], taken, open_to)
            if number < len(places):
                kind, row, start = places[number]
                points = taken[row, kind.channel, start:][: self._extent(kind)]
                check(not points.any(), "shapelets: overlap")
                points[:] = True
                left[y[row]] -= 1
                check(left[y[row]] >= 0, "shapelets: too many of a class")

    def _check_rest(self, lines: dict, wanted: float, taken: np.ndarray, left: list) -> None:
        """No candidate that overlaps nothing that is taken is better for certain."""
        slack = CLOSE * max(1.0, abs(wanted)) if wanted > -math.inf else 0.0
        for kind, (line, low, _) in lines.items():
            better = low > wanted + slack if wanted > -math.inf else np.ones(len(low), bool)
            for at in np.flatnonzero(better).tolist():
                row, start = int(line.series[at]), int(line.start[at])
                points = taken[row, kind.channel, start:][: self._extent(kind)]
                check(
                    points.any() or left[row] == 0,
                    "a better shapelet is there",
                    f"{kind} {row} {start}: {low[at]}, not {wanted}",
                )

    def _check_twins(self, case, kind, row, start, taken, left) -> None:
        """No candidate before the chosen one has the same points, and could be chosen as well."""
        extent = self._extent(kind)
        for earlier in range(row + 1):
            line = case.data["X"].series[earlier][kind.channel]
            free = [
                at
                for at in range(start if earlier == row else len(line) - extent + 1)
                if left[earlier] > 0 and not taken[earlier, kind.channel, at : at + extent].any()
            ]
            wanted = case.data["X"].series[row][kind.channel][start : start + extent]
            twins = [
                at
                for at in free
                if np.array_equal(line[at : at + extent : kind.dilation], wanted[:: kind.dilation])
            ]
            check(not twins, "not the first of equal ones", f"{kind} {row} {start}: {earlier}")

    def _extent(self, kind: Kind) -> int:
        return (kind.length - 1) * kind.dilation + 1

    # -- relations

    def relate_forms(self, case, found, call):
        same("another form of the data", call(plain(case)), found)

    def relate_scale(self, case, found, call, power):
        other = scaled(case, power)
        if other is None or case.options["normalized"] != 1.0 or min(self.lengths(case)) < 3:
            return
        again = call(other)
        for key in found:
            wanted = np.ldexp(found[key], power) if key == "values" else found[key]
            same(f"scaled by a power of two {key}", again[key], wanted)

    def relate_alone(self, case, found, call):
        """A series alone has the features that it has among others."""
        Q = case.data["Q"]
        if len(set(Q.lengths)) > 1 or Q.form not in (*LISTS, "array3d"):
            return
        for row in range(len(Q)):
            again = call(plain(case.but(Q=Q.take([row]))))
            same("a series alone", again["Q transform"], found["Q transform"][[row]])
