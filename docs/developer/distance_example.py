"""A new elastic distance, in a package of its own: points are matched, or left out at a price."""

from dataclasses import dataclass, replace
from typing import ClassVar

import numpy as np

from skts.base import check_series
from skts.engines import DTWMatrix, DTWNeighbors, Warping, run
from skts.engines.numba import Cell, cell_of


# 1. What is computed. In skts: skts/engines/families/elastic/warping.py.
@dataclass(frozen=True)
class Gaps(Warping):
    """Global alignment with gaps of constant cost (Needleman and Wunsch, 1970).

    Two points that are matched cost what they differ by; one that is left out, in either series,
    has a price, in each channel.

    Parameters
    ----------
    delete, insert : float
        Prices of leaving out a point of the first, and of the second series.
    """

    metric: str = "gaps"
    cost: str = "absolute"
    delete: float = 1.0
    insert: float = 1.0
    metrics: ClassVar[tuple[str, ...]] = ("gaps",)
    borders: ClassVar[bool] = True  # a path may begin with points that are left out

    @property
    def symmetric(self):  # of such a matrix half is computed
        return super().symmetric and self.delete == self.insert

    @property
    def flipped(self):  # the same distance when the two series change places
        return replace(super().flipped, delete=self.insert, insert=self.delete)

    def plain_cost(self, x, y):  # under set_config(verify=True): plain code
        (n_channels, n), m = x.shape, y.shape[1]
        radius = self.radius(n, m)
        costs = np.full((n + 1, m + 1), np.inf)
        costs[0, 0] = 0.0
        for i in range(n + 1):
            for j in range(max(0, i - radius), min(m, i + radius) + 1):
                if i > 0 and j > 0:
                    matched = np.cumsum(abs(x[:, i - 1] - y[:, j - 1]))[-1]  # adds in order
                    costs[i, j] = matched + costs[i - 1, j - 1]
                if i > 0:
                    costs[i, j] = min(costs[i, j], costs[i - 1, j] + n_channels * self.delete)
                if j > 0:
                    costs[i, j] = min(costs[i, j], costs[i, j - 1] + n_channels * self.insert)
        return costs[n, m]


# 2. How the CPU engine fills a cell. In skts: skts/engines/numba/elastic/cells.py.
@dataclass(frozen=True)
class GapCell(Cell):
    """Three steps of different costs; the first points of a series may be left out, too."""

    uneven: ClassVar[bool] = True
    borders: ClassVar[bool] = True

    delete: float
    insert: float

    def match(self, x, y, x_before, y_before):
        return abs(x - y)

    def down(self, x, x_before, y):
        return self.delete

    def right(self, y, y_before, x):
        return self.insert


@cell_of.register
def _(distance: Gaps):
    if distance.squared:
        raise LookupError  # refused in a sentence, as by engines that do not know the distance
    return GapCell(float(distance.delete), float(distance.insert))


# 3. What users call. In skts: skts/metrics/, skts/neighbors/.
def pairwise_gaps(X, Y, *, engine=None, **options):
    """Compute all distances between two sets of series."""
    return run(DTWMatrix(check_series(X), check_series(Y), Gaps(**options)), engine=engine)


def nearest_by_gaps(X, Y, n_neighbors=1, *, engine=None, **options):
    """Find the nearest series of Y for each of X."""
    sides = check_series(X), check_series(Y)
    return run(DTWNeighbors(*sides, n_neighbors, warping=Gaps(**options)), engine=engine)
