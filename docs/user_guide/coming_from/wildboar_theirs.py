import numpy as np
from wildboar.distance import (
    matrix_profile,
    pairwise_distance,
    pairwise_subsequence_distance,
    subsequence_match,
)
from wildboar.distance.dtw import dtw_alignment, dtw_distance, dtw_mapping

rng = np.random.default_rng(0)
X = rng.standard_normal((12, 40)).cumsum(axis=1)
x = rng.standard_normal(1000).cumsum()
query = x[300:350]

# distances
print("DTW        ", f"{dtw_distance(X[0], X[1]):.6f}")
print("window 0.1 ", f"{dtw_distance(X[0], X[1], r=0.1):.6f}")
D = pairwise_distance(X, metric="dtw", metric_params={"r": 0.1})
print("all pairs  ", D.shape, f"{D.sum():.4f}")
path = np.column_stack(dtw_mapping(X[0], X[1]))
print("path       ", len(path), path[:3].tolist())

# the best match of a subsequence in each series
distances, starts = pairwise_subsequence_distance(
    X[0, 5:20], X, metric="scaled_euclidean", return_index=True
)
print("shapelet   ", starts.ravel()[:6], f"{np.ravel(distances)[1:].sum():.4f}")

# matches of a query in a long series
indices, distances = subsequence_match(
    query, x.reshape(1, -1), threshold=np.inf, max_matches=1, metric="scaled_dtw",
    metric_params={"r": 0.06}, return_distance=True,
)
print("best match ", np.ravel(indices)[0], f"{np.ravel(distances)[0]:.6f}")

# matrix profile
profile, indices = matrix_profile(x, window=50, exclude=0.25, return_index=True)
print("profile    ", profile.shape, f"{profile.sum():.4f}", indices[:4])
