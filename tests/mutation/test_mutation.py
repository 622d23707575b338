"""The mutants are what they say, and those that are excused still exist."""

from __future__ import annotations

import ast
import json
import re
import subprocess
import sys
import time
from pathlib import Path
from types import SimpleNamespace

import pytest

from skts.engines.cupy import programs
from tests.mutation.__main__ import known_answers
from tests.mutation.concern import (
    BUDGET,
    COUNTED,
    EACH,
    FUZZED,
    OF_CONSTANTS,
    Part,
    Recorder,
    Tables,
    concerned,
    group_of,
)
from tests.mutation.equivalent import EQUIVALENT, names_of
from tests.mutation.judge import modes_of, settle, ways_of
from tests.mutation.mutants import cuda_functions, draw, draw_from_each, mutants_of
from tests.mutation.parallel import work
from tests.mutation.record import keep
from tests.mutation.results import load
from tests.mutation.sandbox import OutOfTime

ROOT = Path(__file__).parents[2]

PYTHON = '''"""A text with 1 + 1."""
__all__ = ["f"]
LIMIT = 2.0**-40


def f(x: int, i: int = 0) -> int:
    """Say 2."""
    if not x <= 3 and i in (5,):
        raise ValueError(f"{x + 1} is not 7")
    x[i] += min(x, -i)
    return x.searchsorted(i, side="left")  # 9
'''
CUDA = """// 1 + 1
#include "a.cuh"
constexpr int K = 3;
template <int N, bool B = true>
__global__ void f(const float* __restrict__ x, int n) {
    const T* y = x + (long long)n * 0x10;
    for (int i = 0; i < n; ++i) y = fmaxf(*y, -g<N, float>(2.5f)) && static_cast<int>(y[i]);
}
"""


def changes(tmp_path, name, source):
    (tmp_path / name).write_text(source)
    return {(m.before, m.after, m.function) for m in mutants_of(tmp_path, name)}


def test_python(tmp_path):
    assert changes(tmp_path, "a.py", PYTHON) == {
        ("2.0", "4.0", ""),
        ("**", "*", ""),
        ("40", "41", ""),
        ("40", "39", ""),
        ("0", "1", "f"),
        ("not x <= 3 and i in (5,)", "not (not x <= 3 and i in (5,))", "f"),
        ("not", "", "f"),
        ("<=", "<", "f"),
        ("<=", ">=", "f"),
        ("3", "4", "f"),
        ("3", "2", "f"),
        ("and", "or", "f"),
        ("in", "not in", "f"),
        ("5", "6", "f"),
        ("5", "4", "f"),
        ('raise ValueError(f"{x + 1} is not 7")', "pass", "f"),
        ("x[i] += min(x, -i)", "pass", "f"),
        ("+=", "-=", "f"),
        ("i", "i - 1", "f"),
        ("min", "max", "f"),
        ("-", "", "f"),
        ('"left"', "'right'", "f"),
    }


def test_cuda(tmp_path):
    assert changes(tmp_path, "a.cu", CUDA) == {
        ("+", "-", "f"),
        ("*", "/", "f"),
        ("0x10", "0x8", "f"),
        ("0", "1", "f"),
        ("<", "<=", "f"),
        ("++", "--", "f"),
        ("fmaxf", "fminf", "f"),
        ("2.5f", "5.0f", "f"),
        ("&&", "||", "f"),
    }


STRUCTS = """
template <typename T, int N = sizeof(T) / 4>
struct alignas(16) Pair : Before<N> {
    T sum() const { return first + second; }
};
__device__ void share(double (&sums)[4], int lane) { sums[lane] *= 2.0; }
extern __global__ void __launch_bounds__(128) gather(Pair<int>* pairs) { share(pairs->sums, 1); }
"""


