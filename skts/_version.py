"""The version of the installed distribution, below everything that names it."""

from importlib.metadata import PackageNotFoundError, version

try:
    __version__ = version("skts")
except PackageNotFoundError:  # imported from a checkout that was never installed
    __version__ = "0.0.0+unknown"
