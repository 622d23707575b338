"""Costs that are functions of the user's: on both engines, turned round, and wherever they travel.

Each function is compiled into kernels of its own, for seconds: on the CPU the default run has one.
"""

from __future__ import annotations

import copy
import pickle

import numpy as np
import pytest
from joblib import parallel_config
from numba import njit
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.base import clone

from skts import (
    DTWKMedoids,
    DTWNearestNeighbor,
    DTWNearestNeighborRegressor,
    DTWNeighbors,
    SubsequenceSearch,
    config_context,
)
from skts.base import check_series
from skts.engines import CustomWarping, DTWMatrix, DTWPairs, DTWPath, Series, Tile, find_engine, run
from skts.engines.host import point_costs
from skts.engines.numba.elastic.cells import cell_of
from skts.engines.numba.elastic.rows_of_cells import costs_of
from skts.exceptions import UnsupportedReductionError
from skts.metrics import PointCost, pairwise_distances, warping_path


def leaning(x, y):
    """Twice as much where the second point is above."""
    return max(x - y, 2.0 * (y - x))


BOTH = PointCost(leaning, "fmax(x - y, 2.0 * (y - x))")


def table(x, y, radius, largest, alignment):
    n, m = x.shape[1], y.shape[1]
    D = np.full((n + 1, m + 1), np.inf)
    D[0, :: 1 if alignment == "subsequence" else m + 1] = 0.0
    D[:: 1 if alignment == "supersequence" else n + 1, 0] = 0.0
    for i, j in np.ndindex(n, m):
        if abs(i - j) <= radius:
            cost = sum(leaning(float(p), float(q)) for p, q in zip(x[:, i], y[:, j], strict=True))
            best = D[i : i + 2, j : j + 2].min()
            D[i + 1, j + 1] = max(cost, best) if largest else cost + best
    return D


def expected(X, Y, metric="dtw", window=None, alignment="global"):
    def one(x, y):
        n, m = x.shape[1], y.shape[1]
        radius = n + m if window is None else max(window, abs(n - m))
        D = table(x, y, radius, metric == "dog_keeper", alignment)
        if alignment == "global":
            return D[n, m]
        return (D[n, 1:] if alignment == "subsequence" else D[1:, m]).min()

    return np.array([[one(x, y) for y in Y] for x in X])


def drawn(rng, count, channels, length):
    return rng.integers(-8, 9, (count, channels, length)) / 4.0


def test_few_pairs_and_paths(fast_engine, rng):
    """The certified kernel on the CPU, and what verifies it."""
    X, Y = drawn(rng, 3, 2, 7), drawn(rng, 4, 2, 7)
    options = {"cost": BOTH, "engine": fast_engine}
    for alignment in ("global", "subsequence", "supersequence"):
        with config_context(verify=True):
            found = pairwise_distances(X, Y, alignment=alignment, **options)
        assert_array_equal(found, expected(X, Y, alignment=alignment))
    found = pairwise_distances(X, Y, window=1, **options)
    assert_array_equal(found, expected(X, Y, window=1))
    within = pairwise_distances(X, **options)
    assert_array_equal(within, expected(X, X))
    assert (within != within.T).any()


@pytest.mark.compiles
@pytest.mark.parametrize("metric", ["dtw", "dog_keeper"])
@pytest.mark.parametrize("channels", [1, 2])
def test_every_kernel_and_side(fast_engine, rng, metric, channels):
    """Lanes, strips and bands; whichever side lies in them, the function gets x first."""
    for (n, m), windows in (((6, 6), (None, 0, 2)), ((3, 70), (None,)), ((70, 5), (None,))):
        for count, other in ((2, 70), (70, 2), (3, 3)):
            X, Y = drawn(rng, count, channels, n), drawn(rng, other, channels, m)
            for window in windows:
                options = {"metric": metric, "window": window}
                found = pairwise_distances(X, Y, cost=BOTH, engine=fast_engine, **options)
                assert_array_equal(found, expected(X, Y, **options))
        for alignment in ("subsequence", "supersequence"):
            options = {"metric": metric, "alignment": alignment}
            found = pairwise_distances(X, Y, cost=BOTH, engine=fast_engine, **options)
            assert_array_equal(found, expected(X, Y, **options))


@pytest.mark.compiles
def test_paths(fast_engine, rng):
    x, y = drawn(rng, 2, 1, 9)
    path, distance = warping_path(x, y, cost=BOTH, engine=fast_engine)
    assert distance == expected([x], [y])[0, 0]
    assert sum(leaning(x[0, i], y[0, j]) for i, j in path) == distance


