"""The code of the documentation: found on its pages, run, its output compared or written anew.

A page is run from top to bottom in one namespace, as a reader would do it. Its blocks are
``.. code-block:: python`` and ``.. plot::``, or in Markdown fences of ``python``. Below a block
that prints stands its output: ``.. code-block:: none`` with ``:class: output``, or a fence of
``text``. There ``...`` stands for anything, as in a doctest. A block with ``:class: needs-NAME``
runs only where that is at hand (`at_hand`).

    python -m tests.pages                         # run all pages, name differences
    python -m tests.pages --write                 # write outputs that differ into the pages
    python -m tests.pages --cold PAGE             # from an empty cache; CPU time of each block
"""

from __future__ import annotations

import argparse
import contextlib
import doctest
import importlib.util
import io
import logging
import os
import re
import sys
import tempfile
import textwrap
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).parents[1]
PAGES = ["README.md", *sorted(p.relative_to(ROOT).as_posix() for p in ROOT.glob("docs/**/*.rst"))]
#: Made by Sphinx.
_GENERATED = re.compile(r"docs/(_build|auto_examples|api/generated|sg_execution)")

_DIRECTIVE = re.compile(
    r"^(?P<indent> *)\.\. (?P<kind>plot::|code-block:: *(?P<language>\w+)) *\n"
    r"(?P<options>(?:(?P=indent)   :.*\n)*)"
    r"(?P<body>(?:(?P=indent)   .*\n| *\n)*(?:(?P=indent)   .*(?:\n|\Z)))",
    re.MULTILINE,
)
_FENCE = re.compile(r"^```(?P<language>\w+) *\n(?P<body>.*?)^``` *$", re.MULTILINE | re.DOTALL)


@dataclass(frozen=True)
class Block:
    """A block of code or of output, and where it stands."""

    language: str  #: "python" for plots, too; "output" for what the block before prints
    code: str
    needs: str | None
    line: int
    span: tuple[int, int]  #: of the lines of code in the text of the page
    indent: str


def pages() -> list[str]:
    """All pages that are written by hand, by their paths in the repository."""
    return [page for page in PAGES if not _GENERATED.match(page)]


def blocks(page: str) -> list[Block]:
    """All blocks of a page in their order."""
    text = (ROOT / page).read_text(encoding="utf-8")
    found = []
    for match in (_FENCE if page.endswith(".md") else _DIRECTIVE).finditer(text):
        parts = match.groupdict()
        options = parts.get("options") or ""
        language = parts["language"] or "python"
        if language == "text" or (language == "none" and ":class: output" in options):
            language = "output"
        needs = re.search(r":class:.*\bneeds-(\w+)", options)
        begin, end = match.span("body")
        code = textwrap.dedent(text[begin:end]).strip("\n") + "\n"
        line = text.count("\n", 0, begin) + len(re.match(r"\n*", text[begin:end])[0])
        indent = "" if page.endswith(".md") else parts["indent"] + "   "
        found.append(Block(language, code, needs and needs[1], line, (begin, end), indent))
    return found


def at_hand(needs: str | None) -> bool:
    """Whether what a block needs is there: a GPU, or a package; never a cluster."""
    if needs == "gpu":
        from skts.engines import find_engine

        return find_engine("cupy").available() is None
    return needs is None or (needs != "cluster" and importlib.util.find_spec(needs) is not None)


def run(page: str) -> Iterator[tuple[Block, Block | None, str, float]]:
    """Run a page; yield each block, the output below it, what it printed, and its CPU time."""
    import matplotlib.pyplot as plt

    import skts

    namespace = {"__name__": "__main__"}
    every = blocks(page)
    logger = logging.getLogger("skts")
    level = logger.level
    try:
        with skts.config_context():
            for block, following in zip(every, [*every[1:], None], strict=False):
                if block.language != "python" or not at_hand(block.needs):
                    continue
                printed, start = io.StringIO(), time.process_time()
                program = compile("\n" * block.line + block.code, page, "exec")
                with contextlib.redirect_stdout(printed):
                    exec(program, namespace)
                seconds = time.process_time() - start
                shown = following if following and following.language == "output" else None
                yield block, shown, printed.getvalue(), seconds
    finally:
        plt.close("all")
        logger.setLevel(level)


