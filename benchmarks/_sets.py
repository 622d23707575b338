"""Sets of the UCR archive, from the folder that SKTS_DATA names."""

import os
from pathlib import Path

import numpy as np


def archive(name):
    """Training series and classes, test series and classes; None where SKTS_DATA is not set."""
    folder = os.environ.get("SKTS_DATA")
    if not folder:
        return None
    with np.load(Path(folder) / "ucr" / f"{name}.npz") as file:
        X, y, Z, z = (file[key] for key in ("X_train", "y_train", "X_test", "y_test"))
    return X.astype(float), y, Z.astype(float), z


def load(folder, name):
    """Series and classes of a set, training and test series joined, gaps filled."""
    with np.load(folder / "ucr" / f"{name}.npz") as data:
        X = np.concatenate([data["X_train"], data["X_test"]]).astype(float)
        y = np.concatenate([data["y_train"], data["y_test"]])
    for row in X:
        known = np.flatnonzero(~np.isnan(row))
        if name == "DodgerLoopDay":
            row[:] = np.interp(np.arange(row.size), known, row[known])
        row[known[-1] + 1 :] = 0.0
    return X, y
