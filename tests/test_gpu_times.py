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


@pytest.fixture
def order(monkeypatch):
    """What a device that stands in for one is asked for; each launch takes 3 ms there."""
    monkeypatch.syspath_prepend(str(ROOT))
    order: list[str] = []
    cuda = SimpleNamespace(
        Event=lambda: SimpleNamespace(record=lambda: order.append("event"), synchronize=Mock()),
        get_elapsed_time=lambda start, stop: 3.0,
    )
    waiting = SimpleNamespace(get_function=lambda name: lambda *given: order.append(name))
    fake = SimpleNamespace(cuda=cuda, RawModule=lambda code: waiting)
    monkeypatch.setitem(sys.modules, "cupy", fake)
    return order


def test_the_device_is_busy_until_a_launch_is_queued(order):
    """Else the time between the events holds what the host takes for the launch."""
    module = SimpleNamespace(load_kernel=lambda file, name: lambda: order.append(name))
    plain = module.load_kernel
    with importlib.import_module("benchmarks._gpu").launch_seconds(module, "join<") as seconds:
        for name in ("steps", "join<float>", "join<double>"):
            module.load_kernel("profile/join.cu", name)()
    timed = ["wait", "event", "join<float>", "event", "wait", "event", "join<double>", "event"]
    assert order == ["steps", *timed]
    assert seconds == [0.003, 0.003]
    assert module.load_kernel is plain


def test_a_call_takes_as_long_as_its_launches(order):
    """The first call, which compiles and fills caches, is not among them."""
    module = SimpleNamespace(load_kernel=lambda file, name: lambda: order.append(name))

    def work():
        for name in ("enter", "warp"):
            module.load_kernel("search/search.cu", name)()
        return len(order)

    median_launches = importlib.import_module("benchmarks._gpu").median_launches
    seconds, result = median_launches(module, work, 2)
    assert seconds == pytest.approx(0.006)
    assert result == 2 + 2 * 8
    assert order[:2] == ["enter", "warp"]
    assert order[2:10] == ["wait", "event", "enter", "event", "wait", "event", "warp", "event"]


def test_no_benchmark_times_events_by_itself():
    """The time between events holds what the host takes, unless the device is busy before."""
    found = [
        path.relative_to(ROOT).as_posix()
        for path in sorted((ROOT / "benchmarks").rglob("*.py"))
        if "get_elapsed_time" in path.read_text()
    ]
    assert found == ["benchmarks/_gpu.py"]
