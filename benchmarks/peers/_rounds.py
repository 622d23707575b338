"""The same work by several libraries, in rounds: each does it once, then each again.

A shared machine slows down and recovers within seconds. In rounds every library meets the same
weather, and the median over the rounds is what is quoted.
"""

import json
import os
import subprocess
import tempfile
from dataclasses import dataclass, field
from pathlib import Path
from statistics import median

import numpy as np

THREADS = ("OMP_NUM_THREADS", "NUMBA_NUM_THREADS", "RAYON_NUM_THREADS", "OPENBLAS_NUM_THREADS")


class WorkerError(Exception):
    """A library failed at the work."""


@dataclass
class Outcome:
    """The result of one library for one work."""

    library: str
    result: np.ndarray | None = None
    versions: dict = field(default_factory=dict)
    wall: list[float] = field(default_factory=list)
    processor: list[float] = field(default_factory=list)
    failure: str | None = None
    difference: float | None = None
    agrees: bool = False

    @property
    def seconds(self):
        """Median of the wall times."""
        return median(self.wall)


class _Worker:
    """A worker process (`_worker.py`) that has warmed up."""

    def __init__(self, python, script, library, request, folder, threads):
        self.outcome = Outcome(library)
        self.answer = folder / f"{library}.npz"
        self.log = (folder / f"{library}.log").open("w+")
        # idle threads must sleep: others are being measured
        environment = dict(os.environ, OMP_WAIT_POLICY="passive", PYTHONUNBUFFERED="1")
        environment.update(dict.fromkeys(THREADS, str(threads)))
        self.process = subprocess.Popen(
            [python, script, library, request, self.answer],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=self.log,
            text=True,
            env=environment,
        )

    def wait_for(self, word):
        """The rest of the first line that begins with the word: libraries print, too."""
        for line in self.process.stdout:
            if line.startswith(word):
                return line.split()[1:]
        self.process.wait()
        self.log.seek(0)
        lines = self.log.read().strip().splitlines()
        raise WorkerError(lines[-1] if lines else f"exit status {self.process.returncode}")

    def run(self):
        self.process.stdin.write("\n")
        self.process.stdin.flush()
        wall, processor = map(float, self.wait_for("time"))
        self.outcome.wall.append(wall)
        self.outcome.processor.append(processor)

    def close(self):
        self.process.communicate("")
        with np.load(self.answer) as answer:
            self.outcome.result = answer["result"]
            self.outcome.versions = json.loads(str(answer["versions"]))

    def kill(self):
        self.process.kill()
        self.process.wait()
        self.log.close()


def measure(script, request, pythons, *, threads, repeats=5, patience=120.0, tolerance=1e-9):
    """Let each library do the work of a request `repeats` times, in turn.

    Parameters
    ----------
    script : path
        The worker script.
    request : dict
        Arrays of the work.
    pythons : dict
        The interpreter of each library.
    threads : int
        How many threads each may use.
    repeats : int
        Rounds.
    patience : float
        A library that has had this many seconds takes no part in further rounds.
    tolerance : float
        That of `compare`.

    Returns
    -------
    list of Outcome
        In the order of `pythons`, compared with each other (`compare`).
    """
    outcomes, workers = [], []
    with tempfile.TemporaryDirectory() as folder:
        folder = Path(folder)
        path = folder / "request.npz"
        np.savez(path, threads=threads, **request)

        def each(step, active):
            """The workers that did the step; what went wrong with the others is kept."""
            done = []
            for worker in active:
                try:
                    step(worker)
                    done.append(worker)
                except (WorkerError, OSError) as error:
                    worker.outcome.failure = str(error)
            return done

        try:
            for library, python in pythons.items():
                # one after the other: a warm-up should not meet the compiler of another
                worker = _Worker(python, script, library, path, folder, threads)
                workers.append(worker)
                outcomes.append(worker.outcome)
                each(lambda worker: worker.wait_for("ready"), [worker])
            alive = active = [worker for worker in workers if not worker.outcome.failure]
            for _ in range(repeats):
                active = [worker for worker in active if sum(worker.outcome.wall) < patience]
                active = each(_Worker.run, active)
            each(_Worker.close, [worker for worker in alive if not worker.outcome.failure])
        finally:
            for worker in workers:
                worker.kill()
    compare([outcome for outcome in outcomes if not outcome.failure], tolerance)
    return outcomes


def compare(outcomes, tolerance):
    """Say of each outcome whether it agrees with the result that most libraries have.

    The difference of two results is, for numbers, the largest absolute difference over the
    largest absolute value; for labels, the share of those that differ (none may).
    """

    def difference(a, b):
        if a.shape != b.shape:
            return np.inf
        if a.dtype.kind != "f":
            return float(np.mean(a != b))
        return float(np.max(np.abs(a - b)) / np.max(np.abs(b)))

    def agreeing(outcome):
        return sum(difference(other.result, outcome.result) <= tolerance for other in outcomes)

    if outcomes:
        common = max(outcomes, key=agreeing).result
    for outcome in outcomes:
        outcome.difference = difference(outcome.result, common)
        outcome.agrees = outcome.difference <= tolerance
