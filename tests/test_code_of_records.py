"""Which changes of code make a record older, and which do not."""

from __future__ import annotations

import importlib
import shutil
import subprocess
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]

if not (ROOT / "benchmarks").is_dir():
    pytest.skip("the benchmarks are not here", allow_module_level=True)

#: A package of two families and a benchmark of each, as small as can be.
TREE = {
    "skts/__init__.py": "from .neighbors import Search as Search\n"
    "from .motifs import find as find\n",
    "skts/_config.py": "LIMIT = 3\n",
    "skts/_unused.py": "LIMIT = 3\n",
    "skts/neighbors.py": "from .engines import Matrix, run\n\n\nclass Search:\n    pass\n",
    "skts/motifs.py": "def find():\n    from .engines import Join\n\n    return Join\n",
    "skts/engines/__init__.py": "from .core.executor import run as run\n"
    "from .families.elastic.dtw import Matrix as Matrix\n"
    "from .families.profile.join import Join as Join\n",
    "skts/engines/core/executor.py": "from ..._config import LIMIT\n\n\ndef run():\n    pass\n",
    "skts/engines/numba/__init__.py": "from .elastic.tiles import T\n"
    "from .profile.tiles import U\n",
    "skts/engines/cupy/__init__.py": "from .elastic.tiles import T\n",
    "skts/engines/cupy/include/warp.cuh": "int lanes = 32;\n",
    "skts/engines/cupy/elastic/tiles.py": 'FILE = "elastic/dtw.cu"\n',
    "skts/engines/cupy/elastic/dtw.cu": '#include "include/warp.cuh"\nint a = 1; // a\n',
    "skts/engines/numba/elastic/tiles.py": '"""Tiles."""\n\nT = 1\n',
    "skts/engines/numba/profile/tiles.py": "U = 1\n",
    "skts/engines/families/elastic/dtw.py": 'class Matrix:\n    """One."""\n\n    method = "dtw"\n',
    "skts/engines/families/profile/join.py": 'class Join:\n    method = "join"\n',
    "benchmarks/dtw.py": "from benchmarks._help import Search\n",
    "benchmarks/_help.py": "from skts import Search\n",
    "benchmarks/profile/gpu_join.py": "from skts.engines import Join\n",
    "benchmarks/several.py": "import sys\n\nprint(sys.executable)\n",
}
MORE = "\n\ndef more():\n    return 1\n\n\n__all__ = ['run', 'more']\n"
FOLDERS = "skts/engines/families/elastic", "skts/engines/numba/elastic"


def save(root, texts):
    for path, text in texts.items():
        (root / path).parent.mkdir(parents=True, exist_ok=True)
        (root / path).write_text(text)


@pytest.fixture
def code(monkeypatch):
    monkeypatch.syspath_prepend(str(ROOT))
    return importlib.import_module("benchmarks._code")


@pytest.fixture
def changes(code, monkeypatch, tmp_path):
    """Return what finds the changes of a record when files are written anew, or removed."""

    def find(texts, script="dtw", folders=FOLDERS, before=None):
        roots = tmp_path / "then", tmp_path / "here"
        for root in roots:
            shutil.rmtree(root, ignore_errors=True)
            save(root, TREE | (before or {}))
        then = code.Sources.here(roots[0])
        monkeypatch.setattr(code, "at", lambda root, commit: then if commit == "c" else None)
        save(roots[1], {path: text for path, text in texts.items() if text is not None})
        for path in (path for path, text in texts.items() if text is None):
            (roots[1] / path).unlink()
        sources = {folder: then.digest(folder) for folder in folders}
        record = {"commit": "c", "command": f"python -m benchmarks.{script}", "sources": sources}
        return list(code.changes(record, roots[1]))

    return find


ON_CUPY = "skts/engines/families/elastic", "skts/engines/cupy/elastic"


@pytest.mark.parametrize(
    ("path", "text"),
    [
        ("skts/engines/numba/elastic/tiles.py", '"""Other."""\n# why\nT = (\n    1)\n'),
        ("skts/engines/numba/elastic/tiles.py", "T = 1\n"),
        ("skts/engines/families/elastic/dtw.py", 'class Matrix:  # a\n    method = "dtw"\n'),
        ("skts/engines/core/executor.py", "# b\n" + TREE["skts/engines/core/executor.py"]),
        ("skts/engines/core/executor.py", TREE["skts/engines/core/executor.py"] + MORE),
    ],
)
def test_words_and_functions_that_nothing_called_leave_a_record_as_it_is(changes, path, text):
    assert changes({path: text}) == []


