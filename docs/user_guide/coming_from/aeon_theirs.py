import numpy as np
from aeon.classification.distance_based import KNeighborsTimeSeriesClassifier
from aeon.distances import dtw_alignment_path, dtw_distance, dtw_pairwise_distance, sbd_distance

rng = np.random.default_rng(0)
X = rng.standard_normal((12, 40)).cumsum(axis=1)
y = np.arange(12) // 6
X_channels = rng.standard_normal((2, 3, 30))  # (n_samples, n_channels, n_timepoints)

# distances: sums of squares, so roots
print("DTW        ", f"{np.sqrt(dtw_distance(X[0], X[1])):.6f}")
print("window 0.1 ", f"{np.sqrt(dtw_distance(X[0], X[1], window=0.1)):.6f}")
print("window 0.11", f"{np.sqrt(dtw_distance(X[0], X[1], window=0.11)):.6f}")
print("channels   ", f"{np.sqrt(dtw_distance(X_channels[0], X_channels[1])):.6f}")
D = np.sqrt(dtw_pairwise_distance(X, window=0.1))
print("all pairs  ", D.shape, f"{D.sum():.4f}")
path, squared = dtw_alignment_path(X[0], X[1])
print("path       ", len(path), f"{np.sqrt(squared):.6f}")

# nearest neighbours
model = KNeighborsTimeSeriesClassifier(distance="dtw", distance_params={"window": 0.1})
model.fit(X, y)
squared, indices = model.kneighbors(X[:, ::-1])
print("neighbours ", indices.ravel(), f"{np.sqrt(squared).sum():.4f}")

# shape-based distance, as in k-Shape
print("SBD        ", f"{sbd_distance(X[0], X[1], standardize=True):.6f}")
print("as it is   ", f"{sbd_distance(X[0], X[1], standardize=False):.6f}")
print("channels   ", f"{sbd_distance(X_channels[0], X_channels[1]):.6f}")
