"""Recorded runs: what they say of themselves, and that pages quote them."""

from __future__ import annotations

import importlib
import importlib.util
import itertools
import json
import re
import shutil
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
RECORDS = sorted((ROOT / "benchmarks" / "results").glob("*.json"))

if not RECORDS:
    pytest.skip("the benchmarks are not here", allow_module_level=True)


@pytest.fixture
def module(monkeypatch):
    """Return what imports a module of the benchmarks."""
    monkeypatch.syspath_prepend(str(ROOT))
    return importlib.import_module


@pytest.fixture
def page(module, monkeypatch):
    for name in ("docutils", "sphinx"):
        pytest.importorskip(name)
    monkeypatch.syspath_prepend(str(ROOT / "docs" / "_ext"))
    return module("benchmark_records")


@pytest.mark.parametrize("path", RECORDS, ids=lambda path: path.stem)
def test_records_say_where_when_and_of_what(path):
    record = json.loads(path.read_text())
    for field in ("name", "device", "machine", "versions", "commit", "date", "command", "rows"):
        assert record[field], field
    assert re.fullmatch(r"[0-9a-f]{7,}(\+changes)?", record["commit"])
    assert re.match(r"\d{4}-\d\d-\d\dT", record["date"])


def test_the_readme_quotes_records(module):
    headlines = module("benchmarks.headlines")
    (found,) = headlines.BLOCK.findall(headlines.README.read_text())
    assert found == headlines.table(), "python -m benchmarks.headlines --write"


def test_figures_are_those_of_their_rows(module):
    headlines = module("benchmarks.headlines")
    assert headlines.figure({"work": "a", "value": 7.0968, "unit": "Tcells/s"}) == "7.1 Tcells/s"
    assert headlines.figure({"seconds": 0.016049, "threads": 1}) == "0.016 s"
    assert headlines.figure({"ms an iteration": 1234.5}) == "1,234 ms"
    rows = [
        {"work": "a", "threads": 1, "library": "skts", "seconds": 2.0, "time / skts": 1.0},
        {"work": "a", "threads": 1, "library": "slow", "seconds": 8.0, "time / skts": 4.0},
        {"work": "a", "threads": 1, "library": "quick", "seconds": 3.0, "time / skts": 1.5},
        {"work": "a", "threads": 2, "library": "quick", "seconds": 1.0, "time / skts": 0.5},
        {"work": "a", "threads": 1, "library": "failed", "seconds": None, "time / skts": None},
    ]
    assert headlines.rows_of({"rows": rows}, "a") == [*rows[:3], rows[4]]
    assert headlines.fastest_peer(headlines.rows_of({"rows": rows}, "a")) == (1.5, "quick")


def test_pages_quote_no_seconds_of_their_own():
    """The README has figures of speed in its tables only."""
    text = (ROOT / "README.md").read_text()
    start, end = text.index("## Speed"), text.index("## Documentation")
    prose = re.sub(r"<!-- figures -->.*?<!-- end of figures -->", "", text[start:end], flags=re.S)
    assert not re.findall(r"\d", prose)


@pytest.mark.parametrize(
    "path",
    sorted((ROOT / "docs" / "user_guide").glob("**/*.[rc]s[tv]")),
    ids=lambda path: path.name,
)
def test_figures_of_the_guide_are_of_records(module, path):
    """Where a page points to a recorded run, its figures are looked up, and are there."""
    headlines = module("benchmarks.headlines")
    text = path.read_text(encoding="utf-8")
    for name, work in re.findall(r":recorded:`([^|`]+)\|([^`]+)`", text):
        (row,) = headlines.rows_of(headlines.read(name.strip()), work.strip())
        assert headlines.figure(row)
    for paragraph in re.split(r"\n\s*\n", text):
        for name in re.findall(r":recorded:`([^|`]+)\|", paragraph):
            for card in re.findall(r"\b[ABH]\d00\b", paragraph):
                assert card in str(headlines.read(name.strip())), f"{name} is of another device"
    for words in re.findall(r"[^.;]*recorded run <[^.;]*", text):
        assert not re.search(r"\d (seconds|s|times)\b", words), words


