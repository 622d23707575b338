"""SubsequenceMonitor: scikit-learn's contract, streams in random cuts against batch searches."""

from __future__ import annotations

import pickle
from itertools import pairwise

import numpy as np
import pytest
import reference_subsequence_search
from numpy.testing import assert_allclose, assert_array_equal

from skts import SubsequenceMonitor, SubsequenceSearch
from skts.neighbors._undecided import Undecided
from tests.contract import check_described, check_with_scikit_learn
from tests.fuzz.recipes_monitor import reported


def test_scikit_learn_contract(fast_engine):
    check_with_scikit_learn(SubsequenceMonitor(engine=fast_engine), least=30)


def test_parameters_and_fitted_attributes_are_described(rng):
    check_described(SubsequenceMonitor().fit(rng.normal(size=(2, 50))))


def watch(monitor, x, cuts):
    """All matches of each pattern: starts and distances."""
    edges = [0, *cuts, x.shape[-1]]
    answers = [
        monitor.update(x[..., start:stop], final=number == len(cuts))
        for number, (start, stop) in enumerate(pairwise(edges))
    ]
    return [
        (
            np.concatenate([starts[row] for _, starts in answers]),
            np.concatenate([distances[row] for distances, _ in answers]),
        )
        for row in range(monitor.n_samples_fit_)
    ]


def batch(x, patterns, radii, exclusion, **options):
    """The same by a search of all points."""
    search = SubsequenceSearch(exclusion=exclusion, **options).fit([x])
    for pattern, radius in zip(patterns, radii, strict=True):
        if exclusion == 0:
            found = search.radius_neighbors([pattern], radius)
        else:
            found = search.kneighbors([pattern], x.shape[-1])
        distances, starts = found[0][0], found[1][0][:, 1]
        keep = np.isfinite(distances) & (distances <= radius)
        order = np.argsort(starts[keep])
        yield starts[keep][order], distances[keep][order]


@pytest.mark.parametrize("exclusion", [0, None, 3])
@pytest.mark.parametrize("options", [{"window": 0.1}, {"metric": "euclidean"}], ids=str)
def test_any_cuts_report_what_a_batch_search_finds(rng, fast_engine, options, exclusion):
    x = rng.normal(size=220).cumsum()
    x[60:90] = x[20:50] * 3 + 1
    x[120], x[150:158] = np.nan, 2.0
    patterns = [x[20:50].copy(), rng.normal(size=9).cumsum(), np.ones(4), x[25:34] + 0.1]
    radii = np.array([4.0, 1.5, 1.9, 2.5])
    options = options | {"engine": fast_engine}
    expected = list(batch(x, patterns, radii, exclusion, **options))
    assert sum(len(starts) for starts, _ in expected) > 8
    monitor = SubsequenceMonitor(radii, exclusion=exclusion, **options).fit(patterns)
    for count in (0, 1, 2, 3, 5, 30):
        cuts = np.sort(rng.integers(0, len(x) + 1, count)).tolist()
        for one, other in zip(watch(monitor, x, cuts), expected, strict=True):
            assert_array_equal(one[0], other[0], err_msg=str(cuts))
            assert_array_equal(one[1], other[1], err_msg=str(cuts))


METRICS = [
    (1, {"window": 0.1}),
    (3, {"window": None, "normalize": False}),
    (0.25, {"metric": "dog_keeper", "window": 2}),
    (1.5, {"metric": "euclidean"}),
]


@pytest.mark.parametrize(("scale", "options"), METRICS, ids=str)
def test_several_channels_report_what_a_batch_search_finds(rng, fast_engine, scale, options):
    x = rng.normal(size=(3, 120)).cumsum(axis=1)
    x[:, 60:80] = x[:, 20:40] * 3 + 1
    x[1, 90], x[2, 95:110] = np.nan, 2.0
    patterns = [x[:, 20:40].copy(), rng.normal(size=(3, 9)).cumsum(axis=1), x[:, 25:34] + 0.1]
    radii = scale * np.array([6.0, 5.0, 4.0])
    options = options | {"engine": fast_engine}
    for exclusion in (None, 0):
        expected = list(batch(x, patterns, radii, exclusion, **options))
        assert sum(len(starts) for starts, _ in expected) > 3
        monitor = SubsequenceMonitor(radii, exclusion=exclusion, **options).fit(patterns)
        assert monitor.n_channels_ == 3
        for count in (1, 5):
            cuts = np.sort(rng.integers(0, 121, count)).tolist()
            for one, other in zip(watch(monitor, x, cuts), expected, strict=True):
                assert_array_equal(one[0], other[0], err_msg=str(cuts))
                assert_array_equal(one[1], other[1], err_msg=str(cuts))


