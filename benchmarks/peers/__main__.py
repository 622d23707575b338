"""Every comparison with other packages on the CPU: all records in one command.

    python -m benchmarks.peers
    python -m benchmarks.peers --environments FOLDER --only profile search
    python -m benchmarks.peers --at-once 9 --repeats 3 --patience 8

Comparisons come one after the other, on a machine that does nothing else, which takes an hour. One
that fails does not stop the others.

With ``--at-once MINUTES`` works are done at the same time on a machine of many cores, each with one
number of threads on as many cores of its own, and the run ends after so many minutes; works that
were not done are then not in the records. Memory and its bandwidth are shared: rows are to be
compared within a work, whose libraries take turns on the same cores. Works with `groups` of
libraries are done in so many parts, and skts in each of them; how much longer a library takes is
then counted in the time of skts in its own part.
"""

import argparse
import importlib
import json
import os
import signal
import subprocess
import sys
import tempfile
from functools import partial
from itertools import product
from pathlib import Path

from benchmarks import _records
from benchmarks._cores import Deadline, Job, at_once, available, device

#: Found, not listed: whoever has a worker beside it.
FAMILIES = sorted(
    path.name[1:].removesuffix("_worker.py") for path in Path(__file__).parent.glob("_*_worker.py")
)
#: Threads of the works that are done at once; with one the answers are found that those with two
#: are judged by, where a family has one process for both.
THREADS = {"search": [(1, 2)], "shapelets": [(1,)]}
EACH = [(1,), (2,)]
#: Records whose names say less than their family's.
RECORDS = {"elastic_averages": "peers-averages"}
#: What skts compiles for a family.
ESTIMATORS = {
    "elastic": "DTWNearestNeighbor",
    "kshape": "KShapeClusterer",
    "profile": "MotifFinder",
    "search": "SubsequenceSearch",
    "shapelets": "ShapeletTreeClassifier",
}


#: Keeps a command to cores that are named before it.
PINNED = (
    "import os, sys; os.sched_setaffinity(0, map(int, sys.argv[1].split(','))); "
    "os.execv(sys.argv[2], sys.argv[2:])"
)


def finished(command, cores, deadline):
    """Whether a command ends well, on some cores and before the deadline; it is stopped there."""
    pinned = [sys.executable, "-c", PINNED, ",".join(map(str, cores)), *command]
    process = subprocess.Popen(pinned, start_new_session=True)
    try:
        return process.wait(max(0.1, deadline.seconds)) == 0
    except subprocess.TimeoutExpired:
        os.killpg(process.pid, signal.SIGKILL)
        process.wait()
        return False


def before(family, work, threads):
    """Seconds that the rounds of a work took in the last record; many where it has none."""
    title = getattr(work, "name", None)
    path = _records.RESULTS / f"{_name(family)}.json"
    rows = json.loads(path.read_text())["rows"] if path.exists() else []
    found = [row for row in rows if row.get("work") == title and "seconds" in row]
    found = [row for row in found if row.get("threads") == threads]
    if not found:
        return 240.0 if getattr(work, "groups", None) else 30.0
    return sum(row["seconds"] * row.get("rounds", 3) for row in found)


def parts(options, others, folder, deadline):
    """A job for each part of the records: what it is of, where it is written, about how long."""
    for family in options.only:
        works = importlib.import_module(f"benchmarks.peers.{family}").WORKS
        chosen = [work for work in works if not options.works or work in options.works]
        numbers = THREADS.get(family, EACH)
        if options.threads:
            numbers = [each for each in numbers if max(each) in options.threads]
        for name, threads in product(chosen, numbers):
            groups = getattr(works[name], "groups", None) or [()]
            for at, group in enumerate(groups):
                output = folder / f"{family}-{name}-{threads[0]}-{at}.json"
                command = [sys.executable, "-m", f"benchmarks.peers.{family}", "--works", name]
                command += ["--threads", *map(str, threads), "--output", str(output), *others]
                if group:
                    command += ["--libraries", "skts", *group]
                run = partial(finished, command, deadline=deadline)
                title = ", ".join([family, name, f"threads {max(threads)}", *group])
                expected = before(family, works[name], max(threads)) / len(groups)
                yield family, output, expected, Job(title, run, max(threads))


