"""Instances of kernels: which are compiled, and when; whichever runs, the bits are the same."""

from __future__ import annotations

import numpy as np
import pytest
from numpy.testing import assert_array_equal

from skts.engines import Series, Warping
from skts.engines.core import compiling
from skts.engines.cupy.elastic.programs import choose_slow, column_counts
from skts.engines.cupy.programs import all_kernels, program_of, source
from skts.engines.cupy.signatures import signatures

INSTANCES = [(file, name) for file, names in all_kernels().items() for name in names]


# --- programs ----------------------------------------------------------------------------------


@pytest.mark.parametrize("file", all_kernels())
def test_a_program_makes_no_kernel_that_is_not_asked_for(file):
    """The plain kernels of a file, or one instance of a template."""
    plain, none = program_of(file, "some")
    assert (plain, none) == (source(file), ())
    code, names = program_of(file, "some<1>")
    assert names == ("some<1>",)
    # whatever is compiled unasked has a name without mangling
    assert 'extern "C" __global__' not in code
    assert code.count("__global__ void") == plain.count("__global__ void")
    # lines stay where they are, for messages
    assert len(code.splitlines()) == len(plain.splitlines())
    n_plain = sum(not signature.template for signature in signatures(file).values())
    assert plain.count('extern "C" __global__') == n_plain


# --- when instances are compiled ---------------------------------------------------------------


@pytest.fixture
def loading(monkeypatch):
    pytest.importorskip("cupy")
    from skts.engines.cupy import loading

    monkeypatch.setattr(compiling, "replaced", None)
    monkeypatch.setattr(loading, "_wanted", type(loading._wanted)(float))
    return loading


@pytest.mark.gpu
def test_a_faster_instance_waits_until_it_pays(loading):
    half = loading.WORTH_COMPILING / 2
    assert not loading.pays("some.cu", "wide<1>", half)
    assert not loading.pays("some.cu", "wide<2>", half)
    assert not loading.pays("other.cu", "wide<1>", half)
    assert loading.pays("some.cu", "wide<1>", half)
    assert loading.pays("some.cu", "wide<1>", 0.0)
    assert loading.pays("some.cu", "wide<3>", 2 * half)


@pytest.mark.gpu
@pytest.mark.parametrize(("replaced", "waits"), [(True, True), (None, True), (False, False)])
def test_who_asks_for_kernels_does_not_wait(loading, monkeypatch, replaced, waits):
    monkeypatch.setattr(compiling, "replaced", replaced)
    assert loading.pays("some.cu", "wide<1>", 1.0) != waits


@pytest.mark.gpu
def test_an_instance_that_is_there_is_used(loading, monkeypatch):
    monkeypatch.setattr(loading, "_loaded", {})
    name = "shortlist<float>"
    assert not loading.pays("elastic/shortlist.cu", name, 1.0)
    loading.load_kernel("elastic/shortlist.cu", name)
    assert loading.pays("elastic/shortlist.cu", name, 1.0)


# --- warping -----------------------------------------------------------------------------------


@pytest.mark.parametrize("type", ["float", "double"])
@pytest.mark.parametrize("channels", [1, 3, 50])
@pytest.mark.parametrize("m", [1, 3, 24, 128, 257, 427, 100_000])
def test_small_work_has_one_width(type, channels, m):
    columns = min(8, max(column_counts(type, channels)))
    for window, alignment in ((None, "global"), (3, "global"), (None, "subsequence")):
        warping = Warping(window=window, alignment=alignment)
        kernel, price = choose_slow(type, channels, m, m, warping, 3 if window else 2 * m, 100)
        assert kernel.columns == columns
        assert kernel.strips == (kernel.width < m)
        assert price > m
        if channels == 1:
            assert ("elastic/dtw.cu", kernel.name) in INSTANCES


ALIKE, UNLIKE, STRIPS = (60, 60), (33, 70), (130, 300)
CASES = [
    *((Warping(window=window), "f4", 1, ALIKE) for window in (None, 0, 9, 0.4)),
    (Warping(window=13, metric="dog_keeper", cost="absolute"), "f4", 1, ALIKE),
    *((Warping(alignment=f"su{which}sequence"), "f4", 1, UNLIKE) for which in ("b", "per")),
    (Warping(window=5), "f8", 1, ALIKE),
    (Warping(window=5), "f4", 3, UNLIKE),
    (Warping(), "f4", 1, STRIPS),
    (Warping(window=9), "f8", 1, STRIPS),
]


@pytest.mark.gpu
@pytest.mark.parametrize("shortest", [None, 20])
@pytest.mark.parametrize(("warping", "dtype", "channels", "points"), CASES)
def test_instances_of_warping_give_the_same_bits(
    loading, monkeypatch, warping, dtype, channels, points, shortest
):
    """In float32, too, where they are estimates that no answer depends on."""
    import cupy as cp

    from skts.engines.cupy.elastic import dtw

    rng = np.random.default_rng(0)
    seen = []

    def note(file, name, shared=0):
        seen.append((file, name))
        return loading.load_kernel(file, name, shared)

    def upload(count, size):
        lengths = np.full(count, size)
        if shortest is not None:
            lengths[1:] = rng.integers(shortest, size, count - 1)
        values = (
            rng.normal(size=(count, channels, size)) * np.array([1e-3, 1, 1e4])[:count, None, None]
        )
        return dtw.upload(Series(values, lengths)), lengths

    monkeypatch.setattr(dtw, "load_kernel", note)
    (rows, n), (cols, m) = (upload(count, size) for count, size in zip((3, 2), points, strict=True))
    rows, cols = (side._replace(buffer=side.buffer.astype(dtype)) for side in (rows, cols))
    reach, found = warping.largest_radius(n, m), []
    for faster in (False, True):
        monkeypatch.setattr(dtw, "pays", lambda file, name, work, faster=faster: faster)
        matrix = dtw.distances(rows, cols, warping, reach=reach, root=True, budget=2**20)
        found.append(cp.asnumpy(matrix))
    assert "<float, 8, " in seen[0][1] or "<double, 8, " in seen[0][1]
    assert seen[0][1] != seen[1][1]
    assert np.isfinite(found[0]).all()
    assert_array_equal(found[0], found[1])
