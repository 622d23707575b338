"""The tables and figures of the papers that skts implements: one command for each paper.

    SKTS_DATA=<folder> python -m benchmarks.papers shapelets
    SKTS_DATA=<folder> python -m benchmarks.papers --engines cupy
    SKTS_DATA=<folder> python -m benchmarks.papers --at-once 8 --output-folder FOLDER

runs the scripts of a paper, or of all, one after the other on each engine that is there, and writes
their records. With ``--at-once MINUTES`` those of the CPU are done in parts at the same time, each
on cores of its own of a machine of many, beside those of the GPU, which come one after the other on
the first two cores; all end after so many minutes, and what was done is in the records.

* shapelets: Chang, Deka, Hwu, Roth (2012);
* motifs: Kraeva (2020);
* warping: Bachmann, Trogant, Freytag (2019);
* kshape: Wang, Song, Xiao, Li, Li (2023);
* search: Sart, Mueen, Najjar, Keogh, Niennattrakul (2010).
"""

import argparse
import json
import subprocess
import sys
import tempfile
from functools import partial
from importlib import import_module
from pathlib import Path
from threading import Thread
from typing import NamedTuple

from benchmarks import _records
from benchmarks._cores import Deadline, Job, at_once, available, device
from benchmarks.peers.__main__ import finished
from skts.engines import find_engine


class Part(NamedTuple):
    """Arguments of a script for some of its rows, and how many cores they take."""

    arguments: str
    cores: int = 2


def _shapelet_sets():
    """Parts of table II: the sets that take long by themselves, long ones first."""
    alone = ["Car", "OSULeaf", "Wafer", "Haptics", "TwoPatterns", "Trace", "OliveOil"]
    beside = ["ChlorineConcentration", "Lightning2", "Beef", "Symbols", "FaceFour", "Plane"]
    rest = "ItalyPowerDemand SonyAIBORobotSurface1 MoteStrain ECGFiveDays CBF GunPoint ECG200 "
    rest += "DiatomSizeReduction Coffee ArrowHead Cricket BirdSong"
    sets = [*alone, " ".join(beside[:3]), " ".join(beside[3:]), rest, "HapticsWhole"]
    return [Part(f"--parts table --limit 400 --sets {names}") for names in sets]


#: Scripts of a paper, and their parts on the CPU when they are done at once.
PAPERS = {
    "shapelets": {
        "benchmarks.shapelets.paper_shapelets": [
            *_shapelet_sets(),
            Part("--parts ladder --limit 120", 1),
        ],
    },
    "motifs": {
        "benchmarks.profile.paper_motifs": [
            Part("--parts figure-1 --patience 30", 12),
            *(
                Part(f"--parts tables --series {name} --windows {window} --patience 160")
                for window in (128, 1024)
                for name in ("walk", "ecg")
            ),
        ],
    },
    "warping": {
        "benchmarks.elastic.paper_dtw_on_gpu": [Part("")],
        "benchmarks.elastic.paper_dog_keeper_pivots": [Part("", 1)],
    },
    "kshape": {
        "benchmarks.kshape.paper_kshape": [Part(f"--parts {name}", 1) for name in ("by-set",)],
    },
    "search": {
        "benchmarks.search.paper_subsequence_search": [
            Part(f"--parts {name} --patience 40", 4)
            for name in ("figure-8", "figure-9", "figure-10", "case-study")
        ],
        "benchmarks.elastic.paper_rotation": [Part("", 4)],
        "benchmarks.elastic.paper_reduced_precision": [Part("", 4)],
        "benchmarks.elastic.paper_condensing": [Part("")],
    },
}
#: What skts compiles for all of them.
ESTIMATORS = (
    "DTWNearestNeighbor",
    "ShapeletTreeClassifier",
    "MotifFinder",
    "SubsequenceSearch",
    "DTWCondenser",
)


def scripts(papers, engine):
    """Modules of some papers that have an engine, and the file of their record."""
    for paper in papers:
        for module in PAPERS[paper]:
            output = import_module(module).OUTPUTS.get(engine)
            if output is not None:
                yield module, output


def merged(records, cores):
    """One record of its parts: the rows of all, in their order."""
    rows = [row for record in records for row in record["rows"]]
    own = _records.record("", device="", versions={}, rows=[])
    found = records[0] | {"date": own["date"], "command": own["command"], "rows": rows}
    if not any(name.startswith("cupy") for name in found["versions"]):
        found["device"] = device(cores)
    return found


