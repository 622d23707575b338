"""Files written here come back as they were; broken ones are refused with file and line."""

import re

import numpy as np
import pytest

from skts.datasets import load_gunpoint, read_series, read_train_test

HEADER = "# a comment\n% another\n@problemName Test\n@timeStamps false\n"


@pytest.fixture
def read(tmp_path):
    """Write a text to a file of the given name and read it as series."""

    def write_and_read(name, text):
        path = tmp_path / name
        path.write_bytes(text.encode("latin-1") if isinstance(text, str) else text)
        return read_series(path)

    return write_and_read


def rows(X, y, delimiter, number=repr):
    return "".join(
        delimiter.join([str(label), *(number(float(value)) for value in series)]) + "\n"
        for series, label in zip(X, y, strict=True)
    )


@pytest.mark.parametrize(
    ("name", "delimiter"),
    [("A.tsv", "\t"), ("A.TSV", "\t"), ("A.txt", ","), ("A.txt", "  "), ("A_TRAIN", ",")],
)
def test_label_first_round_trip(read, name, delimiter):
    X, y = load_gunpoint(split="train", return_X_y=True)
    got_X, got_y = read(name, rows(X, y, delimiter))
    np.testing.assert_array_equal(got_X, X)
    np.testing.assert_array_equal(got_y, y)
    assert got_X.dtype == np.float64 and got_y.dtype == np.int64


def test_ts_round_trip(read):
    X, y = load_gunpoint(split="train", return_X_y=True)
    text = HEADER + "@univariate true\n@equalLength true\n@seriesLength 150\n"
    text += "@classLabel true 1 2\n@data\n\n"
    for series, label in zip(X, y, strict=True):
        text += ",".join(map(repr, series.tolist())) + f":{label}\n"
    got_X, got_y = read("GunPoint_TRAIN.ts", text)
    np.testing.assert_array_equal(got_X, X)
    np.testing.assert_array_equal(got_y, y)


def test_padding_and_missing_points_are_nan(read):
    X, y = read("A.tsv", "1\t0.5\tNaN\t2\n-1\t?\t1e-3\tNaN\n\n")
    np.testing.assert_array_equal(X, [[0.5, np.nan, 2], [np.nan, 1e-3, np.nan]])
    np.testing.assert_array_equal(y, [1, -1])
    X, _ = read("A.ts", HEADER + "@classLabel true a\n@data\n1,?,NaN:a\n")
    np.testing.assert_array_equal(X, [[1, np.nan, np.nan]])


@pytest.mark.parametrize(
    ("labels", "expected"),
    [
        (["1.0000000e+00", "2.0"], np.array([1, 2], dtype=np.int64)),
        (["1.5", "2"], np.array(["1.5", "2"])),
        (["up", "2"], np.array(["up", "2"])),
        (["1_0", "2"], np.array(["1_0", "2"])),
        (["1e300", "2"], np.array(["1e300", "2"])),
        (["nan", "2"], np.array(["nan", "2"])),
    ],
)
def test_labels(read, labels, expected):
    _, y = read("A.txt", "".join(f"{label} 0 1\n" for label in labels))
    assert y.dtype.kind == expected.dtype.kind
    np.testing.assert_array_equal(y, expected)


def test_multivariate(read):
    X, y = read(
        "A.ts",
        HEADER + "@univariate false\n@dimensions 2\n@classLabel true run walk\n@data\n"
        "1,2,3:4,5,6:run\n7,8,9:?,11,12:walk\n",
    )
    np.testing.assert_array_equal(X, [[[1, 2, 3], [4, 5, 6]], [[7, 8, 9], [np.nan, 11, 12]]])
    assert y.tolist() == ["run", "walk"]


