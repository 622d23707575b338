"""How cuts of order lines are judged, on the GPU."""

from __future__ import annotations

import numpy as np

from ...families.shapelets.criterion import Criterion, Tables
from ..transfers import send, send_one

__all__ = ["DeviceRules"]


class DeviceRules:
    """How cuts are judged, on the device.

    Parameters
    ----------
    criterion : Criterion
        The rules.
    """

    def __init__(self, criterion: Criterion) -> None:
        tables: Tables = criterion.tables(of_groups=True)
        labels, counts = (a.astype(np.int32) for a in (tables.labels, tables.counts))
        terms = np.zeros((len(tables.counts), len(tables.labels) + 1), np.int64)
        for changes, count, row in zip(tables.changes, tables.counts.tolist(), terms, strict=True):
            row[1 : count + 1] = np.cumsum(changes[:count] - changes[:count][::-1])
        base = tables.node_entropy - tables.sides
        rough = [np.asarray(table / tables.unit, np.float32) for table in (terms, base)]
        # sums of a few of each class and each key of a lane
        largest = float(np.abs(terms).max(axis=1).sum() + np.abs(base).max(initial=0))
        largest /= tables.unit
        # see "rough gains" in docs/developer/numerics.rst
        slack = 2.0**-23 * (100 + len(counts)) * largest
        self.arrays = send(labels, terms, base, tables.weights, counts, *rough)
        self.exact, self.slack = base.size > 0, tables.slack
        #: Whether gains are those of groups: bounds, and no gains of classes.
        self.only_bounds = criterion.sample_weight is not None
        self.n_members, self.n_classes = labels.size, counts.size
        share = tables.weights.max() / tables.total if tables.total > 0 else 1.0
        addresses = [array.data.ptr if array.size else 0 for array in self.arrays]
        numbers = [
            tables.node_entropy,
            self.n_members,
            self.n_classes,
            max(1, tables.leaf),
            tables.slack,
        ]
        floats = np.array([tables.least, share, tables.total, slack, tables.unit]).view(np.int64)
        self.judge = send_one(np.array([*addresses, *numbers, *floats.tolist()], np.int64))
