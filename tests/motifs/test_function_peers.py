"""Stored answers of stumpy to smaller questions (see ``tests/data/peers/README.md``)."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal

from skts.motifs import consensus_motif, distance_profile, motif_chains, mpdist, segment

with np.load(Path(__file__).parents[1] / "data" / "peers" / "functions.npz") as stored:
    STORED = dict(stored)
PARTS = [tuple(key.split(".")) for key in STORED if "." in key]


def test_distance_profile(fast_engine):
    found = distance_profile(STORED["other"][40:70], STORED["walk"], engine=fast_engine)
    assert_allclose(found, STORED["distances"], rtol=1e-6)


@pytest.mark.parametrize("parts", [parts for parts in PARTS if parts[0] == "mpdist"])
def test_mpdist(fast_engine, parts):
    """stumpy counts from 0: its k-th smallest distance is the one that follows ours."""
    _, one, other, k = parts
    a, b = STORED[one], STORED[other]
    rank = int(np.ceil(0.05 * (a.size + b.size))) if k == "usual" else int(k)
    found = mpdist(a, b, window=20, k=rank + 1, engine=fast_engine)
    assert found == pytest.approx(float(STORED[".".join(parts)]), rel=1e-6, abs=1e-6)
    if k == "usual":
        assert mpdist(a, b, window=20, engine=fast_engine) <= found


@pytest.mark.parametrize("name", ["walk", "drifting", "holes"])
def test_chains(fast_engine, name):
    found = motif_chains(STORED[name], window=20, engine=fast_engine)
    assert [one.positions.size for one in found] == STORED[f"chainsizes.{name}"].tolist()
    assert_array_equal(np.concatenate([one.positions for one in found]), STORED[f"chains.{name}"])


@pytest.mark.parametrize("parts", [parts for parts in PARTS if parts[0] == "anchored"])
def test_anchored_chains(fast_engine, parts):
    _, name, anchor = parts
    found = motif_chains(STORED[name], window=20, anchor=int(anchor), engine=fast_engine)
    wanted = STORED[".".join(parts)]
    assert [one.positions.tolist() for one in found] == [wanted.tolist()] * (wanted.size > 1)


def test_consensus(fast_engine):
    """stumpy moves to the most central of the best matches, whose radius is no larger."""
    series = [STORED[f"consensus{k}"] for k in range(4)]
    found = consensus_motif(series, window=40, engine=fast_engine)
    radius, row, start = STORED["consensus"]
    assert found.radius == pytest.approx(radius, rel=1e-6)
    assert found.positions[int(row)] == start


@pytest.mark.parametrize("name", ["steps", "walk"])
def test_regimes(fast_engine, name):
    """With the parabola of the paper; stumpy's own is a beta distribution fitted to drawn arcs."""
    found = segment(STORED[name], window=16, n_regimes=3, separation=32, engine=fast_engine)
    assert_allclose(found.curve, STORED[f"curve.{name}"], rtol=1e-12)
    assert_array_equal(found.boundaries, STORED[f"boundaries.{name}"])
