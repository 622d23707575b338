"""Recipes of `skts.neighbors`: search, classification, condensing."""

from __future__ import annotations

import itertools
import math
from dataclasses import replace
from typing import Any

import numpy as np

from skts.metrics import pairwise_distances

from . import oracle, oracle_elastic
from .case import LISTS, Case, Sample
from .compare import RELATIVE, Failure, check, close, copies_in_order, nearest, same
from .draw import Draw
from .recipe import (
    How,
    Recipe,
    check_output,
    draw_metric,
    draw_warp,
    draw_window,
    fit_for,
    ints_only,
    plain,
    points_of,
    scaled,
    shapes,
    warp_of,
)
from .recipes_metrics import slack_of

PRECISIONS = ("auto", "float64", "float32")
#: Candidates of which a list of survivors holds all.
SHORT = 60
#: The largest number over the range of a window, up to which bits of float32 alone settle.
TAME = 256


class Ambiguous(Exception):
    """Two values are so near that rounding decides between them: the oracle cannot."""


def draw_labels(d: Draw, n: int, *, least: int = 1) -> list:
    """Class labels of n series."""
    kind = d.pick("classes", ("one", "two", "many"), (1, 6, 3))
    count = {"one": 1, "two": 2, "many": 4}[kind] if n >= least else 1
    names = {"str": ["zebra", "yak", "apple", "Bear"], "int": [3, -1, 7, 0]}
    names |= {"bool": [True, False, True, False]}
    kinds = d.pick("labels", ("str", "int", "bool"), (2, 3, 1))
    return [names[kinds][int(k)] for k in d.rng.integers(0, count, n)]


def halves(d: Draw, n_train: int, n_query: int, most: int, **options: Any) -> tuple:
    """Training series and queries of one kind of numbers."""
    sizes = shapes(d, n_train + n_query, most, **options)
    series = d.numbers(sizes)
    X, Q = d.form(series[:n_train], label=" X"), d.form(series[n_train:], label=" Q")
    if X.form == Q.form == "padded" and Q.lengths.max() <= X.lengths.max():
        Q = replace(Q, spare=X.width - int(Q.lengths.max()))
    any_length = Q.form in (*LISTS, "array3d") or X.form in (*LISTS, Q.form)
    if not Q.goes_with(X) or not any_length:
        Q = replace(Q, form="list", layout="C" if Q.layout == "nested" else Q.layout)
    if X.form == "frame":
        Q = replace(Q, form="list", layout="C")
    return X, Q


def given_distances(d: Draw, n_train: int, n_query: int) -> tuple[Sample, Sample]:
    """Rows of distances to training series: of these themselves, and of queries."""
    kind = "ties" if d.chance(0.5) else "normal"
    rows = [d.points(kind, n_train) for _ in range(n_train + n_query)]
    X, Q = np.split(np.abs(np.stack(rows)), [n_train])
    return Sample(tuple(X[:, None, :]), "array"), Sample(tuple(Q[:, None, :]), "array")


def are_distances(X: Sample, Q: Sample) -> bool:
    """Whether rows of both have a column for each row of the first."""
    return {len(X)} == set(X.lengths.tolist()) | set(Q.lengths.tolist())


def falling(distances: np.ndarray) -> np.ndarray:
    """Weights by a function of the user's."""
    return 1 / (2 + np.minimum(distances, 1e6)) ** 2


#: What is handed over as `weights`, by its name in a case.
WEIGHTS: dict[str, Any] = {"uniform": "uniform", "distance": "distance", "falling": falling}


def weights_by(row: np.ndarray, weights: str) -> np.ndarray:
    """The weights of the neighbours of one query."""
    if weights == "distance":
        return (row == 0).astype(float) if (row == 0).any() else 1 / row
    if weights == "falling":
        return np.array([(2 + min(distance, 1e6)) ** -2.0 for distance in row.tolist()])
    return np.ones(len(row))


def votes_of(distances: np.ndarray, labels: np.ndarray, n: int, weights: str) -> np.ndarray:
    """The votes of the neighbours of each query."""
    found = np.zeros((len(labels), n))
    for i, (row, classes) in enumerate(zip(distances, labels, strict=True)):
        for label, weight in zip(classes, weights_by(row, weights), strict=True):
            found[i, label] += weight
    return found


