"""Recipes of `skts.metrics`, and of the validation that all share."""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np

from . import oracle, oracle_elastic
from .case import Case
from .compare import RELATIVE, check, close, nearest, same
from .draw import Draw
from .recipe import (
    How,
    Recipe,
    draw_metric,
    draw_warp,
    draw_window,
    fit_for,
    ints_only,
    plain,
    scaled,
    shapes,
    warp_of,
)


class _TwoSeries(Recipe):
    """A function of x and y."""

    most = 300

    def draw_data(self, d: Draw) -> dict:
        sizes = shapes(d, 2, self.most, long=self.long)
        x, y = d.numbers(sizes)
        return {
            "x": d.form([x], form="single", label=" x"),
            "y": d.form([y], form="single", label=" y"),
        }

    def relate_scale(self, case, found, call, power):
        other = scaled(case, power)
        if other is not None:
            wanted = np.ldexp(found["distance"], power)
            same("scaled by a power of two", call(other)["distance"], wanted)

    def relate_forms(self, case, found, call):
        same("another form of the data", call(plain(case)), found)


class _Elastic(_TwoSeries):
    metric = "dtw"
    long = 0.003
    relations = ("scale", "forms", "flip")

    def draw(self, d: Draw) -> Case:
        data, types = self.draw_data(d), {}
        longest = max(data["x"].lengths[0], data["y"].lengths[0])
        options = draw_warp(d, longest, types, metric=False)
        return Case(self.name, data, options, types, relation=self.draw_relation(d))

    def call(self, case: Case, how: How) -> dict:
        given = {name: one.give() for name, one in case.data.items()}
        found = self.target(**given, **case.given(), **how.options(self.target))
        check(type(found) is float, "distance: type", str(type(found)))
        return {"distance": np.float64(found)}

    def check(self, case: Case, found: dict) -> None:
        x, y = case.data["x"].series[0], case.data["y"].series[0]
        wanted = oracle.elastic(x, y, warp_of(case)._replace(metric=self.metric))
        close("distance", found["distance"], wanted)

    def relate_flip(self, case, found, call):
        turn = {"subsequence": "supersequence", "supersequence": "subsequence"}
        alignment = case.options["alignment"]
        options = case.options | {"alignment": turn.get(alignment, alignment)}
        data = {"x": case.data["y"], "y": case.data["x"]}
        flipped = call(replace(case, data=data, options=options))
        close("x and y exchanged", flipped["distance"], found["distance"], relative=1e-12)


class DTW(_Elastic):
    name = "skts.metrics.dtw"


class DogKeeper(_Elastic):
    name = "skts.metrics.dog_keeper"
    metric = "dog_keeper"


class _Named(_TwoSeries):
    """A function that is named as its distance."""

    relations = ("forms", "flip")

    @property
    def metric(self) -> str:
        return self.name.rpartition(".")[2]

    def draw(self, d: Draw) -> Case:
        data, types = self.draw_data(d), {}
        longest = max(data["x"].lengths[0], data["y"].lengths[0])
        options = {
            name: d.pick(name, values)
            for name, (_, values) in oracle_elastic.PARAMETERS[self.metric].items()
        }
        if self.metric in oracle_elastic.PRICED:
            options["cost"] = d.pick("cost", ("squared", "absolute"), (2, 1))
        options["window"] = draw_window(d, longest, types)
        return Case(self.name, data, options, types, relation=self.draw_relation(d))

    def call(self, case: Case, how: How) -> dict:
        given = {name: one.give() for name, one in case.data.items()}
        found = self.target(**given, **case.given(), **how.options(self.target))
        check(type(found) is float, "distance: type", str(type(found)))
        return {"distance": np.float64(found)}

    def refuses(self, case: Case) -> bool:
        return self.metric == "ddtw" and min(one.lengths[0] for one in case.data.values()) < 3

    def check(self, case: Case, found: dict) -> None:
        x, y = case.data["x"].series[0], case.data["y"].series[0]
        known = oracle_elastic.PARAMETERS[self.metric]
        given = {name: case.options[name] for name in known if name in case.options}
        if not oracle_elastic.thresholds(self.metric, x, y, given, warp_of(case)):
            wanted = oracle_elastic.distance(x, y, warp_of(case), self.metric, **given)
            close("distance", found["distance"], wanted, slack_of(self.metric, [x, y]))

    def relate_flip(self, case, found, call):
        flipped = call(replace(case, data={"x": case.data["y"], "y": case.data["x"]}))
        close("x and y exchanged", flipped["distance"], found["distance"], relative=1e-12)


