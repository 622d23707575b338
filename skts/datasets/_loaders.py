"""The real data that come with the package."""

from __future__ import annotations

from importlib.resources import files
from typing import Literal, overload

import numpy as np
from sklearn.utils import Bunch
from sklearn.utils._param_validation import StrOptions

from .._parameters import checks_arguments
from .._scalars import takes_plain

__all__ = ["load_arrow_head", "load_ecg", "load_gunpoint"]

_DATA = files(__package__) / "data"


def _arrays(filename: str) -> dict[str, np.ndarray]:
    """Every array of one of the shipped archives."""
    with (_DATA / filename).open("rb") as stream, np.load(stream, allow_pickle=False) as archive:
        return dict(archive)


def _description(title: str) -> str:
    """The section of the data's README that is headed `title`."""
    text = (_DATA / "README.md").read_text(encoding="utf-8")
    _, _, section = text.partition(f"\n## {title}\n")
    return f"{title}\n\n" + section.partition("\n## ")[0].strip() + "\n"


def _load_split(
    title: str, filename: str, target_names: list[str], split: str | None, return_X_y: bool
) -> Bunch | tuple[np.ndarray, np.ndarray]:
    arrays = _arrays(filename)
    chosen = ("train", "test") if split is None else (split,)
    X = np.concatenate([arrays[f"X_{part}"] for part in chosen])
    y = np.concatenate([arrays[f"y_{part}"] for part in chosen])
    if return_X_y:
        return X, y
    fold = {"train": -1, "test": 0}
    return Bunch(
        data=X,
        target=y,
        feature_names=[f"t{t}" for t in range(X.shape[1])],
        target_names=np.array(target_names),
        test_fold=np.concatenate([np.full(len(arrays[f"y_{p}"]), fold[p]) for p in chosen]),
        DESCR=_description(title),
        filename=filename,
        data_module=f"{__package__}.data",
    )


_split_constraints = {
    "split": [StrOptions({"train", "test"}), None],
    "return_X_y": ["boolean"],
}


@overload
def load_gunpoint(  # numpydoc ignore=GL08
    *, split: str | None = ..., return_X_y: Literal[False] = ...
) -> Bunch: ...
@overload
def load_gunpoint(  # numpydoc ignore=GL08
    *, split: str | None = ..., return_X_y: Literal[True]
) -> tuple[np.ndarray, np.ndarray]: ...
@overload
def load_gunpoint(  # numpydoc ignore=GL08
    *, split: str | None = ..., return_X_y: bool
) -> Bunch | tuple[np.ndarray, np.ndarray]: ...
@takes_plain
@checks_arguments(_split_constraints)
def load_gunpoint(
    *, split: str | None = None, return_X_y: bool = False
) -> Bunch | tuple[np.ndarray, np.ndarray]:
    """Load GunPoint: hand movements of two actors, drawing a gun or pointing a finger.

    ==================  =============================
    Samples             200 (train 50, test 150)
    Points of a series  150, one channel
    Classes             2: 1 draws a gun, 2 points
    Values              float64, each series z-scored
    ==================  =============================

    Parameters
    ----------
    split : {"train", "test"} or None, default None
        Which part of the archive's split to return; None returns both, the training part first.
    return_X_y : bool, default False
        Return ``(data, target)`` instead of a Bunch.

    Returns
    -------
    data : :class:`~sklearn.utils.Bunch` or tuple of two ndarrays
        A dictionary-like object:

        data : ndarray of shape (n_samples, 150)
            One series a row.
        target : ndarray of shape (n_samples,)
            The archive's labels, 1 and 2.
        feature_names : list of str
            ``"t0"`` to ``"t149"``.
        target_names : ndarray of shape (2,)
            Names of the classes, in the order of the sorted labels.
        test_fold : ndarray of shape (n_samples,)
            -1 for a training sample, 0 for a test sample: what
            :class:`~sklearn.model_selection.PredefinedSplit` takes.
        DESCR : str
            Origin, licence and citation.
        filename, data_module : str
            Where the data are stored.

        With ``return_X_y=True`` the tuple ``(data, target)``.

    See Also
    --------
    load_arrow_head : Three classes.
    load_ecg : One long series.

    References
    ----------
    .. [1] C. A. Ratanamahatana and E. Keogh, "Everything you know about dynamic time warping is
       wrong", Workshop on Mining Temporal and Sequential Data at KDD, 2004.
    .. [2] H. A. Dau et al., "The UCR time series archive", IEEE/CAA Journal of Automatica Sinica
       6(6), 1293-1305, 2019.

    Examples
    --------
    >>> from skts.datasets import load_gunpoint
    >>> X, y = load_gunpoint(split="train", return_X_y=True)
    >>> X.shape, y.shape
    ((50, 150), (50,))

    The archive's split as scikit-learn's cross-validation takes it:

    >>> from sklearn.model_selection import PredefinedSplit, cross_val_score
    >>> from sklearn.neighbors import KNeighborsClassifier
    >>> gunpoint = load_gunpoint()
    >>> cross_val_score(
    ...     KNeighborsClassifier(n_neighbors=1),
    ...     gunpoint.data,
    ...     gunpoint.target,
    ...     cv=PredefinedSplit(gunpoint.test_fold),
    ... ).round(4)
    array([0.9133])
    """
    return _load_split("GunPoint", "gunpoint.npz", ["gun", "point"], split, return_X_y)


