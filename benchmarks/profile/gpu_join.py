"""Matrix profiles on one GPU: kernel speed, and wall time from host arrays to host arrays.

    python -m benchmarks.profile.gpu_join

takes some four minutes and writes `benchmarks/results/gpu-join.json`. In each row neighbours
and distances of a sample of windows are compared, bit by bit, with certified distances of those
windows to all others on the CPU. `SKTS_DATA` names a folder with `long/mitbih100_mlii.npz`, an
ECG; without it there are no rows of the ECG.
"""

import os
import time
from itertools import chain
from pathlib import Path
from statistics import median

import numpy as np

from benchmarks._gpu import keep_rows, launch_seconds, make_parser, verdict
from skts.engines import ConcatenatedSeries, Join, Tile, WindowDistances, find_engine, run
from skts.motifs import matrix_profile, pan_matrix_profile

#: Points, window, kind of series, seconds that an issue is accepted on, seconds we want to reach.
WHOLE_ROWS = (
    (400_000, 128, "random walk", 0.045, 0.035),
    (400_000, 1024, "random walk", 0.10, 0.04),
    (400_000, 128, "ECG", 0.10, 0.04),
    (400_000, 1024, "ECG", 0.10, 0.04),
    (1_000_000, 128, "random walk", 0.20, 0.15),
    (2_097_152, 128, "random walk", 0.8, 0.6),
)
#: Type, points, must and reach in Tcells/s.
KERNEL_ROWS = (("float32", 400_000, 3.5, 4.5), ("float64", 400_000, 1.5, 2.0))
#: Channels, points, must and reach in seconds of the profiles of every number of channels.
CHANNEL_ROWS = (
    (3, 200_000, None, None),
    (8, 200_000, 0.4, 0.2),
    (32, 50_000, None, None),
    (64, 50_000, None, None),
    (128, 100_000, 4.0, 1.5),
)
#: Points, lengths, must and reach in seconds of the profiles of all lengths.
LENGTH_ROWS = ((250_000, range(100, 2001), 30.0, 12.0), (4_000, range(50, 151, 10), None, None))
#: Windows that are checked.
SAMPLE = 20


def make_line(kind, n, rng):
    """A series of a kind, None where it is not at hand."""
    if kind == "random walk":
        return rng.standard_normal(n).cumsum()
    folder = os.environ.get("SKTS_DATA")
    file = Path(folder or ".") / "long" / "mitbih100_mlii.npz"
    return np.load(file)["series"][:n].astype(float) if folder and file.exists() else None


def check(line, length, exclusion, found, rng):
    """Whether sampled windows have the nearest neighbour that the CPU finds among all."""
    places = np.arange(line.n_windows(length))
    chosen = np.sort(rng.choice(places, SAMPLE, replace=False))
    distances = run(WindowDistances(line, chosen, line, length), engine="numba")
    distances[np.abs(chosen[:, None] - places) <= exclusion] = np.inf
    return np.array_equal(distances.argmin(axis=1), found.indices[chosen, 0]) and np.array_equal(
        distances.min(axis=1), found.distances[chosen, 0]
    )


