"""A new engine, in a package of its own: matrices of DTW with NumPy alone."""

import numpy as np

from skts.engines import Engine, Warping


class RowsEngine(Engine):
    """Row by row of the cumulative matrices, of all pairs of a tile at once."""

    name = "rows"
    tile_work = 2**22  # steps of a tile: some hundredths of a second

    def available(self):
        return None  # runs everywhere; else a sentence: what is missing, and how to get it

    def details(self):
        return f"NumPy {np.__version__}"

    def seconds(self, reduction):
        return 1e-8 * reduction.total_work  # what "auto" compares; Numba's threads are faster

    def dtw_matrix_lacks(self, reduction):
        if reduction.warping != Warping():
            return "engine='rows' computes DTW with squared costs and without a window only."
        if any((side.lengths != side.n_timepoints).any() for side in reduction.sides):
            return "engine='rows' takes series of one length only."
        return None

    def dtw_matrix_bytes(self, reduction, rows, cols):
        n_timepoints = reduction.sides[1].n_timepoints
        return 0, 8 * rows * cols * (2 * (n_timepoints + 1) + 6)  # two rows, and what NumPy needs

    def dtw_matrix(self, reduction, tile, cancel):
        x, y = (
            side.values[part]
            for side, part in zip(reduction.sides, (tile.rows, tile.cols), strict=True)
        )
        above = np.full((y.shape[2] + 1, len(x), len(y)), np.inf)
        above[0] = 0.0
        for i in range(x.shape[2]):
            if cancel[0]:  # Ctrl-C: any answer will do
                break
            here = np.full_like(above, np.inf)
            for j in range(y.shape[2]):
                # certified values have one order of operations: channels first, then the path
                cost = np.zeros((len(x), len(y)))
                for channel in range(x.shape[1]):
                    difference = x[:, channel, i, np.newaxis] - y[:, channel, j]
                    cost += difference * difference
                least = np.minimum(np.minimum(above[j], above[j + 1]), here[j])
                here[j + 1] = cost + least
            above = here
        return np.sqrt(above[-1])