def merged(found, cores):
    """One record of its parts."""
    record = dict(found[0])
    for part in found[1:]:
        for key, value in part.items():
            if isinstance(value, dict):
                record[key] = record[key] | value
            elif isinstance(value, list):
                # of skts, which is in each group of libraries, that of the first
                known = {_measured(row) for row in record[key]}
                record[key] = record[key] + [row for row in value if _measured(row) not in known]
    own = _records.record("", device="", versions={}, rows=[])
    return record | {"device": device(cores), "date": own["date"], "command": own["command"]}


def _measured(row):
    """What a row is of, where it is one of times."""
    names = ("work", "threads", "library")
    return tuple(map(row.get, names)) if all(name in row for name in names) else id(row)


def all_at_once(options, others):
    """Do the works at the same time, and write the records; what failed."""
    cores, deadline = options.cores or available(), Deadline(options.at_once)
    failed = []
    with tempfile.TemporaryDirectory() as folder:
        found = list(parts(options, others, Path(folder), deadline))
        code = "import skts; skts.warm_up('numba', [skts.{}])"
        compilations = [
            Job(f"{name}, compiling", partial(finished, [sys.executable, "-c", code.format(model)]))
            for name, model in ESTIMATORS.items()
            if name in options.only
        ]
        for job in compilations:
            job.run = partial(job.run, deadline=deadline)
        order = [output for _, output, *_ in found]
        # most figures are of one thread: those first, should the time not do for all
        longest_first = sorted(found, key=lambda part: (part[-1].threads, -part[2]))
        for jobs in (compilations, [part[-1] for part in longest_first]):
            for job, passed in at_once(jobs, cores):
                left = f"{deadline.seconds:.0f} s left"
                print(f"== {job.name}: {'done' if passed else 'FAILED'}, {left}", flush=True)
                failed += [] if passed else [job.name]
                family = job.name.partition(",")[0]
                outputs = [path for path in order if path.name.startswith(f"{family}-")]
                # of a work that is cut off, half a file may be there
                written = [one for path in outputs if path.exists() and (one := _read(path))]
                if written:
                    target = options.output_folder / f"{_name(family)}.json"
                    _records.write(target, merged(written, cores))
    return failed


def _read(path):
    """A record; None of a file that is cut off."""
    try:
        return json.loads(path.read_text())
    except ValueError:
        return None


def _name(family):
    """The name of a family's record."""
    return RECORDS.get(family, f"peers-{family.replace('_', '-')}")


def one_by_one(options, others):
    """Make one comparison after the other; what failed."""
    failed = []
    for name in ("works", "threads"):
        if given := getattr(options, name):
            others = [*others, f"--{name}", *map(str, given)]
    for family in options.only:
        print(f"== {family}", flush=True)
        command = [sys.executable, "-m", f"benchmarks.peers.{family}", *others]
        if subprocess.run(command).returncode:
            failed.append(family)
    return failed


def main():
    parser = argparse.ArgumentParser(prog="python -m benchmarks.peers", description=__doc__)
    parser.formatter_class = argparse.RawDescriptionHelpFormatter
    parser.add_argument("--only", nargs="+", choices=FAMILIES, default=FAMILIES)
    parser.add_argument("--at-once", type=float, metavar="MINUTES")
    parser.add_argument("--works", nargs="+", help="some works (default: all)")
    parser.add_argument("--threads", nargs="+", type=int, metavar="N", help="some numbers")
    parser.add_argument("--cores", type=int, nargs="+", metavar="N", help="of works at once")
    parser.add_argument(
        "--output-folder", type=Path, default=_records.RESULTS, help="of works at once"
    )
    options, others = parser.parse_known_args()
    make = all_at_once if options.at_once else one_by_one
    if failed := make(options, others):
        sys.exit(f"failed: {', '.join(failed)}")


if __name__ == "__main__":
    main()
