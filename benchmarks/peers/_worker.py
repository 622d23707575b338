"""One library at one piece of work, in its own process and its own environment.

    python _worker.py LIBRARY REQUEST.npz ANSWER.npz

needs nothing but NumPy and the library. The request holds the work: `kind` ("pairwise" or
"nearest"), its arrays, `radius` (of the Sakoe-Chiba band in points, -1 for none) and `threads`.
After a warm-up on a few of the series the worker prints `ready`, then for every line that it
reads it does the whole work once and prints the wall seconds and the processor seconds that
this took. When its input ends it writes the result of the last round to the answer.

Every library gives the same thing here: for "pairwise" the matrix of DTW distances, that is of
square roots of summed squared differences, of every row of X to every row of Y; for "nearest"
the labels that a 1-nearest-neighbour classifier predicts.
"""

import json
import sys
import time
from importlib.metadata import distributions
from platform import python_version

import numpy as np


class Skts:
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
    """Its classifier uses lower bounds and abandons early; `r` is a fraction, rounded down."""

    def pairwise(self, X, Y, threads, **window):
        from wildboar.distance import pairwise_distance

        return pairwise_distance(
            X, Y, dim="mean", metric="dtw", metric_params=window, n_jobs=threads
        )

    def nearest(self, X, y, Z, threads, **window):
        from wildboar.distance import KNeighborsClassifier

        model = KNeighborsClassifier(1, metric="dtw", metric_params=window, n_jobs=threads)
        return model.fit(X, y).predict(Z)

    def window(self, radius, length):
        return {"r": 1.0 if radius is None else (radius + 0.5) / length}


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

        if threads > 1:
            raise NotImplementedError("its search runs on one thread")

        def match(query):
            return subsequence_search(query, X, dict(window, use_c=True)).best_match().idx

        return y[[match(query) for query in Z]]

    def window(self, radius, length):
        return {} if radius is None else {"window": radius + 1}


class Tsdistances:
    """Gives sums, not their roots; a band is a fraction of the length. It has no classifier."""

    def pairwise(self, X, Y, threads, **window):
        from tsdistances import dtw_distance

        return np.sqrt(dtw_distance(X, Y, par=threads > 1, **window))

    def nearest(self, X, y, Z, threads, **window):
        return y[np.argmin(self.pairwise(Z, X, threads, **window), axis=1)]

    def window(self, radius, length):
        return {} if radius is None else {"band": (radius + 0.5) / length}


LIBRARIES = {
    library.__name__.lower(): library
    for library in (Skts, Aeon, Tslearn, Wildboar, Dtaidistance, Tsdistances)
}
#: Series of each side in the warm-up.
WARM_UP = 8


def work(library, request):
    """The work as a function of the number of series of each side (None: all of them)."""
    radius, threads = int(request["radius"]), int(request["threads"])
    radius = None if radius < 0 else radius
    if request["kind"] == "pairwise":
        X, Y = request["X"], request["Y"]
        window = library.window(radius, X.shape[-1])
        return lambda n=None: library.pairwise(X[:n], Y[:n], threads, **window)
    X, y, Z = request["X"], request["y"], request["Z"]
    window = library.window(radius, X.shape[-1])
    return lambda n=None: library.nearest(X[:n], y[:n], Z[:n], threads, **window)


def main(name, request_path, answer_path):
    with np.load(request_path) as file:
        run = work(LIBRARIES[name](), dict(file))
    run(WARM_UP)
    print("ready", flush=True)
    result = None
    for _ in sys.stdin:
        processor, wall = time.process_time(), time.perf_counter()
        result = run()
        wall, processor = time.perf_counter() - wall, time.process_time() - processor
        print("time", wall, processor, flush=True)
    versions = {dist.name.lower(): dist.version for dist in distributions()}
    versions["python"] = python_version()
    np.savez(answer_path, result=np.asarray(result), versions=json.dumps(versions))


if __name__ == "__main__":
    main(*sys.argv[1:])
