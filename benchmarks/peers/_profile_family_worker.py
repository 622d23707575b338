"""Profiles of many channels, and of many lengths, by skts and by stumpy (see `_worker.py`).

A request holds `x`, 1-D or of shape (n_channels, n_points), `windows`, one length or several,
`exclusion` and `threads`. The answer is one vector: the squared distances of all profiles. Squares,
because a root near 0 magnifies rounding.
"""

import numpy as np
from _worker import main

#: Points of the warm-up.
FEW = 400


class Skts:
    def channels(self, x, window, exclusion, threads):
        from skts.motifs import matrix_profile

        options = {"exclusion": exclusion, "engine": "numba", "n_jobs": threads}
        return matrix_profile(x, window=window, **options).distances

    def lengths(self, x, windows, threads):
        from skts.motifs import pan_matrix_profile

        found = pan_matrix_profile(x, windows, engine="numba", n_jobs=threads)
        return [
            row[: x.size - window + 1] * np.sqrt(2 * window)
            for row, window in zip(found.distances, windows, strict=True)
        ]


class Stumpy:
    """Its exclusion is the ceiling of window / denominator.

    Of several lengths the profile of each by `stump`: its `stimp` does the same, and keeps pictures
    of the profiles only.
    """

    def channels(self, x, window, exclusion, threads):
        import stumpy

        stumpy.config.STUMPY_EXCL_ZONE_DENOM = window / exclusion
        return stumpy.mstump(x, window)[0]

    def lengths(self, x, windows, threads):
        import stumpy

        stumpy.config.STUMPY_EXCL_ZONE_DENOM = 4
        return [stumpy.stump(x, window)[:, 0].astype(float) for window in windows]


LIBRARIES = {"skts": Skts, "stumpy": Stumpy}


def prepare(name, request):
    library, x, windows = LIBRARIES[name](), request["x"], request["windows"].tolist()
    exclusion, threads = int(request["exclusion"]), int(request["threads"])

    def work(n=None):
        if x.ndim > 1:
            return [library.channels(x[:, :n], windows[0], exclusion, threads)]
        return library.lengths(x[:n], windows, threads)

    def answer(found):
        return np.concatenate([np.ravel(one) for one in found]) ** 2

    return lambda: work(FEW + max(windows)), work, answer


if __name__ == "__main__":
    main(prepare, "MotifFinder")
