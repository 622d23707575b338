"""Works that are among the figures to reach, and that no other script measures.

    SKTS_DATA=<folder> python -m benchmarks.target_works --engine numba
    SKTS_DATA=<folder> python -m benchmarks.target_works --engine cupy

writes `benchmarks/results/target-works.json`, or `target-works-on-gpu.json`. `benchmarks.targets`
shows them with all others. Times of works on one thread are processor times, which other work on
the machine changes little; all others are wall times.
"""

import compileall
import importlib.util
import os
import subprocess
import sys
import time
from pathlib import Path

import numpy as np

from benchmarks._gpu import verdict
from benchmarks._paper import keep, make_parser, parse, threads
from benchmarks.profile.gpu_join import SAMPLE, check_channels
from skts import DTWKMeans, DTWNearestNeighbor, MotifFinder, SubsequenceMonitor, SubsequenceSearch
from skts.engines import DTWMatrix, Series, Warping, run
from skts.metrics import pairwise_dtw
from skts.motifs import matrix_profile, pan_matrix_profile

OUTPUTS = {"numba": "target-works.json", "cupy": "target-works-on-gpu.json"}
#: Prints the seconds that importing skts takes beyond what of scikit-learn it imports.
IMPORTS = """
import time
import sklearn.base, sklearn.neighbors, sklearn.cluster, sklearn.tree, sklearn.ensemble
start = time.process_time()
import skts
print(time.process_time() - start)
"""
#: Prints by how much memory grows in `fit`, in times of the training series.
FIT = """
import resource, numpy as np, skts
X = np.random.default_rng(0).standard_normal((20_000, 400))
np.cumsum(X, axis=1, out=X)  # without a second array, which would be the peak
y = np.arange(len(X)) % 3
skts.DTWNearestNeighbor(engine="numba").fit(X[:10], y[:10])
before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
skts.DTWNearestNeighbor(window=0.1, engine="numba").fit(X, y)
print((resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before) * 1024 / X.nbytes)
"""


def row(work, value, unit, passed, text, **more):
    """A row of the record."""
    return {"work": work, **more, "value": value, "unit": unit, "checked": verdict(passed, text)}


def clocked(function, *arguments, one_thread=False, **given):
    """Seconds and result of a call: processor time of one thread, or wall time."""
    clock = time.process_time if one_thread else time.perf_counter
    start = clock()
    found = function(*arguments, **given)
    return clock() - start, found


def as_series(X):
    """Series of one channel."""
    return Series(np.ascontiguousarray(X[:, np.newaxis]), np.full(len(X), X.shape[1]))


def nearest(options):
    """1-NN of 20,000 walks among 20,000."""
    X = np.random.default_rng(0).standard_normal((40_000, 100)).cumsum(axis=1)
    given = {"window": 0.1, "engine": options.engine, "n_jobs": options.n_jobs}
    DTWNearestNeighbor(**given).fit(X[:200], np.arange(200) % 2).kneighbors(X[:200])

    def search():
        return DTWNearestNeighbor(**given).fit(X[:20_000], np.arange(20_000)).kneighbors(X[20_000:])

    seconds, (distances, indices) = clocked(search)
    work = DTWMatrix(as_series(X[20_000:20_010]), as_series(X[:20_000]), Warping(window=10))
    exact = run(work, engine="numba")
    same = np.array_equal(exact.argmin(axis=1), indices[:10, 0])
    same = same and np.array_equal(exact.min(axis=1), distances[:10, 0])
    work = "1-NN, 20,000 against 20,000 random walks of 100 points, 10 % window"
    yield row(work, seconds, "s", same, "10 queries by all distances", threads=options.threads)


