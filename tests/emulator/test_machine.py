"""The emulator finds what kernels do wrong; runs on the emulator (`test_emulator.py` starts it)."""

from __future__ import annotations

import os

import numpy as np
import pytest

if os.environ.get("SKTS_EMULATE_GPU") != "1":
    pytest.skip("runs where SKTS_EMULATE_GPU=1", allow_module_level=True)

import cupy as cp

SOURCE = r"""#line 1 "wrong.cu"
extern "C" __global__ void write_at(float* x, int place) { x[place] = 1; }
extern "C" __global__ void read_at(float* x, int place, float* out) { out[0] = x[place]; }
extern "C" __global__ void through(float** table) { table[0][0] = 1; }
extern "C" __global__ void barriers(float* x) {
    if (threadIdx.x < 32)
        __syncthreads();
    else
        __syncthreads();
    x[threadIdx.x] = 1;
}
extern "C" __global__ void left_behind(float* x) {
    if (threadIdx.x < 7) __syncthreads();
    else x[threadIdx.x] = __shfl_sync(0xffffffffu, x[threadIdx.x], 0);
}
extern "C" __global__ void mask(float* x) { x[threadIdx.x] = __shfl_sync(0xffu, 1.0f, 0); }
extern "C" __global__ void gone(float* x) {
    if (threadIdx.x == 3) return;
    x[threadIdx.x] = __shfl_sync(0xffffffffu, 1.0f, 3);
}
extern "C" __global__ void endless(volatile float* x) { while (x[0] == 0) {} }
extern "C" __global__ void index(const int* at, float* x) {
    __shared__ float values[32];
    values[at[0]] = 1;
    __syncthreads();
    x[0] = values[at[1]];
}
extern "C" __global__ void sum(int* x) { x[0] += x[1]; }
extern "C" __global__ void vector(int* x, int place) {
    *(int4*)(x + place) = make_int4(1, 2, 3, 4);
}
extern "C" __global__ void dynamic(int* x) {
    extern __shared__ int shared[];
    shared[threadIdx.x] = 1;
    x[0] = shared[0];
}
extern "C" __global__ void rounded(float* x, int* out) { out[0] = (int)x[0]; }
extern "C" __global__ void race(int* x) {
    __shared__ int last;
    last = threadIdx.x;
    __syncthreads();
    x[0] = last;
}
extern "C" __global__ void one_place(int* x, int* out) {
    *x = threadIdx.x / 32;
    for (int i = 0; i < 100; ++i) __syncwarp();
    out[threadIdx.x] = *x;
}
extern "C" __global__ void unwritten(int* x, int write) {
    __shared__ int values[2];
    int own[2];
    if (write) own[0] = values[0] = 1;
    __syncthreads();
    x[0] = values[write - write], x[1] = own[write - write];
}
extern "C" __global__ void collect(const int* x, int* out) {
    const int lane = threadIdx.x, value = x[lane];
    int* mine = out + 16 * lane;
    mine[0] = __shfl_sync(0xffffffffu, value, lane + 3, 8);
    mine[1] = __shfl_up_sync(0xffffffffu, value, 5);
    mine[2] = __shfl_up_sync(0xffffffffu, value, 2, 4);
    mine[3] = __shfl_down_sync(0xffffffffu, value, 5);
    mine[4] = __shfl_down_sync(0xffffffffu, value, 2, 4);
    mine[5] = __shfl_xor_sync(0xffffffffu, value, 6);
    mine[6] = __ballot_sync(0xffffffffu, value % 3 == 0);
    mine[7] = __any_sync(0xffffffffu, value == 7) + 2 * __all_sync(0xffffffffu, value > 7);
    mine[8] = __reduce_max_sync(0xffffffffu, value - 20);
    mine[9] = __reduce_min_sync(0xffffffffu, (unsigned)value - 20u);
    mine[10] = __match_any_sync(0xffffffffu, value % 5);
    if (lane < 12) mine[11] = __shfl_xor_sync(0xfffu, value, 1);
    else mine[11] = __reduce_add_sync(0xfffff000u, value);
    mine[12] = __syncthreads_count(value > 10);
}
"""


@pytest.fixture(scope="module")
def module():
    # `index` is a function of the C library, too
    return cp.RawModule(code=SOURCE.replace("void index", "void element"))


@pytest.fixture
def launch(module):
    def go(name, *arguments, blocks=1, threads=32, shared=0):
        module.get_function(name)((blocks,), (threads,), arguments, shared_mem=shared)

    return go


