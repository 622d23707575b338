"""Mutants that no test can kill, with the reason: keyed by the text of the line and its function.

`tests/mutation/test_mutation.py` sees to it that the lines still exist.
"""

from __future__ import annotations

from .mutants import Mutant

__all__ = ["EQUIVALENT", "names_of", "reason_of"]

INTERRUPTED = "after an interrupt nothing of what is computed is used"
LOOKS = "only how often it is looked whether the iteration has settled"
SPARES = "bounds and seeds only spare work: without them all is computed, with the same answer"
EQUAL = "of equal values it does not matter which"
LOOSER = "a looser bound: more is measured, and the same is found"
UNREAD = "an entry more, that nobody reads"
HELD = "how many survivors are held together changes memory and time, and no answer"
AT_THE_LIMIT = "what is just at a limit may be on either side of it"
COMPILED = "a check at compile time, that no instance fails"
BETWEEN = "one less or one more than an even key marks it as unclear, and lies between the same two"
SHUFFLES = "exchanges with 1, 2, 4, 8 and 17 lanes away still bring together what all 32 hold"
PRICES = "prices choose between kernels, all of which find the same"
ROOM = "an estimate of memory: smaller by less than what it leaves free"
TOGETHER = "how many go together changes how long it takes, and no result"
MORE_ROOM = "an estimate of memory, which may be larger by so little"

BEYOND = (
    "what no shift has: keys are 4 (length - 1) + 1 at most, below 2 n, and the largest has a key"
)

NUMBERED = "where series have numbers, all points of a series hold that of theirs"
TWICE = "in steps of 31 lanes 31 and 0 meet the same place, and write the same number there"
ANY_THREAD = "all threads of the block have these numbers: whichever writes them"

EXAMPLES = "which instances the compile check takes as examples"
FASTEST = "which instance of a kernel is fastest: all find the same"

