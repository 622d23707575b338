"""The machine: its settings, memory between guards, and kernels that g++ compiles.

Settings come from environment variables, which are read when this is imported; README.md of the
emulator lists them.
"""

from __future__ import annotations

import atexit
import ctypes
import functools
import hashlib
import math
import os
import platform
import re
import subprocess
import tempfile
import threading
from collections import Counter
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

__all__ = ["SETTINGS", "SHARED", "KernelError", "Memory", "Program", "lock"]

HERE = Path(__file__).parent
#: Functions of a source that are no templates.
PLAIN = re.compile(
    r'extern "C"\s+__global__\s+void\s+(?:__launch_bounds__\((?:[^()]|\([^()]*\))*\)\s+)?(\w+)\('
)
#: Dynamic shared memory.
DYNAMIC = re.compile(
    r"extern\s+__shared__\s+(?:__align__\(\d+\)\s+|alignas\(\d+\)\s+)?([\w\s]+?)\s+(\w+)\[\];"
)
#: A line of `nm` about a static variable of a function: its size and its name.
STATIC = re.compile(r"^[0-9a-f]+ ([0-9a-f]+) [bBuVvd] (.+::.+)$", re.MULTILINE)
#: Bytes of shared memory that a block has without asking, and the most that a kernel may declare.
SHARED = 48 * 1024
#: Most blocks of a grid, and threads of a block, along each axis.
MOST_BLOCKS, MOST_THREADS = (2**31 - 1, 65535, 65535), (1024, 1024, 64)
#: Alignment of arrays: what the widest load of a kernel needs.
ALIGNMENT = 32


class KernelError(RuntimeError):
    """An error that a GPU would answer by a corrupted result, a hang, or an illegal address."""


def _setting(name: str, default: str) -> str:
    return os.environ.get(f"SKTS_EMULATOR_{name}", default)


@dataclass
class Settings:
    """How the machine is set up; see README.md."""

    cache: Path = field(
        default_factory=lambda: Path(_setting("CACHE", "~/.cache/skts-emulator")).expanduser()
    )
    contract: bool = _setting("FMA", "0") == "1"
    guard: str = _setting("GUARD", "end")
    check: bool = _setting("CHECK", "1") == "1"
    order: str = _setting("ORDER", "forward")
    devices: int = int(_setting("DEVICES", "1"))
    capability: str = _setting("CAPABILITY", "90")
    multiprocessors: int = int(_setting("MULTIPROCESSORS", "4"))
    memory: int = int(float(_setting("MEMORY", "4e9")))
    timeout: float = float(_setting("TIMEOUT", "120"))


SETTINGS = Settings()
#: One kernel runs at a time.
lock = threading.RLock()
#: How often each kernel of each file was launched; written to SKTS_EMULATOR_LOG in the end.
LAUNCHES: Counter[str] = Counter()


@atexit.register
def _log() -> None:
    path = _setting("LOG", "")
    if path and LAUNCHES:
        with open(path, "a", encoding="utf-8") as file:
            file.writelines(f"{count} {name}\n" for name, count in sorted(LAUNCHES.items()))


@functools.cache
def _flags() -> tuple[str, ...]:
    """Options of g++ for kernels."""
    flags = ["-std=gnu++17", "-O1", "-fPIC", "-shared", "-w", "-fno-strict-aliasing"]
    flags += ["-fno-math-errno", "-fvisibility=hidden", "-fno-gnu-unique", "-fwrapv-pointer"]
    flags += [f"-ffp-contract={'fast' if SETTINGS.contract else 'off'}"]
    if SETTINGS.contract:
        flags.append("-fexpensive-optimizations")  # holds the pass that contracts
    if SETTINGS.check:
        flags.append(
            "-fsanitize=bounds,alignment,signed-integer-overflow,shift-exponent,"
            "integer-divide-by-zero,float-cast-overflow"
        )
        # variables of a thread that were never written
        flags.append("-ftrivial-auto-var-init=pattern")
    if platform.machine() == "x86_64" and " fma " in Path("/proc/cpuinfo").read_text():
        flags += ["-mfma", "-mavx2"]
    return tuple(flags)


def _compiled(name: str, text: str, flags: tuple[str, ...], kernels: bool = True) -> Path:
    """The path of a shared library, of kernels or not, compiled unless the cache holds it."""
    key = hashlib.sha256("\0".join((text, *flags, _compiler())).encode()).hexdigest()[:32]
    path = SETTINGS.cache / f"{name}-{key}.so"
    if path.exists():
        return path
    path.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=path.parent) as folder:
        source, built = Path(folder, "source.cpp"), Path(folder, "built.so")
        source.write_text(text, "utf-8")
        command = ["g++", *flags, "-o", str(built), str(source)]
        done = subprocess.run(command, capture_output=True, text=True, check=False)
        if done.returncode:
            raise KernelError(f"{name} does not compile:\n{done.stderr[:4000]}")
        for function, size in _static_memory(built).items() if kernels else ():
            if size > SHARED:
                raise KernelError(
                    f"{name} does not compile: {function} declares {size} bytes of shared memory, "
                    f"of {SHARED} that there are"
                )
        built.replace(path)
    return path


