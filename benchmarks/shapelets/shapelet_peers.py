"""Shapelet models of skts beside those of aeon and wildboar: accuracy and seconds, in one table.

    SKTS_DATA=<folder> python -m benchmarks.shapelets.shapelet_peers --python python3.13

Every model has the defaults of its library and one thread, and its own process; the forests have
100 trees each. The work with the least to do comes first, and the run ends after `--minutes` of
processor time, warm-ups not counted. A model that takes longer than `--patience` seconds by the
clock at a set, on a machine that may have other users, is not tried at larger ones.

The record, `benchmarks/results/shapelet-peers.json`, is written after every model: a run that was
ended goes on where it was, since what the record holds is not run again (``--afresh`` starts anew).
One row for each set, with the accuracy and the seconds of each model, and what was left out, and
why; then the means over the sets that all models have finished, that all but one have, and that all
but two have.
"""

import argparse
import json
import os
import subprocess
import sys
import tempfile
from pathlib import Path

import numpy as np

from benchmarks import _records
from benchmarks.peers import _environments
from benchmarks.peers._comparison import ALONGSIDE
from benchmarks.peers._rounds import THREADS
from benchmarks.shapelets.shapelet_forests import load, sets

SCRIPT = Path(__file__).with_name("_peers_worker.py")
MODELS = (
    "skts tree", "skts forest", "skts transform", "wildboar forest", "aeon RDST", "aeon STC",
)  # fmt: skip
OUTPUT = "shapelet-peers.json"
TOO_LONG = "more than {:g} seconds by the clock, with starting and warming up"
#: Begins the reason of what another run may do.
RETRIED = "after the"


def measured(python, model, data, seed, patience):
    """What the worker says of one model at one set, or why it says nothing."""
    with tempfile.TemporaryDirectory() as folder:
        request, answer = Path(folder) / "request.npz", Path(folder) / "answer.json"
        np.savez(request, seed=seed, **dict(zip("XyZz", data, strict=True)))
        variables = dict(os.environ, OMP_WAIT_POLICY="passive", **dict.fromkeys(THREADS, "1"))
        command = [python, SCRIPT, model, request, answer]
        try:
            done = subprocess.run(
                command, capture_output=True, text=True, env=variables, timeout=patience
            )
        except subprocess.TimeoutExpired:
            return TOO_LONG.format(patience)
        if done.returncode:
            return (done.stderr.strip().splitlines() or [f"exit status {done.returncode}"])[-1]
        return json.loads(answer.read_text())


def interpreters(options):
    """The interpreter of each library; of those that cannot be installed, why."""
    found, missing = {"skts": sys.executable}, {}
    for library in sorted({model.split()[0] for model in options.models} - {"skts"}):
        try:
            found[library] = _environments.interpreter(
                library, folder=options.environments, python=options.python
            )
        except _environments.InstallationError as error:
            missing[library] = str(error).splitlines()[0]
    return found, missing


def means(rows, models):
    """Mean accuracies and sums of seconds: of all models, of all but one, and of all but two."""
    finished = {model: sum(model in row for row in rows) for model in models}
    chosen, sizes = list(models), set()
    for _ in range(3):
        both = [row for row in rows if all(model in row for model in chosen)]
        if both and len(both) not in sizes:
            sizes.add(len(both))
            row = {"set": f"{len(both)} sets: mean accuracy, sum of seconds"}
            for model in chosen:
                row[model] = float(np.mean([one[model] for one in both]))
                for work in ("fit", "predict"):
                    row[f"{model}, {work} s"] = sum(one[f"{model}, {work} s"] for one in both)
            yield row
        chosen.remove(min(chosen, key=finished.__getitem__))


class Table:
    """The record so far: its rows, and what is not in them."""

    def __init__(self, options):
        self.options = options
        before = {}
        if options.output.exists() and not options.afresh:
            before = json.loads(options.output.read_text())
        self.rows = [row for row in before.get("rows", []) if "series" in row]
        for row in self.rows:
            row.pop("left out", None)
        self.left_out = before.get("left out", {})
        self.versions = before.get("versions", {})

    def row(self, name, data):
        """The row of a set, which is made where there is none."""
        for row in self.rows:
            if row["set"] == name:
                return row
        X, y = data[:2]
        row = {"set": name, "series": len(X), "time points": X.shape[1]}
        self.rows.append(row | {"classes": len(np.unique(y)), "test series": len(data[2])})
        return self.rows[-1]

    @property
    def seconds(self):
        """Processor seconds of all fits and predictions."""
        return sum(value for row in self.rows for key, value in row.items() if key.endswith(" s"))

    def add(self, row, model, found):
        """Take what a worker said."""
        if isinstance(found, str):
            self.left_out.setdefault(model, {})[row["set"]] = found
            return
        self.left_out.get(model, {}).pop(row["set"], None)
        row[model] = found["accuracy"]
        row[f"{model}, fit s"], row[f"{model}, predict s"] = found["fit"], found["predict"]
        library, versions = model.split()[0], found["versions"]
        kept = sorted({library, *ALONGSIDE} & versions.keys())
        self.versions[library] = {key: versions[key] for key in kept}

    def _with_gaps(self, row):
        """A row, and which models have no figures in it, and why."""
        gaps = {
            model: sets[row["set"]] for model, sets in self.left_out.items() if row["set"] in sets
        }
        return row | ({"left out": gaps} if gaps else {})

    def write(self):
        """Write the record."""
        found = _records.record(
            "Shapelet models beside their peers on a CPU, one thread",
            device=f"{_records.cpu()}, {os.cpu_count()} cores",
            versions=self.versions,
            rows=[*map(self._with_gaps, self.rows), *means(self.rows, MODELS)],
            **{"left out": {model: sets for model, sets in self.left_out.items() if sets}},
        )
        _records.write(self.options.output, found)


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n\n", 1)[0])
    parser.add_argument("--models", nargs="+", choices=MODELS, default=MODELS)
    parser.add_argument("--sets", nargs="*", help="names of sets, instead of all")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--minutes", type=float, default=60, help="of the processor, in all")
    parser.add_argument("--patience", type=float, default=300, help="seconds of a model at a set")
    parser.add_argument("--environments", type=Path, default=_environments.FOLDER)
    parser.add_argument("--python", default=sys.executable, help="of environments that are made")
    parser.add_argument("--afresh", action="store_true", help="forget what the record holds")
    parser.add_argument("--output", type=Path, default=_records.RESULTS / OUTPUT)
    options = parser.parse_args()
    folder = os.environ.get("SKTS_DATA")
    if not folder:
        sys.exit("SKTS_DATA names no folder of data")
    pythons, missing = interpreters(options)
    table = Table(options)
    slow = set()
    for name in sets(folder, options.sets):
        print(name, flush=True)
        data = load(folder, name)
        row = table.row(name, data)
        for model in options.models:
            library = model.split()[0]
            known = table.left_out.get(model, {}).get(name, "")
            slow |= {model} if known == TOO_LONG.format(options.patience) else set()
            if model in row or (known and not known.startswith(RETRIED)):
                # what failed once fails again
                continue
            if library in missing:
                table.add(row, model, missing[library])
            elif model in slow:
                table.add(row, model, "took too long at a smaller set")
            elif table.seconds > 60 * options.minutes:
                table.add(row, model, f"{RETRIED} {options.minutes:g} minutes of the run")
            else:
                found = measured(pythons[library], model, data, options.seed, options.patience)
                if found == TOO_LONG.format(options.patience):
                    slow.add(model)
                table.add(row, model, found)
                table.write()
    table.write()


if __name__ == "__main__":
    main()
