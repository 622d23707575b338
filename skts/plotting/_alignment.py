"""Plots of warping paths."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike

from .._metrics import Distance, distance_of
from ..metrics import pairwise_distances, warping_path
from ..neighbors import DTWNearestNeighbor, DTWNearestNeighborRegressor, DTWNeighbors
from ._costs import as_sets, first_point, label_of, matching_costs
from ._style import COSTS, PanelsMixin, check_fitted, color_of, is_place, points_of

__all__ = ["AlignmentDisplay"]

#: Points of either series that an image shows at most; of longer ones every n-th.
_MOST_PIXELS = 1000


class AlignmentDisplay(PanelsMixin):
    """The warping path of two series on the matrix of their costs, the series along its sides.

    The costs are those of matching two points under the distance. Where the path leaves points out,
    under "erp", "edr" and "lcss", its line is broken, and the series have crosses.

    Make one with `from_series`, or with `from_estimator`.

    Parameters
    ----------
    x : ndarray of shape (n_channels, n_timepoints)
        The series whose time runs upwards.
    y : ndarray of shape (n_channels, n_timepoints)
        The series whose time runs to the right.
    path : ndarray of shape (n_steps, 2)
        Matched time points of `x` and `y`, of whole series also under "ddtw".
    distance : float
        The distance along the path.
    cost : {"squared", "absolute"} or callable, default "squared"
        Cost of matching two points, as `skts.metrics.warping_path` takes it.
    radius : int or None, default None
        Half width of the band, in time points; None means no band.
    names : tuple of str, default ("x", "y")
        What the series are called.
    metric : str, default "dtw"
        The distance by its name, see `skts.metrics.pairwise_distances`.
    metric_params : dict or None, default None
        Parameters of the distance; None takes their defaults.

    Attributes
    ----------
    figure_ : matplotlib.figure.Figure
        The figure, once plotted.
    axes_ : ndarray of matplotlib.axes.Axes
        The matrix, then `x` on its left and `y` above it, if they are shown.
    image_ : matplotlib.image.AxesImage
        The costs.
    colorbar_ : matplotlib.colorbar.Colorbar or None
        The scale of the costs; None in axes that were given.
    path_line_ : matplotlib.lines.Line2D
        The path, with NaN where it leaves points out.
    gap_lines_ : list of matplotlib.lines.Line2D
        Crosses on the points that the path leaves out: one for each channel of `x`, then of `y`.
        Empty if the series are not shown, or the distance leaves no points out.

    See Also
    --------
    skts.metrics.warping_path : The path as an array.

    Examples
    --------
    >>> from skts.datasets import load_gunpoint
    >>> from skts.plotting import AlignmentDisplay
    >>> X = load_gunpoint().data
    >>> display = AlignmentDisplay.from_series(X[0], X[3], window=0.2)
    >>> len(display.axes_)
    3
    """

    def __init__(
        self,
        x: np.ndarray,
        y: np.ndarray,
        path: np.ndarray,
        distance: float,
        cost: str | Callable[[float, float], float] = "squared",
        radius: int | None = None,
        names: tuple[str, str] = ("x", "y"),
        metric: str = "dtw",
        metric_params: dict[str, Any] | None = None,
    ) -> None:
        self.x = x
        self.y = y
        self.path = path
        self.distance = distance
        self.cost = cost
        self.radius = radius
        self.names = names
        self.metric = metric
        self.metric_params = metric_params

    @classmethod
    def from_series(
        cls,
        x: ArrayLike,
        y: ArrayLike,
        *,
        metric: str = "dtw",
        metric_params: dict[str, Any] | None = None,
        window: float | None = None,
        cost: str | Callable[[float, float], float] = "squared",
        alignment: str = "global",
        names: tuple[str, str] = ("x", "y"),
        series: bool = True,
        axes: Any = None,
    ) -> Self:
        """Align two series, and plot the path.

        Parameters
        ----------
        x, y : array-like of shape (n_timepoints,) or (n_channels, n_timepoints)
            Two series, of any lengths and the same number of channels.
        metric : str, default "dtw"
            A distance by its name, see `skts.metrics.pairwise_distances`.
        metric_params : dict or None, default None
            Parameters of the distance; None takes their defaults.
        window : int, float or None, default None
            Sakoe-Chiba band, as in `skts.metrics.warping_path`.
        cost : {"squared", "absolute"} or callable, default "squared"
            Cost of matching two points, as `skts.metrics.warping_path` takes it.
        alignment : {"global", "subsequence", "supersequence"}, default "global"
            Which of the series may be matched in part, under "dtw", "dog_keeper" and "ddtw".
        names : tuple of str, default ("x", "y")
            What the series are called.
        series : bool, default True
            Whether to draw the series beside the matrix.
        axes : matplotlib.axes.Axes, array-like of these or None, default None
            Where to draw: the matrix, and with ``series=True`` also `x` and `y`; None makes a
            figure.

        Returns
        -------
        display : AlignmentDisplay
            The display, plotted.

        Raises
        ------
        ValueError
            If `warping_path` refuses the series or options, there are not two names, or `axes` are
            not as many as there are panels.
        """
        if not (isinstance(names, list | tuple) and len(names) == 2):
            raise ValueError(f"names={names!r} are not those of two series.")
        options: Any = {"metric": metric, "metric_params": metric_params, "cost": cost}
        options |= {"window": window, "alignment": alignment}
        path, distance = warping_path(x, y, **options)
        first, second = points_of(x, "x"), points_of(y, "y")
        left, right, warping = distance_of(**options).sides(*as_sets(first, second))
        radius = None
        if window is not None:
            radius = int(warping.radius(left.n_timepoints, right.n_timepoints))
        path = path + first_point(metric)
        display = cls(first, second, path, distance, cost, radius, names, metric, metric_params)
        return display.plot(series=series, axes=axes)

    @classmethod
    def from_estimator(
        cls,
        estimator: DTWNearestNeighbor | DTWNearestNeighborRegressor | DTWNeighbors,
        x: ArrayLike,
        *,
        rank: int = 0,
        series: bool = True,
        axes: Any = None,
    ) -> Self:
        """Align a series with one of its nearest training series, and plot the path.

        Parameters
        ----------
        estimator : DTWNearestNeighbor, DTWNearestNeighborRegressor or DTWNeighbors
            A fitted estimator, not with ``metric="precomputed"``. With ``rotation_invariant=True``
            the neighbour is shown as it was rotated.
        x : array-like of shape (n_timepoints,) or (n_channels, n_timepoints)
            A series.
        rank : int, default 0
            Which neighbour: 0 is the nearest.
        series : bool, default True
            Whether to draw the series beside the matrix.
        axes : matplotlib.axes.Axes, array-like of these or None, default None
            Where to draw: the matrix, and with ``series=True`` also `x` and its neighbour; None
            makes a figure.

        Returns
        -------
        display : AlignmentDisplay
            The display, plotted.

        Raises
        ------
        ValueError
            If the estimator holds distances and no series, there is no such neighbour, or `axes`
            are not as many as there are panels.
        """
        check_fitted(estimator, (DTWNearestNeighbor, DTWNearestNeighborRegressor, DTWNeighbors))
        if estimator.metric == "precomputed":
            raise ValueError("An estimator with metric='precomputed' holds no series to align.")
        if not is_place(rank, estimator.n_samples_fit_):
            raise ValueError(
                f"rank={rank!r} is not among the {estimator.n_samples_fit_} training series."
            )
        x = points_of(x, "x")
        found = estimator.kneighbors([x], rank + 1, return_distance=False)[0, rank]
        kept = estimator._series
        neighbor = kept.values[found, :, : kept.lengths[found]]
        names_of = ("metric", "metric_params", "window", "cost", "alignment")
        options = {name: getattr(estimator, name) for name in names_of}
        if estimator.rotation_invariant:
            turned = [np.roll(neighbor, -shift, axis=1) for shift in range(neighbor.shape[1])]
            neighbor = turned[int(np.argmin(pairwise_distances([x], turned, **options)[0]))]
        names = ("query", f"training series {found}{_target_of(estimator, found)}")
        return cls.from_series(x, neighbor, **options, names=names, series=series, axes=axes)

    def plot(self, *, series: bool = True, axes: Any = None) -> Self:
        """Draw the display.

        Parameters
        ----------
        series : bool, default True
            Whether to draw the series beside the matrix.
        axes : matplotlib.axes.Axes, array-like of these or None, default None
            Where to draw; None makes a figure.

        Returns
        -------
        display : AlignmentDisplay
            The display itself.

        Raises
        ------
        ValueError
            If `axes` are not as many as there are panels.
        """
        from matplotlib.colors import PowerNorm

        n_panels = 3 if series else 1
        own = axes is None
        axes = self._panels(axes, n_panels, partial(self._make_axes, n_panels))
        matrix = axes[0]
        n, m = self.x.shape[1], self.y.shape[1]
        distance = distance_of(self.metric, self.metric_params, cost=self.cost)
        costs, steps = self._costs(distance)
        # the square root of the cost: otherwise all low costs would have one colour
        norm = PowerNorm(0.5) if distance.warping.squared else None
        # the centres of pixels are the points that they show
        ends = [
            first_point(self.metric) + step * (place - 0.5)
            for count, step in zip(costs.shape[::-1], steps[::-1], strict=True)
            for place in (0, count)
        ]
        self.image_ = matrix.imshow(
            costs, origin="lower", aspect="auto", cmap=COSTS, norm=norm, extent=ends
        )
        matrix.set_facecolor("0.85")
        matched, skips = self._line(), distance.warping.borders
        for color, width in (("k", 4), ("w", 2)):
            # a point between two gaps has no line
            dots = {"marker": "o", "markersize": width, "markeredgewidth": 0} if skips else {}
            (self.path_line_,) = matrix.plot(
                matched[:, 1], matched[:, 0], color=color, linewidth=width, label="path", **dots
            )
        matrix.set(xlim=(-0.5, m - 0.5), ylim=(-0.5, n - 0.5))
        labels = [f"time point of {name}" for name in self.names]
        matrix.set(xlabel=labels[1], ylabel=labels[0])
        self.colorbar_ = None
        if own:  # beside matrix and top alike, which share their time
            beside = [matrix, *axes[2:]]
            self.colorbar_ = self.figure_.colorbar(self.image_, ax=beside, label=label_of(distance))
        title = f"distance {self.distance:.4g}"
        (matrix if n_panels == 1 else axes[2]).set_title(title)
        self.gap_lines_ = []
        if series:
            left, top = axes[1:]
            for channel in range(len(self.x)):
                left.plot(self.x[channel], np.arange(n), color=color_of(channel))
                top.plot(self.y[channel], color=color_of(channel))
            if skips:
                self.gap_lines_ = self._mark_gaps(left, top)
            left.set_xlabel("value")
            top.set_ylabel("value")
            left.set_ylim(matrix.get_ylim())
            top.set_xlim(matrix.get_xlim())
            if own:  # they share the time axes of the matrix
                left.invert_xaxis()
                matrix.tick_params(labelleft=False, left=False)
                matrix.set_ylabel("")
                left.set_ylabel(labels[0])
                top.tick_params(labelbottom=False)
            else:
                left.set(ylabel=labels[0])
                top.set(xlabel=labels[1])
        return self

    def _make_axes(self, n_panels: int) -> list[Any]:
        """A figure: the matrix, and the series along its sides."""
        import matplotlib.pyplot as plt

        if n_panels == 1:
            return [plt.subplots(figsize=(6, 5), layout="constrained")[1]]
        figure = plt.figure(figsize=(7.5, 6.5), layout="constrained")
        grid = figure.add_gridspec(2, 2, width_ratios=[1, 4], height_ratios=[1, 4])
        return [figure.add_subplot(grid[place]) for place in ((1, 1), (1, 0), (0, 1))]

    def _costs(self, distance: Distance) -> tuple[np.ndarray, tuple[int, ...]]:
        """Costs of pairs of every n-th point, NaN outside of the band; and n."""
        steps = tuple(-(-one.shape[1] // _MOST_PIXELS) for one in (self.x, self.y))
        costs = matching_costs(self.x, self.y, distance, steps)
        if self.radius is not None:
            rows, columns = (
                np.arange(n) * step for n, step in zip(costs.shape, steps, strict=True)
            )
            costs[np.abs(rows[:, np.newaxis] - columns) > self.radius] = np.nan
        return costs, steps

    def _line(self) -> np.ndarray:
        """The path, with NaN between two pairs of points where some are left out."""
        gaps = np.flatnonzero((np.diff(self.path, axis=0) > 1).any(axis=1)) + 1
        return np.insert(self.path.astype(np.float64), gaps, np.nan, axis=0)

    def _mark_gaps(self, left: Any, top: Any) -> list[Any]:
        """Crosses on the points of both series that the path leaves out."""
        style = {"marker": "x", "linestyle": "", "color": "k", "label": "left out"}
        lines = []
        for side, (ax, points) in enumerate(((left, self.x), (top, self.y))):
            times = np.setdiff1d(np.arange(points.shape[1]), self.path[:, side])
            for channel in points[:, times]:
                lines += ax.plot(*((channel, times) if ax is left else (times, channel)), **style)
        return lines


def _target_of(
    estimator: DTWNearestNeighbor | DTWNearestNeighborRegressor | DTWNeighbors, row: int
) -> str:
    """The class or target of a training series, in brackets; nothing where it has none."""
    if isinstance(estimator, DTWNearestNeighbor):
        return f" (class {estimator.classes_[estimator._y[row]]})"
    if isinstance(estimator, DTWNearestNeighborRegressor):
        targets = ", ".join(f"{target:.4g}" for target in np.ravel(estimator._y[row]))
        return f" (target {targets})"
    return ""
