"""Every comparison with other packages on the CPU, one after the other: all records in one command.

    python -m benchmarks.peers
    python -m benchmarks.peers --environments FOLDER --only profile search

Takes an hour, on a machine that does nothing else. A comparison that fails does not stop the
others.
"""

import argparse
import subprocess
import sys
from pathlib import Path

#: Found, not listed: whoever has a worker beside it.
FAMILIES = sorted(
    path.name[1:].removesuffix("_worker.py") for path in Path(__file__).parent.glob("_*_worker.py")
)


def main():
    parser = argparse.ArgumentParser(prog="python -m benchmarks.peers", description=__doc__)
    parser.formatter_class = argparse.RawDescriptionHelpFormatter
    parser.add_argument("--only", nargs="+", choices=FAMILIES, default=FAMILIES)
    options, others = parser.parse_known_args()
    failed = []
    for family in options.only:
        print(f"== {family}", flush=True)
        command = [sys.executable, "-m", f"benchmarks.peers.{family}", *others]
        if subprocess.run(command).returncode:
            failed.append(family)
    if failed:
        sys.exit(f"failed: {', '.join(failed)}")


if __name__ == "__main__":
    main()
