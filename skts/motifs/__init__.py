"""Motifs, discords and the matrix profile."""

from ._chains import motif_chains
from ._consensus import consensus_motif
from ._discord_detector import DiscordDetector
from ._distances import distance_profile, mpdist
from ._matrix_profile import discords, matrix_profile, motifs
from ._motif_finder import MotifFinder
from ._pan_profile import pan_matrix_profile
from ._records import (
    Chain,
    ConsensusMotif,
    Discord,
    MatrixProfile,
    Motif,
    PanProfile,
    Segmentation,
    SeriesProfile,
    WindowPair,
)
from ._segment import segment

__all__ = [
    "Chain",
    "ConsensusMotif",
    "Discord",
    "DiscordDetector",
    "MatrixProfile",
    "Motif",
    "MotifFinder",
    "PanProfile",
    "Segmentation",
    "SeriesProfile",
    "WindowPair",
    "consensus_motif",
    "discords",
    "distance_profile",
    "matrix_profile",
    "motif_chains",
    "motifs",
    "mpdist",
    "pan_matrix_profile",
    "segment",
]
