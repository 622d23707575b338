import numpy as np

from skts import SubsequenceSearch
from skts.metrics import dtw, pairwise_dtw, subsequence_distance
from skts.motifs import matrix_profile

rng = np.random.default_rng(0)
X = rng.standard_normal((12, 40)).cumsum(axis=1)
x = rng.standard_normal(1000).cumsum()
query = rng.standard_normal(50).cumsum()

# distances
print("DTW        ", f"{dtw(X[0], X[1]):.6f}")
print("r of 0.125 ", f"{dtw(X[0], X[1], window=4):.6f}")
D = pairwise_dtw(X, window=4)
print("all pairs  ", D.shape, f"{D.sum():.4f}")

# where a subsequence matches best in each series
found = [subsequence_distance(X[0, 5:20], series) for series in X]
distances = np.sqrt(15) * np.array([one.distance for one in found])  # not divided by the length
print("shapelet   ", [one.start for one in found], f"{distances.sum():.4f}")

# the best match of a query in a long series
search = SubsequenceSearch(window=4).fit(x.reshape(1, -1))
distances, positions = search.kneighbors([query], n_neighbors=1)
print("best match ", positions[0, 0, 1], f"{distances[0, 0]:.6f}")

# matrix profile
profile = matrix_profile(x, window=50)
print("profile    ", profile.distances.shape, f"{profile.distances.sum():.4f}", profile.indices[:4])
