"""The mutants are what they say, and those that are excused still exist."""

from __future__ import annotations

import ast
import json
import subprocess
import sys
from pathlib import Path

import pytest

from tests.mutation.equivalent import EQUIVALENT, names_of
from tests.mutation.mutants import draw, mutants_of

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
    memory, certify = (mutants_of(ROOT, f"skts/engines/_{n}.py") for n in ("memory", "certify"))
    assert draw(memory, 1) == draw(memory[::-1], 1) != draw(memory, 2)
    together = draw(memory + certify, 1)
    assert [m for m in together if m.module.endswith("core/plan.py")] == draw(memory, 1)


@pytest.mark.parametrize("module", EQUIVALENT)
def test_excused_mutants_exist(module):
    mutants = mutants_of(ROOT, module)
    for function, text, changed, reason in EQUIVALENT[module]:
        assert reason.strip()
        here = [m for m in mutants if (m.function, m.text) == (function, text)]
        there = {name for mutant in here for name in names_of(mutant)}
        assert there, f"{module}: no mutant is on the line {text!r} any more"
        assert set(changed or ()) <= there, f"{module}: {text!r} does not hold {changed}"


@pytest.mark.slow
def test_a_run_kills_and_reports(tmp_path):
    results = tmp_path / "results.jsonl"
    command = [sys.executable, "-m", "tests.mutation", "--sample", "5", "--seed", "1"]
    command += ["--modules", "skts/engines/core/plan.py", "--modes", "interpreted"]
    command += ["--tests", "tests/engines/core/test_memory.py", "--results", str(results)]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=True)
    fates = [json.loads(line)["fate"] for line in results.read_text().splitlines()]
    assert len(fates) == 5
    assert "killed" in fates
    assert "skts/engines/core/plan.py" in done.stdout
