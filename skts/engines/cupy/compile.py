"""Compile every CUDA kernel without a GPU: ``python -m skts.engines.cupy.compile --arch 75 80 90``.

Needs NVRTC and its bindings from PyPI (``pip install "skts[test]"``).
"""

from __future__ import annotations

import argparse
import sys
import time
from typing import Any

from cuda.bindings import nvrtc

from .programs import OPTIONS, all_kernels, program_of

__all__ = ["compile_program"]

#: What CuPy adds to the options of every program, behind them, so that it holds whatever they say.
ADDED = ("-ftz=true",)


def compile_program(filename: str, names: list[str], arch: int) -> int:
    """Compile kernels of a file for an architecture such as 90.

    The plain ones are one program, as `program_of` has it, and instances of templates another.

    Parameters
    ----------
    filename : str
        Source file, with the folder of its family: ``"elastic/dtw.cu"``.
    names : list of str
        Names of kernels in C++.
    arch : int
        The architecture.

    Returns
    -------
    int
        Size of the binaries.

    Raises
    ------
    RuntimeError
        With the compiler's log.
    """
    programs: dict[str, list[str]] = {}
    for name in names:
        text, instance = program_of(filename, name)
        programs.setdefault(text, []).extend(instance)
    return sum(_compile(filename, text, some, arch) for text, some in programs.items())


def _compile(filename: str, text: str, names: list[str], arch: int) -> int:
    """Compile a text with some instances of its templates."""

    def check(result: tuple[Any, ...]) -> tuple[Any, ...]:
        if result[0] != nvrtc.nvrtcResult.NVRTC_SUCCESS:
            raise RuntimeError(f"{filename} for sm_{arch}: {result[0].name}\n{log()}")
        return result[1:]

    def log() -> str:
        size = nvrtc.nvrtcGetProgramLogSize(program)[1]
        text = b" " * size
        nvrtc.nvrtcGetProgramLog(program, text)
        return text.decode(errors="replace").strip("\0 ")

    program = nvrtc.nvrtcCreateProgram(text.encode(), filename.encode(), 0, [], [])[1]
    for name in names:
        check(nvrtc.nvrtcAddNameExpression(program, name.encode()))
    options = [*OPTIONS, f"-arch=sm_{arch}", *ADDED]
    check(nvrtc.nvrtcCompileProgram(program, len(options), [o.encode() for o in options]))
    (size,) = check(nvrtc.nvrtcGetCUBINSize(program))
    check(nvrtc.nvrtcDestroyProgram(program))
    return size


def main(arguments: list[str] | None = None) -> None:
    """Compile everything for the architectures on the command line."""
    parser = argparse.ArgumentParser(description=main.__doc__)
    parser.add_argument("--arch", type=int, nargs="+", default=[75, 80, 90])
    for arch in parser.parse_args(arguments).arch:
        for filename, names in all_kernels().items():
            start = time.perf_counter()
            size = compile_program(filename, names, arch)
            seconds = time.perf_counter() - start
            print(f"sm_{arch} {filename}: {len(names)} kernels, {size} bytes, {seconds:.1f} s")


if __name__ == "__main__":
    main(sys.argv[1:])