@overload
def load_arrow_head(  # numpydoc ignore=GL08
    *, split: str | None = ..., return_X_y: Literal[False] = ...
) -> Bunch: ...
@overload
def load_arrow_head(  # numpydoc ignore=GL08
    *, split: str | None = ..., return_X_y: Literal[True]
) -> tuple[np.ndarray, np.ndarray]: ...
@overload
def load_arrow_head(  # numpydoc ignore=GL08
    *, split: str | None = ..., return_X_y: bool
) -> Bunch | tuple[np.ndarray, np.ndarray]: ...
@takes_plain
@checks_arguments(_split_constraints)
def load_arrow_head(
    *, split: str | None = None, return_X_y: bool = False
) -> Bunch | tuple[np.ndarray, np.ndarray]:
    """Load ArrowHead: outlines of projectile points, read off as series of angles.

    ==================  =====================================
    Samples             211 (train 36, test 175)
    Points of a series  251, one channel
    Classes             3: 0 Avonlea, 1 Clovis, 2 mixed kinds
    Values              float64, each series z-scored
    ==================  =====================================

    Parameters
    ----------
    split : {"train", "test"} or None, default None
        Which part of the archive's split to return; None returns both, the training part first.
    return_X_y : bool, default False
        Return ``(data, target)`` instead of a Bunch.

    Returns
    -------
    data : :class:`~sklearn.utils.Bunch` or tuple of two ndarrays
        The attributes are those of `load_gunpoint`; with ``return_X_y=True`` the tuple
        ``(data, target)``.

    See Also
    --------
    load_gunpoint : Two classes.
    load_ecg : One long series.

    References
    ----------
    .. [1] L. Ye and E. Keogh, "Time series shapelets: a new primitive for data mining", KDD,
       947-956, 2009.
    .. [2] H. A. Dau et al., "The UCR time series archive", IEEE/CAA Journal of Automatica Sinica
       6(6), 1293-1305, 2019.

    Examples
    --------
    >>> from skts.datasets import load_arrow_head
    >>> arrow_head = load_arrow_head(split="test")
    >>> arrow_head.data.shape
    (175, 251)
    >>> arrow_head.target_names.tolist()
    ['Avonlea', 'Clovis', 'Mix']
    """
    names = ["Avonlea", "Clovis", "Mix"]
    return _load_split("ArrowHead", "arrow_head.npz", names, split, return_X_y)


def load_ecg() -> Bunch:
    """Load an electrocardiogram: five minutes of one lead, one long series of 108,000 points.

    Normal beats, premature ventricular beats and stretches of noise: minutes 19:35 to 24:35 of
    lead MLII of record 208 of the MIT-BIH Arrhythmia Database.

    Returns
    -------
    data : :class:`~sklearn.utils.Bunch`
        A dictionary-like object:

        data : ndarray of shape (1, 108000)
            The series, in millivolt. Functions that take a single series want ``data[0]``.
        sampling_frequency : float
            Points a second: 360.
        units : str
            ``"mV"``.
        channel_names : list of str
            ``["MLII"]``.
        DESCR : str
            Origin, licence and citation.
        filename, data_module : str
            Where the data are stored.

    See Also
    --------
    make_planted_motifs : A long series whose motifs are known.

    References
    ----------
    .. [1] G. B. Moody and R. G. Mark, "The impact of the MIT-BIH Arrhythmia Database", IEEE
       Engineering in Medicine and Biology 20(3), 45-50, 2001. :doi:`10.13026/C2F305`
    .. [2] A. L. Goldberger et al., "PhysioBank, PhysioToolkit, and PhysioNet", Circulation
       101(23), e215-e220, 2000. :doi:`10.1161/01.CIR.101.23.e215`

    Examples
    --------
    >>> from skts.datasets import load_ecg
    >>> ecg = load_ecg()
    >>> ecg.data.shape
    (1, 108000)
    >>> seconds = ecg.data.shape[1] / ecg.sampling_frequency
    >>> seconds, ecg.units
    (300.0, 'mV')
    """
    filename = "ecg.npz"
    adc = _arrays(filename)["adc"]
    return Bunch(
        data=(adc[np.newaxis].astype(np.float64) - 1024.0) / 200.0,  # zero and gain of the record
        sampling_frequency=360.0,
        units="mV",
        channel_names=["MLII"],
        DESCR=_description("ECG"),
        filename=filename,
        data_module=f"{__package__}.data",
    )