class AtOnce:
    """Runs parts at the same time, and writes the records.

    Parameters
    ----------
    options : argparse.Namespace
    others : list of str
        Arguments that go to every script.
    """

    def __init__(self, options, others, folder):
        self.options, self.others, self.folder = options, others, Path(folder)
        self.deadline = Deadline(options.at_once)
        self.outputs = {}

    def command(self, module, output, arguments, number):
        """A command, whose part of a record goes into a file of its own."""
        path = self.folder / f"{number:02d}-{output}"
        self.outputs.setdefault(output, []).append(path)
        given = ["--seconds", f"{max(1.0, self.deadline.seconds - 10):.0f}", *self.others]
        return [sys.executable, "-m", module, *arguments.split(), "--output", str(path), *given]

    def write(self):
        """Write what is there."""
        for output, paths in self.outputs.items():
            found = [json.loads(path.read_text()) for path in paths if path.exists()]
            if found:
                record = merged(found, self.options.cores)
                _records.write(self.options.output_folder / output, record)

    def on_gpu(self, cores):
        """Run the scripts on a GPU, one after the other."""
        for number, (module, output) in enumerate(scripts(self.options.papers, "cupy")):
            command = self.command(module, output, "--engine cupy", number)
            done = finished(command, cores, self.deadline)
            print(f"== {module} on the GPU: {self.left(done)}", flush=True)

    def left(self, done):
        """How something ended, and the time that is left."""
        return f"{'done' if done else 'FAILED'}, {self.deadline.seconds:.0f} s left"

    def on_cpu(self, cores):
        """Compile, then run all parts."""
        code = "import skts; skts.warm_up('numba', [skts.{}])"
        compile = [
            Job(name, partial(finished, [sys.executable, "-c", code.format(name)]))
            for name in ESTIMATORS
        ]
        jobs = []
        for paper in self.options.papers:
            for module, parts in PAPERS[paper].items():
                output = import_module(module).OUTPUTS["numba"]
                for number, part in enumerate(parts):
                    arguments = f"{part.arguments} --engine numba"

                    def run(mine, module=module, output=output, number=number, given=arguments):
                        command = self.command(module, output, given, number)
                        return finished(command, mine, self.deadline)

                    title = f"{module.rpartition('.')[2]} {part.arguments}"
                    jobs.append(Job(title, run, min(part.cores, len(cores))))
        for job in compile:
            job.run = partial(job.run, deadline=self.deadline)
        for some in (compile, sorted(jobs, key=lambda job: -job.threads)):
            for job, done in at_once(some, cores):
                print(f"== {job.name}: {self.left(done)}", flush=True)
                self.write()

    def run(self):
        """Run on both engines."""
        cores = self.options.cores = self.options.cores or available()
        gpu = None
        if "cupy" in self.options.engines:
            own, cores = cores[:2], cores[2:] or cores
            gpu = Thread(target=self.on_gpu, args=(own,))
            gpu.start()
        if "numba" in self.options.engines:
            self.on_cpu(cores)
        if gpu is not None:
            gpu.join()
        for paths in self.outputs.values():
            paths.sort()
        self.write()


def main():
    parser = argparse.ArgumentParser(prog="python -m benchmarks.papers", description=__doc__)
    parser.formatter_class = argparse.RawDescriptionHelpFormatter
    parser.add_argument("papers", nargs="*", metavar="PAPER", help=", ".join(PAPERS))
    parser.add_argument("--engines", nargs="+", choices=("numba", "cupy"))
    parser.add_argument("--at-once", type=float, metavar="MINUTES")
    parser.add_argument("--cores", type=int, nargs="+", metavar="N", help="of parts at once")
    parser.add_argument(
        "--output-folder", type=Path, default=_records.RESULTS, help="of parts at once"
    )
    parser.add_argument("--commit", help="what to record where there is no git")
    options, others = parser.parse_known_args()
    others += ["--commit", options.commit] if options.commit else []
    options.papers = options.papers or list(PAPERS)
    if unknown := set(options.papers) - set(PAPERS):
        parser.error(f"no such paper: {', '.join(unknown)}")
    there = [name for name in ("numba", "cupy") if find_engine(name).available() is None]
    options.engines = options.engines or there
    if options.at_once:
        with tempfile.TemporaryDirectory() as folder:
            AtOnce(options, others, folder).run()
        return
    failed = []
    for engine in options.engines:
        for module, _ in scripts(options.papers, engine):
            command = [sys.executable, "-m", module, "--engine", engine, *others]
            if subprocess.run(command).returncode:
                failed.append(f"{module} on {engine}")
    if failed:
        sys.exit(f"failed: {', '.join(failed)}")


if __name__ == "__main__":
    main()
