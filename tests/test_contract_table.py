"""Which test meets which demand, for each kind of thing that the package offers.

All tests named here run over what `tests.discovery` finds, so that nothing new is forgotten; this
table says whether a demand has a test, and a sentence where it has none.
"""

from __future__ import annotations

import ast
from pathlib import Path

import pytest

TESTS = Path(__file__).parent
WORKS = "test_contract.py"
REDUCTION = "engines/core/test_every_reduction.py"
METHOD = "engines/core/test_every_engine_method.py"
REFUSED = "faults/test_memory_refused.py"
IMPORTS = "test_imports.py"

#: Demands, and for each kind the tests (file and name); or one sentence: why there is none.
TABLE: dict[str, dict[str, tuple[str, ...] | str]] = {
    "engines": {
        "estimator": (f"{WORKS}::test_every_engine_finds_the_same",),
        "function": (f"{WORKS}::test_every_engine_finds_the_same",),
        "display": (f"{WORKS}::test_every_engine_finds_the_same",),
        "reduction": (
            f"{REDUCTION}::test_every_engine_finds_the_answer_of_the_oracle",
            "engines/core/test_verify.py::test_right_answers_pass",
        ),
        "engine method": (
            f"{METHOD}::test_every_engine_computes_every_reduction_or_says_that_it_does_not",
            f"{METHOD}::test_it_is_the_method_of_a_reduction",
        ),
    },
    "back ends": {
        "estimator": (f"{WORKS}::test_every_back_end_finds_the_same",),
        "function": (f"{WORKS}::test_every_back_end_finds_the_same",),
        "display": (f"{WORKS}::test_every_back_end_finds_the_same",),
        "reduction": (f"{REDUCTION}::test_every_back_end_finds_the_same",),
        "engine method": "The test of reductions calls it in each process.",
    },
    "budgets": {
        "estimator": (f"{WORKS}::test_budgets", f"{REFUSED}::test_estimators"),
        "function": (f"{WORKS}::test_budgets",),
        "display": (f"{WORKS}::test_budgets",),
        "reduction": (
            f"{REDUCTION}::test_runs_at_the_same_time_share_no_plan",
            f"{REFUSED}::test_reductions",
        ),
        "engine method": (
            f"{METHOD}::test_its_companions_take_what_the_contract_says",
            f"{METHOD}::test_memory_is_arithmetic_and_grows_with_the_tile",
        ),
    },
    "pickling": {
        "estimator": (
            f"{WORKS}::test_pickles",
            f"{WORKS}::test_a_model_from_a_pickle_answers_the_same",
            "estimators/test_state.py::test_pickles_name_their_version",
            "faults/test_file_faults.py::test_pickles_that_are_cut_off",
        ),
        "function": (f"{WORKS}::test_pickles",),
        "display": (f"{WORKS}::test_pickles",),
        "reduction": (f"{REDUCTION}::test_tiles_merge_in_any_order",),
        "engine method": "Engines do not travel: other processes find theirs by the name.",
    },
    "concurrency": {
        "estimator": (
            f"{WORKS}::test_two_threads_at_once",
            f"{WORKS}::test_two_threads_ask_one_model",
        ),
        "function": (f"{WORKS}::test_two_threads_at_once",),
        "display": "Figures of matplotlib belong to one thread.",
        "reduction": (f"{REDUCTION}::test_runs_at_the_same_time_share_no_plan",),
        "engine method": "Workers of several runs call it in the test of reductions.",
    },
    "interruption": {
        "estimator": (
            f"{WORKS}::test_an_interrupt_is_heard_and_harms_nothing",
            "faults/test_ctrl_c.py::test_ctrl_c_at_random_times",
            "estimators/test_state.py::test_a_refit_that_stops_anywhere_leaves_the_old_fit",
        ),
        "function": (f"{WORKS}::test_an_interrupt_is_heard_and_harms_nothing",),
        "display": (f"{WORKS}::test_an_interrupt_is_heard_and_harms_nothing",),
        "reduction": (
            f"{REDUCTION}::test_an_interrupt_is_heard_and_harms_nothing",
            "faults/test_engine_faults.py::test_a_device_that_is_lost_in_the_midst_of_a_run",
        ),
        "engine method": (f"{METHOD}::test_a_tile_that_is_cancelled_ends_at_once",),
    },
    "docstrings": {
        "estimator": (
            f"{WORKS}::test_docstrings_name_parameters_and_fitted_attributes",
            f"{IMPORTS}::test_classes_describe_the_parameters_of_their_constructor",
            f"{IMPORTS}::test_docstrings_describe_each_parameter_and_the_result",
        ),
        "function": (f"{IMPORTS}::test_docstrings_describe_each_parameter_and_the_result",),
        "display": (
            f"{IMPORTS}::test_classes_describe_the_parameters_of_their_constructor",
            f"{IMPORTS}::test_docstrings_describe_each_parameter_and_the_result",
        ),
        "reduction": (f"{REDUCTION}::test_docstrings_name_every_field",),
        "engine method": (f"{METHOD}::test_it_is_documented_and_typed",),
    },
    "an example": {
        "estimator": (f"{WORKS}::test_everything_has_an_example",),
        "function": (f"{WORKS}::test_everything_has_an_example",),
        "display": (f"{WORKS}::test_everything_has_an_example",),
        "reduction": (f"{REDUCTION}::test_every_reduction_has_examples",),
        "engine method": (f"{METHOD}::test_it_is_the_method_of_a_reduction",),
    },
}
KINDS = {"estimator", "function", "display", "reduction", "engine method"}
NAMED = sorted(
    {place for row in TABLE.values() for cell in row.values() for place in cell if "::" in place}
)
#: What finds things: `functions` of `test_imports` walks all that is public, methods included.
FINDERS = {"estimators", "functions", "displays", "reductions", "engine_methods"}


def test_every_demand_has_an_answer_for_every_kind():
    for demand, row in TABLE.items():
        assert set(row) == KINDS, demand
        for cell in row.values():
            assert isinstance(cell, tuple) or cell.endswith(".")


@pytest.mark.parametrize("place", NAMED)
def test_tests_of_the_table_run_over_what_is_found(place):
    """The names that a test leads to, inside of its file, are among those that find things."""
    file, name = place.split("::")
    made = {}
    for node in ast.parse((TESTS / file).read_text()).body:
        if isinstance(node, ast.FunctionDef):
            made[node.name] = node
        elif isinstance(node, ast.Assign):
            made |= {ast.unparse(target): node.value for target in node.targets}
    waiting, seen = [name], {name}
    while waiting:
        for node in ast.walk(made[waiting.pop()]):
            if isinstance(node, ast.Name) and node.id not in seen:
                seen.add(node.id)
                waiting += [node.id] if node.id in made else []
    assert seen & FINDERS, f"{place} runs over what is listed by hand"