class ERP(_Named):
    name = "skts.metrics.erp"


class LCSS(_Named):
    name = "skts.metrics.lcss"


class EDR(_Named):
    name = "skts.metrics.edr"


class MSM(_Named):
    name = "skts.metrics.msm"


class TWE(_Named):
    name = "skts.metrics.twe"


class WDTW(_Named):
    name = "skts.metrics.wdtw"


class ADTW(_Named):
    name = "skts.metrics.adtw"


class DDTW(_Named):
    name = "skts.metrics.ddtw"


class ShapeDTW(_Named):
    name = "skts.metrics.shape_dtw"


class Matches(_TwoSeries):
    name = "skts.metrics.dtw_matches"
    most = 24
    relations = ("scale", "forms")

    def draw(self, d: Draw) -> Case:
        options = {
            "n_matches": d.pick("n_matches", (1, 2, 3, 40)),
            "metric": d.pick("metric", ("dtw", "dog_keeper"), (2, 1)),
            "cost": d.pick("cost", ("squared", "absolute"), (2, 1)),
        }
        return Case(self.name, self.draw_data(d), options, relation=self.draw_relation(d))

    def call(self, case: Case, how: How) -> dict:
        given = {name: one.give() for name, one in case.data.items()}
        distances, spans = self.target(**given, **case.given(), **how.options(self.target))
        return {"distances": distances, "spans": spans}

    def check(self, case: Case, found: dict) -> None:
        x, y = case.data["x"].series[0], case.data["y"].series[0]
        parts = part_distances(x, y, warp_of(case))
        check((np.diff(found["distances"]) >= 0).all(), "not ascending", found["distances"])
        for distance, (start, stop) in zip(
            found["distances"], found["spans"].tolist(), strict=True
        ):
            check((start, stop) in parts, "overlaps, or lies outside", (start, stop))
            close("distance", distance, parts[start, stop])
            best = min(parts.values())
            check(distance <= best * (1 + RELATIVE), "not the best", f"{distance} {best}")
            parts = {(a, b): value for (a, b), value in parts.items() if b <= start or a >= stop}
        full = len(found["distances"]) == case.options["n_matches"]
        check(full or not parts, "too few", len(found["distances"]))

    def relate_forms(self, case, found, call):
        same("another form of the data", call(plain(case)), found)

    def relate_scale(self, case, found, call, power):
        other = scaled(case, power)
        if other is not None:
            again = call(other)
            same("scaled by a power of two", again["spans"], found["spans"])
            wanted = np.ldexp(found["distances"], power)
            same("scaled by a power of two", again["distances"], wanted)


def part_distances(x: np.ndarray, y: np.ndarray, warp: oracle.Warp) -> dict:
    """Distances of a series to all contiguous parts of another, by first point and end."""
    power = oracle.plane([x, y])
    x, y = np.ldexp(x, -power), np.ldexp(y, -power)
    squared, largest = warp.cost == "squared", warp.metric == "dog_keeper"
    found = {}
    for start in range(y.shape[1]):
        above = [0.0] + [math.inf] * x.shape[1]
        for stop in range(start + 1, y.shape[1] + 1):
            row = [math.inf]
            for i in range(x.shape[1]):
                difference = x[:, i] - y[:, stop - 1]
                cost = float((difference**2 if squared else np.abs(difference)).sum())
                best = min(above[i], above[i + 1], row[i])
                row.append(max(cost, best) if largest else cost + best)
            above = row
            value = math.sqrt(row[-1]) if squared else row[-1]
            found[start, stop] = math.ldexp(value, power)
    return found