@pytest.mark.compiles
@pytest.mark.parametrize("precision", ["auto", "float32"])
def test_neighbours(fast_engine, rng, precision):
    X, Q = drawn(rng, 70, 1, 6), drawn(rng, 3, 1, 6)
    options = {"cost": BOTH, "engine": fast_engine, "precision": precision}
    D = expected(Q, X)
    model = DTWNearestNeighbor(2, **options).fit(X, np.arange(70) % 2)
    distances, indices = clone(model).fit(X, np.arange(70) % 2).kneighbors(Q)
    order = np.argsort(D, axis=1, kind="stable")[:, :2]
    assert_array_equal(indices, order)
    assert_array_equal(distances, np.take_along_axis(D, order, axis=1))
    assert_array_equal(pickle.loads(pickle.dumps(model)).kneighbors(Q)[1], order)
    near = DTWNeighbors(radius=9.0, **options).fit(X).radius_neighbors_graph(Q, mode="distance")
    assert_array_equal(near.toarray(), np.where(D <= 9, D, 0))
    DTWNearestNeighborRegressor(1, **options).fit(X, np.arange(70.0)).predict(Q)


@pytest.mark.slow
def test_processes(rng, monkeypatch):
    """A function without a name travels by value."""
    monkeypatch.setattr("skts.engines.core.executor.WORTH_SENDING", 0)
    X, Y = drawn(rng, 4, 1, 40), drawn(rng, 300, 1, 40)
    cost = PointCost(lambda x, y: abs(x - y) / 2)
    with parallel_config("loky", n_jobs=2):
        found = pairwise_distances(X, Y, cost=cost, engine="numba")
    assert_array_equal(found, pairwise_distances(X, Y, cost="absolute") / 2)


def test_by_plain_code(rng):
    X, Y = drawn(rng, 3, 2, 5), drawn(rng, 2, 2, 4)
    for options in ({"window": 1}, {"metric": "dog_keeper"}, {"alignment": "supersequence"}):
        turned = CustomWarping(point_cost=BOTH, **options).flipped
        assert turned.flipped == CustomWarping(point_cost=BOTH, **options)
        plain = [[turned.plain(y, x) for y in Y] for x in X]
        assert_array_equal(plain, expected(X, Y, **options))


def test_travels_and_copies(rng):
    work = DTWMatrix(*(check_series(list(drawn(rng, 2, 1, 4))) for _ in "XY"),
                     CustomWarping(point_cost=BOTH))  # fmt: skip
    part = pickle.loads(pickle.dumps(work.part(Tile(0, 1, 0, 2))))
    assert part.warping == work.warping and part.warping.point_cost == BOTH
    assert copy.deepcopy(BOTH) is BOTH
    nameless = pickle.loads(pickle.dumps(PointCost(lambda x, y: x * y + 1)))
    assert nameless(2.0, 3.0) == 7.0 and nameless.cuda is None
    assert pickle.loads(pickle.dumps(PointCost(cuda="x * y"))) == PointCost(cuda="x * y")
    model = DTWNearestNeighbor(cost=BOTH)
    assert clone(model).cost is BOTH and clone(DTWNearestNeighbor(cost=leaning)).cost is leaning


def scaled(factor):
    return lambda x, y: factor * abs(x - y)


def test_kernels_are_found_by_what_is_in_the_function():
    digest = point_costs.digest_of
    assert digest(scaled(2.0)) == digest(scaled(2.0)) != digest(scaled(3.0))
    assert digest(lambda x, y: x - y) != digest(lambda x, y: y - x)
    assert digest(leaning) == digest(pickle.loads(pickle.dumps(BOTH)).function)
    weights = np.array([1.0, 2.0])
    one = digest(lambda x, y: weights[0] * abs(x - y))
    weights[0] = 3.0
    assert one != digest(lambda x, y: weights[0] * abs(x - y))
    inner = scaled(2.0)
    assert digest(lambda x, y: inner(x, y)) == digest(lambda x, y: inner(x, y))
    compiled = njit(leaning)
    assert point_costs.compiled(compiled)(1.0, 3.0) == 4.0
    kinds = {
        type(cell_of(CustomWarping(metric=metric, point_cost=PointCost(cost), turned=turned)))
        for metric in ("dtw", "dog_keeper")
        for cost in (scaled(2.0), scaled(3.0), scaled(2.0))
        for turned in (False, True)
    }
    assert len({kind.__qualname__ for kind in kinds}) == len(kinds) == 8


def nothing(x, y):
    return x.size


