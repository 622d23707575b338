"""
Groups of series within a distance
==================================

`~skts.DTWNeighbors` keeps series without labels and finds all within a distance of each. The sparse
graph of these pairs is what density-based clustering needs: no matrix of all distances is made.
"""

# %%
# The data
# --------
# Cylinders, bells and funnels, which begin anywhere and last differently. Labels are kept aside.

import matplotlib.pyplot as plt
import numpy as np
from sklearn.cluster import DBSCAN

from skts import DTWNeighbors
from skts.datasets import make_cylinder_bell_funnel

X, y = make_cylinder_bell_funnel(90, 96, random_state=0)

# %%
# How far apart neighbours are
# ----------------------------
# The distance to the fourth neighbour tells which radius makes sense: most series have near ones,
# few have none.

neighbors = DTWNeighbors(n_neighbors=4, window=0.2).fit(X)
distances, indices = neighbors.kneighbors()
fourth = np.sort(distances[:, -1])
radius = float(np.quantile(fourth, 0.8))

fig, ax = plt.subplots(layout="constrained")
ax.plot(fourth)
ax.axhline(radius, color="0.6", linestyle="--")
ax.set(xlabel="series, by that distance", ylabel="distance to the fourth neighbour")
plt.show()

# %%
# All within the radius
# ---------------------
# The graph holds the pairs that are near enough, and their distances.

graph = neighbors.radius_neighbors_graph(radius=radius, mode="distance")
labels = DBSCAN(eps=radius, min_samples=4, metric="precomputed").fit_predict(graph)
print(f"{graph.nnz} of {len(X) * (len(X) - 1)} pairs")
for label in range(labels.max() + 1):
    print(f"group {label}:", np.bincount(y[labels == label], minlength=3), "of each kind")

fig, axes = plt.subplots(1, labels.max() + 1, sharey=True, layout="constrained", squeeze=False)
for label, ax in enumerate(axes[0]):
    ax.plot(X[labels == label].T, linewidth=0.5)
    ax.set(title=f"group {label}", xlabel="time")
axes[0, 0].set(ylabel="value")
plt.show()
