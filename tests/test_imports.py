"""Importing is light, imports point downwards, and everything public is documented."""

from __future__ import annotations

import ast
import importlib
import inspect
import subprocess
import sys
from pathlib import Path

import pytest

import skts

PACKAGE = Path(skts.__file__).parent
PUBLIC = ["skts", "skts.datasets", "skts.engines", "skts.metrics", "skts.neighbors", "skts.utils"]


def test_import_loads_no_kernel_library():
    code = (
        "import sys, sklearn.neighbors; before = set(sys.modules); import skts, skts.datasets; "
        "print([m for m in ('numba', 'cupy', 'matplotlib', 'llvmlite') "
        "if m in set(sys.modules) - before])"
    )
    result = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True
    )
    assert result.stdout.strip() == "[]"


def imported(path):
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.Import):
            yield from (name.name for name in node.names)
        elif isinstance(node, ast.ImportFrom) and node.level == 0:
            yield node.module


@pytest.mark.parametrize(
    "path",
    [
        path
        for path in PACKAGE.rglob("*.py")
        if not {"numba", "cupy"} & set(path.relative_to(PACKAGE).parts)
    ],
    ids=lambda path: str(path.relative_to(PACKAGE)),
)
def test_kernel_libraries_stay_in_their_engines(path):
    assert not [name for name in imported(path) if name.split(".")[0] in {"numba", "cupy"}]


def test_engines_know_nothing_of_estimators():
    for path in (PACKAGE / "engines").rglob("*.py"):
        for node in ast.walk(ast.parse(path.read_text())):
            if isinstance(node, ast.ImportFrom) and node.module:
                assert not {"neighbors", "metrics", "base"} & set(node.module.split(".")), path


@pytest.mark.parametrize("module", PUBLIC)
def test_public_names_exist_with_docstring_and_types(module):
    module = importlib.import_module(module)
    assert module.__doc__
    for name in module.__all__:
        thing = getattr(module, name)
        assert inspect.getdoc(thing), name
        if inspect.isfunction(thing):
            hints = inspect.signature(thing)
            untyped = [p for p in hints.parameters.values() if p.annotation is p.empty]
            assert not untyped, (name, untyped)
            assert hints.return_annotation is not hints.empty, name
