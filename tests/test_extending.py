"""The walk-throughs of the developer guide, from outside: a distance, a reduction, an engine."""

from __future__ import annotations

import importlib
import pickle
import re
import runpy
import shutil
import sys
from pathlib import Path

import numpy as np
import pytest
from numpy.testing import assert_array_equal

from skts import DTWNearestNeighbor, config_context, show_engines
from skts.base import check_series
from skts.engines import DTWMatrix, DTWPath, Tile, find_engine, get_engine, run
from skts.engines.core import registry
from skts.exceptions import UnsupportedReductionError, VerificationError
from skts.metrics import dtw, pairwise_dtw

GUIDE = Path(__file__).parents[1] / "docs" / "developer"


@pytest.fixture
def outside(tmp_path, monkeypatch):
    """Return a function that installs a file of the guide as a package of its own."""
    monkeypatch.syspath_prepend(str(tmp_path))
    monkeypatch.setattr(registry, "_instances", dict(registry._instances))
    names = []

    def install(file, points=()):
        # with its time, by which compiled policies are found again
        shutil.copy2(GUIDE / file, tmp_path)
        names.append(Path(file).stem)
        folder = tmp_path / f"{names[-1]}-1.0.dist-info"
        folder.mkdir()
        (folder / "METADATA").write_text(
            f"Metadata-Version: 2.1\nName: {names[-1]}\nVersion: 1.0\n"
        )
        (folder / "entry_points.txt").write_text("\n".join(["[skts.engines]", *points]))
        importlib.invalidate_caches()
        return importlib.import_module(names[-1])

    yield install
    for name in names:
        sys.modules.pop(name, None)


# --- a distance --------------------------------------------------------------------------------


def gaps(x, y, delete, insert, radius):
    """Least cost of matching two series of shape (C, n) and (C, m), by plain recursion over cells.

    All values of the tests are multiples of 1/4: sums are exact in any order.
    """
    (n_channels, n), m = x.shape, y.shape[1]
    least = {(0, 0): 0.0}
    for i, j in np.ndindex(n + 1, m + 1):
        if (i, j) != (0, 0) and abs(i - j) <= radius:
            ways = [
                (i - 1, j - 1, np.abs(x[:, i - 1] - y[:, j - 1]).sum()),
                (i - 1, j, n_channels * delete),
                (i, j - 1, n_channels * insert),
            ]
            least[i, j] = min(least.get((a, b), np.inf) + cost for a, b, cost in ways)
    return least[n, m]


def all_gaps(X, Y, delete=1.0, insert=1.0, window=None):
    def radius(x, y):
        n, m = x.shape[1], y.shape[1]
        return n + m if window is None else max(window, abs(n - m))

    return np.array([[gaps(x, y, delete, insert, radius(x, y)) for y in Y] for x in X])


def steps_of(rng, n_series, n_channels, lengths):
    return [
        rng.integers(0, 9, (n_channels, n)) / 4.0 for n in rng.choice(lengths, n_series).tolist()
    ]


@pytest.mark.parametrize(
    ("channels", "options"),
    [
        (1, {"delete": 0.5, "insert": 0.5}),
        (2, {"delete": 0.25, "insert": 1.5}),
        (1, {"delete": 0.75, "insert": 0.25, "window": 2}),
    ],
)
@pytest.mark.compiles
@pytest.mark.cases
def test_the_distance_is_that_of_plain_loops(outside, rng, channels, options):
    """Lengths below and above a strip of columns, on either side of the lanes."""
    example = outside("distance_example.py")
    X = steps_of(rng, 7, channels, [1, 5, 9, 70])
    Y = steps_of(rng, 3, channels, [1, 6, 68])
    expected, within = all_gaps(X, Y, **options), all_gaps(X, X, **options)
    for memory in (None, "1MiB"):
        with config_context(memory=memory, verify=True):
            assert_array_equal(example.pairwise_gaps(X, Y, **options), expected)
            assert_array_equal(example.pairwise_gaps(Y, X, **options), all_gaps(Y, X, **options))
            assert_array_equal(example.pairwise_gaps(X[:1], Y[:1], **options), expected[:1, :1])
            work = DTWMatrix(series := check_series(X), series, example.Gaps(**options))
            assert work.symmetric == (options["delete"] == options["insert"])
            assert_array_equal(run(work, engine="numba"), within)
            found = example.nearest_by_gaps(X, Y, 2, **options)
        order = np.argsort(expected, axis=1, kind="stable")[:, :2]
        assert_array_equal(found.indices, order)
        assert_array_equal(found.distances, np.take_along_axis(expected, order, axis=1))


