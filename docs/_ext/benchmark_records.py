"""Recorded benchmark runs on pages.

The directive ``benchmark-records`` makes a section and a table of each, but for those of attacks
(``attacks-*.json``), each of which stands where ``benchmark-record`` names it; the role
``recorded`` quotes one figure: ``:recorded:`gpu-join | work of the row```.

A record is a JSON file of ``benchmarks/results/``::

    {"name": "...", "device": "...", "versions": {"numpy": "..."}, "commit": "...",
     "date": "...", "rows": [{"column": value, ...}, ...]}

Figures in the documentation come from these files only.
"""

import csv
import html
import io
import json
import math
import re

from docutils import nodes
from matplotlib.figure import Figure
from sphinx.errors import ExtensionError
from sphinx.util.docutils import SphinxDirective

from benchmarks._records import unchanged
from benchmarks.headlines import figure, read, rows_of

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
        return ", ".join(f"{show(key)} {show(item)}" for key, item in value.items())
    if isinstance(value, list):
        return ", ".join(map(show, value))
    return MARKUP.sub(r"\\\g<0>", str(value))


#: How the names of records begin that other pages show.
ELSEWHERE = "attacks-"
#: Rows above which a table is folded away.
MANY = 12
#: Groups of records by the beginning of their file's name, in the order of the page.
GROUPS = {
    "peers-gpu": (
        "Beside other programs on a GPU",
        "The same work in the same run, on the same GPU. Results are compared before times; rows "
        "of programs whose result differs say so. *settings* says in which way the program was "
        "fastest.",
    ),
    "peers": (
        "Beside other packages",
        "The same work in the same run, on a CPU. Results are compared before times; rows of "
        "packages whose result differs say so. Seconds are medians of several rounds, taken in "
        "turns on the same cores, while the machine also did other work.",
    ),
    "gpu": (
        "On a GPU",
        "Every result is checked against the CPU. *must* and *reach* are the targets that were set "
        "before.",
    ),
    "cold-start": (
        "First calls in fresh processes",
        "CPU seconds of a process beyond importing scikit-learn, start to first answer: *cold* "
        "with an empty cache of kernels, *warm* with a full one.",
    ),
    "scaling": (
        "On several GPUs, processes and machines",
        "The developer guide says what was measured how.",
    ),
    "papers": (
        "Figures and tables of the papers, made again",
        "Times of the papers were measured on the hardware of their year.",
    ),
    "": ("Other runs", "Records of no other group."),
}


def as_rst(record, *, heading=True):
    """One section: what was run, where and when, and the table of its rows."""
    columns = list(dict.fromkeys(key for row in record["rows"] for key in row))
    table = io.StringIO()
    rows = [[show(row.get(column)) for column in columns] for row in record["rows"]]
    csv.writer(table, lineterminator="\n").writerows([map(show, columns), *rows])
    name = record["name"][0].upper() + record["name"][1:]
    lines = [name, "~" * len(name), ""] if heading else []
    lines += [
        f":Device: {show(record['device'])}",
        f":Date: {str(record['date'])[:10]}",
        f":Commit: {record['commit']}",
        f":Code: {'as it is now' if unchanged(record) else 'has changed since'}",
        f":Versions: {show(record['versions'])}",
    ]
    if "runs" in record:
        runs = [{key: str(value) for key, value in run.items()} for run in record["runs"]]
        lines += [f":Run: {show({k: v for k, v in run.items() if v != 'None'})}" for run in runs]
    lines.append("")
    many = len(record["rows"]) > MANY
    if many:
        count = f"{len(record['rows'])} rows"
        lines += [".. raw:: html", "", f"   <details><summary>{count}</summary>", ""]
    if record["rows"]:
        lines += [".. csv-table::", "   :header-rows: 1", "   :class: table-sm", ""]
        lines += [f"   {line}" for line in table.getvalue().splitlines()]
    if many:
        lines += ["", ".. raw:: html", "", "   </details>"]
    return "\n".join(lines)


def strongest(records):
    """For each work on one thread: the fastest of the peers, and how many times as long it took."""
    for record in records:
        best = {}
        for row in record["rows"]:
            ratio = row.get("time / skts", row.get("skts is faster by"))
            if row["threads"] != 1 or row["library"] == "skts" or ratio is None:
                continue
            if row.get("curve"):
                continue  # it has a drawing
            work = row.get("work", row.get("set"))
            if work not in best or ratio < best[work][0]:
                best[work] = ratio, row["library"]
        title = record["name"].partition(" beside")[0]
        for work, (ratio, library) in best.items():
            yield title, work, ratio, library


def as_chart(records):
    """Bars on a scale of powers of ten: the time of the fastest peer, in times of skts."""
    groups = {}
    for title, work, ratio, library in strongest(records):
        groups.setdefault(title, []).append((work, ratio, library))
    top = max((ratio for rows in groups.values() for _, ratio, _ in rows), default=1)
    lines = [
        '<div class="bars" role="img" aria-label="Times of the fastest peer in times of skts">'
    ]
    for title, rows in groups.items():
        lines.append(f"<strong>{html.escape(title)}</strong>")
        for work, ratio, library in rows:
            # a tenth of a percent is seen where a peer is faster
            share = max(0.1, 100 * math.log10(max(1.0, ratio)) / math.log10(max(10, top)))
            lines.append(
                f"<span>{html.escape(work)}</span>"
                f'<span style="--share: {share:.1f}">{ratio:.1f} x, {html.escape(library)}</span>'
            )
    return "\n".join([*lines, "</div>"])