def test_a_record_knows_the_code_that_it_measured(module, monkeypatch, tmp_path):
    """Its family and engine, or all families, and the package; a change of any needs a look."""
    records = module("benchmarks._records")
    shutil.copytree(
        ROOT / "skts" / "engines",
        tmp_path / "skts" / "engines",
        ignore=shutil.ignore_patterns("__pycache__"),
    )
    monkeypatch.setattr(records, "ROOT", tmp_path)
    found = records.sources("benchmarks.profile.gpu_join", "cupy")
    assert set(found) == {"skts/engines/cupy/profile", "skts/engines/families/profile", "skts"}
    everything = records.sources("benchmarks.scaling", "numba")
    families = list((tmp_path / "skts/engines/families").glob("[!_]*/"))
    assert len(everything) == 2 * len(families) + 1
    record = {"sources": found}
    assert records.unchanged(record)
    assert not records.unchanged({})
    # without the commit a folder alone does not say what of the rest was measured
    assert not records.unchanged({"sources": dict(list(found.items())[:2])})
    (tmp_path / "skts/engines/families/profile/join.py").write_text("# other")
    assert not records.unchanged(record)
    assert not records.unchanged({"sources": everything})


def test_records_of_new_runs_hold_the_digests(module, monkeypatch):
    records = module("benchmarks._records")
    monkeypatch.setattr(records, "_script", lambda: "benchmarks.peers.elastic")
    made = records.record("a", device="d", versions={"skts": {"numpy": "2"}}, rows=[{"work": "b"}])
    folders = {"skts/engines/numba/elastic", "skts/engines/families/elastic"}
    assert set(made["sources"]) == folders | {"skts"}
    assert records.unchanged(made)
    made = records.record("a", device="d", versions={"cupy-cuda13x": "14"}, rows=[{"work": "b"}])
    assert "skts/engines/cupy/elastic" in made["sources"]


def test_the_page_tells_records_that_are_older_than_the_code(page, module, monkeypatch):
    records = module("benchmarks._records")
    monkeypatch.setattr(records, "_script", lambda: "benchmarks.peers.elastic")
    made = records.record("a", device="d", versions={"numpy": "2"}, rows=[{"work": "b"}])
    assert ":Code: as it is now" in page.as_rst(made)
    folder = next(iter(made["sources"]))
    changed = made | {"sources": made["sources"] | {folder: "0" * 16}}
    assert ":Code: has changed since" in page.as_rst(changed)


@pytest.mark.parametrize(
    ("paths", "text"),
    [
        ((), "as it is now"),
        (["skts/base.py"], "has changed since outside the engines: skts/base.py"),
        (
            ["skts/base.py", "skts/engines/numba/parts.py", "skts/base.py"],
            "has changed since: skts/engines/numba/parts.py, skts/base.py",
        ),
        (["commit 0a, which is not known"], "has changed since: commit 0a, which is not known"),
        (
            [f"skts/{name}.py" for name in "fedcba"],
            "has changed since outside the engines: "
            "skts/a.py, skts/b.py, skts/c.py, skts/d.py and 2 more",
        ),
    ],
)
def test_what_has_changed_since_is_told(module, monkeypatch, paths, text):
    records = module("benchmarks._records")
    monkeypatch.setattr(records, "changes", lambda record: iter(paths))
    assert records.state_of_code({}) == text
    assert records.unchanged({}) is not bool(paths)


def test_times_are_drawn_against_sizes(page):
    def row(library, size, seconds, threads=1):
        own = {"work": f"{size}", "threads": threads, "library": library, "seconds": seconds}
        return own | {"curve": "joins, by points", "size": size, "time / skts": 1.0}

    rows = [row("skts", 1000, 0.2), row("skts", 100, 0.1), row("other", 100, 3.0)]
    rows[0]["ceiling"] = 0.01
    rows += [row("skts", 100, 9.0, threads=2), {"work": "a", "library": "skts", "seconds": 1.0}]
    found = page.curves([{"rows": rows}])
    lines = {"skts": [(100, 0.1), (1000, 0.2)], "other": [(100, 3.0)], page.CEILING: [(1000, 0.01)]}
    assert found == {"joins, by points": lines}
    drawing = page.as_drawing("joins, by points", found["joins, by points"])
    assert 'aria-label="Time against size: joins, by points"' in drawing
    assert drawing.count("<svg") == drawing.count("</svg>") == 1
    assert drawing.count(page.CEILING) == 1


