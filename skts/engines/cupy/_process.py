"""CUDA belongs to one process: those forked from it have none."""

from __future__ import annotations

import os

__all__ = ["CANNOT_START", "claim", "lost_by_fork"]

#: Error of CUDA in a process forked from one where it ran: cudaErrorInitializationError.
CANNOT_START = 3

_user: int | None = None


def claim() -> None:
    """Remember that CUDA has started in this process: asking for devices is enough."""
    global _user
    if _user is None:
        _user = os.getpid()


def lost_by_fork(status: int | None = None) -> str | None:
    """Say why CUDA cannot be used here, if a fork is the reason.

    Parameters
    ----------
    status : int or None, default None
        The error that CUDA gave when it was asked: it knows of a fork that came after other
        libraries had used the GPU.

    Returns
    -------
    str or None
        A sentence.
    """
    if _user in (None, os.getpid()) and status != CANNOT_START:
        return None
    return (
        "engine='cupy' cannot be used here: this process was forked from one that used the GPU, "
        "and CUDA does not survive that. Start processes with joblib's loky, or with "
        "multiprocessing's spawn or forkserver."
    )
