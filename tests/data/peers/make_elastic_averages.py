"""Make elastic_averages.npz: barycenters of aeon under other metrics than DTW.

    PYTHON tests/data/peers/make_elastic_averages.py

run by an interpreter that has aeon, draws the inputs and stores them with the results. What each
key means is in README.md beside this file.
"""

import json
import warnings
from importlib.metadata import version
from pathlib import Path
from platform import python_version

import numpy as np
from aeon.clustering.averaging import petitjean_barycenter_average

HERE = Path(__file__).resolve().parent
#: Our names of parameters, and those of aeon.
PARAMETERS = {
    "adtw": {"penalty": 0.7},
    "wdtw": {"g": 0.2},
    "msm": {"penalty": 0.3},
    "twe": {"nu": 0.01, "lmbda": 0.5},
}
THEIRS = {("adtw", "penalty"): "warp_penalty", ("msm", "penalty"): "c"}


def main():
    rng = np.random.default_rng(20261)
    t = np.linspace(0, 1, 30)
    inputs = {
        "walks": rng.standard_normal((8, 24)).cumsum(axis=1),
        "bumps": np.array([
            np.exp(-(((t - rng.uniform(0.3, 0.7)) / 0.1) ** 2)) * 3 + 0.1 * rng.standard_normal(30)
            for _ in range(9)
        ]),
    }  # fmt: skip
    found = {f"input.{name}": X for name, X in inputs.items()}
    for name, X in inputs.items():
        for metric, given in PARAMETERS.items():
            theirs = {THEIRS.get((metric, key), key): value for key, value in given.items()}
            for max_iter in (1, 20):
                with warnings.catch_warnings():
                    warnings.simplefilter("ignore")
                    average, cost = petitjean_barycenter_average(
                        X[:, np.newaxis], distance=metric, init_barycenter=X[:1],
                        max_iters=max_iter, tol=0, return_cost=True, **theirs,
                    )  # fmt: skip
                found[f"average.{name}.{metric}.{max_iter}"] = average[0]
                found[f"cost.{name}.{metric}.{max_iter}"] = np.float64(cost)
    versions = {"aeon": version("aeon"), "numpy": version("numpy"), "python": python_version()}
    found["versions"] = np.array(json.dumps(versions))
    found["parameters"] = np.array(json.dumps(PARAMETERS))
    np.savez_compressed(HERE / "elastic_averages.npz", **found)


if __name__ == "__main__":
    main()
