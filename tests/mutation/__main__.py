"""Draw mutants of the engines and run the tests that concern them.

::

    python -m tests.mutation --sample 300 --seed 1
    python -m tests.mutation --sample 500 --jobs 64 --seconds 540 --output FOLDER --known FILE
    python -m tests.mutation --modules skts/engines/core/plan.py skts/engines/numba/elastic/dtw.py
    python -m tests.mutation --only skts/engines/numba/search --tests tests/engines/search
    python -m tests.mutation --again survived --again unreached
    python -m tests.mutation --judged --known FILE --again survived --recorded
    python -m tests.mutation --list skts/engines/core/plan.py
    python -m tests.mutation --summary --known FILE FILE
    python -m tests.mutation --record benchmarks/results/attacks-mutation.json --known FILE --seed 7

Every module has its share of a sample, large ones more. Results go to ``results.jsonl``, one line a
mutant: a run that was stopped goes on where it was. The file ``concern.jsonl`` beside it says which
test calls what; on another machine it spares the minutes that this takes. On a small machine a
sample is judged part by part, each with the tests beside it, or by the tests alone that a table has
(``--recorded``).

A mutant is killed by a test that fails, and passes without it, or by the time limit. Tests come in
three modes. First Numba is switched off and kernels run as plain Python, on the small inputs that
this is fast enough for; an index out of bounds then is an error. What lives through those is
compiled and meets the other tests. CUDA sources and the engine around them run on the emulator of a
GPU, for which g++ is needed; a change that does not compile there is refused, and counts as none.
What lives through the tests meets cases of the fuzzer that are always the same, in each of these
modes (``tests/fuzz/test_cases.py``): these kill by what is wrong, never by the time that they take.
"""

from __future__ import annotations

import argparse
import json
import os
import signal
import time
from pathlib import Path
from typing import Any

from .concern import FUZZED, MODES, Tables
from .judge import Judge, modes_of, settle, ways_of
from .mutants import Mutant, draw_from_each, mutants_of
from .parallel import work
from .record import keep
from .results import load, summarize
from .sandbox import Sandbox

ROOT = Path(__file__).parents[2]
FOLDER = ROOT / "build" / "mutation"
#: Folders and files of tests that say something about engines.
TESTS = ("tests/engines", "tests/metrics", "tests/neighbors", "tests/motifs", "tests/cluster")
TESTS = (*TESTS, "tests/tree", "tests/averages", "tests/ensemble", "tests/feature_extraction")
TESTS = (*TESTS, "tests/properties", "tests/test_memory_budgets.py", "tests/test_config.py")
TESTS = (*TESTS, "tests/test_costs.py", "tests/test_numerics.py", FUZZED)
#: Files that take long, or compare with other packages, and tell nothing that others do not.
LEFT_OUT = ("peers", "published", "real_series", "kernels_compile", "kernel_cache")
LEFT_OUT = (*LEFT_OUT, "test_large", "test_distribute")


#: Seconds that a test may go on when the time for tables is over.
LATEST = 20


def parse() -> argparse.Namespace:
    """Read the command line."""
    parser = argparse.ArgumentParser(prog="python -m tests.mutation", description=__doc__)
    parser.formatter_class = argparse.RawDescriptionHelpFormatter
    add = parser.add_argument
    add("--sample", type=int, default=300, help="mutants to draw, 0 for all")
    add("--seed", type=int, default=1)
    add("--modules", nargs="*", default=[], help="files or folders; default all")
    add("--only", nargs="*", default=[], help="what to judge of the sample: files or folders")
    add("--modes", nargs="*", default=MODES, choices=MODES)
    add("--tests", nargs="*", default=TESTS, help="files or folders of tests")
    add("--judged", action="store_true", help="draw nothing: the mutants that have results")
    add("--again", nargs="*", action="extend", default=[], help="fates to judge again: survived")
    add("--jobs", type=int, default=1, help="processes; 0 for one on each core")
    add("--seconds", type=float, default=float("inf"), help="stop after that time")
    add("--table-seconds", type=float, default=float("inf"), help="stop making tables after that")
    add("--patience", type=float, default=10, help="seconds on the clock for one of the processor")
    add("--output", type=Path, default=FOLDER, help="folder of results.jsonl and concern.jsonl")
    add("--known", nargs="*", type=Path, default=[], help="results of other runs")
    add("--answers", nargs="*", type=Path, default=[], help="answers.jsonl of runs cut off")
    add("--tables", nargs="*", type=Path, default=[], help="concern.jsonl of other runs")
    add(
        "--tables-of", nargs="*", default=[], help="files or folders to make tables of; default all"
    )
    add("--recorded", action="store_true", help="no new tables: only tests that are in some")
    add("--list", nargs="*", help="only list the mutants of these files")
    add("--summary", action="store_true", help="only show all results so far")
    add("--record", type=Path, help="only add the results of --known to this record")
    add("--commit", help="of what was judged, for the record")
    return parser.parse_args()