def published(options):
    """1-NN errors of the sets that the folder has, full and learned window."""
    from tests.published import COMPLETE, FILLED, is_published, learned_percent, load

    folder = os.environ.get("SKTS_DATA")
    if not folder:
        return
    right, count, wrong, start = 0, 0, [], time.perf_counter()
    for name in COMPLETE + FILLED:
        X, y, Z, z = load(Path(folder), name)
        for learned in (False, True):
            percent = learned_percent(Path(folder), name)
            window = percent / 100 if learned else None  # a fraction is rounded up
            model = DTWNearestNeighbor(window=window, engine=options.engine, n_jobs=options.n_jobs)
            errors = int(np.sum(model.fit(X, y).predict(Z) != z))
            same = is_published(Path(folder), name, errors, learned=learned)
            right, count = right + same, count + 1
            wrong += [] if same else [f"{name}, {'learned' if learned else 'full'}"]
    work = f"1-NN errors of {count // 2} sets, full and learned window: those as published"
    text = "each number of wrong answers" if not wrong else "but " + "; ".join(wrong)
    yield row(work, right, f"of {count}", True, text, seconds=time.perf_counter() - start)


def monitor(options):
    """A stream with 100 patterns: random walks."""
    if options.engine != "numba":
        return
    patterns = np.random.default_rng(0).standard_normal((100, 128)).cumsum(axis=1)
    stream = np.random.default_rng(1).standard_normal(40_000).cumsum()
    for radius in (3.0, 1.0):
        given = {"radius": radius, "window": 0.05, "exclusion": 0, "engine": "numba", "n_jobs": 1}
        every = SubsequenceSearch(window=0.05, engine="numba").fit(stream[None])
        expected = every.radius_neighbors(patterns, radius=radius, return_distance=False)
        expected = sum(len(each) for each in expected)
        for part in (100, 1_000, 5_000):
            model = SubsequenceMonitor(**given).fit(patterns)
            for _ in range(3):  # compiles: short updates have kernels of their own
                model.update(stream[:part])
            model = SubsequenceMonitor(**given).fit(patterns)
            count = sum(map(len, model.update(stream[:20_000])[1]))
            seconds = 0.0
            for at in range(20_000, 40_000, part):
                piece = stream[at : at + part]
                elapsed, found = clocked(model.update, piece, one_thread=True)
                seconds += elapsed
                count += sum(map(len, found[1]))
            work = (
                f"stream, 100 patterns of 128 points, 5 % band, radius {radius:g}, {part:,} points"
            )
            yield row(
                f"{work} an update", 20_000 / seconds, "points/s", count == expected,
                f"{count} windows within the radius, as SubsequenceSearch finds", threads=1,
            )  # fmt: skip


def growing(options):
    """A profile of the last 100,000 points of a stream."""
    if options.engine != "numba":
        return
    stream = np.random.default_rng(0).standard_normal(130_000)
    small = MotifFinder(128, engine="numba", n_jobs=1).fit(stream[None, :5_000])
    for at in range(5_000, 20_000, 500):  # compiles
        small.update(stream[at : at + 500], max_points=5_000)
    for part in (1_000, 4_000):
        model = MotifFinder(128, engine="numba", n_jobs=1).fit(stream[None, :100_000])
        at, elapsed = 100_000, 0.0
        for _ in range(2):  # the first in which points leave compares all pairs once more
            model.update(stream[at : at + part], max_points=100_000)
            at += part
        for _ in range(4):
            piece = stream[at : at + part]
            seconds, _ = clocked(model.update, piece, max_points=100_000, one_thread=True)
            elapsed, at = elapsed + seconds, at + part
        fresh = MotifFinder(128, engine="numba").fit(stream[None, at - 100_000 : at])
        pairs = zip(model.profile_, fresh.profile_, strict=True)
        same = all(np.array_equal(mine, anew) for mine, anew in pairs)
        work = f"profile of noise, 100,000 points kept, window 128, {part:,} points an update"
        value = 60 * 4 * part / elapsed
        yield row(work, value, "points/min", bool(same), "profile of a new fit", threads=1)


