"""SnapshotStore on PostgreSQL."""

import asyncpg

from noetl.adapters.postgres.failures import translated
from noetl.adapters.postgres.pool import PostgresPool
from noetl.adapters.postgres.rows import Row, instant
from noetl.adapters.postgres.schema import ready_pool
from noetl.domain.snapshots import Snapshot
from noetl.kernel.errors import StoreUnavailable
from noetl.kernel.ids import EventId, ExecutionId, stream_id
from noetl.kernel.instant import to_datetime
from noetl.kernel.scope import Scope
from noetl.ports.snapshot_store import CANDIDATES_MAX

_AGGREGATE_TYPE = "replay_state"
_KEY_COLUMNS = ("tenant_id", "organization_id", "aggregate_type", "aggregate_id", "version")
_VALUE_COLUMNS = (
    "execution_id",
    "position",
    "last_event_id",
    "fold_version",
    "registry_digest",
    "canonical_form",
    "playbook_digest",
    "payload_chain",
    "state",
    "checksum",
    "taken_at",
)
_COLUMNS = (*_KEY_COLUMNS, *_VALUE_COLUMNS)
_REPLACE = f"""
INSERT INTO noetl.projection_snapshot ({", ".join(_COLUMNS)})
VALUES ({", ".join(f"${at}" for at in range(1, len(_COLUMNS) + 1))})
ON CONFLICT ({", ".join(_KEY_COLUMNS)}) DO UPDATE
SET {", ".join(f"{name} = excluded.{name}" for name in _VALUE_COLUMNS)}"""
_OF_ONE = """
tenant_id = $1 AND organization_id = $2 AND aggregate_type = $3 AND aggregate_id = $4"""
_CANDIDATES = f"""
SELECT {", ".join(_COLUMNS)} FROM noetl.projection_snapshot
WHERE {_OF_ONE} AND version <= $5 ORDER BY version DESC LIMIT $6"""
_PRUNE = f"""
DELETE FROM noetl.projection_snapshot WHERE {_OF_ONE} AND version <= (
    SELECT version FROM noetl.projection_snapshot WHERE {_OF_ONE}
    ORDER BY version DESC LIMIT 1 OFFSET $5)"""


class PostgresSnapshotStore:
    def __init__(self, pool: PostgresPool, *, owns_pool: bool = False) -> None:
        self._pool = pool
        self._owns_pool = owns_pool

    @classmethod
    async def open(cls, where: PostgresPool | str) -> "PostgresSnapshotStore":
        pool, owns_pool = await ready_pool(where, StoreUnavailable)
        return cls(pool, owns_pool=owns_pool)

    async def save(self, snapshot: Snapshot) -> None:
        with translated(StoreUnavailable):
            async with self._pool.connection() as connection:
                await connection.execute(_REPLACE, *_row(snapshot))

    async def candidates(
        self,
        scope: Scope,
        execution: ExecutionId,
        *,
        at_or_before: int,
        limit: int = CANDIDATES_MAX,
    ) -> list[Snapshot]:
        key = _key(scope, execution)
        with translated(StoreUnavailable):
            async with self._pool.connection() as connection:
                rows = await connection.fetch(_CANDIDATES, *key, at_or_before, limit)
        return [_snapshot(row) for row in rows]

    async def prune(self, scope: Scope, execution: ExecutionId, *, keep: int) -> int:
        with translated(StoreUnavailable):
            async with self._pool.connection() as connection:
                status = await connection.execute(_PRUNE, *_key(scope, execution), keep)
        return int(status.removeprefix("DELETE "))

    async def close(self) -> None:
        if self._owns_pool:
            await self._pool.close()


def _key(scope: Scope, execution: ExecutionId) -> tuple[str, str, str, str]:
    return (*scope, _AGGREGATE_TYPE, f"{stream_id(execution)}/all")


def _row(snapshot: Snapshot) -> Row:
    return (
        *_key(snapshot.scope, snapshot.execution_id),
        snapshot.stream_version,
        int(snapshot.execution_id),
        snapshot.position,
        int(snapshot.last_event_id),
        snapshot.fold_version,
        snapshot.registry_digest,
        snapshot.canonical_form,
        snapshot.playbook_digest,
        snapshot.payload_chain,
        snapshot.state,
        snapshot.checksum,
        to_datetime(snapshot.taken_at),
    )


def _snapshot(row: asyncpg.Record) -> Snapshot:
    return Snapshot(
        scope=Scope(row["tenant_id"], row["organization_id"]),
        execution_id=ExecutionId(str(row["execution_id"])),
        stream_version=row["version"],
        position=row["position"],
        last_event_id=EventId(str(row["last_event_id"])),
        fold_version=row["fold_version"],
        registry_digest=row["registry_digest"],
        canonical_form=row["canonical_form"],
        playbook_digest=row["playbook_digest"],
        payload_chain=row["payload_chain"],
        state=row["state"],
        checksum=row["checksum"],
        taken_at=instant(row["taken_at"]),
    )
