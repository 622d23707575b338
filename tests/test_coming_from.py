"""The pages for users of other packages: programs print the same, and names exist."""

from __future__ import annotations

import csv
import importlib
import re
import runpy
from fnmatch import fnmatchcase
from pathlib import Path

import pytest

FOLDER = Path(__file__).parents[1] / "docs" / "user_guide" / "coming_from"
PEERS = sorted(path.stem for path in FOLDER.glob("*.txt"))


def test_every_pair_is_complete():
    assert PEERS == ["aeon", "pyts", "sktime", "stumpy", "tslearn", "ucr", "wildboar"]
    programs = {path.name for path in FOLDER.glob("*.py")}
    assert programs == {f"{peer}_{side}.py" for peer in PEERS for side in ("ours", "theirs")}


@pytest.mark.parametrize("peer", PEERS)
def test_the_same_output(peer, capsys):
    runpy.run_path(str(FOLDER / f"{peer}_ours.py"))
    # as `python PEER_theirs.py > PEER.txt` wrote it, in the environment of the peer
    assert capsys.readouterr().out == (FOLDER / f"{peer}.txt").read_text()


# --- the maps of functions ------------------------------------------------------------------------

MAPS = sorted(path.stem for path in FOLDER.glob("maps/*.csv"))
ROLES = re.compile(r"(?::py:obj:|:class:|:func:|:meth:)?`~?(skts\.[\w.]+)`")


def rows(peer):
    """Names of the peer, with * for any end, and the words of skts beside them."""
    with (FOLDER / "maps" / f"{peer}.csv").open(newline="", encoding="utf-8") as file:
        head, *lines = csv.reader(file)
    assert head == [peer, "skts"]
    return [(re.findall(r"``([^`]+)``", theirs), ours) for theirs, ours in lines]


@pytest.mark.parametrize("peer", MAPS)
def test_the_map_holds_every_name_of_the_peer(peer):
    """maps/PEER.txt lists them, as maps/names.py printed it in the environment of the peer."""
    patterns = [pattern for theirs, _ in rows(peer) for pattern in theirs]
    assert len(set(patterns)) == len(patterns)
    names = (FOLDER / "maps" / f"{peer}.txt").read_text().split()
    assert not [n for n in names if not any(fnmatchcase(n, p) for p in patterns)]
    assert not [p for p in patterns if not any(fnmatchcase(n, p) for n in names)]


@pytest.mark.parametrize("peer", MAPS)
def test_what_is_not_here_has_a_reason(peer):
    for theirs, ours in rows(peer):
        assert not ours.startswith("not here") or ours.startswith("not here, because "), theirs
        assert ours.strip(), theirs


@pytest.mark.parametrize(
    "path", [*FOLDER.glob("*.rst"), *FOLDER.glob("maps/*.csv")], ids=lambda path: path.name
)
def test_names_of_skts_exist(path):
    """Every name of skts that a page or a map refers to."""
    for name in ROLES.findall(path.read_text(encoding="utf-8")):
        *modules, last = name.split(".")
        found = importlib.import_module(modules[0])
        for part in [*modules[1:], last]:
            if not hasattr(found, part):
                importlib.import_module(f"{found.__name__}.{part}")
            found = getattr(found, part)
