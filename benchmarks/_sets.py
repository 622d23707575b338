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
