"""asv benchmarks of rotation invariance and condensing: time, peak memory and accuracy.

Each engine that is available; sizes double.
"""

import numpy as np

from benchmarks._engines import ENGINES, skip_unless_available
from skts import DTWCondenser, DTWNearestNeighbor
from skts.datasets import make_cylinder_bell_funnel, make_two_patterns


def turned(count, length, seed):
    """Cylinders, bells and funnels that begin anywhere."""
    X, y = make_cylinder_bell_funnel(count, length, random_state=seed)
    shifts = np.random.default_rng(seed).integers(0, length, count)
    return np.array([np.roll(x, shift) for x, shift in zip(X, shifts, strict=True)]), y


class Turned:
    """Nearest neighbours under all rotations, with and without warping."""

    params = [ENGINES, [64, 128, 256], [None, 0]]
    param_names = ["engine", "n_timepoints", "window"]

    def setup(self, engine, n_timepoints, window):
        skip_unless_available(engine)
        X, y = turned(100, n_timepoints, 0)
        self.Q, self.z = turned(30, n_timepoints, 1)
        self.model = DTWNearestNeighbor(window=window, rotation_invariant=True, engine=engine)
        self.model.fit(X, y).predict(self.Q[:1])

    def time_predict(self, engine, n_timepoints, window):
        self.model.predict(self.Q)

    def peakmem_predict(self, engine, n_timepoints, window):
        self.model.predict(self.Q)

    def track_accuracy(self, engine, n_timepoints, window):
        return self.model.score(self.Q, self.z)


class TurnedUneven:
    """The same of series of several lengths."""

    params = [ENGINES, [64, 128, 256], [None, 0.1]]
    param_names = ["engine", "n_timepoints", "window"]

    def setup(self, engine, n_timepoints, window):
        skip_unless_available(engine)
        rng = np.random.default_rng(0)
        X, y = turned(100, n_timepoints, 0)
        Q, _ = turned(30, n_timepoints, 1)
        X, self.Q = (
            [one[: rng.integers(n_timepoints // 2, n_timepoints + 1)] for one in side]
            for side in (X, Q)
        )
        self.model = DTWNearestNeighbor(window=window, rotation_invariant=True, engine=engine)
        self.model.fit(X, y).predict(self.Q[:1])

    def time_predict(self, engine, n_timepoints, window):
        self.model.predict(self.Q)


class Condense:
    """AWARD, from a given first window."""

    params = [ENGINES, [100, 200, 400]]
    param_names = ["engine", "n_samples"]

    def setup(self, engine, n_samples):
        skip_unless_available(engine)
        self.X, self.y = make_two_patterns(n_samples, 96, random_state=0)
        self.model = DTWCondenser(window=0.05, engine=engine)
        self.model.fit(self.X[:20], self.y[:20])

    def time_fit(self, engine, n_samples):
        self.model.fit(self.X, self.y)

    def peakmem_fit(self, engine, n_samples):
        self.model.fit(self.X, self.y)

    def track_accuracy(self, engine, n_samples):
        return self.model.fit(self.X, self.y).accuracies_[-1]
