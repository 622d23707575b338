"""A case: one call with everything that it depends on, which can be drawn, kept, cut and repeated.

Data are kept as plain float64 series beside the *form* in which they are handed over (dtype,
memory layout, list or array): the oracle sees the former, the package the latter.
"""

from __future__ import annotations

import importlib.util
import json
import re
import tempfile
from dataclasses import dataclass, field, fields, replace
from pathlib import Path
from typing import Any

import numpy as np

__all__ = ["Case", "LISTS", "Sample", "UNSEEDED", "as_python"]

#: Memory layouts; "memmap" writes a file and is drawn rarely.
LAYOUTS = (
    *("C", "F", "strided", "negative", "readonly", "unaligned", "swapped", "nested", "memmap"),
)

#: Forms in which series have any lengths.
LISTS = ("list", "frames", "long")

#: The type of a seed that is not handed over: each call then draws others.
UNSEEDED = "None"


@dataclass(frozen=True)
class Sample:
    """Series, and how they are handed over.

    Attributes
    ----------
    series : tuple of ndarray of shape (n_channels, n_points), float64
        The values, exact in `dtype`.
    form : {"array", "array3d", "list", "padded", "frame", "frames", "long", "single", "row"}
        One array of series of one length, a list of arrays, an array with NaN behind shorter
        series, a data frame, a list of these with a row for each point, one with such rows of all
        series, or (of the first series alone) an array of points, which in a "row" has an axis of
        channels even if there is one.
    dtype, layout : str
        Type of the numbers, and how they lie in memory.
    spare : int
        Columns of a padded array that no series reaches.
    """

    series: tuple[np.ndarray, ...]
    form: str = "list"
    dtype: str = "float64"
    layout: str = "C"
    spare: int = 0

    def __len__(self) -> int:
        return len(self.series)

    @property
    def lengths(self) -> np.ndarray:
        """Points of every series."""
        return np.array([one.shape[1] for one in self.series])

    @property
    def width(self) -> int:
        """Columns, where the form has them."""
        return int(self.lengths.max()) + (self.spare if self.form == "padded" else 0)

    def goes_with(self, fitted: Sample) -> bool:
        """Whether these may follow, in their form, where others have been fitted in theirs."""
        any_length = fitted.form in LISTS or self.form in (*LISTS, "array3d")
        return any_length or self.width == fitted.width

    @property
    def n_channels(self) -> int:
        """Channels of every series."""
        return len(self.series[0])

    @property
    def lines(self) -> list[np.ndarray]:
        """The series of one channel as 1-D arrays."""
        return [one[0] for one in self.series]

    def take(self, rows: Any) -> Sample:
        """Some of the series, in as many columns."""
        taken = self.of([self.series[row] for row in rows])
        if taken.form != "padded":
            return taken
        return replace(taken, spare=self.width - int(taken.lengths.max()))

    def of(self, series: Any, *, plain: bool = False) -> Sample:
        """Other series in the same form, or in the plainest that they fit."""
        series = tuple(np.asarray(one, np.float64) for one in series)
        if plain or self.form in ("single", "row"):
            form = self.form if self.form in ("single", "row") else "list"
            return Sample(series, form)
        equal = len({one.shape for one in series}) == 1
        form = self.form
        if form in ("array", "array3d", "frame") and not equal:
            form = "list"
        if form in ("frames", "long") and len(series[0]) > max(one.shape[1] for one in series):
            form = "list"
        return replace(self, series=series, form=form)

    def give(self) -> Any:
        """The arguments that the package is given."""
        if self.form in ("single", "row"):
            points = self.series[0]
            alone = self.form == "single" and len(points) == 1
            return _lay(points[0] if alone else points, self.dtype, self.layout)
        if self.form == "frames" and importlib.util.find_spec("pandas"):
            import pandas

            return [pandas.DataFrame(x.T.astype(self.dtype)) for x in self.series]
        if self.form == "long" and importlib.util.find_spec("pandas"):
            import pandas

            points = np.concatenate([x.T for x in self.series]).astype(self.dtype)
            rows = [(f"s{k}", t) for k, n in enumerate(self.lengths.tolist()) for t in range(n)]
            return pandas.DataFrame(points, index=pandas.MultiIndex.from_tuples(rows))
        if self.form in LISTS:
            # lists of lists are a list of series only where lengths differ
            alike = self.layout == "nested" and len(set(self.lengths.tolist())) == 1
            layout = "C" if alike else self.layout
            return [_lay(x[0] if len(x) == 1 else x, self.dtype, layout) for x in self.series]
        if self.form == "padded":
            values = np.full((len(self), self.n_channels, self.width), np.nan)
            for row, one in enumerate(self.series):
                values[row, :, : one.shape[1]] = one
        else:
            values = np.stack(self.series)
        if values.shape[2] == 1 and values.shape[:2] != (1, 1):
            # arrays of columns, nested lists too, are refused or warned of as exchanged axes
            layout = "C" if self.layout == "nested" else self.layout
            return [_lay(x, self.dtype, layout) for x in self.series]
        if self.n_channels == 1 and self.form != "array3d":
            values = values[:, 0]
        if self.form == "frame":
            try:
                import pandas
            except ImportError:  # the same numbers as an array
                return _lay(values, self.dtype, "C")
            return pandas.DataFrame(values.astype(self.dtype))
        return _lay(values, self.dtype, self.layout)

    def text(self) -> str:
        """Python text that makes it again."""
        series = ", ".join(f"np.array({_numbers(one)})" for one in self.series)
        more = "".join(
            f", {name}={value!r}"
            for name, value in (
                ("form", self.form),
                ("dtype", self.dtype),
                ("layout", self.layout),
                ("spare", self.spare),
            )
            if value != getattr(Sample, name, None)
        )
        return f"Sample(({series},){more})"


