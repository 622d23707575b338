"""Run the fuzzer: ``python -m tests.fuzz --seconds 60 --engine numba``; see ``--help``."""

from __future__ import annotations

import argparse
import json
import mmap
import os
import pickle
import secrets
import select
import shutil
import signal
import subprocess
import sys
import tempfile
import threading
import time
from collections import Counter
from pathlib import Path
from typing import TYPE_CHECKING, Any

from .compilers import waits_for
from .sums import add_up, write
from .worker import LOST, STATUS, WHERE, work

if TYPE_CHECKING:
    from .coverage import Coverage


def parse(arguments: list[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m tests.fuzz", description=__doc__)
    parser.add_argument("--seconds", type=float, default=60.0, help="how long (default 60)")
    parser.add_argument("--cases", type=int, default=2**62, help="at most so many cases")
    parser.add_argument("--engine", default="numba", help="engine that is tried")
    parser.add_argument("--against", help='engine with the same bits; "numba" for --engine cupy')
    parser.add_argument(
        "--seed", type=int, help="of the random numbers; drawn and printed if not given"
    )
    parser.add_argument("--function", help='only this one, such as "dtw" or "skts.metrics.dtw"')
    parser.add_argument("--case", type=int, help="only the case of this number")
    parser.add_argument("--replay", type=Path, help="only the case in this file")
    parser.add_argument("--first", type=int, default=0, help="number of the first case")
    parser.add_argument("--jobs", type=int, default=1, help="processes")
    parser.add_argument(
        "--shrinking", type=float, default=30.0, help="seconds to cut a failure down"
    )
    parser.add_argument(
        "--found", type=Path, default=Path("fuzz-found"), help="folder for failures"
    )
    parser.add_argument("--bounds", action="store_true", help="check bounds in compiled loops")
    parser.add_argument("--branches", action="store_true", help="measure branches of host code")
    parser.add_argument(
        "--devices", type=int, help="GPUs that workers are spread over (default: all there are)"
    )
    parser.add_argument(
        "--compile", action="store_true", help="compile all CUDA kernels first, each worker some"
    )
    parser.add_argument("--progress", type=float, help="say every so many seconds how far it is")
    parser.add_argument(
        "--grace",
        type=float,
        default=float("inf"),
        help="seconds beyond the time after which a case is stopped; default: when it hangs",
    )
    parser.add_argument("--json", type=Path, help="write counts to this file")
    parser.add_argument("--commit", help="of the code, for --json, where git does not know it")
    parser.add_argument("--sum", type=Path, nargs="+", help="only add up files of --json")
    parser.add_argument("--record", type=Path, help="write the sum as a record to this file")
    parser.add_argument("--quiet", action="store_true", help="leave out what was not reached")
    parser.add_argument("--order", help=argparse.SUPPRESS)
    options = parser.parse_args(arguments)
    if options.against is None and options.engine not in ("numba", "oracle"):
        options.against = "numba"
    return options


#: Seconds that a worker may take to write its counts.
SAVING = 10.0
#: And to write where its threads are.
TELLING = 1.0
#: How many times as long as it may work a case may wait.
WAITING = 5
#: Seconds between two files of counts, where it is said from time to time how far a run is.
KEPT = 45.0


class Run:
    """A run of the fuzzer: its workers, what they found, what they reached."""

    def __init__(self, options: argparse.Namespace) -> None:
        from .recipe import RECIPES

        self.options = options
        self.began = time.time()
        self.until = self.began + options.seconds
        self.devices = visible_devices(options)
        # every function comes once, however long that takes
        self.least = 0 if options.function else len(RECIPES)
        self.folder = Path(tempfile.mkdtemp(prefix="skts-fuzz-"))
        self.kinds: Counter[str] = Counter()
        self.small: list[dict[str, Any]] = []
        self.coverage_files: list[Path] = []
        self.workers: list[subprocess.Popen] = []
        #: Cases done, by worker and life.
        self.done: dict[str, int] = {}
        self.unfinished: list[str] = []
        #: Commands that repeat failures.
        self.again: list[str] = []
        self.lock = threading.Lock()

    def start(self) -> None:
        """Run all workers to their end."""
        self.options.found.mkdir(parents=True, exist_ok=True)
        threads = [
            threading.Thread(target=self._keep_going, args=(place,))
            for place in range(self.options.jobs)
        ]
        for thread in threads:
            thread.start()
        try:
            if self.options.progress:
                self._say_how_far(threads)
            for thread in threads:
                thread.join()
        except KeyboardInterrupt:
            for sign in (signal.SIGINT, signal.SIGTERM):
                signal.signal(sign, signal.SIG_IGN)  # once is enough: the report follows
            self.until = 0.0
            for process in self.workers:
                process.kill()
            for thread in threads:
                thread.join()

    def _say_how_far(self, threads: list[threading.Thread]) -> None:
        """Print counts from time to time, until all threads have ended; keep them now and then."""
        before, kept = 0, time.time()
        while any(thread.is_alive() for thread in threads):
            end = time.time() + self.options.progress
            for thread in threads:
                thread.join(max(0.0, end - time.time()))
            done = sum(self.done.values())
            rate = (done - before) / self.options.progress
            say(f"after {time.time() - self.began:.0f} s: {done:,} cases, {rate:,.0f} a second")
            before = done
            if self.options.json and time.time() - kept > KEPT:
                self._write(self._reached())
                kept = time.time()

    def _keep_going(self, place: int) -> None:
        """One worker after the other, each where the one before ended."""
        options = self.options
        number = options.first + place
        last = options.first + options.cases - 1
        life = 0
        while number <= last and time.time() < self.until:
            number = self._one_worker(place, life, number, last)
            life += 1

    def _one_worker(self, place: int, life: int, first: int, last: int) -> int:
        """Start a worker, listen until it ends; return the number to go on with."""
        options = self.options
        name = f"{place}-{life}"
        status_file = self.folder / f"status-{name}"
        status_file.write_bytes(STATUS.pack(first, time.time(), 600.0, 0, 0.0))
        coverage = self.folder / f"coverage-{name}"
        self.coverage_files.append(coverage)
        reader, writer = os.pipe()
        order = {
            "seed": options.seed,
            "engine": options.engine,
            "against": options.against,
            "function": options.function,
            "first": first,
            "step": options.jobs,
            "last": last,
            "until": self.until,
            "known": dict(self.kinds),
            "status": str(status_file),
            "coverage": str(coverage),
            "events": writer,
            "shrinking": options.shrinking,
            "found": str(options.found),
            "locks": str(self.folder / "locks") if options.jobs > 1 else None,
            "compile": [place, options.jobs] if options.compile and life == 0 else None,
            "workers of a GPU": options.jobs / len(self.devices) if self.devices else 0,
        }
        command = [sys.executable, "-m", "tests.fuzz", "--order", json.dumps(order)]
        if options.branches:
            command[1:2] = [
                "-m",
                "coverage",
                "run",
                "--parallel-mode",
                "--branch",
                "--source=skts",
                "-m",
            ]
        process = subprocess.Popen(
            command,
            pass_fds=(writer,),
            env=_environment(options) | _devices_of(place, self.devices),
            stdout=subprocess.DEVNULL,
            stderr=subprocess.PIPE,
            text=True,
        )
        self.workers.append(process)
        os.close(writer)
        complaint: list[str] = []
        listener = threading.Thread(target=lambda: complaint.extend(process.stderr), daemon=True)
        listener.start()
        hung = stopped = False
        late, waited, where = -1.0, "", 0  # when the case began that was late at the last look
        end = self.until + options.grace
        with status_file.open("r+b") as file, os.fdopen(reader) as events:
            status = mmap.mmap(file.fileno(), STATUS.size)
            rest = ""
            while True:
                ready, _, _ = select.select([events], [], [], 1.0)
                if ready:
                    text = os.read(events.fileno(), 2**16).decode()
                    if not text:
                        break
                    *lines, rest = (rest + text).split("\n")
                    for line in lines:
                        self._take(json.loads(line))
                number, began, limit, self.done[name], spent = STATUS.unpack_from(status, 0)
                if not hung and is_late(process.pid, time.time() - began, limit, spent):
                    # at two looks: the first may fall between the parts of a new status
                    if late == began:
                        hung, waited = True, waits_for(self.folder / "locks", process.pid)
                        where = len(complaint)
                        process.send_signal(WHERE)  # it writes what its threads do
                        time.sleep(TELLING)
                        process.kill()
                    late = began
                elif time.time() > end and not hung and (number >= self.least or stopped):
                    # asked first, as it has counts to save; then ended
                    process.send_signal(signal.SIGKILL if stopped else signal.SIGTERM)
                    stopped, end = True, time.time() + SAVING
            number, began, limit, self.done[name], _ = STATUS.unpack_from(status, 0)
        code = process.wait()
        listener.join(timeout=1)
        if stopped and code != 0 and not hung:
            self._take({"name": pick_name(options, number), "number": number, "unfinished": True})
        if code == 0 or (stopped and not hung) or self.until == 0.0:
            return last + 1
        if code != LOST:
            name = pick_name(options, number)
            if hung:
                kind = f"hangs: more than {limit:.0f} s"
            else:
                kind = f"crash: {signal.Signals(-code).name}" if code < 0 else f"exit code {code}"
            if hung:
                text = "\n    ".join(
                    filter(None, [kind, waited, *map(str.rstrip, complaint[where:])])
                )
            else:
                words = ("Fatal", "Error", "/skts/", "corrupt", "free", "malloc")
                telling = [line.strip() for line in complaint if any(w in line for w in words)]
                text = " | ".join([kind, *telling[:6]])
            self._take({"number": number, "name": name, "kind": kind, "text": text, "report": True})
            with self.lock:
                # the memory that a crash finds damaged may have been damaged by an earlier case
                count = self.kinds[f"{name} {kind}"]
            if not hung and code < 0 and count <= 2 and options.engine == "numba":
                self._cut_crash(name, number, kind)
        return number + options.jobs

    def _cut_crash(self, name: str, number: int, kind: str) -> None:
        """Try whether the case crashes alone; the attempts run in processes of their own."""
        order = {
            "crash": True,
            "seed": self.options.seed,
            "function": name,
            "number": number,
            "engine": self.options.engine,
            "seconds": self.options.shrinking,
            "found": str(self.options.found),
        }
        done = subprocess.run(
            [sys.executable, "-m", "tests.fuzz", "--order", json.dumps(order)],
            env=_environment(self.options),
            capture_output=True,
            text=True,
        )
        if done.returncode == 0 and done.stdout.strip():
            event = json.loads(done.stdout.splitlines()[-1])
            if event.get("small"):
                self._take(event | {"text": kind})
            else:
                say(
                    f"    alone, case {number} does not crash: an earlier one may have damaged "
                    "memory; try --bounds"
                )

    def _take(self, event: dict[str, Any]) -> None:
        """Note what a worker tells."""
        with self.lock:
            if "small" in event:
                self.small.append(event)
                say(
                    f"    smallest, {event['points']} points, kept in {event['path']}: "
                    f"{event['text'][:300]}"
                )
                say(_as_test(event, self.options))
                return
            if event.get("unfinished"):
                case = f"{event['name']} --case {event['number']}"
                if case not in self.unfinished:
                    self.unfinished.append(case)
                    say(f"the time was up in --function {case}")
                return
            self.kinds[f"{event['name']} {event['kind']}"] += 1
            if event.get("report"):
                say(f"FAILED {event['name']}: {event['text'] or event['kind']}")
                place = f"--function {event['name']} --case {event['number']}"
                command = f"--engine {self.options.engine} --seed {self.options.seed} {place}"
                say(f"    python -m tests.fuzz {command}")
                self.again.append(f"python -m tests.fuzz {command}")

    def _reached(self) -> Coverage:
        """What all workers have noted so far."""
        from .coverage import Coverage

        total = Coverage()
        for path in list(self.coverage_files):
            if path.exists():
                total.add(pickle.loads(path.read_bytes()))
        return total

    def _write(self, total: Coverage) -> None:
        """Write counts, those that a run had when it was cut off, or all."""
        write(
            self.options,
            total,
            self.kinds,
            seconds=time.time() - self.began,
            unfinished=self.unfinished,
            again=self.again,
        )

    def report(self) -> int:
        """Print what was reached and found; return how many failures there are."""
        total = self._reached()
        shutil.rmtree(self.folder, ignore_errors=True)
        say("\n".join(total.lines(self.options.engine, unreached=not self.options.quiet)))
        say(
            f"{sum(self.kinds.values())} failures of {len(self.kinds)} kinds, seed "
            f"{self.options.seed}, engine {self.options.engine}"
        )
        if self.options.json:
            self._write(total)
        for kind, count in self.kinds.most_common():
            say(f"  {count:6,} {kind}")
        return sum(self.kinds.values())


def is_late(process: int, seconds: float, limit: float, spent: float) -> bool:
    """Whether a case hangs: it has worked for longer than it may, or waits for ever.

    On a busy machine a compiler may take minutes on the clock, of which it works for seconds.
    """
    if seconds <= limit:
        return False
    try:
        fields = Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()
    except OSError:
        return True
    worked = (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK") - spent
    return worked > limit or seconds > WAITING * limit


def pick_name(options: argparse.Namespace, number: int) -> str:
    """What a case calls."""
    from .schedule import pick_recipe

    return options.function or pick_recipe(options.seed, number)


def visible_devices(options: argparse.Namespace) -> list[str]:
    """GPUs that workers are spread over, by the names that CUDA_VISIBLE_DEVICES takes."""
    if options.engine != "cupy":
        return []
    import cupy

    count = cupy.cuda.runtime.getDeviceCount()
    given = os.environ.get("CUDA_VISIBLE_DEVICES")
    names = given.split(",")[:count] if given else [str(number) for number in range(count)]
    return names[: options.devices]


def _devices_of(place: int, devices: list[str]) -> dict[str, str]:
    """The devices of a worker: a GPU of its own first, and the next one for work on two."""
    if not devices:
        return {}
    seen = dict.fromkeys(devices[(place + step) % len(devices)] for step in range(2))
    return {"CUDA_VISIBLE_DEVICES": ",".join(seen)}


def say(text: str) -> None:
    print(text, flush=True)


def _as_test(event: dict[str, Any], options: argparse.Namespace) -> str:
    """A regression test to paste."""
    slug = event["name"].removeprefix("skts.").replace(".", "_").lower()
    body = f"    assert_right({event['small']}, fast_engine)"
    if len(body) > 4000:
        body = f"    assert_right(Case.load(FOLDER / {Path(event['path']).name!r}), fast_engine)"
    return f"\n    def test_{slug}_{options.seed}_{event['number']}(fast_engine):\n    {body}\n"


def _environment(options: argparse.Namespace) -> dict[str, str]:
    """Threads more than cores, memory that is not zero by chance, bounds checked if asked for."""
    more = {"NUMBA_NUM_THREADS": "4", "MALLOC_PERTURB_": "165", "PYTHONFAULTHANDLER": "1"}
    # a worker on a machine of many cores must not start as many threads of BLAS
    more |= dict.fromkeys(("OPENBLAS_NUM_THREADS", "OMP_NUM_THREADS", "MKL_NUM_THREADS"), "2")
    if options.bounds:
        more |= {"NUMBA_BOUNDSCHECK": "1", "NUMBA_CACHE_DIR": ".numba-bounds"}
    return more | dict(os.environ) | {"PYTHONHASHSEED": "0"}


def cut_crash(order: dict[str, Any]) -> None:
    """Cut a case that ends its process: every attempt is a fork of this one."""
    from . import recipes  # noqa: F401
    from .compare import Failure
    from .machine import draw_case, find_failure
    from .shrink import shrink

    def crashes(case: Any) -> Failure | None:
        child = os.fork()
        if child == 0:
            signal.alarm(60)
            find_failure(case, order["engine"])
            os._exit(0)
        _, code = os.waitpid(child, 0)
        ended = os.WIFSIGNALED(code) and os.WTERMSIG(code) != signal.SIGALRM
        return Failure("crash") if ended else None

    case, _ = draw_case(order["seed"], order["number"], order["function"])
    failure = next(filter(None, (crashes(case) for _ in range(3))), None)
    if failure is None:
        say(json.dumps({}))
        return
    case, _ = shrink(case, failure, crashes, seconds=order["seconds"])
    path = Path(order["found"]) / f"crash-{order['seed']}-{order['number']}.npz"
    case.save(path, failure="crash")
    event = {"number": order["number"], "name": order["function"], "small": case.text()}
    say(json.dumps(event | {"points": case.points(), "path": str(path)}))


def one_case(options: argparse.Namespace) -> int:
    """Run one case in this process and print all about it."""
    from skts.engines.core import compiling

    from . import recipes  # noqa: F401
    from .case import Case
    from .machine import draw_case, examine, find_failure
    from .shrink import shrink

    compiling.replaced = False  # as in the runs that found it
    if options.replay:
        case = Case.load(options.replay)
    else:
        case, _ = draw_case(options.seed, options.case, options.function)
    say(case.text()[:3000])
    failure = find_failure(case, options.engine, options.against)
    if failure is None:
        say("all is well")
        return 0
    say(f"FAILED {failure}")
    small, smaller = shrink(
        case,
        failure,
        lambda one: find_failure(one, options.engine, options.against),
        seconds=options.shrinking,
    )
    say(f"smallest, {small.points()} points: {smaller}\n\n    assert_right({small.text()})")
    examine(small, options.engine, options.against)
    return 1


def main(arguments: list[str] | None = None) -> int:
    options = parse(arguments)
    if options.order:
        order = json.loads(options.order)
        if order.get("crash"):
            cut_crash(order)
            return 0
        return work(order)
    if options.sum:
        return add_up(options.sum, options.record)
    if options.seed is None:
        options.seed = secrets.randbelow(2**31)
    for name, value in _environment(options).items():
        os.environ.setdefault(name, value)
    from . import recipes  # noqa: F401
    from .recipe import RECIPES

    if options.function and options.function not in RECIPES:
        fitting = [name for name in RECIPES if name.rpartition(".")[2] == options.function]
        if len(fitting) != 1:
            say(f"--function {options.function!r} is none of\n  " + "\n  ".join(sorted(RECIPES)))
            return 2
        (options.function,) = fitting
    if options.case is not None or options.replay:
        return one_case(options)
    say(
        f"seed {options.seed}, engine {options.engine}"
        + (f" against {options.against}" if options.against else "")
    )
    signal.signal(signal.SIGTERM, signal.default_int_handler)
    run = Run(options)
    run.start()
    return min(1, run.report())


if __name__ == "__main__":
    sys.exit(main())
