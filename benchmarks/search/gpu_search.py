"""Subsequence search on one GPU: kernel speed, and wall time from host arrays to host arrays.

    python -m benchmarks.search.gpu_search

takes about a minute and writes `benchmarks/results/gpu-search.json`. Answers are checked in the
same run: distances and positions against `engine="numba"`, bit by bit; costs of the kernel, on a
sample, by the bound that the search relies on.
"""

import os
import tempfile
import time
from functools import partial
from itertools import chain
from pathlib import Path

import numpy as np

from benchmarks._gpu import keep_rows, make_parser, median_launches, median_wall, verdict
from skts import SubsequenceSearch, config_context
from skts.engines import DTWMatrix, LongSeries, Series, SubsequenceNeighbors, Tile, run

#: Points, query, must and reach (windows a second) of runs in which every window is warped.
KERNEL_ROWS = (
    (4_000_000, 128, 200e6, 320e6),
    (1_499_000, 360, 1_498_641 / 0.15, 1_498_641 / 0.06),
    (500_000, 1024, 3.5e6, 5e6),
    (1_000_000, 100, None, None),
    (500_000, 500, None, None),
)
#: Issue rate of an H200, instructions a second: 132 multiprocessors, 128 lanes, 1.98 GHz.
ISSUE = 132 * 128 * 1.98e9
#: Instructions of a cell: subtract, minimum of three, multiply-add.
PER_CELL = 3


def walk(rng, n):
    """A random walk."""
    return rng.standard_normal(n).cumsum()