class Neighbors(Recipe):
    """What all estimators share that look for the nearest of the series they keep."""

    long = 0.02
    SEARCHES = ("kneighbors", "kneighbors_graph", "radius_neighbors", "radius_neighbors_graph")
    #: What is called beside `kneighbors`.
    also: tuple[str, ...] = ("graph", "radius", "radius graph")

    @property
    def defaults(self) -> dict[str, Any]:
        return super().defaults | {"kneighbors.return_distance": True}

    def draw_rest(self, d: Draw, n_train: int) -> tuple[dict, dict]:
        """Data beside the series, and options of one estimator alone."""
        raise NotImplementedError

    def fit(self, model: Any, case: Case) -> Any:
        return model.fit(case.data["X"].give(), case.data["y"])

    def draw(self, d: Draw) -> Case:
        metric = d.pick("metric", ("dtw", "dog_keeper", "precomputed", "named"), (5, 2, 1, 3))
        # engines bound distances from some hundred candidates and some points on
        many = metric != "precomputed" and d.chance(0.03)
        n_train = d.whole(60, 270) if many else d.whole(1, 12)
        n_query, types = d.whole(1, 4), {}
        options: dict[str, Any] = {"metric": metric}
        if metric == "precomputed":
            X, Q = given_distances(d, n_train, n_query)
        else:
            able = metric in ("dtw", "dog_keeper")
            rotation = able and d.pick("rotation_invariant", (False, True), (5, 1))
            options["rotation_invariant"] = rotation
            if rotation:
                n_train = min(n_train, 8)
                if d.pick("long", (False, True), (1 - self.long, self.long)):
                    X, Q = halves(d, n_train := d.whole(1, 2), 1, 33, long=1.0, furthest=660)
                else:
                    X, Q = halves(d, n_train, n_query, 33, equal=0.6)
                n_train = len(X)
                options["window"] = draw_window(d, int(X.lengths.max()), types)
                options["cost"] = d.pick("cost", ("squared", "absolute"))
                options["kneighbors.return_shift"] = d.pick("return_shift", (False, True))
            else:
                far = 0.0 if many else self.long
                if d.pick("long", (False, True), (1 - far, far)):
                    X, Q = halves(d, n_train := d.whole(1, 3), 1, 130, long=1.0)
                else:
                    X, Q = halves(d, n_train, n_query, 33 if many else 130)
                longest = max(X.lengths.max(), Q.lengths.max())
                if metric == "named":
                    options |= draw_metric(d, [X, Q], types)
                    if options["metric"] == "ddtw" and options["alignment"] != "global":
                        options["kneighbors.return_span"] = d.chance(0.5)
                else:
                    options |= draw_warp(d, longest, types, metric=False)
                    span = options["alignment"] != "global" and d.pick("return_span", (False, True))
                    options["kneighbors.return_span"] = span
                if d.labels["long"] == "True" and d.chance(0.4):  # strips of all widths
                    options["window"] = None
                    types.pop("window", None)
        available = n_train - 1
        # few cases count edits within a given epsilon: kernels that do so in float32 are theirs
        edits = (options.get("metric_params") or {}).get("epsilon") is not None
        if edits and d.chance(0.5):
            options["window"] = None
            types.pop("window", None)
        options |= {
            "n_neighbors": min(n_train, d.pick("n_neighbors", (1, 2, 3, 9), (4, 1, 1, 1))),
            "precision": d.pick("precision", PRECISIONS, (1, 1, 4) if edits else (6, 2, 1)),
            "call.also": d.pick("methods", self.also),
            "kneighbors.X": d.pick("kneighbors.X", ("some", "none"), (2, 1))
            if available
            else "some",
            "kneighbors.n_neighbors": d.pick("kneighbors.n_neighbors", (None, 1, 2, 5)),
            "kneighbors.return_distance": d.pick(
                "kneighbors.return_distance", (True, False), (4, 1)
            ),
            "kneighbors_graph.mode": d.pick("kneighbors_graph.mode", ("connectivity", "distance")),
            "radius_neighbors.return_distance": d.pick(
                "radius_neighbors.return_distance", (True, False), (3, 1)
            ),
            "radius_neighbors_graph.mode": d.pick(
                "radius_neighbors_graph.mode", ("connectivity", "distance")
            ),
        }
        options["radius_neighbors.sort_results"] = options[
            "radius_neighbors.return_distance"
        ] and d.pick("radius_neighbors.sort_results", (False, True))
        options["radius_neighbors_graph.sort_results"] = d.pick(
            "radius_neighbors_graph.sort_results", (False, True)
        )
        if not available:
            options["kneighbors.X"] = "some"
        most = available if options["kneighbors.X"] == "none" else n_train
        k = options["kneighbors.n_neighbors"] or options["n_neighbors"]
        options["kneighbors.n_neighbors"] = options["kneighbors_graph.n_neighbors"] = min(k, most)
        data, more = self.draw_rest(d, n_train)
        options |= more
        relation = self.draw_relation(d) if metric != "precomputed" else None
        case = Case(self.name, {"X": X} | data | {"Q": Q}, options, types, relation=relation)
        return self.with_radius(d, case)

    def with_radius(self, d: Draw, case: Case) -> Case:
        """The case with a radius: one of its distances, or a little less or more, or an end."""
        kind = d.pick("radius", ("distance", "less", "more", "zero", "infinite"), (3, 2, 2, 1, 1))
        radius = {"zero": 0.0, "infinite": math.inf}.get(kind)
        if radius is None:
            distances = self.matrix(case, case.data["Q"]).ravel()
            radius = float(distances[d.whole(0, distances.size - 1)])
            radius *= {"less": 0.875, "more": 1.125}.get(kind, 1.0)
        own = d.pick("radius_neighbors.radius", ("given", "parameter"), (2, 1))
        if own == "parameter" and "radius" in self.defaults:
            given = {"radius": radius, "radius_neighbors.radius": None}
        else:
            given = {"radius_neighbors.radius": radius}
        given["radius_neighbors_graph.radius"] = given["radius_neighbors.radius"]
        return replace(case, options=case.options | given)

    def possible(self, case: Case) -> bool:
        if not super().possible(case):
            return False
        X, Q, options = case.data["X"], case.data["Q"], case.options
        if options.get("kneighbors.return_span") and options["alignment"] == "global":
            return False
        if options.get("kneighbors.return_shift") and not options["rotation_invariant"]:
            return False
        if options["metric"] == "precomputed":
            return (
                are_distances(X, Q)
                and len(case.data.get("y", X)) == len(X) >= options["n_neighbors"]
                and (
                    len(X) - (options["kneighbors.X"] == "none")
                    >= options["kneighbors.n_neighbors"]
                )
            )
        if not fit_for(options, [X, Q]):
            return False
        if not Q.goes_with(X):
            return False
        others = len(X) - (options["kneighbors.X"] == "none")
        enough = others >= options["kneighbors.n_neighbors"]
        return len(case.data.get("y", X)) == len(X) >= options["n_neighbors"] and enough

    def model(self, case: Case, how: How) -> Any:
        options = {k: v for k, v in case.given().items() if "." not in k}
        if "weights" in options:
            options["weights"] = WEIGHTS[options["weights"]]
        return self.target(**options, **how.options(self.target))

    def call(self, case: Case, how: How) -> dict:
        Q, model = case.data["Q"].give(), self.model(case, how)
        check(self.fit(model, case) is model, "fit: returns another")
        options = case.given("kneighbors.")
        queries = None if options.pop("X") == "none" else Q
        found, extra = {}, case.options["call.also"]
        got = model.kneighbors(queries, **options)
        asked = [name for name in ("span", "shift") if options.get(f"return_{name}")]
        names = ["distances"] * options["return_distance"] + ["indices", *asked]
        found |= dict(zip(names, got if len(names) > 1 else (got,), strict=True))
        if extra == "graph":
            graph = model.kneighbors_graph(queries, **case.given("kneighbors_graph."))
            found["graph"] = graph.toarray()
        elif extra == "radius":
            options = case.given("radius_neighbors.")
            got = model.radius_neighbors(queries, **options)
            got = got if options["return_distance"] else (got,)
            found["radius counts"] = np.array([len(row) for row in got[-1]])
            found["radius indices"] = np.concatenate(got[-1])
            if options["return_distance"]:
                found["radius distances"] = np.concatenate(got[0])
        elif extra == "radius graph":
            options = case.given("radius_neighbors_graph.")
            graph = model.radius_neighbors_graph(queries, **options)
            found["radius counts"] = np.diff(graph.indptr)
            found["radius indices"], found["radius distances"] = graph.indices, graph.data
        return found | self.call_rest(model, case, Q, extra)

    def call_rest(self, model: Any, case: Case, Q: Any, extra: str) -> dict:
        """Outcomes of one estimator alone."""
        return {}

    def matrix(self, case: Case, rows: Sample) -> np.ndarray:
        X, options = case.data["X"], case.options
        if options["metric"] == "precomputed":
            return np.stack(rows.lines)
        warp = warp_of(case)
        if options.get("rotation_invariant"):
            return oracle.rotation_matrix(rows.series, X.series, warp)
        given = options.get("metric_params") or {}
        return oracle_elastic.matrix(rows.series, X.series, warp, options["metric"], **given)

    def settles(self, case: Case) -> bool:
        # a row with more near candidates than a list of survivors holds is found in float64
        return case.options["precision"] != "float32" or len(case.data["X"]) <= SHORT

    def slack(self, case: Case, D: np.ndarray, rows: Sample) -> np.ndarray | None:
        """How far distances may be off beyond the promise: without a certificate, more.

        Infinitely far where a rounding decides which points match, or which path is the best: not
        between equal series, which are 0 apart on all of them.
        """
        options = case.options
        if options["metric"] == "precomputed" or options.get("rotation_invariant"):
            return np.zeros(D.shape)
        given, metric, warp = options.get("metric_params") or {}, options["metric"], warp_of(case)
        X, Q = case.data["X"].series, rows.series
        slack: np.ndarray | None = np.zeros(D.shape)
        if options["precision"] == "float32":
            slack = oracle_elastic.single_slack(D, Q, X, warp, metric, **given)
        if slack is None:
            return None
        slack = slack + slack_of(metric, [*X, *Q]) * (options["precision"] == "float32")
        for i, j in np.ndindex(D.shape):
            alike = np.array_equal(Q[i], X[j])
            if not alike and oracle_elastic.thresholds(metric, Q[i], X[j], given, warp):
                slack[i, j] = np.inf
        return slack

    def check(self, case: Case, found: dict) -> None:
        X, Q, options = case.data["X"], case.data["Q"], case.options
        # of whole numbers nothing is rounded, and ties are ties
        exact = options["metric"] == "precomputed" or (
            ints_only(X, Q)
            and not options.get("rotation_invariant")
            and options["precision"] != "float32"
            and options["metric"] not in oracle_elastic.ROUNDED
        )
        within = options["kneighbors.X"] == "none"
        D = self.matrix(case, X if within else Q)
        slack = self.slack(case, D, X if within else Q)
        if slack is None:
            return
        if within:
            D = D.copy()
            np.fill_diagonal(D, np.inf)
        k = options["kneighbors.n_neighbors"]
        check(found["indices"].shape == (len(D), k), "kneighbors: shape")
        for i, row in enumerate(D):
            values = found["distances"][i] if "distances" in found else None
            nearest("kneighbors", row, slack[i], found["indices"][i], values, exact=exact)
        if options["metric"] != "precomputed":
            copies_in_order("kneighbors", X.series, found["indices"], within=within)
        self._check_places(case, found, D, X if within else Q)
        ones = options["kneighbors_graph.mode"] == "connectivity"
        if "graph" in found and (ones or "distances" in found):
            graph = np.zeros((len(D), len(X)))
            rows = np.arange(len(D))[:, None]
            graph[rows, found["indices"]] = 1 if ones else found["distances"]
            same("kneighbors_graph", found["graph"], graph)
        if "radius counts" in found:
            self._check_radius(case, found, D, slack, exact=exact)
        self.check_rest(case, found, exact=exact)

    def _check_places(self, case: Case, found: dict, D: np.ndarray, rows: Sample) -> None:
        """The part that matches, or the neighbour as it is turned, is as far as the neighbour."""
        X, warp = case.data["X"], warp_of(case)
        for (i, place), j in np.ndenumerate(found["indices"]):
            x, y = rows.series[i], X.series[j]
            if "span" in found:
                begin, end = (int(one) for one in found["span"][i, place])
                part = y if warp.alignment == "subsequence" else x
                check(0 <= begin < end <= part.shape[1], "span: outside", (begin, end))
                part = part[:, begin:end]
                pair = (x, part) if warp.alignment == "subsequence" else (part, y)
                whole = warp._replace(alignment="global")
                near = oracle_elastic.matrix(pair[:1], pair[1:], whole, case.options["metric"])
                close("span: distance", near[0], D[i, [j]], np.zeros(1))
            if "shift" in found:
                shift = int(found["shift"][i, place])
                check(0 <= shift < y.shape[1], "shift: outside", shift)
                turned = [np.roll(y, s, axis=1) for s in range(y.shape[1])]
                near = oracle.dtw_matrix([x], turned, warp)[0]
                close("shift: distance", near[[shift]], D[i, [j]], np.zeros(1))
                if ints_only(rows, X):
                    same("shift: the first of the best", shift, int(np.argmin(near)))

    def _check_radius(self, case: Case, found: dict, D, slack, *, exact: bool) -> None:
        """All within the radius, and no other: what rounding decides may be either."""
        options, method = case.options, "radius_neighbors"
        graph = options["call.also"] == "radius graph"
        method += "_graph" * graph
        radius = options[f"{method}.radius"]
        radius = options.get("radius", 1.0) if radius is None else radius
        counts = found["radius counts"]
        check(len(counts) == len(D), f"{method}: rows", counts)
        rows = np.repeat(np.arange(len(counts)), counts)
        indices, values = found["radius indices"], found.get("radius distances")
        check(((indices >= 0) & (indices < D.shape[1])).all(), f"{method}: indices", indices)
        inside = np.zeros(D.shape, bool)
        inside[rows, indices] = True
        check(inside.sum() == indices.size, f"{method}: repeated", indices)
        # counts over lengths are rounded, however whole the points are
        exact = exact and options.get("metric") not in oracle_elastic.COUNTED
        off = slack if exact else slack + RELATIVE * np.where(np.isfinite(D), D, 0.0)
        if options["kneighbors.X"] == "none":
            check(not np.diag(inside).any(), f"{method}: itself", indices)
        sure = D + off <= radius
        if options["kneighbors.X"] == "none":
            np.fill_diagonal(sure, False)
        check(not (sure & ~inside).any(), f"{method}: missing", lambda: np.argwhere(sure & ~inside))
        far = D - off > radius
        check(not (far & inside).any(), f"{method}: too far", lambda: np.argwhere(far & inside))
        if graph and options[f"{method}.mode"] == "connectivity":
            same(f"{method}: ones", values, np.ones(indices.size))
            values = None
        if values is not None:
            close(f"{method} distances", values, D[rows, indices], slack[rows, indices])
        ordered = options[f"{method}.sort_results"] and values is not None
        keys = (indices, values, rows) if ordered else (indices, rows)
        same(f"{method}: order", np.lexsort(keys), np.arange(indices.size))

    def check_rest(self, case: Case, found: dict, *, exact: bool) -> None:
        """Judge the outcomes of one estimator alone."""

    def relate_forms(self, case, found, call):
        same("another form of the data", call(plain(case)), found)

    def relate_scale(self, case, found, call, power):
        other = scaled(case, power)
        if other is None or case.options.get("weights", "uniform") != "uniform":
            return
        if "metric_params" in case.options:
            return  # parameters are in units of the data
        given = {
            name: np.ldexp(value, power).item()
            for name, value in case.options.items()
            if name.rpartition(".")[2] == "radius" and value is not None
        }
        if any(value == math.inf or 0 < value < 1e-290 for value in given.values()):
            return
        again = call(replace(other, options=other.options | given))
        for key in found:
            raw = key in ("distances", "transform", "predict distances") or (
                key == "graph" and case.options["kneighbors_graph.mode"] == "distance"
            )
            ones = case.options["call.also"] == "radius graph" and (
                case.options["radius_neighbors_graph.mode"] == "connectivity"
            )
            raw |= key == "radius distances" and not ones
            wanted = np.ldexp(found[key], power) if raw else found[key]
            same(f"scaled by a power of two {key}", again[key], wanted)

    def relate_alone(self, case, found, call):
        """A query alone has the neighbours that it has among others."""
        Q = case.data["Q"]
        options = case.options | {"kneighbors.X": "some"}
        for row in range(len(Q)):
            one = plain(case.but(Q=Q.take([row])))
            again = call(replace(one, options=options, relation=None))
            keys = ("predict", "proba", "transform", "predict distances", "predict indices")
            for key in found.keys() & set(keys):
                same(f"a query alone {key}", again[key], found[key][[row]])

    def relate_order(self, case, found, call):
        """Training series backwards have the same distances."""
        X = case.data["X"]
        order = range(len(X))[::-1]
        labels = {"y": [case.data["y"][row] for row in order]} if "y" in case.data else {}
        again = call(case.but(X=X.take(order), **labels))
        keys = {"transform", "predict distances"}
        keys |= {"radius counts"} if case.options["kneighbors.X"] == "some" else set()
        for key in found.keys() & keys:
            same(f"training series in another order {key}", again[key], found[key])


