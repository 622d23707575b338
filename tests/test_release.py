"""Files of a release agree with pyproject.toml: addresses, requirements, interpreters."""

from __future__ import annotations

import re
import tomllib
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
PYPROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text())
PROJECT = PYPROJECT["project"]


def read_yaml(path):
    yaml = pytest.importorskip("yaml")
    return yaml.safe_load((ROOT / path).read_text())


def test_the_citation_names_the_newest_version_of_the_changelog():
    newest = re.search(
        r"^## \[(\d+\.\d+\.\d+)\]", (ROOT / "CHANGELOG.md").read_text(), re.MULTILINE
    )
    assert f"\nversion: {newest[1]}\n" in (ROOT / "CITATION.cff").read_text()


def test_links_of_the_readme_work_outside_of_the_repository():
    """They start with an address of pyproject.toml, and lead to files or pages that exist."""
    urls = PROJECT["urls"]
    text = (ROOT / "README.md").read_text()
    links = re.findall(r"\]\(([^)]+)\)", text)
    assert links
    for link in links:
        if link.startswith(urls["Documentation"]):
            path = link.removeprefix(urls["Documentation"]).partition("#")[0].strip("/")
            page = path.removeprefix("en/latest").strip("/").removesuffix(".html") or "index"
            assert (ROOT / "docs" / f"{page}.rst").exists() or page.startswith("auto_examples"), (
                link
            )
        else:
            kind, _, path = link.removeprefix(urls["Source"] + "/").partition("/main/")
            assert link.startswith(urls["Source"]) and kind in {"blob", "tree"}, link
            assert (ROOT / path).exists(), link


@pytest.mark.parametrize(
    "path",
    ["CITATION.cff", "SECURITY.md", "conda/recipe.yaml", ".github/ISSUE_TEMPLATE/config.yml"],
)
def test_addresses_are_those_of_the_project(path):
    addresses = re.findall(r"https://[^\s)\"]+", (ROOT / path).read_text())
    known = PROJECT["urls"]["Documentation"], PROJECT["urls"]["Source"]
    assert addresses and all(address.startswith(known) for address in addresses)


def test_the_conda_recipe_asks_for_the_same():
    requirements = read_yaml("conda/recipe.yaml")["requirements"]
    run = {one.replace(" ", "") for one in requirements["run"] if not one.startswith("python ")}
    assert run == set(PROJECT["dependencies"])
    host = {one.replace(" ", "") for one in requirements["host"]}
    assert set(PYPROJECT["build-system"]["requires"]) <= host
    (oldest,) = read_yaml("conda/variants.yaml")["python_min"]
    assert PROJECT["requires-python"] == f">={oldest}"
    optional = [one for extra in PROJECT["optional-dependencies"].values() for one in extra]
    for one in requirements["run_constraints"]:
        name, bound = one.replace("-base", "").split(" ")
        assert any(r.startswith(name) and r.endswith(bound) for r in optional), one


def test_workflows_try_every_python_that_is_named():
    named = {c.rpartition(" ")[2] for c in PROJECT["classifiers"] if re.search(r":: 3\.\d+$", c)}
    jobs = read_yaml(".github/workflows/tests.yml")["jobs"]
    assert set(jobs["tests"]["strategy"]["matrix"]["python"]) == named
    makefile = (ROOT / "Makefile").read_text()
    for job in jobs.values():
        for step in job["steps"]:
            if "make" in (command := step.get("run", "")):
                assert re.search(rf"^{command.split()[-1]}:", makefile, re.MULTILINE), command


def test_only_the_publishing_job_may_ask_for_an_identity():
    jobs = read_yaml(".github/workflows/release.yml")["jobs"]
    assert [name for name, job in jobs.items() if "id-token" in job.get("permissions", {})] == [
        "publish"
    ]
    assert jobs["publish"]["needs"] == "build" and "release" in jobs["publish"]["if"]
    (extra,) = read_yaml(".readthedocs.yaml")["python"]["install"][0]["extra_requirements"]
    assert extra in PROJECT["optional-dependencies"]