def _static_memory(library: Path) -> Counter[str]:
    """Bytes of the static arrays of each function of a library: the shared memory of a kernel."""
    command = ["nm", "--demangle", "--print-size", str(library)]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    found: Counter[str] = Counter()
    for size, symbol in STATIC.findall(done.stdout):
        found[symbol.rpartition("::")[0]] += int(size, 16)
    return found


@functools.cache
def _compiler() -> str:
    return subprocess.run(["g++", "-v"], capture_output=True, text=True, check=True).stderr


class Launch(ctypes.Structure):
    """`Launch` of machine.cpp."""

    _fields_ = [
        ("run", ctypes.c_void_p),
        ("arguments", ctypes.c_void_p),
        ("grid", ctypes.c_uint * 3),
        ("block", ctypes.c_uint * 3),
        ("dynamic", ctypes.c_size_t),
        ("shared_begin", ctypes.c_void_p),
        ("shared_end", ctypes.c_void_p),
        ("order", ctypes.c_int),
        ("seconds", ctypes.c_double),
        ("message", ctypes.c_char_p),
        ("message_size", ctypes.c_size_t),
        ("instruction", ctypes.c_ulonglong),
    ]


@functools.cache
def machine() -> ctypes.CDLL:
    """The library of machine.cpp."""
    text = (HERE / "machine.cpp").read_text("utf-8")
    flags = ("-std=gnu++17", "-O2", "-fPIC", "-shared")
    path = _compiled("machine", text, flags, kernels=False)
    library = ctypes.CDLL(str(path), mode=ctypes.RTLD_GLOBAL)
    library.emulator_alloc.restype = ctypes.c_void_p
    library.emulator_alloc.argtypes = [ctypes.c_size_t, ctypes.c_size_t, ctypes.c_int]
    library.emulator_free.argtypes = [ctypes.c_void_p, ctypes.c_size_t]
    library.emulator_launch.argtypes = [ctypes.POINTER(Launch)]
    return library


