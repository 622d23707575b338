"""The growing of many trees together: all nodes of a level are one piece of work."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

from ..engines import Groups, GroupSplits, Reduction, Series, SplitRules, Splits, offsets
from ._trees import Literals, Trees

__all__ = ["Growth", "Limits", "Sample"]


class Sample(NamedTuple):
    """The training series of a tree.

    Attributes
    ----------
    rows, times : ndarray of shape (n_drawn,), int64
        Series, ascending, and how often each was drawn.
    class_weight : ndarray of shape (n_classes,), float64
        Weights of the classes, 1 or not far below.
    scale : float
        What these are to be multiplied by, to be those that were asked for.
    random : RandomState
        Draws the candidates of the tree.
    """

    rows: np.ndarray
    times: np.ndarray
    class_weight: np.ndarray
    scale: float
    random: np.random.RandomState


class Limits(NamedTuple):
    """When nodes are split, and into what; series count as often as they were drawn.

    Attributes
    ----------
    lengths : ndarray of int64
        Lengths of candidates, ascending.
    n_candidates : int
        Candidates of a node.
    ways : tuple of {"and", "or"}
        How further shapelets may join a node.
    max_literals : int
        Shapelets of a node at most.
    max_depth : int or None
        Depth of trees at most.
    split, leaf : int
        Series that a node needs to be split, and a leaf.
    share : float
        Share of the weight of a tree that a leaf needs.
    decrease : float
        Decrease of the entropy, times the node's share of the weight, that a split needs.
    """

    lengths: np.ndarray
    n_candidates: int
    ways: tuple[str, ...]
    max_literals: int
    max_depth: int | None
    split: int
    leaf: int
    share: float
    decrease: float


class _Nodes(NamedTuple):
    """Nodes of a level, and the series in them, node by node."""

    tree: np.ndarray
    rows: np.ndarray
    times: np.ndarray
    begins: np.ndarray

    def take(self, chosen: np.ndarray) -> tuple[_Nodes, np.ndarray]:
        """Return some of the nodes, and the places of their series among all."""
        sizes = np.diff(self.begins)[chosen]
        begins = offsets(sizes)
        places = np.arange(begins[-1]) + np.repeat(self.begins[chosen] - begins[:-1], sizes)
        return _Nodes(self.tree[chosen], self.rows[places], self.times[places], begins), places


class Growth:
    """The growing of a forest.

    Parameters
    ----------
    series : Series
        The training series.
    labels : ndarray of shape (n_series,), int64
        Their classes.
    n_classes : int
        How many classes there are.
    samples : list of Sample
        The series of each tree.
    limits : Limits
        When nodes are split, and into what.
    """

    def __init__(
        self,
        series: Series,
        labels: np.ndarray,
        n_classes: int,
        samples: list[Sample],
        limits: Limits,
    ) -> None:
        self.series, self.labels, self.n_classes = series, labels, n_classes
        self.samples, self.limits = samples, limits
        each = np.array([sample.class_weight for sample in samples])
        self.class_weight = None if np.all(each == 1.0) else each
        self._roots = _Nodes(
            np.arange(len(samples)),
            np.concatenate([sample.rows for sample in samples]),
            np.concatenate([sample.times for sample in samples]),
            offsets(np.array([len(sample.rows) for sample in samples])),
        )
        #: The weight of all series of each tree.
        self._whole = self._weigh(self._roots).sum(axis=1)

    def grow(self, run: Callable[[Reduction], Any]) -> Trees:
        """Grow all trees, level by level.

        Parameters
        ----------
        run : callable
            Computes reductions.

        Returns
        -------
        Trees
            The trees.
        """
        level = self._roots
        parts: list[tuple[np.ndarray, ...]] = []
        found: list[Literals] = []
        first, depth, n_literals = 0, 0, 0
        while len(level.tree):
            after = first + len(level.tree)
            columns, some, next_level = self._split(level, depth, run)
            # children and shapelets are numbered from the start of the next level, and of this one
            for column in columns[1:3]:
                column[column >= 0] += after
            columns[3][columns[3] >= 0] += n_literals
            found.append(some._replace(node=some.node + first))
            parts.append(columns)
            first, depth, n_literals = after, depth + 1, n_literals + len(some.way)
            level = next_level
        arrays = [np.concatenate(column) for column in zip(*parts, strict=True)]
        literals = Literals(*(np.concatenate(part) for part in zip(*found, strict=True)))
        trees = Trees._make([*arrays, literals])
        scales = np.array([one.scale for one in self.samples])
        weights = trees.weighted_n_node_samples * scales[trees.tree]
        return trees._replace(weighted_n_node_samples=weights)

    def roots(self) -> GroupSplits:
        """Return work as large as the splits of the roots, to choose an engine by.

        Returns
        -------
        GroupSplits
            The work; its candidates are not those that are drawn.
        """
        n = len(self._roots.tree) * self.limits.n_candidates
        pieces = np.zeros((n, 4), np.int64)
        pieces[:, 3] = self.limits.lengths[len(self.limits.lengths) // 2]
        return self._work(self._roots, pieces)

    def _weigh(self, level: _Nodes) -> np.ndarray:
        """The weight of each class in each node of a level."""
        n = len(level.tree)
        nodes = np.repeat(np.arange(n), np.diff(level.begins))
        places = nodes * self.n_classes + self.labels[level.rows]
        counts = np.bincount(places, level.times, n * self.n_classes).reshape(n, -1)
        return counts if self.class_weight is None else counts * self.class_weight[level.tree]

    def _split(
        self, level: _Nodes, depth: int, run: Callable[[Reduction], Any]
    ) -> tuple[tuple[np.ndarray, ...], Literals, _Nodes]:
        """Split the nodes of a level: columns of `Trees`, shapelets, and the next level."""
        limits, n = self.limits, len(level.tree)
        weights = self._weigh(level)
        whole = weights.sum(axis=1)
        known = whole > 0
        value = np.where(known[:, np.newaxis], weights, 1.0)
        value /= value.sum(axis=1, keepdims=True)
        logs = np.log(np.where(value > 0, value, 1.0))
        impurity = np.abs((value * logs).sum(axis=1))
        drawn = np.add.reduceat(level.times, level.begins[:-1])
        open_nodes = (impurity > 0) & (drawn >= max(limits.split, 2 * limits.leaf)) & known
        if limits.max_depth is not None and depth >= limits.max_depth:
            open_nodes[:] = False
        # of one class, whatever the sums of weights
        open_nodes &= (weights > 0).sum(axis=1) > 1
        columns = (
            *(level.tree, np.full(n, -1), np.full(n, -1), np.full(n, -1), np.zeros(n, np.int64)),
            *(np.full(n, -2.0), impurity, np.diff(level.begins), whole, value),
        )
        chosen = np.flatnonzero(open_nodes)
        nodes, _ = level.take(chosen)
        if not chosen.size:
            return columns, _no_literals(), nodes
        pieces = self._draw(nodes)
        splits = run(self._work(nodes, pieces))
        last = (splits.chosen >= 0).sum(axis=1) - 1
        gain = splits.gain[np.arange(len(chosen)), last]
        share = whole[chosen] / self._whole[nodes.tree]
        good = np.flatnonzero((last >= 0) & (gain * share >= limits.decrease))
        return (*_record(columns, chosen, pieces, splits, good), _children(nodes, splits, good))

    def _work(self, nodes: _Nodes, pieces: np.ndarray) -> GroupSplits:
        """The splits of some nodes among their candidates."""
        limits, n = self.limits, len(nodes.tree)
        candidates = np.arange(n + 1) * limits.n_candidates
        groups = Groups(self.series, pieces, candidates, self.series, nodes.rows, nodes.begins)
        rules = SplitRules(
            self.labels[nodes.rows],
            nodes.times,
            limits.leaf,
            limits.share * self._whole[nodes.tree],
            None if self.class_weight is None else self.class_weight[nodes.tree],
            limits.ways,
            limits.max_literals,
        )
        return GroupSplits(groups, rules)

    def _draw(self, nodes: _Nodes) -> np.ndarray:
        """Draw candidates of nodes, those of each in the order of ties.

        First the series, then one of the lengths that it has room for, the start, the channel.
        """
        limits, series = self.limits, self.series
        counts = np.bincount(nodes.tree, minlength=len(self.samples))
        shape = limits.n_candidates, 4
        drawn = np.concatenate(
            [
                self.samples[tree].random.random_sample((counts[tree], *shape))
                for tree in np.flatnonzero(counts)
            ]
        )

        def choose(column: int, count: np.ndarray | int) -> np.ndarray:
            """Numbers below a count, which no product with a number below 1 rounds up to."""
            return (drawn[..., column] * count).astype(np.int64)

        begins = nodes.begins[:-1, np.newaxis]
        rows = nodes.rows[begins + choose(0, np.diff(nodes.begins)[:, np.newaxis])]
        room = np.searchsorted(limits.lengths, series.lengths[rows], side="right")
        lengths = limits.lengths[choose(1, room)]
        starts = choose(2, series.lengths[rows] - lengths + 1)
        channels = choose(3, series.n_channels)
        group = np.repeat(np.arange(len(rows)), limits.n_candidates)
        keys = channels.ravel(), starts.ravel(), rows.ravel(), lengths.ravel(), group
        order = np.lexsort(keys)
        return np.column_stack([rows.ravel(), channels.ravel(), starts.ravel(), lengths.ravel()])[
            order
        ]


def _no_literals() -> Literals:
    none = np.empty(0, np.int64)
    return Literals(np.empty((0, 4), np.int64), none, np.empty(0), np.empty(0), none)


def _record(
    columns: tuple[np.ndarray, ...],
    chosen: np.ndarray,
    pieces: np.ndarray,
    splits: Splits,
    good: np.ndarray,
) -> tuple[tuple[np.ndarray, ...], Literals]:
    """Write splits that are good to the columns of their nodes, and return their shapelets."""
    there = splits.chosen[good] >= 0
    group, _ = np.nonzero(there)
    node = chosen[good]
    n_candidates = len(pieces) // len(chosen)
    numbers = splits.chosen[good][there]
    last = there.sum(axis=1) - 1
    _, left, right, first, count, threshold, *_ = columns
    left[node], right[node] = 2 * np.arange(len(good)), 2 * np.arange(len(good)) + 1
    first[node], count[node] = offsets(last + 1)[:-1], last + 1
    threshold[node] = splits.threshold[good, last]
    literals = Literals(
        pieces[good[group] * n_candidates + numbers],
        splits.way[good][there],
        splits.gain[good][there],
        splits.gap[good][there],
        node[group],
    )
    return columns, literals


def _children(nodes: _Nodes, splits: Splits, good: np.ndarray) -> _Nodes:
    """The nodes of the next level: the left and the right side of each that is split."""
    parents, places = nodes.take(good)
    sides = np.repeat(2 * np.arange(len(good)), np.diff(parents.begins)) + ~splits.left[places]
    order = np.argsort(sides, kind="stable")
    return _Nodes(
        np.repeat(parents.tree, 2),
        parents.rows[order],
        parents.times[order],
        offsets(np.bincount(sides, minlength=2 * len(good))),
    )
