"""One virtual environment for each peer: they pin versions of Numba and NumPy that do not agree."""

import shutil
import subprocess
import sys
from pathlib import Path

FOLDER = Path(__file__).resolve().parent / ".environments"


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
    mine = home / "bin" / "python"
    stamp = home / "installed"
    if not stamp.exists():
        shutil.rmtree(home, ignore_errors=True)
        _run(peer, [python, "-m", "venv", home])
    elif not upgrade:
        return mine
    pip = [mine, "-m", "pip", "install", "--quiet", "--disable-pip-version-check", "--upgrade"]
    _run(peer, [*pip, peer])
    stamp.touch()
    return mine


def _run(peer, command):
    done = subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
    if done.returncode:
        tail = "\n".join(done.stdout.strip().splitlines()[-5:])
        raise InstallationError(f"{peer} could not be installed:\n{tail}")
