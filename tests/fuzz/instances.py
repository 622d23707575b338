"""Other kernels of the GPU for the same work: those of large data, long lines and many series.

Which instance of a kernel runs follows from the size of the work, so that small cases would reach
few of them. A share of second runs has the choice made otherwise, among the instances that the
compile check lists and that may do the work: no answer may change.
"""

from __future__ import annotations

import contextlib
import fnmatch
import functools
import hashlib
import importlib
from collections.abc import Iterator, Sequence
from typing import Any
from unittest import mock

__all__ = ["RARE", "UNREACHED", "other_instances", "reason_of"]

#: Instances of the compile check that no case reaches, by patterns of their names, and why.
UNREACHED = {
    "elastic/* *<float, *<float, *true>*": (
        "searches in float32 know no bound for distances with a number of each series, "
        "see `bounded` in families/elastic/distances.py"
    ),
    "elastic/path.cu strip<Weighted<double, Absolute, true>>": (
        "a pair has one longer series, so that weights are those of both; paths of many pairs are "
        "those of averages, whose costs are squared"
    ),
}

#: Instances that no case of the recorded run reached, though cases may: by patterns, and why they
#: are rare. A run that reaches some makes the list shorter.
RARE = {
    "elastic/dtw.cu dtw<double, 8, *, true, *, true, false>": (
        "strips of 8 columns a lane with a band take series of more than 256 points, certified, of "
        "one distance and one number of channels"
    ),
    "elastic/dtw.cu dtw<float, 40, 1, 2, true, Dtw<Squared>, false, false>": (
        "strips of 40 columns a lane in float32, two rows at a time, of one channel, without a "
        "band; the run before reached it"
    ),
    "elastic/narrow.cu narrow<float, 133, 1, Dtw<Squared>>": (
        "narrow bands of 133 columns in float32, of one channel; the run before reached it"
    ),
    "profile/many_channels.cu walk_many_channels<128, 0, 1, 16, 1, false, *>": (
        "joins of 128 channels, none of which counts in any case; the run before reached them"
    ),
}

#: Where choices are made.
_CUPY = "skts.engines.cupy"
#: Sizes of small work, where none is small.
NOTHING = 0


def reason_of(instance: str) -> str:
    """Why no case reaches an instance, "elastic/dtw.cu dtw<...>"; nothing if no reason is known."""
    reasons = (UNREACHED | RARE).items()
    return next((why for name, why in reasons if fnmatch.fnmatchcase(instance, name)), "")


class _Choice:
    """Choices that follow from a number and from what is chosen for, whichever thread asks."""

    def __init__(self, number: int) -> None:
        self.number = number

    def __call__(self, options: Sequence[Any], *of: Any) -> Any:
        """One of some."""
        digest = hashlib.blake2b(repr((self.number, of)).encode(), digest_size=8).digest()
        return options[int.from_bytes(digest) % len(options)]


@functools.cache
def _known() -> frozenset[str]:
    """Names of the instances that the compile check lists."""
    from skts.engines.cupy.programs import all_kernels

    return frozenset(name for names in all_kernels().values() for name in names)


@contextlib.contextmanager
def other_instances(number: int) -> Iterator[None]:
    """Run with other instances of kernels, which the number chooses."""
    choose = _Choice(number)
    with contextlib.ExitStack() as stack:
        for changes in (_of_warping, _of_rotations, _of_shapes, _of_searches, _of_shapelets):
            for module, name, value in changes(choose):
                there = importlib.import_module(module)
                stack.enter_context(mock.patch.object(there, name, value))
        # as on a device with little shared memory
        programs = importlib.import_module(f"{_CUPY}.profile.channel_programs")
        loading = importlib.import_module(f"{_CUPY}.loading")
        stack.enter_context(
            mock.patch.object(loading, "shared_room", lambda: programs.LEAST_SHARED)
        )
        yield


Change = tuple[str, str, Any]


def _choose_by_name(choose: _Choice, plain: Any, others: list[Any], *of: Any) -> Any:
    """A kernel: each instance is as likely as another, however many lanes a pair may have in it."""
    by_name: dict[str, list[Any]] = {plain.name: [plain]}
    for one in others:
        if one.name in _known():
            by_name.setdefault(one.name, []).append(one)
    return choose(by_name[choose(sorted(by_name), *of)], "lanes", *of)


def _of_warping(choose: _Choice) -> Iterator[Change]:
    """Lanes of a pair, columns of a lane, strips, bands."""
    module = f"{_CUPY}.elastic.dtw"
    programs = importlib.import_module(f"{_CUPY}.elastic.programs")

    def choose_dtw(
        type: str, channels: int, n: int, m: int, warping: Any, reach: int, *more: Any
    ) -> tuple[Any, float]:
        plain, price = programs.choose_dtw(type, channels, n, m, warping, reach, *more)
        slow, _ = programs.choose_slow(type, channels, n, m, warping, reach, 1)
        shapes = [
            (lanes, columns, lanes * columns < m)
            for columns in programs.column_counts(type, channels)
            for lanes in (1, 2, 4, 8, 16, 32)
            if lanes * columns >= m or (lanes == 32 and columns <= 48)
        ]
        found = [
            slow._replace(columns=columns, strips=strips, group=lanes)
            for lanes, columns, strips in shapes
        ]
        if slow.band and programs.policy_of(warping).in_bands:
            found += [
                programs.BandKernel(type, offsets, channels, slow.cell, lanes)
                for lanes in (1, 2, 4, 8, 16, 32)
                for offsets in programs.offset_counts(type, channels)
                if lanes * offsets > 2 * reach
            ]
        return _choose_by_name(choose, plain, found, type, channels, n, m, warping), price

    def choose_narrow(*of: Any) -> Any:
        return choose((None, programs.choose_narrow(*of)), *of)

    yield module, "choose_dtw", choose_dtw
    yield module, "choose_narrow", choose_narrow


