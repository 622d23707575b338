"""
Motifs of all lengths
=====================

Patterns of several lengths in one series: :func:`~skts.motifs.pan_matrix_profile` computes the
matrix profile of every length of the window, and shows how long each of them is.
"""

# %%
# The data
# --------
# Noise with two patterns, each of which comes twice: one of 60 points and one of 150.

import matplotlib.pyplot as plt
import numpy as np

from skts.motifs import pan_matrix_profile
from skts.plotting import PanProfileDisplay

rng = np.random.default_rng(0)
x = rng.normal(size=2000)
for length, places in ((60, (200, 900)), (150, (500, 1500))):
    pattern = rng.normal(size=length)
    for place in places:
        x[place : place + length] = pattern + rng.normal(scale=0.05, size=length)

# %%
# All lengths
# -----------
# Distances are divided by the square root of twice the length: 0 is the same shape, 1 no
# correlation at all. Each pattern is a dark place for all windows that fit into it, and ends at the
# length at which they no longer do.

pan = pan_matrix_profile(x, windows=range(10, 251, 6))
display = PanProfileDisplay.from_profile(pan)
plt.show()

# %%
# How long the patterns are
# -------------------------
# The distance of the nearest pair of each length rises where the longest pattern ends.

fig, ax = plt.subplots(figsize=(8, 2.6), layout="constrained")
ax.plot(pan.windows, pan.motif_distances, label="nearest pair")
ax.plot(pan.windows, pan.discord_distances, label="best discord")
ax.axvline(150, color="0.6", linestyle="--")
ax.set(xlabel="points of the window", ylabel="distance / sqrt(2 window)")
ax.legend()
plt.show()

# %%
# Stopped early
# -------------
# Lengths are computed breadth first. A search that is stopped after the first of them has the ends
# of the range and what lies halfway between; ``computed`` names what is there.

early = pan_matrix_profile(x, windows=range(10, 251, 6), time_limit=1e-9)
print(early.computed, "of", early.windows.size)
print(pan.computed[:5])
