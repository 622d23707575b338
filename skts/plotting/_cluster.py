"""Plots of clusters."""

from __future__ import annotations

from functools import partial
from typing import Any, NamedTuple, Self

import numpy as np
from numpy.typing import ArrayLike

from ..cluster import ClusterChoice, DTWKMeans, DTWKMedoids, KShapeClusterer
from ..cluster._choice import distance_options
from ..metrics import warping_path
from ._costs import first_point
from ._style import PanelsMixin, check_fitted, check_most, color_of, is_place

__all__ = ["ClusterChoiceDisplay", "ClusterDisplay"]


class ClusterDisplay(PanelsMixin):
    """Clusters of series: members, aligned with the centre, and the inertia of each iteration.

    Members are moved in time under k-Shape, and warped under the other distances: at each time
    point of the centre stands the mean of the points that the best warping path matches with it.

    Make one with `from_estimator`.

    Parameters
    ----------
    centers : ndarray of shape (n_clusters, n_timepoints)
        Centres.
    members : list of ndarray of shape (n_members, n_timepoints)
        Series of each cluster that are shown, under k-Shape normalised ones, moved or warped to
        match its centre; NaN where there is no point.
    sizes : ndarray of shape (n_clusters,)
        Number of all members of each cluster.
    history : ndarray of shape (n_iter,) or None
        Inertia after each iteration; None where it is not known, and then it is not shown.
    first_iteration : int, default 1
        The iteration of the first inertia; 0 is the start.

    Attributes
    ----------
    figure_ : matplotlib.figure.Figure
        The figure, once plotted.
    axes_ : ndarray of matplotlib.axes.Axes
        One for each cluster, and a last one for inertia if that is shown.
    center_lines_ : list of matplotlib.lines.Line2D
        The lines of the centres.

    Examples
    --------
    >>> from skts import KShapeClusterer
    >>> from skts.datasets import make_shifted_shapes
    >>> from skts.plotting import ClusterDisplay
    >>> X, _ = make_shifted_shapes(random_state=0)[:2]
    >>> model = KShapeClusterer(3, random_state=0).fit(X)
    >>> display = ClusterDisplay.from_estimator(model, X)
    >>> len(display.axes_)
    4
    """

    def __init__(
        self,
        centers: np.ndarray,
        members: list[np.ndarray],
        sizes: np.ndarray,
        history: np.ndarray | None,
        first_iteration: int = 1,
    ) -> None:
        self.centers = centers
        self.members = members
        self.sizes = sizes
        self.history = history
        self.first_iteration = first_iteration

    @classmethod
    def from_estimator(
        cls,
        estimator: DTWKMeans | DTWKMedoids | KShapeClusterer,
        X: ArrayLike | list[ArrayLike],
        *,
        channel: int = 0,
        max_members: int = 100,
        aligned: bool = True,
        objective: bool = True,
        axes: Any = None,
    ) -> Self:
        """Assign series to the clusters of an estimator, and plot them.

        Parameters
        ----------
        estimator : DTWKMeans, DTWKMedoids or KShapeClusterer
            A fitted estimator, not with ``metric="precomputed"``.
        X : array-like or list of array-like
            Series, those of `fit` or others.
        channel : int, default 0
            Which channel to show.
        max_members : int, default 100
            Members to draw of each cluster: the first ones.
        aligned : bool, default True
            Whether to move or warp members so that they match the centre.
        objective : bool, default True
            Whether to show inertia by iteration, too. After `partial_fit` there is no ``history_``,
            and clusters alone are shown.
        axes : matplotlib.axes.Axes, array-like of these or None, default None
            Where to draw, one for each cluster and one for inertia; None makes a figure.

        Returns
        -------
        display : ClusterDisplay
            The display, plotted.

        Raises
        ------
        ValueError
            If `axes` are not as many as there are panels, there is no such channel, `max_members`
            is no number of series, or the estimator was fitted to distances.
        """
        kinds = (DTWKMeans, DTWKMedoids)
        check_fitted(estimator, (*kinds, KShapeClusterer))
        if not is_place(channel, estimator.n_channels_):
            raise ValueError(f"channel={channel!r} is not among the {estimator.n_channels_} of X.")
        check_most("max_members", max_members)
        centers = estimator.cluster_centers_
        if centers is None:
            raise ValueError("An estimator with metric='precomputed' holds no series to draw.")
        centers = centers[:, channel] if centers.ndim == 3 else centers
        shown = _Shown(channel, max_members, aligned)
        if isinstance(estimator, kinds):
            labels, members = _warped(estimator, X, centers, shown)
        else:
            labels, moved = estimator._aligned(X, move=aligned)
            members = [
                moved[labels == label, channel][:max_members] for label in range(len(centers))
            ]
        sizes = np.bincount(labels, minlength=len(centers))
        first = 0 if isinstance(estimator, kinds) else 1
        history = getattr(estimator, "history_", None)  # partial_fit keeps none
        display = cls(centers, members, sizes, history, first)
        return display.plot(objective=objective, axes=axes)

    def plot(self, *, objective: bool = True, axes: Any = None) -> Self:
        """Draw the display.

        Parameters
        ----------
        objective : bool, default True
            Whether to show inertia by iteration, too, where it is known.
        axes : matplotlib.axes.Axes, array-like of these or None, default None
            Where to draw; None makes a figure.

        Returns
        -------
        display : ClusterDisplay
            The display itself.

        Raises
        ------
        ValueError
            If `axes` are not as many as there are panels.
        """
        history = self.history if objective else None
        n_panels = len(self.centers) + (history is not None)
        axes = self._panels(axes, n_panels, partial(_make_axes, n_panels))
        self.center_lines_ = []
        for label, ax in enumerate(axes[: len(self.centers)]):
            if len(self.members[label]):
                ax.plot(self.members[label].T, color="0.6", alpha=0.3, linewidth=0.7)
            self.center_lines_ += ax.plot(self.centers[label], color=color_of(label), linewidth=2)
            ax.set(title=f"cluster {label}: {self.sizes[label]} series")
            ax.set(xlabel="time point", ylabel="value")
        if history is not None:
            ax = axes[-1]
            iterations = self.first_iteration + np.arange(len(history))
            ax.plot(iterations, history, "o-", color="0.2")
            ax.set(title="objective", xlabel="iteration", ylabel="inertia")
            ax.xaxis.get_major_locator().set_params(integer=True)
        return self