def test_header_decides_between_2d_and_3d_for_one_channel(read):
    body = "@classLabel true a\n@data\n1,2,3:a\n"
    assert read("A.ts", HEADER + body)[0].shape == (1, 3)
    assert read("A.ts", HEADER + "@univariate true\n" + body)[0].shape == (1, 3)
    assert read("A.ts", HEADER + "@univariate false\n" + body)[0].shape == (1, 1, 3)
    assert read("A.ts", HEADER + body.replace(":a\n", ":4,5,6:a\n"))[0].shape == (1, 2, 3)


def test_unequal_lengths_are_a_list(read):
    header = HEADER + "@equalLength false\n@classLabel true 1\n@data\n"
    X, _ = read("A.ts", header + "1,2,3:1\n4,5:1\n")
    assert isinstance(X, list)
    assert [series.tolist() for series in X] == [[1, 2, 3], [4, 5]]
    X, _ = read("A.ts", header + "1,2,3:4,5,6:1\n7:8:1\n")
    assert [series.shape for series in X] == [(2, 3), (2, 1)]


@pytest.mark.parametrize(
    ("stated", "labels", "expected"),
    [
        ("1 2 3", ["2", "1"], [2, 1]),
        ("1.0 2e0", ["1.0", "2e0"], [1, 2]),
        ("1 01 1.0", ["1", "01", "1.0"], ["1", "01", "1.0"]),
        ("1 2 x", ["1", "2"], ["1", "2"]),
        ("1 2 02", ["1", "2"], ["1", "2"]),
    ],
)
def test_stated_labels_are_names(read, stated, labels, expected):
    """No two of them become one, and both files of a data set have labels of one type."""
    rows = "".join(f"1,2:{label}\n" for label in labels)
    _, y = read("A.ts", HEADER + f"@classLabel true {stated}\n@data\n{rows}")
    assert y.tolist() == expected
    text = "@relation r\n@attribute a numeric\n@attribute b numeric\n"
    text += f"@attribute c {{{stated.replace(' ', ',')}}}\n@data\n"
    _, y = read("A.arff", text + "".join(f"1,2,{label}\n" for label in labels))
    assert y.tolist() == expected


def test_unlabelled_and_regression(read):
    X, y = read("A.ts", HEADER + "@classLabel false\n@data\n1,2\n3,4\n")
    assert X.tolist() == [[1, 2], [3, 4]] and y is None
    X, y = read("A.ts", HEADER + "@targetLabel true\n@data\n1,2:1\n3,4:2\n")
    assert y.dtype == np.float64 and y.tolist() == [1.0, 2.0]


@pytest.mark.parametrize("turned", [False, True])
def test_headers_that_state_both_kinds_of_labels(read, turned):
    """What one tag denies, the other may have."""

    def header(classes, target):
        tags = [f"@classLabel {classes}\n", f"@targetLabel {target}\n"]
        return "".join(tags[::-1] if turned else tags) + "@data\n"

    _, y = read("A.ts", header("true a b", "false") + "1,2:a\n3,4:b\n")
    assert y.tolist() == ["a", "b"]
    X, y = read("A.ts", header("false", "true") + "1:0.5\n3:2\n")
    assert X.tolist() == [[1], [3]] and y.tolist() == [0.5, 2.0]
    X, y = read("A.ts", header("false", "false") + "1,2\n3,4\n")
    assert X.tolist() == [[1, 2], [3, 4]] and y is None
    with pytest.raises(ValueError, match="may be true, not both"):
        read("A.ts", header("true a b", "true") + "1,2:a\n")


@pytest.mark.parametrize("name", ["A.ts", "A.tsv", "A.txt", "A.arff"])
def test_labels_beyond_ascii(read, tmp_path, name):
    header = {"A.ts": "@classLabel true \u00e9 \u00e8\n@data\n"}
    header["A.arff"] = ARFF + "@attribute a real\n@attribute c {\u00e9,\u00e8}\n@data\n"
    text = {"A.ts": "1:\u00e9\n2:\u00e8\n", "A.arff": "1,\u00e9\n2,\u00e8\n"}
    text = header.get(name, "") + text.get(name, "\u00e9\t1\n\u00e8\t2\n")
    X, y = read(name, text.encode())
    assert X.tolist() == [[1], [2]] and y.tolist() == ["\u00e9", "\u00e8"]
    # in another encoding both would be the same
    with pytest.raises(ValueError, match=r"line \d+: .*not in UTF-8"):
        read(name, text.encode("latin-1"))


