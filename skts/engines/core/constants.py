"""Constants that several modules share, each with one definition.

CUDA sources get them from here, too: ``#include "include/constants.cuh"`` stands for a header that
`cuda_header` writes. Constants of a single module, such as the width of its tiles, stay there.
"""

from __future__ import annotations

__all__ = [
    "CERTIFIED_ROUNDING",
    "CONSTANT",
    "CONSTANT_KIND",
    "CUT_TOGETHER",
    "DILATED_TOGETHER",
    "ELASTIC_THREADS",
    "FAR",
    "FLOAT32_LOST",
    "FLOAT32_UNIT",
    "FLOAT64_TINY",
    "FLOAT64_UNIT",
    "JOIN_GROUP",
    "JOIN_SQUARE",
    "LABEL_BITS",
    "LIMIT_MARGIN",
    "LISTED_ROWS",
    "LOST_SQUARES",
    "MATCH_SERIES",
    "MATCH_THREADS",
    "MATCH_WINDOWS",
    "MISSING_KIND",
    "MOMENT_POINTS",
    "MOMENT_SIDE",
    "MOMENT_THREADS",
    "MOST_FINITE",
    "NEGLIGIBLE",
    "PAIR_COLUMNS",
    "PAIR_ROWS",
    "PAIR_WARPS",
    "PARTIAL_LANES",
    "PATH_STRIP",
    "SCORE_ABOVE32",
    "SCORE_ABOVE64",
    "SCORE_BELOW32",
    "SCORE_BELOW64",
    "SEARCH_THREADS",
    "SEED_FILTERS",
    "SEED_WINDOWS",
    "SHORT_CENTERS",
    "SHORT_SERIES",
    "SHORT_WINDOW",
    "SMALLEST_RANGE",
    "SORTED_SERIES",
    "SORTING_THREADS",
    "SQUARE_UNITS",
    "STEP_THREADS",
    "TAKES_NO_PART",
    "TIE",
    "TOLERANCE",
    "UNCLEAR",
    "WALK_CHUNK",
    "WIDE_THREADS",
]

