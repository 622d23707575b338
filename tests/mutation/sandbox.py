"""A scratch copy of the package, and processes that run its tests there.

Processes are forked from this one, which has imported what tests need but not the package: that
saves the seconds that NumPy, Numba, scikit-learn and pytest take to start.
"""

from __future__ import annotations

import atexit
import hashlib
import importlib
import json
import os
import resource
import shutil
import signal
import sys
import tempfile
import time
import traceback
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Any

__all__ = ["OutOfTime", "Sandbox", "end_running"]

#: What a copy of the repository holds.
PARTS = ("skts", "tests", "pyproject.toml", "README.md", "docs", "examples")
#: Folder of a copy for the programs that the emulator compiles.
KERNELS = ".kernels"
#: Bytes of memory that a test may take: a mutant may ask for any number.
MEMORY = 8 << 30
#: The process that runs tests for this one, if there is one.
_running: set[int] = set()


class OutOfTime(Exception):
    """The time of the whole run is over: nothing is known about what ran."""


def end_running() -> None:
    """Kill the process that runs tests, and all that it started."""
    for child in list(_running):
        with suppress(ProcessLookupError):
            os.killpg(child, signal.SIGKILL)


class Sandbox:
    """A copy of the repository, kept between runs with the kernels that were compiled in it.

    Parameters
    ----------
    root : Path
        The repository.
    folder : Path
        Where copies go.
    deadline : float
        Time of `time.monotonic` at which calls end.
    patience : float
        Seconds on the clock for each second of processor time that a call may take.
    """

    def __init__(
        self, root: Path, folder: Path, deadline: float = float("inf"), patience: float = 10
    ) -> None:
        self.root = root
        self.base = folder / "base"
        self.kernels = folder / "kernels"
        self.deadline, self.patience = deadline, patience
        self._compiled = folder / "compiled"
        self._runs = folder / f"run-{os.getpid()}"
        self.kernels.mkdir(parents=True, exist_ok=True)
        atexit.register(shutil.rmtree, self._runs, ignore_errors=True)
        self.settled = self._runs / "settled"
        self.settled.mkdir(parents=True)
        _import_what_tests_need()
        self._refresh()

    @property
    def own(self) -> Path:
        """Folder of what one process writes, so that several may work at once."""
        folder = self._runs / str(os.getpid())
        folder.mkdir(parents=True, exist_ok=True)
        return folder

    def compiled(self, test: str) -> Path:
        """File that is there when all that a test compiles is in the copy."""
        return self._compiled / hashlib.sha256(test.encode()).hexdigest()[:32]

    def _refresh(self) -> None:
        """Bring the copy up to date; what did not change keeps its time, and its kernels."""
        wanted = set()
        begins = not self.base.exists()
        for part in PARTS:
            source = self.root / part
            for file in source.rglob("*") if source.is_dir() else [source]:
                if not file.is_file() or "__pycache__" in file.parts or "_build" in file.parts:
                    continue
                name = file.relative_to(self.root)
                wanted.add(name)
                target = self.base / name
                if not target.exists() or target.read_bytes() != file.read_bytes():
                    target.parent.mkdir(parents=True, exist_ok=True)
                    target.unlink(missing_ok=True)
                    shutil.copy2(file, target)
                    shutil.rmtree(self._compiled, ignore_errors=True)
        if begins:  # with its time, a source finds the kernels that were compiled from it
            for cached in (self.root / "skts").rglob("__pycache__/*.nb[ci]"):
                target = self.base / cached.relative_to(self.root)
                target.parent.mkdir(exist_ok=True)
                shutil.copy2(cached, target)
        self._compiled.mkdir(exist_ok=True)
        for file in [f for f in self.base.rglob("*") if f.is_file()]:
            name = file.relative_to(self.base)
            if "__pycache__" not in file.parts and name not in wanted:
                file.unlink()

    def mutate(self, module: str, source: str, stale: set[str]) -> Path:
        """Return a copy in which a module has another source.

        Kernels that were compiled from the module, or from those named `stale`, are not in it.
        """
        copy = self.own / "mutant"
        shutil.rmtree(copy, ignore_errors=True)
        shutil.copytree(self.base, copy, copy_function=os.link)
        for name in {module, *stale}:
            file = copy / name
            for cached in (file.parent / "__pycache__").glob(f"{file.stem}.*"):
                cached.unlink()
        (copy / module).unlink()
        (copy / module).write_text(source)
        # CUDA programs of the emulator, found by their text: the changed ones go to the copy only
        shutil.copytree(self.kernels, copy / KERNELS, copy_function=os.link)
        return copy

    def _share(self, kernels: Path) -> None:
        """Keep the programs of the emulator that were compiled in a copy."""
        for program in kernels.glob("*.so") if kernels != self.kernels else ():
            with suppress(FileExistsError):
                os.link(program, self.kernels / program.name)

    def call(
        self, function: Callable[..., Any], root: Path, mode: str, *args: Any, limit: float
    ) -> Any:
        """Call a function in a process of its own that works in a copy; None if it was killed.

        Parameters
        ----------
        function : callable
            Is given the copy and `args`; returns what JSON can hold.
        root : Path
            The copy: working directory, and first in the path of imports.
        mode : str
            How kernels run; see `concern.MODES`.
        limit : float
            Seconds of processor time after which the process is killed, so that a busy machine
            kills nothing; `patience` times as much on the clock.

        Raises
        ------
        OutOfTime
            At the deadline.
        """
        answer = self.own / "answer.json"
        answer.unlink(missing_ok=True)
        log = self.own / "log.txt"
        kernels = self.kernels if root == self.base else root / KERNELS
        sys.stdout.flush()
        child = os.fork()
        if child == 0:
            _set_limits(limit)
            os.environ["SKTS_EMULATOR_CACHE"] = str(kernels)
            # of its own: pytest numbers its folders, and many at once take the same number
            (self.own / "tmp").mkdir(exist_ok=True)
            for name in ("TMPDIR", "PYTEST_DEBUG_TEMPROOT"):
                os.environ[name] = str(self.own / "tmp")
            tempfile.tempdir = None
            _run_child(function, root, mode, args, answer, log)
        _running.add(child)
        stop = time.monotonic() + self.patience * limit
        try:
            while (ended := os.waitpid(child, os.WNOHANG)) == (0, 0):
                if time.monotonic() > self.deadline:
                    raise OutOfTime
                if time.monotonic() > stop:
                    return None
                time.sleep(0.02)
            if os.WIFSIGNALED(ended[1]) and os.WTERMSIG(ended[1]) == signal.SIGXCPU:
                return None
        finally:
            # whatever it started, and itself where it is late or this process was interrupted
            with suppress(ProcessLookupError):
                os.killpg(child, signal.SIGKILL)
            with suppress(ChildProcessError):
                os.waitpid(child, 0)
            _running.discard(child)
            self._share(kernels)
        return json.loads(answer.read_text()) if answer.exists() else {}


