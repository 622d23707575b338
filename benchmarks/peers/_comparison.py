"""The frame of a comparison: arguments, environments of the peers, rounds, and the record."""

import argparse
import os
import sys
from pathlib import Path

from benchmarks import _records
from benchmarks.peers import _environments, _rounds

#: What of a library's environment a record holds, beside its own version.
ALONGSIDE = {"python", "numpy", "numba"}


def make_parser(description, peers, works, output, *, threads, repeats=5, patience=60):
    """A parser with the arguments that all comparisons have."""
    parser = argparse.ArgumentParser(description=description.split("\n\n", 1)[0])
    everyone = ("skts", *peers)
    parser.add_argument("--libraries", nargs="+", choices=everyone, default=everyone)
    parser.add_argument("--works", nargs="+", choices=works, default=list(works))
    parser.add_argument("--threads", nargs="+", type=int, default=threads, metavar="N")
    parser.add_argument("--repeats", type=int, default=repeats, help=f"rounds (default: {repeats})")
    parser.add_argument(
        "--patience", type=float, default=patience, help="seconds for one library at one work"
    )
    parser.add_argument(
        "--environments", type=Path, default=_environments.FOLDER, help="folder of the peers'"
    )
    parser.add_argument(
        "--python", default=sys.executable, help="interpreter of environments that are made"
    )
    parser.add_argument("--upgrade", action="store_true", help="peers to their current versions")
    parser.add_argument("--output", type=Path, default=_records.RESULTS / output)
    return parser


class Comparison:
    """The options of the command line, and the results so far.

    Parameters
    ----------
    script : path
        The worker script.
    options : argparse.Namespace
        Of a parser from `make_parser`.
    tolerance : float
        By how much results may differ, of their largest value.

    Attributes
    ----------
    rows : list of dict
        Rows of the record, which the caller adds.
    """

    def __init__(self, script, options, tolerance=1e-9):
        self.script, self.options, self.tolerance = script, options, tolerance
        self.rows, self.pythons, self.missing, self.versions = [], {}, {}, {}
        for library in options.libraries:
            try:
                self.pythons[library] = self._python(library)
            except _environments.InstallationError as error:
                self.missing[library] = str(error).splitlines()[0]
                print(error, file=sys.stderr)

    def measure(self, request, threads, libraries=None):
        """Let libraries, or all of them, do the work of a request; an `Outcome` for each."""
        outcomes = _rounds.measure(
            self.script,
            request,
            {name: self.pythons[name] for name in libraries or self.pythons},
            threads=threads,
            repeats=self.options.repeats,
            patience=self.options.patience,
            tolerance=self.tolerance,
        )
        for outcome in outcomes:
            kept = sorted({outcome.library, *ALONGSIDE} & outcome.versions.keys())
            if kept:
                self.versions[outcome.library] = {key: outcome.versions[key] for key in kept}
        return outcomes

    def write(self, title, **more):
        """Write the record."""
        found = _records.record(
            title,
            device=f"{_records.cpu()}, {os.cpu_count()} cores",
            versions=self.versions,
            rows=self.rows,
            missing=self.missing,
            **more,
        )
        _records.write(self.options.output, found)

    def exit_if_skts_failed(self):
        """Exit with an error where a row of skts does not agree."""
        if not all(row["result"] == "agrees" for row in self.rows if row["library"] == "skts"):
            sys.exit("skts failed, or its results are not those of its peers")

    def _python(self, library):
        if library == "skts":
            return sys.executable
        return _environments.interpreter(
            library,
            folder=self.options.environments,
            python=self.options.python,
            upgrade=self.options.upgrade,
        )
