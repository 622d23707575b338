"""Recipes of `skts.motifs`: profiles, motifs and discords, judged by the matrix of distances."""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import replace
from typing import Any, NamedTuple
from unittest import mock

import numpy as np

from skts.engines import Join
from skts.engines.cupy import CupyEngine
from skts.engines.families.profile import timed
from skts.engines.numba import NumbaEngine
from skts.motifs import distance_profile

from . import oracle
from .case import Case, Sample
from .compare import LOOKED_AT, RELATIVE, Failure, check, close, first_of_equals, nearest_rows, same
from .draw import DIRT, Draw
from .recipe import How, Recipe, check_output, draw_state, plain, points_of, scaled

PRECISIONS = ("auto", "float64", "float32")


def apart_of(options: dict[str, Any], length: int) -> tuple[int, int]:
    """Exclusion and separation of windows of a length, in points."""
    exclusion, separation = options["exclusion"], options.get("separation")
    exclusion = points_of(exclusion, length, 0.25)
    return exclusion, points_of(separation, length, 0.5, least=exclusion)


def certified_row(query: np.ndarray, lines: list[np.ndarray], normalize: bool) -> np.ndarray:
    """Distances of a window to all of some series, bit by bit as the package compares them."""
    rows = distance_profile(query, lines, normalize=normalize, engine="numba")
    return np.concatenate(
        [row[: len(one) - len(query) + 1] for row, one in zip(rows, lines, strict=True)]
    )


class Line(NamedTuple):
    """All windows of one length of several series, and the distances of all pairs.

    Attributes
    ----------
    length, exclusion, separation : int
        Points of a window; starts so near are no pair; starts so near are not found apart.
    series, start : ndarray of shape (n_windows,)
        Where the windows lie.
    distances, slack : ndarray of shape (n_windows, n_windows)
        Distances, infinite where a window is not finite, and how far they may be off.
    lines : tuple of ndarray
        The series; none where distances are means over channels.
    normalize : bool
        Whether windows are normalised.
    """

    length: int
    exclusion: int
    separation: int
    series: np.ndarray
    start: np.ndarray
    distances: np.ndarray
    slack: np.ndarray
    lines: tuple[np.ndarray, ...] = ()
    normalize: bool = True

    @classmethod
    def of(cls, lines: list[np.ndarray], length: int, options: dict[str, Any]) -> Line:
        normalize = options["normalize"]
        power = oracle.plane([one[np.isfinite(one)] for one in lines])
        parts = [oracle.Windows.of(one, length, power) for one in lines]
        fields = zip(*(part[:5] for part in parts), strict=True)
        windows = oracle.Windows(*map(np.concatenate, fields), power)
        counts = [len(part.raw) for part in parts]
        distances, slack = oracle.pair_distances(windows, windows, normalize)
        return cls(
            length,
            *apart_of(options, length),
            np.repeat(np.arange(len(lines)), counts),
            np.concatenate([np.arange(count) for count in counts]),
            distances,
            slack,
            tuple(lines),
            normalize,
        )

    def certified(self, place: int) -> np.ndarray:
        """Distances of a window to all, bit by bit as the package compares them."""
        start = self.start[place]
        query = self.lines[self.series[place]][start : start + self.length]
        fitting = [one for one in self.lines if len(one) >= self.length]
        row = certified_row(query, fitting, self.normalize)
        return row[row.size - self.distances.shape[1] :]  # of two series those of the second

    @property
    def near(self) -> np.ndarray:
        """Which pairs of windows start within the exclusion of each other."""
        apart = np.abs(self.start[:, None] - self.start[None])
        return (self.series[:, None] == self.series[None]) & (apart <= self.exclusion)

    def admissible(self) -> np.ndarray:
        """Distances, infinite also where a pair is too near."""
        return np.where(self.near, np.inf, self.distances)

    def find(self, series: int, start: int) -> int:
        """The number of a window."""
        places = np.flatnonzero((self.series == series) & (self.start == start))
        check(len(places) == 1, "no such window", f"{start} of series {series}")
        return int(places[0])


def check_profile(
    name: str,
    line: Line,
    allowed: np.ndarray,
    distances: np.ndarray,
    indices: np.ndarray,
    relative: float = 1e-9,
    uncertain: float = 0.0,
) -> None:
    """Compare a profile, (n_windows, k), with the matrix of all distances.

    Squares of distances may be off by `uncertain` where it is chosen among them; the value of what
    was chosen may not.
    """
    rows = np.where(allowed, line.distances, np.inf)
    check(len(distances) == len(rows), f"{name}: shape", distances.shape)
    if uncertain:
        there = indices >= 0
        which = np.nonzero(there)[0], indices[there]
        close(f"{name} distances", distances[there], rows[which], line.slack[which], relative)
        with np.errstate(divide="ignore"):
            loose = np.minimum(math.sqrt(uncertain), uncertain / rows)
        line = line._replace(slack=line.slack + loose)
    nearby, slack = rows.min(axis=1, initial=np.inf), line.slack.max(axis=1, initial=0.0)
    close(f"{name} distances", distances[:, 0], nearby, slack, relative)
    nearest_rows(name, rows, line.slack, indices, distances, relative=relative)
    if line.lines and not uncertain:
        first_of_equals(name, rows, line.slack, indices, line.certified)