def test_matches_of_several_channels_are_those_of_the_definition(rng):
    x, pattern = rng.normal(size=(2, 60)).cumsum(axis=1), rng.normal(size=(2, 6)).cumsum(axis=1)
    expected = reference_subsequence_search.all_distances(pattern, [x], window=2)
    within = sorted((start, distance) for distance, _, start in expected if distance <= 3.5)
    monitor = SubsequenceMonitor(3.5, window=2, exclusion=0, engine="numba").fit([pattern])
    ((starts, distances),) = watch(monitor, x, range(1, 60))
    assert 2 < len(starts) < 50 and starts.tolist() == [start for start, _ in within]
    assert_allclose(distances, [distance for _, distance in within], rtol=1e-12)


@pytest.mark.slow
def test_thousands_of_cuts(fast_engine):
    for seed in range(150):
        rng = np.random.default_rng(seed)
        x = np.round(rng.normal(size=int(rng.integers(30, 150))).cumsum(), int(rng.integers(0, 5)))
        sizes = rng.integers(1, 25, 3)
        patterns = [rng.normal(size=size).cumsum() for size in sizes]
        radii, exclusion = np.sqrt(sizes) * rng.random(3), [0, 1, 0.5, None][seed % 4]
        options = {"window": [0.2, None, 0][seed % 3], "engine": fast_engine}
        expected = list(batch(x, patterns, radii, exclusion, **options))
        monitor = SubsequenceMonitor(radii, exclusion=exclusion, **options).fit(patterns)
        for _ in range(20):
            cuts = np.sort(rng.integers(0, len(x) + 1, rng.integers(0, 12))).tolist()
            found = watch(monitor, x, cuts)
            for one, other in zip(found, expected, strict=True):
                assert_array_equal(one[0], other[0], err_msg=f"{seed} {cuts}")
                assert_array_equal(one[1], other[1], err_msg=f"{seed} {cuts}")


def test_matches_are_those_of_the_definition(rng):
    x, pattern = rng.normal(size=80).cumsum(), rng.normal(size=8).cumsum()
    expected = reference_subsequence_search.nearest_windows(pattern, [x], 80, window=2)
    monitor = SubsequenceMonitor(3.0, window=2, engine="oracle").fit([pattern])
    ((starts, _),) = watch(monitor, x, [13, 14, 50])
    assert starts.tolist() == sorted(s for d, _, s in expected if d <= 3.0)
    assert 2 < len(starts) < 30


def stream(distances, exclusion, grid, cuts):
    """Starts of matches, and how many windows were kept at most."""
    from skts.engines import Warping
    from skts.neighbors._subsequence_monitor import _Watch

    near, n_windows = np.flatnonzero(distances < np.inf), len(distances)
    watch = _Watch((np.zeros(1),), np.ones(1), [exclusion], grid, Warping(), True, "auto")
    undecided, most, found = Undecided.none(), 0, []
    for start, stop in zip([0, *cuts, n_windows], [*cuts, n_windows, n_windows], strict=True):
        some = near[(near >= start) & (near < stop)]
        final = start == n_windows
        undecided = undecided.add(some, distances[some])
        starts, values, undecided = watch.decide(0, undecided, (start, stop), final)
        assert_array_equal(values, distances[starts])
        found += starts.tolist()
        most = max(most, undecided.starts.size)
        if final:
            break
    return found, most


