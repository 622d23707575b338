"""Types as a user's editor sees them: what each public function and method returns.

mypy reads a program that calls all of them. That the package itself is sound is checked by
``make lint``.
"""

from __future__ import annotations

import ast
import importlib
import importlib.util
import inspect
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest
from sklearn.base import BaseEstimator

import skts
from tests.test_imports import PUBLIC

ROOT = Path(skts.__file__).parents[1]
#: `skts.engines` is for those who write engines.
MODULES = [name for name in PUBLIC if name != "skts.engines"]

PREAMBLE = """
import numpy as np
import skts.utils
from skts.averages import *
from skts.cluster import *
from skts.datasets import *
from skts.ensemble import *
from skts.feature_extraction import *
from skts.metrics import *
from skts.motifs import *
from skts.neighbors import *
from skts.plotting import *
from skts.tree import *
from skts import *

x = np.zeros(8)
X = np.zeros((4, 8))
y = np.zeros(4)
on = bool(x[0])
condenser, nearest = DTWCondenser(), DTWNearestNeighbor(window=0.1)
clusterer, finder, detector = KShapeClusterer(2), MotifFinder(window=4), DiscordDetector(4)
kmeans, kmedoids = DTWKMeans(2), DTWKMedoids(2)
forest = ShapeletForestClassifier(9)
transformer = ShapeletTransformer(9)
tree, search = ShapeletTreeClassifier(), SubsequenceSearch()
regression_tree = ShapeletTreeRegressor()
monitor = SubsequenceMonitor(2.0)
unlabelled, regressor = DTWNeighbors(), DTWNearestNeighborRegressor()
"""
PAIR = "tuple[ndarray, ndarray]"
TRIPLE = "tuple[ndarray, ndarray, ndarray]"
FOUR = "tuple[ndarray, ndarray, ndarray, ndarray]"
#: Calls, and what they return. "Any" stands only where scikit-learn or SciPy, which state no types,
#: have made the class.
CALLS = {
    # settings
    "get_config()": "dict[str, Any]",
    "set_config(memory='1GiB')": "None",
    "config_context(engine='numba', verify=True)": "_GeneratorContextManager[None, None, None]",
    "show_engines()": "None",
    "show_versions()": "None",
    "warm_up(estimators=[tree, KShapeClusterer])": "None",
    # functions
    "dtw(x, x, window=3)": "float",
    "dog_keeper(x, [1, 2, 3])": "float",
    "dtw_matches(x, x, 2)": "DTWMatches",
    "dtw_matches(x, x).spans": "ndarray",
    "dtw_path(x, x)": "tuple[ndarray, float]",
    "erp(x, x, gap=1)": "float",
    "lcss(x, x, epsilon=0.5)": "float",
    "edr(x, x, epsilon=None)": "float",
    "msm(x, x, penalty=2)": "float",
    "twe(x, x, nu=0.1, lmbda=1)": "float",
    "wdtw(x, x, g=0.1, cost='absolute')": "float",
    "adtw(x, x, penalty=0.5)": "float",
    "ddtw(x, x, window=3)": "float",
    "shape_dtw(x, x, reach=3)": "float",
    "PointCost(cuda='x - y')": "PointCost",
    "pairwise_distances(X, cost=lambda a, b: abs(a - b))": "ndarray",
    "pairwise_distances(X, X, metric='msm', metric_params={'penalty': 2})": "ndarray",
    "warping_path(x, x, metric='twe')": "tuple[ndarray, float]",
    "pairwise_dtw(X)": "ndarray",
    "dtw_barycenter(X, init='medoid')": "Barycenter",
    "dtw_barycenter([x, x[:5]], init=x).average": "ndarray",
    "dtw_barycenter(X).inertia": "float",
    "dtw_barycenter(X, metric='msm', metric_params={'penalty': 0.5})": "Barycenter",
    "dtw_barycenter(X, method='subgradient', random_state=0)": "Barycenter",
    "soft_dtw_barycenter(X, gamma=0.5)": "Barycenter",
    "soft_dtw(x, x)": "float",
    "soft_dtw_gradient(x, x).gradient": "ndarray",
    "pairwise_soft_dtw(X)": "ndarray",
    "pairwise_dtw([x, x[:5]], X, metric='dog_keeper')": "ndarray",
    "lb_keogh(x, x)": "float",
    "sbd(x, x)": "ShapeDistance",
    "sbd(x, x).shift": "int",
    "pairwise_sbd(X)": "ndarray",
    "pairwise_sbd(X, X, return_shifts=True)": PAIR,
    "pairwise_sbd(X, return_shifts=False)": "ndarray",
    "pairwise_sbd(X, return_shifts=on)": f"ndarray | {PAIR}",
    "subsequence_distance(x, x).start": "int",
    "silhouette_samples(X, y, metric='msm')": "ndarray",
    "silhouette_score(X, y, metric='sbd')": "float",
    "choose_n_clusters(kmedoids, X, [2, 3]).silhouette": "ndarray",
    "choose_n_clusters(kmeans, X, range(2, 5)).best": "int",
    "matrix_profile(x, window=4).distances": "ndarray",
    "matrix_profile(x, window=4, sides=True).left": "MatrixProfile | None",
    "matrix_profile(x, window=4, time_limit=9).share": "float",
    "motifs(x, window=4)": "list[Motif]",
    "discords(x, window=4)": "list[Discord]",
    "distance_profile(x, X)": "ndarray",
    "mpdist(x, x, window=4)": "float",
    "motif_chains(x, window=4)": "list[Chain]",
    "consensus_motif(X, window=4).radius": "float",
    "segment(x, window=4).boundaries": "ndarray",
    "pan_matrix_profile(x, windows=[4, 6])": "PanProfile",
    "pan_matrix_profile(x, windows=[4, 6]).motif": "WindowPair | None",
    "dtw_window_search(X, y).best": "float",
    "elastic_parameter_search(X, y).errors": "ndarray",
    "export_text(tree)": "str",
    # data
    "load_arrow_head()": "Any",
    "load_arrow_head(split='test', return_X_y=True)": PAIR,
    "load_ecg()": "Any",
    "load_gunpoint()": "Any",
    "load_gunpoint(return_X_y=True)": PAIR,
    "load_gunpoint(return_X_y=on)": f"Any | {PAIR}",
    "make_cylinder_bell_funnel()": PAIR,
    "make_planted_motifs()": TRIPLE,
    "make_random_walk()": "ndarray",
    "make_shifted_shapes(30)": TRIPLE,
    "make_shifted_shapes(30, return_shapes=True)": FOUR,
    "make_shifted_shapes(30, return_shapes=on)": f"{TRIPLE} | {FOUR}",
    "make_two_patterns()": PAIR,
    "make_warped_shapes()": PAIR,
    "make_warped_shapes(return_warps=True)": FOUR,
    "make_warped_shapes(return_warps=on)": f"{PAIR} | {FOUR}",
    "read_series('file')": "tuple[ndarray | list[ndarray], ndarray | None]",
    "fetch_ucr('GunPoint')[0]": "ndarray | list[ndarray]",
    "fetch_ucr('GunPoint')[3]": "ndarray | None",
    "read_train_test('train', 'test')[0]": "ndarray | list[ndarray]",
    "read_train_test('train', 'test')[3]": "ndarray | None",
    # estimators
    "condenser.fit(X, y)": "DTWCondenser",
    "condenser.fit_resample(X, y)": PAIR,
    "condenser.fit_resample([x, x], [1, 2])": "tuple[list[ndarray], list[int]]",
    "nearest.fit(X, y)": "DTWNearestNeighbor",
    "nearest.fit([x, x], y).predict([x])": "ndarray",
    "nearest.kneighbors()": PAIR,
    "nearest.kneighbors(X, 2)": PAIR,
    "nearest.kneighbors(X, return_distance=False)": "ndarray",
    "nearest.kneighbors(X, 2, False)": "ndarray",
    "nearest.kneighbors(X, return_distance=on)": f"{PAIR} | ndarray",
    "nearest.kneighbors_graph(X, mode='distance')": "Any",
    "nearest.predict(X)": "ndarray",
    "nearest.radius_neighbors(X, 1.5)": PAIR,
    "nearest.radius_neighbors(X, 1.5, return_distance=False)": "ndarray",
    "nearest.radius_neighbors(X, 1.5, False)": "ndarray",
    "nearest.radius_neighbors(X, 1.5, return_distance=on)": f"{PAIR} | ndarray",
    "nearest.radius_neighbors_graph(X, 1.5, mode='distance')": "Any",
    "nearest.predict_proba(X)": "ndarray",
    "nearest.transform(X)": "ndarray",
    "unlabelled.fit(X)": "DTWNeighbors",
    "unlabelled.kneighbors()": PAIR,
    "unlabelled.kneighbors(X, return_span=True)": "tuple[ndarray, ...] | ndarray",
    "unlabelled.kneighbors(X, 2, False, return_shift=on)": "tuple[ndarray, ...] | ndarray",
    "unlabelled.kneighbors_graph(X)": "Any",
    "unlabelled.radius_neighbors(X, 1.5)": PAIR,
    "unlabelled.radius_neighbors_graph(X, 1.5)": "Any",
    "regressor.fit(X, y)": "DTWNearestNeighborRegressor",
    "regressor.kneighbors()": PAIR,
    "regressor.kneighbors_graph(X)": "Any",
    "regressor.radius_neighbors(X, 1.5)": PAIR,
    "regressor.radius_neighbors_graph(X, 1.5)": "Any",
    "regressor.predict(X)": "ndarray",
    "kmeans.fit(X)": "DTWKMeans",
    "kmeans.partial_fit([x, x[:5]])": "DTWKMeans",
    "clusterer.partial_fit(X)": "KShapeClusterer",
    "kmeans.predict(X)": "ndarray",
    "kmeans.score(X)": "float",
    "kmeans.transform(X)": "ndarray",
    "kmedoids.fit(X)": "DTWKMedoids",
    "kmedoids.predict(X)": "ndarray",
    "kmedoids.score(X)": "float",
    "kmedoids.transform(X)": "ndarray",
    "clusterer.fit(X)": "KShapeClusterer",
    "clusterer.predict(X)": "ndarray",
    "clusterer.score(X)": "float",
    "clusterer.transform(X)": "ndarray",
    "finder.fit(X)": "MotifFinder",
    "finder.update(x)": "MotifFinder",
    "finder.predict(X)": "ndarray",
    "finder.transform(X)": "ndarray",
    "detector.fit(X)": "DiscordDetector",
    "detector.score_samples(X)": "ndarray",
    "detector.decision_function(X)": "ndarray",
    "detector.predict(X)": "ndarray",
    "detector.score_points(X)": "ndarray",
    "detector.update(x)": "ndarray",
    "forest.fit(X, y)": "ShapeletForestClassifier",
    "forest.apply(X)": "ndarray",
    "forest.predict(X)": "ndarray",
    "forest.predict_log_proba(X)": "ndarray",
    "forest.predict_proba(X)": "ndarray",
    "transformer.fit(X, y)": "ShapeletTransformer",
    "transformer.fit(X).shapelets_": "list[DilatedShapelet]",
    "transformer.get_feature_names_out()": "ndarray",
    "transformer.transform(X)": "ndarray",
    "tree.fit(X, y)": "ShapeletTreeClassifier",
    "tree.apply(X)": "ndarray",
    "tree.cost_complexity_pruning_path(X, y)": "Any",
    "tree.decision_path(X)": "Any",
    "tree.get_depth()": "int",
    "tree.get_feature_names_out()": "ndarray",
    "tree.get_n_leaves()": "int",
    "tree.locate(X)": "ndarray",
    "tree.predict(X)": "ndarray",
    "tree.predict_log_proba(X)": "ndarray",
    "tree.predict_proba(X)": "ndarray",
    "tree.transform(X)": "ndarray",
    "regression_tree.fit(X, y)": "ShapeletTreeRegressor",
    "regression_tree.apply(X)": "ndarray",
    "regression_tree.cost_complexity_pruning_path(X, y)": "Any",
    "regression_tree.decision_path(X)": "Any",
    "regression_tree.get_depth()": "int",
    "regression_tree.get_feature_names_out()": "ndarray",
    "regression_tree.get_n_leaves()": "int",
    "regression_tree.locate(X)": "ndarray",
    "regression_tree.predict(X)": "ndarray",
    "regression_tree.transform(X)": "ndarray",
    "monitor.fit(X)": "SubsequenceMonitor",
    "monitor.update(x)": PAIR,
    "search.fit(X)": "SubsequenceSearch",
    "search.kneighbors(X)": PAIR,
    "search.kneighbors(X, 2, return_distance=False)": "ndarray",
    "search.kneighbors(X, 2, False)": "ndarray",
    "search.kneighbors(X, return_distance=on)": f"{PAIR} | ndarray",
    "search.radius_neighbors(X, 1.5)": PAIR,
    "search.radius_neighbors(X, 1.5, return_distance=False)": "ndarray",
    "search.radius_neighbors(X, 1.5, False)": "ndarray",
    "search.radius_neighbors(X, 1.5, return_distance=on)": f"{PAIR} | ndarray",
    # displays
    "AlignmentDisplay.from_estimator(nearest, x)": "AlignmentDisplay",
    "AlignmentDisplay.from_series(x, x)": "AlignmentDisplay",
    "AlignmentDisplay.from_series(x, x).plot()": "AlignmentDisplay",
    "ClusterDisplay.from_estimator(clusterer, X).plot()": "ClusterDisplay",
    "ClusterDisplay.from_estimator(kmedoids, X, aligned=False)": "ClusterDisplay",
    "ClusterChoiceDisplay.from_choice(choose_n_clusters(kmeans, X)).plot()": "ClusterChoiceDisplay",
    "MotifDisplay.from_estimator(finder).plot()": "MotifDisplay",
    "PanProfileDisplay.from_profile(pan_matrix_profile(x, windows=[4, 6])).plot()": (
        "PanProfileDisplay"
    ),
    "SearchDisplay.from_estimator(search, x).plot()": "SearchDisplay",
    "ShapeletTreeDisplay.from_estimator(tree, X, y).plot()": "ShapeletTreeDisplay",
    "ShapeletMatchDisplay.from_estimator(tree, x).plot()": "ShapeletMatchDisplay",
}
NAMES = {
    "DTWCondenser": "condenser",
    "DTWKMeans": "kmeans",
    "DTWKMedoids": "kmedoids",
    "DTWNearestNeighbor": "nearest",
    "DTWNearestNeighborRegressor": "regressor",
    "DTWNeighbors": "unlabelled",
    "DiscordDetector": "detector",
    "KShapeClusterer": "clusterer",
    "MotifFinder": "finder",
    "ShapeletForestClassifier": "forest",
    "ShapeletTransformer": "transformer",
    "ShapeletTreeClassifier": "tree",
    "ShapeletTreeRegressor": "regression_tree",
    "SubsequenceMonitor": "monitor",
    "SubsequenceSearch": "search",
}


