"""Engines: how the heavy work of every estimator gets done, on any hardware, with one answer.

Three layers, and imports only point downwards::

     DTWNearestNeighbor.kneighbors          pairwise_dtw                 estimators, functions
                  |  builds                      |  builds               (NumPy, scikit-learn)
                  v                              v
            DTWNeighbors                     DTWMatrix                   reductions
                  |                              |                       (what is computed)
                  +-------------+----------------+
                                v
        run(reduction)   get_engine -> make_plan -> execute -> merge -> finish
                                |
             +------------------+------------------+
             v                  v                  v
        NumbaEngine         CupyEngine        yours, by entry point      engines
        elastic/dtw.py      elastic/dtw.py, dtw.cu                       (how a tile is computed)

A *reduction* is a heavy piece of work whose result is small: k nearest series, the best split,
the profile of a join. It is a frozen dataclass of host arrays and options. It says how large
the work is along two axes, which fixed grid divides it, how the results of tiles merge, and what
an answer still needs once all tiles are in. It does not say how a tile is computed.

An *engine* computes tiles. It has one method per reduction, named by ``Reduction.method``, and
says whether it runs here (`Engine.available`), whether it can do the work (`Engine.supports`)
and how much memory a tile takes (`Engine.footprint`).

`run` joins the two, and is written once. It picks the engine and makes a `Plan`: which devices,
which tiles, how many workers, how much memory; the largest tiles that the budget allows. All that
follows reads the plan and changes nothing in it: workers compute tiles, results are merged,
progress is reported, Ctrl-C stops the work. Tiles are whole cells of a grid that follows from the
shapes of the work alone, so neither engine, memory, nor number of threads can change an answer.

*Same answer everywhere.* Engines search in float32 where that is fast. `core.certify` keeps every
candidate that float32 could not rule out and has it recomputed as a certified float64 value
(`DTWPairs`), which has the same bits on all engines. Ties go to the lower index.

*Prepared once.* What an engine makes of an array (lanes packed for SIMD, an upload) goes to its
`PreparedStore`, is found again by the next call with the same array, and is dropped when the
array dies or the budget is short. Estimators keep private arrays, so repeated `predict` calls
and iterations find their data in place. There is no other cache.

*Several at once.* Small works of a kind that do not depend on each other, as the searches of the
nodes of a level of a tree, go to `run_all`. An engine that queues its work takes them in steps: all
of them wait for the device together.

*Families.* Work is sorted into ``elastic`` (warping), ``profile`` (joins of windows),
``shapelets``, ``kshape`` and ``search``. ``families/NAME`` says what is computed and how parts
merge, ``numba/NAME`` and ``cupy/NAME`` compute it, and ``tests/engines/NAME`` tests it. ``core``
holds what all families share and knows none of them; ``host`` holds compiled code that decides
answers, which all engines use.

To add an engine, subclass `Engine`, and name the class in the entry-point group
``skts.engines`` of your package. To add a reduction, see ``docs/developer/extending.rst``.
"""