class NearestNeighbor(Neighbors):
    name = "skts.DTWNearestNeighbor"
    methods = (
        *Neighbors.SEARCHES,
        "fit",
        "fit_transform",
        "get_feature_names_out",
        "predict",
        "predict_proba",
        "score",
        "set_output",
        "transform",
    )
    relations = ("scale", "forms", "alone", "order", "output")
    also = (*Neighbors.also, "transform", "vote", "vote")

    def draw_rest(self, d: Draw, n_train: int) -> tuple[dict, dict]:
        return {"y": draw_labels(d, n_train)}, {
            "weights": d.pick("weights", tuple(WEIGHTS)),
            "score.sample_weight": d.pick("sample_weight", (False, True)),
        }

    def call_rest(self, model: Any, case: Case, Q: Any, extra: str) -> dict:
        found = {"classes": model.classes_}
        if extra == "transform":
            found["transform"] = model.transform(Q)
            found["names"] = np.array(model.get_feature_names_out(), str)
        elif extra == "vote":
            found["predict distances"], found["predict indices"] = model.kneighbors(Q)
            found["predict"], found["proba"] = model.predict(Q), model.predict_proba(Q)
            weights = np.arange(1, len(found["predict"]) + 1)
            weights = weights if case.options["score.sample_weight"] else None
            found["score"] = np.float64(model.score(Q, found["predict"], sample_weight=weights))
        if case.relation == "output":
            X, y = case.data["X"].give(), case.data["y"]
            check_output(model, X, y, Q, model.transform(Q), model.predict(Q))
        return found

    def check_rest(self, case: Case, found: dict, *, exact: bool) -> None:
        classes, y = np.unique(case.data["y"], return_inverse=True)
        same("classes_", found["classes"], classes)
        if "predict" in found or "transform" in found:
            self._check_queries(case, found, classes, y, exact)

    def _check_queries(self, case: Case, found: dict, classes, y, exact: bool) -> None:
        D, options = self.matrix(case, case.data["Q"]), case.options
        slack = self.slack(case, D, case.data["Q"])
        if slack is None:
            return
        if "transform" in found:
            columns = [D[:, y == label].min(axis=1) for label in range(len(classes))]
            off = [slack[:, y == label].max(axis=1) for label in range(len(classes))]
            close("transform", found["transform"], np.column_stack(columns), np.column_stack(off))
            return
        near = found["predict indices"]
        if options["metric"] != "precomputed":
            copies_in_order("predict", case.data["X"].series, near)
        for i, row in enumerate(D):
            values = found["predict distances"][i]
            nearest("kneighbors", row, slack[i], near[i], values, exact=exact)
        votes = votes_of(found["predict distances"], y[near], len(classes), options["weights"])
        close("predict_proba", found["proba"], votes / votes.sum(axis=1, keepdims=True), 1e-12)
        top = np.sort(votes, axis=1)
        clear = len(classes) == 1 or np.all(top[:, -1] - top[:, -2] > 1e-9 * top[:, -1])
        if clear or options["weights"] == "uniform":
            same("predict", found["predict"], classes[votes.argmax(axis=1)])
        same("score", found["score"], np.float64(1.0))


