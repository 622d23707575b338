"""The fuzzer: nothing public is left out, planted defects are found, half a minute finds none."""

from __future__ import annotations

import contextlib
import fcntl
import fnmatch
import inspect
import json
import mmap
import os
import re
import subprocess
import sys
import threading
import time
from collections import Counter
from dataclasses import replace
from pathlib import Path
from unittest import mock

import numpy as np
import pytest
from numba import njit
from numba.core.caching import Cache
from numba.core.dispatcher import Dispatcher

from skts.cluster import _choice, _dtw_kmedoids
from skts.cluster._medoids import Medoids
from skts.engines import ConcatenatedSeries, Join, SpacedNeighbors, Warping, find_engine
from skts.engines.cupy.elastic.programs import BandKernel
from skts.engines.cupy.programs import all_kernels
from skts.engines.numba.profile.lines import HEIGHTS as walk_sizes
from skts.motifs import _search
from tests.fuzz import (
    Case,
    Sample,
    assert_right,
    compilers,
    draw,
    instances,
    oracle_elastic,
    recipes,
    worker,
)
from tests.fuzz.__main__ import main
from tests.fuzz.compare import (
    Failure,
    close,
    copies_in_order,
    first_of_equals,
    nearest,
    nearest_rows,
    same,
)
from tests.fuzz.edges import near_edge, sizes_in, sizes_of, small_blocks
from tests.fuzz.instances import RARE, UNREACHED, reason_of
from tests.fuzz.machine import (
    LONG,
    _longest,
    draw_case,
    find_failure,
    missing_methods,
    missing_recipes,
    parameters,
)
from tests.fuzz.oracle import Warp
from tests.fuzz.recipe import RECIPES
from tests.fuzz.recipes_anomalies import possible_scores, scores_of_rows
from tests.fuzz.recipes_neighbors import Ambiguous, Award
from tests.fuzz.schedule import COSTS, pick_recipe
from tests.fuzz.shrink import _smaller as simpler
from tests.fuzz.shrink import shrink
from tests.fuzz.worker import STATUS

ROOT = Path(__file__).parents[2]
RECORD = ROOT / "benchmarks" / "results" / "attacks-fuzzing.json"
assert recipes


def fuzz(*arguments, path=ROOT):
    """Run the fuzzer in a process of its own."""
    folders = str(path), str(ROOT), os.environ.get("PYTHONPATH")
    return subprocess.run(
        [sys.executable, "-m", "tests.fuzz", *map(str, arguments)],
        cwd=ROOT,
        env=os.environ | {"PYTHONPATH": os.pathsep.join(filter(None, folders))},
        capture_output=True,
        text=True,
    )


def test_every_public_callable_has_a_recipe():
    assert missing_recipes() == []
    assert missing_methods() == []


@pytest.mark.parametrize("name", sorted(RECIPES))
def test_every_parameter_is_drawn(name):
    values = {}
    for number in range(300):
        case, _ = draw_case(0, number, name)
        for option, value in case.options.items():
            values.setdefault(option, set()).add(repr(value))
        for option, value in case.data.items():
            values.setdefault(option, set()).add(id(value))
    constant = [option for option in parameters(RECIPES[name]) if len(values.get(option, ())) < 2]
    assert not constant, f"never or always the same: {constant}"


@pytest.mark.parametrize("name", sorted(RECIPES))
def test_a_case_is_a_seed_and_a_number_and_can_be_kept(name, tmp_path):
    for number in range(5):
        case, labels = draw_case(3, number, name)
        again, other = draw_case(3, number, name)
        assert case.text() == again.text()
        assert labels == other
        case.save(tmp_path / "case.npz")
        kept = Case.load(tmp_path / "case.npz")
        assert kept.text() == case.text().replace("('and', 'or')", "['and', 'or']").replace(
            "('and',)", "['and']"
        ).replace("('or',)", "['or']").replace("logic': ()", "logic': []")
        made = eval(case.text(), {"np": np, "Case": Case, "Sample": Sample})
        assert made.text() == case.text()


SEEDED = [
    name
    for name, recipe in sorted(RECIPES.items())
    if "random_state" in inspect.signature(recipe.target).parameters
]


