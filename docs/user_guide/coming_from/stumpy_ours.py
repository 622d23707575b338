import numpy as np

from skts import SubsequenceSearch
from skts.motifs import matrix_profile, motifs

rng = np.random.default_rng(0)
x = rng.standard_normal(2000).cumsum()
x[1200:1300] = 1.5 * x[300:400] + 4 + 0.05 * rng.standard_normal(100)
other = rng.standard_normal(500).cumsum()
query = x[300:350]

# matrix profile
profile = matrix_profile(x, window=50)
distances = profile.distances
indices = profile.indices
print("profile    ", distances.shape, f"{distances.sum():.4f}", indices[:4])
best = distances.argmin()
print("motif      ", best, indices[best], f"{distances[best]:.6f}")
worst = distances.argmax()
print("discord    ", worst, f"{distances[worst]:.6f}")

profile = matrix_profile(x, window=50, k=3)
print("three each ", profile.distances[0].round(4), profile.indices[0])
profile = matrix_profile(other, x, window=50)
print(
    "two series ", len(profile.distances), np.r_[profile.distances[0].round(4), profile.indices[0]]
)
profile = matrix_profile(x, window=50, normalize=False)
print("as it is   ", f"{profile.distances.sum():.4f}")

# matches of a query
search = SubsequenceSearch(metric="euclidean").fit([x])
matches, places = search.radius_neighbors([query], radius=3.0)
print("matches    ", places[0][:, 1], f"{matches[0][1]:.6f}")
matches, places = search.kneighbors([query], n_neighbors=3)
print("best three ", places[0, :, 1], f"{matches[0, 2]:.6f}")

# several motifs, each with its matches
found = motifs(x, window=50, n_motifs=2, max_matches=2)
print("motifs     ", [motif.positions.tolist() for motif in found])
