"""Working memory stays within the budget, as the machine counts it."""

from __future__ import annotations

import os
import subprocess
import sys
import textwrap
from pathlib import Path

import pytest

from skts.engines import find_engine
from tests.discovery import estimators

if not os.path.exists("/proc/self/clear_refs"):
    pytest.skip("the peak of memory is reset through /proc", allow_module_level=True)

WORKS = {
    "DTWNearestNeighbor": """
        model = DTWNearestNeighbor(n_jobs=2)
        def prepare(n, length):
            return model.fit(walks(n, length), np.arange(n) % 2), walks(n, length)
        def work(made): made[0].kneighbors(made[1])
        small, large = (70, 40), (1500, 300)
    """,
    "window": """
        model = DTWNearestNeighbor(window=0.05, n_jobs=2)
        def prepare(n, length):
            return model.fit(walks(n, length), np.arange(n) % 2), walks(n, length)
        def work(made): made[0].kneighbors(made[1])
        small, large = (200, 200), (5000, 300)
    """,
    "DTWNeighbors": """
        model = DTWNeighbors(window=0.1, n_jobs=2)
        def prepare(n, length):
            model.fit(walks(n, length))
            distances = model.kneighbors(model._series.values[:9, 0], min(n, 300))[0]
            return model, walks(n, length), np.median(distances[:, -1])
        def work(made): made[0].radius_neighbors(*made[1:])
        small, large = (200, 200), (1500, 200)
    """,
    "DTWNearestNeighborRegressor": """
        model = DTWNearestNeighborRegressor(3, window=0.1, n_jobs=2)
        def prepare(n, length):
            return model.fit(walks(n, length), np.ones((n, 2))), walks(n, length)
        def work(made): made[0].predict(made[1])
        small, large = (200, 200), (1500, 200)
    """,
    "KShapeClusterer": """
        def prepare(n, length): return walks(n, length)
        def work(X): KShapeClusterer(3, random_state=0, max_iter=3, n_init=1, n_jobs=2).fit(X)
        small, large = (50, 40), (20_000, 256)
    """,
    "DTWKMeans": """
        def prepare(n, length): return walks(n, length)
        def work(X): DTWKMeans(3, random_state=0, window=0.05, max_iter=2, n_jobs=2).fit(X)
        small, large = (70, 40), (6000, 256)
    """,
    "DTWKMedoids": """
        def prepare(n, length): return walks(n, length)
        def work(X): DTWKMedoids(3, random_state=0, window=0.05, n_jobs=2, max_iter=2).fit(X)
        small, large = (70, 40), (6000, 64)
    """,
    "DTWKMedoids, alternating": """
        def prepare(n, length): return walks(n, length)
        def work(X):
            model = DTWKMedoids(3, method="alternate", random_state=0, window=0.05, max_iter=2)
            model.set_params(n_jobs=2).fit(X)
        small, large = (70, 40), (6000, 64)
    """,
    "DiscordDetector": """
        def prepare(n, length): return walks(n, length)
        def work(X): DiscordDetector(64, n_neighbors=3, n_jobs=2).fit(X)
        small, large = (1, 1000), (1, 20_000)
    """,
    "MotifFinder": """
        def prepare(n, length): return walks(n, length)
        def work(X): MotifFinder(64, n_discords=1, n_jobs=2).fit(X)
        small, large = (1, 1000), (1, 60_000)
    """,
    "ShapeletForestClassifier": """
        def prepare(n, length): return walks(n, length)
        def work(X):
            forest = ShapeletForestClassifier(20, max_length=40, max_depth=4, random_state=0)
            forest.set_params(n_jobs=2).fit(X, np.arange(len(X)) % 2).predict(X)
        small, large = (10, 60), (600, 300)
    """,
    "ShapeletTransformer": """
        def prepare(n, length): return walks(n, length)
        def work(X):
            transformer = ShapeletTransformer(max_candidates=400, features=["distance"])
            transformer.set_params(n_jobs=2).fit(X, np.arange(len(X)) % 2).transform(X)
        small, large = (10, 60), (1500, 300)
    """,
    "the best of all candidates": """
        def prepare(n, length): return walks(n, length)
        def work(X):
            best = ShapeletTransformer(9, max_candidates=None, lengths=[30], dilations=[1, 4])
            best.set_params(n_jobs=2).fit(X, np.arange(len(X)) % 2)
        small, large = (10, 130), (40, 300)
    """,
    "ShapeletTreeClassifier": """
        def prepare(n, length): return walks(n, length)
        def work(X):
            y = np.arange(len(X)) % 2
            tree = ShapeletTreeClassifier(min_length=30, max_length=40, length_step=5, max_depth=2)
            tree.set_params(n_jobs=2).fit(X, y).predict(X)
        small, large = (10, 60), (120, 300)
    """,
    "ShapeletTreeRegressor": """
        def prepare(n, length): return walks(n, length)
        def work(X):
            tree = ShapeletTreeRegressor(min_length=30, max_length=40, length_step=5, max_depth=2)
            tree.set_params(n_jobs=2).fit(X, X[:, 9]).predict(X)
        small, large = (10, 60), (120, 300)
    """,
    "SubsequenceMonitor": """
        model = SubsequenceMonitor(2.0, window=0.05, n_jobs=2)
        def prepare(n, length): return model.fit(walks(2, 128)), walks(n, length)[0]
        def work(made): made[0].update(made[1])
        small, large = (1, 2000), (1, 1_000_000)
    """,
    "SubsequenceSearch": """
        model = SubsequenceSearch(window=0.05, n_jobs=2)
        def prepare(n, length): return model.fit(walks(n, length)), walks(2, 128)
        def work(made): made[0].kneighbors(made[1], 3)
        small, large = (1, 2000), (1, 1_000_000)
    """,
    "DTWCondenser": """
        def prepare(n, length): return walks(n, length)
        def work(X):
            condenser = DTWCondenser(n_prototypes=5, window=3, adapt_window=False)
            condenser.set_params(n_jobs=2).fit(X, np.arange(len(X)) % 2)
        small, large = (30, 40), (400, 200)
    """,
}
#: Answers and equal series that would be held more than once: each returns its answer.
SMALL = {
    "all neighbours within a radius": """
        model = DTWNeighbors(radius=1e9, window=0.05, n_jobs=2)
        def prepare(n, length): return model.fit(walks(n, length)), walks(n, length)
        def work(made):
            return [row for rows in made[0].radius_neighbors(made[1]) for row in rows]
        small, large = (60, 40), (1500, 60)
    """,
    "the graph of all within a radius": """
        model = DTWNeighbors(radius=1e9, window=0.05, n_jobs=2)
        def prepare(n, length): return model.fit(walks(n, length)), walks(n, length)
        def work(made):
            graph = made[0].radius_neighbors_graph(made[1], mode="distance")
            # a search finds indices of 8 bytes
            return [graph.data, graph.indices, np.empty(graph.nnz, np.int32)]
        small, large = (60, 40), (1500, 60)
    """,
    "windows that tie": """
        def prepare(n, length): return np.zeros(walks(n, length).shape)
        def work(X):
            search = SubsequenceSearch(window=0.05, n_jobs=2).fit(X)
            return search.kneighbors(X[:, :100], 3)
        small, large = (1, 2000), (1, 1_000_000)
    """,
    "many medoids": """
        def prepare(n, length): return walks(n, length)
        def work(X):
            model = DTWKMedoids(len(X) // 13, method="alternate", init="random", n_init=2)
            model.set_params(random_state=0, window=0.05, max_iter=1, n_jobs=2)
            return [model.fit(X).transform(X)]
        small, large = (300, 40), (4000, 60)
    """,
    "many equal series, as clusters": """
        def prepare(n, length): return np.ones((n, 1)) * walks(n, length)[:1]
        def work(X):
            return [DTWKMeans(8, max_iter=2, window=0.05, random_state=0, n_jobs=2).fit(X).labels_]
        small, large = (200, 40), (20_000, 100)
    """,
    "many equal series, condensed": """
        def prepare(n, length): return np.ones((n, 1)) * walks(n, length)[:1]
        def work(X):
            return [DTWCondenser(n_jobs=2).fit(X, np.arange(len(X)) % 3).ranks_]
        small, large = (70, 40), (2000, 60)
    """,
    "a motif of many series": """
        from skts.motifs import consensus_motif
        def prepare(n, length): return list(walks(n, length))
        def work(X): consensus_motif(X, window=50, n_jobs=2)
        small, large = (3, 200), (30, 3000)
    """,
}
CHILD = """
    import gc, sys, warnings
    import numpy as np
    from skts import *
    import skts

    warnings.simplefilter("ignore")

    inputs = 0

    def walks(n, length):
        global inputs
        inputs += 8 * n * length
        return np.random.default_rng(0).normal(size=(n, length)).cumsum(axis=1)

    def read(name):
        with open("/proc/self/status") as file:
            return 1024 * next(int(line.split()[1]) for line in file if line.startswith(name))

    {work}
    work(prepare(*small))
    inputs = 0
    made = prepare(*large)
    skts.set_config(memory=sys.argv[1])
    gc.collect()
    with open("/proc/self/clear_refs", "w") as file:
        file.write("5")
    before = read("VmRSS")
    answer = work(made)
    print(read("VmHWM") - before, inputs, sum(array.nbytes for array in answer or []))
"""


