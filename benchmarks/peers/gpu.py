"""skts beside the strongest programs for one GPU: the same work in the same run, on one device.

    python -m benchmarks.peers.gpu --scamp FOLDER --cudtw FOLDER
    SKTS_SCAMP=FOLDER SKTS_CUDTW=FOLDER python -m benchmarks.peers.gpu --built PROGRAMS
    python -m benchmarks.peers.gpu --build-only --arch 90 --built PROGRAMS      # where no GPU is

takes some six minutes and writes `benchmarks/results/peers-gpu.json`. SCAMP
(github.com/zpzim/SCAMP) makes matrix profiles, cuDTW++ (github.com/asbschmidt/cuDTW) compares one
query with many series under DTW, the authors of k-Shape have code for PyTorch in their package
kshape, and tsdistances has shaders for Vulkan. The first two are compiled from folders of their
sources, SCAMP also with cuFFT (of the CUDA toolkit, of the package nvidia-cufft, or in the folder
that SKTS_CUFFT names); `--built` keeps the programs, and takes those that are there already. The
other two run in environments of their own (`--environments`).

Results are compared before rows are written. SCAMP: correlations of all windows with their nearest
neighbours, which it keeps in float32; where another neighbour is named, the correlation with that
one. It leaves out fewer pairs around the diagonal than our default, and so do we here. Seconds are
from a host array to host arrays; its tiles are as large as the series, where its own choice of
131,072 points is slower. cuDTW++: the squared distances of all series, which are random walks and
z-normalised. It is timed by events around one launch, as ours are, and counts as many cells.

cuDTW++ differs for a part of the series. In the last row of the table, its kernels that give a
thread 32 values or more let the seventeenth of them continue from the cell before the first of
them, diagonally, and not from its own (`penalty_diag` where `penalty_temp1` belongs). With that
word changed all distances agree, on an emulator; there are as many instructions.

k-Shape of its authors starts from the same labels and series as ours, in float32. Its aligned
members are normalised again, where ours follow the paper, so that labels differ a little: compared
are the sums of the shape-based distances of all series to the centres that were found, in float64,
and the adjusted Rand indices of labels and planted kinds. Seconds are those of `fit`, from a host
array to labels on the host, to the end or for some iterations; and the same for each iteration.

`SKTS_DATA` names a folder with `long/mitbih100_mlii.npz`, an ECG; without it there are no rows of
the ECG.
"""

import os
import sys
import tempfile
import time
from pathlib import Path
from statistics import median

import numpy as np
from sklearn.metrics import adjusted_rand_score

from benchmarks._gpu import keep_rows, make_parser, verdict
from benchmarks.elastic.gpu_dtw import as_series, check_estimates, kernel_seconds
from benchmarks.peers import _environments, _rounds, elastic, kshape
from benchmarks.peers._gpu_programs import (
    PROGRAMS,
    ProgramError,
    compile_program,
    read_facts,
    run_program,
)
from benchmarks.profile.gpu_join import WHOLE_ROWS, check, make_line
from skts.engines import (
    ConcatenatedSeries,
    DTWMatrix,
    Join,
    SBDAssign,
    SBDMatrix,
    Shapes,
    Warping,
    run,
)

PRECISIONS = ("double", "mixed", "single")
#: Points of SCAMP's tiles when nothing is said, and of the longest series on which they are tried.
DEFAULT_TILE, LONGEST_WITH_DEFAULT = 2**17, 400_000
#: By how much correlations may differ: float32 and its steps, or arithmetic in float32.
CORRELATION = {"double": 1e-6, "mixed": 1e-3, "single": 1e-3}
#: An entry of SCAMP's profile.
ENTRY = np.dtype([("correlation", "<f4"), ("index", "<u4")])
#: Windows with another neighbour whose correlation with it is computed.
SAMPLE = 1000
#: Lengths that cuDTW++ has kernels for, the values of all series, and how often each series comes.
LENGTHS, VALUES, COPIES = (127, 255, 511, 1023, 2047), 2**27, 16
#: Ways of cuDTW++: a warp for each series, or a part of a warp.
KERNELS = ("warp", "subwarp")
#: By how much squared distances may differ, relatively.
DISTANCE = 1e-4
#: Series whose distances are compared with float64 on the CPU.
EXACT = 64


def fastest(timings, prefix):
    """Name and median seconds of the fastest way whose name begins so; None where there is none."""
    found = {name: median(all_) for name, all_ in timings.items() if name.startswith(f"{prefix}-")}
    return min(found.items(), key=lambda item: item[1]) if found else None


