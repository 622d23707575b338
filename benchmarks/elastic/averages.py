"""asv benchmarks of averages under warping: time, peak memory and quality.

Sizes go by decades. An engine that is not available here is skipped.
"""

import warnings

from sklearn.base import clone
from sklearn.exceptions import ConvergenceWarning
from sklearn.metrics import adjusted_rand_score

from benchmarks._engines import ENGINES, skip_unless_available
from skts import DTWKMeans, DTWKMedoids
from skts.averages import dtw_barycenter, soft_dtw_barycenter
from skts.datasets import make_random_walk, make_warped_shapes
from skts.metrics import pairwise_soft_dtw


class Barycenter:
    """Ten iterations from the mean."""

    params = [ENGINES, [(300, 128), (3_000, 128)], [None, 0.1]]
    param_names = ["engine", "series, points", "window"]

    def setup(self, engine, shape, window):
        skip_unless_available(engine)
        warnings.simplefilter("ignore", ConvergenceWarning)
        self.X = make_random_walk(*shape, random_state=0)
        self.given = {"window": window, "max_iter": 10, "tol": 0, "engine": engine}
        dtw_barycenter(self.X[:70], **self.given)

    def time_dtw_barycenter(self, engine, shape, window):
        dtw_barycenter(self.X, **self.given)


class OtherMetrics:
    """Five iterations from the first series, along paths that are found one by one."""

    params = [ENGINES, ["adtw", "wdtw", "msm", "twe", "erp"]]
    param_names = ["engine", "metric"]

    def setup(self, engine, metric):
        skip_unless_available(engine)
        warnings.simplefilter("ignore", ConvergenceWarning)
        self.X = make_random_walk(100, 128, random_state=0)
        self.given = {"metric": metric, "max_iter": 5, "tol": 0, "engine": engine}
        self.given["init"] = self.X[0]
        dtw_barycenter(self.X[:4], **self.given)

    def time_dtw_barycenter(self, engine, metric):
        dtw_barycenter(self.X, **self.given)


class Subgradient:
    """Three passes over the series, one small step after the other."""

    params = [ENGINES, [(100, 128), (300, 128)], [1, 16]]
    param_names = ["engine", "series, points", "series of a step"]

    def setup(self, engine, shape, batch_size):
        skip_unless_available(engine)
        warnings.simplefilter("ignore", ConvergenceWarning)
        self.X = make_random_walk(*shape, random_state=0)
        self.given = {"method": "subgradient", "random_state": 0, "max_iter": 3, "engine": engine}
        self.given["batch_size"] = batch_size
        dtw_barycenter(self.X[:4], **self.given)

    def time_dtw_barycenter(self, engine, shape, batch_size):
        dtw_barycenter(self.X, **self.given)


class Soft:
    """All pairs under soft-DTW, and five steps to a barycenter."""

    params = [ENGINES, [(64, 128), (256, 128)]]
    param_names = ["engine", "series, points"]

    def setup(self, engine, shape):
        skip_unless_available(engine)
        warnings.simplefilter("ignore", ConvergenceWarning)
        self.X = make_random_walk(*shape, random_state=0)
        self.given = {"max_iter": 5, "tol": 0, "engine": engine}
        pairwise_soft_dtw(self.X[:4], engine=engine)
        soft_dtw_barycenter(self.X[:4], **self.given)

    def time_pairwise_soft_dtw(self, engine, shape):
        pairwise_soft_dtw(self.X, engine=engine)

    def time_soft_dtw_barycenter(self, engine, shape):
        soft_dtw_barycenter(self.X, **self.given)


class KMeans:
    """Ten iterations of k-means."""

    params = [ENGINES, [(1_000, 64, 5), (10_000, 48, 10)]]
    param_names = ["engine", "series, points, clusters"]

    def setup(self, engine, shape):
        skip_unless_available(engine)
        warnings.simplefilter("ignore", ConvergenceWarning)
        n, length, k = shape
        self.X, self.y = make_warped_shapes(n, length, random_state=0)
        self.model = DTWKMeans(k, window=0.1, max_iter=10, random_state=0, engine=engine)
        self.model.fit(self.X[:200])
        self.batches = clone(self.model)

    def time_fit(self, engine, shape):
        self.model.fit(self.X)

    def peakmem_fit(self, engine, shape):
        self.model.fit(self.X)

    def time_partial_fit(self, engine, shape):
        """One pass in ten batches."""
        for first in range(0, len(self.X), len(self.X) // 10):
            self.batches.partial_fit(self.X[first : first + len(self.X) // 10])

    def track_adjusted_rand_index(self, engine, shape):
        model = DTWKMeans(3, window=0.2, random_state=0, engine=engine)
        return float(adjusted_rand_score(self.y[:300], model.fit(self.X[:300]).labels_))


class KMedoids:
    """Swaps until none is left, and alternation."""

    params = [ENGINES, [(1_000, 64, 5), (3_000, 48, 10)], ["pam", "alternate"]]
    param_names = ["engine", "series, points, clusters", "method"]

    def setup(self, engine, shape, method):
        skip_unless_available(engine)
        warnings.simplefilter("ignore", ConvergenceWarning)
        n, length, k = shape
        self.X, self.y = make_warped_shapes(n, length, random_state=0)
        self.model = DTWKMedoids(k, method=method, window=0.1, random_state=0, engine=engine)
        self.model.fit(self.X[:200])

    def time_fit(self, engine, shape, method):
        self.model.fit(self.X)

    def peakmem_fit(self, engine, shape, method):
        self.model.fit(self.X)

    def track_adjusted_rand_index(self, engine, shape, method):
        model = DTWKMedoids(3, method=method, window=0.2, random_state=0, engine=engine)
        return float(adjusted_rand_score(self.y[:300], model.fit(self.X[:300]).labels_))
