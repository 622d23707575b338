import numpy as np
import stumpy

rng = np.random.default_rng(0)
x = rng.standard_normal(2000).cumsum()
x[1200:1300] = 1.5 * x[300:400] + 4 + 0.05 * rng.standard_normal(100)
other = rng.standard_normal(500).cumsum()
query = x[300:350]

# matrix profile
profile = stumpy.stump(x, m=50)
distances = profile[:, 0].astype(float)
indices = profile[:, 1].astype(int)
print("profile    ", distances.shape, f"{distances.sum():.4f}", indices[:4])
best = distances.argmin()
print("motif      ", best, indices[best], f"{distances[best]:.6f}")
worst = distances.argmax()
print("discord    ", worst, f"{distances[worst]:.6f}")

profile = stumpy.stump(x, m=50, k=3)
print("three each ", profile[0, :3].astype(float).round(4), profile[0, 3:6].astype(int))
profile = stumpy.stump(other, m=50, T_B=x, ignore_trivial=False)
print("two series ", profile.shape[0], profile[0, :2].astype(float).round(4))
profile = stumpy.aamp(x, m=50)
print("as it is   ", f"{profile[:, 0].sum():.4f}")

# matches of a query
matches = stumpy.match(query, x, max_distance=3.0)
print("matches    ", matches[:, 1].astype(int), f"{matches[1, 0]:.6f}")
matches = stumpy.match(query, x, max_matches=3, max_distance=np.inf)
print("best three ", matches[:, 1].astype(int), f"{matches[2, 0]:.6f}")

# several motifs, each with its matches
_, places = stumpy.motifs(x, distances, max_motifs=2, max_matches=2)
print("motifs     ", places.tolist())
