"""Parts that the benchmarks on a GPU share: arguments, times, and how rows are printed and kept."""

import argparse
import sys
import time
from contextlib import contextmanager
from pathlib import Path
from statistics import median

import numpy as np

from benchmarks import _records


def make_parser(description, output):
    """A parser with the arguments that all of them have."""
    parser = argparse.ArgumentParser(description=description.split("\n\n", 1)[0])
    parser.add_argument("--commit", help="what to record where there is no git")
    parser.add_argument("--output", type=Path, default=_records.RESULTS / output)
    return parser


def keep_rows(title, rows, options, **more):
    """Print rows as they come and write the record after each, should a later one be cut off."""
    kept = []
    for row in rows:
        print(_line(row), flush=True)
        kept.append(row)
        device, versions = device_and_versions()
        found = _records.record(
            title, device=device, versions=versions, rows=kept, commit=options.commit, **more
        )
        _records.write(options.output, found)
    if any(row["checked"].startswith("FAILED") for row in kept):
        sys.exit("a result is wrong: see the rows that FAILED")


def _line(row):
    """A row as a line of text: one figure and what it should be, or all that there are."""
    if "value" not in row:
        return ", ".join(f"{key}: {value}" for key, value in row.items())
    goal = "" if row["must"] is None else f", must {row['must']:.4g}"
    goal += "" if row["reach"] is None else f", reach {row['reach']:.4g}"
    return f"{row['work']}: {row['value']:.4g} {row['unit']}{goal} ({row['checked']})"


#: Microseconds that a kernel waits: longer than the host takes for a launch behind it.
WAIT = 500
WAITING = r"""
extern "C" __global__ void wait(int microseconds) {
#if __CUDA_ARCH__ >= 700
    for (int i = 0; i < microseconds; ++i) __nanosleep(1000);
#endif
}
"""


@contextmanager
def launch_seconds(module, prefix):
    """Seconds, by CUDA events, of launches of what a module loads under names that begin so.

    A kernel in front of the first event keeps the device busy until the launch has been queued: the
    time between the events is that of the device alone, without what the host takes for a launch.
    """
    import cupy

    load, seconds = module.load_kernel, []
    wait = cupy.RawModule(code=WAITING).get_function("wait")

    def load_timed(file, name, *options):
        kernel = load(file, name, *options)

        def launch(*arguments, **more):
            start, stop = cupy.cuda.Event(), cupy.cuda.Event()
            wait((1,), (1,), (np.int32(WAIT),))
            start.record()
            kernel(*arguments, **more)
            stop.record()
            stop.synchronize()
            seconds.append(cupy.cuda.get_elapsed_time(start, stop) / 1e3)

        return launch if name.startswith(prefix) else kernel

    module.load_kernel = load_timed
    try:
        yield seconds
    finally:
        module.load_kernel = load


def median_launches(module, work, repeats=5):
    """Median seconds of all launches of a function after a first call, and its last result.

    The launches are those of kernels that the module loads, each by itself: see `launch_seconds`.
    Arrays that are filled or copied in between take no part.
    """
    result, elapsed = work(), []
    for _ in range(repeats):
        with launch_seconds(module, "") as seconds:
            result = work()
        elapsed.append(sum(seconds))
    return median(elapsed), result


def median_wall(work, repeats=5):
    """Median wall seconds of a function after a first call, and its last result."""
    result, elapsed = work(), []
    for _ in range(repeats):
        start = time.perf_counter()
        result = work()
        elapsed.append(time.perf_counter() - start)
    return median(elapsed), result


def verdict(passed, text):
    """How a check came out: failed ones say so."""
    return text if passed else f"FAILED: {text}"


def device_and_versions():
    """The name of the GPU, and the versions that a record of a run on it holds."""
    import cupy

    properties = cupy.cuda.runtime.getDeviceProperties(cupy.cuda.Device().id)
    packages = ("skts", "numpy", "numba", "cupy-cuda12x", "cupy-cuda13x")
    return properties["name"].decode(), _records.versions(*packages) | {
        "CUDA runtime": cupy.cuda.runtime.runtimeGetVersion(),
        "CUDA driver": cupy.cuda.runtime.driverGetVersion(),
    }
