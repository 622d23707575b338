"""Which function a case calls: it follows from the seed and the number, never from a clock.

Functions share the time, not the number of cases: one whose cases cost twice as much gets half as
many. What a case costs is a table, measured once; it is no measurement of the run, which would make
the function of a number depend on the machine.
"""

from __future__ import annotations

import functools

import numpy as np

from .recipe import RECIPES

__all__ = ["COSTS", "pick_recipe"]

#: Milliseconds of one core that a case takes on the numba engine, oracle and relations included, as
#: measured with Python 3.11 after compilation; rounded, as only their ratios matter.
COSTS = {
    "skts.DTWCondenser": 15.0,
    "skts.DTWKMeans": 23.0,
    "skts.DTWKMedoids": 10.0,
    "skts.DTWNearestNeighbor": 15.0,
    "skts.DTWNearestNeighborRegressor": 13.0,
    "skts.DTWNeighbors": 9.5,
    "skts.DiscordDetector": 37.0,
    "skts.KShapeClusterer": 21.0,
    "skts.MotifFinder": 11.0,
    "skts.ShapeletForestClassifier": 17.0,
    "skts.ShapeletTransformer": 30.0,
    "skts.ShapeletTreeClassifier": 28.0,
    "skts.ShapeletTreeRegressor": 27.0,
    "skts.SubsequenceMonitor": 10.0,
    "skts.SubsequenceSearch": 7.5,
    "skts.averages.dtw_barycenter": 5.5,
    "skts.averages.soft_dtw_barycenter": 9.0,
    "skts.cluster.choose_n_clusters": 22.0,
    # kernels of their own are compiled for each function
    "skts.metrics.PointCost": 40.0,
    "skts.metrics.adtw": 2.0,
    "skts.metrics.ddtw": 1.8,
    "skts.metrics.dog_keeper": 1.8,
    "skts.metrics.dtw": 1.8,
    "skts.metrics.dtw_matches": 4.5,
    "skts.metrics.dtw_path": 1.8,
    "skts.metrics.edr": 2.0,
    "skts.metrics.erp": 2.0,
    "skts.metrics.lb_keogh": 1.4,
    "skts.metrics.lcss": 2.0,
    "skts.metrics.msm": 2.0,
    "skts.metrics.pairwise_distances": 4.0,
    "skts.metrics.pairwise_dtw": 2.6,
    "skts.metrics.pairwise_sbd": 3.5,
    "skts.metrics.pairwise_soft_dtw": 4.0,
    "skts.metrics.sbd": 2.2,
    "skts.metrics.shape_dtw": 2.6,
    "skts.metrics.silhouette_samples": 4.5,
    "skts.metrics.silhouette_score": 6.5,
    "skts.metrics.soft_dtw": 1.6,
    "skts.metrics.soft_dtw_gradient": 2.0,
    "skts.metrics.subsequence_distance": 1.8,
    "skts.metrics.twe": 2.0,
    "skts.metrics.warping_path": 2.2,
    "skts.metrics.wdtw": 2.2,
    "skts.motifs.consensus_motif": 9.5,
    "skts.motifs.discords": 4.5,
    "skts.motifs.distance_profile": 1.8,
    "skts.motifs.matrix_profile": 6.0,
    "skts.motifs.motif_chains": 4.5,
    "skts.motifs.motifs": 5.5,
    "skts.motifs.mpdist": 8.0,
    "skts.motifs.pan_matrix_profile": 8.0,
    "skts.motifs.segment": 3.5,
    "skts.neighbors.dtw_window_search": 5.0,
    "skts.neighbors.elastic_parameter_search": 15.0,
    "skts.tree.export_text": 5.0,
}
#: Of a function that nobody has measured.
USUAL = 5.0
#: Code of the host that no engine computes: a tenth of the cases that its cost would give it.
ON_THE_HOST = (
    "skts.base.check_series",
    "skts.base.check_univariate",
    "skts.metrics.lb_keogh",
    "skts.tree.export_text",
)


@functools.cache
def _weights() -> tuple[tuple[str, ...], np.ndarray]:
    """Names, and the running sum of their weights: integers, so that no rounding decides."""
    names = tuple(sorted(RECIPES))
    weights = [
        round(10_000 / COSTS.get(name, USUAL) / (10 if name in ON_THE_HOST else 1))
        for name in names
    ]
    return names, np.cumsum(weights)


def pick_recipe(seed: int, number: int) -> str:
    """The name of what a case calls, where none is asked for: first every function once."""
    names, sums = _weights()
    if number < len(names):
        order = np.random.default_rng([seed, 0]).permutation(len(names))
        return names[int(order[number])]
    drawn = np.random.default_rng([seed, number]).integers(sums[-1])
    return names[int(np.searchsorted(sums, drawn, "right"))]