def public_callables():
    """Functions, and methods that estimators have of their own, as the program calls them."""
    for module in map(importlib.import_module, MODULES):
        for name in module.__all__:
            value = getattr(module, name)
            if not inspect.isclass(value):
                yield name
            elif issubclass(value, BaseEstimator):
                for method, function in inspect.getmembers(value, inspect.isfunction):
                    if not method.startswith("_") and function.__module__.startswith("skts."):
                        yield f"{NAMES[name]}.{method}"


FOUND = sorted(set(public_callables()))


def check(folder, lines):
    """Messages of mypy about each line of a program."""
    program = folder / "program.py"
    program.write_text(PREAMBLE + "\n".join(lines) + "\n")
    config = folder / "mypy.ini"
    config.write_text(
        "[mypy]\nstrict = True\nignore_missing_imports = True\n"
        "[mypy-skts.*]\nfollow_imports = silent\n"
        "[mypy-sklearn.*,scipy.*]\nfollow_imports = skip\n"
    )
    command = [sys.executable, "-m", "mypy", "--config-file", str(config), str(program)]
    command += ["--cache-dir", str(folder / "cache"), "--no-error-summary"]
    environment = {**os.environ, "MYPYPATH": str(ROOT)}
    done = subprocess.run(command, capture_output=True, text=True, cwd=folder, env=environment)
    assert not done.stderr, done.stderr
    first = PREAMBLE.count("\n") + 1
    said = {}
    for line in done.stdout.splitlines():
        match = re.match(r".*program\.py:(\d+): (\w+): (.*)", line)
        assert match, line
        said.setdefault(int(match[1]) - first, []).append((match[2], match[3]))
    return said


