"""Plots of clusters."""

from __future__ import annotations

from functools import partial
from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike

from ..cluster import KShapeClusterer
from ._style import PanelsMixin, check_fitted, color_of

__all__ = ["ClusterDisplay"]


class ClusterDisplay(PanelsMixin):
    """Clusters of series: members, aligned with the centre, and the inertia of each iteration.

    Make one with `from_estimator`.

    Parameters
    ----------
    centers : ndarray of shape (n_clusters, n_timepoints)
        Centres.
    members : list of ndarray of shape (n_members, n_timepoints)
        Normalised series of each cluster that are shown, moved to match its centre.
    sizes : ndarray of shape (n_clusters,)
        Number of all members of each cluster.
    history : ndarray of shape (n_iter,)
        Inertia after each iteration.

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
        history: np.ndarray,
    ) -> None:
        self.centers = centers
        self.members = members
        self.sizes = sizes
        self.history = history

    @classmethod
    def from_estimator(
        cls,
        estimator: KShapeClusterer,
        X: ArrayLike | list[ArrayLike],
        *,
        channel: int = 0,
        max_members: int = 100,
        objective: bool = True,
        axes: list[Any] | None = None,
    ) -> Self:
        """Assign series to the clusters of an estimator, and plot them.

        Parameters
        ----------
        estimator : KShapeClusterer
            A fitted estimator.
        X : array-like or list of array-like
            Series, those of `fit` or others.
        channel : int, default 0
            Which channel to show.
        max_members : int, default 100
            Members to draw of each cluster: the first ones.
        objective : bool, default True
            Whether to show inertia by iteration, too.
        axes : list of matplotlib.axes.Axes or None, default None
            Where to draw, one for each cluster and one for inertia; None makes a figure.

        Returns
        -------
        display : ClusterDisplay
            The display, plotted.

        Raises
        ------
        ValueError
            If `axes` are not as many as there are panels, or there is no such channel.
        """
        check_fitted(estimator, KShapeClusterer)
        labels, aligned = estimator._aligned(X)
        if not 0 <= channel < aligned.shape[1]:
            raise ValueError(f"channel={channel} is not among the {aligned.shape[1]} of X.")
        centers = estimator.cluster_centers_
        centers = centers[:, channel] if centers.ndim == 3 else centers
        members = [aligned[labels == label, channel][:max_members] for label in range(len(centers))]
        sizes = np.bincount(labels, minlength=len(centers))
        display = cls(centers, members, sizes, estimator.history_)
        return display.plot(objective=objective, axes=axes)

    def plot(self, *, objective: bool = True, axes: list[Any] | None = None) -> Self:
        """Draw the display.

        Parameters
        ----------
        objective : bool, default True
            Whether to show inertia by iteration, too.
        axes : list of matplotlib.axes.Axes or None, default None
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
        n_panels = len(self.centers) + bool(objective)
        axes = self._panels(axes, n_panels, partial(_make_axes, n_panels))
        self.center_lines_ = []
        for label, ax in enumerate(axes[: len(self.centers)]):
            if len(self.members[label]):
                ax.plot(self.members[label].T, color="0.6", alpha=0.3, linewidth=0.7)
            self.center_lines_ += ax.plot(self.centers[label], color=color_of(label), linewidth=2)
            ax.set(title=f"cluster {label}: {self.sizes[label]} series")
            ax.set(xlabel="time point", ylabel="value")
        if objective:
            ax = axes[-1]
            ax.plot(np.arange(1, len(self.history) + 1), self.history, "o-", color="0.2")
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