class Path(_TwoSeries):
    name = "skts.metrics.dtw_path"
    most = 130
    relations = ("scale", "forms")

    def draw(self, d: Draw) -> Case:
        data, types = self.draw_data(d), {}
        longest = max(data["x"].lengths[0], data["y"].lengths[0])
        options = draw_warp(d, longest, types)
        return Case(self.name, data, options, types, relation=self.draw_relation(d))

    def call(self, case: Case, how: How) -> dict:
        given = {name: one.give() for name, one in case.data.items()}
        path, distance = self.target(**given, **case.given(), **how.options(self.target))
        return {"path": path, "distance": np.float64(distance)}

    def check(self, case: Case, found: dict) -> None:
        x, y = case.data["x"].series[0], case.data["y"].series[0]
        warp, path = warp_of(case), found["path"]
        wanted = oracle.elastic(x, y, warp)
        close("distance", found["distance"], wanted)
        n, m = x.shape[1], y.shape[1]
        check(path.dtype == np.int64 and path.ndim == 2, "path: type", path.dtype)
        check((path >= 0).all() and (path < [n, m]).all(), "path: outside", path)
        steps = set(map(tuple, np.diff(path, axis=0).tolist()))
        check(steps <= {(1, 1), (1, 0), (0, 1)}, "path: steps", str(path.tolist()))
        first, last = path[0], path[-1]
        check(first[0] == 0 or warp.alignment == "supersequence", "path: start", first)
        check(first[1] == 0 or warp.alignment == "subsequence", "path: start", first)
        check(last[0] == n - 1 or warp.alignment == "supersequence", "path: end", last)
        check(last[1] == m - 1 or warp.alignment == "subsequence", "path: end", last)
        away = np.abs(path[:, 0] - path[:, 1]).max()
        check(warp.alignment != "global" or away <= oracle.band(warp.window, n, m), "path: band")
        power = oracle.plane([x, y])
        difference = np.ldexp(x, -power)[:, path[:, 0]] - np.ldexp(y, -power)[:, path[:, 1]]
        squared = warp.cost == "squared"
        costs = (difference**2 if squared else np.abs(difference)).sum(axis=0)
        total = costs.max() if warp.metric == "dog_keeper" else costs.sum()
        close("cost along the path", np.ldexp(np.sqrt(total) if squared else total, power), wanted)
        if ints_only(*case.data.values()):
            exact = oracle.dtw_path(x, y, warp)
            check(path.tolist() == [list(step) for step in exact], "path: ties", f"{path} {exact}")

    def relate_scale(self, case, found, call, power):
        other = scaled(case, power)
        if other is not None:
            again = call(other)
            same("scaled by a power of two", again["path"], found["path"])
            same("scaled by a power of two", again["distance"], np.ldexp(found["distance"], power))


