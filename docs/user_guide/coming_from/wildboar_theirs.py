import numpy as np
from wildboar.distance import (
    matrix_profile,
    pairwise_distance,
    pairwise_subsequence_distance,
    subsequence_match,
)
from wildboar.distance.dtw import dtw_distance

rng = np.random.default_rng(0)
X = rng.standard_normal((12, 40)).cumsum(axis=1)
x = rng.standard_normal(1000).cumsum()
query = rng.standard_normal(50).cumsum()

# distances
print("DTW        ", f"{dtw_distance(X[0], X[1]):.6f}")
print("r of 0.125 ", f"{dtw_distance(X[0], X[1], r=0.125):.6f}")
D = pairwise_distance(X, metric="dtw", metric_params={"r": 0.125})
print("all pairs  ", D.shape, f"{D.sum():.4f}")

# where a subsequence matches best in each series
distances, starts = pairwise_subsequence_distance(
    X[0, 5:20], X, metric="scaled_euclidean", return_index=True
)
print("shapelet   ", starts.ravel().tolist(), f"{distances.sum():.4f}")

# the best match of a query in a long series
starts, distances = subsequence_match(
    query,
    x,
    threshold=np.inf,
    max_matches=1,
    metric="scaled_dtw",
    metric_params={"r": 0.1},
    return_distance=True,
)
print("best match ", starts[0], f"{distances[0]:.6f}")

# matrix profile
profile, neighbors = matrix_profile(x, window=50, exclude=14, return_index=True)
print("profile    ", profile.shape, f"{profile.sum():.4f}", neighbors[:4])
