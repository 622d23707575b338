"""asv benchmarks of k-Shape: time, peak memory and accuracy.

Sizes go by decades. An engine that is not available here is skipped.
"""

import numpy as np
from sklearn.base import clone
from sklearn.metrics import rand_score

from benchmarks._engines import ENGINES, skip_unless_available
from skts import KShapeClusterer
from skts.datasets import make_shifted_shapes
from skts.metrics import pairwise_sbd, sbd


class OnePair:
    """Two series of growing length."""

    params = [ENGINES, [10, 1_000, 100_000]]
    param_names = ["engine", "n_timepoints"]

    def setup(self, engine, n_timepoints):
        skip_unless_available(engine)
        self.x, self.y = np.random.default_rng(0).standard_normal((2, n_timepoints))
        sbd(self.x, self.y, engine=engine)

    def time_sbd(self, engine, n_timepoints):
        sbd(self.x, self.y, engine=engine)


class Clusters:
    """Five iterations from given centres."""

    params = [ENGINES, [(100, 100, 3), (1_000, 1_024, 3), (5_000, 128, 5), (5_000, 600, 10)]]
    param_names = ["engine", "series, points, clusters"]

    def setup(self, engine, shape):
        skip_unless_available(engine)
        n, length, k = shape
        self.X, self.y = make_shifted_shapes(n, length, n_shapes=k, noise=1.0, random_state=0)[:2]
        self.model = KShapeClusterer(k, init=self.X[:k], max_iter=5, tol=1e-12, engine=engine)
        self.model.fit(self.X[: 4 * k])

    def time_fit(self, engine, shape):
        self.model.fit(self.X)

    def time_partial_fit(self, engine, shape):
        """One pass in ten batches."""
        model, step = clone(self.model), len(self.X) // 10
        for first in range(0, len(self.X), step):
            model.partial_fit(self.X[first : first + step])

    def peakmem_fit(self, engine, shape):
        self.model.fit(self.X)

    def track_rand_index(self, engine, shape):
        return float(rand_score(self.y, self.model.fit(self.X).labels_))


class AllPairs:
    """A matrix of distances."""

    params = [ENGINES]
    param_names = ["engine"]

    def setup(self, engine):
        skip_unless_available(engine)
        self.X = np.random.default_rng(0).standard_normal((300, 256))
        pairwise_sbd(self.X[:2], engine=engine)

    def time_pairwise_sbd(self, engine):
        pairwise_sbd(self.X, engine=engine)
