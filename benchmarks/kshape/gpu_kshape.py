"""k-Shape on one GPU: a whole iteration, from labels on the host to labels on the host.

    python -m benchmarks.kshape.gpu_kshape

writes `benchmarks/results/gpu-kshape.json`. The series are on the device already, as they are in
every iteration of `fit` but the first; what comes before once (copy and spectra) has a column of
its own. Series are synthetic, of the shapes of the sets that the paper and its users name: shapes
of k kinds, moved and noisy. Every row is checked in the same run against `engine="numba"`: labels
and shifts of a sample of the series, and every centre by its residual on the CPU (or, for small
sets, by the centres that the CPU finds). Most of an iteration over a small set is work of the host
(of 2,000 x 1,024 some 0.6 of 0.9 ms), which takes longer beside other work on its core. So small
sets run up to twelve times from the same start; times are the medians of the fastest run. They
also run as plain CuPy would do it: one inverse transform of cuFFT per centre over all series,
arg-max, 30 steps of power iteration.
"""

import time
from functools import partial
from statistics import median

import numpy as np

from benchmarks._gpu import keep_rows, make_parser
from skts.engines import SBDAssign, SBDCenters, Shapes, find_engine, run
from skts.engines.families.kshape.centers import center_space

#: Copy bandwidth of an H200, bytes per second, read and written: what shares are of.
COPY = 4.28e12
#: Name, series, points, clusters; what an issue is accepted on and where we want to be, in ms.
WORKS = (
    ("5,000 x 600, k = 10", 5_000, 600, 10, 5.0, 1.2),
    ("2,000 x 1,024, k = 3", 2_000, 1_024, 3, 2.0, 0.6),
    ("50,000 x 600, k = 10 (synthetic, as InsectSound)", 50_000, 600, 10, 12.0, 5.0),
    ("12,896 x 4,000, k = 2 (synthetic, as RightWhaleCalls)", 12_896, 4_000, 2, 8.0, 4.0),
    ("9,236 x 1,024, k = 3 (synthetic, as StarLightCurves)", 9_236, 1_024, 3, None, None),
    ("1,370 x 2,709, k = 2 (synthetic, as HandOutlines)", 1_370, 2_709, 2, None, None),
    ("606 x 3,053, k = 5", 606, 3_053, 5, None, None),
    ("34,518 x 5,000, k = 3", 34_518, 5_000, 3, None, None),
    ("5,000,000 x 56, k = 8", 5_000_000, 56, 8, 60.0, 20.0),
    ("139,883 x 3,750, k = 2 (synthetic, as MosquitoSound)", 139_883, 3_750, 2, 60.0, 25.0),
)
#: Runs from the same start: most of them, and the seconds after which none begins.
RUNS, RUN_SECONDS = 12, 0.3
#: Points of sets whose centres are computed on the CPU, too.
SMALL = 2**24


