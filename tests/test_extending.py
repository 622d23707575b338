"""The walk-throughs of the developer guide, from outside: a reduction, an engine."""

from __future__ import annotations

import importlib
import pickle
import re
import runpy
import shutil
import sys
from pathlib import Path

import numpy as np
import pytest
from numpy.testing import assert_array_equal

from skts import DTWNearestNeighbor, config_context, show_engines
from skts.engines import Tile, find_engine, get_engine
from skts.engines.core import registry
from skts.exceptions import UnsupportedReductionError, VerificationError
from skts.metrics import dtw, pairwise_dtw

GUIDE = Path(__file__).parents[1] / "docs" / "developer"


@pytest.fixture
def outside(tmp_path, monkeypatch):
    """Return a function that installs a file of the guide as a package of its own."""
    monkeypatch.syspath_prepend(str(tmp_path))
    monkeypatch.setattr(registry, "_instances", dict(registry._instances))
    names = []

    def install(file, points=()):
        shutil.copy(GUIDE / file, tmp_path)
        names.append(Path(file).stem)
        folder = tmp_path / f"{names[-1]}-1.0.dist-info"
        folder.mkdir()
        (folder / "METADATA").write_text(
            f"Metadata-Version: 2.1\nName: {names[-1]}\nVersion: 1.0\n"
        )
        (folder / "entry_points.txt").write_text("\n".join(["[skts.engines]", *points]))
        importlib.invalidate_caches()
        return importlib.import_module(names[-1])

    yield install
    for name in names:
        sys.modules.pop(name, None)


# --- a reduction -------------------------------------------------------------------------------


def test_the_reduction_runs_as_a_script(capsys):
    found = runpy.run_path(str(GUIDE / "reduction_example.py"), run_name="__main__")
    assert_array_equal(found["counts"], (found["X"] > 1).sum(axis=1))
    assert "16 parts" in capsys.readouterr().out


def test_the_reduction_answers_the_same_however_it_is_cut(outside, rng):
    example = outside("reduction_example.py")
    X = rng.normal(size=(300, 40))
    expected = (X > 0.5).sum(axis=1)
    for n_jobs in (1, 2, None):
        for memory in (None, "1KiB"):
            with config_context(memory=memory, verify=True):
                assert_array_equal(example.count_exceedances(X, 0.5, n_jobs=n_jobs), expected)
    work, engine = example.Exceedances(X, 0.5), example.ExceedancesEngine()
    total = work.start()
    for row in (200, 0, 100):
        tile = Tile(row, row + 100, 0, 1)
        part = pickle.loads(pickle.dumps(work.part(tile)))
        result = engine.compute(part, Tile(0, 100, 0, 1), np.zeros(1, np.uint8))
        work.merge(total, tile, result)
    assert_array_equal(work.finish(total, None), expected)


def test_plain_code_notices_where_the_reduction_is_computed_wrongly(outside, rng, monkeypatch):
    example = outside("reduction_example.py")
    monkeypatch.setattr(
        example.ExceedancesEngine, "exceedances", lambda self, r, tile, cancel: r.start()[tile.rows]
    )
    with config_context(verify=True), pytest.raises(VerificationError, match="count of series"):
        example.count_exceedances(rng.normal(size=(30, 40)), 0.0)


# --- an engine ---------------------------------------------------------------------------------

POINT = "rows = engine_example:RowsEngine"


def test_the_entry_point_is_that_of_the_guide():
    assert POINT.replace("= ", '= "') + '"' in (GUIDE / "extending.rst").read_text()


def test_the_engine_is_found_and_finds_the_bits_of_the_others(outside, rng, capsys):
    outside("engine_example.py", [POINT])
    show_engines()
    assert re.search(r"^rows +ready: NumPy", capsys.readouterr().out, re.MULTILINE)
    X = rng.normal(size=(23, 2, 17)).cumsum(axis=2)
    expected = pairwise_dtw(X, X[:9] + 0.5, engine="numba")
    for memory in (None, "64KiB"):
        with config_context(memory=memory, verify=True):
            assert_array_equal(pairwise_dtw(X, X[:9] + 0.5, engine="rows"), expected)
    with config_context(engine="rows"):
        assert_array_equal(pairwise_dtw(X), pairwise_dtw(X, engine="numba"))
        assert dtw(X[0], X[1]) == dtw(X[0], X[1], engine="numba")


def test_the_engine_says_what_it_lacks(outside, rng):
    outside("engine_example.py", [POINT])
    X = rng.normal(size=(6, 12))
    for options in ({"metric": "dog_keeper"}, {"cost": "absolute"}, {"window": 3}):
        with pytest.raises(UnsupportedReductionError, match="squared costs and without a window"):
            pairwise_dtw(X, engine="rows", **options)
    with pytest.raises(UnsupportedReductionError, match="series of one length only"):
        pairwise_dtw([X[0], X[1, :7]], engine="rows")
    with pytest.raises(UnsupportedReductionError, match="'rows' does not compute DTWNeighbors"):
        DTWNearestNeighbor(engine="rows").fit(X, np.arange(6) % 2).predict(X)


def test_auto_asks_the_engine_what_it_would_take(outside, rng, monkeypatch):
    outside("engine_example.py", [POINT])
    engine, X = find_engine("rows"), rng.normal(size=(6, 12))
    called, compute = [], engine.dtw_matrix
    monkeypatch.setattr(engine, "dtw_matrix", lambda *args: called.append(1) or compute(*args))
    expected = pairwise_dtw(X, window=3, engine="numba"), pairwise_dtw(X, engine="numba")
    with config_context(engine="auto"):
        monkeypatch.setattr(engine, "seconds", lambda reduction: 0.0)
        assert_array_equal(pairwise_dtw(X, window=3), expected[0])
        assert not called
        assert_array_equal(pairwise_dtw(X), expected[1])
        assert called
    assert get_engine("rows") is engine
