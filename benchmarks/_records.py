"""Facts kept with a recorded run, and where it is kept: `benchmarks/results/*.json`."""

import json
import os
import platform
import shlex
import subprocess
import sys
from datetime import UTC, datetime
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
RESULTS = ROOT / "benchmarks" / "results"


def revision():
    """The commit of the working tree, with "+changes" when files differ; None outside of git."""

    def git(*arguments):
        return subprocess.run(
            ["git", "-C", ROOT, *arguments], check=True, capture_output=True, text=True
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


def record(name, *, device, versions, rows, commit=None, **more):
    """A record: what ran, on what, which versions, when, and one row for each figure."""
    return {
        "name": name,
        "device": device,
        "machine": {"cpu": cpu(), "cores": os.cpu_count(), "platform": platform.platform()},
        "versions": versions,
        "commit": commit or revision(),
        "date": datetime.now(UTC).isoformat(timespec="seconds"),
        "command": _command(),
        **more,
        "rows": rows,
    }


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


def _command():
    """The command line, without the folders of this machine."""
    module = sys.modules["__main__"].__spec__
    script = ["-m", module.name] if module else sys.argv[:1]
    words = [*script, *sys.argv[1:]]
    return shlex.join(["python", *(Path(w).name if os.path.isabs(w) else w for w in words)])
