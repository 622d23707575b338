"""Recipes of medoids, of silhouettes, and of the choice of a number of clusters."""

from __future__ import annotations

import warnings
from dataclasses import replace
from typing import Any, ClassVar

import numpy as np
from sklearn.exceptions import ConvergenceWarning

import skts

from . import oracle, oracle_elastic
from .case import Case
from .compare import RELATIVE, check, close, nearest, same
from .draw import Draw
from .recipe import (
    RECIPES,
    How,
    Recipe,
    check_output,
    draw_metric,
    draw_state,
    draw_window,
    fit_for,
    ints_only,
    plain,
    relate_a_query_alone,
    shapes,
    warp_of,
)
from .recipes_metrics import slack_of
from .recipes_neighbors import Ambiguous, are_distances, given_distances, halves


class KMedoids(Recipe):
    name = "skts.DTWKMedoids"
    methods = (
        "fit",
        "fit_predict",
        "fit_transform",
        "get_feature_names_out",
        "predict",
        "score",
        "set_output",
        "transform",
    )
    relations = ("forms", "alone", "output")

    def draw(self, d: Draw) -> Case:
        n, types = d.whole(1, 12), {}
        most = 40
        if d.chance(0.1):
            n, most = d.size(1, 80), 12
        X, Q = halves(d, n, d.whole(1, 3), most)
        k = min(n, d.whole(1, 4))
        init = d.pick("init", ("k-means++", "build", "random", "numbers"), (2, 2, 1, 4))
        if d.pick("distances", ("computed", "precomputed"), (5, 1)) == "precomputed":
            X, Q = given_distances(d, n, len(Q))
            options: dict[str, Any] = {"metric": "precomputed"}
        else:
            options = draw_metric(d, [X, Q], types)
            del options["alignment"]
        options |= {
            "n_clusters": k,
            "method": d.pick("method", ("pam", "alternate"), (3, 1)),
            "init": init,
            "n_init": d.pick("n_init", ("auto", 1, 3)),
            "max_iter": d.pick("max_iter", (1, 2, 5, 100), (1, 1, 1, 2)),
            "random_state": d.whole(0, 99),
            "call.also": d.pick("methods", ("queries", "score", "transform", "again")),
        }
        draw_state(d, types)
        if init == "numbers":
            options["init"] = [int(row) for row in d.rng.choice(n, k, replace=False)]
        return Case(self.name, {"X": X, "Q": Q}, options, types, relation=self.draw_relation(d))

    def possible(self, case: Case) -> bool:
        X, Q, options = case.data["X"], case.data["Q"], case.options
        if not super().possible(case) or len(X) < options["n_clusters"]:
            return False
        init = options["init"]
        if isinstance(init, list) and (
            len(init) != options["n_clusters"] or max(init) >= len(X) or len(set(init)) < len(init)
        ):
            return False
        if options["metric"] == "precomputed":
            return are_distances(X, Q)
        return fit_for(options, [X, Q]) and Q.goes_with(X)

    def call(self, case: Case, how: How) -> dict:
        options = {k: v for k, v in case.given().items() if "." not in k}
        model = self.target(**options, **how.options(self.target))
        X, Q = case.data["X"].give(), case.data["Q"].give()
        labels = model.fit_predict(X)
        found = {
            "labels": model.labels_,
            "medoids": model.medoid_indices_,
            "inertia": np.float64(model.inertia_),
            "history": model.history_,
            "n_iter": np.int64(model.n_iter_),
        }
        same("fit_predict", labels, model.labels_)
        self._check_centers(case, model)
        also = case.options["call.also"]
        if also == "queries":
            found["predict"], found["transform"] = model.predict(Q), model.transform(Q)
        elif also == "score":
            found["score"] = np.float64(model.score(Q))
        elif also == "transform":
            found["transform X"] = model.transform(X)
        else:
            found["again"] = model.predict(X)
            found["names"] = np.array(model.get_feature_names_out(), str)
        if case.relation == "output":
            check_output(model, X, None, Q, model.transform(Q), model.predict(Q))
        return found

    def _check_centers(self, case: Case, model: Any) -> None:
        """The medoids are series of the set."""
        centers, X = model.cluster_centers_, case.data["X"]
        if case.options["metric"] == "precomputed":
            check(centers is None, "centers: of distances", centers)
            return
        centers = centers.reshape(len(model.medoid_indices_), X.n_channels, -1)
        for center, row in zip(centers, model.medoid_indices_, strict=True):
            same("centers", center[:, ~np.isnan(center[0])], X.series[row])

    def distances(self, case: Case, rows: Any, which: Any) -> np.ndarray | None:
        """Distances to some training series; None where rounding of a deviation decides."""
        metric, given = case.options["metric"], case.options.get("metric_params") or {}
        if metric == "precomputed":
            return np.concatenate(rows)[:, which]
        cols, warp = [case.data["X"].series[row] for row in which], warp_of(case)
        if any(oracle_elastic.thresholds(metric, x, y, given, warp) for x in rows for y in cols):
            return None
        return oracle_elastic.matrix(rows, cols, warp, metric, **given)

    def check(self, case: Case, found: dict) -> None:
        X, Q, options = case.data["X"].series, case.data["Q"].series, case.options
        medoids, labels, history = found["medoids"], found["labels"], found["history"]
        check(len(medoids) <= options["n_clusters"], "too many clusters")
        check(len(set(medoids.tolist())) == len(medoids), "medoids: repeated", medoids)
        same("labels: not all", np.unique(labels), np.arange(len(medoids), dtype=np.int32))
        check(1 <= found["n_iter"] <= options["max_iter"], "n_iter", found["n_iter"])
        check(len(history) <= found["n_iter"] + 1, "history: too long", history)
        check((np.diff(history) < 0).all(), "history: rises", history)
        check(history[-1] == found["inertia"], "inertia: not the last of the history")
        if "again" in found:
            same("predict of the training series", found["again"], labels)
        D = self.distances(case, X, range(len(X)))
        if D is None:
            return
        given = options["metric"] == "precomputed"
        slack = 0.0 if given else slack_of(options["metric"], [*X, *Q])
        exact = given or (ints_only(case.data["X"]) and options["metric"] in ("euclidean", "dtw"))
        own = D[:, medoids]
        for row, label in zip(own, labels, strict=True):
            nearest("label", row, slack, np.array([label]), None, exact=exact)
        if "transform X" in found:
            close("transform", found["transform X"], own, slack)
        close("inertia", found["inertia"], own.min(axis=1).sum(), len(X) * slack, 4 * RELATIVE)
        self._check_queries(case, found, slack)
        if options["method"] == "pam" and found["n_iter"] < options["max_iter"]:
            off = 2 * len(X) * slack + 8 * RELATIVE * found["inertia"]
            self._no_better_swap(D, medoids, off)
        if isinstance(options["init"], list) and len(medoids) == options["n_clusters"]:
            try:
                self._follow(case, found, D, slack)
            except Ambiguous:
                return

    def _check_queries(self, case: Case, found: dict, slack: float) -> None:
        Q = case.data["Q"].series
        D = self.distances(case, Q, found["medoids"])
        if D is None:
            return
        if "transform" in found:
            close("transform", found["transform"], D, slack)
            for row, label in zip(D, found["predict"], strict=True):
                nearest("predict", row, slack, np.array([label]), None)
        if "score" in found:
            close("score", found["score"], -D.min(axis=1).sum(), len(Q) * slack, 4 * RELATIVE)

    def _no_better_swap(self, D: np.ndarray, medoids: np.ndarray, off: float) -> None:
        """Try every swap of a medoid with a series that is none."""
        least = D[:, medoids].min(axis=1).sum()
        for place in range(len(medoids)):
            rest = np.delete(medoids, place)
            for index in np.setdiff1d(np.arange(len(D)), medoids):
                after = D[:, [*rest, index]].min(axis=1).sum()
                check(after >= least - off, "a swap is left", f"{place}, {index}: {after}, {least}")

    def _follow(self, case: Case, found: dict, D: np.ndarray, slack: float) -> None:
        """Repeat all swaps, or iterations, as long as nothing ties."""
        medoids = list(case.options["init"])
        off = 4 * len(D) * slack + 1e-11 * D.sum()

        def inertia(some: list) -> float:
            return float(D[:, some].min(axis=1).sum())

        def lower(new: float, old: float) -> bool:
            if abs(new - old) <= off:
                raise Ambiguous
            return new < old

        if case.options["method"] == "alternate":
            for _ in range(case.options["max_iter"]):
                order = np.sort(D[:, medoids], axis=1)
                if len(medoids) > 1 and (order[:, 1] - order[:, 0] <= off).any():
                    raise Ambiguous
                labels, moved = D[:, medoids].argmin(axis=1), []
                for place in range(len(medoids)):
                    members = np.flatnonzero(labels == place)
                    sums = D[np.ix_(members, members)].sum(axis=0)
                    if (sums - sums.min() <= off).sum() > 1:
                        raise Ambiguous
                    moved.append(int(members[sums.argmin()]))
                if moved == medoids or not lower(inertia(moved), inertia(medoids)):
                    break
                medoids = moved
        else:
            self._swap(D, medoids, case.options["max_iter"], inertia, lower, off)
        same("medoids of the iterations", found["medoids"], np.array(medoids))

    def _swap(self, D, medoids, max_iter, inertia, lower, off) -> None:
        """Each series in turn in the place of the medoid for which it is best."""
        tried, n = 0, len(D)
        for _ in range(max_iter):
            for index in range(n):
                if tried == n:
                    return
                tried += 1
                if index in medoids:
                    continue
                after = np.array(
                    [
                        inertia([*medoids[:place], index, *medoids[place + 1 :]])
                        for place in range(len(medoids))
                    ]
                )
                if lower(after.min(), inertia(medoids)):
                    if (after - after.min() <= off).sum() > 1:
                        raise Ambiguous
                    medoids[int(after.argmin())] = index
                    tried = 1

    def relate_forms(self, case, found, call):
        same("another form of the data", call(plain(case)), found)

    relate_alone = relate_a_query_alone


