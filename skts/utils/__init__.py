"""Small helpers for users."""

from ._show_versions import show_versions

__all__ = ["show_versions"]
