"""What the log holds of the streams, keys, facts and events that a group names."""

from collections import defaultdict
from collections.abc import Sequence
from itertools import accumulate

from noetl.adapters.postgres.admissions import Place, Recorded
from noetl.adapters.postgres.partitions import Tables
from noetl.adapters.postgres.pool import Connection
from noetl.domain.log import Append, StreamHead
from noetl.kernel.ids import EventId, ExecutionId
from noetl.kernel.scope import Scope
from noetl.wire.columns import UNIQUE_FACTS, unique_fact

_HEADS = """
SELECT wanted.id, head.*, (SELECT last_value FROM noetl.event_position) AS position
FROM unnest(${parameter}::bigint[]) AS wanted (id) LEFT JOIN LATERAL (
    SELECT stream_version, event_id, tenant_id, organization_id
    FROM {table} WHERE execution_id = wanted.id ORDER BY stream_version DESC LIMIT 1
) AS head ON true"""
_POSITIONS = """
SELECT event.position
FROM unnest($1::bigint[], $2::bigint[]) WITH ORDINALITY AS wanted (execution_id, event_id, number)
LEFT JOIN noetl.event
    ON event.execution_id = wanted.execution_id AND event.event_id = wanted.event_id
ORDER BY wanted.number"""
_KEYS = """
SELECT event.execution_id, event.idempotency_key, event.stream_version, event.position
FROM unnest($1::bigint[], $2::text[]) AS wanted (execution_id, key)
JOIN noetl.event
    ON event.execution_id = wanted.execution_id AND event.idempotency_key = wanted.key"""
_EVENT_IDS = """
SELECT event.execution_id, event.event_id
FROM unnest($1::bigint[], $2::bigint[]) AS wanted (execution_id, event_id)
JOIN noetl.event
    ON event.execution_id = wanted.execution_id AND event.event_id = wanted.event_id"""
_FACTS = """
SELECT wanted.execution_id, '{event_type}/' || wanted.name
FROM unnest($1::bigint[], $2::text[]) AS wanted (execution_id, name)
JOIN noetl.event
    ON event.execution_id = wanted.execution_id AND event.meta ->> '{name}' = wanted.name
WHERE event.event_type = '{event_type}' AND event.aggregate_type = '{aggregate_type}'"""

_AGGREGATES = {
    "command.issued": "command",
    "loop.done": "loop",
    "loop.fanin.completed": "loop",
    "checkpoint.committed": "execution",
}
_FACTS_OF = {
    event_type: _FACTS.format(
        event_type=event_type, aggregate_type=_AGGREGATES[event_type], name=name
    )
    for event_type, name in UNIQUE_FACTS.items()
}


async def heads_of(connection: Connection, tables: Tables) -> tuple[dict[ExecutionId, Place], int]:
    """Where the streams end, by the partitions that hold them, and the last position of all."""
    queries = (
        _HEADS.format(table=table, parameter=parameter)
        for parameter, table in enumerate(tables, start=1)
    )
    rows = await connection.fetch(" UNION ALL ".join(queries), *tables.values())
    places = {
        ExecutionId(str(execution)): Place(
            StreamHead(version, EventId(str(event_id))), Scope(tenant, organization)
        )
        for execution, version, event_id, tenant, organization, _ in rows
        if version is not None
    }
    return places, rows[0]["position"]


async def last_position_of(connection: Connection, appends: Sequence[Append]) -> int | None:
    """The last position of appends that landed together, or None if they did not."""
    last_ids = [int(append.events[-1].envelope.event_id) for append in appends]
    executions = [int(append.execution_id) for append in appends]
    positions = [row[0] for row in await connection.fetch(_POSITIONS, executions, last_ids)]
    if None in positions:
        return None
    ends = accumulate(len(append.events) for append in appends)
    together = len({position - end for position, end in zip(positions, ends, strict=True)}) == 1
    return int(positions[-1]) if together else None


async def recorded_of(connection: Connection, appends: Sequence[Append]) -> Recorded:
    """What the log knows of this group. Asked only when there is a reason to."""
    sealed = [(int(append.execution_id), each) for append in appends for each in append.events]
    keys = [
        (execution, each.envelope.idempotency_key)
        for execution, each in sealed
        if each.envelope.idempotency_key is not None
    ]
    event_ids = [(execution, int(each.envelope.event_id)) for execution, each in sealed]
    facts: dict[str, list[tuple[int, str]]] = defaultdict(list)
    for execution, each in sealed:
        fact = unique_fact(each)
        if fact is not None:
            event_type, _, name = fact.partition("/")
            facts[event_type].append((execution, name))
    found = Recorded()
    for execution, key, version, position in await connection.fetch(_KEYS, *_columns(keys)):
        found.keys[str(execution), key] = (version, position)
    for execution, event_id in await connection.fetch(_EVENT_IDS, *_columns(event_ids)):
        found.event_ids.add((str(execution), str(event_id)))
    for event_type, wanted in facts.items():
        for execution, fact in await connection.fetch(_FACTS_OF[event_type], *_columns(wanted)):
            found.facts.add((str(execution), fact))
    return found


def _columns(rows: Sequence[tuple[int, int | str]]) -> tuple[list[int], list[int | str]]:
    return [row[0] for row in rows], [row[1] for row in rows]
