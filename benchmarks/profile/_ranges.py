"""How well scores of time points find labelled ranges: the volume under the PR surface (VUS-PR).

Paparrizos, Boniol, Palpanas, Tsay, Elmore, Franklin. "Volume Under the Surface: A New Accuracy
Evaluation Measure for Time-Series Anomaly Detection". PVLDB 15(11), 2022, sections 4 and 5.
"""

import numpy as np

#: Thresholds of a curve, evenly spaced among the sorted scores.
THRESHOLDS = 250


def soften(labels, buffer):
    """Labels with slopes: beside each range they fall as sqrt(1 - distance / buffer), half way."""
    soft = labels.astype(float)
    if buffer <= 1:
        return soft
    edges = np.flatnonzero(np.diff(np.r_[0, labels, 0]))
    for first, last in zip(edges[::2], edges[1::2] - 1, strict=True):
        for distance in range(buffer // 2 + 1):
            slope = np.sqrt(1 - distance / buffer)
            if first - distance >= 0:
                soft[first - distance] += slope
            if distance < buffer // 2 and last + distance < len(soft):
                soft[last + distance] += slope
    return np.minimum(soft, 1.0)


def area_under_pr(labels, scores, buffer):
    """Area under the curve of precision and recall of softened ranges.

    Recall counts as many ranges as were touched at all (the existence reward), and the positives
    are the mean of the sharp and the softened labels.
    """
    soft = soften(labels, buffer)
    edges = np.flatnonzero(np.diff(np.r_[0, soft > 0, 0]))
    highest = np.array(
        [scores[first:stop].max() for first, stop in zip(edges[::2], edges[1::2], strict=True)]
    )
    positives = (labels.sum() + soft.sum()) / 2
    order = np.argsort(-scores, kind="stable")
    found = np.cumsum(soft[order])
    descending = scores[order]
    thresholds = descending[np.linspace(0, len(scores) - 1, THRESHOLDS, dtype=int)]
    counts = np.searchsorted(-descending, -thresholds, side="right")
    touched = (highest[np.newaxis] >= thresholds[:, np.newaxis]).mean(axis=1)
    true = found[counts - 1]
    recall = np.r_[0.0, np.minimum(true / positives, 1) * touched]
    precision = np.r_[1.0, true / counts]
    return float(np.sum(np.diff(recall) * (precision[1:] + precision[:-1]) / 2))


def vus_pr(labels, scores, longest_buffer=100):
    """Mean area over all buffers from 0 to the longest.

    Parameters
    ----------
    labels : ndarray of shape (n_timepoints,)
        1 in the ranges that are to be found, 0 elsewhere.
    scores : ndarray of shape (n_timepoints,)
        The higher, the more unusual.
    longest_buffer : int, default 100
        Points beside a range that may count in part, twice.

    Returns
    -------
    float
        Between 0 and 1.
    """
    labels, scores = np.asarray(labels).astype(int), np.asarray(scores, float)
    areas = [area_under_pr(labels, scores, buffer) for buffer in range(longest_buffer + 1)]
    return float(np.mean(areas))