#: Rounding to the nearest float32 or float64 changes a number by at most this share of it.
FLOAT32_UNIT = 2.0**-24
FLOAT64_UNIT = 2.0**-53
#: The least float64 with all its bits: where something underflows, less than this is lost.
FLOAT64_TINY = 2.0**-1022
#: More than covariances in float32 lose where they underflow, also where that makes them 0.
#: see "covariance walk" in docs/developer/numerics.rst
FLOAT32_LOST = 1e-34
#: Limits of accumulated costs are raised by this factor, which covers their roundings.
#: see "cost limits" in docs/developer/numerics.rst
LIMIT_MARGIN = 1 + 1e-9
#: A window, or a channel of a series, is constant when its range is at most this share of its
#: largest magnitude,
#: see "constant windows" in docs/developer/numerics.rst
CONSTANT = 2.0**-40
#: or at most this large: float64 does not hold the squares of smaller differences.
SMALLEST_RANGE = 2.0**-500
#: Joins: the squared distance of two normalised windows of l points, as certified, is off by at
#: most this times l^2, before the rounding of means and points.
#: see "normalised windows" in docs/developer/numerics.rst
CERTIFIED_ROUNDING = 1e-14
#: Joins on a GPU compare the leading 32 bits of scores in float32 or float64. A score is lowered by
#: the first share for its rounding and that of certified distances, and raised by the second, which
#: also holds the bits that are left out.
#: see "leading bits" in docs/developer/numerics.rst
SCORE_BELOW32, SCORE_BELOW64 = 2.0**-22, 2.0**-26
SCORE_ABOVE32, SCORE_ABOVE64 = 2.0**-22, 2.0**-20 + 2.0**-25
#: The same: leading bits of a window that takes part in nothing, above those of every score; and
#: the index of a neighbour that is not known yet, above all others.
TAKES_NO_PART = 2**31 - 1
#: The same: rows and columns of a block of pairs, and warps of a block of threads that scores them.
PAIR_ROWS, PAIR_COLUMNS, PAIR_WARPS = 32, 16, 4
#: The same: windows of a group, over which bounds of errors are taken; bands, and panels, of a
#: square of warps; windows and filters of a block that computes seeds.
JOIN_GROUP, JOIN_SQUARE = 64, 32
SEED_WINDOWS, SEED_FILTERS = 256, 16
#: Joins of several channels: kinds of windows of a channel, 0 for ordinary ones.
CONSTANT_KIND, MISSING_KIND = 1, 2
#: The same: in place of the squared distance of windows that are not both finite: beyond every
#: other one, as no point is larger than 1, and its root, times the number of channels, far below
#: infinity; sums up to the second are those of finite distances.
FAR, MOST_FINITE = 1e30, 1e14
#: The same on a GPU: roundings of a square that is made in float32; of many channels, rows of a
#: diagonal that are listed together.
SQUARE_UNITS, LISTED_ROWS = 8, 8
#: MK: sums of squares below this may have lost bits.
#: see "mk squares" in docs/developer/numerics.rst
LOST_SQUARES = 2.0**-900
#: k-Shape: cross-correlations and distances that are no further apart than this tie.
#: see "shape ties" in docs/developer/numerics.rst
TIE = 1e-9
#: k-Shape: in place of the shift of a pair whose choice an engine's rounding leaves open.
UNCLEAR = -(2**31)
#: k-Shape: a vector of which less than this share is left adds nothing to a basis.
#: see "centres" in docs/developer/numerics.rst
NEGLIGIBLE = 1e-14
#: Shapelets: distances a < b on an order line are equal where b - a is at most this share of b; or,
#: where one is of normalised windows, of 1 if that is more. Two windows of l points that are equal
#: once they are normalised are at most 2^-53 (l (m + m') + l + 8) apart as certified, with m, m'
#: their ranges in deviations: this covers l (m + m') up to 2^16.
#: see "equal distances" in docs/developer/numerics.rst
TOLERANCE = 2.0**-36
#: The same on a GPU: bits of a label, the number of a class, within a key; no class has them all.
LABEL_BITS = 9
#: Launches on a GPU. Elastic distances: threads of a block; rows of a strip of a path.
ELASTIC_THREADS, PATH_STRIP = 128, 1024
#: Search: threads of a block.
SEARCH_THREADS = 256
#: k-Shape: series of a block that sorts; threads of a block of a Lanczos step; of the partial sums
#: of a cluster, how many lanes add them up; points of members whose outer products are summed, at
#: most, threads of a block that does it, one for each square of pairs of points, and its side.
SORTED_SERIES, STEP_THREADS, PARTIAL_LANES = 1024, 1024, 16
MOMENT_POINTS, MOMENT_THREADS, MOMENT_SIDE = 60, 128, 4
#: The same of short series: series, and centres, of a block.
SHORT_SERIES, SHORT_CENTERS = 64, 8
#: Shapelets: windows of at most so many points are compared point by point; rows that a walk
#: fetches at a time; threads of a block that sorts a wide order line, and certified distances;
#: classes up to which a warp judges the cuts of these together.
SHORT_WINDOW, WALK_CHUNK, WIDE_THREADS, SORTING_THREADS, CUT_TOGETHER = 6, 32, 256, 128, 16
#: Matches: threads of a block, neighbouring windows of a thread, and series of a block, at most.
MATCH_THREADS, MATCH_WINDOWS, MATCH_SERIES = 128, 9, 56
#: Dilated shapelets that a warp compares with a window together.
DILATED_TOGETHER = 4


def cuda_header() -> str:
    """Return the constants as C++, for CUDA sources."""
    lines = ["// Made from skts/engines/core/constants.py."]
    for name in __all__:
        value = globals()[name]
        written = (
            f"double {name} = {value.hex()}"
            if isinstance(value, float)
            else (
                f"int {name} = {value + 1} - 1"  # the least int has no literal
            )
        )
        lines.append(f"constexpr {written};")
    return "\n".join(lines) + "\n"
