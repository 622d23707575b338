"""Make matches.npz: the matches of a query in a long series that dtaidistance finds.

    PYTHON tests/data/peers/make_matches.py

run by an interpreter that has dtaidistance, draws the inputs and stores them with the matches. What
each key means is in README.md beside this file.
"""

import json
from importlib.metadata import version
from pathlib import Path
from platform import python_version

import numpy as np
from dtaidistance.subsequence.dtw import subsequence_alignment

HERE = Path(__file__).resolve().parent
#: Where the query lies in the series, stretched to how many points.
PLACES = {
    "stretched": ((40, 30), (130, 18), (220, 45)),
    "regular": ((20, 24), (90, 24), (160, 24), (240, 24)),
}


def draw_inputs():
    rng = np.random.default_rng(20262)
    query = np.sin(np.linspace(0, 3 * np.pi, 24)) + 0.05 * rng.standard_normal(24)
    series = {}
    for name, places in PLACES.items():
        # a level that is far from the query, so that matches do not touch
        series[name] = 4 + 0.3 * rng.standard_normal(300)
        for start, length in places:
            warped = np.interp(np.linspace(0, 23, length), np.arange(24), query)
            series[name][start : start + length] = warped + 0.1 * rng.standard_normal(length)
    series["walk"] = 0.3 * rng.standard_normal(300).cumsum()
    return query, series


def main():
    query, series = draw_inputs()
    found = {"query": query}
    for name, y in series.items():
        found[f"series.{name}"] = y
        alignment = subsequence_alignment(query, y, penalty=0)
        # of a walk the best one alone: later ones are those of dtaidistance, which does not align
        # again between the matches before
        k = len(PLACES.get(name, (1,)))
        matches = list(alignment.kbest_matches(k, minlength=1))
        found[f"distances.{name}"] = np.array([one.distance for one in matches])
        # the last point belongs to a segment there
        found[f"spans.{name}"] = np.array([one.segment for one in matches]) + [0, 1]
    versions = {"dtaidistance": f"{version('dtaidistance')} (Python {python_version()})"}
    target = HERE / "matches.npz"
    np.savez_compressed(target, versions=json.dumps(versions), **found)
    print(f"{target.name}: {target.stat().st_size / 1000:.0f} kB, {versions}")


if __name__ == "__main__":
    main()
