"""Importing is light, imports point downwards, and everything public is documented."""

from __future__ import annotations

import ast
import importlib.util
import inspect
import re
import subprocess
import sys
import typing
from functools import cache
from pathlib import Path

import pytest

import skts
from skts.engines.numba import NumbaEngine
from tests.discovery import displays, estimators, reductions

PACKAGE = Path(skts.__file__).parent
PUBLIC = [
    "skts",
    "skts.cluster",
    "skts.datasets",
    "skts.engines",
    "skts.ensemble",
    "skts.feature_extraction",
    "skts.metrics",
    "skts.motifs",
    "skts.neighbors",
    "skts.plotting",
    "skts.tree",
    "skts.utils",
]


def test_import_loads_no_kernel_library():
    code = (
        "import sys, sklearn.neighbors; before = set(sys.modules); import skts, skts.datasets; "
        "print([m for m in ('numba', 'cupy', 'matplotlib', 'llvmlite') "
        "if m in set(sys.modules) - before])"
    )
    result = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True
    )
    assert result.stdout.strip() == "[]"


@pytest.mark.parametrize(
    "folder", ["skts/engines/numba", "skts/engines/cupy", "tests/engines", "benchmarks"]
)
def test_each_family_has_a_folder(folder):
    root = PACKAGE.parent / folder
    if not root.exists():
        pytest.skip(f"{folder} is not here")
    families = {path.parent.name for path in (PACKAGE / "engines/families").glob("*/__init__.py")}
    assert families and families <= {path.name for path in root.iterdir() if path.is_dir()}


def test_only_the_registry_names_engines():
    for folder in ("engines/core", "engines/families", "engines/host", "cluster", "ensemble",
                   "feature_extraction", "metrics", "motifs", "neighbors", "tree"):  # fmt: skip
        for path in sorted((PACKAGE / folder).rglob("*.py")):
            if path.name != "registry.py":
                tree = ast.walk(ast.parse(path.read_text()))
                texts = {node.value for node in tree if isinstance(node, ast.Constant)}
                assert not texts & {"numba", "cupy"}, path


def test_nobody_has_a_copy_of_what_tests_replace():
    """A module that is first imported by such a test would keep what the test put there."""
    tests = "".join(path.read_text() for path in sorted(Path(__file__).parent.rglob("test_*.py")))
    replaced = set(re.findall(r'setattr\(\s*"(skts[\w.]*)\.([A-Z_]+)"', tests))
    assert len(replaced) > 20
    # a search without kernels is what that test looks at
    replaced.discard(("skts.engines.families.shapelets.variance", "WRONG"))
    for path in sorted(PACKAGE.rglob("*.py")):
        package = ".".join(path.relative_to(PACKAGE.parent).parent.parts)
        text = path.read_text()
        if {name for _, name in replaced}.isdisjoint(re.findall(r"\b[A-Z_]+\b", text)):
            continue
        for level, module, names in statements(path):
            module = importlib.util.resolve_name("." * level + (module or ""), package)
            copies = {(module, name) for name in names} & replaced
            assert not copies, f"{path}: {copies}"


@cache
def statements(path):
    """Imports of a file, at its top or inside functions: dots, module or None, and names."""
    found = []
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.Import):
            found += [(0, name.name, ()) for name in node.names]
        elif isinstance(node, ast.ImportFrom):
            found.append((node.level, node.module, tuple(name.name for name in node.names)))
    return found


def imported(path):
    return [module for level, module, _ in statements(path) if level == 0]


@pytest.mark.parametrize(
    "path",
    [
        path
        for path in PACKAGE.rglob("*.py")
        if not {"numba", "cupy", "host"} & set(path.relative_to(PACKAGE).parts)
    ],
    ids=lambda path: str(path.relative_to(PACKAGE)),
)
def test_kernel_libraries_stay_in_their_engines(path):
    assert not [name for name in imported(path) if name.split(".")[0] in {"numba", "cupy"}]


def test_engines_know_nothing_of_estimators():
    for path in (PACKAGE / "engines").rglob("*.py"):
        for _, module, names in statements(path):
            if names and module:
                assert not {"neighbors", "metrics", "base"} & set(module.split(".")), path


@pytest.mark.parametrize("module", PUBLIC)
def test_public_names_exist_with_docstring_and_types(module):
    module = importlib.import_module(module)
    assert module.__doc__
    for name in module.__all__:
        thing = getattr(module, name)
        assert inspect.getdoc(thing), name
        if inspect.isfunction(thing):
            hints = inspect.signature(thing)
            untyped = [p for p in hints.parameters.values() if p.annotation is p.empty]
            assert not untyped, (name, untyped)
            assert hints.return_annotation is not hints.empty, name


