"""Recipes of `skts.motifs` for series of several channels; those of one channel come first."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np

from .case import Case, Sample
from .channel_lines import (
    can_count,
    draw_channels,
    draw_counting,
    each_line,
    mean_line,
    of_channels,
)
from .compare import check, same
from .draw import Draw
from .recipe import How
from .recipes_motifs import (
    Discords,
    Finder,
    Line,
    Motifs,
    Profile,
    _check_prefix,
    check_discords,
    check_motifs,
    check_profile,
    unflat,
    window_distances,
)

#: Channels of a series.
DEPTHS = (1, 2, 3, 7)
#: Those of a profile, and how often: walks of many channels have instances of their own.
MANY_DEPTHS = (*DEPTHS, 4, 6, 8, 16, 32, 128)
OFTEN = (8, 2, 2, 1, 0.4, 0.2, 0.4, 0.1, 0.1, 0.2)
#: Numbers of channels of a case that are judged, about; of fewer channels all.
JUDGED = 12


class ChannelProfile(Profile):
    """The function of one channel or several."""

    name = "skts.motifs.matrix_profile"

    def draw(self, d: Draw) -> Case:
        depth = d.pick("channels", MANY_DEPTHS, OFTEN)
        row = depth == 1 and d.pick("row", (False, True), (40, 1))
        if depth == 1 and not row:
            case = super().draw(d)
            counting = d.pick("counting", ("nearest", "farthest"), (9, 1))
            more = {"dimensions": None, "include": None, "counting": counting}
            return replace(case, options=case.options | more)
        # each channel costs
        most = 80 if depth < 9 else 30
        n, length = self.draw_line(d, most, deep=True)
        if depth > 8:
            n, length = min(n, 30), min(n, length, 30)
        with_b = d.pick("b", ("none", "some"), (2, 1)) == "some"
        series = draw_channels(d, [n, d.size(length, max(length, most))][: 1 + with_b], depth)
        form = "row" if row else "single"
        data = {"a": d.form(series[:1], form=form, label=" a", spare=False)}
        if with_b:
            data["b"] = d.form(series[1:], form=form, label=" b", spare=False)
        options = self.draw_options(d, length) | {
            "k": 1,
            "sides": not with_b and d.pick("sides", (False, True), (2, 1)),
            "precision": d.pick(
                "precision", ("auto", "float64", "float32"), (6, 1 + depth // 32, 1)
            ),
            "counting": d.pick("counting", ("nearest", "farthest")),
            "time_limit": None,
        }
        options |= draw_counting(d, depth, several=True)
        relation = self.draw_relation(d)
        # limits of time are for one channel
        stops = relation is not None and relation.startswith("stopped")
        return Case(self.name, data, options, relation=None if stops else relation)

    def possible(self, case: Case) -> bool:
        return super().possible(case) and can_count(case)

    def check(self, case: Case, found: dict) -> None:
        if not of_channels(case):
            super().check(case, found)
            return
        length, options = case.options["window"], case.options
        series = [one.series[0] for one in case.data.values()]
        each = each_line(series, length, options)
        n, depth = series[0].shape[1] - length + 1, len(each)
        dimensions = options["dimensions"]
        if dimensions is None:
            dimensions = list(range(max(1, len(options["include"] or [])), depth + 1))
        single = not isinstance(dimensions, list)
        places = np.arange(n)
        numbers = [dimensions] if single else dimensions
        # of many numbers some: each sorts the channels of all pairs
        for row in range(0, len(numbers), 1 + len(numbers) // JUDGED):
            number = numbers[row]
            line = mean_line(each, number, options, worst=options["counting"] == "farthest")
            allowed = ~line.near
            if len(series) == 2:
                part = np.s_[:n], np.s_[n:]
                line = line._replace(distances=line.distances[part], slack=line.slack[part])
                allowed = np.ones(line.distances.shape, bool)
            sides = {"": allowed}
            if options["sides"]:
                sides["left "] = allowed & (places[None] < places[:, None])
                sides["right "] = allowed & (places[None] > places[:, None])
            for name, admissible in sides.items():
                distances, indices = found[f"{name}distances"], found[f"{name}indices"]
                shape = (n,) if single else (len(dimensions), n)
                check(distances.shape == shape, "channels: shape", f"{distances.shape}")
                parts = (one.reshape(-1, n)[row][:, None] for one in (distances, indices))
                check_profile(f"{name}profile of channels", line, admissible, *parts)


def _whole_line(case: Case, worst: bool) -> tuple[list[Line], Line]:
    """Each channel, and the means of the number that counts."""
    series = case.data["a"].series[0]
    each = each_line([series], case.options["window"], case.options)
    number = case.options["dimensions"] or len(each)
    return each, mean_line(each, number, case.options, worst=worst)


class ChannelMotifs(Motifs):
    """The function of one channel or several."""

    name = "skts.motifs.motifs"

    def draw(self, d: Draw) -> Case:
        case = super().draw(d)
        depth = d.pick("channels", DEPTHS, (8, 2, 2, 1))
        counting: dict[str, Any] = {"dimensions": None, "include": None}
        if depth == 1:
            return replace(case, options=case.options | counting)
        n, length = self.draw_line(d, 80, deep=True)
        options = case.options | {"window": length} | draw_counting(d, depth, several=False)
        options["algorithm"] = d.pick("algorithm", ("auto", "profile"))
        series = draw_channels(d, [n], depth)
        return replace(case, data={"a": d.form(series, form="single", label=" a")}, options=options)

    def possible(self, case: Case) -> bool:
        mk = case.options["algorithm"] == "mk"
        return super().possible(case) and can_count(case) and not (mk and of_channels(case))

    def refuses(self, case: Case) -> bool:
        if not of_channels(case):
            return super().refuses(case)
        return not np.isfinite(_whole_line(case, False)[1].admissible()).any()

    def check(self, case: Case, found: dict) -> None:
        if not of_channels(case):
            super().check(case, found)
            return
        options = case.options
        if options["max_matches"] is not None:
            everything = replace(case, options=options | {"max_matches": None})
            whole = self.call(everything, How("numba"))
            _check_prefix(found, whole, options["max_matches"])
            found = whole
        each, line = _whole_line(case, False)

        def within(motif: Any, _: Line) -> Line:
            check(set(options["include"] or []) <= set(motif.channels), "motif: include")
            number = options["dimensions"] or len(each)
            same("motif: number of channels", len(motif.channels), number)
            some = [each[channel] for channel in motif.channels]
            return mean_line(some, number, {"include": None}, worst=False)

        series = [case.data["a"].series[0]]
        check_motifs([line], unflat("motif", found), options, series, within)


class ChannelDiscords(Discords):
    """The function of one channel or several."""

    name = "skts.motifs.discords"

    def draw(self, d: Draw) -> Case:
        case = super().draw(d)
        depth = d.pick("channels", DEPTHS, (8, 2, 2, 1))
        counting: dict[str, Any] = {"dimensions": None, "include": None}
        if depth == 1:
            return replace(case, options=case.options | counting)
        n, length = self.draw_line(d, 80, deep=True)
        options = case.options | {"window": length} | draw_counting(d, depth, several=False)
        series = draw_channels(d, [n], depth)
        return replace(case, data={"a": d.form(series, form="single", label=" a")}, options=options)

    def possible(self, case: Case) -> bool:
        return super().possible(case) and can_count(case)

    def refuses(self, case: Case) -> bool:
        if not of_channels(case):
            return super().refuses(case)
        return not np.isfinite(_whole_line(case, True)[1].admissible()).any()

    def check(self, case: Case, found: dict) -> None:
        if not of_channels(case):
            super().check(case, found)
            return
        _, line = _whole_line(case, True)
        records = unflat("discord", found)
        for record in records:
            number = case.options["dimensions"] or case.data["a"].n_channels
            same("discord: number of channels", len(record.channels), number)
        series = [case.data["a"].series[0]]
        check_discords([line], records, case.options["n_discords"], series)


class ChannelFinder(Finder):
    """The estimator, of series of one channel or several; it appends points to those of one."""

    def draw(self, d: Draw) -> Case:
        case = super().draw(d)
        depth = d.pick("channels", DEPTHS, (8, 2, 2, 1))
        counting: dict[str, Any] = {"dimensions": None, "include": None}
        if depth == 1:
            return replace(case, options=case.options | counting)
        count = d.pick("series", (1, 2), (3, 1))
        lengths = [max(2, d.size(1, 60 // count)) for _ in range(count)]
        length = min(*lengths, d.size(1, 24))
        options = case.options | draw_counting(d, depth, several=False)
        options["window"] = [length, max(1, length - 1)] if d.chance(0.2) else length
        options["algorithm"] = d.pick("algorithm", ("auto", "profile"))
        options["time_limit"] = None
        series = draw_channels(d, [*lengths, *[d.size(length, 40) for _ in range(2)]], depth)
        data = {
            "X": d.form(series[:count], label=" X", spare=False),
            "Q": Sample(tuple(series[count:])),
        }
        relation = case.relation if case.relation in ("alone", "output") else None
        return Case(self.name, data, options, relation=relation)

    def possible(self, case: Case) -> bool:
        several = _is_deep(case)
        options = case.options
        simple = options["algorithm"] != "mk" and options["time_limit"] is None
        simple = simple and case.relation in (None, "alone", "output")
        return super().possible(case) and can_count(case) and (simple or not several)

    def lines(self, case: Case) -> list[np.ndarray]:
        if not _is_deep(case):
            return super().lines(case)
        X = case.data["X"]
        width = X.lengths.max() if X.form == "padded" else 0
        missing = [(0, max(0, width - one.shape[1])) for one in X.series]
        return [
            np.pad(one, ((0, 0), more), constant_values=np.nan)
            for one, more in zip(X.series, missing, strict=True)
        ]

    def queries(self, case: Case) -> list[np.ndarray]:
        return list(case.data["Q"].series) if _is_deep(case) else super().queries(case)

    def refuses(self, case: Case) -> bool:
        if not _is_deep(case):
            return super().refuses(case)
        each = [line for _, line in self._each(case, self.windows(case), False)]
        return not any(np.isfinite(line.admissible()).any() for line in each)

    def nearest_window(self, motif: Any, x: np.ndarray, options: dict) -> tuple[float, float]:
        if x.ndim == 1:
            return super().nearest_window(motif, x, options)
        each = [window_distances(motif.values[0][c], x[c], options) for c in motif.channels]
        rows, errors = np.stack([row for row, _ in each]), np.stack([e for _, e in each])
        rows = np.where(np.isfinite(rows).all(axis=0), rows, np.inf).mean(axis=0)
        return rows.min(), np.where(np.isfinite(errors), errors, 0).max()

    def _each(self, case: Case, lengths: list[int], worst: bool) -> list[tuple[list[Line], Line]]:
        """Of each length the windows by channel, and with means over those that count."""
        options, found = case.options, []
        number = options["dimensions"] or len(case.data["X"].series[0])
        for length in lengths:
            each = each_line(self.lines(case), int(length), options)
            found.append((each, mean_line(each, number, options, worst=worst)))
        return found

    def check(self, case: Case, found: dict) -> None:
        if not _is_deep(case):
            super().check(case, found)
            return
        options, raw, lengths = case.options, self.lines(case), self.windows(case)
        same("window_", np.atleast_1d(found["window"]).tolist(), [int(one) for one in lengths])
        both = self._each(case, lengths, False)
        lines = [line for _, line in both]

        def within(motif: Any, line: Line) -> Line:
            number = len(motif.channels)
            same("motif: number of channels", number, options["dimensions"] or len(raw[0]))
            each = both[[one.length for one in lines].index(line.length)][0]
            some = [each[channel] for channel in motif.channels]
            return mean_line(some, number, {"include": None}, worst=False)

        whole = found
        if options["max_matches"] is not None:
            everything = replace(case, options=options | {"max_matches": None})
            whole = self.call(everything, How("numba"))
        check_motifs(lines, unflat("motif", whole), options, raw, within)
        far = [line for _, line in self._each(case, lengths, True)]
        check_discords(far, unflat("discord", found), options["n_discords"], raw)
        for k, line in enumerate(lines):
            self._check_profiles(k, line, found, len(raw))
        if "transform" in found:
            self._check_queries(case, found)


def _is_deep(case: Case) -> bool:
    """Whether the series of an estimator have several channels."""
    return len(case.data["X"].series[0]) > 1
