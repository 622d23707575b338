"""DTW by skts and by each of its peers (see `_worker.py`).

A request holds `kind` ("pairwise" or "nearest"), `metric`, `radius` (of the Sakoe-Chiba band in
points, -1 for none), `threads` and the series. All libraries are asked for the same: for "pairwise"
the distances of every row of X to every row of Y, under DTW square roots of summed squared
differences, under other distances with the parameters of `OTHERS`; for "nearest" the labels of the
rows of Z by a 1-nearest-neighbour classifier under DTW fitted to X and y. Each does it in its
fastest way; what its window means is translated from the radius.
"""

from typing import ClassVar

import numpy as np
from _worker import main

#: Other distances, with the parameters that skts is asked for: everybody else has the same.
OTHERS = {
    "msm": {"penalty": 1.0},
    "twe": {"nu": 0.001, "lmbda": 1.0},
    "edr": {"epsilon": 1.0},
    "erp": {"gap": 0.0},
    "lcss": {"epsilon": 1.0},
    "shape_dtw": {"reach": 15},
    "wdtw": {"g": 0.05},
    "adtw": {"penalty": 1.0},
    "ddtw": {},
}
#: Distances of which aeon and wildboar have sums, and skts the roots.
ROOTS = ("shape_dtw", "wdtw", "adtw", "ddtw")


class Skts:
    def other(self, metric, X, Y, threads):
        from skts.metrics import pairwise_distances

        options = {"metric": metric, "metric_params": OTHERS[metric]}
        return pairwise_distances(X, Y, **options, engine="numba", n_jobs=threads)

    def pairwise(self, X, Y, threads, **window):
        from skts.metrics import pairwise_dtw

        return pairwise_dtw(X, Y, **window, engine="numba", n_jobs=threads)

    def nearest(self, X, y, Z, threads, **window):
        from skts import DTWNearestNeighbor

        model = DTWNearestNeighbor(1, **window, engine="numba", n_jobs=threads)
        return model.fit(X, y).predict(Z)

    def window(self, radius, length):
        return {} if radius is None else {"window": radius}


class Aeon:
    """Gives sums, not their roots; a window is a fraction of the length, rounded down."""

    NAMES: ClassVar = {"penalty": "c", "gap": "g"}

    def other(self, metric, X, Y, threads):
        from aeon import distances

        names = {"penalty": "warp_penalty"} if metric == "adtw" else self.NAMES
        if metric == "wdtw":
            names = {}
        options = {names.get(name, name): value for name, value in OTHERS[metric].items()}
        function = getattr(distances, f"{metric}_pairwise_distance")
        found = function(X, Y, n_jobs=threads, **options)
        return np.sqrt(found) if metric in ROOTS else found

    def pairwise(self, X, Y, threads, **window):
        from aeon.distances import dtw_pairwise_distance

        return np.sqrt(dtw_pairwise_distance(X, Y, n_jobs=threads, **window))

    def nearest(self, X, y, Z, threads, **window):
        from aeon.classification.distance_based import KNeighborsTimeSeriesClassifier

        model = KNeighborsTimeSeriesClassifier("dtw", window, n_neighbors=1, n_jobs=threads)
        return model.fit(X, y).predict(Z)

    def window(self, radius, length):
        return {} if radius is None else {"window": (radius + 0.5) / length}


class Tslearn:
    def pairwise(self, X, Y, threads, **window):
        from tslearn.metrics import cdist_dtw

        return cdist_dtw(X, Y, n_jobs=threads, **window)

    def nearest(self, X, y, Z, threads, **window):
        from tslearn.neighbors import KNeighborsTimeSeriesClassifier

        model = KNeighborsTimeSeriesClassifier(1, metric_params=window or None, n_jobs=threads)
        return model.fit(X, y).predict(Z)

    def window(self, radius, length):
        if radius is None:
            return {}
        return {"global_constraint": "sakoe_chiba", "sakoe_chiba_radius": radius}