@pytest.mark.parametrize(
    ("cost", "message"),
    [
        (lambda x, y: (x, y), "returns a UniTuple"),
        (lambda x: x, "must take two arguments, a point of each series; it takes 1"),
        (lambda x, y, scale=2.0: x * y * scale, "must take two arguments, .*; it takes 3"),
        (nothing, "does not compile cost=<function nothing .*>: Unknown attribute 'size'"),
        (max, "no Python function of two points"),
    ],
)
def test_functions_that_are_no_costs(cost, message):
    with pytest.raises((TypeError, ValueError), match=message):
        pairwise_distances([[0.0, 1.0]], cost=cost, engine="numba")


@pytest.mark.slow
@pytest.mark.parametrize("cost", [lambda x, y: 1, lambda x, y: True])
def test_a_constant_is_a_number(cost):
    found = pairwise_distances([[0.0, 1.0]], [[0.0, 1.0, 2.0]], cost=cost, engine="numba")
    assert_array_equal(found, [[3.0]])


def test_colours_are_left_out_of_the_reason():
    error = ValueError("\x1b[1mFailed in nopython\x1b[0m\n\x1b[1m\x1b[31mUnknown name\x1b[0m\nmore")
    assert point_costs._first_line(error) == "Unknown name"


def test_wrong_costs():
    with pytest.raises(ValueError, match="a function, or a CUDA expression"):
        PointCost()
    with pytest.raises(TypeError, match="cannot be called"):
        PointCost("x - y")
    with pytest.raises(TypeError, match="is no text"):
        PointCost(leaning, leaning)
    for text in ("x; y", "", " ", "x}", "x\ny"):
        with pytest.raises(ValueError, match="is not one expression"):
            PointCost(cuda=text)
    with pytest.raises(ValueError, match="cannot be computed on the CPU"):
        PointCost(cuda="x")(0.0, 1.0)
    with pytest.raises(ValueError, match="of which no root is taken"):
        CustomWarping(cost="squared", point_cost=BOTH)
    with pytest.raises(ValueError, match="does not go with metric='erp': a function is the cost"):
        pairwise_distances([[0.0, 1.0]], metric="erp", cost=leaning)


def test_an_engine_says_which_form_it_lacks():
    X = check_series([[0.0, 1.0]])
    for engine, cost, other in (
        ("numba", PointCost(cuda="x * y"), "a Python function; here it is the CUDA expression"),
        ("cupy", PointCost(leaning), "a CUDA expression; here it is a Python function"),
    ):
        for work in (DTWMatrix, DTWPath):
            # asked, not run: there need not be a GPU
            reason = find_engine(engine).supports(work(X, X, CustomWarping(point_cost=cost)))
            assert reason.startswith(f"engine='{engine}' needs the cost as {other}")
            assert reason.count(". ") == 0
    with pytest.raises(UnsupportedReductionError, match="needs the cost as a Python function"):
        run(DTWMatrix(X, X, CustomWarping(point_cost=PointCost(cuda="x"))), engine="numba")


def test_programs_of_a_gpu_hold_the_expression():
    programs = pytest.importorskip("skts.engines.cupy.elastic.programs")
    from skts.engines.cupy.programs import program_of

    warping = CustomWarping(metric="dog_keeper", point_cost=BOTH)
    names = [programs.cell_of(one, "double") for one in (warping, warping.flipped)]
    assert names[1] == names[0].replace(">", "_turned>") and names[0].startswith(
        "DogKeeper<Custom_"
    )
    texts = [program_of("elastic/certify.cu", f"certify<{name}>")[0] for name in names]
    assert "term(T x, T y)" in texts[0].rpartition("struct Custom_")[2]
    assert "term(T y, T x)" in texts[1].rpartition("struct Custom_")[2]
    assert all(text.count(BOTH.cuda) == 1 for text in texts)
    plain = program_of("elastic/certify.cu", "certify<AnyWarping>")[0]
    assert "Custom_" not in plain and texts[0].startswith(plain)


def test_a_cost_that_is_that_of_dtw(fast_engine, rng):
    """The same bits as the cost that has a name, but for the root."""
    X = rng.normal(size=(4, 1, 9))
    cost = PointCost(leaning, "(x - y) * (x - y)")
    if fast_engine == "cupy":
        found = pairwise_distances(X, cost=cost, engine="cupy")
        assert_allclose(np.sqrt(found), pairwise_distances(X, engine="cupy"), rtol=0)


def test_a_compiled_function_is_no_expression():
    """It takes numbers alone, and complains of anything else while kernels are compiled."""

    @njit
    def steep(x, y):
        return 3.0 * (y - x) if y > x else (x - y) * (x - y)

    cell = cell_of(CustomWarping(point_cost=PointCost(steep)))
    assert costs_of(type(cell), ()) is None


