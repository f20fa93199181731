"""Playbooks that earlier builds found good or wrong: this build must agree, word for word."""

from pathlib import Path

import pytest

from noetl.domain.playbook.wording import choices
from noetl.dsl.check import check
from noetl.dsl.language.kinds import RUNNING_KINDS

FOLDER = Path(__file__).resolve().parents[2] / "golden" / "playbooks"
GOOD = sorted(FOLDER.glob("v*/*.yaml"))
BROKEN = sorted(FOLDER.glob("v*/broken/*.yaml"))
KINDS_THEN = (
    "python, http, postgres, duckdb, sqlite, shell, noop, playbook, workbook, nats, artifact,"
    " result_fetch, transfer, secrets or spark"
)
"""The one list that grows: whoever is told which tools there are is told of new ones too."""


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
    expected = expected.replace(KINDS_THEN, choices(RUNNING_KINDS))
    lines = [
        f"{each.line}:{each.column}: {each.severity}: {each.message}; {each.fix}\n"
        for each in checked.problems
    ]
    assert "".join(lines) == expected
    assert not checked.is_sound
