"""Results of several arrays in a line of text, or as a small table in a notebook."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from html import escape
from typing import Any, TypeVar

import numpy as np

__all__ = ["summarized", "table"]

Kind = TypeVar("Kind", bound=type)
#: Values of an array that are shown.
SHOWN = 4


def summarized(kind: Kind) -> Kind:
    """Decorate a named tuple so that its arrays are shown by their first values, or their shape.

    Parameters
    ----------
    kind : type
        The named tuple.

    Returns
    -------
    type
        The same, with a short ``repr`` and, for notebooks, a table.
    """
    methods = {"__repr__": _line, "_repr_html_": _fields}
    for name, method in methods.items():
        setattr(kind, name, method)
    return kind


def table(title: str, head: Sequence[str], rows: Iterable[Sequence[Any]]) -> str:
    """Write a small table in HTML; text is escaped.

    Parameters
    ----------
    title : str
        What stands above it.
    head : sequence of str
        Names of the columns, or none.
    rows : iterable of sequence
        The cells; numbers and arrays are shortened.

    Returns
    -------
    str
        The table.
    """

    def _row(cells: Iterable[str], tag: str) -> str:
        return "<tr>" + "".join(f"<{tag}>{escape(cell)}</{tag}>" for cell in cells) + "</tr>"

    lines = [_row(head, "th")] if head else []
    lines += [_row(map(_short, row), "td") for row in rows]
    return f"<table><caption>{escape(title)}</caption>{''.join(lines)}</table>"


def _line(record: Any) -> str:
    """Name and fields in a line."""
    fields = (
        f"{name}={value!r}" if isinstance(value, str) else f"{name}={_short(value)}"
        for name, value in record._asdict().items()
    )
    return f"{type(record).__name__}({', '.join(fields)})"


def _fields(record: Any) -> str:
    """A table with a row for each field."""
    return table(type(record).__name__, (), record._asdict().items())


def _short(value: Any) -> str:
    """A value in few characters; text as it is."""
    if isinstance(value, np.ndarray):
        if value.ndim != 1:
            return f"<{' x '.join(map(str, value.shape))} {value.dtype}>"
        shown = [_short(one) for one in value[:SHOWN].tolist()]
        more = [f"... {value.size} in all"] if value.size > SHOWN else []
        return f"[{', '.join(shown + more)}]"
    if isinstance(value, float | np.floating):
        return f"{value:.4g}"
    if isinstance(value, list):
        return f"<list of {len(value)}>"
    if isinstance(value, tuple):
        return f"<{type(value).__name__}>"
    return str(value)
