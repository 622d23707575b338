"""Figures 8 to 10 of paper 004: the time of one query in a long series, without a window.

    python -m benchmarks.search.paper_subsequence_search [--plot]

writes `benchmarks/results/papers-subsequence-search.json`. The paper varies the length of the
series under queries of 128 (figure 8) and 1,024 points (figure 9), and the query in a series of
40,000 points (figure 10), with all windows normalised and compared under DTW without a limit. The
data are not given; here they are random walks. The paper's programs fill every warping matrix;
here, windows that cannot be the best match are abandoned or never begun, on the CPU, so that times
also depend on the data: noise (dashed) is the hard case.

Each engine is there that the machine has: the CPU on one thread and on all, the GPU. The matches
are checked: of the first point of each figure against the least of the distances of all windows,
each normalised and compared by itself; of all others, against one thread of the CPU. A line ends
where filling all matrices would take longer than `--patience` seconds at the speed of the point
before.
"""

import argparse
import sys
import time
from pathlib import Path
from statistics import median

import numba
import numpy as np

from benchmarks import _records
from benchmarks._gpu import device_and_versions, verdict
from benchmarks.elastic.gpu_dtw import as_series
from skts import SubsequenceSearch
from skts.engines import DTWMatrix, get_engine, run
from skts.exceptions import EngineNotAvailableError, UnsupportedReductionError

#: Figure, points of the query, points of the series.
FIGURES = {
    "8": [(128, n) for n in (1000, 10_000, 100_000, 1_000_000, 10_000_000)],
    "9": [(1024, n) for n in (2000, 10_000, 100_000, 1_000_000, 10_000_000)],
    "10": [(m, 40_000) for m in (64, 128, 256, 512, 1024, 2048, 4096)],
}
KINDS = ("random walks", "noise")


def data(kind, n, rng):
    """So many points."""
    x = rng.standard_normal(n)
    return x.cumsum() if kind == "random walks" else x


def engines():
    """Names and options of those that search here."""
    yield "numba, 1 thread", {"engine": "numba", "n_jobs": 1}
    if numba.config.NUMBA_NUM_THREADS > 1:
        yield "numba, all threads", {"engine": "numba", "n_jobs": -1}
    try:
        get_engine("cupy")
        SubsequenceSearch(engine="cupy").fit(np.zeros((1, 100))).kneighbors([np.arange(8.0)])
    except (EngineNotAvailableError, UnsupportedReductionError) as error:
        print(error)
    else:
        yield "cupy", {"engine": "cupy"}


def best_of_all(query, series):
    """Distance and start of the best window, each normalised and compared by itself."""
    windows = np.lib.stride_tricks.sliding_window_view(series, len(query))
    sides = [
        as_series(np.ascontiguousarray((side - side.mean(1)[:, None]) / side.std(1)[:, None]))
        for side in (query[None], windows)
    ]
    distances = run(DTWMatrix(*sides), engine="numba")[0]
    return distances.min(), int(distances.argmin())


def search(query, series, options, repeats):
    """Median seconds of `kneighbors`, and the best match."""
    model = SubsequenceSearch(**options).fit(series[None])
    model.kneighbors(query[None, :])  # compiles, and uploads
    elapsed = []
    while len(elapsed) < repeats and sum(elapsed) < 1:
        start = time.perf_counter()
        distances, positions = model.kneighbors(query[None, :])
        elapsed.append(time.perf_counter() - start)
    return median(elapsed), float(distances[0, 0]), int(positions[0, 0, 1])


def measure(figure, kind, ready, patience, longest):
    """The rows of a figure."""
    expected, rows = {}, []
    for label, options in ready.items():
        seconds, before = 0.0, 1
        for m, n in FIGURES[figure]:
            work = (n - m + 1) * m * m
            if n > longest or seconds * work / before > patience:
                break
            before = work
            rng = np.random.default_rng([m, n])
            query, series = data(kind, m, rng), data(kind, n, rng)
            seconds, distance, start = search(query, series, options, 3)
            checked = "too long for one thread of the CPU"
            if (m, n) in expected:
                same = expected[m, n] == (distance, start)
                checked = verdict(same, "match as numba's, bit by bit")
            elif label == "numba, 1 thread":
                expected[m, n] = distance, start
                checked = "what the others are checked against"
                if (m, n) == FIGURES[figure][0]:
                    least, place = best_of_all(query, series[: 2000 + m])
                    found = search(query, series[: 2000 + m], options, 1)[1:]
                    same = place == found[1] and np.isclose(least, found[0], rtol=1e-9, atol=0)
                    checked = verdict(bool(same), "best of all windows")
            row = {
                "figure": figure,
                "data": kind,
                "query": m,
                "points": n,
                "engine": label,
                "value": seconds,
                "unit": "s",
                "Gcells/s of all windows": work / seconds / 1e9,
                "checked": checked,
            }
            print(
                f"{figure:3}{kind:14}{m:6,} in {n:11,} {label:20}{seconds * 1e3:12.2f} ms "
                f"{row['Gcells/s of all windows']:10.1f} Gcells/s  {checked}",
                flush=True,
            )
            rows.append(row)
    return rows


def plot(rows, path):
    """Draw the three figures: a colour for each engine."""
    import matplotlib.pyplot as plt

    figure, axes = plt.subplots(1, 3, figsize=(16, 5), layout="constrained")
    colors = {}
    for ax, number in zip(axes, FIGURES, strict=True):
        varied = "query" if number == "10" else "points"
        for kind in KINDS:
            for engine in dict.fromkeys(row["engine"] for row in rows):
                line = [
                    row
                    for row in rows
                    if (row["figure"], row["data"], row["engine"]) == (number, kind, engine)
                ]
                ax.plot(
                    [row[varied] for row in line],
                    [row["value"] for row in line],
                    marker=".",
                    color=colors.setdefault(engine, f"C{len(colors)}"),
                    linestyle="-" if kind == KINDS[0] else "--",
                    label=f"{engine}, {kind}",
                )
        ax.set(xscale="log", yscale="log", ylabel="seconds", title=f"as figure {number}")
        ax.set_xlabel("points of the query" if number == "10" else "points of the series")
    axes[0].legend(fontsize="x-small")
    figure.savefig(path, dpi=120)
    plt.close(figure)


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n\n", 1)[0])
    parser.add_argument("--patience", type=float, default=3.0, help="seconds of a query, at most")
    parser.add_argument("--longest", type=int, default=10_000_000, help="points of a series")
    parser.add_argument("--plot", action="store_true", help="draw a PNG beside the record")
    parser.add_argument("--commit", help="what to record where there is no git")
    parser.add_argument(
        "--output", type=Path, default=_records.RESULTS / "papers-subsequence-search.json"
    )
    options = parser.parse_args()
    rows, ready = [], dict(engines())
    for figure in FIGURES:
        for kind in KINDS:
            rows += measure(figure, kind, ready, options.patience, options.longest)
    if any(row["engine"] == "cupy" for row in rows):
        device, versions = device_and_versions()
    else:
        device, versions = _records.cpu(), _records.versions("skts", "numpy", "numba")
    _records.write(
        options.output,
        _records.record(
            "Subsequence search (Sart, Mueen, Najjar, Keogh, Niennattrakul), figures 8 to 10",
            device=device,
            versions=versions,
            threads=numba.config.NUMBA_NUM_THREADS,
            rows=rows,
            commit=options.commit,
        ),
    )
    if options.plot:
        plot(rows, options.output.with_suffix(".png"))
    if any(row["checked"].startswith("FAILED") for row in rows):
        sys.exit("a match is wrong: see the last column")


if __name__ == "__main__":
    main()