def single_uncertain(lines: list[np.ndarray], length: int, normalize: bool) -> float:
    """How far squares of distances may be off by which a join in float32 chooses.

    Sums of products along a diagonal lose a rounding of the largest of them at each step, and are
    divided by the deviations of two windows: a quiet one beside a loud one is lost.
    """
    each = [np.lib.stride_tricks.sliding_window_view(one, length) for one in lines]
    windows = np.concatenate(each)
    windows = windows[np.isfinite(windows).all(axis=1)]
    steps = 2.0**-22 * length * sum(map(len, lines))
    if not normalize:
        return steps * float(np.abs(windows).max(initial=0.0)) ** 2
    spread = np.ptp(windows, axis=1)
    spread = spread[spread > 0]
    ratio = float(spread.max() / spread.min()) if spread.size else 1.0
    return 2 * length * min(1.0, steps * ratio**2)


def norm_of(points: np.ndarray, normalize: bool) -> float:
    """Norm of a window as it is compared."""
    return math.sqrt(len(points)) if normalize else math.hypot(*points)


def norm_of_motif(motif: Any, normalize: bool) -> float:
    """Norm of the first window as it is compared, a mean over the channels of the motif."""
    values = motif.values[0]
    if values.ndim == 1:
        return norm_of(values, normalize)
    return float(np.mean([norm_of(values[channel], normalize) for channel in motif.channels]))


def check_motifs(
    lines: list[Line],
    motifs: list[Any],
    options: dict[str, Any],
    raw: list[np.ndarray],
    within: Callable[[Any, Line], Line] | None = None,
) -> None:
    """Follow a list of motifs (with all their occurrences), and see that none is better.

    `within` gives the distances in the channels of a motif.
    """
    n_motifs, radius, normalize = (
        options[key] for key in ("n_motifs", "radius_factor", "normalize")
    )
    masked = [np.zeros(len(line.start), bool) for line in lines]
    for rank, motif in enumerate(motifs):
        which = [line.length for line in lines].index(motif.window)
        line, mask = lines[which], masked[which]
        places = np.array(
            [line.find(*place) for place in zip(motif.series, motif.positions, strict=True)]
        )
        check(not mask[places].any(), "motif: among windows taken out", f"number {rank}")
        own = line if within is None else within(motif, line)
        D, slack = (
            own.distances,
            own.slack + 1e-9 * np.where(np.isfinite(own.distances), own.distances, 0),
        )
        first, second = places[:2]
        close("motif distances", motif.distances, D[first, places], slack[first, places], 0.0)
        pairs = np.where(mask[:, None] | mask[None] | line.near, np.inf, D)
        value = pairs[first, second]
        check(np.isfinite(value), "motif: no admissible pair", f"{first} {second}")
        for other, gone in zip(lines, masked, strict=True):
            bounds = other.distances + other.slack
            bounds = np.where(gone[:, None] | gone[None] | other.near, np.inf, bounds)
            if bounds.size:
                best = bounds.min() / math.sqrt(other.length) * (1 + 1e-9)
                mine = (value - slack[first, second]) / math.sqrt(line.length)
                check(best >= mine, "motif: not the nearest pair", f"number {rank}: {value}")
        distance = float(motif.distances[1])
        norm = norm_of_motif(motif, normalize)
        limit = radius * distance if distance > 0 else 1e-7 * norm
        close("motif radius", motif.radius, limit, 0.0, 1e-12)
        _check_occurrences(own, mask, places, limit, slack)
        if own.lines:
            _check_order(own, mask, places, motif, radius, pairs)
        for place, values in zip(places, motif.values, strict=True):
            start = line.start[place]
            same("values", values, raw[line.series[place]][..., start : start + line.length])
        for other, gone in zip(lines, masked, strict=True):
            for place in places:
                apart = np.abs(other.start - line.start[place])
                gone |= (other.series == line.series[place]) & (apart <= other.separation)
    if len(motifs) < n_motifs:
        for line, mask in zip(lines, masked, strict=True):
            pairs = np.where(mask[:, None] | mask[None] | line.near, np.inf, line.distances)
            check(not np.isfinite(pairs).any(), "motif: pairs are left", str(len(motifs)))


def _check_occurrences(
    line: Line, mask: np.ndarray, places: np.ndarray, limit: float, slack: np.ndarray
) -> None:
    first = places[0]
    row, error = line.distances[first], slack[first]
    check((row[places] - error[places] <= limit * (1 + 1e-12)).all(), "occurrences: too far")
    near = line.near[np.ix_(places, places)]
    check(near.sum() == len(places), "occurrences: too near to each other", places)
    steps = row[places][1:] + error[places][1:] - row[places][:-1] + error[places][:-1]
    check((steps >= 0).all(), "occurrences: not ascending", row[places])
    blocked = line.near[:, places] & (row[places] - error[places] <= (row + error)[:, None])
    free = ~mask & ~blocked.any(axis=1) & (row + error < limit)
    check(not free.any(), "occurrences: missing", f"{np.flatnonzero(free)} near {first}")


def _check_order(
    line: Line, mask: np.ndarray, places: np.ndarray, motif: Any, radius: float, pairs: np.ndarray
) -> None:
    """Of pairs and of occurrences as near as each other the first count, and nothing is rounded.

    `pairs` has the distances of admissible ones.
    """
    first, second = places[:2]
    finite = np.isfinite(line.distances[first])
    error = line.slack[first] + RELATIVE * np.where(finite, line.distances[first], 0.0)
    within = np.flatnonzero(~mask & (line.distances[first] - error <= motif.radius))
    away = np.sort(line.distances[first, within])
    if (np.diff(away) > 2 * error[within].max()).all():
        return
    row = line.certified(first)
    # the pair begins elsewhere where an earlier window beside it is equal
    for start in (first, *np.flatnonzero(line.near[first] & (row == 0) & ~mask)):
        row = np.where(mask, np.inf, line.certified(start))
        found = _nearest_apart(row, motif.radius, line.near)
        if found == places.tolist() and (row[places] == motif.distances).all():
            break
    else:
        raise Failure("occurrences: not the first of equals", f"{places} of {first}")
    if motif.distances[1] * radius != motif.radius:
        return
    value = motif.distances[1]
    slack = line.slack + RELATIVE * np.where(np.isfinite(pairs), pairs, 0.0)
    rivals = pairs - slack <= value + slack[start, second]
    rivals &= np.arange(len(rivals))[:, None] < np.arange(len(rivals))
    for one in np.flatnonzero(rivals.any(axis=1) & (np.arange(len(rivals)) < start))[:LOOKED_AT]:
        nearest = np.where(rivals[one], line.certified(one), np.inf).min()
        check(nearest > value, "motif: not the first of equal pairs", f"{start}, not {one}")


