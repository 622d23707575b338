"""asv benchmarks of matrix profiles and motifs: time and peak memory.

Sizes go by decades. An engine that is not available here is skipped.
"""

import numpy as np

from benchmarks._engines import ENGINES, skip_unless_available
from skts import DiscordDetector, MotifFinder
from skts.motifs import matrix_profile, motifs, pan_matrix_profile


def walk(n):
    """A random walk."""
    return np.random.default_rng(0).standard_normal(n).cumsum()


class Profile:
    """The profile of a series of growing length."""

    params = [ENGINES, [1_000, 10_000, 50_000], [128, 1_024]]
    param_names = ["engine", "n_timepoints", "window"]

    def setup(self, engine, n_timepoints, window):
        skip_unless_available(engine)
        if window >= n_timepoints:
            raise NotImplementedError
        self.x = walk(n_timepoints)
        self.options = {"window": window, "engine": engine}
        matrix_profile(self.x[: 3 * window], **self.options)

    def time_matrix_profile(self, engine, n_timepoints, window):
        matrix_profile(self.x, **self.options)

    def peakmem_matrix_profile(self, engine, n_timepoints, window):
        matrix_profile(self.x, **self.options)

    def time_in_spread_order(self, engine, n_timepoints, window):
        matrix_profile(self.x, **self.options, time_limit=1e9)


class Pair:
    """The nearest pair by the profile and by MK."""

    params = [ENGINES, ["profile", "mk"], [1_000, 10_000]]
    param_names = ["engine", "algorithm", "n_timepoints"]

    def setup(self, engine, algorithm, n_timepoints):
        skip_unless_available(engine)
        self.x = walk(n_timepoints)
        self.options = {"window": 64, "n_motifs": 1, "algorithm": algorithm, "engine": engine}
        motifs(self.x[:300], random_state=0, **self.options)

    def time_motifs(self, engine, algorithm, n_timepoints):
        motifs(self.x, random_state=0, **self.options)


class AllLengths:
    """The profiles of eleven lengths."""

    params = [ENGINES, [4_000, 20_000]]
    param_names = ["engine", "n_timepoints"]

    def setup(self, engine, n_timepoints):
        skip_unless_available(engine)
        self.x = walk(n_timepoints)
        self.options = {"windows": range(50, 201, 15), "engine": engine}
        pan_matrix_profile(self.x[:500], **self.options)

    def time_pan_matrix_profile(self, engine, n_timepoints):
        pan_matrix_profile(self.x, **self.options)

    def peakmem_pan_matrix_profile(self, engine, n_timepoints):
        pan_matrix_profile(self.x, **self.options)


class Growing:
    """A hundred points more, beside a fit anew."""

    params = [ENGINES, [10_000, 30_000]]
    param_names = ["engine", "n_timepoints"]

    def setup(self, engine, n_timepoints):
        skip_unless_available(engine)
        self.x = walk(n_timepoints + 100)
        self.model = MotifFinder(128, engine=engine).fit(self.x[np.newaxis, :-100])

    def time_update(self, engine, n_timepoints):
        self.model.update(self.x[-100:])

    def time_fit(self, engine, n_timepoints):
        MotifFinder(128, engine=self.model.engine).fit(self.x[np.newaxis])


class Bounded:
    """Points that come while as many leave."""

    params = [ENGINES, [100, 1_000, 5_000]]
    param_names = ["engine", "n_new"]

    def setup(self, engine, n_new):
        skip_unless_available(engine)
        self.x = walk(10_000 + n_new)
        self.model = MotifFinder(128, engine=engine).fit(self.x[np.newaxis, :10_000])
        # the first update in which points leave compares all pairs once more
        self.model.update(self.x[10_000:], max_points=10_000)

    def time_update(self, engine, n_new):
        self.model.update(self.x[10_000:], max_points=10_000)


class Stream:
    """Scores of points that come, among the 100,000 before them."""

    params = [ENGINES, [100, 1_000, 4_000]]
    param_names = ["engine", "n_new"]

    def setup(self, engine, n_new):
        skip_unless_available(engine)
        self.x = walk(100_000 + n_new)
        start = self.x[np.newaxis, :5_000]
        self.model = DiscordDetector(128, side="left", engine=engine).fit(start)
        for first in range(5_000, 100_000, 19_000):
            self.model.update(self.x[first : first + 19_000])

    def time_update(self, engine, n_new):
        self.model.update(self.x[100_000:], max_points=100_000)


class Channels:
    """Profiles of every number of channels."""

    params = [ENGINES, [3, 8], [3_000, 10_000]]
    param_names = ["engine", "n_channels", "n_timepoints"]

    def setup(self, engine, n_channels, n_timepoints):
        skip_unless_available(engine)
        self.x = walk(n_channels * n_timepoints).reshape(n_channels, n_timepoints)
        matrix_profile(self.x[:, :2_000], window=128, engine=engine)

    def time_profile(self, engine, n_channels, n_timepoints):
        matrix_profile(self.x, window=128, engine=engine)


class ChannelAnomalies:
    """Scores of all windows of several channels."""

    params = [ENGINES, [1, 3], [3_000, 10_000]]
    param_names = ["engine", "n_neighbors", "n_timepoints"]

    def setup(self, engine, n_neighbors, n_timepoints):
        skip_unless_available(engine)
        self.x = walk(4 * n_timepoints).reshape(1, 4, n_timepoints)
        self.model = DiscordDetector(128, n_neighbors=n_neighbors, dimensions=2, engine=engine)
        self.model.fit(self.x[..., :2_000])

    def time_fit(self, engine, n_neighbors, n_timepoints):
        self.model.fit(self.x)


class Anomalies:
    """Scores of all windows, by the nearest neighbour or by one that overlaps no nearer one."""

    params = [ENGINES, [1, 3], [3_000, 10_000]]
    param_names = ["engine", "n_neighbors", "n_timepoints"]

    def setup(self, engine, n_neighbors, n_timepoints):
        skip_unless_available(engine)
        self.x = walk(n_timepoints)[np.newaxis]
        self.model = DiscordDetector(128, n_neighbors=n_neighbors, engine=engine)
        self.model.fit(self.x[:, :2_000])

    def time_fit(self, engine, n_neighbors, n_timepoints):
        self.model.fit(self.x)
