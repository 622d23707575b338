"""Kernels on disk where the disk fails, and where two processes compile at the same time."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from skts.engines.host.kernels import KeyedCacheFile

SCRIPT = """
import resource, sys
if sys.argv[1:]:
    resource.setrlimit(resource.RLIMIT_FSIZE, (int(sys.argv[1]), int(sys.argv[1])))
import numpy as np
from skts.motifs import matrix_profile
from skts.engines.core import compiling
compiling.replaced = False
from skts.engines.host import windows
x = np.random.default_rng(0).normal(size=80).cumsum()
print(windows.statistics(x, 8)[0].tobytes().hex())
stats = windows.statistics.stats
print(*(sum(counts.values()) for counts in (stats.cache_hits, stats.cache_misses)))
"""


def start(folder, *arguments, **options):
    environment = {**os.environ, "NUMBA_CACHE_DIR": str(folder)}
    command = [sys.executable, "-c", SCRIPT, *arguments]
    pipes = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE, "text": True}
    return subprocess.Popen(command, env=environment, **pipes, **options)


def answer(process):
    """What was found; whether no kernel, all of them or some were on disk: one for each type."""
    out, errors = process.communicate(timeout=250)
    assert process.returncode == 0, errors
    assert "Error" not in errors
    found, hits, misses = out.split()
    return found, "none" if hits == "0" else "all" if misses == "0" else "some"


@pytest.fixture(scope="module")
def expected():
    from skts.engines.host import windows

    x = np.random.default_rng(0).normal(size=80).cumsum()
    return windows.statistics(x, 8)[0].tobytes().hex()


def files(folder):
    return [path for path in Path(folder).rglob("*") if path.is_file()]


@pytest.mark.slow
def test_a_cache_that_cannot_be_is_done_without(tmp_path, expected):
    """A folder in which nothing can be made, and a disk that is full."""
    no_folder = tmp_path / "file"
    no_folder.write_text("no folder")
    assert answer(start(no_folder / "below"))[0] == expected
    full = tmp_path / "full"
    assert answer(start(full, "2000")) == (expected, "none")
    assert all(path.stat().st_size <= 2000 for path in files(full))
    # and once there is room, kernels are kept
    assert answer(start(full)) == (expected, "none")
    assert answer(start(full)) == (expected, "all")


@pytest.mark.slow
def test_damaged_files_are_compiled_anew(tmp_path, expected):
    assert answer(start(tmp_path)) == (expected, "none")
    for damage in (lambda data: data[: len(data) // 2], lambda data: b"", lambda data: data[::-1]):
        for path in files(tmp_path):
            path.write_bytes(damage(path.read_bytes()))
        assert answer(start(tmp_path)) == (expected, "none")
        assert answer(start(tmp_path)) == (expected, "all")


@pytest.mark.slow
def test_two_processes_that_compile_the_same_kernel(tmp_path, expected):
    for process in [start(tmp_path) for _ in range(2)]:
        assert answer(process)[0] == expected
    assert answer(start(tmp_path)) == (expected, "all")


def test_a_disk_that_fills_up_between_index_and_kernel(tmp_path, monkeypatch):
    cache = KeyedCacheFile(str(tmp_path), "module.kernel-1.py3", "stamp")

    def fail(*args):
        raise OSError(28, "No space left on device")

    for name in ("_save_data", "_save_index", "_open_for_write"):
        with monkeypatch.context() as patch:
            patch.setattr(cache, name, fail)
            cache.save("float64", "kernel")
        assert cache.load("float64") in (None, "kernel")
    cache.save("float64", "kernel")
    assert cache.load("float64") == "kernel"
