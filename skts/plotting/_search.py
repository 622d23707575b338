"""Plots of the matches of a search."""

from __future__ import annotations

from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike

from ..neighbors import SubsequenceSearch
from ._style import PanelsMixin, check_fitted, color_of, is_place, normalized

__all__ = ["SearchDisplay"]


class SearchDisplay(PanelsMixin):
    """A series with the matches of queries, and each query with its matches on top of it.

    Make one with `from_estimator`.

    Parameters
    ----------
    points : ndarray of shape (n_timepoints,) or (n_channels, n_timepoints)
        The series; channels are drawn on top of each other.
    queries : list of ndarray of shape (n_points,) or (n_channels, n_points)
        The queries.
    distances : list of ndarray of shape (n_matches,)
        Distances of the matches of each query, best first.
    positions : list of ndarray of shape (n_matches, 2)
        Series and start of the matches of each query.
    shapes : list of ndarray of shape (n_matches, n_points) or (n_matches, n_channels, n_points)
        The points of the matches of each query.
    normalize : bool, default True
        Whether queries and matches are drawn z-normalised, each channel by itself.
    series : int, default 0
        Which series it is.

    Attributes
    ----------
    figure_ : matplotlib.figure.Figure
        The figure, once plotted.
    axes_ : ndarray of matplotlib.axes.Axes
        The series, and one for each query.
    span_patches_ : list of list of matplotlib.patches.Patch
        For each query the marks of its matches in the series.

    Examples
    --------
    >>> import numpy as np
    >>> from skts import SubsequenceSearch
    >>> from skts.plotting import SearchDisplay
    >>> x = np.random.default_rng(0).normal(size=300).cumsum()
    >>> model = SubsequenceSearch(window=0.1).fit(x.reshape(1, -1))
    >>> display = SearchDisplay.from_estimator(model, [np.hanning(30)], n_neighbors=2)
    >>> len(display.axes_), len(display.span_patches_[0])
    (2, 2)
    """

    def __init__(
        self,
        points: np.ndarray,
        queries: list[np.ndarray],
        distances: list[np.ndarray],
        positions: list[np.ndarray],
        shapes: list[np.ndarray],
        normalize: bool = True,
        series: int = 0,
    ) -> None:
        self.points = points
        self.queries = queries
        self.distances = distances
        self.positions = positions
        self.shapes = shapes
        self.normalize = normalize
        self.series = series

    @classmethod
    def from_estimator(
        cls,
        estimator: SubsequenceSearch,
        Q: ArrayLike | list[ArrayLike],
        *,
        n_neighbors: int = 3,
        series: int = 0,
        axes: Any = None,
    ) -> Self:
        """Search for queries, and plot what was found.

        Parameters
        ----------
        estimator : SubsequenceSearch
            A fitted estimator.
        Q : array-like of shape (n_queries, n_points) or (n_queries, n_channels, n_points), or list
            Queries of any lengths, one a row, with as many channels as the series.
        n_neighbors : int, default 3
            How many matches of each.
        series : int, default 0
            Which of the series of the estimator is drawn (row of `X`). Matches in other series are
            only shown in the panels of the queries.
        axes : matplotlib.axes.Axes, array-like of these or None, default None
            Where to draw: the series, and each query; None makes a figure.

        Returns
        -------
        display : SearchDisplay
            The display, plotted.

        Raises
        ------
        ValueError
            If there is no such series, or `axes` are not as many as there are panels.
        """
        check_fitted(estimator, SubsequenceSearch)
        every = estimator._series.parts
        if not is_place(series, len(every)):
            raise ValueError(f"series={series!r} is not among the {len(every)} of the estimator.")
        queries = list(estimator._validate_queries(Q))
        found = estimator.kneighbors(queries, n_neighbors)
        distances, positions, shapes = [], [], []
        for query, away, where in zip(queries, *found, strict=True):
            there = where[:, 0] >= 0
            distances.append(away[there])
            positions.append(where[there])
            length = query.shape[-1]
            matches = [every[row][..., start : start + length] for row, start in where[there]]
            shapes.append(np.array(matches).reshape(-1, *query.shape))
        display = cls(
            *(np.asarray(every[series]), queries, distances, positions, shapes),
            *(bool(estimator.normalize), series),
        )
        return display.plot(axes=axes)

    def plot(self, *, axes: Any = None) -> Self:
        """Draw the display.

        Parameters
        ----------
        axes : matplotlib.axes.Axes, array-like of these or None, default None
            Where to draw; None makes a figure.

        Returns
        -------
        display : SearchDisplay
            The display itself.

        Raises
        ------
        ValueError
            If `axes` are not as many as there are panels.
        """
        axes = self._panels(axes, 1 + len(self.queries), self._make_axes)
        top = axes[0]
        top.plot(self.points.T, color="0.4", linewidth=0.7)
        top.set(title=f"series {self.series}", xlabel="time point", ylabel="value")
        self.span_patches_ = []
        for number, ax in enumerate(axes[1:]):
            color = color_of(number)
            query, where = self.queries[number], self.positions[number]
            here = where[where[:, 0] == self.series, 1].tolist()
            self.span_patches_.append(
                [top.axvspan(p, p + query.shape[-1] - 1, color=color, alpha=0.3) for p in here]
            )
            for shapes in self._drawn(self.shapes[number]):
                ax.plot(shapes.T, color=color, alpha=0.6, linewidth=0.9)
            for (values,) in self._drawn(query[np.newaxis]):
                ax.plot(values, color="k", linewidth=2)
            away = ", ".join(f"{distance:.3g}" for distance in self.distances[number][:4])
            more = ", ..." if self.distances[number].size > 4 else ""
            ax.set(title=f"query {number}: matches at {away}{more}", xlabel="time point")
            ax.set(ylabel="normalised value" if self.normalize else "value")
        return self

    def _drawn(self, rows: np.ndarray) -> list[np.ndarray]:
        """Rows of each channel, as they are compared."""
        channels = [rows] if rows.ndim == 2 else list(np.moveaxis(rows, 1, 0))
        return [normalized(one) if self.normalize and one.size else one for one in channels]

    def _make_axes(self) -> list[Any]:
        """A figure: the series over the whole width, queries beside each other."""
        import matplotlib.pyplot as plt

        columns = min(3, len(self.queries))
        rows = -(-len(self.queries) // columns)
        figure = plt.figure(figsize=(4 * max(columns, 2), 2.4 * (1 + rows)), layout="constrained")
        grid = figure.add_gridspec(1 + rows, columns)
        axes = [figure.add_subplot(grid[0, :])]
        for number in range(len(self.queries)):
            axes.append(figure.add_subplot(grid[1 + number // columns, number % columns]))
        return axes