@pytest.mark.parametrize("name", [*SEEDED, "skts.cluster.choose_n_clusters"])
def test_seeds_are_handed_over_in_every_way(name):
    option = "random_state" if name in SEEDED else "of.random_state"
    cases = [draw_case(0, number, name)[0] for number in range(60)]
    assert {one.types.get(option) for one in cases} == {None, "RandomState", "None"}
    for case in cases:
        seed, kind = case.options[option], case.types.get(option)
        given, again = (case.given(option.removesuffix("random_state")) for _ in range(2))
        one, other = given["random_state"], again["random_state"]
        assert case.unseeded == (kind == "None")
        if kind == "RandomState":
            # a new one for each call, as another one of this seed
            assert one is not other
            assert one.randint(2**31) == np.random.RandomState(seed).randint(2**31)
        else:
            assert one == (None if kind == "None" else seed)


def first_failure(cases):
    """The kind of the first failure, or "none"."""
    failures = (find_failure(replace(case, relation=None)) for case in cases)
    return next((failure.kind for failure in failures if failure), "none")


def medoids_from(kind):
    """Clusters around medoids from random starts, whose seed is handed over in one way."""
    cases = (draw_case(0, number, "skts.DTWKMedoids")[0] for number in range(40))
    options = {"metric": "dtw", "metric_params": None, "cost": "squared", "window": None}
    options |= {"init": "random", "n_init": 1, "n_clusters": 3, "method": "pam", "max_iter": 100}
    return [
        replace(
            case,
            options=case.options | options,
            types={"random_state": kind},
            setting={"inline": False},
        )
        for case in cases
        if len(case.data["X"]) > 6
    ]


def test_a_state_that_is_not_kept_to_is_found():
    """An estimator that takes a RandomState for no seed."""
    cases = medoids_from("RandomState")
    assert first_failure(cases) == "none"
    with mock.patch.object(_dtw_kmedoids, "check_random_state", lambda _: np.random.RandomState()):
        assert first_failure(cases).startswith("another setting")


def test_a_fit_without_a_seed_that_does_not_improve_is_found():
    """An estimator that makes no swap where there is no seed."""
    right = _dtw_kmedoids.DTWKMedoids._best_of_runs

    def wrong(self, rows, given):
        found = right(self, rows, given)
        if self.random_state is not None:
            return found
        medoids = Medoids(np.arange(3), rows.some(np.arange(3)))
        return found._replace(medoids=medoids, history=[medoids.inertia], n_iter=1)

    cases = medoids_from("None")
    assert first_failure(cases) == "none"
    with mock.patch.object(_dtw_kmedoids.DTWKMedoids, "_best_of_runs", wrong):
        assert first_failure(cases) in ("a swap is left", "labels: not all: differ")


@pytest.mark.parametrize("normalize", [True, False])
def test_silhouettes_of_another_distance_than_the_clusters_are_found(normalize):
    """A choice of k-Shape's clusters that takes no notice of `normalize`."""
    given = {"metric": "sbd", "metric_params": {"normalize": not normalize}}
    options = {"of.kind": "KShapeClusterer", "of.normalize": normalize}
    cases = (draw_case(0, number, "skts.cluster.choose_n_clusters")[0] for number in range(90))
    cases = [case for case in cases if options.items() <= case.options.items()][:5]
    assert len(cases) == 5
    assert first_failure(cases) == "none"
    with mock.patch.object(_choice, "distance_options", lambda _: given):
        assert first_failure(cases) in ("best silhouette: values", "each silhouette: values")


def test_sizes_of_blocks_are_read_from_the_sources():
    source = """
LEAST, WIDTH, SHARE = 2**10, 48, 0.5
SIZES: dict[type, tuple[int, int]] = {np.float32: (16, 4_096)}
BYTES = 7 * OTHER
def cell(self):
    return self.rows, 300
"""
    assert sizes_of(source) == {1024, 48, 16, 4096, 300}
    assert {*walk_sizes} <= {*sizes_in(1, 10_000)}


def test_lines_are_as_long_as_blocks(rng):
    drawn = {near_edge(rng, 500, 1100) for _ in range(300)}
    assert {1023, 1024, 1025} <= drawn <= {*range(511, 515), *range(1023, 1028), 500, 1100}
    assert near_edge(rng, 7, 7) == 7


def test_blocks_are_small_for_a_while():
    line = ConcatenatedSeries.of([np.zeros(40)])
    work, before = SpacedNeighbors(line, None, 4, 3, n_spaced=2), Join(line, None, 4).cell
    with small_blocks(8):
        assert (work.block, work.cell, Join(line, None, 4).cell) == (8, (8, 8), (8, 8))
    assert (work.block, Join(line, None, 4).cell) == (1024, before)