class NamedPath(_TwoSeries):
    """The path of any distance; `dtw_path` says more of those that it knows."""

    name = "skts.metrics.warping_path"
    most = 130
    relations = ("forms",)

    def draw(self, d: Draw) -> Case:
        data, types = self.draw_data(d), {}
        options = draw_metric(d, list(data.values()), types)
        return Case(self.name, data, options, types, relation=self.draw_relation(d))

    def possible(self, case: Case) -> bool:
        return super().possible(case) and fit_for(case.options, list(case.data.values()))

    def refuses(self, case: Case) -> bool:
        return case.options["metric"] == "msm" and case.data["x"].n_channels > 1

    def call(self, case: Case, how: How) -> dict:
        given = {name: one.give() for name, one in case.data.items()}
        path, distance = self.target(**given, **case.given(), **how.options(self.target))
        return {"path": path, "distance": np.float64(distance)}

    def check(self, case: Case, found: dict) -> None:
        x, y = case.data["x"].series[0], case.data["y"].series[0]
        metric, given, path = (
            case.options["metric"],
            case.options["metric_params"] or {},
            found["path"],
        )
        if metric == "ddtw":
            n, m = x.shape[1] - 2, y.shape[1] - 2
        else:
            n, m = x.shape[1], y.shape[1]
        check(path.dtype == np.int64 and path.ndim == 2, "path: type", path.dtype)
        check((path >= 0).all() and (path < [n, m]).all(), "path: outside", path)
        if not oracle_elastic.thresholds(metric, x, y, given, warp_of(case)):
            wanted = oracle_elastic.distance(x, y, warp_of(case), metric, **given)
            close("distance", found["distance"], wanted, slack_of(metric, [x, y]))
        if case.options["alignment"] == "global" and len(path):
            radius = oracle.band(case.options["window"], n, m)
            check(np.abs(path[:, 0] - path[:, 1]).max() <= radius, "path: band", path)
        if metric == "lcss":
            # points that match, and as many as the distance says
            apart = np.abs(x[:, path[:, 0]] - y[:, path[:, 1]])
            check((apart <= given.get("epsilon", 1.0)).all(), "path: no match", path)
            check((np.diff(path, axis=0) > 0).all(), "path: order", path)
            close("length", 1 - len(path) / min(n, m), found["distance"], 1e-12)


class Keogh(_TwoSeries):
    name = "skts.metrics.lb_keogh"
    relations = ("scale", "forms")

    def draw(self, d: Draw) -> Case:
        data, types = self.draw_data(d), {}
        longest = max(data["x"].lengths[0], data["y"].lengths[0])
        options = {
            "metric": d.pick("metric", ("dtw", "dog_keeper")),
            "cost": d.pick("cost", ("squared", "absolute")),
            "window": draw_window(d, longest, types),
        }
        return Case(self.name, data, options, types, relation=self.draw_relation(d))

    def call(self, case: Case, how: How) -> dict:
        given = {name: one.give() for name, one in case.data.items()}
        return {"distance": np.float64(self.target(**given, **case.given()))}

    def check(self, case: Case, found: dict) -> None:
        x, y = case.data["x"].series[0], case.data["y"].series[0]
        warp = warp_of(case)
        close("bound", found["distance"], oracle.keogh(x, y, warp))
        close(
            "bound above the distance",
            max(found["distance"] - oracle.elastic(x, y, warp), 0),
            0,
            1e-12 * found["distance"],
        )


class _TwoSets(Recipe):
    """A matrix between two sets, or within one."""

    def draw_data(self, d: Draw, most: int) -> dict:
        # edges of groups of series are tried with short ones, edges of series with few
        large = d.chance(0.05)
        n_rows, n_cols = d.whole(1, 6), d.size(1, 140) if large else d.whole(1, 6)
        within = d.pick("Y", ("none", "some")) == "none"
        if within:
            n_rows, n_cols = (d.size(1, 70), 0) if large else (n_rows, 0)
        elif d.chance(0.3):
            n_rows, n_cols = n_cols, n_rows
        share = 0.0 if large else self.long
        far = share > 0 and d.pick("long", (False, True), (1 - share, share))
        if far:
            n_rows, n_cols = d.whole(1, 2), 0 if within else d.whole(1, 2)
        sizes = shapes(d, n_rows + n_cols, 12 if large else most, long=float(far))
        series = d.numbers(sizes)
        data = {"X": d.form(series[:n_rows], label=" X")}
        return data if within else data | {"Y": d.form(series[n_rows:], label=" Y")}

    def sides(self, case: Case) -> tuple[tuple, tuple]:
        X = case.data["X"].series
        return X, case.data["Y"].series if "Y" in case.data else X

    def given(self, case: Case) -> dict:
        return {name: one.give() for name, one in case.data.items()}

    def relate_forms(self, case, found, call):
        same("another form of the data", call(plain(case)), found)

    def relate_rows(self, case, found, call):
        """Each series alone, and all backwards."""
        X, Y = case.data["X"], case.data.get("Y", case.data["X"])
        order = list(range(len(X)))[::-1]
        again = call(case.but(X=X.take(order), Y=Y))
        self.agree("series in another order", again, {k: v[order] for k, v in found.items()})
        row = len(X) // 2
        alone = call(case.but(X=X.take([row]), Y=Y))
        self.agree("a series alone", alone, {k: v[[row]] for k, v in found.items()})
        column = len(Y) // 2
        alone = call(case.but(X=X, Y=Y.take([column])))
        self.agree("a series alone", alone, {k: v[:, [column]] for k, v in found.items()})


