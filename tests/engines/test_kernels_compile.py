"""CUDA sources compile without a GPU; `.ci/run` compiles every kernel, these are a few of each."""

from __future__ import annotations

import numpy as np
import pytest

from skts.engines import ConcatenatedSeries, Join, Warping
from skts.engines.cupy.elastic.programs import (
    SEARCH_KERNELS,
    BandKernel,
    DTWKernel,
    NarrowKernel,
    choose_dtw,
    choose_narrow,
    column_counts,
)
from skts.engines.cupy.profile.programs import choose_join, stated_type
from skts.engines.cupy.programs import KERNELS, all_kernels, source

JOINS = [
    (Join(ConcatenatedSeries.of([np.zeros(9)]), None, 3, precision="float32"), (7, 7)),
    (
        Join(
            ConcatenatedSeries.of([np.zeros(9)]),
            ConcatenatedSeries.of([np.zeros(9)]),
            3,
            normalize=False,
        ),
        (7, 7),
    ),
]
compile = pytest.importorskip("skts.engines.cupy.compile", reason="NVRTC is not installed")


@pytest.mark.parametrize(
    "arch", [pytest.param(75, marks=pytest.mark.slow), pytest.param(80, marks=pytest.mark.slow), 90]
)
def test_kernels_compile(arch):
    names = [
        DTWKernel("float", 32, 1, False, "Dtw<Squared>", False, False, 8).name,
        DTWKernel("float", 8, 3, True, "DogKeeper<Absolute>", True, False, 32).name,
        DTWKernel("double", 8, 1, True, "Dtw<Squared>", False, True, 32).name,
        DTWKernel("double", 4, 1, True, "Edr<double, true>", True, False, 32).name,
    ]
    assert compile.compile_program("elastic/dtw.cu", names, arch) > 1000
    names = [BandKernel("float", 8, 1, "Dtw<Squared>", 8).name]
    assert compile.compile_program("elastic/band.cu", names, arch) > 1000
    assert compile.compile_program("elastic/shortlist.cu", list(SEARCH_KERNELS), arch) > 1000
    names = [choose_join(kind, shape, stated_type(kind)).name for kind, shape in JOINS]
    assert compile.compile_program("profile/join.cu", names, arch) > 1000
    names = ["certify_chosen", "certify"]
    assert compile.compile_program("profile/candidates.cu", names, arch) > 1000
    names = ["strip<AnyWarping>", "strip<Twe<double>>", "borders<Erp<double>>", "walk"]
    assert compile.compile_program("elastic/path.cu", names, arch) > 1000
    names = ["certify<AnyWarping>", "certify<Lcss<double>>", "certify<Msm<double>>"]
    assert compile.compile_program("elastic/certify.cu", names, arch) > 1000
    names = [NarrowKernel("float", 5, 1, "Dtw<Squared>").name]
    assert compile.compile_program("elastic/narrow.cu", names, arch) > 1000


def test_programs_hold_their_headers_once():
    # CuPy's cache on disk knows a program by its text
    text = source("elastic/turns.cu")
    assert "#include" not in text
    assert "#pragma once" not in text
    for header in ("elastic/wavefront.cuh", "include/arithmetic.cuh"):
        first, *_, last = (KERNELS / header).read_text().splitlines()
        assert text.count(first) == 1
        assert last in text
    assert text.endswith((KERNELS / "elastic/turns.cu").read_text()[-500:])


def test_errors_of_the_compiler_are_shown():
    with pytest.raises(RuntimeError, match=r"(?s)dtw\.cu for sm_90: .*\n.*no_such_type"):
        compile.compile_program(
            "elastic/dtw.cu", ["dtw<no_such_type, 8, 1, 1, false, Dtw<Squared>, false, false>"], 90
        )


@pytest.mark.parametrize("type", ["float", "double"])
@pytest.mark.parametrize("channels", [1, 3, 50])
@pytest.mark.parametrize("m", [1, 3, 24, 100, 128, 427, 1023, 1092, 2047, 100_000])
def test_the_chosen_kernel_covers_the_columns(type, channels, m):
    kernel, _ = choose_dtw(type, channels, m, m, Warping(), 2 * m)
    assert kernel.columns in column_counts(type, channels)
    assert kernel.strips == (kernel.width < m)
    assert not kernel.strips or kernel.group == 32
    if channels in (1, 3):
        assert kernel.name in all_kernels()["elastic/dtw.cu"]


@pytest.mark.parametrize("type", ["float", "double"])
@pytest.mark.parametrize("channels", [1, 3, 50])
@pytest.mark.parametrize("reach", [0, 1, 10, 102, 255, 256, 5000])
def test_the_chosen_kernel_covers_the_band(type, channels, reach):
    width = 10 * reach + 10
    kernel, _ = choose_dtw(type, channels, width, width, Warping(window=reach), reach)
    if isinstance(kernel, BandKernel):
        assert kernel.columns * kernel.group >= 2 * reach + 1
        assert channels == 50 or kernel.name in all_kernels()["elastic/band.cu"]
    else:
        assert kernel.band
        assert reach > 100 or channels == 50


@pytest.mark.parametrize("type", ["float", "double"])
@pytest.mark.parametrize("channels", [1, 3, 50])
def test_threads_that_own_bands_have_room_for_them(type, channels):
    wide = 0
    for reach in range(100):
        kernel = choose_narrow(type, channels, 1000, 1000, Warping(window=reach))
        if kernel is not None:
            # walls stand behind the last offset, or 2, 4 or 6 before the last register
            assert kernel.offsets - (2 * reach + 1) in (0, 2, 4, 6)
            wide = reach
    assert wide == {("float", 1): 66, ("double", 1): 30, ("float", 3): 30, ("double", 3): 14}.get(
        (type, channels), 2 if type == "float" else 0
    )
    assert choose_narrow(type, channels, 30, 30, Warping()) is None
    assert choose_narrow(type, channels, 30, 30, Warping(window=29)) is None