def test_scores_of_many_rows_are_those_of_each(rng):
    """But for rows that leave a choice, most of which are let go."""
    rows = rng.normal(size=(400, 30)) ** 2
    rows[::7] = np.round(rows[::7])
    rows[rng.random(rows.shape) < 0.3] = np.inf
    rows[5] = np.inf
    near = np.abs(np.subtract.outer(np.arange(30), np.arange(30))) <= 2
    slack = np.full(rows.shape, 1e-9)
    for k in (1, 3):
        found = scores_of_rows(rows, slack, near, k)
        for one, *row in zip(found, rows, slack, strict=True):
            if one is not None:
                assert repr(one) == repr(possible_scores(*row, near, k))
        assert sum(one is None for one in found) < 60


def test_comparisons():
    row = np.array([3.0, 1.0, 2.0, 1.0, np.inf])
    nearest("", row, 0.0, [1, 3, 2], np.array([1.0, 1.0, 2.0]))
    for wrong in ([3, 1, 2], [1, 2, 3], [1, 3, 0], [1, 3, 4], [1, 1, 3], [1, 3, -1]):
        with pytest.raises(Failure):
            nearest("", row, 0.0, wrong, row[wrong])
    with pytest.raises(Failure, match="too many"):
        nearest("", row, 0.0, [1, 3, 2, 0, 4], None)
    close("", 1 + 1e-10, 1.0)
    for wrong in (1 + 1e-8, np.nan, np.inf):
        with pytest.raises(Failure):
            close("", wrong, 1.0)
    same("", {"a": [np.nan]}, {"a": [np.nan]})
    for wrong in ({"a": [1.0]}, {"a": [np.nan, 0]}, {}):
        with pytest.raises(Failure):
            same("", wrong, {"a": [np.nan]})


def test_a_planted_defect_is_found_and_cut():
    """An engine whose pairs are wrong where both series have more than four points."""
    engine = find_engine("numba")
    right = engine.dtw_matrix

    def wrong(reduction, tile, cancel):
        found = right(reduction, tile, cancel)
        rows, cols = reduction.sides
        long = rows.lengths[tile.rows][:, None] > 4
        return np.where(long & (cols.lengths[tile.cols][None] > 4), found * 1.001 + 1e-3, found)

    name = "skts.metrics.pairwise_dtw"
    with mock.patch.object(engine, "dtw_matrix", wrong):
        cases = ((number, draw_case(0, number, name)[0]) for number in range(200))
        found = ((number, case, find_failure(case)) for number, case in cases)
        _, case, failure = next(one for one in found if one[2] is not None)
        assert failure.kind == "distances: values"
        small, smaller = shrink(case, failure, find_failure)
        assert smaller.kind == failure.kind
        assert small.points() <= 20
        assert not small.setting
        assert small.relation is None
        with pytest.raises(Failure, match="distances: values"):
            assert_right(small)
    assert find_failure(small) is None
    assert_right(small)


def test_a_planted_wrong_neighbour_is_found():
    """The second of the nearest comes first, now and then."""
    engine = find_engine("numba")
    right = type(engine).subsequence_matches

    def wrong(self, reduction, tile, cancel):
        found = right(self, reduction, tile, cancel)
        found.starts[...] = np.maximum(found.starts - (found.starts % 7 == 6), 0)
        return found

    name = "skts.metrics.subsequence_distance"
    with mock.patch.object(type(engine), "subsequence_matches", wrong):
        kinds = {
            str(getattr(find_failure(draw_case(0, number, name)[0]), "kind", None))
            for number in range(120)
        }
    assert any(kind.startswith("best match") for kind in kinds)


def test_an_occurrence_that_is_not_the_first_of_equals_is_found():
    def last_of_equals(distances, near, exclusion):
        order = near[np.lexsort((-near, distances[near]))]
        return _search._apart(order, exclusion, distances.size)

    name = "skts.motifs.motifs"
    with mock.patch.object(draw, "CROWDED", 1.0):
        cases = [draw_case(1, number, name)[0] for number in range(40)]
    with mock.patch.object(_search, "_nearest_apart", last_of_equals):
        found = [find_failure(replace(case, setting={}, relation=None)) for case in cases]
    kinds = {failure.kind for failure in found if failure}
    assert kinds == {"occurrences: not the first of equals"}


