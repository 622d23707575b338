"""Random cases: shapes at edges, dirty numbers, every form in which data may be handed over."""

from __future__ import annotations

import bisect
import itertools
import zlib
from collections.abc import Sequence
from typing import Any

import numpy as np

from .case import LAYOUTS, Sample
from .edges import near_edge

__all__ = ["DIRT", "Draw", "domains"]

#: Every discrete option that was drawn: its values, by recipe and option.
domains: dict[str, dict[str, dict[str, None]]] = {}

#: Lengths at the edges of lanes, tiles and strips.
EDGES = (31, 32, 33, 63, 64, 65, 127, 128, 129, 255, 256, 257, 511, 512, 513)
DIRT = (
    *("normal", "walk", "sine", "integers", "ties", "binary", "constant", "near-constant"),
    *("ulps", "copies", "words", "beats", "spikes", "loud", "zeros", "levels", "mixed"),
)
EXACT = ("integers", "binary", "zeros")
OFFSETS = (1e3, 1e5, 1e6, 1e9, 1e12, -1e3, -1e6, -1e9, -1e12)
#: Share of the cases whose series are crowded; theirs have so many points or windows have fewer.
CROWDED, FEW, MANY = 0.08, 40, 150
HOLES = ("none", "one", "gap", "many", "infinite")


