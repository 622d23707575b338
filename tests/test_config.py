"""Settings: per thread, checked, restored."""

from __future__ import annotations

import subprocess
import sys
import threading

import numpy as np
import pytest

from skts import config_context, get_config, set_config
from skts._config import parse_memory
from skts.engines import DTWMatrix, find_engine, run
from skts.exceptions import EngineNotAvailableError
from skts.metrics import dtw


@pytest.fixture(autouse=True)
def defaults():
    yield
    set_config(engine="auto", memory=None, devices=None, progress=None, verify=False)


def test_set_and_get():
    set_config(memory="2GiB", devices=[1, 0])
    assert get_config()["memory"] == "2GiB"
    assert get_config()["devices"] == (1, 0)
    assert get_config()["engine"] == "auto"
    get_config()["engine"] = "changed"
    assert get_config()["engine"] == "auto"


def test_context_restores_even_after_an_error():
    with pytest.raises(ZeroDivisionError), config_context(engine="numba", memory=100):
        assert get_config()["engine"] == "numba"
        with config_context(memory=None):
            assert get_config()["memory"] is None
            assert get_config()["engine"] == "numba"
        raise ZeroDivisionError
    assert get_config()["engine"] == "auto"
    assert get_config()["memory"] is None


def test_other_threads_have_their_own():
    seen = []
    with config_context(engine="numba"):
        thread = threading.Thread(target=lambda: seen.append(get_config()["engine"]))
        thread.start()
        thread.join()
    assert seen == ["auto"]


@pytest.mark.parametrize(
    ("text", "size"),
    [(5, 5), ("5", 5), ("2K", 2048), ("1.5 MiB", 3 * 2**19), ("2GB", 2**31), ("1 tib", 2**40)],
)
def test_memory(text, size):
    assert parse_memory(text) == size


def test_a_fraction_of_the_memory():
    assert parse_memory(0.25, 2**30) == 2**28
    assert parse_memory(1.0, 1000) == 1000
    assert parse_memory(1, 1000) == 1
    assert parse_memory(1e-9, 1000) == 1
    assert parse_memory(np.float32(0.5), 2**30) == 2**29


@pytest.mark.parametrize("fraction", [0.0, 1.5, -0.25, float("nan"), float("inf"), 2e9])
def test_what_is_no_fraction(fraction):
    with pytest.raises(ValueError, match="no fraction of the memory that there is: write a float"):
        set_config(memory=fraction)
    assert get_config()["memory"] is None


@pytest.mark.parametrize("memory", ["much", "2X", "-1", 0, -5, "0", 1.5, True])
def test_bad_memory(memory):
    with pytest.raises(ValueError, match="memory="):
        set_config(memory=memory)
    assert get_config()["memory"] is None


@pytest.mark.parametrize(
    "bad", [{"engine": 3}, {"devices": []}, {"devices": [-1]}, {"progress": "bar"}]
)
def test_bad_settings_change_nothing(bad):
    before = get_config()
    with pytest.raises(ValueError, match=next(iter(bad))):
        set_config(**{"memory": 100, **bad})
    assert get_config() == before


def test_unknown_settings_raise():
    before = get_config()
    with pytest.raises(TypeError, match="colour"):
        set_config(colour="red")
    with pytest.raises(TypeError, match="colour"), config_context(memory=100, colour="red"):
        pytest.fail("the block must not be entered")
    assert get_config() == before


@pytest.mark.parametrize(
    ("bad", "message"),
    [
        ({"engine": None}, "engine=None is not the name of an engine"),
        (
            {"engine": "nope"},
            "engine='nope' is not known; there are 'auto', 'numba', 'cupy', 'oracle'",
        ),
        ({"engine": np.str_("Numba")}, "engine='Numba' is not known; there are 'auto', 'numba'"),
        ({"devices": "01"}, "devices='01' is not a list of GPU numbers"),
        ({"devices": [True]}, r"devices=\[True\] is not a list of GPU numbers"),
        ({"devices": 0}, "devices=0 is not a list of GPU numbers"),
        ({"progress": True}, r"progress=True cannot be called as progress\(done, total\)"),
    ],
)
def test_bad_contexts_are_not_entered(bad, message):
    before = get_config()
    with pytest.raises(ValueError, match=message), config_context(memory=100, **bad):
        pytest.fail("the block must not be entered")
    assert get_config() == before


def test_engines_that_cannot_run_here_are_known(monkeypatch):
    """Where they are used they say what they lack; no engine is imported to know its name."""
    monkeypatch.setitem(
        vars(find_engine("cupy")), "available", lambda: "engine='cupy' needs a GPU."
    )
    with config_context(engine="cupy"):
        assert get_config()["engine"] == "cupy"
        with pytest.raises(EngineNotAvailableError, match="needs a GPU"):
            dtw([1, 2], [2, 3])
    code = "import sys, skts; skts.set_config(engine='cupy'); "
    code += "print('skts.engines.cupy' in sys.modules)"
    assert subprocess.check_output([sys.executable, "-c", code], text=True).strip() == "False"


@pytest.mark.parametrize("text", ["", "GiB", "1e9", "-1GiB", "1 2", "1GiBs", None, [1]])
def test_what_is_no_size(text):
    with pytest.raises(ValueError, match="is not a size: write bytes, text such as '2GiB', or a"):
        parse_memory(text)


@pytest.mark.parametrize("text", [0, -5, "0", "0GiB", "0.3B"])
def test_what_is_no_room(text):
    with pytest.raises(ValueError, match="leaves no room: give a positive size"):
        parse_memory(text)


@pytest.mark.parametrize("text", ["1.5", "2.25 B"])
def test_bytes_are_whole(text):
    with pytest.raises(ValueError, match="is not a whole number of bytes: write bytes, text such"):
        parse_memory(text)


def test_two_threads_change_their_settings_at_the_same_time():
    seen, both = [], threading.Barrier(2, timeout=60)

    def other():
        seen.append(get_config())
        set_config(engine="oracle", memory=77)
        both.wait()
        both.wait()
        seen.append(get_config())

    defaults = get_config()
    set_config(engine="numba", memory="1GiB")
    thread = threading.Thread(target=other)
    thread.start()
    both.wait()  # the other has set its own
    assert (get_config()["engine"], get_config()["memory"]) == ("numba", "1GiB")
    with config_context(engine="cupy"):
        both.wait()
        thread.join()
    assert seen == [defaults, {**defaults, "engine": "oracle", "memory": 77}]


def test_workers_have_the_settings_of_the_thread_that_started_them(make_series, monkeypatch):
    seen = []

    def watch(self, reduction, tile, cancel):
        seen.append((threading.current_thread(), get_config()))
        return np.zeros(tile.shape)

    oracle = type(find_engine("oracle"))
    for name, value in (
        ("dtw_matrix", watch),
        ("workers", lambda self, n_jobs: 2),
        ("tile_work", 1),
    ):
        monkeypatch.setattr(oracle, name, value)
    series = make_series(4, 3)
    with config_context(engine="oracle", memory="3MiB"):
        expected = get_config()
        run(DTWMatrix(series, series))
    assert len(seen) >= 4
    assert threading.main_thread() not in {thread for thread, _ in seen}
    assert all(settings == expected for _, settings in seen)
