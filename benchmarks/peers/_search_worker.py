"""The best match of a query in a long series, by skts and by each of its peers (see `_worker.py`).

A request holds `x`, `query`, `radius` (half width of the band, -1 for none) and `threads`. The
answer is one vector: the distance of the best match, and that of the window that was named,
computed here by the definition, so that a wrong place shows.
"""

import numpy as np
from _worker import main

#: Points of the warm-up.
FEW = 5000


class Skts:
    def search(self, x, query, radius, threads):
        from skts import SubsequenceSearch

        model = SubsequenceSearch(window=radius, engine="numba", n_jobs=threads)
        distances, positions = model.fit(x[np.newaxis]).kneighbors(query[np.newaxis])
        return distances[0, 0], positions[0, 0, 1]


class Ucrdtw:
    """The code of the UCR suite, on one thread. A band of the whole query overflows its arrays:
    one of all points but one is as wide."""

    def search(self, x, query, radius, threads):
        import _ucrdtw

        width = (query.size - 1 if radius is None else radius) / query.size
        place, distance = _ucrdtw.ucrdtw(x, query, width, False)
        return distance, place


class Wildboar:
    def search(self, x, query, radius, threads):
        from wildboar.distance import pairwise_subsequence_distance

        width = 1.0 if radius is None else radius / query.size
        return pairwise_subsequence_distance(
            query,
            x,
            metric="scaled_dtw",
            metric_params={"r": width},
            return_index=True,
            n_jobs=threads,
        )


LIBRARIES = {library.__name__.lower(): library for library in (Skts, Ucrdtw, Wildboar)}


def normalized(rows):
    """Rows less their mean, over their deviation."""
    centered = rows - rows.mean(axis=1, keepdims=True)
    return centered / centered.std(axis=1, keepdims=True)


def distance_of(query, window, radius):
    """The distance of the query to one window."""
    a, b = normalized(np.stack([query, window]))
    total = np.full((a.size + 1, a.size + 1), np.inf)
    total[0, 0] = 0.0
    for i in range(a.size):
        for j in range(a.size):
            if radius is None or abs(i - j) <= radius:
                best = min(total[i, j], total[i, j + 1], total[i + 1, j])
                total[i + 1, j + 1] = (a[i] - b[j]) ** 2 + best
    return np.sqrt(total[-1, -1])


def prepare(name, request):
    library = LIBRARIES[name]()
    x, query, threads = request["x"], request["query"], int(request["threads"])
    radius = int(request["radius"])
    radius = None if radius < 0 else radius

    def work(n=None):
        return library.search(x[:n], query, radius, threads)

    def answer(found):
        distance, place = found
        place = int(place)
        return np.array([distance, distance_of(query, x[place : place + query.size], radius)])

    return lambda: work(FEW), work, answer


if __name__ == "__main__":
    main(prepare, "SubsequenceSearch")
