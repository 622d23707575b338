"""Results of searches in series: motifs, discords, profiles."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from .._summary import summarized

__all__ = [
    "Chain",
    "ConsensusMotif",
    "Discord",
    "MatrixProfile",
    "Motif",
    "PanProfile",
    "Segmentation",
    "SeriesProfile",
    "WindowPair",
]


@summarized
class Motif(NamedTuple):
    """A pattern that repeats.

    The first two occurrences are the two windows that are nearest to each other, the earlier one
    first; the others follow by their distance from the first.

    Attributes
    ----------
    window : int
        Points of a window.
    positions : ndarray of shape (n_occurrences,), int64
        Where the occurrences start in their series.
    distances : ndarray of shape (n_occurrences,), float64
        Distances from the first occurrence; `distances[1]` is that of the nearest pair.
    values : ndarray of shape (n_occurrences, window), float64
        Points of the occurrences, as given; of several channels (n_occurrences, n_channels,
        window).
    series : ndarray of shape (n_occurrences,), int64
        In which series (row of `X`) the occurrences lie.
    radius : float
        Largest distance of an occurrence from the first.
    n_matches : int
        How many occurrences there are, also those beyond `max_matches`.
    channels : ndarray of shape (n_dimensions,), int64, or None
        Of series of several channels those in which the pair is nearest, ascending; distances are
        means over them.
    """

    window: int
    positions: np.ndarray
    distances: np.ndarray
    values: np.ndarray
    series: np.ndarray
    radius: float
    n_matches: int
    channels: np.ndarray | None = None

    @property
    def distance(self) -> float:
        """Distance of the two nearest windows.

        Returns
        -------
        float
            The second of `distances`.
        """
        return float(self.distances[1])


@summarized
class Discord(NamedTuple):
    """A window unlike all others.

    Attributes
    ----------
    window : int
        Points of a window.
    position : int
        Where it starts in its series.
    distance : float
        Distance to its nearest neighbour.
    values : ndarray of shape (window,), float64
        Its points, as given; of several channels (n_channels, window).
    series : int
        In which series (row of `X`) it lies.
    neighbor : int
        Where the nearest neighbour starts in its series.
    neighbor_series : int
        In which series the nearest neighbour lies.
    channels : ndarray of shape (n_dimensions,), int64, or None
        Of series of several channels those that count for it and its neighbour, ascending.
    """

    window: int
    position: int
    distance: float
    values: np.ndarray
    series: int
    neighbor: int
    neighbor_series: int
    channels: np.ndarray | None = None


@summarized
class MatrixProfile(NamedTuple):
    """Nearest neighbours of all windows of a series.

    Attributes
    ----------
    distances : ndarray of shape (n_windows,) or (n_windows, k), float64
        Distances, ascending; infinite where there is no neighbour. Of several channels
        (n_dimensions, n_windows), a row for each number of channels.
    indices : ndarray of shape (n_windows,) or (n_windows, k), int64
        Where the neighbours start, -1 where there is none.
    left, right : MatrixProfile or None
        The nearest neighbours among earlier windows, and among later ones, where asked for.
    share : float
        Share of the admissible pairs that were compared. Where a `time_limit` leaves it below 1,
        distances are upper bounds.
    dimensions : ndarray of shape (n_dimensions,), int64, or None
        Of series of several channels: how many channels count in each row.
    """

    distances: np.ndarray
    indices: np.ndarray
    left: MatrixProfile | None = None
    right: MatrixProfile | None = None
    share: float = 1.0
    dimensions: np.ndarray | None = None


@summarized
class SeriesProfile(NamedTuple):
    """Nearest neighbours of all windows of several series.

    Attributes
    ----------
    distances : ndarray of shape (n_samples, n_windows), float64
        Distances; infinite where there is no neighbour, or where a series is shorter.
    indices : ndarray of shape (n_samples, n_windows), int64
        Where the neighbours start in their series, -1 where there is none.
    series : ndarray of shape (n_samples, n_windows), int64
        In which series they lie, -1 where there is none.
    """

    distances: np.ndarray
    indices: np.ndarray
    series: np.ndarray


@summarized
class WindowPair(NamedTuple):
    """Two windows of one length: a motif, or a discord and its nearest neighbour.

    Attributes
    ----------
    window : int
        Points of a window.
    positions : ndarray of shape (2,), int64
        Where the two start: of a motif the earlier one first, or else the discord first.
    distance : float
        Their distance over ``sqrt(2 window)``.
    """

    window: int
    positions: np.ndarray
    distance: float


@summarized
class PanProfile(NamedTuple):
    """Matrix profiles of a series for many lengths of the window.

    All distances are divided by ``sqrt(2 window)``, so that those of different lengths compare.

    Attributes
    ----------
    windows : ndarray of shape (n_lengths,), int64
        The lengths that were asked for, ascending, each once.
    computed : ndarray of shape (n_computed,), int64
        The lengths whose profiles are there, in the order in which they were computed.
    distances : ndarray of shape (n_lengths, n_windows), float64
        Distance of each window to its nearest neighbour, by length and start. Infinite where there
        is none, where no window of that length starts, and where the length was not computed.
    indices : ndarray of shape (n_lengths, n_windows), int64
        Where the neighbours start, -1 where there is none.
    motif_distances : ndarray of shape (n_lengths,), float64
        Distance of the two nearest windows of each length; infinite where there are none.
    motif_indices : ndarray of shape (n_lengths, 2), int64
        Where they start, the earlier one first; -1 where there are none.
    discord_distances : ndarray of shape (n_lengths,), float64
        Distance of the window of each length whose nearest neighbour is farthest; infinite where
        no window has a neighbour.
    discord_indices : ndarray of shape (n_lengths, 2), int64
        Where it starts, and where its nearest neighbour does; -1 where there are none.
    """

    windows: np.ndarray
    computed: np.ndarray
    distances: np.ndarray
    indices: np.ndarray
    motif_distances: np.ndarray
    motif_indices: np.ndarray
    discord_distances: np.ndarray
    discord_indices: np.ndarray

    @property
    def motif(self) -> WindowPair | None:
        """The nearest pair of all lengths; of equally near ones that of the shortest windows.

        Returns
        -------
        WindowPair or None
            The pair, None where no two windows could be compared.
        """
        row = int(np.argmin(self.motif_distances))
        return self._pair(row, self.motif_indices, self.motif_distances)

    @property
    def discord(self) -> WindowPair | None:
        """The window of all lengths that is farthest from its nearest neighbour.

        Of equally far ones that of the shortest windows.

        Returns
        -------
        WindowPair or None
            The window and its neighbour, None where no two windows could be compared.
        """
        known = self.discord_indices[:, 0] >= 0
        row = int(np.argmax(np.where(known, self.discord_distances, -np.inf)))
        return self._pair(row, self.discord_indices, self.discord_distances)

    def _pair(self, row: int, indices: np.ndarray, distances: np.ndarray) -> WindowPair | None:
        if indices[row, 0] < 0:
            return None
        return WindowPair(int(self.windows[row]), indices[row].copy(), float(distances[row]))


@summarized
class Chain(NamedTuple):
    """Windows of a series, each the nearest later neighbour of the one before, and that its own.

    Attributes
    ----------
    window : int
        Points of a window.
    positions : ndarray of shape (n_windows,), int64
        Where the windows start, ascending.
    distances : ndarray of shape (n_windows - 1,), float64
        Distances of each window to the next one.
    """

    window: int
    positions: np.ndarray
    distances: np.ndarray


@summarized
class ConsensusMotif(NamedTuple):
    """The window that is best preserved in several series.

    Attributes
    ----------
    window : int
        Points of a window.
    series : int
        In which series (row of `X`) it lies.
    position : int
        Where it starts there.
    radius : float
        Its distance to the series that it matches worst; no window of any series has less.
    positions : ndarray of shape (n_samples,), int64
        Where its best match starts in each series; `position` in its own.
    distances : ndarray of shape (n_samples,), float64
        Distances of the best matches; 0 in its own series.
    values : ndarray of shape (n_samples, window), float64
        Points of the best matches, as given.
    """

    window: int
    series: int
    position: int
    radius: float
    positions: np.ndarray
    distances: np.ndarray
    values: np.ndarray


@summarized
class Segmentation(NamedTuple):
    """A series in regimes.

    Attributes
    ----------
    window : int
        Points of a window.
    boundaries : ndarray of shape (n_boundaries,), int64
        Windows at which a regime ends, the clearest first.
    curve : ndarray of shape (n_windows,), float64
        The corrected arc curve, from 0 to 1: arcs from windows to their nearest neighbours that
        cross a place, over those that chance would have cross it.
    """

    window: int
    boundaries: np.ndarray
    curve: np.ndarray