def test_headers_in_old_encodings(read):
    """Names that nobody is told are no reason to refuse a file."""
    head = "% caf\u00e9\n@relation caf\u00e9\n@attribute \u00fc real\n@attribute c {a,b}\n"
    X, y = read("A.arff", head + "@data\n% \u00fc\n1,a\n2,b\n")
    assert X.tolist() == [[1], [2]] and y.tolist() == ["a", "b"]


def test_tags_in_any_case_byte_order_mark_and_old_encodings(read):
    text = "\u00ef\u00bb\u00bf# caf\u00e9\r\n@CLASSLABEL TRUE a\r\n@Data\r\n# \u00fc\r\n1,2:a\r\n"
    X, y = read("A.ts", text)
    assert X.tolist() == [[1, 2]] and y.tolist() == ["a"]


ARFF = "% a comment\n@relation Test\n"


def test_arff_round_trip(read):
    X, y = load_gunpoint(split="train", return_X_y=True)
    text = ARFF + "".join(f"@attribute att{k} numeric\n" for k in range(150))
    text += "@ATTRIBUTE target {1,2}\n\n@data\n" + rows_arff(X, y)
    got_X, got_y = read("GunPoint_TRAIN.arff", text)
    np.testing.assert_array_equal(got_X, X)
    np.testing.assert_array_equal(got_y, y)
    assert got_X.dtype == np.float64 and got_y.dtype == np.int64


def rows_arff(X, y):
    return "".join(
        ",".join(map(repr, series.tolist())) + f",{label}\n"
        for series, label in zip(X, y, strict=True)
    )


def test_arff_with_missing_points_texts_and_numbers_as_labels(read):
    head = ARFF + "@attribute a real\n@attribute b integer\n"
    X, y = read("A.arff", head + "@attribute c {up,down}\n@data\n1,?,up\n?,4,down\n")
    np.testing.assert_array_equal(X, [[1, np.nan], [np.nan, 4]])
    assert y.tolist() == ["up", "down"]
    X, y = read("A.ARFF", head + "@attribute c numeric\n@data\n1,2,0.5\n3,4,2\n")
    assert y.dtype == np.float64 and y.tolist() == [0.5, 2.0]


def test_arff_with_channels(read):
    head = ARFF + "@attribute all relational\n@attribute t0 numeric\n@attribute t1 numeric\n"
    head += "@attribute t2 numeric\n@end all\n@attribute class {a,b}\n@data\n"
    X, y = read("A.arff", head + "'1,2,3\\n4,5,6',a\n'7,8,9\\n?,11,12',b\n")
    np.testing.assert_array_equal(X, [[[1, 2, 3], [4, 5, 6]], [[7, 8, 9], [np.nan, 11, 12]]])
    assert y.tolist() == ["a", "b"]
    with pytest.raises(ValueError, match="different channels or points"):
        read("A.arff", head + "'1,2,3\\n4,5,6',a\n'7,8,9',b\n")


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("@attribute a numeric\n@data\n1\n", "expected attributes for the points and one"),
        ("@attribute a numeric\n@attribute c {x}\n@data\n", "holds no series"),
        ("@attribute a {x}\n@attribute c {x}\n@data\nx,x\n", "points are attributes of numbers"),
        ("@attribute a numeric\n@attribute c {x}\n@data\n1,y\n", "cannot be read as ARFF: .*y"),
        ("@attribute a numeric\n@attribute c string\n@data\n1,y\n", "cannot be read as ARFF"),
        ("@attribute a numeric\n@attribute c {x}\n@data\n1,2,x\n", "cannot be read as ARFF"),
    ],
)
def test_bad_arff(read, text, message):
    with pytest.raises(ValueError, match=message):
        read("A.arff", ARFF + text)


