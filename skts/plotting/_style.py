"""What all displays share: a palette that colour-blind readers can tell apart."""

from __future__ import annotations

__all__ = ["COSTS", "color_of"]

#: Okabe and Ito's palette without its yellow, which is too pale for lines, and without black.
_COLORS = ("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#E69F00", "#56B4E9")
#: Colour map of costs: its lightness grows evenly, also without red or green.
COSTS = "cividis"


def color_of(number: int) -> str:
    """Colour of a class, cluster or motif; they repeat after six, so its name stands beside it.

    Parameters
    ----------
    number : int
        Its number.

    Returns
    -------
    str
        A colour as matplotlib takes it.
    """
    return _COLORS[number % len(_COLORS)]
