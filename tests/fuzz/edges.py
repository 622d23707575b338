"""Sizes at which the engines cut lines of points: read from their sources, and made small.

Lines that are longer than a block are slow to judge. So there are two ways to meet the edges of
blocks: some lines are as long as one (`near_edge`), and some second runs have blocks of a few
windows (`small_blocks`).
"""

from __future__ import annotations

import ast
import contextlib
import functools
import importlib
import itertools
import re
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType
from unittest import mock

import numpy as np

import skts.engines

__all__ = ["SMALL", "near_edge", "sizes_in", "sizes_of", "small_blocks"]

FOLDER = Path(skts.engines.__file__).parent
#: Families whose reductions cut lines, and the part of each that is not compiled: any size of a
#: block there is as good as another.
FAMILIES = ("profile", "search")
ON_THE_HOST = (*(f"families/{family}" for family in FAMILIES), "numba/search/tiles.py")
#: Constants from here on are sizes of what goes together, where they are on the host.
BLOCK = 512
#: Windows of a block that was made small.
SMALL = (8, 16, 37, 100)
_CONSTEXPR = re.compile(r"constexpr int \w+ = (\d+)[,;]")


def _whole(node: ast.AST | None) -> Iterator[int]:
    """Whole numbers that an expression has: itself, or those of a tuple or dictionary."""
    parts = getattr(node, "elts", None) or getattr(node, "values", None)
    if isinstance(node, ast.Tuple | ast.List | ast.Dict) and parts:
        for part in parts:
            yield from _whole(part)
    elif isinstance(node, ast.BinOp | ast.Constant):
        text = ast.unparse(node)
        if re.fullmatch(r"[\d_]+( ?\*{1,2} ?[\d_]+)?", text):
            yield int(eval(text))  # digits and a product or power of them


def sizes_of(source: str) -> set[int]:
    """Numbers that a Python module names in capitals, and those that its cells measure."""
    found: set[int] = set()
    tree = ast.parse(source)
    for node in ast.walk(tree):
        if isinstance(node, ast.FunctionDef) and node.name == "cell":
            ends = [one.value for one in ast.walk(node) if isinstance(one, ast.Return)]
            found |= {size for end in ends for size in _whole(end)}
    for node in tree.body:
        if isinstance(node, ast.Assign | ast.AnnAssign):
            targets = node.targets if isinstance(node, ast.Assign) else [node.target]
            names = [one.id for target in targets for one in ast.walk(target) if hasattr(one, "id")]
            if all(name.isupper() for name in names):
                found |= set(_whole(node.value))
    return found


@functools.cache
def _all_sizes() -> tuple[int, ...]:
    """Sizes in the sources of the families that cut lines, on all engines."""
    found = sizes_of((FOLDER / "core" / "constants.py").read_text())
    for part, family in itertools.product(("families", "numba", "cupy"), FAMILIES):
        for file in (FOLDER / part / family).iterdir():
            if file.suffix == ".py":
                found |= sizes_of(file.read_text())
            elif file.suffix in (".cu", ".cuh"):
                found |= set(map(int, _CONSTEXPR.findall(file.read_text())))
    return tuple(sorted(found))


def sizes_in(least: int, most: int) -> list[int]:
    """Sizes of blocks, tiles, strips and lanes within limits."""
    return [size for size in _all_sizes() if least <= size <= most]


def near_edge(rng: np.random.Generator, least: int, most: int) -> int:
    """A number of windows just below, at, or just above a size; between the limits, if one is."""
    sizes = sizes_in(least, most)
    size = int(rng.choice(sizes)) if sizes else most
    return min(most, max(least, size + int(rng.integers(-1, 3))))


@functools.cache
def _modules() -> tuple[ModuleType, ...]:
    """Modules of what is cut into blocks on the host."""
    root = f"{skts.engines.__name__}."
    files = [
        file
        for name in ON_THE_HOST
        for file in sorted((FOLDER / name).glob("*.py") if "." not in name else [FOLDER / name])
    ]
    names = [file.relative_to(FOLDER).with_suffix("").parts for file in files]
    return tuple(importlib.import_module(root + ".".join(n)) for n in names if n[-1] != "__init__")


@contextlib.contextmanager
def small_blocks(size: int) -> Iterator[None]:
    """Run with blocks of so many windows, wherever the host cuts lines: no answer may change."""
    with contextlib.ExitStack() as stack:
        for module in _modules():
            for name, value in vars(module).items():
                if name.isupper() and type(value) is int and value >= BLOCK:
                    stack.enter_context(mock.patch.object(module, name, size))
            for one in vars(module).values():
                if isinstance(one, type) and one.__module__ == module.__name__:
                    cell = vars(one).get("cell")
                    if isinstance(cell, property):
                        stack.enter_context(mock.patch.object(one, "cell", _smaller(cell, size)))
        yield


def _smaller(cell: property, size: int) -> property:
    """A cell of a grid that is no larger than a block."""
    return property(lambda self: tuple(min(side, size) for side in cell.fget(self)))