def channels(options):
    """Profiles of every number of channels."""
    count, n = (8, 5_000) if options.engine == "numba" else (128, 100_000)
    x = np.random.default_rng(0).standard_normal((count, n)).cumsum(axis=1)
    one = options.engine == "numba"
    given = {"window": 128, "engine": options.engine, "n_jobs": 1 if one else None}

    def profiles():
        return matrix_profile(x, **given)

    profiles()
    seconds, found = min(
        (clocked(profiles, one_thread=one) for _ in range(3)), key=lambda each: each[0]
    )
    same = check_channels(x, 128, found, np.random.default_rng(1))
    work = f"profiles of every number of {count} channels, {n:,} points, window 128"
    text = f"{SAMPLE} windows against all others, to 1e-12"
    if one:
        pairs = count * (n - 127) ** 2 / 2 / seconds / 1e9
        yield row(work, pairs, "G channel-pairs/s", same, text, threads=1, seconds=seconds)
    else:
        yield row(work, seconds, "s", same, text)


def pan(options):
    """Profiles of many lengths."""
    n, windows = 4_000, np.linspace(50, 550, 11).astype(int)
    if options.engine == "cupy":
        n, windows = 250_000, np.arange(100, 2_001)
    x = np.random.default_rng(0).standard_normal(n).cumsum()
    given = {"engine": options.engine, "n_jobs": 1 if options.engine == "numba" else None}
    pan_matrix_profile(x[:1_500], windows=windows[:3], **given)
    one = options.engine == "numba"
    runs = [
        clocked(pan_matrix_profile, x, windows=windows, **given, one_thread=one)
        for _ in range(3 if one else 1)
    ]
    seconds, found = min(runs, key=lambda each: each[0])
    some = len(windows) // 2
    alone = matrix_profile(x, window=int(windows[some]), engine=options.engine)
    width = len(alone.distances)
    same = np.allclose(
        found.distances[some][:width] * np.sqrt(2 * windows[some]), alone.distances, rtol=1e-6
    )
    work = f"pan profile, {n:,} points, {len(windows):,} lengths from {windows[0]} to {windows[-1]}"
    more = {"threads": 1} if options.engine == "numba" else {}
    yield row(work, seconds, "s", bool(same), "one length by matrix_profile", **more)


def kmeans(options):
    """k-means of many short series."""
    if options.engine != "numba":
        return
    X = np.random.default_rng(0).standard_normal((300_000, 48)).cumsum(axis=1)
    given = {"engine": "numba", "n_jobs": options.n_jobs, "tol": 0, "n_init": 1}
    DTWKMeans(10, init=X[:10], max_iter=2, **given).fit(X[:500])
    model = DTWKMeans(10, init=X[:10], max_iter=20, **given)
    seconds, _ = clocked(model.fit, X)
    work = DTWMatrix(as_series(X[:50]), as_series(model.cluster_centers_), Warping())
    same = np.array_equal(run(work, engine="numba").argmin(axis=1), model.predict(X[:50]))
    work = f"DTWKMeans, 300,000 random walks of 48 points, k = 10, {model.n_iter_} iterations"
    yield row(work, seconds, "s", same, "50 labels by all distances", threads=options.threads)


def public(options):
    """All pairs through the public interface, wall time."""
    if options.engine != "cupy":
        return
    rng = np.random.default_rng(0)
    X, Z = rng.standard_normal((16_384, 512)), rng.standard_normal((1_024, 512))
    cells = len(X) * len(Z) * 512**2 / 1e12

    labels = np.arange(len(X)) % 2

    def nearest(X, Z):
        return DTWNearestNeighbor(engine="cupy").fit(X, labels).kneighbors(Z)

    def pairwise(X, Z):
        return pairwise_dtw(Z, X[:4_096], engine="cupy")

    work = DTWMatrix(as_series(Z[:4]), as_series(X[:4_096]), Warping())
    some = run(work, engine="numba")
    work = DTWMatrix(as_series(Z[:2]), as_series(X), Warping())
    expected = run(work, engine="numba")
    for title, function, share in (
        ("nearest of 16,384 series to 1,024, noise of 512 points, wall time", nearest, 1.0),
        ("pairwise_dtw, 1,024 x 4,096, noise of 512 points, float64, wall time", pairwise, 0.25),
    ):
        function(X, Z)
        # of new arrays, so that nothing is prepared
        runs = [clocked(function, X.copy(), Z.copy()) for _ in range(5)]
        seconds, found = min(runs, key=lambda each: each[0])
        if function is nearest:
            same = np.array_equal(found[0][:2, 0], expected.min(axis=1))
            text = "2 queries by all distances of the CPU, bit by bit"
        else:
            same, text = np.array_equal(found[:4], some), "4 rows as the CPU's, bit by bit"
        yield row(title, share * cells / seconds, "Tcells/s", same, text, seconds=seconds)