def means_of(D: np.ndarray, labels: np.ndarray, i: int) -> tuple[float, float] | None:
    """Mean distance to the own cluster and the least to another; None in a cluster of one."""
    others = (labels == labels[i]) & (np.arange(len(D)) != i)
    if not others.any():
        return None
    apart = (D[i][labels == label].mean() for label in set(labels.tolist()) - {int(labels[i])})
    return float(D[i][others].mean()), float(min(apart))


def silhouettes_of(D: np.ndarray, labels: np.ndarray, off: float) -> tuple[np.ndarray, np.ndarray]:
    """Silhouettes by the oracle, and how far they may be off where distances are off by `off`."""
    found = []
    for i in range(len(D)):
        within, least = means_of(D, labels, i) or (0.0, 0.0)
        largest = max(within, least)
        alone = (labels == labels[i]).sum() == 1
        value = (least - within) / largest if largest > 0 else 0.0
        # beyond 2 it can be anything
        found.append((value, 0.0 if alone else min(4 * off / max(largest, 1e-300), 2.0)))
    values, errors = np.array(found).T
    return values, errors


class Silhouettes(Recipe):
    name = "skts.metrics.silhouette_samples"
    relations = ("forms", "names")

    def draw(self, d: Draw) -> Case:
        n, types = d.whole(3, 12), {}
        X = d.form(d.numbers(shapes(d, n, 40)), label=" X")
        options = draw_metric(d, [X], types)
        del options["alignment"]
        if d.chance(0.2):
            params = d.pick("normalize", (None, {"normalize": True}, {"normalize": False}))
            types.pop("window", None)
            options |= {"metric": "sbd", "metric_params": params, "window": None}
        options["labels"] = [int(k) for k in d.rng.permutation(np.arange(n) % d.whole(2, n - 1))]
        return Case(self.name, {"X": X}, options, types, relation=self.draw_relation(d))

    def possible(self, case: Case) -> bool:
        X, options = case.data["X"], case.options
        labels = options["labels"]
        fitting = len(labels) == len(X) and 2 <= len(set(labels)) < len(X)
        known = options["metric"] == "sbd" or fit_for(options, [X])
        return super().possible(case) and fitting and known

    def call(self, case: Case, how: How) -> dict:
        found = self.target(case.data["X"].give(), **case.given(), **how.options(self.target))
        return {"each": np.asarray(found)} | self.errors(case)

    def errors(self, case: Case) -> dict:
        """How far shape-based distances, which differ in their last bits, may move silhouettes."""
        if case.options["metric"] != "sbd":
            return {}
        D, off = self.distances(case)
        return {"errors": silhouettes_of(D, np.array(case.options["labels"]), off)[1]}

    def agree(self, name: str, found: dict, wanted: dict) -> None:
        slack = found.get("errors")
        if slack is None:
            super().agree(name, found, wanted)
            return
        close(f"{name} each", found["each"], wanted["each"], slack, 1e-9)
        if "score" in found:
            close(f"{name} score", found["score"], wanted["score"], slack.mean(), 1e-9)

    def distances(self, case: Case) -> tuple[np.ndarray | None, float]:
        """Distances by the oracle, and how far they may be off; None where rounding decides."""
        X, options = case.data["X"].series, case.options
        metric, given = options["metric"], options["metric_params"] or {}
        if metric != "sbd":
            warp = warp_of(case)
            if any(oracle_elastic.thresholds(metric, x, y, given, warp) for x in X for y in X):
                return None, 0.0
            D = oracle_elastic.matrix(X, X, warp, metric, **given)
            return D, slack_of(metric, X) + 1e-10 * D.max()
        width = max(x.shape[1] for x in X)
        how = {"normalize": given.get("normalize", True), "short": width < 3, "width": width}
        shaped = [oracle.shape_of(x, **how) for x in X]
        D = np.array([[oracle.sbd(a.values, b.values)[0] for b in shaped] for a in shaped])
        return np.maximum(D, 0), 1e-10 + 4 * max(one.slack for one in shaped)

    def check(self, case: Case, found: dict) -> None:
        values = found["each"]
        labels, (D, off) = np.array(case.options["labels"]), self.distances(case)
        check(values.shape == labels.shape, "silhouettes: shape", values.shape)
        check((np.abs(values) <= 1).all(), "silhouettes: beyond 1", values)
        if D is None:
            return
        for i in range(len(labels)):
            means = means_of(D, labels, i)
            if means is None:
                check(values[i] == 0, "silhouette of a cluster of one", values[i])
                continue
            within, least = means
            largest = max(means)
            if largest > 1e3 * off:
                close("silhouette", values[i], (least - within) / largest, 4 * off / largest, 1e-9)

    def relate_forms(self, case, found, call):
        self.agree("another form", call(plain(case)), found)

    def relate_names(self, case, found, call):
        """Other numbers for the same clusters."""
        labels = [9 - label for label in case.options["labels"]]
        again = call(replace(case, options=case.options | {"labels": labels}))
        self.agree("other labels", again, found)


