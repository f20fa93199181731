"""Queries that people wrote against the older system's tables work on ours."""

from collections.abc import Iterator

import asyncpg
import pytest

from noetl.domain.events import (
    BusinessObjectChanged,
    CallFailed,
    FaninCompleted,
    FanoutStarted,
    ShardDone,
)
from noetl.domain.events.envelope import Draft
from noetl.domain.events.values import Failure
from noetl.domain.payload import PayloadReference
from noetl.kernel.ids import CommandId, EventId, ExecutionId, StepName, loop_id
from noetl.testing.histories import (
    History,
    begin,
    command_cycle,
    execution_ids,
    finish,
    loop_of_frames,
)
from tests.postgres.conftest import OpenLog
from tests.postgres.streams import sealed_append

pytestmark = pytest.mark.servers

(EXECUTION,) = execution_ids(1)
STEP = StepName("load/orders")
LOOP = loop_id(StepName("each"), 1)


def a_run(history: History) -> Iterator[Draft]:
    yield from begin(history)
    yield from command_cycle(history, STEP)
    yield from loop_of_frames(history, StepName("pages"), frames=2)
    yield history.draft(FanoutStarted(loop_id=LOOP, step=StepName("each"), total_shards=1))
    yield history.draft(ShardDone(loop_id=LOOP, shard_id="0"))
    yield history.draft(FaninCompleted(loop_id=LOOP, status="complete", total=1, done=1))
    failure = Failure(kind="http", message="503 from the other side")
    yield history.draft(
        CallFailed(step=STEP, error=failure, duration_ms=1500),
        annotations={"locality": {"zone": "a"}},
        causation_id=EventId("42"),
        meta={"note": "by hand"},
    )
    yield from finish(history, STEP)


@pytest.fixture
async def run(open_log: OpenLog) -> ExecutionId:
    log = await open_log()
    await log.append([sealed_append(EXECUTION, list(a_run(History(EXECUTION))))])
    return EXECUTION


Sql = asyncpg.Connection


async def test_the_story_of_an_execution_in_order(
    run: ExecutionId, sql: "Sql[asyncpg.Record]"
) -> None:
    rows = await sql.fetch(
        f"""SELECT event_type, node_name, status, result->'context', meta->>'command_id'
        FROM noetl.event WHERE execution_id = {run} ORDER BY event_id"""
    )
    command = f"{run}/load/orders/1/0/1"
    context = '{"row_count": 12, "status_code": 200}'
    assert [tuple(row) for row in rows[:8]] == [
        ("playbook.initialized", None, None, None, None),
        ("step.enter", STEP, None, None, None),
        ("command.issued", STEP, None, None, command),
        ("command.claimed", STEP, None, None, command),
        ("command.started", STEP, None, None, command),
        ("call.done", STEP, "ok", context, command),
        ("command.completed", STEP, "ok", context, command),
        ("step.exit", STEP, "ok", context, None),
    ]
    assert rows[-1][:3] == ("playbook.completed", STEP, "ok")


@pytest.mark.parametrize(
    ("query", "answer"),
    [
        ("SELECT count(*) FROM noetl.event WHERE event_type LIKE 'command.%'", 4),
        ("SELECT count(DISTINCT event_id) = count(*) FROM noetl.event", True),
        ("SELECT count(*) FROM noetl.event WHERE prev_event_id IS NULL", 1),
        ("SELECT path FROM (SELECT context->>'path' AS path FROM noetl.event) AS e WHERE path > ''",
         "examples/orders"),
        ("SELECT worker_id FROM noetl.event WHERE event_type = 'command.completed'", "worker-1"),
        ("SELECT duration FROM noetl.event WHERE event_type = 'call.error'", 1.5),
        ("SELECT error FROM noetl.event WHERE event_type = 'call.error'",
         "503 from the other side"),
        ("SELECT status FROM noetl.event WHERE event_type = 'call.error'", "error"),
        ("SELECT causation_id FROM noetl.event WHERE event_type = 'call.error'", 42),
        ("SELECT meta->>'note' FROM noetl.event WHERE event_type = 'call.error'", "by hand"),
        ("SELECT meta#>>'{locality,zone}' FROM noetl.event WHERE event_type = 'call.error'", "a"),
        ("SELECT annotations#>>'{locality,zone}' FROM noetl.event WHERE annotations IS NOT NULL",
         "a"),
        ("SELECT count(*) FROM noetl.event WHERE stage_id IS NOT NULL", 9),
        ("SELECT count(*) FROM noetl.event WHERE frame_id IS NOT NULL", 6),
        ("SELECT meta->>'loop_id' FROM noetl.event WHERE event_type = 'loop.done'", "pages@1"),
        ("SELECT meta->>'epoch_id' FROM noetl.event WHERE event_type = 'loop.fanin.completed'",
         "each@1"),
        ("SELECT node_name FROM noetl.event WHERE event_type = 'loop.shard.done'", "each"),
        ("SELECT (meta->>'total_shards')::int FROM noetl.event"
         " WHERE event_type = 'loop.fanout.started'", 1),
        ("SELECT count(*) FROM noetl.event WHERE created_at = event_time", 23),
        ("SELECT DISTINCT stream_id FROM noetl.event", f"execution/{EXECUTION}"),
        ("SELECT node_type FROM noetl.event WHERE event_type = 'command.issued'", "command"),
        ("SELECT min(length(envelope_checksum)) FROM noetl.event", 64),
        ("SELECT bool_and(envelope_checksum = encode(sha256(canonical), 'hex')) FROM noetl.event",
         True),
    ],
)  # fmt: skip
async def test_what_people_ask(
    run: ExecutionId, sql: "Sql[asyncpg.Record]", query: str, answer: object
) -> None:
    assert await sql.fetchval(query) == answer


async def test_a_payload_reference_can_be_followed(
    open_log: OpenLog, sql: "Sql[asyncpg.Record]"
) -> None:
    reference = PayloadReference(
        tenant_id="default",
        organization_id="default",
        uri="noetl://tenant/default/org/default/payload/ab",
        sha256="ab" * 32,
        media_type="application/json",
        byte_length=7,
    )
    history = History(EXECUTION)
    (first,) = begin(history)
    draft = history.draft(first.event, payload_ref=reference)
    await (await open_log()).append([sealed_append(EXECUTION, [draft])])

    row = await sql.fetchrow(
        "SELECT payload_ref->>'kind', payload_ref->>'uri', payload_ref->>'sha256' FROM noetl.event"
    )

    assert tuple(row or ()) == ("payload_store", reference.uri, reference.sha256)


async def test_a_business_object_may_use_any_name_for_what_happened(
    open_log: OpenLog, sql: "Sql[asyncpg.Record]"
) -> None:
    """Also one of ours: it is no fact about a command, so it may exist twice."""
    log = await open_log()
    history = History(EXECUTION)
    command = CommandId("c1")
    drafts = [
        *command_cycle(history, STEP),
        *(
            history.draft(
                BusinessObjectChanged(object="order", id=str(number)),
                event_type="command.issued",
                command_id=command,
            )
            for number in range(2)
        ),
    ]
    await log.append([sealed_append(EXECUTION, drafts)])

    asked = "SELECT count(*) FROM noetl.event WHERE event_type = 'command.issued'"
    assert await sql.fetchval(asked) == 3
