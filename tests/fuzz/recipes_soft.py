"""Recipes of soft-DTW: values, gradients, averages."""

from __future__ import annotations

import math
from dataclasses import replace
from typing import Any

import numpy as np

from .case import Case
from .compare import check, close, same
from .draw import Draw
from .oracle_soft import least_gamma, slack, slope_slack, soft
from .recipe import How, Recipe, draw_window, plain, shapes
from .recipes_averages import scales_exactly, weights_of

#: Roundings of a sum of terms that are below the least normal number.
LOST = 1000 * 2.0**-1074
#: gamma as a share of the squared range of the data; the first is mostly refused.
SHARES = (1e-14, 1e-6, 1e-3, 0.03, 1.0, 30.0)
#: Share of those from 1 on that are integers.
WHOLE = 0.25


def draw_gamma(d: Draw, series: list) -> float:
    """A smoothing that suits the data, more or less; a whole number may have more than 64 bits."""
    share = d.pick("gamma", SHARES, (0.5, 1, 2, 3, 3, 1))
    reach = max(float(x.max()) for x in series) - min(float(x.min()) for x in series)
    gamma = share * reach * reach * d.rng.uniform(0.5, 2) if reach else share
    gamma = float(min(max(gamma, 1e-100), 1e100))
    return int(gamma) if gamma >= 1 and d.rng.random() < WHOLE else gamma


def rescaled(case: Case, power: int) -> Case | None:
    """The case with data times a power of two, and gamma times its square."""
    power = int(np.sign(power)) * (abs(power) % 60)
    other = scales_exactly(case, power)
    gamma = math.ldexp(case.options["gamma"], 2 * power)
    if other is None or not 1e-100 <= gamma <= 1e100:
        return None
    return replace(other, options=other.options | {"gamma": gamma})


class _Soft(Recipe):
    """What functions of soft-DTW share."""

    relations = ("scale", "forms")

    def refuses(self, case: Case) -> bool:
        sets = [one.series for one in case.data.values()]
        sets = sets if len(sets) == 2 else sets * 2
        return not case.options["gamma"] >= least_gamma(*sets)

    def relate_scale(self, case, found, call, power):
        other = rescaled(case, power)
        if other is None:
            return
        power = round(math.log2(other.options["gamma"] / case.options["gamma"])) // 2
        again = call(other)
        for name, value in found.items():
            if name == "n_iter":
                same("scaled by a power of two: n_iter", again[name], value)
                continue
            # sums of squares, and what has the unit of the data; in the plainest form
            factor = power if name in ("average", "gradient") else 2 * power
            other = np.reshape(again[name], np.shape(value))
            wanted = np.ldexp(value, factor)
            # terms of a sum that are below the least normal number have lost digits
            unit = math.ldexp(1.0, max(0, factor))
            tiny = np.abs(wanted) < 2.0**-960 * unit
            part = f"scaled by a power of two: {name}"
            close(part, np.where(tiny, other, 0.0), np.where(tiny, wanted, 0.0), LOST * unit, 0.0)
            same(part, np.where(tiny, wanted, other), wanted)

    def relate_forms(self, case, found, call):
        again = call(plain(case))
        for name, value in found.items():
            same(f"another form: {name}", np.squeeze(again[name]), np.squeeze(value))


class _SoftPair(_Soft):
    """Two series."""

    def draw(self, d: Draw) -> Case:
        types: dict[str, str] = {}
        x, y = d.numbers(shapes(d, 2, 130), scales=False)
        data = {
            "x": d.form([x], form="single", label=" x"),
            "y": d.form([y], form="single", label=" y"),
        }
        series = [one.series[0] for one in data.values()]
        longest = max(one.shape[1] for one in series)
        options = {"gamma": draw_gamma(d, series), "window": draw_window(d, longest, types)}
        return Case(self.name, data, options, types, relation=self.draw_relation(d))

    def sides(self, case: Case) -> tuple:
        """The arguments of the oracle."""
        x, y = (case.data[name].series[0] for name in "xy")
        return x, y, float(case.options["gamma"]), case.options["window"]


class SoftDTW(_SoftPair):
    name = "skts.metrics.soft_dtw"
    relations = ("scale", "forms", "flip")

    def call(self, case: Case, how: How) -> dict:
        given = {name: one.give() for name, one in case.data.items()}
        found = self.target(**given, **case.given(), **how.options(self.target))
        check(type(found) is float, "value: type", str(type(found)))
        return {"value": np.float64(found)}

    def check(self, case: Case, found: dict) -> None:
        x, y, gamma, window = self.sides(case)
        wanted, _ = soft(x, y, gamma, window)
        close("value", found["value"], wanted, slack(wanted, gamma, x.shape[1], y.shape[1]), 0.0)

    def relate_flip(self, case, found, call):
        flipped = call(replace(case, data={"x": case.data["y"], "y": case.data["x"]}))
        same("x and y exchanged", flipped, found)


class SoftDTWGradient(_SoftPair):
    name = "skts.metrics.soft_dtw_gradient"

    def call(self, case: Case, how: How) -> dict:
        given = {name: one.give() for name, one in case.data.items()}
        found = self.target(**given, **case.given(), **how.options(self.target))
        check(type(found.value) is float, "value: type", str(type(found.value)))
        check(found.gradient.shape == np.shape(given["x"]), "gradient: shape", found.gradient.shape)
        return {"value": np.float64(found.value), "gradient": found.gradient}

    def check(self, case: Case, found: dict) -> None:
        x, y, gamma, window = self.sides(case)
        wanted, slope = soft(x, y, gamma, window)
        close("value", found["value"], wanted, slack(wanted, gamma, x.shape[1], y.shape[1]), 0.0)
        allowed = slope_slack(wanted, gamma, x, y)
        close("gradient", np.atleast_2d(found["gradient"]), slope, allowed, 1e-9)


