"""A new reduction: how many points of each series exceed a level. Run it, or import it."""

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from skts.engines import Reduction, run
from skts.engines.core.verify import check_value
from skts.engines.numba import NumbaEngine


# 1. What is computed. In skts: skts/engines/families/NAME/.
@dataclass(frozen=True, eq=False)
class Exceedances(Reduction):
    """How many points of each series exceed a level.

    Parameters
    ----------
    X : ndarray of shape (n_series, n_timepoints)
        The series.
    level : float
        The level.
    """

    method: ClassVar[str] = "exceedances"  # what engines call it

    X: np.ndarray
    level: float

    @property
    def shape(self):  # rows are series; there is nothing along the second axis
        return len(self.X), 1

    @property
    def step_work(self):  # steps for one row and one column
        return self.X.shape[1]

    @property
    def cell(self):  # tiles may begin at any series
        return 1, 1

    def part(self, tile):  # for other processes: a tile with its own data alone
        return Exceedances(self.X[tile.rows], self.level)

    def start(self):
        return np.zeros(len(self.X), np.int64)

    def merge(self, total, tile, result):  # in any order
        total[tile.rows] = result

    def verify(self, answer, sample):  # under set_config(verify=True): plain code
        for i in sample(len(self.X)):
            expected = sum(1 for point in self.X[i].tolist() if point > self.level)
            yield check_value(f"the count of series {i}", answer[i], expected)


# 2. How an engine computes a tile. In skts: a mixin in skts/engines/numba/NAME/tiles.py, and one
#    in skts/engines/cupy/NAME/tiles.py.
class ExceedancesEngine(NumbaEngine):
    """The engine of the CPU with one method more; threads, tiles and memory are planned for it."""

    name = "numba-exceedances"
    tile_work = 2**12  # tiny tiles, to have several here

    def exceedances(self, reduction, tile, cancel):
        return np.count_nonzero(reduction.X[tile.rows] > reduction.level, axis=1)

    def exceedances_bytes(self, reduction, rows, cols):
        return 0, rows * (reduction.X.shape[1] + 8)  # truth values, and their counts


# 3. What users call. In skts: skts/metrics/, or an estimator.
def count_exceedances(X, level, *, n_jobs=None, verbose=0):
    """Count in parts, on all threads, with progress and cancellation."""
    return run(Exceedances(X, level), engine=ExceedancesEngine(), n_jobs=n_jobs, verbose=verbose)


if __name__ == "__main__":
    X = np.random.default_rng(0).normal(size=(500, 100))
    counts = count_exceedances(X, 1.0, verbose=2)