def test_first_of_equals_and_copies():
    rows = np.array([[1.0, 1.0, 1.0]])
    first_of_equals("row", rows, 0.0, np.array([[0, 1]]), lambda _: rows[0])
    for wrong in ([1], [0, 2], [1, 0]):
        with pytest.raises(Failure, match="not the first of equals"):
            first_of_equals("row", rows, 0.0, np.array([wrong]), lambda _: rows[0])
    series = [np.zeros((1, 3)), np.ones((1, 3)), -np.zeros((1, 3)), np.zeros((1, 3))]
    copies_in_order("copies", series, [[0, 2, 1], [1, 0, 2]])
    copies_in_order("copies", series, [[2, 3], [0, 2]], within=True)
    for wrong in ([2, 0], [0, 3]):
        with pytest.raises(Failure, match="a copy comes first"):
            copies_in_order("copies", series, [wrong])


def test_answers_that_depend_on_a_setting_are_found():
    """An engine that rounds otherwise where tiles are small."""
    engine = find_engine("numba")
    right = engine.dtw_matrix

    def wrong(reduction, tile, cancel):
        found = right(reduction, tile, cancel)
        return found if engine.tile_work > 2**20 else np.nextafter(found, np.inf)

    X = Sample((np.array([[1.0, 2.0]]), np.array([[2.0, 4.0]])))
    case = Case("skts.metrics.pairwise_dtw", {"X": X}, setting={"tile_work": 1})
    with mock.patch.object(engine, "dtw_matrix", wrong), pytest.raises(Failure, match="setting"):
        assert_right(case)
    assert_right(case)


def test_terms_below_the_least_normal_number_lose_digits():
    recipe = RECIPES["skts.metrics.soft_dtw_gradient"]
    x, y = (Sample((np.array([[one]]),), form="single") for one in (0.0, 1.0))
    case = Case(recipe.name, {"x": x, "y": y}, {"gamma": 1.0, "window": None})
    exact = 2.2380696188602341e-302
    found = {"gradient": np.array([np.ldexp(exact, -37), 1.0])}
    assert found["gradient"][0] != 0 and np.ldexp(found["gradient"][0], 37) != exact
    again = np.array([exact, 2.0**37])
    recipe.relate_scale(case, found, lambda other: {"gradient": again}, 37)
    for wrong in ([2.0, 1.0], [1.0, 1.0 - 2.0**-53]):
        with pytest.raises(Failure, match="power of two"):
            recipe.relate_scale(case, found, lambda _, w=wrong: {"gradient": again * w}, 37)


def test_paths_between_shapes_that_tie_but_for_rounding_are_not_judged():
    x, y = np.array([[0.01, 0.0, 0.01]]), np.array([[0.07, -0.67, 0.0, -0.01]])
    tie = oracle_elastic.thresholds
    assert tie("shape_dtw", x, y, {}, Warp(cost="absolute"))
    # whole numbers are not rounded; beside points that differ there is one best path
    assert not tie("shape_dtw", np.rint(100 * x), np.rint(100 * y), {}, Warp(cost="absolute"))
    steep = np.array([[0.0, 1.1, 3.3, 7.7]])
    assert not tie("shape_dtw", steep, steep + 0.1, {"reach": 1}, Warp())


def test_distances_that_are_one_beside_tiny_points_are_not_told_apart(fast_engine):
    """Windows of three points, joined with single points of 1e-88: no cut among the latter."""
    X = Sample(
        (
            -4.343345108560133e-89 * (1 + 2.0**-51 * np.array([[0.0, -1.0, 1.0]])),
            np.array([[-5e-88]]),
            -1.2754886287124367e-88 * (1 - 2.0**-51 * np.array([[0.0, 2.0, 1.0, 1.0]])),
            np.array([[3e-88]]),
        )
    )
    options = {
        **draw_case(1, 1, "skts.ShapeletForestClassifier")[0].options,
        **{"n_estimators": 100, "max_candidates": "sqrt", "max_depth": None},
        **{"logic": ("and",), "max_literals": 2, "min_length": "auto", "max_length": "auto"},
    }
    data = {"X": X, "y": [3, 3, -1, -1], "Q": X}
    assert_right(Case("skts.ShapeletForestClassifier", data, options), fast_engine)


