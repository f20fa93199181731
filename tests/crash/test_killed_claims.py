"""Rows that a loop claims are worked on once, however often whoever claims them is killed."""

import sqlite3
from collections import Counter
from pathlib import Path
from random import Random

import pytest

from noetl.adapters.system.ids import SnowflakeIds
from noetl.kernel.ids import ExecutionId
from tests.crash.claiming import expected_ids, make_table
from tests.crash.victims import Victims, Word

SEEDS = 20
KILLS_MAX = 4
APPENDS_MAX = 16
LIFE_SECONDS_MAX = 0.6

pytestmark = pytest.mark.crash


@pytest.mark.parametrize("seed", range(SEEDS))
def test_every_row_is_worked_on_and_none_is_lost(
    tmp_path: Path, victims: Victims, seed: int
) -> None:
    chance = Random(seed)
    database = tmp_path / "work.db"
    make_table(database)
    order = {
        "home": str(tmp_path / "home"),
        "database": str(database),
        "execution": ExecutionId(SnowflakeIds(7).new_id()),
    }
    end: Word | None = None
    for _ in range(KILLS_MAX):
        if chance.random() < 0.5:
            victims.start("claim", **order, seconds=0, appends=chance.randint(2, APPENDS_MAX))
        else:
            seconds = chance.uniform(0.05, LIFE_SECONDS_MAX)
            victims.start("claim", **order, appends=0, seconds=seconds)
        end = _until(victims, "dying", "closed")
        if end is not None:
            break
    if end is None:
        victims.start("claim", **order, appends=0, seconds=0)
        end = _until(victims, "closed")

    assert end is not None
    assert end["over"] == "COMPLETED", end
    assert sorted(end["result"]["ids"]) == expected_ids()
    _check_tables(database)


def _until(victims: Victims, *signs: str) -> Word | None:
    words = victims.hear(1)
    while not any(sign in words[-1] for sign in signs):
        words += victims.hear(1)
    words += victims.kill()
    return next((word for word in words if "over" in word), None)


def _check_tables(database: Path) -> None:
    """Rows keep their numbers when they change hands: what a row did is there under one number."""
    with sqlite3.connect(database) as connection:
        claims = connection.execute("SELECT id, claims, status FROM work").fetchall()
        done = Counter(row[0] for row in connection.execute("SELECT id FROM target"))
    connection.close()
    assert sorted(done) == expected_ids()
    assert set(done.values()) == {1}
    assert {(count, status) for _, count, status in claims} == {(1, "claimed")}
