"""One virtual environment for each peer: they pin versions of Numba and NumPy that do not agree."""

import fcntl
import os
import shutil
import subprocess
import sys
from pathlib import Path
from typing import NamedTuple

FOLDER = Path(__file__).resolve().parent / ".environments"


class Needs(NamedTuple):
    """What pip does not find out by itself: packages to build with, and to add; variables."""

    build: tuple[str, ...] = ()
    added: tuple[str, ...] = ()
    variables: dict[str, str] = {}


NEEDS = {
    # it is compiled by the distutils of NumPy, which wants a setuptools of its own time
    "ucrdtw": Needs(build=("numpy<2", "setuptools<65", "wheel")),
    # it imports scikit-learn, and does not ask for it
    "kshape": Needs(added=("scikit-learn",)),
    # compiled by CMake, here without its CUDA part; it returns arrays, and does not ask for NumPy
    "pyscamp": Needs(added=("numpy",), variables={"FORCE_NO_CUDA": "1"}),
}


class InstallationError(Exception):
    """A peer could not be installed."""


def interpreter(peer, *, folder=FOLDER, python=sys.executable, upgrade=False):
    """The Python of a peer's environment, which is made from PyPI when it is not there.

    Parameters
    ----------
    peer : str
        What to install: a name on PyPI, at its current version for the interpreter.
    folder : path
        Where the environments are.
    python : str
        The interpreter to make a new environment with. A peer's newest version may want a newer
        one than skts does.
    upgrade : bool
        Bring an environment that exists to the current versions.

    Raises
    ------
    InstallationError
        With the last lines of pip's output.
    """
    home = Path(folder).resolve() / peer
    if (home / "installed").exists() and not upgrade:
        return home / "bin" / "python"
    home.parent.mkdir(parents=True, exist_ok=True)
    # works at once want the same environment: one process makes it, and the others wait
    with open(home.with_name(f"{peer}.lock"), "w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        return _made(peer, home, python, upgrade)


def _made(peer, home, python, upgrade):
    """The Python of an environment that nobody else makes or changes."""
    mine = home / "bin" / "python"
    stamp = home / "installed"
    if not stamp.exists():
        shutil.rmtree(home, ignore_errors=True)
        _run(peer, [python, "-m", "venv", home])
    elif not upgrade:
        return mine
    pip = [mine, "-m", "pip", "install", "--quiet", "--disable-pip-version-check", "--upgrade"]
    needs = NEEDS.get(peer, Needs())
    if needs.build:
        _run(peer, [*pip, *needs.build])
        pip.append("--no-build-isolation")
    _run(peer, [*pip, peer, *needs.added], needs.variables)
    stamp.touch()
    return mine


def _run(peer, command, variables=None):
    done = subprocess.run(
        command,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        env={**os.environ, **(variables or {})},
    )
    if done.returncode:
        tail = "\n".join(done.stdout.strip().splitlines()[-5:])
        raise InstallationError(f"{peer} could not be installed:\n{tail}")
