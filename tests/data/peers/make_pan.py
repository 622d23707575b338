"""Make pan.npz: what stumpy gives for the matrix profiles of many lengths (`stimp`).

    PYTHON tests/data/peers/make_pan.py

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
LENGTHS = range(8, 41, 4)


def draw_inputs():
    rng = np.random.default_rng(20251)
    flat = rng.standard_normal(200).cumsum()
    flat[40:90] = flat[40]
    return {
        "walk": rng.standard_normal(200).cumsum(),
        "noise": rng.standard_normal(200),
        "flat": flat,
    }


def main():
    inputs = draw_inputs()
    found = dict(inputs, lengths=np.array(LENGTHS))
    for name, x in inputs.items():
        pan = stumpy.stimp(x, LENGTHS[0], LENGTHS[-1], LENGTHS.step, percentage=1.0)
        for _ in LENGTHS:
            pan.update()
        # rows ascend with the length
        values = pan.pan(normalize=True, contrast=False, binary=False, clip=True)
        found[f"pan.{name}"] = values.astype(float)
        assert sorted(pan.M_) == list(LENGTHS)
    versions = {"stumpy": f"{version('stumpy')} (Python {python_version()})"}
    target = HERE / "pan.npz"
    np.savez_compressed(target, versions=json.dumps(versions), **found)
    print(f"{target.name}: {target.stat().st_size / 1000:.0f} kB, {versions}")


if __name__ == "__main__":
    main()