def _set_limits(seconds: float) -> None:
    """Limit what this process may take, and let it be the first that the system ends."""
    resource.setrlimit(resource.RLIMIT_CPU, (int(seconds), int(seconds) + 5))
    resource.setrlimit(resource.RLIMIT_DATA, (MEMORY, MEMORY))
    with suppress(OSError):
        Path("/proc/self/oom_score_adj").write_text("1000")


def _run_child(
    function: Callable[..., Any], root: Path, mode: str, args: tuple, answer: Path, log: Path
) -> None:
    """Work in the forked process, and end it."""
    code = 1
    try:
        os.setpgid(0, 0)
        for number in (signal.SIGINT, signal.SIGTERM):
            signal.signal(number, signal.default_int_handler)
        os.chdir(root)
        output = os.open(log, os.O_WRONLY | os.O_CREAT | os.O_TRUNC)
        for stream in (1, 2):
            os.dup2(output, stream)
        paths = [str(root)]
        if mode == "emulated":
            os.environ["SKTS_EMULATE_GPU"] = "1"
            os.environ["SKTS_EMULATOR_TIMEOUT"] = "30"
            paths.append(os.environ.get("SKTS_EMULATOR", str(root / "tests/emulator")))
        else:
            os.environ["CUDA_VISIBLE_DEVICES"] = ""  # a GPU, where there is one
        os.environ["PYTHONPATH"] = os.pathsep.join(paths)
        own = str(Path(__file__).parents[2])
        sys.path[:] = paths + [p for p in sys.path if p not in ("", own, str(root))]
        for name in [n for n in sys.modules if n.split(".")[0] in ("skts", "reference")]:
            del sys.modules[name]
        if mode == "interpreted":
            import numba

            os.environ["NUMBA_DISABLE_JIT"] = "1"
            numba.config.reload_config()
        import skts

        if not skts.__file__.startswith(str(root)):
            raise RuntimeError(f"{skts.__file__} was imported, which is not the copy.")
        partial = answer.with_suffix(".part")
        partial.write_text(json.dumps(function(root, *args)))
        partial.replace(answer)
        code = 0
    except BaseException:
        traceback.print_exc()
        raise
    finally:
        for stream in (sys.stdout, sys.stderr):
            stream.flush()
        os._exit(code)


def _import_what_tests_need() -> None:
    # as many threads as cores that a process has: see `parallel`
    os.environ.setdefault("NUMBA_NUM_THREADS", str(min(2, len(os.sched_getaffinity(0)))))
    os.environ.setdefault("OMP_NUM_THREADS", "1")
    for name in ("joblib", "numba", "numpy.testing", "pytest", "scipy.fft", "scipy.linalg"):
        importlib.import_module(name)
    for name in ("hypothesis", "sklearn.utils.estimator_checks"):
        with suppress(ImportError):  # tests that need it are not in the tables then
            importlib.import_module(name)
