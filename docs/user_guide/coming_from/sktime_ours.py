import numpy as np
import pandas as pd

from skts import DTWNearestNeighbor
from skts.metrics import pairwise_dtw

rng = np.random.default_rng(0)
X = rng.standard_normal((12, 2, 40)).cumsum(axis=2)  # (n_samples, n_channels, n_timepoints)
y = np.arange(12) // 6
index = pd.MultiIndex.from_product([range(12), range(40)], names=["instances", "timepoints"])
frame = pd.DataFrame(X.transpose(0, 2, 1).reshape(-1, 2), index=index)  # taken as it is

# distances
D = pairwise_dtw(frame)
print("all pairs  ", D.shape, f"{D.sum():.4f}")
D = pairwise_dtw(frame, window=4)
print("window 0.1 ", D.shape, f"{D.sum():.4f}")

# nearest neighbours
model = DTWNearestNeighbor().fit(X, y)
distances, indices = model.kneighbors(X[:, :, ::-1])
print("neighbours ", indices.ravel(), f"{distances.sum():.4f}")
