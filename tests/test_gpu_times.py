"""How the benchmarks time launches, with a device that only notes what it is asked for."""

from __future__ import annotations

import importlib
import sys
from pathlib import Path
from types import SimpleNamespace
from unittest.mock import Mock

import pytest

ROOT = Path(__file__).parents[1]

if not (ROOT / "benchmarks").exists():
    pytest.skip("the benchmarks are not here", allow_module_level=True)


def test_the_device_is_busy_until_a_launch_is_queued(monkeypatch):
    """Else the time between the events holds what the host takes for the launch."""
    monkeypatch.syspath_prepend(str(ROOT))
    order: list[str] = []
    cuda = SimpleNamespace(
        Event=lambda: SimpleNamespace(record=lambda: order.append("event"), synchronize=Mock()),
        get_elapsed_time=lambda start, stop: 3.0,
    )
    waiting = SimpleNamespace(get_function=lambda name: lambda *given: order.append(name))
    fake = SimpleNamespace(cuda=cuda, RawModule=lambda code: waiting)
    monkeypatch.setitem(sys.modules, "cupy", fake)
    module = SimpleNamespace(load_kernel=lambda file, name: lambda: order.append(name))
    plain = module.load_kernel
    with importlib.import_module("benchmarks._gpu").launch_seconds(module, "join<") as seconds:
        for name in ("steps", "join<float>", "join<double>"):
            module.load_kernel("profile/join.cu", name)()
    timed = ["wait", "event", "join<float>", "event", "wait", "event", "join<double>", "event"]
    assert order == ["steps", *timed]
    assert seconds == [0.003, 0.003]
    assert module.load_kernel is plain
