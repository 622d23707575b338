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

# sphinx_gallery_thumbnail_number = 2

# %%
# Why this class?
# ---------------
# Where the shapelet matches best in a series that the tree has not seen.

ShapeletMatchDisplay.from_estimator(model, X_test[1])
plt.show()

# %%
# ``transform`` returns the distance to each shapelet: features for other models, as
# :ref:`the next example <sphx_glr_auto_examples_shapelets_plot_shapelet_features.py>` has it.
