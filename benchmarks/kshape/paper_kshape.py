"""k-Shape and k-means under DTW: the tables and figures of Wang et al. (Times-C), with skts.

    SKTS_DATA=<folder> python -m benchmarks.kshape.paper_kshape --engine numba
    SKTS_DATA=<folder> python -m benchmarks.kshape.paper_kshape --engine cupy

writes `benchmarks/results/papers-kshape.json`, or `papers-kshape-on-gpu.json`. Figures that the
paper prints are beside ours; those of its plots are not known, but for what the text says of them
("said" of the record). "data" says of each row whether the set is the real one: of table VIII three
are at hand, of table V none. All others are synthetic, moved shapes of as many kinds as there are
classes, with as many series and points as the real set has. Where that is too much for the engine,
one series of every few is taken, by `POINTS` and `CELLS`; "series" says how many are left.

An iteration of k-Shape goes from labels on the host to labels on the host, the series where the
engine has them; the paper takes the mean of ten, we the least of five. An iteration of k-means is
the time of `fit` from given centres by the number of iterations, copies included. On the CPU all
times but those of figure 19 are processor times of one thread, which other work on the machine
changes little; on a GPU they are wall times.

* table VIII and figure 18: Rand indexes, and time of k-means by that of k-Shape, means of the seeds
  of `SEEDS`. "random" is the start of Times-C, "series" that of tslearn and of Times-C-tsl;
* figures 9 and 12: an iteration by set (9 is the authors' code on PyTorch and NumPy: see
  `benchmarks.peers.gpu` and `.kshape`, and figure 16 here for the same step in plain transforms);
* figure 13 and table III: the stages of an iteration. Members are sorted, and never moved;
* figures 14 and 8: centres by our iteration, and by all eigenvectors (cuSOLVER, or LAPACK);
* figure 16 and table VII: the correlations, and the same by one plain transform a centre;
* figures 17 and 3: by length (urbanSound8k) and by number of series (MosquitoSound);
* figures 20 and 3: by number of clusters;
* figure 19: the CPU engine by threads.

Table VI, the other columns of table VII, and table II are counters of a profiler; figures 8 and 15
show streams side by side, of which there is one here: each kernel takes the members of all
clusters. They have no row.
"""

import argparse
import json
import os
import time
import warnings
from pathlib import Path

import numpy as np
from sklearn.exceptions import ConvergenceWarning
from sklearn.metrics import rand_score
from threadpoolctl import threadpool_limits

from benchmarks import _cores, _records
from benchmarks._gpu import device_and_versions, verdict
from benchmarks._paper import threads
from benchmarks._sets import load
from benchmarks.kshape.gpu_kshape import check, device_times, moved_shapes
from skts import DTWKMeans, KShapeClusterer
from skts.engines import SBDAssign, SBDCenters, find_engine, run
from skts.metrics import pairwise_dtw

