"""
Watching a live electrocardiogram
=================================

A recording is searched when it is there as a whole. A live one is watched:
:class:`~skts.SubsequenceMonitor` keeps some patterns, takes the points as they come, and reports
each place that resembles one of them, as soon as it is certain. These are the places that
:class:`~skts.SubsequenceSearch` would find in all points together.
"""

# %%
# Two patterns
# ------------
# The first 30 seconds of an ECG at 360 Hz are known. In them are ordinary beats, and some that
# came too early and from elsewhere in the heart: wider ones, with a dip behind them. One of each is
# taken as a pattern; they differ in length.

import matplotlib.pyplot as plt
import numpy as np

from skts import SubsequenceMonitor, SubsequenceSearch
from skts.datasets import load_ecg

ecg = load_ecg()
x = ecg.data[0].astype(float)
known, live = x[:10_800], x[10_800:43_200]
patterns = {"ordinary": known[1_840:1_960], "ventricular": known[8_540:8_720]}

fig, axes = plt.subplots(1, 2, figsize=(7, 2.4), sharey=True, layout="constrained")
for ax, (name, points) in zip(axes, patterns.items(), strict=True):
    ax.plot(np.arange(points.size) / ecg.sampling_frequency, points)
    ax.set(title=name, xlabel="seconds")
axes[0].set_ylabel("millivolt")
plt.show()

# %%
# Radii from what is known
# ------------------------
# How near is near enough? A search of the known part tells: the distances of its best matches rise
# slowly, and then there is a step. Each pattern has a radius of its own.

options = {"window": 0.05, "exclusion": 100}
search = SubsequenceSearch(**options).fit(known.reshape(1, -1))
for (name, points), count in zip(patterns.items(), (58, 10), strict=True):
    distances, _ = search.kneighbors([points], n_neighbors=count)
    print(f"{name:>12} ...", *(f"{one:.1f}" for one in distances[0, -8:]))

# %%
# The stream
# ----------
# Points come in pieces, here of a quarter of a second; any other pieces would lead to the same
# reports. A match is reported once no better one can follow within ``exclusion`` points of it.

monitor = SubsequenceMonitor([5.5, 4.5], **options).fit(list(patterns.values()))
reports = {name: [] for name in patterns}
delays = []
for piece in np.split(live, range(90, live.size, 90)):
    distances, starts = monitor.update(piece)
    for name, found in zip(patterns, starts, strict=True):
        reports[name] += found.tolist()
        delays += (monitor.n_points_ - found - patterns[name].size).tolist()
for name, found in reports.items():
    print(f"{len(found):>4} {name}")
print(f"{max(delays) / ecg.sampling_frequency:.2f} seconds after the last point of a match at most")

# %%
# The first half minute
# ---------------------

shown = 30 * 360
fig, ax = plt.subplots(figsize=(9, 3), layout="constrained")
ax.plot(np.arange(shown) / ecg.sampling_frequency, live[:shown], color="0.6", linewidth=0.8)
for color, (name, found) in zip(("C0", "C3"), reports.items(), strict=True):
    length = patterns[name].size
    for number, start in enumerate(start for start in found if start + length < shown):
        places = np.arange(start, start + length)
        label = name if number == 0 else None
        ax.plot(places / ecg.sampling_frequency, live[places], color=color, label=label)
ax.set(xlabel="seconds", ylabel="millivolt")
ax.legend()
plt.show()

# %%
# The same as a search of all points
# ----------------------------------
# The end of the stream is said with ``final=True``: then nothing waits any more.

_, rest = monitor.update([], final=True)
whole = SubsequenceSearch(**options).fit(live.reshape(1, -1))
for (name, points), radius, last in zip(patterns.items(), monitor.radii_, rest, strict=True):
    distances, positions = whole.kneighbors([points], n_neighbors=live.size)
    expected = np.sort(positions[0, distances[0] <= radius, 1])
    print(name, np.array_equal([*reports[name], *last], expected))
