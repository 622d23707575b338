"""Anomaly detectors on labelled series: quality (VUS-PR), and seconds.

    PYTHON -m benchmarks.profile.anomalies

run by an interpreter that has skts, stumpy and aeon, writes `benchmarks/results/anomalies.json`. It
scores the labelled series of one channel that
are in aeon's wheel (a heart rate with internal bleeding, number 135 of the KDD-TSAD collection, and
synthetic electrocardiograms with three kinds of anomalies), reads them there and copies nothing.
All detectors get the same window. Seconds are those of a second run on one thread. The record is
written after each detector, so that a run that is stopped leaves what it has.
"""

import argparse
import time
from pathlib import Path

import numba
import numpy as np

from benchmarks import _records
from benchmarks.profile._ranges import vus_pr
from skts import DiscordDetector

#: Loaders of aeon, and about one period of each series.
SERIES = {"load_kdd_tsad_135": 160, "load_ecg_diff_count_3": 100}


def cover(scores, window):
    """The largest score of the windows that cover each point."""
    padded = np.pad(np.asarray(scores, float), window - 1, constant_values=-np.inf)
    return np.lib.stride_tricks.sliding_window_view(padded, window).max(axis=1)


def ours(n_neighbors, side="both", aggregate="max"):
    """Our detector, in the form in which all are called."""

    def score(x, window):
        detector = DiscordDetector(window, n_neighbors=n_neighbors, side=side, n_jobs=1)
        x = x[np.newaxis]
        return np.nan_to_num(detector.fit(x).score_points(x, aggregate=aggregate)[0])

    return score


def stumpy_profile(x, window):
    """The profile of stumpy, each point by the windows that cover it."""
    import stumpy

    return cover(stumpy.stump(x, window)[:, 0], window)


def of_aeon(name, *options):
    """A detector of aeon, by its class and the options that get the window.

    Points get the mean of the windows that cover them.
    """

    def score(x, window):
        import aeon.anomaly_detection.series.distance_based as detectors

        return getattr(detectors, name)(**dict.fromkeys(options, window)).fit_predict(x)

    return score


DETECTORS = {
    "skts, nearest neighbour": ours(1),
    "skts, nearest, mean": ours(1, aggregate="mean"),
    "skts, second neighbour": ours(2),
    "skts, third neighbour": ours(3),
    "skts, earlier neighbours": ours(1, "left"),
    "stumpy.stump": stumpy_profile,
    "aeon STOMP": of_aeon("STOMP", "window_size"),
    "aeon LeftSTAMPi": of_aeon("LeftSTAMPi", "window_size", "n_init_train"),
}


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--most", type=int, default=10**9, help="points of a series, at most")
    parser.add_argument("--detectors", nargs="+", choices=DETECTORS, default=list(DETECTORS))
    parser.add_argument("--commit", help="what to record where there is no git")
    parser.add_argument("--output", type=Path, default=_records.RESULTS / "anomalies.json")
    options = parser.parse_args()
    import aeon.datasets

    numba.set_num_threads(1)
    rows = []
    for loader, window in SERIES.items():
        x, labels = (np.asarray(one).ravel() for one in getattr(aeon.datasets, loader)()[:2])
        x, labels = x[: options.most].astype(float), labels[: options.most].astype(int)
        series = loader.removeprefix("load_")
        print(f"{series}: {x.size:,} points, {labels.sum()} of them anomalous, window {window}")
        for name in options.detectors:
            score = DETECTORS[name]
            try:
                score(x[: 8 * window], window)
                start = time.perf_counter()
                found = np.asarray(score(x, window), float)
            except ImportError as error:
                print(f"  {name:<26} {error}")
                continue
            seconds = time.perf_counter() - start
            quality = vus_pr(labels, found)
            print(f"  {name:<26} VUS-PR {quality:.3f}  {seconds:8.2f} s", flush=True)
            row = {"series": series, "points": x.size, "anomalous": int(labels.sum())}
            row |= {"window": window, "detector": name, "threads": 1}
            rows.append(row | {"vus_pr": round(quality, 4), "seconds": round(seconds, 3)})
            libraries = _records.versions("skts", "numpy", "numba", "stumpy", "aeon")
            found = _records.record(
                "Anomaly detectors on labelled series",
                **{"device": "CPU", "versions": libraries, "rows": rows},
                commit=options.commit,
            )
            _records.write(options.output, found)


if __name__ == "__main__":
    main()
