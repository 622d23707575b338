"""Parts that the scripts of a paper's tables and figures share: arguments, deadline, and record."""

import argparse
import math
import sys
import time
from pathlib import Path

from benchmarks import _cores, _records
from benchmarks._gpu import device_and_versions

#: Columns that come last in a row.
LAST = ("checked",)


def make_parser(description, outputs, parts):
    """A parser with the arguments that all of them have.

    Parameters
    ----------
    description : str
        The script's; its first paragraph is shown.
    outputs : dict
        The file of the record of each engine.
    parts : dict
        What can be asked for alone.
    """
    parser = argparse.ArgumentParser(description=description.split("\n\n", 1)[0])
    parser.add_argument("--engine", choices=outputs, default="numba")
    parser.add_argument("--parts", nargs="+", choices=parts, default=list(parts))
    parser.add_argument("--seconds", type=float, default=math.inf, help="begin no row after these")
    parser.add_argument("--note", help="what to record beside the rows")
    parser.add_argument("--commit", help="what to record where there is no git")
    parser.add_argument("--output", type=Path)
    return parser


def parse(parser, outputs):
    """Arguments, with the moment after which no row begins."""
    options = parser.parse_args()
    options.output = options.output or _records.RESULTS / outputs[options.engine]
    options.end = time.monotonic() + options.seconds
    return options


def threads():
    """Numbers of threads to compare: powers of two, and all cores that this process may use."""
    most = len(_cores.available())
    return sorted({1 << k for k in range(most.bit_length()) if 1 << k <= most} | {most})


def keep(title, rows, options, **more):
    """Print rows as they come, and write the record after each.

    What was made stays, should a later row be cut off; none begins after `options.end`.
    """
    kept = []
    device = _cores.device(_cores.available())
    versions = _records.versions("skts", "numpy", "numba", "scikit-learn")
    if options.engine == "cupy":
        device, versions = device_and_versions()
    if options.note:
        more["note"] = options.note
    for row in rows:
        row |= {name: row.pop(name) for name in LAST if name in row}
        print(", ".join(f"{key}: {value}" for key, value in row.items()), flush=True)
        kept.append(row)
        found = _records.record(
            title, device=device, versions=versions, rows=kept, commit=options.commit, **more
        )
        _records.write(options.output, found)
        if time.monotonic() > options.end:
            print("the time is up: later rows are left out")
            break
    if any(str(row.get("checked", "")).startswith("FAILED") for row in kept):
        sys.exit("a result is wrong: see the rows that FAILED")
