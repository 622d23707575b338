"""Searches among some of the series, as those below the root of a tree are."""

from __future__ import annotations

import importlib

import numpy as np
import pytest

from skts.engines import Criterion, Series, ShapeletSearch, run


@pytest.mark.parametrize("members", [[3, 4, 9, 10, 15, 16], [0, 5, 7, 8, 11, 13, 17]])
def test_others_have_no_say(fast_engine, members):
    rng, members = np.random.default_rng(5), np.array(members)
    labels = np.arange(18) // 2 % 2
    values = rng.normal(size=(18, 1, 14))
    values[labels == 1, 0, 4:9] += np.array([0.0, 2.0, 4.0, 2.0, 0.0])
    # whoever is no member has them the other way round
    others = np.setdiff1d(np.arange(18), members)
    values[others] = values[np.roll(others, 2)]
    series = Series(values, np.full(18, 14)).freeze()
    criterion = Criterion(labels[members], np.ones(2))
    work = ShapeletSearch(series, members, (3, 5, 6), criterion)
    found, expected = run(work, engine=fast_engine), run(work, engine="oracle")
    assert found.cut == expected.cut
    assert found[:6] == expected[:6]


@pytest.mark.gpu
@pytest.mark.parametrize(
    ("seed", "leaf", "few"), [(0, 1, 0), (1, 1, 0), (0, 4, 0), (1, 4, 0), (4, 4, 3)]
)
def test_lines_that_a_block_judges_have_the_best_cuts(monkeypatch, seed, leaf, few):
    """As if series were so many: of three classes, with many cuts that are nearly as good."""
    cupy = pytest.importorskip("cupy")
    programs = importlib.import_module("skts.engines.cupy.shapelets.programs")
    monkeypatch.setattr(programs, "KEYS", ())
    rules = importlib.import_module("skts.engines.cupy.shapelets.rules")

    class Apart(rules.Parcel):
        """Arrays by themselves, of 32 bytes or more: the emulator sees what reads behind them."""

        def __init__(self, *arrays, room):
            super().__init__(*arrays, room=room)
            # behind the last one is the list
            self.alone = [cupy.empty(array.shape, array.dtype) for array in arrays[:-1]]

        def address(self, k):
            return self.alone[k].data.ptr if self.alone[k].size else 0

        def send(self):
            super().send()
            for there, here in zip(self.alone, self.here, strict=False):
                there.set(here)

        def there(self, k):
            return self.alone[k] if k < len(self.alone) else super().there(k)

    monkeypatch.setattr(rules, "Parcel", Apart)
    rng = np.random.default_rng(seed)
    values = rng.normal(size=(32, 1, 12)) if seed % 2 else rng.integers(0, 3, (32, 1, 12))
    labels = rng.integers(0, 3, 32)
    if few:
        # cuts that part them from all others gain the most, and leave a leaf too small
        values = rng.normal(size=(32, 1, 12))
        values[:, 0, :6] += 9 * np.arange(6)
        values[:few, 0] = np.arange(12) % 2 + 0.01 * values[:few, 0]
        labels = np.where(np.arange(32) < few, 2, rng.integers(0, 2, 32))
    criterion = Criterion(labels, np.ones(3), min_samples_leaf=leaf)
    series = Series(values.astype(float), np.full(32, 12)).freeze()
    work = ShapeletSearch(series, np.arange(32), (3, 5), criterion)
    found, expected = run(work, engine="cupy"), run(work, engine="oracle")
    assert found.cut == expected.cut
    assert found[:6] == expected[:6]
