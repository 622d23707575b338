"""
Series of unequal lengths, with several channels
================================================

Recordings are seldom of one length, and often hold more than one quantity. Every estimator of skts
takes a list of arrays, one a series, ``(n_timepoints,)`` or ``(n_channels, n_timepoints)``.
"""

# %%
# The data
# --------
# A pen that writes an 8, an S or a 0: two channels, horizontal and vertical place. Some write fast,
# some slowly, and nobody at an even pace.

import matplotlib.pyplot as plt
import numpy as np
from sklearn.model_selection import cross_val_score

from skts import DTWNearestNeighbor, KShapeClusterer
from skts.plotting import AlignmentDisplay

rng = np.random.default_rng(0)
letters = {
    "8": lambda t: (np.sin(4 * np.pi * t), 2 * np.cos(2 * np.pi * t)),
    "S": lambda t: (np.cos(3 * np.pi * t) * (1 - t), 2 - 4 * t),
    "0": lambda t: (np.sin(2 * np.pi * t), 2 * np.cos(2 * np.pi * t)),
}


def write(letter):
    """One recording of shape (2, n_timepoints)."""
    pace = rng.gamma(2, size=rng.integers(40, 90)) + 0.2
    t = np.cumsum(pace) / pace.sum()
    return np.array(letters[letter](t)) + rng.normal(scale=0.12, size=(2, t.size))


y = np.array([*letters] * 20)
X = [write(letter) for letter in y]
print(f"{len(X)} series of {min(x.shape[1] for x in X)} to {max(x.shape[1] for x in X)} points")

fig, axes = plt.subplots(1, 3, figsize=(7, 3), sharex=True, sharey=True, layout="constrained")
for ax, letter in zip(axes, letters, strict=True):
    for i in np.flatnonzero(y == letter)[:3]:
        ax.plot(*X[i], ".-", linewidth=0.8, markersize=3)
    ax.set(title=letter, aspect="equal", xlabel="horizontal place")
axes[0].set(ylabel="vertical place")
plt.show()

# %%
# Nearest neighbours
# ------------------
# All channels share one warping path. A band is widened to the difference of two lengths, so that a
# path exists for every pair.

model = DTWNearestNeighbor(window=0.2)
scores = cross_val_score(model, X, y, cv=5)
print(f"cross-validated accuracy: {scores.mean():.3f}")

# %%
# How a new recording meets its nearest neighbour; the two colours are the two channels.

model.fit(X, y)
AlignmentDisplay.from_estimator(model, write("8"))
plt.show()

# %%
# The same as an array
# --------------------
# NaN at the end of a series is padding. A three-dimensional array with NaN means the same as the
# list, and is what a file may hold.

longest = max(x.shape[1] for x in X)
padded = np.full((len(X), 2, longest), np.nan)
for row, x in zip(padded, X, strict=True):
    row[:, : x.shape[1]] = x
same = DTWNearestNeighbor(window=0.2).fit(padded, y)
queries = [write(letter) for letter in "8S0"]
print("the same neighbours:", np.array_equal(same.kneighbors(queries), model.kneighbors(queries)))

# %%
# Clusters
# --------
# k-Shape takes such series, too: each is normalised on its own points, and its channels are moved
# together. It moves series but does not stretch them, so that what was written at another pace
# is another shape to it.

clusters = KShapeClusterer(3, n_init=10, random_state=0).fit(X)
for label in range(3):
    members = y[clusters.labels_ == label]
    print(f"cluster {label}:", {letter: int(np.sum(members == letter)) for letter in letters})
