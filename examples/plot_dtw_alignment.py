"""
How dynamic time warping aligns two series
==========================================

:func:`~skts.metrics.dtw_path` returns the cheapest matching of two series: here two movements of
the same kind, made at different speeds.
"""

# %%
# Two series
# ----------
# Take two recordings of the same class: of all that can go with the first, the one that comes
# closest by warping.

import matplotlib.pyplot as plt
import numpy as np

from skts.datasets import load_gunpoint
from skts.metrics import dtw_path, pairwise_dtw

X, y = load_gunpoint(split="train", return_X_y=True)
first, *others = X[y == y[0]]
gains = np.linalg.norm(others - first, axis=1) / pairwise_dtw([first], others)[0]
second = others[int(np.argmax(gains))]

path, distance = dtw_path(first, second)
print(f"DTW        {distance:.3f}")
print(f"Euclidean  {np.linalg.norm(first - second):.3f}")
print(f"{len(path)} steps for {len(first)} points; the first three: {path[:3].tolist()}")

# %%
# The path in the table of costs
# ------------------------------
# Each cell holds the squared difference of two points. The path goes from one corner to the other
# through the dark valleys; where it leaves the diagonal, one series waits for the other.

costs = (first[:, None] - second[None, :]) ** 2

fig = plt.figure(figsize=(6.5, 6.5), layout="constrained")
axes = fig.subplot_mosaic(
    [[".", "second"], ["first", "costs"]], width_ratios=[1, 4], height_ratios=[1, 4]
)
axes["costs"].imshow(costs, origin="lower", aspect="auto", cmap="magma")
axes["costs"].plot(path[:, 1], path[:, 0], color="white", linewidth=2.2)
axes["costs"].plot([0, len(second) - 1], [0, len(first) - 1], color="white", lw=0.8, ls=":")
axes["second"].plot(second, color="tab:orange")
axes["first"].plot(first, np.arange(len(first)), color="tab:blue")
axes["first"].invert_xaxis()
axes["second"].sharex(axes["costs"])
axes["first"].sharey(axes["costs"])
for name in ("first", "second"):
    axes[name].axis("off")
axes["costs"].set(xlabel="time of the second series", ylabel="time of the first series")
plt.show()