def test_fitting_loads_no_gpu_library():
    code = (
        "import sys, skts; model = skts.DTWNearestNeighbor().fit([[0, 1], [1, 0]], [0, 1]); "
        "print(model.predict([[0, 2]]), 'numba' in sys.modules, 'cupy' in sys.modules)"
    )
    result = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True
    )
    assert result.stdout.split() == ["[0]", "True", "False"]


def test_without_cupy_the_engine_says_so():
    code = (
        "import sys; sys.modules['cupy'] = None; from skts.engines import find_engine; "
        "print(find_engine('cupy').available())"
    )
    result = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True
    )
    assert "needs CuPy" in result.stdout


# --- layers, with relative imports resolved ----------------------------------------------------

SOURCES = sorted(path.relative_to(PACKAGE).as_posix() for path in PACKAGE.rglob("*.py"))


@cache
def resolved(source):
    """Full names of what a file of the package imports, at its top or inside functions."""
    package, full = ["skts", *Path(source).parts[:-1]], []
    for level, module, names in statements(PACKAGE / source):
        start = package[: len(package) - level + 1] if level else []
        base = ".".join([*start, *([module] if module else [])])
        full += [f"{base}.{name}" for name in names] or [base]
    return full


def inside(names, packages):
    return [name for name in names if any(f"{name}.".startswith(f"{p}.") for p in packages)]


def test_relative_imports_are_resolved():
    assert "skts.base.SeriesMixin" in set(resolved("neighbors/_base.py"))
    assert "skts._config.get_config" in set(resolved("engines/cupy/__init__.py"))
    assert "cupy" in set(resolved("engines/cupy/elastic/dtw.py"))
    assert "skts.engines.host.kernel" in set(resolved("engines/numba/elastic/dtw.py"))


@cache
def modules():
    """Names of all modules, each with the modules that it imports, those inside functions too."""
    names = {"skts." + s.removesuffix(".py").replace("/", "."): s for s in SOURCES}

    def home(name):
        while name and name not in names and f"{name}.__init__" not in names:
            name = name.rpartition(".")[0]
        return name if name in names else f"{name}.__init__"

    return {
        name: {home(n) for n in inside(resolved(source), ["skts"])} - {name}
        for name, source in names.items()
    }


def box(module):
    """The box of a module in the picture of the developer guide; "" for ``skts`` itself."""
    parts = module.split(".")[1:]
    if parts[0] == "engines" and len(parts) > 2:
        # the file of the package of all families is empty
        parts = parts[1:3] if parts[1] == "families" else parts[:2]
        return ".".join(parts)
    return "" if parts[0] == "__init__" else parts[0]


def drawn_layers():
    """The table of who imports whom, and the rows, as drawn (docs/_ext/layers.py)."""
    path = PACKAGE.parent / "docs" / "_ext" / "layers.py"
    wanted, found = {"ROWS", "FAMILIES", "IMPORTS"}, {}
    for node in ast.parse(path.read_text()).body:
        if isinstance(node, ast.Assign) and ast.unparse(node.targets[0]) in wanted:
            exec(compile(ast.Module([node], []), path.name, "exec"), found)
    return found["IMPORTS"], found["ROWS"]


def test_the_diagram_of_the_developer_guide_is_true():
    drawn, rows = drawn_layers()
    found = {box(name): set() for name in modules()}
    for name, imported in modules().items():
        found[box(name)] |= {box(other) for other in imported} - {box(name)}
    del found[""]  # skts/__init__.py gathers what users see
    assert found.pop("families.__init__") == set()
    assert found == drawn
    assert sorted(name for row in rows for name in row) == sorted(drawn)


def test_imports_point_downwards():
    """Between modules: every one lies in a row of the picture, and imports from rows below."""
    _, rows = drawn_layers()
    row_of = {name: i for i, row in enumerate(rows) for name in row}
    row_of |= {"": -1, "families.__init__": len(rows)}
    upward = [
        (name, other)
        for name, imported in modules().items()
        for other in imported
        if box(other) != box(name) and row_of[box(other)] <= row_of[box(name)]
    ]
    assert upward == []


def test_no_import_runs_in_a_circle():
    """Between modules, those inside functions included."""
    waiting = dict(modules())
    while free := {name for name, found in waiting.items() if not found & set(waiting)}:
        for name in free:
            del waiting[name]
    assert waiting == {}


