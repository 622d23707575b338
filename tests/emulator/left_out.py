"""Tests that the emulator cannot run, or takes minutes for; `tests/conftest.py` asks."""

from __future__ import annotations

import re

import pytest

__all__ = ["sort_out"]

#: Parts of names of tests, and why they cannot run.
IMPOSSIBLE = {
    r"test_cupy_without_cupy|test_extras_are_named": "a stand-in for CuPy is installed",
}
#: Parts of names of tests of large works: they count as slow.
LARGE = [
    r"test_strips_on_the_gpu\[(1100|2100)",
    r"test_shapelets.py::test_the_gpu_finds_the_bits_of_the_cpu\[.*-(150|300)\]",
    r"test_hundreds_of_random_series",
]


def sort_out(items: list[pytest.Item]) -> None:
    """Mark tests before those that were not asked for are taken out."""
    for item in items:
        for pattern, reason in IMPOSSIBLE.items():
            if re.search(pattern, item.nodeid):
                item.add_marker(pytest.mark.skip(reason=f"on the emulator: {reason}"))
        if any(re.search(pattern, item.nodeid) for pattern in LARGE):
            item.add_marker("slow")
