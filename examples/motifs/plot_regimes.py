"""
Regimes, chains and a consensus
===============================

Three questions that the nearest neighbours of all windows answer: where does a recording change,
which pattern drifts, and what do several recordings have in common?
"""

# %%
# Regimes
# -------
# A wave changes its shape twice, but neither its period nor its size. An arc leads from every
# window to its nearest neighbour; where few arcs cross, a regime ends
# (:func:`~skts.motifs.segment`).

import matplotlib.pyplot as plt
import numpy as np

from skts.motifs import consensus_motif, motif_chains, segment

rng = np.random.default_rng(0)
time = np.arange(600)
x = np.concatenate([np.sin(time / 4), np.sin(time[:500] / 4) ** 3, np.sign(np.sin(time[:400] / 4))])
x += 0.1 * rng.standard_normal(x.size)
found = segment(x, window=25, n_regimes=3)
print("regimes end at", found.boundaries)

figure, (above, below) = plt.subplots(2, sharex=True, figsize=(9, 4), layout="constrained")
above.plot(x, color="0.2", linewidth=0.7)
below.plot(found.curve, color="C1")
below.set(xlabel="time point", ylabel="arcs, of chance")
for axes in (above, below):
    for place in found.boundaries:
        axes.axvline(place, color="C0", linestyle="--")
plt.show()

# %%
# A chain
# -------
# Hidden in noise, a wave becomes faster from one occurrence to the next. Each is nearest to the one
# before and to the one after it (:func:`~skts.motifs.motif_chains`).

y = rng.standard_normal(900)
for step, start in enumerate(range(50, 850, 100)):
    wave = np.sin(np.linspace(0, 8 + step, 50))
    y[start : start + 50] = 3 * wave + 0.1 * rng.standard_normal(50)
chain = motif_chains(y, window=50)[0]

figure, axes = plt.subplots(figsize=(9, 2.5), layout="constrained")
axes.plot(y, color="0.7", linewidth=0.7)
for place in chain.positions:
    span = slice(place, place + chain.window)
    axes.plot(np.arange(y.size)[span], y[span], color="C0")
axes.set(xlabel="time point")
plt.show()

# %%
# A consensus
# -----------
# Four recordings hold one pattern, each at a place and a level of its own. The consensus motif is
# the window whose worst match is best (:func:`~skts.motifs.consensus_motif`).

pattern = rng.standard_normal(60).cumsum()
recordings = [rng.standard_normal(300 + 50 * k).cumsum() for k in range(4)]
for k, points in enumerate(recordings):
    points[70 * k : 70 * k + 60] = (k + 1) * pattern + 0.2 * rng.standard_normal(60)
consensus = consensus_motif(recordings, window=60)
print(f"radius {consensus.radius:.2f}, at {consensus.positions}")

figure, (left, right) = plt.subplots(1, 2, figsize=(9, 3), layout="constrained")
for points, place, values in zip(recordings, consensus.positions, consensus.values, strict=True):
    left.plot(points, linewidth=0.7)
    left.axvspan(place, place + 60, color="0.9")
    right.plot((values - values.mean()) / values.std())
left.set(xlabel="time point", title="recordings")
right.set(xlabel="point of the window", title="best matches, z-normalised")
plt.show()