class PairwiseDTW(_TwoSets):
    name = "skts.metrics.pairwise_dtw"
    long = 0.02
    relations = ("scale", "forms", "rows")

    def draw(self, d: Draw) -> Case:
        data, types = self.draw_data(d, 140), {}
        longest = max(one.lengths.max() for one in data.values())
        options = draw_warp(d, longest, types)
        return Case(self.name, data, options, types, relation=self.draw_relation(d))

    def call(self, case: Case, how: How) -> dict:
        found = self.target(**self.given(case), **case.given(), **how.options(self.target))
        return {"distances": found}

    def check(self, case: Case, found: dict) -> None:
        close("distances", found["distances"], oracle.dtw_matrix(*self.sides(case), warp_of(case)))

    def relate_scale(self, case, found, call, power):
        other = scaled(case, power)
        if other is not None:
            wanted = np.ldexp(found["distances"], power)
            same("scaled by a power of two", call(other)["distances"], wanted)


class PairwiseDistances(_TwoSets):
    name = "skts.metrics.pairwise_distances"
    long = 0.04
    relations = ("forms", "rows")

    def draw(self, d: Draw) -> Case:
        data, types = self.draw_data(d, 80), {}
        options = draw_metric(d, list(data.values()), types)
        return Case(self.name, data, options, types, relation=self.draw_relation(d))

    def possible(self, case: Case) -> bool:
        return super().possible(case) and fit_for(case.options, list(case.data.values()))

    def call(self, case: Case, how: How) -> dict:
        found = self.target(**self.given(case), **case.given(), **how.options(self.target))
        return {"distances": found}

    def check(self, case: Case, found: dict) -> None:
        metric, given = case.options["metric"], case.options["metric_params"] or {}
        X, Y = self.sides(case)
        wanted = oracle_elastic.matrix(X, Y, warp_of(case), metric, **given)
        for i, j in np.ndindex(wanted.shape):
            if oracle_elastic.thresholds(metric, X[i], Y[j], given, warp_of(case)):
                wanted[i, j] = found["distances"][i, j]
        close("distances", found["distances"], wanted, slack_of(metric, [*X, *Y]))


def slack_of(metric: str, series: list) -> float:
    """How far a distance may be off beside its own rounding: differences of rounded differences."""
    if metric != "ddtw":
        return 0.0
    largest = max(float(np.abs(x).max()) for x in series)
    return 1e-14 * largest * sum(x.size for x in series)


def _shapes_of(x: np.ndarray, y: np.ndarray, normalize: bool) -> tuple[oracle.Shape, oracle.Shape]:
    width = max(x.shape[-1], y.shape[-1])
    options = {"normalize": normalize, "short": width < 3, "width": width}
    return oracle.shape_of(x, **options), oracle.shape_of(y, **options)


def check_sbd(name: str, x: oracle.Shape, c: oracle.Shape, distance: float, shift: int) -> None:
    """Compare a distance and a shift with the oracle."""
    wanted, allowed, values = oracle.sbd(x.values, c.values)
    slack = 2 * (x.slack + c.slack)
    close(f"{name} distance", distance, wanted, 1e-12 + slack, 0.0)
    if int(shift) not in allowed:
        n = x.values.shape[1]
        check(abs(shift) < n, f"{name}: shift outside", shift)
        # where the normalisation itself is uncertain, other shifts may tie
        lost = wanted - (1 - values[int(shift) + n - 1])
        check(
            slack > 1e-12 and abs(lost) <= oracle.TIE + 2 * slack,
            f"{name}: shift",
            f"{shift}, not {sorted(allowed)}",
        )


