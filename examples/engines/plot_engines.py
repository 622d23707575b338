"""
The same code on CPU and GPU
============================

An engine does the heavy work: ``numba`` on the CPU, ``cupy`` on an NVIDIA GPU. Code does not say
which; one argument or setting does, and the answer is the same. This page was built on a machine
whose engines are listed below.
"""

# %%
# What can run here?
# ------------------
# Where an engine cannot run, the reason is given, with what to install.

import pickle
from time import perf_counter

import matplotlib.pyplot as plt
import numpy as np

import skts
from skts import DTWNearestNeighbor, KShapeClusterer
from skts.datasets import make_warped_shapes
from skts.exceptions import EngineNotAvailableError
from skts.motifs import matrix_profile

skts.show_engines()

# %%
# The work
# --------
# A function that does not mention engines.


def work():
    """Neighbours, clusters and a matrix profile."""
    X, y = make_warped_shapes(200, 128, noise=0.3, random_state=0)
    nearest = DTWNearestNeighbor(window=0.1).fit(X[:100], y[:100])
    distances, indices = nearest.kneighbors(X[100:])
    labels = KShapeClusterer(3, random_state=0).fit(X).labels_
    profile = matrix_profile(X[:20].ravel(), window=64)
    return distances, indices, labels, profile.distances, profile.indices


# %%
# On each engine
# --------------
# ``config_context`` chooses for a block, ``set_config`` from there on, and the argument ``engine``
# for one estimator. Settings that change nothing about the answer: the number of threads, and the
# memory that the work may take.

settings = {
    "numba": {"engine": "numba"},
    "numba, 16 MiB": {"engine": "numba", "memory": "16MiB"},
    "cupy": {"engine": "cupy"},
}
answers, seconds = {}, {}
for name, setting in settings.items():
    with skts.config_context(**setting):
        try:
            work()  # the first call compiles
        except EngineNotAvailableError as error:
            print(f"{name}: {error}")
            continue
        start = perf_counter()
        answers[name] = work()
        seconds[name] = perf_counter() - start

first, *others = answers
for name in others:
    same = all(map(np.array_equal, answers[first], answers[name]))
    print(f"{first} and {name} give the same answer, bit by bit: {same}")

fig, ax = plt.subplots(figsize=(6, 0.6 + 0.4 * len(seconds)), layout="constrained")
ax.barh(list(seconds), list(seconds.values()), color="#0072B2")
ax.set(xlabel="seconds for this small piece of work")
plt.show()

# %%
# Fit there, predict here
# -----------------------
# Fitted attributes are NumPy arrays and plain Python. A model that was fitted on a GPU can be
# pickled, and predicts on a laptop.

X, y = make_warped_shapes(60, 64, random_state=1)
model = pickle.loads(pickle.dumps(DTWNearestNeighbor().fit(X, y)))
print("fitted by", model.engine_, "- predicts", model.predict(X[:3]))
