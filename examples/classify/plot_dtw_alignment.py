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
from skts.plotting import AlignmentDisplay

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

AlignmentDisplay.from_series(first, second, names=("the first", "the second"))
plt.show()

# %%
# Inside a band
# -------------
# A window keeps the path near the diagonal: nothing outside of the band is computed. A narrow one
# may keep series from meeting where they should, and the distance grows.

fig, axes = plt.subplots(1, 3, figsize=(10, 3.6), layout="constrained")
for ax, window in zip(axes, (0.05, 0.1, 0.2), strict=True):
    display = AlignmentDisplay.from_series(first, second, window=window, series=False, axes=[ax])
    ax.set(title=f"window {window:.0%}: {ax.get_title()}", ylabel="")
axes[0].set(ylabel="time point of x")
fig.colorbar(display.image_, ax=axes, label="squared difference")
plt.show()
