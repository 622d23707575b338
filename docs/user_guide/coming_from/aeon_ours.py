import numpy as np

from skts import DTWNearestNeighbor
from skts.metrics import dtw, dtw_path, pairwise_dtw, sbd

rng = np.random.default_rng(0)
X = rng.standard_normal((12, 40)).cumsum(axis=1)
y = np.arange(12) // 6
X_channels = rng.standard_normal((2, 3, 30))  # (n_samples, n_channels, n_timepoints)

# distances
print("DTW        ", f"{dtw(X[0], X[1]):.6f}")
print("window 0.1 ", f"{dtw(X[0], X[1], window=0.1):.6f}")
print("window 0.11", f"{dtw(X[0], X[1], window=int(0.11 * 40)):.6f}")
print("channels   ", f"{dtw(X_channels[0], X_channels[1]):.6f}")
D = pairwise_dtw(X, window=0.1)
print("all pairs  ", D.shape, f"{D.sum():.4f}")
path, distance = dtw_path(X[0], X[1])
print("path       ", len(path), f"{distance:.6f}")

# nearest neighbours
model = DTWNearestNeighbor(window=0.1)
model.fit(X, y)
distances, indices = model.kneighbors(X[:, ::-1])
print("neighbours ", indices.ravel(), f"{distances.sum():.4f}")

# shape-based distance, as in k-Shape
print("SBD        ", f"{sbd(X[0], X[1]).distance:.6f}")
print("as it is   ", f"{sbd(X[0], X[1], normalize=False).distance:.6f}")
each = [sbd(a, b).distance for a, b in zip(*X_channels, strict=True)]  # no common shift
print("channels   ", f"{np.mean(each):.6f}")
