"""
How many clusters?
==================

No clustering knows how many clusters there are. Three questions help, and
:class:`~skts.KShapeClusterer` answers each with a few lines of scikit-learn: how much does another
cluster explain, how well are the clusters apart, and does another start find the same ones?
"""

# %%
# The data
# --------
# Four shapes, moved by up to a sixth of the length, in noise. Pretend not to know that there are
# four.

import matplotlib.pyplot as plt
import numpy as np
from sklearn.metrics import adjusted_rand_score, silhouette_score

from skts import KShapeClusterer
from skts.cluster import choose_n_clusters
from skts.datasets import make_shifted_shapes
from skts.metrics import pairwise_sbd
from skts.plotting import ClusterChoiceDisplay

X, y = make_shifted_shapes(120, 96, n_shapes=4, max_shift=16, noise=0.4, random_state=2)[:2]
counts = np.arange(2, 9)
models = [KShapeClusterer(k, n_init=3, random_state=0).fit(X) for k in counts]

# %%
# What another cluster explains
# -----------------------------
# ``inertia_`` is the sum of the distances to the centres. It falls with every cluster; behind the
# right number it falls slowly.

inertia = [model.inertia_ for model in models]

# %%
# How well clusters are apart
# ---------------------------
# The silhouette compares the distances of a series to its own cluster and to the next one. It takes
# a matrix of distances, which has to be computed only once, and it has to be the distance of the
# clustering: Euclidean distances would see nothing here.

D = np.maximum(pairwise_sbd(X), 0)
np.fill_diagonal(D, 0)
silhouette = [silhouette_score(D, model.labels_, metric="precomputed") for model in models]

# %%
# Do other starts find the same?
# ------------------------------
# With the right number, runs from different starts agree. With a wrong one they cut through
# something in different places.


def agreement(k):
    """Mean adjusted Rand index of pairs of runs."""
    runs = [KShapeClusterer(k, n_init=3, random_state=seed).fit(X).labels_ for seed in range(1, 5)]
    pairs = [(a, b) for i, a in enumerate(runs) for b in runs[:i]]
    return np.mean([adjusted_rand_score(a, b) for a, b in pairs])


stability = [agreement(k) for k in counts]

fig, axes = plt.subplots(1, 3, figsize=(10, 3), layout="constrained")
for ax, values, name in zip(
    axes,
    (inertia, silhouette, stability),
    ("inertia", "mean silhouette", "agreement: adjusted Rand index"),
    strict=True,
):
    ax.plot(counts, values, "o-", color="#0072B2")
    ax.axvline(4, color="0.7", linestyle=":", zorder=0)
    ax.set(ylabel=name, xlabel="clusters", xticks=counts)
plt.show()

# %%
# The silhouette and the agreement peak at four. Against the shapes that the series were made from:

best = models[int(np.argmax(silhouette))]
print(f"{best.n_clusters} clusters, adjusted Rand index {adjusted_rand_score(y, best.labels_):.2f}")

# %%
# The first two questions in one call
# -----------------------------------
# :func:`~skts.cluster.choose_n_clusters` fits every number, takes silhouettes under the distance of
# the clusterer, and keeps the best fit.

choice = choose_n_clusters(KShapeClusterer(n_init=3, random_state=0), X, counts)
print(choice.best, np.allclose(choice.silhouette, silhouette))
ClusterChoiceDisplay.from_choice(choice)
plt.show()