def one_column(options):
    """Many rows against one column, and as many pairs of a square, on one thread."""
    if options.engine != "numba":
        return
    X = np.random.default_rng(0).standard_normal((10_000, 256)).cumsum(axis=1)
    given = {"engine": "numba", "n_jobs": 1}
    shapes = {"column": (X[:-100], X[-1:]), "square": (X[:100], X[-99:])}
    found, least = {}, {}
    for name, sides in shapes.items():
        pairwise_dtw(*sides, **given)
        runs = [clocked(pairwise_dtw, *sides, **given, one_thread=True) for _ in range(3)]
        least[name], found[name] = min(runs, key=lambda each: each[0])
    same = np.array_equal(found["column"][:100, 0], found["square"][:, -1])
    rate = 9_900 * 256**2 / least["column"] / 1e9
    work = "DTW, 9,900 series against one, 256 points: the rate of 100 against 99"
    value = least["square"] / least["column"]
    text = "the column of the square, bit by bit"
    yield row(work, value, "x", same, text, threads=1, **{"Gcells/s": rate})


def constant(options):
    """The root of a tree of nearly constant series, on one thread."""
    if options.engine != "numba" or not os.environ.get("SKTS_DATA"):
        return
    from benchmarks.shapelets.paper_shapelets import as_defined, gain_of, load, root
    from benchmarks.shapelets.paper_shapelets import work as windows

    rates, right = {}, True
    for name, lengths in (("OSULeaf", (50, 200, 350)), ("Haptics", (150, 500, 850))):
        X, y = load(os.environ["SKTS_DATA"], name)[:2]
        run(root(X[:20], y[:20], lengths[:1]), engine="numba", n_jobs=1)
        search = root(X, y, lengths)
        seconds, found = clocked(run, search, engine="numba", n_jobs=1, one_thread=True)
        rates[name] = windows(X, lengths) / seconds / 1e9
        right = right and as_defined(X, y, gain_of(search, found), found)
    work = "root search of Haptics, three lengths: the rate of OSULeaf"
    text = "distances and gain as defined"
    value = rates["Haptics"] / rates["OSULeaf"]
    yield row(work, value, "x", right, text, threads=1, **{"Gcells/s": rates["Haptics"]})


def alone(options):
    """What is measured in processes of its own: imports, and memory of `fit`."""
    if options.engine != "numba":
        return

    # to bytecode, as pip does when it installs the package
    compileall.compile_dir(Path(importlib.util.find_spec("skts").origin).parent, quiet=2)
    environment = {k: v for k, v in os.environ.items() if k != "PYTHONDONTWRITEBYTECODE"}

    def printed(code):
        words = [sys.executable, "-c", code]
        done = subprocess.run(words, capture_output=True, text=True, env=environment)
        return float(done.stdout) if done.returncode == 0 else None

    found = [printed(IMPORTS) for _ in range(5)]
    work = "importing skts, beyond scikit-learn's estimators"
    yield row(work, min(found), "s", True, "the least of five processes, bytecode compiled")
    work = "memory that fit of DTWNearestNeighbor takes, 20,000 series of 400 points"
    yield row(work, printed(FIT), "times the series", True, "peak of a process")


PARTS = {
    "alone": alone,
    "monitor": monitor,
    "growing": growing,
    "channels": channels,
    "nearest": nearest,
    "published": published,
    "kmeans": kmeans,
    "pan": pan,
    "public": public,
    "one-column": one_column,
    "constant": constant,
}


def main():
    options = parse(make_parser(__doc__, OUTPUTS, PARTS), OUTPUTS)
    options.n_jobs = options.threads = threads()[-1]
    if options.engine == "cupy":
        options.n_jobs = options.threads = None
    rows = (each for part in options.parts for each in PARTS[part](options))
    keep("Figures to reach that no other script measures", rows, options)


if __name__ == "__main__":
    main()
