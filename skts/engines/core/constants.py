"""Constants that several modules share, each with one definition.

CUDA sources get them from here, too: ``#include "include/constants.cuh"`` stands for a header that
`cuda_header` writes. Constants of a single module, such as the width of its tiles, stay there.
"""

from __future__ import annotations

__all__ = [
    "CONSTANT",
    "FLOAT32_UNIT",
    "FLOAT64_TINY",
    "FLOAT64_UNIT",
    "SMALLEST_RANGE",
    "TIE",
    "TOLERANCE",
    "UNCLEAR",
]

#: Rounding to the nearest float32 or float64 changes a number by at most this share of it.
FLOAT32_UNIT = 2.0**-24
FLOAT64_UNIT = 2.0**-53
#: The least float64 with all its bits: where something underflows, less than this is lost.
FLOAT64_TINY = 2.0**-1022
#: A window, or a channel of a series, is constant when its range is at most this share of its
#: largest magnitude,
#: see "constant windows" in docs/developer/numerics.rst
CONSTANT = 2.0**-40
#: or at most this large: float64 does not hold the squares of smaller differences.
SMALLEST_RANGE = 2.0**-500
#: k-Shape: cross-correlations and distances that are no further apart than this tie.
#: see "shape ties" in docs/developer/numerics.rst
TIE = 1e-9
#: k-Shape: in place of the shift of a pair whose choice an engine's rounding leaves open.
UNCLEAR = -(2**31)
#: Shapelets: distances a < b on an order line are equal where b - a is at most this share of b; or,
#: where one is of normalised windows, of 1 if that is more. Two windows of l points that are equal
#: once they are normalised are at most 2^-53 (l (m + m') + l + 8) apart as certified, with m, m'
#: their largest magnitudes in deviations: this covers l (m + m') up to 2^16.
#: see "equal distances" in docs/developer/numerics.rst
TOLERANCE = 2.0**-36

#: Constants that CUDA sources read.
_OF_KERNELS = tuple(name for name in __all__ if name != "FLOAT64_TINY")


def cuda_header() -> str:
    """Return the constants as C++, for CUDA sources."""
    lines = ["// Made from skts/engines/core/constants.py."]
    for name in _OF_KERNELS:
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
