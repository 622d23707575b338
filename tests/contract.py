"""Checks that every estimator passes, whatever it computes."""

from __future__ import annotations

import inspect
import re
import typing

from sklearn.utils.estimator_checks import check_estimator


def check_with_scikit_learn(estimator, least=40):
    """Run scikit-learn's checks, of which none may fail and at least so many must run.

    Those of optional array libraries may be skipped; SCIPY_ARRAY_API=1 is theirs to set.
    """
    results = check_estimator(estimator, on_fail=None, on_skip=None)
    others = [
        (result["check_name"], result["status"], result["exception"])
        for result in results
        if (result["check_name"], result["status"]) != ("check_array_api_input", "skipped")
        and result["status"] != "passed"
    ]
    assert not others
    assert len(results) >= least


def check_described(fitted):
    """Whether the docstring names all parameters, with hints, and all fitted attributes."""
    kind = type(fitted)
    documentation = inspect.getdoc(kind)
    parameters = set(inspect.signature(kind).parameters)
    assert parameters == set(kind._parameter_constraints)
    described = {
        name
        for names in re.findall(r"^([\w, ]+) : ", documentation, re.MULTILINE)
        for name in names.split(", ")
    }
    assert parameters | {name for name in vars(fitted) if name.endswith("_")} <= described
    assert parameters | {"return"} == set(typing.get_type_hints(kind.__init__))