OUTPUTS = {"numba": "papers-kshape.json", "cupy": "papers-kshape-on-gpu.json"}
SEEDS = range(3)
#: Points of a set that k-Shape takes at most, and cells of warping matrices that one iteration of
#: k-means without bounds would take (series x clusters x squared length).
POINTS = {"numba": 5e5, "cupy": np.inf}
CELLS = {"numba": 2e8, "cupy": 1e11}
#: Points of a set of figure 19, which is of the CPU on every machine.
THREADS_POINTS = 4e6
#: Cells of an iteration of k-means on a real set.
REAL_CELLS = {"numba": 1e9, "cupy": 1e11}
#: Points up to which all eigenvectors are computed.
DENSE = {"numba": 1_024, "cupy": 3_100}
#: Table V: series, points, classes; those of DB1 to DB6 are in this order in the figures.
TABLE_V = {
    "RightWhaleCalls": (12_896, 4_000, 2),
    "FruitFlies": (34_518, 5_000, 3),
    "AbnormalHeartbeat": (606, 3_053, 5),
    "StarLightCurves": (9_236, 1_024, 3),
    "InsectSound": (50_000, 600, 10),
    "HandOutlines": (1_370, 2_709, 2),
}
#: Table VIII: series, points, classes of the archive; then the columns of the paper.
COLUMNS = ("Times-C", "Times-C-tsl", "dtwKmeans", "tslearn-Kshape")
TABLE_VIII = {
    "UWaveGestureLibraryZ": (4_478, 315, 8, 0.84, 0.85, 0.82, 0.85),
    "UWaveGestureLibraryY": (4_478, 315, 8, 0.82, 0.84, 0.82, 0.83),
    "UWaveGestureLibraryX": (4_478, 315, 8, 0.86, 0.85, 0.85, 0.85),
    "NonInvasiveFetalECGThorax2": (3_765, 750, 42, 0.97, 0.97, 0.96, 0.97),
    "NonInvasiveFetalECGThorax1": (3_765, 750, 42, 0.95, 0.96, 0.96, 0.96),
    "MoteStrain": (1_272, 84, 2, 0.79, 0.79, 0.51, 0.80),
    "Mallat": (2_400, 1_024, 8, 0.89, 0.93, 0.94, 0.94),
    "InsectWingbeatSound": (2_200, 256, 11, 0.80, 0.84, 0.83, 0.86),
    "FacesUCR": (2_250, 131, 14, 0.86, 0.88, 0.91, 0.88),
    "FaceAll": (2_250, 131, 14, 0.82, 0.90, 0.91, 0.90),
    "Adiac": (781, 176, 37, 0.95, 0.80, 0.95, 0.79),
    "ECGFiveDays": (884, 136, 2, 0.96, 0.91, 0.50, 0.90),
}
LENGTHS = range(1_000, 10_001, 1_000)
NUMBERS = range(13_988, 139_881, 13_988)
#: What the text says of the plots, on an A100 and 16 threads of a Xeon Gold 6354.
SAID = (
    "Times-C is up to 345 times as fast as the authors' k-Shape on PyTorch (figure 12); its "
    "aggregation over 100 times (13); its centres 1.6 (FruitFlies) to 2.86 times (InsectSound) as "
    "fast as by cuSOLVER alone (14); hundreds of times as fast as dtw-kmeans, over 10 times as "
    "tslearn-kshape (18); 30 times as the CPU and 10 times as PyTorch on large sets, 6 and 4 times "
    "on small ones (20). The stages of k-Shape take 19.5, 27.6 and 52.7 % (table III). An "
    "iteration of dtw-kmeans on InsectSound takes tslearn several days (V-D)."
)


