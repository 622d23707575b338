"""Readers of the text formats of the UCR and UEA archives."""

from __future__ import annotations

import re
from codecs import BOM_UTF16_BE, BOM_UTF16_LE
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from io import StringIO
from os import PathLike
from pathlib import Path
from typing import NamedTuple

import numpy as np

from .._log import counted

__all__ = ["TrainTest", "read_series", "read_train_test"]

Series = np.ndarray | list[np.ndarray]
#: Longest label, in characters: files with longer ones are taken for damaged.
LONGEST_LABEL = 1000
#: How many times longer than all of them on average a label may be where there are many: in an
#: array all take as much as the longest.
UNEVEN_LABELS, MANY_CHARACTERS = 32, 2**22
#: Characters of a file that a message shows.
SHOWN = 40
#: What Python reads in place of bytes that are not UTF-8.
_NO_TEXT = re.compile(r"[\udc80-\udcff]")


class TrainTest(NamedTuple):
    """A data set in two parts, in the order of scikit-learn's `train_test_split`.

    Attributes
    ----------
    X_train, X_test : ndarray or list of ndarray
        The series, as `read_series` returns them.
    y_train, y_test : ndarray of shape (n_samples,) or None
        Their labels, as `read_series` returns them, but of one type in both parts: int64 where all
        of both are whole numbers, else str.
    """

    X_train: Series
    X_test: Series
    y_train: np.ndarray | None
    y_test: np.ndarray | None


def read_series(path: str | PathLike[str]) -> tuple[Series, np.ndarray | None]:
    r"""Read a file of the UCR or UEA archive: ``.tsv``, ``.txt``, ``.ts`` or ``.arff``.

    ``.tsv``
        One series a line: the label, then the points, between tabs.
    ``.txt``, or no ending
        The same, between commas or white space.
    ``.ts``
        A header of ``@`` tags that ends with ``@data``, then one series a line: its channels
        between colons, the points of a channel between commas, the label last. Lines that begin
        with ``#`` or ``%`` are comments.
    ``.arff``
        Weka's format, read by `scipy.io.arff.loadarff`: an attribute for each point, or one
        relational attribute that holds the channels, and the label as the last attribute.

    Missing points are ``NaN`` or ``?`` and come back as NaN. In ``.tsv`` and ``.txt`` files all
    lines have the same number of fields; shorter series end in NaN there and are returned so.

    Parameters
    ----------
    path : str or path-like
        The file.

    Returns
    -------
    X : ndarray or list of ndarray
        Of float64. Equal lengths: an array of shape (n_samples, n_timepoints), or
        (n_samples, n_channels, n_timepoints) where the header says ``@univariate false`` or there
        is more than one channel. Unequal lengths: a list of arrays of shape (n_timepoints,) or
        (n_channels, n_timepoints).
    y : ndarray of shape (n_samples,) or None
        The labels: int64 where all are whole numbers, else str. In ``.ts`` and ``.arff`` files
        they are names: all that the header states are looked at, and two of them that are one
        number, such as ``1`` and ``01``, stay str. Targets of a regression file (``@targetLabel
        true``, or a number as last attribute): float64. None where the header says that there are
        none.

    Raises
    ------
    ValueError
        Where the file is not what its ending or its header says; the message names the file and
        the line. Files with time stamps, labels that are not in UTF-8, and text in UTF-16 or
        UTF-32 are refused.
    OSError
        Where there is no such file, or it is a folder, a pipe or a device.

    See Also
    --------
    read_train_test : The two files of a data set.

    Examples
    --------
    >>> from pathlib import Path
    >>> from tempfile import TemporaryDirectory
    >>> from skts.datasets import read_series
    >>> with TemporaryDirectory() as folder:
    ...     path = Path(folder) / "Steps_TRAIN.tsv"
    ...     _ = path.write_text("1\t0.0\t0.5\t1.0\n2\t1.0\t0.5\tNaN\n")
    ...     X, y = read_series(path)
    >>> X
    array([[0. , 0.5, 1. ],
           [1. , 0.5, nan]])
    >>> y
    array([1, 2])
    """
    content = _read(_as_path(path, "path"))
    (y,) = _labels([content])
    return content.X, y


