"""Recipe of costs that are functions of the user's."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from skts import DTWKMedoids
from skts.metrics import pairwise_distances

from .case import Case
from .compare import close
from .draw import Draw
from .oracle import band
from .recipe import How, draw_warp
from .recipes_metrics import _TwoSets


def steep(x, y):
    """Steeper on one side."""
    return 3.0 * (y - x) if y > x else (x - y) * (x - y)


def slow(x, y):
    """Half as steep on one side."""
    return max(x - y, (y - x) / 2.0)


#: Functions and the same in CUDA, without a product that is added to anything.
COSTS = {
    "steep": (steep, "y > x ? 3.0 * (y - x) : (x - y) * (x - y)"),
    "slow": (slow, "fmax(x - y, (y - x) / 2.0)"),
}


def accumulated(x: np.ndarray, y: np.ndarray, case: Case) -> float:
    """Cost of the best path of two series, of shape (n_channels, n_points)."""
    function, options = COSTS[case.options["function"]][0], case.options
    (n_channels, n), m = x.shape, y.shape[1]
    radius = band(options["window"], n, m)
    D = np.full((n + 1, m + 1), np.inf)
    if options["alignment"] == "subsequence":
        D[0] = 0.0
    if options["alignment"] == "supersequence":
        D[:, 0] = 0.0
    D[0, 0] = 0.0
    for i, j in np.ndindex(n, m):
        if abs(i - j) <= radius:
            pairs = [(float(x[c, i]), float(y[c, j])) for c in range(n_channels)]
            cost, best = sum(function(*pair) for pair in pairs), D[i : i + 2, j : j + 2].min()
            D[i + 1, j + 1] = max(cost, best) if options["metric"] == "dog_keeper" else cost + best
    ends = {"subsequence": D[n, 1:], "supersequence": D[1:, m]}
    return float(ends.get(options["alignment"], D[n, m]).min())


class PointCost(_TwoSets):
    name = "skts.metrics.PointCost"
    relations = ("forms", "rows", "medoid")

    def draw(self, d: Draw) -> Case:
        data, types = self.draw_data(d, 20), {}
        options = draw_warp(d, max(one.lengths.max() for one in data.values()), types)
        del options["cost"]
        options["function"] = options["cuda"] = d.pick("function", sorted(COSTS))
        return Case(self.name, data, options, types, relation=self.draw_relation(d))

    def call(self, case: Case, how: How) -> dict:
        given = case.given()
        cost = self.target(COSTS[given.pop("function")][0], COSTS[given.pop("cuda")][1])
        if not given.pop("medoid", False):
            options = given | how.options(pairwise_distances)
            return {"distances": pairwise_distances(**self.given(case), cost=cost, **options)}
        options = {name: given[name] for name in ("metric", "window") if name in given}
        model = DTWKMedoids(1, init="build", cost=cost, **options, **how.options(DTWKMedoids))
        X = self.given(case)["X"]
        model.fit(X)
        found = {"medoid": model.medoid_indices_[0], "inertia": model.inertia_}
        return {"to medoid": model.transform(X)[:, 0]} | {
            k: np.asarray(v) for k, v in found.items()
        }

    def check(self, case: Case, found: dict) -> None:
        X, Y = self.sides(case)
        wanted = np.array([[accumulated(x, y, case) for y in Y] for x in X])
        close("distances", found["distances"], wanted)

    def relate_medoid(self, case, found, call):
        """The function gets the point of a series first, and that of its medoid second."""
        whole = case.options | {"alignment": "global", "medoid": True}
        wanted = replace(case, options=whole)
        found, X = call(wanted), self.sides(case)[0]
        within = np.array([[accumulated(x, y, wanted) for y in X] for x in X])
        close("to the medoid", found["to medoid"], within[:, int(found["medoid"])])
        close("inertia", found["inertia"], within.sum(axis=0).min())
