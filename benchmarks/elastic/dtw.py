"""asv benchmarks of DTW and its nearest neighbours: time, peak memory and accuracy.

Sizes go by decades. An engine that is not available here is skipped.
"""

import numpy as np

from benchmarks._engines import ENGINES, skip_unless_available
from skts import DTWNearestNeighbor, DTWNeighbors
from skts.datasets import load_arrow_head, load_gunpoint, make_random_walk, make_warped_shapes
from skts.metrics import dog_keeper, dtw, dtw_matches, dtw_path, pairwise_dtw


class OnePair:
    """Two series of growing length."""

    params = [ENGINES, [10, 100, 1_000, 10_000]]
    param_names = ["engine", "n_timepoints"]

    def setup(self, engine, n_timepoints):
        skip_unless_available(engine)
        self.x, self.y = make_random_walk(2, n_timepoints, random_state=0)
        for distance in (dtw, dog_keeper):
            distance(self.x[:2], self.y[:2], engine=engine)

    def time_dtw(self, engine, n_timepoints):
        dtw(self.x, self.y, engine=engine)

    def time_dog_keeper(self, engine, n_timepoints):
        dog_keeper(self.x, self.y, engine=engine)

    def peakmem_dtw(self, engine, n_timepoints):
        dtw(self.x, self.y, engine=engine)


class Path:
    """The warping path of two series: its memory grows with the product of the lengths."""

    params = [10, 100, 1_000]
    param_names = ["n_timepoints"]

    def setup(self, n_timepoints):
        self.x, self.y = make_random_walk(2, n_timepoints, random_state=0)
        dtw_path(self.x[:2], self.y[:2])

    def time_dtw_path(self, n_timepoints):
        dtw_path(self.x, self.y)

    def peakmem_dtw_path(self, n_timepoints):
        dtw_path(self.x, self.y)


class Matches:
    """The best matches of a series of 100 points in a long one."""

    params = [ENGINES, [1_000, 10_000]]
    param_names = ["engine", "n_timepoints"]

    def setup(self, engine, n_timepoints):
        skip_unless_available(engine)
        (self.x,), (self.y,) = (
            make_random_walk(1, size, random_state=size) for size in (100, n_timepoints)
        )
        dtw_matches(self.x, self.y[:200], 2, engine=engine)

    def time_dtw_matches(self, engine, n_timepoints):
        dtw_matches(self.x, self.y, 5, engine=engine)


class AllPairs:
    """The matrix of all pairs of a set of series of 100 points."""

    params = [ENGINES, [10, 100, 1_000], [None, 0.1]]
    param_names = ["engine", "n_samples", "window"]

    def setup(self, engine, n_samples, window):
        skip_unless_available(engine)
        self.X = make_random_walk(n_samples, 100, random_state=0)
        pairwise_dtw(self.X[:2], window=window, engine=engine)

    def time_pairwise_dtw(self, engine, n_samples, window):
        pairwise_dtw(self.X, window=window, engine=engine)

    def peakmem_pairwise_dtw(self, engine, n_samples, window):
        pairwise_dtw(self.X, window=window, engine=engine)


class NearestNeighbor:
    """Fit on a growing set of series of 100 points, and predict ten."""

    params = [ENGINES, [10, 100, 1_000, 10_000], [None, 0.1]]
    param_names = ["engine", "n_samples", "window"]

    def setup(self, engine, n_samples, window):
        skip_unless_available(engine)
        X, y = make_warped_shapes(n_samples + 10, 100, random_state=0)
        self.X, self.y, self.queries = X[:-10], y[:-10], X[-10:]
        self.model = DTWNearestNeighbor(window=window, engine=engine).fit(self.X, self.y)
        self.model.predict(self.queries[:1])

    def time_fit(self, engine, n_samples, window):
        DTWNearestNeighbor(window=window, engine=engine).fit(self.X, self.y)

    def time_predict(self, engine, n_samples, window):
        self.model.predict(self.queries)

    def peakmem_fit_predict(self, engine, n_samples, window):
        model = DTWNearestNeighbor(window=window, engine=engine).fit(self.X, self.y)
        model.predict(self.queries)


class Radius:
    """All of a growing set of series of 100 points within the distance that every tenth has."""

    params = [ENGINES, [100, 1_000, 10_000], [True, False]]
    param_names = ["engine", "n_samples", "return_distance"]

    def setup(self, engine, n_samples, return_distance):
        skip_unless_available(engine)
        X, _ = make_warped_shapes(n_samples + 10, 100, random_state=0)
        self.queries = X[-10:]
        self.model = DTWNeighbors(window=0.1, engine=engine).fit(X[:-10])
        distances = pairwise_dtw(self.queries[:1], X[:100], window=0.1, engine=engine)
        self.radius = float(np.quantile(distances, 0.1))
        self.model.radius_neighbors(self.queries[:1], self.radius)

    def time_radius_neighbors(self, engine, n_samples, return_distance):
        self.model.radius_neighbors(self.queries, self.radius, return_distance)

    def peakmem_radius_neighbors(self, engine, n_samples, return_distance):
        self.model.radius_neighbors(self.queries, self.radius, return_distance)


class Accuracy:
    """Share of the archive's test series that 1-NN gets right, on the sets that come with skts."""

    params = [ENGINES, ["gunpoint", "arrow_head"]]
    param_names = ["engine", "data"]
    unit = "accuracy"

    def setup(self, engine, data):
        skip_unless_available(engine)
        load = {"gunpoint": load_gunpoint, "arrow_head": load_arrow_head}[data]
        self.train = load(split="train", return_X_y=True)
        self.test = load(split="test", return_X_y=True)

    def track_accuracy(self, engine, data):
        return DTWNearestNeighbor(engine=engine).fit(*self.train).score(*self.test)