def _read(path: Path) -> _Content:
    """Read a file as `read_series` does, but leave its labels texts."""
    read_lines = _READERS.get(path.suffix.lower())
    if read_lines is None:
        raise ValueError(
            f"{path}: the file name must end in .ts, .tsv, .txt or .arff, or have no ending."
        )
    # reading a pipe may wait for ever, and a device may have no end
    if path.exists() and not path.is_file() and not path.is_dir():
        raise OSError(f"{path} is no regular file.")
    _check_encoding(path)
    # Old files have comments in other encodings, which are no reason to refuse them; bytes that are
    # no text are kept, so that labels with other ones stay others until they are refused.
    with path.open(encoding="utf-8-sig", errors="surrogateescape") as stream:
        lines = (
            (_Line(path, number), text.strip(" \r\n"))
            for number, text in enumerate(stream, start=1)
            if text.strip()
        )
        return read_lines(path, lines)


def read_train_test(folder: str | PathLike[str], name: str) -> TrainTest:
    r"""Read the training and the test file of a data set.

    The files are ``NAME_TRAIN`` and ``NAME_TEST`` with the ending ``.ts``, ``.tsv``, ``.txt``,
    none or ``.arff``, the first of these that is there, in the folder or in its subfolder ``NAME``.

    Parameters
    ----------
    folder : str or path-like
        Where the files are.
    name : str
        Name of the data set.

    Returns
    -------
    TrainTest
        Series and labels: ``X_train, X_test, y_train, y_test``.

    Raises
    ------
    FileNotFoundError
        Where one of the two is missing.
    ValueError
        Where the name is a path, or a file is not what its ending or its header says.

    See Also
    --------
    read_series : One file.
    fetch_ucr : The same from the archive.

    Examples
    --------
    >>> from pathlib import Path
    >>> from tempfile import TemporaryDirectory
    >>> from skts.datasets import read_train_test
    >>> with TemporaryDirectory() as folder:
    ...     _ = (Path(folder) / "Steps_TRAIN.txt").write_text("1 0.0 0.5\n2 1.0 0.5\n")
    ...     _ = (Path(folder) / "Steps_TEST.txt").write_text("2 0.9 0.5\n")
    ...     X_train, X_test, y_train, y_test = read_train_test(folder, "Steps")
    >>> X_train.shape, X_test.shape, y_test
    ((2, 2), (1, 2), array([2]))
    """
    folder = _as_path(folder, "folder")
    check_name(name)
    parts = []
    for part in ("TRAIN", "TEST"):
        places = [
            place / f"{name}_{part}{ending}"
            for place in (folder, folder / name)
            for ending in _READERS
        ]
        found = next((place for place in places if place.is_file()), None)
        if found is None:
            raise FileNotFoundError(
                f"There is no {name}_{part} with the ending {', '.join(filter(None, _READERS))}, "
                f"or without one, in {folder} or {folder / name}."
            )
        parts.append(_read(found))
    train, test = parts
    return TrainTest(train.X, test.X, *_labels(parts))


def _as_path(path: str | PathLike[str], name: str) -> Path:
    """A path, or words about an argument that is none."""
    if not isinstance(path, str | PathLike):
        raise TypeError(f"{name}={path!r} is not a path.")
    return Path(path)


def check_name(name: str) -> None:
    """Raise unless a text could be the name of a data set; a path is none.

    Parameters
    ----------
    name : str
        The text.
    """
    if not isinstance(name, str):
        raise TypeError(f"name={name!r} is not the name of a data set.")
    if not name or name == ".." or set(name) & set("/\\\0"):
        raise ValueError(f"name={name!r}: give the name of a data set, and its place as folder.")


# Lines and fields ----------------------------------------------------------------------------


@dataclass(frozen=True)
class _Line:
    """Where a line is, for messages."""

    path: Path
    number: int

    def error(self, what: str) -> ValueError:
        return ValueError(f"{self.path}, line {self.number}: {what}")


_Lines = Iterator[tuple[_Line, str]]


class _Content(NamedTuple):
    """Series of a file, and its labels as texts, or targets of a regression, or neither.

    `names` are the labels that a header states; None where there is no header.
    """

    path: Path
    X: Series
    y: list[str] | np.ndarray | None
    names: Iterable[str] | None = None


