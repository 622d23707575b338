"""Motifs, discords and the matrix profile."""

from ._matrix_profile import discords, matrix_profile, motifs
from ._motif_finder import MotifFinder
from ._records import Discord, MatrixProfile, Motif, SeriesProfile

__all__ = [
    "Discord",
    "MatrixProfile",
    "Motif",
    "MotifFinder",
    "SeriesProfile",
    "discords",
    "matrix_profile",
    "motifs",
]
