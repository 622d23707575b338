"""Commands that the documentation tells a newcomer to type work."""

from __future__ import annotations

import re
import textwrap
from pathlib import Path

import numpy as np
import pytest

import skts

matplotlib = pytest.importorskip("matplotlib")
matplotlib.use("Agg")

DOCS = Path(__file__).parents[1] / "docs"


def python_blocks(page):
    text = (DOCS / page).read_text(encoding="utf-8")
    found = re.findall(r"^\.\. code-block:: python\n\n((?:   .*\n|\n)+)", text, re.MULTILINE)
    return [textwrap.dedent(block) for block in found]


@pytest.mark.parametrize(
    "page", ["index.rst", "getting_started.rst", "install.rst", "user_guide/plots.rst"]
)
def test_the_page_runs(page, tmp_path, monkeypatch, capsys):
    import matplotlib.pyplot as plt

    (tmp_path / "recordings").mkdir()
    for name in "ab":
        np.savetxt(tmp_path / "recordings" / f"{name}.csv", np.arange(9.0), delimiter=",")
    monkeypatch.chdir(tmp_path)
    blocks = python_blocks(page)
    assert blocks
    namespace = {}
    for block in blocks:
        exec(block, namespace)
    plt.close("all")
    if page == "getting_started.rst":
        assert len(namespace["X"]) == 2
        assert namespace["model"].score(namespace["X_test"], namespace["y_test"]) > 0.9
        assert "accuracy 0.9" in capsys.readouterr().out


def test_the_citation_names_this_version():
    text = (DOCS.parent / "CITATION.cff").read_text()
    assert f"\nversion: {skts.__version__}\n" in text


def test_engine_names_in_errors_of_the_install_page_are_those_of_the_code():
    """The messages that the page explains are those that the code raises."""
    package = DOCS.parent / "skts"
    source = "".join(path.read_text() for path in package.rglob("*.py"))
    source = re.sub(r'"\s*f?"', "", source)  # strings that go over several lines
    page = " ".join((DOCS / "install.rst").read_text().split())
    for words in (
        "needs an NVIDIA GPU and its driver; CuPy found none",
        "needs a GPU of compute capability 7.5 or more",
        "this process was forked from one that used the GPU",
        "The smallest part of this work needs",
    ):
        assert words in page and words in source, words