FROM_FILES = {
    "DTWNearestNeighbor": """
        model = DTWNearestNeighbor(window=2, n_jobs=2).fit(walks(20, 1000), np.arange(20) % 2)
        def work(X): model.kneighbors(X)
        small, large = (20, 1000), (40_000, 1000)
    """,
    "KShapeClusterer": """
        def work(X): KShapeClusterer(2, random_state=0, max_iter=2, n_init=1, n_jobs=2).fit(X)
        small, large = (30, 1000), (40_000, 1000)
    """,
    "DTWKMeans": """
        def work(X): DTWKMeans(2, random_state=0, window=2, max_iter=3, n_jobs=2).fit(X)
        small, large = (70, 1000), (40_000, 1000)
    """,
    "SubsequenceSearch": """
        model, query = SubsequenceSearch(window=2, n_jobs=2), walks(1, 32)
        def work(X): model.fit(X).kneighbors(query, 3)
        small, large = (1, 5000), (1, 40_000_000)
    """,
}
MAPPING = """
    import os, sys, threading, time, warnings
    import numpy as np
    from skts import *
    import skts

    def walks(n, length, seed=0):
        return np.random.default_rng(seed).normal(size=(n, length)).cumsum(axis=1)

    def mapped(name, n, length):
        array = np.memmap(name, np.float64, "w+", shape=(n, length))
        flat = array.reshape(-1)
        for start in range(0, flat.size, 2**20):
            flat[start : start + 2**20] = walks(1, min(2**20, flat.size - start), start)[0]
        array.flush()
        return np.memmap(name, np.float64, "r", shape=(n, length))

    def held():
        # what a file backs may be dropped at any time, and does not count
        with open("/proc/self/status") as file:
            return 1024 * next(int(line.split()[1]) for line in file if line.startswith("RssAnon"))

    def watch():
        global peak
        while not done:
            peak = max(peak, held())
            time.sleep(0.005)

    warnings.simplefilter("ignore")
    {work}
    work(mapped("small", *small))
    X = mapped("large", *large)
    skts.set_config(memory=sys.argv[1])
    before, peak, done = held(), 0, False
    thread = threading.Thread(target=watch)
    thread.start()
    work(X)
    done = True
    thread.join()
    print(peak - before, X.nbytes)
"""
ON_GPU = """
    import gc, sys
    import cupy
    import numpy as np
    from skts import *
    import skts

    pool, peak = cupy.get_default_memory_pool(), 0

    def malloc(size):
        global peak
        made = pool.malloc(size)
        peak = max(peak, pool.used_bytes())
        return made

    def walks(n, length):
        return np.random.default_rng(0).normal(size=(n, length)).cumsum(axis=1)

    {work}
    skts.set_config(engine="cupy")
    work(prepare(*small))
    made = prepare(*large)
    gc.collect()
    skts.engines.find_engine("cupy").prepared.clear()
    held = pool.used_bytes()
    skts.set_config(memory=sys.argv[1])
    cupy.cuda.set_allocator(malloc)
    work(made)
    print(peak - held, 0)
"""


