"""Make channels.npz: what stumpy gives for matrix profiles of several channels.

    PYTHON tests/data/peers/make_channels.py

run by an interpreter that has stumpy, draws the inputs and stores them with the profiles. What
each key means is in README.md beside this file.
"""

import json
from importlib.metadata import version
from pathlib import Path
from platform import python_version

import numpy as np
import stumpy

HERE = Path(__file__).resolve().parent
WINDOW = 12
OPTIONS = {
    "nearest": {},
    "farthest": {"discords": True},
    "include": {"include": [1]},
    "plain": {"normalize": False},
}


def draw_inputs():
    rng = np.random.default_rng(20261124)
    flat = rng.standard_normal((3, 200)).cumsum(axis=1)
    flat[0, 40:70] = 2.0
    flat[2, 100:150] = -1.0
    return {
        "two": rng.standard_normal((2, 200)).cumsum(axis=1),
        "eight": rng.standard_normal((8, 150)).cumsum(axis=1),
        "flat": flat,
    }


def main():
    found = inputs = draw_inputs()
    found = dict(inputs)
    for name, x in inputs.items():
        for kind, options in OPTIONS.items():
            distances, indices = stumpy.mstump(x, WINDOW, **options)
            found[f"profile.{name}.{kind}"] = distances.astype(float)
            found[f"index.{name}.{kind}"] = indices.astype(np.int32)
    versions = {"python": python_version()} | {
        name: version(name) for name in ("stumpy", "numpy", "numba")
    }
    found["versions"] = np.array(json.dumps(versions))
    np.savez_compressed(HERE / "channels.npz", **found)


if __name__ == "__main__":
    main()
