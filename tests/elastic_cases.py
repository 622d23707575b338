"""Distances of the elastic family with options, and series to try them on; for tests."""

from __future__ import annotations

import numpy as np
import pytest

from skts.base import check_series
from skts.engines import DISTANCES, prepared

#: Options of each distance whose steps cost differently, exact and rounded prices.
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


def among(options):
    """Test options, on the CPU usually those of two of the four kinds of cell."""
    kept = ("dtw", "squared"), ("dog_keeper", "absolute")
    return [
        pytest.param(one, marks=() if (one.metric, one.cost) in kept else pytest.mark.compiles)
        for one in options
    ]


def among_cases(cases):
    """Test cases that begin with options, as `among` does."""
    return [
        pytest.param(one.values[0], *case[1:], marks=one.marks)
        for one, case in zip(among([case[0] for case in cases]), cases, strict=True)
    ]