def _check_encoding(path: Path) -> None:
    """Refuse text in units of two or four bytes, of which every line would be misread."""
    with path.open("rb") as stream:
        start = stream.read(64)
    # text in UTF-16 or UTF-32 opens with a mark; without one, every other byte or more is 0
    if start.startswith((BOM_UTF16_LE, BOM_UTF16_BE)) or 0 in start:
        raise ValueError(
            f"{path} is not text in UTF-8; it may be in UTF-16, or no text at all: save it again."
        )


def _points(fields: list[str], line: _Line) -> np.ndarray:
    """The fields as float64, ``?`` as NaN."""
    values = [_number(text.replace("?", "nan")) for text in fields]
    if None in values:
        position = values.index(None)
        what = _shown(fields[position].strip())
        raise line.error(f"point {position + 1} is {what}, not a number.")
    return np.array(values, dtype=np.float64)


def _shown(text: str) -> str:
    """Some text of a file, for messages."""
    return repr(text if len(text) <= SHOWN else text[:SHOWN] + "...")


def _number(text: str) -> float | None:
    try:
        return None if "_" in text else float(text)  # Python reads 1_0 as 10, no archive does
    except ValueError:
        return None


def _label(text: str, line: _Line) -> str:
    """Return a label, unless it is too long, or bytes of it are no text.

    In an array all labels take as much as the longest.
    """
    if len(text) > LONGEST_LABEL:
        raise line.error(f"the label has {len(text)} characters, more than {LONGEST_LABEL}.")
    if _NO_TEXT.search(text):
        raise line.error(f"the label {_shown(text)} is not in UTF-8: save the file again in UTF-8.")
    return text


def _labels(files: Sequence[_Content]) -> list[np.ndarray | None]:
    """Whole numbers where all are, also if written like 1.0000000e+00; else the texts of each file.

    Where labels are names, those that the header states count, and none of a file may become
    another: "1" and "01" stay texts.
    """
    numbers: dict[str, int | None] = {}
    distinct = True
    for file in files:
        if not isinstance(file.y, list):
            continue
        known = set(file.y).union(() if file.names is None else file.names)
        own = {text: _whole_number(text) for text in known}
        distinct &= file.names is None or len(set(own.values())) == len(known)
        numbers.update(own)
    if not distinct or None in numbers.values():
        return [_texts(file.y, file.path) if isinstance(file.y, list) else file.y for file in files]
    return [
        np.array([numbers[text] for text in file.y], dtype=np.int64)
        if isinstance(file.y, list)
        else file.y
        for file in files
    ]


def _whole_number(text: str) -> int | None:
    number = _number(text)
    if number is None or not number.is_integer() or abs(number) >= 2**53:
        return None
    return int(number)


def _texts(texts: list[str], path: Path) -> np.ndarray:
    """Labels that are no numbers, unless few are so long that the array would be far larger."""
    size, longest = sum(map(len, texts)), max(map(len, texts))
    if longest * len(texts) > max(MANY_CHARACTERS, UNEVEN_LABELS * size):
        raise ValueError(
            f"{path}: one of {len(texts)} labels has {longest} characters, where all have "
            f"{size / len(texts):.3g} on average."
        )
    return np.array(texts)


def _not_empty(series: list[np.ndarray], path: Path) -> None:
    if not series:
        raise ValueError(f"{path}: the file holds no series.")


# Label first: .tsv and .txt ------------------------------------------------------------------


def _read_delimited(path: Path, lines: _Lines, delimiter: str | None) -> _Content:
    series: list[np.ndarray] = []
    labels: list[str] = []
    for line, text in lines:
        between = "," if delimiter is None and "," in text else delimiter
        label, *fields = (part.strip() for part in text.split(between))
        if not fields:
            wanted = "tabs" if between == "\t" else "commas or white space"
            raise line.error(f"expected a label and points between {wanted}, found one field.")
        if not label:
            raise line.error("the label is missing.")
        if series and len(fields) != len(series[0]):
            raise line.error(
                f"{counted(len(fields), 'point')}, but the lines before have {len(series[0])}."
            )
        series.append(_points(fields, line))
        labels.append(_label(label, line))
    _not_empty(series, path)
    return _Content(path, np.stack(series), labels)


def _read_tsv(path: Path, lines: _Lines) -> _Content:
    return _read_delimited(path, lines, "\t")


def _read_txt(path: Path, lines: _Lines) -> _Content:
    return _read_delimited(path, lines, None)


# A header, label last: .ts -------------------------------------------------------------------

