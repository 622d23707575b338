import numpy as np
from sktime.classification.distance_based import KNeighborsTimeSeriesClassifier
from sktime.datasets import load_arrow_head
from sktime.datatypes import convert_to
from sktime.distances import distance, dtw_distance, pairwise_distance

rng = np.random.default_rng(0)
X = rng.standard_normal((12, 40)).cumsum(axis=1)

# distances
print("DTW        ", f"{np.sqrt(dtw_distance(X[0], X[1])):.6f}")
