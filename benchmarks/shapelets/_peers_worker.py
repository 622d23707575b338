"""One shapelet model at one data set: seconds of fit and predict, and accuracy.

    python SCRIPT MODEL REQUEST.npz ANSWER.json

is run by the interpreter of the model's library. The request holds `X`, `y`, `Z`, `z` (training and
test series and classes) and `seed`. A fit and a prediction of a few series come first, so that
compiling is not in the times; they are of the processor, since a machine may have other users.
"""

import json
import sys
import time
from importlib.metadata import distributions
from pathlib import Path
from platform import python_version

import numpy as np

#: Series of the warm-up, and their time points.
FEW, SHORT = 12, 64


def pipeline(transformer):
    """A transform before the linear classifier that its authors take."""
    from sklearn.linear_model import RidgeClassifierCV
    from sklearn.pipeline import make_pipeline
    from sklearn.preprocessing import StandardScaler

    return make_pipeline(transformer, StandardScaler(), RidgeClassifierCV(np.logspace(-4, 4, 20)))


def skts_tree(seed):
    from skts import ShapeletTreeClassifier

    return ShapeletTreeClassifier(logic=(), engine="numba", n_jobs=1)


def skts_forest(seed):
    from skts import ShapeletForestClassifier

    return ShapeletForestClassifier(random_state=seed, engine="numba", n_jobs=1)


def skts_transform(seed):
    from skts import ShapeletTransformer

    return pipeline(ShapeletTransformer(random_state=seed, engine="numba", n_jobs=1))


def aeon_rdst(seed):
    from aeon.classification.shapelet_based import RDSTClassifier

    return RDSTClassifier(random_state=seed, n_jobs=1)


def aeon_stc(seed):
    from aeon.classification.shapelet_based import ShapeletTransformClassifier

    return ShapeletTransformClassifier(random_state=seed, n_jobs=1)


def wildboar_forest(seed):
    from wildboar.ensemble import ShapeletForestClassifier

    return ShapeletForestClassifier(
        n_estimators=100, n_shapelets="log2", random_state=seed, n_jobs=1
    )


MODELS = {
    "skts tree": skts_tree,
    "skts forest": skts_forest,
    "skts transform": skts_transform,
    "aeon RDST": aeon_rdst,
    "aeon STC": aeon_stc,
    "wildboar forest": wildboar_forest,
}


def main():
    name, request, answer = sys.argv[1:]
    # scripts of this folder are not to be taken for packages, `profile` or `kshape`
    here = Path(__file__).resolve().parent
    sys.path[:] = [entry for entry in sys.path if Path(entry).resolve() != here]
    with np.load(request) as file:
        X, y, Z, z, seed = (file[key] for key in ("X", "y", "Z", "z", "seed"))
    make = MODELS[name]
    if name.startswith("skts"):
        import skts

        # else small work is left to NumPy until compiled loops pay
        model = make(0)
        skts.warm_up("numba", [model[0] if hasattr(model, "steps") else model])
    few = np.random.default_rng(0).standard_normal((FEW, SHORT))
    make(0).fit(few, np.arange(FEW) % 2).predict(few)
    print("warm", flush=True)
    model = make(int(seed))
    start = time.process_time()
    model.fit(X, y)
    middle = time.process_time()
    labels = model.predict(Z)
    end = time.process_time()
    versions = {found.metadata["Name"].lower(): found.version for found in distributions()}
    versions["python"] = python_version()
    found = {
        "accuracy": float(np.mean(labels == z)),
        "fit": middle - start,
        "predict": end - middle,
        "versions": versions,
    }
    Path(answer).write_text(json.dumps(found))


if __name__ == "__main__":
    main()