def test_plain_code_that_checks_answers_leaves_a_record_as_it_is(changes):
    imports = "from ..host import plain\n" + TREE["skts/engines/core/executor.py"]
    before = {"skts/engines/core/executor.py": imports, "skts/engines/host/plain.py": "A = 1\n"}
    assert changes({"skts/engines/host/plain.py": "A = 2\n"}, before=before) == []


def test_plain_code_is_called_by_nothing_but_checks():
    """Files of the package import it within functions, which are those that check."""
    importing = {
        path.relative_to(ROOT).as_posix(): line
        for path in (ROOT / "skts").rglob("*.py")
        for line in path.read_text().splitlines()
        if line.strip().startswith("from") and line.endswith("host import plain")
    }
    assert len(importing) > 5
    assert all(line.startswith("    ") for line in importing.values()), importing
    families = "skts/engines/families/"
    assert all(path.startswith(families) for path in importing), importing


@pytest.mark.parametrize(
    ("path", "text"),
    [
        ("skts/engines/numba/elastic/tiles.py", '"""Tiles."""\n\nT = 2\n'),
        ("skts/engines/numba/elastic/tiles.py", '"""Tiles."""\n\nS = 1\n'),
        ("skts/engines/numba/elastic/tiles.py", None),
        ("skts/engines/numba/elastic/more.py", "A = 1\n"),
        ("skts/engines/families/elastic/dtw.py", 'class Matrix:\n    method = "other"\n'),
        ("skts/engines/core/executor.py", TREE["skts/engines/core/executor.py"] + "\n\nrun()\n"),
        ("skts/engines/numba/__init__.py", TREE["skts/engines/numba/__init__.py"] + "A = 1\n"),
        ("skts/_config.py", "LIMIT = 4\n"),
        ("skts/neighbors.py", TREE["skts/neighbors.py"].replace("pass", "a = 1")),
    ],
)
def test_code_that_a_record_ran_makes_it_older(changes, path, text):
    """Of the estimator of its script, the family, the engine and what all share."""
    assert path in changes({path: text})


def test_a_name_that_comes_from_elsewhere_makes_a_record_older(changes):
    moved = {
        "skts/__init__.py": "from .other import Search as Search\n",
        "skts/other.py": TREE["skts/neighbors.py"],
    }
    assert changes(moved) == ["skts/neighbors.py", "skts/other.py"]


@pytest.mark.parametrize(
    ("path", "text"),
    [
        ("skts/engines/cupy/elastic/dtw.cu", '#include "include/warp.cuh"\nint a = 2; // a\n'),
        ("skts/engines/cupy/include/warp.cuh", "int lanes = 16;\n"),
    ],
)
def test_cuda_that_a_record_ran_makes_it_older(changes, path, text):
    assert changes({path: text}, folders=ON_CUPY) == [path]
    assert changes({path: text}) == []
    words = f"/* an\n a */\n    {TREE[path]}\n\n// other\n"
    assert changes({path: words}, folders=ON_CUPY) == []


def test_code_of_others_leaves_a_record_as_it_is(changes):
    others = {
        "skts/engines/numba/profile/tiles.py": "U = 2\n",
        "skts/engines/families/profile/join.py": 'class Join:\n    method = "other"\n',
        "skts/motifs.py": "A = 1\n",
        "skts/_unused.py": "LIMIT = 4\n",
        "benchmarks/dtw.py": "from skts import Search\n",
    }
    assert changes(others) == []
    folders = "skts/engines/families/profile", "skts/engines/numba/profile"
    found = changes(others, "profile.gpu_join", folders)
    assert found == [
        "skts/engines/families/profile/join.py",
        "skts/engines/numba/profile/tiles.py",
    ]


