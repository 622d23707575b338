"""Parameters of the CUDA kernels, as their sources declare them. Imports nothing of CUDA."""

from __future__ import annotations

import re
from functools import cache
from typing import NamedTuple

from .programs import source

__all__ = ["Parameter", "members_of", "parameters_of", "signatures"]

_KERNEL = re.compile(r"(?:template\s*<(?P<template>[^;{}]*?)>\s*)?(?:extern \"C\"\s+)?__global__\s")
_COMMENT = re.compile(r"//[^\n]*|/\*.*?\*/", re.DOTALL)
_UNSAID = re.compile(r"\b(?:const|__restrict__|__grid_constant__)\b")


class Parameter(NamedTuple):
    """A parameter of a kernel, or a member of a structure that is one.

    Attributes
    ----------
    name : str
        Its name.
    type : str
        Its type in C++, or that of what it points to: ``"long long"``.
    pointer : bool
        Whether it is a pointer.
    """

    name: str
    type: str
    pointer: bool


class Signature(NamedTuple):
    """The parameters of a kernel, and the names of its template's.

    Attributes
    ----------
    template : tuple of str
        Names of the parameters of the template; empty if the kernel is none.
    parameters : tuple of Parameter
        Parameters of the kernel, whose types may be parameters of the template.
    """

    template: tuple[str, ...]
    parameters: tuple[Parameter, ...]


@cache
def signatures(file: str) -> dict[str, Signature]:
    """Read the parameters of all kernels of a source file, by name.

    Raises
    ------
    ValueError
        If a kernel cannot be read.
    """
    text = _COMMENT.sub(" ", source(file))
    found = {}
    for start in _KERNEL.finditer(text):
        head = re.compile(r"void\s+(?:__launch_bounds__\s*(?=\())?").match(text, start.end())
        if head is None:
            raise ValueError(f"{file} has a kernel that returns no void.")
        at = head.end()
        if text[at] == "(":
            at = _closing(text, at) + 1
        name = re.compile(r"\s*(\w+)\s*(?=\()").match(text, at)
        if name is None:
            raise ValueError(f"{file} has a kernel without a name.")
        inside = text[name.end() + 1 : _closing(text, name.end())]
        template = tuple(
            part.split("=")[0].split()[-1].lstrip(".") for part in _parts(start["template"] or "")
        )
        found[name[1]] = Signature(template, tuple(_parameter(part) for part in _parts(inside)))
    return found


@cache
def parameters_of(file: str, name: str) -> tuple[Parameter, ...]:
    """Read the parameters of a kernel, with the types that an instance of a template has.

    Parameters
    ----------
    file : str
        Source file: ``"elastic/dtw.cu"``.
    name : str
        Name of the kernel, or of an instance: ``"dtw<float, ...>"``.

    Raises
    ------
    KeyError
        If the file has no such kernel.
    """
    plain, _, arguments = name.partition("<")
    signature = signatures(file)[plain]
    types = dict(zip(signature.template, _parts(arguments.removesuffix(">")), strict=False))
    return tuple(p._replace(type=types.get(p.type, p.type)) for p in signature.parameters)


@cache
def members_of(file: str, name: str) -> tuple[Parameter, ...]:
    """Read the members of a structure that has nothing but numbers and pointers.

    Parameters
    ----------
    file : str
        Source file: ``"elastic/dtw.cu"``.
    name : str
        Name of the structure.

    Returns
    -------
    tuple of Parameter
        The members in their order; empty if there is no such structure.
    """
    text = _COMMENT.sub(" ", source(file))
    found = re.search(rf"\bstruct\s+{re.escape(name)}\s*\{{([^{{}}()]*)\}}\s*;", text)
    members = []
    for declaration in (found[1] if found else "").split(";"):
        first, *others = _parts(declaration) or [""]
        if first:
            members.append(_parameter(first))
            members += [_parameter(f"{members[-1].type} {other}") for other in others]
    return tuple(members)


def _parameter(text: str) -> Parameter:
    """Read a parameter, ``const float* __restrict__ x``."""
    words = _UNSAID.sub(" ", text).replace("*", " * ").split()
    *type, name = words
    pointer = "*" in type
    if not type or not name.isidentifier() or type.count("*") > 1:
        raise ValueError(f"{' '.join(words)!r} is no parameter of a kernel.")
    return Parameter(name, " ".join(word for word in type if word != "*"), pointer)


def _closing(text: str, opening: int) -> int:
    """Where the parenthesis closes that opens there."""
    depth = 0
    for match in re.compile(r"[()]").finditer(text, opening):
        depth += 1 if match[0] == "(" else -1
        if depth == 0:
            return match.start()
    raise ValueError("A parenthesis is never closed.")


def _parts(text: str) -> list[str]:
    """Split at commas that no bracket encloses."""
    parts, depth = [""], 0
    for letter in text:
        depth += (letter in "(<") - (letter in ")>")
        if letter == "," and depth == 0:
            parts.append("")
        else:
            parts[-1] += letter
    return [part.strip() for part in parts if part.strip()]
