"""Versions and the state of the engines, for bug reports."""

from __future__ import annotations

import platform
from importlib.metadata import PackageNotFoundError, version

__all__ = ["show_versions"]

_PACKAGES = (
    "scikit-learn",
    "numpy",
    "scipy",
    "numba",
    "llvmlite",
    "joblib",
    "tqdm",
    "matplotlib",
    "distributed",
    "cupy-cuda12x",
    "cupy-cuda13x",
)


def _versions() -> dict[str, str | None]:
    """Return the versions of Python and the packages that matter here, None where absent."""
    from .._version import __version__

    found: dict[str, str | None] = {"python": platform.python_version(), "skts": __version__}
    for package in _PACKAGES:
        try:
            found[package] = version(package)
        except PackageNotFoundError:
            found[package] = None
    return found


def show_versions() -> None:
    """Print the versions of skts, Python and dependencies, and the state of the engines.

    Examples
    --------
    >>> import skts
    >>> skts.show_versions()  # doctest: +ELLIPSIS
    platform ...
    """
    from ..engines import show_engines

    print(f"{'platform':<14}{platform.platform()}")
    for package, number in _versions().items():
        print(f"{package:<14}{number or 'not installed'}")
    print("\nEngines:")
    show_engines()
