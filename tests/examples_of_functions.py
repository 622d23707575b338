"""An example of every function, for tests of what holds for all of them."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from typing import Any

import numpy as np

import skts.averages
import skts.metrics
import skts.motifs
import skts.neighbors
from tests.discovery import Examples

__all__ = ["FUNCTIONS", "X", "needed"]

X = np.random.default_rng(3).normal(size=(6, 24)).cumsum(axis=1)
#: Functions, arguments to start from, and values of those parameters that take numbers.
FUNCTIONS: Examples = Examples({
    skts.averages.dtw_barycenter: (
        (X,),
        {"window": [3, 0.25], "max_iter": [40], "tol": [0.01], "n_jobs": [2], "verbose": [0],
         "batch_size": [2], "random_state": [0]},
    ),
    skts.averages.soft_dtw_barycenter: (
        (X,),
        {
            "gamma": [0.5],
            "window": [3, 0.25],
            "max_iter": [40],
            "tol": [0.01],
            "n_jobs": [2],
            "verbose": [0],
        },
    ),
    skts.metrics.dtw: ((X[0], X[1]), {"window": [3, 0.25]}),
    skts.metrics.soft_dtw: ((X[0], X[1]), {"gamma": [0.5], "window": [3, 0.25]}),
    skts.metrics.soft_dtw_gradient: ((X[0], X[1]), {"gamma": [0.5], "window": [3, 0.25]}),
    skts.metrics.pairwise_soft_dtw: (
        (X,),
        {"gamma": [0.5], "window": [3, 0.25], "n_jobs": [2], "verbose": [0]},
    ),
    skts.metrics.dog_keeper: ((X[0], X[1]), {"window": [3, 0.25]}),
    skts.metrics.dtw_matches: ((X[0][:5], X[1]), {"n_matches": [2]}),
    skts.metrics.dtw_path: ((X[0], X[1]), {"window": [3, 0.25]}),
    skts.metrics.lb_keogh: ((X[0], X[1]), {"window": [3, 0.25]}),
    skts.metrics.pairwise_dtw: ((X,), {"window": [3, 0.25], "n_jobs": [2], "verbose": [0]}),
    skts.metrics.erp: ((X[0], X[1]), {"window": [3, 0.25], "gap": [0.5]}),
    skts.metrics.lcss: ((X[0], X[1]), {"window": [3, 0.25], "epsilon": [0.5]}),
    skts.metrics.edr: ((X[0], X[1]), {"window": [3, 0.25], "epsilon": [0.5]}),
    skts.metrics.msm: ((X[0], X[1]), {"window": [3, 0.25], "penalty": [0.5]}),
    skts.metrics.twe: ((X[0], X[1]), {"window": [3, 0.25], "nu": [0.5], "lmbda": [0.5]}),
    skts.metrics.wdtw: ((X[0], X[1]), {"window": [3, 0.25], "g": [0.125]}),
    skts.metrics.adtw: ((X[0], X[1]), {"window": [3, 0.25], "penalty": [0.5]}),
    skts.metrics.ddtw: ((X[0], X[1]), {"window": [3, 0.25]}),
    skts.metrics.shape_dtw: ((X[0], X[1]), {"window": [3, 0.25], "reach": [2]}),
    skts.metrics.pairwise_distances: (
        (X,), {"window": [3, 0.25], "n_jobs": [2], "verbose": [0]}
    ),
    skts.metrics.warping_path: ((X[0], X[1]), {"window": [3, 0.25]}),
    skts.metrics.sbd: ((X[0], X[1]), {"normalize": [True]}),
    skts.metrics.pairwise_sbd: ((X,), {"n_jobs": [2], "verbose": [0], "normalize": [True],
                                     "return_shifts": [True]}),
    skts.metrics.silhouette_samples: (
        (X, [0, 0, 1, 1, 2, 2]), {"window": [3, 0.25], "n_jobs": [2], "verbose": [0]}
    ),
    skts.metrics.silhouette_score: (
        (X, [0, 0, 1, 1, 2, 2]), {"window": [3, 0.25], "n_jobs": [2], "verbose": [0]}
    ),
    skts.metrics.subsequence_distance: ((X[0, :9], X[1]), {"normalize": [True], "n_jobs": [2]}),
    skts.motifs.matrix_profile: (
        (X.ravel(),),
        {
            "window": [8, 0.1], "exclusion": [3, 0.4], "k": [2], "n_jobs": [2], "verbose": [0],
            "sides": [True], "normalize": [True], "time_limit": [60.0], "dimensions": [1],
        },
    ),
    skts.motifs.motifs: (
        (X.ravel(),),
        {
            "window": [8, 0.1], "n_motifs": [2], "max_matches": [2], "radius_factor": [1.5],
            "exclusion": [3, 0.4], "separation": [6, 0.7], "n_references": [4],
            "random_state": [2], "n_jobs": [2], "verbose": [0], "normalize": [True],
            "dimensions": [1],
        },
    ),
    skts.motifs.discords: (
        (X.ravel(),),
        {
            "window": [8, 0.1], "n_discords": [2], "exclusion": [3, 0.4], "separation": [6, 0.7],
            "n_jobs": [2], "verbose": [0], "normalize": [True],
            "dimensions": [1],
        },
    ),
    skts.motifs.pan_matrix_profile: (
        (X.ravel(), [8, 0.1, 21]),
        {
            "exclusion": [3, 0.45], "time_limit": [60.0],
            "n_jobs": [2], "verbose": [0], "normalize": [True],
        },
    ),
    skts.motifs.distance_profile: (
        (X[0, :9], X), {"normalize": [True], "n_jobs": [2], "verbose": [0]},
    ),
    skts.motifs.mpdist: (
        (X.ravel(), X[0]),
        {"window": [8, 0.25], "k": [3, 0.25], "normalize": [True], "n_jobs": [2], "verbose": [0]},
    ),
    skts.motifs.motif_chains: (
        (X[:3].ravel(),),
        {
            "window": [8, 0.1], "anchor": [5], "min_length": [2], "exclusion": [3, 0.4],
            "n_jobs": [2], "verbose": [0], "normalize": [True],
        },
    ),
    skts.motifs.consensus_motif: (
        (X[:3],), {"window": [8, 0.25], "normalize": [True], "n_jobs": [2], "verbose": [0]},
    ),
    skts.motifs.segment: (
        (X[:3].ravel(),),
        {
            "window": [8, 0.1], "n_regimes": [3], "exclusion": [3, 0.4], "separation": [6],
            "n_jobs": [2], "verbose": [0], "normalize": [True],
        },
    ),
    skts.neighbors.dtw_window_search: ((X, [0, 1] * 3), {"n_jobs": [2], "verbose": [0]}),
    skts.neighbors.elastic_parameter_search: (
        (X, [0, 1] * 3),
        {"n_jobs": [2], "verbose": [0], "param_grid": [{"window": [2]}]},
    ),
}, "`FUNCTIONS` of tests/examples_of_functions.py")  # fmt: skip


def needed(function: Callable[..., Any]) -> dict[str, Any]:
    """Parameters without a default, beside those to start from, with a value of the example."""
    given, values = FUNCTIONS[function]
    others = list(inspect.signature(function).parameters.values())[len(given) :]
    return {one.name: values[one.name][0] for one in others if one.default is one.empty}
