"""Kernels: of a source, and element by element."""

from __future__ import annotations

from functools import cache
from types import SimpleNamespace
from typing import Any

import numpy as np

from ._array import inner, ndarray, outer
from ._machine import SHARED, KernelError, Program
from .cuda import Device, runtime

__all__ = ["ElementwiseKernel", "RawKernel", "RawModule"]

TYPES = {"int32": "int", "int64": "long long", "float32": "float", "float64": "double"}
TYPES |= {
    "uint32": "unsigned",
    "uint64": "unsigned long long",
    "bool": "bool",
    "uint8": "unsigned char",
}


class RawModule:
    """A program, compiled when its first function is asked for."""

    def __init__(
        self,
        *,
        code: str,
        options: tuple[str, ...] = (),
        backend: str = "nvrtc",
        name_expressions: tuple[str, ...] | None = None,
    ) -> None:
        self.code, self.names = code, name_expressions
        self.program: Program | None = None

    def get_function(self, name: str) -> RawKernel:
        if self.program is None:
            self.program = Program(self.code, self.names)
        if name not in self.program.names:
            raise KernelError(f"named symbol not found: {name}")
        return RawKernel(self.program, name)


class RawKernel:
    """A function of a program."""

    def __init__(self, program: Program, name: str) -> None:
        self.program, self.name = program, name
        self.function = program.function(name)
        self.kernel = SimpleNamespace(ptr=self.function[0])
        # by device
        self._most: dict[int, int] = {}

    @property
    def shared_size_bytes(self) -> int:
        return self.program.declared

    @property
    def max_dynamic_shared_size_bytes(self) -> int:
        return self._most.get(Device().id, SHARED)

    @max_dynamic_shared_size_bytes.setter
    def max_dynamic_shared_size_bytes(self, size: int) -> None:
        if size > runtime.most_shared():
            raise KernelError(f"{self.name}: {size} bytes of shared memory are more than there are")
        self._most[Device().id] = size

    def __call__(
        self, grid: tuple[int, ...], block: tuple[int, ...], args: tuple, *, shared_mem: int = 0
    ) -> None:
        runtime.start()
        asked = Device().id in self._most
        most = self._most[Device().id] if asked else SHARED - self.shared_size_bytes
        if shared_mem and shared_mem > most:
            raise KernelError(f"{self.name}: {shared_mem} bytes of shared memory not asked for")
        self.program.launch(self.name, self.function, grid, block, tuple(args), int(shared_mem))


class ElementwiseKernel:
    """A function of numbers, applied to arrays."""

    def __init__(
        self, in_params: str, out_params: str, operation: str, name: str, **_: Any
    ) -> None:
        self.parameters = [
            [part.split() for part in params.split(",")] for params in (in_params, out_params)
        ]
        self.operation, self.name = operation, name

    def __call__(self, *arrays: ndarray) -> ndarray:
        ins, outs = self.parameters
        (made,) = outs
        given = np.broadcast_arrays(*inner(arrays))
        given = [
            outer(np.array(array, dtype)) for array, (dtype, _) in zip(given, ins, strict=True)
        ]
        out = ndarray(given[0].shape, made[0])
        if out.size:
            kernel = _elementwise(self.name, self.operation, str(ins), str(outs))
            blocks = -(-out.size // 128)
            kernel((blocks,), (128,), (*given, out, np.int64(out.size)))
        return out


@cache
def _elementwise(name: str, operation: str, ins: str, outs: str) -> RawKernel:
    ins, outs = eval(ins), eval(outs)
    parameters = [f"const {TYPES[t]}* in_{n}" for t, n in ins]
    parameters += [f"{TYPES[t]}* out_{n}" for t, n in outs]
    lines = [f"const {TYPES[t]} {n} = in_{n}[i];" for t, n in ins]
    lines += [f"{TYPES[t]}& {n} = out_{n}[i];" for t, n in outs]
    code = f"""#line 1 "{name}.cu"
    extern "C" __global__ void {name}({", ".join(parameters)}, long long size) {{
        const long long i = (long long)blockIdx.x * blockDim.x + threadIdx.x;
        if (i >= size) return;
        {" ".join(lines)}
        {operation};
    }}
    """
    return RawModule(code=code).get_function(name)
