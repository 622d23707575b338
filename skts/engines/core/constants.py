"""Constants that several modules share, each with one definition.

CUDA sources get them from here, too: ``#include "include/constants.cuh"`` stands for a header that
`cuda_header` writes. Constants of a single module, such as the width of its tiles, stay there.
"""

from __future__ import annotations

__all__ = [
    "CERTIFIED_ROUNDING",
    "CONSTANT",
    "FLOAT32_LOST",
    "FLOAT32_UNIT",
    "FLOAT64_TINY",
    "FLOAT64_UNIT",
    "JOIN_GROUP",
    "JOIN_SQUARE",
    "LIMIT_MARGIN",
    "LOST_SQUARES",
    "NEGLIGIBLE",
    "SCORE_ABOVE32",
    "SCORE_ABOVE64",
    "SCORE_BELOW32",
    "SCORE_BELOW64",
    "SEED_FILTERS",
    "SEED_WINDOWS",
    "SMALLEST_RANGE",
    "TAKES_NO_PART",
    "TIE",
    "TOLERANCE",
    "UNCLEAR",
]

#: Rounding to the nearest float32 or float64 changes a number by at most this share of it.
FLOAT32_UNIT = 2.0**-24
FLOAT64_UNIT = 2.0**-53
#: The least float64 with all its bits: where something underflows, less than this is lost.
FLOAT64_TINY = 2.0**-1022
#: More than covariances in float32 lose where they underflow.
#: see "covariance walk" in docs/developer/numerics.rst
FLOAT32_LOST = 1e-38
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
#: The same: windows of a group, over which bounds of errors are taken; bands, and panels, of a
#: square of warps; windows and filters of a block that computes seeds.
JOIN_GROUP, JOIN_SQUARE = 64, 32
SEED_WINDOWS, SEED_FILTERS = 1024, 2
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
#: their largest magnitudes in deviations: this covers l (m + m') up to 2^16.
#: see "equal distances" in docs/developer/numerics.rst
TOLERANCE = 2.0**-36


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
