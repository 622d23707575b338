"""The main job in one command: fit the estimators on the sample data, print a table, draw demo.png.

Run with ``make demo``, or ``python examples/demo.py`` where skts and matplotlib are installed.
"""

import argparse
import time
from functools import partial
from pathlib import Path

import matplotlib

matplotlib.use("Agg")
import matplotlib.pyplot as plt
import numpy as np
from sklearn.linear_model import RidgeClassifierCV
from sklearn.metrics import rand_score
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from skts import (
    DiscordDetector,
    DTWNearestNeighbor,
    KShapeClusterer,
    MotifFinder,
    ShapeletTransformer,
    ShapeletTreeClassifier,
    SubsequenceMonitor,
    SubsequenceSearch,
    show_engines,
)
from skts.datasets import load_arrow_head, load_ecg, load_gunpoint, make_shifted_shapes
from skts.exceptions import UnsupportedReductionError
from skts.metrics import dtw_path

DATA = {"GunPoint": load_gunpoint, "ArrowHead": load_arrow_head}


def load(name):
    """Training series, their labels, test series, their labels."""
    parts = (DATA[name](split=split, return_X_y=True) for split in ("train", "test"))
    return [array for part in parts for array in part]


def classify(estimator, name):
    """Fit a classifier, and say how often it is right on the test part."""
    X_train, y_train, X_test, y_test = load(name)
    return f"accuracy {estimator.fit(X_train, y_train).score(X_test, y_test):.3f}"


def classify_features(transformer):
    """Fit a linear model to features, and say how often it is right on the test part."""
    head = StandardScaler(), RidgeClassifierCV()
    return classify(make_pipeline(transformer, *head), "GunPoint")


def cluster(estimator):
    """Fit a clusterer to series whose shapes are known."""
    X, y = make_shifted_shapes(300, random_state=0)[:2]
    return f"Rand index {rand_score(y, estimator.fit(X).labels_):.3f}"


def find_motifs(estimator):
    """Find what repeats in two minutes of an ECG."""
    motif = estimator.fit(load_ecg().data[:, :43_200]).motifs_[0]
    return f"pair at {' and '.join(map(str, motif.positions[:2]))}"


def detect(estimator):
    """Find the most unusual moment in two minutes of an ECG."""
    ecg = load_ecg().data[:, :43_200]
    scores = estimator.fit(ecg).score_points(ecg)[0]
    return f"highest score at {scores.argmax()}"


def search(estimator):
    """Find a heartbeat in five minutes of an ECG."""
    x = load_ecg().data
    positions = estimator.fit(x).kneighbors([x[0, 1_840:1_960]], 4, return_distance=False)
    return f"also at {', '.join(map(str, positions[0, 1:, 1]))}"


def monitor(estimator):
    """Notice heartbeats like one of them in five minutes of an ECG that comes second by second."""
    x = load_ecg().data[0]
    estimator.fit([x[1_840:1_960]])
    found = [estimator.update(second)[1][0] for second in x.reshape(-1, 360)]
    return f"{sum(map(len, found))} beats"


JOBS = {
    ("DTWNearestNeighbor", "GunPoint"): (DTWNearestNeighbor, partial(classify, name="GunPoint")),
    ("DTWNearestNeighbor", "ArrowHead"): (DTWNearestNeighbor, partial(classify, name="ArrowHead")),
    ("ShapeletTreeClassifier", "GunPoint"): (
        partial(ShapeletTreeClassifier, length_step=5),
        partial(classify, name="GunPoint"),
    ),
    ("ShapeletTransformer", "GunPoint"): (
        partial(ShapeletTransformer, max_candidates=2_000, random_state=0),
        classify_features,
    ),
    ("KShapeClusterer", "shifted shapes"): (
        partial(KShapeClusterer, 3, n_init=3, random_state=0),
        cluster,
    ),
    ("MotifFinder", "ECG, 2 min"): (partial(MotifFinder, 200), find_motifs),
    ("DiscordDetector", "ECG, 2 min"): (partial(DiscordDetector, 200), detect),
    ("SubsequenceSearch", "ECG, 5 min"): (partial(SubsequenceSearch, window=0.05), search),
    ("SubsequenceMonitor", "ECG, 5 min"): (partial(SubsequenceMonitor, 2, window=0.05), monitor),
}


