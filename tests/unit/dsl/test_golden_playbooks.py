"""Playbooks that earlier builds found good or wrong: this build must agree, word for word."""

from pathlib import Path

import pytest

from noetl.dsl.check import check

FOLDER = Path(__file__).resolve().parents[2] / "golden" / "playbooks"
GOOD = sorted(FOLDER.glob("v*/*.yaml"))
BROKEN = sorted(FOLDER.glob("v*/broken/*.yaml"))


def test_the_corpus_is_there() -> None:
    assert len(GOOD) >= 30
    assert len(BROKEN) >= 25


@pytest.mark.parametrize("path", GOOD, ids=lambda path: path.stem)
def test_a_good_playbook_is_found_good(path: Path) -> None:
    checked = check(path.read_bytes())

    assert checked.problems == ()
    assert checked.playbook is not None


@pytest.mark.parametrize("path", BROKEN, ids=lambda path: path.stem)
def test_a_broken_playbook_is_told_what_is_wrong(path: Path) -> None:
    checked = check(path.read_bytes())

    expected = path.with_suffix(".txt").read_text(encoding="utf-8")
    lines = [
        f"{each.line}:{each.column}: {each.severity}: {each.message}; {each.fix}\n"
        for each in checked.problems
    ]
    assert "".join(lines) == expected
    assert not checked.is_sound
