"""
Does warping help?
==================

The nearest neighbour under dynamic time warping is the classifier that others are measured against.
It costs more than the Euclidean distance, so the first question about new data is whether warping
is worth it. ``window=0`` *is* the Euclidean distance: one parameter answers the question.
"""

# %%
# Four data sets
# --------------
# Two that come with skts, and two that are made: in one the classes differ in shape and each series
# runs at its own pace, in the other every series is a random walk and there is nothing to warp.

import matplotlib.pyplot as plt
import numpy as np

from skts import DTWNearestNeighbor
from skts.datasets import (
    load_arrow_head,
    load_gunpoint,
    make_random_walk,
    make_warped_shapes,
)


def split(load):
    """Training series, their labels, test series, their labels."""
    parts = (load(split=name, return_X_y=True) for name in ("train", "test"))
    return [array for part in parts for array in part]


def halves(X, y):
    """The first half of the series for training, the second for testing."""
    half = len(X) // 2
    return X[:half], y[:half], X[half:], y[half:]


warped = make_warped_shapes(240, 100, n_shapes=6, warp=0.7, noise=0.5, random_state=0)
walks = make_random_walk(240, 100, random_state=0)
slopes = np.where(np.arange(240) % 2, 0.15, -0.15)
walks = walks + slopes[:, np.newaxis] * np.arange(100)

data = {
    "GunPoint": split(load_gunpoint),
    "ArrowHead": split(load_arrow_head),
    "warped shapes": halves(*warped),
    "walks that rise or fall": halves(walks, slopes > 0),
}

# %%
# The nearest neighbour
# ---------------------
# Without warping, inside a band of 10 % of the length, and without limit.

windows = {"Euclidean": 0, "window 10 %": 0.1, "no window": None}
errors = {
    name: [
        1 - DTWNearestNeighbor(window=window).fit(X_train, y_train).score(X_test, y_test)
        for window in windows.values()
    ]
    for name, (X_train, y_train, X_test, y_test) in data.items()
}
print(f"{'error on the test series':<26}" + "".join(f"{name:>13}" for name in windows))
for name, row in errors.items():
    print(f"{name:<26}" + "".join(f"{100 * error:>11.1f} %" for error in row))

# %%
# Warping is the whole point where classes differ in shape and series in pace. Where points stand
# for places that do not move, such as those of an outline, it throws away what tells classes apart.
# A narrow band is often better than both extremes; how wide it should be is the question of
# :ref:`another example <sphx_glr_auto_examples_classify_plot_dtw_window.py>`.

fig, ax = plt.subplots(figsize=(8, 3.6), layout="constrained")
places = np.arange(len(data))
for number, (name, color) in enumerate(zip(windows, ("0.6", "#0072B2", "#D55E00"), strict=True)):
    heights = [100 * errors[key][number] for key in data]
    ax.bar(places + 0.26 * (number - 1), heights, width=0.24, color=color, label=name)
ax.set(xticks=places, xticklabels=list(data), ylabel="error on the test series, %")
ax.legend(frameon=False)
plt.show()