def zeros(size, dtype=np.float32):
    return cp.zeros(size, dtype)


@pytest.mark.parametrize("size", [5, 8, 1000, 5000])
def test_writes_beside_arrays(launch, size):
    with pytest.raises(cp.KernelError, match="behind the end of an array of"):
        launch("write_at", zeros(size), np.int32(size), threads=1)
    with pytest.raises(cp.KernelError, match="before an array of"):
        launch("write_at", zeros(size), np.int32(-1), threads=1)
    launch("write_at", zeros(size), np.int32(size - 1))


def test_reads_behind_arrays(launch):
    out = zeros(1)
    with pytest.raises(cp.KernelError, match=r"access 0 bytes behind .*; at .*wrong\.cu:2"):
        launch("read_at", zeros(8), np.int32(8), out)
    launch("read_at", zeros(8), np.int32(7), out)
    # what nobody wrote
    launch("read_at", cp.empty(8, np.float32), np.int32(7), out)
    assert np.isnan(out.get()[0])


def test_arrays_that_are_gone(launch):
    array = zeros(8)
    table = cp.asarray(np.array([array.data.ptr]))
    launch("through", table)
    assert array.get()[0] == 1
    del array
    with pytest.raises(cp.KernelError, match="byte 0 of a freed array of 32 bytes"):
        launch("through", table)


@pytest.mark.parametrize(
    ("name", "threads", "message"),
    [
        ("barriers", 64, "different barriers: 32 from thread 0 on .*32 from thread 32 on"),
        ("left_behind", 32, "wait for others that do not come: 7 from thread 0 .*25 from thread 7"),
        ("mask", 32, "lane 8 with a mask without it"),
    ],
)
def test_threads_that_do_not_meet(launch, name, threads, message):
    with pytest.raises(cp.KernelError, match=message):
        launch(name, zeros(64), threads=threads)
    # and the next launch is as good as ever
    launch("barriers", zeros(64))


def test_nothing_comes_from_lanes_that_are_gone(launch):
    array = zeros(32)
    launch("gone", array)
    assert not np.any(array.get() == 1)


def test_kernels_that_do_not_end(launch, monkeypatch):
    monkeypatch.setattr(cp.SETTINGS, "timeout", 0.5)
    with pytest.raises(cp.KernelError, match="has run longer"):
        launch("endless", zeros(1))


def test_undefined_behaviour(launch):
    if not cp.SETTINGS.check:
        pytest.skip("SKTS_EMULATOR_CHECK=0")
    at = cp.asarray(np.array([32, 0], np.int32))
    with pytest.raises(cp.KernelError, match=r"wrong\.cu:\d+: index beyond the array; block \(0, "):
        launch("element", at, zeros(1))
    with pytest.raises(cp.KernelError, match="an integer sum overflows"):
        launch("sum", cp.full(2, 2**30, np.int32))
    with pytest.raises(cp.KernelError, match="not aligned"):
        launch("vector", zeros(16, np.int32), np.int32(1), threads=1)
    launch("vector", zeros(16, np.int32), np.int32(4), threads=1)
    with pytest.raises(cp.KernelError, match="beyond the integer"):
        launch("rounded", cp.full(1, 3e9, np.float32), zeros(1, np.int32))


def test_unwritten_variables_hold_no_likely_number(launch):
    array = zeros(2, np.int32)
    launch("unwritten", array, np.int32(0))
    assert abs(array.get().astype(np.int64)).min() > 0


def test_shared_memory_that_is_asked_for(launch):
    launch("dynamic", zeros(1, np.int32), shared=128)
    with pytest.raises(cp.KernelError, match="outside of the shared memory"):
        launch("dynamic", zeros(1, np.int32), shared=112)
    with pytest.raises(cp.KernelError, match="60000 bytes of shared memory not asked for"):
        launch("dynamic", zeros(1, np.int32), shared=60_000)


DECLARED = r"""#line 1 "declared.cu"
template <int N>
__global__ void declared(float* x) {
    __shared__ float values[N];
    __shared__ double others[1024];
    values[0] = 1, others[0] = 2;
    x[0] = values[0] + others[0];
}
"""


