"""The shipped data are the data they are said to be, and loading them is cheap."""

import hashlib
import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from sklearn.model_selection import PredefinedSplit
from sklearn.neighbors import KNeighborsClassifier

from skts import datasets
from skts.datasets import load_arrow_head, load_ecg, load_gunpoint

DATA = Path(datasets.__file__).parent / "data"


def checksum(array):
    return hashlib.sha256(np.ascontiguousarray(array).tobytes()).hexdigest()[:16]


# loader, length of a series, class sizes in train and test, checksums of train and test,
# published 1-NN Euclidean error of the archive's split
SPLIT_SETS = [
    pytest.param(
        load_gunpoint,
        150,
        {1: (24, 76), 2: (26, 74)},
        ("748a525d588e92ab", "51cd476673ce88a6"),
        0.0867,
        id="gunpoint",
    ),
    pytest.param(
        load_arrow_head,
        251,
        {0: (12, 69), 1: (12, 53), 2: (12, 53)},
        ("3b8c54eb5364784e", "3f7bf25f61d9e88d"),
        0.2,
        id="arrow_head",
    ),
]


@pytest.mark.parametrize(("load", "length", "classes", "checksums", "error"), SPLIT_SETS)
def test_split_sets(load, length, classes, checksums, error):
    for part, split in enumerate(("train", "test")):
        X, y = load(split=split, return_X_y=True)
        assert X.dtype == np.float64 and y.dtype == np.int64
        labels, counts = np.unique(y, return_counts=True)
        assert dict(zip(labels.tolist(), counts.tolist(), strict=True)) == {
            label: sizes[part] for label, sizes in classes.items()
        }
        assert X.shape == (sum(sizes[part] for sizes in classes.values()), length)
        assert checksum(X) == checksums[part]
        # z-scored by the archive, with the n - 1 deviation and about seven digits
        assert np.abs(X.mean(axis=1)).max() < 1e-6
        assert np.abs(X.std(axis=1, ddof=1) - 1).max() < 1e-6


@pytest.mark.parametrize(("load", "length", "classes", "checksums", "error"), SPLIT_SETS)
def test_bunch(load, length, classes, checksums, error):
    both = load()
    X_train, y_train = load(split="train", return_X_y=True)
    X_test, y_test = load(split="test", return_X_y=True)
    np.testing.assert_array_equal(both.data, np.concatenate([X_train, X_test]))
    np.testing.assert_array_equal(both.target, np.concatenate([y_train, y_test]))
    assert len(both.target_names) == len(classes)
    assert both.feature_names == [f"t{t}" for t in range(length)]
    assert "Cite:" in both.DESCR and "Licence" not in both.DESCR.split("\n")[0]
    assert (DATA / both.filename).is_file()

    ((train, test),) = PredefinedSplit(both.test_fold).split()
    np.testing.assert_array_equal(both.data[train], X_train)
    np.testing.assert_array_equal(both.data[test], X_test)
    assert set(load(split="test").test_fold) == {0}


@pytest.mark.parametrize(("load", "length", "classes", "checksums", "error"), SPLIT_SETS)
def test_published_euclidean_error(load, length, classes, checksums, error):
    X, y = load(split="train", return_X_y=True)
    accuracy = KNeighborsClassifier(1).fit(X, y).score(*load(split="test", return_X_y=True))
    assert 1 - accuracy == pytest.approx(error, abs=5e-5)


@pytest.mark.parametrize("load", [load_gunpoint, load_arrow_head])
def test_bad_parameters(load):
    with pytest.raises(ValueError, match=r"'split' parameter of load_.* Got 'TRAIN'"):
        load(split="TRAIN")
    with pytest.raises(ValueError, match="'return_X_y' parameter"):
        load(return_X_y="yes")


def test_ecg():
    ecg = load_ecg()
    assert ecg.data.shape == (1, 108_000)
    assert (ecg.sampling_frequency, ecg.units, ecg.channel_names) == (360.0, "mV", ["MLII"])
    assert checksum(ecg.data) == "875e3e9ce25f73f8"
    # the mean and deviation that SciPy's documentation states for this excerpt
    assert ecg.data.mean() == pytest.approx(-0.16510875, abs=1e-12)
    assert ecg.data.std() == pytest.approx(0.5992473991177294, abs=1e-12)
    assert "ODC-By" in ecg.DESCR


def test_a_caller_cannot_change_what_the_next_one_gets():
    X, _ = load_gunpoint(split="train", return_X_y=True)
    before = X[0, 0]
    X[:] = 0
    assert load_gunpoint(split="train").data[0, 0] == before


def test_data_are_small_and_their_terms_are_with_them():
    assert sum(path.stat().st_size for path in DATA.iterdir()) < 1_000_000
    readme = (DATA / "README.md").read_text(encoding="utf-8")
    for path in DATA.iterdir():
        assert path.name == "README.md" or f"`{path.name}`" in readme


def test_import_is_light():
    # scikit-learn loads pandas itself where it is installed: what skts adds to it is tested
    code = (
        "import sys, sklearn.utils; before = set(sys.modules); "
        "import skts.datasets as d; d.load_ecg(); d.make_random_walk(); "
        "heavy = {'numba', 'cupy', 'pandas', 'matplotlib', 'scipy.signal', 'scipy.stats'}; "
        "print(sorted(heavy & (set(sys.modules) - before)))"
    )
    root = str(Path(datasets.__file__).parents[2])
    done = subprocess.run(
        [sys.executable, "-c", code],
        capture_output=True,
        text=True,
        check=True,
        env={**os.environ, "PYTHONPATH": root},
    )
    assert done.stdout.strip() == "[]"


@pytest.mark.slow
@pytest.mark.parametrize(
    ("load", "name"), [(load_gunpoint, "GunPoint"), (load_arrow_head, "ArrowHead")]
)
def test_same_as_the_archive(load, name):
    if "SKTS_DATA" not in os.environ:
        pytest.skip("needs the data of SKTS_DATA")
    with np.load(Path(os.environ["SKTS_DATA"]) / "ucr" / f"{name}.npz") as archive:
        for split in ("train", "test"):
            X, y = load(split=split, return_X_y=True)
            np.testing.assert_array_equal(X.astype(np.float32), archive[f"X_{split}"])
            np.testing.assert_array_equal(y, archive[f"y_{split}"])
