import numpy as np
from tslearn.clustering import KShape
from tslearn.metrics import cdist_dtw, dtw, dtw_path
from tslearn.neighbors import KNeighborsTimeSeriesClassifier
from tslearn.preprocessing import TimeSeriesScalerMeanVariance

rng = np.random.default_rng(0)
X = rng.standard_normal((12, 40)).cumsum(axis=1)
y = np.arange(12) // 6
X_channels = rng.standard_normal((2, 3, 30))  # (n_samples, n_channels, n_timepoints)
t = np.linspace(0, 1, 64)
bumps = [np.exp(-(((t - 0.5) / width) ** 2)) for width in (0.03, 0.1, 0.25)]
shapes = np.array([np.roll(bump, shift) for bump in bumps for shift in range(-8, 9, 2)])

# distances
band = {"global_constraint": "sakoe_chiba", "sakoe_chiba_radius": 4}
print("DTW        ", f"{dtw(X[0], X[1]):.6f}")
print("in a band  ", f"{dtw(X[0], X[1], **band):.6f}")
print("lengths    ", f"{dtw(X[0], X[1][:25], **band):.6f}")
print("channels   ", f"{dtw(X_channels[0].T, X_channels[1].T):.6f}")
print("all pairs  ", cdist_dtw(X).shape, f"{cdist_dtw(X, **band).sum():.4f}")
path, distance = dtw_path(X[0], X[1])
print("path       ", len(path), f"{distance:.6f}")

# nearest neighbours
model = KNeighborsTimeSeriesClassifier(n_neighbors=1, metric="dtw", metric_params=band)
model.fit(X[:, :, np.newaxis], y)
distances, indices = model.kneighbors(X[:, ::-1, np.newaxis])
print("neighbours ", indices.ravel(), f"{distances.sum():.4f}")

# k-Shape
shapes_scaled = TimeSeriesScalerMeanVariance().fit_transform(shapes)
model = KShape(n_clusters=3, n_init=10, random_state=0).fit(shapes_scaled)
print("clusters   ", np.bincount(model.labels_))