CLASSES = "@classLabel true a b\n@data\n"


@pytest.mark.parametrize(
    ("name", "text", "line", "message"),
    [
        ("A.tsv", "1\t2\t3\n1\t2\tx\n", 2, "point 2 is 'x', not a number"),
        ("A.tsv", "1\t2\t1_0\n", 1, "point 2 is '1_0', not a number"),
        ("A.tsv", "1\t2\t\t3\n", 1, "point 2 is '', not a number"),
        ("A.tsv", "1\t2\t3\n\n1\t2\n", 3, "1 point, but the lines before have 2"),
        ("A.tsv", "1,2,3\n", 1, "expected a label and points between tabs, found one field"),
        ("A.tsv", "\t2\t3\n", 1, "the label is missing"),
        ("A.txt", "1 2 3\n1\n", 2, "between commas or white space, found one field"),
        ("A.txt", "1,2,3\n1,2,?3\n", 2, "point 2 is '?3', not a number"),
        ("A.ts", "1,2:a\n", 1, "the header has no @data yet"),
        ("A.ts", "@data\n1,2:a\n", 1, "@data comes before any @classLabel"),
        ("A.ts", "@timeStamps true\n" + CLASSES + "(0,1):a\n", 1, "time stamps cannot be read"),
        ("A.ts", CLASSES + "(0,1),(1,2):a\n", 3, "time stamps cannot be read"),
        ("A.ts", CLASSES + "1,2:a\n1,2:c\n", 4, "label 'c' is not among those of @classLabel"),
        ("A.ts", CLASSES + "a\n", 3, "expected a series, a colon and a label"),
        ("A.ts", CLASSES + "1,2:a\n1,zwei:a\n", 4, "point 2 is 'zwei', not a number"),
        ("A.ts", CLASSES + "1,2:3:a\n", 3, "the channels have different lengths, [2, 1]"),
        ("A.ts", CLASSES + "1,2:a\n1,2:3,4:a\n", 4, "2 channels, but the lines before: 1"),
        ("A.ts", "@univariate true\n" + CLASSES + "1:2:a\n", 4, "header says @univariate true"),
        ("A.ts", "@dimensions 3\n" + CLASSES + "1:2:a\n", 4, "the header says @dimensions 3"),
        ("A.ts", "@seriesLength 3\n" + CLASSES + "1,2:a\n", 4, "header says @seriesLength 3"),
        (
            "A.ts",
            "@equalLength true\n" + CLASSES + "1,2:a\n1:a\n",
            5,
            "1 point after series of 2, but the header says @equalLength true",
        ),
        ("A.ts", "@univariate maybe\n" + CLASSES, 1, "must be followed by true or false"),
        ("A.ts", "@dimensions many\n" + CLASSES, 1, "must be followed by one positive integer"),
        ("A.ts", "@targetLabel true\n@data\n1,2:x\n", 3, "the target is 'x', not a number"),
    ],
)
def test_malformed_lines(read, tmp_path, name, text, line, message):
    where = f"{tmp_path / name}, line {line}: "
    with pytest.raises(ValueError, match=re.escape(where) + ".*" + re.escape(message)):
        read(name, text)


@pytest.mark.parametrize(
    ("name", "text", "message"),
    [
        ("A.tsv", "\n", "the file holds no series"),
        ("A.ts", CLASSES, "the file holds no series"),
        ("A.ts", "@problemName A\n", "must end with @data"),
        ("A.csv", "1 2 3\n", "must end in .ts, .tsv, .txt or .arff"),
        ("A.arff", "1 2 3\n", "cannot be read as ARFF"),
    ],
)
def test_malformed_files(read, tmp_path, name, text, message):
    with pytest.raises(ValueError, match=re.escape(str(tmp_path / name)) + ".*" + message):
        read(name, text)


