"""Figures to reach, and those that were measured: a page of the documentation shows all.

    python -m benchmarks.targets

prints them. "must" is what work is accepted on, "reach" where the package wants to be; both were
set before. A figure is taken from a record in `benchmarks/results/`, with the machine, day, commit
and command of that record: none is typed here. What has no recorded figure says why.

Where several rows belong to one line, the one that is farthest from the target counts. "x" are
times of the fastest peer in the same run, or of the one that is named.
"""

import json
import operator
from collections.abc import Callable
from dataclasses import dataclass
from functools import cache, partial

from benchmarks._records import RESULTS, device_of, state_of_code
from benchmarks.headlines import FIGURES

#: Units in which less is better.
LESS = (
    *("s", "ms", "times the series", "% of error", "failures"),
    "x the time of a point that fits",
)
TESTED = "held by tests, not by a record"
NOT_YET = "no record yet"


class MissingFigureError(Exception):
    """A record or a row is not there."""


@cache
def record(name):
    """A record by its name."""
    path = RESULTS / f"{name}.json"
    if not path.exists():
        raise MissingFigureError(f"{NOT_YET}: {name}")
    return json.loads(path.read_text())


@cache
def code_of(name):
    """What a page says of the code of a record."""
    return state_of_code(record(name))


def rows(name, work, **more):
    """Rows of a record by their work, set, call or reduction, and by other columns."""
    found = [
        row
        for row in record(name)["rows"]
        if work in (row.get(key) for key in ("work", "set", "call", "reduction"))
        and all(row.get(key) == value for key, value in more.items())
    ]
    if not found:
        raise MissingFigureError(f"{NOT_YET}: {name}, {work}")
    return found


def number(row, column=None):
    """The figure of a row: a column of it, or the one that all records have."""
    names = [column] if column else FIGURES
    value = next((row[name] for name in names if row.get(name) is not None), None)
    if value is None:
        raise MissingFigureError(f"{NOT_YET}: {row.get('work', row)}")
    return value


@dataclass(frozen=True)
class Source:
    """Where figures are: a record, and a function that returns them."""

    name: str
    values: Callable

    def __call__(self):
        return [float(value) for value in self.values()]


def of(name, *works, column=None, scale=1.0, **more):
    """Figures of works of a record."""
    return Source(
        name,
        lambda: [
            scale * number(row, column) for work in works for row in rows(name, work, **more)[:1]
        ],
    )


def beside(name, *works, library=None, threads=1):
    """By how much skts is faster than the fastest peer, or than one."""

    def ratios():
        for work in works:
            found = [
                row.get("time / skts", row.get("skts is faster by"))
                for row in rows(name, work, threads=threads)
                if row["library"] == library or (library is None and row["library"] != "skts")
            ]
            found = [ratio for ratio in found if ratio is not None]
            if not found:
                raise MissingFigureError(f"{NOT_YET}: {name}, {work}")
            yield min(found)

    return Source(name, ratios)


def quotient(name, above, below, column="seconds"):
    """A figure of one row by that of another; both are (work, other columns)."""
    return Source(
        name,
        lambda: [
            operator.truediv(
                *(number(rows(name, work, **more)[0], column) for work, more in (above, below))
            )
        ],
    )


@dataclass(frozen=True)
class Target:
    """A line of the page.

    Parameters
    ----------
    work : str
    unit : str
    must, reach : float, str or None
    source : Source or None
        Where figures are; None where a sentence stands in their place.
    reason : str
        That sentence.
    """

    work: str
    unit: str
    must: float | str | None
    reach: float | str | None
    source: Source | None = None
    reason: str = ""

    @property
    def figure(self):
        """The figure farthest from the target; None where there is none."""
        if self.source is None:
            return None
        try:
            found = self.source()
        except MissingFigureError:
            return None
        return max(found) if self.unit in LESS else min(found)

    @property
    def why(self):
        """Why there is no figure; empty where there is one."""
        if self.source is None:
            return self.reason
        try:
            self.source()
        except MissingFigureError as error:
            return str(error)
        return ""

    def holds(self, goal):
        """Whether the figure reaches a number."""
        if self.figure is None or not isinstance(goal, int | float):
            return None
        # accuracies are printed with four digits
        near = 5e-5 if not self.unit else 0.0
        return self.figure <= goal if self.unit in LESS else self.figure >= goal - near

    @property
    def verdict(self):
        """What of the target is reached."""
        if self.holds(self.reach):
            return "reach"
        held = self.holds(self.must)
        if held is None:
            return ""
        return "must" if held else "missed"


