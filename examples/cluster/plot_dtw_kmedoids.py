"""
Medoids instead of averages
===========================

:class:`~skts.DTWKMedoids` lets series of the set stand for their clusters. An outlier pulls an
average to itself; a medoid stays where most of its cluster is.
"""

# %%
# The data
# --------
# Three kinds of series, each faster in some places and slower in others, and three outliers.

import matplotlib.pyplot as plt
import numpy as np
from sklearn.metrics import adjusted_rand_score

from skts import DTWKMeans, DTWKMedoids
from skts.datasets import make_warped_shapes

X, y = make_warped_shapes(60, 64, random_state=1)
rng = np.random.default_rng(0)
outliers = rng.choice(len(X), 3, replace=False)
X[outliers] += 2 * rng.normal(size=(3, 64))
rest = np.setdiff1d(np.arange(len(X)), outliers)

# %%
# Averages and medoids
# --------------------

kmeans = DTWKMeans(3, window=0.2, n_init=3, random_state=0).fit(X)
kmedoids = DTWKMedoids(3, window=0.2, init="build").fit(X)
for model in (kmeans, kmedoids):
    score = adjusted_rand_score(y[rest], model.labels_[rest])
    print(f"{type(model).__name__}: adjusted Rand index without the outliers {score:.2f}")

# %%
# The medoids
# -----------
# Members in grey, the medoid in colour: it is one of them.

fig, axes = plt.subplots(1, 3, figsize=(10, 3), sharey=True, layout="constrained")
for label, (ax, colour) in enumerate(zip(axes, ("#0072B2", "#D55E00", "#009E73"), strict=True)):
    members = kmedoids.labels_ == label
    ax.plot(X[members].T, color="0.85", linewidth=0.7)
    ax.plot(kmedoids.cluster_centers_[label], color=colour, linewidth=2)
    ax.set(title=f"{members.sum()} series", xlabel="time point", ylim=(-4, 4))
plt.show()

# %%
# Other distances
# ---------------
# Nothing but distances is needed, and so any elastic distance will do.

for metric in ("msm", "twe", "erp"):
    model = DTWKMedoids(3, metric=metric, init="build").fit(X)
    score = adjusted_rand_score(y[rest], model.labels_[rest])
    print(f"{metric}: adjusted Rand index without the outliers {score:.2f}")
