"""
A heartbeat in an electrocardiogram
===================================

:class:`~skts.SubsequenceSearch` finds where a query occurs in a long series. Every window of the
series is z-normalised by its own mean and deviation. Normalising the whole series once, which is
cheaper, finds something else: this example shows what.
"""

# %%
# The data
# --------
# 80 seconds of an ECG at 360 Hz. The baseline of such recordings wanders as the patient breathes
# and moves, and the amplitude changes with the contact of the electrode. Here both do so by
# design, to see what they do to the search: in the second half the signal is half as large, and
# its level drifts by some millivolt.

import matplotlib.pyplot as plt
import numpy as np

from skts import SubsequenceSearch
from skts.datasets import load_ecg
from skts.plotting import SearchDisplay

ecg = load_ecg()
clean = ecg.data[0, :28_800].astype(float)
time = np.arange(clean.size) / ecg.sampling_frequency
late = time > time[-1] / 2
x = np.where(late, 0.5 * clean, clean) + np.where(late, 2 * np.sin(time / 6), 0)

# %%
# The query
# ---------
# One heartbeat. In the recording as it was, the search lists the beats that resemble it best; these
# should be found again. Windows may be warped by up to 5 % of their length, and two matches are
# more than half a query apart.

query = clean[1_840:1_960]
n_beats = 60
search = SubsequenceSearch(window=0.05, exclusion=60)
_, expected = search.fit(clean.reshape(1, -1)).kneighbors([query], n_beats)

# %%
# Each window by its own mean and deviation
# -----------------------------------------
# Level and scale of a window do not matter, so most of these beats are found, in both halves.

display = SearchDisplay.from_estimator(search.fit(x.reshape(1, -1)), [query], n_neighbors=n_beats)
display.axes_[0].set(ylabel="millivolt", xlabel="time point, 360 a second")
plt.show()

# %%
# The series normalised once
# --------------------------
# With ``normalize=False`` windows are compared as they are. The series and the query are normalised
# beforehand, once each, as one might do with a recording.


def normalized(points):
    """z-normalise all points together."""
    return (points - points.mean()) / points.std()


once = SubsequenceSearch(window=0.05, exclusion=60, normalize=False).fit(
    normalized(x).reshape(1, -1)
)
SearchDisplay.from_estimator(once, [normalized(query)], n_neighbors=n_beats)
plt.show()

# %%
# How many beats were found again?
# --------------------------------
# A match counts when it starts within a tenth of a second of one that was expected.


def found_again(search, query, half):
    """Share of the expected beats in one half of the recording that a search finds."""
    positions = search.kneighbors([query], n_beats, return_distance=False)[0, :, 1]
    wanted = expected[0, late[expected[0, :, 1]] == half, 1]
    near = np.abs(wanted[:, None] - positions) <= ecg.sampling_frequency / 10
    return f"{near.any(axis=1).sum()} of {wanted.size}"


for half, name in ((False, "first half"), (True, "second half")):
    print(f"{name}, each window by itself: {found_again(search, query, half)}")
    print(f"{name}, normalised once:       {found_again(once, normalized(query), half)}")