def print_table(engine):
    """One line for each estimator and data set. The first call compiles, so there are two times."""
    line = "{:<24} {:<15} {:<26} {:>8} {:>8}  {}"
    print(line.format("estimator", "data", "result", "first s", "again s", "engine"))
    for (name, data), (make, work) in JOBS.items():
        estimator = make(engine=engine)
        seconds = []
        try:
            for _ in range(2):
                start = time.perf_counter()
                result = work(estimator)
                seconds.append(f"{time.perf_counter() - start:.3f}")
        except UnsupportedReductionError as error:
            print(line.format(name, data, *"---", error))
            continue
        print(line.format(name, data, result, *seconds, estimator.engine_), flush=True)


def draw_classes(axes, X, y, colours):
    """All series of a class in one panel, their mean on top."""
    for ax, label, colour in zip(axes, np.unique(y), colours, strict=True):
        members = X[y == label]
        ax.plot(members.T, color=colour, alpha=0.25, linewidth=0.9)
        ax.plot(members.mean(axis=0), color=colour, linewidth=2.6, label="mean")
        ax.set_title(f"class {label}: {len(members)} training series", loc="left")
        ax.set_xlim(0, X.shape[1] - 1)
        ax.legend(frameon=False, loc="upper right")
    for ax in axes[1:]:
        ax.tick_params(labelleft=False)


def draw_alignment(ax, query, neighbor, path, colours, labels):
    """Two series, one above the other, and thin lines between the points that DTW matched."""
    lift = 1.15 * (query.max() - query.min())
    for i, j in path[::2]:
        ax.plot([i, j], [query[i] + lift, neighbor[j]], color="0.72", linewidth=0.7, zorder=1)
    ax.plot(query + lift, color=colours[0], linewidth=2.2, label=labels[0])
    ax.plot(neighbor, color=colours[1], linewidth=2.2, label=labels[1])
    ax.set_xlim(0, len(query) - 1)
    ax.set_ylim(top=ax.get_ylim()[1] + 0.25 * lift)
    ax.set_yticks([])
    ax.set_xlabel("time")
    ax.legend(frameon=False, loc="upper left", ncols=2)


def draw(target, engine):
    """Draw the classes of the first data set, and how one test series meets its neighbour."""
    name = next(iter(DATA))
    X_train, y_train, X_test, y_test = load(name)
    classes = np.unique(y_train)
    colours = dict(zip(classes, plt.get_cmap("tab10").colors, strict=False))

    model = DTWNearestNeighbor(engine=engine).fit(X_train, y_train)
    distances, nearest = (result[:, 0] for result in model.kneighbors(X_test))
    # of the test series that are classified rightly, the one that warping brings closest
    gains = np.linalg.norm(X_test - X_train[nearest], axis=1) - distances
    shown = int(np.argmax(np.where(y_train[nearest] == y_test, gains, -np.inf)))
    found = nearest[shown]
    query, neighbor = X_test[shown], X_train[found]
    path, distance = dtw_path(query, neighbor)

    plt.rcParams.update({"font.size": 10, "axes.spines.top": False, "axes.spines.right": False})
    fig = plt.figure(figsize=(11, 7.5), layout="constrained")
    grid = fig.add_gridspec(2, len(classes), height_ratios=[1, 1.15])
    top = [fig.add_subplot(grid[0, 0])]
    top += [fig.add_subplot(grid[0, i], sharey=top[0]) for i in range(1, len(classes))]
    draw_classes(top, X_train, y_train, colours.values())
    bottom = fig.add_subplot(grid[1, :])
    labels = (
        f"test series {shown} (class {y_test[shown]})",
        f"its nearest neighbour, training series {found} (class {y_train[found]})",
    )
    draw_alignment(bottom, query, neighbor, path, ("0.15", colours[y_train[found]]), labels)
    bottom.set_title(
        f"matched by dynamic time warping: distance {distance:.3f}, "
        f"{np.linalg.norm(query - neighbor):.3f} without warping",
        loc="left",
    )
    fig.suptitle(f"{name}: nearest neighbours under dynamic time warping", fontsize=14)
    fig.savefig(target, dpi=130)
    plt.close(fig)


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--engine", default="auto", help="auto, numba or cupy")
    parser.add_argument("--output", type=Path, default=Path("demo.png"), help="the picture")
    options = parser.parse_args()
    show_engines()
    print()
    print_table(options.engine)
    draw(options.output, options.engine)
    print(f"\npicture: {options.output}")
