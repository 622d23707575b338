"""asv benchmarks of subsequence search: time and peak memory.

Sizes go by decades. An engine that is not available here is skipped.
"""

import numpy as np

from benchmarks._engines import ENGINES, skip_unless_available
from skts import SubsequenceMonitor, SubsequenceSearch


class Search:
    """One query in a random walk of growing length."""

    params = [ENGINES, [10_000, 100_000, 1_000_000], [0.0, 0.05, None], [1, 10]]
    param_names = ["engine", "n_timepoints", "window", "n_neighbors"]

    def setup(self, engine, n_timepoints, window, n_neighbors):
        skip_unless_available(engine)
        rng = np.random.default_rng(0)
        x = rng.standard_normal((1, n_timepoints)).cumsum(axis=1)
        self.query = rng.standard_normal((1, 128)).cumsum(axis=1)
        self.search = SubsequenceSearch(window=window, engine=engine).fit(x)
        SubsequenceSearch(window=window, engine=engine).fit(x[:, :500]).kneighbors(self.query)

    def time_kneighbors(self, engine, n_timepoints, window, n_neighbors):
        self.search.kneighbors(self.query, n_neighbors)

    def peakmem_kneighbors(self, engine, n_timepoints, window, n_neighbors):
        self.search.kneighbors(self.query, n_neighbors)


class ManyQueries:
    """Queries of one length, and of several, together."""

    params = [ENGINES, ["one", "several"]]
    param_names = ["engine", "lengths"]

    def setup(self, engine, lengths):
        skip_unless_available(engine)
        rng = np.random.default_rng(0)
        x = rng.standard_normal((1, 100_000)).cumsum(axis=1)
        sizes = [100] * 20 if lengths == "one" else range(60, 160, 5)
        self.queries = [rng.standard_normal(size).cumsum() for size in sizes]
        self.search = SubsequenceSearch(window=0.05, engine=engine).fit(x)
        self.search.kneighbors(self.queries[:1])

    def time_kneighbors(self, engine, lengths):
        self.search.kneighbors(self.queries)


class Channels:
    """One query of three channels in a long series."""

    params = [ENGINES, [0, 0.05, None]]
    param_names = ["engine", "window"]

    def setup(self, engine, window):
        skip_unless_available(engine)
        x = np.random.default_rng(0).normal(size=(1, 3, 50_000)).cumsum(axis=2)
        self.queries = x[:, :, 20_000:20_128] + np.random.default_rng(1).normal(size=(1, 3, 128))
        self.search = SubsequenceSearch(window=window, engine=engine).fit(x)
        self.search.kneighbors(self.queries, 5)

    def time_kneighbors(self, engine, window):
        self.search.kneighbors(self.queries, 5)


class Stream:
    """A hundred patterns in a stream that comes in pieces."""

    params = [ENGINES, [100, 1000, 5000]]
    param_names = ["engine", "n_points"]

    def setup(self, engine, n_points):
        skip_unless_available(engine)
        rng = np.random.default_rng(0)
        patterns = rng.standard_normal((100, 128)).cumsum(axis=1)
        self.points = rng.standard_normal(n_points).cumsum()
        self.monitor = SubsequenceMonitor(3.0, window=0.05, n_jobs=1, engine=engine).fit(patterns)
        self.monitor.update(self.points)

    def time_update(self, engine, n_points):
        self.monitor.update(self.points)


class StreamOfChannels:
    """Patterns of three channels in a stream that comes in pieces."""

    params = [ENGINES, [100, 1000]]
    param_names = ["engine", "n_points"]

    def setup(self, engine, n_points):
        skip_unless_available(engine)
        rng = np.random.default_rng(0)
        patterns = rng.standard_normal((10, 3, 128)).cumsum(axis=2)
        self.points = rng.standard_normal((3, n_points)).cumsum(axis=1)
        self.monitor = SubsequenceMonitor(6.0, window=0.05, n_jobs=1, engine=engine).fit(patterns)
        self.monitor.update(self.points)

    def time_update(self, engine, n_points):
        self.monitor.update(self.points)
