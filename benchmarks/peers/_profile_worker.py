"""The matrix profile by skts and by each of its peers (see `_worker.py`).

A request holds `x`, for a join of two series also `y`, `window`, `exclusion` (windows whose starts
are at most so far apart are no neighbours; a quarter of the window less one, which is what SCAMP
has built in) and `threads`. The answer is one vector: the squared distances of the profile, then
the squared distances of some windows to the neighbours that were named, computed here: so that
neighbours are compared too, and those that are equally near may differ. Squares, because a root
near 0 magnifies rounding.
"""

import numpy as np
from _worker import main

#: Points of the warm-up, and windows whose neighbours are looked at.
FEW = 600
LOOKED_AT = 2000


class Skts:
    def profile(self, x, y, window, exclusion, threads):
        from skts.motifs import matrix_profile

        return matrix_profile(
            x, y, window=window, exclusion=exclusion, engine="numba", n_jobs=threads
        )[:2]

    def pan(self, x, lengths, threads):
        from skts.motifs import pan_matrix_profile

        given = {"exclusion": 0.25, "engine": "numba", "n_jobs": threads}
        found = pan_matrix_profile(x, windows=lengths, **given)
        return found.distances * np.sqrt(2 * lengths)[:, np.newaxis], found.indices


class Stumpy:
    """Its exclusion is the ceiling of window / denominator."""

    def profile(self, x, y, window, exclusion, threads):
        import stumpy

        stumpy.config.STUMPY_EXCL_ZONE_DENOM = window / exclusion
        if x.ndim == 2:
            return stumpy.mstump(x, window)
        if y is None:
            found = stumpy.stump(x, window)
        else:
            found = stumpy.stump(x, window, T_B=y, ignore_trivial=False)
        return found[:, 0].astype(float), found[:, 1].astype(np.int64)

    def pan(self, x, lengths, threads):
        """One profile after the other: `stimp`, which is for pan profiles, does just that."""
        import stumpy

        stumpy.config.STUMPY_EXCL_ZONE_DENOM = 4
        distances = np.full((len(lengths), len(x) - lengths[0] + 1), np.inf)
        indices = np.full(distances.shape, -1)
        for k, length in enumerate(lengths.tolist()):
            found = stumpy.stump(x, length)
            distances[k, : len(found)] = found[:, 0].astype(float)
            indices[k, : len(found)] = found[:, 1].astype(np.int64)
        return distances, indices


class Pyscamp:
    """Computes in float64, returns float32."""

    def profile(self, x, y, window, exclusion, threads):
        import pyscamp

        options = {"threads": threads, "precision": "double"}
        if y is None:
            return pyscamp.selfjoin(x, window, **options)
        return pyscamp.abjoin(x, y, window, **options)


class Matrixprofile:
    """Its C code, MPX. Its exclusion is fixed and one point larger: on a smooth series the
    neighbours of some windows differ."""

    def profile(self, x, y, window, exclusion, threads):
        from matrixprofile.algorithms.mpx import mpx

        if y is not None:
            raise NotImplementedError("its join of two series looks both ways at once")
        found = mpx(x, window, n_jobs=threads)
        return found["mp"], found["pi"]


LIBRARIES = {
    library.__name__.lower(): library for library in (Skts, Stumpy, Pyscamp, Matrixprofile)
}


def named_neighbors(x, y, window, indices):
    """Squared distances of windows all over `x` to the neighbours that were named."""
    places = np.linspace(0, len(indices) - 1, LOOKED_AT).astype(int)

    def normalized(series, starts):
        windows = np.lib.stride_tricks.sliding_window_view(series, window)[starts]
        centered = windows - windows.mean(axis=1, keepdims=True)
        return centered / centered.std(axis=1, keepdims=True)

    others = normalized(x if y is None else y, indices[places])
    return ((normalized(x, places) - others) ** 2).sum(axis=1)


def prepare(name, request):
    library = LIBRARIES[name]()
    x, y = request["x"], request.get("y")
    window, exclusion, threads = (int(request[key]) for key in ("window", "exclusion", "threads"))
    few = FEW + 2 * int(np.max(request.get("lengths", window)))

    lengths = request.get("lengths")

    def work(n=None):
        if lengths is not None:
            return library.pan(x[:n], lengths, threads)
        other = None if y is None else y[:n]
        return library.profile(x[..., :n], other, window, exclusion, threads)

    def answer(found):
        distances, indices = found
        if x.ndim == 2 or lengths is not None:
            # of ties, and of every channel, there is no one neighbour to look at
            return np.where(np.isfinite(distances), distances, 0).astype(float).ravel() ** 2
        squares = np.asarray(distances, float) ** 2
        return np.concatenate([squares, named_neighbors(x, y, window, np.asarray(indices))])

    return lambda: work(few), work, answer


if __name__ == "__main__":
    main(prepare, "MotifFinder")
