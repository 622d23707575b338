"""Files that are damaged, cut off, or meant to harm: refused by name and line, or read."""

from __future__ import annotations

import os
import pickle
import re
import signal
import time
import tracemalloc
import warnings
from contextlib import suppress

import numpy as np
import pytest

import skts
from skts.datasets import read_series, read_train_test
from skts.engines import Series
from tests.examples_of_estimators import arguments, estimators, examples, methods

FILES = {
    "A.tsv": "1\t0.5\tNaN\t2\n-1\t?\t1e-3\t4\n1\t7\t8\t9\n",
    "A.txt": "1 0.5 3 2\n-1 5 1e-3 4\n",
    "A": "1,0.5,3,2\n-1,5,1e-3,4\n",
    "A.ts": (
        "# a comment\n@problemName Test\n@timeStamps false\n@univariate false\n@dimensions 2\n"
        "@equalLength true\n@seriesLength 3\n@classLabel true a b\n@data\n"
        "1,2,3:4,5,6:a\n7,8,?:10,11,12:b\n"
    ),
}
FILES["A.arff"] = (
    "% a comment\n@relation Test\n@attribute t0 numeric\n@attribute t1 real\n"
    "@attribute class {a,b}\n@data\n1,2,a\n3,?,b\n"
)
FILES["B.arff"] = (
    "@relation Test\n@attribute all relational\n@attribute t0 numeric\n@attribute t1 numeric\n"
    "@end all\n@attribute class {a,b}\n@data\n'1,2\\n3,4',a\n'5,6\\n7,8',b\n"
)
HOSTILE = [
    b"\x00", b"\xff\xfe", b"\xef\xbb\xbf", b":", b"@", b"@data\n", b"(", b"\n", b"\r", b"\t", b",",
    b"9" * 5000, b"1e999", b"-nan", b"0x10", b"1_0", b"\xc2\xb2", b"\xd9\xa3", b"inf", b"\x85",
    b"@dimensions 99999999999999999999\n", b"@seriesLength " + b"9" * 5000 + b"\n",
    b"@classLabel\n", b"@timeStamps true\n", b"@univariate maybe\n", b"%", b"x" * 100_000,
]  # fmt: skip


@pytest.mark.parametrize("name", FILES)
def test_damaged_files(tmp_path, name):
    rng = np.random.default_rng(5)
    whole = FILES[name].encode()
    path = tmp_path / name
    damaged = [whole[:end] for end in range(len(whole))]
    for _ in range(600):
        data = bytearray(whole)
        for _ in range(rng.integers(1, 4)):
            at = int(rng.integers(len(data) + 1))
            if rng.random() < 0.4:
                data[at : at + int(rng.integers(0, 9))] = b""
            elif rng.random() < 0.5:
                data[at:at] = HOSTILE[rng.integers(len(HOSTILE))]
            else:
                data[at : at + 1] = bytes([rng.integers(256)])
        damaged.append(bytes(data))
    read = 0
    for data in damaged:
        path.write_bytes(data)
        try:
            X, y = read_series(path)
        except ValueError as error:
            assert str(error).startswith(str(path)), error
        else:
            read += 1
            assert y is None or len(X) == len(y)
            assert all(np.asarray(x).dtype == np.float64 for x in X)
    assert 0 < read < len(damaged)


@pytest.mark.parametrize("name", FILES)
def test_what_is_no_file_of_series(tmp_path, name):
    path = tmp_path / name
    for data in (b"", b"\x00" * 10_000, np.random.default_rng(0).bytes(10_000), b"\n" * 1000):
        path.write_bytes(data)
        with pytest.raises(ValueError, match=re.escape(str(path))):
            read_series(path)
    path.unlink()
    path.mkdir()
    with pytest.raises(OSError):
        read_series(path)


@pytest.mark.parametrize("name", FILES)
def test_what_never_ends_is_refused(tmp_path, name):
    """Devices give characters for ever; a pipe may wait for ever for the first."""
    if not hasattr(os, "mkfifo"):
        pytest.skip("this system has no pipes with a name")
    path = tmp_path / name
    os.mkfifo(path)
    with pytest.raises(OSError, match="is no regular file"):
        read_series(path)
    path.unlink()
    path.symlink_to("/dev/zero")
    with pytest.raises(OSError, match="is no regular file"):
        read_series(path)


HUGE = {
    "points.tsv": "1" + "\t7" * 300_000 + "\n2\t7\n",
    "digits.txt": "1 " + "9" * 3_000_000 + "x 2\n",
    "label.txt": "1 2\n" * 20_000 + "y" * 1000 + " 3\n",
    "target.ts": "@targetLabel true\n@data\n1:" + "z" * 2_000_000 + "\n",
    "class.ts": "@classLabel true a\n@data\n1:" + "z" * 2_000_000 + "\n",
    "channels.ts": "@classLabel false\n@data\n" + ":".join(["1", "1,2"] * 20_000) + "\n",
    "sizes.ts": "@dimensions 99999\n@seriesLength 99999999\n@classLabel false\n@data\n1\n",
    "negative.ts": "@dimensions -3\n@classLabel false\n@data\n1\n",
    "nan.ts": "@seriesLength nan\n@classLabel false\n@data\n1\n",
    "bytes.txt": "1 2 3\n".encode("utf-16"),
    "latin.tsv": b"1\t\xe4\n",
    "name.arff": "@relation x\n@attribute " + "a" * 2_000_000 + " numeric\n@data\n1\n",
    "label.arff": "@relation x\n@attribute a numeric\n@attribute c {a,"
    + "y" * 1000
    + "}\n@data\n"
    + "1,a\n" * 20_000,
    "line.arff": "@relation x\n@attribute a numeric\n@attribute c {a}\n@data\n" + "1" * 2_000_000,
    "quotes.arff": "@relation x\n@attribute a numeric\n@attribute c {a}\n@data\n" + "'" * 200_001,
    "relation.arff": "@relation " + "x " * 500_000 + "\n@data\n",
    "header.arff": "@" * 2_000_000,
    "date.arff": "@relation x\n@attribute a date 'yyyy'\n@attribute c {a}\n@data\n1999,a\n",
}