from .core.budget import check_size
from .core.certify import Neighbors
from .core.compiling import replace_kernels
from .core.constants import TIE
from .core.engine import Engine
from .core.executor import run, run_all
from .core.radius import Within, pieces_from_end
from .core.reduction import Reduction, Tile
from .core.registry import REFERENCE, engine_names, find_engine, get_engine, show_engines
from .core.series import Series, fetch, lies_on_gpu
from .families.elastic.averages import AlignmentSums, MatchedSums
from .families.elastic.custom import CustomWarping
from .families.elastic.descriptors import derivative
from .families.elastic.distances import DISTANCES, Parameter, parameters_of, prepared
from .families.elastic.dtw import DTWMatrix, DTWNeighbors, DTWPairs, DTWPath, WarpingPath
from .families.elastic.places import best_shifts, distances_of_all_shifts, match_spans
from .families.elastic.point_costs import PointCost
from .families.elastic.radius import DTWRadiusNeighbors, RotationRadiusNeighbors
from .families.elastic.rotation import RotationNeighbors
from .families.elastic.soft import (
    SoftDTWGradient,
    SoftDTWMatrix,
    SoftSlope,
    check_gamma,
    points_in_reach,
)
from .families.elastic.subgradients import MovedAverage, SubgradientSteps
from .families.elastic.warping import Warping
from .families.elastic.window_search import DTWWindowSearch
from .families.kshape.centers import SBDCenters
from .families.kshape.certified import certified_distances
from .families.kshape.distances import Assignment, SBDAssign, SBDMatrix, ShapeDistances
from .families.kshape.moments import MemberParts, ShapeMoments
from .families.kshape.shapes import Shapes
from .families.profile.channels import (
    ChannelJoin,
    ChannelRule,
    channel_means,
    measure_channels,
    unordered_channels,
)
from .families.profile.concatenated import ConcatenatedSeries, whole_windows
from .families.profile.growth import GrowthJoin, NewNeighbors, ranks_of_runs
from .families.profile.join import Join, JoinFound, Lengths
from .families.profile.mk import MotifPair, NearestPair
from .families.profile.nearest import Nearest, least_of_rows
from .families.profile.spaced import SpacedNeighbors
from .families.profile.spaced_channels import SpacedChannels
from .families.profile.timed import TimedJoin
from .families.profile.windows import WindowDistances, WindowKinds
from .families.search.every_window import EveryWindow
from .families.search.subsequence import (
    LongSeries,
    SubsequenceNeighbors,
    WindowMatches,
    exclusion_points,
)
from .families.shapelets.best import BestShapelets
from .families.shapelets.criterion import Criterion
from .families.shapelets.cuts import SplitCriterion
from .families.shapelets.dilated import (
    FEATURES,
    DilatedShapelets,
    DistanceQuantiles,
    ShapeletFeatures,
)
from .families.shapelets.groups import GroupMatches, Groups, distances_to_all, offsets
from .families.shapelets.matches import LEAST_NORMALIZED, Matches, SubsequenceMatches
from .families.shapelets.places import Candidates, Kind, Places, Room, choose
from .families.shapelets.search import ShapeletSearch, ShapeletSplit
from .families.shapelets.splits import GroupSplits, SplitRules, Splits
from .families.shapelets.variance import VarianceCriterion

__all__ = [
    "DISTANCES",
    "FEATURES",
    "LEAST_NORMALIZED",
    "REFERENCE",
    "TIE",
    "AlignmentSums",
    "Assignment",
    "ChannelJoin",
    "ChannelRule",
    "BestShapelets",
    "Candidates",
    "Criterion",
    "CustomWarping",
    "DilatedShapelets",
    "DistanceQuantiles",
    "DTWMatrix",
    "DTWNeighbors",
    "DTWPairs",
    "DTWPath",
    "DTWRadiusNeighbors",
    "DTWWindowSearch",
    "Engine",
    "EveryWindow",
    "GroupMatches",
    "GroupSplits",
    "Groups",
    "GrowthJoin",
    "Join",
    "JoinFound",
    "Lengths",
    "Kind",
    "LongSeries",
    "MatchedSums",
    "Matches",
    "MemberParts",
    "MotifPair",
    "MovedAverage",
    "Nearest",
    "NearestPair",
    "Neighbors",
    "NewNeighbors",
    "ConcatenatedSeries",
    "Parameter",
    "Places",
    "PointCost",
    "Reduction",
    "Room",
    "RotationNeighbors",
    "RotationRadiusNeighbors",
    "SBDAssign",
    "SBDCenters",
    "SBDMatrix",
    "Series",
    "ShapeDistances",
    "ShapeMoments",
    "ShapeletFeatures",
    "ShapeletSearch",
    "ShapeletSplit",
    "Shapes",
    "SoftDTWGradient",
    "SoftDTWMatrix",
    "SoftSlope",
    "SpacedChannels",
    "SpacedNeighbors",
    "SplitCriterion",
    "SplitRules",
    "Splits",
    "SubgradientSteps",
    "SubsequenceMatches",
    "SubsequenceNeighbors",
    "Tile",
    "TimedJoin",
    "VarianceCriterion",
    "Warping",
    "WarpingPath",
    "WindowDistances",
    "WindowKinds",
    "WindowMatches",
    "Within",
    "best_shifts",
    "certified_distances",
    "channel_means",
    "check_gamma",
    "check_size",
    "choose",
    "derivative",
    "distances_of_all_shifts",
    "distances_to_all",
    "engine_names",
    "exclusion_points",
    "fetch",
    "find_engine",
    "get_engine",
    "least_of_rows",
    "lies_on_gpu",
    "match_spans",
    "measure_channels",
    "offsets",
    "parameters_of",
    "pieces_from_end",
    "points_in_reach",
    "prepared",
    "ranks_of_runs",
    "replace_kernels",
    "run",
    "run_all",
    "show_engines",
    "unordered_channels",
    "whole_windows",
]
