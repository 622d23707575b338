"""
Clusters of shifted shapes
==========================

Series of the same shape that begin at different times: k-means averages them into something that
none of them looks like, :class:`~skts.KShapeClusterer` moves them into place first.
"""

# %%
# The data
# --------
# Three shapes, each moved by up to a fifth of the length, under noise.

import matplotlib.pyplot as plt
from sklearn.cluster import KMeans
from sklearn.metrics import adjusted_rand_score

from skts import KShapeClusterer
from skts.datasets import make_shifted_shapes
from skts.plotting import ClusterDisplay

X, y = make_shifted_shapes(150, 128, max_shift=0.2, noise=0.3, random_state=3)[:2]

# %%
# k-Shape and k-means
# -------------------

kshape = KShapeClusterer(3, random_state=0).fit(X)
kmeans = KMeans(3, n_init=10, random_state=0).fit(X)
print(f"adjusted Rand index, k-Shape: {adjusted_rand_score(y, kshape.labels_):.2f}")
print(f"adjusted Rand index, k-means: {adjusted_rand_score(y, kmeans.labels_):.2f}")

# %%
# What was found
# --------------
# Members stand where their shift puts them, behind the centre of their cluster; the last panel is
# the objective by iteration.

ClusterDisplay.from_estimator(kshape, X)
plt.show()

# %%
# How many clusters to ask for is the question of
# :ref:`another example <sphx_glr_auto_examples_cluster_plot_choosing_k.py>`.
