"""
The subsequence that matters
============================

An actor draws a gun, or only points with a finger. :class:`~skts.ShapeletTreeClassifier` looks
among all subsequences of all series for the one that tells the two apart, and shows it.
"""

# %%
# The data
# --------
# The height of the hand, 150 points for each of 50 training series.

import matplotlib.pyplot as plt
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import cross_val_score
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from skts import ShapeletTreeClassifier
from skts.datasets import load_gunpoint
from skts.plotting import ShapeletMatchDisplay, ShapeletTreeDisplay
from skts.tree import export_text

X_train, y_train = load_gunpoint(split="train", return_X_y=True)
X_test, y_test = load_gunpoint(split="test", return_X_y=True)

# %%
# The tree
# --------
# Every subsequence from a quarter to two thirds of the series is tried: 264,000 of them. The
# distance of one to a series is that to the window which looks most like it, both z-normalised.

model = ShapeletTreeClassifier(logic=()).fit(X_train, y_train)
print(export_text(model))
print(f"accuracy: {model.score(X_test, y_test):.3f}")

# %%
# Each shapelet is drawn on the series it comes from. Beside it is the order line: the series at
# their distances from the shapelet, and the cut between those that are near and those that are far.

ShapeletTreeDisplay.from_estimator(model, X_train, y_train)
plt.show()

# %%
# Why this class?
# ---------------
# Where the shapelet matches best in a series that the tree has not seen.

ShapeletMatchDisplay.from_estimator(model, X_test[1])
plt.show()

# %%
# Shapelets as features
# ---------------------
# ``transform`` returns the distance to each shapelet. A second model weighs them, where the tree
# only cuts. Further shapelets join the first one by AND and OR; all are features. Here candidates
# are drawn, a thousand a node, which takes a fraction of the time. Shapelets are chosen by the
# labels of the training series, so it is the pipeline as a whole that has to be validated.

pipeline = make_pipeline(
    ShapeletTreeClassifier(max_candidates=1000, max_literals=3, random_state=0),
    StandardScaler(),
    LogisticRegression(),
)
scores = cross_val_score(pipeline, X_train, y_train, cv=5)
print(f"cross-validated accuracy of the pipeline: {scores.mean():.3f}")
print(f"accuracy on the test series: {pipeline.fit(X_train, y_train).score(X_test, y_test):.3f}")
