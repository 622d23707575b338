"""Engines are found by name, say why they cannot run, and are imported only when asked for."""

from __future__ import annotations

import importlib.util
import re

import numpy as np
import pytest

from skts import config_context, show_engines
from skts.engines import DTWMatrix, DTWPath, engine_names, find_engine, get_engine, run
from skts.exceptions import EngineNotAvailableError, UnsupportedReductionError


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


def test_show_engines_prints_every_engine(capsys):
    show_engines()
    lines = capsys.readouterr().out.splitlines()
    assert [line.split()[0] for line in lines] == engine_names()
    assert re.match(r"numba +ready: \d+ threads, \w+", lines[0])


def test_results_are_host_arrays(engine, make_series):
    assert type(run(DTWMatrix(make_series(2, 3), make_series(2, 3)), engine=engine)) is np.ndarray
