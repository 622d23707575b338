"""
One pair under every price
==========================

Elastic distances differ in what a step of the path costs: here the paths of two series, one of
which has a wild value, under six of them.
"""

# %%
# Two series
# ----------
# The same bump at two places; in the second series one point is wrong.

import matplotlib.pyplot as plt
import numpy as np

from skts.plotting import AlignmentDisplay

t = np.arange(60)
x = np.exp(-(((t - 22) / 6) ** 2))
y = np.exp(-(((t - 34) / 6) ** 2))
y[50] = 2.5

# %%
# Six paths
# ---------
# Dynamic time warping ("dtw") lets points wait for nothing, and matches the wild value with
# whatever is nearest. A price for waiting ("adtw", "twe", "msm") makes paths straight where warping
# gains little. For edit distances ("edr", "lcss") the wild value is one point that does not match,
# however wild: "lcss" leaves it out, a gap in the path. The colours are the costs of matching two
# points under each distance; under the last two points match, or they do not.

distances = {
    "dtw": {},
    "adtw": {"penalty": 0.05},
    "msm": {"penalty": 0.05},
    "twe": {"nu": 0.001, "lmbda": 0.02},
    "edr": {"epsilon": 0.2},
    "lcss": {"epsilon": 0.2},
}
fig, axes = plt.subplots(2, 3, figsize=(9, 6), sharex=True, sharey=True, layout="constrained")
for ax, (metric, given) in zip(axes.flat, distances.items(), strict=True):
    display = AlignmentDisplay.from_series(
        x, y, metric=metric, metric_params=given, series=False, axes=[ax]
    )
    ax.set_title(f"{metric}, distance {display.distance:.2f}", fontsize="medium")
    ax.label_outer()
    print(f"{metric:<5} {len(display.path)} pairs of points")
plt.show()
