"""Recipes of `skts.motifs` for series of several channels; those of one channel come first."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np

from .case import Case
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
    Line,
    Motifs,
    Profile,
    _check_prefix,
    check_discords,
    check_motifs,
    check_profile,
    unflat,
)

#: Channels of a series.
DEPTHS = (1, 2, 3, 7)


class ChannelProfile(Profile):
    """The function of one channel or several."""

    name = "skts.motifs.matrix_profile"

    def draw(self, d: Draw) -> Case:
        depth = d.pick("channels", DEPTHS, (8, 2, 2, 1))
        if depth == 1:
            case = super().draw(d)
            counting = d.pick("counting", ("nearest", "farthest"), (9, 1))
            more = {"dimensions": None, "include": None, "counting": counting}
            return replace(case, options=case.options | more)
        n, length = self.draw_line(d, 80)
        with_b = d.pick("b", ("none", "some"), (2, 1)) == "some"
        series = draw_channels(d, [n, d.size(length, 80)][: 1 + with_b], depth)
        data = {"a": d.form(series[:1], form="single", label=" a")}
        if with_b:
            data["b"] = d.form(series[1:], form="single", label=" b")
        options = self.draw_options(d, length) | {
            "k": 1,
            "sides": not with_b and d.pick("sides", (False, True), (2, 1)),
            "precision": d.pick("precision", ("auto", "float64", "float32"), (6, 1, 1)),
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
        for row, number in enumerate([dimensions] if single else dimensions):
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
        n, length = self.draw_line(d, 80)
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
        n, length = self.draw_line(d, 80)
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