def test_a_work_that_got_slower_or_different_is_a_failure(module):
    two_trees = module("benchmarks.two_trees")
    rows = [
        {"work": "a", "before": 1.0, "now": 1.09, "same": True},
        {"work": "b", "before": 1.0, "now": 1.2, "same": True},
        {"work": "c", "before": 2.0, "now": 1.0, "same": False},
    ]
    assert list(two_trees.worse(rows, 1.1)) == [
        "b takes 1.20 times as long as before",
        "c has another answer than before",
    ]
    assert not list(two_trees.worse(rows[:1], 1.1))


def test_works_of_one_version_alone_are_not_compared(module):
    def line(seconds, answer="x"):
        return {"seconds": seconds, "answer": answer}

    found = {
        "a": {"before": [line(1.0), line(3.0)], "now": [line(1.0)]},
        "b": {"now": [line(1.0)]},
        "c": {"before": [line(2.0)], "now": [line(1.0, "y")]},
    }
    assert list(module("benchmarks.two_trees").compared(found)) == [
        {"work": "a", "before": 2.0, "now": 1.0, "same": True},
        {"work": "c", "before": 2.0, "now": 1.0, "same": False},
    ]


def test_every_target_has_a_figure_of_a_record_or_a_reason(page, module):
    """The page of figures to reach: each line is there, and says where its figure is from."""
    targets, shown = module("benchmarks.targets"), module("benchmark_targets").page()
    device_of = module("benchmarks._records").device_of
    lines = [
        (target, section) for section in targets.SECTIONS for target in targets.SECTIONS[section]
    ]
    assert len(lines) > 90
    for target, _ in lines:
        assert page.show(target.work) in shown
        if target.figure is None:
            assert target.why and page.show(target.why) in shown
        else:
            found = targets.record(target.source.name)
            assert page.show(targets.shown(target.figure, 3 if target.unit else 4)) in shown
            assert found["command"] in shown
            assert f"{page.show(device_of(found))}, {found['date'][:10]}, commit" in shown


def test_figures_of_targets_are_those_of_the_records(module):
    """Some of each kind, read by hand."""
    targets = module("benchmarks.targets")

    def read(name):
        return json.loads((ROOT / "benchmarks" / "results" / f"{name}.json").read_text())["rows"]

    def figure(words):
        (found,) = (t for one in targets.SECTIONS.values() for t in one if t.work == words)
        return found.figure

    kernels = [row["value"] for row in read("gpu-dtw") if row["work"].startswith("kernel, DK")]
    assert figure("the same, dog-keeper distance") == min(kernels)
    ratios = {}
    for row in read("peers-kshape"):
        if row["threads"] == 1 and row["library"] != "skts":
            ratios.setdefault(row["work"], []).append(row["time / skts"])
    words = "an iteration, 1,000 x 1,024, k = 3, and 5,000 x 128, k = 5, CPU, one thread"
    assert figure(words) == min(map(min, ratios.values()))
    cold = [row["cold"] for row in read("cold-start-numba")]
    assert figure("first call of any estimator, empty cache, CPU") == max(cold)


def test_what_a_figure_reaches(module):
    targets = module("benchmarks.targets")

    def verdict(unit, value, must, reach):
        found = targets.Source("a", lambda: [value])
        return targets.Target("a work", unit, must, reach, found).verdict

    assert verdict("s", 1.0, 2.0, 1.0) == "reach"
    assert verdict("s", 1.5, 2.0, 1.0) == "must"
    assert verdict("s", 2.5, 2.0, 1.0) == "missed"
    assert verdict("Tcells/s", 2.5, 2.0, 3.0) == "must"
    assert verdict("Tcells/s", 1.5, 2.0, None) == "missed"
    assert verdict("s", 1.0, None, None) == verdict("s", 1.0, "all", None) == ""
    lost = targets.Target("a work", "s", 1.0, 1.0, targets.of("no such record", "a work"))
    assert lost.figure is None and lost.why == "no record yet: no such record"


