"""The CUDA sources run without a GPU: compiled by g++, and with the answers of the CPU engine."""

from __future__ import annotations

import importlib.util
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from skts.engines.cupy.programs import all_kernels

ROOT = Path(__file__).parents[2]
pytestmark = [
    pytest.mark.skipif(shutil.which("g++") is None, reason="there is no g++"),
    pytest.mark.skipif(
        importlib.util.find_spec("cupy") is not None, reason="CuPy, or its stand-in, is there"
    ),
    pytest.mark.timeout(1800),
]


def on_the_emulator(*arguments, **settings):
    """Run pytest where SKTS_EMULATE_GPU=1; other settings without their prefix."""
    settings = {f"SKTS_EMULATOR_{name}": str(value) for name, value in settings.items()}
    done = subprocess.run(
        [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", *arguments],
        env={**os.environ, "SKTS_EMULATE_GPU": "1", **settings},
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stdout[-8000:] + done.stderr[-2000:]
    assert "skipped" not in done.stdout.splitlines()[-1], done.stdout[-2000:]


def test_it_finds_what_kernels_do_wrong():
    on_the_emulator("tests/emulator/test_machine.py")


@pytest.mark.compiles  # every kernel of both engines, which takes a tenth of all other tests
def test_every_function_finds_the_bits_of_the_cpu(tmp_path):
    log = tmp_path / "launches"
    on_the_emulator("tests/engines/test_every_kernel.py", LOG=log)
    reached = {line.split(" ", 1)[1] for line in log.read_text().splitlines()}
    reached = {name.partition("<")[0] for name in reached}
    functions = {
        f"{file}: {re.sub('<.*', '', name)}"
        for file, names in all_kernels().items()
        for name in names
    }
    assert functions <= reached


def test_any_order_of_threads_will_do():
    on_the_emulator("tests/engines/test_orders.py")


@pytest.mark.slow
@pytest.mark.parametrize(
    "settings",
    [
        {"ORDER": "backward"},
        {"ORDER": "7"},
        {"FMA": "1"},
        {"GUARD": "begin"},
        {"CAPABILITY": "75"},
        {"DEVICES": "2", "MULTIPROCESSORS": "1"},
    ],
    ids=lambda settings: "-".join(settings),
)
def test_however_it_is_set_up(settings):
    on_the_emulator("tests/engines/test_every_kernel.py", **settings)
