"""A grown tree: its nodes and shapelets, the way of series through it, and its pruning."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from .._summary import summarized, table

__all__ = ["Shapelet", "ShapeletTree", "keep", "prune", "walk"]

#: Nodes of a tree that a table shows.
_SHOWN = 20


@summarized
class Shapelet(NamedTuple):
    """A subsequence of a training series that a node of the tree looks for.

    Attributes
    ----------
    values : ndarray of shape (length,), float64
        Its points, as they are in the series.
    series, start, length, channel : int
        Where it lies in the training data.
    threshold : float
        Series whose distance (joined, if there are several shapelets) is at most this go left.
    gain : float
        Information gain in nats, of the split with this shapelet and those before it in the node;
        of a regression tree the decrease of the variance.
    gap : float
        Separation gap of that split: mean distance on the right less that on the left.
    logic : {"first", "and", "or"}
        How it joins the shapelets before it in the node.
    node : int
        The node of the tree.
    """

    values: np.ndarray
    series: int
    start: int
    length: int
    channel: int
    threshold: float
    gain: float
    gap: float
    logic: str
    node: int


class ShapeletTree(NamedTuple):
    """A tree as flat arrays, one entry for each node; node 0 is the root.

    Attributes
    ----------
    children_left, children_right : ndarray of shape (n_nodes,), int64
        Children; -1 at leaves.
    first_literal, n_literals : ndarray of shape (n_nodes,), int64
        The shapelets of the node in `shapelets_`; -1 and 0 at leaves.
    threshold : ndarray of shape (n_nodes,), float64
        Joined distances up to this go left; -2 at leaves.
    impurity : ndarray of shape (n_nodes,), float64
        Entropy in nats; of a regression tree the variance of the targets.
    n_node_samples : ndarray of shape (n_nodes,), int64
        Training series that reach the node.
    weighted_n_node_samples : ndarray of shape (n_nodes,), float64
        Their weight.
    value : ndarray of shape (n_nodes, n_classes) or (n_nodes,), float64
        The share of each class in that weight; of a regression tree the mean of the targets.
    """

    children_left: np.ndarray
    children_right: np.ndarray
    first_literal: np.ndarray
    n_literals: np.ndarray
    threshold: np.ndarray
    impurity: np.ndarray
    n_node_samples: np.ndarray
    weighted_n_node_samples: np.ndarray
    value: np.ndarray

    def __repr__(self) -> str:
        """How large the tree is."""
        leaves = int((self.children_left < 0).sum())
        classes = f", n_classes={self.value.shape[1]}" if self.value.ndim == 2 else ""
        return f"ShapeletTree(n_nodes={len(self.value)}, n_leaves={leaves}{classes})"

    def _repr_html_(self) -> str:
        """A table of the first nodes."""
        columns = [column[:_SHOWN] for column in self]
        more = f", {_SHOWN} of them shown" if len(self.value) > _SHOWN else ""
        rows = zip(range(_SHOWN), *columns, strict=False)
        return table(f"{self!r}{more}", ("node", *self._fields), rows)


def walk(tree: ShapeletTree, shapelets: list[Shapelet], distances: np.ndarray) -> list[np.ndarray]:
    """Send series through a tree, level by level.

    Parameters
    ----------
    tree : ShapeletTree
        The tree.
    shapelets : list of Shapelet
        Its shapelets.
    distances : ndarray of shape (n_series, n_shapelets)
        Distances of the series to them.

    Returns
    -------
    list of ndarray of shape (n_series,)
        The nodes in which the series are; those that have arrived stay where they are.
    """
    nodes = np.zeros(len(distances), np.int64)
    steps = [nodes]
    while (tree.children_left[nodes] >= 0).any():
        after = nodes.copy()
        for node in np.unique(nodes[tree.children_left[nodes] >= 0]):
            rows = np.flatnonzero(nodes == node)
            first = tree.first_literal[node]
            joined = distances[rows, first]
            for k in range(first + 1, first + tree.n_literals[node]):
                join = np.maximum if shapelets[k].logic == "and" else np.minimum
                joined = join(joined, distances[rows, k])
            left = joined <= tree.threshold[node]
            after[rows] = np.where(left, tree.children_left[node], tree.children_right[node])
        nodes = after
        steps.append(nodes)
    return steps


def prune(tree: ShapeletTree, alpha: float) -> tuple[list[float], list[float], np.ndarray]:
    """Cut the weakest links of a tree.

    Parameters
    ----------
    tree : ShapeletTree
        The full tree, which stays as it is.
    alpha : float
        Links that cost at most this are cut; up to 0 none is.

    Returns
    -------
    alphas, impurities : list of float
        Of the full tree, and of the tree after each cut.
    leaf : ndarray of shape (n_nodes,), bool
        Which nodes are leaves then.
    """
    risk = tree.impurity * tree.weighted_n_node_samples / tree.weighted_n_node_samples[0]
    leaf = tree.children_left < 0
    alphas: list[float] = [0.0]
    impurities: list[float] = []
    while True:
        leaves, below = np.zeros(len(leaf), np.int64), np.zeros(len(leaf))
        for node in range(len(leaf) - 1, -1, -1):
            left, right = tree.children_left[node], tree.children_right[node]
            leaves[node] = 1 if leaf[node] else leaves[left] + leaves[right]
            below[node] = risk[node] if leaf[node] else below[left] + below[right]
        if not impurities:
            impurities.append(float(below[0]))
        alive = np.zeros(len(leaf), bool)
        alive[0] = True
        for node in range(len(leaf)):
            if alive[node] and not leaf[node]:
                alive[[tree.children_left[node], tree.children_right[node]]] = True
        inner = np.flatnonzero(alive & ~leaf)
        if not inner.size:
            return alphas, impurities, leaf
        cost = (risk[inner] - below[inner]) / (leaves[inner] - 1)
        weakest = int(np.argmin(cost))
        if alpha <= 0 or cost[weakest] > alpha:
            return alphas, impurities, leaf
        leaf[inner[weakest]] = True
        alphas.append(max(alphas[-1], float(cost[weakest])))
        impurities.append(float(below[0] + risk[inner[weakest]] - below[inner[weakest]]))


def keep(
    tree: ShapeletTree, shapelets: list[Shapelet], leaf: np.ndarray
) -> tuple[ShapeletTree, list[Shapelet]]:
    """Drop what lies below leaves.

    Parameters
    ----------
    tree : ShapeletTree
        The full tree.
    shapelets : list of Shapelet
        Its shapelets.
    leaf : ndarray of shape (n_nodes,), bool
        Which nodes are leaves, as `prune` says.

    Returns
    -------
    tree : ShapeletTree
        The nodes that are left, in the order of their growth.
    shapelets : list of Shapelet
        Theirs.
    """
    order, stack = [], [0]
    while stack:
        node = stack.pop()
        order.append(node)
        if not leaf[node]:
            stack += [int(tree.children_right[node]), int(tree.children_left[node])]
    number = np.full(len(leaf), -1)
    number[order] = np.arange(len(order))
    kept = ShapeletTree(*(array[order] for array in tree))
    ends = leaf[order]
    kept_shapelets: list[Shapelet] = []
    for place, node in enumerate(order):
        if leaf[node]:
            continue
        first = tree.first_literal[node]
        kept.first_literal[place] = len(kept_shapelets)
        kept_shapelets += [
            literal._replace(node=place)
            for literal in shapelets[first : first + tree.n_literals[node]]
        ]
    for array in (kept.children_left, kept.children_right):
        array[:] = np.where(ends, -1, number[array])
    kept.first_literal[ends], kept.n_literals[ends], kept.threshold[ends] = -1, 0, -2.0
    return kept, kept_shapelets