def _nearest_apart(row: np.ndarray, limit: float, near: np.ndarray) -> list[int]:
    """Windows within a distance, nearest first, but none near to one taken before."""
    found, free = [], row <= limit
    for place in np.argsort(row, kind="stable").tolist():
        if free[place]:
            found.append(place)
            free &= ~near[place]
    return found


def check_discords(lines: list[Line], discords: list[Any], n_discords: int, raw: list) -> None:
    """Follow a list of discords, and see that none is farther from its neighbour."""
    profiles = [line.admissible() for line in lines]
    values = [p.min(axis=1, initial=np.inf) for p in profiles]
    # the nearest neighbour may be any whose distance is within its slack
    errors = [
        line.slack.max(axis=1, initial=0.0) + 1e-9 * np.where(np.isfinite(value), value, 0)
        for line, value in zip(lines, values, strict=True)
    ]
    free = [np.isfinite(value) for value in values]
    for rank, discord in enumerate(discords):
        which = [line.length for line in lines].index(discord.window)
        line = lines[which]
        place = line.find(discord.series, discord.position)
        other = line.find(discord.neighbor_series, discord.neighbor)
        check(free[which][place], "discord: too near to an earlier one", f"number {rank}")
        close("discord distance", discord.distance, values[which][place], errors[which][place])
        away = profiles[which][place, other] - line.slack[place, other]
        check(
            away <= values[which][place] * (1 + 1e-9) + errors[which][place], "discord: neighbour"
        )
        mine = (values[which][place] + errors[which][place]) / math.sqrt(line.length)
        for one, value, error, left in zip(lines, values, errors, free, strict=True):
            if left.any():
                best = np.max((value - error)[left]) / math.sqrt(one.length)
                check(mine >= best, "discord: not the farthest", f"number {rank}: {mine} {best}")
            if one is line and line.lines:
                rivals = left & (value + error >= discord.distance)
                _check_first(line, place, other, discord.distance, rivals)
            apart = np.abs(one.start - line.start[place])
            left &= ~((one.series == line.series[place]) & (apart <= one.separation))
        start = line.start[place]
        same("values", discord.values, raw[line.series[place]][..., start : start + line.length])
    left = any(one.any() for one in free)
    check(len(discords) == n_discords or not left, "discord: too few", str(len(discords)))


def _check_first(
    line: Line, place: int, neighbor: int, distance: float, rivals: np.ndarray
) -> None:
    """Fail where an earlier window is as far from its neighbour as a discord, bit by bit."""
    row = np.where(line.near[place], np.inf, line.certified(place))
    check(row.min() == distance, "discord: distance by itself", f"{row.min()!r}, {distance!r}")
    check(row.argmin() == neighbor, "discord: neighbour is not the first", f"{row.argmin()}")
    for one in np.flatnonzero(rivals[:place])[:LOOKED_AT]:
        value = np.where(line.near[one], np.inf, line.certified(one)).min()
        check(value < distance, "discord: not the first of equals", f"{place}, not {one}")


def flat(name: str, records: list[Any]) -> dict[str, np.ndarray]:
    """Named tuples as named arrays."""
    found = {f"{name} number": np.int64(len(records))}
    for rank, record in enumerate(records):
        for field, value in record._asdict().items():
            if value is None:
                continue
            found[f"{name} {rank} {field}"] = np.asarray(value)
    return found


