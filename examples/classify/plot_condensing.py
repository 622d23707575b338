"""
A tenth of the training set
===========================

A nearest-neighbour classifier is as slow as its training set is large.
:class:`~skts.DTWCondenser` removes series one after the other, the least useful first, and widens
the warping window as they become few.
"""

# %%
# Condense once, for every size
# -----------------------------
# With ``n_prototypes=1`` series are removed until one is left; ``ranks_`` then holds the order.
# The data: two patterns in noise, each a step up or a step down, which makes four classes.

import matplotlib.pyplot as plt
import numpy as np

from skts import DTWCondenser, DTWNearestNeighbor
from skts.datasets import make_two_patterns

X_train, y_train = make_two_patterns(160, 80, random_state=0)
X_test, y_test = make_two_patterns(300, 80, random_state=1)

condenser = DTWCondenser(n_prototypes=1).fit(X_train, y_train)
enough = np.flatnonzero(condenser.accuracies_ >= 0.95)[-1]
print(f"{len(X_train) - enough} of {len(X_train)} series classify 95 % of all correctly")

# %%
# Accuracy against size
# ---------------------
# The leave-one-out accuracy counts series that took part in the choice; those of the test set did
# not. For comparison, as many series drawn at random, with the window that suits all of them.

sizes = np.arange(len(X_train), 0, -1)
chosen_sizes = [4, 6, 8, 12, 16, 24, 32, 48, 80, 160]
rng = np.random.default_rng(0)


def test_accuracy(members, window):
    """Accuracy on the test set with some of the training series."""
    model = DTWNearestNeighbor(window=float(window)).fit(X_train[members], y_train[members])
    return model.score(X_test, y_test)


kept, drawn = [], []
for size in chosen_sizes:
    members = np.flatnonzero(condenser.ranks_ <= size)
    kept.append(test_accuracy(members, condenser.windows_[-size]))
    draws = [rng.choice(len(X_train), size, replace=False) for _ in range(5)]
    drawn.append(np.mean([test_accuracy(draw, condenser.windows_[0]) for draw in draws]))

fig, (top, bottom) = plt.subplots(
    2, 1, figsize=(8, 6), sharex=True, height_ratios=[3, 1], layout="constrained"
)
top.plot(sizes, condenser.accuracies_, color="0.6", label="kept, leave-one-out")
top.plot(chosen_sizes, kept, "o-", label="kept, test set")
top.plot(chosen_sizes, drawn, "s--", label="drawn at random, test set")
top.set(ylabel="accuracy", xscale="log")
top.legend(frameon=False)
bottom.plot(sizes, 100 * condenser.windows_, drawstyle="steps-mid")
bottom.set(xlabel="training series", ylabel="window, %", xlim=(len(X_train), 2))
plt.show()

# %%
# The last of each class
# ----------------------

fig, axes = plt.subplots(2, 2, figsize=(8, 4), sharex=True, sharey=True, layout="constrained")
for ax, label in zip(axes.flat, np.unique(y_train), strict=True):
    members = np.flatnonzero(y_train == label)
    ax.plot(X_train[members[condenser.ranks_[members].argmin()]])
    ax.set_title(label, fontsize="medium")
for ax in axes[1]:
    ax.set(xlabel="time point")
for ax in axes[:, 0]:
    ax.set(ylabel="value")
plt.show()