LENGTHS = (127, 255, 511, 1023, 2047)
ONE_QUERY = dict(
    zip(LENGTHS, ("1,056,831", "526,343", "262,656", "131,199", "65,567"), strict=True)
)
ALL_PAIRS = dict(zip(LENGTHS, ("3,521", "1,753", "875", "437", "218"), strict=True))
OTHER_LENGTHS = {100: "4,472", 427: "1,047", 637: "702", 1092: "409"}
ELASTIC = "all pairs, 100 x 100, length 256"
PROFILES = "matrix profile with indices,"
OSULEAF = "OSULeaf, 200 series of 427 points, 100 trees"
SHAPELETS = "papers-shapelets-on-gpu"
EXACT = "3 to 427, step 1"


def kernels(*words):
    """Kernels of DTW on a GPU."""
    return of("gpu-dtw", *(f"kernel, {each}" for each in words))


def elastic_kernels(*names):
    """Kernels of other elastic distances, no window."""
    return kernels(*(f"{name}, all pairs 873 x 873, length 512" for name in names))


def accuracy(name, lengths):
    """Accuracy of a tree without logic."""
    return of(SHAPELETS, name, column="accuracy", logic="none", lengths=lengths)


def _mean(name, column):
    """The mean over sets that a record ends with."""
    found = [row for row in record(name)["rows"] if str(row.get("set")).startswith("mean of")]
    return [number(found[0], column)]


def _mean_difference():
    """Mean accuracy of trees without logic, less that of the exact tree of `reference.csv`."""
    found = [
        row
        for row in record(SHAPELETS)["rows"]
        if str(row.get("set")).startswith("mean of") and row.get("logic") == "none"
    ]
    if not found:
        raise MissingFigureError(f"{NOT_YET}: {SHAPELETS}, means")
    return found[0]["accuracy"] - found[0]["exact tree of reference.csv"]


def _rand_differences(init):
    """Mean Rand indexes of an init, less those of the authors and of ten seeds of others."""
    for row in record("rand-indexes-kshape")["rows"]:
        for other in ("authors", "kasba"):
            if str(row["set"]).startswith("mean of") and other in row:
                yield row[init] - row[other]


def _calls(name, *columns):
    """Seconds of all first calls, in some columns."""
    return [row[column] for row in record(name)["rows"] for column in columns]


def _attacked(name, column):
    """A column of the row of all that a record of attacks ends with."""
    return number(record(name)["rows"][-1], column)


def _killed(least=60):
    """Percent of mutants that the tests of the day killed, in the newest draws of so many.

    Draws that were stopped do not count: a mutant that dies is judged before one that lives.
    """
    killed, judged = 0, 0
    for run in reversed(record("attacks-mutation")["runs"]):
        if judged < least and run["not judged"] <= 0.1 * run["mutants"]:
            killed += run["killed"]
            judged += run["killed"] + run["killed by slow or new tests"] + run["survived"]
    return [100 * killed / judged]


def _cases(engine):
    """Cases of the fuzzer on an engine."""
    return [_attacked("attacks-fuzzing", engine)]


def _search_on_two_threads():
    """Times of the fastest peer, which uses one thread, by skts on two."""
    work = "random walk, 1,000,000 points, query 128, band 6"
    (own,) = rows("peers-search", work, threads=2, library="skts")
    others = [row for row in rows("peers-search", work, threads=1) if row["library"] != "skts"]
    return min(number(row, "seconds") for row in others) / own["seconds"]


def _osuleaf(model, parts=("fit", "predict")):
    """Seconds of a model on OSULeaf, on one thread."""
    (row,) = rows("shapelet-peers", "OSULeaf")
    return sum(number(row, f"{model}, {part} s") for part in parts)