def _make_axes(n_panels: int) -> list[Any]:
    """A figure: panels in rows of four."""
    import matplotlib.pyplot as plt

    columns = min(4, n_panels)
    rows = -(-n_panels // columns)
    _, grid = plt.subplots(
        rows, columns, figsize=(3.2 * columns, 2.4 * rows), squeeze=False, layout="constrained"
    )
    axes = list(grid.ravel())
    for spare in axes[n_panels:]:
        spare.remove()
    return axes[:n_panels]


class _Shown(NamedTuple):
    """Of each cluster the channel and the members to draw, and whether to align them."""

    channel: int
    max_members: int
    aligned: bool


def _warped(
    estimator: DTWKMeans | DTWKMedoids, X: Any, centers: np.ndarray, shown: _Shown
) -> tuple[np.ndarray, list[np.ndarray]]:
    """Labels of series, and the members of each cluster, warped to match the centre."""
    labels, series = estimator.predict(X), estimator._validate_series(X)
    members = []
    for label, center in enumerate(estimator.cluster_centers_):
        rows = np.flatnonzero(labels == label)[: shown.max_members]
        width = centers.shape[1] if shown.aligned else series.n_timepoints
        drawn = np.full((rows.size, width), np.nan)
        known = np.atleast_2d(center)
        known = known[:, ~np.isnan(known[0])]
        for place, row in enumerate(rows):
            x = series.values[row, :, : series.lengths[row]]
            if shown.aligned:
                drawn[place, : known.shape[1]] = _matched(estimator, known, x, shown.channel)
            else:
                drawn[place, : x.shape[1]] = x[shown.channel]
        members.append(drawn)
    return labels, members


def _matched(
    estimator: DTWKMeans | DTWKMedoids, center: np.ndarray, x: np.ndarray, channel: int
) -> np.ndarray:
    """At each point of a centre the mean of the points of a series that are matched with it."""
    options = distance_options(estimator)
    only = slice(channel, channel + 1) if estimator.metric == "msm" else slice(None)
    path, _ = warping_path(center[only], x[only], engine=estimator.engine, **options)
    path = path + first_point(estimator.metric)
    n = center.shape[1]
    counts = np.bincount(path[:, 0], minlength=n)
    sums = np.bincount(path[:, 0], x[channel, path[:, 1]], minlength=n)
    return np.where(counts > 0, sums / np.maximum(counts, 1), np.nan)


class ClusterChoiceDisplay(PanelsMixin):
    """Inertia and mean silhouette by the number of clusters, with the number that was chosen.

    Make one with `from_choice`.

    Parameters
    ----------
    n_clusters : ndarray of shape (n_tried,)
        Numbers of clusters.
    inertia, silhouette : ndarray of shape (n_tried,)
        Of the fits with these numbers.
    best : int
        The number that was chosen.

    Attributes
    ----------
    figure_ : matplotlib.figure.Figure
        The figure, once plotted.
    axes_ : ndarray of matplotlib.axes.Axes
        That of the inertia and that of the silhouette.

    Examples
    --------
    >>> from skts import DTWKMedoids
    >>> from skts.cluster import choose_n_clusters
    >>> from skts.datasets import make_warped_shapes
    >>> from skts.plotting import ClusterChoiceDisplay
    >>> X, _ = make_warped_shapes(30, 40, random_state=0)
    >>> found = choose_n_clusters(DTWKMedoids(init="build"), X, range(2, 6))
    >>> display = ClusterChoiceDisplay.from_choice(found)
    >>> len(display.axes_)
    2
    """

    def __init__(
        self, n_clusters: np.ndarray, inertia: np.ndarray, silhouette: np.ndarray, best: int
    ) -> None:
        self.n_clusters = n_clusters
        self.inertia = inertia
        self.silhouette = silhouette
        self.best = best

    @classmethod
    def from_choice(cls, choice: ClusterChoice, *, axes: Any = None) -> Self:
        """Plot what `skts.cluster.choose_n_clusters` returned.

        Parameters
        ----------
        choice : ClusterChoice
            The record.
        axes : matplotlib.axes.Axes, array-like of these or None, default None
            Where to draw, two of them; None makes a figure.

        Returns
        -------
        display : ClusterChoiceDisplay
            The display, plotted.

        Raises
        ------
        TypeError
            If the record is another one.
        ValueError
            If `axes` are not two.
        """
        if not isinstance(choice, ClusterChoice):
            raise TypeError(
                f"choice is a {type(choice).__name__}; what choose_n_clusters returns is needed "
                "here."
            )
        return cls(choice.n_clusters, choice.inertia, choice.silhouette, choice.best).plot(
            axes=axes
        )

    def plot(self, *, axes: Any = None) -> Self:
        """Draw the display.

        Parameters
        ----------
        axes : matplotlib.axes.Axes, array-like of these or None, default None
            Where to draw; None makes a figure.

        Returns
        -------
        display : ClusterChoiceDisplay
            The display itself.

        Raises
        ------
        ValueError
            If `axes` are not two.
        """
        axes = self._panels(axes, 2, partial(_make_axes, 2))
        panels = (("inertia", self.inertia), ("mean silhouette", self.silhouette))
        for ax, (name, values) in zip(axes, panels, strict=True):
            ax.axvline(self.best, color="0.7", linestyle=":", zorder=0)
            ax.plot(self.n_clusters, values, "o-", color=color_of(0))
            ax.set(xlabel="clusters", ylabel=name)
            ax.xaxis.get_major_locator().set_params(integer=True)
        axes[1].set_title(f"{self.best} clusters")
        return self
