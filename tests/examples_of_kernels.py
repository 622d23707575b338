"""Small works that reach every CUDA function once, through the functions and models of the package.

Each is a generator of answers, with an engine to find them on.
"""

from __future__ import annotations

from unittest.mock import patch

import numpy as np
import pytest

from skts import (
    DiscordDetector,
    DTWKMeans,
    DTWKMedoids,
    DTWNearestNeighbor,
    DTWNeighbors,
    KShapeClusterer,
    MotifFinder,
    ShapeletForestClassifier,
    ShapeletTransformer,
    ShapeletTreeClassifier,
    SubsequenceSearch,
)
from skts.averages import dtw_barycenter, soft_dtw_barycenter
from skts.cluster import _kshape
from skts.engines import DISTANCES, SBDCenters, Shapes, run
from skts.metrics import (
    dog_keeper,
    dtw_path,
    pairwise_distances,
    pairwise_dtw,
    pairwise_sbd,
    pairwise_soft_dtw,
    soft_dtw_gradient,
    subsequence_distance,
    warping_path,
)
from skts.motifs import discords, matrix_profile, motifs, pan_matrix_profile
from skts.neighbors import dtw_window_search

__all__ = ["WORKS"]


def walks(n, length, seed=0):
    return np.random.default_rng(seed).normal(size=(n, length)).cumsum(axis=1)


def of_fitted(model, X, y=None, *calls):
    """The results of some methods of a fitted estimator; each with its arguments."""
    model.fit(X, y)
    return [getattr(model, name)(*arguments) for name, *arguments in calls]


def matrices(engine):
    X, Q, on = walks(6, 24), walks(5, 24, 1), {"engine": engine}
    unequal = [x[:n] for x, n in zip(X, (24, 3, 17, 24, 1, 9), strict=True)]
    yield pairwise_dtw(X, Q, **on)
    for window in (0, 2, 0.1, 11):
        yield pairwise_dtw(X, window=window, **on)
    yield pairwise_dtw(unequal, **on)
    yield pairwise_dtw(X.reshape(4, 3, 12), window=3, **on)
    yield pairwise_dtw(X, metric="dog_keeper", cost="absolute", **on)
    # bands that lanes share, and strips
    long = walks(2, 200)
    yield pairwise_dtw(long, window=90, **on)
    yield pairwise_dtw(walks(2, 1500), **on)
    yield dog_keeper(*long, **on)


def neighbors(engine):
    X, Q = walks(70, 24), walks(5, 24, 1)
    X[40:] = X[:30]
    y = np.arange(70) % 3
    for precision in ("auto", "float64"):
        model = DTWNearestNeighbor(3, window=4, precision=precision, engine=engine)
        yield of_fitted(model, X, y, ("kneighbors", Q), ("predict", Q), ("kneighbors",))


def stepped(engine):
    X, Q = walks(6, 24), walks(5, 24, 1)
    two = X.reshape(6, 2, 12), Q.reshape(5, 2, 12)
    for metric, distance in DISTANCES.items():
        on = {"engine": engine, "metric": metric}
        yield pairwise_distances(X, Q, window=3, **on)
        for cost in distance.costs:
            yield pairwise_distances(*two, cost=cost, **on)
        if "epsilon" in distance.__dataclass_fields__:
            yield pairwise_distances(X, Q, metric_params={"epsilon": 0.5}, **on)
    # weights by pairs, strips, and points that are left out of a path
    yield pairwise_distances(X, Q[:, :9], metric="wdtw", engine=engine)
    yield pairwise_distances(walks(2, 300), metric="erp", engine=engine)
    yield warping_path(X[0], Q[0], metric="erp", window=7, engine=engine)
    model = DTWNearestNeighbor(3, metric="twe", engine=engine)
    yield of_fitted(model, walks(70, 24), np.arange(70) % 3, ("kneighbors", Q), ("kneighbors",))


def radii(engine):
    X, Q = walks(70, 24), walks(5, 24, 1)
    X[40:] = X[:30]
    for precision in ("auto", "float64"):
        model = DTWNeighbors(radius=9.0, window=4, precision=precision, engine=engine).fit(X)
        for queries in (Q, None):
            for mode in ("connectivity", "distance"):
                yield model.radius_neighbors_graph(queries, mode=mode).toarray()


def rotations(engine):
    X, Q = walks(7, 20), walks(3, 20, 1)
    X[4], Q[2] = np.roll(X[1], 7), np.roll(X[1], 3)
    for options in (
        {},
        {"cost": "absolute"},
        {"window": 0},
        {"window": 2},
        {"metric": "dog_keeper"},
    ):
        model = DTWNearestNeighbor(2, rotation_invariant=True, engine=engine, **options)
        yield of_fitted(model, X, np.arange(7), ("kneighbors", Q))


