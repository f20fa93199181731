"""Playbooks that earlier builds found good or wrong: this build must agree, word for word."""

from pathlib import Path

import pytest

from noetl.domain.playbook.keeping import STORE_KINDS
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
STORES_THEN = "auto, memory, kv, disk, object, s3, gcs, azure, db, duckdb or eventlog"
"""The lists that grow: whoever is told which tools there are is told of new ones too."""

HINTS = {"executor": 3, "keychain": 9, "output": 7, "policy_rules": 1}
"""Playbooks with hints for other engines: sound, and told how many of them have no effect."""


HINT_WORDS = "is a hint for other engines and has no effect"


def test_the_corpus_is_there() -> None:
    assert len(GOOD) >= 30
    assert len(BROKEN) >= 25


@pytest.mark.parametrize("path", GOOD, ids=lambda path: path.stem)
def test_a_good_playbook_is_found_good(path: Path) -> None:
    checked = check(path.read_bytes())

    assert checked.playbook is not None
    assert [each.severity for each in checked.problems] == ["warning"] * HINTS.get(path.stem, 0)


@pytest.mark.parametrize("path", BROKEN, ids=lambda path: path.stem)
def test_a_broken_playbook_is_told_what_is_wrong(path: Path) -> None:
    checked = check(path.read_bytes())

    expected = path.with_suffix(".txt").read_text(encoding="utf-8")
    expected = expected.replace(KINDS_THEN, choices(RUNNING_KINDS))
    expected = expected.replace(STORES_THEN, choices(STORE_KINDS))
    lines = [
        f"{each.line}:{each.column}: {each.severity}: {each.message}; {each.fix}\n"
        for each in checked.problems
        if HINT_WORDS not in each.message  # what was told then is told now, and hints besides
    ]
    assert "".join(lines) == expected
    assert not checked.is_sound
