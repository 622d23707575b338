"""The CUDA programs of this engine: sources, options, and which kernels there are.

Imports nothing of CUDA, so that `compile` checks every kernel on a machine without a GPU.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from importlib import import_module
from importlib.resources import files
from pkgutil import walk_packages

from ..core.constants import cuda_header

__all__ = ["KERNELS", "OPTIONS", "add_text", "all_kernels", "program_of", "source"]

#: Folder of the sources, which are named from here: ``elastic/dtw.cu``.
KERNELS = files(__package__)
#: Header that is no file: it is made from the constants that Python reads.
CONSTANTS = "include/constants.cuh"
#: Compiler options of every program. No fast-math: infinities are used. (CuPy adds one by which
#: subnormal numbers of float32 become 0, see "subnormal numbers" in docs/developer/numerics.rst.)
#: NVRTC 13.0 takes generic lambdas in templates for host code unless the device is the default.
OPTIONS = ("-std=c++17", "-default-device")
#: Files whose plain kernels are programs, each by itself: small work uses one or two of them.
APART = frozenset({"kshape/labels.cu", "shapelets/matches.cu", "shapelets/order_lines.cu"})
#: A kernel that is no template.
_PLAIN = re.compile(
    r'^extern "C" (?=__global__ void (?:__launch_bounds__\([^()]*\) )?(\w+)\()', re.MULTILINE
)
#: Classes that are no part of a source file, by their names.
_texts: dict[str, str] = {}


def add_text(name: str, text: str) -> None:
    """Have the programs of instances that name a class hold its text.

    Parameters
    ----------
    name : str
        Name of the class, an identifier that no source has.
    text : str
        Its definition, to come after all of a source file.
    """
    _texts[name] = text


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


def program_of(file: str, name: str) -> tuple[str, tuple[str, ...]]:
    """Return the text of the program that holds a kernel, and its instances of templates.

    An instance of a template is a program of its own: the plain kernels of its file become
    templates, of which nobody asks for an instance, or the compiler would make them once more. The
    plain kernels of a file are one program, since what uses one of them uses most, but for those
    that are `APART`.

    Parameters
    ----------
    file : str
        Source file, with the folder of its family: ``"elastic/dtw.cu"``.
    name : str
        Name of the kernel in C++, that of an instance with its arguments: ``"dtw<float, ...>"``.
    """
    if "<" not in name and file not in APART:
        return source(file), ()
    text = _PLAIN.sub(
        lambda plain: plain[0] if plain[1] == name else "template <int = 0> ", source(file)
    )
    if "<" not in name:
        return text, ()
    more = [_texts[word] for word in sorted(set(re.findall(r"\w+", name)) & _texts.keys())]
    return text + "".join(more), (name,)


def all_kernels() -> dict[str, list[str]]:
    """List the kernels of each source file, for the compile check.

    Each module ``programs`` of a family lists its own in a function ``kernels``, and is found by
    its name; so is one of a part of a family, such as ``rotation_programs``.
    """
    found: dict[str, list[str]] = {}
    for module in walk_packages([str(KERNELS)], f"{__package__}."):
        if module.name.rpartition(".")[2].endswith("programs") and module.name != __name__:
            list_kernels = getattr(import_module(module.name), "kernels", None)
            found |= {} if list_kernels is None else list_kernels()
    return found
