"""Engines are found by name, say why they cannot run, and are imported only when asked for."""

from __future__ import annotations

import importlib.util
import re
from importlib.metadata import EntryPoint

import numpy as np
import pytest

from skts import _engine_names, config_context, show_engines
from skts.engines import DTWMatrix, DTWPath, Warping, engine_names, find_engine, get_engine, run
from skts.engines.core import registry
from skts.engines.numba import NumbaEngine
from skts.exceptions import EngineNotAvailableError, UnsupportedReductionError
from skts.metrics import pairwise_dtw


def test_the_oracle_is_found_through_the_entry_point():
    assert engine_names() == ["numba", "cupy", "oracle"]
    assert type(find_engine("oracle")).__module__ == "reference"
    assert find_engine("oracle") is find_engine("oracle")


def test_unknown_names_list_the_known_ones():
    with pytest.raises(ValueError, match=r"'cuda' is not known; there are 'auto', 'numba'"):
        get_engine("cuda")


def test_configuration_and_argument(make_series):
    work = DTWMatrix(make_series(1, 3), make_series(1, 3))
    assert get_engine(None, work).name == "numba"
    with config_context(engine="oracle"):
        assert get_engine(None, work).name == "oracle"
        assert get_engine("auto", work).name == "oracle"
        assert get_engine("numba", work).name == "numba"


def test_auto_takes_the_cpu_for_small_work(make_series):
    assert get_engine("auto", DTWMatrix(make_series(2, 5), make_series(2, 5))).name == "numba"


def test_auto_takes_the_gpu_for_large_work_where_there_is_one(make_series):
    series = make_series(400, 200)
    there = importlib.util.find_spec("cupy") and find_engine("cupy").available() is None
    assert get_engine("auto", DTWMatrix(series, series)).name == ("cupy" if there else "numba")


@pytest.mark.skipif(importlib.util.find_spec("cupy") is not None, reason="CuPy is installed")
def test_cupy_without_cupy_says_how_to_install_it(make_series):
    with pytest.raises(EngineNotAvailableError, match=r"needs CuPy.*pip install 'skts\[cuda13\]'"):
        run(DTWMatrix(make_series(1, 3), make_series(1, 3)), engine="cupy")


def test_an_engine_without_the_method_says_so(make_series, monkeypatch):
    oracle = find_engine("oracle")
    monkeypatch.delattr(type(oracle), "dtw_path")
    with pytest.raises(UnsupportedReductionError, match="'oracle' does not compute DTWPath"):
        run(DTWPath(make_series(1, 3), make_series(1, 3)), engine="oracle")


class WithoutDogKeeper(NumbaEngine):
    """An engine whose matrices know sums of costs only; a cheaper one than any other."""

    name = "sums"

    def seconds(self, reduction):
        return 0.0

    def dtw_matrix_lacks(self, reduction):
        if reduction.warping.metric == "dog_keeper":
            return "engine='sums' has no dog-keeper distance."
        return None

    def dtw_matrix(self, reduction, tile, cancel):
        # as a kernel that does not look at the metric
        assert reduction.warping.metric == "dtw"
        return np.full(tile.shape, 7.0)


@pytest.fixture
def sums(monkeypatch):
    """This engine, registered beside the others."""
    point = EntryPoint("sums", f"{__name__}:WithoutDogKeeper", _engine_names.GROUP)
    sources = {**_engine_names._sources(), "sums": point}
    monkeypatch.setattr(_engine_names, "_sources", lambda: sources)
    monkeypatch.setattr(registry, "_instances", {"sums": WithoutDogKeeper()})
    return registry._instances["sums"]


def test_an_engine_that_lacks_a_metric_says_so_instead_of_computing_another(sums, make_series):
    sides, work = [make_series(3, 9), make_series(4, 9)], {}
    for metric in ("dtw", "dog_keeper"):
        work[metric] = DTWMatrix(*sides, Warping(metric=metric))
    assert sums.supports(work["dtw"]) is None
    np.testing.assert_array_equal(run(work["dtw"], engine="sums"), np.full((3, 4), 7.0))
    # by name and as an object, as estimators hand the engine on that they have chosen
    for engine in ("sums", sums):
        with pytest.raises(UnsupportedReductionError, match="'sums' has no dog-keeper distance"):
            run(work["dog_keeper"], engine=engine)
    # what an engine lacks, "auto" gives to the next one
    assert get_engine("auto", work["dtw"]) is sums
    assert get_engine("auto", work["dog_keeper"]).name == "numba"
    X = np.arange(12.0).reshape(3, 4)
    assert (pairwise_dtw(X, X + 1) == 7).all()
    np.testing.assert_array_equal(
        pairwise_dtw(X, X + 1, metric="dog_keeper"),
        pairwise_dtw(X, X + 1, metric="dog_keeper", engine="numba"),
    )


def test_an_engine_installed_meanwhile_is_found_by_its_name(tmp_path, monkeypatch):
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.setattr(registry, "_instances", dict(registry._instances))
    assert "late" not in engine_names()
    folder = tmp_path / "late-1.dist-info"
    folder.mkdir()
    (folder / "METADATA").write_text("Metadata-Version: 2.1\nName: late\nVersion: 1\n")
    point = f"[skts.engines]\nlate = {__name__}:WithoutDogKeeper\n"
    (folder / "entry_points.txt").write_text(point)
    assert isinstance(get_engine("late"), WithoutDogKeeper)
    assert "late" in engine_names()


def test_show_engines_prints_every_engine(capsys):
    show_engines()
    lines = capsys.readouterr().out.splitlines()
    assert [line.split()[0] for line in lines] == engine_names()
    assert re.match(r"numba +ready: \d+ threads, \w+", lines[0])


def test_results_are_host_arrays(engine, make_series):
    assert type(run(DTWMatrix(make_series(2, 3), make_series(2, 3)), engine=engine)) is np.ndarray