class Unlabelled(Neighbors):
    name = "skts.DTWNeighbors"
    methods = (*Neighbors.SEARCHES, "fit")
    relations = ("scale", "forms", "order")

    def draw_rest(self, d: Draw, n_train: int) -> tuple[dict, dict]:
        return {}, {}

    def fit(self, model: Any, case: Case) -> Any:
        return model.fit(case.data["X"].give())


class Regression(Neighbors):
    name = "skts.DTWNearestNeighborRegressor"
    methods = (*Neighbors.SEARCHES, "fit", "predict", "score")
    relations = ("scale", "forms", "alone", "order")
    also = (*Neighbors.also, *["mean"] * 3)

    def draw_rest(self, d: Draw, n_train: int) -> tuple[dict, dict]:
        kind = d.pick("targets", ("numbers", "integers", "outputs"), (3, 1, 1))
        shape = (n_train, d.whole(1, 3)) if kind == "outputs" else (n_train,)
        y = d.rng.integers(-9, 10, shape) if kind == "integers" else d.rng.normal(size=shape)
        return {"y": y.tolist()}, {
            "weights": d.pick("weights", tuple(WEIGHTS)),
            "score.sample_weight": d.pick("sample_weight", (False, True)),
        }

    def call_rest(self, model: Any, case: Case, Q: Any, extra: str) -> dict:
        if extra != "mean":
            return {}
        found = {"predict": model.predict(Q)}
        found["predict distances"], found["predict indices"] = model.kneighbors(Q)
        if len(found["predict"]) > 1:
            weights = np.arange(1, len(found["predict"]) + 1)
            weights = weights if case.options["score.sample_weight"] else None
            found["score"] = np.float64(model.score(Q, found["predict"], sample_weight=weights))
        return found

    def check_rest(self, case: Case, found: dict, *, exact: bool) -> None:
        if "predict" not in found:
            return
        D, options = self.matrix(case, case.data["Q"]), case.options
        slack = self.slack(case, D, case.data["Q"])
        if slack is None:
            return
        targets, wanted = np.array(case.data["y"], float), []
        near, values = found["predict indices"], found["predict distances"]
        for i, row in enumerate(D):
            nearest("kneighbors", row, slack[i], near[i], values[i], exact=exact)
            weights = weights_by(values[i], options["weights"])
            some = targets[near[i]]
            wanted.append(
                sum(w * one for w, one in zip(weights, some, strict=True)) / weights.sum()
            )
        largest = np.abs(targets).max()
        close("predict", found["predict"], np.array(wanted), 1e-12 * largest)
        if "score" in found:
            same("score", found["score"], np.float64(1.0))