def test_a_radius_that_is_a_count_over_a_length_is_a_matter_of_rounding(fast_engine):
    """1 - 11 / 17 and 6 / 17 differ by a last bit."""
    x, q = np.zeros((1, 17)), np.zeros((1, 17))
    x[0, [4, 7, 14]], q[0, [4, 5, 6, 7, 9, 10, 11, 13, 15]] = 4.0, 4.0
    options = {
        **draw_case(1, 1, "skts.DTWNeighbors")[0].options,
        **{"metric": "lcss", "metric_params": None, "rotation_invariant": False, "cost": "squared"},
        **{"alignment": "global", "window": None, "n_neighbors": 1, "precision": "auto"},
        **{"call.also": "radius graph", "kneighbors.X": "some", "kneighbors.n_neighbors": 1},
        **{"radius": 1 - 11 / 17, "radius_neighbors_graph.radius": None},
    }
    data = {"X": Sample((x,)), "Q": Sample((q,))}
    assert_right(Case("skts.DTWNeighbors", data, options), fast_engine)


def test_paths_between_shapes_that_tie_but_for_rounding_are_a_matter_of_rounding(fast_engine):
    """Two paths are as good as each other: the points along one are a seventh farther apart."""
    x = np.ldexp(np.array([[-3, 2, 1, 1, 0, -3, 0, -2, -3, 2]]) / 4 + 0.1, -20)
    q = np.ldexp(np.array([[2, 0, 2, 4, 1, -3, 1]]) / 4 + 0.1, -5)
    options = {
        **draw_case(1, 1, "skts.DTWNeighbors")[0].options,
        **{"metric": "shape_dtw", "metric_params": {"reach": 1}, "rotation_invariant": False},
        **{"cost": "squared", "alignment": "global", "window": None, "n_neighbors": 1},
        **{"precision": "auto", "call.also": "radius graph", "kneighbors.X": "some"},
        **{"kneighbors.n_neighbors": 1, "radius": 0.058, "radius_neighbors_graph.radius": None},
    }
    recipe = RECIPES["skts.DTWNeighbors"]
    for X, Q in ((x, q), (q, x)):
        case = Case("skts.DTWNeighbors", {"X": Sample((X, Q)), "Q": Sample((Q,))}, options)
        assert_right(case, fast_engine)
        slack = recipe.slack(case, recipe.matrix(case, case.data["Q"]), case.data["Q"])
        assert slack.tolist() == [[np.inf, 0.0]]


def _lowest(series, metric, **given):
    """The series that AWARD removes first, by the oracle; all labels are different."""
    X, n = Sample(tuple(np.array([one]) for one in series)), len(series)
    options = {
        "metric": metric,
        "metric_params": given,
        "cost": "squared" if metric == "euclidean" else "absolute",
        "window": None,
    }
    award = Award(Case("skts.DTWCondenser", {"X": X, "y": list(range(n))}, options))
    return award.lowest(np.inf, np.ones(n, bool))


@pytest.mark.long
def test_sums_of_the_condenser_that_are_equal_by_chance_are_a_matter_of_rounding():
    """Those of the same distances are equal; those of others are, or are not, after roundings."""
    assert _lowest([[0.0], [1.1], [7.0], [9.2]], "dtw") == 3
    assert _lowest([[0.0], [1.0], [7.0], [8.0]], "dtw") == 3
    assert _lowest([[0.0], [1.0], [7.0], [8.0]], "wdtw", g=0.05) == 3
    assert _lowest([[0.0, 1, 2], [0, 1, 9], [50, 60, 70], [50, 60, 90]], "lcss", epsilon=0.5) == 3
    first = [[0.0, 0, 0], [1, 1, 1], [-1, -1, -2]]
    second = [[60.0, 60, 60], [62, 60, 60], [58, 60, 60]]
    with pytest.raises(Ambiguous):  # 1/3 + 1/6 is 1/4 + 1/4
        _lowest(first + second, "euclidean")


def test_many_tiles_are_for_lines_that_are_not_long():
    """A profile of 17 lengths has as many pairs as one of a line four times as long."""
    line = Sample((np.zeros((1, 590)),), "single")
    case = Case("skts.motifs.pan_matrix_profile", {"a": line}, {"windows": [*range(90, 107), 90]})
    assert _longest(case) == 590 * np.sqrt(17) > LONG
    assert _longest(Case("skts.motifs.segment", {"a": line}, {"window": 9})) == 590 < LONG


def test_text_of_a_tree_that_has_no_room_is_refused(fast_engine):
    options = draw_case(1, 1, "skts.tree.export_text")[0].options | {"tree.max_length": 9}
    X = Sample((np.arange(4.0)[np.newaxis], np.ones((1, 3))))
    assert_right(Case("skts.tree.export_text", {"X": X, "y": [0, 1]}, options), fast_engine)


def test_a_seed_is_not_cut_off():
    """Without it a case would be another one each time."""
    case = draw_case(0, 0, "skts.ShapeletTransformer")[0]
    assert all(one.options["random_state"] is not None for one in simpler(case))