def modules_of(names: list[str]) -> list[str]:
    """Return the sources of the engines under some files or folders."""
    chosen = []
    for file in sorted((ROOT / "skts/engines").rglob("*")):
        name = file.relative_to(ROOT).as_posix()
        wanted = not names or any(name == n or name.startswith(f"{n.rstrip('/')}/") for n in names)
        if wanted and file.suffix in (".py", ".cu", ".cuh") and file.name != "__init__.py":
            chosen.append(name)
    return chosen


def test_files(names: list[str]) -> list[str]:
    """Return test files under some folders, those of engines first."""
    files = [f for name in names for f in sorted((ROOT / name).rglob("test_*.py"))]
    files += [ROOT / name for name in names if (ROOT / name).is_file()]
    files = [f.relative_to(ROOT).as_posix() for f in files]
    return [f for f in files if not any(word in f for word in LEFT_OUT)]


def make_tables(sandbox: Sandbox, options: argparse.Namespace) -> dict[str, dict] | None:
    """Return which tests call what, by mode; None if the time was not enough."""
    path = options.output / "concern.jsonl"
    tables = Tables(ROOT, test_files(options.tests), options.modes, [*options.tables, path])
    asked = set(test_files(options.tables_of or options.tests))
    missing = [part for part in tables.missing() if part.file in asked and not options.recorded]
    begin = time.monotonic()
    deadline, sandbox.deadline = sandbox.deadline, begin + options.table_seconds + LATEST
    sandbox.deadline = min(deadline, sandbox.deadline)

    def record(part: Any) -> tuple[dict[str, Any], float]:
        start = time.monotonic()
        return part.record(sandbox, begin + options.table_seconds), time.monotonic() - start

    end = min(begin + options.table_seconds, deadline)
    done = work(record, missing, options.jobs, end) if missing else ()
    for i, (part, (recorded, seconds)) in enumerate(done, 1):
        tables.add(part, recorded, path)
        where = f"{part.mode}: {part.file} {part.part + 1}/{part.parts}"
        tests = f"{len(recorded['tests'])} tests, {recorded['left']} left"
        print(f"{i}/{len(missing)} {where}: {tests}, {seconds:.0f} s", flush=True)
    sandbox.deadline = deadline
    if missing:
        left = len(tables.missing())
        print(f"tables: {time.monotonic() - begin:.0f} s, {left} parts not whole", flush=True)
    partly = options.recorded or options.tables_of or options.table_seconds < float("inf")
    return tables.by_mode() if partly or not tables.missing() else None