_E, _N = "skts/engines/", "skts/engines/numba/"
#: By module, or folder of modules whose functions may move from one to another: function, line,
#: what is changed on it (an operator, that and what it becomes, or None: anything), and why no
#: result differs.
EQUIVALENT: dict[str, list[tuple[str, str, tuple[str, ...] | None, str]]] = {
    _E + "cupy/elastic/rotation.py": [
        (
            "EuclideanRotation.search",
            "step = max(1, 2**36 // (self.n * self.n * n_cols))",
            ("** -> *",),
            TOGETHER,
        ),
        (
            "WarpedRotation.update",
            "if not self.lowered or k > self.shape[1]:",
            ("not self.lowered or k > self.shape[1]",),
            SPARES,
        ),
        (
            "WarpedRotation.update",
            "self.limit(np.minimum(self.given, farthest))",
            ("minimum -> maximum",),
            LOOSER,
        ),
        (
            "_queries",
            "return max(1, min(rows, CORRELATIONS // (64 * n * cols)))",
            ("64 -> 63", "64 -> 65"),
            TOGETHER,
        ),
    ],
    _N + "elastic/warping_path.py": [
        ("", "_TILE = 256", ("256 -> 255",), TOGETHER),
        (
            "_next_row",
            "left = value if value < best[k] else best[k]",
            ("< -> <=",),
            EQUAL,
        ),
        (
            "_next_row",
            "best[k] = up[k] if up[k] < diagonal[k] else diagonal[k]",
            ("< -> <=",),
            EQUAL,
        ),
        (
            "_next_row",
            "left = cell.join(costs[k], best[k] if best[k] < left else left)",
            ("< -> <=",),
            EQUAL,
        ),
        ("_traceback", "return np.empty((0, 2), np.int64), 0.0", None, INTERRUPTED),
    ],
    _N + "elastic/dtw.py": [
        (
            "sweep_bytes",
            "return 256 * lines + n + m + 4 * 64 * 64 * 8",
            ("64 -> 65",),
            MORE_ROOM,
        ),
        (
            "sweep",
            "inner = inner_first <= j < inner_stop",
            ("<= -> <",),
            "cells inside of all bands are filled as those at the edge of one, by the same sums",
        ),
        (
            "sweep",
            "best = best if best < left[k, lane] else left[k, lane]",
            ("< -> <=",),
            EQUAL,
        ),
        (
            "sweep",
            "edge = np.empty((n + 1 if strips else 2, lanes), y.dtype)",
            ("2 -> 3",),
            UNREAD,
        ),
        (
            "sweep",
            "height = ROWS if reach >= ROWS and i + ROWS <= stop else 1",
            (">= -> >", "<= -> <"),
            TOGETHER,
        ),
        (
            "sweep",
            "more = limits[0, 0] < inf and start + w < m and not (free_columns or free_rows)",
            ("< -> >",),
            SPARES,
        ),
        (
            "block_kernel",
            "out[i, group * lanes : (group + 1) * lanes],",
            ("1 -> 2",),
            "what a group writes beyond its own place the next one writes over",
        ),
    ],
    _N + "elastic/lanes.py": [
        (
            "columns_of_rows",
            "inner_stop = min(stop, i + least_reach + 1 - start) if height > 1 else 0",
            ("1 -> 2",),
            "cells inside of all bands are filled as those at the edge of one, by the same sums",
        ),
    ],
    _N + "elastic/subgradients.py": [
        (
            "_fill",
            "if d + 1 < count:",
            ("+ -> -",),
            "an antidiagonal behind the last has no cells, and its line is not the one returned",
        ),
    ],
    _N + "elastic/uneven_alignments.py": [
        (
            "_trace",
            "x, y = np.zeros((most_n + 1, n_channels, lanes)), "
            "np.zeros((most_m + 1, n_channels, lanes))",
            ("1 -> 2",),
            "a point more behind the last, which nobody reads: lengths are told beside the points",
        ),
        (
            "_fill",
            "number, other = x[i + 1, 1, lane], y[start + j + 1, 1, lane]",
            ("1 -> 2 #0",),
            NUMBERED,
        ),
    ],
    _N + "elastic/uneven.py": [
        (
            "sweep",
            "height = ROWS if reach >= ROWS and i + ROWS <= stop else 1",
            (">= -> >", "<= -> <"),
            TOGETHER,
        ),
        (
            "sweep",
            "if offset > least_reach:",
            ("> -> >=",),
            "of cells at the edge of the narrowest band none is beyond that of its own lane",
        ),
    ],
    _N + "elastic/certified.py": [
        (
            "_border",
            "total += cell.down(rows[c, entry], 0.0, 0.0)",
            ("0.0 -> 1.0 #1",),
            "in a border no price depends on the other series",
        ),
    ],
    _N + "elastic/lower_bounds.py": [
        (
            "first_bounds",
            "bounds = np.zeros(packed.shape[0] * lanes, np.float32)",
            ("zeros -> ones",),
            "bounds of all candidates are written, and those of lanes that have none are not read",
        ),
        (
            "_cascade",
            "break",
            ("break -> continue #0",),
            "the position is beyond the last, which ends the loop as well",
        ),
        (
            "_cascade",
            "if back * deflate > limit:",
            ("> -> >=",),
            "limits hold the errors of estimates: what is at one is farther, by its bound",
        ),
        ("backward", "d = d if d > zero else zero", ("> -> >=",), EQUAL),
        (
            "_cascade",
            "while position < order.size and not cancel[0]:",
            ("< -> <=",),
            "a group that nobody is left for ends the search",
        ),
    ],
    _N + "elastic/window_search.py": [
        (
            "search",
            "for position in range(-1, n_candidates):",
            ("1 -> 2",),
            "the guess is looked at twice",
        ),
        (
            "_straight",
            "if x.shape[0] > 1:",
            ("> -> >=",),
            "of one channel there are no others whose costs are added",
        ),
        ("_bounded", "if d > 0.0:", ("> -> >=",), "0 is taken off the limit"),
        (
            "_order",
            "while width < n:",
            ("< -> <=",),
            "a pass more over what is sorted as a whole copies it",
        ),
        ("_warp", "best = left if left < best else best", ("< -> <=",), EQUAL),
        (
            "search",
            "slack = 1.0 + 2.0 * FLOAT64_UNIT * (n * n_channels + 2 * n + n_channels + 8)",
            ("1.0", "2.0", "8 -> 9", "2 -> 3"),
            LOOSER,
        ),
        ("_bounded", "d = above if above > below else below", ("> -> >=",), EQUAL),
        (
            "search",
            "costs[candidate] = straight if candidate != excluded[q] else np.inf",
            ("candidate -> candidate - 1",),
            "only the order in which candidates are looked at; the least cost stays the least",
        ),
    ],
    _N + "elastic/tiles.py": [
        (
            "DTWTiles._block_bytes",
            "each += 256 * channels * m",
            ("256 -> 257",),
            MORE_ROOM,
        ),
        ("", "CERTIFIED_POINTS = 2**18", ("18 -> 17", "18 -> 19"), TOGETHER),
        (
            "DTWTiles._enveloped",
            "if reduction.warping.window is None or 2 * radius >= longest:",
            ("2", ">="),
            "envelopes and ranges are bounds, both",
        ),
        ("DTWTiles._cascade", "if bound.shrink == 0 or deflation == 0:", None, SPARES),
    ],
    _E + "host/shapes.py": [
        (
            "largest",
            "whole = values.size // 8 * 8",
            ("8 -> 9 #0",),
            "what the lanes leave is looked at one by one",
        ),
        (
            "largest",
            "lanes[lane] = value if value > lanes[lane] else lanes[lane]",
            ("lane -> lane - 1 #0", "> -> >="),
            "the lane beside it holds the same, a turn later: the largest stays",
        ),
        (
            "largest",
            "lanes = np.empty(8)",
            ("8 -> 9",),
            "a lane more holds minus infinity",
        ),
    ],
    _N + "kshape/sbd.py": [
        (
            "",
            "AT_ONCE = 256",
            ("256 -> 257",),
            "a transform that is left alone has the bits of one beside others",
        ),
    ],
    _N + "search/statistics.py": [
        (
            "_settle",
            "inverse[i] = 1.0 / deviation if known else -1.0",
            ("1.0 -> 2.0 #1",),
            "any number below 0 says that it is not known",
        ),
        (
            "running_statistics",
            "exact = 8 * FLOAT64_UNIT * size * scale <= 0.5 * RUNNING_ERROR",
            ("<= -> <",),
            AT_THE_LIMIT,
        ),
    ],
    _N + "search/outside.py": [
        ("", "LANES = 32", None, "how many windows go side by side changes no sum"),
        ("", "_VECTOR = 8", None, "how many lanes a vector has changes no sum"),
    ],
    _N + "search/lanes.py": [
        (
            "search",
            "while filled >= LANES or (ends and filled > 0) or n_seeds < seeds.size:",
            ("< -> >",),
            SPARES,
        ),
        ("warp", "if strip > looked and strip * _WIDTH < n:", ("< -> >",), SPARES),
        (
            "search",
            "if some and radius > 0 and length > 2 and limit < np.inf:",
            None,
            SPARES,
        ),
        ("search", "if need > 0 and within[q] == np.inf:", None, SPARES),
        (
            "keep_matches",
            "nearer = nearer or found < within[q]",
            ("< -> <=", "q -> q - 1"),
            SPARES,
        ),
        (
            "keep_matches",
            "if count <= _FEW or _SHARE * (count - known[q]) >= count:",
            ("<= -> <", ">= -> >"),
            "how often it is looked which windows bound the last match is a choice",
        ),
        ("", "_FEW, _SHARE = 256, 8", None, "how often it is looked is a choice"),
    ],
    _E + "families/search/subsequence.py": [
        (
            "LongSeries.piece",
            "if len(self.parts) > 1:",
            ("> -> >=",),
            "what is filled with NaN is written over where there is one series",
        ),
    ],
    _E + "families/kshape/eigenvectors.py": [
        (
            "krylov",
            "if exhausted or full or steps % (2 if steps < 16 else 4) == 0:",
            ("2", "<", "16", "4", "=="),
            LOOKS,
        ),
    ],
    _E + "families/profile/concatenated.py": [
        (
            "repeat_last",
            "return points[np.where(last < 0, int(np.argmax(wanted)), last)]",
            ("0 -> 1", "< -> <="),
            "where the last wanted point is the first of the line, it is also the first wanted",
        ),
    ],
    _E + "families/profile/lines.py": [
        (
            "_center",
            "offset = np.where(np.abs(middle) > high / 2 - low / 2, middle, 0.0)",
            ("> -> >=",),
            "where offset and spread are equal, points are as exact with either",
        ),
        (
            "common_frame",
            "if exponents.size == 0:",
            ("0 -> 1",),
            "windows of one size have the largest point; all of none are sorted out before",
        ),
    ],
    _E + "families/profile/nearest.py": [
        ("", "MOST_UNSORTED = 8", None, "which way the least are found: both find the same"),
    ],
    _E + "families/profile/join.py": [
        (
            "Join._add_hidden",
            "batch = max(1, distances_at_a_time() // self.shape[0])",
            ("1 -> 2",),
            TOGETHER,
        ),
    ],
    _E + "families/profile/spaced.py": [
        (
            "SpacedNeighbors._choose",
            "gone |= taken & np.isfinite(distances) & taken[each, best][:, np.newaxis]",
            ("& -> | #1",),
            "more blocks are measured again, with the same answer",
        ),
        (
            "SpacedNeighbors.start",
            "lists.insert(0, Nearest(np.zeros((n_windows, 1)), np.full((n_windows, 1), -1)))",
            ("1 -> 2 #1",),
            UNREAD,
        ),
        (
            "SpacedNeighbors._choose",
            "gone |= taken & np.isfinite(distances) & taken[each, best][:, np.newaxis]",
            ("best -> best - 1",),
            "where the first is taken all are; else blocks are only measured before their turn",
        ),
        (
            "SpacedNeighbors._measure_blocks",
            "batch = max(1, self.at_a_time // self.block)",
            ("1 -> 2",),
            "the least that is compared at a time is eight of the largest blocks",
        ),
    ],
    _E + "families/profile/mk.py": [
        (
            "PairWalk.limit",
            "sums = 2 * (self.length + 8) * FLOAT64_UNIT",
            ("2 -> 3", "8 -> 9"),
            LOOSER,
        ),
        (
            "PairWalk.limit",
            "slope = (1 + sums) * (1 + 4 * FLOAT32_UNIT) / self.scale",
            ("1 -> 2", "4 -> 5"),
            LOOSER,
        ),
        (
            "PairWalk.limit",
            "slope = (1 + sums) * (1 + 4 * FLOAT32_UNIT) / self.scale",
            ("+ -> - #1",),
            "the offset of the limit alone is more than all roundings to float32",
        ),
        (
            "",
            "_BOUND_COST, _MEASURE_COST, _MARGIN, _LOOKS = 25, 70, 1.5, 4096",
            ("4096 -> 4097",),
            "what takes less time is guessed from a look more",
        ),
    ],
    _N + "profile/mk.py": [
        ("", "_POINTS = 32", None, "how often it is looked whether a sum is beyond the limit"),
        (
            "walk",
            "i_pair, j_pair = np.empty(1, np.int64), np.empty(1, np.int64)",
            ("1 -> 2",),
            UNREAD,
        ),
        (
            "walk",
            "cutoff = (best[0] + slip) * (best[0] + slip) * (1.0 + 1e-9) + LOST_SQUARES",
            ("1.0",),
            LOOSER,
        ),
        (
            "walk",
            "done[block] = 1",
            ("done[block] = 1 -> pass",),
            "gaps in the order grow and the limit falls: nothing of such a block is left later",
        ),
    ],
    _N + "elastic/alignments.py": [
        (
            "_fill",
            "height = 2 if i + 1 < stop else 1",
            ("< -> >",),
            "rows one by one have the same sums and steps",
        ),
    ],
    _N + "elastic/soft.py": [
        (
            "gradient",
            "shares, cells = np.zeros(lengths.size), np.full(lengths.size, -1)",
            ("zeros -> ones",),
            "lanes without a series have cell -1, and are left out",
        ),
    ],
    _N + "elastic/stepped_bounds.py": [
        (
            "search",
            "while start < order.size and not cancel[0]:",
            ("< -> <=",),
            "behind the last candidate a group is empty, which ends the search as well",
        ),
        (
            "deflation",
            "return max(0.0, 1 - 2 * error) if error < 1 else 0.0",
            ("< -> <=",),
            "with an error of 1 both sides are 0",
        ),
        (
            "_Query.distances",
            "packed = np.zeros((*values.shape[:0:-1], lanes), values.dtype)",
            ("zeros -> ones",),
            "lanes without a series are left out of the answer",
        ),
        (
            "_rows",
            "match += cell.match(point, near, x[n_channels, i], y_own)",
            ("i -> i - 1",),
            "a series brings one number, which all its points have",
        ),
    ],
    _N + "elastic/rotation.py": [
        (
            "_settle",
            "if least[lane] > within or _distance(least[lane], squared) > limit:",
            ("or -> and",),
            SPARES,
        ),
        (
            "_settle",
            "while place > begin and costs[place - 1] < least[lane]:",
            ("> -> <", "< -> >"),
            "the order in which runs of shifts are cut spares work, and changes no distance",
        ),
    ],
    _N + "elastic/rows_of_cells.py": [
        (
            "_fill.codegen.call",
            "loop(ROWS, False)",
            ("False -> True",),
            "cells inside of all bands are filled as those at the edge of one, by the same sums",
        ),
    ],
    _N + "elastic/rotation_tiles.py": [
        (
            "RotationTiles._correlate",
            "lower = np.sqrt(np.maximum(floors.min(axis=1), 0.0)) * (1.0 - 4.0 * FLOAT64_UNIT)",
            ("* -> / #1",),
            SPARES,
        ),
        (
            "RotationTiles._correlate",
            "return np.zeros(n_candidates), np.zeros((n_candidates, 1))",
            ("1 -> 2",),
            "zeros for another shift bound it as little",
        ),
    ],
    _N + "kshape/tiles.py": [
        ("_eigenvectors", "break", ("break",), INTERRUPTED),
    ],
    _N + "kshape/members.py": [
        (
            "Members.rows",
            "out = np.empty((stop - start, *self._shape))",
            ("- -> +",),
            "rows more are filled with zeros, which add nothing to a product",
        ),
    ],
    _E + "families/kshape/certified.py": [
        ("certified_distances", "break", ("break",), INTERRUPTED),
    ],
    _N + "profile/channels.py": [
        ("_bound_errors", "height = bottom - top", ("- -> +",), LOOSER),
        (
            "doubt",
            "return CERTIFIED_ROUNDING * length * length + rounded + 8 * (length * shift) ** 2",
            ("8 -> 9",),
            LOOSER,
        ),
    ],
    _N + "profile/channel_candidates.py": [
        (
            "open_known",
            "hint[first : first + n] * (1 + ROUNDING) + LOST,",
            ("1 -> 2",),
            LOOSER,
        ),
    ],
    _N + "profile/candidates.py": [
        (
            "_lower",
            "tops[k] = tops[k - 1]",
            ("k -> k - 1 #0",),
            "the limit of a window then is that of fewer pairs: " + LOOSER,
        ),
        (
            "open_candidates",
            "np.zeros(n_windows),",
            ("zeros",),
            "the bound of who waits is written with it, and not read before",
        ),
    ],
    _N + "shapelets/order_lines.py": [
        (
            "_order",
            "low, high = min(low, line[k]), max(high, line[k])",
            ("k -> k - 1 #1",),
            "the last is looked at before the first: all are",
        ),
        (
            "_order",
            "scale = (n_buckets - 1) / (high - low) if high > low else 0.0",
            ("0.0 -> 1.0",),
            "where all are equal nothing is above the lowest, whatever it is multiplied by",
        ),
        (
            "_open_gain",
            "for chosen in range(0 if limited else 1, n_ways if limited else n_ways - 1):",
            ("- -> +",),
            "the cuts before and behind the run once more: they count by themselves, for as much",
        ),
        ("make_scratch", "np.empty(4 * n + 64, np.int64), np.empty(n + 1),", ("4 -> 5",), UNREAD),
        (
            "_order",
            "buckets[k] = int((line[k] - low) * scale)",
            ("k -> k - 1 #1",),
            "insertion brings the line in order, whatever the buckets; equal ones are merged",
        ),
    ],
    _N + "shapelets/walk.py": [
        (
            "walk",
            "c = first_row[lane, d] if d >= 0 else first_column[lane, -d]",
            (">= -> >",),
            "the first row and the first column begin with the same pair of windows",
        ),
        (
            "walk",
            "together = count == DIAGONALS and steps > 0",
            ("0 -> 1",),
            "diagonals that are walked one by one have the same sums",
        ),
    ],
    _N + "shapelets/tiles.py": [
        (
            "_errors",
            "walked = 3 * np.outer(norm[own], norm) + 6 * np.outer(step[own], step)",
            ("3 -> 4", "6 -> 7"),
            LOOSER,
        ),
        ("Held.add", "if self.size > LISTED:", ("> -> >=",), "only how often a list is weeded"),
        (
            "_errors",
            "floor = 16 * length * FLOAT64_UNIT + 8 * (coarse * heavy).max() + 1e-13",
            ("8 -> 9",),
            LOOSER,
        ),
    ],
    _E + "core/verify.py": [
        (
            "check_neighbors",
            "distance, index = listed[place]",
            ("place -> place - 1",),
            "others are looked at, and as many",
        ),
    ],
    _E + "cupy/elastic/": [
        (
            "kernels",
            'names["elastic/band.cu"].add(BandKernel(type, offsets, channels, cell, 32).name)',
            ("32 -> 31",),
            "the name of an instance does not say its lanes, which are chosen at the launch",
        ),
        (
            "fill",
            "for (int d = 0; d < stop - low + 31; ++d) {",
            ("< -> <=", "31 -> 32"),
            "a step more, in which every lane is beyond the last column",
        ),
        (
            "cheapest_shape.price",
            "return strips * lanes * steps(group, columns) * (columns + 3 + 8 / group) * slower",
            ("* -> / #3",),
            PRICES,
        ),
        (
            "",
            "PIECES = 4",
            ("4 -> 3",),
            "into how many pieces runs of shifts are cut changes what is bounded, and no distance",
        ),
        (
            "WarpedRotation.cut",
            "if self.n_left > PIECES * self.at_a_time:",
            ("self.n_left > PIECES * self.at_a_time",),
            TOGETHER,
        ),
        (
            "trace",
            "const int warp = blockIdx.x * (ELASTIC_THREADS / 32) + threadIdx.x / 32;",
            ("32 -> 31 #0",),
            "128 threads are 4 warps by either",
        ),
        (
            "_one",
            "return Series(series.values[index : index + 1, :, : length[0]], length)",
            ("1 -> 2",),
            UNREAD,
        ),
        (
            "RotationTiles.rotation_neighbors_bytes",
            "return 0, 2**62",
            ("62 -> 63",),
            "no machine has as much",
        ),
        (
            "RotationTiles.rotation_neighbors_bytes",
            "return 0, series + warped_bytes(m, rows, cols) + 64 * 8 * edge_length(n)",
            ("64 -> 63",),
            "a launch needs the edges of the warps of one block",
        ),
        (
            "peaks",
            "highest[p] = fmax(row + col + error - 2 * largest, 0.0);",
            ("0.0 -> 1.0",),
            LOOSER,
        ),
        (
            "band",
            "int pair[2], steps = 0;",
            ("0 -> 1",),
            "series have a point at least, and so many steps",
        ),
        (
            "EuclideanRotation.near",
            "threads, count = min(n_rows * n_cols * self.n, 2**24), cp.zeros(1, np.uint64)",
            ("2 -> 1", "2 -> 3", "24 -> 23", "24 -> 25", "min -> max"),
            "threads take what there is in turns: how many they are changes no result",
        ),
        ("kernels", "if columns <= 48 or not strips:", ("48 -> 47", "48 -> 49"), EXAMPLES),
        (
            "kernels",
            "kernel = DTWKernel(type, 8, channels, bands, policy.of(type), bands, False, 32)",
            ("8 -> 9",),
            EXAMPLES,
        ),
        (
            "narrow_counts",
            "return list(range(5, 270 // (words * (channels + 1)) + 1, 8))",
            ("1 -> 2 #1",),
            FASTEST,
        ),
        (
            "cheapest_shape",
            "shapes += [(g, k) for g in (1, 2, 4, 8, 16) for k in counts if g * k >= m]",
            ("shapes += [(g, k) for g in (1, 2, 4, 8, 16) for k in counts if g * k >= m]",),
            FASTEST,
        ),
        ("", "COLUMNS = (4, 8, 16, 32, 40, 64)", ("64 -> 65",), FASTEST),
        (
            "SoftDTWTiles.soft_dtw_gradient_bytes",
            "return 0, 2**62",
            ("2 -> 3",),
            "no machine has as much",
        ),
        (
            "rescale",
            "(min(-(-n_rows // 8), 1024), min(-(-width // 256), 64)),",
            ("64 -> 65",),
            "blocks take what there is in turns: how many they are changes no result",
        ),
        ("EuclideanRotation.common", '"roundings": roundings * FLOAT64_UNIT,', ("*",), LOOSER),
        ("DTWTiles._dtw_bytes", "matrix = 24 * rows", ("24 -> 25",), MORE_ROOM),
        (
            "offset_counts",
            "most = max(2, min(16, 96 // (2 * words * (channels + 2)) // 2 * 2))",
            ("2 -> 3 #0",),
            "even numbers up to 3 are those up to 2",
        ),
        (
            "offset_counts",
            "return list(range(2, most + 1, 2))",
            ("1 -> 2",),
            "what is even ends before both",
        ),
        ("offset_counts", "return list(range(2, most + 1, 2))", ("2 -> 3 #1",), FASTEST),
        (
            "strip",
            "if (t == n_rows - 1) below[begin] = left;",
            ("==",),
            "all rows have the same left border: it does not matter who of the block writes it",
        ),
        (
            "shortlist",
            "if (!EXACT || all) return;",
            ("||",),
            "no ties are wanted then, and none is appended",
        ),
    ],
    _E + "cupy/search/": [
        (
            "moments",
            ": 1.01 * FLOAT32_UNIT * (2 * reach + fabs(b) + largest) + 0x1p-100;",
            ("100 -> 99",),
            LOOSER,
        ),
        (
            "least_of_stairs",
            "for (int other = G / 2; other > 0; other /= 2)",
            ("2 -> 1 #0",),
            "the least of a neighbouring window counts, too: a window is given up later",
        ),
        (
            "SearchRoom.of",
            "windows = max(least, windows // 2)",
            ("2 -> 3",),
            TOGETHER,
        ),
        (
            "prepare_query",
            "rough = dtw_bound(steps + 4, n_channels, 0.0, 1.0, squared=warping.squared)",
            ("4 -> 5",),
            LOOSER,
        ),
        ("kernels", "for columns in (2, 24, 32, 45, 64)", ("2 -> 1", "2 -> 3"), EXAMPLES),
        (
            "_instance",
            "blocks = 4 if columns <= 24 else 3 if columns <= 48 else 2",
            ("48 -> 49",),
            FASTEST,
        ),
        (
            "_instance",
            "return WarpKernel(columns, blocks, cell, group, rows=4 if columns <= 48 else 2)",
            ("columns <= 48",),
            FASTEST,
        ),
        ("", "WINDOWS = 2**20", None, TOGETHER),
        (
            "least_bytes",
            "segments = 4 * (length + 1036) * (1 + windows // max(1024, length))",
            ("1024 -> 1025",),
            ROOM,
        ),
        ("_seed", "count = max(SEEDS, 4 * query.need)", ("4 -> 5",), SPARES),
        (
            "moments",
            "const bool known = off < DOUBTFUL && largest < LARGEST_POINT && a < LARGEST_FACTOR;",
            ("< -> <=",),
            AT_THE_LIMIT,
        ),
        (
            "warp_windows",
            "const bool together = steps - __shfl_sync(ALL, left_over, 0, G) >= G;",
            (">= -> >",),
            "a window is given up a step later",
        ),
        (
            "warp_windows",
            "!Cell::BORDERS && !Cell::LOOKS_BACK && !Cell::PLACED,",
            ("&&",),
            COMPILED,
        ),
        (
            "moments",
            "affine[w] = known ? make_float2((float)a, (float)b) : make_float2(0.0f, 0.0f);",
            ("0.0f -> 1.0f",),
            "the error beside it is infinite, and its cost says nothing",
        ),
    ],
    _E + "cupy/kshape/": [
        (
            "extend",
            "double rest[2] = {0, 0}, inner = 0;",
            ("0 -> 1 #0", "0 -> 1 #1"),
            "both are written before they are read",
        ),
        ("", "CHECKS = (5, 7, 9, 12, 15, 20, 25)", ("20 -> 21",), LOOKS),
        (
            "kernels",
            "grams = [choose_gram(size) for size in (100, 600, 1024, 2709, 3750, 5000, 10_000)]",
            ("600 -> 599",),
            "members of 599 and of 600 points have the same kernel",
        ),
        (
            "kernels",
            "lengths = (1, 2, 3, 8, 56, 100, 128, 600, 1024, 2709, 3053, 3750, 4000, 5000)",
            ("600 -> 599",),
            "series of 599 and of 600 points have the same transform",
        ),
        (
            "choose_transform",
            "while transform.shared_bytes > shared_limit - 2048 and transform.batch > 1:",
            ("- -> +", "2048 -> 2049", "2048 -> 2047"),
            "transforms that share a block take 46 KB at most, and every GPU has 64 KB",
        ),
        (
            "fft_length",
            "n = 2 * n_timepoints - 1",
            ("- -> +",),
            "zeros more, between the shifts of both ends",
        ),
        (
            "series_of",
            "for (int i = 1; i < 12; ++i) {",
            ("12 -> 11", "12 -> 13", "< -> <="),
            "of angles up to pi / 4 the eleventh term is 4e-24, and the sum has 53 bits",
        ),
        ("", "CHUNK = 16", None, TOGETHER),
        (
            "",
            "DENSE_ROWS = 4096",
            ("4096 -> 4097",),
            "how many go together changes the last bits of large centres, within their errors",
        ),
        (
            "",
            "RADICES = {2: 2.0, 3: 4.0, 4: 4.0, 5: 6.4, 6: 6.7, 7: 9.4, 8: 6.5, 9: 9.4, 10: 9.2}",
            ("4.0 -> 8.0 #1",),
            PRICES,
        ),
        (
            "Transform.shared_bytes",
            "return 0",
            ("0 -> 1",),
            "a byte of shared memory that nobody uses",
        ),
        (
            "SBDTiles._sbd_bytes",
            "return series, centers + 28 * rows * cols + 5 * FFT_BATCH * spectrum",
            ("28 -> 29",),
            MORE_ROOM,
        ),
        (
            "add_over_block",
            "if (T > 32 && t % 32 == 0) sums[i][t / 32] = value[i];",
            ("32 -> 31 #1",),
            "of the first thread of a warp, both give the number of the warp: blocks have at most "
            "512 threads",
        ),
        ("Ties", "const Key other = 2 * rank + (value < sure);", ("+",), BETWEEN),
        (
            "_cost",
            "return cost * crowded * (1 + 0.01 * max(0, threads // 32 - 8))",
            ("0 -> 1", "- -> +"),
            PRICES,
        ),
        (
            "SBDTiles._resident_bytes",
            "return (series, beside) if series + beside <= self.prepared.capacity // 2 else None",
            ("<= -> <",),
            AT_THE_LIMIT,
        ),
    ],
    _E + "cupy/profile/": [
        (
            "Known.__init__",
            "capacity = 1",
            ("1 -> 2",),
            "room for one more on the list of windows that look for no neighbours",
        ),
        (
            "JoinTiles.join_bytes",
            "lists += (32 + 24 * reduction.n_neighbors) * sum(reduction.shape)",
            ("24 -> 23",),
            ROOM,
        ),
        (
            "choose_join",
            "wide, wider = (2**15, 2**19) if dtype is np.float32 else (2**15, 2**17)",
            None,
            FASTEST,
        ),
        (
            "count_near",
            "for (int chunk = start; chunk < min(start + strip, right); chunk += CHUNK) {",
            ("< -> <=",),
            "which precision is faster is guessed from a chunk more: both find the same",
        ),
        (
            "_is_small",
            "seconds = tile.shape[0] * tile.shape[1] * (A_PAIR + A_POINT * reduction.length)",
            ("0 -> 1", "* -> /", "+ -> -"),
            PRICES,
        ),
        (
            "seeds",
            "for (int t0 = 0; t0 < length; t0 += PIECE) {",
            ("< -> <=",),
            "a turn more, of no points",
        ),
        (
            "MKTiles.pair_walk_bytes",
            "return 0, LINE_BYTES * reduction.series.points.size + held + 48 * pairs",
            ("0 -> 1",),
            MORE_ROOM,
        ),
        ("", "MK_CAPACITY = 2**22", None, TOGETHER),
        (
            "",
            "SHAPES: dict[type, tuple[int, int]] = {np.float32: (16, 16), np.float64: (10, 12)}",
            ("10 -> 11",),
            FASTEST,
        ),
        (
            "_leading_bits",
            "single = np.where(single > scores, np.nextafter(single, np.float32(0)), single)",
            ("> -> >=",),
            LOOSER,
        ),
    ],
    _E + "cupy/shapelets/": [
        (
            "Lines._scan_wide",
            "each = min(65535, max(1, at_a_time // windows))",
            ("65535 -> 65534",),
            TOGETHER,
        ),
        (
            "weigh",
            "const float sum = (float)FLOAT64_UNIT * ((length + 4) * steep + 4.0f * length + 40) + "
            "(float)wrong * part +",
            ("+ -> - #0",),
            "the error of sums of squares counts four times, by more than eight roundings",
        ),
        (
            "first_of_block",
            "const int lane = threadIdx.x & 31, warp = threadIdx.x / 32;",
            ("31 -> 30",),
            "lanes 0 and 1 write the same: all lanes have what the warp has found",
        ),
        (
            "blocks_of",
            "full = (whole * 5 >= (whole + 31) // 32 * 128) | (pieces * most < MATCH_THREADS)",
            ("< -> >",),
            "blocks more, which find nothing to do: few pieces fill their warps anyway",
        ),
        (
            "_match_part",
            "min(LIST_BLOCKS, blocks_for(capacity, 128)),",
            ("min -> max",),
            "threads take what there is in turns: how many they are changes no result",
        ),
        (
            "Walk.__call__",
            "constant, zeros = cp.empty((many, n, stride), np.uint8), cp.zeros(4 * many * n)",
            ("4 -> 5",),
            "more zeros, that nobody reads",
        ),
        ("", "FIRST_BATCH, MAX_UNJUDGED = 256, 2", ("256 -> 255", "256 -> 257"), TOGETHER),
        ("_survey", '"sums": cp.empty((n, width + 1, 2)),', ("1 -> 2",), UNREAD),
        (
            "walk_kernel",
            "return min(there, key=lambda walk: "
            "walk.strips(n_windows) * (walk.columns + 3) * walk.lanes)",
            ("min", "*", "+", "3"),
            FASTEST,
        ),
        (
            "_room_of.of_lengths",
            "return together * (32 * n * block * windows + (100 * n + 40 * block) * "
            "(windows + 32))",
            ("100 -> 101",),
            MORE_ROOM,
        ),
        (
            "compare_window",
            "if (!normalized && !(distance > 0x1p-450 && distance < 0x1p450))",
            ("450 -> 451 #0",),
            AT_THE_LIMIT,
        ),
        (
            "survey",
            "double farthest = 0;",
            ("0 -> 1",),
            "points in a larger unit: fewer windows can be judged, the others are measured",
        ),
        (
            "Lines._scan_narrow",
            "stop = min(first + max(1, fits), first + 65535)",
            ("max",),
            TOGETHER,
        ),
        (
            "_room_of",
            "nbytes = of_lengths(together) + 48 * n * (windows + width * n_channels)",
            ("48 -> 47",),
            ROOM,
        ),
        ("scan", "Runs runs = {0, 0, 0, false};", ("0 -> 1 #2",), LOOSER),
        (
            "scan",
            "if (lane != 0) continue;",
            ("0 -> 1",),
            "all lanes have agreed on what is listed",
        ),
        (
            "fetch_window",
            "const double middle = i < count ? means[i] : 0.0;",
            ("0.0 -> 1.0",),
            "points of windows that are not there are 0, whatever their mean",
        ),
        (
            "begin_answers",
            "if (__ldg(asked.kinds + q) != 2 && !(__ldg(leans + q) < 1)) "
            "leave(q, column, n_columns, lists);",
            ("2 -> 1",),
            "of a query that is not finite no window is the best, whoever looks",
        ),
        (
            "judge_runs",
            "on_left += (size - first) * doubt.distance(line[32 * (first % E) + head]);",
            ("+=",),
            LOOSER,
        ),
    ],
    _E + "families/elastic/distances.py": [
        (
            "WDTW.bounded",
            "return not self.own and float(self.weights(-self.longest)) > 2.0**-120",
            ("> -> >=",),
            AT_THE_LIMIT,
        ),
    ],
    _E + "families/kshape/centers.py": [
        (
            "SBDCenters.result_bytes",
            "return 8 * self.n_clusters * self.series.n_channels * self.series.n_timepoints",
            ("8 -> 9",),
            MORE_ROOM,
        ),
        (
            "SBDCenters.verify",
            "along = rows @ (center / (norm or 1.0))",
            ("1.0 -> 2.0",),
            "a centre without a norm is one of zeros, whatever divides them",
        ),
        (
            "SBDCenters._plain_members",
            "row[:, max(0, shift) : n + min(0, shift)] = values[",
            ("0 -> 1 #1",),
            "a row has no points beyond the last",
        ),
        (
            "center_space",
            "parts = vectors.reshape(len(vectors), n_channels, -1)",
            ("1 -> 2",),
            "NumPy takes any negative length as the one that is left",
        ),
        (
            "SBDCenters.finish",
            "uncertain = np.flatnonzero(~(errors <= LARGEST_ERROR))",
            ("<= -> <",),
            AT_THE_LIMIT,
        ),
    ],
    _E + "families/shapelets/search.py": [
        (
            "ShapeletSearch.measure",
            "while first < len(gain) and (gain[first], gap[first]) >= key[:2]:",
            ("2 -> 1",),
            "what gains as much with a smaller gap is measured as well, and not chosen",
        ),
        (
            "ShapeletSearch.measure",
            "first, size = first + size, min(2 * size, most)",
            ("2 -> 3",),
            TOGETHER,
        ),
        (
            "ShapeletSearch.measure",
            "if cut.gain < 0 or not (here[:2] > key[:2] or (best is not None and here > key)):",
            ("2 -> 3 #1", "> -> >= #1"),
            "no two candidates have one place, and the beginning of a key is less than the key",
        ),
    ],
    _E + "families/elastic/rotation.py": [
        (
            "RotationNeighbors.with_incumbent",
            "if len(self.candidates) <= BLOCK:",
            None,
            SPARES,
        ),
        (
            "RotationNeighbors.with_incumbent",
            "full = np.bincount(query, minlength=len(limits)) >= self.n_neighbors",
            (">= -> >",),
            SPARES,
        ),
    ],
    _E + "core/certify.py": [
        ("", "SURVIVORS_SHARE = 1 / 4", None, HELD),
        ("", "ENTRY_BYTES = 200", ("200 -> 199", "200 -> 201"), HELD),
        (
            "dtw_bound",
            "single, double = gamma(roundings, FLOAT32_UNIT), gamma(roundings + 4, FLOAT64_UNIT)",
            ("4 -> 3", "4 -> 5", "+ -> -"),
            "a rounding of float32 is counted that does not occur: it holds 2^29 of float64",
        ),
    ],
    _E + "core/budget.py": [
        ("", "ALWAYS_THERE = 2**16", None, "only how often the machine is asked for its memory"),
        ("physical_memory", "limits = [2**62]", ("2 -> 3",), "no machine has as much"),
    ],
    _E + "core/execution.py": [
        (
            "_work_through",
            "for _ in range(2 * workers):",
            ("2 -> 1", "2 -> 3"),
            "how many tiles wait for a worker changes how long it takes, and no result",
        ),
    ],
    _E + "core/plan.py": [
        (
            "plan_tiles",
            "while max(rows / n_rows, cols / n_cols) < 1 and fits(",
            ("max -> min",),
            "where one side is whole, the loops that follow grow the other by the same steps",
        ),
    ],
    _E + "core/series.py": [
        (
            "_any_below",
            "if (np.abs(points[:, 0, points.shape[2] // 2]) >= limit).all():",
            (">= -> >",),
            "what is at the limit is not below it: a look at all points finds the same",
        ),
    ],
    _E + "cupy/profile/join.cu": [
        (
            "join",
            "if (panel >= n_panels || top >= bottom || right - 1 - top <= least_apart) return;",
            ("- -> +", "<= -> <"),
            "each strip of a panel that is too near to its rows is left out by itself as well",
        ),
        (
            "WarpMemory",
            "static constexpr int WORDS = sizeof(T) / 4, "
            "PITCH = ((K * WORDS + 3) / 4 * 4 | 4) / WORDS;",
            ("3 -> 2",),
            "lanes have 16 columns of one word or 10 of two: K * WORDS is a multiple of 4",
        ),
        (
            "look_at_row",
            "lanes |= (unsigned)(memory.bests[lane * 33 + other] >= max(near, 1)) << other;",
            ("1 -> 2",),
            "a score is none, or far above the least positive number, which these are the bits of",
        ),
        *(
            (
                "join",
                f"const int skipped_{side} = bits_below<T>(2 * slack.{side}_after(height)) + 2;",
                ("2 -> 3", "2 -> 1 #1", "+"),
                "pairs that are not looked at score less than 1.5 times the slack",
            )
            for side in ("row", "col")
        ),
        (
            "look_at_row",
            "const bool list = there && upper >= known;",
            ("&& -> ||",),
            "more is listed, and the same is found; nothing is known of a row that is not there",
        ),
        (
            "look_at_columns",
            "for (int first = 0; first < n_hits; first += 32) {",
            ("< -> <=",),
            "a turn more, in which no lane has a column",
        ),
    ],
    _E + "cupy/loading.py": [
        (
            "_function",
            "if shared and shared + kernel.shared_size_bytes > SHARED:",
            ("> -> >=",),
            "what it may have already is asked for again",
        ),
        (
            "load_kernel",
            "def load_kernel(file: str, name: str, shared: int = 0) -> Kernel:",
            ("0 -> 1",),
            "a byte of shared memory that nobody uses",
        ),
    ],
    _E + "cupy/include/warp.cuh": [
        (
            "add_lanes",
            "for (int other = 16; other > 0; other /= 2) "
            "value += __shfl_xor_sync(ALL, value, other);",
            ("16 -> 17",),
            SHUFFLES,
        ),
        (
            "scan_sum",
            "for (int other = 1; other < 32; other *= 2) {",
            ("32 -> 31",),
            "of the powers of two, 16 is the last",
        ),
    ],
    _E + "cupy/include/cells.cuh": [
        (
            "CellPoints",
            "const T (&x)[C], const T* y, int stride = 1, int offset = 0, int k = 0)",
            ("1 -> 2",),
            "only `skip` is told no stride, and looks at the first point alone",
        ),
    ],
    _N + "profile/join.py": [
        (
            "_height",
            "if most <= 1e3 * least:",
            ("1e3 -> 2000.0",),
            "bands of any height have bounds that hold: they are only the tighter the lower",
        ),
        (
            "_height",
            "most = max(most, steps.reach[level, i])",
            ("level -> level - 1",),
            "bands of any height have bounds that hold: they are only the tighter the lower",
        ),
        (
            "_open_band",
            "middle = side.mean[top + height // 2]",
            ("2 -> 3",),
            "seeds may be centred on any number: errors count how far means drift from it",
        ),
        (
            "search",
            "last = min(band.height, start + width - 1 - work.least_apart - top)",
            ("- -> +",),
            "diagonals end with the strip: of rows beyond the last none is walked",
        ),
    ],
    _E + "families/kshape/distances.py": [
        (
            "SBDReduction.plain_distances",
            "error = 2 * float(self.doubts[col]) + FLOAT64_UNIT * (2 * series.size + 8)",
            ("2 -> 1 #0",),
            "engines are off by half of it at most: right answers pass either way",
        ),
    ],
    _E + "host/plain.py": [
        (
            "_norm",
            "if largest == 0.0 or largest == np.inf:",
            ("or",),
            "the sum that follows is the same 0 or infinity",
        ),
    ],
    _N + "shapelets/scan.py": [
        (
            "_judge",
            "gain > gain_best or (gain == gain_best and reached > gap_best)",
            ("and -> or",),
            LOOSER,
        ),
    ],
    _E + "core/distribute.py": [
        ("", "MAPPED = 64", ("64 -> 63", "64 -> 65"), "one array more or fewer stays mapped"),
        (
            "",
            "_sent = PreparedStore(capacity=2**62)",
            ("62 -> 61", "62 -> 63"),
            "no machine has as much: all that is sent stays",
        ),
    ],
    _E + "core/executor.py": [
        ("", "SHARES = 4", ("4 -> 3", "4 -> 5"), TOGETHER),
    ],
    _E + "cupy/transfers.py": [
        ("", "LARGE = 2**20", ("20 -> 19", "20 -> 21"), "which memory an answer comes in"),
    ],
    _N + "profile/tiles.py": [
        (
            "JoinTiles.join",
            "level = 0.0 if normalize else 4 * max(line.energy(length).max() for line in lines)",
            ("0.0 -> 1.0", "4 -> 3"),
            "scores may be negative here, and excluded windows that are looked at are passed over",
        ),
        (
            "JoinTiles.window_kinds_bytes",
            "return 0, 58 * reduction.series.points.size",
            ("0 -> 1",),
            MORE_ROOM,
        ),
        (
            "JoinTiles.join_bytes",
            "return shared, 48 * LISTED + (16 + 48 * reduction.n_neighbors) * (rows + cols)",
            ("48 -> 47 #1",),
            ROOM,
        ),
    ],
    _N + "search/tiles.py": [
        (
            "_seconds",
            "length, n_steps = reduction.longest, -(-n_windows // _at_a_time(reduction))",
            None,
            PRICES,
        ),
        (
            "_seconds",
            "return n_queries * (3e-9 * cells * n_windows + 30e-6 * length * n_steps)",
            None,
            PRICES,
        ),
    ],
    _E + "families/kshape/shapes.py": [
        ("Shapes.normalized", "seconds = 2e-8 * values.size + 1e-3", None, PRICES),
    ],
    _E + "families/shapelets/criterion.py": [
        (
            "Criterion._weighted_gains",
            "close &= allowed & (gain >= gain.max(axis=1, keepdims=True) - 1)",
            ("1 -> 2 #1",),
            "gains that cannot be the best are rounded as they should be, too",
        ),
        (
            "wrong_gain",
            "n_terms = 2 * n_classes",
            ("2 -> 3",),
            "a looser bound: more gains are computed with 64 digits",
        ),
        *(
            (
                function,
                "with localcontext(prec=64):",
                ("64 -> 63", "64 -> 65"),
                "either is off by less than 1e-43 of a unit; gains are 0 or irrational",
            )
            for function in ("_exact_entropy", "Criterion._exact_gain")
        ),
    ],
    _E + "families/shapelets/best.py": [
        ("", "BLOCK_BYTES = 2**27", ("27 -> 28", "27 -> 26", "2 -> 3"), TOGETHER),
        (
            "BestShapelets.block",
            "count = BLOCK_BYTES // (8 * n * (self.series.n_timepoints + largest) * largest)",
            ("8 -> 9 #0",),
            TOGETHER,
        ),
    ],
    _N + "shapelets/best_tiles.py": [
        (
            "_lines",
            "lines = np.ascontiguousarray(padded.reshape(n, -1, d).swapaxes(1, 2))"
            ".reshape(n * d, -1)",
            ("1 -> 2 #0",),
            "NumPy takes any negative length as the one that is left",
        ),
    ],
    _N + "shapelets/dilated.py": [
        (
            "_run",
            "low, high = min(low, points[t]), max(high, points[t])",
            ("t -> t - 1 #0", "t -> t - 1 #1"),
            "the last is looked at before the first: all are",
        ),
        ("", "_ROOM, _WINDOWS = 5120, LANES * VECTORS", ("5120 -> 5119",), TOGETHER),
        (
            "quantiles",
            "if number.size < 5 * n_windows:",
            ("5 -> 6",),
            "only how often the room is made anew",
        ),
    ],
    _N + "shapelets/dilated_tiles.py": [
        (
            "DilatedTiles.shapelet_features",
            "slots = [part.features.index(name) if name in part.features else -1 "
            "for name in FEATURES]",
            ("1 -> 2",),
            "any negative place is none",
        ),
    ],
    _N + "shapelets/groups.py": [
        (
            "survey",
            "power = np.floor(np.log2(largest)) if largest > 0 else 0.0",
            ("0.0 -> 1.0",),
            "a series of zeros has the same windows in any unit: all are constant",
        ),
        (
            "survey",
            "scales[row, 1] = 2.0 ** (power + more - 500) if fine else np.inf",
            ("fine -> not (fine)",),
            SPARES,
        ),
        ("_judge", "steep = 0.5 + 0.5 * q * part", ("0.5 -> 1.0",), LOOSER),
        (
            "_raw",
            "if not (_SMALL < distance < _LARGE):",
            ("< -> <= #0",),
            "at the limit both have the same bits: of two points none is lost that counts",
        ),
        (
            "_judge",
            "lost = 64 * u * u * width * width * width",
            ("64 -> 63", "64 -> 65"),
            "errors of the sums and of the square of one are 24 of them: the rest is to spare",
        ),
    ],
    _E + "cupy/shapelets/matches.cu": [
        ("survey", "const bool fine = power < 900;", ("900 -> 899",), LOOSER),
        (
            "survey",
            "if (begin < size && end == size) "
            "sums[size] = sum.both(), squares[size] = square.both();",
            ("< -> <=",),
            "threads behind the last point have the same sums of exact pieces",
        ),
        (
            "normalize",
            "const int k = blockIdx.x * (THREADS / 32) + threadIdx.x / 32, "
            "lane = threadIdx.x & 31;",
            ("32 -> 31 #0",),
            "128 threads are 4 warps of 31, too",
        ),
    ],
    _E + "cupy/profile/many_channels.cu": [
        (
            "half_of",
            "if (size >= 65520) return sign | 0x7c00;",
            ("65520 -> 65521",),
            "numbers between are 2047.5 steps of 32 and some: rounded to 2048, which is infinity",
        ),
        (
            "walk_many_channels",
            "for (int step = width / 4; step > 0; step /= 2)",
            ("4 -> 3",),
            "four lanes at most share 128 channels: of widths of 2 and 4, a third is a quarter",
        ),
        (
            "settle_runs",
            "if (!within || at + 1 < M || at >= C || lowers[r][q] < 0) continue;",
            ("|| -> && #2",),
            "sums beyond the last channel are infinite, or more is listed, and the same is found",
        ),
    ],
    _E + "cupy/profile/lengths.cu": [
        (
            "limits",
            "least = fmin(least, found > 0 && rest < 1 ? sqrt(1 - rest) : 0.0);",
            ("< -> <=",),
            "the root of 1 - 1 is 0, too",
        ),
        (
            "limits",
            "if (i >= away) follow(g, min(i - away, known[g] - 1));",
            ("min -> max",),
            "whichever window is followed, a pair is looked at that bounds the nearest one",
        ),
        (
            "limits",
            "if (n_known < n_mine) look_at(guess + i - from - (lengths[n_mine - 1] - lengths[0]));",
            ("+ -> -",),
            SPARES,
        ),
    ],
    _E + "cupy/kshape/fft.cuh": [
        ("wait", "if constexpr (T <= 32)", ("32 -> 31",), "all warps wait, and not one alone"),
    ],
    _E + "cupy/shapelets/sift.cuh": [
        (
            "begin_block",
            "const int all = (length + R - 1) / R * R;",
            ("/ -> *",),
            "points are loaded some steps at a time where they could be at once: the same are",
        ),
    ],
    _E + "cupy/elastic/narrow.cu": [
        (
            "Band",
            "for (int s = 0; s < K + 2 * (R - 1); ++s) {",
            ("< -> <=",),
            "a step more, in which every row is beyond its last column",
        ),
        (
            "blocks_per_sm",
            "return registers <= 128 ? 4 : registers <= 170 ? 3 : 2;",
            ("128 -> 129",),
            "how many registers the compiler may use: sums are the same",
        ),
    ],
    _E + "cupy/search/windows.py": [
        (
            "_bound_channel",
            "ranges=0 if query.radius == 0 else 1 + (query.radius == windows.length - 1),",
            ("- -> +",),
            LOOSER,
        ),
    ],
    _E + "cupy/kshape/programs.py": [
        (
            "",
            "RADICES = {2: 2.0, 3: 4.0, 4: 4.0, 5: 6.4, 6: 6.7, 7: 9.4, 8: 6.5, 9: 9.4, 10: 9.2}",
            ("9.4 -> 18.8", "2.0 -> 4.0"),
            FASTEST,
        ),
    ],
    _N + "elastic/descriptors.py": [
        (
            "seconds",
            "steps = -(-n_pairs // _pairs_at_a_time(n, m, warping))",
            ("// -> *",),
            PRICES,
        ),
    ],
    _E + "families/shapelets/splits.py": [
        ("", "AT_A_TIME, ENTRY, OF_A_CLASS = 2**24, 64, 48", ("48 -> 49",), MORE_ROOM),
    ],
    _E + "cupy/signatures.py": [
        (
            "_parts",
            'depth += (letter in "(<") - (letter in ")>")',
            ("+= -> -=",),
            "brackets are counted down, and up to 0 again",
        ),
    ],
    _N + "elastic/by_numpy.py": [
        (
            "fill",
            "first_end = n + m if free_columns or free_rows else ends.min()",
            ("or -> and",),
            "with a free end all series of a side have one length: it is met before any pair ends",
        ),
        (
            "pairs_bytes",
            "return 8 * lanes * (3 * left.n_channels * (n + m) + 3 * (n + 2) + 4 * min(n, m) + 8)",
            ("2 -> 1",),
            ROOM,
        ),
    ],
    _N + "shapelets/variance_lines.py": [
        (
            "promise_of_variance",
            "if k < n - 1 and not reach + _APART * max(1.0, reach) < low[k + 1]:",
            ("and -> or",),
            LOOSER,
        ),
    ],
    _E + "cupy/shapelets/order_lines.py": [
        (
            "",
            "NOT_SIFTED = 2**27",
            ("2 -> 3",),
            "windows are sifted or all compared: a sift leaves out none that may be nearest",
        ),
    ],
    _E + "cupy/profile/many_channels.py": [
        (
            "ManyChannels._take",
            "self.rate = found / looked",
            ("self.rate = found / looked -> pass",),
            "a guess of what a list holds: one that is too long is made again of less",
        ),
    ],
    _N + "search/channels.py": [
        (
            "_least_of",
            "least = values[lane] if values[lane] < least else least",
            ("< -> <=",),
            EQUAL,
        ),
        (
            "_Search.run",
            "start, groups = start + groups * LANES, min(2 * groups, MOST)",
            ("2 -> 3",),
            TOGETHER,
        ),
        (
            "bound_windows",
            "if both and not _least_of(total) > limit:",
            ("and -> or",),
            "the other bound holds, too, where it is not worth its time",
        ),
    ],
    _E + "cupy/shapelets/scan.cuh": [
        (
            "may_be_best",
            "if (judge.n_classes <= Tally<unsigned long long>::MOST) {",
            ("<= -> <",),
            "numbers of classes are the same in registers and in shared memory, and so is all else",
        ),
    ],
    _E + "cupy/shapelets/shapelets.cu": [
        (
            "segments",
            "if (LANES == 32 && !mine) return;",
            ("32 -> 31",),
            "a warp without a pair returns two lines below",
        ),
        (
            "doubts",
            "const int bits = error < 1e300 ? bits_of(error) + 1 : "
            "bits_of(Arithmetic<double>::infinity());",
            ("< -> <=",),
            AT_THE_LIMIT,
        ),
        (
            "nearest",
            "constexpr int COLUMNS = 3;",
            ("3 -> 4", "3 -> 2"),
            "least scores are integers, each of the same sum, of whatever columns a lane has",
        ),
        (
            "nearest",
            "for (int start = 0; start < nb; start += 32 * COLUMNS) {",
            ("* -> /",),
            "strips overlap: columns have the same least scores again, and rows the least of all",
        ),
    ],
    _E + "cupy/elastic/soft.cu": [
        (
            "next_cell",
            "total = total > 0.0 ? total : 1.0;",
            ("0.0 -> 1.0",),
            "where one of the cells counts, the largest counts 1 or more",
        ),
    ],
    _E + "cupy/kshape/labels.cu": [
        ("longest", "long long key[2] = {4LL * n, 4LL * n};", ("4LL -> 5LL", "4LL -> 3LL"), BEYOND),
    ],
    _E + "cupy/kshape/correlate.cu": [
        (
            "blocks",
            "const int wanted = (held <= 10 ? 768 : 512) / threads;",
            ("768 -> 767", "768 -> 769", "512 -> 511", "512 -> 513"),
            "how many blocks a multiprocessor is to hold bounds registers, and changes no sum",
        ),
        ("Best", "int key0 = 4 * N, key1 = 4 * N;", ("4 -> 5", "4 -> 3"), BEYOND),
        (
            "smaller",
            "__device__ __forceinline__ int smaller(int a, int b) { return a < b ? a : b; }",
            ("< -> <=",),
            EQUAL,
        ),
    ],
    _E + "cupy/kshape/centers.cu": [
        ("extend", "if (t == 0) {", ("0 -> 1",), ANY_THREAD),
        ("gram", "int turn = 0;", ("0 -> 1",), "of two places in turn either may come first"),
    ],
    _E + "cupy/shapelets/order_lines.cu": [
        (
            "best_of_cuts",
            "if (gain > best.gain || gap > best.gap) best.gain = gain, best.gap = gap;",
            ("> -> >= #1",),
            EQUAL,
        ),
    ],
    _E + "cupy/search/search.cu": [
        ("moments", "low = window[i] < low ? window[i] : low;", ("< -> <=",), EQUAL),
        ("moments", "high = window[i] > high ? window[i] : high;", ("> -> >=",), EQUAL),
        ("Interval", "return low > 0 ? __double2float_rd(low) : 0.0f;", ("> -> >=",), EQUAL),
    ],
    _E + "cupy/elastic/dtw.py": [
        (
            "groups_in_flight",
            "blocks = min(blocks, multiprocessors() * 8, max(1, budget // edge_bytes))",
            ("8 -> 9",),
            TOGETHER,
        ),
    ],
    _E + "cupy/profile/channel_tiles.py": [
        ("", "AT_A_TIME = 2**20", ("2 -> 1",), TOGETHER),
        (
            "",
            "RUNS_PER_WINDOW, LEAST_RUNS, MOST_RUN_BYTES = 16, 2**14, 2**31",
            ("31 -> 32",),
            "the most that a list may take: how many are listed together changes no result",
        ),
    ],
    _N + "profile/walk.py": [
        ("seeds", "line = np.empty(min(out.size, SEEDS) + length - 1)", ("- -> +",), UNREAD),
    ],
    _E + "cupy/kshape/short.cu": [
        (
            "correlate_all",
            "constexpr int FIRST = STEPS - 3 > 0 ? STEPS - 3 : 0, LAST = 2 * STEPS - 1;",
            ("0 -> 1 #0",),
            "of four steps one fragment more, before the centre: zeros are added",
        ),
    ],
    _E + "cupy/profile/channels.cuh": [
        (
            "turned",
            "if (c < M) return distance <= MOST_NEEDED ? distance : -1e20f;",
            ("1e20f -> 2e+20f",),
            "beside either, sums of 128 distances of 1e14 at most are negative, and so no sums",
        ),
        (
            "order_channels",
            "order_channels<M, FIRST + SIZE / 2, SIZE / 2>(values);",
            ("2 -> 1 #1",),
            "values behind these are put in order, too, before their own turn",
        ),
    ],
    _E + "cupy/profile/channels.py": [
        (
            "answer",
            "if len(wanted) < distances.shape[1]:",
            ("< -> <=",),
            "where all numbers of channels are wanted, in order, the same is copied",
        ),
    ],
    _E + "cupy/profile/channels.cu": [
        (
            "channel_distances",
            "for (int p = lane / POINTS; p < 32; p += 32 / POINTS) {",
            ("32 -> 33 #1",),
            "POINTS is 16: 33 / 16 and 32 / 16 are both 2",
        ),
    ],
    _E + "cupy/profile/pairs.cu": [
        (
            "list_pairs",
            "if (lane == 31 && upto > 0) to = atomicAdd(found.n_pairs, (unsigned long long)upto);",
            ("> -> >=",),
            "no pairs take no room",
        ),
        *(
            ("WarpMemory", f"for (int t = lane; t < SPAN + {of}; t += 32) {{", ("32 -> 31",), TWICE)
            for of in ("ROWS", "COLUMNS")
        ),
        (
            "WarpMemory",
            "points.rows[spread_out(t)] = place < row_line.n_points ? "
            "row_line.points[place] - row_mean : 0.0;",
            ("0.0 -> 1.0",),
            "points behind the line count in windows beyond the block, or are multiplied by 0",
        ),
        (
            "fill_block",
            "const bool has_row = block.n_cols > 1;",
            ("> -> >=",),
            "where row and column meet both have the same sum, in the same order",
        ),
    ],
}


def names_of(mutant: Mutant) -> tuple[str, ...]:
    """Return how the table may name a mutant of a line: of equal changes, by their number."""
    change = f"{mutant.before} -> {mutant.after}"
    return mutant.before, change, f"{change} #{mutant.number}"


def reason_of(mutant: Mutant) -> str:
    """Return why a mutant is equivalent, or nothing."""
    folder = mutant.module.rpartition("/")[0] + "/"
    here = *EQUIVALENT.get(mutant.module, []), *EQUIVALENT.get(folder, [])
    for function, text, before, reason in here:
        same = (mutant.function, mutant.text) == (function, text)
        names = names_of(mutant)
        if same and (before is None or any(name in before for name in names)):
            return reason
    return ""
