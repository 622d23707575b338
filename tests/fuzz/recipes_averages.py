"""Recipes of averages under warping: barycenters and k-means."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from . import oracle, oracle_elastic
from .case import Case, Sample
from .compare import RELATIVE, check, close, nearest, same
from .draw import Draw
from .recipe import (
    How,
    Recipe,
    check_output,
    draw_state,
    draw_window,
    fit_for,
    ints_only,
    plain,
    relate_a_query_alone,
    scaled,
    shapes,
)
from .recipes_neighbors import Ambiguous, halves

#: Points of averages are off by less than this, where the largest number is 1.
OFF = 1e-13
#: More small steps than that one after the other may be off by more.
MOST_STEPS = 200
#: Below this power of two, squares of means lose bits.
LEAST_POWER = -300
#: Metrics whose distances scale with the series.
SCALED = ("dtw", "dog_keeper", "frechet", "euclidean", "ddtw", "wdtw")


def slack_of(cost: Any, steps: int) -> Any:
    """How far an accumulated cost of so many differences, the largest number 1, may be off."""
    return 1e-10 * cost + 2 * OFF * np.sqrt(cost * steps) + steps * OFF * OFF


def matched(average: np.ndarray, x: np.ndarray, warp: oracle.Warp, exact: bool) -> list:
    """The path of a series to its average, by the rule for ties if sums are exact."""
    D = oracle.dtw_table(average, x, warp)
    steps = sum(D.shape) * len(x)
    i, j = D.shape[0] - 1, D.shape[1] - 1
    path = [(i, j)]
    while i or j:
        before = [(i - 1, j - 1), (i - 1, j), (i, j - 1)]
        before = [step for step in before if min(step) >= 0]
        costs = np.array([D[step] for step in before])
        best = int(np.argmin(costs))
        rivals = costs[np.isfinite(costs)] - costs[best] <= slack_of(costs[best], steps)
        if rivals.sum() > 1 and not exact:
            raise Ambiguous
        i, j = before[best]
        path.append((i, j))
    return path[::-1]


def updated(
    averages: list, X: list, labels: Any, weights: Any, warp: oracle.Warp, exact: bool
) -> list:
    """Each average from the means of the points that the paths of its members match."""
    found = []
    for k, average in enumerate(averages):
        total, weight = np.zeros(average.shape), np.zeros(average.shape[1])
        for row in np.flatnonzero(np.asarray(labels) == k):
            for i, j in matched(average, X[row], warp, exact):
                total[:, i] += weights[row] * X[row][:, j]
                weight[i] += weights[row]
        found.append(total / weight)
    return found


def squares(X: list, averages: list, warp: oracle.Warp) -> np.ndarray:
    """Accumulated costs of all series to all averages."""
    return np.array([[oracle.dtw_table(a, x, warp)[-1, -1] for a in averages] for x in X])


def draw_distance(d: Draw, samples: list, options: dict) -> dict:
    """Mostly DTW, else a distance of any name with its parameters."""
    options |= {"metric": "dtw", "metric_params": None}
    if d.chance(0.6):
        return options
    known = oracle_elastic.PARAMETERS
    metric = d.pick("metric", [one for one in known if fit_for({"metric": one}, samples)])
    given = {name: d.pick(name, values) for name, (_, values) in known[metric].items()}
    options |= {"metric": metric, "metric_params": given if d.chance(0.7) else None}
    if metric == "euclidean":
        options["window"] = None
    return options


def terms_of(metric: str, distances: np.ndarray) -> np.ndarray:
    """What distances add to an inertia."""
    with np.errstate(over="ignore"):
        return distances**2 if metric in oracle_elastic.PRICED else distances


def terms(options: dict, X: list, averages: list) -> np.ndarray | None:
    """What series add to the inertia of averages; None where roundings decide."""
    metric, given = options["metric"], options["metric_params"] or {}
    warp = oracle.Warp(window=options["window"])
    if any(oracle_elastic.thresholds(metric, x, a, given, warp) for x in X for a in averages):
        return None
    found = [[oracle_elastic.distance(a, x, warp, metric, **given) for a in averages] for x in X]
    found = terms_of(metric, np.array(found))
    # differences of rounded differences, and numbers whose squares have no place
    return found if np.isfinite(found).all() and metric != "ddtw" else None


def weights_of(kind: str | None, n: int) -> np.ndarray | None:
    """What is handed over as `weights`."""
    if kind is None:
        return None
    kinds = {
        "whole": 1.0 + np.arange(n) * 5 % 3,
        "some": np.arange(n) % 2 + np.float64(n == 1),
        "odd": 0.01 + np.modf(np.arange(1, n + 1) * 0.6180339887498949)[0],
        "alike": np.full(n, 0.37),
    }
    return kinds[kind]


def scales_exactly(case: Case, power: int) -> Case | None:
    """The case times a power of two, where no square of a difference of means loses bits."""
    samples = [one for one in case.data.values() if isinstance(one, Sample)]
    sizes = [np.abs(x[x != 0]) for one in samples for x in one.series]
    least = min((float(size.min()) for size in sizes if size.size), default=1.0)
    if np.log2(least) + min(power, 0) < LEAST_POWER:
        return None
    return scaled(case, power)


class Barycenter(Recipe):
    name = "skts.averages.dtw_barycenter"
    relations = ("scale", "forms", "weights")

    def draw(self, d: Draw) -> Case:
        n, most, types = d.size(1, 70) if d.chance(0.1) else d.whole(1, 6), 130, {}
        n_longest = 20 if n > 6 else most
        init = d.pick("init", ("mean", "medoid", "given"), (2, 1, 3))
        sizes = shapes(d, n + (init == "given"), n_longest)
        series = d.numbers(sizes)
        data = {"X": d.form(series[:n], label=" X")}
        if init == "given":
            data["init"] = d.form(series[n:], form="single", label=" init")
        longest = max(size[1] for size in sizes)
        options: dict[str, Any] = {
            "init": init,
            "window": draw_window(d, longest, types),
            "weights": d.pick("weights", (None, "whole", "some", "odd", "alike"), (4, 1, 1, 1, 1)),
            "max_iter": d.pick("max_iter", (1, 2, 5, 30), (3, 2, 1, 1)),
            "tol": d.pick("tol", (0.0, 1e-5, 0.3), (3, 2, 1)),
            "method": d.pick("method", ("dba", "subgradient"), (2, 1)),
            "batch_size": d.pick("batch_size", (1, 2, 5, 100), (3, 1, 1, 1)),
            "random_state": d.whole(0, 99),
        }
        draw_state(d, types)
        options = draw_distance(d, list(data.values()), options)
        if options["metric"] != "dtw":
            options["method"] = "dba"
        return Case(self.name, data, options, types, relation=self.draw_relation(d))

    def possible(self, case: Case) -> bool:
        options = case.options
        if options["method"] == "subgradient" and options["random_state"] is None:
            return False
        if not fit_for(options, list(case.data.values())):
            return False
        return super().possible(case) and ("init" in case.data) == (options["init"] == "given")

    def call(self, case: Case, how: How) -> dict:
        options = case.given()
        options["weights"] = self.weights(case)
        if "init" in case.data:
            options["init"] = case.data["init"].give()
        given = case.data["X"].give()
        found = self.target(given, **options, **how.options(self.target))
        check(type(found.inertia) is float, "inertia: type", str(type(found.inertia)))
        return {
            "average": found.average,
            "inertia": np.float64(found.inertia),
            "n_iter": np.int64(found.n_iter),
        }

    def weights(self, case: Case) -> np.ndarray | None:
        """The weights as they are handed over; "more" of a relation multiplies them."""
        found = weights_of(case.options["weights"], len(case.data["X"]))
        return found

    def check(self, case: Case, found: dict) -> None:
        X, options = case.data["X"], case.options
        average = np.atleast_2d(found["average"])
        if options["metric"] != "dtw":
            self._check_other(case, found, average)
            return
        starts = [case.data["init"]] if "init" in case.data else [X]
        power = oracle.plane(*(one.series for one in (X, *starts)))
        series = [np.ldexp(x, -power) for x in X.series]
        weights = self.weights(case)
        weights = np.ones(len(X)) if weights is None else weights
        warp = oracle.Warp(window=options["window"])
        start = self.start(case, series, weights, warp, power)
        check(average.shape[0] == X.n_channels, "average: channels", average.shape)
        if start is not None:
            check(average.shape == start.shape, "average: shape", average.shape)
        steps = (average.shape[1] + int(X.lengths.max())) * X.n_channels
        cost = squares(series, [np.ldexp(average, -power)], warp)[:, 0]
        wanted = float(weights @ cost)
        slack = float(weights @ slack_of(cost, steps))
        inertia = math.ldexp(float(found["inertia"]), -2 * power)
        close("inertia", inertia, wanted, slack)
        check(0 <= found["n_iter"] <= options["max_iter"], "n_iter", found["n_iter"])
        if start is not None:
            first = weights @ squares(series, [start], warp)[:, 0]
            check(inertia <= first * (1 + RELATIVE) + slack, "inertia: above the start's")
        known = options["method"] == "dba" or not case.unseeded
        if "init" in case.data and known:
            exact = ints_only(X, case.data["init"]) and options["weights"] in (None, "whole")
            follow = self._follow
            if options["method"] == "subgradient":
                follow = self._follow_subgradients
            try:
                follow(case, series, weights, warp, start, average, power, exact)
            except Ambiguous:
                return

    def _check_other(self, case: Case, found: dict, average: np.ndarray) -> None:
        """The inertia under another metric, and that of the start."""
        X, options, weights = case.data["X"], case.options, self.weights(case)
        weights = np.ones(len(X)) if weights is None else weights
        check(average.shape[0] == X.n_channels, "average: channels", average.shape)
        check(0 <= found["n_iter"] <= options["max_iter"], "n_iter", found["n_iter"])
        own = terms(options, X.series, [average])
        if own is None:
            return
        # roundings of differences count where these are small beside the numbers
        size = max(float(np.abs(x).max(initial=0)) for x in (*X.series, average))
        slack = weights.sum() * 1e-13 * size * (size if options["metric"] in SCALED else 1.0)
        close("inertia", found["inertia"], float(weights @ own[:, 0]), slack, 1e-9)
        if "init" in case.data:
            start = case.data["init"].series[0]
            check(average.shape == start.shape, "average: shape", average.shape)
            first = terms(options, X.series, [start])
            if first is not None:
                most = float(weights @ first[:, 0]) * (1 + RELATIVE) + slack
                check(found["inertia"] <= most, "inertia: above the start's")

    def start(self, case, series, weights, warp, power) -> np.ndarray | None:
        """Where the iterations start; None where rounding decides."""
        if "init" in case.data:
            return np.ldexp(case.data["init"].series[0], -power)
        if case.options["init"] == "medoid":
            sums = squares(series, series, warp) @ weights
            order = np.sort(sums)
            if len(order) > 1 and order[1] - order[0] <= 1e-9 * order[1]:
                return None
            return series[int(np.argmin(sums))]
        longest = max(x.shape[1] for x in series)
        total = np.zeros((len(series[0]), longest))
        for x, weight in zip(series, weights, strict=True):
            times = np.linspace(0, x.shape[1] - 1, longest)
            total += weight * np.stack([np.interp(times, np.arange(len(c)), c) for c in x])
        return total / weights.sum()

    def _follow(self, case, series, weights, warp, start, average, power, exact) -> None:
        """Repeat the iterations, as long as nothing ties."""
        steps = (start.shape[1] + max(x.shape[1] for x in series)) * len(start)
        zeros, best, last = np.zeros(len(series), int), start, np.inf
        current = start
        for _ in range(case.options["max_iter"] + 1):
            cost = squares(series, [current], warp)[:, 0]
            new, slack = float(weights @ cost), float(weights @ slack_of(cost, steps))
            if last != np.inf:
                fall = last - new
                for limit in (0.0, case.options["tol"] * new):
                    if abs(fall - limit) <= 4 * slack + RELATIVE * limit:
                        raise Ambiguous
                if fall < 0:
                    break
                best = current
                if fall <= case.options["tol"] * new:
                    break
            last = new
            best = current
            current = updated([current], series, zeros, weights, warp, exact)[0]
            exact = False
        close("average", np.ldexp(average, -power), best, 1e-9)

    def _follow_subgradients(
        self, case, series, weights, warp, start, average, power, exact
    ) -> None:
        """Repeat the passes, as long as nothing ties."""
        steps = (start.shape[1] + max(x.shape[1] for x in series)) * len(start)
        options, rows = case.options, np.flatnonzero(weights)
        weights = weights / weights[rows].mean()
        orders = np.random.RandomState(options["random_state"])
        current, best, least, waited, n_steps = start, start, np.inf, 0, 0
        for iteration in range(options["max_iter"] + 1):
            cost = squares(series, [current], warp)[:, 0]
            new, slack = float(weights @ cost), float(weights @ slack_of(cost, steps))
            for limit in (0.0, options["tol"] * new):
                if abs(least - new - limit) <= 4 * slack + RELATIVE * limit:
                    raise Ambiguous
            waited = 0 if least - new > options["tol"] * new else waited + 1
            if new < least:
                best, least = current, new
            if waited == 5 or iteration == options["max_iter"]:
                break
            seen, order = 0.0, orders.permutation(rows)
            for first in range(0, rows.size, options["batch_size"]):
                rate = 0.005 if iteration else 0.05 - 0.045 * seen / rows.size
                total, count = np.zeros(current.shape), np.zeros(current.shape[1])
                for row in order[first : first + options["batch_size"]]:
                    seen += weights[row]
                    for i, j in matched(current, series[row], warp, exact and not n_steps):
                        total[:, i] += weights[row] * series[row][:, j]
                        count[i] += weights[row]
                current = current + np.minimum(1, 2 * rate * count) * (total / count - current)
                n_steps += 1
                if n_steps > MOST_STEPS:
                    raise Ambiguous
        close("average", np.ldexp(average, -power), best, 1e-9)

    def relate_scale(self, case, found, call, power):
        other = scales_exactly(case, power)
        if other is None or case.options["metric"] not in SCALED:
            return
        again = call(other)
        # in the plainest form, without an axis of channels
        average = again["average"].reshape(found["average"].shape)
        same("scaled by a power of two", average, np.ldexp(found["average"], power))
        same("scaled by a power of two", again["inertia"], np.ldexp(found["inertia"], 2 * power))

    def relate_forms(self, case, found, call):
        again = call(plain(case))
        same("another form: inertia", again["inertia"], found["inertia"])
        average = found["average"]
        same("another form", np.atleast_2d(again["average"]), np.atleast_2d(average))

    def relate_weights(self, case, found, call):
        """A series twice is as good as one of twice the weight."""
        options = case.options
        if options["weights"] is not None or options["init"] != "given":
            return
        if options["method"] != "dba" or options["metric"] != "dtw":
            return
        X = case.data["X"]
        again = call(case.but(X=X.take([row for row in range(len(X)) for _ in range(2)])))
        inertia = float(found["inertia"])
        if again["n_iter"] == found["n_iter"] == 1 and case.options["max_iter"] == 1:
            # in the plainest form, without an axis of channels
            first, second = (np.atleast_2d(one["average"]) for one in (found, again))
            size = max(float(np.abs(x).max()) for x in X.series)
            close("every series twice", second, first, 1e-12 * size)
            # sums over twice as many series are rounded apart: the root of the inertia moves by no
            # more than the average does, in all cells of all paths together
            moved = float(np.abs(second - first).max())
            cells = first.shape[0] * sum(x.shape[-1] + first.shape[1] - 1 for x in X.series)
            limit = moved * (2 * math.sqrt(cells * inertia) + cells * moved)
            close("every series twice", again["inertia"] / 2, inertia, limit, 1e-9)


class KMeans(Recipe):
    name = "skts.DTWKMeans"
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

    def draw(self, d: Draw) -> Case:
        n, types = d.whole(1, 12), {}
        most = 40
        if d.chance(0.1):
            n, most = d.size(1, 140), 12
        X, Q = halves(d, n, d.whole(1, 3), most)
        k = min(n, d.whole(1, 4))
        init = d.pick("init", ("k-means++", "random", "centers"), (2, 2, 4))
        options: dict[str, Any] = {
            "n_clusters": k,
            "init": init,
            "n_init": d.pick("n_init", ("auto", 1, 3)),
            "max_iter": d.pick("max_iter", (1, 2, 5, 100), (2, 2, 2, 1)),
            "tol": d.pick("tol", (0.0, 1e-4, 0.5), (3, 1, 1)),
            "window": draw_window(d, int(X.lengths.max()), types),
            "random_state": d.whole(0, 99),
            "call.also": d.pick("methods", ("queries", "score", "transform", "again", "batches")),
        }
        draw_state(d, types)
        data = {"X": X, "Q": Q}
        if init == "centers":
            rows = d.rng.choice(n, k, replace=False)
            data["init"] = Sample(tuple(X.series[row] + d.rng.integers(0, 2) for row in rows))
        options = draw_distance(d, list(data.values()), options)
        return Case(self.name, data, options, types, relation=self.draw_relation(d))

    def possible(self, case: Case) -> bool:
        X, Q, options = case.data["X"], case.data["Q"], case.options
        if not super().possible(case) or len(X) < options["n_clusters"]:
            return False
        if not fit_for(options, list(case.data.values())):
            return False
        if "init" in case.data:
            if len(case.data["init"]) != options["n_clusters"]:
                return False
        elif options["init"] == "centers":
            return False
        return Q.goes_with(X)

    def call(self, case: Case, how: How) -> dict:
        options = {k: v for k, v in case.given().items() if "." not in k}
        if "init" in case.data:
            options["init"] = case.data["init"].give()
        model = self.target(**options, **how.options(self.target))
        X, Q = case.data["X"].give(), case.data["Q"].give()
        labels = model.fit_predict(X)
        found = {
            "labels": model.labels_,
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
            for batch in (X, Q, X):
                model.partial_fit(batch)
            found["batch labels"], found["batch centers"] = model.labels_, model.cluster_centers_
            found["batch inertia"] = np.float64(model.inertia_)
        else:
            found["again"] = model.predict(X)
            found["names"] = np.array(model.get_feature_names_out(), str)
        if case.relation == "output":
            check_output(model, X, None, Q, model.transform(Q), model.predict(Q))
        return found

    def check(self, case: Case, found: dict) -> None:
        X, Q, options = case.data["X"], case.data["Q"], case.options
        warp, labels = oracle.Warp(window=options["window"]), found["labels"]
        values = found["centers"].reshape(len(found["centers"]), X.n_channels, -1)
        centers = [c[:, ~np.isnan(c[0])] for c in values]
        check(len(centers) <= options["n_clusters"], "too many clusters")
        same("labels: not all", np.unique(labels), np.arange(len(centers), dtype=np.int32))
        history = found["history"]
        check(found["n_iter"] <= options["max_iter"], "n_iter", found["n_iter"])
        check(len(history) <= found["n_iter"] + 1, "history: too long", history)
        check((np.diff(history) < 0).all(), "history: rises", history)
        check(history[-1] == found["inertia"], "inertia: not the last of the history")
        if "again" in found:
            same("predict of the training series", found["again"], labels)
        if options["metric"] != "dtw":
            self._check_other(X, options, centers, found)
            return
        total, slack = self._check(X, centers, warp, labels, found.get("transform X"))
        close("inertia", found["inertia"], total, slack)
        if {"predict", "score"} & found.keys():
            total, slack = self._check(
                Q, centers, warp, found.get("predict"), found.get("transform")
            )
            if "score" in found:
                close("score", found["score"], -total, slack)
        if "batch centers" in found:
            self._check_batches(case, found, centers, warp)
        if "init" in case.data:
            try:
                self._follow(case, found, centers, warp)
            except Ambiguous:
                return

    def _check_other(self, X: Sample, options: dict, centers: list, found: dict) -> None:
        """The labels and the inertia under another metric."""
        costs = terms(options, X.series, centers)
        if costs is None:
            return
        size = max(float(np.abs(x).max(initial=0)) for x in (*X.series, *centers))
        slack = 1e-13 * size * (size if options["metric"] in SCALED else 1.0)
        own = costs[np.arange(len(X)), found["labels"]]
        close("distances to centres", own, costs.min(axis=1), slack, 1e-9)
        close("inertia", found["inertia"], float(own.sum()), len(X) * slack, 1e-9)

    def _check_batches(self, case: Case, found: dict, fitted: list, warp: oracle.Warp) -> None:
        """Compare what batches lead to with the last one, and with plain loops where none ties."""
        X, Q = case.data["X"], case.data["Q"]
        values = found["batch centers"].reshape(len(found["batch centers"]), X.n_channels, -1)
        centers = [c[:, ~np.isnan(c[0])] for c in values]
        total, slack = self._check(X, centers, warp, found["batch labels"], None)
        close("inertia of the batch", found["batch inertia"], total, slack)
        power = oracle.plane(X.series, Q.series, fitted)
        series = [[np.ldexp(x, -power) for x in one.series] for one in (X, Q)]
        try:
            if case.options["random_state"] % 2:
                if "init" not in case.data:
                    return
                current = [np.ldexp(x, -power) for x in case.data["init"].series]
                weights = [np.zeros(c.shape[1]) for c in current]
            else:
                current = [np.ldexp(x, -power) for x in fitted]
                weights = [np.zeros(c.shape[1]) for c in current]
                _, weights = self._joined(series[0], current, weights, found["labels"], warp)
            for batch in (series[0], series[1], series[0]):
                labels = _nearest_alone(batch, current, warp)
                current, weights = self._joined(batch, current, weights, labels, warp)
                if not all(weight.all() for weight in weights):
                    raise Ambiguous
        except Ambiguous:
            return
        for one, other in zip(centers, current, strict=True):
            close("centers of batches", np.ldexp(one, -power), other, 1e-9)

    def _joined(self, X: list, centers: list, weights: list, labels: Any, warp: oracle.Warp):
        """Centres, and the weights of their points, after a batch."""
        joined, counts = [], []
        for k, center in enumerate(centers):
            total, count = center * weights[k], weights[k].copy()
            for row in np.flatnonzero(np.asarray(labels) == k):
                for i, j in matched(center, X[row], warp, exact=False):
                    total[:, i] += X[row][:, j]
                    count[i] += 1
            joined.append(np.where(count > 0, total / np.maximum(count, 1), center))
            counts.append(count)
        return joined, counts

    def _check(self, sample, centers, warp, labels, distances) -> tuple[float, float]:
        """Compare labels and distances; return the inertia and how far it may be off."""
        D = oracle.dtw_matrix(sample.series, centers, warp)
        exact = ints_only(sample, Sample(tuple(centers)))
        if distances is not None:
            close("transform", distances, D)
        if labels is not None:
            for row, label in zip(D, labels, strict=True):
                nearest("label", row, 0.0, np.array([label]), None, exact=exact)
        least = D.min(axis=1)
        return float(np.sum(least**2)), 4 * RELATIVE * float(np.sum(least**2))

    def _follow(self, case: Case, found: dict, centers: list, warp: oracle.Warp) -> None:
        """Repeat all iterations from given centres, as long as nothing ties."""
        X, init, options = case.data["X"], case.data["init"], case.options
        power = oracle.plane(X.series, init.series)
        series = [np.ldexp(x, -power) for x in X.series]
        current = [np.ldexp(x, -power) for x in init.series]
        least = options["tol"] * _mean_variance(series)
        exact, settled, best, last = ints_only(X, init), False, None, np.inf
        ones = np.ones(len(X))
        longest = max(x.shape[1] for x in (*series, *current))
        for iteration in range(options["max_iter"] + 1):
            labels = _nearest_alone(series, current, warp)
            if len(set(labels)) < len(current):
                raise Ambiguous
            costs = squares(series, current, warp)
            own = costs.min(axis=1)
            slack = slack_of(costs, 2 * longest * X.n_channels)
            new, off = float(own.sum()), float(slack.sum())
            if last != np.inf and abs(last - new) <= 4 * off:
                raise Ambiguous
            if new > last:
                break
            best, last = (labels, current), new
            if settled or iteration == options["max_iter"]:
                break
            moved = updated(current, series, labels, ones, warp, exact)
            exact = False
            change = sum(float(((a - b) ** 2).sum()) for a, b in zip(moved, current, strict=True))
            if abs(change - least) <= 1e-6 * least + 1e-20:
                raise Ambiguous
            settled, current = change < least, moved
        same("labels of the iteration", found["labels"], best[0].astype(np.int32))
        for one, other in zip(centers, best[1], strict=True):
            close("centers of the iteration", np.ldexp(one, -power), other, 1e-9)

    def relate_scale(self, case, found, call, power):
        other = scales_exactly(case, power)
        if other is None or case.options["metric"] not in SCALED:
            return
        again = call(other)
        names = ["labels", "n_iter"]
        if "batch centers" in found:
            names.append("batch labels")
            centers = again["batch centers"].reshape(found["batch centers"].shape)
            wanted = np.ldexp(found["batch centers"], power)
            same("scaled by a power of two: centers of batches", centers, wanted)
        for name in names:
            same(f"scaled by a power of two: {name}", again[name], found[name])
        # in the plainest form, without an axis of channels
        centers = again["centers"].reshape(found["centers"].shape)
        same("scaled by a power of two: centers", centers, np.ldexp(found["centers"], power))
        wanted = np.ldexp(found["inertia"], 2 * power)
        same("scaled by a power of two: inertia", again["inertia"], wanted)

    def relate_forms(self, case, found, call):
        again = call(plain(case))
        for name in ("labels", "inertia", "history", "n_iter"):
            same(f"another form: {name}", again[name], found[name])
        shape = again["centers"].shape
        same("another form: centers", again["centers"], found["centers"].reshape(shape))

    relate_alone = relate_a_query_alone


def _mean_variance(series: list) -> float:
    """The mean variance of a time point, over the series that reach it."""
    longest = max(x.shape[1] for x in series)
    found = []
    for t in range(longest):
        points = np.array([x[:, t] for x in series if x.shape[1] > t])
        found.append(points.var(axis=0))
    return float(np.mean(found))


def _nearest_alone(series: list, centers: list, warp: oracle.Warp) -> np.ndarray:
    """The nearest centre of each series, none of which is about as near to another one."""
    costs = squares(series, centers, warp)
    longest = max(x.shape[1] for x in (*series, *centers))
    slack = slack_of(costs, 2 * longest * len(series[0]))
    own = costs.min(axis=1) + slack.max(axis=1)
    if ((costs - slack <= own[:, None]).sum(axis=1) > 1).any():
        raise Ambiguous
    labels: np.ndarray = costs.argmin(axis=1)
    return labels
