"""k-Shape by skts and by each of its peers (see `_worker.py`).

A request holds `threads`, `n_clusters`, `n_iter` and z-normalised series X. Everybody clusters them
for n_iter iterations, in its fastest way, from the first `n_clusters` series as centres where it
takes centres (kshape takes none and starts at random). "skts-gpu" and "kshape-gpu" do so on a GPU.
The answer is the number of iterations done and the labels.
"""

import numpy as np
from _worker import main


def skts(X, k, n_iter, threads, engine="numba"):
    import warnings

    from skts import KShapeClusterer

    # whether labels still change after so few iterations is no matter here
    warnings.simplefilter("ignore")
    model = KShapeClusterer(k, init=X[:k], max_iter=n_iter, engine=engine, n_jobs=threads).fit(X)
    return model.n_iter_, model.labels_


def skts_on_gpu(X, k, n_iter, threads):
    return skts(X, k, n_iter, threads, engine="cupy")


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


def kshape_on_gpu(X, k, n_iter, threads):
    """The same authors' code for PyTorch; labels are on the host when it returns."""
    import torch
    from kshape.core_gpu import KShapeClusteringGPU

    torch.manual_seed(0)
    model = KShapeClusteringGPU(k, max_iter=n_iter).fit(X[:, :, None])
    return n_iter, model.labels_.astype(int)


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
    k, n_iter, threads = (int(request[name]) for name in ("n_clusters", "n_iter", "threads"))

    def warm_up():
        cluster(np.ascontiguousarray(X[: 8 * k]), k, n_iter, threads)

    def work():
        done, labels = cluster(X, k, n_iter, threads)
        return np.concatenate([[done], labels])

    return warm_up, work


if __name__ == "__main__":
    main(prepare, "KShapeClusterer")