SECTIONS = {
    "DTW": [
        *(
            Target(
                f"kernel, float32, no window, one query against many series, length {length:,}",
                "Tcells/s",
                4.8 if length == 2047 else 5.4,
                6.8,
                kernels(f"one query against {ONE_QUERY[length]}, length {length}"),
            )
            for length in LENGTHS
        ),
        Target(
            "the same, all pairs, each of these lengths",
            "Tcells/s",
            5.4,
            6.8,
            kernels(*(f"all pairs {n} x {n}, length {length}" for length, n in ALL_PAIRS.items())),
        ),
        Target(
            "the same, lengths 100, 427, 637, 1,092",
            "Tcells/s",
            4.2,
            6.0,
            kernels(
                *(f"all pairs {n} x {n}, length {length}" for length, n in OTHER_LENGTHS.items())
            ),
        ),
        Target(
            "the same, unequal lengths",
            "Tcells/s",
            4.2,
            6.0,
            kernels("lengths from 300 to 512, all pairs 1,101 x 1,101"),
        ),
        Target(
            "the same, dog-keeper distance",
            "Tcells/s",
            4.2,
            6.0,
            kernels(
                "DK, all pairs 3,493 x 3,493, length 128",
                "DK, all pairs 873 x 873, length 512",
                "DK, all pairs 436 x 436, length 1024",
            ),
        ),
        Target(
            "the same, absolute cost",
            "Tcells/s",
            4.2,
            6.0,
            kernels(
                "absolute cost, all pairs 3,493 x 3,493, length 128",
                "absolute cost, all pairs 873 x 873, length 512",
                "absolute cost, all pairs 436 x 436, length 1024",
            ),
        ),
        Target(
            "the same, 3 channels",
            "Tcells/s",
            2.4,
            3.4,
            kernels("3 channels, all pairs 873 x 873, length 512"),
        ),
        Target(
            "the same, 10 % band, cells inside the band",
            "Tcells/s",
            2.5,
            4.0,
            kernels(
                *(
                    f"10 % band, cells inside the band, all pairs {n} x {n}, length {length}"
                    for n, length in (
                        ("10,025", 100),
                        ("7,815", 128),
                        ("1,980", 512),
                        ("996", 1024),
                    )
                )
            ),
        ),
        Target(
            "CPU, all pairs, 100 x 100 of 256 points and 30 x 30 of 1,024, one thread",
            "x",
            6,
            9,
            beside("peers-elastic", ELASTIC, "all pairs, 30 x 30, length 1,024"),
        ),
        Target(
            "the same, 10 % band",
            "x",
            5,
            8,
            beside(
                "peers-elastic",
                f"{ELASTIC}, 10 % window",
                "all pairs, 30 x 30, length 1,024, 10 % window",
            ),
        ),
        Target(
            "1-NN, OSULeaf, fit and predict, one thread, no window",
            "x wildboar",
            3,
            6,
            beside(
                "peers-elastic",
                "1-NN, 200 against 242, length 427, fit and predict",
                library="wildboar",
            ),
        ),
        Target(
            "the same, 10 % window",
            "x wildboar",
            3,
            6,
            beside(
                "peers-elastic",
                "1-NN, 200 against 242, length 427, 10 % window, fit and predict",
                library="wildboar",
            ),
        ),
        Target(
            "1-NN, 20,000 against 20,000 random walks of 100 points, 10 % window, CPU",
            "s",
            60,
            20,
            of(
                "target-works",
                "1-NN, 20,000 against 20,000 random walks of 100 points, 10 % window",
            ),
        ),
        Target(
            "the same, GPU",
            "s",
            1.0,
            0.3,
            of(
                "gpu-dtw",
                "fit and kneighbors, 20,000 queries, 20,000 series, length 100, 10 % window",
            ),
        ),
        Target(
            "1-NN errors of 28 sets of the archive, full and learned window: as published",
            "of 56",
            56,
            None,
            of(
                "target-works",
                "1-NN errors of 28 sets, full and learned window: those as published",
            ),
        ),
        Target(
            "128 queries, 1,024 series of 1,024 points, DTW, GPU",
            "s",
            0.1,
            0.05,
            of("gpu-dtw", "fit and kneighbors, 128 queries, 1,024 series, length 1,024"),
        ),
        Target(
            "the same, all rotations",
            "s",
            5.0,
            1.0,
            of("gpu-rotation", "128 light curves against 1,024, length 1,024, rDTW"),
        ),
        Target(
            "memory that fit takes: a multiple of the series, never n x n",
            "times the series",
            2.0,
            None,
            of(
                "target-works",
                "memory that fit of DTWNearestNeighbor takes, 20,000 series of 400 points",
            ),
        ),
    ],
    "Subsequence search and condensing": [
        Target(
            "1,499,000 points, query of 360, no window, every window normalised, GPU",
            "s",
            0.15,
            0.06,
            of(
                "gpu-search",
                *(
                    f"fit and kneighbors, {data}, 1,499,000 points, query 360, no window"
                    for data in ("insect EPG", "random walk", "noise")
                ),
            ),
        ),
        Target(
            "1,000,000 points, query of 128, 5 % band, CPU, one thread",
            "x",
            1.0,
            2.0,
            beside("peers-search", "random walk, 1,000,000 points, query 128, band 6"),
        ),
        Target(
            "the same, two threads",
            "x",
            1.8,
            None,
            Source("peers-search", lambda: [_search_on_two_threads()]),
        ),
        Target(
            "the same, no band, one thread",
            "x",
            2.0,
            4.0,
            beside("peers-search", "random walk, 1,000,000 points, query 128, no band"),
        ),
        Target(
            "windows a second, query of 128, no window, GPU",
            "M windows/s",
            200,
            320,
            of(
                "gpu-search",
                "every window warped, on the device: 4,000,000 points, query 128",
                scale=1e-6,
            ),
        ),
        Target(
            "the same, query of 1,024",
            "M windows/s",
            3.5,
            5.0,
            of(
                "gpu-search",
                "every window warped, on the device: 500,000 points, query 1,024",
                scale=1e-6,
            ),
        ),
        Target(
            "series ten times larger than the memory allowed (a memory map)",
            "x the time of a point that fits",
            1.2,
            None,
            of(
                "gpu-search",
                *(
                    "kneighbors, 160,000,000 points in a memory map, ten times larger than the "
                    f"memory allowed, query 128, {band}: time per point, against what fits"
                    for band in ("no window", "5 % window")
                ),
            ),
        ),
        Target(
            "AWARD on TwoPatterns (1,000 x 128), to a tenth, CPU",
            "s",
            120,
            30,
            of("papers-condensing", "TwoPatterns", column="seconds to a tenth"),
        ),
        Target(
            "the same, GPU",
            "s",
            5,
            1,
            of("gpu-rotation", "AWARD, TwoPatterns (1,000 x 128), to 100"),
        ),
    ],
    "Shapelet tree": [
        Target(
            "root search, OSULeaf, lengths in steps of 10, GPU",
            "s",
            0.5,
            0.1,
            of("gpu-shapelets", "root search, OSULeaf, lengths in steps of 10"),
        ),
        Target(
            "the same, CPU, two threads",
            "s",
            120,
            40,
            of(
                "papers-shapelets",
                "OSULeaf",
                column="root: distances and order lines, s",
                part="table II, figure 4",
            ),
        ),
        Target(
            "root search, OSULeaf, all lengths, GPU",
            "s",
            1.0,
            0.4,
            of("gpu-shapelets", "root search, OSULeaf, lengths all"),
        ),
        Target(
            "whole trees of the sets of table II, Haptics apart, GPU",
            "s",
            3.0,
            1.2,
            of("gpu-shapelets", "whole trees of table II, Haptics apart, in all"),
        ),
        Target(
            "the same, Haptics (155 x 1,092)",
            "s",
            5.0,
            3.0,
            of("gpu-shapelets", "whole tree, Haptics (69 x 364 there), lengths 3 to 1092, step 1"),
        ),
        Target(
            "mean accuracy beside the exact tree with its lengths: the difference",
            "",
            -0.02,
            0.0,
            Source(SHAPELETS, lambda: [_mean_difference()]),
        ),
        Target(
            "candidates of GunPoint of length 50 and Coffee of length 95, CPU, one thread",
            "x wildboar",
            40,
            120,
            beside(
                "peers-shapelets", "GunPoint, length 50", "Coffee, length 95", library="wildboar"
            ),
        ),
        Target(
            "candidates of ItalyPowerDemand of length 8",
            "x wildboar",
            10,
            30,
            beside("peers-shapelets", "ItalyPowerDemand, length 8", library="wildboar"),
        ),
    ],
    "Motifs": [
        Target(
            "profile with indices, 400,000 points, windows 128 and 1,024, random walk and ECG, GPU",
            "s",
            0.1,
            0.04,
            of(
                "gpu-join",
                *(
                    f"{PROFILES} {data}, 400,000 points, window {window}"
                    for data in ("random walk", "ECG")
                    for window in ("128", "1,024")
                ),
            ),
        ),
        Target(
            "1,000,000 points, window 128",
            "s",
            0.4,
            0.18,
            of("gpu-join", f"{PROFILES} random walk, 1,000,000 points, window 128"),
        ),
        Target(
            "2,097,152 points",
            "s",
            1.6,
            0.7,
            of("gpu-join", f"{PROFILES} random walk, 2,097,152 points, window 128"),
        ),
        *(
            Target(
                f"kernel, {kind}",
                "Tcells/s",
                must,
                reach,
                of(
                    "gpu-join",
                    *(
                        f"kernel, {kind}, 400,000 windows of {window} points, random walk"
                        for window in ("128", "1,024")
                    ),
                ),
            )
            for kind, must, reach in (("float32", 3.5, 4.5), ("float64", 1.5, 2.0))
        ),
        Target(
            "50,000 points, window 128, CPU, one thread",
            "x pyscamp",
            2,
            4,
            beside("peers-profile", "random walk, n = 50,000, window 128", library="pyscamp"),
        ),
        Target(
            "MK: the share of pairs that it prunes, random walk and ECG, window 128, GPU",
            "of all pairs",
            None,
            None,
            of(
                "papers-motifs-on-gpu",
                "random walk",
                "ECG, MIT-BIH 100",
                column="pruned",
                method="MK",
                window=128,
            ),
        ),
        Target(
            "distances to 1e-6, and the same motif pairs, on constant runs, scales of 1e6, copies",
            "",
            "all",
            None,
            None,
            TESTED,
        ),
    ],
    "k-Shape": [
        *(
            Target(
                f"an iteration, {work.partition(' (')[0]}, GPU",
                "ms",
                must,
                reach,
                of("gpu-kshape", work),
            )
            for work, must, reach in (
                ("5,000 x 600, k = 10", 5, 1.2),
                ("2,000 x 1,024, k = 3", 2, 0.6),
                ("50,000 x 600, k = 10 (synthetic, as InsectSound)", 12, 5),
                ("12,896 x 4,000, k = 2 (synthetic, as RightWhaleCalls)", 8, 4),
                ("139,883 x 3,750, k = 2 (synthetic, as MosquitoSound)", 60, 25),
                ("34,518 x 5,000, k = 3", None, None),
                ("9,236 x 1,024, k = 3 (synthetic, as StarLightCurves)", None, None),
                ("1,370 x 2,709, k = 2 (synthetic, as HandOutlines)", None, None),
                ("606 x 3,053, k = 5", None, None),
                ("5,000,000 x 56, k = 8", 60, 20),
            )
        ),
        Target(
            "an iteration, 1,000 x 1,024, k = 3, and 5,000 x 128, k = 5, CPU, one thread",
            "x",
            8,
            25,
            beside("peers-kshape", "1,000 x 1,024, k = 3", "5,000 x 128, k = 5"),
        ),
        Target(
            "mean Rand index beside the authors' and the mean of ten seeds: the difference",
            "",
            -0.01,
            0.0,
            Source("rand-indexes-kshape", lambda: _rand_differences("random")),
        ),
        Target(
            "the same, init 'plusplus'",
            "",
            None,
            0.0,
            Source("rand-indexes-kshape", lambda: _rand_differences("plusplus")),
        ),
    ],
    "Everything": [
        Target(
            "check_estimator, oldest and newest scikit-learn, each engine",
            "",
            "all pass",
            None,
            None,
            TESTED,
        ),
        Target(
            "engines agree: indices identical, distances to 1e-9",
            "",
            "all",
            None,
            None,
            TESTED,
        ),
        Target(
            "importing skts, beyond scikit-learn's estimators",
            "s",
            0.3,
            None,
            of("target-works", "importing skts, beyond scikit-learn's estimators"),
        ),
        Target(
            "first call of any estimator, empty cache, CPU",
            "s",
            15,
            None,
            Source("cold-start-numba", lambda: _calls("cold-start-numba", "cold")),
        ),
        Target(
            "the same, GPU",
            "s",
            5,
            None,
            Source("cold-start-cupy", lambda: _calls("cold-start-cupy", "cold")),
        ),
        Target(
            "a second process, with what the first left, and with all kernels on disk, CPU",
            "s",
            1,
            None,
            Source("cold-start-numba", lambda: _calls("cold-start-numba", "warm", "full")),
        ),
        Target(
            "peak memory: inputs, results and the configured budget",
            "",
            "all",
            None,
            None,
            TESTED,
        ),
        Target(
            "two GPUs, profile of 4,000,000 points",
            "x one",
            1.8,
            None,
            quotient(
                "scaling-cupy",
                ("Join", {"size": [4_000_000, 128], "devices": 1}),
                ("Join", {"size": [4_000_000, 128], "devices": 2}),
            ),
        ),
    ],
    "First calls": [
        *(
            Target(
                f"{title}, empty caches, CPU",
                "s",
                must,
                reach,
                of("cold-start-numba", call, column="cold"),
            )
            for title, call, must, reach in (
                ("DTW", "dtw", 4, 2),
                ("tree", "tree", 8, 4),
                ("MotifFinder", "motif_finder", 6, 3),
                ("search", "search", 5, 2.5),
                ("condenser", "condenser", 6, 3),
                ("k-Shape", "kshape", 3, 1.5),
            )
        ),
        *(
            Target(
                f"{title}, empty caches, GPU",
                "s",
                4,
                2,
                of("cold-start-cupy", call, column="cold"),
            )
            for title, call in (
                ("tree", "tree"),
                ("MotifFinder", "motif_finder"),
                ("condenser", "condenser"),
                ("k-Shape", "kshape"),
            )
        ),
        Target(
            "failures of differential fuzzing (wrong answers, errors, the fuzzer's own)",
            "failures",
            0,
            0,
            Source("attacks-fuzzing", lambda: [_attacked("attacks-fuzzing", "failures")]),
        ),
        *(
            Target(
                f"cases of differential fuzzing in the record, engine {engine}",
                "cases",
                1_000_000,
                10_000_000,
                Source("attacks-fuzzing", partial(_cases, engine)),
            )
            for engine in ("numba", "cupy")
        ),
        Target(
            "mutants of engines and kernels killed by the tests as they were, newest draws of 60",
            "%",
            90,
            98,
            Source("attacks-mutation", _killed),
        ),
    ],
    "Elastic family": [
        *(
            Target(
                f"all pairs, length 256, CPU, one thread: {name}",
                "x",
                6,
                10,
                beside("peers-elastic", f"{ELASTIC}, {work}"),
            )
            for name, work in (
                ("ERP", "ERP, far apart"),
                ("LCSS", "LCSS"),
                ("EDR", "EDR, far apart"),
                ("MSM", "MSM"),
                ("TWE", "TWE"),
                ("WDTW", "WDTW"),
                ("ADTW", "ADTW"),
                ("DDTW", "DDTW"),
            )
        ),
        *(
            Target(
                f"kernel, all pairs, length 512: {', '.join(names)}",
                "Tcells/s",
                must,
                reach,
                elastic_kernels(*(name.lower() for name in names)),
            )
            for names, must, reach in (
                (("ADTW", "WDTW", "ERP", "DDTW"), 4.0, 5.5),
                (("MSM", "TWE"), 2.2, 3.2),
                (("LCSS", "EDR"), 4.0, 6.0),
            )
        ),
        Target(
            "1-NN error of each on ten sets: as aeon's predictions",
            "",
            "identical",
            None,
            None,
            TESTED,
        ),
        *(
            Target(
                f"stream, 100 patterns of 128 points, 5 % band, {part} points an update, one core",
                "points/s",
                50_000,
                200_000,
                of(
                    "target-works",
                    *(
                        "stream, 100 patterns of 128 points, 5 % band, "
                        f"radius {radius}, {part} points an update"
                        for radius in (3, 1)
                    ),
                ),
            )
            for part in ("100", "1,000", "5,000")
        ),
    ],
    "Profile family": [
        Target(
            "profiles of every number of 8 channels, CPU, one thread",
            "x stumpy",
            12,
            30,
            beside(
                "peers-profile-family",
                "profiles of every number of 8 channels, n = 10,000, window 128",
                library="stumpy",
            ),
        ),
        Target(
            "8 channels, 200,000 points, window 128, GPU",
            "s",
            0.4,
            0.2,
            of("gpu-join", "profiles of every number of 8 channels, 200,000 points, window 128"),
        ),
        Target(
            "128 channels, 100,000 points, GPU",
            "s",
            4,
            1.5,
            of("gpu-join", "profiles of every number of 128 channels, 100,000 points, window 128"),
        ),
        Target(
            "pan profile, 250,000 points, every length from 100 to 2,000, GPU",
            "s",
            30,
            12,
            of(
                "target-works-on-gpu",
                "pan profile, 250,000 points, 1,901 lengths from 100 to 2000",
            ),
        ),
        Target(
            "pan profile, 4,000 points, 11 lengths, CPU, one thread",
            "s",
            0.1,
            0.04,
            of("target-works", "pan profile, 4,000 points, 11 lengths from 50 to 550"),
        ),
        *(
            Target(
                f"update of a stream, 100,000 points kept, {part} points an update, one core",
                "points/min",
                1e6,
                5e6,
                of(
                    "target-works",
                    f"profile of noise, 100,000 points kept, window 128, {part} points an update",
                ),
            )
            for part in ("1,000", "4,000")
        ),
    ],
    "Shapelet models": [
        Target(
            "forest, mean accuracy over the sets of reference.csv",
            "",
            0.855,
            0.875,
            Source("shapelet-forests", lambda: _mean("shapelet-forests", "forest")),
        ),
        Target(
            "transform and linear classifier, the same sets",
            "",
            0.89,
            0.913,
            Source("shapelet-transforms", lambda: _mean("shapelet-transforms", "accuracy")),
        ),
        Target(
            "OSULeaf, 10,000 dilated shapelets, fit and transform, GPU",
            "s",
            0.2,
            0.05,
            of("gpu-transformer", "fit and transform of all, OSULeaf, 10,000 dilated shapelets"),
        ),
        Target(
            "the same with a classifier, fit and predict, CPU, one thread",
            "x aeon",
            5,
            10,
            Source("shapelet-peers", lambda: [_osuleaf("aeon RDST") / _osuleaf("skts transform")]),
        ),
        Target(
            "OSULeaf, forest of 100 trees, fit, CPU, one thread",
            "x wildboar",
            10,
            30,
            Source(
                "shapelet-peers",
                lambda: [_osuleaf("wildboar forest", ("fit",)) / _osuleaf("skts forest", ("fit",))],
            ),
        ),
        Target("the same, GPU", "s", 0.5, 0.15, of("gpu-forests", f"fit, {OSULEAF}")),
        Target(
            "OSULeaf, exact tree, lengths 3 to 427, no logic: accuracy",
            "",
            0.7231,
            None,
            accuracy("OSULeaf", EXACT),
        ),
        Target(
            "Wafer, multiples of 10, no logic: accuracy",
            "",
            0.9989,
            None,
            of(
                "gpu-shapelets",
                "whole tree, Wafer, lengths 10 to 150, step 10",
                column="accuracy",
            ),
        ),
    ],
    "Averages": [
        Target(
            "DBA, 300 x 128, an iteration, CPU, one thread",
            "x tslearn",
            10,
            25,
            beside("peers-averages", "DBA, 300 x 128, an iteration", library="tslearn"),
        ),
        Target(
            "soft-DTW, all pairs, length 128, CPU, one thread",
            "x tslearn",
            10,
            25,
            beside("peers-averages", "soft-DTW, 64 x 64, length 128", library="tslearn"),
        ),
        Target(
            "k-means, 300,000 x 48, k = 10, 20 iterations, GPU",
            "s",
            10,
            4,
            of("gpu-averages", "DTWKMeans, 300,000 random walks of 48, k = 10"),
        ),
        Target(
            "the same, CPU",
            "s",
            180,
            60,
            of(
                "target-works",
                "DTWKMeans, 300,000 random walks of 48 points, k = 10, 20 iterations",
            ),
        ),
    ],
    "The last stretch to the ceiling": [
        *(
            Target(
                f"profile, random walk, {n} points, window 128, GPU",
                "s",
                must,
                reach,
                of("gpu-join", f"{PROFILES} random walk, {n} points, window 128"),
            )
            for n, must, reach in (
                ("400,000", 0.045, 0.035),
                ("1,000,000", 0.2, 0.15),
                ("2,097,152", 0.8, 0.6),
            )
        ),
        Target(
            "search, 1,000,000 points, query of 128, 5 % band, CPU, one thread",
            "x ucrdtw",
            2,
            3,
            beside(
                "peers-search", "random walk, 1,000,000 points, query 128, band 6", library="ucrdtw"
            ),
        ),
        Target(
            "profile, 50,000 points, window 1,024, CPU, one thread",
            "x pyscamp",
            2.5,
            4,
            beside("peers-profile", "random walk, n = 50,000, window 1,024", library="pyscamp"),
        ),
        Target(
            "walk of shapelets, kernel, OSULeaf, lengths 44, 150 and 300",
            "Tcells/s",
            2.8,
            3.0,
            of(
                "gpu-shapelets",
                *(
                    f"kernel, OSULeaf, 200 series of 427 points, length {length}"
                    for length in (44, 150, 300)
                ),
            ),
        ),
        Target(
            "whole trees of the sets of table II, Haptics apart, GPU",
            "s",
            1.2,
            0.8,
            of("gpu-shapelets", "whole trees of table II, Haptics apart, in all"),
        ),
        Target(
            "k-Shape, 2,000 x 1,024, k = 3, an iteration, GPU",
            "ms",
            1.2,
            0.8,
            of("gpu-kshape", "2,000 x 1,024, k = 3"),
        ),
        Target(
            "DTW of all pairs through the public functions, wall time, GPU",
            "Tcells/s",
            6.8,
            7.2,
            of(
                "target-works-on-gpu",
                "nearest of 16,384 series to 1,024, noise of 512 points, wall time",
            ),
        ),
        Target(
            "nearly constant candidates of shapelets on the CPU (Haptics) as on a GPU",
            "x the rate of OSULeaf",
            "done",
            None,
            of("target-works", "root search of Haptics, three lengths: the rate of OSULeaf"),
        ),
        Target(
            "DTW on the CPU, many rows against one column",
            "x the rate of a square",
            "done",
            None,
            of(
                "target-works",
                "DTW, 9,900 series against one, 256 points: the rate of 100 against 99",
            ),
        ),
    ],
}