@pytest.fixture(scope="module")
def report(tmp_path_factory):
    if importlib.util.find_spec("mypy") is None:
        pytest.skip("mypy is not installed")
    lines = [f"reveal_type({call})" for call in CALLS]
    lines += [f"{name}(no_such_argument=1)" for name in FOUND]
    return check(tmp_path_factory.mktemp("types"), lines)


def plainly(text):
    """A type without modules, type arguments of arrays, and fields of named tuples."""
    text = re.sub(r"\b(?:\w+\.)+(?=\w)", "", text)
    text = re.sub(r"ndarray\[(?:[^\[\]]|\[[^\[\]]*\])*\]", "ndarray", text)
    return re.sub(r"tuple\[[^\[\]]*, fallback=(\w+)\]", r"\1", text)


@pytest.mark.parametrize("call", CALLS)
def test_type_of_what_a_call_returns(report, call):
    ((kind, text),) = report[list(CALLS).index(call)]
    assert kind == "note", text
    assert plainly(re.fullmatch(r'Revealed type is "(.*)"', text)[1]) == CALLS[call]


@pytest.mark.parametrize("name", FOUND)
def test_signature_is_known(report, name):
    """An argument that is none is an error: decorators have not hidden the signature."""
    assert any(name in call for call in CALLS), f"a call of {name} is missing in CALLS"
    said = report.get(len(CALLS) + FOUND.index(name), [])
    assert any(
        kind == "error" and re.match("Unexpected keyword argument|No overload variant", text)
        for kind, text in said
    ), said