def paths(engine):
    x, y = walks(2, 40)
    for options in ({}, {"window": 5}):
        yield dtw_path(x, y, engine=engine, **options)
    yield subsequence_distance(x[:9], y, engine=engine)
    yield pairwise_dtw(x[np.newaxis, :9], y[np.newaxis], alignment="subsequence", engine=engine)


def averages(engine):
    X = walks(12, 40)
    unequal = [x[:n] for x, n in zip(X, (40, 3, 17, 33, 1, 9), strict=False)]
    yield dtw_barycenter(X, max_iter=3, tol=0.5, engine=engine)
    yield dtw_barycenter(unequal, window=3, weights=[1, 2, 0, 1, 1, 0.3], engine=engine)
    yield dtw_barycenter(X.reshape(6, 2, 40), window=0.1, engine=engine)
    for series in (X, X.reshape(6, 2, 40)):
        given = {"method": "subgradient", "max_iter": 1, "random_state": 0}
        yield dtw_barycenter(series, **given, engine=engine)
    model = DTWKMeans(3, random_state=0, engine=engine)
    yield of_fitted(model, X, None, ("predict", X), ("transform", X))
    yield model.cluster_centers_
    medoids = DTWKMedoids(3, random_state=0, engine=engine)
    yield of_fitted(medoids, X, None, ("predict", X), ("transform", X))
    yield pairwise_soft_dtw(X, unequal, window=5, engine=engine)
    yield soft_dtw_gradient(X[0], unequal[2], gamma=0.3, engine=engine)
    yield soft_dtw_barycenter(X.reshape(6, 2, 40), max_iter=3, tol=0.1, engine=engine)
    # windows of points: paths of many pairs, of one, and distances
    shapes = {"metric": "shape_dtw", "metric_params": {"reach": 2}, "engine": engine}
    yield dtw_barycenter(X, max_iter=2, tol=0.5, **shapes)
    yield warping_path(X[0], unequal[2], **shapes)
    yield pairwise_distances(X, unequal, **shapes)


def profiles(engine):
    x, z = walks(2, 300)
    x[100:130] = 4.0
    x[200:230], z[5] = x[20:50], np.nan
    for options in ({}, {"normalize": False}, {"k": 3, "sides": True}, {"precision": "float32"}):
        yield matrix_profile(x, window=20, engine=engine, **options)
        options.pop("sides", None)
        yield matrix_profile(x, z, window=20, engine=engine, **options)
    # few neighbours are near enough to be one at both lengths; many are
    yield lengths(np.sin(np.arange(300) / 4) + z / 100, engine)
    with patch("skts.engines.cupy.profile.programs.PAIRS_TO_ESTIMATE", 0):
        yield matrix_profile(x, z, window=20, engine=engine)
        yield lengths(z, engine)
    yield motifs(x, window=20, engine=engine)
    yield motifs(x, window=20, algorithm="mk", engine=engine)
    yield discords(x, window=20, engine=engine)
    yield MotifFinder(20, engine=engine).fit(x[np.newaxis]).transform(z[np.newaxis])
    for side in ("both", "left"):
        detector = DiscordDetector(20, n_neighbors=2, side=side, engine=engine)
        yield detector.fit(x[np.newaxis]).score_points(z[np.newaxis])


def lengths(x, engine):
    """Two lengths from one walk, as of long series."""
    module = "skts.engines.cupy.profile.length_groups"
    with patch(f"{module}.LEAST_WINDOWS", 1), patch(f"{module}.SHARE", 0.1):
        return pan_matrix_profile(x, [20, 21], engine=engine)


def channels(engine):
    x = walks(3, 70)
    x[1, 40:60], x[2, 65] = 4.0, np.nan
    # by walks, small as it is
    with patch("skts.engines.cupy.profile.channel_tiles.ChannelTiles._few_pairs", lambda *_: False):
        yield matrix_profile(x, window=8, engine=engine)
        yield matrix_profile(x[1:], window=8, engine=engine)
        yield matrix_profile(x, window=8, counting="farthest", include=[1], engine=engine)
        yield matrix_profile(x[:, :30], x[:, 30:], window=8, normalize=False, engine=engine)
        yield (
            SubsequenceSearch(engine=engine).fit([x]).kneighbors(x[:1, np.newaxis, :9].repeat(3, 1))
        )
        yield DiscordDetector(8, n_neighbors=2, dimensions=1, engine=engine).fit([x]).window_scores_
        yield matrix_profile(walks(17, 40), window=8, engine=engine)


