"""The table of speeds in the README, made from the records of `benchmarks/results/`.

    python -m benchmarks.headlines           # print it
    python -m benchmarks.headlines --write   # and put it into the README

A figure is named by its record and row, so that none is typed by hand, and each says when it was
measured. Whether the code has changed since is on the page of the documentation that shows all.
"""

import argparse
import json
import re
from typing import NamedTuple

from benchmarks._records import RESULTS, ROOT

README = ROOT / "README.md"
BLOCK = re.compile(r"(?<=<!-- figures -->\n).*?(?=<!-- end of figures -->)", re.DOTALL)
LINK = "https://github.com/skts-developers/skts/blob/main/benchmarks/results"


class Headline(NamedTuple):
    """A line of the table: its words, and the row of a record that it quotes."""

    words: str
    record: str
    work: str


#: On one thread of a CPU, beside the fastest of other packages.
BESIDE_PEERS = [
    Headline(
        "DTW, all pairs, 100 x 100 series of 256 points",
        "peers-elastic",
        "all pairs, 100 x 100, length 256",
    ),
    Headline(
        "the same, 10 % window", "peers-elastic", "all pairs, 100 x 100, length 256, 10 % window"
    ),
    Headline(
        "DTW, 1-NN, 200 against 242 series of 427 points",
        "peers-elastic",
        "1-NN, 200 against 242, length 427, fit and predict",
    ),
    Headline(
        "matrix profile, 50,000 points, window 128",
        "peers-profile",
        "random walk, n = 50,000, window 128",
    ),
    Headline("the same, window 1,024", "peers-profile", "random walk, n = 50,000, window 1,024"),
    Headline(
        "search, 1,000,000 points, query 128, 5 % band",
        "peers-search",
        "random walk, 1,000,000 points, query 128, band 6",
    ),
    Headline(
        "the same, no band", "peers-search", "random walk, 1,000,000 points, query 128, no band"
    ),
    Headline("k-Shape, an iteration, 1,000 x 1,024, k = 3", "peers-kshape", "1,000 x 1,024, k = 3"),
    Headline(
        "average (DBA) of 300 series of 128 points, an iteration",
        "peers-averages",
        "DBA, 300 x 128, an iteration",
    ),
    Headline(
        "k-means under DTW, an iteration, 2,000 x 48, k = 10",
        "peers-averages",
        "k-means, 2,000 x 48, k = 10, an iteration",
    ),
    Headline(
        "shapelets, all candidates of GunPoint of length 50",
        "peers-shapelets",
        "GunPoint, length 50",
    ),
]
#: On one GPU.
ON_A_GPU = [
    Headline(
        "DTW, kernel, all pairs, length 511", "gpu-dtw", "kernel, all pairs 875 x 875, length 511"
    ),
    Headline(
        "DTW, 128 queries, 1,024 series of 1,024 points",
        "gpu-dtw",
        "fit and kneighbors, 128 queries, 1,024 series, length 1,024",
    ),
    Headline(
        "DTW, 10 % window, 20,000 queries, 20,000 series of 100 points",
        "gpu-dtw",
        "fit and kneighbors, 20,000 queries, 20,000 series, length 100, 10 % window",
    ),
    Headline(
        "matrix profile, 1,000,000 points, window 128",
        "gpu-join",
        "matrix profile with indices, random walk, 1,000,000 points, window 128",
    ),
    Headline(
        "matrix profile, 2,097,152 points, window 128",
        "gpu-join",
        "matrix profile with indices, random walk, 2,097,152 points, window 128",
    ),
    Headline(
        "search, 1,499,000 points, query 360, no band",
        "gpu-search",
        "fit and kneighbors, noise, 1,499,000 points, query 360, no window",
    ),
    Headline(
        "128 light curves against 1,024, DTW, all rotations",
        "gpu-rotation",
        "128 light curves against 1,024, length 1,024, rDTW",
    ),
    Headline(
        "condensing TwoPatterns, 1,000 series, to a tenth",
        "gpu-rotation",
        "AWARD, TwoPatterns (1,000 x 128), to 100",
    ),
    Headline(
        "shapelets, all candidates of OSULeaf", "gpu-shapelets", "root search, OSULeaf, lengths all"
    ),
    Headline("k-Shape, an iteration, 5,000,000 x 56, k = 8", "gpu-kshape", "5,000,000 x 56, k = 8"),
]
#: Columns that hold the figure of a row.
FIGURES = {"value": None, "seconds": "s", "ms an iteration": "ms", "accuracy": "accuracy"}


def read(name):
    """A record by its name."""
    return json.loads((RESULTS / f"{name}.json").read_text())


def rows_of(record, work):
    """The rows of a work on one thread, or without a number of threads."""
    return [
        row
        for row in record["rows"]
        if work == row.get("work", row.get("set")) and row.get("threads", 1) == 1
    ]


def figure(row):
    """The figure of a row with its unit: three digits."""
    column = next(name for name in FIGURES if row.get(name) is not None)
    value = row[column]
    shown = f"{value:,.0f}" if value >= 100 else f"{float(f'{value:.3g}'):g}"
    return f"{shown} {FIGURES[column] or row['unit']}"


def fastest_peer(rows):
    """Name and ratio of the peer that took the least time, in times of skts."""
    ratios = [
        (row.get("time / skts", row.get("skts is faster by")), row["library"])
        for row in rows
        if row["library"] != "skts"
    ]
    return min(one for one in ratios if one[0] is not None)


def measured(name, record):
    """A link to the record: its day and commit."""
    return f"[{record['date'][:10]}, {record['commit'][:7]}]({LINK}/{name}.json)"


def table():
    """Both tables as Markdown."""
    lines = [
        "| On one thread of a CPU | skts | fastest other package | measured |",
        "|---|---|---|---|",
    ]
    for words, name, work in BESIDE_PEERS:
        record = read(name)
        rows = rows_of(record, work)
        (own,) = (row for row in rows if row["library"] == "skts")
        ratio, library = fastest_peer(rows)
        peer = f"{library}, {ratio:.3g} times as long"
        lines.append(f"| {words} | {figure(own)} | {peer} | {measured(name, record)} |")
    devices = {read(name)["device"] for _, name, _ in ON_A_GPU}
    lines += ["", f"| On one {' or '.join(sorted(devices))} | skts | measured |", "|---|---|---|"]
    for words, name, work in ON_A_GPU:
        record = read(name)
        (row,) = rows_of(record, work)
        lines.append(f"| {words} | {figure(row)} | {measured(name, record)} |")
    return "\n".join([*lines, ""])


def main():
    """Print the tables; write them."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n\n", 1)[0])
    parser.add_argument("--write", action="store_true", help="put them into the README")
    made = table()
    print(made)
    if parser.parse_args().write:
        README.write_text(BLOCK.sub(lambda _: made, README.read_text()))


if __name__ == "__main__":
    main()
