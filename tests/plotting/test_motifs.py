"""MotifDisplay: what is drawn is what was found."""

from __future__ import annotations

import numpy as np
import pytest
from numpy.testing import assert_array_equal

from skts import DiscordDetector, MotifFinder
from skts.plotting import MotifDisplay


@pytest.fixture
def X(rng):
    X = rng.normal(size=(2, 200))
    X[0, 120:140] = X[0, 30:50]
    X[1, 60:80] = X[1, 10:30] = X[0, 30:50] * 2
    X[0, 180] = np.nan
    return X


def test_panels_and_marks(X):
    model = MotifFinder(20, n_motifs=2, n_discords=1).fit(X)
    display = MotifDisplay.from_estimator(model)
    assert len(display.axes_) == 4
    assert display.axes_[0].figure is display.figure_
    for motif, spans in zip(model.motifs_, display.span_patches_, strict=True):
        # one corner, or before matplotlib 3.9 all of them
        starts = sorted(np.atleast_2d(patch.get_xy())[:, 0].min() for patch in spans)
        assert starts == sorted(motif.positions[motif.series == 0].tolist())
    for motif, ax in zip(model.motifs_, display.axes_[1:3], strict=True):
        assert len(ax.lines) == len(motif.positions)
        shape = ax.lines[-1].get_ydata()
        assert abs(shape.mean()) < 1e-12 and abs(shape.std() - 1) < 1e-12
    (line,) = display.profile_lines_
    finite = np.isfinite(model.profile_[0])
    assert_array_equal(line.get_ydata()[finite], model.profile_[0, finite])
    assert np.isnan(line.get_ydata()[~finite]).all()


def test_another_series_other_axes_and_no_profile(X):
    import matplotlib.pyplot as plt

    model = MotifFinder(20, n_motifs=1, algorithm="mk").fit(list(X))
    axes = plt.subplots(2)[1]
    display = MotifDisplay.from_estimator(model, series=1, axes=list(axes))
    assert display.axes_[0] is axes[0] and display.profile_lines_ == []
    assert_array_equal(axes[0].lines[0].get_ydata(), X[1])
    with pytest.raises(ValueError, match="axes holds 2 axes for 3 panels"):
        MotifDisplay.from_estimator(MotifFinder(20, n_motifs=1).fit(X), axes=list(axes))
    with pytest.raises(ValueError, match="series=2 is not among the 2"):
        MotifDisplay.from_estimator(model, series=2)
    with pytest.raises(ValueError, match="series=0.5 is not among the 2"):
        MotifDisplay.from_estimator(model, series=0.5)


def test_several_lengths_share_a_scale(X):
    model = MotifFinder([10, 20], n_motifs=5, n_discords=2).fit([X[0], X[1, :90]])
    display = MotifDisplay.from_estimator(model, series=1)
    assert [len(line.get_ydata()) for line in display.profile_lines_] == [81, 71]
    found = display.profile_lines_[1].get_ydata()
    assert_array_equal(found, model.profile_[1][1, :71] / np.sqrt(20))
    assert len(display.axes_) == 2 + len(model.motifs_)


def test_channels_that_count_are_drawn(X):
    model = MotifFinder(20, n_motifs=1, n_discords=1, dimensions=1).fit(X[np.newaxis])
    display = MotifDisplay.from_estimator(model)
    top, overlay, _ = display.axes_
    assert_array_equal([line.get_ydata() for line in top.lines], X)
    assert len(overlay.lines) == len(model.motifs_[0].positions)


def test_the_most_unusual_window_and_scores_of_a_detector(X):
    model = DiscordDetector(20, n_neighbors=2).fit([X[0], X[1, :150]])
    display = MotifDisplay.from_estimator(model, series=1)
    top, below = display.axes_
    scores = model.window_scores_[1, :131]
    (discord,) = display.discords
    assert discord.position == np.nanargmax(scores) and discord.distance == np.nanmax(scores)
    assert_array_equal(discord.values, X[1, discord.position : discord.position + 20])
    assert_array_equal(top.lines[0].get_ydata(), X[1, :150])
    (mark,) = top.patches
    # one corner, or before matplotlib 3.9 all of them
    assert np.atleast_2d(mark.get_xy())[:, 0].min() == discord.position
    assert_array_equal(display.profile_lines_[0].get_ydata(), scores)
    assert below.get_title() == "score of each window"
    with pytest.raises(ValueError, match="series=2 is not among the 2"):
        MotifDisplay.from_estimator(model, series=2)


def test_channels_and_a_series_without_scores_of_a_detector(X):
    x = X.copy()
    x[:, ::15] = np.nan
    model = DiscordDetector(20).fit([X, x])
    display = MotifDisplay.from_estimator(model)
    assert_array_equal([line.get_ydata() for line in display.axes_[0].lines], X)
    assert display.discords[0].values.shape == (2, 20)
    assert MotifDisplay.from_estimator(model, series=1).discords == []
