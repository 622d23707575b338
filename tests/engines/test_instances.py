"""Instances of kernels: which are compiled, and when; whichever runs, the bits are the same."""

from __future__ import annotations

import re
from collections import defaultdict
from dataclasses import replace
from itertools import product

import numpy as np
import pytest
from numpy.testing import assert_array_equal

import skts
from skts.engines import Series, Warping, replace_kernels, run
from skts.engines.core import compiling
from skts.engines.cupy.elastic.programs import choose_slow, column_counts
from skts.engines.cupy.programs import APART, all_kernels, program_of, source
from skts.engines.cupy.signatures import signatures
from tests.examples_of_work import examples, leaves, reductions, small_examples

TABLES = {"large": examples, "small": small_examples}
INSTANCES = [(file, name) for file, names in all_kernels().items() for name in names]


# --- programs ----------------------------------------------------------------------------------


@pytest.mark.parametrize("file", all_kernels())
def test_a_program_makes_no_kernel_that_is_not_asked_for(file):
    """The plain kernels of a file, one of them, or one instance of a template."""
    every, kernels = source(file), signatures(file)
    plain = [name for name, signature in kernels.items() if not signature.template]
    for name in (*plain, "some<1>"):
        code, instances = program_of(file, name)
        assert instances == (() if name in plain else ("some<1>",))
        # whatever is compiled unasked
        made = re.findall(r'^extern "C" __global__ .*?(\w+)\($', code.replace("() {", "("), re.M)
        assert made == ([] if name not in plain else [name] if file in APART else plain)
        # nothing else changes, and lines stay where they are, for messages
        assert code.replace('extern "C" ', "").replace("template <int = 0> ", "") == (
            every.replace('extern "C" ', "")
        )


# --- when instances are compiled ---------------------------------------------------------------


@pytest.fixture
def loading(monkeypatch):
    pytest.importorskip("cupy")
    from skts.engines.cupy import loading

    monkeypatch.setattr(compiling, "replaced", None)
    monkeypatch.setattr(loading, "_lost", type(loading._lost)(float))
    monkeypatch.setenv("CUPY_CACHE_DIR", "none such")
    monkeypatch.delenv("CUPY_CACHE_IN_MEMORY", raising=False)
    return loading


@pytest.mark.gpu
def test_a_faster_instance_waits_until_it_pays(loading):
    half = 2 * loading.WORTH_WAITING / 2
    assert not loading.pays("elastic/dtw.cu", "wide<1>", half, 2.0)
    assert not loading.pays("elastic/dtw.cu", "wide<2>", half, 2.0)
    assert not loading.pays("elastic/band.cu", "wide<1>", half, 2.0)
    assert loading.pays("elastic/dtw.cu", "wide<1>", half, 2.0)
    assert loading.pays("elastic/dtw.cu", "wide<1>", 0.0, 2.0)
    assert loading.pays("elastic/dtw.cu", "wide<3>", 2 * half, 2.0)


@pytest.mark.gpu
@pytest.mark.parametrize(("replaced", "waits"), [(True, True), (None, True), (False, False)])
def test_who_asks_for_kernels_does_not_wait(loading, monkeypatch, replaced, waits):
    monkeypatch.setattr(compiling, "replaced", replaced)
    assert loading.pays("elastic/dtw.cu", "wide<1>", 0.0, 1.0) != waits


@pytest.mark.gpu
@pytest.mark.parametrize("again", [False, True], ids=["in this process", "on disk"])
def test_an_instance_that_is_there_is_used(loading, monkeypatch, tmp_path, again):
    monkeypatch.setattr(loading, "_loaded", {})
    monkeypatch.setenv("CUPY_CACHE_DIR", str(tmp_path))
    kernel, other = (("elastic/shortlist.cu", f"shortlist<{of}>") for of in ("float", "double"))
    assert not loading.pays(*kernel, 0.0, 1.0)
    loading.load_kernel(*kernel)
    if again:
        loading._lost.clear()
        assert not loading.pays(*other, 0.0, 1.0)
    assert loading.pays(*kernel, 0.0, 1.0)


