"""How much memory there is, and the error where it is too little."""

from __future__ import annotations

import os
from contextlib import suppress
from functools import cache
from pathlib import Path

from ..._config import get_config, parse_memory
from ..._log import counted
from ...exceptions import MemoryBudgetError

__all__ = [
    "DEFAULT_MEMORY",
    "check_size",
    "format_bytes",
    "host_budget",
    "out_of_memory",
    "physical_memory",
]

#: Bytes of working memory in the memory of this machine, where the configuration names none.
DEFAULT_MEMORY = 2**30
#: Where Linux says how much memory a container may have, in its newer and its older form.
CONTAINER_LIMITS = (
    "/sys/fs/cgroup/memory.max",
    "/sys/fs/cgroup/memory/memory.limit_in_bytes",
)
#: Results of so many bytes are not compared with the memory of the machine: asking takes a while.
ALWAYS_THERE = 2**16


def format_bytes(size: float) -> str:
    """Write a number of bytes for people.

    Examples
    --------
    >>> format_bytes(3 * 2**29)
    '1.5 GiB'
    >>> format_bytes(1)
    '1 byte'
    """
    units = ["byte", "KiB", "MiB", "GiB", "TiB"]
    while size >= 1024 and len(units) > 1:
        size /= 1024
        units.pop(0)
    number = f"{size:.4g}"
    return counted(number, units[0]) if len(units) == 5 else f"{number} {units[0]}"


def physical_memory() -> int:
    """Bytes of memory that this process may have; limits that cannot be read are left out."""
    limits = [2**62]
    with suppress(AttributeError, ValueError, OSError):
        limits.append(os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE"))
    return min(*limits, *container_limits(CONTAINER_LIMITS))


@cache
def container_limits(paths: tuple[str, ...]) -> list[int]:
    """Limits that some files hold; read once by a process, since budgets are asked for often."""
    limits = []
    for path in paths:
        with suppress(ValueError, OSError):
            limits.append(int(Path(path).read_text()))
    return limits


def host_budget() -> int:
    """Bytes of this machine's memory that what is merged may take."""
    memory = get_config()["memory"]
    return DEFAULT_MEMORY if memory is None else parse_memory(memory, physical_memory())


def check_size(size: int, shape: tuple[int, int]) -> None:
    """Raise if a result of so many bytes is larger than the memory of this machine."""
    if size <= ALWAYS_THERE:
        return
    limit = physical_memory()
    if size > limit:
        raise MemoryBudgetError(
            f"The result of shape {shape} needs {format_bytes(size)}; this machine has "
            f"{format_bytes(limit)} of memory. Ask for part of it, or for nearest neighbours."
        )


def out_of_memory(footprint: tuple[int, int], budget: int) -> MemoryBudgetError:
    """Say that memory ran out for the smallest part of the work."""
    return MemoryBudgetError(
        f"Memory ran out: the smallest part of this work was planned to take "
        f"{format_bytes(sum(footprint))} of the {format_bytes(budget)} that it may use, and this "
        "machine could not give them. Set less with skts.set_config(memory=...), or free some."
    )
