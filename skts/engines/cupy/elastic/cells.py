"""Cell policies of the GPU engine: the classes of ``include/cells.cuh``, by their options.

Imports nothing of CUDA.
"""

from __future__ import annotations

from typing import Protocol

import numpy as np

__all__ = ["ANY_CELL", "Costs", "any_cell", "cell_object", "cell_of", "metric_of"]

#: The policy that kernels take whose one instance serves all options.
ANY_CELL = "AnyWarping"
_ANY = np.dtype([("squared", np.int32), ("largest", np.int32)])


class Costs(Protocol):
    """The options of a `Warping` that a policy depends on."""

    @property
    def squared(self) -> bool:
        """Whether costs are squared."""

    @property
    def largest(self) -> bool:
        """Whether the largest cost of a path counts."""


def metric_of(*, squared: bool) -> str:
    """Name the metric of single channels."""
    return "Squared" if squared else "Absolute"


def cell_of(warping: Costs) -> str:
    """Name the policy of a distance: ``"Dtw<Squared>"``."""
    policy = "DogKeeper" if warping.largest else "Dtw"
    return f"{policy}<{metric_of(squared=warping.squared)}>"


def cell_object(cell: str) -> np.ndarray:
    """Return the argument `cell` of a kernel: the parameters of a policy. These have none."""
    # C++ gives an object without members one byte
    return np.zeros(1, [("nothing", np.uint8)])


def any_cell(warping: Costs) -> np.ndarray:
    """Return the argument `cell` of a kernel with the policy `ANY_CELL`."""
    return np.array([(warping.squared, warping.largest)], _ANY)
