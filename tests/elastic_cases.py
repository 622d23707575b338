"""Distances of the elastic family with options, and series to try them on; for tests."""

from __future__ import annotations

import numpy as np

from skts.base import check_series
from skts.engines import DISTANCES, prepared

#: Options of each distance, exact and rounded prices.
OPTIONS = [
    ("erp", {}),
    ("erp", {"gap": 1.5}),
    ("lcss", {"epsilon": 0.5}),
    ("edr", {"epsilon": 0.5}),
    ("edr", {}),
    ("msm", {"penalty": 0.25}),
    ("msm", {}),
    ("twe", {"nu": 0.25, "lmbda": 0.5}),
    ("twe", {}),
    ("wdtw", {}),
    ("wdtw", {"g": 0.4, "cost": "absolute"}),
    ("adtw", {"penalty": 0.5}),
    ("adtw", {"cost": "absolute"}),
]


def drawn(rng, kind, n_series, channels, lengths):
    """Lists of series: whole numbers with ties, constants, with an offset, or any."""
    lengths = rng.choice(lengths, n_series)
    if kind == "ties":
        return [rng.integers(0, 4, (channels, n)) / 2 for n in lengths]
    if kind == "constant":
        return [np.full((channels, n), float(rng.integers(0, 3))) for n in lengths]
    return [rng.normal(size=(channels, n)) + (1e6 if kind == "offset" else 0) for n in lengths]


def sides_of(metric, X, Y, **options):
    return prepared(check_series(X), check_series(Y), DISTANCES[metric](**options))
