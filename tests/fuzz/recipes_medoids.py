"""Recipes of medoids."""

from __future__ import annotations

from typing import Any

import numpy as np

from . import oracle_elastic
from .case import Case
from .compare import RELATIVE, check, close, nearest, same
from .draw import Draw
from .recipe import How, Recipe, check_output, draw_metric, fit_for, ints_only, plain, warp_of
from .recipes_metrics import slack_of
from .recipes_neighbors import Ambiguous, halves


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
        options: dict[str, Any] = draw_metric(d, [X, Q], types)
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
        same_form = X.form == "list" or Q.form in ("list", "array3d")
        return fit_for(options, [X, Q]) and (same_form or X.lengths.max() == Q.lengths.max())

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
        centers = model.cluster_centers_.reshape(
            len(model.medoid_indices_), case.data["X"].n_channels, -1
        )
        for center, row in zip(centers, model.medoid_indices_, strict=True):
            same("centers", center[:, ~np.isnan(center[0])], case.data["X"].series[row])
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

    def distances(self, case: Case, rows: Any, cols: Any) -> np.ndarray | None:
        """Distances by the oracle; None where rounding of a deviation decides what matches."""
        metric, given = case.options["metric"], case.options["metric_params"] or {}
        if any(oracle_elastic.thresholds(metric, x, y, given) for x in rows for y in cols):
            return None
        return oracle_elastic.matrix(rows, cols, warp_of(case), metric, **given)

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
        D = self.distances(case, X, X)
        if D is None:
            return
        slack = slack_of(options["metric"], [*X, *Q])
        exact = ints_only(case.data["X"]) and options["metric"] in ("euclidean", "dtw")
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
        X, Q = case.data["X"].series, case.data["Q"].series
        D = self.distances(case, Q, [X[row] for row in found["medoids"]])
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
                    sums = D[np.ix_(members, members)].sum(axis=1)
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

    def relate_alone(self, case, found, call):
        """A query alone has the label and the distances that it has in a batch."""
        if "predict" not in found:
            return
        Q = case.data["Q"]
        again = call(case.but(Q=Q.take([len(Q) - 1])))
        for name in ("predict", "transform"):
            same(f"a query alone: {name}", again[name], found[name][-1:])
