"""The CUDA programs of this engine: sources, options, and which kernels there are.

Imports nothing of CUDA, so that `compile` checks every kernel on a machine without a GPU.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from importlib.resources import files

from ..core.constants import cuda_header
from .elastic.programs import all_dtw_kernels
from .elastic.rotation_programs import all_rotation_kernels
from .kshape.programs import all_shape_kernels
from .profile.programs import all_join_kernels
from .search.programs import all_search_kernels
from .shapelets.programs import all_shapelet_kernels

__all__ = ["KERNELS", "OPTIONS", "all_kernels", "source"]

#: Folder of the sources, which are named from here: ``elastic/dtw.cu``.
KERNELS = files(__package__)
#: Header that is no file: it is made from the constants that Python reads.
CONSTANTS = "include/constants.cuh"
#: Compiler options of every program. No fast-math: infinities are used, denormals kept.
OPTIONS = ("-std=c++17",)


def source(name: str) -> str:
    """Return the text of a source file, with that of the files that it includes.

    CuPy knows a program that it compiled before by its text alone: a header that an update of this
    package changes must be part of it.
    """
    found: set[str] = set()

    def lines(name: str) -> Iterator[str]:
        found.add(name)
        yield f'#line 1 "{name}"'
        text = cuda_header() if name == CONSTANTS else (KERNELS / name).read_text("utf-8")
        for number, line in enumerate(text.splitlines(), 1):
            header = re.match(r'#include "(.+)"', line)
            if header is None:
                yield "" if line == "#pragma once" else line
            elif header[1] not in found:
                yield from lines(header[1])
                yield f'#line {number + 1} "{name}"'

    return "\n".join(lines(name)) + "\n"


def all_kernels() -> dict[str, list[str]]:
    """List the kernels of each source file, for the compile check."""
    return (
        {"profile/mk.cu": ["bound", "measure"]}
        | all_dtw_kernels()
        | all_join_kernels()
        | all_rotation_kernels()
        | all_search_kernels()
        | all_shape_kernels()
        | all_shapelet_kernels()
    )
