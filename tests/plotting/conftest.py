"""Displays are drawn without a screen, and their figures closed."""

from __future__ import annotations

import importlib.util

import pytest

if importlib.util.find_spec("matplotlib") is None:
    collect_ignore_glob = ["test_*.py"]
else:
    import matplotlib

    matplotlib.use("Agg")


@pytest.fixture(autouse=True)
def close_figures():
    yield
    import matplotlib.pyplot as plt

    plt.close("all")