def test_what_another_process_compiles_is_waited_for(monkeypatch, tmp_path):
    for one, name in ((Dispatcher, "compile"), (Cache, "save_overload")):
        monkeypatch.setattr(one, name, getattr(one, name))
    monkeypatch.setattr(compilers, "spent", Counter())
    monkeypatch.setitem(sys.modules, "cupy.cuda.compiler", None)  # nothing restores that
    folder = tmp_path / "locks"
    compilers.share_compilers(folder)

    @njit
    def halve(x):
        return x / 2

    @njit
    def quarter(x):
        return halve(halve(x))

    assert quarter(8.0) == 2.0
    first, second = sorted(folder.iterdir())
    found = quarter.signatures
    quarter.overloads.clear()
    with first.open() as one, second.open() as other:
        for file in (one, other):
            fcntl.flock(file, fcntl.LOCK_EX)
        thread = threading.Thread(target=quarter.compile, args=found)
        thread.start()
        thread.join(0.1)
        assert thread.is_alive() and not quarter.signatures
        waits = compilers.waits_for(folder, os.getpid())
    assert re.match(rf"waits for process {os.getpid()}, \d s at '.*'", waits), waits
    thread.join()
    assert not compilers.waits_for(folder, os.getpid())
    assert quarter.signatures == found and compilers.spent["Numba"] > 0.1


def test_warnings_and_surprises_are_failures():
    def warns(*arguments, **options):
        return np.float64(1.0) / np.zeros(1)

    X = Sample((np.array([[1.0]]),), "single")
    case = Case("skts.metrics.lb_keogh", {"x": X, "y": X})
    recipe = type(RECIPES["skts.metrics.lb_keogh"])
    with mock.patch.object(recipe, "target", warns):
        assert find_failure(case).kind.startswith("RuntimeWarning")
    with mock.patch.object(recipe, "target", lambda *given, **options: [][0]):
        assert find_failure(case).kind.startswith("IndexError")


#: Loaded by the worker: of its calls the second ends the process, and in its next life it hangs.
DISTURBANCE = """
import os, sys, time
from pathlib import Path
if any('"events"' in one for one in sys.orig_argv):
    import skts.metrics, tests.fuzz.worker
    plain, calls, folder = skts.metrics.lb_keogh, [], Path(__file__).parent
    if (folder / "ended").exists():  # what it calls has been compiled by then
        tests.fuzz.worker.PATIENCE = tests.fuzz.worker.COMPILING = 8.0
    def lb_keogh(x, y, *, metric="dtw", window=None, cost="squared"):
        calls.append(1)
        for mark, act in (("ended", os.abort), ("hung", lambda: time.sleep(100))):
            if len(calls) == 2 and not (folder / mark).exists():
                (folder / mark).touch()
                act()
        return plain(x, y, metric=metric, window=window, cost=cost)
    skts.metrics.lb_keogh = lb_keogh
"""


#: Writes its status for half a second, as often as it can.
WRITER = """
import mmap, runpy, sys, time
worker = runpy.run_path(sys.argv[2])
with open(sys.argv[1], "r+b") as file:
    status = mmap.mmap(file.fileno(), worker["STATUS"].size)
end = time.time() + 0.5
while time.time() < end:
    worker["tell_status"](status, 1, time.time(), 60.0, 0, 1.0)
"""


def test_a_status_is_read_whole_at_any_time(tmp_path):
    path, now = tmp_path / "status", time.time()
    path.write_bytes(STATUS.pack(0, now, 60.0, 0, 0.0))
    with path.open("r+b") as file:
        status = mmap.mmap(file.fileno(), STATUS.size)
    writer = subprocess.Popen([sys.executable, "-c", WRITER, path, worker.__file__])
    seen = set()
    while writer.poll() is None:
        number, began, limit, *_ = STATUS.unpack_from(status, 0)
        assert began >= now and limit == 60.0
        seen.add(number)
    assert writer.returncode == 0 and seen == {0, 1}