def same(shown: Block | None, printed: str) -> bool:
    """Whether what stands on the page is what was printed; ``...`` stands for anything."""
    wanted = "\n" if shown is None else shown.code
    printed = printed.strip("\n") + "\n"
    return doctest.OutputChecker().check_output(wanted, printed, doctest.ELLIPSIS)


def make_files(folder: Path) -> None:
    """The files that pages read: what is in them does not matter."""
    import numpy as np

    from skts.datasets import load_gunpoint

    (folder / "recordings").mkdir()
    for name in "ab":
        np.savetxt(folder / "recordings" / f"{name}.csv", np.arange(9.0), delimiter=",")
    archive = folder / "UCRArchive_2018" / "GunPoint"
    archive.mkdir(parents=True)
    for split in ("train", "test"):
        X, y = load_gunpoint(split=split, return_X_y=True)
        rows = np.column_stack([y.astype(float), X])[:6]
        np.savetxt(archive / f"GunPoint_{split.upper()}.tsv", rows, delimiter="\t")
    lines = [",".join(map(str, row[1:])) + f":{row[0]:.0f}" for row in rows]
    head = ["@problemName GunPoint", "@univariate true", "@classLabel true 1 2", "@data"]
    (folder / "GunPoint_TRAIN.ts").write_text("\n".join([*head, *lines]) + "\n")
    (folder / "wide.csv").write_text("label,t0,t1\n1,0.5,0.6\n2,0.7,0.8\n")
    (folder / "long.csv").write_text("series,time,value\na,1,0.5\na,0,0.4\nb,0,0.3\n")
    np.sin(np.arange(2_000) / 9).tofile(folder / "recording.f64")


def write(page: str, changed: list[tuple[Block, str]]) -> None:
    """Put what was printed into the page, from the end to the beginning."""
    text = (ROOT / page).read_text(encoding="utf-8")
    for block, printed in sorted(changed, key=lambda item: item[0].span, reverse=True):
        begin, end = block.span
        new = textwrap.indent(printed.strip("\n") + "\n", block.indent)
        text = text[:begin] + ("" if page.endswith(".md") else "\n") + new + text[end:]
    (ROOT / page).write_text(text, encoding="utf-8")


def main() -> int:
    """Run pages; returns the number of blocks whose output differs from the page and stays so."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawTextHelpFormatter
    )
    parser.add_argument("pages", nargs="*", default=pages(), metavar="PAGE", help="by default all")
    parser.add_argument("--write", action="store_true", help="write outputs into the pages")
    parser.add_argument("--cold", action="store_true", help="start with an empty cache of Numba")
    options = parser.parse_args()
    differ, here = 0, Path.cwd()
    with tempfile.TemporaryDirectory() as folder:
        if options.cold:
            os.environ["NUMBA_CACHE_DIR"] = f"{folder}/numba"
        import matplotlib

        matplotlib.use("Agg")
        make_files(Path(folder))
        for page in options.pages:
            page = (here / page).resolve().relative_to(ROOT).as_posix() if here != ROOT else page
            changed = []
            os.chdir(folder)
            for block, shown, printed, seconds in run(page):
                if options.cold:
                    print(f"{seconds:6.1f} s  {page}:{block.line + 1}", flush=True)
                if same(shown, printed):
                    continue
                print(f"{page}:{block.line + 1} prints\n{textwrap.indent(printed, '  | ')}")
                if shown is None:
                    print("  and no output stands below it")
                if shown is None or not options.write:
                    differ += 1
                else:
                    changed.append((shown, printed))
            os.chdir(here)
            if changed:
                write(page, changed)
    if options.cold:
        print(f"{time.process_time():6.1f} s  in all, imports included")
    return differ


if __name__ == "__main__":
    sys.exit(min(main(), 1))