#: How Python writes infinity, which it does not read.
_INFINITE = re.compile(r"\binf\b")


def _numbers(values: np.ndarray) -> str:
    text = repr(values.tolist())
    return text.replace("nan", "np.nan").replace("inf", "np.inf")


def _lay(values: np.ndarray, dtype: str, layout: str) -> Any:
    """An array of these values with a type and a layout."""
    values = np.ascontiguousarray(values.astype(dtype))
    if layout == "F":
        return np.asfortranarray(values)
    if layout == "strided":
        wide = np.zeros((*values.shape[:-1], 2 * values.shape[-1]), values.dtype)
        wide[..., ::2] = values
        return wide[..., ::2]
    if layout == "negative":
        return np.ascontiguousarray(values[..., ::-1])[..., ::-1]
    if layout == "readonly":
        values.flags.writeable = False
        return values
    if layout == "unaligned":
        room = np.zeros(values.nbytes + 1, np.uint8)
        moved = room[1:].view(values.dtype).reshape(values.shape)
        moved[...] = values
        return moved
    if layout == "swapped":
        return values.astype(values.dtype.newbyteorder())
    if layout == "nested":
        return values.tolist()
    if layout == "memmap":
        with tempfile.NamedTemporaryFile() as file:
            mapped = np.memmap(file.name, values.dtype, "w+", shape=values.shape)
            mapped[...] = values
            mapped.flush()
            return np.memmap(file.name, values.dtype, "r", shape=values.shape)
    return values


def as_python(value: Any, kind: str | None) -> Any:
    """An option in the type in which it is handed over: Python's or NumPy's, if it holds it.

    A seed may be a new `RandomState`, or None.
    """
    if kind is None or value is None:
        return value
    if kind == UNSEEDED:
        return None
    if kind == "RandomState":
        return np.random.RandomState(value)
    type = getattr(np, kind)
    if isinstance(value, int) and issubclass(type, np.integer) and value > np.iinfo(type).max:
        return value
    return type(value)


@dataclass(frozen=True)
class Case:
    """One call of one public function, or one life of an estimator.

    Attributes
    ----------
    name : str
        What is called, such as "skts.metrics.dtw".
    data : dict of str to Sample or list
        Series and labels, by the name of the argument.
    options : dict of str to object
        Everything else that is handed over; those of methods as "method.option".
    types : dict of str to str
        NumPy types of options that are handed over as such; "RandomState" and "None" of seeds.
    setting : dict of str to object
        What must not change the answer of a second run: "memory", "n_jobs", "tile_work", "inline",
        "kernels", "backend", "devices", "blocks", "instances".
    relation : str or None
        What must hold between this call and another one.
    """

    name: str
    data: dict[str, Any]
    options: dict[str, Any] = field(default_factory=dict)
    types: dict[str, str] = field(default_factory=dict)
    setting: dict[str, Any] = field(default_factory=dict)
    relation: str | None = None

    def given(self, prefix: str = "") -> dict[str, Any]:
        """Options of the call, or of a method "prefix.", as they are handed over."""
        return {
            name.removeprefix(prefix): as_python(value, self.types.get(name))
            for name, value in self.options.items()
            if name.startswith(prefix) and "." not in name.removeprefix(prefix)
        }

    @property
    def unseeded(self) -> bool:
        """Whether it has a seed that is not handed over."""
        return UNSEEDED in self.types.values()

    def but(self, **data: Any) -> Case:
        """The same with other data."""
        return replace(self, data=self.data | data)

    def points(self) -> int:
        """Numbers in the data: what shrinks."""
        samples = [one for one in self.data.values() if isinstance(one, Sample)]
        return sum(one.size for sample in samples for one in sample.series)

    def text(self) -> str:
        """Python text that makes it again."""
        data = ", ".join(
            f"{name!r}: {value.text() if isinstance(value, Sample) else repr(value)}"
            for name, value in self.data.items()
        )
        more = "".join(
            f", {each.name}={_INFINITE.sub('np.inf', repr(getattr(self, each.name)))}"
            for each in fields(self)[2:]
            if getattr(self, each.name)
        )
        more = re.sub(r"(?<![\w.'])inf\b", "np.inf", more)
        return f"Case({self.name!r}, {{{data}}}{more})"

    def save(self, path: Path, **notes: Any) -> None:
        """Write it to an npz file: arrays, and all else as JSON."""
        arrays, plain = {}, {}
        for name, value in self.data.items():
            if isinstance(value, Sample):
                plain[name] = [len(value), value.form, value.dtype, value.layout, value.spare]
                arrays |= {f"{name}:{row}": one for row, one in enumerate(value.series)}
            else:
                plain[name] = {"labels": list(value)}
        rest = {each.name: getattr(self, each.name) for each in fields(self) if each.name != "data"}
        np.savez_compressed(
            path, case=json.dumps(rest | {"data": plain} | {"notes": notes}), **arrays
        )

    @classmethod
    def load(cls, path: Path) -> Case:
        """Read what `save` has written."""
        with np.load(path) as file:
            rest = json.loads(str(file["case"]))
            rest.pop("notes")
            data: dict[str, Any] = {}
            for name, value in rest.pop("data").items():
                if isinstance(value, dict):
                    data[name] = value["labels"]
                    continue
                count, *form = value
                series = tuple(file[f"{name}:{row}"] for row in range(count))
                data[name] = Sample(series, *form)
        return cls(data=data, **rest)