#: The line of the least times that the arithmetic of one core allows.
CEILING = "arithmetic of one core"


def curves(records):
    """Lines of time against size: {curve: {library: [(size, seconds), ...]}}, on one thread.

    What arithmetic leaves at least is the line `CEILING`.
    """
    found = {}
    for record in records:
        for row in record["rows"]:
            if row.get("curve") and row.get("seconds") is not None and row.get("threads", 1) == 1:
                lines = found.setdefault(row["curve"], {})
                lines.setdefault(row["library"], []).append((row["size"], row["seconds"]))
                if row.get("ceiling"):
                    lines.setdefault(CEILING, []).append((row["size"], row["ceiling"]))
    return {
        curve: {library: sorted(points) for library, points in lines.items()}
        for curve, lines in found.items()
    }


def as_drawing(curve, lines):
    """One drawing as SVG: both axes in powers of ten, a line for each library."""
    figure = Figure(figsize=(5.6, 3.6), layout="constrained")
    axes = figure.add_subplot()
    for library, points in sorted(
        lines.items(), key=lambda item: (item[0] == CEILING, item[0] != "skts")
    ):
        xy, width = tuple(zip(*points, strict=True)), 2.5 if library == "skts" else 1.2
        if library == CEILING:
            axes.loglog(*xy, color="gray", ls="--", lw=1, label=library)
        else:
            axes.loglog(*xy, marker="o", markersize=3, lw=width, label=library)
    work, _, size = curve.rpartition(", by ")
    axes.set(title=work, xlabel=f"{size} (powers of ten)", ylabel="seconds (powers of ten)")
    axes.grid(which="major", alpha=0.3)
    axes.legend(fontsize="small")
    text = io.StringIO()
    figure.savefig(text, format="svg", metadata={"Date": None})
    drawing = text.getvalue()
    label = html.escape(f"Time against size: {curve}")
    return f'<div role="img" aria-label="{label}">{drawing[drawing.index("<svg") :]}</div>'


def page(paths):
    """The whole page as text: groups in order, in each the newest record first."""
    records = {path.stem: read_record(path) for path in paths}
    sections = []
    for group, (title, words) in GROUPS.items():
        names = [stem for stem in records if stem.startswith(group)]
        found = [records.pop(stem) for stem in names]
        if not found:
            continue
        found.sort(key=lambda record: str(record["date"]), reverse=True)
        sections.append(f"{title}\n{'-' * len(title)}\n\n{words}")
        if group == "peers":
            sections.append(
                "The fastest of the packages on one thread, and how many times as long as skts it "
                "took for the same work. Where the number is below 1 that package was faster. In "
                "the drawings the broken line is the least time that one core needs for operations "
                "that no method saves, at the rate of a matrix product on the same machine."
            )
            chart = as_chart(sorted(found, key=lambda record: record["name"]))
            drawings = [as_drawing(*item) for item in sorted(curves(found).items())]
            for part in (chart, *drawings):
                lines = "\n".join(f"   {line}" for line in part.splitlines())
                sections.append(f".. raw:: html\n\n{lines}")
        sections += map(as_rst, found)
    return "\n\n".join(sections) or "No run has been recorded yet."


class BenchmarkRecords(SphinxDirective):
    """All records."""

    def run(self):
        paths = sorted(self.config.benchmark_records.glob("*.json"))
        paths = [path for path in paths if not path.name.startswith(ELSEWHERE)]
        for path in paths:
            self.env.note_dependency(str(path))
        return self.parse_text_to_nodes(page(paths), allow_section_headings=True)


class BenchmarkRecord(SphinxDirective):
    """One record, without a heading of its own."""

    required_arguments = 1

    def run(self):
        path = self.config.benchmark_records / f"{self.arguments[0]}.json"
        self.env.note_dependency(str(path))
        text = as_rst(read_record(path), heading=False)
        return self.parse_text_to_nodes(text)


def recorded(role, rawtext, text, lineno, inliner, options=None, content=()):
    """The figure of a row of a record, with its unit."""
    name, _, work = (part.strip() for part in text.partition("|"))
    try:
        (row,) = rows_of(read(name), work)
    except (OSError, ValueError) as error:
        message = inliner.reporter.error(f"no figure {text!r}: {error}", line=lineno)
        return [inliner.problematic(rawtext, rawtext, message)], [message]
    return [nodes.inline(rawtext, figure(row), classes=["recorded"])], []


def setup(app):
    app.add_config_value("benchmark_records", None, "env")
    app.add_role("recorded", recorded)
    app.add_directive("benchmark-records", BenchmarkRecords)
    app.add_directive("benchmark-record", BenchmarkRecord)
    return {"version": "2", "parallel_read_safe": True}
