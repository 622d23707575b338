"""
Classifying series with scikit-learn's tools
============================================

:class:`~skts.DTWNearestNeighbor` is a scikit-learn classifier: it goes into a pipeline, and its
parameters and those of the steps before it are chosen by cross-validation.
"""

# %%
# A pipeline and a search
# -----------------------
# Before the series are compared, a running mean may take out noise; whether it should, and how many
# neighbours vote, is left to the search.

import matplotlib.pyplot as plt
import numpy as np
from sklearn.metrics import ConfusionMatrixDisplay
from sklearn.model_selection import GridSearchCV
from sklearn.pipeline import Pipeline
from sklearn.preprocessing import FunctionTransformer

from skts import DTWNearestNeighbor
from skts.datasets import load_gunpoint

X_train, y_train = load_gunpoint(split="train", return_X_y=True)
X_test, y_test = load_gunpoint(split="test", return_X_y=True)


def smooth(X, width=1):
    """Running mean over ``width`` points."""
    windows = np.lib.stride_tricks.sliding_window_view(X, width, axis=1)
    return windows.mean(axis=2)


pipeline = Pipeline([("smooth", FunctionTransformer(smooth)), ("nearest", DTWNearestNeighbor())])
grid = {
    "smooth__kw_args": [{"width": width} for width in (1, 5, 9)],
    "nearest__n_neighbors": [1, 3],
}
search = GridSearchCV(pipeline, grid, cv=5).fit(X_train, y_train)
print(f"best parameters     {search.best_params_}")
print(f"cross-validated     {search.best_score_:.3f}")
print(f"on the test series  {search.score(X_test, y_test):.3f}")

# %%
# Where it errs
# -------------

ConfusionMatrixDisplay.from_estimator(search, X_test, y_test, cmap="Blues", colorbar=False)
plt.show()

# sphinx_gallery_thumbnail_number = 2

# %%
# Distances as features
# ---------------------
# ``transform`` gives the distance of a series to the nearest training series of each class. A point
# far from the diagonal is a safe decision.

nearest = DTWNearestNeighbor().fit(X_train, y_train)
distances = nearest.transform(X_test)

fig, ax = plt.subplots(figsize=(5, 5), layout="constrained")
for label in nearest.classes_:
    ax.scatter(*distances[y_test == label, :2].T, s=18, label=f"class {label}", alpha=0.8)
limit = 1.05 * distances.max()
ax.plot([0, limit], [0, limit], color="0.6", linewidth=1, zorder=0)
ax.set(
    xlim=(0, limit),
    ylim=(0, limit),
    xlabel=f"distance to class {nearest.classes_[0]}",
    ylabel=f"distance to class {nearest.classes_[1]}",
)
ax.legend(frameon=False)
plt.show()
