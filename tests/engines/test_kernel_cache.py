"""Kernels on disk: processes that compile at the same time must not mix up theirs."""

from __future__ import annotations

import importlib
import inspect
import os
import pkgutil
import re
import subprocess
import sys

import numba
import pytest
from numba.core.caching import IndexDataCacheFile
from numba.core.dispatcher import Dispatcher

import skts.engines.numba
from skts.engines.host.kernels import KeyedCacheFile, cache_of

MODULES = [
    module.name
    for module in pkgutil.walk_packages(skts.engines.numba.__path__, "skts.engines.numba.")
]


@pytest.mark.parametrize("name", MODULES)
def test_every_cached_kernel_keeps_its_files_by_signature(name):
    for value in vars(importlib.import_module(name)).values():
        if isinstance(value, Dispatcher):
            assert type(cache_of(value)._cache_file) is KeyedCacheFile, value


@pytest.mark.parametrize("name", MODULES)
def test_no_kernel_is_compiled_for_callers_in_c(name):
    for value in vars(importlib.import_module(name)).values():
        if isinstance(value, Dispatcher):
            assert value.targetoptions["no_cfunc_wrapper"], value


@pytest.mark.parametrize("name", MODULES)
def test_what_only_a_compiler_needs_is_not_imported_at_once(name):
    text = inspect.getsource(importlib.import_module(name))
    assert not re.findall(r"^(?:from|import) numba\.(?:np|cpython|typed)\b.*", text, re.M)


def test_numba_leaves_them_out():
    for left_out in (True, False):
        kernel = numba.njit(no_cfunc_wrapper=left_out)(lambda x: x + 1)
        assert kernel(1) == 2
        ((types, compiled),) = kernel.overloads.items()
        name = compiled.fndesc.llvm_cfunc_wrapper_name
        assert (name in kernel.inspect_asm(types)) is not left_out


def interleaved(kind, folder):
    """Save two instances as two processes that both read the index before either wrote it."""
    first, second = (kind(str(folder), "module.kernel-1.py3", "stamp") for _ in range(2))
    before = second._load_index()
    first.save("float64", "kernel for float64")
    second._load_index = lambda: dict(before)
    second.save("float32", "kernel for float32")
    later = kind(str(folder), "module.kernel-1.py3", "stamp")
    return first, later


def test_two_processes_at_once(tmp_path):
    _, later = interleaved(KeyedCacheFile, tmp_path)
    assert later.load("float64") in (None, "kernel for float64")
    assert later.load("float32") == "kernel for float32"
    later.save("float64", "kernel for float64")
    assert later.load("float64") == "kernel for float64"
    assert later.load("float32") == "kernel for float32"
    assert len(set(later._load_index().values())) == 2


def test_numba_itself_gives_both_one_file(tmp_path):
    # if this fails, Numba has mended it, and `KeyedCacheFile` may go
    first, later = interleaved(IndexDataCacheFile, tmp_path)
    assert later.load("float32") == "kernel for float32"
    first._load_index = lambda: {"float64": first._data_name(1)}
    assert first.load("float64") == "kernel for float32"


@pytest.mark.long
def test_what_one_process_compiles_another_finds(tmp_path):
    script = (
        "import numpy as np, sys\n"
        "from numba.core.dispatcher import Dispatcher\n"
        "from skts.engines import replace_kernels\n"
        "from skts.metrics import dtw\n"
        "with replace_kernels(always=False):\n"
        "    dtw(np.arange(4.0), np.arange(5.0), engine='numba')\n"
        "of = [m for name, m in sys.modules.items() if name.startswith('skts.engines.numba')]\n"
        "kernels = {v for m in of for v in vars(m).values() if isinstance(v, Dispatcher)}\n"
        "print(sum(sum(k.stats.cache_hits.values()) for k in kernels))\n"
        "print(sum(sum(k.stats.cache_misses.values()) for k in kernels))\n"
        "print(int('numba.np.arraymath' in sys.modules))\n"
    )
    seen = [
        subprocess.run(
            [sys.executable, "-c", script],
            check=True,
            capture_output=True,
            text=True,
            env={**os.environ, "NUMBA_CACHE_DIR": str(tmp_path)},
        ).stdout.split()
        for _ in range(2)
    ]
    (hits, compiled, _), (found, missed, able) = ([int(n) for n in one] for one in seen)
    # what a kernel calls is within it, once that is on disk
    assert hits == missed == 0 < found <= compiled
    # who compiles nothing does not load what Numba compiles with
    assert not able


CALLER = """
from skts.engines.host import kernel
from . import other
from .callee import FACTOR, triple

@kernel
def through(x):
    return triple(x)

@kernel
def caller(x):
    return FACTOR * through(x) + other.shift(x)
"""
CALLEE = """
from skts.engines.host import kernel
FACTOR = {factor}

@kernel(fastmath={fastmath})
def triple(x):
    return {triple} * x
"""
OTHER = """
from skts.engines.host import kernel

@kernel
def shift(x):
    return x + {shift}
"""
USE = """
from pair.caller import caller
from skts.engines.host import remember_sources
remember_sources("pair")
print(caller(1.0), sum(caller.stats.cache_hits.values()))
"""