def _peak(
    child: str, work: str, budget: int, folder: Path | None = None, **environment: str
) -> list[int]:
    """Bytes that a piece of work has held at most, and those of its inputs and answer."""
    process = subprocess.run(
        [
            sys.executable,
            "-c",
            textwrap.dedent(child).format(work=textwrap.dedent(work)),
            f"{budget}MiB",
        ],
        capture_output=True,
        text=True,
        check=False,
        cwd=folder,
        env={
            **os.environ,
            **({} if folder is None else {"JOBLIB_TEMP_FOLDER": str(folder)}),
            **environment,
        },
    )
    if "UnsupportedReductionError" in process.stderr:
        pytest.skip(process.stderr.splitlines()[-1])
    assert process.returncode == 0, process.stderr
    return [int(number) for number in process.stdout.split()]


@pytest.mark.parametrize("kind", estimators())
def test_every_estimator_has_work(kind):
    name = kind.__name__
    assert name in WORKS, f"{name} has no work: add one to WORKS in tests/test_memory_budgets.py."


@pytest.mark.slow
@pytest.mark.parametrize("budget", [64, 1024])
@pytest.mark.parametrize("name", WORKS)
def test_peaks(name, budget):
    peak, inputs, _ = _peak(CHILD, WORKS[name], budget)
    # two copies of the input, one of them private, and 64 MiB that allocators do not give back
    assert peak <= budget * 2**20 + 2 * inputs + 2**26


