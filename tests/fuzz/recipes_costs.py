"""Recipe of costs that are functions of the user's."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import numpy as np

from skts import DTWKMedoids, DTWNeighbors, SubsequenceSearch
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
    relations = ("forms", "rows", "medoid", "windows", "turned")

    def draw(self, d: Draw) -> Case:
        data, types = self.draw_data(d, 20), {}
        options = draw_warp(d, max(one.lengths.max() for one in data.values()), types)
        del options["cost"]
        options["function"] = options["cuda"] = d.pick("function", sorted(COSTS))
        return Case(self.name, data, options, types, relation=self.draw_relation(d))

    def call(self, case: Case, how: How) -> dict:
        given = case.given()
        cost = self.target(COSTS[given.pop("function")][0], COSTS[given.pop("cuda")][1])
        wanted = given.pop("wanted", None)
        if wanted in ("windows", "turned"):
            return self.places(case, how, cost, turned=wanted == "turned")
        if wanted is None:
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

    def places(self, case: Case, how: How, cost: Callable, *, turned: bool) -> dict:
        """The nearest of a series in X: the place of its beginning, or a series that is turned."""
        options = {name: case.options[name] for name in ("metric", "window")}
        x = self.sides(case)[0]
        # a query no longer than any series
        query = x[0][np.newaxis, :, : min(one.shape[1] for one in x)]
        if turned:
            model = DTWNeighbors(
                1, cost=cost, rotation_invariant=True, **options, **how.options(DTWNeighbors)
            )
            return dict(
                zip(("distances", "at"), model.fit(list(x)).kneighbors(list(query)), strict=True)
            )
        how_to = how.options(SubsequenceSearch)
        model = SubsequenceSearch(cost=cost, normalize=False, **options, **how_to).fit(list(x))
        return dict(zip(("distances", "at"), model.kneighbors(list(query)), strict=True))

    def relate_windows(self, case, found, call):
        """The least of all windows, and the first window that has it, but for roundings."""
        wanted = replace(case, options=case.options | {"alignment": "global", "wanted": "windows"})
        x = self.sides(case)[0]
        if x[0].shape[0] > 1 and all(one.shape[1] == 1 for one in x):
            return  # a search takes these for points of one channel, and refuses them
        n = min(one.shape[1] for one in x)
        every = {
            (row, start): accumulated(x[0][:, :n], one[:, start : start + n], wanted)
            for row, one in enumerate(x)
            for start in range(one.shape[1] - n + 1)
        }
        self.compare(call(wanted), every)

    def relate_turned(self, case, found, call):
        """The least of all shifts of all series."""
        wanted = replace(case, options=case.options | {"alignment": "global", "wanted": "turned"})
        x = self.sides(case)[0]
        query = x[0][:, : min(one.shape[1] for one in x)]
        every = {
            row: min(
                accumulated(query, np.roll(one, shift, axis=1), wanted)
                for shift in range(one.shape[1])
            )
            for row, one in enumerate(x)
        }
        self.compare(call(wanted), every)

    def compare(self, found: dict, every: dict) -> None:
        """Compare the nearest with what was computed of each place."""
        distance, place = found["distances"][0, 0], found["at"][0, 0]
        key = int(place) if np.ndim(place) == 0 else tuple(np.asarray(place).tolist())
        close("the distance", distance, every[key])
        close("the least", distance, min(every.values()))

    def check(self, case: Case, found: dict) -> None:
        X, Y = self.sides(case)
        wanted = np.array([[accumulated(x, y, case) for y in Y] for x in X])
        close("distances", found["distances"], wanted)

    def relate_medoid(self, case, found, call):
        """The function gets the point of a series first, and that of its medoid second."""
        whole = case.options | {"alignment": "global", "wanted": "medoid"}
        wanted = replace(case, options=whole)
        found, X = call(wanted), self.sides(case)[0]
        within = np.array([[accumulated(x, y, wanted) for y in X] for x in X])
        close("to the medoid", found["to medoid"], within[:, int(found["medoid"])])
        close("inertia", found["inertia"], within.sum(axis=0).min())