def test_a_family_of_which_a_family_makes_use_belongs_to_a_record(changes):
    """As subsequence search computes warping distances."""
    join = TREE["skts/engines/families/profile/join.py"]
    before = {"skts/engines/families/profile/join.py": f"from ..elastic.dtw import Matrix\n{join}"}
    folders = "skts/engines/families/profile", "skts/engines/numba/profile"
    for path in ("skts/engines/numba/elastic/tiles.py", "skts/engines/families/elastic/dtw.py"):
        text = TREE[path] + "A = 1\n"
        assert changes({path: text}, "profile.gpu_join", folders, before) == [path]
        assert changes({path: text}, "profile.gpu_join", folders) == []


@pytest.mark.parametrize("folders", [FOLDERS, (*FOLDERS, "skts")])
@pytest.mark.parametrize("script", ["several", "gone", "cases --seed 3"])
def test_of_scripts_that_start_others_all_that_builds_on_the_family_counts(
    changes, script, folders
):
    """So it is where the script is not there, or no benchmark."""
    for path in ("skts/neighbors.py", "skts/engines/numba/elastic/tiles.py", "skts/_config.py"):
        assert changes({path: TREE[path] + "A = 2\n"}, script, folders) == [path]
    for path in ("skts/motifs.py", "skts/engines/numba/profile/tiles.py", "skts/_unused.py"):
        assert changes({path: TREE[path] + "A = 2\n"}, script, folders) == []


def test_of_scripts_of_no_family_that_start_others_all_of_the_package_counts(changes):
    layers = ("families/elastic", "families/profile", "numba/elastic", "numba/profile")
    folders = (*(f"skts/engines/{layer}" for layer in layers), "skts")
    for path in ("skts/_unused.py", "skts/motifs.py", "skts/__init__.py"):
        assert changes({path: TREE[path] + "A = 2\n"}, "several", folders) == [path]


def test_in_doubt_a_record_is_older(code, changes, tmp_path):
    """Where a commit is not known, or is not the one that was measured."""
    changes({})
    root, known = tmp_path / "here", code.Sources.here(tmp_path / "here").digest(FOLDERS[0])
    record = {"commit": "c", "command": "python -m benchmarks.dtw", "sources": {FOLDERS[0]: known}}
    assert list(code.changes(record, root)) == []
    for commit in ("c+changes", "other", None):
        assert list(code.changes(record | {"commit": commit}, root))
    assert list(code.changes(record | {"sources": {FOLDERS[0]: "0" * 16}}, root))
    assert list(code.changes(record | {"sources": {"skts/none": known}}, root))
    command = record["command"] + " --commit other --output a.json"
    assert list(code.changes(record | {"command": command}, root))


@pytest.mark.parametrize(
    ("one", "other", "same"),
    [
        ('def f():\n    """A."""\n    return 1\n', "def f(): return 1  # b\n", True),
        ("class A:\n    '''A.'''\n    b = 1\n", "class A:\n    b = 1\n", True),
        ('x = """A."""\n', 'x = """B."""\n', False),
        ("x = 1\n", "x = 1.0\n", False),
        ("x = [1, 2]\n", "x = [\n    1,  # a\n    2,\n]\n", True),
        ("def f(a): return a\n", "def f(b): return b\n", False),
        ("x = '# a'\n", "x = '# b'\n", False),
    ],
)
def test_python_is_compared_without_words_and_form(code, one, other, same):
    assert (code.code_of_python(one) == code.code_of_python(other)) is same


@pytest.mark.parametrize(
    ("text", "nothing"),
    [
        ("def more(): return 1\n{}", True),
        ("{}def more(): return a()\n__all__ = ['a', 'more']\n", True),
        ("{}@kept\ndef more(): return 1\n", False),
        ("{}def more(): return 1\nmore()\n", False),
        ("{}def __getattr__(name): return 1\n", False),
        ("{}class More: pass\n", False),
        ("{}import more\n", False),
        ("{}def a(): return 2\n", False),
        ("{}def len(x): return 2\n", False),
        ("{}def path(x): return 2\n", False),
    ],
)
def test_functions_that_nothing_knew_change_nothing(code, text, nothing):
    before = "import os.path as path\ndef a(): return len([])\n__all__ = ['a']\n"
    assert code.only_adds_names(text.format(before), before) is nothing