@pytest.mark.slow
def test_crashes_and_hangs_name_their_case(tmp_path):
    (tmp_path / "sitecustomize.py").write_text(DISTURBANCE)
    options = "--function lb_keogh --seed 5 --seconds 200 --cases 12 --shrinking 5 --found"
    done = fuzz(*options.split(), tmp_path / "found", path=tmp_path)
    assert done.returncode == 1, done.stderr
    assert re.search(r"FAILED skts.metrics.lb_keogh: crash: SIGABRT", done.stdout), done.stdout
    assert re.search(r"FAILED skts.metrics.lb_keogh: hangs: more than 8 s", done.stdout)
    assert re.search(r"Current thread 0x.*\n +File .*sitecustomize.py", done.stdout), done.stdout
    assert len(re.findall(r"--function skts.metrics.lb_keogh --case \d+\n", done.stdout)) == 2
    assert re.search(r"alone, case \d+ does not crash", done.stdout)
    assert "2 failures of 2 kinds, seed 5" in done.stdout


@pytest.mark.long
def test_half_a_minute_finds_nothing(tmp_path, fast_engine):
    """A fresh seed each time; a failure prints the command that repeats it."""
    seed = os.environ["SKTS_FUZZ_SEED"]
    counts = tmp_path / "counts.json"
    done = fuzz(
        "--seconds",
        os.environ.get("SKTS_FUZZ_SECONDS", 30),
        "--seed",
        seed,
        "--engine",
        fast_engine,
        "--quiet",
        "--json",
        counts,
        "--found",
        tmp_path,
    )
    print(done.stdout)
    assert done.returncode == 0, f"seed {seed}\n{done.stdout[-8000:]}\n{done.stderr[-2000:]}"
    assert set(json.loads(counts.read_text())["cases"]) == set(RECIPES)


def test_the_function_of_a_case_follows_from_seed_and_number():
    for seed in (1, 2):
        first = [pick_recipe(seed, number) for number in range(len(RECIPES))]
        assert sorted(first) == sorted(RECIPES)
    assert [pick_recipe(1, number) for number in range(50)] != [
        pick_recipe(2, number) for number in range(50)
    ]
    drawn = Counter(pick_recipe(1, number) for number in range(30_000))
    # the dearest and the host's code keep a share, too
    assert min(drawn[name] for name in RECIPES) > 20
    assert set(COSTS) <= set(RECIPES)


def test_rows_are_judged_as_one_by_one():
    """The compiled loop lets no row pass that `nearest` would not."""
    rng = np.random.default_rng(0)
    for _ in range(400):
        rows = rng.integers(0, 4, (3, 5)).astype(float)
        rows[rng.random(rows.shape) < 0.2] = np.inf
        k = int(rng.integers(1, 6))
        indices = np.argsort(rows, axis=1, kind="stable")[:, :k]
        values = np.take_along_axis(rows, indices, 1)
        indices[np.isinf(values)] = -1
        if rng.random() < 0.7:
            row, rank = rng.integers(0, 3), rng.integers(0, k)
            indices[row, rank] = rng.integers(-1, 6)
            if rng.random() < 0.5:
                values[row, rank] = rng.integers(0, 4)
        found = []
        for one in range(3):
            with contextlib.suppress(Failure):
                nearest("", rows[one], 0.0, indices[one], values[one])
                found.append(one)
        wrong = len(found) < 3
        with pytest.raises(Failure) if wrong else contextlib.nullcontext():
            nearest_rows("", rows, 0.0, indices, values)


def test_runs_add_up(tmp_path, capsys):
    run = {"seed": 1, "engine": "cupy", "against": "numba", "seconds": 1.0, "device": "one"}
    run |= {"date": "", "cases": {"skts.metrics.dtw": {"cupy": 3, "numba": 2}}, "failures": {}}
    run |= {"first": 0, "jobs": 2, "commit": "1", "command": "python", "versions": {"numpy": "2"}}
    run |= {"machine": {}, "sources": {}, "ways": {"another setting": 2}, "unfinished": ["a"]}
    run |= {"kernels": ["kshape/centers.cu extend", "gone.cu f<1>"]}
    paths = [tmp_path / "a.json", tmp_path / "b.json"]
    for path in paths:
        path.write_text(json.dumps(run))
    record = tmp_path / "record.json"
    assert main(["--sum", *map(str, paths), "--record", str(record)]) == 0
    assert re.search(r"skts.metrics.dtw +6 +4\n", capsys.readouterr().out)
    kept = json.loads(record.read_text())
    counts = {"numba": 4, "cupy": 6, "host": 0, "failures": 0}
    assert kept["rows"] == [{"function": name} | counts for name in ("skts.metrics.dtw", "all")]
    assert kept["ways"] == {"another setting": 4} and kept["unfinished"] == ["a", "a"]
    assert [one["seed"] for one in kept["runs"]] == [1, 1]
    instances = kept["kernels"]
    assert instances["reached"] == 1
    assert instances["of"] == 1 + sum(map(len, instances["left"].values()))
    assert "extend" not in instances["left"]["kshape/centers.cu"]
    paths[0].write_text(json.dumps(run | {"failures": {"skts.metrics.dtw values": 1}}))
    assert main(["--sum", *map(str, paths), "--record", str(record)]) == 1
    assert "1 failures of 1 kinds" in capsys.readouterr().out
    assert [row["failures"] for row in json.loads(record.read_text())["rows"]] == [1, 1]
    paths[0].write_text(json.dumps(run | {"commit": "2"}))
    with pytest.raises(ValueError, match="of several commits"):
        main(["--sum", *map(str, paths), "--record", str(record)])


