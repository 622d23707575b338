"""Recipe of shapelet forests: candidates drawn again, every split judged, every way walked."""

from __future__ import annotations

import contextlib
import math
from typing import Any, NamedTuple

import numpy as np

from . import oracle
from .case import Case, Sample
from .compare import check, close, same
from .draw import Draw
from .recipe import How, Recipe, draw_state, plain, scaled, shapes
from .recipes_models import all_cuts, class_weights, distances_to_series, entropy, first_twin
from .recipes_neighbors import Ambiguous, draw_labels

#: Arrays of a tree, and fields of a shapelet, that are looked at.
NODES = ("children_left", "children_right", "first_literal", "n_literals", "threshold",
         "impurity", "n_node_samples", "weighted_n_node_samples", "value")  # fmt: skip
FIELDS = ("values", "series", "start", "length", "channel", "threshold", "gain", "gap", "logic")


class Measured:
    """Distances of windows of the training series to all series, by the oracle."""

    def __init__(self, series: tuple[np.ndarray, ...], n_train: int) -> None:
        self.series, self.n_train = series, n_train
        self.power = oracle.plane(series)
        self._known: dict[tuple[int, int], tuple] = {}

    def line(self, row: int, channel: int, start: int, length: int) -> tuple:
        """Distances of a candidate, infinite where it has no room, and how far they may be off."""
        if (length, channel) not in self._known:
            self._known[length, channel] = self._measure(length, channel)
        firsts, D, slack = self._known[length, channel]
        return D[firsts[row] + start], slack[firsts[row] + start]

    def _measure(self, length: int, channel: int) -> tuple:
        own = [row for row, x in enumerate(self.series) if x.shape[1] >= length]
        parts = [oracle.Windows.of(self.series[row][channel], length, self.power) for row in own]
        counts = np.zeros(len(self.series), int)
        counts[own] = [len(part.raw) for part in parts]
        fields = (np.concatenate(one) for one in zip(*(part[:5] for part in parts), strict=True))
        everything = oracle.Windows(*fields, self.power)
        firsts = np.cumsum(counts) - counts
        n_queries = int(counts[: self.n_train].sum())
        queries = oracle.Windows(*(part[:n_queries] for part in everything[:5]), self.power)
        return firsts, *distances_to_series(queries, everything, counts, length)


class Node(NamedTuple):
    """What is left to follow: a node, its series as often as they were drawn, its depth."""

    number: int
    members: np.ndarray
    depth: int