class Wildboar:
    """Abandons early; `r` of a length L allows offsets below floor(r L). Its lower bounds halve
    the time of a search with a window, and cost more than they save without one."""

    NAMES: ClassVar = {"penalty": "c", "gap": "g", "nu": "stiffness", "lmbda": "penalty"}

    def other(self, metric, X, Y, threads):
        from wildboar.distance import pairwise_distance

        options = {self.NAMES.get(name, name): value for name, value in OTHERS[metric].items()}
        return pairwise_distance(
            X, Y, dim="mean", metric=metric, metric_params=options, n_jobs=threads
        )

    def pairwise(self, X, Y, threads, **window):
        from wildboar.distance import pairwise_distance

        return pairwise_distance(
            X, Y, dim="mean", metric="dtw", metric_params=window, n_jobs=threads
        )

    def nearest(self, X, y, Z, threads, **window):
        from wildboar.distance import KNeighborsClassifier, argmin_distance

        options = {"metric": "dtw", "metric_params": window, "n_jobs": threads}
        try:
            from wildboar.distance.lb import DtwKeoghLowerBound
        except ImportError:  # not before version 1.3
            return KNeighborsClassifier(1, **options).fit(X, y).predict(Z)
        if window["r"] == 1.0:
            return KNeighborsClassifier(1, **options).fit(X, y).predict(Z)
        # the classifier has no lower bounds; the function behind it takes them
        bounds = DtwKeoghLowerBound(**window).fit(X).transform(Z)
        return y[np.ravel(argmin_distance(Z, X, lower_bound=bounds, **options))]

    def window(self, radius, length):
        return {"r": 1.0 if radius is None else min(1.0, (radius + 1.5) / length)}


class Dtaidistance:
    """Its C code; a window of w allows offsets below w. It has no classifier: its search keeps
    the best match of a query, skips by LB_Keogh and abandons early."""

    def pairwise(self, X, Y, threads, **window):
        from dtaidistance.dtw import distance_matrix_fast

        n, m = len(X), len(Y)
        block = ((0, n), (n, n + m))
        both = np.concatenate([X, Y])
        return distance_matrix_fast(both, block=block, parallel=threads > 1, **window)[:n, n:]

    def nearest(self, X, y, Z, threads, **window):
        from dtaidistance.subsequence.subsequencesearch import subsequence_search

        if threads > 1:  # its search runs on one
            return y[np.argmin(self.pairwise(Z, X, threads, **window), axis=1)]

        def match(query):
            return subsequence_search(query, X, dict(window, use_c=True)).best_match().idx

        return y[[match(query) for query in Z]]

    def window(self, radius, length):
        return {} if radius is None else {"window": radius + 1}


class Tsdistances:
    """Gives sums; a band is a fraction of the length, rounded up. It has no classifier."""

    NAMES: ClassVar = {"gap": "gap_penalty", "nu": "stiffness", "lmbda": "penalty"}

    def other(self, metric, X, Y, threads):
        import tsdistances

        parameters = OTHERS[metric] if metric != "msm" else {}  # a penalty of 1 is built in
        options = {self.NAMES.get(name, name): value for name, value in parameters.items()}
        function = getattr(tsdistances, f"{metric}_distance")
        return function(X, Y, par=threads > 1, **options)

    def pairwise(self, X, Y, threads, **window):
        from tsdistances import dtw_distance

        return np.sqrt(dtw_distance(X, Y, par=threads > 1, **window))

    def nearest(self, X, y, Z, threads, **window):
        return y[np.argmin(self.pairwise(Z, X, threads, **window), axis=1)]

    def window(self, radius, length):
        return {} if radius is None else {"band": max(0.0, (radius - 0.5) / length)}


class SktsOnGpu(Skts):
    def pairwise(self, X, Y, threads, **window):
        from skts.metrics import pairwise_dtw

        return pairwise_dtw(X, Y, **window, engine="cupy")


class TsdistancesOnGpu(Tsdistances):
    """Its shaders run where there is a driver of Vulkan."""

    def pairwise(self, X, Y, threads, **window):
        from tsdistances import dtw_distance

        return np.sqrt(dtw_distance(X, Y, par=True, device="gpu", **window))


LIBRARIES = {
    library.__name__.lower(): library
    for library in (Skts, Aeon, Tslearn, Wildboar, Dtaidistance, Tsdistances)
}
LIBRARIES |= {"skts-gpu": SktsOnGpu, "tsdistances-gpu": TsdistancesOnGpu}
#: Series of each side in the warm-up; of few series, half of them.
FEW = 8


def prepare(name, request):
    library, threads = LIBRARIES[name](), int(request["threads"])
    radius, X = int(request["radius"]), request["X"]
    window = library.window(None if radius < 0 else radius, X.shape[-1])

    metric = str(request.get("metric", "dtw"))
    if metric != "dtw":

        def work(n=None):
            return library.other(metric, X[:n], request["Y"][:n], threads)
    elif request["kind"] == "pairwise":
        Y = request["Y"]

        def work(n=None):
            return library.pairwise(X[:n], Y[:n], threads, **window)
    else:
        y, Z = request["y"], request["Z"]

        def work(n=None):
            return library.nearest(X[:n], y[:n], Z[:n], threads, **window)

    return lambda: work(min(FEW, max(2, len(X) // 2))), work


if __name__ == "__main__":
    main(prepare, "DTWNearestNeighbor")
