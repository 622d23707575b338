"""asv benchmarks of the elastic distances: all pairs of a set, and nearest neighbours.

An engine that is not available here is skipped.
"""

from benchmarks._engines import ENGINES, skip_unless_available
from skts import DTWKMedoids, DTWNearestNeighbor
from skts.datasets import load_gunpoint, make_random_walk, make_warped_shapes
from skts.metrics import PointCost, pairwise_distances
from skts.neighbors import elastic_parameter_search

METRICS = ["erp", "lcss", "edr", "msm", "twe", "wdtw", "adtw", "ddtw", "shape_dtw"]


class AllPairs:
    """The matrix of 100 series of 256 points."""

    params = [ENGINES, METRICS, [None, 0.1]]
    param_names = ["engine", "metric", "window"]

    def setup(self, engine, metric, window):
        skip_unless_available(engine)
        self.X = make_random_walk(100, 256, random_state=0)
        self.options = {"metric": metric, "window": window, "engine": engine}
        pairwise_distances(self.X, **self.options)

    def time_pairwise_distances(self, engine, metric, window):
        pairwise_distances(self.X, **self.options)


class NearestNeighbor:
    """Ten queries against a thousand series of 100 points."""

    params = [ENGINES, METRICS]
    param_names = ["engine", "metric"]

    def setup(self, engine, metric):
        skip_unless_available(engine)
        X, y = make_warped_shapes(1_010, 100, random_state=0)
        self.queries = X[:10]
        self.model = DTWNearestNeighbor(metric=metric, engine=engine).fit(X[10:], y[10:])
        self.model.predict(self.queries)

    def time_predict(self, engine, metric):
        self.model.predict(self.queries)


def huber(x, y):
    """Square of a small difference, and a large one as it is."""
    apart = abs(x - y)
    return 0.5 * apart * apart if apart <= 1 else apart - 0.5


class OwnCost:
    """A function as the cost: the matrix of 100 series of 256 points, and their medoids."""

    params = [ENGINES]
    param_names = ["engine"]

    def setup(self, engine):
        skip_unless_available(engine)
        self.X = make_random_walk(100, 256, random_state=0)
        cost = PointCost(huber, "fabs(x - y) <= 1 ? 0.5 * (x - y) * (x - y) : fabs(x - y) - 0.5")
        self.options = {"cost": cost, "engine": engine}
        self.model = DTWKMedoids(5, random_state=0, **self.options).fit(self.X)
        pairwise_distances(self.X, **self.options)

    def time_pairwise_distances(self, engine):
        pairwise_distances(self.X, **self.options)

    def time_medoids(self, engine):
        self.model.fit(self.X)


class ParameterSearch:
    """A hundred parameters of a distance on the 50 training series of GunPoint."""

    params = [ENGINES, METRICS]
    param_names = ["engine", "metric"]

    def setup(self, engine, metric):
        skip_unless_available(engine)
        self.X, self.y = load_gunpoint(split="train", return_X_y=True)
        self.options = {"metric": metric, "engine": engine}
        elastic_parameter_search(self.X, self.y, **self.options)

    def time_search(self, engine, metric):
        elastic_parameter_search(self.X, self.y, **self.options)


class Accuracy:
    """Share of the test series of GunPoint that 1-NN gets right, with the usual parameters."""

    params = [ENGINES, METRICS]
    param_names = ["engine", "metric"]
    unit = "accuracy"

    def setup(self, engine, metric):
        skip_unless_available(engine)
        self.train = load_gunpoint(split="train", return_X_y=True)
        self.test = load_gunpoint(split="test", return_X_y=True)

    def track_accuracy(self, engine, metric):
        model = DTWNearestNeighbor(metric=metric, engine=engine)
        return model.fit(*self.train).score(*self.test)
