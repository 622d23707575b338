"""Shapelet models of skts beside those of aeon and wildboar: accuracy and seconds, in one table.

    SKTS_DATA=<folder> python -m benchmarks.shapelets.shapelet_peers --python python3.13
    SKTS_DATA=<folder> python -m benchmarks.shapelets.shapelet_peers --gpu --minutes 9

Every model has the defaults of its library, its own process, and one thread on a core of its own;
so many of them run at once as there are cores (`--cores`). The forests have 100 trees each. With
``--gpu`` the models of skts are fitted again on a GPU, one after the other, and their labels are
compared with those of the CPU.

The exact tree has more threads where one would take minutes: the column *skts tree, threads* says
how many, and its seconds are then by the clock, not of the processor. Where that would not do
either, it is fitted on the GPU alone.

The run ends after `--minutes` by the clock. A model that takes longer than `--patience` seconds at
a set is not tried where it has more to do. The record, `benchmarks/results/shapelet-peers.json`, is
written after every model: a run that was ended goes on where it was, since what the record holds is
not run again (``--afresh`` starts anew). One row for each set, with the accuracy and the seconds of
each model, what was left out, and why, and the accuracies of other programs that `reference.csv`
states; then the means over the sets that all models have finished, that all but one have, and that
all but two have. The accuracy of a tree that only the GPU has grown counts there.
"""

import argparse
import hashlib
import json
import os
import subprocess
import sys
import tempfile
from functools import partial
from pathlib import Path

import numpy as np

from benchmarks import _records
from benchmarks._cores import Deadline, Job, at_once, available, device
from benchmarks.peers import _environments
from benchmarks.peers._comparison import ALONGSIDE
from benchmarks.peers._rounds import THREADS
from benchmarks.shapelets.paper_shapelets import work
from benchmarks.shapelets.shapelet_forests import load, sets, stated

SCRIPT = Path(__file__).with_name("_peers_worker.py")
OWN = ("skts tree", "skts forest", "skts transform")
MODELS = (*OWN, "wildboar forest", "aeon RDST", "aeon STC")
OUTPUT = "shapelet-peers.json"
TOO_LONG = "more than {:g} seconds by the clock, with starting and warming up"
#: Ends the columns of a model that was fitted on a GPU.
ON_GPU = " on a GPU"
#: Of labels that both engines give.
SAME = "as on the CPU"
LARGER = "took too long at a smaller set"
#: Begins the reason of what another run may do.
RETRIED = "after the"
#: Pairs of windows that the tree takes in a second on one thread, at least; the seconds that it is
#: given, and the threads that it may have.
RATE, GIVEN, MOST = 0.3e9, 240, 8
#: Seconds that a model needs for a point of the training series, about, by those of earlier runs.
COSTS = {"skts forest": 1.2e-4, "skts transform": 1.2e-4, "aeon RDST": 3e-4}
OTHERWISE = 7e-4
#: Jobs that are shorter come first: they make the means.
SHORT = 20


