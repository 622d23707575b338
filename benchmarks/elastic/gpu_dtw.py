"""DTW on one GPU: kernel speed, and wall time from host arrays to host arrays.

    python -m benchmarks.elastic.gpu_dtw

takes less than two minutes and writes `benchmarks/results/gpu-dtw.json`. Every row's results are
checked in the same run: those of the kernel against float64 on the CPU, on a sample, by the bound
that a search relies on; all others, of which nothing may differ, against `engine="numba"`, on some
of the queries.
"""

import time
from itertools import chain

import numpy as np

from benchmarks._gpu import keep_rows, make_parser, median_launches, median_wall, verdict
from benchmarks._sets import archive
from skts._metrics import distance_of
from skts.engines import DTWMatrix, DTWNeighbors, DTWPath, Series, Warping, run

#: Values of a set of series in a kernel run: a gigabyte on the host in float64.
VALUES = 2**27
#: Cells of an all-pairs kernel run: 40 ms at 5 Tcells/s.
CELLS = 2e11
#: Length, what an issue is accepted on and where we want to be, in Tcells/s.
KERNEL_ROWS = (
    (127, 5.4, 6.8),
    (255, 5.4, 6.8),
    (511, 5.4, 6.8),
    (1023, 5.4, 6.8),
    (2047, 4.8, 6.8),
    (100, 4.2, 6.0),
    (427, 4.2, 6.0),
    (637, 4.2, 6.0),
    (1092, 4.2, 6.0),
)
#: Name, options, channels, lengths, must and reach of all-pairs kernel runs with options.
OPTION_ROWS = (
    ("DK", Warping("dog_keeper"), 1, (128, 512, 1024), 4.2, 6.0),
    ("absolute cost", Warping(cost="absolute"), 1, (128, 512, 1024), 4.2, 6.0),
    ("subsequence", Warping(alignment="subsequence"), 1, (128, 512, 1024), None, None),
    ("3 channels", Warping(), 3, (512,), 2.4, 3.4),
    (
        "10 % band, cells inside the band",
        Warping(window=0.1),
        1,
        (100, 128, 512, 1024),
        2.5,
        4.0,
    ),
)
#: Distance, must and reach of all-pairs kernel runs of the family.
FAMILY_ROWS = (
    ("erp", 4.0, 5.5),
    ("lcss", 4.0, 6.0),
    ("edr", 4.0, 6.0),
    ("msm", 2.2, 3.2),
    ("twe", 2.2, 3.2),
    ("wdtw", 4.0, 5.5),
    ("adtw", 4.0, 5.5),
    ("ddtw", 4.0, 5.5),
)
#: Points of its series, and bands; figures of bands count the cells inside.
FAMILY_LENGTH, FAMILY_BANDS = 512, (None, 0.05, 0.1)
#: Shortest and longest of the series of unequal length.
UNEQUAL = 300, 512
#: Points of the queries and of the one series of the long runs.
LONG = 64, 1_024_000


def as_series(values):
    """Series that all fill an array of shape (n_series, [n_channels,] n_timepoints)."""
    values = values[:, None, :] if values.ndim == 2 else values
    return Series(values, np.full(len(values), values.shape[2], np.int64))


def kernel_seconds(queries, candidates, warping, *, kernel=None, repeats=7):
    """Time a float32 kernel on all pairs of series that are on the device already.

    Parameters
    ----------
    queries, candidates : Series
        On the host.
    warping : Warping
        Options of the distance.
    kernel : DTWKernel, BandKernel or None
        The instance to launch; None chooses by the lengths.
    repeats : int
        Launches after the first; the median counts.

    Returns
    -------
    seconds : float
        Of the device alone: see `launch_seconds`.
    estimates : cupy.ndarray
        Distances in units of the data.
    bound : Bound
        The error that a search allows for.
    """
    import cupy

    from skts.engines.cupy.elastic import dtw

    search = DTWNeighbors(queries, candidates, 1, warping=warping)
    rescaling = search.rescaling
    rows, cols = (dtw.rescale(dtw.upload(side), rescaling) for side in (queries, candidates))
    reach = warping.largest_radius(queries.lengths, candidates.lengths)
    seconds, found = median_launches(
        dtw,
        lambda: dtw.distances(
            rows,
            cols,
            warping.rescaled(rescaling),
            reach=reach,
            root=False,
            budget=2**30,
            kernel=kernel,
        ),
        repeats,
    )
    estimates = found.astype(float)
    if warping.squared:
        estimates = cupy.sqrt(estimates)
    scale, bound = search.scale_and_bound(rows.error + cols.error)
    return seconds, estimates / scale, bound


def check_estimates(estimates, exact, bound):
    """How far float32 estimates are off; they fail where the bound does not hold."""
    estimates = np.asarray(estimates, float)
    error = float(np.max(np.abs(estimates - exact) / exact))
    allowed = float(np.max(bound.upper(estimates) / estimates)) - 1
    held = np.all((bound.lower(estimates) <= exact) & (exact <= bound.upper(estimates)))
    return verdict(bool(held), f"relative error {error:.1e}, bound {allowed:.1e}")