def test_rows_of_a_padded_array_keep_its_columns():
    """As wide as what an estimator was fitted with, whatever rows are left."""
    padded = Sample((np.ones((1, 2)), np.ones((1, 5)), np.ones((1, 3))), form="padded", spare=2)
    taken = padded.take([0, 2])
    assert (taken.width, taken.give().shape) == (7, (2, 7))
    assert taken.goes_with(padded)


@pytest.mark.parametrize("length", [20, 200, 1600])
def test_other_instances_do_the_same_work(length):
    """All widths that a length allows are chosen, of those that the compile check lists."""
    warping, names = Warping(window=9), set()
    for number in range(300):
        (_, _, choose), *_ = instances._of_warping(instances._Choice(number))
        kernel, _ = choose("float", 1, length, length, warping, 9)
        assert (kernel.group == 32 and kernel.strips) or kernel.columns * kernel.group >= (
            2 * 9 + 1 if isinstance(kernel, BandKernel) else length
        )
        names.add(kernel.name)
    every = all_kernels()
    assert names <= {*every["elastic/dtw.cu"], *every["elastic/band.cu"]}
    assert len(names) > 4
    in_strips = [name for name in names if "1, true" in name]
    assert bool(in_strips) == (length > 32 * 8)


def test_instances_of_kernels_are_reached_or_have_a_reason():
    """Those that the recorded run left out; newer ones are the matter of the next record."""
    record = json.loads(RECORD.read_text())
    every = {f"{file} {name}" for file, names in all_kernels().items() for name in names}
    left = {f"{file} {name}" for file, names in record["kernels"]["left"].items() for name in names}
    unsaid = sorted(name for name in left & every if not reason_of(name))
    assert not unsaid, (
        f"In {RECORD.name}, a run of commit {record['commit']}, no case reached {len(unsaid)} "
        "kernels. Draw cases that do (tests/fuzz/instances.py, recipes), run the fuzzer on a GPU "
        f"and record it, or say in UNREACHED or RARE why: {unsaid[:9]}"
    )
    assert not [name for name in UNREACHED | RARE if not fnmatch.filter(every, name)]
    assert not [name for name in RARE if not fnmatch.filter(left, name)]


def test_searches_in_float32_count_edits_within_a_given_epsilon():
    """The kernel for one channel without a band, which few cases reach."""

    def reaches(case):
        options, (first, *_) = case.options, case.data["X"].series
        given = (options.get("metric_params") or {}).get("epsilon")
        edits = options["metric"] == "edr" and given is not None and options["window"] is None
        return edits and len(first) == 1 and options["precision"] == "float32"

    cases = (draw_case(0, number, "skts.DTWNeighbors")[0] for number in range(1500))
    assert any(map(reaches, cases))


@pytest.mark.slow
def test_a_run_ends_by_the_clock(tmp_path):
    """A case that goes on is stopped, named, and no failure; what was counted is kept."""
    hanging = DISTURBANCE.replace("os.abort", "(lambda: time.sleep(100))")
    (tmp_path / "sitecustomize.py").write_text(hanging)
    counts = tmp_path / "counts.json"
    options = "--function lb_keogh --seed 5 --seconds 30 --grace 0.5 --progress 5 --quiet"
    done = fuzz(*options.split(" "), "--json", counts, "--found", tmp_path, path=tmp_path)
    assert done.returncode == 0, done.stdout + done.stderr
    kept = json.loads(counts.read_text())
    (case,) = kept["unfinished"]
    assert re.fullmatch(r"skts.metrics.lb_keogh --case \d+", case)
    assert f"the time was up in --function {case}" in done.stdout
    assert kept["cases"]["skts.metrics.lb_keogh"]["host"] >= 1
    assert re.search(r"after \d+ s: \d+ cases", done.stdout)
