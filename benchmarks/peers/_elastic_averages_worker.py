"""Averages and k-means under warping by skts and by each of its peers (see `_worker.py`).

A request holds `kind` ("barycenter", "kmeans" or "soft"), `metric`, `n_iter`, `threads` and series
X. Everybody averages them for n_iter iterations from the first series; or clusters them for n_iter
iterations from the first `n_clusters` series, with one iteration of DBA in each; or returns
soft-DTW (gamma 1) of every two series of X and Y. The answer of the first two is the number of
iterations done, and the averages; of other metrics than DTW those of ten iterations.
"""

import warnings

import numpy as np
from _worker import main


class Skts:
    def barycenter(self, X, metric, n_iter, threads):
        from skts.averages import dtw_barycenter

        found = dtw_barycenter(
            X, init=X[0], metric=metric, max_iter=n_iter, tol=0, engine="numba", n_jobs=threads
        )
        return found.n_iter, found.average

    def kmeans(self, X, k, n_iter, threads):
        from skts import DTWKMeans

        on = {"engine": "numba", "n_jobs": threads}
        model = DTWKMeans(k, init=X[:k], max_iter=n_iter, tol=0, **on).fit(X)
        return model.n_iter_, model.cluster_centers_

    def soft(self, X, Y, threads):
        from skts.metrics import pairwise_soft_dtw

        return pairwise_soft_dtw(X, Y, gamma=1.0, engine="numba", n_jobs=threads)


class Tslearn:
    def barycenter(self, X, metric, n_iter, threads):
        from tslearn.barycenters import dtw_barycenter_averaging

        return n_iter, dtw_barycenter_averaging(
            X[:, :, None], init_barycenter=X[0][:, None], max_iter=n_iter, tol=-1.0
        )

    def kmeans(self, X, k, n_iter, threads):
        from functools import partial

        from tslearn.barycenters.dba import dtw_barycenter_averaging_petitjean
        from tslearn.clustering import TimeSeriesKMeans, kmeans

        # under DTW it passes no number of iterations on: there are up to 30 in each
        one = partial(dtw_barycenter_averaging_petitjean, max_iter=1)
        kmeans.dtw_barycenter_averaging_petitjean = one
        X = X[:, :, None]
        given = {"metric": "dtw", "tol": 0, "n_init": 1}
        model = TimeSeriesKMeans(k, init=X[:k], max_iter=n_iter, n_jobs=threads, **given).fit(X)
        return model.n_iter_, model.cluster_centers_

    def soft(self, X, Y, threads):
        from tslearn.metrics import cdist_soft_dtw

        return cdist_soft_dtw(X, Y, gamma=1.0)


class Aeon:
    """It stops when an iteration raises the cost, and assigns once more than it averages."""

    def barycenter(self, X, metric, n_iter, threads):
        from aeon.clustering.averaging import elastic_barycenter_average

        return n_iter, elastic_barycenter_average(
            X[:, None], distance=metric, init_barycenter=X[:1].copy(), max_iters=n_iter, tol=-1.0,
            method="petitjean", n_jobs=threads, random_state=0,
        )  # fmt: skip

    def kmeans(self, X, k, n_iter, threads):
        from aeon.clustering import TimeSeriesKMeans

        X = X[:, None]
        model = TimeSeriesKMeans(
            k, init=X[:k].copy(), distance="dtw", max_iter=n_iter + 1, tol=0, n_init=1,
            averaging_method="ba", average_params={"max_iters": 1}, n_jobs=threads, random_state=0,
        ).fit(X)  # fmt: skip
        return max(1, model.n_iter_ - 1), model.cluster_centers_

    def soft(self, X, Y, threads):
        from aeon.distances import soft_dtw_pairwise_distance

        return soft_dtw_pairwise_distance(X, Y, gamma=1.0, n_jobs=threads)


class Dtaidistance:
    """Its C code. Its k-means starts each average from a member; it takes no centres to start."""

    def barycenter(self, X, metric, n_iter, threads):
        from dtaidistance.dtw_barycenter import dba_loop

        return n_iter, dba_loop(X, c=X[0].copy(), max_it=n_iter, thr=None, use_c=True)

    def kmeans(self, X, k, n_iter, threads):
        from dtaidistance.clustering.kmeans import KMeans

        class FromTheFirst(KMeans):
            def kmeansplusplus_centers(self, series):
                return [series[place] for place in range(k)]

        model = FromTheFirst(
            k, max_it=n_iter, max_dba_it=1, thr=0, show_progress=False,
            dists_options={"use_c": True},
        )  # fmt: skip
        done = model.fit(X, use_parallel=threads > 1)[1] - 1
        return done, np.array(model.means)


LIBRARIES = {library.__name__.lower(): library for library in (Skts, Tslearn, Aeon, Dtaidistance)}


def prepare(name, request):
    """A warm-up, the work, and what makes its answer."""
    library, kind = LIBRARIES[name](), str(request["kind"])
    n_iter, threads, X = int(request["n_iter"]), int(request["threads"]), request["X"]
    # whether it would go on after so few iterations is no matter here
    warnings.simplefilter("ignore")

    def work():
        if kind == "soft":
            return library.soft(X, request["Y"], threads)
        if kind == "barycenter":
            return library.barycenter(X, str(request["metric"]), n_iter, threads)
        return library.kmeans(X, int(request["n_clusters"]), n_iter, threads)

    def answer(found):
        if kind == "soft":
            return found
        if str(request["metric"]) != "dtw":
            done = found[0]
            # an iteration may raise the inertia: how good ten of them are
            found = done, library.barycenter(X, str(request["metric"]), 10, threads)[1]
        return np.concatenate([[found[0]], np.ravel(found[1])])

    return work, work, answer


if __name__ == "__main__":
    main(prepare, "DTWKMeans")
