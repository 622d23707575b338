"""
Kinds of heartbeats
===================

Cut an electrocardiogram into beats, and let :class:`~skts.KShapeClusterer` sort them. Nobody has
marked where a beat begins: k-Shape moves each one into place by itself.
"""

# %%
# Beats
# -----
# A beat shows as a steep slope. Where the slope is largest among half a second, a window of 0.8
# seconds is cut out. That is crude, and good enough: the windows hold one beat each, not all at the
# same place.

import matplotlib.pyplot as plt
import numpy as np
from scipy.signal import find_peaks

from skts import KShapeClusterer
from skts.datasets import load_ecg
from skts.plotting import ClusterDisplay

ecg = load_ecg()
x = ecg.data[0, 20_000:65_000].astype(float)
slope = np.abs(np.gradient(x))
peaks, _ = find_peaks(slope, distance=180, height=np.quantile(slope, 0.97))
starts = peaks[(peaks > 120) & (peaks < x.size - 170)] - 120
X = np.array([x[start : start + 288] for start in starts])
print(f"{len(X)} beats of {X.shape[1]} points")

# %%
# Two shapes
# ----------
# One cluster holds the normal beats, narrow and upright; the other holds the premature ones, wide
# and deep.

model = KShapeClusterer(2, n_init=5, random_state=0).fit(X)
ClusterDisplay.from_estimator(model, X)
plt.show()

# sphinx_gallery_thumbnail_number = 2

# %%
# Where they are
# --------------
# The labels, back in the recording.

times = (starts + 120) / ecg.sampling_frequency
shown = slice(0, 7_200)
fig, ax = plt.subplots(figsize=(9, 2.8), layout="constrained")
ax.plot(np.arange(x.size)[shown] / ecg.sampling_frequency, x[shown], color="0.5", linewidth=0.8)
for label, (color, marker) in enumerate((("#0072B2", "o"), ("#D55E00", "v"))):
    here = times[(model.labels_ == label) & (times < 20)]
    ax.plot(here, np.full(here.size, x[shown].max() + 0.3), marker, color=color)
    ax.plot([], [], marker, color=color, label=f"cluster {label}")
ax.set(xlabel="seconds", ylabel="millivolt")
ax.legend(frameon=False, ncols=2, loc="lower right")
plt.show()

# %%
# How far beats had to be moved to match the centres of their clusters.

shifts = model.shifts_ / ecg.sampling_frequency
print(f"{np.mean(np.abs(shifts) > 0.02):.0%} of the beats moved by more than 20 ms,")
print(f"the farthest by {1000 * np.abs(shifts).max():.0f} ms")
