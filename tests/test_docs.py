"""The code of every page runs as printed, prints what stands below it, and names what exists."""

from __future__ import annotations

import ast
import importlib.util
import os
import re
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest

from tests import pages

matplotlib = pytest.importorskip("matplotlib")
matplotlib.use("Agg")

ROOT = Path(__file__).parents[1]
DOCS = ROOT / "docs"
PYPROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text())
BLOCKS = {page: pages.blocks(page) for page in [*pages.pages(), "CONTRIBUTING.md"]}


def of_language(*languages):
    """Blocks in these languages, each with its page, line and code."""
    return [
        pytest.param(block, id=f"{page}:{block.line}")
        for page, blocks in BLOCKS.items()
        for block in blocks
        if block.language in languages
    ]


@pytest.mark.parametrize(
    "page", [p for p in BLOCKS if any(b.language == "python" for b in BLOCKS[p])]
)
def test_the_page_runs(page, tmp_path, monkeypatch):
    pages.make_files(tmp_path)
    monkeypatch.chdir(tmp_path)
    for block, shown, printed, _ in pages.run(page):
        where = f"{page}, line {block.line}; `make outputs` writes what is printed into the page"
        assert not printed or shown is not None, where
        assert pages.same(shown, printed), f"{where}:\n{printed}"


def test_blocks_that_need_something_are_few():
    marked = [block for blocks in BLOCKS.values() for block in blocks if block.needs]
    assert {block.needs for block in marked} <= {"cluster", "gpus", "imblearn", "network"}
    assert len(marked) <= 5
    for block in marked:  # they are Python, and import what exists
        for node in ast.walk(ast.parse(block.code)):
            if isinstance(node, ast.ImportFrom) and node.module.startswith("skts"):
                module = importlib.import_module(node.module)
                assert all(hasattr(module, name.name) for name in node.names)


@pytest.mark.parametrize("block", of_language("toml"))
def test_toml_can_be_read(block):
    assert tomllib.loads(block.code)


@pytest.mark.parametrize("block", of_language("bash"))
def test_commands_name_what_exists(block):
    """Targets of make, modules and files of Python, extras of pip: the commands are not run."""
    makefile = (ROOT / "Makefile").read_text()
    for target in re.findall(r"^make (\w+)", block.code, re.MULTILINE):
        assert re.search(rf"^{target}:", makefile, re.MULTILINE), target
    for module in re.findall(r"python -m ([\w.]+)", block.code):
        there = module in (*sys.modules, "venv")
        assert there or importlib.util.find_spec(module) is not None, module
    for path in re.findall(r"python (\w[\w/]*\.py)", block.code):
        assert (ROOT / path).exists(), path
    for extras in re.findall(r"(?:skts|\.)\[([\w,]+)\]", block.code):
        assert set(extras.split(",")) <= set(PYPROJECT["project"]["optional-dependencies"])


def test_text_blocks_are_outputs():
    """Nothing that looks like code hides in a block of a language that no test here reads."""
    known = {"python", "output", "bash", "toml"}
    assert {block.language for blocks in BLOCKS.values() for block in blocks} <= known


def test_a_wrong_output_is_noticed(tmp_path, monkeypatch):
    monkeypatch.setattr(pages, "ROOT", tmp_path)
    page = ".. code-block:: python\n\n   print(1 + 1)\n   print(object())\n\n"
    page += ".. code-block:: none\n   :class: output\n\n   3\n   <...>\n\nWords.\n"
    (tmp_path / "page.rst").write_text(page)
    ((_, shown, printed, _),) = pages.run("page.rst")
    assert shown.code == "3\n<...>\n" and not pages.same(shown, printed)
    pages.write("page.rst", [(shown, "2\n<...>\n")])
    assert (tmp_path / "page.rst").read_text() == page.replace("   3\n", "   2\n")
    ((_, shown, printed, _),) = pages.run("page.rst")
    assert pages.same(shown, printed)
    (tmp_path / "page.md").write_text("```python\nprint(1)\n```\n\n```text\n2\n```\n")
    ((_, shown, printed, _),) = pages.run("page.md")
    pages.write("page.md", [(shown, printed)])
    assert (tmp_path / "page.md").read_text() == "```python\nprint(1)\n```\n\n```text\n1\n```\n"


@pytest.mark.slow
def test_five_minutes_take_less_than_one_from_an_empty_cache():
    """CPU seconds, imports included: a machine that others use measures the same."""
    command = [sys.executable, "-m", "tests.pages", "--cold", "docs/getting_started.rst"]
    environment = {k: v for k, v in os.environ.items() if k != "NUMBA_CACHE_DIR"}
    done = subprocess.run(
        command, cwd=ROOT, env=environment, capture_output=True, text=True, timeout=280
    )
    assert done.returncode == 0, done.stdout + done.stderr
    print(done.stdout)
    assert float(done.stdout.splitlines()[-1].split()[0]) < 60


# --- names and addresses ------------------------------------------------------------------------


def test_engine_names_in_errors_of_the_install_page_are_those_of_the_code():
    """The messages that the page explains are those that the code raises."""
    source = "".join(path.read_text() for path in (ROOT / "skts").rglob("*.py"))
    source = re.sub(r'"\s*f?"', "", source)  # strings that go over several lines
    page = " ".join((DOCS / "install.rst").read_text().split())
    for words in (
        "needs an NVIDIA GPU and its driver; CuPy found none",
        "needs a GPU of compute capability 7.5 or more",
        "this process was forked from one that used the GPU",
        "The smallest part of this work needs",
    ):
        assert words in page and words in source, words


def test_inventories_name_what_exists():
    """docs/inventories: names of other packages, and the pages of theirs that describe them."""
    for path in sorted((DOCS / "inventories").glob("*.inv")):
        for line in path.read_text().splitlines()[3:]:
            name, kind, _ = line.split()
            module, _, last = name.rpartition(".")
            if kind == "mod":
                assert importlib.util.find_spec(name)
            else:
                assert hasattr(importlib.import_module(module), last), name