def cells_of(queries, candidates, warping):
    """Cells of all pairs, by the true lengths; those inside a band for one length alone."""
    length = queries.n_timepoints
    if warping.window is None:
        return int(queries.lengths.sum()) * int(candidates.lengths.sum())
    radius = min(int(warping.radius(length, length)), length - 1)
    return len(queries) * len(candidates) * (length * (2 * radius + 1) - radius * (radius + 1))


def kernel_row(name, queries, candidates, must, reach, warping):
    """One run of the kernel on all pairs, checked on a sample of both ends of the sets."""
    seconds, estimates, bound = kernel_seconds(queries, candidates, warping)
    rows, cols = (np.unique([0, len(X) // 2, len(X) - 1]) for X in (queries, candidates))
    sample = DTWMatrix(queries.take(rows), candidates.take(cols), warping)
    return {
        "work": name,
        "value": cells_of(queries, candidates, warping) / seconds / 1e12,
        "unit": "Tcells/s",
        "must": must,
        "reach": reach,
        "checked": check_estimates(
            estimates[rows[:, None], cols].get(), run(sample, engine="numba"), bound
        ),
    }


def kernel_rows(rng):
    """Every length without a window, one query and all pairs; then all pairs with each option."""
    # exact in float32 and centred, so that the kernel's rounding is all that differs
    values = (rng.random(VALUES, dtype=np.float32) - np.float32(0.5)).astype(np.float64)

    def two_sets(n, channels, length):
        both = values[: 2 * n * channels * length].reshape(2 * n, channels, length)
        return as_series(both[:n]), as_series(both[n:])

    for length, must, reach in KERNEL_ROWS:
        many = as_series(values[: VALUES // length * length].reshape(-1, length))
        yield kernel_row(
            f"kernel, one query against {len(many) - 1:,}, length {length}",
            many.take(slice(1)),
            many.take(slice(1, None)),
            must,
            reach,
            Warping(),
        )
        n = int(CELLS**0.5 / length)
        yield kernel_row(
            f"kernel, all pairs {n:,} x {n:,}, length {length}",
            *two_sets(n, 1, length),
            must,
            reach,
            Warping(),
        )
    for name, warping, channels, lengths, must, reach in OPTION_ROWS:
        for length in lengths:
            one = as_series(values[:length].reshape(1, length))
            n = int((CELLS / cells_of(one, one, warping)) ** 0.5)
            yield kernel_row(
                f"kernel, {name}, all pairs {n:,} x {n:,}, length {length}",
                *two_sets(n, channels, length),
                must,
                reach,
                warping,
            )
    for name, must, reach in FAMILY_ROWS:
        for band in FAMILY_BANDS:
            one = as_series(values[:FAMILY_LENGTH].reshape(1, -1))
            n = int((CELLS / cells_of(one, one, Warping(window=band))) ** 0.5)
            given = {"epsilon": 0.25} if name in ("lcss", "edr") else None
            measured = distance_of(name, given, window=band)
            *sides, warping = measured.sides(*two_sets(n, 1, FAMILY_LENGTH))
            shown = "" if band is None else f", {band:.0%} band, cells inside the band"
            yield kernel_row(
                f"kernel, {name}, all pairs {n:,} x {n:,}, length {FAMILY_LENGTH}{shown}",
                *sides,
                must,
                reach,
                warping,
            )
    low, high = UNEQUAL
    n = int(CELLS**0.5 / ((low + high) / 2))
    yield kernel_row(
        f"kernel, lengths from {low} to {high}, all pairs {n:,} x {n:,}",
        *(cut(side, rng.integers(low, high + 1, n)) for side in two_sets(n, 1, high)),
        4.2,
        6.0,
        Warping(),
    )


def cut(series, lengths):
    """The beginnings of series; what is behind them is 0."""
    inside = np.arange(series.n_timepoints) < lengths[:, None, None]
    return Series(np.where(inside, series.values, 0.0), lengths.astype(np.int64))


def search_row(name, X, queries, sample, must, reach, **options):
    """Fit and search: everything is uploaded."""
    from skts import DTWNearestNeighbor

    y = np.zeros(len(X), int)

    def search(engine, queries):
        return DTWNearestNeighbor(1, engine=engine, **options).fit(X, y).kneighbors(queries)

    seconds, (distances, indices) = median_wall(lambda: search("cupy", queries))
    exact_distances, exact_indices = search("numba", queries[sample])
    same = np.array_equal(indices[sample], exact_indices) and np.allclose(
        distances[sample], exact_distances, rtol=1e-9, atol=0
    )
    return {
        "work": f"fit and kneighbors, {name}",
        "value": seconds,
        "unit": "s",
        "must": must,
        "reach": reach,
        "checked": verdict(same, f"neighbours of {len(exact_indices)} queries as numba's"),
    }


def search_rows(rng):
    """The search of paper 004's table 3, and the one that users waited for (tslearn issue 407)."""
    X, queries = (np.cumsum(rng.standard_normal((n, 1024)), axis=1) for n in (1024, 128))
    name = "128 queries, 1,024 series, length 1,024"
    yield search_row(name, X, queries, slice(None, None, 16), 0.1, 0.05)

    X, queries = np.cumsum(rng.standard_normal((2, 20_000, 100)), axis=-1)
    for walks in (X, queries):
        walks -= walks.mean(axis=1, keepdims=True)
        walks /= walks.std(axis=1, keepdims=True)
    name = "20,000 queries, 20,000 series, length 100, 10 % window"
    yield search_row(name, X, queries, slice(None, None, 1000), 1.0, 0.3, window=0.1)


def osuleaf_rows(rng):
    """Fit and predict on OSULeaf, or on warped shapes of its size where SKTS_DATA is not set."""
    from skts import DTWNearestNeighbor
    from skts.datasets import make_warped_shapes

    data, name = archive("OSULeaf"), "OSULeaf"
    if data is None:
        X, y = make_warped_shapes(442, 427, random_state=0)
        data, name = (X[:200], y[:200], X[200:], y[200:]), "warped shapes"
    X, y, Z, z = data

    for window, shown in ((None, ""), (0.1, ", 10 % window")):

        def classify(engine, queries, window=window):
            model = DTWNearestNeighbor(1, engine=engine, window=window)
            return model.fit(X, y).predict(queries)

        seconds, labels = median_wall(lambda classify=classify: classify("cupy", Z))
        same = np.array_equal(labels, classify("numba", Z))
        yield {
            "work": f"1-NN, {name} (200 against 242, length 427), fit and predict{shown}",
            "value": seconds,
            "unit": "s",
            "must": None,
            "reach": None,
            "checked": verdict(same, f"labels as numba's, error {np.mean(labels != z):.4f}"),
        }


def long_rows(rng):
    """Short queries against one very long series, in float64."""
    n, m = LONG
    queries, series = rng.standard_normal((1000, n)), rng.standard_normal((1, m))
    for alignment in ("global", "subsequence", "supersequence"):
        warping = Warping(alignment=alignment)
        for count in (1, len(queries)):

            def compute(engine, count, warping=warping):
                # a supersequence holds what the other side matches: the long series goes first
                sides = as_series(queries[:count].copy()), as_series(series.copy())
                sides = sides[::-1] if warping.alignment == "supersequence" else sides
                return np.ravel(run(DTWMatrix(*sides, warping), engine=engine))

            seconds, distances = median_wall(
                lambda compute=compute, count=count: compute("cupy", count), repeats=3
            )
            checked = min(count, 3)
            same = np.array_equal(distances[:checked], compute("numba", checked))
            yield {
                "work": f"{alignment} DTW in float64, {count:,} x {n} points against {m:,} points",
                "value": seconds,
                "unit": "s",
                "must": None,
                "reach": None,
                "checked": verdict(same, f"distances of {checked} as numba's, bit by bit"),
            }


def path_rows(rng):
    """The best path of one pair of long series, which go in strips."""
    for n in (10_000, 50_000):
        x, y = (as_series(np.cumsum(rng.standard_normal((1, n)), axis=1)) for _ in range(2))
        seconds, found = median_wall(lambda x=x, y=y: run(DTWPath(x, y), engine="cupy"), repeats=2)
        checked = run(DTWPath(x, y), engine="numba")
        same = np.array_equal(found.path, checked.path) and found.distance == checked.distance
        yield {
            "work": f"best path of one pair, {n:,} x {n:,} points",
            "value": seconds,
            "unit": "s",
            "must": None,
            "reach": None,
            "checked": verdict(same, "path and distance as numba's, bit by bit"),
        }


def window_rows(rng):
    """Leave-one-out errors at 101 windows: each window on its own, against one pass on the CPU."""
    from skts.datasets import make_warped_shapes
    from skts.neighbors import dtw_window_search

    X, y = make_warped_shapes(200, 427, random_state=0)
    seconds, found = median_wall(lambda: dtw_window_search(X, y, engine="cupy"), repeats=2)
    start = time.perf_counter()
    checked = dtw_window_search(X, y, engine="numba", n_jobs=1)
    cpu = time.perf_counter() - start
    yield {
        "work": "dtw_window_search, 101 windows, 200 warped shapes of length 427",
        "value": seconds,
        "unit": "s",
        "must": None,
        "reach": None,
        "checked": verdict(
            np.array_equal(found.errors, checked.errors),
            f"errors as numba's, which took {cpu:.2f} s on 1 thread",
        ),
    }


def main():
    options = make_parser(__doc__, "gpu-dtw.json").parse_args()
    rng = np.random.default_rng(0)
    parts = (kernel_rows, search_rows, osuleaf_rows, long_rows, path_rows, window_rows)
    keep_rows("DTW on a GPU", chain.from_iterable(part(rng) for part in parts), options)


if __name__ == "__main__":
    main()
