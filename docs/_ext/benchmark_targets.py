"""The directive ``benchmark-targets``: figures to reach beside those of recorded runs.

`benchmarks/targets.py` has the targets, and takes each figure from a record; below each table are
the records that it quotes.
"""

import csv
import io

from benchmark_records import literal, show
from sphinx.util.docutils import SphinxDirective

from benchmarks import targets
from benchmarks._records import RESULTS

HEADER = ("work", "must", "reach", "measured", "", "record")


def as_rst(section):
    """A section: the table of its targets, and where their figures are from."""
    table, quoted = io.StringIO(), {}
    writer = csv.writer(table, lineterminator="\n")
    writer.writerow(HEADER)
    for work, must, reach, figure, verdict, where in targets.lines(section):
        if isinstance(where, dict):
            quoted[where["record"]] = where
            where = f"{where['record']}, {where['device']}, {where['day']}"
        writer.writerow(map(show, (work, must, reach, figure, verdict, where)))
    lines = [section, "-" * len(section), ""]
    lines += [".. csv-table::", "   :header-rows: 1", "   :class: table-sm", ""]
    lines += [f"   {line}" for line in table.getvalue().splitlines()]
    lines.append("")
    for name, where in quoted.items():
        text = f"{where['device']}, {where['day']}, commit {where['commit']}, code {where['code']}"
        lines += [f"* {show(name)}: {show(text)}; {literal(where['command'])}"]
    return "\n".join(lines)


def page():
    """The whole page as text."""
    return "\n\n".join(map(as_rst, targets.SECTIONS))


class BenchmarkTargets(SphinxDirective):
    """All targets."""

    def run(self):
        for path in RESULTS.glob("*.json"):
            self.env.note_dependency(str(path))
        return self.parse_text_to_nodes(page(), allow_section_headings=True)


def setup(app):
    app.add_directive("benchmark-targets", BenchmarkTargets)
    return {"version": "1", "parallel_read_safe": True}