def test_the_distance_travels_and_merges(outside, rng):
    example = outside("distance_example.py")
    X, Y = steps_of(rng, 4, 1, [8]), steps_of(rng, 130, 1, [7])
    work = DTWMatrix(check_series(X), check_series(Y), example.Gaps(delete=0.5, insert=0.75))
    total = work.start()
    for tile in (Tile(2, 4, 64, 130), Tile(0, 2, 0, 64), Tile(2, 4, 0, 64), Tile(0, 2, 64, 130)):
        part = pickle.loads(pickle.dumps(work.part(tile)))
        assert part.warping == work.warping
        work.merge(total, tile, run(part, engine="numba"))
    assert_array_equal(total, all_gaps(X, Y, 0.5, 0.75))


def test_plain_code_notices_where_the_distance_is_computed_wrongly(outside, rng, monkeypatch):
    example = outside("distance_example.py")
    X, Y = steps_of(rng, 3, 1, [8]), steps_of(rng, 70, 1, [7])
    right = example.Gaps.plain_cost
    monkeypatch.setattr(example.Gaps, "plain_cost", lambda self, x, y: right(self, x, y) + 0.25)
    with config_context(verify=True), pytest.raises(VerificationError, match="the distance of"):
        example.pairwise_gaps(X, Y, engine="numba")


@pytest.mark.parametrize("engine", ["cupy", "oracle", "rows"])
def test_the_distance_is_refused_where_it_is_not_known(outside, rng, engine):
    outside("engine_example.py", [POINT])
    example = outside("distance_example.py")
    X = check_series(steps_of(rng, 2, 1, [8]))
    # asked, not run: there need not be a GPU
    reason = find_engine(engine).supports(DTWMatrix(X, X, example.Gaps()))
    assert reason.startswith(f"engine='{engine}' ")
    assert reason.endswith(".")
    assert reason.count(". ") == 0


def test_what_the_engine_lacks_of_the_distance(outside, rng):
    example = outside("distance_example.py")
    X = steps_of(rng, 2, 1, [8])
    with pytest.raises(UnsupportedReductionError, match=r"not compute Gaps\(.*cost='squared'"):
        example.pairwise_gaps(X, X, cost="squared", engine="numba")
    x = check_series([[0.0, 1.0, 2.0, 3.0]])
    y = check_series([[1.0, 2.0, 9.0, 3.0]])
    path, distance = run(DTWPath(x, y, example.Gaps()), engine="numba")
    assert path.tolist() == [[1, 0], [2, 1], [3, 3]]
    assert distance == 2.0
    with pytest.raises(ValueError, match="metric='dtw' is not one of 'gaps'"):
        example.Gaps(metric="dtw")


# --- a reduction -------------------------------------------------------------------------------


def test_the_reduction_runs_as_a_script(caplog):
    found = runpy.run_path(str(GUIDE / "reduction_example.py"), run_name="__main__")
    assert_array_equal(found["counts"], (found["X"] > 1).sum(axis=1))
    assert "16 parts" in caplog.text


