"""Which kernels of the GPU a band has: told without a GPU."""

from __future__ import annotations

import pytest

from skts.engines import Warping
from skts.engines.cupy.elastic.programs import choose_narrow, narrow_counts


@pytest.mark.parametrize("type", ["float", "double"])
@pytest.mark.parametrize("channels", [1, 3])
def test_every_narrow_band_has_the_narrowest_kernel_that_holds_it(type, channels):
    counts, n = narrow_counts(type, channels), 400
    for radius in range(max(counts) // 2 + 3):
        offsets = 2 * radius + 1
        kernel = choose_narrow(type, channels, n, n, Warping(window=radius))
        if offsets > max(counts):
            assert kernel is None
        else:
            assert kernel.offsets == min(count for count in counts if count >= offsets)


def test_without_a_narrow_band_there_is_no_such_kernel():
    assert choose_narrow("float", 1, 400, 400, Warping()) is None
    # of short series it would be mostly outside of the matrix
    assert choose_narrow("float", 1, 9, 9, Warping(window=7)) is None
