"""Plots of motifs and discords."""

from __future__ import annotations

from typing import Any, Self

import numpy as np

from ..motifs import Discord, DiscordDetector, Motif, MotifFinder
from ._style import PanelsMixin, check_fitted, color_of, is_place, normalized

__all__ = ["MotifDisplay"]


class MotifDisplay(PanelsMixin):
    """A series with its motifs and discords, the occurrences of each motif in one panel, and the
    profile.

    Of a `DiscordDetector` it shows the most unusual window of the series, and the scores of all
    windows as the profile.

    Make one with `from_estimator`.

    Parameters
    ----------
    points : ndarray of shape (n_timepoints,) or (n_channels, n_timepoints)
        The series.
    motifs : list of Motif
        Motifs.
    discords : list of Discord
        Discords.
    profiles : list of (int, ndarray)
        Window length and profile of the series, for each length; empty without a profile.
    series : int, default 0
        Which series it is.
    profile_title : str, default "distance to the nearest neighbour"
        What the profile holds.

    Attributes
    ----------
    figure_ : matplotlib.figure.Figure
        The figure, once plotted.
    axes_ : ndarray of matplotlib.axes.Axes
        The series, one for each motif, and the profile if there is one.
    span_patches_ : list of list of matplotlib.patches.Patch
        For each motif the marks of its occurrences in the series.
    profile_lines_ : list of matplotlib.lines.Line2D
        The profile, one line for each window length.

    Examples
    --------
    >>> import numpy as np
    >>> from skts import MotifFinder
    >>> from skts.plotting import MotifDisplay
    >>> x = np.random.default_rng(0).normal(size=300)
    >>> x[200:230] = x[50:80]
    >>> model = MotifFinder(30, n_motifs=2, n_discords=1).fit(x.reshape(1, -1))
    >>> display = MotifDisplay.from_estimator(model)
    >>> len(display.axes_)
    4
    """

    def __init__(
        self,
        points: np.ndarray,
        motifs: list[Motif],
        discords: list[Discord],
        profiles: list[tuple[int, np.ndarray]],
        series: int = 0,
        profile_title: str = "distance to the nearest neighbour",
    ) -> None:
        self.points = points
        self.motifs = motifs
        self.discords = discords
        self.profiles = profiles
        self.series = series
        self.profile_title = profile_title

    @classmethod
    def from_estimator(
        cls,
        estimator: MotifFinder | DiscordDetector,
        *,
        series: int = 0,
        axes: Any = None,
    ) -> Self:
        """Plot motifs and discords of one of the series of an estimator.

        Parameters
        ----------
        estimator : MotifFinder or DiscordDetector
            A fitted estimator. Of a `DiscordDetector` the only discord is the window with the
            largest score, whose neighbour is not known (-1).
        series : int, default 0
            Which of its series is drawn (row of `X`). Occurrences in other series are only shown in
            the panels of the motifs.
        axes : matplotlib.axes.Axes, array-like of these or None, default None
            Where to draw: the series, each motif, and the profile if there is one; None makes a
            figure.

        Returns
        -------
        display : MotifDisplay
            The display, plotted.

        Raises
        ------
        ValueError
            If there is no such series, or `axes` are not as many as there are panels.
        """
        check_fitted(estimator, (MotifFinder, DiscordDetector))
        all_points = estimator._series()
        if not is_place(series, len(all_points)):
            raise ValueError(
                f"series={series!r} is not among the {len(all_points)} of the estimator."
            )
        points = all_points[series]
        shown = points[0] if len(points) == 1 else points
        if isinstance(estimator, DiscordDetector):
            scores = estimator.window_scores_[series, : points.shape[1] - estimator.window_ + 1]
            discords = _most_unusual(shown, scores, estimator.window_, series)
            profiles = [(estimator.window_, scores)]
            display = cls(shown, [], discords, profiles, series, "score of each window")
            return display.plot(axes=axes)
        n_timepoints = points.shape[1]
        profiles = []
        if hasattr(estimator, "profile_"):
            several = np.ndim(estimator.window_) > 0
            found = estimator.profile_ if several else [estimator.profile_]
            for window, profile in zip(np.atleast_1d(estimator.window_), found, strict=True):
                n_windows = max(0, n_timepoints - int(window) + 1)
                profiles.append((int(window), profile[series, :n_windows]))
        display = cls(shown, estimator.motifs_, estimator.discords_, profiles, series)
        return display.plot(axes=axes)

    def plot(self, *, axes: Any = None) -> Self:
        """Draw the display.

        Parameters
        ----------
        axes : matplotlib.axes.Axes, array-like of these or None, default None
            Where to draw; None makes a figure.

        Returns
        -------
        display : MotifDisplay
            The display itself.

        Raises
        ------
        ValueError
            If `axes` are not as many as there are panels.
        """
        n_motifs = len(self.motifs)
        n_panels = 1 + n_motifs + bool(self.profiles)
        axes = self._panels(axes, n_panels, self._make_axes)
        top, overlays, bottom = axes[0], axes[1 : 1 + n_motifs], axes[1 + n_motifs :]
        top.plot(self.points.T, color="0.4", linewidth=0.7)
        top.set(title=f"series {self.series}", xlabel="time point", ylabel="value")
        self.span_patches_ = []
        for number, (motif, ax) in enumerate(zip(self.motifs, overlays, strict=True)):
            color = color_of(number)
            here = motif.positions[motif.series == self.series]
            self.span_patches_.append(
                [top.axvspan(p, p + motif.window - 1, color=color, alpha=0.3) for p in here]
            )
            # of several channels those that count
            values = [motif.values]
            if motif.channels is not None:
                values = [motif.values[:, channel] for channel in motif.channels]
            for shapes in map(normalized, values):
                ax.plot(shapes[1:].T, color=color, alpha=0.5, linewidth=0.8)
                ax.plot(shapes[0], color=color, linewidth=2)
            found = f"{motif.n_matches} occurrences\ndistance {motif.distance:.3g}"
            ax.set(title=f"motif {number}: {found}", xlabel="time point")
            ax.set(ylabel="normalised value")
        for discord in self.discords:
            if discord.series == self.series:
                place = discord.position, discord.position + discord.window - 1
                top.axvspan(*place, facecolor="none", edgecolor="k", hatch="///", alpha=0.5)
        self.profile_lines_: list[Any] = []
        for ax in bottom:
            self._plot_profile(ax)
        return self

    def _make_axes(self) -> list[Any]:
        """A figure: the series over the whole width, motifs beside each other, the profile."""
        import matplotlib.pyplot as plt

        n_motifs = len(self.motifs)
        columns = min(4, max(1, n_motifs))
        rows = -(-n_motifs // columns)
        figure = plt.figure(
            figsize=(3.2 * max(columns, 2), 2.2 * (1 + rows + bool(self.profiles))),
            layout="constrained",
        )
        grid = figure.add_gridspec(1 + rows + bool(self.profiles), columns)
        axes = [figure.add_subplot(grid[0, :])]
        for number in range(n_motifs):
            axes.append(figure.add_subplot(grid[1 + number // columns, number % columns]))
        if self.profiles:
            axes.append(figure.add_subplot(grid[-1, :], sharex=axes[0]))
        return axes

    def _plot_profile(self, ax: Any) -> None:
        """Draw the profile, per square root of the length where there are several."""
        several = len(self.profiles) > 1
        for window, profile in self.profiles:
            scale = np.sqrt(window) if several else 1.0
            finite = np.where(np.isfinite(profile), profile, np.nan)
            (line,) = ax.plot(finite / scale, linewidth=0.8, label=f"window {window}")
            self.profile_lines_.append(line)
        for discord in self.discords:
            if discord.series == self.series:
                scale = np.sqrt(discord.window) if several else 1.0
                ax.plot(discord.position, discord.distance / scale, "kv")
        if several:
            ax.legend(loc="upper right")
        ax.set(
            title=self.profile_title + (" / sqrt(window)" if several else ""),
            xlabel="start of the window",
            ylabel="distance",
        )


def _most_unusual(
    points: np.ndarray, scores: np.ndarray, window: int, series: int
) -> list[Discord]:
    """The window of a series with the largest score, the first of several; none without scores."""
    if np.isnan(scores).all():
        return []
    start = int(np.nanargmax(scores))
    values = points[..., start : start + window].copy()
    return [Discord(window, start, float(scores[start]), values, series, -1, -1)]
