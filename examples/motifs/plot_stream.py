"""
A stream with a bound
=====================

A recording that never ends: :class:`~skts.MotifFinder` keeps the latest points, and its motifs and
discords are those of what it keeps.
"""

# %%
# The data
# --------
# A machine that repeats itself every 50 points, slower after a while, and with one fault.

import matplotlib.pyplot as plt
import numpy as np

from skts import MotifFinder

rng = np.random.default_rng(0)
period = np.where(np.arange(6000) < 3500, 50, 62)
x = np.sin(2 * np.pi * np.cumsum(1 / period)) ** 3 + rng.normal(scale=0.1, size=6000)
x[2200:2230] += np.hanning(30)

# %%
# Points that come, points that leave
# -----------------------------------
# The model is fitted on the first 1,500 points. Then 500 come at a time, and as many leave. The
# result is, bit by bit, that of a new ``fit`` on the points that are kept.

kept = 1500
model = MotifFinder(100, n_motifs=1, n_discords=1).fit(x[:kept].reshape(1, -1))
ends, worst = [], []
for end in range(2000, 6001, 500):
    model.update(x[end - 500 : end], max_points=kept)
    ends.append(end)
    (discord,) = model.discords_
    worst.append((end - kept + discord.position, discord.distance))
anew = MotifFinder(100).fit(x[-kept:].reshape(1, -1))
print("as fitted anew:", np.array_equal(model.profile_, anew.profile_))

# %%
# The best discord of each state, where it lies in the whole recording: the fault while it is kept,
# and the change of the period while too little of the new one is known.

fig, (top, bottom) = plt.subplots(2, 1, figsize=(8, 4), sharex=True, layout="constrained")
top.plot(x, color="0.4", linewidth=0.6)
top.set(ylabel="value")
for end, (place, distance) in zip(ends, worst, strict=True):
    bottom.plot([end - kept, end], [distance, distance], color="0.8", linewidth=4)
    bottom.plot(place, distance, "v", color="#D55E00")
bottom.set(xlabel="time point", ylabel="distance of the discord")
plt.show()