def judge_all(
    sandbox: Sandbox,
    tables: dict[str, dict],
    mutants: list[Mutant],
    known: dict[str, dict[str, Any]],
    options: argparse.Namespace,
) -> None:
    """Judge mutants; add the results to those that are known, and to the file."""
    judge = Judge(sandbox, tables)
    for mode in tables:
        if any(mode in modes_of(mutant.module) for mutant in mutants):
            judge.check(mode)
    answers = known_answers([*options.answers, options.output / "answers.jsonl"], mutants)
    with (
        (options.output / "results.jsonl").open("a") as out,
        (options.output / "answers.jsonl").open("a") as each,
    ):

        def keep_if_settled(mutant: Mutant, last: bool = False) -> None:
            result = settle(mutant, answers[mutant.key], last)
            if mutant.key in waiting and result is not None:
                waiting.remove(mutant.key)
                known[mutant.key] = result
                out.write(json.dumps(result) + "\n")
                out.flush()
                change = f"{mutant.function}: {mutant.before} -> {mutant.after}"
                fate = f"{len(mutants) - len(waiting)}/{len(mutants)} {result['fate']}"
                where = f"{mutant.module}:{mutant.line}"
                print(f"{fate} {result['seconds']} s {where} {change} {result['by']}", flush=True)

        waiting = set(answers)
        for mutant in mutants:
            keep_if_settled(mutant)  # those that are excused, or of which all is known
        # the fastest mode of all first: few are left for the others, and fewer for the fuzzer
        tasks = [
            (mutant, way)
            for fuzzed in (False, True)
            for rank in range(len(MODES))
            for mutant in mutants
            for way in [w for w in ways_of(mutant.module) if w[1] == fuzzed][rank : rank + 1]
            if mutant.key in waiting and way not in map(way_of, answers[mutant.key])
        ]
        for (mutant, _), answer in work(judge.judge, tasks, options.jobs, sandbox.deadline):
            answers[mutant.key].append(answer)
            each.write(json.dumps({"key": mutant.key, **answer}) + "\n")
            each.flush()
            keep_if_settled(mutant)
        for mutant in mutants:
            keep_if_settled(mutant, last=True)


def way_of(answer: dict[str, Any]) -> tuple[str, bool]:
    """Return in which mode an answer was found, and whether by cases of the fuzzer."""
    return answer["mode"], answer["fuzzed"]


def known_answers(paths: list[Path], mutants: list[Mutant]) -> dict[str, list[dict[str, Any]]]:
    """Return, by key, what came of each way of mutants in runs before: ways that it lives in."""
    answers: dict[str, list[dict[str, Any]]] = {mutant.key: [] for mutant in mutants}
    for path in paths:
        for line in path.read_text().splitlines() if path.exists() else []:
            answer = {"fuzzed": False, **json.loads(line)}
            key = answer.pop("key")
            if answer["fate"] == "survived" and key in answers:
                answers[key].append(answer)
    return answers


def main() -> None:
    """Run."""
    options = parse()
    options.jobs = options.jobs or len(os.sched_getaffinity(0))
    if options.list is not None:
        for module in modules_of(options.list):
            for m in mutants_of(ROOT, module):
                print(f"{m.key} {module}:{m.line} {m.function}: {m.before} -> {m.after} | {m.text}")
        return
    if options.record:
        lines = [line for path in options.known for line in path.read_text().splitlines()]
        command = f"python -m tests.mutation --sample {len(lines)} --seed {options.seed}"
        results = list(map(json.loads, lines))
        keep(options.record, results, options.seed, command, options.commit)
        return
    there = [mutants_of(ROOT, module) for module in modules_of(options.modules)]
    everything = [m for mutants in there for m in mutants]
    known = load([*options.known, options.output / "results.jsonl"], everything)
    if options.summary:
        print(summarize(list(known.values())))
        return
    drawn = draw_from_each(there, options.sample or len(everything), options.seed)
    if options.judged:
        drawn = [m for m in everything if m.key in known]
    chosen = set(modules_of(options.only))
    drawn = [m for m in drawn if m.module in chosen]
    again = {"not judged", *options.again}
    waiting = [m for m in drawn if m.key not in known or known[m.key]["fate"] in again]
    for folder in (FOLDER, options.output):
        folder.mkdir(parents=True, exist_ok=True)
    for number in (signal.SIGTERM, signal.SIGHUP):
        signal.signal(number, signal.default_int_handler)
    # each copy keeps its kernels beside its sources, with those that it begins with
    for name in ("SKTS_EMULATE_GPU", "NUMBA_CACHE_DIR"):
        os.environ.pop(name, None)
    sandbox = Sandbox(ROOT, FOLDER, time.monotonic() + options.seconds, options.patience)
    tables = make_tables(sandbox, options) if waiting else None
    if tables is not None:
        judge_all(sandbox, tables, waiting, known, options)
    print(summarize([known[m.key] for m in drawn if m.key in known]))
    missing = sum(m.key not in known or known[m.key]["fate"] == "not judged" for m in drawn)
    print(f"{len(drawn)} drawn, {missing} not judged yet")


if __name__ == "__main__":
    main()
