"""Distances of all subsequences of one length to all series, by skts and by each of its peers.

See `_worker.py`. A request holds `X`, `length` and `threads`, and how many of the candidates are
measured, evenly spread over all of them, by libraries that would take too long for all (`share`
of them; their times are divided by it). The answer is the matrix of the squared distances of a
hundred spread candidates (a root near 0 magnifies rounding), so that all results are compared.

wildboar has two programs, of which the faster one is taken; pyts' own program does not normalise
windows, so it gets windows that are normalised and compares those. Compiled loops are warmed up.
"""

import time

import numpy as np
from _worker import main

#: Candidates of the warm-up.
FEW = 3
#: Candidates whose distances are compared.
COMPARED = 100


def candidates(X, length):
    """Series and start of every candidate."""
    rows, starts = np.divmod(np.arange(len(X) * (X.shape[1] - length + 1)), X.shape[1] - length + 1)
    return rows, starts


def normalized(windows):
    """Windows of mean 0 and deviation 1."""
    centered = windows - windows.mean(axis=-1, keepdims=True)
    return centered / centered.std(axis=-1, keepdims=True)


class Skts:
    """The search of the best one, order lines included; then distances of the compared ones."""

    def prepare(self, X, y, length, threads):
        from skts.engines import Criterion, Series, ShapeletSearch, run

        series = Series(np.ascontiguousarray(X[:, None]), np.full(len(X), X.shape[1]))
        criterion = Criterion(y, np.ones(y.max() + 1))
        work = ShapeletSearch(series, np.arange(len(X)), (length,), criterion)
        self.run = lambda: run(work, engine="numba", n_jobs=threads)

    def all(self, places):
        self.run()

    def some(self, X, rows, starts, length):
        from skts.engines import Series, SubsequenceMatches, run

        series = Series(np.ascontiguousarray(X[:, None]), np.full(len(X), X.shape[1]))
        queries = tuple(X[r, s : s + length].copy() for r, s in zip(rows, starts, strict=True))
        return run(SubsequenceMatches(queries, series), engine="numba").distances


class Wildboar:
    """Distances alone, with that of its two programs which is faster at this work."""

    def prepare(self, X, y, length, threads):
        from wildboar.distance import pairwise_subsequence_distance

        def by(metric, scale):
            return lambda windows: pairwise_subsequence_distance(
                windows, X, metric=metric, scale=scale, n_jobs=threads
            )

        self.windows = np.lib.stride_tricks.sliding_window_view(X, length, axis=1)
        few = [(0, 0), (len(X) // 2, 0), (len(X) - 1, self.windows.shape[1] - 1)] * 20
        times = {}
        for self.measure in (by("mass", False), by("euclidean", True)) * 2:
            start = time.perf_counter()
            self.all(few)
            times[time.perf_counter() - start] = self.measure
        self.measure = times[min(times)]

    def all(self, places):
        return self.measure([np.ascontiguousarray(self.windows[r, s]) for r, s in places])

    def some(self, X, rows, starts, length):
        return np.asarray(self.all(list(zip(rows, starts, strict=True)))).T


class Aeon:
    """The loop of its ShapeletTransform and RandomShapeletTransform, distances alone."""

    def prepare(self, X, y, length, threads):
        import aeon.transformations.collection.shapelet_based._shapelet_transform as module

        if threads > 1:
            raise NotImplementedError("its loop runs in one thread; joblib runs several")
        self.X, self.length = X, length
        self.distance = module._online_shapelet_distance

    def all(self, places):
        found = np.empty((len(places), len(self.X)))
        for k, (row, start) in enumerate(places):
            shapelet = normalized(self.X[row, start : start + self.length])
            order = np.argsort(-np.abs(shapelet)).astype(np.int32)
            for b, series in enumerate(self.X):
                found[k, b] = self.distance(series, shapelet, order, start, self.length)
        return found

    def some(self, X, rows, starts, length):
        # it returns squares over the length
        return np.sqrt(self.all(list(zip(rows, starts, strict=True))) * length)


class Pyts:
    """The loop of its ShapeletTransform over windows that were normalised, distances alone."""

    def prepare(self, X, y, length, threads):
        from pyts.transformation import _shapelet_transform as module

        if threads > 1:
            raise NotImplementedError("its loop runs in one thread")
        windows = np.lib.stride_tricks.sliding_window_view(X, length, axis=1)
        self.windows = np.ascontiguousarray(normalized(windows))
        self.distance = module._derive_shapelet_distances

    def all(self, places):
        return [self.distance(self.windows, self.windows[r, s].copy()) for r, s in places]

    def some(self, X, rows, starts, length):
        return np.sqrt(np.array(self.all(list(zip(rows, starts, strict=True)))) * length)


LIBRARIES = {library.__name__.lower(): library for library in (Skts, Wildboar, Aeon, Pyts)}


def prepare(name, request):
    X, y, length, threads = (request[key] for key in ("X", "y", "length", "threads"))
    length, share = int(length), float(request["share"])
    library = LIBRARIES[name]()
    library.prepare(X, y, length, int(threads))
    places = list(zip(*candidates(X, length), strict=True))
    spread = np.linspace(0, len(places) - 1, COMPARED).astype(int)
    measured = places
    if name != "skts":
        chosen = np.linspace(0, len(places) - 1, max(1, round(share * len(places))))
        measured = [places[k] for k in chosen.astype(int)]

    def answer(_):
        rows, starts = zip(*(places[k] for k in spread), strict=True)
        return library.some(X, rows, starts, length) ** 2

    return lambda: library.all(places[:FEW]), lambda: library.all(measured), answer


if __name__ == "__main__":
    main(prepare, "ShapeletTreeClassifier")