def recording(rng, n):
    """An insect's recording repeated with noise where SKTS_DATA names it, else a random walk."""
    folder = os.environ.get("SKTS_DATA")
    if not folder:
        return "random walk", walk(rng, n)
    with np.load(Path(folder) / "long" / "insect_epg.npz") as file:
        (points,) = (file[name] for name in file.files if file[name].size > 10_000)
    points = points.ravel().astype(float)
    repeated = np.tile(points, -(-n // points.size))[:n]
    return "insect EPG", repeated + 0.01 * points.std() * rng.standard_normal(n)


def kernel_row(rng, n_points, length, must, reach):
    """Every window warped, on the device: normalised on the fly, no window left out."""
    import cupy

    from skts.engines.core.certify import UNDERFLOW
    from skts.engines.cupy.elastic.cells import cell_of
    from skts.engines.cupy.search import windows as gpu
    from skts.engines.cupy.search.programs import choose_warp
    from skts.engines.cupy.search.query import prepare_query
    from skts.engines.cupy.search.upload import UploadedPart
    from skts.engines.families.search.subsequence import normalize_windows

    line, given = walk(rng, n_points), walk(rng, length)
    work = SubsequenceNeighbors((given,), LongSeries((line,)))
    tile = Tile(0, 1, 0, n_points - length + 1)
    query = prepare_query(work, 0)
    part = UploadedPart(0, cupy.asarray(line), cupy.cuda.Event(), cupy.cuda.Event())
    windows = gpu.prepare_windows(part, length, tile.shape[1], work, query.rescaling)
    listed = gpu.Listed(cupy.arange(tile.shape[1], dtype=np.int32), tile.shape[1])
    kernel = choose_warp(length, cell_of(work.warping))
    interval = query.interval(query.rough, squared=True)
    seconds, costs = median_launches(
        gpu, lambda: gpu.warp_windows(windows, listed, query, kernel, interval)
    )

    sample = np.unique(np.linspace(0, tile.shape[1] - 1, 200).astype(int))
    exact = normalize_windows(line[sample[:, None, None] + np.arange(length)], True)
    sides = (
        Series(values, np.full(len(values), length))
        for values in (exact, query.certified.reshape(1, 1, length))
    )
    distances = run(DTWMatrix(*sides), engine="numba").ravel()
    estimates = np.sqrt(costs[cupy.asarray(sample)].get().astype(float))
    slack = query.terms * (query.error + windows.error[cupy.asarray(sample)].get() + UNDERFLOW)
    low, high = query.bound.shrink * estimates - slack, query.bound.grow * estimates + slack
    held = bool(np.all((low <= distances) & (distances <= high)))
    off = np.max(np.abs(estimates - distances) / distances)
    allowed = np.max((high - low) / 2 / distances)
    rate = tile.shape[1] / seconds
    cells = rate * length**2
    yield {
        "work": f"every window warped, on the device: {n_points:,} points, query {length:,}",
        "value": rate,
        "unit": "windows/s",
        "must": must,
        "reach": reach,
        "seconds": seconds,
        "Tcells/s": cells / 1e12,
        "share of the issue rate": cells * PER_CELL / ISSUE,
        "checked": verdict(held, f"relative error {off:.1e}, bound {allowed:.1e}"),
    }


def search_rows_of(name, X, queries, must, reach, unit="s", n_neighbors=1, radius=None, **options):
    """Fit and search, from host arrays to host arrays; then the search of a fitted estimator."""

    def fit(engine):
        return SubsequenceSearch(engine=engine, **options).fit(X)

    def find(fitted):
        if radius is not None:
            return fitted.radius_neighbors(queries, radius)
        return fitted.kneighbors(queries, n_neighbors)

    def search(engine):
        return find(fit(engine))

    seconds, found = median_wall(lambda: search("cupy"))
    fitted = fit("cupy")
    again, found_again = median_wall(lambda: find(fitted))
    start = time.perf_counter()
    expected = search("numba")
    cpu = time.perf_counter() - start
    same = all(
        np.array_equal(one, other)
        for answer in (found, found_again)
        for pair in zip(answer, expected, strict=True)
        for one, other in zip(*pair, strict=True)
    )
    windows = sum(np.size(x) - len(queries[0]) + 1 for x in X) * len(queries)
    # what takes seconds counts from host arrays, windows a second are those of a search
    for what, wall, counts in (
        ("fit and kneighbors", seconds, unit == "s"),
        ("kneighbors", again, unit != "s"),
    ):
        yield {
            "work": f"{what}, {name}",
            "value": wall if unit == "s" else windows / wall,
            "unit": unit,
            "must": must if counts else None,
            "reach": reach if counts else None,
            "seconds": wall,
            "checked": verdict(
                same, f"as numba's, bit by bit, which took {cpu:.2f} s on {os.cpu_count()} cores"
            ),
        }


def kernel_rows(rng):
    """Every width of query."""
    for row in KERNEL_ROWS:
        yield from kernel_row(rng, *row)


def search_rows(rng):
    """The searches of the goals, and other options."""
    name, points = recording(rng, 1_499_000)
    points, start = points[None], 700_000
    pattern = points[0, start : start + 360]
    query = [pattern + 0.2 * pattern.std() * rng.standard_normal(360)]
    yield from search_rows_of(
        f"{name}, 1,499,000 points, query 360, no window",
        *(points, query, 0.15, 0.06),
    )
    folder = os.environ.get("SKTS_DATA")
    if folder:
        with np.load(Path(folder) / "long" / "mimic_ecg_1300k.npz") as file:
            (beats,) = (file[key].astype(float) for key in file.files)
        yield from search_rows_of(
            f"ECG, {beats.size:,} points, query 360, no window",
            *(beats[None], [beats[400_000:400_360] + rng.standard_normal(360)], 0.15, 0.06),
        )
    walked, noise = walk(rng, 1_499_000)[None], rng.standard_normal((1, 1_499_000))
    for kind, line, pattern in (
        ("random walk", walked, walk(rng, 360)),
        ("noise", noise, rng.standard_normal(360)),
    ):
        yield from search_rows_of(
            f"{kind}, 1,499,000 points, query 360, no window",
            *(line, [pattern], 0.15, 0.06),
        )
    yield from search_rows_of(
        "random walk, 4,000,000 points, query 128, no window",
        *(walk(rng, 4_000_000)[None], [walk(rng, 128)], 200e6, 320e6, "windows/s"),
    )
    yield from search_rows_of(
        "random walk, 300,000 points, query 1,024, no window",
        *(walk(rng, 300_000)[None], [walk(rng, 1024)], 3.5e6, 5e6, "windows/s"),
    )
    million, query = walk(rng, 1_000_000)[None], [walk(rng, 128)]
    for text, options in (
        ("5 % window", {"window": 0.05}),
        ("5 % window, 10 neighbours", {"window": 0.05, "n_neighbors": 10}),
        ("no window, 10 neighbours", {"n_neighbors": 10}),
        ("dog-keeper distance", {"metric": "dog_keeper"}),
        ("Euclidean", {"metric": "euclidean"}),
        ("not normalised, 10 % window", {"normalize": False, "window": 0.1}),
        ("5 % window, within 4.0", {"window": 0.05, "radius": 4.0}),
    ):
        yield from search_rows_of(
            f"random walk, 1,000,000 points, query 128, {text}",
            *(million, query, None, None),
            **options,
        )
    yield from search_rows_of(
        "noise, 1,000,000 points, query 128, 5 % window",
        *(noise[:, :1_000_000], [rng.standard_normal(128)], None, None),
        window=0.05,
    )
    yield from search_rows_of(
        "random walk, 1,000,000 points, query 1,024, 10 % window",
        *(million, [walk(rng, 1024)], None, None),
        window=0.1,
    )


def streaming_rows(rng):
    """A memory map ten times larger than the memory that may be used, and a series that fits."""
    n, length, parts = 160_000_000, 128, 10
    memory, query = 8 * n // parts, [walk(rng, length)]
    with tempfile.TemporaryDirectory() as folder, config_context(memory=memory):
        path = Path(folder) / "points.f8"
        with path.open("wb") as file:
            for _ in range(parts):
                walk(rng, n // parts).tofile(file)
        points = np.memmap(path, np.float64, "r", shape=(1, n))
        small = np.array(points[:, : n // parts])
        for text, options in (("no window", {}), ("5 % window", {"window": 0.05})):
            seconds = {}
            for name, X in (("large", points), ("small", small)):
                fitted = SubsequenceSearch(engine="cupy", **options).fit(X)
                seconds[name], found = median_wall(partial(fitted.kneighbors, query, 3), 2)
                if name == "large":
                    answer = found
            # the windows found, alone, and a part of the series by the other engine
            alone = [
                SubsequenceSearch(engine="numba", **options)
                .fit(np.array(points[:, start : start + length]))
                .kneighbors(query)[0][0, 0]
                for start in answer[1][0, :, 1].tolist()
            ]
            same = bool(np.all(answer[0][0] == alone))
            part = points[:, n // 2 : n // 2 + 500_000]
            pieces = [
                SubsequenceSearch(engine=engine, **options).fit(part).kneighbors(query, 3)
                for engine in ("cupy", "numba")
            ]
            same = same and all(map(np.array_equal, *pieces))
            with config_context(memory=4 * memory):
                fitted = SubsequenceSearch(engine="cupy", **options).fit(points)
                same = same and all(map(np.array_equal, fitted.kneighbors(query, 3), answer))
            yield {
                "work": f"kneighbors, {n:,} points in a memory map, ten times larger than the "
                f"memory allowed, query {length}, {text}: time per point, against what fits",
                "value": seconds["large"] / parts / seconds["small"],
                "unit": "x",
                "must": 1.2,
                "reach": None,
                "seconds": seconds["large"],
                "windows/s": n / seconds["large"],
                "checked": verdict(same, "as numba's; the same with more memory"),
            }


def main():
    options = make_parser(__doc__, "gpu-search.json").parse_args()
    rng = np.random.default_rng(0)
    parts = kernel_rows, search_rows, streaming_rows
    rows = chain.from_iterable(part(rng) for part in parts)
    keep_rows("Subsequence search on a GPU", rows, options)


if __name__ == "__main__":
    main()