@pytest.mark.parametrize("size", [10_240, 10_241])
def test_shared_memory_that_is_declared(size):
    """A kernel has 48 KiB at most, as ptxas says; each by itself."""
    names = (f"declared<{size}>", "declared<7>")
    kernel = cp.RawModule(code=DECLARED, name_expressions=names)
    x = zeros(1)
    if size > 10_240:
        with pytest.raises(cp.KernelError, match="does not compile: .* declares 49156 bytes"):
            kernel.get_function(names[0])
        return
    for name in names:
        kernel.get_function(name)((1,), (1,), (x,))
        assert x.get()[0] == 3


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ((), "has 2 parameters and got 0"),
        ((np.zeros(8, np.float32), np.int32(0)), "an array of 8 elements by value"),
        ((np.zeros(1, "V32"), np.int32(0)), "32 bytes for a parameter of 8"),
        (("x", np.float32(0)), "float32 for a parameter of another kind"),
        (("x", np.int64(0)), "8 bytes for a parameter of 4"),
        (("double", np.int32(0)), "an array of float64 where the kernel has numbers of 4 bytes"),
        ((7, np.int32(0)), "the number 7 for a pointer"),
    ],
)
def test_arguments_that_do_not_fit(launch, arguments, message):
    arrays = {"x": zeros(8), "double": zeros(8, np.float64)}
    arguments = [arrays.get(a, a) if isinstance(a, str) else a for a in arguments]
    with pytest.raises(cp.KernelError, match=message):
        launch("write_at", *arguments)


@pytest.mark.parametrize("shape", [{"threads": 1025}, {"blocks": 0}, {"blocks": 2**31}])
def test_shapes_of_launches_that_there_are_not(launch, shape):
    with pytest.raises(cp.KernelError, match="a grid of"):
        launch("write_at", zeros(8), np.int32(0), **shape)


def test_another_order_shows_races(launch, monkeypatch):
    found = set()
    for order in ("forward", "backward", "1", "2", "3"):
        monkeypatch.setattr(cp.SETTINGS, "order", order)
        array = zeros(1, np.int32)
        launch("race", array, threads=64)
        found.add(int(array[0]))
    assert {63, 0} < found


@pytest.mark.parametrize("order", ["1", "2", "3"])
def test_warps_that_share_what_should_be_their_own(launch, monkeypatch, order):
    """They take turns in a random order; else each runs to the next barrier by itself."""
    shared = zeros(1, np.int32)
    for one in ("forward", "backward", order):
        out = zeros(128, np.int32)
        monkeypatch.setattr(cp.SETTINGS, "order", one)
        launch("one_place", shared, out, threads=128)
        assert np.array_equal(out.get(), np.arange(128) // 32) == (one != order)


@pytest.mark.parametrize("order", ["forward", "backward", "5"])
def test_what_lanes_do_together(launch, monkeypatch, order):
    monkeypatch.setattr(cp.SETTINGS, "order", order)
    values = np.random.default_rng(1).integers(0, 40, 32).astype(np.int32)
    out = zeros((32, 16), np.int32)
    launch("collect", cp.asarray(values), out)
    found, lanes = out.get(), np.arange(32)
    four = lanes % 4
    expected = [
        values[lanes // 8 * 8 + (lanes + 3) % 8],
        values[np.where(lanes < 5, lanes, lanes - 5)],
        values[np.where(four < 2, lanes, lanes - 2)],
        values[np.where(lanes > 26, lanes, lanes + 5)],
        values[np.where(four > 1, lanes, lanes + 2)],
        values[lanes ^ 6],
        np.sum((values % 3 == 0) << lanes),
        np.any(values == 7) + 2 * np.all(values > 7),
        values.max() - 20,
        (values.astype(np.uint32) - np.uint32(20)).min(),
        np.array([np.sum((values % 5 == v % 5) << lanes) for v in values]),
        np.where(lanes < 12, values[lanes ^ 1], values[12:].sum()),
        np.sum(values > 10),
    ]
    for column, right in enumerate(expected):
        right = np.broadcast_to(right, 32).astype(np.uint32)
        np.testing.assert_array_equal(found[:, column].view(np.uint32), right)


def test_arrays_are_those_of_cupy():
    array = cp.asarray(np.arange(6.0).reshape(2, 3))
    with pytest.raises(TypeError, match="Implicit conversion"):
        np.asarray(array)
    with pytest.raises(TypeError, match="Unsupported type"):
        array + np.ones(3)
    with pytest.raises(TypeError, match="Unsupported type"):
        cp.sqrt(np.ones(3))
    assert isinstance(array.sum(), cp.ndarray)
    assert float(array.sum()) == 15
    assert isinstance(np.sqrt(array), cp.ndarray)
    assert array[0].data.ptr == array.data.ptr
    array[cp.asarray([1])] = 7
    np.testing.assert_array_equal(array.get(), [[0, 1, 2], [7, 7, 7]])
