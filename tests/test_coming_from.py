"""The programs of the page "Coming from another package" print what those of the peers print."""

from __future__ import annotations

import runpy
from pathlib import Path

import pytest

FOLDER = Path(__file__).parents[1] / "docs" / "user_guide" / "coming_from"
PEERS = sorted(path.stem for path in FOLDER.glob("*.txt"))


def test_every_pair_is_complete():
    assert PEERS == ["aeon", "stumpy", "tslearn", "ucr"]
    programs = {path.name for path in FOLDER.glob("*.py")}
    assert programs == {f"{peer}_{side}.py" for peer in PEERS for side in ("ours", "theirs")}


@pytest.mark.parametrize("peer", PEERS)
def test_the_same_output(peer, capsys):
    runpy.run_path(str(FOLDER / f"{peer}_ours.py"))
    # as `python PEER_theirs.py > PEER.txt` wrote it, in the environment of the peer
    assert capsys.readouterr().out == (FOLDER / f"{peer}.txt").read_text()
