import numpy as np

from skts import DTWNearestNeighbor, KShapeClusterer
from skts.metrics import dtw, dtw_path, pairwise_dtw

rng = np.random.default_rng(0)
X = rng.standard_normal((12, 40)).cumsum(axis=1)
y = np.arange(12) // 6
X_channels = rng.standard_normal((2, 3, 30))  # (n_samples, n_channels, n_timepoints)
t = np.linspace(0, 1, 64)
bumps = [np.exp(-(((t - 0.5) / width) ** 2)) for width in (0.03, 0.1, 0.25)]
shapes = np.array([np.roll(bump, shift) for bump in bumps for shift in range(-8, 9, 2)])

# distances
print("DTW        ", f"{dtw(X[0], X[1]):.6f}")
print("in a band  ", f"{dtw(X[0], X[1], window=4):.6f}")
print("lengths    ", f"{dtw(X[0], X[1][:25], window=4 + 15):.6f}")
print("channels   ", f"{dtw(X_channels[0], X_channels[1]):.6f}")
print("all pairs  ", pairwise_dtw(X).shape, f"{pairwise_dtw(X, window=4).sum():.4f}")
path, distance = dtw_path(X[0], X[1])
print("path       ", len(path), f"{distance:.6f}")

# nearest neighbours
model = DTWNearestNeighbor(n_neighbors=1, window=4)
model.fit(X, y)
distances, indices = model.kneighbors(X[:, ::-1])
print("neighbours ", indices.ravel(), f"{distances.sum():.4f}")

# k-Shape

model = KShapeClusterer(n_clusters=3, n_init=10, random_state=0).fit(shapes)
print("clusters   ", np.bincount(model.labels_))
