"""Settings: per thread, checked, restored."""

from __future__ import annotations

import threading

import pytest

from skts import config_context, get_config, set_config
from skts._config import parse_memory


@pytest.fixture(autouse=True)
def defaults():
    yield
    set_config(engine="auto", memory=None, devices=None, progress=None)


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
