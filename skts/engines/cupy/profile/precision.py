"""The type in which a join is searched: float32 where its errors leave little to measure.

A walk in float32 is some 1.6 times as fast as one in float64; but the bound of its errors, which
grows with the rows of a band, is larger by 2^29. Pairs whose scores the bound cannot tell from the
best one of a window are listed and measured. On noise and random walks there is about one; among
the beats of an ECG there are hundreds, whose measuring takes longer than the walk saves. So some
windows are compared with all others first. Answers do not depend on the type: both are certified.
"""

from __future__ import annotations

import cupy as cp
import numpy as np
from scipy.fft import next_fast_len

from ...core.constants import FLOAT32_UNIT, JOIN_GROUP, SCORE_ABOVE32
from ...families.profile.join import Join
from .lines import Searched, Steps
from .programs import choose_height, choose_join

__all__ = ["leaves_little_to_measure"]

#: Windows that are compared with all others.
SAMPLE = 24
#: Strips, and chunks of rows, that may hold the nearest window of one, on the average: as many
#: again are listed on the way, before a near one is known, several times over.
MOST_LISTED = 2.0
#: Rows of a chunk of the walk: `CHUNK` of ``join.cu``.
CHUNK = 32


def leaves_little_to_measure(
    join: Join, searched: tuple[Searched, Searched], steps: tuple[Steps, Steps]
) -> bool:
    """Whether the errors of float32 leave next to nothing to measure, judged by some windows.

    Parameters
    ----------
    join : Join
        The work, of one neighbour for each window.
    searched, steps : tuple of two
        Lines of the search and their steps in float32, along rows and columns.
    """
    (a, b), (steps_a, steps_b) = searched, steps
    kernel = choose_join(join, join.shape, np.float32)
    height = choose_height(join.shape, np.float32)
    n_columns, length = b.mean.size, join.length
    size = next_fast_len(b.points.size + length, real=True)
    line, mean, weights = cp.asarray(a.points), cp.asarray(a.mean), cp.asarray(steps_b.weight)
    spectrum = cp.fft.rfft(cp.asarray(b.points), size)
    panels = (height + kernel.panel) // JOIN_GROUP
    largest = _largest(steps_b.groups, panels)
    band = _largest(steps_a.groups, height // JOIN_GROUP)
    within = cp.arange(panels * JOIN_GROUP * largest.shape[0]) // (panels * JOIN_GROUP)
    strips = chunks = 0.0
    sample = np.unique(np.linspace(0, a.mean.size - 1, SAMPLE).astype(np.int64)).tolist()
    for window in sample:
        points = line[window : window + length] - mean[window]
        cov = cp.fft.irfft(spectrum * cp.fft.rfft(points, size).conj(), size)[:n_columns]
        scores = cov * weights if join.normalize else cov + weights
        if join.within:
            scores[max(0, window - join.exclusion) : window + join.exclusion + 1] = 0
        # half of the growth down a band: see "covariance walk" in docs/developer/numerics.rst
        row = band[window // height]
        errors = 2 * row[0] * largest[:, 0] + 8 * row[1] * largest[:, 1]
        errors *= FLOAT32_UNIT * height / 2
        if join.normalize:
            errors *= largest[:, 4]
        # see "leading bits" in docs/developer/numerics.rst
        slack = errors[within[:n_columns]] + SCORE_ABOVE32 * scores
        near = (scores + slack >= (scores - slack).max()) & (scores > 0)
        strips += _runs(near, 32 * kernel.columns)
        chunks += _runs(near, CHUNK)
    return max(strips, chunks) <= MOST_LISTED * len(sample)


def _largest(groups: cp.ndarray, together: int) -> cp.ndarray:
    """Largest bounds of so many groups of windows together."""
    count = -(-len(groups) // together)
    padded = cp.full((count * together, groups.shape[1]), -np.inf)
    padded[: len(groups)] = cp.asarray(groups)
    return padded.reshape(count, together, -1).max(axis=1)


def _runs(near: cp.ndarray, width: int) -> float:
    """How many runs of some windows hold one that is near."""
    padded = cp.zeros(-(-near.size // width) * width, bool)
    padded[: near.size] = near
    return float(padded.reshape(-1, width).any(axis=1).sum())