class ParameterSearch(Recipe):
    """Errors are counted anew for every combination, from a matrix of all distances."""

    name = "skts.neighbors.elastic_parameter_search"
    relations = ("scale", "forms")

    def draw(self, d: Draw) -> Case:
        some = d.pick("param_grid", ("some", "default"), (12, 1)) == "some"
        # plain code that checks a hundred searches takes long
        n = d.whole(2, 14 if some else 5)
        X = d.sample(shapes(d, n, 33 if some else 12, equal=0.7), label=" X")
        known = oracle_elastic.PARAMETERS
        metric = d.pick("metric", [one for one in known if fit_for({"metric": one}, [X])])
        grid: dict[str, Any] | None = None
        if some:
            grid = {}
            for name, (_, values) in known[metric].items():
                count = d.whole(1, 4)
                grid[name] = [values[int(k)] for k in d.rng.integers(0, len(values), count)]
            if metric != "euclidean" and d.chance(0.7):
                grid["window"] = [draw_window(d, 33, {}) for _ in range(d.whole(1, 4))]
            if d.chance(0.3):
                grid = dict(reversed(grid.items()))
        options = {
            "metric": metric,
            "param_grid": grid,
            "cost": d.pick("cost", ("squared", "absolute")),
        }
        return Case(
            self.name, {"X": X, "y": draw_labels(d, n)}, options, relation=self.draw_relation(d)
        )

    def possible(self, case: Case) -> bool:
        X = case.data["X"]
        return (
            super().possible(case)
            and len(X) >= 2
            and len(case.data["y"]) == len(X)
            and fit_for(case.options, [X])
        )

    def call(self, case: Case, how: How) -> dict:
        found = self.target(
            case.data["X"].give(), case.data["y"], **case.given(), **how.options(self.target)
        )
        # as text, in which a window of 1 point is not 1.0, the whole length
        best = list(map(repr, found.params)).index(repr(found.best_params))
        return {
            "best": np.array(best),
            "best_error": np.array(found.best_error),
            "errors": found.errors,
            "params": np.array([self.values(one, case.data["X"]) for one in found.params]),
        }

    @staticmethod
    def values(one: dict, X: Sample) -> list[float]:
        """Numbers of a combination in the order that decides between equal errors."""
        window, longest = one["window"], int(X.lengths.max())
        width = math.ceil(window * longest - 1e-9) if isinstance(window, float) else window
        numbers = [width, window, *(one["metric_params"] or {}).values()]
        return [math.inf if number is None else float(number) for number in numbers]

    def check(self, case: Case, found: dict) -> None:
        X, options = case.data["X"], case.options
        metric, grid = options["metric"], options["param_grid"]
        names = list(oracle_elastic.PARAMETERS[metric])
        errors, best = found["errors"], int(found["best"])
        same("best error", found["best_error"], errors.min())
        ties = [tuple(one) for one in found["params"][errors == errors.min()].tolist()]
        check(tuple(found["params"][best].tolist()) == min(ties), "best: not the smallest")
        if grid is None:
            return
        combinations = [
            dict(zip(grid, values, strict=True)) for values in itertools.product(*grid.values())
        ]
        check(len(errors) == len(combinations), "params: how many")
        exact = ints_only(X) and metric not in (*oracle_elastic.ROUNDED, "ddtw")
        y = np.unique(case.data["y"], return_inverse=True)[1]
        for error, given in zip(errors, combinations, strict=True):
            warp = oracle.Warp("dtw", options["cost"], given.get("window"))
            parameters = {name: given[name] for name in names if name in given}
            exact_here = exact and all(
                one is None or float(one) * 2 == round(float(one) * 2)
                for one in parameters.values()
            )
            if any(
                oracle_elastic.thresholds(metric, p, q, parameters, warp)
                for p, q in itertools.combinations(X.series, 2)
            ):
                continue
            D = oracle_elastic.matrix(X.series, X.series, warp, metric, **parameters)
            np.fill_diagonal(D, np.inf)
            least = most = 0
            for i, row in enumerate(D):
                reach = row.min() * (1 + (0 if exact_here else RELATIVE))
                if not exact_here:
                    reach += RELATIVE * (metric in oracle_elastic.COUNTED) + slack_of(
                        metric, X.series
                    )
                rivals = np.flatnonzero(row <= reach)
                rivals = rivals[:1] if exact_here else rivals
                wrong = y[rivals] != y[i]
                least, most = least + bool(wrong.all()), most + bool(wrong.any())
            check(
                least - 1e-9 <= error * len(X) <= most + 1e-9,
                "errors",
                f"{given}: {error * len(X)}, not {least} to {most}",
            )

    def relate_forms(self, case, found, call):
        same("another form of the data", call(plain(case)), found)

    def relate_scale(self, case, found, call, power):
        if case.options["metric"] not in ("dtw", "dog_keeper", "frechet", "euclidean"):
            return  # other distances have parameters in the units of the data, or estimate slopes
        other = scaled(case, power)
        if other is not None:
            same("scaled by a power of two", call(other), found)


class WindowSearch(Recipe):
    name = "skts.neighbors.dtw_window_search"
    relations = ("scale", "forms")

    def draw(self, d: Draw) -> Case:
        n = d.whole(2, 12)
        X = d.sample(shapes(d, n, 64, equal=1.0), label=" X")
        length = int(X.lengths[0])
        kind = d.pick("windows", ("none", "points", "fractions"), (1, 3, 3))
        windows = None
        if kind == "points":
            windows = [d.whole(0, length + 1) for _ in range(d.whole(1, 6))]
        elif kind == "fractions":
            windows = [round(float(d.rng.random()), 2) for _ in range(d.whole(1, 6))]
        options = {"windows": windows, "cost": d.pick("cost", ("squared", "absolute"))}
        return Case(
            self.name, {"X": X, "y": draw_labels(d, n)}, options, relation=self.draw_relation(d)
        )

    def possible(self, case: Case) -> bool:
        X = case.data["X"]
        return (
            super().possible(case)
            and len(X) >= 2
            and len(set(X.lengths)) == 1
            and (len(case.data["y"]) == len(X))
        )

    def call(self, case: Case, how: How) -> dict:
        found = self.target(
            case.data["X"].give(), case.data["y"], **case.given(), **how.options(self.target)
        )
        parts = found._asdict()
        if parts["fractions"] is None:
            del parts["fractions"]
        return {key: np.asarray(value) for key, value in parts.items()}

    def check(self, case: Case, found: dict) -> None:
        X, options = case.data["X"], case.options
        y = np.unique(case.data["y"], return_inverse=True)[1]
        given = options["windows"]
        if given is None:
            given = (np.arange(101) / 100).tolist()
        n, length = len(X), int(X.lengths[0])
        points = [
            math.ceil(one * length - 1e-9) if isinstance(one, float) else one for one in given
        ]
        same("windows", found["windows"], np.array(points, np.int64))
        known: dict[int, tuple[int, int]] = {}
        exact = ints_only(X)
        for radius in set(points):
            warp = oracle.Warp("dtw", options["cost"], int(radius))
            D = oracle.dtw_matrix(X.series, X.series, warp)
            np.fill_diagonal(D, np.inf)
            least = most = 0
            for i, row in enumerate(D):
                best = row.min()
                rivals = np.flatnonzero(row <= best * (1 + (0 if exact else RELATIVE)))
                rivals = rivals[:1] if exact else rivals
                wrong = y[rivals] != y[i]
                least, most = least + wrong.all(), most + wrong.any()
            known[radius] = int(least), int(most)
        for place, radius in enumerate(points):
            least, most = known[radius]
            error = found["errors"][place] * n
            check(least - 1e-9 <= error <= most + 1e-9, "errors", f"{error}, not {least} to {most}")
        errors = found["errors"]
        same(
            "best",
            found["best"],
            np.asarray(min(w for w, e in zip(given, errors, strict=True) if e == errors.min())),
        )

    def relate_forms(self, case, found, call):
        same("another form of the data", call(plain(case)), found)

    def relate_scale(self, case, found, call, power):
        other = scaled(case, power)
        if other is not None:
            same("scaled by a power of two", call(other), found)


