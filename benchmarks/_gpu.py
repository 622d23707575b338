"""What the benchmarks on a GPU share: their arguments, and how rows are printed and kept."""

import argparse
import sys
from pathlib import Path

from benchmarks import _records
from benchmarks.gpu_dtw import device_and_versions


def make_parser(description, output):
    """A parser with the arguments that all of them have."""
    parser = argparse.ArgumentParser(description=description.split("\n\n", 1)[0])
    parser.add_argument("--commit", help="what to record where there is no git")
    parser.add_argument("--output", type=Path, default=_records.RESULTS / output)
    return parser


def keep_rows(title, rows, options):
    """Print rows as they come and write the record after each, should a later one be cut off."""
    kept = []
    for row in rows:
        goal = "" if row["must"] is None else f", must {row['must']:.4g}"
        goal += "" if row["reach"] is None else f", reach {row['reach']:.4g}"
        value = f"{row['value']:.4g} {row['unit']}"
        print(f"{row['work']}: {value}{goal} ({row['checked']})", flush=True)
        kept.append(row)
        device, versions = device_and_versions()
        found = _records.record(
            title, device=device, versions=versions, rows=kept, commit=options.commit
        )
        _records.write(options.output, found)
    if any(row["checked"].startswith("FAILED") for row in kept):
        sys.exit("a result is wrong: see the rows that FAILED")
