import numpy as np
from sktime.classification.distance_based import KNeighborsTimeSeriesClassifier
from sktime.datatypes import convert_to
from sktime.dists_kernels import DtwDist

rng = np.random.default_rng(0)
X = rng.standard_normal((12, 2, 40)).cumsum(axis=2)  # (n_instances, n_variables, n_timepoints)
y = np.arange(12) // 6
frame = convert_to(X, "pd-multiindex")  # a row for each time point, instance and time its index

# distances: sums of squares, so roots
D = np.sqrt(DtwDist().transform(frame))
print("all pairs  ", D.shape, f"{D.sum():.4f}")
D = np.sqrt(DtwDist(window=0.1).transform(frame))
print("window 0.1 ", D.shape, f"{D.sum():.4f}")

# nearest neighbours
model = KNeighborsTimeSeriesClassifier(distance="dtw").fit(X, y)
squared, indices = model.kneighbors(X[:, :, ::-1])
print("neighbours ", indices.ravel(), f"{np.sqrt(squared).sum():.4f}")
