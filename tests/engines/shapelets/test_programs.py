"""Which kernel of the GPU judges order lines, by the number of series: told without a GPU."""

from __future__ import annotations

import pytest

from skts.engines.cupy.shapelets.programs import kernels, scan_kernel, walk_kernel


@pytest.mark.parametrize("n_members", [1, 31, 32, 33, 1000, 1024, 1025, 2017, 2048])
def test_lanes_have_the_fewest_keys_that_hold_all_series_and_sort(n_members):
    scan = scan_kernel(n_members, 2)
    assert scan.keys & (scan.keys - 1) == 0
    assert 32 * scan.keys >= n_members
    assert scan.keys == 1 or 16 * scan.keys < n_members
    assert scan.name in kernels()[scan.file]


def test_more_series_are_judged_by_blocks():
    assert scan_kernel(2049, 2).file == "shapelets/wide_lines.cu"
    assert scan_kernel(32769, 2) is None


def test_where_one_strip_holds_most_windows_one_holds_fewer():
    """Room for what passes from strip to strip is made, or not, for the shortest length."""
    single = [walk_kernel(n).strips(n) == 1 for n in range(1, 2000)]
    assert single == sorted(single, reverse=True)


def test_lanes_that_share_a_warp_have_a_single_strip():
    names = kernels()["shapelets/shapelets.cu"]
    for n in range(1, 2000):
        kernel = walk_kernel(n)
        assert kernel.name in names
        assert kernel.lanes == 32 or kernel.strips(n) == 1
        assert kernel.pairs * kernel.lanes == 128