BELOW = ("skts._config", "skts.exceptions")
#: Folders of engines, and the packages that modules there may import beside their own folder's.
ALLOWED = {
    "core": (*BELOW, "skts._engine_names", "skts._log"),
    "host": ("skts.engines.core",),
    "families": ("skts.engines.core", "skts.engines.host"),
    "numba": (*BELOW, "skts.engines.core", "skts.engines.host", "skts.engines.families"),
    "cupy": (*BELOW, "skts.engines.core", "skts.engines.host", "skts.engines.families"),
}
#: Families that build on another one.
FAMILIES_ABOVE = {"search": ("skts.engines.families.elastic",)}


def test_every_layer_of_engines_imports_from_those_below_it_alone():
    """No family in `core`, no engine in a family, no engine in the other, nothing by chance."""
    folders = {path.parent.name for path in (PACKAGE / "engines").glob("*/__init__.py")}
    assert folders == set(ALLOWED)
    for name, imported in modules().items():
        parts = name.split(".")
        if parts[1] == "engines" and len(parts) > 3:
            folder, inner = parts[2:4]
            own = ("skts", "engines", folder, *([inner] if folder == "families" else []))
            above = FAMILIES_ABOVE.get(inner, ()) if folder == "families" else ()
            allowed = (".".join(own), *ALLOWED[folder], *above)
            assert imported == set(inside(imported, allowed)), name


@pytest.mark.parametrize("source", [s for s in SOURCES if not s.startswith("engines/")])
def test_users_side_knows_engines_by_their_public_names_alone(source):
    names = inside(resolved(source), ["skts.engines"])
    assert {name.removeprefix("skts.engines.") for name in names} <= set(skts.engines.__all__)


@pytest.mark.parametrize("source", [s for s in SOURCES if s.startswith("engines/")])
def test_engines_import_nothing_from_above(source):
    names = inside(resolved(source), ["skts"])
    allowed = ["skts.engines", *ALLOWED["core"]]
    assert set(names) == set(inside(names, allowed))


@pytest.mark.parametrize(
    ("folder", "other"), [("engines/numba/", "cupy"), ("engines/cupy/", "numba")]
)
def test_kernels_do_not_know_the_other_engine(folder, other):
    sources = [source for source in SOURCES if source.startswith(folder)]
    assert len(sources) > 1
    for source in sources:
        assert inside(resolved(source), [other, f"skts.engines.{other}"]) == [], source


# --- what the oracle shares with production ---------------------------------------------------


def results_of_engines():
    """Names of classes that an engine's methods return, and of those that their fields hold."""
    engine, found = NumbaEngine, {}

    def take(hint):
        for part in typing.get_args(hint):
            take(part)
        if inspect.isclass(hint) and hint.__module__.startswith("skts.") and hint not in found:
            found[hint] = hint.__name__
            for field in typing.get_type_hints(hint).values():
                take(field)

    for kind in reductions():
        take(typing.get_type_hints(getattr(engine, kind.method))["return"])
    return set(found.values())


def test_the_oracle_shares_no_code_with_the_package():
    """Engines subclass `Engine` and return certain classes; references import nothing else."""
    tests = Path(__file__).parent
    allowed = {"Engine", *results_of_engines()}
    references = sorted(tests.glob("reference*.py"))
    assert len(references) >= 7
    for path in [*references, tests / "fuzz" / "oracle.py"]:
        for node in ast.walk(ast.parse(path.read_text())):
            if isinstance(node, ast.Import):
                assert not inside([alias.name for alias in node.names], ["skts"]), path.name
            elif isinstance(node, ast.ImportFrom) and inside([node.module or ""], ["skts"]):
                assert {alias.name for alias in node.names} <= allowed, path.name


# --- what is public, in detail -----------------------------------------------------------------

USERS = [
    "skts",
    "skts.base",
    "skts.cluster",
    "skts.datasets",
    "skts.exceptions",
    "skts.feature_extraction",
    "skts.metrics",
    "skts.motifs",
    "skts.neighbors",
    "skts.plotting",
    "skts.tree",
]


def sections(thing):
    """Headings of a numpydoc docstring, each with the text under it."""
    parts = re.split(r"^([A-Z][A-Za-z ]+)\n-{3,}\n", inspect.getdoc(thing), flags=re.M)
    return dict(zip(parts[1::2], parts[2::2], strict=True))