class SilhouetteScore(Silhouettes):
    name = "skts.metrics.silhouette_score"
    relations = ("forms",)

    def call(self, case: Case, how: How) -> dict:
        given = case.data["X"].give(), case.options["labels"]
        options = {name: value for name, value in case.given().items() if name != "labels"}
        found = self.target(*given, **options, **how.options(self.target))
        check(type(found) is float, "score: type", str(type(found)))
        each = skts.metrics.silhouette_samples(*given, **options, **how.options(self.target))
        return {"score": np.float64(found), "each": each} | self.errors(case)

    def check(self, case: Case, found: dict) -> None:
        super().check(case, found)
        same("mean", found["score"], np.mean(found["each"]))


class Choice(Recipe):
    name = "skts.cluster.choose_n_clusters"
    relations = ("forms",)
    #: Fuzzed as its parts are; here is how they come together.
    handed = ("estimator",)
    loose: ClassVar[dict[str, float]] = {"shape": 1e-9}
    #: Other parameters than those by default.
    PARAMETERS: ClassVar = {"erp": {"gap": 1.5}, "msm": {"penalty": 3.0}, "wdtw": {"g": 0.5}}

    def draw(self, d: Draw) -> Case:
        n, types = d.whole(4, 12), {}
        X = d.form(d.numbers(shapes(d, n, 20)), label=" X")
        options: dict[str, Any] = {
            "n_clusters": [d.whole(2, n - 1) for _ in range(d.whole(1, 3))],
            "of.kind": d.pick("estimator", ("DTWKMeans", "DTWKMedoids", "KShapeClusterer")),
            "of.random_state": d.whole(0, 99),
        }
        draw_state(d, types, "of.random_state")
        if options["of.kind"] == "KShapeClusterer":
            options["of.normalize"] = d.pick("normalize", (True, False))
            return Case(self.name, {"X": X}, options, types, relation=self.draw_relation(d))
        options |= {
            "of.window": draw_window(d, int(X.lengths.max()), {}),
            "of.metric": d.pick("metric", ("dtw", *self.PARAMETERS), (2, 1, 1, 1)),
        }
        given = self.PARAMETERS.get(options["of.metric"])
        options["of.metric_params"] = given if d.chance(0.7) else None
        if options["of.kind"] == "DTWKMedoids":
            options["of.cost"] = d.pick("cost", ("squared", "absolute"))
        return Case(self.name, {"X": X}, options, types, relation=self.draw_relation(d))

    def possible(self, case: Case) -> bool:
        n = len(case.data["X"])
        return super().possible(case) and all(2 <= k < n for k in case.options["n_clusters"])

    def model(self, case: Case, how: How) -> Any:
        kind = getattr(skts, case.options["of.kind"])
        of = {name: value for name, value in case.given("of.").items() if name != "kind"}
        return kind(**of, **how.options(kind))

    def call(self, case: Case, how: How) -> dict:
        model, X = self.model(case, how), case.data["X"].give()
        try:
            found = self.target(model, X, case.options["n_clusters"])
        except ValueError as error:
            if "No fit has a silhouette" not in str(error):
                raise
            return {"best": np.int64(0)}
        names = ("n_clusters", "inertia", "silhouette")
        parts = {name: np.asarray(getattr(found, name)) for name in names}
        parts |= {"best": np.int64(found.best), "labels": found.estimator.labels_}
        parts["its inertia"] = np.float64(found.estimator.inertia_)
        if self.is_rounded(case) and not case.unseeded:
            matrix, fits = self.matrix(case), self.fits(case, how)
            errors = [self.score(case, one.labels_, matrix)[1] for one in fits]
            parts["errors"] = np.array(errors)
        return parts

    def is_rounded(self, case: Case) -> bool:
        """Whether shape-based distances, and so silhouettes, differ in their last bits."""
        return bool(case.options["of.kind"] == "KShapeClusterer")

    def fits(self, case: Case, how: How) -> list:
        """A fit with each number of clusters, ascending."""
        X = case.data["X"].give()
        numbers = sorted(set(case.options["n_clusters"]))
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", ConvergenceWarning)
            return [self.model(case, how).set_params(n_clusters=k).fit(X) for k in numbers]

    def matrix(self, case: Case) -> tuple[np.ndarray, float] | None:
        """Shape-based distances by the oracle, and how far they may be off; None of others."""
        if not self.is_rounded(case):
            return None
        given = {"normalize": case.options["of.normalize"]}
        options = {"metric": "sbd", "metric_params": given}
        D, off = RECIPES[Silhouettes.name].distances(replace(case, options=options))
        return D, off

    def score(
        self, case: Case, labels: np.ndarray, matrix: tuple[np.ndarray, float] | None
    ) -> tuple[float, float]:
        """The mean silhouette of labels, and how far it may be off; NaN where there is none."""
        of, X = case.given("of."), case.data["X"]
        if not 2 <= len(set(labels.tolist())) < len(X):
            return np.nan, 0.0
        if matrix is not None:
            values, errors = silhouettes_of(matrix[0], labels, matrix[1])
            return float(values.mean()), float(errors.mean())
        names = ("metric", "metric_params", "cost", "window")
        given = {name: value for name, value in of.items() if name in names}
        return skts.metrics.silhouette_score(X.give(), labels, **given), 0.0

    def agree(self, name: str, found: dict, wanted: dict) -> None:
        if "errors" not in found or "errors" not in wanted:
            super().agree(name, found, wanted)
            return
        same(f"{name} n_clusters", found["n_clusters"], wanted["n_clusters"])
        close(f"{name} inertia", found["inertia"], wanted["inertia"], 1e-9, 1e-9)
        self._same_silhouettes(name, found["silhouette"], wanted["silhouette"], found["errors"])
        if found["best"] == wanted["best"]:
            same(f"{name} labels", found["labels"], wanted["labels"])
            return
        # both are within the tie, but for roundings
        places = [np.flatnonzero(found["n_clusters"] == one["best"])[0] for one in (found, wanted)]
        apart = abs(np.subtract(*found["silhouette"][places]))
        check(apart <= 1e-9 + 2 * found["errors"][places].sum(), f"{name} best", found["best"])

    def _same_silhouettes(self, name: str, found: Any, wanted: Any, errors: Any) -> None:
        known = ~np.isnan(wanted)
        same(f"{name} silhouette: known", ~np.isnan(found), known)
        for one, other, error in zip(found[known], wanted[known], errors[known], strict=True):
            close(f"{name} silhouette", one, other, error, 1e-9 if error else 0.0)

    def check(self, case: Case, found: dict) -> None:
        numbers, matrix = np.array(sorted(set(case.options["n_clusters"]))), self.matrix(case)
        if not case.unseeded:
            fits = self.fits(case, How("numba"))
            wanted = [self.score(case, one.labels_, matrix) for one in fits]
            if found["best"] == 0:
                check(np.isnan([one[0] for one in wanted]).all(), "refused, and there is one")
        if found["best"] == 0:
            return
        same("n_clusters", found["n_clusters"], numbers)
        values = found["silhouette"]
        best = int(np.flatnonzero(values >= np.nanmax(values) - 1e-9)[0])
        same("best", found["best"], np.int64(numbers[best]))
        same("inertia of the best", found["inertia"][best], found["its inertia"])
        one, error = self.score(case, found["labels"], matrix)
        self._same_silhouettes("best", values[[best]], np.array([one]), np.array([error]))
        check(found["labels"].max() < numbers[best], "labels: too many", found["labels"])
        if case.unseeded:
            return
        self._same_silhouettes("each", values, *np.array(wanted).T)
        same("labels", found["labels"], fits[best].labels_)
        inertia = [one.inertia_ for one in fits]
        if self.is_rounded(case):
            close("inertia", found["inertia"], np.array(inertia), 1e-9, 1e-9)
        else:
            same("inertia", found["inertia"], np.array(inertia))

    def relate_forms(self, case, found, call):
        same("another form of the data", call(plain(case)), found)