class Search(Recipe):
    name = "skts.SubsequenceSearch"
    long = 0.05
    methods = ("fit", "kneighbors", "radius_neighbors")
    relations = ("scale", "forms", "alone", "greedy")

    @property
    def defaults(self) -> dict[str, Any]:
        return super().defaults | {"kneighbors.n_neighbors": 1, "radius_neighbors.radius": 1.0}

    def draw(self, d: Draw) -> Case:
        count = d.pick("series", (1, 2, 4), (3, 2, 1))
        # pieces of long series are searched one by one
        most = 12000 if d.chance(0.01) else 330
        depth = d.pick("channels", (1, 2, 3, 6), (8, 2, 2, 1))
        if depth > 1:
            most = 100
        # channels of one point are refused: they look like a column
        least = min(2, depth)
        lengths = [most if most > 330 else d.size(least, most // count) for _ in range(count)]
        longest = max(lengths)
        sizes = [
            d.size(least, min(longest, 70 if d.chance(0.1) else 20))
            for _ in range(d.pick("queries", (1, 2, 3)))
        ]
        if d.pick("long", (False, True), (1 - self.long, self.long)):  # all columns of lanes
            lengths[-1], sizes[0] = max(lengths[-1], 110), int(d.rng.choice([24, 32, 45, 64, 96]))
        if depth == 1 and d.chance(0.02):
            lengths[-1] = max(lengths[-1], d.near_edge(5000) + sizes[0] - 1)
        series = d.numbers([(depth, n) for n in (*lengths, *sizes)])
        queries = series[count:]
        for one in queries:
            if d.chance(0.4):
                source = series[int(np.argmax(lengths))]
                start = d.whole(0, source.shape[1] - one.shape[1])
                one[:] = source[:, start : start + one.shape[1]]
        how = d.pick("holes", ("none", "one", "gap", "many", "infinite"), (5, 1, 1, 1, 1))
        for one in series[:count]:
            d._pierce(one[d.whole(0, depth - 1)], how)
        X = d.form(series[:count], label=" X", spare=False)
        Q = d.form(queries, label=" Q")
        types: dict[str, str] = {}
        metric = d.pick("metric", ("dtw", "dog_keeper", "euclidean"), (4, 1, 2))
        options = {"metric": metric, "cost": "squared", "window": None}
        if metric != "euclidean":
            options["cost"] = d.pick("cost", ("squared", "absolute"), (2, 1))
            options["window"] = draw_window(d, max(sizes), types)
        length = max(sizes)
        options |= {
            "normalize": d.pick("normalize", (True, False), (3, 1)),
            "exclusion": d.amount("exclusion", (0, 1, 0.4, length, 5 * length), None),
            "precision": d.pick("precision", PRECISIONS, (6, 2, 1)),
            "kneighbors.n_neighbors": d.pick("kneighbors.n_neighbors", (1, 2, 5, 40)),
            "kneighbors.return_distance": d.pick(
                "kneighbors.return_distance", (True, False), (4, 1)
            ),
            "radius_neighbors.radius": self._radius(d, series, length),
            "radius_neighbors.return_distance": d.pick(
                "radius_neighbors.return_distance", (True, False), (4, 1)
            ),
        }
        if not options["normalize"]:
            power = oracle.plane([x[np.isfinite(x)] for x in series])
            options["radius_neighbors.radius"] = math.ldexp(
                options["radius_neighbors.radius"], power
            )
        return Case(self.name, {"X": X, "Q": Q}, options, types, relation=self.draw_relation(d))

    def _radius(self, d: Draw, series: list, length: int) -> float:
        return d.pick("radius", (0.0, 0.3, 1.0, 3.0)) * math.sqrt(length)

    def possible(self, case: Case) -> bool:
        return (
            super().possible(case)
            and case.data["Q"].lengths.min() > 0
            and (case.data["Q"].lengths.max() <= case.data["X"].lengths.max())
            and len({len(x) for one in case.data.values() for x in one.series}) == 1
            and (
                case.data["X"].n_channels == 1
                or min(one.lengths.min() for one in case.data.values()) > 1
            )
        )

    def model(self, case: Case, how: How) -> Any:
        options = {k: v for k, v in case.given().items() if "." not in k}
        return self.target(**options, **how.options(self.target))

    def call(self, case: Case, how: How) -> dict:
        model = self.model(case, how).fit(case.data["X"].give())
        Q = case.data["Q"].give()
        found = {}
        options = case.given("kneighbors.")
        got = model.kneighbors(Q, **options)
        found["positions"] = got[1] if options["return_distance"] else got
        if options["return_distance"]:
            found["distances"] = got[0]
        options = case.given("radius_neighbors.")
        got = model.radius_neighbors(Q, **options)
        places = got[1] if options["return_distance"] else got
        for row in range(len(case.data["Q"])):
            found[f"radius {row} positions"] = np.asarray(places[row])
            if options["return_distance"]:
                found[f"radius {row} distances"] = np.asarray(got[0][row])
        return found

    def settles(self, case: Case) -> bool:
        """Without a certificate bits settle where no window is much quieter or louder."""
        if case.options["precision"] != "float32":
            return True
        both = [*case.data["X"].series, *case.data["Q"].series]
        points = np.concatenate([x[np.isfinite(x)] for x in both])
        every = [*self.lines(case), *case.data["Q"].series]
        spreads = []
        for length in {int(n) for n in case.data["Q"].lengths}:
            for line in (channel for x in every for channel in np.atleast_2d(x)):
                if len(line) >= length:
                    windows = np.lib.stride_tricks.sliding_window_view(line, length)
                    windows = windows[np.isfinite(windows).all(axis=1)]
                    spreads.append((windows.max(axis=1) - windows.min(axis=1)).min(initial=np.inf))
        largest = max(points.max() - points.min(), np.abs(points).max())
        return bool(largest <= TAME * min(spreads))

    def keeps_bits(self, case: Case, engine: str) -> bool:
        # in float32 a GPU has the points of a part relative to those of the part
        single = case.options["precision"] == "float32"
        return self.settles(case) and not (single and engine == "cupy")

    def lines(self, case: Case) -> list[np.ndarray]:
        X = case.data["X"]
        width = X.lengths.max() if X.form == "padded" else 0
        padded = [
            np.pad(x, ((0, 0), (0, max(0, width - x.shape[1]))), constant_values=np.nan)
            for x in X.series
        ]
        return padded if X.n_channels > 1 else [x[0] for x in padded]

    def warp(self, case: Case) -> oracle.Warp:
        if case.options["metric"] == "euclidean":
            return oracle.Warp("dtw", "squared", 0)
        return warp_of(case)

    def check(self, case: Case, found: dict) -> None:
        options = case.options
        lines, single = self.lines(case), options["precision"] == "float32"
        warp, normalize = self.warp(case), options["normalize"]
        for row, query in enumerate(case.data["Q"].series):
            length = query.shape[1]
            parts = [
                oracle.match_rows(query, line, warp, normalize, single=single)
                for line in lines
                if line.shape[-1] >= length
            ]
            if single and normalize:
                more = oracle.single_slack_of_windows(lines, length, warp)
                parts = [(D, slack + off) for (D, slack), off in zip(parts, more, strict=True)]
            fitting = [number for number, line in enumerate(lines) if line.shape[-1] >= length]
            counts = [len(part[0]) for part in parts]
            series = np.repeat(fitting, counts)
            start = np.concatenate([np.arange(count) for count in counts])
            D = np.concatenate([part[0] for part in parts])
            slack = np.concatenate([part[1] for part in parts])
            slack = slack + RELATIVE * np.where(np.isfinite(D), D, 0)
            place = {
                key: k for k, key in enumerate(zip(series.tolist(), start.tolist(), strict=True))
            }
            values = found["distances"][row] if "distances" in found else None
            self._check_best(
                case, length, D, slack, series, start, place, found["positions"][row], values
            )
            self._check_radius(
                options["radius_neighbors.radius"],
                D,
                slack,
                place,
                found[f"radius {row} positions"],
                found.get(f"radius {row} distances"),
            )

    def _check_best(self, case, length, D, slack, series, start, place, positions, values):
        exclusion = points_of(case.options["exclusion"], length, 0.25)
        free = np.isfinite(D)
        for rank, position in enumerate(positions.tolist()):
            if position == [-1, -1]:
                check(not free.any(), "kneighbors: too few", f"{rank} found")
                check(values is None or values[rank] == np.inf, "kneighbors: value of none")
                continue
            k = place.get(tuple(position))
            check(k is not None and free[k], "kneighbors: not allowed", f"{position} as {rank}")
            if values is not None:
                close("kneighbors distances", values[rank], D[k], slack[k], 0.0)
            better = free & (D + slack < D[k] - slack[k])
            if better.any():
                raise Failure(
                    "kneighbors: not the nearest",
                    f"{position} at {D[k]!r}, best at {D[free].min()!r}",
                )
            free &= ~((series == series[k]) & (np.abs(start - start[k]) <= exclusion))
        if values is not None:
            check((values[1:] >= values[:-1]).all(), "kneighbors: not ascending", values)

    def _check_radius(self, radius, D, slack, place, positions, values):
        keys = [place.get(tuple(one), -1) for one in positions.tolist()]
        check(min(keys, default=0) >= 0 and len(set(keys)) == len(keys), "radius: places")
        inside = np.zeros(len(D), bool)
        inside[keys] = True
        missing = ~inside & (D + slack < radius)
        check(not missing.any(), "radius: missing", lambda: f"{np.flatnonzero(missing)} {radius}")
        extra = inside & (D - slack > radius)
        check(not extra.any(), "radius: too far", lambda: f"{np.flatnonzero(extra)} {radius}")
        if values is not None and len(keys):
            close("radius distances", values, D[keys], slack[keys], 0.0)
            steps = np.diff(values)
            check((steps >= 0).all(), "radius: not ascending")
            order = np.diff(keys)
            check((order[steps == 0] > 0).all(), "radius: order of ties", f"{keys} {values}")

    def relate_forms(self, case, found, call):
        if case.data["X"].form != "padded":
            same("another form of the data", call(plain(case)), found)

    def relate_scale(self, case, found, call, power):
        other = scaled(case, power)
        if other is None:
            return
        raw = not case.options["normalize"]
        if raw:
            radius = math.ldexp(case.options["radius_neighbors.radius"], power)
            other = replace(other, options=case.options | {"radius_neighbors.radius": radius})
        again = call(other)
        for key in found:
            scales = raw and key.endswith("distances")
            same(
                f"scaled by a power of two {key.split()[-1]}",
                again[key],
                np.ldexp(found[key], power) if scales else found[key],
            )

    def relate_alone(self, case, found, call):
        """A query alone, and every series alone, have the matches that they have among others."""
        Q = case.data["Q"]
        for row in range(len(Q)):
            X = Sample(tuple(np.atleast_2d(x) for x in self.lines(case)))
            again = call(plain(case.but(Q=Q.take([row]), X=X)))
            same("a query alone", again["positions"], found["positions"][[row]])
            for part in ("positions", "distances"):
                if f"radius 0 {part}" in again:
                    same("a query alone", again[f"radius 0 {part}"], found[f"radius {row} {part}"])

    def relate_greedy(self, case, found, call):
        """`kneighbors` is a greedy choice from all windows."""
        if case.options["precision"] == "float32":
            return
        options = case.options | {
            "radius_neighbors.radius": math.ldexp(1.0, 1000),
            "radius_neighbors.return_distance": True,
        }
        everything = call(replace(case, options=options))
        for row, length in enumerate(case.data["Q"].lengths):
            exclusion = points_of(case.options["exclusion"], length, 0.25)
            taken: list = []
            for one in everything[f"radius {row} positions"].tolist():
                if len(taken) == len(found["positions"][row]):
                    break
                if not any(s == one[0] and abs(t - one[1]) <= exclusion for s, t in taken):
                    taken.append(one)
            there = found["positions"][row].tolist()
            there = [one for one in there if one != [-1, -1]]
            check(there == taken, "greedy choice", f"{there}, not {taken}")


class Condenser(Recipe):
    name = "skts.DTWCondenser"
    methods = ("fit", "fit_resample")
    relations = ("scale", "forms")

    def draw(self, d: Draw) -> Case:
        n = d.whole(2, 14)
        X = d.sample(shapes(d, n, 32, equal=0.7), label=" X")
        types: dict[str, str] = {}
        adapt = d.pick("adapt_window", (True, False), (2, 1))
        options = {
            "n_prototypes": d.pick("n_prototypes", (0.1, 0.5, 1, 2), (1, 1, 2, 1)),
            "min_accuracy": d.pick("min_accuracy", (None, 0.0, 0.5, 0.9), (4, 1, 1, 1)),
            "adapt_window": adapt,
            "window": draw_window(d, 16, types) if d.chance(0.85) else None,
            "precision": d.pick("precision", PRECISIONS[:2], (3, 1)),
            "voters": d.pick("voters", ("all", "kept"), (2, 1)),
        }
        if d.pick("metric", ("dtw", "named"), (2, 1)) == "named":
            named = draw_metric(d, [X], {})
            options |= {name: named[name] for name in ("metric", "metric_params", "cost")}
            if options["metric"] == "euclidean":
                options["window"] = None
        if options["window"] is None:
            types.pop("window", None)
        return Case(
            self.name,
            {"X": X, "y": draw_labels(d, n)},
            options,
            types,
            relation=self.draw_relation(d),
        )

    def possible(self, case: Case) -> bool:
        n = len(case.data["X"])
        return (
            super().possible(case)
            and n >= 2
            and len(case.data["y"]) == n
            and (case.options["n_prototypes"] <= n)
            and fit_for({"metric": "dtw"} | case.options, [case.data["X"]])
        )

    def call(self, case: Case, how: How) -> dict:
        options = {k: v for k, v in case.given().items() if "." not in k}
        model = self.target(**options, **how.options(self.target))
        X, y = case.data["X"].give(), case.data["y"]
        _, kept = model.fit_resample(X, y)
        found = {
            "indices": model.sample_indices_,
            "ranks": model.ranks_,
            "windows": model.windows_,
            "accuracies": model.accuracies_,
        }
        wanted = [y[row] for row in model.sample_indices_]
        check(list(kept) == wanted, "fit_resample", f"{list(kept)}, not {wanted}")
        return found

    def check(self, case: Case, found: dict) -> None:
        n = len(case.data["X"])
        kept, ranks = found["indices"], found["ranks"]
        same("sample_indices_", kept, np.flatnonzero(ranks == 1))
        removed = np.sort(ranks[ranks > 1])
        same("ranks_", removed, np.arange(2, n - len(kept) + 2))
        check(len(found["windows"]) == len(found["accuracies"]) == n - len(kept) + 1, "lengths")
        try:
            Award(case).follow(found)
        except Ambiguous:
            return

    def relate_forms(self, case, found, call):
        same("another form of the data", call(plain(case)), found)

    def relate_scale(self, case, found, call, power):
        if case.options.get("metric", "dtw") not in ("dtw", "dog_keeper", "frechet", "euclidean"):
            return  # other distances have parameters in the units of the data, or estimate slopes
        other = scaled(case, power)
        if other is not None:
            same("scaled by a power of two", call(other), found)


class Award:
    """AWARD from the definition: matrices of all distances, everything counted anew each time.

    The distances are those of `pairwise_distances`, once the oracle has found them right: all
    searches have the same bits, so that ties are known.
    """

    def __init__(self, case: Case) -> None:
        self.X, self.options = case.data["X"], case.options
        self.y = np.unique(case.data["y"], return_inverse=True)[1]
        self.metric = self.options.get("metric", "dtw")
        self.given = self.options.get("metric_params") or {}
        self.length = int(self.X.lengths.max())
        self.known: dict[float, np.ndarray] = {}

    def distances(self, window: float) -> np.ndarray:
        if window not in self.known:
            if math.isinf(window):
                given = None
            elif isinstance(self.options["window"], int):
                given = math.ceil(window * self.length - 1e-9)
            else:
                given = float(window)
            warp = oracle.Warp("dtw", self.options.get("cost", "squared"), given)
            X, metric = self.X.series, self.metric
            pairs = itertools.combinations(X, 2)
            if any(oracle_elastic.thresholds(metric, x, y, self.given, warp) for x, y in pairs):
                raise Ambiguous
            D = oracle_elastic.matrix(X, X, warp, metric, **self.given)
            D = self._bits(D, given)
            np.fill_diagonal(D, np.inf)
            self.known[window] = D
        return self.known[window]

    def _bits(self, D: np.ndarray, window: float | None) -> np.ndarray:
        """The certified distances, which say what ties and what does not, once they are right."""
        metric, cost = self.metric, self.options.get("cost", "squared")
        options = {"metric": metric, "metric_params": self.given, "cost": cost}
        if metric != "euclidean":
            options["window"] = window
        bits = pairwise_distances(list(self.X.series), **options, engine="numba")
        off_diagonal = ~np.eye(len(D), dtype=bool)
        slack = slack_of(metric, self.X.series)
        close("distances", bits[off_diagonal], D[off_diagonal], slack, RELATIVE)
        return bits

    def nearest(self, window: float, kept: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """The nearest other kept series of each, -1 where there is none."""
        D = np.where(kept[None], self.distances(window), np.inf)
        best = D.min(axis=1)
        return np.where(np.isfinite(best), D.argmin(axis=1), -1), best

    def correct(self, window: float, kept: np.ndarray) -> int:
        index, _ = self.nearest(window, kept)
        return int(np.sum((index >= 0) & (self.y[index] == self.y)))

    def start(self, kept: np.ndarray) -> float:
        given = self.options["window"]
        if given is not None:
            return min(given / self.length, 1.0) if isinstance(given, int) else given
        if not self.options["adapt_window"] or self.metric == "euclidean":
            return math.inf
        counts = [self.correct(percent / 100, kept) for percent in range(101)]
        return int(np.argmax(counts)) / 100

    def follow(self, found: dict) -> None:
        """Compare every step."""
        n = len(self.X)
        kept = np.ones(n, bool)
        first = window = self.start(kept)
        steps = 0
        order = np.argsort(-found["ranks"], kind="stable")[: n - len(found["indices"])]
        close("first window", found["windows"][0], window, relative=1e-12)
        same("first accuracy", found["accuracies"][0], self.correct(window, kept) / n)
        wanted = self.options["n_prototypes"]
        least = wanted if isinstance(wanted, int) else max(1, math.ceil(wanted * n - 1e-9))
        needed = math.ceil((self.options["min_accuracy"] or 0) * n - 1e-9)
        if self.correct(window, kept) < needed:
            check(len(order) == 0, "removed although the accuracy is too low already")
            return
        for turn in range(n + 1):
            if kept.sum() <= least:
                check(turn == len(order), "removed too many", f"{len(order)}, not {turn}")
                return
            lowest = self.lowest(window, kept)
            kept[lowest] = False
            choices = [steps]
            if self.options["adapt_window"] and not math.isinf(first):
                choices = [steps, steps - 1, steps + 1]
            counts = [self.correct(self.at(first, one), kept) for one in choices]
            steps = choices[int(np.argmax(counts))]
            if max(counts) < needed:
                check(turn == len(order), "removed too many", f"{len(order)}, not {turn}")
                return
            check(turn < len(order), "removed too few", f"{len(order)}")
            same("removed series", int(order[turn]), lowest)
            window = self.at(first, steps)
            close("window", found["windows"][turn + 1], window, relative=1e-12)
            same("accuracy", found["accuracies"][turn + 1], max(counts) / n)

    def at(self, first: float, steps: int) -> float:
        return first if steps == 0 else min(1.0, max(0.0, first + steps / 100))

    def lowest(self, window: float, kept: np.ndarray) -> int:
        index, distance = self.nearest(window, kept)
        n_classes = self.y.max() + 1
        ranks = np.zeros(len(self.X))
        votes: list[list[float]] = [[] for _ in self.X.series]
        for i, j in enumerate(index.tolist()):
            if j >= 0 and (kept[i] or self.options.get("voters", "all") == "all"):
                same_class = self.y[i] == self.y[j]
                ranks[j] += max(1, n_classes - 1) if same_class else -2
                votes[j].append(float(distance[i]))
        left = np.flatnonzero(kept)
        left = left[ranks[left] == ranks[left].min()]
        each = [tuple(sorted(votes[one])) for one in left]
        with np.errstate(divide="ignore", over="ignore"):
            sums = np.array([np.sum(np.float64(1.0) / np.square(one)) for one in each])
        tied = np.flatnonzero(sums <= sums.min() * (1 + RELATIVE))
        # sums of the same distances are equal, whatever their order; of others roundings may decide
        alike = len({each[one] for one in tied}) == 1 or sums.min() in (0, np.inf)
        if not alike:
            raise Ambiguous
        return int(left[tied[-1]])