def _of_rotations(choose: _Choice) -> Iterator[Change]:
    """Columns of a lane, and strips, of runs of circular shifts."""
    programs = importlib.import_module(f"{_CUPY}.elastic.rotation_programs")

    def choose_turns(
        channels: int, n: int, length: int, count: int, n_items: int, cell: str
    ) -> Any:
        plain = programs.choose_turns(channels, n, length, count, n_items, cell)
        m = length + count - 1
        found = [
            plain._replace(columns=columns, group=lanes, strips=lanes * columns < m)
            for columns in programs.column_counts(channels)
            for lanes in (1, 2, 4, 8, 16, 32)
            if lanes * columns >= m or (lanes == 32 and columns <= 48)
        ]
        return _choose_by_name(choose, plain, found, channels, n, length, count, cell)

    yield f"{_CUPY}.elastic.rotation", "choose_turns", choose_turns


def _of_shapes(choose: _Choice) -> Iterator[Change]:
    """Transforms of longer series, and centres of k-Shape as of many series."""
    programs = importlib.import_module(f"{_CUPY}.kshape.programs")
    lengths = 1, 2, 3, 8, 56, 100, 128, 600, 1024, 2709, 3053, 3750, 4000, 5000

    @functools.cache
    def choose_transform(n_timepoints: int, *limit: int) -> Any:
        longer = [n for n in lengths if n >= n_timepoints]
        of = choose([n_timepoints, *longer, None], n_timepoints)
        return None if of is None else programs.choose_transform(of, *limit)

    def choose_gram(size: int) -> Any:
        sizes = [n for n in (100, 600, 1024, 2709, 3750, 5000, 10_000) if n >= size]
        # none: sums of outer products, as of too many points
        of = choose([size, *sizes, None], size)
        return None if of is None else programs.choose_gram(of)

    yield f"{_CUPY}.kshape.sbd", "choose_transform", choose_transform
    if choose((False, True), "short"):
        yield f"{_CUPY}.kshape.sbd", "SHORT", NOTHING
    yield f"{_CUPY}.kshape.centers", "choose_gram", choose_gram
    if choose((False, True), "moments"):
        yield f"{_CUPY}.kshape.tiles", "MOMENT_POINTS", NOTHING
    if choose((False, True), "centers"):
        yield "skts.cluster._kshape", "FEW_VALUES", NOTHING
    if choose((False, True), "members"):
        yield "skts.engines.numba.kshape.members", "FEW", NOTHING
    if choose((False, True), "many"):
        yield f"{_CUPY}.kshape.centers", "FEW", NOTHING
        yield f"{_CUPY}.kshape.tiles", "FEW", NOTHING


def _of_searches(choose: _Choice) -> Iterator[Change]:
    """Lanes of a window."""
    programs = importlib.import_module(f"{_CUPY}.search.programs")

    def choose_warp(length: int, cell: str) -> Any:
        plain = programs.choose_warp(length, cell)
        if plain is None:
            return None
        shapes = [(lanes, max(2, -(-length // lanes))) for lanes in (1, 2, 4, 8, 16, 32)]
        fits = [
            programs._instance(columns, cell, lanes)
            for lanes, columns in shapes
            # a window has more steps than lanes; no lane is empty
            if columns <= programs.MOST_COLUMNS
            and (lanes == 1 or -(-length // 4) > lanes)
            and lanes * columns - length < columns
        ]
        return choose([plain, *fits], length, cell)

    yield f"{_CUPY}.search.subsequence", "choose_warp", choose_warp


def _of_shapelets(choose: _Choice) -> Iterator[Change]:
    """Columns of a walk; keys of a lane of an order line, or a block for one; what lists hold."""
    programs = importlib.import_module(f"{_CUPY}.shapelets.programs")
    chosen, plain = choose(programs.WALKS, "columns"), programs.walk_kernel
    keys = choose((*programs.KEYS, None), "keys")

    def walk_kernel(n_windows: int) -> Any:
        fits = chosen.lanes == 32 or chosen.strips(n_windows) == 1
        return chosen if fits else plain(n_windows)

    some = tuple(one for one in programs.KEYS if keys is not None and one >= keys)
    yield f"{_CUPY}.shapelets.programs", "walk_kernel", walk_kernel
    yield f"{_CUPY}.shapelets.walk", "walk_kernel", walk_kernel
    yield f"{_CUPY}.shapelets.programs", "KEYS", some
    if choose((False, True), "sorted"):
        yield f"{_CUPY}.shapelets.order_lines", "SORTED_BYTES", NOTHING
    if choose((False, True), "listed"):
        # lists are looked through for candidates of the same points, and measured in parts
        yield f"{_CUPY}.shapelets.order_lines", "FIRST_BATCH", 8
        yield f"{_CUPY}.shapelets.order_lines", "MEASURED_TWICE", NOTHING
