"""Many trees over shapelets as flat arrays, and the ways of series through them."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

from ..engines import GroupMatches, Groups, Reduction, Series, offsets
from ..tree import Shapelet, ShapeletTree

__all__ = ["WAYS", "Literals", "Trees"]

#: How a shapelet joins those before it, by number.
WAYS = ("first", "and", "or")


class Literals(NamedTuple):
    """Shapelets of nodes, in the order of the nodes.

    Attributes
    ----------
    pieces : ndarray of shape (n_literals, 4), int64
        Series, channel, start and length in the training data.
    way : ndarray of shape (n_literals,), int64
        How each joins those before it in its node: a place in `WAYS`.
    gain, gap : ndarray of shape (n_literals,), float64
        Gain in nats and gap of the split with this one and those before it.
    node : ndarray of shape (n_literals,), int64
        The node.
    """

    pieces: np.ndarray
    way: np.ndarray
    gain: np.ndarray
    gap: np.ndarray
    node: np.ndarray


class Trees(NamedTuple):
    """Trees of a forest; nodes are in the order of their depth, the roots first.

    Attributes
    ----------
    tree : ndarray of shape (n_nodes,), int64
        The tree of each node.
    children_left, children_right : ndarray of shape (n_nodes,), int64
        Children; -1 at leaves.
    first_literal, n_literals : ndarray of shape (n_nodes,), int64
        Shapelets of the node among `literals`; -1 and 0 at leaves.
    threshold : ndarray of shape (n_nodes,), float64
        Joined distances up to this go left; -2 at leaves.
    impurity : ndarray of shape (n_nodes,), float64
        Entropy in nats.
    n_node_samples : ndarray of shape (n_nodes,), int64
        Training series that reach the node, each once.
    weighted_n_node_samples : ndarray of shape (n_nodes,), float64
        Their weight, each as often as it was drawn.
    value : ndarray of shape (n_nodes, n_classes), float64
        The share of each class in that weight.
    literals : Literals
        Shapelets.
    """

    tree: np.ndarray
    children_left: np.ndarray
    children_right: np.ndarray
    first_literal: np.ndarray
    n_literals: np.ndarray
    threshold: np.ndarray
    impurity: np.ndarray
    n_node_samples: np.ndarray
    weighted_n_node_samples: np.ndarray
    value: np.ndarray
    literals: Literals

    @property
    def n_trees(self) -> int:
        """Return the number of trees; their roots are the first nodes.

        Returns
        -------
        int
            How many there are.
        """
        return int(self.tree.max()) + 1

    def walk(
        self, source: Series, series: Series, wanted: np.ndarray, run: Callable[[Reduction], Any]
    ) -> np.ndarray:
        """Lead series to leaves, level by level.

        Parameters
        ----------
        source : Series
            The training series.
        series : Series
            The series.
        wanted : ndarray of shape (n_series, n_trees), bool
            Which of them go through which trees.
        run : callable
            Computes reductions.

        Returns
        -------
        ndarray of shape (n_series, n_trees), int64
            The node of each that arrives; the root where it was not wanted.
        """
        n_series, n_trees = wanted.shape
        at = np.tile(np.arange(n_trees), (n_series, 1))
        rows, trees = np.nonzero(wanted & (self.children_left[:n_trees] >= 0))
        while rows.size:
            nodes = at[rows, trees]
            order = np.argsort(nodes, kind="stable")
            rows, trees, nodes = rows[order], trees[order], nodes[order]
            groups, begin, inverse = _runs(nodes)
            sizes = self.n_literals[groups]
            begins = offsets(sizes)
            chosen = np.arange(begins[-1]) + np.repeat(
                self.first_literal[groups] - begins[:-1], sizes
            )
            work = Groups(source, self.literals.pieces[chosen], begins, series, rows, begin)
            distances = run(GroupMatches(work))
            n_members = np.diff(begin)[inverse]
            place = work.distances_of[inverse] + np.arange(len(rows)) - begin[inverse]
            joined = distances[place]
            for k in range(1, int(sizes.max())):
                more = np.flatnonzero(sizes[inverse] > k)
                own = distances[place[more] + k * n_members[more]]
                together = self.literals.way[chosen[begins[inverse[more]] + k]] == 1
                base = joined[more]
                joined[more] = np.where(together, np.maximum(base, own), np.minimum(base, own))
            left = joined <= self.threshold[nodes]
            nodes = np.where(left, self.children_left[nodes], self.children_right[nodes])
            at[rows, trees] = nodes
            inner = self.children_left[nodes] >= 0
            rows, trees = rows[inner], trees[inner]
        return at

    def importances(self) -> np.ndarray:
        """Return the share of each shapelet in the decrease of entropy by its tree.

        Of several shapelets in a node each gets the part by which it raises the gain.

        Returns
        -------
        ndarray of shape (n_literals,), float64
            Those of each tree sum to 1, or are 0.
        """
        literals, weights = self.literals, self.weighted_n_node_samples
        before = np.concatenate([[0.0], literals.gain[:-1]])
        gain = np.where(literals.way == 0, literals.gain, literals.gain - before)
        trees = self.tree[literals.node]
        found = np.maximum(0.0, gain) * weights[literals.node] / weights[trees]
        totals = np.bincount(trees, found, self.n_trees)
        shares: np.ndarray = found / np.where(totals > 0, totals, 1.0)[trees]
        return shares

    def places(self) -> np.ndarray:
        """Return the number of each node in its own tree, depth first, the left side first.

        Returns
        -------
        ndarray of shape (n_nodes,), int64
            The numbers.
        """
        left, right = self.children_left.tolist(), self.children_right.tolist()
        size, place = [1] * len(left), [0] * len(left)
        for node in range(len(left) - 1, -1, -1):
            if left[node] >= 0:
                size[node] += size[left[node]] + size[right[node]]
        for node in range(len(left)):
            if left[node] >= 0:
                place[left[node]] = place[node] + 1
                place[right[node]] = place[node] + 1 + size[left[node]]
        return np.array(place)

    def take(self, number: int, source: Series) -> tuple[ShapeletTree, list[Shapelet]]:
        """Return one tree, depth first, the left side first, and its shapelets.

        Parameters
        ----------
        number : int
            The tree.
        source : Series
            The training series.

        Returns
        -------
        tree : ShapeletTree
            The tree.
        shapelets : list of Shapelet
            Its shapelets, in the order of the nodes.
        """
        order, stack = [], [number]
        while stack:
            node = stack.pop()
            order.append(node)
            if self.children_left[node] >= 0:
                stack += [int(self.children_right[node]), int(self.children_left[node])]
        place = np.full(len(self.tree) + 1, -1)
        place[order] = np.arange(len(order))
        shapelets: list[Shapelet] = []
        first = np.full(len(order), -1)
        for node, at in enumerate(order):
            count = int(self.n_literals[at])
            if count:
                first[node] = len(shapelets)
            for k in range(int(self.first_literal[at]), int(self.first_literal[at]) + count):
                row, channel, start, length = self.literals.pieces[k].tolist()
                values = source.values[row, channel, start : start + length].copy()
                shapelets.append(
                    Shapelet(
                        *(values, row, start, length, channel, float(self.threshold[at])),
                        gain=float(self.literals.gain[k]),
                        gap=float(self.literals.gap[k]),
                        logic=WAYS[self.literals.way[k]],
                        node=node,
                    )
                )
        tree = ShapeletTree(
            *(place[self.children_left[order]], place[self.children_right[order]], first),
            *(self.n_literals[order], self.threshold[order], self.impurity[order]),
            *(self.n_node_samples[order], self.weighted_n_node_samples[order], self.value[order]),
        )
        return tree, shapelets

    def followed_by(self, others: Trees) -> Trees:
        """Return these trees and others after them.

        Parameters
        ----------
        others : Trees
            Trees of the same training series.

        Returns
        -------
        Trees
            All of them.
        """
        n, m = self.n_trees, others.n_trees
        # roots first: the nodes of both, in the order in which they are numbered then
        order = np.concatenate(
            [
                np.arange(n),
                len(self.tree) + np.arange(m),
                np.arange(n, len(self.tree)),
                len(self.tree) + np.arange(m, len(others.tree)),
            ]
        )
        number = np.empty(len(order) + 1, np.int64)
        number[order], number[-1] = np.arange(len(order)), -1
        shift = len(self.tree)
        moved = others._replace(
            tree=others.tree + n,
            children_left=np.where(others.children_left < 0, -1, others.children_left + shift),
            children_right=np.where(others.children_right < 0, -1, others.children_right + shift),
            first_literal=np.where(
                others.n_literals > 0, others.first_literal + len(self.literals.way), -1
            ),
        )
        both = [np.concatenate(pair)[order] for pair in zip(self[:-1], moved[:-1], strict=True)]
        both[1], both[2] = number[both[1]], number[both[2]]
        literals = [
            np.concatenate(pair)
            for pair in zip(
                self.literals,
                others.literals._replace(node=others.literals.node + shift),
                strict=True,
            )
        ]
        literals[-1] = number[literals[-1]]
        return Trees._make([*both, Literals(*literals)])


def _runs(nodes: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Ascending nodes, each once; where the run of each begins, with the end; the run of each."""
    new = np.concatenate([[True], nodes[1:] != nodes[:-1]])
    first = np.flatnonzero(new)
    return nodes[first], np.append(first, len(nodes)), np.cumsum(new) - 1
