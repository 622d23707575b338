"""Accuracies of the UCR sets beside those of another exact shapelet tree.

Needs the sets: ``SKTS_DATA=<folder> python -m pytest -m slow tests/tree/test_published.py``.
"""

from __future__ import annotations

import csv

import numpy as np
import pytest
from published import load

from skts import ShapeletTreeClassifier

#: Sets whose trees take more than a minute on two cores; `benchmarks/shapelets/paper_shapelets.py`
#: runs them.
LONG = {"Adiac", "Car", "Lightning2"}


def references(folder):
    """Accuracy of the exact tree for each set that has one."""
    with (folder / "reference.csv").open() as file:
        rows = list(csv.DictReader(file))
    column = "acc_exact_shapelet_tree"
    return {row["name"]: float(row[column]) for row in rows if row[column]}


@pytest.mark.slow
@pytest.mark.parametrize("logic", [(), ("and", "or")], ids=["single", "logic"])
def test_mean_accuracy_is_that_of_an_exact_tree(ucr, logic):
    """All subsequences of a quarter to two thirds of the series, as there."""
    differences = {}
    for name, accuracy in references(ucr).items():
        if name in LONG:
            continue
        X_train, y_train, X_test, y_test = load(ucr, name)
        length = X_train.shape[1]
        model = ShapeletTreeClassifier(
            min_length=max(3, length // 4), max_length=int(0.67 * length), logic=logic
        ).fit(X_train, y_train)
        assert model.score(X_train, y_train) == 1
        differences[name] = model.score(X_test, y_test) - accuracy
    assert len(differences) == 17
    assert np.mean(list(differences.values())) > -0.02, differences
