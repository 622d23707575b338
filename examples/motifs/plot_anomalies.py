"""
Anomalies in an electrocardiogram
=================================

How unusual is each moment of a recording? :class:`~skts.DiscordDetector` scores it by the distance
of the windows around it to their nearest neighbours.
"""

# %%
# The data
# --------
# 42 seconds of an ECG at 360 Hz, with premature beats, and noise where the electrode moved.

import matplotlib.pyplot as plt
import numpy as np

from skts import DiscordDetector
from skts.datasets import load_ecg

ecg = load_ecg().data[:, :15_000]
seconds = np.arange(ecg.shape[1]) / 360

# %%
# Compared with itself
# --------------------
# A window of half a second is compared with all others that do not overlap it. Its score is the
# distance to its nearest neighbour, or to its third: what happens twice, or three times, is not
# unusual for the former. Neighbours do not overlap each other.

figure, axes = plt.subplots(3, sharex=True, figsize=(9, 6), layout="constrained")
axes[0].plot(seconds, ecg[0], color="0.2", linewidth=0.7)
axes[0].set(ylabel="millivolt")
for ax, n_neighbors in zip(axes[1:], (1, 3), strict=True):
    detector = DiscordDetector(window=180, n_neighbors=n_neighbors).fit(ecg)
    scores = detector.score_points(ecg)[0]
    ax.plot(seconds, scores, color="C1")
    ax.set(ylabel=f"score, neighbour {n_neighbors}")
    print(f"neighbour {n_neighbors}: most unusual at second {seconds[scores.argmax()]:.1f}")
axes[-1].set(xlabel="seconds")
plt.show()

# %%
# Only what came before
# ---------------------
# In a stream nothing is known of what follows. The first occurrence of anything is then unusual,
# and later ones are not.

stream = DiscordDetector(window=180, side="left").fit(ecg)
before = stream.score_points(ecg)[0]
figure, ax = plt.subplots(figsize=(9, 2.5), layout="constrained")
ax.plot(seconds, before, color="C2")
ax.set(xlabel="seconds", ylabel="score, earlier windows alone")
plt.show()
