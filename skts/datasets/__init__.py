"""Sample data, generators of artificial series, and readers of the UCR and UEA file formats.

* `load_gunpoint`, `load_arrow_head`, `load_ecg`: small real sets that come with the package.
  Where they are from, and on what terms, is in ``skts/datasets/data/README.md``.
* ``make_*``: artificial series whose truth is known, drawn from a ``random_state``.
* `read_series`, `read_train_test`: files of the UCR and UEA archives.
"""

from ._fetch import fetch_ucr
from ._loaders import load_arrow_head, load_ecg, load_gunpoint
from ._readers import TrainTest, read_series, read_train_test
from ._samples_generator import (
    make_cylinder_bell_funnel,
    make_planted_motifs,
    make_random_walk,
    make_shifted_shapes,
    make_two_patterns,
    make_warped_shapes,
)

__all__ = [
    "TrainTest",
    "fetch_ucr",
    "load_arrow_head",
    "load_ecg",
    "load_gunpoint",
    "make_cylinder_bell_funnel",
    "make_planted_motifs",
    "make_random_walk",
    "make_shifted_shapes",
    "make_two_patterns",
    "make_warped_shapes",
    "read_series",
    "read_train_test",
]
