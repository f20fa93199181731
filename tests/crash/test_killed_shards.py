"""Every shard is done once, however often the process that hands them out is killed."""

import sqlite3
from collections import Counter
from pathlib import Path
from random import Random

import pytest

from noetl.adapters.system.ids import SnowflakeIds
from noetl.kernel.ids import ExecutionId
from tests.crash.sharding import SHARDS, make_tables
from tests.crash.victims import Victims, Word

SEEDS = 8
KILLS_MAX = 3
APPENDS_MAX = 20
LIFE_SECONDS_MAX = 0.6

pytestmark = pytest.mark.crash


@pytest.mark.parametrize("seed", range(SEEDS))
def test_a_fan_out_is_completed_with_every_shard_done_once(
    tmp_path: Path, victims: Victims, seed: int
) -> None:
    chance = Random(seed)
    database = tmp_path / "work.db"
    make_tables(database)
    order = {
        "home": str(tmp_path / "home"),
        "database": str(database),
        "execution": ExecutionId(SnowflakeIds(7).new_id()),
    }
    end: Word | None = None
    for _ in range(KILLS_MAX):
        appends = chance.randint(2, APPENDS_MAX) if chance.random() < 0.5 else 0
        seconds = 0 if appends else chance.uniform(0.05, LIFE_SECONDS_MAX)
        victims.start("shard", **order, appends=appends, seconds=seconds)
        end = _until(victims, "dying", "closed")
        if end is not None:
            break
    if end is None:
        victims.start("shard", **order, appends=0, seconds=0)
        end = _until(victims, "closed")

    assert end is not None
    assert end["over"] == "COMPLETED", end
    assert end["result"]["shards"] == list(range(SHARDS))
    assert end["result"]["fanin"]["status"] == "complete"
    _check_shards(end["shards"])
    with sqlite3.connect(database) as connection:
        saved = [row[0] for row in connection.execute("SELECT shard FROM target ORDER BY shard")]
    connection.close()
    assert saved == list(range(SHARDS))


def _check_shards(ends: dict[str, list[str]]) -> None:
    assert Counter(ends["done"]) == Counter(str(number) for number in range(SHARDS))
    assert set(Counter(ends["failed"]).values()) <= {1}, "a try failed twice"
    assert {name.split("/")[0] for name in ends["failed"]} <= {
        str(number) for number in range(0, SHARDS, 5)
    }
    assert ends["fanin"] == ["complete"]


def _until(victims: Victims, *signs: str) -> Word | None:
    words = victims.hear(1)
    while not any(sign in words[-1] for sign in signs):
        words += victims.hear(1)
    words += victims.kill()
    return next((word for word in words if "over" in word), None)
