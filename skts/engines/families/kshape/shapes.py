"""Series that are compared by shape, brought to one scale and width."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np

from ...core.constants import CONSTANT
from ...core.series import Series, read_only, zeros_beside

__all__ = ["Shapes"]

#: Values that are normalised at a time.
NORMALIZED_AT_ONCE = 2**20


@dataclass(frozen=True, eq=False)
class Shapes:
    """Series that are compared by shape, normalised as the caller wants them.

    Parameters
    ----------
    values : ndarray of shape (n_series, n_channels, n_timepoints), float64, C-contiguous
        Points; unequal lengths are filled with zeros.
    norms : ndarray of shape (n_series,), float64
        Norm of each series over all channels.
    exponents : ndarray of shape (n_series,), int32, or None
        The power of two that each series was divided by; None where all are 0.
    errors : ndarray of shape (n_series,), float64, or None
        For centres: how far each, scaled to norm 1, is at most from the certified one. None where
        these are what everything else follows from.
    """

    values: np.ndarray
    norms: np.ndarray
    exponents: np.ndarray | None = None
    errors: np.ndarray | None = None

    @cached_property
    def squares(self) -> np.ndarray:
        """Squared norm of each series; the same array for every use."""
        return self.norms * self.norms

    @classmethod
    def of(cls, values: np.ndarray, errors: np.ndarray | None = None) -> Shapes:
        """Measure the norms of series."""
        return cls(values, np.sqrt(np.einsum("ict,ict->i", values, values)), None, errors)

    @classmethod
    def normalized(
        cls,
        series: Series,
        *,
        normalize: bool = True,
        short: bool = False,
        width: int | None = None,
    ) -> Shapes:
        """Bring series to one scale and width; those in a file go to a temporary file.

        A series that is not normalised is divided by the power of two that brings its norm to
        between 1 and 2. The result depends on the points of the series alone.

        Parameters
        ----------
        series : Series
            Series as they came, of any lengths.
        normalize : bool, default True
            Whether each channel of each series is z-normalised on its own points; a constant
            channel becomes zeros.
        short : bool, default False
            Whether series are scaled to norm 1 instead.
        width : int or None, default None
            Points to fill up to, with zeros; None is those of the longest.
        """
        from ...host import by_numpy, shapes
        from ...host.small_work import prefer_numpy

        shape = len(series), series.n_channels, width or series.n_timepoints
        values = zeros_beside(series.values, shape)
        norms, exponents = np.empty(len(series)), np.zeros(len(series), np.int32)
        scale = shapes.z_normalize if normalize and not short else shapes.scale_to_norm
        # a few hundred points are done in a microsecond
        seconds = 2e-8 * values.size + 1e-3
        if scale is shapes.z_normalize and prefer_numpy(
            lambda: (seconds, seconds), shapes.z_normalize, able=lambda: series.equal_length
        ):
            by_numpy.z_normalize(series.values, values, norms)
            return cls(values, norms)
        step = max(1, NORMALIZED_AT_ONCE // values[0].size)
        for start in range(0, len(series), step):
            rows = slice(start, start + step)
            scale(
                read_only(series.values[rows]),
                read_only(series.lengths[rows]),
                normalize,
                values[rows],
                norms[rows],
                exponents[rows],
            )
        return cls(values, norms, exponents if exponents.any() else None)

    def __len__(self) -> int:
        return self.values.shape[0]

    @property
    def n_channels(self) -> int:
        """Channels of every series."""
        return self.values.shape[1]

    @property
    def n_timepoints(self) -> int:
        """Points of every series."""
        return self.values.shape[2]

    @cached_property
    def spread(self) -> float:
        """The largest norm divided by the least that is not 0."""
        norms = self.norms[self.norms > 0]
        return float(norms.max() / norms.min()) if norms.size else 1.0

    @cached_property
    def flat(self) -> np.ndarray:
        """Which channels of which series are constant, over all their points, as uint8."""
        low, high = self.values.min(axis=2), self.values.max(axis=2)
        return (high - low <= CONSTANT * np.maximum(-low, high)).astype(np.uint8)

    def take(self, which: slice | np.ndarray) -> Shapes:
        """Return some of the series: views for a slice, copies for an index array."""
        exponents, errors = (
            None if one is None else one[which] for one in (self.exponents, self.errors)
        )
        return Shapes(self.values[which], self.norms[which], exponents, errors)