_COMMENT = ("#", "%")


@dataclass
class _Header:
    """Layout that the header of a ``.ts`` file states; None where it states nothing."""

    univariate: bool | None = None
    equal_length: bool | None = None
    n_channels: int | None = None
    n_timepoints: int | None = None
    has_classes: bool | None = None
    is_regression: bool | None = None
    classes: set[str] = field(default_factory=set)

    @property
    def has_target(self) -> bool:
        """Whether a label or a number comes last."""
        return bool(self.has_classes or self.is_regression)

    def read(self, tag: str, values: list[str], line: _Line) -> None:
        """Take in one tag; tags that do not concern the layout are skipped."""
        match tag:
            case "univariate":
                self.univariate = _flag(tag, values, line)
            case "equallength":
                self.equal_length = _flag(tag, values, line)
            case "dimension" | "dimensions":
                self.n_channels = _count(tag, values, line)
            case "serieslength":
                self.n_timepoints = _count(tag, values, line)
            case "classlabel":
                self.has_classes = _flag(tag, values, line)
                self.classes = set(values[1:])
            case "targetlabel":
                self.is_regression = _flag(tag, values, line)
            case "timestamps":
                if _flag(tag, values, line):
                    raise line.error("series with time stamps cannot be read.")
            case "data":
                if self.has_classes is None and self.is_regression is None:
                    raise line.error("@data comes before any @classLabel or @targetLabel.")
                if self.has_classes and self.is_regression:
                    raise line.error("one of @classLabel and @targetLabel may be true, not both.")

    def check(self, channels: list[np.ndarray], line: _Line) -> None:
        """Raise where a series is not what the header promises."""
        lengths = [len(channel) for channel in channels]
        if len(set(lengths)) > 1:
            shown = str(lengths) if len(lengths) <= 8 else f"{lengths[:8]} and more"
            raise line.error(f"the channels have different lengths, {shown}.")
        if self.univariate and len(channels) > 1:
            raise line.error(
                f"{counted(len(channels), 'channel')}, but the header says @univariate true."
            )
        if self.n_channels not in (None, len(channels)):
            raise line.error(
                f"{counted(len(channels), 'channel')}, but the header says @dimensions "
                f"{self.n_channels}."
            )
        if self.n_timepoints not in (None, lengths[0]):
            raise line.error(
                f"{counted(lengths[0], 'point')}, but the header says @seriesLength "
                f"{self.n_timepoints}."
            )


def _flag(tag: str, values: list[str], line: _Line) -> bool:
    if not values or values[0].lower() not in ("true", "false"):
        raise line.error(f"@{tag} must be followed by true or false.")
    return values[0].lower() == "true"


def _count(tag: str, values: list[str], line: _Line) -> int:
    if len(values) != 1 or not re.fullmatch(r"0*[1-9]\d{0,17}", values[0], re.ASCII):
        raise line.error(f"@{tag} must be followed by one positive integer.")
    return int(values[0])


def _read_ts(path: Path, lines: _Lines) -> _Content:
    header = _read_header(path, lines)
    samples: list[np.ndarray] = []
    labels: list[str] = []
    for line, text in lines:
        if text.startswith(_COMMENT):
            continue
        fields = text.split(":")
        if header.has_target:
            labels.append(_label(_target(fields.pop().strip(), header, line), line))
            if not fields:
                raise line.error("expected a series, a colon and a label, found no colon.")
        if any("(" in channel for channel in fields):
            raise line.error("series with time stamps cannot be read.")
        channels = [_points(channel.split(","), line) for channel in fields]
        header.check(channels, line)
        sample = np.stack(channels)
        if samples and len(sample) != len(samples[0]):
            raise line.error(
                f"{counted(len(sample), 'channel')}, but the lines before: {len(samples[0])}."
            )
        if header.equal_length and samples and sample.shape != samples[0].shape:
            raise line.error(
                f"{counted(sample.shape[1], 'point')} after series of {samples[0].shape[1]}, but "
                "the header says @equalLength true."
            )
        samples.append(sample)
    _not_empty(samples, path)

    if header.univariate is not False and len(samples[0]) == 1:
        samples = [sample[0] for sample in samples]
    equal = len({sample.shape for sample in samples}) == 1
    X = np.stack(samples) if equal else samples
    if not header.has_target:
        return _Content(path, X, None)
    if header.is_regression:
        return _Content(path, X, np.array(labels, dtype=np.float64))
    return _Content(path, X, labels, header.classes)


