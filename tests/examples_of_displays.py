"""An example of every way to make a display, for tests of what holds for all of them."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from skts.motifs import pan_matrix_profile
from skts.plotting import (
    AlignmentDisplay,
    ClusterDisplay,
    MotifDisplay,
    PanProfileDisplay,
    SearchDisplay,
    ShapeletMatchDisplay,
    ShapeletTreeDisplay,
)
from tests import examples_of_estimators
from tests.discovery import Examples, displays

__all__ = ["displays", "examples", "makers"]


def makers(kind: type) -> list[str]:
    """Names of the class methods that make a display: ``from_estimator`` and others."""
    return [name for name in dir(kind) if name.startswith("from_")]


def examples(*, small: bool = False) -> dict[type, dict[str, Callable[[], Any]]]:
    """For every display and each of its makers a call that fits, computes and draws."""
    by_name = {
        kind.__name__: one
        for kind, one in examples_of_estimators.examples("auto", small=small).items()
    }
    rng = np.random.default_rng(11)
    x, y = rng.normal(size=30).cumsum(), rng.normal(size=24).cumsum()

    def fitted(name: str) -> Any:
        return by_name[name].make().fit(*by_name[name].first)

    X, labels = by_name["ShapeletTreeClassifier"].first
    asked = by_name["DTWNearestNeighbor"].asked
    table = {
        AlignmentDisplay: {
            "from_estimator": lambda: AlignmentDisplay.from_estimator(
                fitted("DTWNearestNeighbor"), asked[0]
            ),
            "from_series": lambda: AlignmentDisplay.from_series(x, y, window=8),
        },
        ClusterDisplay: {
            "from_estimator": lambda: ClusterDisplay.from_estimator(fitted("KShapeClusterer"), X)
        },
        MotifDisplay: {
            "from_estimator": lambda: MotifDisplay.from_estimator(fitted("MotifFinder"))
        },
        PanProfileDisplay: {
            "from_profile": lambda: PanProfileDisplay.from_profile(
                pan_matrix_profile(asked[0], windows=[5, 8, 15])
            )
        },
        SearchDisplay: {
            "from_estimator": lambda: SearchDisplay.from_estimator(
                fitted("SubsequenceSearch"), asked[:2, :9]
            )
        },
        ShapeletMatchDisplay: {
            "from_estimator": lambda: ShapeletMatchDisplay.from_estimator(
                fitted("ShapeletTreeClassifier"), asked[0]
            )
        },
        ShapeletTreeDisplay: {
            "from_estimator": lambda: ShapeletTreeDisplay.from_estimator(
                fitted("ShapeletTreeClassifier"), X, labels
            )
        },
    }
    return Examples(table, "`examples` of tests/examples_of_displays.py")
