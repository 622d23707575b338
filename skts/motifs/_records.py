"""Results of searches in series: motifs, discords, profiles."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from .._summary import summarized

__all__ = ["Discord", "MatrixProfile", "Motif", "SeriesProfile"]


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
    dimensions : ndarray of shape (n_dimensions,), int64, or None
        Of series of several channels: how many channels count in each row.
    """

    distances: np.ndarray
    indices: np.ndarray
    left: MatrixProfile | None = None
    right: MatrixProfile | None = None
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
