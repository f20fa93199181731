"""A wait outlives whoever holds the log: it is due when it was due, and only once."""

import asyncio
from pathlib import Path

import pytest

from noetl.adapters.system.ids import SnowflakeIds
from noetl.bootstrap.platform import open_platform
from noetl.decider.waits import TIMER
from noetl.domain.events import CommandClaimed
from noetl.kernel.ids import ExecutionId
from noetl.kernel.instant import Instant, seconds_between
from noetl.wire.codec import open_stored
from tests.crash.engine import settings_of
from tests.crash.victims import Victims

SECONDS = 3
KILLS = 3

pytestmark = pytest.mark.crash


def test_it_is_due_when_it_was_due(tmp_path: Path, victims: Victims) -> None:
    execution = ExecutionId(SnowflakeIds(7).new_id())
    home = str(tmp_path / "home")
    order = {"home": home, "execution": execution, "seconds": SECONDS}
    for _ in range(KILLS):
        victims.start("wait", **order)
        assert "running" in victims.hear(1)[0]
        victims.kill()

    victims.start("wait", **order)
    _, end = victims.hear(2)
    victims.kill()

    assert end["over"] == "COMPLETED"
    claims, ended_at = asyncio.run(claims_of(home, execution))
    assert [claim.worker_id for claim in claims] == [TIMER, TIMER]
    first, second = claims
    assert seconds_between(first.lease_until, ended_at) >= 0
    assert second.lease_until >= first.lease_until


async def claims_of(home: str, execution: ExecutionId) -> tuple[list[CommandClaimed], Instant]:
    async with open_platform(settings_of(home), create=False) as platform:
        recorded = [open_stored(stored) for stored in await platform.log.read(execution)]
    claims = [each.event for each in recorded if isinstance(each.event, CommandClaimed)]
    return claims, recorded[-1].envelope.event_time
