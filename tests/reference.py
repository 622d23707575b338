"""The oracle: every method in plain loops, slow and obvious; also the third engine.

It registers through the public entry point ``skts.engines`` (see ``skts_oracle.dist-info``) and
passes the same suite as the engines that ship.
"""

from __future__ import annotations

import math
from inspect import signature

import numpy as np
from reference_averages import AveragesOracle
from reference_channels import ChannelOracle
from reference_dilated import BestOracle, DilatedOracle
from reference_elastic import DISTANCES as ELASTIC
from reference_elastic import distance as elastic
from reference_groups import GroupOracle
from reference_join import JoinOracle
from reference_motifs import MKOracle
from reference_rotation import RotationOracle
from reference_sbd import SBDOracle
from reference_shapelets import ShapeletOracle
from reference_subsequence_search import SubsequenceOracle

from skts.engines import Engine, WarpingPath
from skts.engines.core.certify import Bound, Shortlist


def accumulate(x, y, *, metric="dtw", cost="squared", radius=None, alignment="global"):
    """Accumulated costs D of the best paths to every cell; x and y are (n_channels, n).

    The cost of two points in a channel is "squared", "absolute" or a function.
    """
    n, m = x.shape[1], y.shape[1]
    D = np.full((n + 1, m + 1), np.inf)
    D[0, 0] = 0.0
    if alignment == "subsequence":
        D[0, :] = 0.0
    if alignment == "supersequence":
        D[:, 0] = 0.0
    for i in range(n):
        for j in range(m):
            if radius is not None and abs(i - j) > radius:
                continue
            here = 0.0
            for c in range(x.shape[0]):
                if callable(cost):
                    here += cost(float(x[c, i]), float(y[c, j]))
                    continue
                difference = float(x[c, i]) - float(y[c, j])
                here += difference * difference if cost == "squared" else abs(difference)
            best = min(D[i, j], D[i, j + 1], D[i + 1, j])
            D[i + 1, j + 1] = here + best if metric == "dtw" else max(here, best)
    return D[1:, 1:]


def band_radius(window, n, m):
    """Half width of the band, None without one."""
    if window is None:
        return None
    if isinstance(window, float):
        window = math.ceil(window * max(n, m) - 1e-9)
    return max(window, abs(n - m))


def dtw(x, y, *, metric="dtw", cost="squared", window=None, alignment="global"):
    """Distance of two series, (n_timepoints,) or (n_channels, n_timepoints)."""
    return dtw_path(x, y, metric=metric, cost=cost, window=window, alignment=alignment)[1]


def dtw_path(x, y, *, metric="dtw", cost="squared", window=None, alignment="global"):
    """Best path: from the first best end backwards, the diagonal first, then a step back in x."""
    x, y = np.atleast_2d(x), np.atleast_2d(y)
    radius = band_radius(window, x.shape[1], y.shape[1])
    D = accumulate(x, y, metric=metric, cost=cost, radius=radius, alignment=alignment)
    i, j = D.shape[0] - 1, D.shape[1] - 1
    if alignment == "subsequence":
        j = int(np.argmin(D[-1]))
    if alignment == "supersequence":
        i = int(np.argmin(D[:, -1]))
    total = float(np.sqrt(D[i, j])) if cost == "squared" else float(D[i, j])
    path = [(i, j)]
    while (i, j) != (0, 0):
        if (alignment == "subsequence" and i == 0) or (alignment == "supersequence" and j == 0):
            break
        steps = [(i - 1, j - 1), (i - 1, j), (i, j - 1)]
        steps = [(a, b) for a, b in steps if a >= 0 and b >= 0]
        i, j = min(steps, key=lambda step: D[step])  # the first of equals
        path.append((i, j))
    return np.array(path[::-1]), total


def named(metric, x, y, *, cost="squared", window=None, **parameters):
    """Distance of two series by a name that estimators take."""
    x, y = (np.atleast_2d(np.asarray(z, float)) for z in (x, y))
    if metric == "euclidean":
        difference = np.abs(x - y)
        return float(np.sqrt((difference**2).sum()) if cost == "squared" else difference.sum())
    if metric in ("dtw", "dog_keeper", "frechet"):
        metric = "dtw" if metric == "dtw" else "dog_keeper"
        return dtw(x, y, metric=metric, cost=cost, window=window)
    if metric in ("ddtw", "wdtw", "adtw", "shape_dtw"):
        parameters["cost"] = cost
    return elastic(metric, x, y, window=window, **parameters)


def pairwise_dtw(X, Y, **options):
    """Matrix of distances between two lists of series."""
    return np.array([[dtw(x, y, **options) for y in Y] for x in X])


def nearest(distances, n_neighbors, excluded=None):
    """Sort every row by (distance, index)."""
    best_distances, best_indices = [], []
    for i, row in enumerate(distances):
        order = [j for j in range(len(row)) if excluded is None or j != excluded[i]]
        order.sort(key=lambda j: (row[j], j))
        best_indices.append(order[:n_neighbors])
        best_distances.append([row[j] for j in order[:n_neighbors]])
    return np.array(best_distances), np.array(best_indices)


