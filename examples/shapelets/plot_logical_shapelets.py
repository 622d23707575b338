"""
Two patterns at once
====================

Some classes are told by no single subsequence: it takes one pattern *and* another. A tree of single
shapelets has to ask twice, each time with fewer series to learn from; a logical shapelet asks once.
"""

# %%
# The data
# --------
# A machine is at fault when it shows a bump *and*, some time later, a jolt. Either alone is
# harmless.

import matplotlib.pyplot as plt
import numpy as np

from skts import ShapeletTreeClassifier
from skts.plotting import ShapeletTreeDisplay
from skts.tree import export_text

rng = np.random.default_rng(0)
bump = np.sin(np.linspace(0, np.pi, 15)) * 3
jolt = np.repeat([0.0, 3.0, -3.0, 3.0, 0.0], 3)


def machine(patterns):
    """A noisy series with the patterns somewhere, one in each half."""
    x = rng.normal(scale=0.1, size=80)
    for place, pattern in zip((0, 40), patterns, strict=True):
        if pattern is not None:
            start = place + rng.integers(40 - len(pattern))
            x[start : start + len(pattern)] += pattern
    return x


kinds = [(bump, jolt), (bump, None), (bump, jolt), (None, jolt)]
X = np.array([machine(kinds[k % 4]) for k in range(280)])
y = np.where(np.arange(280) % 2 == 0, "fault", "fine")
X_train, y_train, X_test, y_test = X[:80], y[:80], X[80:], y[80:]

# %%
# One shapelet
# ------------
# One question cannot tell both harmless kinds from a fault.

lengths = {"min_length": 12, "max_length": 18}
single = ShapeletTreeClassifier(logic=(), max_depth=1, **lengths).fit(X_train, y_train)
print(export_text(single))
print(f"accuracy of one question: {single.score(X_test, y_test):.2f}")

# %%
# A deeper tree asks again, among the series that are left.

deep = ShapeletTreeClassifier(logic=(), **lengths).fit(X_train, y_train)
print(f"accuracy of {deep.get_n_leaves() - 1} questions: {deep.score(X_test, y_test):.2f}")

# %%
# Two, joined
# -----------
# AND takes the larger of the two distances: a series is near only if both patterns are there.

logical = ShapeletTreeClassifier(max_depth=1, **lengths).fit(X_train, y_train)
print(export_text(logical))
print(f"accuracy of one question of two shapelets: {logical.score(X_test, y_test):.2f}")

ShapeletTreeDisplay.from_estimator(logical, X_train, y_train)
plt.show()

# %%
# The gain says what the partner is worth: of the first shapelet alone, and of the two together.

for literal in logical.shapelets_:
    print(f"{literal.logic}: gain {literal.gain:.3f} of {np.log(2):.3f} nats")