class SBD(_TwoSeries):
    name = "skts.metrics.sbd"
    relations = ("scale", "forms")
    loose = {"distance": 1e-12}

    def draw(self, d: Draw) -> Case:
        data = self.draw_data(d)
        options = {"normalize": d.pick("normalize", (True, False), (2, 1))}
        return Case(self.name, data, options, relation=self.draw_relation(d))

    def call(self, case: Case, how: How) -> dict:
        given = {name: one.give() for name, one in case.data.items()}
        found = self.target(**given, **case.given(), **how.options(self.target))
        return {"distance": np.float64(found.distance), "shift": np.int64(found.shift)}

    def check(self, case: Case, found: dict) -> None:
        (x,), (y,) = (case.data[name].series for name in ("x", "y"))
        x, y = _shapes_of(x, y, case.options["normalize"])
        check_sbd("sbd", x, y, found["distance"], found["shift"])

    def relate_scale(self, case, found, call, power):
        other = scaled(case, power)
        if other is not None:
            same("scaled by a power of two", call(other), found)


class PairwiseSBD(_TwoSets):
    name = "skts.metrics.pairwise_sbd"
    relations = ("scale", "forms", "rows")
    loose = {"distances": 1e-12}

    def draw(self, d: Draw) -> Case:
        data = self.draw_data(d, 130)
        options = {
            "normalize": d.pick("normalize", (True, False), (2, 1)),
            "return_shifts": d.pick("return_shifts", (True, False), (4, 1)),
        }
        return Case(self.name, data, options, relation=self.draw_relation(d))

    def call(self, case: Case, how: How) -> dict:
        found = self.target(**self.given(case), **case.given(), **how.options(self.target))
        if not case.options["return_shifts"]:
            return {"distances": found}
        return dict(zip(("distances", "shifts"), found, strict=True))

    def check(self, case: Case, found: dict) -> None:
        sides = self.sides(case)
        shape = len(sides[0]), len(sides[1])
        check(found["distances"].shape == shape, "distances: shape", found["distances"].shape)
        for i, one in enumerate(sides[0]):
            for j, other in enumerate(sides[1]):
                x, y = _shapes_of(one, other, case.options["normalize"])
                distance = found["distances"][i, j]
                if "shifts" in found:
                    check_sbd("sbd", x, y, distance, found["shifts"][i, j])
                else:
                    wanted = oracle.sbd(x.values, y.values)[0]
                    close("sbd distance", distance, wanted, 1e-12 + 2 * (x.slack + y.slack), 0.0)

    def relate_scale(self, case, found, call, power):
        other = scaled(case, power)
        if other is not None:
            same("scaled by a power of two", call(other), found)


