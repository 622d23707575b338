"""
A linear model of shapelets
===========================

A linear model of the distances to many shapelets is an accurate classifier, and each of its weights
belongs to a piece of a series that can be shown. Here the shapelets are the best of all
subsequences; thousands that are drawn at random are more accurate, but less easily looked at.
"""

# %%
# Twelve shapelets
# ----------------
# All subsequences of 20 points, dilated or not, of 36 arrow heads are tried. With a dilation of 4 a
# shapelet of 20 points goes over 77.

import matplotlib.pyplot as plt
import numpy as np
from sklearn.linear_model import RidgeClassifierCV
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from skts import ShapeletTransformer
from skts.datasets import load_arrow_head

X_train, y_train = load_arrow_head(split="train", return_X_y=True)
X_test, y_test = load_arrow_head(split="test", return_X_y=True)

best = ShapeletTransformer(
    12,
    max_candidates=None,
    lengths=[20],
    dilations=[1, 2, 4],
    normalized=1,
    features=["distance"],
)
drawn = ShapeletTransformer(max_candidates=2_000, random_state=0)
for name, transformer in (("12, the best", best), ("2,000, drawn", drawn)):
    model = make_pipeline(transformer, StandardScaler(), RidgeClassifierCV())
    print(f"{name}: accuracy {model.fit(X_train, y_train).score(X_test, y_test):.3f}")

# %%
# Where they match
# ----------------
# The best shapelet of each class, on the series that it comes from and where it matches best in a
# series of the test set. Its points are as far apart as its dilation says.

names = ["Avonlea", "Clovis", "mixed"]
firsts = {}
for number, shapelet in enumerate(best.shapelets_):
    firsts.setdefault(int(shapelet.label), (number, shapelet))
start = ShapeletTransformer(**best.get_params() | {"features": ["start"]}).fit(X_train, y_train)
starts = start.transform(X_test).astype(int)

fig, axes = plt.subplots(2, 3, figsize=(9, 4.2), sharex=True, layout="constrained")
for ax, (label, (number, shapelet)) in zip(axes.T, sorted(firsts.items()), strict=True):
    row = np.flatnonzero(y_test == y_train[shapelet.series])[0]
    pictures = (
        (X_train[shapelet.series], shapelet.start, "training series"),
        (X_test[row], starts[row, number], "its match"),
    )
    for one, (series, begin, title) in zip(ax, pictures, strict=True):
        points = begin + shapelet.dilation * np.arange(shapelet.length)
        one.plot(series, color="0.7")
        one.plot(points, series[points], ".", color="#D55E00", markersize=5)
        one.set_title(f"{names[label]}: {title}", loc="left", fontsize="medium")
for ax in axes[1]:
    ax.set(xlabel="time point")
for ax in axes[:, 0]:
    ax.set(ylabel="normalised radius")
plt.show()

# %%
# How far series are from them
# ----------------------------
# Distances of the test series to the first shapelet of each class: those of its class are near.

distances = best.transform(X_test)
fig, axes = plt.subplots(1, 3, figsize=(9, 2.6), sharey=True, layout="constrained")
for ax, (label, (number, _)) in zip(axes, sorted(firsts.items()), strict=True):
    groups = [distances[y_test == one, number] for one in np.unique(y_test)]
    ax.boxplot(groups, tick_labels=names, medianprops={"color": "#D55E00"})
    ax.set(title=f"to that of {names[label]}")
axes[0].set(ylabel="distance")
plt.show()
