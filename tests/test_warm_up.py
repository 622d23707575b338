"""Kernels compiled ahead: all that ordinary calls need, and one line where they are not."""

from __future__ import annotations

import importlib
import logging
import os
import subprocess
import sys
import time

import pytest

import skts
from skts import _warm_up
from skts.engines import engine_names, find_engine
from skts.engines.core import compiling
from tests.discovery import estimators
from tests.examples_of_estimators import methods

COUNT = """
import warnings
warnings.simplefilter("ignore")
import skts
from skts.datasets import load_gunpoint, make_random_walk
X, y = load_gunpoint(split="train", return_X_y=True)
Z, z = load_gunpoint(split="test", return_X_y=True)
T = make_random_walk(1, 3_000, random_state=0)
o = {"engine": "numba"}
"""
#: Calls as users make them, on data unlike those of `warm_up`.
TYPICAL = {
    "KShapeClusterer": "skts.KShapeClusterer(2, random_state=0, **o).fit(X).transform(Z)",
    "DTWNearestNeighbor": "skts.DTWNearestNeighbor(**o).fit(X, y).predict(Z[:9])\n"
    "skts.DTWNearestNeighbor(3, window=0.1, **o).fit(Z, z).predict_proba(X[:9])",
    "ShapeletForestClassifier": "skts.ShapeletForestClassifier(20, random_state=0, **o)"
    ".fit(X, y).predict(Z)",
    "ShapeletTransformer": "m = skts.ShapeletTransformer(random_state=0, **o)\n"
    "m.fit(X, y).transform(Z)\n"
    "m.set_params(max_candidates=None, n_shapelets=9, lengths=[20], dilations=[1, 3]).fit(X, y)",
    "DTWNearestNeighborRegressor": "skts.DTWNearestNeighborRegressor(**o).fit(X, y).predict(Z[:9])",
    "DTWNeighbors": "m = skts.DTWNeighbors(**o).fit(X); m.kneighbors(Z[:9])\n"
    "m.radius_neighbors(Z[:9], 3.0); m.radius_neighbors_graph()",
    "ShapeletTreeClassifier": "m = skts.ShapeletTreeClassifier(min_length=10, max_length=20,"
    " length_step=10, **o).fit(X, y); m.predict(Z[:9]); m.transform(Z[:9])",
    "ShapeletTreeRegressor": "m = skts.ShapeletTreeRegressor(min_length=10, max_length=10,"
    " max_depth=2, **o).fit(X, X[:, 9]); m.predict(Z[:9]); m.transform(Z[:9])",
    "DiscordDetector": "m = skts.DiscordDetector(50, **o).fit(T); m.predict(list(X))\n"
    "skts.DiscordDetector(**o).fit(T).score_points(T)",
    "MotifFinder": "m = skts.MotifFinder(50, **o).fit(T); m.transform(list(X)); m.update(X[0])\n"
    "skts.MotifFinder(**o).fit(T)",
    "SubsequenceSearch": "m = skts.SubsequenceSearch(**o).fit(T)\n"
    "m.kneighbors(T[:, 9:99], n_neighbors=3)\n"
    "skts.SubsequenceSearch(window=0.1, **o).fit(T).kneighbors(T[:, 9:99])",
    "SubsequenceMonitor": "skts.SubsequenceMonitor(**o).fit(T[:, 9:99]).update(T[0])\n"
    "skts.SubsequenceMonitor(window=0.1, **o).fit(T[:, 9:99]).update(T[0])",
    "DTWKMeans": "skts.DTWKMeans(2, random_state=0, **o).fit(X).transform(Z)",
    "DTWKMedoids": "skts.DTWKMedoids(2, random_state=0, **o).fit(X).transform(Z)",
    "DTWCondenser": "skts.DTWCondenser(**o).fit_resample(X, y)",
}
MISSES = """
import sys
from numba.core.dispatcher import Dispatcher
modules = [m for name, m in sys.modules.items() if name.startswith("skts.engines.")]
kernels = {v for m in modules for v in vars(m).values() if isinstance(v, Dispatcher)}
found = {k.py_func.__qualname__: list(k.stats.cache_misses) for k in kernels}
assert any(k.stats.cache_hits for k in kernels)
print("compiled:", {name: misses for name, misses in found.items() if misses})
"""


def python(folder, *arguments):
    done = subprocess.run(
        [sys.executable, *arguments],
        capture_output=True,
        text=True,
        env={**os.environ, "NUMBA_CACHE_DIR": str(folder)},
    )
    assert done.returncode == 0, done.stderr
    return done


@pytest.mark.timeout(1200)
@pytest.mark.parametrize(
    "names", [["KShapeClusterer"], pytest.param(list(TYPICAL), marks=pytest.mark.slow)]
)
def test_a_new_process_compiles_nothing(tmp_path, names):
    done = python(tmp_path, "-m", "skts.warm_up", "--engine", "numba", "--estimators", *names)
    assert done.stdout.startswith("ready after")
    assert done.stderr == ""
    for name in names:
        done = python(tmp_path, "-c", COUNT + TYPICAL[name] + MISSES)
        assert done.stdout == "compiled: {}\n", name
        assert done.stderr == ""