def _read_header(path: Path, lines: _Lines) -> _Header:
    """Read up to and with ``@data``."""
    header = _Header()
    for line, text in lines:
        if text.startswith(_COMMENT):
            continue
        if not text.startswith("@"):
            raise line.error("expected a tag such as @data: the header has no @data yet.")
        tag, *values = text[1:].split() or [""]
        header.read(tag.lower(), values, line)
        if tag.lower() == "data":
            return header
    raise ValueError(f"{path}: the header of a .ts file must end with @data.")


def _target(text: str, header: _Header, line: _Line) -> str:
    if header.is_regression and _number(text) is None:
        raise line.error(f"the target is {_shown(text)}, not a number.")
    if header.classes and not header.is_regression and text not in header.classes:
        raise line.error(f"the label {_shown(text)} is not among those of @classLabel.")
    return text


# Attributes, label last: .arff ---------------------------------------------------------------


_NO_ASCII = re.compile(r"[^\x00-\x7f]")


def _read_arff(path: Path, lines: _Lines) -> _Content:
    from scipy.io import arff  # takes a while, and few need it

    kept, longest, size, in_data = [], 0, 0, False
    for line, text in lines:
        in_data = in_data or text[:5].lower() == "@data"
        if in_data and not text.startswith("%") and _NO_TEXT.search(text):
            raise line.error("not in UTF-8: save the file again in UTF-8.")
        if text[:10].lower() == "@attribute":
            longest = max(longest, *map(len, text.split(",")))
            if longest > LONGEST_LABEL:
                raise line.error(
                    f"a name or value has {longest} characters, more than {LONGEST_LABEL}."
                )
        # SciPy's reader takes ASCII alone
        kept.append(_NO_ASCII.sub(lambda found: f"\2{ord(found[0])}\2", text))
        size += len(text)
    if longest * len(kept) > max(MANY_CHARACTERS, UNEVEN_LABELS * size):
        raise ValueError(f"{path}: labels of {longest} characters would fill memory.")
    try:
        data, meta = arff.loadarff(StringIO("\n".join(kept)))
    except Exception as error:  # the reader fails with whatever its patterns come upon
        text = " ".join(str(error).split()) or type(error).__name__
        raise ValueError(f"{path} cannot be read as ARFF: {_shown(text)}.") from error
    names, kinds = meta.names(), meta.types()
    data = np.atleast_1d(data)
    _not_empty(list(data), path)
    if len(names) < 2:
        raise ValueError(f"{path}: expected attributes for the points and one for the label.")
    if kinds[:-1] == ["relational"]:
        samples = [_relation(rows, path) for rows in data[names[0]]]
        shapes = {sample.shape for sample in samples}
        if len(shapes) > 1:
            raise ValueError(f"{path}: the samples have different channels or points.")
        X = np.stack(samples)
    elif set(kinds[:-1]) == {"numeric"}:
        X = np.column_stack([data[name] for name in names[:-1]])
    else:
        raise ValueError(f"{path}: points are attributes of numbers, or one relational attribute.")
    if kinds[-1] == "numeric":
        return _Content(path, X, data[names[-1]].astype(np.float64))
    if kinds[-1] != "nominal":
        raise ValueError(f"{path}: the last attribute is no label: {kinds[-1]}.")
    labels = [_from_ascii(label.decode()) for label in data[names[-1]].tolist()]
    return _Content(path, X, labels, [_from_ascii(label) for label in meta[names[-1]][1]])


def _from_ascii(text: str) -> str:
    """A label as it is in the file."""
    return re.sub("\2(\\d+)\2", lambda found: chr(int(found[1])), text)


def _relation(rows: np.ndarray, path: Path) -> np.ndarray:
    """The channels of a sample, (n_channels, n_timepoints)."""
    names = rows.dtype.names
    if not names or any(rows.dtype[name].kind != "f" for name in names) or not rows.size:
        raise ValueError(f"{path}: a relational attribute holds rows of numbers.")
    return np.column_stack([rows[name] for name in names])


_READERS = {
    ".ts": _read_ts,
    ".tsv": _read_tsv,
    ".txt": _read_txt,
    "": _read_txt,
    ".arff": _read_arff,
}