def moved_shapes(n_series, n_timepoints, n_kinds, rng, noise=0.5):
    """Shapes of some kinds, moved by up to an eighth of the length, under noise; and the kinds."""
    t = np.arange(3 * n_timepoints) / n_timepoints - 1
    inside = (t > 0.2) & (t < 0.8)
    kinds = np.array(
        [
            inside
            * (np.sin(2 * np.pi * (kind + 2) * t) + 0.5 * np.sign(np.sin((7 + 3 * kind) * t)))
            for kind in range(n_kinds)
        ]
    )
    places = np.lib.stride_tricks.sliding_window_view(kinds, n_timepoints, axis=1)
    errors = noise * rng.standard_normal(2**22 + n_timepoints)
    errors = np.lib.stride_tricks.sliding_window_view(errors, n_timepoints)
    labels = rng.integers(0, n_kinds, n_series)
    shifts = rng.integers(-n_timepoints // 8, n_timepoints // 8 + 1, n_series)
    starts = rng.integers(0, len(errors), n_series)
    values = np.empty((n_series, 1, n_timepoints))
    step = max(1, 2**22 // n_timepoints)
    for first in range(0, n_series, step):
        rows = slice(first, first + step)
        block = places[labels[rows], n_timepoints - shifts[rows]] + errors[starts[rows]]
        block -= block.mean(axis=1, keepdims=True)
        block /= block.std(axis=1, keepdims=True)
        values[rows, 0] = block
    return Shapes.of(values), labels


def iterate(engine, shapes, n_clusters, assigned, centers):
    """One iteration, and the seconds of its halves."""
    start = time.perf_counter()
    found = run(
        SBDCenters(shapes, assigned.labels, assigned.shifts, n_clusters, centers), engine=engine
    )
    middle = time.perf_counter()
    assigned = run(SBDAssign(shapes, found), engine=engine)
    return found.values, assigned, (middle - start, time.perf_counter() - middle)


def check(shapes, centers, before, after, n_clusters, rng):
    """Differences from the CPU: labels and shifts of a sample, centres or their residuals."""
    which = np.sort(rng.choice(len(shapes), min(len(shapes), 400), replace=False))
    expected = run(SBDAssign(shapes.take(which), Shapes.of(centers)), engine="numba")
    same = np.array_equal(expected.labels, after.labels[which])
    same &= np.array_equal(expected.shifts, after.shifts[which])
    same &= np.allclose(expected.distances, after.distances[which], rtol=0, atol=1e-12)
    text = f"labels, shifts of {len(which)} as numba's"
    work = SBDCenters(shapes, before.labels, before.shifts, n_clusters)
    if shapes.values.size <= SMALL:
        found = run(work, engine="numba").values
        worst = float(np.abs(found - centers).max())
        text += f"; centres within {worst:.0e}"
        same &= worst < 1e-8
    else:
        worst = max(residual(work, centers[c].ravel(), c) for c in range(n_clusters))
        text += f"; residual of centres {worst:.0e}"
        same &= worst < 1e-11
    return text if same else f"FAILED: {text}"


def residual(work, center, cluster):
    """How far a centre is from an eigenvector of Q S Q, relative to its eigenvalue, on the CPU."""
    from skts.engines.numba.kshape import sbd

    out = np.zeros((1, *work.series.values.shape[1:]))
    vector = center / np.linalg.norm(center)
    sbd.gram_product(
        work.series.values,
        work.series.flat,
        np.ones(len(work.series)),
        work.members(cluster),
        work.shifts,
        vector.reshape(out.shape),
        out,
        np.zeros(1, np.uint8),
    )
    image = center_space(out.reshape(1, -1), 1, True)[0]
    value = vector @ image
    return float(np.linalg.norm(image - value * vector) / value)


def plain_cupy(shapes, n_clusters, assigned, steps=30):
    """Milliseconds of an iteration in plain CuPy: assignment and centres, medians of five."""
    import cupy
    import cupyx

    length = shapes.n_timepoints
    size = 2 ** int(np.ceil(np.log2(2 * length - 1)))
    X = cupy.asarray(shapes.values[:, 0])
    spectra = cupy.fft.rfft(X, size)
    centers = X[:n_clusters].copy()
    labels, shifts = cupy.asarray(assigned.labels), cupy.asarray(assigned.shifts)

    def assign():
        values = []
        for center in centers:
            product = spectra * cupy.fft.rfft(center, size).conj()
            found = cupy.fft.irfft(product, size)
            found.argmax(axis=1)
            values.append(found.max(axis=1))
        cupy.stack(values).argmax(axis=0).get()

    def update():
        for cluster in range(n_clusters):
            members = cupy.flatnonzero(labels == cluster)
            columns = cupy.arange(length)[None] - shifts[members][:, None]
            inside = (columns >= 0) & (columns < length)
            A = cupy.where(inside, X[members[:, None], columns.clip(0, length - 1)], 0.0)
            A -= A.mean(axis=1, keepdims=True)
            v = A.sum(axis=0)
            for _ in range(steps):
                v = A.T @ (A @ v)
                v /= cupy.linalg.norm(v)
        cupy.cuda.Device().synchronize()

    times = []
    for work in (assign, update):
        elapsed = cupyx.profiler.benchmark(work, name="work", n_repeat=5, n_warmup=1).gpu_times
        times.append(float(np.median(elapsed)) * 1e3)
    return times


def rows(name, n_series, n_timepoints, n_clusters, must, reach, rng):
    """The row of one set."""
    import cupy

    engine = find_engine("cupy")
    shapes, _ = moved_shapes(n_series, n_timepoints, n_clusters, rng)
    start = time.perf_counter()
    assigned = run(SBDAssign(shapes, shapes.take(slice(0, n_clusters))), engine=engine)
    first = time.perf_counter() - start
    # the kernels are compiled by now: what it takes to copy and transform the series
    engine.prepared.clear()
    start = time.perf_counter()
    run(SBDAssign(shapes, shapes.take(slice(0, n_clusters))), engine=engine)
    once = time.perf_counter() - start
    # the first run compiles what the centres need: its time does not count among the seconds
    begin, found, runs = None, assigned, []
    while begin is None or (len(runs) < RUNS and time.perf_counter() - begin < RUN_SECONDS):
        assigned, centers, elapsed = found, None, []
        for _ in range(7):
            before = assigned
            centers, assigned, seconds = iterate(engine, shapes, n_clusters, assigned, centers)
            elapsed.append(seconds)
        # the first warms up; labels settle, so that the work of later ones is an average one
        runs.append(elapsed[1:])
        begin = begin or time.perf_counter()
    elapsed = min(runs, key=lambda one: median(map(sum, one)))
    whole = median(map(sum, elapsed)) * 1e3
    halves = [median(seconds[half] for seconds in elapsed) * 1e3 for half in range(2)]
    kernels = device_times(engine, shapes, n_clusters, assigned, centers)
    row = {
        "work": name,
        "ms an iteration": whole,
        "slowest run": max(median(map(sum, one)) for one in runs) * 1e3,
        "runs": len(runs),
        "must": must,
        "reach": reach,
        "centres": halves[0],
        "assignment": halves[1],
        "sort on the device": kernels["sort"],
        "correlations on the device": kernels["correlate"],
        "one product with S, or its sums, on the device": kernels["gram"],
        "correlations, share of copy bandwidth": kernels["correlate share"],
        "product with S or sums, share of copy bandwidth": kernels["gram share"],
        "once: copy and spectra": once * 1e3,
        "first call": first * 1e3,
    }
    if shapes.values.size <= SMALL:
        plain = plain_cupy(shapes, n_clusters, assigned)
        row["plain CuPy: assignment, centres"] = plain
    row["checked"] = check(shapes, centers, before, assigned, n_clusters, rng)
    engine.prepared.clear()
    cupy.get_default_memory_pool().free_all_blocks()
    return row


def device_times(engine, shapes, n_clusters, assigned, centers):
    """Device milliseconds of stages by events, and the share of copy bandwidth that two reach."""
    import cupy
    import cupyx

    from skts.engines.core.constants import MOMENT_POINTS
    from skts.engines.cupy.kshape import moments, sbd
    from skts.engines.cupy.kshape.centers import Products
    from skts.engines.cupy.kshape.members import sort

    n = len(shapes)
    targets = sbd.upload(Shapes.of(centers))
    doubts = cupy.asarray(SBDAssign(shapes, Shapes.of(centers)).doubts)
    values = engine._sbd_series(shapes, 0, n).values
    labels, shifts = (cupy.asarray(a) for a in (assigned.labels, assigned.shifts))
    members = sort(labels, shifts, None, n_clusters, slice(0, n_clusters))
    if sbd.is_short(shapes):
        read = values
        correlate = partial(sbd.short_distances, engine._sbd_series(shapes, 0, n), targets, doubts)
    else:
        spectra, norms = engine._sbd_spectra(shapes, 0, n)
        read = spectra.values
        target_spectra = sbd.spectra(targets, paired=False)
        correlate = partial(
            sbd.distances,
            *(spectra, norms, target_spectra, targets.norms, doubts, shapes.n_timepoints),
        )
    if shapes.n_timepoints <= MOMENT_POINTS:
        gram = partial(moments.sum_products, values, members)
    else:
        products = Products(values, members)
        vectors = cupy.random.standard_normal((n_clusters, 2, products.size))
        out = cupy.empty_like(vectors)
        gram = partial(products.apply, vectors, 2 * products.size, out, sums=False)

    def milliseconds(work):
        times = cupyx.profiler.benchmark(work, name="work", n_repeat=5, n_warmup=1).gpu_times
        return float(np.median(times)) * 1e3

    found = {
        "sort": milliseconds(lambda: sort(labels, shifts, None, n_clusters, slice(0, n_clusters))),
        "correlate": milliseconds(correlate),
        "gram": milliseconds(gram),
    }
    found["correlate share"] = read.nbytes / (found["correlate"] / 1e3) / COPY
    found["gram share"] = values.nbytes / (found["gram"] / 1e3) / COPY
    return found


def main():
    parser = make_parser(__doc__, "gpu-kshape.json")
    parser.add_argument("--works", nargs="+", type=int, default=range(len(WORKS)))
    options = parser.parse_args()
    rng = np.random.default_rng(0)
    found = (rows(*WORKS[number], rng) for number in options.works)
    keep_rows("k-Shape on a GPU", found, options)


if __name__ == "__main__":
    main()