class SubsequenceDistance(Recipe):
    name = "skts.metrics.subsequence_distance"
    relations = ("scale", "forms")

    def draw(self, d: Draw) -> Case:
        n = d.size(1, 300)
        length = min(n, d.size(1, n))
        series, x = d.numbers([(1, n), (1, length)])
        if d.chance(0.3):
            start = d.whole(0, n - length)
            x = series[:, start : start + length] * (1 if d.chance(0.5) else 3.7)
        data = {
            "x": d.form([x], form="single", label=" x"),
            "series": d.form([series], form="single", label=" series"),
        }
        options = {"normalize": d.pick("normalize", (True, False), (2, 1))}
        return Case(self.name, data, options, relation=self.draw_relation(d))

    def possible(self, case: Case) -> bool:
        lengths = [case.data[name].lengths[0] for name in ("x", "series")]
        return super().possible(case) and 0 < lengths[0] <= lengths[1]

    def call(self, case: Case, how: How) -> dict:
        given = {name: one.give() for name, one in case.data.items()}
        found = self.target(**given, **case.given(), **how.options(self.target))
        return {"distance": np.float64(found.distance), "start": np.int64(found.start)}

    def check(self, case: Case, found: dict) -> None:
        query, line = case.data["x"].lines[0], case.data["series"].lines[0]
        length = len(query)
        normalize = case.options["normalize"] and length >= 3
        power = oracle.plane([query, line])
        one, other = (oracle.Windows.of(points, length, power) for points in (query, line))
        rows, slack = oracle.pair_distances(one, other, normalize)
        root = np.sqrt(length)
        nearest(
            "best match",
            rows[0] / root,
            slack[0] / root,
            np.array([found["start"]]),
            np.array([found["distance"]]),
        )
        first = _first_twin(line, length, int(found["start"]))
        check(
            first == found["start"], "start: not the first of equals", f"{found['start']} {first}"
        )

    def relate_scale(self, case, found, call, power):
        other = scaled(case, power)
        if other is None:
            return
        again = call(other)
        same("scaled by a power of two", again["start"], found["start"])
        raw = not case.options["normalize"] or case.data["x"].lengths[0] < 3
        wanted = np.ldexp(found["distance"], power if raw else 0)
        same("scaled by a power of two", again["distance"], wanted)

    def relate_forms(self, case, found, call):
        same("another form of the data", call(plain(case)), found)


def _first_twin(line: np.ndarray, length: int, start: int) -> int:
    """The first window of a line that has the same points as another one."""
    windows = np.lib.stride_tricks.sliding_window_view(line, length)
    return int(np.argmax((windows == windows[start]).all(axis=1)))


class CheckSeries(Recipe):
    """The same numbers from every form."""

    name = "skts.base.check_series"

    def draw(self, d: Draw) -> Case:
        sizes = shapes(d, d.size(1, 9), 70)
        data = {"X": d.sample(sizes, label=" X")}
        options = {
            "equal_length": d.pick("equal_length", (False, True), (3, 1)),
            "input_name": d.pick("input_name", ("X", "a name")),
            "estimator": d.pick("estimator", (None, "One")),
            "new": d.pick("new", (True, False)),
        }
        return Case(self.name, data, options)

    def refuses(self, case: Case) -> bool:
        return case.options["equal_length"] and len(set(case.data["X"].lengths)) > 1

    def call(self, case: Case, how: How) -> dict:
        found = self.target(case.data["X"].give(), **case.given())
        return {"values": np.array(found.values), "lengths": np.asarray(found.lengths)}

    def check(self, case: Case, found: dict) -> None:
        X = case.data["X"]
        same("lengths", found["lengths"].tolist(), X.lengths.tolist())
        for row, one in enumerate(X.series):
            same("values", found["values"][row, :, : one.shape[1]], one)
            check(not found["values"][row, :, one.shape[1] :].any(), "padding is not 0")


class CheckUnivariate(Recipe):
    """Series of one channel, holes and all."""

    name = "skts.base.check_univariate"

    def draw(self, d: Draw) -> Case:
        sizes = shapes(d, d.size(1, 9), 70, channels=(1,))
        data = {"X": d.sample(sizes, label=" X", spare=False, holes=True)}
        options = {
            "input_name": d.pick("input_name", ("X", "a name")),
            "estimator": d.pick("estimator", (None, "One")),
            "new": d.pick("new", (True, False)),
        }
        return Case(self.name, data, options)

    def call(self, case: Case, how: How) -> dict:
        found = self.target(case.data["X"].give(), **case.given())
        return {str(row): np.array(one) for row, one in enumerate(found)}

    def check(self, case: Case, found: dict) -> None:
        X = case.data["X"]
        width = X.lengths.max()
        for row, one in enumerate(X.lines):
            points = found[str(row)]
            if X.form == "padded":
                one = np.concatenate([one, np.full(width - len(one), np.nan)])
            same("values", points, one)
