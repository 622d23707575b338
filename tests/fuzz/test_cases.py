"""Cases of the fuzzer that are always the same, by what they call: mutants meet them, too.

The default suite does without them, as it has cases of a fresh seed (`test_fuzz.py`);
``tests/mutation`` takes them beside the other tests. The first parts are few and small cases, for
kernels that run as plain Python; later ones are more, and larger.
"""

from __future__ import annotations

from dataclasses import replace
from itertools import islice

import numpy as np
import pytest
from numba import config

from tests.fuzz import recipes
from tests.fuzz.machine import draw_case, find_failure
from tests.fuzz.recipe import RECIPES

assert recipes

SEED = 4
#: Cases of each part, and the most points that each may have.
PARTS = ((6, 60), (12, 120), (24, 120), (40, 400), (40, 2000))
#: Engines, each with its parts: on the emulator of a GPU each program that cases need is compiled.
WAYS = [("numba", part) for part in range(len(PARTS))]
WAYS += [pytest.param("cupy", part, marks=pytest.mark.gpu) for part in range(2)]
#: Numbers of cases that are drawn, at most, for each that is taken.
DRAWN = 30
#: Settings without which cases are run: processes of their own would not be those that are looked
#: at, and each instance of a kernel would have to be compiled for each mutant.
LEFT_OUT = ("backend", "instances", "again")
#: How cases fail that only compiled kernels can run.
COMPILED_ONLY = ("NotImplementedError", "TypeError in lanes.py", "AttributeError in point_costs.py")


def cases(name, part):
    """The cases of a part."""
    wanted, most = PARTS[part]
    numbers = range(10**5 * part, 10**5 * part + DRAWN * wanted)
    drawn = (draw_case(SEED, number, name)[0] for number in numbers)
    some = islice((case for case in drawn if case.points() <= most), wanted)
    return [without(LEFT_OUT, case) for case in some]


def without(names, case):
    """A case without some of its settings."""
    return replace(case, setting={k: v for k, v in case.setting.items() if k not in names})


def failure_as_python(case, engine):
    """The failure of a case where kernels run as plain Python, which warns of what floats do."""
    with np.errstate(all="ignore"):
        failure = find_failure(without(("strict",), case), engine)
    return None if failure and failure.kind.startswith(COMPILED_ONLY) else failure


@pytest.mark.slow
@pytest.mark.cases
@pytest.mark.parametrize(("engine", "part"), WAYS)
@pytest.mark.parametrize("name", sorted(RECIPES))
def test_cases(name, engine, part):
    some = cases(name, part)
    assert some
    for case in some:
        failure = (failure_as_python if config.DISABLE_JIT else find_failure)(case, engine)
        if failure is not None:
            raise failure
