"""The version of the package, below everything that names it: that of the installed distribution."""

from importlib.metadata import PackageNotFoundError, version

try:
    __version__ = version("skts")
except PackageNotFoundError:  # imported from a checkout that was never installed
    __version__ = "0.0.0+unknown"
