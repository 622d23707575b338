"""Make averages.npz: barycenters, k-means and soft-DTW of tslearn.

    PYTHON tests/data/peers/make_averages.py

run by an interpreter that has tslearn, draws the inputs and stores them with the results. What each
key means is in README.md beside this file.
"""

import json
import warnings
from importlib.metadata import version
from pathlib import Path
from platform import python_version

import numpy as np
from tslearn.barycenters import (
    dtw_barycenter_averaging,
    dtw_barycenter_averaging_subgradient,
    softdtw_barycenter,
)
from tslearn.clustering import TimeSeriesKMeans
from tslearn.metrics import SoftDTW, SquaredEuclidean, cdist_soft_dtw

HERE = Path(__file__).resolve().parent
GAMMAS = (0.01, 0.5, 10.0)


def draw_inputs():
    rng = np.random.default_rng(20252)

    def walks(*shape):
        return np.cumsum(rng.standard_normal(shape), axis=-1)

    ragged = np.full((6, 30), np.nan)
    for row, length in zip(ragged, (30, 7, 18, 1, 24, 12), strict=True):
        row[:length] = walks(length)
    t = np.linspace(0, 1, 36)
    kinds = np.arange(24) % 3
    groups = np.array(
        [
            np.sin((4 + 3 * kind) * t ** np.exp(rng.uniform(-0.3, 0.3)) * np.pi)
            + 0.1 * rng.standard_normal(36)
            for kind in kinds
        ]
    )
    return {
        "walks": walks(9, 32),
        "channels": walks(6, 2, 20),
        "ragged": ragged,
        "groups": groups,
        "weights": rng.uniform(0.2, 2, 9),
        "start": walks(25),
    }


def points_first(X):
    """The form of tslearn: series, points, channels."""
    return X[:, :, np.newaxis] if X.ndim == 2 else X.transpose(0, 2, 1)


def barycenters(inputs):
    """DBA and soft-DTW barycenters from given starts."""
    cases = {
        "walks": (inputs["walks"], inputs["walks"][0], None, {}),
        "weighted": (inputs["walks"], inputs["walks"][0], inputs["weights"], {}),
        "window": (
            inputs["walks"],
            inputs["walks"][0],
            None,
            # its number: a word is taken for no constraint here
            {"global_constraint": 2, "sakoe_chiba_radius": 3},
        ),
        "shorter": (inputs["walks"], inputs["start"], None, {}),
        "channels": (inputs["channels"], inputs["channels"][0], None, {}),
        "ragged": (inputs["ragged"], inputs["ragged"][0], None, {}),
    }
    for name, (X, start, weights, constraint) in cases.items():
        start = np.atleast_2d(start).T
        given = {"init_barycenter": start, "weights": weights, "tol": 0}
        for max_iter in (1, 3, 30):
            average = dtw_barycenter_averaging(
                points_first(X), max_iter=max_iter, metric_params=constraint or None, **given
            )
            yield f"dba.{name}.{max_iter}", np.squeeze(average.T)
        if not constraint:
            for gamma in GAMMAS[1:]:
                average = softdtw_barycenter(
                    points_first(X), gamma, weights=weights, init=start, max_iter=200, tol=1e-10
                )
                yield f"softbarycenter.{name}.{gamma}", np.squeeze(average.T)


def subgradients(inputs):
    """Averages by subgradients, in a band in which no point is matched with many others."""
    for name in ("walks", "weighted", "channels"):
        X = inputs[name if name in inputs else "walks"]
        for max_iter in (1, 3):
            average = dtw_barycenter_averaging_subgradient(
                points_first(X),
                # it changes this array
                init_barycenter=np.atleast_2d(X[0]).T.copy(),
                weights=inputs["weights"] if name == "weighted" else None,
                max_iter=max_iter,
                tol=0,
                random_state=5,
                metric_params={"global_constraint": 2, "sakoe_chiba_radius": 3},
            )
            yield f"subgradient.{name}.{max_iter}", np.squeeze(average.T)


def soft_distances(inputs):
    """All pairs; and gradients of some."""
    for gamma in GAMMAS:
        for name in ("walks", "channels", "ragged"):
            X = points_first(inputs[name])
            yield f"softdtw.{name}.{gamma}", cdist_soft_dtw(X, gamma=gamma)
        x, y = (inputs["walks"][row][:, np.newaxis] for row in (0, 1))
        costs = SquaredEuclidean(x, y[:27])
        soft = SoftDTW(costs, gamma=gamma)
        yield f"value.{gamma}", soft.compute()
        yield f"alignment.{gamma}", soft.grad()
        yield f"gradient.{gamma}", costs.jacobian_product(soft.grad())[:, 0]


def clusters(inputs):
    """k-means from given centres, until it has converged."""
    X = points_first(inputs["groups"])
    model = TimeSeriesKMeans(3, metric="dtw", init=X[:3], max_iter=50, tol=0).fit(X)
    yield "kmeans.labels", model.labels_
    yield "kmeans.centers", model.cluster_centers_[:, :, 0]
    yield "kmeans.inertia", model.inertia_


def main():
    warnings.simplefilter("ignore")
    inputs = draw_inputs()
    found = {f"input.{name}": value for name, value in inputs.items()}
    for part in (barycenters, subgradients, soft_distances, clusters):
        found |= dict(part(inputs))
    versions = {"tslearn": f"{version('tslearn')} (Python {python_version()})"}
    target = HERE / "averages.npz"
    np.savez_compressed(target, versions=json.dumps(versions), **found)
    print(f"{target.name}: {len(found)} arrays, {target.stat().st_size / 1000:.0f} kB")


if __name__ == "__main__":
    main()