@pytest.mark.slow
@pytest.mark.parametrize("name", SMALL)
def test_peaks_of_a_small_budget(name):
    # large arrays are given back at once; the first process may compile kernels, see below
    settings = {"MALLOC_MMAP_THRESHOLD_": "65536", "MALLOC_TRIM_THRESHOLD_": "65536"}
    for _ in range(2):
        peak, inputs, answer = _peak(CHILD, SMALL[name], 8, **settings)
    # a private copy of the input, another one of a part of it, and 12 MiB for kernels and threads
    assert peak <= 2**23 + 2 * inputs + answer + 3 * 2**22


@pytest.mark.slow
@pytest.mark.parametrize("name", FROM_FILES)
def test_files_larger_than_the_budget_are_not_loaded(name, tmp_path):
    # the first process may compile kernels, which takes 200 MiB
    _, (peak, inputs) = (_peak(MAPPING, FROM_FILES[name], 64, tmp_path) for _ in range(2))
    # 96 MiB that allocators do not give back, and answers
    assert peak <= 2**26 + 3 * 2**25 < inputs
    assert sorted(path.name for path in tmp_path.iterdir()) == ["large", "small"]


@pytest.mark.gpu
@pytest.mark.slow
@pytest.mark.parametrize("budget", [64, 512, 2048])
@pytest.mark.parametrize("name", WORKS)
def test_peaks_on_a_gpu(name, budget):
    missing = find_engine("cupy").available()
    if missing is not None:
        pytest.skip(missing)
    peak, _ = _peak(ON_GPU, WORKS[name], budget)
    assert 0 < peak <= budget * 2**20
