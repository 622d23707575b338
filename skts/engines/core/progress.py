"""Reports of a run while it works: a bar, the plan, and the user's callback."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from time import monotonic
from typing import TYPE_CHECKING, Any

from ..._config import get_config
from ..._log import counted
from .budget import format_bytes

if TYPE_CHECKING:
    from .plan import Plan
    from .reduction import Reduction, Tile

__all__ = ["Estimate", "Report", "describe", "describe_shares", "progress"]

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
    text += f", {sum(map(reduction.work, tiles)):.3g} cells in {counted(len(tiles), 'part')}"
    if len(tiles) > 1:
        largest = max((tile.shape for tile in tiles), key=lambda s: s[0] * s[1])
        text += f" of up to {largest[0]} x {largest[1]}"
    return f"{text}, {counted(workers, 'worker')}"


#: Steps a second that earlier work of a kind has reached: engine, kind, workers.
_RATES: dict[tuple[str, str, int], float] = {}


class Estimate:
    """The time that work still takes, learned from its parts and from earlier work of its kind.

    Parameters
    ----------
    key : tuple of (str, str, int)
        Engine, kind of work, workers.
    total : int
        Steps of all parts.
    """

    def __init__(self, key: tuple[str, str, int], total: int) -> None:
        self.key, self.total = key, max(1, total)
        self.before = _RATES.get(key)
        self.done, self.begin = 0, monotonic()
        self.latest = self.begin

    def add(self, steps: int) -> None:
        """Count what is done."""
        self.done, self.latest = self.done + steps, monotonic()

    def rate(self) -> float | None:
        """Steps a second: those of this work, the more of it is done, and of that before."""
        seconds = self.latest - self.begin
        own = self.done / seconds if self.done and seconds > 0 else self.before
        if own is None or self.before is None:
            return own
        share = min(1.0, self.done / self.total)
        return float(self.before ** (1 - share) * own**share)

    def left(self) -> float | None:
        """Seconds to come; None where nothing is known, or it took longer than that already."""
        rate = self.rate()
        if rate is None:
            return None
        seconds = (self.total - self.done) / rate - (monotonic() - self.latest)
        return seconds if seconds > 0 else None

    def learn(self) -> None:
        """Remember the rate for work of this kind; a first one may hold compilation."""
        rate = self.rate()
        if self.done and rate is not None:
            _RATES[self.key] = rate if self.before is None else (self.before * rate) ** 0.5


class Report:
    """Progress of a run: a bar, and the user's callback.

    The bar counts elementary steps, cells of warping matrices or of matrices of distances, so that
    its rate can be compared between kinds of work.

    Parameters
    ----------
    reduction : Reduction
        The work.
    parts : int
        How many it has.
    estimate : Estimate
        The time that it takes.
    bar : tqdm.tqdm or None
        The bar.
    """

    def __init__(self, reduction: Reduction, parts: int, estimate: Estimate, bar: Any) -> None:
        self.reduction, self.parts, self.estimate, self.bar = reduction, parts, estimate, bar
        self.callback = get_config()["progress"]
        self.done = 0

    def advance(self, tile: Tile | None = None) -> None:
        """Tell that a part is done; without a tile parts count alike."""
        self.done += 1
        total = self.estimate.total
        steps = total * self.done // self.parts - total * (self.done - 1) // self.parts
        self.estimate.add(steps if tile is None else self.reduction.work(tile))
        self.tick()
        if self.callback is not None:
            self.callback(self.done, self.parts)

    def tick(self) -> None:
        """Show the time: also while a part takes long."""
        if self.bar is None:
            return
        left = self.estimate.left()
        text = "" if left is None else f"about {self.bar.format_interval(left)} left"
        self.bar.set_postfix_str(text, refresh=False)
        self.bar.update(self.estimate.done - self.bar.n)


@contextmanager
def progress(
    reduction: Reduction, tiles: Sequence[Tile], verbose: int, where: tuple[str, int] = ("", 1)
) -> Iterator[Report]:
    """Yield the report of a run by an engine and so many workers; it is told of each part done."""
    total = sum(map(reduction.work, tiles))
    name, bar = type(reduction).__name__, None
    engine, workers = where
    estimate = Estimate((engine, name, workers), total)
    if verbose >= 1 and tiles:
        from tqdm.auto import tqdm  # in a notebook it warns if its widgets are missing

        bar = tqdm(
            total=estimate.total,
            desc=name,
            unit=" cells",
            unit_scale=True,
            delay=DELAY,
            # the time left is ours; rates are those of all that is done
            bar_format="{l_bar}{bar}| {n_fmt}/{total_fmt} [{elapsed}, {rate_fmt}{postfix}]",
            smoothing=0,
            miniters=0,
        )
    report = Report(reduction, len(tiles), estimate, bar)
    try:
        yield report
        estimate.learn()
    finally:
        if bar is not None:
            bar.close()
