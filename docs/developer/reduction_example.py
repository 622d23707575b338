from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from skts.engines import Engine, Reduction, Tile, run


@dataclass(frozen=True, eq=False)
class Exceedances(Reduction):
    """How many points of each series lie above a level."""

    method: ClassVar[str] = "exceedances"

    X: np.ndarray
    level: float

    @property
    def shape(self):  # rows are series; there is nothing along the second axis
        return len(self.X), 1

    @property
    def step_work(self):
        return self.X.shape[1]

    @property
    def cell(self):
        return 1, 1

    def part(self, tile):
        return Exceedances(self.X[tile.rows], self.level)

    def start(self):
        return np.zeros(len(self.X), np.int64)

    def merge(self, total, tile, result):
        total[tile.rows] = result


class NumpyEngine(Engine):
    """Computes nothing else, with NumPy."""

    name = "numpy"
    tile_work = 2**12  # tiny tiles, to have several here

    def available(self):
        return None

    def exceedances(self, reduction: Exceedances, tile: Tile, cancel: np.ndarray):
        return (reduction.X[tile.rows] > reduction.level).sum(axis=1)

    def exceedances_bytes(self, reduction, rows, cols):
        return 0, rows * reduction.X.shape[1]  # the array of booleans


X = np.random.default_rng(0).normal(size=(500, 100))
counts = run(Exceedances(X, 1.0), engine=NumpyEngine(), verbose=2)