def test_changes_of_a_cuda_source_have_the_name_of_the_function_or_struct_around_them(tmp_path):
    (tmp_path / "a.cu").write_text(STRUCTS)
    assert [(m.before, m.function) for m in mutants_of(tmp_path, "a.cu")] == [
        ("+", "Pair"), ("*=", "share"), ("2.0", "share"), ("1", "gather")
    ]  # fmt: skip
    names = cuda_functions(STRUCTS)
    assert names["gather"] == {"share", "pairs", "sums"}
    assert list(names) == ["Pair", "share", "gather"]
    wrong = {"if", "for", "int", "float", "double", "unsigned", "alignas", "sizeof", "T", "V", ""}
    for file in (ROOT / "skts/engines/cupy").rglob("*.cu*"):
        assert not wrong & set(cuda_functions(file.read_text()))


@pytest.mark.parametrize("module", ["core/plan.py", "core/certify.py", "cupy/elastic/dtw.py"])
def test_mutants_parse_and_differ_from_the_source(module):
    source = (ROOT / "skts/engines" / module).read_text()
    mutants = mutants_of(ROOT, f"skts/engines/{module}")
    assert len({mutant.key for mutant in mutants}) == len(mutants) > 50
    for mutant in draw(mutants, 1)[:25]:
        changed = mutant.apply(source)
        assert source[mutant.start : mutant.stop] == mutant.before
        assert ast.dump(ast.parse(changed)) != ast.dump(ast.parse(source))


def test_the_order_is_that_of_the_seed_whatever_else_is_drawn():
    memory, certify = (mutants_of(ROOT, f"skts/engines/core/{n}.py") for n in ("plan", "certify"))
    assert draw(memory, 1) == draw(memory[::-1], 1) != draw(memory, 2)
    together = draw(memory + certify, 1)
    assert [m for m in together if m.module.endswith("core/plan.py")] == draw(memory, 1)


@pytest.mark.parametrize("module", EQUIVALENT)
def test_excused_mutants_exist(module):
    files = sorted((ROOT / module).iterdir()) if module.endswith("/") else [ROOT / module]
    names = [f.relative_to(ROOT).as_posix() for f in files if f.suffix in (".py", ".cu", ".cuh")]
    mutants = [mutant for name in names for mutant in mutants_of(ROOT, name)]
    for function, text, changed, reason in EQUIVALENT[module]:
        assert reason.strip()
        here = [m for m in mutants if (m.function, m.text) == (function, text)]
        there = {name for mutant in here for name in names_of(mutant)}
        assert there, f"{module}: no mutant is on the line {text!r} any more"
        assert set(changed or ()) <= there, f"{module}: {text!r} does not hold {changed}"


def test_each_module_stands_in_the_table_once():
    text = (ROOT / "tests/mutation/equivalent.py").read_text()
    assert len(re.findall(r'^    _[EN] \+ "', text, re.MULTILINE)) == len(EQUIVALENT)


def test_every_module_has_its_share():
    modules = ("core/plan.py", "core/certify.py", "cupy/profile/join.cu", "cupy/include/groups.cuh")
    there = [mutants_of(ROOT, f"skts/engines/{name}") for name in modules]
    drawn = draw_from_each(there, 40, 1)
    shares = [sum(m.module.endswith(name) for m in drawn) for name in modules]
    assert sum(shares) == len(drawn) == len(set(drawn)) == 40
    assert min(shares) >= 1
    assert sorted(shares) == [n for _, n in sorted(zip(map(len, there), shares, strict=True))]
    for mutants, n in zip(there, shares, strict=True):  # the first ones, whatever the sample
        assert draw(mutants, 1)[:n] == [m for m in drawn if m in set(mutants)]
    everything = draw_from_each(there, 10**6, 1)
    assert len(everything) == sum(map(len, there))