def test_rows_of_a_paper_are_a_table_for_each_part(page):
    record = {"name": "paper", "device": "d", "versions": {"numpy": "2"}, "commit": "c"}
    record |= {"date": "2026-01-01T", "command": "python -m one", "said": "twice as fast"}
    rows = [{"part": "table 1", "set": "a", "s": 1.0}, {"part": "figure 2", "threads": 4}]
    text = page.as_rst(record | {"rows": rows})
    assert text.count(".. csv-table::") == 2
    assert "**table 1**" in text and "\n   set,s\n   a,1\n" in text
    assert "\n   threads\n   4" in text
    assert ":Command: ``python -m one``" in text and ":The paper: twice as fast" in text


def test_times_of_peers_on_a_gpu_are_drawn_against_sizes(page):
    def row(work, peer, skts, other):
        return {"work": work, "peer": peer, "of skts": skts, "of the peer": other}

    profile = "matrix profile with indices, random walk, {} points, window 128"
    kernel = "kernel, one query against {} series, length {}"
    rows = [row(profile.format("1,000"), "SCAMP", 0.1, 0.4)]
    rows += [row(profile.format("2,000"), "SCAMP", 0.2, 0.9)]
    rows += [row(kernel.format("1,000", "100"), "cuDTW++", 5.0, 4.0)]
    rows += [row(kernel.format("1,000", "1,000"), "cuDTW++", 5.0, 2.0), row("a", "b", 1, 2)]
    profiles, kernels = page.gpu_curves({"rows": rows}, kernel_rate=1e6).values()
    assert profiles["SCAMP"] == [(1000, 0.4), (2000, 0.9)]
    assert profiles[page.KERNEL] == [(1000, 0.5), (2000, 2.0)]
    assert kernels["skts"] == [(100, pytest.approx(2e-6)), (1000, pytest.approx(2e-4))]
    assert kernels["cuDTW++"] == [(100, pytest.approx(2.5e-6)), (1000, pytest.approx(5e-4))]


def test_benchmarks_of_the_whole_life_import_nothing_of_a_version(module):
    """They run at commits that lack what they call; each has sizes, and asv knows them."""
    source = (ROOT / "benchmarks" / "life.py").read_text()
    top = source[source.index("import contextlib") : source.index("ENGINES")]
    assert "skts" not in top and "benchmarks" not in top
    life = module("benchmarks.life")
    known = json.loads((ROOT / "benchmarks" / "history" / "benchmarks.json").read_text())
    for suite in life.SUITES:
        with pytest.raises(NotImplementedError):
            suite().setup("no such engine", suite.params[1][-1])
        for name in life.names_of(suite):
            about = known[f"life.{suite.__name__}.{name}"]
            assert about["params"] == [[repr(value) for value in each] for each in suite.params]


def test_each_paper_is_one_command(module):
    """Its scripts have a record for each engine, and parts that are done at once are theirs."""
    papers = module("benchmarks.papers")
    assert len(papers.PAPERS) == 5
    outputs = [
        found for engine in ("numba", "cupy") for found in papers.scripts(papers.PAPERS, engine)
    ]
    assert len({output for _, output in outputs}) == len(outputs) > 15
    for scripts in papers.PAPERS.values():
        for name, parts in scripts.items():
            known = module(name).PARTS
            for part in parts:
                words = part.arguments.split()
                named = words[words.index("--parts") + 1 :] if "--parts" in words else []
                named = list(itertools.takewhile(lambda word: not word.startswith("--"), named))
                assert set(named) <= set(known), part


def test_parts_of_a_paper_become_one_record(module, monkeypatch):
    papers, records = module("benchmarks.papers"), module("benchmarks._records")
    monkeypatch.setattr(records, "_script", lambda: "benchmarks.papers")
    facts = {"versions": {"numpy": "2"}, "device": "1 of 2 cores", "commit": "c", "command": "a"}
    parts = [facts | {"rows": [{"part": "table 1"}]}, facts | {"rows": [{"part": "figure 2"}]}]
    made = papers.merged(parts, [0, 1])
    assert [row["part"] for row in made["rows"]] == ["table 1", "figure 2"]
    assert made["commit"] == "c" and "1 of 2" not in made["device"]
