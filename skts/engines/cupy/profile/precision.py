"""The type in which a join is searched: float32 where its errors leave little to measure.

A walk in float32 is some 1.6 times as fast as one in float64; but the bound of its errors, which
grows with the rows of a band, is larger by 2^29. Pairs whose scores the bound cannot tell from the
best one of a window are listed and measured. On noise and random walks there is about one; among
the beats of an ECG there are hundreds, whose measuring takes longer than the walk saves. So some
windows are compared with all others first. Answers do not depend on the type: both are certified.
"""

from __future__ import annotations

import cupy as cp
import numpy as np

from ...families.profile.join import NO_EXCLUSION, Join
from ..loading import blocks_for, load_kernel
from ..transfers import bring
from .lines import Searched, Steps
from .programs import SAMPLE, choose_height, choose_join
from .walk import launch_seeds

__all__ = ["leaves_little_to_measure"]

#: Strips, and chunks of columns, that may hold the nearest window of one, on the average: as many
#: again are listed on the way, before a near one is known, several times over.
MOST_LISTED = 2.0


def leaves_little_to_measure(
    join: Join, searched: tuple[Searched, Searched], steps: tuple[Steps, Steps]
) -> bool:
    """Whether the errors of float32 leave next to nothing to measure, judged by some windows.

    Parameters
    ----------
    join : Join
        The work, of one neighbour for each window.
    searched, steps : tuple of two
        Lines of the search and their steps in float32, along rows and columns.
    """
    kernel = choose_join(join, join.shape, np.float32)
    n_rows, n_columns = join.shape
    n_chosen = min(SAMPLE, n_rows)
    apart = n_rows // n_chosen
    covariances = cp.empty((n_chosen, n_columns), np.float32)
    launch_seeds(
        *(join, kernel, searched, steps, covariances),
        *((1, 0, n_columns), (0, 0, apart)),
        # of all pairs, however close
        least_apart=NO_EXCLUSION,
    )
    steps_a, steps_b = steps
    reached, counts = cp.zeros(n_chosen), cp.zeros((n_chosen, 2), np.int32)
    for kept in (None, counts):
        load_kernel("profile/precision.cu", "count_near")(
            (blocks_for(n_columns, kernel.panel), n_chosen),
            32,
            covariances=covariances,
            rows=steps_a.rows,
            weights=steps_b.weight,
            groups_a=steps_a.groups,
            groups_b=steps_b.groups,
            n_rows=n_rows,
            n_columns=n_columns,
            apart=apart,
            height=choose_height(join.shape, np.float32),
            panel=kernel.panel,
            strip=32 * kernel.columns,
            exclusion=join.exclusion if join.within else -1,
            length=join.length,
            normalize=join.normalize,
            reached=reached,
            counts=kept,
        )
    return bool((bring(counts).mean(axis=0) <= MOST_LISTED).all())
