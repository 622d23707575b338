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

from skts import DTWNearestNeighbor, ShapeletTreeClassifier, show_engines
from skts.datasets import load_arrow_head, load_gunpoint
from skts.exceptions import UnsupportedReductionError
from skts.metrics import dtw_path

DATA = {"GunPoint": load_gunpoint, "ArrowHead": load_arrow_head}
ESTIMATORS = {
    "DTWNearestNeighbor": DTWNearestNeighbor,
    "ShapeletTreeClassifier": partial(ShapeletTreeClassifier, length_step=5),
}


def load(name):
    """Training series, their labels, test series, their labels."""
    parts = (DATA[name](split=split, return_X_y=True) for split in ("train", "test"))
    return [array for part in parts for array in part]


def fit_and_score(estimator, X_train, y_train, X_test, y_test):
    """Accuracy on the test part, and the seconds that fit and score took together."""
    start = time.perf_counter()
    accuracy = estimator.fit(X_train, y_train).score(X_test, y_test)
    return accuracy, time.perf_counter() - start


def print_table(engine):
    """One line for each estimator and data set. The first call compiles, so there are two times."""
    line = "{:<24} {:<10} {:>12} {:>9} {:>9} {:>9}  {}"
    print(
        line.format(
            "estimator", "data set", "train x test", "accuracy", "first s", "again s", "engine"
        )
    )
    for name, make in ESTIMATORS.items():
        for data_name in DATA:
            data = load(data_name)
            estimator = make(engine=engine)
            try:
                _, first = fit_and_score(estimator, *data)
            except UnsupportedReductionError as error:
                print(line.format(name, data_name, *"----", error))
                continue
            accuracy, again = fit_and_score(estimator, *data)
            sizes = f"{len(data[0])} x {len(data[2])}"
            times = f"{first:.3f}", f"{again:.3f}"
            print(line.format(name, data_name, sizes, f"{accuracy:.3f}", *times, estimator.engine_))


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