@pytest.mark.parametrize(
    "seeds", [range(60), pytest.param(range(60, 1500), marks=pytest.mark.slow)], ids=len
)
def test_decisions_are_those_of_plain_loops_and_their_memory_is_bounded(seeds):
    waited = 0
    for seed in seeds:
        rng = np.random.default_rng(seed)
        n_windows, exclusion = int(rng.integers(1, 40)), int(rng.integers(1, 7))
        distances = [
            rng.random(n_windows),
            rng.integers(0, 4, n_windows) / 4,
            # every window has a nearer one behind it
            np.sort(rng.random(n_windows))[::-1],
            np.abs(rng.normal(size=n_windows).cumsum()),
        ][seed % 4]
        distances = np.where(rng.random(n_windows) < rng.choice([0, 0.3, 0.8]), np.inf, distances)
        near = {k: d for k, d in enumerate(distances.tolist()) if d < np.inf}
        for grid in (exclusion + 1, exclusion + 5, 10**6):
            expected = reported(near, n_windows, exclusion, grid, True)
            for cuts in (np.sort(rng.integers(0, n_windows, 3)).tolist(), range(1, n_windows)):
                found, most = stream(distances, exclusion, grid, [*cuts])
                assert found == expected
                assert most <= 2 * grid
            waited += expected != reported(near, n_windows, exclusion, 10**6, True)
    assert waited > len(seeds) // 20


def looked_at(monkeypatch, distances, exclusion, grid, step):
    """Windows that decisions of a stream in equal pieces look at."""
    counts, choose = [], Undecided._choose

    def counted(self, matches, *options, **others):
        counts.append(matches.size)
        return choose(self, matches, *options, **others)

    with monkeypatch.context() as patch:
        patch.setattr(Undecided, "_choose", counted)
        stream(distances, exclusion, grid, [*range(step, len(distances), step)])
    return sum(counts)


@pytest.mark.parametrize("kind", ["falling", "rising", "noise", "equal", "falls back"])
def test_an_update_looks_at_the_last_windows_alone(rng, monkeypatch, kind):
    n_windows, exclusion, step = 4000, 10, 50
    distances = {
        "falling": np.linspace(2, 1, n_windows),
        "rising": np.linspace(1, 2, n_windows),
        "noise": rng.random(n_windows),
        "equal": np.ones(n_windows),
        "falls back": np.linspace(2, 1, n_windows) - (np.arange(n_windows) % 999 == 998),
    }[kind]
    # each update looks at its own windows, and at some before them; decided ones are gone
    most = 8 * n_windows
    assert looked_at(monkeypatch, distances, exclusion, 10**6, step) < most
    assert looked_at(monkeypatch, distances, exclusion, 300, step) < 2 * most


def test_windows_of_one_update_are_added_part_by_part(monkeypatch):
    added, add = [], Undecided.add

    def counted(self, starts, distances):
        added.append(starts.size)
        return add(self, starts, distances)

    monkeypatch.setattr(Undecided, "add", counted)
    stream(np.linspace(2, 1, 3000), 10, 20, [])
    # by the update, and once more by the parts that are decided
    assert sum(added) <= 2 * 3000


def test_a_match_is_reported_as_soon_as_it_is_certain(rng):
    x, pattern = rng.normal(size=100), np.hanning(12)
    x[40:52] += 30 * pattern
    monitor = SubsequenceMonitor(1.0, window=1, exclusion=5).fit([pattern])
    first = None
    for n_points, point in enumerate(x, 1):
        _, starts = monitor.update([point])
        if len(starts[0]):
            first = n_points, starts[0].tolist()
            break
    start = first[1][0]
    assert abs(start - 40) <= 1 and first == (start + 12 + 5, [start])
    at_once = SubsequenceMonitor(1.0, window=1, exclusion=0).fit([pattern])
    assert start not in at_once.update(x[: start + 11])[1][0]
    assert start in at_once.update(x[start + 11 : start + 12])[1][0]