class Memory:
    """Bytes between guards, freed with the last array that lies in them."""

    used = 0
    #: Hooks of CuPy, told of what is taken and freed.
    hooks: list[Any] = []

    def __init__(self, size: int) -> None:
        with lock:
            pointer = machine().emulator_alloc(size, ALIGNMENT, SETTINGS.guard != "begin")
            if not pointer:
                raise MemoryError(f"the system gives no {size} bytes")
            self.ptr, self.size = pointer, size
            # CuPy's pool gives multiples of 512 bytes
            self.held = -(-size // 512) * 512
            Memory.used += self.held
        self._tell("malloc_postprocess")
        self.__array_interface__ = {
            "shape": (size,),
            "typestr": "|u1",
            "data": (pointer, False),
            "version": 3,
        }

    def __del__(self) -> None:
        if hasattr(self, "held"):
            with lock:
                Memory.used -= self.held
                machine().emulator_free(self.ptr, self.size)
            self._tell("free_postprocess")

    def _tell(self, name: str) -> None:
        for hook in Memory.hooks:
            about = {"device_id": 0, "size": self.size, "mem_size": self.held}
            getattr(hook, name)(**about, mem_ptr=self.ptr, pmem_id=id(self))


class Parameter:
    """A parameter as the kernel declares it: size, letter, and letter and size of its target."""

    def __init__(self, size: int, letter: int, target: int, target_size: int) -> None:
        self.size, self.letter = size, chr(letter)
        self.target, self.target_size = chr(target), target_size

    def value(self, given: object, where: str) -> np.ndarray:
        """The bytes of an argument, if it may be one."""
        from ._array import ndarray

        if isinstance(given, ndarray):
            if self.letter != "P":
                raise KernelError(f"{where}: an array where the kernel takes a number")
            self._check_target(given.dtype, where)
            return np.array(given.data.ptr, np.uintp)
        if given is None:
            given = 0
        if isinstance(given, bool | int) and not isinstance(given, np.generic):
            if self.letter == "F":
                raise KernelError(f"{where}: the integer {given} where the kernel takes a float")
            if self.letter == "P" and given != 0:
                raise KernelError(f"{where}: the number {given} for a pointer")
            return np.array(given, np.int64)
        if isinstance(given, float) and not isinstance(given, np.generic):
            given = np.float64(given)
        data = np.ascontiguousarray(given)
        if data.size != 1:
            raise KernelError(f"{where}: an array of {data.size} elements by value, not of one")
        if data.nbytes != self.size:
            raise KernelError(f"{where}: {data.nbytes} bytes for a parameter of {self.size}")
        if isinstance(given, np.generic) and (self.letter == "F") != (data.dtype.kind == "f"):
            raise KernelError(f"{where}: {data.dtype} for a parameter of another kind")
        return data

    def _check_target(self, dtype: np.dtype, where: str) -> None:
        # of one size only: kernels order floats by their bits, as integers
        if self.target in "FI" and dtype.itemsize != self.target_size:
            raise KernelError(
                f"{where}: an array of {dtype} where the kernel has numbers of "
                f"{self.target_size} bytes"
            )


class Program:
    """Kernels of a source text: instances by name, or all that are no templates."""

    def __init__(self, code: str, names: tuple[str, ...] | None) -> None:
        names = names or tuple(PLAIN.findall(code))
        self.names = names
        # dynamic shared memory is where the machine says
        code = DYNAMIC.sub(r"\1* const \2 = (\1*)emulator_dynamic;", code)
        begin = re.match(r'#line 1 "([\w/]+)\.cu"', code)
        text = "\n".join(
            [
                '#line 1 "cuda_shim.h"',
                (HERE / "cuda_shim.h").read_text("utf-8"),
                code,
                "EMULATOR_SHARED()",
                *(f"EMULATOR_KERNEL({i}, {name})" for i, name in enumerate(names)),
            ]
        )
        machine()
        self.title = begin[1] if begin else "program"
        self.text = text
        self.library = ctypes.CDLL(str(_compiled(self.title.replace("/", "-"), text, _flags())))
        for name in ("emulator_shared_begin", "emulator_shared_end"):
            getattr(self.library, name).restype = ctypes.c_void_p
        self.shared = self.library.emulator_shared_begin(), self.library.emulator_shared_end()
        # bytes of static memory, the shared one included, where a program has one kernel: no less
        # than the kernel declares
        self.declared = self.shared[1] - self.shared[0] if len(names) == 1 else 0

    def function(self, name: str) -> tuple[int, list[Parameter]]:
        """Address of a kernel, and its parameters."""
        number = self.names.index(name)
        run = ctypes.cast(getattr(self.library, f"emulator_run_{number}"), ctypes.c_void_p).value
        about = (ctypes.c_int * 256)()
        count = getattr(self.library, f"emulator_about_{number}")(about)
        return run, [Parameter(*about[4 * i : 4 * i + 4]) for i in range(count)]

    def launch(
        self,
        name: str,
        function: tuple[int, list[Parameter]],
        grid: tuple[int, ...],
        block: tuple[int, ...],
        arguments: tuple,
        shared: int,
    ) -> None:
        """Run a kernel to its end."""
        run, parameters = function
        title = f"{self.title}.cu: {name}"
        if len(arguments) != len(parameters):
            raise KernelError(
                f"{title} has {len(parameters)} parameters and got {len(arguments)} arguments"
            )
        values = [
            parameter.value(given, f"{title}, argument {i}")
            for i, (parameter, given) in enumerate(zip(parameters, arguments, strict=True))
        ]
        pointers = (ctypes.c_void_p * max(1, len(values)))(*(v.ctypes.data for v in values))
        blocks, threads = (
            tuple(int(n) for n in sizes) + (1,) * (3 - len(sizes)) for sizes in (grid, block)
        )
        for sizes, most in ((blocks, MOST_BLOCKS), (threads, MOST_THREADS)):
            if not all(0 < n <= limit for n, limit in zip(sizes, most, strict=True)):
                raise KernelError(f"{title}: a grid of {blocks} blocks of {threads} threads")
        if math.prod(threads) > 1024:
            raise KernelError(f"{title}: a block of {threads} threads")
        LAUNCHES[title] += 1
        message = ctypes.create_string_buffer(2048)
        order = {"forward": 0, "backward": 1}.get(SETTINGS.order)
        with lock:
            launch = Launch(
                run,
                ctypes.cast(pointers, ctypes.c_void_p),
                (ctypes.c_uint * 3)(*blocks),
                (ctypes.c_uint * 3)(*threads),
                shared,
                *self.shared,
                2 + int(SETTINGS.order) if order is None else order,
                SETTINGS.timeout,
                ctypes.cast(message, ctypes.c_char_p),
                len(message),
            )
            failed = machine().emulator_launch(ctypes.byref(launch))
        if failed:
            raise KernelError(f"{title}: {message.value.decode()}{self._place(launch.instruction)}")

    def _place(self, instruction: int) -> str:
        """The line of the source that an instruction belongs to, and those that called it."""
        if not instruction:
            return ""
        # the same instructions, with what debuggers know of them
        path = _compiled(self.title.replace("/", "-"), self.text, (*_flags(), "-g", "-gdwarf-4"))
        done = subprocess.run(
            ["addr2line", "-Cfie", str(path), hex(instruction)],
            capture_output=True,
            text=True,
            check=False,
        )
        lines = done.stdout.split("\n")[1::2]
        return "; at " + ", called from ".join(lines) if lines else ""
