"""
Motifs and discords of an electrocardiogram
===========================================

What repeats in a long recording, and what does not: :class:`~skts.MotifFinder` compares every
window with every other one and returns the pairs that are nearest to each other, with their
further occurrences, and the windows whose nearest neighbour is far away.
"""

# %%
# The data
# --------
# 42 seconds of an ECG at 360 Hz, with premature beats and noise. One long series is one row of
# ``X``.

import matplotlib.pyplot as plt
import numpy as np

from skts import MotifFinder
from skts.datasets import load_ecg
from skts.plotting import MotifDisplay

x = np.ravel(load_ecg().data)[:15_000].astype(float)
X = x.reshape(1, -1)

# %%
# How long is a window?
# ---------------------
# ``window="auto"`` takes the period of the series: the clearest peak of its autocorrelation,
# without what drifts more slowly. Here that is about the length of a heartbeat.

model = MotifFinder(n_motifs=2, n_discords=2).fit(X)
print("window:", model.window_, "points")
for motif in model.motifs_:
    print(f"motif: {motif.n_matches} occurrences, pair at distance {motif.distance:.2f}")
for discord in model.discords_:
    print(f"discord at {discord.position}, {discord.distance:.2f} from its nearest neighbour")

# %%
# What was found
# --------------
# The occurrences of a motif have the colour of its panel; discords are hatched above, and are the
# peaks of the profile below.

display = MotifDisplay.from_estimator(model)
display.axes_[0].set(ylabel="millivolt", xlabel="time point, 360 a second")
plt.show()

# %%
# Several lengths at once
# -----------------------
# Lengths compete by distance over the square root of the length. A list of lengths needs a profile
# for each.

several = MotifFinder([100, 200, 300, 400], n_motifs=3).fit(X)
for motif in several.motifs_:
    print(f"window {motif.window}: {motif.distance / np.sqrt(motif.window):.4f}")

# %%
# A series that grows
# -------------------
# ``update`` appends points. What is known stays; the result is the same as that of a fit on the
# whole series.

growing = MotifFinder(model.window_, n_motifs=2).fit(X[:, :12_000])
growing.update(x[12_000:])
print("same profile:", np.array_equal(growing.profile_, model.profile_))
