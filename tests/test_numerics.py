"""Error bounds that the code cites are derived in the developer guide, and all there are cited."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
PAGE = ROOT / "docs" / "developer" / "numerics.rst"
PLACE = "docs/developer/numerics.rst"
SOURCES = sorted(
    path for kind in ("py", "cu", "cuh") for path in (ROOT / "skts").rglob(f"*.{kind}")
)


def derived():
    """Headings of sections that derive a bound."""
    return re.findall(r"^(\S.*)\n~+$", PAGE.read_text(encoding="utf-8"), re.MULTILINE)


def cited(path):
    """Names in the citations of a source file."""
    # a citation may go over two lines of a comment
    text = re.sub(r"\s+(?:#:?|//)?\s*", " ", path.read_text(encoding="utf-8"))
    found = re.findall(rf'see "([^"]+)" in {re.escape(PLACE)}', text)
    assert text.count(PLACE) == len(found), f'{path}: write see "NAME" in {PLACE}'
    return set(found)


def test_names_of_bounds_are_unique():
    names = derived()
    assert len(names) > 20
    assert len(set(names)) == len(names)


def test_every_bound_is_cited_where_it_is_used():
    everywhere = set().union(*map(cited, SOURCES))
    assert sorted(everywhere) == sorted(derived())


@pytest.mark.parametrize("claim", ["*Claim.*", "*Derivation.*"])
def test_every_section_says_what_it_claims_and_why(claim):
    sections = re.split(r"^\S.*\n[-~]+$", PAGE.read_text(encoding="utf-8"), flags=re.MULTILINE)
    headings = re.findall(r"^(\S.*)\n([-~])+$", PAGE.read_text(encoding="utf-8"), re.MULTILINE)
    for (name, underline), section in zip(headings, sections[1:], strict=True):
        assert (claim in section) == (underline == "~"), name
