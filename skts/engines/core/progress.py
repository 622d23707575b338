"""What a run says while it works: a bar, the plan, and the user's callback."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING

from ..._config import get_config
from .memory import format_bytes

if TYPE_CHECKING:
    from .reduction import Reduction, Tile

__all__ = ["describe", "progress"]

#: Seconds after which a bar appears: quick work shows none.
DELAY = 0.5


def describe(
    reduction: Reduction,
    engine: str,
    tiles: Sequence[Tile],
    workers: int,
    memory: tuple[int, int] | None,
) -> str:
    """Say in one line how a reduction will be computed.

    `memory` holds the bytes of working memory that the tiles take at most, and the budget.
    """
    rows, cols = reduction.shape
    cells = sum(map(reduction.work, tiles))
    text = f"{type(reduction).__name__}: {rows} x {cols} on {engine}"
    devices = get_config()["devices"]
    if devices is not None:
        text += f" (devices {', '.join(map(str, devices))})"
    largest = max((tile.shape for tile in tiles), key=lambda s: s[0] * s[1], default=(0, 0))
    text += f", {cells:.3g} cells in {_count(len(tiles), 'part')}"
    if len(tiles) > 1:
        text += f" of up to {largest[0]} x {largest[1]}"
    text += f", {_count(workers, 'worker')}"
    if memory is not None:
        text += f", {format_bytes(memory[0])} of {format_bytes(memory[1])} of memory"
    return text


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