@pytest.mark.parametrize("encoding", ["utf-16", "utf-16-le", "utf-16-be", "utf-32"])
@pytest.mark.parametrize("name", ["A.ts", "A.tsv", "A.txt", "A.arff", "A"])
def test_text_in_other_units(tmp_path, name, encoding):
    path = tmp_path / name
    path.write_text("@relation a\n" + CLASSES + "1,2:a\n", encoding=encoding)
    with pytest.raises(ValueError, match=re.escape(f"{path} is not text in UTF-8; it may be in")):
        read_series(path)


def test_absent_file(tmp_path):
    with pytest.raises(FileNotFoundError, match=r"absent\.ts"):
        read_series(tmp_path / "absent.ts")


@pytest.mark.parametrize("subfolder", [".", "A"])
def test_train_test(tmp_path, subfolder):
    folder = tmp_path / subfolder
    folder.mkdir(exist_ok=True)
    (folder / "A_TRAIN.tsv").write_text("1\t0\t1\n2\t2\t3\n")
    (folder / "A_TEST.ts").write_text("@classLabel true 1 2\n@data\n4,5:2\n")
    X_train, X_test, y_train, y_test = read_train_test(tmp_path, "A")
    assert X_train.tolist() == [[0, 1], [2, 3]] and X_test.tolist() == [[4, 5]]
    assert y_train.tolist() == [1, 2] and y_test.tolist() == [2]


def test_train_test_says_what_is_missing(tmp_path):
    (tmp_path / "A_TRAIN.txt").write_text("1 0 1\n")
    with pytest.raises(FileNotFoundError, match="There is no A_TEST"):
        read_train_test(tmp_path, "A")


def labelled(ending, labels):
    """A file of series of two points with these labels."""
    head, row = {
        "tsv": ("", "{}\t0\t1\n"),
        "txt": ("", "{} 0 1\n"),
        "ts": (f"@classLabel true {' '.join(labels)}\n@data\n", "0,1:{}\n"),
        "arff": (
            "@relation r\n@attribute a real\n@attribute b real\n"
            f"@attribute c {{{','.join(labels)}}}\n@data\n",
            "0,1,{}\n",
        ),
    }[ending]
    return head + "".join(map(row.format, labels))


@pytest.mark.parametrize(
    ("train", "test", "expected"),
    [
        (["1", "2"], ["1", "x"], (["1", "2"], ["1", "x"])),
        (["a", "2"], ["1", "2"], (["a", "2"], ["1", "2"])),
        (["1", "2.0"], ["2", "3"], ([1, 2], [2, 3])),
    ],
)
@pytest.mark.parametrize("endings", [("tsv", "tsv"), ("txt", "tsv"), ("ts", "ts"), ("tsv", "arff")])
def test_labels_of_both_files_are_of_one_type(tmp_path, train, test, expected, endings):
    for part, ending, labels in zip(("TRAIN", "TEST"), endings, (train, test), strict=True):
        (tmp_path / f"A_{part}.{ending}").write_text(labelled(ending, labels))
    found = read_train_test(tmp_path, "A")
    assert (found.y_train.tolist(), found.y_test.tolist()) == expected


def test_targets_and_missing_labels_leave_the_other_file_as_it_is(tmp_path):
    (tmp_path / "A_TRAIN.txt").write_text("1 0 1\n")
    (tmp_path / "A_TEST.ts").write_text("@classLabel false\n@data\n4,5\n")
    (tmp_path / "B_TRAIN.txt").write_text("x 0 1\n")
    (tmp_path / "B_TEST.ts").write_text("@targetLabel true\n@data\n4,5:2\n")
    found = read_train_test(tmp_path, "A")
    assert found.y_train.tolist() == [1] and found.y_test is None
    found = read_train_test(tmp_path, "B")
    assert found.y_train.tolist() == ["x"]
    assert found.y_test.dtype == np.float64 and found.y_test.tolist() == [2]
