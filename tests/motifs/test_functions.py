"""matrix_profile, motifs and discords of single series, against plain loops."""

from __future__ import annotations

import inspect
import pickle
import re

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal

from skts import MotifFinder, config_context
from skts import motifs as functions
from skts.datasets import load_ecg
from skts.engines import find_engine
from skts.exceptions import MemoryBudgetError
from skts.motifs import discords, matrix_profile, motifs
from tests import reference_motifs as reference
from tests.engines.profile.test_join import KINDS, make_line


def close(found, expected, length):
    assert_allclose(found, expected, rtol=1e-9, atol=1e-12 * np.sqrt(length))


def check_motifs(found, expected):
    assert [motif.window for motif in found] == [length for length, _ in expected]
    for motif, (length, occurrences) in zip(found, expected, strict=True):
        places = list(zip(motif.series.tolist(), motif.positions.tolist(), strict=True))
        assert places == [(row, start) for _, row, start in occurrences]
        close(motif.distances, [distance for distance, *_ in occurrences], length)
        assert motif.n_matches == len(occurrences)


def check_discords(found, expected):
    assert [
        (one.window, one.series, one.position, (one.neighbor_series, one.neighbor)) for one in found
    ] == [(length, row, start, other) for length, _, row, start, other in expected]
    close([one.distance for one in found], [distance for _, distance, *_ in expected], 1)


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("normalize", [True, False])
@pytest.mark.parametrize("length", [5, 12])
def test_plain_loops_find_the_same(rng, fast_engine, kind, normalize, length):
    x = make_line(kind, 70, rng)
    options = {"window": length, "normalize": normalize, "engine": fast_engine}
    for exclusion in (None, 0, length + 3):
        windows = reference.Windows([x], length, exclusion, normalize=normalize)
        profile = windows.profile()
        found = matrix_profile(x, exclusion=exclusion, **options)
        assert_array_equal(found.indices, [j for _, j in profile])
        close(found.distances, [distance for distance, _ in profile], length)
        for algorithm, radius in (("profile", 2.0), ("mk", 1.0), ("auto", 5.0)):
            found = motifs(
                x, n_motifs=4, radius_factor=radius, exclusion=exclusion, max_matches=None,
                algorithm=algorithm, **options,
            )  # fmt: skip
            check_motifs(found, reference.find_motifs([windows], 4, radius))
        found = discords(x, n_discords=4, exclusion=exclusion, **options)
        check_discords(found, reference.find_discords([windows], 4))


@pytest.mark.parametrize(
    ("exclusion", "separation", "points"),
    [
        (None, None, (3, 5)),
        (2, 0.7, (2, 7)),
        (0.3, 1, (3, 1)),
        (0.8, None, (8, 8)),
        (0, 40, (0, 40)),
    ],
)
def test_pairs_and_findings_have_distances_of_their_own(
    rng, fast_engine, exclusion, separation, points
):
    x = np.round(rng.normal(size=150).cumsum(), 1)
    windows = reference.Windows([x], 10, *points)
    options = {"window": 10, "exclusion": exclusion, "separation": separation}
    options["engine"] = fast_engine
    for algorithm in ("profile", "mk"):
        found = motifs(x, n_motifs=6, max_matches=None, algorithm=algorithm, **options)
        check_motifs(found, reference.find_motifs([windows], 6, 2.0))
    found = discords(x, n_discords=6, **options)
    check_discords(found, reference.find_discords([windows], 6))


def test_no_motif_of_an_ecg_is_found_twice():
    """A quarter of a window, the exclusion of pairs, finds one pair of beats three times."""
    x = load_ecg().data[0][:15_000]
    before = [motif.positions[0] for motif in motifs(x, window=200, separation=0.25)]
    assert max(before) - min(before) < 200
    after = [motif.positions for motif in motifs(x, window=200)]
    for k, places in enumerate(after):
        for others in after[:k]:
            assert np.abs(places[:, None] - others).min() > 100
    before = [found.position for found in discords(x, window=288, separation=0.25)]
    assert max(before) - min(before) < 288
    after = [found.position for found in discords(x, window=288)]
    assert np.diff(sorted(after)).min() > 144


def test_a_fraction_of_the_series_is_a_window(rng, fast_engine):
    x, y = rng.normal(size=90), rng.normal(size=61)
    for call in (matrix_profile, motifs, discords):
        found, expected = (call(x, window=w, engine=fast_engine) for w in (0.1, 9))
        assert pickle.dumps(found) == pickle.dumps(expected)
    found = matrix_profile(x, y, window=0.1, engine=fast_engine)
    assert_array_equal(found.indices, matrix_profile(x, y, window=7, engine=fast_engine).indices)


