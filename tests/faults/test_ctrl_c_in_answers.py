"""Ctrl-C just when a compiled function builds the objects that it returns.

Numba calls the interpreter for that, which hears what was pressed while the function ran, and then
goes on without the object: with a SystemError, or, for a named tuple, with the end of the process.
"""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]

#: Presses Ctrl-C once at each line of the package that is about to get such objects.
SCRIPT = """
import sys

import numpy as np
from numba import njit
from numba.core import serialize

from skts.engines import run
from skts.engines.core import compiling
from skts.engines.core.interrupts import interrupts_as_such
from tests.examples_of_work import examples, leaves, small_examples


@njit
def two_arrays(n):
    return np.zeros(n), np.zeros(n)


def unpickle(address, data, digest):
    # called by compiled code, from the line that called that
    caller = sys._getframe(1)
    press(caller.f_code.co_filename, caller.f_lineno)
    return original(address, data, digest)


def press(file, line):
    inside = file == __file__ or "skts" in file.replace(chr(92), "/").split("/")
    if inside and armed and (file, line) not in places:
        places.add((file, line))
        raise KeyboardInterrupt


def interrupted(work):
    try:
        work()
    except KeyboardInterrupt:
        return True
    return False


__file__ = two_arrays.py_func.__code__.co_filename
armed, places = False, set()
two_arrays(3)
code = serialize._numba_unpickle.__code__
original = type(unpickle)(code, serialize.__dict__)
serialize.original, serialize.press, serialize.sys = original, press, sys
serialize._numba_unpickle.__code__ = unpickle.__code__
armed = True
assert interrupted(interrupts_as_such()(lambda: two_arrays(3)))

# kernels, however small the work
compiling.replaced = False
of_all = [one for some in (examples(), small_examples()) for each in some.values() for one in each]
for work, answer in of_all:
    armed = False
    expected = leaves(answer(run(work, engine="numba")))
    armed = True
    before = len(places)
    while interrupted(lambda: run(work, engine="numba")):
        assert len(places) > before
        before = len(places)
    assert len(places) == before, f"an interrupt of {type(work).__name__} was not heard"
    np.testing.assert_equal(leaves(answer(run(work, engine="numba"))), expected)
print(len(of_all), "works,", len(places), "places")
"""


@pytest.mark.long
@pytest.mark.timeout(900)  # alone, it compiles the kernels of all works
def test_an_interrupt_comes_through_and_harms_nothing():
    paths = [str(ROOT), *filter(None, [os.environ.get("PYTHONPATH")])]
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(paths)}
    done = subprocess.run(
        [sys.executable, "-X", "faulthandler", "-c", SCRIPT],
        capture_output=True, text=True, cwd=ROOT, env=environment, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr[-3000:]
    assert "works" in done.stdout
