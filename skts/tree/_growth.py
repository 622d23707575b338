"""The growing of one tree: candidates of a node, its literals, and whether logic pays."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Generator, Iterable
from numbers import Integral
from typing import Any, NamedTuple, TypeAlias

import numpy as np
from sklearn.utils import check_random_state
from sklearn.utils.random import sample_without_replacement

from .._validation import LEAST
from ..engines import (
    LEAST_NORMALIZED,
    Criterion,
    Series,
    ShapeletSearch,
    ShapeletSplit,
    SplitCriterion,
    get_engine,
)
from ..exceptions import UnsupportedReductionError
from ._class_weights import power_of_two, share_of
from ._logic import WAYS
from ._long import best_with_long
from ._structure import Shapelet, ShapeletTree, keep, prune, walk

__all__ = ["NodeValue", "TreeGrowth"]


class NodeValue(NamedTuple):
    """The description of the series of a node.

    Attributes
    ----------
    weight : float
        Their weight.
    impurity : float
        How much they differ.
    value : ndarray or float
        What is predicted of them.
    pure : bool
        Whether there is nothing to tell apart.
    """

    weight: float
    impurity: float
    value: np.ndarray | float
    pure: bool


class GrownNode:
    """A node while the tree grows.

    Parameters
    ----------
    members : ndarray of int64
        Its series.
    depth : int
        Nodes above it.

    Attributes
    ----------
    about : NodeValue
        What describes the members.
    found : list of ShapeletSplit
        Its literals; none of a leaf.
    unit : float
        Units of a gain of 1 of its literals.
    sides : list of GrownNode
        The nodes on the right and on the left; none of a leaf.
    """

    about: NodeValue
    unit: float

    def __init__(self, members: np.ndarray, depth: int) -> None:
        self.members, self.depth = members, depth
        self.found: list[ShapeletSplit] = []
        self.sides: list[GrownNode] = []


#: A search; the candidates that were drawn and their distances, or None for all.
Wanted: TypeAlias = "tuple[ShapeletSearch, tuple[np.ndarray, np.ndarray] | None]"


class TreeGrowth(ABC):
    """The growing of one tree, whatever it predicts.

    `model` is the estimator, whose module imports this one.
    """

    def __init__(
        self,
        model: Any,
        series: Series,
        y: np.ndarray,
        sample_weight: np.ndarray,
        rows: np.ndarray,
        lengths: tuple[int, ...] | None = None,
    ) -> None:
        self.given = y, sample_weight
        #: Where the series are in the training data.
        self.rows = rows
        self.model, self.series = model, series
        self.lengths = model._lengths(series) if lengths is None else lengths
        shortest = int(series.lengths.min())
        #: Lengths that all series have room for, and others.
        self.common = tuple(length for length in self.lengths if length <= shortest)
        self.long = tuple(length for length in self.lengths if length > shortest)
        #: How further shapelets may join a node; both ways where nothing is chosen yet.
        self.ways = WAYS if model.logic == "auto" else tuple(w for w in WAYS if w in model.logic)
        if model.logic != "auto" and any(way not in WAYS for way in model.logic):
            raise ValueError(f'logic takes "and" and "or"; got {tuple(model.logic)!r}.')
        #: Of searches among all candidates: the first shapelets of nodes, by their series.
        self.known_firsts: dict[bytes, ShapeletSplit | None] = {}
        self.scale = power_of_two(sample_weight)
        self.sample_weight = np.maximum(sample_weight / self.scale, LEAST)
        self.take_target(y)
        if np.all(sample_weight == sample_weight[0]):
            self.sample_weight, factor = np.ones(len(y)), float(self.sample_weight[0])
            self.scale *= factor
        n = len(series)
        leaf, split = model.min_samples_leaf, model.min_samples_split
        self.leaf = int(leaf if isinstance(leaf, Integral) else share_of(n, leaf))
        self.split = int(split if isinstance(split, Integral) else max(2, share_of(n, split)))
        self.total = self.weigh(np.arange(n))
        self.random = check_random_state(model.random_state)
        #: Whether all candidates are measured, since the engine bounds no such gains.
        self.measures_all = False

    def choose_engine(self) -> str:
        """Choose the engine of the estimator for this work, and return its name.

        An engine that lacks the search of targets measures all candidates.
        """
        work = self.search(np.arange(len(self.series)))
        try:
            return get_engine(self.model.engine, work).name
        except UnsupportedReductionError:
            if isinstance(work.criterion, Criterion):
                raise
        self.measures_all = True
        return get_engine(self.model.engine).name

    @abstractmethod
    def take_target(self, y: np.ndarray) -> None:
        """Keep the target, and multiply `scale` by what its own weights are divided by."""

    @abstractmethod
    def criterion(self, members: np.ndarray) -> SplitCriterion:
        """How cuts of a node are judged."""

    @abstractmethod
    def weigh(self, members: np.ndarray) -> float:
        """The weight of some series."""

    @abstractmethod
    def describe(self, members: np.ndarray) -> NodeValue:
        """Describe the series of a node."""

    @abstractmethod
    def folds(self) -> Iterable[tuple[np.ndarray, np.ndarray]]:
        """Parts of the series for cross-validation: those of a tree, and those it is judged by."""

    @abstractmethod
    def credit(self, value: np.ndarray, test: np.ndarray) -> float:
        """How good the values of leaves are as predictions of some series."""

    def judge(self, train: np.ndarray, test: np.ndarray) -> tuple[float, float]:
        """The credit of trees for series that they have not seen, without and with logic."""
        y, weights = self.given
        series, others = self.series.take(train).freeze(), self.series.take(test)
        found: list[float] = []
        # the first shapelets of nodes are looked for once
        known: dict[bytes, ShapeletSplit | None] = {}
        for ways in ((), WAYS):
            rows = self.rows[train]
            part = type(self)(self.model, series, y[train], weights[train], rows, self.lengths)
            part.ways, part.known_firsts = ways, known
            part.measures_all = self.measures_all
            tree, shapelets = part.grow()
            tree, shapelets = keep(tree, shapelets, prune(tree, self.model.ccp_alpha)[2])
            nodes = walk(tree, shapelets, self.model._measure(others, shapelets))[-1]
            found.append(self.credit(tree.value[nodes], test))
        return found[0], found[1]

    def search(self, members: np.ndarray, **options: Any) -> ShapeletSearch:
        """The work of one node."""
        return ShapeletSearch(self.series, members, self.common, self.criterion(members), **options)

    def grow(self) -> tuple[ShapeletTree, list[Shapelet]]:
        """Grow level by level; weights are without their scale.

        Nodes are numbered depth first, the left side first. They are grown in that order, too,
        where candidates are drawn.
        """
        root = GrownNode(np.arange(len(self.series)), 0)
        waiting = [root]
        while waiting:
            if self.model.max_candidates is None:
                nodes, waiting = waiting, []
            else:
                nodes = [waiting.pop()]
            for node in nodes:
                node.about = self.describe(node.members)
            nodes = [node for node in nodes if self.may_split(node)]
            for node, (found, node.unit) in zip(nodes, self.split_nodes(nodes), strict=True):
                if found:
                    left = found[-1].distances <= found[-1].cut.threshold
                    sides = (node.members[~left], node.members[left])
                    node.found = found
                    node.sides = [GrownNode(side, node.depth + 1) for side in sides]
                    waiting += node.sides
        return self.number(root)

    def may_split(self, node: GrownNode) -> bool:
        """Whether a node may have sides."""
        deep = self.model.max_depth is not None and node.depth >= self.model.max_depth
        small = len(node.members) < max(self.split, 2 * self.leaf)
        return not (deep or node.about.pure or small)

    def number(self, root: GrownNode) -> tuple[ShapeletTree, list[Shapelet]]:
        """Lay out a tree that has grown: its nodes depth first, the left side first."""
        nodes: list[list[Any]] = []
        shapelets: list[Shapelet] = []
        open_nodes = [(root, -1, 0)]
        while open_nodes:
            grown, parent, side = open_nodes.pop()
            node, members, found = len(nodes), grown.members, grown.found
            if parent >= 0:
                nodes[parent][side] = node
            weight, impurity, value, _ = grown.about
            nodes.append([-1, -1, -1, 0, -2.0, impurity, len(members), weight, value])
            if not found:
                continue
            last, unit = found[-1], grown.unit
            nodes[node][2:5] = len(shapelets), len(found), last.cut.threshold
            for split in found:
                row, stop = int(members[split.series]), split.start + split.length
                values = self.series.values[row, split.channel, split.start : stop].copy()
                place = int(self.rows[row]), split.start, split.length, split.channel
                worth = last.cut.threshold, split.cut.gain / unit, split.cut.gap
                shapelets.append(Shapelet(values, *place, *worth, split.way, node))
            right, left = grown.sides
            open_nodes += [(right, node, 1), (left, node, 0)]
        columns = list(zip(*nodes, strict=True))
        types = [np.int64] * 4 + [np.float64] * 2 + [np.int64] + [np.float64] * 2
        arrays = (np.array(column, kind) for column, kind in zip(columns, types, strict=True))
        return ShapeletTree(*arrays), shapelets

    def with_weights(self, tree: ShapeletTree) -> ShapeletTree:
        """Return a tree with the weights that were asked for."""
        return tree._replace(weighted_n_node_samples=tree.weighted_n_node_samples * self.scale)

    def split_nodes(self, nodes: list[GrownNode]) -> list[tuple[list[ShapeletSplit], float]]:
        """Find the literals of nodes, and the unit of their gains: all nodes search at once.

        There are none where no split is good enough.
        """
        found: list[tuple[list[ShapeletSplit], float]] = [([], 1.0) for _ in nodes]
        growing = [self.literals(node.members) for node in nodes]
        open_nodes = list(range(len(nodes)))
        answers: list[ShapeletSplit | None] = [None for _ in nodes]
        while open_nodes:
            asking, wanted = [], []
            for k, answer in zip(open_nodes, answers, strict=True):
                try:
                    wanted.append(growing[k].send(answer))
                    asking.append(k)
                except StopIteration as stop:
                    found[k] = stop.value
            open_nodes, answers = asking, self.best_of_each(wanted)
        return found

    def literals(
        self, members: np.ndarray
    ) -> Generator[Wanted, ShapeletSplit | None, tuple[list[ShapeletSplit], float]]:
        """Ask for the best shapelets of a node, one after the other.

        Returns its literals, and the unit of their gains.
        """
        sample, search = self.draw(members), self.search(members)
        drawn = None
        if sample is not None:
            # all literals of the node choose among the same candidates
            alone = np.column_stack([sample, np.zeros(len(sample), np.int64)])
            drawn = sample, search.certify(alone, self.model._run)
        key = members.tobytes()
        if sample is None and key in self.known_firsts:
            best = self.known_firsts[key]
        else:
            best = yield search, drawn
            if sample is None and self.model.logic == "auto":
                self.known_firsts[key] = best
        unit = search.criterion.unit
        if best is None:
            return [], unit
        found, ways = [best], self.ways
        while ways and len(found) < self.model.max_literals:
            last = found[-1]
            search = self.search(
                members,
                before=last.distances,
                before_normalized=any(split.length >= LEAST_NORMALIZED for split in found),
                ways=ways,
                best_gain_so_far=last.cut.gain,
                best_gap_so_far=last.cut.gap,
            )
            better = yield search, drawn
            if better is None:
                break
            found.append(better)
        share = self.weigh(members) / self.total
        decrease = found[-1].cut.gain / unit * share
        return found if decrease >= self.model.min_impurity_decrease else [], unit

    def best_of_each(self, wanted: list[Wanted]) -> list[ShapeletSplit | None]:
        """The best of all candidates, or of those drawn, of several searches."""
        found: list[ShapeletSplit | None] = [None for _ in wanted]
        bounded = []
        for k, (search, drawn) in enumerate(wanted):
            if drawn is not None:
                found[k] = self.best_drawn(search, *drawn)
                continue
            infinite = search.before is not None and np.isinf(search.before).any()
            if infinite or self.measures_all:
                # no bound holds for infinite distances
                found[k] = best_with_long(search, self.lengths, self.model._run, None)
            else:
                bounded.append(k)
        searches = [wanted[k][0] for k in bounded]
        for k, search, best in zip(bounded, searches, self.model._run_all(searches), strict=True):
            found[k] = best_with_long(search, self.long, self.model._run, best)
        return found

    def best_drawn(
        self, search: ShapeletSearch, sample: np.ndarray, known: np.ndarray
    ) -> ShapeletSplit | None:
        """The best of candidates that were drawn; `known` are their distances."""
        where = np.column_stack(
            [
                np.repeat(sample, len(search.ways), axis=0),
                np.tile(range(len(search.ways)), len(sample)),
            ]
        )
        most = np.full(len(where), np.iinfo(np.int64).max)
        known = np.repeat(known, len(search.ways), axis=0)
        return search.measure(most, np.full(len(where), np.inf), where, self.model._run, known)

    def draw(self, members: np.ndarray) -> np.ndarray | None:
        """Draw candidates: length, place among the members, start, channel."""
        count = self.model.max_candidates
        if count is None:
            return None
        sizes = self.series.lengths[members] - np.array(self.lengths)[:, np.newaxis] + 1
        sizes = np.maximum(sizes, 0)
        ends = np.cumsum(sizes.ravel() * self.series.n_channels)
        if count >= ends[-1]:
            return None
        # of NumPy's integers small ones would overflow
        drawn = sample_without_replacement(ends[-1], int(count), random_state=self.random)
        chosen = np.sort(drawn)
        block = np.searchsorted(ends, chosen, side="right")
        inside = chosen - np.concatenate([[0], ends])[block]
        length, row = np.divmod(block, len(members))
        start, channel = np.divmod(inside, self.series.n_channels)
        return np.column_stack([np.array(self.lengths)[length], row, start, channel])
