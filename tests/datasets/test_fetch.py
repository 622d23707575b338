"""Downloads: from a server of this process, cached, checked, refused; never the network."""

import threading
from functools import partial
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from zipfile import ZipFile

import numpy as np
import pytest

from skts.datasets import fetch_ucr

pooch = pytest.importorskip("pooch")

TRAIN, TEST = "1 0.0 0.5\n2 1.0 0.5\n", "2 0.9 0.5\n"


class Quiet(SimpleHTTPRequestHandler):
    def log_message(self, *args):
        """Say nothing."""


@pytest.fixture
def served(tmp_path, monkeypatch):
    """A folder that a server gives out, and its address."""
    monkeypatch.setenv("NO_PROXY", "127.0.0.1")
    folder = tmp_path / "served"
    folder.mkdir()
    server = ThreadingHTTPServer(("127.0.0.1", 0), partial(Quiet, directory=folder))
    thread = threading.Thread(target=server.serve_forever, daemon=True)
    thread.start()
    yield folder, f"http://127.0.0.1:{server.server_address[1]}/{{name}}.zip"
    server.shutdown()
    server.server_close()
    thread.join()


def pack(path, train=TRAIN, test=TEST, inside=""):
    with ZipFile(path, "w") as archive:
        archive.writestr(f"{inside}Steps_TRAIN.txt", train)
        archive.writestr(f"{inside}Steps_TEST.txt", test)
        archive.writestr("../Steps.txt", "a description")


def test_what_is_downloaded_is_read_and_kept(served, tmp_path):
    folder, url = served
    pack(folder / "Steps.zip", inside="Steps/")
    home = tmp_path / "home"
    X_train, X_test, y_train, y_test = fetch_ucr("Steps", data_home=home, url=url)
    assert X_train.tolist() == [[0.0, 0.5], [1.0, 0.5]] and y_train.tolist() == [1, 2]
    assert X_test.tolist() == [[0.9, 0.5]] and y_test.tolist() == [2]
    line = (home / "registry.txt").read_text().split()
    assert line == ["Steps.zip", pooch.file_hash(folder / "Steps.zip")]
    # from the cache, without the server
    (folder / "Steps.zip").unlink()
    again = fetch_ucr("Steps", data_home=str(home), url=url)
    np.testing.assert_array_equal(again[0], X_train)
    assert (home / "registry.txt").read_text().split() == line


def test_a_file_that_differs_from_the_first_is_refused(served, tmp_path):
    folder, url = served
    pack(folder / "Steps.zip")
    fetch_ucr("Steps", data_home=tmp_path, url=url)
    pack(folder / "Steps.zip", train=TRAIN.replace("0.5", "0.25"))
    (tmp_path / "Steps.zip").unlink()
    with pytest.raises(ValueError, match=r"is not the file with the SHA-256 \w{64}; if you trust"):
        fetch_ucr("Steps", data_home=tmp_path, url=url)
    (tmp_path / "registry.txt").unlink()
    assert fetch_ucr("Steps", data_home=tmp_path, url=url)[0][0, 1] == 0.25
    # damaged in the cache: downloaded again
    (tmp_path / "Steps.zip").write_bytes(b"nonsense")
    assert fetch_ucr("Steps", data_home=tmp_path, url=url)[0][0, 1] == 0.25
    with pytest.raises(ValueError, match="is not the file with the SHA-256 00"):
        fetch_ucr("Steps", data_home=tmp_path, url=url, known_hash="0" * 64)


def test_no_network_and_no_such_name_are_one_sentence(served, tmp_path):
    _, url = served
    with pytest.raises(OSError) as missing:
        fetch_ucr("Nowhere", data_home=tmp_path, url=url)
    with pytest.raises(OSError) as offline:
        fetch_ucr("Steps", data_home=tmp_path, url="http://127.0.0.1:9/{name}.zip")
    for error, kind in ((missing, "HTTPError"), (offline, "ConnectionError")):
        text = str(error.value)
        assert f"could not be downloaded ({kind}): check the name and the network" in text
        assert text.endswith("read_train_test.") and text.count(". ") == 0
    assert not (tmp_path / "registry.txt").exists()


def test_what_is_no_data_set_is_not_recorded(served, tmp_path):
    folder, url = served
    (folder / "Steps.zip").write_text("<html>")
    with pytest.raises(ValueError, match="is no zip file; it was not kept"):
        fetch_ucr("Steps", data_home=tmp_path, url=url)
    assert not (tmp_path / "Steps.zip").exists()
    with ZipFile(folder / "Steps.zip", "w") as archive:
        archive.writestr("Other_TRAIN.txt", TRAIN)
    with pytest.raises(ValueError, match="holds no Steps_TRAIN and Steps_TEST"):
        fetch_ucr("Steps", data_home=tmp_path, url=url)
    assert not (tmp_path / "registry.txt").exists()


@pytest.mark.parametrize("name", ["../A", "a/b", "..", ""])
def test_names_are_no_paths(tmp_path, name):
    with pytest.raises(ValueError, match="give the name of a data set"):
        fetch_ucr(name, data_home=tmp_path)
    assert not list(Path(tmp_path).iterdir())


def test_without_pooch_the_message_says_what_to_install(monkeypatch):
    monkeypatch.setitem(__import__("sys").modules, "pooch", None)
    with pytest.raises(ImportError, match="fetch_ucr needs pooch"):
        fetch_ucr("Steps")
