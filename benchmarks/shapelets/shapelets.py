"""asv benchmarks of shapelet trees and forests: time, peak memory and accuracy.

Sizes go by decades. An engine that is not available here, or does not search shapelets, is skipped.
"""

import numpy as np

from benchmarks._engines import ENGINES, skip_unless_available
from skts import ShapeletForestClassifier, ShapeletTreeClassifier, ShapeletTreeRegressor
from skts.datasets import load_gunpoint, make_cylinder_bell_funnel
from skts.engines import Criterion, Series, ShapeletSearch, find_engine, run
from skts.metrics import subsequence_distance


def search_of(X, y, lengths):
    """The search of the root."""
    series = Series(np.ascontiguousarray(X[:, np.newaxis]), np.full(len(X), X.shape[1]))
    criterion = Criterion(y, np.ones(y.max() + 1))
    return ShapeletSearch(series, np.arange(len(X)), lengths, criterion)


def skip_unless_supported(engine):
    """Skip an engine that cannot run here, or not this work."""
    skip_unless_available(engine)
    reason = find_engine(engine).supports(search_of(np.eye(4), np.arange(4) % 2, (3,)))
    if reason is not None:
        raise NotImplementedError(reason)


class OneSubsequence:
    """The distance of a subsequence to a series of growing length."""

    params = [ENGINES, [100, 10_000, 1_000_000]]
    param_names = ["engine", "n_timepoints"]

    def setup(self, engine, n_timepoints):
        skip_unless_supported(engine)
        self.x, self.series = np.split(
            np.random.default_rng(0).normal(size=n_timepoints + 50), [50]
        )
        subsequence_distance(self.x, self.series[:60], engine=engine)

    def time_subsequence_distance(self, engine, n_timepoints):
        subsequence_distance(self.x, self.series, engine=engine)


class Search:
    """All candidates of one length on one thread: distances to all series, and order lines."""

    params = [ENGINES, [(20, 100, 30), (100, 100, 30), (100, 400, 100), (1_000, 100, 50)]]
    param_names = ["engine", "series, points, length"]

    def setup(self, engine, shape):
        skip_unless_supported(engine)
        n, width, length = shape
        X, y = make_cylinder_bell_funnel(n, width, random_state=0)
        y = np.unique(y, return_inverse=True)[1]
        self.work = search_of(X, y, (length,))
        run(search_of(X[:4], y[:4] % 2, (5,)), engine=engine)

    def time_search(self, engine, shape):
        run(self.work, engine=engine, n_jobs=1)

    def peakmem_search(self, engine, shape):
        run(self.work, engine=engine, n_jobs=1)


class Tree:
    """Whole trees of the hand movements that come with the package."""

    params = [ENGINES, ["none", "and or"]]
    param_names = ["engine", "logic"]

    def setup(self, engine, logic):
        skip_unless_supported(engine)
        self.train = load_gunpoint(split="train", return_X_y=True)
        self.test = load_gunpoint(split="test", return_X_y=True)
        chosen = () if logic == "none" else tuple(logic.split())
        self.model = ShapeletTreeClassifier(length_step=5, logic=chosen, engine=engine)
        self.model.fit(*self.train)

    def time_fit(self, engine, logic):
        self.model.fit(*self.train)

    def time_predict(self, engine, logic):
        self.model.predict(self.test[0])

    def peakmem_fit(self, engine, logic):
        self.model.fit(*self.train)

    def track_accuracy(self, engine, logic):
        return float(self.model.score(*self.test))


class RegressionTree:
    """A whole tree that predicts how wide bumps are, which lie anywhere."""

    def setup(self):
        rng = np.random.default_rng(0)
        self.y = rng.integers(10, 40, 100)
        self.X = 0.1 * rng.normal(size=(100, 128))
        for x, width in zip(self.X, self.y, strict=True):
            start = rng.integers(128 - width)
            x[start : start + width] += np.hanning(width)
        self.model = ShapeletTreeRegressor(length_step=5, engine="numba").fit(self.X, self.y)

    def time_fit(self):
        self.model.fit(self.X, self.y)

    def time_predict(self):
        self.model.predict(self.X)


class Forest:
    """Forests over random shapelets, of cylinders, bells and funnels."""

    params = [ENGINES, [(30, 128), (300, 128), (300, 512)]]
    param_names = ["engine", "series, points"]

    def setup(self, engine, shape):
        skip_unless_supported(engine)
        self.train = make_cylinder_bell_funnel(*shape, random_state=0)
        self.test = make_cylinder_bell_funnel(*shape, random_state=1)
        self.model = ShapeletForestClassifier(random_state=0, engine=engine).fit(*self.train)

    def time_fit(self, engine, shape):
        self.model.fit(*self.train)

    def time_predict(self, engine, shape):
        self.model.predict(self.test[0])

    def peakmem_fit(self, engine, shape):
        self.model.fit(*self.train)

    def track_accuracy(self, engine, shape):
        return float(self.model.score(*self.test))
