"""Fixtures of all tests: every engine runs the same ones."""

from __future__ import annotations

import faulthandler
import gc
import os
import secrets
import sys
import warnings
import zlib
from pathlib import Path

import numpy as np
import pytest

# the oracle's package metadata lie here: this is how an installed package is found
sys.path.insert(0, str(Path(__file__).parent))

if os.environ.get("SKTS_EMULATE_GPU") == "1":
    # the stand-in for CuPy, for child processes, too: tests/emulator/README.md
    EMULATOR = str(Path(__file__).parent / "emulator")
    sys.path.insert(0, EMULATOR)
    os.environ["PYTHONPATH"] = os.pathsep.join(
        filter(None, (EMULATOR, os.environ.get("PYTHONPATH")))
    )

from skts.engines import Series, find_engine
from skts.engines.core import compiling
from tests.clusters import two_workers

# processes that tests start need not compile the sources of the package anew; those of mutants must
if "tests.mutation" not in sys.modules:
    os.environ.pop("PYTHONDONTWRITEBYTECODE", None)

# a fresh one each time, the same in all processes of a run: tests/fuzz
os.environ.setdefault("SKTS_FUZZ_SEED", str(secrets.randbelow(2**31)))


#: Of how many cases of a test one runs where all tests are asked for, beside the first.
SHARE = 8


def pytest_configure(config):
    """Run all cases of tests that are chosen by a path, a name or a mark, else a share of them.

    Processes of a run have the option, but not the command line, of the one that starts them.
    """
    if not hasattr(config.option, "share_of_cases"):
        chosen = config.args_source is not pytest.Config.ArgsSource.TESTPATHS
        chosen |= bool(config.option.keyword) or config.option.markexpr != "not slow"
        share = os.environ.get("SKTS_TEST_SHARE", "1" if chosen else str(SHARE))
        # of so many cases one runs; negative where the others do
        config.option.share_of_cases = -SHARE if share == "others" else int(share)


def pytest_report_header(config):
    """Say how many cases run, with which numbers the fuzzer attacks, and why no GPU is tested."""
    missing, share = find_engine("cupy").available(), config.option.share_of_cases
    gpu = f"left out, {missing}" if missing else "tested"
    some = f"of each test the first and one of {share} others (all: SKTS_TEST_SHARE=1)"
    cases = "all" if share == 1 else some if share > 1 else f"those that one of {-share} leaves out"
    seed = os.environ["SKTS_FUZZ_SEED"]
    return [f"cases: {cases}", f"fuzz: SKTS_FUZZ_SEED={seed}", f"gpu: {gpu}"]


@pytest.hookimpl(wrapper=True)
def pytest_collection():
    """Spare Python's garbage collector modules and tests, which stay until the end.

    Looking through them takes half a second each time, and there is no garbage among them.

    All processes of a run collect at the same time, and would compile the same kernels then.
    """
    enabled = gc.isenabled()
    gc.disable()
    compiling.replaced = True
    try:
        return (yield)
    finally:
        # the tests are of kernels, however small their data; those of NumPy in their place say so
        compiling.replaced = False
        gc.freeze()
        if enabled:
            gc.enable()


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(config, items):
    """Mark what is slow on the CPU alone; leave out what cannot run here, or is not to.

    With ``SKTS_TEST_SHARE=n``, of the cases of a test its first and one of n others run, and none
    that is marked ``long``; with ``others`` those that the command without settings leaves out.
    """
    for item in items:
        if item.get_closest_marker("compiles"):
            given = item.callspec.params if hasattr(item, "callspec") else {}
            if given.get("engine", given.get("fast_engine", "numba")) == "numba":
                item.add_marker(pytest.mark.slow)
    if os.environ.get("SKTS_EMULATE_GPU") == "1":
        from left_out import sort_out

        sort_out(items)
    no_gpu = find_engine("cupy").available() is not None
    share, functions, left_out = config.option.share_of_cases, set(), set()
    for item in items:
        if item.get_closest_marker("gpu"):
            if no_gpu:
                left_out.add(item)
        elif share != 1:
            function = item.nodeid.partition("[")[0]
            other = function in functions and zlib.crc32(item.nodeid.encode()) % abs(share) > 0
            other = other or item.get_closest_marker("long") is not None
            if other == (share > 1):
                left_out.add(item)
            functions.add(function)
    if left_out:
        config.hook.pytest_deselected(items=[one for one in items if one in left_out])
        items[:] = [one for one in items if one not in left_out]


@pytest.fixture(params=["numba", pytest.param("cupy", marks=pytest.mark.gpu), "oracle"])
def engine(request):
    """Name of an engine."""
    return request.param


@pytest.fixture(params=["numba", pytest.param("cupy", marks=pytest.mark.gpu)])
def fast_engine(request):
    """Name of an engine that ships, for work that plain loops would take too long for."""
    return request.param


#: Seconds of a test after which a worker of Dask shows where it is, and ends.
WORKERS_PATIENCE = 150


@pytest.fixture(scope="module")
def workers_of_dask():
    """A client of two processes of Dask."""
    pytest.importorskip("distributed")
    with two_workers() as client:
        yield client


@pytest.fixture
def dask_cluster(workers_of_dask, tmp_path):
    """A client of two processes of Dask, which joblib's back end of that name finds.

    A worker that hangs says where, as a warning, and ends; another takes its place and its work.
    """
    path = tmp_path / "where-workers-hang"
    path.touch()

    def watch():
        # the watch holds the file, until it is called off
        faulthandler.dump_traceback_later(WORKERS_PATIENCE, exit=True, file=path.open("a"))

    workers_of_dask.run(watch, on_error="ignore")
    yield workers_of_dask
    workers_of_dask.run(faulthandler.cancel_dump_traceback_later, on_error="ignore")
    if where := path.read_text():
        warnings.warn(f"A worker of Dask hung here:\n{where}", stacklevel=1)


@pytest.fixture
def rng():
    """Seeded random numbers."""
    return np.random.default_rng(20261121)


@pytest.fixture(scope="session")
def ucr():
    """Folder of the UCR sets, where the environment variable SKTS_DATA names one."""
    folder = os.environ.get("SKTS_DATA")
    if not folder:
        pytest.skip("SKTS_DATA does not name a folder of data")
    return Path(folder)


@pytest.fixture
def make_series(rng):
    """Return a function that draws `Series` of one length or of several."""

    def make(n_series, n_timepoints, n_channels=1, *, shortest=None, scale=1.0, offset=0.0):
        values = offset + scale * rng.normal(size=(n_series, n_channels, n_timepoints))
        lengths = np.full(n_series, n_timepoints)
        if shortest is not None:
            lengths = rng.integers(shortest, n_timepoints + 1, n_series)
            lengths[0] = n_timepoints
            values[
                np.arange(n_timepoints) >= lengths[:, None, None] + np.zeros((1, n_channels, 1))
            ] = 0
        return Series(values, lengths)

    return make