def untyped(node, compiled=False):
    """Names of functions of Python without types: others have a decorator of Numba around them."""
    for child in ast.iter_child_nodes(node):
        inside = compiled
        if isinstance(child, ast.FunctionDef):
            given = child.args
            arguments = [*given.posonlyargs, *given.args, *given.kwonlyargs]
            stated = all(a.annotation or a.arg in ("self", "cls") for a in arguments)
            names = {ast.unparse(each).partition("(")[0] for each in child.decorator_list}
            inside = compiled or bool(
                names & {"kernel", "overload", "intrinsic", "unbox", "lower_getattr_generic"}
            )
            if not inside and not (child.returns and stated):
                yield child.name
        yield from untyped(child, inside)


@pytest.mark.parametrize("folder", ["host", "numba"])
def test_only_compiled_functions_state_no_types(folder):
    """mypy lets functions without types pass there; see pyproject.toml."""
    files = sorted((Path(skts.__file__).parent / "engines" / folder).rglob("*.py"))
    found = {file.name: list(untyped(ast.parse(file.read_text()))) for file in files}
    assert files and not {name: functions for name, functions in found.items() if functions}


def test_untyped_functions_are_found():
    text = "@kernel\ndef a(x):\n  def b(y): pass\ndef c(x: int): pass\ndef d(x) -> int: pass"
    assert list(untyped(ast.parse(text))) == ["c", "d"]


def test_package_says_that_it_has_types():
    assert (Path(skts.__file__).parent / "py.typed").exists()
