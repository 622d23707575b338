"""A machine that attacks the package: random options, shapes, numbers, forms and settings.

    python -m tests.fuzz --seconds 60 --engine numba --seed 7
    python -m tests.fuzz --seed 7 --function skts.metrics.dtw --case 123

A *case* (`case.py`) is one call of a public function, or one life of an estimator, with all that
it depends on. It follows from a seed, a number and the name of what is called (`draw.py`). A
*recipe* (`recipes_*.py`) knows how a callable is drawn, called, and judged by the *oracle*
(`oracle.py`), which knows the definitions and imports nothing of the package. The *machine*
(`machine.py`) calls on one engine, on another one, with other tiles, threads, budgets and back
ends, and with data changed in ways whose effect is known. Cases run in a process of their own
(`worker.py`), which names each case before it runs it, so that a crash or a hang has a name
(`__main__.py`). Whatever fails is cut down (`shrink.py`) and printed as a regression test.

Public callables, methods and parameters are discovered: one that no recipe draws is a failing
test (`test_fuzz.py`).
"""

from .case import Case, Sample
from .compare import Failure

__all__ = ["Case", "Failure", "Sample", "assert_right"]


def assert_right(case: Case, engine: str = "numba", against: str | None = None) -> None:
    """Fail if anything is wrong with a case: for regression tests that the fuzzer prints."""
    from . import recipes  # noqa: F401
    from .machine import examine

    examine(case, engine, against)