def test_the_reduction_answers_the_same_however_it_is_cut(outside, rng):
    example = outside("reduction_example.py")
    X = rng.normal(size=(300, 40))
    expected = (X > 0.5).sum(axis=1)
    for n_jobs in (1, 2, None):
        for memory in (None, "1KiB"):
            with config_context(memory=memory, verify=True):
                assert_array_equal(example.count_exceedances(X, 0.5, n_jobs=n_jobs), expected)
    work, engine = example.Exceedances(X, 0.5), example.ExceedancesEngine()
    total = work.start()
    for row in (200, 0, 100):
        tile = Tile(row, row + 100, 0, 1)
        part = pickle.loads(pickle.dumps(work.part(tile)))
        result = engine.compute(part, Tile(0, 100, 0, 1), np.zeros(1, np.uint8))
        work.merge(total, tile, result)
    assert_array_equal(work.finish(total, None), expected)


def test_plain_code_notices_where_the_reduction_is_computed_wrongly(outside, rng, monkeypatch):
    example = outside("reduction_example.py")
    monkeypatch.setattr(
        example.ExceedancesEngine, "exceedances", lambda self, r, tile, cancel: r.start()[tile.rows]
    )
    with config_context(verify=True), pytest.raises(VerificationError, match="count of series"):
        example.count_exceedances(rng.normal(size=(30, 40)), 0.0)


# --- an engine ---------------------------------------------------------------------------------

POINT = "rows = engine_example:RowsEngine"


def test_the_entry_point_is_that_of_the_guide():
    assert POINT.replace("= ", '= "') + '"' in (GUIDE / "extending.rst").read_text()


def test_the_engine_is_found_and_finds_the_bits_of_the_others(outside, rng, capsys):
    outside("engine_example.py", [POINT])
    show_engines()
    assert re.search(r"^rows +ready: NumPy", capsys.readouterr().out, re.MULTILINE)
    X = rng.normal(size=(23, 2, 17)).cumsum(axis=2)
    expected = pairwise_dtw(X, X[:9] + 0.5, engine="numba")
    for memory in (None, "64KiB"):
        with config_context(memory=memory, verify=True):
            assert_array_equal(pairwise_dtw(X, X[:9] + 0.5, engine="rows"), expected)
    with config_context(engine="rows"):
        assert_array_equal(pairwise_dtw(X), pairwise_dtw(X, engine="numba"))
        assert dtw(X[0], X[1]) == dtw(X[0], X[1], engine="numba")


def test_the_engine_says_what_it_lacks(outside, rng):
    outside("engine_example.py", [POINT])
    X = rng.normal(size=(6, 12))
    for options in ({"metric": "dog_keeper"}, {"cost": "absolute"}, {"window": 3}):
        with pytest.raises(UnsupportedReductionError, match="squared costs and without a window"):
            pairwise_dtw(X, engine="rows", **options)
    with pytest.raises(UnsupportedReductionError, match="series of one length only"):
        pairwise_dtw([X[0], X[1, :7]], engine="rows")
    with pytest.raises(UnsupportedReductionError, match="'rows' does not compute DTWNeighbors"):
        DTWNearestNeighbor(engine="rows").fit(X, np.arange(6) % 2).predict(X)


def test_auto_asks_the_engine_what_it_would_take(outside, rng, monkeypatch):
    outside("engine_example.py", [POINT])
    engine, X = find_engine("rows"), rng.normal(size=(6, 12))
    called, compute = [], engine.dtw_matrix
    monkeypatch.setitem(
        vars(engine), "dtw_matrix", lambda *args: called.append(1) or compute(*args)
    )
    expected = pairwise_dtw(X, window=3, engine="numba"), pairwise_dtw(X, engine="numba")
    with config_context(engine="auto"):
        monkeypatch.setitem(vars(engine), "seconds", lambda reduction: 0.0)
        assert_array_equal(pairwise_dtw(X, window=3), expected[0])
        assert not called
        assert_array_equal(pairwise_dtw(X), expected[1])
        assert called
    assert get_engine("rows") is engine
