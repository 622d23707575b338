"""asv benchmarks of what follows from profiles: chains, regimes, a consensus, MPdist."""

import numpy as np

from benchmarks._engines import ENGINES, skip_unless_available
from skts.motifs import consensus_motif, distance_profile, motif_chains, mpdist, segment

WINDOW = 64


class OneSeries:
    """Functions of one series, or of a query and a series."""

    params = [ENGINES, [1_000, 10_000]]
    param_names = ["engine", "n_timepoints"]

    def setup(self, engine, n_timepoints):
        skip_unless_available(engine)
        self.x = np.random.default_rng(0).standard_normal(n_timepoints).cumsum()
        self.options = {"window": WINDOW, "engine": engine}
        motif_chains(self.x[:300], **self.options)

    def time_motif_chains(self, engine, n_timepoints):
        motif_chains(self.x, **self.options)

    def time_segment(self, engine, n_timepoints):
        segment(self.x, n_regimes=3, **self.options)

    def time_distance_profile(self, engine, n_timepoints):
        distance_profile(self.x[:WINDOW], self.x, engine=engine)

    def time_mpdist(self, engine, n_timepoints):
        half = n_timepoints // 2
        mpdist(self.x[:half], self.x[half:], **self.options)


class Consensus:
    """A planted pattern in more and more series: about a join for each."""

    params = [ENGINES, [3, 10]]
    param_names = ["engine", "n_samples"]

    def setup(self, engine, n_samples):
        skip_unless_available(engine)
        rng = np.random.default_rng(0)
        pattern = rng.standard_normal(WINDOW).cumsum()
        self.X = rng.standard_normal((n_samples, 2_000)).cumsum(axis=1)
        self.X[:, 500 : 500 + WINDOW] = pattern + 0.1 * rng.standard_normal((n_samples, WINDOW))
        self.options = {"window": WINDOW, "engine": engine}
        consensus_motif(self.X[:, 400:700], **self.options)

    def time_consensus_motif(self, engine, n_samples):
        consensus_motif(self.X, **self.options)
