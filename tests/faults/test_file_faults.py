"""Files that are damaged, cut off, or meant to harm: refused by name and line, or read."""

from __future__ import annotations

import pickle

import numpy as np
import pytest

from skts.datasets import read_series
from tests.examples_of_estimators import estimators, examples

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
        with pytest.raises(ValueError, match="A"):
            read_series(path)
    path.unlink()
    path.mkdir()
    with pytest.raises(OSError):
        read_series(path)


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