class PairwiseSoftDTW(_Soft):
    name = "skts.metrics.pairwise_soft_dtw"
    relations = ("scale", "forms", "rows")

    def draw(self, d: Draw) -> Case:
        large, types = d.chance(0.05), {}
        n_rows, n_cols = d.whole(1, 6), d.size(1, 70) if large else d.whole(1, 6)
        if d.chance(0.3):
            n_rows, n_cols = n_cols, n_rows
        within = d.pick("Y", ("none", "some")) == "none"
        series = d.numbers(shapes(d, n_rows + n_cols, 12 if large else 70), scales=False)
        data = {"X": d.form(series if within else series[:n_rows], label=" X")}
        if not within:
            data["Y"] = d.form(series[n_rows:], label=" Y")
        series = [x for one in data.values() for x in one.series]
        longest = max(x.shape[1] for x in series)
        options = {"gamma": draw_gamma(d, series), "window": draw_window(d, longest, types)}
        return Case(self.name, data, options, types, relation=self.draw_relation(d))

    def call(self, case: Case, how: How) -> dict:
        given = {name: one.give() for name, one in case.data.items()}
        return {"values": self.target(**given, **case.given(), **how.options(self.target))}

    def check(self, case: Case, found: dict) -> None:
        X = case.data["X"].series
        Y = case.data["Y"].series if "Y" in case.data else X
        gamma, window = float(case.options["gamma"]), case.options["window"]
        wanted = np.array([[soft(x, y, gamma, window)[0] for y in Y] for x in X])
        allowed = np.array(
            [
                [slack(wanted[i, j], gamma, x.shape[1], y.shape[1]) for j, y in enumerate(Y)]
                for i, x in enumerate(X)
            ]
        )
        close("values", found["values"], wanted, allowed, 0.0)

    def relate_rows(self, case, found, call):
        """All backwards, and a series alone."""
        X, Y = case.data["X"], case.data.get("Y", case.data["X"])
        order = list(range(len(X)))[::-1]
        again = call(case.but(X=X.take(order), Y=Y))
        same("series in another order", again["values"], found["values"][order])
        alone = case.but(X=X.take([0]), Y=Y)
        same("a series alone", call(alone)["values"], found["values"][:1])


class SoftBarycenter(_Soft):
    name = "skts.averages.soft_dtw_barycenter"

    def draw(self, d: Draw) -> Case:
        n, types = d.size(1, 70) if d.chance(0.05) else d.whole(1, 5), {}
        init = d.pick("init", ("mean", "medoid", "given"), (2, 1, 3))
        sizes = shapes(d, n + (init == "given"), 12 if n > 5 else 40)
        series = d.numbers(sizes, scales=False)
        data = {"X": d.form(series[:n], label=" X")}
        if init == "given":
            data["init"] = d.form(series[n:], form="single", label=" init")
        drawn = [x for one in data.values() for x in one.series]
        options: dict[str, Any] = {
            "gamma": draw_gamma(d, drawn),
            "init": init,
            "window": draw_window(d, max(size[1] for size in sizes), types),
            "weights": d.pick("weights", (None, "whole", "some", "odd", "alike"), (4, 1, 1, 1, 1)),
            "max_iter": d.pick("max_iter", (1, 2, 5, 20), (2, 2, 2, 1)),
            "tol": d.pick("tol", (0.0, 1e-5, 0.3), (2, 3, 1)),
        }
        return Case(self.name, data, options, types, relation=self.draw_relation(d))

    def possible(self, case: Case) -> bool:
        return super().possible(case) and ("init" in case.data) == (case.options["init"] == "given")

    def refuses(self, case: Case) -> bool:
        X = case.data["X"].series
        if "init" in case.data:
            return not case.options["gamma"] >= least_gamma(X, case.data["init"].series)
        # the start is within the range of the series, and may be shorter
        return not case.options["gamma"] >= least_gamma(X, X)

    def call(self, case: Case, how: How) -> dict:
        options = case.given()
        options["weights"] = weights_of(case.options["weights"], len(case.data["X"]))
        if "init" in case.data:
            options["init"] = case.data["init"].give()
        found = self.target(case.data["X"].give(), **options, **how.options(self.target))
        check(type(found.inertia) is float, "inertia: type", str(type(found.inertia)))
        return {
            "average": found.average,
            "inertia": np.float64(found.inertia),
            "n_iter": np.int64(found.n_iter),
        }

    def check(self, case: Case, found: dict) -> None:
        X, options = case.data["X"], case.options
        average, gamma = np.atleast_2d(found["average"]), float(options["gamma"])
        weights = weights_of(options["weights"], len(X))
        weights = np.ones(len(X)) if weights is None else weights

        def total(center: np.ndarray) -> tuple[float, float]:
            each = [soft(center, x, gamma, options["window"])[0] for x in X.series]
            allowed = [
                slack(value, gamma, center.shape[1], x.shape[1])
                for value, x in zip(each, X.series, strict=True)
            ]
            return float(weights @ each), float(weights @ allowed)

        wanted, allowed = total(average)
        close("inertia", found["inertia"], wanted, 4 * allowed, 0.0)
        check(0 <= found["n_iter"] <= options["max_iter"], "n_iter", found["n_iter"])
        check(np.isfinite(average).all(), "average: not finite", average)
        if "init" in case.data:
            start = case.data["init"].series[0]
            check(average.shape == start.shape, "average: shape", average.shape)
            first, more = total(start)
            check(found["inertia"] <= first + 4 * (allowed + more), "inertia: above the start's")
