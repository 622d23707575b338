"""Reports of a run while it works: a bar, the plan, and the user's callback."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING

from ..._config import get_config
from .budget import format_bytes

if TYPE_CHECKING:
    from .plan import Plan
    from .reduction import Reduction, Tile

__all__ = ["describe", "describe_shares", "progress"]

#: Seconds after which a bar appears: quick work shows none.
DELAY = 0.5


def describe(plan: Plan) -> str:
    """Say in one line how a reduction will be computed in this process."""
    where = plan.engine.name
    if plan.devices is not None:
        where += f" (devices {', '.join(map(str, plan.devices))})"
    return (
        f"{_describe(plan.reduction, where, plan.tiles, plan.workers)}, "
        f"{format_bytes(plan.memory)} of {format_bytes(plan.budget)} of memory"
    )


def describe_shares(
    reduction: Reduction, engine: str, backend: str, shares: Sequence[Tile], workers: int
) -> str:
    """Say in one line how a reduction will be computed by other processes."""
    where = f"{engine}, {workers} workers of {backend}"
    return _describe(reduction, where, shares, workers)


def _describe(reduction: Reduction, where: str, tiles: Sequence[Tile], workers: int) -> str:
    rows, cols = reduction.shape
    text = f"{type(reduction).__name__}: {rows} x {cols} on {where}"
    text += f", {sum(map(reduction.work, tiles)):.3g} cells in {_count(len(tiles), 'part')}"
    if len(tiles) > 1:
        largest = max((tile.shape for tile in tiles), key=lambda s: s[0] * s[1])
        text += f" of up to {largest[0]} x {largest[1]}"
    return f"{text}, {_count(workers, 'worker')}"


def _count(number: int, thing: str) -> str:
    return f"{number} {thing}" + ("" if number == 1 else "s")


@contextmanager
def progress(
    reduction: Reduction, tiles: Sequence[Tile], verbose: int
) -> Iterator[Callable[[], None]]:
    """Yield a function that is called after each tile, and tells bar and callback.

    The bar counts elementary steps, cells of warping matrices or of matrices of distances, so that
    its rate can be compared between kinds of work; it moves as if tiles were of one size.
    """
    callback = get_config()["progress"]
    parts = len(tiles)
    done = shown = 0
    bar = None
    if verbose >= 1 and parts > 1:
        from tqdm.auto import tqdm  # in a notebook it warns if its widgets are missing

        bar = tqdm(
            total=sum(map(reduction.work, tiles)),
            desc=type(reduction).__name__,
            unit=" cells",
            unit_scale=True,
            delay=DELAY,
        )

    def advance() -> None:
        nonlocal done, shown
        done += 1
        if bar is not None:
            now = bar.total * done // parts
            bar.update(now - shown)
            shown = now
        if callback is not None:
            callback(done, parts)

    try:
        yield advance
    finally:
        if bar is not None:
            bar.close()
