"""k-Shape by skts and by each of its peers (see `_worker.py`).

A request holds `threads`, `n_clusters`, `n_iter` and z-normalised series X. Everybody clusters them
for n_iter iterations, in its fastest way, from the first `n_clusters` series as centres where it
takes centres (kshape takes none and starts at random). The answer is the number of iterations done
and the labels.

"skts-gpu" and "kshape-gpu" do so on a GPU. Their request also holds the `labels` that the first
centres give, so that both start from the same, and their answer the centres.
"""

from unittest.mock import patch

import numpy as np
from _worker import main


def skts(X, k, n_iter, threads, engine="numba"):
    import warnings

    from skts import KShapeClusterer

    # whether labels still change after so few iterations is no matter here
    warnings.simplefilter("ignore")
    model = KShapeClusterer(k, init=X[:k], max_iter=n_iter, engine=engine, n_jobs=threads).fit(X)
    return model.n_iter_, model.labels_


def skts_on_gpu(X, k, n_iter, threads, labels):
    import warnings

    from skts import KShapeClusterer

    warnings.simplefilter("ignore")
    model = KShapeClusterer(k, init=X[:k], max_iter=n_iter, engine="cupy").fit(X)
    return model.n_iter_, model.labels_, model.cluster_centers_


def tslearn(X, k, n_iter, threads):
    from tslearn.clustering import KShape

    X = X[:, :, None]
    model = KShape(k, init=X[:k], max_iter=n_iter, tol=0, n_init=1).fit(X)
    return model.n_iter_, model.labels_


def aeon(X, k, n_iter, threads):
    from aeon.clustering import KShape

    X = X[:, None]
    model = KShape(k, init=X[:k], max_iter=n_iter, tol=0, n_jobs=threads, n_init=1)
    model.fit(X)
    return model.n_iter_, model.labels_


def kshape(X, k, n_iter, threads):
    """The authors' package; it does not say how many iterations it did."""
    from kshape.core import KShapeClusteringCPU

    np.random.seed(0)  # noqa: NPY002 - the package draws from the global generator
    model = KShapeClusteringCPU(k, max_iter=n_iter, n_jobs=threads).fit(X[:, :, None])
    return n_iter, model.labels_.astype(int)


def kshape_on_gpu(X, k, n_iter, threads, labels):
    """The same authors' code for PyTorch; labels are on the host when it returns.

    It draws labels, and with centroid_init="random" series as centres of the first iteration. Here
    "drawn" are the labels of the request and the first series. It compares labels once an
    iteration, which counts them.
    """
    import torch
    from kshape.core_gpu import KShapeClusteringGPU

    done = 0

    def same(before, after):
        nonlocal done
        done += 1
        return bool((before == after).all())

    start = torch.tensor(labels[: len(X)], dtype=torch.float32)
    draws = {"randint": lambda *_, **__: start, "randperm": torch.arange, "equal": same}
    with patch.multiple(torch, **draws):
        model = KShapeClusteringGPU(k, centroid_init="random", max_iter=n_iter).fit(X[:, :, None])
    return done, model.labels_.astype(int), model.centroids_.cpu().numpy()[:, :, 0]


LIBRARIES = {
    "skts": skts,
    "tslearn": tslearn,
    "aeon": aeon,
    "kshape": kshape,
    "skts-gpu": skts_on_gpu,
    "kshape-gpu": kshape_on_gpu,
}


def prepare(library, request):
    """A warm-up on few series, and the work."""
    cluster = LIBRARIES[library]
    X = request["X"]
    options = [int(request[name]) for name in ("n_clusters", "n_iter", "threads")]
    few = 8 * options[0]
    options += [request["labels"]] if "labels" in request else []

    def warm_up():
        cluster(np.ascontiguousarray(X[:few]), *options)
        if library == "skts-gpu":  # it compiles other kernels for many series
            cluster(X, *options)

    def work():
        done, *found = cluster(X, *options)
        return np.concatenate([[done], *map(np.ravel, found)])

    return warm_up, work


if __name__ == "__main__":
    main(prepare, "KShapeClusterer")