def test_results_follow_a_module_that_gets_another_name(tmp_path):
    for name in ("old.py", "new.py"):
        (tmp_path / name).write_text(PYTHON)
    old, new = (mutants_of(tmp_path, name) for name in ("old.py", "new.py"))
    lines = [{"key": m.key, **vars(m), "fate": f"fate {i}"} for i, m in enumerate(old)]
    paths = [tmp_path / "1.jsonl", tmp_path / "2.jsonl", tmp_path / "none.jsonl"]
    paths[0].write_text("".join(json.dumps(line) + "\n" for line in lines))
    paths[1].write_text(json.dumps(lines[3] | {"fate": "later"}) + "\n")
    fates = [f"fate {i}" for i in range(len(old))]
    fates[3] = "later"
    assert [load(paths, old)[m.key]["fate"] for m in old] == fates
    found = load(paths, new)
    assert [found[m.key]["fate"] for m in new] == fates
    assert {result["module"] for result in found.values()} == {"new.py"}
    # which of two equal lines is it?
    twice = [*new, *(m for m in mutants_of(tmp_path, "old.py"))]
    assert set(load(paths, twice)) == {m.key for m in old}


def test_a_table_says_which_tests_concern_a_function():
    def entry(seconds, functions, programs=()):
        return {"seconds": seconds, "functions": list(functions), "programs": list(programs)}

    cuda = "skts/engines/cupy"
    module = "skts/engines/core/plan.py"
    table = {
        "a.py::test_slow[1]": entry(3.0, [f"{module}:f"]),
        "a.py::test_fast[1]": entry(0.1, [f"{module}:f"]),
        "a.py::test_fast[2]": entry(0.2, [f"{module}:f"]),
        "a.py::test_other": entry(0.1, [f"{module}:g"]),
        "a.py::test_forever": entry(1e3, [f"{module}:f"]),
        "a.py::test_ctrl_c": entry(0.1, [f"{module}:f"]),
    }
    names = [name for name, _ in concerned(table, ROOT, module, "f", "interpreted")]
    assert names == ["a.py::test_fast[1]", "a.py::test_fast[2]", "a.py::test_slow[1]"]
    # a header concerns whoever includes it; programs that hold it are compiled, each once
    join = [f"{cuda}/profile/join.cu:join"]
    table = {
        "b.py::test_1": entry(0.1, join, [f"{join[0]}<1>", f"{cuda}/elastic/dtw.cu:dtw<1>"]),
        "b.py::test_2": entry(0.2, join, [f"{join[0]}<1>", f"{join[0]}<2>"]),
        "b.py::test_3": entry(0.2, [f"{module}:f"]),
    }
    tests = concerned(table, ROOT, f"{cuda}/profile/join.cu", "raise", "emulated")
    assert tests == [("b.py::test_1", 0.9), ("b.py::test_2", 1.0)]
    included = concerned(table, ROOT, f"{cuda}/include/walk.cuh", "", "emulated")
    assert [name for name, _ in included] == ["b.py::test_1", "b.py::test_2"]


def test_of_too_many_tests_those_come_first_that_call_what_others_do_not(monkeypatch):
    cuda = "skts/engines/cupy/profile/join.cu"

    def entry(seconds, *functions, instance=1):
        return {
            "seconds": seconds, "functions": functions, "programs": [f"{cuda}:join<{instance}>"]
        }  # fmt: skip

    table = {f"a.py::test_{n}[1]": entry(1.0, f"{cuda}:join") for n in range(5)}
    table |= {
        "a.py::test_0[2]": entry(2.0, f"{cuda}:join", instance=2),
        "a.py::test_0[3]": entry(3.0, f"{cuda}:join", "skts/engines/core/plan.py:f"),
        "a.py::test_0[4]": entry(1.5, f"{cuda}:join"),
        # includes what the function stands in, and does not call it
        "a.py::test_other": entry(0.5, "skts/engines/cupy/profile/many_channels.cu:keep_listed"),
    }
    monkeypatch.setitem(BUDGET, "emulated", 12.0)
    names = [name for name, _ in concerned(table, ROOT, cuda, "raise_needs", "emulated")]
    assert len(names) == 7
    assert {"a.py::test_0[2]", "a.py::test_0[3]"} < set(names)
    assert "a.py::test_0[4]" not in names
    assert "a.py::test_other" not in names


