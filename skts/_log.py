"""Lines for the user while long work goes on: the logger "skts"."""

from __future__ import annotations

import logging

__all__ = ["LOGGER", "tell"]

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
