"""Several jobs at once on a machine of many cores, each on cores of its own."""

import os
import time
from collections.abc import Callable
from concurrent.futures import FIRST_COMPLETED, ThreadPoolExecutor, wait
from dataclasses import dataclass
from pathlib import Path

from benchmarks import _records


@dataclass
class Job:
    """Something to run: how many cores it needs, and what runs it on them.

    `run` takes the numbers of the cores, and starts a process that keeps to them.
    """

    name: str
    run: Callable
    threads: int = 1


def available():
    """Numbers of the cores that this process may use."""
    if hasattr(os, "sched_getaffinity"):
        return sorted(os.sched_getaffinity(0))
    return list(range(os.cpu_count()))


def at_once(jobs, cores):
    """Run jobs in the order of a list, as far as cores are free; yield each with its result.

    A job that needs more cores than are free is overtaken by later ones, and gets them first when
    others end.
    """
    waiting, running, free = list(jobs), {}, list(cores)
    if wide := [job.name for job in waiting if job.threads > len(free)]:
        raise ValueError(f"more than {len(free)} cores are needed for {', '.join(wide)}")
    with ThreadPoolExecutor(max(1, len(free))) as pool:
        while waiting or running:
            for job in list(waiting):
                if job.threads <= len(free):
                    mine, free = free[: job.threads], free[job.threads :]
                    running[pool.submit(job.run, mine)] = job, mine
                    waiting.remove(job)
            for future in wait(running, return_when=FIRST_COMPLETED).done:
                job, mine = running.pop(future)
                free = sorted(free + mine)
                yield job, future.result()


class Deadline:
    """A moment by which everything has to be over."""

    def __init__(self, minutes):
        self.minutes, self.end = minutes, time.monotonic() + 60 * minutes

    @property
    def seconds(self):
        """What is left."""
        return self.end - time.monotonic()


def device(cores):
    """The processor, and how many of its cores are used; which of them are halves of one."""
    total = os.cpu_count()
    text = f"{_records.cpu()}, "
    text += f"{len(cores)} of {total} cores" if len(cores) < total else f"{total} cores"
    if halves := _halves():
        text += f" (hyperthreads: {halves} share a core)"
    return text


def _halves():
    """How many of the system's cores are one core of the processor; 0 where each is one."""
    try:
        text = Path("/sys/devices/system/cpu/cpu0/topology/thread_siblings_list").read_text()
    except OSError:
        return 0
    ends = [part.split("-") for part in text.strip().split(",")]
    count = sum(int(part[-1]) - int(part[0]) + 1 for part in ends)
    return count if count > 1 else 0
