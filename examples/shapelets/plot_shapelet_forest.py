"""
A forest, and when it looks
===========================

Noise, with a bump near the middle of one class. A forest of random shapelets tells the classes
apart, and its importances say *when* they differ: :class:`~skts.ShapeletForestClassifier` has a
number for each time point.
"""

# %%
# Series that differ for a moment
# -------------------------------
# Sixty series to learn from, a hundred and twenty to be asked about.

import matplotlib.pyplot as plt
import numpy as np

from skts import ShapeletForestClassifier

rng = np.random.default_rng(0)


def draw(n):
    """Noise of two classes; the second has a bump between time points 60 and 84."""
    X, y = rng.normal(size=(n, 120)), np.arange(n) % 2
    X[y == 1, 60:84] += 2 * np.hanning(24)
    return X, y


X_train, y_train = draw(60)
X_test, y_test = draw(120)

# %%
# The forest
# ----------
# Patterns are known to be short: candidates have 30 points at most. Long ones would blur the curve
# below, since each counts for all time points that it covers. Out-of-bag votes, those of trees that
# have not drawn a series, estimate the accuracy without the test series.

model = ShapeletForestClassifier(300, max_length=30, oob_score=True, random_state=0)
model.fit(X_train, y_train)
print(f"out of bag {model.oob_score_:.2f}, on the test series {model.score(X_test, y_test):.2f}")

# %%
# Importance over time
# --------------------
# The importance of each shapelet is spread over the time points that it was taken from. It is
# largest where the bump is.

fig, (above, below) = plt.subplots(2, sharex=True, figsize=(7, 5), layout="constrained")
for label, color in ((0, "#0072B2"), (1, "#D55E00")):
    above.plot(X_train[y_train == label][:4].T, color=color, linewidth=0.7, alpha=0.6)
    above.plot(X_train[y_train == label].mean(axis=0), color=color, label=f"mean of class {label}")
above.set(ylabel="value")
above.legend()
below.fill_between(np.arange(120), model.feature_importances_, color="0.4")
below.axvspan(60, 84, color="#D55E00", alpha=0.15, label="the bump")
below.set(xlabel="time point", ylabel="importance", ylim=(0, None))
below.legend()
plt.show()
