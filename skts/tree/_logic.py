"""The ways in which shapelets of a node are joined, chosen by cross-validation."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
from sklearn.model_selection import StratifiedKFold

if TYPE_CHECKING:
    from ._shapelet_tree import _Growth

__all__ = ["WAYS", "choose_ways"]

#: How a further shapelet may join those of a node.
WAYS = ("and", "or")
#: Parts of the training series, of which each is classified by a tree of the others, at most.
_FOLDS = 5


def choose_ways(growth: _Growth) -> tuple[str, ...]:
    """Choose whether shapelets are joined, by accuracy on series that a tree has not seen.

    Parameters
    ----------
    growth : _Growth
        The growing of the tree on all training series.

    Returns
    -------
    tuple of {"and", "or"}
        Both ways, or none: where both are right equally often, and where a class has one series.
    """
    n, labels = len(growth.series), growth.labels
    count = min(_FOLDS, int(np.bincount(labels).min()))
    if count < 2:
        return ()
    right = {(): 0.0, WAYS: 0.0}
    # the same parts whatever draws the candidates
    folds = StratifiedKFold(count, shuffle=True, random_state=0)
    for train, test in folds.split(np.zeros(n), labels):
        # the first shapelets of nodes are looked for once
        known = growth.part(train, ()).known_firsts
        for ways in right:
            part = growth.part(train, ways)
            part.known_firsts = known
            right[ways] += part.grow_and_judge(growth, test)
    return WAYS if right[WAYS] > right[()] else ()
