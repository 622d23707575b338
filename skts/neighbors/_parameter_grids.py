"""Parameters that are tried for each distance, where nobody names others."""

from __future__ import annotations

import numpy as np

from ..engines import Series

__all__ = ["default_grid"]

#: Pairs of series that make the unit of the penalty of "adtw", and seed of the draw.
_PAIRS, _SEED = 4000, 0
#: Windows from the diagonal to a quarter of the length.
_NARROW = np.linspace(0, 0.25, 10).tolist()


def default_grid(metric: str, series: Series, *, squared: bool) -> dict[str, list[float]]:
    """Return the values of each parameter that the literature tries, some hundred in all.

    "dtw", "ddtw", "wdtw", "lcss", "erp" and "msm" have the values of the ensemble of Lines and
    Bagnall (Data Mining and Knowledge Discovery 29, 2015), which are also those of
    ``ElasticEnsemble`` in the package aeon. "twe" has those of proximity forests (Lucas et al.,
    Data Mining and Knowledge Discovery 33, 2019); aeon tries others. "adtw" has those of Herrmann
    and Webb (Pattern Recognition 137, 2023), the mean cost of 4,000 pairs times (i / 100)^5, but
    for the last, which is infinite there. No such grid is usual for "edr", "dog_keeper" and
    "shape_dtw": the thresholds of "edr" mean what those of "lcss" do, and the windows of
    "dog_keeper" what those of "dtw" do; the reaches of "shape_dtw" go from that of plain "dtw" to
    the double of the usual one.

    Parameters
    ----------
    metric : str
        Name of the distance.
    series : Series
        The training series: some values are multiples of their deviation.
    squared : bool
        Whether costs are squared.

    Returns
    -------
    dict of str to list of float
        Values of parameters, by name; without those that keep their default.
    """
    if metric in ("dtw", "ddtw", "dog_keeper", "frechet"):
        return {"window": (np.arange(100) / 100).tolist()}
    if metric == "wdtw":
        return {"g": (np.arange(100) / 100).tolist()}
    if metric == "shape_dtw":
        return {"reach": [0, 2, 5, 10, 15, 20, 30]}
    if metric == "adtw":
        unit = _diagonal(series, squared=squared)
        return {"penalty": ((np.arange(100) / 100) ** 5 * unit).tolist()}
    if metric == "msm":
        parts = [(0.01, 0.1, 25), (0.1, 1, 26), (1, 10, 26), (10, 100, 26)]
        values = np.concatenate(
            [np.linspace(*part)[place > 0 :] for place, part in enumerate(parts)]
        )
        return {"penalty": np.round(values, 6).tolist()}
    if metric == "twe":
        nu = [1e-5, 1e-4, 5e-4, 1e-3, 5e-3, 0.01, 0.05, 0.1, 0.5, 1.0]
        return {"nu": nu, "lmbda": np.linspace(0, 0.1, 10).tolist()}
    if metric in ("erp", "lcss", "edr"):
        deviation = float(np.std(series.values[_inside(series)]))
        values = np.linspace(deviation / 5, deviation, 10).tolist()
        return {"gap" if metric == "erp" else "epsilon": values, "window": _NARROW}
    return {}


def _inside(series: Series) -> np.ndarray:
    """Which values are no padding."""
    inside = np.arange(series.n_timepoints) < series.lengths[:, np.newaxis, np.newaxis]
    return np.broadcast_to(inside, series.shape)


def _diagonal(series: Series, *, squared: bool) -> float:
    """Mean cost of the diagonal of some pairs, up to the end of the shorter series."""
    pairs = np.random.default_rng(_SEED).integers(0, len(series), (_PAIRS, 2))
    total = 0.0
    for i, j in pairs.tolist():
        shorter = min(series.lengths[i], series.lengths[j])
        difference = np.abs(series.values[i, :, :shorter] - series.values[j, :, :shorter])
        total += float(np.sum(difference**2 if squared else difference))
    return total / _PAIRS