class Draw:
    """Random choices of one case, all from a seed, a number and a name.

    Attributes
    ----------
    rng : Generator
        The random numbers.
    labels : dict of str to str
        The discrete choices made so far, for the report.
    crowded : bool
        Whether series are of many words, and long enough for many windows that are near to one.
    """

    def __init__(self, seed: int, number: int, name: str) -> None:
        self.name = name
        self.rng = np.random.default_rng([seed, number, zlib.crc32(name.encode())])
        self.labels: dict[str, str] = {}
        self.crowded = self.chance(CROWDED)

    def pick(self, option: str, values: Sequence[Any], weights: Sequence[float] = ()) -> Any:
        """One of some values, noted under the name of an option."""
        known = domains.setdefault(self.name, {}).setdefault(option, {})
        for value in values:
            known.setdefault(repr(value))
        if weights:
            sums = list(itertools.accumulate(weights))
            place = bisect.bisect(sums, self.rng.random() * sums[-1], hi=len(sums) - 1)
        else:
            place = int(self.rng.integers(len(values)))
        value = values[place]
        self.labels[option] = repr(value)
        return value

    def chance(self, share: float) -> bool:
        """Whether, in this share of the cases."""
        return bool(self.rng.random() < share)

    def whole(self, low: int, high: int) -> int:
        """An integer, both ends included."""
        return int(self.rng.integers(low, max(low, high) + 1))

    def size(self, least: int, most: int) -> int:
        """A length: often tiny, sometimes at an edge, rarely large."""
        if self.crowded:
            if most > FEW:
                return self.whole(max(least, FEW), min(most, MANY))
            return self.whole(max(least, min(most, 8)), min(most, 20))
        kind = self.rng.random()
        if kind < 0.25:
            return min(most, self.whole(least, max(least, 5)))
        if kind < 0.8:
            return self.whole(least, min(most, 24))
        edges = [edge for edge in EDGES if least <= edge <= most]
        near = [edge for edge in edges if edge <= 65] if kind < 0.96 else edges
        if not (near or edges) or self.chance(0.2):
            return self.whole(least, min(most, 70) if near else most)
        return int(self.rng.choice(near or edges))

    def long(self, most: int = 1700) -> int:
        """A length of several strips of lanes, or of one that is wide."""
        if self.chance(0.2):
            return most
        near = most // 2 if self.chance(0.8) else most
        return self.whole(min(129, near), near)

    def near_edge(self, most: int) -> int:
        """A number of windows around the size of a block; seldom around a large one."""
        return near_edge(self.rng, 32, most if self.chance(0.2) else min(most, 600))

    def amount(self, option: str, values: Sequence[Any], default: Any) -> Any:
        """A number of some kind, noted as "default" or "other" only."""
        known = domains.setdefault(self.name, {}).setdefault(option, {})
        for label in ("default", "other"):
            known.setdefault(label)
        value = default if self.chance(0.4) else values[self.whole(0, len(values) - 1)]
        self.labels[option] = "default" if value == default else "other"
        return value

    # -- numbers

    def points(self, kind: str, n: int) -> np.ndarray:
        """Points of one channel."""
        rng = self.rng
        if kind == "mixed":
            kind = str(rng.choice([each for each in DIRT if each != "mixed"]))
        if kind == "walk":
            return np.cumsum(rng.normal(size=n))
        if kind == "sine":
            return np.sin(np.arange(n) * rng.uniform(0.1, 2) + rng.uniform(0, 6)) + (
                0.01 * rng.normal(size=n)
            )
        if kind == "integers":
            return rng.integers(-9, 10, n).astype(float)
        if kind == "ties":
            return np.round(rng.normal(size=n) * 2) / 4 + 0.1
        if kind == "binary":
            return rng.integers(0, 2, n).astype(float)
        if kind == "constant":
            return np.full(n, rng.normal())
        if kind == "near-constant":
            return rng.normal() + rng.normal(size=n) * 10.0 ** -rng.integers(6, 13)
        if kind == "ulps":
            base = rng.normal()
            return base + rng.integers(-2, 3, n) * np.spacing(base)
        if kind == "copies":
            return self._copies(n)
        if kind == "words":
            return self._words(n)
        if kind == "beats":
            beat = rng.normal(size=self.whole(2, max(2, n // 3)))
            return np.resize(beat, n) + rng.normal(size=n) * 10.0 ** -rng.integers(1, 9)
        if kind == "spikes":
            points = rng.normal(size=n)
            points[rng.random(n) < 0.1] *= 10.0 ** rng.integers(2, 9)
            return points
        if kind == "loud":
            points = rng.normal(size=n)
            first = self.whole(0, n - 1)
            points[first : first + self.whole(1, n)] *= 10.0 ** rng.integers(2, 10)
            return points
        if kind == "zeros":
            return np.zeros(n)
        if kind == "levels":
            return np.repeat(rng.normal(size=n), rng.integers(1, 9, n))[:n]
        return rng.normal(size=n)

    def _copies(self, n: int) -> np.ndarray:
        """Noise in which pieces are repeated: as they are, or scaled and moved."""
        rng = self.rng
        points = rng.normal(size=n)
        for _ in range(self.whole(1, 4)):
            length = self.whole(1, max(1, n // 3))
            source, target = rng.integers(0, n - length + 1, 2)
            factor, level = (1.0, 0.0) if self.chance(0.5) else (rng.uniform(0.1, 9), rng.normal())
            points[target : target + length] = factor * points[source : source + length] + level
        return points

    def _words(self, n: int) -> np.ndarray:
        """Noise of few levels, in which words come again: beside, over, or apart from each other.

        Some have another point than the word. Many windows are exactly as far from another one as
        others, in all orders.
        """
        rng, step = self.rng, float(self.rng.choice([1.0, 0.5, 0.1]))
        points = step * rng.integers(0, self.whole(2, 4), n)
        longest = max(2, min(14, n // 3))
        words = [
            step * rng.integers(-2, 3, self.whole(2, longest)) for _ in range(self.whole(1, 3))
        ]
        place = n if self.chance(0.4) else self.whole(0, longest)
        while place < n:
            word = words[self.whole(0, len(words) - 1)].copy()
            if self.chance(0.3):
                word[self.whole(0, word.size - 1)] += step * rng.choice([-1, 1])
            word = word[: n - place]
            points[place : place + word.size] = word
            apart = (word.size, self.whole(1, word.size), self.whole(1, 4 * longest))
            place += int(rng.choice(apart))
        return points

    def numbers(
        self,
        shapes: Sequence[tuple[int, int]],
        *,
        holes: bool = False,
        kinds: Sequence[str] = DIRT,
        scales: bool = True,
    ) -> list[np.ndarray]:
        """Series of these shapes, dirty in one way or in several."""
        rng = self.rng
        weights = [kind == "words" for kind in kinds] if self.crowded and "words" in kinds else ()
        kind = self.pick("data", kinds, weights)
        series: list[np.ndarray] = []
        for shape in shapes:
            if series and self.chance(0.12):
                twin = series[self.whole(0, len(series) - 1)]
                if twin.shape == shape:
                    series.append(twin.copy())
                    continue
            series.append(np.stack([self.points(kind, shape[1]) for _ in range(shape[0])]))
        change = self.pick(
            "change", ("none", "offset", "offsets", "scale", "scales"), (5, 2, 1, 3 * scales, 1)
        )
        if change == "offset":
            level = rng.choice(OFFSETS)
            series = [one + level for one in series]
        elif change == "offsets":
            series = [one + rng.choice([0.0, *OFFSETS]) for one in series]
        elif change == "scale":
            power = int(rng.integers(-400, 401))
            series = [np.ldexp(one, power) for one in series]
        elif change == "scales":
            series = [np.ldexp(one, int(rng.integers(-30, 31))) for one in series]
        if holes:
            how = self.pick("holes", HOLES, (6, 1, 1, 1, 1))
            for one in series:
                self._pierce(one[0], how)
        return series

    def _pierce(self, points: np.ndarray, how: str) -> None:
        """Take points away."""
        n = points.size
        if how == "one":
            points[self.whole(0, n - 1)] = np.nan
        elif how == "gap":
            first = self.whole(0, n - 1)
            points[first : first + self.whole(1, max(1, n // 3))] = np.nan
        elif how == "many":
            points[self.rng.random(n) < 0.1] = np.nan
        elif how == "infinite":
            points[self.whole(0, n - 1)] = self.rng.choice([np.inf, -np.inf, np.nan])

    # -- forms

    def sample(
        self,
        shapes: Sequence[tuple[int, int]],
        *,
        form: str | None = None,
        label: str = "",
        spare: bool = True,
        **options: Any,
    ) -> Sample:
        """Series of these shapes in some form."""
        return self.form(self.numbers(shapes, **options), form=form, label=label, spare=spare)

    def form(
        self,
        series: list[np.ndarray],
        *,
        form: str | None = None,
        label: str = "",
        spare: bool = True,
    ) -> Sample:
        """Hand series over in some form, with values that it can hold.

        Padded arrays may be wider than all series, but where `spare` is false: there NaN is a gap,
        and the width means something.
        """
        equal = len({one.shape for one in series}) == 1
        if form is None:
            finite = all(np.isfinite(one).all() for one in series)
            forms = ["list"] + ["array", "array3d"] * equal + ["padded"] * finite
            forms += ["frame"] * (equal and len(series[0]) == 1)
            # frames of more channels than time points are refused
            forms += ["frames", "long"] * (len(series[0]) <= max(one.shape[1] for one in series))
            # a form that does not fit these shapes is not drawn, but counts as possible
            form = self.pick(f"form{label}", forms)
        dtype, series = self._type(series, label)
        if form == "padded" and not dtype.startswith("float"):
            form = "list"
        layout = "C"
        if form not in ("frame", "frames", "long"):
            layout = self.pick(f"layout{label}", LAYOUTS, (20, 2, 2, 2, 2, 1, 1, 1, 0.3))
        if form == "list" and layout == "nested" and (equal or len(series[0]) > 1):
            layout = "C"  # lists of lists are a list of series only where lengths differ
        wider = spare and form == "padded" and self.rng.random() < 0.4
        return Sample(tuple(series), form, dtype, layout, self.whole(1, 4) if wider else 0)

    def _type(self, series: list[np.ndarray], label: str) -> tuple[str, list[np.ndarray]]:
        """A type, and the series rounded to what it holds."""
        kinds = ("float64", "float32", "float16", "int64", "int32", "int8", "uint8", "bool")
        dtype = self.pick(f"dtype{label}", kinds, (30, 3, 1, 1, 1, 1, 1, 1))
        if dtype == "float64":
            return dtype, series
        with np.errstate(all="ignore"):
            if dtype.startswith("float"):
                cast = [one.astype(dtype).astype(np.float64) for one in series]
                same = all(
                    np.array_equal(np.isfinite(a), np.isfinite(b)) and (a.any() or not b.any())
                    for a, b in zip(cast, series, strict=True)
                )
                return (dtype, cast) if same else ("float64", series)
            if not all(np.isfinite(one).all() and np.abs(one).max() < 1e18 for one in series):
                return "float64", series
            cast = [np.round(one).astype(np.int64).astype(dtype) for one in series]
        return dtype, [one.astype(np.float64) for one in cast]
