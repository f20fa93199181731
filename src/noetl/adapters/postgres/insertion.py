"""The one statement that writes a group: lock, number, check what came before, insert.

It takes its snapshot before it waits for the lock, which does no harm: the last position is read
past all snapshots, unique indexes see everything, and what the check finds can never change.
"""

from functools import lru_cache

from noetl.adapters.postgres.rows import COLUMNS
from noetl.adapters.postgres.schema import APPEND_LOCK
from noetl.kernel.canonical_json import FORM

STATEMENTS_MAX = 100

_NAMES = ", ".join(COLUMNS)
_VALUES = ", ".join(f"given.{name}" for name in COLUMNS)
_INSERT = f"""
WITH held AS MATERIALIZED (
    SELECT {APPEND_LOCK}
), base AS MATERIALIZED (
    SELECT coalesce(pg_sequence_last_value('noetl.event_position'), 0) AS position FROM held
), before AS MATERIALIZED ({{before}}
), landed AS (
    INSERT INTO noetl.event (position, ingest_time, {_NAMES})
    SELECT
        base.position + given.ordinality, greatest($2::timestamptz, before.ingest_time), {_VALUES}
    FROM base, before, unnest($1::noetl.event_row[]) WITH ORDINALITY AS given ({_NAMES}, ordinality)
    WHERE before.is_there
    RETURNING {{returned}}
){{outbox}}
SELECT setval('noetl.event_position', max(position)) FROM landed"""

_NOTHING_BEFORE = """
    SELECT true AS is_there, NULL::timestamptz AS ingest_time"""
_BEFORE = """
    SELECT count(*) = cardinality($3::bigint[]) AS is_there, max(ingest_time) AS ingest_time
    FROM unnest($3::bigint[], $4::bigint[], $5::bigint[], $6::text[], $7::text[])
        AS wanted (execution_id, stream_version, event_id, tenant_id, organization_id)
    JOIN ({events}) AS event USING (execution_id, stream_version)
    WHERE event.event_id = wanted.event_id AND event.tenant_id = wanted.tenant_id
        AND event.organization_id = wanted.organization_id"""
_EVENTS = """
        SELECT execution_id, stream_version, event_id, tenant_id, organization_id, ingest_time
        FROM {table}"""
_OUTBOX = """, sent AS (
    INSERT INTO noetl.outbox (position, subject, codec, payload_bytes, payload)
    SELECT landed.position, addressed.subject, '{codec}', landed.canonical,
        -- For people to read, so the one character that jsonb cannot hold may be replaced.
        replace(convert_from(landed.canonical, 'UTF8'), '\\u0000', '\\ufffd')::jsonb
    FROM landed JOIN unnest(${executions}::bigint[], ${subjects}::text[])
        AS addressed (execution_id, subject) USING (execution_id)
    ORDER BY landed.position
)"""


@lru_cache(maxsize=STATEMENTS_MAX)
def insertion(tables: tuple[str, ...], *, distribution: bool) -> str:
    """The statement for a group that continues streams in these partitions.

    They are named one by one, because a look through the parent costs more with every partition.

    $1 rows, $2 the time; if there are tables, $3 to $7 the events before the group; with
    `distribution`, two more: executions and their subjects.
    """
    before, parameters = _NOTHING_BEFORE, 2
    if tables:
        events = " UNION ALL ".join(_EVENTS.format(table=table) for table in tables)
        before, parameters = _BEFORE.format(events=events), 7
    returned, outbox = "position", ""
    if distribution:
        returned = "position, execution_id, canonical"
        outbox = _OUTBOX.format(codec=FORM, executions=parameters + 1, subjects=parameters + 2)
    return _INSERT.format(before=before, returned=returned, outbox=outbox)
