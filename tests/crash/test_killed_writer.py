"""A writer that is killed at any moment loses nothing it was told is safe, and tears nothing."""

import asyncio
import time
from pathlib import Path
from random import Random

import pytest

from tests.crash.checks import Acknowledged, check_log
from tests.crash.victims import Victims

KILLS = 100
KILLS_PER_CHECK = 10
"""What a kill tore stays torn: nothing in a log is written over."""

APPENDS_HEARD_MAX = 12
LINGER_SECONDS_MAX = 0.01  # several commits: death comes before, in and after one

pytestmark = pytest.mark.crash


def test_sqlite(tmp_path: Path, victims: Victims, chance: Random) -> None:
    kill_again_and_again(victims, chance, str(tmp_path / "log.db"))


@pytest.mark.servers
def test_postgres(postgres_dsn: str, victims: Victims, chance: Random) -> None:
    kill_again_and_again(victims, chance, postgres_dsn)


def kill_again_and_again(victims: Victims, chance: Random, address: str) -> None:
    """All rounds on one log: each goes on where the one before it was cut off."""
    acknowledged = Acknowledged()
    events = 0
    for round_number in range(KILLS):
        victims.start("append", address=address, round=round_number)
        acknowledged.add(victims.hear(chance.randint(0, APPENDS_HEARD_MAX)))
        time.sleep(chance.uniform(0, LINGER_SECONDS_MAX))
        acknowledged.add(victims.kill())
        if (round_number + 1) % KILLS_PER_CHECK == 0:
            before, events = events, asyncio.run(check_log(address, acknowledged))
            assert events >= before, "a round lost events of an earlier one"
    print(f"{KILLS} kills: {acknowledged.events} events of {events} were acknowledged")
    assert 0 < acknowledged.events <= events
