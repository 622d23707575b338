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
    r"test_subsequence_search.py::test_the_gpu_finds_the_same\[(641|1281|2060)",
    r"test_hundreds_of_random_series",
    # 630,000 pairs of series, and a line of 60,000 points
    r"test_two_(lanes|devices)_?\w*_find_what_one_finds|test_a_forked_process_says_why",
    r"test_memory_refused.py::test_\w+\[cupy.*(Condenser|Tree|Neighbors|Matrix|Window|Join)",
    r"test_ctrl_c.py.*cupy|lost_in_the_midst\w*\[.*cupy.*(Neighbors|Matrix|Join)|test_state.py.*cupy.*(Conden|Tree)",
    r"neighbors/test_dtw.py::test_budgets|test_neighbors_at_every_window|test_scikit_learns_checks",
    r"test_contract.py.*cupy.*Condenser",
    r"test_the_gpu_takes_thousands_of_series_and_hundreds_of_classes",
]


def sort_out(items: list[pytest.Item]) -> None:
    """Mark tests before those that were not asked for are taken out."""
    for item in items:
        for pattern, reason in IMPOSSIBLE.items():
            if re.search(pattern, item.nodeid):
                item.add_marker(pytest.mark.skip(reason=f"on the emulator: {reason}"))
        if any(re.search(pattern, item.nodeid) for pattern in LARGE):
            item.add_marker("slow")
