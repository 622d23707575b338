"""Results of several arrays in a line, and as a table in notebooks."""

from __future__ import annotations

from html.parser import HTMLParser

import numpy as np
import pytest

import skts
from skts.motifs import (
    consensus_motif,
    discords,
    matrix_profile,
    motif_chains,
    motifs,
    pan_matrix_profile,
)
from skts.motifs import segment as find_regimes
from skts.neighbors import dtw_window_search
from skts.tree import Shapelet, ShapeletTree

X = np.random.default_rng(1).normal(size=(8, 40)).cumsum(axis=1)


def results():
    """Every kind of result that holds arrays, by name."""
    (motif,) = motifs(X[0], window=6, n_motifs=1, engine="oracle")
    (discord,) = discords(X[0], window=6, n_discords=1, engine="oracle")
    profile = matrix_profile(X[0], window=6, sides=True, engine="oracle")
    pan = pan_matrix_profile(X[0], windows=[6, 9], engine="oracle")
    ragged = skts.MotifFinder(6, left_right=True, engine="oracle").fit(X[:2]).left_profile_
    search = dtw_window_search(X[:4, :9], [0, 1, 0, 1], windows=[0.1], engine="oracle")
    shapelet = Shapelet(X[0, :9], 0, 0, 9, 0, 0.5, 0.25, 0.125, "<b>", 0)
    size, parent = 45, np.arange(45, dtype=np.int64)
    tree = ShapeletTree(*[np.where(parent < 22, parent, -1)] * 8, np.full((size, 2), 0.5))
    chain = motif_chains(X[0], window=6, engine="oracle")[0]
    consensus = consensus_motif(X[:2, :20], window=6, engine="oracle")
    regimes = find_regimes(X[0], window=6, engine="oracle")
    found = (chain, consensus, regimes)
    found += (motif, discord, profile, pan, pan.motif, ragged, search, shapelet, tree)
    return {type(one).__name__: one for one in found}


@pytest.fixture(scope="module")
def found():
    return results()


class Table(HTMLParser):
    """Tags that are open, and cells of each row."""

    def __init__(self, text):
        super().__init__()
        self.open, self.rows = [], []
        self.feed(text)
        assert self.open == []

    def handle_starttag(self, tag, attrs):
        self.open.append(tag)
        if tag == "tr":
            self.rows.append([])

    def handle_endtag(self, tag):
        assert self.open.pop() == tag

    def handle_data(self, data):
        if self.open[-1] != "caption":
            self.rows[-1].append(data)


def test_short_texts(found):
    for name, one in found.items():
        text = repr(one)
        assert text.startswith(f"{name}(") and text == str(one)
        assert "\n" not in text and len(text) < 320
        assert repr([one, one]) == f"[{text}, {text}]"


def test_arrays_are_shown_by_their_first_values_or_their_shape(found):
    assert repr(found["Shapelet"]._replace(values=np.arange(9.0))) == (
        "Shapelet(values=[0, 1, 2, 3, ... 9 in all], series=0, start=0, length=9, channel=0, "
        "threshold=0.5, gain=0.25, gap=0.125, logic='<b>', node=0)"
    )
    assert repr(found["WindowSearch"]._replace(errors=np.array([0.12345678]))) == (
        "WindowSearch(windows=[1], errors=[0.1235], best=0.1, fractions=[0.1])"
    )
    assert "values=<" in repr(found["Motif"])
    assert "left=<MatrixProfile>, right=<MatrixProfile>" in repr(found["MatrixProfile"])
    assert repr(found["ShapeletTree"]) == "ShapeletTree(n_nodes=45, n_leaves=23, n_classes=2)"


def test_tables(found):
    for name, one in found.items():
        text = one._repr_html_()
        assert text.startswith(f"<table><caption>{name}") and "<b>" not in text
        rows = Table(text).rows
        if name != "ShapeletTree":
            assert [row[0] for row in rows] == list(one._fields)
            assert all(len(row) == 2 for row in rows)
    rows = Table(found["ShapeletTree"]._repr_html_()).rows
    assert rows[0] == ["node", *ShapeletTree._fields]
    assert [row[0] for row in rows[1:]] == [str(node) for node in range(20)]
    assert rows[1][-1] == "[0.5, 0.5]"
    assert ["logic", "<b>"] in Table(found["Shapelet"]._repr_html_()).rows


def test_they_are_still_tuples(found):
    motif = found["Motif"]
    assert motif[0] == motif.window == 6
    assert type(motif._replace(window=7)) is type(motif)
