"""The tables of the page on scaling are those that its script makes of the recorded runs."""

from __future__ import annotations

import importlib
from pathlib import Path

import numpy as np
import pytest

ROOT = Path(__file__).parents[1]

if not (ROOT / "benchmarks" / "scaling.py").exists():
    pytest.skip("the benchmarks are not here", allow_module_level=True)


@pytest.fixture
def scaling(monkeypatch):
    monkeypatch.syspath_prepend(str(ROOT))
    return importlib.import_module("benchmarks.scaling")


def test_tables_are_those_of_the_records(scaling, tmp_path, monkeypatch):
    written = scaling.TABLES.read_text()
    monkeypatch.setattr(scaling, "TABLES", tmp_path / "tables")
    scaling.tables(None)
    assert scaling.TABLES.read_text() == written


def test_the_model_finds_what_runs_are_made_of(scaling):
    rows = []
    for size in ((100, 1000, 200), (300, 1000, 200), (400, 4000, 50), (1000, 10, 400)):
        cells, given, answered = scaling.costs("DTWNeighbors", size)
        assert cells == size[0] * size[1] * size[2] ** 2
        assert given == 8 * (size[0] + size[1]) * size[2]
        merging = answered / 1e8
        seconds = 0.01 + cells / 2e9 + given / 5e8 + merging
        row = {"reduction": "DTWNeighbors", "size": size, "threads": 1, "seconds": seconds}
        rows.append({**row, "seconds of merging": merging})
    model = scaling.fit(rows, "DTWNeighbors")
    np.testing.assert_allclose(1 / model, [100, 2e9, 5e8, 1e8], rtol=1e-6)
    size = (1000, 1000, 100)
    one, eight = (scaling.predict(model, "DTWNeighbors", size, n) for n in (1, 8))
    assert one - eight == pytest.approx(7 / 8 * 1e10 / 2e9)
