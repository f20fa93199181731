"""With distribution on, every event has its intent to be sent, or neither of them is there."""

import asyncpg
import pytest

from noetl.adapters.postgres.subjects import shard_of, subject_of
from noetl.domain.events import StepEntered
from noetl.domain.log import Appended
from noetl.kernel.errors import DuplicateFact, InvariantBroken
from noetl.kernel.ids import ExecutionId, StepName
from noetl.kernel.scope import DEFAULT_SCOPE, Scope
from noetl.testing.histories import History, command_cycle, execution_ids
from tests.postgres.conftest import OpenLog
from tests.postgres.streams import STEP, sealed_append, steps

Sql = asyncpg.Connection
FIRST, SECOND, THIRD = execution_ids(3)
ACME = Scope("acme.com", "r&d *>")


@pytest.mark.servers
async def test_every_event_has_one_row_with_its_bytes(
    open_log: OpenLog, sql: "Sql[asyncpg.Record]"
) -> None:
    log = await open_log(distribution=True)
    group = [
        sealed_append(FIRST, list(command_cycle(History(FIRST), STEP))),
        sealed_append(SECOND, steps(History(SECOND), 2), scope=ACME),
    ]
    await log.append(group)

    rows = await sql.fetch("SELECT * FROM noetl.outbox ORDER BY outbox_id")

    sealed = [each for append in group for each in append.events]
    assert [row["payload_bytes"] for row in rows] == [each.canonical for each in sealed]
    assert [row["position"] for row in rows] == list(range(1, len(sealed) + 1))
    assert {row["codec"] for row in rows} == {"c1"}
    assert [row["subject"] for row in rows] == [
        *[f"noetl.events.default.default.{FIRST}.{shard_of(DEFAULT_SCOPE, FIRST)}"] * 7,
        *[f"noetl.events.acme%2Ecom.r%26d%20%2A%3E.{SECOND}.{shard_of(ACME, SECOND)}"] * 2,
    ]
    assert {(row["published_at"], row["attempts"]) for row in rows} == {(None, 0)}
    seen = await sql.fetchval("SELECT payload->>'command_id' FROM noetl.outbox OFFSET 1 LIMIT 1")
    assert seen == sealed[1].envelope.command_id


@pytest.mark.servers
async def test_without_distribution_there_is_none(
    open_log: OpenLog, sql: "Sql[asyncpg.Record]"
) -> None:
    await (await open_log()).append([sealed_append(FIRST, steps(History(FIRST), 2))])
    assert await sql.fetchval("SELECT count(*) FROM noetl.outbox") == 0


@pytest.mark.servers
async def test_what_is_refused_or_rolled_back_is_not_sent(
    open_log: OpenLog, sql: "Sql[asyncpg.Record]"
) -> None:
    log = await open_log(distribution=True)
    history = History(FIRST)
    await log.append([sealed_append(FIRST, list(command_cycle(history, STEP)))])
    head = await log.head(FIRST)
    again = [draft for draft in command_cycle(history, STEP) if not draft.idempotency_key]

    outcomes = await log.append(
        [sealed_append(FIRST, again, head), sealed_append(THIRD, steps(History(THIRD), 1))]
    )

    assert [type(outcome) for outcome in outcomes] == [DuplicateFact, Appended]
    sent = "SELECT count(*), count(DISTINCT position), max(position) FROM noetl.outbox"
    there = "SELECT count(*), count(DISTINCT position), max(position) FROM noetl.event"
    assert await sql.fetchrow(sent) == await sql.fetchrow(there)


@pytest.mark.servers
async def test_an_outbox_that_cannot_be_written_takes_the_events_with_it(
    open_log: OpenLog, sql: "Sql[asyncpg.Record]"
) -> None:
    log = await open_log(distribution=True)
    await sql.execute("ALTER TABLE noetl.outbox ADD CHECK (subject NOT LIKE '%.acme%2Ecom.%')")
    append = sealed_append(SECOND, steps(History(SECOND), 2), scope=ACME)

    with pytest.raises(InvariantBroken, match="check constraint"):
        await log.append([append])

    assert await log.tail() == []
    assert await sql.fetchval("SELECT count(*) FROM noetl.outbox") == 0


@pytest.mark.servers
async def test_the_readable_copy_survives_what_jsonb_cannot_hold(
    open_log: OpenLog, sql: "Sql[asyncpg.Record]"
) -> None:
    log = await open_log(distribution=True)
    draft = History(FIRST).draft(StepEntered(step=StepName("a\0b")))
    append = sealed_append(FIRST, [draft])
    await log.append([append])

    row = await sql.fetchrow("SELECT payload_bytes, payload#>>'{body,step}' FROM noetl.outbox")

    assert tuple(row or ()) == (append.events[0].canonical, "a\ufffdb")


def test_shards_are_where_other_languages_find_them() -> None:
    """FNV-1a, 64 bits, of `a` is 0xaf63dc4c8601ec8c, and of nothing its offset."""
    assert shard_of(Scope("", ""), ExecutionId("")) == _fnv(b"//") % 256
    assert _fnv(b"") == 0xCBF29CE484222325
    assert _fnv(b"a") == 0xAF63DC4C8601EC8C
    assert _fnv(b"foobar") == 0x85944171F73967E8
    assert subject_of(DEFAULT_SCOPE, ExecutionId("7")).endswith(
        f".7.{_fnv(b'default/default/7') % 256}"
    )


def _fnv(data: bytes) -> int:
    digest = 14695981039346656037
    for byte in data:
        digest = ((digest ^ byte) * 1099511628211) % 2**64
    return digest