class _Windowed(Recipe):
    """A function of a line of points."""

    relations = ("scale", "forms")
    most = 150

    def draw_line(self, d: Draw, most: int, *, deep: bool = False) -> tuple[int, int]:
        """Points of a line and of a window; of several channels few are long, as each costs."""
        if not deep and d.chance(0.006):  # several cells of the grid, strips and bands
            n = d.whole(1030, 2100)
            return n, d.whole(1, 12) if d.chance(0.5) else d.whole(100, n // 3)
        if d.chance(0.02):
            length = d.whole(1, 12)
            return d.near_edge(1100 if not deep or d.chance(0.05) else 300) + length - 1, length
        n = d.size(1, most)
        length = min(n, d.size(1, max(1, min(n, 40))))
        return n, length

    def draw_options(self, d: Draw, length: int) -> dict[str, Any]:
        return {
            "window": length,
            "exclusion": d.amount(
                "exclusion", (0, 1, 2, 0.3, length // 2, length, 2 * length, 400), None
            ),
            "normalize": d.pick("normalize", (True, False), (3, 1)),
        }

    def draw_separation(self, d: Draw, length: int) -> Any:
        return d.amount("separation", (0, 1, 0.7, 1.0, length, 2 * length, 400), None)

    def possible(self, case: Case) -> bool:
        windows = np.atleast_1d(case.options["window"])
        lengths = np.concatenate([one.lengths for one in case.data.values()])
        return (
            super().possible(case)
            and lengths.min() > 0
            and (1 <= windows.min() and windows.max() <= lengths.min())
        )

    def relate_forms(self, case, found, call):
        same("another form of the data", call(plain(case)), found)

    def relate_scale(self, case, found, call, power):
        other = scaled(case, power)
        if other is None:
            return
        again = call(other)
        check(again.keys() == found.keys(), "scaled by a power of two: parts")
        for key in found:
            raw = key.endswith(" values") or (
                not case.options["normalize"] and key.endswith(("distances", "distance", "radius"))
            )
            wanted = np.ldexp(found[key], power) if raw else found[key]
            same(f"scaled by a power of two {key.split()[-1]}", again[key], wanted)


@contextmanager
def stopped_after(tiles: int) -> Iterator[None]:
    """Have limits of that many seconds end after so many tiles, of 16 by 16 windows."""
    clock = itertools.count()
    with ExitStack() as patches:
        for owner, name, value in (
            (timed, "monotonic", lambda: float(next(clock))),
            (Join, "cell", (16, 16)),
            (NumbaEngine, "tile_work", 1),
            (CupyEngine, "tile_work", 1),
        ):
            patches.enter_context(mock.patch.object(owner, name, value))
        yield


class Profile(_Windowed):
    name = "skts.motifs.matrix_profile"
    relations = (*_Windowed.relations, "stopped")

    def draw_relation(self, d: Draw) -> str | None:
        name = super().draw_relation(d)
        return f"stopped:{d.whole(1, 30)}" if name == "stopped" else name

    def relate_stopped(self, case, found, call, tiles):
        """What is stopped is an upper bound, and the same where the neighbour is."""
        options = case.options | {"time_limit": float(tiles)}
        with stopped_after(tiles):
            part = call(replace(case, options=options))
        share = float(part.pop("share"))
        check(0 < share <= 1, "stopped: share", share)
        if case.options["precision"] == "float32":
            return
        for name in (key.removesuffix("indices") for key in part if key.endswith("indices")):
            mine, exact = (
                [each[f"{name}{key}"] for key in ("distances", "indices")] for each in (part, found)
            )
            check((mine[0] >= exact[0]).all(), f"stopped: {name} less than the exact one")
            if case.options["k"] == 1:
                there = mine[1] == exact[1]
                same(f"stopped: {name} distances", mine[0][there], exact[0][there])
            if share == 1:
                same(f"stopped: {name} indices", mine[1], exact[1])

    def draw(self, d: Draw) -> Case:
        n, length = self.draw_line(d, 600 if d.chance(0.03) else self.most)
        with_b = d.pick("b", ("none", "some"), (2, 1)) == "some"
        shapes = [(1, n)] + [(1, d.size(length, max(length, self.most)))] * with_b
        if with_b and n <= self.most and d.chance(0.05):
            shapes[1] = (1, d.near_edge(4200) + length - 1)
        series = d.numbers(shapes, holes=True)
        data = {"a": d.form(series[:1], form="single", label=" a")}
        if with_b:
            data["b"] = d.form(series[1:], form="single", label=" b")
        options = self.draw_options(d, length) | {
            "k": d.pick("k", (1, 2, 3, 7), (4, 1, 1, 1)),
            "sides": not with_b and d.pick("sides", (False, True), (2, 1)),
            "precision": d.pick("precision", PRECISIONS, (6, 2, 1)),
            "time_limit": d.pick("time_limit", (None, 1e9), (4, 1)),
        }
        return Case(self.name, data, options, relation=self.draw_relation(d))

    def call(self, case: Case, how: How) -> dict:
        given = {name: one.give() for name, one in case.data.items()}
        found = self.target(**given, **case.given(), **how.options(self.target))
        parts = {"": found} | ({"left ": found.left, "right ": found.right} if found.left else {})
        return {
            f"{name}{key}": getattr(one, key)
            for name, one in parts.items()
            for key in ("distances", "indices")
        } | {"share": np.float64(found.share)}

    def check(self, case: Case, found: dict) -> None:
        length, options = case.options["window"], case.options
        check(found["share"] == 1, "profile: share", found["share"])
        lines = [one.lines[0] for one in case.data.values()]
        line = Line.of(lines, length, options)
        n = len(lines[0]) - length + 1
        if len(lines) == 2:
            part = np.s_[:n], np.s_[n:]
            line = line._replace(distances=line.distances[part], slack=line.slack[part])
            allowed = np.ones(line.distances.shape, bool)
        else:
            allowed = ~line.near
        places = np.arange(n)
        sides = {"": allowed}
        if options["sides"]:
            sides["left "] = allowed & (places[None] < places[:, None])
            sides["right "] = allowed & (places[None] > places[:, None])
        uncertain = 0.0
        if options["precision"] == "float32":
            uncertain = single_uncertain(lines, length, options["normalize"])
        for name, each in sides.items():
            distances, indices = found[f"{name}distances"], found[f"{name}indices"]
            shape = (n,) if options["k"] == 1 else (n, options["k"])
            check(distances.shape == shape, "profile: shape", f"{distances.shape}")
            parts = distances.reshape(n, -1), indices.reshape(n, -1)
            check_profile(f"{name}profile", line, each, *parts, uncertain=uncertain)


def _without_pairs(case: Case) -> bool:
    """Whether no two windows of the series may be compared."""
    line = Line.of(case.data["a"].lines, case.options["window"], case.options)
    return not np.isfinite(line.admissible()).any()


class Motifs(_Windowed):
    name = "skts.motifs.motifs"
    any_seed = True

    def refuses(self, case: Case) -> bool:
        return _without_pairs(case)

    def draw(self, d: Draw) -> Case:
        n, length = self.draw_line(d, self.most)
        series = d.numbers([(1, n)], holes=True)
        options = self.draw_options(d, length) | {
            "n_motifs": d.amount("n_motifs", (1, 2, 5, 20), 3),
            "separation": self.draw_separation(d, length),
            "max_matches": d.pick("max_matches", (None, 2, 3, 10), (3, 1, 1, 1)),
            "radius_factor": d.amount("radius_factor", (1.0, 1.5, 3.0, 10.0), 2.0),
            "algorithm": d.pick("algorithm", ("auto", "profile", "mk")),
            "n_references": d.amount("n_references", (1, 2, 30), 10),
            "random_state": d.pick("random_state", (0, 1)),
        }
        data, types = {"a": d.form(series, form="single", label=" a")}, {}
        draw_state(d, types)
        return Case(self.name, data, options, types, relation=self.draw_relation(d))

    def call(self, case: Case, how: How) -> dict:
        return flat("motif", self.records(case, how))

    def records(self, case: Case, how: How) -> list:
        return self.target(case.data["a"].give(), **case.given(), **how.options(self.target))

    def check(self, case: Case, found: dict) -> None:
        options = case.options
        if options["max_matches"] is not None:
            everything = replace(case, options=options | {"max_matches": None})
            whole = self.call(everything, How("numba"))
            _check_prefix(found, whole, options["max_matches"])
            found = whole
        lines = case.data["a"].lines
        line = Line.of(lines, options["window"], options)
        check_motifs([line], unflat("motif", found), options, lines)


class _Record:
    def __init__(self, **fields: Any) -> None:
        vars(self).update(fields)


def unflat(name: str, found: dict) -> list[Any]:
    """Records of `flat`."""
    records = []
    for rank in range(int(found[f"{name} number"])):
        prefix = f"{name} {rank} "
        fields = {k.removeprefix(prefix): v for k, v in found.items() if k.startswith(prefix)}
        records.append(_Record(**{k: v if v.ndim else v.item() for k, v in fields.items()}))
    return records


def _check_prefix(found: dict, whole: dict, most: int) -> None:
    """Fewer occurrences are the first of all."""
    check(found.keys() == whole.keys(), "max_matches: other motifs")
    for key, value in found.items():
        wanted = whole[key]
        several = key.endswith(("positions", "distances", "values", "series")) and value.ndim
        same("max_matches", value, wanted[:most] if several else wanted)


class Discords(_Windowed):
    name = "skts.motifs.discords"

    def refuses(self, case: Case) -> bool:
        return _without_pairs(case)

    def draw(self, d: Draw) -> Case:
        n, length = self.draw_line(d, self.most)
        series = d.numbers([(1, n)], holes=True)
        options = self.draw_options(d, length)
        options["n_discords"] = d.amount("n_discords", (1, 2, 5, 50), 3)
        options["separation"] = self.draw_separation(d, length)
        data = {"a": d.form(series, form="single", label=" a")}
        return Case(self.name, data, options, relation=self.draw_relation(d))

    def call(self, case: Case, how: How) -> dict:
        given = case.data["a"].give()
        return flat("discord", self.target(given, **case.given(), **how.options(self.target)))

    def check(self, case: Case, found: dict) -> None:
        lines, length = case.data["a"].lines, case.options["window"]
        line = Line.of(lines, length, case.options)
        check_discords([line], unflat("discord", found), case.options["n_discords"], lines)


def window_distances(
    points: np.ndarray, x: np.ndarray, options: dict
) -> tuple[np.ndarray, np.ndarray]:
    """Distances of one window to all of a series, and how far they may be off."""
    power = oracle.plane([points, x[np.isfinite(x)]])
    one, other = (oracle.Windows.of(v, len(points), power) for v in (points, x))
    return oracle.pair_distances(one, other, options["normalize"])


class Finder(_Windowed):
    """The estimator: many series, several lengths, and all methods."""

    name = "skts.MotifFinder"
    any_seed = True
    methods = (
        "fit",
        "fit_transform",
        "get_feature_names_out",
        "predict",
        "set_output",
        "transform",
        "update",
    )
    relations = ("scale", "forms", "update", "alone", "output", "stopped")

    def draw_relation(self, d: Draw) -> str | None:
        name = super().draw_relation(d)
        return f"stopped:{d.whole(1, 30)}" if name == "stopped" else name

    def relate_stopped(self, case, found, call, tiles):
        """Profiles that are stopped are upper bounds, and the best motif is as good as they say."""
        options = case.options | {"time_limit": float(tiles)}
        if "no motif" in found or options["algorithm"] == "mk":
            return
        try:
            with stopped_after(tiles):
                part = call(replace(case, options=options))
        except Failure as failure:
            if "no motif was found among the pairs that were compared" in str(failure):
                return
            raise
        if "no motif" in part:
            return
        shares = np.atleast_1d(part.pop("share"))
        check((shares > 0).all() and (shares <= 1).all(), "stopped: share", shares)
        for key in (key for key in part if key.endswith(" distances") and "profile_" in key):
            check((part[key] >= found[key]).all(), f"stopped: {key} less than the exact one")
            if (shares == 1).all():
                same(f"stopped: {key}", part[key], found[key])

    @property
    def defaults(self) -> dict[str, Any]:
        return super().defaults | {
            "update.points": 0,
            "update.series": -1,
            "update.max_points": None,
        }

    def draw(self, d: Draw) -> Case:
        count = d.pick("series", (1, 2, 4), (3, 2, 1))
        most = self.most // count
        lengths = [d.size(1, most) for _ in range(count)]
        if d.chance(0.01):
            lengths[-1] = d.near_edge(600)
        length = min(*lengths, *lengths, d.size(1, 24))
        holes = d.numbers(
            [(1, n) for n in (*lengths, *[d.size(length, 60) for _ in range(2)])], holes=True
        )
        options = self.draw_options(d, length)
        how = d.pick("window", ("points", "several", "fraction", "auto"), (4, 1, 1, 1))
        if how == "several":
            options["window"] = sorted({length, max(1, length // 2), max(1, length - 1)})
            if d.chance(0.5):
                options["window"] = options["window"][::-1]
        elif how == "fraction":
            options["window"] = round(float(d.rng.uniform(0.05, 0.5)), 3)
        elif how == "auto":
            options["window"] = "auto"
        algorithm = d.pick("algorithm", ("auto", "profile", "mk"))
        options |= {
            "n_motifs": d.amount("n_motifs", (1, 2, 6), 3),
            "separation": self.draw_separation(d, length),
            "max_matches": d.pick("max_matches", (None, 2, 10), (4, 1, 1)),
            "radius_factor": d.amount("radius_factor", (1.0, 1.5, 3.0, 10.0), 2.0),
            "n_discords": 0 if algorithm == "mk" else d.amount("n_discords", (1, 2, 5), 0),
            "left_right": algorithm != "mk" and d.pick("left_right", (False, True), (2, 1)),
            "algorithm": algorithm,
            "n_references": d.amount("n_references", (1, 2, 30), 10),
            "random_state": d.pick("random_state", (0, 1)),
            "time_limit": d.pick("time_limit", (None, None if algorithm == "mk" else 1e9), (4, 1)),
            "precision": d.pick("precision", PRECISIONS[:2], (3, 1)),
            "update.series": d.pick("update.series", (-1, 0)),
            "update.points": d.pick("update.points", (0, 1, 2, 9)),
            # how many older points leave meanwhile
            "update.max_points": d.pick("update.max_points", (None, 1, 4, 30)),
        }
        X, types = d.form(holes[:count], label=" X", spare=False), {}
        draw_state(d, types)
        Q = Sample(tuple(holes[count:]))
        return Case(self.name, {"X": X, "Q": Q}, options, types, relation=self.draw_relation(d))

    def possible(self, case: Case) -> bool:
        if not Recipe.possible(self, case):
            return False
        lengths = case.data["X"].lengths
        window = case.options["window"]
        numbers = [] if isinstance(window, str | float) else np.atleast_1d(window).tolist()
        return (
            lengths.min() > 0
            and all(1 <= one <= lengths.max() for one in numbers)
            and (case.data["Q"].lengths.min() > 0)
        )

    def windows(self, case: Case) -> list[int]:
        window = case.options["window"]
        if isinstance(window, float):
            shortest = min(len(x) for x in self.lines(case))
            return [max(1, math.ceil(window * shortest - 1e-9))]
        return list(np.atleast_1d(window)) if not isinstance(window, str) else []

    def lines(self, case: Case) -> list[np.ndarray]:
        """The series that `fit` sees: padding with NaN is a gap here."""
        X = case.data["X"]
        if X.form != "padded":
            return X.lines
        width = X.lengths.max()
        return [np.concatenate([x, np.full(width - len(x), np.nan)]) for x in X.lines]

    def refuses(self, case: Case) -> bool:
        lines, windows = self.lines(case), self.windows(case)
        for length in windows or [min(len(x) for x in lines)]:
            line = Line.of(lines, int(length), case.options)
            if np.isfinite(line.admissible()).any():
                return False
        return bool(windows)

    def model(self, case: Case, how: How) -> Any:
        options = {k: v for k, v in case.given().items() if "." not in k}
        return self.target(**options, **how.options(self.target))

    def call(self, case: Case, how: How) -> dict:
        X = case.data["X"].give()
        model = self.model(case, how)
        try:
            model.fit(X)
        except ValueError as error:
            # "auto" may choose a window that leaves no pair
            if case.options["window"] == "auto" and "no motif" in str(error):
                return {"no motif": np.array(True)}
            raise
        found = self.state(model)
        longest = max(motif.window for motif in model.motifs_)
        fitting = [x for x in self.queries(case) if x.shape[-1] >= longest]
        if fitting:
            found["transform"] = model.transform(fitting)
            found["predict"] = model.predict(fitting)
            found["names"] = np.array(model.get_feature_names_out(), str)
            if case.relation == "output":
                check_output(model, None, None, fitting, found["transform"], found["predict"])
        return found

    def state(self, model: Any) -> dict:
        found = flat("motif", model.motifs_) | flat("discord", model.discords_)
        found["window"] = np.asarray(model.window_)
        if hasattr(model, "profile_"):
            found["share"] = np.array(model.share_)
            several = isinstance(model.profile_, list)
            for k, _ in enumerate(model.profile_ if several else [0]):
                for key in ("profile_", "profile_index_", "profile_series_"):
                    value = getattr(model, key)
                    found[f"{key} {k} distances" if key == "profile_" else f"{key} {k}"] = (
                        value[k] if several else value
                    )
                for side in ("left", "right"):
                    if hasattr(model, f"{side}_profile_"):
                        record = getattr(model, f"{side}_profile_")
                        for field, value in (record[k] if several else record)._asdict().items():
                            found[f"{side} {k} {field}"] = value
        return found

    def check(self, case: Case, found: dict) -> None:
        if "no motif" in found:
            return
        if case.options["time_limit"] in (None, 1e9):
            check(np.all(found.get("share", 1.0) == 1), "share_", str(found.get("share")))
        options, raw = case.options, self.lines(case)
        lengths = np.atleast_1d(found["window"]).tolist()
        if options["window"] != "auto":
            same("window_", lengths, [int(one) for one in self.windows(case)])
        lines = [Line.of(raw, length, options) for length in lengths]
        if options["max_matches"] is not None:
            everything = replace(case, options=options | {"max_matches": None})
            whole = self.call(everything, How("numba"))
            keys = [key for key in found if key.startswith("motif")]
            _check_prefix(
                {k: found[k] for k in keys},
                {k: v for k, v in whole.items() if k.startswith("motif")},
                options["max_matches"],
            )
        else:
            whole = found
        check_motifs(lines, unflat("motif", whole), options, raw)
        check_discords(lines, unflat("discord", found), options["n_discords"], raw)
        for k, line in enumerate(lines):
            if f"profile_ {k} distances" in found:
                self._check_profiles(k, line, found, len(raw))
        if "transform" in found:
            self._check_queries(case, found)

    def _check_profiles(self, k: int, line: Line, found: dict, count: int) -> None:
        place = np.full((count, int(line.start.max(initial=-1)) + 2), -1)
        place[line.series, line.start] = np.arange(len(line.start))
        order = np.arange(len(line.start))
        sides = {
            "": (
                found[f"profile_ {k} distances"],
                found[f"profile_index_ {k}"],
                found[f"profile_series_ {k}"],
                ~line.near,
            )
        }
        for side, earlier in (
            ("left", order[None] < order[:, None]),
            ("right", order[None] > order[:, None]),
        ):
            if f"{side} {k} distances" in found:
                keys = (f"{side} {k} {field}" for field in ("distances", "indices", "series"))
                sides[side] = (*(found[key] for key in keys), ~line.near & earlier)
        for name, (distances, starts, series, allowed) in sides.items():
            inside = line.series, line.start
            outside = np.ones(distances.shape, bool)
            outside[inside] = False
            check(np.isinf(distances[outside]).all(), "profile_: beyond a series")
            s, t = series[inside], starts[inside]
            check((t < place.shape[1]).all() and (s < count).all(), "profile_: outside")
            indices = np.where((s < 0) | (t < 0), -1, place[s, t])
            check_profile(
                f"profile_ {name}", line, allowed, distances[inside][:, None], indices[:, None]
            )

    def _check_queries(self, case: Case, found: dict) -> None:
        motifs = unflat("motif", found)
        longest = max(motif.window for motif in motifs)
        fitting = [x for x in self.queries(case) if x.shape[-1] >= longest]
        wanted, slack = np.empty(found["transform"].shape), np.empty(found["transform"].shape)
        for i, x in enumerate(fitting):
            for j, motif in enumerate(motifs):
                wanted[i, j], slack[i, j] = self.nearest_window(motif, x, case.options)
        close("transform", found["transform"], wanted, slack)
        radii = np.array([motif.radius for motif in motifs])
        sizes = np.sqrt([motif.window for motif in motifs])
        normalize = case.options["normalize"]
        tie = 1e-7 * np.array([norm_of_motif(motif, normalize) for motif in motifs])
        distances = found["transform"]
        ranks = np.where(distances <= radii + tie, distances / sizes, np.inf)
        best = np.argmax(ranks <= ranks.min(axis=1, keepdims=True) + tie / sizes, axis=1)
        same("predict", found["predict"], np.where(np.isfinite(ranks).any(axis=1), best, -1))

    def queries(self, case: Case) -> list[np.ndarray]:
        """The series that are compared with motifs."""
        return case.data["Q"].lines

    def nearest_window(self, motif: Any, x: np.ndarray, options: dict) -> tuple[float, float]:
        """Distance of a series to a motif, and how far it may be off."""
        row, error = window_distances(motif.values[0], x, options)
        return row.min(), error.max()

    def relate_scale(self, case, found, call, power):
        if "no motif" not in found:
            # gaps at the end of padded series stay, also where data are given as a list
            gaps = case.but(X=Sample(tuple(x[None] for x in self.lines(case))))
            other = scaled(gaps, power)
            if other is None:
                return
            again = call(other)
            check(again.keys() == found.keys(), "scaled by a power of two: parts")
            for key in found:
                raw = key.endswith(" values") or (
                    not case.options["normalize"]
                    and key.endswith(("distances", "distance", "radius", "transform"))
                )
                wanted = np.ldexp(found[key], power) if raw else found[key]
                same(f"scaled by a power of two {key.split()[-1]}", again[key], wanted)

    def relate_forms(self, case, found, call):
        # the NaN of a padded series is a gap here: the series is as long as the longest
        if case.data["X"].form != "padded":
            super().relate_forms(case, found, call)

    def relate_update(self, case, found, call):
        """Points that follow later lead to the same as all at once."""
        points, row = case.options["update.points"], case.options["update.series"]
        lines = self.lines(case)
        if not points or "no motif" in found or isinstance(case.options["window"], str | float):
            return
        cut = lines[row][:-points]
        before, gone = [*lines], case.options["update.max_points"]
        before[row] = cut
        windows = self.windows(case)
        if len(cut) < 1 or max(map(len, before)) < max(windows):
            return
        smaller = case.but(X=Sample(tuple(x[None] for x in before)))
        if self.refuses(smaller):
            return
        keep = {}
        if gone is not None and len(lines[row]) >= max(windows):
            before[row] = np.concatenate([case.data["Q"].lines[0][:gone], cut])
            keep = {"max_points": len(lines[row])}
        model = self.model(case, How("numba")).fit(before)
        # the neighbours that are kept where points leave are used from the second update on
        for piece in np.split(lines[row][-points:], sorted({1, points // 2})):
            model.update(piece, series=row, **keep)
        wanted = {k: v for k, v in found.items() if k not in ("transform", "predict", "names")}
        same("update", self.state(model), wanted)

    def relate_alone(self, case, found, call):
        """A query alone has the distances that it has among others."""
        if "transform" not in found:
            return
        model = self.model(case, How("numba")).fit(case.data["X"].give())
        longest = max(motif.window for motif in model.motifs_)
        fitting = [x for x in self.queries(case) if x.shape[-1] >= longest]
        for row, x in enumerate(fitting):
            same("a query alone", model.transform([x]), found["transform"][[row]])
            same("a query alone", model.predict([x]), found["predict"][[row]])


class AllLengths(_Windowed):
    """Profiles of many lengths, each judged as one, and the best of each and of all."""

    name = "skts.motifs.pan_matrix_profile"
    most = 80
    #: Share of the cases whose lengths may be searched together.
    grouped = 0.08

    def draw(self, d: Draw) -> Case:
        n, count = d.size(1, self.most), d.pick("lengths", (1, 2, 3, 5, 9))
        grouped = d.pick("grouped", (False, True), (1 - self.grouped, self.grouped))
        if grouped:  # lengths that a GPU may search together, of a line that is long enough
            n = d.whole(100, 300) if d.chance(0.8) else d.whole(300, 600)
            # the longer the windows, the less a point more changes: fewer pairs are in question
            first = d.whole(n // 12, n // 5) if d.chance(0.7) else d.whole(8, n // 2)
            count, apart = d.whole(2, 6 if d.chance(0.7) else 18), d.whole(1, 1 + d.chance(0.2))
            lengths = [min(n, first + apart * more) for more in range(count)]
        elif d.chance(0.01):
            n = d.near_edge(600)
        if not grouped:
            lengths = [min(n, d.size(1, n)) for _ in range(count)]
            if d.chance(0.5):
                lengths = [min(n, lengths[0] + more) for more in range(count)]
        options = self.draw_options(d, lengths[0]) | {
            "windows": lengths,
            "time_limit": d.pick("time_limit", (None, 1e-12), (4, 1)),
            "on_interrupt": d.pick("on_interrupt", ("raise", "return")),
            "precision": d.pick("precision", ("auto", "float64")),
        }
        del options["window"]
        if grouped:
            options |= {"precision": "auto", "normalize": True, "time_limit": None}
        # a group needs neighbours that are alike
        alike = grouped and d.chance(0.8)
        kinds = ("walk", "sine", "beats") if alike else DIRT
        series = d.numbers([(1, n)], holes=not grouped or d.chance(0.1), kinds=kinds)
        data = {"a": d.form(series, form="single", label=" a")}
        return Case(self.name, data, options, relation=self.draw_relation(d))

    def possible(self, case: Case) -> bool:
        windows = case.options["windows"]
        size = case.data["a"].lengths.min()
        return Recipe.possible(self, case) and 1 <= min(windows) and max(windows) <= size

    def call(self, case: Case, how: How) -> dict:
        given = case.data["a"].give()
        found = self.target(given, **case.given(), **how.options(self.target))
        named = found._asdict()
        for name in ("motif", "discord"):
            pair = getattr(found, name)
            fields = {} if pair is None else pair._asdict()
            named |= {f"{name} {key}": np.asarray(value) for key, value in fields.items()}
        return named

    def check(self, case: Case, found: dict) -> None:
        options = case.options
        lines = case.data["a"].lines
        windows = sorted(set(options["windows"]))
        same("windows", found["windows"], np.array(windows))
        done = found["computed"].tolist()
        wanted = windows[:1] if options["time_limit"] else windows
        check(sorted(done) == wanted, "pan: lengths that are done", f"{done}")
        check(done[:2] == [windows[0], windows[-1]][: len(done)], "pan: order", f"{done}")
        n = len(lines[0]) - windows[0] + 1
        check(found["distances"].shape == (len(windows), n), "pan: shape")
        best: dict[str, list[tuple[float, int]]] = {"motif": [], "discord": []}
        for row, length in enumerate(windows):
            size = len(lines[0]) - length + 1 if length in done else 0
            distances, indices = found["distances"][row], found["indices"][row]
            check((distances[size:] == np.inf).all(), "pan: distances of no window")
            check((indices[size:] == -1).all(), "pan: neighbours of no window")
            if size:
                line = Line.of(lines, length, options)
                parts = distances[:size, None] * math.sqrt(2 * length), indices[:size, None]
                check_profile("pan", line, ~line.near, *parts)
            known = np.flatnonzero(indices >= 0)
            for name, choose in (("motif", np.argmin), ("discord", np.argmax)):
                value, pair = found[f"{name}_distances"][row], found[f"{name}_indices"][row]
                if not known.size:
                    check(value == np.inf and (pair == -1).all(), f"pan: {name} of nothing")
                    continue
                place = int(known[choose(distances[known])])
                close(f"pan: {name}", value, distances[place], 0.0, 1e-15)
                first = int(pair[0]) if name == "discord" else int(min(pair))
                # by values that are not rounded another time, the choice may differ by a rounding
                close(f"pan: {name} place", distances[first], value, 0.0, 1e-15)
                check(indices[first] == max(pair) or name == "discord", "pan: pair", f"{pair}")
                best[name].append((float(value), length))
        for name, sign in (("motif", 1), ("discord", -1)):
            if not best[name]:
                check(f"{name} window" not in found, f"pan: {name} of all")
                continue
            value, length = min((sign * one, length) for one, length in best[name])
            same(f"pan: {name} of all", found[f"{name} distance"], np.asarray(sign * value))
            same(f"pan: window of the {name}", found[f"{name} window"], np.asarray(length))