def test_the_former_name_of_the_radius_still_works(rng):
    x = rng.normal(size=60).cumsum()
    with pytest.warns(FutureWarning, match="'radius' of motifs is now called 'radius_factor'"):
        (found,) = motifs(x, window=8, radius=3.0, n_motifs=1)
    (expected,) = motifs(x, window=8, radius_factor=3.0, n_motifs=1)
    assert found.radius == expected.radius == 3 * expected.distance
    with pytest.warns(FutureWarning, match="'radius' of MotifFinder") as caught:
        model = MotifFinder(8, radius=3.0, n_motifs=1).fit([x])
    assert caught[0].filename == __file__
    assert model.motifs_[0].radius == expected.radius


def test_many_motifs_mask_each_other(fast_engine):
    """Neighbours that were masked are replaced, one by one or by a new profile."""
    for seed in range(12):
        rng = np.random.default_rng(seed)
        x = np.round(rng.normal(size=160).cumsum(), 1 - seed % 2)
        windows = reference.Windows([x], 7, 3)
        for algorithm in ("profile", "mk"):
            found = motifs(
                x, window=7, exclusion=3, n_motifs=40, radius_factor=1.5, max_matches=None,
                algorithm=algorithm, engine=fast_engine,
            )  # fmt: skip
            check_motifs(found, reference.find_motifs([windows], 40, 1.5))


def test_the_next_lowest_value_is_not_the_second_motif(fast_engine):
    """Its neighbour belongs to the first motif; without that the pair is another one."""
    rng = np.random.default_rng(5)
    x = rng.normal(size=400)
    x[100:120] = x[20:40]
    x[200:220] = x[20:40] + 0.05 * rng.normal(size=20)
    x[300:320] = x[260:280] + 0.2 * rng.normal(size=20)
    profile = matrix_profile(x, window=20, engine=fast_engine)
    first, second = motifs(x, window=20, n_motifs=2, radius_factor=1.0, engine=fast_engine)
    assert first.positions.tolist() == [20, 100]
    assert first.distance == 0
    assert profile.distances[200] < second.distance
    check_motifs([first, second], reference.find_motifs([reference.Windows([x], 20, None)], 2, 1.0))


def test_auto_begins_with_mk_and_turns_to_the_profile(rng, fast_engine, monkeypatch):
    from skts.motifs import _matrix_profile

    monkeypatch.setattr(_matrix_profile, "MANY", 1)
    x = rng.normal(size=4000).cumsum()
    for start in (500, 1500):
        x[start + 2000 : start + 2064] = x[start : start + 64]
    options = {"window": 64, "n_motifs": 5, "engine": fast_engine}
    found = motifs(x, algorithm="auto", random_state=0, **options)
    expected = motifs(x, algorithm="profile", **options)
    assert [m.distance for m in found][:2] == [0.0, 0.0]
    for one, other in zip(found, expected, strict=True):
        for a, b in zip(one, other, strict=True):
            assert_array_equal(a, b)


def test_auto_goes_on_with_mk_where_a_profile_does_not_fit(rng, monkeypatch):
    from skts.motifs import _matrix_profile

    monkeypatch.setattr(_matrix_profile, "MANY", 1)
    x = rng.normal(size=20_000).cumsum()
    x[15_000:15_064] = x[5000:5064]
    options = {"window": 64, "n_motifs": 2, "engine": "numba"}
    expected = motifs(x, **options)
    assert expected[1].distance > 0
    with config_context(memory="3MiB"):
        with pytest.raises(MemoryError, match="budget is 3 MiB"):
            motifs(x, algorithm="profile", **options)
        found = motifs(x, **options)
    for one, other in zip(found, expected, strict=True):
        for a, b in zip(one, other, strict=True):
            assert_array_equal(a, b)


def test_neighbours_that_no_window_can_have_take_no_working_memory(rng):
    x = rng.normal(size=60)
    for b, n_places in ((None, 53), (x[:30], 23)):
        every = matrix_profile(x, b, window=8, k=n_places, engine="numba")
        with config_context(memory="8MiB"):
            found = matrix_profile(x, b, window=8, k=5000, sides=b is None, engine="numba")
        assert found.distances.shape == found.indices.shape == (53, 5000)
        assert_array_equal(found.distances[:, :n_places], every.distances)
        assert_array_equal(found.indices[:, :n_places], every.indices)
        assert (found.indices[:, n_places:] == -1).all()
        assert np.isinf(found.distances[:, n_places:]).all()
        assert found.left is None or found.left.indices.shape == (53, 5000)
    message = r"The result of shape \(53, 1000000000000\) needs .* TiB; this machine has"
    with pytest.raises(MemoryBudgetError, match=message):
        matrix_profile(x, window=8, k=10**12)


