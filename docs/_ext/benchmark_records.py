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

from benchmarks._records import device_of, state_of_code
from benchmarks.headlines import figure, read, rows_of

FIELDS = ("name", "device", "versions", "commit", "date", "command", "rows")


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


def literal(words):
    """Words as inline code."""
    return f"``{words.replace('``', '` `')}``"


def as_table(rows):
    """Rows as a table: the columns that any of them has."""
    columns = list(dict.fromkeys(key for row in rows for key in row))
    table = io.StringIO()
    cells = [[show(row.get(column)) for column in columns] for row in rows]
    csv.writer(table, lineterminator="\n").writerows([map(show, columns), *cells])
    lines = [".. csv-table::", "   :header-rows: 1", "   :class: table-sm", ""]
    return lines + [f"   {line}" for line in table.getvalue().splitlines()]


def parts_of(rows):
    """Tables of a record: one for each `part` of a paper, with its name; else one of all rows."""
    named = {}
    for row in rows:
        rest = {key: value for key, value in row.items() if key != "part"}
        named.setdefault(row.get("part", ""), []).append(rest)
    return named


def as_rst(record, *, heading=True):
    """One section: what was run, where and when, and the tables of its rows."""
    name = record["name"][0].upper() + record["name"][1:]
    lines = [name, "~" * len(name), ""] if heading else []
    lines += [
        f":Device: {show(device_of(record))}",
        f":Date: {str(record['date'])[:10]}",
        f":Commit: {record['commit']}",
        f":Code: {show(state_of_code(record))}",
        f":Command: {literal(record['command'])}",
        f":Versions: {show(record['versions'])}",
    ]
    for field, title in (("said", "The paper"), ("note", "Note")):
        if record.get(field):
            lines.append(f":{title}: {show(record[field])}")
    if "runs" in record:
        runs = [{key: str(value) for key, value in run.items()} for run in record["runs"]]
        lines += [f":Run: {show({k: v for k, v in run.items() if v != 'None'})}" for run in runs]
    lines.append("")
    many = len(record["rows"]) > MANY
    if many:
        count = f"{len(record['rows'])} rows"
        lines += [".. raw:: html", "", f"   <details><summary>{count}</summary>", ""]
    for part, rows in parts_of(record["rows"]).items():
        lines += ["", f"**{show(part)}**", ""] if part else []
        lines += as_table(rows)
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


#: Works of `peers-gpu` that are done in several sizes.
ON_A_GPU = re.compile(
    r"(matrix profile with indices, .*), ([\d,]+) points, window (128)"
    r"|(kernel), one query against ([\d,]+) series, length ([\d,]+)"
)
#: The line of what the kernel alone would take, at its rate in `gpu-join`.
KERNEL = "kernel of skts alone"


def gpu_curves(record, kernel_rate=None):
    """Lines of time against size of the works of `peers-gpu`, as those of `curves`.

    Parameters
    ----------
    record : dict
    kernel_rate : float or None
        Pairs of windows a second of the kernel of a matrix profile, for the line `KERNEL`.
    """
    found = {}
    for row in record["rows"]:
        match = ON_A_GPU.fullmatch(row["work"])
        if match is None or row.get("of the peer") is None:
            continue
        if match[1]:
            size = int(match[2].replace(",", ""))
            curve, times = f"{match[1]}, window {match[3]}, on a GPU, by points", [1.0, 1.0]
            seconds = row["of skts"], row["of the peer"]
        else:
            number, size = (int(match[k].replace(",", "")) for k in (5, 6))
            curve = "DTW in float32, one query against many series, on a GPU, by length"
            times = [number * size**2 / 1e12] * 2
            seconds = 1 / row["of skts"], 1 / row["of the peer"]
        lines = found.setdefault(curve, {})
        for name, each, factor in zip(("skts", row["peer"]), seconds, times, strict=True):
            lines.setdefault(name, {})[size] = each * factor
        if match[1] and kernel_rate:
            lines.setdefault(KERNEL, {})[size] = size**2 / 2 / kernel_rate
    return {
        curve: {name: sorted(points.items()) for name, points in lines.items()}
        for curve, lines in found.items()
        if all(len(points) > 1 for points in lines.values())
    }


def as_drawing(curve, lines):
    """One drawing as SVG: both axes in powers of ten, a line for each library."""
    figure = Figure(figsize=(5.6, 3.6), layout="constrained")
    axes = figure.add_subplot()
    for library, points in sorted(
        lines.items(), key=lambda item: (item[0] in (CEILING, KERNEL), item[0] != "skts")
    ):
        xy, width = tuple(zip(*points, strict=True)), 2.5 if library == "skts" else 1.2
        if library in (CEILING, KERNEL):
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


def as_raw(part):
    """HTML in reStructuredText."""
    return ".. raw:: html\n\n" + "\n".join(f"   {line}" for line in part.splitlines())


def _kernel_rate(record):
    """Pairs of windows a second of the float32 kernel of a matrix profile; None if not known."""
    for row in record["rows"] if record else ():
        if row["work"].startswith("kernel, float32") and "of 128 points" in row["work"]:
            return 1e12 * row["value"]
    return None


def as_caption(record):
    """Where and when what is drawn was measured, and by which command."""
    where = f"{device_of(record)}, {str(record['date'])[:10]}, commit {record['commit']}"
    return f"{show(where)}: {literal(record['command'])}"


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
        if group == "peers-gpu":
            rate = _kernel_rate(records.get("gpu-join"))
            sections.append(
                "In the drawings the broken line is what the kernel of skts alone would take, at "
                "the rate at which it was recorded."
            )
            for curve in gpu_curves(found[0], rate).items():
                sections += [as_raw(as_drawing(*curve)), as_caption(found[0])]
        if group == "peers":
            sections.append(
                "The fastest of the packages on one thread, and how many times as long as skts it "
                "took for the same work. Where the number is below 1 that package was faster. In "
                "the drawings the broken line is the least time that one core needs for operations "
                "that no method saves, at the rate of a matrix product on the same machine."
            )
            chart = as_chart(sorted(found, key=lambda record: record["name"]))
            sections.append(as_raw(chart))
            for record in found:
                for curve in sorted(curves([record]).items()):
                    sections += [as_raw(as_drawing(*curve)), as_caption(record)]
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
