"""Threads of a GPU come in any order, and answers have the same bits; where one is emulated."""

from __future__ import annotations

import pytest

from skts.engines import run
from tests.examples_of_work import leaves, reductions, small_examples

pytestmark = pytest.mark.gpu

#: As the emulator has it: numbers are seeds of random orders, in which warps of a block take turns.
ORDERS = ("forward", "backward", "1", "2", "3")


@pytest.mark.parametrize("kind", reductions())
def test_any_order_of_threads_has_the_same_bits(monkeypatch, kind):
    """What warps or blocks share by mistake shows where others write it in between."""
    settings = getattr(pytest.importorskip("cupy"), "SETTINGS", None)
    if settings is None:
        pytest.skip("a device has the order that it has")
    for number in range(len(small_examples()[kind])):
        found = []
        for order in ORDERS:
            monkeypatch.setattr(settings, "order", order)
            # made anew: nothing is left of the run before
            work, answer = small_examples()[kind][number]
            found.append(leaves(answer(run(work, engine="cupy"))))
        assert all(one == found[0] for one in found[1:])