def described(text):
    """Names that a Parameters or Attributes section describes."""
    lines = re.findall(r"^(\*{0,2}\w+(?:, \w+)*)(?: :.*)?$", text, flags=re.M)
    return {name.strip().lstrip("*") for line in lines for name in line.split(",")}


def functions():
    """Every public function, and every public method defined in a public class."""
    for module in USERS:
        module = importlib.import_module(module)
        for name in module.__all__:
            thing = getattr(module, name)
            if inspect.isfunction(thing):
                yield f"{module.__name__}.{name}", thing
            elif inspect.isclass(thing):
                for method in dir(thing):
                    # class methods by their functions, and those of bases inside of the package
                    function = inspect.getattr_static(thing, method)
                    function = getattr(function, "__func__", function)
                    ours = str(getattr(function, "__module__", "")).startswith("skts.")
                    if method[0] != "_" and inspect.isfunction(function) and ours:
                        yield f"{module.__name__}.{name}.{method}", function


FUNCTIONS = dict(functions())


def test_the_list_of_public_functions_is_complete():
    assert {"skts.metrics.dtw_path", "skts.DTWNearestNeighbor.kneighbors"} <= set(FUNCTIONS)
    assert {"skts.set_config", "skts.base.check_series"} <= set(FUNCTIONS)
    assert "skts.plotting.AlignmentDisplay.from_series" in FUNCTIONS


@pytest.mark.parametrize("name", FUNCTIONS)
def test_docstrings_describe_each_parameter_and_the_result(name):
    signature = inspect.signature(FUNCTIONS[name])
    found = sections(FUNCTIONS[name])
    parameters = set(signature.parameters) - {"self", "cls"}
    assert described(found.get("Parameters", "")) == parameters
    if signature.return_annotation not in (None, "None"):
        assert {"Returns", "Yields"} & set(found)


@pytest.mark.parametrize("name", FUNCTIONS)
def test_type_hints_are_complete_and_resolve(name):
    hints = typing.get_type_hints(FUNCTIONS[name])
    parameters = set(inspect.signature(FUNCTIONS[name]).parameters) - {"self", "cls"}
    assert set(hints) == parameters | {"return"}


@pytest.mark.parametrize("module", ["skts", "skts.metrics"])
def test_what_users_meet_first_has_examples(module):
    module = importlib.import_module(module)
    for name in module.__all__:
        assert ">>>" in sections(getattr(module, name))["Examples"], name


@pytest.mark.parametrize("kind", [*displays(), *estimators()])
def test_classes_describe_the_parameters_of_their_constructor(kind):
    assert described(sections(kind)["Parameters"]) == set(inspect.signature(kind).parameters)


def test_the_developer_guide_says_where_each_thing_is():
    """Each module and folder of the package, and each of the parts that all engines share."""
    page = (PACKAGE.parent / "docs" / "developer" / "architecture.rst").read_text(encoding="utf-8")
    for path in sorted(PACKAGE.iterdir()):
        if path.suffix == ".py" and path.name != "__init__.py":
            assert f"``skts/{path.name}``" in page
        elif path.is_dir() and (path / "__init__.py").exists():
            assert f"``skts/{path.name}/``" in page
    for path in (PACKAGE / "engines" / "core").glob("[!_]*.py"):
        assert f"``{path.stem}``" in page


def test_the_package_is_typed_and_has_a_version():
    assert (PACKAGE / "py.typed").exists()
    assert re.fullmatch(r"\d+\.\d+\.\d+\S*", skts.__version__)


def test_modules_are_reachable_and_load_when_they_are_used():
    code = (
        "import sys, skts; "
        "assert not [m for m in ('datasets', 'plotting') if f'skts.{m}' in sys.modules]; "
        "assert set(dir(skts)) >= {'metrics', 'motifs', 'datasets', 'plotting', 'MotifFinder'}; "
        "assert all(hasattr(skts, name) for name in dir(skts)); "
        "print(skts.metrics.dtw.__name__, skts.plotting.MotifDisplay.__name__, "
        "skts.datasets.load_ecg.__name__, 'matplotlib' in sys.modules)"
    )
    result = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True
    )
    assert result.stdout.split() == ["dtw", "MotifDisplay", "load_ecg", "False"]
    with pytest.raises(AttributeError, match="module 'skts' has no attribute 'plots'"):
        _ = skts.plots
    folders = {path.parent.name for path in PACKAGE.glob("*/__init__.py")}
    public = {name for name in folders if name[0] != "_"} | {"base", "exceptions"}
    assert public <= set(dir(skts))
