"""The palette can be told apart by colour-blind readers."""

from __future__ import annotations

from itertools import combinations

import numpy as np
import pytest

from skts.plotting._style import color_of
from tests.examples_of_displays import displays, examples

# Machado, Oliveira and Fernandes (2009), severity 1, in linear RGB
SIGHT = {
    "full": np.eye(3),
    "protanopia": [[0.1523, 1.0526, -0.2049], [0.1145, 0.7863, 0.0992], [-0.0039, -0.0481, 1.0519]],
    "deuteranopia": [
        [0.3673, 0.8606, -0.2280],
        [0.2801, 0.6727, 0.0472],
        [-0.0118, 0.0429, 0.9689],
    ],
    "tritanopia": [[1.2555, -0.0767, -0.1788], [-0.0784, 0.9308, 0.1476], [0.0047, 0.6914, 0.3039]],
}
TO_XYZ = [[0.4124, 0.3576, 0.1805], [0.2126, 0.7152, 0.0722], [0.0193, 0.1192, 0.9505]]


def perceived(color, sight):
    """CIE L*a*b* of a colour as somebody with that sight sees it."""
    rgb = np.array([int(color[i : i + 2], 16) for i in (1, 3, 5)]) / 255
    linear = np.where(rgb <= 0.04045, rgb / 12.92, ((rgb + 0.055) / 1.055) ** 2.4)
    xyz = np.array(TO_XYZ) @ np.clip(np.array(SIGHT[sight]) @ linear, 0, 1)
    f = np.cbrt(xyz / [0.9505, 1.0, 1.089])
    return np.array([116 * f[1] - 16, 500 * (f[0] - f[1]), 200 * (f[1] - f[2])])


@pytest.mark.parametrize("sight", SIGHT)
def test_colours_differ(sight):
    colors = [perceived(color_of(number), sight) for number in range(6)]
    for i, j in combinations(range(6), 2):
        assert np.linalg.norm(colors[i] - colors[j]) > 10, (i, j)
    assert max(color[0] for color in colors) < 80  # dark enough for lines on white
    assert color_of(6) == color_of(0)


@pytest.mark.parametrize("kind", displays())
def test_axes_that_show_numbers_say_which(kind):
    for draw in examples(small=True)[kind].values():
        display = draw()
        display.figure_.canvas.draw()
        for ax in filter(lambda ax: ax.axison, display.axes_):
            ticks = "".join(tick.get_text() for tick in ax.get_yticklabels())
            assert ax.get_ylabel() or not ticks, ax.get_title()