def test_cases_of_the_fuzzer_come_apart_and_of_each_function_in_turn():
    module = "skts/engines/core/plan.py"
    seconds = {
        "a-numba-0": 1.0,
        "a-numba-1": 2.0,
        "b-numba-0": 9.0,
        "c-numba-0": 9.0,
        "a-numba-2": 4.0,
    }
    table = {
        f"{FUZZED}::test_cases[{name}]": {
            "seconds": taken,
            "functions": [f"{module}:{'g' if name[0] == 'c' else 'f'}"],
            "programs": [],
        }
        for name, taken in seconds.items()
    }
    table["a.py::test"] = {"seconds": 0.1, "functions": [f"{module}:f"], "programs": []}
    place = ROOT, module, "f", "interpreted"
    assert [name for name, _ in concerned(table, *place)] == ["a.py::test"]
    chosen = [name.partition("[")[2] for name, _ in concerned(table, *place, fuzzed=True)]
    assert chosen == ["a-numba-0]", "a-numba-1]", "b-numba-0]"]  # no time is left for more
    assert len({group_of(name) for name in table}) == 4


def test_files_whose_cases_are_looked_at_are_there():
    for file in (*EACH, *OF_CONSTANTS):
        assert (ROOT / file).is_file()


def test_a_constant_meets_the_tests_that_look_at_constants():
    module = "skts/engines/core/plan.py"
    of = {
        f"{OF_CONSTANTS[1]}::test_constants[core.plan]": [],
        f"{OF_CONSTANTS[0]}::test_launches[Join]": ["skts/engines/host/shapes.py:f"],
        "a.py::test": [f"{module}:f"],
    }
    table = {name: {"seconds": 1.0, "functions": f, "programs": []} for name, f in of.items()}
    for mode, function, wanted in (
        ("interpreted", "", list(of)),
        ("compiled", "f", ["a.py::test"]),
        ("emulated", "", ["a.py::test"]),
    ):
        tests = concerned(table, ROOT, module, function, mode)
        assert {name for name, _ in tests} == {*wanted}


def test_kernels_meet_the_tests_that_count_what_they_do():
    module = "skts/engines/numba/elastic/lanes.py"
    of = {
        f"{COUNTED}::test_kernels[DTWMatrix]": "skts/engines/numba/elastic/tiles.py:f",
        f"{COUNTED}::test_kernels[Join]": "skts/engines/numba/profile/join.py:f",
        "a.py::test": f"{module}:f",
    }
    table = {name: {"seconds": 1.0, "functions": [f], "programs": []} for name, f in of.items()}
    for mode, wanted in (("compiled", [0, 2]), ("interpreted", [2])):
        names = [name for name, _ in concerned(table, ROOT, module, "f", mode)]
        assert set(names) == {list(of)[i] for i in wanted}


def test_a_test_that_reads_a_source_calls_all_of_it(tmp_path):
    """It has a kernel of its own, which calls functions with any numbers."""
    cuda = "skts/engines/cupy"
    part = Part("emulated", "tests/engines/test_claims.py", 0, 1, "")
    wanted = {
        f"{cuda}/profile/lengths.cu": {"correlation_error", "limits"},
        f"{cuda}/include/warp.cuh": {"warp_largest"},
    }
    for caller, there in (("tests/engines/test_claims.py", True), (f"{cuda}/programs.py", False)):
        recorder = Recorder(ROOT, part, tmp_path / "so_far", 0.0)
        before = SimpleNamespace(f_code=SimpleNamespace(co_filename=f"{ROOT}/{caller}"))
        frame = SimpleNamespace(f_locals={"name": "profile/lengths.cu"}, f_back=before)
        recorder._note(programs.source.__code__, frame)
        for file, functions in wanted.items():
            called = {name for path, name in recorder.called if path == f"{ROOT}/{file}"}
            assert functions <= called if there else not called
        assert recorder.programs == ({f"{cuda}/profile/lengths.cu:"} if there else set())


def test_host_code_meets_the_tests_that_need_no_gpu():
    engines = "skts/engines"
    assert modes_of(f"{engines}/cupy/kshape/programs.py") == ["interpreted", "emulated"]
    assert modes_of(f"{engines}/cupy/kshape/fft.cuh") == ["emulated"]
    assert modes_of(f"{engines}/numba/elastic/dtw.py") == ["interpreted", "compiled"]
    assert modes_of(f"{engines}/core/plan.py") == ["interpreted", "compiled", "emulated"]