def survivors(distances, n_neighbors, excluded=None):
    """The nearest of each row, with nothing in doubt, as an engine hands them out."""
    found = []
    for i, row in enumerate(distances):
        order = [j for j in range(len(row)) if excluded is None or j != excluded[i]]
        order.sort(key=lambda j: (row[j], j))
        found += [(i, j, row[j]) for j in sorted(order[:n_neighbors])]
    rows, cols = (np.array([place[axis] for place in found], np.int64) for axis in (0, 1))
    return Shortlist(rows, cols, np.array([value for *_, value in found]), Bound())


def all_within(distances, radius, excluded=None):
    """All of each row within a distance, with nothing in doubt, as an engine hands them out."""
    found = [
        (i, j, value)
        for i, row in enumerate(distances)
        for j, value in enumerate(row)
        if value <= radius and (excluded is None or j != excluded[i])
    ]
    rows, cols = (np.array([place[axis] for place in found], np.int64) for axis in (0, 1))
    return Shortlist(rows, cols, np.array([value for *_, value in found], float), Bound())


def unpadded(series, index):
    """One series of a `skts.engines.Series`."""
    return series.values[index, :, : series.lengths[index]]


def stepped(x, y, warping):
    """A distance of the elastic family, of series that are prepared for it."""
    known = set(signature(ELASTIC[warping.metric]).parameters) - {"x", "y", "window", "cost"}
    options = {name: getattr(warping, name) for name in known}
    if warping.own:
        if warping.metric == "edr":
            options["epsilon"] = max(x[-1, 0], y[-1, 0])
        x, y = x[:-1], y[:-1]
    if len(warping.costs) > 1:
        options["cost"] = warping.cost
    return elastic(warping.metric, x, y, window=warping.window, **options)


def options_of(warping):
    """Options of a distance as the loops here take them."""
    options = {name: getattr(warping, name) for name in ("metric", "cost", "window", "alignment")}
    function = getattr(warping, "point_cost", None)
    if function is not None:
        options["cost"] = (lambda x, y: function(y, x)) if warping.turned else function
    return options


class OracleEngine(
    ChannelOracle,
    AveragesOracle,
    GroupOracle,
    BestOracle,
    DilatedOracle,
    JoinOracle,
    MKOracle,
    RotationOracle,
    SBDOracle,
    ShapeletOracle,
    SubsequenceOracle,
    Engine,
):
    """Plain loops behind the contract of engines."""

    name = "oracle"

    def available(self):
        return None

    def footprint(self, reduction, rows, cols):
        return 0, 0

    def dtw_matrix_lacks(self, reduction):
        known = ("dtw", "dog_keeper", *ELASTIC)
        if reduction.warping.metric not in known:
            return f"engine='oracle' has no loops for {type(reduction.warping).__name__}."
        return None

    dtw_neighbors_lacks = dtw_pairs_lacks = dtw_matrix_lacks
    dtw_radius_neighbors_lacks = dtw_matrix_lacks

    def dtw_path_lacks(self, reduction):
        known = ("dtw", "dog_keeper")
        if reduction.warping.metric not in known:
            return f"engine='oracle' finds no path for {type(reduction.warping).__name__}."
        return None

    def dtw_matrix(self, reduction, tile, cancel):
        rows, cols = (
            [unpadded(side, i) for i in range(start, stop)]
            for side, start, stop in zip(
                reduction.sides, (tile.row, tile.col), (tile.row_stop, tile.col_stop), strict=True
            )
        )
        if reduction.warping.metric in ELASTIC:
            return np.array([[stepped(x, y, reduction.warping) for y in cols] for x in rows])
        return pairwise_dtw(rows, cols, **options_of(reduction.warping))

    def dtw_neighbors(self, reduction, tile, cancel):
        excluded = None if reduction.excluded is None else reduction.excluded[tile.rows] - tile.col
        distances = self.dtw_matrix(reduction, tile, cancel)
        return survivors(distances, reduction.n_neighbors, excluded)

    def dtw_radius_neighbors(self, reduction, tile, cancel):
        excluded = None if reduction.excluded is None else reduction.excluded[tile.rows] - tile.col
        return all_within(self.dtw_matrix(reduction, tile, cancel), reduction.radius, excluded)

    def dtw_pairs(self, reduction, tile, cancel):
        left, right = reduction.sides
        pairs = reduction.pairs[tile.rows]
        if reduction.warping.metric in ELASTIC:
            sides = [(unpadded(left, i), unpadded(right, j)) for i, j in pairs]
            return np.array([stepped(x, y, reduction.warping) for x, y in sides])
        options = options_of(reduction.warping)
        return np.array([dtw(unpadded(left, i), unpadded(right, j), **options) for i, j in pairs])

    def dtw_path(self, reduction, tile, cancel):
        x, y = (unpadded(side, 0) for side in reduction.sides)
        return WarpingPath(*dtw_path(x, y, **options_of(reduction.warping)))

    def dtw_window_search(self, reduction, tile, cancel):
        cost = "squared" if reduction.squared else "absolute"
        sides = reduction.queries.values[tile.rows], reduction.candidates.values
        excluded = reduction.excluded[tile.rows]
        found = [
            nearest(pairwise_dtw(*sides, window=radius, cost=cost), 1, excluded)[1][:, 0]
            for radius in reduction.radii.tolist()
        ]
        return np.column_stack(found)
