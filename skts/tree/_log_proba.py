"""Logarithms of the shares of classes, for all classifiers that have leaves."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike

__all__ = ["LogProbaMixin"]


class LogProbaMixin:
    """Logarithms beside what `predict_proba` of a classifier returns."""

    def predict_log_proba(self, X: ArrayLike | list[ArrayLike]) -> np.ndarray:
        """Return the logarithms of `predict_proba`.

        Parameters
        ----------
        X : array-like or list of array-like
            Series.

        Returns
        -------
        ndarray of shape (n_samples, n_classes)
            Minus infinity where no leaf that the series reaches has the class.
        """
        shares: np.ndarray = self.predict_proba(X)  # type: ignore[attr-defined]  # the classifier's
        with np.errstate(divide="ignore"):
            return np.log(shares)
