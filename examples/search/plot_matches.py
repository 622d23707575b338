"""
One gesture at several paces
============================

:func:`~skts.metrics.dtw_matches` finds the parts of a long series that are nearest to a short one
under warping. The parts may have any lengths, and share no point.
"""

# %%
# The data
# --------
# A wave of 40 points, and a long series in which it occurs three times: at its own pace, twice as
# fast, and at half the pace.

import matplotlib.pyplot as plt
import numpy as np

from skts.metrics import dtw_matches

rng = np.random.default_rng(0)


def wave(n_timepoints):
    """One up and down in so many points."""
    return np.sin(np.linspace(0, 2 * np.pi, n_timepoints))


query = wave(40)
series = 0.5 + 0.15 * rng.standard_normal(500)
for start, length in ((60, 40), (180, 20), (320, 80)):
    series[start : start + length] = wave(length) + 0.15 * rng.standard_normal(length)

# %%
# Three matches, and one too many
# -------------------------------
# The best match comes first. The fourth is a piece of noise: its distance is several times that of
# the others, which tells where to stop.

distances, spans = dtw_matches(query, series, n_matches=4)
for distance, (start, stop) in zip(distances, spans, strict=True):
    print(f"{start:3} to {stop - 1:3}, {stop - start:2} points, distance {distance:.2f}")

# %%
# Where they lie
# --------------
# Ends of a match are those of the least distance: a point of the level around may belong to it
# where it is as near to the query as the points of the wave.

fig, ax = plt.subplots(figsize=(9, 3), layout="constrained")
ax.plot(series, color="tab:gray", linewidth=0.8)
for rank, (start, stop) in enumerate(spans[:3]):
    ax.plot(np.arange(start, stop), series[start:stop], label=f"match {rank + 1}")
ax.set(xlabel="time point", ylabel="value")
ax.legend()
plt.show()
