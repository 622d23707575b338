"""The order of many pairs of queries and candidates."""

from __future__ import annotations

import numpy as np

__all__ = ["order_of_pairs"]


def order_of_pairs(query: np.ndarray, candidate: np.ndarray, value: np.ndarray) -> np.ndarray:
    """Order pairs by query, of one query by value, of equal values by candidate.

    Parameters
    ----------
    query, candidate : ndarray of shape (n_pairs,), int64
        Pairs, in any order, each once.
    value : ndarray of shape (n_pairs,)
        Whole numbers, or distances, of which none is NaN.

    Returns
    -------
    ndarray of shape (n_pairs,), int64
        What ``np.lexsort((candidate, value, query))`` gives, several times faster for millions of
        pairs: it sorts three times by merging, this two times by NumPy's vector instructions.
    """
    n = query.size
    if n and int(query.max()) + 1 > np.iinfo(np.int64).max // n:
        return np.lexsort((candidate, value, query))
    order = np.argsort(value)
    # no two of these keys are equal, so that the sort need not be stable
    order = order[np.argsort(query[order].astype(np.int64, copy=False) * n + np.arange(n))]
    of, sorted_values = query[order], value[order]
    same = (of[1:] == of[:-1]) & (sorted_values[1:] == sorted_values[:-1])
    if same.any():
        tied = np.flatnonzero(np.append(same, False) | np.append(False, same))
        some = order[tied]
        order[tied] = some[np.lexsort((candidate[some], sorted_values[tied], of[tied]))]
    return order
