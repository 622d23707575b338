"""Make motifs.npz: what stumpy gives for matrix profiles.

    PYTHON tests/data/peers/make_motifs.py

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
WINDOWS = {"short": 8, "long": 50}


def draw_inputs():
    rng = np.random.default_rng(20250)
    n = 500
    walk = rng.standard_normal(n).cumsum()
    flat = rng.standard_normal(n).cumsum()
    flat[60:140], flat[300:420] = flat[60], 0.0
    holes = rng.standard_normal(n)
    holes[50], holes[200:204], holes[333] = np.nan, np.inf, -np.inf
    scales = rng.standard_normal(n)
    scales[: n // 3] *= 1e-2
    scales[2 * n // 3 :] *= 1e2
    pattern = rng.standard_normal(110)
    return {
        "walk": walk,
        "noise": rng.standard_normal(n),
        "flat": flat,
        "holes": holes,
        "scales": scales,
        "tiny": 1e-6 * rng.standard_normal(n).cumsum(),
        "huge": 1e6 * rng.standard_normal(n).cumsum(),
        "repeats": np.tile(pattern, 5)[:n],
        "nearrepeats": np.tile(pattern, 5)[:n] + 1e-9 * rng.standard_normal(n),
        "other": rng.standard_normal(300).cumsum(),
    }


def main():
    found = inputs = draw_inputs()
    found = dict(inputs)
    for name, x in inputs.items():
        for size, window in WINDOWS.items():
            profile = stumpy.stump(x, window, k=3)
            found[f"profile.{name}.{size}"] = profile[:, :3].astype(float)
            found[f"index.{name}.{size}"] = profile[:, 3:6].astype(np.int32)
            found[f"left.{name}.{size}"] = profile[:, 6].astype(np.int32)
            found[f"right.{name}.{size}"] = profile[:, 7].astype(np.int32)
            plain = stumpy.aamp(x, window)
            found[f"plainprofile.{name}.{size}"] = plain[:, :1].astype(float)
            found[f"plainindex.{name}.{size}"] = plain[:, 1:2].astype(np.int32)
            if name != "other":
                joined = stumpy.stump(x, window, T_B=inputs["other"], ignore_trivial=False)
                found[f"joinprofile.{name}.{size}"] = joined[:, :1].astype(float)
                found[f"joinindex.{name}.{size}"] = joined[:, 1:2].astype(np.int32)
    versions = {"stumpy": f"{version('stumpy')} (Python {python_version()})"}
    target = HERE / "motifs.npz"
    np.savez_compressed(target, versions=json.dumps(versions), **found)
    print(f"{target.name}: {target.stat().st_size / 1000:.0f} kB, {versions}")


if __name__ == "__main__":
    main()
