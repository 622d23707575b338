"""Motifs, discords and the matrix profile."""

from ._discord_detector import DiscordDetector
from ._matrix_profile import discords, matrix_profile, motifs
from ._motif_finder import MotifFinder
from ._records import Discord, MatrixProfile, Motif, SeriesProfile

__all__ = [
    "Discord",
    "DiscordDetector",
    "MatrixProfile",
    "Motif",
    "MotifFinder",
    "SeriesProfile",
    "discords",
    "matrix_profile",
    "motifs",
]
