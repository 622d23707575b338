"""
Shapelets as features
=====================

A shapelet tree asks about one distance after another. Its ``transform`` returns the distances to
all of its shapelets, and another model may weigh them together:
:class:`~skts.ShapeletTreeClassifier` is the first step of a pipeline like any other transformer.
"""

# %%
# A pipeline
# ----------
# Candidates are drawn, five hundred at each node, which takes a fraction of the time of trying all
# of them; further shapelets join the first one by AND and OR, and all are features.

import matplotlib.pyplot as plt
import numpy as np
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import cross_val_score
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from skts import ShapeletTreeClassifier
from skts.datasets import load_arrow_head

X_train, y_train = load_arrow_head(split="train", return_X_y=True)
X_test, y_test = load_arrow_head(split="test", return_X_y=True)

tree = ShapeletTreeClassifier(max_candidates=500, max_literals=3, random_state=0)
pipeline = make_pipeline(tree, StandardScaler(), LogisticRegression())

# %%
# An honest score
# ---------------
# The shapelets were chosen by the labels of the training series, so the features of those series
# look better than they are. It is the pipeline as a whole that has to be validated: then no fold is
# scored by shapelets that have seen it.

scores = {
    "tree": cross_val_score(tree, X_train, y_train, cv=4).mean(),
    "pipeline": cross_val_score(pipeline, X_train, y_train, cv=4).mean(),
}
for name, model in (("tree", tree), ("pipeline", pipeline)):
    test = model.fit(X_train, y_train).score(X_test, y_test)
    print(f"{name:<9} cross-validated {scores[name]:.3f}, on the test series {test:.3f}")

features = pipeline[:-1].transform(X_train)
seen = LogisticRegression().fit(features, y_train).score(features, y_train)
print(f"          not to be trusted: {seen:.3f} on the series that the shapelets were chosen by")

# %%
# What the model looks at
# -----------------------
# One weight for each class and shapelet: a negative one means that being near speaks for the class.

tree, head = pipeline[0], pipeline[-1]
shapelets = tree.shapelets_
fig, axes = plt.subplots(
    2,
    len(shapelets),
    figsize=(2.4 * len(shapelets), 4),
    sharey="row",
    squeeze=False,
    layout="constrained",
)
names = ["Avonlea", "Clovis", "mixed"]
for k, shapelet in enumerate(shapelets):
    points = X_train[shapelet.series]
    window = np.arange(shapelet.start, shapelet.start + shapelet.length)
    axes[0, k].plot(points, color="0.7")
    axes[0, k].plot(window, points[window], color="#D55E00", linewidth=2.5)
    axes[0, k].set(title=f"shapelet {k}", xlabel="time point")
    axes[1, k].barh(names, head.coef_[:, k], color="#0072B2")
    axes[1, k].axvline(0, color="k", linewidth=0.8)
    axes[1, k].set(xlabel="weight of the distance")
axes[0, 0].set(ylabel="normalised radius")
plt.show()
