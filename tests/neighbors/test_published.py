"""Published 1-NN errors of the UCR archive, to the sample, on every engine that ships.

Needs the sets: ``SKTS_DATA=<folder> python -m pytest -m slow tests/neighbors/test_published.py``.
"""

from __future__ import annotations

import numpy as np
import pytest
from published import COMPLETE, FILLED, is_published, learned_percent, load

from skts import DTWNearestNeighbor


@pytest.mark.slow
@pytest.mark.parametrize("learned", [False, True], ids=["no window", "learned window"])
@pytest.mark.parametrize("name", COMPLETE + FILLED)
def test_error_of_the_archive(fast_engine, ucr, name, learned):
    X_train, y_train, X_test, y_test = load(ucr, name)
    window = learned_percent(ucr, name) / 100 if learned else None
    model = DTWNearestNeighbor(window=window, engine=fast_engine).fit(X_train, y_train)
    wrong = int(np.sum(model.predict(X_test) != y_test))
    assert is_published(ucr, name, wrong, learned=learned)
