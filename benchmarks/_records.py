"""Facts kept with a recorded run, and where it is kept: `benchmarks/results/*.json`."""

import hashlib
import json
import os
import platform
import re
import shlex
import subprocess
import sys
from datetime import UTC, datetime
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path

from benchmarks import _code

ROOT = Path(__file__).resolve().parent.parent
RESULTS = ROOT / "benchmarks" / "results"


def revision(tree=ROOT):
    """The commit of a working tree, with "+changes" when files differ; None outside of git."""

    def git(*arguments):
        return subprocess.run(
            ["git", "-C", tree, *arguments], check=True, capture_output=True, text=True
        ).stdout.strip()

    try:
        name = git("rev-parse", "--short=12", "HEAD")
        return name + ("+changes" if git("status", "--porcelain", "--", "skts") else "")
    except (OSError, subprocess.CalledProcessError):
        return None


def cpu():
    """The name of the processor."""
    try:
        lines = Path("/proc/cpuinfo").read_text().splitlines()
    except OSError:
        return platform.processor() or platform.machine()
    return next((line.split(":", 1)[1].strip() for line in lines if "model name" in line), "")


def versions(*packages):
    """Python's version and those of the packages that are installed here."""
    found = {"python": platform.python_version()}
    for package in packages:
        try:
            found[package] = version(package)
        except PackageNotFoundError:
            continue
    return found


def sources(script, engine):
    """Digests of the package, and of the folders of a script's family, or of all, on one engine.

    They say whether a commit is the one that was measured; `_code` says what of it was.

    Parameters
    ----------
    script : str
        The module, such as ``benchmarks.profile.gpu_join``.
    engine : str
        "numba" or "cupy".
    """
    engines = ROOT / "skts" / "engines"
    families = [path.name for path in sorted((engines / "families").iterdir()) if path.is_dir()]
    families = [name for name in families if not name.startswith("_")]
    words = re.split(r"[._]", script)
    own = [name for name in families if name in words] or families
    folders = [engines / layer / name for name in own for layer in ("families", engine)]
    folders.append(ROOT / "skts")
    return {path.relative_to(ROOT).as_posix(): digest(path) for path in folders}


#: So many paths of code that has changed are told.
_TOLD = 4


def changes(record):
    """What of the code that a record measured is not now what it was, as far as that is known.

    Yields
    ------
    str
        A path, or why it is not known.
    """
    found = record.get("sources", {})
    if not found:
        yield "it is not known which code was measured"  # one of the oldest
    elif "skts" not in found or any(
        not (ROOT / name).is_dir() or digest(ROOT / name) != known for name, known in found.items()
    ):
        yield from _code.changes(record, ROOT)


def unchanged(record):
    """Whether the code that a record measured is as it was, as far as that is known."""
    return next(changes(record), None) is None


def state_of_code(record):
    """What pages say of the code that a record measured: what has changed, engines first."""
    found = sorted(set(changes(record)), key=lambda path: (_is_outside(path), path))
    if not found:
        return "as it is now"
    where = " outside the engines" if all(map(_is_outside, found)) else ""
    more = f" and {len(found) - _TOLD} more" if len(found) > _TOLD else ""
    return f"has changed since{where}: {', '.join(found[:_TOLD])}{more}"


def _is_outside(path):
    """Whether a path, which may be a reason, too, is one of no engine."""
    return path.startswith("skts/") and not path.startswith("skts/engines/")


def digest(folder):
    """Digest of all sources of a folder."""
    found = hashlib.sha256()
    for path in sorted(folder.rglob("*")):
        if path.suffix in (".py", ".cu", ".cuh"):
            found.update(path.relative_to(folder).as_posix().encode() + b"\0" + path.read_bytes())
    return found.hexdigest()[:16]


def record(name, *, device, versions, rows, commit=None, **more):
    """A record: what ran, on what, which versions, when, and one row for each figure."""
    engine = "cupy" if any(package.startswith("cupy") for package in versions) else "numba"
    return {
        "name": name,
        "device": device,
        "machine": {"cpu": cpu(), "cores": os.cpu_count(), "platform": platform.platform()},
        "versions": versions,
        "commit": commit or revision(),
        "date": datetime.now(UTC).isoformat(timespec="seconds"),
        "command": _command(),
        "sources": sources(_script(), engine),
        **more,
        "rows": rows,
    }


def device_of(found):
    """The device of a record; the processor's name where it says no more than that it was one."""
    known = found.get("machine", {})
    if found["device"] != "CPU" or not known.get("cpu"):
        return found["device"]
    return f"{known['cpu']}, {known['cores']} cores"


def write(path, content):
    """Write a record as JSON."""
    path = Path(path)
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(json.dumps(content, indent=1) + "\n")
    print(f"written: {os.path.relpath(path)}")


def write_cpu(path, name, rows, **more):
    """Write the record of a run on the CPU."""
    found = versions("skts", "numpy", "numba")
    write(path, record(name, device="CPU", versions=found, rows=rows, **more))


def _script():
    """The module that runs, or its file."""
    module = sys.modules["__main__"].__spec__
    return module.name.removesuffix(".__main__") if module else Path(sys.argv[0]).stem


def _command():
    """The command line, without the folders of this machine."""
    script = ["-m", _script()] if sys.modules["__main__"].__spec__ else sys.argv[:1]
    words = [*script, *sys.argv[1:]]
    return shlex.join(["python", *(Path(w).name if os.path.isabs(w) else w for w in words)])
