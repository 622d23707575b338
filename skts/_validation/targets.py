"""Labels and weights that go with series."""

from __future__ import annotations

from numbers import Integral, Real
from typing import Any

import numpy as np
from sklearn.utils.multiclass import check_classification_targets
from sklearn.utils.validation import (
    assert_all_finite,
    check_array,
    check_consistent_length,
    column_or_1d,
)

from .forms import as_host, form_of, is_list_of_series, transposed
from .layout import refuse_one_dimension
from .numbers import as_numbers
from .scale import LARGEST

__all__ = ["check_outputs", "check_target", "check_weights", "one_label_each", "refuse_mixed_types"]


def check_target(X: Any, y: Any, name: str, advice: str = "") -> np.ndarray:
    """Validate class labels that go with `X`.

    Parameters
    ----------
    X : array-like or list of array-like
        Series.
    y : array-like of shape (n_samples,)
        Their labels.
    name : str
        Who needs them.
    advice : str, default ""
        The end of the message where they are numbers of a regression.

    Returns
    -------
    ndarray of shape (n_samples,)
        The labels.

    Raises
    ------
    ValueError
        If there are no labels, or not as many as series, or one is missing, or they are numbers of
        a regression.
    """
    _refuse_none(X, y, name)
    labels: np.ndarray = column_or_1d(one_label_each(y, "y"), warn=True)
    refuse_mixed_types(labels, "y")
    assert_all_finite(labels, input_name="y")
    _check_length(X, labels, "labels")
    try:
        check_classification_targets(labels)
    except ValueError as error:
        if labels.dtype == object and all(isinstance(one, Integral | np.bool_) for one in labels):
            # numbers beyond int64 stay objects; scikit-learn's checks ask for the first words
            wanted = {"b": "bool", "i": "int"}.get(np.array(labels.tolist()).dtype.kind)
            if wanted is not None:
                raise ValueError(
                    f"Unknown label type: y is an object array of {type(labels[0]).__name__}; "
                    f"write y.astype({wanted})."
                ) from None
        raise ValueError(f"{error}{advice}") from None
    return labels


def check_outputs(X: Any, y: Any, name: str) -> np.ndarray:
    """Validate targets of a regression that go with `X`.

    Parameters
    ----------
    X : array-like or list of array-like
        Series.
    y : array-like of shape (n_samples,) or (n_samples, n_outputs)
        Their targets.
    name : str
        Who needs them.

    Returns
    -------
    ndarray of shape (n_samples,) or (n_samples, n_outputs), float64
        The targets, a copy.

    Raises
    ------
    ValueError
        If there are no targets, or not as many as series, or one is no finite number.
    """
    _refuse_none(X, y, name)
    given = check_array(one_label_each(y, "y"), ensure_2d=False, dtype="numeric", input_name="y")
    if given.ndim > 2 or given.ndim == 0:
        raise ValueError(f"y has shape {given.shape}: give (n_samples,) or (n_samples, n_outputs).")
    _check_length(X, given, "targets")
    return np.array(given, np.float64)


def _refuse_none(X: Any, y: Any, name: str) -> None:
    """Refuse targets that are missing, and one series in place of many."""
    if y is None:
        raise ValueError(f"{name} requires y to be passed, but the target y is None.")
    if not is_list_of_series(X):
        refuse_one_dimension(form_of(X), "X")


def one_label_each(labels: Any, input_name: str) -> Any:
    """Return labels in host memory; refuse ragged and mixed lists, and labels behind a mask.

    Parameters
    ----------
    labels : array-like
        Labels, or targets.
    input_name : str
        The argument's name in messages.

    Returns
    -------
    array-like
        The same; of an array on a GPU its values.

    Raises
    ------
    ValueError
        If rows have several lengths; if a mask hides one; if some of a list are text, others not.
    """
    if np.ma.is_masked(labels):
        place = int(np.argmax(np.ma.getmaskarray(labels)))
        raise ValueError(f"{input_name} has a masked label, at {place}.")
    host = as_host(labels, input_name)
    if isinstance(host, list | tuple):
        try:
            made_text = np.asarray(host).dtype.kind == "U"
        except ValueError:
            raise ValueError(
                f"{input_name} holds lists of several lengths: give one label a series."
            ) from None
        if made_text:  # of numbers and text NumPy makes text, also of NaN
            refuse_mixed_types(np.asarray(host, object).ravel(), input_name)
    return host


def refuse_mixed_types(labels: np.ndarray, input_name: str) -> None:
    """Raise if labels are of several types, which have no order.

    Parameters
    ----------
    labels : ndarray of shape (n_samples,)
        The labels.
    input_name : str
        The argument's name in messages.

    Raises
    ------
    ValueError
        With the types; texts of NumPy and of Python are of one.
    """
    if labels.dtype != object:
        return
    kinds = {"str" if isinstance(label, str) else type(label).__name__ for label in labels}
    if len(kinds) > 1:
        raise ValueError(f"{input_name} holds labels of several types: {', '.join(sorted(kinds))}.")


def _check_length(X: Any, labels: np.ndarray, what: str) -> None:
    """Refuse more or fewer labels than series."""
    try:
        check_consistent_length(form_of(X), labels)
    except ValueError as error:
        advice = ""
        if getattr(form_of(X), "shape", ())[1:] == (len(labels),):
            advice = f" If the series are columns, write {transposed(X, 'X')}."
        raise ValueError(f"{error}: series in X and {what} in y.{advice}") from None


def check_weights(
    sample_weight: Any,
    n_samples: int,
    estimator: Any = None,
    *,
    input_name: str = "sample_weight",
) -> np.ndarray:
    """Validate weights of series.

    Parameters
    ----------
    sample_weight : array-like of shape (n_samples,), float or None
        The weights; a number is that of each series, None is 1.
    n_samples : int
        How many series there are.
    estimator : estimator or str or None, default None
        The estimator in messages.
    input_name : str, default "sample_weight"
        The argument's name in messages.

    Returns
    -------
    ndarray of shape (n_samples,)
        One weight a series.

    Raises
    ------
    ValueError
        If there are not as many as series; if one is negative, too large or no number; if all are
        zero.
    """
    if sample_weight is None or isinstance(sample_weight, Real):
        weights = np.full(n_samples, 1.0 if sample_weight is None else float(sample_weight))
    else:
        weights = as_numbers(
            as_host(sample_weight, input_name),
            input_name,
            "weights",
            ensure_2d=False,
            estimator=estimator,
        )
    if weights.shape != (n_samples,):
        raise ValueError(
            f"{input_name} has the shape {weights.shape}; give one number for each of the "
            f"{n_samples} series."
        )
    bad = np.flatnonzero(~((weights >= 0) & (weights <= LARGEST)))
    if bad.size:
        raise ValueError(
            f"{input_name} is {weights[bad[0]]:g} for series {bad[0]}; give numbers from 0 to "
            f"{LARGEST:.1g}."
        )
    if not weights.any():
        raise ValueError(f"{input_name} is zero for all series; give one of them a weight.")
    return weights