@pytest.mark.parametrize("name", HUGE)
def test_hostile_files_cost_a_second_and_a_short_sentence(tmp_path, name):
    """Neither does memory grow beyond some times the file, as with labels of one great length."""
    data = HUGE[name] if isinstance(HUGE[name], bytes) else HUGE[name].encode()
    path = tmp_path / name
    path.write_bytes(data)
    tracemalloc.start()
    start = time.process_time()
    try:
        with pytest.raises(ValueError) as caught:
            read_series(path)
        seconds, memory = time.process_time() - start, tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert str(caught.value).startswith(str(path))
    assert len(str(caught.value)) < len(str(path)) + 200
    assert memory < 2**20 + 150 * len(data)
    # tracing memory takes most of it
    assert seconds < 5


@pytest.mark.parametrize("name", ["../A", "a/b", "/etc/passwd", "..", "", "a\0b"])
def test_names_of_data_sets_are_no_paths(tmp_path, name):
    inside = tmp_path / "inside"
    inside.mkdir()
    for part in ("TRAIN", "TEST"):
        (tmp_path / f"A_{part}.txt").write_text("1 2 3\n")
    with pytest.raises(ValueError, match="name of a data set"):
        read_train_test(inside, name)


def test_a_label_that_would_fill_memory(tmp_path):
    path = tmp_path / "A.tsv"
    path.write_text("a\t1\t2\n" * 1000 + "x" * 10**6 + "\t1\t2\n")
    with pytest.raises(ValueError, match="line 1001: the label has 1000000 characters"):
        read_series(path)


@pytest.mark.parametrize("kind", estimators())
def test_pickles_that_are_cut_off(kind):
    example = examples()[kind]
    data = pickle.dumps(example.make().fit(*example.first))
    for end in np.linspace(0, len(data) - 1, 60).astype(int):
        with pytest.raises((pickle.UnpicklingError, EOFError, ValueError, AttributeError)):
            pickle.loads(data[:end])


@pytest.mark.slow
@pytest.mark.parametrize("kind", estimators())
def test_pickles_with_bits_that_flipped(kind):
    """Python's pickles have no checksum: an error, or a model that answers or raises.

    In a process whose memory is bounded: Python itself takes gigabytes for some.
    """
    resource = pytest.importorskip("resource")
    example = examples()[kind]
    data = pickle.dumps(example.make().fit(*example.first))
    child = os.fork()
    if child == 0:
        resource.setrlimit(resource.RLIMIT_AS, (6 * 2**30, 6 * 2**30))
        signal.alarm(280)
        refused = _answer_from_damaged(data, kind, example, 150)
        os._exit(0 if refused > 0 else 1)
    assert os.waitpid(child, 0)[1] == 0


def _answer_from_damaged(data, kind, example, how_many):
    """Read pickles with two bits changed, ask what was read; return how many were refused."""
    rng = np.random.default_rng(4)
    refused = 0
    warnings.simplefilter("ignore")
    for _ in range(how_many):
        damaged = bytearray(data)
        for at in rng.integers(len(data), size=2):
            damaged[at] ^= 1 << rng.integers(8)
        try:
            model = pickle.loads(bytes(damaged))
        except Exception:
            refused += 1
            continue
        for method in methods(kind) if isinstance(model, kind) else ():
            if "fit" not in method:
                with suppress(Exception):
                    getattr(model, method)(**arguments(model, method, example))
    return refused


@pytest.mark.parametrize("bad", [0, -1, 21, 2**62])
def test_series_from_a_damaged_pickle(bad):
    series = Series(np.zeros((3, 1, 20)), np.array([20, 9, 5]))
    again = pickle.loads(pickle.dumps(series))
    np.testing.assert_array_equal(again.lengths, series.lengths)
    series.lengths[1] = bad
    with pytest.raises(ValueError, match=f"series 1 has {bad} of 20 time points"):
        pickle.loads(pickle.dumps(series))
    with pytest.raises(ValueError, match="damaged"):
        pickle.loads(pickle.dumps(Series(np.zeros((3, 1, 20)), np.array([20, 9]))))


@pytest.mark.parametrize("bad", [np.nan, np.inf, 1e300])
def test_centers_that_are_none_are_refused(fast_engine, bad):
    """Distances that are all NaN led to a cluster of number -1, and beyond an array."""
    X = np.random.default_rng(0).normal(size=(9, 20)).cumsum(axis=1)
    model = skts.KShapeClusterer(2, random_state=0, engine=fast_engine).fit(X)
    model.cluster_centers_[1, 4] = bad
    for method in (model.predict, model.transform, model.score):
        with pytest.raises(ValueError, match="cluster_centers_ contains"):
            method(X)
