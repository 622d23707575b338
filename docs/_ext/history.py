"""After an HTML build, asv's pages of recorded speeds over the life of the project: ``history/``.

Results are those of ``benchmarks/history``, which ``make history`` writes. Where asv or the
repository is missing (an unpacked archive), a page says so, so that links lead somewhere.
"""

import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).parents[2]
MISSING = "<!DOCTYPE html><title>skts</title><p>Build from the repository, with asv, to see this."


def publish(app, error):
    if error is not None or app.builder.name != "html":
        return
    folder = Path(app.outdir) / "history"
    command = [sys.executable, "-m", "asv", "publish", "--no-pull", "--html-dir", str(folder)]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    page = folder / "index.html"
    if done.returncode or not page.exists():
        folder.mkdir(exist_ok=True)
        page.write_text(MISSING)


def setup(app):
    # before links are checked
    app.connect("build-finished", publish, priority=100)
    return {"version": "1", "parallel_read_safe": True}