def canberra(x, y):
    """0 / 0 for two zeros."""
    return abs(x - y) / (abs(x) + abs(y))


def difference(x, y):
    """Negative where the second point is above."""
    return x - y


WRONG = [
    (PointCost(canberra, "fabs(x - y) / (fabs(x) + fabs(y))"), "canberra.* gives nan for 0"),
    (PointCost(difference, "x - y"), "difference.* gives -"),
]


@pytest.mark.parametrize(("cost", "message"), WRONG, ids=["nan", "negative"])
@pytest.mark.parametrize(
    "ask",
    [
        lambda X, **options: pairwise_distances(X, **options),
        lambda X, **options: pairwise_distances(X[:2], X, **options),
        lambda X, **options: warping_path(X[1], X[4], **options),
        lambda X, **options: DTWNeighbors(**options).fit(X).kneighbors(X, 2),
        lambda X, **options: DTWNeighbors(radius=1.0, **options).fit(X).radius_neighbors(X),
        lambda X, **options: DTWNearestNeighbor(**options).fit(X, [0, 1] * 3).predict(X),
        lambda X, **options: DTWKMedoids(2, **options).fit(X),
        lambda X, **options: (
            SubsequenceSearch(normalize=False, **options).fit(X).kneighbors([X[1, :6]], 2)
        ),
    ],
    ids=["within", "between", "path", "neighbors", "radius", "class", "medoids", "search"],
)
def test_costs_that_are_none_are_refused(fast_engine, rng, cost, message, ask):
    """Before any work: no kernel is compiled for them."""
    X = rng.normal(size=(6, 20))
    X[1, 3] = X[4, 17] = 0.0
    with pytest.raises(ValueError, match=message) as raised:
        ask(X, cost=cost, engine=fast_engine)
    assert "time point" in str(raised.value)
    assert str(raised.value).endswith("a cost must be finite and not negative.")


def test_points_of_a_wrong_cost_are_named(fast_engine):
    """In the order in which the function got them, whichever side lies in the lanes."""
    X, Y = np.full((2, 1, 9), 2.0), np.full((3, 1, 9), 1.0)
    Y[2, 0, 4] = 7.0
    message = (
        r"gives -5 for 2 \(series 0 of the first, time point 0\) and 7 "
        r"\(series 2 of the second, time point 4\): a cost"
    )
    with pytest.raises(ValueError, match=message):
        pairwise_distances(X, Y, cost=WRONG[1][0], engine=fast_engine)
    work = DTWMatrix(Series.of(Y), Series.of(X), CustomWarping(point_cost=WRONG[1][0]).flipped)
    message = r"for 2 \(series 0 of the second, time point 0\) and 7 \(series 2 of the first"
    with pytest.raises(ValueError, match=message):
        run(work, engine=fast_engine)


def rarely(x, y):
    """None for one pair of points in a hundred."""
    return abs(x - y) if x != 51.0 or y != 53.0 else np.nan


def test_a_distance_that_is_none_is_refused(fast_engine):
    """Of costs that were not among those that are looked at."""
    X = np.arange(100.0).reshape(2, 1, 50)
    Y = np.concatenate([X[:1], np.full((1, 1, 50), 53.0)])
    cost = PointCost(rarely, 'x != 51 || y != 53 ? fabs(x - y) : nan("")')
    message = (
        r"rarely.* makes (nan|inf) the distance of series 1 of the first and series 1 of the "
        r"second: a cost must be finite and not negative\."
    )
    with pytest.raises(ValueError, match=message):
        pairwise_distances(X, Y, cost=cost, engine=fast_engine)
    work = DTWPairs(
        Series.of(X), Series.of(Y), np.array([[0, 0], [1, 1]]), CustomWarping(point_cost=cost)
    )
    with pytest.raises(ValueError, match=message):
        run(work, engine=fast_engine)


@pytest.mark.gpu
@pytest.mark.parametrize(("cost", "message"), WRONG, ids=["nan", "negative"])
def test_expressions_are_computed_where_they_can_be(rng, cost, message):
    missing = find_engine("cupy").available()
    if missing is not None:
        pytest.skip(missing)
    X = rng.normal(size=(6, 20))
    X[1, 3] = X[4, 17] = 0.0
    message = message.partition(" gives")[2]
    with pytest.raises(ValueError, match=f"gives{message}"):
        pairwise_distances(X, cost=PointCost(cuda=cost.cuda), engine="cupy")