def test_top_k_and_sides(rng, fast_engine):
    x = rng.normal(size=120).cumsum()
    found = matrix_profile(x, window=8, k=3, sides=True, engine=fast_engine)
    one = matrix_profile(x, window=8, sides=True, engine=fast_engine)
    assert found.distances.shape == found.indices.shape == (113, 3)
    assert_array_equal(found.indices[:, 0], one.indices)
    assert_array_equal(found.left.distances[:, 0], one.left.distances)
    windows = reference.Windows([x], 8, None)
    for i in range(113):
        order = [
            j
            for j in np.argsort(windows.distances[i], kind="stable")
            if abs(int(j) - i) > windows.exclusion
        ]
        assert found.indices[i].tolist() == order[:3]
        for side, some in (
            (one.left, [j for j in order if j < i]),
            (one.right, [j for j in order if j > i]),
        ):
            assert side.indices[i] == (some[0] if some else -1)
            assert np.isinf(side.distances[i]) == (not some)


def test_join_of_two_series(rng, fast_engine):
    a, b = rng.normal(size=90), rng.normal(size=50)
    b[10:22] = 3 * a[40:52] - 7
    found = matrix_profile(a, b, window=12, engine=fast_engine)
    assert found.distances.shape == (79,)
    assert found.indices[40] == 10
    assert found.distances[40] < 1e-6
    back = matrix_profile(b, a, window=12, k=2, engine=fast_engine)
    assert back.distances.shape == (39, 2)
    assert back.indices[10, 0] == 40
    assert (found.distances.min() == back.distances.min()) and np.isfinite(back.distances).all()


def test_max_matches_limits_what_is_returned_not_what_is_masked(rng, fast_engine):
    x = np.tile(rng.normal(size=20), 12) + 1e-3 * rng.normal(size=240)
    options = {"window": 20, "n_motifs": 3, "radius_factor": 20.0, "engine": fast_engine}
    every = motifs(x, max_matches=None, **options)
    few = motifs(x, max_matches=2, **options)
    assert every[0].n_matches == few[0].n_matches > 5
    for one, other in zip(every, few, strict=True):
        assert_array_equal(one.positions[:2], other.positions)
        assert other.values.shape == (2, 20)


def test_values_are_the_points_as_given(rng, fast_engine):
    x = 1e8 + rng.normal(size=150)
    motif = motifs(x, window=10, n_motifs=1, engine=fast_engine)[0]
    for position, values in zip(motif.positions, motif.values, strict=True):
        assert_array_equal(values, x[position : position + 10])
    discord = discords(x, window=10, n_discords=1, engine=fast_engine)[0]
    assert_array_equal(discord.values, x[discord.position : discord.position + 10])


@pytest.mark.parametrize("algorithm", ["auto", "profile", "mk"])
def test_without_any_pair_there_is_an_error_and_an_infinite_profile(fast_engine, algorithm):
    x = np.array([np.nan, 1, 5, 2, np.nan, 3, 1, 7, 2, np.nan])
    options = {"window": 3, "exclusion": 5, "engine": fast_engine}
    why = "no two windows of 3 points are finite and start more than 5 points apart"
    with pytest.raises(ValueError, match=f"^There is no motif: {why}"):
        motifs(x, algorithm=algorithm, **options)
    with pytest.raises(ValueError, match=f"^There is no motif: {why}"):
        MotifFinder(algorithm=algorithm, n_discords=0, **options).fit([x])
    with pytest.raises(ValueError, match=f"^There is no discord: {why}"):
        discords(x, **options)
    profile = matrix_profile(x, **options)
    assert (profile.indices == -1).all() and np.isinf(profile.distances).all()


def test_windows_without_neighbours_are_no_discords(fast_engine):
    x = np.array([1.0, 5, 2, np.nan, 3, 1, 7, 2, 1])
    found = discords(x, window=3, n_discords=9, exclusion=5, separation=0, engine=fast_engine)
    assert {discord.position for discord in found} == {0, 6}


def of_single_series():
    """Functions whose first argument is one series."""
    found = {name: getattr(functions, name) for name in functions.__all__}
    found = {name: one for name, one in found.items() if inspect.isfunction(one)}
    first = {name: next(iter(inspect.signature(one).parameters)) for name, one in found.items()}
    return sorted(name for name in found if first[name] in ("a", "query"))


@pytest.mark.parametrize("name", of_single_series())
def test_columns_of_a_frame_are_channels(rng, name):
    pd = pytest.importorskip("pandas")
    function = getattr(functions, name)
    known = inspect.signature(function).parameters
    points, other = rng.normal(size=90), rng.normal(size=12)
    others = {"window": 6, "windows": [6, 9], "b": other, "series": points}
    needed = [
        one for one in others if one in known and known[one].default is inspect.Parameter.empty
    ]
    others = {one: others[one] for one in needed} | {"engine": "numba"}
    first = other if "series" in known else points
    frame = pd.DataFrame({"volts": first, "amperes": first[::-1]})
    try:
        expected = function(frame.to_numpy().T, **others)
    except ValueError as error:  # one channel alone, which is a series
        with pytest.raises(ValueError, match=re.escape(str(error))):
            function(frame, **others)
        expected = function(first, **others)
    else:
        assert repr(function(frame, **others)) == repr(expected)
        expected = function(first[np.newaxis], **others)
    frame = frame[["volts"]]
    assert repr(function(frame, **others)) == repr(expected)
    if "b" in others:
        others["b"] = pd.DataFrame({"volts": other})
        assert function(frame, **others) == expected