def test_typical_calls_are_of_all_estimators():
    assert set(TYPICAL) == {kind.__name__ for kind in estimators()}


def test_all_estimators_are_found():
    assert set(_warm_up.all_estimators()) == set(estimators())


@pytest.mark.parametrize("kind", estimators())
def test_all_methods_are_called(kind, monkeypatch):
    called = []

    def note(model, name, given):
        called.append(name)
        return model

    monkeypatch.setattr(_warm_up, "_call", note)
    skts.warm_up("numba", [kind])
    own = {name for name in methods(kind) if getattr(kind, name).__module__.startswith("skts")}
    assert own - {"fit"} <= set(called)
    # of both sizes, and again with options for which other kernels compute
    assert called.count("fit") == 2 * (1 + (kind.__name__ in _warm_up._OPTIONS))


def test_parameters_of_an_estimator_are_kept(monkeypatch):
    seen = []
    monkeypatch.setattr(_warm_up, "_call_all_methods", seen.append)
    model = skts.DTWNearestNeighbor(window=3)
    skts.warm_up("numba", [model])
    assert seen[0].get_params() == {**model.get_params(), "engine": "numba"}
    assert model.engine == "auto"


@pytest.mark.parametrize(
    "model",
    [
        skts.DTWNeighbors(11),
        skts.DTWNearestNeighbor(metric="precomputed"),
        skts.MotifFinder(1000),
        skts.SubsequenceMonitor(radius=[1.0, 2.0]),
    ],
    ids=repr,
)
def test_data_are_as_large_as_parameters_ask_for(model):
    skts.warm_up("numba", [model])


@pytest.mark.parametrize("kind", estimators(), ids=lambda kind: kind.__name__)
def test_no_data_are_refused_with_default_parameters(kind):
    """What `warm_up` passes over compiles nothing."""
    for model in _warm_up._variants(kind(engine="numba")):
        assert [_warm_up._refusal(model, given) for given in _warm_up._data(model, 1)] == [None] * 2


def test_an_estimator_that_no_data_fit():
    with pytest.raises(ValueError, match=r"no data for DTWKMeans.*: n_samples"):
        skts.warm_up("numba", [skts.DTWKMeans(9999)])


@pytest.mark.parametrize("estimators", [skts.DTWNeighbors, [3], 3, [skts.DTWNeighbors, "all"]])
def test_no_estimators(estimators):
    with pytest.raises(TypeError, match="give a list of estimators, or of their classes"):
        skts.warm_up("numba", estimators)


def test_without_a_name_every_engine_that_runs_here_is_compiled_for(monkeypatch):
    seen = []
    monkeypatch.setattr(_warm_up, "_call_all_methods", lambda model: seen.append(model.engine))
    skts.warm_up(estimators=[skts.KShapeClusterer])
    assert seen == [name for name in engine_names() if find_engine(name).available() is None]


def test_an_unknown_engine():
    with pytest.raises(TypeError, match=r"'engine' parameter of warm_up .* Got \['numba'\]"):
        skts.warm_up(engine=["numba"])
    with pytest.raises(ValueError, match="not known"):
        skts.warm_up("none such")


def test_the_module_is_the_function():
    function = skts.warm_up
    assert importlib.import_module("skts.warm_up") is function is skts.warm_up


@pytest.fixture
def lines(monkeypatch, caplog):
    """Return what gives the lines of the logger, as in a process that has compiled nothing yet."""
    monkeypatch.setattr(compiling, "_spent", 0.0)
    monkeypatch.setattr(compiling, "_said", False)
    monkeypatch.setattr(compiling, "PATIENCE", 0.05)
    caplog.set_level(logging.INFO, logger="skts")
    return lambda: caplog.messages


def compile_until(said):
    """Compile for as long as it takes until a line is there, at most ten seconds."""
    end = time.monotonic() + 10
    with compiling.compiling(lambda: True):
        while not said() and time.monotonic() < end:
            time.sleep(0.01)


def test_one_line_says_that_kernels_are_compiled(lines):
    compile_until(lines)
    for _ in range(3):
        with compiling.compiling(lambda: True):
            time.sleep(0.1)
    (line,) = lines()
    assert "skts.warm_up()" in line


def test_seconds_of_many_kernels_add_up(lines, monkeypatch):
    monkeypatch.setattr(compiling, "PATIENCE", 1000.0)
    with compiling.compiling(lambda: True):
        time.sleep(0.02)
    assert not lines()
    monkeypatch.setattr(compiling, "PATIENCE", compiling._spent)
    assert compiling.PATIENCE >= 0.02
    compile_until(lines)
    assert len(lines()) == 1


def test_nothing_is_said_to_who_asked_for_it(lines):
    with _warm_up._unannounced(), compiling.compiling(lambda: True):
        time.sleep(0.1)
    assert not lines()


def test_kernels_that_are_found_on_disk_do_not_count(lines):
    for _ in range(2):
        with compiling.compiling(lambda: False):
            time.sleep(0.1)
    assert not lines()