@pytest.mark.parametrize(
    ("one", "other", "same"),
    [
        ("int a; // b\n\n", "  int a;\n", True),
        ("/* b\n c */ int a;", "int a;", True),
        ("int a;", "int  a;", False),
        ("#define A 1 \\\n\nint b;", "#define A 1 \\\nint b;", False),
        ('s = "// a";', 's = "// b";', False),
        ("c = '\"'; // a", "c = '\"'; // b", True),
        ('s = "\\"// a";', 's = "\\"// b";', False),
        ("// a \\\nint b;\nint c;", "int c;", True),
        ("a /**/ b", "ab", False),
        ("a / b;", "a // b;", False),
        ("24 * a", "24.0 * a", False),
        ('R"(// a)"', 'R"(// b)"', False),
    ],
)
def test_cuda_is_compared_without_comments(code, one, other, same):
    assert (code.code_of_cuda(one) == code.code_of_cuda(other)) is same


@pytest.mark.skipif(shutil.which("git") is None, reason="git is not here")
def test_sources_of_a_commit_are_those_of_its_day(code, tmp_path):
    def git(*words):
        own = "-c", "user.name=a", "-c", "user.email=a@b.c"
        command = ["git", "-C", tmp_path, *own, *words]
        done = subprocess.run(command, check=True, capture_output=True)
        return done.stdout.decode().strip()

    save(tmp_path, TREE | {"skts/data.txt": "not code"})
    git("init")
    git("add", ".")
    git("commit", "-m", "one")
    commit = git("rev-parse", "HEAD")
    before = code.Sources.here(tmp_path)
    path = "skts/engines/numba/elastic/tiles.py"
    save(tmp_path, {path: "T = 'of this tree alone, in none of the other tests'\n"})
    git("commit", "-am", "two")
    then, now = code.at(tmp_path, commit), code.at(tmp_path, "HEAD")
    assert then.blobs == before.blobs and now.blobs == code.Sources.here(tmp_path).blobs
    code._contents.pop(now.blobs[path])
    assert now.content(path) == (tmp_path / path).read_bytes()
    assert then.digest(FOLDERS[1]) == before.digest(FOLDERS[1]) != now.digest(FOLDERS[1])
    assert code.at(tmp_path, "0" * 40) is None and code.at(tmp_path / "skts", "none") is None


def test_digests_of_commits_are_those_of_records(code):
    records = importlib.import_module("benchmarks._records")
    here = code.Sources.here(ROOT)
    for folder in ("skts", "skts/engines/cupy", "skts/engines/families/elastic"):
        assert here.digest(folder) == records.digest(ROOT / folder)
    assert here.digest("skts/none") is None


def test_every_commit_of_a_record_is_known(code, changes, tmp_path):
    """Also of one of several commands, which a semicolon ends."""
    assert changes({}, script="dtw --commit c; python -m benchmarks.dtw --commit c") == []
    assert changes({}, script="dtw --commit d; python -m benchmarks.dtw --commit c") == [
        "commit d, which is not known"
    ]


REFUSES = "    if not LIMIT:\n        raise ValueError(LIMIT)\n"


@pytest.mark.parametrize(
    ("added", "older"),
    [
        (REFUSES, False),
        (REFUSES.replace("not LIMIT", "isinstance(LIMIT, int) and any(a for a in LIMIT)"), False),
        (REFUSES.replace("not LIMIT", "LIMIT.any()"), True),
        (REFUSES.replace("not LIMIT", "OTHER(LIMIT)"), True),
        (REFUSES.replace("not LIMIT", "(a := LIMIT)"), True),
        (REFUSES + "    else:\n        LIMIT()\n", True),
        ("    if not LIMIT:\n        LIMIT()\n", True),
    ],
)
def test_what_is_refused_now_was_not_in_a_record(changes, added, older):
    """Names that it needs may be imported; nothing else of the file has changed."""
    path = "skts/engines/core/executor.py"
    text = "from ..._config import OTHER\n" + TREE[path].replace("    pass\n", added + "    pass\n")
    assert bool(changes({path: text})) == older
    if not older:
        assert changes({path: text.replace("..._config import OTHER", "numpy import OTHER")}) == [
            path
        ]


def test_no_benchmark_draws_or_reads_files():
    names = "plotting", "read_series", "read_train_test", "fetch_ucr"
    for path in (ROOT / "benchmarks").rglob("*.py"):
        found = [name for name in names if name in path.read_text()]
        assert not found or path.name == "_code.py", (path, found)
