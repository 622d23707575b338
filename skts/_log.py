"""Lines for the user while long work goes on: the logger "skts"; and words of messages."""

from __future__ import annotations

import logging

__all__ = ["LOGGER", "counted", "tell"]

LOGGER = logging.getLogger("skts")
if LOGGER.level == logging.NOTSET:
    # `verbose` decides what is said; programs set the level to hear less
    LOGGER.setLevel(logging.INFO)


def tell(text: str) -> None:
    """Log a line that was asked for by `verbose`; without any handler, print it.

    Parameters
    ----------
    text : str
        The line.
    """
    if LOGGER.hasHandlers():
        LOGGER.info(text)
    elif LOGGER.isEnabledFor(logging.INFO):
        print(text)


def counted(number: float | str, thing: str) -> str:
    """Say how many there are of a thing.

    Parameters
    ----------
    number : int, float or str
        How many.
    thing : str
        The thing, whose plural ends in s.

    Returns
    -------
    str
        Such as "1 channel" or "2 channels".
    """
    return f"{number} {thing}" + ("" if number in (1, "1") else "s")