def whole_rows(rng):
    """Profiles with indices, from host to host; of new arrays, so that nothing is prepared."""
    for n, length, kind, must, reach in WHOLE_ROWS:
        series = make_line(kind, n, rng)
        if series is None:
            continue
        exclusion, elapsed = -(-length // 4), []
        for _ in range(6):
            line = ConcatenatedSeries.of([series.copy()])
            start = time.perf_counter()
            found = run(Join(line, None, length, exclusion), engine="cupy")
            elapsed.append(time.perf_counter() - start)
        yield {
            "work": f"matrix profile with indices, {kind}, {n:,} points, window {length:,}",
            "value": median(elapsed[1:]),
            "unit": "s",
            "must": must,
            "reach": reach,
            "checked": verdict(
                check(line, length, exclusion, found, rng),
                f"{SAMPLE} windows against all others on the CPU, bit by bit",
            ),
        }


def sample_of(x):
    """How many windows of so many channels are checked: their distances are all held at once."""
    return SAMPLE if len(x) <= 32 else 5


def check_channels(x, length, found, rng):
    """Whether sampled windows have the nearest neighbours that the CPU finds among all."""
    lines = [ConcatenatedSeries.of([one]) for one in x]
    places = np.arange(x.shape[1] - length + 1)
    chosen = np.sort(rng.choice(places, sample_of(x), replace=False))
    each = [run(WindowDistances(line, chosen, line, length), engine="numba") for line in lines]
    counted = np.arange(1, len(x) + 1)[:, np.newaxis, np.newaxis]
    means = np.sort(each, axis=0).cumsum(axis=0) / counted
    means[:, np.abs(chosen[:, None] - places) <= -(-length // 4)] = np.inf
    named = np.take_along_axis(means, found.indices[:, chosen, np.newaxis], axis=2)[:, :, 0]
    least, distances = means.min(axis=2), found.distances[:, chosen]
    return all(np.allclose(one, least, rtol=1e-12, atol=0) for one in (named, distances))


def channel_rows(rng):
    """Profiles of every number of channels, by the public function."""
    for n_channels, n, must, reach in CHANNEL_ROWS:
        x, elapsed = rng.standard_normal((n_channels, n)).cumsum(axis=1), []
        for _ in range(6 if n_channels <= 32 else 3):
            start = time.perf_counter()
            found = matrix_profile(x.copy(), window=128, engine="cupy")
            elapsed.append(time.perf_counter() - start)
        yield {
            "work": f"profiles of every number of {n_channels} channels, {n:,} points, window 128",
            "value": median(elapsed[1:]),
            "unit": "s",
            "must": must,
            "reach": reach,
            "checked": verdict(
                check_channels(x, 128, found, rng),
                f"{sample_of(x)} windows against all others on the CPU, to 1e-12",
            ),
        }


def length_rows(rng):
    """Profiles of all lengths, by the public function; some of them checked."""
    for n, lengths, must, reach in LENGTH_ROWS:
        x, elapsed = rng.standard_normal(n).cumsum(), []
        for _ in range(1 if len(lengths) > 100 else 6):
            start = time.perf_counter()
            found = pan_matrix_profile(x.copy(), lengths, engine="cupy")
            elapsed.append(time.perf_counter() - start)
        line, same = ConcatenatedSeries.of([x]), []
        for row in (0, len(lengths) // 2, len(lengths) - 1):
            length = int(found.windows[row])
            distances = found.distances[row] * np.sqrt(2 * length)
            chosen = np.sort(rng.choice(line.n_windows(length), SAMPLE, replace=False))
            every = run(WindowDistances(line, chosen, line, length), engine="numba")
            places = np.arange(every.shape[1])
            every[np.abs(chosen[:, None] - places) <= -(-length // 4)] = np.inf
            same.append(np.array_equal(every.argmin(axis=1), found.indices[row, chosen]))
            same.append(np.allclose(every.min(axis=1), distances[chosen], rtol=1e-12, atol=0))
        yield {
            "work": f"profiles of {len(lengths):,} lengths from {lengths[0]:,} to {lengths[-1]:,}, "
            f"{n:,} points",
            "value": median(elapsed[-5:]),
            "unit": "s",
            "must": must,
            "reach": reach,
            "checked": verdict(
                all(same), f"{SAMPLE} windows of 3 lengths against all others on the CPU"
            ),
        }


def kernel_rows(rng):
    """The walk on the device alone: see `launch_seconds`."""
    from skts.engines.cupy.profile import walk

    engine = find_engine("cupy")
    for kind, n, must, reach in KERNEL_ROWS:
        for length in (128, 1024):
            line = ConcatenatedSeries.of([rng.standard_normal(n + length - 1).cumsum()])
            exclusion = -(-length // 4)
            work = Join(line, None, length, exclusion, precision=kind)
            elapsed = []

            for _ in range(4):
                with launch_seconds(walk, "join<") as seconds:
                    part = engine.compute(work, Tile(0, n, 0, n), np.zeros(1, np.uint8))
                elapsed.append(sum(seconds))
            total = work.start()
            work.merge(total, Tile(0, n, 0, n), part)
            found = work.finish(total, lambda rest: run(rest, engine="cupy"))
            yield {
                "work": f"kernel, {kind}, {n:,} windows of {length:,} points, random walk",
                "value": n * n / 2 / median(elapsed[1:]) / 1e12,
                "unit": "Tcells/s",
                "must": must,
                "reach": reach,
                "checked": verdict(
                    check(line, length, exclusion, found, rng),
                    f"{SAMPLE} windows against all others on the CPU, bit by bit",
                ),
            }


def main():
    """Run all rows, print and record them."""
    options = make_parser(__doc__, "gpu-join.json").parse_args()
    rng = np.random.default_rng(0)
    rows = chain(kernel_rows(rng), whole_rows(rng), channel_rows(rng), length_rows(rng))
    keep_rows("Matrix profiles on a GPU", rows, options)


if __name__ == "__main__":
    main()
