"""One shapelet model at data sets: seconds of fit and predict, and accuracy.

    python SCRIPT MODEL ENGINE REQUEST.npz ANSWER.json [REQUEST.npz ANSWER.json ...]

is run by the interpreter of the model's library. A request holds `X`, `y`, `Z`, `z` (training and
test series and classes), `seed`, `threads`, and `cores`: the process keeps to these. Engine is
"cpu", or "gpu" for a model of skts.

A fit and a prediction of a few series come first, so that compiling is not in the times. On a GPU
each set is fitted and predicted twice, and the second time counts. Times of one thread are of the
processor, since a machine may have other users; of several threads, and of a GPU, by the clock.
"""

import json
import os
import sys
import time
from importlib.metadata import distributions
from pathlib import Path
from platform import python_version

import numpy as np

#: Series of the warm-up, and their time points.
FEW, SHORT = 12, 64
#: How skts calls the engines.
ENGINES = {"cpu": "numba", "gpu": "cupy"}


def pipeline(transformer):
    """A transform before the linear classifier that its authors take."""
    from sklearn.linear_model import RidgeClassifierCV
    from sklearn.pipeline import make_pipeline
    from sklearn.preprocessing import StandardScaler

    return make_pipeline(transformer, StandardScaler(), RidgeClassifierCV(np.logspace(-4, 4, 20)))


def skts_tree(seed, **how):
    from skts import ShapeletTreeClassifier

    return ShapeletTreeClassifier(logic=(), **how)


def skts_forest(seed, **how):
    from skts import ShapeletForestClassifier

    return ShapeletForestClassifier(random_state=seed, **how)


def skts_transform(seed, **how):
    from skts import ShapeletTransformer

    return pipeline(ShapeletTransformer(random_state=seed, **how))


def aeon_rdst(seed, n_jobs):
    from aeon.classification.shapelet_based import RDSTClassifier

    return RDSTClassifier(random_state=seed, n_jobs=n_jobs)


def aeon_stc(seed, n_jobs):
    from aeon.classification.shapelet_based import ShapeletTransformClassifier

    return ShapeletTransformClassifier(random_state=seed, n_jobs=n_jobs)


def wildboar_forest(seed, n_jobs):
    from wildboar.ensemble import ShapeletForestClassifier

    return ShapeletForestClassifier(
        n_estimators=100, n_shapelets="log2", random_state=seed, n_jobs=n_jobs
    )


MODELS = {
    "skts tree": skts_tree,
    "skts forest": skts_forest,
    "skts transform": skts_transform,
    "aeon RDST": aeon_rdst,
    "aeon STC": aeon_stc,
    "wildboar forest": wildboar_forest,
}


def versions():
    """Versions of the packages here; where there are two of one, the one that is imported."""
    found = {"python": python_version()}
    for one in distributions():
        found.setdefault(one.metadata["Name"].lower(), one.version)
    return found


def judged(make, request, clock, repeats):
    """The answer to a request."""
    for _ in range(repeats):
        model = make(int(request["seed"]))
        start = clock()
        model.fit(request["X"], request["y"])
        middle = clock()
        labels = model.predict(request["Z"])
        end = clock()
    return {
        "accuracy": float(np.mean(labels == request["z"])),
        "labels": np.searchsorted(np.unique(request["y"]), labels).tolist(),
        "fit": middle - start,
        "predict": end - middle,
    }


def main():
    name, engine, *files = sys.argv[1:]
    # scripts of this folder are not to be taken for packages, `profile` or `kshape`
    here = Path(__file__).resolve().parent
    sys.path[:] = [entry for entry in sys.path if Path(entry).resolve() != here]
    requests = list(zip(files[::2], files[1::2], strict=True))
    with np.load(requests[0][0]) as file:
        cores, threads = file["cores"].tolist(), int(file["threads"])
    if cores and hasattr(os, "sched_setaffinity"):
        os.sched_setaffinity(0, cores)
    how = {"n_jobs": threads}
    if name.startswith("skts"):
        import skts

        how["engine"] = ENGINES[engine]
        # else small work is left to NumPy until compiled loops pay
        model = MODELS[name](0, **how)
        skts.warm_up(ENGINES[engine], [model[0] if hasattr(model, "steps") else model])

    def make(seed):
        return MODELS[name](seed, **how)

    few = np.random.default_rng(0).standard_normal((FEW, SHORT))
    make(0).fit(few, np.arange(FEW) % 2).predict(few)
    alone = engine == "cpu" and threads == 1
    clock = time.process_time if alone else time.perf_counter
    for request, answer in requests:
        with np.load(request) as file:
            found = judged(make, dict(file), clock, 2 if engine == "gpu" else 1)
        Path(answer).write_text(json.dumps(found | {"versions": versions()}))


if __name__ == "__main__":
    main()
