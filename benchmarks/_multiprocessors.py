"""A part of a GPU: a stream whose kernels run on some of its multiprocessors, by a green context.

Green contexts are of the driver's interface since CUDA 12.4, their streams since 12.5. Kernels that
the primary context has loaded may be launched on such a stream.
"""

import ctypes
from contextlib import contextmanager

#: Constants of cuda.h: the type of a resource, and flags of green contexts and of streams.
MULTIPROCESSORS, DEFAULT_STREAM, NON_BLOCKING = 1, 1, 1
#: Bytes of a CUdevResource at most, and where its number of multiprocessors lies.
RESOURCE, COUNT = 1024, 96
#: Blocks that each tell where they are, and stay there for a while.
PLACES = r"""
extern "C" __global__ void places(int* of_block) {
    unsigned here;
    asm volatile("mov.u32 %0, %%smid;" : "=r"(here));
    of_block[blockIdx.x] = here;
    for (long long begun = clock64(); clock64() - begun < 20000;) {}
}
"""


class GreenContextError(RuntimeError):
    """The driver refuses, or does not know, what is asked for."""


def _driver():
    """Functions of the driver, which raise where they fail."""
    try:
        library = ctypes.CDLL("libcuda.so.1")
    except OSError as error:
        raise GreenContextError(str(error)) from error

    def call(name, *arguments):
        function = getattr(library, name, None)
        if function is None:
            raise GreenContextError(f"the driver has no {name}")
        if code := function(*arguments):
            raise GreenContextError(f"{name}: error {code}")

    return call


@contextmanager
def part_of_device(count):
    """A stream of a part of the current device, and how many multiprocessors that has.

    The driver rounds their number up; all are given where `count` is 0.
    """
    import cupy

    call, number = _driver(), cupy.cuda.Device().id
    cupy.cuda.runtime.free(0)  # the primary context has to be there
    device = ctypes.c_int()
    call("cuDeviceGet", ctypes.byref(device), number)
    whole, part, rest = (ctypes.create_string_buffer(RESOURCE) for _ in range(3))
    call("cuDeviceGetDevResource", device, whole, MULTIPROCESSORS)
    if count:
        groups = ctypes.c_uint(1)
        call(
            "cuDevSmResourceSplitByCount",
            *(part, ctypes.byref(groups), whole, rest, ctypes.c_uint(0), ctypes.c_uint(count)),
        )
    else:
        part = whole
    description, context, stream = (ctypes.c_void_p() for _ in range(3))
    call("cuDevResourceGenerateDesc", ctypes.byref(description), part, ctypes.c_uint(1))
    flags = ctypes.c_uint(DEFAULT_STREAM)
    call("cuGreenCtxCreate", ctypes.byref(context), description, device, flags)
    try:
        flags = ctypes.c_uint(NON_BLOCKING)
        call("cuGreenCtxStreamCreate", ctypes.byref(stream), context, flags, ctypes.c_int(0))
        yield (
            cupy.cuda.ExternalStream(stream.value, number),
            int.from_bytes(part.raw[COUNT : COUNT + 4], "little"),
        )
        cupy.cuda.Device().synchronize()
        cupy.get_default_memory_pool().free_all_blocks()
        call("cuStreamDestroy_v2", stream)
    finally:
        call("cuGreenCtxDestroy", context)


def multiprocessors_used(stream):
    """On how many multiprocessors blocks of a launch on a stream are."""
    import cupy

    kernel = cupy.RawKernel(PLACES, "places")
    blocks = 64 * cupy.cuda.Device().attributes["MultiProcessorCount"]
    with stream:
        of_block = cupy.empty(blocks, cupy.int32)
        kernel((blocks,), (32,), (of_block,))
        found = of_block.get(stream=stream)
    return len(set(found.tolist()))


@contextmanager
def engine_on(engine, stream):
    """Let the tiles of an engine run on a stream."""
    import cupy

    compute, streams = engine.compute, engine._streams

    def compute_there(*arguments):
        with stream:
            return compute(*arguments)

    engine.compute = compute_there
    engine._streams = {cupy.cuda.Device().id: stream}
    engine.prepared.clear()
    try:
        yield
    finally:
        del engine.compute
        engine._streams = streams
        engine.prepared.clear()