@pytest.mark.gpu
def test_notes_of_what_is_on_disk(loading, monkeypatch, tmp_path):
    from skts.engines.cupy import on_disk

    folder = tmp_path / "kernels"
    monkeypatch.setenv("CUPY_CACHE_DIR", str(folder))
    on_disk.note("text", ())  # CuPy has written nothing there
    assert not folder.exists()
    folder.mkdir()
    on_disk.note("text", ("f<1>",))
    assert on_disk.is_noted("text", ("f<1>",))
    for other in (("text", ()), ("text", ("f<2>",)), ("other", ("f<1>",))):
        assert not on_disk.is_noted(*other)
    monkeypatch.setenv("CUPY_CACHE_IN_MEMORY", "1")
    assert not on_disk.is_noted("text", ("f<1>",))
    on_disk.note("more", ())
    assert len(list(folder.iterdir())) == 1


# --- small work --------------------------------------------------------------------------------


@pytest.mark.gpu
@pytest.mark.parametrize("size", TABLES)
@pytest.mark.parametrize("kind", reductions())
def test_small_work_has_the_same_bits(loading, kind, size):
    """Whatever is compiled and on the device, or on the host: also in turns, of the same lines."""
    for work, answer in TABLES[size]()[kind]:
        found = []
        for replaced, compiled in product((None, False), (0.0, np.inf, 0.0)):
            loading._lost = defaultdict(lambda lost=compiled: lost)
            with replace_kernels(always=replaced):
                found.append(leaves(answer(run(work, engine="cupy"))))
        assert all(one == found[0] for one in found[1:])


CALLS = {
    "DTW": lambda X, y, T, o: skts.DTWNearestNeighbor(**o).fit(X, y).predict(X[:3]),
    "k-Shape": lambda X, y, T, o: skts.KShapeClusterer(2, **o).fit(X).predict(X[:3]),
    "condenser": lambda X, y, T, o: skts.DTWCondenser(**o).fit_resample(X, y),
    "motifs": lambda X, y, T, o: skts.MotifFinder(9, n_discords=1, **o).fit(T),
    "search": lambda X, y, T, o: skts.SubsequenceSearch(**o).fit(T).kneighbors(T[:, 30:50]),
    "tree": lambda X, y, T, o: (
        skts.ShapeletTreeClassifier(max_length=8, length_step=4, **o).fit(X, y).predict_proba(X)
    ),
}


@pytest.mark.gpu
@pytest.mark.parametrize("call", CALLS.values(), ids=CALLS)
def test_first_calls_have_cupy_compile_nothing(loading, monkeypatch, call):
    """What CuPy computes element by element it compiles, a tenth of a second an operation."""
    import cupy

    if not hasattr(cupy, "SETTINGS"):
        pytest.skip("on a device nobody tells which operations CuPy compiles")
    from cupy import _array

    # views and copies, and zeros written to memory
    free = {"copy", "fill", "ravel", "reshape", "transpose"}
    compiled = []
    quietly, setitem, getitem = (
        _array.quietly,
        cupy.ndarray.__setitem__,
        cupy.ndarray.__getitem__,
    )

    def note(function, *args, **kwargs):
        if function.__name__ not in free or any(
            map(np.any, args if function.__name__ == "fill" else ())
        ):
            compiled.append(function.__name__)
        return quietly(function, *args, **kwargs)

    def note_item(self, key, *value):
        if value or isinstance(key, cupy.ndarray):
            compiled.append("item")
        return (setitem if value else getitem)(self, key, *value)

    for module in (_array, cupy):
        monkeypatch.setattr(module, "quietly", note)
    monkeypatch.setattr(cupy.ndarray, "__setitem__", note_item)
    monkeypatch.setattr(cupy.ndarray, "__getitem__", note_item)
    monkeypatch.setattr(cupy, "full", None)
    rng = np.random.default_rng(0)
    X, y = rng.normal(size=(12, 20)), np.arange(12) % 2
    X[y == 1, 5:9] += 5
    call(X, y, rng.normal(size=(1, 120)).cumsum(axis=1), {"engine": "cupy"})
    assert not compiled


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
    rows, cols = (replace(side, buffer=side.buffer.astype(dtype)) for side in (rows, cols))
    reach, found = warping.largest_radius(n, m), []
    for faster in (False, True):
        monkeypatch.setattr(dtw, "pays", lambda *_, faster=faster: faster)
        matrix = dtw.distances(rows, cols, warping, reach=reach, root=True, budget=2**20)
        found.append(cp.asnumpy(matrix))
    assert "<float, 8, " in seen[0][1] or "<double, 8, " in seen[0][1]
    assert seen[0][1] != seen[1][1]
    assert np.isfinite(found[0]).all()
    assert_array_equal(found[0], found[1])
