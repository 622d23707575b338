"""The oracle of rotation invariance: every shift measured, in plain loops."""

from __future__ import annotations

from dataclasses import asdict

import numpy as np
import reference


def rotation_distance(x, y, **options):
    """Least distance over all circular shifts of the second series."""
    x, y = np.atleast_2d(x), np.atleast_2d(y)
    return min(
        reference.dtw(x, np.concatenate([y[:, shift:], y[:, :shift]], axis=1), **options)
        for shift in range(y.shape[1])
    )


class RotationOracle:
    """Rotation invariance in plain loops behind the contract of engines."""

    def rotation_neighbors(self, reduction, tile, cancel):
        excluded = None if reduction.excluded is None else reduction.excluded[tile.rows] - tile.col
        queries, candidates = (
            [reference.unpadded(side, i) for i in range(start, stop)]
            for side, start, stop in (
                (reduction.queries, tile.row, tile.row_stop),
                (reduction.candidates, tile.col, tile.col_stop),
            )
        )
        distances = [
            [rotation_distance(x, y, **asdict(reduction.warping)) for y in candidates]
            for x in queries
        ]
        return reference.survivors(distances, reduction.n_neighbors, excluded)
