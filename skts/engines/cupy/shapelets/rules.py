"""How cuts of order lines are judged, on the GPU."""

from __future__ import annotations

import cupy as cp
import numpy as np

from ...families.shapelets.criterion import Criterion, Tables
from ..transfers import Parcel
from .programs import keys_of_lane

__all__ = ["DeviceRules"]


class DeviceRules:
    """How cuts are judged, on the device once they are sent.

    Parameters
    ----------
    criterion : Criterion
        The rules.

    Attributes
    ----------
    exact : bool
        Whether gains are whole numbers that the device adds up as the host does.
    slack : int
        What gains of the device are off by where they are not.
    only_bounds : bool
        Whether gains are those of groups: bounds, and no gains of classes.
    n_members, n_classes : int
        Series and classes.
    numbers : ndarray of int64
        `Judge` of ``order_lines.cuh``, with 0 for addresses.
    judge : cupy.ndarray of int64
        The same with addresses; there after `send`.
    """

    def __init__(self, criterion: Criterion) -> None:
        tables: Tables = criterion.tables(of_groups=True)
        labels, counts = (a.astype(np.int32) for a in (tables.labels, tables.counts))
        terms = np.zeros((len(tables.counts), len(tables.labels) + 1), np.int64)
        for changes, count, row in zip(tables.changes, tables.counts.tolist(), terms, strict=True):
            row[1 : count + 1] = np.cumsum(changes[:count] - changes[:count][::-1])
        base = tables.node_entropy - tables.sides
        changes = np.asarray(np.diff(terms, axis=1) / tables.unit, np.float32)
        cuts = self._cuts(base / tables.unit, max(1, tables.leaf))
        # sums of a few of each class and each key of a lane
        largest = float(np.abs(terms).max(axis=1).sum() + np.abs(base).max(initial=0))
        largest /= tables.unit
        # see "rough gains" in docs/developer/numerics.rst
        slack = 2.0**-23 * (100 + len(counts)) * largest
        self._tables = labels, terms, base, tables.weights, counts, changes, cuts
        self.exact, self.slack = base.size > 0, tables.slack
        self.only_bounds = criterion.sample_weight is not None
        self.n_members, self.n_classes = labels.size, counts.size
        share = tables.weights.max() / tables.total if tables.total > 0 else 1.0
        numbers = [0] * len(self._tables)  # addresses
        numbers += [tables.node_entropy, self.n_members, self.n_classes]
        numbers += [max(1, tables.leaf), tables.slack]
        floats = np.array([tables.least, share, tables.total, slack, tables.unit]).view(np.int64)
        self.numbers = np.array([*numbers, *floats.tolist()], np.int64)

    def send(self, *others: np.ndarray, room: int = 0) -> tuple[Parcel, list[cp.ndarray]]:
        """Send the rules, and other arrays behind them, in one transfer.

        Parameters
        ----------
        *others : ndarray
            What else is sent.
        room : int, default 0
            Bytes behind all of it that are not sent.

        Returns
        -------
        parcel : Parcel
            All of it.
        there : list of cupy.ndarray
            The others on the device.
        """
        parcel = Parcel(*self._tables, self.numbers, *others, room=room)
        n = len(self._tables)
        parcel.here[n][:n] = list(map(parcel.address, range(n)))
        parcel.send()
        # held, so that the addresses stay those of its arrays
        self.parcel = parcel
        self.judge, *there = map(parcel.there, range(n, len(parcel.here)))
        return parcel, there

    @staticmethod
    def _cuts(base: np.ndarray, leaf: int) -> np.ndarray:
        """Entropies of cuts as lanes of `scan` meet them, -inf where leaves forbid one."""
        n = base.size - 1
        keys = keys_of_lane(n)
        if n < 0 or keys is None:
            return np.empty((0, 32), np.float32)
        found = np.full(32 * keys, -np.inf, np.float32)
        stop = max(leaf, n + 1 - leaf)
        found[leaf - 1 : stop - 1] = base[leaf:stop]
        return np.ascontiguousarray(found.reshape(32, keys).T)
