"""A projector that is killed at any moment leaves records and cursor that belong together."""

import asyncio
import time
from pathlib import Path
from random import Random

import pytest

from noetl.domain.execution.rows import CommandRow
from noetl.domain.projection import QUERY_RECORDS_MAX, ProjectionQuery
from noetl.kernel.ids import ExecutionId
from noetl.kernel.scope import DEFAULT_SCOPE
from noetl.runtime.projector import CONSUMER
from noetl.runtime.replay import Replay, ReplayRequest
from noetl.runtime.verify_log import verify_log
from tests.crash.projector import EXECUTIONS, Stores, opened_stores, request, states
from tests.crash.victims import Victims

KILLS = 50
PAGES_HEARD_MAX = 6
LINGER_SECONDS_MAX = 0.008

Saved = dict[tuple[str, str], bytes]

pytestmark = pytest.mark.crash


def test_sqlite(tmp_path: Path, victims: Victims, chance: Random) -> None:
    address = str(tmp_path / "noetl.db")
    position = pages = 0
    for round_number in range(KILLS):
        victims.start("project", address=address, round=round_number)
        words = victims.hear(chance.randint(0, PAGES_HEARD_MAX))
        time.sleep(chance.uniform(0, LINGER_SECONDS_MAX))
        words += victims.kill()
        position = max([position, *(word["position"] for word in words)])
        pages += len(words)
        asyncio.run(check(address, position))
    print(f"{KILLS} kills, {pages} pages, the cursor is past {position}")
    assert pages > KILLS


async def check(address: str, acknowledged_position: int) -> None:
    async with opened_stores(address) as stores:
        assert (await verify_log(stores.log)).is_sound
        cursor = await stores.projections.cursor(CONSUMER)
        position = 0 if cursor is None else cursor.position
        assert position >= acknowledged_position, "the cursor fell back"
        expected: Saved = {}
        for execution in EXECUTIONS:
            if position and await stores.log.scope_of(execution) is not None:
                expected |= await rebuilt(stores, execution, position)
            await check_snapshots(stores, execution)
        assert await saved(stores) == expected


async def rebuilt(stores: Stores, execution: ExecutionId, position: int) -> Saved:
    """The records as they must be at the cursor, from the events alone."""
    finished: list[CommandRow] = []
    replayed = await Replay(stores.log).state(
        request(execution, position),
        lambda _, row: finished.append(row),  # type: ignore[arg-type]  # only commands finish here
    )
    state = replayed.state
    return states(state, [*finished, *state.commands.values()]) if state.stream_version else {}


async def saved(stores: Stores) -> Saved:
    found: Saved = {}
    for kind in ("execution", "command"):
        after = ""
        while True:
            query = ProjectionQuery(
                scope=DEFAULT_SCOPE, projection_type=kind, after_id=after, limit=QUERY_RECORDS_MAX
            )
            page = await stores.projections.query(query)
            found |= {(kind, record.projection_id): record.canonical for record in page}
            if len(page) < QUERY_RECORDS_MAX:
                break
            after = page[-1].projection_id
    return found


async def check_snapshots(stores: Stores, execution: ExecutionId) -> None:
    """Whatever snapshots survived, starting from the newest gives what the events give."""
    if await stores.log.scope_of(execution) is None:
        return
    wanted = ReplayRequest(scope=DEFAULT_SCOPE, execution_id=execution)
    with_snapshots = (await Replay(stores.log, stores.snapshots).state(wanted)).report
    without = (await Replay(stores.log).state(wanted)).report
    assert with_snapshots.snapshot.refused == ()
    assert with_snapshots.checksum == without.checksum
