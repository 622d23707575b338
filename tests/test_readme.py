"""The example of the README runs."""

from __future__ import annotations

import re
from pathlib import Path


def test_the_example_runs(capsys):
    text = (Path(__file__).parents[1] / "README.md").read_text()
    blocks = re.findall(r"```python\n(.*?)```", text, re.DOTALL)
    assert blocks
    namespace = {}
    for block in blocks:
        exec(block, namespace)
    assert "accuracy 0.967" in capsys.readouterr().out
