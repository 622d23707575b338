"""A picture of the matrix profiles of many lengths."""

from __future__ import annotations

from typing import Any, Self

import numpy as np

from ..motifs import PanProfile, WindowPair
from ._style import COSTS, PanelsMixin, color_of

__all__ = ["PanProfileDisplay"]

#: Columns of a picture: of more starts, the least distance of several is drawn.
COLUMNS = 2000


class PanProfileDisplay(PanelsMixin):
    """The distances of all windows of all lengths as a picture: starts across, lengths upwards.

    Dark places repeat, bright ones do not. The best motif and discord of all lengths are marked
    where their windows start. Make one with `from_profile`.

    Parameters
    ----------
    profile : PanProfile
        What `pan_matrix_profile` found.

    Attributes
    ----------
    figure_ : matplotlib.figure.Figure
        The figure, once plotted.
    axes_ : ndarray of matplotlib.axes.Axes
        The picture.
    image_ : matplotlib.collections.QuadMesh
        The colours: one row for each length that was computed. Where there are more than 2,000
        starts, the least distance of several neighbouring ones is drawn.
    pair_lines_ : list of matplotlib.lines.Line2D
        Marks of the best motif and of the best discord, where there are any.

    Examples
    --------
    >>> import numpy as np
    >>> from skts.motifs import pan_matrix_profile
    >>> from skts.plotting import PanProfileDisplay
    >>> x = np.random.default_rng(0).normal(size=300)
    >>> x[200:240] = x[50:90]
    >>> display = PanProfileDisplay.from_profile(pan_matrix_profile(x, windows=[20, 40, 60]))
    >>> display.image_.get_array().shape
    (3, 281)
    """

    def __init__(self, profile: PanProfile) -> None:
        self.profile = profile

    @classmethod
    def from_profile(cls, profile: PanProfile, *, axes: Any = None) -> Self:
        """Plot the profiles of many lengths.

        Parameters
        ----------
        profile : PanProfile
            What `pan_matrix_profile` found.
        axes : matplotlib.axes.Axes, array-like of these or None, default None
            Where to draw, one; None makes a figure.

        Returns
        -------
        display : PanProfileDisplay
            The display, plotted.

        Raises
        ------
        TypeError
            If `profile` is no `PanProfile`.
        ValueError
            If `axes` does not hold one axes.
        """
        if not isinstance(profile, PanProfile):
            raise TypeError(
                f"profile is a {type(profile).__name__}; a PanProfile, as pan_matrix_profile "
                "returns it, is needed here."
            )
        return cls(profile).plot(axes=axes)

    def plot(self, *, axes: Any = None) -> Self:
        """Draw the display.

        Parameters
        ----------
        axes : matplotlib.axes.Axes, array-like of these or None, default None
            Where to draw, one; None makes a figure.

        Returns
        -------
        display : PanProfileDisplay
            The display itself.

        Raises
        ------
        ValueError
            If `axes` does not hold one axes.
        """
        (ax,) = self._panels(axes, 1, _make_axes)
        pan = self.profile
        there = np.isin(pan.windows, pan.computed)
        windows, values = pan.windows[there], pan.distances[there]
        n_windows = values.shape[1]
        step = -(-n_windows // COLUMNS)
        values = np.minimum.reduceat(values, np.arange(0, n_windows, step), axis=1)
        values = np.ma.masked_invalid(values)
        starts = np.append(np.arange(0, n_windows, step), n_windows) - 0.5
        self.image_ = ax.pcolormesh(starts, _edges(windows), values, cmap=COSTS, vmin=0, vmax=1)
        self.figure_.colorbar(self.image_, ax=ax, label="distance / sqrt(2 window)")
        self.pair_lines_ = []
        pairs: list[tuple[str, str, WindowPair | None]] = [
            ("motif", "o", pan.motif),
            ("discord", "v", pan.discord),
        ]
        for number, (name, marker, pair) in enumerate(pairs):
            if pair is not None:
                places = pair.positions if name == "motif" else pair.positions[:1]
                self.pair_lines_ += ax.plot(
                    places,
                    np.full(places.size, pair.window),
                    marker,
                    color=color_of(number + 1),
                    markeredgecolor="white",
                    label=f"{name}, {pair.window} points",
                )
        if self.pair_lines_:
            ax.legend(loc="upper right")
        ax.set(xlabel="start of the window", ylabel="points of the window")
        return self


def _make_axes() -> list[Any]:
    """A figure of one panel."""
    import matplotlib.pyplot as plt

    return [plt.subplots(figsize=(8, 3.6), layout="constrained")[1]]


def _edges(values: np.ndarray) -> np.ndarray:
    """Edges halfway between ascending values, and as far beyond the first and the last."""
    if values.size == 1:
        return np.array([values[0] - 0.5, values[0] + 0.5])
    middles = (values[1:] + values[:-1]) / 2
    ends = 2 * values[0] - middles[0], 2 * values[-1] - middles[-1]
    return np.concatenate([ends[:1], middles, ends[1:]])