class Benchmark:
    """Rows of one engine.

    Parameters
    ----------
    engine : str
        "numba" or "cupy".
    folder : path or None
        Real sets: `ucr/*.npz`.
    trial : bool
        Whether all sets are small, and nothing is timed by events.
    sets : list of str or None
        Sets of table VIII; None for all.
    """

    def __init__(self, engine, folder, trial, sets=None):
        self.engine, self.folder, self.trial, self.sets = engine, folder, trial, sets
        self.rng = np.random.default_rng(0)
        self.n_jobs, self.clock = None, time.perf_counter
        if engine == "numba":
            self.n_jobs, self.clock = 1, time.process_time

    def run(self, work):
        """Run a reduction, and the seconds that it took."""
        start = self.clock()
        found = run(work, engine=self.engine, n_jobs=self.n_jobs)
        return found, self.clock() - start

    def shapes(self, n, length, k, most=None):
        """Series of moved shapes and their kinds, and how many of the paper's one stands for."""
        if self.trial:
            n, length = max(6 * k, n // 500), max(24, length // 50)
        step = max(1, int(np.ceil(n * length / (most or POINTS[self.engine]))))
        n = max(-(-n // step), 3 * k)
        return *moved_shapes(n, length, k, self.rng), step

    def forget(self):
        """Free what the engine keeps of the last set."""
        find_engine(self.engine).prepared.clear()
        if self.engine == "cupy":
            import cupy

            cupy.get_default_memory_pool().free_all_blocks()

    def settled(self, shapes, k, repeats=5):
        """Labels after some iterations, the centres before them, and seconds of the halves."""
        assigned, _ = self.run(SBDAssign(shapes, shapes.take(slice(0, k))))
        centers, elapsed = None, []
        for _ in range(repeats + 2):
            before = assigned
            work = SBDCenters(shapes, assigned.labels, assigned.shifts, k, centers)
            found, first = self.run(work)
            assigned, second = self.run(SBDAssign(shapes, found))
            centers = found.values
            elapsed.append((first, second))
        # the first ones compile, and labels settle
        return before, centers, assigned, elapsed[2:]

    def clusters(self, name, n, length, k, *printed):
        """A row of table VIII and of figure 18."""
        path = self.folder / "ucr" / f"{name}.npz" if self.folder else None
        real = path is not None and path.exists()
        if real:
            X, y = load(self.folder, name)
            X = (X - X.mean(axis=1, keepdims=True)) / np.maximum(X.std(axis=1, keepdims=True), 1e-9)
            if self.trial:
                X, y = X[::20], y[::20]
        else:
            shapes, y, _ = self.shapes(n, length, k)
            X = shapes.values[:, 0]
        most = (REAL_CELLS if real else CELLS)[self.engine]
        step = max(1, int(np.ceil(len(X) * k * X.shape[1] ** 2 / most)))
        # no k-means where that leaves fewer than five series for each cluster
        few = len(X) < 5 * k * step
        step = max(1, len(X) // (5 * k)) if few else step
        X, y = np.ascontiguousarray(X[::step]), y[::step]
        k = min(k, len(np.unique(y)))
        row = self.head("table VIII, figure 18", name, X, k, real) | {"paper's series": n}
        row |= {f"paper: {column}": value for column, value in zip(COLUMNS, printed, strict=True)}
        on = {"n_init": 1, "engine": self.engine, "n_jobs": self.n_jobs}
        for method, make in {
            "k-Shape, random": lambda seed: KShapeClusterer(k, random_state=seed, **on),
            "k-Shape, series": lambda seed: KShapeClusterer(
                k, init="series", random_state=seed, **on
            ),
            "DTWKMeans": lambda seed: DTWKMeans(k, max_iter=10, random_state=seed, **on),
        }.items():
            if few and method == "DTWKMeans":
                row |= {method: None, "checked": "k-means would take too long"}
                continue
            make(0).set_params(max_iter=1).fit(X)
            start = self.clock()
            models = [make(seed).fit(X) for seed in SEEDS]
            seconds = self.clock() - start
            row[method] = float(np.mean([rand_score(y, model.labels_) for model in models]))
            iterations = sum(model.n_iter_ for model in models)
            row[f"{method}, ms an iteration"] = 1e3 * seconds / max(1, iterations)
        if not few:
            pace = row["DTWKMeans, ms an iteration"] / row["k-Shape, random, ms an iteration"]
            row["DTWKMeans / k-Shape, an iteration"] = pace
            row["checked"] = self.check_kmeans(models[-1], X)
        self.forget()
        return row

    def head(self, part, name, X, k, real=False):
        """The first columns of a row."""
        n, length = len(X), X.shape[-1]
        data = "real" if real else "synthetic"
        return {"part": part, "set": name, "data": data, "series": n, "points": length, "k": k}

    def check_kmeans(self, model, X):
        """Whether some labels are those of the nearest centres by all distances of the CPU."""
        few = np.sort(self.rng.choice(len(X), min(40, len(X)), replace=False))
        found = pairwise_dtw(X[few], model.cluster_centers_, engine="numba")
        same = np.array_equal(found.argmin(axis=1), model.predict(X[few]))
        return verdict(same, f"{len(few)} labels of k-means by all distances of the CPU")

    def kmeans(self, X, k, n_iter=3):
        """Milliseconds of an iteration of k-means, and of how many series: both None if few."""
        step = max(1, int(np.ceil(len(X) * k * X.shape[1] ** 2 / CELLS[self.engine])))
        X = np.ascontiguousarray(X[::step])
        if len(X) < 5 * k:
            return {"DTWKMeans, ms an iteration": None, "DTWKMeans, series": None}
        on = {"engine": self.engine, "n_jobs": self.n_jobs}
        model = DTWKMeans(k, init=X[:k], max_iter=n_iter, tol=0, **on)
        model.set_params(max_iter=1).fit(X)
        model.set_params(max_iter=n_iter)
        start = self.clock()
        model.fit(X)
        seconds = self.clock() - start
        each = 1e3 * seconds / max(1, model.n_iter_)
        return {"DTWKMeans, ms an iteration": each, "DTWKMeans, series": len(X)}

    def iteration(self, part, name, shapes, k, *, stages=False, kmeans=False):
        """A row of the figures: an iteration of k-Shape, and more of it where that is asked for."""
        before, centers, assigned, elapsed = self.settled(shapes, k)
        row = self.head(part, name, shapes.values, k)
        whole = min(map(sum, elapsed)) * 1e3
        row["k-Shape, ms an iteration"] = whole
        row["centres, ms"], row["assignment, ms"] = (
            min(halves[half] for halves in elapsed) * 1e3 for half in range(2)
        )
        if stages:
            row |= self.stages(shapes, k, assigned, centers)
        if kmeans:
            row |= self.kmeans(shapes.values[:, 0], k)
        row["checked"] = self.check(shapes, centers, before, assigned, k)
        return row

    def stages(self, shapes, k, assigned, centers):
        """Aggregation, correlations, and the plain ways of figures 14 and 16, in ms."""
        n, length = len(shapes), shapes.n_timepoints
        work = SBDCenters(shapes, assigned.labels, assigned.shifts, k, centers)
        start = self.clock()
        for cluster in range(k):
            work.members(cluster)
        found = {"aggregation, ms": 1e3 * (self.clock() - start)}
        if self.engine == "cupy" and not self.trial:
            times = device_times(find_engine("cupy"), shapes, k, assigned, centers)
            flops = 2.5 * 2 * length * np.log2(2 * length) * n * k
            found["aggregation, ms"] = times["sort"]
            found["correlations, ms"] = times["correlate"]
            found["correlations, GFLOP/s"] = flops / times["correlate"] / 1e6
        plain = Plain(self.engine, shapes, assigned, self.clock)
        found["assignment by plain transforms, ms"] = plain.assign(centers)
        if length <= DENSE[self.engine]:
            found["centres by all eigenvectors, ms"], worst = plain.centers(k, centers, work)
            found["1 - |cosine| to those"] = worst
        return found

    def check(self, shapes, centers, before, after, k):
        """Compare with the CPU, or the CPU with correlations of some series by the definition."""
        if self.engine == "cupy":
            return check(shapes, centers, before, after, k, self.rng)
        few = np.sort(self.rng.choice(len(shapes), min(10, len(shapes)), replace=False))
        Z = centers.reshape(k, -1)
        Z = Z / np.linalg.norm(Z, axis=1, keepdims=True)
        X = shapes.values[few, 0]
        X = X / np.linalg.norm(X, axis=1, keepdims=True)
        found = np.array([[np.correlate(x, z, "full").max() for z in Z] for x in X])
        same = np.array_equal(found.argmax(axis=1), after.labels[few])
        same &= np.allclose(1 - found.max(axis=1), after.distances[few], rtol=0, atol=1e-9)
        return verdict(same, f"labels, distances of {len(few)} series by their definition")

    def threads(self, name, shapes, k):
        """Rows of one set in figure 19."""
        expected = None
        for count in threads():
            given = {"engine": "numba", "n_jobs": count}
            assigned, elapsed = run(SBDAssign(shapes, shapes.take(slice(0, k))), **given), []
            for _ in range(4):
                start = time.perf_counter()
                work = SBDCenters(shapes, assigned.labels, assigned.shifts, k)
                centers = run(work, **given)
                assigned = run(SBDAssign(shapes, centers), **given)
                elapsed.append(time.perf_counter() - start)
            expected = centers.values if expected is None else expected
            row = self.head("figure 19", name, shapes.values, k) | {"threads": count}
            row["k-Shape, ms an iteration"] = min(elapsed) * 1e3
            same = np.array_equal(centers.values, expected)
            yield row | {"checked": verdict(same, "bits of one thread")}

    def table_viii(self):
        """Table VIII and figure 18, small sets first."""
        order = sorted(TABLE_VIII, key=lambda name: np.prod(np.square(TABLE_VIII[name][:3])))
        for name in order:
            if self.sets and name not in self.sets:
                continue
            yield self.clusters(name, *TABLE_VIII[name])

    def by_set(self):
        """Figures 9, 12, 13, 14, 16 and 20, and tables III and VII."""
        for name, (n, length, k) in TABLE_V.items():
            shapes, _, step = self.shapes(n, length, max(6, k))
            part = "figures 9, 12 to 14, 16, tables III, VII"
            row = self.iteration(part, name, shapes, k, stages=True, kmeans=True)
            yield row | {"one series of": step}
            for each in range(2, 7):
                row = self.iteration("figure 20", name, shapes, each)
                yield row | {"one series of": step}
            self.forget()

    def by_threads(self):
        """Figure 19: the CPU engine."""
        for name, (n, length, k) in TABLE_V.items():
            shapes, _, step = self.shapes(n, length, k, THREADS_POINTS)
            for row in self.threads(name, shapes, k):
                yield row | {"one series of": step}

    def by_shape(self):
        """Figures 3 and 17."""
        for length in LENGTHS:
            shapes, _, step = self.shapes(8_732, length, 10)
            row = self.iteration("figures 3, 17a", "urbanSound8k", shapes, 10, kmeans=True)
            self.forget()
            yield row | {"one series of": step}
        shapes, _, step = self.shapes(NUMBERS[-1], 3_750, 10)
        for n in NUMBERS:
            some = shapes.take(slice(0, max(12, n // step)))
            row = self.iteration("figures 3, 17b", "MosquitoSound", some, 2, kmeans=n == NUMBERS[0])
            self.forget()
            yield row | {"paper's series": n, "one series of": step}
        some = shapes.take(slice(0, max(40, 55_912 // step)))
        for k in range(2, 11, 2):
            row = self.iteration("figure 3", "MosquitoSound", some, k)
            yield row | {"paper's series": 55_912, "one series of": step}
        self.forget()


class Plain:
    """The stages as NumPy or CuPy would do them.

    Parameters
    ----------
    engine : str
        "cupy" for CuPy.
    shapes, assigned
        Series, and the labels and shifts of all.
    clock : callable
        Returns seconds.
    """

    def __init__(self, engine, shapes, assigned, clock):
        self.xp, self.clock = np, clock
        if engine == "cupy":
            import cupy

            self.xp = cupy
        self.X = self.xp.asarray(shapes.values[:, 0])
        self.labels, self.shifts = map(self.xp.asarray, (assigned.labels, assigned.shifts))

    def milliseconds(self, work):
        """The least of some times of a function, and its result."""
        elapsed = []
        for _ in range(3):
            start = self.clock()
            found = work()
            if self.xp is not np:
                self.xp.cuda.Device().synchronize()
            elapsed.append(self.clock() - start)
            if sum(elapsed) > 5:
                break
        return min(elapsed) * 1e3, found

    def assign(self, centers):
        """Time of labels and shifts by one transform of all series for each centre."""
        xp, length = self.xp, self.X.shape[1]
        size = 2 ** int(np.ceil(np.log2(2 * length - 1)))
        spectra = xp.fft.rfft(self.X, size)
        targets = xp.fft.rfft(xp.asarray(centers.reshape(-1, length)), size).conj()

        def assign():
            best = []
            for target in targets:
                values = xp.fft.irfft(spectra * target, size)
                values.argmax(axis=1)
                best.append(values.max(axis=1))
            return xp.stack(best).argmax(axis=0)

        return self.milliseconds(assign)[0]

    def centers(self, k, last, work):
        """Time of centres by all eigenvectors, and 1 - |cosine| of ours to them at most."""
        xp, length = self.xp, self.X.shape[1]
        times = xp.arange(length)

        def centers():
            found = []
            for cluster in range(k):
                members = xp.flatnonzero(self.labels == cluster)
                columns = times[None] - self.shifts[members][:, None]
                inside = (columns >= 0) & (columns < length)
                A = xp.where(inside, self.X[members[:, None], columns.clip(0, length - 1)], 0.0)
                A -= A.mean(axis=1, keepdims=True)
                found.append(xp.linalg.eigh(A.T @ A)[1][:, -1])
            return found

        elapsed, found = self.milliseconds(centers)
        ours = run(work, engine="numba" if xp is np else "cupy").values.reshape(k, -1)
        ours /= np.linalg.norm(ours, axis=1, keepdims=True)
        found = [one if xp is np else one.get() for one in found]
        worst = max(1 - abs(float(a @ b)) for a, b in zip(ours, found, strict=True))
        return elapsed, worst


PARTS = {
    "table-viii": "table_viii",
    "by-set": "by_set",
    "by-shape": "by_shape",
    "by-threads": "by_threads",
}


def write(options, rows):
    """Print the last row, and write the record."""
    print(", ".join(f"{key}: {value}" for key, value in rows[-1].items()), flush=True)
    device = _cores.device(_cores.available())
    versions = _records.versions("skts", "numpy", "numba", "scikit-learn")
    if options.engine == "cupy" and not options.trial:
        device, versions = device_and_versions()
    found = _records.record(
        "k-Shape and k-means under DTW: the tables and figures of Times-C",
        device=device,
        versions=versions,
        rows=rows,
        commit=options.commit,
        said=SAID,
        **({"note": options.note} if options.note else {}),
    )
    _records.write(options.output, found)


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n\n", 1)[0])
    parser.add_argument("--engine", choices=OUTPUTS, default="numba")
    parser.add_argument("--parts", nargs="+", choices=PARTS, default=list(PARTS))
    parser.add_argument("--sets", nargs="+", choices=TABLE_VIII, help="of table VIII")
    parser.add_argument("--seconds", type=float, default=1e9, help="begin no row after these")
    parser.add_argument("--add", action="store_true", help="keep the other rows of the record")
    parser.add_argument("--trial", action="store_true", help="small sets, and no record")
    parser.add_argument("--note", help="what to record beside the rows")
    parser.add_argument("--commit", help="what to record where there is no git")
    parser.add_argument("--output", type=Path)
    options = parser.parse_args()
    options.output = options.output or _records.RESULTS / OUTPUTS[options.engine]
    if options.trial:
        options.output = Path(os.devnull)
    warnings.simplefilter("ignore", ConvergenceWarning)
    folder = os.environ.get("SKTS_DATA")
    folder = folder and Path(folder)
    benchmark = Benchmark(options.engine, folder, options.trial, options.sets)
    if options.engine == "numba":
        threadpool_limits(1)
    start, rows = time.perf_counter(), []
    if options.add and options.output.exists():
        rows = json.loads(options.output.read_text())["rows"]
    for part in options.parts:
        for row in getattr(benchmark, PARTS[part])():
            if part == "table-viii":
                same = [(each["part"], each["set"]) == (row["part"], row["set"]) for each in rows]
                rows = [each for each, again in zip(rows, same, strict=True) if not again]
            rows.append(row)
            write(options, rows)
            if time.perf_counter() - start > options.seconds:
                return
    if any(row["checked"].startswith("FAILED") for row in rows):
        raise SystemExit("a result is wrong: see the rows that FAILED")


if __name__ == "__main__":
    main()
