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
    """So many of a thing, whose plural ends in s.

    Examples
    --------
    >>> counted(1, "channel"), counted(2, "channel")
    ('1 channel', '2 channels')
    """
    return f"{number} {thing}" + ("" if number in (1, "1") else "s")
