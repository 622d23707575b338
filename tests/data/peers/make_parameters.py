"""Make parameters.npz: the parameters that aeon's ensemble tries, and leave-one-out errors of each.

    python tests/data/peers/make_parameters.py

where aeon is installed, see README.md beside this file. Nothing of this package is imported.
"""

import json
import math
from importlib.metadata import version
from pathlib import Path
from platform import python_version

import numpy as np
from aeon import distances
from aeon.classification.distance_based import ElasticEnsemble

HERE = Path(__file__).resolve().parent
#: Names of parameters in the order of the columns, as aeon has them.
NAMES = {
    "dtw": ("window",),
    "ddtw": ("window",),
    "wdtw": ("g",),
    "lcss": ("epsilon", "window"),
    "erp": ("g", "window"),
    "msm": ("c",),
}
#: Those of which aeon computes the errors: its ERP starts from other borders.
COMPUTED = ("dtw", "ddtw", "wdtw", "lcss", "msm")


def errors_of(metric, X, y, grid):
    """Share of the series whose nearest other one has another label."""
    function = getattr(distances, f"{metric}_pairwise_distance")
    for values in grid:
        options = dict(zip(NAMES[metric], values, strict=True))
        if "window" in options:
            # here a fraction is rounded up, of a derivative it is one of two points less
            n = X.shape[1]
            radius = math.ceil(options["window"] * (n - 2 * (metric == "ddtw")) - 1e-9)
            options["window"] = min(1.0, (radius + 0.5) / n)
        D = function(X, **options)
        np.fill_diagonal(D, np.inf)
        yield np.mean(y[D.argmin(axis=1)] != y)


def main():
    with np.load(HERE / "dtw.npz") as file:
        X, y = file["shapes_X"], file["shapes_y"]
    found = {}
    for metric, names in NAMES.items():
        given = ElasticEnsemble._get_100_param_options(metric, X)["distance_params"]
        grid = np.array([[one[name] for name in names] for one in given])
        found[f"grid.{metric}"] = grid
        if metric in COMPUTED:
            found[f"errors.{metric}"] = np.array(list(errors_of(metric, X, y, grid)))
    versions = {"aeon": f"{version('aeon')} (Python {python_version()})"}
    target = HERE / "parameters.npz"
    np.savez_compressed(target, versions=json.dumps(versions), **found)
    print(f"{len(found)} results, {target.stat().st_size / 1000:.0f} kB")


if __name__ == "__main__":
    main()
