"""Ranges-aware scores of the benchmark against stored values of aeon."""

from __future__ import annotations

import importlib.util
from pathlib import Path

import numpy as np
import pytest

ROOT = Path(__file__).parents[2]
SOURCE = ROOT / "benchmarks" / "profile" / "_ranges.py"
if not SOURCE.exists():
    pytest.skip("the benchmarks are not here", allow_module_level=True)
SPEC = importlib.util.spec_from_file_location("ranges", SOURCE)
ranges = importlib.util.module_from_spec(SPEC)
SPEC.loader.exec_module(ranges)

with np.load(ROOT / "tests" / "data" / "peers" / "anomalies.npz") as stored:
    STORED = dict(stored)
CASES = [key.partition(".")[2] for key in STORED if key.startswith("labels.")]


@pytest.mark.parametrize("case", CASES)
def test_areas_and_volume(case):
    labels, scores = STORED[f"labels.{case}"], STORED[f"scores.{case}"]
    areas = [ranges.area_under_pr(labels.astype(int), scores, n) for n in (0, 1, 2, 7, 30)]
    np.testing.assert_allclose(areas, STORED[f"areas.{case}"], rtol=1e-12)
    np.testing.assert_allclose(
        ranges.vus_pr(labels, scores, 40), STORED[f"volume.{case}"], rtol=1e-12
    )


def test_what_is_perfect_is_one():
    labels = np.zeros(300, int)
    labels[100:120] = 1
    assert ranges.area_under_pr(labels, labels + 0.0, 0) == 1.0