def clusters(engine):
    X = walks(12, 30)
    yield pairwise_sbd(X, engine=engine)
    # too long for the shared memory of a block
    yield pairwise_sbd(walks(2, 7300), engine=engine)
    model = KShapeClusterer(2, random_state=0, n_init=1, engine=engine)
    yield of_fitted(model, X, None, ("predict", X), ("transform", X))
    yield model.labels_
    model = KShapeClusterer(2, random_state=0, n_init=1, normalize=False, engine=engine)
    yield model.fit(X.reshape(6, 2, 30)).labels_
    # a sum of members that says nothing about their shape
    model = KShapeClusterer(1, random_state=0, n_init=1, engine=engine)
    yield model.fit(np.concatenate([X, -X])).cluster_centers_
    # centres that the GPU computes have roundings of their own; what they decide is the same
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(_kshape, "FEW_VALUES", 0)
        for options in ({}, {"normalize": False}, {"init": "plusplus"}):
            model = KShapeClusterer(2, random_state=0, n_init=1, engine=engine, **options)
            yield model.fit(X).labels_
            yield model.fit(X.reshape(4, 3, 30)).labels_
    # as if series were too long for the iteration, so that S itself is formed
    zeros = np.zeros(len(X), np.int32)
    work = SBDCenters(Shapes.of(X[:, np.newaxis]), zeros, zeros, 1)
    with pytest.MonkeyPatch.context() as patch:
        if engine == "cupy":
            patch.setattr("skts.engines.cupy.kshape.centers.choose_gram", lambda size: None)
            patch.setattr("skts.engines.cupy.kshape.tiles.MOMENT_POINTS", 0)
        yield np.round(run(work, engine=engine).values, 6)


def trees(engine):
    X, y = walks(24, 20), np.arange(24) % 2
    X[y == 1, 5:12] += 3 * np.sin(np.arange(7.0))
    options = {"min_length": 5, "max_length": 7, "max_depth": 2, "engine": engine}
    yield of_fitted(ShapeletTreeClassifier(**options), X, y, ("predict", X), ("transform", X))
    # many candidates of the same points
    options = {"min_length": 4, "max_length": 5, "max_depth": 1, "engine": engine}
    X, y = np.random.default_rng(3).integers(0, 2, (2, 60, 24))
    with pytest.MonkeyPatch.context() as patch:
        if engine == "cupy":
            patch.setattr("skts.engines.cupy.shapelets.order_lines.MEASURED_TWICE", 0)
        yield of_fitted(ShapeletTreeClassifier(**options), X, y[:, 0], ("transform", X))
    # as if series were so many that a block judges an order line
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("skts.engines.cupy.shapelets.programs.KEYS", ())
        if engine == "cupy":
            patch.setattr("skts.engines.cupy.shapelets.order_lines.SORTED_BYTES", 0)
        yield of_fitted(ShapeletTreeClassifier(**options), X[:20], y[:20, 0], ("transform", X))


def forests(engine):
    X, y = walks(14, 20), np.arange(14) % 3
    calls = ("predict_proba", X), ("apply", X[:3])
    for options in ({}, {"logic": ("and", "or"), "class_weight": "balanced_subsample"}):
        model = ShapeletForestClassifier(4, random_state=0, engine=engine, **options)
        yield of_fitted(model, X, y, *calls)
    unequal = [x[: 3 + row] for row, x in enumerate(X)]
    model = ShapeletForestClassifier(3, min_length=1, random_state=0, engine=engine)
    yield of_fitted(model, unequal, y, ("apply", unequal))
    model = ShapeletForestClassifier(3, max_candidates=3, random_state=0, engine=engine)
    yield of_fitted(model, X.reshape(14, 2, 10), y, ("predict_proba", X.reshape(14, 2, 10)))


def searches(engine):
    x, z = walks(2, 400, 2)
    for options in ({}, {"window": 0.1}, {"window": 0}):
        model = SubsequenceSearch(engine=engine, **options)
        yield of_fitted(model, x[np.newaxis], None, ("kneighbors", z[np.newaxis, :30], 2))
    yield dtw_window_search(walks(20, 24), np.arange(20) % 2, windows=[0, 2, 5], engine=engine)


def transforms(engine):
    X, y = walks(9, 40), np.arange(9) % 3
    X[4, 5:30] = 2.0
    for options in ({}, {"n_shapelets": 3}, {"max_candidates": None, "lengths": [9]}):
        options = {"max_candidates": 60, "random_state": 0, "engine": engine} | options
        yield of_fitted(ShapeletTransformer(**options), X, y, ("transform", X))
    # squares that a plain sum loses
    model = ShapeletTransformer(max_candidates=9, normalized=0, random_state=0, engine=engine)
    yield of_fitted(model, 1e-140 * X, y, ("transform", 1e-140 * X))


WORKS = (
    matrices,
    neighbors,
    radii,
    stepped,
    rotations,
    paths,
    averages,
    profiles,
    channels,
    clusters,
    trees,
    forests,
    searches,
    transforms,
)
