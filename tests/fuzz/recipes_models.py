"""Recipes of k-Shape and of shapelet trees."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from typing import Any, ClassVar, NamedTuple

import numpy as np

from . import oracle
from .case import LISTS, Case, Sample
from .compare import check, close, same
from .draw import Draw
from .recipe import How, Recipe, check_output, draw_state, plain, scaled, shapes
from .recipes_neighbors import Ambiguous, draw_labels, halves

TIE = oracle.TIE


def _apart(values: Any, limit: float, error: float = 0.2 * TIE) -> bool:
    """Whether errors of centres and products leave all values on their side of a limit."""
    return bool((np.abs(values - limit) > error).all())


class KShape(Recipe):
    name = "skts.KShapeClusterer"
    methods = (
        "fit",
        "fit_predict",
        "fit_transform",
        "get_feature_names_out",
        "partial_fit",
        "predict",
        "score",
        "set_output",
        "transform",
    )
    relations = ("scale", "forms", "alone", "output")
    loose = {"centers": 1e-6, "inertia": 1e-9, "history": 1e-9, "transform": 1e-9, "score": 1e-9,
             "batch centers": 1e-6, "batch inertia": 1e-9}  # fmt: skip

    def draw(self, d: Draw) -> Case:
        # a few are longer than what the matrices of clusters are formed of
        n, most = (d.whole(1, 4), 150) if d.chance(0.15) else (d.whole(1, 14), 70)
        X, Q = halves(d, n, d.whole(1, 3), most)
        if X.form in LISTS and d.chance(0.1):  # centres of so few points are not centred
            few = d.whole(1, 2)
            X = X.of([one[:, :few] for one in X.series])
        k = min(n, d.whole(1, 4))
        init = d.pick("init", ("random", "series", "plusplus", "centers"), (3, 2, 2, 3))
        options: dict[str, Any] = {
            "n_clusters": k,
            "init": init,
            "n_init": d.pick("n_init", ("auto", 1, 3)),
            "max_iter": d.pick("max_iter", (1, 2, 5, 100)),
            "tol": d.pick("tol", (0.0, 0.01, 0.5), (3, 1, 1)),
            "normalize": d.pick("normalize", (True, False), (3, 1)),
            "random_state": d.whole(0, 99),
            "precision": d.pick("precision", ("auto", "float64")),
            "call.also": d.pick("methods", ("queries", "score", "transform", "again", "batches")),
        }
        types: dict[str, str] = {}
        draw_state(d, types)
        if not options["normalize"] and X.dtype == "float64" and d.chance(0.3):
            # steps at a level: of what is centred away roundings are left, and little else
            level, step = 10.0 ** d.whole(-3, 3), 2.0 ** -d.whole(1, 12)
            X = X.of([level * (1 + step * (one > np.median(one))) for one in X.series])
        data = {"X": X, "Q": Q}
        if init == "centers":
            size = X.n_channels, int(X.lengths.max())
            data["init"] = Sample(tuple(d.numbers([size] * k, scales=False)), "array3d")
        return Case(self.name, data, options, types, relation=self.draw_relation(d))

    def possible(self, case: Case) -> bool:
        X, Q, options = case.data["X"], case.data["Q"], case.options
        if not super().possible(case) or len(X) < options["n_clusters"]:
            return False
        if "init" in case.data:
            init = case.data["init"]
            if len(init) != options["n_clusters"] or set(init.lengths) != {X.lengths.max()}:
                return False
        elif options["init"] == "centers":
            return False
        return Q.goes_with(X)

    def call(self, case: Case, how: How) -> dict:
        options = {k: v for k, v in case.given().items() if "." not in k}
        if "init" in case.data:
            options["init"] = np.stack(case.data["init"].series)
        model = self.target(**options, **how.options(self.target))
        X, Q = case.data["X"].give(), case.data["Q"].give()
        labels = model.fit_predict(X)
        found = {
            "labels": model.labels_,
            "shifts": model.shifts_,
            "centers": model.cluster_centers_,
            "inertia": np.float64(model.inertia_),
            "history": model.history_,
            "n_iter": np.int64(model.n_iter_),
        }
        same("fit_predict", labels, model.labels_)
        also = case.options["call.also"]
        if also == "queries":
            found["predict"], found["transform"] = model.predict(Q), model.transform(Q)
        elif also == "score":
            found["score"] = np.float64(model.score(Q))
        elif also == "transform":
            found["transform X"] = model.transform(X)
        elif also == "batches":
            # from new on, or from where the fit has ended
            if case.options["random_state"] % 2:
                model = self.target(**options, **how.options(self.target))
            for batch in (X, self._fitting(case).give(), X):
                model.partial_fit(batch)
            found["batch labels"], found["batch shifts"] = model.labels_, model.shifts_
            found["batch centers"] = model.cluster_centers_
            found["batch inertia"] = np.float64(model.inertia_)
        else:
            found["again"] = model.predict(X)
            found["names"] = np.array(model.get_feature_names_out(), str)
        if case.relation == "output":
            check_output(model, X, None, Q, model.transform(Q), model.predict(Q))
        return found

    def check(self, case: Case, found: dict) -> None:
        X, Q, options = case.data["X"], case.data["Q"], case.options
        fitted, depth = int(X.lengths.max()), X.n_channels
        centers = found["centers"].reshape(len(found["centers"]), depth, -1)
        labels, n_found = found["labels"], len(centers)
        check(centers.shape[2] == fitted, "centers: shape", centers.shape)
        norms = np.sqrt((centers**2).sum(axis=(1, 2)))
        norm = math.sqrt(fitted * depth) if fitted >= 3 else 1.0
        away = np.minimum(np.abs(norms - norm), norms)
        check((away <= 1e-9 * norm).all(), "centers: norm", norms)
        same("labels: not consecutive", np.unique(labels), np.arange(n_found, dtype=np.int32))
        check(n_found <= options["n_clusters"], "too many clusters")
        if "again" in found:
            same("predict of the training series", found["again"], labels)
        check(found["n_iter"] == len(found["history"]) <= options["max_iter"], "n_iter")
        check(found["inertia"] in found["history"], "inertia: not in the history")
        options_of = {"normalize": options["normalize"], "short": fitted < 3}
        total = 0.0
        for row, x in enumerate(X.series):
            shape = oracle.shape_of(x, width=fitted, **options_of)
            total += self._check_one(
                *(shape, centers, labels[row], found["shifts"][row]),
                found["transform X"][row] if "transform X" in found else None,
            )
        close("inertia", found["inertia"], total, 1e-9 * len(X) + self._slack(X, options_of))
        if "batch centers" in found:
            self._check_batches(X, found, options_of)
        if "predict" in found or "score" in found:
            self._check_queries(Q, centers, found, options_of)
        if "init" in case.data:
            try:
                self._follow(case, found)
            except Ambiguous:
                return

    def _fitting(self, case: Case) -> Sample:
        """The queries that are no longer than the series; the series if there are none."""
        X, Q = case.data["X"], case.data["Q"]
        rows = np.flatnonzero(Q.lengths <= X.lengths.max())
        return Q.take(rows.tolist()) if rows.size else X

    def _check_batches(self, X: Sample, found: dict, options_of: dict) -> None:
        """Compare the last batch with its centres."""
        values, total = found["batch centers"], 0.0
        centers = values.reshape(len(values), X.n_channels, -1)
        for row, x in enumerate(X.series):
            shape = oracle.shape_of(x, width=centers.shape[2], **options_of)
            label, shift = found["batch labels"][row], found["batch shifts"][row]
            total += self._check_one(shape, centers, label, shift, None)
        slack = 1e-9 * len(X) + self._slack(X, options_of)
        close("inertia of the batch", found["batch inertia"], total, slack)

    def _check_queries(self, Q: Sample, centers, found: dict, options_of: dict) -> None:
        fitted, score = centers.shape[2], 0.0
        for row, x in enumerate(Q.series):
            width = max(fitted, x.shape[1])
            wide = np.pad(centers, ((0, 0), (0, 0), (0, width - fitted)))
            shape = oracle.shape_of(x, width=width, **options_of)
            score += self._check_one(
                *(shape, wide, found["predict"][row] if "predict" in found else None, None),
                found["transform"][row] if "transform" in found else None,
            )
        if "score" in found:
            close("score", found["score"], -score, 1e-9 * len(Q) + self._slack(Q, options_of))

    def _slack(self, sample: Sample, options: dict) -> float:
        width = int(sample.lengths.max())
        return 4 * sum(oracle.shape_of(x, width=width, **options).slack for x in sample.series)

    def _check_one(self, shape, centers, label, shift, distances) -> float:
        wanted = []
        slack = 1e-11 + 4 * shape.slack
        for center in centers:
            distance, allowed, values = oracle.sbd(shape.values, center)
            wanted.append((distance, allowed, values))
        row = np.array([one[0] for one in wanted])
        if distances is not None:
            close("transform", distances, row, slack, 0.0)
        if label is None:
            return float(row.min())
        check(
            row[label] <= row.min() + TIE + 2 * slack, "label: not the nearest", f"{label}: {row}"
        )
        before = row[:label]
        check(
            not (before <= row.min() + TIE - 2 * slack).any(),
            "label: not the first of ties",
            f"{label}: {row}",
        )
        if shift is not None:
            _, allowed, values = wanted[label]
            n = shape.values.shape[1]
            lost = values.max() - values[int(shift) + n - 1]
            if int(shift) not in allowed:
                check(
                    shape.slack > 1e-13 and lost <= TIE + 2 * slack,
                    "shift",
                    f"{shift}, not {allowed}",
                )
        return float(row[label])

    def _follow(self, case: Case, found: dict) -> None:
        """Repeat all iterations from given centres, as long as nothing ties."""
        X, options = case.data["X"], case.options
        n = int(X.lengths.max())
        centered = n >= 3
        if options["normalize"]:
            kinds = {"normalize": True, "short": not centered, "width": n}
            values = [oracle.shape_of(x, **kinds) for x in X.series]
            if max(one.slack for one in values) > 1e-12:
                raise Ambiguous
            series = np.array([one.values for one in values])
        else:
            power = oracle.plane(X.series)
            series = np.zeros((len(X), X.n_channels, n))
            for row, x in enumerate(X.series):
                series[row, :, : x.shape[1]] = np.ldexp(x, -power)
        kinds = {"normalize": True, "short": not centered, "width": n}
        starts = [oracle.shape_of(x, **kinds) for x in case.data["init"].series]
        if max(one.slack for one in starts) > 1e-12:
            raise Ambiguous
        centers = np.array([one.values for one in starts])
        centers, labels, shifts, _ = self._assign(series, centers, centered)
        history: list[float] = []
        iterates, seen = [], [labels]
        for _ in range(options["max_iter"]):
            members = [labels == one for one in range(len(centers))]
            centers = np.array(
                [self._center(series[some], shifts[some], centered) for some in members]
            )
            before = labels
            centers, labels, shifts, distances = self._assign(series, centers, centered)
            history.append(float(distances.sum()))
            iterates.append((labels, centers))
            if np.array_equal(before, labels):
                best = len(history) - 1
                break
            if len(history) > 1:
                change = abs(history[-2] - history[-1])
                if not _apart(change, options["tol"] * history[-1], 1e-9 * len(X)):
                    raise Ambiguous
                if change < options["tol"] * history[-1]:
                    best = len(history) - 1
                    break
            if any(np.array_equal(labels, other) for other in seen):
                best = self._best_of(history, len(X))  # it goes in a cycle from here on
                break
            seen.append(labels)
        else:
            best = self._best_of(history, len(X))
        close("history", found["history"], history, 1e-7)
        same("labels of the iteration", found["labels"], iterates[best][0])
        close(
            "centers of the iteration",
            found["centers"].reshape(iterates[best][1].shape),
            iterates[best][1],
            1e-6,
        )

    def _best_of(self, history: list[float], n: int) -> int:
        """The first iterate that no later one beats by more than a tie of mean distances."""
        best = 0
        for number, inertia in enumerate(history):
            gain = (history[best] - inertia) / n
            if not _apart(gain, TIE):
                raise Ambiguous
            if gain > TIE:
                best = number
        return best

    def _assign(self, series, centers, centered: bool) -> tuple:
        """Labels, shifts and distances; centres that no series is nearest to move, or go."""
        moves, most = 0, 2 * len(centers) + 10
        while True:
            labels, shifts, distances = self._nearest(series, centers)
            empty = np.bincount(labels, minlength=len(centers)) == 0
            if not empty.any():
                return centers, labels, shifts, distances
            away = np.where(series.any(axis=(1, 2)), distances, 0.0)
            rivals = away.max() - away
            if not (_apart(away.max(), TIE) and _apart(rivals, TIE)):
                raise Ambiguous
            if away.max() > TIE and moves < most:
                row = int(np.argmax(rivals <= TIE))
                norm = math.sqrt(series[row].size) if centered else 1.0
                centers = centers.copy()
                centers[np.argmax(empty)] = series[row] * norm / np.linalg.norm(series[row])
                moves += 1
            else:
                centers = centers[~empty]

    def _nearest(self, series, centers) -> tuple:
        """The first of the nearest centres, and the shortest of the best shifts, for each."""
        labels, shifts, distances = [], [], []
        for x in series:
            found = [oracle.sbd(x, center) for center in centers]
            row = np.array([one[0] for one in found])
            label = int(np.argmax(row <= row.min() + TIE))
            values = found[label][2]
            if not (_apart(row - row.min(), TIE) and _apart(values.max() - values, TIE)):
                raise Ambiguous
            labels.append(label)
            shifts.append(min(found[label][1]))
            distances.append(row[label])
        return np.array(labels, np.int32), np.array(shifts), np.array(distances)

    def _center(self, members, shifts, centered: bool) -> np.ndarray:
        """The leading eigenvector of aligned members, by the rules for ties and signs."""
        rows = []
        for x, shift in zip(members, shifts, strict=True):
            n = x.shape[1]
            moved = np.zeros(x.shape)
            low, high = max(0, shift), min(n, n + shift)
            moved[:, low:high] = x[:, low - shift : high - shift]
            if centered:
                constant = np.ptp(moved, axis=1) <= 2.0**-40 * np.abs(moved).max(axis=1)
                moved -= moved.mean(axis=1, keepdims=True)
                moved[constant] = 0.0
            rows.append(moved.ravel())
        A = np.array(rows)
        values, vectors = np.linalg.eigh(A.T @ A)
        if not A.any():
            return np.zeros(members.shape[1:])
        share = values / values[-1]
        equal = share >= 1 - 1e-12
        if values[-1] <= 1e-6 * np.square(members).sum() or (share[~equal] > 1 - 1e-4).any():
            raise Ambiguous
        space = vectors[:, equal].T
        first = self._direction(space, A, math.sqrt(values[-1] * len(A)))
        found = first @ space.T @ space
        found *= (math.sqrt(found.size) if centered else 1.0) / np.linalg.norm(found)
        return found.reshape(members.shape[1:])

    def _direction(self, space, A, size: float) -> np.ndarray:
        """The sum of the members, or else the first one, that has a part in an eigenspace."""
        for vector, most in ((A.sum(axis=0), size), *((row, np.linalg.norm(row)) for row in A)):
            part = np.linalg.norm(space @ vector)
            if part > 1e-8 * most:
                return vector
            if part > 1e-11 * most:
                raise Ambiguous
        raise Ambiguous

    def relate_forms(self, case, found, call):
        same("another form of the data", self._as_wide(call(plain(case)), found), found)

    def relate_scale(self, case, found, call, power):
        data = {k: v for k, v in case.data.items() if k != "init"}
        other = scaled(Case(case.name, data), power)
        if other is not None:
            again = self._as_wide(call(case.but(**other.data)), found)
            same("scaled by a power of two", again, found)

    def _as_wide(self, again: dict, found: dict) -> dict:
        """Results of the plainest form, without an axis of channels, in the shapes of others."""
        for name in found.keys() & {"centers", "batch centers"}:
            again[name] = again[name].reshape(found[name].shape)
        return again

    def relate_alone(self, case, found, call):
        Q = case.data["Q"]
        if len(set(Q.lengths)) > 1 or Q.lengths[0] > case.data["X"].lengths.max():
            return
        for row in range(len(Q)):
            again = call(plain(case.but(Q=Q.take([row]))))
            keys = found.keys() & {"predict", "transform"}
            alone, among = {k: again[k] for k in keys}, {k: found[k][[row]] for k in keys}
            self.agree("a query alone", alone, among)


# -- shapelet trees


class Candidates(NamedTuple):
    """All candidates of a training set, with their distances to all series.

    Attributes
    ----------
    place : ndarray of shape (n, 4)
        Length, series, start, channel.
    distances, slack : ndarray of shape (n, n_series)
        Distances (root of the mean square), and how far they may be off.
    """

    place: np.ndarray
    distances: np.ndarray
    slack: np.ndarray

    @classmethod
    def of(cls, series: tuple[np.ndarray, ...], lengths: list[int]) -> Candidates:
        parts = [
            cls._of_channel(series, length, channel)
            for length in lengths
            for channel in range(len(series[0]))
        ]
        place, distances, slack = (np.concatenate(one) for one in zip(*parts, strict=True))
        order = np.lexsort(place.T[::-1])
        return cls(place[order], distances[order], slack[order])

    @classmethod
    def _of_channel(cls, series, length, channel) -> tuple:
        lines = [one[channel] for one in series]
        power = oracle.plane(lines)
        there = [row for row, line in enumerate(lines) if len(line) >= length]
        parts = [oracle.Windows.of(lines[row], length, power) for row in there]
        fields = zip(*(part[:5] for part in parts), strict=True)
        windows = oracle.Windows(*map(np.concatenate, fields), power)
        counts = np.zeros(len(lines), int)
        counts[there] = [len(part.raw) for part in parts]
        least, error = distances_to_series(windows, windows, counts, length)
        own = np.repeat(np.arange(len(lines)), counts)
        start = np.concatenate([np.arange(count) for count in counts])
        place = np.column_stack([np.full(len(own), length), own, start, np.full(len(own), channel)])
        return place, least, error

    def find(self, length: int, series: int, start: int, channel: int) -> int:
        wanted = [length, series, start, channel]
        places = np.flatnonzero((self.place == wanted).all(axis=1))
        check(len(places) == 1, "literal: no such candidate", f"{wanted}")
        return int(places[0])


def first_twin(
    series: Sequence[np.ndarray], place: Sequence[int], others: Iterable[Sequence[int]]
) -> tuple[int, ...] | None:
    """The first of other places before one that has the same points, and with them all distances.

    A place is the length of a candidate, its series, its start and its channel.
    """

    def points(length: int, row: int, start: int, channel: int) -> np.ndarray:
        return series[row][channel, start : start + length]

    same_kind = (
        tuple(map(int, other))
        for other in others
        if (other[0], other[3]) == (place[0], place[3]) and tuple(other) < tuple(place)
    )
    mine = points(*place)
    return min((one for one in same_kind if np.array_equal(points(*one), mine)), default=None)


def distances_to_series(
    candidates: oracle.Windows, windows: oracle.Windows, counts: np.ndarray, length: int
) -> tuple[np.ndarray, np.ndarray]:
    """Distances of candidates to series, and how far they may be off.

    `counts` says how many of the windows each series has; a distance is infinite where it has none.
    """
    D, slack = oracle.pair_distances(candidates, windows, length >= 3)
    there = counts > 0
    firsts = (np.cumsum(counts) - counts)[there]
    root = math.sqrt(length)
    least, error = np.full((len(D), len(counts)), np.inf), np.zeros((len(D), len(counts)))
    least[:, there] = np.minimum.reduceat(D, firsts, axis=1) / root
    error[:, there] = np.maximum.reduceat(slack, firsts, axis=1) / root
    error[:, there] += 1e-12 * least[:, there]
    if length >= 3:
        # such distances, and what is joined with them, are one if they differ by 1e-11 or so,
        # which points of 1e-45 that are compared as they are do
        error += 1e-11
    return least, error


def entropy(weights: np.ndarray) -> np.ndarray:
    """Entropy in nats along the last axis; 0 where there is no weight."""
    total = weights.sum(axis=-1, keepdims=True)
    share = weights / np.where(total > 0, total, 1)
    return -np.sum(share * np.log(np.where(share > 0, share, 1)), axis=-1)


class Cuts(NamedTuple):
    """Every cut of every order line; gains of -inf where a cut is not allowed."""

    gain: np.ndarray
    gap: np.ndarray
    low: np.ndarray
    high: np.ndarray
    certain: np.ndarray


@np.errstate(invalid="ignore")
def all_cuts(D, slack, labels, weights, often, leaf, leaf_weight) -> Cuts:
    """Score all cuts of order lines, (n_lines, n_members); `often` is the weight of each series."""
    order = np.argsort(D, axis=1, kind="stable")
    ordered = np.take_along_axis(D, order, 1)
    error = np.take_along_axis(slack, order, 1)
    one_hot = np.eye(len(weights))[labels] * often[:, np.newaxis]
    counts = np.cumsum(one_hot[order], axis=1)
    left, n = counts[:, :-1] * weights, len(labels)
    right = counts[:, -1:] * weights - left
    total = counts[0, -1] @ weights
    parts = left.sum(axis=2) * entropy(left) + right.sum(axis=2) * entropy(right)
    gain = entropy(counts[0, -1] * weights) - parts / total
    size = np.arange(1, n)
    sums, near = np.cumsum(ordered * often[order], axis=1), np.cumsum(often[order], axis=1)
    near, far = near[:, :-1], near[:, -1:] - near[:, :-1]
    gap = (sums[:, -1:] - sums[:, :-1]) / far - sums[:, :-1] / near
    wide = np.diff(ordered, axis=1)
    fits = (size >= leaf) & (n - size >= leaf)
    fits = fits & (left.sum(axis=2) >= leaf_weight - 1e-9 * total)
    fits &= right.sum(axis=2) >= leaf_weight - 1e-9 * total
    strict = (left.sum(axis=2) >= leaf_weight + 1e-9 * total) | (leaf_weight == 0)
    strict &= (right.sum(axis=2) >= leaf_weight + 1e-9 * total) | (leaf_weight == 0)
    gain = np.where(fits & (wide > 0), gain, -np.inf)
    certain = fits & strict & (wide > error[:, 1:] + error[:, :-1] + 1e-9 * ordered[:, 1:])
    there = np.isfinite(ordered[:, 1:])
    gain, certain = np.where(there, gain, -np.inf), certain & there
    return Cuts(gain, gap, ordered[:, :-1], ordered[:, 1:], certain)


#: Methods that walk the tree.
WALKS = ("apply", "predict", "predict_proba", "predict_log_proba", "decision_path")


def draw_tree(d: Draw, n: int, most: int, *, far: bool = False) -> tuple[list, dict[str, Any]]:
    """Shapes of series and options of a tree, whose candidates may be long."""
    sizes = shapes(d, n, most, equal=0.7)
    shortest = min(size[1] for size in sizes)
    least = d.pick("min_length", ("auto", "some"), (1, 2))
    largest = d.pick("max_length", ("auto", "some"), (1, 2))
    low = d.whole(1, min(shortest, 4)) if least == "some" else "auto"
    high = d.whole(7, 20) if far else d.whole(1, 8)
    high = shortest if largest == "some" and d.chance(0.2) else min(shortest, high)
    if low != "auto":
        high = max(high, low)
    as_share = d.pick("lengths as shares", ("none", "least", "both"), (4, 1, 1))
    longest = max(size[1] for size in sizes)
    if largest == "some" and shortest < longest <= 16 and d.chance(0.3):
        high = d.whole(shortest, longest)
    if as_share == "both" and largest == "some":
        high = (high + 0.5) / longest if high < longest else 1.0
    if as_share != "none" and low != "auto":
        low = (low + 0.5) / longest if low < longest else 1.0
    elif isinstance(high, float):
        low = "auto"
    step = d.pick("length_step", (1, 2, 5))
    if shortest > 16:
        step = max(step, 5)
    weights = d.pick("class_weight", (None, "balanced", "large", "small", "odd"), (5, 2, 1, 1, 1))
    options = {
        "min_length": low,
        "max_length": high if largest == "some" else "auto",
        "length_step": step,
        "logic": d.pick("logic", (("and", "or"), ("and",), ("or",), (), "auto"), (4, 1, 1, 2, 1)),
        "max_literals": d.pick("max_literals", (1, 2, 3), (1, 3, 1)),
        "max_depth": d.pick("max_depth", (None, 1, 2), (4, 1, 1)),
        "min_samples_split": d.pick("min_samples_split", (2, 4, 0.5), (4, 1, 1)),
        "min_samples_leaf": d.pick("min_samples_leaf", (1, 2, 0.2), (4, 1, 1)),
        "min_weight_fraction_leaf": d.pick("min_weight_fraction_leaf", (0.0, 0.2), (4, 1)),
        "min_impurity_decrease": d.pick("min_impurity_decrease", (0.0, 0.05), (4, 1)),
        "ccp_alpha": d.pick("ccp_alpha", (0.0, 0.05), (5, 1)),
        "class_weight": weights,
        "max_candidates": d.pick("max_candidates", (None, 1, 20), (6, 1, 1)),
        "random_state": d.pick("random_state", (0, 1)),
        "fit.sample_weight": d.pick(
            "fit.sample_weight", (None, "whole", "some", "odd", "alike"), (5, 2, 2, 2, 1)
        ),
        "score.sample_weight": d.pick("sample_weight", (False, True)),
        "cost_complexity_pruning_path.sample_weight": d.pick("sample_weight", (False, True)),
        # each method walks the tree anew: one of them, beside those that the oracle starts from
        "call.also": d.pick("methods", (*WALKS, "score", "pruning", "all")),
    }
    return sizes, options


def class_weights(kind: str | None, y: list) -> Any:
    """The argument `class_weight`."""
    if kind in (None, "balanced"):
        return kind
    factor = {"large": 1000.0, "small": 2.0**-30, "odd": 0.37}[kind]
    return {label: factor * (1 + 0.5 * k) for k, label in enumerate(sorted(set(y), key=repr))}


def series_weights(kind: str | None, y: list) -> np.ndarray | None:
    """What is handed over as `sample_weight`; "some" leaves series of every class out."""
    n = len(y)
    if kind is None:
        return None
    firsts = np.isin(np.arange(n), np.unique(y, return_index=True)[1])
    weights = {
        "whole": 1.0 + np.arange(n) * 5 % 3,
        "some": np.where(firsts, 2.0, np.arange(n) * 3 % 4),
        "odd": 0.01 + np.modf(np.arange(1, n + 1) * 0.6180339887498949)[0],
        "alike": np.full(n, 0.37),
    }
    return weights[kind]


class Tree(Recipe):
    name = "skts.ShapeletTreeClassifier"
    methods = (
        "apply",
        "cost_complexity_pruning_path",
        "decision_path",
        "fit",
        "fit_transform",
        "get_depth",
        "get_feature_names_out",
        "get_n_leaves",
        "locate",
        "predict",
        "predict_log_proba",
        "predict_proba",
        "score",
        "set_output",
        "transform",
    )
    relations = ("scale", "forms", "alone", "weights", "output")
    long = 0.05
    #: Methods that walk the tree, and how far gains may be off.
    walks: ClassVar[tuple[str, ...]] = WALKS
    close_gains: ClassVar[float] = 1e-9

    def draw(self, d: Draw) -> Case:
        n = d.whole(2, 10)
        far = d.pick("long", (False, True), (1 - self.long, self.long))
        sizes, options = draw_tree(d, n, 65 if far else 16, far=far)
        series = d.numbers([*sizes, *[sizes[d.whole(0, n - 1)] for _ in range(2)]])
        if any(not np.isfinite(x).all() for x in series):
            raise ValueError("series of a tree are finite")
        X = d.form(series[:n], label=" X")
        Q = Sample(tuple(series[n:]))
        y = self.draw_target(d, n, options)
        types: dict[str, str] = {}
        draw_state(d, types)
        return Case(
            self.name, {"X": X, "y": y, "Q": Q}, options, types, relation=self.draw_relation(d)
        )

    def draw_target(self, d: Draw, n: int, options: dict[str, Any]) -> list:
        """Draw classes; `options` are those of the tree."""
        return draw_labels(d, n, least=2)

    def possible(self, case: Case) -> bool:
        X, options = case.data["X"], case.options
        if not super().possible(case) or X.lengths.min() < 1 or len(case.data["y"]) != len(X):
            return False
        lengths = self.lengths(case)
        shortest = X.lengths[self.rows(case)].min()
        return bool(lengths) and lengths[0] <= shortest and options["length_step"] >= 1

    def refuses(self, case: Case) -> bool:
        """Whether no series that has a weight has room for the longest candidates."""
        most = case.options["max_length"]
        return isinstance(most, int) and most > case.data["X"].lengths[self.rows(case)].max()

    def rows(self, case: Case) -> np.ndarray:
        """The series that have a weight."""
        weights = series_weights(case.options["fit.sample_weight"], case.data["y"])
        return np.arange(len(case.data["y"])) if weights is None else np.flatnonzero(weights)

    def lengths(self, case: Case) -> list[int]:
        shortest = int(case.data["X"].lengths[self.rows(case)].min())
        longest = int(case.data["X"].lengths[self.rows(case)].max())
        least, most = (
            max(1, int(given * longest)) if isinstance(given, float) else given
            for given in (case.options["min_length"], case.options["max_length"])
        )
        if least == "auto":
            least = shortest if shortest < 3 else max(3, shortest // 4)
            least = least if most == "auto" else min(least, most)
        if most == "auto":
            most = max(least, 2 * shortest // 3)
        return list(range(least, most + 1, case.options["length_step"])) if least <= most else []

    def model(self, case: Case, how: How) -> Any:
        options = {k: v for k, v in case.given().items() if "." not in k}
        options["class_weight"] = class_weights(options["class_weight"], case.data["y"])
        if options["logic"] != "auto":
            options["logic"] = tuple(options["logic"])
        return self.target(**options, **how.options(self.target))

    def call(self, case: Case, how: How) -> dict:
        X, y, Q = case.data["X"].give(), case.data["y"], case.data["Q"].give()
        model = self.model(case, how)
        own = series_weights(case.options["fit.sample_weight"], y)
        model.fit(X, y, sample_weight=own)
        found = {f"tree {key}": value for key, value in model.tree_._asdict().items()}
        found["shapelets"] = np.int64(len(model.shapelets_))
        for k, shapelet in enumerate(model.shapelets_):
            for key, value in shapelet._asdict().items():
                found[f"shapelet {k} {key}"] = np.asarray(value)
        found["logic"] = np.array(model.logic_, str)
        if hasattr(model, "classes_"):
            found["classes"] = model.classes_
        also = case.options["call.also"]
        for part, data in (("X", X), ("Q", Q)):
            for method in ("transform", "locate", *self.walks):
                if method in self.walks and also not in (method, "all"):
                    continue
                value = getattr(model, method)(data)
                found[f"{part} {method}"] = value.toarray() if "path" in method else value
        found["depth"] = np.int64(model.get_depth())
        found["leaves"] = np.int64(model.get_n_leaves())
        if also in ("score", "all"):
            weights = np.arange(1, len(y) + 1) if case.options["score.sample_weight"] else None
            found["score"] = np.float64(model.score(X, y, sample_weight=weights))
        if also in ("pruning", "all"):
            weigh = case.options["cost_complexity_pruning_path.sample_weight"]
            path = model.cost_complexity_pruning_path(X, y, sample_weight=own if weigh else None)
            found["alphas"], found["impurities"] = path.ccp_alphas, path.impurities
        found["names"] = np.array(model.get_feature_names_out(), str)
        check(len(set(found["names"])) == len(model.shapelets_), "get_feature_names_out: number")
        found["importances"] = model.shapelet_importances_
        found["importances of points"] = model.feature_importances_
        for values in (found["importances"], found["importances of points"]):
            check((values >= 0).all(), "importances: negative")
            close("importances", values.sum(), float(bool(model.shapelets_)), 1e-9)
        if case.relation == "output" and len(found["names"]):
            check_output(model, X, y, Q, found["Q transform"], model.predict(Q))
        return found

    def weights(self, case: Case) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
        """Classes, labels, the weight of each class, and that of each series."""
        classes, y = np.unique(case.data["y"], return_inverse=True)
        given = class_weights(case.options["class_weight"], case.data["y"])
        own = series_weights(case.options["fit.sample_weight"], case.data["y"])
        own = np.ones(len(y)) if own is None else own
        if given is None:
            return classes, y, np.ones(len(classes)), own
        if given == "balanced":
            return classes, y, own.sum() / (len(classes) * np.bincount(y, own)), own
        return classes, y, np.array([given[label] for label in classes.tolist()]), own

    def check(self, case: Case, found: dict) -> None:
        classes, y, weights, own = self.weights(case)
        if classes is not None:
            same("classes_", found["classes"], classes)
        X, Q = case.data["X"], case.data["Q"]
        given, chosen = case.options["logic"], tuple(found["logic"].tolist())
        expected = ((), ("and", "or")) if given == "auto" else (tuple(given),)
        check(chosen in expected, "logic_", f"{chosen} of {given}")
        try:
            members = self._check_measures(found, X, "X") & self._check_measures(found, Q, "Q")
        except Ambiguous:
            members = False
        self._check_predictions(found, classes, y, case.options["score.sample_weight"])
        if members:
            try:
                self._check_nodes(case, found, y, weights, own)
            except Ambiguous:
                return

    def _shapelets(self, found: dict) -> list[dict]:
        return [
            {
                key: found[f"shapelet {k} {key}"]
                for key in (
                    "values",
                    "series",
                    "start",
                    "length",
                    "channel",
                    "threshold",
                    "gain",
                    "gap",
                    "logic",
                    "node",
                )
            }
            for k in range(int(found["shapelets"]))
        ]

    def _check_measures(self, found: dict, sample: Sample, part: str) -> bool:
        distances, starts = found[f"{part} transform"], found[f"{part} locate"]
        for k, one in enumerate(self._shapelets(found)):
            length, channel = int(one["length"]), int(one["channel"])
            for row, x in enumerate(sample.series):
                line = x[channel]
                if len(line) < length:
                    check(np.isinf(distances[row, k]) and starts[row, k] == -1, "transform: short")
                    continue
                power = oracle.plane([line, one["values"]])
                query = oracle.Windows.of(one["values"], length, power)
                windows = oracle.Windows.of(line, length, power)
                D, slack = oracle.pair_distances(query, windows, length >= 3)
                D, slack = D[0] / math.sqrt(length), slack[0] / math.sqrt(length)
                least = int(np.argmin(D))
                close("transform", distances[row, k], D[least], slack.max())
                at = int(starts[row, k])
                check(0 <= at < len(D), "locate: outside", at)
                check(D[at] - slack[at] <= D[least] * (1 + 1e-9) + slack[least], "locate: farther")
        return True

    def _check_predictions(self, found: dict, classes, y, weighted: bool) -> None:
        left, right = found["tree children_left"], found["tree children_right"]
        first, count = found["tree first_literal"], found["tree n_literals"]
        threshold, value = found["tree threshold"], found["tree value"]
        logic = [str(one["logic"]) for one in self._shapelets(found)]
        reached = {}
        for part in ("X", "Q"):
            nodes = []
            passed = np.zeros((len(found[f"{part} transform"]), len(left)), np.int64)
            for row, distances in enumerate(found[f"{part} transform"]):
                node = 0
                passed[row, 0] = 1
                while left[node] >= 0:
                    joined = distances[first[node]]
                    for k in range(first[node] + 1, first[node] + count[node]):
                        join = max if logic[k] == "and" else min
                        joined = join(joined, distances[k])
                    node = left[node] if joined <= threshold[node] else right[node]
                    passed[row, node] = 1
                nodes.append(node)
            reached[part] = self.predicted(value[nodes], classes)
            wanted = {"apply": np.array(nodes), "decision_path": passed, "predict": reached[part]}
            for method in wanted.keys() & {key.removeprefix(f"{part} ") for key in found}:
                same(method, found[f"{part} {method}"], wanted[method])
            if f"{part} predict_proba" in found:
                close("predict_proba", found[f"{part} predict_proba"], value[nodes], 1e-15)
            if f"{part} predict_log_proba" in found:
                with np.errstate(divide="ignore"):
                    logarithms = np.log(value[nodes])
                close("predict_log_proba", found[f"{part} predict_log_proba"], logarithms)
        if "score" in found:
            weights = np.arange(1, len(y) + 1) if weighted else np.ones(len(y))
            self.check_score(
                found["score"], reached["X"], y if classes is None else classes[y], weights
            )
        leaves = left < 0
        same("get_n_leaves", found["leaves"], np.int64(leaves.sum()))
        if "alphas" in found:
            check((np.diff(found["alphas"]) >= 0).all() and found["alphas"][0] == 0, "ccp_alphas")
            check((np.diff(found["impurities"]) >= -1e-12).all(), "impurities: not ascending")

    def predicted(self, value: np.ndarray, classes: np.ndarray) -> np.ndarray:
        """What leaves of some values predict."""
        return classes[value.argmax(axis=1)]

    def check_score(self, score, predicted, y, weights) -> None:
        """Compare a score with the share of what is predicted rightly."""
        close("score", score, np.average(predicted == y, weights=weights), 1e-12)

    def describe(self, y, own, weights) -> tuple[float, Any, float]:
        """Weight, value and impurity of a node."""
        each = np.bincount(y, own, len(weights)) * weights
        return each.sum(), each / each.sum(), float(entropy(each))

    def cuts(self, D, slack, *rules) -> Cuts:
        """All cuts of order lines."""
        return all_cuts(D, slack, *rules)

    def _check_nodes(self, case: Case, found: dict, y, weights, own) -> None:
        rows = self.rows(case)
        options, n = case.options | {"logic": tuple(found["logic"].tolist())}, len(rows)
        series = tuple(case.data["X"].series[row] for row in rows)
        candidates = Candidates.of(series, self.lengths(case))
        y, own, number = y[rows], own[rows], {int(row): k for k, row in enumerate(rows)}
        leaf, split = options["min_samples_leaf"], options["min_samples_split"]
        leaf = leaf if isinstance(leaf, int) else math.ceil(leaf * n)
        split = split if isinstance(split, int) else max(2, math.ceil(split * n))
        total = self.describe(y, own, weights)[0]
        limits = leaf, options["min_weight_fraction_leaf"] * total
        shapelets = [one | {"series": number[int(one["series"])]} for one in self._shapelets(found)]
        waiting = [(0, np.arange(n), 0)]
        while waiting:
            node, members, depth = waiting.pop()
            weight, value, impurity = self.describe(y[members], own[members], weights)
            check(found["tree n_node_samples"][node] == len(members), "n_node_samples")
            close("weighted_n_node_samples", found["tree weighted_n_node_samples"][node], weight)
            close("value", found["tree value"][node], value, 1e-12)
            close("impurity", found["tree impurity"][node], impurity, 1e-12)
            deep = options["max_depth"] is not None and depth >= options["max_depth"]
            stops = deep or impurity == 0 or len(members) < max(split, 2 * leaf)
            is_leaf = found["tree children_left"][node] < 0
            check(is_leaf or not stops, "a node that must be a leaf is split")
            first = int(found["tree first_literal"][node])
            count = int(found["tree n_literals"][node])
            share = weight / total
            follow = self._check_split(
                series,
                options,
                candidates,
                members,
                (y[members], weights, own[members], *limits),
                share,
                shapelets[first : first + count] if not is_leaf else [],
                stops,
            )
            if not is_leaf:
                threshold = float(found["tree threshold"][node])
                joined, slack = follow
                if (np.abs(joined - threshold) <= slack).any():
                    raise Ambiguous
                goes = joined <= threshold
                for child, rows in (
                    (found["tree children_left"][node], goes),
                    (found["tree children_right"][node], ~goes),
                ):
                    waiting.append((int(child), members[rows], depth + 1))

    def _check_split(self, series, options, candidates, members, rules, share, literals, stops):
        """Compare the literals of a node with all others; return the joined distances."""
        D, slack = candidates.distances[:, members], candidates.slack[:, members]
        of_members = np.isin(candidates.place[:, 1], members)
        everything = options["max_candidates"] is None
        joined = error = None
        best_gain, best_gap = 0.0, -np.inf
        ways = ["first"]
        for rank in range(len(literals) + 1):
            if rank > 0:
                ways = [way for way in ("and", "or") if way in options["logic"]]
                if rank >= options["max_literals"]:
                    ways = []
            lines = []
            for way in ways:
                if way == "first":
                    lines.append((way, D, slack))
                else:
                    join = np.maximum if way == "and" else np.minimum
                    lines.append((way, join(joined, D), np.maximum(error, slack)))
            literal = literals[rank] if rank < len(literals) else None
            gain, gap = best_gain, best_gap
            if literal is not None:
                way = str(literal["logic"])
                check(way in ways, "literal: logic", f"{way} is none of {ways}")
                place = [int(literal[key]) for key in ("length", "series", "start", "channel")]
                check(place[1] in members, "literal: of another node")
                k = candidates.find(*place)
                x = series[place[1]][place[3], place[2] : place[2] + place[0]]
                same("shapelet values", literal["values"], x)
                _, mine, mine_error = next(one for one in lines if one[0] == way)
                cuts = self.cuts(mine[[k]], mine_error[[k]], *rules)
                gain, gap = float(literal["gain"]), float(literal["gap"])
                tolerance = 1e-9 + mine_error[k].max()
                with np.errstate(invalid="ignore"):
                    fits = (np.abs(cuts.gap - gap) <= tolerance) | (cuts.gap == gap)
                fits &= np.abs(cuts.gain - gain) <= self.close_gains
                if not fits.any():
                    if not cuts.certain.all():
                        raise Ambiguous
                    check(
                        False,
                        "literal: gain or gap",
                        f"{gain} {gap}, possible {cuts.gain.tolist()} {cuts.gap.tolist()}",
                    )
                if everything:
                    twin = first_twin(series, place, candidates.place[of_members].tolist())
                    check(twin is None, "literal: not the first of equal ones", f"{place}: {twin}")
                check(gain > 1e-12, "literal: gains nothing", gain)
                better = gain > best_gain + 1e-12 or gap >= best_gap - tolerance
                check(better, "literal: no better than without", f"{gain} {gap}")
            if everything and (literal is not None or not stops or rank > 0):
                for way, other, other_error in lines:
                    cuts = self.cuts(other[of_members], other_error[of_members], *rules)
                    self._check_best(
                        candidates.place[of_members],
                        way,
                        cuts,
                        gain,
                        gap,
                        other_error[of_members],
                        share,
                        options,
                        literal,
                    )
            if literal is None:
                break
            joined, error = mine[k], mine_error[k]
            best_gain, best_gap = gain, gap
        if literals:
            threshold = float(literals[-1]["threshold"])
            if (np.abs(joined - threshold) <= error).any():
                raise Ambiguous
            below, above = joined[joined <= threshold], joined[joined > threshold]
            if len(below) and len(above):
                middle = below.max() + (above.min() - below.max()) / 2
                close("threshold", threshold, middle, 2 * error.max() + 1e-12)
            decrease = best_gain * share
            check(
                decrease >= options["min_impurity_decrease"] - self.close_gains,
                "impurity decrease too small",
            )
        return joined, error

    def _check_best(self, place, way, cuts, gain, gap, error, share, options, literal):
        slack = error.max(axis=1, keepdims=True) * 2 + 1e-9
        better = cuts.certain & (cuts.gain > gain + self.close_gains)
        tie = cuts.certain & (np.abs(cuts.gain - gain) <= 1e-12) & (cuts.gap > gap + slack)
        better |= tie & (gain > 1e-12)
        if literal is None and way == "first":
            # without any literal a split may have been refused, or cut off by ccp_alpha
            enough = options["min_impurity_decrease"] + self.close_gains
            better &= cuts.gain * share > enough
            if options["ccp_alpha"] > 0:
                return
        if better.any():
            k, cut = np.argwhere(better)[np.lexsort((-cuts.gap[better], -cuts.gain[better]))[0]]
            check(
                False,
                f"a better split is there ({way})",
                f"{place[k].tolist()} gains {cuts.gain[k, cut]!r}, gap {cuts.gap[k, cut]!r}; "
                f"chosen {gain!r}, gap {gap!r}",
            )

    def relate_forms(self, case, found, call):
        same("another form of the data", call(plain(case)), found)

    def relate_scale(self, case, found, call, power):
        other = scaled(case, power)
        if other is None or min(self.lengths(case)) < 3:
            return
        again = call(other)
        for key in found:
            wanted = np.ldexp(found[key], power) if key.endswith(" values") else found[key]
            same(f"scaled by a power of two {key.split()[-1]}", again[key], wanted)

    def relate_alone(self, case, found, call):
        """A query alone has the distances that it has among others."""
        Q = case.data["Q"]
        for row in range(len(Q)):
            again = call(plain(case.but(Q=Q.take([row]))))
            whole = ("decision_path", "score")
            for key in ("transform", "locate", *(name for name in self.walks if name not in whole)):
                key = f"Q {key}"
                if key not in found:
                    continue
                same(f"a query alone {key}", again[key], found[key][[row]])

    def relate_weights(self, case, found, call):
        """Weights times a power of two give the same tree."""
        model = self.model(case, How("numba"))
        factor = 2.0**-7
        own = self.weights(case)[3]
        if isinstance(getattr(model, "class_weight", None), dict):
            model.set_params(class_weight={k: factor * v for k, v in model.class_weight.items()})
        else:
            own = factor * own
        model.fit(case.data["X"].give(), case.data["y"], sample_weight=own)
        for key, value in model.tree_._asdict().items():
            if key == "weighted_n_node_samples":
                value = value / factor
            same(f"weights times a power of two {key}", value, found[f"tree {key}"])


class ExportText(Recipe):
    name = "skts.tree.export_text"
    handed = ("decision_tree",)

    def draw(self, d: Draw) -> Case:
        n = d.whole(2, 6)
        sizes, options = draw_tree(d, n, 9)
        options = {f"tree.{key}": value for key, value in options.items()}
        options |= {
            "max_depth": d.pick("max_depth of text", (10, 0, 1)),
            "decimals": d.pick("decimals", (2, 0, 5)),
        }
        X = d.sample(sizes, label=" X")
        return Case(self.name, {"X": X, "y": draw_labels(d, n, least=2)}, options)

    def possible(self, case: Case) -> bool:
        return (
            super().possible(case)
            and len(case.data["y"]) == len(case.data["X"])
            and bool(TREE.possible(self._tree(case)))
        )

    def refuses(self, case: Case) -> bool:
        return TREE.refuses(self._tree(case))

    def _tree(self, case: Case) -> Case:
        options = {k.removeprefix("tree."): v for k, v in case.options.items() if "tree." in k}
        return Case(TREE.name, case.data, options)

    def call(self, case: Case, how: How) -> dict:
        tree, y = self._tree(case), case.data["y"]
        own = series_weights(tree.options["fit.sample_weight"], y)
        model = TREE.model(tree, how).fit(case.data["X"].give(), y, sample_weight=own)
        found = {"text": np.array(self.target(model, **case.given()))}
        found |= {f"tree {key}": value for key, value in model.tree_._asdict().items()}
        return found | {"classes": model.classes_, "shapelets": np.int64(len(model.shapelets_))}

    def check(self, case: Case, found: dict) -> None:
        """The lines, read back, are those of the tree."""
        lines = str(found["text"]).splitlines()
        left, right = found["tree children_left"], found["tree children_right"]
        wanted: list[tuple[int, str]] = []

        def walk(node: int, depth: int) -> None:
            if left[node] < 0:
                label = found["classes"][found["tree value"][node].argmax()]
                wanted.append((depth, f"class: {label}"))
            elif depth > case.options["max_depth"]:
                wanted.append((depth, "truncated branch"))
            else:
                number = f"{found['tree threshold'][node]:.{case.options['decimals']}f}"
                for sign, child in (("<=", left[node]), ("> ", right[node])):
                    wanted.append((depth, f"{sign} {number}"))
                    walk(int(child), depth + 1)

        walk(0, 0)
        check(len(lines) == len(wanted), "export_text: lines", found["text"])
        for line, (depth, end) in zip(lines, wanted, strict=True):
            right_place = line.startswith("|   " * depth + "|--- ") and line.endswith(end)
            check(right_place, "export_text: line", f"{line!r} should end in {end!r}")


from .recipe import RECIPES  # noqa: E402

TREE = RECIPES[Tree.name]