def correlations_with(series, window, rows, cols):
    """Correlations of windows of a series, in float64."""
    windows = np.lib.stride_tricks.sliding_window_view(series, window)
    x, y = (side - side.mean(axis=1, keepdims=True) for side in (windows[rows], windows[cols]))
    return (x * y).sum(axis=1) / np.sqrt((x * x).sum(axis=1) * (y * y).sum(axis=1))


def compare_profiles(series, window, distances, indices, entries):
    """A profile of SCAMP beside ours.

    Returns
    -------
    error : float
        Largest difference of correlations, also of those with the neighbours that are named.
    same : float
        Share of windows with the same neighbour.
    """
    own = 1 - distances**2 / (2 * window)
    if len(entries) != len(own) or np.any(entries["index"] >= len(own)):
        return np.inf, 0.0
    others = np.flatnonzero(entries["index"] != indices)
    same = 1 - len(others) / len(own)
    chosen = others[:: max(1, len(others) // SAMPLE)]
    named = correlations_with(series, window, chosen, entries["index"][chosen])
    differences = np.r_[np.abs(own - entries["correlation"]), np.abs(own[chosen] - named)]
    error = float(differences.max())
    return (np.inf if np.isnan(error) else error), same


def compare_squares(own, theirs):
    """Largest relative difference of squared distances, and the share that differ too much."""
    with np.errstate(invalid="ignore", divide="ignore"):
        differences = np.abs(own - theirs) / own
    differences[np.isnan(differences)] = np.inf
    return float(differences.max()), float(np.mean(differences > DISTANCE))


def row(work, peer, unit, settings, theirs, ours, checked):
    """A row: what the peer and skts reach, and how many times faster skts is."""
    ratio = ours / theirs if unit == "Tcells/s" else theirs / ours
    return {
        "work": work,
        "peer": peer,
        "settings": settings,
        "unit": unit,
        "of the peer": theirs,
        "of skts": ours,
        "skts is faster by": ratio,
        "checked": checked,
    }


def join_on_gpu(series, window, exclusion, repeats=4):
    """Our profile, and the median seconds after the first time; of new arrays each time."""
    elapsed = []
    for _ in range(repeats):
        line = ConcatenatedSeries.of([series.copy()])
        start = time.perf_counter()
        found = run(Join(line, None, window, exclusion), engine="cupy")
        elapsed.append(time.perf_counter() - start)
    return median(elapsed[1:]), line, found


def scamp_rows(program, folder, options):
    """Matrix profiles: a row for each precision of SCAMP."""
    rng = np.random.default_rng(0)
    for n, window, kind, _, _ in WHOLE_ROWS:
        series = make_line(kind, n, rng)
        if series is None:
            continue
        # SCAMP leaves out windows that are closer than a quarter of a window
        exclusion = window // 4 - 1
        ours, line, found = join_on_gpu(series, window, exclusion)
        series.tofile(folder / "series")
        tiles = [n] if n > LONGEST_WITH_DEFAULT else [n, DEFAULT_TILE]
        modes = [f"{precision}-{tile}" for precision in PRECISIONS for tile in tiles]
        limits = [options.repeats, options.patience]
        files = [folder / "series", window, folder / "profile"]
        timings = run_program(program, [*files, *limits, *modes])
        for precision in PRECISIONS:
            name, seconds = fastest(timings, precision)
            entries = np.fromfile(folder / f"profile.{name}", ENTRY)
            error, same = compare_profiles(
                series, window, found.distances[:, 0], found.indices[:, 0], entries
            )
            checked = f"correlations to {error:.1e}, {same:.3%} of the neighbours the same"
            if error > CORRELATION[precision]:
                checked += ": DISAGREES"
                if precision == "double":
                    right = check(line, window, exclusion, found, rng)
                    sample = "sampled windows of skts are" if right else "windows of skts are not"
                    checked = verdict(right, f"{checked}; {sample} as on the CPU")
            medians = {mode: median(timings[mode]) for mode in modes if precision in mode}
            settings = [
                f"{seconds:.3g} s in {'one tile' if mode.endswith(f'-{n}') else 'its own tiles'}"
                for mode, seconds in medians.items()
            ]
            work = f"matrix profile with indices, {kind}, {n:,} points, window {window:,}"
            title = f"SCAMP, {precision}"
            yield row(work, title, "s", ", ".join(settings), seconds, ours, checked)


def walks(rng, length):
    """A query and series, random walks that are z-normalised, of values that float32 holds.

    There are so many series that each comes several times: making them takes longer than the rest.
    """
    n = VALUES // (length + 1)
    found = rng.standard_normal((n // COPIES + 1, length)).cumsum(axis=1)
    found -= found.mean(axis=1, keepdims=True)
    found /= found.std(axis=1, keepdims=True)
    found = found.astype(np.float32)
    return found[-1], np.tile(found[:-1], (COPIES, 1))


def cudtw_rows(program, folder, options):
    """One query against many series: a row for each way of cuDTW++."""
    rng = np.random.default_rng(0)
    for length in LENGTHS:
        query, values = walks(rng, length)
        query.tofile(folder / "query")
        values.tofile(folder / "values")
        files = [folder / "values", folder / "query", length, folder / "distances"]
        timings = run_program(program, [*files, 7])
        own_query, series = (as_series(np.atleast_2d(X).astype(float)) for X in (query, values))
        seconds, estimates, bound = kernel_seconds(own_query, series, Warping())
        own = estimates.get().ravel()
        places = np.linspace(0, len(values) - 1, EXACT).astype(int)
        exact = run(DTWMatrix(own_query, series.take(places), Warping()), engine="numba")
        exactness = check_estimates(own[places][None], exact, bound)
        tera_cells = len(values) * length**2 / 1e12
        for kernel in KERNELS:
            if (found := fastest(timings, kernel)) is None:
                continue
            name, their_seconds = found
            theirs = np.fromfile(folder / f"distances.{name}", np.float32).astype(float)
            error, share = compare_squares(own**2, theirs)
            checked = f"squared distances to {error:.1e}"
            if share:
                checked = f"{share:.3%} of the series DISAGREE, by up to {error:.1e}"
            if exactness.startswith("FAILED"):
                checked = f"{exactness} (skts, with float64 on the CPU); {checked}"
            yield row(
                f"kernel, one query against {len(values):,} series, length {length:,}",
                f"cuDTW++, {kernel}",
                "Tcells/s",
                f"indices of {name[-2:]} bits",
                tera_cells / their_seconds,
                tera_cells / seconds,
                checked,
            )


#: k-Shape: works, and iterations at most, 100 of which are a whole fit: the peer compares one
#: series with one centre at a time.
KSHAPE_WORKS = (
    kshape.Work(2_000, 1_024, 3, 100),
    kshape.Work(5_000, 600, 10, 5),
    kshape.Work(100_000, 128, 3, 1),
)


def beside_environment(peer, script, request, options, patience=8):
    """Outcomes of skts and of a peer that runs in its own environment, both on the GPU."""
    environment = _environments.interpreter(
        peer, folder=options.environments, python=sys.executable
    )
    pythons = {"skts-gpu": sys.executable, f"{peer}-gpu": environment}
    return _rounds.measure(
        script, request, pythons, threads=1, repeats=options.repeats, patience=patience
    )


def sum_of_distances(shapes, outcome, n_clusters):
    """Sum of the shape-based distances of series to the centres found, and the labels."""
    labels = outcome.result[1 : 1 + len(shapes)].astype(int)
    centers = outcome.result[1 + len(shapes) :].reshape(n_clusters, 1, -1)
    found = run(SBDMatrix(shapes, Shapes.of(np.ascontiguousarray(centers))), engine="numba")
    return found.distances[np.arange(len(labels)), labels].sum(), labels


def kshape_rows(program, folder, options):
    """k-Shape: two rows for each shape of the series; there is no program."""
    for work in (KSHAPE_WORKS[number] for number in options.works):
        request, kinds = work.request()
        shapes = Shapes.of(request["X"][:, np.newaxis])
        start = run(SBDAssign(shapes, shapes.take(slice(work.n_clusters))), engine="numba")
        request["labels"] = start.labels
        ours, theirs = beside_environment("kshape", kshape.SCRIPT, request, options)
        if failure := ours.failure or theirs.failure:
            raise ProgramError(f"k-Shape: {failure}")
        (own, mine), (other, others) = (
            sum_of_distances(shapes, one, work.n_clusters) for one in (ours, theirs)
        )
        scores = [adjusted_rand_score(kinds, labels) for labels in (mine, others)]
        checked = (
            f"sum of distances {own:.2f}, of its authors' {other:.2f}; adjusted Rand index "
            f"{scores[0]:.3f} and {scores[1]:.3f}, of one with the other "
            f"{adjusted_rand_score(mine, others):.3f}"
        )
        checked = verdict(own < 1.01 * other, checked)
        peer = "k-Shape of its authors, PyTorch"
        counts = [int(one.result[0]) for one in (ours, theirs)]
        settings = (
            f"kshape {theirs.versions['kshape']}, torch {theirs.versions['torch']}, float32; "
            f"{counts[1]} iterations, ours {counts[0]}"
        )
        seconds = theirs.seconds, ours.seconds
        each = [1e3 * fit / count for fit, count in zip(seconds, counts[::-1], strict=True)]
        title = f"k-Shape, {work.name}"
        whole = f"fit of {title}, {work.n_iter} iterations at most"
        yield row(whole, peer, "s", settings, *seconds, checked)
        yield row(f"{title}, an iteration", peer, "ms", settings, *each, checked)


def tsdistances_rows(program, folder, options):
    """DTW of all pairs, by shaders; where they do not run, a row says why."""
    rng = np.random.default_rng(0)
    for count in (100, 1_000):
        X, Y = rng.standard_normal((2, count, 512)).cumsum(axis=-1)
        request = {"kind": "pairwise", "metric": "dtw", "radius": -1, "X": X, "Y": Y}
        ours, theirs = beside_environment("tsdistances", elastic.SCRIPT, request, options)
        if ours.failure:
            raise ProgramError(f"DTW of skts: {ours.failure}")
        title = f"DTW of all pairs, {count:,} x {count:,}, length 512, wall time"
        peer, settings = "tsdistances, on its device", theirs.versions.get("tsdistances", "")
        if theirs.failure:
            found = row(title, peer, "s", settings, np.nan, ours.seconds, "")
            reason = f"does not run here: {theirs.failure}"
            yield found | {"of the peer": None, "skts is faster by": None, "checked": reason}
            continue
        error, share = compare_squares(ours.result**2, theirs.result**2)
        checked = f"squared distances to {error:.1e}"
        if share:
            checked = f"{share:.3%} of the squared distances DISAGREE, by up to {error:.1e}"
        yield row(title, peer, "s", settings, theirs.seconds, ours.seconds, checked)


ROWS = {
    "scamp": scamp_rows,
    "cudtw": cudtw_rows,
    "tsdistances": tsdistances_rows,
    "kshape": kshape_rows,
}


def parse_options(words=None):
    """The options of the command line."""
    parser = make_parser(__doc__, "peers-gpu.json")
    for name, program in PROGRAMS.items():
        variable = f"SKTS_{name.upper()}"
        text = f"folder of the sources of {program.title} (default: ${variable})"
        parser.add_argument(
            f"--{name}", type=Path, help=text, default=os.environ.get(variable), metavar="FOLDER"
        )
    parser.add_argument(
        "--only", nargs="+", choices=list(ROWS), default=list(ROWS), help="fewer peers"
    )
    parser.add_argument(
        "--environments",
        type=Path,
        default=_environments.FOLDER,
        help="of the other two",
    )
    parser.add_argument("--built", type=Path, metavar="FOLDER", help="of compiled programs")
    parser.add_argument("--build-only", action="store_true", help="compile into the folder --built")
    parser.add_argument("--arch", help="compute capability, such as 90 (default: the device's)")
    parser.add_argument(
        "--works", nargs="+", type=int, default=range(len(KSHAPE_WORKS)), help="of k-Shape"
    )
    parser.add_argument("--repeats", type=int, default=3, help="of a join by SCAMP")
    parser.add_argument("--patience", type=float, default=0.7, help="seconds for its repeats")
    options = parser.parse_args(words)
    if options.build_only and not options.built:
        parser.error("--build-only needs a folder: --built")
    return options


def built_programs(options, folder):
    """The folder of the programs; what is missing there is compiled."""
    for name in (name for name in options.only if name in PROGRAMS):
        if (folder / name).exists() and not options.build_only:
            continue
        source = getattr(options, name)
        if source is None:
            title = PROGRAMS[name].title
            raise ProgramError(f"no sources of {title}: --{name} or SKTS_{name.upper()}")
        if options.arch is None:
            import cupy

            options.arch = cupy.cuda.Device().compute_capability
        compile_program(name, source, folder, options.arch)
    return folder


def all_rows(options, programs, folder, failed):
    """Rows of all peers; names of those that failed are put into a list."""
    for name in options.only:
        try:
            yield from ROWS[name]((programs / name).resolve(), folder, options)
        except (ProgramError, _environments.InstallationError) as error:
            print(error, file=sys.stderr, flush=True)
            failed.append(PROGRAMS[name].title if name in PROGRAMS else name)


def main():
    """Compile what is missing, compare, print and record."""
    options, failed = parse_options(), []
    with tempfile.TemporaryDirectory() as folder:
        folder = Path(folder)
        try:
            programs = built_programs(options, options.built or folder / "programs")
        except ProgramError as error:
            sys.exit(str(error))
        if options.build_only:
            return
        facts = {PROGRAMS[name].title: fact for name, fact in read_facts(programs).items()}
        rows = all_rows(options, programs, folder, failed)
        keep_rows("The strongest peers on the same GPU", rows, options, peers=facts)
    if failed:
        sys.exit(f"failed: {', '.join(failed)}")


if __name__ == "__main__":
    main()
