"""Recipes of what follows from profiles: chains, consensus, MPdist, regimes, one query."""

from __future__ import annotations

import math

import numpy as np

from tests import reference_profiles

from .case import Case
from .compare import LOOKED_AT, check, close, same
from .draw import Draw
from .recipe import How, Recipe, points_of
from .recipes_anomalies import pairs_of
from .recipes_motifs import Line, _Windowed, certified_row, flat, unflat

#: Windows of a line with several nearest neighbours, of which the first is found for each.
SETTLED = 25


def bounds_of(distances: np.ndarray, slack: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """What distances are at least and at most; exact ones are both."""
    off = slack + 1e-9 * np.where(np.isfinite(distances), distances, 0.0) * (slack > 0)
    return distances - off, distances + off


def candidates(row: np.ndarray, slack: np.ndarray) -> np.ndarray:
    """Which places may be the nearest of a row: of exact ties the first alone."""
    low, high = bounds_of(row, slack)
    best = high.min(initial=np.inf)
    places = np.flatnonzero(np.isfinite(row) & (low <= best))
    exact = places[(low == high)[places]]
    return places[~((low == high)[places] & (places > exact.min(initial=row.size)))]


class _OneSeries(_Windowed):
    """A function of one series."""

    def line_of(self, case: Case) -> Line:
        return Line.of(case.data["a"].lines, case.options["window"], case.options)

    def neighbors(self, line: Line, side: str) -> list[np.ndarray]:
        """Of each window the places that may be its nearest neighbour."""
        i, j = np.indices(line.distances.shape)
        allowed = ~line.near & {"earlier": j < i, "later": j > i, "both": i != j}[side]
        rows = np.where(allowed, line.distances, np.inf)
        found = [candidates(row, slack) for row, slack in zip(rows, line.slack, strict=True)]
        several = [i for i, places in enumerate(found) if places.size > 1]
        for i in several if len(several) <= SETTLED else ():
            found[i] = np.array([np.where(allowed[i], line.certified(i), np.inf).argmin()])
        return found


class Chains(_OneSeries):
    name = "skts.motifs.motif_chains"

    def draw(self, d: Draw) -> Case:
        n, length = self.draw_line(d, self.most)
        series = d.numbers([(1, n)], holes=True)
        anchored = d.pick("anchor", ("none", "some"), (3, 1)) == "some"
        options = self.draw_options(d, length) | {
            "anchor": d.whole(0, n - length) if anchored else None,
            "min_length": d.amount("min_length", (3, 5), 2),
        }
        data = {"a": d.form(series, form="single", label=" a")}
        return Case(self.name, data, options, relation=self.draw_relation(d))

    def possible(self, case: Case) -> bool:
        if not super().possible(case):
            return False
        number = int(case.data["a"].lengths[0]) - case.options["window"] + 1
        return (case.options["anchor"] or 0) < number

    def call(self, case: Case, how: How) -> dict:
        given = case.data["a"].give()
        return flat("chain", self.target(given, **case.given(), **how.options(self.target)))

    def check(self, case: Case, found: dict) -> None:
        line, options = self.line_of(case), case.options
        later, earlier = self.neighbors(line, "later"), self.neighbors(line, "earlier")
        chains = [one.positions.tolist() for one in unflat("chain", found)]
        steps = [one.distances for one in unflat("chain", found)]
        flat_places = [place for chain in chains for place in chain]
        check(len(set(flat_places)) == len(flat_places), "chains: a window twice", chains)
        ranks = [(-len(chain), chain[0]) for chain in chains]
        check(ranks == sorted(ranks), "chains: order", ranks)
        check(all(len(chain) >= options["min_length"] for chain in chains), "chains: too short")
        links = {}
        for chain, distances in zip(chains, steps, strict=True):
            before, after = chain[:-1], chain[1:]
            wanted, slack = line.distances[before, after], line.slack[before, after]
            close("chain distances", distances, wanted, slack)
            links |= dict(zip(before, after, strict=True))
        for i, j in links.items():
            check(j in later[i] and i in earlier[j], "chains: no link", f"{i} {j}")
        sure = {
            i: int(places[0])
            for i, places in enumerate(later)
            if places.size == 1 and earlier[places[0]].tolist() == [i]
        }
        if options["anchor"] is not None:
            check(len(chains) <= 1, "anchor: chains")
            check(not chains or chains[0][0] == options["anchor"], "anchor: begins elsewhere")
            chain = [options["anchor"]]
            while chain[-1] in sure:
                chain.append(sure[chain[-1]])
            got = chains[0] if chains else chain[:1]
            if len(chain) >= options["min_length"]:
                check(got[: len(chain)] == chain, "anchor: chain too short", f"{got} {chain}")
            return
        if options["min_length"] == 2:
            check(sure.items() <= links.items(), "chains: missing", f"{sure} {links}")
        for chain in chains:
            check(chain[0] not in sure.values(), "chains: begins late", chain)
            check(chain[-1] not in sure, "chains: ends early", chain)


class Regimes(_OneSeries):
    name = "skts.motifs.segment"

    def draw(self, d: Draw) -> Case:
        n, length = self.draw_line(d, self.most)
        series = d.numbers([(1, n)], holes=True)
        options = self.draw_options(d, length) | {
            "n_regimes": d.amount("n_regimes", (1, 3, 10), 2),
            "separation": d.amount("separation", (0, 1, 3, length, 400), None),
        }
        data = {"a": d.form(series, form="single", label=" a")}
        return Case(self.name, data, options, relation=self.draw_relation(d))

    def call(self, case: Case, how: How) -> dict:
        given = case.data["a"].give()
        found = self.target(given, **case.given(), **how.options(self.target))
        return found._asdict() | {"window": np.array(found.window)}

    def check(self, case: Case, found: dict) -> None:
        options, line = case.options, self.line_of(case)
        apart = options["separation"]
        apart = 5 * line.length if apart is None else apart
        nearest, curve = self.neighbors(line, "both"), found["curve"]
        check(curve.shape == (len(nearest),), "curve: shape", curve.shape)
        check(((curve >= 0) & (curve <= 1)).all(), "curve: outside of 0 to 1")
        if all(places.size <= 1 for places in nearest):
            sure = [(0.0, int(places[0]) if places.size else -1) for places in nearest]
            same("curve", curve, np.array(reference_profiles.arc_curve(sure, apart)))
        wanted = reference_profiles.boundaries(curve.tolist(), options["n_regimes"] - 1, apart)
        same("boundaries", found["boundaries"], np.array(wanted, np.int64))


class MPdist(_Windowed):
    name = "skts.motifs.mpdist"

    def draw(self, d: Draw) -> Case:
        n, length = self.draw_line(d, self.most)
        other = d.size(length, max(length, self.most))
        if n <= self.most and d.chance(0.05):
            other = d.near_edge(4200) + length - 1
        series = d.numbers([(1, n), (1, other)], holes=True)
        options = {
            "window": length,
            "normalize": d.pick("normalize", (True, False), (3, 1)),
            "k": d.amount("k", (1, 2, 7, 0.01, 0.5, 1.0, 1000), 0.05),
        }
        data = {
            name: d.form([one], form="single", label=f" {name}")
            for name, one in zip("ab", series, strict=True)
        }
        return Case(self.name, data, options, relation=self.draw_relation(d))

    def call(self, case: Case, how: How) -> dict:
        given = [case.data[name].give() for name in "ab"]
        return {
            "distance": np.float64(self.target(*given, **case.given(), **how.options(self.target)))
        }

    def check(self, case: Case, found: dict) -> None:
        options = case.options
        a, b = (case.data[name].lines[0] for name in "ab")
        low, high = bounds_of(*pairs_of(a, [b], options["window"], options["normalize"]))
        ends = []
        for one in (low, high):
            nearest = np.concatenate([one.min(axis=0), one.min(axis=1)])
            ends.append(np.sort(nearest[np.isfinite(nearest)]))
        value = found["distance"]
        if ends[0].size == 0:
            check(value == np.inf, "mpdist: nothing to compare", value)
            return
        rank = max(1, points_of(options["k"], len(a) + len(b), 0.05))
        least, most = (one[min(rank, one.size) - 1] for one in ends)
        check(least <= value <= most, "mpdist", f"{value!r} not from {least!r} to {most!r}")


class Consensus(_Windowed):
    name = "skts.motifs.consensus_motif"

    def draw(self, d: Draw) -> Case:
        count = d.pick("n_samples", (2, 3, 5), (3, 2, 1))
        lengths = [d.size(1, 120 // count) for _ in range(count)]
        if d.chance(0.02):
            lengths[-1] = d.near_edge(1100)
        length = min(*lengths, d.size(1, 30))
        options = {
            "window": length,
            "normalize": d.pick("normalize", (True, False), (3, 1)),
        }
        X = d.form(d.numbers([(1, n) for n in lengths], holes=True), form="list", label=" X")
        return Case(self.name, {"X": X}, options, relation=self.draw_relation(d))

    def possible(self, case: Case) -> bool:
        return super().possible(case) and len(case.data["X"]) > 1

    def refuses(self, case: Case) -> bool:
        length = case.options["window"]
        cut = np.lib.stride_tricks.sliding_window_view
        return not all(np.isfinite(cut(x, length)).all(axis=1).any() for x in case.data["X"].lines)

    def call(self, case: Case, how: How) -> dict:
        given = case.data["X"].give()
        found = self.target(given, **case.given(), **how.options(self.target))
        return {f"consensus {key}": np.asarray(value) for key, value in found._asdict().items()}

    def check(self, case: Case, found: dict) -> None:
        options, lines = case.options, case.data["X"].lines
        length, normalize = options["window"], options["normalize"]
        found = {key.removeprefix("consensus "): value for key, value in found.items()}
        row, place = int(found["series"]), int(found["position"])
        best, least = math.inf, []
        for k, x in enumerate(lines):
            others = [other for h, other in enumerate(lines) if h != k]
            sizes = np.cumsum([len(other) - length + 1 for other in others])[:-1]
            parts = (
                np.split(one, sizes, axis=1)
                for one in bounds_of(*pairs_of(x, others, length, normalize))
            )
            low, high = ([one.min(axis=1) for one in side] for side in parts)
            upper = np.max(high, axis=0)
            best = min(best, float(upper.min()))
            least.append(np.max(low, axis=0))
            if k == row:
                mine, ceiling = np.max(low, axis=0)[place], upper[place]
        radius = float(found["radius"])
        check(radius <= best, "consensus: not the least radius", f"{radius!r} {best!r}")
        check(mine <= radius <= ceiling, "consensus: radius", f"{mine!r} {radius!r} {ceiling!r}")
        check(radius == found["distances"].max(initial=0.0), "consensus: not the worst match")
        check(found["positions"][row] == place and found["distances"][row] == 0, "consensus: own")
        self._check_first(lines, length, normalize, least, found)
        for k, x in enumerate(lines):
            start = found["positions"][k]
            same("consensus values", found["values"][k], x[start : start + length])
            if k != row:
                distances, slack = pairs_of(lines[row], [x], length, normalize)
                close(
                    "consensus distances", found["distances"][k],
                    distances[place, start], slack[place, start],
                )  # fmt: skip
                check(
                    start in candidates(distances[place], slack[place]),
                    "consensus: not the nearest",
                )

    @staticmethod
    def _check_first(
        lines: list[np.ndarray], length: int, normalize: bool, low: list[np.ndarray], found: dict
    ) -> None:
        """Of windows of equal radius the first counts, and of its matches in a series.

        `low` has, for each series, what the radius of each window is at least.
        """

        def rows(k: int, place: int) -> list[np.ndarray]:
            window = lines[k][place : place + length]
            return [certified_row(window, [one], normalize) for one in lines]

        own, place, radius = (found[key] for key in ("series", "position", "radius"))
        for k, row in enumerate(rows(int(own), int(place))):
            if k != own:
                same("consensus: first of equal matches", found["positions"][k], row.argmin())
        earlier = [
            (k, int(one))
            for k, least in enumerate(low[: int(own) + 1])
            for one in np.flatnonzero(least <= radius)
            if (k, one) < (own, place)
        ]
        for k, one in earlier[:LOOKED_AT]:
            away = max(row.min() for h, row in enumerate(rows(k, one)) if h != k)
            check(away > radius, "consensus: not the first of equals", f"{k} {one} at {away}")


class DistanceProfile(_Windowed):
    name = "skts.motifs.distance_profile"

    def draw(self, d: Draw) -> Case:
        count = d.pick("series", ("single", 1, 2, 3), (3, 1, 1, 1))
        lengths = [d.size(1, self.most) for _ in range(1 if count == "single" else count)]
        length = min(*lengths, d.size(1, 40), 10**6)
        if d.chance(0.05):
            lengths[-1] = d.near_edge(20_000) + length - 1
        shapes = [(1, n) for n in lengths]
        series = d.numbers([*shapes, (1, length)], holes=True)
        form = "single" if count == "single" else "list"
        data = {
            "series": d.form(series[:-1], form=form, label=" series", spare=False),
            "query": d.form(series[-1:], form="single", label=" query"),
        }
        options = {"normalize": d.pick("normalize", (True, False), (3, 1))}
        return Case(self.name, data, options, relation=self.draw_relation(d))

    def possible(self, case: Case) -> bool:
        lengths = case.data["series"].lengths, case.data["query"].lengths
        return Recipe.possible(self, case) and 1 <= lengths[1].min() <= lengths[0].min()

    def call(self, case: Case, how: How) -> dict:
        given = {name: one.give() for name, one in case.data.items()}
        return {"distances": self.target(**given, **case.given(), **how.options(self.target))}

    def check(self, case: Case, found: dict) -> None:
        query, series = case.data["query"].lines[0], case.data["series"]
        rows = found["distances"]
        if series.form == "single":
            check(rows.ndim == 1, "distance profile: shape", rows.shape)
            rows = rows[None]
        normalize = case.options["normalize"]
        for row, x in zip(rows, series.lines, strict=True):
            wanted, slack = pairs_of(query, [x], len(query), normalize)
            count = wanted.shape[1]
            close("distance profile", row[:count], wanted[0], slack[0])
            check(np.isinf(row[count:]).all(), "distance profile: beyond a series")
