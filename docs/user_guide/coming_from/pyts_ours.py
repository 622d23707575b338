import numpy as np

from skts import DTWNearestNeighbor
from skts.datasets import load_gunpoint
from skts.metrics import dtw, dtw_path, lb_keogh

rng = np.random.default_rng(0)
X = rng.standard_normal((12, 40)).cumsum(axis=1)
X_train, y_train = load_gunpoint(split="train", return_X_y=True)
X_test, y_test = load_gunpoint(split="test", return_X_y=True)

# distances
print("DTW        ", f"{dtw(X[0], X[1]):.6f}")
print("window 4   ", f"{dtw(X[0], X[1], window=4):.6f}")
print("absolute   ", f"{dtw(X[0], X[1], cost='absolute'):.6f}")
path, distance = dtw_path(X[0], X[1])
print("path       ", len(path), path[:3].tolist())
print("LB_Keogh   ", f"{lb_keogh(X[0], X[1], window=4):.6f}")

# nearest neighbours
for window in (0, 7):
    model = DTWNearestNeighbor(window=window)
    model.fit(X_train, y_train)
    print("accuracy   ", window, f"{model.score(X_test[:50], y_test[:50]):.3f}")
