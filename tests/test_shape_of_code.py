"""Functions that a person can read: no more than 80 lines, or a reason at their head."""

from __future__ import annotations

import ast
import re
from collections import defaultdict
from pathlib import Path

import skts

PACKAGE = Path(skts.__file__).parent
LINES = 80
#: Words of a docstring or head comment that give the reason.
REASON = re.compile(r"\bone function\b", re.IGNORECASE)
#: A function or kernel of CUDA: what stands before its name, its arguments, what it does.
CUDA = re.compile(
    r"^(?:extern|template|static|__global__|__device__)[^;{}]*?"
    r"\b(?!__launch_bounds__)(\w+)\([^;{}]*\)\s*(?:const\s*)?\{\n(?:.*?\n)??\}$",
    re.MULTILINE | re.DOTALL,
)


def functions_of_python(text):
    """Name, lines without the docstring, and docstring of each function."""
    for node in ast.walk(ast.parse(text)):
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            head = ast.get_docstring(node, clean=False) or ""
            yield node.name, node.end_lineno - node.lineno + 1 - head.count("\n"), head


def functions_of_cuda(text):
    """Name, lines, and the comment above each function that is no member of a struct."""
    for found in CUDA.finditer(text):
        above = text[: found.start()].splitlines()
        head = []
        while above and above[-1].startswith("//"):
            head.append(above.pop()[2:].strip())
        yield found[1], found[0].count("\n") + 1, " ".join(reversed(head))


def long_functions():
    for path in sorted(PACKAGE.rglob("*")):
        read = {".py": functions_of_python, ".cu": functions_of_cuda, ".cuh": functions_of_cuda}
        if path.suffix in read:
            for name, lines, head in read[path.suffix](path.read_text("utf-8")):
                if lines > LINES and not REASON.search(head):
                    yield f"{path.relative_to(PACKAGE).as_posix()}:{name}"


def test_long_functions_say_why():
    found = set(long_functions())
    assert found == set(), "take it apart, or write in its head why it is one function"


def docstrings(text):
    for node in ast.walk(ast.parse(text)):
        if isinstance(node, ast.Module | ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef):
            yield ast.get_docstring(node) or ""


def test_docstrings_say_what_a_thing_is():
    """A docstring opens with the thing itself, not with "What ..." or "Those that ..."."""
    wrong = [
        f"{path.relative_to(PACKAGE).as_posix()}: {text.splitlines()[0]}"
        for path in sorted(PACKAGE.rglob("*.py"))
        for text in docstrings(path.read_text("utf-8"))
        if re.match(r"(What|Those|Whatever)\b", text)
    ]
    assert wrong == []


def test_docstrings_are_found():
    text = (
        '"""Module."""\nclass A:\n    """What it is."""\n    def b(self):\n        """Those."""\n'
    )
    assert [one for one in docstrings(text) if one] == ["Module.", "What it is.", "Those."]


def test_functions_are_found():
    """Neither the declaration of a kernel nor a word in its head hides it."""
    body = "    x += 1;\n" * LINES
    for start in (
        'extern "C" __global__ void __launch_bounds__(32) walk(\n    int x, int y\n) {\n',
        "template <int K>\n__global__ void __launch_bounds__(T) walk(int x) {\n",
        "__device__ __forceinline__ int walk(int x) {\n",
    ):
        text = f"// Some head:\n// one function, since.\n{start}{body}}}\n"
        ((name, lines, head),) = functions_of_cuda(text)
        assert (name, head) == ("walk", "Some head: one function, since.")
        assert lines > LINES
    text = 'def walk(x):\n    """Head."""\n' + "    x += 1\n" * LINES
    assert list(functions_of_python(text)) == [("walk", LINES + 2, "Head.")]


def test_a_class_name_means_one_thing():
    """Within an engine, and within what engines share, no two classes have one name."""
    for layer in ("engines/cupy", "engines/numba", "engines/families", "engines/core", "."):
        found = defaultdict(list)
        for path in sorted((PACKAGE / layer).rglob("*.py")):
            if layer == "." and "engines" in path.relative_to(PACKAGE).parts:
                continue
            for node in ast.parse(path.read_text("utf-8")).body:
                if isinstance(node, ast.ClassDef):
                    found[node.name].append(path.relative_to(PACKAGE).as_posix())
        assert len(found) > 5, layer
        assert {name: paths for name, paths in found.items() if len(paths) > 1} == {}


def test_warnings_are_given_in_one_place():
    """`warn_user` finds the line of the user; a fixed `stacklevel` counts decorators, too."""
    found = {
        path.relative_to(PACKAGE).as_posix()
        for path in PACKAGE.rglob("*.py")
        if re.search(r"\bwarnings\.warn\(", path.read_text("utf-8"))
    }
    # base.py warns from __setstate__, which pickle calls
    assert found == {"_parameters.py", "base.py"}


#: An engine itself, not its type.
_PATCHED = re.compile(r"setattr\(\s*(engine,|find_engine\()")


def test_tests_leave_no_method_on_an_engine():
    """`monkeypatch.setattr` of an instance leaves the method of its class there.

    Later tests, which replace that of the class, would change nothing: `setitem(vars(engine), ..)`.
    """
    tests = sorted(Path(__file__).parent.rglob("*.py"))
    wrong = [path for path in tests if _PATCHED.search(path.read_text("utf-8"))]
    assert wrong == []