class Forest(Recipe):
    name = "skts.ShapeletForestClassifier"
    methods = ("apply", "fit", "predict", "predict_log_proba", "predict_proba", "score")
    relations = ("scale", "forms", "alone", "grown")
    long = 0.05

    def draw(self, d: Draw) -> Case:
        n = d.whole(1, 10)
        far = d.pick("long", (False, True), (1 - self.long, self.long))
        sizes = shapes(d, n, 65 if far else 16, equal=0.6)
        series = d.numbers([*sizes, *[sizes[d.whole(0, n - 1)] for _ in range(2)]])
        if any(not np.isfinite(x).all() for x in series):
            raise ValueError("series of a forest are finite")
        bootstrap = d.pick("bootstrap", (True, False), (4, 1))
        some = (None, "balanced", "balanced_subsample", "large", "small", "odd")
        options = {
            "n_estimators": d.pick("n_estimators", (1, 2, 4)),
            "max_candidates": d.pick("max_candidates", (1, 5, 20, "sqrt", "log2")),
            "min_length": d.pick("min_length", ("auto", 1, 3, 0.2), (4, 1, 1, 1)),
            "max_length": d.pick("max_length", ("auto", None, 4, 0.3), (3, 3, 1, 1)),
            "length_step": d.pick("length_step", (1, 2, 5), (3, 1, 1)),
            "logic": d.pick("logic", ((), ("and", "or"), ("and",), ("or",)), (4, 2, 1, 1)),
            "max_literals": d.pick("max_literals", (2, 1, 3), (3, 1, 1)),
            "max_depth": d.pick("max_depth", (None, 1, 2), (4, 1, 1)),
            "min_samples_split": d.pick("min_samples_split", (2, 4, 0.5), (4, 1, 1)),
            "min_samples_leaf": d.pick("min_samples_leaf", (1, 2, 0.2), (4, 1, 1)),
            "min_weight_fraction_leaf": d.pick("min_weight_fraction_leaf", (0.0, 0.2), (4, 1)),
            "min_impurity_decrease": d.pick("min_impurity_decrease", (0.0, 0.05), (4, 1)),
            "bootstrap": bootstrap,
            "max_samples": d.pick("max_samples", (None, 1, 0.5), (4, 1, 1)) if bootstrap else None,
            "oob_score": bootstrap and d.pick("oob_score", (False, True), (2, 1)),
            "class_weight": d.pick("class_weight", some, (5, 1, 2, 1, 1, 1)),
            "random_state": d.pick("random_state", (0, 1, 2)),
            "warm_start": d.pick("warm_start", (False, True), (3, 1)),
            "score.sample_weight": d.pick("sample_weight", (False, True)),
        }
        X, Q = d.form(series[:n], label=" X"), Sample(tuple(series[n:]))
        y, types = draw_labels(d, n), {}
        draw_state(d, types)
        return Case(
            self.name, {"X": X, "y": y, "Q": Q}, options, types, relation=self.draw_relation(d)
        )

    def possible(self, case: Case) -> bool:
        X, options = case.data["X"], case.options
        if not super().possible(case) or X.lengths.min() < 1 or len(case.data["y"]) != len(X):
            return False
        return bool(options["n_estimators"] >= 1 and options["length_step"] >= 1)

    def lengths(self, case: Case) -> list[int]:
        """Lengths of candidates; none where they are refused."""
        given, options = case.data["X"].lengths, case.options
        shortest, width = int(given.min()), int(given.max())

        def points(value: Any) -> int:
            return value if isinstance(value, int) else max(1, int(value * width))

        given, least = options["max_length"], options["min_length"]
        if given == "auto":
            most = max(min(3, width), width // 2, 0 if least == "auto" else points(least))
        else:
            most = width if given is None else points(given)
        least = min(3, shortest, most) if least == "auto" else points(least)
        if not (least <= most <= width and least <= shortest):
            return []
        return list(range(least, most + 1, options["length_step"]))

    def refuses(self, case: Case) -> bool:
        return not self.lengths(case)

    def model(self, case: Case, how: How) -> Any:
        options = {k: v for k, v in case.given().items() if "." not in k}
        kind = options["class_weight"]
        if kind != "balanced_subsample":
            options["class_weight"] = class_weights(kind, case.data["y"])
        options["logic"] = tuple(options["logic"])
        return self.target(**options, **how.options(self.target))

    def call(self, case: Case, how: How) -> dict:
        model = self.model(case, how).fit(case.data["X"].give(), case.data["y"])
        return self.found(case, model)

    def found(self, case: Case, model: Any) -> dict:
        """Everything that there is to see of a fitted forest."""
        X, y, Q = case.data["X"].give(), case.data["y"], case.data["Q"].give()
        found = {"classes": model.classes_, "importances": model.feature_importances_}
        found["seeds"] = np.array([tree.random_state for tree in model.estimators_])
        for number, tree in enumerate(model.estimators_):
            for name in NODES:
                found[f"tree {number} {name}"] = getattr(tree.tree_, name)
            found[f"tree {number} shapelets"] = np.int64(len(tree.shapelets_))
            for k, one in enumerate(tree.shapelets_):
                for name in FIELDS:
                    found[f"shapelet {number} {k} {name}"] = np.asarray(getattr(one, name))
        for part, data in (("X", X), ("Q", Q)):
            for method in ("apply", "predict", "predict_proba", "predict_log_proba"):
                found[f"{part} {method}"] = getattr(model, method)(data)
        if case.options["oob_score"]:
            found["oob"] = np.float64(model.oob_score_)
            found["oob shares"] = model.oob_decision_function_
        weights = np.arange(1, len(y) + 1) if case.options["score.sample_weight"] else None
        found["score"] = np.float64(model.score(X, y, sample_weight=weights))
        return found

    # -- the oracle

    def check(self, case: Case, found: dict) -> None:
        X, Q, options = case.data["X"], case.data["Q"], case.options
        classes, y = np.unique(case.data["y"], return_inverse=True)
        same("classes_", found["classes"], classes)
        count = options["n_estimators"]
        seeds = found["seeds"]
        if not case.unseeded:
            seeds = np.random.RandomState(options["random_state"]).randint(2**31 - 1, size=count)
        same("seeds of trees", found["seeds"], seeds)
        measured = Measured((*X.series, *Q.series), len(X))
        drawn = []
        for number, seed in enumerate(seeds.tolist()):
            random = np.random.RandomState(seed)
            rows = np.arange(len(X))
            if options["bootstrap"]:
                most = options["max_samples"]
                if not isinstance(most, int):
                    most = len(X) if most is None else max(1, round(len(X) * most))
                rows = np.sort(random.randint(0, len(X), most))
            drawn.append(rows)
            with contextlib.suppress(Ambiguous):
                self._check_tree(case, found, number, y, rows, random, measured)
            self._check_ways(case, found, number, measured)
        self._check_votes(case, found, y, drawn)
        self._check_importances(found, X)

    def literals(self, found: dict, number: int) -> list[dict]:
        """Shapelets of a tree."""
        return [
            {name: found[f"shapelet {number} {k} {name}"] for name in FIELDS}
            for k in range(int(found[f"tree {number} shapelets"]))
        ]

    def weights(self, case: Case, y: np.ndarray, rows: np.ndarray) -> np.ndarray:
        """The weight of each class in a tree that has drawn some series."""
        labels, kind = np.unique(case.data["y"]).tolist(), case.options["class_weight"]
        n = len(labels)
        if kind is None:
            return np.ones(n)
        if kind == "balanced":
            return len(y) / (n * np.bincount(y, minlength=n))
        if kind == "balanced_subsample":
            counts = np.bincount(y[rows], minlength=n)
            return len(rows) / (np.count_nonzero(counts) * np.maximum(1, counts))
        given = class_weights(kind, case.data["y"])
        return np.array([given[label] for label in labels])

    def _check_tree(self, case, found, number, y, rows, random, measured) -> None:
        """Follow a tree level by level, as it was grown, and judge every node."""
        options, weights = case.options, self.weights(case, y, rows)
        tree = {name: found[f"tree {number} {name}"] for name in NODES}
        literals, total = self.literals(found, number), weights[y[rows]].sum()
        leaf, split, n = options["min_samples_leaf"], options["min_samples_split"], len(y)
        leaf = leaf if isinstance(leaf, int) else max(1, math.ceil(leaf * n - 1e-9))
        split = split if isinstance(split, int) else max(2, math.ceil(split * n - 1e-9))
        limits = leaf, options["min_weight_fraction_leaf"] * total
        level = [Node(0, rows, 0)]
        while level:
            after = []
            for node in level:
                each = np.bincount(y[node.members], minlength=len(weights)) * weights
                share = each.sum() / total
                known = int(tree["n_node_samples"][node.number])
                check(known == len(np.unique(node.members)), "n_node_samples")
                whole = tree["weighted_n_node_samples"][node.number]
                close("weighted_n_node_samples", whole, each.sum())
                close("value", tree["value"][node.number], each / each.sum(), 1e-12)
                impurity = float(tree["impurity"][node.number])
                close("impurity", impurity, float(entropy(each)), 1e-12)
                deep = options["max_depth"] is not None and node.depth >= options["max_depth"]
                few = len(node.members) < max(split, 2 * leaf)
                is_leaf = tree["children_left"][node.number] < 0
                if deep or few or np.count_nonzero(each) < 2:
                    check(is_leaf, "a node that must be a leaf is split")
                    continue
                candidates = self._draw(case, random, np.unique(node.members))
                first = int(tree["first_literal"][node.number])
                some = [] if is_leaf else literals[first : first + tree["n_literals"][node.number]]
                rules = (y[node.members], weights, np.ones(len(node.members)), *limits)
                line, slack = self._check_split(
                    case, measured, candidates, node.members, rules, share, some
                )
                if is_leaf:
                    continue
                threshold = float(tree["threshold"][node.number])
                if (np.abs(line - threshold) <= slack).any():
                    raise Ambiguous
                for side, goes in (("left", line <= threshold), ("right", line > threshold)):
                    child = int(tree[f"children_{side}"][node.number])
                    after.append(Node(child, node.members[goes], node.depth + 1))
            level = after

    def _draw(self, case: Case, random: np.random.RandomState, members: np.ndarray) -> list[tuple]:
        """Candidates of a node as (length, series, start, channel), in the order of ties."""
        given, lengths = case.data["X"].lengths, self.lengths(case)
        count, width = case.options["max_candidates"], int(given.max())
        if isinstance(count, str):
            count = max(1, math.isqrt(width) if count == "sqrt" else width.bit_length() - 1)
        found = []
        for u in random.random_sample((count, 4)).tolist():
            row = int(members[int(u[0] * len(members))])
            room = [length for length in lengths if length <= given[row]]
            length = room[int(u[1] * len(room))]
            start = int(u[2] * (int(given[row]) - length + 1))
            found.append((length, row, start, int(u[3] * case.data["X"].n_channels)))
        return sorted(found)

    def _check_split(self, case, measured, candidates, members, rules, share, literals):
        """Compare the literals of a node with its other candidates; return its line."""
        options = case.options
        lines = [
            measured.line(row, channel, start, length) for length, row, start, channel in candidates
        ]
        D, slack = (np.array([line[k][members] for line in lines]) for k in (0, 1))
        line = error = None
        best = 0.0, -np.inf
        for rank in range(len(literals) + 1):
            ways = ["first"]
            if rank:
                more = rank < options["max_literals"]
                ways = [way for way in ("and", "or") if more and way in options["logic"]]
            choices = {}
            for way in ways:
                join = {"first": None, "and": np.maximum, "or": np.minimum}[way]
                both = (D, slack) if join is None else (join(line, D), np.maximum(error, slack))
                choices[way] = *both, all_cuts(*both, *rules)
            if rank < len(literals):
                literal = literals[rank]
                way = str(literal["logic"])
                check(way in ways, "literal: logic", f"{way} is none of {ways}")
                place = tuple(int(literal[k]) for k in ("length", "series", "start", "channel"))
                check(place in candidates, "literal: was not drawn", f"{place}, {candidates}")
                x = measured.series[place[1]][place[3], place[2] : place[2] + place[0]]
                same("shapelet values", literal["values"], x)
                now = float(literal["gain"]), float(literal["gap"])
                k = candidates.index(place)
                cuts = choices[way][2]
                tolerance = 1e-9 + slack[k].max()
                with np.errstate(invalid="ignore"):
                    near = (cuts.gap[k] == now[1]) | (np.abs(cuts.gap[k] - now[1]) <= tolerance)
                near &= np.abs(cuts.gain[k] - now[0]) <= 1e-9
                if not near.any():
                    if not cuts.certain[k].all():
                        raise Ambiguous
                    check(False, "literal: gain or gap", f"{now}, possible {cuts.gain[k]}")
                twin = first_twin(measured.series, place, candidates)
                check(twin is None, "literal: not the first of equal ones", f"{place}: {twin}")
                check(now[0] > 1e-12, "literal: gains nothing", now[0])
                check(
                    now[0] > best[0] + 1e-12 or now[1] >= best[1] - tolerance, "literal: no better"
                )
                best = now
            for _, other_slack, cuts in choices.values():
                self._check_best(options, cuts, best, other_slack, share, rank, literals)
            if rank < len(literals):
                line, error = choices[way][0][k], choices[way][1][k]
        if literals:
            least = options["min_impurity_decrease"] - 1e-9
            check(best[0] * share >= least, "impurity decrease too small")
        return line, error

    def _check_best(self, options, cuts, best, slack, share, rank, literals) -> None:
        """No candidate has a better cut than a node has, beyond what roundings decide."""
        gain, gap = best
        better = cuts.certain & (cuts.gain > gain + 1e-9)
        with np.errstate(invalid="ignore"):
            apart = cuts.gap > gap + 2 * slack.max(axis=1, keepdims=True) + 1e-9
        better |= cuts.certain & (np.abs(cuts.gain - gain) <= 1e-12) & apart & (gain > 1e-12)
        if not literals and rank == 0:
            # a split may have been refused
            better &= cuts.gain * share > options["min_impurity_decrease"] + 1e-9
        if better.any():
            k, cut = np.argwhere(better)[0]
            text = f"gain {cuts.gain[k, cut]!r}, gap {cuts.gap[k, cut]!r}, not {gain!r}, {gap!r}"
            check(False, "a better split is there", text)

    def _check_ways(self, case: Case, found: dict, number: int, measured: Measured) -> None:
        """The leaf that each series reaches."""
        tree = {name: found[f"tree {number} {name}"] for name in NODES}
        literals = self.literals(found, number)
        lines = [
            measured.line(*(int(one[k]) for k in ("series", "channel", "start", "length")))
            for one in literals
        ]
        reached = np.concatenate([found["X apply"], found["Q apply"]])[:, number]
        for row, leaf in enumerate(reached.tolist()):
            node = 0
            while tree["children_left"][node] >= 0:
                first = int(tree["first_literal"][node])
                joined, slack = (part[row] for part in lines[first])
                for k in range(first + 1, first + int(tree["n_literals"][node])):
                    join = max if str(literals[k]["logic"]) == "and" else min
                    joined, slack = join(joined, lines[k][0][row]), max(slack, lines[k][1][row])
                threshold = tree["threshold"][node]
                if abs(joined - threshold) <= slack:
                    break
                node = tree["children_left" if joined <= threshold else "children_right"][node]
            else:
                check(leaf == node, "apply", f"series {row}, tree {number}: {leaf}, not {node}")

    def _check_votes(self, case: Case, found: dict, y: np.ndarray, drawn: list) -> None:
        """Shares of the classes, from the leaves that were reached."""
        values = [found[f"tree {number} value"] for number in range(len(drawn))]
        for part in ("X", "Q"):
            each = [v[column] for v, column in zip(values, found[f"{part} apply"].T, strict=True)]
            close("predict_proba", found[f"{part} predict_proba"], np.mean(each, axis=0), 1e-14)
            shares = found[f"{part} predict_proba"]
            labels = found["classes"][shares.argmax(axis=1)]
            same("predict", found[f"{part} predict"], labels)
            with np.errstate(divide="ignore"):
                close("predict_log_proba", found[f"{part} predict_log_proba"], np.log(shares))
            if part == "X":
                hits = labels == found["classes"][y]
                often = np.arange(1, len(y) + 1) if case.options["score.sample_weight"] else None
                close("score", found["score"], np.average(hits, weights=often), 1e-12)
        if "oob" not in found:
            return
        hits = []
        for row, label in enumerate(y.tolist()):
            out = [k for k, rows in enumerate(drawn) if row not in rows]
            shares = found["oob shares"][row]
            if not out:
                check(np.isnan(shares).all(), "oob_decision_function_: drawn by all trees")
                continue
            wanted = np.mean([values[k][found["X apply"][row, k]] for k in out], axis=0)
            close("oob_decision_function_", shares, wanted, 1e-14)
            hits.append(int(shares.argmax()) == label)
        same("oob_score_", found["oob"], np.float64(np.mean(hits) if hits else np.nan))

    def _check_importances(self, found: dict, X: Sample) -> None:
        """Each point has the shares of the shapelets that were taken from it."""
        wanted = np.zeros((X.n_channels, int(X.lengths.max())))
        for number in range(len(found["seeds"])):
            tree = {name: found[f"tree {number} {name}"] for name in NODES}
            literals, shares = self.literals(found, number), []
            for node in np.flatnonzero(tree["n_literals"]).tolist():
                first, before = int(tree["first_literal"][node]), 0.0
                for k in range(first, first + int(tree["n_literals"][node])):
                    gain = float(literals[k]["gain"])
                    weight = tree["weighted_n_node_samples"][node]
                    shares.append((k, max(0.0, gain - before) * weight))
                    before = gain
            whole = sum(share for _, share in shares)
            for k, share in shares:
                one = literals[k]
                start, length = int(one["start"]), int(one["length"])
                points = slice(start, start + length)
                wanted[int(one["channel"]), points] += share / (whole * length)
        total = wanted.sum()
        wanted = wanted / total if total > 0 else wanted
        importances = found["importances"].reshape(wanted.shape)
        close("feature_importances_", importances, wanted, 1e-12)
        check(not importances[wanted == 0].any(), "feature_importances_ where no shapelet lies")

    # -- relations

    def relate_forms(self, case, found, call):
        again = call(plain(case))
        again["importances"] = again["importances"].reshape(found["importances"].shape)
        same("another form of the data", again, found)

    def relate_scale(self, case, found, call, power):
        other = scaled(case, power)
        if other is None or min(self.lengths(case)) < 3:
            return
        again = call(other)
        for key in found:
            wanted = np.ldexp(found[key], power) if key.endswith(" values") else found[key]
            same(f"scaled by a power of two {key.split()[-1]}", again[key], wanted)

    def relate_alone(self, case, found, call):
        """A query alone reaches the leaves that it reaches among others."""
        Q = case.data["Q"]
        for row in range(len(Q)):
            again = call(plain(case.but(Q=Q.take([row]))))
            for method in ("apply", "predict", "predict_proba", "predict_log_proba"):
                same(f"a query alone {method}", again[f"Q {method}"], found[f"Q {method}"][[row]])

    def relate_grown(self, case, found, call):
        """A forest that is grown in two steps is the one that is grown at once."""
        if case.types:  # the second step draws from where the first has left the state
            return
        model = self.model(case, How("numba")).set_params(warm_start=True)
        for count in (1, case.options["n_estimators"]):
            model.set_params(n_estimators=count).fit(case.data["X"].give(), case.data["y"])
        same("grown in two steps", self.found(case, model), found)
