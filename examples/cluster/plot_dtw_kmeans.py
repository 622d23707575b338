"""
k-means under warping
=====================

Series of the same kind that run at different speeds: the mean at each time point is like none of
them. :class:`~skts.DTWKMeans` aligns them first.
"""

# %%
# The data
# --------
# Three kinds of series, each faster in some places and slower in others.

import matplotlib.pyplot as plt
from sklearn.cluster import KMeans
from sklearn.metrics import adjusted_rand_score

from skts import DTWKMeans
from skts.averages import dtw_barycenter
from skts.datasets import make_warped_shapes

X, y = make_warped_shapes(120, 80, random_state=1)

# %%
# Two kinds of k-means
# --------------------

warped = DTWKMeans(3, window=0.2, n_init=3, random_state=0).fit(X)
plain = KMeans(3, n_init=10, random_state=0).fit(X)
print(f"adjusted Rand index, DTW:       {adjusted_rand_score(y, warped.labels_):.2f}")
print(f"adjusted Rand index, Euclidean: {adjusted_rand_score(y, plain.labels_):.2f}")

# %%
# Their centres
# -------------
# Members in grey; the average under warping in colour, the mean of the same members dashed.

fig, axes = plt.subplots(1, 3, figsize=(10, 3), sharey=True, layout="constrained")
for ax, label, colour in zip(axes, range(3), ("#0072B2", "#D55E00", "#009E73"), strict=True):
    members = X[warped.labels_ == label]
    ax.plot(members.T, color="0.85", linewidth=0.7)
    ax.plot(members.mean(axis=0), color="0.3", linestyle="--", label="mean")
    ax.plot(warped.cluster_centers_[label], color=colour, linewidth=2, label="average under DTW")
    ax.set(title=f"{len(members)} series", xlabel="time point")
axes[0].legend(frameon=False)
plt.show()

# %%
# One set by itself
# -----------------
# A centre is what :func:`~skts.averages.dtw_barycenter` finds for its members. Its inertia, the sum
# of their squared distances, falls until nothing is gained any more.

members = X[warped.labels_ == 0]
found = dtw_barycenter(members, window=0.2)
flat = ((members - members.mean(axis=0)) ** 2).sum()
print(f"mean, squared differences:           {flat:.0f}")
print(f"average, squared distances under DTW: {found.inertia:.0f}, {found.n_iter} iterations")