def test_a_mutant_is_settled_by_the_first_mode_that_kills_it_or_by_all():
    mutant = mutants_of(ROOT, "skts/engines/numba/elastic/dtw.py")[0]
    lives, dies = (
        {"mode": mode, "fuzzed": False, "fate": fate, "by": by, "tests": 2, "seconds": 1.5}
        for mode, fate, by in (("interpreted", "survived", ""), ("compiled", "killed", "a test"))
    )
    unreached = lives | {"fate": "unreached"}
    assert settle(mutant, []) is None
    assert settle(mutant, [lives]) is None
    assert settle(mutant, 2 * [lives]) is None  # cases of the fuzzer are to come
    unknown = settle(mutant, [lives, {**lives, "fuzzed": True}], last=True)
    assert unknown["fate"] == "not judged"
    assert unknown["by"] == "interpreted survived, interpreted fuzzed survived"
    assert settle(mutant, [dies])["by"] == "a test"
    assert settle(mutant, [lives, dies])["seconds"] == 3.0
    assert settle(mutant, 2 * [unreached, lives])["fate"] == "survived"
    assert settle(mutant, 4 * [unreached])["fate"] == "unreached"
    late = lives | {"fate": "late"}
    assert settle(mutant, [late, dies])["fate"] == "killed"
    assert settle(mutant, [late]) is None
    assert settle(mutant, [late, *3 * [lives]])["by"].startswith("interpreted late, interpreted su")
    assert settle(mutant, [late, *3 * [lives]])["fate"] == "not judged"


def test_a_run_that_is_cut_off_keeps_the_modes_that_a_mutant_lived_in(tmp_path):
    mutants = mutants_of(ROOT, "skts/engines/numba/elastic/dtw.py")[:2]
    lived = {"mode": "interpreted", "fate": "survived", "by": "", "tests": 2, "seconds": 1.5}
    lines = [
        {"key": mutants[0].key, **lived},
        {"key": mutants[1].key, **lived, "fate": "unreached"},
        {"key": "of another draw", **lived},
    ]
    lived["fuzzed"] = False  # which runs before there were such cases do not say
    path = tmp_path / "answers.jsonl"
    path.write_text("".join(json.dumps(line) + "\n" for line in lines))
    known = known_answers([path, tmp_path / "none"], mutants)
    assert known == {mutants[0].key: [lived], mutants[1].key: []}
    ways = ways_of(mutants[0].module)
    done = [{**lived, "mode": mode, "fuzzed": fuzzed} for mode, fuzzed in ways[1:]]
    assert settle(mutants[0], [*known[mutants[0].key], *done])["fate"] == "survived"


def test_cases_that_did_not_run_are_like_others_of_their_test(tmp_path):
    file = "tests/engines/core/test_plans.py"
    tables = Tables(ROOT, [file], ["interpreted"], [])
    first, *others = tables.missing()
    ran = {"seconds": 1.0, "functions": ["a.py:f"], "programs": []}
    tests = {
        f"{file}::test[1]": ran,
        f"{file}::test[2]": {"seconds": 2.0, "like": f"{file}::test[1]"},
    }
    tables.add(first, {"tests": tests, "left": 1}, tmp_path / "some")
    assert tables.missing() == [first, *others]  # not to its end
    tables.add(first, {"tests": tests, "left": 0}, tmp_path / "some")
    again = Tables(ROOT, [file], ["interpreted"], [tmp_path / "some"])
    assert again.missing() == tables.missing() == others
    table = again.by_mode()["interpreted"]
    assert [name for name, _ in concerned(table, ROOT, "a.py", "f", "interpreted")] == list(tests)
    assert table[f"{file}::test[2]"]["seconds"] == 2.0


