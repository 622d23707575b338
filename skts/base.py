"""The base of all estimators of series: validation, state, tags; and the checks of functions."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Sequence
from functools import wraps
from typing import Any, ClassVar, Concatenate, ParamSpec, TypeVar, cast

import numpy as np
from sklearn.utils import Tags
from sklearn.utils._set_output import _get_output_config
from sklearn.utils.validation import validate_data

from . import _version
from ._log import counted
from ._parameters import refuse_truth
from ._scalars import plain
from ._validation import (
    as_host,
    channel_names,
    check_layout,
    check_one,
    check_series,
    check_target,
    check_univariate,
    form_of,
    is_3d,
    is_list_of_series,
    names_of_series,
    read_distances,
    refuse_other_channels,
    transposed,
)
from .engines import Engine, Reduction, Series, run, run_all
from .exceptions import InconsistentVersionWarning

__all__ = [
    "SeriesMixin",
    "as_host",
    "check_layout",
    "check_one",
    "check_series",
    "check_target",
    "check_univariate",
    "transposed",
]

Arguments = ParamSpec("Arguments")
Answer = TypeVar("Answer")


def _replaces_at_once(
    method: Callable[Concatenate[Any, Arguments], Answer],
) -> Callable[Concatenate[Any, Arguments], Answer]:
    """Have a method that fits replace the fitted state in one step, at its end.

    It works on a stand-in with the same parameters and nothing of an earlier `fit` to be seen; if
    it fails or is interrupted, the estimator has never changed. Called by the method of a subclass
    that has replaced it, it keeps the fitted attributes that this one has set before.
    """

    @wraps(method)
    def replace_at_once(self: Any, /, *args: Arguments.args, **kwargs: Arguments.kwargs) -> Answer:
        stand_in = object.__new__(type(self))
        keep = method.__name__ != "fit"
        fitted = {} if keep else {n: v for n, v in vars(self).items() if n.endswith("_")}
        vars(stand_in).update({n: v for n, v in vars(self).items() if n not in fitted})
        with np.errstate(under="ignore"):  # what is too small is 0, as everywhere here
            result = method(stand_in, *args, **kwargs)
        replaced = getattr(type(self), method.__name__) is not replace_at_once
        # one assignment, which no interrupt divides
        self.__dict__ = {**fitted, **vars(stand_in)} if replaced else vars(stand_in)
        return cast(Answer, self) if result is stand_in else result

    return replace_at_once


def _gives_a_row_a_series(
    method: Callable[Concatenate[Any, Arguments], np.ndarray],
) -> Callable[Concatenate[Any, Arguments], Any]:
    """Have `transform` name its rows after the series of a long frame, where a frame is asked for.

    scikit-learn would give them the index of `X`, which there has a row for each time point.
    """

    @wraps(method)
    def name_rows(self: Any, /, *args: Arguments.args, **kwargs: Arguments.kwargs) -> Any:
        found = method(self, *args, **kwargs)
        X = args[0] if args else kwargs.get("X")
        names = names_of_series(X)
        kind: Any = type(X)
        if names is None or _get_output_config("transform", self)["dense"] != "pandas":
            return found
        # a frame of a subclass has names of its own
        return found if isinstance(found, kind) else kind(found, index=names)

    return name_rows


#: Methods of estimators, and what all of them have in common.
_DECORATED: dict[str, Callable[[Any], Any]] = {
    "fit": _replaces_at_once,
    "partial_fit": _replaces_at_once,
    "update": _replaces_at_once,
    "transform": _gives_a_row_a_series,
}


class SeriesMixin:
    """Validation, state and tags of estimators whose samples are time series.

    Methods called `fit`, `partial_fit` and `update` are made to replace the fitted state as a
    whole; `transform` to name the rows of a frame after the series.
    """

    _parameter_constraints: ClassVar[dict[str, list[Any]]]
    engine: str | None
    n_jobs: int | None
    verbose: int
    #: Of training data that are a frame of a row for each time point.
    _channel_names: tuple[str, ...] = ()
    #: How much of `verbose` is for lines of the estimator itself: the bars of reductions need more.
    _own_verbose: ClassVar[int] = 0

    def __init_subclass__(cls, **kwargs: Any) -> None:
        # before scikit-learn, which names the columns of what `transform` gives
        for name, decorate in _DECORATED.items():
            if name in vars(cls):
                setattr(cls, name, decorate(vars(cls)[name]))
        super().__init_subclass__(**kwargs)

    def _validate_params(self) -> None:
        """Check the parameters as scikit-learn does; truth values are no numbers."""
        super()._validate_params()  # type: ignore[misc]  # scikit-learn's
        given = {name: getattr(self, name) for name in self._parameter_constraints}
        refuse_truth(given, self._parameter_constraints, type(self).__name__)

    def __setattr__(self, name: str, value: Any) -> None:
        """Set an attribute; parameters that are scalars of NumPy become Python's."""
        super().__setattr__(name, value if name.endswith("_") else plain(value))

    def __getstate__(self) -> dict[str, Any]:
        """Return what a pickle holds: all attributes, and which version of skts made them."""
        state: Any = super().__getstate__()
        return {**state, "_skts_version": _version.__version__}

    def __setstate__(self, state: dict[str, Any]) -> None:
        """Take the attributes from a pickle; one of another version may not mean the same."""
        state = dict(state)
        made_by = state.pop("_skts_version", "before 0.1.0")
        if made_by != _version.__version__:
            warnings.warn(
                f"This {type(self).__name__} was pickled by skts {made_by} and is read by skts "
                f"{_version.__version__}, which may not understand it: fit it anew.",
                InconsistentVersionWarning,
                stacklevel=2,
            )
        super().__setstate__(state)  # type: ignore[misc]  # scikit-learn's

    def __sklearn_tags__(self) -> Tags:
        """Return scikit-learn's tags: 2-D and 3-D input, no NaN but as padding.

        A precomputed matrix of distances is cut along both axes, and positive.
        """
        tags: Tags = super().__sklearn_tags__()  # type: ignore[misc]  # scikit-learn's
        tags.input_tags.three_d_array = True
        tags.input_tags.pairwise = tags.input_tags.positive_only = self._precomputed
        return tags

    @property
    def _precomputed(self) -> bool:
        """Whether samples are rows of a matrix of distances to the training series."""
        metric = getattr(self, "metric", None)
        return isinstance(metric, str) and metric == "precomputed"

    def _check_rows(self, X: Any, *, new: bool = True) -> Series:
        """Check series, or rows of a matrix of distances where these are precomputed."""
        if self._precomputed:
            return read_distances(X, estimator=self)
        return check_series(X, estimator=self, new=new)

    def _remember_form(self, X: Any, series: Series) -> None:
        """Remember width, names and channels of training data that have been checked."""
        if is_3d(X):
            self.n_features_in_ = np.shape(form_of(X))[2]
        elif not is_list_of_series(X):
            validate_data(self, form_of(X), "no_validation", reset=True, skip_check_array=True)
        self.n_channels_ = series.n_channels
        self._channel_names = channel_names(X)

    def _validate_series(self, X: Any) -> Series:
        """Validate series that come after `fit`, and compare their form with what was remembered.

        A 2-D array must have the width of the training data; lists and 3-D are of any length.
        """
        series = self._check_rows(X, new=False)
        self._compare_form(X, series.n_channels, series.n_timepoints)
        return series

    def _compare_form(self, X: Any, n_channels: int, n_timepoints: int = 0) -> None:
        """Compare the form of series that have been checked with what was remembered."""
        any_length = is_list_of_series(X) or is_3d(X)
        if not any_length and hasattr(self, "n_features_in_"):
            validate_data(self, form_of(X), "no_validation", reset=False, skip_check_array=True)
        if n_channels != self.n_channels_:
            swapped = n_timepoints == self.n_channels_ and not is_list_of_series(X)
            advice = f" If the channels come last, write {transposed(X, 'X', (0, 2, 1))}."
            raise ValueError(
                f"X has {counted(n_channels, 'channel')}, but {type(self).__name__} is expecting "
                f"{counted(self.n_channels_, 'channel')} as input.{advice if swapped else ''}"
            )
        refuse_other_channels(X, self._channel_names, "X", "the series of fit")

    def _validate_target(self, X: Any, y: Any) -> np.ndarray:
        """Validate a target of one column that goes with `X`."""
        return check_target(X, y, f"This {type(self).__name__} estimator")

    def _run(
        self,
        reduction: Reduction,
        engine: str | Engine | None = None,
        verbose: int | None = None,
    ) -> Any:
        """Compute a reduction with this estimator's options, where no others are given."""
        engine = self.engine if engine is None else engine
        verbose = max(0, self.verbose - self._own_verbose) if verbose is None else verbose
        return run(reduction, engine=engine, n_jobs=self.n_jobs, verbose=verbose)

    def _run_all(self, reductions: Sequence[Reduction]) -> list[Any]:
        """Compute several reductions of one kind with this estimator's options."""
        engine, verbose = self.engine, self.verbose
        return run_all(reductions, engine=engine, n_jobs=self.n_jobs, verbose=verbose)
