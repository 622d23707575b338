"""The frame of a comparison: arguments, environments of the peers, rounds, and the record."""

import argparse
import os
import sys
from pathlib import Path

from benchmarks import _records
from benchmarks.peers import _ceiling, _environments, _rounds

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
    parser.add_argument("--commit", help="what to record where there is no git")
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
        Rows of the record: of `measure_all`, or which the caller adds.
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

    def measure(self, request, threads, libraries=None, tolerance=None):
        """Let libraries, or all of them, do the work of a request; an `Outcome` for each."""
        outcomes = _rounds.measure(
            self.script,
            request,
            {name: path for name, path in self.pythons.items() if name in (libraries or [name])},
            threads=threads,
            repeats=self.options.repeats,
            patience=self.options.patience,
            tolerance=tolerance or self.tolerance,
        )
        for outcome in outcomes:
            kept = sorted({outcome.library, *ALONGSIDE} & outcome.versions.keys())
            if kept:
                self.versions[outcome.library] = {key: outcome.versions[key] for key in kept}
        return outcomes

    def measure_all(self, works):
        """Measure the works that were asked for; print a table of each, and add its rows.

        Parameters
        ----------
        works : dict
            By name: has a `name`, and a method `request`, which returns the input of the workers
            and the number of cells; where the same work is done in several sizes, `curve` is the
            name of the line that they are drawn as, `size` the place on it, and `operations` those
            that no method saves.

        Returns
        -------
        list of (dict, Outcome)
            The rows, and the outcomes that they are of.
        """
        found = []
        for work in (works[name] for name in self.options.works):
            request, cells = work.request()
            for threads in self.options.threads:
                outcomes = self.measure(request, threads, **self._special(work))
                new = list(rows(work, outcomes, threads, cells))
                print(*table(new), sep="\n", flush=True)
                found += zip(new, outcomes, strict=True)
        self.rows += [row | {"difference": outcome.difference} for row, outcome in found]
        return found

    def _special(self, work):
        """What `measure` is told of a work beside its request."""
        names = ("libraries", "tolerance")
        return {name: value for name in names if (value := getattr(work, name, None)) is not None}

    def write(self, title, **more):
        """Write the record."""
        found = _records.record(
            title,
            device=f"{_records.cpu()}, {os.cpu_count()} cores",
            versions=self.versions,
            rows=self.rows,
            commit=self.options.commit,
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


def rows(work, outcomes, threads, cells):
    """The figures kept of each outcome: the columns of the table."""
    mine = next((o for o in outcomes if o.library == "skts" and not o.failure), None)
    for outcome in outcomes:
        row = {"work": work.name, "threads": threads, "library": outcome.library}
        if work.curve:
            row |= {"curve": work.curve, "size": work.size}
            if outcome.library == "skts" and threads == 1:
                row["ceiling"] = work.operations / _ceiling.operations_per_second()
        if outcome.failure:
            yield row | {"result": f"failed: {outcome.failure}"}
            continue
        yield row | {
            "seconds": outcome.seconds,
            "fastest": min(outcome.wall),
            "rounds": len(outcome.wall),
            "Gcells/s": cells / outcome.seconds / 1e9,
            "time / skts": outcome.seconds / mine.seconds if mine else None,
            "result": "agrees"
            if outcome.agrees
            else f"DISAGREES by {outcome.difference:.2g}: times cannot be compared",
        }


def table(rows):
    """The rows of one work, as lines of text."""
    yield f"\n{rows[0]['work']}, {rows[0]['threads']} thread(s)"
    head = f"  {'library':14}{'median s':>10}{'fastest':>10}{'rounds':>8}{'Gcells/s':>10}"
    yield f"{head}{'/ skts':>8}"
    for row in rows:
        line = f"  {row['library']:14}"
        if "seconds" in row:
            line += f"{row['seconds']:10.3f}{row['fastest']:10.3f}{row['rounds']:8}"
            line += f"{row['Gcells/s']:10.3f}"
            line += f"{row['time / skts']:8.2f}" if row["time / skts"] else " " * 8
        yield f"{line}  {row['result']}"