def shown(value, digits=3):
    """A number as text: so many digits; words as they are."""
    if value is None or isinstance(value, str):
        return value or ""
    return f"{value:,.0f}" if abs(value) >= 1000 else f"{float(f'{value:.{digits}g}'):g}"


def lines(section):
    """Cells of the lines of a section: work, must, reach, figure, verdict, where it was measured.

    The last is a record's name, device, day, commit and command, and whether its code is as it is
    now; or why there is no figure.
    """
    for target in SECTIONS[section]:
        unit = f" {target.unit}" if target.unit else ""
        digits = 3 if target.unit else 4
        goals = (shown(goal, digits) for goal in (target.must, target.reach))
        if target.figure is None:
            yield target.work, *goals, "none", "", target.why
            continue
        found = record(target.source.name)
        where = {
            "record": target.source.name,
            "device": device_of(found),
            "day": found["date"][:10],
            "commit": found["commit"],
            "code": code_of(target.source.name),
            "command": found["command"],
        }
        yield target.work, *goals, shown(target.figure, digits) + unit, target.verdict, where


def main():
    for section in SECTIONS:
        print(f"\n{section}")
        for work, must, reach, figure, verdict, where in lines(section):
            if isinstance(where, dict):
                where = "; ".join(where.values())
            print(f"  {work}: {figure} (must {must}, reach {reach}) {verdict}; {where}")


if __name__ == "__main__":
    main()