def test_streams_begin_anew_and_an_update_of_nothing_changes_nothing(rng):
    x, pattern = rng.normal(size=90).cumsum(), rng.normal(size=10).cumsum()
    monitor = SubsequenceMonitor(3.0, window=2).fit([pattern])
    expected = watch(monitor, x, [])
    assert monitor.n_points_ == 0
    monitor.update(x[:30])
    for nothing in ([], np.empty(0), ()):
        distances, starts = monitor.update(nothing)
        assert distances[0].shape == starts[0].shape == (0,)
        assert starts[0].dtype == np.int64 and monitor.n_points_ == 30
    for one, other in zip(watch(monitor.fit([pattern]), x, [50]), expected, strict=True):
        assert_array_equal(one, other)
    # the rest of a stream waits for no points
    _, before = monitor.update(x)
    _, after = monitor.update([], final=True)
    assert_array_equal(np.concatenate([before[0], after[0]]), expected[0][0])


def test_pickles_go_on_and_memory_stays(rng):
    x, pattern = rng.normal(size=400).cumsum(), rng.normal(size=10).cumsum()
    monitor = SubsequenceMonitor(3.0, window=2).fit([pattern, pattern[:4]])
    expected = watch(monitor, x, [])
    found, sizes = [], []
    for piece in np.split(x, range(0, 400, 25)):
        found.append(monitor.update(piece)[1][0])
        monitor = pickle.loads(pickle.dumps(monitor))
        sizes.append(len(pickle.dumps(monitor)))
    found.append(monitor.update([], final=True)[1][0])
    assert_array_equal(np.concatenate(found), expected[0][0])
    assert max(sizes) < min(sizes) + 1500


def test_an_update_that_fails_leaves_the_stream_as_it_was(rng, monkeypatch):
    x, pattern = rng.normal(size=90).cumsum(), rng.normal(size=10).cumsum()
    monitor = SubsequenceMonitor(3.0, window=2).fit([pattern, pattern[:5]])
    expected = watch(monitor, x, [])
    first = monitor.update(x[:40])[1][0]
    calls = []

    def failing(reduction, *_, **__):
        calls.append(reduction)
        if len(calls) == 2:
            raise KeyboardInterrupt
        return SubsequenceMonitor._run(SubsequenceMonitor(), reduction)

    with monkeypatch.context() as patch:
        patch.setattr(monitor, "_run", failing, raising=False)
        before = dict(vars(monitor))
        with pytest.raises(KeyboardInterrupt):
            monitor.update(x[40:])
        assert vars(monitor).keys() == before.keys()
        assert all(vars(monitor)[name] is value for name, value in before.items())
    second = monitor.update(x[40:], final=True)[1][0]
    assert_array_equal(np.concatenate([first, second]), expected[0][0])


def test_integers_beyond_int64(rng):
    x = rng.normal(size=60)
    monitor = SubsequenceMonitor(np.inf, max_points=2**40, window=10**30).fit([x[:9]])
    assert monitor.update(x, final=True)[1][0].size > 3
    with pytest.raises(ValueError, match="max_points=1000000 is not enough"):
        SubsequenceMonitor(exclusion=10**30).fit([x[:9]])


def test_refusals_and_the_ends_of_ranges():
    pattern = np.array([0.0, 1, 3])
    for options in ({"radius": 0.0}, {"radius": [0.0]}, {"radius": 0.5}, {"max_points": 3}):
        monitor = SubsequenceMonitor(exclusion=0, engine="oracle", **options).fit([pattern])
        assert monitor.engine_ == "oracle"
    for options in ({"radius": -0.1}, {"max_points": 1}):
        with pytest.raises(ValueError, match=f"The '{next(iter(options))}' parameter"):
            SubsequenceMonitor(exclusion=0, **options).fit([pattern])
    monitor = SubsequenceMonitor(0.0, exclusion=0).fit([pattern])
    assert monitor.update([7.0, 0, 1, 3, 0, 1, 4], final=True)[1][0].tolist() == [1]
    for points, advice in ((np.zeros((4, 1)), r": write points.ravel\(\)"), (np.zeros((2, 2)), "")):
        with pytest.raises(ValueError, match=f"what follows a stream is 1-D{advice}\\.$"):
            monitor.update(points)
