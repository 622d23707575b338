"""The output of compute-sanitizer is understood: `tests/sanitize.py` needs a GPU, this does not."""

from __future__ import annotations

import pytest
from sanitize import findings

LOG = """\
========= COMPUTE-SANITIZER
========= Invalid __global__ read of size 4 bytes
=========     at void dtw<float, (int)8, (int)1>(const T1 *, int)+0x4f0 in dtw.cu:57
=========     by thread (0,0,0) in block (0,0,0)
=========     Address 0x7f6000000200 is out of bounds
=========     Saved host backtrace up to driver entry point at kernel launch time
=========         Host Frame: [0x2f0a3b] in libcuda.so.1
=========
========= Invalid __global__ read of size 4 bytes
=========     at void dtw<float, (int)8, (int)1>(const T1 *, int)+0x500 in dtw.cu:57
=========     by thread (1,0,0) in block (0,0,0)
=========
========= Uninitialized __global__ memory read of size 8 bytes
=========     at cupy_copy__float64_float64+0x90
=========     by thread (3,0,0) in block (0,0,0)
=========
========= Error: Race reported between Write access at scan_wide(int)+0x10 in wide_lines.cu:80
=========     and Read access at scan_wide(int)+0x90 in wide_lines.cu:81 [128 hazards]
=========
========= Barrier error detected. Divergent thread(s) in warp.
=========     at certify+0x60 in join.cu:500
=========
========= ERROR SUMMARY: 5 errors
"""


def test_findings_are_those_in_our_kernels():
    ours, others = findings(LOG)
    assert others == 1
    assert sorted(ours.values()) == [1, 1, 2]
    ((most, count),) = ours.most_common(1)
    assert count == 2
    assert most.startswith("Invalid __global__ read of size 4 bytes at void dtw<float")
    assert most.endswith("in dtw.cu:57")
    assert any("Race" in what and "wide_lines.cu:80" in what for what in ours)
    assert any("join.cu:500" in what for what in ours)


@pytest.mark.parametrize(
    "log", ["", "========= COMPUTE-SANITIZER\n========= ERROR SUMMARY: 0 errors"]
)
def test_nothing_is_found_in_nothing(log):
    assert findings(log) == ({}, 0)
