"""Validation of what users give: series in any form, labels, weights."""

from .distances import check_distances, read_distances
from .forms import (
    as_host,
    channel_names,
    chosen,
    form_of,
    is_3d,
    is_list_of_series,
    names_of_series,
    refuse_other_channels,
    transposed,
)
from .layout import check_layout
from .scale import LARGEST, LEAST
from .series import (
    check_more_points,
    check_multivariate,
    check_one,
    check_series,
    check_univariate,
    refuse_channels_of_one_point,
    refuse_times_as_series,
)
from .targets import check_outputs, check_target, check_weights, one_label_each, refuse_mixed_types

__all__ = [
    "LARGEST",
    "LEAST",
    "as_host",
    "check_distances",
    "channel_names",
    "form_of",
    "check_layout",
    "check_more_points",
    "check_multivariate",
    "check_one",
    "check_outputs",
    "check_series",
    "check_target",
    "check_univariate",
    "check_weights",
    "chosen",
    "is_3d",
    "is_list_of_series",
    "names_of_series",
    "one_label_each",
    "read_distances",
    "refuse_channels_of_one_point",
    "refuse_mixed_types",
    "refuse_other_channels",
    "refuse_times_as_series",
    "transposed",
]
