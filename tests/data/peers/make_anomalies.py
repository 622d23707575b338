"""Make anomalies.npz: what aeon gives for scores of labelled ranges.

    PYTHON tests/data/peers/make_anomalies.py

run by an interpreter that has aeon, draws labels and scores and stores them with the values. What
each key means is in README.md beside this file.
"""

import json
from importlib.metadata import version
from pathlib import Path
from platform import python_version

import numpy as np
from aeon.benchmarking.metrics.anomaly_detection import range_pr_auc_score, range_pr_vus_score

HERE = Path(__file__).resolve().parent
BUFFERS, LONGEST = (0, 1, 2, 7, 30), 40


def draw_cases():
    rng = np.random.default_rng(20261124)
    ranges = {"one": [(200, 240)], "edges": [(0, 10), (590, 600)], "near": [(100, 130), (140, 141)]}
    for name, some in ranges.items():
        labels = np.zeros(600, int)
        for first, stop in some:
            labels[first:stop] = 1
        noise = rng.normal(size=600)
        late = np.roll(labels, 15)
        yield f"{name}.good", labels, labels + 0.3 * noise
        yield f"{name}.late", labels, late + 0.3 * noise
        yield f"{name}.chance", labels, noise
        yield f"{name}.ties", labels, np.round(late + 0.5 * noise)


def main():
    found = {}
    for name, labels, scores in draw_cases():
        found[f"labels.{name}"], found[f"scores.{name}"] = labels.astype(np.int8), scores
        found[f"areas.{name}"] = np.array(
            [range_pr_auc_score(labels, scores, buffer) for buffer in BUFFERS]
        )
        found[f"volume.{name}"] = np.array(range_pr_vus_score(labels, scores, LONGEST))
    versions = {"aeon": f"{version('aeon')} (Python {python_version()})"}
    target = HERE / "anomalies.npz"
    np.savez_compressed(target, versions=json.dumps(versions), **found)
    print(f"{target.name}: {target.stat().st_size / 1000:.0f} kB, {versions}")


if __name__ == "__main__":
    main()
