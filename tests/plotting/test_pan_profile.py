"""PanProfileDisplay: what is drawn is what was found."""

from __future__ import annotations

import numpy as np
import pytest
from numpy.testing import assert_array_equal

from skts.motifs import pan_matrix_profile
from skts.plotting import PanProfileDisplay


def test_colours_are_distances(rng):
    x = rng.normal(size=120)
    x[70:100] = x[10:40]
    pan = pan_matrix_profile(x, windows=[10, 20, 40])
    display = PanProfileDisplay.from_profile(pan)
    found = display.image_.get_array().reshape(3, 111)
    finite = np.isfinite(pan.distances)
    assert_array_equal(found.mask, ~finite)
    assert_array_equal(found.data[finite], pan.distances[finite])
    motif, discord = display.pair_lines_
    assert_array_equal(motif.get_xdata(), pan.motif.positions)
    assert motif.get_ydata().tolist() == [pan.motif.window] * 2
    assert discord.get_xdata().tolist() == [pan.discord.positions[0]]
    assert display.axes_[0].figure is display.figure_


def test_only_lengths_that_are_done_are_drawn(rng):
    pan = pan_matrix_profile(rng.normal(size=60), windows=[5, 9, 30], time_limit=1e-12)
    display = PanProfileDisplay.from_profile(pan)
    assert display.image_.get_array().size == 56
    assert display.axes_[0].get_ylim() == (4.5, 5.5)


def test_many_starts_are_drawn_by_the_least_of_several():
    x = np.random.default_rng(0).normal(size=4500)
    pan = pan_matrix_profile(x, windows=[8])
    display = PanProfileDisplay.from_profile(pan)
    found = display.image_.get_array().ravel()
    assert found.size == 1498  # 4493 starts, three at a time
    assert found[0] == pan.distances[0, :3].min() and found[-1] == pan.distances[0, 4491:4493].min()


def test_nothing_to_mark_and_own_axes():
    import matplotlib.pyplot as plt

    pan = pan_matrix_profile([1.0, 2.0, np.nan], windows=[2, 3])
    figure, ax = plt.subplots()
    display = PanProfileDisplay.from_profile(pan, axes=[ax])
    assert display.pair_lines_ == [] and display.figure_ is figure
    with pytest.raises(ValueError, match="axes holds 2 axes for 1 panels"):
        display.plot(axes=[ax, ax])
    # one alone, as `plt.subplots` returns it
    assert display.plot(axes=ax).axes_.tolist() == [ax]
    with pytest.raises(TypeError, match="axes holds a str: give axes of matplotlib"):
        display.plot(axes="ax")
