"""Plots of shapelet trees."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike
from sklearn.utils.validation import check_consistent_length, column_or_1d

from ..tree import Shapelet, ShapeletTree, ShapeletTreeClassifier, ShapeletTreeRegressor
from ._style import PanelsMixin, check_fitted, check_most, color_of, points_of

__all__ = ["ShapeletMatchDisplay", "ShapeletTreeDisplay"]


@dataclass(frozen=True)
class _Node:
    """Parts of an inner node that are drawn."""

    number: int
    literals: list[Shapelet]
    sources: list[np.ndarray]
    distances: np.ndarray
    #: Places in `classes`, or the numbers that go with the series.
    targets: np.ndarray
    threshold: float


class ShapeletTreeDisplay(PanelsMixin):
    """A shapelet tree, each shapelet on the series it comes from, and the order lines of its nodes.

    Leaves show their class, or for a `ShapeletTreeRegressor` the mean of their targets. On the
    order line of a node the series have their distances, and a row for each class, or the height of
    their target.

    Make one with `from_estimator`.

    Parameters
    ----------
    tree : ShapeletTree
        The tree as flat arrays.
    classes : ndarray of shape (n_classes,) or None
        Class labels; None for a tree that predicts numbers.
    nodes : list
        Inner nodes that are drawn: shapelets, their series, and distances of the node's series.

    Attributes
    ----------
    figure_ : matplotlib.figure.Figure
        The figure, once plotted.
    axes_ : ndarray of matplotlib.axes.Axes
        The tree, then two for each inner node: its shapelets, and its order line.
    shapelet_lines_ : list of matplotlib.lines.Line2D
        The shapelets, in the order of `shapelets_` of the nodes that are drawn.
    threshold_lines_ : list of matplotlib.lines.Line2D
        The cuts of the order lines.

    Examples
    --------
    >>> from skts import ShapeletTreeClassifier
    >>> from skts.datasets import load_gunpoint
    >>> from skts.plotting import ShapeletTreeDisplay
    >>> X, y = load_gunpoint(split="train", return_X_y=True)
    >>> model = ShapeletTreeClassifier(min_length=40, max_length=40, logic=()).fit(X, y)
    >>> display = ShapeletTreeDisplay.from_estimator(model, X, y)
    >>> len(display.axes_)
    3
    """

    def __init__(self, tree: ShapeletTree, classes: np.ndarray | None, nodes: list[Any]) -> None:
        self.tree = tree
        self.classes = classes
        self.nodes = nodes

    @classmethod
    def from_estimator(
        cls,
        estimator: ShapeletTreeClassifier | ShapeletTreeRegressor,
        X: ArrayLike | list[ArrayLike],
        y: ArrayLike,
        *,
        max_nodes: int = 5,
        axes: Any = None,
    ) -> Self:
        """Plot a tree with the series that it was fitted on.

        Parameters
        ----------
        estimator : ShapeletTreeClassifier or ShapeletTreeRegressor
            A fitted tree.
        X : array-like or list of array-like
            The training series.
        y : array-like of shape (n_samples,)
            Their classes, or for a regressor their targets.
        max_nodes : int, default 5
            Inner nodes to draw: the first ones, as in `tree_`.
        axes : matplotlib.axes.Axes, array-like of these or None, default None
            Where to draw: the tree, then two for each inner node; None makes a figure.

        Returns
        -------
        display : ShapeletTreeDisplay
            The display, plotted.

        Raises
        ------
        ValueError
            If `X` are not the series of `fit`, `y` holds another class or no numbers for a
            regressor, `max_nodes` is no number of nodes, or `axes` are not as many as there are
            panels.
        """
        check_fitted(estimator, (ShapeletTreeClassifier, ShapeletTreeRegressor))
        series = estimator._validate_series(X)
        target: np.ndarray = column_or_1d(y)
        check_consistent_length(series.values, target)
        check_most("max_nodes", max_nodes)
        classes = None
        if isinstance(estimator, ShapeletTreeClassifier):
            classes = estimator.classes_
            known = set(classes.tolist())
            for label in target.tolist():
                if label not in known:
                    raise ValueError(f"y holds {label!r}, which is no class of the tree.")
            target = np.searchsorted(classes, target)
        else:
            target = estimator._validate_target(X, target)
        for literal in estimator.shapelets_:
            window = slice(literal.start, literal.start + literal.length)
            if literal.series >= len(series) or not np.array_equal(
                series.values[literal.series, literal.channel, window], literal.values
            ):
                raise ValueError(
                    f"X are not the series of fit: series {literal.series} does not hold the "
                    f"shapelet that starts there at {literal.start}."
                )
        tree, distances = estimator.tree_, estimator.transform(X)
        passed = estimator.decision_path(X).toarray().astype(bool)
        nodes = []
        for number in np.flatnonzero(tree.children_left >= 0)[:max_nodes].tolist():
            first, members = tree.first_literal[number], passed[:, number]
            literals = estimator.shapelets_[first : first + tree.n_literals[number]]
            joined = distances[members, first]
            for k, literal in enumerate(literals[1:], first + 1):
                join = np.maximum if literal.logic == "and" else np.minimum
                joined = join(joined, distances[members, k])
            sources = [
                series.values[literal.series, literal.channel, : series.lengths[literal.series]]
                for literal in literals
            ]
            threshold = float(tree.threshold[number])
            nodes.append(_Node(number, literals, sources, joined, target[members], threshold))
        return cls(tree, classes, nodes).plot(axes=axes)

    def plot(self, *, axes: Any = None) -> Self:
        """Draw the display.

        Parameters
        ----------
        axes : matplotlib.axes.Axes, array-like of these or None, default None
            Where to draw; None makes a figure.

        Returns
        -------
        display : ShapeletTreeDisplay
            The display itself.

        Raises
        ------
        ValueError
            If `axes` are not as many as there are panels.
        """
        n_panels = 1 + 2 * len(self.nodes)
        axes = self._panels(axes, n_panels, self._make_axes)
        self.shapelet_lines_: list[Any] = []
        self.threshold_lines_: list[Any] = []
        self._draw_tree(axes[0])
        for node, left, right in zip(self.nodes, axes[1::2], axes[2::2], strict=True):
            self._draw_shapelets(node, left)
            self._draw_order_line(node, right)
        return self

    def _make_axes(self) -> list[Any]:
        """A figure: the tree on top, below it one row for each node."""
        import matplotlib.pyplot as plt

        rows = len(self.nodes)
        figure = plt.figure(figsize=(9, 2.4 + 2.0 * rows), layout="constrained")
        grid = figure.add_gridspec(1 + rows, 2, height_ratios=[1.2] + [1.0] * rows)
        axes = [figure.add_subplot(grid[0, :])]
        for row in range(rows):
            axes += [figure.add_subplot(grid[1 + row, side]) for side in (0, 1)]
        return axes

    def _draw_tree(self, ax: Any) -> None:
        """Draw nodes as boxes: leaves beside each other, parents above the middle of theirs."""
        tree = self.tree
        places: dict[int, tuple[float, int]] = {}
        leaves = 0

        def place(node: int, depth: int) -> None:
            nonlocal leaves
            if tree.children_left[node] < 0:
                places[node] = (float(leaves), -depth)
                leaves += 1
                return
            children = int(tree.children_left[node]), int(tree.children_right[node])
            for child in children:
                place(child, depth + 1)
            places[node] = (sum(places[child][0] for child in children) / 2, -depth)

        place(0, 0)
        for node, (x, height) in places.items():
            inner = tree.children_left[node] >= 0
            if inner:
                for child, text in (
                    (int(tree.children_left[node]), "near"),
                    (int(tree.children_right[node]), "far"),
                ):
                    there = places[child]
                    ax.plot([x, there[0]], [height, there[1]], color="0.6", zorder=1)
                    ax.annotate(
                        text,
                        ((x + there[0]) / 2, (height + there[1]) / 2),
                        ha="center",
                        va="center",
                        color="0.3",
                        fontsize="small",
                        bbox={"boxstyle": "round,pad=0.1", "facecolor": "w", "edgecolor": "none"},
                    )
                text = f"node {node}"
                color: Any = "0.92"
            else:
                text, color = self._leaf(node)
            text += f"\n{tree.n_node_samples[node]} series"
            box = {"boxstyle": "round", "facecolor": color}
            ax.text(x, height, text, ha="center", va="center", bbox=box, fontsize="small")
        depth = -min(height for _, height in places.values())
        ax.set(xlim=(-0.6, leaves - 0.4), ylim=(-depth - 0.5, 0.5))
        ax.set_axis_off()

    def _leaf(self, node: int) -> tuple[str, Any]:
        """Text and colour of a leaf: of its class, or the darker, the larger its value is."""
        from matplotlib.colors import to_rgb

        value = self.tree.value
        # mixed with white rather than transparent: branches end behind the box
        if self.classes is None:
            leaves = value[self.tree.children_left < 0]
            spread = float(np.ptp(leaves)) or 1.0
            share = 0.1 + 0.4 * (value[node] - leaves.min()) / spread
            text, color = f"value {value[node]:.4g}", color_of(0)
        else:
            best, share = int(value[node].argmax()), 0.5
            label = self.classes[best]
            text = label if isinstance(label, str) else f"class {label}"
            color = color_of(best)
        return text, [1 - share * (1 - part) for part in to_rgb(color)]

    def _draw_shapelets(self, node: _Node, ax: Any) -> None:
        """Draw the shapelets of a node on their series, one above the other."""
        base = 0.0
        for number, (literal, points) in enumerate(zip(node.literals, node.sources, strict=True)):
            spread = float(np.ptp(points)) or 1.0
            curve = (points - points.min()) / spread + base
            ax.plot(curve, color="0.6", linewidth=0.8)
            window = np.arange(literal.start, literal.start + literal.length)
            (line,) = ax.plot(window, curve[window], color=color_of(number + 3), linewidth=2.5)
            self.shapelet_lines_.append(line)
            text = f"series {literal.series}" + ("" if number == 0 else f" ({literal.logic})")
            ax.annotate(text, (0, base + 1.02), fontsize="small", color=color_of(number + 3))
            base += 1.3
        ax.set(title=f"node {node.number}", xlabel="time point", yticks=[], ylim=(-0.1, base))

    def _draw_order_line(self, node: _Node, ax: Any) -> None:
        """Draw the distances of a node's series by class or target, and the cut.

        Series that have no room for a shapelet are infinitely far: arrows beyond all others.
        """
        far = np.isinf(node.distances)
        beyond = 1.1 * max(node.threshold, float(np.max(node.distances, where=~far, initial=0.0)))
        places = np.where(far, beyond, node.distances)
        if self.classes is None:
            heights, kinds = node.targets, np.zeros(len(places), np.int64)
            near, size = "o", 4
            ax.set(ylabel="target")
        else:
            present, heights = np.unique(node.targets, return_inverse=True)
            kinds, near, size = node.targets, "|", 14
            names = [str(self.classes[label]) for label in present]
            ax.set(yticks=range(len(present)), yticklabels=names, ylim=(-0.7, len(present) - 0.3))
            ax.set(ylabel="class")
        for kind in np.unique(kinds):
            for marker, width, chosen in ((near, size, ~far), (">", 7, far)):
                own = chosen & (kinds == kind)
                color = color_of(kind)
                ax.plot(places[own], heights[own], marker, color=color, markersize=width)
        line = ax.axvline(node.threshold, color="k", linestyle="--", linewidth=1)
        self.threshold_lines_.append(line)
        ax.set(title=f"distance, cut at {node.threshold:.3g}", xlabel="distance to the shapelet")


class ShapeletMatchDisplay(PanelsMixin):
    """A series, and where the shapelets that decide about it match best.

    Make one with `from_estimator`.

    Parameters
    ----------
    points : ndarray of shape (n_channels, n_timepoints)
        The series.
    matches : list of (Shapelet, int, float)
        Shapelets on its way through the tree, where they match and how far they are.
    label : object
        The class that is predicted, or the number.

    Attributes
    ----------
    figure_ : matplotlib.figure.Figure
        The figure, once plotted.
    axes_ : ndarray of matplotlib.axes.Axes
        One for each shapelet.
    shapelet_lines_ : list of matplotlib.lines.Line2D
        The shapelets, scaled to the windows that they match.

    Examples
    --------
    >>> from skts import ShapeletTreeClassifier
    >>> from skts.datasets import load_gunpoint
    >>> from skts.plotting import ShapeletMatchDisplay
    >>> X, y = load_gunpoint(split="train", return_X_y=True)
    >>> model = ShapeletTreeClassifier(min_length=40, max_length=40, logic=()).fit(X, y)
    >>> display = ShapeletMatchDisplay.from_estimator(model, X[3])
    >>> len(display.axes_)
    1
    """

    def __init__(
        self, points: np.ndarray, matches: list[tuple[Shapelet, int, float]], label: Any
    ) -> None:
        self.points = points
        self.matches = matches
        self.label = label

    @classmethod
    def from_estimator(
        cls,
        estimator: ShapeletTreeClassifier | ShapeletTreeRegressor,
        x: ArrayLike,
        *,
        axes: Any = None,
    ) -> Self:
        """Plot one series with the shapelets on its way through the tree.

        Parameters
        ----------
        estimator : ShapeletTreeClassifier or ShapeletTreeRegressor
            A fitted tree.
        x : array-like of shape (n_timepoints,) or (n_channels, n_timepoints)
            A series, new or not.
        axes : matplotlib.axes.Axes, array-like of these or None, default None
            Where to draw, one for each shapelet (one if there is none); None makes a figure.

        Returns
        -------
        display : ShapeletMatchDisplay
            The display, plotted.

        Raises
        ------
        ValueError
            If `axes` are not as many as there are panels.
        """
        check_fitted(estimator, (ShapeletTreeClassifier, ShapeletTreeRegressor))
        one = [points := points_of(x, "x")]
        distances, starts = estimator.transform(one)[0], estimator.locate(one)[0]
        passed = set(estimator.decision_path(one).indices.tolist())
        matches = [
            (literal, int(start), float(distance))
            for literal, start, distance in zip(
                estimator.shapelets_, starts, distances, strict=True
            )
            if literal.node in passed
        ]
        return cls(points, matches, estimator.predict(one)[0]).plot(axes=axes)

    def plot(self, *, axes: Any = None) -> Self:
        """Draw the display.

        Parameters
        ----------
        axes : matplotlib.axes.Axes, array-like of these or None, default None
            Where to draw; None makes a figure.

        Returns
        -------
        display : ShapeletMatchDisplay
            The display itself.

        Raises
        ------
        ValueError
            If `axes` are not as many as there are panels.
        """
        axes = self._panels(axes, max(1, len(self.matches)), self._make_axes)
        self.shapelet_lines_ = []
        if not self.matches:
            axes[0].plot(self.points[0], color="0.5", linewidth=0.8)
        for (literal, start, distance), ax in zip(self.matches, axes, strict=False):
            points = self.points[literal.channel]
            ax.plot(points, color="0.5", linewidth=0.8)
            ax.set(
                title=f"node {literal.node}, {literal.logic}: distance {distance:.3g}, "
                f"cut at {literal.threshold:.3g}",
                ylabel="value",
            )
            if start < 0:
                continue
            window = points[start : start + literal.length]
            shape = literal.values - literal.values.mean()
            spread = shape.std()
            shape = shape * (window.std() / spread if spread > 0 else 1.0) + window.mean()
            times = np.arange(start, start + literal.length)
            self.shapelet_lines_ += ax.plot(times, shape, color=color_of(1), linewidth=2)
        axes[-1].set(xlabel="time point")
        number = isinstance(self.label, float) and not self.label.is_integer()
        self.figure_.suptitle(
            f"predicted: {self.label:.4g}" if number else f"predicted: {self.label}"
        )
        return self

    def _make_axes(self) -> list[Any]:
        """A figure: a row for each shapelet on the way."""
        import matplotlib.pyplot as plt

        rows = max(1, len(self.matches))
        _, grid = plt.subplots(
            rows, figsize=(7, 1 + 1.6 * rows), squeeze=False, layout="constrained"
        )
        return list(grid[:, 0])
