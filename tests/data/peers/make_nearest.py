"""Make nearest.npz: what 1-NN under aeon's elastic distances says of ten sets of the UCR archive.

    SKTS_DATA=<folder> python make_nearest.py

where aeon is installed, see README.md beside this file. Nothing of this package is imported. Takes
some minutes. For each set and distance the nearest training series of each test series, the first
of equals.
"""

import os
from importlib.metadata import version
from pathlib import Path
from platform import python_version

import numpy as np
from aeon import distances

SETS = (
    "Coffee", "ECG200", "ItalyPowerDemand", "SonyAIBORobotSurface1", "GunPoint", "Beef",
    "FaceFour", "MoteStrain", "Plane", "SyntheticControl",
)  # fmt: skip
#: The usual parameters, by the names that aeon has for them.
OPTIONS = {
    "erp": {"g": 0.0},
    "lcss": {"epsilon": 1.0},
    "edr": {},
    "msm": {"c": 1.0},
    "twe": {"nu": 0.001, "lmbda": 1.0},
    "wdtw": {"g": 0.05},
    "adtw": {"warp_penalty": 1.0},
    "ddtw": {},
    "shape_dtw": {"reach": 15},
}


def main():
    folder = Path(os.environ["SKTS_DATA"], "ucr")
    found = {}
    for name in SETS:
        with np.load(folder / f"{name}.npz") as data:
            train, test = data["X_train"], data["X_test"]
        for metric, options in OPTIONS.items():
            function = getattr(distances, f"{metric}_pairwise_distance")
            matrix = function(test, train, **options)
            found[f"{name} {metric}"] = matrix.argmin(axis=1).astype(np.uint16)
            print(name, metric, flush=True)
    versions = f"aeon: {version('aeon')} (Python {python_version()})"
    np.savez_compressed(Path(__file__).with_name("nearest.npz"), versions=versions, **found)


if __name__ == "__main__":
    main()