def test_memory_maps_lists_and_other_types(rng, tmp_path):
    x = rng.normal(size=200)
    np.save(tmp_path / "x.npy", x)
    mapped = np.load(tmp_path / "x.npy", mmap_mode="r")
    expected = matrix_profile(x, window=10)
    for same in (mapped, x.tolist(), x[::-1][::-1]):
        assert_array_equal(matrix_profile(same, window=10).distances, expected.distances)
    single = x.astype(np.float32)
    assert_array_equal(
        matrix_profile(single, window=10).indices,
        matrix_profile(single.astype(float), window=10).indices,
    )


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: matrix_profile(np.ones((2, 9, 1)), window=3), r"a has shape \(2, 9, 1\); one"),
        (
            lambda: matrix_profile(np.ones(9), np.ones((9, 1)), window=3),
            r"b has shape \(9, 1\); .*write b\.ravel\(\)",
        ),
        (lambda: matrix_profile(np.ones(9), window=10), "a has 9 time points; that is less than"),
        (lambda: matrix_profile(np.ones(9), np.ones(2), window=3), "b has 2 time points"),
        (lambda: matrix_profile(np.ones(9), np.ones(9), window=3, sides=True), "sides=True"),
        (lambda: matrix_profile(np.ones(9), window=0), "The 'window' parameter"),
        (lambda: motifs(np.ones(9), window=3, radius_factor=0.5), "The 'radius_factor' parameter"),
        (lambda: motifs(np.ones(9), window=3, max_matches=1), "The 'max_matches' parameter"),
        (lambda: motifs(np.ones(9), window=3, engine="none"), "engine='none' is not known"),
        (lambda: discords(np.ones(9), window=3, exclusion=-1), "The 'exclusion' parameter"),
        (lambda: matrix_profile([1e200, 1, 2, 1], window=2), "series 0, time point 0"),
    ],
)
def test_what_is_wrong_is_said(call, message):
    with pytest.raises(ValueError, match=message):
        call()


@pytest.mark.parametrize(
    ("ask", "needs"),
    [
        (lambda x: matrix_profile(x, window=64), "a line of 200,000 points"),
        (lambda x: matrix_profile(x[:300], x, window=64), "lines of 300 and 200,000 points"),
        (
            lambda x: motifs(x, window=64, algorithm="mk"),
            "a line of 200,000 points and 10 distances of each window",
        ),
        (lambda x: MotifFinder(64).fit([x]), "a line of 200,000 points"),
    ],
)
def test_a_line_larger_than_the_budget_is_said_before_any_work(rng, monkeypatch, ask, needs):
    monkeypatch.setattr(type(find_engine("numba")), "compute", None)
    message = (
        rf"needs [\d.]+ MiB of working memory, as every part holds {needs} in full; "
        r"the budget is 9 MiB\."
    )
    with config_context(memory="9MiB", engine="numba"), pytest.raises(MemoryError, match=message):
        ask(rng.normal(size=200_000))


@pytest.mark.parametrize(
    "ask",
    [
        lambda x: matrix_profile(x, window=4),
        lambda x: matrix_profile(x, x[:9], window=4),
        lambda x: matrix_profile(np.stack([x, x]), window=4, dimensions=1),
        lambda x: motifs(x, window=4),
    ],
)
def test_memory_that_is_not_of_the_series_is_not_laid_at_their_door(rng, ask):
    """A few points need some MiB: shorter series would not help, and are not said to."""
    message = (
        r"needs [\d.]+ MiB of working memory, most of it however short the series are; the budget "
        r"is 1 MiB\. Raise it with skts\.set_config\(memory=\.\.\.\)\."
    )
    with config_context(memory="1MiB", engine="numba"), pytest.raises(MemoryError, match=message):
        ask(rng.normal(size=18))


def test_the_oracle_runs_behind_the_functions(rng):
    assert find_engine("oracle").available() is None
    x = rng.normal(size=60)
    for algorithm in ("profile", "mk"):
        options = {"window": 6, "n_motifs": 2, "algorithm": algorithm, "n_references": 2}
        one, other = motifs(x, engine="oracle", **options), motifs(x, engine="numba", **options)
        assert [m.positions.tolist() for m in one] == [m.positions.tolist() for m in other]
