"""
The week that was different
===========================

A recording with a rhythm, such as the power demand of an office, repeats itself every week.
:class:`~skts.MotifFinder` shows the ordinary week as a motif, and weeks with a holiday as discords.
"""

# %%
# The data
# --------
# A year of demand, every half hour, made for this example: five working days and a weekend, more in
# winter, some noise. On four days nobody came; had two of them been the same day of the week, these
# two weeks would be each other's neighbours, and no discords.

import matplotlib.pyplot as plt
import numpy as np

from skts import MotifFinder
from skts.plotting import MotifDisplay

rng = np.random.default_rng(0)
per_day, n_days = 48, 364
hours = np.arange(per_day) / 2
working_day = 1 / (1 + np.exp(-2 * (hours - 7.5))) - 1 / (1 + np.exp(-1.2 * (hours - 18)))
day_off = 0.08 * working_day
holidays = [98, 148, 254, 333]  # a Monday, a Tuesday, a Wednesday, a Friday

days = []
for day in range(n_days):
    off = day % 7 >= 5 or day in holidays
    level = 1 + 0.15 * np.cos(2 * np.pi * day / 364)
    days.append(0.3 * level + level * rng.normal(1, 0.03) * (day_off if off else working_day))
x = np.concatenate(days) + rng.normal(scale=0.02, size=n_days * per_day)
week = 7 * per_day
print(f"{x.size} points; a week is {week}")

# %%
# Weeks
# -----
# A window of a week. The first motif is the pair of weeks that are most alike, with the weeks that
# resemble them; a discord is a week whose nearest neighbour is far away. With ``exclusion``
# windows that begin within a fortnight of each other are no pair, and no two discords: each holiday
# is found once.

model = MotifFinder(week, n_motifs=1, max_matches=8, n_discords=4, exclusion=2 * week)
model.fit(x.reshape(1, -1))
display = MotifDisplay.from_estimator(model)
display.axes_[0].set(ylabel="demand", xlabel="half hour")
plt.show()

# %%
# Each discord is a week with a holiday in it.

fig, axes = plt.subplots(1, 4, figsize=(11, 2.4), sharey=True, layout="constrained")
for ax, discord in zip(axes, sorted(model.discords_, key=lambda d: d.position), strict=True):
    first, last = discord.position // per_day, (discord.position + week - 1) // per_day
    inside = [day for day in holidays if first <= day <= last]
    print(f"days {first} to {last}: holiday on day {', '.join(map(str, inside)) or 'none'}")
    times = np.arange(discord.position, discord.position + week) / per_day
    ax.plot(times, x[discord.position : discord.position + week], color="#0072B2")
    for day in inside:
        ax.axvspan(day, day + 1, color="#D55E00", alpha=0.25)
    ax.set(title=f"distance {discord.distance:.1f}", xlabel="day")
axes[0].set(ylabel="demand")
plt.show()
