"""
Choosing the warping window
===========================

A warping window limits how far apart two matched points may lie. The best one is usually small,
and depends on the data: it is the one with which the training series classify each other best.
:func:`~skts.neighbors.dtw_window_search` tries every window in one pass.
:class:`~sklearn.model_selection.GridSearchCV` gets there one window after another, but searches
other parameters as well.
"""

# %%
# All windows in one pass
# -----------------------
# Each series is left out in turn and classified by its nearest neighbour among the others.

from time import perf_counter

import matplotlib.pyplot as plt
import numpy as np
from sklearn.model_selection import GridSearchCV, LeaveOneOut

from skts import DTWNearestNeighbor
from skts.datasets import make_cylinder_bell_funnel
from skts.neighbors import dtw_window_search

X_train, y_train = make_cylinder_bell_funnel(30, 96, random_state=0)
X_test, y_test = make_cylinder_bell_funnel(300, 96, random_state=1)

dtw_window_search(X_train[:, :20], y_train)  # compiles, once in the life of an installation
start = perf_counter()
search = dtw_window_search(X_train, y_train)
seconds = perf_counter() - start
print(f"one pass      {len(search.windows):3d} windows  best {search.best:.0%}  {seconds:.2f} s")

# %%
# The same by a grid search
# -------------------------
# Only the first windows here, for each of them takes as many fits as there are series.

windows = [float(window) for window in search.fractions[:15]]
start = perf_counter()
grid = GridSearchCV(DTWNearestNeighbor(), {"window": windows}, cv=LeaveOneOut())
grid.fit(X_train, y_train)
seconds = perf_counter() - start
best = grid.best_params_["window"]
print(f"grid search   {len(windows):3d} windows  best {best:.0%}  {seconds:.2f} s")

errors = 1 - grid.cv_results_["mean_test_score"]
print(f"same errors: {np.allclose(errors, search.errors[: len(windows)])}")

# %%
# Error against window
# --------------------

fig, ax = plt.subplots(figsize=(8, 4), layout="constrained")
ax.plot(100 * search.fractions, search.errors, drawstyle="steps-mid", label="one pass")
ax.plot(100 * np.array(windows), errors, "o", markersize=4, label="grid search")
ax.plot(100 * search.best, search.errors.min(), "v", markersize=10, label="best")
ax.set(xlabel="window, % of the length", ylabel="leave-one-out error", ylim=(0, None))
ax.legend(frameon=False)
plt.show()

# %%
# On series not seen before
# -------------------------

for name, window in {"no window": None, "best window": search.best, "no warping": 0}.items():
    model = DTWNearestNeighbor(window=window).fit(X_train, y_train)
    print(f"{name:<12} error {1 - model.score(X_test, y_test):.3f}")
