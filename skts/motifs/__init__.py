"""Motifs, discords and the matrix profile."""

from ._discord_detector import DiscordDetector
from ._matrix_profile import discords, matrix_profile, motifs
from ._motif_finder import MotifFinder
from ._pan_profile import pan_matrix_profile
from ._records import Discord, MatrixProfile, Motif, PanProfile, SeriesProfile, WindowPair

__all__ = [
    "Discord",
    "DiscordDetector",
    "MatrixProfile",
    "Motif",
    "MotifFinder",
    "PanProfile",
    "SeriesProfile",
    "WindowPair",
    "discords",
    "matrix_profile",
    "motifs",
    "pan_matrix_profile",
]
