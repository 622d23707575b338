"""Make elastic.npz: what aeon gives for the elastic distances, on the inputs of dtw.npz.

    python tests/data/peers/make_elastic.py

where aeon is installed, see README.md beside this file. Nothing of this package is imported.
"""

import json
from importlib.metadata import version
from pathlib import Path
from platform import python_version

import numpy as np
from aeon import distances

HERE = Path(__file__).resolve().parent
#: Measure: function, parameters. Measures that end with a number have that value of the parameter.
MEASURES = {
    "erp": ("erp_distance", {}),
    "erp_gap0.5": ("erp_distance", {"g": 0.5}),
    "lcss": ("lcss_distance", {}),
    "lcss_epsilon0.25": ("lcss_distance", {"epsilon": 0.25}),
    "edr": ("edr_distance", {}),
    "edr_epsilon0.25": ("edr_distance", {"epsilon": 0.25}),
    "msm": ("msm_distance", {}),
    "msm_penalty0.1": ("msm_distance", {"c": 0.1}),
    "twe": ("twe_distance", {}),
    "twe_nu0.1": ("twe_distance", {"nu": 0.1, "lmbda": 0.5}),
    "wdtw": ("wdtw_distance", {}),
    "wdtw_g0.3": ("wdtw_distance", {"g": 0.3}),
    "adtw": ("adtw_distance", {}),
    "adtw_penalty0.1": ("adtw_distance", {"warp_penalty": 0.1}),
    "ddtw": ("ddtw_distance", {}),
    "shape_dtw": ("shape_dtw_distance", {}),
    "shape_dtw_reach4": ("shape_dtw_distance", {"reach": 4}),
}
#: Distances that aeon gives as sums of squares.
SQUARED = ("wdtw", "adtw", "ddtw", "shape")
SETS = ("walks", "beats", "ragged", "channels")


def series(stored):
    """Cut trailing NaN off."""
    return [row[..., ~np.isnan(np.atleast_2d(row)[0])] for row in stored]


def main():
    with np.load(HERE / "dtw.npz") as file:
        inputs = dict(file)
    found = {}
    for measure, (name, options) in MEASURES.items():
        function = getattr(distances, name)
        root = np.sqrt if measure.startswith(SQUARED) else np.asarray

        def values(X, Y, **more):
            return root([[function(x, y, **options, **more) for y in Y] for x in X])  # noqa: B023

        for data in SETS:
            X, Y = (series(inputs[f"{data}_{side}"]) for side in "XY")
            if measure == "ddtw":
                X, Y = ([x for x in side if x.shape[-1] > 2] for side in (X, Y))
            if measure.startswith("shape") and data == "ragged":
                continue
            found[f"{measure}.{data}"] = values(X, Y)
        X, Y = (series(inputs[f"walks_{side}"]) for side in "XY")
        # a fraction of the length, rounded down
        found[f"{measure}_window4.walks"] = values(X, Y, window=4.5 / X[0].shape[-1])
        X, Z = inputs["shapes_X"], inputs["shapes_Z"]
        near = values(Z, X)
        found[f"nearest.{measure}.index"] = near.argmin(axis=1)
        found[f"nearest.{measure}.distance"] = near.min(axis=1)
    versions = {"aeon": f"{version('aeon')} (Python {python_version()})"}
    target = HERE / "elastic.npz"
    np.savez_compressed(target, versions=json.dumps(versions), **found)
    print(f"{len(found)} results, {target.stat().st_size / 1000:.0f} kB")


if __name__ == "__main__":
    main()
