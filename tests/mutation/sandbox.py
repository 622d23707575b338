"""A scratch copy of the package, and processes that run its tests there.

Processes are forked from this one, which has imported what tests need but not the package: that
saves the seconds that NumPy, Numba, scikit-learn and pytest take to start.
"""

from __future__ import annotations

import atexit
import importlib
import json
import os
import resource
import shutil
import signal
import sys
import time
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Any

__all__ = ["Sandbox"]

#: What a copy of the repository holds.
PARTS = ("skts", "tests", "pyproject.toml", "README.md", "docs", "examples")


class Sandbox:
    """A copy of the repository, kept between runs with the kernels that were compiled in it.

    Parameters
    ----------
    root : Path
        The repository.
    folder : Path
        Where copies go.
    """

    def __init__(self, root: Path, folder: Path) -> None:
        self.root = root
        self.base = folder / "base"
        # what one process writes, so that several may run at once
        self.own = folder / f"run-{os.getpid()}"
        self.own.mkdir(parents=True, exist_ok=True)
        atexit.register(shutil.rmtree, self.own, ignore_errors=True)
        self._refresh()

    def _refresh(self) -> None:
        """Bring the copy up to date; what did not change keeps its time, and its kernels."""
        wanted = set()
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
                    shutil.copyfile(file, target)
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
        return copy

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
            kills nothing; and a tenth of the time on the clock after which it and all it started
            are.
        """
        _import_what_tests_need()
        answer = self.own / "answer.json"
        answer.unlink(missing_ok=True)
        sys.stdout.flush()
        child = os.fork()
        if child == 0:
            resource.setrlimit(resource.RLIMIT_CPU, (int(limit), int(limit) + 5))
            _run_child(function, root, mode, args, answer, self.own / "log.txt")
        stop = time.monotonic() + 10 * limit
        try:
            while (ended := os.waitpid(child, os.WNOHANG)) == (0, 0):
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
        return json.loads(answer.read_text()) if answer.exists() else {}


def _run_child(
    function: Callable[..., Any], root: Path, mode: str, args: tuple, answer: Path, log: Path
) -> None:
    """Work in the forked process, and end it."""
    code = 1
    try:
        os.setpgid(0, 0)
        os.chdir(root)
        output = os.open(log, os.O_WRONLY | os.O_CREAT | os.O_TRUNC)
        for stream in (1, 2):
            os.dup2(output, stream)
        paths = [str(root)]
        if mode == "emulated":
            os.environ["SKTS_EMULATE_GPU"] = "1"
            paths.append(os.environ.get("SKTS_EMULATOR", str(root / "tests/emulator")))
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
    finally:
        sys.stdout.flush()
        os._exit(code)


def _import_what_tests_need() -> None:
    for name in ("hypothesis", "joblib", "numba", "numpy.testing", "pytest", "scipy.fft"):
        importlib.import_module(name)
    for name in ("scipy.linalg", "sklearn.utils.estimator_checks"):
        importlib.import_module(name)
