"""The directive ``benchmark-records``: one section and one table for each recorded benchmark run.

A record is a JSON file of ``benchmarks/results/``::

    {"name": "...", "device": "...", "versions": {"numpy": "..."}, "commit": "...",
     "date": "...", "rows": [{"column": value, ...}, ...]}

Figures in the documentation come from these files only.
"""

import csv
import io
import json
import re

from sphinx.errors import ExtensionError
from sphinx.util.docutils import SphinxDirective

FIELDS = ("name", "device", "versions", "commit", "date", "rows")


def read_record(path):
    """Read a record and see that it is complete."""
    record = json.loads(path.read_text(encoding="utf-8"))
    missing = [field for field in FIELDS if field not in record]
    if missing:
        raise ExtensionError(f"{path.name}: a benchmark record needs {', '.join(missing)}.")
    return record


#: Characters that mean something in reStructuredText.
MARKUP = re.compile(r"[|*`_\\]")


def show(value):
    """Text of one cell: four significant digits for a float, empty for None."""
    if value is None:
        return ""
    if isinstance(value, float):
        return f"{value:,.0f}" if abs(value) >= 10_000 else f"{value:.4g}"
    if isinstance(value, dict):
        return ", ".join(f"{key} {show(item)}" for key, item in value.items())
    if isinstance(value, list):
        return ", ".join(map(show, value))
    return MARKUP.sub(r"\\\g<0>", str(value))


def as_rst(record):
    """One section: what was run, where and when, and the table of its rows."""
    columns = list(dict.fromkeys(key for row in record["rows"] for key in row))
    table = io.StringIO()
    csv.writer(table, lineterminator="\n").writerows(
        [columns, *([show(row.get(column)) for column in columns] for row in record["rows"])]
    )
    lines = [
        record["name"],
        "-" * len(record["name"]),
        "",
        f":Device: {show(record['device'])}",
        f":Date: {record['date']}",
        f":Commit: {record['commit']}",
        f":Versions: {show(record['versions'])}",
        "",
    ]
    if record["rows"]:
        lines += [".. csv-table::", "   :header-rows: 1", "   :class: table-sm", ""]
        lines += [f"   {line}" for line in table.getvalue().splitlines()]
    return "\n".join(lines)


class BenchmarkRecords(SphinxDirective):
    """All records, newest first."""

    def run(self):
        folder = self.config.benchmark_records
        paths = sorted(folder.glob("*.json"))
        for path in paths:
            self.env.note_dependency(str(path))
        records = sorted(map(read_record, paths), key=lambda r: str(r["date"]), reverse=True)
        text = "\n\n".join(map(as_rst, records)) or "No run has been recorded yet."
        return self.parse_text_to_nodes(text, allow_section_headings=True)


def setup(app):
    app.add_config_value("benchmark_records", None, "env")
    app.add_directive("benchmark-records", BenchmarkRecords)
    return {"version": "1", "parallel_read_safe": True}