def test_a_table_tells_what_tests_called_until_it_is_known_what_they_call_now(tmp_path):
    file, mode = "tests/engines/core/test_plans.py", "interpreted"
    other = {"file": file, "part": 0, "parts": 1, "digest": "of another text"}
    ran = {"seconds": 1.0, "functions": ["a.py:f"], "programs": []}
    path = tmp_path / "some"
    Tables(ROOT, [], [], []).add(Part(mode, **other), {"tests": {"test_1": ran}, "left": 0}, path)
    tables = Tables(ROOT, [file], [mode, "compiled"], [path])
    assert {part.mode for part in tables.missing()} == {mode, "compiled"}
    assert tables.missing()[-1].mode == "compiled"
    # what kernels call is seen in plain Python only, and is the same
    assert tables.by_mode() == {mode: {"test_1": ran}, "compiled": {"test_1": ran}}
    now = {**ran, "functions": ["b.py:f"], "seconds": 2.0}
    tables.add(tables.missing()[0], {"tests": {"test_1": now}, "left": 0}, path)
    assert tables.by_mode()[mode] == {"test_1": now}
    # a function that has moved: tests of its module
    names = [name for name, _ in concerned({"test_1": now}, ROOT, "b.py", "g", mode)]
    assert names == ["test_1"]


def double(number):
    if number == 3:
        raise OutOfTime
    return 2 * number


def test_tasks_end_with_the_time():
    later = time.monotonic() + 60
    assert sorted(work(double, range(5), 2, later)) == [(0, 0), (1, 2), (2, 4), (4, 8)]
    assert list(work(double, range(5), 2, time.monotonic())) == []


@pytest.mark.slow
def test_a_run_kills_and_reports(tmp_path):
    command = [sys.executable, "-m", "tests.mutation", "--sample", "5", "--seed", "1"]
    command += ["--modules", "skts/engines/core/plan.py", "--modes", "interpreted"]
    command += ["--tests", "tests/engines/core/test_memory.py", "--output", str(tmp_path)]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=True)
    fates = [
        json.loads(line)["fate"] for line in (tmp_path / "results.jsonl").read_text().splitlines()
    ]
    assert len(fates) == 5
    assert "killed" in fates
    assert "skts/engines/core/plan.py" in done.stdout


def test_results_are_kept_by_module(tmp_path):
    """Another judgement of a mutant takes the place of the first."""

    def result(key, module, fate):
        known = {"key": key, "module": module, "function": "f", "before": "1", "after": "2"}
        return known | {"fate": fate, "by": ""}

    path = tmp_path / "record.json"
    some = [result("a", "one.py", "timeout"), result("b", "two.py", "survived")]
    keep(path, [*some, result("c", "one.py", "equivalent"), result("d", "a.cu", "refused")], 7, "")
    keep(path, [result("b", "two.py", "killed by slow or new tests")], 7, "")
    keep(path, [result("b", "two.py", "unreached")], 8, "")
    found = json.loads(path.read_text())
    rows = {row.pop("module"): list(row.values()) for row in found["rows"]}
    assert rows == {
        "one.py": [2, 1, 0, 1, 0, 0, 1.0],
        "two.py": [2, 0, 1, 0, 1, 0, 0.0],
        "all": [4, 1, 1, 1, 1, 0, 0.333],
    }
    assert [row["mutants"] for row in found["runs"]] == [3, 1]
    # draws stay in their order, and each with its commit
    keep(path, [result("e", "one.py", "survived")], 3, "", "first")
    keep(path, [result("e", "one.py", "killed")], 3, "", "second")
    last = json.loads(path.read_text())["runs"][-1]
    assert (last["seed"], last["commit"], last["killed at first"]) == (3, "first", 0.0)
    assert last["killed by slow or new tests"] == 1
    assert len(found["mutants"]) == 4
    more = result("f", "one.py", "killed") | {"by": f"compiled: {FUZZED}::test_cases[numba-a-0]"}
    keep(path, [more], 3, "")
    runs = json.loads(path.read_text())["runs"]
    assert [row["killed by cases of the fuzzer"] for row in runs] == [0, 0, 1]