@pytest.mark.slow
def test_a_kernel_is_compiled_anew_when_another_file_changes(tmp_path):
    """The file of a function that it calls, through a third or a module, or a constant's value."""
    package = tmp_path / "pair"
    package.mkdir()
    (package / "__init__.py").touch()
    (package / "caller.py").write_text(CALLER)
    (package / "unrelated.py").touch()
    paths = os.pathsep.join([str(tmp_path), *filter(None, sys.path)])
    environment = {**os.environ, "NUMBA_CACHE_DIR": str(tmp_path / "cache"), "PYTHONPATH": paths}

    def use(*, triple=3, factor=10, shift=100, fastmath=False):
        text = CALLEE.format(triple=triple, factor=factor, fastmath=fastmath)
        for path, content in (("callee.py", text), ("other.py", OTHER.format(shift=shift))):
            if not (package / path).exists() or (package / path).read_text() != content:
                (package / path).write_text(content)
        command = [sys.executable, "-B", "-c", USE]
        done = subprocess.run(command, capture_output=True, text=True, env=environment)
        assert done.returncode == 0, done.stderr
        value, hits = done.stdout.split()
        return float(value), int(hits)

    assert use() == (131.0, 0)
    assert use() == (131.0, 1)
    assert use(triple=4) == (141.0, 0)
    assert use(triple=4) == (141.0, 1)
    assert use(triple=4, factor=1000) == (4101.0, 0)
    assert use(triple=4, factor=1000, shift=5000) == (9001.0, 0)
    assert use(triple=4, factor=1000, shift=5000, fastmath=True) == (9001.0, 0)
    (package / "unrelated.py").write_text("FACTOR = 7\n")
    assert use(triple=4, factor=1000, shift=5000, fastmath=True) == (9001.0, 1)


WITHOUT_FOLDER = """
import numpy as np
from numba.core import caching

for locator in caching.CacheImpl._locator_classes:
    locator.from_function = classmethod(lambda cls, function, file: None)
from skts.engines.host.arrays import kth_smallest
print(kth_smallest(np.array([3.0, 1.0, 2.0]), 1), kth_smallest.stats.cache_path)
"""


def test_where_no_folder_may_be_written_to():
    done = subprocess.run([sys.executable, "-c", WITHOUT_FOLDER], capture_output=True, text=True)
    assert done.stdout.split() == ["2.0", "None"], done.stderr


KERNEL = """
from skts.engines.host import kernel

@kernel
def total(cell, points):
    value = 0.0
    for point in points:
        value = cell.join(cell.term(point, 1.0), value)
    return value
"""
POLICY = """
from dataclasses import dataclass
from pair.price import FACTOR
from skts.engines.numba import Cell

@dataclass(frozen=True)
class Scaled(Cell):
    scale: float

    def term(self, x, y):
        return FACTOR * self.scale * {term}
"""
FOLD = """
import numpy as np
from pair.kernel import total
from pair.policy import Scaled
from skts.engines.host import remember_sources
remember_sources("pair")
values = [total(Scaled(scale), np.arange(3.0)) for scale in (1.0, 2.0)]
print(*values, sum(total.stats.cache_hits.values()))
"""


@pytest.mark.slow
def test_kernels_of_a_policy_are_found_until_it_changes(tmp_path):
    """One instance for all objects of a class, on disk; anew with its file, or a constant's."""
    package = tmp_path / "pair"
    package.mkdir()
    (package / "__init__.py").touch()
    (package / "kernel.py").write_text(KERNEL)
    paths = os.pathsep.join([str(tmp_path), *filter(None, sys.path)])
    environment = {**os.environ, "NUMBA_CACHE_DIR": str(tmp_path / "cache"), "PYTHONPATH": paths}

    def fold(term, factor):
        for path, content in (
            ("policy.py", POLICY.format(term=term)),
            ("price.py", f"FACTOR = {factor}\n"),
        ):
            if not (package / path).exists() or (package / path).read_text() != content:
                (package / path).write_text(content)
        command = [sys.executable, "-B", "-c", FOLD]
        done = subprocess.run(command, capture_output=True, text=True, env=environment)
        assert done.returncode == 0, done.stderr
        return [float(value) for value in done.stdout.split()]

    assert fold("abs(x - y)", 1.0) == [2.0, 4.0, 0]
    assert fold("abs(x - y)", 1.0) == [2.0, 4.0, 1]
    assert fold("abs(x - y)", 3.0) == [6.0, 12.0, 0]
    assert fold("(x - y) ** 4 + 1", 3.0) == [9.0, 15.0, 0]
