"""Regression trees over shapelets: the checks of `recipes_models.Tree`, for targets."""

from __future__ import annotations

from typing import Any, ClassVar

import numpy as np

from .case import Case
from .compare import close
from .draw import Draw
from .recipe import How
from .recipes_models import WALKS, Cuts, Tree, all_cuts, series_weights


class RegressionTree(Tree):
    name = "skts.ShapeletTreeRegressor"
    methods = tuple(name for name in Tree.methods if not name.endswith("_proba"))
    walks: ClassVar[tuple[str, ...]] = tuple(name for name in WALKS if not name.endswith("_proba"))
    # weights that are no ratios of small numbers are rounded
    close_gains: ClassVar[float] = 1e-8

    def draw_target(self, d: Draw, n: int, options: dict[str, Any]) -> list:
        """Draw targets, which may be equal, or far from 0."""
        del options["class_weight"]
        if options["call.also"].endswith("_proba"):
            options["call.also"] = "predict"
        kind = d.pick("targets", ("numbers", "integers", "equal", "far"), (4, 3, 1, 1))
        y = d.rng.normal(size=n) if kind == "numbers" else d.rng.integers(-3, 4, n)
        if kind == "equal":
            y = np.full(n, 0.1)
        return (y + 1e6 if kind == "far" else y).tolist()

    def model(self, case: Case, how: How) -> Any:
        options = {k: v for k, v in case.given().items() if "." not in k}
        if options["logic"] != "auto":
            options["logic"] = tuple(options["logic"])
        return self.target(**options, **how.options(self.target))

    def weights(self, case: Case) -> tuple[None, np.ndarray, np.ndarray, np.ndarray]:
        """No classes; targets, a weight of all, and that of each series."""
        own = series_weights(case.options["fit.sample_weight"], case.data["y"])
        y = np.array(case.data["y"], float)
        return None, y, np.ones(1), np.ones(len(y)) if own is None else own

    def predicted(self, value: np.ndarray, classes: None) -> np.ndarray:
        """What leaves of some values predict."""
        return value

    def check_score(self, score, predicted, y, weights) -> None:
        """Compare a score with the share of the variance that is explained."""
        rest = weights @ (y - np.average(y, weights=weights)) ** 2
        if len(y) > 1 and rest > 1e-9:
            close("score", score, 1 - weights @ (y - predicted) ** 2 / rest, 1e-9)

    def describe(self, y, own, weights) -> tuple[float, Any, float]:
        """Weight, mean and variance of a node."""
        if np.ptp(y) == 0:
            return own.sum(), y[0], 0.0
        mean = np.average(y, weights=own)
        return own.sum(), mean, float(np.average((y - mean) ** 2, weights=own))

    def cuts(self, D, slack, y, weights, own, *limits) -> Cuts:
        """All cuts of order lines: those of one class, with gains of targets."""
        found = all_cuts(D, slack, np.zeros(len(y), np.int64), weights, own, *limits)
        order = np.argsort(D, axis=1, kind="stable")
        near = np.cumsum(own[order], axis=1)[:, :-1]
        sums = np.cumsum((own * (y - np.average(y, weights=own)))[order], axis=1)[:, :-1]
        gain = sums**2 / (near * (own.sum() - near))
        return found._replace(gain=np.where(np.isfinite(found.gain), gain, -np.inf))
