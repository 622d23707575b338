"""Make search.npz: what wildboar finds when it searches a query in a series.

    PYTHON tests/data/peers/make_search.py

run by an interpreter that has wildboar, draws the inputs and stores them with the matches. What
each key means is in README.md beside this file.
"""

import json
from importlib.metadata import version
from pathlib import Path
from platform import python_version

import numpy as np
from wildboar.distance import distance_profile, pairwise_subsequence_distance

HERE = Path(__file__).resolve().parent
#: Half widths of the band; "all" is none.
BANDS = {"0": 0, "3": 3, "10": 10, "all": None}
METRICS = {
    "dtw": "scaled_dtw",
    "plaindtw": "dtw",
    "euclidean": "scaled_euclidean",
    "plaineuclidean": "euclidean",
}


def fraction(kind, radius, length):
    """The argument of wildboar for a half width: rounded down, and one less without scaling."""
    return (radius + (0.5 if kind == "dtw" else 1.5)) / length


def draw_inputs():
    rng = np.random.default_rng(20251)
    n = 700
    flat = rng.standard_normal(n).cumsum()
    flat[100:180], flat[400:460] = flat[100], 0.0
    scales = rng.standard_normal(n)
    scales[: n // 3] *= 1e-2
    scales[2 * n // 3 :] *= 1e2
    series = {
        "walk": rng.standard_normal(n).cumsum(),
        "noise": rng.standard_normal(n),
        "flat": flat,
        "scales": scales,
        "level": 1e3 + rng.standard_normal(n).cumsum(),
        "repeats": np.tile(rng.standard_normal(90), 8)[:n] + 1e-3 * rng.standard_normal(n),
    }
    queries = {
        "long": rng.standard_normal(60).cumsum(),
        "short": rng.standard_normal(16).cumsum(),
        "part": series["walk"][333:373] + 0.2 * rng.standard_normal(40),
    }
    return series, queries


def main():
    series, queries = draw_inputs()
    found = {f"series.{name}": x for name, x in series.items()}
    found |= {f"query.{name}": q for name, q in queries.items()}
    for name, x in series.items():
        for shape, q in queries.items():
            for key, metric in METRICS.items():
                for band, radius in BANDS.items() if key.endswith("dtw") else [("none", None)]:
                    options = {}
                    if key.endswith("dtw"):
                        options = {"r": 1.0 if radius is None else fraction(key, radius, q.size)}
                    best, place = pairwise_subsequence_distance(
                        q, x, metric=metric, metric_params=options, return_index=True
                    )
                    found[f"best.{key}.{name}.{shape}.{band}"] = np.array([best, place], float)
            profile = distance_profile(q, x, metric="scaled_euclidean")
            found[f"profile.{name}.{shape}"] = np.ravel(profile)
    versions = {"wildboar": f"{version('wildboar')} (Python {python_version()})"}
    target = HERE / "search.npz"
    np.savez_compressed(target, versions=json.dumps(versions), **found)
    print(f"{target.name}: {target.stat().st_size / 1000:.0f} kB, {versions}")


if __name__ == "__main__":
    main()
