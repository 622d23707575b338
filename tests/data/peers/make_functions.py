"""Make functions.npz: what stumpy gives for MPdist, chains, consensus motifs and regimes.

    PYTHON tests/data/peers/make_functions.py

run by an interpreter that has stumpy, draws the inputs and stores them with the answers. What each
key means is in README.md beside this file.
"""

import json
from importlib.metadata import version
from pathlib import Path
from platform import python_version

import numpy as np
import stumpy

HERE = Path(__file__).resolve().parent


def draw_inputs():
    rng = np.random.default_rng(20261)
    time = np.arange(500)
    pattern = rng.standard_normal(40).cumsum()
    drifting = rng.standard_normal(500)
    for step, start in enumerate(range(20, 480, 60)):
        drifting[start : start + 20] = 3 * np.sin(np.linspace(0, 6 + step / 2, 20))
    steps = np.concatenate(
        [np.sin(time[:200] / 4), np.sin(time[:150] / 2) ** 3, np.sign(np.sin(time[:150] / 3))]
    )
    inputs = {
        "walk": rng.standard_normal(500).cumsum(),
        "other": rng.standard_normal(300).cumsum(),
        "noise": rng.standard_normal(400),
        "drifting": drifting,
        "steps": steps + 0.1 * rng.standard_normal(500),
    }
    holes = inputs["noise"].copy()
    holes[50], holes[200:204] = np.nan, np.inf
    inputs["holes"] = holes
    for k, start in enumerate((10, 120, 60, 0)):
        one = rng.standard_normal(150 + 20 * k).cumsum()
        one[start : start + 40] = 3 * pattern + 0.2 * rng.standard_normal(40) + k
        inputs[f"consensus{k}"] = one
    return inputs


def parabola(n):
    """Arcs of chance over each place (paper, section III.C)."""
    place = np.arange(1, n + 1)
    return 2.0 * place * (n - place) / n


def main():
    inputs = draw_inputs()
    found = dict(inputs)
    for one, other in (("walk", "other"), ("noise", "holes"), ("drifting", "steps")):
        for k in (0, 7, None):  # counted from 0; None is the usual share
            value = stumpy.mpdist(inputs[one], inputs[other], 20, k=k)
            found[f"mpdist.{one}.{other}.{'usual' if k is None else k}"] = np.float64(value)
    for name in ("walk", "drifting", "holes"):
        profile = stumpy.stump(inputs[name], 20)
        left, right = profile[:, 2].astype(np.int64), profile[:, 3].astype(np.int64)
        chains, _longest = stumpy.allc(left, right)
        chains = sorted(
            (one for one in chains if one.size > 1), key=lambda one: (-one.size, one[0])
        )
        found[f"chains.{name}"] = np.concatenate(chains)
        found[f"chainsizes.{name}"] = np.array([one.size for one in chains])
        for anchor in (0, 21, 80):
            found[f"anchored.{name}.{anchor}"] = stumpy.atsc(left, right, anchor)
    series = [inputs[f"consensus{k}"] for k in range(4)]
    radius, row, start = stumpy.ostinato(series, 40)
    found["consensus"] = np.array([radius, row, start], float)
    for name in ("steps", "walk"):
        profile = stumpy.stump(inputs[name], 16)
        curve, places = stumpy.fluss(
            profile[:, 1].astype(np.int64), 16, 3, 2, custom_iac=parabola(len(profile))
        )
        found[f"curve.{name}"], found[f"boundaries.{name}"] = curve, places
    found["distances"] = stumpy.mass(inputs["other"][40:70], inputs["walk"])
    versions = {"stumpy": f"{version('stumpy')} (Python {python_version()})"}
    target = HERE / "functions.npz"
    np.savez_compressed(target, versions=json.dumps(versions), **found)
    print(f"{target.name}: {target.stat().st_size / 1000:.0f} kB, {versions}")


if __name__ == "__main__":
    main()