def tree_seconds(X):
    """About how long an exact tree takes on one thread."""
    length = X.shape[1]
    return work(X, range(max(3, length // 4), int(0.67 * length) + 1)) / RATE


def seconds(model, X):
    """About how long a model takes on one thread: an order, not a promise."""
    return tree_seconds(X) if model == "skts tree" else COSTS.get(model, OTHERWISE) * X.size


def threads_of(model, X):
    """How many threads a model gets, so that it ends; None where it takes too long with all."""
    if model != "skts tree":
        return 1
    few = (n for n in (1, 2, 4, MOST) if tree_seconds(X) < n * GIVEN)
    return next(few, None)


def measured(python, model, engine, requests, patience, *, threads=1, cores=()):
    """What the worker says of one model at some sets, or why it says nothing: one for each.

    Parameters
    ----------
    python : path
        The interpreter of the model's library.
    model : str
        One of `MODELS`.
    engine : {"cpu", "gpu"}
        Where models of skts are fitted.
    requests : list of (tuple, int)
        Training and test series and classes of a set, and a seed.
    patience : float
        Seconds by the clock.
    threads, cores : int, sequence of int
        How many threads, and the cores that the process keeps to.
    """
    variables = dict(os.environ, OMP_WAIT_POLICY="passive", **dict.fromkeys(THREADS, str(threads)))
    with tempfile.TemporaryDirectory() as folder:
        files, answers = [], []
        for i, (data, seed) in enumerate(requests):
            request, answer = Path(folder) / f"{i}.npz", Path(folder) / f"{i}.json"
            arrays = dict(zip("XyZz", data, strict=True))
            np.savez(request, seed=seed, threads=threads, cores=cores, **arrays)
            files += [request, answer]
            answers.append(answer)
        why = TOO_LONG.format(patience)
        try:
            command = [python, SCRIPT, model, engine, *files]
            done = subprocess.run(
                command, capture_output=True, text=True, env=variables, timeout=patience
            )
            if done.returncode:
                status = f"exit status {done.returncode}"
                why = (done.stderr.strip().splitlines() or [status])[-1]
        except subprocess.TimeoutExpired:
            pass
        return [json.loads(file.read_text()) if file.exists() else why for file in answers]


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


def accuracy(row, model):
    """That of a model, or of the same one on a GPU; None where it has none."""
    return row.get(model, row.get(f"{model}{ON_GPU}"))


def means(rows, models):
    """Mean accuracies and sums of seconds: of all models, of all but one, and of all but two."""
    finished = {model: sum(accuracy(row, model) is not None for row in rows) for model in models}
    chosen, sizes = list(models), set()
    for _ in range(3):
        both = [row for row in rows if all(accuracy(row, model) is not None for model in chosen)]
        if both and len(both) not in sizes:
            sizes.add(len(both))
            row = {"set": f"{len(both)} sets: mean accuracy, sum of seconds"}
            for model in chosen:
                row[model] = float(np.mean([accuracy(one, model) for one in both]))
                for column in (f"{model}{end}" for end in ENDS):
                    if all(column in one for one in both):
                        row[column] = sum(one[column] for one in both)
            yield row
        chosen.remove(min(chosen, key=finished.__getitem__))


#: Of the columns with seconds of a model.
ENDS = (", fit s", ", predict s", f"{ON_GPU}, fit s", f"{ON_GPU}, predict s")


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
        self.gpu = before.get("gpu")
        #: Digests of the labels that each model gave to the test series, by set.
        self.labels = before.get("labels", {})

    def row(self, name, data):
        """The row of a set, which is made where there is none."""
        for row in self.rows:
            if row["set"] == name:
                return row
        X, y = data[:2]
        row = {"set": name, "series": len(X), "time points": X.shape[1]}
        self.rows.append(row | {"classes": len(np.unique(y)), "test series": len(data[2])})
        return self.rows[-1]

    def add(self, name, model, found, threads=1, where=""):
        """Take what a worker said of a model at a set; `where` is `ON_GPU` of one there."""
        (row,) = (row for row in self.rows if row["set"] == name)
        column = model + where
        if isinstance(found, str):
            self.left_out.setdefault(column, {})[name] = found
            return
        self.left_out.get(column, {}).pop(name, None)
        row[column] = found["accuracy"]
        row[f"{column}, fit s"], row[f"{column}, predict s"] = found["fit"], found["predict"]
        if threads > 1:
            row[f"{model}, threads"] = threads
        labels = json.dumps(found["labels"]).encode()
        self.labels.setdefault(column, {})[name] = hashlib.sha256(labels).hexdigest()[:16]
        library, versions = model.split()[0], found["versions"]
        kept = sorted(k for k in versions if k in {library, *ALONGSIDE} or k.startswith("cupy-"))
        if where or library not in self.versions:
            self.versions[library + where] = {key: versions[key] for key in kept}

    def _completed(self, row):
        """A row, whether the engines agree, and which models have no figures in it, and why."""
        name = row["set"]
        for model in OWN:
            both = [self.labels.get(column, {}).get(name) for column in (model, model + ON_GPU)]
            if all(both):
                same = both[0] == both[1]
                row = row | {f"{model}{ON_GPU}, labels": SAME if same else "DIFFER"}
        gaps = {model: sets[name] for model, sets in self.left_out.items() if name in sets}
        return row | ({"left out": gaps} if gaps else {})

    def write(self):
        """Write the record."""
        options, script = self.options, "benchmarks.shapelets.shapelet_peers"
        engines = ["numba", "cupy"] if self.gpu else ["numba"]
        more = {"gpu": self.gpu} if self.gpu else {}
        where = device(options.cores) + (f"; {self.gpu}" if self.gpu else "")
        found = _records.record(
            "Shapelet models beside their peers, one thread each",
            device=where,
            versions=self.versions,
            rows=[*map(self._completed, self.rows), *means(self.rows, MODELS)],
            commit=options.commit,
            **more,
            labels=self.labels,
            **{"left out": {model: sets for model, sets in self.left_out.items() if sets}},
        )
        found["sources"] = {
            name: digest
            for engine in engines
            for name, digest in _records.sources(script, engine).items()
        }
        _records.write(options.output, found)


class Run:
    """A run: what it has to do, and when it ends.

    Parameters
    ----------
    options : argparse.Namespace
        The command line.
    folder : path
        Of the data.
    """

    def __init__(self, options, folder):
        self.options, self.deadline = options, Deadline(options.minutes)
        self.pythons, self.missing = interpreters(options)
        self.table, self.too_long = Table(options), {}
        self.data = {name: load(folder, name) for name in sets(folder, options.sets)}
        references = stated(folder)
        for name, data in self.data.items():
            row = self.table.row(name, data)
            named = references.get(name, {})
            row |= {f"reference.csv: {text}": value for text, value in named.items()}

    def jobs(self):
        """What the CPU has to do: the first set, short jobs, then the others, longest first."""
        found = []
        for name, data in self.data.items():
            for model in self.options.models:
                X = data[0]
                threads = threads_of(model, X)
                if self._known(name, model):
                    continue
                if (library := model.split()[0]) in self.missing:
                    self.table.add(name, model, self.missing[library])
                elif threads is None or threads > len(self.options.cores):
                    self.table.add(name, model, "takes a CPU too long")
                else:
                    about = seconds(model, X)
                    run = partial(self._measured, name, model, threads, about)
                    found.append((about / threads, Job(f"{name}, {model}", run, threads)))
        first = next(iter(self.data))
        ahead = [job for _, job in found if job.name.startswith(first)]
        rest = sorted((one for one in found if one[1] not in ahead), key=lambda one: one[0])
        short = [job for about, job in rest if about < SHORT]
        return ahead, short + [job for about, job in reversed(rest) if about >= SHORT]

    def all(self):
        """Do it; all libraries fill their caches of compiled code at the first set."""
        ahead, others = self.jobs()
        if self.options.gpu:
            others.insert(0, Job("on a GPU", self._on_gpu))
        for jobs in (ahead, others):
            for job, found in at_once(jobs, self.options.cores):
                for name, model, one, threads, where in found:
                    self._say(f"{name}, {model}{where}", one)
                    self.table.add(name, model, one, threads, where)
                if found:
                    self.table.write()
                else:
                    print(f"{job.name}: nothing", flush=True)
        self.table.write()

    def _on_gpu(self, cores):
        """What the models of skts find on a GPU, each at all sets in one process."""
        import cupy

        properties = cupy.cuda.runtime.getDeviceProperties(cupy.cuda.Device().id)
        self.table.gpu, found = properties["name"].decode(), []
        for model in (model for model in self.options.models if model in OWN):
            names = [name for name in self.data if not self._known(name, model + ON_GPU)]
            if names and self.deadline.seconds > 1:
                requests = [(self.data[name], self.options.seed) for name in names]
                left = self.deadline.seconds
                answers = measured(sys.executable, model, "gpu", requests, left, cores=cores)
                late = f"{RETRIED} {self.options.minutes:g} minutes of the run"
                answers = [late if one == TOO_LONG.format(left) else one for one in answers]
                found += [
                    (name, model, answer, 1, ON_GPU)
                    for name, answer in zip(names, answers, strict=True)
                ]
        return found

    def _say(self, name, found):
        """A line of what was found."""
        if not isinstance(found, str):
            found = f"{found['accuracy']:.3f}, {found['fit']:.3g} + {found['predict']:.3g} s"
        print(f"{name}: {found}", flush=True)

    def _known(self, name, column):
        """Whether the record has it already; what failed once fails again."""
        (row,) = (row for row in self.table.rows if row["set"] == name)
        known = self.table.left_out.get(column, {}).get(name, "")
        return column in row or (known and not known.startswith(RETRIED))

    def _measured(self, name, model, threads, about, cores):
        """What one job found."""
        left, patience = self.deadline.seconds, self.options.patience
        late = f"{RETRIED} {self.options.minutes:g} minutes of the run"
        if about >= self.too_long.get(model, np.inf):
            found = LARGER
        elif left < 1:
            found = late
        else:
            python, request = self.pythons[model.split()[0]], (self.data[name], self.options.seed)
            (found,) = measured(
                *(python, model, "cpu", [request], min(left, patience)),
                threads=threads,
                cores=cores,
            )
            if found == TOO_LONG.format(patience):
                self.too_long[model] = min(about, self.too_long.get(model, np.inf))
            elif found == TOO_LONG.format(left):
                found = late
        return [(name, model, found, threads, "")]


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n\n", 1)[0])
    parser.add_argument("--models", nargs="+", choices=MODELS, default=MODELS)
    parser.add_argument("--sets", nargs="*", help="names of sets, instead of all")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--minutes", type=float, default=60, help="by the clock, in all")
    parser.add_argument("--patience", type=float, default=600, help="seconds of a model at a set")
    parser.add_argument("--cores", type=int, nargs="+", default=available(), metavar="N")
    parser.add_argument("--gpu", action="store_true", help="fit the models of skts there, too")
    parser.add_argument("--commit", help="what to record where there is no git")
    parser.add_argument("--environments", type=Path, default=_environments.FOLDER)
    parser.add_argument("--python", default=sys.executable, help="of environments that are made")
    parser.add_argument("--afresh", action="store_true", help="forget what the record holds")
    parser.add_argument("--output", type=Path, default=_records.RESULTS / OUTPUT)
    options = parser.parse_args()
    folder = os.environ.get("SKTS_DATA")
    if not folder:
        sys.exit("SKTS_DATA names no folder of data")
    Run(options, folder).all()


if __name__ == "__main__":
    main()
