"""Records of what the engines plan and do, one line of JSON for each work."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

import numpy as np

__all__ = ["EMULATED", "plain", "write"]

EMULATED = os.environ.get("SKTS_EMULATE_GPU") == "1"


def plain(value: Any) -> Any:
    """Return numbers as JSON has them, and nothing else."""
    if isinstance(value, tuple | list | np.ndarray):
        return [plain(part) for part in value]
    if isinstance(value, float | np.floating):
        return float(f"{value:.9g}")
    if isinstance(value, bool | np.bool_):
        return bool(value)
    return int(value) if isinstance(value, int | np.integer) else None


def write(path: Path, record: dict[str, dict[str, Any]]) -> None:
    """Write tables to a file, each row on a line of its own."""
    lines = []
    for name in sorted(record):
        rows = [f"  {json.dumps(key)}: {json.dumps(row)}" for key, row in record[name].items()]
        lines.append(f' "{name}": {{\n' + ",\n".join(rows) + "\n }")
    path.write_text("{\n" + ",\n".join(lines) + "\n}\n")
